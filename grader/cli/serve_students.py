"""`grader serve-students`: the students' own pages, on an origin of their own."""

import csv
import io
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import click

from grader.cli.command_options import now, session_options
from grader.cli.web_options import listening_options, web_packages
from grader.domain.errors import UsageError

if TYPE_CHECKING:
    from grader.results.session import SessionRequest
    from grader.student_web.released_pages import ReleasedPages
    from grader.student_web.student_links import StudentAccess
    from grader.web.listening import Listening

_KIND = "student links"  # as the gradebook lists what was written


@click.command("serve-students")
@click.argument("out", type=click.Path(path_type=Path))
@click.option(
    "--published",
    required=True,
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="The folder that `grader publish` wrote; only what is in it is shown.",
)
@click.option(
    "--links",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write a table with a new link for each student who has a report, and serve nothing.",
)
@click.option("--only", metavar="IDS", help="With --links: only for these students, separated by commas.")
@click.option(
    "--days", type=click.IntRange(1, 365), default=30, show_default=True, help="How long new links last."
)
@click.option(
    "--withdraw", metavar="STUDENT", help="End this student's links and sessions, and serve nothing."
)
@click.option("--list", "lists", is_flag=True, help="List who has a link, and serve nothing.")
@listening_options(8766, "the pages")
@session_options
def command(
    request: "SessionRequest",
    published: Path,
    links: Path | None,
    only: str | None,
    days: int,
    withdraw: str | None,
    lists: bool,
    host: str,
    port: int,
    names: tuple[str, ...],
    tls_cert: Path | None,
    tls_key: Path | None,
    proxies: tuple[str, ...],
) -> None:
    """Serve each student the own report as it was released, and take regrade requests for the folder OUT.

    Students come with links of their own, which --links writes for a mail merge. Nothing of the console is
    served here, and no page of anybody else: links, keys and cookies are separate. Beyond this machine, give
    the pages a host name of their own, not the console's. Stop it with Ctrl+C.

    \b
    Examples:
      grader serve-students results --published published
      grader serve-students results --published published --links links.csv --days 14
      grader serve-students results --published published --withdraw 400101204
      grader serve-students results --published published --proxy 127.0.0.1 --name grades.example.org
    """
    with web_packages("The students' pages need"):
        from grader.student_web.released_pages import ReleasedPages
        from grader.student_web.student_links import StudentAccess
        from grader.student_web.student_serving import serve_students
        from grader.web.listening import Listening
    access = StudentAccess(request.out, now)
    listening = Listening(host, port, names, tls_cert, tls_key, proxies)
    pages = ReleasedPages(published)
    students = pages.students()
    if only is not None and links is None:
        raise UsageError("--only says for whom --links writes a link: add --links FILE.")
    if links is None and withdraw is None and not lists:
        _require_own_name(request.out, listening)

        def ready(address: str, count: int) -> None:
            click.echo(f"The pages of {count} students are at {address} (stop it with Ctrl+C).")
            click.echo("Students come with links of their own: --links FILE writes them.")

        serve_students(request, published, access, listening, clock=now, on_ready=ready)
        return
    if withdraw is not None:
        count = access.withdraw(withdraw)
        if not count and withdraw not in students:
            raise UsageError(f"Nobody called '{withdraw}' has a report in {published}, or a link.")
        click.echo(f"{withdraw}: {count} {'link' if count == 1 else 'links'} and all sessions ended.")
    if links is not None:
        _write_links(request, pages, access, listening, links, only, timedelta(days=days))
    if lists:
        _print_links(access, students)


def _require_own_name(out: Path, listening: "Listening") -> None:
    """Check that the pages do not go by the name of the console.

    Raises:
        UsageError: They do.
    """
    from grader.web.access import FOLDER, Access

    if not (out / FOLDER).is_dir():
        return
    console = Access(out, now).address().partition("://")[2].lower()
    if console and console in {name.lower() for name in listening.names}:
        raise UsageError(
            f"The console goes by the name {console}. Give the students' pages another --name: under one, "
            "browsers would not keep them apart."
        )


def _write_links(
    request: "SessionRequest",
    pages: "ReleasedPages",
    access: "StudentAccess",
    listening: "Listening",
    file: Path,
    only: str | None,
    lasts: timedelta,
) -> None:
    """Write the table of new links.

    Raises:
        UsageError: The file is there already, or it is not known where the pages are served, or somebody has
            no report.
    """
    from grader.domain.formatting import counted
    from grader.files import atomic
    from grader.gradebook import Gradebook
    from grader.results.folder_use import note_written

    students = pages.students()
    if only is not None:
        asked = tuple(dict.fromkeys(one for part in only.split(",") if (one := part.strip())))
        if unknown := [one for one in asked if one not in students]:
            raise UsageError(f"Nothing was released to {', '.join(unknown)}. No link was made.")
        students = asked
    if not students:
        raise UsageError(f"{pages.folder}: no student has a report in it. No link was made.")
    if file.exists():
        raise UsageError(f"{file} is there already. Give another name: links that were sent stay good.")
    if not file.parent.is_dir():
        raise UsageError(f"{file}: there is no folder {file.parent}. Make it, or give another name.")
    address = _address(access, listening)
    with Gradebook(request.out, request.gradebook, assignment_id=request.assignment_id) as book:
        note_written(book, [file], _KIND)
    until = access.clock() + lasts
    tokens = access.new_links(students, lasts)
    atomic.write(file, b"")
    file.chmod(0o600)  # whoever reads it, reads everybody's report
    with file.open("wb") as written:  # under the name that is protected already
        written.write(
            _table({one: f"{address}/enter/{token}" for one, token in tokens.items()}, until.isoformat())
        )
    click.echo(f"{file}: {counted(len(tokens), 'link')}, good until {until:%Y-%m-%d %H:%M %Z}.")
    click.echo("Send each student the own link alone: whoever has it reads that student's report.")


def _address(access: "StudentAccess", listening: "Listening") -> str:
    """Where the pages will be found.

    Raises:
        UsageError: Nobody knows.
    """
    listening.require_safe()
    noted = access.address()
    if listening.names or not (noted or listening.port):
        return listening.address(listening.port)
    return noted or listening.address(listening.port)


def _table(links: Mapping[str, str], until: str) -> bytes:
    """The table of a mail merge."""
    buffer = io.StringIO()
    writer = csv.writer(buffer)
    writer.writerow(("student_id", "link", "until"))
    writer.writerows((student_id, link, until) for student_id, link in links.items())
    return buffer.getvalue().encode("utf-8")


def _print_links(access: "StudentAccess", students: tuple[str, ...]) -> None:
    """Print who has a link, until when, and whether it was opened."""
    from grader.domain.formatting import counted

    for student_id in students:
        for link in access.links_of(student_id):
            when = f"opened {counted(link.opened, 'time')}" if link.last_opened else "not opened yet"
            click.echo(f"{student_id}  until {link.expires:%Y-%m-%d %H:%M %Z}  {when}")
        if not access.links_of(student_id):
            click.echo(f"{student_id}  no link")
