"""The command line. Each command's module is imported when the command runs, so that help is instant."""

import difflib
import importlib
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import click

from grader import __version__
from grader.cli.commands import COMMANDS, GROUPS
from grader.domain.errors import GraderError
from grader.files.atomic import lacks_room


class Fault(click.ClickException):
    """An error whose message is a sentence for the person at the terminal."""

    exit_code = 2

    def show(self, file: Any = None) -> None:
        """Print it."""
        lines = f"error: {self.message}".splitlines()
        if sys.stderr.isatty():
            width = min(shutil.get_terminal_size().columns, 100)
            lines = [click.wrap_text(line, width) for line in lines]
        click.echo("\n".join(lines), file=file, err=file is None)


class FaultOfOurs(Fault):
    """An error that nobody foresaw."""

    exit_code = 3


class Stopped(click.ClickException):
    """The person interrupted the command."""

    exit_code = 130

    def __init__(self) -> None:
        super().__init__("Stopped.")

    def show(self, file: Any = None) -> None:
        """Say so."""
        click.echo(self.message, file=file, err=file is None)


class LazyGroup(click.Group):
    """A group that imports a command's module when the command is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All names, in the order of the help."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name."""
        if cmd_name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[cmd_name][0].partition(":")
        command: click.Command = getattr(importlib.import_module(module), attribute)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that the arguments begin with; for a misspelled one, the one that is meant."""
        close = difflib.get_close_matches(args[0], COMMANDS, n=1) if args else []
        if close and args[0] not in COMMANDS:
            ctx.fail(f"No such command '{args[0]}'. Did you mean '{close[0]}'?")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The commands, by who uses them."""
        for title, commands in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(name, text) for name, (_, text) in commands.items()], col_max=16)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; whatever goes wrong in it is reported in a sentence."""
        try:
            return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except KeyboardInterrupt:
            raise Stopped from None
        except GraderError as error:
            if _wants_traceback(ctx):
                raise
            raise Fault(str(error)) from None
        except BrokenPipeError:
            raise  # the reader (`head`) has seen enough: click leaves quietly
        except Exception as error:
            if _wants_traceback(ctx):
                raise
            if lacks_room(error):
                raise Fault(_full_disk(error)) from None
            raise FaultOfOurs(_our_fault(error)) from None


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="grader")
@click.option(
    "--course",
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="The course's folder. Default: $GRADER_COURSE, or the nearest folder upward with a course.toml.",
)
@click.option(
    "--traceback", is_flag=True, help="Show where an error arose, for reporting a fault of the grader."
)
@click.pass_context
def cli(ctx: click.Context, course: Path | None, traceback: bool) -> None:
    """Check, train and grade deep-learning homework.

    \b
    A student, in the folder that the course handed out:
      grader check                        the public checks on homework.py
      grader train --data dataset.zip     the accuracy that your grade is measured by
      grader pack --id 400101204          the files to hand in, verified
    \b
    A teaching assistant, in the course's folder:
      grader grade download.zip --assignment vit_defects --data NEU-CLS.zip --out results

    `grader COMMAND --help` tells more about a command, with examples.
    """
    ctx.obj = {"traceback": traceback}
    name = ctx.invoked_subcommand
    chosen = ctx.command.get_command(ctx, name) if isinstance(ctx.command, click.Group) and name else None
    if course is not None and chosen is not None and name is not None:
        ctx.default_map = {name: _course_defaults(chosen, course)}


def _course_defaults(command: click.Command, course: Path) -> dict[str, Any]:
    """The course as the default of a command's own `--course`, and of those of all commands below it."""
    below = command.commands if isinstance(command, click.Group) else {}
    return {
        "course": course,
        **{name: _course_defaults(subcommand, course) for name, subcommand in below.items()},
    }


def main() -> None:
    """Run the command line."""
    for stream in (sys.stdout, sys.stderr):
        # an old console that cannot print a letter prints a question mark, and the command goes on
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    cli(prog_name="grader")


def _wants_traceback(ctx: click.Context) -> bool:
    return bool((ctx.obj or {}).get("traceback")) or os.environ.get("GRADER_DEBUG", "") not in ("", "0")


def _full_disk(error: Exception) -> str:
    """What to do where a disk is full; it may be that of the files that nobody sees."""
    file = getattr(error, "filename", None)
    what = f"{file} cannot be written: its disk is full." if file else "A disk is full."
    return (
        f"{what} Make room for the results, and for temporary files in {tempfile.gettempdir()} (TMPDIR names "
        "another folder). Then run the same command again: what is done is kept."
    )


def _our_fault(error: Exception) -> str:
    text = " ".join(str(error).split())[:300]
    named_error = f"{type(error).__name__}: {text}" if text else type(error).__name__
    return (
        f"This is a fault of the grader, not of your files ({named_error}). Run the command again as "
        "`grader --traceback ...` and report what it prints."
    )
