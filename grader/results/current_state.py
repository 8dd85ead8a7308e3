"""The current state of a class in the gradebook: results, owners of uploads, and what became of downloads.

It computes the results from evidence and edits under the current rubric. It also gives the uploads that the
gradebook records, changes of their owners, and the account of each download that was graded into one results
folder: what became of its files. It never writes pages, and it never decides whose an upload is:
`grader.intake` and people do.
"""

import contextlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from grader.domain.assignment import Assignment
from grader.domain.edit import Edit, OwnerAssigned
from grader.domain.errors import UsageError
from grader.domain.score import Total
from grader.domain.submission import Download, Origin, RecordedUpload
from grader.domain.submission_result import Result
from grader.files.file_names import ATTENTION_PAGE, STUDENT_FILES
from grader.gradebook import Gradebook, Snapshot
from grader.intake import Uploads
from grader.intake.downloaded_files import condensed
from grader.intake.ownership import EARLIER, Verdict, provisional_id
from grader.reports.results_json.results_file import download_record
from grader.reports.results_json.results_schema import DownloadRecord
from grader.results.class_files import previous_download
from grader.results.kept_scores import KeptScores, kept_scores
from grader.scoring import line_points, score


def results_now(assignment: Assignment, snapshot: Snapshot, kept: KeptScores | None = None) -> list[Result]:
    """The results of the gradebook's evidence and edits under the current rubric, sorted by student.

    Args:
        kept: Scores that need not be computed again.
    """
    edits, kept = edits_by_student(snapshot), kept or KeptScores(assignment, "")
    compares = assignment.compares_attempts
    return [
        Result(
            evidence,
            kept.of(
                evidence,
                snapshot.run(student_id),
                edits[student_id],
                snapshot.history(student_id, attempts=compares),
            ),
        )
        for student_id, evidence in snapshot.evidence.items()
    ]


def points_with(
    assignment: Assignment, snapshot: Snapshot, student_id: str, new: Sequence[Edit]
) -> dict[str, float | None]:
    """The points of a student's lines and their parts after new edits; None for open lines.

    They may differ from those of a mark, as where a resubmission wins back a share of the points.
    """
    edits = [edit for edit in (*snapshot.edits, *new) if edit.student_id in (None, student_id)]
    history = snapshot.history(student_id, attempts=assignment.compares_attempts)
    return dict(line_points(score(assignment, snapshot.evidence[student_id], edits=edits, history=history)))


def current_results(assignment: Assignment, book: Gradebook, out: Path) -> tuple[Snapshot, list[Result]]:
    """The gradebook's state, and the results that follow from it, by kept scores as far as there are some.

    Args:
        out: The folder of the results.

    Raises:
        UsageError: The gradebook cannot be used.
    """
    snapshot = book.snapshot(attempts=assignment.compares_attempts)
    return snapshot, results_now(
        assignment, snapshot, KeptScores(assignment, book.identity(), kept_scores(out))
    )


def edits_by_student(snapshot: Snapshot) -> dict[str, list[Edit]]:
    """Student -> all edits about the student, oldest first."""
    by_student: dict[str, list[Edit]] = {student_id: [] for student_id in snapshot.evidence}
    for edit in snapshot.edits:
        # in the order in which they were made, whether about one student or all
        for student_edits in (
            by_student.values() if edit.student_id is None else [by_student.get(edit.student_id, [])]
        ):
            student_edits.append(edit)
    return by_student


def reported_results(assignment: Assignment, snapshot: Snapshot) -> list[Result]:
    """The results of the whole class, if they still equal those in the reports.

    Raises:
        UsageError: The rubric has changed since: the reports differ.
    """
    results = results_now(assignment, snapshot)
    for result in results:
        shown_total = snapshot.totals.get(result.score.student_id)
        now = Total.of(result.score)
        if shown_total is not None and not shown_total.says_the_same_as(now):
            raise UsageError(
                f"{shown_total.student_id}: the report shows a different total from the one that the "
                "rubric gives now. Run `grader regrade` first, then export."
            )
    return results


# --- owners ----------------------------------------------------------------------------------------------


def recorded_uploads(book: Gradebook) -> tuple[RecordedUpload, ...]:
    """The uploads that a gradebook has results of."""
    return _with_origins(book.uploads())


def uploads_of(out: Path, url: str | None, assignment_id: str) -> tuple[RecordedUpload, ...]:
    """The uploads that the gradebook of a results folder has results of; none if there is no gradebook."""
    with Gradebook(out, url, assignment_id=assignment_id) as book:
        return recorded_uploads(book) if assignment_id in book.assignments() else ()


def snapshot_uploads(snapshot: Snapshot) -> tuple[RecordedUpload, ...]:
    """The uploads of a state of the gradebook; those of earlier versions get a substitute origin."""
    return _with_origins(snapshot.uploads())


def _with_origins(uploads: Iterable[RecordedUpload]) -> tuple[RecordedUpload, ...]:
    return tuple(
        upload if upload.origin.key else replace(upload, origin=_substitute_origin(upload))
        for upload in uploads
    )


def _substitute_origin(upload: RecordedUpload) -> Origin:
    """The substitute origin of an upload for which an earlier version recorded only a result."""
    key = f"{EARLIER}{upload.row}"
    return Origin(key, upload.row, provisional_id(key, "", "", upload.row), carries=upload.row)


def owner_edits(moved: Iterable[Verdict], *, who: str, when: datetime) -> list[OwnerAssigned]:
    """The verdicts that give recorded uploads another id, as edits about the gradebook's rows."""
    return [
        OwnerAssigned(
            who=who,
            when=when,
            why=verdict.held_because or _reason(verdict),
            student_id=verdict.before.row,
            listed_as=verdict.student_id,
            by_person=False,
            held=bool(verdict.held_because),
        )
        for verdict in moved
        if verdict.before is not None
    ]


