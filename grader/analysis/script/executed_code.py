"""What is true of the code that a training script executes: its loops over epochs, and what it decides by.

It takes the executed statements as they are; `training_script` decides which these are.

Tests: tests/training/test_replay.py, tests/analysis/script/test_which_model_counts.py
"""

import ast
import itertools
from collections.abc import Iterator, Sequence
from functools import cached_property

from grader.analysis.recognized_roles import role_by_name
from grader.analysis.rewriting import Edit, applied
from grader.analysis.script.definitions import Definitions
from grader.analysis.script.measured_choices import (
    chooses_in_training,
    chooses_outside_training,
    measures,
)
from grader.analysis.script.model_that_counts import is_built_once
from grader.analysis.script.script_data import Substitution
from grader.analysis.script.script_inputs import ScriptInputs
from grader.analysis.script.training_calls import TrainingCalls
from grader.analysis.syntax_trees import LOOPS, calls, own_calls, walk
from grader.analysis.units import Unit, used_names
from grader.domain.analyzed_program import Place, Statement

SEEDING = frozenset({"torch.manual_seed", "random.seed", "numpy.random.seed", "torch.cuda.manual_seed_all"})


class ExecutedCode:
    """Statements at top level that are executed, with the functions and classes that they use."""

    def __init__(
        self,
        executed: Sequence[Unit],
        inputs: ScriptInputs,
        definitions: Definitions,
        training: TrainingCalls,
    ) -> None:
        self._executed = tuple(executed)
        self._inputs = inputs
        self._definitions = definitions
        self._training = training

    @cached_property
    def _reached(self) -> dict[str, Unit]:
        """Name of each function and class that is used -> the statement that defines it."""
        names = self._definitions.used(used_names(self._executed, lazy=True))
        return {name: self._definitions.unit(name) for name in sorted(names) if name in self._definitions}

    @cached_property
    def _used(self) -> list[Unit]:
        """The functions and classes that are used, but for those that are graded."""
        return [home for name, home in self._reached.items() if name not in self._inputs.kinds]

    @cached_property
    def _with_functions(self) -> list[Unit]:
        """What is executed, and the functions and classes that it uses, in the order of the source."""
        return sorted([*self._executed, *self._used], key=lambda home: home.index)

    def definitions_changed(self, substitution: Substitution) -> Iterator[tuple[int, Statement]]:
        """The functions and classes that are used, by index, as far as something in them is replaced."""
        for home in self._used:
            if edits := substitution.edits(home.node):
                yield edited(home, edits)

    @cached_property
    def epoch_loops(self) -> list[tuple[ast.For | ast.While, Unit]]:
        """The loops over epochs, or around such loops, each with the statement that holds it."""
        return [
            (node, statement)
            for statement in self._with_functions
            for node in walk(statement.node)
            if isinstance(node, LOOPS) and self._is_epoch_loop(node)
        ]

    def _own_evaluators(self) -> Iterator[str]:
        """Functions that look at the test split, and train nothing."""
        for statement in self._inputs.units:
            node = statement.node
            if not isinstance(node, ast.FunctionDef) or any(map(self._training.trains, calls(node))):
                continue
            if measures(node, self._inputs.data):
                yield node.name

    def last_deciding(self) -> int | None:
        """The index of the last statement in which something is decided by what is measured; None if none is.

        It is the last statement of all in three cases. A function decides, which may be called anywhere. Or
        sizes of the data are read before it, which differ when more images are trained on. Or nothing is
        trained afterwards.
        """
        executed, loops = self._executed, list(self._training_loops())
        measuring = self._definitions.reaching({*self._inputs.evaluators, *self._own_evaluators()})
        deciders = [
            statement
            for statement, loop in loops
            if chooses_in_training(
                loop, self._inputs.data, measuring, over_settings=not self._is_epoch_loop(loop)
            )
        ]
        nodes = [statement.node for statement in executed]
        training = {id(loop) for _, loop in loops}
        deciders += [
            statement
            for position, statement in enumerate(executed)
            if not statement.is_definition
            and chooses_outside_training(
                statement.node, nodes[:position], self._inputs.data, measuring, loops=training
            )
        ]
        if not deciders:
            return None
        last_index = max(statement.index for statement in deciders)
        earlier = [statement for statement in executed if statement.index <= last_index]
        later = [statement for statement in executed if statement.index > last_index]
        if (
            any(statement.is_definition for statement in deciders)
            or any(map(self._takes_sizes, earlier))
            or not any(self._training.trains(call) for statement in later for call in calls(statement.node))
        ):
            return max(statement.index for statement in executed)
        return last_index

    def _takes_sizes(self, statement: Unit) -> bool:
        """Whether a statement asks how large the data are."""
        return any(
            isinstance(call.func, ast.Name)
            and call.func.id == "len"
            and {name.id for name in walk(call) if isinstance(name, ast.Name)} & self._inputs.data.keys()
            for call in walk(statement.node)
            if isinstance(call, ast.Call)
        )

    def _training_loops(self) -> Iterator[tuple[Unit, ast.For | ast.While]]:
        """The loops that train, those over settings among them, each with the statement that holds it."""
        for statement in self._with_functions:
            for node in walk(statement.node):
                if isinstance(node, LOOPS) and any(map(self._training.trains, calls(node))):
                    yield statement, node

    def seeds(self) -> Iterator[Place]:
        """Where random numbers are seeded in what is executed."""
        for statement in self._with_functions:
            for call in walk(statement.node):
                if isinstance(call, ast.Call) and SEEDING & {*self._inputs.aliases.names_of(call.func)}:
                    yield statement.cell.place(call.lineno)

    def _is_epoch_loop(self, node: ast.For | ast.While) -> bool:
        if isinstance(node, ast.For) and any(
            isinstance(name, ast.Name)
            and (name.id in self._inputs.data or (role_by_name(name.id) or "").endswith("loader"))
            for name in walk(node.iter)
        ):
            return False
        if any(map(self._training.trains, itertools.filterfalse(self._training.is_step, own_calls(node)))):
            return True
        inner = [loop for loop in walk(node) if isinstance(loop, LOOPS) and loop is not node]
        return any(
            isinstance(call.func, ast.Attribute)
            and (call.func.attr == "backward" or (call.func.attr == "step" and call.args))  # with a closure
            for loop in inner
            for call in own_calls(loop)
        )

    def is_single(self) -> bool:
        """Whether exactly one model is built in all that is executed."""
        definitions = {name: home.node for name, home in self._reached.items()}
        return is_built_once(
            self._inputs.model_class or "", [statement.node for statement in self._executed], definitions
        )


def changed(statement: Unit, substitution: Substitution) -> tuple[int, Statement]:
    """A statement's index, and what is executed for it."""
    return edited(statement, substitution.edits(statement.node))


def edited(statement: Unit, edits: Sequence[Edit]) -> tuple[int, Statement]:
    """A statement's index, and the statement after some edits of its text."""
    text = statement.text
    if edits:
        text = applied(text, statement.line, statement.node.col_offset, edits)
    return statement.index, Statement(text, statement.place, tuple(sorted(statement.binds)), "needed")
