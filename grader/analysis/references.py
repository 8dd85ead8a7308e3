"""What a statement refers to, with Python's rules of scope: global names and what is reached through them."""

import ast
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from grader.analysis.folding import string

COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
ANYTHING = ""


@dataclass(frozen=True)
class Reference:
    """A use of a global name and of what is reached through it.

    Attributes:
        path: `("nn", "Linear")`: a global name and attributes; the first part is empty where the value is
            not known (`something().mkdir`).
        absolute: The path begins with a package, not with a name: `importlib.import_module("timm")`.
        line: 1-based, within the statement's cell.
        eager: It happens when the statement is executed, not when a function in it is called.
        called: It is called.
    """

    path: tuple[str, ...]
    absolute: bool
    line: int
    eager: bool
    called: bool


@dataclass(frozen=True)
class Imported:
    """A name bound by an import at top level: `name` is the dotted thing `target`.

    The name is `*` for all that is in the target, and empty for what is only loaded: `import a.b` binds `a`.
    """

    name: str
    target: str
    line: int


@dataclass(frozen=True)
class References:
    """All that a statement refers to, and what it imports at top level."""

    used: tuple[Reference, ...]
    imported: tuple[Imported, ...]

    def names(self, eager: bool) -> frozenset[str]:
        """The global names used when the statement is executed (`eager`), or only later."""
        return frozenset(
            r.path[0] for r in self.used if r.eager is eager and not r.absolute and r.path[0] != ANYTHING
        )


def bound_names(nodes: Iterable[ast.AST]) -> tuple[set[str], set[str]]:
    """The names that statements bind in their own scope, and those that they declare global or nonlocal."""
    bound: set[str] = set()
    declared: set[str] = set()
    stack = list(nodes)
    while stack:
        node = stack.pop()
        if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            bound.add(node.name)
            continue
        if isinstance(node, ast.Lambda):
            continue
        if isinstance(node, COMPREHENSIONS):
            stack += [inner for inner in ast.walk(node) if isinstance(inner, ast.NamedExpr)]
            continue
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            bound.add(node.id)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            bound |= {alias.asname or alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.Global | ast.Nonlocal):
            declared |= set(node.names)
        elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
            bound.add(node.name)
        elif isinstance(node, ast.MatchMapping) and node.rest:
            bound.add(node.rest)
        stack += ast.iter_child_nodes(node)
    return bound, declared


def references(node: ast.AST, strings: Mapping[str, str], lazy_annotations: bool = False) -> References:
    """What a top-level statement, or an expression, refers to.

    Args:
        node: The statement.
        strings: Text constants of the program, to see through `getattr(nn, NAME)`.
        lazy_annotations: The file begins with `from __future__ import annotations`.
    """
    visitor = _Visitor(strings, lazy_annotations)
    visitor.visit(node)
    return References(tuple(visitor.used), tuple(visitor.imported))


@dataclass
class _Scope:
    """A function, class or comprehension that is being visited."""

    is_class: bool
    lazy: bool
    names: set[str]
    aliases: dict[str, tuple[tuple[str, ...], bool]] = field(default_factory=dict)


