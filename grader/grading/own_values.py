"""Whether a homework states the values that were drawn for its student."""

import re
from collections.abc import Mapping

from grader.course.composing import source_text
from grader.course.value_places import marked_values
from grader.domain.assignment import SUBMISSION, Assignment
from grader.domain.drawn_values import OWN_VALUES, DrawnValue, Value, python_text
from grader.domain.evidence import Blame, Finding, Status
from grader.domain.program import Program, Statement
from grader.domain.submission import Submission
from grader.grading.run import Run

TITLE = "The homework has the values that were drawn for its student."
MOST = 200  # characters of an assignment that is looked at


def values_of(run: Run, submission: Submission) -> dict[str, Value]:
    """What was drawn for whoever handed a submission in: of a team, for the first by id."""
    stated = run.assignment.variant
    student_id = submission.team[0] if submission.team else submission.student_id
    return run.course.values(run.assignment.id, stated, student_id) if stated else {}


def own_values_finding(
    assignment: Assignment, program: Program, values: Mapping[str, Value]
) -> Finding | None:
    """What the source states of the values; None where the assignment marks none on its top level.

    It costs nothing by itself: what follows from another's value fails the checks that depend on it. Only
    another choice of the same value is taken for another's; what students compute is theirs.

    Raises:
        CourseError: A mark in the solution is malformed.
    """
    if not assignment.variant:
        return None
    text = source_text(assignment.folder / "solution.py", "solution.py", assignment.edition)
    variables = {
        each.variable: each.name for each in marked_values(text, "solution.py", values) if each.variable
    }
    if not variables:
        return None
    stated = {value.name: value for value in assignment.variant}
    for variable, name in variables.items():
        last = next((one for one in reversed(program.statements) if one.binds == (variable,)), None)
        found = last and _anothers(last, variable, stated[name], values[name])
        if found:
            return found
    return Finding(OWN_VALUES, SUBMISSION, TITLE, Status.PASSED)


def _anothers(statement: Statement, variable: str, stated: DrawnValue, value: Value) -> Finding | None:
    """What is wrong where a statement gives the variable another choice than the one that was drawn."""
    assigned = re.fullmatch(
        rf"{variable}\s*(?::[^=]*)?=\s*(?P<value>.+)", statement.source[:MOST].strip(), re.DOTALL
    )
    written = _compact(assigned["value"]) if assigned else ""
    others = [choice for choice in stated.choices if choice != value]
    another = next((choice for choice in others if _compact(python_text(choice)) == written), None)
    if another is None:
        return None
    whose = "for each student" if stated.per_student else "for each term"
    return Finding(
        OWN_VALUES,
        SUBMISSION,
        TITLE,
        Status.FAILED,
        Blame.STUDENT,
        message=f"`{variable} = {python_text(another)}` is not what was drawn for you: `{stated.name}` is "
        f"drawn {whose}, and yours is {python_text(value)}.",
        hint=f"Write `{variable} = {python_text(value)}`, as in the copy that was handed out to you.",
        where=str(statement.place),
    )


def _compact(text: str) -> str:
    return "".join(text.split()).replace("'", '"')
