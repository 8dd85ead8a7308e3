"""Notebook files: code cells with their names and printed text, of any format that Jupyter has written.

It decides what a cell is called (`In [4], cell 9`) and what it printed. Damaged files get one sentence.
`source` decides which cells are Python, and `outputs` what people see of outputs.

Tests: tests/analysis/test_source_reading.py, tests/analysis/test_view.py
"""

import itertools
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from grader.domain.errors import SubmissionError
from grader.domain.program import cell_name, executed_name

CURRENT_FORMAT = 4
MOST_RUNS = 999_999_999  # a larger count is no one's
MOST_PRINTED = 400_000  # characters of a cell, from the end
# in the metadata of an output: what `grader.check` showed, which is nothing that the homework printed
OWN_CHECK = "vit_grader_check"
REMEDY = "Open it in Jupyter, save it again and hand in the saved file."


@dataclass(frozen=True)
class RawCell:
    """A code cell: its name as `Place.file` has it, its text, and what it printed when it was run."""

    name: str
    text: str
    printed: str = ""


def is_notebook(text: str) -> bool:
    """Whether a text is a notebook, whatever the file is called."""
    if not text.lstrip().startswith("{"):
        return False
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(content, dict) and ("cells" in content or "worksheets" in content)


def code_cells(
    name: str, text: str, *, executed: bool = False
) -> tuple[tuple[RawCell, ...], tuple[str, ...]]:
    """The code cells of a notebook, and notes about how it was read.

    Formats before 4 keep cells in worksheets and a cell's text under `input` (nbformat, "Changes"); nothing
    else of them matters here.

    Args:
        name: The file's name, for messages.
        text: Its content.
        executed: It is what a kernel executed: see `executed_notebook`.

    Raises:
        SubmissionError: It is not a notebook, is damaged, or has no code.
    """
    content, cells = notebook_cells(name, text)
    found = []
    names = [executed_name(cell["execution_count"]) for cell in cells] if executed else cell_names(cells)
    for called, cell in zip(names, cells, strict=True):
        if _is_code(cell):
            source = cell_text(cell)
            if source.strip():
                found.append(RawCell(called, source, _printed(cell)))
    if not found:
        raise SubmissionError(
            f"{name}: has no cell with code. Hand in the notebook that holds your solution."
        )
    return tuple(found), _format_notes(name, content)


def cell_names(cells: Sequence[Any]) -> list[str]:
    """How people call the cells of a notebook: `In [4], cell 9`, and those that are not code `cell 9`.

    Jupyter shows how many cells had been run when each was, which the file keeps; a cell that was not run has
    `In [ ]`. Where no cell was run, they are counted as they will be when all are run from the top: Jupyter
    counts no empty one.
    """
    runs = [_run(cell) for cell in cells]
    if not any(runs):
        order = itertools.count(1)
        runs = [str(next(order)) if _is_code(cell) and cell_text(cell).strip() else "" for cell in cells]
    return [
        cell_name(number, (run or " ") if _is_code(cell) else "")
        for number, (cell, run) in enumerate(zip(cells, runs, strict=True), start=1)
    ]


def _is_code(cell: Any) -> bool:
    return isinstance(cell, dict) and cell.get("cell_type") == "code"


def _run(cell: Any) -> str:
    """The count of a cell's execution; empty where there is none."""
    if not _is_code(cell):
        return ""
    count = cell.get("execution_count", cell.get("prompt_number"))  # the latter before format 4
    return str(count) if type(count) is int and 0 < count <= MOST_RUNS else ""


def notebook_cells(name: str, text: str) -> tuple[Any, list[Any]]:
    """A notebook's JSON, and its cells in order, whatever their type.

    Raises:
        SubmissionError: It is not a notebook.
    """
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SubmissionError(f"{name}: is damaged: it cannot be read as a notebook. {REMEDY}") from error
    cells = _all_cells(content)
    if cells is None:
        raise SubmissionError(f"{name}: is not a notebook (it has no list of cells). {REMEDY}")
    return content, cells


def _all_cells(content: Any) -> list[Any] | None:
    """The cells in order; None where there are none to be found."""
    if not isinstance(content, dict):
        return None
    if isinstance(content.get("cells"), list):
        return list(content["cells"])
    sheets = content.get("worksheets")
    if not isinstance(sheets, list):
        return None
    return [
        cell
        for sheet in sheets
        if isinstance(sheet, dict) and isinstance(sheet.get("cells"), list)
        for cell in sheet["cells"]
    ]


def cell_text(cell: dict[str, Any]) -> str:
    """A cell's text, with `\\n` between lines."""
    return joined(cell.get("source", cell.get("input", ""))).replace("\r\n", "\n").replace("\r", "\n")


def joined(value: Any) -> str:
    """A text of the format, which may be a list of its parts; empty where it is something else.

    What cannot be encoded is replaced, since the parser would refuse it.
    """
    if isinstance(value, list):
        value = "".join(part for part in value if isinstance(part, str))
    return value.encode("utf-8", "replace").decode("utf-8") if isinstance(value, str) else ""


def _printed(cell: dict[str, Any]) -> str:
    """The text among a cell's outputs, without errors and without what checks showed."""
    outputs = cell.get("outputs")
    parts = []
    for output in outputs if isinstance(outputs, list) else ():
        if not isinstance(output, dict) or output.get("output_type") in ("error", "pyerr"):
            continue
        metadata = output.get("metadata")
        if isinstance(metadata, dict) and OWN_CHECK in metadata:
            continue
        data = output.get("data")
        text = joined(output.get("text", data.get("text/plain") if isinstance(data, dict) else None))
        if text:
            parts.append(text[-MOST_PRINTED:])
    return "\n".join(parts)[-MOST_PRINTED:]


def _format_notes(name: str, content: dict[str, Any]) -> tuple[str, ...]:
    version = content.get("nbformat", CURRENT_FORMAT)
    if isinstance(version, int) and version < CURRENT_FORMAT:
        return (f"{name} is in the old notebook format {version}; it was read all the same. {REMEDY}",)
    return ()
