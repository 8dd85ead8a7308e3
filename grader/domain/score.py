"""Points, each with a reason, and totals as they were shown to students.

It holds the lines of a score, their states, lateness, waivers and acceptances, and totals with their parts.
It decides how points are rounded, when a total has fallen, and how it is worded briefly. `grader.scoring`
decides how many points something is worth.
"""

import math
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Self

from grader.domain.analyzed_program import Claim
from grader.domain.formatting import points
from grader.domain.grade_review import GradeReview
from grader.domain.inquiry import Inquiry
from grader.domain.oral_check import OralCheck
from grader.domain.regrade_request import RegradeRequest
from grader.domain.several_attempts import FeedbackTry, ResubmissionRecord, TwoAttempts


def rounded(points: float) -> float:
    """Points to two decimals, with halves rounded up, in the student's favor."""
    # the small addend compensates for halves that binary fractions cannot represent (1.005)
    return math.floor(points * 100 + 0.5 + 1e-9) / 100


def how_late(seconds: float) -> str:
    """Seconds after a deadline in words: `2 days 12 h late`, counting begun minutes."""
    minutes = math.ceil(seconds / 60)
    days, hours, rest = minutes // 1440, minutes // 60 % 24, minutes % 60
    parts = (f"{days} {'day' if days == 1 else 'days'}", f"{hours} h", f"{rest} min")
    parts_shown = [part for part, count in zip(parts, (days, hours, rest), strict=True) if count]
    return f"{' '.join(parts_shown)} late"


class LineState(StrEnum):
    """Whether the points of a line are decided."""

    DECIDED = "decided"
    AWAITING = "awaiting"  # a person
    NOT_RUN = "not_run"
    WITHHELD = "withheld"  # on a page of before the deadline: it is shown when grades are released


class GradeStatus(StrEnum):
    """The kind of a result."""

    GRADED = "graded"
    INCOMPLETE = "incomplete"  # a required file is missing: graded and shown, total withheld
    REFUSED = "refused"  # nothing in it can be graded
    ENGINE_ERROR = "engine_error"  # the grader failed


@dataclass(frozen=True)
class ScoreEdit:
    """A person's change to a line or a total: who, when, why, from what to what.

    Attributes:
        part: The part of the line that it is about, if the line is marked in parts.
        sheet: The name of the marking sheet that it came from, if it came from one.
    """

    who: str
    when: datetime
    why: str
    old: float | None
    new: float | None
    part: str = ""
    sheet: str = ""


@dataclass(frozen=True)
class Waiver:
    """A check was waived for the whole class: by whom, which is for staff, and why."""

    who: str
    why: str

    def __str__(self) -> str:
        return f"{self.who}: {self.why}"


@dataclass(frozen=True)
class ComponentScore:
    """A component's share of an item; points are None if none of it could be decided."""

    component: str
    points: float | None
    maximum: float
    passed: int
    total: int
    reason: str = ""


@dataclass(frozen=True)
class PartScore:
    """A part of an item that a person marks in parts; points are None until somebody has marked it.

    Attributes:
        comments: The person's comments for the student.
    """

    id: str
    title: str
    points: float | None
    maximum: float
    comments: tuple[str, ...] = ()


@dataclass(frozen=True)
class ScoreLine:
    """One rubric item's points.

    Attributes:
        points: None if a person must decide, or if it was not run.
        reason: The reason for these points, in a sentence.
        floor: Points that are already certain although the line is not decided.
        components: The shares, for items that consist of components.
        parts: For items that a person marks in parts.
        comments: A person's comments on it for the student.
        attempts: The points of both attempts that `points` consists of; None if there is one.
    """

    id: str
    title: str
    points: float | None
    maximum: float
    reason: str
    state: LineState
    floor: float | None = None
    components: tuple[ComponentScore, ...] = ()
    edits: tuple[ScoreEdit, ...] = ()
    parts: tuple[PartScore, ...] = ()
    comments: tuple[str, ...] = ()
    attempts: TwoAttempts | None = None


@dataclass(frozen=True)
class LateRecord:
    """How late a submission is, and what that costs.

    Attributes:
        state: `in_time`, `late`, or `unknown`: the LMS does not say when it came.
        days: Days that had begun since the deadline; 0 if in time, None if unknown.
        penalty: The points taken off; None if a person must decide: it is never guessed.
        total_after: The total minus the penalty, never below 0. None if the penalty is unknown, or if the
            total is withheld.
        asked: Whether a person is asked: the LMS marks the submission late, or the course has no rule.
        reason: Why, in a sentence for the student.
        seconds: How long after the deadline it came; 0 within the grace period, negative before; None if
            unknown, and if a person decided that it came in time.
        received_at: When it came, according to the LMS or a person.
        due: The student's deadline.
        extended: Whether that is the student's own.
        decided: Who decided when it came, and why, for staff; empty if nobody did.
        tokens_used: The late days of the course that were used here; 0 if the course has none.
        tokens_left: Those that are left for the assignments that follow; None if the course has none.
    """

    state: str
    days: int | None
    penalty: float | None
    total_after: float | None
    asked: bool
    reason: str
    seconds: float | None = None
    received_at: datetime | None = None
    due: datetime | None = None
    extended: bool = False
    decided: str = ""
    tokens_used: int = 0
    tokens_left: int | None = None

    @property
    def how_late(self) -> str:
        """`2 days 12 h late`, counting begun minutes; empty if in time or unknown."""
        return "" if self.seconds is None or self.seconds <= 0 else how_late(self.seconds)


