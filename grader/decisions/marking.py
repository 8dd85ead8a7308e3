"""Marks: given one by one, or taken from sheets."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from grader.decisions.lowering import LoweringRow, lowering_rows
from grader.decisions.mark_checks import MarkChecks, MarkFault, MarkRefused, as_kept
from grader.decisions.mark_entries import Entry, MarkNote, edits_of, with_mates
from grader.decisions.mark_row import Mark, mark_of
from grader.decisions.marking_sheet import standing_marks
from grader.decisions.reason import stated
from grader.decisions.sheet_entries import Reader
from grader.decisions.sheet_files import SheetRow
from grader.domain.edit import Edit, Marked
from grader.domain.result import Result
from grader.domain.teams import shared_by
from grader.files.spreadsheet_cell import guarded, unguarded
from grader.gradebook import Snapshot
from grader.results.revision import Revision
from grader.results.session import ClassSession


@dataclass(frozen=True)
class NewMark:
    """A mark that somebody gives.

    Attributes:
        target: A rubric item (`q6`), also one that the grader scores, or a part of one (`q10.patches`).
        points: None takes the mark back that is there.
        why: The reason: the student reads it.
        remarks: Ids of the comment bank.
        alone: Not for the others of the student's team.
    """

    student_id: str
    target: str
    points: float | None
    why: str
    remarks: tuple[str, ...] = ()
    alone: bool = False


@dataclass(frozen=True)
class GivenMarks:
    """What became of marks.

    Attributes:
        entries: Those that were taken, also for others of a team.
        notes: What stays as it is although a mark says something else.
        refused: Of those that were not taken because a released grade would fall: the first entry of each
            row, and whose grade it would lower.
    """

    entries: tuple[Entry, ...]
    notes: tuple[MarkNote, ...]
    revision: Revision
    refused: tuple[tuple[Entry, LoweringRow], ...] = ()

    @property
    def without_effect(self) -> tuple[str, ...]:
        """The students whose marks count for nothing: by a rule the total is 0."""
        closed = {result.score.student_id for result in self.revision.results if result.score.closed}
        about = dict.fromkeys(entry.student_id for entry in self.entries)
        return tuple(student_id for student_id in about if student_id in closed)


def set_mark(session: ClassSession, new: NewMark, *, allow_lower: bool = False) -> GivenMarks:
    """Give a mark, whatever the grader found: for the whole team, but for members with another of their own.

    Args:
        allow_lower: Grades that were released may fall.

    Raises:
        MarkRefused: There is no such student or item, or the points are out of range.
        UsageError: There is no reason, or a released grade would fall.
    """
    reason = stated(new.why)
    entries: Sequence[Entry] = ()
    notes: Sequence[MarkNote] = ()

    def decide(snapshot: Snapshot, _: object) -> Sequence[Edit]:
        nonlocal entries, notes
        marks = standing_marks(snapshot.edits)
        entry = _checked(MarkChecks(session.assignment, tuple(snapshot.evidence)), new, reason, marks)
        key = (entry.student_id, entry.target)
        teams = {} if new.alone else shared_by(snapshot.evidence.values())
        is_new = entry.mark != mark_of(entry.before)
        entries, notes = with_mates({key: entry} if is_new else {}, marks, teams)
        return edits_of(entries, session.assignment, who=session.who, when=session.clock(), why=reason)

    revision = session.revised("marks set", decide=decide, allow_lower=allow_lower)
    return GivenMarks(tuple(entries), tuple(notes), revision)


def _checked(checks: MarkChecks, new: NewMark, reason: str, marks: Mapping[tuple[str, str], Marked]) -> Entry:
    """The mark as an entry.

    Raises:
        MarkRefused: It cannot be given.
    """
    student_id, target = checks.student(new.student_id), checks.target(new.target)
    known = target if isinstance(target, str) else None
    faults = [fault for fault in (student_id, target) if isinstance(fault, MarkFault)]
    before = None if faults else marks.get((str(student_id), str(target)))
    points = None if new.points is None else as_kept(new.points)
    mark = Mark(points, "" if points is None else reason, new.remarks)
    wrong = None if points is None else checks.points(points, known)
    faults += [wrong] if wrong else checks.words(mark, known, mark_of(before).remarks)
    if faults:
        raise MarkRefused(faults)
    return Entry("", str(student_id), str(target), mark, before, texts=before.remarks if before else ())


def import_marks(session: ClassSession, rows: Sequence[SheetRow], *, allow_lower: bool = False) -> GivenMarks:
    """Take the marks of sheets, also for the whole team of each row.

    Rows that nobody touched, or that were imported before, change nothing. Rows that would lower a grade that
    was released are left out.

    Args:
        rows: Of any of the sheets that were exported, in any order.
        allow_lower: They are taken as well.

    Raises:
        UsageError: Cells are wrong; all are listed, and nothing was taken.
    """
    entries: Sequence[Entry] = ()
    notes: Sequence[MarkNote] = ()
    refused: Sequence[tuple[Entry, LoweringRow]] = ()

    def decide(snapshot: Snapshot, results: Sequence[Result]) -> Sequence[Edit]:
        nonlocal entries, notes, refused
        teams = shared_by(snapshot.evidence.values())
        reader = Reader(session.assignment, tuple(snapshot.evidence), snapshot.edits, teams)
        every = reader.entries(_relisted(rows, snapshot.relisted()))
        notes = reader.left
        edits = edits_of(every, session.assignment, who=session.who, when=session.clock())
        by_place: dict[str, list[Edit]] = {}
        for entry, edit in zip(every, edits, strict=True):
            by_place.setdefault(entry.place, []).append(edit)
        lowering: Sequence[LoweringRow] = ()
        if not allow_lower:
            lowering = lowering_rows(session.assignment, snapshot, results, list(by_place.items()))
        first = {entry.place: entry for entry in reversed(every)}
        refused = [(first[row.place], row) for row in lowering]
        places = {row.place for row in lowering}
        entries = [entry for entry in every if entry.place not in places]
        return [edit for entry, edit in zip(every, edits, strict=True) if entry.place not in places]

    revision = session.revised("marks import", decide=decide, allow_lower=allow_lower)
    return GivenMarks(tuple(entries), tuple(notes), revision, tuple(refused))


def _relisted(rows: Sequence[SheetRow], ids: Mapping[str, str]) -> list[SheetRow]:
    """Rows of a sheet under the ids that submissions have now: whose they are may have been said since."""
    return [
        replace(row, cells={**row.cells, "student_id": guarded(ids[student_id])})
        if (student_id := unguarded(row.cells["student_id"])) in ids
        else row
        for row in rows
    ]
