"""Oral checks: a student explains the own work, and the grade is held until somebody says how it went.

It holds the reasons for which students are picked, the outcomes, the check of one student as a score knows
it, and the questions that an assignment brings for certain parts. It never picks anybody (`grader.decisions`
does), it never says what an outcome does to a grade (`grader.scoring` does), and it words no question.
"""

from dataclasses import dataclass
from enum import StrEnum


class OralReason(StrEnum):
    """Why a student is picked. No reason depends on points."""

    DRAWN = "drawn"  # by the seed
    CHOSEN = "chosen"  # a person named the student
    SIMILAR = "similar"  # much in common with another submission: code, weights or pictures
    CLAIM = "claim"  # the claimed accuracy, or the epochs of the outputs and plots, are not those of the code
    WEIGHTS = "weights"  # the submitted weights are not those of the submitted model
    MODEL = "model"  # the trained model may not be the one that was checked
    STUDY = "study"  # rows of the study that were trained again do not differ as claimed
    CODE = "code"  # code that does something unusual
    WATCH = "watch"  # the watch for forbidden parts was disturbed


FLAGS = tuple(reason for reason in OralReason if reason not in (OralReason.DRAWN, OralReason.CHOSEN))
"""What is found in the work itself."""


@dataclass(frozen=True)
class OralFlag:
    """One reason for which a student is picked.

    Attributes:
        text: What was found, in a sentence for staff; empty if the reason says it all.
    """

    reason: OralReason
    text: str = ""

    def __str__(self) -> str:
        return f"{self.reason.value}: {self.text}" if self.text else self.reason.value


class OralOutcome(StrEnum):
    """How a check went."""

    PASSED = "passed"  # the student could explain the work
    FAILED = "failed"  # the student could not
    ABSENT = "absent"  # the student did not come
    EXCUSED = "excused"  # the student is not asked after all


UNSETTLED = (OralOutcome.FAILED, OralOutcome.ABSENT)
"""The outcomes after which a person rules on the grade: they take no points by themselves."""


@dataclass(frozen=True)
class OralCheck:
    """The oral check of one student, who was picked.

    Attributes:
        reasons: All of them, in the order in which they were recorded; for staff.
        outcome: What counts; None: nobody was asked yet, or only about an earlier submission.
        why: The reason that was given for the outcome, for staff.
        who: Who recorded the outcome; empty if there is none.
        holds: Whether the grade is held: there is no outcome, or one on which nobody has ruled yet.
        asked_before: Whether there is an outcome about an earlier submission of the student.
        withheld: The total that is held; None if nothing is held, or there is no total anyway.
    """

    reasons: tuple[OralFlag, ...]
    outcome: OralOutcome | None = None
    why: str = ""
    who: str = ""
    holds: bool = True
    asked_before: bool = False
    withheld: float | None = None

    @property
    def to_be_asked(self) -> bool:
        """Whether the conversation is still to come."""
        return self.holds and self.outcome is None

    @property
    def to_be_ruled(self) -> bool:
        """Whether a person still says what follows from the outcome."""
        return self.holds and self.outcome in UNSETTLED


@dataclass(frozen=True)
class OralQuestion:
    """A question about a certain part, which the assignment brings: its texts have `{placeholders}`.

    Attributes:
        text: What the student is asked.
        note: What a good answer holds, for the examiner.
        component: The part whose code is shown beside it; empty: no code is.
        calls: The shown line calls one of these; without such a line the question is not asked. Empty: the
            part is shown from its beginning.
        values: Placeholder -> a formula of whole numbers that the student chose.
        after: Ids of mistakes: only students in whose work one of them was found are asked. Empty: anybody.
    """

    id: str
    text: str
    note: str
    component: str = ""
    calls: tuple[str, ...] = ()
    values: tuple[tuple[str, str], ...] = ()
    after: tuple[str, ...] = ()
