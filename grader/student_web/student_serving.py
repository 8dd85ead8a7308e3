"""Runs the server of the students' pages until it is stopped: a process of its own, beside any console."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from grader.results.session import SessionRequest
from grader.student_web.own_requests import RequestDesk
from grader.student_web.released_pages import ReleasedPages
from grader.student_web.student_links import StudentAccess
from grader.student_web.student_site import StudentSite, student_application
from grader.web.listening import Listening
from grader.web.server import run_server


def opened_site(
    request: SessionRequest,
    published: Path,
    access: StudentAccess,
    listening: Listening,
    port: int,
    clock: Callable[[], datetime],
) -> StudentSite:
    """The pages of a publication, for students.

    Args:
        port: At which they are served.

    Raises:
        UsageError: The folder is no publication, or one from another gradebook.
        CourseError: A file of the course is malformed.
    """
    pages = ReleasedPages(published)
    session = replace(request, assignment_id=request.assignment_id or pages.manifest().assignment)
    desk = RequestDesk(session, clock)
    assignment = desk.assignment()
    pages.require_of(assignment.id, desk.book_identity())
    return StudentSite(assignment.title, pages, desk, access, listening, port)


def serve_students(
    request: SessionRequest,
    published: Path,
    access: StudentAccess,
    listening: Listening,
    *,
    clock: Callable[[], datetime],
    on_ready: Callable[[str, int], None],
) -> None:
    """Serve the students' pages until a signal stops it.

    Args:
        on_ready: Called with the address once it is listened at, and how many students have a report.

    Raises:
        UsageError: The address cannot be used, or the folder is no publication of these results.
        CourseError: A file of the course is malformed.
    """
    listening.require_safe()
    listening.require_readable_certificate()
    listener = listening.socket()
    try:
        port = listener.getsockname()[1]
        site = opened_site(request, published, access, listening, port, clock)
        address = listening.address(port)
        access.note_address(address)
        on_ready(address, len(site.pages.students()))
        run_server(student_application(site), listening, listener, most=400)
    except KeyboardInterrupt:  # it is raised again once everything is closed
        pass
    finally:
        listener.close()
