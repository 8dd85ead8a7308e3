"""The charts of one student, as inline SVG: pure functions of numbers, readable without color."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from markupsafe import Markup

from grader.domain.evidence import Epoch, RocCurve
from grader.domain.formatting import percent, points, quantity, round_percent
from grader.language import ENGLISH, Language
from grader.reports.measured_words import MeasuredWords
from grader.reports.typesetting import PlotArea, axes, coordinate, line, rect, round_values, svg, text


@dataclass(frozen=True)
class Segment:
    """A part of a points bar.

    Attributes:
        kind: `earned`, `lost`, `awaiting` or `not-run`: its style.
        amount: Points.
        label: What the legend says.
    """

    kind: str
    amount: float
    label: str


def accuracy_curve(
    epochs: Sequence[Epoch],
    threshold: float | None,
    stage_starts: Sequence[int] = (),
    language: Language = ENGLISH,
) -> Markup:
    """Test accuracy (0 to 1) per epoch, with the line that the assignment asks for; empty without epochs.

    Args:
        stage_starts: The first epoch of each stage but the first.
        language: The language of its words.
    """
    values = [(epoch.number, epoch.test_accuracy) for epoch in epochs if math.isfinite(epoch.test_accuracy)]
    if not values:
        return Markup("")
    frame = PlotArea(*_epoch_range(epochs), 0.0, 1.0)
    parts = [_epoch_axes(frame, language, [(tick / 5, f"{20 * tick} %") for tick in range(6)])]
    if threshold is not None:
        y = frame.y(threshold)
        parts.append(line(frame.left, y, frame.right, y, "threshold"))
        parts.append(
            text(frame.left + 4, y - 4, language.translated(f"asked for: {round_percent(threshold)}"), "note")
        )
    for number, first in enumerate(stage_starts, start=2):
        x = frame.x(first - 0.5)
        parts.append(line(x, frame.top, x, frame.bottom, "threshold"))
        parts.append(text(x + 4, frame.bottom - 6, language.translated(f"stage {number}"), "note"))
    parts.append(_series(frame, values, "test"))
    parts.append(_end_label(frame, values[-1], percent(values[-1][1])))
    last = f"{percent(values[-1][1])} after epoch {values[-1][0]}"
    best = max(values, key=lambda pair: pair[1])
    label = f"Test accuracy per epoch: {last}; highest {percent(best[1])} after epoch {best[0]}."
    label += "".join(
        f" Stage {number} begins with epoch {beginning}." for number, beginning in enumerate(stage_starts, 2)
    )
    parts.append(_legend(frame, [("test", language.translated("test accuracy, %"))]))
    return svg(200, language.translated(label), parts)


def loss_curve(epochs: Sequence[Epoch], language: Language = ENGLISH) -> Markup:
    """Mean cross-entropy (nats per image) on the hidden test images per epoch; empty without epochs.

    The loss that train_epoch reports is not plotted: numbers that the student's code reports itself are
    shown to staff only.
    """
    values = [(epoch.number, epoch.test_loss) for epoch in epochs if math.isfinite(epoch.test_loss)]
    if not values:
        return Markup("")
    ticks = round_values(max(value for _, value in values))
    frame = PlotArea(*_epoch_range(epochs), 0.0, ticks[-1])
    parts = [
        _epoch_axes(
            frame, language, [(tick, points(tick) if tick < 1e4 else f"{tick:.0e}") for tick in ticks]
        )
    ]
    parts += [_series(frame, values, "test"), _legend(frame, [("test", language.translated("test loss"))])]
    label = f"Test loss per epoch, at the end: {quantity(values[-1][1])}."
    return svg(200, language.translated(label), parts)


def roc_chart(roc: Sequence[RocCurve], classes: Sequence[str], language: Language = ENGLISH) -> Markup:
    """The receiver operating characteristics of all classes; the one with the smallest area is named."""
    curves = [(curve, name) for curve, name in zip(roc, classes, strict=False) if curve.area is not None]
    if not curves:
        return Markup("")
    frame = PlotArea(0.0, 1.0, 0.0, 1.0, right=300.0, bottom=292.0)
    ticks = [(tick / 5, f"{20 * tick} %") for tick in range(6)]
    parts = [axes(frame, ticks, ticks, language.translated("false positive rate"))]
    parts.append(line(frame.x(0), frame.y(0), frame.x(1), frame.y(1), "threshold"))
    hardest = min(curves, key=lambda curve: curve[0].area or 0.0)
    for curve, name in curves:
        kind = "test" if name == hardest[1] else "other"
        path = " ".join(f"{coordinate(frame.x(x))},{coordinate(frame.y(y))}" for x, y in curve.points)
        parts.append(Markup('<polyline class="series {}" points="{}"/>').format(kind, path))
    area = hardest[0].area or 0.0
    parts.append(
        _legend(
            frame,
            [
                ("test", language.translated(f"{hardest[1]}: area {area:.3f}")),
                ("other", language.translated("other classes")),
            ],
        )
    )
    label = f"ROC curves of {len(curves)} classes; smallest area {area:.3f}, of {hardest[1]}."
    return svg(324, language.translated(label), parts)


def measured_band(
    measured: float | None,
    interval: tuple[float, float] | None,
    breakpoints: Sequence[tuple[float, float]],
    words: MeasuredWords,
    language: Language = ENGLISH,
) -> Markup:
    """What was measured, with its 95 % interval, on the scale that turns it into points.

    Args:
        measured: None while it is unknown; then only the scale is drawn.
        interval: Low and high end.
        breakpoints: (value, points), ascending.
        words: How the measure is called and written.
        language: The language of its words.

    Returns:
        An SVG image.
    """
    start, end = _band_ends(measured, interval, breakpoints, words)
    frame = PlotArea(start, end, 0.0, 1.0, left=14.0, right=346.0)
    parts: list[Markup] = []
    edges = [start, *(value for value, _ in breakpoints), end]
    zones = list(enumerate(pairwise(edges)))
    for index, (low, high) in zones:
        rank = len(zones) - 1 - index if words.scale.lower_is_better else index
        parts.append(rect(frame.x(low), 44, frame.x(high) - frame.x(low), 9, f"zone zone-{min(rank, 3)}"))
    before = -math.inf
    for value, worth in breakpoints:
        x = frame.x(value)
        parts.append(line(x, 38, x, 57, "tick"))
        if x - before >= 52:
            parts.append(text(x, 70, words.round(value), "label", "middle"))
            parts.append(text(x, 84, language.translated(f"{points(worth)} points"), "note", "middle"))
            before = x
    scale = ", ".join(f"{points(worth)} points at {words.round(value)}" for value, worth in breakpoints)
    what = "accuracy" if words.is_accuracy else words.what
    if measured is None or not math.isfinite(measured):
        return svg(54, language.translated(f"No {what} was measured. The scale: {scale}."), parts, top=36)
    label = f"Measured {what} {words.value(measured)}"
    if interval is not None:
        low, high = (frame.x(min(max(bound, start), end)) for bound in interval)
        parts += [line(low, 28, high, 28, "interval")]
        parts += [line(x, 23, x, 33, "interval") for x in (low, high)]
        label += f", 95 % interval {words.value(interval[0])} to {words.value(interval[1])}"
    x = frame.x(min(max(measured, start), end))
    parts.append(line(x, 28, x, 53, "needle"))
    parts.append(Markup('<circle class="dot" cx="{}" cy="28" r="4.5"/>').format(coordinate(x)))
    parts.append(text(min(max(x, 34), 326), 14, words.value(measured), "value", "middle"))
    return svg(90, language.translated(f"{label}. The scale: {scale}."), parts)


def _band_ends(
    measured: float | None,
    interval: tuple[float, float] | None,
    breakpoints: Sequence[tuple[float, float]],
    words: MeasuredWords,
) -> tuple[float, float]:
    """The ends of a scale: 0 and 1 for shares, else around the breakpoints and values measured near them."""
    if words.scale.is_share:
        return 0.0, 1.0
    shown_values = [value for value, _ in breakpoints]
    shown_values += [
        number for number in (measured, *(interval or ())) if number is not None and math.isfinite(number)
    ]
    low, high = min(shown_values, default=0.0), max(shown_values, default=1.0)
    ends = [value for value, _ in breakpoints] or [low, high]
    width = (max(ends) - min(ends)) or abs(ends[0]) or 1.0
    # a value far beyond the last breakpoint is drawn at the end, to keep the scale readable
    return max(low, min(ends) - width) - 0.1 * width, min(high, max(ends) + width) + 0.1 * width


def points_bar(segments: Sequence[Segment], language: Language = ENGLISH) -> Markup:
    """Points as one bar: earned solid, lost pale, awaiting hatched, not run outlined."""
    total = sum(segment.amount for segment in segments)
    parts: list[Markup] = [
        Markup(
            '<defs><pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" '
            'patternTransform="rotate(45)"><path class="hatch" d="M0 0V6"/></pattern></defs>'
        )
    ]
    x = 0.0
    for segment in segments:
        width = 720 * segment.amount / total if total > 0 else 0.0
        if width > 0:
            parts.append(rect(x, 1, width, 18, f"segment {segment.kind}"))
        x += width
    label = "; ".join(
        f"{language.translated(segment.label)}: {points(segment.amount)}"
        for segment in segments
        if segment.amount > 0
    )
    return svg(20, f"{language.translated('Points.')} {label}.", parts, width=720, css="bar")


def _epoch_range(epochs: Sequence[Epoch]) -> tuple[float, float]:
    """First and last epoch; a single one is drawn in the middle."""
    return float(epochs[0].number), float(epochs[-1].number)


def _epoch_axes(frame: PlotArea, language: Language, ticks: Sequence[tuple[float, str]]) -> Markup:
    """Axes, of which the horizontal one counts epochs and always labels the first and the last."""
    inner = [tick for tick in round_values(frame.x1, 5) if frame.x0 < tick < frame.x1 and tick.is_integer()]
    chosen = [tick for tick in inner if frame.x(frame.x1) - frame.x(tick) > 18]
    x_ticks = dict.fromkeys([frame.x0, *chosen, frame.x1])
    return axes(frame, ticks, [(tick, points(tick)) for tick in x_ticks], language.translated("epoch"))


def _series(frame: PlotArea, values: Sequence[tuple[int, float]], kind: str) -> Markup:
    """A line through the values; a single value is a dot."""
    if len(values) == 1:
        (number, value) = values[0]
        return Markup('<circle class="dot {}" cx="{}" cy="{}" r="4"/>').format(
            kind, coordinate(frame.x(number)), coordinate(frame.y(value))
        )
    path = " ".join(f"{coordinate(frame.x(number))},{coordinate(frame.y(value))}" for number, value in values)
    return Markup('<polyline class="series {}" points="{}"/>').format(kind, path)


def _end_label(frame: PlotArea, last: tuple[int, float], label: str) -> Markup:
    y = frame.y(last[1])
    return text(frame.x(last[0]), y - 8 if y > frame.top + 14 else y + 18, label, "value", "end")


def _legend(frame: PlotArea, entries: Sequence[tuple[str, str]]) -> Markup:
    """The chart's legend above the plotting area: a piece of each line with its name."""
    parts: list[Markup] = []
    x = frame.left
    for kind, label in entries:
        parts.append(line(x, 11, x + 20, 11, f"series {kind}"))
        parts.append(text(x + 26, 15, label, "label"))
        x += 44 + 6.3 * len(label)
    return Markup("").join(parts)
