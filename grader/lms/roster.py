"""Reads a class list: who could have handed in, and the internal numbers that an LMS gives to them.

It reads a table of the course or of an LMS, finds the column of ids, and says which student has which of
the LMS's own numbers, which also occur in its downloads. It never decides whose an upload is.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from grader.domain.errors import UsageError
from grader.domain.formatting import printable
from grader.domain.submission import Origin
from grader.files.csv_text import CsvText, csv_text
from grader.files.file_names import plain, sanitized
from grader.lms import LMSS
from grader.lms.matching import NumberColumn
from grader.lms.system import Lms


@dataclass(frozen=True)
class ListedStudent:
    """A student on an LMS's class list.

    Attributes:
        student_id: Sanitized, as in lists of results; empty if the list has only the LMS's own number.
        sure: Whether `student_id` is the student's number at the school; otherwise it is a login or an email
            address.
        person: The name; empty if the list has none.
    """

    student_id: str
    sure: bool
    person: str = ""


@dataclass(frozen=True)
class Directory:
    """What an LMS's class list says about the LMS's own numbers.

    Attributes:
        lms: Whose numbers they are.
        students: Number -> the student.
    """

    lms: str = ""
    students: Mapping[str, ListedStudent] = field(default_factory=dict)

    def of(self, origin: Origin) -> ListedStudent | None:
        """The student who handed an upload in; None if the list does not say."""
        return self.students.get(origin.number) if origin.number and origin.lms == self.lms else None

    def contradicts(self, origin: Origin) -> bool:
        """Whether the list assigns the id that an upload carries to somebody with another number."""
        if not (origin.carries and origin.number) or origin.lms != self.lms:
            return False
        owner = self._numbers.get(origin.carries.casefold(), origin.number)
        return owner != origin.number

    def with_unsure_ids(self) -> "Directory":
        """The directory for a list whose numbers are not those by which files are named."""
        students = {number: replace(student, sure=False) for number, student in self.students.items()}
        return replace(self, students=students)

    @cached_property
    def _numbers(self) -> dict[str, str]:
        """Student's id, normalized for comparison -> the LMS's number."""
        return {
            student.student_id.casefold(): number
            for number, student in self.students.items()
            if student.student_id
        }


# --- roster ----------------------------------------------------------------------------------------------


MOST_BYTES = 10_000_000
# the names of columns that identify the student of a row; the first one that is not empty is the id
NUMBERS = (
    *("student_id", "student id"),
    *(name for lms in LMSS for name in lms.class_list.numbers),
    "student number",
)
ID_COLUMNS = (
    *NUMBERS,
    *dict.fromkeys(name for lms in LMSS for name in lms.class_list.logins),
    *("email address", "email", "e-mail"),
)
_NAMES = (("full name",), ("first name", "last name"), ("firstname", "lastname"), ("student",), ("name",))


@dataclass(frozen=True)
class Roster:
    """A class list.

    Attributes:
        rows: The rows of students, counted from 0, with the id of each.
        id_columns: The columns that identify the student.
        number: The LMS's own number of a student; None if it has none.
        from_lms: Whether its header shows that an LMS wrote it.
        submitted: The rows of students with a submission in the LMS, as far as the list says so.
    """

    table: CsvText
    rows: dict[int, str]
    id_columns: tuple[int, ...]
    number: NumberColumn | None
    from_lms: bool
    submitted: frozenset[int] = frozenset()

    def directory(self) -> Directory:
        """What the list says about the LMS's own numbers."""
        if self.number is None:
            return Directory()
        numbers = {row: self.number.read(plain(self.table.cell(row, self.number.at))) for row in self.rows}
        return Directory(
            self.number.lms, {number: self._listed(row) for row, number in numbers.items() if number}
        )

    def surely_submitted(self, rows: Iterable[int]) -> list[str]:
        """The ids of the students in these rows who have a submission in the LMS and a sure number."""
        return [self.rows[row] for row in rows if row in self.submitted and self._listed(row).sure]

    def _listed(self, row: int) -> ListedStudent:
        header = [name.casefold() for name in self.table.header]
        id_column = next((header[column] for column in self.id_columns if self.table.cell(row, column)), "")
        cells = ([header.index(part) for part in names] for names in _NAMES if set(names) <= set(header))
        person = " ".join(self.table.cell(row, column) for column in next(cells, [])).strip()
        return ListedStudent(self.rows[row] if id_column else "", id_column in NUMBERS, printable(person))


def read_roster(path: Path) -> Roster:
    """The list in a file.

    Args:
        path: A CSV with a column of ids: `student_id`, or the name that an LMS gives it. Rows of teachers are
            left out if a column `Role` identifies them.

    Raises:
        UsageError: It is not a list, or a row has no id or that of another row; the sentence names the row.
    """
    try:
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise UsageError(f"{path}: cannot be read ({error.strerror}). Give the class list.") from None
    if len(content) > MOST_BYTES:
        raise UsageError(f"{path.name}: is larger than {MOST_BYTES // 1_000_000} MB. Give the class list.")
    table = csv_text(path.name, content, one_column=True)
    header = [name.casefold() for name in table.header]
    id_columns = [index for name in ID_COLUMNS for index, column in enumerate(header) if column == name]
    lms = next((candidate for candidate in LMSS if candidate.class_list.is_own(header)), None)
    number = _number_column(lms, header) if lms else None
    if not id_columns and number is None:
        raise UsageError(
            f"{path.name}: row 1 names no column of student ids. Begin one with student_id, or give the list "
            f"as {_any_of([candidate.name for candidate in LMSS])} wrote it."
        )
    rows = _rows(table, header, [*id_columns, *([number.at] if number else [])], lms)
    submitted = frozenset(row for row in rows if lms and lms.class_list.has_submission(table, header, row))
    return Roster(table, rows, tuple(id_columns), number, lms is not None, submitted)


def _number_column(lms: Lms, header: Sequence[str]) -> NumberColumn | None:
    form = lms.class_list
    if not form.number:
        return None
    return NumberColumn(header.index(form.number), lms.name, form.read_number, form.number_is_id)


def _any_of(names: Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} or {names[-1]}"


def _rows(table: CsvText, header: Sequence[str], columns: Sequence[int], lms: Lms | None) -> dict[int, str]:
    """Row -> the id in it, for the rows of students."""
    role = next((header.index(name) for name in ("role", "roles") if name in header), None)
    id_by_row: dict[int, str] = {}
    row_by_id: dict[str, int] = {}
    for row in range(1, len(table.rows)):
        is_blank = not any(table.cell(row, index) for index in range(len(header)))
        if is_blank or (lms and not lms.class_list.is_student(table, header, row)):
            continue
        if role is not None and "student" not in (table.cell(row, role).casefold() or "student"):
            continue
        id_column = next((index for index in columns if table.cell(row, index)), None)
        if id_column is None:
            raise UsageError(
                f"{table.name}: row {row + 1}, column '{table.header[columns[0]]}': is empty. "
                "Write whose row it is."
            )
        student_id = _id(table.cell(row, id_column))
        if student_id.casefold() in row_by_id:
            raise UsageError(
                f"{table.name}: row {row + 1}, column '{table.header[id_column]}': '{student_id}' is in row "
                f"{row_by_id[student_id.casefold()] + 1} as well. Remove one row."
            )
        row_by_id[student_id.casefold()] = row
        id_by_row[row] = student_id
    if not id_by_row:
        raise UsageError(f"{table.name}: lists no student. Give the class list.")
    return id_by_row


def _id(text: str) -> str:
    return sanitized(plain(text.partition("@")[0] or text))
