"""`grader serve`: the console for people who mark."""

import contextlib
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import click

from grader.cli.command_options import now, session_options
from grader.cli.web_options import listening_options, web_packages

if TYPE_CHECKING:
    from grader.results.session import SessionRequest
    from grader.web.access import Access


@click.command("serve")
@click.argument("out", type=click.Path(path_type=Path))
@click.option("--invite", metavar="NAME", help="Print a link for this person, and serve nothing.")
@click.option(
    "--role",
    type=click.Choice(["marker", "head", "instructor"]),
    default="marker",
    show_default=True,
    help="What the invited person may do.",
)
@click.option(
    "--days", type=click.IntRange(1, 365), default=14, show_default=True, help="How long the link lasts."
)
@click.option("--withdraw", metavar="NAME", help="End this person's links and sessions, and serve nothing.")
@click.option("--people", is_flag=True, help="List who has a link, and serve nothing.")
@listening_options(8765, "the console")
@click.option(
    "--user-header", default="", metavar="NAME", help="The header in which the proxy says who somebody is."
)
@session_options
def command(
    request: "SessionRequest",
    invite: str | None,
    role: str,
    days: int,
    withdraw: str | None,
    people: bool,
    host: str,
    port: int,
    names: tuple[str, ...],
    tls_cert: Path | None,
    tls_key: Path | None,
    proxies: tuple[str, ...],
    user_header: str,
) -> None:
    """Serve the console, in which people mark the results folder OUT in a browser.

    It listens on this machine only, and prints a link that works once, for you as instructor. Other people
    get a link each with --invite, also while the console runs. Stop it with Ctrl+C; what was typed is kept.

    \b
    Examples:
      grader serve results
      grader serve results --invite ta1 --role marker
      grader serve results --withdraw ta1
      grader serve results --host 0.0.0.0 --name marks.example.org --tls-cert cert.pem --tls-key key.pem
      grader serve results --proxy 127.0.0.1 --name marks.example.org --user-header X-Remote-User
    """
    with contextlib.ExitStack() as stack:
        with web_packages("The console needs"):
            from grader.web.access import FIRST_LINK_LASTS, Access, StaffRole
            from grader.web.listening import Listening
            from grader.web.serving import served
        access = Access(request.out, now)
        listening = Listening(host, port, names, tls_cert, tls_key, proxies, user_header)
        if invite is not None or withdraw is not None or people:
            if invite is not None:
                token = access.invite(invite, StaffRole(role), lasts=timedelta(days=days))
                _print_link(access, listening, token, invite)
            if withdraw is not None:
                count = access.withdraw(withdraw)
                click.echo(f"{withdraw}: {count} {'link' if count == 1 else 'links'} and all sessions ended.")
            if people:
                for one in access.people():
                    click.echo(f"{one.person}  {one.role.value}  until {one.expires:%Y-%m-%d %H:%M %Z}")
            return
        listening.require_safe()
        listening.require_readable_certificate()
        from grader.results.session import class_session

        # what a kill left behind is written while the console runs
        opened = stack.enter_context(class_session(request, clock=now, on_catch_up=None))

        def ready(address: str) -> None:
            click.echo(f"The console of {request.out} is at {address} (stop it with Ctrl+C).")
            if not user_header:
                token = access.invite(request.who, StaffRole.INSTRUCTOR, lasts=FIRST_LINK_LASTS, once=True)
                click.echo(f"Open this link within 15 minutes; it works once:\n  {address}/enter/{token}")

        served(opened, access, listening, gradebook=request.gradebook, on_ready=ready)


def _print_link(access: "Access", listening: object, token: str, person: str) -> None:
    from grader.web.listening import Listening

    assert isinstance(listening, Listening)
    if listening.user_header:
        click.echo(f"{person} may come through the proxy.")
        return
    address = access.address() or listening.address(listening.port)
    click.echo(f"Send this link to {person} alone; whoever has it marks under that name:")
    click.echo(f"  {address}/enter/{token}")
