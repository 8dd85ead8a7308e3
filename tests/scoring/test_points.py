"""Breakpoints and rounding."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grader.domain.score import rounded
from grader.scoring.measurements import interpolated, percent, plain

OURS = ((1 / 6, 0.0), (0.6, 9.0), (0.8, 15.0))


@pytest.mark.parametrize(
    ("accuracy", "points"),
    [
        (0.0, 0.0),
        (1 / 6, 0.0),
        (0.3833, 4.5),
        (0.6, 9.0),
        (0.7, 12.0),
        (0.8056, 15.0),
        (0.8, 15.0),
        (1.0, 15.0),
        (float("nan"), 0.0),
    ],
)
def test_points_of_our_breakpoints(accuracy: float, points: float) -> None:
    assert interpolated(OURS, accuracy) == points


@pytest.mark.parametrize(
    ("value", "points"), [(float("nan"), 0.0), (0.49, 0.0), (0.5, 3.0), (0.75, 3.5), (1.0, 4.0), (2.0, 4.0)]
)
def test_below_the_first_is_nothing_and_beyond_the_last_is_the_last(value: float, points: float) -> None:
    assert interpolated(((0.5, 3.0), (1.0, 4.0)), value) == points


def test_one_breakpoint_is_a_threshold() -> None:
    assert [interpolated(((0.6, 5.0),), value) for value in (0.59, 0.6, 0.9)] == [0.0, 5.0, 5.0]
    assert interpolated((), 0.9) == 0.0


@given(st.floats(0, 1), st.floats(0, 1))
def test_more_accuracy_never_costs_points(one: float, other: float) -> None:
    low, high = sorted((one, other))
    assert 0 <= interpolated(OURS, low) <= interpolated(OURS, high) <= 15


@pytest.mark.parametrize(
    ("points", "shown"), [(1.005, 1.01), (0.125, 0.13), (31, 31.0), (8 * 3 / 7, 3.43), (0.0, 0.0)]
)
def test_halves_are_rounded_up(points: float, shown: float) -> None:
    assert rounded(points) == shown


def test_numbers_as_people_write_them() -> None:
    assert [plain(points) for points in (31.0, 2.5, 3.43, 0.0)] == ["31", "2.5", "3.43", "0"]
    assert [percent(share) for share in (0.6, 0.8056, 1.0)] == ["60 %", "80.6 %", "100 %"]
