"""Courses of other people: whole ones, which the engine has never heard of."""

import shutil
from pathlib import Path

import pytest

from grader.course.assignment_file import read_assignment
from grader.domain.assignment import Assignment

HERE = Path(__file__).parent
collect_ignore = [
    "by_hand",
    "language",
    "comparison",
    "letters",
    "drawn",
    "uploads",
]  # files of courses: their checks have fixtures of their own


@pytest.fixture
def comparison(tmp_path: Path) -> Path:
    """A copy of the course in which a perceptron and a convolutional network are compared."""
    return shutil.copytree(HERE / "comparison", tmp_path / "comparison")


@pytest.fixture(scope="session")
def two_networks() -> Assignment:
    """Its assignment."""
    return read_assignment(HERE / "comparison" / "reference" / "two_networks")


@pytest.fixture(scope="session")
def two_networks_solved() -> str:
    """The text of its solution, as a student would hand it in."""
    from grader.course.reference_solution import solved_source

    path = HERE / "comparison" / "reference" / "two_networks" / "solution.py"
    return solved_source(path.read_text(encoding="utf-8"), path.name)


@pytest.fixture
def letters(tmp_path: Path) -> Path:
    """A copy of the course that has no data sets."""
    return shutil.copytree(HERE / "letters", tmp_path / "letters")


@pytest.fixture(scope="session")
def letters_solved() -> str:
    """The text of its solution, as a student would hand it in."""
    from grader.course.reference_solution import solved_source

    path = HERE / "letters" / "reference" / "letter_counts" / "solution.py"
    return solved_source(path.read_text(encoding="utf-8"), path.name)
