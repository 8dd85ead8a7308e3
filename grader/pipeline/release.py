"""Results as students were told them: what may leave for another program."""

from collections.abc import Sequence

from grader.domain.assignment import Assignment
from grader.domain.errors import UsageError
from grader.domain.total import Total
from grader.gradebook import Snapshot
from grader.pipeline.result import Result
from grader.pipeline.revision import results_now
from grader.reporting.downloads import still_lacking, summed
from grader.reporting.exports.matching import candidates
from grader.reporting.results_contract import DownloadRecord
from grader.reporting.typesetting import counted


def require_nothing_lacking(results: Sequence[Result], downloads: Sequence[DownloadRecord]) -> None:
    """Refuse to let grades out while an LMS lists a submission that nobody has graded.

    Raises:
        UsageError: It does.
    """
    found = candidates((result.evidence, result.score) for result in results)
    lacking = still_lacking(summed(downloads), found)
    if lacking:
        lines = [f"  {one.student_id}: {one.told}" for one in lacking]
        verb = "is" if len(lacking) == 1 else "are"
        first = (
            f"{counted(len(lacking), 'submission')} that the LMS lists {verb} not in its download, so "
            "nothing was exported. Grade a fuller download, have the last word by `grader rule`, or leave "
            "them out by --partial."
        )
        raise UsageError("\n".join([first, *lines]))


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
