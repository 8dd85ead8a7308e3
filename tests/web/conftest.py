"""A small class whose students write hostile things, and the console in which it is marked."""

import contextlib
import io
import itertools
import json
import re
import shutil
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NoReturn

import pytest
import uvicorn
from PIL import Image
from sqlalchemy import create_engine
from starlette.testclient import TestClient

from grader.domain.analyzed_program import Claim
from grader.domain.assignment import Assignment
from grader.domain.edit import Marked
from grader.domain.submission import (
    ANSWERS_FILE,
    ANSWERS_TEXT_FILE,
    Answers,
    CellKind,
    DrawnPage,
    Origin,
    Role,
    View,
    ViewCell,
    plain_lines,
)
from grader.files.stored_records import VIEW_FILE, view_bytes
from grader.gradebook import Gradebook
from grader.grading.result_writer import Keeper
from grader.marking.desk import Desk, refresh
from grader.results.session import ClassSession
from grader.web.access import Access, StaffRole
from grader.web.application import application
from grader.web.listening import Listening
from grader.web.visits import Console
from tests.postgres_server import server

SCROLLED = "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"
NOW = datetime(2026, 2, 1, 12, tzinfo=UTC)
STUDENTS = tuple(f"4001012{number:02}" for number in range(1, 13))
NAME = "Zahra Mirzakhani"
SCRIPT = "<script>document.title = 'run'</script><img src=x onerror=\"document.title='run'\">"
ITEMS = """
[[item]]
id = "no_order"
part = "q6"
points = -1.5
text = "Order is not named."
note = "Also if only numbering is named."

[[item]]
id = "no_example"
part = "q6"
points = -1
text = "There is no example."
"""


def page_picture() -> bytes:
    stream = io.BytesIO()
    Image.new("RGB", (600, 780), (250, 250, 240)).save(stream, "WEBP")
    return stream.getvalue()


def grade(out: Path, url: str | None, assignment: Assignment, class_evidence: Callable[..., Any]) -> None:
    """Put the class to mark into a gradebook."""
    page, pdf = DrawnPage(1, 600, 780), b"%PDF-1.4 hostile"
    with Gradebook(out, url) as book:
        keeper = Keeper(assignment, book, out, "ta1")
        for number, student_id in enumerate(STUDENTS):
            code = f"# {student_id} {NAME}\nx = '{SCRIPT}'\n"
            cells = (
                ViewCell("cell 1", CellKind.TEXT, (), f"<p>Question 6 {SCRIPT} by {NAME}, {student_id}</p>"),
                ViewCell("homework.py", CellKind.CODE, plain_lines(code), ""),
            )
            evidence = class_evidence(student_id)
            evidence = replace(
                evidence,
                submission_digest=f"{number}",
                source={"homework.py": code},
                code_file=f"{student_id}_Lab8.py",
                origin=replace(evidence.origin, person=NAME),
                answers=Answers(
                    f"{student_id}.pdf", "ab" * 32, len(pdf), kept=True, pages=2, tried=2, drawn=(page,)
                ),
            )
            view = view_bytes(View("homework.py", cells))
            texts = {"1": f"Attention has no or-\nder. {NAME} {student_id} {SCRIPT}", "2": "Positions help."}
            files = {page.image: page_picture(), VIEW_FILE: view, ANSWERS_FILE: pdf}
            keeper.kept(evidence, {**files, ANSWERS_TEXT_FILE: json.dumps(texts).encode()}, NOW)


ClassWithUrl = tuple[Path, str | None]


@pytest.fixture(scope="session")
def class_to_mark(
    tmp_path_factory: pytest.TempPathFactory, assignment: Assignment, class_evidence: Callable[..., Any]
) -> Path:
    """The results folder of which each test gets its own copy."""
    out = tmp_path_factory.mktemp("console") / "results"
    grade(out, None, assignment, class_evidence)
    return out


@pytest.fixture(scope="session")
def new_database(
    tmp_path_factory: pytest.TempPathFactory, lacking: Callable[[str], NoReturn]
) -> Iterator[Callable[..., str]]:
    """`new_database(template)`: the URL of a new database on a PostgreSQL server, a copy of another one."""
    home = tmp_path_factory.mktemp("postgres-console")
    with server(home, lacking) as address:
        administration = create_engine(
            address("postgres").replace("postgresql:", "postgresql+psycopg:"), isolation_level="AUTOCOMMIT"
        )
        numbers = itertools.count()
        with administration.connect() as connection:

            def made(template: str = "template1", name: str = "") -> str:
                name = name or f"console_{next(numbers)}"
                connection.exec_driver_sql(f"CREATE DATABASE {name} TEMPLATE {template}")
                return address(name)

            yield made
        administration.dispose()


@pytest.fixture(scope="session")
def database_to_mark(
    tmp_path_factory: pytest.TempPathFactory,
    new_database: Callable[..., str],
    assignment: Assignment,
    class_evidence: Callable[..., Any],
) -> str:
    """The name of the database with the class to mark."""
    url = new_database(name="to_mark")
    grade(tmp_path_factory.mktemp("console") / "results", url, assignment, class_evidence)
    return "to_mark"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """What is tried in a browser is tried with SQLite and with PostgreSQL."""
    if "database" in metafunc.fixturenames and metafunc.definition.get_closest_marker("browser"):
        kinds = ["sqlite", pytest.param("postgresql", marks=pytest.mark.service)]
        metafunc.parametrize("database", kinds, indirect=True)


