"""The results of all assignments of a term, read from the folders and gradebooks that they are in.

Totals must be those that reports show: if a rubric has changed since, or late days moved, it says so and
reads nothing. It never decides what an assignment is worth.
"""

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from grader.course.locate import FILE as COURSE_FILE
from grader.course.locate import Course, located_course
from grader.course.toml_file import listing, remedy
from grader.domain.assignment import Assignment
from grader.domain.errors import UsageError
from grader.domain.submission_result import Result
from grader.gradebook import Gradebook, Snapshot
from grader.lms.matching import candidates
from grader.reports.whole_class.review_queue import still_lacking, summed
from grader.results.class_pages import noted
from grader.results.current_state import current_downloads, reported_results
from grader.results.folder_use import in_use


@dataclass(frozen=True)
class TermRequest:
    """Which course and results.

    Attributes:
        outs: The results folders, one for each graded assignment.
        course: The course's folder; None: found upward from the working directory.
        gradebook: An SQLAlchemy URL; None: `gradebook.sqlite` in each folder.
    """

    outs: tuple[Path, ...]
    course: Path | None = None
    gradebook: str | None = None


@dataclass(frozen=True)
class GradedAssignment:
    """An assignment of the term with its results.

    Attributes:
        out: The results folder; None if none was named, and the gradebook alone holds the results.
        results: Sorted by student, also those whose owner is unknown.
        without: Students whom a class list or the LMS names, and who have no result.
        late_days: Student -> other assignment of the gradebook -> the late days that went to it.
    """

    assignment: Assignment
    book: Gradebook
    out: Path | None
    results: Sequence[Result]
    without: frozenset[str]
    late_days: Mapping[str, Mapping[str, int]]


@dataclass(frozen=True)
class OpenTerm:
    """The course, and what is graded of it.

    Attributes:
        planned: Assignment with a weight -> the assignment; None: the course does not have it yet.
        graded: Assignment -> its results; only those that have some.
    """

    course: Course
    planned: Mapping[str, Assignment | None]
    graded: Mapping[str, GradedAssignment]


@contextlib.contextmanager
def open_term(request: TermRequest) -> Iterator[OpenTerm]:
    """The results of a term; nobody is forgotten in the folders meanwhile.

    Raises:
        UsageError: The course gives its assignments no weights, a folder is not one of results, or its
            reports show other totals than the rubric gives now.
        CourseError: A file of the course is malformed.
    """
    course = located_course(request.course)
    if not course.plan.weights:
        raise UsageError(
            f"{course.root / COURSE_FILE} does not say what the assignments are worth in the term. Add the "
            "table [total] with 'weights = { lab1 = 40, lab2 = 60 }'."
        )
    with contextlib.ExitStack() as stack:
        folders = _folders(request, course, stack)
        graded = {
            assignment_id: _graded(course.assignment(assignment_id), book, out)
            for assignment_id, (book, out) in folders.items()
        }
        yield OpenTerm(course, dict(_planned(course, graded)), graded)


def _planned(
    course: Course, graded: Mapping[str, GradedAssignment]
) -> Iterator[tuple[str, Assignment | None]]:
    existing = course.assignments()
    for assignment_id in course.plan.weights:
        if assignment_id in graded:
            yield assignment_id, graded[assignment_id].assignment
        else:
            yield assignment_id, course.assignment(assignment_id) if assignment_id in existing else None


def _folders(
    request: TermRequest, course: Course, stack: contextlib.ExitStack
) -> dict[str, tuple[Gradebook, Path | None]]:
    """Assignment -> its gradebook and its results folder."""
    folders: dict[str, tuple[Gradebook, Path | None]] = {}
    for out in request.outs:
        stack.enter_context(in_use(out))
        assignment_id, book = _book(out, request.gradebook, stack)
        _require_weight(assignment_id, out, course)
        if assignment_id in folders:
            raise UsageError(
                f"{folders[assignment_id][1]} and {out} both hold '{assignment_id}'. "
                "Give the one that counts."
            )
        folders[assignment_id] = book, out
    if request.gradebook is not None:  # it may hold more than the folders that were named
        for assignment_id in stack.enter_context(_opened(request, None)).assignments():
            if assignment_id in course.plan.weights and assignment_id not in folders:
                folders[assignment_id] = stack.enter_context(_opened(request, assignment_id)), None
    return folders


def _opened(request: TermRequest, assignment_id: str | None) -> Gradebook:
    folder = request.outs[0] if request.outs else Path()
    return Gradebook(folder, request.gradebook, assignment_id=assignment_id)


def _book(out: Path, url: str | None, stack: contextlib.ExitStack) -> tuple[str, Gradebook]:
    """(assignment, its gradebook) of a results folder.

    Raises:
        UsageError: It is none, or its results are in another gradebook.
    """
    before = noted(out)
    if before is None:
        raise UsageError(f"{out}: holds no results. Give the --out folders of `grader grade`.")
    book = stack.enter_context(Gradebook(out, url, assignment_id=before.assignment))
    if before.assignment not in book.assignments() or book.identity() != before.book:
        where = "the one that --gradebook names" if url is not None else "gradebook.sqlite in it"
        raise UsageError(
            f"{out}: its results are in another gradebook than {where}. Give the same --gradebook as to "
            "`grader grade`."
        )
    return before.assignment, book


def _require_weight(assignment_id: str, out: Path, course: Course) -> None:
    weights = list(course.plan.weights)
    if assignment_id not in weights:
        advice = remedy(assignment_id, weights, f"It has {listing(weights)}.")
        raise UsageError(
            f"{out} holds '{assignment_id}', which has no weight in [total] of {COURSE_FILE}. {advice} "
            "Add it there, or leave the folder out."
        )


def _graded(assignment: Assignment, book: Gradebook, out: Path | None) -> GradedAssignment:
    snapshot = book.snapshot(attempts=assignment.compares_attempts)
    try:
        results = reported_results(assignment, snapshot)
    except UsageError as error:
        raise UsageError(f"{assignment.id}: {error}") from None
    without = _without(book, out, snapshot, results)
    return GradedAssignment(assignment, book, out, results, without, snapshot.rows.late_days)


def _without(
    book: Gradebook, out: Path | None, snapshot: Snapshot, results: Sequence[Result]
) -> frozenset[str]:
    """The students whom the accounts of downloads name, and who have no result."""
    # without a folder there is no account of an early version to fall back on
    downloads = current_downloads(book, out or Path(os.devnull), snapshot)
    known = {
        missing.student_id
        for missing in still_lacking(
            summed(downloads), candidates((result.evidence, result.score) for result in results)
        )
    }
    for download in downloads:
        if download.roster is not None:
            known |= set(download.roster.missing)
    return frozenset(known - {result.score.student_id for result in results})
