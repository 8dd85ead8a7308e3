"""Constant folding: values of literals and simple expressions, and the files that calls name by them.

Sizes are bounded, and no part of the program is executed. The caller decides what a name stands for. What
cannot be read raises `Unknown`, and a file name that is computed is empty: this module never guesses.
`effects` decides whether a call reads a file at all, and whether the file is there.

Tests: tests/analysis/test_folding.py, tests/analysis/test_provided_files.py
"""

import ast
import operator
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from grader.analysis.syntax_trees import walk
from grader.domain.errors import Interruption

MOST_LETTERS = 10_000
MOST_ITEMS = 10_000
LARGEST = 10**12

OPERATORS: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
STRING_METHODS = {"lower", "upper", "strip", "replace", "title", "capitalize", "removeprefix", "removesuffix"}


class Unknown(Interruption):
    """The value cannot be read off the source."""


Lookup = Callable[[ast.expr], Any]


def value(node: ast.expr, lookup: Lookup | None = None) -> Any:
    """The value of an expression.

    Args:
        node: The expression.
        lookup: The value of a name, an attribute or another expression that is not a literal; it raises
            `Unknown` for what it does not know.

    Raises:
        Unknown: The expression is more than literals, names and simple operations on them, or too large.
    """
    result = _value(node, lookup or _unknown)
    if isinstance(result, str | bytes | list | tuple | dict | set) and len(result) > MOST_LETTERS:
        raise Unknown
    return result


def string(node: ast.expr, names: Mapping[str, str]) -> str | None:
    """The text of an expression, if it is one: `"Multihead" + "Attention"`, a join, a reversed slice.

    Args:
        node: The expression.
        names: The program's text constants; those of classes have a dot before the name.
    """

    def lookup(inner: ast.expr) -> Any:
        if isinstance(inner, ast.Name) and inner.id in names:
            return names[inner.id]
        if (
            isinstance(inner, ast.Attribute)
            and isinstance(inner.value, ast.Name)
            and f".{inner.attr}" in names
        ):
            return names[f".{inner.attr}"]
        raise Unknown

    try:
        text = value(node, lookup)
    except Unknown:
        return None
    return text if isinstance(text, str) else None


def _unknown(node: ast.expr) -> Any:
    raise Unknown


def _value(node: ast.expr, lookup: Lookup) -> Any:
    match node:
        case ast.Constant():
            return node.value
        case ast.Tuple(elts=items):
            return tuple(_items(items, lookup))
        case ast.List(elts=items):
            return _items(items, lookup)
        case ast.Dict(keys=keys, values=values) if all(keys):
            names = _items([key for key in keys if key is not None], lookup)
            return _guarded(lambda: dict(zip(names, _items(values, lookup), strict=True)))
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return _number(-_number(_value(operand, lookup)))
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return not _value(operand, lookup)
        case ast.BinOp():
            return _binary(node, lookup)
        case ast.JoinedStr(values=parts):
            return _bounded_join("", (_text_of_part(part, lookup) for part in parts))
        case ast.Subscript(value=collection, slice=index):
            return _subscript(node, collection, index, lookup)
        case ast.Call():
            return _call(node, lookup)
        case ast.Compare(left=left, ops=[ast.Eq()], comparators=[right]):
            return bool(_value(left, lookup) == _value(right, lookup))
        case ast.IfExp(test=test, body=body, orelse=orelse):
            return _value(body if _value(test, lookup) else orelse, lookup)
        case _:
            return lookup(node)


def _items(nodes: list[ast.expr], lookup: Lookup) -> list[Any]:
    if len(nodes) > MOST_ITEMS:
        raise Unknown
    return [_value(node, lookup) for node in nodes]


def _guarded(compute: Callable[[], Any]) -> Any:
    try:
        return compute()
    except (TypeError, ValueError, KeyError, IndexError, ArithmeticError, AttributeError) as error:
        raise Unknown from error


