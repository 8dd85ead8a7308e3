"""Where things stand in a figure."""

from collections.abc import Callable
from typing import Any

import matplotlib
import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.backends.backend_agg import FigureCanvasAgg

from grader.kit.rigged_data import classified_data
from grader.protocol.link import StudentRaised
from grader.protocol.replies import Axes, Ran
from grader.protocol.requests import RunFunction
from grader.worker.figure_pixels import few_colors, pixels_of
from grader.worker.figures import kept_figures
from grader.worker.quick_drawing import heatmaps_without_pixels

NAMES = ("low", "middle", "high")
MAP, LONG = np.arange(9.0).reshape(3, 3), ["a long name of a class"] * 3
HEAD = (
    "import numpy as np\nimport matplotlib.pyplot as plt\nnames = ['low', 'middle', 'high']\ncm = np.eye(3)\n"
)


@pytest.fixture
def ran(load: Callable[..., Any]) -> Callable[..., Ran]:
    """What a body that draws comes to: `ran(body, pictures=True)`."""

    def run(body: str, *, pictures: bool = False) -> Ran:
        lines = "\n".join(f"    {line}" for line in (HEAD + body).strip().splitlines())
        worker = load(f"def plot_confusion_matrix(model, data_loader, class_names):\n{lines}\n")
        data = classified_data(NAMES, (4,), accuracy=0.5, seed=1)
        request = RunFunction(
            "plot_confusion_matrix",
            ("model", "data_loader", "class_names"),
            data.batch_sizes,
            data.class_names,
            id_bits=data.id_bits,
            arrays=data.arrays,
            pictures=pictures,
        )
        found: Ran = worker.ask(request, Ran)
        return found

    return run


def drawn(ran: Ran) -> Any:
    """The first picture, RGB, uint8 (height, width, 3)."""
    return ran.arrays["palette0"][ran.arrays["figure0"]]


@pytest.fixture
def axes_of(ran: Callable[..., Ran]) -> Callable[[str], list[Axes]]:
    """What the axes of the figures that a body draws are described as."""
    return lambda body: [axes for figure in ran(body).figures for axes in figure.axes]


@pytest.mark.parametrize(
    "body",
    [
        "plt.imshow(cm)\nplt.yticks(range(3), names)",
        "plt.imshow(cm)\nplt.yticks([2, 0, 1], ['high', 'low', 'middle'])",
        "plt.imshow(cm, origin='lower')\nplt.yticks(range(3), names)",
        "plt.imshow(cm, extent=(0, 3, 0, 3))\nplt.yticks([2.5, 1.5, 0.5], names)",
        "plt.imshow(cm, origin='lower', extent=(0, 30, 0, 30))\nplt.yticks([5, 15, 25], names)",
        "plt.pcolormesh(cm)\nplt.yticks([0.5, 1.5, 2.5], names)",
        "plt.pcolormesh(cm)\nplt.yticks(range(3), names)",  # at the edges: meant all the same
        "plt.pcolor(cm)\nplt.yticks([0.5, 1.5, 2.5], names)\nplt.gca().invert_yaxis()",
        "import seaborn as sns\nsns.heatmap(cm, yticklabels=names)",
        "plt.matshow(cm)\nplt.gca().set_yticks(range(-1, 4))\nplt.gca().set_yticklabels(['', *names, ''])",
        "plt.imshow(cm)\nplt.gca().set_yticks([])\nplt.gca().set_yticks(range(3), names, minor=True)",
    ],
)
def test_names_stand_beside_their_rows(axes_of: Callable[[str], list[Axes]], body: str) -> None:
    """In the order of the array, however it is drawn and whatever the coordinates."""
    assert axes_of(body)[0].row_names == NAMES


def test_names_stand_beside_their_columns(axes_of: Callable[[str], list[Axes]]) -> None:
    """Also when the axis runs backwards."""
    (axes,) = axes_of("plt.imshow(cm)\nplt.xticks(range(3), names[::-1])\nplt.gca().invert_xaxis()")
    assert axes.column_names == NAMES[::-1]


