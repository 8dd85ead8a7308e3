"""Writes the pages of a class again if they differ from the gradebook.

It notes which state of the gradebook the files of a results folder show, who is writing them, and which
pages must be written again. The state is noted once all files are written. After a kill at any moment it is
an earlier one, or none, so that the next command sees without reading the files that they are out of date.
It never decides about a grade, and it leaves the writing of single files to `class_files`.
"""

import contextlib
import hashlib
import json
import os
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
from grader.files.folder_lock import locked_folder
from grader.gradebook import Gradebook, Snapshot, State
from grader.reports.results_json.results_file import submission_entries, submission_text
from grader.reports.results_json.results_schema import DownloadRecord
from grader.reports.whole_class.class_overview import Overview
from grader.results.class_files import lying_beside, report_path, write_class, write_student
from grader.results.current_state import (
    current_downloads,
    edits_by_student,
    remove_moved_pages,
    reported_results,
    results_now,
)
from grader.results.kept_scores import KeptScores, keep_scores, kept_scores

FILE = ".pages"
ASKED = ".pages.asked"  # has a byte for each time that all pages were asked for anew
STUDENTS = "students"
_TRIES, _MOMENT = 5, 0.02  # seconds


@dataclass(frozen=True)
class Noted:
    """The state of the gradebook from which the files were written.

    Attributes:
        book: Which gradebook: see `Gradebook.identity`.
        assignment: The assignment's id.
        state: The gradebook's state then; None while they are being written.
        anew: How often all pages had been asked for anew: see `ask_for_all_pages`.
    """

    book: str
    assignment: str
    state: State | None
    anew: int = 0


def noted(out: Path) -> Noted | None:
    """The state from which the files of a folder were written; None if it is not noted."""
    try:
        match json.loads((out / FILE).read_text(encoding="utf-8")):
            case {"book": str(book), "assignment": str(assignment), "state": dict() | None as state, **more}:
                anew = more.get("anew", 0)  # folders of older versions lack it
                asked = anew if isinstance(anew, int) else 0
                return Noted(book, assignment, State(**state) if state else None, asked)
    except (OSError, ValueError, TypeError):
        pass
    return None


def note(out: Path, book: Gradebook, assignment_id: str, state: State | None, *, anew: int = 0) -> None:
    """Note the state from which all files were written.

    Args:
        state: The gradebook's; None: they are being written.
        anew: How often all pages had been asked for anew before they were written.

    Raises:
        UsageError: The disk does not take it.
    """
    state_document = asdict(state) if state is not None else None
    content = {"book": book.identity(), "assignment": assignment_id, "state": state_document, "anew": anew}
    atomic.write(out / FILE, json.dumps(content).encode("utf-8"))


def ask_for_all_pages(out: Path) -> None:
    """Have whoever writes the pages next write all of them, also those of whom nothing changed.

    Raises:
        UsageError: The disk does not take it.
    """
    # each asking is counted, so that one that comes while pages are written is served by the next writing
    try:
        with (out / ASKED).open("ab") as file:
            file.write(b".")
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise UsageError(f"{out / ASKED}: cannot be written: {error.strerror}.") from None


def times_asked(out: Path) -> int:
    """How often all pages of a folder were asked for anew so far."""
    try:
        return (out / ASKED).stat().st_size
    except FileNotFoundError:
        return 0


def are_stale(out: Path, book: Gradebook, assignment_id: str) -> bool:
    """Whether files of the folder are known to show another state of the gradebook than the current one.

    A folder that an older version wrote has no such note, and gets one now. Files written from another
    gradebook, or about another assignment, are left alone.
    """
    if not (out / "results.json").exists():
        return (out / STUDENTS).exists()  # the first run did not finish
    before = noted(out)
    if before is None:
        if os.access(out, os.W_OK):
            with contextlib.suppress(UsageError):  # the note is only for later commands
                note(out, book, assignment_id, book.state(), anew=times_asked(out))
        return False
    if (before.book, before.assignment) != (book.identity(), assignment_id):
        return False
    return before.state != book.state() or before.anew != times_asked(out)


