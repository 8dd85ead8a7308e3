"""Every page of the console in Chromium: axe objects to nothing, and nothing is too wide, in each mode."""

import json
import os
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import pytest
from starlette.routing import Route

from grader.decisions.oral_checks import OralRequest, pick_for_oral
from grader.domain.analyzed_program import Claim
from grader.domain.edit import RegradeAsked
from grader.domain.oral_check import OralFlag, OralReason
from grader.domain.submission import Role
from grader.gradebook import Gradebook
from grader.grading.recorded_run import RecordedRun, RunPhase, UnderWay, taken_lock
from grader.grading.result_writer import Keeper
from grader.marking.desk import Desk, handle_of, refresh
from grader.marking.mark_saving import ChosenMark, keep_draft, save_mark
from grader.marking.second_marking import choose_second
from grader.reports.whole_class.similarity_record import FILE, PAGE
from grader.results.session import ClassSession
from grader.web.access import StaffRole
from grader.web.application import application
from tests.web.conftest import NOW, STUDENTS, tabs
from tests.web.test_grading_page import asked, keep

MODES = ((1280, "light"), (1280, "dark"), (390, "light"))
ONE, OTHER = STUDENTS[:2]
# what is drawn within another page, or is no page
PARTS = {
    "/questions/{target}/bank": "the search for comments in a task",
    "/questions/{target}/{handle}/here": "who else is at a task",
    "/submissions/{handle}/search": "the search in the PDF of a task",
    "/grading/progress": "the page of the grading",
    "/submissions/{handle}/page-{number}.webp": "a picture in a task",
    "/submissions/{handle}/answers.pdf": "a file to be saved",
    "/static/{digest}/{name}": "styles and scripts",
    "/enter/{token}": "leads to the first page",
}


def addresses(handle: str) -> dict[str, tuple[str, ...]]:
    """Route -> the addresses at which it is looked at."""
    task = f"/questions/q6/{handle}"
    return {
        "/": ("/",),
        "/next": ("/next",),
        "/log": ("/log",),
        "/assign/{target}": ("/assign/q6", "/assign/q6?done=question&count=12"),
        "/statistics": ("/statistics",),
        "/similar": ("/similar",),
        "/similar/side-by-side": ("/similar/side-by-side",),
        "/grading": ("/grading?only=400101204", "/grading?asked=stop"),
        "/oral": ("/oral", "/oral?done=pick&changed=1"),
        "/oral/{kind}": ("/oral/questions", "/oral/notes"),
        "/oral/{student}/{kind}": (f"/oral/{ONE}/questions", f"/oral/{ONE}/notes"),
        "/review": ("/review", "/review?done=review&changed=0"),
        "/queue": ("/queue", "/queue?done=rule&changed=1"),
        "/students/{student}": ("/students/400101222", f"/students/{ONE}"),
        "/decide/{kind}": (
            "/decide/owner?upload=moodle-77",
            "/decide/regrade",
            "/decide/pick",
            f"/decide/outcome?student={ONE}",
            f"/decide/answer?student={OTHER}",
            f"/decide/inquire?student={ONE}&about=similar",
            f"/decide/settle?student={ONE}",
            f"/decide/review?students={ONE}",
            "/decide/waive",
        ),
        "/rubric/{target}": ("/rubric/q6",),
        "/questions/{target}": ("/questions/q6", "/questions/q6?done=all"),
        "/questions/{target}/next": ("/questions/q8/next",),
        "/questions/{target}/{handle}": (
            task,
            f"{task}?by=student",
            f"/questions/q9/{handle}",
            f"/questions/q10.class_token/{handle}",
        ),
        "/submissions/{handle}": (f"/submissions/{handle}",),
    }


@pytest.fixture
def desk(marked_class, tmp_path, assignment, class_evidence) -> Iterator[Desk]:
    """The class to mark, with submissions for which a person is needed, and something on every page."""
    out, url = marked_class
    folder = tmp_path / assignment.id
    folder.mkdir()
    for name in ("comments.toml", "questions.toml"):
        (folder / name).write_bytes((assignment.folder / name).read_bytes())
    (folder / "marking.toml").write_text(ITEMS, encoding="utf-8")
    dated = replace(assignment, folder=folder, deadline=NOW - timedelta(days=3))
    failed = {"failed": [next(spec.id for spec in dated.checks if spec.component == "Attention")]}
    came = {"received_at": NOW - timedelta(days=4)}
    submissions = [
        class_evidence("400101222", **failed, missing=(Role.REPORT,), **came),
        class_evidence("400101223", **failed, status="refused", reason="It is no archive.", **came),
        class_evidence("moodle-77", **failed, **came),
        class_evidence("400101225", **failed, received_at=NOW),
        class_evidence("400101226", **failed, claim=Claim(0.99, "In [3]", "0.99"), **came),
    ]
    with Gradebook(out, url) as book:
        keeper = Keeper(dated, book, out, "ta1")
        for number, evidence in enumerate(submissions):
            held = "Its files name nobody." if evidence.student_id == "moodle-77" else ""
            keeper.kept(replace(evidence, submission_digest=f"more {number}"), {}, NOW, held=held)
        opened = Desk(out, book, dated)
        refresh(opened)
        _fill(opened)
        yield opened


ITEMS = """
[[item]]
id = "no_order"
part = "q6"
points = -1.5
text = "Order is **not** named: $x_i$."
note = "Also if only numbering is named."
group = "What is missing"

[[item]]
id = "no_example"
part = "q6"
points = -1
text = "There is no example."
"""


