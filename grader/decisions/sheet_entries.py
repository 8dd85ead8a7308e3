"""What markers wrote, as edits: every cell is checked, and nothing is taken while one is wrong.

Markers work in one file for days. A cell that was imported before is left alone therefore, whoever changed
the mark since, unless the sheet was exported after that change.
"""

import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from grader.course.toml_file import listing, remedy
from grader.decisions.mark_row import NEEDED, Mark, mark_of, stood
from grader.decisions.marking_sheet import standing_marks
from grader.decisions.sheet_files import SheetRow
from grader.domain.assignment import Assignment, Remark
from grader.domain.edit import Edit, EditKind
from grader.domain.errors import UsageError
from grader.domain.formatting import points, printable
from grader.domain.score import rounded
from grader.files.spreadsheet_cell import unguarded

_READ = (*NEEDED, "comment", "comment_ids")
TAKEN_BACK = ("none", "-", "\u2013", "\u2014")
_LONGEST = 5000  # characters of a comment
_OF_MOST = re.compile(r"\s*([^\s/]+)\s*(?:/|\\|out of|of|von|sur|از|من)\s*[^\s/]+\s*", re.IGNORECASE)


@dataclass(frozen=True)
class Entry:
    """A checked row that says something new.

    Attributes:
        before: The mark that stands, and whose it is.
        sheet: The name of the row's file; empty for what is no row of a file.
        texts: Id -> text of the comments that the row's student was told so far.
        mate: Of the same team as the row's student.
    """

    place: str
    student_id: str
    target: str
    mark: Mark
    before: Edit | None
    sheet: str = ""
    texts: tuple[tuple[str, str], ...] = ()
    mate: bool = False

    def __str__(self) -> str:
        old, who = mark_of(self.before), self.before.who if self.before else ""
        told = f"{points(old.points)} ({who})" if old.points is not None else "no mark"
        new = "no mark" if self.mark.points is None else points(self.mark.points)
        return f"{self.student_id} {self.target}: {told} -> {new}"


