"""What several commands' options have in common."""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])


def assignment_options(command: Command) -> Command:
    """Options that say which assignment the command is about: `folder`, `assignment_id`, `course`."""
    for option in (
        click.option(
            "--course",
            type=click.Path(path_type=Path),
            metavar="FOLDER",
            help="The course's folder, for --assignment. Default: found upward from here.",
        ),
        click.option(
            "--assignment",
            "assignment_id",
            metavar="ID",
            help="In a course's own folder: the assignment, e.g. vit_defects.",
        ),
        click.option(
            "--assignment-folder",
            "folder",
            type=click.Path(path_type=Path),
            metavar="FOLDER",
            help="The folder that the course handed out, if it is neither the file's folder nor this one.",
        ),
    ):
        command = option(command)
    return command


def device_option(command: Command) -> Command:
    """`--device`: where others' submissions are trained."""
    return click.option(
        "--device",
        type=click.Choice(["auto", "cpu", "cuda"]),
        default="auto",
        show_default=True,
        help="Where training runs; auto takes a GPU if there is one.",
    )(command)


def cores() -> int:
    """The processor cores that this process may use: the default of `--jobs`."""
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