class _Visitor:
    """Walks a statement and keeps track of scopes."""

    def __init__(self, strings: Mapping[str, str], lazy_annotations: bool) -> None:
        self.used: list[Reference] = []
        self.imported: list[Imported] = []
        self._strings = strings
        self._lazy_annotations = lazy_annotations
        self._scopes: list[_Scope] = []
        self._handlers: dict[type, Callable[..., None]] = {
            ast.Name: self._name,
            ast.Attribute: self._attribute,
            ast.Subscript: self._subscript,
            ast.Call: self._call,
            ast.FunctionDef: self._function,
            ast.AsyncFunctionDef: self._function,
            ast.Lambda: self._lambda,
            ast.ClassDef: self._class,
            ast.ListComp: self._comprehension,
            ast.SetComp: self._comprehension,
            ast.DictComp: self._comprehension,
            ast.GeneratorExp: self._comprehension,
            ast.Import: self._import,
            ast.ImportFrom: self._import_from,
            ast.Assign: self._assign,
        }

    def visit(self, node: ast.AST) -> None:
        handler = self._handlers.get(type(node))
        if handler is not None:
            handler(node)
        else:
            for child in ast.iter_child_nodes(node):
                self.visit(child)

    def _visit_all(self, nodes: Iterable[ast.AST | None]) -> None:
        for node in nodes:
            if node is not None:
                self.visit(node)

    # --- what names mean ---

    def _scope_of(self, name: str) -> _Scope | None:
        """The scope that binds a name; None for the module."""
        for depth, scope in enumerate(reversed(self._scopes)):
            if name in scope.names and (depth == 0 or not scope.is_class):
                return scope
        return None

    def _path(self, node: ast.expr) -> tuple[tuple[str, ...], bool] | None:
        """The path that an expression stands for and whether it is absolute; None if it is none."""
        match node:
            case ast.Name(id=name):
                scope = self._scope_of(name)
                if scope is None:
                    return (name,), False
                return scope.aliases.get(name)
            case ast.Attribute(value=whole, attr=attr):
                inner = self._path(whole)
                return (inner[0] + (attr,), inner[1]) if inner else None
            case ast.Subscript(value=whole, slice=index):
                return self._item(whole, index)
            case ast.Call():
                return self._dynamic(node)
            case _:
                return None

    def _item(self, whole: ast.expr, index: ast.expr) -> tuple[tuple[str, ...], bool] | None:
        """The path of `nn.__dict__["Linear"]`, `vars(nn)["Linear"]` and `sys.modules["timm"]`."""
        key = string(index, self._strings)
        if key is None:
            return None
        if isinstance(whole, ast.Attribute) and whole.attr == "modules":
            return tuple(key.split(".")), True
        if isinstance(whole, ast.Attribute) and whole.attr == "__dict__":
            inner = self._path(whole.value)
        elif isinstance(whole, ast.Call) and isinstance(whole.func, ast.Name) and whole.func.id == "vars":
            inner = self._path(whole.args[0]) if whole.args else None
        else:
            return None
        return (inner[0] + (key,), inner[1]) if inner else None

    def _dynamic(self, node: ast.Call) -> tuple[tuple[str, ...], bool] | None:
        """The path of `getattr(nn, "Linear")`, `import_module("timm")` and the like."""
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        texts = [string(arg, self._strings) for arg in node.args[:2]]
        if name in ("getattr", "__getattribute__") and len(texts) == 2 and texts[1]:
            inner = self._path(node.args[0])
            return (inner[0] + tuple(texts[1].split(".")), inner[1]) if inner else None
        if name in ("import_module", "__import__", "find_spec") and texts and texts[0]:
            return tuple(texts[0].split(".")), True
        if name in ("get_model", "get_model_builder") and texts and texts[0]:
            return ("torchvision", "models", texts[0]), True
        return None

    # --- what is used ---

    def _use(self, path: tuple[str, ...], absolute: bool, node: ast.expr, called: bool = False) -> None:
        eager = not any(scope.lazy for scope in self._scopes)
        self.used.append(Reference(path, absolute, node.lineno, eager, called))

    def _name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load):
            found = self._path(node)
            if found:
                self._use(*found, node)

    def _attribute(self, node: ast.Attribute) -> None:
        found = self._path(node)
        if found is None:
            self.visit(node.value)
            return
        self._use(*found, node)
        base: ast.expr = node
        while isinstance(base, ast.Attribute):
            base = base.value
        if not isinstance(base, ast.Name):
            self._children(base)

    def _subscript(self, node: ast.Subscript) -> None:
        found = self._path(node)
        if found is not None:
            self._use(*found, node)
        self._children(node)

    def _children(self, node: ast.AST) -> None:
        for child in ast.iter_child_nodes(node):
            self.visit(child)

    def _call(self, node: ast.Call) -> None:
        found = self._path(node.func)
        if found is not None:
            self._use(*found, node.func, called=True)
        elif isinstance(node.func, ast.Attribute):
            self._use((ANYTHING, node.func.attr), False, node.func, called=True)
        dynamic = self._dynamic(node)
        if dynamic is not None:
            self._use(*dynamic, node)
        if found is None or not isinstance(node.func, ast.Name):
            self.visit(node.func)
        self._visit_all(node.args)
        self._visit_all(keyword.value for keyword in node.keywords)

    # --- scopes ---

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        args = node.args
        self._visit_all([*node.decorator_list, *args.defaults, *args.kw_defaults])
        parameters = _parameters(args)
        if not self._lazy_annotations:
            annotations = [node.returns, *(arg.annotation for arg in parameters)]
            self._inside(
                _Scope(False, False, _type_parameters(node)), [a for a in annotations if a is not None]
            )
        bound, declared = bound_names(node.body)
        names = (bound | {arg.arg for arg in parameters}) - declared
        self._inside(_Scope(False, True, names | _type_parameters(node)), node.body)

    def _lambda(self, node: ast.Lambda) -> None:
        self._visit_all([*node.args.defaults, *node.args.kw_defaults])
        names = {arg.arg for arg in _parameters(node.args)}
        self._inside(_Scope(False, True, names), [node.body])

    def _class(self, node: ast.ClassDef) -> None:
        self._visit_all(node.decorator_list)
        parents = [*node.bases, *(keyword.value for keyword in node.keywords)]
        generic = _Scope(False, False, _type_parameters(node))
        self._inside(generic, parents)
        bound, declared = bound_names(node.body)
        self._scopes.append(generic)
        self._inside(_Scope(True, False, bound - declared), node.body)
        self._scopes.pop()

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp) -> None:
        first, *others = node.generators
        self.visit(first.iter)
        names = bound_names(generator.target for generator in node.generators)[0]
        parts: list[ast.AST] = [first.target, *first.ifs, *others]
        parts += [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        self._inside(_Scope(False, False, names), parts)

    def _inside(self, scope: _Scope, body: Iterable[ast.AST]) -> None:
        self._scopes.append(scope)
        self._visit_all(body)
        self._scopes.pop()

    # --- imports and aliases ---

    def _import(self, node: ast.Import) -> None:
        for alias in node.names:
            name, target = alias.asname or alias.name.split(".")[0], alias.name
            bound = target if alias.asname else target.split(".")[0]
            self._imported(name, bound, node.lineno)
            if bound != target:
                self._whole(target, node)

    def _import_from(self, node: ast.ImportFrom) -> None:
        module = "." * node.level + (node.module or "")
        for alias in node.names:
            self._imported(alias.asname or alias.name, f"{module}.{alias.name}", node.lineno)

    def _imported(self, name: str, target: str, line: int) -> None:
        if not self._scopes:
            self.imported.append(Imported("*" if target.endswith(".*") else name, target, line))
            return
        path = tuple(target.split("."))
        self._scopes[-1].aliases[name] = (path, True)
        eager = not any(scope.lazy for scope in self._scopes)
        self.used.append(Reference(path, True, line, eager, False))

    def _whole(self, target: str, node: ast.Import) -> None:
        """`import a.b` binds `a` but loads `a.b`."""
        if self._scopes:
            eager = not any(scope.lazy for scope in self._scopes)
            self.used.append(Reference(tuple(target.split(".")), True, node.lineno, eager, False))
        else:
            self.imported.append(Imported("", target, node.lineno))

    def _assign(self, node: ast.Assign) -> None:
        """In a function, `M = nn.MultiheadAttention` makes M another name for it."""
        self._children(node)
        match node.targets:
            case [ast.Name(id=name)] if self._scopes and name in self._scopes[-1].names:
                found = self._path(node.value)
                if found:
                    self._scopes[-1].aliases[name] = found


def _parameters(args: ast.arguments) -> list[ast.arg]:
    return [
        *(*args.posonlyargs, *args.args, *args.kwonlyargs),
        *(arg for arg in (args.vararg, args.kwarg) if arg is not None),
    ]


def _type_parameters(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> set[str]:
    """The names in the brackets of `class Box[T]` (Python 3.12)."""
    return {parameter.name for parameter in getattr(node, "type_params", [])}
