"""There is one tree of exceptions, and the docstring that draws it draws all of it."""

import ast
import builtins
import importlib
import pkgutil
import re
from pathlib import Path

import click

import grader
from grader.domain import errors
from grader.domain.errors import GraderError, GraderException

PYTHONS = {
    name
    for name, kind in vars(builtins).items()
    if isinstance(kind, type) and issubclass(kind, BaseException)
}


def modules() -> list[str]:
    """All modules of the package; `__main__` would run."""
    found = pkgutil.walk_packages(grader.__path__, "grader.")
    return [one.name for one in found if not one.name.endswith(("__main__", ".env"))]


def exceptions() -> list[type[BaseException]]:
    """The classes of exceptions that the package defines."""
    for name in modules():
        importlib.import_module(name)
    found: list[type[BaseException]] = []
    unseen: list[type[BaseException]] = [BaseException]
    while unseen:
        unseen += (kind := unseen.pop()).__subclasses__()
        if kind.__module__.partition(".")[0] == "grader" and kind not in found:
            found.append(kind)
    return found


def drawn() -> dict[str, str]:
    """Class -> its base, as the docstring draws them."""
    tree: dict[str, str] = {}
    above: list[str] = []
    for line in (errors.__doc__ or "").splitlines():
        branch = re.match(r"(?P<indent>[│├└─ ]*)(?P<name>_?[A-Z]\w+)(  |$)", line)
        if branch is None:
            continue
        depth = len(branch["indent"]) // 4
        above[depth:] = [branch["name"]]
        if depth:
            tree[branch["name"]] = above[depth - 1]
    return tree


def test_every_exception_is_in_the_tree_or_is_clicks() -> None:
    others = [
        kind
        for kind in exceptions()
        if not issubclass(kind, GraderException) and not issubclass(kind, click.ClickException)
    ]
    assert others == []


def test_the_tree_is_drawn_as_it_is() -> None:
    ours = [
        kind for kind in exceptions() if issubclass(kind, GraderException) and kind is not GraderException
    ]
    assert len(ours) > 25
    assert drawn() == {kind.__name__: kind.__bases__[0].__name__ for kind in ours}


def test_no_exception_is_made_beside_it() -> None:
    """Also within functions, where importing makes none."""
    beside = [
        f"{path.name}:{node.lineno}"
        for path in Path(grader.__path__[0]).rglob("*.py")
        if path.name != "errors.py"
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef)
        for base in node.bases[:1]
        if ast.unparse(base) in PYTHONS
    ]
    assert beside == []


def test_only_those_for_a_person_are_shown_as_they_stand() -> None:
    """What reaches the terminal by itself is a GraderError; nothing else of ours may."""
    named = {name for name, base in drawn().items() if base == "GraderException"}
    assert named == {"GraderError", "Interruption"}
    assert not any(issubclass(kind, GraderError) for kind in errors.Interruption.__subclasses__())
