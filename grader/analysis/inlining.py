"""Expressions of a function written out: without its parameters, and without names that it binds once.

`Compose(steps)` in `def folder(name, *more): steps = [*more, ToTensor()]` is, in the call
`folder("train", flip)`, `Compose([*(flip,), ToTensor()])`. It decides nothing about what is written out, and
gives nothing where a name may stand for several values.

Tests: tests/analysis/test_inlining.py
"""

import ast
from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any

from grader.analysis.constant_values import Unknown
from grader.analysis.recognized_roles import bindings
from grader.analysis.syntax_trees import COMPREHENSIONS, all_parameters, bound_names, copied, walk
from grader.analysis.units import changed_names

DEEPEST = 12  # names that stand for each other


def once_bound(function: ast.FunctionDef) -> dict[str, ast.expr]:
    """The names that a function's body binds once, to an expression, and that nothing changes in place."""
    times = Counter(
        node.id
        for node in walk(function)
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)
    )
    changed = changed_names(function.body)
    return {
        name: value
        for statement in function.body
        if isinstance(statement, ast.Assign | ast.AnnAssign)
        for name, value in bindings(statement)
        if value is not None and times[name] == 1 and name not in changed
    }


def written_out(
    function: ast.FunctionDef, value: ast.expr, arguments: Mapping[str, ast.expr]
) -> ast.expr | None:
    """An expression in a function as it is in one of its calls.

    Args:
        function: Whose parameters and names it may use.
        value: The expression.
        arguments: Parameter -> what the call gives for it, or its default.

    Returns:
        An expression that uses none of the function's own names; None if there is none.
    """
    bound = bound_names(function.body)[0]
    own_names = bound | {parameter.arg for parameter in all_parameters(function.args)}
    given = {name: argument for name, argument in arguments.items() if name not in bound}
    try:
        return _WrittenOut(once_bound(function), given, own_names).expression(value)
    except Unknown:
        return None


class _WrittenOut(ast.NodeTransformer):
    """Replaces a function's own names by what they stand for; what its caller gives stays as it is."""

    def __init__(
        self, own: Mapping[str, ast.expr], given: Mapping[str, ast.expr], names: Collection[str]
    ) -> None:
        self._own, self._given, self._names = own, given, names
        self._depth = 0

    def expression(self, value: ast.expr) -> ast.expr:
        """The expression, with its names replaced.

        Raises:
            Unknown: One of them may stand for several values.
        """
        if self._depth == DEEPEST:
            raise Unknown
        self._depth += 1
        replaced: ast.expr = self.visit(copied(value))
        self._depth -= 1
        return replaced

    def visit(self, node: ast.AST) -> Any:
        """The node, with the names in it replaced."""
        if isinstance(node, (ast.Lambda, ast.NamedExpr, *COMPREHENSIONS)):
            raise Unknown  # these bind names of their own
        return super().visit(node)

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """What a name stands for."""
        if node.id not in self._names:
            return node
        if node.id in self._given:
            return copied(self._given[node.id])
        if node.id in self._own:
            return self.expression(self._own[node.id])
        raise Unknown
