"""The cells of an image or a mesh in axes: where they are, their names, and the texts in them.

A geometric heuristic decides which label belongs to which cell: it lies within. If there are as many labels
as cells, they are matched in order. If nothing fits, the name is empty.

Tests: tests/worker/test_figures.py, tests/worker/test_rigged_runs.py
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

MAX_CELLS = 40  # rows or columns that may have names; a photograph has more
ROUNDING = 1e-6  # of places, as a share of what they lie in

Edges = tuple[Any, Any]  # of rows (rows + 1,) and of columns (columns + 1,), in data coordinates


@dataclass(frozen=True)
class TickLabels:
    """The labels of an axis: (where, text), where in data coordinates."""

    major: tuple[tuple[float, str], ...] = ()
    minor: tuple[tuple[float, str], ...] = ()


def tick_labels(ax: Any, side: str) -> TickLabels:
    """The labels at the ticks of an axes' x or y axis; none if it is not drawn.

    Asking matplotlib for them costs as much as drawing them, so this is asked once.
    """
    if not ax.axison:
        return TickLabels()
    axis = ax.xaxis if side == "x" else ax.yaxis
    minor_places = axis.get_minorticklocs()
    minor = axis.get_minorticklabels() if len(minor_places) else []
    return TickLabels(
        _labels_at(axis.get_majorticklocs(), axis.get_majorticklabels()), _labels_at(minor_places, minor)
    )


def _labels_at(places: Any, labels: Sequence[Any]) -> tuple[tuple[float, str], ...]:
    """Each label with its position, NaN if that is not known."""
    texts = [label.get_text() for label in labels]
    return tuple(zip([*map(float, places), *[math.nan] * len(texts)], texts, strict=False))


def edges_of_cells(maps: Sequence[Any]) -> Edges | None:
    """Where the rows and the columns of the first small image or mesh begin and end; None: there is none."""
    for drawn in maps:
        edges = _edges(drawn)
        if edges is not None and all(1 < len(side) <= MAX_CELLS + 1 for side in edges):
            return edges
    return None


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


def cell_names(edges: Edges | None, x_ticks: TickLabels, y_ticks: TickLabels) -> tuple[list[str], list[str]]:
    """The tick labels beside the rows and the columns of an axes' first small image or mesh.

    Args:
        edges: Of its cells (`edges_of_cells`).
        x_ticks, y_ticks: Of the axes.

    Returns:
        One per row and one per column, in the order of the array; empty texts if there is none. Nothing at
        all if no map is small enough.
    """
    return (_beside(y_ticks, edges[0]), _beside(x_ticks, edges[1])) if edges else ([], [])


def _beside(labels: TickLabels, edges: Any) -> list[str]:
    """The label of each cell: the nearest within it, or in order if there are as many labels as cells."""
    low, high = min(edges[0], edges[-1]), max(edges[0], edges[-1])
    slack = (high - low) * ROUNDING
    ticks = [
        (position, text)
        for position, text in (*labels.major, *labels.minor)
        if text.strip() and low - slack <= position <= high + slack
    ]
    ticks.sort(key=lambda tick: tick[0], reverse=bool(edges[-1] < edges[0]))
    if len(ticks) == len(edges) - 1:
        return [text for _, text in ticks]
    names = []
    for start, end in itertools.pairwise(edges):
        center, half = (start + end) / 2, abs(end - start) / 2
        near = [
            (abs(position - center), text)
            for position, text in ticks
            if abs(position - center) < half - slack
        ]
        names.append(min(near)[1] if near else "")
    return names


def text_cells(ax: Any, edges: Edges | None, texts: Sequence[Any]) -> list[tuple[int, int]]:
    """The row and the column of the first small image or mesh in which each text lies; (-1, -1): in none."""
    if not edges:
        return []
    cells = []
    for text in texts:
        try:
            x, y = map(float, text.get_unitless_position())
        except (TypeError, ValueError):  # a place that is no number
            x = y = math.nan
        if text.get_transform() != ax.transData:
            x, y = ax.transData.inverted().transform(text.get_transform().transform((x, y)))
        row, column = (_cell(float(at), side) for at, side in zip((y, x), edges, strict=True))
        cells.append((-1, -1) if min(row, column) < 0 else (row, column))
    return cells


def _cell(position: float, edges: Any) -> int:
    """The number of the cell in which a position lies; -1: none, or it is not a number."""
    order, at = (edges, position) if edges[0] <= edges[-1] else (-edges, -position)
    return int(np.searchsorted(order, at, side="right")) - 1 if order[0] <= at < order[-1] else -1
