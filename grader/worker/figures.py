"""Figures: drawn without a screen, kept open, read as structure and as pixels.

It computes titles, labels, images, heat maps and lines, within bounds. The assignment's checks decide whether
a figure shows what it should.

Tests: tests/worker/test_figures.py, tests/worker/test_rigged_runs.py
"""

import contextlib
import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from grader.protocol.replies import Axes, DrawnFigure
from grader.worker.covered_images import uncovered
from grader.worker.drawn_artists import Coordinates, filled_contours, lines_of, named_bars, visible
from grader.worker.drawn_cells import cell_names, edges_of_cells, text_cells, tick_labels
from grader.worker.figure_headings import MAX_AXES, headings, place, shared_label
from grader.worker.figure_pixels import few_colors, pixels_of
from grader.worker.lazy_ticks import lazy_ticks
from grader.worker.quick_drawing import heatmaps_without_pixels, hidden_axes_unmeasured, letters_not_fitted

MAX_FIGURES = 40
MAX_PICTURES = 3
MAX_IMAGES = 64  # of axes: the patches of an image may all be in one
MAX_TEXT = 300
MAX_LINES, MAX_POINTS = 60, 100_000


class KeptFigures:
    """The figures that were drawn, in the order in which they were shown, closed, or left open.

    After `show` or `close`, pyplot goes on with a new figure, as it does in a notebook.
    """

    def __init__(self) -> None:
        self._figures: list[Any] = []

    def take(self) -> None:
        """Keep every figure that is open, and take it from pyplot."""
        from matplotlib import pyplot as plt
        from matplotlib._pylab_helpers import Gcf

        for number in plt.get_fignums():
            figure = plt.figure(number)
            if len(self._figures) < MAX_FIGURES and not any(figure is kept for kept in self._figures):
                self._figures.append(figure)
        Gcf.destroy_all()

    def described(self, arrays: dict[str, Any], *, pictures: bool) -> tuple[DrawnFigure, ...]:
        """Describe the figures, and put their images and, on request, their pixels into `arrays`."""
        self.take()
        drawn: list[DrawnFigure] = []
        for figure in self._figures:
            if not figure.axes:
                continue
            pixels = -1
            if pictures and len(drawn) < MAX_PICTURES:
                pixels = len(drawn)
                arrays[f"figure{pixels}"], arrays[f"palette{pixels}"] = few_colors(pixels_of(figure))
            suptitle = getattr(figure, "_suptitle", None)
            axes = tuple(_described_axes(ax, arrays) for ax in visible(figure.axes)[:MAX_AXES])
            drawn.append(DrawnFigure(pixels, _short(suptitle.get_text() if suptitle else ""), axes))
        return tuple(drawn)


@contextlib.contextmanager
def kept_figures(*, pictures: bool) -> Iterator[KeptFigures]:
    """Matplotlib on Agg; figures that `show` and `close` would discard are kept.

    Args:
        pictures: The figures are also shown. Otherwise `tight_layout` does nothing: it takes as long as all
            other drawing together, and moves nothing that is read.
    """
    import matplotlib

    matplotlib.use("agg", force=True)
    from matplotlib import pyplot as plt
    from matplotlib.figure import Figure

    plt.close("all")
    kept = KeptFigures()
    show, close, original_layout = plt.show, plt.close, Figure.tight_layout

    def take(*args: Any, **kwargs: Any) -> None:
        kept.take()

    def tight_layout(
        figure: Any, *, pad: float = 1.08, h_pad: Any = None, w_pad: Any = None, rect: Any = None
    ) -> None:
        if pictures:
            with hidden_axes_unmeasured(figure):
                original_layout(figure, pad=pad, h_pad=h_pad, w_pad=w_pad, rect=rect)

    tight_layout.__qualname__ = original_layout.__qualname__  # its errors name it as matplotlib's
    plt.show = plt.close = take
    Figure.tight_layout = tight_layout  # type: ignore[assignment,method-assign]
    try:
        with lazy_ticks(), heatmaps_without_pixels(), letters_not_fitted():
            yield kept
    finally:
        plt.show, plt.close, Figure.tight_layout = show, close, original_layout  # type: ignore[method-assign]
        plt.close("all")


def _described_axes(ax: Any, arrays: dict[str, Any]) -> Axes:
    meshes = [
        mesh
        for mesh in visible(ax.collections)[:4]
        if type(mesh).__name__ in ("QuadMesh", "PolyQuadMesh") and mesh.get_array() is not None
    ]
    pictures = uncovered(visible(ax.images)[:MAX_IMAGES])
    images = [_stored(image.get_array(), arrays) for image in pictures]
    heat_maps = [_stored(mesh.get_array(), arrays) for mesh in meshes]
    heat_maps += [_stored(values, arrays) for values in filled_contours(ax, pictures)]
    drawn = itertools.islice(lines_of(ax), MAX_LINES)
    stored = [(_stored_line(points, arrays), name) for points, name in drawn]
    lines = [(number, name) for number, name in stored if number is not None]
    x_ticks, y_ticks = tick_labels(ax, "x"), tick_labels(ax, "y")
    edges, texts = edges_of_cells([*pictures, *meshes]), visible(ax.texts)[:400]
    rows, columns = cell_names(edges, x_ticks, y_ticks)
    bars = named_bars(ax, x_ticks, y_ticks)
    return Axes(
        title=_short(" ".join(filter(None, (ax.get_title(loc) for loc in ("left", "center", "right"))))),
        x_label=_short(ax.get_xlabel() or shared_label(ax, "x")),
        y_label=_short(ax.get_ylabel() or shared_label(ax, "y")),
        x_ticks=tuple(_short(text) for _, text in x_ticks.major[:40]),
        y_ticks=tuple(_short(text) for _, text in y_ticks.major[:40]),
        texts=tuple(_short(text.get_text()) for text in texts),
        images=tuple(number for number in images if number is not None),
        heat_maps=tuple(number for number in heat_maps if number is not None),
        row_names=tuple(map(_short, rows)),
        column_names=tuple(map(_short, columns)),
        text_cells=tuple(text_cells(ax, edges, texts)),
        lines=tuple(number for number, _ in lines),
        line_names=tuple(name for _, name in lines),
        bars=tuple(length for length, _ in bars),
        bar_names=tuple(_short(name) for _, name in bars),
        headings=tuple(_short(text) for text in headings(ax)),
        place=place(ax),
    )


def _stored(value: Any, arrays: dict[str, Any]) -> int | None:
    """Keep an image's values as float64 of up to three dimensions; None if there are too many."""
    value = np.ma.filled(np.ma.asarray(value, dtype=np.float64), math.nan)
    if value.size > 1_000_000 or value.ndim not in (1, 2, 3):
        return None
    number = sum(name.startswith("image") for name in arrays)
    arrays[f"image{number}"] = value
    return number


def _stored_line(coordinates: Coordinates, arrays: dict[str, Any]) -> int | None:
    """Keep a line's points as float64 (2, points); None when they are not numbers, or too many."""
    points = [np.ma.filled(np.ma.asarray(each, dtype=np.float64), math.nan) for each in coordinates]
    if points[0].ndim != 1 or points[0].shape != points[1].shape or points[0].size > MAX_POINTS:
        return None
    number = sum(name.startswith("line") for name in arrays)
    arrays[f"line{number}"] = np.stack(points)
    return number


def _short(text: object) -> str:
    return str(text)[:MAX_TEXT]
