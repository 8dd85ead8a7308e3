"""Reaching definitions: statements executed before a point, and those that an expression needs.

Calls are followed five deep, `except` blocks not at all; each function counts with its last call, each
loop once. This module decides which statements a worker executes for an expression, by phase: at the
start, with the data, with the model. Statements that train, load data, or use files or the network are
out; an expression that needs one is not available. `training_recipe` decides which expressions make up the
recipe.

Tests: tests/analysis/test_recipe.py
"""

import ast
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from enum import IntEnum
from functools import cached_property

from grader.analysis.constant_values import Unknown, value
from grader.analysis.effects import Effect, Effects
from grader.analysis.recognized_roles import bindings
from grader.analysis.references import references
from grader.analysis.slicing import KNOWN
from grader.analysis.syntax_trees import as_function, calls, statements_within, text_of
from grader.analysis.units import Cell, Unit, is_main_guard, segment, unit
from grader.domain.analyzed_program import Place, Statement

OPENED = Effect.TRAIN | Effect.MODEL | Effect.OPTIMIZER | Effect.DATA | Effect.FILES
DEEPEST_CALL = 5
WALKED = (ast.List, ast.Tuple, ast.Call)


class Flow:
    """Statements in the order of their execution, as if all were at top level.

    Attributes:
        steps: The statements; each parameter of a function on the way becomes an assignment of its argument.
    """

    def __init__(self, steps: Sequence[Unit]) -> None:
        self.steps = tuple(steps)

    @cached_property
    def bound(self) -> dict[str, list[int]]:
        """Name -> the steps that bind it."""
        positions: dict[str, list[int]] = {}
        for index, step in enumerate(self.steps):
            for name in step.binds:
                positions.setdefault(name, []).append(index)
        return positions

    @cached_property
    def changed(self) -> dict[str, list[int]]:
        """Name -> the steps that change its value in place."""
        positions: dict[str, list[int]] = {}
        for index, step in enumerate(self.steps):
            for name in step.changes:
                positions.setdefault(name, []).append(index)
        return positions

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
    """What is executed before each point of the program."""

    def __init__(
        self, units: Sequence[Unit], effects: Effects, kept: Iterable[int], aside: Collection[Place] = ()
    ) -> None:
        """The flows of a program.

        Args:
            units: The program.
            effects: Its effects.
            kept: The statements that are executed on loading.
            aside: The places of statements that are ignored.
        """
        self.units = tuple(item for item in units if item.place not in aside)
        self.kept = frozenset(kept)
        self._effects = effects
        self._loaded_whole = {id(units[index].node) for index in self.kept}
        self.functions: dict[str, ast.FunctionDef] = {}
        self._home_of_function: dict[str, Unit] = {}
        self._functions_by_node: dict[int, ast.FunctionDef] = {}
        for item in units:
            function = as_function(item.node)
            if function is not None:
                self.functions[function.name] = self._functions_by_node[id(item.node)] = function
                self._home_of_function[function.name] = item
        self._flows: dict[tuple[str | None, int], Flow] = {}
        self._units_by_node: dict[int, Unit] = {id(item.node): item for item in units}
        self._variables: dict[int, Unit] = {}

    def function_of(self, item: Unit) -> ast.FunctionDef | None:
        """The function that a top-level statement defines, by `def` or as `name = lambda ...`."""
        return self._functions_by_node.get(id(item.node))

    def before(self, stop: ast.stmt | None, function: str | None) -> Flow:
        """What was executed before a statement.

        Args:
            stop: The statement; None: the end.
            function: The top-level function that holds it; None at top level.
        """
        key = (function, id(stop))
        if key not in self._flows:
            self._flows[key] = Flow(list(self._steps_before(stop, function, DEEPEST_CALL)))
        return self._flows[key]

    def _steps_before(self, stop: ast.stmt | None, function: str | None, depth: int) -> Iterator[Unit]:
        if function is None or depth == 0:
            yield from self._module(stop if function is None else None)
            return
        caller, statement, call = self._call_of(function)
        yield from self._steps_before(statement, caller, depth - 1)
        home, node = self._home_of_function[function], self.functions[function]
        yield from self._parameters(node, call, home.cell)
        yield from _until(self._opened(node.body, home.cell, stop))

    def _module(self, stop: ast.stmt | None) -> Iterator[Unit]:
        for item in self.units:
            if item.node is stop:
                return
            if id(item.node) in self._loaded_whole or not self._is_opened(item.node, item):
                yield item
                continue
            for step in self._opened([item.node], item.cell, stop):
                if step is None:
                    return
                yield step

    def _is_opened(self, node: ast.stmt, item: Unit) -> bool:
        """Whether a block's statements are treated one by one rather than as a whole."""
        if isinstance(node, ast.If | ast.With | ast.Try | ast.TryStar):
            return True
        return isinstance(node, ast.For | ast.While) and bool(self._effects.of(item.references.used) & OPENED)

    def _opened(self, body: Iterable[ast.stmt], cell: Cell, stop: ast.stmt | None) -> Iterator[Unit | None]:
        """The statements of a block; None where `stop` is met, after which nothing counts."""
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
        if id(node) not in self._units_by_node:
            self._units_by_node[id(node)] = unit(node, cell, segment(node, cell.lines), {}, 0)
        return self._units_by_node[id(node)]

    def _blocks(self, node: ast.stmt) -> list[list[ast.stmt]]:
        """A block's parts in the order in which they count: in an undecided `if`, the body comes last."""
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
    by_parameter: dict[str, ast.expr] = {}
    if args.defaults:
        by_parameter.update(zip(positional[-len(args.defaults) :], args.defaults, strict=True))
    by_parameter.update(
        (arg.arg, default)
        for arg, default in zip(args.kwonlyargs, args.kw_defaults, strict=True)
        if default is not None
    )
    if call is not None:
        by_parameter.update(
            zip(positional, (a for a in call.args if not isinstance(a, ast.Starred)), strict=False)
        )
        by_parameter.update((keyword.arg, keyword.value) for keyword in call.keywords if keyword.arg)
    if args.vararg is not None and call is not None:
        further = ast.Tuple(call.args[len(positional) :], ast.Load())
        by_parameter[args.vararg.arg] = ast.fix_missing_locations(ast.copy_location(further, call))
    return by_parameter


