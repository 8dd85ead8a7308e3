"""Validates an assignment: tries its checks on work whose worth is known."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from grader.course.assignment_file import read_assignment
from grader.course.locate import Course, located_course
from grader.course.reference_solution import compare_signatures
from grader.course.student_template import handed_out_copy, student_files
from grader.course.variants import Variant, mistake_pairs, variants
from grader.domain.assignment import Assignment
from grader.domain.assignment_versions import Value, each_choice
from grader.domain.errors import UsageError
from grader.validation.mutation_report import MutationReport, mutation_report
from grader.validation.trials import Report, chosen, outcomes, trials

ValidationWatcher = Callable[[Assignment, int], AbstractContextManager[Report]]
"""(assignment, number of trials) -> a context that gives the watcher of each outcome."""


@dataclass(frozen=True)
class ValidationRequest:
    """A request to validate assignments.

    Attributes:
        assignment_id: None: all of the course.
        only: Only the variants of one assignment with this name, in which `*` stands for anything.
        jobs: Variants at once.
        thorough: Whether every check is run on every variant.
        course: The course's folder; None: found upward from the working directory.
        debug: Whether to keep how checks ended: what they raised, where, and what they printed.
        pairs: How many pairs of mistakes in two parts to try instead of the variants; None: the variants.
        all_variants: Whether to try each choice of each drawn value, with the others at their first, and not
            only this term's values.
    """

    assignment_id: str | None = None
    only: str | None = None
    jobs: int = 1
    thorough: bool = False
    course: Path | None = None
    debug: bool = False
    all_variants: bool = False
    pairs: int | None = None


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
        UsageError: There is no such assignment or variant.
        CourseError: A file of the course is malformed.
        EngineError: A check, a mistake or the solution cannot be loaded.
    """
    course = located_course(request.course)
    ids = [request.assignment_id] if request.assignment_id is not None else course.assignments()
    ids = ids or ["ASSIGNMENT"]  # a message will say that it does not exist
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
    student_files(folder, course.datasets, handed_out_copy(course, assignment_id))  # what a template misses
    compare_signatures(folder, assignment.components, assignment.edition, assignment.provided)
    batches = [
        (values, trials(assignment, tried_variants, values, thorough=request.thorough))
        for values in _value_sets(course, assignment, every=request.all_variants)
        for tried_variants in [_variants_to_try(assignment, values, request)]
    ]
    planned = [trial for _, batch in batches for trial in batch]
    with watch(assignment, len(planned)) as report:
        results = outcomes(
            course, assignment, planned, jobs=request.jobs, report=report, traced=request.debug
        )
    seconds = (time.monotonic() - started) / len(planned)
    remaining_outcomes = iter(results)
    for values, batch in batches:
        batch_outcomes = list(islice(remaining_outcomes, len(batch)))
        complete = request.only is None and request.pairs is None
        result = mutation_report(assignment, batch_outcomes, complete=complete)
        yield ValidatedAssignment(assignment, result, len(batch) * seconds, values)


def _variants_to_try(
    assignment: Assignment, values: Mapping[str, Value], request: ValidationRequest
) -> tuple[Variant, ...]:
    tried_variants = variants(assignment, values)
    if request.pairs is not None:
        tried_variants = mistake_pairs(tried_variants, request.pairs)
        if not tried_variants:
            raise UsageError(
                f"--pairs: {assignment.id} has no mistakes in two parts. Write some, in mistakes/."
            )
    return chosen(tried_variants, request.only)


def _value_sets(course: Course, assignment: Assignment, *, every: bool) -> list[dict[str, Value]]:
    """The sets of values to try: this term's, in which each student's value is its first choice."""
    sets = [course.values(assignment.id, assignment.variant)]
    for values in each_choice(assignment.variant) if every else ():
        if values not in sets:
            sets.append(values)
    return sets
