"""`grader received`: when a submission came, where the LMS does not say it, or says it wrongly."""

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from grader.cli.book import decision_options, session, told_revision
from grader.domain.errors import UsageError

if TYPE_CHECKING:
    from grader.results.session import SessionRequest

IN_TIME, NONE = "in-time", "none"
EXAMPLE = "2026-01-31T23:40+03:30"


@click.command("received")
@click.argument("out", type=click.Path(path_type=Path))
@click.argument("student_id", metavar="STUDENT")
@click.argument("moment", metavar="WHEN")
@click.option("--why", required=True, help="How you know: the student reads it.")
@decision_options
def command(request: "SessionRequest", student_id: str, moment: str, why: str, allow_lower: bool) -> None:
    """Record WHEN the submission of STUDENT in the results folder OUT arrived, for the rule on late work.

    WHEN is a date and time with its zone, `in-time`, or `none`, which takes back an earlier entry. Canvas
    marks submissions as late without saying by how much; a submission by mail is in no LMS. The entry applies
    to the files that were graded. For anything handed in later, the LMS's time counts.

    \b
    Examples:
      grader received results 400101204 2026-01-31T23:40+03:30 --why "SpeedGrader says so."
      grader received results 400101205 in-time --why "Handed in by mail, on paper."
    """

    from grader.decisions.deadlines import record_in_time, record_received

    when = None if moment in (IN_TIME, NONE) else _when(moment)
    with session(request) as opened:
        if moment == IN_TIME:
            arrival = record_in_time(opened, student_id, why=why, allow_lower=allow_lower)
        else:
            arrival = record_received(opened, student_id, when, why=why, allow_lower=allow_lower)
    nothing = "The assignment has no deadline, so nothing follows from it."
    told_revision(arrival.revision, f"{student_id}: {arrival.late.reason if arrival.late else nothing}")


def _when(text: str) -> datetime:
    """A moment with its zone.

    Raises:
        UsageError: It is none.
    """
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(
            f"{text}: is not a date and time. Write it as in {EXAMPLE}, or {IN_TIME}, or {NONE}."
        ) from None
    if moment.utcoffset() is None:
        raise UsageError(f"{text}: has no time zone. Write it as in {EXAMPLE}.")
    return moment
