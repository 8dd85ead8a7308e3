"""Answers regrade requests: a sentence for the student, and new points where they change.

New points are a mark like any other, for the whole team that handed in together. An answer records the points
that count with all new marks, which a rule on resubmissions may change. Nothing is taken of several answers
while one of them cannot be. It never reads or writes files.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

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
from grader.domain.formatting import points, printable
from grader.domain.score import Score
from grader.domain.submission_result import Result, shared_by
from grader.gradebook import Snapshot
from grader.results.current_state import points_with
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
        current = dict(line_points(score)).get(edit.target)
        comment = mark.comment if mark is not None and mark.points is not None else ""
        found.append(OpenRequest(edit, titles[edit.target], current, maxima[edit.target], comment))
    return tuple(found)


def stray_requests(assignment: Assignment, snapshot: Snapshot) -> tuple[RegradeAsked, ...]:
    """The requests without an answer about items that the rubric has lost; an answer gives no points."""
    maxima = assignment.mark_targets()
    return tuple(
        edit
        for edit in unanswered(snapshot.edits)
        if edit.student_id in snapshot.evidence and edit.target not in maxima
    )


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
        notes: What stays as it is for others of a team, and where other points count than an answer says.
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
        made = writer.edits(answers)
        if writer.faults:
            raise UsageError("\n".join([*writer.faults, "Nothing was taken."]))
        notes = writer.notes
        return made

    revision = session.revised("answer", decide=decide, allow_lower=allow_lower)
    given = [edit for edit in revision.edits if isinstance(edit, RegradeAnswered)]
    marks = [edit for edit in revision.edits if isinstance(edit, Marked)]
    return GivenAnswers(tuple(given), tuple(marks), tuple(notes), revision)


@dataclass(frozen=True)
class _Accepted:
    """An answer that can be given.

    Attributes:
        student_id: As the gradebook has it.
        answer: With single spaces.
        before: The points that count now; None: they are open.
        given: The new points; None: they stay.
    """

    new: NewAnswer
    student_id: str
    answer: str
    before: float | None
    given: float | None

    @property
    def key(self) -> tuple[str, str]:
        """The student and the item."""
        return self.student_id, self.new.target


class _AnswerWriter:
    """Turns answers into edits.

    Attributes:
        faults: What is wrong with answers, a sentence each.
        notes: What stays as it is for others of a team, and where other points count than an answer says.
    """

    def __init__(self, session: ClassSession, snapshot: Snapshot, results: Sequence[Result]) -> None:
        self._session, self._snapshot = session, snapshot
        self._checks = MarkChecks(session.assignment, tuple(snapshot.evidence))
        self._scores: dict[str, Score] = {result.score.student_id: result.score for result in results}
        self._marks = current_marks(snapshot.edits)
        self._teams = shared_by(snapshot.evidence.values())
        self._open = {(edit.student_id or "", edit.target): edit for edit in unanswered(snapshot.edits)}
        self.faults: list[str] = []
        self.notes: list[MarkNote] = []

    def edits(self, answers: Sequence[NewAnswer]) -> list[Edit]:
        """The new marks, then the answers; they mean nothing if there are faults."""
        accepted = [one for answer in answers if (one := self._accepted(answer)) is not None]
        self._compare_within_teams(accepted)
        if self.faults:
            return []
        marks = self._marked(accepted)
        return [*marks, *(self._answered(one, marks) for one in accepted)]

    def _accepted(self, new: NewAnswer) -> _Accepted | None:
        """The answer; None if it is wrong."""
        student_id = self._checks.known_student(new.student_id) or new.student_id
        answer = " ".join(printable(new.answer).split())
        request = self._open.pop((student_id, new.target), None)
        sentences = list(self._refusals(student_id, new, answer, request))
        if sentences:
            self.faults += [_at(new, student_id, sentence) for sentence in sentences]
            return None
        before = dict(line_points(self._scores[student_id])).get(new.target)
        given = None if new.points is None else as_kept(new.points)
        return _Accepted(new, student_id, answer, before, given)

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

    def _compare_within_teams(self, accepted: Sequence[_Accepted]) -> None:
        """Refuse two answers that give one team different points for one item."""
        for one, other in combinations(accepted, 2):
            if one.new.target != other.new.target or one.given is None or other.given is None:
                continue
            if one.given == other.given or other.student_id not in self._teams.get(one.student_id, ()):
                continue
            if not self._are_marked_apart(one, other):
                sentence = (
                    f"{one.student_id} and {other.student_id} handed in together, and get "
                    f"{points(one.given)} and {points(other.given)} for '{one.new.target}'. Give both the "
                    "same, or first give one of them a mark alone: `grader marks set ... --alone`."
                )
                self.faults.append(_at(other.new, other.student_id, sentence))

    def _are_marked_apart(self, one: _Accepted, other: _Accepted) -> bool:
        marks = [mark_of(self._marks.get(answer.key)) for answer in (one, other)]
        return marks[0] != marks[1] and all(mark.points is not None for mark in marks)

    def _marked(self, accepted: Sequence[_Accepted]) -> list[Marked]:
        """The new marks, for whole teams."""
        marked = {one.key: one for one in accepted if one.given is not None and one.given != one.before}
        entries = {key: self._entry(one) for key, one in marked.items()}
        all_entries, notes = with_mates(entries, self._marks, self._teams)
        self.notes += notes
        who, when = self._session.who, self._session.clock()
        edits = []
        for entry in all_entries:
            members = (entry.student_id, *self._teams.get(entry.student_id, ()))
            reason = next(
                marked[student_id, target].answer
                for (student_id, target), own in entries.items()
                if student_id in members and own.mark == entry.mark and target == entry.target
            )
            edits += edits_of([entry], self._session.assignment, who=who, when=when, why=reason)
        return edits

    def _entry(self, one: _Accepted) -> Entry:
        before = self._marks.get(one.key)
        earlier = mark_of(before)
        comment = " ".join(filter(None, (earlier.comment, one.answer)))
        mark = Mark(one.given, comment, earlier.remarks)
        texts = before.remarks if before is not None else ()
        return Entry(one.new.place, one.student_id, one.new.target, mark, before, texts=texts)

    def _answered(self, one: _Accepted, marks: Sequence[Marked]) -> RegradeAnswered:
        """The answer with the points that count after all new marks."""
        assignment, target = self._session.assignment, one.new.target
        counting = points_with(assignment, self._snapshot, one.student_id, marks).get(target)
        said = one.before if one.given is None else one.given
        if counting != said:
            count = "none count yet" if counting is None else f"{points(counting)} count"
            if one.given is None:
                sentence = (
                    f"The points of {one.student_id} for '{target}' do not stay: with the team's new mark, "
                    f"{count}."
                )
            else:
                sentence = f"{one.student_id} gets {points(one.given)} for '{target}', and {count}."
            self.notes.append(MarkNote(one.new.place, sentence))
        return RegradeAnswered(
            who=self._session.who,
            when=self._session.clock(),
            why=one.answer,
            student_id=one.student_id,
            target=target,
            points=counting,
        )


def _at(new: NewAnswer, student_id: str, sentence: str) -> str:
    """A fault with its place."""
    return printable(f"{new.place or f'{student_id} {new.target}'}: {sentence}")
