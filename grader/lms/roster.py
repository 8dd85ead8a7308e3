"""The list of a class: who could have handed in, and the numbers that an LMS knows them by.

It reads a table of the course's own or of an LMS, finds the column of ids, and says which student has
which of the LMS's own numbers, which its downloads have too. It never decides whose an upload is.
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
    """A student on an LMS's list of the class.

    Attributes:
        student_id: As results are listed; empty where the list knows no more than the LMS's own number.
        sure: It is the student's number; else a login or an address.
        person: The name; empty where the list has none.
    """

    student_id: str
    sure: bool
    person: str = ""


@dataclass(frozen=True)
class Directory:
    """What an LMS's list of the class says of the LMS's own numbers.

    Attributes:
        lms: Whose numbers they are.
        students: Number -> who that is.
    """

    lms: str = ""
    students: Mapping[str, ListedStudent] = field(default_factory=dict)

    def of(self, origin: Origin) -> ListedStudent | None:
        """Who handed an upload in; None where the list does not tell."""
        return self.students.get(origin.number) if origin.number and origin.lms == self.lms else None

    def others(self, origin: Origin) -> bool:
        """Whether the id that an upload carries is by the list that of somebody with another number."""
        if not (origin.carries and origin.number) or origin.lms != self.lms:
            return False
        owner = self._numbers.get(origin.carries.casefold(), origin.number)
        return owner != origin.number

    def unsure(self) -> "Directory":
        """The same where the students' numbers are not those by which files are named."""
        students = {number: replace(one, sure=False) for number, one in self.students.items()}
        return replace(self, students=students)

    @cached_property
    def _numbers(self) -> dict[str, str]:
        """Student's id, as it compares -> the LMS's number."""
        return {one.student_id.casefold(): number for number, one in self.students.items() if one.student_id}


# --- roster ----------------------------------------------------------------------------------------------


MOST_BYTES = 10_000_000
# What tables call a column that says who a row is about. The first of them with something in it is the id.
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
    """A class's list.

    Attributes:
        rows: Those about students, counted from 0, with the id that each is listed under.
        who: The columns that tell who it is.
        number: The LMS's own number of a student; None where it has none.
        own: It says of itself that it is such a list, of an LMS.
        submitted: The rows of students of whom the LMS has a submission, as far as the list tells.
    """

    table: CsvText
    rows: dict[int, str]
    who: tuple[int, ...]
    number: NumberColumn | None
    own: bool
    submitted: frozenset[int] = frozenset()

    def directory(self) -> Directory:
        """What the list says of the LMS's own numbers."""
        if self.number is None:
            return Directory()
        told = {row: self.number.read(plain(self.table.cell(row, self.number.at))) for row in self.rows}
        return Directory(
            self.number.lms, {number: self._listed(row) for row, number in told.items() if number}
        )

    def surely_submitted(self, rows: Iterable[int]) -> list[str]:
        """Of rows, the ids of students of whom the LMS has a submission; where a row has no number, none."""
        return [self.rows[row] for row in rows if row in self.submitted and self._listed(row).sure]

    def _listed(self, row: int) -> ListedStudent:
        header = [name.casefold() for name in self.table.header]
        known = next((header[at] for at in self.who if self.table.cell(row, at)), "")
        cells = ([header.index(one) for one in names] for names in _NAMES if set(names) <= set(header))
        person = " ".join(self.table.cell(row, at) for at in next(cells, [])).strip()
        return ListedStudent(self.rows[row] if known else "", known in NUMBERS, printable(person))


def read_roster(path: Path) -> Roster:
    """The list in a file.

    Args:
        path: A CSV with a column of ids: `student_id`, or what the LMSs call it. Rows of teachers are left
            out where a column `Role` tells.

    Raises:
        UsageError: It is none, or a row has no id or that of another row; the sentence names the row.
    """
    try:
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise UsageError(f"{path}: cannot be read ({error.strerror}). Give the list of the class.") from None
    if len(content) > MOST_BYTES:
        raise UsageError(
            f"{path.name}: is larger than {MOST_BYTES // 1_000_000} MB. Give the list of the class."
        )
    table = csv_text(path.name, content, one_column=True)
    header = [name.casefold() for name in table.header]
    known = [at for name in ID_COLUMNS for at, column in enumerate(header) if column == name]
    lms = next((one for one in LMSS if one.class_list.is_own(header)), None)
    number = _number_column(lms, header) if lms else None
    if not known and number is None:
        raise UsageError(
            f"{path.name}: row 1 names no column of student ids. Begin one with student_id, or give the list "
            f"as {_any_of([one.name for one in LMSS])} wrote it."
        )
    rows = _rows(table, header, [*known, *([number.at] if number else [])], lms)
    submitted = frozenset(row for row in rows if lms and lms.class_list.has_submission(table, header, row))
    return Roster(table, rows, tuple(known), number, lms is not None, submitted)


def _number_column(lms: Lms, header: Sequence[str]) -> NumberColumn | None:
    form = lms.class_list
    if not form.number:
        return None
    return NumberColumn(header.index(form.number), lms.name, form.read_number, form.number_is_id)


def _any_of(names: Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} or {names[-1]}"


def _rows(table: CsvText, header: Sequence[str], columns: Sequence[int], lms: Lms | None) -> dict[int, str]:
    """Row -> the id that stands in it, of the rows about students."""
    role = next((header.index(name) for name in ("role", "roles") if name in header), None)
    found: dict[int, str] = {}
    places: dict[str, int] = {}
    for row in range(1, len(table.rows)):
        is_blank = not any(table.cell(row, at) for at in range(len(header)))
        if is_blank or (lms and not lms.class_list.is_student(table, header, row)):
            continue
        if role is not None and "student" not in (table.cell(row, role).casefold() or "student"):
            continue
        told = next((at for at in columns if table.cell(row, at)), None)
        if told is None:
            raise UsageError(
                f"{table.name}: row {row + 1}, column '{table.header[columns[0]]}': is empty. "
                "Write whose row it is."
            )
        student_id = _id(table.cell(row, told))
        if student_id.casefold() in places:
            raise UsageError(
                f"{table.name}: row {row + 1}, column '{table.header[told]}': '{student_id}' is in row "
                f"{places[student_id.casefold()] + 1} as well. Remove one row."
            )
        places[student_id.casefold()] = row
        found[row] = student_id
    if not found:
        raise UsageError(f"{table.name}: lists no student. Give the list of the class.")
    return found


def _id(text: str) -> str:
    return sanitized(plain(text.partition("@")[0] or text))
