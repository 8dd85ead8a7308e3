"""JUnit XML as programs that show tests take it."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any
from xml.etree import ElementTree

import pytest

from grader.domain.errors import UsageError
from grader.domain.score import GradeStatus
from grader.publishing.junit import JUNIT
from tests.graded_results import export

# Element -> (its attributes, what may stand in it), as Jenkins's junit-10.xsd has it.
SCHEMA = {
    "testsuites": ({"name", "time", "tests", "failures", "errors", "disabled"}, {"testsuite"}),
    "testsuite": (
        {"name", "tests", "failures", "errors", "skipped", "time", "timestamp", "hostname", "id", "package"},
        {"properties", "testcase", "system-out", "system-err"},
    ),
    "properties": (set(), {"property"}),
    "property": ({"name", "value"}, set()),
    "testcase": ({"name", "classname", "time", "status"}, {"skipped", "error", "failure", "system-out"}),
    "failure": ({"type", "message"}, set()),
    "error": ({"type", "message"}, set()),
    "skipped": ({"type", "message"}, set()),
}


def test_junit_is_as_its_schema_has_it_and_the_counts_add_up(a_result: Callable[..., Any]) -> None:
    results = [a_result("2", awaiting=True), a_result("1", 7.0)]
    with pytest.raises(UsageError, match="awaits a person"):
        export(JUNIT, results)
    made = export(JUNIT, results, partial=True)
    root = ElementTree.fromstring(made.content)
    for element in root.iter():
        attributes, children = SCHEMA[element.tag]
        assert element.attrib.keys() <= attributes, element.tag
        assert {child.tag for child in element} <= children, element.tag
    suites = root.findall("testsuite")
    assert [suite.get("name") for suite in suites] == ["1", "2"]
    for suite in suites:
        cases = suite.findall("testcase")
        assert all(len(case) <= 1 and case.get("name") and case.get("classname") for case in cases)
        assert suite.get("tests") == str(len(cases))
        for count, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            assert suite.get(count) == str(len(suite.findall(f"testcase/{tag}"))), tag
    for count in ("tests", "failures", "errors"):
        assert int(root.get(count, "")) == sum(int(suite.get(count, "")) for suite in suites)
    assert (
        float(root.get("time", "")) == pytest.approx(sum(float(one.get("time", "")) for one in suites)) == 1.5
    )
    assert [suites[1].get(name) for name in ("tests", "failures", "errors", "skipped")] == [
        "5",
        "1",
        "1",
        "2",
    ]
    [failure] = suites[0].iter("failure")
    assert failure.get("type") == "missing_scale" and "⟨U+0007⟩ & <b>" in (failure.text or "")
    assert export(JUNIT, list(reversed(results)), partial=True).content == made.content


def test_junit_holds_a_submission_without_findings(a_result: Callable[..., Any]) -> None:
    evidence, score = a_result("1", None, status=GradeStatus.REFUSED)
    results = [(replace(evidence, findings=(), reason="A syntax error \ufffe."), score)]
    root = ElementTree.fromstring(export(JUNIT, results).content)
    [failure] = root.iter("failure")
    assert failure.get("message") == "A syntax error ⟨U+FFFE⟩."
