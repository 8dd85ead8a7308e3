"""`grader regrade`: score stored evidence again, with today's rubric."""

from pathlib import Path

import click

from grader.cli.book import book_options, desk, lower_option, told_revision


@click.command("regrade")
@click.argument("out", type=click.Path(path_type=Path))
@book_options
@lower_option
def command(
    out: Path,
    assignment_id: str | None,
    course: Path | None,
    gradebook: str | None,
    by: str | None,
    allow_lower: bool,
) -> None:
    """Score the evidence of the results folder OUT again, with the rubric as it is now.

    No student's code runs. All reports are written again, and every total that changed is printed. Totals
    that were told before never fall without --allow-lower.

    \b
    Example:
      grader regrade results --assignment vit_defects
    """
    with desk(out, assignment_id=assignment_id, course=course, gradebook=gradebook, by=by) as at:
        revision = at.revised("regrade", allow_lower=allow_lower)
    told_revision(revision, f"{len(revision.results)} submissions scored again.")
