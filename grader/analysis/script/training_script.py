"""The training script: the statements that the model's weights depend on, in their order.

Training is recognized by use: `step`, `backward`, `fit`, the graded training function, or code that calls
these. This module decides what is executed, what is left alone as another model's training, and which loops
are over epochs. Where nothing trains, it gives the reason, and a person decides on the points.
`model_that_counts` decides which model counts.

Tests: tests/training/test_replay.py, tests/analysis/script/test_which_model_counts.py
"""

import ast
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from grader.analysis.constant_values import Unknown, value
from grader.analysis.effects import Aliases, Effect, Effects
from grader.analysis.flow import arguments
from grader.analysis.recognized_roles import RoleReader, bindings, is_name_of_loaders, role_by_name
from grader.analysis.rewriting import applied
from grader.analysis.script.dependence import Definitions, Level, alive
from grader.analysis.script.model_that_counts import Choice, ModelThatCounts, is_built_once
from grader.analysis.script.partial_text import bound_once
from grader.analysis.script.script_data import (
    EFFECTS_OUTSIDE,
    Substitution,
    chooses_in_training,
    chooses_outside_training,
    measures,
)
from grader.analysis.syntax_trees import DEFINITIONS, calls, children, statements_within, walk
from grader.analysis.units import Unit, segment, unit
from grader.domain.analyzed_program import Loading, Loop, Omission, Place, Script, Statement

LOOPS = (ast.For, ast.While)
SEEDING = frozenset({"torch.manual_seed", "random.seed", "numpy.random.seed", "torch.cuda.manual_seed_all"})
MOST_OPENED = 4  # functions nested in each other
LOADERS = ("train_loader", "test_loader")
NOTHING_TRAINS = "no statement trains a model of the graded class"


@dataclass(frozen=True)
class ScriptInputs:
    """What a script is read from.

    Attributes:
        units: The program.
        kinds: Graded names, as they are defined -> `class` or `function`.
        model_class: The graded class of the model, as it is defined.
        trainer: The graded function that trains for an epoch, as it is defined.
        evaluators: The graded functions that measure.
        data: Names of data (loaders, data sets, class names), in functions too -> role.
        top_data: The names of data at top level -> role.
        checkpoint: What the name of the checkpoint's file contains.
        file_stem: What the names of all files that are handed in contain.
        final: The variable that counts, if the assignment states one.
    """

    units: tuple[Unit, ...]
    aliases: Aliases
    effects: Effects
    reader: RoleReader
    kinds: Mapping[str, str]
    model_class: str | None
    trainer: str | None
    evaluators: tuple[str, ...]
    data: Mapping[str, str]
    top_data: Mapping[str, str]
    checkpoint: str
    file_stem: str
    final: str


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


@dataclass
class _Execution:
    """The part of a level that is executed."""

    level: Level
    positions: set[int] = field(default_factory=set)
    inner: dict[int, "_Execution"] = field(default_factory=dict)