@pytest.fixture
def database(request: pytest.FixtureRequest) -> str:
    """`sqlite`, or `postgresql`."""
    kind: str = getattr(request, "param", "sqlite")
    return kind


@pytest.fixture
def marked_class(
    database: str, request: pytest.FixtureRequest, class_to_mark: Path, tmp_path: Path
) -> ClassWithUrl:
    """A copy of the class to mark: its folder, and the URL of its gradebook if that is no file in it."""
    out = tmp_path / "results"
    if database == "sqlite":
        return Path(shutil.copytree(class_to_mark, out)), None
    out.mkdir()
    template = request.getfixturevalue("database_to_mark")
    return out, request.getfixturevalue("new_database")(template)


class Clock:
    """A clock that tests move."""

    def __init__(self) -> None:
        self.moved = timedelta()

    def __call__(self) -> datetime:
        return datetime.now(UTC).replace(microsecond=0) + self.moved


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def desk(marked_class: ClassWithUrl, tmp_path: Path, assignment: Assignment) -> Iterator[Desk]:
    """The desk of the class; the files of the assignment that it writes are a copy."""
    out, url = marked_class
    folder = tmp_path / assignment.id
    folder.mkdir()
    shutil.copy(assignment.folder / "comments.toml", folder)
    (folder / "marking.toml").write_text(ITEMS, encoding="utf-8")
    with Gradebook(out, url) as book:
        opened = Desk(out, book, replace(assignment, folder=folder))
        refresh(opened)
        yield opened


@pytest.fixture
def marked_session(desk: Desk, clock: Clock) -> ClassSession:
    """A session of the class, in which all but the last student are marked."""
    opened = ClassSession(desk.out, desk.book, desk.assignment, "ta1", clock)
    marks = [
        Marked(who="ta1", when=NOW, why="Read.", student_id=student, target=target, points=1.0)
        for student in STUDENTS[:-1]
        for item in desk.assignment.rubric
        if item.by_person
        for target in item.targets
    ]
    opened.revised("marks", decide=lambda *_: marks, allow_lower=True)
    return opened


@pytest.fixture
def console(desk: Desk, clock: Clock) -> Console:
    """The console on loopback."""
    return Console(desk, Access(desk.out, clock), Listening(), 8765, clock)


@dataclass
class Person:
    """A person's browser, without scripts."""

    client: TestClient
    csrf: str

    def get(self, address: str) -> Any:
        return self.client.get(address)

    def post(self, address: str, **fields: Any) -> Any:
        return self.client.post(address, data={"csrf": self.csrf, **fields})

    def version(self, address: str) -> str:
        """The version that a task's page was drawn from."""
        return re.search(r'name="version" value="(\d+)"', self.get(address).text)[1]


OWN = {"Origin": "http://127.0.0.1:8765", "Sec-Fetch-Site": "same-origin"}


@pytest.fixture
def browse(console: Console) -> Callable[..., TestClient]:
    """`browse()`: a browser without a session."""

    def opened(**more: Any) -> TestClient:
        options = {"base_url": "http://127.0.0.1:8765", "follow_redirects": False, **more}
        return TestClient(application(console), **options)

    return opened


@pytest.fixture
def come(console: Console, browse: Callable[..., TestClient]) -> Callable[..., Person]:
    """`come("ta1", role)`: somebody who followed a link."""

    def came(person: str, role: StaffRole = StaffRole.MARKER) -> Person:
        client = browse(headers=OWN)
        token = console.access.invite(person, role)
        assert client.get(f"/enter/{token}").status_code == 303
        [csrf] = re.findall(
            r'name="csrf" value="([^"]+)"', client.get("/questions/q6/next", follow_redirects=True).text
        )[:1]
        return Person(client, csrf)

    return came


@dataclass
class Served:
    """A console that listens."""

    console: Console
    address: str

    def link(self, person: str, role: StaffRole = StaffRole.MARKER) -> str:
        return f"{self.address}/enter/{self.console.access.invite(person, role)}"


@contextlib.contextmanager
def running(desk: Desk, clock: Clock) -> Iterator[Served]:
    """A console at a free port, in a thread."""
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    console = Console(desk, Access(desk.out, clock), Listening(port=port), port, clock)
    server = uvicorn.Server(
        uvicorn.Config(application(console), log_level="warning", lifespan="off", ws="none", access_log=False)
    )
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        yield Served(console, f"http://127.0.0.1:{port}")
    finally:
        server.should_exit = True
        thread.join(20)
        listener.close()


@pytest.fixture
def served(desk: Desk, clock: Clock) -> Iterator[Served]:
    """The console, to be opened by a browser."""
    with running(desk, clock) as it:
        yield it


# --- browser ---------------------------------------------------------------------------------------------


