"""Numbers of points."""

from collections.abc import Sequence
from itertools import pairwise

from grader.domain.score import rounded


def interpolated(breakpoints: Sequence[tuple[float, float]], value: float) -> float:
    """The points for a measured value: linear between the breakpoints.

    Args:
        breakpoints: (value, points), in ascending order of the values.
        value: What was measured, in the same unit as the breakpoints' values.

    Returns:
        0 below the first breakpoint, the last one's points beyond the last.
    """
    if not breakpoints or not value >= breakpoints[0][0]:
        return 0.0
    earned = breakpoints[0][1]
    for (low, less), (high, more) in pairwise(breakpoints):
        if value >= high:
            earned = more
        elif value > low:
            earned = less + (more - less) * (value - low) / (high - low)
    return rounded(earned)


def plain(points: float) -> str:
    """Points as people write them: `31`, `2.5`."""
    return f"{points:.2f}".rstrip("0").rstrip(".")


def percent(share: float) -> str:
    """A share of one as people write it: `80.6 %`, `60 %`."""
    return f"{share * 100:.1f}".removesuffix(".0") + " %"
