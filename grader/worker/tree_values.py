"""Trees of values in a worker: what cannot be sent stays here and goes out as a handle.

It packs the student's values and unpacks the judge's. `grader.judge.value` decides what a value should be.

Tests: tests/judge/test_calls.py
"""

import importlib
import inspect
import itertools
import os
from collections.abc import Callable, Iterator, Mapping
from types import SimpleNamespace
from typing import Any

import torch
from torch import nn

from grader.protocol.frames import ProtocolError
from grader.protocol.requests import FakeForm
from grader.protocol.trees import MAX_VALUES, Node, Packer, Unpacker
from grader.worker.batches import batches
from grader.worker.objects import Kept, Objects

MAX_NAME = 80  # characters of a type's name


def packer(objects: Objects, around: Kept | None = None) -> Packer:
    """Packs values of the student's.

    Args:
        around: What they come from.
    """

    def other(value: Any) -> Node:
        if isinstance(value, torch.device | torch.dtype | os.PathLike):
            return str(value)
        if isinstance(value, Iterator) or _is_view(value):
            return packing.node(list(itertools.islice(value, MAX_VALUES + 1)))
        return thing_node(objects, value, around)

    packing = Packer(other)
    return packing


def thing_node(objects: Objects, value: Any, around: Kept | None = None) -> Node:
    """The node of what stays here.

    Args:
        around: What it comes from.
    """
    kind = type.__dict__["__name__"].__get__(type(value))
    handle = objects.handle_of(value, around)
    return {"thing": handle, "kind": _kind(value), "type": str(kind)[:MAX_NAME]}


def unpacker(
    arrays: Mapping[str, Any], objects: Objects, part: Callable[[str], Any], fake: Callable[[FakeForm], Any]
) -> Unpacker:
    """Unpacks values of the judge's.

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
                return SimpleNamespace(**{name: unpacking.value(each) for name, each in members.items()})
            case {"batches": described}:
                return batches(unpacking.value(described))
            case {"scaled": node, "mean": list(mean), "deviation": list(deviation)}:
                channels = [torch.tensor(each).reshape(-1, 1, 1) for each in (mean, deviation)]
                return (unpacking.value(node).float() / 255 - channels[0]) / channels[1]
            case {"scaled": node}:
                return unpacking.value(node).float() / 255
            case {"library": str(path), "args": args, "kwargs": kwargs}:
                return _of_library(path, unpacking.value(args), unpacking.value(kwargs))
            case {"device": str(name)}:
                return torch.device(name)
        raise ProtocolError("a tree holds something that is not a value")

    unpacking = Unpacker(arrays, other)
    return unpacking


def _of_library(path: str, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """An object of a library's own; an optimizer of a module holds its parameters."""
    module, _, name = path.rpartition(".")
    made = getattr(importlib.import_module(module), name)
    if inspect.isclass(made) and issubclass(made, torch.optim.Optimizer):
        args = [each.parameters() if isinstance(each, nn.Module) else each for each in args]
    return made(*args, **kwargs)


def _shapes(described: Mapping[str, list[int]]) -> dict[str, tuple[int, ...]]:
    return {name: tuple(shape) for name, shape in described.items()}


def _is_view(value: Any) -> bool:
    """Whether it is a row of values that is neither a list nor a tuple: the keys of a dictionary, a range."""
    return isinstance(value, range | type({}.keys()) | type({}.values()) | type({}.items()))


def _kind(value: Any) -> str:
    if isinstance(value, nn.Module):
        return "module"
    if inspect.isclass(value):
        return "class"
    return "function" if inspect.isroutine(value) else "object"
