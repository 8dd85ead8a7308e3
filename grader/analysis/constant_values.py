"""Constant folding: values of literals and simple expressions, and the files that calls name by them.

Sizes are bounded, and nothing of the program is executed. Its caller decides what a name stands for. What
cannot be read raises `Unknown`, and a file name that is computed is empty: it never guesses. `effects`
decides whether a call reads a file at all, and whether the file is there.

Tests: tests/analysis/test_folding.py, tests/analysis/test_provided_files.py
"""

import ast
import operator
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

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
        Unknown: The expression is more than literals, names and simple work on them, or too large.
    """
    found = _value(node, lookup or _unknown)
    if isinstance(found, str | bytes | list | tuple | dict | set) and len(found) > MOST_LETTERS:
        raise Unknown
    return found


def string(node: ast.expr, names: Mapping[str, str]) -> str | None:
    """The text of an expression, where it is one: `"Multihead" + "Attention"`, a join, a reversed slice.

    Args:
        node: The expression.
        names: Constants of the program that are text; those of classes with a dot before the name.
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
        found = value(node, lookup)
    except Unknown:
        return None
    return found if isinstance(found, str) else None


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
            return _joined("", (_part(part, lookup) for part in parts))
        case ast.Subscript(value=whole, slice=index):
            return _subscript(node, whole, index, lookup)
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


def _joined(glue: str, parts: Iterable[str]) -> str:
    """Texts in one, as far as that stays short."""
    pieces, letters = [], 0
    for part in parts:
        letters += len(part) + len(glue)
        if letters > MOST_LETTERS + len(glue):
            raise Unknown
        pieces.append(part)
    return glue.join(pieces)


def _part(node: ast.expr, lookup: Lookup) -> str:
    if isinstance(node, ast.FormattedValue):
        if node.format_spec is not None:
            raise Unknown
        found = _value(node.value, lookup)
        if isinstance(found, str | int | float):
            return str(found)[:MOST_LETTERS]
        raise Unknown
    return str(_value(node, lookup))


def _subscript(node: ast.expr, whole: ast.expr, index: ast.expr, lookup: Lookup) -> Any:
    try:
        collection = _value(whole, lookup)
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
        case ast.Call(func=ast.Name(id="reversed"), args=[whole], keywords=[]):
            return _guarded(lambda: list(reversed(_value(whole, lookup))))
        case ast.Call(func=ast.Name(id="chr"), args=[number], keywords=[]):
            return _guarded(lambda: chr(_value(number, lookup)))
        case ast.Call(func=ast.Name(id="str" | "int" | "float"), args=[inner], keywords=[]):
            kind = {"str": str, "int": int, "float": float}[node.func.id]  # type: ignore[attr-defined]
            return _guarded(lambda: kind(_value(inner, lookup)))
        case ast.Call(func=ast.Attribute(value=ast.Constant(value=str() as glue), attr="join"), args=[whole]):
            parts = _value(whole, lookup)
            if not isinstance(parts, list | tuple | str):
                raise Unknown
            return _guarded(lambda: _joined(glue, parts))
        case ast.Call(func=ast.Attribute(value=whole, attr=method), keywords=[]) if method in STRING_METHODS:
            text = _value(whole, lookup)
            args = _items(node.args, lookup)
            # each may make a text a hundred times as long, and there may be many in a row
            if not isinstance(text, str) or len(text) > MOST_LETTERS or sum(len(str(a)) for a in args) > 100:
                raise Unknown
            return _guarded(lambda: getattr(text, method)(*args))
        case _:
            return lookup(node)


# --- file reads ------------------------------------------------------------------------------------------


_PATH = "Path"
_FROM_HUB = frozenset({"hf_hub_download", "snapshot_download"})  # the paths of what lies in a cache
_OF_PATHS = frozenset({"read_text", "read_bytes"})
_OPENING = "open"
_READING = frozenset("rbt")  # what a mode of `open` may hold that changes no file
_KEYWORDS = frozenset(
    {"file", "f", "filename", "filepath", "filepath_or_buffer", "fp", "path", "fname", "url", "repo_id"}
)

Names = Mapping[str, str]


def read_file(call: ast.Call, strings: Names, handles: Names) -> str:
    """The file that a call is given to read, by its name or URL in the source; empty where none is named.

    Whether what is called reads at all is another matter: the name alone is told.

    Args:
        call: `open("corpus.txt")`, `torch.load("tiny.pth")`, `Path("corpus.txt").read_text()`.
        strings: Text constants of the program, by name.
        handles: Names of what was opened or read -> the file: see `handles_in`.
    """
    function = call.func
    last = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    if last in _OF_PATHS and isinstance(function, ast.Attribute):
        return _named(function.value, strings, handles)
    if last == _OPENING and not _only_reads(call):
        return ""
    # the name of a file of the hub says nothing without the repository
    named = sorted(
        (keyword for keyword in call.keywords if keyword.arg in _KEYWORDS),
        key=lambda keyword: keyword.arg != "repo_id",
    )
    given = [*call.args[:1], *(keyword.value for keyword in named)]
    return _named(given[0], strings, handles) if given else ""


def handles_in(node: ast.AST, strings: Names) -> dict[str, str]:
    """Names that stand for an opened file, or for what was read of one: `with open("a.json") as file`."""
    found: dict[str, str] = {}
    for name, value in _bound(node):
        if isinstance(value, ast.Call) and (file := read_file(value, strings, {})):
            found[name] = file if found.get(name, file) == file else ""
    return {name: file for name, file in found.items() if file}


def paths_in_cache(statements: Sequence[ast.stmt], strings: Names) -> dict[str, str]:
    """Top-level names for the path of a file of the hub, as in `path = hf_hub_download("a/b", "c")`.

    Returns:
        The name -> the repository. Names that are bound more than once are left out.
    """
    found: dict[str, str] = {}
    for node in statements:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(func=function) as call):
                last = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
                if last in _FROM_HUB:
                    found[name] = "" if name in found else read_file(call, strings, {})
    bound = Counter(
        inner.id
        for node in statements
        for inner in ast.walk(node)
        if isinstance(inner, ast.Name) and not isinstance(inner.ctx, ast.Load)
    )
    return {name: repository for name, repository in found.items() if repository and bound[name] == 1}


def _bound(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    for inner in ast.walk(node):
        match inner:
            case ast.withitem(context_expr=value, optional_vars=ast.Name(id=name)):
                yield name, value
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                yield name, value


def _named(node: ast.expr, strings: Names, handles: Names) -> str:
    """The file that an expression names, or has read."""
    text = string(node, strings)
    if text is not None:
        return text.removeprefix("./")
    if isinstance(node, ast.Name):
        return handles.get(node.id, "")
    if isinstance(node, ast.Call):
        last = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if last == _PATH:
            return _named(node.args[0], strings, handles) if len(node.args) == 1 else ""
        return read_file(node, strings, handles)
    return ""


def _only_reads(call: ast.Call) -> bool:
    modes = [*call.args[1:2], *(keyword.value for keyword in call.keywords if keyword.arg == "mode")]
    return all(
        isinstance(mode, ast.Constant) and isinstance(mode.value, str) and set(mode.value) <= _READING
        for mode in modes
    )
