"""Gradescope's results.json: the score, the items and the checks, and no unknown score."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from grader.domain.errors import UsageError
from grader.domain.evidence import Status
from grader.domain.score import GradeStatus
from grader.lms.export_format import Choices, Export
from grader.lms.gradescope.gradescope_files import RESULTS
from tests import graded_results


def visible(results: list[Any], *, partial: bool = False) -> Export:
    choices = Choices(others={"visibility": "visible"})
    return graded_results.export(RESULTS, results, None, choices, partial=partial)


# The keys of the autograder specifications, and `status` and `output_format`, which came later.
TOP = {
    "score",
    "execution_time",
    "output",
    "visibility",
    "stdout_visibility",
    "extra_data",
    "tests",
    "leaderboard",
}
TEST = {"score", "max_score", "name", "number", "output", "tags", "visibility", "extra_data", "status"}


def test_gradescope_reads_the_score_the_items_and_the_checks(a_result: Callable[..., Any]) -> None:
    pages = visible([a_result("2", 64.5, after=60.5), a_result("1", 7.0)])
    assert list(pages.files) == ["1/results.json", "2/results.json"]
    document = json.loads(pages.files["2/results.json"])
    assert document.keys() <= TOP and all(test.keys() <= TEST for test in document["tests"])
    assert document["score"] == 60.5 and "1 day late." in document["output"]
    scored = [test for test in document["tests"] if "score" in test]
    assert [(test["name"], test["score"], test["max_score"]) for test in scored] == [
        ("The model", 64.5, 65),
        ("Question 6", 0, 35),
    ]
    checks = {test["tags"][-1]: test for test in document["tests"][2:]}
    assert {name: test.get("status") for name, test in checks.items()} == {
        "keeps_shape": "passed",
        "matches_oracle": "failed",
        "runs": None,
        "counts": None,
    }
    assert (
        checks["matches_oracle"]["output"] == "homework.py:41: The scale is missing ⟨U+0007⟩ & <b>.\nDivide."
    )
    assert {test["visibility"] for test in document["tests"]} == {"visible"}


def test_gradescope_is_told_no_unknown_score(a_result: Callable[..., Any]) -> None:
    results = [a_result("1", awaiting=True), a_result("2", None, status=GradeStatus.REFUSED)]
    with pytest.raises(UsageError, match="awaits a person"):
        visible(results)
    pages = visible(results, partial=True)
    assert pages.files == {}
    assert pages.remarks == (
        "1: is left out (awaiting q6)",
        "2: is left out (nothing in it could be graded)",
    )


def test_grades_that_stay_hidden_are_not_released(a_result: Callable[..., Any]) -> None:
    choices = Choices(others={"visibility": "hidden"})
    assert graded_results.export(RESULTS, [a_result("1")], None, choices).grades == {}
    assert visible([a_result("1")]).grades == {"1": 64.5}


def test_gradescope_is_told_a_cause_once(a_result: Callable[..., Any]) -> None:
    evidence, score = a_result("1")
    shape = replace(evidence.findings[0], status=Status.FAILED, message="Wrong.", because="matches_oracle")
    results = [(replace(evidence, findings=(shape, *evidence.findings[1:])), score)]
    tests = json.loads(visible(results).files["1/results.json"])["tests"]
    [told] = [test for test in tests if test["tags"][-1] == "keeps_shape"]
    assert (told["status"], told["output"]) == ("failed", "For the same reason as: Attention is scaled.")
