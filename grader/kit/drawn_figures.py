"""What a plotting function drew from rigged data: heat maps, curves, and pictures with captions.

Figures are read as structure. A caption may name classes by their names, perhaps shortened, or by their
numbers; this module decides which of them is the true class and which the predicted one. A check decides
whether a figure is right.
"""

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from grader.kit.compared_results import Mismatch
from grader.kit.rigged_data import SHAPE, RiggedData, Shape, classified_data, image_number

TRUE = "true"
PREDICTED = "predicted"

# in the languages in which students of such courses label their figures
_TRUE_WORDS = "true|truth|actual|real|ground|gold|target|expected|wahr|tatsächlich|vrai|réel|واقعی"
_PREDICTED_WORDS = r"pred|guess|estimat|said|prognos|vorher|préd|hat\{|ŷ|yhat|پیش"
_LABEL_WORDS = "labels?|برچسب"
_ROLES = re.compile(
    rf"(?P<predicted>(?:{_PREDICTED_WORDS})[^\W_]*(?:\W+label\w*)?|\bp\b(?!\W?\s*\d*[.,]\d|\W?\s*\d+\s*%))"
    rf"|(?P<true>(?:{_TRUE_WORDS})[^\W_]*(?:\W+label\w*)?|\b(?:gt|t)\b)"
    rf"|(?P<label>\b(?:{_LABEL_WORDS})\b)"
)
_NUMBER = re.compile(r"\d+[.,]\d+|\d+\s*%|#\s*\d+|(?<![\w.])(?P<number>\d+)(?![\w.])")
_BEGINNING = 5  # letters that identify a name, even within a word


def plain(text: str) -> str:
    """Letters and digits only, lower case."""
    return "".join(letter for letter in text.casefold() if letter.isalnum())


def class_of(text: str, class_names: Sequence[str]) -> int | None:
    """The class that a tick label names, perhaps shortened (`trick`, `tr`, `0: tricycle`); None if none.

    Only letters and digits count. A text that would match several classes names none.
    """
    plain_text = plain(text)
    names = [plain(name) for name in class_names]
    letters = plain_text.strip("0123456789") or plain_text
    for fits in (
        [name == plain_text for name in names],
        [len(name) > 2 and name in plain_text for name in names],
        [bool(letters) and name.startswith(letters) for name in names],
        [len(letters) > 1 and letters == _initials(name) for name in class_names],
        [len(letters) > 1 and _abbreviates(letters, name) for name in names],
    ):
        if any(fits):
            return fits.index(True) if sum(fits) == 1 else None
    return None


def _initials(name: str) -> str:
    """The first letter of each word."""
    return "".join(word[0] for word in re.split(r"[\W_]+", name.casefold()) if word)


def _abbreviates(letters: str, name: str) -> bool:
    """Whether the letters occur in the name in this order, the first at its beginning."""
    rest = iter(name)
    return name[:1] == letters[:1] and all(letter in rest for letter in letters)


def classes_named(text: str, class_names: Sequence[str]) -> list[int]:
    """The classes that a caption names, in order, by their names, perhaps shortened (`tricy`, `tri`)."""
    return [label for _, label in _names(text, class_names)]


def numbers_named(text: str, class_names: Sequence[str]) -> list[int]:
    """The classes that a caption names by their numbers, in order."""
    return [label for _, label in _numbers(text, class_names)]


def role(text: str) -> str | None:
    """Whether a text mentions the true or the predicted classes; None: neither, or both."""
    roles = set(_roles(text))
    return roles.pop() if len(roles) == 1 else None


def speaks_of_both(text: str) -> bool:
    """Whether a text mentions both true and predicted classes."""
    return len(set(_roles(text))) == 2


def stated(text: str, class_names: Sequence[str]) -> dict[str, int]:
    """What one text states explicitly: `true` and `predicted` -> class, if it says which is which.

    The words for the two roles and the names of classes are matched in their order.
    """
    mentions = list(_names(text, class_names))
    rest = text.casefold()
    for span, _ in mentions:
        rest = rest[: span[0]] + "\0" * (span[1] - span[0]) + rest[span[1] :]
    kinds = _roles(rest)
    mentions = mentions or list(_numbers(text, class_names))
    if len(kinds) != len(mentions) or len(set(kinds)) != len(kinds):
        return {}
    return {kind: label for kind, (_, label) in zip(kinds, mentions, strict=True)}


