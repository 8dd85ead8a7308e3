"""Remote objects ("things"): made by a student's code, kept in the worker, called and changed from here.

It packs what a check hands over, answers calls of fakes, and unpacks what comes back, believing nothing
unseen. `value` and the check decide what a value should be.

Tests: tests/judge/test_calls.py, tests/judge/test_lies.py
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from grader.domain.errors import CourseError
from grader.domain.formatting import named
from grader.judge import untrusted_replies
from grader.judge.value import Value
from grader.kit import Mismatch
from grader.kit.doubles import Batches, Fake, FakeCall, FakeObject, Library, Part
from grader.protocol.frames import ProtocolError
from grader.protocol.link import Link
from grader.protocol.replies import DrawnFigure, FakeCalled, Invoked
from grader.protocol.requests import DRAWN, FILE, FakeAnswer, FakeForm, Invoke, SetWeights
from grader.protocol.trees import MAX_VALUES, Node, Packer, Unpacker

MAX_PRINTED = 100_000  # characters
MAX_TYPE = 200
MAX_CALLS = 2000  # of fakes that are remembered; more are answered
MAX_ARGUMENT = 30  # characters of an argument in a label


@dataclass(frozen=True)
class Outcome:
    """What a call returned and did.

    Attributes:
        returned: What it returned.
        printed: The end of what it printed.
        args, kwargs: The arguments as they are afterwards.
        gradients: By the positional arguments, if they were asked for; None for those that got none. Only
            floating-point tensors that are arguments themselves can get one.
        attached: Whether a tensor that it returned still belongs to a graph of gradients.
        gradients_after: Whether gradients are computed afterwards, as they were before.
        files: The content of the requested files that it wrote.
        calls: Of fakes, in order.
        figures: What it drew, if that was asked for.
        arrays: Of the figures: `image0`, `line0`, ...
    """

    returned: Value
    printed: str = ""
    args: tuple[Value, ...] = ()
    kwargs: Mapping[str, Value] = field(default_factory=dict)
    gradients: tuple[Tensor | None, ...] = ()
    attached: bool = False
    gradients_after: bool = True
    files: Mapping[str, bytes] = field(default_factory=dict)
    calls: tuple[FakeCall, ...] = ()
    figures: tuple[DrawnFigure, ...] = ()
    arrays: Mapping[str, Any] = field(default_factory=dict)

    def calls_of(self, fake: str) -> list[FakeCall]:
        """The calls of one fake."""
        return [call for call in self.calls if call.fake == fake]

    def gradient(self, number: int) -> Tensor:
        """The gradient by a positional argument, of its shape.

        Args:
            number: Of the argument, 0-based.

        Raises:
            Mismatch: None reached it: what was returned does not depend on it, or its graph was cut.
            CourseError: The argument can get none, or gradients were not asked for.
        """
        given = self.args[number].plain if number < len(self.args) else None
        if number >= len(self.gradients) or not isinstance(given, Tensor) or not given.is_floating_point():
            raise CourseError(
                f"A check asks for the gradient by argument {number + 1} of a call. Only positional arguments"
                " that are floating-point tensors get one, and only with gradients=True or a cotangent."
            )
        gradient = self.gradients[number]
        if gradient is None:
            raise Mismatch(
                f"No gradient reaches {self.args[number].label}.",
                hint="Compute what is returned from it, in PyTorch, without .item(), .detach() or no_grad().",
            )
        return gradient

    def file(self, name: str) -> bytes:
        """The content of a file.

        Raises:
            Mismatch: It was not written.
        """
        if name not in self.files:
            raise Mismatch(f"After the call, there is no file {named(name)}.")
        return self.files[name]


class Owner(Protocol):
    """What a thing needs of the submission that it belongs to."""

    random: torch.Generator
    questions: int

    @property
    def link(self) -> Link:
        """The link to the worker in which the submission is loaded."""

    def next_seed(self) -> int:
        """A seed for the worker."""

    def parameter_names(self, component: str) -> tuple[str, ...]:
        """The names of all parameters of a stub, in the template's order."""

    def ask(
        self,
        request: Any,
        reply: type[Any],
        link: Link,
        component: str,
        label: str | None = None,
        answers: Any = None,
    ) -> Any:
        """Ask the worker; what went wrong in the student's code becomes a Mismatch."""

    def set_later(self, request: SetWeights, link: Link, component: str) -> None:
        """Have weights overwritten before the next question is answered."""

    @property
    def fakes(self) -> "Fakes":
        """The fakes that are in use."""

    def pictures_of(self, component: str) -> bool:
        """Whether figures of a component are wanted as pixels."""

    def keep_figures(self, component: str, figures: Sequence[DrawnFigure], arrays: Mapping[str, Any]) -> None:
        """Keep the pixels of figures, for the report."""


