"""A grade leaves the house when it is decided, and never as a guess."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from grader.domain.errors import UsageError
from grader.domain.evidence import Attestation
from grader.domain.score import GradeStatus, LateRecord
from grader.publishing.releases import exported_grades, grade_of, warnings

UNKNOWN = LateRecord("unknown", None, None, None, asked=True, reason="Nobody knows.")


def test_the_penalty_for_lateness_is_in_it(a_result: Callable[..., Any]) -> None:
    assert grade_of(a_result("1", 64.5, after=60.5)[1]).points == 60.5
    assert grade_of(a_result("1", 0.0)[1]).points == 0


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"awaiting": True}, "awaiting q6"),
        ({"total": None, "status": GradeStatus.ENGINE_ERROR}, "the grader failed"),
        ({"total": None, "status": GradeStatus.INCOMPLETE}, "a file is missing"),
        ({"not_run": True}, "not run: q6"),
        ({"late": UNKNOWN}, "late, and nobody knows"),
    ],
)
def test_what_awaits_a_person_stops_the_export(
    a_result: Callable[..., Any], fields: dict[str, Any], reason: str
) -> None:
    results = [a_result("2", **fields), a_result("1")]
    with pytest.raises(UsageError, match=f"1 of 2 grades still awaits(.|\n)*--partial(.|\n)*  2: .*{reason}"):
        exported_grades(results, partial=False)
    grades = exported_grades(results, partial=True)
    assert list(grades) == ["1", "2"]
    assert grades["2"].points is None and reason in grades["2"].reason


def test_what_cannot_be_graded_stops_nothing_and_is_no_zero(a_result: Callable[..., Any]) -> None:
    grades = exported_grades([a_result("1", None, status=GradeStatus.REFUSED)], partial=False)
    assert grades["1"].points is None and grades["1"].reason == "nothing in it could be graded"


def test_records_of_what_did_not_run_raise_no_alarm(a_result: Callable[..., Any]) -> None:
    """Older versions called those unofficial; nothing was observed, because nothing ran."""
    evidence, score = a_result("1", level="unofficial")
    assert warnings([(replace(evidence, findings=(), attestation=Attestation("unofficial")), score)]) == ()


def test_grades_in_doubt_are_told(a_result: Callable[..., Any]) -> None:
    results = [a_result("1", level="unofficial"), a_result("2", partial=True), a_result("3")]
    assert warnings(results) == (
        "The grade of 1 was made without the isolation that official grades require.",
        "The grade of 2 is of a single file, without the rule on missing files.",
    )
