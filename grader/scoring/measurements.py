"""Computes points for measurements, and the line of a measured item.

It interpolates points between the breakpoints of an item, decides whether a training reached the threshold,
and says why a measurement may not show what the work is worth: then a person is asked. What the grader's
limits or faults prevented costs nothing by itself. It measures nothing. A rubric has a few such items;
`rubric_lines` scores the others.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from grader.domain.assignment import RubricItem
from grader.domain.evidence import Evidence, Status, Training, TrainingOutcome
from grader.domain.measure import SHARE, Scale
from grader.domain.score import LineState, ScoreLine, rounded


def interpolated(
    breakpoints: Sequence[tuple[float, float]], value: float, *, lower_is_better: bool = False
) -> float:
    """The points for a measured value: linear between the breakpoints.

    Args:
        breakpoints: (value, points), in ascending order of the values.
        value: What was measured, in the same unit as the breakpoints' values.
        lower_is_better: Whether the lowest breakpoint is the best one.

    Returns:
        0 below the worst breakpoint, and the best one's points beyond the best.
    """
    if lower_is_better:
        return interpolated([(-value_at, points) for value_at, points in reversed(breakpoints)], -value)
    if not breakpoints or not value >= breakpoints[0][0]:
        return 0.0
    earned = breakpoints[0][1]
    for (low, less), (high, more) in pairwise(breakpoints):
        if value >= high:
            earned = more
        elif value > low:
            earned = less + (more - less) * (value - low) / (high - low)
    return rounded(earned)


def plain(points: float) -> str:
    """Points as people write them: `31`, `2.5`."""
    return f"{points:.2f}".rstrip("0").rstrip(".")


def percent(share: float) -> str:
    """A share of one as people write it: `80.6 %`, `60 %`."""
    return f"{share * 100:.1f}".removesuffix(".0") + " %"


# --- measured --------------------------------------------------------------------------------------------


TRAINING = "training"
CLAIM_TOLERANCE = 0.05  # of accuracy: if more is claimed, a person looks before points are lost
CLAIMED_MORE = CLAIM_TOLERANCE + 1e-9


def measured_line(item: RubricItem, evidence: Evidence) -> ScoreLine:
    """The points for the measurement of a student's model.

    Faults of the student's code cost points. What the grader's limits or faults prevented is left to a
    person; what was measured until then earns its points in any case.

    Args:
        evidence: The evidence about the item's model: see `Evidence.of_measure`.
    """
    training = evidence.training
    is_measured = item.scale.is_value(training.measured)
    if training.objections and is_measured:
        sentence = f"{_measured_sentence(item, training)} {' '.join(training.objections)} A person decides."
        return _undecided(item, sentence)
    match training.outcome:
        case TrainingOutcome.COMPLETED:
            if not is_measured:
                what = "accuracy" if training.value is None and item.scale.is_share else "value"
                return _undecided(item, f"Training completed, but no {what} was measured: a person decides.")
            line = _by_measurement(item, training, "")
            return _left_to_a_person(
                line,
                _reasons_to_raise(line, evidence),
                uncertainties(item, training),
                _worst_points(item, training),
            )
        case TrainingOutcome.DIVERGED:
            sentence = _sentence("Training diverged", training.reason)
            line = (
                _by_measurement(item, training, f"{sentence} ") if is_measured else _line(item, 0.0, sentence)
            )
            return _left_to_a_person(line, _reasons_to_raise(line, evidence))
        case TrainingOutcome.FAILED:
            line = _line(item, 0.0, _sentence("Training failed", training.reason, training.where))
            return _left_to_a_person(line, _reasons_to_raise(line, evidence))
        case TrainingOutcome.NOT_RUN if not training.reason or TRAINING in evidence.not_run:
            return ScoreLine(
                item.id, item.title, None, item.points, "Training was not run.", LineState.NOT_RUN
            )
        case TrainingOutcome.BUDGET:
            sentence = _sentence("The grader's own limit stopped the training", training.reason)
            return _undecided(item, f"{sentence} A person decides.", training)
        case _:
            what = "The accuracy" if item.scale == SHARE else "What it is worth"
            sentence = _sentence(f"{what} is unknown", training.reason)
            return _undecided(item, f"{sentence} A person decides.", training)


def _left_to_a_person(
    line: ScoreLine,
    reasons_to_raise: Sequence[str],
    uncertain_because: Sequence[str] = (),
    worst: float = 0.0,
) -> ScoreLine:
    """The line; its points are left to a person if they may be too few, or uncertain.

    Args:
        reasons_to_raise: Why the points may be too few; those that the line has are certain.
        uncertain_because: Why repeated trainings do not settle the points: see `uncertainties`. Only the
            points of the worst training are certain.
        worst: The points of the worst training.
    """
    if line.points is None or not (reasons_to_raise or uncertain_because):
        return line
    sentence = " ".join((line.reason, *reasons_to_raise, *uncertain_because, "A person decides."))
    floor = min(line.points, worst) if uncertain_because else line.points
    return replace(line, points=None, reason=sentence, state=LineState.AWAITING, floor=floor)


def uncertainties(item: RubricItem, training: Training) -> tuple[str, ...]:
    """Why repeated trainings do not show what a submission is worth, in sentences; () if they do."""
    points_now = measured_points(item, training)
    sentences = []
    if training.unfinished and _points(item, _mean_at_worst(item, training)) != points_now:
        trainings = len(training.runs) + len(training.unfinished)
        sentences += [
            _sentence(f"Training {run.number} of {trainings} was not completed", run.reason, run.where)
            for run in training.unfinished
        ]
    if item.scale.are_wide(training.runs):
        low, high = min(training.runs), max(training.runs)
        if _points(item, low) != _points(item, high):
            sentences.append(
                f"Training runs that differ only in their seeds gave {item.scale.shown(low)} to "
                f"{item.scale.shown(high)}: "
                "with values so far apart, their mean says little."
            )
    return tuple(sentences)


def _mean_at_worst(item: RubricItem, training: Training) -> float:
    """The mean if the trainings that were not completed are worth nothing."""
    values = (*training.runs, *(_worthless_value(item) for _ in training.unfinished))
    return sum(values) / max(len(values), 1)


def _worthless_value(item: RubricItem) -> float:
    """A value that is worth no points."""
    if not item.scale.lower_is_better:
        return min([0.0, *(value for value, _ in item.breakpoints)])
    worst = max((value for value, _ in item.breakpoints), default=0.0)
    return worst + abs(worst)


def _worst_points(item: RubricItem, training: Training) -> float:
    """The points of the worst training."""
    if training.unfinished:
        return _points(item, _worthless_value(item))
    return min((_points(item, value) for value in training.runs), default=0.0)


def _points(item: RubricItem, value: float) -> float:
    return interpolated(item.breakpoints, value, lower_is_better=item.scale.lower_is_better)


def _reasons_to_raise(line: ScoreLine, evidence: Evidence) -> tuple[str, ...]:
    """Why the points may be too few; () if they are full points."""
    return tuple(_signs_of_more(evidence)) if line.points is not None and line.points < line.maximum else ()


def _signs_of_more(evidence: Evidence) -> Iterator[str]:
    """Signs that the student's training is worth more than what was measured, in sentences.

    The text of a notebook or a report can be written by anybody: it counts only if our own measurement of
    the handed-in weights agrees. Otherwise a person finds it listed, and the points stay as they are.
    """
    training, claim, shown = evidence.training, evidence.claim, evidence.shown_epochs
    yield from training.doubts
    if training.rebuilt:
        yield "The loop over epochs could not be executed as it stands."
    weights = better_weights(evidence)
    if training.outcome is TrainingOutcome.FAILED and not training.epochs and _all_passed(evidence):
        yield "Each part passed its checks, so that the cause may lie in what surrounds them."
    if weights is None:
        return
    reached = f"the handed-in weights reach {percent(weights)}"
    if shows_more_epochs(evidence):
        asked = f"{training.planned_epochs} epoch{'' if training.planned_epochs == 1 else 's'}"
        yield (
            f"The notebook's outputs show {shown} epochs, its code asks for {asked}, and {reached}: which "
            "is meant?"
        )
    trained = training_accuracy(training)
    if claim is not None and trained + CLAIMED_MORE < claim.accuracy <= weights + CLAIMED_MORE:
        yield f"{percent(claim.accuracy)} is claimed ({claim.source}), and {reached}."


def _all_passed(evidence: Evidence) -> bool:
    """Whether parts were checked, and all checks passed."""
    return bool(evidence.findings) and all(finding.status is Status.PASSED for finding in evidence.findings)


def better_weights(evidence: Evidence) -> float | None:
    """The accuracy of the handed-in weights, 0 to 1, if that is well above the training's."""
    checkpoint, trained = evidence.checkpoint, training_accuracy(evidence.training)
    accuracy = checkpoint.accuracy if checkpoint.status == "fits" else None
    return accuracy if accuracy is not None and accuracy - trained > CLAIMED_MORE else None


