"""A class of three whose grades were released, one of them hostile, and the students' pages of it."""

import contextlib
import re
import shutil
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from click.testing import CliRunner
from starlette.testclient import TestClient

from grader.cli import cli
from grader.domain.assignment import Assignment
from grader.domain.submission import Answers, CellKind, DrawnPage, View, ViewCell, plain_lines
from grader.files.stored_records import VIEW_FILE, view_bytes
from grader.gradebook import Gradebook
from grader.grading.result_writer import Keeper
from grader.results.session import SessionRequest
from grader.student_web.student_links import StudentAccess
from grader.student_web.student_serving import opened_site
from grader.student_web.student_site import StudentSite, student_application
from grader.web.listening import Listening
from tests.copied_assignment import copied_assignment
from tests.web.conftest import new_database, objections

__all__ = ["new_database", "objections"]

FIRST, SECOND, THIRD = "400101201", "400101202", "400101203"
SCRIPT = "<script>document.title = 'run'</script><img src=x onerror=\"document.title='run'\"></style>"
NOW = datetime(2026, 2, 1, 12, tzinfo=UTC)
PORT = 8766
OWN = {"Origin": f"http://127.0.0.1:{PORT}", "Sec-Fetch-Site": "same-origin"}


def said(*words: object, by: str = "head", code: int = 0) -> str:
    """What a command prints."""
    result = CliRunner().invoke(cli, list(map(str, words)), prog_name="grader", env={"GRADER_BY": by})
    assert result.exit_code == code, result.output
    return result.output.replace("\xa0", " ")


@dataclass(frozen=True)
class Class:
    """A released class: the folders of the course, the results and the publication.

    Attributes:
        url: Of the gradebook; None: it is a file in the results.
    """

    course: Path
    out: Path
    published: Path
    url: str | None = None

    def said(self, command: str, *words: object, by: str = "head", code: int = 0) -> str:
        """What a command about the class prints; `requests answer` is one command."""
        book = ("--gradebook", self.url) if self.url is not None else ()
        return said(*command.split(), self.out, *words, "--course", self.course, *book, by=by, code=code)

    def publish(self) -> None:
        """Bring the publication up to date."""
        self.said("publish", "--to", self.published, "--update", "--partial")


def release(
    home: Path,
    course_root: Path,
    assignment: Assignment,
    class_evidence: Callable[..., Any],
    url: str | None = None,
    others: Sequence[str] = (),
) -> Class:
    """ta1 gave each 2 points for Q6, and that was released; the second student writes hostile things.

    Args:
        url: Of the gradebook; None: a file in the results.
        others: Further students, to whom nobody gave points.
    """
    course = home / "course"
    copied_assignment(assignment.folder, course)
    shutil.copy(course_root / "course.toml", course)
    toml = course / "reference" / assignment.id / "assignment.toml"
    rules = '\n[regrade_requests]\ndays = 7\nmost = 2\nanswered_by = "marker"\n'
    toml.write_text(toml.read_text("utf-8") + rules, "utf-8")
    released = Class(course, home / "results", home / "published", url)
    with Gradebook(released.out, url, assignment_id=assignment.id) as book:
        keeper = Keeper(assignment, book, released.out, "ta1")
        for number, student in enumerate((FIRST, SECOND, THIRD, *others)):
            code = f"x = '{SCRIPT}'\n" if student == SECOND else "x = 1\n"
            cells = (
                ViewCell("cell 1", CellKind.TEXT, (), f"<p>{SCRIPT if student == SECOND else 'Text'}</p>"),
                ViewCell("homework.py", CellKind.CODE, plain_lines(code), ""),
            )
            pdf = b"%PDF-1.4 " + student.encode()
            evidence = replace(
                class_evidence(student),
                submission_digest=f"{number}",
                source={"homework.py": code},
                answers=Answers(
                    "answers.pdf",
                    "ab" * 32,
                    len(pdf),
                    kept=True,
                    pages=1,
                    tried=1,
                    drawn=(DrawnPage(1, 6, 7),),
                ),
            )
            view = view_bytes(View("homework.py", cells))
            keeper.kept(evidence, {VIEW_FILE: view, "answers.pdf": pdf}, NOW)
    released.said("regrade")
    for student in (FIRST, SECOND, THIRD):
        why = SCRIPT if student == SECOND else "Part b is missing."
        released.said("marks set", student, "q6", "2", "--why", why, by="ta1")
    released.said("publish", "--to", released.published, "--partial")
    return released


