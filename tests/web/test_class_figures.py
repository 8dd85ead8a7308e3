"""Figures of the class, which name nobody, and pairs of similar submissions, for heads."""

import json
import re

import pytest

from grader.marking.audit_log import audit_log
from grader.marking.desk import handle_of
from grader.reports.whole_class.similarity_record import FILE, PAGE
from grader.web.access import StaffRole
from tests.web.conftest import NAME, SCRIPT, STUDENTS


@pytest.fixture
def compared(desk):
    """A record of a comparison, in which an id of an earlier class is hostile."""
    pairs = [
        {"one": STUDENTS[0], "other": STUDENTS[1], "before": False, "says": "98 % of their own code"},
        {"one": STUDENTS[0], "other": f"400{SCRIPT}", "before": True, "says": f"the same {SCRIPT}"},
    ]
    record = {"assignment": desk.assignment.id, "compared_at": "2026-02-01T12:00:00Z", "submissions": 12}
    text = json.dumps({**record, "threshold": 0.5, "pairs": pairs})
    (desk.out / FILE).write_text(text, encoding="utf-8")
    page = f"<style>p {{ color: green }}</style><p>{STUDENTS[0]}</p>"
    (desk.out / PAGE).write_text(page, encoding="utf-8")


def test_figures_of_items_and_checks_name_nobody(come, desk):
    ta = come("ta1")
    for student, points in zip(STUDENTS[:4], ("5", "3", "3", "0"), strict=True):
        ta.post(f"/questions/q6/{handle_of(desk, student)}/save", version="0", points=points)
    page = ta.get("/statistics").text
    title = next(item.title for item in desk.assignment.rubric if item.id == "q6")
    [row] = [row for row in re.findall(r"<tr>.*?</tr>", page, re.DOTALL) if title in row]
    assert re.findall(r'<td class="number">([^<]*)</td>', row) == ["5", "2.75", "3", "1", "1", "8"]
    assert all(check.id in page for check in desk.assignment.checks[:3])
    assert NAME not in page and not any(student in page for student in STUDENTS)
    assert not any(handle_of(desk, student) in page for student in STUDENTS)


def test_pairs_are_for_heads_and_hostile_text_is_text(come, compared):
    assert come("ta1").get("/similar").status_code == 403
    assert come("ta2").get("/similar/side-by-side").status_code == 403
    page = come("head", StaffRole.HEAD).get("/similar").text
    assert STUDENTS[1] in page and "98" in page and "/similar/side-by-side#pair-2" in page
    assert "<script>document" not in page and "<img" not in page


def test_side_by_side_may_have_its_styles_and_nothing_else(come, desk, compared):
    head = come("head", StaffRole.HEAD)
    answer = head.get("/similar/side-by-side")
    policy = answer.headers["content-security-policy"]
    assert answer.status_code == 200 and "sandbox" in policy and "unsafe-inline" not in policy
    assert "style-src 'sha256-" in policy and "script-src" not in policy
    assert any("side by side" in one.detail for one in audit_log(desk))


def test_without_a_comparison_the_command_is_named(come):
    head = come("head", StaffRole.HEAD)
    assert "grader similar" in head.get("/similar").text
    assert head.get("/similar/side-by-side").status_code == 404
