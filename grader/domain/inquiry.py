"""Questions that staff asks a student about the work, where something rests on suspicion.

A question quotes the line that it is about. It takes no points: what follows is decided by a person, with a
reason, after the student could answer. It holds one question as a score knows it, and the words for each
kind of suspicion. It never says what is suspicious (`grader.reports.whole_class.oral_flags` does).
"""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from hashlib import sha256

from grader.domain.oral_check import OralReason


class InquiryOutcome(StrEnum):
    """What a person decided about a question, after the student could answer."""

    DISMISSED = "dismissed"  # nothing follows
    CONFIRMED = "confirmed"  # it is as suspected; a mark may say what that costs


# what the student is asked if staff asks nothing else; nothing in it says what is suspected of whom
QUESTIONS = {
    OralReason.SIMILAR: "This part of your work has much in common with another submission. How did you come "
    "to it, and who or what helped you?",
    OralReason.CLAIM: "This is not what the grader reached with your code. How did you get this result?",
    OralReason.WEIGHTS: "The weights that you handed in do not fit the model in your code. How were they "
    "trained?",
    OralReason.MODEL: "The trained model answered otherwise than the model that was checked. Which of your "
    "code decides that?",
    OralReason.STUDY: "When rows of your study were trained again, they did not differ as you report. How "
    "did you get these rows?",
    OralReason.CODE: "What is this line for, and why does the homework need it?",
    OralReason.WATCH: "The grader could not follow what your code used. What does this part of it do?",
}
"""Why staff asks -> the question."""

NEED_A_LINE = frozenset((OralReason.SIMILAR, OralReason.CODE, OralReason.WATCH, OralReason.CHOSEN))
"""These are about the source: the question quotes a line of it."""


@dataclass(frozen=True)
class Inquiry:
    """One question to a student.

    Attributes:
        number: 1 for the student's first.
        about: Why staff asks, for staff.
        question: As the student reads it.
        place: `homework.py:41`, or the cell that it is about; empty: it is about the work as a whole.
        quoted: What stands there.
        explanation: The student's words; empty: there are none yet.
        explained: When they came; None: they have not.
        outcome: What a person decided; None: nothing yet.
        reason: Why, as the student reads it.
        settled: When that was; None: it is open.
        target: The rubric item whose points were changed with that; empty: none.
        before, after: Its points; None: they were open, or none were changed.
    """

    number: int
    about: OralReason
    question: str
    place: str
    quoted: str
    asked: datetime
    explanation: str = ""
    explained: datetime | None = None
    outcome: InquiryOutcome | None = None
    reason: str = ""
    settled: datetime | None = None
    target: str = ""
    before: float | None = None
    after: float | None = None

    @property
    def is_open(self) -> bool:
        """Whether a person still has to decide what follows."""
        return self.outcome is None

    @property
    def is_confirmed(self) -> bool:
        """Whether a person decided that it is as suspected."""
        return self.outcome is InquiryOutcome.CONFIRMED

    @property
    def anchor(self) -> str:
        """The id of the question on a report, another one for another question."""
        return _anchor(f"{self.number}\0{self.place}\0{self.question}\0{self.asked.isoformat()}")

    @property
    def outcome_anchor(self) -> str:
        """The id of the decision on a report, another one for another decision."""
        when = self.settled.isoformat() if self.settled is not None else ""
        return _anchor(f"{self.anchor}\0{self.outcome}\0{self.reason}\0{self.after}\0{when}")

    @property
    def to_be_settled(self) -> bool:
        """Whether the student has answered, and a person has not decided yet."""
        return self.is_open and self.explained is not None


def _anchor(text: str) -> str:
    return f"question-{sha256(text.encode('utf-8', 'replace')).hexdigest()[:16]}"
