"""A cell: one code cell of a notebook, one script or one module, as text and as parsed Python.

It holds data and decides nothing. `source` makes the cells; `check_commands` and `joining` replace them.

Tests: tests/analysis/test_source_reading.py
"""

import ast
from dataclasses import dataclass
from functools import cached_property

from grader.domain.program import Place


@dataclass(frozen=True)
class Cell:
    """One cell, or a whole script, or a module of the student's own.

    Attributes:
        file: `homework.py`, `parts/attention.py` or `In [4], cell 9`, as in `Place`.
        text: What the student wrote.
        code: The Python of it, with the same lines: magics set aside, slips of the handout repaired,
            imports of own modules taken out.
        tree: `code`, parsed.
    """

    file: str
    text: str
    code: str
    tree: ast.Module

    @cached_property
    def lines(self) -> list[str]:
        """The lines of `code`."""
        return self.code.split("\n")

    def place(self, line: int) -> Place:
        """A line of the cell."""
        return Place(self.file, line)
