"""Figures of trained models as tables: per class, side by side, and per layer.

It computes precision, recall, F1 and ROC area of each class, and the figures of several models side by
side. It lists a model's modules as an indented table, with the parameters of each and of all below it. It
never measures anything and draws no charts: it computes from what the evidence holds.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from grader.domain.evidence import LayerSummary, Training
from grader.domain.formatting import percent
from grader.domain.program_run import Rehearsal
from grader.reports.measured_words import MeasuredWords


@dataclass(frozen=True)
class ClassFigures:
    """One class; a share is None where there is nothing to divide by.

    Attributes:
        images: Test images of this class.
        precision: The share of images predicted as this class that belong to it.
        recall: The share of this class's images that were predicted as it.
        f1: The harmonic mean of both.
        area: The area under its receiver operating characteristic.
    """

    name: str
    images: int
    precision: float | None
    recall: float | None
    f1: float | None
    area: float | None = None


def class_figures(training: Training) -> tuple[ClassFigures, ...]:
    """The figures of each class, in the order of the classes."""
    counts = training.confusion
    figures = []
    for index, row in enumerate(counts):
        hits, images = row[index], sum(row)
        taken = sum(other_row[index] for other_row in counts)
        name = training.classes[index] if index < len(training.classes) else f"class {index}"
        # F1 = 2 hits / (taken + images), which is defined where precision alone is not
        figures.append(
            ClassFigures(
                name,
                images,
                _share(hits, taken),
                _share(hits, images),
                _share(2 * hits, taken + images),
                training.roc[index].area if index < len(training.roc) else None,
            )
        )
    return tuple(figures)


def _share(part: int, total: int) -> float | None:
    return part / total if total else None


# --- model comparison ------------------------------------------------------------------------------------


UNKNOWN = "–"
Described = TypeVar("Described", Training, Rehearsal)


@dataclass(frozen=True)
class ComparedRow:
    """One row of the table.

    Attributes:
        label: What is compared.
        cells: One per model.
        explanation: What the label means, where it needs explaining.
    """

    label: str
    cells: tuple[str, ...]
    explanation: str = ""


def side_by_side(
    models: Sequence[tuple[Training, Rehearsal | None, MeasuredWords]],
) -> tuple[ComparedRow, ...]:
    """What is known about the models; a row that is known for none of them is left out."""
    trainings = [training for training, _, _ in models]
    rehearsals = [rehearsal or Rehearsal() for _, rehearsal, _ in models]
    gap = "how much better it is on images that it was trained on, in percentage points."
    rows = [
        ComparedRow(
            "Test accuracy" if all(words.is_accuracy for _, _, words in models) else "Measured",
            tuple(_measured(training, words) for training, _, words in models),
        ),
        ComparedRow("Accuracy on training images", _cells(trainings, _seen_accuracy)),
        ComparedRow("Gap", _cells(trainings, _gap), gap),
        ComparedRow("Parameters", _cells(rehearsals, lambda model: _count(model.parameters))),
        ComparedRow(
            "Multiply-adds per image",
            _cells(rehearsals, lambda model: _millions(model.multiply_adds)),
            "half of the operations that PyTorch’s counter finds.",
        ),
        ComparedRow("Epochs", _cells(trainings, lambda model: str(len(model.epochs) or UNKNOWN))),
        ComparedRow("Seconds per epoch", _cells(trainings, _seconds)),
    ]
    return tuple(row for row in rows if any(cell != UNKNOWN for cell in row.cells))


def _cells(models: Sequence[Described], cell_of: Callable[[Described], str]) -> tuple[str, ...]:
    return tuple(cell_of(model) or UNKNOWN for model in models)


def _measured(training: Training, words: MeasuredWords) -> str:
    if training.measured is None:
        return UNKNOWN
    value = words.value(training.measured)
    return f"{value} ({words.interval(training)})" if training.interval else value


def _seen_accuracy(training: Training) -> str:
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
    """Seconds per epoch, of the whole training; two digits, because code can choose how long it takes."""
    epochs = len(training.epochs)
    return f"{float(f'{training.seconds / epochs:.2g}'):g}" if epochs else ""


# --- model tree ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LayerRow:
    """One module.

    Attributes:
        name: The last part of its path; the type for the model itself.
        type: The class's name.
        depth: 0 for the model itself.
        own: Trainable parameters that it holds itself.
        whole: Those and the parameters of all modules below it.
    """

    name: str
    type: str
    depth: int
    own: int
    whole: int


def layer_rows(layers: Sequence[LayerSummary]) -> tuple[LayerRow, ...]:
    """The rows in the order of the layers (each module before those within it)."""
    rows: list[LayerRow] = []
    # from the end: what follows a module and is deeper belongs to it
    below: dict[int, int] = {}
    for layer in reversed(layers):
        deeper = sum(count for depth, count in below.items() if depth > layer.depth)
        below = {depth: count for depth, count in below.items() if depth <= layer.depth}
        with_modules_below = layer.parameters + deeper
        below[layer.depth] = below.get(layer.depth, 0) + with_modules_below
        name = layer.path.rpartition(".")[2] or layer.type
        rows.append(LayerRow(name, layer.type, layer.depth, layer.parameters, with_modules_below))
    return tuple(reversed(rows))
