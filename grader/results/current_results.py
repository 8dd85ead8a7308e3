"""The class's results, as the gradebook's evidence and edits give them under the rubric as it is now."""

from grader.domain.assignment import Assignment
from grader.domain.edit import Edit
from grader.domain.errors import UsageError
from grader.domain.result import Result
from grader.domain.total import Total
from grader.gradebook import Snapshot
from grader.results.kept_scores import KnownScores


def results_now(assignment: Assignment, snapshot: Snapshot, known: KnownScores | None = None) -> list[Result]:
    """What the book's evidence and edits come to under the rubric as it is now, sorted by student.

    Args:
        known: Scores that need not be worked out again.
    """
    edits, known = edits_by_student(snapshot), known or KnownScores(assignment, "")
    return [
        Result(evidence, known.of(evidence, snapshot.run(student_id), edits[student_id]))
        for student_id, evidence in snapshot.evidence.items()
    ]


def edits_by_student(snapshot: Snapshot) -> dict[str, list[Edit]]:
    """All that is about each student, oldest first."""
    by_student: dict[str, list[Edit]] = {student_id: [] for student_id in snapshot.evidence}
    for edit in snapshot.edits:
        # in the order in which they were made, whoever they are about
        for own in by_student.values() if edit.student_id is None else [by_student.get(edit.student_id, [])]:
            own.append(edit)
    return by_student


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
