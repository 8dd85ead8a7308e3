"""Runs the console's server until it is stopped, and writes the class's pages while markers pause."""

import threading
from collections.abc import Callable

from grader.marking.desk import Desk, refresh
from grader.results.folder_use import in_use
from grader.results.session import ClassSession
from grader.web.access import Access
from grader.web.application import application
from grader.web.delayed_pages import DelayedPages
from grader.web.listening import Listening
from grader.web.server import run_server
from grader.web.visits import Console


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
    pages = DelayedPages(desk, session.clock)
    writer = threading.Thread(target=pages.follow, args=(stopped,), name="pages", daemon=True)
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
