"""Exceptions in a worker: whose fault they are, at which student's line, and for want of which file.

It marks what is raised while the student's code runs: only that may cost points. It names the innermost line
of the student's, and the limit that an exception's class or PyTorch's message indicates. It never decides
whether a limit was hit. Missing pretrained weights are recognized by the functions that raised, else by the
message. `grader.judge.verdict` words a fault, and `grader.scoring` decides what it costs.

Tests: tests/worker/test_components.py, tests/worker/test_loading.py, tests/worker/test_own_source.py,
tests/worker/test_wanted.py, tests/worker/test_worker_training.py
"""

import __future__

import contextlib
import errno
import functools
import json
import linecache
import ntpath
import operator
import os
import re
import sysconfig
import traceback
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import CodeType
from typing import Any
from urllib.parse import urlsplit

import numpy
import torch

import grader
from grader.domain.analyzed_program import Place, Program, Statement
from grader.domain.assignment_files import HUB, TORCH
from grader.domain.errors import Interruption
from grader.domain.formatting import Said
from grader.protocol.error_kinds import REFUSED, Gap, is_raised_by_a_statement
from grader.protocol.replies import MAX_MESSAGE, Flaw, Problem, Resource
from grader.worker.sealed_functions import Lines


class StudentFault(Interruption):
    """The student's code raised, or made something that it should not.

    Attributes:
        error: What it raised.
    """

    def __init__(self, error: BaseException) -> None:
        super().__init__(str(type(error)))
        self.error = error


class RecipeError(Interruption):
    """The student's source does not say how to build or train the model.

    Attributes:
        gap: What is missing.
        error: What the student's loop raised, if it did.
    """

    def __init__(self, gap: Gap, error: BaseException | None = None) -> None:
        super().__init__(gap)
        self.gap: Gap = gap
        self.error = error


class SeenError(Interruption, TypeError):
    """What the student's code made is not what it should be.

    Attributes:
        seen: What is wrong with it.
    """

    def __init__(self, flaw: Flaw, words: str) -> None:
        super().__init__(words)
        self.seen: Flaw = flaw


class UnusableGpuError(Interruption):
    """The run was told to use a GPU that PyTorch cannot use: the operator's, never the student's."""


# how CUDA says that the GPU or its driver failed, whatever is computed on it; Python's code cannot cause it
_GPU_FAILURES = (
    *("ECC error", "NVLink error", "hardware stack error", "unspecified launch failure", "launch timed out"),
    *("busy or unavailable", "no CUDA-capable device", "initialization error", "not yet initialized"),
    *("driver", "illegal memory access", "unknown error"),
)


# what CUDA's failures are raised as; PyTorch before 2.8 had no class of their own for them
_GPU_ERROR: type[RuntimeError] = getattr(torch, "AcceleratorError", RuntimeError)


def _is_of_gpu(error: BaseException) -> bool:
    """Whether CUDA reported an error."""
    return isinstance(error, _GPU_ERROR) and _text(error).startswith("CUDA error")


def is_gpu_failure(error: BaseException) -> bool:
    """Whether the GPU failed while it was used, not what the student's code asked of it."""
    if not _is_of_gpu(error) or not torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        return False
    said = _text(error).partition("\n")[0]  # what follows is advice
    return not is_raised_by_a_statement(error) and any(words in said for words in _GPU_FAILURES)


@contextlib.contextmanager
def students_code() -> Iterator[None]:
    """Whatever is raised within is the student's.

    Raises:
        StudentFault: In place of the exception.
    """
    try:
        yield
    except (GeneratorExit, RecipeError, StudentFault):
        raise
    except BaseException as error:
        raise StudentFault(error) from error


# --- wanted ----------------------------------------------------------------------------------------------


MOST_ERRORS = 10  # of a chain of exceptions, each the cause of the one before
SUFFIXES = (".pt", ".pth", ".ckpt", ".safetensors", ".bin", ".npz", ".h5")
_MISSING = re.compile(r"No such file or directory: ['\"]?(?P<path>[^'\"]+)")
# what timm asks for if there are no weights under the first name
_FIRST, _SECOND = "model.safetensors", "pytorch_model.bin"

_Calls = list[tuple[str, str, Mapping[str, Any]]]  # module, function and local variables, innermost last


