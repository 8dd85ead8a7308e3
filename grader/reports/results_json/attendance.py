"""The list of the class in results.json: who is on it and handed in nothing, and who is not on it."""

from collections.abc import Collection, Iterable

from grader.domain.formatting import printable
from grader.lms.matching import Candidate, matching
from grader.lms.roster import Roster
from grader.reports.results_json.results_contract import DownloadRecord, RosterRecord


def roster_record(roster: Roster, results: Collection[Candidate]) -> RosterRecord:
    """Who is on the list, under the ids that results have where there are results.

    Args:
        results: Of the class.
    """
    match = matching(roster.table, list(roster.rows), roster.who, roster.number, results)
    listed = {one.student_id for one in results if not one.held} - set(match.absent)
    listed |= {roster.rows[row] for row in (*match.unknown, *match.held)}
    # a number that is no student's is a team's, and of its members the LMS has no upload
    numbers = roster.directory().students
    teams = roster.number is not None and any(
        one.number_in(roster.number.lms) not in ("", *numbers) for one in results
    )
    return RosterRecord(
        source=printable(roster.table.name),
        students=sorted(listed),
        submitted=[] if teams else sorted(roster.surely_submitted(match.unknown)),
        missing=[],
        unlisted=[],
        notes=[printable(f"{doubt}.") for doubt in match.doubts.values()],
    )


def attended(
    download: DownloadRecord | None,
    found: Iterable[Candidate],
    whole: DownloadRecord | None = None,
) -> DownloadRecord | None:
    """The account with who of the list handed in nothing, and who handed in and is not on it.

    Whoever has a file in the download handed something in, also without a result; and so may have everybody
    whose id is on a submission of which nobody knows whose it is.

    Args:
        found: The results of the class.
        whole: The account of all downloads, where this is one of several.
    """
    if download is None or download.roster is None:
        return download
    whole = whole or download
    rosters = [one for one in (download.roster, whole.roster) if one is not None]
    everybody = list(found)
    results = [one.student_id for one in everybody if not one.held]
    there = {one.casefold() for one in results}
    there |= {one.origin.carries.casefold() for one in everybody if one.held}
    there |= {file.student_id.casefold() for file in whole.files if file.student_id}
    listed = {one.casefold() for roster in rosters for one in roster.students}
    roster = download.roster.model_copy(
        update={
            "missing": [one for one in download.roster.students if one.casefold() not in there],
            "unlisted": sorted(one for one in results if one.casefold() not in listed),
        }
    )
    return download.model_copy(update={"roster": roster})
