"""The accounts of the downloads that were graded into one results folder: each is kept, in the book."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from grader.domain.submission import Download
from grader.gradebook import Gradebook, Snapshot
from grader.intake import Uploads
from grader.intake.file_ledger import condensed
from grader.reports.results_json.results_contract import DownloadRecord
from grader.reports.results_json.results_file import download_record
from grader.results.class_files import previous_download
from grader.results.owners import relabeled

EARLIER = "an earlier download"  # which a version graded that did not note what it was called


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
    return Account(record if record.source else record.model_copy(update={"source": EARLIER}))
