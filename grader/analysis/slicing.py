"""Loading slice: which top-level statements are executed on loading, which are not, and why.

Imports, definitions and plain values stay, and so does what they or graded names need, unless an effect
forbids it. Leaves of compound statements are taken out line by line, so that no line moves. It errs toward
leaving out: each omission is listed with its reason, and names that nothing provides are listed as
unresolved. The checks, never this module, decide whether an omission makes a part fail.

Tests: tests/analysis/test_loading_statements.py, tests/analysis/test_provided_files.py
"""

import ast
import builtins
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from grader.analysis.effects import BLOCKING, Aliases, Effect, Effects, reason
from grader.analysis.recognized_roles import is_plain
from grader.analysis.syntax_trees import DEFINITIONS, assigned
from grader.analysis.units import IMPORTS, Unit, aligned, reread, unit
from grader.domain.analyzed_program import Omission, Statement
from grader.domain.formatting import named

HARMLESS = (ast.Pass, ast.Global, ast.Raise)
LOOPS = (ast.For, ast.AsyncFor, ast.While)


def blocks(node: ast.stmt) -> list[list[ast.stmt]]:
    """The blocks of a compound statement; empty for a simple statement or a definition."""
    match node:
        case ast.If() | ast.For() | ast.AsyncFor() | ast.While():
            return [node.body, node.orelse]
        case ast.With() | ast.AsyncWith():
            return [node.body]
        case ast.Try() | ast.TryStar():
            return [node.body, *(handler.body for handler in node.handlers), node.orelse, node.finalbody]
    return []


def leaves(node: ast.stmt, *, loops: bool = False) -> Iterator[ast.stmt]:
    """The simple statements and definitions in an `if` or `try`, also in those nested in it.

    Args:
        loops: Also open loops and `with`.
    """
    opened = blocks(node) if loops or isinstance(node, ast.If | ast.Try | ast.TryStar) else []
    if not opened:
        yield node
    for block in opened:
        for inner in block:
            yield from leaves(inner, loops=loops)


def is_kept_leaf(node: ast.stmt) -> bool:
    """Whether a leaf does no more than bind something: an import, a definition, an assignment."""
    return isinstance(node, (*DEFINITIONS, *IMPORTS)) or assigned(node) is not None


def without(
    node: ast.stmt, text: str, first: int, is_out: Callable[[ast.stmt], bool]
) -> tuple[str, list[ast.stmt]]:
    """The text of an `if` or `try` with some leaves replaced by `pass`, on the same lines.

    Args:
        node: The statement; it begins in the first column of `text`.
        text: Its source.
        first: The line of the cell on which `text` begins.
        is_out: Whether a leaf is taken out.

    Returns:
        (text, the leaves taken out).
    """
    out = [leaf for leaf in leaves(node) if not isinstance(leaf, HARMLESS) and is_out(leaf)]
    return replaced(text, first, [(leaf, "pass") for leaf in out]), out


def replaced(text: str, first: int, changes: Sequence[tuple[ast.stmt, str]]) -> str:
    """The text of a statement with some of the statements within it replaced, on the same lines.

    Args:
        text: The source, which begins in the first column.
        first: The line of the cell on which it begins.
        changes: (statement, its replacement), in the order of the source.
    """
    lines = text.split("\n")
    for leaf, instead in reversed(changes):
        start, end = leaf.lineno - first, (leaf.end_lineno or leaf.lineno) - first
        head = lines[start].encode("utf-8")[: leaf.col_offset].decode("utf-8", "replace")
        tail = lines[end].encode("utf-8")[leaf.end_col_offset :].decode("utf-8", "replace")
        lines[start] = head + instead + (tail if start == end else "")
        for index in range(start + 1, end + 1):
            lines[index] = ""
        if start != end and tail.strip().startswith(";"):
            lines[start] += tail
    return "\n".join(lines)


# --- slicing ---------------------------------------------------------------------------------------------


KNOWN = frozenset(dir(builtins)) | {"__name__", "__file__", "__doc__", "__builtins__", "__spec__", "display"}


@dataclass(frozen=True)
class Reach:
    """What a graded name depends on.

    Attributes:
        names: All global names that can be reached.
        units: Indices of the statements that define them.
        roles: Names that are bound by role.
        missing: Names that nothing defines, or only statements that are not executed.
    """

    names: frozenset[str]
    units: frozenset[int]
    roles: frozenset[str]
    missing: frozenset[str]


