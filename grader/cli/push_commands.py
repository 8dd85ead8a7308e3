"""`grader push`: shows how grades differ from those in an LMS, and sends what is new or changed.

It reads the options and the token, prints the difference, and reports progress. What is sent is decided in
`grader.publishing.push`; how, in `grader.lms`. The token comes from the environment or the system's keyring,
never from the command line, which other users of a machine can see.
"""

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from grader.cli.command_options import by_option, gradebook_option, session, session_request
from grader.domain.errors import UsageError

if TYPE_CHECKING:
    from grader.lms.online_assignment import OnlineAssignment
    from grader.lms.web_session import WebSession
    from grader.publishing.push import Line, Push, Pushed

KEYRING_SERVICE = "grader push {lms}"
FAILED = 1  # the exit code if something could not be sent for some students
_SECONDS_BETWEEN = 5.0  # lines of progress
_LONGEST_TOKEN = 4096


@click.group("push")
def push_command() -> None:
    """Send grades, comments and reports to an LMS by its web services.

    First the difference is shown: what is new, changed, the same, edited there, or unknown. Then the grade, a
    comment and the report are sent for each student whose grade is new or changed. Nothing is sent while a
    grade awaits a person; --partial leaves such grades out. What was edited in the LMS stays as it is. If the
    command is interrupted, run it again: it goes on, and sends nothing twice.

    \b
    Examples:
      grader push canvas results --url https://canvas.example.edu --course 1201 --assignment 88 --dry-run
      grader push moodle results --url https://moodle.example.edu --course 42 --assignment 977
    """


def _push_options(command: Callable[..., None]) -> Callable[..., None]:
    options = (
        click.option("--dry-run", is_flag=True, help="Show the difference, and send nothing."),
        click.option("--partial", is_flag=True, help="Leave out grades that await a person."),
        click.option(
            "--scale",
            is_flag=True,
            help="Scale the grades if the LMS has another maximum, instead of refusing.",
        ),
        click.option("--allow-lower", is_flag=True, help="Allow grades that stand in the LMS to fall."),
        click.option(
            "--overwrite",
            metavar="ID",
            help="Send the grade of this student although it was edited in the LMS; needs --why.",
        ),
        click.option("--why", metavar="TEXT", default="", help="The reason for --overwrite, for the record."),
        click.option(
            "--course",
            "course_id",
            required=True,
            metavar="NUMBER",
            help="The course in the LMS: the number in its address.",
        ),
        click.option(
            "--graded-assignment",
            "assignment_id",
            metavar="ID",
            help="The assignment here, e.g. vit_defects. Default: the only one in the gradebook.",
        ),
        click.option(
            "--course-folder",
            "course",
            type=click.Path(path_type=Path),
            metavar="FOLDER",
            help="The course folder here. Default: found upward.",
        ),
        gradebook_option,
        by_option,
        click.argument("out", type=click.Path(path_type=Path)),
    )
    for option in reversed(options):
        command = option(command)
    return command


def _url_option(name: str, variable: str) -> Callable[[Any], Any]:
    return click.option(
        "--url",
        envvar=variable,
        metavar="ADDRESS",
        help=f"The address of {name}, such as https://{name.lower()}.example.edu. Default: ${variable}.",
    )


def _assignment_option(what: str) -> Callable[[Any], Any]:
    return click.option("--assignment", "there", required=True, metavar="NUMBER", help=what)


@push_command.command("canvas")
@_push_options
@_url_option("Canvas", "CANVAS_URL")
@_assignment_option("The assignment in Canvas: the number in its address.")
def canvas_command(**options: Any) -> None:
    """Send the grades of the results folder OUT to Canvas.

    The token (in Canvas: Account, Settings, New Access Token) is read from $CANVAS_TOKEN, or from the
    system's keyring.

    \b
    Example:
      grader push canvas results --url https://canvas.example.edu --course 1201 --assignment 88 --dry-run
    """
    _run("canvas", **options)


@push_command.command("moodle")
@_push_options
@_url_option("Moodle", "MOODLE_URL")
@_assignment_option("The assignment in Moodle: the number at the end of its address, after id=.")
def moodle_command(**options: Any) -> None:
    """Send the grades of the results folder OUT to Moodle.

    The token (in Moodle: Preferences, Security keys) is read from $MOODLE_TOKEN, or from the system's
    keyring. An administrator has to allow web services first.

    \b
    Example:
      grader push moodle results --url https://moodle.example.edu --course 42 --assignment 977
    """
    _run("moodle", **options)


