"""`grader new-course`: the folder of a course."""

from pathlib import Path

import click


@click.command("new-course")
@click.argument("folder", type=click.Path(path_type=Path), metavar="FOLDER")
@click.option("--title", metavar="TEXT", help="What people read. Default: made of the folder's name.")
def command(folder: Path, title: str | None) -> None:
    """Make the FOLDER of a course, with its own secret.

    \b
    Example:
      grader new-course deep_learning --title "Deep learning, spring"
    """
    from grader.course.beginning import begin_course

    for path in begin_course(folder, title or folder.resolve().name.replace("_", " ").capitalize()):
        click.echo(path)
    click.echo("\nNext, there:")
    click.echo("  grader new-assignment first_homework --like minimal")
