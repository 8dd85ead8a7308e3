"""The grader graded where there are no hosts: one variant after another, in plain processes."""

import contextlib
import os
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from grader.course.reference_files import reference_files
from grader.domain.assignment import Assignment
from grader.domain.drawn_values import first_choices
from grader.sandbox.given_files import enter, given_files, lay_out
from grader.students.own_machine import OwnWorkers, patient
from grader.validation.check_trace import CheckTrace, check_trace
from grader.validation.trials import Report, Trial, TrialOutcome, outcome, program_of, seed_of, timed_outcome

if TYPE_CHECKING:
    from grader.judge.examination import Checks


def local_outcomes(
    assignment: Assignment,
    planned: Sequence[Trial],
    *,
    report: Report = lambda outcome: None,
    traced: bool = False,
) -> tuple[TrialOutcome, ...]:
    """Run the checks on every variant, each in a new process that has to load PyTorch first.

    Args:
        report: Told each outcome as soon as it is there.
        traced: Keep how checks ended.

    Returns:
        The outcomes in the order of the trials.

    Raises:
        CourseError: The solution, a mistake or the checks cannot be loaded.
    """
    with _among_provided(assignment):
        return _local_outcomes(assignment, planned, report, traced=traced)


@contextlib.contextmanager
def _among_provided(assignment: Assignment) -> Iterator[None]:
    """Work where the files lie that the assignment provides."""
    if not assignment.provided:
        yield
        return
    before, environment = Path.cwd(), dict(os.environ)
    with tempfile.TemporaryDirectory(prefix="grader-") as folder:
        try:
            if (root := lay_out(given_files(assignment), Path(folder))) is not None:
                enter(root)
            yield
        finally:
            os.chdir(before)
            os.environ.clear()
            os.environ.update(environment)


def _local_outcomes(
    assignment: Assignment, planned: Sequence[Trial], report: Report, *, traced: bool
) -> tuple[TrialOutcome, ...]:
    from grader.judge.course_code import CodeByValues
    from grader.judge.examination import run_pytest
    from grader.judge.student import Student

    assignment, files = patient(assignment), reference_files(assignment)
    code = CodeByValues(assignment)
    found: list[TrialOutcome] = []
    raised: list[BaseException] = []

    def use(checks: "Checks") -> None:
        def judge(trial: Trial) -> TrialOutcome:
            program = program_of(assignment, trial)
            checks.values, checks.code = trial.values, code.of(trial.values)
            traces: list[CheckTrace] = []
            if traced:
                checks.traced = lambda spec, error, printed: traces.append(
                    check_trace(spec.id, error, printed, assignment.folder.resolve())
                )
            with OwnWorkers(assignment, Path.cwd()) as workers:
                handed_in = trial.variant.handed_in(files)
                student = Student(workers, program, assignment, seed=seed_of(trial.variant), files=handed_in)
                try:
                    examined = checks.examined(student, components=trial.components)
                finally:
                    student.close()
            told = tuple(trace for trace in traces if trace.raised or trace.printed)
            return replace(outcome(assignment, trial, program, examined), traces=told)

        try:
            for trial in planned:
                found.append(timed_outcome(judge, trial))
                report(found[-1])
        except BaseException as error:  # noqa: BLE001 - pytest would keep it to itself; raised again below
            raised.append(error)

    paths = sorted((assignment.folder / "checks").glob("test_*.py"))
    run_pytest(paths, assignment, code.of(first_choices(assignment.variant)), use)
    if raised:
        raise raised[0]
    return tuple(found)
