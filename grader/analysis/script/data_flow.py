"""Data flow of single statements: names read and bound, and files saved and loaded.

A name that only some branches of an `if` or a `match` bind counts as not bound. Files are recognized by
`torch.save` and `torch.load` with literal names; any other name may be any file. So both err toward
dependence; other ways to keep weights are not seen. `dependence` decides what belongs to the script.

Tests: tests/analysis/script/test_data_flow.py, tests/training/test_replay.py
"""

import ast
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from grader.analysis.syntax_trees import COMPREHENSIONS, DEFINITIONS, all_parameters, children, walk


def exposed(node: ast.stmt) -> frozenset[str]:
    """The names that a statement reads before it binds them, including those of builtins and functions."""
    return frozenset(_exposed(node, set()))


def _exposed(node: ast.stmt, bound: set[str]) -> Iterator[str]:
    """The names that are read first; what the statement certainly binds is added to `bound`."""
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
            in_body, in_else = set(bound), set(bound)
            yield from _block(body, in_body)
            yield from _block(orelse, in_else)
            bound |= in_body & in_else
        case ast.Match(subject=subject, cases=cases):
            yield from _read(subject, bound)
            yield from _cases(cases, bound)
        case ast.With(items=items, body=body):
            for item in items:
                yield from _read(item.context_expr, bound)
                bound |= _stored(item.optional_vars) if item.optional_vars else set()
            yield from _block(body, bound)
        case ast.Try(body=body, handlers=handlers, orelse=orelse, finalbody=final_body):
            tried = set(bound)
            yield from _block(body, tried)
            for handler in handlers:
                if handler.type is not None:
                    yield from _read(handler.type, bound)
                yield from _block(handler.body, {*bound, handler.name or ""})
            yield from _block(orelse, tried)
            yield from _block(final_body, bound)
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            yield from (name for name in _loaded(node) if name not in bound)
            bound.add(node.name)
        case ast.AugAssign(target=target):
            yield from _read(node, bound)
            yield from _stored(target) - bound
        case _:
            yield from _read(node, bound)
            bound |= _stored(node)


def _cases(cases: Sequence[ast.match_case], bound: set[str]) -> Iterator[str]:
    """The names read first in the cases of a `match`; what all of them bind is added to `bound`."""
    # if no case is certain to match, it may be that none is executed
    certain = any(case.guard is None and _matches_anything(case.pattern) for case in cases)
    ends = [] if certain else [set(bound)]
    for case in cases:
        yield from _read(case.pattern, bound)
        inner = bound | _captured(case.pattern)
        if case.guard is not None:
            yield from _read(case.guard, inner)
        yield from _block(case.body, inner)
        ends.append(inner)
    bound |= set.intersection(*ends)


def _matches_anything(pattern: ast.pattern) -> bool:
    match pattern:
        case ast.MatchAs(pattern=inner):
            return inner is None or _matches_anything(inner)
        case ast.MatchOr(patterns=patterns):
            return any(map(_matches_anything, patterns))
        case _:
            return False


def _captured(pattern: ast.pattern) -> set[str]:
    """The names that a pattern binds if it matches."""
    captured: set[str] = set()
    for node in walk(pattern):
        match node:
            case (
                ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)) | ast.MatchMapping(rest=str(name))
            ):
                captured.add(name)
    return captured


def _block(body: Iterable[ast.stmt], bound: set[str]) -> Iterator[str]:
    for node in body:
        yield from _exposed(node, bound)


def _read(node: ast.AST, bound: set[str]) -> Iterator[str]:
    return (name for name in _loaded(node) if name not in bound)


def _loaded(node: ast.AST) -> Iterator[str]:
    """The names that are read in a node, except the local names of comprehensions and functions."""
    local_names: set[str] = set()
    if isinstance(node, COMPREHENSIONS):
        local_names = {name for part in node.generators for name in _stored(part.target)}
    elif isinstance(node, ast.Lambda | ast.FunctionDef | ast.AsyncFunctionDef):
        local_names = {parameter.arg for parameter in all_parameters(node.args)}
        if not isinstance(node, ast.Lambda):
            local_names |= {name for inner in node.body for name in _stored(inner)}
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
        yield node.id
    for child in children(node):
        yield from (name for name in _loaded(child) if name not in local_names)


