"""The public checks on a student's own file, on the student's own machine."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from grader.domain.evidence import Finding, Status
from grader.domain.program import Program
from grader.judge.own_machine import OwnWorkers, own_program, own_student, patient
from grader.pipeline.local_assignment import LocalAssignment

if TYPE_CHECKING:
    from grader.judge.examination import Checks, Examined


@dataclass(frozen=True)
class LocalCheck:
    """What the public checks found out.

    Attributes:
        findings: One per public check, in the order of the file.
        parameters: Trainable numbers of the model as the student configured it; None when it cannot be built.
        stand_ins: Modules that are not installed here.
        forbidden: Patterns of forbidden parts that were reached at run time.
    """

    program: Program
    findings: tuple[Finding, ...]
    parameters: int | None
    stand_ins: tuple[str, ...]
    forbidden: tuple[str, ...]

    @property
    def passed(self) -> bool:
        """Whether every check passed."""
        return all(finding.status is Status.PASSED for finding in self.findings)


def local_check(
    path: Path,
    local: LocalAssignment,
    *,
    read: Callable[[Program], None] = lambda program: None,
    report: Callable[[Finding], None] = lambda finding: None,
) -> LocalCheck:
    """Run the public checks on a file.

    Args:
        path: The homework.
        local: Its assignment.
        read: Told the program once the file is read.
        report: Told each finding as it is made.

    Raises:
        UsageError: There is no such file.
        SubmissionError: It cannot be read as a script or a notebook.
        CourseError: The checks cannot be collected.
    """
    assignment = patient(local.assignment)
    with OwnWorkers(assignment.limits) as workers:  # its first worker loads torch while we read and import
        program = own_program(path, assignment)
        read(program)
        from grader.judge.examination import run_pytest

        outcome: list[Examined | BaseException] = []

        def use(checks: "Checks") -> None:
            # pytest would keep what is raised here to itself
            try:
                student = own_student(path, program, assignment, workers)
                outcome.append(checks.examined(student, report=report))
            except BaseException as error:  # noqa: BLE001 - raised again below
                outcome.append(error)

        with _no_bytecode():
            run_pytest([local.public_checks], assignment, None, use)
    if not outcome:
        raise KeyboardInterrupt  # while pytest was collecting
    if isinstance(outcome[0], BaseException):
        raise outcome[0]
    found = outcome[0]
    return LocalCheck(program, found.findings, found.parameters, found.stand_ins, found.forbidden)


@contextmanager
def _no_bytecode() -> Iterator[None]:
    """Leave no `__pycache__` in a student's folder."""
    before, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        yield
    finally:
        sys.dont_write_bytecode = before
