"""The charts of a whole class, as inline SVG, and the figures of its trainings that they show.

The charts are pure functions of numbers and can be read without color. The figures say how the trainings
of a class went: accuracy against size, time and claim, and the best without names. This module also
decides whether a claim differs from what was measured. It never decides which charts a page shows, and it
never scores.
"""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from markupsafe import Markup

from grader.domain.analyzed_program import Claim
from grader.domain.evidence import Evidence, TrainingOutcome
from grader.domain.formatting import (
    SPACE,
    counted,
    duration,
    percent,
    points,
    printable,
    quantity,
    round_percent,
)
from grader.domain.score import Score
from grader.reports.measured_words import MeasuredWords
from grader.reports.typesetting import PlotArea, axes, coordinate, line, rect, round_values, svg, text
from grader.scoring.measurements import CLAIMED_MORE

WORDS = MeasuredWords()
_BINS = 10
_LABEL_WIDTH = 40.0  # in SVG units; tick labels closer than this would touch
# ticks of a logarithmic axis, the finest first; the first set whose labels do not touch is drawn
_DECADES = tuple(10.0**power for power in range(16))
_SIZES = tuple(
    tuple(base * size for size in _DECADES for base in bases) for bases in ((1, 2, 5), (1, 3), (1,))
)
_TIMES = (  # seconds that people have names for
    (1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 18_000, 36_000),
    (1, 3, 10, 30, 60, 180, 600, 1800, 3600, 10_800, 36_000),
    (1, 10, 60, 600, 3600, 36_000),
)


@dataclass(frozen=True)
class Dot:
    """One submission in a scatter plot.

    Attributes:
        label: Whose it is and its values, shown when it is pointed at.
        x: A quantity above 0, or a share of 0 to 1.
        y: What was measured.
        apart: Whether it is drawn as a diamond, for the reason that the chart's key gives.
    """

    label: str
    x: float
    y: float
    apart: bool = False


def totals_histogram(totals: Sequence[float], maximum: float, boundaries: Sequence[float] = ()) -> Markup:
    """How many totals fall into each tenth of the maximum, with their median; empty without any.

    Args:
        totals: Points.
        maximum: The most points that there are.
        boundaries: Points at which a grade begins; they are marked at the foot of the columns.
    """
    if not totals or maximum <= 0:
        return Markup("")
    counts = _counts_by_tenth(totals, maximum)
    ticks = [tick for tick in round_values(max(counts)) if float(tick).is_integer()]
    frame = PlotArea(0.0, maximum, 0.0, ticks[-1])
    marks = [maximum * step / 5 for step in range(6)]
    labeled = [(tick, points(tick)) for tick in ticks], [(mark, points(mark)) for mark in marks]
    parts = [axes(frame, *labeled, "points")]
    middle = median(totals)
    x, at_right = frame.x(middle), frame.x(middle) > 250
    parts.append(line(x, frame.top - 24, x, frame.bottom, "threshold"))
    median_text = f"median {points(middle)}"
    parts.append(text(x + (-4 if at_right else 4), 13, median_text, "note", "end" if at_right else "start"))
    for index, count in enumerate(counts):
        if count:
            left, right = frame.x(maximum * index / _BINS), frame.x(maximum * (index + 1) / _BINS)
            top = frame.y(count)
            parts.append(rect(left + 1.5, top, right - left - 3, frame.bottom - top, "column"))
            parts.append(text((left + right) / 2, top - 4, str(count), "label count", "middle"))
    for boundary in boundaries:
        x = frame.x(boundary)
        shape = f"M{coordinate(x)} {coordinate(frame.bottom)}l-4 -7h8z"
        parts.append(Markup('<path class="boundary" d="{}"/>').format(shape))
    label = f"Distribution of {counted(len(totals), 'total')}: {_in_words(counts, maximum)}; {median_text}."
    return svg(200, label, parts)


def item_histogram(values: Sequence[float], maximum: float) -> Markup:
    """A small histogram of one item's points in tenths of its maximum; empty without any."""
    if not values or maximum <= 0:
        return Markup("")
    counts = _counts_by_tenth(values, maximum)
    frame = PlotArea(0.0, maximum, 0.0, max(counts), left=1.0, right=159.0, top=3.0, bottom=35.0)
    parts = [line(frame.left, frame.bottom, frame.right, frame.bottom, "axis")]
    for index, count in enumerate(counts):
        if count:
            left, right = frame.x(maximum * index / _BINS), frame.x(maximum * (index + 1) / _BINS)
            parts.append(
                rect(left + 1, frame.y(count), right - left - 2, frame.bottom - frame.y(count), "column")
            )
    label = f"{counted(len(values), 'submission')} by points: {_in_words(counts, maximum)}."
    return svg(38, label, parts, width=160, css="small")


