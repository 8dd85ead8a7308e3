"""A worker that hangs, trickles, dies or talks nonsense costs a bounded time and is told apart."""

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator
from typing import BinaryIO

import numpy as np
import pytest

from grader.domain.errors import EngineError, SandboxError
from grader.domain.evidence import Attestation
from grader.domain.formatting import Said
from grader.domain.program_run import NOTHING_SEEN, Ending
from grader.protocol import deadlines
from grader.protocol.frames import ClosedError, FrameLimit
from grader.protocol.link import Link, StudentRaised, WorkerFault
from grader.protocol.replies import Done, ForwardPass, Loaded, Problem, Raised, Trained, TrainingPlan
from grader.protocol.requests import Rows, SetWeights, Weights
from grader.protocol.typed_messages import REQUESTS, receive, send
from grader.protocol.worker_reports import WatchRecord

LIMIT = FrameLimit(document=10_000, arrays=10_000)
Behavior = Callable[[BinaryIO, BinaryIO], None]


class FakeWorker:
    """A thread at the other ends of two pipes; killing it closes its replies."""

    attestation = Attestation("local")

    def __init__(self, behavior: Behavior) -> None:
        requests_in, requests_out = os.pipe()
        replies_in, replies_out = os.pipe()
        self.reader: BinaryIO = os.fdopen(replies_in, "rb", buffering=0)  # type: ignore[assignment]
        self.writer: BinaryIO = os.fdopen(requests_out, "wb")
        self._requests = os.fdopen(requests_in, "rb", buffering=0)
        self._replies = os.fdopen(replies_out, "wb", buffering=0)
        self.stop = threading.Event()
        self.kills = 0
        self.cpu_seconds: float | None = None
        self._thread = threading.Thread(target=self._run, args=(behavior,), daemon=True)
        self._thread.start()

    def _run(self, behavior: Behavior) -> None:
        try:
            behavior(self._requests, self._replies)  # type: ignore[arg-type]
            if not self.stop.is_set():
                self.stop.wait(20)
        except OSError:
            pass
        finally:
            self._replies.close()
            self._requests.close()

    def kill(self) -> None:
        """End it."""
        self.kills += 1
        self.stop.set()

    def ending(self) -> Ending:
        """What a process would say."""
        return Ending("it was killed by signal 9", cpu_seconds=self.cpu_seconds)

    def close(self) -> None:
        """End it and close the pipes."""
        self.kill()
        with contextlib.suppress(OSError):
            self.writer.close()  # it may wait for a request
        self._thread.join(5)
        self.reader.close()


@pytest.fixture
def worker() -> Iterator[Callable[[Behavior], FakeWorker]]:
    """Make fake workers that are closed afterwards."""
    made: list[FakeWorker] = []

    def make(behavior: Behavior) -> FakeWorker:
        made.append(FakeWorker(behavior))
        return made[-1]

    yield make
    for fake in made:
        fake.close()


def answering(*replies: object) -> Behavior:
    """Read a request, then send the replies."""

    def behave(requests: BinaryIO, sink: BinaryIO) -> None:
        receive(requests, REQUESTS, LIMIT)
        for reply in replies:
            send(sink, reply)

    return behave


def test_an_answer_arrives(worker: Callable[[Behavior], FakeWorker]) -> None:
    """The clock is stopped afterwards: the worker lives on."""
    fake = worker(answering(Done()))
    link = Link(fake)
    assert link.ask(SetWeights(0), Done, seconds=0.3, limit=LIMIT) == Done()
    time.sleep(0.4)
    assert not link.broken and fake.kills == 0


def asking(*passes: ForwardPass) -> Behavior:
    """Read a request, ask for rows, and reply once they are all there."""

    def behave(requests: BinaryIO, sink: BinaryIO) -> None:
        receive(requests, REQUESTS, LIMIT)
        with contextlib.suppress(ClosedError):
            for forward in passes:
                send(sink, forward)
                assert receive(requests, (Rows,), LIMIT).arrays["rows"].tolist() == [forward.size]
            send(sink, Done())

    return behave


def test_a_worker_may_ask_back(worker: Callable[[Behavior], FakeWorker]) -> None:
    """What it may ask it is answered, as often as it asks."""
    link = Link(worker(asking(ForwardPass(1, True, True, (0,)), ForwardPass(2, True, True, (0, 1)))))
    answers = {ForwardPass: lambda forward: Rows({"rows": np.array([forward.size])})}
    assert link.ask(SetWeights(0), Done, seconds=5, limit=LIMIT, answers=answers) == Done()
    assert not link.broken


def test_a_worker_that_asks_what_it_may_not_is_ended(worker: Callable[[Behavior], FakeWorker]) -> None:
    """Where nothing may be asked, and where the answer is that there is none."""
    fault = WorkerFault("nonsense", "it answered with something that is not an answer")

    def refuse(forward: ForwardPass) -> Rows:
        raise fault

    for answers in ({}, {ForwardPass: refuse}):
        fake = worker(asking(ForwardPass(1, True, True, (7,))))
        link = Link(fake)
        with pytest.raises(WorkerFault, match="not an answer"):
            link.ask(SetWeights(0), Done, seconds=5, limit=LIMIT, answers=answers)
        assert link.broken and fake.kills


