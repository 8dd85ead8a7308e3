"""Images that nobody sees, since others lie over them.

It decides by what matplotlib draws last where, and by whether anything shows through that. A map without
`alpha` over a photograph hides it; one that is transparent in places, or leaves some of it uncovered, does
not. Meshes, contours and patches count as transparent. What a figure should show is the checks' affair.

Tests: tests/worker/test_covered_images.py
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

MAX_PIXELS = 1_000_000  # of an image that is looked through
SLACK = 1e-6  # of a side


def uncovered(images: Sequence[Any]) -> list[Any]:
    """Those of an axes' images that no other one hides, in their order.

    Args:
        images: All that can be seen if nothing lies over them.
    """
    drawn = sorted(images, key=lambda image: float(image.get_zorder()))  # equal ones stay in their order
    hidden = set(_hidden(drawn))
    return [image for image in images if id(image) not in hidden]


def _hidden(drawn: Sequence[Any]) -> Iterator[int]:
    """The `id` of each image that one drawn later hides."""
    above: list[Any] = []
    for image in reversed(drawn):
        if any(_covers(other, image) for other in above):
            yield id(image)
        if image is not drawn[0] and is_opaque(image):
            above.append(image)


def is_opaque(image: Any) -> bool:
    """Whether nothing shows through an image: no pixel is transparent, not a number, or masked."""
    values, alpha = image.get_array(), image.get_alpha()
    if values is None or (alpha is not None and float(np.min(alpha)) < 1):
        return False
    if values.size > MAX_PIXELS or np.ma.is_masked(values) or not np.isfinite(values).all():
        return False
    if values.ndim == 3:
        whole = 255 if values.dtype == np.uint8 else 1
        return values.shape[2] < 4 or float(values[..., 3].min()) >= whole
    try:
        colors = image.to_rgba(values)
    except Exception:
        return False
    return float(colors[..., 3].min()) >= 1


def _covers(upper: Any, lower: Any) -> bool:
    """Whether an image lies over all of another one; one that is moved, or cut to a shape, does not."""
    axes = upper.axes
    if not all(image.get_transform() == axes.transData for image in (upper, lower)) or not _is_whole(upper):
        return False
    (left, right, bottom, top), (low_left, low_right, low_bottom, low_top) = (
        np.asarray(image.get_extent(), dtype=float) for image in (upper, lower)
    )
    return all(
        min(own) - abs(own[1] - own[0]) * SLACK <= min(others)
        and max(others) <= max(own) + abs(own[1] - own[0]) * SLACK
        for own, others in (((left, right), (low_left, low_right)), ((bottom, top), (low_bottom, low_top)))
    )


def _is_whole(image: Any) -> bool:
    """Whether nothing but its axes cuts it."""
    box = image.get_clip_box()
    whole = box is None or np.allclose(box.bounds, image.axes.bbox.bounds)
    return image.get_clip_path() is None and bool(whole)