def wanted_file(error: BaseException) -> str:
    """Where an assignment would provide the file that was asked for and is not there.

    The libraries' own exceptions are recognized by the functions that raised them: some messages name no
    file, and their classes depend on the machine.

    Args:
        error: What the student's code raised, or a library that it called.

    Returns:
        The place in a cache (`torch/hub/checkpoints/vit.pth`, `huggingface/OWNER/NAME/model.safetensors`), or
        the name of a file for the working folder; empty if the exception is another one.
    """
    for raised in _chain(error):
        if not isinstance(raised, OSError):
            continue
        calls: _Calls = [
            (_wanted_text(frame.f_globals, "__name__"), frame.f_code.co_name, frame.f_locals)
            for frame, _ in traceback.walk_tb(BaseException.__dict__["__traceback__"].__get__(raised))
        ]
        if place := _of_torch_hub(calls) or _of_hugging_face(calls) or _of_working_folder(raised):
            return place
    return ""


def _chain(error: BaseException) -> Iterator[BaseException]:
    """An exception and its causes; a student's class is not asked itself."""
    current: BaseException | None = error
    for _ in range(MOST_ERRORS):
        if current is None:
            return
        yield current
        cause = BaseException.__dict__["__cause__"].__get__(current)
        current = cause if cause is not None else BaseException.__dict__["__context__"].__get__(current)


def _of_torch_hub(calls: _Calls) -> str:
    for module, function, values in calls:
        if module != "torch.hub" or function != "load_state_dict_from_url":
            continue
        name = (
            _wanted_text(values, "file_name") or urlsplit(_wanted_text(values, "url")).path.rpartition("/")[2]
        )
        folder = _wanted_text(values, "model_dir").replace("\\", "/")
        if not name:
            return ""
        in_cache = not folder or folder.endswith("/hub/checkpoints")
        return f"{TORCH}/hub/checkpoints/{name}" if in_cache else name
    return ""


def _of_hugging_face(calls: _Calls) -> str:
    asked = ""
    for module, function, values in calls:
        if not module.startswith("huggingface_hub."):
            continue
        if function in ("hf_hub_download", "snapshot_download") and _wanted_text(values, "repo_id"):
            if _wanted_text(values, "repo_type") not in ("", "model"):
                return ""
            asked = "/".join(
                filter(None, (HUB, _wanted_text(values, "repo_id"), _wanted_text(values, "filename")))
            )
    by_timm = any(module.startswith("timm.") for module, _, _ in calls)
    if by_timm and asked.endswith(f"/{_SECOND}"):
        return asked.removesuffix(_SECOND) + _FIRST
    return asked


def _of_working_folder(error: OSError) -> str:
    """The name of a file of weights that could not be opened, as it would be beside the homework."""
    if not isinstance(error, FileNotFoundError):
        return ""
    try:
        match = _MISSING.search(str(error)[:1000])
    except Exception:
        return ""
    name = ntpath.basename(match["path"].strip()) if match is not None else ""
    return name if name.lower().endswith(SUFFIXES) else ""


def _wanted_text(values: Mapping[str, Any], name: str) -> str:
    """A local variable if it is a text; else empty."""
    value = values.get(name)
    return value if type(value) is str else ""


# --- origin ----------------------------------------------------------------------------------------------


PREFIX = "submission:"  # marks the code objects that come from the student

_BY_NUMBER: dict[int, Resource] = {
    errno.EFBIG: "file_size",
    errno.ENOSPC: "disk",
    errno.EMFILE: "open_files",
    errno.ENOMEM: "memory",
}
_BY_WORDS: tuple[tuple[str, Resource], ...] = (
    (REFUSED, "memory"),
    ("can't start new thread", "processes"),
    ("PytorchStreamWriter failed", "writing"),
    ("unexpected pos", "writing"),
)


def compiled(statement: Statement, flags: int = 0) -> CodeType:
    """The statement's code, whose line numbers are those of the student's file or cell.

    Args:
        flags: Of the compiler, for `from __future__ import ...` in an earlier statement.
    """
    # blank lines before it cost less than moving each node of its tree
    text = "\n" * (statement.place.line - 1) + statement.source
    code: CodeType = compile(text, PREFIX + statement.place.file, "exec", flags, dont_inherit=True)
    return code


def future_flags(statement: Statement) -> int:
    """The compiler's flags that a statement switches on for all that follow."""
    if not statement.source.startswith("from __future__"):
        return 0
    features = [getattr(__future__, name, None) for name in statement.binds]
    return functools.reduce(operator.or_, (f.compiler_flag for f in features if f is not None), 0)


