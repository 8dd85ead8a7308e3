"""What Gradescope, programs that show tests, and Moodle's upload of feedback take."""

import io
import json
import zipfile
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import pytest

from grader.domain.errors import UsageError
from grader.domain.score import GradeStatus
from grader.lms.exports.feedback_zip import (
    feedback_zip,
    holders_of_download,
    holders_of_worksheet,
)
from grader.lms.exports.filling import Choices
from grader.lms.exports.gradescope import gradescope
from grader.lms.exports.junit import junit
from grader.lms.exports.matching import candidates

ASSIGNMENT: Any = SimpleNamespace(id="lab8", title="Lab 8", maximum=100)

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
    pages = gradescope([a_result("2", 64.5, after=60.5), a_result("1", 7.0)], "visible", partial=False)
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
        gradescope(results, "visible", partial=False)
    pages = gradescope(results, "visible", partial=True)
    assert pages.files == {}
    assert pages.remarks == (
        "1: is left out (awaiting q6)",
        "2: is left out (nothing in it could be graded)",
    )


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
        junit(ASSIGNMENT, results, partial=False)
    export = junit(ASSIGNMENT, results, partial=True)
    root = ElementTree.fromstring(export.content)
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
    assert junit(ASSIGNMENT, list(reversed(results)), partial=True).content == export.content


def test_junit_holds_a_submission_without_findings(a_result: Callable[..., Any]) -> None:
    from dataclasses import replace

    evidence, score = a_result("1", None, status=GradeStatus.REFUSED)
    results = [(replace(evidence, findings=(), reason="A syntax error \ufffe."), score)]
    root = ElementTree.fromstring(junit(ASSIGNMENT, results, partial=False).content)
    [failure] = root.iter("failure")
    assert failure.get("message") == "A syntax error ⟨U+FFFE⟩."


SHEET = (
    "Identifier,Full name,ID number,Grade,Maximum Grade,Last modified (grade)\n"
    'Participant 11,"Student_17 ""x"" / Ä",400101201,,100,-\n'
    "Participant 12,.Student 18,,,100,-\nParticipant 14,Student 20,,,100,-\n"
)
REPORTS = {name: b"<html>" + name.encode() for name in ("400101201", "Student_18_12", "400101203", "4")}


def moodles(name: str) -> tuple[int, str, str, str]:
    """(participant, subtype, plugin, file) as importziplib.php takes a name apart."""
    assert not name.startswith((".", "~")) and "/" not in name
    _, number, subtype, plugin, file = name.split("_", 4)
    return int(number), subtype, plugin, file


def test_moodle_gives_every_report_to_its_student(a_result: Callable[..., Any]) -> None:
    results = [a_result(name) for name in REPORTS] + [a_result("5", None, status=GradeStatus.REFUSED)]
    holders, rows = holders_of_worksheet("g.csv", SHEET.encode(), candidates(results), Choices())
    export = feedback_zip(results, REPORTS, holders, partial=False)
    with zipfile.ZipFile(io.BytesIO(export.content)) as archive:
        found = {name: archive.read(name) for name in archive.namelist()}
    assert found == {
        "Student 17 x Ä_11_assignfeedback_file_report.html": REPORTS["400101201"],
        "Student 18_12_assignfeedback_file_report.html": REPORTS["Student_18_12"],
    }
    assert [moodles(name) for name in found] == [
        (11, "assignfeedback", "file", "report.html"),
        (12, "assignfeedback", "file", "report.html"),
    ]
    assert rows == ("g.csv, row 4 (Participant 14): has no result",)
    unknown = "is left out (nothing tells how Moodle calls this student)"
    assert export.remarks[:3] == (
        f"4: {unknown}",
        f"400101203: {unknown}",
        "5: is left out (nothing in it could be graded)",
    )
    assert feedback_zip(results, REPORTS, holders, partial=False).content == export.content


def test_names_come_from_the_download_or_nobody_gets_a_report(a_result: Callable[..., Any]) -> None:
    holders = holders_of_download(
        [
            ("Student 17_11_assignsubmission_file_/sub/homework.py", "400101201"),
            ("class.zip/G1-Ä Ö_12_assignsubmission_file_a_b.pdf", "400101202"),
            ("Participant_13_assignsubmission_file_x.py", "400101203"),
            ("Team_77_assignsubmission_file_x.py", "400101204"),
            ("400101205_Lab8_Homework.py", "400101205"),
            ("A_15_assignsubmission_file_x.py", "400101206"),
            ("A_16_assignsubmission_file_x.py", "400101206"),
            ("B_17_assignsubmission_file_x.py", None),
        ]
    )
    assert holders == {
        "400101201": "Student 17_11",
        "400101202": "G1-Ä Ö_12",
        "400101203": "Participant_13",
    }
    with pytest.raises(UsageError, match="Give the grading worksheet by --into"):
        feedback_zip([a_result("1")], {"1": b""}, {}, partial=False)
