"""The class whose answers are marked, and its list of tasks, which follows the gradebook.

A task is one submission and one part that a person marks (`q6`, `q10.patches`); a team has one. Pages name a
submission by its handle, a short text drawn from the class's salt, which does not reveal whose it is. The
list of tasks stands in indexed tables and is brought up to date by what was added to the gradebook since, by
whatever command. It never gives a mark (`mark_saving` does).
"""

import base64
import contextlib
import hmac
from collections.abc import Collection, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path

from grader.course.assignment_file import COMMENTS_FILE, remarks
from grader.course.editions import FILE as RUBRIC_FILE
from grader.course.marking_file import FILE as MARKING_FILE
from grader.course.marking_file import read_marking_items
from grader.domain.assignment import Assignment
from grader.domain.edit import Edit, Marked, OwnerAssigned, Released
from grader.domain.errors import UsageError
from grader.domain.score import LineState, rounded
from grader.domain.submission_result import shared_by
from grader.gradebook import Gradebook, MarkingRecords, Snapshot
from grader.gradebook.row_records import AddedRecords, NumberedMark
from grader.gradebook.task_records import Basis, GivenPoints, TaskRow, given_points
from grader.results.current_state import results_now
from grader.results.followed_class import FollowedClass
from grader.results.kept_scores import KeptScores, kept_scores

_TRIES = 10
_FEW = 20  # rows that are scored while nobody else may write
_Stamp = tuple[int, int, int] | None
_LOOK: "ContextVar[tuple[Desk, MarkingRecords] | None]" = ContextVar("look", default=None)


@dataclass(frozen=True)
class Desk:
    """A class that is marked. All functions of this package take it; it may be used by several threads.

    Attributes:
        out: The folder of the results.
        book: Its gradebook, opened for writing.
        assignment: As it was read at the start; `assignment_now` follows changes of the rubric items.
        read_marks: Number -> mark, of marks that were read so far, which never change.
        followed: The whole class, for pages and decisions about it; read when it is first asked for.
        rubric_digest: Of the file with the rubric when the desk was opened.
    """

    out: Path
    book: Gradebook
    assignment: Assignment
    _read: dict[tuple[_Stamp, ...], Assignment] = field(default_factory=dict, compare=False, repr=False)
    read_marks: dict[int, Marked] = field(default_factory=dict, compare=False, repr=False)
    followed: FollowedClass = field(init=False, compare=False, repr=False)
    rubric_digest: str = field(init=False, compare=False, repr=False)
    _digests: dict[int, tuple[Assignment, str]] = field(default_factory=dict, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "followed", FollowedClass(self.book, self.out))
        digest = _content_digest(self.assignment.folder / RUBRIC_FILE)
        object.__setattr__(self, "rubric_digest", digest)


class UnknownTask(UsageError):
    """There is no such submission, or nothing of it is marked under this target."""


def assignment_now(desk: Desk) -> Assignment:
    """The assignment with the rubric items and comments that stand in its files at this moment.

    Raises:
        CourseError: One of these files is malformed.
    """
    assignment = desk.assignment
    stamps = tuple(_stamp(assignment.folder / name) for name in (COMMENTS_FILE, MARKING_FILE))
    known = desk._read.get(stamps)
    if known is not None:
        return known
    bank = remarks(assignment.folder, [item.id for item in assignment.rubric], assignment.edition)
    marking = read_marking_items(assignment.folder, assignment.rubric, bank, assignment.edition)
    current = replace(assignment, remarks=(*bank, *marking.items), from_zero=marking.from_zero)
    if _stamp(assignment.folder / MARKING_FILE) == stamps[1]:  # else somebody wrote it meanwhile
        desk._read.clear()
        desk._read[stamps] = current
    return current


