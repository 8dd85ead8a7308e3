"""What a plotting function drew: heat maps, curves, bars, and pictures with captions.

Figures are read as structure. A check decides whether a figure is right.
"""

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from grader.kit.captions import class_of, classes_named, role, speaks_of_both
from grader.kit.compared_results import Mismatch
from grader.kit.rigged_data import SHAPE, RiggedData, Shape, classified_data, image_number

BATCHES = (16,) * 9 + (10,)
ACCURACY = 0.6  # low enough that among 4 images of each of 6 classes some are always wrong
MANY_MAPS = 40  # that are examined
ALIGNED = 0.02  # of the figure: axes whose centers differ by less are in one row or column
LIKENESS = 0.8  # of a shown image to ours; another image's is near 0
FEW = 64  # numbers of a line or a map that shows one for each class
_DECIMAL = re.compile(r"(\d+)(?:[.,](\d+))?")

Array = Any
Channels = dict[str, str]


def drawn(
    student: Any, function: str, class_names: tuple[str, ...], *, shape: Shape = SHAPE
) -> tuple[RiggedData, Any]:
    """The rigged data and the run of a plotting function, shared by all checks because drawing is slow.

    The model is handed over in evaluation mode.

    Args:
        shape: Channels, height and width of the images.

    Raises:
        Mismatch: The function raised, or does not exist.
    """

    def make() -> tuple[RiggedData, Any]:
        seed = student.next_seed()
        data = classified_data(class_names, BATCHES, accuracy=ACCURACY, seed=seed, shape=shape)
        try:
            return data, student.run(function, data, initial_mode="eval")
        except Mismatch as error:
            return data, error

    data, run = student.shared(function, make)
    if isinstance(run, Mismatch):
        raise run.again()
    return data, run


def plotted(student: Any, function: str, *arguments: Any, **settings: Any) -> Any:
    """The outcome of a call of a plotting function, with its figures.

    Raises:
        Mismatch: The function raised, does not exist, or drew nothing.
    """
    outcome = student.call(function, *arguments, figures=True, **settings)
    if not outcome.figures:
        raise Mismatch(
            f"{function} draws nothing, or its figure cannot be found.", hint="Leave it open, or return it."
        )
    return outcome


def figure_text(outcome: Any) -> str:
    """All that is written in the figures of an outcome, a line for each place."""
    return "\n".join([*_written(outcome), *_ticks(outcome)])


def _written(outcome: Any) -> Iterator[str]:
    """The texts of an outcome's figures, but for those along the axes."""
    for figure in outcome.figures:
        yield figure.title
        for axes in figure.axes:
            yield from (axes.title, axes.x_label, axes.y_label, *axes.texts, *axes.headings, *axes.line_names)


def _ticks(outcome: Any) -> Iterator[str]:
    for figure in outcome.figures:
        for axes in figure.axes:
            yield from (*axes.x_ticks, *axes.y_ticks)


def shares_not_shown(outcome: Any, shares: Sequence[float], class_names: Sequence[str]) -> list[float]:
    """Those of some shares that no bar, no line, no map and no text of an outcome's figures shows.

    A share may be shown as it is or in percent, and rounded to two decimals, or to as many as are written.
    Numbers along an axis show nothing, unless they stand beside a class's name.

    Args:
        shares: Numbers between 0 and 1; NaN is not looked for.
    """
    shown = [(bar.length, 0.0) for bar in bars(outcome)]
    for name, values in outcome.arrays.items():
        if name.startswith(("line", "image")) and values.size <= FEW:
            shown += [(float(number), 0.0) for number in values.ravel()]
    beside_names = [text for text in _ticks(outcome) if classes_named(text, class_names)]
    for whole, decimals in _DECIMAL.findall("\n".join([*_written(outcome), *beside_names])):
        shown.append((float(f"{whole}.{decimals or 0}"), 0.51 * 10.0 ** -len(decimals)))
    return [
        share
        for share in map(float, shares)
        if share == share
        and not any(
            abs(number - unit * share) <= max(rounding, 0.005 * unit) and rounding < 0.1 * unit
            for number, rounding in shown
            for unit in (1, 100)
        )
    ]


# --- heat maps ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class HeatMap:
    """One square map of cells.

    Attributes:
        values: (k, k), in the order of the array that was drawn; what was masked is 0. Of an image that was
            drawn in colors of its own, the numbers that are written in its cells.
        row_classes, column_classes: The class that the label beside each row and column names; None where
            there is none.
        row_role, column_role: `true`, `predicted`, or None if the axis does not say.
        explained: Both axes have labels of any kind, or the texts around them mention both roles.
        title: Of the axes and of the figure.
        numbers: The first number in the text of each cell.
        written: The first number in the text that lies in each cell, (k, k); NaN where there is none.
    """

    values: Array
    row_classes: tuple[int | None, ...]
    column_classes: tuple[int | None, ...]
    row_role: str | None
    column_role: str | None
    explained: bool
    title: str
    numbers: tuple[float, ...]
    written: Array

    @property
    def counted(self) -> Array:
        """The numbers in the cells, (k, k), where each has one and the colors follow them; else the values.

        Colors may be logarithms, or have a limit: then two cells with different numbers have one color.
        """
        numbers, colors = self.written.ravel(), self.values.ravel()
        if np.isnan(numbers).any():
            return self.values
        rising = np.diff(colors[np.lexsort((colors, numbers))])
        falling = np.diff(colors[np.lexsort((-colors, numbers))])
        follow = bool((rising >= 0).all() or (falling <= 0).all())
        return self.written if follow and np.ptp(colors) > 0 else self.values

    @property
    def is_named(self) -> bool:
        """Whether every row and every column has its own class name."""
        all_classes = set(range(len(self.values)))
        return set(self.row_classes) == all_classes and set(self.column_classes) == all_classes