def _roles(text: str) -> list[str]:
    """The roles that a text mentions, in order; adjacent words for one role (`ground truth`) count once.

    `label` alone means the true class, unless another word beside it or for that role is clearer.
    """
    low = text.casefold().replace("_", " ")
    matches = list(_ROLES.finditer(low))
    truly = any(match.lastgroup == TRUE for match in matches)
    roles: list[str] = []
    for number, match in enumerate(matches):
        if match.lastgroup == "label":
            after = matches[number + 1].start() if number + 1 < len(matches) else len(low) + 1
            if truly or (after <= len(low) and not low[match.end() : after].strip(" \n\t([")):
                continue
        kind = PREDICTED if match.lastgroup == PREDICTED else TRUE
        if roles[-1:] != [kind]:
            roles.append(kind)
    return roles


def _names(text: str, class_names: Sequence[str]) -> Iterator[tuple[tuple[int, int], int]]:
    """(span, class) of each name in a text, in order."""
    names = [plain(name) for name in class_names]
    spans = [
        (match.start(), -match.end(), label)
        for label, name in enumerate(names)
        for match in re.finditer(_pattern(name, names), text.casefold())
    ]
    end = 0
    for start, negative_end, label in sorted(spans):
        if start >= end and start < -negative_end:
            end = -negative_end
            yield (start, end), label


def _pattern(name: str, names: Sequence[str]) -> str:
    """Matches a name, whole or cut after its fifth letter or later, with anything between its letters.

    A shorter beginning must be a separate word, and must not begin another name.
    """
    between = r"[\W_]*"
    start, rest = name[:_BEGINNING], name[_BEGINNING:]
    cut = [name[:length] for length in (4, 3) if length < len(name)]
    words = [word for word in cut if sum(other.startswith(word) for other in names) == 1]
    if len(name) >= _BEGINNING:
        longer = "".join(f"(?:{between}{letter}" for letter in rest) + ")?" * len(rest)
        return "|".join([between.join(start) + longer, *map(_word, words)])
    return "|".join(map(_word, [name, *words]))


def _word(letters: str) -> str:
    return rf"(?<![^\W_]){letters}(?![^\W_])"


def _numbers(text: str, class_names: Sequence[str]) -> Iterator[tuple[tuple[int, int], int]]:
    for match in _NUMBER.finditer(text):
        number = match.group("number")
        if number is not None and len(number) < 4 and int(number) < len(class_names):
            yield match.span(), int(number)


# --- plots -----------------------------------------------------------------------------------------------


BATCHES = (16,) * 9 + (10,)
ACCURACY = 0.6  # low enough that among 4 images of each of 6 classes some are always wrong
MANY_MAPS = 40  # that are examined
ALIGNED = 0.02  # of the figure: axes whose centers differ by less are in one row or column
LIKENESS = 0.8  # of a shown image to ours; another image's is near 0

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
    words = []
    for figure in outcome.figures:
        words.append(figure.title)
        for axes in figure.axes:
            words += [axes.title, axes.x_label, axes.y_label, *axes.texts, *axes.headings, *axes.line_names]
            words += [*axes.x_ticks, *axes.y_ticks]
    return "\n".join(words)


# --- heat maps ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class HeatMap:
    """One square map of cells.

    Attributes:
        values: (k, k), in the order of the array that was drawn; what was masked is 0.
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
    def is_named(self) -> bool:
        """Whether every row and every column has its own class name."""
        all_classes = set(range(len(self.values)))
        return set(self.row_classes) == all_classes and set(self.column_classes) == all_classes


def heat_maps(run: Any, class_names: Sequence[str]) -> list[HeatMap]:
    """The square maps, of up to as many cells per side as there are classes, of a run's figures."""
    maps = []
    for figure in run.figures:
        for axes in figure.axes:
            for number in (*axes.images, *axes.heat_maps):
                values = np.nan_to_num(run.arrays[f"image{number}"])
                side = round(values.size**0.5)
                if values.size == side**2 and 1 < side <= len(class_names) and values.ndim < 3:
                    maps.append(_heat_map(values.reshape(side, side), figure, axes, class_names))
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