@contextlib.contextmanager
def writing(out: Path) -> Iterator[None]:
    """A lock for writing the files of a folder: one process holds it at a time.

    Whoever reads the gradebook's state after getting it never overwrites newer files.

    Raises:
        UsageError: The folder does not exist and cannot be made.
    """
    atomic.make_folder(out)
    with locked_folder(out):
        yield


@contextlib.contextmanager
def grading(out: Path) -> Iterator[None]:
    """Tell other processes that submissions are being graded, and that their files are written at the end.

    Raises:
        UsageError: The folder cannot be made.
    """
    atomic.make_folder(out / STUDENTS)
    with locked_folder(out / STUDENTS, exclusive=False):
        yield


def is_graded_now(out: Path) -> bool:
    """Whether some process is grading into the folder."""
    if not (out / STUDENTS).exists():
        return False
    for _ in range(_TRIES):  # another process that only asks holds the lock for a moment
        try:
            with locked_folder(out / STUDENTS, wait=False):
                return False
        except BlockingIOError:
            time.sleep(_MOMENT)
    return True


# --- class pages -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class WrittenPages:
    """The files of a class that were written.

    Attributes:
        reports: The number of students' reports.
        results: Everybody's, sorted by student.
        overview: The first screen of the class page; None if the class's files stayed as they were.
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
    always_class: bool = False,
    kept: KeptScores | None = None,
    reported: Mapping[str, str] | None = None,
) -> WrittenPages:
    """Write the reports and the class's files from the current gradebook, and note its state.

    Args:
        made: The gradebook's state, if already read; it is read again if somebody added to it since.
        only_changed: Leave files that would not change as they are, unless all were asked for anew.
        always_class: Write the class's files in any case.
        kept: Scores that need not be computed again; by default those that the folder keeps.
        reported: Student -> the digest of a report that was written after results.json.

    Raises:
        UsageError: The files cannot be written, or the gradebook cannot be used.
    """
    with writing(out):
        asked, before = times_asked(out), noted(out)
        served = before.anew if before is not None else 0
        only_changed = only_changed and asked == served
        if made is None or book.state() != made.state:
            made = book.snapshot(attempts=assignment.compares_attempts)
        if kept is None:
            kept = KeptScores(assignment, book.identity(), kept_scores(out) if only_changed else None)
        pages = ClassPages(assignment, made, kept)
        report_digests = entry_digests(out) if only_changed else {}
        if always_class or not only_changed:
            # even the same state may give other files
            note(out, book, assignment.id, None, anew=served)
        count = pages.write_reports(book, out, now, {**report_digests, **(reported or {})})
        overview = None
        if count or report_digests.keys() != made.evidence.keys() or always_class or not only_changed:
            overview = pages.write_class(out, now, current_downloads(book, out, made), report_digests)
        remove_moved_pages(out, made)
        note(out, book, assignment.id, made.state, anew=asked)
    return WrittenPages(count, pages.results, overview)


class ClassPages:
    """The pages that show a state of the gradebook; each text and its digest is computed once.

    Args:
        kept: Scores that need not be worked out again.
    """

    def __init__(self, assignment: Assignment, snapshot: Snapshot, kept: KeptScores) -> None:
        self._assignment = assignment
        self._kept = kept
        self.results = results_now(assignment, snapshot, kept)
        edits, compares = edits_by_student(snapshot), assignment.compares_attempts
        self._keys = {
            student_id: kept.key(
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
            self._digests[student_id] = self._kept.text_digest(student_id, key) or digest(result)
        return self._digests[student_id]

    def write_reports(
        self, book: Gradebook, out: Path, now: datetime, report_digests: Mapping[str, str]
    ) -> int:
        """Write the reports that are missing or differ from the results, and return their number.

        Args:
            report_digests: Student -> the digest of the existing report: see `digest`.
        """
        stale = [
            result
            for result in self.results
            if report_digests.get(result.score.student_id) != self.digest(result)
            or not report_path(out, result.score.student_id).exists()
            or may_show_more(result.score, now)
        ]
        for result in stale:
            images = book.images(result.score.student_id, but=lying_beside(out, result.evidence))
            write_student(self._assignment, result, images, out, now)
        return len(stale)

    def write_class(
        self, out: Path, now: datetime, downloads: Sequence[DownloadRecord], report_digests: Mapping[str, str]
    ) -> Overview:
        """Write the class's files, and keep the scores for the next decision.

        Args:
            report_digests: Student -> the digest of the entry in results.json; unchanged ones are copied.
        """
        unchanged = {
            result.score.student_id
            for result in self.results
            if report_digests.get(result.score.student_id) == self.digest(result)
        }
        overview = write_class(self._assignment, self.results, out, now, downloads, unchanged=unchanged)
        keep_scores(
            out,
            (
                self._kept.line(result, key, self.digest(result))
                for result in self.results
                if (key := self._keys.get(result.score.student_id)) is not None
            ),
        )
        return overview


def may_show_more(score: Score, now: datetime) -> bool:
    """Whether a report left out what hidden checks found, and need not do so any more."""
    return score.tries is not None and not score.tries.shown and now > score.tries.due


def entry_digests(out: Path) -> dict[str, str]:
    """Student -> the digest of the entry in the existing `results.json`, as far as that is readable."""
    digests: dict[str, str] = {}
    with contextlib.suppress(OSError, ValueError):
        for student_id, text in submission_entries(out / "results.json"):
            digests[student_id] = _digest(text)
    return digests


def digest(result: Result) -> str:
    """Of all that a report says of a result."""
    return _digest(submission_text(result.evidence, result.score))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


# --- catching up -----------------------------------------------------------------------------------------


OLDER = "The pages are older than the gradebook"


class CatchUpOutcome(Enum):
    """What was done about files that were older than the gradebook."""

    WRITTEN = auto()
    READ_ONLY = auto()  # the folder may only be read here
    RUBRIC_CHANGED = auto()  # new totals need `grader regrade`
    NOT_WRITTEN = auto()  # they could not be written


@dataclass(frozen=True)
class CatchUp:
    """Reports and pages that were older than the gradebook, and what was done about them.

    Attributes:
        out: The folder of the results.
        reports: How many reports were written.
        error: Why they could not be written, if so.
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
                return f"{OLDER}, and the rubric has changed since then. `grader regrade` writes them again."
            case CatchUpOutcome.NOT_WRITTEN:
                return f"{OLDER}. {self.error}"
        reports = f"{counted(self.reports, 'report')} and the" if self.reports else "The"
        return (
            "The pages were older than the gradebook (a command was cut short, or somebody else is "
            f"adding to it). Written again: {reports[:1].lower()}{reports[1:]} class's files."
        )


def are_behind(book: Gradebook, out: Path, assignment_id: str) -> bool:
    """Whether the files of a folder show an earlier state, and nobody is about to write them anyway."""
    return are_stale(out, book, assignment_id) and not is_graded_now(out)


def caught_up(
    assignment: Assignment, book: Gradebook, out: Path, clock: Callable[[], datetime]
) -> CatchUp | None:
    """Write the files that are older than the gradebook; None if there are none.

    It never changes a total: if the rubric has changed since, `grader regrade` is needed.

    Raises:
        UsageError: The gradebook cannot be used.
    """
    if not are_behind(book, out, assignment.id):
        return None
    if not os.access(out, os.W_OK):
        return CatchUp(CatchUpOutcome.READ_ONLY, out)
    snapshot = book.snapshot(attempts=assignment.compares_attempts)
    try:
        reported_results(assignment, snapshot)
    except UsageError:
        return CatchUp(CatchUpOutcome.RUBRIC_CHANGED, out)
    try:
        written = write_pages(assignment, book, out, clock())
    except UsageError as error:
        return CatchUp(CatchUpOutcome.NOT_WRITTEN, out, error=str(error))
    return CatchUp(CatchUpOutcome.WRITTEN, out, written.reports)
