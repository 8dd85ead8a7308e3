"""`scores.csv`: one row per student, for a spreadsheet."""

import csv
import io
from collections.abc import Sequence

from grader.domain.assignment import Assignment
from grader.domain.evidence import Evidence
from grader.domain.formatting import points, printable
from grader.domain.score import Score
from grader.files.spreadsheet_cell import guarded


def scores_csv(assignment: Assignment, results: Sequence[tuple[Evidence, Score]]) -> str:
    """The table as CSV text, ordered by student id.

    Columns: `student_id, status, total, decided, awaiting`, then one per rubric item; where the assignment
    takes points off for lateness, then `days_late`, `penalty` and `total_after`. `decided` is the
    maximum of the decided items, `awaiting` the ids of those that a person still marks, with `;` between. A
    cell is empty when nobody knows the points yet or the total is withheld: never 0 for that.

    Args:
        assignment: For the items and their order.
        results: What was found and scored, in any order.

    Returns:
        Comma-separated text with `\\n` line ends and a header line.
    """
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    late = ["days_late", "penalty", "total_after"] if assignment.late.points_per_day is not None else []
    items = [item.id for item in assignment.rubric]
    writer.writerow(
        map(_cell, ["student_id", "status", "total", "decided", "awaiting", *items, *late]),
    )
    for _, score in sorted(results, key=lambda result: result[1].student_id):
        known = {line.id: line.points for line in score.lines}
        writer.writerow(
            [
                _cell(score.student_id),
                score.status.value,
                _number(score.total),
                _number(score.decided),
                _cell(";".join(score.awaiting)),
                *(_number(known.get(item)) for item in items),
                *(_lateness(score) if late else ()),
            ]
        )
    return buffer.getvalue()


def _lateness(score: Score) -> tuple[str, str, str]:
    if score.late is None:
        return "", "", _number(score.total)
    return _number(score.late.days), _number(score.late.penalty), _number(score.late.total_after)


def _cell(text: str) -> str:
    """The text, kept from being read as a formula."""
    return guarded(printable(text))


def _number(value: float | None) -> str:
    return "" if value is None else points(value)
