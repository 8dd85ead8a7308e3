"""Seeing at run time what the assignment forbids, however its name was spelled."""

import fnmatch
import importlib
import itertools
import sys
from collections.abc import Callable, Iterable, Iterator
from types import ModuleType
from typing import Any

from torch import nn

_MARK = "grader.worker.until_here"


class ForbiddenWatch:
    """Records imports of forbidden modules and constructions or calls of forbidden parts.

    It is a second pair of eyes: the judge also sees the module tree, and the source was searched before.

    Attributes:
        seen: The patterns that were reached, in order, once each.
    """

    def __init__(self, patterns: Iterable[str]) -> None:
        self.patterns = tuple(patterns)
        self.seen: list[str] = []
        self.begin()
        for pattern in self.patterns:
            self._wrap(pattern)

    def begin(self) -> None:
        """Forget what was imported so far: an import at the top of a file that nothing uses costs nothing."""
        sys.modules.pop(_MARK, None)
        sys.modules[_MARK] = ModuleType(_MARK)

    def imported(self) -> None:
        """Record the forbidden modules that were imported since the beginning."""
        for name in sorted(_imported_since_mark()):
            for pattern in self.patterns:
                if fnmatch.fnmatchcase(name, pattern) or name.partition(".")[0] == pattern:
                    self._record(pattern)

    def _record(self, pattern: str) -> None:
        if pattern not in self.seen:
            self.seen.append(pattern)

    def _wrap(self, pattern: str) -> None:
        """Wrap what the pattern matches within modules that are imported already."""
        itself = sys.modules.get(pattern)
        for value in list(vars(itself).values()) if itself is not None else ():
            if isinstance(value, type) and issubclass(value, nn.Module) and value.__module__ == pattern:
                self._wrap_class(value, pattern)
        module_name, _, last = pattern.rpartition(".")
        if module_name not in sys.modules or not module_name:
            return
        module = importlib.import_module(module_name)
        for name in [name for name in vars(module) if fnmatch.fnmatchcase(name, last)]:
            value = getattr(module, name)
            if isinstance(value, type) and issubclass(value, nn.Module):
                self._wrap_class(value, pattern)
            elif callable(value) and not isinstance(value, type):
                setattr(module, name, self._watched(value, pattern))

    def _wrap_class(self, kind: type[nn.Module], pattern: str) -> None:
        original: Callable[..., None] = kind.__init__
        watch = self

        def construct(self: nn.Module, *args: Any, **kwargs: Any) -> None:
            watch._record(pattern)
            original(self, *args, **kwargs)

        kind.__init__ = construct  # type: ignore[method-assign]

    def _watched(self, function: Callable[..., Any], pattern: str) -> Callable[..., Any]:
        def watched(*args: Any, **kwargs: Any) -> Any:
            self._record(pattern)
            return function(*args, **kwargs)

        return watched


def _imported_since_mark() -> Iterator[str]:
    """The names of the modules that were imported after the mark was set.

    Modules stand in the order of their import. In a fork a look at all of them costs a copy of the memory in
    which their names lie, 11 ms; those behind the mark are few.
    """
    return itertools.takewhile(lambda name: name != _MARK, reversed(sys.modules))
