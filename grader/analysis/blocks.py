"""Blocks of compound statements, and their text with some inner statements replaced, line by line.

It computes the blocks and leaves of `if`, `try`, `with` and loops, and replaces leaves in the source text.
Line numbers do not change. Its caller decides which leaves are taken out: for loading that is `slicing`.

Tests: tests/analysis/test_loading_statements.py
"""

import ast
from collections.abc import Callable, Iterator, Sequence

from grader.analysis.units import DEFINITIONS, IMPORTS, assigned

HARMLESS = (ast.Pass, ast.Global, ast.Raise)
LOOPS = (ast.For, ast.AsyncFor, ast.While)


def blocks(node: ast.stmt) -> list[list[ast.stmt]]:
    """The blocks of a compound statement; none of a simple one or a definition."""
    match node:
        case ast.If() | ast.For() | ast.AsyncFor() | ast.While():
            return [node.body, node.orelse]
        case ast.With() | ast.AsyncWith():
            return [node.body]
        case ast.Try() | ast.TryStar():
            return [node.body, *(handler.body for handler in node.handlers), node.orelse, node.finalbody]
    return []


def leaves(node: ast.stmt, *, loops: bool = False) -> Iterator[ast.stmt]:
    """The simple statements and definitions in an `if` or `try`, through further ones within it.

    Args:
        loops: Open loops and `with` as well.
    """
    opened = blocks(node) if loops or isinstance(node, ast.If | ast.Try | ast.TryStar) else []
    if not opened:
        yield node
    for block in opened:
        for inner in block:
            yield from leaves(inner, loops=loops)


def is_kept_leaf(node: ast.stmt) -> bool:
    """Whether a leaf binds something without doing more: an import, a definition, an assignment."""
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
        changes: (statement, what stands there instead), in the order of the source.
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
