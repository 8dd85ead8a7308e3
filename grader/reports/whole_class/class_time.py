"""Where the time of a class's grading went: by stage, and by submission."""

from collections.abc import Sequence
from dataclasses import dataclass

from grader.domain.evidence import Evidence
from grader.domain.score import Score
from grader.domain.stage_time import stage_seconds, stage_times

Results = Sequence[tuple[Evidence, Score]]


@dataclass(frozen=True)
class SubmissionTime:
    """The wall-clock seconds of one submission.

    Attributes:
        stages: One per stage of the class, None where it did not get that far.
    """

    student_id: str
    stages: tuple[float | None, ...]
    total: float


def submission_times(results: Results) -> tuple[SubmissionTime, ...]:
    """One row per submission whose time is known, the slowest first."""
    stages = [row.stage for row in stage_times(evidence for evidence, _ in results)]
    rows = []
    for evidence, score in results:
        spent = stage_seconds(evidence)
        if spent:
            told = tuple(spent.get(stage) for stage in stages)
            rows.append(SubmissionTime(score.student_id, told, sum(spent.values())))
    return tuple(sorted(rows, key=lambda row: (-row.total, row.student_id)))
