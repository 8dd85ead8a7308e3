"""What users of other graders wish for, tried in Chromium: `docs/console.md` names the test of each wish."""

import json
from dataclasses import replace

import pytest

from grader.decisions.last_word import rule
from grader.domain.edit import Marked, RegradeAnswered, RegradeAsked, Released
from grader.domain.submission import ANSWERS_TEXT_FILE, Answers, DrawnPage, Role
from grader.grading.result_writer import Keeper
from grader.marking.desk import handle_of
from grader.marking.mark_saving import ChosenMark, save_mark
from grader.marking.task_list import task_lines
from grader.results.session import ClassSession
from grader.web.access import StaffRole
from tests.web.conftest import NAME, NOW, STUDENTS, page_picture
from tests.web.test_queue_in_browser import decide

pytestmark = pytest.mark.browser
STUDENT, OTHER = STUDENTS[:2]


@pytest.fixture
def address(served, desk):
    """The address of a student's task: `address(STUDENT, "q6")`."""

    def of(student_id=STUDENT, target="q6"):
        return f"{served.address}/questions/{target}/{handle_of(desk, student_id)}"

    return of


def given(desk, student_id=STUDENT):
    """The marks of q6 in the gradebook."""
    edits = [edit for edit in desk.book.edits(student_id) if isinstance(edit, Marked)]
    return [(edit.who, edit.points) for edit in edits if edit.target == "q6"]


def follow(page, name):
    with page.expect_navigation():
        page.get_by_role("link", name=name).first.click()


def press(page, name):
    with page.expect_navigation():
        page.get_by_role("button", name=name, exact=True).first.click()


def mark(page, points):
    page.fill("#points", points)
    with page.expect_navigation():
        page.keyboard.press("Control+Enter")


def test_next_is_the_one_after_this_until_nothing_is_left(visit, served, desk):
    handles = [line.handle for line in task_lines(desk, "q6", "ta1", NOW)]
    for handle in (handles[1], *handles[5:]):
        save_mark(desk, "q6", handle, ChosenMark(points=3), "ta2", NOW, drawn_from=0)
    page = visit("ta1")
    page.goto(f"{served.address}/questions/q6/{handles[3]}")
    seen = []
    for _ in range(4):
        seen.append(page.url.rpartition("/")[2])
        mark(page, "4")
    assert seen == [handles[number] for number in (3, 4, 0, 2)], "onward, round, without what is marked"
    assert "Nothing is left for you in this question" in page.inner_text("main")
    follow(page, "Vision Transformer")
    rows = [row.inner_text() for row in page.locator("[aria-label=Markers] tbody tr").all()]
    assert any(row.startswith("ta1\tq6\t4\t\t4 / 5\t") for row in rows), rows
    assert any(row.startswith("ta2\tq6\t8\t\t3 / 5\t") for row in rows), rows


def test_rubric_items_are_edited_in_the_page_and_in_retrospect(visit, served, desk, address):
    for student_id in (STUDENT, OTHER):
        chosen = ChosenMark(items=("no_order",))
        save_mark(desk, "q6", handle_of(desk, student_id), chosen, "ta1", NOW, drawn_from=0)
    page = visit("head", StaffRole.HEAD)
    page.goto(f"{served.address}/questions/q6")
    follow(page, "Rubric items")
    page.locator("[name=points]").first.fill("-2")
    new = page.get_by_role("group", name="A new item")
    new.get_by_label("Id").fill("late")
    new.get_by_label("Points").fill("-0.5")
    new.get_by_label("For the student").fill("It came **late**.")
    press(page, "Save the items")
    assert given(desk) == [("ta1", 3.5)], "marks wait for a person"
    text = (desk.assignment.folder / "marking.toml").read_text(encoding="utf-8")
    assert 'id = "late"' in text and "points = -2" in text, "the file is what counts"
    rows = page.locator("[aria-label='Marks that would change'] tbody tr")
    assert {row.locator("code").inner_text() for row in rows.all()} == {
        handle_of(desk, one) for one in (STUDENT, OTHER)
    }
    press(page, "Change these marks")
    assert "2 marks were changed" in page.inner_text("[role=status]")
    assert given(desk) == [("ta1", 3.5), ("head", 3.0)]
    page.goto(address())
    assert page.get_by_label("It came late.").count() == 1


def test_a_mark_is_corrected_and_taken_back_flagged_and_noted(visit, desk, address):
    page, colleague = visit("ta1"), visit("ta2")
    page.goto(address())
    mark(page, "4")
    page.goto(address())
    mark(page, "3")
    assert given(desk) == [("ta1", 4.0), ("ta1", 3.0)], "one's own mark is corrected at once"
    page.goto(address())
    page.get_by_text("Notes for markers").click()
    page.get_by_label("A note, which no student sees").fill("Talk about *it*.")
    press(page, "Add the note")
    page.get_by_text("Skip, flag, hand over").click()
    page.get_by_label("Why somebody should look").fill("Is this copied?")
    press(page, "Flag")
    colleague.goto(address())
    assert "Flagged by ta1: Is this copied?" in colleague.inner_text("aside")
    assert "Talk about it." in colleague.inner_text("#notes")
    page.get_by_text("Skip, flag, hand over").click()
    page.get_by_label("Why, for the student").fill("Wrong page.")
    press(page, "Take the mark back")
    assert given(desk)[-1] == ("ta1", None)


