"""Source locations: from an exception or a frame to the line that the student wrote.

It decides which line is named (the innermost of the student's) and which limit an exception speaks of, by its
class or PyTorch's words. It never decides whether a limit was really hit: `grader.judge.fault` words it, and
`grader.training` compares it with what the kernel measured.

Tests: tests/worker/test_loading.py, tests/worker/test_own_source.py
"""

import __future__

import ast
import errno
import functools
import json
import linecache
import operator
import os
import sysconfig
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import CodeType

import numpy
import torch

import grader
from grader.domain.program import Place, Program, Statement
from grader.domain.quoting import Said
from grader.protocol.allocation import REFUSED, is_raised_by_a_statement
from grader.protocol.replies import MAX_MESSAGE, Problem, Resource
from grader.worker.fault import SeenError
from grader.worker.voice import Lines
from grader.worker.wanted import wanted_file

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
    tree = ast.parse(statement.source)
    ast.increment_lineno(tree, statement.place.line - 1)
    code: CodeType = compile(tree, PREFIX + statement.place.file, "exec", flags, dont_inherit=True)
    return code


def future_flags(statement: Statement) -> int:
    """The compiler's flags that a statement switches on for all that follow."""
    if not statement.source.startswith("from __future__"):
        return 0
    features = [getattr(__future__, name, None) for name in statement.binds]
    return functools.reduce(operator.or_, (f.compiler_flag for f in features if f is not None), 0)


def student_lines(program: Program) -> Lines:
    """How the student's lines are told from those of libraries."""
    statements = (*program.statements, *program.recipe.all_statements, *program.script.statements)
    files = {statement.place.file for statement in statements}
    known = {PREFIX + file: json.dumps(file).encode() for file in sorted(files)}
    paths = sysconfig.get_paths()
    folders = {paths[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    folders |= {str(Path(package.__path__[0]).parent) for package in (torch, numpy)}
    folders.add(grader.__path__[0])
    return Lines(PREFIX, known, tuple(f"{folder}{os.sep}" for folder in sorted(folders)))


def remember_source(program: Program) -> None:
    """Let tracebacks and `inspect.getsource` see the text of the statements, each on the student's own lines.

    Where a statement is executed twice, as it stands in a function and by itself, the function is seen.
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
    # a hostile exception, or its class, may answer something else when it is asked itself
    name: str = type.__dict__["__name__"].__get__(type(error))
    steps = list(traceback.walk_tb(BaseException.__dict__["__traceback__"].__get__(error)))
    where = ""
    for frame, line in steps:
        if frame.f_code.co_filename.startswith(PREFIX) and line is not None:
            where = str(Place(frame.f_code.co_filename.removeprefix(PREFIX), line))
    text = _text(error)
    resource = _resource(error, text) if steps and not is_raised_by_a_statement(error) else ""
    gpu_share = _gpu_share() if resource == "memory" and torch.cuda.is_available() else 0.0
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
    """What was refused; PyTorch has no class for some of it, but words."""
    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return "memory"
    if isinstance(error, OSError):
        return _BY_NUMBER.get(OSError.__dict__["errno"].__get__(error), "")
    if isinstance(error, RuntimeError):
        return next((resource for words, resource in _BY_WORDS if words in text), "")
    return ""


def _gpu_share() -> float:
    """The most of the GPU's memory that PyTorch held, by its own counter, of what it may take: 0 to 1."""
    whole = torch.cuda.get_device_properties(0).total_memory * torch.cuda.get_per_process_memory_fraction()
    return min(torch.cuda.max_memory_reserved() / whole, 1.0)


def student_places() -> list[Place]:
    """The student's lines that are being executed, from the innermost to that of the module."""
    return [
        Place(frame.f_code.co_filename.removeprefix(PREFIX), line)
        for frame, line in traceback.walk_stack(None)
        if frame.f_code.co_filename.startswith(PREFIX)
    ]
