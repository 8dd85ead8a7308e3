"""What a student's code finds around it: missing modules, the device of the run, standard streams.

Inert fakes serve only imports in the student's own lines: a library that probes for an optional package still
gets its ImportError. `cuda` and `mps` mean the CPU if the run has nothing else; a missing GPU that should be
there counts as our fault. The last 200,000 characters of output are kept, and log messages from INFO on.
`grader.grading` decides on the device, the judge what a missing module means, the checks what counts as a
report.

Tests: tests/worker/test_loading.py, tests/worker/test_rigged_runs.py, tests/worker/test_worker_training.py
"""

import ast
import contextlib
import importlib.abc
import importlib.machinery
import importlib.util
import io
import logging
import re
import sys
from collections.abc import Iterator, Sequence
from types import ModuleType
from typing import Any

import torch
from torch import Tensor, nn

from grader.domain.errors import Interruption
from grader.worker.student_faults import UnusableGpuError


class NothingThereError(Interruption, TypeError):
    """The student's code computes with what is not there while it is trained: that is not its fault."""


class Inert:
    """A fake of anything: it can be called, subscripted, entered, iterated, and does nothing."""

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

    def __format__(self, form: str) -> str:
        return repr(self)

    def _as_number(self, *others: object) -> Any:
        raise NothingThereError(f"{self!r}: it stands for nothing that could be computed with")

    __float__ = __int__ = __index__ = __round__ = __abs__ = __neg__ = _as_number
    __add__ = __sub__ = __mul__ = __truediv__ = __floordiv__ = __mod__ = __pow__ = _as_number
    __radd__ = __rsub__ = __rmul__ = __rtruediv__ = __rfloordiv__ = __rmod__ = __rpow__ = _as_number
    __lt__ = __le__ = __gt__ = __ge__ = _as_number


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
    """The last finder: a module that no other finder knows becomes an AbsentModule.

    It serves imports in the student's own statements; an installed library that probes for an
    optional package still gets its ImportError.

    Attributes:
        names: The top-level modules that were replaced.
    """

    def __init__(self, student_prefix: str) -> None:
        self.names: list[str] = []
        self._prefix = student_prefix

    def replace_unimportable(self, statement: str) -> bool:
        """Replace a module that exists, but cannot be imported because another is missing.

        `torch.utils.tensorboard` is part of PyTorch, and imports `tensorboard`, which need not be installed.

        Args:
            statement: The import.

        Returns:
            Whether there was such a module, so that the statement may be tried again.
        """
        is_replaced = False
        for name in _imported(statement):
            try:
                importlib.import_module(name)
            except ModuleNotFoundError as error:
                if (error.name or "").partition(".")[0] == name.partition(".")[0]:
                    continue  # it does not exist at all
                sys.modules[name] = AbsentModule(name)
                self.names.append(name)
                is_replaced = True
        return is_replaced

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """A spec for a module that a student's line imports and that does not exist."""
        top = fullname.partition(".")[0]
        is_listed = top in self.names
        if not is_listed and ("." in fullname or not self._asked_by_student()):
            return None
        if not is_listed:
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


# --- device ----------------------------------------------------------------------------------------------


_GPU = re.compile(r"(cuda|mps)(:\d+)?")


def is_gpu(value: object) -> bool:
    """Whether a value names a GPU: `"cuda"`, `"cuda:0"`, `"mps"`, or a torch.device of those."""
    if isinstance(value, torch.device):
        return value.type in ("cuda", "mps")
    return isinstance(value, str) and _GPU.fullmatch(value) is not None


def usable_device(name: str, memory_mb: int | None = None) -> torch.device:
    """The device, which the machine must really have: if it does not, that is not the student's fault.

    Args:
        memory_mb: How much of a GPU's memory may be taken, in 10**6 bytes, so that others get theirs; None:
            all.
    """
    if name == "cuda" and not torch.cuda.is_available():
        raise UnusableGpuError("PyTorch cannot use the GPU: is its driver as new as PyTorch's CUDA asks for?")
    if name == "cuda" and memory_mb is not None:
        total = torch.cuda.get_device_properties(0).total_memory
        torch.cuda.set_per_process_memory_fraction(min(memory_mb * 10**6 / total, 1.0))
    return torch.device(name)


