"""The pages of a class, written again where they say something else than the gradebook.

It holds which state of the book the files of a results folder tell of, who is writing them, which pages
are written anew, and what makes up for pages that tell of an earlier state. The state is noted when all
files are written. After a kill at any moment it is an earlier one, or none: whoever works in the folder
next sees that something is to be made up for, without reading the files. It never decides about a grade,
and it leaves the making of single files to `class_files`.
"""

import contextlib
import hashlib
import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from enum import Enum, auto
from pathlib import Path

from grader.domain.assignment import Assignment
from grader.domain.errors import UsageError
from grader.domain.formatting import counted
from grader.domain.score import Score
from grader.domain.submission_result import Result
from grader.files import atomic
from grader.gradebook import Gradebook, Snapshot, State
from grader.reports.results_json.results_contract import DownloadRecord
from grader.reports.results_json.results_file import submission_text, told_submissions
from grader.reports.whole_class.class_overview import Overview
from grader.results.class_files import lying_beside, report_path, write_class, write_student
from grader.results.current_state import (
    edits_by_student,
    remove_moved_pages,
    results_now,
    standing_downloads,
    told_results,
)
from grader.results.kept_scores import KnownScores, keep_scores, kept_scores

if sys.platform != "win32":
    import fcntl

FILE = ".pages"
STUDENTS = "students"
_TRIES, _MOMENT = 5, 0.02  # seconds


@dataclass(frozen=True)
class Noted:
    """What the files were written from.

    Attributes:
        book: Which book: see `Gradebook.identity`.
        assignment: Of which assignment.
        state: The book's state then; None while they are being written.
    """

    book: str
    assignment: str
    state: State | None


def noted(out: Path) -> Noted | None:
    """What the files of a folder were written from; None where nothing says so."""
    try:
        match json.loads((out / FILE).read_text(encoding="utf-8")):
            case {"book": str(book), "assignment": str(assignment), "state": dict() | None as state}:
                return Noted(book, assignment, State(**state) if state else None)
    except (OSError, ValueError, TypeError):
        pass
    return None


def note(out: Path, book: Gradebook, assignment_id: str, state: State | None) -> None:
    """Note from which state all files are written.

    Args:
        state: The book's; None: they are being written.

    Raises:
        UsageError: The disk does not take it.
    """
    told = asdict(state) if state is not None else None
    content = {"book": book.identity(), "assignment": assignment_id, "state": told}
    atomic.write(out / FILE, json.dumps(content).encode("utf-8"))


def are_stale(out: Path, book: Gradebook, assignment_id: str) -> bool:
    """Whether files of the folder are known to tell of another state of the book than it has now.

    A folder that an older version wrote says nothing of that; from now on it does. What was written from
    another book, or about another assignment, is left alone.
    """
    if not (out / "results.json").exists():
        return (out / STUDENTS).exists()  # the first run did not come to its end
    before = noted(out)
    if before is None:
        if os.access(out, os.W_OK):
            with contextlib.suppress(UsageError):  # it is for later commands
                note(out, book, assignment_id, book.state())
        return False
    if (before.book, before.assignment) != (book.identity(), assignment_id):
        return False
    return before.state != book.state()


@contextlib.contextmanager
def writing(out: Path) -> Iterator[None]:
    """The right to write the files of a folder: one process has it at a time.

    Whoever takes the book's state after getting it writes nothing older than what is there.

    Raises:
        UsageError: There is no such folder, and it cannot be made.
    """
    atomic.make_folder(out)
    with _locked(out, exclusive=True):
        yield


@contextlib.contextmanager
def grading(out: Path) -> Iterator[None]:
    """Tells others that submissions are graded, and that their files are written at the end.

    Raises:
        UsageError: The folder cannot be made.
    """
    atomic.make_folder(out / STUDENTS)
    with _locked(out / STUDENTS, exclusive=False):
        yield


def is_graded_now(out: Path) -> bool:
    """Whether some process is grading into the folder."""
    if not (out / STUDENTS).exists():
        return False
    for _ in range(_TRIES):  # another that only asks has it for a moment
        try:
            with _locked(out / STUDENTS, exclusive=True, wait=False):
                return False
        except BlockingIOError:
            time.sleep(_MOMENT)
    return True


