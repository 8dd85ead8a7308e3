"""What a gradebook holds of one student: decisions, attempts and totals, under the student's current id.

Each function reads within the caller's transaction, and is told under which ids the rows are listed. It never
decides what counts.
"""

from dataclasses import dataclass, replace

from sqlalchemy import Connection

from grader.domain.edit import Edit, Released
from grader.domain.score import Total
from grader.domain.submission_result import NO_HISTORY, History
from grader.gradebook.attempts import attempts_of
from grader.gradebook.snapshot import with_student_id
from grader.gradebook.statements import CurrentIds, edits_of, late_days_of, totals_of


@dataclass(frozen=True)
class StudentRecords:
    """What was recorded of a student up to some moment.

    Attributes:
        edits: About the student and about the whole class, oldest first.
        history: What else the student's score depends on.
        totals: Oldest first.
    """

    edits: tuple[Edit, ...] = ()
    history: History = NO_HISTORY
    totals: tuple[Total, ...] = ()


def edits_about(
    connection: Connection, assignment_id: str, ids_now: CurrentIds, student_id: str
) -> tuple[Edit, ...]:
    """The edits about the student's row and about the whole class, and the releases to this person."""
    row = ids_now.row_of(student_id)
    return tuple(
        edit if edit.student_id is None else replace(edit, student_id=student_id)
        for edit in edits_of(connection, assignment_id, (row, student_id))
        if edit.student_id in (None, student_id if isinstance(edit, Released) else row)
    )


def history_of(
    connection: Connection, assignment_id: str, ids_now: CurrentIds, student_id: str, *, attempts: bool
) -> History:
    """What else the student's score depends on.

    Args:
        attempts: Whether the student's attempts are compared; else they are not read.

    Raises:
        UsageError: A record is damaged.
    """
    row = ids_now.row_of(student_id)
    student_attempts = attempts_of(connection, assignment_id, row, least=1).get(row, ()) if attempts else ()
    late_days = late_days_of(connection, assignment_id).get(student_id, {})
    return History(
        tuple(
            replace(attempt, evidence=with_student_id(attempt.evidence, student_id))
            for attempt in student_attempts
        ),
        tuple(sorted(late_days.items())),
    )


def totals_about(
    connection: Connection, assignment_id: str, ids_now: CurrentIds, student_id: str
) -> tuple[Total, ...]:
    """The student's recorded totals, oldest first."""
    row_totals = totals_of(connection, assignment_id, ids_now.row_of(student_id))
    return tuple(with_student_id(total, student_id) for total in row_totals)
