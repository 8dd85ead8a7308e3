"""`grader waive`: give a check's points back to the whole class."""

from collections.abc import Sequence
from pathlib import Path

import click

from grader.cli.book import book_options, desk, lower_option, now, reason, told_revision
from grader.domain.edit import Edit, EditKind
from grader.domain.errors import UsageError


@click.command("waive")
@click.argument("out", type=click.Path(path_type=Path))
@click.argument("check")
@click.option("--why", required=True, help="The reason: students and colleagues read it.")
@click.option("--undo", is_flag=True, help="Take the waiver back: the check counts again.")
@book_options
@lower_option
def command(
    out: Path,
    check: str,
    why: str,
    undo: bool,
    assignment_id: str | None,
    course: Path | None,
    gradebook: str | None,
    by: str | None,
    allow_lower: bool,
) -> None:
    """Count CHECK as passed for the whole class of the results folder OUT: the check was wrong.

    No student's code runs. The waiver is kept with who, when and why, and counts for later submissions too.

    \b
    Examples:
      grader waive results vit_adds_positions --why "The handout did not ask for it."
      grader waive results vit_adds_positions --undo --allow-lower --why "It did, on page 2."
    """
    from grader.course.toml_file import remedy

    told = reason(why)
    kind = EditKind.UNWAIVE if undo else EditKind.WAIVE
    with desk(out, assignment_id=assignment_id, course=course, gradebook=gradebook, by=by) as at:
        name, known = check.removeprefix("test_"), [one.id for one in at.assignment.checks]
        if name not in known:
            advice = remedy(name, known, "The class page lists them all.")
            raise UsageError(f"'{at.assignment.id}' has no check '{check}'. {advice}")

        def decide(*_: object) -> Sequence[Edit]:
            return [Edit(kind, at.who, now(), told, target=name)]

        revision = at.revised(f"{kind.value} {name}", decide=decide, allow_lower=allow_lower)
    done = "counts again" if undo else "counts as passed for the whole class"
    told_revision(revision, f"'{name}' {done}.")
