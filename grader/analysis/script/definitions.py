"""The program's functions and classes: which names their code uses, and what it does with its arguments.

Names are followed through calls, also those of methods. `dependence` decides what that means for a slice.

Tests: tests/training/test_replay.py, tests/analysis/script/test_which_model_counts.py
"""

import ast
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property

from grader.analysis.script.data_flow import names_read
from grader.analysis.syntax_trees import all_parameters, assigned, bound_names, calls, statements_within, walk
from grader.analysis.units import Unit, changed_names

DEFINED = ast.FunctionDef | ast.ClassDef
MOST_DEEP = 4


class Definitions:
    """The program's functions and classes: which names they use, and what they do with their arguments."""

    def __init__(self, units: Iterable[Unit]) -> None:
        self._units = {unit.node.name: unit for unit in units if isinstance(unit.node, DEFINED)}
        self._globals_by_node: dict[ast.stmt, frozenset[str]] = {}
        self._changed_by_node: dict[tuple[ast.FunctionDef, int], frozenset[str]] = {}
        self._read_by_node: dict[tuple[ast.FunctionDef, int], frozenset[str]] = {}
        self._methods: defaultdict[str, list[tuple[Unit, ast.FunctionDef]]] = defaultdict(list)
        for unit in self._units.values():
            for node in unit.node.body if isinstance(unit.node, ast.ClassDef) else ():
                if isinstance(node, ast.FunctionDef):
                    self._methods[node.name].append((unit, node))

    def __contains__(self, name: str) -> bool:
        return name in self._units

    def function(self, name: str) -> ast.FunctionDef | None:
        """The function of this name, if there is one."""
        node = self._units[name].node if name in self._units else None
        return node if isinstance(node, ast.FunctionDef) else None

    def unit(self, name: str) -> Unit:
        """The statement that defines a name."""
        return self._units[name]

    def bases(self, node: ast.stmt) -> frozenset[str]:
        """The program's classes that a class is derived from, also indirectly."""
        bases: set[str] = set()
        stack = [node]
        while stack:
            inner = stack.pop()
            for base in inner.bases if isinstance(inner, ast.ClassDef) else ():
                if isinstance(base, ast.Name) and base.id in self._units and base.id not in bases:
                    bases.add(base.id)
                    stack.append(self._units[base.id].node)
        return frozenset(bases)

    def is_told_of_subclasses(self, name: str) -> bool:
        """Whether a class does something with each class that is derived from it."""
        node = self._units[name].node
        return isinstance(node, ast.ClassDef) and (
            any(keyword.arg == "metaclass" for keyword in node.keywords)
            or any(inner.name == "__init_subclass__" for inner in _functions(node))
        )

    def methods(self, name: str) -> Sequence[tuple[Unit, ast.FunctionDef]]:
        """The methods of this name, each with the statement that defines its class."""
        return self._methods.get(name, [])

    def used(self, names: Iterable[str]) -> frozenset[str]:
        """The global names that the code under these names uses when it is called, also indirectly."""
        used_names: set[str] = set()
        stack = [name for name in names if name in self._units]
        while stack:
            name = stack.pop()
            if name in used_names:
                continue
            used_names.add(name)
            unit = self._units.get(name)
            if unit is not None:
                stack += (unit.eager | unit.lazy) - used_names
        return frozenset(used_names)

    def reaching(self, names: Iterable[str]) -> frozenset[str]:
        """These names, and those of functions and methods that use one of them, directly or indirectly."""
        reaching = set(names)
        while True:
            before = len(reaching)
            reaching |= {name for name, identifiers in self._identifiers if identifiers & reaching}
            if len(reaching) == before:
                return frozenset(reaching)

    @cached_property
    def _identifiers(self) -> list[tuple[str, frozenset[str]]]:
        """(name of a function or method, the names and attributes that its code mentions)."""
        return [
            (node.name, frozenset(_identifiers(node)))
            for unit in self._units.values()
            for node in _functions(unit.node)
        ]

    def changed_globals(self, names: Iterable[str]) -> frozenset[str]:
        """The global names that the code under these names binds, or whose parts it sets, when it is called.

        Names of lists that are only appended to are not among them: that is how histories are kept.
        """
        nodes = [self._units[name].node for name in self.used(names) if name in self._units]
        return frozenset(name for node in nodes for name in self._globals_set(node))

    def _globals_set(self, node: ast.stmt) -> frozenset[str]:
        if node not in self._globals_by_node:
            self._globals_by_node[node] = frozenset(_globals_set(node, frozenset()))
        return self._globals_by_node[node]

    def changed_arguments(self, call: ast.Call, depth: int = MOST_DEEP) -> frozenset[str]:
        """The names among the arguments whose values the called function changes."""
        return self._arguments_that(call, depth, lambda name, node: name in self._changed(node, depth))

    def filled_arguments(self, call: ast.Call, depth: int = MOST_DEEP) -> frozenset[str]:
        """The names among the arguments that the called function only adds to: histories."""
        return self._arguments_that(call, depth, lambda name, node: name not in self._read(node, depth))

    def _arguments_that(
        self, call: ast.Call, depth: int, fits: Callable[[str, ast.FunctionDef], bool]
    ) -> frozenset[str]:
        node = self.function(call.func.id) if isinstance(call.func, ast.Name) else None
        if node is None or depth == 0:
            return frozenset()
        return frozenset(
            argument.id
            for name, argument in _arguments(node, call).items()
            if isinstance(argument, ast.Name) and fits(name, node)
        )

    def returned_arguments(self, name: str, call: ast.Call) -> list[ast.expr]:
        """Which arguments of a call the function of this name hands back."""
        node = self.function(name)
        if node is None:
            return []
        returned = {
            statement.value.id
            for statement in statements_within(node)
            if isinstance(statement, ast.Return) and isinstance(statement.value, ast.Name)
        }
        return [argument for parameter, argument in _arguments(node, call).items() if parameter in returned]

    def _changed(self, node: ast.FunctionDef, depth: int) -> frozenset[str]:
        if (node, depth) not in self._changed_by_node:
            by_calls = (
                self.changed_arguments(call, depth - 1) for inner in node.body for call in calls(inner)
            )
            self._changed_by_node[node, depth] = frozenset(changed_names(node.body)).union(*by_calls)
        return self._changed_by_node[node, depth]

    def _read(self, node: ast.FunctionDef, depth: int) -> frozenset[str]:
        if (node, depth) not in self._read_by_node:
            names = names_read(node.body, lambda call: self.filled_arguments(call, depth - 1))
            self._read_by_node[node, depth] = names
        return self._read_by_node[node, depth]


