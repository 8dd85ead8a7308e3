"""Who saw and changed what in the console: entries that are only added."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from grader.domain.errors import UsageError
from grader.domain.formatting import printable
from grader.marking.desk import Desk, current_records, rows_of_submission

_LONGEST = 5000  # characters of a text


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
    reason = stated_text(why, "Say why you need to know whose it is: it is recorded.")
    with current_records(desk, writes=True) as records:
        rows = rows_of_submission(records, handle)
        snapshot = records.rows.snapshot(rows)
        shown = [snapshot.ids_now.id_of(row) for row in rows]
        records.markers.log(Action.REVEALED, marker, now, reason, row=rows[0])
    return tuple(
        Revealed(student_id, snapshot.evidence[student_id].origin.person)
        for student_id in shown
        if student_id is not None
    )


def add_entry(
    desk: Desk, who: str, now: datetime, detail: str, *, target: str = "", handle: str = ""
) -> None:
    """Record something that happened elsewhere in the console, as a decision about the class.

    Raises:
        UnknownTask: There is no such submission.
        UsageError: There is no detail.
    """
    text = stated_text(detail, "An entry of the log needs words.")
    # only a submission is looked up in the list of tasks, which a decision about the class makes anew
    opened = current_records(desk, writes=True) if handle else desk.book.marking(writes=True)
    with opened as records:
        row = rows_of_submission(records, handle)[0] if handle else ""
        records.markers.log(Action.OTHER, who, now, text, target=target, row=row)


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

    Raises:
        UnknownTask: There is no such submission.
    """
    with current_records(desk) as records:
        rows = rows_of_submission(records, handle) if handle else []
        entries = records.markers.entries(who=who, target=target, rows=rows, before=before, limit=limit)
        handles = records.tasks.handles()
    return tuple(
        LogEntry(
            entry.number,
            entry.who,
            entry.when,
            Action(entry.action) if entry.action in tuple(Action) else Action.OTHER,
            entry.target,
            handles.get(entry.row, ""),
            entry.detail,
        )
        for entry in entries
    )


def stated_text(text: str, lacking: str) -> str:
    """A text of a marker, fit to be stored.

    Args:
        lacking: What to do if there is none, as a sentence.

    Raises:
        UsageError: It is empty, or longer than 5000 characters.
    """
    cleaned = printable(text).strip()
    if not cleaned:
        raise UsageError(lacking)
    if len(cleaned) > _LONGEST:
        raise UsageError(f"The text has {len(cleaned)} characters. At most {_LONGEST} are kept: shorten it.")
    return cleaned
