"""How often answers to requests change points: what is counted, and when a rubric is called unclear."""

from datetime import UTC, datetime

import pytest

from grader.decisions.change_rates import ChangeRate, by_item, by_marker, change_rates
from grader.domain.edit import Edit, RegradeAnswered, RegradeAsked

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def asked(student: str, target: str, marker: str = "ta1") -> RegradeAsked:
    return RegradeAsked(
        who="head", when=NOW, why="x", student_id=student, target=target, asked=NOW, points=4, marker=marker
    )


def answered(student: str, target: str, points: float) -> RegradeAnswered:
    return RegradeAnswered(who="ta2", when=NOW, why="y", student_id=student, target=target, points=points)


def test_answers_count_for_the_item_and_for_the_marker() -> None:
    edits: list[Edit] = [
        asked("1", "q6"), answered("1", "q6", 5), asked("2", "q6"), answered("2", "q6", 4),
        asked("1", "q7", ""), answered("1", "q7", 6), asked("3", "q7"),
    ]  # fmt: skip
    assert change_rates(edits, by_item) == (ChangeRate("q7", 1, 1), ChangeRate("q6", 2, 1))
    assert change_rates(edits, by_marker) == (ChangeRate("the checks", 1, 1), ChangeRate("ta1", 2, 1))


def test_a_second_request_about_the_same_item_has_its_own_answer() -> None:
    edits: list[Edit] = [
        asked("1", "q6"), answered("1", "q6", 4), asked("1", "q6"), answered("1", "q6", 5),
    ]  # fmt: skip
    assert change_rates(edits, by_item) == (ChangeRate("q6", 2, 1),)


@pytest.mark.parametrize(
    ("count", "changed", "is_high"), [(5, 1, False), (5, 2, True), (4, 4, False), (100, 21, True)]
)
def test_a_rubric_is_unclear_from_a_fifth_of_several_answers_on(
    count: int, changed: int, is_high: bool
) -> None:
    assert ChangeRate("q6", count, changed).is_high is is_high
