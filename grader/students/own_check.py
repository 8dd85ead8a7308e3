"""The public checks on a student's own file, with a short trial of its training, on the same machine.

It makes the checks of a whole file or of one part, and tries the training on a few made-up images. It
decides what is tried and for how long. What the findings mean for a grade is decided in
`grader.students.prospect`. Hidden checks are never made here.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from grader.analysis.forbidden_uses import run_time_uses
from grader.domain.analyzed_program import ForbiddenUse, Program
from grader.domain.assignment import Assignment
from grader.domain.evidence import Finding, FindingKind, Status
from grader.domain.measure import Measure
from grader.domain.program_run import Plan, plan_of
from grader.students.homework import Homework, LocalAssignment
from grader.students.own_machine import (
    OwnWorkers,
    own_program,
    own_seed,
    own_student,
    with_own_machine_limits,
)

if TYPE_CHECKING:
    from grader.judge.examination import Checks


CHECK_SECONDS = 10.0  # for a trial while somebody waits for the checks
# a part that is missing, or does not return, leaves nothing to try
STOPS = {FindingKind.NOT_IMPLEMENTED, FindingKind.MISSING_NAME, FindingKind.HANGS, FindingKind.DIES}


def untried_plans(program: Program, assignment: Assignment) -> dict[str, Plan]:
    """What would be trained according to the source, by the measure's id.

    A model that is trained by a call has no plan: nothing of the program is read for it.
    """
    return {
        measure.id: plan_of(program.read_for(measure.id).script)
        for measure in assignment.measures
        if measure.call is None and assignment.item_measured(measure.id) is not None
    }


def own_plans(
    path: Path,
    program: Program,
    assignment: Assignment,
    workers: OwnWorkers,
    findings: tuple[Finding, ...] = (),
    seconds: float | None = None,
    code: bytes | None = None,
) -> dict[str, Plan]:
    """What would be trained, by the measure's id, tried where something can be. Imports torch.

    Args:
        assignment: With the limits that hold here: see `with_own_machine_limits`.
        findings: What the checks found before.
        seconds: How long each trial may take at most; None: as long as where it is graded.
        code: The file's content, where it is not a file.
    """
    seed = own_seed(path, "training", code=code)
    return {
        measure: _rehearsed_plan(
            program.read_for(measure), plan, assignment, workers, findings, seed, seconds
        )
        for measure, plan in untried_plans(program, assignment).items()
    }


def _rehearsed_plan(
    program: Program,
    plan: Plan,
    assignment: Assignment,
    workers: OwnWorkers,
    findings: tuple[Finding, ...],
    seed: int,
    seconds: float | None,
) -> Plan:
    if plan.missing or any(finding.kind in STOPS for finding in findings):
        return plan
    from grader.training import Job, made_up_images, rehearsed

    data = assignment.required_data()
    images = made_up_images(data.classes, data.image_shape)
    job = Job(
        program,
        assignment.limits,
        assignment.forbidden_patterns,
        seed=seed,
        splits=images,
        assignment=assignment.id,
    )
    tried = rehearsed(workers, job) if seconds is None else rehearsed(workers, job, seconds)
    return plan_of(program.script, tried)


def tried_plan(
    path: Path, program: Program, measure: Measure, assignment: Assignment, workers: OwnWorkers
) -> Plan:
    """How one model would be trained, with a trial that lasts no longer than somebody would wait.

    Args:
        program: As it is read for this model.
        assignment: With the limits that hold here: see `with_own_machine_limits`.
    """
    plan = plan_of(program.script)
    if measure.call is not None or not assignment.required_data().are_images:
        return plan
    return _rehearsed_plan(program, plan, assignment, workers, (), own_seed(path, "training"), CHECK_SECONDS)


def tried_program(work: Homework) -> tuple[Program, dict[str, Plan]]:
    """The program of a homework, and what would be trained, by the measure's id.

    Raises:
        UsageError: There is no such file.
        SubmissionError: It cannot be read as a script or a notebook.
    """
    assignment = with_own_machine_limits(work.local.assignment)
    with OwnWorkers(assignment, work.path.parent) as workers:
        program = own_program(work.path, assignment)
        return program, own_plans(work.path, program, assignment, workers)


# --- own check -------------------------------------------------------------------------------------------


Result = TypeVar("Result")


@dataclass(frozen=True)
class LocalCheck:
    """What the public checks found out.

    Attributes:
        findings: One per public check, in the order of the file.
        parameters: Trainable parameters of the model as the student configured it; None: it cannot be built.
        absent_modules: Modules that are not installed here.
        forbidden: Forbidden parts that were used at run time, where the source does not show it.
        plans: What would be trained, by the measure's id, with a trial where there is something to try.
    """

    program: Program
    findings: tuple[Finding, ...]
    parameters: int | None
    absent_modules: tuple[str, ...]
    forbidden: tuple[ForbiddenUse, ...]
    plans: dict[str, Plan] = field(default_factory=dict)

    @property
    def passed(self) -> bool:
        """Whether every check passed, and nothing prevents the training."""
        return self.can_be_trained and all(finding.status is Status.PASSED for finding in self.findings)

    @property
    def can_be_trained(self) -> bool:
        """Whether the trials found nothing that prevents the training."""
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
        read: Called with the program once the file is read.
        report: Called with each finding as it is made.
        tried: Try the training, too, unless one part alone is asked for.
        code: The homework's content, where it is not a file; None: the file is read.

    Raises:
        UsageError: There is no such file.
        SubmissionError: It cannot be read as a script or a notebook.
        CourseError: The checks cannot be collected.
    """
    assignment = with_own_machine_limits(local.assignment)
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
    """What checks that were collected before find out about a file as it is now.

    Args:
        assignment: With the limits that hold here: see `with_own_machine_limits`.
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
        assignment: With the limits that hold here: see `with_own_machine_limits`.
        tried: Try the training, too.
        part: The only part that is asked for. Its checks alone are made, and the program's other faults are
            left out. Empty: all parts.
        code: The homework's content, where it is not a file.
    """
    student = own_student(path, program, assignment, workers, code)
    examined = checks.examined(student, report=report, components=(part,) if part else None)
    uses = run_time_uses(assignment, program, program.forbidden, examined.watched.reached)
    findings = tuple(examined.findings)
    if part:
        reached = tuple(use for use in uses if part in use.reached_from)
        return LocalCheck(
            of_part(program, part), findings, examined.parameters, examined.absent_modules, reached
        )
    if tried:
        plans = own_plans(path, program, assignment, workers, findings, CHECK_SECONDS, code)
    else:
        plans = untried_plans(program, assignment)
    return LocalCheck(program, findings, examined.parameters, examined.absent_modules, uses, plans)


def of_part(program: Program, part: str) -> Program:
    """The program with only those faults that concern one part."""
    return replace(
        program,
        near_names=tuple(near for near in program.near_names if near.expected == part),
        forbidden=tuple(use for use in program.forbidden if part in use.reached_from),
        unresolved=tuple((graded, name) for graded, name in program.unresolved if graded == part),
        omissions=tuple(omission for omission in program.omissions if omission.broken),
    )


def with_checks(local: LocalAssignment, assignment: Assignment, use: Callable[["Checks"], Result]) -> Result:
    """Collect the public checks and call `use` with them; what it returns.

    Raises:
        CourseError: They cannot be collected.
    """
    from grader.judge.examination import run_pytest

    outcome: list[Result] = []
    errors: list[BaseException] = []

    def used(checks: "Checks") -> None:
        checks.values = local.values
        # pytest would swallow what is raised here
        try:
            outcome.append(use(checks))
        except BaseException as error:  # noqa: BLE001 - raised again below
            errors.append(error)

    with _no_bytecode():
        run_pytest(local.public_checks, assignment, None, used)
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
