"""Second marks on a chosen share, blind to the first, and how well both agree.

A second mark changes no grade. Whoever compares both saves another mark over the first one if they want to.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from grader.marking.desk import Desk


@dataclass(frozen=True)
class MarkedTwice:
    """A task with two marks."""

    handle: str
    first_marker: str
    first: float
    second_marker: str
    second: float
    comment: str


@dataclass(frozen=True)
class Agreement:
    """How well first and second marks of a question agree.

    Attributes:
        chosen: The number of tasks that are to be marked twice.
        pairs: Those that have both marks.
        equal: The share of pairs with the same points; None without pairs.
        mean_difference: Second minus first, in points: a stricter second marker has a negative one.
        mean_distance: The mean of the distances, in points.
        correlation: Pearson's, from -1 to 1; None with fewer than two pairs, or if all points are equal.
    """

    target: str
    chosen: int
    pairs: tuple[MarkedTwice, ...]
    equal: float | None
    mean_difference: float | None
    mean_distance: float | None
    correlation: float | None


def choose_second(
    desk: Desk, target: str, share: float, markers: Sequence[str], now: datetime, *, by: str
) -> int:
    """Have a share of a question's submissions marked a second time.

    They are drawn from the class's salt: the same share gives the same submissions, and a larger one adds to
    them. Nobody is the second marker of what is assigned to, or was marked by, themselves.

    Args:
        share: From 0 to 1.
        markers: The second markers.

    Returns:
        The number of tasks that have a second marker now.

    Raises:
        UnknownTask: There is no such question.
        UsageError: The share is not from 0 to 1, or there is no marker.
    """
    raise NotImplementedError


def agreement(desk: Desk, target: str, now: datetime) -> Agreement:
    """How well the two marks agree, for those who may see both.

    Raises:
        UnknownTask: There is no such question.
    """
    raise NotImplementedError
