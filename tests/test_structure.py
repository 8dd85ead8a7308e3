"""The engine's shape: no circle of modules, no name for two of them, and contracts with every package."""

import re
import tomllib
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

import grimp
import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = {path.parent.name for path in ROOT.glob("grader/*/__init__.py")}

# whose modules a later order renames
MIRRORED = ("analysis", "judge", "kit", "worker")


@pytest.fixture(scope="module")
def imports() -> Callable[[str], set[str]]:
    """Module -> the modules that it imports anywhere: in functions and for annotations as well."""
    graph = grimp.build_graph("grader", exclude_type_checking_imports=False, cache_dir=None)
    return graph.find_modules_directly_imported_by


def modules() -> Iterator[tuple[str, ...]]:
    """The parts of the dotted name of every module and package below grader."""
    for path in sorted(ROOT.glob("grader/**/*.py")):
        parts = path.relative_to(ROOT / "grader").with_suffix("").parts
        yield parts[:-1] if parts[-1] == "__init__" else parts


def test_no_module_imports_itself_by_a_circle(imports):
    left = {".".join(("grader", *parts)): set() for parts in modules()}
    for name in left:
        left[name] = {imported for imported in imports(name) if imported in left}
    while leaves := {name for name, imported in left.items() if not imported}:
        left = {name: imported - leaves for name, imported in left.items() if name not in leaves}
    assert not left, f"these import each other, or import such: {sorted(left)}"


def test_a_circle_would_be_seen(tmp_path, monkeypatch):
    """Also one that is closed by an import within a function or for an annotation."""
    package = tmp_path / "circle"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "a.py").write_text(
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from circle import b\n"
    )
    (package / "b.py").write_text("def later():\n    from circle import a\n")
    monkeypatch.syspath_prepend(tmp_path)
    graph = grimp.build_graph("circle", exclude_type_checking_imports=False, cache_dir=None)
    assert graph.find_modules_directly_imported_by("circle.a") == {"circle.b"}
    assert graph.find_modules_directly_imported_by("circle.b") == {"circle.a"}


def test_no_name_stands_for_two_modules():
    named = defaultdict(list)
    for parts in modules():
        if parts and parts[-1] != "__main__" and "versions" not in parts:
            named[parts[-1]].append(".".join(parts))
    recurring = {
        name: found
        for name, found in named.items()
        if len(found) > 1 and not all(one.startswith(MIRRORED) for one in found)
    }
    assert not recurring


def contracts() -> list[dict]:
    configuration = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return configuration["tool"]["importlinter"]["contracts"]


def test_the_floors_are_the_packages():
    [layers] = [contract["layers"] for contract in contracts() if contract["type"] == "layers"]
    floors = {name.strip() for layer in layers for name in re.split("[|:]", layer) if "(" not in name}
    assert floors == PACKAGES | {"__main__"}


def test_only_the_gradebook_may_know_the_database():
    [contract] = [contract for contract in contracts() if contract["name"].startswith("Only the gradebook")]
    kept_out = {name.removeprefix("grader.") for name in contract["source_modules"]}
    assert kept_out == PACKAGES - {"gradebook"}
