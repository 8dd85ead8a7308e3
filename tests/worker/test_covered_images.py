"""What lies wholly under something opaque is not there; what shows through, or beside, is."""

from collections.abc import Iterator
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.colors import ListedColormap, LogNorm

from grader.worker.covered_images import uncovered

PHOTOGRAPH = np.linspace(0, 1, 48).reshape(4, 4, 3)
MAP = np.linspace(0.1, 1, 16).reshape(4, 4)
PART = np.where(MAP > 0.5, MAP, np.nan)
SEEN_THROUGH = np.dstack([PHOTOGRAPH, MAP])


@pytest.fixture
def ax() -> Iterator[Any]:
    with mpl.rc_context({"backend": "agg"}):
        figure, axes = plt.subplots()
        yield axes
        plt.close(figure)


@pytest.mark.parametrize(
    ("values", "how"),
    [
        (MAP, {}),
        (MAP, {"alpha": 1.0, "cmap": "jet"}),
        (MAP, {"extent": (-1, 4, 4, -1)}),
        (PHOTOGRAPH, {"zorder": 3}),
        (np.dstack([PHOTOGRAPH, np.ones((4, 4))]), {}),
        (np.full((4, 4, 4), 255, np.uint8), {}),
        (MAP, {"clip_on": False}),
    ],
)
def test_an_image_under_an_opaque_one_is_hidden(ax: Any, values: Any, how: dict[str, Any]) -> None:
    ax.imshow(PHOTOGRAPH)
    above = ax.imshow(values, **how)
    assert uncovered(ax.images) == [above]


@pytest.mark.parametrize(
    ("values", "how"),
    [
        (MAP, {"alpha": 0.5}),
        (MAP, {"alpha": MAP}),
        (PART, {}),
        (np.ma.masked_less(MAP, 0.5), {}),
        (SEEN_THROUGH, {}),
        ((255 * SEEN_THROUGH).astype(np.uint8), {}),
        (MAP, {"cmap": ListedColormap([(1, 0, 0, 0), (1, 0, 0, 1)])}),
        (MAP - 0.5, {"norm": LogNorm(0.1, 1)}),
        (MAP, {"extent": (4, 8, 4, 8)}),
        (MAP, {"extent": (0, 2, 0, 2)}),
    ],
)
def test_what_shows_through_or_beside_hides_nothing(ax: Any, values: Any, how: dict[str, Any]) -> None:
    ax.imshow(PHOTOGRAPH)
    ax.imshow(values, **how)
    assert len(uncovered(ax.images)) == 2


def test_one_that_cannot_be_colored_hides_nothing(ax: Any) -> None:
    ax.imshow(PHOTOGRAPH)
    ax.imshow(MAP, vmin=5, vmax=1)
    assert len(uncovered(ax.images)) == 2


def test_one_that_is_cut_to_a_shape_hides_nothing(ax: Any) -> None:
    ax.imshow(PHOTOGRAPH)
    ax.imshow(MAP).set_clip_path(plt.Circle((2, 2), 1, transform=ax.transData))
    ax.imshow(MAP).set_clip_path(plt.Rectangle((0, 0), 1, 1, transform=ax.transData))
    assert len(uncovered(ax.images)) == 3


def test_one_that_is_turned_hides_nothing(ax: Any) -> None:
    ax.imshow(PHOTOGRAPH)
    ax.imshow(MAP).set_transform(mpl.transforms.Affine2D().rotate_deg(30) + ax.transData)
    assert len(uncovered(ax.images)) == 2


def test_the_order_is_that_of_drawing(ax: Any) -> None:
    """What was drawn first may lie above what was drawn last."""
    above = ax.imshow(MAP, zorder=5)
    ax.imshow(PHOTOGRAPH)
    assert uncovered(ax.images) == [above]
    shown = [ax.imshow(MAP, extent=(x, x + 1, 0, 1), zorder=9) for x in range(10, 14)]
    assert uncovered(ax.images) == [above, *shown]
