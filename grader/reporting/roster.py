"""The list of a class: who could have handed in, by a table of the course's own or of an LMS."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from grader.domain.errors import UsageError
from grader.intake.naming import plain, sanitized
from grader.reporting.exports.csv_text import CsvText, csv_text
from grader.reporting.exports.matching import matching
from grader.reporting.exports.moodle_worksheet import IDENTIFIER
from grader.reporting.results_contract import DownloadRecord, RosterRecord
from grader.reporting.typesetting import printable

MOST_BYTES = 10_000_000
# What tables call a column that says who a row is about. The first of them with something in it is the id.
OWN = ("student_id", "student id")
ID_COLUMNS = (
    *OWN,
    *("id number", "sis user id", "sid", "student number", "username", "sis login id", "login id"),
    *("email address", "email", "e-mail"),
)
_CANVAS = {"id", "section"}
_TEST_STUDENT = "Student, Test"  # Canvas's own, of a teacher who looks at the course as a student


@dataclass(frozen=True)
class Roster:
    """A class's list.

    Attributes:
        rows: Those about students, counted from 0, with the id that each is listed under.
        who: The columns that tell who it is.
        number: The column of the LMS's own number of a student; None where there is none.
        own: It says of itself that it is such a list, of an LMS.
    """

    table: CsvText
    rows: dict[int, str]
    who: tuple[int, ...]
    number: int | None
    own: bool


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
    return Roster(table, _rows(table, header, columns, canvas=canvas), tuple(known), number, own)


def roster_record(roster: Roster, student_ids: Collection[str]) -> RosterRecord:
    """Who is on the list, under the ids that results have where there are results.

    Args:
        student_ids: Those with a result.
    """
    match = matching(roster.table, list(roster.rows), roster.who, roster.number, student_ids)
    listed = set(student_ids) - set(match.absent)
    listed |= {roster.rows[row] for row in match.unknown}
    return RosterRecord(
        source=printable(roster.table.name),
        students=sorted(listed),
        missing=[],
        unlisted=[],
        notes=[printable(f"{doubt}.") for doubt in match.doubts.values()],
    )


def attended(download: DownloadRecord | None, student_ids: Iterable[str]) -> DownloadRecord | None:
    """The account with who of the list handed in nothing, and who handed in and is not on it.

    Whoever has a file in the download handed something in, also without a result.

    Args:
        student_ids: Those with a result.
    """
    if download is None or download.roster is None:
        return download
    results = list(student_ids)
    there = {one.casefold() for one in results}
    there |= {file.student_id.casefold() for file in download.files if file.student_id}
    listed = {one.casefold() for one in download.roster.students}
    roster = download.roster.model_copy(
        update={
            "missing": [one for one in download.roster.students if one.casefold() not in there],
            "unlisted": sorted(one for one in results if one.casefold() not in listed),
        }
    )
    return download.model_copy(update={"roster": roster})


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
