"""`grader claim`: the accuracy that a student claims, where it could not be read."""

from collections.abc import Sequence
from pathlib import Path

import click

from grader.cli.book import book_options, desk, lower_option, now, reason, told_revision
from grader.domain.edit import Edit, EditKind
from grader.domain.errors import UsageError


@click.command("claim")
@click.argument("out", type=click.Path(path_type=Path))
@click.argument("student_id", metavar="STUDENT")
@click.argument("accuracy", metavar="ACCURACY")
@click.option("--why", required=True, help="Where it stands: `page 3 of the report`.")
@book_options
@lower_option
def command(
    out: Path,
    student_id: str,
    accuracy: str,
    why: str,
    assignment_id: str | None,
    course: Path | None,
    gradebook: str | None,
    by: str | None,
    allow_lower: bool,
) -> None:
    """Record the test ACCURACY that STUDENT claims, in percent; `none` takes back what was typed before.

    The grader reads it from the outputs of the notebook, else from the text of the report; a scan has none, a
    sentence may be misread. If over 5 points less were measured and points are at stake, a person decides.

    \b
    Examples:
      grader claim results 400101204 83.5 --why "page 3 of the report"
      grader claim results 400101204 none --why "it was about another model"
    """
    told, share = reason(why), _share(accuracy)
    with desk(out, assignment_id=assignment_id, course=course, gradebook=gradebook, by=by) as at:
        at.require_student(student_id)

        def decide(*_: object) -> Sequence[Edit]:
            return [Edit(EditKind.CLAIM, at.who, now(), told, student_id, value=share)]

        revision = at.revised(f"claim {student_id}", decide=decide, allow_lower=allow_lower)
    done = "is not claimed any more" if share is None else "is claimed"
    told_revision(revision, f"{accuracy} {done} by {student_id}.")


def _share(text: str) -> float | None:
    """The accuracy as a share of one; None to take it back.

    Raises:
        UsageError: It is no percentage.
    """
    if text.strip().lower() == "none":
        return None
    try:
        percent = float(text.strip().rstrip("% ").replace(",", "."))
    except ValueError:
        percent = -1.0
    if not 1 < percent <= 100:
        raise UsageError(f"{text}: is no accuracy in percent. Write 83.5 for 83.5 %, or none.")
    return percent / 100
