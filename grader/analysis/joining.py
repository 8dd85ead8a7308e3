"""Several files of a student's as one program: modules become cells before the cell that imports them first.

Imports of own modules disappear, `helpers.accuracy` becomes `accuracy`, and a name that two files bind is
renamed in one. Lines stay where they are. It decides which files beside a homework belong to it, by the
names in imports. A file in another folder counts only where no library and no second file has its name.
`slicing` decides what of them is executed.

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
from grader.analysis.units import Cell, is_main_guard

Dotted = tuple[str, ...]


@dataclass(frozen=True)
class OwnModule:
    """A module of the student's own.

    Attributes:
        dotted: How an import may call it: `("parts", "attention")`.
        package: The package that relative imports in it begin at.
        run: It is executed as a script (`%run helpers.py`), so that what is under its main guard is, too.
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
    """A module by the name of its file, `parts/attention.py`."""
    parts = tuple(name.removesuffix(".py").split("/"))
    if parts[-1] == "__init__":
        return OwnModule(parts[:-1], cell, parts[:-1], run)
    return OwnModule(parts, cell, parts[:-1], run)


def joined(cells: Sequence[Cell], modules: Sequence[OwnModule]) -> Joined:
    """The homework's cells, with the modules that they import, and those that these import, before them."""
    if not modules:
        return Joined(tuple(cells))
    home = [_File(cell, (), global_uses(cell.tree)) for cell in cells]
    files = {
        module.dotted: _File(module.cell, module.package, global_uses(module.cell.tree), module)
        for module in modules
    }
    finder = _Finder(files)
    order = _order(home, finder)  # `id` of a file of the homework -> the modules before it
    used = [file for before in order.values() for file in before]
    if not used:
        return Joined(tuple(cells))
    renamed = _renamed(home, used, finder)
    exports = {id(file): _Exports(top_level_names(file.cell.tree), renamed[id(file)]) for file in used}
    made: list[Cell] = []
    for file in home:
        made += [_rewritten(each, exports, renamed[id(each)], finder) for each in order[id(file)]]
        made.append(_rewritten(file, exports, {}, finder))
    return Joined(tuple(made), tuple(file.cell.file for file in used))


@dataclass(frozen=True)
class _File:
    """One file: a cell of the homework, or a module."""

    cell: Cell
    package: Dotted
    uses: GlobalUses
    module: OwnModule | None = None


@dataclass(frozen=True)
class _Exports:
    """What a module binds, and what of it has another name in the program."""

    names: set[str]
    renamed: Mapping[str, str]

    def called(self, name: str) -> str:
        return self.renamed.get(name, name)


