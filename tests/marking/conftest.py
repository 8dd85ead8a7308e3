"""A class of ten submissions, two of them by a team, and the desk at which it is marked."""

import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from grader.domain.assignment import Assignment
from grader.domain.edit import Edit, Marked
from grader.gradebook import Gradebook
from grader.grading.result_writer import Keeper
from grader.marking.desk import Desk
from grader.results.session import ClassSession

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


@pytest.fixture(scope="session")
def class_to_mark(
    tmp_path_factory: pytest.TempPathFactory, assignment: Assignment, class_evidence: Callable[..., Any]
) -> Path:
    """The results folder of which each test gets its own copy."""
    out = tmp_path_factory.mktemp("marked") / "results"
    with Gradebook(out) as book:
        keeper = Keeper(assignment, book, out, "ta1")
        for number, student_id in enumerate(STUDENTS):
            team = {"team": TEAM} if student_id in TEAM else {}
            digest = TEAM[0] if team else f"{number}"
            keeper.kept(replace(class_evidence(student_id), submission_digest=digest, **team), {}, NOW)
    return out


@pytest.fixture
def desk(class_to_mark: Path, tmp_path: Path, assignment: Assignment) -> Iterator[Desk]:
    """The desk of the class; the files of the assignment that it writes are a copy."""
    out = Path(shutil.copytree(class_to_mark, tmp_path / "results"))
    folder = tmp_path / assignment.id
    folder.mkdir()
    shutil.copy(assignment.folder / "comments.toml", folder)
    (folder / "marking.toml").write_text(ITEMS, encoding="utf-8")
    with Gradebook(out) as book:
        yield Desk(out, book, replace(assignment, folder=folder))


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
