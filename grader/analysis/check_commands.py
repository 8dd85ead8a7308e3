"""A student's own checks in the homework (`import grader`, `grader.check("ViT")`), which are not part of it.

They are removed before the rest of the analysis, without a note: a notebook with checks counts as the same
notebook without them. It goes by use: as soon as one statement uses the package for anything else, nothing is
removed. `forbidden` decides whether such a use is forbidden.

Tests: tests/analysis/test_check_commands.py
"""

import ast
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeGuard

from grader.analysis.cell import Cell

PACKAGE, CHECK = "grader", "check"
# what shows and combines results, and reaches nothing of a homework
HARMLESS = {
    *("print", "display", "repr", "str", "bool", "int", "len", "sum", "all", "any", "min", "max", "sorted"),
    *("list", "tuple", "set", "dict", "range", "zip", "enumerate"),
}
BLOCKS = ("body", "orelse", "finalbody", "handlers")
NOTHING = "pass"


def without_checks(cells: Sequence[Cell]) -> tuple[Cell, ...]:
    """The cells without the statements that only check, each other line where it was."""
    commands = _Commands([cell.tree for cell in cells])
    removed = [list(commands.statements(cell.tree.body)) for cell in cells]
    if not any(removed) or commands.remain([one.node for each in removed for one in each]):
        return tuple(cells)
    return tuple(_edited(cell, taken) if taken else cell for cell, taken in zip(cells, removed, strict=True))


@dataclass(frozen=True)
class _Removed:
    """A statement, and what stands in its place."""

    node: ast.stmt
    instead: str = NOTHING


class _Commands:
    """Which names are the package, its `check`, and what a check returned."""

    def __init__(self, trees: Sequence[ast.Module]) -> None:
        self._trees = trees
        self._packages: set[str] = set()
        self._checks: set[str] = set()
        self._results: set[str] = set()
        for node in self._nodes():
            if isinstance(node, ast.Import):
                self._packages |= {one.asname or one.name for one in node.names if one.name == PACKAGE}
            elif isinstance(node, ast.ImportFrom) and _is_import_of_check(node):
                self._checks |= {one.asname or one.name for one in node.names}
        if self._packages or self._checks:
            self._find_results()

    def _find_results(self) -> None:
        """What a check returned, and what was made of that alone."""
        assigned = [
            (node.targets[0].id, node)
            for node in self._nodes()
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
        ]
        before = -1
        while before < len(self._results):
            before = len(self._results)
            self._results |= {name for name, node in assigned if self._only_checks(node)}

    def _nodes(self) -> Iterator[ast.AST]:
        for tree in self._trees:
            yield from ast.walk(tree)

    def statements(self, body: Iterable[ast.AST]) -> Iterator[_Removed]:
        """The statements of a block, and of those in it, that only check."""
        for node in body:
            if isinstance(node, ast.Import) and self._some_are_ours(node):
                others = [one for one in node.names if one.name != PACKAGE]
                yield _Removed(node, ast.unparse(ast.Import(others)) if others else NOTHING)
            elif isinstance(node, ast.stmt) and self._only_checks(node):
                yield _Removed(node)
            else:
                for block in BLOCKS:
                    yield from self.statements(getattr(node, block, ()))

    def remain(self, removed: Iterable[ast.stmt]) -> bool:
        """Whether anything else uses or binds one of the names."""
        gone = {id(node) for statement in removed for node in ast.walk(statement)}
        names = self._packages | self._checks | self._results
        return any(names & set(_names(node)) for node in self._nodes() if id(node) not in gone)

    def _some_are_ours(self, node: ast.Import) -> bool:
        return any(one.name == PACKAGE for one in node.names)

    def _only_checks(self, node: ast.stmt) -> bool:
        match node:
            case ast.ImportFrom():
                return _is_import_of_check(node)
            case ast.Import():
                return all(one.name == PACKAGE for one in node.names)
            case ast.Expr(value) | ast.Assign([ast.Name()], value) | ast.Assert(value):
                return self._is_about_results(value)
            case ast.For(orelse=[]) | ast.If() | ast.Try():
                inside = [one for one in _inside(node) if not isinstance(one, ast.Pass)]
                return bool(inside) and all(map(self._only_checks, inside))
        return False

    def _is_about_results(self, node: ast.expr) -> bool:
        """Whether it checks, or shows or combines what checks returned, and uses nothing else."""
        checks = [one for one in ast.walk(node) if self._is_check(one)]
        called = {id(inner) for check in checks for inner in ast.walk(check.func)}
        told = {id(inner) for check in checks for inner in ast.walk(check)} - called  # which part it is
        ours = self._packages | self._checks
        names = [one for one in ast.walk(node) if isinstance(one, ast.Name) and id(one) not in called]
        others = [one for one in names if id(one) not in told or one.id in ours]
        bound = {one.id for one in others if isinstance(one.ctx, ast.Store)}
        used = {one.id for one in others} - bound
        return bool(checks or used & self._results) and used <= self._results | HARMLESS

    def _is_check(self, node: ast.AST) -> TypeGuard[ast.Call]:
        match node:
            case ast.Call(ast.Attribute(ast.Name(name), attr)):
                return name in self._packages and attr == CHECK
            case ast.Call(ast.Name(name)):
                return name in self._checks
        return False


def _is_import_of_check(node: ast.ImportFrom) -> bool:
    return node.module == PACKAGE and not node.level and all(one.name == CHECK for one in node.names)


def _inside(node: ast.AST) -> Iterator[ast.stmt]:
    """The statements of a statement's blocks."""
    for block in BLOCKS:
        for one in getattr(node, block, ()):
            if isinstance(one, ast.ExceptHandler):
                yield from one.body
            else:
                yield one


def _names(node: ast.AST) -> Iterator[str]:
    """The names that a node uses or binds."""
    match node:
        case ast.Name(name) | ast.arg(name) | ast.ExceptHandler(name=str(name)):
            yield name
        case ast.FunctionDef(name) | ast.AsyncFunctionDef(name) | ast.ClassDef(name):
            yield name
        case ast.alias(name, bound):
            yield bound or name.partition(".")[0]
        case ast.Global(names) | ast.Nonlocal(names):
            yield from names


def _edited(cell: Cell, removed: Sequence[_Removed]) -> Cell:
    lines = [line.encode("utf-8") for line in cell.code.split("\n")]
    # from the end, so that what comes before keeps its place
    for one in reversed(removed):
        first, last = one.node.lineno - 1, (one.node.end_lineno or one.node.lineno) - 1
        before, after = lines[first][: one.node.col_offset], lines[last][one.node.end_col_offset :]
        lines[first : last + 1] = [before + one.instead.encode() + after, *[b""] * (last - first)]
    code = b"\n".join(lines).decode("utf-8")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return Cell(cell.file, cell.text, code, ast.parse(code))
