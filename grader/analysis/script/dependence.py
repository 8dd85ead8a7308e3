"""Backward slice (Weiser, 1984) over statements: which of them a model's weights depend on.

Objects are followed by names: an optimizer changes the model that it was made from. A statement that may
change what is needed belongs to the slice, so the slice errs toward too much. Aliases that no name shows
are not seen. `model_that_counts` decides which model the slice is for.

Tests: tests/training/test_replay.py, tests/analysis/script/test_which_model_counts.py
"""

import ast
import bisect
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import cached_property

from grader.analysis.constant_values import Lookup, Unknown, value
from grader.analysis.effects import Effect, Effects
from grader.analysis.recognized_roles import RoleReader, bindings, unwrapped
from grader.analysis.script.data_flow import Files, exposed, files_of
from grader.analysis.syntax_trees import all_parameters, assigned, bound_names, calls, statements_within, walk
from grader.analysis.units import Unit, changed_names

TRAINED = Effect.MODEL | Effect.OPTIMIZER | Effect.TRAIN
MOST_DEEP = 4
WRAPPED = {"module", "_orig_mod"}  # the model within a wrapper
COPIES = {"deepcopy", "copy", "AveragedModel", "EMA", "ModelEMA"}


class Definitions:
    """The program's functions and classes: which names they use, and what they do with their arguments."""

    def __init__(self, units: Iterable[Unit]) -> None:
        self._units = {unit.node.name: unit for unit in units if isinstance(unit.node, _DEFINED)}
        self._globals_by_node: dict[ast.stmt, frozenset[str]] = {}
        self._changed_by_node: dict[tuple[ast.FunctionDef, int], frozenset[str]] = {}
        self._read_by_node: dict[tuple[ast.FunctionDef, int], frozenset[str]] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._units

    def function(self, name: str) -> ast.FunctionDef | None:
        """The function of this name, if there is one."""
        node = self._units[name].node if name in self._units else None
        return node if isinstance(node, ast.FunctionDef) else None

    def unit(self, name: str) -> Unit:
        """The statement that defines a name."""
        return self._units[name]

    def bases(self, node: ast.stmt) -> frozenset[str]:
        """The program's classes that a class is derived from, also indirectly."""
        bases: set[str] = set()
        stack = [node]
        while stack:
            inner = stack.pop()
            for base in inner.bases if isinstance(inner, ast.ClassDef) else ():
                if isinstance(base, ast.Name) and base.id in self._units and base.id not in bases:
                    bases.add(base.id)
                    stack.append(self._units[base.id].node)
        return frozenset(bases)

    def is_told_of_subclasses(self, name: str) -> bool:
        """Whether a class does something with each class that is derived from it."""
        node = self._units[name].node
        return isinstance(node, ast.ClassDef) and (
            any(keyword.arg == "metaclass" for keyword in node.keywords)
            or any(inner.name == "__init_subclass__" for inner in _functions(node))
        )

    def methods(self, name: str) -> Iterator[tuple[Unit, ast.FunctionDef]]:
        """The methods of this name, each with the statement that defines its class."""
        for unit in self._units.values():
            for node in unit.node.body if isinstance(unit.node, ast.ClassDef) else ():
                if isinstance(node, ast.FunctionDef) and node.name == name:
                    yield unit, node

    def used(self, names: Iterable[str]) -> frozenset[str]:
        """The global names that the code under these names uses when it is called, also indirectly."""
        used_names: set[str] = set()
        stack = [name for name in names if name in self._units]
        while stack:
            name = stack.pop()
            if name in used_names:
                continue
            used_names.add(name)
            unit = self._units.get(name)
            if unit is not None:
                stack += (unit.eager | unit.lazy) - used_names
        return frozenset(used_names)

    def reaching(self, names: Iterable[str]) -> frozenset[str]:
        """These names, and those of functions and methods that use one of them, directly or indirectly."""
        reaching = set(names)
        while True:
            before = len(reaching)
            reaching |= {name for name, identifiers in self._identifiers if identifiers & reaching}
            if len(reaching) == before:
                return frozenset(reaching)

    @cached_property
    def _identifiers(self) -> list[tuple[str, frozenset[str]]]:
        """(name of a function or method, the names and attributes that its code mentions)."""
        return [
            (node.name, frozenset(_identifiers(node)))
            for unit in self._units.values()
            for node in _functions(unit.node)
        ]

    def changed_globals(self, names: Iterable[str]) -> frozenset[str]:
        """The global names that the code under these names binds, or whose parts it sets, when it is called.

        Names of lists that are only appended to are not among them: that is how histories are kept.
        """
        nodes = [self._units[name].node for name in self.used(names) if name in self._units]
        return frozenset(name for node in nodes for name in self._globals_set(node))

    def _globals_set(self, node: ast.stmt) -> frozenset[str]:
        if node not in self._globals_by_node:
            self._globals_by_node[node] = frozenset(_globals_set(node, frozenset()))
        return self._globals_by_node[node]

    def changed_arguments(self, call: ast.Call, depth: int = MOST_DEEP) -> frozenset[str]:
        """The names among the arguments whose values the called function changes."""
        return self._arguments_that(call, depth, lambda name, node: name in self._changed(node, depth))

    def filled_arguments(self, call: ast.Call, depth: int = MOST_DEEP) -> frozenset[str]:
        """The names among the arguments that the called function only adds to: histories."""
        return self._arguments_that(call, depth, lambda name, node: name not in self._read(node, depth))

    def _arguments_that(
        self, call: ast.Call, depth: int, fits: Callable[[str, ast.FunctionDef], bool]
    ) -> frozenset[str]:
        node = self.function(call.func.id) if isinstance(call.func, ast.Name) else None
        if node is None or depth == 0:
            return frozenset()
        return frozenset(
            argument.id
            for name, argument in _arguments(node, call).items()
            if isinstance(argument, ast.Name) and fits(name, node)
        )

    def returned_arguments(self, name: str, call: ast.Call) -> list[ast.expr]:
        """Which arguments of a call the function of this name hands back."""
        node = self.function(name)
        if node is None:
            return []
        returned = {
            statement.value.id
            for statement in statements_within(node)
            if isinstance(statement, ast.Return) and isinstance(statement.value, ast.Name)
        }
        return [argument for parameter, argument in _arguments(node, call).items() if parameter in returned]

    def _changed(self, node: ast.FunctionDef, depth: int) -> frozenset[str]:
        if (node, depth) not in self._changed_by_node:
            by_calls = (
                self.changed_arguments(call, depth - 1) for inner in node.body for call in calls(inner)
            )
            self._changed_by_node[node, depth] = frozenset(changed_names(node.body)).union(*by_calls)
        return self._changed_by_node[node, depth]

    def _read(self, node: ast.FunctionDef, depth: int) -> frozenset[str]:
        if (node, depth) not in self._read_by_node:
            names = _names_read(node.body, lambda call: self.filled_arguments(call, depth - 1))
            self._read_by_node[node, depth] = names
        return self._read_by_node[node, depth]


