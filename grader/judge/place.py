"""Where in what the student wrote a mistake is likely to stand."""

import ast
import functools
from collections.abc import Sequence

from grader.domain.program import Place, Program, Statement

FORWARD = "forward"


def place_of(program: Program, component: str, look_for: Sequence[str] = ()) -> str:
    """The place of a component, as close to a mistake as its names tell.

    Args:
        look_for: Names, keywords or attributes in whose line the mistake is likely to stand, the likeliest
            first; `forward` is searched before the other methods.

    Returns:
        The first line that mentions one of them; else where `forward` begins, else where the component does;
        empty when it is not defined.
    """
    place = (program.defined or {}).get(component)
    if place is None:
        return ""
    statement = _definition(program, component, place)
    if statement is None:
        return str(place)
    parts = _parts(statement.source)
    for name in look_for:
        for part in parts:
            lines = [node.lineno for node in ast.walk(part) if _mentions(node, name)]  # type: ignore[attr-defined]
            if lines:
                return _line(statement, min(lines))
    if parts and isinstance(parts[0], ast.FunctionDef) and parts[0].name == FORWARD and len(parts) > 1:
        return _line(statement, parts[0].lineno)
    return str(place)


def _line(statement: Statement, line: int) -> str:
    """The place of a statement's line, 1-based within the statement."""
    return str(Place(statement.place.file, statement.place.line + line - 1))


def _definition(program: Program, component: str, place: Place) -> Statement | None:
    """The statement that defines the component, under whatever name it was found."""
    for statement in program.statements:
        same_file = statement.place.file == place.file
        lines = statement.source.count("\n") + 1
        if same_file and 0 <= place.line - statement.place.line < lines:
            return statement
    return next((found for found in program.statements if component in found.binds), None)


@functools.lru_cache(maxsize=64)  # every check of a component asks, and a source may be long
def _parts(source: str) -> tuple[ast.stmt, ...]:
    """`forward`, then the other methods, then the whole definition; nothing when it cannot be parsed."""
    try:
        tree = ast.parse(source).body[0]
    except (SyntaxError, ValueError, IndexError, RecursionError, MemoryError):
        return ()
    body = tree.body if isinstance(tree, ast.ClassDef) else []
    methods = [node for node in body if isinstance(node, ast.FunctionDef)]
    return (*sorted(methods, key=lambda method: method.name != FORWARD), tree)


def _mentions(node: ast.AST, name: str) -> bool:
    if isinstance(node, ast.Name):
        return node.id == name
    if isinstance(node, ast.Attribute):
        return node.attr == name
    return isinstance(node, ast.keyword) and node.arg == name