@contextlib.contextmanager
def tabs(browser: Any, served: Served, **options: Any) -> Iterator[Callable[..., Any]]:
    """`opened("ta1", role)`: a tab of somebody who followed a link; what the browser complains of fails.

    Args:
        options: Of the browser's contexts.
    """
    contexts: list[Any] = []
    complaints: list[str] = []

    def opened(
        person: str, role: StaffRole = StaffRole.MARKER, width: int = 1280, scheme: str = "light"
    ) -> Any:
        size = {"width": width, "height": 900}
        context = browser.new_context(viewport=size, color_scheme=scheme, **options)
        contexts.append(context)

        def allowed(route: Any) -> Any:
            if not route.request.url.startswith((served.address, "data:")):
                complaints.append(f"asked for {route.request.url}")
                return route.abort()
            return route.continue_()

        context.route("**/*", allowed)
        page = context.new_page()
        page.set_default_timeout(30_000)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on(
            "console",
            lambda message: complaints.append(message.text) if "Content Security" in message.text else None,
        )
        page.goto(served.link(person, role))
        assert page.url == f"{served.address}/"
        return page

    yield opened
    for context in contexts:
        context.close()
    assert complaints == []


@pytest.fixture
def visit(browser: Any, served: Served) -> Iterator[Callable[..., Any]]:
    """`visit("ta1", role)`: a tab of somebody at the console of the class to mark."""
    with tabs(browser, served) as opened:
        yield opened


@pytest.fixture
def objections() -> Callable[..., list[Any]]:
    """`objections(page, width, scheme)`: what axe objects to with everything unfolded, and what is too wide.

    Without a width and a scheme, the page is looked at as it is.
    """
    from axe_playwright_python.sync_playwright import Axe

    axe = Axe()

    def found(page: Any, width: int | None = None, scheme: str | None = None) -> list[Any]:
        if width is not None:
            page.set_viewport_size({"width": width, "height": 900})
            page.emulate_media(color_scheme=scheme)
        page.evaluate("() => document.querySelectorAll('details').forEach((one) => { one.open = true; })")
        if not page.evaluate("() => 'axe' in window"):
            page.evaluate(axe.axe_script)
        told = page.evaluate("() => axe.run({ resultTypes: ['violations'] })")["violations"]
        faults = [(one["id"], [node["html"][:200] for node in one["nodes"][:3]]) for one in told]
        if page.evaluate(SCROLLED) > 0:
            faults.append(("wider than the screen", [page.url]))
        return faults

    return found


# --- a class that needs people ---------------------------------------------------------------------------


@pytest.fixture
def asking_desk(
    database: str,
    request: pytest.FixtureRequest,
    tmp_path: Path,
    assignment: Assignment,
    class_evidence: Callable[..., Any],
) -> Iterator[Desk]:
    """The desk of a class in which each submission needs another decision.

    400101201 is right, 400101202 lacks the report, 400101203 could not be opened, moodle-77 is nobody's,
    400101205 came late, 400101206 claims too much, and 400101207's second attempt gave less than was
    released. All but the first fail a check.
    """
    out = tmp_path / "results"
    check = next(spec.id for spec in assignment.checks if spec.component == "Attention")
    more = [spec.id for spec in assignment.checks if spec.component != "Attention"][:3]
    deadline = NOW - timedelta(days=3)
    dated = replace(assignment, deadline=deadline)
    came = {"received_at": deadline - timedelta(hours=1)}
    hostile = {"origin": Origin(person=f"{SCRIPT} Zahra")}
    submissions = [
        class_evidence("400101201", **came),
        class_evidence("400101202", failed=[check], missing=(Role.REPORT,), **came, **hostile),
        class_evidence("400101203", failed=[check], status="refused", reason=f"It is {SCRIPT}.", **came),
        class_evidence("moodle-77", failed=[check], **came),
        class_evidence("400101205", failed=[check], received_at=deadline + timedelta(hours=30)),
        class_evidence("400101206", failed=[check], claim=Claim(0.99, "In [3]", "0.99"), **came),
        class_evidence("400101207", failed=[check], **came),
        class_evidence("400101207", failed=[check, *more], **came),
    ]
    url = None if database == "sqlite" else request.getfixturevalue("new_database")()
    with Gradebook(out, url) as book:
        keeper = Keeper(dated, book, out, "ta1")
        for number, evidence in enumerate(submissions):
            held = "Its files name nobody." if evidence.student_id == "moodle-77" else ""
            keeper.kept(replace(evidence, submission_digest=f"{number}"), {}, NOW, held=held)
        opened = Desk(out, book, dated)
        refresh(opened)
        yield opened


@pytest.fixture
def asked(asking_desk: Desk, clock: Clock) -> Iterator[Served]:
    """The console of that class, to be opened by a browser."""
    with running(asking_desk, clock) as it:
        yield it


@pytest.fixture
def visit_asked(browser: Any, asked: Served) -> Iterator[Callable[..., Any]]:
    """`visit_asked("head", role)`: a tab of somebody at the console of the class that needs people."""
    with tabs(browser, asked) as opened:
        yield opened
