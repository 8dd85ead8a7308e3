"""Decides whose an upload is, if the LMS does not say, or if a person knows better."""

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from grader.decisions.corrections import stated
from grader.domain.edit import OwnerAssigned
from grader.domain.errors import UsageError
from grader.domain.submission import RecordedUpload
from grader.files.file_names import sanitized
from grader.gradebook import Snapshot
from grader.intake.ownership import is_provisional
from grader.results.current_state import snapshot_uploads
from grader.results.revision import Revision
from grader.results.session import ClassSession


@dataclass(frozen=True)
class NewOwner:
    """The consequences of a person's decision on whose an upload is.

    Attributes:
        upload: The upload as listed before.
        student_id: Its new id.
        edits: The edits for the gradebook; none if the decision is not new.
        displaced: The upload that counted for that student before.
    """

    upload: RecordedUpload
    student_id: str
    edits: tuple[OwnerAssigned, ...]
    displaced: RecordedUpload | None = None


@dataclass(frozen=True)
class OwnerDecision:
    """The result of a person's decision on whose an upload is."""

    owner: NewOwner
    revision: Revision


def decide_owner(
    session: ClassSession,
    upload: str,
    student_id: str | None,
    *,
    why: str,
    replaces_current: bool = False,
    allow_lower: bool = False,
) -> OwnerDecision:
    """Decide whose an upload is: its points, marks and report are that student's from then on.

    Args:
        upload: The id under which it is listed, or its name in the download.
        student_id: Whose it is; None: nobody knows, and nobody gets its points.
        why: How that is known.
        replaces_current: Whether it replaces the student's current submission.
        allow_lower: Grades that were released may fall.

    Raises:
        UsageError: There is no such upload or reason, nobody can have such an id, the student has another
            submission, or a released grade would fall.
    """
    reason = stated(why)
    new: NewOwner | None = None

    def decide(snapshot: Snapshot, _: object) -> Sequence[OwnerAssigned]:
        nonlocal new
        new = new_owner(snapshot, upload, student_id, who=session.who, when=session.clock(), why=reason)
        if new.displaced is not None and not replaces_current:
            origin = new.displaced.origin
            raise UsageError(
                f"{new.student_id} has a submission already: {origin.upload or origin.listed_as} "
                f"({origin.listed_as}). Nothing was changed. Say whose that is first, or let this one count "
                "in its place with --instead."
            )
        return new.edits

    revision = session.revised(f"owner {student_id or 'none'}", decide=decide, allow_lower=allow_lower)
    assert new is not None, "session.revised calls decide"
    return OwnerDecision(new, revision)


def new_owner(
    snapshot: Snapshot, name: str, student_id: str | None, *, who: str, when: datetime, why: str
) -> NewOwner:
    """The consequences of assigning an upload to a student.

    Args:
        name: The id under which the upload is listed, or its name in the download.
        student_id: Whose it is; None: nobody knows.

    Raises:
        UsageError: There is no such upload, or there are several, or nobody can have such an id.
    """
    uploads = snapshot_uploads(snapshot)
    upload = _upload_named(uploads, name)
    target = upload.origin.listed_as if student_id is None else _existing_spelling(uploads, student_id)
    if upload.decided and upload.counts and upload.student_id == target:
        return NewOwner(upload, target, ())
    edits = [
        OwnerAssigned(
            who=who,
            when=when,
            why=why,
            student_id=upload.row,
            listed_as=target,
            by_person=True,
            held=student_id is None,
        )
    ]
    counting = next(
        (candidate for candidate in uploads if candidate.counts and candidate.student_id == target), None
    )
    displaced = counting if counting is not None and counting.row != upload.row else None
    if displaced is not None and not displaced.decided and not displaced.origin.known_id:
        # only the names of files assigned it to that student
        sent = upload.origin.listed_as
        reason = f"Its files carry the id {target}, and according to a person that is whoever sent {sent}."
        edits.append(
            OwnerAssigned(
                who=who,
                when=when,
                why=reason,
                student_id=displaced.row,
                listed_as=displaced.origin.listed_as,
                by_person=False,
                held=True,
            )
        )
    return NewOwner(upload, target, tuple(edits), displaced)


def _upload_named(uploads: Sequence[RecordedUpload], name: str) -> RecordedUpload:
    """The upload with a name."""
    folded_name = name.casefold()
    for named_uploads in (
        [upload for upload in uploads if upload.counts and upload.student_id.casefold() == folded_name],
        [
            upload
            for upload in uploads
            if folded_name in (upload.origin.listed_as.casefold(), upload.origin.upload.casefold())
        ],
    ):
        if len(named_uploads) == 1:
            return named_uploads[0]
        if named_uploads:
            ids = ", ".join(upload.student_id for upload in named_uploads)
            raise UsageError(
                f"There are {len(named_uploads)} uploads '{name}': {ids}. Give the id of the one you mean."
            )
    names = [text for upload in uploads for text in (upload.student_id, upload.origin.upload)]
    similar = difflib.get_close_matches(name, names, n=1)
    advice = f"Did you mean '{similar[0]}'?" if similar else "The class page lists them all."
    raise UsageError(f"The gradebook has no upload '{name}'. {advice}")


def _existing_spelling(uploads: Sequence[RecordedUpload], student_id: str) -> str:
    """A student's id in its existing spelling, or as given."""
    if sanitized(student_id) != student_id or is_provisional(student_id):
        raise UsageError(
            f"'{student_id}' cannot be a student's id. Give letters, digits, - and _, as results are listed."
        )
    existing_ids = {upload.student_id.casefold(): upload.student_id for upload in uploads}
    return existing_ids.get(student_id.casefold(), student_id)