@pytest.fixture(scope="session")
def class_released_once(
    tmp_path_factory: pytest.TempPathFactory,
    course_root: Path,
    assignment: Assignment,
    class_evidence: Callable[..., Any],
) -> Path:
    """The folder of which each test gets its own copy."""
    home = tmp_path_factory.mktemp("released")
    release(home, course_root, assignment, class_evidence)
    return home


@pytest.fixture
def released_alone(
    tmp_path: Path, course_root: Path, assignment: Assignment, class_evidence: Callable[..., Any]
) -> Class:
    """A class that is no copy: for forgetting, which goes to all places that the gradebook lists."""
    return release(tmp_path / "alone", course_root, assignment, class_evidence)


@pytest.fixture
def released(class_released_once: Path, tmp_path: Path) -> Class:
    """A class of the test's own."""
    home = tmp_path / "released"
    shutil.copytree(class_released_once, home)
    return Class(home / "course", home / "results", home / "published")


class Clock:
    """A clock that tests move."""

    def __init__(self) -> None:
        self.moved = timedelta()

    def __call__(self) -> datetime:
        return datetime.now(UTC).replace(microsecond=0) + self.moved


@pytest.fixture
def clock() -> Clock:
    return Clock()


def site_of(
    released: Class, clock: Clock, port: int = PORT, listening: Listening | None = None
) -> StudentSite:
    """The students' pages of a class."""
    request = SessionRequest(released.out, "head", course=released.course, gradebook=released.url)
    access = StudentAccess(released.out, clock)
    return opened_site(request, released.published, access, listening or Listening(port=port), port, clock)


@pytest.fixture
def site(released: Class, clock: Clock) -> StudentSite:
    """The students' pages on loopback."""
    return site_of(released, clock)


def token(site: StudentSite, student: str) -> str:
    """A new link's token."""
    return site.access.new_links([student])[student]


@dataclass
class Student:
    """A student's browser, without scripts."""

    client: TestClient

    def get(self, address: str) -> Any:
        return self.client.get(address)

    @property
    def csrf(self) -> str:
        found = re.search(r'name="csrf" value="([^"]+)"', self.get("/").text)
        assert found
        return found[1]

    def ask(self, item: str, reason: str, **more: str) -> Any:
        return self.client.post("/requests", data={"csrf": self.csrf, "item": item, "reason": reason, **more})


@pytest.fixture
def browse(site: StudentSite) -> Callable[..., TestClient]:
    """`browse()`: a browser without a session."""

    def opened(**more: Any) -> TestClient:
        options = {"base_url": f"http://127.0.0.1:{PORT}", "follow_redirects": False, "headers": OWN, **more}
        return TestClient(student_application(site), **options)

    return opened


@pytest.fixture
def come(site: StudentSite, browse: Callable[..., TestClient]) -> Callable[[str], Student]:
    """`come("400101201")`: a student who followed a link."""

    def came(student: str) -> Student:
        client = browse()
        assert client.get(f"/enter/{token(site, student)}").status_code == 200
        return Student(client)

    return came


@contextlib.contextmanager
def listening_at(app: Callable[[int], Any]) -> Iterator[str]:
    """The address of an application that is served in a thread; it is made for a port."""
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    server = uvicorn.Server(
        uvicorn.Config(app(port), log_level="warning", lifespan="off", ws="none", access_log=False)
    )
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join(20)
        listener.close()
