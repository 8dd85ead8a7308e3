"""Data of the training script: the grader's loaders in place of the student's, and validation images.

Calls that load data are recognized by `effects`. Their side (training or test) follows from the names around
them, else it is training; a wrong name gives the wrong side, and no person is asked. Calls with effects
outside the program (plots, files, network) are replaced by an object that does nothing. A loop that chooses
by what it measures on the way gets a tenth of the training images for that, which are kept out of training:
it would choose by what it has learned otherwise. Hidden images are never in its process, so nobody can choose
by them (`grader.worker.training_setup`). `training_script` decides which statements are executed.

Tests: tests/analysis/script/test_substituted_data.py, tests/training/test_cheats.py,
tests/training/test_replay.py
"""

import ast
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from grader.analysis.constant_values import called_name
from grader.analysis.effects import Effect, Effects
from grader.analysis.recognized_roles import argument_of_loader, begun_call, is_loader, role_by_name
from grader.analysis.rewriting import Edit, end_of, instead, start_of
from grader.analysis.slicing import leaves
from grader.analysis.syntax_trees import DEFINITIONS, assigned, children, statements_within, walk
from grader.analysis.units import changed_names
from grader.domain.analyzed_program import DATA_NAME, EPOCHS_NAME, NOTHING_NAME
from grader.domain.split_sides import split_side

EXTREMES_NAME = re.compile(r"max|min|sort(ed)?|arg(max|min|sort)|idx(max|min)|n(largest|smallest)")
MODULE_ATTRIBUTES = {"parameters", "named_parameters", "state_dict", "train", "eval"}
CONTAINERS = {"list", "dict", "set", "defaultdict", "OrderedDict", "deque", "DataFrame", "zeros", "float"}
RECORDING = {
    "append",
    "extend",
    "print",
    "write",
    "set_postfix",
    "set_description",
    "log",
    "info",
    "add_scalar",
}


def chooses_in_training(
    loop: ast.stmt, data: Mapping[str, str], evaluators: Collection[str], *, over_settings: bool = False
) -> bool:
    """Whether weights, the end or the learning rate depend on what is measured on a test loader.

    Args:
        loop: A loop over epochs, or a statement that holds one.
        data: Names of data -> role.
        evaluators: Functions and methods that measure.
        over_settings: It is a loop over settings: to record the best of them is a choice, too.
    """
    measured = _measured(loop, data, evaluators)
    if not measured:
        return False
    for node in statements_within(loop):
        match node:
            case ast.While(test=test) if node is loop and _names_within(test) & measured:
                return True
            case ast.If(test=test) if _uses(test, measured, data, evaluators):
                blocks = (node.body, node.orelse)
                inner = [leaf for block in blocks for statement in block for leaf in leaves(statement)]
                # a model is passed to what measures it, but is no measurement: to record it is to choose it
                may_be_recorded = (
                    measured - _models(loop, measured, data, evaluators) if over_settings else None
                )
                if any(_chooses(leaf, may_be_recorded) for leaf in inner):
                    return True
            case ast.Expr(value=ast.Call(func=ast.Attribute(attr="step"), args=[deciding_value, *_])):
                if _uses(deciding_value, measured, data, evaluators):
                    return True
            case ast.Assign(targets=[ast.Attribute() | ast.Subscript()], value=deciding_value) if _is_setting(
                node
            ):
                if _uses(deciding_value, measured, data, evaluators):
                    return True
    return False


def chooses_outside_training(
    statement: ast.stmt,
    before: Sequence[ast.stmt],
    data: Mapping[str, str],
    evaluators: Collection[str],
    *,
    loops: Collection[int],
) -> bool:
    """Whether a statement, outside of all training, chooses something by what was measured before it.

    Args:
        statement: One of those on which the model that counts depends.
        before: What is executed before it.
        data: Names of data -> role.
        evaluators: Functions and methods that measure.
        loops: The ids of the loops that train, which are left to `chooses_in_training`.
    """
    compared = {name for part in _compared(statement, loops) for name in _names_within(part)}
    if not compared:
        return False
    earlier = ast.Module([*before], [])
    measured = _measured(earlier, data, evaluators)
    return not compared.isdisjoint(measured - _models(earlier, measured, data, evaluators))


def _compared(node: ast.AST, loops: Collection[int]) -> Iterator[ast.AST]:
    """What conditions and extremes compare, outside of the loops that train."""
    if id(node) in loops:
        return
    match node:
        case ast.If(test=test) | ast.IfExp(test=test):
            yield test
        case ast.Call(func=function, args=arguments) if EXTREMES_NAME.fullmatch(called_name(function)):
            yield from arguments
            yield from (keyword.value for keyword in node.keywords)
            if isinstance(function, ast.Attribute):
                yield function.value
    for child in children(node):
        yield from _compared(child, loops)


def measures(body: ast.stmt, data: Mapping[str, str]) -> bool:
    """Whether a function directly uses data of the test split."""
    return _uses(body, (), data, ())


