"""`grader accept`: a file that was set aside counts as the report."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from grader.cli.book import decision_options, session, told_revision

if TYPE_CHECKING:
    from grader.results.session import SessionRequest

NONE = "none"


@click.command("accept")
@click.argument("out", type=click.Path(path_type=Path))
@click.argument("student_id", metavar="STUDENT")
@click.argument("file", metavar="FILE")
@click.option("--why", required=True, help="The reason: the student reads it.")
@decision_options
def command(request: "SessionRequest", student_id: str, file: str, why: str, allow_lower: bool) -> None:
    """Accept the set-aside FILE as the report of STUDENT in the results folder OUT.

    FILE is its name on the class page and in the report (`report.docx`); `none` takes the decision back. The
    report is then no longer missing, and people mark it like any other. It counts as long as the submission
    that counts has that file.

    \b
    Examples:
      grader accept results 400101215 400101215_Lab8_Homework.docx --why "Word is fine this once."
      grader accept results 400101215 none --why "It is another course's report."
    """

    from grader.decisions.one_submission import accept_file

    with session(request) as opened:
        accepted = None if file == NONE else file
        revision = accept_file(opened, student_id, accepted, why=why, allow_lower=allow_lower)
    done = f"{file} counts as the report of {student_id}."
    if accepted is None:
        done = f"No file that was set aside counts as the report of {student_id}."
    told_revision(revision, done)
