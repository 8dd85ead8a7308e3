"""The accounts of several downloads, taken together."""

from collections.abc import Iterable, Sequence

from grader.domain.formatting import listed
from grader.lms.matching import Candidate
from grader.reports.results_json.results_contract import DownloadRecord, LackingRecord, RosterRecord


def summed(downloads: Sequence[DownloadRecord]) -> DownloadRecord | None:
    """All accounts in one, in which every file and sentence says which download it is of.

    Where there is one, it is that one.
    """
    if len(downloads) < 2:
        return next(iter(downloads), None)
    return DownloadRecord(
        source=listed([one.source for one in downloads], 9),
        matched=sum(one.matched for one in downloads),
        superseded=sum(one.superseded for one in downloads),
        refused=sum(one.refused for one in downloads),
        files=[file.model_copy(update={"source": one.source}) for one in downloads for file in one.files],
        notes=[f"{one.source}: {note}" for one in downloads for note in one.notes],
        lacking=[
            lacking.model_copy(update={"source": one.source}) for one in downloads for lacking in one.lacking
        ],
        roster=_whole_list([one.roster for one in downloads if one.roster is not None]),
    )


def still_lacking(download: DownloadRecord | None, results: Iterable[Candidate]) -> tuple[LackingRecord, ...]:
    """What the LMS lists and its downloads lack, one for each student of whom there is no result.

    Args:
        download: The account of all downloads.
        results: Of the class.
    """
    if download is None:
        return ()
    everybody = list(results)
    there = {one.student_id.casefold() for one in everybody if not one.held}
    listed = list(download.lacking)
    if (roster := download.roster) is not None:
        # whose upload or file is there is asked about as such
        seen = {one.origin.carries.casefold() for one in everybody if one.held}
        seen |= {file.student_id.casefold() for file in download.files if file.student_id}
        listed += [
            LackingRecord(student_id=student_id, lms="", upload="", source=roster.source)
            for student_id in roster.submitted
            if student_id.casefold() not in seen
        ]
    found: dict[str, LackingRecord] = {}
    for one in listed:
        if one.student_id.casefold() not in there:
            found.setdefault(one.student_id.casefold(), one)
    return tuple(found.values())


def _whole_list(rosters: Sequence[RosterRecord]) -> RosterRecord | None:
    """The list of a class that several lists make. Of lists with one name the last counts."""
    lists = {one.source: one for one in rosters}
    if len(lists) < 2:
        return next(iter(lists.values()), None)
    students: dict[str, str] = {}
    for one in lists.values():
        for student_id in one.students:
            students.setdefault(student_id.casefold(), student_id)
    return RosterRecord(
        source=listed(list(lists), 9),
        students=sorted(students.values()),
        submitted=sorted({student_id for one in lists.values() for student_id in one.submitted}),
        missing=[],
        unlisted=[],
        notes=[note for one in lists.values() for note in one.notes],
    )
