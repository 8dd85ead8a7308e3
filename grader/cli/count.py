"""`grader count`: which of a student's runs counts."""

from collections.abc import Sequence
from pathlib import Path

import click

from grader.cli.book import book_options, desk, lower_option, now, reason, told_revision
from grader.domain.edit import Edit, EditKind
from grader.domain.errors import UsageError

LATEST = "latest"


@click.command("count")
@click.argument("out", type=click.Path(path_type=Path))
@click.argument("student_id", metavar="STUDENT")
@click.argument("number", metavar="RUN")
@click.option("--why", required=True, help="The reason, for the record.")
@book_options
@lower_option
def command(
    out: Path,
    student_id: str,
    number: str,
    why: str,
    assignment_id: str | None,
    course: Path | None,
    gradebook: str | None,
    by: str | None,
    allow_lower: bool,
) -> None:
    """Say that RUN counts for STUDENT in the results folder OUT: a number of `grader history`, or `latest`.

    By itself the latest run counts; but where the same files gave less than was told before, the run before
    goes on counting, and where a later attempt gave less, a person is asked. Nothing runs again. A chosen run
    counts until the student hands in something new.

    \b
    Examples:
      grader count results 400101204 latest --why "The last attempt counts, as announced."
      grader count results 400101204 1 --why "The second upload was another course's homework."
    """
    told = reason(why)
    with desk(out, assignment_id=assignment_id, course=course, gradebook=gradebook, by=by) as at:

        def decide(*_: object) -> Sequence[Edit]:
            value = float(_run(number, at.book.runs(student_id)))
            return [Edit(EditKind.RUN, at.who, now(), told, student_id, value=value)]

        revision = at.revised(f"count {student_id}", decide=decide, allow_lower=allow_lower)
    told_revision(revision, f"{'The latest run' if number == LATEST else f'Run {number}'} counts.")


def _run(text: str, runs: Sequence[int]) -> int:
    """The number of the run that is meant.

    Raises:
        UsageError: There is no such run.
    """
    if text == LATEST:
        return runs[-1]
    if not text.isdecimal() or int(text) not in runs:
        known = ", ".join(map(str, runs))
        raise UsageError(f"There is no run '{text}'. Give one of {known}, or {LATEST}.")
    return int(text)
