"""When submissions were due and came, as people decide it after they were graded."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from grader.domain.edit import Edit, EditKind
from grader.domain.result import Result


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
