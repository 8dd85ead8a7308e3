"""References of a statement, by Python's rules of scope: global names and what is reached through them.

It resolves aliases, `getattr`, imports by text and patterns as far as the source shows the text. It reports
computed names that it cannot resolve. `forbidden_uses` and `suspicious_code` decide whether a reference is
forbidden or should be looked at.

Tests: tests/analysis/test_loading_statements.py, tests/analysis/test_prying.py
"""

import ast
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from grader.analysis.constant_values import Unknown, called_name, handles_in, read_file, string, value
from grader.analysis.name_scopes import ANYTHING, DottedPath, Scope, Scopes, name_parts
from grader.analysis.reflection import (
    ATTRIBUTES,
    DEFINED,
    EVALUATING,
    FINDING,
    GETTERS,
    LOOKING_UP,
    MODELS,
)
from grader.analysis.syntax_trees import all_parameters, bound_names, children, walk


@dataclass(frozen=True)
class Reference:
    """A use of a global name and of what is reached through it.

    Attributes:
        path: `("nn", "Linear")`: a global name and attributes; the first part is empty if the value is not
            known (`something().mkdir`).
        absolute: The path begins with a package, not with a name: `importlib.import_module("timm")`.
        line: 1-based, within the statement's cell.
        eager: The use happens when the statement is executed, not when a function in it is called.
        called: The path is called.
        whole: It is handed on as a value, neither looked into nor called.
        stored: It is given another value.
        file: The file that the call is given to read, by its name in the source; else empty.
        given_back: The use is in a function that the one around it makes and returns, without calling it.
    """

    path: tuple[str, ...]
    absolute: bool
    line: int
    eager: bool
    called: bool
    whole: bool = False
    stored: bool = False
    file: str = ""
    given_back: bool = False


@dataclass(frozen=True)
class Computed:
    """A name that is computed at run time and then resolved.

    Attributes:
        function: What resolves it: `getattr`.
        base: What it is looked up in, as `Reference.path`; empty if that is not known.
        absolute, line, eager: As in a Reference.
    """

    function: str
    base: tuple[str, ...]
    absolute: bool
    line: int
    eager: bool


@dataclass(frozen=True)
class Imported:
    """A name bound by an import at top level: `name` stands for the dotted `target`.

    The name is `*` for everything in the target, and empty for what is only loaded: `import a.b` binds `a`.
    """

    name: str
    target: str
    line: int


@dataclass(frozen=True)
class References:
    """Everything that a statement refers to, and what it imports at top level.

    Attributes:
        computed: The names that it computes and resolves.
    """

    used: tuple[Reference, ...]
    imported: tuple[Imported, ...]
    computed: tuple[Computed, ...] = ()

    def names(self, eager: bool) -> frozenset[str]:
        """The global names used when the statement is executed (`eager`), or only later."""
        return frozenset(
            r.path[0] for r in self.used if r.eager is eager and not r.absolute and r.path[0] != ANYTHING
        )


def references(
    node: ast.AST,
    strings: Mapping[str, str],
    lazy_annotations: bool = False,
    paths: Mapping[str, str] | None = None,
) -> References:
    """What a top-level statement, or an expression, refers to.

    Args:
        node: The statement.
        strings: Text constants of the program, to see through `getattr(nn, NAME)`.
        lazy_annotations: The file begins with `from __future__ import annotations`.
        paths: Names of the program for paths of what lies in a cache: see `paths_in_cache`.
    """
    visitor = _Visitor(strings, lazy_annotations, {**(paths or {}), **handles_in(node, strings)})
    visitor.visit(node)
    return References(tuple(visitor.used), tuple(visitor.imported), tuple(visitor.computed))


