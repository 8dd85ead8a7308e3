"""A class of ten submissions, two of them by a team, and the desk at which it is marked."""

import itertools
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NoReturn

import pytest
from sqlalchemy import create_engine

from grader.domain.assignment import Assignment
from grader.domain.edit import Edit, Marked
from grader.gradebook import Gradebook
from grader.grading.result_writer import Keeper
from grader.marking.desk import Desk
from grader.results.session import ClassSession
from tests.postgres_server import server

NOW = datetime(2026, 2, 1, 12, tzinfo=UTC)
STUDENTS = tuple(f"4001012{number:02}" for number in range(1, 11))
TEAM = STUDENTS[-2:]
TASKS = 9  # of each question: a team is one
ITEMS = """# Ours.

from_zero = ["q7"]

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

[[item]]
id = "compares"
part = "q7"
points = 2
text = "Two runs are compared."
"""


ClassWithUrl = tuple[Path, str | None]


def grade(out: Path, url: str | None, assignment: Assignment, class_evidence: Callable[..., Any]) -> None:
    """Put the class into a gradebook."""
    with Gradebook(out, url) as book:
        keeper = Keeper(assignment, book, out, "ta1")
        for number, student_id in enumerate(STUDENTS):
            team = {"team": TEAM} if student_id in TEAM else {}
            digest = TEAM[0] if team else f"{number}"
            keeper.kept(replace(class_evidence(student_id), submission_digest=digest, **team), {}, NOW)


@pytest.fixture(scope="session")
def class_to_mark(
    tmp_path_factory: pytest.TempPathFactory, assignment: Assignment, class_evidence: Callable[..., Any]
) -> Path:
    """The results folder of which each test gets its own copy."""
    out = tmp_path_factory.mktemp("marked") / "results"
    grade(out, None, assignment, class_evidence)
    return out


@pytest.fixture(scope="session")
def copied_database(
    tmp_path_factory: pytest.TempPathFactory,
    assignment: Assignment,
    class_evidence: Callable[..., Any],
    lacking: Callable[[str], NoReturn],
) -> Iterator[Callable[[], str]]:
    """`copied_database()`: the URL of a new copy of the class's database, on a PostgreSQL server."""
    home = tmp_path_factory.mktemp("postgres-marking")
    with server(home, lacking) as address:
        administration = create_engine(
            address("postgres").replace("postgresql:", "postgresql+psycopg:"), isolation_level="AUTOCOMMIT"
        )
        with administration.connect() as connection:
            connection.exec_driver_sql("CREATE DATABASE graded")
            grade(home, address("graded"), assignment, class_evidence)
            numbers = itertools.count()

            def copied() -> str:
                name = f"copy_{next(numbers)}"
                connection.exec_driver_sql(f"CREATE DATABASE {name} TEMPLATE graded")
                return address(name)

            yield copied
        administration.dispose()


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.service)])
def results(request: pytest.FixtureRequest, class_to_mark: Path, tmp_path: Path) -> ClassWithUrl:
    """The class's results folder, and the URL of its gradebook if that is not a file in it."""
    if request.param == "sqlite":
        return Path(shutil.copytree(class_to_mark, tmp_path / "results")), None
    return tmp_path / "results", request.getfixturevalue("copied_database")()


@pytest.fixture
def other_book(results: ClassWithUrl) -> Callable[[], Gradebook]:
    """`other_book()`: the gradebook as another process opens it."""
    return lambda: Gradebook(*results)


@pytest.fixture
def desk(results: ClassWithUrl, tmp_path: Path, assignment: Assignment) -> Iterator[Desk]:
    """The desk of the class; the files of the assignment that it writes are a copy."""
    folder = tmp_path / assignment.id
    folder.mkdir()
    shutil.copy(assignment.folder / "comments.toml", folder)
    (folder / "marking.toml").write_text(ITEMS, encoding="utf-8")
    with Gradebook(*results) as book:
        yield Desk(results[0], book, replace(assignment, folder=folder))


@pytest.fixture
def session(desk: Desk) -> ClassSession:
    """The session of somebody who marks beside the desk, by commands."""
    return ClassSession(desk.out, desk.book, desk.assignment, "ta9", lambda: NOW)


@pytest.fixture
def added(desk: Desk) -> Callable[..., None]:
    """`added(*edits)`: put edits into the gradebook, as another command does."""

    def add(*edits: Edit) -> None:
        assert desk.book.append(edits, [], after=desk.book.state()) is not None

    return add


@pytest.fixture
def mark() -> Callable[..., Marked]:
    """`mark(student_id, target, points, **more)`: an edit by ta9."""

    def made(student_id: str, target: str, points: float | None, **more: Any) -> Marked:
        given = {"who": "ta9", "when": NOW, "why": "", **more}
        return Marked(student_id=student_id, target=target, points=points, **given)

    return made