@pytest.mark.parametrize(
    "body",
    [
        "plt.bar(names, [3, 1, 2])",
        "plt.barh(names, [3, 1, 2])\nplt.gca().invert_yaxis()",
        "plt.bar(range(3), [3, 1, 2], align='edge')\nplt.xticks([0.4, 1.4, 2.4], names)",
        "plt.bar([2, 0, 1], [3, 1, 2], bottom=5, tick_label=names)",
        "for at, (name, length) in enumerate(zip(names, [3, 1, 2])):\n    plt.bar([name], [length])",
        "import seaborn as sns\nsns.barplot(x=names, y=[3, 1, 2], hue=names)",
        "import seaborn as sns\nsns.barplot(y=names, x=[3, 1, 2])",
        "import pandas as pd\npd.Series([3, 1, 2], index=names).plot.barh()",
        "plt.axvspan(0.4, 0.6)\n"
        "for at, length in enumerate([3, 1, 2]):\n"
        "    plt.gca().add_patch(plt.Rectangle((at - 0.3, 1), 0.6, length))\n"
        "plt.xticks(range(3), names)\nplt.xlim(-1, 3)",
        "for at, length in enumerate([3, 1, 2]):\n"
        "    plt.gca().add_patch(plt.Rectangle((0, at - 0.3), length, 0.6))\n"
        "plt.yticks(range(3), names)\nplt.ylim(-1, 3)",
    ],
)
def test_bars_have_their_lengths_and_the_names_beside_them(
    axes_of: Callable[[str], list[Axes]], body: str
) -> None:
    """Standing or lying, and however they are drawn."""
    (axes,) = axes_of(body)
    assert sorted(zip(axes.bar_names, axes.bars, strict=True)) == sorted(zip(NAMES, (3, 1, 2), strict=True))


def test_a_line_along_names_has_their_places(ran: Callable[..., Ran]) -> None:
    """What is drawn over texts or dates is drawn at numbers."""
    found = ran(
        "plt.plot(names, [3, 1, 2])\nimport datetime\nplt.figure()\n"
        "plt.plot([datetime.date(2026, 1, day) for day in (1, 2)], [1, 2])"
    )
    assert found.arrays["line0"].tolist() == [[0, 1, 2], [3, 1, 2]]
    assert found.arrays["line1"][1].tolist() == [1, 2]


@pytest.mark.parametrize(
    ("body", "lines"),
    [
        ("plt.scatter([1, 2, 3], [4, 5, 6], label='a')", [([[1, 2, 3], [4, 5, 6]], "a")]),
        ("plt.scatter(names, [3, 1, 2])", [([[0, 1, 2], [3, 1, 2]], "")]),
        (
            "plt.plot([1, 2], [3, 4], label='a')\nplt.scatter([1], [3])",
            [([[1, 2], [3, 4]], "a"), ([[1], [3]], "")],
        ),
        (
            "plt.vlines([2, 5], 0, 1, label='a')",
            [([[2, 2], [0, 1]], "a"), ([[5, 5], [0, 1]], "a")],
        ),
        ("plt.hlines(2, 0, 1)", [([[0, 1], [2, 2]], "")]),
        ("plt.axvspan(2, 5, label='a')", [([[2, 2], [0, 1]], "a"), ([[5, 5], [0, 1]], "a")]),
        ("plt.axhspan(2, 5)", [([[0, 1], [2, 2]], ""), ([[0, 1], [5, 5]], "")]),
        ("plt.bar([0, 1], [3, 4])", []),
        ("plt.fill_between([0, 1], [3, 4])", []),
    ],
)
def test_lines_are_read_however_they_are_drawn(
    ran: Callable[..., Ran], body: str, lines: list[tuple[list[list[float]], str]]
) -> None:
    """Points, upright and lying lines, and the edges of spans, with the names that they were given."""
    found = ran(body)
    [axes] = [axes for figure in found.figures for axes in figure.axes]
    drawn_lines = [found.arrays[f"line{number}"].tolist() for number in axes.lines]
    assert list(zip(drawn_lines, axes.line_names, strict=True)) == lines


