"""The source as files again, with some of its numbers replaced.

It computes the script or notebook and the modules beside it. Its callers decide which numbers change, and to
what: `grader.grading.value_study` and `grader.students.other_epochs`.

Tests: tests/grading/test_value_study.py
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass

from grader.domain.program import Program, Span, cell_number, cell_run


@dataclass(frozen=True)
class Rewritten:
    """The source as files again.

    Attributes:
        code: The script or notebook.
        modules: The modules beside it, by name.
    """

    code: bytes
    modules: dict[str, bytes]


def rewritten(program: Program, changes: Mapping[Span, str]) -> Rewritten:
    """The source as files again: a script as it was, a notebook with its code cells at their old places.

    Args:
        program: Whose source is known.
        changes: Where -> what is written there instead; no two of them overlap.
    """
    texts = {file: _replaced(text, file, changes) for file, text in (program.source or {}).items()}
    beside = [file for file in program.modules if cell_number(file) is None]
    modules = {file: texts[file].encode("utf-8", "surrogateescape") for file in beside}
    own = {file: text for file, text in texts.items() if file not in beside}
    numbers = {file: number for file in own if (number := cell_number(file)) is not None}
    if len(numbers) < len(own):
        return Rewritten("\n".join(own.values()).encode("utf-8"), modules)
    cells: list[dict[str, str | int | None]] = []
    for file, number in numbers.items():
        while len(cells) < number - 1:
            cells.append({"cell_type": "markdown", "source": ""})
        cells.append({"cell_type": "code", "source": own[file], "execution_count": cell_run(file)})
    return Rewritten(json.dumps({"cells": cells, "nbformat": 4}).encode("utf-8"), modules)


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
