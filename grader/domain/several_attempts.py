"""What follows from several submissions of one student: regained points, and feedback before the deadline.

It holds the two points of an item, what became of a resubmission, and whether a submission gets feedback on
hidden checks. Which of these follows is decided in `grader.scoring`.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


@dataclass(frozen=True)
class TwoAttempts:
    """The points of an item before the deadline and in the resubmission."""

    first: float
    resubmitted: float


class ResubmissionState(StrEnum):
    """What became of a submission that came after the deadline, beside one from before it."""

    COUNTED = "counted"  # it regains a share of the lost points
    UNUSABLE = "unusable"  # nothing in it could be graded: the points from before the deadline stand
    TOO_LATE = "too_late"  # it came after the resubmissions had ended


@dataclass(frozen=True)
class ResubmissionRecord:
    """What a resubmission came to.

    Attributes:
        regains: The share of the lost points that it can win back, 0 to 1.
        until: When resubmissions ended for the student.
        received_at: When it came.
        first: The points from before the deadline; None where nothing is known of them.
        resubmitted: The points of the resubmission by itself; None where it has none, or does not count.
        asked: A person is asked about it: the grader failed.
        reason: What follows, in a sentence for the student.
    """

    state: ResubmissionState
    regains: float
    until: datetime
    received_at: datetime
    first: float | None
    resubmitted: float | None
    reason: str
    asked: bool = False


@dataclass(frozen=True)
class SubmissionTimes:
    """The times that decide whether a submission gets feedback on hidden checks.

    Attributes:
        submitted_at: When it came.
        earlier: When the student's earlier submissions for this assignment came, in any order.
        due: The student's deadline.
    """

    submitted_at: datetime
    earlier: tuple[datetime, ...]
    due: datetime


@dataclass(frozen=True)
class FeedbackTry:
    """Whether a submission gets feedback on hidden checks before grades are released.

    Attributes:
        number: Which of the student's submissions before the deadline it is, from 1; 0: it came after it.
        feedback: How many of them get feedback.
        left: How many more will.
        due: The student's deadline.
        reason: What follows, in a sentence for the student.
    """

    shown: bool
    number: int
    feedback: int
    left: int
    due: datetime
    reason: str

    def withholds(self, now: datetime) -> bool:
        """Whether the student may not see yet what hidden checks found, and the points for it."""
        return not self.shown and now <= self.due
