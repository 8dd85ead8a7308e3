"""Cells and their top-level statements, with text, origin, and the names that they bind and use.

A cell is one code cell of a notebook, one script or one module. Names changed in place are recognized by
assignments to parts and by method names such as `append`; other methods are not seen. This module decides
nothing about execution: `slicing` does.

Tests: tests/analysis/test_loading_statements.py, tests/analysis/test_source_reading.py
"""

import ast
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from grader.analysis.constant_values import paths_in_cache, string
from grader.analysis.references import References, references
from grader.analysis.syntax_trees import (
    DEFINITIONS,
    assigned,
    bound_names,
    statements_within,
    walk,
)
from grader.domain.analyzed_program import Place


@dataclass(frozen=True)
class Cell:
    """One cell, or a whole script, or one of the student's own modules.

    Attributes:
        file: `homework.py`, `parts/attention.py` or `In [4], cell 9`, as in `Place`.
        text: What the student wrote.
        code: Its Python, with the same lines: magics set aside, slips of the handout repaired, imports of
            own modules taken out.
        tree: `code`, parsed.
    """

    file: str
    text: str
    code: str
    tree: ast.Module

    @cached_property
    def lines(self) -> list[str]:
        """The lines of `code`."""
        return self.code.split("\n")

    def place(self, line: int) -> Place:
        """A line of the cell."""
        return Place(self.file, line)


# --- units -----------------------------------------------------------------------------------------------


IMPORTS = (ast.Import, ast.ImportFrom)
MUTATING = {
    *("append", "extend", "insert", "update", "setdefault", "add", "pop", "clear", "remove", "sort"),
    *("reverse", "discard", "appendleft", "add_argument", "add_argument_group", "add_subparsers"),
    *("set_defaults", "add_parser", "register", "add_param_group"),
}


@dataclass(frozen=True)
class Unit:
    """One top-level statement; those under `if __name__ == "__main__":` are top-level statements too.

    Attributes:
        index: Its place in the order of the source.
        node: The statement; line numbers count within the cell.
        cell: The cell that contains it.
        text: Its source, dedented, decorators included, with the lines of the original.
        line: Its first line within the cell.
        binds: The names that it binds at top level.
        changes: Names whose value it changes without binding them: `CONFIG["dim"] = 64`.
        references: What it refers to.
    """

    index: int
    node: ast.stmt
    cell: Cell
    text: str
    line: int
    binds: frozenset[str]
    changes: frozenset[str]
    references: References

    @property
    def place(self) -> Place:
        """The place of its first line."""
        return self.cell.place(self.line)

    @property
    def first_line(self) -> str:
        """Its first line, for lists."""
        return self.text.split("\n", 1)[0].strip()[:80]

    @property
    def is_definition(self) -> bool:
        """Whether it is a class or a function."""
        return isinstance(self.node, DEFINITIONS)

    @property
    def is_import(self) -> bool:
        """Whether it is an import."""
        return isinstance(self.node, IMPORTS)

    @cached_property
    def eager(self) -> frozenset[str]:
        """Global names that are used when it is executed, without those that it binds as loop variables."""
        names = self.references.names(eager=True)
        return names if isinstance(self.node, ast.Assign | ast.AugAssign) else names - self.binds

    @cached_property
    def lazy(self) -> frozenset[str]:
        """Global names that functions in it use when they are called."""
        return self.references.names(eager=False)


def units(cells: Sequence[Cell], strings: Mapping[str, str]) -> tuple[Unit, ...]:
    """The top-level statements of all cells, in order.

    Args:
        cells: The program's.
        strings: Its text constants.
    """
    lazy = is_lazy(cells)
    nodes = [(node, cell) for cell in cells for node in _flattened(cell.tree.body)]
    paths = paths_in_cache([node for node, _ in nodes], strings)
    return tuple(
        unit(node, cell, segment(node, cell.lines), strings, number, lazy, paths)
        for number, (node, cell) in enumerate(nodes)
    )


