"""Marks that would take from students what was released: only the rows that do so are refused."""

from collections.abc import Sequence
from dataclasses import dataclass

from grader.domain.assignment import Assignment
from grader.domain.edit import Edit
from grader.domain.result import Result
from grader.domain.total import Total
from grader.gradebook import Snapshot
from grader.results.revision import Change
from grader.scoring import score

Row = tuple[str, Sequence[Edit]]
"""(where the row stands, its edits: several where a team is marked)."""


@dataclass(frozen=True)
class LoweringRow:
    """A row that would lower what was released.

    Attributes:
        place: Where it stands.
        changes: Whose grade it would lower, and to what.
    """

    place: str
    changes: tuple[Change, ...]


def lowering_rows(
    assignment: Assignment, snapshot: Snapshot, results: Sequence[Result], rows: Sequence[Row]
) -> list[LoweringRow]:
    """The rows that would lower a released grade, for those whose rows together do so.

    Args:
        snapshot: The state of the book, and `results` what it comes to.
        rows: New marks, which are to be taken together.
    """
    released = {one.score.student_id: one for one in results if one.score.released is not None}
    own: dict[str, list[Row]] = {}
    for place, edits in rows:
        for edit in edits:
            if edit.student_id in released:
                own.setdefault(edit.student_id, []).append((place, [edit]))
    found: dict[str, list[Change]] = {}
    for student_id, marks in own.items():
        for place, change in _lowered(assignment, snapshot, released[student_id], marks):
            found.setdefault(place, []).append(change)
    places = dict.fromkeys(place for place, _ in rows if place in found)
    return [LoweringRow(place, tuple(found[place])) for place in places]


def _lowered(
    assignment: Assignment, snapshot: Snapshot, result: Result, marks: Sequence[Row]
) -> list[tuple[str, Change]]:
    """The marks of one student that lower the grade, each taken by itself; none where all together do not."""
    student_id = result.score.student_id
    earlier = [edit for edit in snapshot.edits if edit.student_id in (None, student_id)]

    def change(rows: Sequence[Row]) -> Change:
        edits = [*earlier, *(one for _, new in rows for one in new)]
        after = score(assignment, result.evidence, edits=edits)
        return Change(Total.of(result.score), Total.of(after), result.score.released)

    if not change(marks).lowers:
        return []
    alone = [(place, change([(place, new)])) for place, new in marks]
    return [(place, one) for place, one in alone if one.is_less]
