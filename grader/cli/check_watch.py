"""`grader check --watch`: the findings on the terminal, again after each save.

It holds the loop that a person ends with Ctrl-C. Of each check it shows the first part that fails, a line
for every other part, and what the last save changed. When a file counts as saved, and what its checks find,
is decided in `grader.students`.
"""

import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from threading import Event
from types import FrameType

from grader.cli.homework_view import COMPONENT_TITLES, MARKS, CheckView, show_omissions
from grader.cli.terminal_page import Page
from grader.domain.assignment import Assignment
from grader.domain.errors import GraderError
from grader.domain.evidence import Finding, Status
from grader.domain.formatting import counted
from grader.students.check_on_save import RunCheck, check_on_every_save, saves_of
from grader.students.homework import LocalAssignment
from grader.students.own_check import LocalCheck

MOST_CHANGES = 5  # listed one by one


class WatchView:
    """Shows the results of each check, and what has changed since the check of the previous save."""

    def __init__(self, path: Path, assignment: Assignment, page: Page, *, details: bool) -> None:
        """Begin with nothing checked yet.

        Args:
            details: Also list every statement that is left out.
        """
        self._path = path
        self._assignment = assignment
        self._page = page
        self._details = details
        self._before: dict[str, bool] = {}  # check -> whether it passed the last time

    def clear(self) -> None:
        """Begin on an empty screen, where there is one."""
        if self._page.live:
            self._page.console.clear()
        self._page.console.print(f"{self._path.name}: {self._assignment.title}", style="bold")

    def show(self, check: LocalCheck) -> None:
        """Show the first failing part in full, a line for every other, what changed, and how many pass."""
        parts: dict[str, list[Finding]] = {}
        for finding in check.findings:
            parts.setdefault(finding.component, []).append(finding)
        first = next((name for name, findings in parts.items() if not _passed(findings)), None)
        if first is not None:
            self._show_in_full(check, parts[first])
        self._page.blank()
        for name, findings in parts.items():
            if name != first:
                self._show_in_a_line(name, findings)
        if self._details:
            replayed = self._assignment.replays_training
            show_omissions(self._page, check.program, details=True, replayed=replayed)
        self._show_changes(check.findings)
        self._show_summary(check)

    def _show_in_full(self, check: LocalCheck, findings: Sequence[Finding]) -> None:
        view = CheckView(self._path, self._assignment, self._page)
        view.read(check.program)
        for finding in findings:
            view.finding(finding)  # a part is shown after its last finding

    def _show_in_a_line(self, name: str, findings: Sequence[Finding]) -> None:
        title = COMPONENT_TITLES.get(name, name)
        lost = [finding for finding in findings if finding.status is not Status.PASSED]
        if not lost:
            self._page.item("passed", title)
            return
        count = f"{len(findings) - len(lost)} of {len(findings)}"
        self._page.item(MARKS[lost[0].status], f"{title} ({count}): {lost[0].title}")

    def _show_changes(self, findings: Sequence[Finding]) -> None:
        now = {finding.check: finding.status is Status.PASSED for finding in findings}
        before, self._before = self._before, now
        titles = {finding.check: finding.title for finding in findings}
        for heading, kind, passes in (
            ("Fixed since the last time", "passed", True),
            ("Broken since the last time", "failed", False),
        ):
            # those that pass now and did not before, then those that passed before; new checks are left out
            changed = [
                check for check, passed in now.items() if passed is passes is not before.get(check, passed)
            ]
            if changed:
                self._page.heading(heading)
            for check in changed[:MOST_CHANGES]:
                self._page.item(kind, titles[check])
            if len(changed) > MOST_CHANGES:
                self._page.detail(f"and {len(changed) - MOST_CHANGES} more", indent=4)

    def _show_summary(self, check: LocalCheck) -> None:
        passed = sum(finding.status is Status.PASSED for finding in check.findings)
        text = f"{passed} of {len(check.findings)} public checks pass."
        reached = [use for use in check.program.forbidden if use.reached_from]
        count = len(reached) + len(check.forbidden)
        if count:
            text += f" {counted(count, 'use')} of what is not allowed: `grader check` shows where."
        elif passed == len(check.findings):
            text += " `grader check` shows what would be trained, and tries it."
        self._page.verdict(passed == len(check.findings) and not count, text)


def _passed(findings: Sequence[Finding]) -> bool:
    return all(finding.status is Status.PASSED for finding in findings)


# --- check watch -----------------------------------------------------------------------------------------


def watch_file(path: Path, local: LocalAssignment, *, details: bool) -> None:
    """Check a file now and after each save, until the person interrupts it.

    Raises:
        CourseError: The checks cannot be collected.
    """
    page, rounds = Page(), 0
    view = WatchView(path, local.assignment, page, details=details)

    def show(run_check: RunCheck) -> None:
        nonlocal rounds
        rounds += 1
        started = time.monotonic()
        try:
            with _spinner(page, first=rounds == 1):
                check = run_check(lambda program: None, lambda finding: None)
        except GraderError as error:  # a file that is half written is not a reason to stop
            view.clear()
            page.verdict(False, str(error))
        else:
            view.clear()
            view.show(check)
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


def _spinner(page: Page, *, first: bool) -> AbstractContextManager[object]:
    """A spinner on a terminal while a check is made, below the results of the last one."""
    if not page.live:
        return nullcontext()
    message = "Starting (PyTorch is slow to load) ..." if first else "Checking ..."
    return page.console.status(message)


@contextmanager
def ctrl_c() -> Iterator[Event]:
    """An event that is set once Ctrl-C was pressed, which also interrupts.

    If Ctrl-C is pressed while Python finalizes an object, the KeyboardInterrupt is only printed, not raised.
    Code that waits for the exception alone might wait forever; the event is set in any case.
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
