"""A student's total in a course: what each assignment adds, what is open, and who may not pass.

It holds what `course.toml` says about the term, the groups that hand in together, and each student's parts
with their bounds. It sums them up, and never turns an unknown part into a zero: a total that lacks something
is a range. `grader.term` finds out what each part is.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from grader.domain.score import rounded


@dataclass(frozen=True)
class CourseSection:
    """A part of the class with its own assistants.

    Attributes:
        markers: Who looks after it, by the names under which they mark.
    """

    name: str
    markers: tuple[str, ...] = ()


@dataclass(frozen=True)
class TermPlan:
    """What a course says about its term.

    Attributes:
        weights: Assignment -> how many points of the term it is worth, in the order of the file.
        passing: The points of the term that pass; None: the course names none.
        students: The CSV of students and their sections; None: there is none.
        groups: The CSV of groups; None: there is none.
        sections: In the order of the file.
    """

    weights: Mapping[str, float] = field(default_factory=dict)
    passing: float | None = None
    students: Path | None = None
    groups: Path | None = None
    sections: tuple[CourseSection, ...] = ()

    @property
    def maximum(self) -> float:
        """The points of the whole term."""
        return rounded(sum(self.weights.values()))


NO_PLAN = TermPlan()


@dataclass(frozen=True)
class GroupMember:
    """A student in a group.

    Attributes:
        weight: The factor of the group's points that the student gets: what the group said of each other.
        hands_in: Whether this student's submission is the group's, if several members handed something in.
    """

    student_id: str
    group: str
    weight: float = 1.0
    hands_in: bool = False


@dataclass(frozen=True)
class TermPeople:
    """Who is in the course, as its files say.

    Attributes:
        sections: Student -> section, empty if the file names none; None: there is no file of students.
        groups: Assignment -> student -> the members of the student's group, in the order of the file.
    """

    sections: Mapping[str, str] | None = None
    groups: Mapping[str, Mapping[str, tuple[GroupMember, ...]]] = field(default_factory=dict)


class PartState(StrEnum):
    """Whether it is known what an assignment adds to a total."""

    DECIDED = "decided"
    OPEN = "open"  # a person, or another run, still decides something
    NOTHING = "nothing"  # nothing was handed in, and nobody has ruled on that
    NOT_GRADED = "not graded"  # no results are there yet, or the deadline is still to come


@dataclass(frozen=True)
class TermPart:
    """What an assignment adds to a student's total, in points of the term.

    Attributes:
        weight: The most that it can add.
        low: What is certain.
        high: What it can still become.
        judged: The points of the term that are already decided, whether earned or lost; at most `weight`.
        grade: The student's points in the assignment after lateness and with the weight in the group; None
            unless it is decided.
        maximum: The points of the assignment; None if it is not known yet.
        missing: What is missing, as a clause; empty if it is decided.
        group: The student's group; empty without one.
        peer_weight: The student's factor in the group.
        handed_in_by: Whose submission counts, if that is another member's; otherwise empty.
    """

    assignment_id: str
    weight: float
    state: PartState
    low: float
    high: float
    judged: float
    grade: float | None = None
    maximum: float | None = None
    missing: str = ""
    group: str = ""
    peer_weight: float = 1.0
    handed_in_by: str = ""


class RiskKind(StrEnum):
    """Why a student may not pass."""

    CANNOT_PASS = "cannot pass"  # not even with full points for all that is open
    BELOW = "below"  # the share of what is decided so far is less than what passes
    NOTHING = "nothing"  # nothing was handed in for an assignment that is due


@dataclass(frozen=True)
class Risk:
    """A reason why a student may not pass.

    Attributes:
        assignments: For which nothing was handed in.
    """

    kind: RiskKind
    assignments: tuple[str, ...] = ()


@dataclass(frozen=True)
class TermTotal:
    """A student's total in the course.

    Attributes:
        section: Empty: none is known.
        parts: Of each assignment, in the order of the course.
        passing: The points that pass; None: the course names none.
        late_days_left: Of the late days of the course; None: it has none.
        listed: Whether the student is on the list of students, if there is one.
    """

    student_id: str
    section: str
    parts: tuple[TermPart, ...]
    passing: float | None = None
    late_days_left: int | None = None
    listed: bool = True

    @property
    def maximum(self) -> float:
        """The points of the whole term."""
        return rounded(sum(part.weight for part in self.parts))

    @property
    def low(self) -> float:
        """The points that are certain."""
        return rounded(sum(part.low for part in self.parts))

    @property
    def high(self) -> float:
        """The most that the total can still become."""
        return rounded(sum(part.high for part in self.parts))

    @property
    def points(self) -> float | None:
        """The total; None while anything is missing."""
        return self.low if all(part.state is PartState.DECIDED for part in self.parts) else None

    @property
    def so_far(self) -> float | None:
        """The share of the decided points that the student has, 0 to 1 or a little more; None without any."""
        judged = sum(part.judged for part in self.parts)
        return sum(part.low for part in self.parts if part.judged) / judged if judged else None

    @property
    def open_parts(self) -> tuple[TermPart, ...]:
        """The parts that are not decided."""
        return tuple(part for part in self.parts if part.state is not PartState.DECIDED)

    @property
    def risks(self) -> tuple[Risk, ...]:
        """Why the student may not pass; () if nothing says so."""
        risks = []
        so_far = self.so_far
        if self.passing is not None and self.high < self.passing:
            risks.append(Risk(RiskKind.CANNOT_PASS))
        elif (
            self.passing is not None
            and self.low < self.passing
            and so_far is not None
            and so_far * self.maximum < self.passing
        ):
            risks.append(Risk(RiskKind.BELOW))
        nothing = tuple(part.assignment_id for part in self.parts if part.state is PartState.NOTHING)
        if nothing:
            risks.append(Risk(RiskKind.NOTHING, nothing))
        return tuple(risks)
