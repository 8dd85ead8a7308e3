"""`grader owner`: whose a submission is, where the LMS does not say it, or a person knows better."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from grader.cli.book import book_options, desk, lower_option, now, reason, told_revision
from grader.domain.edit import Edit
from grader.domain.errors import UsageError

if TYPE_CHECKING:
    from grader.gradebook import Snapshot
    from grader.results.owners import NewOwner
    from grader.results.revision import Revision

NONE = "none"


@click.command("owner")
@click.argument("out", type=click.Path(path_type=Path))
@click.argument("upload")
@click.argument("student_id", metavar="STUDENT")
@click.option("--why", required=True, help="How you know, for the record.")
@click.option("--instead", is_flag=True, help="It counts in the place of the submission that STUDENT has.")
@book_options
@lower_option
def command(
    out: Path,
    upload: str,
    student_id: str,
    why: str,
    instead: bool,
    assignment_id: str | None,
    course: Path | None,
    gradebook: str | None,
    by: str | None,
    allow_lower: bool,
) -> None:
    """Say that UPLOAD in the results folder OUT is the submission of STUDENT.

    UPLOAD is the id that it is listed under (`moodle-1234525`), or the name that it has in the download, as
    the queue of the class page tells both. STUDENT is the student's id; `none` takes back whose it was said
    to be: its points reach nobody then.

    From then on its points, marks and report are that student's, also when the same download is graded again.
    Where the student has another submission, --instead says that it does not count any more. Nothing runs
    again.

    \b
    Examples:
      grader owner results moodle-1234525 400101325 --why "By the list of the course."
      grader owner results moodle-1234524 400101324 --why "A slip of the pen, he says." --by ta1
      grader owner results 400101325 none --why "She has not handed in anything."
    """
    from grader.results.owners import NewOwner, new_owner

    told = reason(why)
    found: list[NewOwner] = []
    with desk(out, assignment_id=assignment_id, course=course, gradebook=gradebook, by=by) as at:

        def decide(snapshot: "Snapshot", _: object) -> Sequence[Edit]:
            owner = None if student_id == NONE else student_id
            found[:] = [new_owner(snapshot, upload, owner, who=at.who, when=now(), why=told)]
            if found[0].displaced is not None and not instead:
                raise UsageError(_taken(found[0]))
            return found[0].edits

        revision = at.revised(f"owner {student_id}", decide=decide, allow_lower=allow_lower)
    _tell(found[0], revision)


def _taken(owner: "NewOwner") -> str:
    other = owner.displaced
    assert other is not None
    name = other.origin.upload or other.origin.listed_as
    return (
        f"{owner.student_id} has a submission already: {name} ({other.origin.listed_as}). "
        "Nothing was changed. Say whose that is first, or let this one count in its place by --instead."
    )


def _tell(owner: "NewOwner", revision: "Revision") -> None:
    from grader.domain.formatting import printable

    upload = owner.upload.origin.upload or owner.upload.student_id
    other = owner.displaced
    if other is not None:
        listed = next((edit.target for edit in owner.edits if edit.student_id == other.row), "")
        what = f"is listed as {listed}, and nobody knows whose it is" if listed else "does not count any more"
        click.echo(printable(f"{other.origin.upload}, which was {owner.student_id}'s, {what}."))
    if not owner.edits:
        done = "So it is already."
    elif owner.student_id == owner.upload.origin.listed_as:
        done = f"{upload}: nobody knows whose it is. It is listed as {owner.student_id}."
    else:
        done = f"{upload} is {owner.student_id}'s."
    told_revision(revision, done)
