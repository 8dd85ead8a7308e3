"""Grades a class: from a path and an assignment to the gradebook and every report.

It composes a whole run: it takes in the download, finds the list of the class (given, in the download, or
from an earlier run), estimates the time, and has the submissions graded and the class's files written. It
never decides about a single submission.
"""

import contextlib
import difflib
import gc
import tempfile
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Protocol

from grader.course.dataset_file import SYNTHETIC
from grader.course.extensions import read_extensions
from grader.course.locate import FILE as COURSE_FILE
from grader.course.locate import Course, located_course
from grader.course.term_files import assignment_groups
from grader.domain.assignment import Assignment
from grader.domain.errors import UsageError
from grader.domain.score import Total
from grader.domain.submission import Fate, Submission
from grader.domain.submission_result import Result, stage_times
from grader.domain.term_total import GroupMember
from grader.files.known_folders import cache_folder
from grader.gradebook import Gradebook
from grader.grading.class_run import graded
from grader.grading.concurrent_work import Watcher
from grader.grading.examiner import ClassWork, Examiner, Machines, ThisMachine
from grader.grading.hidden_splits import HiddenData, hidden_data
from grader.grading.result_writer import own_deadline
from grader.grading.run import RunBasis, running_parsers, team_representatives
from grader.grading.student_page_writers import student_page_writer
from grader.grading.submission_draws import draws_of
from grader.grading.time_estimate import Rates, Workload, kind_of_work, planned
from grader.intake import KnownOwners, Uploads, require_apart, require_path, submissions, with_extensions
from grader.lms.downloads import without_person_names
from grader.lms.matching import Candidate, candidates
from grader.lms.roster import Directory, Roster, read_roster
from grader.parser.client.parsed_files import ParserOpener
from grader.reports.results_json.filled_records import roster_record
from grader.reports.results_json.results_schema import DownloadRecord
from grader.reports.whole_class.class_overview import Overview
from grader.results.class_pages import digest, grading, write_pages
from grader.results.current_state import (
    DownloadAccount,
    keep_download_account,
    owner_edits,
    recorded_uploads,
    results_now,
)
from grader.results.folder_use import RESULTS, in_use
from grader.results.kept_scores import KeptScores
from grader.results.revision import Change
from grader.sandbox.host_client import Host

THIS_MACHINE = ThisMachine()
_ALLOCATIONS = 50_000  # between two looks for unreachable cycles


@dataclass
class ClassList:
    """The class list, as far as it is known.

    Attributes:
        given: The one of `--roster`.
        enclosed: One that an LMS wrote and that lies in the download.
    """

    given: Roster | None = None
    enclosed: Roster | None = None

    @property
    def roster(self) -> Roster | None:
        """The list that counts."""
        return self.given or self.enclosed

    def directory(self) -> Directory:
        """What the given list says of an LMS's own numbers."""
        return self.given.directory() if self.given is not None else Directory()

    def read(self, path: Path) -> Directory | None:
        """What a table of the download says of them; None where it is not an LMS's list."""
        try:
            roster = read_roster(path)
        except UsageError:  # some other file, which is accounted for like any other
            return None
        if not roster.from_lms:
            return None
        self.enclosed = roster
        return roster.directory()


def with_list(
    download: DownloadRecord, roster: Roster | None, results: Collection[Candidate]
) -> DownloadRecord:
    """The account of a download with the class list.

    Args:
        roster: The list, whether given or enclosed; None: there is none.
        results: Of the class.
    """
    record = roster_record(roster, results) if roster else None
    return download.model_copy(update={"roster": record})


