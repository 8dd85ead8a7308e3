"""Options about the process that stays warm between checks."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])


def warm_options(command: Command) -> Command:
    """`--no-warm`, which the command is told as `warm`; `--stop`, after which it is not run at all."""
    for option in (
        click.option(
            "--stop",
            is_flag=True,
            is_eager=True,
            expose_value=False,
            callback=_stop,
            help="End the processes that stay warm for the next check, and do nothing else.",
        ),
        click.option(
            "--no-warm",
            "warm",
            is_flag=True,
            flag_value=False,
            default=True,
            help="Use and leave no warm process; $GRADER_WARM=0 does the same.",
        ),
    ):
        command = option(command)
    return command


def _stop(context: click.Context, parameter: click.Parameter, given: bool) -> None:
    if not given or context.resilient_parsing:
        return
    from grader.students.warm.asking import stop

    ended = stop()
    click.echo("One warm process was ended." if ended == 1 else f"{ended or 'No'} warm processes were ended.")
    context.exit()
