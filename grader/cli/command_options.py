"""The options that several commands share, and the session that commands about a gradebook open.

It holds the decorators for assignment, device, gradebook and person. It also supplies the number of cores,
the operator's name, the time and the session of a class. It prints what a session caught up with and what
a decision changed. It imports nothing slow. It never decides about grades.
"""

import contextlib
import functools
import getpass
import os
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from grader.domain.errors import UsageError

if TYPE_CHECKING:
    from grader.results.class_pages import CatchUp
    from grader.results.revision import Revision
    from grader.results.session import ClassSession, SessionRequest


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


# --- book ------------------------------------------------------------------------------------------------


BOOK_VARIABLE = "GRADER_GRADEBOOK"
WHO_VARIABLE = "GRADER_BY"


def gradebook_option(command: Command) -> Command:
    """`--gradebook`: the parameter `gradebook`."""
    return click.option(
        "--gradebook",
        envvar=BOOK_VARIABLE,
        metavar="URL",
        help="Where the gradebook is, e.g. postgresql://host/name. Default: $GRADER_GRADEBOOK, or "
        "OUT/gradebook.sqlite.",
    )(command)


def by_option(command: Command) -> Command:
    """`--by`: the parameter `by`."""
    return click.option(
        "--by",
        envvar=WHO_VARIABLE,
        metavar="NAME",
        help="Who you are, for the record. Default: $GRADER_BY, or your login name.",
    )(command)


_COURSE = click.option(
    "--course", type=click.Path(path_type=Path), help="The course folder (default: found upward)."
)
_ASSIGNMENT = click.option(
    "--assignment",
    "assignment_id",
    metavar="ID",
    help="The assignment, e.g. vit_defects. Default: the only one in the gradebook.",
)


def book_options(command: Command) -> Command:
    """The options of commands that add to a book: `assignment_id`, `course`, `gradebook`, `by`."""
    for option in (_COURSE, by_option, gradebook_option, _ASSIGNMENT):
        command = option(command)
    return command


def session_options(command: Callable[..., None]) -> Callable[..., None]:
    """The options of commands about the results folder `out`; they get `request`, the session to open."""

    @functools.wraps(command)
    def requested(
        *,
        out: Path,
        assignment_id: str | None,
        course: Path | None,
        gradebook: str | None,
        by: str | None,
        **options: Any,
    ) -> None:
        command(request=session_request(out, assignment_id, course, gradebook, by), **options)

    return book_options(requested)


def session_request(
    out: Path, assignment_id: str | None, course: Path | None, gradebook: str | None, by: str | None
) -> "SessionRequest":
    """What `book_options` give, as a request.

    Raises:
        UsageError: It is not known who runs the command.
    """
    from grader.results.session import SessionRequest

    return SessionRequest(out, operator(by), assignment_id, course, gradebook)


def decision_options(command: Callable[..., None]) -> Callable[..., None]:
    """The options of commands that decide something: those of `session_options`, and `allow_lower`."""
    return session_options(lower_option(command))


def lower_option(command: Command) -> Command:
    """`--allow-lower`: the parameter `allow_lower`."""
    return click.option("--allow-lower", is_flag=True, help="Allow released grades to fall.")(command)


def operator(by: str | None) -> str:
    """The name of the person who runs the command.

    Raises:
        UsageError: It is not known.
    """
    from grader.domain.formatting import printable

    name = " ".join(printable(by or "").split())
    if not name:
        try:
            name = getpass.getuser()
        except (OSError, KeyError, ImportError):
            raise UsageError(f"Say who you are, for the record: --by NAME, or ${WHO_VARIABLE}.") from None
    return name


def now() -> datetime:
    """The time, to a second."""
    return datetime.now(UTC).replace(microsecond=0)


@contextlib.contextmanager
def session(request: "SessionRequest") -> Iterator["ClassSession"]:
    """The gradebook that a command works on; what was caught up with is printed.

    Raises:
        UsageError: There is no such gradebook or assignment.
        CourseError: A file of the course is malformed.
    """
    from grader.results.session import class_session

    with class_session(request, clock=now, on_catch_up=print_catch_up) as opened:
        yield opened


def print_catch_up(catch_up: "CatchUp") -> None:
    """Print that files showed an earlier state of the gradebook."""
    from grader.domain.formatting import printable

    click.echo(printable(f"note: {catch_up}"), err=True)


def print_revision(revision: "Revision", done: str) -> None:
    """Print whose total changed, from which points to which, and what was done."""
    from grader.domain.formatting import printable

    for change in revision.changes:
        click.echo(printable(str(change)))
    if revision.stray:
        click.echo(
            printable(
                f"note: the assignment no longer has {', '.join(revision.stray)}; what people decided about "
                "it is kept and does not count."
            ),
            err=True,
        )
    totals = len(revision.changes)
    click.echo(printable(f"{done} {totals} {'total' if totals == 1 else 'totals'} changed.".lstrip()))
