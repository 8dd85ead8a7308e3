"""Normalized source text for workers: no comments, no unused strings, docstrings cut, standard spacing.

A program that reads its own source (`inspect.getsource`, `linecache`, `__doc__`) finds no more than that.
Every token stays on its line, so tracebacks name the student's own lines. Only where `tokenize` fails is
the statement unparsed, and its lines may move. `programs`, not this module, decides which statements a
worker gets; `suspicious_code` counts how much data they still hold.

Tests: tests/analysis/test_bare_text.py, tests/worker/test_own_source.py
"""

import ast
import io
import keyword
import tokenize
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from grader.domain.analyzed_program import Recipe, Statement

DOCSTRING = 500  # characters of a docstring that are kept
DOCSTRINGS = 1000  # of all docstrings of a program together: they are for those who read the whole source
PLAIN_QUOTES = 8  # characters: a docstring's quotes, a prefix, an escape or two
INDENT = "    "
UNSET = {tokenize.COMMENT, tokenize.NL, tokenize.ENDMARKER}
# from Python 3.12 on an f-string is several tokens
FSTRING_START = getattr(tokenize, "FSTRING_START", -1)
FSTRING_END = getattr(tokenize, "FSTRING_END", -1)
DOCUMENTED = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
CONSTANTS = (tokenize.STRING, tokenize.NUMBER, tokenize.NAME)
OPENING, CLOSING = ("(", "[", "{"), (")", "]", "}")
SIGNS = ("-", "+", "~", "*", "**")  # which stand before one operand, or between two

Position = tuple[int, int]  # line, 1-based; column, 0-based


@dataclass(frozen=True)
class Token:
    """A piece of a source.

    Attributes:
        kind: As in `tokenize`; an f-string is a string.
        line, end_line: The first and the last line that it takes, 1-based.
    """

    kind: int
    text: str
    line: int
    end_line: int

    @property
    def is_word(self) -> bool:
        """Whether two of its kind need a space between them."""
        return self.kind in CONSTANTS

    @property
    def ends_operand(self) -> bool:
        """Whether a sign or a bracket behind it belongs to it."""
        if self.kind == tokenize.NAME:
            return not keyword.iskeyword(self.text) or self.text in ("None", "True", "False")
        return self.is_word or self.text in (*CLOSING, "...")


@dataclass(frozen=True)
class _Instead:
    """What stands in the place of an unused text, and where that text ends."""

    text: str
    end: Position


class BareTexts:
    """The bare texts of one program's statements.

    The docstrings of a program share what all of them together may take, in the order in which they come.
    """

    def __init__(self) -> None:
        self._left = DOCSTRINGS
        self._known: dict[str, str] = {}

    def statements(self, statements: Iterable[Statement]) -> tuple[Statement, ...]:
        """The statements with bare texts."""
        return tuple(replace(each, source=self.text(each.source)) for each in statements)

    def recipe(self, recipe: Recipe) -> Recipe:
        """The recipe with bare texts in all of its statements; its expressions have nothing else."""
        return replace(
            recipe,
            statements=self.statements(recipe.statements),
            after_data=self.statements(recipe.after_data),
        )

    def text(self, source: str) -> str:
        """The text of a statement, bare, on the same lines.

        Args:
            source: Correct Python, from the first column on.
        """
        if source not in self._known:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of odd escapes
                self._known[source] = self._bare(source)
        return self._known[source]

    def _bare(self, source: str) -> str:
        tree = ast.parse(source)
        instead: dict[Position, _Instead] = {}
        for node, documents in list(_unused_texts(tree)):
            value = node.value
            written = ast.get_source_segment(source, value) or ""
            text = "pass" if _start(value) == _start(node) else "0"  # in brackets no statement can stand
            if not documents:
                value.value = ...
            else:
                whole, value.value = value.value, self._cut(value.value)
                # what takes much more than it says would say something by its spelling
                plainly = value.value == whole and len(written) <= len(whole) + PLAIN_QUOTES
                text = written if plainly else repr(value.value)
            lines = source.split("\n")
            instead[_characters(lines, *_start(value))] = _Instead(text, _characters(lines, *_end(value)))
        try:
            made = _set(tokens(source, instead))
            if _is_same(ast.parse(made), tree):
                return made + "\n" * (source.count("\n") - made.count("\n"))
        except (SyntaxError, tokenize.TokenError):
            pass
        # the module `tokenize` does not know every letter that Python itself does; then lines are not kept
        return ast.unparse(tree)

    def _cut(self, docstring: str) -> str:
        kept = docstring[: min(DOCSTRING, self._left)]
        self._left -= len(kept)
        return kept


def _unused_texts(node: ast.AST) -> Iterator[tuple[Any, bool]]:
    """(expression statement, whether it documents its function or class) of all constants by themselves."""
    for block in _blocks(node):
        for place, each in enumerate(block):
            if isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant):
                documents = place == 0 and isinstance(node, DOCUMENTED)
                if each.value.value is not ...:
                    yield each, documents and isinstance(each.value.value, str)
            else:
                yield from _unused_texts(each)


