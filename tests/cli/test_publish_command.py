"""`grader publish`: it refuses what is not ready, and writes what is asked for."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from grader.cli import cli


@pytest.fixture(autouse=True)
def nobody_else(monkeypatch: pytest.MonkeyPatch, course_root: Path) -> None:
    monkeypatch.setenv("GRADER_COURSE", str(course_root))
    monkeypatch.setenv("GRADER_BY", "ta1")
    monkeypatch.delenv("GRADER_GRADEBOOK", raising=False)


def test_open_grades_are_published_only_on_request(graded_class: Path, tmp_path: Path) -> None:
    target = tmp_path / "published"
    words = ["publish", str(graded_class), "--to", str(target)]
    refused = CliRunner().invoke(cli, words)
    assert refused.exit_code == 2 and "Not ready to hand out: Marks that people give" in refused.output
    assert not target.exists()
    done = CliRunner().invoke(cli, [*words, "--partial"])
    assert done.exit_code == 0, done.output
    assert "the pages of 4 students" in done.output
    assert (target / "instructors/index.html").is_file()
    assert len(list(target.glob("students/*/report.html"))) == 4
