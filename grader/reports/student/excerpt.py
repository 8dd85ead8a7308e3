"""The lines of a student's own file around a place that a message names."""

from collections.abc import Mapping
from dataclasses import dataclass
from textwrap import dedent

from grader.domain.formatting import revealed
from grader.domain.program import lines_of, place_of

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


def excerpt(source: Mapping[str, str] | None, where: str, around: int = 1) -> tuple[CodeLine, ...]:
    """The named line with its neighbors, or nothing when the place is not in the source.

    Args:
        source: File or cell -> text.
        where: `homework.py:41` or `cell 4, line 3`.
        around: Lines before and after.

    Returns:
        `2 * around + 1` lines, fewer when the file is shorter; overlong lines are cut.
    """
    place = place_of(where)
    text = (source or {}).get(place.file) if place else None
    if place is None or text is None:
        return ()
    lines = lines_of(text.rstrip())
    if not 1 <= place.line <= len(lines):
        return ()
    first = max(0, min(place.line - 1 - around, len(lines) - 2 * around - 1))
    chosen = [line.expandtabs(4).rstrip() for line in lines[first : first + 2 * around + 1]]
    shown = dedent("\n".join(chosen)).split("\n")
    return tuple(
        CodeLine(number, revealed(line[:_LONGEST]) + " …" * (len(line) > _LONGEST), number == place.line)
        for number, line in enumerate(shown, start=first + 1)
    )