def grading_assignment(desk: Desk) -> Assignment:
    """The assignment by which grades may be changed: that of now, if its rubric is still that of the start.

    Raises:
        CourseError: One of its files is malformed.
        UsageError: Its rubric was changed since the desk was opened.
    """
    if _content_digest(desk.assignment.folder / RUBRIC_FILE) != desk.rubric_digest:
        raise UsageError(
            f"{RUBRIC_FILE} was changed since the console started, and points would follow the rubric of "
            "before. Nothing was changed. Stop the console and start it again: drafts are kept."
        )
    return assignment_now(desk)


def _content_digest(path: Path) -> str:
    try:
        return sha256(path.read_bytes()).hexdigest()
    except OSError:
        return ""


def _stamp(path: Path) -> _Stamp:
    """What changes with every writing of a file; None if there is none."""
    try:
        stat = path.stat()
    except FileNotFoundError:
        return None
    return stat.st_ino, stat.st_size, stat.st_mtime_ns


def refresh(desk: Desk) -> None:
    """Bring the list of tasks up to date with the gradebook, as all functions that read it do themselves.

    Call it once when a console starts: the first time, it scores the whole class.

    Raises:
        UsageError: The gradebook cannot be used.
    """
    with current_records(desk):
        pass


def handle_of(desk: Desk, student_id: str) -> str:
    """The handle of a student's submission; for a team, that of all its members.

    Raises:
        UnknownTask: The gradebook does not list the student, or nothing of it is to be marked.
    """
    with current_records(desk) as records:
        handle = records.tasks.handle_of(records.rows.ids_now().row_of(student_id))
    if handle is None:
        raise UnknownTask(f"There is nothing to mark of '{student_id}'. See scores.csv for the ids.")
    return handle


def students_of(desk: Desk, handle: str) -> tuple[str, ...]:
    """The ids of the students of a submission, the first one's first. Not for blind pages: see `audit_log`.

    Raises:
        UnknownTask: There is no such submission.
    """
    with current_records(desk) as records:
        ids_now = records.rows.ids_now()
        ids = [ids_now.id_of(row) for row in rows_of_submission(records, handle)]
    return tuple(student_id for student_id in ids if student_id is not None)


# --- records ---------------------------------------------------------------------------------------------


@contextlib.contextmanager
def current_records(desk: Desk, *, writes: bool = False, grades: bool = False) -> Iterator[MarkingRecords]:
    """The records of the gradebook in one transaction, with a list of tasks that follows it.

    Args:
        writes, grades: See `Gradebook.marking`.

    Raises:
        UsageError: The gradebook cannot be used, or others kept adding to it.
    """
    look = _LOOK.get()
    if look is not None and look[0] is desk and not writes:
        yield look[1]
        return
    assignment = assignment_now(desk)
    targets = _targets_digest(desk, assignment)
    for _ in range(_TRIES):
        with desk.book.marking(writes=writes, grades=grades) as records:
            if _is_current(records, targets):
                yield records
                return
        _catch_up(desk, assignment, targets)
    raise UsageError("Others kept adding to the gradebook meanwhile. Try it again.")


@contextlib.contextmanager
def one_look(desk: Desk) -> Iterator[None]:
    """Show one moment of the class to all that reads it within the block. Nothing is written in it.

    Raises:
        UsageError: See `current_records`.
    """
    assignment = assignment_now(desk)
    targets = _targets_digest(desk, assignment)
    for _ in range(_TRIES):
        with desk.book.one_reading(), desk.book.marking() as records:
            if _is_current(records, targets):
                token = _LOOK.set((desk, records))
                try:
                    yield
                finally:
                    _LOOK.reset(token)
                return
        _catch_up(desk, assignment, targets)
    raise UsageError("Others kept adding to the gradebook meanwhile. Try it again.")


def required_task(records: MarkingRecords, target: str, handle: str) -> TaskRow:
    """A task by its handle.

    Raises:
        UnknownTask: There is none.
    """
    task = records.tasks.task(target, handle)
    if task is None:
        raise UnknownTask(f"There is no submission '{handle}' to mark for '{target}'. Go back to the list.")
    return task


