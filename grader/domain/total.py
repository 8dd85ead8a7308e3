"""A total as it was told, with what it was made of."""

from dataclasses import dataclass
from datetime import datetime
from typing import Self

from grader.domain.formatting import points
from grader.domain.score import GradeStatus, Release, Score, rounded


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
        lateness: How the submission came, as `LateRecord.state` says it, `none` where there is no deadline;
            None in records of older versions, which tell nothing of lateness: `final` is None there, too.
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
    lateness: str | None = None

    @classmethod
    def of(cls, score: Score, *, who: str = "", when: datetime = datetime.min, cause: str = "") -> Self:
        """The total of a score as it is told now; of one that is only compared, nobody needs to know more."""
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
            lateness=score.late.state if score.late is not None else "none",
        )

    def falls_from(self, before: "Total | None") -> bool:
        """Whether the student had more before, before or after what lateness costs, or had a total at all."""
        if before is None:
            return False
        return is_less(self.points, before.points) or (
            self.lateness is not None and is_less(self.final, before.final)
        )

    def has_fewer_points_than(self, before: "Total") -> bool:
        """Whether the student had more before, whatever lateness costs."""
        return is_less(self.points, before.points)

    def says_the_same_as(self, other: "Total") -> bool:
        """Whether a reader would see no difference; of lateness, only where both tell of it."""
        if self._told() != other._told():
            return False
        return self.lateness is None or other.lateness is None or self.final == other.final

    def differs_in_lateness_alone(self, other: "Total") -> bool:
        """Whether the points are the same and what is left of them after lateness is not."""
        return self._told() == other._told() and not self.says_the_same_as(other)

    def _told(self) -> tuple[object, ...]:
        return self.student_id, self.points, self.decided, self.awaiting, self.maximum, self.status


def is_less(after: float | None, before: float | None) -> bool:
    """Whether points fell, or are not known any more."""
    return before is not None and (after is None or rounded(after) < rounded(before))


def is_less_than_released(after: float | None, before: float | None, released: Release | None) -> bool:
    """Whether a change takes from a student what was released.

    It does where it lowers the grade that there is now, and below the one that was released last. What was
    never released may fall.

    Args:
        after: What the grade would be.
        before: The grade that there is now, after what lateness costs (`Score.final`); None: there is none.
        released: What left for the student so far.
    """
    if released is None or released.points is None or before is None:
        return False
    return is_less(after, min(before, released.points))


@dataclass(frozen=True)
class TotalFigures:
    """What a total was, as far as a sentence tells it: see `Total`."""

    points: float | None
    decided: float
    awaiting: float
    status: str
    final: float | None
    lateness: str | None

    @classmethod
    def of(cls, total: Total) -> Self:
        """Those of a total."""
        return cls(total.points, total.decided, total.awaiting, total.status, total.final, total.lateness)


def total_sentence(total: Total | TotalFigures) -> str:
    """What a total is, in a few words: `58 of 65 decided, 35 awaiting, 56 after lateness`."""
    left = f", {points(total.awaiting)} awaiting" if total.awaiting else ""
    if total.points is None:
        word = "withheld" if total.status == GradeStatus.INCOMPLETE else total.status.replace("_", " ")
        return f"{word}, {points(total.decided)} decided{left}"
    told = f"{points(total.points)} of {points(total.decided)} decided{left}"
    return told if total.lateness is None or total.final == total.points else f"{told}, {final_words(total)}"


def final_words(total: Total | TotalFigures) -> str:
    """What is left of a total after lateness, in a few words: `56 after lateness`."""
    return "unknown after lateness" if total.final is None else f"{points(total.final)} after lateness"
