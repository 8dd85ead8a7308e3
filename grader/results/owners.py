"""Whose submissions are: what the gradebook knows of uploads, and what turns out about them."""

import contextlib
import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from grader.domain.edit import Edit, EditKind
from grader.domain.errors import UsageError
from grader.domain.submission import KnownUpload, Origin
from grader.files.page_names import ATTENTION_PAGE, STUDENT_FILES
from grader.gradebook import Gradebook, Snapshot
from grader.intake.naming import sanitized
from grader.intake.ownership import EARLIER, Verdict, listed_as, ours
from grader.reports.results_json.results_contract import DownloadRecord


def known_uploads(book: Gradebook) -> tuple[KnownUpload, ...]:
    """The uploads that a book has results of."""
    return _noted(book.snapshot()) if book.students() else ()


def uploads_of(out: Path, url: str | None, assignment_id: str) -> tuple[KnownUpload, ...]:
    """The uploads that the book of a results folder has results of; none where there is no book."""
    with Gradebook(out, url, assignment_id=assignment_id) as book:
        return known_uploads(book) if assignment_id in book.assignments() else ()


def _noted(snapshot: Snapshot) -> tuple[KnownUpload, ...]:
    return tuple(one if one.origin.key else replace(one, origin=_earlier(one)) for one in snapshot.uploads())


def _earlier(upload: KnownUpload) -> Origin:
    """What stands for the upload of which an earlier version recorded a result and nothing else."""
    key = f"{EARLIER}{upload.row}"
    return Origin(key, upload.row, listed_as(key, "", "", upload.row), carries=upload.row)


def moved_edits(moved: Iterable[Verdict], *, who: str, when: datetime) -> list[Edit]:
    """What turned out about uploads that the book lists otherwise, as edits about its rows."""
    return [
        Edit(EditKind.HELD, who, when, one.held, one.before.row, one.student_id)
        if one.held
        else Edit(EditKind.MATCHED, who, when, "The LMS says whose it is.", one.before.row, one.student_id)
        for one in moved
        if one.before is not None
    ]


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
    edits: tuple[Edit, ...]
    displaced: KnownUpload | None = None


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
    uploads = _noted(snapshot)
    upload = _meant(uploads, name)
    if student_id is None:
        target, kind = upload.origin.listed_as, EditKind.NOBODYS
    else:
        target, kind = _spelled(uploads, student_id), EditKind.OWNER
    if upload.decided and upload.counts and upload.student_id == target:
        return NewOwner(upload, target, ())
    edits = [Edit(kind, who, when, why, upload.row, target)]
    other = next((one for one in uploads if one.counts and one.student_id == target), None)
    displaced = other if other is not None and other.row != upload.row else None
    if displaced is not None and not displaced.decided and not displaced.origin.known_id:
        # only names said that it was that student's
        sent = upload.origin.listed_as
        told = f"Its files carry the id {target}, and by a person that is whoever sent {sent}."
        edits.append(Edit(EditKind.HELD, who, when, told, displaced.row, displaced.origin.listed_as))
    return NewOwner(upload, target, tuple(edits), displaced)


def _meant(uploads: Sequence[KnownUpload], name: str) -> KnownUpload:
    """The upload that is meant by a name."""
    asked = name.casefold()
    for found in (
        [one for one in uploads if one.counts and one.student_id.casefold() == asked],
        [one for one in uploads if asked in (one.origin.listed_as.casefold(), one.origin.upload.casefold())],
    ):
        if len(found) == 1:
            return found[0]
        if found:
            ids = ", ".join(one.student_id for one in found)
            raise UsageError(
                f"There are {len(found)} uploads '{name}': {ids}. Give the id of the one you mean."
            )
    known = [text for one in uploads for text in (one.student_id, one.origin.upload)]
    near = difflib.get_close_matches(name, known, n=1)
    advice = f"Did you mean '{near[0]}'?" if near else "The class page lists them all."
    raise UsageError(f"The gradebook has no upload '{name}'. {advice}")


def _spelled(uploads: Sequence[KnownUpload], student_id: str) -> str:
    """A student's id as it is written already, or as it is given."""
    if sanitized(student_id) != student_id or ours(student_id):
        raise UsageError(
            f"'{student_id}' cannot be a student's id. Give letters, digits, - and _, as results are listed."
        )
    known = {one.student_id.casefold(): one.student_id for one in uploads}
    return known.get(student_id.casefold(), student_id)


def relabeled(download: DownloadRecord, snapshot: Snapshot) -> DownloadRecord:
    """The account of a download with the ids under which submissions are listed now."""
    now = snapshot.relisted()
    files = [
        file.model_copy(update={"student_id": now[file.student_id]}) if file.student_id in now else file
        for file in download.files
    ]
    return download.model_copy(update={"files": files})


def remove_moved_pages(out: Path, snapshot: Snapshot) -> None:
    """Remove the pages that stand under ids that nobody has any more."""
    for student_id in snapshot.relisted():
        folder = out / "students" / student_id
        for name in (*STUDENT_FILES, ATTENTION_PAGE):
            (folder / name).unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # it is not there, or somebody put something else into it
            folder.rmdir()
