"""A person's visit to a page: who it is, what was sent, and the answer; every page is asked through here.

Nothing is answered to somebody without a session. What changes something must come from a page of the
console, with the session's token. Errors that are written for people become pages; others become one
sentence, without a trace.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from http import HTTPStatus
from pathlib import Path
from secrets import compare_digest
from typing import Any
from urllib.parse import parse_qsl, quote

from jinja2 import Environment, FileSystemLoader
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from grader.domain.errors import GraderError, UsageError
from grader.marking.desk import Desk, UnknownTask
from grader.reports.typesetting import TEMPLATES as REPORT_TEMPLATES
from grader.reports.typesetting import environment
from grader.web.access import Access, StaffRole, StaffSession
from grader.web.formatted_text import formatted, formatted_line
from grader.web.listening import Listening
from grader.web.safety import Attempts, is_from_own_page
from grader.web.static_files import HTMX, static_address

_TEMPLATES = Path(__file__).parent / "templates"
_MOST_FIELDS = 2000  # of a form: a rubric item has six
_MOST_DIGITS = 15
_LOG = logging.getLogger("grader.web")


@dataclass(frozen=True)
class Console:
    """What all pages share.

    Attributes:
        desk: The class that is marked.
        access: The people.
        listening: How the console is reached.
        port: At which it listens.
        clock: The time, with its zone.
        gradebook: The gradebook's URL; None: it is the file in the results folder.
        attempts: How often links were tried lately.
    """

    desk: Desk
    access: Access
    listening: Listening
    port: int
    clock: Callable[[], datetime]
    gradebook: str | None = None
    attempts: Attempts = field(default_factory=Attempts)

    @property
    def origins(self) -> frozenset[str]:
        """The origins of the console's own pages."""
        return self.listening.origins(self.port)

    @property
    def cookie(self) -> str:
        """The cookie's name. Browsers share cookies among the ports of a machine, so it has the port."""
        return "__Host-grader" if self.listening.is_encrypted else f"grader-{self.port}"


@dataclass(frozen=True)
class SentFields:
    """The fields of a form, or of a query."""

    fields: tuple[tuple[str, str], ...] = ()

    def text(self, name: str) -> str:
        """A field; empty if there is none."""
        return next((value for key, value in self.fields if key == name), "")

    def texts(self, name: str) -> tuple[str, ...]:
        """All fields of a name."""
        return tuple(value for key, value in self.fields if key == name)

    def whole(self, name: str) -> int | None:
        """A field with a whole number, from 0, of at most 15 digits; None: it is something else."""
        text = self.text(name).strip()
        return int(text) if text.isdecimal() and len(text) <= _MOST_DIGITS else None

    def number(self, name: str) -> int:
        """A field that the console itself wrote as a whole number.

        Raises:
            UsageError: It is something else.
        """
        number = self.whole(name)
        if number is None:
            raise UsageError("The form lacks something. Open the page again.")
        return number


@dataclass(frozen=True)
class Visit:
    """One request of a person.

    Attributes:
        path: The parts of the address.
        query: What the address asks for.
        form: What was sent.
    """

    console: Console
    session: StaffSession
    path: Mapping[str, str]
    query: SentFields
    form: SentFields

    @property
    def desk(self) -> Desk:
        """The class that is marked."""
        return self.console.desk

    @property
    def person(self) -> str:
        """Who it is, as marks name them."""
        return self.session.person

    def now(self) -> datetime:
        """The time."""
        return self.console.clock()

    def may(self, role: StaffRole) -> bool:
        """Whether the person may do what a role may."""
        return self.session.role.includes(role)

    def page(self, template: str, status: int = 200, **values: Any) -> HTMLResponse:
        """An HTML page."""
        return HTMLResponse(self.text(template, **values), status)

    def text(self, template: str, **values: Any) -> str:
        """The text of a page, or of a part of one."""
        return templates().get_template(template).render(visit=self, roles=StaffRole, **values)

    def redirect(self, *parts: str, fragment: str = "", **query: str) -> RedirectResponse:
        """An answer that leads to another page of the console."""
        address = address_of(*parts, **query)
        return RedirectResponse(f"{address}#{fragment}" if fragment else address, 303)


Page = Callable[[Visit], Response]


