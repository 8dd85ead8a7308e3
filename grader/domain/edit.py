"""People's decisions about grades, and the grader's own notes: one record for each.

Edits are added, never changed: a later one outweighs an earlier one. `Edit` is their common base.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from grader.domain.inquiry import InquiryOutcome
from grader.domain.oral_check import OralFlag, OralOutcome, OralReason
from grader.domain.score import TotalFigures, total_sentence


@dataclass(frozen=True, kw_only=True)
class Edit:
    """One decision.

    Attributes:
        who: The person, as the operator gave it; for a note of the grader, whoever ran the command.
        why: The reason, in words; empty if the fields state it.
        student_id: Whom it is about; None: the whole class.
        run: The student's latest run at the time, which the person saw; None if there was none.
    """

    who: str
    when: datetime
    why: str
    student_id: str | None = None
    run: int | None = None


@dataclass(frozen=True, kw_only=True)
class Marked(Edit):
    """The points of an item, or of a part of one.

    Attributes:
        target: A rubric item (`q6`), or a part of one (`q10.patches`).
        points: None: the mark is withdrawn.
        comment: A comment for the student, in free text.
        remarks: Id -> text of the comments that were chosen from the comment bank, as worded then.
        sheet: The name of the marking sheet that it came from; empty if it came in another way.
        valued: Id -> points of those comments that have points, as they were then.
        adjustment: `points` minus what `valued` gives; 0 without such comments.
    """

    target: str
    points: float | None
    comment: str = ""
    remarks: tuple[tuple[str, str], ...] = ()
    sheet: str = ""
    valued: tuple[tuple[str, float], ...] = ()
    adjustment: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Waived(Edit):
    """A check counts as passed, for the whole class.

    Attributes:
        lifted: Whether the check counts again.
    """

    check: str
    lifted: bool = False


@dataclass(frozen=True, kw_only=True)
class Ruled(Edit):
    """The ruling on a submission that cannot be graded, or lacks a file.

    Attributes:
        counts: Whether what it has counts; otherwise the total is 0.
        digest: Of the submission that it is about; None in gradebooks of older versions, where it is about
            whatever the student handed in.
        withdrawn: All rulings on the submission are taken back, and it waits for one again.
    """

    counts: bool
    digest: str | None
    withdrawn: bool = False


@dataclass(frozen=True, kw_only=True)
class Claimed(Edit):
    """The accuracy that the student's report claims.

    Attributes:
        accuracy: 0 to 1; None: the recorded claim is withdrawn.
    """

    accuracy: float | None


@dataclass(frozen=True, kw_only=True)
class Received(Edit):
    """When a submission came.

    Attributes:
        digest: Of the submission.
        moment: None: the decision about it is withdrawn.
    """

    digest: str
    moment: datetime | None


@dataclass(frozen=True, kw_only=True)
class InTime(Edit):
    """A submission came in time, whatever the LMS records.

    Attributes:
        digest: Of the submission.
    """

    digest: str


@dataclass(frozen=True, kw_only=True)
class Extended(Edit):
    """The student's own deadline."""

    deadline: datetime


class Because(StrEnum):
    """Why the grader says which run counts."""

    LATEST = "latest"  # it is the latest, and another one had been chosen
    CAME_AGAIN = "came_again"  # the files of an earlier attempt came again
    KEPT = "kept"  # the files of an earlier run gave less when they were examined again: that run counts
    FELL = "fell"  # a later attempt gives less than the student saw, and counts
    TOO_LATE = "too_late"  # a later attempt came after resubmissions had ended: an earlier one counts
    CAME_BEFORE = (
        "came_before"  # the resubmission counts, though one from before the deadline was examined last
    )
    FELL_AGAIN = "fell_again"  # the same files give less than the student saw, and no earlier run gives more


@dataclass(frozen=True, kw_only=True)
class RunChosen(Edit):
    """Which of the student's runs counts.

    Attributes:
        number: The run's; None: the one that it was recorded with, or the latest at the time.
        because: Why the grader says so; None if `why` gives the reason.
        told: The total that the student saw before a run gave less; None if nothing fell, and in gradebooks
            of older versions, in which `why` states it.
        gave: The total of that run.
    """

    number: int | None
    because: Because | None = None
    told: TotalFigures | None = None
    gave: TotalFigures | None = None

    @property
    def has_fallen(self) -> bool:
        """Whether a run gave less than the student saw, so that somebody should look at it."""
        return self.because in (Because.KEPT, Because.FELL, Because.FELL_AGAIN)

    @property
    def reason(self) -> str:
        """Why that run counts, in a sentence."""
        if self.why or self.because is None:
            return self.why
        change = (
            f"{total_sentence(self.told)} -> {total_sentence(self.gave)}" if self.told and self.gave else ""
        )
        return {
            Because.LATEST: "The latest run counts.",
            Because.CAME_AGAIN: f"An earlier attempt was handed in again: run {self.number} counts.",
            Because.KEPT: f"The same files gave less when they were examined again: {change}. "
            f"Run {self.number} counts.",
            Because.TOO_LATE: f"A later attempt came after resubmissions had ended. "
            f"Run {self.number} counts.",
            Because.CAME_BEFORE: f"An attempt from before the deadline was examined after the resubmission. "
            f"Run {self.number} counts.",
            Because.FELL: f"A later attempt gives less: {change}.",
            Because.FELL_AGAIN: f"The same files give less now: {change}.",
        }[self.because]


