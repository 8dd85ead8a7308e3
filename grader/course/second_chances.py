"""The tables that are about a student's several submissions: `[tries]` and `[resubmission]`.

It refuses rules that nobody can meet, each with one sentence. It never applies a rule: `grader.scoring`
does.
"""

from datetime import datetime

from grader.course.assignment_tables import ResubmissionTable, TriesTable
from grader.course.toml_file import fault
from grader.domain.assignment import Resubmission, Tries


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
    if table.until is not None and table.until.utcoffset() is None:
        raise fault(
            f"[resubmission]: 'until' has no time zone. Write it as in {table.until.isoformat()}+03:30."
        )
    if table.until is not None and deadline.utcoffset() is not None and table.until <= deadline:
        raise fault(
            f"[resubmission]: 'until' ({table.until.isoformat()}) is not after the deadline "
            f"({deadline.isoformat()}). Correct one of them."
        )
    return Resubmission(table.regains, table.days, table.until)