def is_lazy(cells: Sequence[Cell]) -> bool:
    """Whether annotations are not executed: the file begins with `from __future__ import annotations`."""
    return any(_is_future_annotations(node) for cell in cells for node in cell.tree.body)


def further_units(
    cells: Sequence[Cell],
    strings: Mapping[str, str],
    nodes: Iterable[tuple[ast.stmt, Cell]],
    first_index: int,
) -> tuple[Unit, ...]:
    """Statements from within those of a program, as units of their own.

    Args:
        cells: The program's.
        strings: Its text constants.
        nodes: Each statement with its cell.
        first_index: The index of the first statement.
    """
    lazy = is_lazy(cells)
    return tuple(
        unit(node, cell, "", strings, first_index + number, lazy) for number, (node, cell) in enumerate(nodes)
    )


def unit(
    node: ast.stmt,
    cell: Cell,
    text: str,
    strings: Mapping[str, str],
    index: int,
    lazy_annotations: bool = False,
    paths: Mapping[str, str] | None = None,
) -> Unit:
    """A statement as a unit.

    Args:
        node: The statement.
        cell: The cell that contains it.
        text: Its source.
        strings: Text constants of the program.
        index: Its place in the order of the source.
        lazy_annotations, paths: As in `references`.
    """
    bound, _ = bound_names([node])
    used = references(node, strings, lazy_annotations, paths)
    if any(imported.name == "*" for imported in used.imported):
        bound.add("*")
    changes = frozenset(changed_names([node])) - bound
    return Unit(index, node, cell, text, first_line(node), frozenset(bound), changes, used)


