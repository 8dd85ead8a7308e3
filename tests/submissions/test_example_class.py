"""The example classes that `make demo ASSIGNMENT=...` grades."""

import ast
import tomllib
from pathlib import Path

import pytest

from tests.submissions.example_class import build_example_class

HERE = Path(__file__).parent
CLASSES = [path.parent.name for path in HERE.glob("classes/*/class.toml")]


@pytest.mark.parametrize("assignment", CLASSES)
def test_it_can_be_built_as_it_is_described(assignment: str, tmp_path: Path) -> None:
    """Each hands in its own code and a report; every edit is in the reference."""
    folders = build_example_class(tmp_path / "class", assignment)
    codes = [next(folder.glob("*.py")).read_text(encoding="utf-8") for folder in folders]
    assert len(folders) == 6 and len(set(codes)) == 6
    assert all(ast.parse(code) and list(folder.glob("*.pdf")) for code, folder in zip(codes, folders, strict=True))
    table = tomllib.loads((HERE / "classes" / assignment / "class.toml").read_text(encoding="utf-8"))
    for _, text in table["edits"]:
        assert text in codes[0], "the edits fit the reference as it is today"
