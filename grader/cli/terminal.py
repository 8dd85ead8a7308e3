"""Where commands print: a terminal, or a file or another program, for which no line is broken."""

import os
from typing import Any

from rich.console import Console

FILE_WIDTH = 200  # columns of a table that does not go to a terminal


def console(**options: Any) -> Console:
    """A console; outside a terminal, lines are as long as what they say, unless $COLUMNS says otherwise.

    Args:
        options: As for rich's.
    """
    made = Console(**options)
    if not made.is_terminal:
        made.soft_wrap = True
        if not os.environ.get("COLUMNS"):
            made.width = FILE_WIDTH
    return made