@dataclass(frozen=True)
class LowerRun:
    """A run that gave less than the student saw before, and that nobody has looked at.

    Attributes:
        kept: Whether its files are those of an earlier run, which counts in its place.
        reason: What it gave, in a sentence.
    """

    kept: bool
    reason: str


@dataclass(frozen=True)
class Ownership:
    """What was found out or decided about whose a submission is.

    Attributes:
        held: Nobody knows whose it is: its points are nobody's until a person decides.
        decided: Whether a person decided it.
        reason: Who decided it, and why.
    """

    held: bool
    decided: bool
    reason: str


@dataclass(frozen=True)
class Release:
    """The release of a grade to the student: on published pages, or in an export for the LMS.

    Attributes:
        first: When it was first released.
        last: When it was last released.
        points: The grade at the last release, after the penalty for lateness; None: no grade.
        whole: The first released grade in which nothing was open, and when that was; None: there was none.
        lines: Rubric item, or part of one (`q10.patches`), its points when they were first released, and when
            that was; without those that were still open.
    """

    first: datetime
    last: datetime
    points: float | None
    whole: tuple[float, datetime] | None = None
    lines: tuple[tuple[str, float, datetime], ...] = ()


@dataclass(frozen=True)
class Acceptance:
    """A file that was set aside, and that a person accepted as the report.

    Attributes:
        file: Its name.
        why: The reason given.
    """

    file: str
    why: str


@dataclass(frozen=True)
class Score:
    """The points of one submission.

    Attributes:
        total: The sum of the known points. None for `refused`, `engine_error` and (withheld) `incomplete`,
            until a person rules (`grader rule`), or until people gave the points of every line of a
            submission that was refused or failed in the grader. None also while an oral check holds it.
        decided: The maximum of the lines that are decided ("58 of 65 decided").
        maximum: Of all lines.
        late: How late it is and what that costs; None for an assignment without a deadline. `total` does not
            include that.
        closed: A ruling decided the total, whatever the lines say: nothing is awaited.
        edits: A person's changes to the total itself.
        waived: Check -> by whom and why, for the checks that were waived for the whole class.
        claim: The accuracy that the student claims: as a person typed it, otherwise as it was read.
        lower: Set if the latest run gave less than the student saw before.
        ownership: What was found out or decided about whose it is; None if it was never in doubt.
        released: The release of the grade to the student; None if it was not released.
        accepted: The file that counts as the report although it was set aside; None if there is none.
        resubmission: What a submission after the deadline came to, beside one from before it; None if the
            assignment has no such rule, or nothing came.
        tries: Whether it gets feedback on hidden checks before the deadline; None: there is no such rule.
        oral: The oral check for which the student was picked; None: the student was not.
        requests: The points that the student disputes or has disputed, in the order of the requests.
        inquiries: What staff has asked the student about the work, in the order of asking.
        review: The last review of the grade; None: nobody has reviewed it, or that was taken back.
    """

    student_id: str
    status: GradeStatus
    lines: tuple[ScoreLine, ...]
    total: float | None
    decided: float
    maximum: float
    reason: str = ""
    late: LateRecord | None = None
    closed: bool = False
    edits: tuple[ScoreEdit, ...] = ()
    waived: tuple[tuple[str, Waiver], ...] = ()
    claim: Claim | None = None
    lower: LowerRun | None = None
    ownership: Ownership | None = None
    released: Release | None = None
    accepted: Acceptance | None = None
    resubmission: ResubmissionRecord | None = None
    tries: FeedbackTry | None = None
    oral: OralCheck | None = None
    requests: tuple[RegradeRequest, ...] = ()
    inquiries: tuple[Inquiry, ...] = ()
    review: GradeReview | None = None

    @property
    def awaits_oral(self) -> bool:
        """Whether an oral check holds the grade."""
        return self.oral is not None and self.oral.holds

    @property
    def lacks_total(self) -> bool:
        """Whether there is no total, and there would be none without an oral check either."""
        return self.total is None and (self.oral is None or self.oral.withheld is None)

    @property
    def held(self) -> bool:
        """Whether nobody knows whose the submission is."""
        return self.ownership is not None and self.ownership.held

    @property
    def gradable(self) -> bool:
        """Whether anything in it has points; if it was refused, only if people let it count."""
        counts = not self.lacks_total and not self.closed
        return self.status in (GradeStatus.GRADED, GradeStatus.INCOMPLETE) or counts

    def withholds(self, now: datetime) -> bool:
        """Whether the student may not see the points yet: see `FeedbackTry`."""
        return self.tries is not None and self.tries.withholds(now)

    @property
    def final(self) -> float | None:
        """The total after the penalty for lateness; None if there is none, or if the penalty is unknown."""
        return self.late.total_after if self.late is not None else self.total

    @property
    def awaiting(self) -> tuple[str, ...]:
        """The ids of the lines that a person must still mark."""
        return self._lines_in(LineState.AWAITING)

    @property
    def open_points(self) -> float:
        """The points of the lines that a person must still mark."""
        return sum(line.maximum for line in self.lines if line.id in self.awaiting)

    @property
    def not_run(self) -> tuple[str, ...]:
        """The ids of the lines that were not run on request."""
        return self._lines_in(LineState.NOT_RUN)

    def _lines_in(self, state: LineState) -> tuple[str, ...]:
        return () if self.closed else tuple(line.id for line in self.lines if line.state == state)