def test_what_the_student_raised_is_no_fault_of_the_worker(
    worker: Callable[[Behavior], FakeWorker],
) -> None:
    """The link stays usable."""
    link = Link(worker(answering(Raised(Problem("ValueError", Said("no"), "homework.py:3")))))
    with pytest.raises(StudentRaised, match="ValueError: “no”") as raised:
        link.ask(Weights(0), Done, seconds=5, limit=LIMIT)
    assert raised.value.problem.where == "homework.py:3"
    assert not link.broken


def test_a_hang_is_ended_within_its_limit(worker: Callable[[Behavior], FakeWorker]) -> None:
    """A worker that never answers is killed from outside."""
    fake = worker(answering())
    started = time.monotonic()
    with pytest.raises(WorkerFault, match="within 0 s") as fault:
        Link(fake).ask(Weights(0), Done, seconds=0.3, limit=LIMIT)
    assert (fault.value.kind, fault.value.seconds) == ("time", 0.3)
    assert time.monotonic() - started < 3
    assert fake.kills >= 1


@pytest.mark.parametrize(
    ("computed", "earlier", "hindered"),
    [(None, 0.0, True), (0.15, 0.0, True), (0.25, 0.1, True), (0.25, 0.0, False)],
)
def test_a_busy_machine_is_not_to_blame_for_what_computed_long_enough(
    worker: Callable[[Behavior], FakeWorker],
    monkeypatch: pytest.MonkeyPatch,
    computed: float | None,
    earlier: float,
    hindered: bool,
) -> None:
    """What it computed for other questions before does not count."""
    monkeypatch.setattr(deadlines, "extension", lambda *_: 0.0)
    monkeypatch.setattr(deadlines, "remains_busy", lambda *_: True)

    def hang(requests: BinaryIO, sink: BinaryIO) -> None:
        receive(requests, REQUESTS, LIMIT)
        time.sleep(earlier)
        send(sink, Done())
        receive(requests, REQUESTS, LIMIT)

    fake = worker(hang)
    fake.cpu_seconds = computed
    link = Link(fake)
    link.ask(Weights(0), Done, seconds=20, limit=LIMIT)
    with pytest.raises(WorkerFault) as fault:
        link.ask(Weights(0), Done, seconds=0.2, limit=LIMIT)
    assert fault.value.hindered is hindered


def test_trickling_bytes_do_not_stretch_the_limit(worker: Callable[[Behavior], FakeWorker]) -> None:
    """A byte now and then is as slow as nothing at all."""
    fakes: list[FakeWorker] = []

    def trickle(requests: BinaryIO, sink: BinaryIO) -> None:
        receive(requests, REQUESTS, LIMIT)
        while not (fakes and fakes[0].stop.is_set()):
            sink.write(b"G")
            time.sleep(0.05)

    fakes.append(worker(trickle))
    started = time.monotonic()
    with pytest.raises(WorkerFault):
        Link(fakes[0]).ask(Weights(0), Done, seconds=0.5, limit=LIMIT)
    assert time.monotonic() - started < 4


def test_death_is_told_in_the_words_of_the_process(worker: Callable[[Behavior], FakeWorker]) -> None:
    """The stream ends before the limit."""

    def die(requests: BinaryIO, sink: BinaryIO) -> None:
        receive(requests, REQUESTS, LIMIT)
        raise OSError

    link = Link(worker(die))
    with pytest.raises(WorkerFault, match="signal 9") as fault:
        link.ask(Weights(0), Done, seconds=20, limit=LIMIT)
    assert fault.value.kind == "death"
    assert link.broken


