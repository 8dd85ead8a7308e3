"""Which file a call reads, by a name that stands in the source.

It follows literals, text constants, `Path(...)` and names of opened files. Where the name is computed the
answer is empty, and the call counts as file access like any other. `effects` decides whether the call reads
at all, and whether the file is there.

Tests: tests/analysis/test_provided_files.py
"""

import ast
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from grader.analysis.folding import string

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
