"""The commands that hand results on: `grader export`, `publish` and `schema`.

They write grades for an LMS (a subcommand for each format), the pages as a folder or a zip, and the JSON
schema of results.json. They read the options and print what was written. What a file or a page contains is
decided in `grader.publishing`, `grader.lms` and `grader.reports`.
"""

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from grader.cli.command_options import session, session_options
from grader.domain.errors import UsageError
from grader.lms import FORMATS
from grader.lms.export_format import ANYWAY, COLUMN, SCALE, Choices, ExportFormat, InputFile, Option

if TYPE_CHECKING:
    from grader.domain.term_total import TermPlan
    from grader.publishing.exporting import WrittenExport
    from grader.publishing.publication_folder import ChangedStudent, Update
    from grader.results.session import ClassSession, SessionRequest


@click.group("export")
def export_command() -> None:
    """Write grades and reports in the format of an LMS or another program.

    Nothing is exported while a grade awaits a person; --partial leaves such grades out. The output lists
    every row without a result, every result without a row, and every unknown grade. Grades include the
    penalty for lateness. The gradebook records the export as a release: from then on, grades do not fall
    without --allow-lower. The file given with --into is not changed: a filled copy is written into
    OUT/exports, or to --to.

    \b
    Examples:
      grader export moodle-worksheet results --into Grades-Lab8.csv
      grader export canvas results --into gradebook.csv --column "Lab 8"
      grader export feedback-zip results --into Grades-Lab8.csv
    """


def format_command(export_format: ExportFormat) -> click.Command:
    """The subcommand of a format."""

    def run(
        request: "SessionRequest",
        to: Path | None,
        partial: bool,
        into: Path | None = None,
        **chosen: Any,
    ) -> None:
        from grader.publishing.exporting import ExportRequest, export_grades

        wanted = ExportRequest(export_format, template=into, to=to, choices=_choices(chosen), partial=partial)
        with session(request) as opened:
            done = export_grades(
                opened.assignment, opened.book, opened.out, wanted, who=opened.who, now=opened.clock()
            )
            _tell_exported(export_format.noun, done)

    decorators: list[Callable[[Any], Any]] = [
        click.command(export_format.name, help=export_format.help),
        click.argument("out", type=click.Path(path_type=Path)),
        click.option(
            "--to",
            type=click.Path(path_type=Path),
            metavar="PATH",
            help="Write here. Default: in OUT/exports.",
        ),
        click.option("--partial", is_flag=True, help="Leave out grades that await a person."),
        session_options,
        *([_input_option(export_format.template)] if export_format.template else []),
        *map(_format_option, export_format.options),
    ]
    made: Any = run
    for decorate in reversed(decorators):
        made = decorate(made)
    return cast(click.Command, made)


def _input_option(file: InputFile) -> Callable[[Any], Any]:
    path = click.Path(path_type=Path)
    return click.option("--into", type=path, metavar="FILE", required=file.required, help=file.what)


def _format_option(option: Option) -> Callable[[Any], Any]:
    if option.is_flag:
        return click.option(f"--{option.name}", is_flag=True, help=option.what)
    return click.option(
        f"--{option.name}",
        type=click.Choice(option.values) if option.values else None,
        default=option.default,
        show_default=bool(option.default),
        metavar=option.metavar or None,
        help=option.what,
    )


def _choices(chosen: Mapping[str, Any]) -> Choices:
    common = {COLUMN.name, SCALE.name, ANYWAY.name}
    return Choices(
        **{name: value for name, value in chosen.items() if name in common},
        others={name: value for name, value in chosen.items() if name not in common},
    )


def _tell_exported(noun: str, done: "WrittenExport") -> None:
    """Print what was written, and what a person should know about it."""
    from grader.domain.formatting import printable

    count = done.export.count
    click.echo(f"{done.place}: {count} {noun if count != 1 else noun.removesuffix('s')}.")
    for remark in done.export.remarks:
        click.echo(printable(f"  {remark}"))
    if done.not_recorded:
        click.echo(printable(f"note: {done.not_recorded}"), err=True)


for _format in FORMATS:
    export_command.add_command(format_command(_format))


# --- publish ---------------------------------------------------------------------------------------------


