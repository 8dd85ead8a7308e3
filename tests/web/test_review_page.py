"""Reviews in the console: how far each grade is, who looked over it, and taking that back."""

import pytest

from grader.decisions.marking import NewMark, set_mark
from grader.domain.edit import Reviewed
from grader.marking.audit_log import audit_log
from grader.web.access import StaffRole
from tests.web.conftest import STUDENTS
from tests.web.test_queue_page import seen

FIRST, SECOND = STUDENTS[:2]


@pytest.fixture
def head(come):
    return come("head", StaffRole.HEAD)


def reviews(desk):
    return [edit for edit in desk.book.edits() if isinstance(edit, Reviewed)]


def test_markers_see_nothing_of_it(come):
    ta = come("ta1")
    for address in ("/review", "/decide/review", "/decide/unreview"):
        assert ta.get(address).status_code == 403, address
    assert ta.post("/decide/review", students=FIRST).status_code == 403


def test_the_preview_names_who_would_be_reviewed_and_records_nothing(head, marked_session, desk):
    page = head.get("/review").text
    assert f"{len(STUDENTS)} being marked, 0 reviewed, 0 released." in page
    assert page.count("Review it") == len(STUDENTS) - 1, "not what is open"
    preview = head.post("/decide/review/preview")
    assert f"{len(STUDENTS) - 1}\u00a0students would be reviewed:" in preview.text
    assert STUDENTS[-1] not in preview.text.partition('id="entries"')[2].partition("</table>")[0]
    assert reviews(desk) == []


def test_a_review_is_recorded_shown_ended_by_a_mark_and_taken_back(head, marked_session, desk):
    preview = head.post("/decide/review/preview", students=FIRST, note="Read all of it.")
    answer = head.post("/decide/review", seen=seen(preview), students=FIRST, note="Read all of it.")
    assert (answer.status_code, answer.headers["location"].partition("?")[0]) == (303, "/review")
    [review] = reviews(desk)
    assert (review.who, review.why, review.student_id) == ("head", "Read all of it.", FIRST)
    page = head.get("/review?done=review").text
    assert "reviewed by head on" in page and "The review was recorded." in page
    assert any("Record a review" in one.detail for one in audit_log(desk))
    set_mark(marked_session, NewMark(FIRST, "q6", 2.0, "Part b counts."))
    assert "since then q6: 1 → 2" in head.get("/review").text
    assert "Changed since it was reviewed" in head.get("/queue").text
    fields = {"students": FIRST, "why": "I confused two students."}
    preview = head.post("/decide/unreview/preview", **fields)
    head.post("/decide/unreview", seen=seen(preview), **fields)
    assert reviews(desk)[-1].withdrawn and "since then" not in head.get("/review").text


def test_what_is_open_and_what_contradicts_itself_is_refused(head, marked_session, desk):
    last = STUDENTS[-1]
    assert "Something is still open" in head.post("/decide/review/preview", students=last).text
    both = head.post("/decide/review/preview", students=FIRST, section="A")
    assert both.status_code == 422 and "Leave one empty" in both.text
    nobody = head.post("/decide/unreview/preview", students=SECOND, why="x")
    assert nobody.status_code == 422 and "nothing to take back" in nobody.text
    assert reviews(desk) == []


def test_sections_that_cannot_be_read_are_told(head, marked_session, desk):
    unknown = head.post("/decide/review/preview", section="A")
    assert unknown.status_code == 422
    assert head.get("/review").status_code == 200
