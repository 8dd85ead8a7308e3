"""`grader validate`: the checks of an assignment, tried on work whose worth is known."""

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from grader.cli.options import cores
from grader.domain.errors import UsageError

if TYPE_CHECKING:
    from grader.cli.validate_view import ValidateView
    from grader.course.locate import Course


@click.command("validate")
@click.argument("assignment_id", metavar="[ASSIGNMENT]", required=False)
@click.option("--jobs", type=click.IntRange(1), help="Variants at once. Default: one per processor core.")
@click.option(
    "--only", metavar="NAME", help="Only the variants of this name; `*` stands for anything: 'scale_*'."
)
@click.option("--thorough", is_flag=True, help="Every variant meets every check: takes a few minutes.")
@click.option("--course", type=click.Path(path_type=Path), metavar="FOLDER", help="The course's folder.")
def command(
    assignment_id: str | None, jobs: int | None, only: str | None, thorough: bool, course: Path | None
) -> None:
    """Try the checks of ASSIGNMENT on work whose worth is known.

    The reference solution must pass every check, and the bare template must earn nothing. Every legitimate
    form (reference/ASSIGNMENT/forms/*.py) must pass every check. Every mistake (mistakes/*.py) must fail a
    check of its own part and of no other, and be called by its name; nine in ten must be named. Without
    ASSIGNMENT, every assignment of the course is tried.

    The exit code is 0 when all of this holds, 1 when something has to be mended, 2 when it cannot be tried.

    \b
    Examples:
      grader validate vit_defects
      grader validate vit_defects --only 'scale_*'
    """
    from grader.cli.validate_view import ValidateView
    from grader.course.locate import located_course

    found = located_course(course)
    ids = [assignment_id] if assignment_id is not None else found.assignments() or ["ASSIGNMENT"]
    if only is not None and len(ids) > 1:
        raise UsageError(f"--only is about one assignment. Name it: {', '.join(ids)}.")
    view = ValidateView()
    passed = [_validated(found, each, only, jobs or cores(), thorough, view) for each in ids]
    sys.exit(0 if all(passed) else 1)


def _validated(
    course: "Course", assignment_id: str, only: str | None, jobs: int, thorough: bool, view: "ValidateView"
) -> bool:
    """Validate one assignment and show what came of it; whether nothing is wrong."""
    from grader.course.assignment_file import read_assignment
    from grader.course.variants import variants
    from grader.validation.judged_trials import outcomes
    from grader.validation.mutation_report import mutation_report
    from grader.validation.trials import chosen, trials

    started = time.monotonic()
    assignment = read_assignment(course.reference(assignment_id))
    planned = trials(assignment, chosen(variants(assignment), only), thorough=thorough)
    with view.progress(assignment, len(planned)) as report:
        found = outcomes(course, assignment, planned, jobs=jobs, report=report)
    result = mutation_report(assignment, found, complete=only is None)
    view.show(assignment, result, time.monotonic() - started)
    return result.passed
