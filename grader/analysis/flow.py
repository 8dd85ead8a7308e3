"""Reaching definitions: the statements executed before a point of the program, with calls opened up.

An approximation: each function counts with its last call, each loop once, an `if` that cannot be read with
its body last. Calls are followed five deep, `except` blocks not at all. `folding` and `tuned` compute what
the expressions are worth; `lifting` decides which statements a worker executes for them.

Tests: tests/analysis/test_recipe.py
"""

import ast
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cached_property

from grader.analysis.cell import Cell
from grader.analysis.effects import Effect, Effects
from grader.analysis.folding import Unknown, value
from grader.analysis.roles import bindings
from grader.analysis.units import Unit, calls, is_main_guard, segment, statements_within, unit
from grader.domain.program import Place

OPENED = Effect.TRAIN | Effect.MODEL | Effect.OPTIMIZER | Effect.DATA | Effect.FILES
DEEPEST_CALL = 5
WALKED = (ast.List, ast.Tuple, ast.Call)


class Flow:
    """Statements in the order of their execution, as if all stood at top level.

    Attributes:
        steps: The statements; a parameter of a function on the way is an assignment of its argument.
    """

    def __init__(self, steps: Sequence[Unit]) -> None:
        self.steps = tuple(steps)

    @cached_property
    def bound(self) -> dict[str, list[int]]:
        """Name -> the steps that bind it."""
        found: dict[str, list[int]] = {}
        for index, step in enumerate(self.steps):
            for name in step.binds:
                found.setdefault(name, []).append(index)
        return found

    @cached_property
    def changed(self) -> dict[str, list[int]]:
        """Name -> the steps that change its value in place."""
        found: dict[str, list[int]] = {}
        for index, step in enumerate(self.steps):
            for name in step.changes:
                found.setdefault(name, []).append(index)
        return found

    @cached_property
    def values(self) -> tuple[tuple[str, ast.expr, Unit], ...]:
        """(name, expression, step) for every binding by one expression, in order."""
        return tuple(
            (name, expression, step)
            for step in self.steps
            if not step.is_definition
            for name, expression in bindings(step.node)
            if expression is not None
        )

    def last(self, name: str) -> ast.expr | None:
        """The expression that a name is bound to last."""
        return next((e for n, e, _ in reversed(self.values) if n == name), None)


