"""`grader export`: grades and reports for other programs."""

from pathlib import Path
from typing import Any

import click

from grader.cli.export_desk import (
    ELSEWHERE,
    anyway_option,
    chosen,
    column_option,
    common_options,
    given,
    into_option,
    make_folder,
    released,
    reports_of,
    scale_option,
    told,
    written,
)

HIDDEN = "hidden"
VISIBILITIES = [HIDDEN, "after_due_date", "after_published", "visible"]


@click.group("export")
def command() -> None:
    """Write grades and reports as an LMS, or another program, takes them.

    Nothing is exported while a grade awaits a person; --partial leaves such grades out. Every row without a
    result, every result without a row and every grade that is not known is listed. Grades are those after
    the penalty for lateness, and the gradebook notes that they left: from then on they do not fall without
    --allow-lower. The file that you give by --into stays as it is: a filled copy is written into
    OUT/exports, or where --to says.

    \b
    Examples:
      grader export moodle-worksheet results --into Grades-Lab8.csv
      grader export canvas results --into gradebook.csv --column "Lab 8"
      grader export feedback-zip results --into Grades-Lab8.csv
    """


@command.command("moodle-worksheet")
@common_options
@into_option("The assignment's grading worksheet, as Moodle made it.", required=True)
@column_option
@scale_option
@anyway_option
def moodle_worksheet(
    into: Path, column: str, scale: bool, anyway: bool, to: Path | None, **where: Any
) -> None:
    """Fill Moodle's offline grading worksheet.

    It gets the grades of the results folder OUT. Only cells of the column Grade change. On a site in
    another language, name that column by --column.

    \b
    Example:
      grader export moodle-worksheet results --into Grades-Lab8.csv
    """
    from grader.lms.exports.moodle_worksheet import moodle_worksheet

    with released(**where) as (at, results, partial):
        name, content = given(into)
        export = moodle_worksheet(results, name, content, chosen(column, scale, anyway), partial=partial)
        written(to or at.place(name), export.content, "grades", export.count, export.remarks)
        at.note("moodle-worksheet", export.grades)


@command.command("moodle-gradebook")
@common_options
@into_option("The gradebook as Moodle exported it (plain text). Default: a new table.", required=False)
@column_option
@anyway_option
def moodle_gradebook(into: Path | None, column: str, anyway: bool, to: Path | None, **where: Any) -> None:
    """Write a table for Moodle's gradebook import.

    It has the grades of the results folder OUT. With --into, the assignment's column of the gradebook's
    own export is filled; else it is a new table of ID
    numbers and grades.

    \b
    Example:
      grader export moodle-gradebook results --into "Course Grades.csv" --column "Lab 8"
    """
    from grader.lms.exports.moodle_gradebook import moodle_gradebook

    with released(**where) as (at, results, partial):
        file = given(into) if into is not None else None
        choices = chosen(column, scale=False, anyway=anyway)
        export = moodle_gradebook(at.assignment, results, file, choices, partial=partial)
        name = file[0] if file is not None else f"{at.assignment.id}-moodle.csv"
        written(to or at.place(name), export.content, "grades", export.count, export.remarks)
        at.note("moodle-gradebook", export.grades)


@command.command("canvas")
@common_options
@into_option("The gradebook as Canvas exported it.", required=True)
@column_option
@scale_option
@anyway_option
def canvas(into: Path, column: str, scale: bool, anyway: bool, to: Path | None, **where: Any) -> None:
    """Fill the assignment's column of Canvas's gradebook.

    It gets the grades of the results folder OUT. The column is the one with the assignment's title;
    --column names another by its title or its number.
    Everything else stays as it is, and so do excused students.

    \b
    Example:
      grader export canvas results --into gradebook.csv --column "Lab 8"
    """
    from grader.lms.exports.canvas import canvas

    with released(**where) as (at, results, partial):
        name, content = given(into)
        choices = chosen(column, scale, anyway)
        export = canvas(at.assignment, results, name, content, choices, partial=partial)
        written(to or at.place(name), export.content, "grades", export.count, export.remarks)
        at.note("canvas", export.grades)


@command.command("gradescope")
@common_options
@click.option(
    "--visibility",
    type=click.Choice(VISIBILITIES),
    default="after_published",
    show_default=True,
    help="When students see it.",
)
def gradescope(visibility: str, to: Path | None, **where: Any) -> None:
    """Write a Gradescope results.json for each student.

    Each is in a folder of the student's own, and tells of the results folder OUT: the rubric's items with
    their points, then every check without any.

    \b
    Example:
      grader export gradescope results --visibility visible
    """
    from grader.files import atomic
    from grader.lms.exports.gradescope import gradescope

    with released(**where) as (at, results, partial):
        pages = gradescope(results, visibility, partial=partial)
        folder = to or at.place("gradescope")
        for name, content in pages.files.items():
            make_folder((folder / name).parent)
            atomic.write(folder / name, content, remedy=ELSEWHERE)
        older = sorted(str(path.relative_to(folder).as_posix()) for path in folder.glob("*/results.json"))
        stale = [f"{name}: is of an earlier export" for name in older if name not in pages.files]
        told(folder, "students", len(pages.files), (*pages.remarks, *stale))
        if visibility != HIDDEN:
            at.note("gradescope", pages.grades)


@command.command("junit")
@common_options
def junit(to: Path | None, **where: Any) -> None:
    """Write what the checks found as JUnit XML.

    There is a suite for each student of the results folder OUT. With --partial, what awaits a person is a
    skipped test.

    \b
    Example:
      grader export junit results --partial
    """
    from grader.lms.exports.junit import junit

    with released(**where) as (at, results, partial):
        export = junit(at.assignment, results, partial=partial)
        written(to or at.place("junit.xml"), export.content, "students", export.count, export.remarks)


@command.command("feedback-zip")
@common_options
@into_option(
    "The grading worksheet, for the names. Default: the names in the Moodle download that was graded.",
    required=False,
)
@anyway_option
def feedback_zip(into: Path | None, anyway: bool, to: Path | None, **where: Any) -> None:
    """Pack the reports for Moodle to hand back.

    They are those of the results folder OUT, named so that each student gets their own. In Moodle: the
    assignment, Submissions, Upload multiple feedback files in a zip.

    \b
    Example:
      grader export feedback-zip results --into Grades-Lab8.csv
    """
    from grader.lms.exports.feedback_zip import (
        feedback_zip,
        holders_of_download,
        holders_of_results,
        holders_of_worksheet,
    )
    from grader.lms.exports.matching import candidates

    with released(**where) as (at, results, partial):
        ids = [score.student_id for _, score in results]
        rows: tuple[str, ...] = ()
        if into is not None:
            choices = chosen("", scale=False, anyway=anyway)
            holders, rows = holders_of_worksheet(*given(into), candidates(results), choices)
        else:
            unnoted = {evidence.student_id for evidence, _ in results if not evidence.origin.key}
            files = [file for one in at.downloads for file in one.files if file.student_id in unnoted]
            holders = holders_of_download((file.name, file.student_id) for file in files)
            holders |= holders_of_results(results)
        export = feedback_zip(results, reports_of(at.out, ids), holders, partial=partial)
        written(
            to or at.place("feedback.zip"), export.content, "reports", export.count, (*export.remarks, *rows)
        )
        at.note("feedback-zip", export.grades)