def reread(text: str, line: int, cell: Cell, index: int = 0) -> Unit:
    """A statement parsed from its own text, which begins on a line of the cell; columns count in the text."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        node = ast.parse(text).body[0]
    ast.increment_lineno(node, line - 1)
    return replace(unit(node, cell, text, {}, index), line=line)


def aligned(item: Unit) -> Unit:
    """The same statement with columns that count in its text: one under a main guard is dedented."""
    return reread(item.text, item.line, item.cell, item.index) if item.node.col_offset else item


def used_names(units: Iterable[Unit], *, lazy: bool = False) -> set[str]:
    """The names that are used when statements are executed; if `lazy`, also those used in later calls."""
    return {name for unit in units for name in (unit.eager | unit.lazy if lazy else unit.eager)}


def first_line(node: ast.stmt) -> int:
    """The first line of a statement, decorators included."""
    if isinstance(node, DEFINITIONS):
        return min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    return node.lineno


def segment(node: ast.stmt, lines: Sequence[str]) -> str:
    """The text of a statement, dedented; lines within a string keep their spaces.

    Args:
        node: The statement.
        lines: The cell's lines.
    """
    first, last = first_line(node), node.end_lineno or node.lineno
    column = node.col_offset
    kept_lines = list(lines[first - 1 : last])
    end = kept_lines[-1].encode("utf-8")[: node.end_col_offset].decode("utf-8", "replace")
    kept_lines[-1] = end
    kept_lines[0] = kept_lines[0].encode("utf-8")[column:].decode("utf-8", "replace")
    if column == 0 or len(kept_lines) == 1:
        return "\n".join(kept_lines)
    string_lines = _string_lines(node)
    for offset in range(1, len(kept_lines)):
        if first + offset not in string_lines:
            line = kept_lines[offset]
            kept_lines[offset] = line[min(column, len(line) - len(line.lstrip())) :]
    return "\n".join(kept_lines)


def is_main_guard(node: ast.stmt) -> bool:
    """Whether a statement is `if __name__ == "__main__":`."""
    if not isinstance(node, ast.If) or not isinstance(node.test, ast.Compare):
        return False
    sides = [node.test.left, *node.test.comparators]
    has_name = any(isinstance(side, ast.Name) and side.id == "__name__" for side in sides)
    return has_name and any(isinstance(side, ast.Constant) and side.value == "__main__" for side in sides)


def _flattened(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    for node in body:
        if isinstance(node, ast.If) and is_main_guard(node):
            yield from _flattened(node.body)
        else:
            yield node


def _string_lines(node: ast.stmt) -> set[int]:
    """Lines that begin within a string."""
    return {
        line
        for inner in walk(node)
        if isinstance(inner, ast.JoinedStr)
        or (isinstance(inner, ast.Constant) and isinstance(inner.value, str | bytes))
        for line in range(inner.lineno + 1, (inner.end_lineno or inner.lineno) + 1)
    }


def text_constants(cells: Sequence[Cell]) -> dict[str, str]:
    """Top-level names that are bound once, to text, and attributes of classes, with a dot before the name."""
    texts: dict[str, str] = {}
    twice: set[str] = set()
    for cell in cells:
        for node in cell.tree.body:
            pair = assigned(node)
            if pair is None or len(pair[0]) != 1 or not isinstance(pair[0][0], ast.Name):
                continue
            name, text = pair[0][0].id, string(pair[1], texts)
            if name in texts or text is None:
                twice.add(name)
            else:
                texts[name] = text
    constants = {name: text for name, text in texts.items() if name not in twice}
    return constants | _strings_of_classes(cells, constants)


def _strings_of_classes(cells: Sequence[Cell], names: Mapping[str, str]) -> dict[str, str]:
    """Attributes that only bodies of classes bind, always to one text, with a dot before the name."""
    texts_by_name: dict[str, set[str | None]] = {}
    bound_elsewhere: set[str] = set()
    bound_around: dict[int, set[str]] = {}  # `id` of a call in a class -> what the class body binds
    for node in (node for cell in cells for node in walk(cell.tree)):
        match node:
            case ast.ClassDef():
                bound = {
                    target.id: string(pair[1], names)
                    for pair in filter(None, map(assigned, node.body))
                    for target in pair[0]
                    if isinstance(target, ast.Name)
                }
                for name, text in bound.items():
                    texts_by_name.setdefault(name, set()).add(text)
                bound_around |= {id(inner): set(bound) for inner in walk(node) if _sets_on_self(inner)}
            case ast.Attribute(ctx=ast.Store() | ast.Del()):
                bound_elsewhere.add(node.attr)
            case ast.Call(func=ast.Name(id="setattr") | ast.Attribute(attr="__setattr__"), args=args):
                text = string(args[-2], names) if len(args) > 1 else None
                if text is None and id(node) not in bound_around:
                    return {}  # it may bind any of them
                bound_elsewhere |= bound_around[id(node)] if text is None else {text}
    return {
        f".{name}": text
        for name, texts in texts_by_name.items()
        for text in texts
        if len(texts) == 1 and text is not None and name not in bound_elsewhere
    }


def _sets_on_self(node: ast.AST) -> bool:
    """Whether a node is `setattr(self, ...)`."""
    match node:
        case ast.Call(func=ast.Name(id="setattr"), args=[ast.Name(id="self"), *_]):
            return True
    return False


def _is_future_annotations(node: ast.stmt) -> bool:
    return (
        isinstance(node, ast.ImportFrom)
        and node.module == "__future__"
        and any(alias.name == "annotations" for alias in node.names)
    )


def changed_names(nodes: Iterable[ast.stmt]) -> set[str]:
    """The names whose values statements change in place."""
    changed: set[str] = set()
    for outer in nodes:
        if isinstance(outer, DEFINITIONS):
            continue
        for node in statements_within(outer):
            targets: list[ast.expr] = []
            if isinstance(node, ast.Assign | ast.Delete):
                targets = list(node.targets)
            elif isinstance(node, ast.AugAssign | ast.AnnAssign | ast.For):
                targets = [node.target]
            for target in targets:
                if isinstance(target, ast.Attribute | ast.Subscript):
                    changed |= _root(target)
            call = node.value if isinstance(node, ast.Expr | ast.Assign) else None
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
                reads = isinstance(node, ast.Expr) and call.func.attr.startswith(
                    "read"
                )  # `parser.read_string`
                changed |= _root(call.func) if reads or call.func.attr in MUTATING else set()
    return changed


def _root(node: ast.expr) -> set[str]:
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return {node.id} if isinstance(node, ast.Name) else set()
