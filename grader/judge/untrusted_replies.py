"""Validation of a worker's replies, before and while a check computes with them.

A reply is valid as a message, but its arrays can still be missing or of any type and shape, and a rigged
model can be asked for images that make no sense. Here that becomes the worker's fault, not the instructor's.
The judge's own CPU time on such answers is bounded: when it is used up, the check stays undecided and no
points are lost. Without signals (Windows, other threads) nothing is bounded. The checks decide whether the
numbers are right.

Tests: tests/grading/test_limits_by_name.py, tests/judge/test_constructions.py, tests/judge/test_lies.py,
tests/worker/test_rigged_runs.py
"""

import contextlib
import itertools
import math
import re
import signal
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import FrameType
from typing import Any

import numpy as np
import torch
from torch import Tensor

from grader.domain.analyzed_program import Program
from grader.domain.errors import EngineError
from grader.domain.formatting import named
from grader.kit import Cause, Mismatch
from grader.kit.rigged_data import RiggedData
from grader.protocol.link import WorkerFault
from grader.protocol.replies import (
    MAX_MADE,
    AffineFakeCall,
    Built,
    Called,
    DrawnFigure,
    FakeConstruction,
    ForwardPass,
    Invoked,
    Loaded,
    Parameter,
    Ran,
)
from grader.protocol.requests import Rows
from grader.protocol.trees import MAX_ARGUMENTS, MAX_TEXT, is_small
from grader.protocol.worker_reports import raised_at


class OutOfPatienceError(EngineError):
    """The judge computed for too long; the check that was running is undecided."""


@contextlib.contextmanager
def patience(seconds: float) -> Iterator[None]:
    """Bound the CPU time of this process within the block; waiting for a worker does not count.

    A single operation that never returns to Python is ended by the judge's own limits. Without signals
    (Windows, other threads) nothing is bounded.

    Args:
        seconds: Of CPU time.

    Raises:
        OutOfPatienceError: They are used up.
    """
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "setitimer"):
        yield
        return

    def ring(number: int, frame: FrameType | None) -> None:
        raise OutOfPatienceError(
            f"The judge computed for more than {seconds:.0f} s on the answers of the submission's code."
        )

    before = signal.signal(signal.SIGPROF, ring)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


# --- believed --------------------------------------------------------------------------------------------


MAX_MODULES = 2000
MAX_STEPS = 1000  # whose gradients a worker sends
# more than our own worker ever sends: reading it would keep a judge busy for minutes
MAX_FIGURES, MAX_AXES, MAX_TEXTS = 100, 200, 1000
MAX_SIDE, MAX_COLORS = 1500, 256  # of a picture, in pixels
MAX_EVENTS = 10_000
MAX_WORDS = 2000  # characters of one text
MAX_PRINTED = 100_000
MAX_PROBLEMS = 20
_WORD = re.compile(r"\w+")


def nonsense() -> WorkerFault:
    """What to raise if a reply is not an answer."""
    return WorkerFault("nonsense", "it answered with something that is not an answer")


def parameters(built: Built) -> None:
    """Check that a component's parameters have possible sizes.

    Raises:
        WorkerFault: They do not.
    """
    for parameter in built.parameters:
        if len(parameter.shape) > 8 or any(not 0 <= side < 2**31 for side in parameter.shape):
            raise nonsense()
    if len(built.modules) > MAX_MODULES or any(not 0 <= m.parameters < 2**40 for m in built.modules):
        raise nonsense()
    names = [text for m in built.modules for text in (m.path, m.type, m.origin)]
    if any(len(text) > MAX_WORDS for text in (*names, *(p.name for p in built.parameters))):
        raise nonsense()


def constructions(built: Built) -> tuple[FakeConstruction, ...]:
    """What the fakes in a component were constructed with: few, small and finite values.

    A check computes with them; a number of thousands of digits must not make the check look faulty.

    Raises:
        WorkerFault: Our own worker would not send such values.
    """
    if len(built.made) > MAX_MADE:
        raise nonsense()
    for made in built.made:
        texts = (made.component, *made.kwargs)
        values = (*made.args, *made.kwargs.values())
        if max(len(made.args), len(made.kwargs)) > MAX_ARGUMENTS or any(len(t) > MAX_TEXT for t in texts):
            raise nonsense()
        if not all(map(is_small, values)):
            raise nonsense()
    return built.made


