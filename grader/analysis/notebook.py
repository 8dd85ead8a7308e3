"""Notebooks: the code cells of a file of any format, and a kernel's history written as such a file.

This module decides what a cell is called (`In [4], cell 9`), what it printed, and the order of executed
cells. A cell's place is where it was executed first, unless it needs names that later cells bind. Damaged
files get one sentence. `source` decides which cells are Python, `view` what people see of outputs, and
`grader.jupyter.check_service` which checks run.

Tests: tests/analysis/test_executed_cells.py, tests/analysis/test_source_reading.py,
tests/analysis/test_view.py
"""

import ast
import itertools
import json
import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from grader.analysis.notebook_commands import plain
from grader.analysis.references import references
from grader.analysis.syntax_trees import DEFINITIONS, bound_names
from grader.domain.analyzed_program import cell_name, executed_name
from grader.domain.errors import SubmissionError

CURRENT_FORMAT = 4
MOST_RUNS = 999_999_999  # no real notebook has a larger count
MOST_PRINTED = 400_000  # characters of a cell, from the end
# in the metadata of an output: it was shown by `grader.check`, not printed by the homework
OWN_CHECK = "vit_grader_check"
REMEDY = "Open it in Jupyter, save it again and hand in the saved file."


@dataclass(frozen=True)
class RawCell:
    """A code cell: its name as in `Place.file`, its text, and what it printed when it was run."""

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
    else in them matters here.

    Args:
        name: The file's name, for messages.
        text: Its content.
        executed: The text is what a kernel executed: see `executed_notebook`.

    Raises:
        SubmissionError: It is not a notebook, is damaged, or has no code.
    """
    content, cells = notebook_cells(name, text)
    raw_cells = []
    names = [executed_name(cell["execution_count"]) for cell in cells] if executed else cell_names(cells)
    for place, cell in zip(names, cells, strict=True):
        if _is_code(cell):
            source = cell_text(cell)
            if source.strip():
                raw_cells.append(RawCell(place, source, _printed(cell)))
    if not raw_cells:
        raise SubmissionError(
            f"{name}: has no cell with code. Hand in the notebook that holds your solution."
        )
    return tuple(raw_cells), _format_notes(name, content)


def cell_names(cells: Sequence[Any]) -> list[str]:
    """What people call the cells of a notebook: `In [4], cell 9`, or `cell 9` if a cell is not code.

    The file keeps the count that Jupyter showed when a cell was run; a cell that was not run has `In [ ]`.
    Where no cell was run, they are counted as if all were run from the top: Jupyter counts no empty one.
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
    """The execution count of a cell; empty if it has none."""
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
    """The cells in order; None if the content has no list of cells."""
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
    """A text of the notebook format, which may be a list of its parts; empty if it is something else.

    Characters that cannot be encoded are replaced, since the parser would refuse them.
    """
    if isinstance(value, list):
        value = "".join(part for part in value if isinstance(part, str))
    return value.encode("utf-8", "replace").decode("utf-8") if isinstance(value, str) else ""


def _printed(cell: dict[str, Any]) -> str:
    """The text in a cell's outputs, without errors and what checks showed."""
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


# --- executed cells --------------------------------------------------------------------------------------


Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
_DEFINES = re.compile(r"^(?:class|(?:async )?def) (\w+)", re.MULTILINE)


@dataclass(frozen=True)
class Execution:
    """A cell's text, as a kernel was given it.

    Attributes:
        number: As Jupyter counts: `In [4]`.
        text: With magics.
        cell: Identifies its cell across executions; empty if that is not known.
    """

    number: int
    text: str
    cell: str = ""

    @cached_property
    def tree(self) -> ast.Module | None:
        """Its Python, parsed; None if it is not Python."""
        return _tree(self.text) or _tree(plain(self.text).code)

    @cached_property
    def defines(self) -> frozenset[str]:
        """The classes and functions that it defines at top level."""
        if self.tree is None:
            return frozenset(_DEFINES.findall(self.text))
        return frozenset(node.name for node in self.tree.body if isinstance(node, DEFINITIONS))

    @cached_property
    def binds(self) -> frozenset[str]:
        """The names that it binds at top level."""
        return frozenset(bound_names(self.tree.body)[0]) if self.tree is not None else frozenset()


