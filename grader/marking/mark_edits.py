"""Adds marks to the gradebook with the totals that follow from them, in one transaction.

It does for a few students what `grader.results.revision` does for a class: the same scores, the same refusal
to lower a released grade, the same records. It writes no pages.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from grader.domain.assignment import Assignment
from grader.domain.edit import Marked
from grader.domain.errors import UsageError
from grader.domain.formatting import points
from grader.domain.score import Total
from grader.gradebook import MarkingRecords, Snapshot
from grader.gradebook.row_records import NumberedMark
from grader.gradebook.task_records import Basis
from grader.marking.desk import note_mark
from grader.results.current_state import results_now
from grader.results.revision import Change


class WouldLower(UsageError):
    """Grades that were released would fall. Nothing was saved.

    Attributes:
        changes: Not for blind pages.
    """

    def __init__(self, changes: Sequence[Change]) -> None:
        self.changes = tuple(changes)
        falls = [f"{points(change.before_grade)} -> {points(change.after_grade)}" for change in changes]
        super().__init__(
            f"A grade that was released would fall ({', '.join(falls)}). Nothing was saved. "
            "Allow that, or choose other points."
        )


@dataclass(frozen=True)
class AddedMarks:
    """Marks that were added.

    Attributes:
        numbers: Of their records, in the order of the edits.
        changes: The totals that changed.
    """

    numbers: tuple[int, ...]
    changes: tuple[Change, ...]


def snapshot_of(records: MarkingRecords, assignment: Assignment, rows: Collection[str]) -> Snapshot:
    """What the scores of these rows depend on."""
    return records.rows.snapshot(rows, attempts=assignment.compares_attempts)


def changes_by(
    assignment: Assignment, snapshot: Snapshot, edits: Sequence[Marked], *, who: str, now: datetime
) -> list[Change]:
    """The totals of a snapshot's students before and after further marks."""
    after = results_now(assignment, replace(snapshot, edits=(*snapshot.edits, *edits)))
    return [
        Change(
            snapshot.totals.get(result.score.student_id),
            Total.of(result.score, who=who, when=now, cause="marks set"),
            result.score.released,
        )
        for result in after
    ]


def add_marks(
    records: MarkingRecords,
    assignment: Assignment,
    snapshot: Snapshot,
    edits: Sequence[Marked],
    *,
    who: str,
    now: datetime,
    allow_lower: bool,
) -> AddedMarks:
    """Add marks, the totals that follow, and note them in the list of tasks.

    Args:
        records: In a transaction that may write grades.
        snapshot: Of all whom the edits concern, read in the same transaction.

    Raises:
        WouldLower: A grade that was released would fall, and it is not allowed.
    """
    changes = changes_by(assignment, snapshot, edits, who=who, now=now)
    lowering = [change for change in changes if change.lowers]
    if lowering and not allow_lower:
        raise WouldLower(lowering)
    moved = [change for change in changes if change.moves or change.uses_other_tokens]
    numbers = records.rows.add(edits, [change.after for change in moved])
    maxima = assignment.mark_targets()
    for number, edit in zip(numbers, edits, strict=True):
        row = snapshot.ids_now.row_of(edit.student_id or "")
        note_mark(records, NumberedMark(number, replace(edit, student_id=row)), maxima[edit.target])
    basis = records.tasks.basis()
    if basis is not None:
        records.tasks.set_basis(Basis(*records.rows.last(), basis.targets))
    return AddedMarks(tuple(numbers), tuple(change for change in changes if change.moves))