@contextlib.contextmanager
def _locked(folder: Path, *, exclusive: bool, wait: bool = True) -> Iterator[None]:
    """Hold a lock on a folder, which ends with the process; on systems without such locks, none.

    Raises:
        BlockingIOError: Somebody else has it, and it is not waited for.
    """
    if sys.platform == "win32":
        yield
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        how = (fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH) | (0 if wait else fcntl.LOCK_NB)
        try:
            fcntl.flock(descriptor, how)
        except BlockingIOError:
            raise
        except OSError:  # a file system without locks: all is written whole anyway
            pass
        yield
    finally:
        os.close(descriptor)


# --- class pages -----------------------------------------------------------------------------------------


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
            made = book.snapshot(attempts=assignment.compares_attempts)
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
        edits, compares = edits_by_student(snapshot), assignment.compares_attempts
        self._keys = {
            student_id: known.key(
                evidence, run, edits[student_id], snapshot.history(student_id, attempts=compares)
            )
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
            or may_show_more(result.score, now)
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


def may_show_more(score: Score, now: datetime) -> bool:
    """Whether a report left out what hidden checks found, and need not do so any more."""
    return score.tries is not None and not score.tries.shown and now > score.tries.due


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


# --- catching up -----------------------------------------------------------------------------------------


OLDER = "The pages are older than the gradebook"


class CatchUpOutcome(Enum):
    """What became of files that told of an earlier state."""

    WRITTEN = auto()
    READ_ONLY = auto()  # the folder may only be read here
    RUBRIC_CHANGED = auto()  # new totals are for `grader regrade`
    NOT_WRITTEN = auto()  # the disk did not take them


@dataclass(frozen=True)
class CatchUp:
    """Files that told of an earlier state of the book, and what became of them.

    Attributes:
        out: The folder of the results.
        reports: How many reports were written.
        error: Why they were not written, where the disk did not take them.
    """

    outcome: CatchUpOutcome
    out: Path
    reports: int = 0
    error: str = ""

    def __str__(self) -> str:
        match self.outcome:
            case CatchUpOutcome.READ_ONLY:
                return f"{OLDER}, and {self.out} may only be read here."
            case CatchUpOutcome.RUBRIC_CHANGED:
                return f"{OLDER}, and the rubric changed since. `grader regrade` writes them anew."
            case CatchUpOutcome.NOT_WRITTEN:
                return f"{OLDER}. {self.error}"
        reports = f"{counted(self.reports, 'report')} and the" if self.reports else "The"
        return (
            "The pages were older than the gradebook (a command was cut short, or somebody else adds to it). "
            f"Written again: {reports[:1].lower()}{reports[1:]} class's files."
        )


def are_behind(book: Gradebook, out: Path, assignment_id: str) -> bool:
    """Whether the files of a folder tell of an earlier state, and nobody is about to write them anyway."""
    return are_stale(out, book, assignment_id) and not is_graded_now(out)


def caught_up(
    assignment: Assignment, book: Gradebook, out: Path, clock: Callable[[], datetime]
) -> CatchUp | None:
    """Write what is older than the book; None where nothing is.

    No total changes by it: where the rubric changed since, that is for `grader regrade`.

    Raises:
        UsageError: The book cannot be used.
    """
    if not are_behind(book, out, assignment.id):
        return None
    if not os.access(out, os.W_OK):
        return CatchUp(CatchUpOutcome.READ_ONLY, out)
    snapshot = book.snapshot(attempts=assignment.compares_attempts)
    try:
        told_results(assignment, snapshot)
    except UsageError:
        return CatchUp(CatchUpOutcome.RUBRIC_CHANGED, out)
    try:
        written = write_pages(assignment, book, out, clock())
    except UsageError as error:
        return CatchUp(CatchUpOutcome.NOT_WRITTEN, out, error=str(error))
    return CatchUp(CatchUpOutcome.WRITTEN, out, written.reports)