def _run(
    lms: str,
    *,
    out: Path,
    url: str | None,
    course_id: str,
    there: str,
    assignment_id: str | None,
    course: Path | None,
    gradebook: str | None,
    by: str | None,
    dry_run: bool,
    partial: bool,
    scale: bool,
    allow_lower: bool,
    overwrite: str | None,
    why: str,
) -> None:
    from grader.lms.web_session import WebSession, require_packages, site_address
    from grader.publishing.push import Push, PushRequest, release_of

    variable = f"{lms.upper()}_URL"
    if not url:
        raise UsageError(f"Say where {lms.capitalize()} is: --url ADDRESS, or ${variable}.")
    for number in (course_id, there):
        if not (number.isascii() and number.isdecimal()):
            raise UsageError(
                f"'{number}' is not a number. Take it from the address that a browser shows there."
            )
    if bool(overwrite) != bool(why.strip()):
        raise UsageError("--overwrite and --why belong together: say whose grade, and the reason.")
    require_packages()
    site = site_address(url, "The address given with --url")
    web = WebSession(site, token(lms, site), on_wait=_tell_wait)
    request = PushRequest(
        target=(lms, site, course_id, there),
        scale=scale,
        allow_lower=allow_lower,
        overwrite={overwrite: why.strip()} if overwrite else {},
    )
    with session(session_request(out, assignment_id, course, gradebook, by)) as opened:
        push = Push(release_of(opened, partial=partial), _online(lms, web, course_id, there), request)
        _tell_difference(push)
        if not dry_run:
            _send(push)


def _online(lms: str, web: "WebSession", course: str, assignment: str) -> "OnlineAssignment":
    if lms == "canvas":
        from grader.lms.canvas.canvas_service import CanvasOnline

        return CanvasOnline(web, course, assignment)
    from grader.lms.moodle.moodle_service import MoodleOnline

    return MoodleOnline(web, course, assignment)


def token(lms: str, site: str) -> str:
    """The token for an LMS, from the environment or the system's keyring.

    Raises:
        UsageError: There is none, or it cannot be one.
    """
    variable, service = f"{lms.upper()}_TOKEN", KEYRING_SERVICE.format(lms=lms)
    text = os.environ.get(variable, "").strip() or _kept(service, site)
    if not text:
        raise UsageError(
            f"There is no token for {lms.capitalize()}. Put it into the environment as {variable}, or into "
            f"the system's keyring: `keyring set '{service}' {site}` (pip install keyring)."
        )
    if len(text) > _LONGEST_TOKEN or not text.isascii() or not text.isprintable() or " " in text:
        raise UsageError(f"What {variable} or the keyring holds cannot be a token. Copy it again.")
    return text


def _kept(service: str, site: str) -> str:
    """The token in the system's keyring; empty if there is none, or no keyring."""
    try:
        import keyring
        from keyring.errors import KeyringError
    except ImportError:
        return ""
    try:
        return str(keyring.get_password(service, site) or "").strip()
    except KeyringError:
        return ""


# --- what is printed -------------------------------------------------------------------------------------


def _tell_wait(seconds: float, reason: str) -> None:
    if seconds >= _SECONDS_BETWEEN:
        click.echo(f"waiting {seconds:.0f} s: {reason}", err=True)


def _tell_difference(push: "Push") -> None:
    """Print how many students are new, changed, ..., and a line for each but those who are the same."""
    from grader.domain.formatting import printable
    from grader.publishing.push import PushState

    counts = {state: sum(line.state is state for line in push.lines) for state in PushState}
    click.echo(", ".join(f"{count} {state.value}" for state, count in counts.items() if count) + ".")
    for state in PushState:
        for line in push.lines:
            if line.state is state and state is not PushState.SAME:
                click.echo(printable(f"  {line.name}: {_described(line)}"))
    for remark in push.remarks:
        click.echo(printable(f"note: {remark}"))


def _described(line: "Line") -> str:
    from grader.domain.formatting import points
    from grader.publishing.push import PushState

    grades = ""
    if line.state is PushState.NEW:
        grades = f", {points(line.after)}"
    elif line.state in (PushState.CHANGED, PushState.EDITED):
        before = "no grade" if line.before is None else points(line.before)
        after = "no grade" if line.after is None else points(line.after)
        grades = f", {before} there and {after} here{', which is less' if line.falls else ''}"
    elif line.before is not None:
        grades = f", {points(line.before)} there"
    return f"{line.state.value}{grades}{f' ({line.detail})' if line.detail else ''}"


def _send(push: "Push") -> None:
    """Send, and print the progress and what failed."""
    from grader.domain.formatting import counted, printable

    done, last = 0, time.monotonic()

    def watch(number: int, total: int, seconds: float) -> None:
        nonlocal done, last
        done = number
        if time.monotonic() - last >= _SECONDS_BETWEEN and number < total:
            last = time.monotonic()
            click.echo(f"{number} of {total}, about {seconds:.0f} s left", err=True)

    try:
        pushed: Pushed = push.send(watch)
    except BaseException:
        if done:
            click.echo(
                f"{done} of {len(push.to_send)} students are done. Run the command again: it goes on.",
                err=True,
            )
        raise
    if not push.to_send:
        click.echo("Nothing to send.")
        return
    click.echo(f"Sent for {counted(len(pushed.sent), 'student')}.")
    for student_id, problem in pushed.failed.items():
        click.echo(printable(f"  {student_id}: not sent: {problem}"), err=True)
    if pushed.failed:
        click.echo(
            f"Not sent for {counted(len(pushed.failed), 'student')}. Run the command again to try it again.",
            err=True,
        )
        raise click.exceptions.Exit(FAILED)
