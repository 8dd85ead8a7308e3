"""Kernel history as a notebook: each cell once, as it was executed last.

A kernel also keeps the texts of cells that were changed and executed again. Each cell stands where it was
executed first, unless it needs names that later cells bind. Cells are matched by id, else by their text;
cells that need each other keep their order. `programs` decides what is executed, and
`grader.jupyter.check_service` which checks run.

Tests: tests/analysis/test_executed_cells.py
"""

import ast
import json
import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from grader.analysis.magics import plain
from grader.analysis.references import bound_names, references
from grader.analysis.units import DEFINITIONS

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
_DEFINES = re.compile(r"^(?:class|(?:async )?def) (\w+)", re.MULTILINE)


@dataclass(frozen=True)
class Execution:
    """A cell's text, as a kernel was given it.

    Attributes:
        number: As Jupyter counts: `In [4]`.
        text: With magics.
        cell: By which its cell is known again; empty: that is not known.
    """

    number: int
    text: str
    cell: str = ""

    @cached_property
    def tree(self) -> ast.Module | None:
        """The Python of it; None where it is none."""
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
        executions: In their order.
    """
    return json.dumps(
        {
            "cells": [
                {
                    "cell_type": "code",
                    "execution_count": one.number,
                    "metadata": {},
                    "outputs": [],
                    "source": one.text,
                }
                for one in _ordered(_current(tuple(executions)))
            ],
            "metadata": {},
            "nbformat": 4,
            "nbformat_minor": 5,
        }
    ).encode("utf-8", "replace")


def _current(executions: Sequence[Execution]) -> list[Execution]:
    """Each cell as it was executed last, where it was executed first, without what was defined anew since."""
    first: dict[str, int] = {}  # what a cell is known by -> where it stands
    latest: dict[int, Execution] = {}
    for index, one in enumerate(executions):
        if not one.text.strip():
            continue
        places = {first[key] for key in _keys(one) if key in first}
        place = min(places, default=index)
        for key in _keys(one):
            first[key] = place
        for other in places:
            latest.pop(other)
        latest[place] = one
    cells = [latest[place] for place in sorted(latest)]
    kept = [_without_older(cell, cells) for cell in cells]
    return [cell for cell in kept if cell is not None]


def _keys(one: Execution) -> Iterator[str]:
    yield f"text {one.text.strip()}"
    if one.cell:
        yield f"cell {one.cell}"


def _without_older(cell: Execution, cells: Sequence[Execution]) -> Execution | None:
    """A cell without the classes and functions that were defined anew later; None: nothing is left of it."""
    if cell.tree is None:
        # it bound nothing; its words matter only where nothing else has what it was to define
        elsewhere = {name for one in cells if one.tree is not None for name in one.defines}
        return cell if cell.defines - elsewhere else None
    newer = {
        name for one in cells if one.number > cell.number and one.tree is not None for name in one.defines
    }
    definitions = [node for node in cell.tree.body if isinstance(node, DEFINITIONS)]
    kept = [node for node in cell.tree.body if node not in definitions or node.name not in newer]
    needed = _needed(kept, definitions)
    older = [node for node in definitions if node.name in newer - needed]
    if len(older) == len(cell.tree.body):
        return None
    lines = cell.text.split("\n")
    for node in older:
        begin = min([node.lineno, *(each.lineno for each in node.decorator_list)])
        lines[begin - 1 : node.end_lineno] = [""] * ((node.end_lineno or node.lineno) - begin + 1)
    return replace(cell, text="\n".join(lines)) if older else cell


def _ordered(cells: Sequence[Execution]) -> Iterator[Execution]:
    """The cells in their order, but one that needs what others bind after those that bind it."""
    bodies = {one.number: one.tree.body if one.tree is not None else [] for one in cells}
    definitions = [node for body in bodies.values() for node in body if isinstance(node, DEFINITIONS)]
    needs = {one.number: _needed(bodies[one.number], definitions) - one.binds for one in cells}
    left, bound = list(cells), set[str]()
    while left:
        missing = {name for one in left for name in one.binds} - bound
        # those that need each other stay as they are
        chosen = next((one for one in left if not needs[one.number] & missing), left[0])
        left.remove(chosen)
        bound |= chosen.binds
        yield chosen


def _needed(nodes: Iterable[ast.stmt], definitions: Iterable[Definition]) -> frozenset[str]:
    """The global names that statements use when they are executed, also in the definitions that they use."""
    found = {name for node in nodes for name in references(node, {}).names(eager=True)}
    inside = {node.name: references(node, {}) for node in definitions}
    unseen = list(found)
    while unseen:
        used = inside.pop(unseen.pop(), None)
        if used is not None:
            more = (used.names(eager=True) | used.names(eager=False)) - found
            found |= more
            unseen += more
    return frozenset(found)


def _tree(code: str) -> ast.Module | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return ast.parse(code)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None
