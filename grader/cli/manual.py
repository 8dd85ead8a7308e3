"""The parts of the documentation that the program writes: the page of commands, and tables in a page.

`python -m grader.cli.manual > docs/commands.md` writes the help of all commands as one page.
`python -m grader.cli.manual --tables docs/instructor.md` renews the tables of forms and mistakes in a page.
"""

import sys
from pathlib import Path

import click

from grader.cli import cli
from grader.cli.commands import COMMANDS
from grader.domain.errors import GraderError

WIDTH = 100


def manual() -> str:
    """The text of docs/commands.md."""
    parts = ["# Commands", "", "What `--help` says about each, generated from the program.", ""]
    root = click.Context(
        cli,
        info_name="grader",
        terminal_width=WIDTH,
        max_content_width=WIDTH,
        help_option_names=cli.context_settings["help_option_names"],
    )
    for name in COMMANDS:
        command = cli.get_command(root, name)
        if command is not None:
            parts += _described(command, root, name)
    return "\n".join(parts)


def _described(command: click.Command, parent: click.Context, name: str) -> list[str]:
    context = click.Context(
        command, info_name=name, parent=parent, terminal_width=WIDTH, max_content_width=WIDTH
    )
    lines = [line.rstrip() for line in command.get_help(context).splitlines()]
    lines_of_page = [f"## {context.command_path}", "", "```", *lines, "```", ""]
    if isinstance(command, click.Group):
        for inner in command.list_commands(context):
            part = command.get_command(context, inner)
            if part is not None:
                lines_of_page += _described(part, context, inner)
    return lines_of_page


@click.command()
@click.option("--tables", "page", type=click.Path(path_type=Path, exists=True, dir_okay=False))
def command(page: Path | None) -> None:
    """Print the page of commands; or renew the tables between the marks in PAGE, from its course."""
    from grader.course.homework_versions import with_tables
    from grader.course.locate import located_course

    if page is None:
        click.echo(manual(), nl=False)
        return
    text = page.read_text(encoding="utf-8")
    try:
        renewed = with_tables(text, located_course(working=page.resolve().parent))
    except GraderError as error:
        sys.exit(f"error: {error}")
    page.write_text(renewed, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    command()
