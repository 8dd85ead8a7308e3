"""One submission, graded inside another grader: by the same engine and the same rubric as `grader grade`.

It takes the submission in, has the checks judged and scores them; nothing is trained, and there is no
gradebook. It decides what a student's processes may use of the package's time and memory, and hands the
result to the other grader's format. It never decides about a check or a point.
"""

import shutil
import sys
import tempfile
import time
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from grader.course.locate import Course, located_course
from grader.domain.assignment import Assignment
from grader.domain.errors import GraderError, SubmissionError, UsageError
from grader.domain.evidence import Evidence
from grader.domain.formatting import about_file, printable
from grader.domain.score import Score
from grader.domain.submission import Submission
from grader.grading.run import Run, running_hosts, running_parsers
from grader.grading.submission_run import examined
from grader.intake import Uploads, submissions
from grader.packages.earlier_submissions import earlier_submissions, with_earlier
from grader.packages.failed_run import (
    NOT_FINISHED,
    NOTHING_TO_GRADE,
    SEVERAL_STUDENTS,
    failed_document,
    packed,
)
from grader.packages.gradescope_results import gradescope_document
from grader.packages.package_settings import PackageSettings, read_settings
from grader.packages.package_tree import TREES, PackageTree
from grader.packages.prairielearn_results import prairielearn_document
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
    """

    assignment: Assignment
    evidence: Evidence
    score: Score
    seconds: float


def grade_into(kind: str, root: Path, outcome: Path) -> None:
    """Grade the submission below a root, and write what the other grader is to read.

    Args:
        kind: `gradescope`, `container` or `prairielearn`.
        root: The other grader's folder.
        outcome: The file for it, which only the parent of this process reads.
    """
    tree = TREES[kind](root)
    try:
        settings = read_settings(tree.package)
        document = _graded_document(kind, tree, settings)
    except GraderError as error:
        _say(f"Not graded: {error}")
        document = failed_document(kind, NOT_FINISHED)
    outcome.write_bytes(packed(document))


def _graded_document(kind: str, tree: PackageTree, settings: PackageSettings) -> dict[str, Any]:
    """What the other grader is to read. Of errors, students read those that are about their files.

    Raises:
        GraderError: The package is damaged.
    """
    # a variable of the surroundings must not replace the package's key
    course = replace(located_course(tree.course, environment={}), known_values=tuple(settings.values.items()))
    assignment = _within(settings, course.assignment(settings.assignment_id))
    try:
        graded = graded_submission(tree, course, assignment)
    except SubmissionError as error:
        _say(f"Not graded: {error}")
        return failed_document(kind, printable(language_of(assignment).translated(str(error))))
    except GraderError as error:
        _say(f"Not graded: {error}")
        return failed_document(kind, settings.translated(NOT_FINISHED))
    _tell_staff(graded)
    return _document(kind, graded, settings)


def graded_submission(tree: PackageTree, course: Course, assignment: Assignment) -> GradedSubmission:
    """Grade the submission.

    Args:
        course: The package's.
        assignment: With the limits of the package.

    Raises:
        SubmissionError: There is nothing to grade.
        GraderError: The machine isolates too little.
    """
    started = time.monotonic()
    metadata = read_metadata(tree.metadata)
    with tempfile.TemporaryDirectory(prefix="grader-package-") as name:
        scratch = Path(name)
        hidden = (*tree.closed, scratch)
        with running_parsers(course, hidden=hidden, unofficial=False, in_package=True) as parsers:
            submission = _taken_in(tree, assignment, scratch, parsers, metadata)
            evidence = _evidence(course, assignment, submission, parsers, hidden)
    by_itself = score(assignment, evidence)
    return GradedSubmission(
        assignment=assignment,
        evidence=evidence,
        score=with_earlier(assignment, evidence, by_itself, earlier_submissions(metadata)),
        seconds=time.monotonic() - started,
    )


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
    return replace(uploads.submissions[0], received_at=received_at(metadata))


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


def _evidence(
    course: Course, assignment: Assignment, submission: Submission, parsers: Host, hidden: tuple[Path, ...]
) -> Evidence:
    hosts = running_hosts(
        course, assignment, hidden=hidden, unofficial=False, parsers=parsers, in_package=True
    )
    with hosts as running:
        run = Run(course, assignment, running, None)
        return examined(
            run, submission, attempt=1, graded_at=datetime.now(UTC), watch=lambda _: None
        ).evidence


def _document(kind: str, graded: GradedSubmission, settings: PackageSettings) -> dict[str, Any]:
    if kind == "prairielearn":
        return prairielearn_document(graded.assignment, graded.evidence, graded.score)
    return gradescope_document(
        graded.assignment,
        graded.evidence,
        graded.score,
        seconds=graded.seconds,
        leaderboard=settings.leaderboard,
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
