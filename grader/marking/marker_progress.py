"""How far each marker is, and how their points lie."""

from dataclasses import dataclass
from datetime import datetime

from grader.marking.desk import Desk


@dataclass(frozen=True)
class MarkerProgress:
    """One marker's marks of one question; a team counts once.

    Attributes:
        marker: Empty for what is assigned to nobody.
        assigned: How many tasks are assigned to them.
        marked: How many marks that stand are theirs.
        left: How many of those assigned to them have no mark.
        median, lowest, highest: Of their points; None without marks.
        spread: The standard deviation of their points (of the sample); None with fewer than two.
        last: When they gave their last mark.
    """

    marker: str
    target: str
    maximum: float
    assigned: int
    marked: int
    left: int
    median: float | None
    lowest: float | None
    highest: float | None
    spread: float | None
    last: datetime | None


def marker_progress(desk: Desk, now: datetime, *, target: str = "") -> tuple[MarkerProgress, ...]:
    """The progress of all markers, by question and marker.

    Args:
        target: Only this question; empty: all.
    """
    raise NotImplementedError