def _reason(verdict: Verdict) -> str:
    """What shows whose an upload is, as a sentence."""
    if verdict.origin.known_id:
        return "The LMS says whose it is."
    if verdict.student_id == verdict.origin.listed_as:
        return "Nothing shows whose it is."
    return "The names of its files say whose it is."


def with_current_ids(download: DownloadRecord, snapshot: Snapshot) -> DownloadRecord:
    """The account of a download with the current ids of submissions."""
    current_ids = snapshot.changed_ids()
    files = [
        file.model_copy(update={"student_id": current_ids[file.student_id]})
        if file.student_id in current_ids
        else file
        for file in download.files
    ]
    return download.model_copy(update={"files": files})


def remove_moved_pages(out: Path, snapshot: Snapshot) -> None:
    """Remove the pages under ids that nobody has any more."""
    for student_id in snapshot.changed_ids():
        folder = out / "students" / student_id
        for name in (*STUDENT_FILES, ATTENTION_PAGE):
            (folder / name).unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # it does not exist, or it holds other files
            folder.rmdir()


# --- download accounts -----------------------------------------------------------------------------------


EARLIER_DOWNLOADS = "an earlier download"  # graded by a version that did not note its name


class _StoredAccount(BaseModel):
    """An account as the gradebook stores it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    download: DownloadRecord
    uploads: list[str]


@dataclass(frozen=True)
class DownloadAccount:
    """The account of one download: what became of each of its files.

    Attributes:
        uploads: `Origin.key` of all uploads that are in it, or should be; empty in older versions' accounts.
    """

    download: DownloadRecord
    uploads: frozenset[str] = frozenset()

    @property
    def source(self) -> str:
        """The name of the download."""
        return self.download.source

    def is_contained_in(self, later: "DownloadAccount") -> bool:
        """Whether a later download holds everything in this one: it is the same one, or a fuller one."""
        if self.source == later.source and not (self.uploads and later.uploads):
            return True
        if self.uploads:
            return self.uploads <= later.uploads
        files = {file.name for file in self.download.files}
        return bool(files) and files <= {file.name for file in later.download.files}

    def is_distinct_from(self, other: "DownloadAccount") -> bool:
        """Whether it is another download, even with the same name: it lacks uploads of the other."""
        return bool(self.uploads and other.uploads) and not other.uploads <= self.uploads

    def text(self) -> str:
        """The account as the gradebook stores it."""
        document = _StoredAccount(download=self.download, uploads=sorted(self.uploads))
        return json.dumps(document.model_dump(mode="json"), ensure_ascii=False)

    @classmethod
    def of(cls, uploads: Uploads, source: str) -> "DownloadAccount":
        """The account of an upload.

        Args:
            source: The name of the download.
        """
        record = download_record(Download(condensed(uploads.account), uploads.notes, source, uploads.lacking))
        return cls(record, uploads.keys)


def current_accounts(book: Gradebook, out: Path) -> tuple[DownloadAccount, ...]:
    """The accounts that count, oldest first, without those that a later one contains completely.

    Args:
        out: The results folder. If the gradebook has no account, as in early versions, the one in
            `results.json` counts.
    """
    accounts = [_account(text) for text in book.download_accounts().values()]
    if not accounts and (before := previous_download(out)) is not None:
        return (_of_an_older_version(before),)
    return _without_contained(accounts)


def current_downloads(book: Gradebook, out: Path, snapshot: Snapshot) -> tuple[DownloadRecord, ...]:
    """The accounts that count, with the current ids of submissions, as pages show them."""
    return tuple(with_current_ids(account.download, snapshot) for account in current_accounts(book, out))


def keep_download_account(
    book: Gradebook, out: Path, account: DownloadAccount, *, who: str, when: datetime
) -> DownloadAccount:
    """Add an account to the existing ones, under a unique name.

    It has its own class list, or else that of the account that it replaces.

    Returns:
        The account as it was kept.
    """
    before = current_accounts(book, out)
    if not book.download_accounts():
        for earlier in before:  # so that an older version's account is not lost
            book.add_download_account(earlier.source, earlier.text(), who=who, when=when)
    account = _under_its_own_name(account, before)
    if account.download.roster is None:
        lists = [earlier.download.roster for earlier in before if earlier.is_contained_in(account)]
        roster_before = next((roster for roster in reversed(lists) if roster is not None), None)
        account = replace(account, download=account.download.model_copy(update={"roster": roster_before}))
    book.add_download_account(account.source, account.text(), who=who, when=when)
    return account


def _under_its_own_name(account: DownloadAccount, others: Sequence[DownloadAccount]) -> DownloadAccount:
    """The account under a unique name: an LMS may give all its downloads the same name."""
    account_by_name = {other.source: other for other in others}
    name, number = account.source, 1
    while name in account_by_name and account.is_distinct_from(account_by_name[name]):
        number += 1
        name = f"{account.source} ({number})"
    return replace(account, download=account.download.model_copy(update={"source": name}))


def _without_contained(accounts: Iterable[DownloadAccount]) -> tuple[DownloadAccount, ...]:
    current: list[DownloadAccount] = []
    for account in accounts:
        current = [earlier for earlier in current if not earlier.is_contained_in(account)] + [account]
    return tuple(current)


def _account(text: str) -> DownloadAccount:
    document = _StoredAccount.model_validate_json(text)
    return DownloadAccount(document.download, frozenset(document.uploads))


def _of_an_older_version(record: DownloadRecord) -> DownloadAccount:
    return DownloadAccount(
        record if record.source else record.model_copy(update={"source": EARLIER_DOWNLOADS})
    )
