"""Walks over syntax trees: nodes, children, statements, calls; what is assigned, and which names are bound.

It decides nothing about a program. `ast.walk` visits contexts such as `ast.Load` too, through two generators
for each node: that took half the time of an analysis. A tree is walked many hundred times, so that each node
remembers what is below it: whoever changes a tree changes a `copied` one.

Tests: tests/analysis/test_syntax_trees.py
"""

import ast
import functools
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
DEFINITIONS = (*FUNCTIONS, ast.ClassDef)
LOOPS = (ast.For, ast.While)


# two nodes of three: below them there are none, or contexts only
LEAVES = frozenset(
    {ast.Name, ast.Constant, ast.alias, ast.Pass, ast.Break, ast.Continue, ast.Global, ast.Nonlocal}
    | {
        kind
        for group in (ast.operator, ast.unaryop, ast.boolop, ast.cmpop)
        for kind in group.__subclasses__()
    }
)


Node = TypeVar("Node", bound=ast.AST)
Found = TypeVar("Found")


def _remembered(function: Callable[[Node], Found]) -> Callable[[Node], Found]:
    """A function of a node whose result the node remembers.

    The node itself is no part of it: a tree in a circle would stay in memory until the collector looks.
    """
    attribute = f"_{function.__name__}"

    @functools.wraps(function)
    def called(node: Node) -> Found:
        try:
            found: Found = getattr(node, attribute)
        except AttributeError:
            found = function(node)
            setattr(node, attribute, found)
        return found

    return called


def copied(node: Node) -> Node:
    """A copy of a tree that may be changed: its nodes remember nothing."""
    copy = node.__class__.__new__(node.__class__)
    for name in (*node._fields, *node._attributes):
        if hasattr(node, name):
            setattr(copy, name, _copied(getattr(node, name)))
    return copy


def _copied(value: Any) -> Any:
    if isinstance(value, list):
        return [_copied(item) for item in value]
    return copied(value) if isinstance(value, ast.AST) else value


@_remembered
def children(node: ast.AST) -> tuple[ast.AST, ...]:
    """The nodes directly below a node, in the order of `ast.iter_child_nodes`, without contexts."""
    if node.__class__ in LEAVES:
        return ()
    below: list[ast.AST] = []
    for name in node._fields:
        value = getattr(node, name, None)
        if value.__class__ is list:
            below += [item for item in value if isinstance(item, ast.AST)]
        elif isinstance(value, ast.AST) and not isinstance(value, ast.expr_context):
            below.append(value)
    return tuple(below)


def walk(node: ast.AST) -> tuple[ast.AST, ...]:
    """A node and all below it, in the order of `ast.walk`, without contexts."""
    return (node, *_below(node))


@_remembered
def _below(node: ast.AST) -> tuple[ast.AST, ...]:
    nodes = [*children(node)]
    for current in nodes:
        nodes += children(current)
    return tuple(nodes)


@_remembered
def text_of(node: ast.AST) -> str:
    """A node as text, as `ast.unparse` writes it."""
    return ast.unparse(node)


def depth(tree: ast.AST) -> int:
    """How deep nodes lie below a tree's root."""
    level, deepest = [tree], 0
    while level := [below for node in level for below in children(node)]:
        deepest += 1
    return deepest


def statements_within(node: ast.AST) -> tuple[ast.stmt, ...]:
    """All statements in a block, without those of functions and classes defined in it."""
    below = _statements_below(node)
    return (node, *below) if isinstance(node, ast.stmt) else below


@_remembered
def _statements_below(node: ast.AST) -> tuple[ast.stmt, ...]:
    if isinstance(node, ast.expr):
        return ()
    found: list[ast.stmt] = []
    stack = [*reversed(children(node))]
    while stack:
        current = stack.pop()
        if isinstance(current, ast.stmt):
            found.append(current)
            if isinstance(current, DEFINITIONS):
                continue
        if not isinstance(current, ast.expr):
            stack += reversed(children(current))
    return tuple(found)


def as_function(node: ast.AST) -> ast.FunctionDef | None:
    """The function that a statement defines: `def` as it is, `name = lambda x: y` written as one."""
    match node:
        case ast.FunctionDef():
            return node
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.Lambda(args=parameters, body=body)):
            returned = ast.copy_location(ast.Return(body), body)
            function = ast.FunctionDef(name, parameters, [returned], [], returns=None, type_comment=None)
            function.type_params = []  # type: ignore[attr-defined]  # of Python 3.12 and later
            return ast.copy_location(function, node)
    return None


def calls(node: ast.AST) -> tuple[ast.Call, ...]:
    """All calls in a node, without those in functions and classes defined within it."""
    below = _calls_below(node)
    return (node, *below) if isinstance(node, ast.Call) else below


@_remembered
def _calls_below(node: ast.AST) -> tuple[ast.Call, ...]:
    found: list[ast.Call] = []
    stack = [node]
    while stack:
        current = stack.pop()
        if isinstance(current, ast.Call) and current is not node:
            found.append(current)
        stack += [child for child in children(current) if not isinstance(child, (*DEFINITIONS, ast.Lambda))]
    return tuple(found)


def own_calls(node: ast.stmt) -> Iterator[ast.Call]:
    """The calls in a loop's body that are not in loops or functions within it."""
    stack: list[ast.AST] = [*getattr(node, "body", []), *getattr(node, "orelse", [])]
    while stack:
        current = stack.pop()
        if isinstance(current, (*LOOPS, *DEFINITIONS)):
            continue
        if isinstance(current, ast.Call):
            yield current
        stack += children(current)


def assigned(node: ast.stmt) -> tuple[list[ast.expr], ast.expr] | None:
    """The targets and the value of an assignment."""
    if isinstance(node, ast.Assign):
        return node.targets, node.value
    if isinstance(node, ast.AnnAssign) and node.value is not None:
        return [node.target], node.value
    return None


def all_parameters(args: ast.arguments) -> list[ast.arg]:
    """All parameters of a function, `*args` and `**kwargs` last."""
    return [
        *(*args.posonlyargs, *args.args, *args.kwonlyargs),
        *(arg for arg in (args.vararg, args.kwarg) if arg is not None),
    ]


def bound_names(nodes: Iterable[ast.AST]) -> tuple[set[str], set[str]]:
    """The names that statements bind in their own scope, and those that they declare global or nonlocal."""
    bound: set[str] = set()
    declared: set[str] = set()
    stack = list(nodes)
    while stack:
        node = stack.pop()
        if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            bound.add(node.name)
            continue
        if isinstance(node, ast.Lambda):
            continue
        if isinstance(node, COMPREHENSIONS):
            stack += [inner for inner in walk(node) if isinstance(inner, ast.NamedExpr)]
            continue
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            bound.add(node.id)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            bound |= {alias.asname or alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.Global | ast.Nonlocal):
            declared |= set(node.names)
        elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
            bound.add(node.name)
        elif isinstance(node, ast.MatchMapping) and node.rest:
            bound.add(node.rest)
        stack += children(node)
    return bound, declared
