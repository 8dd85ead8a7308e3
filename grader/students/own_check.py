"""The public checks on a student's own file, on the student's own machine."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
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
    code: bytes | None = None,
) -> LocalCheck:
    """Run the public checks on a file, or those of one part.

    Args:
        path: The homework, or where it would be.
        local: Its assignment.
        read: Told the program once the file is read.
        report: Told each finding as it is made.
        tried: Try the training, too, unless one part alone is asked for.
        code: The homework's content, where it is not a file; None: the file is read.

    Raises:
        UsageError: There is no such file.
        SubmissionError: It cannot be read as a script or a notebook.
        CourseError: The checks cannot be collected.
    """
    assignment = patient(local.assignment)
    with OwnWorkers(
        assignment, path.parent
    ) as workers:  # its first worker loads torch while we read and import
        program = own_program(path, assignment, code)
        read(program)

        def used(checks: "Checks") -> LocalCheck:
            return found_by(
                checks, path, program, assignment, workers, report, tried=tried, part=local.part, code=code
            )

        return with_checks(local, assignment, used)


def checked_again(
    checks: "Checks",
    path: Path,
    assignment: Assignment,
    workers: OwnWorkers,
    read: Callable[[Program], None],
    report: Callable[[Finding], None],
    *,
    tried: bool = False,
    part: str = "",
) -> LocalCheck:
    """What checks that stay collected find out about a file as it is now.

    Args:
        assignment: With the limits that hold here: see `patient`.
        read, report, tried: See `local_check`.
        part: See `found_by`.

    Raises:
        UsageError: There is no such file.
        SubmissionError: It cannot be read as a script or a notebook.
    """
    program = own_program(path, assignment)
    read(program)
    return found_by(checks, path, program, assignment, workers, report, tried=tried, part=part)


def found_by(
    checks: "Checks",
    path: Path,
    program: Program,
    assignment: Assignment,
    workers: OwnWorkers,
    report: Callable[[Finding], None],
    *,
    tried: bool = False,
    part: str = "",
    code: bytes | None = None,
) -> LocalCheck:
    """What the collected checks find out about a program.

    Args:
        assignment: With the limits that hold here: see `patient`.
        tried: Try the training, too.
        part: The only part that is asked for: its checks alone are made, and of the program that alone is
            told which concerns it; empty: all are.
        code: The homework's content, where it is not a file.
    """
    student = own_student(path, program, assignment, workers, code)
    found = checks.examined(student, report=report, components=(part,) if part else None)
    uses = run_time_uses(assignment, program, program.forbidden, found.watched.reached)
    findings = tuple(found.findings)
    if part:
        reached = tuple(use for use in uses if part in use.reached_from)
        return LocalCheck(of_part(program, part), findings, found.parameters, found.stand_ins, reached)
    if tried:
        plans = own_plans(path, program, assignment, workers, findings, CHECK_SECONDS, code)
    else:
        plans = untried_plans(program, assignment)
    return LocalCheck(program, findings, found.parameters, found.stand_ins, uses, plans)


def of_part(program: Program, part: str) -> Program:
    """A program, of whose faults those are told that concern one part."""
    return replace(
        program,
        near_names=tuple(near for near in program.near_names if near.expected == part),
        forbidden=tuple(use for use in program.forbidden if part in use.reached_from),
        unresolved=tuple((graded, name) for graded, name in program.unresolved if graded == part),
        omissions=tuple(left for left in program.omissions if left.broken),
    )


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
