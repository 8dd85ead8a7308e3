"""Plots of a student's trainings as image files, drawn by matplotlib, and the study as a table.

It draws the learning curves and the confusion matrix of one training, as PNG, and the study of a student's
choices as a picture and as CSV. It never trains or measures anything: it draws the numbers that it is given.
"""

import csv
import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from grader.domain.evidence import Epoch, Training, TrainingOutcome
from grader.domain.formatting import percent, round_percent
from grader.reports.measured_words import MeasuredWords

CURVES = "learning-curves.png"
CONFUSION = "confusion-matrix.png"

_BLUE, _ORANGE, _GRAY = "#1f5fa8", "#c9661b", "#6e7681"
_DPI = 150


def write_training_plots(training: Training, folder: Path, *, threshold: float | None = None) -> list[Path]:
    """Write the pictures that the training has numbers for.

    Args:
        training: It needs at least one epoch for the curves, and an accuracy for the confusion matrix.
        folder: It is made when it is missing; files of the same names are replaced.
        threshold: The accuracy that the assignment asks for, 0 to 1.

    Returns:
        The files written.
    """
    figures = {}
    if training.epochs:
        figures[CURVES] = _curves(training, threshold)
    if training.confusion:
        figures[CONFUSION] = _confusion(training)
    if figures:
        folder.mkdir(parents=True, exist_ok=True)
    for name, figure in figures.items():
        # without the software's version in it, the same numbers give the same file
        figure.savefig(folder / name, dpi=_DPI, metadata={"Software": None})
    return [folder / name for name in figures]


def _curves(training: Training, threshold: float | None) -> Figure:
    figure = Figure(figsize=(9, 3.8), layout="constrained")
    accuracy, loss = figure.subplots(1, 2)
    epochs = training.epochs
    numbers = [epoch.number for epoch in epochs]
    marker = "o" if len(epochs) < 3 else ""
    accuracy.plot(numbers, [100 * epoch.test_accuracy for epoch in epochs], color=_BLUE, marker=marker)
    if threshold is not None:
        accuracy.axhline(100 * threshold, color=_GRAY, linestyle="--", linewidth=1)
        accuracy.annotate(
            f"asked for: {round_percent(threshold)}",
            (0.99, 100 * threshold - 1.5),
            xycoords=("axes fraction", "data"),
            color=_GRAY,
            fontsize=8,
            ha="right",
            va="top",
        )
    accuracy.set_ylim(0, 100)
    accuracy.set_title(f"Test accuracy: {percent(epochs[-1].test_accuracy)} after epoch {epochs[-1].number}")
    accuracy.set_ylabel("correct test images, %")
    _draw_losses(loss, epochs, marker)
    for axes in (accuracy, loss):
        axes.set_xlabel("epoch")
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
        axes.xaxis.get_major_locator().set_params(integer=True)
    return figure


def _draw_losses(axes: Axes, epochs: Sequence[Epoch], marker: str) -> None:
    reported = [(epoch.number, epoch.train_loss) for epoch in epochs if epoch.train_loss is not None]
    if reported:
        axes.plot(
            *zip(*reported, strict=True),
            color=_ORANGE,
            linestyle="--",
            marker=marker,
            label="your code, as it trains",
        )
    axes.plot(
        [epoch.number for epoch in epochs],
        [epoch.test_loss for epoch in epochs],
        color=_BLUE,
        marker=marker,
        label="test images",
    )
    axes.set_ylim(bottom=0)
    axes.set_title("Loss")
    axes.set_ylabel("mean cross-entropy per image, nats")
    axes.legend(frameon=False, fontsize=8)


