"""The grader graded: the checks of an assignment run on versions of a homework whose worth is known."""

import contextlib
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

from grader.course.locate import Course
from grader.course.reference_files import reference_files
from grader.domain.assignment import Assignment
from grader.grading.side_by_side import side_by_side
from grader.sandbox.given_files import given_files
from grader.sandbox.host_client import Host
from grader.validation.trials import (
    Judge,
    Report,
    Trial,
    TrialOutcome,
    outcome,
    program_of,
    seed_of,
    timed_outcome,
)
from grader.validation.without_hosts import local_outcomes


def outcomes(
    course: Course,
    assignment: Assignment,
    planned: Sequence[Trial],
    *,
    jobs: int,
    report: Report = lambda outcome: None,
    traced: bool = False,
) -> tuple[TrialOutcome, ...]:
    """Run the checks on every variant.

    The instructors' own code is run, so a machine that isolates too little for grading is good enough.

    Args:
        jobs: How many at once; each uses one thread for its computations.
        report: Told each outcome as soon as it is there, one at a time.
        traced: Keep how checks ended. They run in this process then, one variant after the other.

    Returns:
        The outcomes in the order of the trials.

    Raises:
        EngineError: A host could not be started: a check, a mistake or the solution cannot be loaded.
    """
    if traced or sys.platform != "linux":
        return local_outcomes(assignment, planned, report=report, traced=traced)
    with _judge(course, assignment) as judge:
        return tuple(side_by_side(lambda trial: timed_outcome(judge, trial), planned, jobs, report=report))


@contextlib.contextmanager
def _judge(course: Course, assignment: Assignment) -> Iterator[Judge]:
    """A judge as in grading, in the same hosts. The sources are read here, because they are ours."""
    from grader.grading.judging import judged

    with _hosts(course, assignment) as (judges, workers):
        files = reference_files(assignment)

        def judge(trial: Trial) -> TrialOutcome:
            program = program_of(assignment, trial)
            found = judged(
                judges,
                workers,
                program,
                assignment,
                seed=seed_of(trial.variant),
                report=lambda finding: None,
                components=trial.components,
                pictures=False,
                files=trial.variant.handed_in(files),
                values=trial.values,
            )
            return outcome(assignment, trial, program, found)

        yield judge


@contextlib.contextmanager
def _hosts(course: Course, assignment: Assignment) -> Iterator[tuple[Host, Host]]:
    """The judge host and the worker host, which start at the same time: each loads PyTorch for seconds."""
    with contextlib.ExitStack() as stack, ThreadPoolExecutor(max_workers=1) as pool:
        judges = pool.submit(Host.start, "grader.judge", [str(assignment.folder)])
        try:
            workers = stack.enter_context(host_of_workers(course, assignment))
        finally:
            if judges.exception() is None:
                stack.callback(judges.result().close)
        yield judges.result(), workers


@contextlib.contextmanager
def host_of_workers(course: Course, assignment: Assignment) -> Iterator[Host]:
    """The worker host, in which the instructors' own versions are executed."""
    workers = Host.start(
        "grader.worker", hidden=(course.root,), unofficial=True, wrapped=True, given=given_files(assignment)
    )
    with contextlib.closing(workers):
        yield workers