# --- grade class -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class GradeRequest:
    """A request to grade a class.

    Attributes:
        path: A submission's file, a folder of submissions, or a zip from an LMS.
        assignment_id: The name of its folder in the course.
        out: The folder for the results, which is added to.
        who: Who grades, for the record.
        data: The data set's zip or folder, or `synthetic`; None: nothing is trained.
        jobs: Submissions at once; each uses one thread for its computations.
        device: Where training runs: `cpu`, `cuda`, or `auto`, which takes a GPU where there is one.
        course: The course's folder; None: found upward from the working directory.
        extensions: A CSV of single students' own deadlines.
        roster: The list of the class, as a CSV with a column `student_id` or as an LMS writes it.
        groups: A CSV of groups, in which one member hands in for all; None: the one that the course names.
        gradebook: An SQLAlchemy URL; None: `gradebook.sqlite` in `out`.
        only: Only these students' submissions; all when empty.
        force: Also examine submissions that have not changed.
        unofficial: Accept a machine that isolates too little; every grade is stamped unofficial.
        allow_lower: Totals that students have seen may fall.
    """

    path: Path
    assignment_id: str
    out: Path
    who: str
    data: str | None = None
    jobs: int = 1
    device: str = "auto"
    course: Path | None = None
    extensions: Path | None = None
    roster: Path | None = None
    groups: Path | None = None
    gradebook: str | None = None
    only: tuple[str, ...] = ()
    force: bool = False
    unofficial: bool = False
    allow_lower: bool = False


@dataclass(frozen=True)
class TakenIn:
    """What was handed in.

    Attributes:
        uploads: The submissions, and what was set aside.
        download: The account of the files.
    """

    uploads: Uploads
    download: DownloadRecord


class GradeWatcher(Protocol):
    """Follows the progress of grading a class; its methods are called in this order."""

    def secret_is_public(self) -> None:
        """The course still has the secret that it was handed out with: students could work out seeds."""

    def taken_in(self, taken_in: TakenIn) -> None:
        """The submissions were read from the path."""

    def starting(self) -> None:
        """PyTorch and the checks are loaded."""

    def grading(self, workload: Workload, *, trains: bool) -> contextlib.AbstractContextManager[Watcher]:
        """Submissions are examined until the context ends; gives the watcher of each one's progress."""


@dataclass(frozen=True)
class ClassResult:
    """The result of grading a class.

    Attributes:
        results: Everybody's, sorted by student, also of students who were not in this run.
        overview: The results of the class, as the first screen of its page shows them.
        students: The students of this run -> whether an earlier run had examined the submission.
        submissions: The same with one student of each team.
        seconds: Wall-clock time of the run.
        changes: The totals of this run's students that differ from those that they had before.
    """

    results: Sequence[Result]
    overview: Overview
    students: Mapping[str, bool]
    submissions: Mapping[str, bool]
    seconds: float
    changes: Sequence[Change] = ()

    @property
    def results_of_run(self) -> list[Result]:
        """The results of the students of this run."""
        return [result for result in self.results if result.score.student_id in self.students]


def grade_class(
    request: GradeRequest,
    *,
    clock: Callable[[], datetime],
    watch: GradeWatcher,
    machines: Machines = THIS_MACHINE,
) -> ClassResult:
    """Grade a class, record the evidence, and write every report and the class's files.

    Whatever interrupts it, the same request resumes it.

    Args:
        clock: The time, with its zone.
        machines: Where the submissions are examined.

    Raises:
        UsageError: Something that was asked for is not there, or cannot be written.
        CourseError: A file of the course is malformed.
        SandboxError: The machine gives too little isolation.
    """
    require_path(request.path)  # before a gradebook is made
    require_apart(request.path, request.out)
    course = located_course(request.course)
    assignment = course.assignment(request.assignment_id)
    class_list = ClassList(read_roster(request.roster) if request.roster else None)
    listed = class_list.given.rows.values() if class_list.given is not None else ()
    groups = assignment_groups(
        course.plan, assignment.id, course.assignments(), request.groups, frozenset(listed)
    )
    with (
        _garbage_collected_seldom(),
        in_use(request.out),
        Gradebook(request.out, request.gradebook, assignment_id=assignment.id) as book,
    ):
        run = _ClassBeingGraded(request, course, assignment, class_list, groups, book, clock, watch, machines)
        return run.result()


