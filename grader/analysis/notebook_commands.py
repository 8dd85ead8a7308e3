"""Commands that are not part of the homework: magics, shell lines, and the student's own checks.

Magics and help questions are recognized by the look of a line outside strings and brackets, and are
replaced line by line. Checks (`import grader`, `grader.check("ViT")`) are recognized by use: as soon as one
statement uses the package for anything else, nothing is removed. Lines set aside have a reason, except the
checks. `source` decides whether a cell needs this, and `forbidden_uses` whether a use of the package is
forbidden.

Tests: tests/analysis/test_check_commands.py, tests/analysis/test_source_reading.py
"""

import ast
import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeGuard

from grader.analysis.syntax_trees import walk
from grader.analysis.units import Cell
from grader.domain.formatting import as_code

# the student's own checks, which are not part of a homework: they are not mentioned
OWN_CELL = re.compile(r"^%%check\b")
OWN_LINE = re.compile(r"^\s*%(?:re)?load_ext\s+grader\s*(?:#.*)?$")
KEEP_BODY = {"time", "timeit", "capture", "prun", "python", "python3"}
LINE = re.compile(r"^(?P<indent>\s*)(?:%|!|\?)")
QUESTION = re.compile(r"^(?P<indent>\s*)[\w.\[\]'\"*]+\s*\?{1,2}\s*(?:#.*)?$")
ASSIGNED = re.compile(r"^(?P<indent>\s*)[\w.,\s\[\]'\"]+=\s*(?:!|%[A-Za-z])")
TIMED = re.compile(r"^(?P<indent>\s*)%time\s+(?P<rest>[^\s].*)$")
WRITTEN = re.compile(
    r"^\s*%%(?:writefile|file)\s+(?P<append>-a\s+|--append\s+)?[\"']?(?P<name>[\w./-]+\.py)[\"']?\s*$"
)
RUN = re.compile(r"^\s*(?:%run|!\s*python3?)\s+(?:-\w+\s+)*[\"']?(?P<name>[\w./-]+\.py)\b")
TOKEN = re.compile(r"\\.|'''|\"\"\"|'|\"|#|[\[({]|[\])}]", re.DOTALL)


@dataclass(frozen=True)
class SetAside:
    """A line that is not Python: 1-based within the cell, its text, and what it is."""

    line: int
    text: str
    reason: str


@dataclass(frozen=True)
class Plain:
    """A cell's Python, with as many lines as the cell has, and what was set aside."""

    code: str
    set_aside: tuple[SetAside, ...]


@dataclass(frozen=True)
class WrittenFile:
    """A module that a cell writes: `%%writefile helpers.py`.

    Attributes:
        code: With as many lines as the cell has.
    """

    name: str
    appends: bool
    code: str


def written_file(text: str) -> WrittenFile | None:
    """The module that a cell writes, if it writes one."""
    lines = text.split("\n")
    first_index = next((index for index, line in enumerate(lines) if line.strip()), 0)
    match = WRITTEN.match(lines[first_index])
    if match is None:
        return None
    code = "\n" * (first_index + 1) + "\n".join(lines[first_index + 1 :])
    return WrittenFile(match["name"].removeprefix("./"), match["append"] is not None, code)


def run_file(line: str, own_modules: Iterable[str]) -> str | None:
    """Which of the student's own modules a line executes as a script: `%run train.py`, `!python train.py`."""
    match = RUN.match(line)
    name = match["name"].removeprefix("./") if match else None
    return name if name in set(own_modules) else None