@pytest.mark.parametrize(
    "body",
    [
        "plt.imshow(cm)\nplt.gca().set_visible(False)",
        "plt.imshow(cm, alpha=0.0)\nplt.plot([1, 2], alpha=0)\nplt.text(0, 0, 'a', alpha=0.01)",
        "plt.pcolormesh(cm).set_visible(False)\nplt.text(0, 0, 'a').set_visible(False)",
    ],
)
def test_what_cannot_be_seen_is_not_there(axes_of: Callable[[str], list[Axes]], body: str) -> None:
    for axes in axes_of(body):
        assert (axes.images, axes.heat_maps, axes.lines, axes.texts) == ((), (), (), ())


def test_rectangles_that_stand_anywhere_are_no_bars(axes_of: Callable[[str], list[Axes]]) -> None:
    """Frames around something; and many images may lie in one axes."""
    frame = "plt.gca().add_patch(plt.Rectangle((at, 2 * at), 1, 1 + at, fill=False))"
    image = "plt.imshow(cm, extent=(at, at + 1, 0, 1))"
    (axes,) = axes_of(f"for at in range(16):\n    {frame}\n    {image}")
    assert axes.bars == () and len(axes.images) == 16


def test_a_bar_of_nothing_and_a_bar_without_a_name(axes_of: Callable[[str], list[Axes]]) -> None:
    (axes,) = axes_of("plt.bar([0, 7], [float('nan'), 2], width=0.5)\nplt.xticks([0, 1], names[:2])")
    assert (axes.bars, axes.bar_names) == ((0, 2), (NAMES[0], ""))


@pytest.mark.parametrize(
    ("body", "cells"),
    [
        ("plt.imshow(cm)\nplt.text(2, 0, 'a')\nplt.text(0, 1, 'b')", [(0, 2), (1, 0)]),
        ("plt.imshow(cm, origin='lower')\nplt.text(2, 0, 'a')", [(0, 2)]),
        ("import seaborn as sns\nsns.heatmap(cm, annot=True)", [(i, j) for i in range(3) for j in range(3)]),
        ("plt.imshow(cm)\nplt.text(0.5, 0.99, 'a', transform=plt.gca().transAxes)", [(0, 1)]),
        ("plt.imshow(cm)\nplt.text(-3, 0, 'a')\nplt.text(float('nan'), 0, 'b')", [(-1, -1), (-1, -1)]),
        ("plt.plot([1, 2])\nplt.text(1, 1, 'a')", []),
    ],
)
def test_a_text_lies_in_the_cell_over_which_it_is_drawn(
    axes_of: Callable[[str], list[Axes]], body: str, cells: list[tuple[int, int]]
) -> None:
    assert list(axes_of(body)[0].text_cells) == cells


def test_a_name_that_is_out_of_view_is_beside_nothing(axes_of: Callable[[str], list[Axes]]) -> None:
    """Labels without ticks of their own begin at the first tick, which is out of the map."""
    body = "plt.imshow(cm)\nplt.gca().set_xticks(range(-1, 3))\nplt.gca().set_xticklabels([*names, ''])"
    assert axes_of(body)[0].column_names == ("middle", "high", "")


def test_a_photograph_has_no_names(axes_of: Callable[[str], list[Axes]]) -> None:
    """It would have one per row of pixels."""
    (axes,) = axes_of("plt.imshow(np.zeros((60, 60)))")
    assert axes.row_names == axes.column_names == ()


def test_the_titles_of_subfigures_are_headings(axes_of: Callable[[str], list[Axes]]) -> None:
    """Of all that an axes is in, and of no other; the figure's own title is told elsewhere."""
    first, second = axes_of(
        "figure = plt.figure()\nfigure.suptitle('all')\ntop, bottom = figure.subfigures(2, 1)\n"
        "top.suptitle('top')\nleft, right = top.subfigures(1, 2)\nleft.suptitle('left')\n"
        "left.subplots()\nbottom.subplots()\nbottom.text(0.1, 0.5, 'note')"
    )
    assert set(first.headings) == {"left", "top"}
    assert second.headings == ("note",)


