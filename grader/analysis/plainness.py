"""Plain assignments: statements that only name a value, by literals, arithmetic and harmless calls.

It goes by kinds of nodes and a list of names (`range`, `Path`, `math.*`, `...Loss`); a student's own function
of such a name passes too. An unknown call is not plain: then the statement is executed only if something
needs it. `slicing` decides what is executed.

Tests: tests/analysis/test_loading_statements.py
"""

import ast

from grader.analysis.units import assigned

PURE = {
    *("range", "len", "int", "float", "str", "bool", "tuple", "list", "dict", "set", "frozenset", "min"),
    *("max", "sum", "round", "abs", "sorted", "enumerate", "zip", "reversed", "map", "slice", "type"),
    *(
        "torch.device",
        "torch.cuda.is_available",
        "torch.cuda.device_count",
        "torch.backends.mps.is_available",
    ),
    *("torch.backends.mps.is_built", "Path", "PurePath", "pathlib.Path", "os.path.join", "os.cpu_count"),
    *("os.getcwd", "os.environ.get", "os.getenv", "namedtuple", "collections.namedtuple", "defaultdict"),
    *(
        "collections.defaultdict",
        "OrderedDict",
        "Counter",
        "deque",
        "SimpleNamespace",
        "types.SimpleNamespace",
    ),
    *("partial", "functools.partial", "TypeVar", "device", "cuda.is_available", "isinstance", "getattr"),
}
PURE_ROOTS = {"math"}
SIMPLE = (
    *(ast.Constant, ast.Tuple, ast.List, ast.Set, ast.Dict, ast.UnaryOp, ast.BinOp, ast.BoolOp, ast.Compare),
    *(ast.IfExp, ast.Name, ast.Attribute, ast.Subscript, ast.Slice, ast.JoinedStr, ast.FormattedValue),
    *(ast.Starred, ast.ListComp, ast.DictComp, ast.SetComp, ast.GeneratorExp, ast.comprehension, ast.keyword),
    *(ast.operator, ast.unaryop, ast.boolop, ast.cmpop, ast.expr_context),
)


def is_plain(node: ast.stmt) -> bool:
    """Whether a statement only gives names to plain values, so that executing it can do no harm."""
    pair = assigned(node)
    if pair is None:
        return False
    targets, value = pair
    named = all(isinstance(t, ast.Name | ast.Tuple | ast.List) for t in targets) and all(
        isinstance(element, ast.Name | ast.Starred)
        for target in targets
        if isinstance(target, ast.Tuple | ast.List)
        for element in target.elts
    )
    return named and _is_plain_value(value)


def _is_plain_value(value: ast.expr) -> bool:
    stack: list[ast.AST] = [value]
    while stack:
        node = stack.pop()
        if isinstance(node, ast.Lambda):
            continue
        if isinstance(node, ast.Call):
            if not _is_pure(node.func):
                return False
        elif not isinstance(node, SIMPLE):
            return False
        stack += ast.iter_child_nodes(node)
    return True


def _is_pure(function: ast.expr) -> bool:
    if not isinstance(function, ast.Name | ast.Attribute):
        return False
    name = ast.unparse(function)
    return (
        name in PURE
        or name.split(".")[0] in PURE_ROOTS
        or (name.endswith("Loss") and name.split(".")[-1][:1].isupper())
    )
