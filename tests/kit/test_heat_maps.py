"""What the cells of a map show: by their colors, or by the numbers that are written in them."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from grader.kit import heat_maps
from grader.protocol.replies import Axes

NAMES = ("cat", "dog", "cow")
COUNTS = np.array([[30.0, 1, 0], [2, 41, 7], [0, 5, 12]])


def shown(colors: Any, written: Any = None) -> list[Any]:
    """The maps of a figure with an image, and numbers written in its cells."""
    cells = [] if written is None else list(np.ndindex(3, 3))
    axes = Axes(
        "",
        images=(0,),
        row_names=NAMES,
        column_names=NAMES,
        texts=tuple(f"{written[cell]:g}" for cell in cells),
        text_cells=tuple(cells),
    )
    run = SimpleNamespace(
        figures=[SimpleNamespace(title="", axes=(axes,))], arrays={"image0": np.asarray(colors, np.float64)}
    )
    return heat_maps(run, NAMES)


@pytest.mark.parametrize(
    "colors",
    [np.log1p(COUNTS), -COUNTS, np.minimum(COUNTS, 6), COUNTS / COUNTS.sum(), np.sqrt(COUNTS)],
    ids=["logarithms", "reversed", "limited", "shares", "roots"],
)
def test_numbers_in_cells_count_where_the_colors_follow_them(colors: Any) -> None:
    [found] = shown(colors, COUNTS)
    assert np.array_equal(found.counted, COUNTS) and np.array_equal(found.values, colors)


@pytest.mark.parametrize(
    ("colors", "written"),
    [(COUNTS, None), (COUNTS, COUNTS.T), (np.ones((3, 3)), COUNTS), (np.log1p(COUNTS), COUNTS[::-1])],
    ids=["nothing is written", "the other way round", "one color", "other rows"],
)
def test_else_the_colors_count(colors: Any, written: Any) -> None:
    [found] = shown(colors, written)
    assert np.array_equal(found.counted, colors)


def test_of_a_map_in_colors_of_its_own_the_numbers_count() -> None:
    """Three or four channels; without numbers nobody knows what it shows."""
    for channels in (3, 4):
        colors = np.stack([COUNTS / 41] * channels, axis=2)
        [found] = shown(colors, COUNTS)
        assert np.array_equal(found.values, COUNTS) and found.is_named
        assert shown(colors) == []
