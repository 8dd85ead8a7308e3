"""A total as it was told, with what it was made of."""

from dataclasses import dataclass
from datetime import datetime
from typing import Self

from grader.domain.score import Score


@dataclass(frozen=True)
class Total:
    """What one student's total was from a moment on.

    Attributes:
        points: None when there was none: refused, withheld, or an engine error.
        decided: The maximum of the items that were decided.
        awaiting: The maximum of the items that a person still had to mark.
        status: `graded`, `incomplete`, `refused` or `engine_error`.
        who: Who ran the command that it came from.
        cause: The command, in words: `grade`, `regrade`, `waive attention_scale`.
        final: The points after what lateness costs; None where there are none, or nobody knows what it costs.
    """

    student_id: str
    points: float | None
    decided: float
    awaiting: float
    maximum: float
    status: str
    who: str
    when: datetime
    cause: str
    final: float | None = None

    @classmethod
    def of(cls, score: Score, *, who: str, when: datetime, cause: str) -> Self:
        """The total of a score as it is told now."""
        return cls(
            student_id=score.student_id,
            points=score.total,
            decided=score.decided,
            awaiting=score.open_points,
            maximum=score.maximum,
            status=score.status.value,
            who=who,
            when=when,
            cause=cause,
            final=score.final,
        )

    def falls_from(self, before: "Total | None") -> bool:
        """Whether the student had more before, or had a total at all."""
        if before is None or before.points is None:
            return False
        return self.points is None or self.points < before.points

    def says_the_same_as(self, other: "Total") -> bool:
        """Whether a reader would see no difference."""
        return self._told() == other._told()

    def _told(self) -> tuple[object, ...]:
        return self.student_id, self.points, self.decided, self.awaiting, self.maximum, self.status
