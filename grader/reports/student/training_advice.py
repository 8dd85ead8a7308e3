"""What to say about a training run: how it ended, and one thing to try."""

import math
from dataclasses import dataclass

from grader.domain.assignment import RubricItem
from grader.domain.evidence import Epoch, Evidence, Training, TrainingOutcome
from grader.domain.formatting import counted, duration, percent, points, round_percent

_RISE = 0.01  # of accuracy over the last quarter of the epochs: still learning
_OVERFIT = 1.15  # last test loss over the lowest one


@dataclass(frozen=True)
class TrainingText:
    """What is wrong with a training run, one thing to try, and the place to change."""

    message: str
    hint: str
    where: str


def training_fix_text(item: RubricItem, evidence: Evidence) -> TrainingText | None:
    """What could bring back training points, or None when the run says nothing about the student's code."""
    training = evidence.training
    if training.outcome in (TrainingOutcome.FAILED, TrainingOutcome.DIVERGED):
        hint = (
            "Try a lower learning rate, and warm it up over the first epochs."
            if training.outcome is TrainingOutcome.DIVERGED
            else "Run one epoch on a few batches of your own data until it goes through."
        )
        return TrainingText(training.reason, hint, training.where)
    if training.outcome is not TrainingOutcome.COMPLETED or training.accuracy is None:
        return None
    asked = f"The assignment asks for {round_percent(item.threshold)}. " if item.threshold else ""
    full = (
        f"Full points begin at {round_percent(item.breakpoints[-1][0])}."
        if item.breakpoints
        else f"It is worth {points(item.points)} points."
    )
    low, high = training.interval or (training.accuracy, training.accuracy)
    reach = f" (95 % interval {percent(low)} to {percent(high)})" if low < high else ""
    message = f"The grader measured {percent(training.accuracy)} test accuracy{reach}. {asked}{full}"
    hint, name = _advice(training.epochs)
    places = {value.name: str(value.place) for value in evidence.tuned}
    return TrainingText(message, hint, places.get(name, ""))


def _advice(epochs: tuple[Epoch, ...]) -> tuple[str, str]:
    """One thing to try, seen from the curves, and the tuned value that it concerns."""
    losses = [epoch.test_loss for epoch in epochs if math.isfinite(epoch.test_loss)]
    if len(losses) >= 4 and losses[-1] > _OVERFIT * min(losses):
        best = 1 + losses.index(min(losses))
        return (
            f"Your test loss is lowest after epoch {best} and rises from there, which is overfitting: "
            "try augmentation (flips, small shifts), dropout or weight decay.",
            "transform",
        )
    quarter = max(1, len(epochs) // 4)
    if len(epochs) <= quarter or epochs[-1].test_accuracy - epochs[-1 - quarter].test_accuracy > _RISE:
        return (
            "The accuracy was still rising when training ended: try more epochs, with a learning rate that "
            "falls towards the end (cosine decay).",
            "epochs",
        )
    return (
        "The accuracy has leveled off: try another learning rate with a few epochs of warm-up, and "
        "augmentation of the training images.",
        "learning_rate",
    )


def outcome_sentence(training: Training) -> str:
    """How training ended, in a sentence for the student."""
    done = len(training.epochs)
    of = f" of {training.planned_epochs}" if training.planned_epochs else ""
    count = f"{done}{of} epoch{'' if (training.planned_epochs or done) == 1 else 's'}"
    match training.outcome:
        case TrainingOutcome.COMPLETED:
            took = f" in {duration(training.seconds)}" if training.seconds else ""
            how = "with your own train_epoch and settings" if training.rebuilt else "by your own loop"
            return f"The grader trained your model for {count}{took}, {how}."
        case TrainingOutcome.FAILED:
            return f"Training stopped in your code after {count}: {training.reason}"
        case TrainingOutcome.DIVERGED:
            return f"Training diverged after {count}: {training.reason}"
        case TrainingOutcome.BUDGET:
            return (
                f"The grader's limit stopped training after {count}. That is not zero: a person decides "
                f"these points. {training.reason}"
            ).strip()
        case TrainingOutcome.NOT_RUN:
            return training.reason or "Training was not part of this run."
        case TrainingOutcome.UNKNOWN:
            return f"A person looks at the training: {training.reason}"


def images_measured(training: Training) -> str:
    """How many test images the accuracy counts, `540 hidden test images`; empty when unknown."""
    number = sum(sum(row) for row in training.confusion)
    return counted(number, "hidden test image") if number else ""
