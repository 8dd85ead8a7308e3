"""What `grader program` prints."""

from pathlib import Path

import click

from grader.cli.check_view import training_rows
from grader.cli.page import Page
from grader.domain.formatting import printable
from grader.domain.plan import Plan
from grader.domain.program import Program

NUMBER_WIDTH = 5


def show_program(program: Program, plan: Plan, path: Path, model: str, *, code: bool) -> None:
    """Print what trains the model that counts, and what is left alone.

    Args:
        path: Of the file.
        model: What people call it, where several are measured.
        code: Print the statements, too.
    """
    page = Page()
    page.heading(f"{path.name}: what trains the {model or 'model that counts'}")
    page.pairs(training_rows(program, None, plan))
    for omission in plan.left_alone:
        page.detail(f"{omission.place}  {omission.first_line}", style="dim", indent=2)
    if code:
        page.heading("Executed to train")
        shown = path.name
        for statement in program.script.statements:
            if statement.place.file != shown:
                shown = statement.place.file
                page.detail(shown, style="dim", indent=0)
            for number, line in enumerate(statement.source.split("\n"), start=statement.place.line):
                if line.strip():
                    click.echo(printable(f"{number:{NUMBER_WIDTH}}  {line}"))
