"""Estimates how long a class will take from the times measured on this machine before."""

import contextlib
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from grader.domain.errors import UsageError
from grader.domain.run_facts import RunFacts
from grader.domain.submission import Submission
from grader.domain.submission_result import StageTime
from grader.files import atomic
from grader.gradebook import Gradebook
from grader.grading.result_writer import latest_evidence
from grader.grading.run import RunBasis, team_representatives
from grader.grading.submission_run import is_known
from grader.grading.training_stage import waits_for_more_time


@dataclass(frozen=True)
class StageRate:
    """How long a stage of one submission takes.

    Attributes:
        seconds: The mean wall-clock time: the few that take long decide how long a class takes.
        submissions: How many were measured.
    """

    seconds: float
    submissions: int


@dataclass(frozen=True)
class Workload:
    """The work of a run before it begins.

    Attributes:
        submissions: How many are to be examined, or trained for longer; a team's submission counts once.
        unchanged: How many are not examined because they have not changed.
        jobs: How many at once.
        rates: Stage -> its rate; empty when nothing like it was measured on this machine.
    """

    submissions: int
    unchanged: int
    jobs: int
    rates: Mapping[str, StageRate]

    @property
    def seconds(self) -> float | None:
        """The wall-clock time of the whole run; None when it is not known."""
        if not self.rates:
            return None
        per_submission = sum(rate.seconds for rate in self.rates.values())
        # they run in rounds of `jobs` at once: two in a round take as long as one
        return math.ceil(self.submissions / max(self.jobs, 1)) * per_submission


def kind_of_work(device: str, images: int | None) -> str:
    """What decides how long a submission takes: the checks alone, or also a training on this many images.

    Args:
        images: To train on; None: nothing is trained.
    """
    return "checks" if images is None else f"training on {device}, {images} images"


class Rates:
    """The rates measured on this machine, in a file of the user's cache.

    Args:
        folder: The cache. If it cannot be read or written, estimates are missing, and nothing else.
    """

    def __init__(self, folder: Path) -> None:
        self._file = folder / "rates.json"

    def stored(self, assignment_id: str, work: str) -> dict[str, StageRate]:
        """Stage -> its rate; empty when none was measured.

        Args:
            work: What was done: see `kind_of_work`.
        """
        try:
            rates = self._read()[self._key(assignment_id, work)]
            return {
                str(stage): StageRate(float(rate["seconds"]), int(rate["submissions"]))
                for stage, rate in rates.items()
            }
        except (KeyError, TypeError, AttributeError, ValueError):
            return {}

    def keep(self, assignment_id: str, work: str, times: Iterable[StageTime]) -> None:
        """Note how long the stages of a run took; a run that examined nothing changes nothing."""
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
            document = json.loads(self._file.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return document if isinstance(document, dict) else {}

    def _key(self, assignment_id: str, work: str) -> str:
        return f"{assignment_id}, {work}"


def planned(
    run: RunBasis,
    book: Gradebook,
    submissions: Sequence[Submission],
    rates: Mapping[str, StageRate],
    *,
    jobs: int,
    earlier: Mapping[str, RunFacts],
) -> Workload:
    """The work that a run has to do.

    Args:
        submissions: Of each student; a team's submission counts once.
        rates: See `Rates.stored`.
        earlier: Facts about each student's latest run; without any, all submissions are examined.
    """
    members_by_representative = team_representatives(submissions)
    representatives = [
        submission for submission in submissions if submission.student_id in members_by_representative
    ]
    unchanged = sum(
        _needs_nothing(run, book, earlier.get(submission.student_id), submission)
        for submission in representatives
    )
    return Workload(len(representatives) - unchanged, unchanged, jobs, rates)


def _needs_nothing(run: RunBasis, book: Gradebook, latest: RunFacts | None, submission: Submission) -> bool:
    """Whether a submission was examined before, and waits for nothing.

    Args:
        latest: About its latest run; None when there is none.
    """
    if latest is None or not is_known(run, latest, submission):
        return False
    if run.splits is None or not latest.out_of_time:
        return True
    return not waits_for_more_time(run.assignment, latest_evidence(book, submission.student_id))
