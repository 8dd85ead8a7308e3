"""Charts as inline SVG: pure functions of numbers, colored by the page's style, told apart without color.

Coordinates are in SVG units; at the size of a phone one unit is about one CSS pixel, so that 11-unit text
stays readable.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from markupsafe import Markup, escape

from grader.domain.evidence import Epoch
from grader.reporting.typesetting import percent, points, quantity, round_percent

_WIDTH = 360.0


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


@dataclass(frozen=True)
class _Frame:
    """The plotting area: data (x, y) to SVG units."""

    x0: float
    x1: float
    y0: float
    y1: float
    left: float = 38.0
    right: float = 350.0
    top: float = 30.0
    bottom: float = 172.0

    def x(self, value: float) -> float:
        """The horizontal position of a data value."""
        span = self.x1 - self.x0
        return self.left + (self.right - self.left) * ((value - self.x0) / span if span else 0.5)

    def y(self, value: float) -> float:
        """The vertical position of a data value, kept within the frame."""
        share = min(1.0, max(0.0, (value - self.y0) / (self.y1 - self.y0)))
        return self.bottom - (self.bottom - self.top) * share


def accuracy_curve(epochs: Sequence[Epoch], threshold: float | None) -> Markup:
    """Test accuracy (0 to 1) per epoch, with the line that the assignment asks for; empty without epochs."""
    values = [(epoch.number, epoch.test_accuracy) for epoch in epochs if math.isfinite(epoch.test_accuracy)]
    if not values:
        return Markup("")
    frame = _Frame(*_epoch_range(epochs), 0.0, 1.0)
    parts = [_axes(frame, [0, 0.2, 0.4, 0.6, 0.8, 1.0], [f"{20 * tick}" for tick in range(6)], "%")]
    if threshold is not None:
        y = frame.y(threshold)
        parts.append(_line(frame.left, y, frame.right, y, "threshold"))
        parts.append(_text(frame.left + 4, y - 4, f"asked for: {round_percent(threshold)}", "note"))
    parts.append(_series(frame, values, "test"))
    parts.append(_end_label(frame, values[-1], percent(values[-1][1])))
    last = f"{percent(values[-1][1])} after epoch {values[-1][0]}"
    best = max(values, key=lambda pair: pair[1])
    label = f"Test accuracy per epoch: {last}; highest {percent(best[1])} after epoch {best[0]}."
    parts.append(_key(frame, [("test", "test accuracy, %")]))
    return _svg(200, label, parts)


def loss_curve(epochs: Sequence[Epoch]) -> Markup:
    """Mean cross-entropy (nats per image) on training and test images per epoch; empty without epochs."""
    test = [(epoch.number, epoch.test_loss) for epoch in epochs if math.isfinite(epoch.test_loss)]
    train = [
        (epoch.number, epoch.train_loss)
        for epoch in epochs
        if epoch.train_loss is not None and math.isfinite(epoch.train_loss)
    ]
    if not test and not train:
        return Markup("")
    ticks = _ticks(max(value for _, value in [*test, *train]))
    frame = _Frame(*_epoch_range(epochs), 0.0, ticks[-1])
    parts = [_axes(frame, ticks, [points(tick) if tick < 1e4 else f"{tick:.0e}" for tick in ticks], "")]
    keys: list[tuple[str, str]] = []
    if train:
        parts.append(_series(frame, train, "train"))
        keys.append(("train", "your train_epoch"))
    if test:
        parts.append(_series(frame, test, "test"))
        keys.append(("test", "test loss"))
    parts.append(_key(frame, keys))
    ends = {name: quantity(values[-1][1]) for name, values in (("train", train), ("test", test)) if values}
    told = ", ".join(f"{name} {end}" for name, end in ends.items())
    return _svg(200, f"Loss per epoch, at the end: {told}.", parts)


def rate_curve(epochs: Sequence[Epoch]) -> Markup:
    """The learning rate per epoch; empty where it never changes."""
    values = [(epoch.number, epoch.learning_rate) for epoch in epochs if math.isfinite(epoch.learning_rate)]
    if len({rate for _, rate in values}) < 2 or any(rate < 0 for _, rate in values):
        return Markup("")
    ticks = _ticks(max(rate for _, rate in values))
    frame = _Frame(*_epoch_range(epochs), 0.0, ticks[-1])
    parts = [
        _axes(frame, ticks, [f"{tick:.1e}".replace("e-0", "e-") if tick else "0" for tick in ticks], ""),
        _series(frame, values, "test"),
        _key(frame, [("test", "learning rate")]),
    ]
    told = f"from {values[0][1]:.3g} to {values[-1][1]:.3g}"
    return _svg(200, f"Learning rate per epoch, {told}.", parts)


def accuracy_band(
    accuracy: float | None,
    interval: tuple[float, float] | None,
    breakpoints: Sequence[tuple[float, float]],
) -> Markup:
    """A measured accuracy with its 95 % interval on the scale that turns it into points.

    Args:
        accuracy: 0 to 1, None while it is unknown: then the scale alone is drawn.
        interval: Low and high end, 0 to 1.
        breakpoints: (accuracy 0 to 1, points), ascending.

    Returns:
        An SVG image.
    """
    frame = _Frame(0.0, 1.0, 0.0, 1.0, left=14.0, right=346.0)
    parts: list[Markup] = []
    edges = [0.0, *(value for value, _ in breakpoints), 1.0]
    for index, (low, high) in enumerate(pairwise(edges)):
        parts.append(_rect(frame.x(low), 44, frame.x(high) - frame.x(low), 9, f"zone zone-{min(index, 3)}"))
    before = -math.inf
    for value, worth in breakpoints:
        x = frame.x(value)
        parts.append(_line(x, 38, x, 57, "tick"))
        if x - before >= 52:
            parts.append(_text(x, 70, round_percent(value), "label", "middle"))
            parts.append(_text(x, 84, f"{points(worth)} points", "note", "middle"))
            before = x
    scale = ", ".join(f"{points(worth)} points at {round_percent(value)}" for value, worth in breakpoints)
    if accuracy is None or not math.isfinite(accuracy):
        return _svg(54, f"No accuracy was measured. The scale: {scale}.", parts, top=36)
    label = f"Measured accuracy {percent(accuracy)}"
    if interval is not None:
        low, high = frame.x(interval[0]), frame.x(interval[1])
        parts += [_line(low, 28, high, 28, "interval")]
        parts += [_line(x, 23, x, 33, "interval") for x in (low, high)]
        label += f", 95 % interval {percent(interval[0])} to {percent(interval[1])}"
    x = frame.x(accuracy)
    parts.append(_line(x, 28, x, 53, "needle"))
    parts.append(Markup('<circle class="dot" cx="{}" cy="28" r="4.5"/>').format(_number(x)))
    parts.append(_text(min(max(x, 34), 326), 14, percent(accuracy), "value", "middle"))
    return _svg(90, f"{label}. The scale: {scale}.", parts)


def points_bar(segments: Sequence[Segment]) -> Markup:
    """Points as one bar: earned solid, lost pale, awaiting hatched, not run outlined."""
    whole = sum(segment.amount for segment in segments)
    parts: list[Markup] = [
        Markup(
            '<defs><pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" '
            'patternTransform="rotate(45)"><path class="hatch" d="M0 0V6"/></pattern></defs>'
        )
    ]
    x = 0.0
    for segment in segments:
        width = 720 * segment.amount / whole if whole > 0 else 0.0
        if width > 0:
            parts.append(_rect(x, 1, width, 18, f"segment {segment.kind}"))
        x += width
    label = "; ".join(
        f"{segment.label}: {points(segment.amount)}" for segment in segments if segment.amount > 0
    )
    return _svg(20, f"Points. {label}.", parts, width=720, css="bar")


def totals_histogram(totals: Sequence[float], maximum: float) -> Markup:
    """How many totals (points) fall into each tenth of the maximum, with their median; empty without any."""
    if not totals or maximum <= 0:
        return Markup("")
    counts = [0] * 10
    for total in totals:
        counts[min(9, max(0, int(10 * total / maximum)))] += 1
    ticks = [tick for tick in _ticks(max(counts)) if float(tick).is_integer()]
    frame = _Frame(0.0, maximum, 0.0, ticks[-1])
    marks = [maximum * step / 5 for step in range(6)]
    parts = [_axes(frame, ticks, [points(tick) for tick in ticks], "", x_ticks=marks)]
    for index, count in enumerate(counts):
        if count:
            left, right = frame.x(maximum * index / 10), frame.x(maximum * (index + 1) / 10)
            top = frame.y(count)
            parts.append(_rect(left + 1.5, top, right - left - 3, frame.bottom - top, "column"))
            parts.append(_text((left + right) / 2, top - 4, str(count), "label", "middle"))
    median = _median(totals)
    x = frame.x(median)
    parts.append(_line(x, frame.top - 24, x, frame.bottom, "threshold"))
    at_right = x > 250
    parts.append(
        _text(
            x + (-4 if at_right else 4),
            13,
            f"median {points(median)}",
            "note",
            "end" if at_right else "start",
        )
    )
    parts.append(_text(frame.right, 197, "points", "note", "end"))
    told = ", ".join(
        f"{count} from {points(maximum * index / 10)} to {points(maximum * (index + 1) / 10)}"
        for index, count in enumerate(counts)
        if count
    )
    return _svg(200, f"Distribution of {len(totals)} totals: {told}; median {points(median)}.", parts)


def _median(values: Sequence[float]) -> float:
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def _epoch_range(epochs: Sequence[Epoch]) -> tuple[float, float]:
    """First and last epoch; a single one stands in the middle."""
    return float(epochs[0].number), float(epochs[-1].number)


def _ticks(highest: float, about: int = 4) -> list[float]:
    """Round values from 0 up to at least `highest`, about `about` steps of 1, 2 or 5 times a power of ten."""
    if highest < 1e-6:
        return [0.0, 1.0]
    power = 10.0 ** math.floor(math.log10(highest / about))
    step = next(unit * power for unit in (1, 2, 5, 10) if unit * power * about >= highest)
    return [round(step * index, 10) for index in range(math.ceil(highest / step - 1e-9) + 1)]


def _axes(
    frame: _Frame,
    ticks: Sequence[float],
    labels: Sequence[str],
    unit: str,
    x_ticks: Sequence[float] | None = None,
) -> Markup:
    """Horizontal grid lines with labels, and the labels of the horizontal axis (epochs by default)."""
    parts: list[Markup] = []
    for tick, label in zip(ticks, labels, strict=True):
        y = frame.y(tick)
        parts.append(_line(frame.left, y, frame.right, y, "grid" if tick else "axis"))
        parts.append(_text(frame.left - 6, y + 4, label + (unit and f" {unit}"), "label", "end"))
    if x_ticks is None:
        inner = [tick for tick in _ticks(frame.x1, 5) if frame.x0 < tick < frame.x1 and tick.is_integer()]
        chosen = [tick for tick in inner if frame.x(frame.x1) - frame.x(tick) > 18]
        x_ticks = list(dict.fromkeys([frame.x0, *chosen, frame.x1]))
        parts.append(_text(frame.right, 197, "epoch", "note", "end"))
    parts += [_text(frame.x(tick), 185, points(tick), "label", "middle") for tick in x_ticks]
    return Markup("").join(parts)


def _series(frame: _Frame, values: Sequence[tuple[int, float]], kind: str) -> Markup:
    """A line through the values; a single value is a dot."""
    if len(values) == 1:
        (number, value) = values[0]
        return Markup('<circle class="dot {}" cx="{}" cy="{}" r="4"/>').format(
            kind, _number(frame.x(number)), _number(frame.y(value))
        )
    path = " ".join(f"{_number(frame.x(number))},{_number(frame.y(value))}" for number, value in values)
    return Markup('<polyline class="series {}" points="{}"/>').format(kind, path)


def _end_label(frame: _Frame, last: tuple[int, float], label: str) -> Markup:
    y = frame.y(last[1])
    return _text(frame.x(last[0]), y - 8 if y > frame.top + 14 else y + 18, label, "value", "end")


def _key(frame: _Frame, entries: Sequence[tuple[str, str]]) -> Markup:
    """The chart's key: a piece of each line with its name, above the plotting area."""
    parts: list[Markup] = []
    x = frame.left
    for kind, label in entries:
        parts.append(_line(x, 11, x + 20, 11, f"series {kind}"))
        parts.append(_text(x + 26, 15, label, "label"))
        x += 44 + 6.3 * len(label)
    return Markup("").join(parts)


