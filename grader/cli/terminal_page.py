"""Text on a terminal, marked, indented and wrapped; in a file or a pipe, plain lines.

It holds the console that all commands print on, and the page: headings, items, pairs, code and verdicts.
It decides about widths, marks, and characters that a terminal lacks. It never decides what is said.
"""

import os
import re
import sys
from collections.abc import Sequence
from typing import IO, Any

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from grader.domain.formatting import SPACE, clipped, printable, revealed
from grader.reports.student.code_lines import CodeLine

KERNEL = "JPY_PARENT_PID"  # the variable that a Jupyter kernel passes to the processes it starts
FILE_WIDTH = 200  # columns of a table that does not go to a terminal


def console(**options: Any) -> Console:
    """A console; outside a terminal, lines are not wrapped, and tables are wide unless $COLUMNS is set.

    Args:
        options: The options of rich's console.
    """
    made = Console(**options)
    if not made.is_terminal:
        made.soft_wrap = True
        if not os.environ.get("COLUMNS"):
            made.width = FILE_WIDTH
    return made


# --- page ------------------------------------------------------------------------------------------------


LONGEST = 600
WIDEST = 100


class Page:
    """The output of a command for a person.

    Attributes:
        console: The terminal or the file.
    """

    def __init__(self, file: IO[str] | None = None, *, terminal: bool | None = None) -> None:
        """Begin an empty page.

        Args:
            terminal: Whether the file is a terminal; None: the file or the environment says.
        """
        self.console = console(
            file=file or sys.stdout, highlight=False, markup=False, emoji=False, force_terminal=terminal
        )
        if self.console.is_terminal:
            self.console.width = min(self.console.width, WIDEST)
        encoding = getattr(self.console.file, "encoding", None) or "utf-8"
        self._plain_marks = not _encodable("✓✗–·", encoding)

    @property
    def live(self) -> bool:
        """Whether somebody watches. A notebook's `!command` looks like a terminal, but keeps every frame."""
        return self.console.is_terminal and KERNEL not in os.environ

    def mark(self, kind: str) -> Text:
        """`passed`, `failed`, `skipped` or `note` as one character."""
        shapes = {"passed": ("✓", "+", "green"), "failed": ("✗", "x", "red"), "note": ("·", "-", "dim")}
        rich_shape, plain, style = shapes.get(kind, ("–", "-", "yellow"))
        return Text(plain if self._plain_marks else rich_shape, style=style)

    def blank(self) -> None:
        """An empty line."""
        self.console.print()

    def heading(self, text: str) -> None:
        """A heading, with an empty line before it."""
        self.blank()
        self._print(Text(printable(text), style="bold"), 0)

    def item(self, kind: str, text: str, *, style: str = "") -> None:
        """A marked line."""
        if not self.live:
            self._print(Text.assemble(self.mark(kind), " ", prose(text, style)), 2)
            return
        line = Table.grid(padding=(0, 1))
        line.add_column(width=1)
        line.add_column(ratio=1, overflow="fold")
        line.add_row(self.mark(kind), prose(text, style))
        self.console.print(Padding(line, (0, 0, 0, 2)))

    def detail(self, text: str, *, style: str = "", indent: int = 4) -> None:
        """A line that belongs to the one above."""
        self._print(prose(text, style), indent)

    def command(self, purpose: str, command: str, *, indent: int = 4) -> None:
        """A command that shows more."""
        self.detail(f"{purpose}: {command}", style="dim", indent=indent)

    def printed(self, text: str, *, style: str = "", indent: int = 4) -> None:
        """A line of what a program printed or raised, however long it is."""
        self._print(Text(revealed(text), style=style), indent)

    def code(self, place: str, line: str, *, indent: int = 4) -> None:
        """A place in the student's file, and the line there."""
        shown = Text.assemble((printable(place), "cyan"))
        if line:
            shown.append("  " + printable(clipped(line.strip(), WIDEST)), style="dim")
        if self.live:
            shown.truncate(self.console.width - indent, overflow="ellipsis")
        self._print(shown, indent)

    def excerpt(self, place: str, lines: Sequence[CodeLine], *, indent: int = 4) -> None:
        """A place in the student's file, and below it the lines around it, where there are any."""
        self.code(place, "", indent=indent)
        before = lines[0].number if lines else 0
        for line in lines:
            if line.number > before + 1:
                self._print(Text("...", style="dim"), indent + 2)
            before = line.number
            text = f"{'>' if line.marked else ' '}{line.number:>4}  {clipped(line.text, WIDEST)}"
            shown = Text(printable(text).rstrip(), style="" if line.marked else "dim")
            if self.live:
                shown.truncate(self.console.width - indent, overflow="ellipsis")
            self._print(shown, indent)

    def pairs(self, rows: Sequence[tuple[str, str]], *, width: int = 0, indent: int = 2) -> None:
        """Names and values in two columns, the first as wide as its longest name or `width`."""
        width = max([width, *(len(name) + 2 for name, _ in rows)])
        for name, value in rows:
            shown = prose(value)
            if self.live:
                table = Table.grid()
                table.add_column(width=width)
                table.add_column(ratio=1, overflow="fold")
                table.add_row(Text(name, style="dim"), shown)
                self.console.print(Padding(table, (0, 0, 0, indent)))
            else:
                self._print(Text.assemble(f"{name:<{width}}", shown), indent)

    def verdict(self, good: bool, text: str) -> None:
        """The last line, in a sentence."""
        self.blank()
        self._print(Text.assemble(self.mark("passed" if good else "failed"), " ", prose(text, "bold")), 0)

    def _print(self, text: Text, indent: int) -> None:
        if self.live:
            self.console.print(Padding(text, (0, 0, 0, indent)))
        else:
            self.console.print(" " * indent + text.plain.replace(SPACE, " "), soft_wrap=True)


def prose(text: str, style: str = "") -> Text:
    """A sentence, with `code` and quotations set apart."""
    shown = Text(style=style)
    for piece in re.split(r"(`[^`]+`|“[^“”]*”)", printable(clipped(text, LONGEST))):
        shown.append(piece, style={"`": "cyan", "“": "italic"}.get(piece[:1] if len(piece) > 1 else "", ""))
    return shown


def _encodable(text: str, encoding: str) -> bool:
    try:
        text.encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return False
    return True
