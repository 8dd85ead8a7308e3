"""The engine's shape: no circle of modules, no name for two of them, and contracts with every package."""

import ast
import re
import tomllib
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

import grimp
import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = {path.parent.name for path in ROOT.glob("grader/*/__init__.py")}

# what is understood of a program, done with it and asked of it goes by the same words
MIRRORED = {"analysis", "judge", "kit", "worker"}
TWO_MODULES = {"program"}  # domain: what is executed; worker: the same, loaded


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
    """Packages are told apart by their paths; nobody imports a revision of the gradebook."""
    named = defaultdict(list)
    for path in ROOT.glob("grader/**/*.py"):
        parts = path.relative_to(ROOT / "grader").with_suffix("").parts
        if parts[-1] not in ("__init__", "__main__") and "versions" not in parts:
            named[parts[-1]].append(parts[0])
    recurring = {
        name: sorted(packages)
        for name, packages in named.items()
        if len(packages) > 1 and not set(packages) <= MIRRORED and name not in TWO_MODULES
    }
    assert not recurring


def test_no_name_stands_for_two_classes():
    named = defaultdict(list)
    for path in ROOT.glob("grader/**/*.py"):
        package = path.relative_to(ROOT / "grader").parts[0]
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_") and package not in MIRRORED:
                named[node.name].append(str(path.relative_to(ROOT)))
    recurring = {name: paths for name, paths in named.items() if len(paths) > 1}
    assert not recurring


def contracts() -> list[dict]:
    configuration = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return configuration["tool"]["importlinter"]["contracts"]


def test_the_floors_are_the_packages():
    [layers] = [contract["layers"] for contract in contracts() if contract["type"] == "layers"]
    floors = {name.strip() for layer in layers for name in re.split("[|:]", layer) if "(" not in name}
    assert floors == PACKAGES | {"__main__"}


def packages_in(contract: str, key: str) -> set[str]:
    """The packages that a contract names."""
    [found] = [one for one in contracts() if one["name"].startswith(contract)]
    return {name.removeprefix("grader.") for name in found[key]} & PACKAGES


def test_only_the_gradebook_may_know_the_database():
    assert packages_in("Only the gradebook", "source_modules") == PACKAGES - {"gradebook"}


def test_contracts_about_untrusted_processes_leave_out_no_package():
    """Whoever adds a package says whether these may know it."""
    worker_needs = {"domain", "protocol"}
    assert packages_in("A worker imports", "forbidden_modules") == PACKAGES - {"worker"} - worker_needs
    opens_files = {"analysis", "intake", "similarity", "lms"}
    parser_needs = {"domain", "files", "protocol", "sandbox", "kit"} | opens_files
    assert packages_in("What a hostile file", "forbidden_modules") == PACKAGES - {"parser"} - parser_needs
