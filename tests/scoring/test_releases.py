"""What was released, and what would take it from a student."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from grader.domain.edit import Released
from grader.domain.score import Release, is_less_than_released
from grader.scoring.decided_by_people import release

NOW = datetime(2026, 2, 1, 12, tzinfo=UTC)


def left(points: float | None, way: str = "publish", **more: Any) -> Released:
    return Released(
        **{"who": "ta1", "when": NOW, "why": "", "student_id": "1", "way": way, "points": points, **more}
    )


@pytest.mark.parametrize(
    ("before", "after", "released", "expected"),
    [
        (80, 70, None, False),  # never released
        (80, 70, 80, True),
        (80, 70, 60, False),  # more than was released
        (80, 60, 60, False),
        (80, 59.99, 60, True),
        (50, 55, 80, False),  # a rise, of a grade that fell before
        (50, 49, 80, True),
        (80, None, 80, True),  # known, and then unknown
        (None, 10, 80, False),  # nobody knew it
        (None, None, 80, False),
        (80, 70, "no grade", False),  # that nothing was known left
        (0.1 + 0.2, 0.3, 0.3, False),  # the same points
    ],
)
def test_only_what_was_released_can_be_taken(
    before: float | None, after: float | None, released: float | str | None, expected: bool
) -> None:
    points = None if isinstance(released, str) else released
    told = None if released is None else Release(NOW, NOW, points)
    assert is_less_than_released(after, before, told) is expected


def test_the_last_release_counts_and_the_first_is_kept() -> None:
    assert release([]) is None
    later = NOW + timedelta(days=1)
    told = (("q6", 4.0), ("q10.patches", 2.5), ("q7", None))
    whole = (("q6", 5.0), ("q7", 3.0))
    found = release([left(70, lines=told), left(75, "canvas", when=later, lines=whole)])
    lines = (("q6", 4.0, NOW), ("q10.patches", 2.5, NOW), ("q7", 3.0, later))
    assert found == Release(NOW, later, 75, (75, later), lines), "each line since it was told"
