"""Whether code chooses by what it measures: when it stops, which weights or settings it keeps, at what rate.

A loop that does gets a tenth of the training images for that, which are kept out of training: it would choose
by what it has learned otherwise. Hidden images are never in its process, so nobody can choose by them
(`grader.worker.training_setup`). To print or record a measurement is no choice. `executed_code` asks for the
statements that are executed.

Tests: tests/analysis/script/test_substituted_data.py, tests/training/test_cheats.py
"""

import ast
import re
from collections.abc import Collection, Iterator, Mapping, Sequence

from grader.analysis.constant_values import called_name
from grader.analysis.recognized_roles import role_by_name
from grader.analysis.slicing import leaves
from grader.analysis.syntax_trees import children, statements_within, text_of, walk
from grader.analysis.units import changed_names
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
    name = text_of(call.func).split(".")[-1]
    return name in ("deepcopy", "copy", "state_dict", "clone", "dict", "load")