class Graph:
    """The program's statements, and which of them define and change which names."""

    def __init__(
        self,
        units: Sequence[Unit],
        effects: Effects,
        graded: Collection[str],
        roles: Mapping[str, str],
    ) -> None:
        """Decide for every statement whether it could be executed.

        Args:
            units: The program, pruned by `pruned`.
            effects: The program's.
            graded: The graded names, as they are defined.
            roles: Names that are bound by role when they are needed.
        """
        self.units = units
        self.effects = [effects.of(unit.references.used) for unit in units]
        self._reads = {unit.index for unit in units if effects.reads_provided(unit.references.used)}
        self._roles = roles
        self._definers: dict[str, list[int]] = defaultdict(list)
        self._changers: dict[str, list[int]] = defaultdict(list)
        self._graded = frozenset(graded)
        for statement in units:
            for name in statement.binds:
                self._definers[name].append(statement.index)
            for name in statement.changes:
                self._changers[name].append(statement.index)
        self._star = "*" in self._definers
        self.possible = self._possible()

    def _possible(self) -> list[bool]:
        """Whether each statement can be executed: it is harmless, and all that it needs can be, too."""
        possible = [self._harmless(statement) for statement in self.units]
        left_definers = {name: sum(possible[i] for i in indices) for name, indices in self._definers.items()}
        users: dict[str, list[int]] = defaultdict(list)
        for statement in self.units:
            for name in statement.eager:
                users[name].append(statement.index)
        stack = [name for name in users if not left_definers.get(name) and not self._exists_unbound(name)]
        while stack:
            for index in users[stack.pop()]:
                statement = self.units[index]
                if not possible[index] or statement.binds & self._graded:
                    continue
                possible[index] = False
                for name in statement.binds:
                    left_definers[name] -= 1
                    if left_definers[name] == 0:
                        stack.append(name)
        return possible

    def _harmless(self, statement: Unit) -> bool:
        if statement.is_import or (statement.binds & self._graded and statement.is_definition):
            return True
        return not self.effects[statement.index] & BLOCKING

    def is_given(self, name: str) -> bool:
        """Whether a name has a value after loading."""
        return self._exists_unbound(name) or any(
            self.possible[index] for index in self._definers.get(name, ())
        )

    def _exists_unbound(self, name: str) -> bool:
        """Whether a name has a value although no statement binds it."""
        return name not in self._definers and (name in KNOWN or self._star)

    def reach(self, names: Iterable[str], executed: bool = True, stop_at_roles: bool = True) -> Reach:
        """What the given names depend on, through everything that is called or used.

        Args:
            names: Where to begin.
            executed: Follow only statements that can be executed on loading.
            stop_at_roles: Do not follow names that are bound by role.
        """
        reached_names: set[str] = set()
        reached_units: set[int] = set()
        roles: set[str] = set()
        missing: set[str] = set()
        stack = list(names)
        while stack:
            name = stack.pop()
            if name in reached_names:
                continue
            reached_names.add(name)
            if name in self._roles:
                roles.add(name)
                if stop_at_roles:
                    continue
            definers = [i for i in self._definers.get(name, ()) if self.possible[i] or not executed]
            if not definers:
                if not self._exists_unbound(name):
                    missing.add(name)
                continue
            if not all(self.units[index].is_import for index in definers):
                definers += [i for i in self._changers.get(name, ()) if self.possible[i] or not executed]
            for index in definers:
                if index not in reached_units:
                    reached_units.add(index)
                    statement = self.units[index]
                    stack += (statement.eager | statement.lazy) - reached_names
                    if not statement.is_import:
                        stack += statement.binds - reached_names
        return Reach(frozenset(reached_names), frozenset(reached_units), frozenset(roles), frozenset(missing))

    def kept(self, needed: Collection[int]) -> dict[int, str]:
        """The statements to execute, with their kinds.

        Args:
            needed: The statements that graded names depend on.
        """
        plain = self._plain()
        kept: dict[int, str] = {}
        also_needed: set[str] = set()
        for statement in self.units:
            if not self.possible[statement.index]:
                continue
            kind = (
                "import" if statement.is_import else _kind(statement, statement.index in plain | self._reads)
            )
            if kind or statement.index in needed:
                kept[statement.index] = kind or "needed"
            if kind:
                also_needed |= statement.eager
        for index in sorted(self.reach(also_needed).units - kept.keys()):
            kept[index] = "needed"
        return dict(sorted(kept.items()))

    def _plain(self) -> set[int]:
        """Statements that only name a value: they are kept whether or not they are needed."""
        plain: set[int] = set()
        names = {
            name
            for statement in self.units
            if statement.is_import or statement.is_definition
            for name in statement.binds
        }
        star = self._star
        for statement in self.units:
            if not self.possible[statement.index] or (statement.binds & self._roles.keys()):
                continue
            if self._uses_what_is_left_unfilled(statement):
                continue
            if is_plain(statement.node) and all(n in names or n in KNOWN or star for n in statement.eager):
                plain.add(statement.index)
                names |= statement.binds
        return plain

    def _uses_what_is_left_unfilled(self, statement: Unit) -> bool:
        """Whether it uses a value that a statement before it, which is left out, would have changed.

        As of a list of results that only a training fills: the largest of none is an error.
        """
        return any(
            index < statement.index and not self.possible[index]
            for name in statement.eager
            for index in self._changers.get(name, ())
        )


