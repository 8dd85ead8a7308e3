"""Deadlines of conversations with workers, all kept by one thread of a process.

A worker is asked hundreds of times for one submission; a thread for each question would cost more than many
of the answers.
"""

import contextlib
import heapq
import itertools
import os
import threading
import time
from collections.abc import Callable
from types import TracebackType


class Deadline:
    """A time after which something is called once, unless the `with` block has ended before.

    Attributes:
        expired: The time is over, and it was called.
    """

    def __init__(self, seconds: float, expire: Callable[[], None]) -> None:
        """Set it.

        Args:
            seconds: From the beginning of the block; at least a hundredth.
            expire: Called in another thread.
        """
        self.expired = False
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
    def is_over(self) -> bool:
        """The block has ended, so that nothing is to be called any more."""
        return self._over

    def expire(self) -> None:
        """Call what is to be called."""
        self.expired = True
        self._expire()


class _Clock:
    """A thread that sleeps until the earliest deadline.

    One whose block has ended stays listed until its time: the thread is then woken for the earliest only, and
    not for each that comes and goes.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._waiting: list[tuple[float, int, Deadline]] = []
        self._numbers = itertools.count()  # of two with one time, the first comes first
        threading.Thread(target=self._run, name="deadlines", daemon=True).start()

    def add(self, when: float, deadline: Deadline) -> None:
        """List a deadline; `when` is a time of the monotonic clock, in seconds."""
        with self._changed:
            heapq.heappush(self._waiting, (when, next(self._numbers), deadline))
            if self._waiting[0][2] is deadline:
                self._changed.notify()

    def _run(self) -> None:
        while True:
            with contextlib.suppress(OSError):  # a process that is gone needs no end
                self._next().expire()

    def _next(self) -> Deadline:
        """The next deadline whose time is over, once it is."""
        with self._changed:
            while True:
                while self._waiting and self._waiting[0][2].is_over:
                    heapq.heappop(self._waiting)
                left = self._waiting[0][0] - time.monotonic() if self._waiting else None
                if left is not None and left <= 0:
                    return heapq.heappop(self._waiting)[2]
                self._changed.wait(left)


_clocks: dict[int, _Clock] = {}  # by process: a thread does not live on in a fork
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
