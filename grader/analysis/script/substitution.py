"""Substitution of data: the grader's loaders and data sets in the place of the student's.

Calls that load data go by `effects`, the side (training or test) by names around them, else training. Calls
that reach outward become nothing. A misleading name gives the wrong side, and nobody is asked; hidden images
are on neither. `training_script` decides which statements are executed.

Tests: tests/analysis/script/test_standing_data.py, tests/training/test_replay.py
"""

import ast
import re
from collections.abc import Callable, Collection, Iterator, Mapping

from grader.analysis.edits import Edit, end_of, instead, start_of
from grader.analysis.effects import Effect, Effects
from grader.analysis.roles import side
from grader.analysis.units import DEFINITIONS, assigned
from grader.domain.program import DATA_NAME, EPOCHS_NAME, NOTHING_NAME

# how weights are kept and restored: the worker lets it happen in memory
RESTORING = frozenset({"torch.save", "torch.load", ".load_state_dict", ".state_dict"})
OUTWARD = Effect.SHELL | Effect.NETWORK | Effect.INPUT | Effect.ENDS | Effect.PLOT | Effect.FILES
COUNT = re.compile(r"^(ep|i$|it|n|step|count|k$|e$|t$|round)", re.IGNORECASE)
LOADING = Effect.DATA | Effect.FILES | Effect.NETWORK | Effect.SHELL


class Substitution:
    """Finds what has to be replaced in statements that train."""

    def __init__(
        self,
        effects: Effects,
        data: Mapping[str, str],
        loops: Collection[int],
        left_alone: Collection[int],
        only_draws: Callable[[ast.Call], bool],
    ) -> None:
        """What it goes by.

        Args:
            effects: Of the program.
            data: Names of loaders, data sets and class names -> role.
            loops: `id` of the nodes of loops over epochs.
            left_alone: `id` of the nodes of statements that are not executed.
            only_draws: Whether what is called draws or reaches outward and does not train.
        """
        self._effects = effects
        self._data = data
        self._loops = loops
        self._left_alone = left_alone
        self._within: list[frozenset[str]] = []  # parameters and loop variables, which may tell a side
        self._only_draws = only_draws

    def edits(self, node: ast.stmt) -> list[Edit]:
        """What is replaced in a statement, in the order of the source."""
        return sorted(self._statement(node), key=lambda edit: (edit.start, edit.end))

    def _statement(self, node: ast.stmt) -> Iterator[Edit]:
        if id(node) in self._left_alone:
            yield instead(node, "...")
            return
        if isinstance(node, DEFINITIONS):
            self._within.append(_parameters(node))
            for inner in node.body:
                yield from self._statement(inner)
            self._within.pop()
            return
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and self._says_only(node.value):
            yield instead(node, "...")
            return
        pair = assigned(node)
        if pair is not None:
            yield from self._assignment(pair[0], pair[1])
            return
        if id(node) in self._loops:
            yield from self._loop(node)
        self._within.append(_bound(node.target) if isinstance(node, ast.For) else frozenset())
        yield from self._children(node)
        self._within.pop()

    def _children(self, node: ast.stmt) -> Iterator[Edit]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.stmt):
                yield from self._statement(child)
            elif isinstance(child, ast.expr):
                yield from self._expression(child)
            else:
                yield from self._other(child)

    def _loop(self, node: ast.stmt) -> Iterator[Edit]:
        """A loop over epochs tells that it is one, and how many there may be."""
        told, name = None, EPOCHS_NAME
        match node:
            case ast.For(iter=iterated):
                told = iterated
            case ast.While(test=test):
                told = next((limit for limit in map(_limit, _conditions(test)) if limit is not None), None)
                name = f"{EPOCHS_NAME}.limit"
        if told is not None:
            yield Edit(start_of(told), start_of(told), f"{name}(")
            yield Edit(end_of(told), end_of(told), ")")

    def _other(self, node: ast.AST) -> Iterator[Edit]:
        """What follows `with`, `except` and `case`."""
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.stmt):
                yield from self._statement(child)
            elif isinstance(child, ast.expr):
                yield from self._expression(child)
            else:
                yield from self._other(child)

    def _says_only(self, call: ast.Call) -> bool:
        return bool(self._direct(call) & OUTWARD) or self._only_draws(call)

    def _assignment(self, targets: list[ast.expr], value: ast.expr) -> Iterator[Edit]:
        names = _names(targets[0]) if len(targets) == 1 else []
        roles = [self._data.get(name) for name in names]
        if names and all(roles) and self._loads(value):
            parts = [f"{DATA_NAME}[{role!r}]" for role in roles]
            made = parts[0] if isinstance(targets[0], ast.Name) else f"({', '.join(parts)},)"
            yield instead(value, made)
            return
        if len(names) > 1 and isinstance(value, ast.Call) and self._splits(value):
            sides = [side(name) or "train" for name in names]
            yield instead(
                value, "({},)".format(", ".join(f"{DATA_NAME}['{each}_dataset']" for each in sides))
            )
            return
        count = len(targets[0].elts) if len(targets) == 1 and isinstance(targets[0], ast.Tuple) else 0
        if count and isinstance(value, ast.Call) and self._direct(value) & OUTWARD:
            yield instead(value, f"({NOTHING_NAME},) * {count}")
            return
        yield from self._expression(value, _side_of(targets[0]) if len(targets) == 1 else None)

    def _splits(self, call: ast.Call) -> bool:
        """Whether a call cuts a data set into several."""
        name = ast.unparse(call.func).split(".")[-1]
        return name == "random_split" and bool(self._direct(call) & Effect.DATA)

    def _loads(self, value: ast.expr) -> bool:
        """Whether an expression loads data, itself or through the student's functions."""
        for call in (node for node in ast.walk(value) if isinstance(node, ast.Call)):
            if self._direct(call) & LOADING:
                return True
            if isinstance(call.func, ast.Name) and self._effects.of_function(call.func.id) & LOADING:
                return True
        return False

    def _expression(self, node: ast.expr, told: str | None = None) -> Iterator[Edit]:
        """The edits of an expression; `told` is the side that the name of its value tells."""
        if isinstance(node, ast.Call):
            found = self._direct(node)
            if found & OUTWARD:
                yield instead(node, NOTHING_NAME)
                return
            if found & Effect.DATA:
                yield instead(node, self._standing_for(node, told))
                return
        self._within.append(_bound_in(node))
        if isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                name = key.value if isinstance(key, ast.Constant) and isinstance(key.value, str) else ""
                yield from self._expression(value, side(name) or told)
        else:
            for child in ast.iter_child_nodes(node):
                if isinstance(child, ast.expr):
                    yield from self._expression(child, told)
                elif isinstance(child, ast.keyword):
                    yield from self._expression(child.value, side(child.arg or "") or told)
                elif isinstance(child, ast.comprehension):
                    yield from self._other(child)
        self._within.pop()

    def _standing_for(self, call: ast.Call, told_side: str | None) -> str:
        """What stands for data that a call loads; a parameter or a loop variable may tell which (`split`)."""
        role = self._role(call, told_side)
        names = {name.id for name in ast.walk(call) if isinstance(name, ast.Name)}
        told = sorted(names & frozenset().union(*self._within))
        return f"{DATA_NAME}.of({role!r}, {', '.join(told)})" if told else f"{DATA_NAME}[{role!r}]"

    def _role(self, call: ast.Call, told: str | None) -> str:
        """The role of what stands where no name may tell it: `return DataLoader(data, shuffle=True)`."""
        function = ast.unparse(call.func).split(".")[-1]
        kind = "loader" if function == "DataLoader" else "dataset"
        if told is not None:
            return f"{told}_{kind}"
        text = ast.unparse(call).lower()
        is_test = "train" not in text and any(word in text for word in ("test", "val", "shuffle=false"))
        return f"{'test' if is_test else 'train'}_{kind}"

    def _direct(self, call: ast.Call) -> Effect:
        return self._effects.of_call(call, but=RESTORING)


