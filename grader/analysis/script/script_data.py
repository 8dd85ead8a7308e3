"""Data of the training script: the grader's loaders in place of the student's.

Calls that load data are recognized by `effects`. Their side (training or test) follows from the names around
them, else it is training; a wrong name gives the wrong side, and no person is asked. Calls with effects
outside the program (plots, files, network) are replaced by an object that does nothing.
`measured_choices` decides who gets images for validation, `training_script` which statements are executed.

Tests: tests/analysis/script/test_substituted_data.py, tests/training/test_replay.py
"""

import ast
import re
from collections.abc import Callable, Collection, Iterator, Mapping

from grader.analysis.constant_values import called_name
from grader.analysis.effects import Effect, Effects
from grader.analysis.recognized_roles import argument_of_loader, begun_call, is_loader
from grader.analysis.rewriting import Edit, end_of, instead, start_of
from grader.analysis.syntax_trees import DEFINITIONS, assigned, children, text_of, walk
from grader.domain.analyzed_program import DATA_NAME, EPOCHS_NAME, NOTHING_NAME
from grader.domain.split_sides import split_side

# calls that save, move and restore weights are not replaced: the worker has them work in memory
RESTORING = frozenset(
    {
        *("torch.save", "torch.load", ".load_state_dict", ".state_dict", "os.rename", "os.replace"),
        *("shutil.move", "shutil.copy", "shutil.copy2", "shutil.copyfile"),
    }
)
EFFECTS_OUTSIDE = Effect.SHELL | Effect.NETWORK | Effect.INPUT | Effect.ENDS | Effect.PLOT | Effect.FILES
COUNT = re.compile(r"^(ep|i$|it|n|step|count|k$|e$|t$|round)", re.IGNORECASE)
LOADING = Effect.DATA | Effect.FILES | Effect.NETWORK | Effect.SHELL