def _assignment(name: str, argument: ast.expr, cell: Cell) -> Unit:
    """`name = argument` as a step."""
    text = f"{name} = {text_of(argument)}"
    target = ast.copy_location(ast.Name(name, ast.Store()), argument)
    node = ast.copy_location(ast.Assign([target], argument, type_comment=None), argument)
    return unit(node, cell, text, {}, 0)


def _loop_variable(node: ast.For, cell: Cell) -> Unit:
    """`for lr in [1e-3, 3e-4]` leaves its last value: `*_, lr = [1e-3, 3e-4]`."""
    ignored = ast.Starred(ast.Name("_", ast.Store()), ast.Store())
    assignment = ast.Assign([ast.Tuple([ignored, node.target], ast.Store())], node.iter, type_comment=None)
    ast.fix_missing_locations(ast.copy_location(assignment, node))
    return unit(assignment, cell, ast.unparse(assignment), {}, 0)


def _until(steps: Iterable[Unit | None]) -> Iterator[Unit]:
    for step in steps:
        if step is None:
            return
        yield step


# --- lifting ---------------------------------------------------------------------------------------------


NEVER = Effect.SHELL | Effect.NETWORK | Effect.TRAIN | Effect.DATA | Effect.FILES | Effect.INPUT | Effect.ENDS
AT_ONCE = 400  # statements that one recipe may need


class Phase(IntEnum):
    """When a part of the recipe becomes available."""

    START = 0
    DATA = 1
    MODEL = 2


