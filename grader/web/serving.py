"""Runs the console's server until it is stopped, and writes the class's pages while markers pause."""

import threading
from collections.abc import Callable
from datetime import datetime

from grader.domain.errors import GraderError
from grader.gradebook import State
from grader.marking.desk import Desk, assignment_now, refresh
from grader.results.class_pages import are_behind, caught_up, write_pages
from grader.results.folder_use import in_use
from grader.results.session import ClassSession
from grader.web.access import Access
from grader.web.application import application
from grader.web.listening import Listening
from grader.web.server import run_server
from grader.web.visits import Console

PAUSE_SECONDS = 20.0  # between looks whether pages are behind


def served(
    session: ClassSession,
    access: Access,
    listening: Listening,
    *,
    gradebook: str | None = None,
    on_ready: Callable[[str], None],
) -> None:
    """Serve the console of a class until it is stopped by a signal.

    Args:
        gradebook: The gradebook's URL; None: it is the file in the results folder.
        on_ready: Called with the address once it is listened at.

    Raises:
        UsageError: The address cannot be used, the gradebook cannot be written, or persons are being
            forgotten in it.
    """
    with in_use(session.out):
        _serve(session, access, listening, gradebook, on_ready)


def _serve(
    session: ClassSession,
    access: Access,
    listening: Listening,
    gradebook: str | None,
    on_ready: Callable[[str], None],
) -> None:
    listening.require_safe()
    session.book.require_writable()
    session.book.require_local()
    desk = Desk(session.out, session.book, session.assignment)
    refresh(desk)
    listener = listening.socket()
    port = listener.getsockname()[1]
    console = Console(desk, access, listening, port, session.clock, gradebook)
    address = listening.address(port)
    access.note_address(address)
    stopped = threading.Event()
    writer = threading.Thread(
        target=_write_pages_in_pauses, args=(desk, session.clock, stopped), name="pages", daemon=True
    )
    writer.start()
    try:
        on_ready(address)
        run_server(application(console), listening, listener, most=200)
    except KeyboardInterrupt:  # it is raised again once everything is closed
        pass
    finally:
        stopped.set()
        listener.close()
        writer.join()


def _write_pages_in_pauses(desk: Desk, clock: Callable[[], datetime], stopped: threading.Event) -> None:
    """Write the class's pages when they are behind and nobody saved for a moment; at the end in any case."""
    seen = desk.book.state()
    written: State | None = seen
    if are_behind(desk.book, desk.out, desk.assignment.id):  # as after a kill; nobody waits for that
        written = None
    while True:
        ended = stopped.wait(PAUSE_SECONDS)
        state = desk.book.state()
        if state != written and (state == seen or ended):
            try:
                if written is None:  # if the rubric changed since, `grader regrade` is needed
                    caught_up(assignment_now(desk), desk.book, desk.out, clock)
                else:
                    write_pages(assignment_now(desk), desk.book, desk.out, clock())
                written = state
            except GraderError:
                pass  # the next command writes them, and says what is wrong
        seen = state
        if ended:
            return
