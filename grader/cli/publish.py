"""`grader publish`: the class page and the students' pages, as a static folder or a zip."""

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from grader.cli.book import session, session_options
from grader.cli.export_desk import note_released
from grader.domain.errors import UsageError

if TYPE_CHECKING:
    from grader.publishing.publication_update import ChangedStudent, Manifest, Update
    from grader.reports.whole_class.similarity_record import SimilarityRecord
    from grader.results.session import ClassSession, SessionRequest


@click.command("publish")
@click.argument("out", type=click.Path(path_type=Path))
@click.option("--to", type=click.Path(path_type=Path), required=True, help="A new folder, or a new .zip.")
@click.option("--update", "updates", is_flag=True, help="--to is a folder that was published before.")
@click.option("--partial", is_flag=True, help="Publish although something still awaits a person.")
@session_options
def command(request: "SessionRequest", to: Path, updates: bool, partial: bool) -> None:
    """Write the pages of the results folder OUT as a static folder, or a zip.

    instructors/index.html is the class page, with links to all students; students/ID/report.html is one
    student's page, beside the code and the PDF that were handed in; they link to nobody else's. The pages
    say what the gradebook says now, and it notes that the grades were released: from then on they do not
    fall without --allow-lower, and a student's page tells what changed since.

    With --update, only pages that say something else are written, and those of students who have none any
    more are removed; whose page changed is listed, with the grade before and after.

    \b
    Examples:
      grader publish results --to published
      grader publish results --assignment vit_defects --to published.zip --partial
      grader publish results --to published --update
    """
    from grader.domain.formatting import printable
    from grader.lms.exports.grade import left_out, owned
    from grader.publishing.publication import open_reasons, pages, publish
    from grader.publishing.publication_update import update, with_manifest
    from grader.reports.whole_class.downloads import summed
    from grader.results.download_accounts import standing_downloads
    from grader.results.revision import results_now

    out = request.out
    with session(request) as at:
        seen = at.book.snapshot()
        results = results_now(at.assignment, seen)
        download = summed(standing_downloads(at.book, out, seen))
        reasons = open_reasons(at.assignment, results, download)
        if reasons and not partial:
            raise UsageError(
                f"Not ready to hand out: {'; '.join(reasons)}. "
                f"See {out / 'index.html'}, or add --partial. Nothing was written."
            )
        pairs = [(result.evidence, result.score) for result in results]
        grades = {score.student_id: score.final for _, score in owned(pairs)}
        moment, about = at.clock(), _about(at, grades)
        made = functools.partial(
            pages,
            at.assignment,
            results,
            at.book.images,
            now=moment,
            download=download,
            similarity=_similarity(out, at.assignment.id),
        )
        if updates:
            _tell_update(to, update(lambda stamps, only: made(stamps=stamps, only=only), about, to, moment))
        else:
            publish(with_manifest(made(), about, moment), to, moment)
            click.echo(f"{to}: the class page, and the pages of {len(grades)} students.")
        note_released(at, seen, results, grades, "publish")
    for line in left_out(pairs):
        click.echo(printable(f"  {line}"))


def _about(at: "ClassSession", grades: "Mapping[str, float | None]") -> "Manifest":
    """What is known of a publication before it has pages."""
    from grader.publishing.publication_update import Manifest

    return Manifest(assignment=at.assignment.id, book=at.book.identity(), grades=dict(grades))


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


def _similarity(out: Path, assignment_id: str) -> "tuple[SimilarityRecord, bytes] | None":
    """What `grader similar` left in the folder: the record and its page, if both are there."""
    from grader.reports.whole_class.similarity_record import PAGE, previous_similarity

    record, page = previous_similarity(out, assignment_id), out / PAGE
    return (record, page.read_bytes()) if record is not None and page.is_file() else None
