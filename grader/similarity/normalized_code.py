"""A submission's code as sequences of tokens that renaming, reformatting and commenting do not change.

What a student may choose is taken out: names, comments, docstrings, annotations, the texts of strings and
aliases of imports. So are numbers beyond small ones (an axis is structure, a learning rate is a choice),
and the order of keyword arguments and of the two sides of `+` and `*`. What stays is what the code does:
`.transpose`, `len`, `torch.nn.functional.softmax` under any alias. The module separates the
units that the course handed out from the others. It compares nothing.
"""

import ast
import functools
from collections.abc import Iterable, Iterator, Sequence
from pathlib import PurePath

from grader.analysis.source import TOO_DEEP, source
from grader.domain.errors import SubmissionError
from grader.similarity.compared_work import Code, CodeUnit, Token

CHOSEN_NAME = "v"  # in place of every name that the student chose
SMALL = 3
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_SEQUENCES = (ast.Tuple, ast.List, ast.Set)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.GeneratorExp)


def units(cells: Iterable[tuple[str, ast.Module]]) -> tuple[CodeUnit, ...]:
    """The units of a source in order, function by function.

    Args:
        cells: (file or cell, its tree).
    """
    all_cells = list(cells)
    return tuple(_Normalizer(_Names([tree for _, tree in all_cells])).units(all_cells))


class _Names:
    """What the names of a source stand for."""

    def __init__(self, trees: Sequence[ast.Module]) -> None:
        self.imported: dict[str, str] = {}
        self.bound: set[str] = set()
        self.fields: set[str] = set()
        self.self_names: set[str] = set()
        for tree in trees:
            for node in ast.walk(tree):
                self._read(node)

    def _read(self, node: ast.AST) -> None:
        match node:
            case ast.Import(names):
                for alias in names:
                    top = alias.name.split(".")[0]
                    self.imported[alias.asname or top] = alias.name if alias.asname else top
            case ast.ImportFrom(module, names, level):
                for alias in names:
                    self.imported[alias.asname or alias.name] = f"{'.' * level}{module or ''}.{alias.name}"
            case ast.Name(name, ast.Store() | ast.Del()) | ast.arg(name):
                self.bound.add(name)
            case ast.ExceptHandler(_, str(name), _) | ast.MatchAs(_, str(name)) | ast.MatchStar(str(name)):
                self.bound.add(name)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                self.bound.add(node.name)
            case ast.ClassDef():
                self._read_class(node)
            case ast.Attribute(ast.Name(), attribute, ast.Store()):
                self.fields.add(attribute)
            case _:
                pass

    def _read_class(self, node: ast.ClassDef) -> None:
        self.bound.add(node.name)
        for part in node.body:
            if isinstance(part, _FUNCTIONS) and part.args.args:
                self.self_names.add(part.args.args[0].arg)
            for target in _targets(part):
                if isinstance(target, ast.Name):
                    self.fields.add(target.id)