class ScriptReader:
    """Reads the training script of one program."""

    def __init__(self, inputs: ScriptInputs) -> None:
        self._inputs = inputs
        self._definitions = Definitions(inputs.units)
        self._values = bound_once(inputs.units)
        self._looking_up: set[str] = set()
        self._models = ModelThatCounts(
            inputs.aliases,
            self._definitions,
            self._values,
            inputs.checkpoint,
            inputs.file_stem,
            inputs.final,
        )
        self._plotting_functions = frozenset(name for name in inputs.kinds if self._plots(name))
        self.choice: Choice | None = None
        self.built: Built | None = None
        self._executed: _Execution | None = None

    def script(self) -> Script:
        """The script; if nothing is trained, it has no statements but the reason."""
        top = self._level(self._inputs.units, None)
        execution = self._executed = self._execution(top, None, ()) or self._all_that_trains(top)
        if execution is None:
            return Script(missing=NOTHING_TRAINS)
        assert self.choice is not None
        self.built = self._construction(execution)
        left_alone = list(self._left_alone(execution))
        executed = [top.units[index] for index in sorted(execution.positions)]
        loops = list(self._epoch_loops(executed))
        measuring = self._definitions.reaching({*self._inputs.evaluators, *self._own_evaluators()})
        substitution = Substitution(
            self._inputs.effects,
            self._inputs.data,
            {id(loop) for loop, _ in loops},
            dict(self._taken_out(execution)),
            self._only_plots,
            self._trains_within,
        )
        statements = [*self._definitions_changed(executed, substitution)]
        statements += [
            changed for statement in executed if (changed := _statement(statement, substitution)) is not None
        ]
        statements.sort(key=lambda pair: pair[0])
        deciding = self._last_deciding(executed, measuring)
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
                for statement in left_alone
            ),
            loops=tuple(
                Loop(home.cell.place(loop.lineno), loop.end_lineno or loop.lineno) for loop, home in loops
            ),
            seeds=tuple(self._seeds(executed)),
            single=self._is_single(executed),
            validates=deciding is not None,
            deciding=sum(index <= deciding for index, _ in statements) if deciding is not None else 0,
            may_stop=any(
                isinstance(node, ast.Break | ast.While | ast.Raise | ast.Return)
                for loop, _ in loops
                for node in walk(loop)
            ),
        )

    def loading(self) -> Loading:
        """How the loaders are made, at top level or in a function that the script executes once.

        There is nothing if they depend on a training. Calls that load data are left as they are, and other
        effects outside the program are not.
        """
        substitution = Substitution(
            self._inputs.effects,
            self._inputs.data,
            (),
            {},
            self._only_plots,
            self._trains_within,
            keeps_data=True,
        )
        found = (self._loading_at(path, substitution) for path in self._paths(self._executed, ()))
        return next(filter(None, found), Loading())

    def _paths(
        self, execution: _Execution | None, above: tuple[tuple[Level, int], ...]
    ) -> Iterator[tuple[tuple[Level, int | None], ...]]:
        """Each level that is executed, behind those that lead to it with the position of the call."""
        function = execution.level.function if execution is not None else None
        level = (
            self._body(function, frees_data=False)
            if function is not None
            else self._level(self._inputs.units, None, frees_data=False)
        )
        yield (*above, (level, None))
        for position, inner in execution.inner.items() if execution is not None else ():
            yield from self._paths(inner, (*above, (level, position)))

    def _loading_at(
        self, path: tuple[tuple[Level, int | None], ...], substitution: Substitution
    ) -> Loading | None:
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
            made = [statement for unit in units if (statement := _statement(unit, substitution)) is not None]
            last = max(outer.trains, default=-1) if call_at is None else len(outer.units)
            before += sum(index <= last for index in positions)
            statements[:0] = [statement for _, statement in made]
            executed += units
        if not statements:
            return None
        changed = [statement for _, statement in self._definitions_changed(executed, substitution)]
        return Loading((*changed, *statements), names, len(changed) + before)

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
                text = f"{name} = {ast.unparse(argument)}"
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

    def _final(self, execution: _Execution) -> str:
        """The expression that gives the model after the script; empty if the script saves it."""
        assert self.choice is not None
        if self.choice.is_saved or execution.inner or self.choice.model is None:
            return ""
        return self.choice.model

    # --- levels -------------------------------------------------------------------------------------------

    def _level(self, units: Sequence[Unit], function: str | None, *, frees_data: bool = True) -> Level:
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
            self.steps,
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
        if not outputs and not self._only_plots(call):
            return False
        given = [*call.args, *(keyword.value for keyword in call.keywords)]
        return not any(map(self._trains_within, given))

    def _trains_within(self, expression: ast.expr) -> bool:
        """Whether a training is computed in an expression, by a graded function, too: `plot(fit(model))`."""
        return any(
            self.steps(call) or (isinstance(call.func, ast.Name) and self._deep_steps(call.func.id, set()))
            for call in walk(expression)
            if isinstance(call, ast.Call)
        )

    def _execution(
        self, level: Level, needed: frozenset[str] | None, above: tuple[str, ...]
    ) -> _Execution | None:
        """The part of a level that is executed for the model that counts, or for the names needed of it."""
        execution = _Execution(level)
        if needed is not None:
            execution.positions = _needed(level, needed)
            return execution
        choice = self._models.chosen(level)
        chosen_at = choice.position if choice is not None else None
        opened = chosen_at if chosen_at is not None else max(level.trains, default=None)
        if opened is not None and (function := self._opened(level.units[opened], above)) is not None:
            inner = self._execution(self._body(function), None, (*above, function))
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

    def _all_that_trains(self, level: Level) -> _Execution | None:
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
        execution = _Execution(level, positions)
        for index in sorted(positions):
            execution.positions |= level.slice(level.uses(level.units[index]), index)[0]
        return execution

    def _open_others(self, execution: _Execution, above: tuple[str, ...]) -> None:
        """In functions that build and return what is needed, execute only what the result depends on."""
        for index in sorted(execution.positions - execution.inner.keys()):
            function = self._opened(execution.level.units[index], above)
            if function is None:
                continue
            body = self._body(function)
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

    def _body(self, function: str, *, frees_data: bool = True) -> Level:
        home = self._definitions.unit(function)
        assert isinstance(home.node, ast.FunctionDef)
        units = [_remade(node, home) for node in home.node.body]
        return self._level(units, function, frees_data=frees_data)

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

    def _left_alone(self, execution: _Execution) -> Iterator[Unit]:
        for level in self._levels(execution):
            yield from self._left_alone_at(level)

    def _left_alone_at(self, execution: _Execution) -> Iterator[Unit]:
        for index in sorted(execution.level.trains - execution.positions):
            statement = execution.level.units[index]
            if self._trains_a_model(statement):
                yield statement

    def _taken_out(self, execution: _Execution) -> Iterator[tuple[int, frozenset[str]]]:
        """What is not executed of functions that are: what is left alone, and what depends on it alone.

        Returns:
            (`id` of a statement's node, the names that it would bind and that are used all the same).
        """
        for inner in execution.inner.values():
            yield from self._taken_out_at(inner)
            yield from self._taken_out(inner)

    def _taken_out_at(self, execution: _Execution) -> Iterator[tuple[int, frozenset[str]]]:
        level, left_alone = execution.level, list(self._left_alone_at(execution))
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
        return any(self.steps(call) for node in statements_within(statement.node) for call in calls(node))

    # --- what is executed ---------------------------------------------------------------------------------

    def _definitions_changed(
        self, executed: Sequence[Unit], substitution: Substitution
    ) -> Iterator[tuple[int, Statement]]:
        """The functions and classes that the script uses, as far as something in them is replaced."""
        names: set[str] = set()
        for statement in executed:
            names |= statement.eager | statement.lazy
        for name in sorted(self._definitions.used(names)):
            if name not in self._definitions or name in self._inputs.kinds:
                continue
            home = self._definitions.unit(name)
            edits = substitution.edits(home.node)
            if edits:
                text = applied(home.text, home.line, home.node.col_offset, edits)
                yield home.index, Statement(text, home.place, tuple(sorted(home.binds)), "needed")

    def steps(self, call: ast.Call) -> bool:
        """Whether a call trains: a step, a backward pass, a function that does, or is handed over."""
        return self._steps(call, set())

    def _steps(self, call: ast.Call, methods: set[str]) -> bool:
        """The same; methods of these names are looked into already, and may call each other in circles."""
        name = call.func
        if any(self._deep_steps(handed, set()) for handed in _handed_over(call)):
            return True
        if isinstance(name, ast.Attribute):
            if name.attr in ("backward", "step", "fit"):
                return True
            if name.attr in methods:
                return False
            methods.add(name.attr)
            return any(
                self._steps(inner, methods)
                for _, method in self._definitions.methods(name.attr)
                for inner in walk(method)
                if isinstance(inner, ast.Call)
            )
        if not isinstance(name, ast.Name):
            return False
        if name.id == self._inputs.trainer:
            return True
        if name.id in self._inputs.kinds or name.id not in self._definitions:
            return False
        return bool(self._inputs.effects.of_function(name.id) & Effect.TRAIN) and self._deep_steps(
            name.id, set()
        )

    def _deep_steps(self, function: str, visited: set[str]) -> bool:
        """Whether a function steps, through what it calls: measuring alone is not training."""
        if function in visited:
            return False
        visited.add(function)
        if function == self._inputs.trainer:
            return True
        if self._inputs.kinds.get(function) == "class" or function not in self._definitions:
            return False
        return self._steps_within(self._definitions.unit(function).node, visited)

    def _steps_within(self, node: ast.AST, visited: set[str]) -> bool:
        """Whether code steps when it is executed, through functions and methods that it calls."""
        for call in walk(node):
            if not isinstance(call, ast.Call):
                continue
            called = [call.func.id] if isinstance(call.func, ast.Name) else []
            if any(self._deep_steps(name, visited) for name in (*called, *_handed_over(call))):
                return True
            if not isinstance(call.func, ast.Attribute):
                continue
            name = call.func.attr
            if name in ("backward", "step", "fit"):
                return True
            if f".{name}" not in visited:
                visited.add(f".{name}")
                if any(self._steps_within(method, visited) for _, method in self._definitions.methods(name)):
                    return True
        return False

    def _epoch_loops(self, executed: Sequence[Unit]) -> Iterator[tuple[ast.For | ast.While, Unit]]:
        """The loops over epochs, or around such loops, in what is executed and in the functions it uses."""
        for statement in self._with_functions(executed):
            for node in walk(statement.node):
                if isinstance(node, LOOPS) and self._is_epoch_loop(node):
                    yield node, statement

    def _own_evaluators(self) -> Iterator[str]:
        """Functions that look at the test split, and train nothing."""
        for statement in self._inputs.units:
            if not isinstance(statement.node, ast.FunctionDef) or any(map(self.steps, calls(statement.node))):
                continue
            if measures(statement.node, self._inputs.data):
                yield statement.node.name

    def _last_deciding(self, executed: Sequence[Unit], measuring: frozenset[str]) -> int | None:
        """The index of the last statement in which something is decided by what is measured; None if none is.

        It is the last statement of all in three cases. A function decides, which may be called anywhere. Or
        sizes of the data are read before it, which differ when more images are trained on. Or nothing is
        trained afterwards.
        """
        loops = list(self._training_loops(executed))
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
            or not any(self.steps(call) for statement in later for call in calls(statement.node))
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

    def _training_loops(self, executed: Sequence[Unit]) -> Iterator[tuple[Unit, ast.For | ast.While]]:
        """The loops that train, those over settings among them, each with the statement that holds it."""
        for statement in self._with_functions(executed):
            for node in walk(statement.node):
                if isinstance(node, LOOPS) and any(map(self.steps, calls(node))):
                    yield statement, node

    def _seeds(self, executed: Sequence[Unit]) -> Iterator[Place]:
        """Where random numbers are seeded in what is executed."""
        for statement in self._with_functions(executed):
            for call in walk(statement.node):
                if isinstance(call, ast.Call) and SEEDING & {*self._inputs.aliases.names_of(call.func)}:
                    yield statement.cell.place(call.lineno)

    def _with_functions(self, executed: Sequence[Unit]) -> list[Unit]:
        """What is executed, and the functions and classes that it uses, in the order of the source."""
        names: set[str] = set()
        for statement in executed:
            names |= statement.eager | statement.lazy
        homes = [
            self._definitions.unit(name)
            for name in sorted(self._definitions.used(names))
            if name in self._definitions and name not in self._inputs.kinds
        ]
        return sorted([*executed, *homes], key=lambda home: home.index)

    def _is_epoch_loop(self, node: ast.For | ast.While) -> bool:
        if isinstance(node, ast.For) and any(
            isinstance(name, ast.Name)
            and (name.id in self._inputs.data or (role_by_name(name.id) or "").endswith("loader"))
            for name in walk(node.iter)
        ):
            return False
        own_calls = list(_own_calls(node))
        if any(self.steps(call) for call in own_calls if not _is_step(call, self._definitions)):
            return True
        inner = [loop for loop in walk(node) if isinstance(loop, LOOPS) and loop is not node]
        return any(
            isinstance(call.func, ast.Attribute)
            and (call.func.attr == "backward" or (call.func.attr == "step" and call.args))  # with a closure
            for loop in inner
            for call in _own_calls(loop)
        )

    def _is_single(self, executed: Sequence[Unit]) -> bool:
        """Whether exactly one model is built in all that is executed."""
        definition_names = self._definitions.used(
            {name for statement in executed for name in statement.eager | statement.lazy}
        )
        definitions = {
            name: self._definitions.unit(name).node for name in definition_names if name in self._definitions
        }
        return is_built_once(
            self._inputs.model_class or "", [statement.node for statement in executed], definitions
        )

    def _construction(self, execution: _Execution) -> "Built | None":
        """Where the model that counts is made: by the last statement that binds it to a new model."""
        assert self.choice is not None
        constructions: list[Built] = []
        for level in self._levels(execution):
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

    def _levels(self, execution: _Execution) -> Iterator[_Execution]:
        yield execution
        for inner in execution.inner.values():
            yield from self._levels(inner)

    # --- what is known ------------------------------------------------------------------------------------

    def _plots(self, name: str) -> bool:
        """Whether a function plots, and trains nothing."""
        if name not in self._definitions or self._definitions.function(name) is None:
            return False
        reached = [
            self._definitions.unit(helper)
            for helper in self._definitions.used([name])
            if helper in self._definitions
        ]
        effects = Effect.NONE
        for home in reached:
            for call in walk(home.node):
                if isinstance(call, ast.Call):
                    effects |= self._inputs.effects.of_call(call)
        return bool(effects & Effect.PLOT) and not self._deep_steps(name, set())

    def _only_plots(self, call: ast.Call) -> bool:
        return isinstance(call.func, ast.Name) and self._plots(call.func.id)

    def _constant(self, node: ast.expr) -> object:
        """The value of a top-level name, if it can be read off the source."""
        if not isinstance(node, ast.Name) or node.id not in self._values or node.id in self._looking_up:
            raise Unknown
        self._looking_up.add(node.id)
        try:
            return value(self._values[node.id], self._constant)
        finally:
            self._looking_up.discard(node.id)


