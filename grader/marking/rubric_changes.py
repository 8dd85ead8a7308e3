"""Changes of rubric items in retrospect: who has them, what their totals become, and the new marks.

Marks record the points of their items as they were. A mark is behind if an item that it has is worth
something else in the file now, whoever changed it there.
"""

from dataclasses import dataclass
from datetime import datetime

from grader.marking.desk import Desk


@dataclass(frozen=True)
class AffectedMark:
    """A mark that changes with a rubric item.

    Attributes:
        handle: Of the submission.
        version: Of the mark.
        total_before, total_after: The whole submission's; None: it has none.
        lowers: Whether a grade that was released would fall.
    """

    target: str
    handle: str
    marker: str
    version: int
    points_before: float
    points_after: float
    total_before: float | None
    total_after: float | None
    lowers: bool


@dataclass(frozen=True)
class AppliedChange:
    """The outcome of bringing marks up to date.

    Attributes:
        changed: Those that have a new mark.
        left: Those that keep theirs because a released grade would fall.
    """

    changed: tuple[AffectedMark, ...]
    left: tuple[AffectedMark, ...]


def marks_behind(desk: Desk, now: datetime, *, target: str = "") -> tuple[AffectedMark, ...]:
    """The marks with items that are worth something else now, with what would become of them.

    Args:
        target: Only of this part; empty: of all.
    """
    raise NotImplementedError


def preview(desk: Desk, item_id: str, points: float, now: datetime) -> tuple[AffectedMark, ...]:
    """The marks that would change if an item were worth these points; nothing is changed.

    Raises:
        UsageError: There is no such item.
    """
    raise NotImplementedError


def bring_up_to_date(
    desk: Desk, marker: str, now: datetime, *, target: str = "", allow_lower: bool = False
) -> AppliedChange:
    """Give all marks that are behind anew, each as a new edit that names the change; drafts are kept.

    It can be called again after a failure: what was changed is no longer behind.

    Args:
        marker: Who decides that.
        target: Only of this part; empty: of all.
        allow_lower: Grades that were released may fall.
    """
    raise NotImplementedError
