"""Changes of rubric items in retrospect: who has them, what their totals become, and the new marks.

Marks record the points of their items as they were. A mark is behind if an item that it has is worth
something else in the file now, whoever changed it there.
"""

from dataclasses import dataclass, replace
from datetime import datetime

from grader.decisions.mark_entries import Entry, Mark, as_kept, edits_of
from grader.domain.assignment import Assignment
from grader.domain.edit import Marked
from grader.domain.errors import UsageError
from grader.domain.formatting import points
from grader.domain.score import rounded
from grader.gradebook import MarkingRecords, Snapshot
from grader.gradebook.row_records import NumberedMark
from grader.marking.audit_log import Action
from grader.marking.desk import Desk, assignment_now, current_records, grading_assignment
from grader.marking.mark_edits import add_marks, changes_by, snapshot_of
from grader.results.revision import Change

_AT_ONCE = 20  # marks in one transaction, during which nobody else saves


@dataclass(frozen=True)
class AffectedMark:
    """A mark that changes with a rubric item; the members of a team have one each.

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
    return _affected(desk, assignment_now(desk), target, now)


def preview(desk: Desk, item_id: str, value: float, now: datetime) -> tuple[AffectedMark, ...]:
    """The marks that would change if an item were worth another value; nothing is changed.

    Raises:
        UsageError: There is no such item.
    """
    assignment = assignment_now(desk)
    part = next((remark.part for remark in assignment.remarks if remark.id == item_id and remark.part), None)
    if part is None:
        raise UsageError(f"There is no rubric item '{item_id}'. Load the page again.")
    remarks = [
        replace(remark, points=as_kept(value)) if remark.id == item_id else remark
        for remark in assignment.remarks
    ]
    return _affected(desk, replace(assignment, remarks=tuple(remarks)), part, now)


def bring_up_to_date(
    desk: Desk, marker: str, now: datetime, *, target: str = "", allow_lower: bool = False
) -> AppliedChange:
    """Give all marks that are behind anew, each as a new edit that names the change; drafts are kept.

    It can be called again after a failure: what was changed is no longer behind.

    Args:
        marker: Who decides that.
        target: Only of this part; empty: of all.
        allow_lower: Grades that were released may fall.

    Raises:
        UsageError: The rubric was changed since the desk was opened.
    """
    assignment = grading_assignment(desk)
    with current_records(desk) as records:
        behind = _behind(records, assignment, target)
    changed: list[AffectedMark] = []
    left: list[AffectedMark] = []
    for first in range(0, len(behind), _AT_ONCE):
        with current_records(desk, writes=True, grades=True) as records:
            for mark in behind[first : first + _AT_ONCE]:
                again = _behind_mark(assignment, _last_mark(records, mark))
                if again is None:
                    continue  # somebody marked it meanwhile
                affected = _bring_up(records, assignment, again, marker, now, allow_lower=allow_lower)
                if affected is not None:
                    (left if affected.lowers and not allow_lower else changed).append(affected)
    if changed:
        with desk.book.marking(writes=True) as records:
            detail = f"{len(changed)} marks with changed rubric items"
            records.markers.log(Action.MARKS_UPDATED, marker, now, detail, target=target)
    return AppliedChange(tuple(changed), tuple(left))


@dataclass(frozen=True)
class _BehindMark:
    """A mark of a row that is behind, and what it becomes."""

    mark: NumberedMark
    after: Mark
    changes: str


def _behind(records: MarkingRecords, assignment: Assignment, target: str) -> list[_BehindMark]:
    """The marks that are behind, those of all members of teams."""
    targets = [one for one in assignment.mark_targets() if target in ("", one)]
    marks = [
        _behind_mark(assignment, mark) for one in targets for mark in records.rows.valued_marks(one).values()
    ]
    return [mark for mark in marks if mark is not None]


def _last_mark(records: MarkingRecords, behind: _BehindMark) -> NumberedMark | None:
    edit = behind.mark.edit
    marks = records.rows.marks(edit.student_id or "", edit.target)
    return marks[-1] if marks else None


def _behind_mark(assignment: Assignment, mark: NumberedMark | None) -> _BehindMark | None:
    """What becomes of a mark; None if its items are worth the same as then."""
    if mark is None or mark.edit.points is None:
        return None
    edit = mark.edit
    current = {remark.id: remark.points for remark in assignment.remarks if remark.points is not None}
    changed = [
        (item, before, current[item])
        for item, before in edit.valued
        if item in current and current[item] != before
    ]
    if not changed:
        return None
    by_items = assignment.points_by_remarks(
        edit.target, (current.get(item, before) for item, before in edit.valued)
    )
    maximum = assignment.mark_targets()[edit.target]
    points_after = rounded(min(max(by_items + edit.adjustment, 0.0), maximum))
    ids = tuple(remark_id for remark_id, _ in edit.remarks)
    words = "; ".join(f"{item}: {points(before)} -> {points(after)}" for item, before, after in changed)
    return _BehindMark(mark, Mark(points_after, edit.comment, ids), words)


def _new_edit(
    assignment: Assignment, snapshot: Snapshot, behind: _BehindMark, who: str, now: datetime
) -> Marked | None:
    """The mark as it becomes; None if the row is listed no more."""
    edit = behind.mark.edit
    student_id = snapshot.ids_now.id_of(edit.student_id or "")
    if student_id is None or student_id not in snapshot.evidence:
        return None
    entry = Entry("", student_id, edit.target, behind.after, edit, texts=edit.remarks)
    [new] = edits_of([entry], assignment, who=who, when=now, why=f"Rubric items changed ({behind.changes}).")
    return new


def _affected(desk: Desk, assignment: Assignment, target: str, now: datetime) -> tuple[AffectedMark, ...]:
    with current_records(desk) as records:
        behind = _behind(records, assignment, target)
        handles = records.tasks.handles() if behind else {}
        affected = []
        for mark in behind:
            row = mark.mark.edit.student_id or ""
            snapshot = snapshot_of(records, assignment, [row])
            new = _new_edit(assignment, snapshot, mark, "", now)
            if new is not None:
                [change] = changes_by(assignment, snapshot, [new], who="", now=now)
                affected.append(_affected_mark(mark, handles.get(row, ""), change))
    return tuple(affected)


def _affected_mark(behind: _BehindMark, handle: str, change: Change) -> AffectedMark:
    edit, after = behind.mark.edit, behind.after.points
    assert edit.points is not None and after is not None  # marks that were withdrawn are not behind
    return AffectedMark(
        target=edit.target,
        handle=handle,
        marker=edit.who,
        version=behind.mark.number,
        points_before=edit.points,
        points_after=after,
        total_before=change.before.points if change.before is not None else None,
        total_after=change.after.points,
        lowers=change.lowers,
    )


def _bring_up(
    records: MarkingRecords,
    assignment: Assignment,
    behind: _BehindMark,
    marker: str,
    now: datetime,
    *,
    allow_lower: bool,
) -> AffectedMark | None:
    """Give one mark anew, unless a released grade would fall; None if the row is listed no more."""
    row = behind.mark.edit.student_id or ""
    snapshot = snapshot_of(records, assignment, [row])
    new = _new_edit(assignment, snapshot, behind, marker, now)
    if new is None:
        return None
    [change] = changes_by(assignment, snapshot, [new], who=marker, now=now)
    if allow_lower or not change.lowers:
        add_marks(records, assignment, snapshot, [new], who=marker, now=now, allow_lower=allow_lower)
    return _affected_mark(behind, records.tasks.handle_of(row) or "", change)
