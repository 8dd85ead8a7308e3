"""Compound statements (`if`, `try`) with what must not be executed taken out of them."""

import ast
from collections.abc import Callable, Iterator

from grader.analysis.units import DEFINITIONS, IMPORTS, assigned

HARMLESS = (ast.Pass, ast.Global, ast.Raise)


def leaves(node: ast.stmt) -> Iterator[ast.stmt]:
    """The simple statements and definitions in an `if` or `try`, through further ones within it."""
    if isinstance(node, ast.If):
        blocks = [node.body, node.orelse]
    elif isinstance(node, ast.Try | ast.TryStar):
        blocks = [node.body, *(handler.body for handler in node.handlers), node.orelse, node.finalbody]
    else:
        yield node
        return
    for block in blocks:
        for inner in block:
            yield from leaves(inner)


def is_kept_leaf(node: ast.stmt) -> bool:
    """Whether a leaf binds something without doing more: an import, a definition, an assignment."""
    return isinstance(node, (*DEFINITIONS, *IMPORTS)) or assigned(node) is not None


def without(
    node: ast.stmt, text: str, first: int, is_out: Callable[[ast.stmt], bool]
) -> tuple[str, list[ast.stmt]]:
    """The text of a compound statement with some leaves replaced by `pass`, on the same lines.

    Args:
        node: The statement; it begins in the first column of `text`.
        text: Its source.
        first: The line of the cell on which `text` begins.
        is_out: Whether a leaf is taken out.

    Returns:
        (text, the leaves taken out).
    """
    lines = text.split("\n")
    out = [leaf for leaf in leaves(node) if not isinstance(leaf, HARMLESS) and is_out(leaf)]
    for leaf in reversed(out):
        start, end = leaf.lineno - first, (leaf.end_lineno or leaf.lineno) - first
        head = lines[start].encode("utf-8")[: leaf.col_offset].decode("utf-8", "replace")
        tail = lines[end].encode("utf-8")[leaf.end_col_offset :].decode("utf-8", "replace")
        lines[start] = head + "pass" + (tail if start == end else "")
        for index in range(start + 1, end + 1):
            lines[index] = ""
        if start != end and tail.strip().startswith(";"):
            lines[start] += tail
    return "\n".join(lines), out
