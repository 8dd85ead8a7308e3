"""Results as students were told them: what may leave for another program."""

from grader.domain.assignment import Assignment
from grader.domain.errors import UsageError
from grader.domain.total import Total
from grader.gradebook import Snapshot
from grader.pipeline.result import Result
from grader.pipeline.revision import results_now


def told_results(assignment: Assignment, snapshot: Snapshot) -> list[Result]:
    """The results of the whole class, if they still are what the reports say.

    Raises:
        UsageError: The rubric changed since: the reports say something else.
    """
    results = results_now(assignment, snapshot)
    for result in results:
        told = snapshot.totals.get(result.score.student_id)
        now = Total.of(result.score, who="", when=result.evidence.graded_at, cause="")
        if told is not None and not told.says_the_same_as(now):
            raise UsageError(
                f"{told.student_id}: the report says another total than the rubric gives now. "
                "Run `grader regrade` first, then export."
            )
    return results
