"""Marking sheets of the example class, and edits that fill them."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from grader.decisions.mark_entries import COLUMNS, MarkRow
from grader.decisions.marking_sheet import marking_rows
from grader.domain.assignment import Assignment
from grader.domain.edit import Edit, Marked
from grader.gradebook import Gradebook
from grader.results.current_state import results_now

NOW = datetime(2026, 2, 1, 12, tzinfo=UTC)
Rows = Callable[..., list[MarkRow]]


@pytest.fixture
def mark() -> Callable[..., Marked]:
    """`mark(student_id, target, points, **more)`: an edit by ta1."""

    def made(student_id: str, target: str, points: float | None, **more: Any) -> Marked:
        given = {"who": "ta1", "when": NOW, "why": "Read.", **more}
        return Marked(student_id=student_id, target=target, points=points, **given)

    return made


@pytest.fixture
def rows_with(graded_class: Path, assignment: Assignment) -> Rows:
    """`rows_with(*edits, **more)`: the rows of the example class after these edits."""

    def made(*edits: Edit, **more: Any) -> list[MarkRow]:
        with Gradebook(graded_class) as book:
            if edits:
                assert book.append(edits, [], after=book.snapshot().state)
            snapshot = book.snapshot()
        results = [(one.evidence, one.score) for one in results_now(assignment, snapshot)]
        links = {score.student_id: f"students/{score.student_id}/report.html" for _, score in results}
        return marking_rows(assignment, results, snapshot.edits, **{"links": links, **more})

    return made


@pytest.fixture
def sheet() -> Callable[..., str]:
    """A sheet's text, from dictionaries of cells: `sheet({"student_id": ..., ...}, ...)`."""

    def made(*rows: dict[str, str]) -> str:
        lines = [",".join(COLUMNS)]
        lines += [",".join(f'"{row.get(column, "")}"' for column in COLUMNS) for row in rows]
        return "\n".join(lines) + "\n"

    return made
