"""What people decided about grades, and what the grader noted about them: one record for each.

Edits are added, never changed: a later one outweighs an earlier one. `Edit` is what they share.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from grader.domain.score import TotalFigures, total_sentence


@dataclass(frozen=True, kw_only=True)
class Edit:
    """One decision.

    Attributes:
        who: The person, as the operator gave it; whoever ran the command where the grader noted something.
        why: The reason, in words; empty where the fields say it.
        student_id: Whom it is about; None: the whole class.
        run: The student's latest run at the time, which the person saw; None when there is none.
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
        points: None: the mark is taken back.
        comment: What the student is told, in free text.
        remarks: Id -> text of the comments that were chosen from the comment bank, as they read then.
        sheet: The name of the marking sheet that it came from; empty for every other way.
    """

    target: str
    points: float | None
    comment: str = ""
    remarks: tuple[tuple[str, str], ...] = ()
    sheet: str = ""


@dataclass(frozen=True, kw_only=True)
class Waived(Edit):
    """A check counts as passed, for the whole class.

    Attributes:
        lifted: It counts again.
    """

    check: str
    lifted: bool = False


@dataclass(frozen=True, kw_only=True)
class Ruled(Edit):
    """The last word on what cannot be graded, or lacks a file.

    Attributes:
        counts: What it has counts all the same; else the total is 0.
        digest: Of the submission that it is about; None in books of older versions, where it is about
            whatever the student handed in.
    """

    counts: bool
    digest: str | None


@dataclass(frozen=True, kw_only=True)
class Claimed(Edit):
    """The accuracy that the student's report claims.

    Attributes:
        accuracy: 0 to 1; None: what was recorded is taken back.
    """

    accuracy: float | None


@dataclass(frozen=True, kw_only=True)
class Received(Edit):
    """When a submission came.

    Attributes:
        digest: Of the submission.
        moment: None: what was decided of it is taken back.
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

    LATEST = "latest"  # it is the latest, where another one had been chosen
    CAME_AGAIN = "came_again"  # the files of an earlier attempt came again
    KEPT = "kept"  # the files of an earlier run gave less when they were examined again: that run counts
    FELL = "fell"  # a later attempt gives less than was told, and counts
    TOO_LATE = "too_late"  # a later attempt came after resubmissions had ended: an earlier one counts
    FELL_AGAIN = "fell_again"  # the same files give less than was told, and no earlier run gives more


@dataclass(frozen=True, kw_only=True)
class RunChosen(Edit):
    """Which of the student's runs counts.

    Attributes:
        number: The run's; None: the one that it was recorded with, or the latest there was.
        because: Why the grader says so; None where `why` does.
        told: What the student was told before a run gave less; None where nothing fell, and in books of
            older versions, in which `why` says it.
        gave: What that run gave.
    """

    number: int | None
    because: Because | None = None
    told: TotalFigures | None = None
    gave: TotalFigures | None = None

    @property
    def has_fallen(self) -> bool:
        """Whether a run gave less than was told: somebody should look at that."""
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
            Because.CAME_AGAIN: f"An earlier attempt came again: run {self.number} counts.",
            Because.KEPT: f"The same files gave less when they were examined again: {change}. "
            f"Run {self.number} counts.",
            Because.TOO_LATE: f"A later attempt came after resubmissions had ended. "
            f"Run {self.number} counts.",
            Because.FELL: f"A later attempt gives less: {change}.",
            Because.FELL_AGAIN: f"The same files give less now: {change}.",
        }[self.because]


@dataclass(frozen=True, kw_only=True)
class Listed(Edit):
    """Whose a submission is. It is about a row of the gradebook (`KnownUpload.row`).

    Attributes:
        listed_as: The id under which the submission is listed from then on.
        by_person: A person says so; else the grader found it out.
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
        points: The grade as it was released; None: there was none.
        lines: Rubric item, or part of one -> the points that it had; None: it was open.
    """

    way: str
    points: float | None
    lines: tuple[tuple[str, float | None], ...] = ()


@dataclass(frozen=True, kw_only=True)
class Accepted(Edit):
    """A file that was set aside counts as the report.

    Attributes:
        file: Its name; None: what was accepted is taken back.
    """

    file: str | None


def standing_owner(edits: Iterable[Edit]) -> Listed | None:
    """The edit that says whose a submission is: a person's last word, else what the grader found out last.

    Args:
        edits: Those about one submission, oldest first, of any kind.
    """
    said = [edit for edit in edits if isinstance(edit, Listed)]
    return next(iter([edit for edit in said if edit.by_person][-1:] or said[-1:]), None)
