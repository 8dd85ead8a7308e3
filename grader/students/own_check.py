"""The public checks on a student's own file, on the student's own machine."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from grader.analysis.run_time import run_time_uses
from grader.domain.assignment import Assignment
from grader.domain.evidence import Finding, Status
from grader.domain.plan import Plan
from grader.domain.program import ForbiddenUse, Program
from grader.students.handout import LocalAssignment
from grader.students.own_machine import OwnWorkers, own_program, own_student, patient
from grader.students.own_rehearsal import CHECK_SECONDS, own_plans, untried_plans

if TYPE_CHECKING:
    from grader.judge.examination import Checks

Result = TypeVar("Result")


@dataclass(frozen=True)
class LocalCheck:
    """What the public checks found out.

    Attributes:
        findings: One per public check, in the order of the file.
        parameters: Trainable numbers of the model as the student configured it; None when it cannot be built.
        stand_ins: Modules that are not installed here.
        forbidden: Forbidden parts that were used at run time, where the source does not show it.
        plans: What would be trained, by the measure's id, with a trial of it where the checks leave something
            to try.
    """

    program: Program
    findings: tuple[Finding, ...]
    parameters: int | None
    stand_ins: tuple[str, ...]
    forbidden: tuple[ForbiddenUse, ...]
    plans: dict[str, Plan] = field(default_factory=dict)

    @property
    def passed(self) -> bool:
        """Whether every check passed, and the training can be carried on."""
        return self.can_be_trained and all(finding.status is Status.PASSED for finding in self.findings)

    @property
    def can_be_trained(self) -> bool:
        """Whether a trial found nothing that keeps it from being trained."""
        return all(plan.can_be_trained for plan in self.plans.values())


def local_check(
    path: Path,
    local: LocalAssignment,
    *,
    read: Callable[[Program], None] = lambda program: None,
    report: Callable[[Finding], None] = lambda finding: None,
    tried: bool = True,
) -> LocalCheck:
    """Run the public checks on a file.

    Args:
        path: The homework.
        local: Its assignment.
        read: Told the program once the file is read.
        report: Told each finding as it is made.
        tried: Try the training, too.

    Raises:
        UsageError: There is no such file.
        SubmissionError: It cannot be read as a script or a notebook.
        CourseError: The checks cannot be collected.
    """
    assignment = patient(local.assignment)
    with OwnWorkers(
        assignment, path.parent
    ) as workers:  # its first worker loads torch while we read and import
        program = own_program(path, assignment)
        read(program)
        return with_checks(
            local,
            assignment,
            lambda checks: found_by(checks, path, program, assignment, workers, report, tried=tried),
        )


def checked_again(
    checks: "Checks",
    path: Path,
    assignment: Assignment,
    workers: OwnWorkers,
    read: Callable[[Program], None],
    report: Callable[[Finding], None],
    *,
    tried: bool = False,
) -> LocalCheck:
    """What checks that stay collected find out about a file as it is now.

    Args:
        assignment: With the limits that hold here: see `patient`.
        read, report, tried: See `local_check`.

    Raises:
        UsageError: There is no such file.
        SubmissionError: It cannot be read as a script or a notebook.
    """
    program = own_program(path, assignment)
    read(program)
    return found_by(checks, path, program, assignment, workers, report, tried=tried)


def found_by(
    checks: "Checks",
    path: Path,
    program: Program,
    assignment: Assignment,
    workers: OwnWorkers,
    report: Callable[[Finding], None],
    *,
    tried: bool = False,
) -> LocalCheck:
    """What the collected checks find out about a program.

    Args:
        assignment: With the limits that hold here: see `patient`.
        tried: Try the training, too.
    """
    found = checks.examined(own_student(path, program, assignment, workers), report=report)
    uses = run_time_uses(assignment, program, program.forbidden, found.watched.reached)
    findings = tuple(found.findings)
    if tried:
        plans = own_plans(path, program, assignment, workers, findings, CHECK_SECONDS)
    else:
        plans = untried_plans(program, assignment)
    return LocalCheck(program, findings, found.parameters, found.stand_ins, uses, plans)


def with_checks(local: LocalAssignment, assignment: Assignment, use: Callable[["Checks"], Result]) -> Result:
    """What `use` returns of the public checks, which are collected for it.

    Raises:
        CourseError: They cannot be collected.
    """
    from grader.judge.examination import run_pytest

    outcome: list[Result] = []
    errors: list[BaseException] = []

    def used(checks: "Checks") -> None:
        checks.values = local.values
        # pytest would keep what is raised here to itself
        try:
            outcome.append(use(checks))
        except BaseException as error:  # noqa: BLE001 - raised again below
            errors.append(error)

    with _no_bytecode():
        run_pytest([local.public_checks], assignment, None, used)
    if errors:
        raise errors[0]
    if not outcome:
        raise KeyboardInterrupt  # while pytest was collecting
    return outcome[0]


@contextmanager
def _no_bytecode() -> Iterator[None]:
    """Leave no `__pycache__` in a student's folder."""
    before, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        yield
    finally:
        sys.dont_write_bytecode = before
