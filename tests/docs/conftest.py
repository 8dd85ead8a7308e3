"""Running a check of the documentation on the reference solution."""

from collections.abc import Callable
from typing import Any

import pytest

from grader.domain.analyzed_program import Program
from grader.domain.assignment import Assignment
from grader.protocol.link import WorkerProcess


@pytest.fixture
def examined_function(
    assignment: Assignment,
    analyzed: Callable[[str], Program],
    solved: str,
    spawn: Callable[[], WorkerProcess],
) -> Callable[..., Any]:
    """Call a check with the reference solution as the student."""
    from grader.judge.student import Student

    def run(check: Callable[[Student], None]) -> None:
        student = Student(spawn, analyzed(solved), assignment, seed=3)
        try:
            check(student)
        finally:
            student.close()

    return run