def _parameters(node: ast.stmt) -> frozenset[str]:
    arguments = getattr(node, "args", None)
    return _names_of(arguments) if isinstance(arguments, ast.arguments) else frozenset()


def _names_of(arguments: ast.arguments) -> frozenset[str]:
    every = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
    return frozenset(each.arg for each in every) - {"self"}


def _bound(target: ast.expr) -> frozenset[str]:
    return frozenset(name.id for name in ast.walk(target) if isinstance(name, ast.Name))


def _bound_in(node: ast.expr) -> frozenset[str]:
    """What an expression binds within itself: variables of a comprehension, parameters of a lambda."""
    if isinstance(node, ast.Lambda):
        return _names_of(node.args)
    return frozenset().union(*(_bound(each.target) for each in getattr(node, "generators", ())))


def _conditions(test: ast.expr) -> list[ast.expr]:
    return test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) else [test]


def _limit(test: ast.expr) -> ast.expr | None:
    """What a count stays below: `N` of `epoch < N`."""
    match test:
        case ast.Compare(left=ast.Name(id=name), ops=[ast.Lt() | ast.LtE()], comparators=[limit]):
            return limit if COUNT.search(name) else None
    return None


def _side_of(target: ast.expr) -> str | None:
    """The side that a target tells: `val_loader`, `self.val_loader`, `loaders["val"]`."""
    match target:
        case (
            ast.Name(id=name) | ast.Attribute(attr=name) | ast.Subscript(slice=ast.Constant(value=str(name)))
        ):
            return side(name)
    return None


def _names(target: ast.expr) -> list[str]:
    """The names of a target that is made of names; none where it is made of anything else."""
    parts = target.elts if isinstance(target, ast.Tuple | ast.List) else [target]
    names = [part.id for part in parts if isinstance(part, ast.Name)]
    return names if len(names) == len(parts) else []
