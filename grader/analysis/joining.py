"""A student's files as one program: modules become cells before the first cell that imports them.

Imports of own modules disappear, `helpers.accuracy` becomes `accuracy`, and a name that two files bind is
renamed in one. Lines stay where they are. This module decides which files beside a homework belong to it,
by the names in imports. A file in another folder counts only if no library and no second file has its
name. `slicing` decides which parts of them are executed.

Tests: tests/analysis/test_joining.py
"""

import ast
import functools
import pkgutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from grader.analysis.rewriting import (
    Edit,
    GlobalUses,
    Import,
    applied,
    end_of,
    global_uses,
    instead,
    start_of,
    top_level_names,
)
from grader.analysis.syntax_trees import walk
from grader.analysis.units import Cell, is_main_guard

Dotted = tuple[str, ...]


@dataclass(frozen=True)
class OwnModule:
    """One of the student's own modules.

    Attributes:
        dotted: How an import may call it: `("parts", "attention")`.
        package: The package at which relative imports in it begin.
        run: It is executed as a script (`%run helpers.py`), so what is under its main guard is executed, too.
    """

    dotted: Dotted
    cell: Cell
    package: Dotted = ()
    run: bool = False


@dataclass(frozen=True)
class Joined:
    """The cells of one program.

    Attributes:
        used: The files of the modules that are part of it, in the order of their execution.
    """

    cells: tuple[Cell, ...]
    used: tuple[str, ...] = ()


def own_module(name: str, cell: Cell, *, run: bool = False) -> OwnModule:
    """A module from the name of its file, `parts/attention.py`."""
    parts = tuple(name.removesuffix(".py").split("/"))
    if parts[-1] == "__init__":
        return OwnModule(parts[:-1], cell, parts[:-1], run)
    return OwnModule(parts, cell, parts[:-1], run)


def joined(cells: Sequence[Cell], modules: Sequence[OwnModule]) -> Joined:
    """The homework's cells, preceded by the modules that they import, directly or indirectly."""
    if not modules:
        return Joined(tuple(cells))
    home = [_File(cell, (), global_uses(cell.tree)) for cell in cells]
    files = {
        module.dotted: _File(module.cell, module.package, global_uses(module.cell.tree), module)
        for module in modules
    }
    finder = _Finder(files)
    order = _order(home, finder)  # `id` of a file of the homework -> the modules before it
    used_files = [file for before in order.values() for file in before]
    if not used_files:
        return Joined(tuple(cells))
    renamed = _renamed(home, used_files, finder)
    exports = {id(file): _Exports(top_level_names(file.cell.tree), renamed[id(file)]) for file in used_files}
    joined_cells: list[Cell] = []
    for file in home:
        joined_cells += [
            _rewritten(module_file, exports, renamed[id(module_file)], finder)
            for module_file in order[id(file)]
        ]
        joined_cells.append(_rewritten(file, exports, {}, finder))
    return Joined(tuple(joined_cells), tuple(file.cell.file for file in used_files))


@dataclass(frozen=True)
class _File:
    """One file: a cell of the homework, or a module."""

    cell: Cell
    package: Dotted
    uses: GlobalUses
    module: OwnModule | None = None


@dataclass(frozen=True)
class _Exports:
    """The names that a module binds, and those that have another name in the program."""

    names: set[str]
    renamed: Mapping[str, str]

    def called(self, name: str) -> str:
        return self.renamed.get(name, name)


class _Finder:
    """Finds the module that an import names."""

    def __init__(self, files: Mapping[Dotted, _File]) -> None:
        self._files = files

    def module(self, dotted: Dotted) -> _File | None:
        """The module of this name; one in another folder only if no other has the same name."""
        if not dotted:
            return None
        if dotted in self._files:
            return self._files[dotted]
        if dotted[0] in installed():
            return None
        deeper = [file for name, file in self._files.items() if name[-len(dotted) :] == dotted]
        return deeper[0] if len(deeper) == 1 else None

    def flattened(self, dotted: Dotted, names: Iterable[str]) -> _File | None:
        """The module of this name without its folders, which an LMS removed, if it defines these names."""
        file = self._files.get(dotted[-1:])
        if file is None or dotted[0] in installed():
            return None
        return file if {*names} - {"*"} <= top_level_names(file.cell.tree) else None

    def source_of(self, node: ast.ImportFrom, package: Dotted) -> Dotted:
        """The module that `from ... import` imports from."""
        parts = tuple(node.module.split(".")) if node.module else ()
        if not node.level:
            return parts
        return (*package[: len(package) - (node.level - 1)], *parts)

    def imported(self, node: Import, package: Dotted) -> Iterator["_Imported"]:
        """The own modules, and names of them, that an import binds."""
        if isinstance(node, ast.Import):
            for alias in node.names:
                if (file := self.module(tuple(alias.name.split(".")))) is not None:
                    chain = (alias.asname,) if alias.asname else tuple(alias.name.split("."))
                    yield _Imported(alias, file, chain)
            return
        source = self.source_of(node, package)
        file = self.module(source) or self.flattened(source, [alias.name for alias in node.names])
        for alias in node.names:
            local = (alias.asname or alias.name,)
            defined = file is not None and alias.name in top_level_names(file.cell.tree)
            inner = None if defined else self.module((*source, alias.name))
            if inner is not None and inner is not file:
                yield _Imported(alias, inner, local)
            elif file is not None:
                yield _Imported(alias, file, local, alias.name)


