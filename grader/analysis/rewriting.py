"""Rewriting of source text: edits by position, global names of a file, files with new numbers.

Every line stays where it is. Positions are lines and UTF-8 columns, as in `ast`. Global names of a file
go by Python's rules of scope. It never decides what is replaced: `joining` decides which names are
renamed, `script.script_data` which calls give way, and `grader.grading.submission_study` and
`grader.students.own_training` which numbers change.

Tests: tests/analysis/script/test_standing_data.py, tests/analysis/test_joining.py,
tests/grading/test_value_study.py
"""

import ast
import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from grader.analysis.references import COMPREHENSIONS, FUNCTIONS, bound_names
from grader.domain.analyzed_program import Program, Span, cell_number, cell_run

Position = tuple[int, int]  # line, column in UTF-8 bytes


@dataclass(frozen=True)
class Edit:
    """A piece of a text that is replaced; an empty one is an insertion."""

    start: Position
    end: Position
    text: str


def applied(text: str, first: int, column: int, edits: Collection[Edit]) -> str:
    """A text with some of it replaced, each line where it was.

    Args:
        text: The source of a statement, dedented.
        first: The line of the cell on which it begins.
        column: By how many bytes it was dedented.
        edits: In the order of the source; none overlaps another.
    """
    lines = [line.encode("utf-8") for line in text.split("\n")]
    for edit in sorted(edits, key=lambda one: (one.start, one.end), reverse=True):
        (line, left), (end_line, right) = edit.start, edit.end
        before = lines[line - first][: left - column]
        after = lines[end_line - first][right - column :]
        # as many lines as there were: what follows keeps its number
        made = edit.text.encode("utf-8")
        if end_line > line:
            made = b"(" + made + b"\n" * (end_line - line) + b")"
        lines[line - first : end_line - first + 1] = (before + made + after).split(b"\n")
    return b"\n".join(lines).decode("utf-8")


def instead(node: ast.expr | ast.stmt, text: str) -> Edit:
    """A text in the place of a node."""
    return Edit(start_of(node), end_of(node), text)


def start_of(node: ast.expr | ast.stmt) -> Position:
    """Where a node begins."""
    return node.lineno, node.col_offset


def end_of(node: ast.expr | ast.stmt) -> Position:
    """Where a node ends."""
    return node.end_lineno or node.lineno, node.end_col_offset or 0


# --- module names ----------------------------------------------------------------------------------------


Import = ast.Import | ast.ImportFrom


@dataclass
class GlobalUses:
    """The nodes of a file that speak of its global names.

    Attributes:
        names: Uses and bindings as plain names.
        definitions: Functions and classes of the top level.
        declared: `global` statements.
        imports: Of any depth.
        formatted: `id` of a node within an f-string -> the f-string: before Python 3.12 nothing within it has
            a position that can be relied on.
    """

    names: list[ast.Name] = field(default_factory=list)
    definitions: list[ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef] = field(default_factory=list)
    declared: list[ast.Global] = field(default_factory=list)
    imports: list[Import] = field(default_factory=list)
    formatted: dict[int, ast.JoinedStr] = field(default_factory=dict)


def global_uses(tree: ast.Module) -> GlobalUses:
    """What in a file speaks of its global names."""
    found = GlobalUses()
    _Walk(found).statements(tree.body, frozenset(), frozenset())
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            for inner in ast.walk(node):
                found.formatted.setdefault(id(inner), node)
    return found


def top_level_names(tree: ast.Module) -> set[str]:
    """The names that a file binds at top level, or declares global in a function."""
    bound, _ = bound_names(tree.body)
    declared = (name for node in ast.walk(tree) if isinstance(node, ast.Global) for name in node.names)
    return bound | set(declared)


