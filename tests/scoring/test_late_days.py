"""Late days of a course: how many one late submission uses, and what it says of them."""

from dataclasses import replace
from datetime import timedelta

import pytest

from grader.domain.assignment_rules import CourseLateDays, LatePolicy
from grader.domain.score import LateRecord
from grader.domain.submission_result import History
from grader.scoring import score
from grader.scoring.lateness import late_days_left, late_days_used
from tests.scoring.test_lateness import ASSIGNMENT, DUE, EVIDENCE, mark

TOKENS = CourseLateDays(3, earlier=("first",), later=("last",))


def late(days: float, rule: LatePolicy, *, used_before: int = 0, total: float = 18) -> LateRecord:
    """The record of a submission that came so many days late."""
    assignment = replace(ASSIGNMENT, late=rule, course_late_days=TOKENS)
    evidence = replace(EVIDENCE, received_at=DUE + timedelta(days=days))
    history = History(late_days=(("first", used_before),))
    found = score(assignment, evidence, edits=[mark(total)], history=history)
    assert found.late is not None
    return found.late


@pytest.mark.parametrize(
    ("rule", "days", "total", "left", "used"),
    [
        (LatePolicy(points_per_day=5), 2, 18, 3, 2),
        (LatePolicy(points_per_day=5), 3, 18, 2, 2),
        (LatePolicy(points_per_day=5), 2, 18, 0, 0),
        (LatePolicy(points_per_day=5, most_points=10), 6, 18, 3, 0),
        (LatePolicy(points_per_day=5, most_points=10), 4, 18, 3, 3),
        (LatePolicy(points_per_day=5), 3, 0, 3, 0),
        (LatePolicy(points_per_day=5), 3, None, 3, 0),
        (LatePolicy(points_per_day=5), 6, 4, 3, 0),
        (LatePolicy(), 2, 18, 1, 1),
    ],
)
def test_the_fewest_are_used_that_save_the_most(
    rule: LatePolicy, days: int, total: float | None, left: int, used: int
) -> None:
    assert late_days_used(rule, days, total, left) == used


def test_only_what_earlier_assignments_used_is_missing() -> None:
    assert late_days_left(TOKENS, History(late_days=(("first", 1), ("last", 2), ("gone", 3)))) == 2
    assert late_days_left(TOKENS, History(late_days=(("first", 9),))) == 0


def test_late_days_come_before_points_are_taken_off() -> None:
    record = late(2.5, LatePolicy(points_per_day=5), used_before=1)
    assert (record.days, record.tokens_used, record.tokens_left) == (3, 2, 0)
    assert (record.penalty, record.total_after) == (5, 13)
    assert record.reason == (
        "2 days 12 h late, of which 1 day at 5 points each: 5 points are taken off, so 18 become 13. "
        "2 of 3 late days used here, 0 left."
    )


def test_what_late_days_cover_costs_nothing() -> None:
    record = late(1, LatePolicy(points_per_day=5))
    assert (record.penalty, record.total_after, record.tokens_left) == (0, 18, 2)
    assert record.reason == "1 day late: nothing is taken off. 1 of 3 late days used here, 2 left."


def test_a_person_decides_about_the_days_that_remain() -> None:
    covered, rest = late(3, LatePolicy()), late(5, LatePolicy())
    assert (covered.asked, covered.penalty, covered.tokens_used) == (False, 0, 3)
    assert (rest.asked, rest.penalty, rest.tokens_used) == (True, None, 3)


def test_where_they_would_not_help_they_are_kept() -> None:
    record = late(6, LatePolicy(points_per_day=5, most_points=10))
    assert (record.tokens_used, record.tokens_left, record.penalty) == (0, 3, 10)
    assert record.reason.endswith("No late day would help here: 3 of 3 are left.")