def _blocks(node: ast.AST) -> Iterator[list[ast.stmt]]:
    """The blocks of statements in a statement or module."""
    for name in ("body", "handlers", "cases", "orelse", "finalbody"):
        inner = getattr(node, name, [])
        if name in ("handlers", "cases"):
            yield from (each.body for each in inner)
        else:
            yield inner


def _is_same(made: ast.AST, meant: ast.AST) -> bool:
    """Whether two trees execute the same, with their statements on the same lines."""
    pairs: list[tuple[Any, Any]] = [(made, meant)]
    while pairs:
        one, other = pairs.pop()
        if isinstance(one, ast.stmt) and isinstance(other, ast.stmt):
            if one.lineno != other.lineno:
                return False
            if _does_nothing(one) and _does_nothing(other):
                continue
        if type(one) is not type(other):
            return False
        if isinstance(one, ast.AST):
            pairs += [(getattr(one, name, None), getattr(other, name, None)) for name in one._fields]
        elif isinstance(one, list):
            if len(one) != len(other):
                return False
            pairs += zip(one, other, strict=True)
        elif one != other and repr(one) != repr(other):  # NaN is not equal to itself
            return False
    return True


def _does_nothing(node: ast.stmt) -> bool:
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return node.value.value in (..., 0)
    return isinstance(node, ast.Pass)


def _start(node: Any) -> Position:
    return node.lineno, node.col_offset


def _end(node: Any) -> Position:
    return node.end_lineno, node.end_col_offset


def _characters(lines: Sequence[str], line: int, column: int) -> Position:
    """A position as `tokenize` has it, of one that counts bytes."""
    return line, len(lines[line - 1].encode("utf-8")[:column].decode("utf-8", "replace"))


def tokens(source: str, instead: Mapping[Position, _Instead] = MappingProxyType({})) -> Iterator[Token]:
    """The tokens of a text, f-strings whole, comments left out, and some texts replaced."""
    lines = source.split("\n")
    skip_to: Position = (0, 0)
    begun: list[tokenize.TokenInfo] = []  # f-strings within each other
    comments: list[tokenize.TokenInfo] = []
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.start < skip_to:
            continue
        if token.start in instead and token.type in CONSTANTS:
            replaced = instead[token.start]
            skip_to = replaced.end
            yield Token(
                tokenize.STRING, replaced.text, token.start[0], token.start[0] + replaced.text.count("\n")
            )
        elif token.type == FSTRING_START:
            begun.append(token)
        elif token.type == FSTRING_END and begun:
            first = begun.pop()
            if not begun:
                text = _between(lines, first.start, token.end, comments)
                yield Token(tokenize.STRING, text, first.start[0], token.end[0])
        elif begun:
            comments += [token] if token.type == tokenize.COMMENT else []
        elif token.type not in UNSET:
            yield Token(token.type, token.string, token.start[0], token.end[0])


def _between(
    lines: Sequence[str], start: Position, end: Position, without: Sequence[tokenize.TokenInfo]
) -> str:
    """The text from a position to another, without some tokens."""
    kept = list(lines[: end[0]])
    kept[-1] = kept[-1][: end[1]]
    for token in without:
        kept[token.start[0] - 1] = kept[token.start[0] - 1][: token.start[1]]
    kept[start[0] - 1] = kept[start[0] - 1][start[1] :]
    return "\n".join(kept[start[0] - 1 :])


def _set(tokens: Iterable[Token]) -> str:
    """A text of tokens, each on its line, with spaces where they are usual."""
    made, line = [""], 1
    brackets, indent = "", 0
    before = previous = None  # on the logical line
    for token in tokens:
        if token.kind == tokenize.NEWLINE:
            before = previous = None
        elif token.kind in (tokenize.INDENT, tokenize.DEDENT):
            indent += 1 if token.kind == tokenize.INDENT else -1
        else:
            goes_on = previous is not None
            for _ in range(line, token.line):
                made[-1] += " \\" if goes_on and not brackets else ""
                made.append("")
            if token.kind == tokenize.OP and token.text in CLOSING:
                brackets = brackets[:-1]
            if made[-1] == "":
                made[-1] = INDENT * (indent + (max(len(brackets), 1) if goes_on else 0))
            elif previous is not None and _is_spaced(before, previous, token, brackets):
                made[-1] += " "
            made[-1] += token.text
            line = token.end_line
            if token.kind == tokenize.OP and token.text in OPENING:
                brackets += token.text
            before, previous = previous, token
    return "\n".join(made)


def _is_spaced(before: Token | None, previous: Token, token: Token, brackets: str) -> bool:
    """Whether there is a space between two tokens of a line."""
    left, right = previous.text, token.text
    if previous.is_word and token.is_word:
        return True
    if right in (",", ";", ":", *CLOSING) or left in OPENING:
        return False
    if "." in (left, right):
        return previous.kind == tokenize.NUMBER or keyword.iskeyword(left) or keyword.iskeyword(right)
    if right in ("(", "[") and previous.ends_operand:
        return False
    if "=" in (left, right) and brackets:
        return False
    if left == ":":
        return not brackets.endswith("[")
    is_sign = left in SIGNS and (before is None or not before.ends_operand)
    return not is_sign and (left != "@" or before is not None)
