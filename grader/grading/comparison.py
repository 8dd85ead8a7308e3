"""Compares the submissions of a class with each other, and writes a page, a table and a record.

It reads what is compared of each submission in a parser of its own, and has all pairs compared. Work of an
earlier term can be included. It never decides that somebody copied: people judge what it shows.
"""

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Protocol, TypeGuard

from grader.course.assignment_file import read_assignment
from grader.course.locate import Course, located_course
from grader.course.student_template import HandedOutCopy, student_files
from grader.course.term_files import assignment_groups
from grader.domain.assignment import Assignment
from grader.domain.assignment_versions import first_choices
from grader.domain.errors import SubmissionError, UsageError
from grader.domain.formatting import about_file, counted
from grader.domain.submission import Intake, Role, Submission
from grader.files import atomic
from grader.gradebook import Gradebook
from grader.grading.run import running_parsers, team_representatives
from grader.intake import KnownOwners, intake, require_apart, submissions
from grader.parser.client.parsed_files import ParserOpener, ParserReader
from grader.reports.whole_class.similarity_page import similarity_page, similarity_table
from grader.reports.whole_class.similarity_record import FILE, PAGE, TABLE, record_text, similarity_record
from grader.results.class_pages import CatchUp, caught_up, write_pages
from grader.results.current_state import reported_results, uploads_of
from grader.sandbox.child_processes import Processes
from grader.similarity.compared_pairs import THRESHOLD, Comparison, compared
from grader.similarity.compared_work import Code, ComparedPicture, SampledWeights, Work
from grader.similarity.fingerprint_store import fingerprints_text, stored_works
from grader.similarity.normalized_code import given_forms, read_code
from grader.similarity.pictures import notebook_figures
from grader.similarity.weights import read_weights

CHECKPOINTS = (".pt", ".pth", ".ckpt", ".bin", ".safetensors")  # provided files that may hold weights
Report = Callable[[int, int], None]
"""Called with (submissions read, submissions in all)."""


def read_works(
    parsers: Processes,
    assignment: Assignment,
    submissions: Sequence[tuple[Submission, bool]],
    *,
    jobs: int,
    report: Report = lambda done, total: None,
) -> tuple[Work, ...]:
    """What is compared of each submission, in the order given.

    Args:
        submissions: Each with whether it comes from an earlier class.
        jobs: How many are read at once.
        report: Called with the progress.
    """
    opener = ParserOpener(parsers)
    with ThreadPoolExecutor(jobs) as pool:
        reading = [
            pool.submit(_work, opener, assignment, submission, before) for submission, before in submissions
        ]
        try:
            for count, done in enumerate(as_completed(reading), start=1):
                done.result()
                report(count, len(reading))
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    return tuple(future.result() for future in reading)


@dataclass(frozen=True)
class HandedOut:
    """What students received, which is nobody's own.

    Attributes:
        forms: Of the units of code.
        figures: The pictures, by their digests.
        weights: The provided checkpoints.
    """

    forms: frozenset[tuple[str, ...]]
    figures: frozenset[str]
    weights: tuple[SampledWeights, ...]


def handed_out(assignment: Assignment) -> HandedOut:
    """What students received.

    Raises:
        CourseError: The reference, from which it is made, is malformed.
        UsageError: A provided file cannot be read.
    """
    forms: frozenset[tuple[str, ...]] = frozenset()
    figures: set[str] = set()
    # students' copies differ only in numbers and texts, by which no two submissions are compared
    copy = HandedOutCopy(assignment.variant, first_choices(assignment.variant))
    files = {name: text.encode("utf-8") for name, text in student_files(assignment.folder, copy=copy).items()}
    files |= {file.name: file.code for file in assignment.provided if file.code}
    for name, data in files.items():
        if name.endswith(".ipynb"):
            figures |= {figure.digest for figure in notebook_figures(data)}
        if name.endswith((".py", ".ipynb")):
            forms |= given_forms(read_code(name, data))
    return HandedOut(forms, frozenset(figures), tuple(_given_weights(assignment)))


def _given_weights(assignment: Assignment) -> Iterator[SampledWeights]:
    for provided in assignment.provided:
        path = assignment.provided_folder / provided.name
        if path.suffix.lower() not in CHECKPOINTS:
            continue
        try:
            with path.open("rb") as file:
                yield read_weights(file, provided.name)
        except OSError as error:
            raise UsageError(f"{path} cannot be read ({error.strerror}). Put it back.") from None
        except SubmissionError:  # weights of another format, which are compared with nobody's
            continue


