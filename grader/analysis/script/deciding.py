"""Selection by validation: whether a training loop decides anything by what it measures in between.

A heuristic: names of test data and of functions that measure, and what follows from them by assignment. A
loop that decides gets a tenth of the training images to validate on (`grader.worker.preparation`); any other
sees only training images there. A wrong reading changes how many images are trained on. Hidden images are
never used for it.

Tests: tests/training/test_replay.py, tests/training/test_cheats.py
"""

import ast
import re
from collections.abc import Collection, Iterator, Mapping

from grader.analysis.blocks import leaves
from grader.analysis.roles import role_by_name
from grader.analysis.units import changed_names, statements_within

TEST = re.compile(r"te?st|val|dev|eval", re.IGNORECASE)
ADDING = {"append", "extend", "print", "write", "set_postfix", "set_description", "log", "info", "add_scalar"}


def decides(
    loop: ast.stmt, data: Mapping[str, str], evaluators: Collection[str], *, chooses: bool = False
) -> bool:
    """Whether weights, the end or the learning rate depend on what is measured on a test loader.

    Args:
        loop: A loop over epochs, or what holds one.
        data: Names of data -> role.
        evaluators: Functions and methods that measure.
        chooses: It is a loop over settings: what is noted of the best of them decides, too.
    """
    measured = _measured(loop, data, evaluators)
    if not measured:
        return False
    for node in statements_within(loop):
        match node:
            case ast.While(test=test) if node is loop and _names(test) & measured:
                return True
            case ast.If(test=test) if _uses(test, measured, data, evaluators):
                blocks = (node.body, node.orelse)
                inner = [leaf for block in blocks for one in block for leaf in leaves(one)]
                if any(_acts(leaf, measured if chooses else None) for leaf in inner):
                    return True
            case ast.Expr(value=ast.Call(func=ast.Attribute(attr="step"), args=[given, *_])):
                if _uses(given, measured, data, evaluators):
                    return True
            case ast.Assign(targets=[ast.Attribute() | ast.Subscript()], value=given) if _is_setting(node):
                if _uses(given, measured, data, evaluators):
                    return True
    return False


def measures(body: ast.stmt, data: Mapping[str, str]) -> bool:
    """Whether a function uses data of the test split by itself."""
    return _uses(body, (), data, ())


def _measured(loop: ast.stmt, data: Mapping[str, str], evaluators: Collection[str]) -> set[str]:
    """The names that hold what was measured, and what followed from it."""
    found: set[str] = set()
    while True:
        before = len(found)
        for node in statements_within(loop):
            if isinstance(node, ast.Try | ast.With | ast.FunctionDef):
                continue
            if node is loop:  # what is in it does not follow from its header; what it counts by may
                if isinstance(node, ast.For) and _uses(node.iter, found, data, evaluators):
                    found |= _bound(node.target)
                continue
            header = _header(node)
            if _uses(header, found, data, evaluators):
                for inner in statements_within(node):
                    found |= _bound(inner) | changed_names([inner]) | _filled(inner, data)
        if len(found) == before:
            return found


def _header(node: ast.stmt) -> ast.AST:
    """What of a statement is evaluated before the blocks in it."""
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
                if TEST.search(key) and "load" in name.lower():
                    return True
    return False


def _without_lengths(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes in a node, but for what is only counted."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "len":
        return
    yield node
    for child in ast.iter_child_nodes(node):
        yield from _without_lengths(child)


def _is_test(name: str, data: Mapping[str, str]) -> bool:
    role = data.get(name) or role_by_name(name) or ""
    return role in ("test_loader", "test_dataset")


def _filled(node: ast.stmt, data: Mapping[str, str]) -> set[str]:
    """The names that calls in a statement are given, which may fill them: histories."""
    found = set()
    for call in (inner for inner in ast.walk(node) if isinstance(inner, ast.Call)):
        held = call.func.value if isinstance(call.func, ast.Attribute) else None
        for part in (held, *call.args, *(keyword.value for keyword in call.keywords)):
            while isinstance(part, ast.Subscript | ast.Attribute):
                part = part.value
            known = isinstance(part, ast.Name) and (part.id in data or role_by_name(part.id))
            if isinstance(part, ast.Name) and known in (False, None, "loss_history"):
                found.add(part.id)
    return found


def _bound(node: ast.AST) -> set[str]:
    return {
        name.id for name in ast.walk(node) if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store)
    }


def _names(node: ast.AST) -> set[str]:
    return {name.id for name in ast.walk(node) if isinstance(name, ast.Name)}


def _acts(leaf: ast.stmt, measured: Collection[str] | None) -> bool:
    """Whether a statement does more than print, count and note.

    Args:
        measured: The names of what was measured: noting anything else is a choice; None: it is none.
    """
    match leaf:
        case ast.Break() | ast.Return() | ast.Raise() | ast.Continue() | ast.Delete():
            return True
        case ast.Expr(value=ast.Call(func=function)):
            name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
            return name not in ADDING
        case ast.Assign(value=value):
            if _is_setting(leaf) or any(isinstance(n, ast.Call) and _copies(n) for n in ast.walk(leaf)):
                return True
            return measured is not None and bool(_names(value).difference(measured))
    return False


def _is_setting(node: ast.Assign) -> bool:
    """Whether something of an object is set that may matter: a rate, a flag."""
    return any(isinstance(target, ast.Attribute | ast.Subscript) for target in node.targets)


def _copies(call: ast.Call) -> bool:
    name = ast.unparse(call.func).split(".")[-1]
    return name in ("deepcopy", "copy", "state_dict", "clone", "dict", "load")