def parameters_scatter(dots: Sequence[Dot], threshold: float | None, words: MeasuredWords = WORDS) -> Markup:
    """What was measured against trainable parameters, on a logarithmic axis; empty without a dot."""
    axis = LogAxis(_SIZES, _short_number, "parameters", "trainable parameters")
    return _scatter(_drawable(dots), threshold, axis, words)


def time_scatter(dots: Sequence[Dot], threshold: float | None, words: MeasuredWords = WORDS) -> Markup:
    """What was measured against seconds of training, on a logarithmic axis; empty without a dot."""
    axis = LogAxis(_TIMES, _short_duration, "training time", "time of training")
    return _scatter(_drawable(dots), threshold, axis, words)


def claims_scatter(dots: Sequence[Dot], tolerance: float) -> Markup:
    """Claimed (x) against measured (y) accuracy with the diagonal; empty without a dot.

    Args:
        dots: Those that are `apart` are beyond the tolerance.
        tolerance: How far a claim may be off, 0 to 1; shown by the dashed lines.
    """
    drawn = [dot for dot in dots if math.isfinite(dot.x) and math.isfinite(dot.y)]
    if not drawn:
        return Markup("")
    frame = PlotArea(0.0, 1.0, 0.0, 1.0, bottom=242.0)
    shares = [(tick / 5, round_percent(tick / 5)) for tick in range(6)]
    parts = [axes(frame, shares, shares, "claimed")]
    parts.append(line(frame.x(0), frame.y(0), frame.x(1), frame.y(1), "axis"))
    for low, high in ((tolerance, 0.0), (0.0, tolerance)):
        ends = frame.x(low), frame.y(high), frame.x(1 - high), frame.y(1 - low)
        parts.append(line(*ends, "threshold"))
    parts += [_mark(frame.x(dot.x), frame.y(dot.y), dot) for dot in drawn]
    apart = sum(dot.apart for dot in drawn)
    claiming_more = sum(dot.apart and dot.x > dot.y for dot in drawn)
    off = f"over {points(100 * tolerance)} points off"
    parts.append(_key(frame, ("measured, as claimed", off) if apart else ("measured, as claimed",)))
    label = (
        f"Claimed against measured accuracy of {counted(len(drawn), 'submission')}: "
        f"{apart} {off}, {claiming_more} of them claim more than was measured."
    )
    return svg(270, label, parts)


@dataclass(frozen=True)
class LogAxis:
    """The logarithmic axis of a scatter plot.

    Attributes:
        ticks: Sets of ticks, the finest first.
        format_value: Writes a value as people do.
        name: What it shows, within a sentence.
        label: What it shows, below the axis.
    """

    ticks: Sequence[Sequence[float]]
    format_value: Callable[[float], str]
    name: str
    label: str


def _scatter(dots: Sequence[Dot], threshold: float | None, axis: LogAxis, words: MeasuredWords) -> Markup:
    if not dots:
        return Markup("")
    low, high = min(dot.x for dot in dots), max(dot.x for dot in dots)
    steps = _measured_ticks([dot.y for dot in dots], threshold, words)
    # a little room on both sides, and some width where all dots have the same value
    frame = PlotArea(math.log10(low / 1.25), math.log10(high * 1.25), steps[0][0], steps[-1][0])
    chosen = [(math.log10(tick), axis.format_value(tick)) for tick in _fitting_ticks(frame, axis.ticks)]
    parts = [axes(frame, steps, chosen, axis.label)]
    if threshold is not None:
        y = frame.y(threshold)
        parts.append(line(frame.left, y, frame.right, y, "threshold"))
        # in the key, because beside its line it would be among the marks
        parts.append(line(frame.right - 108, 11, frame.right - 88, 11, "threshold"))
        parts.append(text(frame.right, 15, f"asked for: {words.round(threshold)}", "label", "end"))
    parts += [_mark(frame.x(math.log10(dot.x)), frame.y(dot.y), dot) for dot in dots]
    key = (words.what,)
    parts.append(_key(frame, (*key, "diverged") if any(dot.apart for dot in dots) else key))
    sign = -1 if words.scale.lower_is_better else 1
    best = max(dots, key=lambda dot: (sign * dot.y, dot.label))
    what = "accuracy" if words.is_accuracy else words.what
    highest = f"the {'lowest' if words.scale.lower_is_better else 'highest'} {what}"
    label = (
        f"{what[:1].upper()}{what[1:]} against {axis.name} of {counted(len(dots), 'submission')}: from "
        f"{axis.format_value(low)} to {axis.format_value(high)}; {highest}, {words.value(best.y)}, at "
        f"{axis.format_value(best.x)}."
    )
    return svg(200, label, parts)