def _work(opener: ParserOpener, assignment: Assignment, submission: Submission, before: bool) -> Work:
    accepted = intake(submission, assignment, opener)
    reader = ParserReader(opener)
    left_out: list[str] = []
    code = _whole_code(reader, accepted, left_out)
    weights = _weights(reader, accepted.checkpoint, left_out)
    figures: list[ComparedPicture] = []
    for path in (accepted.code, accepted.report):
        if path is not None and path.suffix.lower() in (".ipynb", ".pdf"):
            _add_figures(reader, path, figures, left_out)
    roles = [Role.CODE, Role.CHECKPOINT, Role.REPORT]
    paths = [accepted.code, accepted.checkpoint, accepted.report]
    asked_roles = {file.role for file in assignment.files}
    if lacking := [
        str(role) for role, path in zip(roles, paths, strict=True) if path is None and role in asked_roles
    ]:
        left_out.append(f"Nothing was accepted as {' or '.join(lacking)}, so it was not compared.")
    left_out += [about_file(file.name, file.reason) for file in accepted.refused if code is None]
    return Work(submission.student_id, before, code, weights, tuple(figures), tuple(left_out))


def _whole_code(reader: ParserReader, accepted: Intake, left_out: list[str]) -> Code | None:
    """The code of the homework and of the modules that it may import."""
    code = _code(reader, accepted.code, left_out)
    if code is None:
        return None
    for name, path in accepted.modules.items():
        module = _code(reader, path, left_out)
        if module is not None:
            text = code.text | {name: "\n".join(module.text.values())}
            code = Code(text, (*code.units, *(replace(unit, file=name) for unit in module.units)))
    return code


def _code(reader: ParserReader, path: Path | None, left_out: list[str]) -> Code | None:
    if path is None:
        return None
    try:
        return reader.code(path)
    except SubmissionError as error:
        left_out.append(f"The code was not compared. {error}")
        return None


def _weights(reader: ParserReader, path: Path | None, left_out: list[str]) -> SampledWeights | None:
    if path is None:
        return None
    try:
        return reader.weights(path)
    except SubmissionError as error:
        left_out.append(f"The checkpoint was not compared. {error}")
        return None


def _add_figures(
    reader: ParserReader, path: Path, figures: list[ComparedPicture], left_out: list[str]
) -> None:
    try:
        reader.figures(path, figures)
    except SubmissionError as error:
        left_out.append(f"Not all pictures were compared. {error}")


# --- class comparison ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ComparisonRequest:
    """A request to compare submissions.

    Attributes:
        path: A folder of submissions, or a zip from an LMS.
        out: The folder for page, table and record. Where it holds the class's results, its page lists pairs.
        before: An earlier class's submissions, or the fingerprints that were kept of them, compared with this
            one's.
        keep: A new file for the fingerprints of this class's code, for later terms; None: none are kept.
        threshold: The share of a student's own code, 0 to 1, from which on a pair is listed.
        jobs: Files read at once.
        course: The course's folder; None: found upward from the working directory.
        unofficial: Accept a machine that isolates too little.
        gradebook: An SQLAlchemy URL; None: `gradebook.sqlite` in `out`.
        groups: A CSV of groups, whose members are not compared; None: the one that the course names.
    """

    path: Path
    assignment_id: str
    out: Path
    before: Path | None = None
    keep: Path | None = None
    threshold: float = THRESHOLD
    jobs: int = 1
    course: Path | None = None
    unofficial: bool = False
    gradebook: str | None = None
    groups: Path | None = None


class ComparisonWatcher(Protocol):
    """Follows the progress of a comparison."""

    def taken_in(self, notes: Sequence[str], submissions: int) -> None:
        """The submissions are there, with a sentence for what was noted about files."""

    def read(self, done: int, whole: int) -> None:
        """This many submissions were read."""

    def compared(self, done: int, whole: int) -> None:
        """This many pairs were compared."""

    def caught_up(self, catch_up: CatchUp) -> None:
        """Files of the class showed an earlier state of the gradebook."""

    def rubric_changed(self) -> None:
        """The class page is not written again: the rubric has changed since."""


