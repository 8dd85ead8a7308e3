"""Pushes grades, comments and reports to an LMS: first the difference, then what is new or changed.

It sends exactly what an export would release, and nothing twice: what was sent is remembered
(`push_journal`), and what people edited in the LMS since stays as it is. It decides what is sent, and
nothing about how: each LMS has a module for that. Tests: `tests/publishing/test_push.py`.
"""

import csv
import io
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from hashlib import sha256
from pathlib import Path

from grader.domain.assignment import Assignment
from grader.domain.errors import UsageError
from grader.domain.formatting import counted, listed, points, printable
from grader.domain.score import rounded
from grader.files.csv_text import csv_text
from grader.lms.export_format import Grade, Results, unsaid
from grader.lms.matching import Matching, NumberColumn, candidates, matching
from grader.lms.online_assignment import (
    NOTHING_THERE,
    GradeDelivery,
    OnlineAssignment,
    OnlineStudent,
    ReplyLost,
    ReportFile,
    Standing,
    StudentRefused,
)
from grader.publishing.exporting import standalone_reports
from grader.publishing.push_journal import Intention, Memory, PushJournal, confirmation
from grader.publishing.releases import exported_grades, note_releases, require_complete, warnings
from grader.reports.student.lms_comment import lms_comment
from grader.results.current_state import current_downloads, reported_results
from grader.results.session import ClassSession

WAY = "push-{lms}"
MOST_TRIES = 4  # for one student, when the reply is lost
# when and how a page was made, and how long that took: one that differs in this alone is no news
_FOOTER = re.compile(rb"<footer>.*?</footer>", re.DOTALL)


class PushState(StrEnum):
    """How a student's grade here compares with what stands in the LMS."""

    NEW = "new"  # nothing stands there
    CHANGED = "changed"  # what we sent stands there, and differs from what is here
    SAME = "same"
    EDITED = "edited there"
    UNKNOWN = "unknown"  # on one side only
    WITHOUT = "without a grade"


@dataclass(frozen=True)
class Line:
    """One student in the difference.

    Attributes:
        name: The student's id; of a student whom only the LMS knows, the name and number there.
        before, after: The grade there and the grade here, in points of the LMS; None if there is none.
        detail: What else should be known, as a clause.
        key: The LMS's key of the user; empty if there is none.
        delivery: What is to be sent; None: nothing.
        why: The reason for overwriting what was edited there; empty otherwise.
    """

    name: str
    state: PushState
    before: float | None = None
    after: float | None = None
    detail: str = ""
    key: str = ""
    delivery: GradeDelivery | None = None
    content: str = ""
    there: Standing = NOTHING_THERE
    why: str = ""

    @property
    def falls(self) -> bool:
        """Whether a grade that stands there would fall."""
        return (
            self.delivery is not None
            and self.before is not None
            and self.after is not None
            and self.after < self.before
        )


@dataclass(frozen=True)
class ClassRelease:
    """What an export of a class would release.

    Attributes:
        out: The folder of the results.
        results: Of the class, including those with an unknown owner.
        grades: Student id -> the grade, for all whose results are exported.
        who: The person, for the record.
        clock: The time, with its zone.
        note: Notes in the gradebook that these grades (student id -> points) are released in this way.
        reports: Student ids -> the reports of those who have one.
    """

    out: Path
    assignment: Assignment
    results: Results
    grades: Mapping[str, Grade]
    who: str
    clock: Callable[[], datetime]
    note: Callable[[Mapping[str, float | None], str], object]
    reports: Callable[[Sequence[str]], Mapping[str, bytes]]


def release_of(session: ClassSession, *, partial: bool) -> ClassRelease:
    """What an export of the session's class would release now.

    Args:
        partial: Leave out grades that await a person.

    Raises:
        UsageError: Reports are not up to date; or a grade awaits a person or a submission is missing, without
            `partial`.
    """
    assignment, book, out = session.assignment, session.book, session.out
    snapshot = book.snapshot(attempts=assignment.compares_attempts)
    results = reported_results(assignment, snapshot)
    if not partial:
        require_complete(results, current_downloads(book, out, snapshot))
    pairs = [(result.evidence, result.score) for result in results]

    def note(grades: Mapping[str, float | None], way: str) -> object:
        return note_releases(
            book, snapshot, results, grades, way=way, who=session.who, when=session.clock(), out=out
        )

    grades = exported_grades(pairs, partial=partial, only_reviewed=assignment.review_required)
    reports = standalone_reports(assignment, book, out, results, session.clock())
    return ClassRelease(out, assignment, pairs, grades, session.who, session.clock, note, reports)