def _measured_ticks(
    values: Sequence[float], threshold: float | None, words: MeasuredWords
) -> list[tuple[float, str]]:
    """The ticks for measured values, from below the lowest to above the highest."""
    if words.scale.is_share:
        return [(tick / 5, f"{20 * tick} %") for tick in range(6)]
    shown_values = [*values, *([threshold] if threshold is not None else [])]
    low, high = min(shown_values), max(shown_values)
    if low >= 0:
        return [(tick, f"{tick:.4g}") for tick in round_values(high or 1.0)]
    room = 0.1 * ((high - low) or abs(high) or 1.0)
    ends = low - room, high + room
    return [
        (value, f"{value:.3g}") for value in (ends[0] + step * (ends[1] - ends[0]) / 4 for step in range(5))
    ]


def _fitting_ticks(frame: PlotArea, ticks: Sequence[Sequence[float]]) -> list[float]:
    """The finest ticks within the frame whose labels do not touch; the middle of the axis without any."""
    for candidates in ticks:
        within = [tick for tick in candidates if frame.x0 <= math.log10(tick) <= frame.x1]
        places = [frame.x(math.log10(tick)) for tick in within]
        if within and all(right - left >= _LABEL_WIDTH for left, right in pairwise(places)):
            return within
    return [10.0 ** ((frame.x0 + frame.x1) / 2)]


def _drawable(dots: Sequence[Dot]) -> list[Dot]:
    """The dots that a logarithmic axis has a place for."""
    return [dot for dot in dots if math.isfinite(dot.x) and dot.x > 0 and math.isfinite(dot.y)]


def _mark(x: float, y: float, dot: Dot) -> Markup:
    """A circle, or a diamond for a dot that is apart; its label is shown when it is pointed at."""
    if dot.apart:
        shape = Markup('<path class="mark apart" d="M{} {}l5 5l-5 5l-5 -5z">').format(
            coordinate(x), coordinate(y - 5)
        )
        return Markup("{}<title>{}</title></path>").format(shape, printable(dot.label))
    return Markup('<circle class="mark" cx="{}" cy="{}" r="3.5"><title>{}</title></circle>').format(
        coordinate(x), coordinate(y), printable(dot.label)
    )


def _key(frame: PlotArea, words: Sequence[str]) -> Markup:
    """What a circle, and a diamond, stand for."""
    parts: list[Markup] = []
    x = frame.left + 4
    for index, word in enumerate(words):
        shape = (
            Markup('<circle class="mark" cx="{}" cy="11" r="3.5"/>')
            if not index
            else Markup('<path class="mark apart" d="M{} 6l5 5l-5 5l-5 -5z"/>')
        )
        parts += [shape.format(coordinate(x)), text(x + 10, 15, word, "label")]
        x += 34 + 6.0 * len(word)
    return Markup("").join(parts)


def _counts_by_tenth(values: Sequence[float], maximum: float) -> list[int]:
    """How many values fall into each tenth; the full points belong to the last one."""
    counts = [0] * _BINS
    for value in values:
        counts[min(_BINS - 1, max(0, int(_BINS * value / maximum)))] += 1
    return counts


def _in_words(counts: Sequence[int], maximum: float) -> str:
    return ", ".join(
        f"{count} from {points(maximum * index / _BINS)} to {points(maximum * (index + 1) / _BINS)}"
        for index, count in enumerate(counts)
        if count
    )


def _short_duration(seconds: float) -> str:
    """A duration without the units that are zero: `10 s`, `3 min`, `1 h`."""
    words = duration(seconds)
    for nothing in (".0", f" 00{SPACE}s", f" 00{SPACE}min"):
        words = words.replace(nothing, "")
    return words


def _short_number(value: float) -> str:
    """A large number in few letters: `500 k`, `1.2 M`."""
    for unit, name in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if value >= unit:
            return f"{value / unit:.3g}{name}"
    return f"{value:.3g}"


# --- class training --------------------------------------------------------------------------------------


Results = Sequence[tuple[Evidence, Score]]

_OUTCOMES = {
    TrainingOutcome.COMPLETED: "completed",
    TrainingOutcome.DIVERGED: "diverged",
    TrainingOutcome.FAILED: "stopped in the student's code",
    TrainingOutcome.BUDGET: "stopped by our limit",
    TrainingOutcome.UNKNOWN: "for a person to judge",
    TrainingOutcome.NOT_RUN: "not run",
}


@dataclass(frozen=True)
class Best:
    """A place in the leaderboard.

    Attributes:
        rank: Counted from 1; equal values share it.
        value: What was measured, as people write it.
        interval: Its 95 % interval, as people write it; empty where there is none.
    """

    rank: int
    value: str
    interval: str
    parameters: int | None
    epochs: int


