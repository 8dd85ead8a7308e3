"""A table for Moodle's gradebook import.

grade/import/csv/classes/load_data.php lets the teacher choose which column says who a row is about (user id,
ID number, e-mail, username) and which column is which grade item. A user whom it does not know, a locked item
or a grade above 100 (unless the site says otherwise) fails the whole import; `-` and nothing mean no grade.
"""

import csv
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from grader.domain.assignment import Assignment
from grader.domain.errors import UsageError
from grader.domain.formatting import points, printable
from grader.files.csv_text import csv_text
from grader.files.spreadsheet_cell import guarded
from grader.lms.exports.columns import the_column
from grader.lms.exports.filling import Choices, Export, Form, filled
from grader.lms.exports.grade import Grade, Results, exported_grades, warnings

MOST = 100  # the default of the site's `gradepointmax`
# What grade/export/lib.php puts around an item's name: `Assignment: Lab 8 (Real)`.
_ITEM = re.compile(r"^(?:(?P<module>[^:]+): *)?(?P<title>.*?)(?: *\((?P<kind>[^()]*)\))?$")
_NO_POINTS = ("percentage", "letter", "feedback")


def moodle_gradebook(
    assignment: Assignment,
    results: Results,
    file: tuple[str, bytes] | None,
    choices: Choices,
    *,
    partial: bool,
) -> Export:
    """The gradebook's own export with the grades in it, or a new table of ID numbers and grades.

    Args:
        file: The name and the content of the export; None: a new table.
        partial: Grades that await a person are left out.

    Raises:
        UsageError: Grades are missing, Moodle would refuse one, or the export does not fit them.
    """
    grades = exported_grades(results, partial=partial)
    if choices.scale:
        raise UsageError("A gradebook export of Moodle does not tell its maximum: leave --scale out.")
    high = [one.student_id for one in grades.values() if one.points is not None and one.points > MOST]
    if high and not choices.anyway:
        raise UsageError(
            f"{high[0]} has more than {MOST} points, at which Moodle's import fails unless the site allows "
            "more. If it does, add --anyway."
        )
    check = f"Moodle's table tells no maximum: see that the grade item's is {points(assignment.maximum)}."
    if file is None:
        made = _new_table(choices.column or assignment.title, grades)
    else:
        made = _filled_table(assignment, *file, results, grades, choices)
    return replace(made, remarks=(*made.remarks, check, *warnings(results)))


def _new_table(title: str, grades: Mapping[str, Grade]) -> Export:
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(["ID number", guarded(printable(title))])
    known = {grade.student_id: grade.points for grade in grades.values() if grade.points is not None}
    for student_id, given in known.items():
        writer.writerow([guarded(printable(student_id)), points(given)])
    remarks = [
        f"{grade.student_id}: is not in it ({grade.reason})"
        for grade in grades.values()
        if grade.points is None
    ]
    if known:
        remarks.append("Moodle's import fails if it does not know an ID number: prefer --into.")
    return Export(buffer.getvalue().encode("utf-8"), len(known), tuple(remarks), known)


def _filled_table(
    assignment: Assignment,
    name: str,
    content: bytes,
    results: Results,
    grades: Mapping[str, Grade],
    choices: Choices,
) -> Export:
    table = csv_text(name, content)
    grade = the_column(table, choices.column or assignment.title, range(1, len(table.header)), _called)
    item = _ITEM.match(table.header[grade])
    if item is not None and (item["kind"] or "").casefold() in _NO_POINTS:
        raise UsageError(
            f"{name}, column '{table.header[grade]}': holds no points. "
            "Export the gradebook with real grades (the display type Real)."
        )
    students = [row for row in range(1, len(table.rows)) if not table.is_blank(row)]
    form = Form(table, students, who=range(grade), number=None, grade=grade, maximum=lambda _: "")
    return filled(form, results, grades, choices)


def _called(header: str) -> Sequence[str]:
    item = _ITEM.match(header)
    if item is None:
        return [header]
    whole = header[: item.end("title")]
    return [header, whole.strip(), item["title"].strip()]
