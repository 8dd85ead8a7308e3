"""Rubric items changed in the page, and the marks that follow."""

import re

import pytest

from grader.domain.edit import Marked
from grader.marking.desk import handle_of
from grader.marking.rubric_items import marking_items
from grader.web.access import StaffRole

STUDENT = "400101201"
FORM = {
    "id": ["no_order", "no_example", ""],
    "points": ["-2", "-1", ""],
    "text": ["Order is not named.", "There is no example.", ""],
    "note": ["", "", ""],
    "group": ["", "", ""],
}


@pytest.fixture
def head(come):
    return come("head", StaffRole.HEAD)


def version(head):
    return re.search(r'name="version" value="([^"]+)"', head.get("/rubric/q6").text)[1]


def points(desk):
    return [edit.points for edit in desk.book.edits(STUDENT) if isinstance(edit, Marked)]


def test_items_and_marks_change_after_a_preview(head, come, desk):
    come("ta1").post(f"/questions/q6/{handle_of(desk, STUDENT)}/save", version="0", item="no_order")
    assert "Change these marks" not in head.get("/rubric/q6").text
    assert head.post("/rubric/q6", version=version(head), **FORM).status_code == 303
    page = head.get("/rubric/q6").text
    assert "Change these marks" in page and handle_of(desk, STUDENT) in page and points(desk) == [3.5]
    answer = head.post("/rubric/q6/marks")
    assert answer.headers["location"] == "/rubric/q6?changed=1" and points(desk) == [3.5, 3.0]
    assert "1 mark was changed" in head.get("/rubric/q6?changed=1").text


def test_items_are_added_and_removed(head, desk):
    form = {**FORM, "id": ["no_order", "no_example", "new_one"], "points": ["-2", "-1", "-0.5"]}
    form = {**form, "text": [*FORM["text"][:2], "<b>New</b>"], "remove": ["no_example"]}
    assert head.post("/rubric/q6", version=version(head), **form).status_code == 303
    assert [item.id for item in marking_items(desk).of("q6")] == ["no_order", "new_one"]
    assert "&lt;b&gt;New" in head.get("/rubric/q6").text and "<b>New" not in head.get("/rubric/q6").text


def test_a_question_may_have_many_items(head, desk):
    version = re.search(r'name="version" value="([^"]*)"', head.get("/rubric/q6").text)[1]
    columns = {name: [f"{name}{number}" for number in range(60)] for name in ("id", "text", "note", "group")}
    answer = head.post("/rubric/q6", version=version, points=["-1"] * 60, **columns)
    assert answer.status_code == 303 and len(marking_items(desk).of("q6")) == 60


def test_who_did_not_see_a_change_does_not_undo_it(head, desk):
    seen = version(head)
    assert head.post("/rubric/q6", version=seen, **FORM).status_code == 303
    answer = head.post("/rubric/q6", version=seen, **{**FORM, "points": ["-3", "-1", ""]})
    assert answer.status_code == 409 and "Somebody changed the rubric items" in answer.text
    assert marking_items(desk).of("q6")[0].points == -2


@pytest.mark.parametrize(
    "wrong",
    [{"points": ["x", "-1", ""]}, {"id": ["no_order", "no order", ""]}, {"text": ["Only one."]}],
    ids=str,
)
def test_what_is_wrong_is_not_written(head, desk, wrong):
    answer = head.post("/rubric/q6", version=version(head), **{**FORM, **wrong})
    assert answer.status_code == 422 and "Not changed" in answer.text
    assert marking_items(desk).of("q6")[0].points == -1.5


def test_what_was_typed_beside_a_mistake_stays_in_the_form(head):
    typed = {
        "text": ["Another text.", "There is no example.", "A new one."],
        "id": ["no_order", "no_example", "new"],
    }
    sent = {**FORM, **typed, "points": ["-2", "-1", "half"], "remove": ["no_example"]}
    answer = head.post("/rubric/q6", version=version(head), **sent)
    assert answer.status_code == 422 and "&#39;half&#39; is not a number" in answer.text
    for value in ("Another text.", "A new one.", "new", "-2", "half"):
        assert f'value="{value}"' in answer.text, value
    assert 'value="no_example" checked' in answer.text and "A new item" in answer.text


def test_markers_do_not_change_items(come):
    ta = come("ta1")
    assert ta.get("/rubric/q6").status_code == 403 and ta.post("/rubric/q6/marks").status_code == 403
    assert come("head2", StaffRole.HEAD).get("/rubric/q99").status_code == 404
