"""The marks that people still give, item by item: how many are open, and who has given the others."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from grader.domain.assignment import Assignment
from grader.domain.formatting import SPACE, listed, points
from grader.domain.score import Score, ScoreLine

FEW = 8  # students who are named: more are counted


@dataclass(frozen=True)
class OpenItem:
    """An item that a person marks and that is not marked for everybody.

    Attributes:
        students: For whom it is open, sorted.
        whole: How many submissions have it.
        markers: (who, how many they have marked), the busiest first.
    """

    title: str
    maximum: float
    students: tuple[str, ...]
    whole: int
    markers: tuple[tuple[str, int], ...]

    @property
    def text(self) -> str:
        """The item in a line."""
        told = (
            f"{self.title} ({points(self.maximum)}{SPACE}points): {len(self.students)} of {self.whole} open"
        )
        by = listed([f"{who} ({count})" for who, count in self.markers])
        return f"{told}; marked by {by}" if by else told

    @property
    def named(self) -> tuple[str, ...]:
        """The students, where they are few enough to be named, and not the whole class."""
        return self.students if len(self.students) <= min(FEW, self.whole - 1) else ()


def open_marks(assignment: Assignment, scores: Sequence[Score]) -> tuple[OpenItem, ...]:
    """The items that await people's marks, in the rubric's order.

    Args:
        scores: Of the class, sorted by student.
    """
    asked = [score for score in scores if score.gradable and not score.closed and not score.held]
    found = []
    for item in assignment.rubric:
        if not item.by_person:
            continue
        lines = [(score, line) for score in asked for line in score.lines if line.id == item.id]
        open_ones = tuple(score.student_id for score, line in lines if line.id in score.awaiting)
        if open_ones:
            tally = Counter(who for _, line in lines for who in _markers(line))
            busiest = sorted(tally.items(), key=lambda pair: (-pair[1], pair[0]))
            found.append(OpenItem(item.title, item.points, open_ones, len(lines), tuple(busiest)))
    return tuple(found)


def _markers(line: ScoreLine) -> set[str]:
    """Whose marks stand in a line, or in its parts."""
    last = {edit.part: edit for edit in line.edits}
    return {edit.who for edit in last.values() if edit.new is not None}
