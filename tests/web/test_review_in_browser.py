"""Reviews and questions to students in Chromium: by the pages' links, at a phone's width, and by axe."""

import pytest

from grader.domain.edit import InquiryAsked, Marked, Reviewed
from grader.results.session import ClassSession
from grader.web.access import StaffRole
from tests.web.conftest import NOW, STUDENTS

pytestmark = pytest.mark.browser
FIRST = STUDENTS[0]


@pytest.fixture
def marked(desk, clock):
    """All but the last student are marked."""
    session = ClassSession(desk.out, desk.book, desk.assignment, "ta1", clock)
    marks = [
        Marked(who="ta1", when=NOW, why="Read.", student_id=student, target=target, points=1.0)
        for student in STUDENTS[:-1]
        for item in desk.assignment.rubric
        if item.by_person
        for target in item.targets
    ]
    session.revised("marks", decide=lambda *_: marks, allow_lower=True)
    return desk


def edits(desk, kind):
    return [edit for edit in desk.book.edits() if isinstance(edit, kind)]


def test_a_head_reviews_asks_and_takes_back(marked, visit, objections):
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
    [review] = edits(marked, Reviewed)
    assert (review.who, review.student_id, review.why) == ("head", FIRST, "Read all of it.")
    page.get_by_role("row", name=FIRST).get_by_role("link", name="Take it back").click()
    page.get_by_label("Why").fill("I confused two students.")
    page.get_by_role("button", name="Show what would follow").click()
    page.get_by_role("button", name="Record it").click()
    page.get_by_text("The reviews were taken back.").wait_for()
    assert edits(marked, Reviewed)[-1].withdrawn

    page.get_by_role("row", name=FIRST).get_by_role("link", name=FIRST, exact=True).click()
    page.get_by_role("link", name="Ask the student about it").click()
    page.get_by_label("About").select_option("code")
    page.get_by_label("Line").fill("homework.py:1")
    assert objections(page) == []
    page.get_by_role("button", name="Show what would follow").click()
    page.get_by_role("button", name="Record it").click()
    page.get_by_text("The student is asked.").wait_for()
    [asked] = edits(marked, InquiryAsked)
    assert (asked.student_id, asked.place) == (FIRST, "homework.py:1")
    assert page.title() != "run", "what the line holds is text"
