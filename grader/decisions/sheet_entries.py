"""What markers wrote in sheets: every cell is checked, and nothing is taken while one is wrong.

Markers work in one file for days. A cell that was imported before is left alone therefore, whoever changed
the mark since, unless the sheet was exported after that change.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from grader.decisions.mark_checks import TAKEN_BACK, MarkChecks, MarkFault, MarkField, number, points_in
from grader.decisions.mark_entries import Entry, MarkNote, said, with_mates
from grader.decisions.mark_row import Mark, mark_of, stood
from grader.decisions.marking_sheet import standing_marks
from grader.decisions.sheet_files import SheetRow
from grader.domain.assignment import Assignment
from grader.domain.edit import Edit, Marked
from grader.domain.errors import UsageError
from grader.domain.formatting import points, printable
from grader.files.spreadsheet_cell import unguarded


@dataclass
class Reader:
    """Reads rows against an assignment and what is in the book.

    Attributes:
        students: The ids that the book knows.
        teams: Student -> all who handed in the same together, for whom a row counts as well.
        faults: What is wrong, a sentence each, so far.
        left: What was left as it is although a row says something else.
    """

    assignment: Assignment
    students: Sequence[str]
    edits: Sequence[Edit]
    teams: Mapping[str, Sequence[str]] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    left: list[MarkNote] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._checks = MarkChecks(self.assignment, self.students)

    def entries(self, rows: Sequence[SheetRow]) -> list[Entry]:
        """What the rows say that is new, each followed by what it means for others of a team.

        Raises:
            UsageError: Cells are wrong; all are listed.
        """
        marks, given = standing_marks(self.edits), _given(self.edits)
        entries: dict[tuple[str, str], Entry] = {}
        for row in rows:
            own = given[self._key(row)]
            newer = bool(own and own[-1].sheet == row.sheet)  # the sheet's own word stands
            if self._untouched(row) and not newer:
                if _says_none(row) and own and own[-1].points is not None:
                    self.left.append(_not_taken_back(row, own[-1]))
                continue  # as it was handed out, whatever others marked since
            student_id, target = self._student(row), self._target(row)
            mark = self._mark(row, target)
            if student_id is None or target is None or mark is None:
                continue
            before = marks.get((student_id, target))
            if mark == mark_of(before) or (mark == Mark() and not row.cells["points"]):
                continue
            if before is not None and not newer and _was_imported(row, mark, given[student_id, target]):
                self.left.append(_left(row, mark, before))
                continue
            texts = before.remarks if before else ()
            entry = Entry(row.place, student_id, target, mark, before, row.sheet, texts)
            other = entries.setdefault((student_id, target), entry)
            if other.mark != mark:
                sentence = f"{other.place} marks '{target}' of {student_id} otherwise. Keep one"
                self._fault(row, MarkFault(MarkField.ITEM, sentence))
        if self.faults:
            raise UsageError(
                "\n".join([*self.faults, "Nothing was taken. Fix these cells and import again."])
            )
        every, notes = with_mates(entries, marks, self.teams)
        self.left += notes
        return every

    def _fault(self, row: SheetRow, fault: MarkFault) -> None:
        self.faults.append(printable(f"{row.place}, column '{fault.field.value}': {fault}"))

    def _untouched(self, row: SheetRow) -> bool:
        exported, _ = stood(row.cells.get("exported", ""))
        if any(column in row.faults for column in MarkField):
            return False
        try:
            value = None if self._without_points(row) else number(unguarded(row.cells["points"]))
        except ValueError:
            return False
        return bool(exported) and exported == Mark(value, _comment(row), _chosen(row)).token

    def _without_points(self, row: SheetRow) -> bool:
        return not row.cells["points"] or row.cells["points"].lower() in TAKEN_BACK

    def _is_broken(self, row: SheetRow, column: MarkField) -> bool:
        """Whether a cell holds something that cannot be read; then that is told."""
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
        """The student and the item of a row, as far as they can be made out."""
        given = unguarded(row.cells["student_id"])
        return self._checks.known_student(given) or given, unguarded(row.cells["item"])

    def _target(self, row: SheetRow) -> str | None:
        if self._is_broken(row, MarkField.ITEM):
            return None
        return self._checked(row, self._checks.target(unguarded(row.cells["item"])))

    def _mark(self, row: SheetRow, target: str | None) -> Mark | None:
        """The filled cells; None when one is wrong."""
        broken = [self._is_broken(row, column) for column in _FILLED]  # all of them are told
        if any(broken):
            return None
        value = points_in(unguarded(row.cells["points"]))
        if not isinstance(value, MarkFault) and value is not None:
            value = self._checks.points(value, target, row.cells["points"]) or value
        mark = Mark(None if isinstance(value, MarkFault) else value, _comment(row), _chosen(row))
        if isinstance(value, MarkFault):
            faults = [value]
        else:
            faults = self._checks.words(mark, target, self._chosen_before(row))
        for fault in faults:
            self._fault(row, fault)
        return None if faults else mark

    def _chosen_before(self, row: SheetRow) -> tuple[str, ...]:
        """The comments of the mark that stands: what was told stays told."""
        return mark_of(standing_marks(self.edits).get(self._key(row))).remarks


_FILLED = (MarkField.POINTS, MarkField.COMMENT, MarkField.REMARKS)


def _given(edits: Iterable[Edit]) -> defaultdict[tuple[str, str], list[Marked]]:
    """(student, item or part) -> all marks that were given or taken back, oldest first."""
    marks: defaultdict[tuple[str, str], list[Marked]] = defaultdict(list)
    for edit in edits:
        if isinstance(edit, Marked):
            marks[edit.student_id or "", edit.target].append(edit)
    return marks


def _was_imported(row: SheetRow, mark: Mark, given: Sequence[Marked]) -> bool:
    """Whether a row says what a sheet said before, and the mark was changed since.

    One that was exported after that change was filled in by somebody who saw it. Where the points are those
    of before and only the comment is new, the points of whoever changed them stay as well.

    Args:
        given: All marks of the row's student and item, oldest first.
    """
    _, count = stood(row.cells.get("exported", ""))
    if count == len(given):
        return False  # somebody typed it into a sheet that shows what stands
    before = [mark_of(edit) for edit in given if edit.sheet]
    stands = mark_of(given[-1])
    same_points = mark.points in [earlier.points for earlier in before]
    return mark in before or (same_points and mark.points != stands.points)


def _says_none(row: SheetRow) -> bool:
    return row.cells["points"].lower() in TAKEN_BACK


def _not_taken_back(row: SheetRow, stands: Marked) -> MarkNote:
    """That `none` in a sheet that was exported without a mark takes nothing back that another way gave."""
    given = points(mark_of(stands).points)
    return MarkNote(
        row.place,
        f"`{TAKEN_BACK[0]}` was left: {stands.who} gave {given}, not by this sheet. Export the sheet again "
        "to take it back, or use `grader marks set`.",
    )


def _left(row: SheetRow, mark: Mark, stands: Marked) -> MarkNote:
    """That a row was left because it was imported before."""
    if stands.points is None:
        since = f"{stands.who} took it back since"
    elif mark_of(stands).points == mark.points:
        since = f"{stands.who} gave another comment since"
    else:
        since = f"{stands.who} gave {points(mark_of(stands).points)} since"
    sentence = f"{said(mark)} was imported before; {since}: left. Export the sheet again to change it."
    return MarkNote(row.place, sentence)


def _comment(row: SheetRow) -> str:
    return printable(unguarded(row.cells.get("comment", ""))).strip()


def _chosen(row: SheetRow) -> tuple[str, ...]:
    cell = unguarded(row.cells.get("comment_ids", ""))
    return tuple(dict.fromkeys(cell.replace(",", " ").replace(";", " ").split()))
