"""Reviews and questions to students in Chromium: by the pages' links, at a phone's width, and by axe."""

import pytest

from grader.domain.edit import InquiryAsked, Reviewed
from grader.web.access import StaffRole
from tests.web.conftest import STUDENTS

pytestmark = pytest.mark.browser
FIRST = STUDENTS[0]


def edits(desk, kind):
    return [edit for edit in desk.book.edits() if isinstance(edit, kind)]


def test_a_head_reviews_asks_and_takes_back(desk, marked_session, visit, objections):
    page = visit("head", StaffRole.HEAD)
    page.get_by_role("link", name="Review", exact=True).click()
    page.get_by_role("heading", name="Review", exact=True).wait_for()
    assert objections(page) == []
    page.set_viewport_size({"width": 390, "height": 800})
    assert objections(page) == [], "at a phone's width"
    page.set_viewport_size({"width": 1280, "height": 900})
    page.get_by_role("row", name=FIRST).get_by_role("link", name="Review it").click()
    page.get_by_label("Note").fill("Read all of it.")
    page.get_by_role("button", name="Show what would follow").click()
    page.get_by_text("1\u00a0student would be reviewed:").wait_for()
    assert objections(page) == []
    page.get_by_role("button", name="Record it").click()
    page.get_by_text("The review was recorded.").wait_for()
    [review] = edits(desk, Reviewed)
    assert (review.who, review.student_id, review.why) == ("head", FIRST, "Read all of it.")
    page.get_by_role("row", name=FIRST).get_by_role("link", name="Take it back").click()
    page.get_by_label("Why").fill("I confused two students.")
    page.get_by_role("button", name="Show what would follow").click()
    page.get_by_role("button", name="Record it").click()
    page.get_by_text("The reviews were taken back.").wait_for()
    assert edits(desk, Reviewed)[-1].withdrawn

    page.get_by_role("row", name=FIRST).get_by_role("link", name=FIRST, exact=True).click()
    page.get_by_role("link", name="Ask the student about it").click()
    page.get_by_label("About").select_option("code")
    page.get_by_label("Line").fill("homework.py:1")
    assert objections(page) == []
    page.get_by_role("button", name="Show what would follow").click()
    page.get_by_role("button", name="Record it").click()
    page.get_by_text("The student is asked.").wait_for()
    [asked] = edits(desk, InquiryAsked)
    assert (asked.student_id, asked.place) == (FIRST, "homework.py:1")
    assert page.title() != "run", "what the line holds is text"
