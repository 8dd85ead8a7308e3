"""Fills in Moodle's tables of grades: the offline grading worksheet and the gradebook import.

It also reads the names in a Moodle download. mod/assign/classes/downloader.php (before that
mod/assign/locallib.php) makes the prefix `[Group-]Full name_12345`. Underscores in names become spaces, so
that nobody's name can hold another number, and the number is the participant's, as in the grading worksheet.
With blind marking the name is the word "Participant" in the site's language. A team's prefix is its name
and its number, which is not a participant's (`Team_77`), or a default name without a number. If all files
lie in one folder, one is `PREFIX_assignsubmission_file_NAME`; with a folder per student it is
`PREFIX_assignsubmission_file/NAME` (an older Moodle: `PREFIX_assignsubmission_file_/NAME`), and files keep
their own names and sub-folders. Times are not included: Moodle streams the zip on request.

The worksheet: mod/assign/gradingtable.php makes the download: `Identifier` first ("Participant 12345"),
the grade directly before its maximum. mod/assign/feedback/offline/importgradeslib.php accepts it only with
the columns Identifier, Grade and Last modified (grade). It compares a row's time with its own, and also
reads feedback comments, so nothing but the grade is changed. Column names are translated with the site; in
another language `--column` names the grade.

The import: grade/import/csv/classes/load_data.php lets the teacher choose which column identifies the user
(user id, ID number, e-mail, username) and which column is which grade item. An unknown user, a locked item
or a grade above 100 (unless the site allows it) fails the whole import; `-` and an empty cell mean no
grade.
"""

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import replace

from grader.domain.errors import UsageError
from grader.domain.formatting import points, printable
from grader.files.csv_text import CsvText, csv_text
from grader.files.file_names import guarded
from grader.lms.export_format import (
    ANYWAY,
    COLUMN,
    SCALE,
    Export,
    ExportData,
    ExportFormat,
    Form,
    InputFile,
    filled,
    the_column,
)
from grader.lms.matching import NumberColumn
from grader.lms.system import ClassListForm, DownloadName, has_columns

LMS = "Moodle"
_NAME = re.compile(r"^(?P<holder>.+?)_assignsubmission_(?:file|onlinetext)(?:_(?P<name>.*))?$")
_PARTICIPANT = re.compile(r"^(?P<called>.*)_(?P<number>\d{1,20})$")


def moodle_name(name: str) -> DownloadName | None:
    """What a name in a Moodle download says, or None if Moodle did not make it."""
    match = _NAME.match(name)
    if match is None:
        return None
    participant_match = _PARTICIPANT.search(match["holder"])
    if participant_match is None:
        return DownloadName(match["name"] or "", match["holder"], LMS, match["holder"])
    # a group's name may precede the person's, and changes with the chosen group
    return DownloadName(
        name=match["name"] or "",
        sender_label=match["holder"],
        lms=LMS,
        sender_key=participant_match["number"],
        number=participant_match["number"],
        sender_name=participant_match["called"],
    )


# --- worksheet -------------------------------------------------------------------------------------------


IDENTIFIER, GRADE, MAXIMUM = "identifier", "grade", "maximum grade"
MODIFIED, CHANGEABLE, FULL_NAME = "last modified (grade)", "grade can be changed", "full name"
_STATUS, _SUBMITTED = "status", "submitted"
_WORKSHEET_PARTICIPANT = re.compile(r"^(?P<word>.*?)\s*(?P<number>\d+)$")


def moodle_worksheet(export_data: ExportData) -> Export:
    """The teacher's own worksheet with the grades filled in.

    Raises:
        UsageError: The file is not a worksheet, or does not fit the grades.
    """
    name, content = export_data.lms_file
    table = worksheet(name, content)
    header = [column.casefold() for column in table.header]
    grade_column = the_column(
        table, export_data.choices.column or "Grade", range(1, len(header)), lambda header_cell: [header_cell]
    )
    if header[0] == IDENTIFIER and MODIFIED not in header:
        raise UsageError(
            f"{name} has no column 'Last modified (grade)', without which Moodle refuses it. "
            "Download the worksheet again."
        )
    maximum_column = header.index(MAXIMUM) if MAXIMUM in header else grade_column + 1
    changeable_column = header.index(CHANGEABLE) if CHANGEABLE in header else None

    def keep(row: int) -> str:
        locked = changeable_column is not None and table.cell(row, changeable_column).casefold() == "no"
        return "Moodle lets nobody change this grade" if locked else ""

    form = Form(
        table=table,
        students=participant_rows(table),
        who=range(grade_column),
        number=NumberColumn(0, LMS),
        grade=grade_column,
        maximum=lambda row: table.cell(row, maximum_column),
        keep=keep,
    )
    return filled(form, export_data)


def worksheet(name: str, content: bytes) -> CsvText:
    """A grading worksheet.

    Raises:
        UsageError: It is not one.
    """
    table = csv_text(name, content)
    rows = range(1, len(table.rows))
    has_identifier = table.header[0].casefold() == IDENTIFIER
    if not has_identifier and not all(participant(table, row) for row in rows if not table.is_blank(row)):
        raise UsageError(
            f"{name} is not a grading worksheet: its first column is not the Identifier. "
            "In Moodle: the assignment, Submissions, Download grading worksheet."
        )
    return table