class _Normalizer:
    """Turns trees into units."""

    def __init__(self, names: _Names) -> None:
        self._names = names
        self._block = 0
        self._line = 1

    def units(self, cells: Sequence[tuple[str, ast.Module]]) -> Iterator[CodeUnit]:
        """The units of all cells; all top-level statements are one block, also those after a definition."""
        for file, tree in cells:
            yield from self._units_of(file, tree.body, 0)

    def _units_of(self, file: str, body: Sequence[ast.stmt], block: int) -> Iterator[CodeUnit]:
        for node in body:
            own_block = block
            if isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
                self._block += 1
                own_block = self._block
            self._line = node.lineno
            if tokens := tuple(self._head(node)):
                yield CodeUnit(file, own_block, tokens)
            for part in ("body", "orelse", "finalbody", "handlers", "cases"):
                for inner in _bodies(getattr(node, part, ())):
                    yield from self._units_of(file, inner, own_block)

    def _head(self, node: ast.stmt) -> Iterable[Token]:
        """The tokens of a simple statement, or of a compound one without its bodies."""
        match node:
            case ast.Import() | ast.ImportFrom() | ast.Pass() | ast.Global() | ast.Nonlocal():
                return
            case ast.Expr(ast.Constant()):  # a docstring, or a string used as a comment
                return
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                yield from self._function(node)
            case ast.ClassDef(_, bases, keywords):
                yield self._token("class")
                yield from self._tokens_of_all([*bases, *(keyword.value for keyword in keywords)])
            case ast.AnnAssign(target, _, value):
                if value is not None:
                    yield self._token("=")
                    yield from self._tokens_of_all([target, value])
            case ast.Assign(targets, value):
                yield self._token("=")
                yield from self._tokens_of_all([*targets, value])
            case ast.AugAssign(target, operator, value):
                yield self._token("=")
                yield from self._tokens_of(target)
                yield from self._tokens_of(ast.copy_location(ast.BinOp(target, operator, value), node))
            case _:
                yield self._token(type(node).__name__)
                for name, value in ast.iter_fields(node):
                    if name not in ("body", "orelse", "finalbody", "handlers", "cases", "type_comment"):
                        yield from self._tokens_of_all(value if isinstance(value, list) else [value])

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[Token]:
        yield self._token("def")
        yield from self._tokens_of_all(node.decorator_list)
        arguments = node.args
        for _ in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
            yield self._token(CHOSEN_NAME)
        yield from self._tokens_of_all([*arguments.defaults, *arguments.kw_defaults])

    def _tokens_of_all(self, nodes: Iterable[object]) -> Iterator[Token]:
        for node in nodes:
            if isinstance(node, ast.AST):
                yield from self._tokens_of(node)

    def _tokens_of(self, node: ast.AST) -> Iterator[Token]:
        """The tokens of an expression."""
        self._line = getattr(node, "lineno", self._line)
        match node:
            case ast.Name(name):
                yield self._token(self._names.imported.get(name) or self._name_token(name))
            case ast.Attribute(value, attribute):
                yield from self._attribute(node, value, attribute)
            case ast.Constant(value):
                yield self._token(_constant(value))
            case ast.UnaryOp(ast.USub(), ast.Constant(value)) if isinstance(value, int | float):
                yield self._token(_constant(-value))
            case ast.Call(function, positional, keywords):
                yield self._token("call")
                yield from self._tokens_of_all([function, *positional])
                keyword_tokens = [tuple(self._tokens_of(keyword.value)) for keyword in keywords]
                for tokens in sorted(keyword_tokens, key=_token_texts):
                    yield from tokens
            case ast.BinOp(left, ast.Add() | ast.Mult() as operator, right):
                yield self._token(type(operator).__name__)
                sides = [tuple(self._tokens_of(side)) for side in (left, right)]
                for tokens in sorted(sides, key=_token_texts):
                    yield from tokens
            case ast.JoinedStr(values):
                yield self._token("str")
                yield from self._tokens_of_all(
                    part.value for part in values if isinstance(part, ast.FormattedValue)
                )
            case ast.Lambda(_, body):
                yield self._token("lambda")
                yield from self._tokens_of(body)
            case ast.ExceptHandler(kind):
                yield self._token("except")
                yield from self._tokens_of_all([kind])
            case _:
                yield from self._tokens_of_node(node)

    def _tokens_of_node(self, node: ast.AST) -> Iterator[Token]:
        """The tokens of a node that needs no special treatment: its kind, then its parts."""
        if isinstance(node, ast.expr_context | ast.arguments):
            return
        if isinstance(node, _SEQUENCES):
            yield self._token("seq")
        elif isinstance(node, _COMPREHENSIONS):
            yield self._token("comp")
        else:
            yield self._token(type(node).__name__)
        yield from self._tokens_of_all(ast.iter_child_nodes(node))

    def _attribute(self, node: ast.AST, value: ast.expr, attribute: str) -> Iterator[Token]:
        dotted = self._dotted(node)
        if dotted is not None:
            yield self._token(dotted)
            return
        is_on_self = isinstance(value, ast.Name) and value.id in self._names.self_names
        yield self._token("." + (CHOSEN_NAME if is_on_self or attribute in self._names.fields else attribute))
        yield from self._tokens_of(value)

    def _dotted(self, node: ast.AST) -> str | None:
        """The dotted name that begins with an import: `nn.Linear` is `torch.nn.Linear`."""
        parts = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if isinstance(node, ast.Name) and node.id in self._names.imported:
            return ".".join([self._names.imported[node.id], *reversed(parts)])
        return None

    def _name_token(self, name: str) -> str:
        return CHOSEN_NAME if name in self._names.bound else name

    def _token(self, token: str) -> Token:
        return token, self._line


def _targets(node: ast.stmt) -> list[ast.expr]:
    """The targets that an assignment binds."""
    if isinstance(node, ast.Assign):
        return node.targets
    return [node.target] if isinstance(node, ast.AnnAssign) else []


def _bodies(parts: object) -> Iterator[list[ast.stmt]]:
    """The lists of statements in a field of a compound statement."""
    if not isinstance(parts, list):
        return
    if parts and isinstance(parts[0], ast.stmt):
        yield parts
    for part in parts:
        if isinstance(part, ast.ExceptHandler | ast.match_case):
            yield part.body


@functools.singledispatch
def _constant(value: object) -> str:
    return "str" if isinstance(value, str | bytes) else str(value)


@_constant.register(int)
@_constant.register(float)
@_constant.register(complex)
def _number(value: complex) -> str:
    if isinstance(value, bool):
        return str(value)
    return str(int(value)) if isinstance(value, int) and abs(value) <= SMALL else "num"


def _token_texts(tokens: Sequence[Token]) -> tuple[str, ...]:
    return tuple(token for token, _ in tokens)


# --- code ------------------------------------------------------------------------------------------------


def read_code(name: str, data: bytes) -> Code:
    """The code of a script or a notebook. Call it where a hostile file can do no harm.

    Raises:
        SubmissionError: It cannot be read; the sentence says where and why.
    """
    name = PurePath(name).name
    try:
        submitted = source(name, data)
        return Code(submitted.text, units((cell.file, cell.tree) for cell in submitted.cells))
    except (RecursionError, MemoryError) as error:
        raise SubmissionError(f"{name}: {TOO_DEEP}") from error


def given_forms(template: Code) -> frozenset[tuple[str, ...]]:
    """The forms of the units that the course handed out."""
    return frozenset(unit.form for unit in template.units)


def units_not_given(code: Code, given: frozenset[tuple[str, ...]]) -> Iterable[CodeUnit]:
    """The units that the course did not hand out in the same form, whatever their names."""
    return (unit for unit in code.units if unit.form not in given)
