"""Who marks what: by question, share, section or list; skipping, flagging and handing over.

What is assigned to nobody is anybody's. A later assignment replaces an earlier one for the same tasks.
"""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from grader.domain.errors import UsageError
from grader.gradebook import MarkingRecords
from grader.gradebook.task_records import TaskRow
from grader.marking.audit_log import Action, stated_text
from grader.marking.desk import (
    Desk,
    UnknownTask,
    current_records,
    require_question,
    required_task,
    rows_of_submission,
)


@dataclass(frozen=True)
class Flag:
    """A marker's request that somebody else looks at a task."""

    marker: str
    text: str
    when: datetime


@dataclass(frozen=True)
class MarkerNote:
    """A note for markers, which no student sees; `target` is empty if it is about the whole submission."""

    marker: str
    text: str
    when: datetime
    target: str


def assign_question(
    desk: Desk, target: str, marker: str, now: datetime, *, by: str, only_unmarked: bool = True
) -> int:
    """Assign all submissions of a question to a marker (empty: to nobody).

    Args:
        by: Who assigns them.

    Returns:
        The number of tasks that are assigned.

    Raises:
        UnknownTask: There is no such question.
    """
    with current_records(desk, writes=True) as records:
        tasks = _tasks(desk, records, target, only_unmarked=only_unmarked)
        records.markers.allocate(target, {task.row: marker for task in tasks})
        _log(records, by, now, target, {marker: len(tasks)})
    return len(tasks)


def assign_shares(
    desk: Desk,
    target: str,
    weights: Mapping[str, float],
    now: datetime,
    *,
    by: str,
    only_unmarked: bool = True,
) -> dict[str, int]:
    """Assign the submissions of a question to several markers, in proportion to their weights.

    Args:
        weights: Marker -> a positive number.

    Returns:
        Marker -> the number of tasks.

    Raises:
        UnknownTask: There is no such question.
        UsageError: A weight is not positive.
    """
    if not weights or not all(weight > 0 and math.isfinite(weight) for weight in weights.values()):
        raise UsageError("Each marker needs a weight above 0. Leave out those who mark nothing.")
    with current_records(desk, writes=True) as records:
        tasks = _tasks(desk, records, target, only_unmarked=only_unmarked)
        counts = shares(len(tasks), weights)
        markers = [marker for marker, count in counts.items() for _ in range(count)]
        marker_by_row = {task.row: marker for task, marker in zip(tasks, markers, strict=True)}
        records.markers.allocate(target, marker_by_row)
        _log(records, by, now, target, counts)
    return counts


def assign_sections(
    desk: Desk,
    target: str,
    sections: Mapping[str, str],
    markers: Mapping[str, Sequence[str]],
    now: datetime,
    *,
    by: str,
    only_unmarked: bool = True,
) -> dict[str, int]:
    """Assign the submissions of a question by the sections of the students; for a team, of its first one.

    Args:
        sections: Student -> section.
        markers: Section -> those who share its submissions evenly; students of other sections keep whom they
            have.

    Returns:
        Marker -> the number of tasks.

    Raises:
        UnknownTask: There is no such question.
    """
    with current_records(desk, writes=True) as records:
        ids_now = records.rows.ids_now()
        rows: dict[str, list[str]] = {section: [] for section in markers}
        for task in _tasks(desk, records, target, only_unmarked=only_unmarked):
            section = sections.get(ids_now.id_of(task.row) or "", "")
            if section in rows:
                rows[section].append(task.row)
        marker_by_row = {
            row: marker
            for section, section_rows in rows.items()
            for row, marker in _shared(section_rows, markers[section])
        }
        records.markers.allocate(target, marker_by_row)
        counts = dict(Counter(marker_by_row.values()))
        _log(records, by, now, target, counts)
    return counts


def _shared(rows: Sequence[str], markers: Sequence[str]) -> Iterator[tuple[str, str]]:
    """(row, marker) with the rows in even shares, each of rows that follow each other."""
    counts = shares(len(rows), dict.fromkeys(markers, 1.0))
    yield from zip(rows, (marker for marker, count in counts.items() for _ in range(count)), strict=True)


def assign_list(
    desk: Desk, target: str, students: Sequence[str], marker: str, now: datetime, *, by: str
) -> int:
    """Assign the submissions of certain students to a marker (empty: to nobody), marked or not.

    Returns:
        The number of tasks that are assigned.

    Raises:
        UnknownTask: There is no such question, or one of the students has nothing to mark in it.
    """
    with current_records(desk, writes=True) as records:
        ids_now = records.rows.ids_now()
        leaders = {task.handle: task.row for task in _tasks(desk, records, target, only_unmarked=False)}
        rows = {}
        for student_id in students:
            handle = records.tasks.handle_of(ids_now.row_of(student_id))
            if handle not in leaders:
                raise UnknownTask(
                    f"There is nothing to mark of '{student_id}' in '{target}'. Correct the list."
                )
            rows[leaders[handle]] = marker
        records.markers.allocate(target, rows)
        _log(records, by, now, target, {marker: len(rows)})
    return len(rows)


