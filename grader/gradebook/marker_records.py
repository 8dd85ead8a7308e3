"""What markers leave beside the grades: allocations, drafts, presence, flags, notes, second marks, a log."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, Table, delete, insert, select

from grader.gradebook.marking_tables import ALLOCATIONS, DRAFTS, FLAGS, LOG, NOTES, PRESENCE, SECONDS, SKIPS
from grader.gradebook.records import stamp
from grader.gradebook.statements import rows_about


@dataclass(frozen=True)
class DraftRecord:
    """What a marker has not saved yet.

    Attributes:
        content: Whatever was given to keep.
        drawn_from: The version of the mark that was shown beside it.
        run: The run whose files were shown beside it; None: nobody knows.
    """

    content: str
    drawn_from: int
    run: int | None
    when: datetime


@dataclass(frozen=True)
class PresenceRecord:
    """Who has a task open."""

    marker: str
    since: datetime
    active: datetime


@dataclass(frozen=True)
class TextRecord:
    """A flag, a note or a second mark.

    Attributes:
        points: Of a second mark; None for others.
    """

    number: int
    target: str
    row: str
    marker: str
    text: str
    when: datetime
    points: float | None = None


@dataclass(frozen=True)
class LogRecord:
    """An entry of the log; `target` and `row` are empty if it is about none in particular."""

    number: int
    action: str
    target: str
    row: str
    who: str
    detail: str
    when: datetime


class MarkerRecords:
    """What markers leave about the tasks of one assignment.

    Args:
        connection: To the gradebook; within a transaction.
    """

    def __init__(self, connection: Connection, assignment_id: str) -> None:
        self._connection = connection
        self._assignment_id = assignment_id

    def _of(self, table: Table, target: str, row: str, marker: str | None = None) -> ColumnElement[bool]:
        about = rows_about(table, self._assignment_id, row) & (table.c.target == target)
        return about if marker is None else about & (table.c.marker == marker)

    def _put(self, table: Table, target: str, row: str, marker: str, **more: Any) -> None:
        """Put a row in place of the former one."""
        self._connection.execute(delete(table).where(self._of(table, target, row, marker)))
        self._add(table, target, row, marker, **more)

    def _add(self, table: Table, target: str, row: str, marker: str, **more: Any) -> None:
        values = {"target": target, "student_id": row, "marker": marker, **more}
        self._connection.execute(insert(table), {"assignment_id": self._assignment_id, **values})

    # --- allocations -------------------------------------------------------------------------------------

    def allocate(self, target: str, marker_by_row: Mapping[str, str], *, second: bool = False) -> None:
        """Allocate tasks; those with an empty marker to nobody."""
        if not marker_by_row:
            return
        same = rows_about(ALLOCATIONS, self._assignment_id) & (ALLOCATIONS.c.target == target)
        former = same & ALLOCATIONS.c.second.is_(second)
        rows = list(marker_by_row)
        for first in range(0, len(rows), _AT_ONCE):
            some = ALLOCATIONS.c.student_id.in_(rows[first : first + _AT_ONCE])
            self._connection.execute(delete(ALLOCATIONS).where(former & some))
        values = [
            {"target": target, "student_id": row, "second": second, "marker": marker}
            for row, marker in marker_by_row.items()
            if marker
        ]
        if values:
            assignment = {"assignment_id": self._assignment_id}
            self._connection.execute(insert(ALLOCATIONS), [{**assignment, **one} for one in values])

    def allocated(self, target: str, row: str, *, second: bool = False) -> str:
        """To whom a task is allocated; empty: to nobody."""
        about = self._of(ALLOCATIONS, target, row) & ALLOCATIONS.c.second.is_(second)
        marker: str | None = self._connection.execute(
            select(ALLOCATIONS.c.marker).where(about)
        ).scalar_one_or_none()
        return marker or ""

    def allocations(self, target: str, *, second: bool = False) -> dict[str, str]:
        """Row -> to whom its task of a question is allocated."""
        about = rows_about(ALLOCATIONS, self._assignment_id) & (ALLOCATIONS.c.target == target)
        query = select(ALLOCATIONS.c.student_id, ALLOCATIONS.c.marker)
        rows = self._connection.execute(query.where(about, ALLOCATIONS.c.second.is_(second)))
        return {row.student_id: row.marker for row in rows}

    # --- drafts and skips --------------------------------------------------------------------------------

    def keep_draft(self, target: str, row: str, marker: str, draft: DraftRecord) -> None:
        """Keep a draft in place of the marker's former one."""
        shown = {"drawn_from": draft.drawn_from, "run": draft.run}
        self._put(DRAFTS, target, row, marker, content=draft.content, **shown, at=stamp(draft.when))

    def drop_draft(self, target: str, row: str, marker: str) -> None:
        """Forget a marker's draft."""
        self._connection.execute(delete(DRAFTS).where(self._of(DRAFTS, target, row, marker)))

    def draft(self, target: str, row: str, marker: str) -> DraftRecord | None:
        """A marker's draft."""
        query = select(DRAFTS).where(self._of(DRAFTS, target, row, marker))
        draft = self._connection.execute(query).one_or_none()
        if draft is None:
            return None
        return DraftRecord(draft.content, draft.drawn_from, draft.run, datetime.fromisoformat(draft.at))

    def skip(self, target: str, row: str, marker: str, when: datetime) -> None:
        """Note that a marker skipped a task."""
        self._put(SKIPS, target, row, marker, at=stamp(when))

    def unskip(self, target: str, marker: str, row: str | None = None) -> int:
        """Forget what a marker skipped in a question; returns how many that was."""
        about = (
            rows_about(SKIPS, self._assignment_id, row)
            & (SKIPS.c.target == target)
            & (SKIPS.c.marker == marker)
        )
        return self._connection.execute(delete(SKIPS).where(about)).rowcount

    # --- presence ----------------------------------------------------------------------------------------

    def touch(self, target: str, row: str, marker: str, since: datetime, now: datetime) -> None:
        """Note that a marker has a task open since then, and is active now."""
        self._put(PRESENCE, target, row, marker, since=stamp(since), active=stamp(now))

    def leave(self, target: str, row: str, marker: str) -> None:
        """Note that a marker closed a task."""
        self._connection.execute(delete(PRESENCE).where(self._of(PRESENCE, target, row, marker)))

    def present(self, target: str, row: str, active: datetime) -> list[PresenceRecord]:
        """Who has a task open and was active since then, in the order in which they came."""
        about = self._of(PRESENCE, target, row) & (PRESENCE.c.active >= stamp(active))
        query = select(PRESENCE).where(about).order_by(PRESENCE.c.since, PRESENCE.c.marker)
        return [
            PresenceRecord(one.marker, datetime.fromisoformat(one.since), datetime.fromisoformat(one.active))
            for one in self._connection.execute(query)
        ]

    # --- texts -------------------------------------------------------------------------------------------

    def add_flag(self, target: str, row: str, marker: str, text: str, when: datetime) -> None:
        """Add a flag to a task."""
        self._add(FLAGS, target, row, marker, text=text, at=stamp(when))

    def remove_flags(self, target: str, row: str) -> int:
        """Remove all flags of a task; returns how many that was."""
        return self._connection.execute(delete(FLAGS).where(self._of(FLAGS, target, row))).rowcount

    def flags(self, target: str, row: str) -> list[TextRecord]:
        """The flags of a task, oldest first."""
        return self._texts(FLAGS, self._of(FLAGS, target, row))

    def add_note(self, target: str, row: str, marker: str, text: str, when: datetime) -> None:
        """Add a note about a submission, or about a part of it."""
        self._add(NOTES, target, row, marker, text=text, at=stamp(when))

    def notes(self, rows: Collection[str]) -> list[TextRecord]:
        """The notes about submissions, oldest first."""
        return self._texts(NOTES, rows_about(NOTES, self._assignment_id) & NOTES.c.student_id.in_(rows))

    def add_second(self, target: str, row: str, marker: str, text: str, points: float, when: datetime) -> int:
        """Add a second mark; returns its number."""
        values = {"target": target, "student_id": row, "marker": marker, "text": text, "points": points}
        added = self._connection.execute(
            insert(SECONDS).values(assignment_id=self._assignment_id, at=stamp(when), **values)
        ).inserted_primary_key
        assert added is not None
        number: int = added[0]
        return number

    def seconds(self, target: str, row: str, marker: str) -> list[TextRecord]:
        """A marker's second marks of a task, oldest first."""
        return self._texts(SECONDS, self._of(SECONDS, target, row, marker))

    def seconds_of_question(self, target: str) -> list[TextRecord]:
        """All second marks of a question, oldest first."""
        return self._texts(SECONDS, rows_about(SECONDS, self._assignment_id) & (SECONDS.c.target == target))

    def _texts(self, table: Table, about: ColumnElement[bool]) -> list[TextRecord]:
        rows = self._connection.execute(select(table).where(about).order_by(table.c.id))
        return [_text_record(row) for row in rows]

    # --- log ---------------------------------------------------------------------------------------------

    def log(
        self, action: str, who: str, when: datetime, detail: str, *, target: str = "", row: str = ""
    ) -> None:
        """Add an entry to the log."""
        self._add(LOG, target, row, who, text=detail, at=stamp(when), action=action)

    def entries(
        self, *, who: str, target: str, rows: Sequence[str], before: int | None, limit: int
    ) -> list[LogRecord]:
        """Entries of the log, newest first; see `grader.marking.audit_log`."""
        query = select(LOG).where(rows_about(LOG, self._assignment_id)).order_by(LOG.c.id.desc()).limit(limit)
        if who:
            query = query.where(LOG.c.marker == who)
        if target:
            query = query.where(LOG.c.target == target)
        if rows:
            query = query.where(LOG.c.student_id.in_(rows))
        if before is not None:
            query = query.where(LOG.c.id < before)
        return [
            LogRecord(
                row.id,
                row.action,
                row.target,
                row.student_id,
                row.marker,
                row.text,
                datetime.fromisoformat(row.at),
            )
            for row in self._connection.execute(query)
        ]


_AT_ONCE = 500  # values in one statement


def _text_record(row: Row[Any]) -> TextRecord:
    points = row._mapping.get("points")
    when = datetime.fromisoformat(row.at)
    return TextRecord(row.id, row.target, row.student_id, row.marker, row.text, when, points)
