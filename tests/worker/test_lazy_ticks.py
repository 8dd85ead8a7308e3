"""Figures whose ticks are made later look as matplotlib draws them."""

import contextlib
from collections.abc import Callable
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.axis import XTick, YTick
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.spines import Spine

from grader.worker.lazy_ticks import lazy_ticks

VALUES = np.arange(36.0).reshape(6, 6)


def grid_of_images() -> Any:
    figure, axes = plt.subplots(2, 3)
    for ax in axes.flat:
        ax.imshow(VALUES, cmap="gray")
        ax.set_title("True: a\nPredicted: b", fontsize=8)
        ax.axis("off")
    figure.tight_layout()
    return figure


def heat_map() -> Any:
    import seaborn

    figure, ax = plt.subplots()
    seaborn.heatmap(VALUES, annot=True, xticklabels=list("abcdef"), yticklabels=list("abcdef"), ax=ax)
    ax.set_xlabel("Predicted")
    figure.tight_layout()
    return figure


def labels_turned_and_moved() -> Any:
    figure, ax = plt.subplots()
    ax.matshow(VALUES)
    ax.set_xticks(range(6), list("abcdef"), rotation=45, ha="left")
    ax.tick_params(axis="y", which="both", labelcolor="red", direction="in", length=9, pad=7, labelsize=6)
    ax.yaxis.tick_right()
    return figure


def grids_and_minor_ticks() -> Any:
    figure, (left, right) = plt.subplots(1, 2, sharey=True)
    left.plot(VALUES[0], VALUES[1])
    left.minorticks_on()
    left.grid(True, which="both", color="green", linestyle=":")
    right.semilogy(VALUES[0] + 1, VALUES[1])
    right.grid(axis="x")
    right.set_xlim(1, 3)
    return figure


def twins() -> Any:
    figure, ax = plt.subplots()
    ax.plot(VALUES[0])
    other = ax.twinx()
    other.plot(VALUES[5], "r--")
    other.tick_params(labelcolor="red")
    ax.invert_yaxis()
    return figure


def a_hidden_axis() -> Any:
    figure, axes = plt.subplots(2, 2, sharex=True)
    for ax, hidden in zip(axes.flat, ("xaxis", "yaxis", "patch", "title"), strict=True):
        ax.plot(VALUES[0])
        ax.set_title("above")
        getattr(ax, hidden).set_visible(False)
        ax.spines["right"].set_visible(False)
        ax.spines["left"].set_position(("outward", 6))
        ax.spines["bottom"].set_position("zero")
    figure.tight_layout()
    return figure


def insets_and_colorbars() -> Any:
    figure, ax = plt.subplots(layout="constrained")
    figure.colorbar(ax.imshow(VALUES), ax=ax, label="points")
    small = ax.inset_axes((0.6, 0.6, 0.3, 0.3))
    small.bar([1, 2, 3], [3, 2, 1])
    small.set_xticks([])
    figure.suptitle("inside")
    return figure


def round_and_deep() -> Any:
    figure = plt.figure()
    figure.add_subplot(1, 2, 1, projection="polar").plot(VALUES[0], VALUES[1])
    figure.add_subplot(1, 2, 2, projection="3d").plot(VALUES[0], VALUES[1], VALUES[2])
    return figure


def ticks_begun_again() -> Any:
    figure, ax = plt.subplots()
    ax.plot(VALUES[0])
    ax.tick_params(reset=True, colors="purple")
    ax.set_clip_path(ax.patch)
    ax.clear()
    ax.barh(["one", "two"], [1, 2])
    return figure


def drawn_in_a_style() -> Any:
    with plt.style.context("dark_background"), mpl.rc_context({"axes.grid": True, "xtick.major.size": 12}):
        figure, ax = plt.subplots()
    ax.plot(VALUES[0])
    return figure


FIGURES = [
    *(grid_of_images, heat_map, labels_turned_and_moved, grids_and_minor_ticks, twins),
    *(a_hidden_axis, insets_and_colorbars, round_and_deep, ticks_begun_again, drawn_in_a_style),
]


def pixels(make: Callable[[], Any], *, lazy: bool) -> Any:
    """RGBA, uint8 (height, width, 4)."""
    with lazy_ticks() if lazy else contextlib.nullcontext():
        figure = make()
        canvas = FigureCanvasAgg(figure)
        canvas.draw()
        plt.close(figure)
    return np.asarray(canvas.buffer_rgba()).copy()


@pytest.mark.sampled(3)
@pytest.mark.parametrize("make", FIGURES)
def test_a_figure_looks_the_same(make: Callable[[], Any]) -> None:
    np.testing.assert_array_equal(pixels(make, lazy=True), pixels(make, lazy=False))


def test_hidden_axes_make_no_ticks(monkeypatch: pytest.MonkeyPatch) -> None:
    """If a new matplotlib asks for them anyway, this says that nothing is gained any more."""
    made: list[Any] = []
    for kind in (XTick, YTick):
        original = kind.__init__

        def counted(tick: Any, *args: Any, original: Any = original, **kwargs: Any) -> None:
            made.append(tick)
            original(tick, *args, **kwargs)

        monkeypatch.setattr(kind, "__init__", counted)
    with lazy_ticks():
        figure, axes = plt.subplots(3, 2)
        for ax in axes.flat:
            ax.axis("off")
            ax.imshow(VALUES)
        plt.close(figure)
    assert made == []


def test_spines_of_new_axes_begin_no_ticks_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes a sixth of the time of making axes, for ticks that are not there."""
    placed: list[Any] = []
    monkeypatch.setattr(Spine, "set_position", lambda spine, position: placed.append(position))
    with lazy_ticks():
        figure, axes = plt.subplots(3, 2)
        plt.close(figure)
    assert placed == []
    assert {spine.get_position() for ax in axes.flat for spine in ax.spines.values()} == {("outward", 0.0)}


def test_matplotlib_is_as_it_was_afterwards() -> None:
    from matplotlib.axis import Axis

    before = {name: vars(Axis)[name] for name in ("majorTicks", "minorTicks", "set_tick_params")}
    with lazy_ticks():
        assert vars(Axis)["majorTicks"] is not before["majorTicks"]
    assert {name: vars(Axis)[name] for name in before} == before
