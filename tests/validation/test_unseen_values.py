"""A drawn value is one that students see."""

import shutil
from pathlib import Path

import pytest

from grader.course.assignment_file import read_assignment
from grader.validation.unseen_values import unseen_values

COURSE = Path(__file__).parents[1] / "courses" / "drawn"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The assignment with drawn values, to be changed."""
    [original] = (COURSE / "reference").iterdir()
    return shutil.copytree(original, tmp_path / original.name)


def without(path: Path, part: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert part in text
    path.write_text(text.replace(part, ""), encoding="utf-8")


def said(folder: Path) -> tuple[str, ...]:
    return unseen_values(read_assignment(folder), COURSE / "datasets")


def test_values_in_the_code_or_in_the_readme_are_seen(folder: Path) -> None:
    assert said(folder) == ()
    without(folder / "student_readme.md", "{{heads}}")
    without(folder / "solution.py", "  # variant: pooling")
    assert said(folder) == ()


def test_a_value_in_neither_is_told_with_what_to_do(folder: Path) -> None:
    without(folder / "student_readme.md", "{{heads}}")
    without(folder / "solution.py", "  # variant: heads")
    assert said(folder) == ()  # comments say it
    without(folder / "solution.py", "{{heads}}")
    [sentence] = said(folder)
    assert sentence == (
        "assignment.toml: [variant.heads] draws what no student sees. Mark an assignment in solution.py, "
        "as in 'HEADS = 4  # variant: heads', write {{heads}} in student_readme.md, or remove the table."
    )
