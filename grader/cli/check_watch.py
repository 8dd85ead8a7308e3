"""`grader check --watch`: the findings on the terminal, again after each save."""

import signal
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from threading import Event
from types import FrameType

from grader.cli.page import Page
from grader.cli.watch_view import WatchView
from grader.domain.errors import GraderError
from grader.students.check_on_save import Attempt, check_on_every_save, saves_of
from grader.students.handout import LocalAssignment


def watch_file(path: Path, local: LocalAssignment, *, details: bool) -> None:
    """Check a file now and after each save, until the person interrupts it.

    Raises:
        CourseError: The checks cannot be collected.
    """
    page, rounds = Page(), 0
    view = WatchView(path, local.assignment, page, details=details)

    def show(attempt: Attempt) -> None:
        nonlocal rounds
        rounds += 1
        started = time.monotonic()
        try:
            with _waiting(page, first=rounds == 1):
                found = attempt(lambda program: None, lambda finding: None)
        except GraderError as error:  # a file that is half written is no reason to stop
            view.clear()
            page.verdict(False, str(error))
        else:
            view.clear()
            view.show(found)
        page.blank()
        page.detail(
            f"Check {rounds} took {time.monotonic() - started:.1f} s. "
            f"{path.name} is checked again when it is saved. Ctrl-C ends this.",
            style="dim",
            indent=0,
        )

    with ctrl_c() as pressed, suppress(KeyboardInterrupt):
        check_on_every_save(path, local, saves_of(path, pressed), show)
    page.blank()
    page.detail(f"{path.name} is no longer watched.", indent=0)


def _waiting(page: Page, *, first: bool) -> AbstractContextManager[object]:
    """What turns on a terminal while a check is made, below what the last one found."""
    if not page.live:
        return nullcontext()
    told = "Starting (PyTorch is slow to load) ..." if first else "Checking ..."
    return page.console.status(told)


@contextmanager
def ctrl_c() -> Iterator[Event]:
    """What is set once Ctrl-C was pressed.

    It interrupts as well. But an interrupt that comes while Python cleans up an object is only printed, not
    raised: whoever waits for it alone may wait forever.
    """
    pressed = Event()

    def press(number: int, frame: FrameType | None) -> None:
        pressed.set()
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, press)
    try:
        yield pressed
    finally:
        signal.signal(signal.SIGINT, before)
