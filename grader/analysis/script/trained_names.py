"""Which names hold what is trained, and what each was made from.

Objects are followed by names: an optimizer changes the model that it was made from. Aliases that no name
shows are not seen.

Tests: tests/training/test_replay.py, tests/analysis/script/test_which_model_counts.py
"""

import ast
import bisect
from collections.abc import Collection, Iterable, Iterator, Sequence

from grader.analysis.effects import Effect, Effects
from grader.analysis.recognized_roles import RoleReader, bindings, unwrapped
from grader.analysis.script.data_flow import is_plain_binding
from grader.analysis.script.definitions import Definitions
from grader.analysis.syntax_trees import assigned, statements_within, text_of, walk
from grader.analysis.units import Unit

TRAINED = Effect.MODEL | Effect.OPTIMIZER | Effect.TRAIN
WRAPPED = {"module", "_orig_mod"}  # the model within a wrapper
COPIES = {"deepcopy", "copy", "AveragedModel", "EMA", "ModelEMA"}


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
        self._plain = [is_plain_binding(unit.node) for unit in units]
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
            and text_of(expression.func).split(".")[-1] in COPIES
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
