"""The students' pages as an application: links, one student's own pages, and forms to ask and to answer.

Whose page is asked for is never in an address: it follows from the session alone. Pages have no scripts, and
the reports, which show what students wrote, may load nothing and run nothing. A link, a session or a page
that does not work is answered in the same words, whatever the reason and whomever it would be for.
"""

import logging
import re
from base64 import b64encode
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from http import HTTPStatus
from pathlib import Path
from secrets import compare_digest
from typing import Any
from urllib.parse import parse_qsl

from jinja2 import Environment, FileSystemLoader
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from grader.domain.errors import GraderError
from grader.domain.submission import ANSWERS_FILE
from grader.files.file_names import ANSWERS_PAGE, REPORT, SUBMISSION_PAGE
from grader.reports.typesetting import TEMPLATES as REPORT_TEMPLATES
from grader.reports.typesetting import environment
from grader.student_web.own_requests import (
    LONGEST_ANSWER,
    LONGEST_REASON,
    AskingRefused,
    OwnMatters,
    RequestDesk,
)
from grader.student_web.released_pages import PageNotReleased, ReleasedPages
from grader.student_web.student_links import StudentAccess, StudentLinkRefused, StudentSession
from grader.web.listening import Listening
from grader.web.safety import Attempts, Gate, is_from_own_page, peer_of, who_tries

# what a page of ours may do: nothing but its own style, and forms to its own origin
POLICY = (
    "default-src 'none'; style-src 'self'; img-src data:; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'"
)
_TEMPLATES = Path(__file__).parent / "templates"
_STYLES = (REPORT_TEMPLATES / "style.css", _TEMPLATES / "students.css")
_HEAD = re.compile(rb"\A.*?</head>", re.DOTALL)
_STYLE = re.compile(rb"<style>(.*?)</style>", re.DOTALL)
_TITLES = {
    REPORT: "Your report",
    SUBMISSION_PAGE: "Your code, with the findings",
    ANSWERS_PAGE: "Your answers, with the marks",
    ANSWERS_FILE: "Your answers as you handed them in (PDF)",
}
_MOST_FIELDS = 10
_LOG = logging.getLogger("grader.student_web")


@dataclass(frozen=True)
class StudentSite:
    """What all pages share.

    Attributes:
        title: Of the assignment.
        pages: What was released.
        desk: Takes requests.
        access: The links and sessions.
        listening: How the pages are reached.
        port: At which they are served.
        entries: How often links were tried lately, by peer.
        asked, read: How often requests and answers were sent and pages read lately, by student.
    """

    title: str
    pages: ReleasedPages
    desk: RequestDesk
    access: StudentAccess
    listening: Listening
    port: int
    entries: Attempts = field(default_factory=lambda: Attempts(most=30, most_of_all=600))
    asked: Attempts = field(default_factory=lambda: Attempts(most=10, most_of_all=600))
    read: Attempts = field(default_factory=lambda: Attempts(most=120, most_of_all=6000))

    @property
    def origins(self) -> frozenset[str]:
        """The origins of the students' own pages."""
        return self.listening.origins(self.port)

    @property
    def cookie(self) -> str:
        """The cookie's name, never that of a console: browsers share cookies among the ports of a machine."""
        return "__Host-grader-student" if self.listening.is_encrypted else f"grader-student-{self.port}"


@dataclass(frozen=True)
class StudentVisit:
    """A request of a student whose session is good.

    Attributes:
        name: The last part of the address.
        form: What was sent.
    """

    site: StudentSite
    session: StudentSession
    student_id: str
    name: str = ""
    form: tuple[tuple[str, str], ...] = ()

    def text(self, name: str) -> str:
        """A field of the form; empty if there is none."""
        return next((value for key, value in self.form if key == name), "")


StudentPage = Callable[[StudentVisit], Response]


def student_application(site: StudentSite) -> Gate:
    """The application, to be served at a port of its own."""

    def answered(page: StudentPage) -> Callable[..., Any]:
        async def answer(request: Request) -> Response:
            form: tuple[tuple[str, str], ...] = ()
            if request.method not in ("GET", "HEAD"):
                if not is_from_own_page(request.headers, site.origins):
                    return _nothing_changed("The form did not come from a page of these.")
                try:
                    form = _fields(await request.body())
                except (ClientDisconnect, ValueError):
                    return _nothing_changed("The form is malformed.", HTTPStatus.BAD_REQUEST)
            return await run_in_threadpool(_guarded, site, request, page, form)

        return answer

    async def enter(request: Request) -> Response:
        return await run_in_threadpool(_entered, site, request)

    routes = [
        Route("/enter/{token}", enter, methods=["GET"]),
        Route("/style/{digest}.css", _style_file, methods=["GET"]),
        Route("/", answered(_first_page), methods=["GET"]),
        Route("/mine/{name}", answered(_own_page), methods=["GET"]),
        Route("/requests", answered(_ask), methods=["POST"]),
        Route("/answers", answered(_answer), methods=["POST"]),
        Route("/leave", answered(_leave), methods=["POST"]),
    ]
    app = Starlette(routes=routes, exception_handlers={404: _nothing, 405: _nothing})
    app.router.redirect_slashes = False
    listening = site.listening
    hosts = listening.hosts(site.port)
    return Gate(app, hosts, listening.proxies, listening.is_encrypted, pages="These pages are")