def address_of(*parts: str, **query: str) -> str:
    """The address of a page of the console; what it is made of is quoted."""
    path = "/" + "/".join(quote(part, safe="") for part in parts)
    given = "&".join(f"{name}={quote(value, safe='')}" for name, value in query.items() if value)
    return f"{path}?{given}" if given else path


@cache
def templates() -> Environment:
    """The Jinja environment of the reports, with the console's templates."""
    made = environment().overlay(loader=FileSystemLoader([_TEMPLATES, REPORT_TEMPLATES]))
    made.filters = {**made.filters, "formatted": formatted, "formatted_line": formatted_line}
    made.globals = {**made.globals, "static": static_address, "htmx": HTMX, "address": address_of}
    return made


def answered(console: Console, page: Page, least: StaffRole = StaffRole.MARKER) -> Callable[..., Any]:
    """A page as the application calls it.

    Args:
        page: It runs in a thread, as it waits for the gradebook.
        least: The role that may see it.
    """

    async def answer(request: Request) -> Response:
        session = await run_in_threadpool(session_of, console, request)
        if session is None:
            return plain_page(
                HTTPStatus.UNAUTHORIZED,
                "You are not signed in",
                "Open the link that `grader serve` printed, or that you were sent.",
            )
        if not session.role.includes(least):
            return plain_page(
                HTTPStatus.FORBIDDEN, "This page is not for you", f"It is for the role {least.value}."
            )
        form = SentFields()
        if request.method not in ("GET", "HEAD"):
            if not is_from_own_page(request.headers, console.origins):
                return plain_page(
                    HTTPStatus.FORBIDDEN,
                    "Nothing was changed",
                    "The form did not come from a page of this console.",
                )
            try:
                form = _fields(await request.body())
            except (ClientDisconnect, ValueError):
                return plain_page(HTTPStatus.BAD_REQUEST, "Nothing was changed", "The form is malformed.")
            token = request.headers.get("x-csrf-token") or form.text("csrf")
            if not compare_digest(token.encode(), session.csrf.encode()):
                return plain_page(
                    HTTPStatus.FORBIDDEN,
                    "Nothing was changed",
                    "The page is from an earlier session. Open it again.",
                )
        query = SentFields(tuple(request.query_params.multi_items()))
        visit = Visit(console, session, dict(request.path_params), query, form)
        return await run_in_threadpool(_guarded, page, visit)

    return answer


def _guarded(page: Page, visit: Visit) -> Response:
    try:
        return page(visit)
    except UnknownTask as error:
        return plain_page(HTTPStatus.NOT_FOUND, "There is no such page", str(error))
    except UsageError as error:
        return plain_page(HTTPStatus.UNPROCESSABLE_ENTITY, "That is not possible", str(error))
    except GraderError as error:
        return plain_page(HTTPStatus.INTERNAL_SERVER_ERROR, "That did not work", str(error))
    except Exception:  # noqa: BLE001  # whatever it is, the others go on marking, and the log has it
        _LOG.exception("A page failed.")
        return plain_page(
            HTTPStatus.INTERNAL_SERVER_ERROR,
            "That did not work",
            "This is a fault of the grader. The terminal of `grader serve` shows it; please report it.",
        )


def session_of(console: Console, request: Request) -> StaffSession | None:
    """Who sent a request; None: nobody who may."""
    if console.listening.user_header:
        names = request.headers.getlist(console.listening.user_header)
        return console.access.proxied(names[0]) if len(names) == 1 and names[0] else None
    secret = request.cookies.get(console.cookie, "")
    return console.access.session(secret) if secret else None


def plain_page(status: int, title: str, *sentences: str, notes: Sequence[str] = ()) -> HTMLResponse:
    """A page of a few sentences, for people with and without a session."""
    lines = [line for sentence in sentences for line in sentence.splitlines()]
    html = templates().get_template("plain.html.j2").render(title=title, sentences=lines, notes=notes)
    return HTMLResponse(html, status)


def _fields(body: bytes) -> SentFields:
    """The fields of an urlencoded form.

    Raises:
        ValueError: It is none, or has too many fields.
    """
    text = body.decode("utf-8")
    return SentFields(tuple(parse_qsl(text, keep_blank_values=True, max_num_fields=_MOST_FIELDS)))
