"""Known slips from the handout, repaired in place: `Resize(28, 28)` and `parse_args()`.

It goes by the last name of the call and its arguments; a student's own function of that name is repaired too.
Every repair leaves a note, and no line moves. Nothing else is ever repaired, and no points depend on it here:
the checks judge the repaired code.

Tests: tests/analysis/test_source_reading.py
"""

import ast
import warnings
from dataclasses import dataclass

from grader.domain.program import Place
from grader.domain.quoting import as_code

LARGEST_INTERPOLATION = 5  # torchvision's old integers for interpolation go from 0 to 5


@dataclass(frozen=True)
class Repaired:
    """The code after repairs, parsed, and a sentence for each repair."""

    code: str
    tree: ast.Module
    notes: tuple[str, ...]


@dataclass(frozen=True)
class _Edit:
    """Text to insert at a line (1-based) and a column (in bytes of UTF-8, 0-based)."""

    line: int
    column: int
    text: str


def repaired(file: str, code: str, tree: ast.Module) -> Repaired:
    """`code` with the known slips repaired.

    `Resize(28, 28)` becomes `Resize((28, 28))`: the second argument would be an interpolation, and it
    raises. `parser.parse_args()` becomes `parser.parse_args([])`: there is no command line here.

    Args:
        file: As in `Place`.
        code: A cell of Python.
        tree: The same, parsed.
    """
    edits: list[_Edit] = []
    notes: list[str] = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or node.keywords:
            continue
        name = _last_name(node.func)
        place = Place(file, node.lineno)
        if name == "Resize" and _is_size_pair(node.args):
            first, last = node.args
            edits.append(_Edit(first.lineno, first.col_offset, "("))
            edits.append(_Edit(last.end_lineno or 0, last.end_col_offset or 0, ")"))
            pair = f"{ast.unparse(first)}, {ast.unparse(last)}"
            was, reads = as_code(f"Resize({pair})"), as_code(f"Resize(({pair}))")
            notes.append(f"{place}: {was} was read as {reads}.")
        elif name in ("parse_args", "parse_known_args") and not node.args:
            edits.append(_Edit(node.end_lineno or 0, (node.end_col_offset or 1) - 1, "[]"))
            notes.append(f"{place}: {name}() was read as {name}([]): the defaults count.")
    if not edits:
        return Repaired(code, tree, ())
    edited = _edited(code, edits)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return Repaired(edited, ast.parse(edited), tuple(notes))


def _last_name(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _is_size_pair(args: list[ast.expr]) -> bool:
    """Whether two arguments are a height and a width rather than a size and an interpolation."""
    if len(args) != 2 or any(isinstance(arg, ast.Starred) for arg in args):
        return False
    first, second = args
    if isinstance(first, ast.Constant) and isinstance(second, ast.Constant):
        return (
            isinstance(first.value, int)
            and isinstance(second.value, int)
            and second.value > LARGEST_INTERPOLATION
        )
    return isinstance(first, ast.Name | ast.Attribute) and ast.dump(first) == ast.dump(second)


def _edited(code: str, edits: list[_Edit]) -> str:
    lines = code.split("\n")
    for edit in sorted(edits, key=lambda edit: (edit.line, edit.column), reverse=True):
        line = lines[edit.line - 1].encode("utf-8")
        lines[edit.line - 1] = (line[: edit.column] + edit.text.encode() + line[edit.column :]).decode(
            "utf-8"
        )
    return "\n".join(lines)
