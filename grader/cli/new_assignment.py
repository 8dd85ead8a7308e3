"""`grader new-assignment`: a small assignment that validates at once, to begin with."""

from pathlib import Path

import click

from grader.course.beginning import KINDS


@click.command("new-assignment")
@click.argument("assignment_id", metavar="ID")
@click.option(
    "--like",
    "kind",
    type=click.Choice(KINDS),
    default="minimal",
    show_default=True,
    help="What it is about: plain Python, numpy, tokens, or a model trained on images.",
)
@click.option("--title", metavar="TEXT", default="", help="What people read. Default: made of the id.")
@click.option("--course", type=click.Path(path_type=Path), metavar="FOLDER", help="The course's folder.")
def command(assignment_id: str, kind: str, title: str, course: Path | None) -> None:
    """Write a small assignment ID into the course: a solution, checks, mistakes and a form.

    It validates as it is. Change it piece by piece, and validate after each change.

    \b
    Examples:
      grader new-assignment first_homework
      grader new-assignment attention --like text --title "Attention by hand"
    """
    from grader.course.beginning import begin_assignment
    from grader.course.locate import located_course

    found = located_course(course)
    written = begin_assignment(found, assignment_id, kind, title)
    for path in written:
        click.echo(path.relative_to(found.root))
    measured = any(path.parent.name == "datasets" for path in written)
    click.echo("\nNext:")
    click.echo(f"  grader validate {assignment_id}{'' if not measured else '          and with --train'}")
    click.echo(f"  grader template {assignment_id}")
    data = " --data synthetic" if measured else ""
    click.echo(f"  grader grade SUBMISSIONS --assignment {assignment_id}{data} --out results")
