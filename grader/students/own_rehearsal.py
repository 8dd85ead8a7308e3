"""A trial of a student's own training, on a few made-up images, on the student's own machine."""

from pathlib import Path

from grader.domain.assignment import Assignment
from grader.domain.evidence import Finding, FindingKind
from grader.domain.measure import Measure
from grader.domain.plan import Plan, plan_of
from grader.domain.program import Program
from grader.students.homework import Homework
from grader.students.own_machine import OwnWorkers, own_program, own_seed, patient

# a part that is not there, or does not return, leaves nothing to try
CHECK_SECONDS = 10.0  # for a trial while somebody waits for the checks
STOPS = {FindingKind.NOT_IMPLEMENTED, FindingKind.MISSING_NAME, FindingKind.HANGS, FindingKind.DIES}


def untried_plans(program: Program, assignment: Assignment) -> dict[str, Plan]:
    """What the source says of what would be trained, by the id of what is measured.

    What is trained by a call has no plan: nothing of the program is read for it.
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
    """What would be trained, by the measure's id, tried where there is something to try. Imports torch.

    Args:
        assignment: With the limits that hold here: see `patient`.
        findings: What the checks have found out before.
        seconds: How long each trial may take at most; None: as long as where it is graded.
        code: The file's content, where it is not a file.
    """
    seed = own_seed(path, "training", code=code)
    return {
        measure: _tried(program.read_for(measure), plan, assignment, workers, findings, seed, seconds)
        for measure, plan in untried_plans(program, assignment).items()
    }


def _tried(
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
    """What would be trained of one model, tried for as long as somebody waits.

    Args:
        program: As it is read for this model.
        assignment: With the limits that hold here: see `patient`.
    """
    plan = plan_of(program.script)
    if measure.call is not None or not assignment.required_data().are_images:
        return plan
    return _tried(program, plan, assignment, workers, (), own_seed(path, "training"), CHECK_SECONDS)


def tried_program(found: Homework) -> tuple[Program, dict[str, Plan]]:
    """The program of a homework, and what would be trained, by the measure's id.

    Raises:
        UsageError: There is no such file.
        SubmissionError: It cannot be read as a script or a notebook.
    """
    assignment = patient(found.local.assignment)
    with OwnWorkers(assignment, found.path.parent) as workers:
        program = own_program(found.path, assignment)
        return program, own_plans(found.path, program, assignment, workers)