def test_a_blind_page_tells_nothing_and_its_files_neither(visit, served, desk, address):
    page = visit("ta1")
    for place in (f"{served.address}/", f"{served.address}/questions/q6", address()):
        page.goto(place)
        assert not any(word in page.content() for word in (STUDENT, *NAME.split())), place
        assert STUDENT not in page.url
    assert "homework.py" in page.inner_text(".work"), "the code as handed in"
    page.get_by_role("link", name="Save the PDF as handed in").scroll_into_view_if_needed()
    with page.expect_download() as download:
        page.get_by_role("link", name="Save the PDF as handed in").click()
    assert download.value.suggested_filename == "answers.pdf"
    assert download.value.path().read_bytes() == b"%PDF-1.4 hostile"


def test_grading_again_keeps_the_mark_and_who_handed_in_nothing_or_together_is_counted_so(
    visit, served, desk, address, class_evidence
):
    page = visit("ta1")
    page.goto(address())
    mark(page, "4")
    keeper = Keeper(desk.assignment, desk.book, desk.out, "ta1")
    for student_id in ("400101298", "400101299"):  # a team, of which one is another's mate
        team = {"team": ("400101298", "400101299"), "submission_digest": "team"}
        keeper.kept(replace(class_evidence(student_id), **team), {}, NOW)
    keeper.kept(replace(class_evidence("400101297", missing=(Role.REPORT,))), {}, NOW)
    again = replace(class_evidence(STUDENT), submission_digest="later", answers=ANSWERS)
    keeper.kept(again, {}, NOW)
    page.goto(address())
    assert "4 / 5 ta1" in page.inner_text(".stands") and "for an earlier attempt" in page.inner_text(
        ".stands"
    )
    page.goto(f"{served.address}/questions/q6")
    assert "1 of 14\xa0answers marked" in page.inner_text("main"), "the team once"
    session = ClassSession(desk.out, desk.book, desk.assignment, "head", lambda: NOW, followed=desk.followed)
    rule(session, ["400101297"], why="Nothing came.")
    page.reload()
    assert "1 of 13\xa0answers marked" in page.inner_text("main"), "who handed in nothing is left out"
    page.goto(address("400101299"))
    assert "handed in by 2 together" in page.inner_text("aside")
    mark(page, "3")
    assert given(desk, "400101298") == given(desk, "400101299") == [("ta1", 3.0)]


ANSWERS = Answers("answers.pdf", "ab" * 32, 9, kept=False, pages=1, tried=1, drawn=(DrawnPage(1, 600, 780),))


def test_a_request_for_another_look_is_answered_in_the_queue(visit, served, desk):
    total = desk.book.snapshot().totals[OTHER].points
    who = {"who": OTHER, "when": NOW, "student_id": OTHER}
    released = Released(**{**who, "who": "head"}, why="", way="publish", points=total)
    asked = RegradeAsked(**who, why="Part b is on page 4.", target="q6", asked=NOW, points=None)
    assert desk.book.append([released, asked], [], after=desk.book.state()) is not None
    page = visit("head", StaffRole.HEAD)
    follow(page, "Queue")
    assert "q6: Part b is on page 4." in page.inner_text("#requests")
    link = page.locator("#requests").get_by_role("link", name="Answer a request")
    decide(page, link, points="3", why="It is there.")
    assert page.locator("#requests").count() == 0
    answers = [edit for edit in desk.book.edits(OTHER) if isinstance(edit, RegradeAnswered)]
    assert [edit.points for edit in answers] == [3] and given(desk, OTHER) == [("head", 3)]


def test_a_task_opens_at_the_page_that_answers_it_with_the_mark_beside(visit, served, desk, address):
    pages = tuple(DrawnPage(number, 600, 780) for number in (1, 2, 3))
    evidence = desk.book.evidence(STUDENT, 1)
    answers = replace(evidence.answers, pages=3, tried=3, drawn=pages)
    texts = json.dumps({"1": "Question 5: patches", "2": "Question 6: order", "3": "Question 7"}).encode()
    files = {page.image: page_picture() for page in pages}
    keeper = Keeper(desk.assignment, desk.book, desk.out, "ta1")
    again = replace(evidence, answers=answers, submission_digest="three pages")
    keeper.kept(again, {**files, ANSWERS_TEXT_FILE: texts}, NOW)
    page = visit("ta1")
    page.goto(address())
    page.wait_for_function("() => scrollY > 0")
    top = page.locator("#page-2").evaluate("one => one.getBoundingClientRect().top")
    assert 0 < top < 300, "below what stays at the top"
    assert page.locator("#points").is_visible() and page.locator("#page-1").evaluate(
        "one => one.getBoundingClientRect().bottom < 300"
    )
