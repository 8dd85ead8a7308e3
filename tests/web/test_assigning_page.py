"""Heads assign submissions in a page, and see how well second marks agree."""

import pytest

from grader.course.locate import located_course
from grader.marking.desk import handle_of
from grader.marking.marker_progress import marker_progress
from grader.marking.second_marking import agreement
from grader.web import assigning_page
from grader.web.access import StaffRole
from tests.web.conftest import STUDENTS


@pytest.fixture
def head(come, console):
    console.access.invite("ta1", StaffRole.MARKER)
    console.access.invite("ta2", StaffRole.MARKER)
    return come("head", StaffRole.HEAD)


def assigned(desk):
    return {one.marker: one.assigned for one in marker_progress(desk, target="q6") if one.assigned}


def test_assigning_is_for_heads(come):
    ta = come("ta3")
    assert ta.get("/assign/q6").status_code == 403
    assert ta.post("/assign/q6/question", marker="ta3").status_code == 403


def test_a_question_is_assigned_and_given_free_again(head, desk):
    answer = head.post("/assign/q6/question", marker="ta1")
    assert answer.headers["location"] == "/assign/q6?done=question&count=12"
    assert assigned(desk) == {"ta1": 12} and "12\u00a0submissions assigned" in head.get(
        answer.headers["location"]
    ).text.replace("\u202f", "\u00a0")
    head.post("/assign/q6/question", marker="")
    assert assigned(desk) == {"": 12}


def test_shares_sections_and_lists(head, desk):
    head.post("/assign/q6/shares", marker=["ta1", "ta2"], weight=["2", "1"])
    assert assigned(desk) == {"ta1": 8, "ta2": 4}
    lines = "\n".join(f"{student}, {'A' if number < 3 else 'B'}" for number, student in enumerate(STUDENTS))
    head.post("/assign/q6/sections", sections=lines, markers="A, ta2\nB ta1")
    assert assigned(desk) == {"ta1": 9, "ta2": 3}
    head.post("/assign/q6/sections", sections=lines, markers="B, ta1\nB, ta2")
    assert assigned(desk) == {"ta1": 5, "ta2": 7}, "A stays with ta2, and both share B"
    head.post("/assign/q6/sections", sections=lines, markers="A, ta2\nB ta1")
    head.post("/assign/q6/list", students=f"{STUDENTS[5]}\n{STUDENTS[6]}", marker="ta2")
    assert assigned(desk) == {"ta1": 7, "ta2": 5}


def test_the_sections_of_the_course_stand_in_the_form(head, monkeypatch, tmp_path):
    """Those that `grader term` lists; whoever has no link cannot mark yet."""
    table = '[people]\nstudents = "students.csv"\n[people.sections]\nA = ["ta1", "stranger"]\nB = ["ta2"]\n'
    (tmp_path / "course.toml").write_text(f'title = "A course"\nsecret = "a secret"\n{table}')
    monkeypatch.setattr(
        assigning_page, "located_course", lambda **_: located_course(tmp_path, environment={})
    )
    missing = head.get("/assign/q6").text
    assert "own sections cannot be read" in missing and "students.csv: cannot be read" in missing
    (tmp_path / "students.csv").write_text(f"student_id,section\n{STUDENTS[0]},A\n{STUDENTS[1]},\n")
    page = head.get("/assign/q6").text
    assert f">{STUDENTS[0]}, A</textarea>" in page and ">A, ta1\nB, ta2</textarea>" in page


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("way", "fields", "sentence"),
    [
        ("question", {"marker": "stranger"}, "Nobody called"),
        ("shares", {"marker": ["ta1"], "weight": ["much"]}, "is not a number"),
        ("shares", {"marker": ["ta1"], "weight": ["0"]}, "weight above 0"),
        ("sections", {"sections": "400101201", "markers": "A ta1"}, "Line 1"),
        ("sections", {"sections": "", "markers": ""}, "who marks which section"),
        ("list", {"students": "", "marker": "ta1"}, "Give the ids"),
        ("list", {"students": "400109999", "marker": "ta1"}, "There is nothing to mark"),
        ("second", {"share": "all", "marker": ["ta1"]}, "share in percent"),
        ("second", {"share": "150", "marker": ["ta1"]}, "not from 0 to 1"),
        ("nonsense", {}, "no such way"),
    ],
)
def test_what_is_wrong_assigns_nothing(head, desk, way, fields, sentence):
    answer = head.post(f"/assign/q6/{way}", **fields)
    assert answer.status_code in (404, 422) and sentence in answer.text.replace("&#39;", "'")
    assert assigned(desk) == {"": 12}


def test_second_markers_are_blind_and_the_agreement_is_shown(head, come, desk):
    first, second = come("ta1"), come("ta2")
    handles = [handle_of(desk, student) for student in STUDENTS]
    for handle in handles:
        first.post(f"/questions/q6/{handle}/save", version="0", points="4", comment="By the first.")
    head.post("/assign/q6/second", share="50", marker=["ta2"])
    twice = [handle for handle in handles if "second mark" in second.get(f"/questions/q6/{handle}").text]
    assert len(twice) == agreement(desk, "q6").chosen == 6
    assert 'aria-label="Mark the next of 6 in' in second.get("/").text
    assert second.get("/questions/q6").text.count("Mark the next one") == 1
    for number, handle in enumerate(twice[:2]):
        page = second.get(f"/questions/q6/{handle}").text
        assert "The mark that stands" not in page and ">4<" not in page
        second.post(f"/questions/q6/{handle}/save", version="0", points=str(4 - number), comment="Mine.")
    page = head.get("/assign/q6").text
    assert "2 of 6" in page and "50\u202f%" in page.replace("\u00a0", "\u202f") and "-0.50 points" in page


def test_second_marks_that_are_due_are_offered_when_everything_is_marked_once(head, come, desk):
    first, second = come("ta1"), come("ta2")
    handles = [handle_of(desk, student) for student in STUDENTS]
    for target in desk.assignment.mark_targets():
        for handle in handles:
            first.post(f"/questions/{target}/{handle}/save", version="0", points="1")
    head.post("/assign/q6/second", share="8", marker=["ta2"])
    page = second.get("/").text
    assert (
        "Everything is marked once, and 1\u00a0answer is left for you" in page and "Mark the next one" in page
    )
    assert second.get("/next").headers["location"] == "/questions/q6/next"
    handle = second.get("/questions/q6/next").headers["location"].rpartition("/")[2]
    assert handle in handles
    assert second.post(f"/questions/q6/{handle}/save", version="0", points="2").status_code == 303
    assert "Everything is marked." in second.get("/").text and "Everything is marked." in first.get("/").text