class _Finder:
    """Finds the module that an import names."""

    def __init__(self, files: Mapping[Dotted, _File]) -> None:
        self._files = files

    def module(self, dotted: Dotted) -> _File | None:
        """The module of this name; one in another folder where only one has such a name."""
        if not dotted:
            return None
        if dotted in self._files:
            return self._files[dotted]
        if dotted[0] in installed():
            return None
        deeper = [file for name, file in self._files.items() if name[-len(dotted) :] == dotted]
        return deeper[0] if len(deeper) == 1 else None

    def flattened(self, dotted: Dotted, names: Iterable[str]) -> _File | None:
        """The module of this name without its folders, which an LMS took away, if it defines these names."""
        file = self._files.get(dotted[-1:])
        if file is None or dotted[0] in installed():
            return None
        return file if {*names} - {"*"} <= top_level_names(file.cell.tree) else None

    def source_of(self, node: ast.ImportFrom, package: Dotted) -> Dotted:
        """What `from ... import` is from."""
        named = tuple(node.module.split(".")) if node.module else ()
        if not node.level:
            return named
        return (*package[: len(package) - (node.level - 1)], *named)

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
        chain: The local name of it; several for `import a.b`.
        name: The name in the module; empty for the module itself, `*` for all that is in it.
    """

    alias: ast.alias
    file: _File
    chain: Dotted
    name: str = ""


@functools.cache
def installed() -> frozenset[str]:
    """The libraries of this machine. To be called once before a parser may see no file any more."""
    return sys.stdlib_module_names | {module.name for module in pkgutil.iter_modules()}


def _order(home: Sequence[_File], finder: _Finder) -> dict[int, list[_File]]:
    seen: set[int] = set()

    def before(file: _File) -> Iterator[_File]:
        for node in sorted(file.uses.imports, key=lambda node: node.lineno):
            for imported in finder.imported(node, file.package):
                if id(imported.file) not in seen:
                    seen.add(id(imported.file))
                    yield from before(imported.file)
                    yield imported.file

    return {id(file): list(before(file)) for file in home}


def _renamed(home: Sequence[_File], used: Sequence[_File], finder: _Finder) -> dict[int, dict[str, str]]:
    """`id` of a module -> what is called otherwise, because another file calls something else so."""
    taken: dict[str, object] = {}
    for file in home:
        taken |= _bound(file, finder)
    wanted = {
        (id(imported.file), imported.name)
        for file in home
        for node in file.uses.imports
        for imported in finder.imported(node, file.package)
        if imported.chain == (imported.name,) and imported.name not in taken
    }
    every = [(file, name, what) for file in used for name, what in _bound(file, finder).items()]
    every.sort(key=lambda one: (id(one[0]), one[1]) not in wanted)
    renamed: dict[int, dict[str, str]] = {id(file): {} for file in used}
    for file, name, what in every:
        if taken.setdefault(name, what) is not what and taken[name] != what:
            stem = file.module.dotted[-1] if file.module else "own"
            other = f"{name}__{stem}"
            while other in taken:
                other += "_"
            taken[other] = what
            renamed[id(file)][name] = other
    return renamed


def _bound(file: _File, finder: _Finder) -> dict[str, object]:
    """Top-level name -> what it is: an import of the same thing in two files is one."""
    own = {
        imported.chain[0] for node in file.uses.imports for imported in finder.imported(node, file.package)
    }
    found: dict[str, object] = {name: object() for name in top_level_names(file.cell.tree) - own}
    for node in file.cell.tree.body:
        if isinstance(node, Import):
            source = "" if isinstance(node, ast.Import) else f"{node.module}."
            for alias in node.names:
                name = alias.asname or alias.name.split(".")[0]
                if name in found:
                    found[name] = f"{source}{alias.name if alias.asname or source else name}"
    return found


def _rewritten(
    file: _File, exports: Mapping[int, _Exports], renamed: Mapping[str, str], finder: _Finder
) -> Cell:
    edits = list(_Rewriting(file, exports, renamed, finder).edits())
    if not edits:
        return file.cell
    code = applied(file.cell.code, 1, 0, edits)
    try:
        return replace(file.cell, code=code, tree=ast.parse(code))
    except SyntaxError:  # a way to write it that nobody thought of: its imports stay what they are
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
        """In no order."""
        for node in self.file.uses.imports:
            yield from self._import(node)
        if self.file.module is not None and not self.file.module.run:
            for statement in self.file.cell.tree.body:
                if isinstance(statement, ast.If) and is_main_guard(statement):
                    yield instead(statement.test, "False")
        yield from self._names()

    def _import(self, node: Import) -> Iterator[Edit]:
        found = list(self.finder.imported(node, self.file.package))
        own = {id(one.alias) for one in found}
        kept = [alias for alias in node.names if id(alias) not in own]
        made = []
        for alias in kept:
            alias.asname = self.renamed.get(alias.asname or alias.name, alias.asname)
        if kept:
            node.names = kept
            made.append(ast.unparse(node))
        for one in found:
            if one.name == "":
                self.chains[one.chain] = one.file
            elif one.name != "*":
                target = self.exports[id(one.file)].called(one.name)
                if target != one.chain[0]:
                    made.append(f"{one.chain[0]} = {target}")
        if found or (kept and any(alias.asname in self.renamed.values() for alias in kept)):
            yield from _over_lines(node, "; ".join(made) or "pass", self.file.cell)

    def _names(self) -> Iterator[Edit]:
        parents = {
            id(inner): node
            for node in ast.walk(self.file.cell.tree)
            if isinstance(node, ast.Attribute)
            for inner in (node.value,)
        }
        formatted: dict[int, tuple[ast.JoinedStr, dict[int, str]]] = {}
        for name in self.file.uses.names:
            node, text = self._replacement(name, parents)
            if text is None:
                continue
            whole = self.file.uses.formatted.get(id(name))
            if whole is None:
                yield instead(node, text)
            else:
                formatted.setdefault(id(whole), (whole, {}))[1][id(node)] = text
        for whole, inside in formatted.values():
            yield instead(whole, ast.unparse(_Replaced(inside).visit(whole)))
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
        """The node that is replaced, and by what: `helpers.accuracy` by `accuracy`."""
        chain: Dotted = (name.id,)
        at: ast.expr = name
        while id(at) in parents:
            above = parents[id(at)]
            if chain in self.chains:
                exports = self.exports[id(self.chains[chain])]
                if above.attr in exports.names and (*chain, above.attr) not in self.chains:
                    return above, exports.called(above.attr)
            at, chain = above, (*chain, above.attr)
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
    """Puts texts in the place of nodes, by their `id`."""

    def __init__(self, texts: Mapping[int, str]) -> None:
        self._texts = texts

    def visit(self, node: ast.AST) -> ast.AST:
        """The node, or what is put in its place."""
        if id(node) in self._texts:
            return ast.parse(self._texts[id(node)], mode="eval").body
        return self.generic_visit(node)


def _over_lines(node: ast.stmt, text: str, cell: Cell) -> Iterator[Edit]:
    """A text in the place of a statement; what else of it there is on further lines becomes blank."""
    (first, left), (last, right) = start_of(node), end_of(node)
    before = cell.lines[first - 1].encode("utf-8")[:left].decode("utf-8")
    after = cell.lines[last - 1].encode("utf-8")[right:].decode("utf-8")
    # what follows behind a semicolon stands on the last line
    place = last if after.lstrip().startswith(";") and not before.strip() else first
    for line in range(first, last + 1):
        start = left if line == first else 0
        end = right if line == last else len(cell.lines[line - 1].encode("utf-8"))
        indent = before if line == place != first else ""
        yield Edit((line, start), (line, end), indent + text if line == place else "")
