"""What is drawn in axes, as numbers: lines and points, bars, and what filled contours show over an image.

Only what can be seen counts, within bounds. Names are those that something was given; a bar has that of the
tick nearest to its middle.

Tests: tests/worker/test_figures.py, tests/worker/test_rigged_runs.py
"""

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from grader.worker.drawn_cells import ROUNDING, TickLabels

MAX_BARS = 100  # of axes
MAX_NAME = 300  # letters
MAX_CONTOURED, MAX_POLYGONS = 65_536, 100  # pixels under filled contours; of one level
TRANSPARENT = 0.02  # of an artist: nobody sees it

Coordinates = Sequence[Any]  # horizontal and vertical, each of all points


def visible(artists: Sequence[Any]) -> list[Any]:
    """Those that can be seen: neither switched off nor wholly transparent."""
    return [
        artist
        for artist in artists
        if artist.get_visible()
        and ((alpha := artist.get_alpha()) is None or float(np.max(alpha)) > TRANSPARENT)
    ]


def lines_of(ax: Any) -> Iterator[tuple[Coordinates, str]]:
    """The coordinates of each line, and its name; empty if it has none.

    Points that are scattered are a line, and so is each line of `vlines` and `hlines`. A span of `axvspan` or
    `axhspan` has two lines, its edges, from 0 to 1 of the axes.
    """
    for line in visible(ax.lines):
        yield line.get_data(orig=False), _given_name(line)  # names and dates as the numbers where they are
    for collection in visible(ax.collections):
        name = _given_name(collection)
        match type(collection).__name__:
            case "PathCollection":
                yield tuple(np.ma.asarray(collection.get_offsets()).T), name
            case "LineCollection":
                for segment in collection.get_segments():
                    yield tuple(np.asarray(segment).T), name
    for patch in visible(ax.patches):
        within = patch.get_transform().contains_branch_seperately(ax.transData)
        if within in ((True, False), (False, True)):
            corners = patch.get_path().transformed(patch.get_patch_transform()).vertices
            along = corners[:, 0 if within[0] else 1]
            for edge in (along.min(), along.max()):
                places = (edge, edge), (0.0, 1.0)
                yield places if within[0] else places[::-1], _given_name(patch)


def _given_name(artist: Any) -> str:
    """The label that something was given; matplotlib's own begin with an underscore."""
    name = str(artist.get_label())[:MAX_NAME]
    return "" if name.startswith("_") else name


def named_bars(ax: Any, x_ticks: TickLabels, y_ticks: TickLabels) -> list[tuple[float, str]]:
    """Each bar's length, 0 if it is not a number, and the tick label nearest to its middle.

    A bar within whose width there is none has an empty text.

    Args:
        x_ticks, y_ticks: Of the axes.
    """
    bars: list[tuple[float, str]] = []
    for patches, lies in _groups_of_bars(ax):
        ticks = [(at, text) for at, text in (y_ticks if lies else x_ticks).major if text.strip()]
        for bar in patches[: MAX_BARS - len(bars)]:
            standing = (bar.get_x(), bar.get_width(), bar.get_height())
            start, width, length = (bar.get_y(), bar.get_height(), bar.get_width()) if lies else standing
            middle = start + width / 2
            within = [(abs(at - middle), text) for at, text in ticks if abs(at - middle) <= abs(width) / 2]
            name = min(within)[1] if within else ""
            bars.append((float(length) if math.isfinite(length) else 0.0, name))
    return bars


def _groups_of_bars(ax: Any) -> Iterator[tuple[list[Any], bool]]:
    """(rectangles, whether they lie): of each bar chart, and those drawn by hand on one line."""
    charts = [each for each in ax.containers if type(each).__name__ == "BarContainer"]
    for chart in charts:
        yield list(chart.patches), chart.orientation == "horizontal"
    of_charts = {id(bar) for chart in charts for bar in chart.patches}
    loose = [
        patch
        for patch in visible(ax.patches)[:MAX_BARS]
        # a span's goes by the axes in one direction
        if type(patch).__name__ == "Rectangle" and patch.get_data_transform() == ax.transData
        if id(patch) not in of_charts
    ]
    if len(loose) > 1:
        for lies, begin in ((False, [bar.get_y() for bar in loose]), (True, [bar.get_x() for bar in loose])):
            if min(begin) == max(begin):
                yield loose, lies
                return


def filled_contours(ax: Any, pictures: Sequence[Any]) -> Iterator[Any]:
    """What filled contours show over the first picture of an axes: the level of each pixel, NaN if none."""
    from matplotlib.path import Path

    contours = [each for each in visible(ax.collections)[:4] if type(each).__name__.endswith("ContourSet")]
    if not pictures or not contours:
        return
    height, width = pictures[0].get_array().shape[:2]
    if height * width > MAX_CONTOURED:
        return
    left, right, bottom, top = pictures[0].get_extent()
    x = left + (np.arange(width) + 0.5) * (right - left) / width
    y = np.linspace(top, bottom, 2 * height + 1)[1::2]
    if pictures[0].origin == "lower":
        y = y[::-1]
    centers = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
    middle = centers.mean(axis=0)
    centers = middle + (1 - ROUNDING) * (centers - middle)  # those at the edge lie within it
    for contour in contours:
        if not getattr(contour, "filled", False):
            continue
        values = np.full(len(centers), math.nan)
        for level, path in zip(contour.get_array(), contour.get_paths(), strict=False):
            inside = np.zeros(len(centers), dtype=bool)
            for polygon in itertools.islice(path.to_polygons(), MAX_POLYGONS):
                inside ^= Path(polygon).contains_points(centers)  # a polygon in another one is a hole
            values[inside] = level
        yield values.reshape(height, width)
