"""A student's component in a worker, as a check uses it: called, measured, given weights.

It decides whether an output is a finite floating-point tensor of the asked shape; anything else is a
`Mismatch`. A wrong size is expressed as a product of the constructor's sizes (`20 = heads * dim_head`) if
only one fits; that adds a sentence and decides nothing. The check decides whether the numbers are right,
and `verdict` what the finding is.

Tests: tests/judge/test_constructions.py, tests/judge/test_folding.py, tests/judge/test_lies.py,
tests/judge/test_sizes.py
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import prod
from typing import Self

import numpy as np
import torch
from torch import Tensor

from grader.domain.errors import CourseError
from grader.domain.formatting import named
from grader.judge import untrusted_replies
from grader.judge.remote_objects import Owner, Thing
from grader.kit import Cause, Mismatch, same
from grader.protocol.replies import AffineFakeCall, Built, Called, Invoked, Module, Parameter, WeightValues
from grader.protocol.requests import Call, SetWeights, Weights
from grader.protocol.trees import Plain

LEAST = 3  # smaller numbers are products by chance


def wrong_size_in_words(shape: Sequence[int], expected: Sequence[int], sizes: Mapping[str, int]) -> str:
    """The first wrong axis of a shape in terms of the sizes that a part was constructed with.

    Args:
        shape, expected: Shapes; if they have different numbers of axes, nothing is said.
        sizes: By the names of the constructor's parameters.

    Returns:
        `Axis 2 has 20 = heads * dim_head values; it should have 22 = dim.`; empty if no size, or more than
        one product, gives the number.
    """
    if len(shape) != len(expected):
        return ""
    axis = next(number for number, size in enumerate(shape) if size != expected[number])
    made_of = _product(shape[axis], sizes)
    if not made_of:
        return ""
    wanted = _product(expected[axis], sizes)
    should = f"{expected[axis]} = {wanted}" if wanted else str(expected[axis])
    return f"Axis {axis} has {shape[axis]} = {made_of} values; it should have {should}."


def _product(number: int, sizes: Mapping[str, int]) -> str:
    """The only size, or else the only product of two sizes, of this value; empty if there is none."""
    if number < LEAST:
        return ""
    for factors in (1, 2):
        fitting = [
            names
            for names in combinations(sizes, factors)
            if prod(sizes[name] for name in names) == number and all(sizes[name] >= 2 for name in names)
        ]
        if fitting:
            return " * ".join(fitting[0]) if len(fitting) == 1 else ""
    return ""


# --- component -------------------------------------------------------------------------------------------


MAX_SHOWN = 8  # names that a message lists
INNER = "inner"  # the worker's name for the fake that is handed over


@dataclass(frozen=True)
class Gradients:
    """Gradients of `(output * cotangent).sum()`.

    Attributes:
        output: What the component returned.
        input: By its input, of the input's shape; None when none arrived.
        parameters: By parameter name.
        missing: Trainable parameters that received none.
    """

    output: Tensor
    input: Tensor | None
    parameters: dict[str, Tensor]
    missing: tuple[str, ...]


class Component(Thing):
    """One of the student's components, constructed.

    Attributes:
        name: `Attention`, ...
        parameters: Its parameters; those that share storage are listed once.
        modules: Its tree of modules.
        made: What the fakes in it were constructed with, in order, as the worker reports.
        calls: The fakes' calls during the last call, each with its input.
        last_call, last_seconds: The last one in evaluation mode that gave an output, and how long it took.
    """

    def __init__(
        self,
        student: Owner,
        name: str,
        label: str,
        built: Built,
        affine_fakes: frozenset[str] = frozenset(),
        sizes: Mapping[str, int] | None = None,
    ) -> None:
        super().__init__(student, name, label, built.handle, kind="module", made=name)
        self.parameters: tuple[Parameter, ...] = built.parameters
        self.modules: tuple[Module, ...] = built.modules
        self.made = untrusted_replies.constructions(built)
        self.calls: tuple[tuple[AffineFakeCall, Tensor], ...] = ()
        self.last_call: Call | None = None
        self.last_seconds = 0.0
        self._affine_fakes = affine_fakes
        self._sizes = sizes or {}
        self._held: tuple[int, dict[str, Tensor]] | None = None  # the weights after so many questions

    @property
    def parameter_count(self) -> int:
        """The trainable numbers; shared ones count once."""
        return sum(int(np.prod(p.shape)) for p in self.parameters if p.trainable)

    def constructions(self, component: str) -> list[dict[str, Plain]]:
        """The arguments with which each fake of a component was constructed, by the stub's names.

        Anything but a number, text or truth value (a module) is None; arguments that were not given are
        missing.
        """
        names = self._student.parameter_names(component)
        return [
            {**dict(zip(names, made.args, strict=False)), **made.kwargs}
            for made in self.made
            if made.component == component
        ]

    def __call__(
        self,
        *inputs: Tensor,
        shape: tuple[int, ...] | None = None,
        train: bool = False,
        without_dropout: bool = False,
        **keywords: Tensor,
    ) -> Tensor:
        """The output for the inputs.

        Args:
            shape: What the output's shape must be.
            train: In training mode; else in evaluation mode.
            without_dropout: With the rates of all dropout layers at zero.

        Raises:
            Mismatch: It raised, or did not return a tensor of that shape with finite numbers.
        """
        [output] = self.repeated(
            *inputs, times=1, shape=shape, train=train, without_dropout=without_dropout, **keywords
        )
        return output

    def repeated(
        self,
        *inputs: Tensor,
        times: int,
        shape: tuple[int, ...] | None = None,
        train: bool = False,
        without_dropout: bool = False,
        **keywords: Tensor,
    ) -> Iterator[Tensor]:
        """The outputs of several calls with the same inputs, in one question: much faster than one each.

        While the loop is at an output, `calls` and `inputs_of` are those of its call. What is drawn at random
        is drawn anew for each.

        Args:
            times: How many calls.
            shape, train, without_dropout: As for a call.

        Raises:
            Mismatch: As for a call.
        """
        arrays = {str(index): value.numpy() for index, value in enumerate(inputs)}
        arrays |= {f"keyword:{name}": value.numpy() for name, value in keywords.items()}
        seed = self._student.next_seed()
        call = Call(self._handle, train, False, seed, without_dropout, times, arrays)
        started = time.monotonic()
        called = self._reply_to(call)
        outputs = [self._checked_output(called, shape, number) for number in range(times)]
        calls = untrusted_replies.affine_fake_calls(called, self._affine_fakes)
        ends = untrusted_replies.calls_by(called, times)
        if not train:
            self.last_call = replace(call, times=1)
            self.last_seconds = (time.monotonic() - started) / times
        for output, first, end in zip(outputs, (0, *ends), ends, strict=False):
            self.calls = calls[first:end]
            yield output

    def is_random(self) -> bool:
        """Whether the last call in evaluation mode, repeated twice, gives two different outputs.

        Raises:
            Mismatch: As for a call.
        """
        if self.last_call is None:
            return False
        calls = (replace(self.last_call, seed=self._student.next_seed()) for _ in range(2))
        first, second = (self._checked(self._reply_to(call), None) for call in calls)
        return not same(first, second)

    def inputs_of(self, fake: str) -> tuple[Tensor, ...]:
        """What a fake was given during the last call, one tensor for each time that it was called.

        That call may also be one of a method, or of the component by `call("", ...)`.

        Args:
            fake: The component's name or the fake's path; `inner`: the one handed over.

        Raises:
            Mismatch: It was not called, so nothing is known of what goes through it.
        """
        inputs = tuple(x for call, x in self.calls if call.component == fake)
        if not inputs:
            what = "the module that it is given" if fake == INNER else named(fake)
            raise Mismatch(
                f"`{self.label}` never calls {what}.",
                hint="Call it in forward, and go on with what it returns.",
                cause=Cause.NOT_CALLED,
                concerns=f"{fake} in {self.name}",
            )
        return inputs

    def gradients(self, x: Tensor, cotangent: Tensor, *, train: bool = False) -> Gradients:
        """Output and gradients for an input.

        Raises:
            Mismatch: As for a call.
        """
        arrays = {"0": x.numpy(), "cotangent": cotangent.numpy()}
        called = self._reply_to(Call(self._handle, train, True, self._student.next_seed(), arrays=arrays))
        output = self._checked(called, tuple(cotangent.shape))
        by_name = untrusted_replies.gradients(called, self.parameters, tuple(x.shape))
        missing = tuple(p.name for p in self.parameters if p.name in called.no_gradient)
        return Gradients(output, by_name.pop("input", None), by_name, missing)

    def weights(self) -> dict[str, Tensor]:
        """Parameters and buffers by name.

        Raises:
            Mismatch: They hold numbers that are not finite.
        """
        if self._held is not None and self._held[0] == self._student.questions:
            return {name: value.clone() for name, value in self._held[1].items()}
        values = self._student.ask(Weights(self._handle), WeightValues, self._link, self.name)
        by_name = untrusted_replies.weights(values.arrays, self.parameters)
        for name, value in by_name.items():
            if value.is_floating_point() and not bool(torch.isfinite(value).all()):
                raise Mismatch(
                    f"The weights of `{self.label}` are not finite: {named(name)} holds NaN or infinity.",
                    hint="Parameters made with torch.empty hold whatever was in memory: initialize them.",
                )
        self._held = self._student.questions, by_name
        return {name: value.clone() for name, value in by_name.items()}

    def set_weights(self, values: Mapping[str, Tensor]) -> None:
        """Overwrite parameters and buffers by name; those that are not named stay as they are.

        They are sent with the next question, so what is wrong with setting them is found there.

        Raises:
            CourseError: It has no such name, or another shape under it.
        """
        shapes = {
            name: parameter.shape
            for parameter in self.parameters
            for name in (parameter.name, *parameter.shared_with)
        }
        if not values.keys() <= shapes.keys():  # buffers
            shapes |= {name: tuple(value.shape) for name, value in self.weights().items()}
        for name, value in values.items():
            if name not in shapes:
                have = ", ".join(list(shapes)[:MAX_SHOWN]) or "none"
                raise CourseError(
                    f"A check sets '{name}' of {self.name}, which has no parameter or buffer of that name. "
                    f"Take the names from weights(); they are: {have}."
                )
            if shapes[name] != tuple(value.shape):
                raise CourseError(
                    f"A check sets '{name}' of {self.name} to a tensor of shape {tuple(value.shape)}; "
                    f"its own is {shapes[name]}. Reshape it."
                )
        arrays = {name: value.numpy().copy() for name, value in values.items()}
        if arrays:
            self._student.set_later(SetWeights(self._handle, arrays), self._link, self.name)

    def randomized(self, spread: float = 0.5) -> Self:
        """Itself after `randomize`: of a part whose last layer begins with zeros, nothing shows before."""
        self.randomize(spread)
        return self

    def randomize(self, spread: float = 0.5) -> dict[str, Tensor]:
        """Move every trainable parameter away from its initial value, so that none is zero or one by chance.

        The judge chooses the values: a student's large bias, or an infinite gain, would make all outputs
        equal. Integer parameters stay as they are, and are not returned: what the student chose must not
        explain an output.

        Returns:
            The parameters afterwards, as the judge chose them.

        Raises:
            WorkerFault: The worker did not keep what it was given.
        """
        moved = {}
        trainable = {parameter.name for parameter in self.parameters if parameter.trainable}
        for name, value in self.weights().items():
            if name in trainable and value.is_floating_point():
                noise = torch.randn(value.shape, generator=self._student.random, dtype=torch.float64)
                size = min(max(float(value.double().pow(2).mean().sqrt()), 0.1), 1.0)
                moved[name] = (value.double().clamp(-1, 1) + spread * noise * size).to(value.dtype)
        self.set_weights(moved)
        held = self.weights()
        if any(not torch.equal(held[name], value) for name, value in moved.items()):
            raise untrusted_replies.nonsense()
        return {name: held[name] for name in moved}

    def _note_calls(self, reply: Invoked) -> None:
        if self._affine_fakes:
            self.calls = untrusted_replies.affine_fake_calls(reply, self._affine_fakes)

    def _reply_to(self, call: Call) -> Called:
        called: Called = self._student.ask(call, Called, self._link, self.name, self.label)
        return called

    def _checked(self, called: Called, shape: tuple[int, ...] | None) -> Tensor:
        output = self._checked_output(called, shape)
        self.calls = untrusted_replies.affine_fake_calls(called, self._affine_fakes)
        return output

    def _checked_output(self, called: Called, shape: tuple[int, ...] | None, number: int = 0) -> Tensor:
        """What a call returned, the first one or a later one of the same question."""
        if called.result != "tensor":
            raise Mismatch(
                f"`{self.label}` returned {_worded(called.result)} instead of a tensor.",
                hint="Does forward end with a return statement?",
                cause=Cause.NO_TENSOR,
                concerns=f"{called.result} of {self.name}",
            )
        output = torch.from_numpy(
            untrusted_replies.array(called.arrays, f"output{number or ''}", kind="fiub").copy()
        )
        if shape is not None and tuple(output.shape) != shape:
            says = wrong_size_in_words(tuple(output.shape), shape, self._sizes)
            found = f"`{self.label}` returned a tensor of shape {tuple(output.shape)}; it should be {shape}."
            raise Mismatch(
                f"{found} {says}".strip(),
                cause=Cause.WRONG_SHAPE,
                concerns=f"{_wrong_axes(tuple(output.shape), shape)} of {self.name}",
            )
        if not output.is_floating_point():
            raise Mismatch(
                f"`{self.label}` returned a tensor of {output.dtype}; it should be floating point.",
                cause=Cause.WRONG_TYPE,
                concerns=f"{output.dtype} of {self.name}",
            )
        if not bool(torch.isfinite(output).all()):
            raise Mismatch(
                f"`{self.label}` returned numbers that are not finite (NaN or infinity).",
                cause=Cause.NOT_FINITE,
                concerns=self.name,
            )
        return output


def _wrong_axes(shape: tuple[int, ...], expected: tuple[int, ...]) -> str:
    """Which axes of a shape are wrong, without their sizes, or how many axes there are instead."""
    if len(shape) != len(expected):
        return f"{len(shape)} axes for {len(expected)}"
    wrong = [str(axis) for axis, size in enumerate(shape) if size != expected[axis]]
    return f"axes {', '.join(wrong)} of {len(shape)}"


def _worded(kind: str) -> str:
    return "nothing (None)" if kind == "NoneType" else f"a {named(kind)}"
