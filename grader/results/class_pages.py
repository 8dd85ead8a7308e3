"""The pages of a class, written again where they say something else than the gradebook."""

import contextlib
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from grader.domain.assignment import Assignment
from grader.domain.result import Result
from grader.gradebook import Gradebook, Snapshot
from grader.reports.results_json.results_contract import DownloadRecord
from grader.reports.results_json.results_file import submission_text, told_submissions
from grader.reports.whole_class.class_overview import Overview
from grader.results.class_files import lying_beside, report_path, write_class, write_student
from grader.results.current_results import edits_by_student, results_now
from grader.results.download_accounts import standing_downloads
from grader.results.kept_scores import KnownScores, keep_scores, kept_scores
from grader.results.owners import remove_moved_pages
from grader.results.page_state import note, writing


@dataclass(frozen=True)
class WrittenPages:
    """What was written of a class.

    Attributes:
        reports: How many reports of students.
        results: Everybody's, sorted by student.
        overview: What the class page says first; None where the class's files stayed as they were.
    """

    reports: int
    results: Sequence[Result]
    overview: Overview | None


def write_pages(
    assignment: Assignment,
    book: Gradebook,
    out: Path,
    now: datetime,
    *,
    made: Snapshot | None = None,
    only_changed: bool = True,
    class_anyway: bool = False,
    known: KnownScores | None = None,
    reported: Mapping[str, str] | None = None,
) -> WrittenPages:
    """Write the reports and the class's files as the book is now, and note of which state they tell.

    Args:
        made: The book's state, where it is at hand; another is read if somebody added to it since.
        only_changed: Leave what would say the same as it is.
        class_anyway: The class's files are written all the same.
        known: Scores that need not be worked out again; by default those that the folder keeps.
        reported: Student -> the digest of what a report says that was written since results.json was.

    Raises:
        UsageError: The disk does not take them, or the book cannot be used.
    """
    with writing(out):
        if made is None or book.state() != made.state:
            made = book.snapshot()
        if known is None:
            known = KnownScores(assignment, book.identity(), kept_scores(out) if only_changed else None)
        pages = ClassPages(assignment, made, known)
        told = told_digests(out) if only_changed else {}
        if class_anyway or not only_changed:
            note(out, book, assignment.id, None)  # from the same state, other files may come
        count = pages.write_reports(book, out, now, {**told, **(reported or {})})
        overview = None
        if count or told.keys() != made.evidence.keys() or class_anyway or not only_changed:
            overview = pages.write_class(out, now, standing_downloads(book, out, made), told)
        remove_moved_pages(out, made)
        note(out, book, assignment.id, made.state)
    return WrittenPages(count, pages.results, overview)


class ClassPages:
    """What a state of the book has to say on pages, each text and each digest of one made once.

    Args:
        known: Scores that need not be worked out again.
    """

    def __init__(self, assignment: Assignment, snapshot: Snapshot, known: KnownScores) -> None:
        self._assignment = assignment
        self._known = known
        self.results = results_now(assignment, snapshot, known)
        edits = edits_by_student(snapshot)
        self._keys = {
            student_id: known.key(evidence, run, edits[student_id])
            for student_id, evidence in snapshot.evidence.items()
            if (run := snapshot.run(student_id)) is not None
        }
        self._digests: dict[str, str] = {}

    def digest(self, result: Result) -> str:
        """Of all that a report says of a result."""
        student_id = result.score.student_id
        if student_id not in self._digests:
            key = self._keys.get(student_id, "")
            self._digests[student_id] = self._known.text_digest(student_id, key) or digest(result)
        return self._digests[student_id]

    def write_reports(self, book: Gradebook, out: Path, now: datetime, told: Mapping[str, str]) -> int:
        """Write the reports that are not there, or say something else than the results; how many those are.

        Args:
            told: Student -> the digest of what the report says: see `digest`.
        """
        stale = [
            result
            for result in self.results
            if told.get(result.score.student_id) != self.digest(result)
            or not report_path(out, result.score.student_id).exists()
        ]
        for result in stale:
            images = book.images(result.score.student_id, but=lying_beside(out, result.evidence))
            write_student(self._assignment, result, images, out, now)
        return len(stale)

    def write_class(
        self, out: Path, now: datetime, downloads: Sequence[DownloadRecord], told: Mapping[str, str]
    ) -> Overview:
        """Write the class's files, and keep the scores for the next decision.

        Args:
            told: Student -> the digest of what results.json says: what is the same is taken from there.
        """
        same = {
            result.score.student_id
            for result in self.results
            if told.get(result.score.student_id) == self.digest(result)
        }
        overview = write_class(self._assignment, self.results, out, now, downloads, unchanged=same)
        keep_scores(
            out,
            (
                self._known.line(result, key, self.digest(result))
                for result in self.results
                if (key := self._keys.get(result.score.student_id)) is not None
            ),
        )
        return overview


def told_digests(out: Path) -> dict[str, str]:
    """The digest of what `results.json` says now, by student; nothing of what is not there or not whole."""
    told: dict[str, str] = {}
    with contextlib.suppress(OSError, ValueError):
        for student_id, text in told_submissions(out / "results.json"):
            told[student_id] = _digest(text)
    return told


def digest(result: Result) -> str:
    """Of all that a report says of a result."""
    return _digest(submission_text(result.evidence, result.score))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8")).hexdigest()
