"""The models that were trained, side by side, as numbers."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from grader.domain.evidence import Training
from grader.domain.formatting import percent
from grader.domain.plan import Rehearsal
from grader.reports.measured_words import MeasuredWords

UNKNOWN = "–"
Told = TypeVar("Told", Training, Rehearsal)


@dataclass(frozen=True)
class ComparedRow:
    """One row of the table.

    Attributes:
        label: What is compared.
        cells: Of each model.
        told: What the label means, where it does not say it itself.
    """

    label: str
    cells: tuple[str, ...]
    told: str = ""


def side_by_side(
    models: Sequence[tuple[Training, Rehearsal | None, MeasuredWords]],
) -> tuple[ComparedRow, ...]:
    """What is known of the models; a row that is known of none of them is left out."""
    trainings = [training for training, _, _ in models]
    rehearsals = [rehearsal or Rehearsal() for _, rehearsal, _ in models]
    gap = "how much better it is on images that it was trained on, in percentage points."
    rows = [
        ComparedRow(
            "Test accuracy" if all(words.is_accuracy for _, _, words in models) else "Measured",
            tuple(_measured(training, words) for training, _, words in models),
        ),
        ComparedRow("Accuracy on training images", _told(trainings, _by_heart)),
        ComparedRow("Gap", _told(trainings, _gap), gap),
        ComparedRow("Parameters", _told(rehearsals, lambda each: _count(each.parameters))),
        ComparedRow(
            "Multiply-adds for an image",
            _told(rehearsals, lambda each: _millions(each.multiply_adds)),
            "half of the operations that PyTorch’s counter finds.",
        ),
        ComparedRow("Epochs", _told(trainings, lambda each: str(len(each.epochs) or UNKNOWN))),
        ComparedRow("Seconds for an epoch", _told(trainings, _seconds)),
    ]
    return tuple(row for row in rows if any(cell != UNKNOWN for cell in row.cells))


def _told(models: Sequence[Told], told: Callable[[Told], str]) -> tuple[str, ...]:
    return tuple(told(each) or UNKNOWN for each in models)


def _measured(training: Training, words: MeasuredWords) -> str:
    if training.measured is None:
        return UNKNOWN
    value = words.value(training.measured)
    return f"{value} ({words.interval(training)})" if training.interval else value


def _by_heart(training: Training) -> str:
    return "" if training.seen_accuracy is None else percent(training.seen_accuracy)


def _gap(training: Training) -> str:
    """In percentage points; empty where it is not known."""
    if training.seen_accuracy is None or training.accuracy is None:
        return ""
    return f"{100 * (training.seen_accuracy - training.accuracy):.1f}"


def _count(number: int | None) -> str:
    return "" if number is None else f"{number:,}"


def _millions(number: int | None) -> str:
    if not number:
        return ""
    return f"{number / 1e6:.1f} million" if number >= 100_000 else f"{number:,}"


def _seconds(training: Training) -> str:
    """Of the whole training, by its epochs; two digits: how long it takes is what code can choose."""
    epochs = len(training.epochs)
    return f"{float(f'{training.seconds / epochs:.2g}'):g}" if epochs else ""