_DEFINED = ast.FunctionDef | ast.ClassDef


def _functions(node: ast.AST) -> Iterator[ast.FunctionDef]:
    """A function, or the methods of a class."""
    for inner in [node] if isinstance(node, ast.FunctionDef) else getattr(node, "body", []):
        if isinstance(inner, ast.FunctionDef):
            yield inner


def _identifiers(node: ast.AST) -> Iterator[str]:
    for inner in walk(node):
        if isinstance(inner, ast.Name):
            yield inner.id
        elif isinstance(inner, ast.Attribute):
            yield inner.attr


def _globals_set(node: ast.stmt, hidden: frozenset[str]) -> Iterator[str]:
    """The global names that a function, or the functions in it, bind or set parts of.

    Args:
        hidden: Names of the functions around it.
    """
    if isinstance(node, ast.ClassDef):
        for inner in node.body:
            yield from _globals_set(inner, hidden)
    if not isinstance(node, ast.FunctionDef):
        return
    bound, declared = bound_names(node.body)
    hidden_here = hidden | {parameter.arg for parameter in all_parameters(node.args)} | (bound - declared)
    yield from bound & declared - hidden
    for statement in statements_within(node):
        if isinstance(statement, ast.FunctionDef | ast.ClassDef) and statement is not node:
            yield from _globals_set(statement, hidden_here)
        pair = assigned(statement)
        for target in pair[0] if pair is not None else ():
            while isinstance(target, ast.Subscript | ast.Attribute):
                target = target.value
                if isinstance(target, ast.Name) and target.id not in hidden_here:
                    yield target.id


