"""`grader regrade`: score stored evidence again, with today's rubric."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from grader.cli.book import book_options, desk, lower_option, now, told_revision
from grader.domain.edit import Edit

if TYPE_CHECKING:
    from grader.domain.result import Result


@click.command("regrade")
@click.argument("out", type=click.Path(path_type=Path))
@click.option(
    "--extensions",
    type=click.Path(path_type=Path),
    help="A CSV of single students' own deadlines, given after the fact: student_id, deadline.",
)
@book_options
@lower_option
def command(
    out: Path,
    extensions: Path | None,
    assignment_id: str | None,
    course: Path | None,
    gradebook: str | None,
    by: str | None,
    allow_lower: bool,
) -> None:
    """Score the evidence of the results folder OUT again, with the rubric as it is now.

    No student's code runs. All reports are written again, and every total that changed is printed. Totals
    that were told before never fall without --allow-lower.

    The extensions are kept as decisions, with who and when; of a deadline that was given when grading and one
    that is given here, the later counts.

    \b
    Examples:
      grader regrade results --assignment vit_defects
      grader regrade results --extensions extensions.csv
    """
    from grader.course.extensions import read_extensions
    from grader.decisions.deadlines import extension_edits
    from grader.domain.formatting import printable

    given = 0
    with desk(out, assignment_id=assignment_id, course=course, gradebook=gradebook, by=by) as at:
        deadlines = read_extensions(extensions, at.assignment.deadline) if extensions else {}

        def decide(_: object, results: "Sequence[Result]") -> Sequence[Edit]:
            nonlocal given
            why = f"An extension, by {extensions.name if extensions else ''}."
            new = extension_edits(results, deadlines, who=at.who, when=now(), why=why)
            given = len(new)
            return new

        revision = at.revised("regrade", decide=decide if extensions else None, allow_lower=allow_lower)
    known = {result.score.student_id for result in revision.results}
    for student_id in sorted(deadlines.keys() - known):
        click.echo(printable(f"note: {student_id}: has an extension, and no result."), err=True)
    done = f"{len(revision.results)} submissions scored again."
    told_revision(revision, f"{done} New extensions: {given}." if extensions else done)