class _Walk:
    """Walks a file with the names that functions and classes have of their own."""

    def __init__(self, found: GlobalUses) -> None:
        self._found = found

    def statements(self, nodes: Iterable[ast.AST], hidden: frozenset[str], around: frozenset[str]) -> None:
        """Look at nodes of one scope.

        Args:
            hidden: Names that are not global here.
            around: Names that are not global in functions within: what a class binds is not seen there.
        """
        for node in nodes:
            self._node(node, hidden, around)

    def _node(self, node: ast.AST, hidden: frozenset[str], around: frozenset[str]) -> None:
        if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            if node.name not in hidden:
                self._found.definitions.append(node)
            self._definition(node, hidden, around)
        elif isinstance(node, ast.Lambda):
            self.statements(_defaults(node.args), hidden, around)
            inner = around | set(_parameters(node.args))
            self._node(node.body, inner, inner)
        elif isinstance(node, COMPREHENSIONS):
            targets, _ = bound_names(part.target for part in node.generators)
            self.statements(ast.iter_child_nodes(node), hidden | targets, around | targets)
        elif isinstance(node, ast.Name):
            if node.id not in hidden:
                self._found.names.append(node)
        elif isinstance(node, ast.Global):
            self._found.declared.append(node)
        elif isinstance(node, Import):
            self._found.imports.append(node)
        else:
            self.statements(ast.iter_child_nodes(node), hidden, around)

    def _definition(
        self,
        node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef,
        hidden: frozenset[str],
        around: frozenset[str],
    ) -> None:
        self.statements(node.decorator_list, hidden, around)
        bound, declared = bound_names(node.body)
        bound -= {name for name in bound if name in _imported(node.body)}
        if isinstance(node, ast.ClassDef):
            self.statements([*node.bases, *node.keywords], hidden, around)
            self.statements(node.body, hidden | (bound - declared), around)
            return
        outside = [*_defaults(node.args), *_annotations(node)]
        self.statements(outside, hidden, around)
        globals_here = {
            name for each in ast.walk(node) if isinstance(each, ast.Global) for name in each.names
        }
        inner = (around | bound | set(_parameters(node.args))) - globals_here
        self.statements(node.body, inner, inner)


def _imported(body: Iterable[ast.stmt]) -> set[str]:
    """What imports in a function bind: whoever joins files takes them for global names."""
    return {
        alias.asname or alias.name.split(".")[0]
        for statement in body
        for node in ast.walk(statement)
        if isinstance(node, Import)
        for alias in node.names
    }


def _parameters(arguments: ast.arguments) -> Iterator[str]:
    for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
        yield each.arg
    for extra in (arguments.vararg, arguments.kwarg):
        if extra is not None:
            yield extra.arg


def _defaults(arguments: ast.arguments) -> list[ast.expr]:
    return [*arguments.defaults, *(each for each in arguments.kw_defaults if each is not None)]


def _annotations(node: ast.FunctionDef | ast.AsyncFunctionDef) -> list[ast.expr]:
    arguments = node.args
    every = [
        *arguments.posonlyargs,
        *arguments.args,
        *arguments.kwonlyargs,
        arguments.vararg,
        arguments.kwarg,
    ]
    found = [each.annotation for each in every if each is not None]
    return [each for each in (*found, node.returns) if each is not None]


# --- rewriting -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Rewritten:
    """The source as files again.

    Attributes:
        code: The script or notebook.
        modules: The modules beside it, by name.
    """

    code: bytes
    modules: dict[str, bytes]


def rewritten(program: Program, changes: Mapping[Span, str]) -> Rewritten:
    """The source as files again: a script as it was, a notebook with its code cells at their old places.

    Args:
        program: Whose source is known.
        changes: Where -> what is written there instead; no two of them overlap.
    """
    texts = {file: _replaced(text, file, changes) for file, text in (program.source or {}).items()}
    beside = [file for file in program.modules if cell_number(file) is None]
    modules = {file: texts[file].encode("utf-8", "surrogateescape") for file in beside}
    own = {file: text for file, text in texts.items() if file not in beside}
    numbers = {file: number for file in own if (number := cell_number(file)) is not None}
    if len(numbers) < len(own):
        return Rewritten("\n".join(own.values()).encode("utf-8"), modules)
    cells: list[dict[str, str | int | None]] = []
    for file, number in numbers.items():
        while len(cells) < number - 1:
            cells.append({"cell_type": "markdown", "source": ""})
        cells.append({"cell_type": "code", "source": own[file], "execution_count": cell_run(file)})
    return Rewritten(json.dumps({"cells": cells, "nbformat": 4}).encode("utf-8"), modules)


def _replaced(text: str, file: str, changes: Mapping[Span, str]) -> str:
    lines = [line.encode("utf-8", "surrogateescape") for line in text.split("\n")]
    # from the end, so that what comes before keeps its place
    for span in sorted((each for each in changes if each.file == file), key=lambda s: (s.line, s.column))[
        ::-1
    ]:
        before, after = lines[span.line - 1][: span.column], lines[span.end_line - 1][span.end_column :]
        new = changes[span].encode("utf-8")
        lines[span.line - 1 : span.end_line] = [before + new + after]
    return b"\n".join(lines).decode("utf-8", "surrogateescape")
