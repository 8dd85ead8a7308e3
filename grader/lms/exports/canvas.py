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
from functools import partial as bound

from grader.domain.assignment import Assignment
from grader.domain.errors import UsageError
from grader.files.csv_text import CsvText, csv_text
from grader.lms.exports.columns import the_column
from grader.lms.exports.filling import Choices, Export, Form, filled
from grader.lms.exports.grade import Results, exported_grades, warnings

_TITLE = re.compile(r"^(?P<title>.*)\((?P<id>\d+)\)$")
_SPECIAL = {"EX": "is excused in Canvas", "N/A": "does not have this assignment in Canvas"}


def canvas(
    assignment: Assignment, results: Results, name: str, content: bytes, choices: Choices, *, partial: bool
) -> Export:
    """The gradebook that Canvas exported with the grades in it.

    Args:
        name: The gradebook's name, for sentences.
        content: The gradebook as Canvas made it.
        partial: Grades that await a person are left out.

    Raises:
        UsageError: Grades are missing, or the gradebook is not one, or does not fit them.
    """
    grades = exported_grades(results, partial=partial)
    table = csv_text(name, content)
    number = _id_column(table)
    section = table.header.index("Section")
    titles = [at for at in range(section + 1, len(table.header)) if _TITLE.match(table.header[at])]
    grade = the_column(table, choices.column or assignment.title, titles, _called)
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
        # a student's number may by chance be somebody's number in Canvas
        who=[at for at in range(section) if at != number],
        number=number,
        grade=grade,
        maximum=lambda _: most,
        keep=bound(_kept, table, grade),
        lms="Canvas",
    )
    export = filled(form, results, grades, choices)
    known = () if most else (f"{name} does not tell the points possible, so no maximum was compared.",)
    return replace(export, remarks=(*export.remarks, *known, *warnings(results)))


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
            f"{table.name} is no gradebook of Canvas: its first columns are not Student and ID. "
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