@contextlib.contextmanager
def _garbage_collected_seldom() -> Iterator[None]:
    """Look for unreachable cycles less often: a class is millions of objects, nearly all of which stay.

    With Python's own settings, a quarter of the time in which 10,000 submissions are read goes there.
    """
    before = gc.get_threshold()
    gc.set_threshold(_ALLOCATIONS, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


@dataclass(frozen=True)
class _ClassBeingGraded:
    """The work on one request, and what all of its steps need."""

    request: GradeRequest
    course: Course
    assignment: Assignment
    class_list: ClassList
    groups: Mapping[str, Sequence[GroupMember]]
    book: Gradebook
    clock: Callable[[], datetime]
    watch: GradeWatcher
    machines: Machines

    def result(self) -> ClassResult:
        """Do all of it."""
        request, deadline = self.request, self.assignment.deadline
        own_deadlines = read_extensions(request.extensions, deadline) if request.extensions else {}
        self._require_common_book()
        self.book.require_writable()
        started = time.monotonic()
        practice = request.data == SYNTHETIC and not self.assignment.required_data().is_made
        if self.course.secret_is_public and request.data is not None and not practice:
            self.watch.secret_is_public()
        splits = None
        if request.data is not None:
            splits = hidden_data(self.course, self.assignment, request.data, self.book.class_salt)
        with self._parsers() as (scratch, hidden, parsers):
            uploads, account = self._taken_in(scratch, parsers, own_deadlines)
            chosen = only(uploads.submissions, request.only)
            chosen, earlier_attempts = self._with_earlier_attempts(scratch, parsers, uploads, chosen)
            totals_before = self.book.last_totals()
            # kept even if something interrupts what follows
            keep_download_account(self.book, request.out, account, who=request.who, when=self.clock())
            self.book.note_places([request.out], RESULTS)
            self.watch.starting()
            basis = RunBasis(partial(draws_of, self.course, self.assignment), self.assignment, splits)
            work = ClassWork(
                self.course,
                basis,
                parsers,
                out=request.out,
                hidden=hidden,
                device=request.device,
                unofficial=request.unofficial,
            )
            with self.machines.examiner(work) as examiner:
                for attempts in filter(None, earlier_attempts):
                    self._graded(examiner, splits, attempts)
                results = self._graded(examiner, splits, chosen)
        students = {result.evidence.student_id: result.examined_before for result in results}
        representatives = {student: students[student] for student in team_representatives(chosen)}
        written = {
            result.evidence.student_id: digest(result) for result in results if not result.examined_before
        }
        del results  # of a large class, nothing is held twice
        everybody, overview = self._written(account, written)
        changes = self._changes(everybody, {one: totals_before.get(one) for one in students})
        seconds = time.monotonic() - started
        return ClassResult(everybody, overview, students, representatives, seconds, changes)

    def _require_common_book(self) -> None:
        """Raises where late days are counted over several assignments, and this book holds one alone."""
        late_days = self.assignment.course_late_days
        others = {*late_days.earlier, *late_days.later} if late_days is not None else set()
        if others and self.request.gradebook is None and others.isdisjoint(self.book.assignments()):
            raise UsageError(
                f"{COURSE_FILE}: [late] tokens are counted over all assignments of the course, and the "
                f"gradebook in {self.request.out} holds one alone. Give every command the same --gradebook, "
                "as in --gradebook sqlite:///course.sqlite, or set 'tokens = false' in [late] of the "
                "assignments that do not use them."
            )

    @contextlib.contextmanager
    def _parsers(self) -> Iterator[tuple[Path, tuple[Path, ...], Host]]:
        """(a folder for what is unpacked, the folders that no submission may see, the parsers' host)."""
        with tempfile.TemporaryDirectory(prefix="grader-") as scratch:
            folders = (self.request.path, self.request.out, Path(scratch))
            hidden = tuple(folder.resolve() for folder in folders)
            unofficial = self.request.unofficial
            with running_parsers(self.course, hidden=hidden, unofficial=unofficial, views=True) as parsers:
                yield Path(scratch), hidden, parsers

    def _taken_in(
        self, scratch: Path, parsers: Host, own_deadlines: Mapping[str, datetime]
    ) -> tuple[Uploads, DownloadAccount]:
        """What was handed in and the account of the files; the gradebook records whose uploads they are."""
        path, uploads_before = self.request.path, recorded_uploads(self.book)
        known_lists = KnownOwners(
            self.class_list.directory(), self.class_list.read, uploads_before, self.groups
        )
        uploads = submissions(path, self.assignment, scratch, ParserOpener(parsers), known_lists)
        uploads = with_extensions(uploads, own_deadlines)
        self.book.add_owner_edits(owner_edits(uploads.moved, who=self.request.who, when=self.clock()))
        account = DownloadAccount.of(uploads, without_person_names(path.resolve().name))
        self.watch.taken_in(TakenIn(uploads, account.download))
        return uploads, account

    def _with_earlier_attempts(
        self, scratch: Path, parsers: Host, uploads: Uploads, chosen: Sequence[Submission]
    ) -> tuple[Sequence[Submission], Sequence[Sequence[Submission]]]:
        """What else the download holds that the rule on resubmissions compares, by each student's own times.

        Args:
            uploads: What counts of the download, as the last attempts do.
            chosen: Of that, what is graded.

        Returns:
            What is graded, with the time at which the same files came first. And what is graded before it,
            unless the gradebook has it: the last attempts from before the deadline, and the last ones from
            before the end of resubmissions.
        """
        rule, nothing = self.assignment.resubmission, (chosen, ())
        if rule is None or not any(file.fate is Fate.SUPERSEDED for file in uploads.account):
            return nothing
        grace = timedelta(minutes=self.assignment.late.grace_minutes)
        moments: dict[str, list[datetime]] = {}  # student -> those at which something else counted
        for last in chosen:
            due = own_deadline(self.assignment, self.book, last)
            if due is None or last.received_at is None or last.held or last.received_at <= due + grace:
                continue
            end = rule.end(due)
            window_ended = due + grace < end < last.received_at
            moments[last.student_id] = [due + grace, end] if window_ended else [due + grace]
        by_moment = {
            moment: self._attempts_until(moment, scratch / f"earlier-{number}", parsers)
            for number, moment in enumerate(sorted({one for own in moments.values() for one in own}))
        }
        graded: list[Submission] = []
        earlier: tuple[list[Submission], list[Submission]] = ([], [])
        for last in chosen:
            student_id, first_times = last.student_id, [last]
            examined = {digest for digest, _ in self.book.history(student_id)}
            for moment, attempts in zip(moments.get(student_id, ()), earlier, strict=False):
                attempt = by_moment[moment].get(student_id)
                if attempt is None or attempt.received_at is None:
                    continue
                delivery = replace(attempt.delivery, extension=last.delivery.extension)
                if attempt.digest == last.digest:
                    first_times.append(replace(last, received_at=attempt.received_at, delivery=delivery))
                elif attempt.digest not in examined:
                    attempts.append(replace(attempt, delivery=delivery))
                    examined.add(attempt.digest)
            graded.append(first_times[1] if len(first_times) > 1 else last)
        return graded, earlier

    def _attempts_until(self, moment: datetime, folder: Path, parsers: Host) -> dict[str, Submission]:
        """Student -> what would count of the download if nothing had come after a moment.

        Args:
            folder: For what is unpacked; it does not exist yet.
        """
        folder.mkdir()
        recorded = recorded_uploads(self.book)
        known = KnownOwners(self.class_list.directory(), lambda _: None, recorded, self.groups)
        opener = ParserOpener(parsers)
        before = submissions(self.request.path, self.assignment, folder, opener, known, until=moment)
        return {attempt.student_id: attempt for attempt in before.submissions}

    def _graded(
        self, examiner: Examiner, splits: HiddenData | None, chosen: Sequence[Submission]
    ) -> list[Result]:
        """The results of the submissions, each kept as soon as it is there, as are the times they took."""
        request, rates = self.request, Rates(cache_folder())
        work = kind_of_work(examiner.device, _training_size(splits))
        jobs = examiner.places or request.jobs
        stored_rates = rates.stored(self.assignment.id, work)
        earlier = {} if request.force else self.book.latest_facts()
        workload = planned(examiner.run, self.book, chosen, stored_rates, jobs=jobs, earlier=earlier)
        with (
            grading(request.out),
            self.watch.grading(workload, trains=splits is not None) as watch,
            student_page_writer(self.assignment, request.out, self.machines.page_processes) as pages,
        ):
            results = graded(
                examiner,
                chosen,
                request.out,
                jobs=self.machines.threads(request.jobs),
                clock=self.clock,
                watch=watch,
                book=self.book,
                who=request.who,
                earlier=earlier,
                allow_lower=request.allow_lower,
                pages=pages,
            )
        representatives = team_representatives(chosen)  # a team's submission was examined once
        examined = [
            result.evidence
            for result in results
            if result.evidence.student_id in representatives and not result.examined_before
        ]
        rates.keep(self.assignment.id, work, stage_times(examined))
        return results

    def _changes(self, results: Sequence[Result], before: Mapping[str, Total | None]) -> list[Change]:
        """The totals that differ from those before, of students who had one.

        Args:
            results: Everybody's.
            before: The last total of each student of this run.
        """
        who, when = self.request.who, self.clock()
        changes = []
        for result in results:
            total_before = before.get(result.score.student_id)
            total = Total.of(result.score, who=who, when=when, cause="grade")
            if (
                total_before is not None
                and (change := Change(total_before, total, result.score.released)).moves
            ):
                changes.append(change)
        return changes

    def _written(
        self, account: DownloadAccount, reported: Mapping[str, str]
    ) -> tuple[Sequence[Result], Overview]:
        """Write the class's files from the gradebook, which may hold students who were not in this run.

        Args:
            reported: Student -> the digest of what the reports of this run say.

        Returns:
            Everybody's results, and the overview of the class.
        """
        out = self.request.out
        snapshot = self.book.snapshot(attempts=self.assignment.compares_attempts)
        kept_scores = KeptScores(self.assignment, self.book.identity())
        everybody = results_now(self.assignment, snapshot, kept_scores)
        everybody_listed = candidates((result.evidence, result.score) for result in everybody)
        listed = replace(
            account, download=with_list(account.download, self.class_list.roster, everybody_listed)
        )
        keep_download_account(self.book, out, listed, who=self.request.who, when=self.clock())
        # what others have added since the snapshot is written by the next command
        state = replace(snapshot.state, last_download=self.book.state().last_download)
        pages = write_pages(
            self.assignment,
            self.book,
            out,
            self.clock(),
            made=replace(snapshot, state=state),
            always_class=True,
            kept=kept_scores,
            reported=reported,
        )
        assert pages.overview is not None
        return pages.results, pages.overview


def only(submissions: Sequence[Submission], students: Sequence[str]) -> Sequence[Submission]:
    """The submissions of the students who are asked for; all when none are named.

    Raises:
        UsageError: A student who is asked for handed nothing in.
    """
    ids = [submission.student_id for submission in submissions]
    absent = [student for student in students if student not in ids]
    if absent:
        similar = difflib.get_close_matches(absent[0], ids, n=1, cutoff=0.5)
        advice = (
            f"Did you mean {similar[0]}?" if similar else "The class page of an earlier run lists the ids."
        )
        raise UsageError(f"--only {absent[0]}: there is no submission of that student. {advice}")
    return (
        [submission for submission in submissions if submission.student_id in students]
        if students
        else submissions
    )


def _training_size(splits: HiddenData | None) -> int | None:
    """The number of training images."""
    return None if splits is None else splits.training_size
