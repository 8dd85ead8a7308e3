"""How far a grade is on its way to the student: being marked, reviewed by a person, released.

It holds the last review of a grade as a score knows it, with all that has changed since. It never says when
a grade may be reviewed (`grader.decisions` does), or whether one must be before it is released (the
assignment does).
"""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from grader.domain.formatting import points


class GradeState(StrEnum):
    """How far a grade is."""

    MARKING = "marking"  # something is open, or nobody has looked over it as it is now
    REVIEWED = "reviewed"  # a person has looked over exactly this grade
    RELEASED = "released"  # the student has been given a grade


@dataclass(frozen=True)
class ReviewedPoints:
    """Points that are not those that were reviewed.

    Attributes:
        target: A rubric item (`q6`), or a part of one (`q10.patches`); empty: the grade after lateness.
        before: When they were reviewed; None: they were open, or there were none.
        after: Now.
    """

    target: str
    before: float | None
    after: float | None

    def __str__(self) -> str:
        return f"{self.target or 'the grade'}: {_or_open(self.before)} → {_or_open(self.after)}"


def _or_open(value: float | None) -> str:
    return "open" if value is None else points(value)


@dataclass(frozen=True)
class GradeReview:
    """The last review of a grade.

    Attributes:
        who, note: For staff; the note may be empty.
        points: The grade then, after the penalty for lateness; None: there was none.
        changes: What differs from then, in the order of the rubric.
        other_work: Whether it was about another submission than the one that counts.
    """

    who: str
    when: datetime
    note: str
    points: float | None
    changes: tuple[ReviewedPoints, ...] = ()
    other_work: bool = False

    @property
    def stands(self) -> bool:
        """Whether the grade is still the one that was reviewed."""
        return not (self.changes or self.other_work)

    @property
    def differences(self) -> str:
        """What differs from what was reviewed, as a clause; empty if nothing does."""
        other = ["another submission counts"] if self.other_work else []
        return "; ".join([*other, *map(str, self.changes)])
