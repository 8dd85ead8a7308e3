"""The student's module: the program's statements, executed one by one.

A statement that raises is recorded, and the others are still executed. `grader.analysis.slicing` decides
which statements there are. The checks, through `grader.judge.verdict`, decide what a missing graded name
means.

Tests: tests/worker/test_loading.py
"""

import argparse
import contextlib
import inspect
import io
import random
import sys
from collections.abc import Iterable, Iterator
from types import ModuleType
from typing import Any

import numpy as np
import torch

from grader.domain.analyzed_program import Program, Statement
from grader.protocol.replies import Loaded, Problem
from grader.protocol.requests import Load
from grader.worker.forbidden_watch import ForbiddenWatch
from grader.worker.idle_gpu import stand_in_for_gpu
from grader.worker.student_environment import AbsentFinder, bind_devices, overheard, redirect_gpu_calls
from grader.worker.student_faults import (
    PREFIX,
    compiled,
    future_flags,
    problem,
    remember_source,
    students_code,
)

MODULE = "homework"


class StudentModule:
    """The module in which the student's statements were executed.

    Attributes:
        program: What was executed.
        namespace: The module's globals.
        class_names: Of the data set.
        watch: For forbidden parts.
    """

    def __init__(self, request: Load, watch: ForbiddenWatch) -> None:
        self.program: Program = request.program
        module = ModuleType(MODULE)
        sys.modules[MODULE] = module
        self.namespace: dict[str, Any] = module.__dict__
        # a notebook's and a script's `__name__` is `__main__`, but its guarded main part must not run
        self.namespace["__file__"] = request.program.file
        self.namespace["display"] = lambda *values: None
        self.class_names = request.class_names
        self._flags = 0
        redirect_gpu_calls(request.device)
        if request.device == "cpu":
            stand_in_for_gpu()
        argparse.ArgumentParser.parse_known_args = _without_required  # type: ignore[method-assign]
        self.watch = watch
        remember_source(request.program)
        self._absent = AbsentFinder(PREFIX)
        sys.meta_path.append(self._absent)
        seed_all(request.seed)
        self._problems: list[Problem] = []
        for statement in request.program.statements:
            self._execute(statement)
        for near in request.program.near_names:
            if near.expected not in self.namespace and near.found in self.namespace:
                self.namespace[near.expected] = self.namespace[near.found]
        # their uses are found in the source, and in what is constructed from now on
        self.watch.begin()
        bind_devices(self.namespace, torch.device(request.device))

    def _execute(self, statement: Statement) -> None:
        """Execute one statement; what it raises is recorded, and the others are still executed."""
        try:
            self._run(statement)
        except BaseException as error:  # here SystemExit and KeyboardInterrupt are exceptions like any other
            self._problems.append(problem(error))

    def _run(self, statement: Statement) -> None:
        self._flags |= future_flags(statement)
        code = compiled(statement, self._flags)
        with quiet():
            try:
                exec(code, self.namespace)
            except ModuleNotFoundError:
                if not self._absent.replace_unimportable(statement.source):
                    raise
                exec(code, self.namespace)

    def loaded(self) -> Loaded:
        """The reply to Load."""
        return Loaded(
            kinds={name: _kind(self.namespace[name]) for name in self._graded() if name in self.namespace},
            problems=tuple(self._problems[:20]),
            absent_modules=tuple(self._absent.names[:50]),
        )

    def run(self, statements: Iterable[Statement]) -> None:
        """Execute further statements of the source.

        Raises:
            StudentFault: One of them raised.
        """
        with students_code():
            for statement in statements:
                self._run(statement)

    def evaluated(self, expression: str) -> Any:
        """The value of an expression of the source in the student's module.

        Raises:
            StudentFault: It raised.
        """
        with students_code(), quiet():
            code = compile(expression, PREFIX + self.program.file, "eval", self._flags)
            return eval(code, self.namespace)  # noqa: S307

    def _graded(self) -> list[str]:
        return [*(self.program.defined or {}), *(near.expected for near in self.program.near_names)]

    @contextlib.contextmanager
    def replaced(self, values: dict[str, Any]) -> Iterator[None]:
        """For a while, give some of the module's names other values."""
        # a nearly right name is what the student's own code refers to
        near = {n.found: values[n.expected] for n in self.program.near_names if n.expected in values}
        values = {**values, **near}
        before = {name: self.namespace[name] for name in values if name in self.namespace}
        self.namespace.update(values)
        try:
            yield
        finally:
            for name in values:
                if name not in before:
                    self.namespace.pop(name, None)
            self.namespace.update(before)


@contextlib.contextmanager
def quiet() -> Iterator[io.StringIO]:
    """Capture the standard streams; the last 200,000 characters of both can be read afterwards."""
    with overheard() as text:
        yield text


def seed_all(seed: int, device: str = "cpu") -> None:
    """Seed torch, numpy and random.

    Args:
        device: On which torch computes. `torch.manual_seed` seeds all kinds of devices, even missing ones,
            which takes 2 to 10 ms.
    """
    random.seed(seed)
    np.random.seed(seed % 2**32)
    if device == "cpu":
        torch.default_generator.manual_seed(seed)
    else:
        torch.manual_seed(seed)


def restore_torch() -> None:
    """Undo what a student's function may have left behind, so that one mistake costs one component."""
    torch.set_grad_enabled(True)
    torch.set_default_dtype(torch.float32)
    # setting these takes longer than asking
    if torch.get_default_device().type != "cpu":
        torch.set_default_device(None)
    if torch.are_deterministic_algorithms_enabled():
        torch.use_deterministic_algorithms(False)
    if torch.get_num_threads() != 1:
        torch.set_num_threads(1)  # a worker's; training sets its own


_parse_known_args = argparse.ArgumentParser.parse_known_args


def _without_required(self: Any, args: Any = None, namespace: Any = None) -> Any:
    """The defaults of command-line options, as there is no command line; required ones are None."""
    for action in self._actions:
        action.required = False
    return _parse_known_args(self, [] if args is None else args, namespace)


def _kind(value: object) -> str:
    if inspect.isclass(value):
        return "class"
    return "function" if callable(value) else "other"
