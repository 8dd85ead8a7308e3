"""Oral checks in the console: who is picked and why, the sheets, the outcome, and taking it back."""

import re
import shutil
from dataclasses import replace

import pytest

from grader.domain.analyzed_program import Claim
from grader.domain.edit import OrallyChecked, PickedForOral
from grader.domain.oral_check import FLAGS, OralOutcome, OralReason
from grader.domain.submission import Origin
from grader.gradebook import Gradebook
from grader.grading.result_writer import Keeper
from grader.marking.audit_log import audit_log
from grader.marking.desk import Desk, refresh
from grader.results.oral_sheets import FOLDER, QUESTIONS
from grader.web.access import Access, StaffRole
from grader.web.inquiry_forms import FLAG_WORDS
from grader.web.listening import Listening
from grader.web.visits import Console
from tests.web.conftest import NOW, SCRIPT, running, tabs
from tests.web.test_queue_page import decided, seen

STUDENTS = tuple(f"4001012{number:02}" for number in range(1, 9))
CLAIMS = STUDENTS[5]  # more than the code reached


def grade(out, url, assignment, class_evidence):
    """A class of eight with code to ask about; one claims too much."""
    source = {"homework.py": (assignment.folder / "solution.py").read_text(encoding="utf-8")}
    with Gradebook(out, url) as book:
        keeper = Keeper(assignment, book, out, "ta1")
        for number, student_id in enumerate(STUDENTS):
            claim = Claim(0.99, "In [3]", "0.99") if student_id == CLAIMS else None
            evidence = class_evidence(student_id, source=source, claim=claim)
            origin = Origin(person=f"{SCRIPT} Zahra")
            keeper.kept(replace(evidence, submission_digest=f"{number}", origin=origin), {}, NOW)


@pytest.fixture(scope="module")
def graded_once(tmp_path_factory, assignment, class_evidence):
    out = tmp_path_factory.mktemp("oral") / "results"
    grade(out, None, assignment, class_evidence)
    return out


@pytest.fixture
def oral_desk(database, request, tmp_path, assignment, class_evidence, graded_once):
    out, url = tmp_path / "results", None
    if database == "sqlite":
        shutil.copytree(graded_once, out)
    else:
        url = request.getfixturevalue("new_database")()
        grade(out, url, assignment, class_evidence)
    with Gradebook(out, url) as book:
        opened = Desk(out, book, assignment)
        refresh(opened)
        yield opened


@pytest.fixture
def console(oral_desk, clock):
    return Console(oral_desk, Access(oral_desk.out, clock), Listening(), 8765, clock)


@pytest.fixture
def head(come):
    return come("head", StaffRole.HEAD)


def picks(desk):
    return [edit for edit in desk.book.edits() if isinstance(edit, PickedForOral)]


def outcomes(desk):
    return [edit.outcome for edit in desk.book.edits() if isinstance(edit, OrallyChecked)]


def test_every_flag_has_words():
    assert set(FLAG_WORDS) == set(FLAGS)


def test_markers_are_shown_nothing_of_it(come):
    ta = come("ta1")
    for address in ("/oral", "/oral/questions", f"/oral/{CLAIMS}/notes", "/decide/pick", "/decide/outcome"):
        assert ta.get(address).status_code == 403, address
    assert ta.post("/decide/outcome", student=CLAIMS, outcome="passed", why="x").status_code == 403


def test_a_preview_says_who_would_be_picked_and_why_and_records_nothing(head, oral_desk):
    before = oral_desk.book.state()
    preview = head.post("/decide/pick/preview", share="30", seed="of the course")
    [listed] = re.findall(r'<table class="listed" id="entries">.*?</table>', preview.text, re.DOTALL)
    assert listed.count("picked (seed of the course)") == 3, "30 % of 8, rounded up"
    assert CLAIMS in listed and "claim: " in listed and "<script>" not in listed
    assert oral_desk.book.state() == before and not (oral_desk.out / FOLDER).exists()
    without = head.post("/decide/pick/preview", share="0", **{"without-claim": "yes"})
    assert "Nobody would be picked" in without.text


def test_who_was_shown_is_picked_and_the_page_says_why(head, oral_desk):
    fields = {"share": "30", "students": STUDENTS[0], "why": "As announced."}
    preview = head.post("/decide/pick/preview", **fields)
    assert picks(oral_desk) == []
    answer = head.post("/decide/pick", seen=seen(preview), **fields)
    assert (answer.status_code, answer.headers["location"].partition("?")[0]) == (303, "/oral")
    reasons = {edit.student_id: {flag.reason for flag in edit.reasons} for edit in picks(oral_desk)}
    assert sum(OralReason.DRAWN in one for one in reasons.values()) == 3
    assert OralReason.CLAIM in reasons[CLAIMS] and OralReason.CHOSEN in reasons[STUDENTS[0]]
    page = head.get("/oral").text
    assert all(student in page for student in reasons) and "As announced." in page
    assert picks(oral_desk)[0].seed in page and f"{len(reasons)}\u00a0students picked" in page
    assert (oral_desk.out / FOLDER / QUESTIONS).is_file()
    assert any("Pick students" in one.detail for one in audit_log(oral_desk))