def _names_read(nodes: Iterable[ast.AST], filled: Callable[[ast.Call], Collection[str]]) -> frozenset[str]:
    """The names whose values are used for more than being added to.

    Args:
        filled: The names among a call's arguments that the called function only adds to.
    """
    added: set[int] = set()
    loaded: list[ast.Name] = []
    for node in (node for outer in nodes for node in walk(outer)):
        match node:
            case ast.Expr(value=ast.Call(func=ast.Attribute(attr="append" | "extend", value=container))):
                while isinstance(container, ast.Subscript):
                    container = container.value
                added.add(id(container))
            case ast.Name() if not isinstance(node.ctx, ast.Store):
                loaded.append(node)
            case ast.Call():
                names = filled(node)
                for argument in (*node.args, *(keyword.value for keyword in node.keywords)):
                    if isinstance(argument, ast.Name) and argument.id in names:
                        added.add(id(argument))
    return frozenset(name.id for name in loaded if id(name) not in added)


def _arguments(node: ast.FunctionDef, call: ast.Call) -> dict[str, ast.expr]:
    positional = [arg.arg for arg in (*node.args.posonlyargs, *node.args.args)]
    arguments = dict(zip(positional, call.args, strict=False))
    return arguments | {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg}


class Trained:
    """The names that hold what is trained, and what each was made from.

    Attributes:
        models: The names of models, and of copies and averages of models.
    """

    def __init__(
        self, units: Sequence[Unit], effects: Effects, reader: RoleReader, definitions: Definitions
    ) -> None:
        """Follow the statements in their order.

        Args:
            units: The statements of the top level, or of a function's body.
            effects, reader, definitions: The program's.
        """
        self._effects = effects
        self._reader = reader
        self._definitions = definitions
        self._made_of: dict[str, dict[int, set[str]]] = {}  # name -> position of what binds it -> its parts
        self._plain = [_is_plain_binding(unit.node) for unit in units]
        self._aliases = [
            (position, *pair) for position, unit in enumerate(units) for pair in _aliases_in(unit)
        ]
        self._aliased = {name for _, *pair in self._aliases for name in pair}
        self._bound_anew: dict[str, list[int]] = {}
        for position, unit in enumerate(units):
            for name in unit.binds - {alias for alias, same in _aliases_in(unit) if alias == same}:
                self._bound_anew.setdefault(name, []).append(position)
        self.models: set[str] = set()
        self._making: dict[str, bool] = {}
        for _ in range(2):  # what a loop binds is used at its beginning
            for position, unit in enumerate(units):
                if not unit.is_definition and not unit.is_import:
                    self._follow(unit, position)

    def _follow(self, unit: Unit, position: int) -> None:
        for name, expression in (*bindings(unit.node), *self._unpacked(unit), *_walked_over(unit)):
            if expression is None:
                continue
            parts = {n.id for n in walk(expression) if isinstance(n, ast.Name)} & self._made_of.keys()
            if parts or self.is_made(expression):
                self._made_of.setdefault(name, {}).setdefault(position, set()).update(parts - {name})
            if self._is_model(expression):
                self.models.add(name)

    def _unpacked(self, unit: Unit) -> Iterator[tuple[str, ast.expr]]:
        """(name, its expression) where a student's function returns several values: `net, opt = make()`."""
        for node in statements_within(unit.node):
            pair = assigned(node)
            if pair is None or not isinstance(pair[1], ast.Call) or not isinstance(pair[1].func, ast.Name):
                continue
            function = self._definitions.function(pair[1].func.id)
            for target in pair[0] if function is not None else ():
                if isinstance(target, ast.Tuple) and all(isinstance(part, ast.Name) for part in target.elts):
                    parts = self._returned(function, len(target.elts))
                    yield from zip(
                        (p.id for p in target.elts if isinstance(p, ast.Name)), parts, strict=False
                    )

    def _returned(self, function: ast.FunctionDef | None, count: int) -> list[ast.expr]:
        """The parts of the tuple that a function returns, each as the expression it is bound to there."""
        if function is None:
            return []
        inner = list(statements_within(function))
        bound = {
            name: expression
            for node in inner
            for name, expression in bindings(node)
            if expression is not None
        }
        for node in inner:
            if (
                isinstance(node, ast.Return)
                and isinstance(node.value, ast.Tuple)
                and len(node.value.elts) == count
            ):
                return [bound.get(p.id, p) if isinstance(p, ast.Name) else p for p in node.value.elts]
        return []

    def _is_model(self, expression: ast.expr) -> bool:
        expression = unwrapped(expression)
        if self._reader.is_model(expression):
            return True
        if (
            isinstance(expression, ast.Call)
            and expression.args
            and ast.unparse(expression.func).split(".")[-1] in COPIES
        ):
            expression = expression.args[0]
        if isinstance(expression, ast.Call) and isinstance(expression.func, ast.Name):
            arguments = self._definitions.returned_arguments(expression.func.id, expression)
            return any(self._is_model(argument) for argument in arguments)
        return isinstance(expression, ast.Name) and expression.id in self.models

    def is_made(self, expression: ast.expr) -> bool:
        """Whether an expression makes a model, an optimizer, or an object that holds one."""
        for call in (node for node in walk(expression) if isinstance(node, ast.Call)):
            if self._reader.is_model(call) or self._reader.makes(call, "torch.optim."):
                return True
            name = call.func.id if isinstance(call.func, ast.Name) else ""
            if name in self._definitions and self._makes_within(name):
                return True
        return False

    def _makes_within(self, name: str) -> bool:
        """Whether a function or a class makes a model or an optimizer, or has the effects of training."""
        if name not in self._making:
            bodies = [
                self._definitions.unit(used_name).node
                for used_name in self._definitions.used([name])
                if used_name in self._definitions
            ]
            made_calls = [node for body in bodies for node in walk(body) if isinstance(node, ast.Call)]
            self._making[name] = bool(self._effects.of_function(name) & TRAINED) or any(
                self._reader.is_model(call) or self._reader.makes(call, "torch.optim.") for call in made_calls
            )
        return self._making[name]

    def __contains__(self, name: str) -> bool:
        return name in self._made_of

    def same_objects(self, names: Iterable[str], position: int) -> frozenset[str]:
        """These names, and those that stand for the same objects at a statement, by `best = model`.

        Args:
            position: The statement's position.
        """
        same = set(names)
        if not self._aliases or same.isdisjoint(self._aliased):
            return frozenset(same)
        holding = [
            {alias, of}
            for bound, alias, of in self._aliases
            if bound < position and not self._is_bound_anew({alias, of}, bound, position)
        ]
        while True:
            joined = same.union(*(pair for pair in holding if pair & same))
            if joined == same:
                return frozenset(same)
            same = joined

    def _is_bound_anew(self, names: Collection[str], after: int, before: int) -> bool:
        for name in names:
            positions = self._bound_anew.get(name, ())
            following = bisect.bisect_right(positions, after)
            if following < len(positions) and positions[following] < before:
                return True
        return False

    def changed(self, names: Iterable[str], position: int | None = None) -> frozenset[str]:
        """Those of the names that hold what is trained, and all that they were made from.

        Args:
            position: The position of the statement that uses them: what was bound to a name before it was
                bound anew is ignored. None: all that was ever bound to a name counts.
        """
        changed: set[str] = set()
        stack = [name for name in names if name in self._made_of]
        while stack:
            name = stack.pop()
            if name not in changed:
                changed.add(name)
                stack += self._parts(name, position)
        return frozenset(changed)

    def _parts(self, name: str, position: int | None) -> set[str]:
        """What a name was made from, as it is used in a statement."""
        parts_by_position = self._made_of[name]
        earlier = [binding for binding in parts_by_position if position is None or binding <= position]
        anew = max(
            (
                binding
                for binding in earlier
                if position is not None and binding < position and self._plain[binding]
            ),
            default=0,
        )
        return {
            part
            for binding in earlier or parts_by_position
            for part in parts_by_position[binding]
            if binding >= anew
        }


