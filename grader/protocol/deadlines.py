"""Limits on time that a busy machine does not shorten.

One thread of a process keeps all deadlines: a worker is asked hundreds of times for one submission, and a
thread for each question would cost more than many of the answers. When a time is up, this thread measures
which share of a processor it gets. If others take most of it, the limit was hardly tried, and it is extended;
a student's code that keeps all processors busy itself gains a few times the limit. If others still take most
of it when that code's process has ended and nothing more can be added, nobody knows what it would have done.

Tests: tests/protocol/test_deadline.py
"""

import contextlib
import heapq
import itertools
import os
import threading
import time
from collections.abc import Callable
from types import TracebackType

from grader.domain.errors import EngineError

BUSY = 3.0  # from here on a machine is busy: a thread gets a third of a processor
MOST_TIMES = 4  # a limit is extended by at most this many times itself,
MOST_GRANTED = 60.0  # and by at most these seconds: a training's limit is hardly touched
PROBE_SECONDS = 0.03


class BusyMachineError(EngineError):
    """Other programs kept the machine busy: what did not return in time shows nothing of the submission."""

    def __init__(self) -> None:
        super().__init__(
            "Other programs kept this machine so busy that the code hardly ran. Run the same command again "
            "when it is less busy."
        )


def busy_factor() -> float:
    """How many times longer computing takes here now than on a processor of its own; 1 or more."""
    wall, ran = time.monotonic(), time.thread_time()
    while (used := time.thread_time() - ran) < PROBE_SECONDS:
        pass
    return max((time.monotonic() - wall) / used, 1.0)


def remains_busy(seconds: float, granted: float) -> bool:
    """Whether others take most of what this machine computes although all was added that may be.

    To be asked when the process that had to keep to the limit has ended.

    Args:
        seconds: The limit; one of less than a second says nothing about a machine.
        granted: What was added to it.
    """
    return seconds >= 1 and granted >= _most(seconds) and busy_factor() >= BUSY


def _most(seconds: float) -> float:
    return min(MOST_TIMES * seconds, MOST_GRANTED)


def extension(seconds: float, granted: float) -> float:
    """The seconds to be added to a limit that is reached; 0 or less: none.

    Args:
        seconds: The limit.
        granted: What was added to it before.
    """
    left = _most(seconds) - granted
    factor = busy_factor() if left > 0 else 1.0
    return min((factor - 1) * seconds, left) if factor >= BUSY else 0.0


class Deadline:
    """A time after which something is called once, unless the `with` block has ended by then.

    Attributes:
        expired: The time is up, and it was called.
        granted: Seconds that were added, since the machine was busy with something else.
    """

    def __init__(self, seconds: float, expire: Callable[[], None]) -> None:
        """Set it.

        Args:
            seconds: From the beginning of the block; at least a hundredth.
            expire: Called in another thread.
        """
        self.expired = False
        self.granted = 0.0
        self._seconds = max(seconds, 0.01)
        self._expire = expire
        self._over = False

    def __enter__(self) -> "Deadline":
        _clock().add(time.monotonic() + self._seconds, self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over = True

    @property
    def was_hindered(self) -> bool:
        """Whether others kept the machine busy until the time was up: see `remains_busy`."""
        return self.expired and remains_busy(self._seconds, self.granted)

    @property
    def is_over(self) -> bool:
        """The block has ended, so that nothing is to be called any more."""
        return self._over

    def extension(self) -> float:
        """The seconds to be added now that the time is up; 0 or less: none."""
        return extension(self._seconds, self.granted)

    def expire(self) -> None:
        """Call what is to be called."""
        self.expired = True
        self._expire()


class _Clock:
    """A thread that sleeps until the earliest deadline.

    A deadline whose block has ended stays listed until its time. So the thread is woken for the earliest
    deadline only, not for each that comes and goes.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._waiting: list[tuple[float, int, Deadline]] = []
        self._numbers = itertools.count()  # of two deadlines at the same time, the first one set comes first
        threading.Thread(target=self._run, name="deadlines", daemon=True).start()

    def add(self, when: float, deadline: Deadline) -> None:
        """List a deadline; `when` is a time of the monotonic clock, in seconds."""
        with self._changed:
            heapq.heappush(self._waiting, (when, next(self._numbers), deadline))
            if self._waiting[0][2] is deadline:
                self._changed.notify()

    def _run(self) -> None:
        while True:
            deadline = self._next()
            extension = deadline.extension()
            if extension > 0:
                deadline.granted += extension
                self.add(time.monotonic() + extension, deadline)
            elif not deadline.is_over:
                with contextlib.suppress(OSError):  # a process that is gone need not be ended
                    deadline.expire()

    def _next(self) -> Deadline:
        """The next deadline whose time is up; waits for it."""
        with self._changed:
            while True:
                while self._waiting and self._waiting[0][2].is_over:
                    heapq.heappop(self._waiting)
                remaining = self._waiting[0][0] - time.monotonic() if self._waiting else None
                if remaining is not None and remaining <= 0:
                    return heapq.heappop(self._waiting)[2]
                self._changed.wait(remaining)


_clocks: dict[int, _Clock] = {}  # by process: a thread does not survive a fork
_making = threading.Lock()


def _clock() -> _Clock:
    pid = os.getpid()
    with _making:
        if pid not in _clocks:
            _clocks.clear()
            _clocks[pid] = _Clock()
        return _clocks[pid]


def _forget() -> None:
    """In a fork: the lock may be held by a thread that is not there."""
    global _making
    _making = threading.Lock()
    _clocks.clear()


if hasattr(os, "register_at_fork"):  # Windows has no forks
    os.register_at_fork(after_in_child=_forget)
