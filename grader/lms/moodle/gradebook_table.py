"""A table for Moodle's gradebook import.

grade/import/csv/classes/load_data.php lets the teacher choose which column says who a row is about (user id,
ID number, e-mail, username) and which column is which grade item. A user whom it does not know, a locked item
or a grade above 100 (unless the site says otherwise) fails the whole import; `-` and nothing mean no grade.
"""

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import replace

from grader.domain.errors import UsageError
from grader.domain.formatting import points, printable
from grader.files.csv_text import csv_text
from grader.files.spreadsheet_cell import guarded
from grader.lms.export_format import ANYWAY, COLUMN, Export, ExportFormat, InputFile, Order
from grader.lms.filling import Form, filled, the_column

MOST = 100  # the default of the site's `gradepointmax`
# What grade/export/lib.php puts around an item's name: `Assignment: Lab 8 (Real)`.
_ITEM = re.compile(r"^(?:(?P<module>[^:]+): *)?(?P<title>.*?)(?: *\((?P<kind>[^()]*)\))?$")
_NO_POINTS = ("percentage", "letter", "feedback")


def moodle_gradebook(order: Order) -> Export:
    """The gradebook's own export with the grades in it, or a new table of ID numbers and grades.

    Raises:
        UsageError: Moodle would refuse a grade, or the export does not fit them.
    """
    grades, maximum = order.grades, order.assignment.maximum
    if order.choices.scale:
        raise UsageError("A gradebook export of Moodle does not tell its maximum: leave --scale out.")
    high = [one.student_id for one in grades.values() if one.points is not None and one.points > MOST]
    if high and not order.choices.anyway:
        raise UsageError(
            f"{high[0]} has more than {MOST} points, at which Moodle's import fails unless the site allows "
            "more. If it does, add --anyway."
        )
    check = f"Moodle's table tells no maximum: see that the grade item's is {points(maximum)}."
    made = _new_table(order) if order.file is None else _filled_table(order, *order.file)
    return replace(made, remarks=(*made.remarks, check))


def _new_table(order: Order) -> Export:
    grades = order.grades
    title = order.choices.column or order.assignment.title
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
    name = f"{order.assignment.id}-moodle.csv"
    return Export({name: buffer.getvalue().encode("utf-8")}, len(known), tuple(remarks), known)


def _filled_table(order: Order, name: str, content: bytes) -> Export:
    table = csv_text(name, content)
    wanted = order.choices.column or order.assignment.title
    grade = the_column(table, wanted, range(1, len(table.header)), _called)
    item = _ITEM.match(table.header[grade])
    if item is not None and (item["kind"] or "").casefold() in _NO_POINTS:
        raise UsageError(
            f"{name}, column '{table.header[grade]}': holds no points. "
            "Export the gradebook with real grades (the display type Real)."
        )
    students = [row for row in range(1, len(table.rows)) if not table.is_blank(row)]
    form = Form(table, students, who=range(grade), number=None, grade=grade, maximum=lambda _: "")
    return filled(form, order)


def _called(header: str) -> Sequence[str]:
    item = _ITEM.match(header)
    if item is None:
        return [header]
    whole = header[: item.end("title")]
    return [header, whole.strip(), item["title"].strip()]


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
    into=InputFile("The gradebook as Moodle exported it (plain text). Default: a new table.", required=False),
    options=(COLUMN, ANYWAY),
)
