"""The rules of an assignment: forbidden parts, limits of processes, late work, resubmissions, feedback."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any


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


MEGABYTE = 10**6  # bytes


def _limit(default: float, bounds: str) -> Any:
    """A limit's default, and what it bounds, as a clause."""
    return field(default=default, metadata={"bounds": bounds})


@dataclass(frozen=True)
class Limits:
    """What one submission may use: the single declaration of every limit that a course chooses.

    The keys of `[limits]` in `assignment.toml` follow from it (`course.assignment_tables`). So do the limits
    of a process with the same names (`sandbox.limits`), and the table in `docs/instructor.md`, which a test
    compares. Seconds are wall-clock seconds, megabytes are 10**6 bytes.
    """

    load_seconds: float = _limit(20.0, "executing the definitions of the submitted file")
    call_seconds: float = _limit(10.0, "one call of a submitted function")
    checks_seconds: float = _limit(60.0, "all checks together")
    training_seconds: float = _limit(1800.0, "a training; one that takes longer is done again at the end")
    queued_training_seconds: float = _limit(7200.0, "a training at the end; off when it is no larger")
    memory_mb: int = _limit(3000, "memory of a worker")
    gpu_memory_mb: int = _limit(4000, "a worker's part of a GPU; what needs more is trained again alone")
    file_mb: int = _limit(
        64, "the largest file that code may write, the largest PDF, and the largest file of any other role"
    )
    processes: int = _limit(64, "threads and processes of a worker")
    output_kb: int = _limit(256, "what is kept of the printed output")
    checkpoint_mb: int = _limit(200, "the checkpoint that is handed in")
    source_kb: int = _limit(2000, "the script that is handed in")
    notebook_mb: int = _limit(50, "the notebook that is handed in")
    archive_mb: int = _limit(500, "what one student's archives hold, unpacked")


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
class LateTokens:
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
class Tries:
    """How often a student sees, before the deadline, what hidden checks found.

    Attributes:
        feedback: So many submissions get this feedback, the first ones; of the others it is shown when grades
            are released.
    """

    feedback: int
