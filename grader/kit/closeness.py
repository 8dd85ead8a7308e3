"""When two results are the same."""

import math
from typing import Any

Tensor = Any  # torch is imported by those who compute; a data set that uses the kit must not pay for it


def same(actual: Tensor, expected: Tensor, *, tolerance: float = 1e-4) -> bool:
    """Whether two tensors agree, relative to the size of the expected one.

    float32 results of the sizes used in checks agree to about 1e-6; mistakes differ by more than 1e-2.
    """
    if tuple(actual.shape) != tuple(expected.shape):
        return False
    if not expected.numel():
        return True
    expected = expected.to(actual.dtype)
    scale = max(float(expected.abs().max()), 1e-3)
    if not math.isfinite(scale):
        return False  # nothing is the same as infinity: everything would be within a share of it
    return bool((actual - expected).abs().max() <= tolerance * scale)


def difference(actual: Tensor, expected: Tensor) -> float:
    """The largest difference, relative to the size of the expected tensor; infinite for other shapes."""
    if tuple(actual.shape) != tuple(expected.shape):
        return float("inf")
    scale = max(float(expected.abs().max()), 1e-3)
    return float((actual - expected.to(actual.dtype)).abs().max()) / scale
