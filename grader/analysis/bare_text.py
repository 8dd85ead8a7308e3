"""Normalized source text for workers: no comments, no unused strings, docstrings cut, standard spacing.

A program that reads its own source (`inspect.getsource`, `linecache`, `__doc__`) finds no more than that.
Every token stays on its line, so tracebacks name the student's own lines. Only if `tokenize` fails is the
statement unparsed, and its lines may move. `programs`, not this module, decides which statements a worker
gets; `suspicious_code` counts how much data they still hold.

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

from grader.analysis.remembered_texts import remembered
from grader.domain.analyzed_program import Recipe, Statement

DOCSTRING = 500  # characters of a docstring that are kept
DOCSTRINGS = 1000  # of all docstrings of a program together: only readers of the full source need the rest
EXAMPLE = ">>>"  # how an example begins that `doctest` runs
PLAIN_QUOTES = 8  # characters: a docstring's quotes, a prefix, an escape or two
INDENT = "    "
UNSET = {tokenize.COMMENT, tokenize.NL, tokenize.ENDMARKER}
# from Python 3.12 on an f-string is several tokens
FSTRING_START = getattr(tokenize, "FSTRING_START", -1)
FSTRING_END = getattr(tokenize, "FSTRING_END", -1)
DOCUMENTED = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
CONSTANTS = (tokenize.STRING, tokenize.NUMBER, tokenize.NAME)
OPENING, CLOSING = ("(", "[", "{"), (")", "]", "}")
SIGNS = ("-", "+", "~", "*", "**")  # they stand before one operand, or between two

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
        """Whether a sign or a bracket that follows it belongs to it."""
        if self.kind == tokenize.NAME:
            return not keyword.iskeyword(self.text) or self.text in ("None", "True", "False")
        return self.is_word or self.text in (*CLOSING, "...")


@dataclass(frozen=True)
class _Replacement:
    """The replacement of an unused text, and where that text ends."""

    text: str
    end: Position


class BareTexts:
    """The bare texts of one program's statements.

    The docstrings of a program share a limit on their total length, in the order of the source.
    """

    def __init__(self) -> None:
        self._letters_left = DOCSTRINGS
        self._bare_texts: dict[str, str] = {}

    def statements(self, statements: Iterable[Statement]) -> tuple[Statement, ...]:
        """The statements with bare texts."""
        return tuple(replace(statement, source=self.text(statement.source)) for statement in statements)

    def recipe(self, recipe: Recipe) -> Recipe:
        """The recipe with bare texts in all of its statements; its expressions are bare already."""
        return replace(
            recipe,
            statements=self.statements(recipe.statements),
            after_data=self.statements(recipe.after_data),
            loading=replace(recipe.loading, statements=self.statements(recipe.loading.statements)),
        )

    def text(self, source: str) -> str:
        """The text of a statement, bare, on the same lines.

        Args:
            source: Correct Python, from the first column on.
        """
        if source not in self._bare_texts:
            self._bare_texts[source], self._letters_left = _bare(source, self._letters_left)
        return self._bare_texts[source]


@remembered(2000)
def _bare(source: str, letters_left: int) -> tuple[str, int]:
    """The bare text of a statement.

    Args:
        source: Its text.
        letters_left: Letters of docstrings that may be kept.

    Returns:
        The bare text, and the letters that may be kept of docstrings after it.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # warnings of odd escapes
        tree = ast.parse(source)
        replacements: dict[Position, _Replacement] = {}
        for node, documents in list(_unused_texts(tree)):
            value = node.value
            written = ast.get_source_segment(source, value) or ""
            text = "pass" if _start(value) == _start(node) else "0"  # brackets cannot hold a statement
            if not documents:
                value.value = ...
            else:
                docstring, value.value = value.value, _cut(value.value, letters_left)
                letters_left -= len(value.value)
                # a spelling much longer than its text could hide data
                plainly = value.value == docstring and len(written) <= len(docstring) + PLAIN_QUOTES
                text = written if plainly else repr(value.value)
            lines = source.split("\n")
            replacements[_characters(lines, *_start(value))] = _Replacement(
                text, _characters(lines, *_end(value))
            )
        try:
            bare = _spaced_text(tokens(source, replacements))
            if _is_same(ast.parse(bare), tree):
                return bare + "\n" * (source.count("\n") - bare.count("\n")), letters_left
        except (SyntaxError, tokenize.TokenError):
            pass
        # the module `tokenize` does not know every letter that Python knows; then lines are not kept
        return ast.unparse(tree), letters_left


