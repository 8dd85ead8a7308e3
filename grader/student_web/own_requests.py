"""What a student may ask about released points, what the student is asked about the work, and both answers.

A request is taken by the same rules as by `grader requests`, and an answer to a question as by `grader
inquiries`, under the student's own id. What it says to the student names nobody and nothing of the class. An
answer of staff, a question and a decision are shown once the released report has them. The course and the
gradebook are read anew each time, so that no request is scored by an old rubric.
"""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from grader.course.locate import located_course
from grader.decisions.asking_students import LONGEST_ANSWER, record_explanation
from grader.decisions.regrade_requests import NewRequest, take_requests
from grader.domain.assignment import Assignment
from grader.domain.errors import UsageError
from grader.domain.formatting import counted, printable, stamp
from grader.domain.inquiry import Inquiry
from grader.domain.regrade_request import RegradeRequest
from grader.domain.score import Score
from grader.gradebook import Gradebook
from grader.results.folder_use import in_use
from grader.results.revision import Revision
from grader.results.session import ClassSession, SessionRequest, class_session
from grader.scoring import line_points, score

LONGEST_REASON = 2000  # characters: so much of it a report shows


class AskingRefused(UsageError):
    """A request cannot be taken; the message is for the student."""


@dataclass(frozen=True)
class AskedPoints:
    """One request of the student, with its answer if that was released.

    Attributes:
        title: Of the item.
    """

    title: str
    request: RegradeRequest


@dataclass(frozen=True)
class Asking:
    """What a student may ask now, and what was asked.

    Attributes:
        items: (target, title) of what the student may ask about.
        left: How many requests are left.
        until: When requests end; None: nothing was released.
        closed: Why no request can be made, as a sentence; empty: one can.
        asked: The requests, oldest first.
    """

    items: tuple[tuple[str, str], ...] = ()
    left: int = 0
    until: datetime | None = None
    closed: str = ""
    asked: tuple[AskedPoints, ...] = ()


@dataclass(frozen=True)
class OwnMatters:
    """What is open between a student and staff.

    Attributes:
        asking: None: the assignment takes no requests, and there is none.
        questions: About the work, as far as they were released, in the order of asking.
        titles: Of rubric items and their parts, by what a question's points are of.
    """

    asking: Asking | None
    questions: tuple[Inquiry, ...]
    titles: Mapping[str, str]


@dataclass
class RequestDesk:
    """Takes requests and answers of the students of one class, one after the other.

    Attributes:
        session: How the gradebook is opened; `who` is replaced by the student's id.
        clock: The time, with its zone.
    """

    session: SessionRequest
    clock: Callable[[], datetime]
    _turn: threading.Lock = field(default_factory=threading.Lock)

    def assignment(self) -> Assignment:
        """The assignment as it stands in the course's folder now.

        Raises:
            UsageError: There is no such gradebook or assignment.
            CourseError: A file of the course is malformed.
        """
        with self._opened() as (assignment, _):
            return assignment

    def book_identity(self) -> str:
        """A text that identifies the gradebook, after a check that requests can be written into it.

        Raises:
            UsageError: The gradebook cannot be used, may only be read, or lies on a network file system.
        """
        with self._opened() as (_, book):
            book.require_writable()
            book.require_local()
            return book.identity()

    def matters(self, student_id: str, report: str) -> OwnMatters:
        """What the student may ask, and is asked.

        Args:
            report: As it was released: what it does not have is not shown yet.

        Raises:
            UsageError: The gradebook or the course cannot be read.
        """
        with self._opened() as (assignment, book):
            made = _score(assignment, book, student_id)
        asking = _asking(assignment, made, report, self.clock())
        return OwnMatters(asking, _questions(made, report), assignment.target_titles())

    def ask(self, student_id: str, target: str, reason: str, report: str) -> None:
        """Take a request of the student, who reads this report.

        Raises:
            AskingRefused: It cannot be taken, for a reason that the student reads.
            UsageError: The gradebook or the course cannot be read or written.
        """
        words = " ".join(printable(reason).split())
        with self._class_of(student_id) as opened:
            made = _score(opened.assignment, opened.book, student_id)
            asking = _asking(opened.assignment, made, report, self.clock())
            if asking is None:
                raise AskingRefused("This assignment takes no requests here.")
            if any(one.is_open and (one.target, one.reason) == (target, words) for one in made.requests):
                return  # the form was sent twice
            _require_possible(asking, target, words)
            taken = take_requests(opened, [NewRequest(student_id, target, words)])
            _require_recorded(taken.revision, opened, f"a request of {student_id}")
            if not taken.taken:
                raise AskingRefused(
                    "You asked about this in the same words before, and got an answer. Say what is new."
                )

    def explain(self, student_id: str, number: int, words: str, report: str) -> None:
        """Take the student's answer to a question of this report.

        Raises:
            AskingRefused: It cannot be taken, for a reason that the student reads.
            UsageError: The gradebook or the course cannot be read or written.
        """
        answer = " ".join(printable(words).split())
        with self._class_of(student_id) as opened:
            made = _score(opened.assignment, opened.book, student_id)
            _require_answerable(_questions(made, report), number, answer)
            if not made.inquiries[number - 1].is_open:
                raise AskingRefused("This question has just been settled: your report will say how.")
            revision = record_explanation(opened, student_id, number, answer)
            _require_recorded(revision, opened, f"an answer of {student_id}")

    @contextmanager
    def _class_of(self, student_id: str) -> Iterator[ClassSession]:
        """The class, for what a student adds to it: it changes no total.

        If one would change, staff has not scored the class again yet, and nothing is recorded.
        """
        request = replace(self.session, who=student_id)
        with self._turn, class_session(request, clock=self.clock, on_catch_up=lambda _: None) as opened:
            yield replace(opened, review=lambda changes, _: not changes)

    @contextmanager
    def _opened(self) -> Iterator[tuple[Assignment, Gradebook]]:
        """The assignment and the gradebook, to be read."""
        asked = self.session
        with (
            in_use(asked.out),
            Gradebook(asked.out, asked.gradebook, assignment_id=asked.assignment_id) as book,
        ):
            yield located_course(asked.course).assignment(asked.assignment_id or ""), book