class Level:
    """Statements that are executed one after the other: those of the top level, or of a function.

    Attributes:
        units: The statements.
        function: The function's name; None at top level.
        trained: What is trained there.
        plotted: (position of the statement, names) for each call of a graded function that plots, after the
            statement or in it.
    """

    def __init__(
        self,
        units: Sequence[Unit],
        function: str | None,
        effects: Effects,
        reader: RoleReader,
        definitions: Definitions,
        free_names: Collection[str],
        steps: Callable[[ast.Call], bool],
        plotted: Sequence[tuple[int, frozenset[str]]] = (),
    ) -> None:
        """Take the statements.

        Args:
            given: Names that need nothing.
            steps: Whether a call trains.
        """
        self.units = tuple(units)
        self._positions = {id(unit): position for position, unit in enumerate(self.units)}
        self.function = function
        self.plotted = tuple(plotted)
        self.trained = Trained(units, effects, reader, definitions)
        self._effects = effects
        self._definitions = definitions
        self._given = frozenset(free_names)
        self._steps = steps
        self._files_by_node: dict[ast.stmt, Files] = {}

    @cached_property
    def trains(self) -> frozenset[int]:
        """The positions of statements that step an optimizer."""
        return frozenset(
            index
            for index, unit in enumerate(self.units)
            if not unit.is_definition and not unit.is_import and self.is_training(unit)
        )

    def is_training(self, unit: Unit) -> bool:
        """Whether a statement steps an optimizer, or measures, directly or through what it calls."""
        if self._effects.of(unit.references.used) & Effect.TRAIN:
            return True
        inner_calls = (node for node in walk(unit.node) if isinstance(node, ast.Call))
        return any(map(self._steps, inner_calls))

    def uses(self, unit: Unit) -> frozenset[str]:
        """The names that a statement needs when it is executed."""
        exposed_names = exposed(unit.node)
        return exposed_names | self._definitions.used(exposed_names) | self._files(unit).read

    def changes(self, unit: Unit) -> frozenset[str]:
        """The names whose values a statement may change in place."""
        changed = set(unit.changes)
        if any(_acts(node) for node in statements_within(unit.node)):
            # what an inner block binds is its own affair; what that was made from still counts as changed
            used_names = unit.references.names(eager=True) | self._through(unit)
            changed |= self.trained.changed(used_names, self._positions.get(id(unit)))
        for node in statements_within(unit.node):
            for call in calls(node):
                changed |= self._definitions.changed_arguments(call)
        changed |= self._definitions.changed_globals(unit.references.names(eager=True))
        return frozenset(changed | self._files(unit).written)

    def registers(self, unit: Unit) -> frozenset[str]:
        """The global names whose values a definition may change: by its decorators, or as a derived class.

        An object that is called as a decorator may keep what it is given, as `@POOLS("mean")` does, and a
        function that has methods for that, as `@to_list.register`.
        """
        if not isinstance(unit.node, _DEFINED):
            return frozenset()
        parts = [node for decorator in unit.node.decorator_list for node in walk(decorator)]
        names = {node.id for node in parts if isinstance(node, ast.Name)}
        asked = {
            node.value.id
            for node in parts
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
        }
        bases = self._collecting_bases(unit.node)
        kept_by = {name for name in names if name in self._variables}
        kept_by |= {name for name in asked if name in self._definitions}
        return self._definitions.changed_globals(names | bases) | kept_by | bases

    @cached_property
    def _variables(self) -> frozenset[str]:
        """The names that are bound otherwise than by an import or a definition."""
        return frozenset[str]().union(
            *(unit.binds for unit in self.units if not unit.is_definition and not unit.is_import)
        )

    def _collecting_bases(self, node: ast.stmt) -> frozenset[str]:
        """The program's classes that a class is derived from, if they learn of it."""
        bases = self._definitions.bases(node)
        learns = self._asks_for_subclasses or any(map(self._definitions.is_told_of_subclasses, bases))
        return bases if learns else frozenset()

    @cached_property
    def _asks_for_subclasses(self) -> bool:
        nodes = (node for unit in self.units for node in walk(unit.node))
        return any(isinstance(node, ast.Attribute) and node.attr == "__subclasses__" for node in nodes)

    def _files(self, unit: Unit) -> "Files":
        """What a statement saves and loads, directly or through what it calls."""
        if unit.node not in self._files_by_node:
            used_names = self._definitions.used(unit.references.names(eager=True))
            called = [self._definitions.unit(name).node for name in used_names if name in self._definitions]
            self._files_by_node[unit.node] = files_of([unit.node, *called])
        return self._files_by_node[unit.node]

    def _through(self, unit: Unit) -> frozenset[str]:
        """The global names that are used by the functions a statement calls."""
        names = unit.references.names(eager=True)
        return self._definitions.used(names) - names

    def fills(self, unit: Unit) -> frozenset[str]:
        """The names that a statement only adds to: their contents have no effect on it."""
        return unit.references.names(eager=True) - _names_read(
            [unit.node], self._definitions.filled_arguments
        )

    def slice(
        self, needed: Iterable[str], end: int | None = None, *, binding: Collection[int] = ()
    ) -> tuple[frozenset[int], frozenset[str]]:
        """What the names that are needed after a statement depend on.

        Args:
            needed: The names.
            end: The position of the statement, which is not part of the slice; None: all statements.
            binding: The positions of statements of which only those count that bind what is needed, whatever
                they may change in place.

        Returns:
            (positions of the statements, the names that nothing here binds).
        """
        needed_names, existing_names = set(needed) - self._given, set[str]()
        positions: set[int] = set()
        stop = len(self.units) if end is None else end
        for index in range(stop - 1, -1, -1):
            unit = self.units[index]
            if unit.is_definition and self.registers(unit) & needed_names:
                positions.add(index)
                own_names = unit.eager | unit.lazy  # nothing else names it
                needed_names |= (own_names | self._definitions.used(own_names)) - self._given
            if unit.is_definition or unit.is_import:
                continue
            changes = self.changes(unit) if index not in binding else frozenset[str]()
            changed = self.trained.same_objects(changes, index)
            if not unit.binds & (needed_names | existing_names) and not changed & needed_names:
                continue
            positions.add(index)
            if _is_plain_binding(unit.node):
                needed_names -= unit.binds
                existing_names -= unit.binds
            fills = self.fills(unit)
            existing_names |= fills - self._given - needed_names
            needed_names |= self.uses(unit) - self._given - fills
        return frozenset(positions), frozenset(
            name for name in needed_names | existing_names if name.isidentifier()
        )


