"""The rules of an assignment: forbidden parts, late work, resubmissions, feedback, regrade requests."""

from dataclasses import dataclass
from datetime import datetime, timedelta


@dataclass(frozen=True)
class ForbiddenRule:
    """A part that the assignment does not allow.

    Attributes:
        pattern: A dotted name with `*` as in file names: `torchvision.models.vit*`. It covers submodules.
        policy: `forbid` or `flag` (no points lost, a person sees it).
        costs: What a reachable use costs: a rubric item's id (`model`) or a component (`Attention`).
        reason: The sentence that the student reads.
    """

    pattern: str
    policy: str
    costs: str
    reason: str


@dataclass(frozen=True)
class LatePolicy:
    """The consequences of handing in after the deadline.

    Attributes:
        grace_minutes: Nothing is late for this long after the deadline.
        points_per_day: Taken off the total for each day that has begun since the deadline; None: the course
            has no rule, and a person decides.
        most_points: The most that is taken off; None: down to zero.
        tokens: Whether the late days of the course may be used here.
    """

    grace_minutes: float = 0.0
    points_per_day: float | None = None
    most_points: float | None = None
    tokens: bool = True


@dataclass(frozen=True)
class CourseLateDays:
    """The late days that a student has for all assignments of the course, as one assignment sees them.

    Attributes:
        count: How many there are for the whole course.
        earlier: The assignments that use them before this one does: those with earlier deadlines.
        later: Those that use them after it.
    """

    count: int
    earlier: tuple[str, ...] = ()
    later: tuple[str, ...] = ()


@dataclass(frozen=True)
class Resubmission:
    """That one submission after the deadline regains a share of the points that the one before it lost.

    Attributes:
        regains: The share, 0 to 1.
        days: Resubmissions end so long after the student's deadline, in days; None: `until` says when.
        until: When they end for everybody.
    """

    regains: float
    days: float | None = None
    until: datetime | None = None

    def end(self, due: datetime) -> datetime:
        """When resubmissions end for a student.

        Args:
            due: The student's deadline.
        """
        return self.until if self.until is not None else due + timedelta(days=self.days or 0.0)


@dataclass(frozen=True)
class RegradeRules:
    """How long and how often students may dispute points, and who answers.

    Attributes:
        days: After the grade was last released to the student.
        most: Requests of one student for the assignment.
        by_another: Whether somebody else than the marker of the disputed points answers.
    """

    days: float
    most: int
    by_another: bool = False


@dataclass(frozen=True)
class Tries:
    """How often a student sees, before the deadline, what hidden checks found.

    Attributes:
        feedback: So many submissions get this feedback, the first ones; of the others it is shown when grades
            are released.
    """

    feedback: int