def _svg(
    height: float,
    label: str,
    parts: Sequence[Markup],
    *,
    width: float = _WIDTH,
    top: float = 0.0,
    css: str = "",
) -> Markup:
    """An SVG image with its description for those who do not see it."""
    return Markup(
        '<svg class="chart {}" viewBox="0 {} {} {}" role="img" aria-label="{}" '
        'preserveAspectRatio="{}"><title>{}</title>{}</svg>'
    ).format(
        css,
        _number(top),
        _number(width),
        _number(height),
        label,
        "none" if css == "bar" else "xMidYMid meet",
        label,
        Markup("").join(parts),
    )


def _line(x1: float, y1: float, x2: float, y2: float, css: str) -> Markup:
    return Markup('<line class="{}" x1="{}" y1="{}" x2="{}" y2="{}"/>').format(
        css, *(_number(value) for value in (x1, y1, x2, y2))
    )


def _rect(x: float, y: float, width: float, height: float, css: str) -> Markup:
    return Markup('<rect class="{}" x="{}" y="{}" width="{}" height="{}"/>').format(
        css, *(_number(value) for value in (x, y, width, height))
    )


def _text(x: float, y: float, text: str, css: str, anchor: str = "start") -> Markup:
    return Markup('<text class="{}" x="{}" y="{}" text-anchor="{}">{}</text>').format(
        css, _number(x), _number(y), anchor, escape(text)
    )


def _number(value: float) -> str:
    """A coordinate with one digit after the point, the same on every machine."""
    return f"{round(value, 1) + 0.0:g}"
