"""The place of a mistake in the student's source.

A heuristic over patterns of code (see `code_pattern`): the first one found at one place only gives the line,
in the component, else in what it uses. Where none does, the start of `forward` or of the component is shown,
since a wrong line is worse. It decides no points and no diagnosis: the checks do.

Tests: tests/judge/test_place.py, tests/checks/test_lines_of_mistakes.py
"""

import ast
import functools
from collections.abc import Iterator, Sequence

from grader.domain.program import Place, Program, Statement
from grader.judge.code_pattern import CodePattern, code_pattern

FORWARD = "forward"
_NEAR = 4  # lines: kinds of code that stand so close are one place, as two layers of one list


def place_of(program: Program, component: str, look_for: Sequence[str] = ()) -> str:
    """The place of a mistake in a component: the line of its kind of code, if there is just one.

    Args:
        look_for: Kinds of code in whose line the mistake stands (see `code_pattern`), the likeliest first.
            Each is looked for in the component, and where it is not found there, one step further: in what
            else of the student's own the component uses, that is not a component itself.

    Returns:
        The line of the first kind that is found at one place only, the first line of it; where there is none,
        where `forward` begins, else where the component does: a wrong line is worse. Empty when it is not
        defined.
    """
    place = (program.defined or {}).get(component)
    if place is None:
        return ""
    statement = _definition(program, component, place)
    if statement is None:
        return str(place)
    tree = _tree(statement.source)
    if tree is None:
        return str(place)
    further = functools.cache(lambda: tuple(_used(program, statement, tree)))  # rarely needed
    for text in look_for:
        for scope in (lambda: (statement,), further):
            places = [place for one in scope() for place in _places(one, code_pattern(text))]
            if places:
                if _are_one(places):
                    return str(places[0])
                break
    return _begin(statement, tree, place)


def _begin(statement: Statement, tree: ast.stmt, place: Place) -> str:
    entry = _entry(tree)
    return str(_place(statement, entry.lineno)) if entry is not None and entry is not tree else str(place)


def _places(statement: Statement, pattern: CodePattern) -> list[Place]:
    """The places in a statement at which a kind of code is found, from above."""
    tree = _tree(statement.source)
    if tree is None:
        return []
    return [_place(statement, line) for line in sorted(pattern.lines(tree, _entry(tree)))]


def _are_one(places: Sequence[Place]) -> bool:
    """Whether a reader who is shown the first of these places sees them all."""
    return len({place.file for place in places}) == 1 and places[-1].line - places[0].line < _NEAR


def _entry(tree: ast.stmt) -> ast.FunctionDef | None:
    """What of a definition is executed when it is used: `forward`, or the function itself."""
    if isinstance(tree, ast.FunctionDef):
        return tree
    body = tree.body if isinstance(tree, ast.ClassDef) else []
    return next((node for node in body if isinstance(node, ast.FunctionDef) and node.name == FORWARD), None)


def _used(program: Program, statement: Statement, tree: ast.stmt) -> Iterator[Statement]:
    """The further statements of the student's own that a definition uses, without those that are graded."""
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} - set(program.defined or {})
    for other in program.statements:
        if other is not statement and other.kind != "import" and not names.isdisjoint(other.binds):
            yield other


def _place(statement: Statement, line: int) -> Place:
    """The place of a statement's line, 1-based within the statement."""
    return Place(statement.place.file, statement.place.line + line - 1)


def _definition(program: Program, component: str, place: Place) -> Statement | None:
    """The statement that defines the component, under whatever name it was found."""
    for statement in program.statements:
        same_file = statement.place.file == place.file
        lines = statement.source.count("\n") + 1
        if same_file and 0 <= place.line - statement.place.line < lines:
            return statement
    return next((found for found in program.statements if component in found.binds), None)


@functools.lru_cache(maxsize=64)  # every check of a component asks, and a source may be long
def _tree(source: str) -> ast.stmt | None:
    """A statement, parsed; None when it cannot be parsed."""
    try:
        return ast.parse(source).body[0]
    except (SyntaxError, ValueError, IndexError, RecursionError, MemoryError):
        return None
