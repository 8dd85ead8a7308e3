"""A trial of a student's own training, on a few made-up images, on the student's own machine."""

from pathlib import Path

from grader.domain.assignment import Assignment
from grader.domain.evidence import Finding, FindingKind
from grader.domain.plan import Plan, plan_of
from grader.domain.program import Program
from grader.students.homework import Homework
from grader.students.own_machine import OwnWorkers, own_program, own_seed, patient

# a part that is not there, or does not return, leaves nothing to try
STOPS = {FindingKind.NOT_IMPLEMENTED, FindingKind.MISSING_NAME, FindingKind.HANGS, FindingKind.DIES}


def own_plan(
    path: Path,
    program: Program,
    assignment: Assignment,
    workers: OwnWorkers,
    findings: tuple[Finding, ...] = (),
) -> Plan:
    """What would be trained, tried where there is something to try. Imports torch.

    Args:
        assignment: With the limits that hold here: see `patient`.
        findings: What the checks have found out before.
    """
    if assignment.measured_item is None:
        return Plan()
    plan = plan_of(program.script)
    if plan.missing or any(finding.kind in STOPS for finding in findings):
        return plan
    from grader.training import Job, made_up_images, rehearsed

    images = made_up_images(assignment.data.classes, assignment.data.image_shape)
    seed = own_seed(path, "training")
    job = Job(program, images, assignment.limits, assignment.forbidden_patterns, seed=seed)
    return plan_of(program.script, rehearsed(workers, job))


def tried_program(found: Homework) -> tuple[Program, Plan]:
    """The program of a homework, and what would be trained.

    Raises:
        UsageError: There is no such file.
        SubmissionError: It cannot be read as a script or a notebook.
    """
    assignment = patient(found.local.assignment)
    with OwnWorkers(assignment.limits) as workers:
        program = own_program(found.path, assignment)
        return program, own_plan(found.path, program, assignment, workers)
