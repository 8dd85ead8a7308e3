"""Tries with feedback in `grader grade`: what a student's report leaves out, and until when."""

from pathlib import Path
from typing import Any

import pytest

from grader.decisions.corrections import waive_check
from grader.decisions.last_word import rule
from grader.decisions.regrade_requests import NewRequest, take_requests
from grader.domain.edit import Released
from grader.domain.errors import CourseError, UsageError
from grader.publishing.publication import PublicationRequest, publish_class
from grader.publishing.push import release_of
from grader.results.session import SessionRequest
from grader.student_web.own_requests import RequestDesk
from tests.scripted_terms import DAY, START, STUDENT, Term

LAB = "lab"
HIDDEN_CHECK = "It does hidden_"


@pytest.fixture
def term(tmp_path: Path) -> Term:
    """One assignment with two tries, each graded an hour after it came."""
    made = Term(tmp_path)
    made.course()
    made.assignment(LAB, START, "[tries]\nfeedback = 2\n", report=True)
    return made


def hand_in(term: Term, days: float, passed: int) -> str:
    """The report of a submission that came so long before the deadline."""
    term.now = START - days * DAY + DAY / 24
    term.hand_in(LAB, START - days * DAY, passed)
    return term.page(LAB)


def test_the_report_has_feedback_until_the_tries_are_used(term: Term) -> None:
    first = hand_in(term, 5, 4)
    assert HIDDEN_CHECK in first and "Try 1 of 2 with feedback on hidden checks, 1 left." in first
    assert HIDDEN_CHECK in hand_in(term, 4, 5)
    third = hand_in(term, 3, 1)
    assert HIDDEN_CHECK not in third and "It does public_1" in third
    assert "None of the 2 tries with feedback on hidden checks is left" in third
    assert "<b>10</b> of 100" not in third, "the points would tell what hidden checks found"


def test_the_gradebook_and_the_staff_have_everything(term: Term) -> None:
    for days in (5, 4, 3):
        hand_in(term, days, 6)
    record = term.record(LAB)
    assert (record["total"], len(record["findings"])) == (60, 10)
    assert (record["tries"]["shown"], record["tries"]["number"], record["tries"]["left"]) == (False, 3, 0)


@pytest.mark.parametrize("command", ["grade", "regrade"])
def test_after_the_deadline_everything_is_shown(term: Term, command: str) -> None:
    for days in (5, 4, 3):
        hand_in(term, days, 6)
    assert HIDDEN_CHECK not in term.page(LAB)
    term.now = START + DAY
    if command == "regrade":
        term.regrade(LAB)
    else:
        term.hand_in(LAB, START - DAY, 3, student="400101205")
    page = term.page(LAB)
    assert HIDDEN_CHECK in page and "tries with feedback" not in page


def test_an_update_after_the_deadline_publishes_what_was_left_out(term: Term) -> None:
    for days in (5, 4, 3):
        hand_in(term, days, 6)
    to = term.root / "published"
    page = to / "students" / STUDENT / "report.html"
    with term.book(LAB) as book:
        publish_class(term.session(LAB, book), PublicationRequest(to, partial=True))
        assert HIDDEN_CHECK not in page.read_text("utf-8")
        term.now = START + DAY
        publish_class(term.session(LAB, book), PublicationRequest(to, updates=True, partial=True))
    assert HIDDEN_CHECK in page.read_text("utf-8")


def test_points_that_a_page_withholds_are_not_released_by_it(term: Term) -> None:
    """Nothing was released, so that nothing has changed since, and the student cannot ask for the points."""
    for days in (5, 4, 3):
        hand_in(term, days, 6)
    to = term.root / "published"
    with term.book(LAB) as book:
        session = term.session(LAB, book)
        waive_check(session, "hidden_7", why="The handout did not ask for it.")
        publish_class(session, PublicationRequest(to, partial=True))
        assert not [edit for edit in book.edits(STUDENT) if isinstance(edit, Released)]
        term.now = START + DAY
        session = term.session(LAB, book)
        waive_check(session, "hidden_7", why="It did.", undo=True)
        assert "Changed since" not in term.page(LAB)
        publish_class(session, PublicationRequest(to, updates=True, partial=True))
        assert [edit.points for edit in book.edits(STUDENT) if isinstance(edit, Released)] == [60]


def test_a_page_that_withholds_points_needs_no_review(term: Term) -> None:
    term.assignment(LAB, START, "[tries]\nfeedback = 1\n\n[review]\nrequired = true\n", report=True)
    for days in (5, 4):
        hand_in(term, days, 6)
    to = term.root / "published"
    with term.book(LAB) as book:
        done = publish_class(term.session(LAB, book), PublicationRequest(to, partial=True))
        assert not done.left_out and (to / "students" / STUDENT / "report.html").is_file()
        term.now = START + DAY
        done = publish_class(term.session(LAB, book), PublicationRequest(to, updates=True, partial=True))
        assert done.left_out == (f"{STUDENT}: left out until somebody has reviewed them (`grader review`).",)


