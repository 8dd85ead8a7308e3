"""Scripted workers for the judge's side of training, and a data set whose labels are easy to tell."""

import contextlib
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, BinaryIO, cast

import numpy as np
import pytest

from grader.domain.analyzed_program import Place, Program
from grader.domain.evidence import Attestation
from grader.domain.limits import Limits
from grader.domain.program_run import Ending
from grader.kit.splits import Splits
from grader.protocol.frames import FrameLimit
from grader.protocol.replies import Answered, EpochDone, Loaded, Measurable, Trained
from grader.protocol.requests import STATE, Answer, Load, MeasureModel
from grader.protocol.typed_messages import REQUESTS, receive, send
from grader.training import Job

KEPT = ("reported", "probe", "probe_logits")
PROBED = {name: np.zeros((2, 3), dtype=np.float32) for name in ("probe", "probe_logits")}
HANG = "hang"
DIE = "die"


class ScriptedWorker:
    """A worker that answers each request with given replies, then hangs or dies; called, it makes workers.

    Attributes:
        requests: What it was asked.
        closed: Whether it was ended.
        end: How it ended, as the kernel says.
    """

    def __init__(self, replies: Sequence[Any], loaded: Sequence[Any]) -> None:
        requests, answers = os.pipe(), os.pipe()
        self.attestation = Attestation("local")
        self.reader = cast(BinaryIO, os.fdopen(answers[0], "rb", buffering=0))
        self.writer = cast(BinaryIO, os.fdopen(requests[1], "wb"))
        self._ears = cast(BinaryIO, os.fdopen(requests[0], "rb", buffering=0))
        self._mouth = cast(BinaryIO, os.fdopen(answers[1], "wb"))
        self._script = {True: loaded, False: replies}
        self._end = threading.Event()
        self.requests: list[Any] = []
        self.closed = self._taken = False
        self.beside: EchoingWorker | None = None
        self.end = Ending("it used more than its limit of 3000 MB of memory", "memory", 3000)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        with contextlib.suppress(Exception):
            while True:
                request = receive(self._ears, REQUESTS, FrameLimit())
                self.requests.append(request)
                for reply in self.replies(request):
                    if reply == HANG:
                        self._end.wait(30)
                    if reply in (HANG, DIE):
                        raise OSError
                    if isinstance(reply, bytes):
                        self._mouth.write(reply)
                        self._mouth.flush()
                    else:
                        send(self._mouth, as_state(reply))
        for stream in (self._mouth, self._ears):
            with contextlib.suppress(OSError):
                stream.close()

    def replies(self, request: Any) -> Sequence[Any]:
        """What it answers to a request."""
        return self._script[isinstance(request, Load)]

    def __call__(self) -> "ScriptedWorker":
        """The workers of one training: itself, and then one that measures."""
        if not self._taken:
            self._taken = True
            return self
        self.beside = EchoingWorker()
        return self.beside

    def kill(self) -> None:
        """End it."""
        self._end.set()

    def ending(self) -> Ending:
        """How it ended."""
        return self.end

    def close(self) -> None:
        """End it and release its streams."""
        self.closed = True
        if self.beside is not None:
            self.beside.close()
        self.kill()
        with contextlib.suppress(OSError):
            self.writer.close()
        self._thread.join(5)
        self.reader.close()


class EchoingWorker(ScriptedWorker):
    """A worker that measures: what it answers with weights are those very numbers."""

    def __init__(self) -> None:
        super().__init__((), (Loaded({}),))

    def replies(self, request: Any) -> Sequence[Any]:
        """What it answers to a request."""
        if isinstance(request, MeasureModel):
            return (Measurable(),)
        if isinstance(request, Answer):
            return (Answered(arrays=answers(request)),)
        return super().replies(request)


def as_state(reply: Any) -> Any:
    """A reply whose arrays are told as weights: what the model answers with them stands for them."""
    if not isinstance(reply, EpochDone | Trained):
        return reply
    kept = {name: value for name, value in reply.arrays.items() if name in KEPT}
    state = {f"{STATE}{name}": value for name, value in reply.arrays.items() if name not in KEPT}
    return replace(reply, arrays={**PROBED, **kept, **state})


def answers(request: Answer) -> dict[str, Any]:
    """What an echo answers."""
    found = {n.removeprefix(STATE): value for n, value in request.arrays.items() if n.startswith(STATE)}
    if not request.attention_of:
        found.pop("attention", None)
    if request.inputs_of:
        found["inputs"] = np.zeros((len(request.inputs_of), 1, 2, 2), dtype=np.float32)
    return found | ({"probe_logits": request.arrays["probe"]} if "probe" in request.arrays else {})


@pytest.fixture
def scripted() -> Iterator[Callable[..., ScriptedWorker]]:
    """Make a worker that answers Train or LoadCheckpoint with these replies, and Load as usual."""
    made: list[ScriptedWorker] = []

    def make(*replies: Any, loaded: Sequence[Any] = (Loaded({}),)) -> ScriptedWorker:
        made.append(ScriptedWorker(replies, loaded))
        return made[-1]

    yield make
    for worker in made:
        worker.close()


@pytest.fixture(scope="session")
def splits() -> Splits:
    """Three classes of which the test side has 6, 5 and 2 images; the test labels are in no simple order."""
    random = np.random.default_rng(11)
    test_labels = np.array([2, 0, 1, 0, 0, 1, 1, 0, 2, 0, 1, 0, 1], dtype=np.int64)

    def pictures(labels: Any) -> Any:
        # each image carries its own number and is otherwise flat: PNGs can be told apart
        made = np.zeros((len(labels), 120, 110), dtype=np.uint8)
        made[:] = (10 + 10 * np.arange(len(labels)))[:, None, None]
        return made

    train_labels = random.permutation(np.repeat(np.arange(3), 4)).astype(np.int64)
    return Splits(
        "toys",
        ("low", "middle", "high"),
        pictures(train_labels),
        train_labels,
        tuple(f"train{n}" for n in range(12)),
        pictures(test_labels),
        test_labels,
        tuple(f"test{n}" for n in range(13)),
    )


@pytest.fixture
def job(splits: Splits) -> Job:
    """A job with little patience."""
    limits = Limits(load_seconds=5.0, call_seconds=5.0, training_seconds=20.0)
    source = {"homework.py": "pass\n" * 20, "cell 4": "pass\n" * 5}
    program = Program("homework.py", defined={"Attention": Place("homework.py", 3)}, source=source)
    return Job(program, limits, ("timm",), seed=9, splits=splits)