def _kind(statement: Unit, plain: bool) -> str:
    """The kind of a statement that is kept without being needed; empty for other statements."""
    if statement.is_definition:
        return "definition"
    if plain:
        return "constant"
    if isinstance(statement.node, ast.If | ast.Try | ast.TryStar):
        inner = [leaf for leaf in leaves(statement.node) if not isinstance(leaf, ast.Pass)]
        kinds = {type(leaf) for leaf in inner}
        if kinds and kinds <= {ast.Import, ast.ImportFrom}:
            return "import"
        if kinds & {ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef}:
            return "definition"
        return "constant" if inner and all(is_plain(leaf) for leaf in inner) else ""
    return ""


def pruned(
    units: Sequence[Unit], effects: Effects, aliases: Aliases, *, trains: bool = True
) -> tuple[tuple[Unit, ...], list[Omission]]:
    """The program with what must not be executed taken out of `if` and `try` blocks.

    Args:
        units: The program.
        effects, aliases: The program's.
        trains: The grader trains what is handed in.

    Returns:
        (the units, what was taken out).
    """
    changed: list[Unit] = []
    omissions: list[Omission] = []
    for statement in units:
        if not isinstance(statement.node, ast.If | ast.Try | ast.TryStar) or not any(
            is_kept_leaf(leaf) for leaf in leaves(statement.node)
        ):
            changed.append(statement)
            continue

        def effect_of(leaf: ast.stmt, statement: Unit = statement) -> Effect:
            return effects.of(unit(leaf, statement.cell, "", {}, statement.index).references.used)

        def is_out(leaf: ast.stmt) -> bool:
            return not is_kept_leaf(leaf) or bool(effect_of(leaf) & BLOCKING)

        text, out = without(aligned(statement).node, statement.text, statement.line, is_out)
        if not out or len(out) == sum(1 for _ in leaves(statement.node)):
            changed.append(statement)
            continue
        changed.append(reread(text, statement.line, statement.cell, statement.index))
        omissions += [
            Omission(
                statement.cell.place(leaf.lineno),
                _shown(leaf),
                reason(effect_of(leaf), trains=trains),
                binds=tuple(sorted(unit(leaf, statement.cell, "", {}, statement.index).binds)),
            )
            for leaf in out
        ]
    return tuple(changed), omissions


def _shown(node: ast.stmt) -> str:
    return ast.unparse(node).split("\n")[0][:80]


def statements(units: Sequence[Unit], kept: Mapping[int, str]) -> tuple[Statement, ...]:
    """The kept units as statements, in order."""
    return tuple(
        Statement(units[i].text, units[i].place, tuple(sorted(units[i].binds)), kind)
        for i, kind in kept.items()
    )


def omissions(graph: Graph, kept: Mapping[int, str], *, trains: bool = True) -> list[Omission]:
    """The units that are not executed, with reasons.

    Args:
        graph: The program's.
        kept: What is executed.
        trains: The grader trains what is handed in.
    """
    omitted = []
    for statement in graph.units:
        if statement.index in kept or _says_nothing(statement.node):
            continue
        why = reason(graph.effects[statement.index], trains=trains)
        if not graph.effects[statement.index] and not graph.possible[statement.index]:
            why = f"it needs {_blocked(graph, statement)}, which is not executed"
        omitted.append(
            Omission(statement.place, statement.first_line, why, binds=tuple(sorted(statement.binds)))
        )
    return omitted


def _blocked(graph: Graph, statement: Unit) -> str:
    return next((named(name) for name in sorted(statement.eager) if not graph.is_given(name)), "something")


def _says_nothing(node: ast.stmt) -> bool:
    """Whether a statement does nothing: a docstring, `pass`, a name to show its value."""
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant | ast.Name | ast.Attribute)
    return isinstance(node, ast.Pass) or (isinstance(node, ast.AnnAssign) and assigned(node) is None)
