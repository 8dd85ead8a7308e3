"""Late days that last over several assignments of a course, through a whole term."""

from datetime import datetime
from pathlib import Path

import pytest

from grader.domain.errors import CourseError, UsageError
from grader.grading.grade_class import GradeRequest, grade_class
from tests.scripted_terms import DAY, START, STUDENT, Term

OTHER = "400101205"
LATE = "[late]\npoints_per_day = 10\n"
DEADLINES = {"first": START, "second": START + 14 * DAY, "third": START + 28 * DAY}


@pytest.fixture
def term(tmp_path: Path) -> Term:
    """Three assignments, two weeks apart, and three late days for all of them."""
    made = Term(tmp_path)
    made.course("[late]\ntokens = 3\n")
    for name, deadline in DEADLINES.items():
        made.assignment(name, deadline, LATE)
    return made


def late(term: Term, name: str, student: str = STUDENT) -> tuple[int, int | None, float, float]:
    """(late days used, left, points taken off, points after that), as results.json says it."""
    record = term.record(name, student)["late"]
    return record["tokens_used"], record["tokens_left"], record["penalty"], record["total_after"]


def after(name: str, days: float) -> datetime:
    return DEADLINES[name] + days * DAY


def test_a_term_uses_late_days_in_the_order_of_deadlines_until_none_are_left(term: Term) -> None:
    term.hand_in("first", after("first", 1.5), 10)
    term.hand_in("second", after("second", -1), 10)
    term.hand_in("third", after("third", 3), 10)
    assert late(term, "first") == (2, 1, 0, 100)
    assert late(term, "second") == (0, 1, 0, 100), "in time: nothing is used"
    assert late(term, "third") == (1, 0, 20, 80), "three days late, one of them forgiven"


def test_the_report_says_what_was_used_and_what_is_left(term: Term) -> None:
    term.hand_in("first", after("first", 2), 10)
    assert "2 of 3 late days used here, 1 left." in term.page("first")
    term.hand_in("second", after("second", 3), 10)
    reason = "3 days late, of which 2 days at 10 points each: 20 points are taken off, so 100 become 80."
    assert term.record("second")["late"]["reason"] == f"{reason} 1 of 3 late days used here, 0 left."
    term.hand_in("third", after("third", 1), 10)
    assert "None of the 3 late days of the course are left." in term.page("third")


def test_each_student_has_their_own(term: Term) -> None:
    term.hand_in("first", after("first", 3), 10)
    term.hand_in("second", after("second", 2), 10, student=OTHER)
    assert (late(term, "first")[:2], late(term, "second", OTHER)[:2]) == ((3, 0), (2, 1))


def test_an_earlier_assignment_that_is_graded_later_comes_first_all_the_same(term: Term) -> None:
    term.hand_in("second", after("second", 3), 10)
    assert late(term, "second") == (3, 0, 0, 100)
    term.hand_in("first", after("first", 2), 10)
    assert late(term, "first") == (2, 1, 0, 100)
    change = term.regrade("second").revision.changes
    assert [str(one) for one in change] == [f"{STUDENT}: 100 -> 80 after lateness"]
    assert late(term, "second") == (1, 0, 20, 80)


def test_what_an_extension_saves_is_there_for_the_next_assignment(term: Term) -> None:
    term.hand_in("first", after("first", 2), 10)
    given = term.regrade("first", extensions={STUDENT: after("first", 1)}, source="list.csv")
    assert given.extensions == 1
    assert late(term, "first") == (1, 2, 0, 100), "the points stay, and one late day comes back"
    term.hand_in("second", after("second", 2), 10)
    assert late(term, "second") == (2, 0, 0, 100)


def test_an_assignment_may_stand_apart(term: Term) -> None:
    term.assignment("first", DEADLINES["first"], f"{LATE}tokens = false\n")
    term.hand_in("first", after("first", 2), 10)
    term.hand_in("second", after("second", 3), 10)
    assert late(term, "first") == (0, None, 20, 80)
    assert late(term, "second") == (3, 0, 0, 100)


def test_a_rule_that_changes_is_applied_by_regrading(term: Term) -> None:
    term.hand_in("first", after("first", 2), 10)
    term.course("[late]\ntokens = 1\n")
    term.regrade("first")
    assert late(term, "first") == (1, 0, 10, 90)
    term.course()
    term.regrade("first")
    assert late(term, "first") == (0, None, 20, 80)


def test_scores_csv_has_the_late_days(term: Term) -> None:
    term.hand_in("first", after("first", 2), 10)
    head, row = (term.out("first") / "scores.csv").read_text().splitlines()
    assert dict(zip(head.split(","), row.split(","), strict=True))["tokens_used"] == "2"


def test_a_gradebook_of_one_assignment_alone_cannot_count_them(term: Term) -> None:
    request = GradeRequest(
        path=term.root,
        assignment_id="first",
        out=term.root.with_name("out"),
        who="ta1",
        course=term.root / "course",
    )
    with pytest.raises(UsageError, match=r"Give every command the same --gradebook"):
        grade_class(request, clock=lambda: START, watch=None)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[late]\ntokens = 0\n", "at least 1"),
        ("[late]\ntokens = 1.5\n", "a whole number"),
        ("[late]\npoints_per_day = 5\n", "points_per_day"),
    ],
)
def test_a_course_says_what_is_wrong(term: Term, text: str, told: str) -> None:
    term.course(text)
    with pytest.raises(CourseError, match=told):
        term.located()


def test_the_deadline_of_another_assignment_is_named_when_it_cannot_be_used(term: Term) -> None:
    path = term.root / "course" / "reference" / "second" / "assignment.toml"
    path.write_text(path.read_text().replace("+00:00", ""))
    with pytest.raises(CourseError, match="of 'second': the deadline has no time zone"):
        term.read("first")
