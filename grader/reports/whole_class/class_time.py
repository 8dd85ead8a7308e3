"""Where the time of a class's grading went: by stage, and by submission."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from grader.domain.evidence import Evidence
from grader.domain.score import Score

Results = Sequence[tuple[Evidence, Score]]


@dataclass(frozen=True)
class StageTime:
    """The wall-clock seconds of one stage, over the submissions that went through it.

    Attributes:
        share: Of the time of all stages, 0 to 1.
    """

    stage: str
    submissions: int
    total: float
    median: float
    longest: float
    share: float


@dataclass(frozen=True)
class SubmissionTime:
    """The wall-clock seconds of one submission.

    Attributes:
        stages: One per stage of the class, None where it did not get that far.
    """

    student_id: str
    stages: tuple[float | None, ...]
    total: float


def stage_times(results: Results) -> tuple[StageTime, ...]:
    """One row per stage, in the order in which a submission goes through them."""
    spent: dict[str, list[float]] = {}
    for evidence, _ in results:
        for stage, seconds in _seconds(evidence).items():
            spent.setdefault(stage, []).append(seconds)
    whole = sum(map(sum, spent.values()))
    return tuple(
        StageTime(
            stage,
            len(seconds),
            sum(seconds),
            median(seconds),
            max(seconds),
            sum(seconds) / whole if whole else 0.0,
        )
        for stage, seconds in spent.items()
    )


def submission_times(results: Results) -> tuple[SubmissionTime, ...]:
    """One row per submission whose time is known, the slowest first."""
    stages = [row.stage for row in stage_times(results)]
    rows = []
    for evidence, score in results:
        spent = _seconds(evidence)
        if spent:
            told = tuple(spent.get(stage) for stage in stages)
            rows.append(SubmissionTime(score.student_id, told, sum(spent.values())))
    return tuple(sorted(rows, key=lambda row: (-row.total, row.student_id)))


def _seconds(evidence: Evidence) -> dict[str, float]:
    return {stage: value for stage, value in (evidence.seconds or {}).items() if math.isfinite(value)}
