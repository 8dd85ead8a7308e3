"""The pieces that charts are made of: SVG elements, a plotting area and its axes.

Coordinates are in SVG units; at the size of a phone one unit is about one CSS pixel, so that 11-unit text
stays readable.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

from grader.domain.formatting import printable

WIDTH = 360.0


@dataclass(frozen=True)
class PlotArea:
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


def round_values(highest: float, about: int = 4) -> list[float]:
    """Round values from 0 up to at least `highest`, about `about` steps of 1, 2 or 5 times a power of ten."""
    if highest < 1e-6:
        return [0.0, 1.0]
    power = 10.0 ** math.floor(math.log10(highest / about))
    step = next(unit * power for unit in (1, 2, 5, 10) if unit * power * about >= highest)
    return [round(step * index, 10) for index in range(math.ceil(highest / step - 1e-9) + 1)]


def axes(
    frame: PlotArea,
    ticks: Sequence[tuple[float, str]],
    x_ticks: Sequence[tuple[float, str]],
    x_name: str,
) -> Markup:
    """Horizontal grid lines with labels, and the labels and the name of the horizontal axis.

    Args:
        frame: The plotting area.
        ticks: (value, label) of each grid line.
        x_ticks: (value, label) along the horizontal axis.
        x_name: What the horizontal axis shows.
    """
    parts: list[Markup] = []
    for tick, label in ticks:
        y = frame.y(tick)
        parts.append(line(frame.left, y, frame.right, y, "axis" if tick == frame.y0 else "grid"))
        parts.append(text(frame.left - 6, y + 4, label, "label", "end"))
    parts += [text(frame.x(tick), frame.bottom + 13, label, "label", "middle") for tick, label in x_ticks]
    parts.append(text(frame.right, frame.bottom + 25, x_name, "note", "end"))
    return Markup("").join(parts)


def svg(
    height: float,
    label: str,
    parts: Sequence[Markup],
    *,
    width: float = WIDTH,
    top: float = 0.0,
    css: str = "",
) -> Markup:
    """An SVG image with its description for those who do not see it."""
    return Markup(
        '<svg class="chart {}" viewBox="0 {} {} {}" role="img" aria-label="{}" '
        'preserveAspectRatio="{}"><title>{}</title>{}</svg>'
    ).format(
        css,
        coordinate(top),
        coordinate(width),
        coordinate(height),
        label,
        "none" if css == "bar" else "xMidYMid meet",
        label,
        Markup("").join(parts),
    )


def line(x1: float, y1: float, x2: float, y2: float, css: str) -> Markup:
    """A straight line."""
    return Markup('<line class="{}" x1="{}" y1="{}" x2="{}" y2="{}"/>').format(
        css, *(coordinate(value) for value in (x1, y1, x2, y2))
    )


def rect(x: float, y: float, width: float, height: float, css: str) -> Markup:
    """A rectangle, by its upper left corner."""
    return Markup('<rect class="{}" x="{}" y="{}" width="{}" height="{}"/>').format(
        css, *(coordinate(value) for value in (x, y, width, height))
    )


def text(x: float, y: float, words: str, css: str, anchor: str = "start") -> Markup:
    """Words at a place; what would hide or reorder them is shown by its number."""
    return Markup('<text class="{}" x="{}" y="{}" text-anchor="{}">{}</text>').format(
        css, coordinate(x), coordinate(y), anchor, escape(printable(words))
    )


def coordinate(value: float) -> str:
    """A coordinate with one digit after the point, the same on every machine."""
    return f"{round(value, 1) + 0.0:g}"