def rows_of_submission(records: MarkingRecords, handle: str) -> list[str]:
    """The rows of a submission's students, that of a team's first member first.

    Raises:
        UnknownTask: There is no such submission.
    """
    rows = records.tasks.rows_of(handle)
    if not rows:
        raise UnknownTask(f"There is no submission '{handle}'. Go back to the list.")
    return rows


def require_question(desk: Desk, target: str) -> None:
    """Check that points can be given to a target.

    Raises:
        UnknownTask: They cannot.
    """
    if target not in desk.assignment.mark_targets():
        raise UnknownTask(f"The rubric has no '{target}' that people mark. Go back to the list of questions.")


def drawn(salt: str, purpose: str, *parts: str) -> bytes:
    """32 bytes that look random, the same for the same arguments.

    Args:
        salt: The class's.
    """
    message = "\0".join((purpose, *parts)).encode("utf-8", "surrogatepass")
    return hmac.new(salt.encode(), message, sha256).digest()


# --- list of tasks ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Target:
    """A part that points can be given to."""

    target: str
    maximum: float
    item: int  # its number in the rubric
    by_person: bool


def _targets(assignment: Assignment) -> tuple[_Target, ...]:
    return tuple(
        _Target(target, maximum, number, item.by_person)
        for number, item in enumerate(assignment.rubric)
        for target, maximum in item.targets.items()
    )


def _targets_digest(desk: Desk, assignment: Assignment) -> str:
    """A digest of all on which the list of tasks depends; it is computed once for each assignment."""
    known = desk._digests.get(id(assignment))
    if known is None or known[0] is not assignment:
        desk._digests.clear()
        known = (assignment, _digest_of_targets(assignment))
        desk._digests[id(assignment)] = known
    return known[1]


def _digest_of_targets(assignment: Assignment) -> str:
    return sha256(f"{assignment.digest} {_targets(assignment)!r}".encode()).hexdigest()


def _is_current(records: MarkingRecords, targets: str) -> bool:
    basis = records.tasks.basis()
    return basis is not None and basis == Basis(*records.rows.last(), targets)


def _catch_up(desk: Desk, assignment: Assignment, targets: str) -> None:
    """Bring the list of tasks some steps nearer to the gradebook."""
    with desk.book.marking() as records:
        basis = records.tasks.basis()
        added = records.rows.added_since(basis.last_run, basis.last_edit) if basis is not None else None
    if basis is None or added is None or basis.targets != targets:
        _make_anew(desk, assignment, targets, basis)
        return
    affected = _rows_to_score(added)
    if affected is None or len(affected) > _FEW:
        _make_anew(desk, assignment, targets, basis)
        return
    with desk.book.marking(writes=True) as records:
        if records.tasks.basis() != basis:
            return  # somebody else was faster
        last = records.rows.last()
        added = records.rows.added_since(basis.last_run, basis.last_edit)
        affected = _rows_to_score(added)
        if affected is None or len(affected) > _FEW:
            return
        if affected:
            _score_again(records, assignment, affected)
        maxima = assignment.mark_targets()
        for number, edit in added.edits:
            if isinstance(edit, Marked) and edit.target in maxima and edit.student_id not in affected:
                note_mark(records, NumberedMark(number, edit), maxima[edit.target])
        records.tasks.set_basis(Basis(*last, targets))


def note_mark(records: MarkingRecords, mark: NumberedMark, maximum: float) -> None:
    """Note a mark in the list of tasks.

    Args:
        mark: About a row.
        maximum: Of its target.
    """
    edit = mark.edit
    records.tasks.give(edit.target, edit.student_id or "", _given(mark, maximum))


def _given(mark: NumberedMark | None, maximum: float) -> GivenPoints:
    if mark is None:
        return GivenPoints()
    points = None if mark.edit.points is None else rounded(mark.edit.points)
    return given_points(mark.number, points, mark.edit.who, mark.edit.when, maximum)


