"""How often a script builds a model of the graded class: exactly once, or perhaps more often.

It counts calls of the class by its name; loops, other uses of the name and `deepcopy` count as several. It
errs toward several: then `grader.worker.script_run` keeps the epochs and reports them at the end.
`model_that_counts` decides which model counts.

Tests: tests/benchmarks/test_script_alone.py, tests/analysis/test_recipe.py
"""

import ast
from collections.abc import Iterable, Iterator, Mapping

from grader.analysis.blocks import LOOPS
from grader.analysis.references import COMPREHENSIONS

MANY = 2
REPEATING = (*LOOPS, *COMPREHENSIONS, ast.Lambda)


def is_built_once(kind: str, executed: Iterable[ast.stmt], definitions: Mapping[str, ast.stmt]) -> bool:
    """Whether exactly one model is built, as far as can be read.

    Args:
        kind: The class.
        executed: The statements of the top level that are executed.
        definitions: The functions and classes that they use, by name.
    """
    every = [*executed, *definitions.values()]
    copied = any(_copies(call) for node in every for call in ast.walk(node) if isinstance(call, ast.Call))
    return not copied and _Calls(list(executed), definitions).times(kind, frozenset()) == 1


def _copies(call: ast.Call) -> bool:
    """Whether a call may copy a model: a copy can be trained by itself. That of its weights cannot."""
    name = ast.unparse(call.func).split(".")[-1]
    return name == "deepcopy" and not any(
        isinstance(argument, ast.Call) and ast.unparse(argument.func).endswith("state_dict")
        for argument in call.args
    )


class _Calls:
    """Counts calls, up to `MANY`."""

    def __init__(self, executed: list[ast.stmt], definitions: Mapping[str, ast.stmt]) -> None:
        self._executed = executed
        self._definitions = {name: node for name, node in definitions.items() if node not in executed}

    def times(self, name: str, within: frozenset[str]) -> int:
        """How often something is called by its name; handed on as a value, it counts as called often."""
        if name in within:
            return MANY
        count = sum(weight for node in self._executed for weight in _uses(node, name))
        for other, body in self._definitions.items():
            uses = sum(_uses(body, name)) if other != name else 0
            if uses:
                count += uses * self.times(other, within | {name})
        return min(count, MANY)


def _uses(node: ast.AST, name: str, weight: int = 1) -> Iterator[int]:
    """The weight of each use of a name: 1 for a call that is made once when the node is executed."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name:
        yield weight
        children: Iterable[ast.AST] = [*node.args, *node.keywords]
    elif isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load):
        yield MANY
        children = ()
    else:
        children = _evaluated(node)
    inner = MANY if isinstance(node, REPEATING) else weight
    for child in children:
        # a method may be called as often as one likes, but an object is initialized once
        is_method = isinstance(node, ast.ClassDef) and isinstance(child, ast.FunctionDef)
        many = is_method and child.name != "__init__"  # type: ignore[attr-defined]
        yield from _uses(child, name, MANY if many else inner)


def _evaluated(node: ast.AST) -> Iterator[ast.AST]:
    """The children of a node, but for annotations and type checks, which call nothing."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "isinstance":
        yield node.args[0] if node.args else node.func
        return
    for name, value in ast.iter_fields(node):
        every = value if isinstance(value, list) else [value]
        if name not in ("annotation", "returns"):
            yield from (each for each in every if isinstance(each, ast.AST))
