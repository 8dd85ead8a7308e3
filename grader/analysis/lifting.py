"""Statements that a recipe's expression depends on, by phase: at the start, with the data, with the model.

It decides which of them the worker executes. Statements that train, load data, or use files or the network
are out; an expression that needs one cannot be had. Then `recipe` drops the expression with a note. `recipe`
decides which expressions make up the recipe.

Tests: tests/analysis/test_recipe.py
"""

import ast
from collections.abc import Collection, Mapping
from enum import IntEnum

from grader.analysis.effects import Effect, Effects
from grader.analysis.flow import Flow
from grader.analysis.references import references
from grader.analysis.slicing import KNOWN
from grader.analysis.units import Unit
from grader.domain.program import Statement

NEVER = Effect.SHELL | Effect.NETWORK | Effect.TRAIN | Effect.DATA | Effect.FILES | Effect.INPUT | Effect.ENDS
AT_ONCE = 400  # statements that one recipe may need


class Phase(IntEnum):
    """When something of the recipe can be had."""

    START = 0
    DATA = 1
    MODEL = 2


class Lifting:
    """The statements that the recipe's expressions depend on, by phase."""

    def __init__(self, effects: Effects, loaded: Mapping[str, int], late: Mapping[str, Phase]) -> None:
        """Begins with nothing taken in.

        Args:
            effects: Of the program.
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
        """Takes in what an expression depends on; the name that cannot be had, if there is one.

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
        found = sorted((order, step) for order, step, own in self._taken.values() if own is phase)
        return tuple(
            Statement(step.text, step.place, tuple(sorted(step.binds)), "needed") for _, step in found
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

    def __init__(self, lifting: Lifting, flow: Flow, kept: Collection[int]) -> None:
        self._lifting = lifting
        self._flow = flow
        self._kept = kept
        self._phases: dict[str, Phase | None] = {}
        self._looked_at: dict[int, Phase | None] = {}
        self.taken: dict[int, Phase] = {}
        self.late: set[str] = set()

    def phase(self, name: str) -> Phase | None:
        """From when on a name can be had; None: never."""
        if name in self._lifting.late:
            self.late.add(name)
            return self._lifting.late[name]
        if name not in self._phases:
            self._phases[name] = Phase.START  # while it is looked for: a name may refer to itself
            self._phases[name] = self._found(name)
        return self._phases[name]

    def _found(self, name: str) -> Phase | None:
        """Looks at all that binds or changes a name."""
        binders = self._flow.bound.get(name, [])
        loaded = [index for index in binders if self._is_kept(index)]
        changers = [
            index for index in self._flow.changed.get(name, []) if self._take(index, False) is not None
        ]
        # again: loading leaves a value of later on, or what changes the value may be executed several times
        again = self._lifting.times_loaded(name) > len(loaded) or any(i in self.taken for i in changers)
        phases = [phase for index in binders if (phase := self._take(index, again)) is not None]
        if not phases and not self._lifting.is_loaded(name):
            return None
        changes = [phase for index in changers if (phase := self._take(index, again)) is not None]
        return max([*phases, *changes], default=Phase.START)

    def _is_kept(self, index: int) -> bool:
        return id(self._flow.steps[index].node) in self._kept

    def _take(self, index: int, again: bool) -> Phase | None:
        """Takes a step in with all that it needs; None where it cannot be executed.

        Args:
            index: The step's.
            again: Take it in although it is executed on loading too.
        """
        if index in self._looked_at:
            known = self._looked_at[index]
            if again and known is not None:
                self.taken[index] = known
            return known
        step = self._flow.steps[index]
        if step.is_import and self._is_kept(index):
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
        if again or phase > Phase.START or not self._is_kept(index):
            self.taken[index] = phase
        for name in sorted(step.lazy):
            self.phase(name)
        return phase