@dataclass(frozen=True)
class _Imported:
    """What one alias of an import binds.

    Attributes:
        chain: Its local name; several parts for `import a.b`.
        name: The name in the module; empty for the module itself, `*` for everything in it.
    """

    alias: ast.alias
    file: _File
    chain: Dotted
    name: str = ""


@functools.cache
def installed() -> frozenset[str]:
    """The libraries of this machine. Call it once before a parser loses access to files."""
    return sys.stdlib_module_names | {module.name for module in pkgutil.iter_modules()}


def _order(home: Sequence[_File], finder: _Finder) -> dict[int, list[_File]]:
    visited: set[int] = set()

    def before(file: _File) -> Iterator[_File]:
        for node in sorted(file.uses.imports, key=lambda node: node.lineno):
            for imported in finder.imported(node, file.package):
                if id(imported.file) not in visited:
                    visited.add(id(imported.file))
                    yield from before(imported.file)
                    yield imported.file

    return {id(file): list(before(file)) for file in home}


def _renamed(
    home: Sequence[_File], used_files: Sequence[_File], finder: _Finder
) -> dict[int, dict[str, str]]:
    """`id` of a module -> its names that are replaced because another file uses them for something else."""
    meanings: dict[str, object] = {}
    for file in home:
        meanings |= _meanings(file, finder)
    imported_names = {
        (id(imported.file), imported.name)
        for file in home
        for node in file.uses.imports
        for imported in finder.imported(node, file.package)
        if imported.chain == (imported.name,) and imported.name not in meanings
    }
    bindings = [
        (file, name, meaning) for file in used_files for name, meaning in _meanings(file, finder).items()
    ]
    bindings.sort(key=lambda binding: (id(binding[0]), binding[1]) not in imported_names)
    renamed: dict[int, dict[str, str]] = {id(file): {} for file in used_files}
    for file, name, meaning in bindings:
        if meanings.setdefault(name, meaning) is not meaning and meanings[name] != meaning:
            stem = file.module.dotted[-1] if file.module else "own"
            new_name = f"{name}__{stem}"
            while new_name in meanings:
                new_name += "_"
            meanings[new_name] = meaning
            renamed[id(file)][name] = new_name
    return renamed


def _meanings(file: _File, finder: _Finder) -> dict[str, object]:
    """Top-level name -> its meaning: imports of the same thing in two files have the same meaning."""
    own_names = {
        imported.chain[0] for node in file.uses.imports for imported in finder.imported(node, file.package)
    }
    meanings: dict[str, object] = {name: object() for name in top_level_names(file.cell.tree) - own_names}
    for node in file.cell.tree.body:
        if isinstance(node, Import):
            source = "" if isinstance(node, ast.Import) else f"{node.module}."
            for alias in node.names:
                name = alias.asname or alias.name.split(".")[0]
                if name in meanings:
                    meanings[name] = f"{source}{alias.name if alias.asname or source else name}"
    return meanings


def _rewritten(
    file: _File, exports: Mapping[int, _Exports], renamed: Mapping[str, str], finder: _Finder
) -> Cell:
    edits = list(_Rewriting(file, exports, renamed, finder).edits())
    if not edits:
        return file.cell
    code = applied(file.cell.code, 1, 0, edits)
    try:
        return replace(file.cell, code=code, tree=ast.parse(code))
    except SyntaxError:  # an unforeseen way to write it: its imports stay as they are
        return file.cell