def plain(text: str, own_modules: Iterable[str] = ()) -> Plain:
    """The Python in `text`; all other lines become `pass` or blank, so that line numbers stay right.

    Args:
        own_modules: Names of the student's own modules; a line that executes one imports everything in it.
    """
    lines = text.split("\n")
    first_index = next((index for index, line in enumerate(lines) if line.strip()), 0)
    aside: list[SetAside] = []
    if OWN_CELL.match(lines[first_index]):
        lines[first_index] = ""
    elif lines[first_index].startswith("%%"):
        magic = re.split(r"[^A-Za-z0-9_]", lines[first_index][2:], maxsplit=1)[0]
        reason = f"the notebook magic {as_code(f'%%{magic}')} is not executed"
        aside.append(SetAside(first_index + 1, lines[first_index].strip(), reason))
        if magic not in KEEP_BODY:
            return Plain("\n" * (len(lines) - 1), tuple(aside))
        lines[first_index] = ""
    state = _State()
    index = 0
    while index < len(lines):
        line = lines[index]
        python = None if state.inside else _replacement(line)
        executed = None if python is None else run_file(line, own_modules)
        if executed is not None:
            dotted = executed.removesuffix(".py").replace("/", ".")
            lines[index] = f"from {dotted} import *"
        elif python is None:
            state.read(line)
        else:
            if not OWN_LINE.match(line):
                aside.append(SetAside(index + 1, line.strip(), _reason(line)))
            lines[index] = python
            while line.rstrip().endswith("\\") and index + 1 < len(lines):
                index += 1
                line, lines[index] = lines[index], ""
        index += 1
    return Plain("\n".join(lines), tuple(aside))


def _replacement(line: str) -> str | None:
    """The replacement of a line that is not Python; None for a line that may be Python."""
    if timed := TIMED.match(line):
        return timed["indent"] + timed["rest"]
    for pattern in (LINE, QUESTION, ASSIGNED):
        if match := pattern.match(line):
            return match["indent"] + "pass"
    return None


def _reason(line: str) -> str:
    stripped = line.strip()
    if stripped.startswith("!") or re.search(r"=\s*!", stripped):
        return "a shell command is not executed"
    if stripped.startswith("%") or re.search(r"=\s*%", stripped):
        return "a notebook magic is not executed"
    return "a request for help is not executed"


class _State:
    """Whether the next line continues a string, a bracket or a backslash."""

    def __init__(self) -> None:
        self._string: str | None = None
        self._depth = 0
        self._continued = False

    @property
    def inside(self) -> bool:
        return self._string is not None or self._depth > 0 or self._continued

    def read(self, line: str) -> None:
        """Take a line of Python into account."""
        self._continued = False
        for match in TOKEN.finditer(line):
            token = match[0]
            if self._string is not None:
                if token == self._string:
                    self._string = None
            elif token == "#":
                break
            elif token[0] in "'\"":
                self._string = token
            elif token in "([{":
                self._depth += 1
            elif token in ")]}":
                self._depth = max(0, self._depth - 1)
        else:
            self._continued = line.endswith("\\")
        if self._string is not None and len(self._string) == 1 and not line.endswith("\\"):
            self._string = None


# --- check commands --------------------------------------------------------------------------------------


PACKAGE, CHECK = "grader", "check"
# functions that show and combine results, and reach nothing of a homework
HARMLESS = {
    *("print", "display", "repr", "str", "bool", "int", "len", "sum", "all", "any", "min", "max", "sorted"),
    *("list", "tuple", "set", "dict", "range", "zip", "enumerate"),
}
BLOCKS = ("body", "orelse", "finalbody", "handlers")
NOTHING = "pass"


def without_checks(cells: Sequence[Cell]) -> tuple[Cell, ...]:
    """The cells without the statements that only check; all other lines stay where they were."""
    commands = _Commands([cell.tree for cell in cells])
    removed_by_cell = [list(commands.statements(cell.tree.body)) for cell in cells]
    if not any(removed_by_cell) or commands.remain(
        [statement.node for in_cell in removed_by_cell for statement in in_cell]
    ):
        return tuple(cells)
    return tuple(
        _edited(cell, in_cell) if in_cell else cell
        for cell, in_cell in zip(cells, removed_by_cell, strict=True)
    )