# --- total -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Total:
    """A student's total from a certain moment on.

    Attributes:
        points: None if there was none: refused, withheld, or an engine error.
        decided: The maximum of the items that were decided.
        awaiting: The maximum of the items that a person still had to mark.
        status: `graded`, `incomplete`, `refused` or `engine_error`.
        who: Who ran the command that it came from.
        cause: The command, in words: `grade`, `regrade`, `waive attention_scale`.
        final: The points after the penalty for lateness; None if there are none, or if it is unknown.
        lateness: `LateRecord.state`, or `none` if there is no deadline. None in records of older versions,
            which say nothing about lateness: `final` is also None there.
        late_days_used: The late days of the course that were used; None in records of older versions.
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
    late_days_used: int | None = None

    @classmethod
    def of(cls, score: Score, *, who: str = "", when: datetime = datetime.min, cause: str = "") -> Self:
        """The total of a score; the keywords may be left out if it is only compared."""
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
            late_days_used=score.late.tokens_used if score.late is not None else 0,
        )

    def falls_from(self, before: "Total | None") -> bool:
        """Whether the student had more before, with or without lateness, or had a total that is gone now."""
        if before is None:
            return False
        return is_less(self.points, before.points) or (
            self.lateness is not None and is_less(self.final, before.final)
        )

    def has_fewer_points_than(self, before: "Total") -> bool:
        """Whether the student had more before, regardless of lateness."""
        return is_less(self.points, before.points)

    def says_the_same_as(self, other: "Total") -> bool:
        """Whether a reader would see no difference; lateness is compared only if both state it."""
        if self._shown_values() != other._shown_values():
            return False
        return self.lateness is None or other.lateness is None or self.final == other.final

    def uses_other_late_days_than(self, other: "Total") -> bool:
        """Whether another number of late days was used, whatever is left of the points."""
        return (self.late_days_used or 0) != (other.late_days_used or 0)

    def differs_in_lateness_alone(self, other: "Total") -> bool:
        """Whether the points are the same, but not what is left of them after lateness."""
        return self._shown_values() == other._shown_values() and not self.says_the_same_as(other)

    def _shown_values(self) -> tuple[object, ...]:
        return self.student_id, self.points, self.decided, self.awaiting, self.maximum, self.status


def is_less(after: float | None, before: float | None) -> bool:
    """Whether points fell, or are no longer known."""
    return before is not None and (after is None or rounded(after) < rounded(before))


def is_less_than_released(after: float | None, before: float | None, released: Release | None) -> bool:
    """Whether a change takes away points that were released to a student.

    It does if it lowers the current grade below the one that was last released. A grade that was never
    released may fall.

    Args:
        after: The new grade.
        before: The current grade, after the penalty for lateness (`Score.final`); None: there is none.
        released: What has been released to the student so far.
    """
    if released is None or released.points is None or before is None:
        return False
    return is_less(after, min(before, released.points))


@dataclass(frozen=True)
class TotalFigures:
    """The figures of a total that a sentence mentions: see `Total`."""

    points: float | None
    decided: float
    awaiting: float
    status: str
    final: float | None
    lateness: str | None

    @classmethod
    def of(cls, total: Total) -> Self:
        """The figures of a total."""
        return cls(total.points, total.decided, total.awaiting, total.status, total.final, total.lateness)


def total_sentence(total: Total | TotalFigures) -> str:
    """A total in a few words: `58 of 65 decided, 35 awaiting, 56 after lateness`."""
    left = f", {points(total.awaiting)} awaiting" if total.awaiting else ""
    if total.points is None:
        withheld = total.status in (GradeStatus.INCOMPLETE, GradeStatus.GRADED)
        word = "withheld" if withheld else total.status.replace("_", " ")
        return f"{word}, {points(total.decided)} decided{left}"
    words = f"{points(total.points)} of {points(total.decided)} decided{left}"
    return (
        words if total.lateness is None or total.final == total.points else f"{words}, {final_words(total)}"
    )


def final_words(total: Total | TotalFigures) -> str:
    """What is left of a total after lateness, in a few words: `56 after lateness`."""
    return "unknown after lateness" if total.final is None else f"{points(total.final)} after lateness"
