"""The training script: the statements that the model's weights depend on, in their order.

This module decides what is executed, and what is left alone as another model's training. Where nothing
trains, it gives the reason, and a person decides on the points. `training_calls` tells what trains,
`model_that_counts` which model counts, and `executed_code` what is true of the code that is executed.

Tests: tests/training/test_replay.py, tests/analysis/script/test_which_model_counts.py
"""

import ast
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from grader.analysis.effects import Effect
from grader.analysis.recognized_roles import bindings
from grader.analysis.script.definitions import Definitions
from grader.analysis.script.dependence import Level
from grader.analysis.script.executed_code import ExecutedCode, changed
from grader.analysis.script.levels import ExecutedLevel, Levels
from grader.analysis.script.made_loading import LoadingReader
from grader.analysis.script.model_that_counts import Choice, ModelThatCounts
from grader.analysis.script.script_data import Substitution
from grader.analysis.script.script_inputs import ScriptInputs
from grader.analysis.script.training_calls import TrainingCalls
from grader.analysis.syntax_trees import calls, statements_within, walk
from grader.analysis.units import Unit
from grader.domain.analyzed_program import Loading, Loop, Omission, Script

MOST_OPENED = 4  # functions nested in each other
NOTHING_TRAINS = "no statement trains a model of the graded class"


@dataclass(frozen=True)
class Built:
    """Where the model that counts is made.

    Attributes:
        statement: The statement that makes it.
        function: The top-level function that holds the statement; None at top level.
        chosen: Its arguments depend on the outcome of another training.
    """

    name: str
    expression: ast.expr
    statement: ast.stmt
    function: str | None
    chosen: bool = False