@click.command("publish")
@click.argument("out", type=click.Path(path_type=Path))
@click.option("--to", type=click.Path(path_type=Path), required=True, help="A new folder, or a new .zip.")
@click.option("--update", "updates", is_flag=True, help="--to is a folder that was published before.")
@click.option("--partial", is_flag=True, help="Publish although something still awaits a person.")
@click.option("--only", multiple=True, metavar="LIST", help="Only these students: ids, with commas.")
@click.option("--section", metavar="NAME", help="Only this section of the course, as [people] names it.")
@session_options
def publish_command(
    request: "SessionRequest",
    to: Path,
    updates: bool,
    partial: bool,
    only: tuple[str, ...],
    section: str | None,
) -> None:
    """Write the pages of the results folder OUT as a static folder, or a zip.

    instructors/index.html is the class page, with links to all students. students/ID/report.html is one
    student's page, next to the code and the PDF that were handed in; it links to no other student's pages.
    The pages show the current state of the gradebook, which records that the grades were released. From then
    on, they do not fall without --allow-lower, and a student's page shows what has changed.

    With --update, only pages that changed are written, and pages of students who no longer have one are
    removed. A report that is replaced is kept in instructors/earlier/. The output lists the students whose
    page changed, with the grade before and after. With --only or --section, the grades of these students
    alone are released, and must be ready; with --update, the pages of others stay as they are.

    \b
    Examples:
      grader publish results --to published
      grader publish results --to published --section A
      grader publish results --to published --update --only 400101204,400101210
      grader publish results --assignment vit_defects --to published.zip --partial
      grader publish results --to published --update
    """
    from grader.domain.formatting import printable
    from grader.publishing.publication import PublicationRequest, publish_class, published_students

    with session(request) as opened:
        there = published_students(opened, to) if updates else frozenset()
        students = chosen_students(opened, request.course, only, section, there)
        published = publish_class(opened, PublicationRequest(to, updates, partial, students))
    if published.update is not None:
        _tell_update(to, published.update)
    else:
        click.echo(f"{to}: the class page, and the pages of {len(published.grades)} students.")
    if published.not_recorded:
        click.echo(printable(f"note: {published.not_recorded}"), err=True)
    if published.unreviewed:
        click.echo(printable(f"note: {published.unreviewed}"), err=True)
    for line in published.left_out:
        click.echo(printable(f"  {line}"))


def chosen_students(
    opened: "ClassSession",
    course: Path | None,
    only: Sequence[str],
    section: str | None,
    published: AbstractSet[str] = frozenset(),
) -> frozenset[str] | None:
    """The students whom `--only` or `--section` names; None: everybody.

    Args:
        published: Further ids that `--only` may name.

    Raises:
        UsageError: Both were given, or there is no such student or section.
    """
    if section is None:
        named = frozenset(name for names in only for name in names.replace(",", " ").split())
        for student_id in sorted(named - published):
            opened.require_student(student_id)
        return named if only else None
    from grader.course.term_files import section_students

    if only:
        raise UsageError("--only and --section both say whose grades it is about. Give one of them.")
    return section_students(course_plan(course), section, opened.book.students())


def course_plan(course: Path | None) -> "TermPlan":
    """What the course says about its sections."""
    from grader.course.locate import located_course

    return located_course(course).plan


def _tell_update(to: Path, done: "Update") -> None:
    """Print how many pages changed, and whose."""
    from grader.domain.formatting import printable

    removed = f", {len(done.removed)} removed" if done.removed else ""
    click.echo(f"{to}: {len(done.changed)} of {done.count} pages written{removed}.")
    if not done.students:
        click.echo("No student's page changed.")
        return
    whose = "1 student's page" if len(done.students) == 1 else f"The pages of {len(done.students)} students"
    click.echo(f"{whose} changed:")
    for student in done.students:
        click.echo(printable(f"  {student.student_id}: {_grade_change(student)}"))


def _grade_change(student: "ChangedStudent") -> str:
    from grader.domain.formatting import points

    if student.is_gone:
        return "has no page any more"
    if student.is_new:
        return f"is new: {points(student.after)}"
    if student.before == student.after:
        return f"the grade is the same, {points(student.after)}"
    return f"{points(student.before)} -> {points(student.after)}"


# --- schema ----------------------------------------------------------------------------------------------


@click.command("schema")
def schema_command() -> None:
    """Print the JSON schema of results.json, for programs that read grades.

    \b
    Example:
      grader schema > results.schema.json
    """
    from grader.reports.results_json.results_file import results_schema_text

    click.echo(results_schema_text(), nl=False)
