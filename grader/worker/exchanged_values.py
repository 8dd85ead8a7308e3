"""Values exchanged with the judge: packed as trees, kept by handle, or put into weights in place.

It packs the student's values and unpacks the judge's. What cannot be sent stays here and goes out as a
handle, one for each object, up to a bound. Numbers are put into tensors and arrays only if names and shapes
match; otherwise it raises. The judge decides what a value should be, and which numbers are put where.

Tests: tests/judge/test_calls.py
"""

import importlib
import inspect
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from grader.protocol.frames import ProtocolError
from grader.protocol.requests import FakeForm
from grader.protocol.trees import Node, Packer, Unpacker
from grader.worker.rigged_objects import batches
from grader.worker.student_environment import usable_device
from grader.worker.substitutes import AffineFakes

MOST_OBJECTS = 20_000


@dataclass(frozen=True)
class Kept:
    """One object.

    Attributes:
        value: The object itself.
        affine_fakes: The fakes of known behavior in it, which record their calls.
        replacements: What replaces the student's names while it is used.
    """

    value: Any
    affine_fakes: AffineFakes = field(default_factory=AffineFakes)
    replacements: Mapping[str, Any] = field(default_factory=dict)


class Objects:
    """Objects by handle; each has one."""

    def __init__(self) -> None:
        self._kept: list[Kept] = []
        self._handles: dict[int, int] = {}  # by the identity of an object, which lives as long as this

    def keep(self, kept: Kept) -> int:
        """Keep a new object; its handle.

        Raises:
            MemoryError: There are too many.
        """
        if len(self._kept) >= MOST_OBJECTS:
            raise MemoryError("too many objects are kept")
        self._kept.append(kept)
        self._handles[id(kept.value)] = len(self._kept) - 1
        return len(self._kept) - 1

    def handle_of(self, value: Any, around: Kept | None = None) -> int:
        """The handle of an object, which is kept if it was not yet.

        Args:
            around: What it came from, whose replacements apply to it too.
        """
        handle = self._handles.get(id(value))
        if handle is not None:
            return handle
        return self.keep(
            Kept(value) if around is None else Kept(value, around.affine_fakes, around.replacements)
        )

    def __getitem__(self, handle: int) -> Kept:
        return self._kept[handle]


# --- tree values -----------------------------------------------------------------------------------------


MAX_NAME = 80  # characters of a type's name


def packer(objects: Objects, around: Kept | None = None) -> Packer:
    """A packer for the student's values.

    Args:
        around: What they come from.
    """

    def other(value: Any) -> Node:
        if isinstance(value, torch.device | torch.dtype | os.PathLike):
            return str(value)
        if _is_view(value):
            return packing.node(iter(value))
        return thing_node(objects, value, around)

    packing = Packer(other)
    return packing


def thing_node(objects: Objects, value: Any, around: Kept | None = None) -> Node:
    """The node of an object that stays here.

    Args:
        around: What it comes from.
    """
    kind = type.__dict__["__name__"].__get__(type(value))
    handle = objects.handle_of(value, around)
    return {"thing": handle, "kind": _kind(value), "type": str(kind)[:MAX_NAME]}


def unpacker(
    arrays: Mapping[str, Any], objects: Objects, part: Callable[[str], Any], fake: Callable[[FakeForm], Any]
) -> Unpacker:
    """An unpacker for the judge's values.

    Args:
        part: A graded name -> what the student made of it.
        fake: A fake's form -> the fake.
    """

    def other(node: dict[str, Any]) -> Any:
        match node:
            case {"part": str(name)}:
                return part(name)
            case {"thing": int(handle)}:
                return objects[handle].value
            case {"fake": dict(form)}:
                return fake(FakeForm(**{**form, "parameters": _shapes(form["parameters"])}))
            case {"object": dict(members)}:
                return SimpleNamespace(**{name: unpacking.value(member) for name, member in members.items()})
            case {"batches": described}:
                return batches(unpacking.value(described))
            case {"scaled": node, "mean": list(mean), "deviation": list(deviation)}:
                channels = [torch.tensor(numbers).reshape(-1, 1, 1) for numbers in (mean, deviation)]
                return (unpacking.value(node).float() / 255 - channels[0]) / channels[1]
            case {"scaled": node}:
                return unpacking.value(node).float() / 255
            case {"library": str(path), "args": args, "kwargs": kwargs}:
                return _of_library(path, unpacking.value(args), unpacking.value(kwargs))
            case {"device": str(name), **further}:
                return usable_device(name, further.get("memory_mb"))
        raise ProtocolError("a tree holds something that is not a value")

    unpacking = Unpacker(arrays, other)
    return unpacking


def _of_library(path: str, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """An object of a library's class; an optimizer that is given a module gets its parameters."""
    module, _, name = path.rpartition(".")
    made = getattr(importlib.import_module(module), name)
    if inspect.isclass(made) and issubclass(made, torch.optim.Optimizer):
        args = [argument.parameters() if isinstance(argument, nn.Module) else argument for argument in args]
    return made(*args, **kwargs)


def _shapes(described: Mapping[str, list[int]]) -> dict[str, tuple[int, ...]]:
    return {name: tuple(shape) for name, shape in described.items()}


def _is_view(value: Any) -> bool:
    """Whether it is a sequence of values that is not a list or tuple: the keys of a dictionary, a range."""
    return isinstance(value, range | type({}.keys()) | type({}.values()) | type({}.items()))


def _kind(value: Any) -> str:
    if isinstance(value, nn.Module):
        return "module"
    if inspect.isclass(value):
        return "class"
    return "function" if inspect.isroutine(value) else "object"


# --- weight transfer -------------------------------------------------------------------------------------


def fill(target: Any, content: Any) -> None:
    """Copy the numbers of a tree of arrays into one of the same form, in place.

    Args:
        target: Tensors and arrays in lists, tuples and dictionaries, as an object holds them.
        content: The same with other numbers.

    Raises:
        ValueError: They are not of the same form.
    """
    if isinstance(target, Tensor):
        tensor = torch.as_tensor(content)
        _require_shape(tensor.shape, target.shape)
        with torch.no_grad():
            target.copy_(tensor)
    elif isinstance(target, np.ndarray):
        array = np.asarray(content)
        _require_shape(array.shape, target.shape)
        target[...] = array
    elif isinstance(target, Mapping) and isinstance(content, Mapping):
        if target.keys() != content.keys():
            raise ValueError("weights of other names")
        for name, part in target.items():
            fill(part, content[name])
    elif isinstance(target, list | tuple | Iterator) and isinstance(content, list | tuple):
        for part, part_content in zip(target, content, strict=True):
            fill(part, part_content)
    elif target is not None or content is not None:
        raise ValueError(f"a {type(target).__name__} cannot be filled: weights are tensors and arrays")


def _require_shape(shape: tuple[int, ...], wanted: tuple[int, ...]) -> None:
    if tuple(shape) != tuple(wanted):
        raise ValueError(f"weights of shape {tuple(shape)} for {tuple(wanted)}")
