"""Backward slice (Weiser, 1984) over statements: which of them a model's weights depend on.

A statement that may change what is needed belongs to the slice, so the slice errs toward too much.
`model_that_counts` decides which model the slice is for.

Tests: tests/training/test_replay.py, tests/analysis/script/test_which_model_counts.py
"""

import ast
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import cached_property

from grader.analysis.constant_values import Lookup, Unknown, value
from grader.analysis.effects import Effect, Effects
from grader.analysis.recognized_roles import RoleReader
from grader.analysis.script.data_flow import Files, exposed, files_of, is_plain_binding, names_read
from grader.analysis.script.definitions import DEFINED, Definitions
from grader.analysis.script.trained_names import Trained
from grader.analysis.syntax_trees import assigned, calls, statements_within, walk
from grader.analysis.units import Unit


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
        if not isinstance(unit.node, DEFINED):
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
        return unit.references.names(eager=True) - names_read([unit.node], self._definitions.filled_arguments)

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
            if is_plain_binding(unit.node):
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
