"""A figure as a picture with few colors, as large as a report shows it.

A quarter of the bytes of the drawn pixels are on their way to the report. A picture whose colors are too many
is reduced to those that are most like them.

Tests: tests/worker/test_figures.py, tests/worker/test_rigged_runs.py
"""

from typing import Any

import numpy as np

from grader.worker.quick_drawing import hidden_axes_unmeasured
from grader.worker.student_faults import students_code

MAX_WIDTH, MAX_HEIGHT = 900, 1400  # pixels: as large as a report shows it
COLORS, OPAQUE = 128, 255  # of a picture; the alpha of a pixel through which nothing is seen
MAX_INCHES = 100  # of a figure that is drawn at its own size


def pixels_of(figure: Any) -> Any:
    """RGBA, uint8 (height, width, 4), at most MAX_WIDTH wide and MAX_HEIGHT high."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    if max(figure.get_size_inches()) > MAX_INCHES:
        figure.set_size_inches(8, 6)
    width, height = (max(float(side), 0.1) for side in figure.get_size_inches())
    figure.set_dpi(min(100.0, MAX_WIDTH / width, MAX_HEIGHT / height))
    canvas = FigureCanvasAgg(figure)  # pyplot took the figure's canvas away when it released it
    # what cannot be drawn raises here, as it would in `show` elsewhere
    with hidden_axes_unmeasured(figure), students_code():
        canvas.draw()  # type: ignore[no-untyped-call]
    return np.asarray(canvas.buffer_rgba())  # type: ignore[no-untyped-call]


def few_colors(pixels: Any) -> tuple[Any, Any]:
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
