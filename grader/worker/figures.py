"""Figures: drawn without a screen, kept open, read as structure and as pixels.

It computes titles, labels, images, heat maps and lines, within bounds. A geometric heuristic decides which
label belongs to which cell (it lies within), and which heading to which axes (it is beside, above or below).
If there are as many labels as cells, or headings as axes in a column, they are matched in order. If nothing
fits, the name is empty. The assignment's checks decide whether a figure shows what it should.

Tests: tests/worker/test_figures.py, tests/worker/test_rigged_runs.py
"""

import contextlib
import itertools
import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from grader.protocol.replies import Axes, DrawnFigure
from grader.worker.covered_images import uncovered
from grader.worker.lazy_ticks import lazy_ticks
from grader.worker.student_faults import students_code

MAX_CELLS = 40  # rows or columns that may have names; a photograph has more
MAX_TEXTS = 100  # of a figure
MAX_BARS = 100  # of axes
MAX_IMAGES = 64  # of axes: the patches of an image may all be in one
MAX_CONTOURED, MAX_POLYGONS = 65_536, 100  # pixels under filled contours; of one level
TRANSPARENT = 0.02  # of an artist: nobody sees it

Coordinates = Sequence[Any]  # horizontal and vertical, each of all points
EPSILON = 1e-6

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
    name = _short(artist.get_label())
    return "" if name.startswith("_") else name


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
    centers = middle + (1 - EPSILON) * (centers - middle)  # those at the edge lie within it
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


def _beside(labels: TickLabels, edges: Any) -> list[str]:
    """The label of each cell: the nearest within it, or in order if there are as many labels as cells."""
    low, high = min(edges[0], edges[-1]), max(edges[0], edges[-1])
    slack = (high - low) * EPSILON
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


# --- figures ---------------------------------------------------------------------------------------------


MAX_FIGURES = 40
MAX_PICTURES = 3
MAX_AXES = 80
MAX_WIDTH, MAX_HEIGHT = 900, 1400  # pixels: as large as a report shows it
COLORS, OPAQUE = 128, 255  # of a picture; the alpha of a pixel through which nothing is seen
MAX_INCHES = 100  # of a figure that is drawn at its own size
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
                arrays[f"figure{pixels}"], arrays[f"palette{pixels}"] = _indexed(_pixels(figure))
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
            with _hidden_axes_unmeasured(figure):
                original_layout(figure, pad=pad, h_pad=h_pad, w_pad=w_pad, rect=rect)

    tight_layout.__qualname__ = original_layout.__qualname__  # its errors name it as matplotlib's
    plt.show = plt.close = take
    Figure.tight_layout = tight_layout  # type: ignore[assignment,method-assign]
    try:
        with lazy_ticks(), _heatmaps_without_pixels(), _letters_not_fitted():
            yield kept
    finally:
        plt.show, plt.close, Figure.tight_layout = show, close, original_layout  # type: ignore[method-assign]
        plt.close("all")


@contextlib.contextmanager
def _letters_not_fitted() -> Iterator[None]:
    """Keep matplotlib from fitting letters to pixels: a fifth of the time of drawing, and hardly seen."""
    import matplotlib

    before = matplotlib.rcParams["text.hinting"]
    matplotlib.rcParams["text.hinting"] = "none"
    try:
        yield
    finally:
        matplotlib.rcParams["text.hinting"] = before


@contextlib.contextmanager
def _heatmaps_without_pixels() -> Iterator[None]:
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
def _hidden_axes_unmeasured(figure: Any) -> Iterator[None]:
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


def _pixels(figure: Any) -> Any:
    """RGBA, uint8 (height, width, 4), at most MAX_WIDTH wide and MAX_HEIGHT high."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    if max(figure.get_size_inches()) > MAX_INCHES:
        figure.set_size_inches(8, 6)
    width, height = (max(float(side), 0.1) for side in figure.get_size_inches())
    figure.set_dpi(min(100.0, MAX_WIDTH / width, MAX_HEIGHT / height))
    canvas = FigureCanvasAgg(figure)  # pyplot took the figure's canvas away when it released it
    # what cannot be drawn raises here, as it would in `show` elsewhere
    with _hidden_axes_unmeasured(figure), students_code():
        canvas.draw()  # type: ignore[no-untyped-call]
    return np.asarray(canvas.buffer_rgba())  # type: ignore[no-untyped-call]


def _indexed(pixels: Any) -> tuple[Any, Any]:
    """A picture with few colors, on white: a quarter of the bytes on their way to the report.

    Figures in shades of gray have few enough colors when each is rounded to one of 32 steps; for others, the
    method that chooses the colors is several times faster than the default, and no worse here.

    Args:
        pixels: RGBA, uint8 (height, width, 4).

    Returns:
        For each pixel the row of its color, uint8 (height, width), and the colors, uint8 (colors, 3).
    """
    from PIL import Image

    image = Image.fromarray(pixels)
    if pixels[..., 3].min() < OPAQUE:
        image = Image.alpha_composite(Image.new("RGBA", image.size, "white"), image)
        pixels = np.asarray(image)
    rounded = _rounded(pixels)
    if rounded is not None:
        return rounded
    indexed = image.convert("RGB").quantize(COLORS, method=Image.Quantize.FASTOCTREE)
    return np.asarray(indexed), np.array(indexed.getpalette("RGB"), dtype=np.uint8).reshape(-1, 3)


def _rounded(pixels: Any) -> tuple[Any, Any] | None:
    """The picture with each color rounded to one of 32 steps; None if these are too many colors.

    Args:
        pixels: RGBA, uint8 (height, width, 4), opaque.
    """
    words = np.ascontiguousarray(pixels).view("<u4")[..., 0]  # red is the lowest byte
    codes = ((words >> 3) & 31) | ((words >> 6) & 31 << 5) | ((words >> 9) & 31 << 10)
    used = np.flatnonzero(np.bincount(codes.ravel(), minlength=1 << 15))
    if len(used) > COLORS:
        return None
    number_of = np.zeros(1 << 15, dtype=np.uint8)
    number_of[used] = np.arange(len(used))
    steps = np.stack([used & 31, used >> 5 & 31, used >> 10], axis=1)
    return number_of[codes], (steps * 255 // 31).astype(np.uint8)


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
