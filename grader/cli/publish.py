"""`grader publish`: the class page and the students' pages, as a static folder or a zip."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from grader.cli.book import session, session_options

if TYPE_CHECKING:
    from grader.publishing.publication_update import ChangedStudent, Update
    from grader.results.session import SessionRequest


@click.command("publish")
@click.argument("out", type=click.Path(path_type=Path))
@click.option("--to", type=click.Path(path_type=Path), required=True, help="A new folder, or a new .zip.")
@click.option("--update", "updates", is_flag=True, help="--to is a folder that was published before.")
@click.option("--partial", is_flag=True, help="Publish although something still awaits a person.")
@session_options
def command(request: "SessionRequest", to: Path, updates: bool, partial: bool) -> None:
    """Write the pages of the results folder OUT as a static folder, or a zip.

    instructors/index.html is the class page, with links to all students. students/ID/report.html is one
    student's page, next to the code and the PDF that were handed in; it links to no other student's pages.
    The pages show the current state of the gradebook, which records that the grades were released. From then
    on, they do not fall without --allow-lower, and a student's page shows what has changed.

    With --update, only pages that changed are written, and pages of students who no longer have one are
    removed. The output lists the students whose page changed, with the grade before and after.

    \b
    Examples:
      grader publish results --to published
      grader publish results --assignment vit_defects --to published.zip --partial
      grader publish results --to published --update
    """
    from grader.domain.formatting import printable
    from grader.publishing.class_publication import PublicationRequest, publish_class

    with session(request) as opened:
        published = publish_class(opened, PublicationRequest(to, updates, partial))
    if published.update is not None:
        _tell_update(to, published.update)
    else:
        click.echo(f"{to}: the class page, and the pages of {len(published.grades)} students.")
    if published.unnoted:
        click.echo(printable(f"note: {published.unnoted}"), err=True)
    for line in published.left_out:
        click.echo(printable(f"  {line}"))


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
        click.echo(printable(f"  {student.student_id}: {_told(student)}"))


def _told(student: "ChangedStudent") -> str:
    from grader.domain.formatting import points

    if student.is_gone:
        return "has no page any more"
    if student.is_new:
        return f"is new: {points(student.after)}"
    if student.before == student.after:
        return f"the grade is the same, {points(student.after)}"
    return f"{points(student.before)} -> {points(student.after)}"