def test_withheld_points_cannot_be_disputed(term: Term) -> None:
    """The request would tell them."""
    term.assignment(
        LAB, START, "[tries]\nfeedback = 1\n\n[regrade_requests]\ndays = 7\nmost = 3\n", report=True
    )
    hand_in(term, 5, 6)
    asked = [NewRequest(STUDENT, "parts", "It does all of it.")]
    with term.book(LAB) as book:
        publish_class(term.session(LAB, book), PublicationRequest(term.root / "published", partial=True))
    hand_in(term, 4, 7)
    with term.book(LAB) as book:
        with pytest.raises(UsageError, match="the student sees these points after the deadline only"):
            take_requests(term.session(LAB, book), asked)
        folder = SessionRequest(
            term.out(LAB), "", LAB, term.root / "course", f"sqlite:///{term.root / 'course.sqlite'}"
        )
        asking = RequestDesk(folder, lambda: term.now).matters(STUDENT, "").asking
        assert asking is not None and asking.closed == "Your grade has not been released yet."
        term.now = START + DAY
        assert len(take_requests(term.session(LAB, book), asked).taken) == 1


def test_what_is_handed_out_after_the_deadline_leaves_nothing_out(term: Term) -> None:
    """An export and a push hand out the report of the folder, which nothing may have written again."""
    for days in (5, 4, 3):
        hand_in(term, days, 6)
    term.mark(LAB, 20)
    before = term.page(LAB)
    with term.book(LAB) as book:
        release = release_of(term.session(LAB, book), partial=False)
        assert HIDDEN_CHECK not in release.reports([STUDENT])[STUDENT].decode()
        term.now = START + DAY
        release = release_of(term.session(LAB, book), partial=False)
        report = release.reports([STUDENT, "400101299"])[STUDENT].decode()
    assert HIDDEN_CHECK in report and "tries with feedback" not in report
    assert term.page(LAB) == before, "a folder may only be read when it is exported"


@pytest.mark.parametrize(
    ("handed_in", "told", "never"),
    [
        (
            {"missing": ("report",)},
            "A required file is missing, so the total is withheld",
            "the total counts all the same",
        ),
        (
            {"status": "refused", "reason": "homework.py cannot be read."},
            "Nothing in this submission could be graded",
            "the rest counts",
        ),
    ],
)
def test_a_total_that_is_withheld_stays_withheld(
    term: Term, handed_in: dict[str, Any], told: str, never: str
) -> None:
    for days in (5, 4, 3):
        term.now = START - days * DAY
        term.hand_in(LAB, term.now, 0 if "status" in handed_in else 5, **handed_in)
    page = term.page(LAB)
    assert told in page and never not in page
    term.mark(LAB, 20)
    with term.book(LAB) as book:
        session = term.session(LAB, book)
        rule(session, [STUDENT], why="The rule of the course.")
        assert f"{told.partition(',')[0]}: 0 points" in term.page(LAB) and "<b>20</b> of" not in term.page(
            LAB
        )
        rule(session, [STUDENT], lift=True, why="It counts this once.")
    assert never in term.page(LAB)


def test_the_same_files_again_use_no_further_try(term: Term) -> None:
    term.now = START - 2 * DAY
    for _ in range(3):
        term.hand_in(LAB, START - 3 * DAY, 5, files="the same")
    assert HIDDEN_CHECK in term.page(LAB)
    assert term.record(LAB)["tries"]["number"] == 1


def test_a_deadline_of_ones_own_is_the_end_of_the_tries(term: Term) -> None:
    for days in (5, 4, 3):
        hand_in(term, days, 6)
    term.now = START + DAY
    term.regrade(LAB, extensions={STUDENT: START + 2 * DAY}, source="list.csv")
    assert HIDDEN_CHECK not in term.page(LAB), "it could be handed in again with what the report says"


@pytest.mark.parametrize(
    ("table", "told"), [("feedback = -1\n", "at least 0"), ("feedback = 1.5\n", "a whole number")]
)
def test_an_assignment_says_what_is_wrong_with_the_table(term: Term, table: str, told: str) -> None:
    term.assignment(LAB, START, f"[tries]\n{table}")
    with pytest.raises(CourseError, match=told):
        term.read(LAB)


def test_tries_need_a_deadline(term: Term) -> None:
    path = term.root / "course" / "reference" / LAB / "assignment.toml"
    path.write_text(path.read_text().replace("deadline", "# deadline"))
    with pytest.raises(CourseError, match=r"\[tries\] has no deadline to count up to"):
        term.read(LAB)
