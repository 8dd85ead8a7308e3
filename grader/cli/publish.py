"""`grader publish`: the class page and the students' pages, as a static folder or a zip."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from grader.cli.book import book_options, desk, now
from grader.domain.errors import UsageError

if TYPE_CHECKING:
    from grader.reporting.similarity_record import SimilarityRecord


@click.command("publish")
@click.argument("out", type=click.Path(path_type=Path))
@click.option("--to", type=click.Path(path_type=Path), required=True, help="A new folder, or a new .zip.")
@click.option("--partial", is_flag=True, help="Publish although something still awaits a person.")
@book_options
def command(
    out: Path,
    to: Path,
    partial: bool,
    assignment_id: str | None,
    course: Path | None,
    gradebook: str | None,
    by: str | None,
) -> None:
    """Write the pages of the results folder OUT as a static folder, or a zip.

    instructors/index.html is the class page, with links to all students; students/ID/report.html is one
    student's page, beside the code and the PDF that were handed in; they link to nobody else's. The pages
    say what the gradebook says now.

    \b
    Examples:
      grader publish results --to published
      grader publish results --assignment vit_defects --to published.zip --partial
    """
    from grader.pipeline.accounts import standing_downloads
    from grader.pipeline.publication import open_reasons, pages, publish
    from grader.pipeline.revision import results_now
    from grader.reporting.downloads import summed
    from grader.reporting.exports.grade import left_out, owned
    from grader.reporting.typesetting import printable

    with desk(out, assignment_id=assignment_id, course=course, gradebook=gradebook, by=by) as at:
        snapshot = at.book.snapshot()
        results = results_now(at.assignment, snapshot)
        download = summed(standing_downloads(at.book, out, snapshot))
        reasons = open_reasons(at.assignment, results, download)
        if reasons and not partial:
            raise UsageError(
                f"Not ready to hand out: {'; '.join(reasons)}. "
                f"See {out / 'index.html'}, or add --partial. Nothing was written."
            )
        moment = now()
        found = pages(
            at.assignment,
            results,
            at.book.images,
            now=moment,
            download=download,
            similarity=_similarity(out, at.assignment.id),
        )
        publish(found, to, moment)
    pairs = [(result.evidence, result.score) for result in results]
    click.echo(f"{to}: the class page, and the pages of {len(owned(pairs))} students.")
    for line in left_out(pairs):
        click.echo(printable(f"  {line}"))


def _similarity(out: Path, assignment_id: str) -> "tuple[SimilarityRecord, bytes] | None":
    """What `grader similar` left in the folder: the record and its page, if both are there."""
    from grader.reporting.similarity_record import PAGE, previous_similarity

    record, page = previous_similarity(out, assignment_id), out / PAGE
    return (record, page.read_bytes()) if record is not None and page.is_file() else None