def test_texts_of_the_figure_belong_to_rows_and_columns(axes_of: Callable[[str], list[Axes]]) -> None:
    """Beside a row, or over a column."""
    axes = axes_of(
        "figure, grid = plt.subplots(2, 2)\nbox = grid[1, 0].get_position()\n"
        "figure.text(0.01, (box.y0 + box.y1) / 2, 'row')\n"
        "figure.text((box.x0 + box.x1) / 2, 0.95, 'column')"
    )
    assert [set(found.headings) for found in axes] == [{"column"}, set(), {"row", "column"}, {"row"}]
    assert axes[0].place[1] > axes[2].place[1] and axes[0].place[0] < axes[1].place[0]


def test_texts_of_the_figure_are_captions_below(axes_of: Callable[[str], list[Axes]]) -> None:
    """Under a column, or one for each axes of it, from the top."""
    draw = "for ax in grid.flat:\n    ax.imshow(cm)\n"
    under = axes_of(f"figure, grid = plt.subplots(2, 2)\n{draw}figure.text(0.3, 0.01, 'column')")
    assert [found.headings for found in under] == [("column",), (), ("column",), ()]
    each = axes_of(
        f"figure, grid = plt.subplots(3, 2)\n{draw}"
        "for row in range(3):\n    for column in range(2):\n"
        "        figure.text((column + 0.5) / 2, 1 - (row + 1) / 3, f'{row} {column}')"
    )
    assert [found.headings for found in each] == [
        (f"{row} {column}",) for row in range(3) for column in range(2)
    ]
    lines = axes_of(
        f"figure, grid = plt.subplots(3, 1)\n{draw}"
        "for line in range(3):\n    figure.text(0.5, 0.06 - line / 50, str(line))"
    )
    assert [found.headings for found in lines] == 3 * [("0", "1", "2")]


def test_all_texts_of_a_figure_belong_to_its_only_axes(axes_of: Callable[[str], list[Axes]]) -> None:
    (found,) = axes_of("plt.imshow(cm)\nplt.figtext(0.02, 0.02, 'corner')\nplt.figtext(0.5, 0.5, 'middle')")
    assert found.headings == ("corner", "middle")


@pytest.mark.parametrize("origin", ["upper", "lower"])
def test_filled_contours_are_a_map_of_the_image_below(ran: Callable[..., Ran], origin: str) -> None:
    """With hills, holes in a level, and the image in either direction."""
    body = (
        "y, x = np.mgrid[:12, :16]\nheat = np.hypot(x - 4, y - 5) / 2\n"
        f"plt.imshow(np.zeros((12, 16, 3)), origin='{origin}')\n"
        "plt.contourf(heat, levels=[0, 1.5, 3, 4.5, 6], alpha=0.4)"
    )
    found = ran(body)
    [axes] = found.figures[0].axes
    values = found.arrays[f"image{axes.heat_maps[0]}"]
    y, x = np.mgrid[:12, :16]
    heat = np.hypot(x - 4, y - 5) / 2
    assert values.shape == heat.shape and len(np.unique(values[np.isfinite(values)])) == 4
    assert np.mean(np.abs(values - heat) < 0.8) > 0.95


def test_labels_of_the_whole_figure_are_those_of_its_axes(axes_of: Callable[[str], list[Axes]]) -> None:
    """Where an axes has none of its own."""
    first, second = axes_of(
        "figure, (one, two) = plt.subplots(1, 2)\nfigure.supxlabel('Predicted')\n"
        "figure.supylabel('True')\ntwo.set_xlabel('own')"
    )
    assert (first.x_label, first.y_label, first.headings) == ("Predicted", "True", ())
    assert (second.x_label, second.y_label) == ("own", "True")