def _stored(node: ast.AST) -> set[str]:
    """The names that a node binds in its own scope."""
    stored: set[str] = set()
    stack = [node]
    while stack:
        current = stack.pop()
        if isinstance(current, DEFINITIONS):
            stored.add(current.name)
            continue
        if isinstance(current, (*COMPREHENSIONS, ast.Lambda)):
            continue
        if isinstance(current, ast.Name) and isinstance(current.ctx, ast.Store):
            stored.add(current.id)
        elif isinstance(current, ast.alias):
            stored.add(current.asname or current.name.split(".")[0])
        stack += children(current)
    return stored


# --- kept files ------------------------------------------------------------------------------------------


# a load whose file is unknown depends on every save, and a save whose file is unknown feeds every load; these
# markers are used like names, and no name has such characters
READ_BY_UNKNOWN_LOAD = "<a file that may be read>"
WRITTEN_BY_UNKNOWN_SAVE = "<a file that may be written>"


@dataclass(frozen=True)
class Files:
    """The files that a statement reads and writes, as if files were names.

    Attributes:
        read: The files that it depends on.
        written: The files that it changes.
    """

    read: frozenset[str]
    written: frozenset[str]


def files_of(nodes: Iterable[ast.AST]) -> Files:
    """The files that `torch.load` and `torch.save` are given, as far as their names can be read.

    A load reads its file and WRITTEN_BY_UNKNOWN_SAVE; a save writes its file and READ_BY_UNKNOWN_LOAD. If the
    name cannot be read, a load reads READ_BY_UNKNOWN_LOAD, and a save writes both markers.
    """
    read_files: set[str] = set()
    written_files: set[str] = set()
    for node in (node for outer in nodes for node in walk(outer)):
        match node:
            case ast.Call(func=ast.Attribute(attr="load", value=ast.Name(id="torch"))):
                file = _file_token(node, 0)
                read_files |= {file, WRITTEN_BY_UNKNOWN_SAVE} if file else {READ_BY_UNKNOWN_LOAD}
            case ast.Call(func=ast.Attribute(attr="save", value=ast.Name(id="torch"))):
                written_files |= {_file_token(node, 1) or WRITTEN_BY_UNKNOWN_SAVE, READ_BY_UNKNOWN_LOAD}
    return Files(frozenset(read_files), frozenset(written_files))


def _file_token(call: ast.Call, position: int) -> str:
    """The marker of the file that a call is given, by its name; empty if the name is not a literal.

    Args:
        position: Where the file stands, if it is not given by its keyword, `f`.
    """
    places = [keyword.value for keyword in call.keywords if keyword.arg == "f"]
    if not places and not any(isinstance(argument, ast.Starred) for argument in call.args[: position + 1]):
        places = call.args[position : position + 1]
    for place in places:
        if isinstance(place, ast.Constant) and isinstance(place.value, str):
            return f"<the file {place.value}>"
    return ""


def names_read(nodes: Iterable[ast.AST], filled: Callable[[ast.Call], Collection[str]]) -> frozenset[str]:
    """The names whose values are used for more than being added to.

    Args:
        filled: The names among a call's arguments that the called function only adds to.
    """
    added: set[int] = set()
    loaded: list[ast.Name] = []
    for node in (node for outer in nodes for node in walk(outer)):
        match node:
            case ast.Expr(value=ast.Call(func=ast.Attribute(attr="append" | "extend", value=container))):
                while isinstance(container, ast.Subscript):
                    container = container.value
                added.add(id(container))
            case ast.Name() if not isinstance(node.ctx, ast.Store):
                loaded.append(node)
            case ast.Call():
                names = filled(node)
                for argument in (*node.args, *(keyword.value for keyword in node.keywords)):
                    if isinstance(argument, ast.Name) and argument.id in names:
                        added.add(id(argument))
    return frozenset(name.id for name in loaded if id(name) not in added)


def is_plain_binding(node: ast.stmt) -> bool:
    """Whether a statement replaces the earlier value of what it binds."""
    return isinstance(node, ast.Assign | ast.AnnAssign) and all(
        isinstance(target, ast.Name | ast.Tuple | ast.List)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
    )