def array(arrays: Mapping[str, Any], name: str, shape: tuple[int, ...] | None = None, kind: str = "f") -> Any:
    """One of a reply's arrays.

    Args:
        shape: What it must be, if that is known.
        kind: The kinds of numbers that it may hold, as numpy abbreviates them (`f`: floating point).

    Raises:
        WorkerFault: It is missing or different.
    """
    value = arrays.get(name)
    if not isinstance(value, np.ndarray) or value.dtype.kind not in kind:
        raise nonsense()
    if shape is not None and value.shape != shape:
        raise nonsense()
    return value


def loaded(reply: Loaded, program: Program) -> Loaded:
    """What loading yielded, with places and modules that the source really has."""
    words = {word for text in (program.source or {}).values() for word in _WORD.findall(text)}
    problems = tuple(
        replace(problem, where=raised_at(problem, program)) for problem in reply.problems[:MAX_PROBLEMS]
    )
    absent = tuple(name for name in reply.absent_modules if set(name.split(".")) <= words)
    return replace(reply, problems=problems, absent_modules=absent)


def affine_fake_calls(
    called: Called | Invoked, components: frozenset[str]
) -> tuple[tuple[AffineFakeCall, Tensor], ...]:
    """The fakes' calls, each with its input.

    Args:
        components: The names of the fakes.

    Raises:
        Mismatch: What was handed to one is not floating point, or not finite.
        WorkerFault: There is no such fake.
    """
    if any(call.component not in components for call in called.calls):
        raise nonsense()
    calls = tuple(
        (call, torch.from_numpy(array(called.arrays, f"call{number}", call.shape, "fiub").copy()))
        for number, call in enumerate(called.calls)
    )
    for call, x in calls:
        if not x.is_floating_point():
            # in an integer type, every number between -1 and 1 would be zero
            raise Mismatch(
                f"What is handed to {named(call.component)} is a tensor of {x.dtype}; it should be floating "
                "point.",
                cause=Cause.WRONG_TYPE,
                concerns=f"{x.dtype} for {call.component}",
            )
        if not bool(torch.isfinite(x).all()):
            raise Mismatch(
                f"What is handed to {named(call.component)} is not finite (NaN or infinity).",
                cause=Cause.NOT_FINITE,
                concerns=f"for {call.component}",
            )
    return calls


def calls_by(called: Called, times: int) -> tuple[int, ...]:
    """How many calls of fakes there were when the component had returned for the first, second, ... time.

    Args:
        times: How often it was called.

    Raises:
        WorkerFault: These are not such numbers.
    """
    numbers = called.calls_by
    if len(numbers) != times or list(numbers) != sorted(numbers):
        raise nonsense()
    if numbers[0] < 0 or numbers[-1] != len(called.calls):
        raise nonsense()
    return numbers


def gradients(called: Called, parameters: Iterable[Parameter], inputs: tuple[int, ...]) -> dict[str, Tensor]:
    """The gradients by parameter name, and by `input` that of the input."""
    shapes = {f"gradient:{p.name}": p.shape for p in parameters} | {"gradient:input": inputs}
    return {
        name.removeprefix("gradient:"): torch.from_numpy(array(called.arrays, name, shape).copy())
        for name, shape in shapes.items()
        if name in called.arrays
    }


def weights(arrays: Mapping[str, Any], parameters: Iterable[Parameter]) -> dict[str, Tensor]:
    """Parameters and buffers by name; every parameter is there, in its shape."""
    for parameter in parameters:
        array(arrays, parameter.name, parameter.shape, "fiub")
    return {name: torch.from_numpy(array(arrays, name, kind="fiub").copy()) for name in arrays}


def run_arrays(ran: Ran, data: RiggedData) -> dict[str, Any]:
    """The arrays of a run on rigged data.

    Raises:
        WorkerFault: They are malformed, or more than our own worker would send.
    """
    if len(ran.printed) > MAX_PRINTED or max(len(ran.events), len(ran.learned)) > MAX_EVENTS:
        raise nonsense()
    arrays = dict(ran.arrays)
    figures(ran.figures, arrays)
    for name in ("returned", "history"):
        if array(arrays, name).ndim != 1:
            raise nonsense()
    if "features" in data.arrays:
        images, classes = len(data.labels), data.arrays["weights"].shape[1]
        array(arrays, "logit_gradients", (images, classes))
        if ran.steps:
            shape = (min(ran.steps, MAX_STEPS), *data.arrays["weights"].shape)
            array(arrays, "step_gradients", shape)
    return arrays


