"""Fakes of a student's parts: with known behavior (`AffineFakes`), or answered by the judge (`Fakes`).

Those with known behavior record their calls and what they were constructed with, within bounds. The others
pass each call on and return the judge's answer. Other parts may ask for members of the student's own class
and object; that object is made when the first is asked for. Private names are never handed on. The judge
decides which parts are replaced, how they behave, what a fake answers and whether a call is refused.

Tests: tests/judge/test_calls.py, tests/worker/test_components.py
"""

import inspect
import math
from collections.abc import Callable, Iterable, Mapping, Sequence, Sized
from contextlib import AbstractContextManager, nullcontext
from copy import deepcopy
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from grader.domain.errors import Interruption
from grader.domain.program_run import AffineFake
from grader.protocol.replies import MAX_MADE, AffineFakeCall, FakeCalled, FakeConstruction
from grader.protocol.requests import FakeAnswer, FakeForm
from grader.protocol.trees import MAX_ARGUMENTS, MAX_NUMBER, MAX_TEXT, Node, Packer, Plain, Unpacker
from grader.worker.model_outputs import array


class Genuine:
    """The student's own object, made when one of its members is first asked for."""

    def __init__(self, make: Callable[[], Any] | None) -> None:
        """It is not made yet.

        Args:
            make: Makes it; None: the fake does not replace anything.
        """
        self._make = make
        self._made: list[Any] = []

    def member(self, name: str, place: nn.Module) -> Any:
        """A member of it, as the fake that stands in its place has it.

        Raises:
            AttributeError: It has no such member, or there is no such object. Whatever its constructor raises
                passes through.
        """
        if self._make is None or name.startswith("_"):
            raise AttributeError(name)
        if not self._made:
            # its random weights must not change what the part under test draws
            with torch.random.fork_rng(devices=[]):
                self._made.append(self._make())
        own = self._made[0]
        if not isinstance(own, nn.Module):
            return getattr(own, name)
        if own.training != place.training:
            own.train(place.training)
        member = getattr(own, name)
        is_method = inspect.ismethod(member) and member.__self__ is own
        return _answered_by(place, own, member) if is_method else member


NOTHING = Genuine(None)


def _answered_by(place: nn.Module, own: nn.Module, method: Callable[..., Any]) -> Callable[..., Any]:
    """A method of a student's own module in which the fake answers for `forward`.

    Students give `forward` a second name, which also returns the weights of the attention. What such a method
    returns is that of the student's module; where it is exactly what `forward` makes of the first tensor, it
    is the fake's answer.
    """

    def called(*args: Any, **kwargs: Any) -> Any:
        drawn = torch.get_rng_state()
        found = method(*args, **kwargs)
        x = next((value for value in args if isinstance(value, Tensor)), None)
        parts = found if isinstance(found, tuple) else (found,)
        if x is None or not any(isinstance(part, Tensor) for part in parts):
            return found
        with torch.random.fork_rng(devices=[]), torch.no_grad():
            torch.set_rng_state(drawn)
            try:
                usual = own(x)
            except Exception:  # the student's, who did not call it
                return found
        if not isinstance(usual, Tensor):
            return found
        same = [
            isinstance(part, Tensor) and part.shape == usual.shape and bool(torch.equal(part, usual))
            for part in parts
        ]
        if not any(same):
            return found
        answer = place(x)
        answers = [answer if is_usual else part for part, is_usual in zip(parts, same, strict=True)]
        if not isinstance(found, tuple):
            return answer
        return type(found)(*answers) if hasattr(found, "_fields") else tuple(answers)

    return called


