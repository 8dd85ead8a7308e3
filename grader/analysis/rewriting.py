"""Rewriting of source text: edits by position, global names of a file, files with new numbers.

Every line stays where it is, as each place that `rewritten` changes is on one line. Positions are lines and
UTF-8 columns, as in `ast`. Global names of a file follow Python's rules of scope. This module never decides
what is replaced: `joining` decides which names are renamed, `script.script_data` which calls are replaced,
and `grader.grading.submission_study` and `grader.students.own_training` which numbers change.

Tests: tests/analysis/script/test_substituted_data.py, tests/analysis/test_joining.py,
tests/grading/test_value_study.py
"""

import ast
import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from grader.analysis.syntax_trees import (
    COMPREHENSIONS,
    FUNCTIONS,
    all_parameters,
    bound_names,
    children,
    walk,
)
from grader.domain.analyzed_program import Program, Span, cell_number, cell_run

Position = tuple[int, int]  # line, column in UTF-8 bytes


@dataclass(frozen=True)
class Edit:
    """A piece of a text that is replaced; an empty one is an insertion."""

    start: Position
    end: Position
    text: str


def applied(text: str, first: int, column: int, edits: Collection[Edit]) -> str:
    """A text with some parts replaced, each line where it was.

    Args:
        text: The source of a statement, dedented.
        first: The line of the cell on which it begins.
        column: By how many bytes it was dedented.
        edits: In the order of the source; none overlaps another.
    """
    lines = [line.encode("utf-8") for line in text.split("\n")]
    for edit in sorted(edits, key=lambda item: (item.start, item.end), reverse=True):
        (start_line, start_column), (end_line, end_column) = edit.start, edit.end
        before = lines[start_line - first][: start_column - column]
        after = lines[end_line - first][end_column - column :]
        # as many lines as before: the lines that follow keep their numbers
        inserted = edit.text.encode("utf-8")
        if end_line > start_line:
            inserted = b"(" + inserted + b"\n" * (end_line - start_line) + b")"
        lines[start_line - first : end_line - first + 1] = (before + inserted + after).split(b"\n")
    return b"\n".join(lines).decode("utf-8")


def instead(node: ast.expr | ast.stmt, text: str) -> Edit:
    """The edit that replaces a node with a text."""
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
    """The nodes of a file that refer to its global names.

    Attributes:
        names: Uses and bindings as plain names.
        definitions: Top-level functions and classes.
        declared: `global` statements.
        imports: Imports at any depth.
        formatted: `id` of a node within an f-string -> the f-string: before Python 3.12 the positions within
            it are not reliable.
    """

    names: list[ast.Name] = field(default_factory=list)
    definitions: list[ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef] = field(default_factory=list)
    declared: list[ast.Global] = field(default_factory=list)
    imports: list[Import] = field(default_factory=list)
    formatted: dict[int, ast.JoinedStr] = field(default_factory=dict)


def global_uses(tree: ast.Module) -> GlobalUses:
    """The nodes of a file that refer to its global names."""
    uses = GlobalUses()
    _Walk(uses).statements(tree.body, frozenset(), frozenset())
    for node in walk(tree):
        if isinstance(node, ast.JoinedStr):
            for inner in walk(node):
                uses.formatted.setdefault(id(inner), node)
    return uses


def top_level_names(tree: ast.Module) -> set[str]:
    """The names that a file binds at top level, or declares global in a function."""
    bound, _ = bound_names(tree.body)
    declared = (name for node in walk(tree) if isinstance(node, ast.Global) for name in node.names)
    return bound | set(declared)


class _Walk:
    """Walks a file with the names that functions and classes have of their own."""

    def __init__(self, uses: GlobalUses) -> None:
        self._uses = uses

    def statements(self, nodes: Iterable[ast.AST], hidden: frozenset[str], around: frozenset[str]) -> None:
        """Walk the nodes of one scope.

        Args:
            hidden: Names that are not global here.
            around: Names that are not global in functions within; those bound by a class are not among them.
        """
        for node in nodes:
            self._node(node, hidden, around)

    def _node(self, node: ast.AST, hidden: frozenset[str], around: frozenset[str]) -> None:
        if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            if node.name not in hidden:
                self._uses.definitions.append(node)
            self._definition(node, hidden, around)
        elif isinstance(node, ast.Lambda):
            self.statements(_defaults(node.args), hidden, around)
            inner = around | {parameter.arg for parameter in all_parameters(node.args)}
            self._node(node.body, inner, inner)
        elif isinstance(node, COMPREHENSIONS):
            targets, _ = bound_names(part.target for part in node.generators)
            self.statements(children(node), hidden | targets, around | targets)
        elif isinstance(node, ast.Name):
            if node.id not in hidden:
                self._uses.names.append(node)
        elif isinstance(node, ast.Global):
            self._uses.declared.append(node)
        elif isinstance(node, Import):
            self._uses.imports.append(node)
        else:
            self.statements(children(node), hidden, around)

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
            name
            for inner_node in walk(node)
            if isinstance(inner_node, ast.Global)
            for name in inner_node.names
        }
        inner = (around | bound | {parameter.arg for parameter in all_parameters(node.args)}) - globals_here
        self.statements(node.body, inner, inner)


def _imported(body: Iterable[ast.stmt]) -> set[str]:
    """The names that imports in a function bind: `joining` treats them as global names."""
    return {
        alias.asname or alias.name.split(".")[0]
        for statement in body
        for node in walk(statement)
        if isinstance(node, Import)
        for alias in node.names
    }


def _defaults(arguments: ast.arguments) -> list[ast.expr]:
    return [*arguments.defaults, *(default for default in arguments.kw_defaults if default is not None)]


def _annotations(node: ast.FunctionDef | ast.AsyncFunctionDef) -> list[ast.expr]:
    annotations = (parameter.annotation for parameter in all_parameters(node.args))
    return [annotation for annotation in (*annotations, node.returns) if annotation is not None]


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
        program: A program with its source.
        changes: Where -> what is written there instead; each place is on one line, and no two overlap.
    """
    texts = {file: _replaced(text, file, changes) for file, text in (program.source or {}).items()}
    beside = [file for file in program.modules if cell_number(file) is None]
    modules = {file: texts[file].encode("utf-8", "surrogateescape") for file in beside}
    own_files = {file: text for file, text in texts.items() if file not in beside}
    numbers = {file: number for file in own_files if (number := cell_number(file)) is not None}
    if len(numbers) < len(own_files):  # a script: not every file is a cell
        return Rewritten("\n".join(own_files.values()).encode("utf-8"), modules)
    cells: list[dict[str, str | int | None]] = []
    for file, number in numbers.items():
        while len(cells) < number - 1:
            cells.append({"cell_type": "markdown", "source": ""})
        cells.append({"cell_type": "code", "source": own_files[file], "execution_count": cell_run(file)})
    return Rewritten(json.dumps({"cells": cells, "nbformat": 4}).encode("utf-8"), modules)


def _replaced(text: str, file: str, changes: Mapping[Span, str]) -> str:
    lines = [line.encode("utf-8", "surrogateescape") for line in text.split("\n")]
    # from the end, so that earlier lines keep their positions
    for span in sorted(
        (changed for changed in changes if changed.file == file), key=lambda s: (s.line, s.column)
    )[::-1]:
        before, after = lines[span.line - 1][: span.column], lines[span.end_line - 1][span.end_column :]
        new = changes[span].encode("utf-8")
        lines[span.line - 1 : span.end_line] = [before + new + after]
    return b"\n".join(lines).decode("utf-8", "surrogateescape")
