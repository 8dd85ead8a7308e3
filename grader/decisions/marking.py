"""Takes marks: given one by one, or from sheets that markers filled in.

It checks every cell of the sheets, takes nothing while one is wrong, and refuses only the rows that would
lower a released grade. Markers work in one file for days: a cell that was imported before is therefore left
alone, whoever changed the mark since, unless the sheet was exported after that change. It never reads files
(`sheet_files` does), and it never decides whether points are allowed (`mark_entries` does).
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from grader.decisions.corrections import stated
from grader.decisions.mark_entries import (
    TAKEN_BACK,
    Entry,
    Mark,
    MarkChecks,
    MarkFault,
    MarkField,
    MarkNote,
    MarkRefused,
    as_kept,
    edits_of,
    in_words,
    mark_at_export,
    mark_of,
    number,
    points_in,
    with_mates,
)
from grader.decisions.marking_sheet import current_marks
from grader.decisions.sheet_files import SheetRow
from grader.domain.assignment import Assignment
from grader.domain.edit import Edit, Marked
from grader.domain.errors import UsageError
from grader.domain.formatting import points, printable
from grader.domain.score import Total
from grader.domain.submission_result import Result, shared_by
from grader.files.file_names import guarded, unguarded
from grader.gradebook import Snapshot
from grader.results.revision import Change, Revision
from grader.results.session import ClassSession
from grader.scoring import score

Row = tuple[str, Sequence[Edit]]
"""(The row's place, its edits: several if a team is marked)."""


@dataclass(frozen=True)
class LoweringRow:
    """A row that would lower a released grade.

    Attributes:
        place: Its place.
        changes: The grades that it would lower.
    """

    place: str
    changes: tuple[Change, ...]


def lowering_rows(
    assignment: Assignment, snapshot: Snapshot, results: Sequence[Result], rows: Sequence[Row]
) -> list[LoweringRow]:
    """The rows that would lower a released grade, for students whose rows together do so.

    Args:
        snapshot: The state of the gradebook, with its `results`.
        rows: New marks, which are taken together.
    """
    released = {result.score.student_id: result for result in results if result.score.released is not None}
    rows_by_student: dict[str, list[Row]] = {}
    for place, edits in rows:
        for edit in edits:
            if edit.student_id in released:
                rows_by_student.setdefault(edit.student_id, []).append((place, [edit]))
    changes_by_place: dict[str, list[Change]] = {}
    for student_id, marks in rows_by_student.items():
        for place, change in _lowered(assignment, snapshot, released[student_id], marks):
            changes_by_place.setdefault(place, []).append(change)
    places = dict.fromkeys(place for place, _ in rows if place in changes_by_place)
    return [LoweringRow(place, tuple(changes_by_place[place])) for place in places]


def _lowered(
    assignment: Assignment, snapshot: Snapshot, result: Result, marks: Sequence[Row]
) -> list[tuple[str, Change]]:
    """The marks of one student that lower the grade individually; none if all together do not lower it."""
    student_id = result.score.student_id
    earlier = [edit for edit in snapshot.edits if edit.student_id in (None, student_id)]
    history = snapshot.history(student_id, attempts=assignment.compares_attempts)

    def change(rows: Sequence[Row]) -> Change:
        edits = [*earlier, *(edit for _, new in rows for edit in new)]
        after = score(assignment, result.evidence, edits=edits, history=history)
        return Change(Total.of(result.score), Total.of(after), result.score.released)

    if not change(marks).lowers:
        return []
    single_changes = [(place, change([(place, new)])) for place, new in marks]
    return [(place, single_change) for place, single_change in single_changes if single_change.is_less]


# --- sheet entries ---------------------------------------------------------------------------------------


@dataclass
class Reader:
    """Reads rows against an assignment and the gradebook.

    Attributes:
        students: The ids in the gradebook.
        teams: Student -> all who handed in together, for whom a row also counts.
        who: The importer. Copies of one sheet have one name, and each assistant works in their own.
        faults: The faults found so far, a sentence each.
        left: What was left as it is, although a row says otherwise.
    """

    assignment: Assignment
    students: Sequence[str]
    edits: Sequence[Edit]
    teams: Mapping[str, Sequence[str]] = field(default_factory=dict)
    who: str = field(kw_only=True)
    faults: list[str] = field(default_factory=list)
    left: list[MarkNote] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._checks = MarkChecks(self.assignment, self.students)

    def entries(self, rows: Sequence[SheetRow]) -> list[Entry]:
        """The new marks in the rows, each followed by those for other members of a team.

        Raises:
            UsageError: Cells are wrong; all are listed.
        """
        marks, marks_given = current_marks(self.edits), _marks_by_target(self.edits)
        entries: dict[tuple[str, str], Entry] = {}
        for row in rows:
            row_marks = marks_given[self._key(row)]
            # the sheet's own word stands
            newer = bool(row_marks) and (row_marks[-1].sheet, row_marks[-1].who) == (row.sheet, self.who)
            if self._untouched(row) and not newer:
                if _says_none(row) and row_marks and row_marks[-1].points is not None:
                    self.left.append(_not_withdrawn_note(row, row_marks[-1]))
                continue  # the row is as exported, whatever others marked since
            student_id, target = self._student(row), self._target(row)
            mark = self._mark(row, target)
            if student_id is None or target is None or mark is None:
                continue
            before = marks.get((student_id, target))
            if mark == mark_of(before) or (mark == Mark() and not row.cells["points"]):
                continue
            if before is not None and not newer and _was_imported(row, mark, marks_given[student_id, target]):
                self.left.append(_left_note(row, mark, before))
                continue
            texts = before.remarks if before else ()
            entry = Entry(row.place, student_id, target, mark, before, row.sheet, texts)
            other = entries.setdefault((student_id, target), entry)
            if other.mark != mark:
                sentence = f"{other.place} marks '{target}' of {student_id} differently. Keep one"
                self._fault(row, MarkFault(MarkField.ITEM, sentence))
        if self.faults:
            raise UsageError(
                "\n".join([*self.faults, "Nothing was taken. Fix these cells and import again."])
            )
        all_entries, notes = with_mates(entries, marks, self.teams)
        self.left += notes
        return all_entries

    def _fault(self, row: SheetRow, fault: MarkFault) -> None:
        self.faults.append(printable(f"{row.place}, column '{fault.field.value}': {fault}"))

    def _untouched(self, row: SheetRow) -> bool:
        exported, _ = mark_at_export(row.cells.get("exported", ""))
        if any(column in row.faults for column in MarkField):
            return False
        try:
            value = None if self._without_points(row) else number(unguarded(row.cells["points"]))
        except ValueError:
            return False
        return bool(exported) and exported == Mark(value, _comment(row), _comment_ids(row)).token

    def _without_points(self, row: SheetRow) -> bool:
        return not row.cells["points"] or row.cells["points"].lower() in TAKEN_BACK

    def _is_broken(self, row: SheetRow, column: MarkField) -> bool:
        """Whether a cell holds something that cannot be read, which is then added to the faults."""
        if column in row.faults:
            self._fault(row, MarkFault(column, row.faults[column]))
        return column in row.faults

    def _checked(self, row: SheetRow, checked: str | MarkFault) -> str | None:
        if isinstance(checked, MarkFault):
            self._fault(row, checked)
            return None
        return checked

    def _student(self, row: SheetRow) -> str | None:
        if self._is_broken(row, MarkField.STUDENT):
            return None
        return self._checked(row, self._checks.student(unguarded(row.cells["student_id"])))

    def _key(self, row: SheetRow) -> tuple[str, str]:
        """The student and the item of a row, as far as they can be read."""
        student_id = unguarded(row.cells["student_id"])
        return self._checks.known_student(student_id) or student_id, unguarded(row.cells["item"])

    def _target(self, row: SheetRow) -> str | None:
        if self._is_broken(row, MarkField.ITEM):
            return None
        return self._checked(row, self._checks.target(unguarded(row.cells["item"])))

    def _mark(self, row: SheetRow, target: str | None) -> Mark | None:
        """The mark in the filled cells; None if one is wrong."""
        broken = [self._is_broken(row, column) for column in _FILLED]  # a list, so that all are reported
        if any(broken):
            return None
        value = points_in(unguarded(row.cells["points"]))
        if not isinstance(value, MarkFault) and value is not None:
            value = self._checks.points_fault(value, target, row.cells["points"]) or value
        mark = Mark(None if isinstance(value, MarkFault) else value, _comment(row), _comment_ids(row))
        if isinstance(value, MarkFault):
            faults = [value]
        else:
            faults = self._checks.word_faults(mark, target, self._chosen_before(row))
        for fault in faults:
            self._fault(row, fault)
        return None if faults else mark

    def _chosen_before(self, row: SheetRow) -> tuple[str, ...]:
        """The comments of the mark that stands, which the student has got already."""
        return mark_of(current_marks(self.edits).get(self._key(row))).remarks


_FILLED = (MarkField.POINTS, MarkField.COMMENT, MarkField.REMARKS)


def _marks_by_target(edits: Iterable[Edit]) -> defaultdict[tuple[str, str], list[Marked]]:
    """(student, item or part) -> all marks that were given or withdrawn, oldest first."""
    marks: defaultdict[tuple[str, str], list[Marked]] = defaultdict(list)
    for edit in edits:
        if isinstance(edit, Marked):
            marks[edit.student_id or "", edit.target].append(edit)
    return marks


def _was_imported(row: SheetRow, mark: Mark, marks_given: Sequence[Marked]) -> bool:
    """Whether a row repeats what a sheet said before, and the mark was changed since.

    A row that was exported after that change was filled in by somebody who saw it. If the points are the
    earlier ones and only the comment is new, the changed points stay as well.

    Args:
        marks_given: All marks of the row's student and item, oldest first.
    """
    _, count = mark_at_export(row.cells.get("exported", ""))
    if count == len(marks_given):
        return False  # somebody typed it into a sheet that shows the current mark
    imported = [mark_of(edit) for edit in marks_given if edit.sheet]
    current = mark_of(marks_given[-1])
    had_same_points = mark.points in [earlier.points for earlier in imported]
    return mark in imported or (had_same_points and mark.points != current.points)


def _says_none(row: SheetRow) -> bool:
    return row.cells["points"].lower() in TAKEN_BACK


def _not_withdrawn_note(row: SheetRow, current: Marked) -> MarkNote:
    """The note that `none` in a sheet exported without a mark does not withdraw a mark given elsewhere."""
    given = points(mark_of(current).points)
    how = "in a sheet of the same name" if current.sheet == row.sheet else "not by this sheet"
    return MarkNote(
        row.place,
        f"`{TAKEN_BACK[0]}` was left: {current.who} gave {given}, {how}. Export the sheet again to take it "
        "back, or use `grader marks set`.",
    )


def _left_note(row: SheetRow, mark: Mark, current: Marked) -> MarkNote:
    """The note that a row was left because it was imported before."""
    if current.points is None:
        change_since = f"{current.who} took it back since"
    elif mark_of(current).points == mark.points:
        change_since = f"{current.who} gave another comment since"
    else:
        change_since = f"{current.who} gave {points(mark_of(current).points)} since"
    sentence = (
        f"{in_words(mark)} was imported before; {change_since}: left. Export the sheet again to change it."
    )
    return MarkNote(row.place, sentence)


def _comment(row: SheetRow) -> str:
    return printable(unguarded(row.cells.get("comment", ""))).strip()


def _comment_ids(row: SheetRow) -> tuple[str, ...]:
    cell = unguarded(row.cells.get("comment_ids", ""))
    return tuple(dict.fromkeys(cell.replace(",", " ").replace(";", " ").split()))


# --- marking ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class NewMark:
    """A mark that somebody gives.

    Attributes:
        target: A rubric item (`q6`), including those that the grader scores, or a part (`q10.patches`).
        points: None withdraws the existing mark.
        why: The reason: the student reads it.
        remarks: Ids of the comment bank.
        alone: Whether it is not for the other members of the student's team.
    """

    student_id: str
    target: str
    points: float | None
    why: str
    remarks: tuple[str, ...] = ()
    alone: bool = False


@dataclass(frozen=True)
class GivenMarks:
    """The outcome of giving marks.

    Attributes:
        entries: The entries that were taken, including those for other members of a team.
        notes: What stays as it is, although a mark says otherwise.
        refused: The rows that were not taken because a released grade would fall: the first entry of each,
            and the grades that it would lower.
    """

    entries: tuple[Entry, ...]
    notes: tuple[MarkNote, ...]
    revision: Revision
    refused: tuple[tuple[Entry, LoweringRow], ...] = ()

    @property
    def without_effect(self) -> tuple[str, ...]:
        """The students whose marks have no effect, because a ruling set the total to 0."""
        closed = {result.score.student_id for result in self.revision.results if result.score.closed}
        about = dict.fromkeys(entry.student_id for entry in self.entries)
        return tuple(student_id for student_id in about if student_id in closed)


def set_mark(session: ClassSession, new: NewMark, *, allow_lower: bool = False) -> GivenMarks:
    """Give a mark, whatever the grader found: for the whole team, except members with their own mark.

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
        marks = current_marks(snapshot.edits)
        entry = _checked_entry(MarkChecks(session.assignment, tuple(snapshot.evidence)), new, reason, marks)
        key = (entry.student_id, entry.target)
        teams = {} if new.alone else shared_by(snapshot.evidence.values())
        all_entries, notes = with_mates({key: entry}, marks, teams)
        # who has the mark already, as one who got it alone before, may have mates without it
        entries = [one for one in all_entries if one.mark != mark_of(one.before)]
        return edits_of(entries, session.assignment, who=session.who, when=session.clock(), why=reason)

    revision = session.revised("marks set", decide=decide, allow_lower=allow_lower)
    return GivenMarks(tuple(entries), tuple(notes), revision)


def _checked_entry(
    checks: MarkChecks, new: NewMark, reason: str, marks: Mapping[tuple[str, str], Marked]
) -> Entry:
    """The mark as an entry.

    Raises:
        MarkRefused: It cannot be given.
    """
    student_id, target = checks.student(new.student_id), checks.target(new.target)
    known_target = target if isinstance(target, str) else None
    faults = [fault for fault in (student_id, target) if isinstance(fault, MarkFault)]
    before = None if faults else marks.get((str(student_id), str(target)))
    points = None if new.points is None else as_kept(new.points)
    mark = Mark(points, "" if points is None else reason, new.remarks)
    points_fault = None if points is None else checks.points_fault(points, known_target)
    faults += (
        [points_fault] if points_fault else checks.word_faults(mark, known_target, mark_of(before).remarks)
    )
    if faults:
        raise MarkRefused(faults)
    return Entry("", str(student_id), str(target), mark, before, texts=before.remarks if before else ())


def import_marks(session: ClassSession, rows: Sequence[SheetRow], *, allow_lower: bool = False) -> GivenMarks:
    """Take the marks of sheets, also for the whole team of each row.

    Rows that nobody touched, or that were imported before, change nothing. Rows that would lower a released
    grade are left out.

    Args:
        rows: From any of the exported sheets, in any order.
        allow_lower: Whether rows that would lower a released grade are also taken.

    Raises:
        UsageError: Cells are wrong; all are listed, and nothing was taken.
    """
    entries: Sequence[Entry] = ()
    notes: Sequence[MarkNote] = ()
    refused: Sequence[tuple[Entry, LoweringRow]] = ()

    def decide(snapshot: Snapshot, results: Sequence[Result]) -> Sequence[Edit]:
        nonlocal entries, notes, refused
        teams = shared_by(snapshot.evidence.values())
        reader = Reader(session.assignment, tuple(snapshot.evidence), snapshot.edits, teams, who=session.who)
        all_entries = reader.entries(_with_current_ids(rows, snapshot.changed_ids()))
        notes = reader.left
        edits = edits_of(all_entries, session.assignment, who=session.who, when=session.clock())
        by_place: dict[str, list[Edit]] = {}
        for entry, edit in zip(all_entries, edits, strict=True):
            by_place.setdefault(entry.place, []).append(edit)
        lowering: Sequence[LoweringRow] = ()
        if not allow_lower:
            lowering = lowering_rows(session.assignment, snapshot, results, list(by_place.items()))
        first = {entry.place: entry for entry in reversed(all_entries)}
        refused = [(first[row.place], row) for row in lowering]
        places = {row.place for row in lowering}
        entries = [entry for entry in all_entries if entry.place not in places]
        return [edit for entry, edit in zip(all_entries, edits, strict=True) if entry.place not in places]

    revision = session.revised("marks import", decide=decide, allow_lower=allow_lower)
    return GivenMarks(tuple(entries), tuple(notes), revision, tuple(refused))


def _with_current_ids(rows: Sequence[SheetRow], ids: Mapping[str, str]) -> list[SheetRow]:
    """Rows of a sheet under the current ids of submissions, whose owner may have changed since."""
    return [
        replace(row, cells={**row.cells, "student_id": guarded(ids[student_id])})
        if (student_id := unguarded(row.cells["student_id"])) in ids
        else row
        for row in rows
    ]