def figures(drawn: Sequence[DrawnFigure], arrays: dict[str, Any]) -> None:
    """Check that figures are as small as our own worker would send them, and that their arrays exist.

    Raises:
        WorkerFault: They are not.
    """
    if len(drawn) > MAX_FIGURES or not all(map(_is_drawable, drawn)):
        raise nonsense()
    for axes in (axes for figure in drawn for axes in figure.axes):
        for number in (*axes.images, *axes.heat_maps):
            array(arrays, f"image{number}")
        for number in axes.lines:
            if array(arrays, f"line{number}").shape[:-1] != (2,):
                raise nonsense()


@dataclass(frozen=True)
class Picture:
    """A picture of few colors, of a size that a report can show.

    Attributes:
        indexes: For each pixel the row of its color, uint8 (height, width).
        palette: The colors, uint8 (colors, 3).
    """

    indexes: Any
    palette: Any


def picture(arrays: Mapping[str, Any], number: int) -> Picture | None:
    """The picture of this number among a reply's arrays; None if there is none that can be shown."""
    indexes, palette = arrays.get(f"figure{number}"), arrays.get(f"palette{number}")
    if indexes is None or palette is None or {indexes.dtype, palette.dtype} != {np.dtype(np.uint8)}:
        return None
    if indexes.ndim != 2 or not all(0 < side <= MAX_SIDE for side in indexes.shape):
        return None
    if palette.ndim != 2 or palette.shape[1] != 3 or not int(indexes.max()) < len(palette) <= MAX_COLORS:
        return None
    return Picture(indexes, palette)


def _is_drawable(figure: DrawnFigure) -> bool:
    """Whether a figure has no more axes and texts than our own worker would send."""
    if len(figure.axes) > MAX_AXES or len(figure.title) > MAX_WORDS:
        return False
    for axes in figure.axes:
        lists = (axes.x_ticks, axes.y_ticks, axes.texts, axes.row_names, axes.column_names, axes.headings,
                 axes.line_names, axes.bar_names)  # fmt: skip
        if max(map(len, (*lists, axes.images, axes.heat_maps, axes.lines, axes.bars))) > MAX_TEXTS:
            return False
        if len(axes.text_cells) not in (0, len(axes.texts)):
            return False
        if len(axes.line_names) != len(axes.lines) or len(axes.bar_names) != len(axes.bars):
            return False
        if not all(map(math.isfinite, axes.bars)):
            return False
        texts = (axes.title, axes.x_label, axes.y_label, *(text for texts in lists for text in texts))
        if any(len(text) > MAX_WORDS for text in texts):
            return False
    return True


# --- forwards --------------------------------------------------------------------------------------------


MAX_PASSES = 2000  # that are remembered; further ones are answered
MAX_IMAGES = 20_000  # of one pass


class ForwardRecord:
    """Answers a rigged model's forward passes, and remembers them.

    Attributes:
        forwards: In order. The images are what was answered; the modes are what the worker says.
    """

    def __init__(self, data: RiggedData) -> None:
        self.forwards: list[ForwardPass] = []
        self._rows = data.rows

    def rows(self, forward: ForwardPass) -> Rows:
        """What the model needs of its images.

        Raises:
            WorkerFault: It asks for images that do not exist.
        """
        ids = forward.images
        if forward.size != len(ids) or len(ids) > MAX_IMAGES:
            raise nonsense()
        if any(not 0 <= number < len(self._rows) for number in ids):
            raise nonsense()
        if len(self.forwards) < MAX_PASSES:
            self.forwards.append(forward)
        return Rows({"rows": self._rows[list(ids)]})

    def without_looks(self, ran: Ran) -> tuple[tuple[ForwardPass, ...], tuple[str, ...]]:
        """The forward passes and the events of a run, without passes that only looked at what was learned.

        A loop may call the model again on images that it trains on, for their accuracy say. Through such a
        pass no gradient comes back, but through another one with the same images there does.
        """
        learned = set(ran.learned)
        numbered = list(enumerate(self.forwards))
        taught = {image for number, forward in numbered if number in learned for image in forward.images}
        kept = [number in learned or not taught.issuperset(forward.images) for number, forward in numbered]
        further = itertools.chain(kept, itertools.repeat(True))
        return (
            tuple(itertools.compress(self.forwards, kept)),
            tuple(event for event in ran.events if event != "forward" or next(further)),
        )
