"""Canvas's gradebook, with the assignment's column filled in.

lib/gradebook_exporter.rb writes `Student` (or `LastName`, `FirstName`), `ID`, SIS columns, `Section`, a
column for each assignment as `Title (id)`, then totals; below the header perhaps a row on hidden grades, and
`Points Possible`. lib/gradebook_importer.rb makes a new assignment of any other title, ignores what is
`(read only)`, compares at two decimals, and takes `EX` for excused; `N/A` is a student without the
assignment.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from grader.domain.errors import UsageError
from grader.files.csv_text import CsvText, csv_text
from grader.lms.canvas.attachments import LMS
from grader.lms.export_format import ANYWAY, COLUMN, SCALE, Export, ExportFormat, InputFile, Order
from grader.lms.filling import Form, filled, the_column
from grader.lms.matching import NumberColumn
from grader.lms.system import ClassListForm, has_columns

_TITLE = re.compile(r"^(?P<title>.*)\((?P<id>\d+)\)$")
_TEST_STUDENT = "Student, Test"  # of a teacher who looks at the course as a student
_SPECIAL = {"EX": "is excused in Canvas", "N/A": "does not have this assignment in Canvas"}


def canvas(order: Order) -> Export:
    """The gradebook that Canvas exported with the grades in it.

    Raises:
        UsageError: The file is not a gradebook, or does not fit the grades.
    """
    name, content = order.given
    table = csv_text(name, content)
    number = _id_column(table)
    section = table.header.index("Section")
    titles = [at for at in range(section + 1, len(table.header)) if _TITLE.match(table.header[at])]
    grade = the_column(table, order.choices.column or order.assignment.title, titles, _called)
    most = _points_possible(table, grade)
    students = [
        row
        for row in range(1, len(table.rows))
        # the row on hidden grades begins with empty cells, in any language
        if any(table.cell(row, at) for at in range(section)) and not _tells_maximum(table, row)
    ]
    form = Form(
        table=table,
        students=students,
        who=[at for at in range(section) if at != number],
        number=NumberColumn(number, LMS),
        grade=grade,
        maximum=lambda _: most,
        keep=partial(_kept, table, grade),
    )
    export = filled(form, order)
    known = () if most else (f"{name} does not tell the points possible, so no maximum was compared.",)
    return replace(export, remarks=(*export.remarks, *known))


def _kept(table: CsvText, grade: int, row: int) -> str:
    return _SPECIAL.get(table.cell(row, grade).upper(), "")


def _id_column(table: CsvText) -> int:
    """The column of Canvas's own user id.

    Raises:
        UsageError: The importer would not know the header.
    """
    first = table.header[:3]
    split = first[:2] == ("LastName", "FirstName")
    at = 2 if split else 1
    if len(first) <= at or first[at] != "ID" or not (split or "Student" in first[0]):
        raise UsageError(
            f"{table.name} is not a gradebook of Canvas: its first columns are not Student and ID. "
            "In Canvas: Grades, Export, Export Entire Gradebook."
        )
    if "Section" not in table.header:
        raise UsageError(
            f"{table.name} has no column 'Section', without which Canvas refuses it. Export it again."
        )
    return at


def _points_possible(table: CsvText, grade: int) -> str:
    """The assignment's maximum as written; empty when there is no such row.

    Raises:
        UsageError: Canvas says that the column is read only.
    """
    row = next((row for row in range(1, len(table.rows)) if _tells_maximum(table, row)), None)
    told = "" if row is None else table.cell(row, grade)
    if re.search(r"read\s+only", told):
        raise UsageError(
            f"{table.name}, column '{table.header[grade]}': Canvas does not read it. Choose another --column."
        )
    return told


def _tells_maximum(table: CsvText, row: int) -> bool:
    return "Points Possible" in table.cell(row, 0)


def _called(header: str) -> Sequence[str]:
    found = _TITLE.match(header)
    return [header, found["title"].strip(), found["id"]] if found else [header]


def _is_student(table: CsvText, header: Sequence[str], row: int) -> bool:
    # the row on hidden grades begins with empty cells, in any language
    if not any(table.cell(row, at) for at in range(header.index("section"))):
        return False
    return not _tells_maximum(table, row) and table.cell(row, 0) != _TEST_STUDENT


CLASS_LIST = ClassListForm(
    is_own=has_columns("id", "section"),
    numbers=("sis user id",),
    logins=("sis login id", "login id"),
    number="id",
    is_student=_is_student,
)
GRADEBOOK = ExportFormat(
    name="canvas",
    help="""Fill the assignment's column of Canvas's gradebook.

    It gets the grades of the results folder OUT. The column is the one with the assignment's title; --column
    names another by its title or its number. Everything else stays unchanged, including excused students.

    \b
    Example:
      grader export canvas results --into gradebook.csv --column "Lab 8"
    """,
    write=canvas,
    into=InputFile("The gradebook as Canvas exported it."),
    options=(COLUMN, SCALE, ANYWAY),
)
