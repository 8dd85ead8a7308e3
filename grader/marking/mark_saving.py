"""Opens a task for a marker, and saves marks so that nobody overwrites a colleague's unseen.

A mark is saved as the same edit that a marking sheet or `grader marks set` gives, for a whole team, after
the same checks, and never lowers a released grade unless that is allowed. The pages of the class are written
later: whoever runs a console calls `grader.results.class_pages.write_pages` when markers pause, and every
command writes them first if they are behind.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime

from grader.decisions.mark_entries import (
    Entry,
    Mark,
    MarkChecks,
    MarkFault,
    MarkField,
    MarkRefused,
    as_kept,
    edits_of,
    in_words,
    mark_of,
    with_mates,
)
from grader.decisions.marking_sheet import current_marks
from grader.domain.assignment import Assignment, part_target
from grader.domain.edit import Marked
from grader.domain.errors import UsageError
from grader.domain.formatting import printable
from grader.domain.score import rounded
from grader.domain.submission_result import shared_by
from grader.files.stored_records import validator
from grader.gradebook import MarkingRecords
from grader.gradebook.marker_records import DraftRecord, TextRecord
from grader.gradebook.row_records import NumberedMark
from grader.gradebook.task_records import TaskRow
from grader.marking.audit_log import Action, stated_text
from grader.marking.desk import (
    Desk,
    UnknownTask,
    assignment_now,
    current_records,
    grading_assignment,
    require_question,
    required_task,
)
from grader.marking.mark_edits import add_marks, snapshot_of
from grader.marking.rubric_items import MarkingItem


@dataclass(frozen=True)
class ChosenMark:
    """What a marker chooses for a part.

    Attributes:
        items: Ids of the part's rubric items.
        points: Points given by hand; None: those that the items and the adjustment give.
        adjustment: Points in addition to those that the items give.
        reason: Why it is adjusted; markers read it, students do not.
        comment: Free text for the student.
        remarks: Ids of the comment bank.
    """

    items: tuple[str, ...] = ()
    points: float | None = None
    adjustment: float = 0.0
    reason: str = ""
    comment: str = ""
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True)
class StoredMark:
    """A mark in the gradebook.

    Attributes:
        version: Its number in the gradebook; each later mark has a larger one.
        points: None: the mark before was withdrawn.
        items: Rubric item -> its points when the mark was given; 0 for a second mark.
        texts: Rubric item -> what the student reads; () for a second mark.
        adjustment: Points in addition to those that the items gave.
        remarks: Id -> text of the other comments.
        why: The reason of the adjustment or withdrawal.
        sheet: The marking sheet from which it came; empty: it came in another way.
        earlier_attempt: Whether it was about files that the student replaced since.
    """

    version: int
    points: float | None
    marker: str
    when: datetime
    comment: str
    remarks: tuple[tuple[str, str], ...]
    items: tuple[tuple[str, float], ...]
    texts: tuple[tuple[str, str], ...]
    adjustment: float
    why: str
    sheet: str
    earlier_attempt: bool


@dataclass(frozen=True)
class Draft:
    """What a marker has not saved yet.

    Attributes:
        drawn_from: The version of the mark that the page showed.
        is_outdated: Whether somebody saved a mark since.
        is_of_other_files: Whether other files counted then.
    """

    chosen: ChosenMark
    drawn_from: int
    when: datetime
    is_outdated: bool
    is_of_other_files: bool


@dataclass(frozen=True)
class OpenedTask:
    """Everything but the submission itself that a marker sees of a task.

    Attributes:
        start: The points that a mark without rubric items has: the maximum, or 0.
        by_person: Whether a person marks it for everybody.
        mark: The mark that stands; None: none. A second marker sees only their own.
        removed: Its rubric items that the file has no longer, as they were when the mark was given; () for a
            second marker.
        version: To be given to `save_mark`; 0: no mark was ever given.
        run: The number of the run that counts, whose files the marker sees; to be given to `save_mark`, too.
        history: All marks of this task, oldest first; for a second marker, only their own.
        draft: This marker's draft; None: there is none.
        team: How many students handed it in together; 1: a student alone.
        assigned: To whom it is assigned; empty: to nobody.
        second: Whether the asking marker marks it as the second one.
    """

    target: str
    handle: str
    title: str
    maximum: float
    start: float
    by_person: bool
    mark: StoredMark | None
    removed: tuple[MarkingItem, ...]
    version: int
    run: int
    history: tuple[StoredMark, ...]
    draft: Draft | None
    team: int
    assigned: str
    second: bool


class Conflict(UsageError):
    """Somebody else saved a mark since the page was drawn. Nothing was saved.

    Attributes:
        theirs: The mark that stands now; its `version` is the one to save over it with.
        yours: What was to be saved; it is kept as a draft.
    """

    def __init__(self, theirs: StoredMark, yours: ChosenMark) -> None:
        self.theirs, self.yours = theirs, yours
        super().__init__(f"{theirs.marker} saved a mark meanwhile. Choose one of both and save again.")


@dataclass(frozen=True)
class SavedMark:
    """A mark that was saved.

    Attributes:
        stored: The mark; None: it equals the one before, so that nothing was added.
        version: The version that stands now.
        notes: What stays as it is for other members of a team, one sentence each.
        changes: The totals that changed, in words with the students' ids. Not for blind pages.
    """

    stored: StoredMark | None
    version: int
    notes: tuple[str, ...]
    changes: tuple[str, ...]


def opened_task(desk: Desk, target: str, handle: str, marker: str) -> OpenedTask:
    """The task as one marker sees it. Opening takes nothing from anybody: see `presence.touch`.

    Raises:
        UnknownTask: There is no such task.
    """
    assignment = assignment_now(desk)
    with current_records(desk) as records:
        task = required_task(records, target, handle)
        view = _view(records, task, marker)
        draft = _draft(records, task, view, marker)
        assigned = records.markers.allocated(target, task.row)
        run = records.rows.counting(task.row)
    item = next(item for item in assignment.rubric if item.id == target.partition(".")[0])
    part = next((part for part in item.parts if part_target(item, part) == target), None)
    return OpenedTask(
        target=target,
        handle=handle,
        title=item.title if part is None else f"{item.title}: {part.title}",
        maximum=task.maximum,
        start=assignment.points_by_remarks(target, ()),
        by_person=item.by_person,
        mark=view.mark,
        removed=_removed_items(assignment, target, view),
        version=view.version,
        run=run,
        history=view.history,
        draft=draft,
        team=task.team,
        assigned=assigned,
        second=view.second,
    )


def save_mark(
    desk: Desk,
    target: str,
    handle: str,
    chosen: ChosenMark,
    marker: str,
    now: datetime,
    *,
    drawn_from: int,
    seen: int | None = None,
    allow_lower: bool = False,
) -> SavedMark:
    """Save a mark for a submission, drop this marker's draft and skip, and close the task for them.

    A second marker's mark is kept beside the first one and changes no grade: see `second_marking`.

    Args:
        drawn_from: The version of the mark that the marker saw (`OpenedTask.version`).
        seen: The run whose files the marker saw (`OpenedTask.run`); None: the one that counts.
        allow_lower: A grade that was released may fall.

    Raises:
        Conflict: Somebody saved a mark since.
        MarkRefused: Points or comments are not allowed, each with a reason.
        WouldLower: A grade that was released would fall.
        UsageError: An adjustment has no reason, other files count than the marker saw, or the rubric was
            changed since the desk was opened.
        UnknownTask: There is no such task.
    """
    require_question(desk, target)
    assignment, cleaned = grading_assignment(desk), _cleaned(chosen)
    with current_records(desk, writes=True, grades=True) as records:
        task = required_task(records, target, handle)
        _require_seen(records, task, seen)
        view = _view(records, task, marker)
        removed = {item.id: item.points for item in _removed_items(assignment, target, view)}
        mark = _mark(assignment, target, cleaned, removed)
        conflict = _conflict(view, cleaned, mark, drawn_from)
        if conflict is not None:
            text = DraftRecord(_text(cleaned), drawn_from, seen, now)
            records.markers.keep_draft(target, task.row, marker, text)
        elif view.second:
            _require_allowed(MarkChecks(assignment, ()), mark, task, None)
            saved = _saved_second(records, task, cleaned, mark, marker, now)
        else:
            given = _Given(mark, cleaned.reason, marker, now)
            saved = _saved(records, assignment, task, given, allow_lower=allow_lower)
        if conflict is None:
            records.markers.leave(target, task.row, marker)
    if conflict is not None:
        raise conflict
    return saved


def withdraw_mark(
    desk: Desk,
    target: str,
    handle: str,
    marker: str,
    now: datetime,
    *,
    why: str,
    drawn_from: int,
    allow_lower: bool = False,
) -> SavedMark:
    """Take back the mark of a submission, so that it is unmarked again. The student reads the reason.

    Raises:
        Conflict: Somebody saved a mark since.
        WouldLower: A grade that was released would fall.
        UsageError: There is no reason, it is a second mark, or the rubric changed since the desk was opened.
        UnknownTask: There is no such task.
    """
    assignment, reason = grading_assignment(desk), stated_text(why, "Say why you take the mark back.")
    with current_records(desk, writes=True, grades=True) as records:
        task = required_task(records, target, handle)
        view = _view(records, task, marker)
        if view.second:
            raise UsageError("A second mark cannot be taken back. Save other points over it.")
        conflict = _conflict(view, ChosenMark(), Mark(), drawn_from)
        if conflict is not None:
            raise conflict
        given = _Given(Mark(), reason, marker, now)
        return _saved(records, assignment, task, given, allow_lower=allow_lower)


def keep_draft(
    desk: Desk,
    target: str,
    handle: str,
    chosen: ChosenMark,
    marker: str,
    now: datetime,
    *,
    drawn_from: int,
    seen: int | None = None,
) -> None:
    """Keep what a marker has entered so far, in place of the earlier draft. It is not checked.

    Args:
        drawn_from: The version of the mark that the marker saw.
        seen: The run whose files the marker saw; None: it is not known.

    Raises:
        UnknownTask: There is no such task.
    """
    draft = DraftRecord(_text(_cleaned(chosen)), drawn_from, seen, now)
    with current_records(desk, writes=True) as records:
        row = required_task(records, target, handle).row
        records.markers.keep_draft(target, row, marker, draft)


def drop_draft(desk: Desk, target: str, handle: str, marker: str) -> None:
    """Forget a marker's draft, if there is one.

    Raises:
        UnknownTask: There is no such task.
    """
    with current_records(desk, writes=True) as records:
        records.markers.drop_draft(target, required_task(records, target, handle).row, marker)


def chosen_from(text: str) -> ChosenMark:
    """What was chosen, from the text of a draft or second mark; nothing if another version wrote it."""
    try:
        chosen: ChosenMark = validator(ChosenMark).validate_python(json.loads(text))
    except ValueError:
        return ChosenMark()
    return chosen


def _text(chosen: ChosenMark) -> str:
    return json.dumps(asdict(chosen))


def _draft(records: MarkingRecords, task: TaskRow, view: "_View", marker: str) -> Draft | None:
    record = records.markers.draft(task.target, task.row, marker)
    if record is None:
        return None
    return Draft(
        chosen_from(record.content),
        record.drawn_from,
        record.when,
        is_outdated=record.drawn_from != view.version,
        is_of_other_files=not _is_about_what_counts(records, task, record.run),
    )


def _cleaned(chosen: ChosenMark) -> ChosenMark:
    """What was chosen, with texts that can be stored."""
    return replace(
        chosen,
        items=tuple(dict.fromkeys(map(printable, chosen.items))),
        remarks=tuple(dict.fromkeys(map(printable, chosen.remarks))),
        comment=printable(chosen.comment).strip(),
        reason=" ".join(printable(chosen.reason).split()),
    )


# --- the mark --------------------------------------------------------------------------------------------


def _item_points(assignment: Assignment, target: str) -> dict[str, float]:
    """Rubric item of a part -> its points in the file."""
    return {item.id: item.points or 0.0 for item in assignment.remarks if item.part == target}


def _removed_items(assignment: Assignment, target: str, view: "_View") -> tuple[MarkingItem, ...]:
    """The items of the mark that stands which the file has no longer, as they were then."""
    if view.mark is None or view.second:
        return ()
    there, texts = _item_points(assignment, target), dict(view.mark.texts)
    return tuple(
        MarkingItem(item, target, points, texts.get(item, ""))
        for item, points in view.mark.items
        if item not in there
    )


def _mark(assignment: Assignment, target: str, chosen: ChosenMark, removed: Mapping[str, float]) -> Mark:
    """What was chosen as the cells of a marking sheet.

    Args:
        removed: Points of the items that the mark before has, and the file has no longer.

    Raises:
        MarkRefused: Nothing says how many points there are, or an item does not exist.
        UsageError: An adjustment has no reason.
    """
    values = {**_item_points(assignment, target), **removed}
    if unknown := [item for item in chosen.items if item not in values]:
        sentence = f"there is no rubric item '{unknown[0]}' for '{target}' any more. Leave it out"
        raise MarkRefused([MarkFault(MarkField.REMARKS, sentence)])
    if not all(map(math.isfinite, (chosen.adjustment, chosen.points or 0.0))):
        raise MarkRefused([MarkFault(MarkField.POINTS, "points are a number. Correct them")])
    by_items = assignment.points_by_remarks(target, (values[item] for item in chosen.items))
    ids = tuple(dict.fromkeys((*(item for item in values if item in chosen.items), *chosen.remarks)))
    if chosen.points is not None:
        points = as_kept(chosen.points)
    elif values:
        points = rounded(min(max(by_items + chosen.adjustment, 0.0), assignment.mark_targets()[target]))
    else:
        raise MarkRefused([MarkFault(MarkField.POINTS, "there are none. Give points")])
    if chosen.items and points != by_items and not chosen.reason:
        raise UsageError("The points differ from those of the rubric items. Say why.")
    return Mark(points, chosen.comment, ids)


def _require_allowed(checks: MarkChecks, mark: Mark, task: TaskRow, before: Marked | None) -> None:
    """Check a mark as that of a sheet is checked.

    Raises:
        MarkRefused: It is not allowed.
    """
    if mark.points is None:
        return
    fault = checks.points_fault(mark.points, task.target)
    faults = [fault] if fault else checks.word_faults(mark, task.target, mark_of(before).remarks)
    if faults:
        raise MarkRefused(faults)


def _require_seen(records: MarkingRecords, task: TaskRow, seen: int | None) -> None:
    """Check that a mark is about the files that count.

    Args:
        seen: The run whose files the marker saw; None: the one that counts.

    Raises:
        UsageError: It is about others.
    """
    if not _is_about_what_counts(records, task, seen):
        raise UsageError(
            "Other files of this submission count since you opened the page. Nothing was saved. Look at them "
            "here, then save again."
        )


def _is_about_what_counts(records: MarkingRecords, task: TaskRow, seen: int | None) -> bool:
    rows = records.rows
    return seen is None or rows.have_same_files(task.row, seen, rows.counting(task.row))


@dataclass(frozen=True)
class _Given:
    """A mark that somebody gives; `reason` is that of an adjustment, or of a withdrawal."""

    mark: Mark
    reason: str
    who: str
    when: datetime


def _saved(
    records: MarkingRecords, assignment: Assignment, task: TaskRow, given: _Given, *, allow_lower: bool
) -> SavedMark:
    """Save a mark for all students of a task."""
    snapshot = snapshot_of(records, assignment, records.tasks.rows_of(task.handle))
    student_id = snapshot.ids_now.id_of(task.row)
    if student_id not in snapshot.evidence or student_id is None:
        raise UnknownTask("The submission is somebody else's now. Go back to the list.")
    marks = current_marks(snapshot.edits)
    before = marks.get((student_id, task.target))
    _require_allowed(MarkChecks(assignment, tuple(snapshot.evidence)), given.mark, task, before)
    texts = before.remarks if before is not None else ()
    entry = Entry("", student_id, task.target, given.mark, before, texts=texts)
    teams = shared_by(snapshot.evidence.values())
    entries, notes = with_mates({(student_id, task.target): entry}, marks, teams)
    entries = [one for one in entries if one.mark != mark_of(one.before)]
    edits = edits_of(entries, assignment, who=given.who, when=given.when, why=given.reason)
    added = add_marks(
        records, assignment, snapshot, edits, who=given.who, now=given.when, allow_lower=allow_lower
    )
    records.markers.drop_draft(task.target, task.row, given.who)
    records.markers.unskip(task.target, given.who, task.row)
    stored = _stored_marks(records, task)
    if edits:
        is_withdrawn = given.mark.points is None
        action = Action.WITHDRAWN if is_withdrawn else Action.MARKED
        detail = f"{in_words(mark_of(before))} -> {in_words(given.mark)}"
        if is_withdrawn or given.reason:
            detail = f"{detail}: {given.reason}"
        records.markers.log(action, given.who, given.when, detail, target=task.target, row=task.row)
    return SavedMark(
        stored=stored[-1] if edits and stored else None,
        version=stored[-1].version if stored else 0,
        notes=tuple(map(str, notes)),
        changes=tuple(map(str, added.changes)),
    )


def _saved_second(
    records: MarkingRecords, task: TaskRow, chosen: ChosenMark, mark: Mark, marker: str, now: datetime
) -> SavedMark:
    """Keep a second mark beside the first one."""
    assert mark.points is not None  # only first marks are withdrawn
    # points by hand, as those of items may change
    text = _text(replace(chosen, points=mark.points))
    records.markers.add_second(task.target, task.row, marker, text, mark.points, now)
    records.markers.drop_draft(task.target, task.row, marker)
    records.markers.unskip(task.target, marker, task.row)
    records.markers.log(Action.SECOND_MARKED, marker, now, in_words(mark), target=task.target, row=task.row)
    view = _view(records, task, marker)
    return SavedMark(view.mark, view.version, (), ())


# --- what a marker sees ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class _View:
    """The marks of a task as one marker sees them: a second marker sees their own ones only."""

    mark: StoredMark | None
    version: int
    history: tuple[StoredMark, ...]
    second: bool


def _view(records: MarkingRecords, task: TaskRow, marker: str) -> _View:
    second = records.markers.allocated(task.target, task.row, second=True) == marker
    history = (
        tuple(map(_second_mark, records.markers.seconds(task.target, task.row, marker)))
        if second
        else _stored_marks(records, task)
    )
    last = history[-1] if history else None
    mark = last if last is not None and last.points is not None else None
    return _View(mark, last.version if last is not None else 0, history, second)


def _stored_marks(records: MarkingRecords, task: TaskRow) -> tuple[StoredMark, ...]:
    """All marks of a task, oldest first; for a team, those of its first member."""
    begun = records.rows.first_run_of_attempt(task.row)
    return tuple(_stored_mark(mark, begun) for mark in records.rows.marks(task.row, task.target))


def _stored_mark(mark: NumberedMark, begun: int) -> StoredMark:
    edit = mark.edit
    valued = dict(edit.valued)
    return StoredMark(
        version=mark.number,
        points=None if edit.points is None else rounded(edit.points),
        marker=edit.who,
        when=edit.when,
        comment=edit.comment,
        remarks=tuple((remark_id, text) for remark_id, text in edit.remarks if remark_id not in valued),
        items=edit.valued,
        texts=tuple((remark_id, text) for remark_id, text in edit.remarks if remark_id in valued),
        adjustment=edit.adjustment,
        why=edit.why,
        sheet=edit.sheet,
        earlier_attempt=edit.run is not None and edit.run < begun,
    )


def _second_mark(record: TextRecord) -> StoredMark:
    chosen = chosen_from(record.text)
    return StoredMark(
        version=record.number,
        points=record.points,
        marker=record.marker,
        when=record.when,
        comment=chosen.comment,
        remarks=tuple((remark_id, "") for remark_id in chosen.remarks),
        items=tuple((item, 0.0) for item in chosen.items),
        texts=(),
        adjustment=chosen.adjustment,
        why=chosen.reason,
        sheet="",
        earlier_attempt=False,
    )


def _conflict(view: _View, chosen: ChosenMark, mark: Mark, drawn_from: int) -> Conflict | None:
    """The conflict with what somebody saved since a page was drawn, unless it says the same."""
    if view.version == drawn_from:
        return None
    if not view.history:
        raise UsageError("The page shows a mark that the gradebook does not hold. Load the page again.")
    theirs = view.history[-1]
    ids = {*(item for item, _ in theirs.items), *(remark_id for remark_id, _ in theirs.remarks)}
    if (theirs.points, theirs.comment, ids) == (mark.points, mark.comment, set(mark.remarks)):
        return None
    return Conflict(theirs, chosen)