def participant_rows(table: CsvText) -> list[int]:
    """The rows that are about a participant."""
    return [row for row in range(1, len(table.rows)) if participant(table, row)]


def participant(table: CsvText, row: int) -> tuple[str, str] | None:
    """(The word before the number, the number) of a participant; the word depends on the site's language."""
    match = _WORKSHEET_PARTICIPANT.match(table.cell(row, 0))
    return (match["word"], match["number"]) if match else None


def _has_submission(table: CsvText, header: Sequence[str], row: int) -> bool:
    """Whether the student has a submission, by the status: `Submitted for grading - Graded`."""
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
    template=InputFile("The assignment's grading worksheet, as Moodle made it."),
    options=(COLUMN, SCALE, ANYWAY),
)


# --- gradebook table -------------------------------------------------------------------------------------


MOST_POINTS = 100  # the default of the site's `gradepointmax`
# what grade/export/lib.php puts around an item's name: `Assignment: Lab 8 (Real)`
_ITEM = re.compile(r"^(?:(?P<activity>[^:]+): *)?(?P<title>.*?)(?: *\((?P<kind>[^()]*)\))?$")
_NO_POINTS = ("percentage", "letter", "feedback")


def moodle_gradebook(export_data: ExportData) -> Export:
    """The gradebook's own export with the grades filled in, or a new table of ID numbers and grades.

    Raises:
        UsageError: Moodle would refuse a grade, or the export does not fit them.
    """
    grades = export_data.grades
    # of a term's totals, the maximum is not that of an assignment
    maximum = next((grade.maximum for grade in grades.values()), export_data.assignment.maximum)
    if export_data.choices.scale:
        raise UsageError("A gradebook export of Moodle does not state its maximum: leave --scale out.")
    high = [
        grade.student_id
        for grade in grades.values()
        if grade.points is not None and grade.points > MOST_POINTS
    ]
    if high and not export_data.choices.anyway:
        raise UsageError(
            f"{high[0]} has more than {MOST_POINTS} points, at which Moodle's import fails unless the site "
            "allows more. If it does, add --anyway."
        )
    remark = f"Moodle's table states no maximum: make sure that the grade item's is {points(maximum)}."
    export = (
        _new_table(export_data) if export_data.file is None else _filled_table(export_data, *export_data.file)
    )
    return replace(export, remarks=(*export.remarks, remark))


def _new_table(export_data: ExportData) -> Export:
    grades = export_data.grades
    title = export_data.choices.column or export_data.assignment.title
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(["ID number", guarded(printable(title))])
    points_by_student = {
        grade.student_id: grade.points for grade in grades.values() if grade.points is not None
    }
    for student_id, student_points in points_by_student.items():
        writer.writerow([guarded(printable(student_id)), points(student_points)])
    remarks = [
        f"{grade.student_id}: is not in it ({grade.reason})"
        for grade in grades.values()
        if grade.points is None
    ]
    if points_by_student:
        remarks.append("Moodle's import fails if it does not know an ID number: prefer --into.")
    name = f"{export_data.assignment.id}-moodle.csv"
    return Export(
        {name: buffer.getvalue().encode("utf-8")}, len(points_by_student), tuple(remarks), points_by_student
    )


def _filled_table(export_data: ExportData, name: str, content: bytes) -> Export:
    table = csv_text(name, content)
    title = export_data.choices.column or export_data.assignment.title
    grade = the_column(table, title, range(1, len(table.header)), _column_names)
    item = _ITEM.match(table.header[grade])
    if item is not None and (item["kind"] or "").casefold() in _NO_POINTS:
        raise UsageError(
            f"{name}, column '{table.header[grade]}': holds no points. "
            "Export the gradebook with real grades (the display type Real)."
        )
    students = [row for row in range(1, len(table.rows)) if not table.is_blank(row)]
    form = Form(table, students, who=range(grade), number=None, grade=grade, maximum=lambda _: "")
    return filled(form, export_data)


def _column_names(header: str) -> Sequence[str]:
    item = _ITEM.match(header)
    if item is None:
        return [header]
    with_activity = header[: item.end("title")]
    return [header, with_activity.strip(), item["title"].strip()]


GRADEBOOK = ExportFormat(
    name="moodle-gradebook",
    help="""Write a table for Moodle's gradebook import.

    It has the grades of the results folder OUT. With --into, it fills the assignment's column of Moodle's own
    export. Otherwise it is a new table of ID numbers and grades.

    \b
    Example:
      grader export moodle-gradebook results --into "Course Grades.csv" --column "Lab 8"
    """,
    write=moodle_gradebook,
    template=InputFile(
        "The gradebook as Moodle exported it (plain text). Default: a new table.", required=False
    ),
    options=(COLUMN, ANYWAY),
)
