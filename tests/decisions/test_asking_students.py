"""What looks suspicious is put to the student as a question with the line, and takes nothing by itself."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from grader.decisions.asking_students import (
    NewInquiry,
    Settlement,
    ask_student,
    record_explanation,
    settle_inquiry,
)
from grader.domain.analyzed_program import Claim
from grader.domain.edit import InquiryAsked, Marked, OwnerAssigned
from grader.domain.errors import UsageError
from grader.domain.inquiry import QUESTIONS, Inquiry, InquiryOutcome
from grader.domain.oral_check import FLAGS, OralReason
from grader.domain.score import Score
from grader.domain.submission import Origin
from grader.gradebook import Gradebook
from grader.grading.result_writer import Keeper
from grader.results.current_state import current_results
from grader.results.session import ClassSession, SessionRequest, class_session
from grader.scoring import line_points
from tests.scripted_terms import DAY, START, STUDENT, Term

NOW = datetime(2026, 2, 1, 12, tzinfo=UTC)
FIRST, SECOND = "400101201", "400101202"
SOURCE = {"homework.py": "import torch\n\nexec(open('x').read())\n", "In [2], cell 4": "a = 1\nb = 2\n"}
NAME = "Person Of-Another-Row"


@pytest.fixture
def session(graded_class: Path, course_root: Path, class_evidence: Any) -> Iterator[ClassSession]:
    """The first has a source with an unusual line and a claim; the second has a name."""
    request = SessionRequest(graded_class, "head", course=course_root)
    with class_session(request, clock=lambda: NOW, on_catch_up=None) as opened:
        keeper = Keeper(opened.assignment, opened.book, graded_class, "ta1")
        claim = Claim(0.99, "report.pdf, page 3", "We reach 99 %.")
        keeper.kept(class_evidence(FIRST, source=SOURCE, claim=claim), {}, NOW)
        keeper.kept(replace(class_evidence(SECOND), origin=Origin(person=NAME)), {}, NOW)
        opened.revised("regrade")
        yield opened


def score(session: ClassSession, student: str = FIRST) -> Score:
    _, results = current_results(session.assignment, session.book, session.out)
    return next(one.score for one in results if one.score.student_id == student)


def question(session: ClassSession, student: str = FIRST) -> Inquiry:
    return score(session, student).inquiries[-1]


def asked(session: ClassSession, **more: Any) -> Inquiry:
    ask_student(
        session,
        NewInquiry(**{"student_id": FIRST, "about": OralReason.CODE, "line": "homework.py:3", **more}),
    )
    return question(session)


def test_every_flag_has_a_question_that_accuses_nobody() -> None:
    assert set(QUESTIONS) == set(FLAGS)
    for words in QUESTIONS.values():
        assert words.endswith("?")
        for accusation in ("copied", "cheat", "plagiar", "suspic", "stole"):
            assert accusation not in words


def test_a_question_quotes_the_line_and_takes_nothing(session: ClassSession) -> None:
    before = score(session)
    one = asked(session)
    assert (one.number, one.place, one.quoted) == (1, "homework.py:3", "exec(open('x').read())")
    assert one.question == QUESTIONS[OralReason.CODE] and one.is_open and not one.to_be_settled
    assert (score(session).lines, score(session).total) == (before.lines, before.total)


@pytest.mark.parametrize("line", ["cell 4, line 2", "In [2], line 2 (cell 4)"])
def test_a_line_of_a_cell_is_found_however_it_is_named(session: ClassSession, line: str) -> None:
    one = asked(session, line=line)
    assert (one.place, one.quoted) == ("In [2], line 2 (cell 4)", "b = 2")


def test_a_claim_quotes_itself(session: ClassSession) -> None:
    one = asked(session, about=OralReason.CLAIM, line="")
    assert (one.place, one.quoted) == ("report.pdf, page 3", "We reach 99 %.")


@pytest.mark.parametrize(
    ("more", "fault"),
    [
        ({"line": ""}, "Say which line the question is about"),
        ({"line": "", "about": OralReason.SIMILAR}, "Say which line"),
        ({"line": "homework.py:2"}, "has no line homework.py:2, or it is empty"),
        ({"line": "homework.py:99"}, "has no line"),
        ({"line": "other.py:1"}, "has no line"),
        ({"line": "somewhere"}, "names no line"),
        ({"about": OralReason.CHOSEN}, "The question is empty"),
        ({"question": f"Is it from {SECOND}?"}, f"names {SECOND}"),
        ({"question": f"Is it {NAME}'s?"}, f"names {SECOND}"),
        ({"student_id": "400101299"}, "there is no student"),
    ],
)
def test_what_no_question_can_be_is_refused(session: ClassSession, more: dict[str, Any], fault: str) -> None:
    rows = len(session.book.edits())
    with pytest.raises(UsageError, match=fault):
        asked(session, **more)
    assert len(session.book.edits()) == rows


def test_the_same_is_not_asked_twice_while_it_is_open(session: ClassSession) -> None:
    asked(session)
    with pytest.raises(UsageError, match="was asked this already"):
        asked(session)
    record_explanation(session, FIRST, 1, "For speed.")
    settle_inquiry(session, Settlement(FIRST, 1, InquiryOutcome.DISMISSED, "Fine."))
    assert asked(session).number == 2


def test_an_answer_can_be_replaced_until_it_is_settled(session: ClassSession) -> None:
    asked(session)
    record_explanation(session, FIRST, 1, "  It runs\nmy setup. ")
    assert question(session).explanation == "It runs my setup." and question(session).to_be_settled
    record_explanation(session, FIRST, 1, "It runs the file of week 3.")
    assert question(session).explanation == "It runs the file of week 3."
    settle_inquiry(session, Settlement(FIRST, 1, InquiryOutcome.DISMISSED, "It is from the handout."))
    with pytest.raises(UsageError, match="is dismissed"):
        record_explanation(session, FIRST, 1, "Something else.")
    with pytest.raises(UsageError, match=r"has no question 2\. There are 1 to 1"):
        record_explanation(session, FIRST, 2, "Something else.")
    with pytest.raises(UsageError, match=r"has no question 1\. There is none"):
        record_explanation(session, SECOND, 1, "x")


def test_only_a_person_with_a_reason_takes_points_and_after_an_answer(session: ClassSession) -> None:
    before = {line.id: line.points for line in score(session).lines}
    asked(session)
    confirmed = Settlement(FIRST, 1, InquiryOutcome.CONFIRMED, "It is not your own.", "model", 3.0)
    with pytest.raises(UsageError, match="has not answered question 1"):
        settle_inquiry(session, confirmed)
    record_explanation(session, FIRST, 1, "I found it.")
    assert {line.id: line.points for line in score(session).lines} == before
    with pytest.raises(UsageError, match="--why is empty"):
        settle_inquiry(session, replace(confirmed, why=" "))
    with pytest.raises(UsageError, match="Only what is confirmed changes points"):
        settle_inquiry(session, replace(confirmed, outcome=InquiryOutcome.DISMISSED))
    with pytest.raises(UsageError, match="the rubric has no 'modell'"):
        settle_inquiry(session, replace(confirmed, target="modell"))
    with pytest.raises(UsageError, match="is not from 0 to"):
        settle_inquiry(session, replace(confirmed, points=999.0))
    assert {line.id: line.points for line in score(session).lines} == before
    settle_inquiry(session, confirmed)
    one, after = question(session), {line.id: line for line in score(session).lines}
    assert (one.outcome, one.target, one.before, one.after) == (
        InquiryOutcome.CONFIRMED,
        "model",
        before["model"],
        3.0,
    )
    assert after["model"].points == 3 and after["model"].comments == ("It is not your own.",)
    marks = [edit for edit in session.book.edits() if isinstance(edit, Marked)]
    assert [(edit.student_id, edit.who, edit.why) for edit in marks] == [
        (FIRST, "head", "It is not your own.")
    ]


def test_the_points_that_are_told_are_those_that_count(tmp_path: Path) -> None:
    """Half of what a resubmission wins back counts: a mark of 16 after one of 4 makes it 10."""
    term = Term(tmp_path)
    term.course()
    term.assignment("lab", START, "[resubmission]\ndays = 7\nregains = 0.5\n", report=True)
    for came, points in ((START - DAY, 4), (START + 3 * DAY, 20)):
        term.now = came + DAY
        term.hand_in("lab", came, 10)
        term.mark("lab", points)
    with term.book("lab") as book:
        session = term.session("lab", book)
        ask_student(session, NewInquiry(STUDENT, OralReason.CLAIM, question="How was it measured?"))
        settlement = Settlement(STUDENT, 1, InquiryOutcome.CONFIRMED, "It was not.", "report", 16.0)
        settle_inquiry(session, replace(settlement, unanswered=True))
        one, line = question(session, STUDENT), dict(line_points(score(session, STUDENT)))["report"]
    assert (one.before, one.after) == (12, 10) and line == 10


def test_without_an_answer_only_if_that_is_said(session: ClassSession) -> None:
    asked(session)
    silent = Settlement(FIRST, 1, InquiryOutcome.CONFIRMED, "No answer in two weeks.", unanswered=True)
    settle_inquiry(session, silent)
    assert question(session).outcome is InquiryOutcome.CONFIRMED and not question(session).target


def test_a_decision_is_taken_back_by_a_new_entry_and_points_stay(session: ClassSession) -> None:
    asked(session)
    record_explanation(session, FIRST, 1, "I found it.")
    with pytest.raises(UsageError, match="nothing to take back"):
        settle_inquiry(session, Settlement(FIRST, 1, None, "x"))
    settle_inquiry(session, Settlement(FIRST, 1, InquiryOutcome.CONFIRMED, "Not your own.", "model", 3.0))
    settle_inquiry(session, Settlement(FIRST, 1, None, "The handout does have it."))
    one = question(session)
    assert one.to_be_settled and (one.reason, one.target) == ("", "")
    assert {line.id: line.points for line in score(session).lines}["model"] == 3
    settle_inquiry(session, Settlement(FIRST, 1, InquiryOutcome.DISMISSED, "From the handout."))
    assert question(session).outcome is InquiryOutcome.DISMISSED


def test_the_mark_is_of_the_student_alone(session: ClassSession, class_evidence: Any) -> None:
    team = (FIRST, SECOND)
    keeper = Keeper(session.assignment, session.book, session.out, "ta1")
    for student in team:
        evidence = class_evidence(student, source=SOURCE, team=team)
        keeper.kept(replace(evidence, submission_digest="team"), {}, NOW)
    before = {line.id: line.points for line in score(session, SECOND).lines}
    asked(session)
    record_explanation(session, FIRST, 1, "I found it.")
    settle_inquiry(session, Settlement(FIRST, 1, InquiryOutcome.CONFIRMED, "Not your own.", "model", 3.0))
    assert {line.id: line.points for line in score(session, SECOND).lines} == before
    assert not score(session, SECOND).inquiries


def test_a_released_grade_falls_only_when_it_may(session: ClassSession) -> None:
    from grader.publishing.releases import note_releases

    asked(session)
    record_explanation(session, FIRST, 1, "I found it.")
    snapshot, results = current_results(session.assignment, session.book, session.out)
    released = {FIRST: score(session).final}
    note_releases(
        session.book, snapshot, results, released, way="publish", who="head", when=NOW, out=session.out
    )
    confirmed = Settlement(FIRST, 1, InquiryOutcome.CONFIRMED, "Not your own.", "model", 3.0)
    with pytest.raises(UsageError, match="A grade that was released would fall"):
        settle_inquiry(session, confirmed)
    assert question(session).is_open, "neither the decision nor the mark was recorded"
    settle_inquiry(session, confirmed, allow_lower=True)
    assert not question(session).is_open


def test_it_stays_with_the_work_when_that_is_anothers(session: ClassSession, graded_class: Path) -> None:
    """A question follows the submission, as marks do."""
    asked(session)
    moved = OwnerAssigned(
        who="head", when=NOW, why="", student_id=FIRST, listed_as="400101277", by_person=True, held=False
    )
    session.revised("owner", decide=lambda *_: [moved])
    assert score(session, "400101277").inquiries[0].place == "homework.py:3"
    with Gradebook(graded_class) as book:
        assert sum(isinstance(edit, InquiryAsked) for edit in book.edits()) == 1
