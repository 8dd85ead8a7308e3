"""How the loaders are made: what those depend on that the code makes, before anything is trained.

It is executed on a glimpse of the training images, so that transforms and batch sizes are known as they are
(`grader.worker.made_loaders`), where the source alone does not tell them.

Tests: tests/worker/test_made_loaders.py
"""

import ast
from collections.abc import Collection, Iterator

from grader.analysis.flow import arguments
from grader.analysis.recognized_roles import is_name_of_loaders
from grader.analysis.script.definitions import Definitions
from grader.analysis.script.dependence import Level
from grader.analysis.script.executed_code import ExecutedCode, changed
from grader.analysis.script.levels import ExecutedLevel, Levels
from grader.analysis.script.script_data import Substitution
from grader.analysis.script.script_inputs import ScriptInputs
from grader.analysis.script.training_calls import TrainingCalls
from grader.analysis.syntax_trees import text_of, walk
from grader.analysis.units import Unit
from grader.domain.analyzed_program import Loading, Statement

LOADERS = ("train_loader", "test_loader")
# levels, each with the position of the call that leads to the next
LevelPath = tuple[tuple[Level, int | None], ...]


class LoadingReader:
    """Finds how the loaders of one program are made."""

    def __init__(
        self, inputs: ScriptInputs, definitions: Definitions, training: TrainingCalls, levels: Levels
    ) -> None:
        self._inputs = inputs
        self._definitions = definitions
        self._training = training
        self._levels = levels

    def loading(self, executed: ExecutedLevel | None) -> Loading:
        """How the loaders are made, at top level or in a function that the script executes once.

        There is nothing if they depend on a training. Calls that load data are left as they are, and other
        effects outside the program are not.

        Args:
            executed: The script; None: there is none.
        """
        substitution = Substitution(
            self._inputs.effects,
            self._inputs.data,
            (),
            {},
            self._training.only_plots,
            self._training.trains_within,
            keeps_data=True,
        )
        found = (self._loading_at(path, substitution) for path in self._paths(executed, ()))
        return next(filter(None, found), Loading())

    def _paths(
        self, execution: ExecutedLevel | None, above: tuple[tuple[Level, int], ...]
    ) -> Iterator[LevelPath]:
        """Each level that is executed, behind those that lead to it with the position of the call."""
        function = execution.level.function if execution is not None else None
        level = (
            self._levels.body(function, frees_data=False)
            if function is not None
            else self._levels.top(frees_data=False)
        )
        yield (*above, (level, None))
        for position, inner in execution.inner.items() if execution is not None else ():
            yield from self._paths(inner, (*above, (level, position)))

    def _loading_at(self, path: LevelPath, substitution: Substitution) -> Loading | None:
        """How the loaders are made that the last level of a path binds; None: it binds none."""
        level = path[-1][0]
        names = tuple(dict.fromkeys(self._loaders(level)))
        missing: frozenset[str] = frozenset(names)
        executed: list[Unit] = []
        statements: list[Statement] = []
        before = 0
        for outer, call_at in reversed(path):
            if call_at is not None:
                bound = list(self._parameters(outer.units[call_at], missing))
                statements[:0] = [statement for statement, _ in bound]
                before += len(bound)
                missing = missing.difference(*(statement.binds for statement, _ in bound)).union(
                    *(used for _, used in bound)
                )
            positions, missing = outer.slice(missing, call_at, binding=outer.trains)
            if positions & outer.trains:
                return None
            units = [outer.units[index] for index in sorted(positions)]
            last = max(outer.trains, default=-1) if call_at is None else len(outer.units)
            before += sum(index <= last for index in positions)
            statements[:0] = [changed(unit, substitution)[1] for unit in units]
            executed += units
        if not statements:
            return None
        code = ExecutedCode(executed, self._inputs, self._definitions, self._training)
        definitions = [statement for _, statement in code.definitions_changed(substitution)]
        return Loading((*definitions, *statements), names, len(definitions) + before)

    def _parameters(
        self, statement: Unit, names: Collection[str]
    ) -> Iterator[tuple[Statement, frozenset[str]]]:
        """What binds these parameters of a called function to their arguments, and the names that it uses."""
        call = getattr(statement.node, "value", None)
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
            return
        node = self._definitions.function(call.func.id)
        for name, argument in arguments(node, call).items() if node is not None else ():
            if name in names:
                text = f"{name} = {text_of(argument)}"
                used = frozenset(inner.id for inner in walk(argument) if isinstance(inner, ast.Name))
                yield Statement(text, statement.place, (name,), "needed"), used

    def _loaders(self, level: Level) -> Iterator[str]:
        """The names of loaders, and of collections of them, that a level binds.

        First those that a training uses, then those that are bound last.
        """
        named = {name for index in level.trains for name in level.uses(level.units[index])}
        bound = [
            name
            for statement in reversed(level.units)
            for name in (() if statement.is_definition or statement.is_import else sorted(statement.binds))
            if self._inputs.data.get(name) in LOADERS or is_name_of_loaders(name)
        ]
        yield from sorted(bound, key=lambda name: name not in named)
