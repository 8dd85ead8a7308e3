"""`grader regrade`: score stored evidence again, with today's rubric."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from grader.cli.book import decision_options, session, told_revision

if TYPE_CHECKING:
    from grader.results.session import SessionRequest


@click.command("regrade")
@click.argument("out", type=click.Path(path_type=Path))
@click.option(
    "--extensions",
    type=click.Path(path_type=Path),
    help="A CSV of single students' own deadlines, granted afterwards: student_id, deadline.",
)
@decision_options
def command(request: "SessionRequest", extensions: Path | None, allow_lower: bool) -> None:
    """Score the evidence in the results folder OUT again, with the current rubric.

    No student's code runs. All reports are written again, and every total that changed is printed. Totals
    that were released never fall without --allow-lower.

    Extensions are recorded as decisions, with who made them and when. If a deadline was given both when
    grading and here, the later one counts.

    \b
    Examples:
      grader regrade results --assignment vit_defects
      grader regrade results --extensions extensions.csv
    """

    from grader.course.extensions import read_extensions
    from grader.decisions.deadlines import regrade
    from grader.domain.formatting import printable

    with session(request) as opened:
        given = read_extensions(extensions, opened.assignment.deadline) if extensions else None
        source = extensions.name if extensions else ""
        done = regrade(opened, extensions=given, source=source, allow_lower=allow_lower)
    for student_id in done.unknown:
        click.echo(printable(f"note: {student_id}: has an extension, and no result."), err=True)
    sentence = f"{len(done.revision.results)} submissions scored again."
    told_revision(done.revision, f"{sentence} New extensions: {done.extensions}." if extensions else sentence)
