import math
import re
from itertools import pairwise
from xml.etree import ElementTree

import pytest

from grader.reports.typesetting import text
from grader.reports.whole_class.class_charts import (
    Dot,
    claims_scatter,
    item_histogram,
    parameters_scatter,
    time_scatter,
    totals_histogram,
)

DOTS = [
    Dot("1001", 20_000, 0.4),
    Dot("1002", 500_000, 0.8),
    Dot("1003", 3_000_000, 0.17, apart=True),
]
CLAIMS = [
    Dot("1001", 0.8, 0.79),
    Dot("1002", 0.9, 0.6, apart=True),
    Dot("1003", 0.5, 0.7, apart=True),
    Dot("4", 0.8, 0.6, apart=True),
]


def tree(svg):
    return ElementTree.fromstring(str(svg))


def plain(text):
    return text.replace("\N{NO-BREAK SPACE}", " ")


def marks(svg):
    """(x, y) of every mark that stands for a submission: those of the key have no words of their own."""
    found = []
    for mark in tree(svg).iter():
        if mark.get("class", "").startswith("mark") and mark.find("title") is not None:
            at = mark.get("d", "").removeprefix("M").split("l")[0].split() or [mark.get("cx"), mark.get("cy")]
            found.append((float(at[0]), float(at[1])))
    return found


def texts(svg):
    return [plain(words.text) for words in tree(svg).iter("text")]


def test_every_chart_is_well_formed_and_says_in_words_what_it_shows():
    for svg in (
        totals_histogram([10, 50, 50], 100, (50,)),
        item_histogram([1, 2, 5], 5),
        parameters_scatter(DOTS, 0.6),
        time_scatter(DOTS, None),
        claims_scatter(CLAIMS, 0.05),
    ):
        root = tree(svg)
        assert root.get("role") == "img"
        assert root.get("aria-label") == root.find("title").text
        assert re.search(r"\d", root.get("aria-label"))


def test_nothing_to_draw_is_no_chart():
    assert totals_histogram([], 100) == item_histogram([], 5) == claims_scatter([], 0.05) == ""
    assert parameters_scatter([], 0.6) == time_scatter([], 0.6) == ""
    assert parameters_scatter([Dot("a", 0, 0.5), Dot("b", 10, math.nan), Dot("c", math.inf, 0.5)], 0.6) == ""
    assert claims_scatter([Dot("a", math.nan, 0.5), Dot("b", 0.5, math.inf)], 0.05) == ""


def test_histogram_counts_the_full_total_in_the_last_bin():
    label = tree(totals_histogram([0, 100, 95, 90], 100)).get("aria-label")
    assert "1 from 0 to 10" in label and "3 from 90 to 100" in label and "median 92.5" in label


def test_boundaries_are_marked_at_their_points():
    svg = totals_histogram([10, 60], 100, (50, 90))
    places = [path.get("d") for path in tree(svg).iter("path") if path.get("class") == "boundary"]
    assert [float(re.match(r"M([\d.]+)", place).group(1)) for place in places] == [194.0, 318.8]


def test_a_bar_is_as_high_as_its_count():
    heights = [float(rect.get("height")) for rect in tree(item_histogram([0, 5, 5], 5)).iter("rect")]
    assert len(heights) == 2 and heights[1] == pytest.approx(2 * heights[0])


def test_more_parameters_stand_further_right_and_a_higher_accuracy_higher():
    (small, middle, large) = marks(parameters_scatter(DOTS, 0.6))
    assert small[0] < middle[0] < large[0]
    assert middle[1] < small[1]
    # the axis is logarithmic: the same factor is the same distance
    (first, second, third) = marks(parameters_scatter([Dot(str(n), 10.0**n, 0.5) for n in (3, 4, 5)], None))
    assert second[0] - first[0] == pytest.approx(third[0] - second[0], abs=0.2)


def test_axes_are_labeled_in_the_units_of_people():
    assert {"30 k", "100 k", "300 k", "1 M", "3 M", "trainable parameters", "asked for: 60 %"} <= set(
        texts(parameters_scatter(DOTS, 0.6))
    )
    times = texts(time_scatter([Dot("a", 9, 0.5), Dot("b", 4000, 0.6)], None))
    assert {"10 s", "1 min", "10 min", "1 h", "time of training"} <= set(times)
    assert not any(text.startswith("asked") for text in times)


@pytest.mark.parametrize("chart", [parameters_scatter, time_scatter])
def test_labels_of_an_axis_do_not_touch(chart):
    svg = chart([Dot("a", 1, 0.5), Dot("b", 9e4, 0.5)], None)
    places = [float(text.get("x")) for text in tree(svg).iter("text") if text.get("y") == "185"]
    assert len(places) >= 4
    assert all(right - left >= 40 for left, right in pairwise(places))


def test_one_submission_stands_within_the_chart():
    ((x, y),) = marks(parameters_scatter([Dot("only", 499_462, 1.0)], 0.6))
    assert 38 < x < 350 and y == 30


def test_an_axis_has_a_label_however_narrow_it_is():
    assert "150 k" in texts(parameters_scatter([Dot("only", 150_000, 0.5)], None))


def test_claims_that_agree_lie_on_the_diagonal():
    svg = claims_scatter(CLAIMS, 0.05)
    diagonal = next(line for line in tree(svg).iter("line") if line.get("class") == "axis" and
                    line.get("y1") != line.get("y2"))  # fmt: skip
    start, end = (tuple(float(diagonal.get(name + end)) for name in "xy") for end in "12")
    (on,) = marks(claims_scatter([Dot("a", 0.5, 0.5)], 0.05))
    assert on == pytest.approx(tuple((a + b) / 2 for a, b in zip(start, end, strict=True)), abs=0.1)
    label = plain(tree(svg).get("aria-label"))
    assert "4 submissions: 3 over 5 points off, 2 of them claim more than was measured" in label
    assert len([line for line in tree(svg).iter("line") if line.get("class") == "threshold"]) == 2


def test_what_stands_apart_has_another_shape_and_the_key_says_why():
    svg = claims_scatter(CLAIMS, 0.05)
    assert len(list(tree(svg).iter("path"))) == 4  # three of them, and one in the key
    assert "over 5 points off" in texts(svg)
    calm = claims_scatter(CLAIMS[:1], 0.05)
    assert "over 5 points off" not in texts(calm) and "<path" not in calm


def test_text_in_charts_is_escaped_and_made_visible():
    svg = parameters_scatter([Dot("<script>\u202e", 10, 0.5)], None)
    assert "<script>" not in svg and "&lt;script&gt;⟨U+202E⟩" in svg
    assert "&lt;b&gt;⟨U+202E⟩" in text(0, 0, "<b>\u202e", "label")
