"""General calls of students' parts, and of objects that these made, with arguments of any kind.

Arguments are passed by the stub's names; renamed parameters by their positions in the stub. It computes the
result, changed arguments, gradients, printed text, files and figures. `grader.judge.value` and the checks
decide what of that is right.

Tests: tests/judge/test_calls.py
"""

import contextlib
import inspect
import os
import stat
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from grader.domain.program_run import AffineFake
from grader.protocol.replies import EpochDone, Invoked, Stepped
from grader.protocol.requests import DRAWN, FILE, FakeForm, Invoke
from grader.protocol.trees import Node, Packer, Unpacker
from grader.worker.exchanged_values import Kept, Objects, fill, packer, thing_node, unpacker
from grader.worker.figures import kept_figures
from grader.worker.student_environment import logs_in
from grader.worker.student_faults import students_code
from grader.worker.student_module import StudentModule, quiet, seed_all
from grader.worker.substitutes import AffineFakes, AskJudge, Fakes, Original
from grader.worker.training_passes import watched_passes

MOST_FILE = 50_000_000  # bytes of one file
MAX_PRINTED = 20_000  # characters
SAME: Node = {"same": True}


class Invocations:
    """Uses the student's parts and the objects that these made."""

    def __init__(
        self,
        student: StudentModule,
        objects: Objects,
        ask: AskJudge,
        tell: Callable[[EpochDone | Stepped], None],
    ) -> None:
        """Nothing is used yet.

        Args:
            ask: Asks the judge what a fake answers.
            tell: Reports a pass of a training to the judge.
        """
        self._student, self._objects, self._tell = student, objects, tell
        self.fakes = Fakes(ask, lambda: packer(objects), self.unpacker, self._original)

    def unpacker(self, message: Any) -> Unpacker:
        """An unpacker for the trees of one of the judge's messages."""
        return unpacker(message.arrays, self._objects, self._part, self.fakes.made)

    def replacements(
        self, fakes: Mapping[str, FakeForm], affine_fakes: AffineFakes, behaviors: Mapping[str, AffineFake]
    ) -> dict[str, Any]:
        """What replaces the student's names: the judge's fakes, and fakes of known behavior."""
        placed: dict[str, Any] = {
            name: affine_fakes.replacement(name, behavior, self._original(name))
            for name, behavior in behaviors.items()
        }
        return placed | {name: self.fakes.made(form, affine_fakes.note) for name, form in fakes.items()}

    def _original(self, name: str) -> Original:
        """The student's own class, which fakes replace."""
        own = self._student.namespace.get(name)
        # `super(Name, self)` means the student's class
        return Original(own, lambda: self._student.replaced({name: own}))

    def invoked(self, request: Invoke) -> Invoked:
        """The reply to a request; whatever the student's code raises passes through."""
        unpacking = self.unpacker(request)
        args = [unpacking.value(node) for node in request.args]
        kwargs = {name: unpacking.value(node) for name, node in request.kwargs.items()}
        cotangent = unpacking.value(request.cotangent)
        kept = Kept(None) if request.name or request.handle < 0 else self._objects[request.handle]
        around = self._around(request, kept)
        # reading a member of a component leaves what is known of its last call
        of_component = request.action == "call" and around is kept
        if of_component:
            kept.affine_fakes.clear()
        if request.gradients:
            args = [_leaf(value) for value in args]
        seed_all(request.seed)
        trained = self._objects[request.passes_of].value if request.passes_of >= 0 else None
        arguments, namespace = (*args, *kwargs.values()), self._student.namespace
        with (
            watched_passes(trained, arguments, namespace, request.trainer, self._tell) as watched,
            _folder(request) as folder,
            self._student.replaced({**around.replacements, **watched}),
            kept_figures(pictures=request.pictures) if request.figures else nullcontext() as drawn,
            quiet() as printed,
            logs_in(printed),
            torch.set_grad_enabled(True),
        ):
            with students_code():
                value = self._result_of(request, kept.value, args, kwargs)
            gradients_after = torch.is_grad_enabled()
            shown: dict[str, Any] = {}
            figures = drawn.described(shown, pictures=request.pictures) if drawn is not None else ()
            files = dict(_files(folder, request.reads)) if folder is not None else {}
        packing = packer(self._objects, around)
        if request.action == "keep":
            return Invoked(thing_node(self._objects, value), args=(SAME,))
        with students_code():  # a tensor of a student's own class may do anything when it is read
            packed_value = packing.bounded_node(value)
            attached = packing.attached
            gradients = tuple(
                map(packing.bounded_node, _gradients(value, args, cotangent) if request.gradients else ())
            )
            after = tuple(
                self._argument_after(packing, *pair, request.arrays)
                for pair in zip(args, request.args, strict=True)
            )
            named = {
                name: self._argument_after(packing, kwargs[name], node, request.arrays)
                for name, node in request.kwargs.items()
            }
            told_inputs: dict[str, Any] = {}
            calls = kept.affine_fakes.told(told_inputs) if of_component else ()
        arrays = {
            **packing.arrays,
            **told_inputs,
            **{FILE + name: content for name, content in files.items()},
        }
        arrays |= {DRAWN + name: array for name, array in shown.items()}
        text = printed.getvalue()[-MAX_PRINTED:]
        told = packed_value, text, after, named, gradients, attached, gradients_after
        return Invoked(*told, tuple(files), figures, arrays, calls)

    def _around(self, request: Invoke, kept: Kept) -> Kept:
        """What replaces the student's names meanwhile, and records it."""
        if not request.fakes and not request.replace:
            return kept
        affine_fakes = AffineFakes()
        replaced = self.replacements(request.fakes, affine_fakes, request.replace)
        return Kept(kept.value, affine_fakes, {**kept.replacements, **replaced})

    def _result_of(self, request: Invoke, value: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
        if request.action == "keep":
            return args[0]
        if request.action == "get":
            return _member(value, request.member)
        if request.action == "fill":
            target = _member(value, request.member)
            fill(target() if callable(target) else target, args[0])
            return None
        if request.action == "set":
            setattr(value, request.member, args[0])
            return None
        called = self._part(request.name) if request.name else _member(value, request.member)
        module = called if isinstance(called, nn.Module) else value
        if request.training is not None and isinstance(module, nn.Module):
            module.train(request.training)
        args, kwargs = matched(called, args, kwargs, request.parameters)
        return called(*args, **kwargs)

    def _part(self, name: str) -> Any:
        return self._student.namespace[name]

    def _argument_after(self, packing: Packer, value: Any, before: Node, arrays: Mapping[str, Any]) -> Node:
        """An argument as it is after the call."""
        if before is None or isinstance(before, bool | int | float | str):
            return SAME
        if isinstance(before, dict) and not set(before) & {"list", "tuple", "set", "dict", "array"}:
            return SAME  # an object that stays here, or a fake: the judge can ask about it
        again = packer(self._objects)
        if _resolved(again.bounded_node(value), again.arrays) == _resolved(before, arrays):
            return SAME
        return packing.bounded_node(value)


def matched(
    called: Any, args: Sequence[Any], kwargs: Mapping[str, Any], parameters: Sequence[str]
) -> tuple[list[Any], dict[str, Any]]:
    """The arguments as a student's function takes them: by the stub's names, if it has them.

    A student may reorder the parameters or name them otherwise, and may want a `device` besides.

    Args:
        parameters: The stub's names, in order.
    """
    if not parameters:
        return list(args), dict(kwargs)
    try:
        signature = inspect.signature(called).parameters
    except (TypeError, ValueError):
        return list(args), dict(kwargs)
    named = {
        name: parameter
        for name, parameter in signature.items()
        if parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
    }
    anything = any(parameter.kind is parameter.VAR_KEYWORD for parameter in signature.values())
    by_name = {**dict(zip(parameters, args, strict=False)), **kwargs}
    extra = {
        name: torch.device("cpu")
        for name, parameter in named.items()
        if name in ("device", "dev") and name not in by_name and parameter.default is parameter.empty
    }
    if len(args) <= len(parameters) and all(name in named for name in by_name):
        return [], {**by_name, **extra}
    if anything:
        return list(args), dict(kwargs)
    in_order = [by_name[name] for name in parameters[: len(by_name)] if name in by_name]
    if not named and len(in_order) == len(by_name):  # a decorator's `*args`
        return in_order, {}
    # renamed ones: by their positions in the stub
    places = [name for name in named if name not in extra]
    if len(places) < len(by_name):  # it is a renamed one, too
        places, extra = list(named), {}
    renamed = {
        places[parameters.index(name)]
        if name not in named and name in parameters[: len(places)]
        else name: value
        for name, value in kwargs.items()
    }
    if extra and len(named) == len(signature):  # by name, as the device may stand anywhere
        return [], {**dict(zip(places, args, strict=False)), **renamed, **extra}
    return list(args), renamed


def _member(value: Any, path: str) -> Any:
    for name in path.split(".") if path else ():
        value = getattr(value, name)
    return value


def _leaf(value: Any) -> Any:
    return (
        value.clone().requires_grad_() if isinstance(value, Tensor) and value.is_floating_point() else value
    )


def _gradients(value: Any, args: Sequence[Any], cotangent: Any) -> list[Tensor | None]:
    """The gradients of the sum of a value, times the cotangent, by the arguments."""
    if not isinstance(value, Tensor) or not value.requires_grad:
        return [None for _ in args]
    weight = torch.ones_like(value) if cotangent is None else cotangent.to(value.dtype)
    if weight.shape != value.shape:
        return [None for _ in args]
    (value * weight).sum().backward()  # type: ignore[no-untyped-call]
    return [argument.grad if isinstance(argument, Tensor) else None for argument in args]


def _resolved(node: Node, arrays: Mapping[str, Any]) -> Node:
    """A node that can be compared: with the content of its arrays."""
    match node:
        case {"array": name, **rest}:
            array = arrays[name]
            return (array.dtype.name, array.shape, array.tobytes(), rest)
        case {"bytes": name}:
            return arrays[name].tobytes()
        case dict():
            return {key: _resolved(value, arrays) for key, value in node.items()}
        case list():
            return [_resolved(value, arrays) for value in node]
    return node


@contextlib.contextmanager
def _folder(request: Invoke) -> Iterator[Path | None]:
    """A new working folder, if files are wanted or given; None: the process stays where it is."""
    contents = {
        name.removeprefix(FILE): value for name, value in request.arrays.items() if name.startswith(FILE)
    }
    if not contents and not request.reads:
        yield None
        return
    before = Path.cwd()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = Path(name)
        for file, content in contents.items():
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            (folder / file).write_bytes(content.tobytes())
        os.chdir(folder)
        try:
            yield folder
        finally:
            os.chdir(before)


def _files(folder: Path, wanted: Sequence[str]) -> Iterator[tuple[str, Any]]:
    """The content of the wanted files that are regular files, by name."""
    # not a link, which would be read from elsewhere, nor a pipe, which would never end
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0)
    for name in wanted:
        with contextlib.suppress(OSError), os.fdopen(os.open(folder / name, flags), "rb") as file:
            status = os.fstat(file.fileno())
            if stat.S_ISREG(status.st_mode) and status.st_size <= MOST_FILE:
                yield name, np.frombuffer(file.read(MOST_FILE), dtype=np.uint8)
