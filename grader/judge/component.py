"""One of the student's components, constructed in a worker: called and measured at arm's length."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from grader.domain.quoting import named
from grader.judge import believed
from grader.judge.thing import Owner, Thing
from grader.kit import Mismatch
from grader.protocol.plain_values import Plain
from grader.protocol.replies import Built, Called, Done, Module, Parameter, StandInCall, WeightValues
from grader.protocol.requests import Call, SetWeights, Weights


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
        made: What the stand-ins in it were constructed with, in order, as the worker says.
        calls: The stand-ins' calls during the last call, each with its input.
    """

    def __init__(
        self, student: Owner, name: str, label: str, built: Built, stand_ins: frozenset[str] = frozenset()
    ) -> None:
        super().__init__(student, name, label, built.handle, kind="module", made=name)
        self.parameters: tuple[Parameter, ...] = built.parameters
        self.modules: tuple[Module, ...] = built.modules
        self.made = believed.constructions(built)
        self.calls: tuple[tuple[StandInCall, Tensor], ...] = ()
        self._stand_ins = stand_ins

    @property
    def parameter_count(self) -> int:
        """The trainable numbers; shared ones count once."""
        return sum(int(np.prod(p.shape)) for p in self.parameters if p.trainable)

    def constructions(self, component: str) -> list[dict[str, Plain]]:
        """The arguments with which each stand-in for a component was constructed, by the stub's names.

        What is no number, text or truth value (a module) is None; what was not given is not there.
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
            Mismatch: It raised, returned no tensor, another shape, or numbers that are not finite.
        """
        arrays = {str(index): value.numpy() for index, value in enumerate(inputs)}
        arrays |= {f"keyword:{name}": value.numpy() for name, value in keywords.items()}
        seed = self._student.next_seed()
        called = self._asked(Call(self._handle, train, False, seed, without_dropout, arrays))
        return self._checked(called, shape)

    def gradients(self, x: Tensor, cotangent: Tensor, *, train: bool = False) -> Gradients:
        """Output and gradients for an input.

        Raises:
            Mismatch: As for a call.
        """
        arrays = {"0": x.numpy(), "cotangent": cotangent.numpy()}
        called = self._asked(Call(self._handle, train, True, self._student.next_seed(), arrays=arrays))
        output = self._checked(called, tuple(cotangent.shape))
        found = believed.gradients(called, self.parameters, tuple(x.shape))
        missing = tuple(p.name for p in self.parameters if p.name in called.no_gradient)
        return Gradients(output, found.pop("input", None), found, missing)

    def weights(self) -> dict[str, Tensor]:
        """Parameters and buffers by name.

        Raises:
            Mismatch: They hold numbers that are not finite.
        """
        values = self._student.ask(Weights(self._handle), WeightValues, self._link, self.name)
        found = believed.weights(values.arrays, self.parameters)
        for name, value in found.items():
            if value.is_floating_point() and not bool(torch.isfinite(value).all()):
                raise Mismatch(
                    f"The weights of `{self.label}` are not finite: {named(name)} holds NaN or infinity.",
                    hint="Parameters made with torch.empty hold whatever was in memory: initialize them.",
                )
        return found

    def set_weights(self, values: Mapping[str, Tensor]) -> None:
        """Overwrite parameters and buffers by name."""
        arrays = {name: value.numpy() for name, value in values.items()}
        self._student.ask(SetWeights(self._handle, arrays), Done, self._link, self.name)

    def randomize(self, spread: float = 0.5) -> dict[str, Tensor]:
        """Move every trainable parameter away from its initial value, so that none is zero or one by chance.

        The sizes are the judge's: a student's large bias, or an infinite gain, would make every output equal
        every other. Parameters of whole numbers stay what they are, and are not told: what the student chose
        must not be what an output is explained by.

        Returns:
            The parameters afterwards, as the judge chose them.

        Raises:
            WorkerFault: The worker does not hold what it was given.
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
            raise believed.nonsense()
        return {name: held[name] for name in moved}

    def _asked(self, call: Call) -> Called:
        called: Called = self._student.ask(call, Called, self._link, self.name, self.label)
        return called

    def _checked(self, called: Called, shape: tuple[int, ...] | None) -> Tensor:
        if called.result != "tensor":
            raise Mismatch(
                f"`{self.label}` returned {_worded(called.result)} instead of a tensor.",
                hint="Does forward end with a return statement?",
            )
        output = torch.from_numpy(believed.array(called.arrays, "output", kind="fiub").copy())
        if shape is not None and tuple(output.shape) != shape:
            raise Mismatch(
                f"`{self.label}` returned a tensor of shape {tuple(output.shape)}; it should be {shape}."
            )
        if not output.is_floating_point():
            raise Mismatch(
                f"`{self.label}` returned a tensor of {output.dtype}; it should be floating point."
            )
        if not bool(torch.isfinite(output).all()):
            raise Mismatch(f"`{self.label}` returned numbers that are not finite (NaN or infinity).")
        self.calls = believed.stand_in_calls(called, self._stand_ins)
        return output


def _worded(kind: str) -> str:
    return "nothing (None)" if kind == "NoneType" else f"a {named(kind)}"