@dataclass(frozen=True, kw_only=True)
class OwnerAssigned(Edit):
    """Whose a submission is. It is about a row of the gradebook (`RecordedUpload.row`).

    Attributes:
        listed_as: The id under which the submission is listed from then on.
        by_person: Whether a person decided it; otherwise the grader found it out.
        held: Nobody knows whose it is.
    """

    listed_as: str
    by_person: bool
    held: bool


@dataclass(frozen=True, kw_only=True)
class Released(Edit):
    """The grade was released to the student.

    Attributes:
        way: `publish`, or the format that was exported.
        points: The released grade; None: there was none.
        lines: Rubric item, or part of one -> its points then; None: it was open.
    """

    way: str
    points: float | None
    lines: tuple[tuple[str, float | None], ...] = ()


@dataclass(frozen=True, kw_only=True)
class Reviewed(Edit):
    """A person has looked over the grade, before it is released; `why` holds a note for staff.

    Attributes:
        points: The grade then, after the penalty for lateness; None: there was none.
        lines: Rubric item, or part of one -> its points then; None: it was open.
        digest: Of the submission that counted.
        withdrawn: All reviews of the grade are taken back.
    """

    points: float | None
    lines: tuple[tuple[str, float | None], ...] = ()
    digest: str = ""
    withdrawn: bool = False


@dataclass(frozen=True, kw_only=True)
class Accepted(Edit):
    """A file that was set aside counts as the report.

    Attributes:
        file: Its name; None: the acceptance is withdrawn.
    """

    file: str | None


@dataclass(frozen=True, kw_only=True)
class PickedForOral(Edit):
    """The student was picked for an oral check, which holds the grade until there is an outcome.

    Attributes:
        reasons: Those that were not recorded before.
        seed: That of the draw; empty if the student was not drawn.
        share: Of the class that was to be drawn, 0 to 1; None if the student was not drawn.
    """

    reasons: tuple[OralFlag, ...]
    seed: str = ""
    share: float | None = None


@dataclass(frozen=True, kw_only=True)
class OrallyChecked(Edit):
    """How an oral check went.

    Attributes:
        outcome: None: the recorded outcome is withdrawn.
        digest: Of the submission that it was about.
    """

    outcome: OralOutcome | None
    digest: str


@dataclass(frozen=True, kw_only=True)
class RegradeAsked(Edit):
    """A student disputes points; `why` holds the student's words.

    Attributes:
        target: A rubric item (`q6`), or a part of one (`q10.patches`).
        asked: When the student asked.
        points: The disputed points; None: they were open.
        marker: Who gave them; empty: the checks did.
    """

    target: str
    asked: datetime
    points: float | None
    marker: str = ""


@dataclass(frozen=True, kw_only=True)
class RegradeAnswered(Edit):
    """The answer to the student's open request about an item; `why` holds the answer.

    Attributes:
        target: A rubric item, or a part of one.
        points: The points with which the answer leaves it; None: they are open.
    """

    target: str
    points: float | None


@dataclass(frozen=True, kw_only=True)
class InquiryAsked(Edit):
    """Staff asks the student about the work; `why` holds the question, as the student reads it.

    A student's questions are counted from 1.

    Attributes:
        about: Why it is asked, for staff.
        place: The line or cell that it is about; empty: it is about the work as a whole.
        quoted: What stands there.
    """

    about: OralReason
    place: str = ""
    quoted: str = ""


@dataclass(frozen=True, kw_only=True)
class InquiryExplained(Edit):
    """The student answers a question; `why` holds the student's words.

    Attributes:
        number: Of the question.
        explained: When the student answered.
    """

    number: int
    explained: datetime


@dataclass(frozen=True, kw_only=True)
class InquirySettled(Edit):
    """A person decides what follows from a question; `why` holds the reason, as the student reads it.

    Attributes:
        number: Of the question.
        outcome: None: the decision is taken back.
        target: The rubric item, or part of one, that got new points with it; empty: none did.
        before, points: Its points before and since; None: they were open, or none were changed.
    """

    number: int
    outcome: InquiryOutcome | None
    target: str = ""
    before: float | None = None
    points: float | None = None


def current_owner(edits: Iterable[Edit]) -> OwnerAssigned | None:
    """The edit that says whose a submission is: the last one by a person, else the grader's last one.

    Args:
        edits: All edits about one submission, of any kind, oldest first.
    """
    owner_edits = [edit for edit in edits if isinstance(edit, OwnerAssigned)]
    return next(iter([edit for edit in owner_edits if edit.by_person][-1:] or owner_edits[-1:]), None)
