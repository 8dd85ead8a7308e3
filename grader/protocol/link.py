"""One side of a conversation with a worker or another forked process that may hang, die or talk nonsense.

It asks, waits a limited time for the answer, and ends a process that does not give one. Whatever goes wrong
becomes a fault of one kind. One thread of a process keeps all deadlines: a worker is asked hundreds of times
for one submission, and a thread for each question would cost more than many of the answers. The caller
decides what a fault means.
"""

import contextlib
import heapq
import itertools
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from types import TracebackType
from typing import Any, BinaryIO, Literal, Protocol, TypeVar

from grader.domain.errors import EngineError, Interruption
from grader.domain.evidence import Attestation
from grader.domain.program_run import Ending, EndingLimit
from grader.protocol.error_kinds import Gap, exception_named_in_source
from grader.protocol.frames import ClosedError, Frame, FrameLimit, ProtocolError, read_frame, write_frame
from grader.protocol.replies import Done, Problem, Raised
from grader.protocol.requests import Prove
from grader.protocol.typed_messages import NOTICES, receive, send
from grader.protocol.worker_reports import WatchRecord


class Deadline:
    """A time after which something is called once, unless the `with` block has ended by then.

    Attributes:
        expired: The time is up, and it was called.
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
            with contextlib.suppress(OSError):  # a process that is gone need not be ended
                self._next().expire()

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


# --- link ------------------------------------------------------------------------------------------------


Reply = TypeVar("Reply")
FaultKind = Literal["time", "death", "nonsense"]


class WorkerProcess(Protocol):
    """What a link needs of the process at the other end."""

    @property
    def reader(self) -> BinaryIO:
        """Where its replies come from."""

    @property
    def writer(self) -> BinaryIO:
        """Where requests go."""

    @property
    def attestation(self) -> Attestation:
        """What isolates it."""

    def kill(self) -> None:
        """End it and everything that it started; may be called twice."""

    def ending(self) -> Ending:
        """How it ended; waits for the end."""

    @property
    def output_cut(self) -> bool:
        """Whether it printed more than is kept."""

    def close(self) -> None:
        """Kill it, wait for it, and release its streams; may be called twice."""


class WorkerFault(Interruption):
    """The worker did not answer as it should: it hung, died or talked nonsense. The student's fault.

    Attributes:
        kind: It did not answer in time, its process ended, or it wrote what is not an answer.
        seconds: The limit, when it is `time`.
        limit: Which of our limits ended it, if one did; for `death`.
    """

    def __init__(
        self,
        kind: FaultKind,
        message: str,
        seconds: float | None = None,
        limit: EndingLimit | None = None,
    ) -> None:
        super().__init__(message)
        self.kind: FaultKind = kind
        self.seconds = seconds
        self.limit = limit


class StudentRaised(Interruption):
    """The student's code raised.

    Attributes:
        problem: What was raised, where, and with what message.
        gap: What the source does not say of how to build or train the model; empty where it is not that.
    """

    def __init__(self, problem: Problem, gap: Gap = "") -> None:
        super().__init__(f"{problem.type}: {problem.message}")
        self.problem = problem
        self.gap = gap


def _exception_of(answer: Raised) -> Exception:
    problem = answer.problem
    if answer.whose == "engine":
        # its message may be the student's words: only a type of Python's or a library's is shown
        return EngineError(f"The worker failed ({exception_named_in_source(problem.type, '')}).")
    return StudentRaised(problem, answer.gap if answer.whose == "recipe" else "")


class Link:
    """Asks a worker, within limits on time and size.

    A worker that trickles bytes counts as one that sends nothing: the clock runs outside it, and ends it.

    Attributes:
        watch: What it has reported about forbidden parts.
    """

    def __init__(self, process: WorkerProcess, watch: WatchRecord | None = None) -> None:
        self.process = process
        self.watch = watch or WatchRecord()
        self.broken = False

    def ask(
        self,
        request: Any,
        reply: type[Reply],
        *,
        seconds: float,
        limit: FrameLimit,
        answers: Mapping[type[Any], Callable[[Any], Any]] | None = None,
    ) -> Reply:
        """The reply to a request.

        Args:
            answers: What the worker may ask back before it replies -> what it gets for an answer, or raises
                WorkerFault.

        Raises:
            StudentRaised: The student's code raised.
            WorkerFault: The worker hung, died or talked nonsense; it is dead now.
            EngineError: The worker's own code failed.
        """
        answers = answers or {}
        for message in self.conversation(request, (reply, *answers), seconds=seconds, limit=limit):
            if isinstance(message, reply):
                return message
            try:
                answer = answers[type(message)](message)
            except BaseException:  # without an answer, the worker would wait forever
                self._give_up()
                raise
            # if the worker is gone, the next read notices and raises
            with contextlib.suppress(ClosedError):
                send(self.process.writer, answer)
        raise AssertionError("a conversation has no end of its own")

    def prove_watch(self, token: int, *, seconds: float, limit: FrameLimit) -> None:
        """Try every part that is watched, and note in `watch` which of them did not report it.

        Args:
            token: A number that nobody knows beforehand.
        """
        try:
            if self.watch.has_parts:
                self.ask(Prove(token), Done, seconds=seconds, limit=limit)
        except (StudentRaised, WorkerFault, EngineError):
            self.watch.miss()
        else:
            self.watch.require_all(token)

    def conversation(
        self, request: Any, replies: tuple[type[Any], ...], *, seconds: float, limit: FrameLimit
    ) -> Iterator[Any]:
        """The replies to a request as they come, without end: the caller stops after the last one.

        Args:
            seconds: For sending the request and all replies together.
        """
        started = time.monotonic()
        deadline = Deadline(seconds, self.process.kill)
        try:
            with deadline:
                send(self.process.writer, request)
                while True:
                    answer: Any = receive(self.process.reader, (*replies, Raised, *NOTICES), limit)
                    if isinstance(answer, Raised):
                        raise _exception_of(answer)
                    if isinstance(answer, NOTICES):
                        self.watch.take(answer)
                    else:
                        yield answer
        except ClosedError as error:
            self._give_up()
            if deadline.expired or time.monotonic() - started >= seconds:
                raise WorkerFault("time", f"no answer within {seconds:.0f} s", seconds) from error
            ending = self.process.ending()
            raise WorkerFault("death", ending.words, limit=ending.limit) from error
        except ProtocolError as error:
            self._give_up()
            raise WorkerFault("nonsense", "it answered with something that is not an answer") from error

    def _give_up(self) -> None:
        self.broken = True
        self.process.kill()

    def close(self) -> None:
        """End the worker; may be called twice."""
        self.broken = True
        self.process.close()


# --- timed answers ---------------------------------------------------------------------------------------


class Silence(Interruption):
    """The process did not answer as it should; the message says what happened, as a clause."""


@contextlib.contextmanager
def timed_answers(
    child: WorkerProcess, request: Frame, seconds: float, limit: FrameLimit
) -> Iterator[Iterator[Frame]]:
    """The answers to a request as they come; the process is ended afterwards.

    Raises:
        Silence: It ended, took longer than `seconds` for all of its answers, or sent no frame.
    """
    deadline = Deadline(seconds, child.kill)

    def frames() -> Iterator[Frame]:
        try:
            write_frame(child.writer, request)
            while True:
                yield read_frame(child.reader, limit)
        except ClosedError as error:
            reason = f"no answer within {seconds:.0f} s" if deadline.expired else child.ending().words
            raise Silence(reason) from error
        except ProtocolError as error:
            raise Silence(str(error)) from error

    try:
        with deadline:
            yield frames()
    finally:
        child.close()
