"""Feedback on hidden checks: so many submissions before the deadline get it, the first ones."""

from datetime import UTC, datetime, timedelta

import pytest

from grader.domain.assignment_rules import Tries
from grader.domain.several_attempts import SubmissionTimes
from grader.scoring import feedback_try

DUE = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


def times(submitted: float, *earlier: float) -> SubmissionTimes:
    """Times in hours after the deadline."""
    return SubmissionTimes(DUE + submitted * HOUR, tuple(DUE + hours * HOUR for hours in earlier), DUE)


@pytest.mark.parametrize(
    ("feedback", "moments", "shown", "number", "left"),
    [
        (3, times(-9), True, 1, 2),
        (3, times(-7, -9, -8), True, 3, 0),
        (3, times(-6, -7, -9, -8), False, 4, 0),
        (1, times(0), True, 1, 0),
        (2, times(0, 0), True, 2, 0),
        (0, times(-1), False, 1, 0),
        (3, times(0.01), False, 0, 0),
        (3, times(2, 1), False, 0, 0),
    ],
)
def test_the_first_submissions_before_the_deadline_get_feedback(
    feedback: int, moments: SubmissionTimes, shown: bool, number: int, left: int
) -> None:
    found = feedback_try(Tries(feedback), moments)
    assert (found.shown, found.number, found.left) == (shown, number, left)


def test_the_sentence_says_what_is_left() -> None:
    said = [feedback_try(Tries(2), moments).reason for moments in (times(-3), times(-1, -3, -2), times(1))]
    assert said == [
        "Try 1 of 2 with feedback on hidden checks, 1 left.",
        "None of the 2 tries with feedback on hidden checks is left: what they found is shown when grades "
        "are released.",
        "It came after the deadline: hidden checks are shown when grades are released.",
    ]


def test_what_came_after_the_deadline_used_no_try() -> None:
    """A service's list may hold later submissions too."""
    assert feedback_try(Tries(1), times(-1, 5)).shown
