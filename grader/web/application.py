"""The console as an application: its addresses, and what stands before them."""

from http import HTTPStatus

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from grader.marking.audit_log import add_entry
from grader.web import marking_pages
from grader.web.access import SESSION_LASTS, LinkRefused, StaffRole
from grader.web.assigning_page import assign, assigning_page
from grader.web.class_figures import side_by_side, similar_pairs_page, statistics_page
from grader.web.decision_forms import decision_page, preview_page, record_decision
from grader.web.grading_page import grading_page, grading_progress, start, stop
from grader.web.oral_page import oral_page, sheet_of_student, sheets_of_all
from grader.web.overview import log_page, overview
from grader.web.queue_page import queue_page, student_page
from grader.web.review_page import review_page
from grader.web.rubric_page import change_items, change_marks, rubric_page
from grader.web.safety import Gate, is_from_own_page, who_tries
from grader.web.static_files import static_files
from grader.web.visits import Console, Page, answered, plain_page

# what is done to a task, by the last part of the address
_DEEDS = {
    "save": marking_pages.save,
    "keep-theirs": marking_pages.keep_theirs,
    "draft": marking_pages.draft,
    "discard-draft": marking_pages.discard_draft,
    "withdraw": marking_pages.withdraw,
    "skip": marking_pages.skip,
    "flag": marking_pages.flag,
    "unflag": marking_pages.unflag,
    "hand-over": marking_pages.hand_over,
    "note": marking_pages.note,
    "reveal": marking_pages.reveal_owner,
}


def application(console: Console) -> Gate:
    """The application, to be served at the console's port."""

    def get(path: str, page: Page, least: StaffRole = StaffRole.MARKER) -> Route:
        return Route(path, answered(console, page, least), methods=["GET"])

    def post(path: str, page: Page, least: StaffRole = StaffRole.MARKER) -> Route:
        return Route(path, answered(console, page, least), methods=["POST"])

    async def enter(request: Request) -> Response:
        return await run_in_threadpool(_entered, console, request)

    async def leave(request: Request) -> Response:
        return await run_in_threadpool(_left, console, request)

    task = "/questions/{target}/{handle}"
    routes = [
        Route("/enter/{token}", enter, methods=["GET"]),
        Route("/leave", leave, methods=["POST"]),
        Route("/static/{digest}/{name}", _static, methods=["GET"]),
        get("/", overview),
        get("/next", marking_pages.next_anywhere),
        get("/log", log_page, StaffRole.HEAD),
        get("/assign/{target}", assigning_page, StaffRole.HEAD),
        post("/assign/{target}/{way}", assign, StaffRole.HEAD),
        get("/statistics", statistics_page),
        get("/similar", similar_pairs_page, StaffRole.HEAD),
        get("/similar/side-by-side", side_by_side, StaffRole.HEAD),
        get("/grading", grading_page, StaffRole.HEAD),
        get("/grading/progress", grading_progress, StaffRole.HEAD),
        post("/grading/start", start, StaffRole.HEAD),
        post("/grading/stop", stop, StaffRole.HEAD),
        get("/oral", oral_page, StaffRole.HEAD),
        get("/oral/{kind}", sheets_of_all, StaffRole.HEAD),
        get("/oral/{student}/{kind}", sheet_of_student, StaffRole.HEAD),
        get("/review", review_page, StaffRole.HEAD),
        get("/queue", queue_page, StaffRole.HEAD),
        get("/students/{student}", student_page, StaffRole.HEAD),
        get("/decide/{kind}", decision_page, StaffRole.HEAD),
        post("/decide/{kind}", record_decision, StaffRole.HEAD),
        post("/decide/{kind}/preview", preview_page, StaffRole.HEAD),
        get("/rubric/{target}", rubric_page, StaffRole.HEAD),
        post("/rubric/{target}", change_items, StaffRole.HEAD),
        post("/rubric/{target}/marks", change_marks, StaffRole.HEAD),
        get("/questions/{target}", marking_pages.question_page),
        get("/questions/{target}/next", marking_pages.next_task),
        get("/questions/{target}/bank", marking_pages.bank),
        post("/questions/{target}/unskip", marking_pages.unskip),
        get(task, marking_pages.task_page),
        get(f"{task}/here", marking_pages.who_is_here),
        *(post(f"{task}/{name}", page) for name, page in _DEEDS.items()),
        get("/submissions/{handle}", marking_pages.submission_page),
        get("/submissions/{handle}/page-{number}.webp", marking_pages.picture),
        get("/submissions/{handle}/answers.pdf", marking_pages.pdf),
        get("/submissions/{handle}/search", marking_pages.search_pdf),
    ]
    app = Starlette(routes=routes, exception_handlers={404: _nothing, 405: _nothing})
    app.router.redirect_slashes = False
    return Gate(
        app,
        console.listening.hosts(console.port),
        console.listening.proxies,
        console.listening.is_encrypted,
    )


def _entered(console: Console, request: Request) -> Response:
    """Exchange a link for a session; the address with the link is left at once."""
    token = request.path_params["token"]
    tried_by = who_tries(request.scope, console.listening.proxies, token)
    if not console.attempts.allowed(tried_by):
        return plain_page(
            HTTPStatus.TOO_MANY_REQUESTS, "Too many tries", "Wait a minute, then open the link again."
        )
    if console.listening.user_header:
        return plain_page(
            HTTPStatus.NOT_FOUND,
            "There are no links here",
            "The proxy says who you are: open the first page.",
        )
    try:
        secret, session = console.access.exchanged(token)
    except LinkRefused as error:
        return plain_page(HTTPStatus.FORBIDDEN, "This link does not work", str(error))
    console.attempts.forgive(tried_by)
    add_entry(console.desk, session.person, console.clock(), f"came with a link as {session.role.value}")
    answer = RedirectResponse("/", 303)
    answer.set_cookie(
        console.cookie,
        secret,
        max_age=int(SESSION_LASTS.total_seconds()),
        path="/",
        secure=console.listening.is_encrypted,
        httponly=True,
        samesite="lax",
    )
    return answer


def _left(console: Console, request: Request) -> Response:
    """End a session. Without a token: it does no harm."""
    if not is_from_own_page(request.headers, console.origins):
        return plain_page(HTTPStatus.FORBIDDEN, "Nothing was changed", "This did not come from the console.")
    secret = request.cookies.get(console.cookie, "")
    if secret:
        console.access.leave(secret)
    answer = plain_page(
        HTTPStatus.OK, "You are signed out", "Your link opens the console again while it lasts."
    )
    answer.delete_cookie(console.cookie, path="/")
    return answer


async def _static(request: Request) -> Response:
    file = static_files().get(request.path_params["name"])
    if file is None or file.digest != request.path_params["digest"]:
        return PlainTextResponse("There is no such file.\n", 404)
    headers = {"Cache-Control": "public, max-age=31536000, immutable"}
    return Response(file.content, headers=headers, media_type=file.kind)


async def _nothing(_request: Request, error: Exception) -> Response:
    status = getattr(error, "status_code", HTTPStatus.NOT_FOUND)
    return plain_page(status, "There is no such page", "Go back to the first page of the console.")
