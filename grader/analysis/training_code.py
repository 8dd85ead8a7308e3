"""Training code by location: the statements and expressions that training executes, each with its cell.

It computes where they stand, so that uses of forbidden parts in them have a place. `recipe` and
`script.training_script` decide what training executes; an expression that the analysis put together itself
counts for the first cell.

Tests: tests/analysis/test_prying.py
"""

import ast
import warnings
from collections.abc import Iterator, Sequence

from grader.analysis.cell import Cell
from grader.analysis.recipe import Reading
from grader.domain.program import Script, Statement


def training_code(cells: Sequence[Cell], reading: Reading, script: Script) -> Iterator[tuple[ast.stmt, Cell]]:
    """Each statement of the recipe, the loop over epochs, and each expression, with its cell.

    Args:
        cells: The program's.
        reading: How the student builds the model and loads data.
        script: How the student trains.
    """
    by_file = {cell.file: cell for cell in cells}
    recipe, parts = reading.recipe, reading.ingredients
    for statement in (*recipe.all_statements, *script.statements):
        yield from _parsed(statement, by_file.get(statement.place.file, cells[0]))
    bound = [part[1] for part in (parts.model, parts.optimizer, parts.scheduler) if part]
    given = [
        part.node
        for part in (parts.train_transform, parts.test_transform, parts.batch_size, parts.collate)
        if part
    ]
    for node in (*bound, *given, *([parts.epochs] if parts.epochs is not None else [])):
        yield ast.copy_location(ast.Expr(node), node), _cell_of(node, cells)


def _parsed(statement: Statement, cell: Cell) -> Iterator[tuple[ast.stmt, Cell]]:
    """The statement, its lines counted as in its cell."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tree = ast.parse(statement.source)
    ast.increment_lineno(tree, statement.place.line - 1)
    for node in tree.body:
        yield node, cell


def _cell_of(node: ast.expr, cells: Sequence[Cell]) -> Cell:
    """The cell in which an expression stands; the first where it was put together by us."""
    place = node.lineno, node.col_offset, ast.dump(node)
    for cell in cells:
        for statement in cell.tree.body:
            if not statement.lineno <= node.lineno <= (statement.end_lineno or 0):
                continue
            for inner in ast.walk(statement):
                if not isinstance(inner, ast.expr) or (inner.lineno, inner.col_offset) != place[:2]:
                    continue
                if ast.dump(inner) == place[2]:
                    return cell
    return cells[0]
