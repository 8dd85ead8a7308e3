"""`grader regrade`: score stored evidence again, with today's rubric."""

from datetime import UTC, datetime
from pathlib import Path

import click

from grader.domain.errors import UsageError


@click.command("regrade")
@click.argument("out", type=click.Path(path_type=Path))
@click.option("--assignment", "assignment_id", required=True, help="The assignment's id, e.g. vit_defects.")
@click.option("--course", type=click.Path(path_type=Path), help="The course folder (default: found upward).")
def command(out: Path, assignment_id: str, course: Path | None) -> None:
    """Score the evidence in OUT again, with the rubric as it is now. No student's code runs.

    \b
    Example:
      grader regrade results --assignment vit_defects
    """
    from grader.course.assignment_file import read_assignment
    from grader.course.locate import located_course
    from grader.pipeline.class_run import regraded

    if not (out / "evidence").is_dir():
        raise UsageError(f"{out}: there is no evidence in it. Give the --out folder of `grader grade`.")
    assignment = read_assignment(located_course(course).reference(assignment_id))
    changes = regraded(assignment, out, clock=lambda: datetime.now(UTC).replace(microsecond=0))
    changed = 0
    for result, before in changes:
        if result.score.total != before:
            changed += 1
            click.echo(f"{result.score.student_id}: {_points(before)} -> {_points(result.score.total)}")
    click.echo(f"{len(changes)} submissions scored again, {changed} totals changed.")


def _points(value: float | None) -> str:
    return "none" if value is None else f"{value:g}"
