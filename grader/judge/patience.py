"""A bound on the judge's own processor time while it computes on a worker's answers.

When it is over the check ends as the engine's fault and stays undecided: no points are lost. Where there are
no signals (Windows, other threads) nothing is bounded. The limits of `grader.sandbox` end a single operation
that never returns.

Tests: tests/grading/test_limits_by_name.py
"""

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType

from grader.domain.errors import EngineError


class OutOfPatienceError(EngineError):
    """The judge computed for too long; the check that it was at is undecided."""


@contextlib.contextmanager
def patience(seconds: float) -> Iterator[None]:
    """Bound the processor time of this process within the block; waiting for a worker does not count.

    A single operation that never returns to Python is ended by the judge's own limits. Where there are no
    signals to be had (Windows, other threads) nothing is bounded.

    Args:
        seconds: Of processor time.

    Raises:
        OutOfPatienceError: They are over.
    """
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "setitimer"):
        yield
        return

    def ring(number: int, frame: FrameType | None) -> None:
        raise OutOfPatienceError(
            f"The judge computed for more than {seconds:.0f} s on what the submission's code answered."
        )

    before = signal.signal(signal.SIGPROF, ring)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
