"""One side of a conversation with a worker or another forked process that may hang, die or talk nonsense.

It asks, waits a limited time for the answer, and ends a process that does not give one. Whatever goes wrong
becomes a fault of one kind. The caller decides what a fault means.
"""

import contextlib
import io
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, BinaryIO, Literal, Protocol, TypeVar

from grader.domain.errors import EngineError, Interruption, SandboxError
from grader.domain.evidence import Attestation
from grader.domain.program_run import Ending, EndingLimit
from grader.protocol.deadlines import Deadline
from grader.protocol.error_kinds import Gap, exception_named_in_source
from grader.protocol.frames import (
    ClosedError,
    Frame,
    FrameLimit,
    ProtocolError,
    Readable,
    read_frame,
    write_frame,
)
from grader.protocol.replies import Done, Problem, Raised
from grader.protocol.requests import Prove
from grader.protocol.typed_messages import NOTICES, receive, send
from grader.protocol.worker_reports import WatchRecord

Reply = TypeVar("Reply")
READ_AHEAD = 16_384  # bytes: most replies are smaller
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
        hindered: For `time`: other programs kept the machine busy until the end, so that it says little.
    """

    def __init__(
        self,
        kind: FaultKind,
        message: str,
        seconds: float | None = None,
        limit: EndingLimit | None = None,
        *,
        hindered: bool = False,
    ) -> None:
        super().__init__(message)
        self.kind: FaultKind = kind
        self.seconds = seconds
        self.limit = limit
        self.hindered = hindered


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


# what to do about an exception of our own
ENGINE_FAULTS = {
    "UnusableGpuError": "PyTorch cannot use the GPU there: `grader doctor` says why. Grade with --device cpu."
}


def _exception_of(answer: Raised) -> Exception:
    problem = answer.problem
    if answer.whose == "engine":
        # its message may be the student's words: only a type of Python's or a library's is shown
        kind = exception_named_in_source(problem.type, "")
        advice = f" {ENGINE_FAULTS[kind]}" if kind in ENGINE_FAULTS else ""
        return EngineError(f"The worker failed ({kind}).{advice}")
    return StudentRaised(problem, answer.gap if answer.whose == "recipe" else "")


class _ReadAhead:
    """An unbuffered stream of which the parts of a frame that come together are read together.

    It leaves the stream to whoever opened it: `io.BufferedReader` would close it.
    """

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._held, self._position = b"", 0

    def read(self, count: int) -> bytes:
        """What is there, at most `count` bytes; nothing at the end."""
        if self._position == len(self._held):
            self._held, self._position = self._stream.read(max(count, READ_AHEAD)) or b"", 0
        part = self._held[self._position : self._position + count]
        self._position += len(part)
        return part


def _read_ahead(stream: BinaryIO) -> Readable:
    """A stream to read frames from; one that is buffered waits until all is there that it is asked for."""
    return _ReadAhead(stream) if isinstance(stream, io.RawIOBase) else stream


class Link:
    """Asks a worker, within limits on time and size.

    A worker that trickles bytes counts as one that sends nothing: the clock runs outside it, and ends it.

    Attributes:
        watch: What it has reported about forbidden parts.
        granted: The seconds that the last question got beyond its limit, since the machine was busy.
    """

    def __init__(self, process: WorkerProcess, watch: WatchRecord | None = None) -> None:
        self.process = process
        self._replies = _read_ahead(process.reader)
        self.watch = watch or WatchRecord()
        self.broken = False
        self.granted = 0.0
        self._asked = 0.0  # seconds of all questions before

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

        Raises:
            WorkerFault: The machine was too busy for it to answer, so that nothing is known.
            SandboxError: Its host is gone, and with it the worker.
        """
        try:
            if self.watch.has_parts:
                self.ask(Prove(token), Done, seconds=seconds, limit=limit)
        except SandboxError:
            raise
        except (StudentRaised, WorkerFault, EngineError) as error:
            if isinstance(error, WorkerFault) and error.hindered:
                raise
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
                    answer: Any = receive(self._replies, (*replies, Raised, *NOTICES), limit)
                    if isinstance(answer, Raised):
                        raise _exception_of(answer)
                    if isinstance(answer, NOTICES):
                        self.watch.take(answer)
                    else:
                        yield answer
        except ClosedError as error:
            self._give_up()
            if deadline.expired or time.monotonic() - started >= seconds + deadline.granted:
                hindered = self._was_hindered(deadline, seconds)
                raise WorkerFault(
                    "time", f"no answer within {seconds:.0f} s", seconds, hindered=hindered
                ) from error
            ending = self.process.ending()
            raise WorkerFault("death", ending.words, limit=ending.limit) from error
        except ProtocolError as error:
            self._give_up()
            raise WorkerFault("nonsense", "it answered with something that is not an answer") from error
        finally:
            self.granted = deadline.granted
            self._asked += time.monotonic() - started

    def _was_hindered(self, deadline: Deadline, seconds: float) -> bool:
        """Whether others kept the machine busy until the end, so that a limit was hardly tried.

        It was tried, however busy the machine, if this question alone took as much processor time.
        """
        ending = self.process.ending()  # first: what it kept busy itself does not count
        computed = (ending.cpu_seconds or 0.0) - self._asked
        return computed < seconds and deadline.was_hindered

    def _give_up(self) -> None:
        self.broken = True
        self.process.kill()

    def close(self) -> None:
        """End the worker; may be called twice."""
        self.broken = True
        self.process.close()


# --- timed answers ---------------------------------------------------------------------------------------


class NoAnswer(Interruption):
    """The process did not answer as it should; the message says what happened, as a clause."""


@contextlib.contextmanager
def timed_answers(
    child: WorkerProcess, request: Frame, seconds: float, limit: FrameLimit
) -> Iterator[Iterator[Frame]]:
    """The answers to a request as they come; the process is ended afterwards.

    Raises:
        NoAnswer: It ended, took longer than `seconds` for all of its answers, or sent no frame.
    """
    deadline = Deadline(seconds, child.kill)
    answers = _read_ahead(child.reader)

    def frames() -> Iterator[Frame]:
        try:
            write_frame(child.writer, request)
            while True:
                yield read_frame(answers, limit)
        except ClosedError as error:
            reason = f"no answer within {seconds:.0f} s" if deadline.expired else child.ending().words
            raise NoAnswer(reason) from error
        except ProtocolError as error:
            raise NoAnswer(str(error)) from error

    try:
        with deadline:
            yield frames()
    finally:
        child.close()