def heat_maps(run: Any, class_names: Sequence[str], *, whole: bool = False) -> list[HeatMap]:
    """The square maps, of up to as many cells per side as there are classes, of a run's figures.

    Args:
        whole: Only those of as many cells per side as there are classes.
    """
    least, maps = len(class_names) if whole else 2, []
    for figure in run.figures:
        for axes in figure.axes:
            for number in (*axes.images, *axes.heat_maps):
                values = np.nan_to_num(run.arrays[f"image{number}"])
                in_colors = values.ndim == 3 and values.shape[2] in (3, 4)
                if in_colors:
                    values = values.mean(axis=2)
                side = round(values.size**0.5)
                if values.size != side**2 or not least <= side <= len(class_names) or values.ndim > 2:
                    continue
                found = _heat_map(values.reshape(side, side), figure, axes, class_names)
                if in_colors:
                    found = replace(found, values=found.written)
                if not np.isnan(found.values).any():
                    maps.append(found)
    return maps[:MANY_MAPS]


def _heat_map(values: Array, figure: Any, axes: Any, class_names: Sequence[str]) -> HeatMap:
    def classes(names: Sequence[str]) -> tuple[int | None, ...]:
        return tuple(class_of(name, class_names) for name in names[: len(values)])

    around = (figure.title, axes.title, *axes.headings)
    numbers = list(map(_first_number, axes.texts))
    written = np.full(values.shape, np.nan)
    for number, (row, column) in zip(numbers, axes.text_cells, strict=False):
        if number is not None and 0 <= row < len(values) and 0 <= column < len(values):
            written[row, column] = number
    return HeatMap(
        values,
        classes(axes.row_names),
        classes(axes.column_names),
        role(axes.y_label),
        role(axes.x_label),
        bool(axes.x_label.strip() and axes.y_label.strip()) or speaks_of_both(" ".join(around)),
        " ".join(around[:2]),
        tuple(number for number in numbers if number is not None),
        written,
    )


def _first_number(text: str) -> float | None:
    digits = "".join(itertools.takewhile(lambda letter: letter in "0123456789.", text.strip()))
    return float(digits) if digits.count(".") < 2 and digits.strip(".") else None


# --- curves ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Curve:
    """One line of a figure.

    Attributes:
        name: In the legend; empty where it has none.
        x, y: The coordinates of its points, float64 (points,).
        x_label, y_label, title: Of its axes.
    """

    name: str
    x: Array
    y: Array
    x_label: str
    y_label: str
    title: str


def history_series(history: Any, length: int) -> dict[str, list[float]]:
    """What a history that a student's function made holds of each epoch, where its names say so plainly.

    Args:
        history: A dictionary of lists, or anything else.
        length: Epochs.

    Returns:
        `training loss`, `training accuracy`, `validation loss` or `validation accuracy` -> the numbers of
        the one list that is named so.
    """
    found: dict[str, list[list[float]]] = {}
    for name, values in history.items() if isinstance(history, dict) else ():
        words = str(name).lower()
        side = "validation" if any(word in words for word in ("val", "dev", "test")) else "training"
        kind = "loss" if "loss" in words else "accuracy" if "acc" in words else ""
        numbers = isinstance(values, list | tuple) and all(type(value) in (int, float) for value in values)
        if kind and numbers and len(values) == length and all(abs(value) < 1e9 for value in values):
            found.setdefault(f"{side} {kind}", []).append([float(value) for value in values])
    return {name: lists[0] for name, lists in found.items() if len(lists) == 1}


def curves(run: Any) -> list[Curve]:
    """The lines of a run's figures, or of a call's."""
    return [
        Curve(name, x, y, axes.x_label, axes.y_label, axes.title)
        for figure in run.figures
        for axes in figure.axes
        for number, name in zip(axes.lines, axes.line_names, strict=True)
        for x, y in [run.arrays[f"line{number}"]]
    ]


# --- bars -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Bar:
    """A bar of a figure.

    Attributes:
        name: The label beside it on its axis; empty if there is none.
        length: Its height if it stands, its width if it lies; 0 where nothing is drawn.
    """

    name: str
    length: float


def bars(run: Any) -> list[Bar]:
    """The bars of a run's figures, or of a call's."""
    return [
        Bar(name, length)
        for figure in run.figures
        for axes in figure.axes
        for name, length in zip(axes.bar_names, axes.bars, strict=True)
    ]


