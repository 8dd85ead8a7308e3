"""Whose an upload is, where the LMS does not say it, or a person knows better."""

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from grader.decisions.corrections import stated
from grader.domain.edit import Listed
from grader.domain.errors import UsageError
from grader.domain.submission import KnownUpload
from grader.files.file_names import sanitized
from grader.gradebook import Snapshot
from grader.intake.ownership import is_provisional
from grader.results.current_state import noted_uploads
from grader.results.revision import Revision
from grader.results.session import ClassSession


@dataclass(frozen=True)
class NewOwner:
    """What it comes to that a person says whose an upload is.

    Attributes:
        upload: As it was listed before.
        student_id: The id that it is listed under from then on.
        edits: What is added to the book; nothing where it was said before.
        displaced: The upload that counted for that student until then.
    """

    upload: KnownUpload
    student_id: str
    edits: tuple[Listed, ...]
    displaced: KnownUpload | None = None


@dataclass(frozen=True)
class OwnerSaid:
    """What it came to that a person said whose an upload is."""

    owner: NewOwner
    revision: Revision


def say_owner(
    session: ClassSession,
    upload: str,
    student_id: str | None,
    *,
    why: str,
    instead: bool = False,
    allow_lower: bool = False,
) -> OwnerSaid:
    """Say whose an upload is: its points, marks and report are that student's from then on.

    Args:
        upload: The id that it is listed under, or what the download calls it.
        student_id: Whose it is; None: nobody knows, and its points reach nobody.
        why: How that is known.
        instead: It counts in the place of the submission that the student has.
        allow_lower: Grades that were released may fall.

    Raises:
        UsageError: There is no such upload or reason, nobody can have such an id, the student has another
            submission, or a released grade would fall.
    """
    reason = stated(why)
    said: NewOwner | None = None

    def decide(snapshot: Snapshot, _: object) -> Sequence[Listed]:
        nonlocal said
        said = new_owner(snapshot, upload, student_id, who=session.who, when=session.clock(), why=reason)
        if said.displaced is not None and not instead:
            origin = said.displaced.origin
            raise UsageError(
                f"{said.student_id} has a submission already: {origin.upload or origin.listed_as} "
                f"({origin.listed_as}). Nothing was changed. Say whose that is first, or let this one count "
                "in its place by --instead."
            )
        return said.edits

    revision = session.revised(f"owner {student_id or 'none'}", decide=decide, allow_lower=allow_lower)
    assert said is not None, "a revision asks what is decided"
    return OwnerSaid(said, revision)


def new_owner(
    snapshot: Snapshot, name: str, student_id: str | None, *, who: str, when: datetime, why: str
) -> NewOwner:
    """What it comes to that an upload is a student's.

    Args:
        name: The id that the upload is listed under, or what the download calls it.
        student_id: Whose it is; None: nobody knows.

    Raises:
        UsageError: There is no such upload, or there are several, or nobody can have such an id.
    """
    uploads = noted_uploads(snapshot)
    upload = _meant(uploads, name)
    target = upload.origin.listed_as if student_id is None else _spelled(uploads, student_id)
    if upload.decided and upload.counts and upload.student_id == target:
        return NewOwner(upload, target, ())
    edits = [
        Listed(
            who=who,
            when=when,
            why=why,
            student_id=upload.row,
            listed_as=target,
            by_person=True,
            held=student_id is None,
        )
    ]
    other = next((one for one in uploads if one.counts and one.student_id == target), None)
    displaced = other if other is not None and other.row != upload.row else None
    if displaced is not None and not displaced.decided and not displaced.origin.known_id:
        # only names said that it was that student's
        sent = upload.origin.listed_as
        told = f"Its files carry the id {target}, and by a person that is whoever sent {sent}."
        edits.append(
            Listed(
                who=who,
                when=when,
                why=told,
                student_id=displaced.row,
                listed_as=displaced.origin.listed_as,
                by_person=False,
                held=True,
            )
        )
    return NewOwner(upload, target, tuple(edits), displaced)


def _meant(uploads: Sequence[KnownUpload], name: str) -> KnownUpload:
    """The upload that is meant by a name."""
    asked = name.casefold()
    for fitting in (
        [one for one in uploads if one.counts and one.student_id.casefold() == asked],
        [one for one in uploads if asked in (one.origin.listed_as.casefold(), one.origin.upload.casefold())],
    ):
        if len(fitting) == 1:
            return fitting[0]
        if fitting:
            ids = ", ".join(one.student_id for one in fitting)
            raise UsageError(
                f"There are {len(fitting)} uploads '{name}': {ids}. Give the id of the one you mean."
            )
    known = [text for one in uploads for text in (one.student_id, one.origin.upload)]
    near = difflib.get_close_matches(name, known, n=1)
    advice = f"Did you mean '{near[0]}'?" if near else "The class page lists them all."
    raise UsageError(f"The gradebook has no upload '{name}'. {advice}")


def _spelled(uploads: Sequence[KnownUpload], student_id: str) -> str:
    """A student's id as it is written already, or as it is given."""
    if sanitized(student_id) != student_id or is_provisional(student_id):
        raise UsageError(
            f"'{student_id}' cannot be a student's id. Give letters, digits, - and _, as results are listed."
        )
    known = {one.student_id.casefold(): one.student_id for one in uploads}
    return known.get(student_id.casefold(), student_id)
