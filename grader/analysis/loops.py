"""The epoch loop as the recipe reads it: where it stands, and the expression for how often it runs.

It goes by use: a loop that calls the graded training function, else one with inner loops that call `backward`
or `step(closure)`. The last one counts, among those of the model that counts where `script` knows them. A
count that cannot be read is None, never a guess. How long the training really runs the script itself decides,
in `grader.worker.script_run`.

Tests: tests/analysis/test_recipe.py
"""

import ast
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

from grader.analysis.units import DEFINITIONS, Unit, calls, statements_within
from grader.domain.program import Place

LOOPS = (ast.For, ast.While)
PROGRESS = {"tqdm", "trange", "track", "master_bar", "progress_bar", "enumerate"}
RANGES = {"range", "trange"}


@dataclass(frozen=True)
class EpochLoop:
    """A loop over epochs.

    Attributes:
        node: The `for` or `while`.
        function: The top-level function that holds it; None at top level.
        unit: The top-level statement that holds it.
        rank: 0 where it calls the graded training function, 1 where it trains by itself.
    """

    node: ast.For | ast.While
    function: str | None
    unit: Unit
    rank: int


def epoch_loop(
    units: tuple[Unit, ...], trainer: str | None, graded: set[str], among: Collection[Place]
) -> EpochLoop | None:
    """The loop that trains the final model: the last one that calls the training function.

    Args:
        among: Where the loops are that train the model that counts; empty: any may be it.
        units: The program.
        trainer: The graded function that trains for one epoch, as it is defined.
        graded: All graded names, as they are defined: loops in those are not over epochs.
    """
    stepping = _callers(units, trainer) | ({trainer} if trainer else set())
    found: list[EpochLoop] = []
    for unit in units:
        if isinstance(unit.node, ast.ClassDef) or unit.binds & graded:
            continue
        function = unit.node.name if isinstance(unit.node, ast.FunctionDef) else None
        for node in statements_within(unit.node):
            if isinstance(node, LOOPS):
                if among and unit.cell.place(node.lineno) not in among:
                    continue
                rank = _rank(node, stepping)
                if rank is not None:
                    found.append(EpochLoop(node, function, unit, rank))
    if among:
        return found[-1] if found else None
    best = min((loop.rank for loop in found), default=None)
    return next((loop for loop in reversed(found) if loop.rank == best), None)


def _rank(node: ast.For | ast.While, stepping: set[str]) -> int | None:
    if any(isinstance(call.func, ast.Name) and call.func.id in stepping for call in own_calls(node)):
        return 0
    inner = [loop for loop in statements_within(node) if isinstance(loop, LOOPS) and loop is not node]
    every = [call for loop in inner for call in own_calls(loop)]
    if any(_method(call) == "backward" or (_method(call) == "step" and call.args) for call in every):
        return 1
    return None


def _callers(units: tuple[Unit, ...], trainer: str | None) -> set[str]:
    """Functions that call the training function once: an epoch's training and evaluation together."""
    found = set()
    for unit in units:
        if isinstance(unit.node, ast.FunctionDef):
            loops = any(isinstance(node, LOOPS) for node in statements_within(unit.node))
            names = {call.func.id for call in calls(unit.node) if isinstance(call.func, ast.Name)}
            if not loops and trainer in names:
                found.add(unit.node.name)
    return found


def own_calls(node: ast.stmt) -> Iterator[ast.Call]:
    """The calls in a loop's body that are not in loops or functions within it."""
    stack: list[ast.AST] = [*getattr(node, "body", []), *getattr(node, "orelse", [])]
    while stack:
        current = stack.pop()
        if isinstance(current, (*LOOPS, *DEFINITIONS)):
            continue
        if isinstance(current, ast.Call):
            yield current
        stack += ast.iter_child_nodes(current)


def _method(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else ""


def epochs(loop: ast.For | ast.While, bound_to: Callable[[str], ast.expr | None]) -> ast.expr | None:
    """The expression for how often a loop runs; None where it cannot be told.

    Args:
        bound_to: The expression that a name is bound to before the loop (`bar = trange(30)`).
    """
    if isinstance(loop, ast.While):
        test = loop.test
        if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.Lt | ast.LtE):
            return test.comparators[0]
        return None
    iterated = loop.iter
    if isinstance(iterated, ast.Name):
        iterated = bound_to(iterated.id) or iterated
    while isinstance(iterated, ast.Call):
        name = ast.unparse(iterated.func).split(".")[-1]
        if name in RANGES:
            return _count(iterated)
        if name not in PROGRESS or not iterated.args:
            return None
        iterated = iterated.args[0]
    return None


def _count(call: ast.Call) -> ast.expr | None:
    """How many numbers `range(...)` gives, as an expression that is short where it can be."""
    args = call.args
    if len(args) == 1:
        return args[0]
    if len(args) == 2 and isinstance(args[0], ast.Constant):
        start, stop = args[0].value, args[1]
        if start == 0:
            return stop
        match stop:
            case ast.BinOp(left=left, op=ast.Add(), right=ast.Constant(value=more)) if more == start:
                return left
            case ast.BinOp(left=ast.Constant(value=more), op=ast.Add(), right=right) if more == start:
                return right
    if not args:
        return None
    counted = ast.Call(ast.Name("len", ast.Load()), [ast.Call(ast.Name("range", ast.Load()), args, [])], [])
    return ast.copy_location(ast.fix_missing_locations(ast.copy_location(counted, call)), call)