def executed_notebook(executions: Iterable[Execution]) -> bytes:
    """The notebook of what was executed, for `program(..., executed=True)`.

    Args:
        executions: In the order of time.
    """
    return json.dumps(
        {
            "cells": [
                {
                    "cell_type": "code",
                    "execution_count": execution.number,
                    "metadata": {},
                    "outputs": [],
                    "source": execution.text,
                }
                for execution in _ordered(_current(tuple(executions)))
            ],
            "metadata": {},
            "nbformat": 4,
            "nbformat_minor": 5,
        }
    ).encode("utf-8", "replace")


def _current(executions: Sequence[Execution]) -> list[Execution]:
    """Each cell's last text, where it was executed first, without definitions that later ones replaced."""
    position_by_key: dict[str, int] = {}  # what identifies a cell -> its position
    latest: dict[int, Execution] = {}
    for index, execution in enumerate(executions):
        if not execution.text.strip():
            continue
        places = {position_by_key[key] for key in _keys(execution) if key in position_by_key}
        place = min(places, default=index)
        for key in _keys(execution):
            position_by_key[key] = place
        for earlier in places:
            latest.pop(earlier)
        latest[place] = execution
    cells = [latest[place] for place in sorted(latest)]
    updated = [_without_older(cell, cells) for cell in cells]
    return [cell for cell in updated if cell is not None]


def _keys(execution: Execution) -> Iterator[str]:
    yield f"text {execution.text.strip()}"
    if execution.cell:
        yield f"cell {execution.cell}"


def _without_older(cell: Execution, cells: Sequence[Execution]) -> Execution | None:
    """A cell without the classes and functions that were defined again later; None if nothing is left."""
    if cell.tree is None:
        # it bound nothing; its text matters only if nothing else defines what it was meant to define
        elsewhere = {name for other in cells if other.tree is not None for name in other.defines}
        return cell if cell.defines - elsewhere else None
    newer = {
        name
        for other in cells
        if other.number > cell.number and other.tree is not None
        for name in other.defines
    }
    definitions = [node for node in cell.tree.body if isinstance(node, DEFINITIONS)]
    still_used = [node for node in cell.tree.body if node not in definitions or node.name not in newer]
    needed = _needed(still_used, definitions)
    older = [node for node in definitions if node.name in newer - needed]
    if len(older) == len(cell.tree.body):
        return None
    lines = cell.text.split("\n")
    for node in older:
        begin = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
        lines[begin - 1 : node.end_lineno] = [""] * ((node.end_lineno or node.lineno) - begin + 1)
    return replace(cell, text="\n".join(lines)) if older else cell


def _ordered(cells: Sequence[Execution]) -> Iterator[Execution]:
    """The cells in their order, except that a cell follows those that bind what it needs."""
    bodies = {cell.number: cell.tree.body if cell.tree is not None else [] for cell in cells}
    definitions = [node for body in bodies.values() for node in body if isinstance(node, DEFINITIONS)]
    needs = {cell.number: _needed(bodies[cell.number], definitions) - cell.binds for cell in cells}
    waiting, bound = list(cells), set[str]()
    while waiting:
        missing = {name for cell in waiting for name in cell.binds} - bound
        # cells that need each other keep their order
        chosen = next((cell for cell in waiting if not needs[cell.number] & missing), waiting[0])
        waiting.remove(chosen)
        bound |= chosen.binds
        yield chosen


def _needed(nodes: Iterable[ast.stmt], definitions: Iterable[Definition]) -> frozenset[str]:
    """The global names that statements use when executed, also through the definitions that they use."""
    names = {name for node in nodes for name in references(node, {}).names(eager=True)}
    inside = {node.name: references(node, {}) for node in definitions}
    unseen = list(names)
    while unseen:
        used_references = inside.pop(unseen.pop(), None)
        if used_references is not None:
            new_names = (used_references.names(eager=True) | used_references.names(eager=False)) - names
            names |= new_names
            unseen += new_names
    return frozenset(names)


def _tree(code: str) -> ast.Module | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return ast.parse(code)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None
