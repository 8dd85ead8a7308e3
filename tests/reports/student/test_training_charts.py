import math
import re
from dataclasses import replace
from xml.etree import ElementTree

import pytest

from grader.domain.evidence import Epoch, RocCurve
from grader.domain.program_run import Rehearsal, Stage
from grader.reports.measured_words import MeasuredWords
from grader.reports.student import training_charts as charts
from grader.reports.student.trained_models import stage_beginnings

WORDS = MeasuredWords()

BREAKPOINTS = ((1 / 6, 0), (0.6, 9), (0.8, 15))


def epoch(number, accuracy=0.5, test=1.0, train=1.0):
    return Epoch(number, train, test, accuracy, 0.001, 1.0)


def tree(svg):
    return ElementTree.fromstring(str(svg))


def test_every_chart_is_well_formed_and_says_in_words_what_it_shows():
    epochs = [epoch(number, number / 10) for number in range(1, 8)]
    for svg in (
        charts.accuracy_curve(epochs, 0.6),
        charts.loss_curve(epochs),
        charts.roc_chart([RocCurve(0.9, ((0.0, 0.0), (0.1, 0.8), (1.0, 1.0)))], ["cat"]),
        charts.measured_band(0.55, (0.5, 0.6), BREAKPOINTS, WORDS),
        charts.points_bar([charts.Segment("earned", 3, "earned")]),
    ):
        root = tree(svg)
        assert root.get("role") == "img"
        assert root.get("aria-label") == root.find("title").text
        assert re.search(r"\d", root.get("aria-label"))


def test_roc_chart_names_the_class_with_the_least_area():
    curves = [RocCurve(0.9, ((0, 0), (1, 1))), RocCurve(None), RocCurve(0.7, ((0, 0), (0.5, 0.6), (1, 1)))]
    root = tree(charts.roc_chart(curves, ["cat", "dog", "frog"]))
    assert root.find("title").text == "ROC curves of 2 classes; smallest area 0.700, of frog."
    assert len(root.findall(".//polyline[@class='series test']")) == 1
    assert str(charts.roc_chart([RocCurve(None)], ["cat"])) == ""


def test_accuracy_curve_marks_what_is_asked_for():
    root = tree(charts.accuracy_curve([epoch(1, 0.2), epoch(2, 0.7)], 0.6))
    assert root.find(".//line[@class='threshold']") is not None
    assert "70.0 % after epoch 2" in root.get("aria-label").replace("\N{NO-BREAK SPACE}", " ")
    assert tree(charts.accuracy_curve([epoch(1)], None)).find(".//line[@class='threshold']") is None


def test_accuracy_curve_marks_where_stages_begin():
    """Between the last epoch of one and the first of the next, in the order of the trial."""
    epochs = [epoch(n, n / 10) for n in (1, 2, 3, 4, 5)]
    root = tree(charts.accuracy_curve(epochs, None, (3, 5)))
    marks = root.findall(".//line[@class='threshold']")
    xs = [float(mark.get("x1")) for mark in marks]
    points = [float(pair.split(",")[0]) for pair in root.find(".//polyline").get("points").split()]
    assert len(xs) == 2 and points[1] < xs[0] < points[2] and points[3] < xs[1] < points[4]
    assert [each.text for each in root.findall(".//text[@class='note']")][-2:] == ["stage 2", "stage 3"]
    assert "Stage 2 begins with epoch 3. Stage 3 begins with epoch 5." in root.get("aria-label")


def test_stages_are_those_that_a_trial_showed():
    """What a program does with the real images says nothing to anybody; an early end hides later stages."""
    stage = Stage(None, None, "SGD", "", 10, 2, 0.1, 0.1)
    trial = Rehearsal((stage, replace(stage, epochs=3), stage))
    assert stage_beginnings(trial, 7) == (3, 6)
    assert stage_beginnings(trial, 5) == (3,)
    assert stage_beginnings(None, 5) == stage_beginnings(Rehearsal((stage,)), 5) == ()


def test_the_losses_that_a_students_code_reports_are_not_drawn():
    one, other = (
        [replace(epoch(n, test=2.0 - n / 10), train_loss=n * scale) for n in (1, 2, 3)] for scale in (1, 77)
    )
    assert charts.loss_curve(one) == charts.loss_curve(other)
    assert "1.70" in charts.loss_curve(one)


def test_a_higher_accuracy_is_drawn_higher():
    points = (
        tree(charts.accuracy_curve([epoch(1, 0.2), epoch(2, 0.9)], None)).find(".//polyline").get("points")
    )
    first, last = (float(pair.split(",")[1]) for pair in points.split())
    assert last < first


def test_one_epoch_is_a_dot():
    assert tree(charts.accuracy_curve([epoch(1)], 0.6)).find(".//circle") is not None


def test_values_that_are_not_finite_are_left_out():
    epochs = [epoch(1), epoch(2, math.nan, math.inf, math.nan), epoch(3, 0.4, 1e12, None)]
    assert "nan" not in charts.accuracy_curve(epochs, 0.6).lower()
    assert "inf" not in charts.loss_curve(epochs).lower()
    tree(charts.loss_curve(epochs))
    assert charts.loss_curve([epoch(1, math.nan, math.nan, math.nan)]) == ""
    assert charts.accuracy_curve([], 0.6) == ""


def test_band_draws_the_interval_and_the_breakpoints():
    root = tree(charts.measured_band(0.55, (0.5, 0.6), BREAKPOINTS, WORDS))
    low, high = (float(root.find(".//line[@class='interval']").get(name)) for name in ("x1", "x2"))
    dot = float(root.find(".//circle").get("cx"))
    assert low < dot < high
    assert len(root.findall(".//line[@class='tick']")) == 3
    texts = [text.text.replace("\N{NO-BREAK SPACE}", " ") for text in root.iter("text")]
    assert {"60 %", "9 points", "80 %", "15 points", "55.0 %"} <= set(texts)


@pytest.mark.parametrize("unknown", [None, math.nan])
def test_an_unknown_accuracy_is_not_drawn_as_zero(unknown):
    root = tree(charts.measured_band(unknown, None, BREAKPOINTS, WORDS))
    assert root.find(".//circle") is None
    assert "No accuracy was measured" in root.get("aria-label")


def test_bar_segments_share_the_width_by_points():
    segments = [
        charts.Segment("earned", 30, "earned"),
        charts.Segment("awaiting", 10, "awaiting"),
    ]
    root = tree(charts.points_bar([*segments, charts.Segment("lost", 0, "lost")]))
    widths = [float(rect.get("width")) for rect in root.iter("rect")]
    assert widths == [540, 180]
    tree(charts.points_bar([charts.Segment("earned", 0, "earned")]))


def test_text_in_charts_is_escaped():
    svg = charts.points_bar([charts.Segment("earned", 1, "<script>")])
    assert "<script>" not in svg and "&lt;script&gt;" in svg