class Thing:
    """An object in the worker.

    Attributes:
        name: The graded name that it came from, for whose points it counts.
        label: How a message calls it: `EarlyStopping(patience=3)`.
        kind: `module`, `class`, `function` or `object`.
        type: The name of its class, as the worker says.
    """

    stays = True  # in the worker: see `grader.judge.value.is_thing`

    def __init__(
        self, student: Owner, name: str, label: str, handle: int, *, kind: str = "object", made: str = ""
    ) -> None:
        self._student = student
        self._link = student.link
        self._handle = handle
        self.name = name
        self.label = label
        self.kind = kind
        self.type = made

    def call(self, member: str = "", /, *args: Any, **kwargs: Any) -> Outcome:
        """Call a method, or the thing itself with "".

        `reads`, `files`, `gradients`, `cotangent`, and of a module `training`: see `Student.call`.

        Raises:
            Mismatch: The student's code raised, or has no such method.
        """
        return self._use("call", member, args, kwargs)

    def get(self, member: str) -> Value:
        """An attribute; `layers.0` goes on from one to the next, and "" is the thing itself.

        Raises:
            Mismatch: There is no such attribute, or it raised.
        """
        return self._use("get", member, (), {}).returned

    def set(self, member: str, value: Any) -> None:
        """Set an attribute.

        Raises:
            Mismatch: It raised.
        """
        self._use("set", member, (value,), {})

    def fill(self, member: str, values: Any) -> None:
        """Put numbers into the tensors and arrays that an attribute, or a method without arguments, gives.

        This sets buffers, and the arrays of objects that are not modules, in place.

        Args:
            values: Tensors or arrays of the same shapes, in the same lists and dictionaries.

        Raises:
            Mismatch: There is no such member, or what it gives has another form.
        """
        self._use("fill", member, (values,), {})

    def _use(self, action: str, member: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Outcome:
        # `training` is an ordinary argument of anything that is not a module
        own_keys = [key for key in SETTINGS if key != "training" or self.kind == "module"]
        settings = {key: kwargs.pop(key) for key in own_keys if key in kwargs}
        target = self.label if not member else f"{self.label}.{member}"
        label = f"{target}({_arguments(args, kwargs)})" if action == "call" else target
        packing = Packing(self._student.fakes)
        request = packing.invoke(
            args,
            kwargs,
            self._student.next_seed(),
            settings,
            handle=self._handle,
            action=action,
            member=member,
        )
        heard = self._note_calls if action == "call" else lambda reply: None
        return invoked(self._student, request, self.name, label, (args, kwargs), packing, heard)

    def _note_calls(self, reply: Invoked) -> None:
        """Keep which fakes of known behavior the thing called; only a built component has some."""


SETTINGS = ("reads", "files", "training", "figures", "gradients", "cotangent")


class Fakes:
    """The fakes that a submission's worker knows, by number: answers their calls, and remembers them."""

    def __init__(self, unpacked: Callable[[FakeCalled, str], tuple[tuple[Any, ...], dict[str, Any]]]) -> None:
        """Know no fakes yet.

        Args:
            unpacked: Unpacks the arguments of a call of the fake with that name.
        """
        self._fakes: list[tuple[Fake, str]] = []
        self._counts: list[int] = []
        self._unpacked = unpacked
        self._packing: Callable[[], Packing] = lambda: Packing(self)
        self.calls: list[FakeCall] = []
        self.refusal: Mismatch | None = None

    def form(self, fake: Fake, place: str = "", kind: str = "") -> FakeForm:
        """Describe a fake for the worker, which may call it from now on.

        Args:
            place: The graded name that it replaces.
            kind: What that name is.
        """
        name = place or fake.name
        self._fakes.append((fake, name))
        self._counts.append(0)
        shape = {key: tuple(sides) for key, sides in fake.parameters.items()}
        made = "class" if kind == "class" else "function" if kind == "function" else fake.kind
        number = len(self._fakes) - 1
        methods = {
            method: self.form(method_fake, method).number for method, method_fake in fake.methods.items()
        }
        like, arguments = fake.like or ("", {})
        settings = (fake.marks, methods, like, dict(arguments), fake.steps)
        return FakeForm(number, name, made, shape, *settings)  # type: ignore[arg-type]

    def begin(self) -> None:
        """Forget the calls, before the next request."""
        self.calls, self.refusal = [], None

    def answer(self, called: FakeCalled) -> FakeAnswer:
        """The answer to a call.

        Raises:
            WorkerFault: There is no such fake, or the call is malformed.
        """
        if not 0 <= called.number < len(self._fakes) or not 0 <= called.instance < 2**31:
            raise untrusted_replies.nonsense()
        fake, name = self._fakes[called.number]
        self._counts[called.number] += 1
        args, kwargs = self._unpacked(called, name)
        number = self._counts[called.number]
        mode = (called.training, called.gradients, called.learns, called.rates)
        call = FakeCall(name, number, called.instance, args, kwargs, *mode)
        if len(self.calls) < MAX_CALLS:
            self.calls.append(call)
        try:
            answer = fake.answer(call)
        except Mismatch as error:
            self.refusal = self.refusal or error
            return FakeAnswer(number=number, refused=True)
        packing = self._packing()
        tree = packing.node(answer)
        return FakeAnswer(tree, number, arrays=packing.arrays)


class Packing:
    """Packs what a check hands over: plain values, tensors, things, parts, fakes, batches."""

    def __init__(self, fakes: Fakes) -> None:
        self._fakes = fakes
        self._packer = Packer(self._other)
        self.forms: dict[int, FakeForm] = {}  # by identity: one fake in two places is sent as one

    @property
    def arrays(self) -> dict[str, Any]:
        """The arrays of all that was packed."""
        return self._packer.arrays

    def node(self, value: Any) -> Node:
        """The node of a value of the check's own."""
        return self._packer.node(value)

    def _other(self, value: Any) -> Node:
        match value:
            case Thing():
                return {"thing": value._handle}
            case Part(name):
                return {"part": name}
            case Fake():
                if id(value) not in self.forms:
                    self.forms[id(value)] = self._fakes.form(value)
                form = self.forms[id(value)]
                shapes = {name: list(shape) for name, shape in form.parameters.items()}
                return {
                    "fake": {
                        "number": form.number,
                        "name": form.name,
                        "kind": form.kind,
                        "parameters": shapes,
                        "marks": form.marks,
                        "methods": form.methods,
                        "like": form.like,
                        "arguments": form.arguments,
                        "steps": form.steps,
                    }
                }
            case Batches():
                described = {
                    "inputs": torch.as_tensor(value.inputs),
                    "targets": None if value.targets is None else torch.as_tensor(value.targets),
                    "sizes": list(value.sizes),
                    "classes": list(value.class_names),
                }
                return {"batches": self.node(described)}
            case Library():
                made = {"args": self.node(list(value.args)), "kwargs": self.node(value.kwargs)}
                return {"library": value.path, **made}
            case FakeObject():
                return {"object": {name: self.node(member) for name, member in value.members.items()}}
            case torch.device():
                return {"device": "cpu"}
            case Value():
                return self.node(value.plain)
        raise TypeError(f"a {type(value).__name__} cannot be handed to a student's code")

    def invoke(
        self,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        seed: int,
        settings: Mapping[str, Any],
        **fields: Any,
    ) -> Invoke:
        """The request to use something with these arguments."""
        nodes = tuple(map(self.node, args))
        named_nodes = {name: self.node(value) for name, value in kwargs.items()}
        cotangent = self.node(settings.get("cotangent"))
        files = {
            FILE + name: np.frombuffer(content, dtype=np.uint8)
            for name, content in dict(settings.get("files", {})).items()
        }
        return Invoke(
            args=nodes,
            kwargs=named_nodes,
            reads=tuple(settings.get("reads", ())),
            training=settings.get("training"),
            figures=bool(settings.get("figures", False)),
            gradients=bool(settings.get("gradients", False)) or cotangent is not None,
            cotangent=cotangent,
            seed=seed,
            arrays={**self.arrays, **files},
            **fields,
        )


def invoked(
    student: Owner,
    request: Invoke,
    component: str,
    label: str,
    arguments: tuple[Sequence[Any], Mapping[str, Any]],
    packing: Packing,
    heard: Callable[[Invoked], None] = lambda reply: None,
) -> Outcome:
    """Ask the worker to use something, and believe nothing of what it answers.

    Args:
        component: The graded name for whose points it counts.
        label: What is used, in our words.
        arguments: As the check has them.
        heard: Is given the reply, before anything of it is read.

    Raises:
        Mismatch: The student's code raised.
        WorkerFault: The worker hung, died or talked nonsense.
    """
    if request.figures and student.pictures_of(component):
        request = replace(request, pictures=True)
    reply: Invoked = student.ask(request, Invoked, student.link, component, label)
    heard(reply)
    args, kwargs = arguments
    same_names = set(reply.kwargs) == set(kwargs)
    if len(reply.args) != len(args) or not same_names or len(reply.printed) > MAX_PRINTED:
        raise untrusted_replies.nonsense()
    returned = f"what `{label}` returned" if request.action == "call" else f"`{label}`"
    unpacking = unpacker(student, reply.arrays, component, label)
    try:
        value = Value(unpacking.value(reply.value), returned)
        after = tuple(
            Value(
                before if node == {"same": True} else unpacking.value(node),
                f"argument {number + 1} of `{label}`",
            )
            for number, (node, before) in enumerate(zip(reply.args, args, strict=True))
        )
        after_named = {
            name: Value(
                kwargs[name] if node == {"same": True} else unpacking.value(node), f"`{name}` of `{label}`"
            )
            for name, node in reply.kwargs.items()
        }
        gradients = tuple(map(unpacking.value, reply.gradients))
    except ProtocolError as error:
        raise untrusted_replies.nonsense() from error
    if request.gradients:
        gradients = _gradients(gradients, args, label)
    files = {}
    for name in reply.files:
        if name not in request.reads:
            raise untrusted_replies.nonsense()
        files[name] = untrusted_replies.array(reply.arrays, FILE + name, kind="u").tobytes()
    calls = tuple(student.fakes.calls)
    drawn = {
        name.removeprefix(DRAWN): array for name, array in reply.arrays.items() if name.startswith(DRAWN)
    }
    untrusted_replies.figures(reply.figures, drawn)
    if reply.figures:
        student.keep_figures(component, reply.figures, drawn)
    return Outcome(
        *(value, reply.printed, after, after_named, gradients, reply.attached, reply.gradients_after),
        *(files, calls, reply.figures),
        arrays=drawn,
    )


def unpacker(student: Owner, arrays: Mapping[str, Any], component: str, label: str) -> Unpacker:
    """An unpacker for a worker's values; things belong to the component."""

    def other(node: dict[str, Any]) -> Any:
        match node:
            case {"thing": int(handle), "kind": str(kind), "type": str(type_name)} if len(node) == 3:
                if 0 <= handle <= 2 * MAX_VALUES and len(type_name) <= MAX_TYPE and kind in KINDS:
                    return Thing(student, component, label, handle, kind=kind, made=type_name)
        raise ProtocolError("a tree holds something that is not a value")

    return Unpacker(arrays, other)


KINDS = ("module", "class", "function", "object")


def _gradients(gradients: Sequence[Any], args: Sequence[Any], label: str) -> tuple[Tensor | None, ...]:
    """The gradients, checked to have the arguments' shapes."""
    if len(gradients) != len(args):
        raise untrusted_replies.nonsense()
    for gradient, value in zip(gradients, args, strict=True):
        if gradient is None:
            continue
        if not isinstance(gradient, Tensor) or not isinstance(value, Tensor) or gradient.shape != value.shape:
            raise untrusted_replies.nonsense()
        if not gradient.is_floating_point():
            raise untrusted_replies.nonsense()
        if not bool(torch.isfinite(gradient).all()):
            raise Mismatch(f"The gradient of `{label}` is not finite (NaN or infinity).")
    return tuple(gradients)


def labeled(name: str, args: Sequence[Any], kwargs: Mapping[str, Any], parameters: Sequence[str] = ()) -> str:
    """A call in our words: small values as they are, others by the stub's names."""
    return f"{name}({_arguments(args, kwargs, parameters)})"


def _arguments(args: Sequence[Any], kwargs: Mapping[str, Any], parameters: Sequence[str] = ()) -> str:
    shown = []
    for number, value in enumerate(args):
        short = _short(value)
        name = parameters[number] if number < len(parameters) else "..."
        shown.append(short if short is not None else name)
    shown += [f"{name}={_short(value) or '...'}" for name, value in kwargs.items()]
    return ", ".join(shown)


def _short(value: Any) -> str | None:
    """A small plain value as Python writes it; None for others."""
    plain = isinstance(value, bool | int | float | str | None.__class__)
    flat = isinstance(value, list | tuple) and all(
        isinstance(item, bool | int | float | str) for item in value
    )
    text = repr(value) if plain or flat else ""
    return text if text and len(text) <= MAX_ARGUMENT else None
