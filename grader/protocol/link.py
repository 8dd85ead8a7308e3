"""One side of a conversation with a worker that may hang, die or talk nonsense."""

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, BinaryIO, Literal, Protocol, TypeVar

from grader.domain.ending import Ending, EndingLimit
from grader.domain.errors import EngineError, Interruption
from grader.domain.evidence import Attestation
from grader.protocol.deadline import Deadline
from grader.protocol.exception_names import told_of
from grader.protocol.frames import ClosedError, FrameLimit, ProtocolError
from grader.protocol.recipe_gaps import Gap
from grader.protocol.replies import Done, Problem, Raised
from grader.protocol.requests import Prove
from grader.protocol.typed_messages import NOTICES, receive, send
from grader.protocol.watching import WatchRecord

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
        limit: The limit of ours that ended it, when it is `death` and one did.
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
        problem: What, where and with which words.
        gap: What the source does not say of how to build or train the model; empty where it is not that.
    """

    def __init__(self, problem: Problem, gap: Gap = "") -> None:
        super().__init__(f"{problem.type}: {problem.message}")
        self.problem = problem
        self.gap = gap


def _raised(answer: Raised) -> Exception:
    problem = answer.problem
    if answer.whose == "engine":
        # what it says may be the student's words: only a type that is Python's is told
        return EngineError(f"The worker failed ({told_of(problem.type, '')}).")
    return StudentRaised(problem, answer.gap if answer.whose == "recipe" else "")


class Link:
    """Asks a worker, within time and size.

    A worker that trickles bytes is as slow as one that says nothing: the clock runs outside, and it kills.

    Attributes:
        watch: What it told of forbidden parts, whenever it did.
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
        for said in self.conversation(request, (reply, *answers), seconds=seconds, limit=limit):
            if isinstance(said, reply):
                return said
            try:
                answer = answers[type(said)](said)
            except BaseException:  # without an answer, it would wait for ever
                self._give_up()
                raise
            # one that is gone is found out, and told, by what is read next
            with contextlib.suppress(ClosedError):
                send(self.process.writer, answer)
        raise AssertionError("a conversation has no end of its own")

    def prove_watch(self, token: int, *, seconds: float, limit: FrameLimit) -> None:
        """Try every part that is watched; what does not tell of it is noted in `watch`.

        Args:
            token: Nobody knows it before.
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
        """The replies to a request as they come, forever; the caller stops at the one that it knows as last.

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
                        raise _raised(answer)
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
