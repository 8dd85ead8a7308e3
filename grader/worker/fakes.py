"""Fakes: modules, functions and classes whose answers only the judge knows, and gives for each call.

It makes fakes, passes each call on and hands back the answer. `grader.judge.thing` decides what a fake
answers, and whether a call is refused.

Tests: tests/judge/test_calls.py
"""

from collections.abc import Callable, Iterable, Mapping, Sequence, Sized
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from grader.domain.errors import Interruption
from grader.protocol.replies import FakeCalled
from grader.protocol.requests import FakeAnswer, FakeForm
from grader.protocol.trees import Node, Packer, Unpacker
from grader.worker.genuine import NOTHING, Genuine, InPlaceOfOwn, MakeGenuine

AskJudge = Callable[[FakeCalled], FakeAnswer]
OFFSET = "offset"


class RefusedCallError(Interruption):
    """A fake was called with what it has no answer for; the judge knows, and says it."""


Note = Callable[[str, Sequence[Any], dict[str, Any]], None]


class Fakes:
    """Makes fakes; all of them ask the same judge."""

    def __init__(
        self,
        ask: AskJudge,
        packed: Callable[[], Packer],
        unpacked: Callable[[FakeAnswer], Unpacker],
        genuine: Callable[[str], MakeGenuine],
    ) -> None:
        """None is made yet.

        Args:
            packed, unpacked: How trees are packed and unpacked here.
            genuine: The student's own objects of a name, whose members its fakes have besides.
        """
        self._ask, self._packed, self._unpacked, self._genuine = ask, packed, unpacked, genuine

    def made(self, form: FakeForm, note: Note = lambda name, args, kwargs: None) -> Any:
        """The fake: a module, a function, or a class whose instances are such modules.

        Args:
            note: Told what an instance of a class is constructed with.
        """
        if form.kind == "class":
            return self._class(form, note)
        if form.kind == "function":
            return self._function(form)
        return FakeModule(self, form, 0, self._genuine(form.like)((), form.arguments))

    def answer(self, form: FakeForm, instance: int, training: bool, args: Any, kwargs: Any) -> Any:
        """What the judge answers to a call.

        Raises:
            RefusedCallError: It has no answer.
        """
        packer = self._packed()
        tree: Node = packer.told((args, kwargs))
        given = (*args, *kwargs.values())
        learns, rates = _learning(given)
        told = (tree, packer.arrays, learns, rates)
        called = FakeCalled(form.number, instance, training, torch.is_grad_enabled(), *told)
        answer = self._ask(called)
        if answer.refused:
            raise RefusedCallError(f"{form.name} was called with something that it has no answer for")
        if form.marks:
            _mark(given, answer.number)
        _take_steps(given, form.steps)
        return self._unpacked(answer).value(answer.tree)

    def _function(self, form: FakeForm) -> Callable[..., Any]:
        def fake(*args: Any, **kwargs: Any) -> Any:
            return self.answer(form, 0, False, args, kwargs)

        fake.__name__ = fake.__qualname__ = form.name
        return fake

    def _class(self, form: FakeForm, note: Note) -> type[nn.Module]:
        owner, numbers, genuine = self, iter(range(10_000)), self._genuine(form.name)

        class Fake(FakeModule):
            def __init__(self, *args: Any, **kwargs: Any) -> None:
                super().__init__(owner, form, next(numbers), genuine(args, kwargs))
                note(form.name, args, kwargs)

        Fake.__name__ = Fake.__qualname__ = form.name
        return Fake


class FakeModule(InPlaceOfOwn):
    """A module that answers as the judge says, with the parameters that the judge wants it to have."""

    def __init__(self, owner: Fakes, form: FakeForm, instance: int, genuine: Genuine = NOTHING) -> None:
        super().__init__()
        self._owner, self._form, self._instance = owner, form, instance
        for method, number in form.methods.items():
            # a plain attribute: copies and state dicts know nothing of it
            object.__setattr__(self, method, self._method(FakeForm(number, method)))
        for name, shape in form.parameters.items():
            *path, last = name.split(".")
            place: nn.Module = self
            for step in path:
                if step not in place._modules:
                    place.add_module(step, nn.Module())
                place = place.get_submodule(step)
            place.register_parameter(last, nn.Parameter(torch.zeros(shape)))
        self.stand_for(genuine)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The judge's answer; a parameter called `offset` is added to a tensor."""
        answered = self._owner.answer(self._form, self._instance, self.training, args, kwargs)
        offset = self._parameters.get(OFFSET)
        if offset is None:
            return answered
        if isinstance(answered, tuple) and answered and isinstance(answered[0], Tensor):
            return (answered[0] + offset, *answered[1:])
        return answered + offset if isinstance(answered, Tensor) else answered

    def _method(self, form: FakeForm) -> Callable[..., Any]:
        def method(*args: Any, **kwargs: Any) -> Any:
            return self._owner.answer(form, self._instance, self.training, args, kwargs)

        return method

    def __deepcopy__(self, memo: dict[int, Any]) -> "FakeModule":
        copied = type(self).__new__(type(self))
        FakeModule.__init__(copied, self._owner, self._form, self._instance, self._genuine)
        copied.load_state_dict(self.state_dict())
        for mine, others in zip(copied.parameters(), self.parameters(), strict=True):
            mine.requires_grad_(others.requires_grad)
        copied.training = self.training
        return copied


def _learning(values: tuple[Any, ...]) -> tuple[tuple[str, ...], dict[str, float]]:
    """What of the first module requires gradients, and the first optimizer's rates for its parameters."""
    module = next((value for value in values if isinstance(value, nn.Module)), None)
    optimizer = next((value for value in values if isinstance(value, torch.optim.Optimizer)), None)
    if module is None or optimizer is None:
        return (), {}
    names = {id(weights): name for name, weights in module.named_parameters()}
    rates = {
        names[id(weights)]: float(group["lr"])
        for group in optimizer.param_groups
        for weights in group["params"]
        if id(weights) in names
    }
    return tuple(name for name, weights in module.named_parameters() if weights.requires_grad), rates


def _take_steps(values: tuple[Any, ...], count: int) -> None:
    """Let the first optimizer among the values take steps, without a gradient: one for each batch.

    What goes through the loader's batches, as one who trains does, lets happen what a loader of the student's
    own does between them.

    Args:
        count: How many, where no loader is among the values.
    """
    optimizer = next((value for value in values if isinstance(value, torch.optim.Optimizer)), None)
    if optimizer is not None and count:
        optimizer.zero_grad()
        for _ in next(filter(_is_loader, values), range(count)):
            optimizer.step()


def _is_loader(value: Any) -> bool:
    """Whether a value is something between a list and a model that gives batches, as many as it says."""
    kinds = (Tensor, np.ndarray, nn.Module, torch.optim.Optimizer, str, bytes, Mapping, list, tuple, set)
    return isinstance(value, Iterable) and isinstance(value, Sized) and not isinstance(value, kinds)


def _mark(values: tuple[Any, ...], number: int) -> None:
    """Fill all parameters and buffers of the first module among the values with a number."""
    module = next((value for value in values if isinstance(value, nn.Module)), None)
    if module is not None:
        with torch.no_grad():
            for tensor in (*module.parameters(), *module.buffers()):
                tensor.fill_(number)
