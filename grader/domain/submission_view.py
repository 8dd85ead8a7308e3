"""What a person sees of a handed-in file: its code by lines, and what stands between the code.

It is made of untrusted bytes in a parser. Whoever shows it takes nothing in it for safe.
"""

from dataclasses import dataclass
from enum import StrEnum

CodeLine = tuple[tuple[str, str], ...]
"""A line as pieces of (what it is, text); the texts joined are the line."""


def plain_lines(text: str) -> tuple[CodeLine, ...]:
    """The lines of a text, of which nobody knows what their pieces are."""
    return tuple((("", line),) if line else () for line in text.split("\n"))


def text_of(lines: tuple[CodeLine, ...]) -> str:
    """The text that lines show."""
    return "\n".join("".join(text for _, text in line) for line in lines)


class CellKind(StrEnum):
    """What a cell is."""

    CODE = "code"
    TEXT = "text"  # Markdown: it is shown by its `html`
    RAW = "raw"  # neither: it is shown as it stands


@dataclass(frozen=True)
class ViewCell:
    """A cell, or a whole script.

    Attributes:
        file: `homework.py` or `In [4], cell 9`, as in `Place`.
        lines: Of code and of what is neither code nor text.
        html: The text, or what the code printed and drew; hostile until it is cleaned.
    """

    file: str
    kind: CellKind
    lines: tuple[CodeLine, ...] = ()
    html: str = ""


@dataclass(frozen=True)
class View:
    """A handed-in file.

    Attributes:
        file: Its name.
        cells: In order; one for a script.
        cuts: Sentences: what of it is not shown.
    """

    file: str
    cells: tuple[ViewCell, ...] = ()
    cuts: tuple[str, ...] = ()