def _cut(docstring: str, letters_left: int) -> str:
    """As much of a docstring as may be kept."""
    beginning = docstring[: min(DOCSTRING, letters_left)]
    if len(beginning) < len(docstring) and EXAMPLE in beginning:
        # half an example, which a program may run, would fail
        whole, _, last = beginning.rpartition(EXAMPLE)
        beginning = beginning if "\n\n" in last else whole.rstrip()
    return beginning


def _unused_texts(node: ast.AST) -> Iterator[tuple[Any, bool]]:
    """(expression statement, whether it documents its function or class) for all bare constants."""
    for block in _blocks(node):
        for position, statement in enumerate(block):
            if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
                documents = position == 0 and isinstance(node, DOCUMENTED)
                if statement.value.value is not ...:
                    yield statement, documents and isinstance(statement.value.value, str)
            else:
                yield from _unused_texts(statement)


def _blocks(node: ast.AST) -> Iterator[list[ast.stmt]]:
    """The blocks of statements in a statement or module."""
    for name in ("body", "handlers", "cases", "orelse", "finalbody"):
        inner = getattr(node, name, [])
        if name in ("handlers", "cases"):
            yield from (part.body for part in inner)
        else:
            yield inner


def _is_same(rebuilt: ast.AST, original: ast.AST) -> bool:
    """Whether two trees execute the same, with their statements on the same lines."""
    pairs: list[tuple[Any, Any]] = [(rebuilt, original)]
    while pairs:
        left, right = pairs.pop()
        if isinstance(left, ast.stmt) and isinstance(right, ast.stmt):
            if left.lineno != right.lineno:
                return False
            if _does_nothing(left) and _does_nothing(right):
                continue
        if type(left) is not type(right):
            return False
        if isinstance(left, ast.AST):
            pairs += [(getattr(left, name, None), getattr(right, name, None)) for name in left._fields]
        elif isinstance(left, list):
            if len(left) != len(right):
                return False
            pairs += zip(left, right, strict=True)
        elif left != right and repr(left) != repr(right):  # NaN is not equal to itself
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
    """A position that counts characters, as in `tokenize`, from one that counts bytes."""
    return line, len(lines[line - 1].encode("utf-8")[:column].decode("utf-8", "replace"))


def tokens(source: str, instead: Mapping[Position, _Replacement] = MappingProxyType({})) -> Iterator[Token]:
    """The tokens of a text, f-strings whole, comments left out, and some texts replaced."""
    lines = source.split("\n")
    skip_to: Position = (0, 0)
    begun: list[tokenize.TokenInfo] = []  # nested f-strings
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
            f_string_start = begun.pop()
            if not begun:
                text = _between(lines, f_string_start.start, token.end, comments)
                yield Token(tokenize.STRING, text, f_string_start.start[0], token.end[0])
        elif begun:
            comments += [token] if token.type == tokenize.COMMENT else []
        elif token.type not in UNSET:
            yield Token(token.type, token.string, token.start[0], token.end[0])


def _between(
    lines: Sequence[str], start: Position, end: Position, omitted: Sequence[tokenize.TokenInfo]
) -> str:
    """The text from one position to another, without some tokens."""
    pieces = list(lines[: end[0]])
    pieces[-1] = pieces[-1][: end[1]]
    for token in omitted:
        pieces[token.start[0] - 1] = pieces[token.start[0] - 1][: token.start[1]]
    pieces[start[0] - 1] = pieces[start[0] - 1][start[1] :]
    return "\n".join(pieces[start[0] - 1 :])


def _spaced_text(tokens: Iterable[Token]) -> str:
    """The text of tokens, each on its line, with the usual spaces."""
    texts, line = [""], 1
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
                texts[-1] += " \\" if goes_on and not brackets else ""
                texts.append("")
            if token.kind == tokenize.OP and token.text in CLOSING:
                brackets = brackets[:-1]
            if texts[-1] == "":
                texts[-1] = INDENT * (indent + (max(len(brackets), 1) if goes_on else 0))
            elif previous is not None and _is_spaced(before, previous, token, brackets):
                texts[-1] += " "
            texts[-1] += token.text
            line = token.end_line
            if token.kind == tokenize.OP and token.text in OPENING:
                brackets += token.text
            before, previous = previous, token
    return "\n".join(texts)


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
