"""How long the stages of grading took."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median

from grader.domain.evidence import Evidence


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


def stage_times(all_evidence: Iterable[Evidence]) -> tuple[StageTime, ...]:
    """One row per stage, in the order in which a submission goes through them."""
    seconds_by_stage: dict[str, list[float]] = {}
    for evidence in all_evidence:
        for stage, seconds in stage_seconds(evidence).items():
            seconds_by_stage.setdefault(stage, []).append(seconds)
    total = sum(map(sum, seconds_by_stage.values()))
    return tuple(
        StageTime(
            stage,
            len(seconds),
            sum(seconds),
            median(seconds),
            max(seconds),
            sum(seconds) / total if total else 0.0,
        )
        for stage, seconds in seconds_by_stage.items()
    )


def stage_seconds(evidence: Evidence) -> dict[str, float]:
    """Stage -> the wall-clock seconds of one submission."""
    return {stage: value for stage, value in (evidence.seconds or {}).items() if math.isfinite(value)}
