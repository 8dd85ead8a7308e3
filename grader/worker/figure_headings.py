"""Where axes are in a figure, and which of the texts outside them belong to them.

A geometric heuristic decides which heading belongs to which axes: it is beside, above or below. If there are
as many headings as axes in a column, they are matched in order.

Tests: tests/worker/test_figures.py, tests/worker/test_rigged_runs.py
"""

import math
from collections.abc import Iterator, Sequence
from typing import Any

from grader.worker.drawn_artists import visible

MAX_AXES = 80  # of a figure
MAX_TEXTS = 100  # of a figure


def place(ax: Any) -> tuple[float, float, float, float]:
    """Left, bottom, right and top of an axes, as shares of the figure."""
    root_box, box = _root(ax).bbox, ax.bbox
    sides = (
        box.x0 / root_box.width,
        box.y0 / root_box.height,
        box.x1 / root_box.width,
        box.y1 / root_box.height,
    )
    left, bottom, right, top = (round(float(side), 4) if math.isfinite(side) else 0.0 for side in sides)
    return left, bottom, right, top


def shared_label(ax: Any, axis: str) -> str:
    """The label that a figure or subfigure gives once to an axis (`x`, `y`) of everything in it."""
    holder = ax.figure
    while holder is not None:
        label = getattr(holder, f"_sup{axis}label", None)
        if label is not None and label.get_text():
            return str(label.get_text())
        holder = getattr(holder, "_parent", None)
    return ""


def headings(ax: Any) -> list[str]:
    """Titles of the subfigures that hold an axes, and the texts of the figure that belong to it."""
    heading_texts = []
    holder = ax.figure
    root = _root(ax)
    while holder is not root and holder is not None:
        heading_texts.append(_title(holder))
        heading_texts += [text.get_text() for text in _free_texts(holder)]
        holder = getattr(holder, "_parent", None)
    heading_texts += _texts_around(ax, _free_texts(root))
    return [text for text in heading_texts if text]


def _texts_around(ax: Any, texts: Sequence[Any]) -> Iterator[str]:
    """The texts of the whole figure that belong to an axes.

    Those beside it, and those in its column: over or under all axes, or in order if each of the column has
    one. If it is the only axes, all of them.
    """
    if not texts:
        return
    root = _root(ax)
    every = visible(root.axes)[:MAX_AXES]
    shown = [other for other in every if other.has_data()] if ax.has_data() else every
    left, bottom, right, top = place(ax)
    places = [
        root.transFigure.inverted().transform(text.get_transform().transform(text.get_position()))
        for text in texts
    ]
    column = [index for index, (x, _) in enumerate(places) if left <= x <= right]
    column.sort(key=lambda index: -places[index][1])
    own = _of_column([places[index][1] for index in column], ax, shown)
    boxes = [place(other) for other in shown]
    lowest, highest = min(box[1] for box in boxes), max(box[3] for box in boxes)
    for index, (text, (x, y)) in enumerate(zip(texts, places, strict=True)):
        within = any(box[0] <= x <= box[2] and box[1] <= y <= box[3] for box in boxes)
        is_beside = bottom <= y <= top and not within
        is_around = own is None and left <= x <= right and not lowest < y < highest
        if len(shown) == 1 or is_beside or is_around or (own is not None and index == column[own]):
            yield text.get_text()


def _of_column(heights: Sequence[float], ax: Any, shown: Sequence[Any]) -> int | None:
    """Which of the texts in the column of an axes is its own; None if not each axes of the column has one.

    Args:
        heights: Of the texts, from top to bottom.
        shown: All axes of the figure.
    """
    left, _, right, _ = place(ax)
    places = sorted((place(other) for other in shown), key=lambda each: -each[1])
    middles = [(bottom + top) / 2 for start, bottom, end, top in places if left <= (start + end) / 2 <= right]
    above, below = [math.inf, *middles[:-1]], [*middles[1:], -math.inf]
    if len(heights) != len(middles) or not all(
        low <= y <= high for low, y, high in zip(below, heights, above, strict=True)
    ):
        return None
    _, bottom, _, top = place(ax)
    own = (bottom + top) / 2
    return middles.index(own) if own in middles else None


def _title(figure: Any) -> str:
    title = getattr(figure, "_suptitle", None)
    return str(title.get_text()) if title else ""


def _free_texts(figure: Any) -> list[Any]:
    """The texts of a figure except its title and its axes' labels."""
    labels = [getattr(figure, name, None) for name in ("_suptitle", "_supxlabel", "_supylabel")]
    return [text for text in figure.texts[:MAX_TEXTS] if all(text is not other for other in labels)]


def _root(ax: Any) -> Any:
    """The whole figure that an axes is in, however deep."""
    figure = ax.figure
    while getattr(figure, "_parent", None) is not None:
        figure = figure._parent
    return figure
