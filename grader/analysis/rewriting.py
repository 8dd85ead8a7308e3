"""A submission's source with some of its numbers replaced."""

import json
import re
from collections.abc import Mapping

from grader.domain.program import Span


def rewritten(source: Mapping[str, str], changes: Mapping[Span, str]) -> bytes:
    """The source as a file again: a script as it was, a notebook with its code cells at their old places.

    Args:
        source: File or cell -> text, as in `Program.source`.
        changes: Where -> what is written there instead; no two of them overlap.
    """
    texts = {file: _replaced(text, file, changes) for file, text in source.items()}
    numbers = {file: re.fullmatch(r"cell (\d+)", file) for file in texts}
    if not all(numbers.values()):
        return "\n".join(texts.values()).encode("utf-8")
    cells: list[dict[str, str]] = []
    for file, match in numbers.items():
        while match and len(cells) < int(match.group(1)) - 1:
            cells.append({"cell_type": "markdown", "source": ""})
        cells.append({"cell_type": "code", "source": texts[file]})
    return json.dumps({"cells": cells, "nbformat": 4}).encode("utf-8")


def _replaced(text: str, file: str, changes: Mapping[Span, str]) -> str:
    lines = [line.encode("utf-8", "surrogateescape") for line in text.split("\n")]
    # from the end, so that what comes before keeps its place
    for span in sorted((each for each in changes if each.file == file), key=lambda s: (s.line, s.column))[
        ::-1
    ]:
        before, after = lines[span.line - 1][: span.column], lines[span.end_line - 1][span.end_column :]
        new = changes[span].encode("utf-8")
        lines[span.line - 1 : span.end_line] = [before + new + after]
    return b"\n".join(lines).decode("utf-8", "surrogateescape")