def student_lines(program: Program) -> Lines:
    """How the student's lines are distinguished from those of libraries."""
    statements = (*program.statements, *program.recipe.all_statements, *program.script.statements)
    files = {statement.place.file for statement in statements}
    documents = {PREFIX + file: json.dumps(file).encode() for file in sorted(files)}
    paths = sysconfig.get_paths()
    folders = {paths[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    folders |= {str(Path(package.__path__[0]).parent) for package in (torch, numpy)}
    folders.add(grader.__path__[0])
    return Lines(PREFIX, documents, tuple(f"{folder}{os.sep}" for folder in sorted(folders)))


def remember_source(program: Program) -> None:
    """Let tracebacks and `inspect.getsource` see the text of the statements, at the student's line numbers.

    If a statement is executed twice, within a function and by itself, the function is shown.
    """
    files: dict[str, dict[int, str]] = {}
    for statement in program.statements:
        lines = files.setdefault(statement.place.file, {})
        for number, text in _numbered(statement):
            lines[number] = f"{lines[number]}; {text}" if number in lines else text  # two on a line
    for statement in (*program.recipe.all_statements, *program.script.statements):
        lines = files.setdefault(statement.place.file, {})
        for number, text in _numbered(statement):
            lines.setdefault(number, text)
    for file, lines in files.items():
        every = [lines.get(number, "") + "\n" for number in range(1, max(lines) + 1)]
        linecache.cache[PREFIX + file] = (sum(map(len, every)), None, every, PREFIX + file)


def _numbered(statement: Statement) -> Iterator[tuple[int, str]]:
    return enumerate(statement.source.split("\n"), start=statement.place.line)


def problem(error: BaseException) -> Problem:
    """What was raised, with the innermost line of the student's."""
    # a hostile exception, or its class, may lie when it is asked itself
    name: str = type.__dict__["__name__"].__get__(type(error))
    steps = list(traceback.walk_tb(BaseException.__dict__["__traceback__"].__get__(error)))
    where = ""
    for frame, line in steps:
        if frame.f_code.co_filename.startswith(PREFIX) and line is not None:
            where = str(Place(frame.f_code.co_filename.removeprefix(PREFIX), line))
    text = _text(error)
    resource = _resource(error, text) if steps and not is_raised_by_a_statement(error) else ""
    gpu_share = _gpu_share(error) if resource == "memory" and torch.cuda.is_available() else 0.0
    if isinstance(error, SeenError):
        return Problem("TypeError", Said(text), where, seen=error.seen)
    return Problem(name, Said(text), where, resource, gpu_share=gpu_share, wanted=wanted_file(error))


def passed_students_code(error: BaseException) -> bool:
    """Whether a line of the student's was executed when it was raised."""
    steps = traceback.walk_tb(BaseException.__dict__["__traceback__"].__get__(error))
    return any(frame.f_code.co_filename.startswith(PREFIX) for frame, _ in steps)


def _text(error: BaseException) -> str:
    try:
        return str(error)[:MAX_MESSAGE]
    except Exception:
        return ""


def _resource(error: BaseException, text: str) -> Resource:
    """What was refused; for some of it PyTorch has no class, only a message."""
    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return "memory"
    if _is_of_gpu(error):  # a full GPU's, if nothing of ours is on it yet
        return "memory" if "out of memory" in text else ""
    if isinstance(error, OSError):
        return _BY_NUMBER.get(OSError.__dict__["errno"].__get__(error), "")
    if isinstance(error, RuntimeError):
        return next((resource for words, resource in _BY_WORDS if words in text), "")
    return ""


def _gpu_share(error: BaseException) -> float:
    """How much of the GPU's memory was taken when some was refused: 0 to 1.

    That is the largest share of what it may have that PyTorch held, by its own counter; or what it and other
    processes held together, such as those of another user.
    """
    if _is_of_gpu(error):
        return 1.0  # there was no room for the driver itself
    allowed = torch.cuda.get_device_properties(0).total_memory * torch.cuda.get_per_process_memory_fraction()
    free, total = torch.cuda.mem_get_info()
    return min(max(torch.cuda.max_memory_reserved() / allowed, 1 - free / total), 1.0)


def student_places() -> list[Place]:
    """The student's lines that are being executed, from the innermost to that of the module."""
    return [
        Place(frame.f_code.co_filename.removeprefix(PREFIX), line)
        for frame, line in traceback.walk_stack(None)
        if frame.f_code.co_filename.startswith(PREFIX)
    ]