def test_somebody_else_picked_meanwhile_is_shown_first(head, oral_desk):
    fields = {"students": STUDENTS[0], "why": "As announced."}
    stale = seen(head.post("/decide/pick/preview", **fields))
    decided(head, "pick", share="0")
    more = {"students": f"{STUDENTS[0]} {STUDENTS[1]}", "why": "As announced."}
    answer = head.post("/decide/pick", seen=stale, **more)
    assert answer.status_code == 409 and "Nothing was recorded" in answer.text
    assert {edit.student_id for edit in picks(oral_desk)} == {CLAIMS}


REFUSED = (
    ("pick", {}, "Say how many are to be drawn"),
    ("pick", {"share": "0.15"}, "in percent: 0.15 would be 0.15 %. Write 15."),
    ("pick", {"share": "many"}, "is not a share in percent"),
    ("pick", {"share": "101"}, "is not a share in percent"),
    ("pick", {"students": "400109999", "why": "x"}, "There is no student"),
    ("pick", {"students": STUDENTS[0]}, "Say why"),
    ("outcome", {"student": STUDENTS[0], "outcome": "passed", "why": "x"}, "was not picked"),
    ("outcome", {"student": STUDENTS[0], "outcome": "", "why": "x"}, "Outcome is empty"),
    ("outcome", {"student": STUDENTS[0], "outcome": "none", "why": "x"}, "Choose how the check went"),
    ("outcome", {"student": STUDENTS[0], "outcome": "passed", "why": ""}, "Why is empty"),
)


def test_what_is_not_allowed_is_said(head, oral_desk):
    before = oral_desk.book.state()
    for kind, fields, sentence in REFUSED:
        answer = head.post(f"/decide/{kind}/preview", **fields)
        assert answer.status_code == 422 and sentence in answer.text.replace("&#39;", "'"), sentence
    assert oral_desk.book.state() == before


def test_sheets_are_shown_with_their_own_style_and_nothing_else(head, oral_desk):
    assert head.get(f"/oral/{CLAIMS}/questions").status_code == 404, "not picked yet"
    decided(head, "pick", share="0")
    for address in (f"/oral/{CLAIMS}/questions", f"/oral/{CLAIMS}/notes", "/oral/questions", "/oral/notes"):
        answer = head.get(address)
        policy = answer.headers["content-security-policy"]
        assert answer.status_code == 200 and answer.text.count("<li>") == 5, address
        assert "sandbox" in policy and "style-src 'sha256-" in policy and "unsafe-inline" not in policy
    assert "claim" not in head.get(f"/oral/{CLAIMS}/questions").text.partition("<body>")[2]
    assert head.get(f"/oral/{CLAIMS}/marks").status_code == head.get("/oral/marks").status_code == 404
    opened = [one.detail for one in audit_log(oral_desk)]
    assert f"opened the notes of oral checks: {CLAIMS}" in opened


def test_after_a_check_that_was_not_passed_a_person_rules(head, oral_desk):
    decided(head, "pick", share="0")
    decided(head, "outcome", student=CLAIMS, outcome="failed", why="Could not say what softmax does.")
    page = head.get("/oral").text
    assert "to be ruled on" in page and f"/decide/rule?student={CLAIMS}" in page
    decided(head, "rule", student=CLAIMS, why="The work is not the student's own.")
    assert oral_desk.book.totals(CLAIMS)[-1].points == 0


@pytest.mark.browser
def test_an_oral_check_from_the_draw_to_its_outcome(browser, oral_desk, clock):
    with running(oral_desk, clock) as it, tabs(browser, it) as visit:
        page = visit("head", StaffRole.HEAD)

        def press(name, within=page, **options):
            with page.expect_navigation():
                within.get_by_role("link", name=name, **options).first.focus()
                page.keyboard.press("Enter")

        def send(selector):
            with page.expect_navigation():
                page.locator(selector).focus()
                page.keyboard.press("Enter")

        press("Oral checks")
        press("Pick students")
        page.fill("[name=share]", "20")
        send("#preview-button")
        assert page.locator("#entries tbody tr").count() >= 2 and "drawn" in page.inner_text("#entries")
        assert picks(oral_desk) == []
        send("#record")
        row = page.locator("#picked tr", has_text="claim")
        assert CLAIMS in row.inner_text() and "to be asked" in row.inner_text()
        press("Questions", within=row)
        assert page.locator("ol > li").count() == 5
        assert page.locator(".oral").evaluate("one => getComputedStyle(one).maxWidth") != "none"
        page.go_back()
        press("Record it", within=row)
        page.select_option("[name=outcome]", "passed")
        page.fill("[name=why]", "Explained the attention line by line.")
        send("#preview-button")
        send("#record")
        assert "passed (head: Explained" in row.inner_text()
        press("Take it back", within=row)
        page.fill("[name=why]", "It was another student.")
        send("#preview-button")
        send("#record")
        assert outcomes(oral_desk) == [OralOutcome.PASSED, None]
        page.goto(f"{it.address}/oral")
        assert "to be asked" in row.inner_text()
