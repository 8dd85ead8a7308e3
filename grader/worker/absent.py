"""Inert stand-ins for modules that are not installed here (`torchsummary`, `google.colab`).

It serves only imports that the student's own lines make: a library that probes for an optional package still
gets its ImportError. It reports the names that it stood in for. `grader.judge.fault` says that a part is
missing for this reason, not this module.

Tests: tests/worker/test_loading.py
"""

import ast
import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Iterator, Sequence
from types import ModuleType
from typing import Any


class Inert:
    """Anything: can be called, subscripted, entered, iterated, and does nothing."""

    def __init__(self, name: str = "inert") -> None:
        self.__dict__["_name"] = name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        # used as a decorator it leaves the function as it is
        if len(args) == 1 and not kwargs and callable(args[0]):
            return args[0]
        return self

    def __getattr__(self, name: str) -> "Inert":
        if name.startswith("__"):
            raise AttributeError(name)
        return Inert(f"{self._name}.{name}")

    def __getitem__(self, key: object) -> "Inert":
        return self

    def __setattr__(self, name: str, value: object) -> None:
        return None

    def __setitem__(self, key: object, value: object) -> None:
        return None

    def __iter__(self) -> Iterator[Any]:
        return iter(())

    def __len__(self) -> int:
        return 0

    def __bool__(self) -> bool:
        return False

    def __enter__(self) -> "Inert":
        return self

    def __exit__(self, *details: object) -> None:
        return None

    def __mro_entries__(self, bases: tuple[object, ...]) -> tuple[type, ...]:
        return ()

    def __repr__(self) -> str:
        return f"<{self._name} is not installed here>"


def _imported(statement: str) -> Iterator[str]:
    """The modules that an import names, by their full names."""
    for node in ast.walk(ast.parse(statement)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module


class AbsentModule(ModuleType):
    """A module of which every attribute is inert."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Inert(f"{self.__name__}.{name}")


class AbsentFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """The last finder: whatever no other finder knows becomes an AbsentModule.

    It serves imports that the student's own statements make; an installed library that probes for an
    optional package still gets its ImportError.

    Attributes:
        names: The top-level modules that were stood in for.
    """

    def __init__(self, student_prefix: str) -> None:
        self.names: list[str] = []
        self._prefix = student_prefix

    def stands_in_for(self, statement: str) -> bool:
        """Stand in for what an import names and what is there, but cannot be imported for lack of another.

        `torch.utils.tensorboard` is part of PyTorch, and imports `tensorboard`, which need not be installed.

        Args:
            statement: The import.

        Returns:
            Whether there was such a module, so that the statement may be tried again.
        """
        found = False
        for name in _imported(statement):
            try:
                importlib.import_module(name)
            except ModuleNotFoundError as error:
                if (error.name or "").partition(".")[0] == name.partition(".")[0]:
                    continue  # it is not there at all
                sys.modules[name] = AbsentModule(name)
                self.names.append(name)
                found = True
        return found

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """A spec for a module that a student's line imports and that does not exist."""
        top = fullname.partition(".")[0]
        known = top in self.names
        if not known and ("." in fullname or not self._asked_by_student()):
            return None
        if not known:
            self.names.append(top)
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        """An inert module."""
        return AbsentModule(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Nothing to execute."""

    def _asked_by_student(self) -> bool:
        frame = sys._getframe(2)
        while frame is not None:
            file = frame.f_code.co_filename
            if file.startswith(self._prefix):
                return True
            if "importlib" not in file:
                return False
            if frame.f_back is None:
                return False
            frame = frame.f_back
        return False
