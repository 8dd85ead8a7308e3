"""`python -m grader.cli.forms docs/instructor.md` renews the tables of forms and mistakes in a page."""

import sys
from pathlib import Path

import click

from grader.domain.errors import GraderError


@click.command()
@click.argument("page", type=click.Path(path_type=Path, exists=True, dir_okay=False))
def command(page: Path) -> None:
    """Renew the tables between the marks in PAGE, from the course around it."""
    from grader.course.locate import located_course
    from grader.course.variants import with_tables

    text = page.read_text(encoding="utf-8")
    try:
        renewed = with_tables(text, located_course(working=page.resolve().parent))
    except GraderError as error:
        sys.exit(f"error: {error}")
    page.write_text(renewed, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    command()