@dataclass(frozen=True)
class _Removed:
    """A removed statement, and its replacement."""

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
                self._packages |= {
                    alias.asname or alias.name for alias in node.names if alias.name == PACKAGE
                }
            elif isinstance(node, ast.ImportFrom) and _is_import_of_check(node):
                self._checks |= {alias.asname or alias.name for alias in node.names}
        if self._packages or self._checks:
            self._find_results()

    def _find_results(self) -> None:
        """Find the names of what a check returned, and of what was made from that alone."""
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
            yield from walk(tree)

    def statements(self, body: Iterable[ast.AST]) -> Iterator[_Removed]:
        """The statements of a block, and of blocks in it, that only check."""
        for node in body:
            if isinstance(node, ast.Import) and self._some_are_ours(node):
                other_aliases = [alias for alias in node.names if alias.name != PACKAGE]
                yield _Removed(node, ast.unparse(ast.Import(other_aliases)) if other_aliases else NOTHING)
            elif isinstance(node, ast.stmt) and self._only_checks(node):
                yield _Removed(node)
            else:
                for block in BLOCKS:
                    yield from self.statements(getattr(node, block, ()))

    def remain(self, removed: Iterable[ast.stmt]) -> bool:
        """Whether any other statement uses or binds one of the names."""
        gone = {id(node) for statement in removed for node in walk(statement)}
        names = self._packages | self._checks | self._results
        return any(names & set(_names(node)) for node in self._nodes() if id(node) not in gone)

    def _some_are_ours(self, node: ast.Import) -> bool:
        return any(alias.name == PACKAGE for alias in node.names)

    def _only_checks(self, node: ast.stmt) -> bool:
        match node:
            case ast.ImportFrom():
                return _is_import_of_check(node)
            case ast.Import():
                return all(alias.name == PACKAGE for alias in node.names)
            case ast.Expr(value) | ast.Assign([ast.Name()], value) | ast.Assert(value):
                return self._is_about_results(value)
            case ast.For(orelse=[]) | ast.If() | ast.Try():
                inside = [
                    statement for statement in _inner_statements(node) if not isinstance(statement, ast.Pass)
                ]
                return bool(inside) and all(map(self._only_checks, inside))
        return False

    def _is_about_results(self, node: ast.expr) -> bool:
        """Whether an expression only checks, or only shows or combines what checks returned."""
        checks = [inner for inner in walk(node) if self._is_check(inner)]
        called = {id(inner) for check in checks for inner in walk(check.func)}
        arguments = {id(inner) for check in checks for inner in walk(check)} - called  # which part is checked
        own_names = self._packages | self._checks
        outer_names = [name for name in walk(node) if isinstance(name, ast.Name) and id(name) not in called]
        free_names = [name for name in outer_names if id(name) not in arguments or name.id in own_names]
        bound_names = {name.id for name in free_names if isinstance(name.ctx, ast.Store)}
        used_names = {name.id for name in free_names} - bound_names
        return bool(checks or used_names & self._results) and used_names <= self._results | HARMLESS

    def _is_check(self, node: ast.AST) -> TypeGuard[ast.Call]:
        match node:
            case ast.Call(ast.Attribute(ast.Name(name), attr)):
                return name in self._packages and attr == CHECK
            case ast.Call(ast.Name(name)):
                return name in self._checks
        return False


def _is_import_of_check(node: ast.ImportFrom) -> bool:
    return node.module == PACKAGE and not node.level and all(alias.name == CHECK for alias in node.names)


def _inner_statements(node: ast.AST) -> Iterator[ast.stmt]:
    """The statements of a statement's blocks."""
    for block in BLOCKS:
        for statement in getattr(node, block, ()):
            if isinstance(statement, ast.ExceptHandler):
                yield from statement.body
            else:
                yield statement


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
    # from the end, so that earlier lines keep their positions
    for statement in reversed(removed):
        first_index, last_index = (
            statement.node.lineno - 1,
            (statement.node.end_lineno or statement.node.lineno) - 1,
        )
        before, after = (
            lines[first_index][: statement.node.col_offset],
            lines[last_index][statement.node.end_col_offset :],
        )
        lines[first_index : last_index + 1] = [
            before + statement.instead.encode() + after,
            *[b""] * (last_index - first_index),
        ]
    code = b"\n".join(lines).decode("utf-8")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return Cell(cell.file, cell.text, code, ast.parse(code))