def _confusion(training: Training) -> Figure:
    counts = np.array(training.confusion)
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    figure = Figure(figsize=(6.6, 5.8), layout="constrained")
    axes = figure.subplots()
    axes.imshow(shares, cmap="Blues", vmin=0, vmax=1)
    names = training.classes
    axes.set_xticks(range(len(names)), names, rotation=35, ha="right")
    axes.set_yticks(range(len(names)), names)
    axes.set_xlabel("predicted class")
    axes.set_ylabel("true class")
    for row, column in np.ndindex(counts.shape):
        dark = shares[row, column] > 0.5
        text = f"{counts[row, column]}" if counts[row, column] else "·"
        axes.text(column, row, text, ha="center", va="center", color="white" if dark else "black")
    right, total = int(np.trace(counts)), int(counts.sum())
    axes.set_title(f"{right} of {total} test images are right ({percent(right / max(total, 1))})")
    return figure


# --- study plot ------------------------------------------------------------------------------------------


# `value` is the heading above the names of the varied fields, `setting` that above their values
COLUMNS = ("value", "setting", "own", "{measured}", "low", "high", "epochs", "seconds", "outcome", "reason")

Rows = Sequence[tuple[str, str, bool, Training]]
"""(field, value, whether it is the student's own, the training with it)."""


def study_value(training: Training, words: MeasuredWords) -> float | None:
    """The number that a study compares; None if the training was not completed or could not be measured."""
    if training.outcome is not TrainingOutcome.COMPLETED:
        return None
    return training.accuracy if words.is_accuracy else training.value


def study_table(rows: Rows, words: MeasuredWords) -> str:
    """The study as CSV; shares are 0 to 1, and other numbers as the assignment's measure gives them."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    measured_name = "accuracy" if words.is_accuracy else words.what
    writer.writerow(column.format(measured=measured_name) for column in COLUMNS)
    for field, value, is_own, training in rows:
        measured = study_value(training, words)
        low, high = (None, None) if measured is None else training.interval or (None, None)
        numbers = [
            "" if number is None else f"{number:.4f}" if words.scale.is_share else f"{number:.6g}"
            for number in (measured, low, high)
        ]
        done = len(training.epochs), f"{training.seconds:.1f}", training.outcome.value, training.reason
        writer.writerow([field, value, "yes" if is_own else "no", *numbers, *done])
    return file.getvalue()


def write_study_plot(rows: Rows, path: Path, words: MeasuredWords) -> Path:
    """One panel for each field: what is measured, with its interval, against the field's values."""
    unit = 100 if words.scale.is_share else 1
    fields = list(dict.fromkeys(row[0] for row in rows))
    figure = Figure(figsize=(1.2 + 2.6 * len(fields), 3.4), layout="constrained")
    panels = figure.subplots(1, len(fields), sharey=True, squeeze=False)[0]
    for panel, field in zip(panels, fields, strict=True):
        field_rows = sorted((row for row in rows if row[0] == field), key=lambda row: float(row[1]))
        for index, (_, _, is_own, training) in enumerate(field_rows):
            measured = study_value(training, words)
            if measured is None:
                place = {"xycoords": ("data", "axes fraction"), "ha": "center", "fontsize": 7}
                panel.annotate(training.outcome.value.replace("_", " "), (index, 0.02), **place)
                continue
            low, high = training.interval or (measured, measured)
            # an interval of resampled examples need not hold the value itself
            reach = [[unit * max(measured - low, 0)], [unit * max(high - measured, 0)]]
            color = _BLUE if is_own else _GRAY
            panel.errorbar(index, unit * measured, yerr=reach, fmt="o", color=color, capsize=3)
        panel.set_xticks(range(len(field_rows)), [row[1] for row in field_rows])
        panel.set_xlim(-0.6, len(field_rows) - 0.4)
        panel.set_title(field.replace("_", " "), fontsize=10)
        panel.grid(axis="y", alpha=0.25)
        panel.spines[["top", "right"]].set_visible(False)
    name = "correct test images" if words.is_accuracy else words.what
    panels[0].set_ylabel(f"{name}, %" if words.scale.is_share else name)
    # without the software's version in it, the same numbers give the same file
    figure.savefig(path, dpi=_DPI, metadata={"Software": None})
    return path
