"""The lines of a student's own file around a place that a message names.

Where the place is where a definition begins, the mistake is somewhere in it: its body is shown, without the
docstring, which says what was asked for.
"""

import ast
import functools
from collections.abc import Mapping
from dataclasses import dataclass
from textwrap import dedent

from grader.domain.formatting import revealed
from grader.domain.program import cell_number, lines_of, place_of

_LONGEST = 160


@dataclass(frozen=True)
class CodeLine:
    """One line of an excerpt.

    Attributes:
        number: 1-based, within the file or the cell.
        text: Without the indentation that all lines of the excerpt share.
        marked: It is the line that the message names.
    """

    number: int
    text: str
    marked: bool


def excerpt(
    source: Mapping[str, str] | None, where: str, before: int = 1, after: int = 3, definition: int = 14
) -> tuple[CodeLine, ...]:
    """The named line with its neighbors, or nothing when the place is not in the source.

    More of them follow: where several lines close by are to be changed, the first is named.

    Args:
        source: File or cell -> text.
        where: `homework.py:41` or `In [4], line 3 (cell 9)`.
        before: Lines before it.
        after: Lines after it.
        definition: Lines of a definition that begins there, without its docstring.

    Returns:
        `before + 1 + after` lines, fewer when the file is shorter; of a definition that is named by its first
        line, that and the beginning of its body; of a cell also its first line before them, by which it is
        known whatever it is called. Overlong lines are cut.
    """
    place = place_of(where)
    text = (source or {}).get(place.file) if place else None
    if place is None or text is None:
        return ()
    lines = lines_of(text.rstrip())
    if not 1 <= place.line <= len(lines):
        return ()
    numbers = _of_definition(text, place.line, definition)
    if not numbers:
        count = before + 1 + after
        first = max(0, min(place.line - 1 - before, len(lines) - count))
        numbers = list(range(first, min(first + count, len(lines))))
    if cell_number(place.file) is not None:
        begin = next((number for number, line in enumerate(lines) if line.strip()), numbers[0])
        numbers = [begin] * (begin < numbers[0]) + numbers
    shown = dedent("\n".join(lines[number].expandtabs(4).rstrip() for number in numbers)).split("\n")
    return tuple(
        CodeLine(
            number + 1, revealed(line[:_LONGEST]) + " …" * (len(line) > _LONGEST), number + 1 == place.line
        )
        for number, line in zip(numbers, shown, strict=True)
    )


@functools.lru_cache(maxsize=16)
def _definitions(text: str) -> dict[int, tuple[range, int]]:
    """First line of a definition -> the lines of its docstring, its last line; none of what is not Python."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            first, end = node.body[0], node.end_lineno or node.lineno
            docstring = range(0)
            if ast.get_docstring(node, clean=False) is not None and len(node.body) > 1:
                docstring = range(first.lineno, (first.end_lineno or first.lineno) + 1)
            if node.lineno not in docstring:
                found[node.lineno] = docstring, end
    return found


def _of_definition(text: str, line: int, count: int) -> list[int]:
    """The first lines, 0-based, of the definition that begins in a line; none where none does."""
    docstring, end = _definitions(text).get(line, (range(0), 0))
    shown = [number for number in range(line, end + 1) if number not in docstring]
    return [number - 1 for number in shown[:count]]
