"""`grader check --watch`: the findings on the terminal, again after each save."""

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event
from types import FrameType

from grader.cli.check_view import CheckView
from grader.cli.page import Page
from grader.domain.errors import GraderError
from grader.students.check_on_save import Attempt, check_on_every_save, saves_of
from grader.students.handout import LocalAssignment


def watch_file(path: Path, local: LocalAssignment, *, details: bool) -> None:
    """Check a file now and after each save, until the person interrupts it.

    Raises:
        CourseError: The checks cannot be collected.
    """
    page, rounds = Page(), 0

    def show(attempt: Attempt) -> None:
        nonlocal rounds
        if rounds and page.live:
            page.console.clear()
        rounds += 1
        started = time.monotonic()
        try:
            with CheckView(path, local.assignment, page, local.values, local.part) as view:
                found = attempt(view.read, view.finding)
            view.rest(found, details=details)
        except GraderError as error:  # a file that is half written is no reason to stop
            page.verdict(False, str(error))
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
