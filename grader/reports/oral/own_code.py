"""The parts that a student wrote, statement by statement, for questions about single lines.

The source is only parsed. A part is found by its name, or by the nearly equal name under which it was graded;
if a name is defined several times, the last definition counts, as when the file is executed. Which line is
worth a question is decided elsewhere.
"""

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from textwrap import dedent

from grader.domain.analyzed_program import Place, lines_of
from grader.domain.assignment import Assignment
from grader.domain.evidence import Evidence
from grader.domain.formatting import revealed
from grader.reports.oral.chosen_questions import MOST_LINES
from grader.reports.student.code_lines import CodeLine

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_SIMPLE = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Return, ast.Expr)
_LONGEST = 2_000  # characters of a statement that is looked at
_WIDEST = 100  # characters of a line on paper
_AXES = ("dim", "axis", "dims")


@dataclass(frozen=True)
class CodeStatement:
    """One simple statement of a part.

    Attributes:
        place: Its first line.
        last_line: In the same file or cell.
        text: Its code, without comments and in one style.
        calls: The last names of what it calls: `softmax` for `F.softmax(x)`.
        axes: (last name, `dim=-1`) of calls that name an axis by a number.
        operators: The classes of its binary operators: `MatMult`, `Div`.
    """

    place: Place
    last_line: int
    text: str
    calls: tuple[str, ...]
    axes: tuple[tuple[str, str], ...]
    operators: frozenset[str]


@dataclass(frozen=True)
class OwnPart:
    """A part as the student wrote it.

    Attributes:
        component: Its name in the assignment.
        name: The student's name of it.
        place: Where its definition begins.
        statements: In their order, without docstrings and without stubs that were not filled in.
        defaults: Parameter -> the whole number that the student gives as its default.
    """

    component: str
    name: str
    place: Place
    statements: tuple[CodeStatement, ...]
    defaults: Mapping[str, int] = field(default_factory=dict)


def own_parts(assignment: Assignment, evidence: Evidence) -> tuple[OwnPart, ...]:
    """The parts that the student wrote, in the assignment's order; those without statements are left out."""
    names = {near.expected: near.found for near in evidence.near_names}
    definitions: dict[str, tuple[str, ast.stmt]] = {}
    for file, text in (evidence.source or {}).items():
        for node in _tree(text).body:
            if isinstance(node, _DEFINITIONS):
                definitions[node.name] = file, node
    parts = []
    for component in assignment.components:
        name = component.name if component.name in definitions else names.get(component.name, "")
        if name in definitions:
            file, node = definitions[name]
            statements = tuple(_statements(file, node))
            if statements:
                place = Place(file, node.lineno)
                parts.append(OwnPart(component.name, name, place, statements, _defaults(node)))
    return tuple(parts)


def code_beside(evidence: Evidence, place: Place, last_line: int) -> tuple[CodeLine, ...]:
    """The lines from a place on, at most MOST_LINES, cut to what fits on paper; none if it has no such line.

    Args:
        last_line: In the same file or cell.
    """
    return _lines(evidence, place.file, range(place.line, last_line + 1))


def beginning(evidence: Evidence, part: OwnPart) -> tuple[CodeLine, ...]:
    """The first lines of a part, without its docstring."""
    numbers = [part.place.line]
    for statement in part.statements:
        numbers += range(statement.place.line, statement.last_line + 1)
    return _lines(evidence, part.place.file, list(dict.fromkeys(numbers)))


def _lines(evidence: Evidence, file: str, numbers: Sequence[int]) -> tuple[CodeLine, ...]:
    text = (evidence.source or {}).get(file)
    lines = [] if text is None else lines_of(text)
    there = [number for number in numbers[:MOST_LINES] if 1 <= number <= len(lines)]
    shown = dedent("\n".join(lines[number - 1].expandtabs(4).rstrip() for number in there)).split("\n")
    return tuple(
        CodeLine(number, revealed(line[:_WIDEST]) + " …" * (len(line) > _WIDEST), number == there[0])
        for number, line in zip(there, shown, strict=False)
    )


def _tree(text: str) -> ast.Module:
    """The tree of a file or a cell; an empty one if it is not Python."""
    without_magic = "\n".join("" if line.lstrip()[:1] in ("%", "!", "?") else line for line in lines_of(text))
    try:
        return ast.parse(without_magic)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ast.Module([], [])


def _statements(file: str, node: ast.stmt) -> Iterator[CodeStatement]:
    """The simple statements within a definition, in their order."""
    for name in ("body", "orelse", "handlers", "finalbody"):
        for child in getattr(node, name, ()):
            if isinstance(child, _SIMPLE):
                statement = _statement(file, child)
                if statement is not None:
                    yield statement
            else:
                yield from _statements(file, child)


def _statement(file: str, node: ast.stmt) -> CodeStatement | None:
    """A statement; None for docstrings, calls of the base class, and what is too long to be asked about."""
    try:
        text = ast.unparse(node)
    except (RecursionError, ValueError):
        return None
    is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    if is_text or text.startswith("super(") or len(text) > _LONGEST:
        return None
    inner = [child for child in ast.walk(node) if isinstance(child, ast.expr)]
    calls = [child for child in inner if isinstance(child, ast.Call)]
    return CodeStatement(
        Place(file, node.lineno),
        node.end_lineno or node.lineno,
        text,
        tuple(dict.fromkeys(_last_name(call.func) for call in calls)),
        tuple(dict.fromkeys(_axes(calls))),
        frozenset(type(child.op).__name__ for child in inner if isinstance(child, ast.BinOp)),
    )


def _axes(calls: Sequence[ast.Call]) -> Iterator[tuple[str, str]]:
    for call in calls:
        for keyword in call.keywords:
            if keyword.arg in _AXES and _whole_number(keyword.value) is not None:
                yield _last_name(call.func), f"{keyword.arg}={ast.unparse(keyword.value)}"


def _last_name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _defaults(node: ast.stmt) -> dict[str, int]:
    """Parameter -> its default, of a function or of a class's constructor."""
    if isinstance(node, ast.ClassDef):
        inits = [
            child for child in node.body if isinstance(child, ast.FunctionDef) and child.name == "__init__"
        ]
        return _defaults(inits[-1]) if inits else {}
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return {}
    arguments = [*node.args.posonlyargs, *node.args.args]
    pairs = [*zip(arguments[len(arguments) - len(node.args.defaults) :], node.args.defaults, strict=True)]
    pairs += [
        (argument, default)
        for argument, default in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)
        if default is not None
    ]
    numbers = {argument.arg: _whole_number(default) for argument, default in pairs}
    return {name: number for name, number in numbers.items() if number is not None}


def _whole_number(node: ast.expr) -> int | None:
    """The whole number that an expression is, with its sign."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        number = _whole_number(node.operand)
        return None if number is None else -number
    is_number = isinstance(node, ast.Constant) and type(node.value) is int
    return node.value if is_number and abs(node.value) < 10**9 else None  # type: ignore[attr-defined, no-any-return]
