"""When submissions were due and came, as people decide it after they were graded."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from grader.domain.assignment import Assignment
from grader.domain.edit import Edit, EditKind
from grader.domain.errors import UsageError
from grader.pipeline.result import Result
from grader.reporting.typesetting import points
from grader.scoring import score


def extension_edits(
    results: Sequence[Result], deadlines: Mapping[str, datetime], *, who: str, when: datetime, why: str
) -> list[Edit]:
    """The edits that give students deadlines of their own, without those whose deadline is that already.

    Args:
        deadlines: By student; those without a result are left out.
    """
    edits = []
    for result in results:
        student_id, late = result.score.student_id, result.score.late
        wanted = deadlines.get(student_id)
        if wanted is not None and (late is None or not late.extended or late.due != wanted):
            edits.append(Edit(EditKind.EXTENSION, who, when, why, student_id, value=wanted.timestamp()))
    return edits


def require_no_larger_penalty(
    assignment: Assignment, results: Sequence[Result], edits: Sequence[Edit], new: Sequence[Edit]
) -> None:
    """Refuse decisions that take more points off for lateness than before.

    Args:
        results: As they are now.
        edits: What people decided so far, oldest first.
        new: What they decide now.

    Raises:
        UsageError: They would.
    """
    fallen = []
    about = {edit.student_id for edit in new}
    for result in results:
        before = result.score.late.total_after if result.score.late else result.score.total
        if result.score.student_id not in about or before is None:
            continue
        late = score(assignment, result.evidence, edits=(*edits, *new)).late
        after = late.total_after if late else before
        if after is None or after < before:
            fallen.append(f"  {result.score.student_id}: {points(before)} -> {points(after)}")
    if fallen:
        first = "More points would be taken off. Nothing was changed. If that is meant, add --allow-lower."
        raise UsageError("\n".join([first, *fallen]))
