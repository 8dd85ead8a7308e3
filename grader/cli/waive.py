"""`grader waive`: give a check's points back to the whole class."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from grader.cli.book import decision_options, session, told_revision

if TYPE_CHECKING:
    from grader.results.session import SessionRequest


@click.command("waive")
@click.argument("out", type=click.Path(path_type=Path))
@click.argument("check")
@click.option("--why", required=True, help="The reason: students and colleagues read it.")
@click.option("--undo", is_flag=True, help="Take the waiver back: the check counts again.")
@decision_options
def command(request: "SessionRequest", check: str, why: str, undo: bool, allow_lower: bool) -> None:
    """Count CHECK as passed for the whole class of the results folder OUT: the check was wrong.

    No student's code runs. The waiver is recorded with who made it, when and why. It also applies to later
    submissions.

    \b
    Examples:
      grader waive results vit_adds_positions --why "The handout did not ask for it."
      grader waive results vit_adds_positions --undo --allow-lower --why "It did, on page 2."
    """
    from grader.decisions.check_waiver import waive_check

    with session(request) as opened:
        waived = waive_check(opened, check, why=why, undo=undo, allow_lower=allow_lower)
    done = "counts again" if undo else "counts as passed for the whole class"
    told_revision(waived.revision, f"'{waived.check}' {done}.")
