"""`grader received`: when a submission came, where the LMS does not say it, or says it wrongly."""

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from grader.cli.book import book_options, desk, lower_option, now, reason, told_revision
from grader.domain.edit import Edit, EditKind
from grader.domain.errors import UsageError

if TYPE_CHECKING:
    from grader.gradebook import Snapshot

IN_TIME, NONE = "in-time", "none"
EXAMPLE = "2026-01-31T23:40+03:30"


@click.command("received")
@click.argument("out", type=click.Path(path_type=Path))
@click.argument("student_id", metavar="STUDENT")
@click.argument("moment", metavar="WHEN")
@click.option("--why", required=True, help="Where that is from: the student reads it.")
@book_options
@lower_option
def command(
    out: Path,
    student_id: str,
    moment: str,
    why: str,
    assignment_id: str | None,
    course: Path | None,
    gradebook: str | None,
    by: str | None,
    allow_lower: bool,
) -> None:
    """Record WHEN the submission of STUDENT in the results folder OUT came, for the rule on late work.

    WHEN is a date and time with its zone, `in-time`, or `none`, which takes back what was said before. Canvas
    marks what is late and does not say by how much; a submission by mail is in no LMS. It is about the files
    that were graded: whatever the student hands in later comes when the LMS says.

    \b
    Examples:
      grader received results 400101204 2026-01-31T23:40+03:30 --why "SpeedGrader says so."
      grader received results 400101205 in-time --why "Handed in by mail, on paper."
    """
    told, when = reason(why), _when(moment)
    with desk(out, assignment_id=assignment_id, course=course, gradebook=gradebook, by=by) as at:
        at.require_student(student_id)

        def decide(snapshot: "Snapshot", _: object) -> Sequence[Edit]:
            digest = snapshot.evidence[student_id].submission_digest
            kind = EditKind.IN_TIME if when == IN_TIME else EditKind.RECEIVED
            value = when.timestamp() if isinstance(when, datetime) else None
            return [Edit(kind, at.who, now(), told, student_id, digest, value)]

        revision = at.revised(f"received {student_id}", decide=decide, allow_lower=allow_lower)
    score = next(one.score for one in revision.results if one.score.student_id == student_id)
    verdict = (
        score.late.reason if score.late else "The assignment has no deadline, so nothing follows from it."
    )
    told_revision(revision, f"{student_id}: {verdict}")


def _when(text: str) -> datetime | str:
    """The moment, IN_TIME or NONE.

    Raises:
        UsageError: It is none of these.
    """
    if text in (IN_TIME, NONE):
        return text
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(
            f"{text}: is no date and time. Write it as in {EXAMPLE}, or {IN_TIME}, or {NONE}."
        ) from None
    if moment.utcoffset() is None:
        raise UsageError(f"{text}: has no time zone. Write it as in {EXAMPLE}.")
    return moment
