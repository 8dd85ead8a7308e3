"""The line of an item whose points come from a measurement."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from grader.domain.assignment import NEAR_THRESHOLD, RubricItem
from grader.domain.evidence import Evidence, Training, TrainingOutcome
from grader.domain.score import LineState, ScoreLine
from grader.scoring.points import interpolated, percent

TRAINING = "training"
CLAIM_TOLERANCE = 0.05  # of accuracy: who claims more than was measured is looked at before points are lost
CLAIMED_MORE = CLAIM_TOLERANCE + 1e-9
WIDE = 0.10 + 1e-9  # between trainings that differ in their seeds alone: their mean says little


def measured_line(item: RubricItem, evidence: Evidence) -> ScoreLine:
    """The points for the measured accuracy of a student's model.

    What the student's code does wrong costs the points; what our limits or our faults prevented is left to
    a person, with the points that the accuracy measured so far is worth as the floor.

    Args:
        evidence: As it is of the model that the item is about: see `Evidence.of_measure`.
    """
    training = evidence.training
    if training.objections and _is_share(training.accuracy):
        told = f"{_told(item, training)} {' '.join(training.objections)} A person decides."
        return _undecided(item, told)
    match training.outcome:
        case TrainingOutcome.COMPLETED:
            if not _is_share(training.accuracy):
                return _undecided(item, "Training completed, but no accuracy was measured: a person decides.")
            line = _by_accuracy(item, training, "")
            return _asking(
                line, _questions(line, evidence), uncertainties(item, training), _worst(item, training)
            )
        case TrainingOutcome.DIVERGED:
            if _is_share(training.accuracy):
                return _by_accuracy(item, training, _sentence("Training diverged", training.reason) + " ")
            return _line(item, 0.0, _sentence("Training diverged", training.reason))
        case TrainingOutcome.FAILED:
            line = _line(item, 0.0, _sentence("Training failed", training.reason, training.where))
            return _asking(line, _questions(line, evidence))
        case TrainingOutcome.NOT_RUN if not training.reason or TRAINING in evidence.not_run:
            return ScoreLine(
                item.id, item.title, None, item.points, "Training was not run.", LineState.NOT_RUN
            )
        case TrainingOutcome.BUDGET:
            told = _sentence("The grader's own limit stopped the training", training.reason)
            return _undecided(item, f"{told} A person decides.", training)
        case _:
            told = _sentence("The accuracy is unknown", training.reason)
            return _undecided(item, f"{told} A person decides.", training)


def _asking(
    line: ScoreLine, questions: Sequence[str], doubts: Sequence[str] = (), worst: float = 0.0
) -> ScoreLine:
    """The line with its points left to a person, where anything is asked.

    Args:
        questions: Why the points may be too few; what they are is secured.
        doubts: Why repeated trainings do not tell the points; what the worst of them gives is secured.
        worst: What that is.
    """
    if line.points is None or not (questions or doubts):
        return line
    told = " ".join((line.reason, *questions, *doubts, "A person decides."))
    floor = min(line.points, worst) if doubts else line.points
    return replace(line, points=None, reason=told, state=LineState.AWAITING, floor=floor)


def uncertainties(item: RubricItem, training: Training) -> tuple[str, ...]:
    """Why repeated trainings do not tell what a submission is worth, in sentences; () where they do."""
    given = accuracy_points(item, training)
    found = []
    if training.unfinished and interpolated(item.breakpoints, _mean_at_worst(training)) != given:
        trainings = len(training.runs) + len(training.unfinished)
        found += [
            _sentence(f"Training {run.number} of {trainings} was not completed", run.reason, run.where)
            for run in training.unfinished
        ]
    if _spread(training) > WIDE:
        low, high = min(training.runs), max(training.runs)
        ends = {interpolated(item.breakpoints, low), interpolated(item.breakpoints, high)}
        if len(ends) > 1:
            found.append(
                f"Trainings that differ in their seeds alone gave {percent(low)} to {percent(high)}: "
                "so far apart, their mean says little."
            )
    return tuple(found)


def _spread(training: Training) -> float:
    """How far apart the accuracies of repeated trainings are."""
    return max(training.runs, default=0.0) - min(training.runs, default=0.0)


def _mean_at_worst(training: Training) -> float:
    """The mean accuracy if those that were not completed came to nothing."""
    return sum(training.runs) / max(len(training.runs) + len(training.unfinished), 1)


def _worst(item: RubricItem, training: Training) -> float:
    """What the worst of the trainings is worth."""
    return interpolated(item.breakpoints, 0.0 if training.unfinished else min(training.runs, default=0.0))


def _questions(line: ScoreLine, evidence: Evidence) -> tuple[str, ...]:
    """Full points stand however they were reached; less than that only where nothing speaks against it."""
    return tuple(_doubts(evidence)) if line.points is not None and line.points < line.maximum else ()


def _doubts(evidence: Evidence) -> Iterator[str]:
    """Why what was measured may not be what the student's training is worth.

    What a notebook or a report says is text, which anybody can write: it counts where our own measurement of
    the handed-in weights agrees. Otherwise a person finds it listed, and the points stay what they are.
    """
    training, claim, shown = evidence.training, evidence.claim, evidence.shown_epochs
    yield from training.doubts
    if training.rebuilt:
        yield "The loop over epochs could not be executed as it stands."
    weights = better_weights(evidence)
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


def better_weights(evidence: Evidence) -> float | None:
    """What the handed-in weights reach in the model, 0 to 1, where that is well above the training."""
    checkpoint, trained = evidence.checkpoint, training_accuracy(evidence.training)
    accuracy = checkpoint.accuracy if checkpoint.status == "fits" else None
    return accuracy if accuracy is not None and accuracy - trained > CLAIMED_MORE else None


def shows_more_epochs(evidence: Evidence) -> bool:
    """Whether the notebook's outputs show more epochs than its code asks for."""
    shown, planned = evidence.shown_epochs, evidence.training.planned_epochs
    return shown is not None and planned is not None and shown > planned