# --- coming and going ------------------------------------------------------------------------------------


def _entered(site: StudentSite, request: Request) -> Response:
    """Exchange a link for a session.

    The answer is a page that goes on by itself, not a redirection: the cookie is not sent with a request that
    another site began, as a mail program in the browser does, and this page's own request is ours.
    """
    token = request.path_params["token"]
    tried_by = who_tries(request.scope, site.listening.proxies, token)
    if not site.entries.allowed(tried_by):
        return plain_page("Too many tries", "Wait a minute, then open the link again.", status=429)
    try:
        secret, _ = site.access.exchanged(token, site.pages.students())
    except StudentLinkRefused as error:
        _LOG.warning("A link that opens nothing was tried from %s.", peer_of(request.scope))
        return plain_page("This link does not work", str(error), status=HTTPStatus.FORBIDDEN)
    except GraderError as error:
        return _trouble(error)
    site.entries.forgive(tried_by)
    answer = _page("enter.html.j2")
    answer.set_cookie(
        site.cookie,
        secret,
        path="/",
        secure=site.listening.is_encrypted,
        httponly=True,
        samesite="strict",
    )
    return answer


def _guarded(
    site: StudentSite, request: Request, page: StudentPage, form: tuple[tuple[str, str], ...]
) -> Response:
    """A page for the student whose session it is; errors are told without what they are about."""
    try:
        secret = request.cookies.get(site.cookie, "")
        session = site.access.session(secret) if secret else None
        student_id = site.access.student_of(session.holder, site.pages.students()) if session else None
        if session is None or student_id is None:
            return plain_page(
                "You are not signed in",
                "Open the link that you were sent.",
                status=HTTPStatus.UNAUTHORIZED,
            )
        visit = StudentVisit(site, session, student_id, request.path_params.get("name", ""), form)
        if request.method not in ("GET", "HEAD") and not compare_digest(
            visit.text("csrf").encode(), session.csrf.encode()
        ):
            return _nothing_changed("The page is from an earlier visit. Open it again.")
        if not site.read.allowed(session.holder):
            return plain_page("Too many pages", "Wait a minute, then go on.", status=429)
        answer = page(visit)
        if page is _leave:
            site.access.leave(secret)
            answer.delete_cookie(site.cookie, path="/")
        return answer
    except AskingRefused as error:
        return plain_page("That was not taken", str(error), status=HTTPStatus.UNPROCESSABLE_ENTITY)
    except PageNotReleased as error:
        return plain_page("There is no such page", str(error), status=HTTPStatus.NOT_FOUND)
    except GraderError as error:
        return _trouble(error)
    except Exception:  # noqa: BLE001  # whatever it is, the others go on reading, and the log has it
        _LOG.exception("A page failed.")
        return _trouble_page()


def _trouble(error: GraderError) -> Response:
    """An error that is written for whoever serves the pages: they read it, students do not."""
    _LOG.warning("A page failed: %s", error)
    return _trouble_page()


def _trouble_page() -> Response:
    return plain_page(
        "That did not work",
        "It is not your fault. Try again in a few minutes; then tell your teaching assistants.",
        status=HTTPStatus.SERVICE_UNAVAILABLE,
    )


def _leave(_visit: StudentVisit) -> Response:
    """The end of a session."""
    return plain_page("You are signed out", "Your link opens these pages again while it lasts.", link=False)


# --- pages -----------------------------------------------------------------------------------------------


def _first_page(visit: StudentVisit) -> Response:
    """What was released to the student, and the requests."""
    pages, student_id = visit.site.pages, visit.student_id
    matters: OwnMatters | None = None
    try:
        matters = visit.site.desk.matters(student_id, _report(visit))
    except GraderError as error:  # the report can be read all the same
        _LOG.warning("Requests cannot be shown: %s", error)
    return _page(
        "first.html.j2",
        title=visit.site.title,
        student_id=student_id,
        csrf=visit.session.csrf,
        pages=[(name, _TITLES[name]) for name in _TITLES if name in pages.names(student_id)],
        released_at=pages.released_at(student_id),
        asking=matters.asking if matters else None,
        questions=matters.questions if matters else (),
        titles=matters.titles if matters else {},
        failed=matters is None,
        longest=LONGEST_REASON,
        longest_answer=LONGEST_ANSWER,
    )


