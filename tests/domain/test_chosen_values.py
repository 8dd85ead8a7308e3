"""The values that a student chose, as they are shown."""

from datetime import UTC, datetime

from grader.domain.analyzed_program import Place, TunedValue
from grader.domain.evidence import Evidence
from grader.domain.program_run import Plan, Rehearsal

VALUES = (TunedValue("batch_size", "2 * HALF", Place("", 7)), TunedValue("depth", "6", Place("", 3)))
SOME = Evidence("1", "", "", datetime(2026, 1, 2, tzinfo=UTC), tuned=VALUES)


def test_a_batch_size_is_the_one_that_was_tried() -> None:
    tried = Evidence("1", "", "", SOME.graded_at, tuned=VALUES, plan=Plan(rehearsal=Rehearsal(batch_size=96)))
    assert [(each.name, each.value, each.place.line) for each in tried.chosen] == [
        ("batch_size", "96", 7),
        ("depth", "6", 3),
    ]


def test_what_was_not_tried_is_as_in_the_source() -> None:
    assert SOME.chosen == VALUES
    untold = Evidence("1", "", "", SOME.graded_at, tuned=VALUES, plan=Plan(rehearsal=Rehearsal()))
    assert untold.chosen == VALUES
