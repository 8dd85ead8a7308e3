"""Moodle's offline grading worksheet, filled in.

mod/assign/gradingtable.php makes the download: `Identifier` first ("Participant 12345"), the grade directly
before its maximum. mod/assign/feedback/offline/importgradeslib.php takes it back only with the columns
Identifier, Grade and Last modified (grade), compares a row's time with its own, and reads feedback comments
too: so nothing but the grade is touched. The names are translated with the site; in another language
`--column` names the grade.
"""

import re
from collections.abc import Sequence

from grader.domain.errors import UsageError
from grader.files.csv_text import CsvText, csv_text
from grader.lms.export_format import ANYWAY, COLUMN, SCALE, Export, ExportFormat, InputFile, Order
from grader.lms.filling import Form, filled, the_column
from grader.lms.matching import NumberColumn
from grader.lms.moodle.participants import LMS
from grader.lms.system import ClassListForm, has_columns

IDENTIFIER, GRADE, MAXIMUM = "identifier", "grade", "maximum grade"
MODIFIED, CHANGEABLE, FULL_NAME = "last modified (grade)", "grade can be changed", "full name"
_STATUS, _SUBMITTED = "status", "submitted"
_PARTICIPANT = re.compile(r"^(?P<word>.*?)\s*(?P<number>\d+)$")


def moodle_worksheet(order: Order) -> Export:
    """The teacher's own worksheet with the grades in it.

    Raises:
        UsageError: The file is not a worksheet, or does not fit the grades.
    """
    name, content = order.given
    table = worksheet(name, content)
    header = [column.casefold() for column in table.header]
    grade = the_column(table, order.choices.column or "Grade", range(1, len(header)), lambda one: [one])
    if header[0] == IDENTIFIER and MODIFIED not in header:
        raise UsageError(
            f"{name} has no column 'Last modified (grade)', without which Moodle refuses it. "
            "Download the worksheet again."
        )
    most = header.index(MAXIMUM) if MAXIMUM in header else grade + 1
    fixed = header.index(CHANGEABLE) if CHANGEABLE in header else None

    def keep(row: int) -> str:
        locked = fixed is not None and table.cell(row, fixed).casefold() == "no"
        return "Moodle lets nobody change this grade" if locked else ""

    form = Form(
        table=table,
        students=participant_rows(table),
        who=range(grade),
        number=NumberColumn(0, LMS),
        grade=grade,
        maximum=lambda row: table.cell(row, most),
        keep=keep,
    )
    return filled(form, order)


def worksheet(name: str, content: bytes) -> CsvText:
    """A grading worksheet.

    Raises:
        UsageError: It is none.
    """
    table = csv_text(name, content)
    rows = range(1, len(table.rows))
    known = table.header[0].casefold() == IDENTIFIER
    if not known and not all(participant(table, row) for row in rows if not table.is_blank(row)):
        raise UsageError(
            f"{name} is not a grading worksheet: its first column is not the Identifier. "
            "In Moodle: the assignment, Submissions, Download grading worksheet."
        )
    return table


def participant_rows(table: CsvText) -> list[int]:
    """The rows that are about a participant."""
    return [row for row in range(1, len(table.rows)) if participant(table, row)]


def participant(table: CsvText, row: int) -> tuple[str, str] | None:
    """(the word before it, the number) of a participant; the word depends on the site's language."""
    found = _PARTICIPANT.match(table.cell(row, 0))
    return (found["word"], found["number"]) if found else None


def _has_submission(table: CsvText, header: Sequence[str], row: int) -> bool:
    """Whether its status says so: `Submitted for grading - Graded`."""
    status = table.cell(row, header.index(_STATUS)) if _STATUS in header else ""
    return status.casefold().startswith(_SUBMITTED)


CLASS_LIST = ClassListForm(
    is_own=has_columns(IDENTIFIER),
    numbers=("id number",),
    logins=("username",),
    number=IDENTIFIER,
    has_submission=_has_submission,
)
WORKSHEET = ExportFormat(
    name="moodle-worksheet",
    help="""Fill Moodle's offline grading worksheet.

    It gets the grades of the results folder OUT. Only cells of the column Grade change. On a site in another
    language, name that column with --column.

    \b
    Example:
      grader export moodle-worksheet results --into Grades-Lab8.csv
    """,
    write=moodle_worksheet,
    into=InputFile("The assignment's grading worksheet, as Moodle made it."),
    options=(COLUMN, SCALE, ANYWAY),
)
