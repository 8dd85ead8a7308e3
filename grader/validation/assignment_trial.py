"""Validates an assignment: tries its checks on the solution and on other versions whose points are known."""

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from grader.course.assignment_file import read_assignment
from grader.course.homework_versions import HomeworkVersion, Kind, homework_versions, mistake_pairs
from grader.course.locate import Course, located_course
from grader.course.odd_versions import odd_versions
from grader.course.reference_solution import compare_signatures
from grader.course.student_template import handed_out_copy, require_usable, student_files
from grader.domain.assignment import Assignment
from grader.domain.assignment_versions import Value
from grader.domain.errors import UsageError
from grader.validation.mutation_report import MutationReport, mutation_report
from grader.validation.rehearsed_measures import measure_faults
from grader.validation.trials import Report, Trial, chosen, outcomes, trials, value_sets
from grader.validation.unseen_values import unseen_values

ValidationWatcher = Callable[[Assignment, int], AbstractContextManager[Report]]
"""(assignment, number of trials) -> a context that gives the watcher of each outcome."""


@dataclass(frozen=True)
class ValidationRequest:
    """A request to validate assignments.

    Attributes:
        assignment_id: None: all of the course.
        only: Only the versions of one assignment with this name, in which `*` stands for anything.
        jobs: Versions at once.
        thorough: Whether every check is run on every version.
        course: The course's folder; None: found upward from the working directory.
        debug: Whether to keep how checks ended: what they raised, where, and what they printed.
        pairs: How many pairs of mistakes in two parts to try instead of the versions; None: the versions.
        odd: How many versions with an odd part to try instead; None: the versions.
        all_drawn_values: Whether to try each choice of each drawn value, with the others at their first
            choice, and not only this term's values.
    """

    assignment_id: str | None = None
    only: str | None = None
    jobs: int = 1
    thorough: bool = False
    course: Path | None = None
    debug: bool = False
    all_drawn_values: bool = False
    pairs: int | None = None
    odd: int | None = None


@dataclass(frozen=True)
class ValidatedAssignment:
    """The result of validating an assignment with one set of values.

    Attributes:
        seconds: Its share of the wall-clock time.
        values: The drawn values by name; {} if the assignment draws none.
    """

    assignment: Assignment
    report: MutationReport
    seconds: float
    values: Mapping[str, Value] = field(default_factory=dict)


def validate(
    request: ValidationRequest, *, watch: ValidationWatcher, done: Callable[[ValidatedAssignment], None]
) -> bool:
    """Validate assignments one after the other.

    Args:
        done: Called with each as soon as it is validated, for each set of values.

    Returns:
        Whether nothing is wrong with any of them.

    Raises:
        UsageError: There is no such assignment or version.
        CourseError: A file of the course is malformed.
        EngineError: A check, a mistake or the solution cannot be loaded.
    """
    course = located_course(request.course)
    ids = [request.assignment_id] if request.assignment_id is not None else course.assignments()
    ids = ids or ["ASSIGNMENT"]  # which does not exist, as the error says that follows
    if request.only is not None and len(ids) > 1:
        raise UsageError(f"--only is about one assignment. Name it: {', '.join(ids)}.")
    passed = True
    for assignment_id in ids:
        for validated in _validated(course, assignment_id, request, watch):
            done(validated)
            passed = passed and validated.report.passed
    return passed


def _validated(
    course: Course, assignment_id: str, request: ValidationRequest, watch: ValidationWatcher
) -> Iterator[ValidatedAssignment]:
    started = time.monotonic()
    folder = course.reference(assignment_id)
    assignment = read_assignment(folder)
    require_usable(
        student_files(folder, course.datasets, handed_out_copy(course, assignment_id)), assignment_id
    )
    compare_signatures(folder, assignment.components, assignment.edition, assignment.provided)
    batches = [
        (values, trials(assignment, tried_versions, values, thorough=request.thorough))
        for values in value_sets(course, assignment, every=request.all_drawn_values)
        for tried_versions in [_versions_to_try(assignment, values, request)]
    ]
    planned = [trial for _, batch in batches for trial in batch]
    with watch(assignment, len(planned)) as report:
        results = outcomes(
            course, assignment, planned, jobs=request.jobs, report=report, traced=request.debug
        )
    complete = request.only is None and request.pairs is None and request.odd is None
    unseen = unseen_values(assignment, course.datasets) if complete else ()
    faults = [
        (*unseen, *_measure_faults(course, assignment, batch)) if complete else () for _, batch in batches
    ]
    seconds = (time.monotonic() - started) / len(planned)
    remaining_outcomes = iter(results)
    for (values, batch), itself_wrong in zip(batches, faults, strict=True):
        batch_outcomes = list(islice(remaining_outcomes, len(batch)))
        result = mutation_report(assignment, batch_outcomes, itself_wrong, complete=complete)
        yield ValidatedAssignment(assignment, result, len(batch) * seconds, values)


def _measure_faults(course: Course, assignment: Assignment, batch: Sequence[Trial]) -> tuple[str, ...]:
    """Why the reference of these versions cannot be measured; () where nothing can be trained."""
    if sys.platform != "linux":
        return ()
    [reference] = [trial for trial in batch if trial.version.kind is Kind.REFERENCE]
    return measure_faults(course, assignment, reference)


def _versions_to_try(
    assignment: Assignment, values: Mapping[str, Value], request: ValidationRequest
) -> tuple[HomeworkVersion, ...]:
    tried_versions = homework_versions(assignment, values)
    if request.pairs is not None:
        tried_versions = mistake_pairs(tried_versions, request.pairs)
        if not tried_versions:
            raise UsageError(
                f"--pairs: {assignment.id} has no mistakes in two parts. Write some, in mistakes/."
            )
    if request.odd is not None:
        [reference] = [version for version in tried_versions if version.kind is Kind.REFERENCE]
        tried_versions = odd_versions(assignment, reference, request.odd)
    return chosen(tried_versions, request.only)
