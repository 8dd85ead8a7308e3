"""Lines of a student's own code: shown around a place, and linked to on the page that shows them all.

It makes the excerpt around a place that a message names, and the addresses of lines and cells on the page
of the submission. If a definition begins at the place, the mistake is somewhere in it, so its body is
shown, without the docstring, which says what was asked for. It never decides which places are named.
"""

import ast
import functools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from textwrap import dedent

from grader.domain.analyzed_program import Place, cell_number, lines_of, place_of
from grader.domain.formatting import revealed
from grader.domain.submission import ANSWERS_FILE
from grader.files.file_names import ANSWERS_PAGE, SUBMISSION_PAGE

_LONGEST = 160


@dataclass(frozen=True)
class CodeLine:
    """One line of an excerpt.

    Attributes:
        number: 1-based, within the file or the cell.
        text: Without the indentation that all lines of the excerpt share.
        marked: Whether it is the line that the message names.
    """

    number: int
    text: str
    marked: bool


def excerpt(
    source: Mapping[str, str] | None, where: str, before: int = 1, after: int = 3, definition: int = 14
) -> tuple[CodeLine, ...]:
    """The named line with its neighbors, or nothing when the place is not in the source.

    More lines follow it than precede it: where several lines are to be changed, the first one is named.

    Args:
        source: File or cell -> text.
        where: `homework.py:41` or `In [4], line 3 (cell 9)`.
        before: Lines before it.
        after: Lines after it.
        definition: Lines of a definition that begins there, without its docstring.

    Returns:
        `before + 1 + after` lines, or fewer when the file is shorter. Of a definition that is named by its
        first line: that line and the beginning of its body. In a cell, the cell's first line precedes them,
        by which it is recognized. Overlong lines are cut.
    """
    place = place_of(where)
    text = (source or {}).get(place.file) if place else None
    if place is None or text is None:
        return ()
    lines = _lines(text)
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
def _lines(text: str) -> Sequence[str]:
    return lines_of(text.rstrip())


@functools.lru_cache(maxsize=16)
def _definitions(text: str) -> dict[int, tuple[range, int]]:
    """First line of a definition -> the lines of its docstring, its last line; empty if it is not Python."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}
    definitions = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            first, end = node.body[0], node.end_lineno or node.lineno
            docstring = range(0)
            if ast.get_docstring(node, clean=False) is not None and len(node.body) > 1:
                docstring = range(first.lineno, (first.end_lineno or first.lineno) + 1)
            if node.lineno not in docstring:
                definitions[node.lineno] = docstring, end
    return definitions


def _of_definition(text: str, line: int, count: int) -> list[int]:
    """The first lines, 0-based, of the definition that begins at a line; empty where none does."""
    docstring, end = _definitions(text).get(line, (range(0), 0))
    shown = [number for number in range(line, end + 1) if number not in docstring]
    return [number - 1 for number in shown[:count]]


# --- code links ------------------------------------------------------------------------------------------


_SCRIPT = "code"  # the id of a script
_BESIDE = "|".join(map(re.escape, (SUBMISSION_PAGE, ANSWERS_PAGE, ANSWERS_FILE)))
_LINK = re.compile(rf'<a href="(?:{_BESIDE})(?:#[a-z0-9-]+)?">(.*?)</a>', re.DOTALL)


@dataclass(frozen=True)
class CodeLinks:
    """The links from a report into the page beside it; there are none without such a page.

    Attributes:
        lines: File or cell -> how many lines of it the page shows, in the page's order.
    """

    lines: Mapping[str, int] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return any(self.lines.values())

    def to(self, where: str) -> str:
        """The address of a place, as `Place` writes it; empty where no such line is shown."""
        place = place_of(where)
        return f"{SUBMISSION_PAGE}#{self.anchor(place)}" if place is not None and self.shows(place) else ""

    def shows(self, place: Place) -> bool:
        """Whether the page has the line."""
        return 1 <= place.line <= self.lines.get(place.file, 0)

    def anchor(self, place: Place) -> str:
        """The id of a line on the page: `line-41`, `cell-9-line-3`; in a second script `code-2-line-41`."""
        cell = self.cell_anchor(place.file)
        return f"line-{place.line}" if cell == _SCRIPT else f"{cell}-line-{place.line}"

    def cell_anchor(self, file: str) -> str:
        """The id of a cell, or of a script as a whole: `cell-9`, `code`, and `code-2` for a second one."""
        number = cell_number(file)
        if number is not None:
            return f"cell-{number}"
        place = self._scripts.get(file, 1)
        return _SCRIPT if place == 1 else f"{_SCRIPT}-{place}"

    @cached_property
    def _scripts(self) -> Mapping[str, int]:
        """Script -> which of the page's scripts it is, from 1."""
        scripts = [file for file in self.lines if cell_number(file) is None]
        return {file: place for place, file in enumerate(scripts, 1)}


def without_links(report: str) -> str:
    """A report that is sent without the pages beside it: its links to them become plain text."""
    return _LINK.sub(r"\1", report)