def test_a_watch_is_not_missed_where_the_host_of_the_worker_is_gone(
    worker: Callable[[Behavior], FakeWorker], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would look as if the student's code had switched it off."""

    def die(requests: BinaryIO, sink: BinaryIO) -> None:
        raise OSError

    def gone() -> Ending:
        raise SandboxError("A host process ended.")

    fake = worker(die)
    monkeypatch.setattr(fake, "ending", gone)
    link = Link(fake, WatchRecord(("torch.nn.*",), ("homework.py",)))
    monkeypatch.setattr(WatchRecord, "has_parts", True)
    with pytest.raises(SandboxError):
        link.prove_watch(7, seconds=20, limit=LIMIT)
    assert link.watch.watched == NOTHING_SEEN


@pytest.mark.parametrize("noise", [b"Traceback (most recent call last)", b"GRF1" + b"\xff" * 12])
def test_nonsense_ends_the_worker(worker: Callable[[Behavior], FakeWorker], noise: bytes) -> None:
    """Bytes that are not a frame, or announce too much."""

    def rave(requests: BinaryIO, sink: BinaryIO) -> None:
        receive(requests, REQUESTS, LIMIT)
        sink.write(noise)

    fake = worker(rave)
    with pytest.raises(WorkerFault) as fault:
        Link(fake).ask(Weights(0), Done, seconds=20, limit=LIMIT)
    assert fault.value.kind == "nonsense"
    assert fake.kills == 1


def test_a_reply_of_another_kind_is_nonsense(worker: Callable[[Behavior], FakeWorker]) -> None:
    """A worker cannot answer a question that was not asked."""
    with pytest.raises(WorkerFault, match="not an answer") as fault:
        Link(worker(answering(Trained(3)))).ask(Weights(0), Done, seconds=20, limit=LIMIT)
    assert fault.value.kind == "nonsense"


def test_a_conversation_ends_when_its_caller_stops(worker: Callable[[Behavior], FakeWorker]) -> None:
    """Several replies to one request, within one limit."""
    plan = TrainingPlan(2, 8, "SGD", "", "cpu")
    link = Link(worker(answering(plan, Trained(2))))
    found = []
    conversation = link.conversation(Weights(0), (TrainingPlan, Trained), seconds=20, limit=LIMIT)
    for reply in conversation:
        found.append(reply)
        if isinstance(reply, Trained):
            break
    assert found == [plan, Trained(2)]


def test_the_limit_holds_for_all_replies_together(worker: Callable[[Behavior], FakeWorker]) -> None:
    """Each reply in time is not enough."""
    fakes: list[FakeWorker] = []

    def slow(requests: BinaryIO, sink: BinaryIO) -> None:
        receive(requests, REQUESTS, LIMIT)
        while not (fakes and fakes[0].stop.is_set()):
            send(sink, Done())
            time.sleep(0.1)

    fakes.append(worker(slow))
    started = time.monotonic()
    with pytest.raises(WorkerFault) as fault:
        for _ in Link(fakes[0]).conversation(Weights(0), (Done,), seconds=0.6, limit=LIMIT):
            pass
    assert fault.value.kind == "time"
    assert time.monotonic() - started < 4


def test_what_the_recipe_lacks_is_told_from_what_raised(worker: Callable[[Behavior], FakeWorker]) -> None:
    """A person looks at the one; the other is the student's."""
    raised = Raised(Problem("RecipeError"), "recipe", "no_model")
    with pytest.raises(StudentRaised) as caught:
        Link(worker(answering(raised))).ask(Weights(0), Done, seconds=5, limit=LIMIT)
    assert caught.value.gap == "no_model"
    with pytest.raises(StudentRaised) as caught:
        Link(worker(answering(Raised(Problem("E", Said("x")))))).ask(Weights(0), Done, seconds=5, limit=LIMIT)
    assert caught.value.gap == ""


def test_what_the_worker_itself_did_wrong_is_ours(worker: Callable[[Behavior], FakeWorker]) -> None:
    """It never costs a point, and its words are bounded."""
    raised = Raised(Problem("KeyError", Said("x" * 5000)), "engine")
    with pytest.raises(EngineError, match="KeyError") as caught:
        Link(worker(answering(raised))).ask(Weights(0), Done, seconds=5, limit=LIMIT)
    assert len(str(caught.value)) < 400


def test_death_in_the_middle_of_a_reply_is_a_death(worker: Callable[[Behavior], FakeWorker]) -> None:
    """Half a frame is not nonsense."""

    def die(requests: BinaryIO, sink: BinaryIO) -> None:
        receive(requests, REQUESTS, LIMIT)
        sink.write(b"GRF1\x40")
        raise OSError

    with pytest.raises(WorkerFault) as fault:
        Link(worker(die)).ask(Weights(0), Done, seconds=20, limit=LIMIT)
    assert fault.value.kind == "death"


def test_worker_that_does_not_even_read_is_ended(worker: Callable[[Behavior], FakeWorker]) -> None:
    """The limit counts while a large request is being sent."""
    fake = worker(lambda requests, sink: None)
    request = SetWeights(0, {"w": np.zeros(1_000_000)})
    started = time.monotonic()
    with pytest.raises(WorkerFault) as fault:
        Link(fake).ask(request, Done, seconds=0.3, limit=LIMIT)
    assert fault.value.kind == "time"
    assert time.monotonic() - started < 3


def test_reply_over_its_limit_is_nonsense(worker: Callable[[Behavior], FakeWorker]) -> None:
    """The limit of the request is the one that counts."""
    reply = Loaded({"x" * 20_000: "class"})
    with pytest.raises(WorkerFault) as fault:
        Link(worker(answering(reply))).ask(Weights(0), Done, seconds=20, limit=LIMIT)
    assert fault.value.kind == "nonsense"


def test_closing_twice_ends_the_worker_and_is_harmless(worker: Callable[[Behavior], FakeWorker]) -> None:
    """A link may be closed wherever it is no longer needed."""
    fake = worker(lambda requests, sink: None)
    link = Link(fake)
    link.close()
    link.close()
    assert link.broken and fake.kills
    with pytest.raises(WorkerFault):
        link.ask(Weights(0), Done, seconds=1, limit=LIMIT)