def _acts(node: ast.stmt) -> bool:
    """Whether a statement calls something, or sets something of an object: a rate, a flag."""
    pair = assigned(node)
    sets = pair is not None and any(isinstance(target, ast.Attribute | ast.Subscript) for target in pair[0])
    sets |= isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Attribute | ast.Subscript)
    return sets or any(True for _ in calls(node))


def _walked_over(unit: Unit) -> Iterator[tuple[str, ast.expr]]:
    """(name, what it is an element of) for the variables of loops: `for name, model in models.items()`."""
    for node in statements_within(unit.node):
        if isinstance(node, ast.For):
            for target in walk(node.target):
                if isinstance(target, ast.Name):
                    yield target.id, node.iter


def _aliases_in(unit: Unit) -> Iterator[tuple[str, str]]:
    """(name, the name whose object it stands for, too) by `net = model.to(device)`, also within a wrapper."""
    if unit.is_definition or unit.is_import:
        return
    for name, expression in bindings(unit.node):
        inner = unwrapped(expression) if expression is not None else None
        while isinstance(inner, ast.Attribute) and inner.attr in WRAPPED:
            inner = inner.value
        if isinstance(inner, ast.Name):
            yield name, inner.id


def _is_plain_binding(node: ast.stmt) -> bool:
    """Whether a statement replaces the earlier value of what it binds."""
    return isinstance(node, ast.Assign | ast.AnnAssign) and all(
        isinstance(target, ast.Name | ast.Tuple | ast.List)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
    )


def alive(body: Iterable[Unit], remade: Callable[[ast.stmt, Unit], Unit], constants: Lookup) -> list[Unit]:
    """The statements that are executed; `if` blocks are opened if their condition can be read off the source.

    Args:
        body: The statements.
        remade: (statement, the unit that holds it) -> the statement as a unit.
        constants: The value of an expression that is not a literal.
    """
    statements: list[Unit] = []
    for unit in body:
        if isinstance(unit.node, ast.If):
            try:
                chosen = unit.node.body if value(unit.node.test, constants) else unit.node.orelse
            except Unknown:
                statements.append(unit)
                continue
            inner = [remade(node, unit) for node in chosen]
            statements += alive(inner, remade, constants)
        else:
            statements.append(unit)
    return statements
