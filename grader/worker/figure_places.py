"""Layout of a figure: which tick label is beside which cell, which heading is over which axes.

A heuristic by geometry: labels within a cell, texts beside or above axes. As many labels as cells are matched
in order. Where nothing fits the name is empty. The assignment's checks decide whether a figure shows what it
should.

Tests: tests/worker/test_figures.py
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

MAX_CELLS = 40  # beside each of so many rows there may be a name; a photograph has more
MAX_TEXTS = 100  # of a figure
EPSILON = 1e-6


@dataclass(frozen=True)
class TickLabels:
    """The labels of an axis: (where, text), where in data coordinates."""

    major: tuple[tuple[float, str], ...] = ()
    minor: tuple[tuple[float, str], ...] = ()


def tick_labels(ax: Any, side: str) -> TickLabels:
    """The labels at the ticks of an axes' x or y axis; none of axes that are not drawn.

    Asking matplotlib for them costs as much as drawing them, so this is asked once.
    """
    if not ax.axison:
        return TickLabels()
    axis = ax.xaxis if side == "x" else ax.yaxis
    minor_places = axis.get_minorticklocs()
    minor = axis.get_minorticklabels() if len(minor_places) else []
    return TickLabels(
        _placed(axis.get_majorticklocs(), axis.get_majorticklabels()), _placed(minor_places, minor)
    )


def _placed(places: Any, labels: Sequence[Any]) -> tuple[tuple[float, str], ...]:
    """Each label with its place; what no place is known of is at no place (NaN)."""
    texts = [label.get_text() for label in labels]
    return tuple(zip([*map(float, places), *[math.nan] * len(texts)], texts, strict=False))


def cell_names(maps: Sequence[Any], x_ticks: TickLabels, y_ticks: TickLabels) -> tuple[list[str], list[str]]:
    """The tick labels beside the rows and the columns of an axes' first small image or mesh.

    Args:
        maps: The images and meshes.
        x_ticks, y_ticks: Of the axes.

    Returns:
        One per row and one per column, in the order of the array; empty texts where there is none. Nothing
        at all when no map is small enough.
    """
    for drawn in maps:
        edges = _edges(drawn)
        if edges is not None and all(1 < len(side) <= MAX_CELLS + 1 for side in edges):
            rows, columns = edges
            return _beside(y_ticks, rows), _beside(x_ticks, columns)
    return [], []


def _edges(drawn: Any) -> tuple[Any, Any] | None:
    """Where the rows and the columns begin and end, in data coordinates: (rows + 1,), (columns + 1,)."""
    if hasattr(drawn, "get_extent"):
        shape = np.shape(drawn.get_array())
        left, right, bottom, top = (float(side) for side in drawn.get_extent())
        first, last = (bottom, top) if drawn.origin == "lower" else (top, bottom)
        return np.linspace(first, last, shape[0] + 1), np.linspace(left, right, shape[1] + 1)
    corners: Any = np.ma.filled(np.ma.asarray(drawn.get_coordinates(), dtype=float), math.nan)
    if corners.ndim != 3 or not np.isfinite(corners).all():
        return None
    return corners[:, 0, 1], corners[0, :, 0]


def _beside(labels: TickLabels, edges: Any) -> list[str]:
    """The label of each cell: the nearest within it; as many labels as cells are theirs in order."""
    low, high = min(edges[0], edges[-1]), max(edges[0], edges[-1])
    slack = (high - low) * EPSILON
    ticks = [
        (at, text)
        for at, text in (*labels.major, *labels.minor)
        if text.strip() and low - slack <= at <= high + slack
    ]
    ticks.sort(key=lambda tick: tick[0], reverse=bool(edges[-1] < edges[0]))
    if len(ticks) == len(edges) - 1:
        return [text for _, text in ticks]
    found = []
    for start, end in itertools.pairwise(edges):
        center, half = (start + end) / 2, abs(end - start) / 2
        near = [(abs(at - center), text) for at, text in ticks if abs(at - center) < half - slack]
        found.append(min(near)[1] if near else "")
    return found


def place(ax: Any) -> tuple[float, float, float, float]:
    """Left, bottom, right and top of an axes, as shares of the figure."""
    whole, box = _root(ax).bbox, ax.bbox
    sides = (box.x0 / whole.width, box.y0 / whole.height, box.x1 / whole.width, box.y1 / whole.height)
    left, bottom, right, top = (round(float(side), 4) if math.isfinite(side) else 0.0 for side in sides)
    return left, bottom, right, top


def shared_label(ax: Any, axis: str) -> str:
    """What a figure or subfigure says once of the axis (`x`, `y`) of all that it holds."""
    holder = ax.figure
    while holder is not None:
        label = getattr(holder, f"_sup{axis}label", None)
        if label is not None and label.get_text():
            return str(label.get_text())
        holder = getattr(holder, "_parent", None)
    return ""


def headings(ax: Any) -> list[str]:
    """Titles of the subfigures that hold an axes, and texts of the figure beside it or over its column."""
    found = []
    holder = ax.figure
    root = _root(ax)
    while holder is not root and holder is not None:
        found.append(_title(holder))
        found += [text.get_text() for text in _free_texts(holder)]
        holder = getattr(holder, "_parent", None)
    left, bottom, right, top = place(ax)
    texts = _free_texts(root)
    highest = max(place(other)[3] for other in root.axes[:MAX_CELLS]) if texts else 1.0
    for text in texts:
        x, y = root.transFigure.inverted().transform(text.get_transform().transform(text.get_position()))
        beside = bottom <= y <= top and not left <= x <= right
        above = left <= x <= right and y >= highest
        if beside or above:
            found.append(text.get_text())
    return [text for text in found if text]


def _title(figure: Any) -> str:
    title = getattr(figure, "_suptitle", None)
    return str(title.get_text()) if title else ""


def _free_texts(figure: Any) -> list[Any]:
    """The texts of a figure but its title and its axes' labels."""
    own = [getattr(figure, name, None) for name in ("_suptitle", "_supxlabel", "_supylabel")]
    return [text for text in figure.texts[:MAX_TEXTS] if all(text is not other for other in own)]


def _root(ax: Any) -> Any:
    """The whole figure that an axes is in, however deep."""
    figure = ax.figure
    while getattr(figure, "_parent", None) is not None:
        figure = figure._parent
    return figure
