"""A student's own deadline: it stays until another one is given, and a released grade never falls by it."""

from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from grader.domain.edit import Released
from grader.domain.submission import Delivery, Submission
from grader.domain.submission_result import Result
from grader.grading.result_writer import Keeper
from tests.scripted_terms import DAY, START, STUDENT, Term

LATE = "[late]\npoints_per_day = 10\n"
LAB = "lab"


@pytest.fixture
def term(tmp_path: Path) -> Term:
    """One assignment that is due at the start, with a rule on late work."""
    made = Term(tmp_path)
    made.course()
    made.assignment(LAB, START, LATE)
    return made


def hand_in(term: Term, came: datetime, deadline: datetime | None = None, **more: Any) -> Result:
    """Grade what came, with or without an own deadline in the command."""
    return term.hand_in(LAB, came, 10, **{"delivery": Delivery(extension=deadline), "files": "same", **more})


def final(term: Term) -> float | None:
    """What is left after lateness."""
    left: float | None = term.record(LAB)["late"]["total_after"]
    return left


def release(term: Term) -> None:
    """Tell the student the grade."""
    points = final(term)

    def released(*_: object) -> list[Released]:
        return [
            Released(
                who="ta1",
                when=term.now,
                why="",
                student_id=STUDENT,
                way="publish",
                points=points,
                lines=(("parts", 100.0),),
            )
        ]

    with term.book(LAB) as book:
        term.session(LAB, book).revised("publish", decide=released)


def graded_again(term: Term, deadline: datetime | None, *, allow_lower: bool = False) -> Result:
    """Grade the same download again, when nothing but the deadline may have changed."""
    submission = Submission(
        STUDENT, LAB, (), "same", received_at=START + 2 * DAY, delivery=Delivery(extension=deadline)
    )
    with term.book(LAB) as book:
        keeper = Keeper(term.read(LAB), book, term.out(LAB), "ta1", allow_lower=allow_lower)
        return keeper.earlier_result(submission, term.now)


def runs(term: Term) -> int:
    with term.book(LAB) as book:
        return len(book.runs(STUDENT))


def test_a_command_that_does_not_mention_the_deadline_leaves_it(term: Term) -> None:
    hand_in(term, START + 2 * DAY, START + 3 * DAY)
    assert graded_again(term, None).score.final == 100 and runs(term) == 1
    assert hand_in(term, START + 2 * DAY).score.final == 100, "nor one that examines everything again"


def test_the_deadline_holds_for_later_attempts(term: Term) -> None:
    hand_in(term, START + 2 * DAY, START + 3 * DAY)
    assert hand_in(term, START + 3 * DAY, files="other").score.final == 100


def test_everybodys_deadline_takes_it_back(term: Term) -> None:
    hand_in(term, START + 2 * DAY, START + 3 * DAY)
    assert graded_again(term, START).score.final == 80
    assert graded_again(term, None).score.final == 80
    assert hand_in(term, START + 3 * DAY, files="other").score.final == 70


def test_a_deadline_that_is_later_for_everybody_is_the_students_too(term: Term) -> None:
    hand_in(term, START + 2 * DAY, START + DAY)
    assert final(term) == 90
    term.assignment(LAB, START + 2 * DAY, LATE)
    term.regrade(LAB)
    assert final(term) == 100 and not term.record(LAB)["late"]["extended"]


def test_a_released_grade_never_falls_by_a_deadline_unless_that_is_allowed(term: Term) -> None:
    hand_in(term, START + 2 * DAY, START + 3 * DAY)
    release(term)
    refused = graded_again(term, START).score
    assert refused.final == 100 and refused.lower is not None and refused.lower.kept
    assert "-> 100 of 100 decided, 80 after lateness. Run 1 counts." in refused.lower.reason
    assert runs(term) == 2
    assert graded_again(term, START).score.final == 100 and runs(term) == 2, "it is not asked about again"
    assert hand_in(term, START + 3 * DAY, files="other").score.final == 100, "what was refused does not hold"


def test_what_is_allowed_to_fall_falls(term: Term) -> None:
    hand_in(term, START + 2 * DAY, START + 3 * DAY)
    release(term)
    graded_again(term, START)
    allowed = graded_again(term, START, allow_lower=True).score
    assert allowed.final == 80 and allowed.lower is None


def test_an_earlier_deadline_than_one_given_while_grading_is_no_new_one(term: Term) -> None:
    hand_in(term, START + 2 * DAY, START + 3 * DAY)
    assert term.regrade(LAB, extensions={STUDENT: START + DAY}, source="list.csv").extensions == 0
    assert term.regrade(LAB, extensions={STUDENT: START + 4 * DAY}, source="list.csv").extensions == 1
    assert term.regrade(LAB, extensions={STUDENT: START + DAY}, source="list.csv").extensions == 1
    assert term.regrade(LAB, extensions={STUDENT: START + DAY}, source="list.csv").extensions == 0
    assert final(term) == 100
