"""The engine knows no assignment: nothing in it is called as something of an assignment of ours."""

import ast
import tomllib
from collections.abc import Iterator
from pathlib import Path

from grader.course.editions import edition_of, edition_text

ROOT = Path(__file__).parents[1]
ASSIGNMENTS = (
    *ROOT.glob("reference/*/assignment.toml"),
    *ROOT.glob("tests/courses/*/reference/*/assignment.toml"),
)
FAMILIES = ROOT / "grader" / "kit"  # whose modules may know the parts of a family of models
# name -> why it is in the engine all the same
ALLOWED = {
    "homework.py": "what every template calls the student's file",
    "homework.ipynb": "the same as a notebook",
    "patches": "what an image is cut into, where attention is drawn over it",
    "heads": "the lines above groups of findings",
    "parts": "what anything consists of: a path, a text, a file that is sent",
    "stratified_split": "what divides data sets, in the kit; the homework of that name has another contract",
    "survey": "what `grader doctor` knows of a machine",
    "fit": "how libraries call what trains, as `trainer.fit` in a program that is read",
    "vit": "the beginning of the names by which torchvision calls its own models, in a map of its modules",
}


def names_of_assignments() -> set[str]:
    """The ids, components, classes, data sets and files of all assignments, their templates' files too."""
    names = {"homework.py", "homework.ipynb", "vit"}
    for path in ASSIGNMENTS:
        text = edition_text(path.read_text(encoding="utf-8"), edition_of(path.parent), path.name)
        table = tomllib.loads(text)
        names.add(table["id"])
        # a file that is judged has an ordinary word as its name
        names |= {each["name"] for each in table["component"] if each["kind"] != "file"}
        data = table.get("data", {})
        names |= {data[key] for key in ("real", "synthetic") if key in data}
        if path.is_relative_to(ROOT / "reference"):  # classes of made-up data are words as any
            names |= {*data.get("classes", ())}
        names |= {*table.get("provided", {}).get("files", ())}
        names |= {file.name for file in path.parent.glob("*.py")} - {"solution.py", "oracle.py"}
        names |= {measure["id"] for measure in table.get("measure", ())}
    return names


def known_in(text: str) -> Iterator[tuple[int, str]]:
    """Each string and identifier of a module, with its line."""
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Constant(value=str(value)):
                yield node.lineno, value
            case ast.Name(id=name) | ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.arg(arg=name):
                yield node.lineno, name
            case ast.ImportFrom(module=module, names=aliases):
                yield node.lineno, (module or "").rpartition(".")[2]
                yield from ((node.lineno, alias.name) for alias in aliases)


def test_nothing_is_called_as_something_of_an_assignment() -> None:
    """A literal `"ViT"` was how the engine knew its only homework."""
    names, found, used = names_of_assignments(), [], set()
    assert len(names) > 20
    for path in sorted((ROOT / "grader").rglob("*.py")):
        if path.is_relative_to(FAMILIES) and path.parent != FAMILIES:
            continue
        for line, name in known_in(path.read_text(encoding="utf-8")):
            if name in names and name in ALLOWED:
                used.add(name)
            elif name in names:
                found.append(f"{path.relative_to(ROOT)}:{line}: {name}")
    assert not found
    assert used == set(ALLOWED), "a reason that is needed no more"


def test_a_literal_would_be_seen() -> None:
    """Strings, names, parameters and imports."""
    text = 'from a.ViT import b\ndef train_epoch(PreNorm):\n    return Attention("evaluate")\n'
    assert {name for _, name in known_in(text)} >= {"ViT", "train_epoch", "PreNorm", "Attention", "evaluate"}
