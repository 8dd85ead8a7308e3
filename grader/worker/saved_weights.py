"""Weights that a script saves and loads again while the grader executes it: they stay in memory.

A file of that name counts as being there, under its new name once it is moved, or also under it once it is
copied. No other file is moved or copied. What is written otherwise is an affair of `written_files`.

Tests: tests/worker/test_saved_weights.py, tests/training/test_replay.py
"""

import contextlib
import copy
import os
import pathlib
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from grader.worker.model_outputs import unwrapped_names


@dataclass(frozen=True)
class Saved:
    """What the script saved.

    Attributes:
        storages: The addresses of its numbers at that time.
    """

    value: Any
    storages: frozenset[int]


def states_in(value: Any) -> Iterator[dict[str, Any]]:
    """The weights in what was saved: itself, or one of its parts."""
    if isinstance(value, nn.Module):
        value = value.state_dict()
    if not isinstance(value, dict):
        return
    if value and all(isinstance(part, torch.Tensor) for part in value.values()):
        yield unwrapped_names({str(name): part for name, part in value.items()})
        return
    for part in value.values():
        yield from states_in(part)


def _storages(value: Any) -> frozenset[int]:
    tensors = (part for weights in states_in(value) for part in weights.values())
    return frozenset(part.data_ptr() for part in tensors if part.numel())


@contextlib.contextmanager
def weights_in_memory(saved: dict[str, Saved]) -> Iterator[None]:
    """Make `torch.save(..., path)` and `torch.load(path)` work in memory, whatever the path.

    Args:
        saved: What is saved, by absolute path, the last one last.
    """
    real_save, real_load = torch.save, torch.load

    # the parameters have PyTorch's names, by which they may be given
    def save(obj: Any, f: Any, *args: Any, **kwargs: Any) -> None:
        if _is_path(f):
            saved.pop(_key(f), None)
            saved[_key(f)] = Saved(copy.deepcopy(obj), _storages(obj))
        else:
            real_save(obj, f, *args, **kwargs)

    def load(f: Any, *args: Any, **kwargs: Any) -> Any:
        if _is_path(f) and _key(f) in saved:
            return copy.deepcopy(saved[_key(f)].value)
        return real_load(f, *args, **kwargs)

    def moves(real: Callable[..., Any], *, leaves: bool = False) -> Callable[..., Any]:
        def moved(src: Any, dst: Any, *args: Any, **kwargs: Any) -> Any:
            if not _is_path(src) or not _is_path(dst):
                return real(src, dst, *args, **kwargs)
            if _key(src) in saved:
                value = saved[_key(src)] if leaves else saved.pop(_key(src))
                saved.pop(_key(dst), None)
                saved[_key(dst)] = value
            return dst  # any other file is one that the grader did not let the script make

        return moved

    def exists(real: Callable[..., bool]) -> Callable[..., bool]:
        def is_there(path: Any, *args: Any, **kwargs: Any) -> bool:
            return (_is_path(path) and _key(path) in saved) or real(path, *args, **kwargs)

        return is_there

    with contextlib.ExitStack() as stack:
        for place, name, replaced in (
            (torch, "save", save),
            (torch, "load", load),
            (os, "rename", moves(os.rename)),
            (os, "replace", moves(os.replace)),
            (shutil, "move", moves(shutil.move)),
            (shutil, "copy", moves(shutil.copy, leaves=True)),
            (shutil, "copy2", moves(shutil.copy2, leaves=True)),
            (shutil, "copyfile", moves(shutil.copyfile, leaves=True)),
            (os.path, "exists", exists(os.path.exists)),
            (os.path, "isfile", exists(os.path.isfile)),
            (pathlib.Path, "exists", exists(pathlib.Path.exists)),
            (pathlib.Path, "is_file", exists(pathlib.Path.is_file)),
        ):
            stack.callback(setattr, place, name, getattr(place, name))
            setattr(place, name, replaced)
        yield


def _is_path(value: Any) -> bool:
    return isinstance(value, str | os.PathLike)


def _key(path: str | os.PathLike[str]) -> str:
    return os.path.abspath(os.fspath(path))  # noqa: PTH100 - it may be no `Path` at all