def _fill(desk: Desk) -> None:
    """Marks, drafts, decisions, a comparison, an oral check, a request, and a record of a grading."""
    handle = handle_of(desk, ONE)
    chosen = ChosenMark(items=("no_order",), comment="Say *why*: $a^2$.")
    save_mark(desk, "q6", handle, chosen, "head", NOW, drawn_from=0)
    choose_second(desk, "q6", 1.0, ["ta2"], NOW, by="head")
    save_mark(desk, "q6", handle, ChosenMark(points=3), "ta2", NOW, drawn_from=0)
    keep_draft(desk, "q9", handle, ChosenMark(points=3, comment="Half a"), "head", NOW, drawn_from=0)
    session = ClassSession(desk.out, desk.book, desk.assignment, "head", lambda: NOW, followed=desk.followed)
    pick_for_oral(
        session,
        OralRequest(share=0.2, seed="of the course", students=(ONE,), why="As announced."),
        lambda results: {OTHER: [OralFlag(OralReason.CLAIM, "0.99, and 0.7 was measured")]},
        allow_lower=True,
    )
    request = RegradeAsked(
        who=OTHER, when=NOW, why="Part b.", student_id=OTHER, target="q6", asked=NOW, points=None
    )
    assert desk.book.append([request], [], after=desk.book.state()) is not None
    pairs = [{"one": ONE, "other": OTHER, "before": False, "says": "98 % of their own code"}]
    record = {"assignment": desk.assignment.id, "compared_at": "2026-02-01T12:00:00Z", "submissions": 12}
    content = json.dumps({**record, "threshold": 0.5, "pairs": pairs})
    (desk.out / FILE).write_text(content, encoding="utf-8")
    page = '<!doctype html><html lang="en"><title>Pairs</title><main><h1>Pairs</h1></main></html>'
    (desk.out / PAGE).write_text(page, encoding="utf-8")
    keep(desk.out, asked(desk.out / "download.zip"))


def test_every_page_is_looked_at(console):
    shown = {route.path for route in application(console).app.routes if "GET" in route.methods}
    assert all(isinstance(route, Route) for route in application(console).app.routes)
    assert shown == addresses("x").keys() | PARTS.keys()


@pytest.mark.browser
def test_axe_objects_to_no_page_and_none_is_wider_than_the_screen(
    browser, database, served, desk, objections
):
    modes = MODES if database == "sqlite" else MODES[:1]  # colors and widths do not come from the database
    handle = handle_of(desk, ONE)
    task = f"/questions/q6/{handle}"
    faults = []
    with tabs(browser, served, bypass_csp=True) as visit:
        page = visit("head", StaffRole.HEAD)

        def look(what):
            faults.extend((what, *mode, found) for mode in modes for found in objections(page, *mode))

        def press(selector):
            with page.expect_navigation():
                page.locator(selector).click()

        for group in addresses(handle).values():
            for address in group:
                page.goto(f"{served.address}{address}")
                look(address)

        page.goto(f"{served.address}{task}")
        save_mark(desk, "q6", handle, ChosenMark(points=4), "ta1", NOW, drawn_from=mark_version(page))
        page.fill("#comment", "Another view.")
        press("#mark button[value=stay]")
        assert page.locator("#conflict").count() == 1, page.inner_text("[role=alert]")
        look("two versions of a mark")
        page.fill("#points", "9")
        press("#mark button[value=stay]")
        assert "Not saved" in page.inner_text("[role=alert]")
        look("what is not a mark")

        page.goto(f"{served.address}/decide/rule?student=400101222")
        press("#preview-button")
        assert "Why is empty" in page.inner_text("main")
        look("a decision without a reason")
        page.fill("[name=why]", "Nothing came.")
        press("#preview-button")
        look("a preview")
        page.goto(f"{served.address}/decide/pick")
        page.fill("[name=share]", "50")
        press("#preview-button")
        assert page.locator("#entries tbody tr").count() > 2
        look("who would be picked")

        page.goto(f"{served.address}/rubric/q6")
        page.locator("[name=points]").first.fill("-2")
        press("button.button")
        look("marks that would change")

        page.goto(f"{served.address}/grading?only=400101204")
        assert page.input_value("[name=only]") == "400101204"
        keep(desk.out, asked(desk.out / "download.zip"), run=UNDER_WAY)
        lock = taken_lock(desk.out)
        try:
            page.goto(f"{served.address}/grading")
            assert "1 of 4 done" in page.inner_text("#progress")
            look("a grading under way")
        finally:
            os.close(lock)
        page.locator("#start").wait_for()  # the page sees by itself that it is over
        look("a grading that ended without a word")

        page.goto(f"{served.address}/nowhere")
        look("no such page")
        page.goto(f"{served.address}/decide/nonsense")
        look("what is not possible")
        page.goto(f"{served.address}/enter/x.y")
        look("a link that does not work")
        page.goto(f"{served.address}/")
        press("form[action='/leave'] button")
        look("signed out")
        page.goto(f"{served.address}/queue")
        assert "not signed in" in page.inner_text("main")
        look("not signed in")
    assert faults == []


UNDER_WAY = RecordedRun(
    "r1",
    "ta1",
    NOW,
    RunPhase.GRADING,
    "1 of 4 done",
    0.3,
    "12 s",
    (UnderWay("400101204", "checks", 0.5, "22 of 44 checks"),),
    "4 to grade.",
)


def mark_version(page) -> int:
    """The version of the mark that a task's page shows."""
    return int(page.locator("#mark [name=version]").get_attribute("value"))
