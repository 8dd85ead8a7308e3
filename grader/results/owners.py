"""Whose submissions are: what the gradebook knows of uploads, and what turns out about them."""

import contextlib
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from grader.domain.edit import Listed
from grader.domain.submission import KnownUpload, Origin
from grader.files.page_names import ATTENTION_PAGE, STUDENT_FILES
from grader.gradebook import Gradebook, Snapshot
from grader.intake.ownership import EARLIER, Verdict, listed_as
from grader.reports.results_json.results_contract import DownloadRecord


def known_uploads(book: Gradebook) -> tuple[KnownUpload, ...]:
    """The uploads that a book has results of."""
    return noted_uploads(book.snapshot()) if book.students() else ()


def uploads_of(out: Path, url: str | None, assignment_id: str) -> tuple[KnownUpload, ...]:
    """The uploads that the book of a results folder has results of; none where there is no book."""
    with Gradebook(out, url, assignment_id=assignment_id) as book:
        return known_uploads(book) if assignment_id in book.assignments() else ()


def noted_uploads(snapshot: Snapshot) -> tuple[KnownUpload, ...]:
    """The uploads of a state of the book, those of earlier versions with an origin made up for them."""
    return tuple(one if one.origin.key else replace(one, origin=_earlier(one)) for one in snapshot.uploads())


def _earlier(upload: KnownUpload) -> Origin:
    """What stands for the upload of which an earlier version recorded a result and nothing else."""
    key = f"{EARLIER}{upload.row}"
    return Origin(key, upload.row, listed_as(key, "", "", upload.row), carries=upload.row)


def moved_edits(moved: Iterable[Verdict], *, who: str, when: datetime) -> list[Listed]:
    """What turned out about uploads that the book lists otherwise, as edits about its rows."""
    return [
        Listed(
            who=who,
            when=when,
            why=one.held or "The LMS says whose it is.",
            student_id=one.before.row,
            listed_as=one.student_id,
            by_person=False,
            held=bool(one.held),
        )
        for one in moved
        if one.before is not None
    ]


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