@dataclass(frozen=True)
class ClassComparison:
    """The result of a comparison.

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
    require_apart(request.path, request.out)
    course = located_course(request.course)
    assignment = read_assignment(course.reference(request.assignment_id))
    given = handed_out(assignment)
    if request.keep is not None and request.keep.exists():
        raise UsageError(f"{request.keep} is there already. Give another --keep.")
    earlier = stored_works(request.before, assignment.id) if _are_fingerprints(request.before) else ()
    works, together, notes = _works(request, course, assignment, watch)
    works = (*works, *earlier)
    comparison = compared(
        works,
        given=given.forms,
        given_figures=given.figures,
        given_weights=given.weights,
        together=together,
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
    if request.keep is not None:
        atomic.make_folder(request.keep.parent)
        text = fingerprints_text(assignment.id, works, given=given.forms)
        atomic.write(request.keep, text.encode("utf-8"))
    _write_class_page(assignment, request, now, watch)
    return ClassComparison(comparison, out / PAGE)


def _together(
    request: ComparisonRequest, course: Course, assignment: Assignment, handed_in: AbstractSet[str]
) -> dict[str, frozenset[str]]:
    """Student -> the members of the student's group."""
    names = course.assignments()
    groups = assignment_groups(course.plan, assignment.id, names, request.groups, handed_in)
    return {
        student_id: frozenset(member.student_id for member in members)
        for student_id, members in groups.items()
    }


def _left_together(handed_in: AbstractSet[str], together: Mapping[str, AbstractSet[str]]) -> Iterator[str]:
    """A sentence on the groups of which several members handed something in, if there are any."""
    groups = {members for members in together.values() if len(members & handed_in) > 1}
    if groups:
        yield f"Members of one group were not compared with each other: {counted(len(groups), 'group')}."


def _are_fingerprints(path: Path | None) -> TypeGuard[Path]:
    return path is not None and path.suffix.lower() == ".json"


def _works(
    request: ComparisonRequest, course: Course, assignment: Assignment, watch: ComparisonWatcher
) -> tuple[Sequence[Work], Mapping[str, AbstractSet[str]], Sequence[str]]:
    """What is compared of each submission, who may have worked with whom, and what was noted about files."""
    notes: list[str] = []
    listed: list[tuple[Submission, bool]] = []
    sources = [(request.path, False)] + (
        [(request.before, True)] if request.before and not _are_fingerprints(request.before) else []
    )
    with tempfile.TemporaryDirectory(prefix="grader-") as scratch:
        folders = (*(source for source, _ in sources), request.out, Path(scratch))
        hidden = tuple(folder.resolve() for folder in folders)
        with running_parsers(course, hidden=hidden, unofficial=request.unofficial) as parsers:
            for source, earlier in sources:
                own_scratch = Path(scratch) / ("before" if earlier else "now")
                own_scratch.mkdir()
                owners = KnownOwners()
                if not earlier:
                    owners = KnownOwners(uploads=uploads_of(request.out, request.gradebook, assignment.id))
                uploads = submissions(source, assignment, own_scratch, ParserOpener(parsers), owners)
                notes += [about_file(refused.name, refused.reason) for refused in uploads.unmatched]
                notes += uploads.notes
                # what a team handed in together is compared once
                representatives = team_representatives(uploads.submissions)
                listed += [
                    (submission, earlier)
                    for submission in uploads.submissions
                    if submission.student_id in representatives
                ]
            handed_in = {submission.student_id for submission, earlier in listed if not earlier}
            together = _together(request, course, assignment, handed_in)
            notes += _left_together(handed_in, together)
            watch.taken_in(notes, len(listed))
            works = read_works(parsers, assignment, listed, jobs=request.jobs, report=watch.read)
    return works, together, notes


def _write_class_page(
    assignment: Assignment, request: ComparisonRequest, now: datetime, watch: ComparisonWatcher
) -> None:
    """Write the class page again, where there is one that would show the same totals as the reports."""
    with Gradebook(request.out, request.gradebook, assignment_id=assignment.id) as book:
        if assignment.id not in book.assignments():
            return
        try:
            reported_results(assignment, book.snapshot(attempts=assignment.compares_attempts))
        except UsageError:
            watch.rubric_changed()
            return
        catch_up = caught_up(assignment, book, request.out, lambda: now)
        if catch_up is not None:
            watch.caught_up(catch_up)
        write_pages(assignment, book, request.out, now, always_class=True)