def bar_lengths(run: Any, class_names: Sequence[str]) -> dict[int, list[float]]:
    """Class -> the lengths of the bars beside its name; a bar beside several names is the first one's."""
    lengths: dict[int, list[float]] = {}
    for bar in bars(run):
        for label in classes_named(bar.name, class_names)[:1]:
            lengths.setdefault(label, []).append(bar.length)
    return lengths


# --- pictures -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Picture:
    """One of the loader's images, as it is shown.

    Attributes:
        number: Of the image.
        captions: The texts that belong to it: its own, those of its row and column, the figure's.
        ticks: The tick labels of the only axes in its row or column that shows no image, such as the names of
            bars, along the axis.
        is_transposed: It is shown with rows and columns exchanged.
    """

    number: int
    captions: tuple[str, ...]
    ticks: tuple[str, ...] = ()
    is_transposed: bool = False


def pictures(run: Any, data: RiggedData) -> tuple[int, list[Picture]]:
    """How many images are shown, and those that are the loader's."""
    shown, recognized = 0, []
    for figure in run.figures:
        channels = [_channels(axes) for axes in figure.axes]
        inherited = _inherited(figure.axes, channels)
        ticks = _beside(figure.axes)
        for axes, own_texts, neighbor_texts, names in zip(
            figure.axes, channels, inherited, ticks, strict=True
        ):
            captions = [
                text for text in (*own_texts.values(), *neighbor_texts, *axes.headings, figure.title) if text
            ]
            for number in (*axes.images, *axes.heat_maps):
                shown += 1
                values = run.arrays[f"image{number}"]
                for is_transposed in (False, True):
                    image = _shown_image(_transposed(values) if is_transposed else values, data)
                    if image is not None:
                        recognized.append(Picture(image, tuple(captions), names, is_transposed))
                        break
    return shown, recognized


def _channels(axes: Any) -> Channels:
    return {
        "title": axes.title,
        "x_label": axes.x_label,
        "y_label": axes.y_label,
        "texts": " ".join(axes.texts),
    }


def _beside(all_axes: Sequence[Any]) -> list[tuple[str, ...]]:
    """For each axes the tick labels of the only one in its row or column that shows no image."""
    labels: list[tuple[str, ...]] = [() for _ in all_axes]
    for line in (*_lines(all_axes, 1), *_lines(all_axes, 0)):
        bare = [index for index in line if _is_bare(all_axes[index])]
        if len(bare) == 1:
            axes = all_axes[bare[0]]
            for index in line:
                labels[index] += (*axes.x_ticks, *axes.y_ticks)
    return labels


def _is_bare(axes: Any) -> bool:
    return not axes.images and not axes.heat_maps


def _inherited(all_axes: Sequence[Any], channels: Sequence[Channels]) -> list[list[str]]:
    """For each axes the texts that only the first or last axes of its row or column has, for all of them."""
    texts: list[list[str]] = [[] for _ in all_axes]
    for line in (*_lines(all_axes, 1), *_lines(all_axes, 0)):
        for channel in ("title", "x_label", "y_label", "texts"):
            bearers = [index for index in line if channels[index][channel].strip()]
            if len(bearers) == 1 and bearers[0] in (line[0], line[-1]):
                for index in line:
                    if index != bearers[0]:
                        texts[index].append(channels[bearers[0]][channel])
        plain = [index for index in line if _is_bare(all_axes[index])]
        if len(plain) == 1:  # an axes for the row's name
            for index in line:
                texts[index] += channels[plain[0]].values()
    return texts


def _lines(all_axes: Sequence[Any], along: int) -> Iterator[list[int]]:
    """The rows (1) or columns (0) with several axes, from left to right or from top to bottom."""
    middles = [(axes.place[along] + axes.place[along + 2]) / 2 for axes in all_axes]
    across = [axes.place[1 - along] * (1 if along else -1) for axes in all_axes]
    order = sorted(range(len(all_axes)), key=lambda index: middles[index])
    line: list[int] = []
    for index in order:
        if line and middles[index] - middles[line[0]] > ALIGNED:
            if len(line) > 1:
                yield sorted(line, key=across.__getitem__)
            line = []
        line.append(index)
    if len(line) > 1:
        yield sorted(line, key=across.__getitem__)


def _transposed(values: Array) -> Array:
    """A picture, (height, width[, colors]), with rows and columns exchanged."""
    return values.swapaxes(0, 1) if values.ndim in (2, 3) else values


def _shown_image(values: Array, data: RiggedData) -> int | None:
    """Which of the loader's images is shown, perhaps enlarged, rescaled or as its negative."""
    if values.ndim not in (2, 3) or not np.isfinite(values).all():
        return None
    for shown in (values, -values):
        number = image_number(shown, data.gray.shape[1:])
        if number is None or number >= len(data.labels):
            continue
        ours = data.gray[number]
        row = shown if shown.ndim == 2 else shown[..., 0] if shown.shape[-1] in (1, 3, 4) else shown[0]
        times = row.shape[0] // ours.shape[0]
        small = row[times // 2 :: times, times // 2 :: times]
        if np.corrcoef(small.ravel(), ours.ravel())[0, 1] > LIKENESS:
            return number
    return None
