"""How the trainings of a class went: accuracy against size, time and claim, and the best without names."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from grader.domain.evidence import Evidence, TrainingOutcome
from grader.domain.formatting import duration, percent, quantity
from grader.domain.program import Claim
from grader.domain.score import Score
from grader.reports.whole_class.class_charts import Dot
from grader.scoring.measured import CLAIMED_MORE

Results = Sequence[tuple[Evidence, Score]]

_OUTCOMES = {
    TrainingOutcome.COMPLETED: "completed",
    TrainingOutcome.DIVERGED: "diverged",
    TrainingOutcome.FAILED: "stopped in the student's code",
    TrainingOutcome.BUDGET: "stopped by our limit",
    TrainingOutcome.UNKNOWN: "for a person to judge",
    TrainingOutcome.NOT_RUN: "not run",
}


@dataclass(frozen=True)
class Best:
    """A place in the leaderboard.

    Attributes:
        rank: 1-based; equal accuracies share it.
        accuracy: 0 to 1, with its 95 % interval.
    """

    rank: int
    accuracy: float
    interval: tuple[float, float] | None
    parameters: int | None
    epochs: int


@dataclass(frozen=True)
class ChartedTraining:
    """One submission's numbers in the charts, for those who read them as a table.

    Attributes:
        accuracy: As measured, 0 to 1; `claimed` is what the student reports, None where that is no share.
        seconds: Of training; None where the time is not known.
        apart: In words, why it is drawn as a diamond; empty for a circle.
    """

    student_id: str
    accuracy: float
    claimed: float | None
    parameters: int | None
    seconds: float | None
    apart: str


def claim_of(score: Score) -> Claim | None:
    """The accuracy that the student claims, where it is a share."""
    claim = score.claim
    return claim if claim is not None and _is_share(claim.accuracy) else None


def claim_apart(claimed: float, measured: float) -> bool:
    """Whether a claim lies so far from what was measured that a person should look."""
    return _is_share(claimed) and _is_share(measured) and abs(claimed - measured) > CLAIMED_MORE


def outcome_counts(results: Results) -> tuple[tuple[str, int], ...]:
    """(how training ended, number of submissions), over those whose code was looked at."""
    tally = Counter(evidence.training.outcome for evidence, score in results if evidence.findings)
    return tuple((word, tally[outcome]) for outcome, word in _OUTCOMES.items() if tally[outcome])


def parameter_dots(results: Results) -> list[Dot]:
    """Accuracy against trainable parameters, of the submissions that have both."""
    return [
        Dot(
            f"{score.student_id}: {percent(evidence.training.accuracy)}, "
            f"{quantity(evidence.parameters)} parameters",
            evidence.parameters,
            accuracy,
            _diverged(evidence),
        )
        for evidence, score, accuracy in _measured(results)
        if evidence.parameters
    ]


def time_dots(results: Results) -> list[Dot]:
    """Accuracy against seconds of training, of the submissions that have both."""
    return [
        Dot(
            f"{score.student_id}: {percent(accuracy)} in {duration(evidence.training.seconds)}",
            evidence.training.seconds,
            accuracy,
            _diverged(evidence),
        )
        for evidence, score, accuracy in _measured(results)
        if math.isfinite(evidence.training.seconds) and evidence.training.seconds > 0
    ]


def claim_dots(results: Results) -> list[Dot]:
    """Claimed against measured accuracy, of the submissions that have both."""
    found = []
    for _, score, accuracy in _measured(results):
        claim = claim_of(score)
        if claim is not None:
            told = f"{score.student_id}: {percent(claim.accuracy)} claimed, {percent(accuracy)} measured"
            found.append(Dot(told, claim.accuracy, accuracy, claim_apart(claim.accuracy, accuracy)))
    return found


def measured_rows(results: Results) -> tuple[ChartedTraining, ...]:
    """The numbers of the three charts, in the order of the results."""
    rows = []
    for evidence, score, accuracy in _measured(results):
        claim, seconds = claim_of(score), evidence.training.seconds
        reasons = ["diverged"] if _diverged(evidence) else []
        if claim is not None and claim_apart(claim.accuracy, accuracy):
            reasons.append("claimed more" if claim.accuracy > accuracy else "claimed less")
        rows.append(
            ChartedTraining(
                score.student_id,
                accuracy,
                claim.accuracy if claim is not None else None,
                evidence.parameters,
                seconds if math.isfinite(seconds) and seconds > 0 else None,
                ", ".join(reasons),
            )
        )
    return tuple(rows)


def leaderboard(results: Results) -> tuple[Best, ...]:
    """The measured accuracies, the highest first, with nothing that names a student."""
    accuracies = [accuracy for _, _, accuracy in _measured(results)]
    found = [
        Best(
            1 + sum(other > accuracy for other in accuracies),
            accuracy,
            evidence.training.interval,
            evidence.parameters,
            len(evidence.training.epochs),
        )
        for evidence, _, accuracy in _measured(results)
    ]
    # ties are ordered by what is shown, so that the order says nothing about who it is
    return tuple(sorted(found, key=lambda best: (best.rank, best.parameters or 0, best.epochs)))


def _measured(results: Results) -> list[tuple[Evidence, Score, float]]:
    return [
        (evidence, score, evidence.training.accuracy)
        for evidence, score in results
        if evidence.training.accuracy is not None and _is_share(evidence.training.accuracy)
    ]


def _diverged(evidence: Evidence) -> bool:
    return evidence.training.outcome is TrainingOutcome.DIVERGED


def _is_share(value: float) -> bool:
    return math.isfinite(value) and 0 <= value <= 1