class Flows:
    """The ways to the program's points."""

    def __init__(
        self, units: Sequence[Unit], effects: Effects, kept: Iterable[int], aside: Collection[Place] = ()
    ) -> None:
        """Of a program.

        Args:
            units: The program.
            effects: Its effects.
            kept: The statements that are executed on loading.
            aside: Where statements are that are looked at as if they were not there.
        """
        self.units = tuple(item for item in units if item.place not in aside)
        self.kept = frozenset(kept)
        self._effects = effects
        self._whole = {id(units[index].node) for index in self.kept}
        self.functions: dict[str, ast.FunctionDef] = {}
        self._home: dict[str, Unit] = {}
        for item in units:
            if isinstance(item.node, ast.FunctionDef):
                self.functions[item.node.name] = item.node
                self._home[item.node.name] = item
        self._known: dict[tuple[str | None, int], Flow] = {}
        self._made: dict[int, Unit] = {id(item.node): item for item in units}
        self._variables: dict[int, Unit] = {}

    def before(self, stop: ast.stmt | None, function: str | None) -> Flow:
        """What was executed before a statement.

        Args:
            stop: The statement; None: the end.
            function: The top-level function that holds it; None at top level.
        """
        key = (function, id(stop))
        if key not in self._known:
            self._known[key] = Flow(list(self._way(stop, function, DEEPEST_CALL)))
        return self._known[key]

    def _way(self, stop: ast.stmt | None, function: str | None, depth: int) -> Iterator[Unit]:
        if function is None or depth == 0:
            yield from self._module(stop if function is None else None)
            return
        caller, statement, call = self._call_of(function)
        yield from self._way(statement, caller, depth - 1)
        home, node = self._home[function], self.functions[function]
        yield from self._parameters(node, call, home.cell)
        yield from _until(self._opened(node.body, home.cell, stop))

    def _module(self, stop: ast.stmt | None) -> Iterator[Unit]:
        for item in self.units:
            if item.node is stop:
                return
            if id(item.node) in self._whole or not self._is_opened(item.node, item):
                yield item
                continue
            for step in self._opened([item.node], item.cell, stop):
                if step is None:
                    return
                yield step

    def _is_opened(self, node: ast.stmt, item: Unit) -> bool:
        """Whether a block's statements are looked at one by one rather than as a whole."""
        if isinstance(node, ast.If | ast.With | ast.Try | ast.TryStar):
            return True
        return isinstance(node, ast.For | ast.While) and bool(self._effects.of(item.references.used) & OPENED)

    def _opened(self, body: Iterable[ast.stmt], cell: Cell, stop: ast.stmt | None) -> Iterator[Unit | None]:
        """The statements of a block; None where `stop` was met, after which nothing counts."""
        for node in body:
            if node is stop:
                yield None
                return
            item = self._step(node, cell)
            if not self._is_opened(node, item):
                yield item
                continue
            if isinstance(node, ast.For) and isinstance(node.iter, WALKED):
                if id(node) not in self._variables:
                    self._variables[id(node)] = _loop_variable(node, cell)
                yield self._variables[id(node)]
            for block in self._blocks(node):
                for step in self._opened(block, cell, stop):
                    yield step
                    if step is None:
                        return

    def _step(self, node: ast.stmt, cell: Cell) -> Unit:
        if id(node) not in self._made:
            self._made[id(node)] = unit(node, cell, segment(node, cell.lines), {}, 0)
        return self._made[id(node)]

    def _blocks(self, node: ast.stmt) -> list[list[ast.stmt]]:
        """A block's parts in the order in which they count: of an open `if`, the body last."""
        if isinstance(node, ast.If):
            if is_main_guard(node):
                return [node.body]
            try:
                return [node.body if value(node.test, self._constant) else node.orelse]
            except Unknown:
                return [node.orelse, node.body]
        if isinstance(node, ast.Try | ast.TryStar):
            return [node.body, node.orelse, node.finalbody]
        return [getattr(node, "body", [])]

    def _constant(self, node: ast.expr) -> object:
        if isinstance(node, ast.Name) and node.id in self._constants:
            return value(self._constants[node.id])
        raise Unknown

    @cached_property
    def _constants(self) -> dict[str, ast.expr]:
        """Top-level name -> the expression that it is bound to last."""
        return {
            name: expression
            for item in self.units
            if not item.is_definition
            for name, expression in bindings(item.node)
            if expression is not None
        }

    def _call_of(self, function: str) -> tuple[str | None, ast.stmt | None, ast.Call | None]:
        """The last call of a function: (the function that calls it, the statement, the call)."""
        for item in reversed(self.units):
            node = item.node
            if isinstance(node, ast.ClassDef) or (
                isinstance(node, ast.FunctionDef) and node.name == function
            ):
                continue
            caller = node.name if isinstance(node, ast.FunctionDef) else None
            for statement in statements_within(node):
                if isinstance(statement, ast.Expr | ast.Assign | ast.AnnAssign | ast.Return):
                    for call in calls(statement):
                        if isinstance(call.func, ast.Name) and call.func.id == function:
                            return caller, statement, call
        return None, None, None

    def _parameters(self, node: ast.FunctionDef, call: ast.Call | None, cell: Cell) -> Iterator[Unit]:
        """The parameters as assignments of the arguments, or of the defaults."""
        for name, argument in arguments(node, call).items():
            if not (isinstance(argument, ast.Name) and argument.id == name):
                yield _assignment(name, argument, cell)


def arguments(node: ast.FunctionDef, call: ast.Call | None) -> dict[str, ast.expr]:
    """Parameter -> argument of a call, or the default."""
    args = node.args
    positional = [arg.arg for arg in (*args.posonlyargs, *args.args)]
    found: dict[str, ast.expr] = {}
    if args.defaults:
        found.update(zip(positional[-len(args.defaults) :], args.defaults, strict=True))
    found.update(
        (arg.arg, default)
        for arg, default in zip(args.kwonlyargs, args.kw_defaults, strict=True)
        if default is not None
    )
    if call is not None:
        found.update(zip(positional, (a for a in call.args if not isinstance(a, ast.Starred)), strict=False))
        found.update((keyword.arg, keyword.value) for keyword in call.keywords if keyword.arg)
    return found


def _assignment(name: str, argument: ast.expr, cell: Cell) -> Unit:
    """`name = argument` as a step."""
    text = f"{name} = {ast.unparse(argument)}"
    target = ast.copy_location(ast.Name(name, ast.Store()), argument)
    node = ast.copy_location(ast.Assign([target], argument, type_comment=None), argument)
    return unit(node, cell, text, {}, 0)


def _loop_variable(node: ast.For, cell: Cell) -> Unit:
    """`for lr in [1e-3, 3e-4]` leaves its last value: `*_, lr = [1e-3, 3e-4]`."""
    rest = ast.Starred(ast.Name("_", ast.Store()), ast.Store())
    made = ast.Assign([ast.Tuple([rest, node.target], ast.Store())], node.iter, type_comment=None)
    ast.fix_missing_locations(ast.copy_location(made, node))
    return unit(made, cell, ast.unparse(made), {}, 0)


def _until(steps: Iterable[Unit | None]) -> Iterator[Unit]:
    for step in steps:
        if step is None:
            return
        yield step
