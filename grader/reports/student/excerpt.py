"""The lines of a student's own file around a place that a message names."""

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
    source: Mapping[str, str] | None, where: str, before: int = 1, after: int = 3
) -> tuple[CodeLine, ...]:
    """The named line with its neighbors, or nothing when the place is not in the source.

    More of them follow: where several lines close by are to be changed, the first is named.

    Args:
        source: File or cell -> text.
        where: `homework.py:41` or `In [4], line 3 (cell 9)`.
        before: Lines before it.
        after: Lines after it.

    Returns:
        `before + 1 + after` lines, fewer when the file is shorter; of a cell also its first line before them,
        by which it is known whatever it is called. Overlong lines are cut.
    """
    place = place_of(where)
    text = (source or {}).get(place.file) if place else None
    if place is None or text is None:
        return ()
    lines = lines_of(text.rstrip())
    if not 1 <= place.line <= len(lines):
        return ()
    count = before + 1 + after
    first = max(0, min(place.line - 1 - before, len(lines) - count))
    numbers = list(range(first, min(first + count, len(lines))))
    if cell_number(place.file) is not None:
        begin = next((number for number, line in enumerate(lines) if line.strip()), first)
        numbers = [begin] * (begin < first) + numbers
    shown = dedent("\n".join(lines[number].expandtabs(4).rstrip() for number in numbers)).split("\n")
    return tuple(
        CodeLine(
            number + 1, revealed(line[:_LONGEST]) + " …" * (len(line) > _LONGEST), number + 1 == place.line
        )
        for number, line in zip(numbers, shown, strict=True)
    )