class Original:
    """The student's class that fakes replace."""

    def __init__(self, found: Any, within: Callable[[], AbstractContextManager[None]] = nullcontext) -> None:
        """Nothing is made yet.

        Args:
            found: What the student's code has by that name.
            within: Where its objects are made.
        """
        self.type: type | None = found if isinstance(found, type) else None
        self._within = within

    def object(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Genuine:
        """The student's own object of these arguments."""
        own = self.type
        if own is None:
            return NOTHING

        def make() -> Any:
            with self._within():
                return own(*args, **kwargs)

        return Genuine(make)


NO_ORIGINAL = Original(None)


class ClassInPlaceOfOwn(type):
    """A class of fakes, which takes members that it lacks from the student's class: constants, functions."""

    original: Original

    def __getattr__(cls, name: str) -> Any:
        own = cls.original.type
        if own is None or name.startswith("_"):
            raise AttributeError(f"type object {cls.__name__!r} has no attribute {name!r}")
        return getattr(own, name)


class InPlaceOfOwn(nn.Module, metaclass=ClassInPlaceOfOwn):
    """A module that takes members that it lacks from the student's own object."""

    original = NO_ORIGINAL
    _genuine = NOTHING

    def stand_for(self, genuine: Genuine) -> None:
        """Use that object's members from now on: not before, as the constructor asks for members, too."""
        self._genuine = genuine

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError as error:
            genuine: Genuine = self.__dict__.get("_genuine", NOTHING)
            try:
                return genuine.member(name, self)
            except AttributeError:
                raise error from None


# --- fakes -----------------------------------------------------------------------------------------------


AskJudge = Callable[[FakeCalled], FakeAnswer]
OFFSET = "offset"


class RefusedCallError(Interruption):
    """A fake was called with arguments that it has no answer for; the judge reports it."""


Note = Callable[[str, Sequence[Any], dict[str, Any]], None]


class Fakes:
    """Makes fakes that the judge answers for."""

    def __init__(
        self,
        ask: AskJudge,
        packed: Callable[[], Packer],
        unpacked: Callable[[FakeAnswer], Unpacker],
        original: Callable[[str], Original],
    ) -> None:
        """None is made yet.

        Args:
            packed, unpacked: How trees are packed and unpacked here.
            original: The student's own class of a name: its fakes also have its members.
        """
        self._ask, self._packed, self._unpacked, self._original = ask, packed, unpacked, original

    def made(self, form: FakeForm, note: Note = lambda name, args, kwargs: None) -> Any:
        """The fake: a module, a function, or a class whose instances are such modules.

        Args:
            note: Called with what an instance of a class is constructed with.
        """
        if form.kind == "class":
            return self._class(form, note)
        if form.kind == "function":
            return self._function(form)
        # whoever asks for the class's name, as for a recipe by it, gets that of the part it stands for
        named = type(form.like or form.name, (FakeModule,), {})
        module: FakeModule = named(self, form, 0, self._original(form.like).object((), form.arguments))
        return module

    def answer(self, form: FakeForm, instance: int, training: bool, args: Any, kwargs: Any) -> Any:
        """What the judge answers to a call.

        Raises:
            RefusedCallError: The judge has no answer.
        """
        packer = self._packed()
        tree: Node = packer.call_node(args, kwargs)
        arguments = (*args, *kwargs.values())
        learns, rates = _learning(arguments)
        packed = (tree, packer.arrays, learns, rates)
        called = FakeCalled(form.number, instance, training, torch.is_grad_enabled(), *packed)
        answer = self._ask(called)
        if answer.refused:
            raise RefusedCallError(f"{form.name} was called with something that it has no answer for")
        if form.marks:
            _mark(arguments, answer.number)
        _take_steps(arguments, form.steps)
        return self._unpacked(answer).value(answer.tree)

    def _function(self, form: FakeForm) -> Callable[..., Any]:
        def fake(*args: Any, **kwargs: Any) -> Any:
            return self.answer(form, 0, False, args, kwargs)

        fake.__name__ = fake.__qualname__ = form.name
        return fake

    def _class(self, form: FakeForm, note: Note) -> type[nn.Module]:
        owner, numbers, own = self, iter(range(10_000)), self._original(form.name)

        class Fake(FakeModule):
            original = own

            def __init__(self, *args: Any, **kwargs: Any) -> None:
                super().__init__(owner, form, next(numbers), own.object(args, kwargs))
                note(form.name, args, kwargs)

        Fake.__name__ = Fake.__qualname__ = form.name
        return Fake


class FakeModule(InPlaceOfOwn):
    """A module with the judge's answers and the parameters that the judge asked for."""

    def __init__(self, owner: Fakes, form: FakeForm, instance: int, genuine: Genuine = NOTHING) -> None:
        super().__init__()
        self._owner, self._form, self._instance = owner, form, instance
        for method, number in form.methods.items():
            # a plain attribute, which copies and state dicts ignore
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
    """The parameters of the first module that require gradients, and the first optimizer's rates for them."""
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
    """Let the first optimizer among the values take steps, which change no weights: one for each batch.

    It iterates over the loader's batches, as a training would, so that a student's own loader does its work
    between them; and there are gradients, for what a student lets happen before a step, as clipping.

    Args:
        count: How many steps, if no loader is among the values.
    """
    optimizer = next((value for value in values if isinstance(value, torch.optim.Optimizer)), None)
    if optimizer is not None and count:
        weights = [each for group in optimizer.param_groups for each in group["params"] if each.requires_grad]
        before = [each.detach().clone() for each in weights]

        def evaluated() -> Any:
            for each in weights:
                each.grad = torch.full_like(each, 1e-3)
            return torch.zeros(())

        for _ in next(filter(_is_loader, values), range(count)):
            evaluated()
            _take_step(optimizer, evaluated)
        with torch.no_grad():
            for each, held in zip(weights, before, strict=True):
                each.copy_(held)
        optimizer.zero_grad()


def _take_step(optimizer: torch.optim.Optimizer, evaluated: Callable[[], Any]) -> None:
    """Let an optimizer take a step, with a function for loss and gradients where it takes none without.

    Some demand the function by their signature, others check that they were given it.
    """
    # of the class: a schedule puts a function in the place of the object's own
    parameters = list(inspect.signature(type(optimizer).step).parameters.values())[1:]
    if any(each.default is each.empty and each.kind is each.POSITIONAL_OR_KEYWORD for each in parameters):
        optimizer.step(evaluated)
        return
    try:
        optimizer.step()
    except Exception:
        if not parameters:
            raise
        optimizer.step(evaluated)


def _is_loader(value: Any) -> bool:
    """Whether a value gives batches, as many as it says, and is neither a list nor a model."""
    kinds = (Tensor, np.ndarray, nn.Module, torch.optim.Optimizer, str, bytes, Mapping, list, tuple, set)
    return isinstance(value, Iterable) and isinstance(value, Sized) and not isinstance(value, kinds)


def _mark(values: tuple[Any, ...], number: int) -> None:
    """Fill all parameters and buffers of the first module among the values with a number."""
    module = next((value for value in values if isinstance(value, nn.Module)), None)
    if module is not None:
        with torch.no_grad():
            for tensor in (*module.parameters(), *module.buffers()):
                tensor.fill_(number)


# --- affine fakes ----------------------------------------------------------------------------------------


class AffineFakes:
    """The fakes of known behavior in one built component: their classes and the calls that they received.

    Attributes:
        made: What was constructed, the first 256.
        calls: What was called since the last `clear`, with the inputs as given.
    """

    def __init__(self) -> None:
        self.made: list[FakeConstruction] = []
        self.calls: list[tuple[AffineFakeCall, Tensor]] = []

    def clear(self) -> None:
        """Forget the calls."""
        self.calls = []

    def told(self, arrays: dict[str, Any]) -> tuple[AffineFakeCall, ...]:
        """The calls, for the judge.

        Args:
            arrays: Those of the reply, into which the inputs are put: `call0`, `call1`, ...
        """
        for number, (_, x) in enumerate(self.calls):
            arrays[f"call{number}"] = array(x)
        return tuple(call for call, _ in self.calls)

    def record(self, component: str, instance: int, x: Tensor) -> None:
        """Remember a call; the first 256 of them."""
        if len(self.calls) < 256:
            call = AffineFakeCall(component, instance, tuple(x.shape))
            self.calls.append((call, x.detach().clone()))

    def note(self, component: str, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
        """Remember what a fake was constructed with; the first 256."""
        if len(self.made) < MAX_MADE:
            named = {
                _sendable_text(name): _plain(value) for name, value in list(kwargs.items())[:MAX_ARGUMENTS]
            }
            self.made.append(FakeConstruction(component, tuple(map(_plain, args[:MAX_ARGUMENTS])), named))

    def replacement(
        self, component: str, behavior: AffineFake, own: Original = NO_ORIGINAL
    ) -> type[nn.Module]:
        """A class that replaces `component`; its instances are numbered as they are made.

        Args:
            own: The student's own class: this one, and its instances, also have the members of that.
        """
        owner = self
        numbers = iter(range(10_000))

        class Replacement(AffineFakeModule):
            original = own

            def __init__(self, *args: Any, **kwargs: Any) -> None:
                super().__init__(owner, component, next(numbers), behavior, own.object(args, kwargs))
                owner.note(component, args, kwargs)
                if behavior.wraps:
                    self.inner = _wrapped(args, kwargs)

            def number_of_a_copy(self) -> int:
                return next(numbers)

        Replacement.__name__ = Replacement.__qualname__ = component
        return Replacement

    def inner(self, behavior: AffineFake) -> "AffineFakeModule":
        """A single fake, to be handed to a component (PreNorm's fn)."""
        return AffineFakeModule(self, "inner", -1, behavior)

    def submodule(self, path: str, number: int, behavior: AffineFake) -> "AffineFakeModule":
        """A fake of one module of a built component."""
        return AffineFakeModule(self, path, number, behavior)


class AffineFakeModule(InPlaceOfOwn):
    """`scale * x.roll(roll, dims=1) + shift`, by itself or before the module that it wraps."""

    def __init__(
        self,
        owner: AffineFakes,
        component: str,
        instance: int,
        behavior: AffineFake,
        genuine: Genuine = NOTHING,
    ) -> None:
        super().__init__()
        self._owner, self._component, self._instance, self._behavior = owner, component, instance, behavior
        self.inner: nn.Module | None = None
        if behavior.parameters:
            self.held = nn.Parameter(torch.zeros(behavior.parameters))
        self._own_held = [self._parameters.get("held")]  # in a list, so that it is registered once
        self.stand_for(genuine)

    def __deepcopy__(self, memo: dict[int, Any]) -> "AffineFakeModule":
        copied = type(self).__new__(type(self))  # the copy's calls belong to the same owner
        number = self.number_of_a_copy()
        AffineFakeModule.__init__(copied, self._owner, self._component, number, self._behavior, self._genuine)
        copied.inner = deepcopy(self.inner, memo)
        copied.training = self.training
        return copied

    def number_of_a_copy(self) -> int:
        """The number of a copy: an instance of its own where instances are numbered."""
        return self._instance

    def forward(self, x: Tensor, *args: Any, **kwargs: Any) -> Any:
        """Apply the known behavior to x of shape (batch, tokens, dim)."""
        instance = self._number_of_weights()
        self._owner.record(self._component, instance, x)
        behavior = self._behavior
        y = x.roll(behavior.roll, dims=1) if behavior.roll else x
        y = y * _value_for(behavior.scale, instance) + _value_for(behavior.shift, instance)
        if self.inner is not None:
            return self.inner(y, *args, **kwargs)
        if kwargs.get("extra") is not None:
            # a keyword that must reach the inner function changes the output
            y = y + torch.as_tensor(kwargs["extra"], dtype=y.dtype)
        if behavior.heads and any(value is True for value in (*args, *kwargs.values())):
            return y, x.new_full((len(x), behavior.heads, x.shape[1], x.shape[1]), 1 / x.shape[1])
        return y

    def _number_of_weights(self) -> int:
        """Its own number, or that of the weights that `torch.func.functional_call` lends it for a call.

        Those are a row of a parameter that stacks as many: `torch.func.stack_module_state` of modules.
        """
        held = self._parameters.get("held")
        stacked = held._base if held is not None and held is not self._own_held[0] else None
        if (
            held is None
            or stacked is None
            or not (stacked.is_leaf and stacked.requires_grad and stacked.is_contiguous())
            or stacked.ndim != 2
            or len(stacked) < 2
            or tuple(held.shape) != tuple(stacked.shape[1:])
        ):
            return self._instance
        return int(held.storage_offset()) // held.numel()


def _value_for(values: Sequence[float], instance: int) -> float:
    return values[min(max(instance, 0), len(values) - 1)]


def _plain(value: Any) -> Plain:
    """A plain value of a plain type, cut to a sensible size; else None."""
    if type(value) is int:
        return value if abs(value) < MAX_NUMBER else None
    if type(value) is float:
        return value if math.isfinite(value) else None
    if type(value) is str:
        return _sendable_text(value)
    return value if type(value) is bool else None


def _sendable_text(text: str) -> str:
    """A text in a form that can be sent: not too long, and without halves of surrogate pairs."""
    return str(text)[:MAX_TEXT].encode("utf-8", "replace").decode("utf-8")


def _wrapped(args: Sequence[Any], kwargs: dict[str, Any]) -> nn.Module | None:
    """The module among a constructor's arguments."""
    for value in (*args, *kwargs.values()):
        if isinstance(value, nn.Module):
            return value
    return None