@dataclass
class Reader:
    """Reads rows against an assignment and what is in the book.

    Attributes:
        students: The ids that the book knows.
        teams: Student -> all who handed in the same together, for whom a row counts as well.
        faults: What is wrong, a sentence each, so far.
        left: What was left as it is although a row says something else, a sentence each.
    """

    assignment: Assignment
    students: Sequence[str]
    edits: Sequence[Edit]
    teams: Mapping[str, Sequence[str]] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)

    def entries(self, rows: Sequence[SheetRow]) -> list[Entry]:
        """What the rows say that is new, each followed by what it means for others of a team.

        Raises:
            UsageError: Cells are wrong; all are listed.
        """
        marks, given = standing_marks(self.edits), _given(self.edits)
        found: dict[tuple[str, str], Entry] = {}
        for row in rows:
            own = given[self._key(row)]
            newer = bool(row.sheet and own and own[-1].sheet == row.sheet)  # the sheet's own word stands
            if self._untouched(row) and not newer:
                if _says_none(row) and own and own[-1].value is not None:
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
            other = found.setdefault((student_id, target), entry)
            if other.mark != mark:
                self._fault(
                    row, "item", f"{other.place} marks '{target}' of {student_id} otherwise. Keep one"
                )
        if self.faults:
            raise UsageError(
                "\n".join([*self.faults, "Nothing was taken. Mend these cells and import again."])
            )
        return self._with_mates(found, marks)

    def _with_mates(
        self, found: Mapping[tuple[str, str], Entry], marks: Mapping[tuple[str, str], Edit]
    ) -> list[Entry]:
        """The entries, and the same for those of a team who have none and no mark of their own."""
        every = dict(found)
        for (student_id, target), entry in found.items():
            for mate in self.teams.get(student_id, ()):
                key, other = (mate, target), found.get((mate, target))
                if other is not None and other.mark != entry.mark and mate > student_id:
                    self.left.append(
                        f"{entry.place} and {other.place}: {student_id} and {mate} handed in together, and "
                        f"have {_said(entry.mark)} and {_said(other.mark)} for '{target}'."
                    )
                if key in every or mark_of(marks.get(key)) == entry.mark:
                    continue
                own = marks.get(key)
                if own is not None and own.value is not None and mark_of(own) != mark_of(entry.before):
                    self.left.append(
                        f"{entry.place}: {mate}, of the same team as {student_id}, keeps "
                        f"{_said(mark_of(own))} for '{target}', which {own.who} gave to {mate} alone."
                    )
                    continue
                every[key] = replace(entry, student_id=mate, before=own, mate=True)
        return list(every.values())

    def _fault(self, row: SheetRow, column: str, sentence: str) -> None:
        end = "" if sentence.endswith("?") else "."
        self.faults.append(printable(f"{row.place}, column '{column}': {sentence}{end}"))

    def _untouched(self, row: SheetRow) -> bool:
        exported, _ = stood(row.cells.get("exported", ""))
        if any(column in row.faults for column in _READ):
            return False
        try:
            value = None if self._without_points(row) else _number(row.cells["points"])
        except ValueError:
            return False
        return bool(exported) and exported == Mark(value, _comment(row), _chosen(row)).token

    def _without_points(self, row: SheetRow) -> bool:
        return not row.cells["points"] or row.cells["points"].lower() in TAKEN_BACK

    def _is_broken(self, row: SheetRow, column: str) -> bool:
        """Whether a cell holds something that cannot be read; then that is told."""
        if column in row.faults:
            self._fault(row, column, row.faults[column])
        return column in row.faults

    def _student(self, row: SheetRow) -> str | None:
        if self._is_broken(row, "student_id"):
            return None
        given = unguarded(row.cells["student_id"])
        if (known := self._known(given)) is not None:
            return known
        if not given:
            self._fault(row, "student_id", "it is empty. Write the student's id")
            return None
        advice = remedy(given, self.students, "Grade that submission first, or remove the row").rstrip(".")
        self._fault(row, "student_id", f"'{given}' is not in the gradebook. {advice}")
        return None

    def _known(self, given: str) -> str | None:
        """The student who is meant by an id: a spreadsheet takes the zeros from the front of a number."""
        if given in self.students:
            return given
        same = [one for one in self.students if one.lstrip("0") == given.lstrip("0")] if given else []
        return same[0] if len(same) == 1 and given.isdigit() else None

    def _key(self, row: SheetRow) -> tuple[str, str]:
        """The student and the item of a row, as far as they can be made out."""
        given = unguarded(row.cells["student_id"])
        return self._known(given) or given, unguarded(row.cells["item"])

    def _target(self, row: SheetRow) -> str | None:
        if self._is_broken(row, "item"):
            return None
        given, targets = unguarded(row.cells["item"]), list(self.assignment.mark_targets())
        if given in targets:
            return given
        parts = [target for target in targets if target.startswith(f"{given}.")]
        if given and parts:
            self._fault(
                row, "item", f"'{given}' is marked in parts: write {listing(parts)} in rows of their own"
            )
        else:
            advice = remedy(given, targets, f"There are {listing(targets)}").rstrip(".")
            self._fault(row, "item", f"the rubric has no '{given}'. {advice}")
        return None

    def _mark(self, row: SheetRow, target: str | None) -> Mark | None:
        """The filled cells; None when one is wrong."""
        faults = len(self.faults)
        broken = [self._is_broken(row, column) for column in ("points", "comment", "comment_ids")]
        if any(broken):
            return None
        value = self._points(row, target)
        comment = _comment(row)
        if len(comment) > _LONGEST:
            self._fault(
                row, "comment", f"it has {len(comment)} characters. At most {_LONGEST} are kept: cut it"
            )
        remarks = self._remarks(row, target)
        if value is None and (comment or remarks):
            column = "comment" if comment else "comment_ids"
            self._fault(row, column, "a comment comes with points, and there are none. Fill in 'points'")
        items = {item.id: item for item in self.assignment.rubric}
        if value is not None and target in items and not items[target].by_person and not comment:
            self._fault(
                row, "comment", f"the grader scores '{target}' itself. Say here why a person changes it"
            )
        return Mark(value, comment, remarks) if len(self.faults) == faults else None

    def _points(self, row: SheetRow, target: str | None) -> float | None:
        given = row.cells["points"]
        if self._without_points(row):
            return None
        try:
            value = _number(given)
        except ValueError:
            share = _OF_MOST.fullmatch(given)
            advice = f"the points alone: {share[1]}" if share else "one, or leave the cell empty"
            self._fault(row, "points", f"'{given}' is not a number. Write {advice}")
            return None
        most = self.assignment.mark_targets().get(target or "", math.inf)
        if not 0 <= value <= most:
            self._fault(row, "points", f"'{given}' is not from 0 to {points(most)}. Correct it")
            return None
        return value

    def _remarks(self, row: SheetRow, target: str | None) -> tuple[str, ...]:
        bank = {remark.id: remark for remark in self.assignment.remarks}
        given = _chosen(row)
        for remark_id in given:
            remark = bank.get(remark_id)
            if remark is None and self._was_chosen(row, remark_id):
                continue  # the bank lost it since; what was told stays told
            if remark is None:
                known = "comments.toml has no comments" if not bank else f"There are {listing(list(bank))}"
                advice = remedy(remark_id, list(bank), known).rstrip(".")
                self._fault(row, "comment_ids", f"the comment bank has no '{remark_id}'. {advice}")
            elif remark.item and target and remark.item != target.partition(".")[0]:
                self._fault(
                    row,
                    "comment_ids",
                    f"'{remark_id}' is about '{remark.item}', not '{target}'. Choose another",
                )
        return given

    def _was_chosen(self, row: SheetRow, remark_id: str) -> bool:
        return remark_id in mark_of(standing_marks(self.edits).get(self._key(row))).remarks


