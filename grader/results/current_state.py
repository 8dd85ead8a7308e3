"""What the gradebook says of a class now: results, owners of uploads, and accounts of downloads.

It holds the results, as evidence and edits give them under the rubric as it is now, the uploads that the
book knows and what turns out about them, and the account of each download that was graded into one
results folder. It never writes pages, and it never decides whose an upload is: `grader.intake` and people
do.
"""

import contextlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from grader.domain.assignment import Assignment
from grader.domain.edit import Edit, Listed
from grader.domain.errors import UsageError
from grader.domain.score import Total
from grader.domain.submission import Download, KnownUpload, Origin
from grader.domain.submission_result import Result
from grader.files.file_names import ATTENTION_PAGE, STUDENT_FILES
from grader.gradebook import Gradebook, Snapshot
from grader.intake import Uploads
from grader.intake.downloaded_files import condensed
from grader.intake.ownership import EARLIER, Verdict, listed_as
from grader.reports.results_json.results_contract import DownloadRecord
from grader.reports.results_json.results_file import download_record
from grader.results.class_files import previous_download
from grader.results.kept_scores import KnownScores


def results_now(assignment: Assignment, snapshot: Snapshot, known: KnownScores | None = None) -> list[Result]:
    """What the book's evidence and edits come to under the rubric as it is now, sorted by student.

    Args:
        known: Scores that need not be worked out again.
    """
    edits, known = edits_by_student(snapshot), known or KnownScores(assignment, "")
    compares = assignment.compares_attempts
    return [
        Result(
            evidence,
            known.of(
                evidence,
                snapshot.run(student_id),
                edits[student_id],
                snapshot.history(student_id, attempts=compares),
            ),
        )
        for student_id, evidence in snapshot.evidence.items()
    ]


def edits_by_student(snapshot: Snapshot) -> dict[str, list[Edit]]:
    """All that is about each student, oldest first."""
    by_student: dict[str, list[Edit]] = {student_id: [] for student_id in snapshot.evidence}
    for edit in snapshot.edits:
        # in the order in which they were made, whoever they are about
        for own in by_student.values() if edit.student_id is None else [by_student.get(edit.student_id, [])]:
            own.append(edit)
    return by_student


def told_results(assignment: Assignment, snapshot: Snapshot) -> list[Result]:
    """The results of the whole class, if they still are what the reports say.

    Raises:
        UsageError: The rubric changed since: the reports say something else.
    """
    results = results_now(assignment, snapshot)
    for result in results:
        told = snapshot.totals.get(result.score.student_id)
        now = Total.of(result.score)
        if told is not None and not told.says_the_same_as(now):
            raise UsageError(
                f"{told.student_id}: the report says another total than the rubric gives now. "
                "Run `grader regrade` first, then export."
            )
    return results


# --- owners ----------------------------------------------------------------------------------------------


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


# --- download accounts -----------------------------------------------------------------------------------


EARLIER_DOWNLOADS = "an earlier download"  # which a version graded that did not note what it was called


class _Text(BaseModel):
    """An account as the book holds it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    download: DownloadRecord
    uploads: list[str]


@dataclass(frozen=True)
class Account:
    """The account of one download.

    Attributes:
        uploads: `Origin.key` of all that are in it, or should be; empty in that of an older version.
    """

    download: DownloadRecord
    uploads: frozenset[str] = frozenset()

    @property
    def source(self) -> str:
        """What the download is called."""
        return self.download.source

    def is_outdated_by(self, later: "Account") -> bool:
        """Whether a later download holds all that is in this one: it is the same one, or a fuller one."""
        if self.source == later.source and not (self.uploads and later.uploads):
            return True
        if self.uploads:
            return self.uploads <= later.uploads
        files = {file.name for file in self.download.files}
        return bool(files) and files <= {file.name for file in later.download.files}

    def is_another_than(self, other: "Account") -> bool:
        """Whether it is another download, though it is called the same: it lacks uploads of the other."""
        return bool(self.uploads and other.uploads) and not other.uploads <= self.uploads

    def text(self) -> str:
        """The account as the book holds it."""
        made = _Text(download=self.download, uploads=sorted(self.uploads))
        return json.dumps(made.model_dump(mode="json"), ensure_ascii=False)

    @classmethod
    def of(cls, uploads: Uploads, source: str) -> "Account":
        """The account of what was uploaded.

        Args:
            source: What it is called.
        """
        record = download_record(Download(condensed(uploads.account), uploads.notes, source, uploads.lacking))
        return cls(record, uploads.keys)


def standing_accounts(book: Gradebook, out: Path) -> tuple[Account, ...]:
    """The accounts that count, oldest first: without those that a later one holds all of.

    Args:
        out: The results folder: what a version that kept no accounts wrote there counts as well.
    """
    found = [_account(text) for text in book.accounts().values()]
    if not found and (before := previous_download(out)) is not None:
        return (_of_an_older_version(before),)
    return _standing(found)


def standing_downloads(book: Gradebook, out: Path, snapshot: Snapshot) -> tuple[DownloadRecord, ...]:
    """The accounts that count as pages show them: with the ids that submissions have now."""
    return tuple(relabeled(one.download, snapshot) for one in standing_accounts(book, out))


def keep_account(book: Gradebook, out: Path, account: Account, *, who: str, when: datetime) -> Account:
    """Add an account to those that are there, under a name of its own.

    It has the list of the class that it comes with, else that of the account whose place it takes.

    Returns:
        The account as it was kept.
    """
    before = standing_accounts(book, out)
    if not book.accounts():
        for one in before:  # what an older version wrote is not lost
            book.add_account(one.source, one.text(), who=who, when=when)
    account = _under_its_own_name(account, before)
    if account.download.roster is None:
        lists = [one.download.roster for one in before if one.is_outdated_by(account)]
        known = next((roster for roster in reversed(lists) if roster is not None), None)
        account = replace(account, download=account.download.model_copy(update={"roster": known}))
    book.add_account(account.source, account.text(), who=who, when=when)
    return account


def _under_its_own_name(account: Account, others: Sequence[Account]) -> Account:
    """The account of a download that may be called as another one is: every LMS names all of its the same."""
    taken = {one.source: one for one in others}
    called, number = account.source, 1
    while called in taken and account.is_another_than(taken[called]):
        number += 1
        called = f"{account.source} ({number})"
    return replace(account, download=account.download.model_copy(update={"source": called}))


def _standing(accounts: Iterable[Account]) -> tuple[Account, ...]:
    standing: list[Account] = []
    for account in accounts:
        standing = [one for one in standing if not one.is_outdated_by(account)] + [account]
    return tuple(standing)


def _account(text: str) -> Account:
    made = _Text.model_validate_json(text)
    return Account(made.download, frozenset(made.uploads))


def _of_an_older_version(record: DownloadRecord) -> Account:
    return Account(record if record.source else record.model_copy(update={"source": EARLIER_DOWNLOADS}))
