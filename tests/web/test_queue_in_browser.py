"""The queue worked off in Chromium, by keyboard alone, with previews and an undo."""

import pytest

from grader.domain.edit import Claimed, InTime, OwnerAssigned, Ruled, RunChosen, Waived
from grader.web.access import StaffRole

pytestmark = pytest.mark.browser


def press(page, locator):
    """Reach something by keyboard and press Enter."""
    locator.focus()
    page.keyboard.press("Enter")


def decide(page, link, **fields):
    """Follow a link of the queue, fill in the form, look at the preview, record it."""
    with page.expect_navigation():
        press(page, link)
    for name, value in fields.items():
        page.locator(f".decision input[name={name}]").focus()
        page.keyboard.press("Control+a")
        page.keyboard.type(value)
    with page.expect_navigation():
        page.keyboard.press("Enter")
    page.locator("#preview").wait_for()
    with page.expect_navigation():
        press(page, page.locator("#record"))
    page.locator(".banner").get_by_role("status").wait_for()


def test_the_queue_is_worked_off(visit_asked, asked, asking_desk):
    page = visit_asked("head", StaffRole.HEAD)
    with page.expect_navigation():
        press(page, page.get_by_role("link", name="Queue"))

    def link(cause, name):
        return page.locator(f"#{cause}").get_by_role("link", name=name).first

    decide(page, link("incomplete", "Give 0 points"), why="Nothing came by the deadline.")
    decide(page, link("refused", "Let what there is count"), why="The report counts.")
    decide(page, link("owner", "Say whose it is"), student="400101208", why="By the list of the course.")
    decide(page, link("claims", "Record the claimed accuracy"), accuracy="70", why="Page 3 says 70.")
    decide(page, link("fallen", "Choose which run counts"), number="1", why="The first was graded.")
    decide(page, link("suspect-checks", "Waive a check"), why="The handout did not ask for it.")
    late = page.locator("#late-decide, #late").get_by_role("link", name="Say when it came").first
    decide(page, late, moment="in-time", why="By mail.")
    for cause in ("incomplete", "refused", "owner", "claims", "fallen", "suspect-checks"):
        assert page.locator(f"#{cause}").count() == 0, cause
    with page.expect_navigation():
        press(page, page.get_by_role("link", name="Score the class again"))
    with page.expect_navigation():
        press(page, page.locator("#preview-button"))
    with page.expect_navigation():
        press(page, page.locator("#record"))
    kinds = [type(edit) for edit in asking_desk.book.edits() if edit.who == "head"]
    assert {Ruled, OwnerAssigned, Claimed, RunChosen, Waived, InTime} <= set(kinds)

    undo = page.locator("#decisions tr", has_text="counts as passed").get_by_role("link", name="Take back")
    before = len(asking_desk.book.edits())
    decide(page, undo, why="It did ask for it, on page 2.")
    assert page.locator("#suspect-checks").count() == 1
    assert len(asking_desk.book.edits()) == before + 1, "by a new entry"