@dataclass(frozen=True)
class PushRequest:
    """What is asked for.

    Attributes:
        scale: Scale the grades if the LMS has another maximum.
        allow_lower: Grades that stand in the LMS may fall.
        overwrite: Student -> why what was edited in the LMS is overwritten.
        target: The LMS, its address, the course and the assignment, for the record.
    """

    target: tuple[str, ...]
    scale: bool = False
    allow_lower: bool = False
    overwrite: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Pushed:
    """What became of a push.

    Attributes:
        sent: The students for whom something was sent.
        failed: Student -> why nothing was sent, or why nobody knows, as a clause.
    """

    sent: tuple[str, ...]
    failed: Mapping[str, str]


Watch = Callable[[int, int, float], None]
"""Called after each student with (how many are done, how many there are, seconds left)."""


class Push:
    """A push that is prepared: its difference is known, and nothing was sent yet.

    Args:
        release: What an export of the class would release.
        online: The assignment in the LMS.

    Raises:
        UsageError: The maximum differs, or a student to overwrite is not known.
        LmsUnavailable: The LMS does not say what stands there.
    """

    def __init__(self, release: ClassRelease, online: OnlineAssignment, request: PushRequest) -> None:
        self._here, self._online, self._request = release, online, request
        self._journal = PushJournal(release.out, request.target)
        self._grades = release.grades
        self._factor = self._scale()
        unknown = sorted(request.overwrite.keys() - self._grades.keys())
        if unknown:
            raise UsageError(
                f"{release.out}: there is no student '{unknown[0]}' to send a grade for. See scores.csv."
            )
        students = list(online.students())
        match = _matched(online.lms, students, release.results)
        self._memories = self._journal.memories()
        self.lines = self._lines(students, match, online.standings())
        self.remarks = (*online.remarks, *warnings(release.results))

    @property
    def to_send(self) -> tuple[Line, ...]:
        """The students for whom something is to be sent."""
        return tuple(line for line in self.lines if line.delivery is not None)

    def _scale(self) -> float:
        """By what a grade is multiplied.

        Raises:
            UsageError: The LMS has another maximum, and grades are not to be scaled.
        """
        here, there = self._here.assignment.maximum, self._online.maximum
        if rounded(there) == rounded(here):
            return 1.0
        if not self._request.scale or not here or not there:
            remedy = ", or scale the grades with --scale" if here and there else ""
            raise UsageError(
                f"'{printable(self._online.title)}': the maximum is {points(there)} there and {points(here)} "
                f"here. Change it in {self._online.lms}{remedy}."
            )
        return there / here

    def _lines(
        self, students: Sequence[OnlineStudent], match: Matching, standings: Mapping[str, Standing]
    ) -> tuple[Line, ...]:
        rows = {student_id: students[row - 1] for row, student_id in match.students.items()}
        reports = self._here.reports(tuple(rows)) if self._online.takes_reports else {}
        lines = [
            self._line(self._grades[student_id], student, standings, reports.get(student_id))
            for student_id, student in sorted(rows.items())
        ]
        lms = self._online.lms
        unmatched = {
            **dict.fromkeys(
                match.doubts, f"fits several students, or a student who fits another one in {lms}"
            ),
            **{row: unsaid(held) for row, held in match.held.items()},
            **dict.fromkeys(match.unknown, "has no result here"),
        }
        for row, detail in unmatched.items():
            student = students[row - 1]
            before = _points_in(standings, student)
            lines.append(Line(_there(student), PushState.UNKNOWN, before, detail=detail, key=student.key))
        for student_id in match.absent:
            grade = self._grades[student_id]
            after = None if grade.points is None else rounded(grade.points * self._factor)
            detail = f"is no student of the course in {lms}"
            lines.append(Line(student_id, PushState.UNKNOWN, after=after, detail=detail))
        return tuple(lines)

    def _line(
        self, grade: Grade, student: OnlineStudent, standings: Mapping[str, Standing], report: bytes | None
    ) -> Line:
        there, before = standings.get(student.key, NOTHING_THERE), _points_in(standings, student)
        if grade.points is None:
            return Line(grade.student_id, PushState.WITHOUT, before, detail=grade.reason, key=student.key)
        after = rounded(grade.points * self._factor)
        comment = lms_comment(self._here.assignment, grade.points, with_report=report is not None)
        said = sha256(b"" if report is None else _FOOTER.sub(b"", report)).hexdigest()
        file = None if report is None else ReportFile(f"report-{said[:10]}.html", report)
        content = sha256(f"{after} {comment} {said}".encode()).hexdigest()
        delivery = GradeDelivery(student.key, after, comment, file)
        older = self._memories.get(("", grade.student_id), Memory())
        memory = self._memories.get((student.key, ""), older)
        state, detail = _state(memory, there, content, after)
        why = ""
        if state is PushState.EDITED and grade.student_id in self._request.overwrite and not there.keep:
            why = self._request.overwrite[grade.student_id]
            detail = f"{detail}; is overwritten: {why}"
        is_sent = state in (PushState.NEW, PushState.CHANGED) or bool(why)
        return Line(
            grade.student_id,
            state,
            before,
            after,
            detail,
            student.key,
            delivery if is_sent else None,
            content,
            there,
            why,
        )

    # --- sending ------------------------------------------------------------------------------------------

    def send(
        self,
        watch: Watch = lambda *_: None,
        *,
        pause: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> Pushed:
        """Send what is new or changed, one student after the other.

        It may be interrupted at any moment: another push goes on from there.

        Args:
            pause: Waits for some seconds.
            clock: Seconds, for the estimate.

        Raises:
            UsageError: A grade that stands in the LMS would fall without `allow_lower`; nothing was sent.
            LmsUnavailable: The LMS takes nothing more.
        """
        lines = self.to_send
        self._require_no_fall(lines)
        with self._journal.reserved():
            if self._journal.memories() != self._memories:
                raise UsageError("Another push has sent grades since the difference was made. Run it again.")
            self._note_what_arrived()
            if lines:
                self._release(lines)
            began, sent, failed = clock(), [], {}
            for number, line in enumerate(lines, 1):
                problem = self._sent(line, pause)
                if problem:
                    failed[line.name] = problem
                else:
                    sent.append(line.name)
                watch(number, len(lines), (clock() - began) / number * (len(lines) - number))
        return Pushed(tuple(sent), failed)

    def _require_no_fall(self, lines: Sequence[Line]) -> None:
        falling = [line for line in lines if line.falls]
        if falling and not self._request.allow_lower:
            raise UsageError(
                "\n".join(
                    [
                        *(
                            f"{line.name}: {points(line.before)} in {self._online.lms} becomes "
                            f"{points(line.after)}, which is less."
                            for line in falling
                        ),
                        "Nothing was sent. If meant, add --allow-lower.",
                    ]
                )
            )

    def _note_what_arrived(self) -> None:
        """Confirm the intentions that an interrupted push carried out."""
        standings = {line.key: line.there for line in self.lines if line.key and line.after is not None}
        for memory in self._memories.values():
            there = standings.get(memory.open.key) if memory.open is not None else None
            if memory.open is not None and there is not None and memory.open.has_arrived(there):
                self._journal.add(confirmation(memory.open, there, self._here.clock()))

    def _release(self, lines: Sequence[Line]) -> None:
        """Note in the gradebook that the grades are released, before any of them can be seen.

        Raises:
            UsageError: The gradebook cannot be written; nothing was sent.
        """
        grades = {line.name: self._grades[line.name].points for line in lines}
        self._here.note(grades, WAY.format(lms=self._online.lms.lower()))

    def _sent(self, line: Line, pause: Callable[[float], None]) -> str:
        """Send what belongs to one student; why it could not be sent, or empty."""
        delivery = line.delivery
        assert delivery is not None, "only such lines are sent"
        intention = self._intention(line, delivery)
        self._journal.add(intention)
        for attempt in range(MOST_TRIES):
            try:
                after = self._online.deliver(delivery)
            except StudentRefused as error:
                return str(error)
            except ReplyLost as error:
                after = self._online.standing(delivery.key)
                if not intention.has_arrived(after):
                    if not intention.left_all_as_it_was(after):
                        return f"{error}, and something else stands there now"
                    pause(2.0**attempt)
                    continue
            if after.points is None or rounded(after.points) != delivery.points:
                stands = "no grade" if after.points is None else points(after.points)
                return f"{self._online.lms} took it, and {stands} stands there (a rubric may decide there)"
            self._journal.add(confirmation(intention, after, self._here.clock()))
            return ""
        return f"no answer came {counted(MOST_TRIES, 'time')}; run the command again"

    def _intention(self, line: Line, delivery: GradeDelivery) -> Intention:
        return Intention(
            student_id=line.name,
            key=delivery.key,
            points=delivery.points,
            content=line.content,
            comment=delivery.comment,
            file=delivery.report.name if delivery.report else "",
            before_points=line.there.points,
            before_version=line.there.version,
            before_comments=tuple(comment.key for comment in line.there.comments),
            at=self._here.clock(),
            who=self._here.who,
            why=line.why,
        )


def _state(memory: Memory, there: Standing, content: str, after: float) -> tuple[PushState, str]:
    """How what stands in the LMS compares with what is here, and what else should be known, as a clause.

    Args:
        memory: What is remembered about the user.
        content: Digest of everything that would be sent.
        after: The grade here, in points of the LMS.
    """
    if there.keep:
        return PushState.EDITED, there.keep
    confirmed = memory.confirmed
    if confirmed is not None and confirmed.is_outdated(there):
        confirmed = None
    if memory.open is not None:
        if memory.open.has_arrived(there):  # the crash came between sending and noting it
            confirmed = confirmation(memory.open, there, memory.open.at)
        elif (confirmed is None or confirmed.edit_since(there)) and memory.open.left_all_as_it_was(there):
            if memory.open.why:
                return PushState.EDITED, "overwriting it was interrupted"
            return (
                PushState.NEW if memory.open.before_points is None else PushState.CHANGED
            ), "was interrupted"
    if confirmed is None:
        if there.points is None:
            return PushState.NEW, ""
        same = rounded(there.points) == after
        return PushState.EDITED, "was graded there, not by a push" + (
            ", with the same points" if same else ""
        )
    if edit := confirmed.edit_since(there):
        return PushState.EDITED, edit
    if confirmed.content == content:
        return PushState.SAME, ""
    is_other_grade = confirmed.points is None or rounded(confirmed.points) != after
    return PushState.CHANGED, "" if is_other_grade else "another report"


def _matched(lms: str, students: Sequence[OnlineStudent], results: Results) -> Matching:
    """The students of the LMS and of the class that belong together, by the rules of every export."""
    width = max((len(student.ids) for student in students), default=0)
    buffer = io.StringIO()
    writer = csv.writer(buffer)
    writer.writerow(["number", *(f"id {column}" for column in range(1, width + 1))])
    for student in students:
        writer.writerow([student.number, *student.ids, *[""] * (width - len(student.ids))])
    table = csv_text(lms, buffer.getvalue().encode("utf-8"), one_column=True)
    rows = range(1, len(students) + 1)
    return matching(table, rows, range(width + 1), NumberColumn(0, lms), candidates(results))


def _points_in(standings: Mapping[str, Standing], student: OnlineStudent) -> float | None:
    """The grade that stands in the LMS; None if there is none."""
    there = standings.get(student.key, NOTHING_THERE)
    return None if there.points is None else rounded(there.points)


def _there(student: OnlineStudent) -> str:
    """How a student whom only the LMS knows is named."""
    names = [printable(text) for text in (student.person, *student.ids[:1]) if text]
    return f"{listed(names[:1])} ({', '.join([*names[1:], student.key])})" if names else student.key
