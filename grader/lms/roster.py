"""The list of a class: who could have handed in, by a table of the course's own or of an LMS."""

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from grader.domain.errors import UsageError
from grader.domain.formatting import printable
from grader.files.csv_text import CsvText, csv_text
from grader.intake.naming import plain, sanitized
from grader.intake.ownership import Directory, Listed
from grader.lms.exports.matching import Candidate, matching
from grader.lms.exports.moodle_worksheet import IDENTIFIER, LMS
from grader.reports.results_json.results_contract import DownloadRecord, RosterRecord

MOST_BYTES = 10_000_000
# What tables call a column that says who a row is about. The first of them with something in it is the id.
NUMBERS = ("student_id", "student id", "id number", "sis user id", "sid", "student number")
ID_COLUMNS = (
    *NUMBERS,
    *("username", "sis login id", "login id"),
    *("email address", "email", "e-mail"),
)
_NAMES = (("full name",), ("first name", "last name"), ("firstname", "lastname"), ("student",), ("name",))
_LAST_NUMBER = re.compile(r"(\d+)$")
_CANVAS = {"id", "section"}
_STATUS, _SUBMITTED = "status", "submitted"  # of Moodle's worksheet: `Submitted for grading - Graded`
_SUBMISSION = "submission id"  # of Gradescope's grades: empty for whoever handed in nothing
_TEST_STUDENT = "Student, Test"  # Canvas's own, of a teacher who looks at the course as a student


@dataclass(frozen=True)
class Roster:
    """A class's list.

    Attributes:
        rows: Those about students, counted from 0, with the id that each is listed under.
        who: The columns that tell who it is.
        number: The column of the LMS's own number of a student; None where there is none.
        own: It says of itself that it is such a list, of an LMS.
        lms: Whose number that is.
        submitted: The rows of students of whom the LMS has a submission, as far as the list tells.
    """

    table: CsvText
    rows: dict[int, str]
    who: tuple[int, ...]
    number: int | None
    own: bool
    lms: str = ""
    submitted: frozenset[int] = frozenset()

    def directory(self) -> Directory:
        """What the list says of the LMS's own numbers."""
        if self.number is None:
            return Directory()
        told = {row: _LAST_NUMBER.search(plain(self.table.cell(row, self.number))) for row in self.rows}
        return Directory(self.lms, {found[1]: self._listed(row) for row, found in told.items() if found})

    def surely_submitted(self, rows: Iterable[int]) -> list[str]:
        """Of rows, the ids of students of whom the LMS has a submission; where a row has no number, none."""
        return [self.rows[row] for row in rows if row in self.submitted and self._listed(row).sure]

    def _listed(self, row: int) -> Listed:
        header = [name.casefold() for name in self.table.header]
        known = next((header[at] for at in self.who if self.table.cell(row, at)), "")
        cells = ([header.index(one) for one in names] for names in _NAMES if set(names) <= set(header))
        person = " ".join(self.table.cell(row, at) for at in next(cells, [])).strip()
        return Listed(self.rows[row] if known else "", known in NUMBERS, printable(person))


def read_roster(path: Path) -> Roster:
    """The list in a file.

    Args:
        path: A CSV with a column of ids: `student_id`, or what Moodle (participants, grading worksheet,
            gradebook), Canvas (gradebook) and Gradescope (roster) call it. Rows of teachers are left out
            where a column `Role` tells.

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
    canvas = set(header) >= _CANVAS
    number = header.index("id") if canvas else header.index(IDENTIFIER) if IDENTIFIER in header else None
    if not known and number is None:
        raise UsageError(
            f"{path.name}: row 1 names no column of student ids. Begin one with student_id, or give the list "
            "as Moodle, Canvas or Gradescope wrote it."
        )
    columns = [*known, *([] if number is None else [number])]
    own = number is not None or {"sid", "email"} <= set(header)
    lms = "Canvas" if canvas else LMS if number is not None else ""
    rows = _rows(table, header, columns, canvas=canvas)
    submitted = frozenset(row for row in rows if own and not canvas and _has_submission(table, header, row))
    return Roster(table, rows, tuple(known), number, own, lms, submitted)


def roster_record(roster: Roster, results: Collection[Candidate]) -> RosterRecord:
    """Who is on the list, under the ids that results have where there are results.

    Args:
        results: Of the class.
    """
    match = matching(roster.table, list(roster.rows), roster.who, roster.number, roster.lms, results)
    listed = {one.student_id for one in results if not one.held} - set(match.absent)
    listed |= {roster.rows[row] for row in (*match.unknown, *match.held)}
    # a number that is no student's is a team's, and of its members the LMS has no upload
    numbers = roster.directory().students
    teams = any(one.number_in(roster.lms) not in ("", *numbers) for one in results if roster.lms)
    return RosterRecord(
        source=printable(roster.table.name),
        students=sorted(listed),
        submitted=[] if teams else sorted(roster.surely_submitted(match.unknown)),
        missing=[],
        unlisted=[],
        notes=[printable(f"{doubt}.") for doubt in match.doubts.values()],
    )


def attended(
    download: DownloadRecord | None,
    found: Iterable[Candidate],
    whole: DownloadRecord | None = None,
) -> DownloadRecord | None:
    """The account with who of the list handed in nothing, and who handed in and is not on it.

    Whoever has a file in the download handed something in, also without a result; and so may have everybody
    whose id is on a submission of which nobody knows whose it is.

    Args:
        found: The results of the class.
        whole: The account of all downloads, where this is one of several.
    """
    if download is None or download.roster is None:
        return download
    whole = whole or download
    rosters = [one for one in (download.roster, whole.roster) if one is not None]
    everybody = list(found)
    results = [one.student_id for one in everybody if not one.held]
    there = {one.casefold() for one in results}
    there |= {one.origin.carries.casefold() for one in everybody if one.held}
    there |= {file.student_id.casefold() for file in whole.files if file.student_id}
    listed = {one.casefold() for roster in rosters for one in roster.students}
    roster = download.roster.model_copy(
        update={
            "missing": [one for one in download.roster.students if one.casefold() not in there],
            "unlisted": sorted(one for one in results if one.casefold() not in listed),
        }
    )
    return download.model_copy(update={"roster": roster})


def _has_submission(table: CsvText, header: Sequence[str], row: int) -> bool:
    """Whether a list of Moodle's or Gradescope's says that a student handed in."""
    if IDENTIFIER in header:
        status = table.cell(row, header.index(_STATUS)) if _STATUS in header else ""
        return status.casefold().startswith(_SUBMITTED)
    return _SUBMISSION in header and bool(table.cell(row, header.index(_SUBMISSION)))


def _rows(table: CsvText, header: Sequence[str], columns: Sequence[int], *, canvas: bool) -> dict[int, str]:
    """Row -> the id that stands in it, of the rows about students."""
    role = next((header.index(name) for name in ("role", "roles") if name in header), None)
    before = header.index("section") if canvas else len(header)
    found: dict[int, str] = {}
    places: dict[str, int] = {}
    for row in range(1, len(table.rows)):
        # the row on hidden grades begins with empty cells, in any language
        if not any(table.cell(row, at) for at in range(before)):
            continue
        if canvas and ("Points Possible" in table.cell(row, 0) or table.cell(row, 0) == _TEST_STUDENT):
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
