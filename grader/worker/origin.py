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
from pathlib import Path
from types import CodeType

import numpy
import torch

import grader
from grader.domain.program import Place, Statement
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


def student_lines(source: dict[str, str]) -> Lines:
    """How the student's lines are told from those of libraries."""
    files = {PREFIX + file: json.dumps(file).encode() for file in source}
    paths = sysconfig.get_paths()
    folders = {paths[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    folders |= {str(Path(package.__path__[0]).parent) for package in (torch, numpy)}
    folders.add(grader.__path__[0])
    return Lines(PREFIX, files, tuple(f"{folder}{os.sep}" for folder in sorted(folders)))


def remember_source(source: dict[str, str]) -> None:
    """Let tracebacks and `inspect.getsource` see the student's text."""
    for file, text in source.items():
        linecache.cache[PREFIX + file] = (len(text), None, text.splitlines(keepends=True), PREFIX + file)


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