def _number(number: Any) -> Any:
    if isinstance(number, bool | int | float) and abs(number) <= LARGEST:
        return number
    raise Unknown


def _binary(node: ast.BinOp, lookup: Lookup) -> Any:
    left, right = _value(node.left, lookup), _value(node.right, lookup)
    if isinstance(node.op, ast.Pow):
        _number(left), _number(right)
        if abs(right) > 64:
            raise Unknown
        return _number(_guarded(lambda: left**right))
    compute = OPERATORS.get(type(node.op))
    if compute is None:
        raise Unknown
    if isinstance(left, str) and isinstance(right, str) and isinstance(node.op, ast.Add):
        if len(left) + len(right) > MOST_LETTERS:
            raise Unknown
        return left + right
    return _number(_guarded(lambda: compute(_number(left), _number(right))))


def _bounded_join(glue: str, parts: Iterable[str]) -> str:
    """The texts joined, if the result stays short."""
    pieces, letters = [], 0
    for part in parts:
        letters += len(part) + len(glue)
        if letters > MOST_LETTERS + len(glue):
            raise Unknown
        pieces.append(part)
    return glue.join(pieces)


def _text_of_part(node: ast.expr, lookup: Lookup) -> str:
    if isinstance(node, ast.FormattedValue):
        if node.format_spec is not None or node.conversion not in (-1, ord("s")):
            raise Unknown
        inner_value = _value(node.value, lookup)
        if isinstance(inner_value, str | int | float):
            return str(inner_value)[:MOST_LETTERS]
        raise Unknown
    return str(_value(node, lookup))


def _subscript(node: ast.expr, collection_node: ast.expr, index: ast.expr, lookup: Lookup) -> Any:
    try:
        collection = _value(collection_node, lookup)
    except Unknown:
        return lookup(node)
    if isinstance(index, ast.Slice):
        parts = (index.lower, index.upper, index.step)
        bounds = [None if part is None else _value(part, lookup) for part in parts]
        return _guarded(lambda: collection[slice(*bounds)])
    key = _value(index, lookup)
    return _guarded(lambda: collection[key])


def _call(node: ast.Call, lookup: Lookup) -> Any:
    """`"".join(...)`, `dict(a=1)` and a few methods of text."""
    match node:
        case ast.Call(func=ast.Name(id="dict"), args=[], keywords=keywords) if all(k.arg for k in keywords):
            return {k.arg: _value(k.value, lookup) for k in keywords}
        case ast.Call(func=ast.Name(id="reversed"), args=[iterable], keywords=[]):
            return _guarded(lambda: list(reversed(_value(iterable, lookup))))
        case ast.Call(func=ast.Name(id="chr"), args=[number], keywords=[]):
            return _guarded(lambda: chr(_value(number, lookup)))
        case ast.Call(func=ast.Name(id="str" | "int" | "float"), args=[inner], keywords=[]):
            kind = {"str": str, "int": int, "float": float}[node.func.id]  # type: ignore[attr-defined]
            return _guarded(lambda: kind(_value(inner, lookup)))
        case ast.Call(
            func=ast.Attribute(value=ast.Constant(value=str() as glue), attr="join"), args=[iterable]
        ):
            parts = _value(iterable, lookup)
            if not isinstance(parts, list | tuple | str):
                raise Unknown
            return _guarded(lambda: _bounded_join(glue, parts))
        case ast.Call(func=ast.Attribute(value=iterable, attr=method), keywords=[]) if (
            method in STRING_METHODS
        ):
            text = _value(iterable, lookup)
            args = _items(node.args, lookup)
            # each method may make a text a hundred times as long, and there may be many in a row
            if not isinstance(text, str) or len(text) > MOST_LETTERS or sum(len(str(a)) for a in args) > 100:
                raise Unknown
            return _guarded(lambda: getattr(text, method)(*args))
        case _:
            return lookup(node)


# --- file reads ------------------------------------------------------------------------------------------


