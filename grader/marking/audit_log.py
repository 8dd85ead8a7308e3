"""Who saw and changed what in the console: entries that are only added."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from grader.marking.desk import Desk


class Action(StrEnum):
    """What somebody did."""

    REVEALED = "revealed"
    MARKED = "marked"
    WITHDRAWN = "withdrawn"
    SECOND_MARKED = "second_marked"
    ASSIGNED = "assigned"
    HANDED_OVER = "handed_over"
    FLAGGED = "flagged"
    UNFLAGGED = "unflagged"
    NOTED = "noted"
    ITEMS_CHANGED = "items_changed"
    MARKS_UPDATED = "marks_updated"
    SECOND_CHOSEN = "second_chosen"
    OTHER = "other"


@dataclass(frozen=True)
class LogEntry:
    """One entry.

    Attributes:
        target: The question; empty: none in particular.
        handle: The submission; empty: none in particular.
        detail: What happened, in a few words.
    """

    number: int
    who: str
    when: datetime
    action: Action
    target: str
    handle: str
    detail: str


@dataclass(frozen=True)
class Revealed:
    """Whose a submission is.

    Attributes:
        student_id: Of the student; for a team, of its first member.
        name: As the LMS has it; empty: unknown.
    """

    student_id: str
    name: str


def reveal(desk: Desk, handle: str, marker: str, now: datetime, *, why: str) -> tuple[Revealed, ...]:
    """Whose a submission is, after that was recorded.

    Raises:
        UnknownTask: There is no such submission.
        UsageError: There is no reason.
    """
    raise NotImplementedError


def add_entry(
    desk: Desk, who: str, now: datetime, detail: str, *, target: str = "", handle: str = ""
) -> None:
    """Record something that happened elsewhere in the console, as a decision about the class."""
    raise NotImplementedError


def audit_log(
    desk: Desk,
    *,
    who: str = "",
    target: str = "",
    handle: str = "",
    before: int | None = None,
    limit: int = 100,
) -> tuple[LogEntry, ...]:
    """Entries, newest first.

    Args:
        who, target, handle: Only with these; empty: all.
        before: Only those with a smaller number, for the next page.
    """
    raise NotImplementedError
