"""How long a class will take, from what it took on this machine before."""

import contextlib
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from grader.domain.errors import UsageError
from grader.domain.stage_time import StageTime
from grader.domain.submission import Submission
from grader.files import atomic
from grader.gradebook import Gradebook, RunRecord
from grader.grading.run import Run, mates
from grader.grading.submission_run import is_known, may_be_known
from grader.grading.training_stage import waits_for_more_time


@dataclass(frozen=True)
class StageRate:
    """What a stage of one submission takes.

    Attributes:
        seconds: The mean of wall-clock time: the few that take long decide how long a class takes.
        submissions: Of how many.
    """

    seconds: float
    submissions: int


@dataclass(frozen=True)
class Workload:
    """The work of a run before it begins.

    Attributes:
        submissions: How many are to be examined, or trained for longer; what a team handed in is one.
        unchanged: How many are not, as nothing has changed about them.
        jobs: How many at once.
        rates: Stage -> what it took; empty when nothing like it was done on this machine.
    """

    submissions: int
    unchanged: int
    jobs: int
    rates: Mapping[str, StageRate]

    @property
    def seconds(self) -> float | None:
        """Wall-clock time of the whole; None when it is not known."""
        if not self.rates:
            return None
        each = sum(rate.seconds for rate in self.rates.values())
        # rounds of as many as there are at once: two take as long as one
        return math.ceil(self.submissions / max(self.jobs, 1)) * each


def kind_of_work(device: str, images: int | None) -> str:
    """What decides how long a submission takes: the checks alone, or also a training on so many images.

    Args:
        images: To train on; None: nothing is trained.
    """
    return "checks" if images is None else f"training on {device}, {images} images"


class Rates:
    """The rates that were measured on this machine, in a file of the user's cache.

    Args:
        folder: The cache. What cannot be read or written there is done without: it decides nothing.
    """

    def __init__(self, folder: Path) -> None:
        self._file = folder / "rates.json"

    def known(self, assignment_id: str, work: str) -> dict[str, StageRate]:
        """Stage -> its rate; empty when none was measured.

        Args:
            work: What was done: see `kind_of_work`.
        """
        try:
            found = self._read()[self._key(assignment_id, work)]
            return {
                str(stage): StageRate(float(rate["seconds"]), int(rate["submissions"]))
                for stage, rate in found.items()
            }
        except (KeyError, TypeError, AttributeError, ValueError):
            return {}

    def keep(self, assignment_id: str, work: str, times: Iterable[StageTime]) -> None:
        """Note what the stages of a run took; a run that examined nothing changes nothing."""
        rates = {
            time.stage: asdict(StageRate(round(time.total / time.submissions, 3), time.submissions))
            for time in times
        }
        if not rates:
            return
        content = json.dumps({**self._read(), self._key(assignment_id, work): rates}, indent=1)
        with contextlib.suppress(OSError, UsageError):
            self._file.parent.mkdir(parents=True, exist_ok=True)
            atomic.write(self._file, content.encode("utf-8"))

    def _read(self) -> dict[str, dict[str, dict[str, float]]]:
        try:
            found = json.loads(self._file.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}

    def _key(self, assignment_id: str, work: str) -> str:
        return f"{assignment_id}, {work}"


def planned(
    run: Run,
    book: Gradebook,
    submissions: Sequence[Submission],
    rates: Mapping[str, StageRate],
    *,
    jobs: int,
    force: bool,
) -> Workload:
    """What a run has to do.

    Args:
        submissions: Of each student; what a team handed in together counts once.
        rates: See `Rates.known`.
        force: Examine also what nothing has changed about.
    """
    latest = {} if force else book.latest_runs()
    alone = mates(submissions)
    representatives = [one for one in submissions if one.student_id in alone]
    unchanged = sum(_needs_nothing(run, book, latest.get(one.student_id), one) for one in representatives)
    return Workload(len(representatives) - unchanged, unchanged, jobs, rates)


def _needs_nothing(run: Run, book: Gradebook, last: RunRecord | None, submission: Submission) -> bool:
    """Whether a submission was examined before, and waits for nothing.

    Args:
        last: Its latest run; None when there is none.
    """
    if last is None or not may_be_known(run, last, submission):
        return False
    found = book.evidence(last.student_id, last.number)
    return is_known(run, found, submission) and not (
        run.splits is not None and waits_for_more_time(run.assignment, found)
    )