class _Visitor:
    """Walks a statement and keeps track of scopes."""

    def __init__(
        self, strings: Mapping[str, str], lazy_annotations: bool, handles: Mapping[str, str]
    ) -> None:
        self.used: list[Reference] = []
        self.imported: list[Imported] = []
        self.computed: list[Computed] = []
        self._given_back: set[int] = set()  # the `id` of functions that the one around them only returns
        self._harmless: set[int] = set()  # the `id` of calls of `globals` that look up a known name, or none
        self._strings = strings
        self._handles = handles
        self._file_of_call: dict[int, str] = {}  # `id` of what is called -> the file that it is given
        self._lazy_annotations = lazy_annotations
        self._scopes = Scopes(strings)
        self._handlers: dict[type, Callable[..., None]] = {
            ast.Name: self._name,
            ast.Attribute: self._attribute,
            ast.Subscript: self._subscript,
            ast.Call: self._call,
            ast.Compare: self._compare,
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
            ast.AnnAssign: self._assign,
            ast.NamedExpr: self._assign,
            ast.For: self._for,
            ast.Match: self._match,
            getattr(ast, "TypeAlias", _NoTypeAlias): self._type_alias,
        }

    def visit(self, node: ast.AST) -> None:
        handler = self._handlers.get(type(node))
        if handler is not None:
            handler(node)
        else:
            for child in children(node):
                self.visit(child)

    def _visit_all(self, nodes: Iterable[ast.AST | None]) -> None:
        for node in nodes:
            if node is not None:
                self.visit(node)

    # --- what is used ---

    def _use(
        self,
        path: tuple[str, ...],
        absolute: bool,
        node: ast.AST,
        called: bool = False,
        *,
        whole: bool = False,
        stored: bool = False,
        file: str = "",
    ) -> None:
        line = getattr(node, "lineno", 1)
        back = any(scope.given_back for scope in self._scopes.stack)
        self.used.append(Reference(path, absolute, line, self._eager, called, whole, stored, file, back))

    def _record_computed(self, function: str, base: ast.expr | None, node: ast.expr) -> None:
        """Record that a computed name is looked up."""
        path, absolute = (self._scopes.path(base) if base is not None else None) or ((), False)
        self.computed.append(Computed(function, path, absolute, node.lineno, self._eager))

    @property
    def _eager(self) -> bool:
        return not any(scope.lazy for scope in self._scopes.stack)

    def _name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load):
            path = self._scopes.path(node)
            if path:
                self._use(*path, node, whole=True)

    def _attribute(self, node: ast.Attribute) -> None:
        path = self._scopes.path(node)
        if id(node) in self._harmless and node.attr == "modules":  # `"google.colab" in sys.modules`
            self._looked_into(node.value)
            return
        if path is None:
            if node.attr in ATTRIBUTES:
                self._use((ANYTHING, node.attr), False, node)
            self.visit(node.value)
            return
        is_load = isinstance(node.ctx, ast.Load)
        self._use(*path, node, whole=is_load, stored=not is_load, file=self._file_of_call.get(id(node), ""))
        base: ast.expr = node
        while isinstance(base, ast.Attribute):
            base = base.value
        if not isinstance(base, ast.Name):
            self._children(base)

    def _subscript(self, node: ast.Subscript) -> None:
        path = self._scopes.path(node)
        if path is not None:
            self._use(*path, node)
        if path is not None or isinstance(node.ctx, ast.Store):
            self._harmless.add(id(node.value))
        self._children(node)

    def _compare(self, node: ast.Compare) -> None:
        for operation, right in zip(node.ops, node.comparators, strict=True):
            if isinstance(operation, ast.In | ast.NotIn):
                self._harmless.add(id(right))
        self._children(node)

    def _children(self, node: ast.AST) -> None:
        for child in children(node):
            self.visit(child)

    def _looked_into(self, node: ast.expr) -> None:
        """Visit what is looked into here, so that it does not count as handed on."""
        path = self._scopes.path(node)
        if path is not None and isinstance(node, ast.Name | ast.Attribute):
            self._use(*path, node)
        elif path is not None and isinstance(node, ast.Call) and path in self._scopes.dynamic(node):
            self._use(*path, node)
            self._called(node.func)
            self._visit_all((*node.args, *(keyword.value for keyword in node.keywords)))
        else:
            self.visit(node)

    def _called(self, function: ast.expr) -> None:
        """Visit what a call calls, which does not count as handed on."""
        path = self._scopes.path(function)
        if path is not None:
            self._use(*path, function, called=True)
        else:
            self.visit(function)

    def _call(self, node: ast.Call) -> None:
        called_path, file = self._scopes.path(node.func), read_file(node, self._strings, self._handles)
        self._file_of_call[id(node.func)] = file
        if called_path is not None:
            self._use(*called_path, node.func, called=True, file=file)
        elif isinstance(node.func, ast.Attribute):
            self._use((ANYTHING, node.func.attr), False, node.func, called=True, file=file)
        dynamic = self._scopes.dynamic(node)
        for path in dynamic:
            self._use(*path, node, whole=True)
        if dynamic and isinstance(node.func, ast.Attribute):
            self._harmless.add(id(node.func.value))
        if called_path is None or not isinstance(node.func, ast.Name):
            self.visit(node.func)
        args = list(node.args)
        if args and self._looks_into(node, bool(dynamic)):
            self._record_setattr(node)
            self._looked_into(args.pop(0))
        self._visit_all(args)
        self._visit_all(keyword.value for keyword in node.keywords)
        if not dynamic:
            self._unresolved(node)

    def _looks_into(self, node: ast.Call, resolved: bool) -> bool:
        """Whether a call looks for nothing but known names in its first argument."""
        name = called_name(node.func)
        if name in ("hasattr", "delattr", "setattr"):
            return len(node.args) >= 2 and bool(self._scopes.texts_of(node.args[1]))
        return resolved and (name in LOOKING_UP or isinstance(node.func, ast.Call))

    def _record_setattr(self, node: ast.Call) -> None:
        """Record `setattr(nn, "Linear", Own)`."""
        path = self._scopes.path(node.args[0]) if called_name(node.func) in ("setattr", "delattr") else None
        if path is not None:
            for text in self._scopes.texts_of(node.args[1]):
                self._use((*path[0], *name_parts(text)), path[1], node, stored=True)

    def _unresolved(self, node: ast.Call) -> None:
        """Record names that a call resolves and that cannot be read off the source."""
        name, args = called_name(node.func), node.args
        if name in LOOKING_UP and len(args) >= 2:
            if not (self._is_own(args[0]) or _is_plain_name(args[1]) or self._forwards(args[1])):
                self._record_computed(name, args[0], node)
        elif name in (FINDING | MODELS | GETTERS) and not (args and self._scopes.texts_of(args[0])):
            if args or node.keywords:
                self._record_computed(name, None, node)
        elif any(keyword.arg == EVALUATING and not _is_false(keyword.value) for keyword in node.keywords):
            self._record_computed(EVALUATING, None, node)
        elif name == "globals" and id(node) not in self._harmless:
            self._record_computed(name, None, node)
        elif name in ("eval", "query") and isinstance(node.func, ast.Attribute) and args:
            text = string(args[0], self._strings)
            if "@" in text if text is not None else name == "eval":  # pandas looks up what an @ precedes
                self._record_computed(name, None, node)

    def _is_own(self, node: ast.expr) -> bool:
        """Whether an expression is the object itself in one of its methods: `self`."""
        if not isinstance(node, ast.Name):
            return False
        scope = self._scopes.scope_of(node.id)
        return scope is not None and scope.self_name == node.id

    def _forwards(self, node: ast.expr) -> bool:
        """Whether an expression is the name that `__getattr__` was asked for."""
        if not isinstance(node, ast.Name):
            return False
        scope = self._scopes.scope_of(node.id)
        return scope is not None and scope.forwarded == node.id

    # --- scopes ---

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        args = node.args
        self._visit_all([*node.decorator_list, *args.defaults, *args.kw_defaults])
        parameters = all_parameters(args)
        if not self._lazy_annotations:
            annotations = [node.returns, *(arg.annotation for arg in parameters)]
            self._visit_in_scope(
                Scope(False, False, _type_parameters(node)), [a for a in annotations if a is not None]
            )
        if node.name in DEFINED:
            self._use((ANYTHING, node.name), False, node)
        bound, declared = bound_names(node.body)
        names = (bound | {arg.arg for arg in parameters}) - declared
        self._given_back |= _given_back(node)
        scope = Scope(False, True, names | _type_parameters(node), given_back=id(node) in self._given_back)
        if self._scopes.stack and self._scopes.stack[-1].is_class and parameters:
            scope.self_name = parameters[0].arg
            if node.name == "__getattr__" and len(parameters) == 2:
                scope.forwarded = parameters[1].arg
        self._visit_in_scope(scope, node.body)

    def _lambda(self, node: ast.Lambda) -> None:
        self._visit_all([*node.args.defaults, *node.args.kw_defaults])
        names = {arg.arg for arg in all_parameters(node.args)}
        given_back = id(node) in self._given_back
        self._visit_in_scope(Scope(False, True, names, given_back=given_back), [node.body])

    def _class(self, node: ast.ClassDef) -> None:
        self._visit_all(node.decorator_list)
        parents = [*node.bases, *(keyword.value for keyword in node.keywords)]
        generic = Scope(False, False, _type_parameters(node))
        self._visit_in_scope(generic, parents)
        bound, declared = bound_names(node.body)
        self._scopes.stack.append(generic)
        self._visit_in_scope(Scope(True, False, bound - declared), node.body)
        self._scopes.stack.pop()

    def _type_alias(self, node: Any) -> None:
        """`type Pair[T] = tuple[T, T]` (Python 3.12): what it stands for is looked up when somebody asks."""
        self._visit_in_scope(Scope(False, True, _type_parameters(node)), [node.value])

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp) -> None:
        first, *following = node.generators
        self.visit(first.iter)
        names = bound_names(generator.target for generator in node.generators)[0]
        parts: list[ast.AST] = [first.target, *first.ifs, *following]
        parts += [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        scope = Scope(False, False, names)
        for generator in node.generators:
            scope.texts |= self._texts_in(generator.target, generator.iter)
        self._visit_in_scope(scope, parts)

    def _for(self, node: ast.For) -> None:
        """Visit a loop; the variable of a loop over a few texts is one of them."""
        texts = self._texts_in(node.target, node.iter)
        visible = self._scopes.stack[-1].texts if self._scopes.stack else self._scopes.texts
        visible |= texts
        self._children(node)
        for name in texts:
            visible.pop(name, None)

    def _texts_in(self, target: ast.expr, items: ast.expr) -> dict[str, tuple[str, ...]]:
        """The texts that a loop's variable goes over, if they are written out in the loop."""
        if not isinstance(target, ast.Name):
            return {}
        try:
            literal = value(items)
        except Unknown:
            return {}
        if not isinstance(literal, list | tuple | dict) or not all(isinstance(item, str) for item in literal):
            return {}
        return {target.id: tuple(item for item in literal if item)}

    # --- patterns ---

    def _match(self, node: ast.Match) -> None:
        self._visit_all([node.subject])
        subject = self._scopes.path(node.subject)
        for case in node.cases:
            self._pattern(case.pattern, subject)
            self._visit_all([case.guard, *case.body])

    def _pattern(self, pattern: ast.pattern, subject: DottedPath | None) -> None:
        """Record the attributes that `case object(MultiheadAttention=M)` looks up."""
        match pattern:
            case ast.MatchClass():
                self.visit(pattern.cls)
                for part in pattern.patterns:
                    self._pattern(part, None)
                for name, part in zip(pattern.kwd_attrs, pattern.kwd_patterns, strict=True):
                    path, absolute = subject or ((ANYTHING,), False)
                    self._use((*path, name), absolute, pattern)
                    self._pattern(part, ((*path, name), absolute))
            case ast.MatchAs(pattern=inner, name=name):
                if name and subject and self._scopes.stack and name in self._scopes.stack[-1].names:
                    self._scopes.stack[-1].aliases[name] = subject
                if inner is not None:
                    self._pattern(inner, subject)
            case ast.MatchOr(patterns=parts):
                for part in parts:
                    self._pattern(part, subject)
            case ast.MatchMapping(keys=keys, patterns=parts):
                self._visit_all(keys)
                for part in parts:
                    self._pattern(part, None)
            case _:
                for child in children(pattern):
                    if isinstance(child, ast.pattern):
                        self._pattern(child, None)
                    else:
                        self.visit(child)

    def _visit_in_scope(self, scope: Scope, body: Iterable[ast.AST]) -> None:
        self._scopes.stack.append(scope)
        self._visit_all(body)
        self._scopes.stack.pop()

    # --- imports and aliases ---

    def _import(self, node: ast.Import) -> None:
        for alias in node.names:
            name, target = alias.asname or alias.name.split(".")[0], alias.name
            bound = target if alias.asname else target.split(".")[0]
            self._imported(name, bound, node.lineno)
            if bound != target:
                self._loaded_module(target, node)

    def _import_from(self, node: ast.ImportFrom) -> None:
        module = "." * node.level + (node.module or "")
        for alias in node.names:
            self._imported(alias.asname or alias.name, f"{module}.{alias.name}", node.lineno)

    def _imported(self, name: str, target: str, line: int) -> None:
        if not self._scopes.stack:
            self.imported.append(Imported("*" if target.endswith(".*") else name, target, line))
            return
        path = tuple(target.split("."))
        self._scopes.stack[-1].aliases[name] = (path, True)
        eager = not any(scope.lazy for scope in self._scopes.stack)
        self.used.append(Reference(path, True, line, eager, False))

    def _loaded_module(self, target: str, node: ast.Import) -> None:
        """Record that `import a.b` binds `a` but loads `a.b`."""
        if self._scopes.stack:
            eager = not any(scope.lazy for scope in self._scopes.stack)
            self.used.append(Reference(tuple(target.split(".")), True, node.lineno, eager, False))
        else:
            self.imported.append(Imported("", target, node.lineno))

    def _assign(self, node: ast.Assign | ast.AnnAssign | ast.NamedExpr) -> None:
        """Visit an assignment; `M = nn.MultiheadAttention` makes M another name for it."""
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        pairs = [pair for target in targets for pair in _pairs(target, node.value)]
        for target, assigned in pairs:
            if self._is_alias(target, node):
                self._looked_into(assigned)
            else:
                self.visit(assigned)
        if isinstance(node, ast.AnnAssign):
            self.visit(node.annotation)
        self._visit_all(targets)
        for target, assigned in pairs:
            if (
                isinstance(target, ast.Name)
                and self._scopes.stack
                and target.id in self._scopes.stack[-1].names
            ):
                # what is later used under the other name is known to be this
                path = self._scopes.path(assigned)
                if path:
                    self._scopes.stack[-1].aliases[target.id] = path

    def _is_alias(self, target: ast.expr, node: ast.AST) -> bool:
        """Whether an assignment makes an alias that is recognized wherever it is used."""
        if not isinstance(target, ast.Name) or isinstance(node, ast.NamedExpr):
            return False
        scope = self._scopes.stack[-1] if self._scopes.stack else None
        return scope is None or (target.id in scope.names and not scope.is_class)


def _pairs(target: ast.expr, assigned: ast.expr | None) -> list[tuple[ast.expr, ast.expr]]:
    """The parts of `a, b = nn, F`, each a target with its value."""
    if assigned is None:
        return []
    match target, assigned:
        case ast.Tuple(elts=targets), ast.Tuple(elts=values) if len(targets) == len(values):
            if not any(isinstance(element, ast.Starred) for element in (*targets, *values)):
                return list(zip(targets, values, strict=True))
    return [(target, assigned)]


def _given_back(function: ast.FunctionDef | ast.AsyncFunctionDef) -> set[int]:
    """The `id` of each function within a function that is returned from it, and not used otherwise.

    Whoever decorates one may call it; `functools.wraps` does not.
    """
    made: list[ast.FunctionDef | ast.AsyncFunctionDef] = []
    returned: list[ast.expr] = []
    stack: list[ast.AST] = list(function.body)
    while stack:
        node = stack.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            made.append(node)
        elif isinstance(node, ast.Return) and node.value is not None:
            returned += node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
        elif not isinstance(node, ast.Lambda | ast.ClassDef):
            stack += children(node)
    given_back = {id(part) for part in returned if isinstance(part, ast.Lambda | ast.Name)}
    if not given_back:
        return set()
    used_otherwise = {
        node.id for node in walk(function) if isinstance(node, ast.Name) and id(node) not in given_back
    }
    names = {part.id for part in returned if isinstance(part, ast.Name)} - used_otherwise
    return given_back | {
        id(each) for each in made if each.name in names and all(map(_is_wraps, each.decorator_list))
    }


def _is_wraps(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and called_name(node.func) == "wraps"


def _is_false(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and not node.value


def _is_plain_name(node: ast.expr) -> bool:
    """Whether a computed name begins with letters that are written out: `f"layer{number}"`."""
    match node:
        case ast.JoinedStr(values=[ast.Constant(value=str() as start), *_]):
            return start[:1].isalpha()
        case ast.BinOp(left=ast.Constant(value=str() as start), op=ast.Add() | ast.Mod()):
            return start[:1].isalpha()
        case ast.Call(func=ast.Attribute(value=ast.Constant(value=str() as start), attr="format")):
            return start[:1].isalpha()
    return False


class _NoTypeAlias:
    """In place of `ast.TypeAlias`, where Python has none."""


def _type_parameters(node: ast.AST) -> set[str]:
    """The names in the brackets of `class Box[T]` (Python 3.12)."""
    return {parameter.name for parameter in getattr(node, "type_params", [])}
