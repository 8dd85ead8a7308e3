"""`grader claim`: the accuracy that a student claims, where it could not be read."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from grader.cli.book import decision_options, session, told_revision
from grader.domain.errors import UsageError

if TYPE_CHECKING:
    from grader.results.session import SessionRequest


@click.command("claim")
@click.argument("out", type=click.Path(path_type=Path))
@click.argument("student_id", metavar="STUDENT")
@click.argument("accuracy", metavar="ACCURACY")
@click.option("--why", required=True, help="Where it is written: `page 3 of the report`.")
@decision_options
def command(request: "SessionRequest", student_id: str, accuracy: str, why: str, allow_lower: bool) -> None:
    """Record the test ACCURACY that STUDENT claims, in percent; `none` takes back an earlier entry.

    The grader reads it from the outputs of the notebook, or else from the text of the report. A scan has no
    text, and a sentence may be misread. If the measured accuracy is more than 5 points lower and points are
    at stake, a person decides.

    \b
    Examples:
      grader claim results 400101204 83.5 --why "page 3 of the report"
      grader claim results 400101204 none --why "it was about another model"
    """

    from grader.decisions.one_submission import record_claim

    share = _share(accuracy)
    with session(request) as opened:
        revision = record_claim(opened, student_id, share, why=why, allow_lower=allow_lower)
    done = "is not claimed any more" if share is None else "is claimed"
    told_revision(revision, f"{accuracy} {done} by {student_id}.")


def _share(text: str) -> float | None:
    """The accuracy as a share of one; None to take it back.

    Raises:
        UsageError: It is not a percentage.
    """
    if text.strip().lower() == "none":
        return None
    try:
        percent = float(text.strip().rstrip("% ").replace(",", "."))
    except ValueError:
        percent = -1.0
    if not 1 < percent <= 100:
        raise UsageError(f"{text}: is not an accuracy in percent. Write 83.5 for 83.5 %, or none.")
    return percent / 100