def _score(assignment: Assignment, book: Gradebook, student_id: str) -> Score:
    return score(
        assignment,
        book.evidence(student_id),
        edits=book.edits(student_id),
        history=book.student_history(student_id, attempts=assignment.compares_attempts),
    )


def _asking(assignment: Assignment, made: Score, report: str, now: datetime) -> Asking | None:
    titles, rules = assignment.target_titles(), assignment.regrade_rules
    asked = tuple(
        AskedPoints(titles.get(one.target, one.target), _as_released(one, report)) for one in made.requests
    )
    if rules is None:
        return Asking(closed="No more requests are taken.", asked=asked) if asked else None
    if made.released is None or made.withholds(now):
        return Asking(closed="Your grade has not been released yet.", asked=asked)
    until = made.released.last + timedelta(days=rules.days)
    left = max(0, rules.most - len(made.requests))
    closed = ""
    if now > until:
        closed = f"Requests ended on {stamp(until)}."
    elif not left:
        closed = f"You have made {counted(rules.most, 'request')}; no more are allowed."
    having_points = dict(line_points(made))
    waiting = {one.request.target for one in asked if one.request.is_open}
    items = tuple(
        (target, titles[target])
        for target in assignment.mark_targets()
        if target in having_points and target not in waiting
    )
    return Asking(items, left, until, closed, asked)


def _as_released(request: RegradeRequest, report: str) -> RegradeRequest:
    """A request as the student may know it: without an answer that the report does not have."""
    if request.is_open or f'id="{request.answer_anchor}"' in report:
        return request
    return replace(request, answer="", answered=None, after=None)


def _questions(made: Score, report: str) -> tuple[Inquiry, ...]:
    """The questions as the student may know them: those that the report has, as decided there."""
    released = (one for one in made.inquiries if f'id="{one.anchor}"' in report)
    return tuple(
        one
        if one.is_open or f'id="{one.outcome_anchor}"' in report
        else replace(one, outcome=None, reason="", settled=None, target="", before=None, after=None)
        for one in released
    )


def _require_answerable(questions: Sequence[Inquiry], number: int, answer: str) -> None:
    """Check an answer to a question.

    Raises:
        AskingRefused: It cannot be taken.
    """
    question = next((one for one in questions if one.number == number), None)
    if question is None:
        raise AskingRefused("There is no such question.")
    if not question.is_open:
        raise AskingRefused("This question is settled. Write to your teaching assistants.")
    if not answer:
        raise AskingRefused("Your answer is empty. Write one, then send it again.")
    if len(answer) > LONGEST_ANSWER:
        raise AskingRefused(
            f"Your answer has {len(answer)} characters, and at most {LONGEST_ANSWER} are taken. Shorten it."
        )


def _require_possible(asking: Asking, target: str, words: str) -> None:
    """Check a request.

    Raises:
        AskingRefused: It cannot be taken.
    """
    if asking.closed:
        raise AskingRefused(asking.closed)
    if any(one.request.is_open and one.request.target == target for one in asking.asked):
        raise AskingRefused("You have asked about this already. Wait for the answer.")
    if target not in dict(asking.items):
        raise AskingRefused("Choose one of the items that are listed.")
    if not words:
        raise AskingRefused("Say what was overlooked or misread: a request needs a reason.")
    if len(words) > LONGEST_REASON:
        raise AskingRefused(
            f"The reason has {len(words)} characters, and at most {LONGEST_REASON} are taken. Shorten it."
        )


def _require_recorded(revision: Revision, opened: ClassSession, what: str) -> None:
    """Refuse what was not recorded: see `_class_of`.

    Raises:
        UsageError: It was not.
    """
    if not revision.recorded:
        raise UsageError(
            f"{opened.out}: {what} was not taken, because totals are not those of the current rubric. Run "
            "`grader regrade`."
        )


__all__ = [
    "LONGEST_ANSWER",
    "LONGEST_REASON",
    "AskedPoints",
    "Asking",
    "AskingRefused",
    "OwnMatters",
    "RequestDesk",
]
