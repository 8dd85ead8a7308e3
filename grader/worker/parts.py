"""Forbidden classes and functions among the modules that are imported, by the assignment's patterns.

It computes what the patterns name, and where else in those modules it stands. A class without Python code is
left out. The assignment decides which patterns there are; `telling` makes the parts report their use.

Tests: tests/worker/test_watch.py
"""

import fnmatch
import sys
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from types import FunctionType, ModuleType
from typing import Any


@dataclass(frozen=True)
class Part:
    """A class, or a function, that is forbidden.

    Attributes:
        thing: It.
        name: The first dotted name under which it was found.
        patterns: All that name it.
        places: (module, name) of all places where it was found, and of where it is at home.
        functions: Those of a class of its own, or itself; none where it has no code of Python's.
        names: Under which a class has them.
        file: Where its code is; empty where it has none.
    """

    thing: Any
    name: str
    patterns: tuple[str, ...]
    places: tuple[tuple[ModuleType, str], ...]
    functions: tuple[FunctionType, ...]
    names: tuple[str, ...]
    file: str

    @property
    def things(self) -> tuple[Any, ...]:
        """It, and what stands in its places."""
        return (self.thing, *(vars(module).get(name) for module, name in self.places))


def forbidden_parts(patterns: Sequence[str], known: Collection[int]) -> list[Part]:
    """What the patterns name.

    Args:
        known: The `id` of what is left out.
    """
    found: dict[int, list[tuple[str, ModuleType, str, Any]]] = {}
    for pattern in patterns:
        for module, name, thing in _named(pattern):
            if id(thing) not in known:
                found.setdefault(id(thing), []).append((pattern, module, name, thing))
    parts = [_part(each) for each in found.values()]
    return [part for part in parts if part.functions or not isinstance(part.thing, type)]


def _part(found: list[tuple[str, ModuleType, str, Any]]) -> Part:
    _, module, name, thing = found[0]
    places = dict.fromkeys((module, name) for _, module, name, _ in found)
    home = getattr(thing, "__self__", None)  # a builtin function's is its module
    if isinstance(home, ModuleType) and vars(home).get(name) is thing:
        places[home, name] = None
    functions = dict(_functions(thing))
    return Part(
        thing,
        f"{module.__name__}.{name}",
        tuple(dict.fromkeys(pattern for pattern, *_ in found)),
        tuple(places),
        tuple(functions.values()),
        tuple(functions),
        next((function.__code__.co_filename for function in functions.values()), ""),
    )


def _named(pattern: str) -> Iterator[tuple[ModuleType, str, Any]]:
    """(module, name, thing) of all that a pattern names."""
    itself = sys.modules.get(pattern)
    if itself is not None:
        yield from _defined(itself)
    module_name, _, last = pattern.rpartition(".")
    module = sys.modules.get(module_name)
    if module is None:
        return
    for name, value in list(vars(module).items()):
        if not fnmatch.fnmatchcase(name, last):
            continue
        if isinstance(value, ModuleType):
            yield from _defined(value)
        elif callable(value):
            yield module, name, value


def _defined(module: ModuleType) -> Iterator[tuple[ModuleType, str, Any]]:
    """What a module defines itself."""
    for name, value in list(vars(module).items()):
        if callable(value) and getattr(value, "__module__", None) == module.__name__:
            yield module, name, value


def _functions(thing: Any) -> Iterator[tuple[str, FunctionType]]:
    """The function, or those that a class defines itself; an inherited one belongs to others too."""
    if isinstance(thing, FunctionType):
        yield thing.__name__, thing
    elif isinstance(thing, type):
        for name, value in vars(thing).items():
            function = getattr(value, "__func__", value)
            if isinstance(function, FunctionType) and _is_own(function, thing):
                yield name, function


def _is_own(function: FunctionType, kind: type) -> bool:
    return function.__module__ == kind.__module__ and function.__qualname__.startswith(
        f"{kind.__qualname__}."
    )