def _given(edits: Iterable[Edit]) -> defaultdict[tuple[str, str], list[Edit]]:
    """(student, item or part) -> all marks that were given or taken back, oldest first."""
    found: defaultdict[tuple[str, str], list[Edit]] = defaultdict(list)
    for edit in edits:
        if edit.kind is EditKind.MARK:
            found[edit.student_id or "", edit.target].append(edit)
    return found


def _was_imported(row: SheetRow, mark: Mark, given: Sequence[Edit]) -> bool:
    """Whether a row says what a sheet said before, and the mark was changed since.

    One that was exported after that change was filled in by somebody who saw it. Where the points are those
    of before and only the comment is new, the points of whoever changed them stay as well.

    Args:
        given: All marks of the row's student and item, oldest first.
    """
    _, number = stood(row.cells.get("exported", ""))
    if not row.sheet or number == len(given):
        return False  # somebody typed it on the command line, or into a sheet that shows what stands
    before = [mark_of(edit) for edit in given if edit.sheet]
    stands = mark_of(given[-1])
    same_points = mark.points in [one.points for one in before]
    return mark in before or (same_points and mark.points != stands.points)


def _says_none(row: SheetRow) -> bool:
    return row.cells["points"].lower() in TAKEN_BACK


def _not_taken_back(row: SheetRow, stands: Edit) -> str:
    """That `none` in a sheet that was exported without a mark takes nothing back that another way gave."""
    given = points(mark_of(stands).points)
    return (
        f"{row.place}: `{TAKEN_BACK[0]}` was left: {stands.who} gave {given}, not by this sheet. Export the "
        "sheet again to take it back, or use `grader marks set`."
    )


def _left(row: SheetRow, mark: Mark, stands: Edit) -> str:
    """That a row was left because it was imported before."""
    if stands.value is None:
        since = f"{stands.who} took it back since"
    elif mark_of(stands).points == mark.points:
        since = f"{stands.who} gave another comment since"
    else:
        since = f"{stands.who} gave {points(mark_of(stands).points)} since"
    return (
        f"{row.place}: {_said(mark)} was imported before; {since}: left. Export the sheet again to change it."
    )


def _said(mark: Mark) -> str:
    return TAKEN_BACK[0] if mark.points is None else points(mark.points)


def _number(text: str) -> float:
    """Points as people write them: with a comma, or the Persian and Arabic mark, in the place of the point.

    Raises:
        ValueError: It is no number.
    """
    value = float(unguarded(text).replace(",", ".").replace("\u066b", "."))
    return rounded(value) if math.isfinite(value) else value


def _comment(row: SheetRow) -> str:
    return printable(unguarded(row.cells.get("comment", ""))).strip()


def _chosen(row: SheetRow) -> tuple[str, ...]:
    cell = unguarded(row.cells.get("comment_ids", ""))
    return tuple(dict.fromkeys(cell.replace(",", " ").replace(";", " ").split()))


def edits_of(
    entries: Sequence[Entry],
    assignment: Assignment,
    *,
    who: str,
    clock: Callable[[], datetime],
    why: str = "",
) -> list[Edit]:
    """The entries as edits, in their order.

    Args:
        who: The marker.
        why: The reason, where it is not in a row's comment. The student reads it.
    """
    bank: dict[str, Remark] = {remark.id: remark for remark in assignment.remarks}
    now, edits = clock(), []
    for entry in entries:
        told = dict(entry.texts)
        remarks = tuple(
            (one, bank[one].text if one in bank else told.get(one, "")) for one in entry.mark.remarks
        )
        edits.append(
            Edit(
                kind=EditKind.MARK,
                who=who,
                when=now,
                why=why,
                student_id=entry.student_id,
                target=entry.target,
                value=entry.mark.points,
                # a mark that is taken back has no comment of its own
                comment=why if entry.mark.points is None else entry.mark.comment,
                remarks=remarks,
                sheet=entry.sheet,
            )
        )
    return edits
