"""Fakes: those whose answers a check decides, and those of known behavior (`AffineFake`).

A fake replaces a model, a layer, a function or a data loader in a student's code. A fake of known behavior
computes the same in the judge as in the worker. Nothing here runs a student's code.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from grader.domain.formatting import named, quoted
from grader.domain.program_run import AffineFake
from grader.kit.compared_results import Mismatch
from grader.kit.rigged_data import ID_BITS, image_numbers, token_numbers

Tensor = Any


def answer(behavior: AffineFake, instance: int, x: Tensor) -> Tensor:
    """The output of an instance of a fake for x, (batch, ...); it rolls the second axis."""
    y = x.roll(behavior.roll, dims=1) if behavior.roll else x
    index = max(instance, 0)
    return y * _value_for(behavior.scale, index) + _value_for(behavior.shift, index)


def affine_fake_class(behavior: AffineFake) -> type[Any]:
    """A class for a mistake's namespace that behaves like the worker's fake."""
    from torch import nn

    made = iter(range(10_000))

    class Replacement(nn.Module):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__()
            self.instance = next(made)
            values = (*args, *kwargs.values())
            inner = next((value for value in values if isinstance(value, nn.Module)), None)
            self.inner: Callable[..., Any] | None = inner if behavior.wraps else None

        def forward(self, x: Tensor, *args: Any, **kwargs: Any) -> Any:
            y = answer(behavior, self.instance, x)
            if behavior.heads and any(value is True for value in (*args, *kwargs.values())):
                return y, x.new_full((len(x), behavior.heads, x.shape[1], x.shape[1]), 1 / x.shape[1])
            return y if self.inner is None else self.inner(y, **kwargs)

    return Replacement


def _value_for(values: tuple[float, ...], index: int) -> float:
    return values[min(index, len(values) - 1)]


# --- fakes -----------------------------------------------------------------------------------------------


Kind = str  # one of KINDS
KINDS = ("function", "module")
LIBRARIES = ("torch", "torchvision", "numpy")


@dataclass(frozen=True)
class FakeCall:
    """One call of a fake.

    Attributes:
        fake: Its name.
        number: Of the call of this fake, 1-based.
        instance: Of a fake that replaces a class: the number of the instance, 0-based.
        args, kwargs: What it was given; modules and other objects as things.
        training: The mode, of a module.
        gradients: Whether gradients were enabled.
        learns: If a module and an optimizer are among the arguments: the names of the module's parameters
            that require gradients.
        rates: Of these: the rate at which the optimizer moves each parameter that it holds, by name.
    """

    fake: str
    number: int
    instance: int
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    training: bool
    gradients: bool
    learns: tuple[str, ...] = ()
    rates: Mapping[str, float] = field(default_factory=dict)

    @property
    def moved(self) -> dict[str, float]:
        """The rates of what learns: parameters that require gradients, and that the optimizer holds."""
        return {name: rate for name, rate in self.rates.items() if name in self.learns}


@dataclass(frozen=True)
class Fake:
    """Answers in place of a model, a layer or a function.

    It is made by `Fake.script`, `Fake.table`, `Fake.rows` or `Fake.callback`. The judge has its
    answers: a worker asks for each of them.

    Attributes:
        answer: What it answers to a call.
        kind: `function` or `module`. If it replaces a graded class, it makes such modules.
        name: Its name in messages; of a module also that of its class, which students' code may ask for.
        parameters: Of a module: dotted names, as in a state dict, with shapes; they begin as zeros. One
            called `offset` is added to the answer, so that an optimizer can learn it.
        marks: Each call fills the parameters of the first module among its arguments with the number of the
            call, so a check sees which epoch's weights a training loop keeps.
        steps: In each call the first optimizer among the arguments takes this many steps, without a gradient,
            so a check sees the learning rates of a schedule that counts steps. If a loader is among the
            arguments, there is one step for each of its batches.
        computes: It is a callback, which may not replace a part that is graded.
        methods: Of a module, besides its call: name -> the fake that answers.
        like: Of a module that is handed over: (graded class, arguments) of the student's own object, from
            which it takes the members that it lacks (`model.pool`). If a fake replaces a class, it is like
            the object that the student would have made there.
    """

    answer: Callable[[FakeCall], Any]
    kind: Kind = "module"
    name: str = "model"
    parameters: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    marks: bool = False
    steps: int = 0
    computes: bool = False
    methods: Mapping[str, "Fake"] = field(default_factory=dict)
    like: tuple[str, Mapping[str, bool | int | float | str]] | None = None

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"a fake is a {' or a '.join(KINDS)}, not a {self.kind}")

    @property
    def asks_the_check(self) -> bool:
        """Whether a callback answers, for it or for one of its methods."""
        return self.computes or any(method.asks_the_check for method in self.methods.values())

    @classmethod
    def script(cls, answers: Sequence[Any], **settings: Any) -> "Fake":
        """Answers one value after the other for any arguments; the last one is repeated."""
        values = list(answers)
        if not values:
            raise ValueError("a script needs at least one answer")
        return cls(lambda call: values[min(call.number, len(values)) - 1], **settings)

    @classmethod
    def table(cls, table: Mapping[Any, Any] | Any, **settings: Any) -> "Fake":
        """Looks its answers up by its first argument.

        Args:
            table: Argument -> answer; or an array or a tensor, whose rows the whole numbers in the argument
                choose, as an embedding does: an argument of shape (batch, tokens) and a table (n, k) give
                (batch, tokens, k).
        """

        def looked_up(call: FakeCall) -> Any:
            key = _first(call)
            if isinstance(table, Mapping):
                if _key(key) not in table:
                    raise Mismatch(f"`{call.fake}` was called with {_in_words(key)}, which it should not be.")
                return table[_key(key)]
            return table[_indices(call, key, len(table))]

        return cls(looked_up, **settings)

    @classmethod
    def rows(
        cls,
        rows: Any,
        *,
        bits: int = ID_BITS,
        vocabulary: int | None = None,
        further: Sequence[Any] = (),
        **settings: Any,
    ) -> "Fake":
        """A model that answers for rigged examples, by the numbers that are written in them.

        Args:
            rows: Its answer for each example, (examples, ...).
            bits: How many pixels of an image carry its number (`numbered_images`).
            vocabulary: The examples are tokens of a vocabulary of that size (`numbered_tokens`), not images.
            further: More rows, for each further value that it returns (weights in addition to logits).
        """

        def of_examples(call: FakeCall) -> Any:
            examples = _first(call)
            kind, axes = ("images", 4) if vocabulary is None else ("sequences of tokens", 2)
            if getattr(examples, "ndim", 0) != axes:
                raise Mismatch(
                    f"`{call.fake}` was called with {_in_words(examples)} instead of a batch of {kind}."
                )
            if vocabulary is None:
                numbers = image_numbers(examples, bits)
            else:
                numbers = token_numbers(examples, len(rows), vocabulary=vocabulary)
            if not ((numbers >= 0) & (numbers < len(rows))).all():
                raise Mismatch(
                    f"`{call.fake}` was called with {kind} other than those it was meant to see.",
                    hint="Hand them on as they come.",
                )
            return tuple(table[numbers] for table in (rows, *further)) if further else rows[numbers]

        return cls(of_examples, **settings)

    @classmethod
    def callback(cls, function: Callable[..., Any], **settings: Any) -> "Fake":
        """Answers with the check's own function of the arguments: only in place of what is not graded."""
        return cls(lambda call: function(*call.args, **call.kwargs), computes=True, **settings)