class Substitution:
    """Finds what has to be replaced in statements that train."""

    def __init__(
        self,
        effects: Effects,
        data: Mapping[str, str],
        loops: Collection[int],
        taken_out: Mapping[int, Collection[str]],
        only_plots: Callable[[ast.Call], bool],
        trains: Callable[[ast.expr], bool],
        *,
        keeps_data: bool = False,
    ) -> None:
        """Take what the replacements depend on.

        Args:
            effects: The program's.
            data: Names of loaders, data sets and class names -> role.
            loops: `id` of the nodes of loops over epochs.
            taken_out: `id` of the nodes of statements that are not executed -> names that are bound to
                nothing in their place.
            only_plots: Whether the called function does not train, and plots or has other effects outside
                the program.
            trains: Whether a training is computed in an expression.
            keeps_data: The student's own calls that load data are left as they are.
        """
        self._keeps_data = keeps_data
        self._effects = effects
        self._data = data
        self._loops = loops
        self._taken_out = taken_out
        self._variables_around: list[
            frozenset[str]
        ] = []  # parameters and loop variables, which may show a side
        self._only_plots = only_plots
        self._trains = trains

    def edits(self, node: ast.stmt) -> list[Edit]:
        """What is replaced in a statement, in the order of the source."""
        return sorted(self._statement(node), key=lambda edit: (edit.start, edit.end))

    def _statement(self, node: ast.stmt) -> Iterator[Edit]:
        if id(node) in self._taken_out:
            names = sorted(self._taken_out[id(node)])
            yield instead(node, " = ".join([*names, NOTHING_NAME]) if names else "...")
            return
        if isinstance(node, DEFINITIONS):
            self._variables_around.append(_parameters(node))
            for inner in node.body:
                yield from self._statement(inner)
            self._variables_around.pop()
            return
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and self._only_outputs(node.value):
            yield from self._left_out(node.value, "...")
            return
        pair = assigned(node)
        if pair is not None:
            yield from self._assignment(pair[0], pair[1])
            return
        if id(node) in self._loops:
            yield from self._loop(node)
        self._variables_around.append(
            _names_of_target(node.target) if isinstance(node, ast.For) else frozenset()
        )
        yield from self._children(node)
        self._variables_around.pop()

    def _children(self, node: ast.stmt) -> Iterator[Edit]:
        for child in children(node):
            if isinstance(child, ast.stmt):
                yield from self._statement(child)
            elif isinstance(child, ast.expr):
                yield from self._expression(child)
            else:
                yield from self._clause(child)

    def _loop(self, node: ast.stmt) -> Iterator[Edit]:
        """Mark a loop over epochs, and the number of epochs that it may have."""
        epoch_count, name = None, EPOCHS_NAME
        match node:
            case ast.For(iter=iterated):
                epoch_count = iterated
            case ast.While(test=test):
                epoch_count = next(
                    (bound for bound in map(_limit, _conditions(test)) if bound is not None), None
                )
                name = f"{EPOCHS_NAME}.limit"
        if epoch_count is not None:
            yield Edit(start_of(epoch_count), start_of(epoch_count), f"{name}(")
            yield Edit(end_of(epoch_count), end_of(epoch_count), ")")

    def _clause(self, node: ast.AST) -> Iterator[Edit]:
        """The edits of what follows `with`, `except` and `case`."""
        for child in children(node):
            if isinstance(child, ast.stmt):
                yield from self._statement(child)
            elif isinstance(child, ast.expr):
                yield from self._expression(child)
            else:
                yield from self._clause(child)

    def _only_outputs(self, call: ast.Call) -> bool:
        return bool(self._direct(call) & EFFECTS_OUTSIDE) or self._only_plots(call)

    def _assignment(self, targets: list[ast.expr], value: ast.expr) -> Iterator[Edit]:
        names = _plain_names(targets[0]) if len(targets) == 1 else []
        roles = [self._data.get(name) for name in names]
        at_top_level = not self._variables_around
        is_list = not isinstance(value, ast.Dict | ast.DictComp) and not (
            isinstance(value, ast.Call) and called_name(value.func) == "dict"
        )
        if roles == ["class_names"] and isinstance(targets[0], ast.Name) and at_top_level and is_list:
            yield instead(value, f"{DATA_NAME}['class_names']")  # whatever it was made from may not be there
            return
        if names and all(roles) and not self._keeps_data and self._loads(value):
            parts = [f"{DATA_NAME}[{_of_pictures(role, value)!r}]" for role in roles if role]
            replacement = parts[0] if isinstance(targets[0], ast.Name) else f"({', '.join(parts)},)"
            yield instead(value, replacement)
            return
        if len(names) > 1 and isinstance(value, ast.Call) and self._splits(value):
            sides = [split_side(name) or "train" for name in names]
            yield instead(
                value, "({},)".format(", ".join(f"{DATA_NAME}['{data_side}_dataset']" for data_side in sides))
            )
            return
        count = len(targets[0].elts) if len(targets) == 1 and isinstance(targets[0], ast.Tuple) else 0
        if count and isinstance(value, ast.Call) and self._direct(value) & EFFECTS_OUTSIDE:
            yield instead(value, f"({NOTHING_NAME},) * {count}")
            return
        yield from self._expression(value, _side_of(targets[0]) if len(targets) == 1 else None)

    def _splits(self, call: ast.Call) -> bool:
        """Whether a call cuts a data set into several."""
        name = text_of(call.func).split(".")[-1]
        return name == "random_split" and bool(self._direct(call) & Effect.DATA)

    def _loads(self, value: ast.expr) -> bool:
        """Whether an expression loads data, itself or through the student's functions."""
        for call in (node for node in walk(value) if isinstance(node, ast.Call)):
            if self._direct(call) & LOADING:
                return True
            if isinstance(call.func, ast.Name) and self._effects.of_function(call.func.id) & LOADING:
                return True
        return False

    def _expression(self, node: ast.expr, side_by_name: str | None = None) -> Iterator[Edit]:
        """The edits of an expression; `side_by_name` is the side that the name of its value shows."""
        if isinstance(node, ast.Call):
            effects = self._direct(node)
            if effects & EFFECTS_OUTSIDE:
                yield from self._left_out(node, NOTHING_NAME)
                return
            if effects & Effect.DATA:
                yield instead(node, self._substitute_for(node, side_by_name))
                return
            begun = begun_call(node)
            if begun is not None and not is_loader(begun) and self._direct(begun) & Effect.DATA:
                yield instead(node, f"{DATA_NAME}.maker({self._role(begun, side_by_name)!r})")
                return
        self._variables_around.append(_bound_in(node))
        if isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                name = key.value if isinstance(key, ast.Constant) and isinstance(key.value, str) else ""
                yield from self._expression(value, split_side(name) or side_by_name)
        else:
            for child in children(node):
                if isinstance(child, ast.expr):
                    yield from self._expression(child, side_by_name)
                elif isinstance(child, ast.keyword):
                    yield from self._expression(child.value, split_side(child.arg or "") or side_by_name)
                elif isinstance(child, ast.comprehension):
                    yield from self._clause(child)
        self._variables_around.pop()

    def _left_out(self, call: ast.Call, instead_of_it: str) -> Iterator[Edit]:
        """The edits where a call is not made: what it would be given is computed if that trains."""
        given = [*call.args, *(keyword.value for keyword in call.keywords)]
        if not any(map(self._trains, given)):
            yield instead(call, instead_of_it)
            return
        yield instead(call.func, NOTHING_NAME)
        for part in given:
            yield from self._expression(part)

    def _substitute_for(self, call: ast.Call, side_by_name: str | None) -> str:
        """What replaces data that a call loads.

        A parameter or loop variable may show the side (`split`), and so may a computed `shuffle`."""
        role = _of_pictures(self._role(call, side_by_name), call)
        names = {name.id for name in walk(call) if isinstance(name, ast.Name)}
        evidence = sorted(names & frozenset().union(*self._variables_around))
        shuffle = argument_of_loader(call, "shuffle") if is_loader(call) else None
        if side_by_name is None and shuffle is not None and not isinstance(shuffle, ast.Constant):
            evidence.append(f"shuffle={text_of(shuffle)}")
        return f"{DATA_NAME}.of({role!r}, {', '.join(evidence)})" if evidence else f"{DATA_NAME}[{role!r}]"

    def _role(self, call: ast.Call, side_by_name: str | None) -> str:
        """The role of data, also where no name shows it: `return DataLoader(data, shuffle=True)`."""
        side = side_by_name or split_side(text_of(call))
        if not is_loader(call):
            return f"{side or 'train'}_dataset"
        shuffle = argument_of_loader(call, "shuffle")
        stays_in_order = isinstance(shuffle, ast.Constant) and not shuffle.value
        return f"{side or ('test' if stays_in_order else 'train')}_loader"

    def _direct(self, call: ast.Call) -> Effect:
        """The effects of a call itself for which something has to be put in its place."""
        effects = self._effects.of_call(call, but=RESTORING)
        return effects & ~Effect.DATA if self._keeps_data else effects