def training_accuracy(training: Training) -> float:
    """What was measured, 0 to 1; nothing where nothing was."""
    return training.accuracy if training.accuracy is not None and _is_share(training.accuracy) else 0.0


def _by_accuracy(item: RubricItem, training: Training, preface: str) -> ScoreLine:
    return _line(item, accuracy_points(item, training), preface + _told(item, training))


def _told(item: RubricItem, training: Training) -> str:
    """What was measured, as a sentence."""
    accuracy = training.accuracy or 0.0
    told = f"{percent(accuracy)} of the hidden test images are classified right"
    if training.interval is not None:
        low, high = training.interval
        several = len(training.runs) > 1
        seeds = f"mean of {len(training.runs)} trainings: {_listed(training.runs)}; " if several else ""
        counted = seeds + (f"{training.counted}; " if training.counted else "")
        told += f" ({counted}95 % interval: {percent(low)} to {percent(high)})"
    if item.threshold is not None:
        told += f"; {percent(item.threshold)} is asked for"
        if accuracy < item.threshold and passes(training, item.threshold):
            told += ", which the interval reaches: it counts as reached"
    return f"{told}."


def passes(training: Training, threshold: float) -> bool:
    """Whether a training reached the threshold: by its accuracy, or several by the upper end of the interval.

    Near the threshold chance decides between seeds, so that the doubt is the student's benefit: where the
    mean is near it, and the trainings, all of which were completed, differ by no more than chance.
    """
    accuracy = training.accuracy
    if accuracy is None:
        return False
    if accuracy >= threshold:
        return True
    repeated = len(training.runs) > 1 and not training.unfinished and _spread(training) <= WIDE
    near = accuracy >= threshold - NEAR_THRESHOLD - 1e-9
    return repeated and near and training.interval is not None and training.interval[1] >= threshold


def accuracy_points(item: RubricItem, training: Training) -> float:
    """What the accuracy of a training is worth; one that passes is worth at least the threshold's points."""
    accuracy = training.accuracy or 0.0
    if item.threshold is not None and passes(training, item.threshold):
        accuracy = max(accuracy, item.threshold)
    return interpolated(item.breakpoints, accuracy)


def _line(item: RubricItem, points: float, reason: str) -> ScoreLine:
    return ScoreLine(item.id, item.title, points, item.points, reason, LineState.DECIDED)


def _undecided(item: RubricItem, reason: str, training: Training | None = None) -> ScoreLine:
    floor = None
    if training is not None:
        last = training.epochs[-1].test_accuracy if training.epochs else None
        accuracy = training.accuracy if training.accuracy is not None else last
        floor = (
            interpolated(item.breakpoints, accuracy) if accuracy is not None and _is_share(accuracy) else None
        )
    return ScoreLine(item.id, item.title, None, item.points, reason, LineState.AWAITING, floor)


def _listed(runs: tuple[float, ...]) -> str:
    return ", ".join(percent(accuracy) for accuracy in runs)


def _is_share(value: float | None) -> bool:
    return value is not None and math.isfinite(value) and 0 <= value <= 1


def _sentence(start: str, reason: str, where: str = "") -> str:
    """`Training failed (homework.py:41): ViT is not implemented.`"""
    told = f"{start} ({where})" if where and where not in reason else start
    told = f"{told}: {reason.strip()}" if reason.strip() else told
    return told if told.endswith((".", "!", "?")) else f"{told}."
