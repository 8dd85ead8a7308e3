"""Stand-ins: modules with known behavior in the place of a student's other components.

They record their calls and what they were constructed with, within bounds. The judge decides which parts they
replace and how they behave. The checks decide what the record means.

Tests: tests/worker/test_components.py
"""

import math
from collections.abc import Sequence
from copy import deepcopy
from typing import Any

import torch
from torch import Tensor, nn

from grader.domain.standin_behavior import StandIn
from grader.protocol.plain_values import MAX_ARGUMENTS, MAX_NUMBER, MAX_TEXT, Plain
from grader.protocol.replies import MAX_MADE, StandInCall, StandInMade
from grader.worker.genuine import NOTHING, Genuine, InPlaceOfOwn, MakeGenuine


class StandIns:
    """The stand-ins of one built component: their classes and the calls that they received.

    Attributes:
        made: What was constructed, the first 256.
        calls: What was called since the last `clear`, with the inputs as given.
    """

    def __init__(self) -> None:
        self.made: list[StandInMade] = []
        self.calls: list[tuple[StandInCall, Tensor]] = []

    def clear(self) -> None:
        """Forget the calls."""
        self.calls = []

    def record(self, component: str, instance: int, x: Tensor) -> None:
        """Remember a call; the first 256 of them."""
        if len(self.calls) < 256:
            call = StandInCall(component, instance, tuple(x.shape))
            self.calls.append((call, x.detach().clone()))

    def note(self, component: str, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
        """Remember what a stand-in was constructed with; the first 256."""
        if len(self.made) < MAX_MADE:
            named = {_told(name): _plain(value) for name, value in list(kwargs.items())[:MAX_ARGUMENTS]}
            self.made.append(StandInMade(component, tuple(map(_plain, args[:MAX_ARGUMENTS])), named))

    def replacement(
        self, component: str, behavior: StandIn, genuine: MakeGenuine = lambda args, kwargs: NOTHING
    ) -> type[nn.Module]:
        """A class to put in the place of `component`; its instances are numbered as they are made.

        Args:
            genuine: The student's own objects, whose members the instances have besides.
        """
        owner = self
        numbers = iter(range(10_000))

        class Replacement(StandInModule):
            def __init__(self, *args: Any, **kwargs: Any) -> None:
                super().__init__(owner, component, next(numbers), behavior, genuine(args, kwargs))
                owner.note(component, args, kwargs)
                if behavior.wraps:
                    self.inner = _wrapped(args, kwargs)

            def number_of_a_copy(self) -> int:
                return next(numbers)

        Replacement.__name__ = Replacement.__qualname__ = component
        return Replacement

    def inner(self, behavior: StandIn) -> "StandInModule":
        """A single stand-in, to be handed to a component (PreNorm's fn)."""
        return StandInModule(self, "inner", -1, behavior)

    def submodule(self, path: str, number: int, behavior: StandIn) -> "StandInModule":
        """A stand-in for one module of a built component."""
        return StandInModule(self, path, number, behavior)


class StandInModule(InPlaceOfOwn):
    """`scale * x.roll(roll, dims=1) + shift`, by itself or before the module that it wraps."""

    def __init__(
        self,
        owner: StandIns,
        component: str,
        instance: int,
        behavior: StandIn,
        genuine: Genuine = NOTHING,
    ) -> None:
        super().__init__()
        self._owner, self._component, self._instance, self._behavior = owner, component, instance, behavior
        self.inner: nn.Module | None = None
        if behavior.parameters:
            self.held = nn.Parameter(torch.zeros(behavior.parameters))
        self.stand_for(genuine)

    def __deepcopy__(self, memo: dict[int, Any]) -> "StandInModule":
        copied = type(self).__new__(type(self))  # its calls belong to the same owner
        number = self.number_of_a_copy()
        StandInModule.__init__(copied, self._owner, self._component, number, self._behavior, self._genuine)
        copied.inner = deepcopy(self.inner, memo)
        copied.training = self.training
        return copied

    def number_of_a_copy(self) -> int:
        """The number of a copy: an instance of its own where instances are numbered."""
        return self._instance

    def forward(self, x: Tensor, *args: Any, **kwargs: Any) -> Any:
        """Apply the known behavior to x of shape (batch, tokens, dim)."""
        self._owner.record(self._component, self._instance, x)
        known = self._behavior
        y = x.roll(known.roll, dims=1) if known.roll else x
        y = y * _of(known.scale, self._instance) + _of(known.shift, self._instance)
        if self.inner is not None:
            return self.inner(y, *args, **kwargs)
        if kwargs.get("extra") is not None:
            # a keyword that must reach the inner function shows in the output
            y = y + torch.as_tensor(kwargs["extra"], dtype=y.dtype)
        if known.heads and any(value is True for value in (*args, *kwargs.values())):
            return y, x.new_full((len(x), known.heads, x.shape[1], x.shape[1]), 1 / x.shape[1])
        return y


def _of(values: Sequence[float], instance: int) -> float:
    return values[min(max(instance, 0), len(values) - 1)]


def _plain(value: Any) -> Plain:
    """A plain value of a plain type, cut to a sensible size; else None."""
    if type(value) is int:
        return value if abs(value) < MAX_NUMBER else None
    if type(value) is float:
        return value if math.isfinite(value) else None
    if type(value) is str:
        return _told(value)
    return value if type(value) is bool else None


def _told(text: str) -> str:
    """A text that can be sent: not too long, and without halves of surrogate pairs."""
    return str(text)[:MAX_TEXT].encode("utf-8", "replace").decode("utf-8")


def _wrapped(args: Sequence[Any], kwargs: dict[str, Any]) -> nn.Module | None:
    """The module among a constructor's arguments."""
    for value in (*args, *kwargs.values()):
        if isinstance(value, nn.Module):
            return value
    return None
