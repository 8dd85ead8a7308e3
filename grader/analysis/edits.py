"""Text edits by position: pieces of a source are replaced, and every line stays where it is.

Positions are lines and UTF-8 columns, as in `ast`. Its callers decide what is replaced: `joining` and
`script.substitution`.

Tests: tests/analysis/test_joining.py, tests/analysis/script/test_standing_data.py
"""

import ast
from collections.abc import Collection
from dataclasses import dataclass

Position = tuple[int, int]  # line, column in UTF-8 bytes


@dataclass(frozen=True)
class Edit:
    """A piece of a text that is replaced; an empty one is an insertion."""

    start: Position
    end: Position
    text: str


def applied(text: str, first: int, column: int, edits: Collection[Edit]) -> str:
    """A text with some of it replaced, each line where it was.

    Args:
        text: The source of a statement, dedented.
        first: The line of the cell on which it begins.
        column: By how many bytes it was dedented.
        edits: In the order of the source; none overlaps another.
    """
    lines = [line.encode("utf-8") for line in text.split("\n")]
    for edit in sorted(edits, key=lambda one: (one.start, one.end), reverse=True):
        (line, left), (end_line, right) = edit.start, edit.end
        before = lines[line - first][: left - column]
        after = lines[end_line - first][right - column :]
        # as many lines as there were: what follows keeps its number
        made = edit.text.encode("utf-8")
        if end_line > line:
            made = b"(" + made + b"\n" * (end_line - line) + b")"
        lines[line - first : end_line - first + 1] = (before + made + after).split(b"\n")
    return b"\n".join(lines).decode("utf-8")


def instead(node: ast.expr | ast.stmt, text: str) -> Edit:
    """A text in the place of a node."""
    return Edit(start_of(node), end_of(node), text)


def start_of(node: ast.expr | ast.stmt) -> Position:
    """Where a node begins."""
    return node.lineno, node.col_offset


def end_of(node: ast.expr | ast.stmt) -> Position:
    """Where a node ends."""
    return node.end_lineno or node.lineno, node.end_col_offset or 0
