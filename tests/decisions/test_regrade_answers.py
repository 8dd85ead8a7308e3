"""Answers to regrade requests tell students the points that count, for all who handed in together."""

from pathlib import Path

import pytest

from grader.decisions.marking import NewMark, set_mark
from grader.decisions.regrade_answers import GivenAnswers, NewAnswer, answer_requests
from grader.decisions.regrade_requests import NewRequest, take_requests
from grader.domain.errors import UsageError
from grader.publishing.publication import PublicationRequest, publish_class
from grader.results.session import ClassSession
from grader.scoring import line_points
from tests.scripted_terms import DAY, START, STUDENT, Term

MATE = "400101205"
LAB, ITEM = "lab", "report"
REQUESTS = "[regrade_requests]\ndays = 7\nmost = 3\n"


@pytest.fixture
def term(tmp_path: Path) -> Term:
    made = Term(tmp_path)
    made.course()
    return made


@pytest.fixture
def team(term: Term) -> Term:
    """Two who handed in together."""
    term.assignment(LAB, START, REQUESTS, report=True)
    for student in (STUDENT, MATE):
        term.hand_in(LAB, START, 10, student=student, files="same", team=(STUDENT, MATE))
    return term


def asked(session: ClassSession, *students: str) -> None:
    publish_class(session, PublicationRequest(session.out.parent / "published"))
    take_requests(session, [NewRequest(student, ITEM, "Part b is on page 4.") for student in students])


def told(given: GivenAnswers, student: str) -> tuple[float | None, float | None, float | None]:
    """(the points before, those that the answer tells, those that count)."""
    score = given.revision.score(student)
    [request] = score.requests
    return request.before, request.after, dict(line_points(score))[ITEM]


def test_who_asks_now_is_not_too_early_by_another_machines_clock(team: Term) -> None:
    with team.book(LAB) as book:
        publish_class(team.session(LAB, book), PublicationRequest(team.root / "published", partial=True))
        team.now -= DAY / 1000
        session = team.session(LAB, book)
        new = NewRequest(STUDENT, "parts", "It does all of it.")
        assert len(take_requests(session, [new]).taken) == 1


def test_of_a_resubmission_the_share_that_counts_is_told(term: Term) -> None:
    term.assignment(LAB, START, f"[resubmission]\ndays = 7\nregains = 0.5\n\n{REQUESTS}", report=True)
    for came, points in ((START - DAY, 4), (START + 3 * DAY, 10)):
        term.now = came + DAY
        term.hand_in(LAB, came, 10)
        term.mark(LAB, points)
    with term.book(LAB) as book:
        session = term.session(LAB, book)
        asked(session, STUDENT)
        given = answer_requests(session, [NewAnswer(STUDENT, ITEM, "It is.", 18.0)])
    assert told(given, STUDENT) == (7, 11, 11)
    assert [str(note) for note in given.notes] == [f"{STUDENT} gets 18 for 'report', and 11 count."]
    page = term.page(LAB)
    assert "7 → 11 points." in page and "→ 18 points" not in page


@pytest.mark.parametrize("first", [STUDENT, MATE])
def test_points_that_a_mates_answer_changes_do_not_stay(team: Term, first: str) -> None:
    answers = [NewAnswer(STUDENT, ITEM, "Yes, 18.", 18.0), NewAnswer(MATE, ITEM, "Read your partner's.")]
    with team.book(LAB) as book:
        session = team.session(LAB, book)
        set_mark(session, NewMark(STUDENT, ITEM, 10, "Read."))
        asked(session, STUDENT, MATE)
        given = answer_requests(session, sorted(answers, key=lambda answer: answer.student_id != first))
    assert told(given, STUDENT) == told(given, MATE) == (10, 18, 18)
    assert [str(note) for note in given.notes] == [
        f"The points of {MATE} for 'report' do not stay: with the team's new mark, 18 count."
    ]
    assert {(mark.student_id, mark.points, mark.why) for mark in given.marks} == {
        (STUDENT, 18, "Yes, 18."),
        (MATE, 18, "Yes, 18."),
    }


def test_one_team_gets_the_same_points(team: Term) -> None:
    with team.book(LAB) as book:
        session = team.session(LAB, book)
        set_mark(session, NewMark(STUDENT, ITEM, 10, "Read."))
        asked(session, STUDENT, MATE)
        half = NewAnswer(MATE, ITEM, "Half of it.", 12.0, "requests.csv, row 3")
        before = len(book.edits())
        with pytest.raises(UsageError) as caught:
            answer_requests(session, [NewAnswer(STUDENT, ITEM, "Yes.", 18.0), half])
        assert str(caught.value).splitlines() == [
            f"requests.csv, row 3: {STUDENT} and {MATE} handed in together, and get 18 and 12 for 'report'. "
            "Give both the same, or first give one of them a mark alone: `grader marks set ... --alone`.",
            "Nothing was taken.",
        ]
        assert len(book.edits()) == before
        both = [NewAnswer(student, ITEM, f"Yes, {student}.", 18.0) for student in (STUDENT, MATE)]
        given = answer_requests(session, both)
    assert told(given, STUDENT) == told(given, MATE) == (10, 18, 18)
    assert given.notes == () and [mark.comment for mark in given.marks] == [
        f"Read. Yes, {STUDENT}.",
        f"Read. Yes, {MATE}.",
    ]


def test_members_with_marks_of_their_own_get_answers_of_their_own(team: Term) -> None:
    with team.book(LAB) as book:
        session = team.session(LAB, book)
        for student, points in ((STUDENT, 10), (MATE, 8)):
            set_mark(session, NewMark(student, ITEM, points, "Read.", alone=True))
        asked(session, STUDENT, MATE)
        given = answer_requests(
            session, [NewAnswer(STUDENT, ITEM, "Yes.", 18.0), NewAnswer(MATE, ITEM, "Half.", 12.0)]
        )
    assert told(given, STUDENT) == (10, 18, 18) and told(given, MATE) == (8, 12, 12)
