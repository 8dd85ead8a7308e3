"""The levels of a program, each as what a slice is taken of: the top level, and the bodies of functions.

What only plots or prints is left out, and `if` blocks are opened where their condition can be read off the
source.

Tests: tests/training/test_replay.py, tests/analysis/script/test_which_model_counts.py
"""

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from grader.analysis.constant_values import Unknown, value
from grader.analysis.effects import Effect
from grader.analysis.script.definitions import Definitions
from grader.analysis.script.dependence import Level, alive
from grader.analysis.script.partial_text import bound_once
from grader.analysis.script.script_data import EFFECTS_OUTSIDE
from grader.analysis.script.script_inputs import ScriptInputs
from grader.analysis.script.training_calls import TrainingCalls
from grader.analysis.syntax_trees import calls, statements_within, walk
from grader.analysis.units import Unit, segment, unit


@dataclass
class ExecutedLevel:
    """The part of a level that is executed.

    Attributes:
        positions: Of its statements.
        inner: Position of a statement -> what is executed of the function that it calls.
    """

    level: Level
    positions: set[int] = field(default_factory=set)
    inner: dict[int, "ExecutedLevel"] = field(default_factory=dict)

    @property
    def units(self) -> list[Unit]:
        """The statements, in their order."""
        return [self.level.units[index] for index in sorted(self.positions)]

    def all_levels(self) -> Iterator["ExecutedLevel"]:
        """This one and those within."""
        yield self
        for inner in self.inner.values():
            yield from inner.all_levels()


class Levels:
    """Makes the levels of one program.

    Attributes:
        values: Name at top level -> the expression that it is bound to, if it is bound once.
    """

    def __init__(self, inputs: ScriptInputs, definitions: Definitions, training: TrainingCalls) -> None:
        self.values = bound_once(inputs.units)
        self._inputs = inputs
        self._definitions = definitions
        self._training = training
        self._looking_up: set[str] = set()
        self._plotting_functions = frozenset(name for name in inputs.kinds if training.plots(name))

    def top(self, *, frees_data: bool = True) -> Level:
        """The top level.

        Args:
            frees_data: The names of data need nothing, since the grader brings its own.
        """
        return self._level(self._inputs.units, None, frees_data=frees_data)

    def body(self, function: str, *, frees_data: bool = True) -> Level:
        """The body of a function; see `top`."""
        home = self._definitions.unit(function)
        assert isinstance(home.node, ast.FunctionDef)
        units = [_remade(node, home) for node in home.node.body]
        return self._level(units, function, frees_data=frees_data)

    def _level(self, units: Sequence[Unit], function: str | None, *, frees_data: bool) -> Level:
        inputs = self._inputs
        free_names = {*inputs.kinds, *(inputs.data if frees_data else ())}
        statements: list[Unit] = []
        plotted: list[tuple[int, frozenset[str]]] = []
        for statement in alive(units, _remade, self._constant):
            if not self._is_silent(statement):
                statements.append(statement)
            plotted += [(max(len(statements) - 1, 0), names) for names in self._plotted_in(statement)]
        return Level(
            statements,
            function,
            inputs.effects,
            inputs.reader,
            self._definitions,
            free_names,
            self._training.trains,
            plotted,
        )

    def _plotted_in(self, statement: Unit) -> Iterator[frozenset[str]]:
        """The names that each call of a graded plotting function is given in a statement."""
        for node in () if statement.is_definition else statements_within(statement.node):
            for call in calls(node):
                if isinstance(call.func, ast.Name) and call.func.id in self._plotting_functions:
                    yield frozenset(name.id for name in walk(call) if isinstance(name, ast.Name))

    def _is_silent(self, statement: Unit) -> bool:
        """Whether a statement only plots, prints or has other effects outside the program."""
        if not isinstance(statement.node, ast.Expr) or not isinstance(statement.node.value, ast.Call):
            return False
        call = statement.node.value
        outputs = bool(self._inputs.effects.of_call(call) & (EFFECTS_OUTSIDE & ~Effect.FILES))
        if not outputs and not self._training.only_plots(call):
            return False
        given = [*call.args, *(keyword.value for keyword in call.keywords)]
        return not any(map(self._training.trains_within, given))

    def _constant(self, node: ast.expr) -> object:
        """The value of a top-level name, if it can be read off the source."""
        if not isinstance(node, ast.Name) or node.id not in self.values or node.id in self._looking_up:
            raise Unknown
        self._looking_up.add(node.id)
        try:
            return value(self.values[node.id], self._constant)
        finally:
            self._looking_up.discard(node.id)


def _remade(node: ast.stmt, home: Unit) -> Unit:
    """A statement within another as one of its own."""
    return replace(unit(node, home.cell, segment(node, home.cell.lines), {}, home.index), index=home.index)
