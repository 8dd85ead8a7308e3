"""Writes the files of a results folder while people pause, so that nobody waits for them.

Marks and decisions stand in the gradebook at once, and the console shows them from there. Reports, the class
page and the tables follow when nobody added anything for a moment, after some minutes in any case, and when
the console ends. If it is killed before, whoever uses the folder next writes them.
"""

import threading
from collections.abc import Callable
from datetime import datetime

from grader.domain.errors import GraderError
from grader.gradebook import State
from grader.marking.desk import Desk, grading_assignment
from grader.results.class_pages import CatchUpOutcome, are_behind, caught_up, times_asked, write_pages
from grader.results.kept_scores import kept_scores

PAUSE_SECONDS = 20.0  # between looks whether pages are behind
MOST_LOOKS = 15  # that pages stay behind while people never pause


class DelayedPages:
    """The files of a class that is worked on in a console.

    Args:
        desk: The class.
        clock: The time, with its zone.
    """

    def __init__(self, desk: Desk, clock: Callable[[], datetime]) -> None:
        self._desk, self._clock = desk, clock
        self._seen = self._now()
        self._written: tuple[State, int] | None = self._seen
        self._looks_behind = 0
        self._was_behind = are_behind(desk.book, desk.out, desk.assignment.id)  # as after a kill
        if self._was_behind:
            self._written = None

    def follow(self, stopped: threading.Event) -> None:
        """Look again and again, and a last time once it is stopped."""
        while not stopped.wait(PAUSE_SECONDS):
            self.look()
        self.look(is_last=True)

    def look(self, *, is_last: bool = False) -> None:
        """Write what is behind if nothing was added since the last look, or if it has been behind for long.

        Args:
            is_last: Write what is behind in any case.
        """
        now = self._now()
        if now != self._written:
            self._looks_behind += 1
            if now == self._seen or is_last or self._looks_behind >= MOST_LOOKS:
                self._write(now)
        self._seen = now

    def _now(self) -> tuple[State, int]:
        """The state of the gradebook, and how often all pages were asked for anew."""
        return self._desk.book.state(), times_asked(self._desk.out)

    def _write(self, now: tuple[State, int]) -> None:
        desk = self._desk
        try:
            assignment = grading_assignment(desk)
            if self._was_behind:
                done = caught_up(assignment, desk.book, desk.out, self._clock)
                # if the rubric changed since, the class must be scored again first
                self._was_behind = done is not None and done.outcome is not CatchUpOutcome.WRITTEN
            else:
                known = desk.followed.now(assignment)
                scores = known.scores.tried(kept_scores(desk.out))
                write_pages(assignment, desk.book, desk.out, self._clock(), made=known.snapshot, kept=scores)
        except GraderError:
            return  # the next command writes them, and says what is wrong
        self._written, self._looks_behind = now, 0
