"""Each module of analysis, worker and judge says what it decides and where its tests are."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("analysis", "worker", "judge")
MODULES = sorted(path for package in PACKAGES for path in (ROOT / "grader" / package).rglob("*.py"))
TESTS = re.compile(r"Tests: (tests/[\w/]+\.py(?:, tests/[\w/]+\.py)*)")
FEWEST_LINES = 3  # what it decides, what it never decides, where its tests are


def problems(docstring: str) -> list[str]:
    """What is wrong with the docstring of a module."""
    body, mark, tests = docstring.rpartition("\nTests: ")
    docstring = f"{body}{mark}{' '.join(tests.split())}" if mark else docstring
    lines = [line for line in docstring.splitlines() if line.strip()]
    found = []
    if len(lines) < FEWEST_LINES:
        found.append(f"it has {len(lines)} lines; the fewest are {FEWEST_LINES}")
    named = TESTS.fullmatch(lines[-1]) if lines else None
    if named is None:
        found.append("its last line is not like `Tests: tests/analysis/test_recipe.py`")
    else:
        paths = named[1].split(", ")
        found += [f"there is no file {path}" for path in paths if not (ROOT / path).is_file()]
    return found


@pytest.mark.parametrize("module", MODULES, ids=lambda path: str(path.relative_to(ROOT / "grader")))
def test_a_module_says_what_it_decides_and_where_its_tests_are(module: Path) -> None:
    docstring = ast.get_docstring(ast.parse(module.read_text(encoding="utf-8"))) or ""
    assert not problems(docstring)


def test_all_three_packages_are_looked_at() -> None:
    assert {path.relative_to(ROOT / "grader").parts[0] for path in MODULES} == set(PACKAGES)
    assert len(MODULES) > 50


@pytest.mark.parametrize(
    ("docstring", "said"),
    [
        ("", "last line"),
        ("One.\n\nTests: tests/conftest.py", "2 lines"),
        ("One.\n\nTwo.\n\nThree.", "last line"),
        ("One.\n\nTwo.\n\nTests: tests/nowhere/test_nothing.py", "no file tests/nowhere/test_nothing.py"),
        ("One.\n\nTwo.\n\nTests: tests/conftest.py, tests/nothing.py", "no file tests/nothing.py"),
        ("One.\n\nTwo.\n\nTests: tests/conftest.py and others", "last line"),
        ("One.\n\nTests: tests/conftest.py\n\nTwo.", "last line"),
    ],
)
def test_what_is_missing_would_be_seen(docstring: str, said: str) -> None:
    assert any(said in problem for problem in problems(docstring))
