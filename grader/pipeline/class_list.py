"""The list of the class for a run: the one that is given, that lies in the download, or of a run before."""

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path, PurePosixPath

from grader.domain.errors import UsageError
from grader.domain.submission import Fate
from grader.intake import Uploads
from grader.reporting.results_contract import DownloadRecord
from grader.reporting.roster import Roster, attended, read_roster, roster_record


def enclosed_list(uploads: Uploads, folder: Path) -> tuple[Uploads, Roster | None]:
    """An LMS's list that lies beside the submissions, and the uploads with that file accounted for.

    Args:
        folder: Where the download lies, unpacked.
    """
    for line in uploads.account:
        path = folder / line.name
        if line.fate is not Fate.REFUSED or line.student_id or path.suffix.lower() != ".csv":
            continue
        try:
            roster = read_roster(path)
        except UsageError:  # some other file, which is accounted for as it is
            continue
        if not roster.own:
            continue
        name = PurePosixPath(line.name).name
        reason = f"{name}: was read: it is the list of the class."
        account = tuple(
            replace(one, fate=Fate.MATCHED, reason=reason) if one is line else one for one in uploads.account
        )
        unmatched = tuple(one for one in uploads.unmatched if one.name != line.name)
        return replace(uploads, account=account, unmatched=unmatched), roster
    return uploads, None


def with_list(
    download: DownloadRecord,
    roster: Roster | None,
    before: DownloadRecord | None,
    student_ids: Collection[str],
) -> DownloadRecord:
    """The account with the list of the class, and who of it handed in nothing.

    Args:
        roster: The list that was given or found; None: the one of the run before counts.
        before: The account of the run before.
        student_ids: Those with a result.
    """
    known = roster_record(roster, student_ids) if roster else before.roster if before else None
    made = attended(download.model_copy(update={"roster": known}), student_ids)
    assert made is not None, "an account was given"
    return made
