"""One submission, graded inside another grader: by the same engine and the same rubric as `grader grade`.

It takes the submission in, has the checks judged and scores them; there is no gradebook. Where the package
trains, the result of the checks is written first, and stays if the training does not come to its end. It
decides what a student's processes may use of the package's time and memory, and hands the result to the other
grader's format. It never decides about a check or a point.
"""

import contextlib
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from grader.course.locate import Course, located_course
from grader.domain.assignment import Assignment
from grader.domain.assignment_files import STUDENT_ID
from grader.domain.errors import GraderError, SubmissionError, UsageError
from grader.domain.evidence import Evidence
from grader.domain.formatting import about_file, printable
from grader.domain.score import Score
from grader.domain.submission import Submission
from grader.grading.run import Run, require_level, running_hosts, running_parsers
from grader.grading.submission_draws import draws_of
from grader.grading.submission_run import examined
from grader.intake import Uploads, submissions
from grader.packages.earlier_submissions import earlier_submissions, with_earlier
from grader.packages.failed_run import (
    NOT_FINISHED,
    NOTHING_TO_GRADE,
    SEVERAL_STUDENTS,
    failed_document,
    packed,
    whose_values,
)
from grader.packages.gradescope_results import gradescope_document
from grader.packages.package_settings import PackageSettings, read_settings
from grader.packages.package_tree import TREES, PackageTree, write_atomically
from grader.packages.prairielearn_results import prairielearn_document
from grader.packages.reduced_run import (
    NO_TIME,
    NOT_MADE,
    ReducedOutcome,
    has_code,
    left_open,
    reduced_evidence,
    reduced_outcome,
    unknown,
)
from grader.packages.reduced_run import NOT_FINISHED as NOT_TRAINED
from grader.packages.submission_metadata import read_metadata, received_at, submission_number
from grader.parser.client.parsed_files import ParserOpener
from grader.reports.typesetting import language_of
from grader.sandbox.host_client import Host
from grader.scoring.submission_score import score

_CHECKS_SHARE = 0.3  # of the run's time, and at most as much again for parts that others kept waiting


@dataclass(frozen=True)
class GradedSubmission:
    """What came of a submission.

    Attributes:
        score: With what follows from the student's earlier submissions.
        seconds: How long it took.
        reduced: What a reduced run tells the student; None: there is none.
    """

    assignment: Assignment
    evidence: Evidence
    score: Score
    seconds: float
    reduced: ReducedOutcome | None = None


def grade_into(kind: str, root: Path, outcome: Path) -> None:
    """Grade the submission below a root, and write what the other grader is to read.

    Args:
        kind: `gradescope`, `container` or `prairielearn`.
        root: The other grader's folder.
        outcome: The file for it, which only the parent of this process reads.
    """
    tree = TREES[kind](root)

    def write(document: dict[str, Any]) -> None:
        write_atomically(outcome, packed(document))

    try:
        settings = read_settings(tree.package)
        _write_graded(kind, tree, settings, write)
    except GraderError as error:
        _say(f"Not graded: {error}")
        write(failed_document(kind, NOT_FINISHED))


def _write_graded(
    kind: str, tree: PackageTree, settings: PackageSettings, write: Callable[[dict[str, Any]], None]
) -> None:
    """Write what the other grader is to read. Of errors, students read those that are about their files.

    Args:
        write: Called with the document; again, when more is known.

    Raises:
        GraderError: The package is damaged.
    """
    # a variable of the surroundings must not replace the package's key
    course = replace(located_course(tree.course, environment={}), packed_values=settings.packed_values)
    assignment = _within(settings, course.assignment(settings.assignment_id))

    def keep(graded: GradedSubmission) -> None:
        write(_document(kind, graded, settings))

    try:
        graded = graded_submission(tree, course, assignment, settings, keep)
    except SubmissionError as error:
        _say(f"Not graded: {error}")
        write(failed_document(kind, printable(language_of(assignment).translated(str(error)))))
        return
    except GraderError as error:
        _say(f"Not graded: {error}")
        write(failed_document(kind, settings.translated(NOT_FINISHED)))
        return
    _tell_staff(graded)
    keep(graded)


def graded_submission(
    tree: PackageTree,
    course: Course,
    assignment: Assignment,
    settings: PackageSettings,
    keep: Callable[[GradedSubmission], None],
) -> GradedSubmission:
    """Grade the submission.

    Args:
        course: The package's.
        assignment: With the limits of the package.
        keep: Called with what the checks came to, before anything is trained.

    Raises:
        SubmissionError: There is nothing to grade.
        GraderError: The machine isolates too little.
    """
    started = time.monotonic()
    metadata = read_metadata(tree.metadata)
    earlier = earlier_submissions(metadata)

    def graded(evidence: Evidence, reduced: ReducedOutcome | None) -> GradedSubmission:
        by_itself = score(assignment, evidence)
        if settings.reduced is not None and not settings.reduced.decides:
            by_itself = left_open(assignment, by_itself)
        points = with_earlier(assignment, evidence, by_itself, earlier)
        return GradedSubmission(assignment, evidence, points, time.monotonic() - started, reduced)

    with tempfile.TemporaryDirectory(prefix="grader-package-") as name:
        scratch = Path(name)
        hidden = (*tree.closed, scratch)
        with contextlib.ExitStack() as stack:
            parsers = stack.enter_context(
                running_parsers(course, hidden=hidden, unofficial=False, in_package=True)
            )
            submission = _taken_in(tree, assignment, scratch, parsers, metadata)
            hosts = stack.enter_context(
                running_hosts(
                    course, assignment, hidden=hidden, unofficial=False, parsers=parsers, in_package=True
                )
            )
            require_level(course, hosts.isolation)
            run = Run(partial(draws_of, course, assignment), assignment, None, hosts)
            checked = examined(
                run, submission, attempt=1, graded_at=datetime.now(UTC), watch=lambda _: None
            ).evidence
            require_level(course, checked.attestation)
            if settings.reduced is None or not has_code(checked):
                return graded(checked, None)
            keep(graded(checked, unknown(NOT_TRAINED)))
            return graded(*_trained(run, submission, checked, settings, tree, started))


