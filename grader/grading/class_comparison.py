"""The submissions of a class, compared with each other: a page, a table and a record for people to judge."""

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Protocol

from grader.course.assignment_file import read_assignment
from grader.course.locate import Course, located_course
from grader.domain.assignment import Assignment
from grader.domain.errors import UsageError
from grader.domain.quoting import about_file
from grader.domain.submission import Submission
from grader.files import atomic
from grader.gradebook import Gradebook
from grader.grading.comparison import handed_out, read_works
from grader.grading.hosts import running_parsers
from grader.grading.team_members import mates
from grader.intake import Known, submissions
from grader.parser.client.opened_files import ParserOpener
from grader.reports.whole_class.similarity_page import similarity_page
from grader.reports.whole_class.similarity_record import FILE, PAGE, record_text, similarity_record
from grader.reports.whole_class.similarity_table import similarity_table
from grader.results.catching_up import CatchUp, caught_up
from grader.results.class_pages import write_pages
from grader.results.current_results import told_results
from grader.results.owners import uploads_of
from grader.similarity.pairs import THRESHOLD, Comparison, compared
from grader.similarity.work import Work

TABLE = "similarity.csv"


@dataclass(frozen=True)
class ComparisonRequest:
    """Submissions that are to be compared.

    Attributes:
        path: A folder of submissions, or a zip from an LMS.
        out: The folder for page, table and record. Where it holds the class's results, its page lists pairs.
        before: An earlier class's submissions, compared with this one's.
        threshold: The share of a student's own code, 0 to 1, from which on a pair is listed.
        jobs: Files read at once.
        course: The course's folder; None: found upward from the working directory.
        unofficial: Accept a machine that isolates too little.
        gradebook: An SQLAlchemy URL; None: `gradebook.sqlite` in `out`.
    """

    path: Path
    assignment_id: str
    out: Path
    before: Path | None = None
    threshold: float = THRESHOLD
    jobs: int = 1
    course: Path | None = None
    unofficial: bool = False
    gradebook: str | None = None


class ComparisonWatcher(Protocol):
    """Whoever is told how a comparison goes on."""

    def taken_in(self, notes: Sequence[str], submissions: int) -> None:
        """The submissions are there, with a sentence for what was noted about files."""

    def read(self, done: int, whole: int) -> None:
        """So many submissions were read."""

    def compared(self, done: int, whole: int) -> None:
        """So many pairs were compared."""

    def caught_up(self, catch_up: CatchUp) -> None:
        """Files of the class told of an earlier state of the gradebook."""

    def rubric_changed(self) -> None:
        """The class page is not written again: the rubric says something else since."""


@dataclass(frozen=True)
class ClassComparison:
    """What comparing came to.

    Attributes:
        page: Where the pairs are shown.
    """

    comparison: Comparison
    page: Path


def compare_class(
    request: ComparisonRequest, *, clock: Callable[[], datetime], watch: ComparisonWatcher
) -> ClassComparison:
    """Compare the submissions of a class. Nothing is executed, and no grade changes.

    Raises:
        UsageError: There are no such submissions, or the folder cannot be written.
        CourseError: A file of the course is malformed.
        SandboxError: The machine gives too little isolation.
    """
    course = located_course(request.course)
    assignment = read_assignment(course.reference(request.assignment_id))
    given, given_figures = handed_out(assignment)
    works, notes = _works(request, course, assignment, watch)
    comparison = compared(
        works,
        given=given,
        given_figures=given_figures,
        threshold=request.threshold,
        report=watch.compared,
    )
    out, now = request.out, clock()
    atomic.make_folder(out)
    page = similarity_page(assignment, comparison, notes=notes, generated_at=now)
    atomic.write(out / PAGE, page.encode("utf-8"))
    atomic.write(out / TABLE, similarity_table(comparison).encode("utf-8"))
    record = similarity_record(assignment.id, comparison, now)
    atomic.write(out / FILE, record_text(record).encode("utf-8"))
    _write_class_page(assignment, request, now, watch)
    return ClassComparison(comparison, out / PAGE)


def _works(
    request: ComparisonRequest, course: Course, assignment: Assignment, watch: ComparisonWatcher
) -> tuple[Sequence[Work], Sequence[str]]:
    """What is compared of each submission, and what was noted about files."""
    notes: list[str] = []
    listed: list[tuple[Submission, bool]] = []
    sources = [(request.path, False)] + ([(request.before, True)] if request.before else [])
    with tempfile.TemporaryDirectory(prefix="grader-") as scratch:
        folders = (*(source for source, _ in sources), request.out, Path(scratch))
        hidden = tuple(folder.resolve() for folder in folders)
        with running_parsers(course, hidden=hidden, unofficial=request.unofficial) as parsers:
            for source, earlier in sources:
                own_scratch = Path(scratch) / ("before" if earlier else "now")
                own_scratch.mkdir()
                known = Known()
                if not earlier:
                    known = Known(uploads=uploads_of(request.out, request.gradebook, assignment.id))
                uploads = submissions(source, assignment, own_scratch, ParserOpener(parsers), known)
                notes += [about_file(refused.name, refused.reason) for refused in uploads.unmatched]
                notes += uploads.notes
                firsts = mates(uploads.submissions)  # what a team handed in together is compared once
                listed += [(one, earlier) for one in uploads.submissions if one.student_id in firsts]
            watch.taken_in(notes, len(listed))
            works = read_works(parsers, assignment, listed, jobs=request.jobs, report=watch.read)
    return works, notes


def _write_class_page(
    assignment: Assignment, request: ComparisonRequest, now: datetime, watch: ComparisonWatcher
) -> None:
    """Write the class page again, where there is one that would tell the same totals as the reports."""
    with Gradebook(request.out, request.gradebook, assignment_id=assignment.id) as book:
        if assignment.id not in book.assignments():
            return
        try:
            told_results(assignment, book.snapshot())
        except UsageError:
            watch.rubric_changed()
            return
        catch_up = caught_up(assignment, book, request.out, lambda: now)
        if catch_up is not None:
            watch.caught_up(catch_up)
        write_pages(assignment, book, request.out, now, class_anyway=True)
