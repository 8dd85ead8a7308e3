"""The text of an expression as far as the source shows it: the name of a file that is put together.

Parts that cannot be read off the source, such as what is typed in, are UNKNOWN_PART: this module never
guesses, and executes nothing. Calls are followed through joined paths, formatting and short functions of the
program. `constant_values` reads values that are known as a whole; `model_that_counts` decides what a name
means.

Tests: tests/analysis/script/test_partial_text.py, tests/analysis/script/test_which_model_counts.py
"""

import ast
import re
import string
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from grader.analysis.constant_values import Unknown, called_name, value
from grader.analysis.effects import Aliases
from grader.analysis.recognized_roles import bindings
from grader.analysis.script.definitions import Definitions
from grader.analysis.syntax_trees import all_parameters, bound_names, copied, statements_within, walk
from grader.analysis.units import Unit

UNKNOWN_PART = "\0"
MOST_DEEP = 12  # expressions that are looked up within each other
MOST_INLINED = 20  # local names of a function, in one expression of it
PATHS = frozenset({"Path", "PurePath", "PosixPath", "PurePosixPath", "WindowsPath", "PureWindowsPath"})
OF_PATHS = frozenset(
    {"abspath", "realpath", "normpath", "expanduser", "fspath", "open", "str"}
)  # named first
SAME_FILE = frozenset({"absolute", "resolve", "expanduser", "as_posix"})  # methods of a path
_CONVERSION = re.compile(r"%(?:\((\w+)\))?([-+ #0\d.*]*)[hlL]?(.)", re.DOTALL)


def bound_once(units: Iterable[Unit]) -> dict[str, ast.expr]:
    """Names that statements bind once, to an expression."""
    expressions: dict[str, ast.expr] = {}
    twice: set[str] = set()
    for statement in units:
        if statement.is_definition:
            continue
        found = list(bindings(statement.node))
        for name, expression in found:
            if name in expressions or expression is None:
                twice.add(name)
            else:
                expressions[name] = expression
        twice |= statement.changes | (statement.binds - {name for name, _ in found})
        twice |= {
            node.target.id
            for node in statements_within(statement.node)
            if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name)
        }
    return {name: expression for name, expression in expressions.items() if name not in twice}


class PartialText:
    """Reads texts where names stand for certain expressions."""

    def __init__(
        self, expressions: Mapping[str, ast.expr], aliases: Aliases, definitions: Definitions
    ) -> None:
        """Take what is known.

        Args:
            expressions: What each name stands for; other names are unknown.
            aliases, definitions: The program's.
        """
        self._expressions = expressions
        self._aliases = aliases
        self._definitions = definitions
        self._depth = 0

    def of(self, node: ast.expr) -> str:
        """The text of an expression, with UNKNOWN_PART for what is not known of it."""
        if self._depth > MOST_DEEP:
            return UNKNOWN_PART
        self._depth += 1
        try:
            known = value(node, self._value)
            return str(known) if isinstance(known, str | int | float) else UNKNOWN_PART
        except Unknown:
            return self._partial(node)
        finally:
            self._depth -= 1

    def _value(self, node: ast.expr) -> object:
        if not isinstance(node, ast.Name) or node.id not in self._expressions or self._depth > MOST_DEEP:
            raise Unknown
        self._depth += 1
        try:
            return value(self._expressions[node.id], self._value)
        finally:
            self._depth -= 1

    def _partial(self, node: ast.expr) -> str:
        match node:
            case ast.Name(id=name) if name in self._expressions:
                return self.of(self._expressions[name])
            case ast.JoinedStr(values=parts):
                return "".join(map(self.of, parts))
            case ast.FormattedValue(value=inner, conversion=-1, format_spec=None):
                return self.of(inner)
            case ast.BinOp(left=left, op=ast.Add(), right=right) if self._may_be_texts(left, right):
                return self.of(left) + self.of(right)
            case ast.BinOp(left=left, op=ast.Div(), right=right) if self._may_be_texts(left, right):
                return f"{self.of(left)}/{self.of(right)}"
            case ast.BinOp(left=left, op=ast.Mod(), right=right) if self._may_be_texts(left):
                return self._by_percent(self.of(left), right)
            case ast.Call(func=ast.Attribute(value=template, attr="format")):
                return self._by_format(self.of(template), node)
            case ast.Call(
                func=ast.Attribute(value=glue, attr="join"),
                args=[ast.List(elts=parts) | ast.Tuple(elts=parts)],
                keywords=[],
            ):
                return self.of(glue).join(map(self.of, parts))
            case ast.Call():
                return self._by_call(node)
        return UNKNOWN_PART

    def _may_be_texts(self, *nodes: ast.expr) -> bool:
        """Whether none of the expressions is known to be something else: `epoch + 1`."""
        for node in nodes:
            try:
                if not isinstance(value(node, self._value), str):
                    return False
            except Unknown:
                continue
        return True

    def _by_percent(self, template: str, right: ast.expr) -> str:
        """`"%s_%s.pth" % (number, name)`."""
        kinds = [match[3] for match in _CONVERSION.finditer(template) if match[3] != "%"]
        values: Sequence[ast.expr | None] = right.elts if isinstance(right, ast.Tuple) else [right]
        if UNKNOWN_PART in template or len(values) != len(kinds) or "*" in template:
            values = [None] * len(kinds)
        given = iter(values)

        def filled(match: re.Match[str]) -> str:
            key, form, kind = match.groups()
            if kind == "%":
                return "%"
            node = next(given)
            if node is None or key or form or kind not in "sdi":
                return UNKNOWN_PART
            text = self.of(node)
            return text if kind == "s" or text.isdecimal() else UNKNOWN_PART

        return _CONVERSION.sub(filled, template)

    def _by_format(self, template: str, call: ast.Call) -> str:
        """`"{}_{name}.pth".format(number, name=name)`."""
        is_known = UNKNOWN_PART not in template and not _is_unpacked(call)
        given = {str(index): node for index, node in enumerate(call.args)}
        given |= {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg}
        try:
            fields = list(string.Formatter().parse(template))
        except ValueError:
            return UNKNOWN_PART
        pieces, count = [], 0
        for literal, field, form, conversion in fields:
            pieces.append(literal)
            if field is None:
                continue
            if not field:
                field, count = str(count), count + 1
            node = given.get(field) if is_known and not form and not conversion else None
            pieces.append(UNKNOWN_PART if node is None else self.of(node))
        return "".join(pieces)

    def _by_call(self, call: ast.Call) -> str:
        """A path that is joined or made absolute, or what a function of the program returns."""
        name, function = called_name(call.func), call.func
        names = self._aliases.names_of(function)
        is_joined = name == "join" and (len(call.args) > 1 or "os.path.join" in names)
        if is_joined or name in PATHS:
            return "/".join(map(self.of, call.args)) if call.args else UNKNOWN_PART
        if isinstance(function, ast.Attribute) and name == "joinpath":
            return "/".join(map(self.of, [function.value, *call.args]))
        if isinstance(function, ast.Attribute) and name in SAME_FILE and not call.args:
            return self.of(function.value)
        defined = self._definitions.function(name) if isinstance(function, ast.Name) else None
        if defined is None:
            return self.of(call.args[0]) if name in OF_PATHS and call.args else UNKNOWN_PART
        returned = [node.value for node in statements_within(defined) if isinstance(node, ast.Return)]
        if len(returned) != 1 or returned[0] is None or self._depth > MOST_DEEP:
            return UNKNOWN_PART
        return self.of(in_callers_terms(returned[0], defined, call))


