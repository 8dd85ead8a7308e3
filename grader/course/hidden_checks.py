"""What students are told of the checks that they do not have: which part each judges, and its weight."""

import json
from collections.abc import Sequence

from grader.course.assignment_tables import HiddenCheckTable
from grader.course.contradictions import fault
from grader.course.toml_file import listing, remedy
from grader.domain.assignment import SUBMISSION, CheckSpec, HiddenCheck

KEY = "hidden_check"
_HEAD = """

# --- What is looked at when it is graded ------------------------------------------------------------------
# Written by `grader template`: the checks that students do not have, each with its weight within its
# component. `seen = true`: public checks look at the same.
"""


def hidden_checks_text(checks: Sequence[CheckSpec]) -> str:
    """The tables that go into a student's assignment.toml, of all checks that are not public.

    They hold what a student reads in the report anyway: no name of a check, and nothing of what it does.
    """
    seen = {cause for check in checks if check.public for cause in check.because}
    tables = [
        f"\n[[{KEY}]]\n"
        f"component = {json.dumps(check.component)}\n"
        f"title = {json.dumps(check.title, ensure_ascii=False)}\n"
        f"weight = {check.weight:g}\n" + ("seen = true\n" if check.id in seen else "")
        for check in checks
        if not check.public
    ]
    return _HEAD + "".join(tables) if tables else ""


def told_checks(
    tables: Sequence[HiddenCheckTable], components: Sequence[str], *, public_only: bool
) -> tuple[HiddenCheck, ...]:
    """What a student's copy tells of the checks that it lacks.

    Args:
        components: The names of the assignment's components.
        public_only: It is a student's copy; in the reference nothing may be told.

    Raises:
        CourseError: A table stands where none may, or names a component that there is not.
    """
    if tables and not public_only:
        raise fault(f"[[{KEY}]] is what `grader template` writes into the students' copy. Remove it here.")
    for table in tables:
        if table.component not in (*components, SUBMISSION):
            advice = remedy(table.component, components, f"There are {listing(components)}.")
            raise fault(f"[[{KEY}]]: there is no component '{table.component}'. {advice}")
    return tuple(HiddenCheck(table.component, table.title, table.weight, table.seen) for table in tables)