def _models(
    node: ast.AST, measured: Collection[str], data: Mapping[str, str], evaluators: Collection[str]
) -> set[str]:
    """The names of what is built and trained: used as modules are, or made by calls that measure nothing."""
    models = {
        inner.value.id
        for inner in walk(node)
        if isinstance(inner, ast.Attribute)
        and inner.attr in MODULE_ATTRIBUTES
        and isinstance(inner.value, ast.Name)
    }
    for statement in statements_within(node):
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(func=function, args=arguments)):
                parts = [function, *arguments]
                measures_something = any(_uses(part, measured, data, evaluators) for part in parts)
                if called_name(function) not in CONTAINERS and not measures_something:
                    models.add(name)
    return models


def _measured(loop: ast.AST, data: Mapping[str, str], evaluators: Collection[str]) -> set[str]:
    """The names that hold what was measured, and what followed from it."""
    measured_names: set[str] = set()
    while True:
        before = len(measured_names)
        for node in statements_within(loop):
            if isinstance(node, ast.Try | ast.With | ast.FunctionDef):
                continue
            # a measurement in the loop's header may reach its loop variable, but not all of its body
            if node is loop:
                if isinstance(node, ast.For) and _uses(node.iter, measured_names, data, evaluators):
                    measured_names |= _bound_names(node.target)
                continue
            header = _header(node)
            if _uses(header, measured_names, data, evaluators):
                for inner in statements_within(node):
                    measured_names |= _bound_names(inner) | changed_names([inner]) | _filled(inner, data)
        if len(measured_names) == before:
            return measured_names


def _header(node: ast.stmt) -> ast.AST:
    """The part of a statement that is evaluated before the blocks in it."""
    match node:
        case ast.If(test=test) | ast.While(test=test):
            return test
        case ast.For(iter=iterated):
            return iterated
    return node


def _uses(
    node: ast.AST, measured: Collection[str], data: Mapping[str, str], evaluators: Collection[str]
) -> bool:
    """Whether an expression measures, or uses what was measured."""
    for inner in _without_lengths(node):
        match inner:
            case ast.Name(id=name) if name in measured or name in evaluators or _is_test(name, data):
                return True
            case ast.Attribute(attr=name) if name in evaluators or _is_test(name, {}):
                return True
            case ast.Subscript(slice=ast.Constant(value=str() as key), value=ast.Name(id=name)):
                if split_side(key) == "test" and "load" in name.lower():
                    return True
    return False


def _without_lengths(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes within a node, except what is only counted by `len`."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "len":
        return
    yield node
    for child in children(node):
        yield from _without_lengths(child)


def _is_test(name: str, data: Mapping[str, str]) -> bool:
    role = data.get(name) or role_by_name(name) or ""
    return role in ("test_loader", "test_dataset")


def _filled(node: ast.stmt, data: Mapping[str, str]) -> set[str]:
    """The names that calls in a statement are given, which may fill them: histories."""
    filled_names = set()
    for call in (inner for inner in walk(node) if isinstance(inner, ast.Call)):
        receiver = call.func.value if isinstance(call.func, ast.Attribute) else None
        given = [*call.args, *(keyword.value for keyword in call.keywords)]
        # what is printed or recorded stays as it is
        for part in (receiver, *(given if called_name(call.func) not in RECORDING else ())):
            while isinstance(part, ast.Subscript | ast.Attribute):
                part = part.value
            has_role = isinstance(part, ast.Name) and (part.id in data or role_by_name(part.id))
            if isinstance(part, ast.Name) and has_role in (False, None, "loss_history"):
                filled_names.add(part.id)
    return filled_names


def _bound_names(node: ast.AST) -> set[str]:
    return {name.id for name in walk(node) if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store)}


def _names_within(node: ast.AST) -> set[str]:
    return {name.id for name in walk(node) if isinstance(name, ast.Name)}


def _chooses(leaf: ast.stmt, measurements: Collection[str] | None) -> bool:
    """Whether a statement does more than print, count and record.

    Args:
        measurements: The names of what was measured: to record anything else is a choice. None: to record
            is never a choice.
    """
    match leaf:
        case ast.Break() | ast.Return() | ast.Raise() | ast.Continue() | ast.Delete():
            return True
        case ast.Expr(value=ast.Call(func=function)):
            return called_name(function) not in RECORDING
        case ast.Assign(value=value):
            if _is_setting(leaf) or any(isinstance(n, ast.Call) and _copies(n) for n in walk(leaf)):
                return True
            return measurements is not None and bool(_names_within(value).difference(measurements))
    return False


def _is_setting(node: ast.Assign) -> bool:
    """Whether an assignment sets a part of an object that may matter: a rate, a flag."""
    return any(isinstance(target, ast.Attribute | ast.Subscript) for target in node.targets)


def _copies(call: ast.Call) -> bool:
    name = ast.unparse(call.func).split(".")[-1]
    return name in ("deepcopy", "copy", "state_dict", "clone", "dict", "load")


# --- substitution ----------------------------------------------------------------------------------------


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
        name = ast.unparse(call.func).split(".")[-1]
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
            evidence.append(f"shuffle={ast.unparse(shuffle)}")
        return f"{DATA_NAME}.of({role!r}, {', '.join(evidence)})" if evidence else f"{DATA_NAME}[{role!r}]"

    def _role(self, call: ast.Call, side_by_name: str | None) -> str:
        """The role of data, also where no name shows it: `return DataLoader(data, shuffle=True)`."""
        side = side_by_name or split_side(ast.unparse(call))
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
