"""Every text of a student, an LMS or a marker that reaches a page is text there, and nothing runs."""

import ast
import json
import os
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from grader.domain.analyzed_program import Claim
from grader.domain.edit import RegradeAsked
from grader.domain.evidence import Blame, Finding, Status
from grader.domain.submission import (
    ANSWERS_TEXT_FILE,
    Answers,
    CellKind,
    Origin,
    RefusedFile,
    View,
    ViewCell,
    plain_lines,
)
from grader.files.stored_records import VIEW_FILE, view_bytes
from grader.gradebook import Gradebook
from grader.grading.recorded_run import RecordedRun, RunPhase, UnderWay, taken_lock
from grader.grading.result_writer import Keeper
from grader.marking.desk import Desk, handle_of, refresh
from grader.reports.whole_class.similarity_record import FILE
from grader.web.access import Access, StaffRole
from grader.web.application import application
from grader.web.listening import Listening
from grader.web.visits import Console
from tests.web.conftest import ITEMS, NOW
from tests.web.test_every_page_in_browser import PARTS
from tests.web.test_grading_page import asked as graded_before
from tests.web.test_grading_page import keep

STUDENT = "400101201"
CRAFTED = [
    "<script>document.title='run'</script>",
    '"><img src=x onerror="document.title=\'run\'">',
    "'><svg onload=alert(1)>",
    "javascript:alert(1)",
    "</textarea></title></style><script>alert(1)</script>",
    "{{ 7 * 7 }} {% raw %} ${7*7}",
    '" autofocus onfocus="alert(1)',
    "<a href='javascript:alert(1)'>x</a> [x](javascript:alert(1)) ![x](https://example.org/x.png)",
    r"$\text{<script>alert(1)</script>}$ $\href{javascript:alert(1)}{x}$",
    "<meta http-equiv=refresh content='0;url=https://example.org'><base href=https://example.org>",
    "<form action=https://example.org><button>x</button></form><iframe src=https://example.org></iframe>",
    "\u202e\u2066 =cmd|'/c calc'!A1 \x1b]0;title\x07 &lt;b&gt; \ufeff",
]


