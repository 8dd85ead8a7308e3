"""What the commands that serve pages have in common: the options on where to listen, and the packages."""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click

from grader.domain.errors import UsageError

_PACKAGES = ("starlette", "uvicorn", "latex2mathml", "anyio", "h11")


def listening_options(port: int, pages: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The parameters `host`, `port`, `names`, `tls_cert`, `tls_key` and `proxies`.

    Args:
        port: The default.
        pages: What browsers reach: `the console`.
    """
    options = (
        click.option(
            "--host",
            default="127.0.0.1",
            show_default=True,
            metavar="ADDRESS",
            help="Where to listen. Beyond this machine, TLS or a proxy must be named.",
        ),
        click.option(
            "--port",
            type=click.IntRange(0, 65535),
            default=port,
            show_default=True,
            metavar="PORT",
            help="The port to listen at; 0: any that is free.",
        ),
        click.option(
            "--name",
            "names",
            multiple=True,
            metavar="HOST",
            help=f"A host name by which browsers reach {pages}.",
        ),
        click.option(
            "--tls-cert",
            type=click.Path(path_type=Path),
            metavar="FILE",
            help="The certificate for TLS, in PEM.",
        ),
        click.option("--tls-key", type=click.Path(path_type=Path), metavar="FILE", help="Its key."),
        click.option(
            "--proxy",
            "proxies",
            multiple=True,
            metavar="ADDRESS",
            help="The address of a proxy in front, which alone may connect.",
        ),
    )

    def with_options(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            command = option(command)
        return command

    return with_options


@contextlib.contextmanager
def web_packages(what: str) -> Iterator[None]:
    """Say how to install the packages of the extra `web` if one of them cannot be imported in the block.

    Args:
        what: What needs them, as the subject of a sentence with its verb: `The console needs`.

    Raises:
        UsageError: One is not installed.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] in _PACKAGES:
            raise UsageError(
                f"{what} more packages: install them with `pip install 'vit-grader[web]'`."
            ) from None
        raise
