"""The commands about what is kept of a person: `grader export-person` and `grader forget`.

They read the options, show what would go or what was done, and set the exit code. What is about a person,
and what becomes of it, is decided in `grader.privacy`.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from grader.cli.command_options import by_option, gradebook_option, now, operator
from grader.domain.errors import UsageError

if TYPE_CHECKING:
    from grader.privacy.forgetting import ForgetPlan, Forgotten
    from grader.privacy.kept_files import KeptFile

_SHOWN = 200  # files
_COURSE = click.option(
    "--course", type=click.Path(path_type=Path), help="The course folder (default: found upward)."
)
_ALSO = click.option(
    "--also",
    type=click.Path(path_type=Path),
    multiple=True,
    metavar="PATH",
    help="A further file or folder: an older publication, a download, a copy. May be repeated.",
)


@click.command("forget")
@click.argument("out", type=click.Path(path_type=Path))
@click.argument("student", metavar="[ID]", required=False)
@click.option(
    "--before",
    metavar="DATE",
    help="Instead of ID: all about whom nothing was added since then (2026-01-31).",
)
@click.option(
    "--yes", is_flag=True, help="Do it. Without this, what would go is listed, and nothing changes."
)
@click.option(
    "--name",
    "names",
    multiple=True,
    metavar="NAME",
    help="A name of the person that no LMS gave. May be repeated.",
)
@_ALSO
@_COURSE
@gradebook_option
@by_option
def forget_command(
    out: Path,
    student: str | None,
    before: str | None,
    yes: bool,
    names: tuple[str, ...],
    also: tuple[Path, ...],
    course: Path | None,
    gradebook: str | None,
    by: str | None,
) -> None:
    """Forget the person with this ID in the results folder OUT: the only deletion that there is.

    Everything about the person goes: rows of the gradebook, pages, exports, what publications and marking
    sheets say. Others' records stay, without the mention. Without --yes, it lists what would go. It cannot be
    taken back. It cannot reach your backups, what was sent to an LMS or by mail, and PostgreSQL's own log.
    Interrupted, run it again. Exit code 1: something is left, and is listed.

    \b
    Examples:
      grader export-person results 400101204
      grader forget results 400101204
      grader forget results 400101204 --yes
      grader forget results --before 2024-09-30 --also old_publication --yes
    """
    from grader.privacy.forgetting import ForgetRequest, forget, planned

    if (student is None) == (before is None):
        raise UsageError("Give either the ID of a person, or --before DATE.")
    moment = None if before is None else _day(before)
    request = ForgetRequest(out, operator(by), student, moment, names, also, course, gradebook)
    if not yes:
        _tell_plan(planned(request))
        return
    done = forget(request, clock=now)
    _tell_done(done)
    if done.left or not done.is_finished:
        raise click.exceptions.Exit(1)


def _day(text: str) -> datetime:
    """The beginning of a day, here.

    Raises:
        UsageError: It is no date.
    """
    try:
        return datetime.strptime(text.strip(), "%Y-%m-%d").astimezone()
    except ValueError:
        raise UsageError(f"--before {text}: is not a date. Write it as in 2026-01-31.") from None


def _tell_plan(plan: "ForgetPlan") -> None:
    from grader.domain.formatting import counted

    if not plan.ids:
        click.echo("Nobody would be forgotten: something newer is kept about everybody.")
        return
    click.echo(f"{_who(plan)} would be forgotten. Nothing was changed: add --yes to do it.")
    _tell_rows(plan.rows)
    _tell_files(plan.going)
    if plan.left:
        click.echo(f"  {counted(len(plan.left), 'file')} would be left, for you to decide:")
        _tell_left(f"{file.path}: {file.cleaned.why}" for file in plan.left)
    if plan.resumes:
        click.echo("  An earlier `grader forget` was cut short; --yes also finishes that.")


def _who(plan: "ForgetPlan") -> str:
    from grader.domain.formatting import counted, listed

    return f"{counted(len(plan.ids), 'person')}: {listed(plan.ids)}" if len(plan.ids) > 1 else plan.ids[0]


def _tell_rows(rows: Mapping[str, int]) -> None:
    for table, count in rows.items():
        click.echo(f"  gradebook, {table}: {count}")


def _tell_files(files: "Iterable[KeptFile]") -> None:
    from grader.domain.formatting import printable
    from grader.privacy.kept_files import by_kind

    files = list(files)
    for kind, count in by_kind(files).items():
        click.echo(f"  {kind}: {count}")
        for file in [file for file in files if file.kind == kind][:_SHOWN]:
            click.echo(printable(f"    {file.path} {file.cleaned.fate.value}"))
        if count > _SHOWN:
            click.echo(f"    and {count - _SHOWN} more")


def _tell_left(lines: Iterable[str]) -> None:
    from grader.domain.formatting import printable

    for line in lines:
        click.echo(printable(f"    {line}"))


def _tell_done(done: "Forgotten") -> None:
    from grader.domain.formatting import counted, printable

    plan = done.plan
    if not done.is_finished:
        click.echo(f"Not finished: {counted(len(done.left), 'file')} could not be removed or written.")
    elif not plan.ids:
        click.echo("Nobody was forgotten: something newer is kept about everybody.")
    elif plan.rows or plan.going:
        click.echo(f"Forgotten: {counted(len(plan.ids), 'person')}, {counted(len(plan.going), 'file')}.")
    else:
        click.echo("What an earlier `grader forget` had left was finished.")
    _tell_rows(done.rows)
    for remark in done.remarks:
        click.echo(printable(f"note: {remark}"), err=True)
    if done.left:
        click.echo("  Left:")
        _tell_left(done.left)


# --- export-person ---------------------------------------------------------------------------------------


@click.command("export-person")
@click.argument("out", type=click.Path(path_type=Path))
@click.argument("student", metavar="ID")
@click.option(
    "--to",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="A new zip. Default: OUT/exports/person-ID.zip.",
)
@_ALSO
@gradebook_option
def export_person_command(
    out: Path, student: str, to: Path | None, also: tuple[Path, ...], gradebook: str | None
) -> None:
    """Put together all that is kept about the person with this ID in the results folder OUT, as a zip.

    index.html in it is the page to begin with. It holds the records of the gradebook, marks and comments as
    tables, the parts of the work that are kept, the pages, what was pushed, and what other files say. Names
    of markers and of other students are left out. Give it to the person alone.

    \b
    Example:
      grader export-person results 400101204
    """
    from grader.domain.formatting import counted
    from grader.privacy.person_export import PersonRequest, export_person

    place, count = export_person(PersonRequest(out, student, to, also, gradebook), now=now())
    click.echo(f"{place}: {counted(count, 'file')} about {student}.")
