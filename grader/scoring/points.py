"""Numbers of points."""

from collections.abc import Sequence
from itertools import pairwise

from grader.domain.score import rounded


def interpolated(
    breakpoints: Sequence[tuple[float, float]], value: float, *, lower_is_better: bool = False
) -> float:
    """The points for a measured value: linear between the breakpoints.

    Args:
        breakpoints: (value, points), in ascending order of the values.
        value: What was measured, in the same unit as the breakpoints' values.
        lower_is_better: The lowest breakpoint is the best one.

    Returns:
        0 on the worse side of the worst breakpoint, the best one's points beyond the best.
    """
    if lower_is_better:
        return interpolated([(-at, points) for at, points in reversed(breakpoints)], -value)
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