def in_callers_terms(expression: ast.expr, function: ast.FunctionDef, call: ast.Call) -> ast.expr:
    """An expression of a function as it reads where the function is called.

    Args:
        function: The function or method that is called.
        call: The call.
    """
    given = _arguments(function, call)
    local_names, declared = bound_names(function.body)
    local_names |= {parameter.arg for parameter in all_parameters(function.args)}
    stored = Counter(
        node.id
        for statement in function.body
        for node in walk(statement)
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)
    )
    once = {
        name: bound
        for statement in function.body
        for name, bound in bindings(statement)
        if stored[name] == 1 and name not in given
    }
    inlined: list[str] = []

    def stands_for(name: str) -> ast.expr | None:
        if name not in local_names - declared:
            return None
        if name in given and not stored[name]:
            return given[name]
        inlined.append(name)
        local = once.get(name)
        if local is None or len(inlined) > MOST_INLINED:
            return _LOST
        return _renamed(local, stands_for)

    return _renamed(expression, stands_for)


# nothing has such a name
_LOST = ast.Name(UNKNOWN_PART, ast.Load(), lineno=1, col_offset=0, end_lineno=1, end_col_offset=0)


def _renamed(expression: ast.expr, stands_for: Callable[[str], ast.expr | None]) -> ast.expr:
    renamed: ast.expr = _Renaming(stands_for).visit(copied(expression))
    return renamed


class _Renaming(ast.NodeTransformer):
    """Puts expressions in the place of names."""

    def __init__(self, stands_for: Callable[[str], ast.expr | None]) -> None:
        self._stands_for = stands_for

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self._stands_for(node.id) or node


def _arguments(function: ast.FunctionDef, call: ast.Call) -> dict[str, ast.expr]:
    """Parameter -> what it is given, or its default; the first parameter of a method is left out."""
    parameters = function.args
    positional = [parameter.arg for parameter in (*parameters.posonlyargs, *parameters.args)]
    defaults = dict(zip(reversed(positional), reversed(parameters.defaults), strict=False))
    defaults |= {
        parameter.arg: default
        for parameter, default in zip(parameters.kwonlyargs, parameters.kw_defaults, strict=True)
        if default is not None
    }
    if isinstance(call.func, ast.Attribute):
        positional = positional[1:]
    if _is_unpacked(call):
        return {}
    given = dict(zip(positional, call.args, strict=False))
    return defaults | given | {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg}


def _is_unpacked(call: ast.Call) -> bool:
    """Whether arguments are unpacked from a collection, so that it is not known which they are."""
    return any(isinstance(argument, ast.Starred) for argument in call.args) or any(
        keyword.arg is None for keyword in call.keywords
    )