@dataclass(frozen=True)
class ChartedTraining:
    """One submission's numbers in the charts, for those who read them as a table.

    Attributes:
        value: What was measured, as people write it.
        claimed: What the student reports, 0 to 1; None where that is not a share.
        seconds: How long training took; None where that is not known.
        apart: Why it is drawn as a diamond, in words; empty for a circle.
    """

    student_id: str
    value: str
    claimed: float | None
    parameters: int | None
    seconds: float | None
    apart: str


def claim_of(score: Score) -> Claim | None:
    """The accuracy that the student claims, where it is a share."""
    claim = score.claim
    return claim if claim is not None and _is_share(claim.accuracy) else None


def claim_apart(claimed: float, measured: float) -> bool:
    """Whether a claim is so far from what was measured that a person should look at it."""
    return _is_share(claimed) and _is_share(measured) and abs(claimed - measured) > CLAIMED_MORE


def of_measure(results: Results, measure: str) -> Results:
    """The results with the evidence about one of the measured models."""
    return [(evidence.of_measure(measure), score) for evidence, score in results]


def outcome_counts(results: Results) -> tuple[tuple[str, int], ...]:
    """(how training ended, number of submissions), over those whose code was looked at."""
    tally = Counter(evidence.training.outcome for evidence, score in results if evidence.findings)
    return tuple((word, tally[outcome]) for outcome, word in _OUTCOMES.items() if tally[outcome])


def parameter_dots(results: Results, words: MeasuredWords) -> list[Dot]:
    """What was measured against trainable parameters, for the submissions that have both."""
    return [
        Dot(
            f"{score.student_id}: {words.value(value)}, {quantity(evidence.parameters)} parameters",
            evidence.parameters,
            value,
            _diverged(evidence),
        )
        for evidence, score, value in _measured_results(results, words)
        if evidence.parameters
    ]


def time_dots(results: Results, words: MeasuredWords) -> list[Dot]:
    """What was measured against seconds of training, for the submissions that have both."""
    return [
        Dot(
            f"{score.student_id}: {words.value(value)} in {duration(evidence.training.seconds)}",
            evidence.training.seconds,
            value,
            _diverged(evidence),
        )
        for evidence, score, value in _measured_results(results, words)
        if math.isfinite(evidence.training.seconds) and evidence.training.seconds > 0
    ]


def claim_dots(results: Results) -> list[Dot]:
    """Claimed against measured accuracy, for the submissions that have both."""
    dots = []
    for evidence, score, accuracy in _measured_results(results, WORDS):
        claim = claim_of(score) if evidence.training.value is None else None
        if claim is not None:
            label = f"{score.student_id}: {percent(claim.accuracy)} claimed, {percent(accuracy)} measured"
            dots.append(Dot(label, claim.accuracy, accuracy, claim_apart(claim.accuracy, accuracy)))
    return dots


def measured_rows(
    results: Results, words: MeasuredWords, *, claims: bool = True
) -> tuple[ChartedTraining, ...]:
    """The numbers of the charts, in the order of the results.

    Args:
        claims: Whether students' claims are about this measure.
    """
    rows = []
    for evidence, score, value in _measured_results(results, words):
        claim, seconds = claim_of(score) if claims else None, evidence.training.seconds
        reasons = ["diverged"] if _diverged(evidence) else []
        if claim is not None and claim_apart(claim.accuracy, value):
            reasons.append("claimed more" if claim.accuracy > value else "claimed less")
        rows.append(
            ChartedTraining(
                score.student_id,
                words.value(value),
                claim.accuracy if claim is not None else None,
                evidence.parameters,
                seconds if math.isfinite(seconds) and seconds > 0 else None,
                ", ".join(reasons),
            )
        )
    return tuple(rows)


def leaderboard(results: Results, words: MeasuredWords = WORDS) -> tuple[Best, ...]:
    """What was measured, the best first, without anything that identifies a student."""
    values = [value for _, _, value in _measured_results(results, words)]
    places = [
        Best(
            1
            + sum(other_value != value and words.scale.reaches(other_value, value) for other_value in values),
            words.value(value),
            words.interval(evidence.training, 0),
            evidence.parameters,
            len(evidence.training.epochs),
        )
        for evidence, _, value in _measured_results(results, words)
    ]
    # ties are ordered by what is shown, so that the order says nothing about who it is
    return tuple(sorted(places, key=lambda best: (best.rank, best.parameters or 0, best.epochs)))


def _measured_results(results: Results, words: MeasuredWords) -> list[tuple[Evidence, Score, float]]:
    return [
        (evidence, score, evidence.training.measured)
        for evidence, score in results
        if evidence.training.measured is not None and words.scale.is_value(evidence.training.measured)
    ]


def _diverged(evidence: Evidence) -> bool:
    return evidence.training.outcome is TrainingOutcome.DIVERGED


def _is_share(value: float) -> bool:
    return math.isfinite(value) and 0 <= value <= 1
