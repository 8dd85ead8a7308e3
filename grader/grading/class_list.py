"""The list of the class for a run: the one that is given, that lies in the download, or of a run before."""

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from grader.domain.errors import UsageError
from grader.lms.directory import Directory
from grader.lms.matching import Candidate
from grader.lms.roster import Roster, read_roster
from grader.reports.results_json.attendance import roster_record
from grader.reports.results_json.results_contract import DownloadRecord


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
    download: DownloadRecord, roster: Roster | None, results: Collection[Candidate]
) -> DownloadRecord:
    """The account of a download with the list of the class.

    Args:
        roster: The list that was given or found; None: there is none.
        results: Of the class.
    """
    known = roster_record(roster, results) if roster else None
    return download.model_copy(update={"roster": known})