def shows_more_epochs(evidence: Evidence) -> bool:
    """Whether the notebook's outputs show more epochs than its code asks for."""
    shown, planned = evidence.shown_epochs, evidence.training.planned_epochs
    return shown is not None and planned is not None and shown > planned


def training_accuracy(training: Training) -> float:
    """The measured accuracy, 0 to 1; 0 if there is none."""
    return training.accuracy if training.accuracy is not None and SHARE.is_value(training.accuracy) else 0.0


def _by_measurement(item: RubricItem, training: Training, preface: str) -> ScoreLine:
    return _line(item, measured_points(item, training), preface + _measured_sentence(item, training))


def _measured_sentence(item: RubricItem, training: Training) -> str:
    """The measurement as a sentence."""
    scale, value = item.scale, training.measured or 0.0
    if training.value is None:
        sentence = f"{scale.shown(value)} of the hidden test images are classified correctly"
    else:
        direction = ", where lower is better" if scale.lower_is_better else ""
        sentence = f"{item.measured}: {scale.shown(value)} on hidden data{direction}"
    if training.interval is not None:
        low, high = training.interval
        several = len(training.runs) > 1
        listed = ", ".join(map(scale.shown, training.runs))
        seeds = f"mean of {len(training.runs)} training runs: {listed}; " if several else ""
        counted = seeds + (f"{training.counted}; " if training.counted else "")
        if counted:
            sentence += f" ({counted}95 % interval: {scale.shown(low)} to {scale.shown(high)})"
        else:
            sentence += f" (95 % interval: {scale.shown(low)} to {scale.shown(high)})"
    if item.threshold is not None:
        sentence += f"; {scale.shown(item.threshold)} is asked for"
        if not scale.reaches(value, item.threshold) and passes(training, item.threshold, scale):
            sentence += ", which the interval reaches: it counts as reached"
    return f"{sentence}."


