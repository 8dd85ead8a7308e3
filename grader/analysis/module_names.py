"""Global names within one file: where each is used, bound and imported, by Python's rules of scope.

It computes the nodes that speak of global names. `joining` decides which of them are renamed.

Tests: tests/analysis/test_joining.py
"""

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from grader.analysis.references import COMPREHENSIONS, FUNCTIONS, bound_names

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