def _of_pictures(role: str, value: ast.expr) -> str:
    """The role of data; that of the images as they are for a folder without a transform.

    Code of the student's may turn these into tensors itself.
    """
    match value:
        case (
            ast.Call(func=function, args=[_], keywords=[])
            | ast.Call(func=function, args=[], keywords=[ast.keyword(arg="root")])
        ) if called_name(function) == "ImageFolder":
            return role.replace("_dataset", "_pictures")
    return role


def _parameters(node: ast.stmt) -> frozenset[str]:
    arguments = getattr(node, "args", None)
    return _names_of(arguments) if isinstance(arguments, ast.arguments) else frozenset()


def _names_of(arguments: ast.arguments) -> frozenset[str]:
    every = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
    return frozenset(argument.arg for argument in every) - {"self"}


def _names_of_target(target: ast.expr) -> frozenset[str]:
    return frozenset(name.id for name in walk(target) if isinstance(name, ast.Name))


def _bound_in(node: ast.expr) -> frozenset[str]:
    """What an expression binds within itself: variables of a comprehension, parameters of a lambda."""
    if isinstance(node, ast.Lambda):
        return _names_of(node.args)
    return frozenset().union(
        *(_names_of_target(generator.target) for generator in getattr(node, "generators", ()))
    )


def _conditions(test: ast.expr) -> list[ast.expr]:
    return test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) else [test]


def _limit(test: ast.expr) -> ast.expr | None:
    """What a count stays below: `N` of `epoch < N`."""
    match test:
        case ast.Compare(left=ast.Name(id=name), ops=[ast.Lt() | ast.LtE()], comparators=[limit]):
            return limit if COUNT.search(name) else None
    return None


def _side_of(target: ast.expr) -> str | None:
    """The side that a target's name shows: `val_loader`, `self.val_loader`, `loaders["val"]`."""
    match target:
        case (
            ast.Name(id=name) | ast.Attribute(attr=name) | ast.Subscript(slice=ast.Constant(value=str(name)))
        ):
            return split_side(name)
    return None


def _plain_names(target: ast.expr) -> list[str]:
    """The names of a target, if it consists of names alone; else an empty list."""
    parts = target.elts if isinstance(target, ast.Tuple | ast.List) else [target]
    names = [part.id for part in parts if isinstance(part, ast.Name)]
    return names if len(names) == len(parts) else []
