"""Solutions put together from the legitimate forms, and copies in disguise.

A solution takes every part (`Attention`, the loops, the plots, ...) from one of the forms in
`reference/vit_defects/forms` or from the reference; two that share no form were written independently.
"""

import ast
import functools
import json
import random
from pathlib import Path

from grader.course.reference_solution import homework_source, solved_source
from grader.course.student_template import notebook

ROOT = Path(__file__).resolve().parents[2]
FORMS = ROOT / "reference" / "vit_defects" / "forms"
REFERENCE = ROOT / "reference" / "vit_defects" / "solution.py"
PARTS = {
    "attention": ("Attention",),
    "feed_forward": ("FeedForward",),
    "loops": ("train_epoch", "evaluate"),
    "plots": ("plot_confusion_matrix", "plot_classwise_predictions"),
    "prenorm": ("PreNorm",),
    "transformer": ("Transformer",),
    "vit": ("ViT",),
}
OF_REFERENCE = "reference"
_NEEDED = {"loops": ("augment",), "plots": ("predictions",)}  # what the reference's parts call

Choice = dict[str, str]
"""Part -> the form's name, or `reference`."""


def template() -> str:
    """What students receive."""
    return homework_source(_reference_text(), "solution.py")


def reference() -> str:
    """The reference as a student would have written it."""
    return solved_source(_reference_text(), "solution.py")


def forms(part: str) -> list[str]:
    """The ways in which a part may be written."""
    return [OF_REFERENCE, *sorted(path.stem for path in FORMS.glob(f"{part}_*.py"))]


def choices(count: int, seed: int = 0) -> list[Choice]:
    """Random choices, one form of each part."""
    chance = random.Random(seed)
    return [{part: chance.choice(forms(part)) for part in PARTS} for _ in range(count)]


def apart(count: int) -> list[Choice]:
    """Choices of which no two have a form in common, as long as every part has so many forms (three have)."""
    return [{part: forms(part)[number % len(forms(part))] for part in PARTS} for number in range(count)]


def solution(choice: Choice) -> str:
    """A solution of the chosen forms within the template."""
    placed: dict[str, list[ast.stmt]] = {}
    for part, names in PARTS.items():
        body = _body(choice[part])
        has = {name: node for node in body if (name := getattr(node, "name", None)) in names}
        others = [node for node in body if node not in has.values()] if choice[part] != OF_REFERENCE else []
        if any(name not in has for name in names) or choice[part] == OF_REFERENCE:
            others += [_of_reference()[name] for name in _NEEDED.get(part, ())]
        for name in names:
            placed[name] = [has.get(name) or _of_reference()[name]]
        placed[names[0]][:0] = others
    whole = [
        one for node in ast.parse(template()).body for one in placed.get(getattr(node, "name", ""), [node])
    ]
    return ast.unparse(ast.Module(whole, []))


def disguised(source: str, seed: int = 0) -> str:
    """The same code: all names changed, functions and methods reordered, no comments, other formatting."""
    tree = ast.parse(source)
    chance = random.Random(seed)
    _Renamed(tree).visit(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            _shuffle_definitions(node.body, chance)
    _shuffle_definitions(tree.body, chance)
    text = ast.unparse(tree).replace("    ", "\t")
    # a bracket may be followed by a line end: the layout is another in every line
    return text.replace(" = (", " = (\n\t")


def as_notebook(source: str) -> str:
    """The script as a notebook, a cell for each definition."""
    pieces = [ast.unparse(node) for node in ast.parse(source).body]
    return notebook("".join(f"# %%\n{piece}\n" for piece in pieces), "copy", "copy")


def with_picture(text: str, png: str) -> str:
    """The notebook with a picture among the outputs of its last cell.

    Args:
        text: The notebook.
        png: In base64.
    """
    content = json.loads(text)
    content["cells"][-1]["outputs"] = [
        {"output_type": "display_data", "metadata": {}, "data": {"image/png": png}}
    ]
    return json.dumps(content)


@functools.cache
def _reference_text() -> str:
    return REFERENCE.read_text(encoding="utf-8")


@functools.cache
def _of_reference() -> dict[str, ast.stmt]:
    return {name: node for node in ast.parse(reference()).body if (name := getattr(node, "name", None))}


@functools.cache
def _body(form: str) -> list[ast.stmt]:
    if form == OF_REFERENCE:
        return list(_of_reference().values())
    body = ast.parse((FORMS / f"{form}.py").read_text(encoding="utf-8")).body
    return [node for node in body if not isinstance(node, ast.Expr)]


def _shuffle_definitions(body: list[ast.stmt], chance: random.Random) -> None:
    places = [i for i, node in enumerate(body) if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    mixed = chance.sample(places, len(places))
    body[:] = [body[mixed[places.index(i)]] if i in places else node for i, node in enumerate(body)]


class _Renamed(ast.NodeTransformer):
    """Other names for everything that a file binds, except what the assignment names."""

    def __init__(self, tree: ast.Module) -> None:
        self._kept = {"forward", "__init__", "super", *(name for names in PARTS.values() for name in names)}
        self._imported = {
            (alias.asname or alias.name).split(".")[0]
            for node in ast.walk(tree)
            if isinstance(node, ast.Import | ast.ImportFrom)
            for alias in node.names
        }
        self._bound = {
            name
            for node in ast.walk(tree)
            for name in (_bound(node),)
            if name and name not in self._kept | self._imported
        }
        self._of_self = {
            node.attr
            for node in ast.walk(tree)
            if isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.value.id == "self"
        } - self._kept

    def _new(self, name: str) -> str:
        return f"x_{name[::-1]}" if name in self._bound else name

    def visit_Name(self, node: ast.Name) -> ast.AST:
        node.id = self._new(node.id)
        return node

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.arg, node.annotation = self._new(node.arg), None
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        if isinstance(node.value, ast.Name) and node.value.id == "self" and node.attr in self._of_self:
            node.attr = f"x_{node.attr[::-1]}"
        return self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.name = f"x_{node.name[::-1]}" if node.name in self._of_self else self._new(node.name)
        node.returns = None
        if ast.get_docstring(node) is not None and len(node.body) > 1:
            del node.body[0]
        return self.generic_visit(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        node.name = self._new(node.name)
        if ast.get_docstring(node) is not None and len(node.body) > 1:
            del node.body[0]
        return self.generic_visit(node)


def _bound(node: ast.AST) -> str | None:
    match node:
        case ast.Name(name, ast.Store()) | ast.arg(name):
            return name
        case ast.FunctionDef() | ast.ClassDef():
            return node.name
        case _:
            return None