class ScriptReader:
    """Reads the training script of one program."""

    def __init__(self, inputs: ScriptInputs) -> None:
        self._inputs = inputs
        self._definitions = Definitions(inputs.units)
        self._training = TrainingCalls(inputs, self._definitions)
        self._levels = Levels(inputs, self._definitions, self._training)
        self._models = ModelThatCounts(
            inputs.aliases,
            self._definitions,
            self._levels.values,
            inputs.checkpoint,
            inputs.file_stem,
            inputs.final,
        )
        self.choice: Choice | None = None
        self.built: Built | None = None
        self._executed: ExecutedLevel | None = None

    def script(self) -> Script:
        """The script; if nothing is trained, it has no statements but the reason."""
        top = self._levels.top()
        execution = self._executed = self._execution(top, None, ()) or self._all_that_trains(top)
        if execution is None:
            return Script(missing=NOTHING_TRAINS)
        assert self.choice is not None
        self.built = self._construction(execution)
        code = ExecutedCode(execution.units, self._inputs, self._definitions, self._training)
        substitution = Substitution(
            self._inputs.effects,
            self._inputs.data,
            {id(loop) for loop, _ in code.epoch_loops},
            dict(self._taken_out(execution)),
            self._training.only_plots,
            self._training.trains_within,
        )
        statements = [
            *code.definitions_changed(substitution),
            *(changed(statement, substitution) for statement in execution.units),
        ]
        statements.sort(key=lambda pair: pair[0])
        deciding = code.last_deciding()
        return Script(
            statements=tuple(statement for _, statement in statements),
            final=self._final(execution),
            saved_as=self._inputs.checkpoint,
            model=self.choice.model or "",
            model_class=self._inputs.model_class or "",
            trainer=self._inputs.trainer or "",
            data=dict(self._inputs.top_data),
            why=self.choice.why,
            left_alone=tuple(
                Omission(
                    statement.place, statement.first_line, "it trains another model than the one that counts"
                )
                for level in execution.all_levels()
                for statement in self._left_alone(level)
            ),
            loops=tuple(
                Loop(home.cell.place(loop.lineno), loop.end_lineno or loop.lineno)
                for loop, home in code.epoch_loops
            ),
            seeds=tuple(code.seeds()),
            single=code.is_single(),
            validates=deciding is not None,
            deciding=sum(index <= deciding for index, _ in statements) if deciding is not None else 0,
            may_stop=any(
                isinstance(node, ast.Break | ast.While | ast.Raise | ast.Return)
                for loop, _ in code.epoch_loops
                for node in walk(loop)
            ),
        )

    def loading(self) -> Loading:
        """How the loaders of the script are made."""
        reader = LoadingReader(self._inputs, self._definitions, self._training, self._levels)
        return reader.loading(self._executed)

    def _final(self, execution: ExecutedLevel) -> str:
        """The expression that gives the model after the script; empty if the script saves it."""
        assert self.choice is not None
        if self.choice.is_saved or execution.inner or self.choice.model is None:
            return ""
        return self.choice.model

    def _execution(
        self, level: Level, needed: frozenset[str] | None, above: tuple[str, ...]
    ) -> ExecutedLevel | None:
        """The part of a level that is executed for the model that counts, or for the names needed of it."""
        execution = ExecutedLevel(level)
        if needed is not None:
            execution.positions = _needed(level, needed)
            return execution
        choice = self._models.chosen(level)
        chosen_at = choice.position if choice is not None else None
        opened = chosen_at if chosen_at is not None else max(level.trains, default=None)
        if opened is not None and (function := self._opened(level.units[opened], above)) is not None:
            inner = self._execution(self._levels.body(function), None, (*above, function))
            if inner is not None:
                needed_here = level.uses(level.units[opened])
                execution.positions = {opened, *_needed(level, needed_here, opened)}
                execution.inner[opened] = inner
                self._open_others(execution, above)
                return execution
        if choice is None:
            return None
        self.choice = choice
        if choice.is_saved and chosen_at is not None:
            needed_here = level.uses(level.units[chosen_at])
            execution.positions = {chosen_at, *_needed(level, needed_here, chosen_at)}
        else:
            execution.positions = _needed(level, choice.names, chosen_at)
        if not execution.positions & level.trains:
            return None
        self._open_others(execution, above)
        return execution

    def _all_that_trains(self, level: Level) -> ExecutedLevel | None:
        """All that trains, where no name at top level holds a model: what is saved tells which one counts.

        As when a method of the student's own builds, trains and saves.
        """
        builds = any(
            isinstance(node, ast.Call) and self._inputs.reader.is_model(node)
            for unit in self._inputs.units
            for node in walk(unit.node)
        )
        positions = {index for index in level.trains if self._trains_a_model(level.units[index])}
        if not builds or not positions:
            return None
        self.choice = Choice(None, frozenset(), True, None, "it is saved under its name, or trained last")
        execution = ExecutedLevel(level, positions)
        for index in sorted(positions):
            execution.positions |= level.slice(level.uses(level.units[index]), index)[0]
        return execution

    def _open_others(self, execution: ExecutedLevel, above: tuple[str, ...]) -> None:
        """In functions that build and return what is needed, execute only what the result depends on."""
        for index in sorted(execution.positions - execution.inner.keys()):
            function = self._opened(execution.level.units[index], above)
            if function is None:
                continue
            body = self._levels.body(function)
            returned = {
                name.id
                for statement in body.units
                for node in statements_within(statement.node)
                if isinstance(node, ast.Return) and node.value is not None
                for name in walk(node.value)
                if isinstance(name, ast.Name)
            }
            if any(name in body.trained for name in returned):
                inner = self._execution(body, frozenset(returned), (*above, function))
                if inner is not None:
                    execution.inner[index] = inner

    def _opened(self, statement: Unit, above: tuple[str, ...]) -> str | None:
        """The function that a statement calls, if it builds and trains, and is called only there."""
        node = statement.node
        expression = node.value if isinstance(node, ast.Expr | ast.Assign | ast.AnnAssign) else None
        if not isinstance(expression, ast.Call) or not isinstance(expression.func, ast.Name):
            return None
        name = expression.func.id
        if self._definitions.function(name) is None or name in self._inputs.kinds or name in above:
            return None
        effect = self._inputs.effects.of_function(name)
        if not effect & Effect.TRAIN or not effect & Effect.MODEL or len(above) >= MOST_OPENED:
            return None
        times = sum(
            isinstance(other.func, ast.Name) and other.func.id == name
            for caller in self._inputs.units
            for other in walk(caller.node)
            if isinstance(other, ast.Call)
        )
        return name if times == 1 else None

    def _left_alone(self, execution: ExecutedLevel) -> Iterator[Unit]:
        for index in sorted(execution.level.trains - execution.positions):
            statement = execution.level.units[index]
            if self._trains_a_model(statement):
                yield statement

    def _taken_out(self, execution: ExecutedLevel) -> Iterator[tuple[int, frozenset[str]]]:
        """What is not executed of functions that are: what is left alone, and what depends on it alone.

        Returns:
            (`id` of a statement's node, the names that it would bind and that are used all the same).
        """
        for inner in execution.all_levels():
            if inner is not execution:
                yield from self._taken_out_at(inner)

    def _taken_out_at(self, execution: ExecutedLevel) -> Iterator[tuple[int, frozenset[str]]]:
        level, left_alone = execution.level, list(self._left_alone(execution))
        taken: list[Unit] = []
        lost: set[str] = set()
        used: set[str] = set()
        for index, statement in enumerate(level.units if left_alone else ()):
            if statement.is_definition or statement.is_import:
                continue
            depends = level.uses(statement) & lost and not isinstance(statement.node, ast.Return)
            if statement in left_alone or (depends and index not in execution.positions):
                taken.append(statement)
                lost |= statement.binds | level.changes(statement)
            elif index in execution.positions:
                lost -= statement.binds
            else:
                lost -= statement.binds
                used |= {node.id for node in walk(statement.node) if isinstance(node, ast.Name)}
        for statement in taken:
            yield id(statement.node), statement.binds & used

    def _trains_a_model(self, statement: Unit) -> bool:
        """Whether a statement steps an optimizer, and does not only measure."""
        return any(
            self._training.trains(call) for node in statements_within(statement.node) for call in calls(node)
        )

    def _construction(self, execution: ExecutedLevel) -> "Built | None":
        """Where the model that counts is made: by the last statement that binds it to a new model."""
        assert self.choice is not None
        constructions: list[Built] = []
        for level in execution.all_levels():
            for index in sorted(level.positions):
                statement = level.level.units[index]
                for name, expression in bindings(statement.node):
                    if expression is not None and self._inputs.reader.is_model(expression):
                        names = {node.id for node in walk(expression) if isinstance(node, ast.Name)}
                        chosen = bool(level.level.slice(names, index)[0] & level.level.trains)
                        constructions.append(
                            Built(name, expression, statement.node, level.level.function, chosen)
                        )
        candidates = [
            construction for construction in constructions if construction.name in self.choice.names
        ]
        return next(reversed(candidates or constructions), None)


def _needed(level: Level, names: Collection[str], end: int | None = None) -> set[int]:
    """The positions of what names depend on after a statement; None: after all of them.

    Where a function may return before that, it depends on that, too.
    """
    positions = set(level.slice(names, end)[0])
    for index in range(max(positions, default=0) if end is None else end):
        statement = level.units[index]
        if index not in positions and not statement.is_definition and _may_leave(statement.node):
            positions |= {index, *level.slice(level.uses(statement), index)[0]}
    return positions


def _may_leave(node: ast.stmt) -> bool:
    """Whether a function may return in a statement."""
    return any(isinstance(inner, ast.Return) for inner in statements_within(node))
