"""The rules on when and how often a student hands in or asks again: `[tries]`, `[resubmission]`, late days.

It refuses rules that nobody can meet, each with one sentence. The assignments of a course use its late days
in the order of their deadlines; of every assignment's file it reads only what this depends on, so that a
mistake elsewhere in another assignment stops nobody. It never applies a rule: `grader.scoring` does.
"""

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from pydantic import ConfigDict

from grader.course.assignment_tables import RegradeRequestsTable, ResubmissionTable, TriesTable
from grader.course.editions import edition_of
from grader.course.toml_file import FILE, Table, fault, toml_table
from grader.domain.assignment import Assignment
from grader.domain.assignment_rules import CourseLateDays, RegradeRules, Resubmission, Tries
from grader.domain.errors import CourseError
from grader.domain.formatting import moment_problem


def tries(table: TriesTable | None, deadline: datetime | None) -> Tries | None:
    """The rule on feedback before the deadline; None where there is none.

    Raises:
        CourseError: There is no deadline.
    """
    if table is None:
        return None
    if deadline is None:
        raise fault("[tries] has no deadline to count up to. Add 'deadline' above the first table.")
    return Tries(table.feedback)


def resubmission(table: ResubmissionTable | None, deadline: datetime | None) -> Resubmission | None:
    """The rule on resubmissions; None where there is none.

    Raises:
        CourseError: Nothing says when resubmissions end, or they end before they begin.
    """
    if table is None:
        return None
    if deadline is None:
        raise fault("[resubmission] has no deadline to come after. Add 'deadline' above the first table.")
    if (table.until is None) == (table.days is None):
        there = "neither 'until' nor 'days'" if table.until is None else "both 'until' and 'days'"
        raise fault(
            f"[resubmission] has {there}. Say by one of them when resubmissions end: a date and time with "
            "its zone, or days after the deadline."
        )
    if table.until is not None and (problem := moment_problem(table.until, "[resubmission]: 'until'")):
        raise fault(problem)
    if table.until is not None and deadline.utcoffset() is not None and table.until <= deadline:
        raise fault(
            f"[resubmission]: 'until' ({table.until.isoformat()}) is not after the deadline "
            f"({deadline.isoformat()}). Correct one of them."
        )
    return Resubmission(table.regains, table.days, table.until)


def regrade_rules(table: RegradeRequestsTable | None) -> RegradeRules | None:
    """When and how often students may dispute points; None where no requests are taken."""
    return None if table is None else RegradeRules(table.days, table.most, table.answered_by == "another")


# --- order of late days ----------------------------------------------------------------------------------


class _LateTable(Table):
    """Of `[late]`, whether late days may be used."""

    model_config = ConfigDict(extra="ignore")

    tokens: bool = True


class _DeadlineTable(Table):
    """Of `assignment.toml`, when the assignment is due."""

    model_config = ConfigDict(extra="ignore")

    deadline: datetime | None = None
    late: _LateTable = _LateTable()


@dataclass(frozen=True, order=True)
class _Place:
    """Where an assignment stands among those of the course: by its deadline, then by its id."""

    deadline: datetime
    assignment_id: str


def course_late_days(course: Path, assignment: Assignment, count: int) -> CourseLateDays | None:
    """The late days as an assignment sees them; None where it has no deadline, or does not use them.

    Args:
        course: The folder of `course.toml`.
        count: How many a student has for the whole course; 0: none.

    Raises:
        CourseError: What another assignment says of its deadline cannot be used.
    """
    if not count or assignment.deadline is None or not assignment.late.tokens:
        return None
    own = _Place(assignment.deadline, assignment.id)
    paths = (path for path in course.glob(f"reference/*/{FILE}") if path.parent.name != assignment.id)
    others = sorted(place for place in map(_place, paths) if place is not None)
    return CourseLateDays(
        count,
        earlier=tuple(place.assignment_id for place in others if place < own),
        later=tuple(place.assignment_id for place in others if place > own),
    )


def _place(path: Path) -> _Place | None:
    """Where an assignment stands; None where it has no deadline or does not use late days."""
    try:
        table = toml_table(path, _DeadlineTable, edition_of(path.parent))
    except CourseError as error:
        raise CourseError(
            f"{error} It is about '{path.parent.name}', whose deadline the late days of the course depend on."
        ) from None
    if table.deadline is None or not table.late.tokens:
        return None
    if problem := moment_problem(table.deadline, f"{FILE} of '{path.parent.name}': the deadline"):
        raise CourseError(f"{problem} The late days of the course are used in the order of deadlines.")
    return _Place(table.deadline, path.parent.name)
