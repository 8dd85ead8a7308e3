"""`grader owner`: whose a submission is, where the LMS does not say it, or a person knows better."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from grader.cli.book import decision_options, session, told_revision

if TYPE_CHECKING:
    from grader.decisions.upload_owner import NewOwner
    from grader.results.revision import Revision
    from grader.results.session import SessionRequest

NONE = "none"


@click.command("owner")
@click.argument("out", type=click.Path(path_type=Path))
@click.argument("upload")
@click.argument("student_id", metavar="STUDENT")
@click.option("--why", required=True, help="How you know, for the record.")
@click.option("--instead", is_flag=True, help="It replaces the submission that STUDENT already has.")
@decision_options
def command(
    request: "SessionRequest", upload: str, student_id: str, why: str, instead: bool, allow_lower: bool
) -> None:
    """Record that UPLOAD in the results folder OUT is the submission of STUDENT.

    UPLOAD is the id under which it is listed (`moodle-1234525`), or its name in the download. The queue of
    the class page shows both. STUDENT is the student's id; `none` takes an earlier assignment back, and then
    its points reach nobody.

    From then on, its points, marks and report are that student's, even when the same download is graded
    again. If the student has another submission, --instead means that the other one no longer counts. Nothing
    runs again.

    \b
    Examples:
      grader owner results moodle-1234525 400101325 --why "By the list of the course."
      grader owner results moodle-1234524 400101324 --why "A slip of the pen, he says." --by ta1
      grader owner results 400101325 none --why "She has not handed in anything."
    """

    from grader.decisions.upload_owner import say_owner

    with session(request) as opened:
        owner = None if student_id == NONE else student_id
        said = say_owner(opened, upload, owner, why=why, instead=instead, allow_lower=allow_lower)
    _tell(said.owner, said.revision)


def _tell(owner: "NewOwner", revision: "Revision") -> None:
    from grader.domain.formatting import printable

    upload = owner.upload.origin.upload or owner.upload.student_id
    other = owner.displaced
    if other is not None:
        listed = next((edit.listed_as for edit in owner.edits if edit.student_id == other.row), "")
        what = f"is listed as {listed}, and nobody knows whose it is" if listed else "does not count any more"
        click.echo(printable(f"{other.origin.upload}, which was {owner.student_id}'s, {what}."))
    if not owner.edits:
        done = "So it is already."
    elif owner.student_id == owner.upload.origin.listed_as:
        done = f"{upload}: nobody knows whose it is. It is listed as {owner.student_id}."
    else:
        done = f"{upload} is {owner.student_id}'s."
    told_revision(revision, done)