def _remade(node: ast.stmt, home: Unit) -> Unit:
    """A statement within another as one of its own."""
    return replace(unit(node, home.cell, segment(node, home.cell.lines), {}, home.index), index=home.index)


def _statement(statement: Unit, substitution: Substitution) -> tuple[int, Statement] | None:
    edits = substitution.edits(statement.node)
    text = (
        applied(statement.text, statement.line, statement.node.col_offset, edits) if edits else statement.text
    )
    return statement.index, Statement(text, statement.place, tuple(sorted(statement.binds)), "needed")


def _own_calls(node: ast.stmt) -> Iterator[ast.Call]:
    """The calls in a loop's body that are not in loops or functions within it."""
    stack: list[ast.AST] = [*getattr(node, "body", []), *getattr(node, "orelse", [])]
    while stack:
        current = stack.pop()
        if isinstance(current, (*LOOPS, *DEFINITIONS)):
            continue
        if isinstance(current, ast.Call):
            yield current
        stack += children(current)


def _handed_over(call: ast.Call) -> list[str]:
    """The names that a call is given as arguments: a function among them may be called."""
    arguments = (*call.args, *(keyword.value for keyword in call.keywords))
    return [argument.id for argument in arguments if isinstance(argument, ast.Name)]


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


def _is_step(call: ast.Call, definitions: Definitions) -> bool:
    """Whether a call is an optimizer's or a schedule's step, and not one of the student's own methods."""
    if not isinstance(call.func, ast.Attribute) or call.func.attr not in ("step", "backward"):
        return False
    return not any(True for _ in definitions.methods(call.func.attr))
