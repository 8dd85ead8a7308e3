"""`grader count`: which of a student's runs counts."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from grader.cli.book import decision_options, session, told_revision
from grader.domain.errors import UsageError

if TYPE_CHECKING:
    from grader.results.session import SessionRequest

LATEST = "latest"


@click.command("count")
@click.argument("out", type=click.Path(path_type=Path))
@click.argument("student_id", metavar="STUDENT")
@click.argument("number", metavar="RUN")
@click.option("--why", required=True, help="The reason, for the record.")
@decision_options
def command(request: "SessionRequest", student_id: str, number: str, why: str, allow_lower: bool) -> None:
    """Choose which RUN of STUDENT counts in the results folder OUT: a number of its history, or `latest`.

    By default, the latest run counts. If the same files earned less than was released before, the earlier run
    still counts. If a later attempt earned less, a person decides. Nothing runs again. A chosen run counts
    until the student hands in something new.

    \b
    Examples:
      grader count results 400101204 latest --why "The last attempt counts, as announced."
      grader count results 400101204 1 --why "The second upload was another course's homework."
    """

    from grader.decisions.one_submission import choose_run

    wanted = _run(number)
    with session(request) as opened:
        chosen = choose_run(opened, student_id, wanted, why=why, allow_lower=allow_lower)
    told_revision(chosen.revision, f"{'The latest run' if wanted is None else f'Run {number}'} counts.")


def _run(text: str) -> int | None:
    """The number of the run that is meant; None: the latest.

    Raises:
        UsageError: It is none.
    """
    if text == LATEST:
        return None
    if not text.isdecimal():
        raise UsageError(f"There is no run '{text}'. Give a number of `grader history`, or {LATEST}.")
    return int(text)
