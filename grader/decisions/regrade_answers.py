"""Answers regrade requests: a sentence for the student, and new points where they change.

New points are a mark like any other, for the whole team that handed in together. Nothing is taken of several
answers while one of them cannot be. It never scores, and it never reads or writes files.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from grader.decisions.mark_entries import (
    Entry,
    Mark,
    MarkChecks,
    MarkField,
    MarkNote,
    as_kept,
    edits_of,
    mark_of,
    with_mates,
)
from grader.decisions.marking_sheet import current_marks
from grader.domain.assignment import Assignment
from grader.domain.edit import Edit, Marked, RegradeAnswered, RegradeAsked
from grader.domain.errors import UsageError
from grader.domain.formatting import printable
from grader.domain.score import Score
from grader.domain.submission_result import Result, shared_by
from grader.gradebook import Snapshot
from grader.results.revision import Revision
from grader.results.session import ClassSession
from grader.scoring import line_points
from grader.scoring.disputed_points import answered_requests


@dataclass(frozen=True)
class OpenRequest:
    """A request that somebody still has to answer.

    Attributes:
        points: The points now; None: they are open.
        maximum: Of the item.
        comment: Of the mark that stands; empty if there is none.
    """

    edit: RegradeAsked
    title: str
    points: float | None
    maximum: float
    comment: str


def open_requests(
    assignment: Assignment, snapshot: Snapshot, results: Sequence[Result]
) -> tuple[OpenRequest, ...]:
    """The requests without an answer, in the order in which they were taken."""
    titles, maxima = assignment.target_titles(), assignment.mark_targets()
    marks = current_marks(snapshot.edits)
    scores = {result.score.student_id: result.score for result in results}
    found = []
    for edit in unanswered(snapshot.edits):
        score = scores.get(edit.student_id or "")
        if score is None or edit.target not in maxima:
            continue  # the rubric has lost the item, or nobody has that id any more
        mark = marks.get((score.student_id, edit.target))
        points = dict(line_points(score)).get(edit.target)
        comment = mark.comment if mark is not None and mark.points is not None else ""
        found.append(OpenRequest(edit, titles[edit.target], points, maxima[edit.target], comment))
    return tuple(found)


def unanswered(edits: Iterable[Edit]) -> list[RegradeAsked]:
    """The requests without an answer, in the order in which they were recorded."""
    return [asked for asked, answer in answered_requests(edits) if answer is None]


@dataclass(frozen=True)
class NewAnswer:
    """An answer to the student's open request about an item.

    Attributes:
        answer: What the student reads.
        points: The new points; None: they stay.
        place: The file and row that it comes from; empty without one.
    """

    student_id: str
    target: str
    answer: str
    points: float | None = None
    place: str = ""


@dataclass(frozen=True)
class GivenAnswers:
    """The outcome of answering.

    Attributes:
        notes: What stays as it is for others of a team.
    """

    answers: tuple[RegradeAnswered, ...]
    marks: tuple[Marked, ...]
    notes: tuple[MarkNote, ...]
    revision: Revision


def answer_requests(
    session: ClassSession, answers: Sequence[NewAnswer], *, allow_lower: bool = False
) -> GivenAnswers:
    """Answer requests, with new points where an answer gives some.

    Args:
        allow_lower: Grades that were released may fall.

    Raises:
        UsageError: Some cannot be given (all of these are listed), or a released grade would fall; nothing
            was taken then.
    """
    notes: Sequence[MarkNote] = ()

    def decide(snapshot: Snapshot, results: Sequence[Result]) -> Sequence[Edit]:
        nonlocal notes
        writer = _AnswerWriter(session, snapshot, results)
        made = [edit for answer in answers for edit in writer.answered(answer)]
        if writer.faults:
            raise UsageError("\n".join([*writer.faults, "Nothing was taken."]))
        notes = writer.notes
        return made

    revision = session.revised("answer", decide=decide, allow_lower=allow_lower)
    given = [edit for edit in revision.edits if isinstance(edit, RegradeAnswered)]
    marks = [edit for edit in revision.edits if isinstance(edit, Marked)]
    return GivenAnswers(tuple(given), tuple(marks), tuple(notes), revision)


class _AnswerWriter:
    """Turns answers into edits.

    Attributes:
        faults: What is wrong with answers, a sentence each.
        notes: What stays as it is for others of a team.
    """

    def __init__(self, session: ClassSession, snapshot: Snapshot, results: Sequence[Result]) -> None:
        self._session = session
        self._checks = MarkChecks(session.assignment, tuple(snapshot.evidence))
        self._scores: dict[str, Score] = {result.score.student_id: result.score for result in results}
        self._marks = current_marks(snapshot.edits)
        self._teams = shared_by(snapshot.evidence.values())
        self._open = {(edit.student_id or "", edit.target): edit for edit in unanswered(snapshot.edits)}
        self.faults: list[str] = []
        self.notes: list[MarkNote] = []

    def answered(self, new: NewAnswer) -> list[Edit]:
        """The edits of an answer: new marks, then the answer itself; none if it is wrong."""
        student_id = self._checks.known_student(new.student_id) or new.student_id
        answer = " ".join(printable(new.answer).split())
        request = self._open.pop((student_id, new.target), None)
        sentences = list(self._refusals(student_id, new, answer, request))
        if sentences:
            place = new.place or f"{student_id} {new.target}"
            self.faults += [printable(f"{place}: {sentence}") for sentence in sentences]
            return []
        before = dict(line_points(self._scores[student_id])).get(new.target)
        points = before if new.points is None else as_kept(new.points)
        marks: list[Edit] = []
        if points is not None and points != before:
            marks += self._marked(student_id, new, points, answer)
        return [
            *marks,
            RegradeAnswered(
                who=self._session.who,
                when=self._session.clock(),
                why=answer,
                student_id=student_id,
                target=new.target,
                points=points,
            ),
        ]

    def _refusals(
        self, student_id: str, new: NewAnswer, answer: str, request: RegradeAsked | None
    ) -> Iterable[str]:
        if request is None:
            yield f"there is no open request of '{student_id}' about '{new.target}'. `grader requests list`."
            return
        if not answer:
            yield "the answer is empty. Say why the points change or stay: the student reads it."
        fault = None if new.points is None else self._checks.points_fault(new.points, new.target)
        if fault is not None:
            yield f"{MarkField.POINTS.value}: {fault}"
        rules = self._session.assignment.regrade_rules
        if rules is not None and rules.by_another and request.marker == self._session.who:
            yield (
                f"{request.marker} gave the disputed points, and in this course somebody else answers "
                '(`answered_by = "another"`).'
            )

    def _marked(self, student_id: str, new: NewAnswer, points: float, answer: str) -> list[Marked]:
        """The new mark, for the whole team."""
        before = self._marks.get((student_id, new.target))
        earlier = mark_of(before)
        comment = " ".join(filter(None, (earlier.comment, answer)))
        mark = Mark(points, comment, earlier.remarks)
        texts = before.remarks if before is not None else ()
        entry = Entry(new.place, student_id, new.target, mark, before, texts=texts)
        entries, notes = with_mates({(student_id, new.target): entry}, self._marks, self._teams)
        self.notes += notes
        who, when = self._session.who, self._session.clock()
        return edits_of(entries, self._session.assignment, who=who, when=when, why=answer)
