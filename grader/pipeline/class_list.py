"""The list of the class for a run: the one that is given, that lies in the download, or of a run before."""

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from grader.domain.errors import UsageError
from grader.intake.ownership import Directory
from grader.reporting.exports.matching import Candidate
from grader.reporting.results_contract import DownloadRecord
from grader.reporting.roster import Roster, attended, read_roster, roster_record


@dataclass
class ClassList:
    """The list of the class as far as it is known.

    Attributes:
        given: The one that the operator gave.
        enclosed: One of an LMS that lies in the download.
    """

    given: Roster | None = None
    enclosed: Roster | None = None

    @property
    def roster(self) -> Roster | None:
        """The list that counts."""
        return self.given or self.enclosed

    def directory(self) -> Directory:
        """What the list that was given says of an LMS's own numbers."""
        return self.given.directory() if self.given is not None else Directory()

    def read(self, path: Path) -> Directory | None:
        """What a table of the download says of them; None where it is no LMS's list."""
        try:
            roster = read_roster(path)
        except UsageError:  # some other file, which is accounted for as it is
            return None
        if not roster.own:
            return None
        self.enclosed = roster
        return roster.directory()


def with_list(
    download: DownloadRecord,
    roster: Roster | None,
    before: DownloadRecord | None,
    results: Collection[Candidate],
) -> DownloadRecord:
    """The account with the list of the class, and who of it handed in nothing.

    Args:
        roster: The list that was given or found; None: the one of the run before counts.
        before: The account of the run before.
        results: Of the class.
    """
    known = roster_record(roster, results) if roster else before.roster if before else None
    made = attended(download.model_copy(update={"roster": known}), results)
    assert made is not None, "an account was given"
    return made