def _rows_to_score(added: AddedRecords) -> set[str] | None:
    """The rows whose tasks may be others after what was added; None: all of them may."""
    rows = set(added.run_rows)
    for _, edit in added.edits:
        match edit:
            case Marked() | Released():
                continue
            case Edit(student_id=str(row)) if not isinstance(edit, OwnerAssigned):
                rows.add(row)
            case _:  # about the whole class, or about whose a submission is
                return None
    return rows


def _make_anew(desk: Desk, assignment: Assignment, targets: str, before: Basis | None) -> None:
    """Make the list of tasks of the whole class, while others may write."""
    if desk.followed.is_read:
        known = desk.followed.now(assignment)
        snapshot, kept = known.snapshot, known.scores.tried()
    else:  # those who only mark need not have the whole class in memory
        snapshot = desk.book.snapshot(attempts=assignment.compares_attempts)
        kept = KeptScores(assignment, desk.book.identity(), kept_scores(desk.out))
    with desk.book.marking() as records:
        salt = records.rows.salt()
        marks = {
            key: mark
            for key, mark in records.rows.current_marks().items()
            if mark.number <= snapshot.state.last_edit
        }
    tasks = _tasks(assignment, snapshot, salt, marks, kept)
    with desk.book.marking(writes=True) as records:
        if records.tasks.basis() == before:
            records.tasks.replace(tasks)
            records.tasks.set_basis(Basis(snapshot.state.last_run, snapshot.state.last_edit, targets))


def _score_again(records: MarkingRecords, assignment: Assignment, rows: Collection[str]) -> None:
    """Make the tasks of some rows again, and those of their teams."""
    compares = assignment.compares_attempts
    all_rows = records.tasks.rows_with(rows)
    snapshot = records.rows.snapshot(all_rows, attempts=compares)
    mates = {
        snapshot.ids_now.row_of(mate) for evidence in snapshot.evidence.values() for mate in evidence.team
    }
    if not mates <= all_rows:
        all_rows |= mates
        snapshot = records.rows.snapshot(all_rows, attempts=compares)
    marks = records.rows.current_marks(all_rows)
    records.tasks.replace(_tasks(assignment, snapshot, records.rows.salt(), marks), all_rows)


def _tasks(
    assignment: Assignment,
    snapshot: Snapshot,
    salt: str,
    marks: Mapping[tuple[str, str], NumberedMark],
    kept: KeptScores | None = None,
) -> list[TaskRow]:
    """The tasks of the students of a snapshot.

    Args:
        marks: (Row, target) -> the last mark.
    """
    parts = _targets(assignment)
    scored = {part.target for part in parts if not part.by_person}
    # what the grader was undecided about stays in the list when a person decided it
    unmarked = tuple(
        edit for edit in snapshot.edits if not (isinstance(edit, Marked) and edit.target in scored)
    )
    teams = shared_by(snapshot.evidence.values())
    tasks = []
    for result in results_now(assignment, replace(snapshot, edits=unmarked), kept):
        score, student_id = result.score, result.score.student_id
        if score.closed or result.evidence.absent:
            continue
        row, team = snapshot.ids_now.row_of(student_id), teams.get(student_id, (student_id,))
        leader = snapshot.ids_now.row_of(team[0])
        handle = base64.b32encode(drawn(salt, "submission", leader))[:10].decode().lower()
        for part in parts:
            needed = part.by_person or score.lines[part.item].state is LineState.AWAITING
            if not needed:
                continue
            tasks.append(
                TaskRow(
                    target=part.target,
                    row=row,
                    handle=handle,
                    place=int.from_bytes(drawn(salt, "order", part.target, leader)[:6]),
                    leader=leader,
                    team=len(team),
                    open=False,
                    maximum=part.maximum,
                    given=_given(marks.get((row, part.target)), part.maximum),
                )
            )
    return _with_open(tasks)


def _with_open(tasks: list[TaskRow]) -> list[TaskRow]:
    """The tasks; a team's is open at its leader while a member lacks a mark."""
    is_open = {(task.target, task.leader) for task in tasks if task.given.points is None}
    return [
        replace(task, open=task.row == task.leader and (task.target, task.row) in is_open) for task in tasks
    ]