def _report(visit: StudentVisit) -> str:
    """The student's report as it was released."""
    return visit.site.pages.content(visit.student_id, REPORT).decode("utf-8")


def _own_page(visit: StudentVisit) -> Response:
    """A page as it was released, allowed its own style and pictures and nothing else."""
    content = visit.site.pages.content(visit.student_id, visit.name)
    if visit.name == ANSWERS_FILE:
        headers = {
            "Content-Disposition": f'attachment; filename="{ANSWERS_FILE}"',
            "Content-Security-Policy": "default-src 'none'; sandbox; frame-ancestors 'none'",
        }
        return Response(content, media_type="application/octet-stream", headers=headers)
    headers = {"Content-Security-Policy": report_policy(content)}
    return Response(content, media_type="text/html; charset=utf-8", headers=headers)


def report_policy(content: bytes) -> str:
    """The policy under which a report is shown: no scripts, no forms, no addresses but the pages beside it.

    Styles are those of the page's head, by their digests; an attribute can style its own element only. The
    page keeps its origin, or the cookie would not be sent when a link of it is followed.
    """
    head = _HEAD.search(content)
    digests = " ".join(
        f"'sha256-{b64encode(sha256(style).digest()).decode()}'"
        for style in (_STYLE.findall(head[0]) if head else ())
    )
    return "; ".join(
        (
            "default-src 'none'",
            "img-src data:",
            f"style-src {digests or chr(39) + 'none' + chr(39)}",
            "style-src-attr 'unsafe-inline'",
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
            "sandbox allow-same-origin allow-downloads",
        )
    )


def _ask(visit: StudentVisit) -> Response:
    """Take a request, and show it."""
    if not visit.site.asked.allowed(visit.session.holder):
        return plain_page("Too many tries", "Wait a minute, then send it again.", status=429)
    visit.site.desk.ask(visit.student_id, visit.text("item"), visit.text("reason"), _report(visit))
    return RedirectResponse("/#requests", 303, headers={"Content-Security-Policy": POLICY})


def _answer(visit: StudentVisit) -> Response:
    """Take an answer to a question about the work, and show it."""
    if not visit.site.asked.allowed(visit.session.holder):
        return plain_page("Too many tries", "Wait a minute, then send it again.", status=429)
    number = visit.text("question")
    visit.site.desk.explain(
        visit.student_id, int(number) if number.isdecimal() else 0, visit.text("answer"), _report(visit)
    )
    return RedirectResponse("/#questions", 303, headers={"Content-Security-Policy": POLICY})


def plain_page(title: str, *sentences: str, status: int = 200, link: bool = True) -> Response:
    """A page of a few sentences, for people with and without a session."""
    return _page("note.html.j2", status, title=title, sentences=sentences, link=link)


def _nothing_changed(why: str, status: int = HTTPStatus.FORBIDDEN) -> Response:
    return plain_page("Nothing was changed", why, status=status)


def _page(template: str, status: int = 200, **values: Any) -> Response:
    html = _templates().get_template(template).render(style_address=_style()[1], **values)
    return HTMLResponse(html, status, headers={"Content-Security-Policy": POLICY})


@cache
def _templates() -> Environment:
    """The Jinja environment of the reports, with the templates of these pages."""
    return environment().overlay(loader=FileSystemLoader([_TEMPLATES, REPORT_TEMPLATES]))


@cache
def _style() -> tuple[bytes, str]:
    """The style of all pages, and its address."""
    content = b"\n".join(path.read_bytes() for path in _STYLES)
    return content, f"/style/{sha256(content).hexdigest()[:16]}.css"


async def _style_file(request: Request) -> Response:
    content, address = _style()
    if request.url.path != address:
        return PlainTextResponse("There is no such file.\n", 404)
    headers = {"Cache-Control": "public, max-age=31536000, immutable"}
    return Response(content, headers=headers, media_type="text/css; charset=utf-8")


async def _nothing(_request: Request, _error: Exception) -> Response:
    return plain_page("There is no such page", "Open the first page again.", status=HTTPStatus.NOT_FOUND)


def _fields(body: bytes) -> tuple[tuple[str, str], ...]:
    """The fields of an urlencoded form.

    Raises:
        ValueError: It is none, or has too many fields.
    """
    return tuple(parse_qsl(body.decode("utf-8"), keep_blank_values=True, max_num_fields=_MOST_FIELDS))