def hand_over(
    desk: Desk, target: str, handle: str, to: str, marker: str, now: datetime, *, text: str = ""
) -> None:
    """Assign one task to somebody else (empty: to nobody), with a note; the own draft is kept.

    Raises:
        UnknownTask: There is no such task.
    """
    with current_records(desk, writes=True) as records:
        row = required_task(records, target, handle).row
        records.markers.allocate(target, {row: to})
        records.markers.unskip(target, to, row)
        records.markers.leave(target, row, marker)
        if text.strip():
            note = stated_text(text, "")
            records.markers.add_note(target, row, marker, note, now)
        records.markers.log(Action.HANDED_OVER, marker, now, f"to {to or 'nobody'}", target=target, row=row)


def skip(desk: Desk, target: str, handle: str, marker: str, now: datetime) -> None:
    """Leave a task out of what is offered to this marker.

    Raises:
        UnknownTask: There is no such task.
    """
    with current_records(desk, writes=True) as records:
        row = required_task(records, target, handle).row
        records.markers.skip(target, row, marker, now)
        records.markers.leave(target, row, marker)


def unskip(desk: Desk, target: str, marker: str) -> int:
    """Offer a marker again what they skipped in a question; returns how many that is."""
    with desk.book.marking(writes=True) as records:
        return records.markers.unskip(target, marker)


def flag(desk: Desk, target: str, handle: str, text: str, marker: str, now: datetime) -> None:
    """Ask that somebody else looks at a task, with a text for them.

    Raises:
        UnknownTask: There is no such task.
    """
    sentence = stated_text(text, "Say what somebody else should look at.")
    with current_records(desk, writes=True) as records:
        row = required_task(records, target, handle).row
        records.markers.add_flag(target, row, marker, sentence, now)
        records.markers.log(Action.FLAGGED, marker, now, sentence, target=target, row=row)


def unflag(desk: Desk, target: str, handle: str, marker: str, now: datetime) -> None:
    """Remove the flags of a task, whoever set them.

    Raises:
        UnknownTask: There is no such task.
    """
    with current_records(desk, writes=True) as records:
        row = required_task(records, target, handle).row
        if count := records.markers.remove_flags(target, row):
            records.markers.log(Action.UNFLAGGED, marker, now, f"{count} removed", target=target, row=row)


def flags(desk: Desk, target: str, handle: str) -> tuple[Flag, ...]:
    """The flags of a task, oldest first.

    Raises:
        UnknownTask: There is no such task.
    """
    with current_records(desk) as records:
        row = required_task(records, target, handle).row
        return tuple(Flag(one.marker, one.text, one.when) for one in records.markers.flags(target, row))


def add_note(desk: Desk, target: str, handle: str, text: str, marker: str, now: datetime) -> None:
    """Add a note for markers; it stays.

    Args:
        target: The task's; empty: about the whole submission.

    Raises:
        UnknownTask: There is no such submission.
        UsageError: The text is empty or too long.
    """
    words = stated_text(text, "Write something into the note.")
    with current_records(desk, writes=True) as records:
        row = required_task(records, target, handle).row if target else rows_of_submission(records, handle)[0]
        records.markers.add_note(target, row, marker, words, now)


def notes(desk: Desk, handle: str) -> tuple[MarkerNote, ...]:
    """The notes about a submission, in all its parts, oldest first.

    Raises:
        UnknownTask: There is no such submission.
    """
    with current_records(desk) as records:
        found = records.markers.notes(rows_of_submission(records, handle))
    return tuple(MarkerNote(one.marker, one.text, one.when, one.target) for one in found)


def shares(count: int, weights: Mapping[str, float]) -> dict[str, int]:
    """How many of some tasks each marker gets: in proportion to the weights, by largest remainders.

    Args:
        weights: Marker -> a positive number; markers named earlier get what remains of equal ones.
    """
    total = sum(weights.values())
    exact = {marker: count * weight / total for marker, weight in weights.items()}
    whole = {marker: math.floor(share) for marker, share in exact.items()}
    by_remainder = sorted(exact, key=lambda marker: whole[marker] - exact[marker])
    for marker in by_remainder[: count - sum(whole.values())]:
        whole[marker] += 1
    return whole


def _tasks(desk: Desk, records: MarkingRecords, target: str, *, only_unmarked: bool) -> list[TaskRow]:
    require_question(desk, target)
    return [task for task in records.tasks.of_question(target) if task.open or not only_unmarked]


def _log(records: MarkingRecords, by: str, now: datetime, target: str, counts: Mapping[str, int]) -> None:
    detail = ", ".join(f"{marker or 'nobody'}: {count}" for marker, count in counts.items())
    records.markers.log(Action.ASSIGNED, by, now, detail or "nothing", target=target)