@dataclass
class _Rewriting:
    """What is replaced in one file."""

    file: _File
    exports: Mapping[int, _Exports]
    renamed: Mapping[str, str]
    finder: _Finder
    chains: dict[Dotted, _File] = field(default_factory=dict)  # what leads to a module -> the module
    aliases: dict[str, str] = field(default_factory=dict)

    def edits(self) -> Iterator[Edit]:
        """The edits, in no particular order."""
        for node in self.file.uses.imports:
            yield from self._import(node)
        if self.file.module is not None and not self.file.module.run:
            for statement in self.file.cell.tree.body:
                if isinstance(statement, ast.If) and is_main_guard(statement):
                    yield instead(statement.test, "False")
        yield from self._names()

    def _import(self, node: Import) -> Iterator[Edit]:
        bindings = list(self.finder.imported(node, self.file.package))
        own_aliases = {id(binding.alias) for binding in bindings}
        other_aliases = [alias for alias in node.names if id(alias) not in own_aliases]
        statements = []
        for alias in other_aliases:
            alias.asname = self.renamed.get(alias.asname or alias.name, alias.asname)
        if other_aliases:
            node.names = other_aliases
            statements.append(ast.unparse(node))
        for binding in bindings:
            if binding.name == "":
                self.chains[binding.chain] = binding.file
            elif binding.name != "*":
                target = self.exports[id(binding.file)].called(binding.name)
                if target != binding.chain[0]:
                    statements.append(f"{binding.chain[0]} = {target}")
        if bindings or (
            other_aliases and any(alias.asname in self.renamed.values() for alias in other_aliases)
        ):
            yield from _over_lines(node, "; ".join(statements) or "pass", self.file.cell)

    def _names(self) -> Iterator[Edit]:
        parents = {
            id(inner): node
            for node in walk(self.file.cell.tree)
            if isinstance(node, ast.Attribute)
            for inner in (node.value,)
        }
        formatted: dict[int, tuple[ast.JoinedStr, dict[int, str]]] = {}
        for name in self.file.uses.names:
            node, text = self._replacement(name, parents)
            if text is None:
                continue
            f_string = self.file.uses.formatted.get(id(name))
            if f_string is None:
                yield instead(node, text)
            else:
                formatted.setdefault(id(f_string), (f_string, {}))[1][id(node)] = text
        for f_string, replacements in formatted.values():
            yield instead(f_string, ast.unparse(_Replaced(replacements).visit(f_string)))
        for definition in self.file.uses.definitions:
            if definition.name in self.renamed:
                yield self._definition(definition)
        for statement in self.file.uses.declared:
            if set(statement.names) & set(self.renamed):
                names = ", ".join(self.renamed.get(name, name) for name in statement.names)
                yield instead(statement, f"global {names}")

    def _replacement(
        self, name: ast.Name, parents: Mapping[int, ast.Attribute]
    ) -> tuple[ast.expr, str | None]:
        """The node that is replaced, and its replacement: `accuracy` for `helpers.accuracy`."""
        chain: Dotted = (name.id,)
        node: ast.expr = name
        while id(node) in parents:
            above = parents[id(node)]
            if chain in self.chains:
                exports = self.exports[id(self.chains[chain])]
                if above.attr in exports.names and (*chain, above.attr) not in self.chains:
                    return above, exports.called(above.attr)
            node, chain = above, (*chain, above.attr)
        return name, self.renamed.get(name.id)

    def _definition(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> Edit:
        words = 2 if isinstance(node, ast.AsyncFunctionDef) else 1
        line = self.file.cell.lines[node.lineno - 1].encode("utf-8")
        start = node.col_offset
        for _ in range(words):
            start = line.index(b" ", start)
            start += len(line[start:]) - len(line[start:].lstrip())
        end = start + len(node.name.encode("utf-8"))
        return Edit((node.lineno, start), (node.lineno, end), self.renamed[node.name])


class _Replaced(ast.NodeTransformer):
    """Replaces nodes with texts, by their `id`."""

    def __init__(self, texts: Mapping[int, str]) -> None:
        self._texts = texts

    def visit(self, node: ast.AST) -> ast.AST:
        """The node, or its replacement."""
        if id(node) in self._texts:
            return ast.parse(self._texts[id(node)], mode="eval").body
        return self.generic_visit(node)


def _over_lines(node: ast.stmt, text: str, cell: Cell) -> Iterator[Edit]:
    """The edits that replace a statement with a text; any further lines of it become blank."""
    (first_line, first_column), (last_line, last_column) = start_of(node), end_of(node)
    before = cell.lines[first_line - 1].encode("utf-8")[:first_column].decode("utf-8")
    after = cell.lines[last_line - 1].encode("utf-8")[last_column:].decode("utf-8")
    # what follows a semicolon is on the last line
    place = last_line if after.lstrip().startswith(";") and not before.strip() else first_line
    for line in range(first_line, last_line + 1):
        start = first_column if line == first_line else 0
        end = last_column if line == last_line else len(cell.lines[line - 1].encode("utf-8"))
        indent = before if line == place != first_line else ""
        yield Edit((line, start), (line, end), indent + text if line == place else "")