def _trained(
    run: Run,
    submission: Submission,
    checked: Evidence,
    settings: PackageSettings,
    tree: PackageTree,
    started: float,
) -> tuple[Evidence, ReducedOutcome]:
    """The evidence that gives the points, and what the reduced run tells the student.

    Args:
        started: When the run began, by the monotonic clock.
    """
    assert settings.reduced is not None
    try:
        trained = reduced_evidence(
            run, submission, checked, settings, tree.package, started + settings.run_seconds
        )
    except Exception as error:  # noqa: BLE001 - what the checks found is kept
        _say(f"Reduced run: the grader failed: {type(error).__name__}: {error}")
        return checked, unknown(NOT_MADE)
    if trained is None:
        return checked, unknown(NO_TIME)
    for training in trained.trainings:
        value = "nothing" if training.measured is None else f"{training.measured:.4g}"
        words = f"{training.outcome}, {value} measured, {training.seconds:.0f} s"
        _say(f"Reduced run: {words}. {training.reason}".rstrip())
    outcome = reduced_outcome(run.assignment, trained, settings.reduced)
    return (trained if settings.reduced.decides else checked), outcome


def _within(settings: PackageSettings, assignment: Assignment) -> Assignment:
    """The assignment with limits that the package's time and memory leave room for: never higher ones."""
    limits = assignment.limits
    return replace(
        assignment,
        limits=replace(
            limits,
            checks_seconds=min(limits.checks_seconds, settings.run_seconds * _CHECKS_SHARE),
            memory_mb=min(limits.memory_mb, settings.worker_memory_mb),
        ),
    )


def _taken_in(
    tree: PackageTree, assignment: Assignment, scratch: Path, parsers: Host, metadata: dict[str, Any]
) -> Submission:
    """The one submission, read as one of a class would be.

    Raises:
        SubmissionError: There is none, or there are several.
    """
    download = scratch / "download"
    upload = download / f"submission_{submission_number(metadata)}"
    _copy_files(tree.submission, upload)
    unpacked = scratch / "unpacked"
    unpacked.mkdir()
    try:
        uploads = submissions(download, assignment, unpacked, ParserOpener(parsers))
    except UsageError:
        raise SubmissionError(NOTHING_TO_GRADE) from None
    if len(uploads.submissions) != 1:
        raise SubmissionError(_unclear(uploads))
    [submission] = uploads.submissions
    if any(value.per_student for value in assignment.variant) and not submission.origin.carries:
        raise SubmissionError(whose_values(assignment.file_stem.replace(STUDENT_ID, "<StudentID>")))
    return replace(submission, received_at=received_at(metadata))


def _copy_files(source: Path, target: Path) -> None:
    """Copy plain files only: a link would lead out of the submission."""
    target.mkdir(parents=True)
    for entry in sorted(source.iterdir()) if source.is_dir() else ():
        if entry.is_symlink():
            continue
        if entry.is_dir():
            _copy_files(entry, target / entry.name)
        elif entry.is_file():
            shutil.copyfile(entry, target / entry.name)


def _unclear(uploads: Uploads) -> str:
    reasons = [about_file(refused.name, refused.reason) for refused in uploads.unmatched]
    if uploads.submissions:
        return SEVERAL_STUDENTS
    return " ".join([NOTHING_TO_GRADE, *reasons[:5]])


def _document(kind: str, graded: GradedSubmission, settings: PackageSettings) -> dict[str, Any]:
    if kind == "prairielearn":
        return prairielearn_document(graded.assignment, graded.evidence, graded.score, graded.reduced)
    return gradescope_document(
        graded.assignment,
        graded.evidence,
        graded.score,
        seconds=graded.seconds,
        leaderboard=settings.leaderboard,
        reduced=graded.reduced,
    )


def _tell_staff(graded: GradedSubmission) -> None:
    """What only staff see: the points, the isolation that was proved, and what the machine does not give."""
    total = graded.score.total
    _say(f"Total: {'none' if total is None else f'{total:g}'}, {graded.score.decided:g} points decided.")
    attestation = graded.evidence.attestation
    _say(f"Isolation: {attestation.level} {dict(attestation.layers or {})}")
    for sentence in attestation.missing:
        _say(f"  {sentence}")
    _say(f"Graded in {graded.seconds:.1f} s by vit-grader {graded.evidence.engine}.")


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
