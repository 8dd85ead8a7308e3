"""Asks students about what looks suspicious in their work, takes their answers, and records what follows.

A person chooses each question; nothing is asked by itself. It quotes the line, names no other student, and
takes no points. What follows is decided by a person, with a reason, after the student could answer; points
change by a mark of that student alone. It never finds anything suspicious and never scores.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from grader.decisions.corrections import stated
from grader.decisions.mark_entries import Entry, Mark, MarkChecks, MarkFault, MarkField, edits_of, mark_of
from grader.decisions.marking_sheet import current_marks
from grader.domain.analyzed_program import Place, cell_number, line_at, place_of
from grader.domain.edit import Edit, InquiryAsked, InquiryExplained, InquirySettled, Marked
from grader.domain.errors import UsageError
from grader.domain.evidence import Evidence
from grader.domain.formatting import clipped, listed, percent, printable
from grader.domain.inquiry import NEED_A_LINE, QUESTIONS, Inquiry, InquiryOutcome
from grader.domain.oral_check import OralReason
from grader.domain.score import Score
from grader.domain.submission_result import Result
from grader.gradebook import Snapshot
from grader.results.current_state import points_with
from grader.results.revision import Revision
from grader.results.session import ClassSession
from grader.scoring import line_points

EXAMPLE = "homework.py:41, or 'cell 9, line 3'"
LONGEST_ANSWER = 2000  # characters


@dataclass(frozen=True)
class NewInquiry:
    """A question to a student.

    Attributes:
        line: The line that it is about, as reports name places; empty: none.
        question: In staff's words; empty: the usual question for that suspicion.
    """

    student_id: str
    about: OralReason
    line: str = ""
    question: str = ""


def ask_student(session: ClassSession, new: NewInquiry) -> Revision:
    """Ask a student about the work. It takes no points.

    Raises:
        UsageError: There is no such student or line, the question is missing or names another student, or
            the same was asked and is open.
    """
    session.require_student(new.student_id)

    def decide(snapshot: Snapshot, results: Sequence[Result]) -> Sequence[Edit]:
        score, evidence = _score(results, new.student_id), snapshot.evidence[new.student_id]
        place, quoted = _quoted(evidence, score, new)
        question = " ".join(printable(new.question).split()) or QUESTIONS.get(new.about, "")
        if not question:
            raise UsageError("The question is empty. Say what the student is asked: --question.")
        _require_nobody_else(question, new.student_id, snapshot.evidence.values())
        if any(one.is_open and (one.place, one.question) == (place, question) for one in score.inquiries):
            raise UsageError(f"'{new.student_id}' was asked this already, and it is open.")
        return [
            InquiryAsked(
                who=session.who,
                when=session.clock(),
                why=question,
                student_id=new.student_id,
                about=new.about,
                place=place,
                quoted=quoted,
            )
        ]

    return session.revised("inquiry", decide=decide)


def record_explanation(
    session: ClassSession, student_id: str, number: int, words: str, *, explained: datetime | None = None
) -> Revision:
    """Record what the student answers to a question; until it is settled, a later answer replaces it.

    Args:
        explained: When the student answered; None: now.

    Raises:
        UsageError: There is no such question, it is settled, or the answer is empty or too long.
    """
    session.require_student(student_id)
    answer = " ".join(printable(words).split())
    if not answer:
        raise UsageError("The answer is empty. Write what the student says: --why.")
    if len(answer) > LONGEST_ANSWER:
        raise UsageError(f"The answer has {len(answer)} characters, and at most {LONGEST_ANSWER} are kept.")

    def decide(_: Snapshot, results: Sequence[Result]) -> Sequence[Edit]:
        inquiry = _open_inquiry(_score(results, student_id), number)
        if inquiry.explanation == answer:
            return []
        now = session.clock()
        return [
            InquiryExplained(
                who=session.who,
                when=now,
                why=answer,
                student_id=student_id,
                number=number,
                explained=explained or now,
            )
        ]

    return session.revised("inquiry", decide=decide)


@dataclass(frozen=True)
class Settlement:
    """What a person decides about a question.

    Attributes:
        outcome: None: the decision is taken back, and the question is open again.
        why: The reason: the student reads it.
        target, points: The rubric item whose points change, and its new points; empty, None: none do.
        unanswered: Decide although the student has not answered.
    """

    student_id: str
    number: int
    outcome: InquiryOutcome | None
    why: str
    target: str = ""
    points: float | None = None
    unanswered: bool = False


def settle_inquiry(session: ClassSession, new: Settlement, *, allow_lower: bool = False) -> Revision:
    """Record what follows from a question: nothing, or that it is as suspected, perhaps with new points.

    Args:
        allow_lower: Grades that were released may fall.

    Raises:
        UsageError: There is no such question, item or reason, the points are not allowed, the student has not
            answered, or a released grade would fall.
    """
    session.require_student(new.student_id)
    reason = stated(new.why)
    if new.points is not None and new.outcome is not InquiryOutcome.CONFIRMED:
        raise UsageError("Only what is confirmed changes points. Leave ITEM and POINTS out.")

    def decide(snapshot: Snapshot, results: Sequence[Result]) -> Sequence[Edit]:
        score = _score(results, new.student_id)
        settled = InquirySettled(
            who=session.who,
            when=session.clock(),
            why=reason,
            student_id=new.student_id,
            number=new.number,
            outcome=new.outcome,
        )
        if new.outcome is None:
            if _inquiry(score, new.number).is_open:
                raise UsageError(
                    f"Question {new.number} of '{new.student_id}' is open: nothing to take back."
                )
            return [settled]
        inquiry = _open_inquiry(score, new.number)
        if inquiry.explained is None and not new.unanswered:
            raise UsageError(
                f"'{new.student_id}' has not answered question {new.number}. Wait for the answer, or add "
                "--unanswered."
            )
        if new.points is None:
            return [settled]
        mark = _mark(session, snapshot, replace(new, why=reason))
        before = dict(line_points(score)).get(new.target)
        counting = points_with(session.assignment, snapshot, new.student_id, [mark]).get(new.target)
        after = mark.points if counting is None else counting
        return [mark, replace(settled, target=new.target, before=before, points=after)]

    return session.revised("inquiry", decide=decide, allow_lower=allow_lower)


def _score(results: Sequence[Result], student_id: str) -> Score:
    return next(result.score for result in results if result.score.student_id == student_id)


def _inquiry(score: Score, number: int) -> Inquiry:
    if not 0 < number <= len(score.inquiries):
        there = f"There are 1 to {len(score.inquiries)}." if score.inquiries else "There is none."
        raise UsageError(f"'{score.student_id}' has no question {number}. {there}")
    return score.inquiries[number - 1]


def _open_inquiry(score: Score, number: int) -> Inquiry:
    inquiry = _inquiry(score, number)
    if not inquiry.is_open:
        raise UsageError(
            f"Question {number} of '{score.student_id}' is {inquiry.outcome}. `grader inquiries settle` with "
            "`none` takes that back."
        )
    return inquiry


def _mark(session: ClassSession, snapshot: Snapshot, new: Settlement) -> Marked:
    """The mark of the student alone: nobody else of a team was asked."""
    checks = MarkChecks(session.assignment, tuple(snapshot.evidence))
    target = checks.target(new.target)
    if isinstance(target, MarkFault):
        raise UsageError(f"{MarkField.ITEM.value}: {target}")
    points = new.points if new.points is not None else 0.0
    if fault := checks.points_fault(points, new.target):
        raise UsageError(f"{MarkField.POINTS.value}: {fault}")
    before = current_marks(snapshot.edits).get((new.student_id, new.target))
    earlier = mark_of(before)
    comment = " ".join(filter(None, (earlier.comment, new.why)))
    texts = before.remarks if before is not None else ()
    mark = Mark(points, comment, earlier.remarks)
    entry = Entry("", new.student_id, new.target, mark, before, texts=texts)
    [edit] = edits_of([entry], session.assignment, who=session.who, when=session.clock(), why=new.why)
    return edit


# --- what is quoted --------------------------------------------------------------------------------------


def _quoted(evidence: Evidence, score: Score, new: NewInquiry) -> tuple[str, str]:
    """(the place that a question is about, what stands there)."""
    if new.line.strip():
        place = _place(evidence.source or {}, new.line.strip())
        line = line_at(evidence.source, place)
        if not line:
            raise UsageError(f"'{new.student_id}' has no line {new.line.strip()}, or it is empty.")
        return str(place), clipped(line, 400)
    if new.about in NEED_A_LINE:
        raise UsageError(f"Say which line the question is about: --line, as {EXAMPLE}.")
    if new.about is OralReason.CLAIM and score.claim is not None:
        claim = score.claim
        return claim.source, clipped(printable(claim.text), 400) or percent(claim.accuracy)
    return "", ""


def _place(source: Mapping[str, str], line: str) -> Place:
    """A place that somebody typed, as the source names it.

    Raises:
        UsageError: It names no line.
    """
    place = place_of(line)
    if place is None:
        raise UsageError(f"'{line[:60]}' names no line. Write it as reports do: {EXAMPLE}.")
    number = cell_number(place.file)
    same = [file for file in source if number is not None and cell_number(file) == number]
    return replace(place, file=same[0]) if same and place.file not in source else place


def _require_nobody_else(question: str, student_id: str, class_evidence: Iterable[Evidence]) -> None:
    """Check that a question tells the student nothing of others.

    Raises:
        UsageError: It names another student.
    """
    words = {word.casefold() for word in re.findall(r"[\w-]+", question)}
    others = [one for one in class_evidence if one.student_id != student_id]
    named = sorted(one.student_id for one in others if one.student_id.casefold() in words)
    named += [one.student_id for one in others if _is_named(one.origin.person, words)]
    if named:
        raise UsageError(
            f"The question names {listed(sorted(set(named)))}, and the student reads it. Ask without naming "
            "others."
        )


def _is_named(person: str, words: Collection[str]) -> bool:
    """Whether the whole name of a person is among the words."""
    parts = {part.casefold() for part in re.findall(r"[\w-]+", person)}
    return len(parts) > 1 and parts <= set(words)
