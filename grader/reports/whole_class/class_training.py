"""How the trainings of a class went: accuracy against size, time and claim, and the best without names."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from grader.domain.evidence import Evidence, TrainingOutcome
from grader.domain.formatting import duration, percent, quantity
from grader.domain.program import Claim
from grader.domain.score import Score
from grader.reports.measured_words import MeasuredWords
from grader.reports.whole_class.class_charts import Dot
from grader.scoring.measured import CLAIMED_MORE

Results = Sequence[tuple[Evidence, Score]]
WORDS = MeasuredWords()

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
        rank: 1-based; equal values share it.
        value: What was measured, as people write it; interval: its 95 % interval, likewise or empty.
    """

    rank: int
    value: str
    interval: str
    parameters: int | None
    epochs: int


@dataclass(frozen=True)
class ChartedTraining:
    """One submission's numbers in the charts, for those who read them as a table.

    Attributes:
        value: As measured and as people write it.
        claimed: What the student reports, 0 to 1; None where that is not a share.
        seconds: Of training; None where the time is not known.
        apart: In words, why it is drawn as a diamond; empty for a circle.
    """

    student_id: str
    value: str
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


def of_measure(results: Results, measure: str) -> Results:
    """The results as they are of one of the models that are measured."""
    return [(evidence.of_measure(measure), score) for evidence, score in results]


def outcome_counts(results: Results) -> tuple[tuple[str, int], ...]:
    """(how training ended, number of submissions), over those whose code was looked at."""
    tally = Counter(evidence.training.outcome for evidence, score in results if evidence.findings)
    return tuple((word, tally[outcome]) for outcome, word in _OUTCOMES.items() if tally[outcome])


def parameter_dots(results: Results, words: MeasuredWords) -> list[Dot]:
    """What was measured against trainable parameters, of the submissions that have both."""
    return [
        Dot(
            f"{score.student_id}: {words.value(value)}, {quantity(evidence.parameters)} parameters",
            evidence.parameters,
            value,
            _diverged(evidence),
        )
        for evidence, score, value in _measured(results, words)
        if evidence.parameters
    ]


def time_dots(results: Results, words: MeasuredWords) -> list[Dot]:
    """What was measured against seconds of training, of the submissions that have both."""
    return [
        Dot(
            f"{score.student_id}: {words.value(value)} in {duration(evidence.training.seconds)}",
            evidence.training.seconds,
            value,
            _diverged(evidence),
        )
        for evidence, score, value in _measured(results, words)
        if math.isfinite(evidence.training.seconds) and evidence.training.seconds > 0
    ]


def claim_dots(results: Results) -> list[Dot]:
    """Claimed against measured accuracy, of the submissions that have both."""
    found = []
    for evidence, score, accuracy in _measured(results, WORDS):
        claim = claim_of(score) if evidence.training.value is None else None
        if claim is not None:
            told = f"{score.student_id}: {percent(claim.accuracy)} claimed, {percent(accuracy)} measured"
            found.append(Dot(told, claim.accuracy, accuracy, claim_apart(claim.accuracy, accuracy)))
    return found


def measured_rows(
    results: Results, words: MeasuredWords, *, claims: bool = True
) -> tuple[ChartedTraining, ...]:
    """The numbers of the charts, in the order of the results.

    Args:
        claims: What students claim is about this measure.
    """
    rows = []
    for evidence, score, value in _measured(results, words):
        claim, seconds = claim_of(score) if claims else None, evidence.training.seconds
        reasons = ["diverged"] if _diverged(evidence) else []
        if claim is not None and claim_apart(claim.accuracy, value):
            reasons.append("claimed more" if claim.accuracy > value else "claimed less")
        rows.append(
            ChartedTraining(
                score.student_id,
                words.value(value),
                claim.accuracy if claim is not None else None,
                evidence.parameters,
                seconds if math.isfinite(seconds) and seconds > 0 else None,
                ", ".join(reasons),
            )
        )
    return tuple(rows)


def leaderboard(results: Results, words: MeasuredWords = WORDS) -> tuple[Best, ...]:
    """What was measured, the best first, with nothing that names a student."""
    values = [value for _, _, value in _measured(results, words)]
    found = [
        Best(
            1 + sum(other != value and words.scale.reaches(other, value) for other in values),
            words.value(value),
            words.interval(evidence.training, 0),
            evidence.parameters,
            len(evidence.training.epochs),
        )
        for evidence, _, value in _measured(results, words)
    ]
    # ties are ordered by what is shown, so that the order says nothing about who it is
    return tuple(sorted(found, key=lambda best: (best.rank, best.parameters or 0, best.epochs)))


def _measured(results: Results, words: MeasuredWords) -> list[tuple[Evidence, Score, float]]:
    return [
        (evidence, score, evidence.training.measured)
        for evidence, score in results
        if evidence.training.measured is not None and words.scale.is_value(evidence.training.measured)
    ]


def _diverged(evidence: Evidence) -> bool:
    return evidence.training.outcome is TrainingOutcome.DIVERGED


def _is_share(value: float) -> bool:
    return math.isfinite(value) and 0 <= value <= 1
