"""Data flow of single statements: names read before they are bound, and files saved and loaded.

A name that only some branches bind counts as not bound. Files go by `torch.save` and `torch.load` with
literal names; any other name may be any file. So both err toward dependence; other ways to keep weights
are not seen. `dependence` decides what belongs to the script.

Tests: tests/training/test_replay.py
"""

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from grader.analysis.units import DEFINITIONS

COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def exposed(node: ast.stmt) -> frozenset[str]:
    """The names, those of builtins and of functions included."""
    return frozenset(_exposed(node, set()))


def _exposed(node: ast.stmt, bound: set[str]) -> Iterator[str]:
    """The names read first; `bound` grows by what the statement certainly binds."""
    match node:
        case ast.For(target=target, iter=iterated, body=body, orelse=orelse):
            yield from _read(iterated, bound)
            yield from _block(body, bound | _stored(target))
            yield from _block(orelse, set(bound))
        case ast.While(test=test, body=body, orelse=orelse):
            yield from _read(test, bound)
            yield from _block(body, set(bound))
            yield from _block(orelse, set(bound))
        case ast.If(test=test, body=body, orelse=orelse):
            yield from _read(test, bound)
            first, second = set(bound), set(bound)
            yield from _block(body, first)
            yield from _block(orelse, second)
            bound |= first & second
        case ast.With(items=items, body=body):
            for item in items:
                yield from _read(item.context_expr, bound)
                bound |= _stored(item.optional_vars) if item.optional_vars else set()
            yield from _block(body, bound)
        case ast.Try(body=body, handlers=handlers, orelse=orelse, finalbody=last):
            tried = set(bound)
            yield from _block(body, tried)
            for handler in handlers:
                if handler.type is not None:
                    yield from _read(handler.type, bound)
                yield from _block(handler.body, {*bound, handler.name or ""})
            yield from _block(orelse, tried)
            yield from _block(last, bound)
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            yield from (name for name in _loaded(node) if name not in bound)
            bound.add(node.name)
        case ast.AugAssign(target=target):
            yield from _read(node, bound)
            yield from _stored(target) - bound
        case _:
            yield from _read(node, bound)
            bound |= _stored(node)


def _block(body: Iterable[ast.stmt], bound: set[str]) -> Iterator[str]:
    for node in body:
        yield from _exposed(node, bound)


def _read(node: ast.AST, bound: set[str]) -> Iterator[str]:
    return (name for name in _loaded(node) if name not in bound)


def _loaded(node: ast.AST) -> Iterator[str]:
    """The names that are read in a node, without those of comprehensions' and functions' own."""
    own: set[str] = set()
    if isinstance(node, COMPREHENSIONS):
        own = {name for part in node.generators for name in _stored(part.target)}
    elif isinstance(node, ast.Lambda | ast.FunctionDef | ast.AsyncFunctionDef):
        arguments = node.args
        own = {arg.arg for arg in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}
        own |= {arg.arg for arg in (arguments.vararg, arguments.kwarg) if arg}
        if not isinstance(node, ast.Lambda):
            own |= {name for inner in node.body for name in _stored(inner)}
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
        yield node.id
    for child in ast.iter_child_nodes(node):
        yield from (name for name in _loaded(child) if name not in own)


def _stored(node: ast.AST) -> set[str]:
    """The names that a node binds in its own scope."""
    found: set[str] = set()
    stack = [node]
    while stack:
        current = stack.pop()
        if isinstance(current, DEFINITIONS):
            found.add(current.name)
            continue
        if isinstance(current, (*COMPREHENSIONS, ast.Lambda)):
            continue
        if isinstance(current, ast.Name) and isinstance(current.ctx, ast.Store):
            found.add(current.id)
        elif isinstance(current, ast.alias):
            found.add(current.asname or current.name.split(".")[0])
        stack += ast.iter_child_nodes(current)
    return found


# --- kept files ------------------------------------------------------------------------------------------


# in the place of names: no name has such characters
ANY_READ, ANY_WRITTEN = "<a file that may be read>", "<a file that may be written>"


@dataclass(frozen=True)
class Files:
    """What is read and written, as if files were names.

    Attributes:
        read: Of what a statement depends on.
        written: Of what it changes.
    """

    read: frozenset[str]
    written: frozenset[str]


def files_of(nodes: Iterable[ast.AST]) -> Files:
    """The files that `torch.load` and `torch.save` are given, as far as their names can be read."""
    read: set[str] = set()
    written: set[str] = set()
    for node in (node for outer in nodes for node in ast.walk(outer)):
        match node:
            case ast.Call(func=ast.Attribute(attr="load", value=ast.Name(id="torch")), args=[place, *_]):
                read |= {_name(place), ANY_WRITTEN} if _name(place) else {ANY_READ}
            case ast.Call(func=ast.Attribute(attr="save", value=ast.Name(id="torch")), args=[_, place, *_]):
                written |= {_name(place), ANY_READ} if _name(place) else {ANY_READ, ANY_WRITTEN}
    return Files(frozenset(read), frozenset(written))


def _name(place: ast.expr) -> str:
    """A file by its name; empty where that is not written there."""
    if isinstance(place, ast.Constant) and isinstance(place.value, str):
        return f"<the file {place.value}>"
    return ""