_PATH = "Path"
_FROM_HUB = frozenset({"hf_hub_download", "snapshot_download"})  # they return paths in a cache
_OF_PATHS = frozenset({"read_text", "read_bytes"})
_OPENING = "open"
_READING = frozenset("rbt")  # letters of a mode of `open` that change no file
_KEYWORDS = frozenset(
    {"file", "f", "filename", "filepath", "filepath_or_buffer", "fp", "path", "fname", "url", "repo_id"}
)

Names = Mapping[str, str]


def called_name(function: ast.expr) -> str:
    """The last name of what is called: `argmax` of `np.argmax`; empty if it has none."""
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def read_file(call: ast.Call, strings: Names, handles: Names) -> str:
    """The file that a call is given to read, by its name or URL in the source; empty if none is named.

    Only the name is returned: whether the called function reads at all is not decided here.

    Args:
        call: `open("corpus.txt")`, `torch.load("tiny.pth")`, `Path("corpus.txt").read_text()`.
        strings: Text constants of the program, by name.
        handles: Names of what was opened or read -> the file: see `handles_in`.
    """
    function = call.func
    called = called_name(function)
    if called in _OF_PATHS and isinstance(function, ast.Attribute):
        return _file_of(function.value, strings, handles)
    if called == _OPENING and not _only_reads(call):
        return ""
    # the name of a file on the hub says nothing without the repository
    by_keyword = sorted(
        (keyword for keyword in call.keywords if keyword.arg in _KEYWORDS),
        key=lambda keyword: keyword.arg != "repo_id",
    )
    candidates = [*call.args[:1], *(keyword.value for keyword in by_keyword)]
    return _file_of(candidates[0], strings, handles) if candidates else ""


def handles_in(node: ast.AST, strings: Names) -> dict[str, str]:
    """Names that stand for an opened file, or for what was read from it: `with open("a.json") as file`."""
    files_by_name: dict[str, str] = {}
    for name, value in _assigned_values(node):
        if isinstance(value, ast.Call) and (file := read_file(value, strings, {})):
            files_by_name[name] = file if files_by_name.get(name, file) == file else ""
    return {name: file for name, file in files_by_name.items() if file}


def paths_in_cache(statements: Sequence[ast.stmt], strings: Names) -> dict[str, str]:
    """Top-level names for the path of a file from the hub, as in `path = hf_hub_download("a/b", "c")`.

    Returns:
        The name -> the repository. Names that are bound more than once are left out.
    """
    repositories: dict[str, str] = {}
    for node in statements:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(func=function) as call):
                if called_name(function) in _FROM_HUB:
                    repositories[name] = "" if name in repositories else read_file(call, strings, {})
    bound = Counter(
        inner.id
        for node in statements
        for inner in walk(node)
        if isinstance(inner, ast.Name) and not isinstance(inner.ctx, ast.Load)
    )
    return {name: repository for name, repository in repositories.items() if repository and bound[name] == 1}


def _assigned_values(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    for inner in walk(node):
        match inner:
            case ast.withitem(context_expr=value, optional_vars=ast.Name(id=name)):
                yield name, value
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                yield name, value


def _file_of(node: ast.expr, strings: Names, handles: Names) -> str:
    """The file that an expression names, or that it was read from."""
    text = string(node, strings)
    if text is not None:
        return text.removeprefix("./")
    if isinstance(node, ast.Name):
        return handles.get(node.id, "")
    if isinstance(node, ast.Call):
        if called_name(node.func) == _PATH:
            return _file_of(node.args[0], strings, handles) if len(node.args) == 1 else ""
        return read_file(node, strings, handles)
    return ""


def _only_reads(call: ast.Call) -> bool:
    modes = [*call.args[1:2], *(keyword.value for keyword in call.keywords if keyword.arg == "mode")]
    return all(
        isinstance(mode, ast.Constant) and isinstance(mode.value, str) and set(mode.value) <= _READING
        for mode in modes
    )
