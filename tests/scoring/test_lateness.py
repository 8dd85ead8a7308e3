"""What lateness costs: by the rule of the course, and never by a guess."""

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

from grader.domain.assignment import Assignment, DataUse, RubricItem
from grader.domain.assignment_files import SubmittedFile
from grader.domain.assignment_rules import LatePolicy
from grader.domain.edit import Edit, Marked
from grader.domain.evidence import Evidence
from grader.domain.limits import Limits
from grader.domain.score import GradeStatus, LateRecord
from grader.domain.submission import Delivery, Role
from grader.language import language
from grader.scoring import score

DUE = datetime(2026, 1, 31, 23, 59, tzinfo=timezone(timedelta(hours=3, minutes=30)))
RULE = LatePolicy(grace_minutes=15, points_per_day=5, most_points=12)
ASSIGNMENT = Assignment(
    id="small",
    title="Small",
    folder=Path("small"),
    file_stem="{student_id}_homework",
    files=(SubmittedFile(Role.CODE, (".py",)), SubmittedFile(Role.REPORT, (".pdf",))),
    components=(),
    checks=(),
    rubric=(RubricItem("essay", "Essay", 20),),
    forbidden=(),
    limits=Limits(),
    data=DataUse("real", "synthetic", ("a", "b")),
    deadline=DUE,
    late=RULE,
)
EVIDENCE = Evidence("400101204", "small", "", DUE)


def mark(points: float) -> Edit:
    """What a person gave for the only item."""
    return Marked(who="ta1", when=DUE, why="Read.", student_id="400101204", target="essay", points=points)


def late(
    after: timedelta | None,
    *,
    rule: LatePolicy = RULE,
    total: float = 18,
    delivery: Delivery = Delivery(),  # noqa: B008
    **changed: object,
) -> LateRecord:
    """The record of a submission that came so long after the deadline."""
    received = None if after is None else (DUE + after).astimezone(UTC)
    evidence = replace(EVIDENCE, received_at=received, delivery=delivery, **changed)  # type: ignore[arg-type]
    found = score(replace(ASSIGNMENT, late=rule), evidence, edits=[mark(total)])
    assert found.late is not None
    assert found.total in (total, None), "the total is what it was before the penalty"
    return found.late


@pytest.mark.parametrize(
    ("after", "days", "penalty"),
    [
        (timedelta(days=-3), 0, 0),
        (timedelta(0), 0, 0),
        (timedelta(minutes=15), 0, 0),
        (timedelta(minutes=15, seconds=1), 1, 5),
        (timedelta(days=1), 1, 5),
        (timedelta(days=1, seconds=1), 2, 10),
        (timedelta(days=9), 9, 12),
    ],
)
def test_each_day_that_has_begun_costs_up_to_the_most(after: timedelta, days: int, penalty: float) -> None:
    found = late(after)
    assert (found.days, found.penalty, found.total_after) == (days, penalty, 18 - penalty)
    assert found.state == ("late" if days else "in_time") and not found.asked


def test_no_penalty_takes_more_than_there_is() -> None:
    found = late(timedelta(days=4), rule=LatePolicy(points_per_day=5), total=7)
    assert (found.penalty, found.total_after) == (7, 0)


def test_the_reason_tells_the_arithmetic() -> None:
    assert late(timedelta(days=1, hours=1)).reason == (
        "1 day 1 h late, so 2 days at 5 points each: 10 points are taken off, so 18 become 8."
    )
    assert "at most 12 in all" in late(timedelta(days=9)).reason


def test_without_a_rule_a_person_decides() -> None:
    found = late(timedelta(hours=2), rule=LatePolicy())
    assert (found.state, found.days, found.penalty, found.total_after) == ("late", 1, None, 18)
    assert found.asked and "A person decides" in found.reason


def test_an_unknown_time_is_never_a_penalty_even_if_the_hint_is_late() -> None:
    found = late(None, delivery=Delivery(DUE + timedelta(days=30), "the time in the zip"))
    assert (found.state, found.days, found.penalty, found.total_after) == ("unknown", None, None, 18)
    assert not found.asked


def test_the_mark_of_an_lms_asks_a_person_and_takes_nothing_off() -> None:
    found = late(None, delivery=Delivery(marked_late=True))
    assert (found.state, found.days, found.penalty) == ("unknown", None, None)
    assert found.asked and found.total_after is None, (
        "something would be taken off, and nobody knows how much"
    )


def test_an_extension_is_that_students_deadline() -> None:
    own = Delivery(extension=DUE + timedelta(days=2))
    assert late(timedelta(days=2, minutes=10), delivery=own).state == "in_time"
    assert late(timedelta(days=3), delivery=own).days == 1


def test_a_known_time_outweighs_the_mark() -> None:
    own = Delivery(marked_late=True, extension=DUE + timedelta(days=2))
    assert late(timedelta(days=1), delivery=own).state == "in_time"


def test_one_missing_file_no_grade_and_the_penalty_is_told_all_the_same() -> None:
    """Graded and shown, the total withheld."""
    evidence = replace(EVIDENCE, missing=(Role.REPORT,), received_at=DUE + timedelta(hours=1))
    found = score(ASSIGNMENT, evidence, edits=[mark(18)])
    assert found.status is GradeStatus.INCOMPLETE and found.total is None
    assert found.lines[0].points == 18
    assert found.late is not None and (found.late.penalty, found.late.total_after) == (5, None)


def test_without_a_deadline_nothing_is_late() -> None:
    assert score(replace(ASSIGNMENT, deadline=None), EVIDENCE).late is None


def test_a_time_without_a_zone_is_unknown() -> None:
    assert late(None).state == "unknown"
    naive = replace(EVIDENCE, received_at=datetime(2027, 1, 1))
    found = score(ASSIGNMENT, naive, edits=[mark(18)]).late
    assert found is not None and found.state == "unknown" and found.penalty is None


@pytest.mark.parametrize("most", [None, 12])
@pytest.mark.parametrize(
    "after",
    [
        timedelta(minutes=40),
        timedelta(hours=3),
        timedelta(hours=3, minutes=5),
        timedelta(days=1),
        timedelta(days=1, minutes=5),
        timedelta(days=1, hours=2),
        timedelta(days=1, hours=2, minutes=5),
        timedelta(days=3),
        timedelta(days=3, minutes=5),
        timedelta(days=3, hours=2),
        timedelta(days=3, hours=2, minutes=5),
    ],
)
def test_what_it_costs_is_told_in_the_language_of_the_reports(after: timedelta, most: float | None) -> None:
    pytest.importorskip("babel")
    persian = language("fa")
    found = late(after, rule=replace(RULE, most_points=most))
    assert "points are taken off, so 18 become" in found.reason
    for sentence in (found.reason, found.reason.partition(", so 18")[0] + ".", f"Handed in {found.how_late}"):
        told = persian.translated(sentence)
        assert re.findall("[a-z]+", told) == [], told