def bind_devices(namespace: dict[str, Any], device: torch.device) -> None:
    """Make every name that holds a device hold the run's: a torch.device, or a string that names a GPU."""
    for name, value in list(namespace.items()):
        if isinstance(value, torch.device):
            namespace[name] = device
        elif is_gpu(value):
            namespace[name] = str(device)


def redirect_gpu_calls(device: str) -> None:
    """Make `.cuda()` and `.to("cuda")` of tensors and modules mean the run's device, for good.

    That is the CPU, or the one GPU that the run has: a student's may be a Mac's, or the second of several.
    """
    for kind in (Tensor, nn.Module):
        moved = kind.to
        kind.to = _redirected(moved, device)  # type: ignore[method-assign,assignment]
        kind.cuda = _moving(moved, device)  # type: ignore[method-assign,assignment]


def _moving(to: Any, device: str) -> Any:
    if device == "cpu":
        return lambda self, *args, **kwargs: self
    return lambda self, *args, **kwargs: to(self, device)


def _redirected(original: Any, device: str) -> Any:
    def to(self: Any, *args: Any, **kwargs: Any) -> Any:
        if any(is_gpu(value) for value in (*args, *kwargs.values())):
            args = tuple(device if is_gpu(value) else value for value in args)
            kwargs = {name: device if is_gpu(value) else value for name, value in kwargs.items()}
        return original(self, *args, **kwargs)

    return to


# --- streams ---------------------------------------------------------------------------------------------


class BoundedText(io.StringIO):
    """Text output that forgets its beginning when it grows too long."""

    def write(self, text: str, /) -> int:
        """Write, and cut when over twice the bound."""
        count = super().write(text)
        if self.tell() > 400_000:
            kept = self.getvalue()[-200_000:]
            self.seek(0)
            self.truncate()
            super().write(kept)
        return count


class OverheardStream:
    """A standard stream: what is written goes to whoever listens, and on to the process's own stream.

    There is one for each stream, so that objects that kept it while a file was loaded (a logger's handler, a
    progress bar) are overheard later too. In the process's own stream a supervisor sees how much it writes.
    """

    def __init__(self, own: str) -> None:
        self._own = own
        self.listeners: list[io.StringIO] = []

    def write(self, text: str) -> int:
        """Write a text."""
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        with contextlib.suppress(OSError, ValueError, AttributeError):  # the student may have closed it
            getattr(sys, self._own).write(text)
        for listener in self.listeners[-1:]:
            listener.write(text)
        return len(text)

    def writelines(self, lines: Any) -> None:
        """Write several texts."""
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        """Nothing is buffered."""

    def close(self) -> None:
        """Ignore it, as the next function needs the stream."""

    def __getattr__(self, name: str) -> Any:
        """Other attributes are those of the process's own stream: its encoding, its number."""
        return getattr(getattr(sys, self._own), name)


class LogHandler(logging.Handler):
    """Messages of the standard logs, from INFO on, even if the file's own set-up was not executed."""

    def __init__(self, text: io.StringIO) -> None:
        super().__init__(logging.INFO)
        self._text = text

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a message; one that cannot be formatted is lost, as in the logs themselves."""
        with contextlib.suppress(Exception):
            self._text.write(f"{record.getMessage()}\n")


_OUTPUT, _ERRORS = OverheardStream("__stdout__"), OverheardStream("__stderr__")


@contextlib.contextmanager
def overheard() -> Iterator[io.StringIO]:
    """Capture both standard streams; the last 200,000 characters can be read afterwards."""
    text = BoundedText()
    with contextlib.ExitStack() as stack:
        for stream in (_OUTPUT, _ERRORS):
            stream.listeners.append(text)
            stack.callback(_forget, stream, text)
        stack.enter_context(contextlib.redirect_stdout(_OUTPUT))
        stack.enter_context(contextlib.redirect_stderr(_ERRORS))
        yield text


@contextlib.contextmanager
def logs_in(text: io.StringIO) -> Iterator[None]:
    """What is logged also goes to a text."""
    root, handler = logging.getLogger(), LogHandler(text)
    root.addHandler(handler)
    if root.level > logging.INFO:  # it remains so: each change takes as long as a call of a small function
        root.setLevel(logging.INFO)
    try:
        yield
    finally:
        root.removeHandler(handler)


def _forget(stream: OverheardStream, text: io.StringIO) -> None:
    stream.listeners = [listener for listener in stream.listeners if listener is not text]