def attack_texts(course_root):
    """The string constants with markup in the attack suite, as students' code would say them."""
    texts = []
    for path in sorted((course_root / "tests" / "attacks").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8", errors="replace"))):
            is_text = isinstance(node, ast.Constant) and isinstance(node.value, str)
            if is_text and "<" in node.value and any(word in node.value for word in ("script", "img", "svg")):
                texts.append(node.value.encode("utf-8", "replace").decode()[:2000])
    return texts


class Tags(HTMLParser):
    """The tags of a page, and what of them could run or load something."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.faults = []

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        if tag == "script" and not (values.get("src") or "").startswith("/static/"):
            self.faults.append((tag, attrs))
        if tag in ("iframe", "object", "embed", "base", "style", "frame", "applet"):
            self.faults.append((tag, attrs))
        if tag == "meta" and "http-equiv" in values:
            self.faults.append((tag, attrs))
        for name, value in attrs:
            if name.startswith("on") or name in ("style", "srcdoc", "formaction", "autofocus"):
                self.faults.append((tag, name))
            leads = name in ("href", "src", "action", "poster", "xlink:href", "hx-get", "hx-post")
            if leads and not (value or "").startswith(("/", "#", "data:,", "data:image/")):
                self.faults.append((tag, name, value))


@pytest.fixture(scope="module")
def texts(course_root):
    found = attack_texts(course_root)
    assert any("alert" in text for text in found), "the attack suite has such texts"
    return [*CRAFTED, *dict.fromkeys(found)]


@pytest.fixture
def desk(texts, database, request, tmp_path, assignment, class_evidence):
    """A class of one submission, of which every text is hostile, and hostile words of markers beside it."""
    everything = "\n".join(texts)
    out, folder = tmp_path / "results", tmp_path / assignment.id
    folder.mkdir()
    comments = "\n".join(
        f'[[comment]]\nid = "hostile{number}"\ntext = {json.dumps(text.replace(chr(0x7F), ""))}\n'
        for number, text in enumerate(CRAFTED)
    )
    (folder / "comments.toml").write_text(comments, encoding="utf-8")
    (folder / "marking.toml").write_text(
        ITEMS + f'\n[[item]]\nid = "hostile"\npart = "q6"\npoints = -1\ntext = {json.dumps(CRAFTED[0])}\n'
        f"note = {json.dumps(CRAFTED[1])}\ngroup = {json.dumps(CRAFTED[2])}\n",
        encoding="utf-8",
    )
    evidence = class_evidence(STUDENT)
    findings = tuple(
        Finding(one.check, one.component, text[:200], Status.FAILED, Blame.STUDENT, message=text, hint=text)
        for one, text in zip(evidence.findings, texts * len(evidence.findings), strict=False)
    )
    cells = (
        ViewCell(CRAFTED[0], CellKind.TEXT, (), f"<p>Question 6</p>{everything}"),
        ViewCell(CRAFTED[1], CellKind.CODE, plain_lines(everything), everything),
    )
    evidence = replace(
        evidence,
        findings=findings,
        source={"homework.py": everything},
        code_file=CRAFTED[1],
        origin=Origin(key="1", upload=CRAFTED[0], person=f"{CRAFTED[1]} {CRAFTED[2]}"),
        claim=Claim(0.99, CRAFTED[0], CRAFTED[1]),
        refused_files=tuple(RefusedFile(text[:80], text) for text in texts),
        answers=Answers(CRAFTED[0], "ab" * 32, 9, kept=False, pages=1, tried=1),
    )
    asked = RegradeAsked(
        who=CRAFTED[0],
        when=NOW,
        why=everything[:2000],
        student_id=STUDENT,
        target="q6",
        asked=NOW,
        points=None,
    )
    page_texts = json.dumps({"1": everything.replace("\x00", "")}).encode()
    files = {VIEW_FILE: view_bytes(View("homework.py", cells)), ANSWERS_TEXT_FILE: page_texts}
    url = None if database == "sqlite" else request.getfixturevalue("new_database")()
    with Gradebook(out, url) as book:
        Keeper(assignment, book, out, "ta1").kept(evidence, files, NOW)
        assert book.append([asked], [], after=book.state()) is not None
        write_records(out, assignment.id, everything)
        opened = Desk(out, book, replace(assignment, folder=folder))
        refresh(opened)
        yield opened


def write_records(out, assignment_id, everything):
    """A comparison and a grading that say what students, or files that they named, made them say."""
    pairs = [{"one": STUDENT, "other": text[:60], "before": True, "says": text} for text in CRAFTED]
    record = {"assignment": assignment_id, "compared_at": "2026-02-01T12:00:00Z", "submissions": 1}
    (out / FILE).write_text(json.dumps({**record, "threshold": 0.5, "pairs": pairs}), encoding="utf-8")
    under_way = tuple(UnderWay(text[:60], CRAFTED[0], 0.5, text) for text in CRAFTED)
    run = RecordedRun(
        "r1", CRAFTED[0], NOW, RunPhase.GRADING, everything[:500], 0.3, CRAFTED[1], under_way, CRAFTED[2]
    )
    keep(out, graded_before(out / "<script>alert(1)</script>"), run=run)


@pytest.fixture
def console(desk, clock):
    return Console(desk, Access(desk.out, clock), Listening(), 8765, clock)


def said_by_markers(head, handle, texts):
    """Hostile words in every field that markers and heads have."""
    task = f"/questions/q6/{handle}"
    for text in texts:
        head.post(f"{task}/note", text=text)
        head.post(f"{task}/flag", text=text)
        version = head.version(task)
        head.post(f"{task}/save", version=version, points="3", comment=text, item="no_order", reason=text)
        head.post("/decide/waive/preview", check=text, why=text)
        pick = {"students": STUDENT, "why": text}
        if found := re.search(r'name="seen" value="([^"]+)"', head.post("/decide/pick/preview", **pick).text):
            head.post("/decide/pick", seen=found[1], **pick)
    head.post(f"{task}/draft", version=head.version(task), comment=texts[0], points=texts[1])
    head.post(f"{task}/reveal", why=texts[0])
    head.post("/decide/claim", student=STUDENT, accuracy="50", why=texts[1], seen="x")


def addresses(handle, crafted=CRAFTED):
    task = f"/questions/q6/{handle}"
    yield from ("/", "/questions/q6", task, f"{task}/here", f"/questions/q9/{handle}")
    yield from (f"/questions/q10.class_token/{handle}", f"/submissions/{handle}", "/log", "/rubric/q6")
    yield from (
        "/questions/q6/bank?search=",
        "/assign/q6",
        "/statistics",
        "/similar",
        "/queue",
        "/oral",
        "/review",
    )
    yield from (f"/students/{STUDENT}", f"/submissions/{handle}/search?search=script")
    yield from (
        "/grading",
        "/grading/progress",
        "/next",
        "/questions/q6/next",
        f"/decide/answer?student={STUDENT}",
    )
    yield "/decide/inquire?about=code"
    for text in crafted:
        quoted = text.encode("utf-8", "replace").hex("%", 1)
        yield f"/decide/rule?student=%{quoted}"
        yield f"/decide/pick?share=%{quoted}&seed=%{quoted}&students=%{quoted}"
        yield f"/decide/inquire?student=%{quoted}&about=%{quoted}&line=%{quoted}&question=%{quoted}"
        yield f"/decide/settle?student=%{quoted}&outcome=%{quoted}&why=%{quoted}"
        yield f"/decide/review?students=%{quoted}&section=%{quoted}&note=%{quoted}"
        yield f"/decide/outcome?student=%{quoted}&outcome=%{quoted}"
        yield f"/decide/answer?student=%{quoted}&item=%{quoted}&points=%{quoted}&why=%{quoted}"
        yield f"/grading?only=%{quoted}"
        yield f"/oral?done=%{quoted}&changed=%{quoted}"
        yield f"/queue?done=%{quoted}&changed=%{quoted}"
        yield f"/assign/q6?done=%{quoted}&count=%{quoted}"
        yield f"/questions/q6?done=%{quoted}&after=%{quoted}"
        yield f"/students/%{quoted}"
        yield f"/submissions/{handle}/search?search=%{quoted}"
        yield f"/rubric/q6?changed=%{quoted}&left=%{quoted}"


def test_every_page_is_tried(console):
    tried = [address.partition("?")[0] for address in (*addresses("x", CRAFTED[:1]), *sheets())]
    routes = [route for route in application(console).app.routes if "GET" in route.methods]
    missing = {route.path for route in routes if not any(route.path_regex.match(one) for one in tried)}
    assert missing <= PARTS.keys() | {"/similar/side-by-side"}, "it is the page of another program"


def sheets():
    for kind in ("questions", "notes"):
        yield from (f"/oral/{STUDENT}/{kind}", f"/oral/{kind}")


@pytest.fixture
def grading(desk):
    """A grading is under way."""
    lock = taken_lock(desk.out)
    yield
    os.close(lock)


def test_no_text_becomes_markup(come, desk, texts, grading):
    head, handle = come(f"head {CRAFTED[2]}", StaffRole.HEAD), handle_of(desk, STUDENT)
    said_by_markers(head, handle, CRAFTED)
    seen = ""
    for address in addresses(handle):
        answer = head.get(address)
        assert answer.status_code in (200, 303, 404, 422), (address, answer.status_code)
        tags = Tags()
        tags.feed(answer.text)
        assert tags.faults == [], address
        seen += answer.text
    for address, words in {
        "/queue": 'id="requests"',
        "/grading": 'id="stop"',
        "/similar": "[x](java",
    }.items():
        assert words in head.get(address).text, "what is hostile is there"
    for words in ("document.title=", "alert(1)", "{{ 7 * 7 }}"):
        assert words in seen.replace("&#39;", "'"), "it is shown, as text"


@pytest.mark.browser
def test_no_text_runs_in_a_browser(browser, come, database, desk, clock, grading):
    from tests.web.conftest import running, tabs

    handle = handle_of(desk, STUDENT)
    said_by_markers(come(f"head {CRAFTED[2]}", StaffRole.HEAD), handle, CRAFTED[:2])
    crafted = CRAFTED if database == "sqlite" else CRAFTED[:1]  # addresses do not come from the database
    with running(desk, clock) as it, tabs(browser, it) as visit:
        page = visit("head", StaffRole.HEAD)
        for address in (*addresses(handle, crafted), *sheets()):
            page.goto(f"{it.address}{address}")
            assert page.title() != "run", address
            assert page.locator("script:not([src])").count() == 0, address
