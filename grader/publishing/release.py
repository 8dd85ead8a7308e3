"""Results as students were told them: what may leave for another program."""

from collections.abc import Sequence

from grader.domain.errors import UsageError
from grader.domain.formatting import counted
from grader.domain.result import Result
from grader.lms.matching import candidates
from grader.reports.results_json.results_contract import DownloadRecord
from grader.reports.whole_class.download_summary import still_lacking, summed


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
