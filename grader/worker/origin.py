"""From an exception to the line that the student wrote."""

import __future__

import ast
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
from grader.protocol.replies import Problem
from grader.worker.voice import Lines

PREFIX = "submission:"  # marks the code objects that come from the student


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
    statements = (*program.statements, *program.recipe.all_statements)
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
    for statement in program.recipe.all_statements:
        lines = files.setdefault(statement.place.file, {})
        for number, text in _numbered(statement):
            lines.setdefault(number, text)
    for file, lines in files.items():
        every = [lines.get(number, "") + "\n" for number in range(1, max(lines) + 1)]
        linecache.cache[PREFIX + file] = (sum(map(len, every)), None, every, PREFIX + file)


def _numbered(statement: Statement) -> Iterator[tuple[int, str]]:
    return enumerate(statement.source.split("\n"), start=statement.place.line)


def problem(error: BaseException) -> Problem:
    """The exception in words, with the innermost line of the student's."""
    where = line = ""
    try:
        frames = traceback.extract_tb(error.__traceback__)
    except Exception:  # a hostile exception may break even this
        frames = traceback.StackSummary()
    for frame in frames:
        if frame.filename.startswith(PREFIX) and frame.lineno is not None:
            where = str(Place(frame.filename.removeprefix(PREFIX), frame.lineno))
            line = (frame.line or "").strip()
    return Problem(type(error).__name__[:80], _text(error), where, line[:200])


def _text(error: BaseException) -> str:
    try:
        return str(error)[:500]
    except Exception:
        return ""