def test_labels_of_axes_that_are_turned_off_are_not_there(axes_of: Callable[[str], list[Axes]]) -> None:
    """Nobody sees them; the title is drawn all the same."""
    body = "plt.imshow(cm)\nplt.yticks(range(3), names)\nplt.title('here')\nplt.axis('off')"
    axes = axes_of(body)[0]
    assert (axes.row_names, axes.x_ticks, axes.y_ticks, axes.title) == (("",) * 3, (), (), "here")


@pytest.mark.parametrize("size", [(20, 5), (4, 30), (300, 2), (6, 4)])
def test_a_picture_is_as_large_as_a_report_shows_it(ran: Callable[..., Ran], size: tuple[int, int]) -> None:
    body = f"plt.figure(figsize={size})\nplt.imshow(cm)"
    height, width, colors = drawn(ran(body, pictures=True)).shape
    assert width <= 900 and height <= 1400 and colors == 3
    assert width >= 890 or height >= 1390 or (width, height) in ((600, 400), (800, 600))


def test_a_title_over_axes_that_are_turned_off_is_drawn(ran: Callable[..., Ran]) -> None:
    """Leaving out what is not shown leaves what is shown where it was."""
    body = "plt.figure(figsize=(3, 3))\nplt.imshow(cm)\nplt.axis('off')\n"
    bare, titled = (drawn(ran(body + more, pictures=True)) for more in ("", "plt.title('XXXXXXXX', y=None)"))
    # another picture has slightly other colors
    differences = np.abs(bare.astype(int) - titled)
    changed = (differences > 30).any(axis=2).any(axis=1).nonzero()[0]
    assert len(changed) and changed.max() < 60, "in the first fifth of 300 rows"


def test_a_tight_layout_is_made_where_a_picture_is(ran: Callable[..., Ran]) -> None:
    """Nothing that is read of a figure depends on it, and it takes as long as drawing; its mistakes count."""
    body = (
        "figure, (left, right) = plt.subplots(1, 2)\nleft.imshow(cm)\nleft.set_ylabel('a')\n"
        "left.axis('off')\n"
        "before = left.get_position().x0\nfigure.tight_layout()\n"
        "right.set_title(f'{left.get_position().x0 != before} {left.xaxis.get_visible()}')"
    )
    titles = [ran(body, pictures=pictures).figures[0].axes[1].title for pictures in (False, True)]
    assert titles == ["False True", "True True"]


@pytest.mark.parametrize("pictures", [False, True])
def test_a_wrong_argument_of_a_tight_layout_is_a_mistake(ran: Callable[..., Ran], pictures: bool) -> None:
    with pytest.raises(StudentRaised, match=r"Figure.tight_layout.*padding"):
        ran("plt.imshow(cm)\nplt.gcf().tight_layout(padding=3)", pictures=pictures)


def test_a_picture_has_few_colors_on_white(ran: Callable[..., Ran]) -> None:
    """Also where the figure has no background."""
    shown = ran("plt.figure(facecolor='none')\nplt.imshow(cm, cmap='jet')\nplt.axis('off')", pictures=True)
    assert len(shown.arrays["palette0"]) <= 128
    picture = drawn(shown).astype(int)
    assert (picture[:5] >= 250).all()
    red, blue = (
        (picture[..., 0] > 100) & (picture[..., 2] < 30),
        (picture[..., 2] > 100) & (picture[..., 0] < 30),
    )
    assert red.mean() > 0.05 and blue.mean() > 0.1


def test_labels_of_a_heat_map_that_overlap_are_turned(ran: Callable[..., Ran]) -> None:
    """Seaborn measures them, and finds the same as if the figure had been drawn for that."""
    body = (
        "import seaborn as sns\nlong = ['a long name of a class'] * 3\nplt.figure(figsize={})\n"
        "ax = sns.heatmap(cm, xticklabels=long)\nplt.title(ax.get_xticklabels()[0].get_rotation())"
    )
    for size, turned in (((3, 3), 90.0), ((20, 3), 0.0)):
        assert ran(body.format(size)).figures[0].axes[0].title == str(turned)


