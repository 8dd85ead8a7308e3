"""The order in which the assignments of a course use its late days: that of their deadlines.

It reads of every assignment's file only what this depends on, so that a mistake elsewhere in another
assignment stops nobody. It never decides how many late days a submission uses: `grader.scoring` does.
"""

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from pydantic import ConfigDict

from grader.course.editions import edition_of
from grader.course.toml_file import FILE, Table, toml_table
from grader.domain.assignment import Assignment, LateTokens
from grader.domain.errors import CourseError


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


def late_tokens(course: Path, assignment: Assignment, count: int) -> LateTokens | None:
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
    return LateTokens(
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
    if table.deadline.utcoffset() is None:
        raise CourseError(
            f"{FILE} of '{path.parent.name}': the deadline has no time zone, and the late days of the course "
            f"are used in the order of deadlines. Write it as in {table.deadline.isoformat()}+03:30."
        )
    return _Place(table.deadline, path.parent.name)