def passes(training: Training, threshold: float, scale: Scale = SHARE) -> bool:
    """Whether a training reached the threshold, by its value or by the better end of its interval.

    Near the threshold, the seed may decide, so the student gets the benefit of the doubt. The interval
    therefore counts if there are several trainings, all completed, that differ by no more than chance and
    whose mean is near the threshold.
    """
    value = training.measured
    if value is None:
        return False
    if scale.reaches(value, threshold):
        return True
    repeated = len(training.runs) > 1 and not training.unfinished and not scale.are_wide(training.runs)
    interval = training.interval
    reached = interval is not None and scale.reaches(scale.best_of(interval), threshold)
    return repeated and reached and scale.is_near(value, threshold)


def measured_points(item: RubricItem, training: Training) -> float:
    """The points of a training; one that passes gets at least the threshold's points."""
    value = training.measured
    if value is None:
        return 0.0
    if item.threshold is not None and passes(training, item.threshold, item.scale):
        value = item.scale.better(value, item.threshold)
    return _points(item, value)


def _line(item: RubricItem, points: float, reason: str) -> ScoreLine:
    return ScoreLine(item.id, item.title, points, item.points, reason, LineState.DECIDED)


def _undecided(item: RubricItem, reason: str, training: Training | None = None) -> ScoreLine:
    floor = None
    if training is not None:
        last = training.epochs[-1].test_accuracy if training.epochs and item.scale == SHARE else None
        value = training.measured if training.measured is not None else last
        floor = _points(item, value) if value is not None and item.scale.is_value(value) else None
    return ScoreLine(item.id, item.title, None, item.points, reason, LineState.AWAITING, floor)


def _sentence(start: str, reason: str, where: str = "") -> str:
    """`Training failed (homework.py:41): ViT is not implemented.`"""
    sentence = f"{start} ({where})" if where and where not in reason else start
    sentence = f"{sentence}: {reason.strip()}" if reason.strip() else sentence
    return sentence if sentence.endswith((".", "!", "?")) else f"{sentence}."
