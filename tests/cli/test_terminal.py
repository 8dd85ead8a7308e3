"""What goes to a file or another program is not broken as if that were a narrow terminal."""

import io
from pathlib import Path

import pytest

from grader.cli.class_view import live_display
from grader.cli.terminal_page import FILE_WIDTH, KERNEL, Page, console
from grader.grading.concurrent_work import GradingStage, Progress
from grader.grading.time_estimate import Workload

LONG = "400101204: epoch 7 of 30, 71 %, and more that is told of it, so that no 80 columns are enough"


@pytest.fixture(autouse=True)
def no_width(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)


def test_lines_are_as_long_as_what_they_say(monkeypatch: pytest.MonkeyPatch) -> None:
    for columns in ("", "40"):
        monkeypatch.setenv("COLUMNS", columns)
        file = io.StringIO()
        made = console(file=file, highlight=False)
        made.print(f"{LONG} {LONG} {LONG}")
        assert file.getvalue() == f"{LONG} {LONG} {LONG}\n"
        assert made.width == (int(columns) if columns else FILE_WIDTH)


def test_progress_is_a_line_for_each_submission(capsys: pytest.CaptureFixture[str]) -> None:
    with live_display(Workload(1, 0, 1, {}), trains=False) as watch:
        watch(Progress("4" * 90, GradingStage.DONE, 1.0, "with a text of its own"))
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2 and lines[1].endswith("(1 of 1 done; 0 s)")


def test_a_notebooks_command_shows_nothing_that_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its output looks like a terminal, and each frame would be kept in the notebook."""
    monkeypatch.delenv(KERNEL, raising=False)
    assert Page(io.StringIO(), terminal=True).live
    monkeypatch.setenv(KERNEL, "1")
    assert not Page(io.StringIO(), terminal=True).live


def test_every_command_prints_by_it(course_root: Path) -> None:
    texts = {path.name: path.read_text("utf-8") for path in (course_root / "grader").rglob("*.py")}
    made = [name for name, text in texts.items() if "Console(" in text and "rich.console" in text]
    assert made == ["terminal_page.py"]
