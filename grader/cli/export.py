"""`grader export`: grades and reports for other programs, a subcommand for each format."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from grader.cli.book import session, session_options
from grader.lms.export_format import ANYWAY, COLUMN, SCALE, Choices, ExportFormat, InputFile, Option
from grader.publishing.formats import FORMATS

if TYPE_CHECKING:
    from grader.publishing.exporting import Exported
    from grader.results.session import SessionRequest


@click.group("export")
def command() -> None:
    """Write grades and reports in the format of an LMS or another program.

    Nothing is exported while a grade awaits a person; --partial leaves such grades out. The output lists
    every row without a result, every result without a row, and every unknown grade. Grades include the
    penalty for lateness. The gradebook records the export as a release: from then on, grades do not fall
    without --allow-lower. The file given with --into is not changed: a filled copy is written into
    OUT/exports, or to --to.

    \b
    Examples:
      grader export moodle-worksheet results --into Grades-Lab8.csv
      grader export canvas results --into gradebook.csv --column "Lab 8"
      grader export feedback-zip results --into Grades-Lab8.csv
    """


def format_command(one: ExportFormat) -> click.Command:
    """The subcommand of a format."""

    def run(
        request: "SessionRequest",
        to: Path | None,
        partial: bool,
        into: Path | None = None,
        **chosen: Any,
    ) -> None:
        from grader.publishing.exporting import ExportRequest, export_grades

        wanted = ExportRequest(one, into, to, _choices(chosen), partial)
        with session(request) as at:
            done = export_grades(at.assignment, at.book, at.out, wanted, who=at.who, now=at.clock())
            _tell(one.noun, done)

    decorators: list[Callable[[Any], Any]] = [
        click.command(one.name, help=one.help),
        click.argument("out", type=click.Path(path_type=Path)),
        click.option(
            "--to",
            type=click.Path(path_type=Path),
            metavar="PATH",
            help="Write here. Default: in OUT/exports.",
        ),
        click.option("--partial", is_flag=True, help="Leave out grades that await a person."),
        session_options,
        *([_input_option(one.into)] if one.into else []),
        *map(_option, one.options),
    ]
    made: Any = run
    for decorate in reversed(decorators):
        made = decorate(made)
    return cast(click.Command, made)


def _input_option(file: InputFile) -> Callable[[Any], Any]:
    path = click.Path(path_type=Path)
    return click.option("--into", type=path, metavar="FILE", required=file.required, help=file.what)


def _option(one: Option) -> Callable[[Any], Any]:
    if one.is_flag:
        return click.option(f"--{one.name}", is_flag=True, help=one.what)
    return click.option(
        f"--{one.name}",
        type=click.Choice(one.values) if one.values else None,
        default=one.default,
        show_default=bool(one.default),
        metavar=one.metavar or None,
        help=one.what,
    )


def _choices(chosen: Mapping[str, Any]) -> Choices:
    common = {COLUMN.name, SCALE.name, ANYWAY.name}
    return Choices(
        **{name: value for name, value in chosen.items() if name in common},
        others={name: value for name, value in chosen.items() if name not in common},
    )


def _tell(noun: str, done: "Exported") -> None:
    """Print what was written, and what somebody should know of it."""
    from grader.domain.formatting import printable

    count = done.export.count
    click.echo(f"{done.place}: {count} {noun if count != 1 else noun.removesuffix('s')}.")
    for remark in done.export.remarks:
        click.echo(printable(f"  {remark}"))
    if done.unnoted:
        click.echo(printable(f"note: {done.unnoted}"), err=True)


for _format in FORMATS:
    command.add_command(format_command(_format))
