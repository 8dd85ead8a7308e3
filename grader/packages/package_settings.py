"""What a package says of itself: its assignment, and the time and memory that one submission may use.

It is written when the package is made and read where it runs. It decides what of the time and memory is left
for a student's code. Its one secret is the key of students' values. It imports nothing slow: the parent of a
run reads it.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path

from grader.domain.assignment_versions import PackedValues, Value, frozen_value
from grader.domain.errors import UsageError

FILE = "package.json"
LEAST_MEMORY_MB = 2000
_OWN_MEMORY_MB = 1300  # the grader itself: its hosts and their children
_RESERVED_SECONDS = 15.0  # before the other grader ends the run: to write the results
_RESERVED_SHARE = 0.1  # of a short run


@dataclass(frozen=True)
class ReducedRun:
    """A training on a few images, or other examples, that are in the package.

    Attributes:
        train: How many it trains on.
        test: How many others it is measured on.
        decides: What it measures gives the points; otherwise these are open, and it is only told.
    """

    train: int
    test: int
    decides: bool = False


@dataclass(frozen=True)
class PackageSettings:
    """What a package says of itself.

    Attributes:
        kind: `gradescope`, `prairielearn` or `container`.
        assignment_id: The assignment's id.
        minutes: After which the other grader ends a run.
        memory_mb: That the whole run may use, the grader included.
        leaderboard: A line for the leaderboard is written.
        engine: The grader's version.
        values: What was drawn for this assignment and term: no package holds what it is drawn from.
        students_key: What the values of each student are drawn with; empty: nothing is drawn so.
        reduced: What is trained; None: nothing is, checks only.
        words: The sentences on a run that was not completed, in the language of the course: English -> the
            same. The parent of a run reads no catalogs.
    """

    kind: str
    assignment_id: str
    minutes: float
    memory_mb: int
    leaderboard: bool = False
    engine: str = ""
    values: Mapping[str, Value] = field(default_factory=dict)
    words: Mapping[str, str] = field(default_factory=dict)
    students_key: str = field(default="", repr=False)
    reduced: ReducedRun | None = None

    @property
    def packed_values(self) -> PackedValues:
        """What replaces the course's secret, where values are drawn."""
        return PackedValues(self.values, self.students_key)

    @property
    def run_seconds(self) -> float:
        """How long a run may take, with time left to write the results."""
        whole = self.minutes * 60
        return whole - min(_RESERVED_SECONDS, whole * _RESERVED_SHARE)

    @property
    def worker_memory_mb(self) -> int:
        """What is left for a process of the student's."""
        return max(self.memory_mb, LEAST_MEMORY_MB) - _OWN_MEMORY_MB

    def translated(self, sentence: str) -> str:
        """A sentence on a run that was not completed, in the language of the course."""
        return self.words.get(sentence, sentence)

    def text(self) -> str:
        """As the package holds it."""
        return json.dumps(asdict(self), indent=1) + "\n"


def read_settings(folder: Path) -> PackageSettings:
    """The settings of the package in a folder.

    Raises:
        UsageError: There are none, or they are malformed.
    """
    path = folder / FILE
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        told = {field.name: document[field.name] for field in fields(PackageSettings)}
        values = {name: frozen_value(value) for name, value in told.pop("values").items()}
        reduced = told.pop("reduced")
        reduced = ReducedRun(**reduced) if reduced is not None else None
        return PackageSettings(**told, values=values, reduced=reduced)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise UsageError(
            f"{path}: is not the description of a package ({type(error).__name__}). Make the package again: "
            "grader package"
        ) from None