class Lifting:
    """The statements that the recipe's expressions depend on, by phase."""

    def __init__(self, effects: Effects, loaded: Mapping[str, int], late: Mapping[str, Phase]) -> None:
        """Begin with nothing taken in.

        Args:
            effects: The program's.
            loaded: Name -> how many statements that are executed on loading bind it.
            late: Names that exist only from a phase on: the model's variable, the loaders', ...
        """
        self._effects = effects
        self._loaded = loaded
        self.late = dict(late)
        self.used_late: set[str] = set()
        self._taken: dict[int, tuple[int, Unit, Phase]] = {}
        self._order = 0

    def missing(self, node: ast.expr, flow: Flow, at: Phase, kept: Collection[int]) -> str | None:
        """Take in what an expression depends on; return the name that is not available, if there is one.

        Args:
            node: The expression.
            flow: What was executed before it.
            at: The phase in which it is evaluated.
            kept: `id` of the nodes of statements that are executed on loading.
        """
        names = references(node, {})
        needed = names.names(eager=True) | names.names(eager=False)
        return self.missing_name(needed, flow, at, kept)

    def missing_name(
        self, names: Collection[str], flow: Flow, at: Phase, kept: Collection[int]
    ) -> str | None:
        """Like `missing`, for names."""
        search = _Search(self, flow, kept)
        for name in sorted(names):
            phase = search.phase(name)
            if phase is None or phase > at:
                return name
        self.used_late |= search.late
        for index in sorted(search.taken):
            step = flow.steps[index]
            if id(step.node) not in self._taken:
                self._order += 1
                self._taken[id(step.node)] = (self._order, step, search.taken[index])
        return None

    def statements(self, phase: Phase) -> tuple[Statement, ...]:
        """The statements of a phase, in order."""
        ordered = sorted(
            (order, step) for order, step, step_phase in self._taken.values() if step_phase is phase
        )
        return tuple(
            Statement(step.text, step.place, tuple(sorted(step.binds)), "needed") for _, step in ordered
        )

    def is_loaded(self, name: str) -> bool:
        """Whether a name has a value after loading."""
        return name in self._loaded or name in KNOWN or "*" in self._loaded

    def times_loaded(self, name: str) -> int:
        """How many statements that are executed on loading bind a name."""
        return self._loaded.get(name, 0)

    def is_out(self, step: Unit) -> bool:
        """Whether a step is never executed."""
        return bool(self._effects.of(step.references.used) & NEVER)


class _Search:
    """The search for what one expression depends on."""

    def __init__(self, lifting: Lifting, flow: Flow, loaded_nodes: Collection[int]) -> None:
        self._lifting = lifting
        self._flow = flow
        self._loaded_nodes = loaded_nodes
        self._phases: dict[str, Phase | None] = {}
        self._looked_at: dict[int, Phase | None] = {}
        self.taken: dict[int, Phase] = {}
        self.late: set[str] = set()

    def phase(self, name: str) -> Phase | None:
        """The phase from which a name is available; None: never."""
        if name in self._lifting.late:
            self.late.add(name)
            return self._lifting.late[name]
        if name not in self._phases:
            self._phases[name] = Phase.START  # during the search: a name may refer to itself
            self._phases[name] = self._phase_of_bindings(name)
        return self._phases[name]

    def _phase_of_bindings(self, name: str) -> Phase | None:
        """The phase of a name that is not late, from everything that binds or changes it."""
        binders = self._flow.bound.get(name, [])
        loaded = [index for index in binders if self._is_loaded(index)]
        changers = [
            index for index in self._flow.changed.get(name, []) if self._take(index, False) is not None
        ]
        # anew: loading leaves a later value, or what changes the value may be executed several times
        anew = self._lifting.times_loaded(name) > len(loaded) or any(i in self.taken for i in changers)
        phases = [phase for index in binders if (phase := self._take(index, anew)) is not None]
        if not phases and not self._lifting.is_loaded(name):
            return None
        changes = [phase for index in changers if (phase := self._take(index, anew)) is not None]
        return max([*phases, *changes], default=Phase.START)

    def _is_loaded(self, index: int) -> bool:
        return id(self._flow.steps[index].node) in self._loaded_nodes

    def _take(self, index: int, anew: bool) -> Phase | None:
        """Take in a step with all that it needs, and return its phase; None if it cannot be executed.

        Args:
            index: The step's index.
            anew: Take it in although it is also executed on loading.
        """
        if index in self._looked_at:
            phase_before = self._looked_at[index]
            if anew and phase_before is not None:
                self.taken[index] = phase_before
            return phase_before
        step = self._flow.steps[index]
        if step.is_import and self._is_loaded(index):
            return Phase.START
        if self._lifting.is_out(step) or len(self.taken) > AT_ONCE:
            return None
        self._looked_at[index] = phase = Phase.START
        for name in sorted(step.eager - step.changes) + sorted(step.changes & self._lifting.late.keys()):
            needed = self.phase(name)
            if needed is None:
                self._looked_at[index] = None
                return None
            phase = max(phase, needed)
        self._looked_at[index] = phase
        if anew or phase > Phase.START or not self._is_loaded(index):
            self.taken[index] = phase
        for name in sorted(step.lazy):
            self.phase(name)
        return phase