def _functions(node: ast.AST) -> Iterator[ast.FunctionDef]:
    """A function, or the methods of a class."""
    for inner in [node] if isinstance(node, ast.FunctionDef) else getattr(node, "body", []):
        if isinstance(inner, ast.FunctionDef):
            yield inner


def _identifiers(node: ast.AST) -> Iterator[str]:
    for inner in walk(node):
        if isinstance(inner, ast.Name):
            yield inner.id
        elif isinstance(inner, ast.Attribute):
            yield inner.attr


def _globals_set(node: ast.stmt, hidden: frozenset[str]) -> Iterator[str]:
    """The global names that a function, or the functions in it, bind or set parts of.

    Args:
        hidden: Names of the functions around it.
    """
    if isinstance(node, ast.ClassDef):
        for inner in node.body:
            yield from _globals_set(inner, hidden)
    if not isinstance(node, ast.FunctionDef):
        return
    bound, declared = bound_names(node.body)
    hidden_here = hidden | {parameter.arg for parameter in all_parameters(node.args)} | (bound - declared)
    yield from bound & declared - hidden
    for statement in statements_within(node):
        if isinstance(statement, ast.FunctionDef | ast.ClassDef) and statement is not node:
            yield from _globals_set(statement, hidden_here)
        pair = assigned(statement)
        for target in pair[0] if pair is not None else ():
            while isinstance(target, ast.Subscript | ast.Attribute):
                target = target.value
                if isinstance(target, ast.Name) and target.id not in hidden_here:
                    yield target.id


def _arguments(node: ast.FunctionDef, call: ast.Call) -> dict[str, ast.expr]:
    positional = [arg.arg for arg in (*node.args.posonlyargs, *node.args.args)]
    arguments = dict(zip(positional, call.args, strict=False))
    return arguments | {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg}