class FakeObject:
    """An object with the check's own members: fakes that are its methods, and values.

    Attributes:
        members: Name -> member.
    """

    def __init__(self, **members: Any) -> None:
        self.members = members


def batches(
    inputs: Any, targets: Any = None, sizes: Sequence[int] = (), class_names: Sequence[str] = ()
) -> "Batches":
    """A data loader to hand to a student's function, over data of any kind.

    Args:
        inputs, targets: Tensors or arrays, (n, ...); without targets, a batch is the inputs alone.
        sizes: Of the batches, in order; none: one batch of everything.
        class_names: What `loader.dataset.classes` are.
    """
    count = len(inputs)
    cut = tuple(sizes) or (count,)
    if sum(cut) != count or (targets is not None and len(targets) != count):
        raise ValueError(f"batches of {cut} do not cut {count} inputs, each with its target")
    return Batches(inputs, targets, cut, tuple(class_names))


@dataclass(frozen=True, eq=False)
class Batches:
    """What a data loader hands out: see `batches`."""

    inputs: Any
    targets: Any
    sizes: tuple[int, ...]
    class_names: tuple[str, ...] = ()


class Library:
    """An object of PyTorch, torchvision or NumPy, made in the worker when it is handed over.

    `Library("torch.optim.SGD", model, lr=0.1)`, `Library("numpy.random.default_rng", 7)`: an optimizer that
    is given a module holds the module's parameters.

    Attributes:
        path: The dotted path of a class or a function.
        args, kwargs: Of any kind that can be handed over.
    """

    def __init__(self, path: str, *args: Any, **kwargs: Any) -> None:
        if path.partition(".")[0] not in LIBRARIES:
            raise ValueError(f"{path} is none of {' and '.join(LIBRARIES)}")
        self.path, self.args, self.kwargs = path, args, kwargs


@dataclass(frozen=True)
class Part:
    """One of the student's own graded parts, handed to another of their parts."""

    name: str


def _first(call: FakeCall) -> Any:
    values = (*call.args, *call.kwargs.values())
    if not values:
        raise Mismatch(f"`{call.fake}` was called without an argument.")
    return values[0]


def _indices(call: FakeCall, chosen: Any, count: int) -> Any:
    """Whole numbers that choose rows of a table."""
    numbers = np.asarray(chosen)
    if numbers.dtype.kind not in "iub":
        raise Mismatch(f"`{call.fake}` was called with {_in_words(chosen)} instead of whole numbers.")
    if numbers.size and not (int(numbers.min()) >= 0 and int(numbers.max()) < count):
        raise Mismatch(f"`{call.fake}` was called with numbers outside the range 0 to {count - 1}.")
    return numbers.astype(np.int64)


def _key(value: Any) -> Any:
    """The key by which a value is looked up in a table."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    return tuple(map(_key, value)) if isinstance(value, list | tuple) else value


def _in_words(value: Any) -> str:
    """A value in a few words."""
    if hasattr(value, "shape"):
        return f"a tensor of shape {tuple(value.shape)}"
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, bool | int | float):
        return repr(value)
    # what is too much to be handed over says so; an object that stays in the worker knows its own type
    return getattr(value, "in_words", "") or f"a {named(getattr(value, 'type', type(value).__name__))}"
