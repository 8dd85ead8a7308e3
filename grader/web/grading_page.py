"""The page on which heads follow a grading, start one again, and stop it.

What is graded, and how far it is, stands in the record of the results folder (`grader.grading.recorded_run`).
It is the same whether the grading was started here, by another console, or in a terminal.
"""

import re
from dataclasses import dataclass

from starlette.responses import Response

from grader.domain.errors import UsageError
from grader.domain.formatting import printable
from grader.grading.recorded_run import (
    RecordedRequest,
    RecordedRun,
    RunPhase,
    ask_to_stop,
    is_recording,
    last_run,
    recorded_requests,
)
from grader.marking.audit_log import add_entry
from grader.results.class_pages import is_graded_now
from grader.web.started_grading import log_of, start_grading
from grader.web.visits import Visit

_MOST_LINES = 40  # of what a process said


@dataclass(frozen=True)
class GradingNow:
    """What is known of the running grading, or of the last one.

    Attributes:
        is_running: Whether one is running that can be followed.
        run: Its record; None: there is none, or that of a new one is about to be written.
        is_unrecorded: Whether submissions are graded by something that leaves no record.
        was_killed: Whether the last one ended without saying so.
    """

    is_running: bool
    run: RecordedRun | None
    is_unrecorded: bool
    was_killed: bool


def grading_now(visit: Visit) -> GradingNow:
    """What is known of a grading into the results folder."""
    out = visit.desk.out
    is_running, run = is_recording(out), last_run(out)
    if run is not None and is_running and run.phase.is_over:
        run = None  # that of the one before
    return GradingNow(
        is_running,
        run,
        is_unrecorded=not is_running and is_graded_now(out),
        was_killed=run is not None and not is_running and not run.phase.is_over,
    )


def grading_page(visit: Visit) -> Response:
    """How far a grading is, what was graded before, and the form that starts it again."""
    return _page(visit)


def grading_progress(visit: Visit) -> Response:
    """How far the grading is, as a part of its page; when it is over, the page is loaded again."""
    now = grading_now(visit)
    answer = visit.page("grading_progress.html.j2", now=now, phases=RunPhase)
    if not now.is_running:
        answer.headers["HX-Refresh"] = "true"
    return answer


def start(visit: Visit) -> Response:
    """Start what was asked for before, as a process of its own."""
    only = tuple(dict.fromkeys(re.findall(r"[^\s,;]+", visit.form.text("only"))))
    force = bool(visit.form.text("force"))
    try:
        request = _chosen(visit, visit.form.text("path"))
        start_grading(
            visit.desk.out,
            request,
            visit.person,
            gradebook=visit.console.gradebook,
            only=only,
            force=force,
        )
    except UsageError as error:
        return _page(visit, status=422, faults=tuple(str(error).splitlines()))
    what = [f"started a grading: {request.path}", *([f"only {' '.join(only)}"] if only else [])]
    what += ["also what has not changed"] if force else []
    add_entry(visit.desk, visit.person, visit.now(), ", ".join(what)[:2000])
    return visit.redirect("grading")


def stop(visit: Visit) -> Response:
    """Ask the running grading to stop."""
    now = grading_now(visit)
    if now.is_running and now.run is not None:
        ask_to_stop(visit.desk.out, now.run.id)
        add_entry(visit.desk, visit.person, visit.now(), "stopped a grading")
        return visit.redirect("grading", asked="stop")
    return visit.redirect("grading")


def _page(visit: Visit, *, status: int = 200, faults: tuple[str, ...] = ()) -> Response:
    out = visit.desk.out
    sent = visit.form if visit.form.fields else visit.query
    return visit.page(
        "grading.html.j2",
        status,
        assignment=visit.desk.assignment,
        now=grading_now(visit),
        phases=RunPhase,
        requests=_requests(visit),
        said="\n".join(printable(line) for line in log_of(out).splitlines()[-_MOST_LINES:]),
        faults=faults,
        sent=sent,
        asked=visit.query.text("asked"),
    )


def _requests(visit: Visit) -> tuple[RecordedRequest, ...]:
    own = visit.desk.assignment.id
    return tuple(one for one in recorded_requests(visit.desk.out) if one.assignment == own)


def _chosen(visit: Visit, path: str) -> RecordedRequest:
    """The request for a path of the list; nothing else can be graded from here.

    Raises:
        UsageError: The list has no such path.
    """
    found = next((one for one in _requests(visit) if one.path == path), None)
    if found is None:
        raise UsageError("Choose what to grade. Something new is graded by `grader grade` first.")
    return found
