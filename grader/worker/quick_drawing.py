"""Spares matplotlib and seaborn what takes most of the time of drawing, and is neither read nor seen.

Letters are not fitted to pixels, a heat map is not drawn just to measure its labels, and the ticks of hidden
axes are neither made nor measured. What a figure shows stays as it is.

Tests: tests/worker/test_figures.py, tests/worker/test_rigged_runs.py
"""

import contextlib
import sys
from collections.abc import Iterator
from typing import Any


@contextlib.contextmanager
def letters_not_fitted() -> Iterator[None]:
    """Keep matplotlib from fitting letters to pixels: a fifth of the time of drawing, and hardly seen."""
    import matplotlib

    before = matplotlib.rcParams["text.hinting"]
    matplotlib.rcParams["text.hinting"] = "none"
    try:
        yield
    finally:
        matplotlib.rcParams["text.hinting"] = before


@contextlib.contextmanager
def heatmaps_without_pixels() -> Iterator[None]:
    """Keep seaborn from drawing a heat map just to measure its labels."""
    matrix: Any = sys.modules.get("seaborn.matrix")
    original = getattr(matrix, "_draw_figure", None)
    if original is None:  # not in use, or a version that measures in another way
        yield
        return
    matrix._draw_figure = _axes_placed
    try:
        yield
    finally:
        matrix._draw_figure = original


def _axes_placed(figure: Any) -> None:
    """Give the axes of a figure the places that they have when it is drawn, without drawing them.

    Labels are at their ticks as soon as they are set; drawing only moves the axes.
    """
    root = figure.get_figure(root=True)
    shown = [part for part in root.get_children() if part.get_visible()]
    # an engine places them by all that they hold
    hidden = shown if root.get_layout_engine() is None else []
    for part in hidden:
        part.set_visible(False)
    try:
        root.draw_without_rendering()
    finally:
        for part in hidden:
            part.set_visible(True)


@contextlib.contextmanager
def hidden_axes_unmeasured(figure: Any) -> Iterator[None]:
    """Keep matplotlib from making and measuring the ticks of hidden axes to place the title above them."""
    hidden = [
        axis for ax in figure.axes if not ax.axison for axis in (ax.xaxis, ax.yaxis) if axis.get_visible()
    ]
    # above hidden axes there is nothing that a title without a place of its own would make way for
    titled: list[Any] = [ax for ax in figure.axes if not ax.axison and getattr(ax, "_autotitlepos", None)]
    for axis in hidden:
        axis.set_visible(False)
        # to find out where its ticks are, it would make one; of a hidden axis it makes no difference
        axis.get_ticks_position = _nowhere_special  # type: ignore[method-assign]
    for ax in titled:
        ax._autotitlepos = False
    try:
        yield
    finally:
        for ax in titled:
            ax._autotitlepos = True
        for axis in hidden:
            del axis.get_ticks_position
            axis.set_visible(True)


def _nowhere_special() -> str:
    return "default"