def heat_maps_side_by_side() -> Any:
    import seaborn as sns

    figure, (left, right) = plt.subplots(1, 2, figsize=(7, 4))
    sns.heatmap(MAP, square=True, annot=True, xticklabels=LONG, yticklabels=LONG, ax=left)
    sns.heatmap(MAP, cbar_kws={"extend": "both", "label": "points"}, xticklabels=LONG, ax=right)
    right.set_title("after")
    figure.tight_layout()
    return figure


def a_heat_map_placed_by_an_engine() -> Any:
    import seaborn as sns

    figure, axes = plt.subplots(2, 1, layout="constrained")
    sns.heatmap(MAP, xticklabels=LONG, yticklabels=LONG, ax=axes[0])
    axes[1].plot(MAP[0])
    return figure


def a_heat_map_within() -> Any:
    import seaborn as sns

    figure = plt.figure(figsize=(8, 3))
    halves: Any = figure.subfigures(1, 2)
    left, right = halves
    left.suptitle("left")
    left.add_subplot().plot(MAP[0])
    left.axes[0].set_visible(False)
    sns.heatmap(MAP, square=True, xticklabels=LONG, yticklabels=LONG, ax=right.add_subplot())
    return figure


def shown(figure: Any) -> Any:
    """RGBA, uint8 (height, width, 4)."""
    canvas: Any = FigureCanvasAgg(figure)
    canvas.draw()
    plt.close(figure)
    return np.asarray(canvas.buffer_rgba())


@pytest.mark.parametrize("make", [heat_maps_side_by_side, a_heat_map_placed_by_an_engine, a_heat_map_within])
def test_a_heat_map_looks_as_if_it_had_been_drawn_to_measure_it(make: Callable[[], Any]) -> None:
    with heatmaps_without_pixels():
        found = make()
    np.testing.assert_array_equal(shown(found), shown(make()))


def test_nothing_of_a_heat_map_is_drawn_to_measure_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """If a new seaborn measures in another way, this says that nothing is gained any more."""
    import seaborn as sns
    from matplotlib.axes import Axes as DrawnAxes

    def draw(ax: Any, renderer: Any) -> None:
        assert not ax.get_visible()

    monkeypatch.setattr(DrawnAxes, "draw", draw)
    with kept_figures(pictures=False):
        ax = sns.heatmap(MAP, annot=True)
    assert ax.get_visible()
    assert ax.figure.get_visible()


def test_settings_of_matplotlib_are_as_before() -> None:
    """What is changed to draw faster does not stay."""
    matplotlib.rcParams["text.hinting"] = "either"
    with kept_figures(pictures=True):
        assert matplotlib.rcParams["text.hinting"] == "none"
    assert matplotlib.rcParams["text.hinting"] == "either"


@pytest.mark.parametrize("title", ["one", "one\ntwo", "$x_y$ g"])
def test_a_title_above_hidden_axes_is_where_matplotlib_draws_it(title: str) -> None:
    """Although where it is drawn is not measured."""
    from matplotlib.figure import Figure

    def figure() -> Figure:
        made = Figure(figsize=(3, 2), dpi=100)
        for number in (1, 2):
            ax = made.add_subplot(1, 2, number)
            ax.imshow([[0.0, 1.0], [1.0, 0.5]], cmap="gray")
            ax.axis("off")
            ax.set_title(title)
        return made

    canvas = FigureCanvasAgg(figure())
    canvas.draw()
    np.testing.assert_array_equal(pixels_of(figure()), np.asarray(canvas.buffer_rgba()))


def test_shades_of_gray_are_kept_within_a_step_of_32() -> None:
    gray = np.tile(np.arange(256, dtype=np.uint8)[:, None, None], (1, 3, 4))
    gray[..., 3] = 255
    indexes, palette = few_colors(gray)
    assert len(palette) == 32
    assert abs(palette[indexes].astype(int) - gray[..., :3].astype(int)).max() <= 8
    colors = np.random.default_rng(1).integers(0, 256, (40, 40, 4), dtype=np.uint8)
    colors[..., 3] = 255
    _, palette = few_colors(colors)
    assert 32 < len(palette) <= 128, "too many for steps: the best 128 are chosen"
