"""`grader rule`: the last word on submissions that cannot be graded, lack a file, or do not exist."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from grader.cli.book import decision_options, session, told_revision
from grader.domain.errors import UsageError

if TYPE_CHECKING:
    from grader.results.session import SessionRequest


@click.command("rule")
@click.argument("out", type=click.Path(path_type=Path))
@click.argument("students", metavar="[STUDENT]...", nargs=-1)
@click.option("--missing", multiple=True, metavar="STUDENT", help="The same as STUDENT.")
@click.option(
    "--all",
    "everybody",
    is_flag=True,
    help="All whose total is withheld for a missing file, or who were refused.",
)
@click.option("--lift", is_flag=True, help="The total counts anyway.")
@click.option("--why", required=True, help="The reason: the student reads it.")
@decision_options
def command(
    request: "SessionRequest",
    students: tuple[str, ...],
    missing: tuple[str, ...],
    everybody: bool,
    lift: bool,
    why: str,
    allow_lower: bool,
) -> None:
    """Decide about each STUDENT of the results folder OUT whose submission lacks something.

    If a file is missing, nothing could be graded, or nothing was handed in, there is no total until you
    decide. With the rule it is 0. With --lift the total counts anyway: items that could not be judged without
    code give no points, and items that people mark count. A student who handed in nothing must be on a list
    of the class, or listed by the LMS.

    The rule applies to what has been handed in so far: a later attempt is graded as usual. The latest
    decision counts. Every decision is recorded with who made it, when and why.

    \b
    Examples:
      grader rule results 400101215 --why "No report by the deadline."
      grader rule results 400101216 --lift --why "Its notebook does not open; the report counts."
      grader rule results 400101362 --why "Nothing by the deadline."
      grader rule results --all --why "One missing file means no grade."
    """

    from grader.decisions.last_word import rule

    named = (*missing, *students)
    if bool(named) == everybody:
        raise UsageError("Say whom the rule is about: one or more STUDENTs, or --all.")
    with session(request) as opened:
        word = rule(opened, named or None, why=why, lift=lift, allow_lower=allow_lower)
    count = len(word.students)
    done = f"What there is counts for {count}" if lift else f"0 points for {count}"
    told_revision(word.revision, f"{done} of the class.")
