"""What a name stands for in a statement, by Python's rules of scope: the dotted path that an expression is.

It resolves aliases, `getattr` and imports by text as far as the source shows the text. Where several texts
are possible it gives a path for each; where none is known, none. What is used of these paths is decided in
`grader.analysis.references`.

Tests: tests/analysis/test_loading_statements.py, tests/analysis/test_prying.py
"""

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field

from grader.analysis.constant_values import called_name, string
from grader.analysis.reflection import FINDING, GETTERS, LOOKING_UP, MODELS

ANYTHING = ""


@dataclass
class Scope:
    """A function, class or comprehension that is being visited.

    Attributes:
        self_name: The first parameter of a method: `self`.
        forwarded: The name that a method `__getattr__` is asked for.
        texts: Names that stand for one of a few texts: variables of a loop over them.
        given_back: A function that the one around it makes and returns, without calling it.
    """

    is_class: bool
    lazy: bool
    names: set[str]
    aliases: dict[str, "DottedPath"] = field(default_factory=dict)
    self_name: str = ""
    forwarded: str = ""
    texts: dict[str, tuple[str, ...]] = field(default_factory=dict)
    given_back: bool = False


DottedPath = tuple[tuple[str, ...], bool]
"""A path, and whether it is absolute."""


class Scopes:
    """The scopes around the expression that is being visited, and what names mean in them.

    Attributes:
        stack: Those around it, the outermost first.
        texts: As in a scope, for the top level.
    """

    def __init__(self, strings: Mapping[str, str]) -> None:
        self.stack: list[Scope] = []
        self.texts: dict[str, tuple[str, ...]] = {}
        self._strings = strings

    def scope_of(self, name: str) -> Scope | None:
        """The scope that binds a name; None for the module."""
        for depth, scope in enumerate(reversed(self.stack)):
            if name in scope.names and (depth == 0 or not scope.is_class):
                return scope
        return None

    def path(self, node: ast.expr) -> DottedPath | None:
        """The path that an expression stands for and whether it is absolute; None if it is not a path."""
        match node:
            case ast.Name(id=name):
                scope = self.scope_of(name)
                if scope is None:
                    return (name,), False
                return scope.aliases.get(name)
            case ast.Attribute(value=base, attr=attr):
                inner = self.path(base)
                return (inner[0] + (attr,), inner[1]) if inner else None
            case ast.Subscript(value=base, slice=index):
                return self._item(base, index)
            case ast.Call():
                paths = self.dynamic(node)
                return paths[0] if len(paths) == 1 else None
            case ast.NamedExpr(value=inner_value):
                return self.path(inner_value)
            case _:
                return None

    def _item(self, container: ast.expr, index: ast.expr) -> DottedPath | None:
        """The path of `nn.__dict__["Linear"]`, `vars(nn)["Linear"]` and `sys.modules["timm"]`."""
        key = string(index, self._strings)
        if key is None:
            return None
        if isinstance(container, ast.Attribute) and container.attr == "modules":
            return tuple(key.split(".")), True
        if isinstance(container, ast.Attribute) and container.attr == "__dict__":
            inner = self.path(container.value)
        elif (
            isinstance(container, ast.Call)
            and isinstance(container.func, ast.Name)
            and container.func.id == "vars"
        ):
            inner = self.path(container.args[0]) if container.args else None
        elif (
            isinstance(container, ast.Call)
            and isinstance(container.func, ast.Name)
            and container.func.id == "globals"
        ):
            return (key,), False
        else:
            return None
        return (inner[0] + (key,), inner[1]) if inner else None

    def dynamic(self, node: ast.Call) -> list[DottedPath]:
        """The paths of `getattr(nn, "Linear")`, `import_module("timm")` and the like: one for each name."""
        name = called_name(node.func)
        if name in LOOKING_UP and len(node.args) >= 2:
            inner = self.path(node.args[0]) or ((ANYTHING,), False)
            return [(inner[0] + name_parts(text), inner[1]) for text in self.texts_of(node.args[1])]
        if name in ("__getattribute__", "__getattr__") and len(node.args) == 1:
            inner = (self.path(node.func.value) if isinstance(node.func, ast.Attribute) else None) or (
                (ANYTHING,),
                False,
            )
            return [(inner[0] + name_parts(text), inner[1]) for text in self.texts_of(node.args[0])]
        if name in FINDING and node.args:
            return [(name_parts(text.lstrip(".")), True) for text in self.texts_of(node.args[0])]
        if name in MODELS and node.args:
            return [(("torchvision", "models", text), True) for text in self.texts_of(node.args[0])]
        if isinstance(node.func, ast.Call) and called_name(node.func.func) in GETTERS and node.args:
            inner = self.path(node.args[0]) or ((ANYTHING,), False)
            return [
                (inner[0] + name_parts(text), inner[1])
                for arg in node.func.args
                for text in self.texts_of(arg)
            ]
        if name in ("get", "pop", "__getitem__", "setdefault") and isinstance(node.func, ast.Attribute):
            path = self._item(node.func.value, node.args[0]) if node.args else None
            return [path] if path else []
        return []

    def texts_of(self, node: ast.expr) -> tuple[str, ...]:
        """The texts that an expression may be; empty where they are not known or are not names."""
        if isinstance(node, ast.Name):
            scope = self.scope_of(node.id)
            texts = (scope.texts if scope is not None else self.texts).get(node.id)
            if texts is not None:
                return texts
            if scope is not None:
                return ()
        text = string(node, self._strings)
        return (text,) if text else ()


def name_parts(text: str) -> tuple[str, ...]:
    """The parts of `torch.nn:MultiheadAttention`."""
    return tuple(text.replace(":", ".").split("."))
