"""Sentences with placeholders: found in the sources that compose them, and matched in texts.

It finds the string literals and f-strings of a source in its syntax tree. A pattern such as `{passed} of
{total} checks passed.` fits `10 of 12 checks passed.` No placeholder begins or ends within quoted words (see
`grader.domain.formatting`). So hostile text can neither end one nor be taken for our words. Matching takes
time linear in the sentence's length. This module holds no translations, and nothing here checks whether a
catalog is complete: `translation` matches texts by it, and `extract` collects the sentences of a catalog.
"""

import ast
import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from grader.domain.formatting import CLOSE, CODE, OPEN

_COUNTED, _ITEMS = "counted", "items"
_MOST_FORMS = 8  # alternatives of one f-string
_NO_SENTENCES = {
    "compile",
    "getLogger",
    "warn",
    "UsageError",
    "CourseError",
    "GraderError",
    "TypeVar",
    "match",
}
_SPACE = "\N{NO-BREAK SPACE}"
_OWN_NAME = re.compile(r"\{(\w+) = [^{}]*\}")
_WORD = re.compile(r"[^\W\d_]{2,}")
_NAMING = {"look_for", "concerns", "diagnosis", "component"}  # no student reads what these arguments hold
_KEEPING = {"shared": 0, _ITEMS: 1}  # calls, and which argument is a key or counted by them
# code within a clause: `_`, calls with their arguments, names with underscores, dots or capitals within them
_CODE_IN_CLAUSE = re.compile(r"[\w.]+\((?:[^()]*\))?|\w*[._]\w[\w.]*|\b_\b|\w*[a-z][A-Z]\w*")
_NO_PROSE = re.compile(r"[|=@*^\[\]<>\\]|://")
_PROSE = re.compile(r"(?<![\w'])[A-Za-z][a-z'-]*\s+[a-z][a-z'-]+(?![\w'])")


@dataclass(frozen=True)
class SourceSentence:
    """A sentence that a source composes.

    Attributes:
        message: With `{names}` where something is filled in.
        plural: The plural form; empty where it has none.
        line: Where it begins.
        is_pattern: Whether it has placeholders.
    """

    message: str
    line: int
    plural: str = ""
    is_pattern: bool = False


def counted_pattern(noun: str, plural: str = "") -> tuple[str, str]:
    """What `counted` makes of a noun, as a singular and a plural message."""
    return f"{{number}}{_SPACE}{noun}", f"{{number}}{_SPACE}{plural or noun + 's'}"


def sentences_in(
    source: str, *, words: bool = False, errors: bool = False, clauses: bool = False
) -> Iterator[SourceSentence]:
    """The sentences that a source composes, in its order.

    Args:
        source: Python.
        words: Labels of a word or two, as pages show them, count as well.
        errors: The messages of our exceptions count as well.
        clauses: What fills a sentence's placeholder counts as well, if it is prose (`is_clause`).
    """
    tree = _Joining().visit(ast.parse(source))
    left_out = {*_left_out(tree, errors), *_names_of_ours(tree)}

    def is_said(message: str) -> bool:
        return _is_sentence(message, words) or (clauses and is_clause(message))

    yield from _found(tree, left_out, is_said)


def is_clause(message: str) -> bool:
    """Whether a text that is no sentence is prose all the same, as `the mean over all rows` is.

    It has at least two words in a row once code is taken away: calls, names with underscores, dots or
    capitals within them, and what is marked as code. A formula or a list of calls is none.
    """
    text = _CODE_IN_CLAUSE.sub(" . ", re.sub(r"`[^`]*`|\{[a-z_0-9]+\}", " ", message))
    return not _NO_PROSE.search(text) and bool(_PROSE.search(text))


def first_paragraphs(source: str) -> Iterator[SourceSentence]:
    """The paragraphs of a module's docstring, each on one line: a mistake's sentence and its hint.

    Where a hint takes a name from the student's file (`{F = torch.nn.functional}`), it has a placeholder.
    """
    tree = ast.parse(source)
    text = ast.get_docstring(tree) or ""
    for paragraph in text.split("\n\n"):
        if paragraph.strip() and not paragraph.startswith("Look for:"):
            message = " ".join(paragraph.split())
            named = _OWN_NAME.sub(lambda match: f"{{{match[1].lower()}}}", message)
            yield SourceSentence(named, 1, is_pattern=named != message)


def check_titles(source: str) -> Iterator[SourceSentence]:
    """The first line of each check's docstring."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            text = (ast.get_docstring(node) or "").strip()
            if text:
                yield SourceSentence(" ".join(text.split("\n\n")[0].split()), node.lineno)


class _Joining(ast.NodeTransformer):
    """Makes one f-string of texts with `+` between them, and of an f-string within another."""

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        self.generic_visit(node)
        if isinstance(node.op, ast.Add) and _is_text(node.left) and _is_text(node.right):
            return ast.copy_location(ast.JoinedStr([*_pieces(node.left), *_pieces(node.right)]), node)
        return node

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.expr:
        self.generic_visit(node)
        node.values = [piece for value in node.values for piece in _pieces(_part(value))]
        return node


def _is_text(node: ast.expr) -> bool:
    if isinstance(node, ast.IfExp):
        return _is_text(node.body) and _is_text(node.orelse)
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _part(value: ast.expr) -> ast.expr:
    return value.value if isinstance(value, ast.FormattedValue) else value


def _pieces(node: ast.expr) -> list[ast.expr]:
    """What an expression contributes to an f-string."""
    if isinstance(node, ast.JoinedStr):
        return node.values
    return [node] if isinstance(node, ast.Constant) else [ast.FormattedValue(node, -1)]


def _found(node: ast.AST, left_out: set[int], is_said: Callable[[str], bool]) -> Iterator[SourceSentence]:
    if id(node) in left_out:
        return
    said = []
    if isinstance(node, ast.Constant | ast.JoinedStr):
        said = [
            SourceSentence(message, node.lineno, is_pattern=is_pattern)
            for message, is_pattern in _messages(node)
            if is_said(message)
        ]
    elif isinstance(node, ast.Call):
        said = [*_counted(node), *_items(node)]
    yield from said
    if isinstance(node, ast.JoinedStr):  # its pieces are not sentences; what it computes may hold some
        are_said = bool(said) and len(_forms(node, {})) <= _MOST_FORMS
        inner = [each for value in node.values for each in _computed(_part(value), are_said)]
    else:
        inner = list(ast.iter_child_nodes(node))
    for child in inner:
        yield from _found(child, left_out, is_said)


def _computed(node: ast.expr, are_said: bool) -> Iterator[ast.AST]:
    """What a field of an f-string computes.

    Args:
        node: The field.
        are_said: Whether the words that it chooses between are said already, as parts of the whole.
    """
    if isinstance(node, ast.IfExp) and are_said:
        yield node.test
        yield from _computed(node.body, are_said)
        yield from _computed(node.orelse, are_said)
    elif isinstance(node, ast.JoinedStr) and are_said:
        for value in node.values:
            yield from _computed(_part(value), are_said)
    elif not isinstance(node, ast.Constant):
        yield node


def _left_out(tree: ast.AST, errors: bool) -> Iterator[int]:
    """The nodes without sentences for students: docstrings, annotations, keys, errors for operators."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield id(node.value)
        elif isinstance(node, ast.Call) and _name(node.func) in _NO_SENTENCES and not errors:
            yield id(node)
        elif isinstance(node, ast.Subscript):
            yield id(node.slice)
        elif isinstance(node, ast.Dict):
            yield from (id(key) for key in node.keys if key is not None)
        elif (isinstance(node, ast.arg) and node.annotation is not None) or isinstance(node, ast.AnnAssign):
            yield id(node.annotation)
        elif isinstance(node, ast.Compare):
            yield id(node)
        elif isinstance(node, ast.FunctionDef) and node.returns is not None:
            yield id(node.returns)
        elif isinstance(node, ast.MatchValue):
            yield id(node)


def _names_of_ours(tree: ast.AST) -> Iterator[int]:
    """The texts that name something for checks alone: where to look, a key, which mistake it is."""
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and node.arg in _NAMING:
            yield id(node)
        elif isinstance(node, ast.Call) and (place := _KEEPING.get(_name(node.func), -1)) >= 0:
            yield from (id(argument) for argument in node.args[place : place + 1])


def _counted(node: ast.Call) -> Iterator[SourceSentence]:
    if _name(node.func) != _COUNTED:
        return
    words = [argument.value for argument in node.args[1:] if isinstance(argument, ast.Constant)]
    if words and all(isinstance(word, str) for word in words):
        singular, plural = counted_pattern(*(str(word) for word in words))
        yield SourceSentence(singular, node.lineno, plural, is_pattern=True)


def _items(node: ast.Call) -> Iterator[SourceSentence]:
    """What a check asks for by `items(2, "index arrays")` of a `Value`, as the judge words it."""
    if _name(node.func) != _ITEMS or len(node.args) != 2 or not isinstance(node.args[1], ast.Constant):
        return
    count, what = node.args[0], str(node.args[1].value)
    if isinstance(count, ast.Constant) and count.value is None:
        yield SourceSentence(what, node.lineno)
    else:
        yield SourceSentence(f"{{count}} {what}", node.lineno, is_pattern=True)


def _messages(node: ast.Constant | ast.JoinedStr) -> Iterator[tuple[str, bool]]:
    """What a literal says, in all its forms: a choice between two words in it makes two forms."""
    if isinstance(node, ast.Constant):
        if isinstance(node.value, str):
            yield node.value.strip(), False
        return
    made = _forms(node, {})
    for form in made if len(made) <= _MOST_FORMS else _forms(node, {}, chosen=False):
        message = re.sub(r"(\{[a-z_0-9]+\})(?:\{[a-z_0-9]+\})+", r"\1", form).strip()
        yield message, bool(re.search(r"\{[a-z]", message))


def _forms(node: ast.expr, names: dict[str, int], *, chosen: bool = True) -> list[str]:
    """What an f-string or a field of it says: words, a placeholder, or the words that it chooses between.

    Args:
        node: The f-string, or the field.
        names: How often each name was given to a placeholder so far.
        chosen: A choice makes several forms; otherwise it is a placeholder.
    """
    if isinstance(node, ast.JoinedStr):
        parts = [_forms(_part(value), names, chosen=chosen) for value in node.values]
        return ["".join(pieces) for pieces in product(*parts)]
    if isinstance(node, ast.IfExp) and chosen:
        return [*_forms(node.body, names), *_forms(node.orelse, names)]
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return [node.value.replace("{", "{{").replace("}", "}}")]
    name = re.sub(r"\W", "", _field(node)).strip("_").lower() or "value"
    name = name if not name[0].isdigit() else "value"
    names[name] = names.get(name, 0) + 1
    return [f"{{{name}}}" if names[name] == 1 else f"{{{name}_{names[name]}}}"]


def _field(node: ast.expr) -> str:
    """What a field holds, in a word."""
    if isinstance(node, ast.Call):
        inner = node.args[0] if node.args else node.func
        if isinstance(inner, ast.Constant) or (isinstance(node.func, ast.Attribute) and not node.args):
            inner = node.func.value if isinstance(node.func, ast.Attribute) else node.func
        return _field(inner)
    if isinstance(node, ast.Subscript | ast.Starred):
        return _field(node.value)
    if isinstance(node, ast.Attribute | ast.Name):
        return _name(node)
    if isinstance(node, ast.BinOp):
        return _field(node.right if isinstance(node.left, ast.Constant) else node.left)
    return "value"


def _name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _is_sentence(message: str, words: bool) -> bool:
    """Whether a literal is words of ours that people read, rather than a name or a format."""
    plain_words = re.sub(r"`[^`]*`|\{[a-z_0-9]+\}", " ", message)
    if not _WORD.search(plain_words) or "<" in plain_words or "\\" in plain_words or "://" in plain_words:
        return False
    if words and "{" in message:
        return True
    if " " not in plain_words.strip():
        return words and plain_words.strip()[:1].isupper() and "_" not in plain_words and "{" not in message
    if message[-1] in ".?!:" or (message[-1] == "}" and len(_WORD.findall(plain_words)) > 1):
        return True
    return words and (
        plain_words.strip()[:1].isupper() or len(_WORD.findall(plain_words)) > 1 or "{" in message
    )


# --- patterns --------------------------------------------------------------------------------------------


_FIELD = re.compile(r"\{([a-z_][a-z0-9_]*)\}")
_MARKED_CODE = re.compile(f"{CODE}[^{CODE}]*{CODE}")
_MARKED = re.compile(f"{CODE}[^{CODE}]*{CODE}|{OPEN}[^{OPEN}{CLOSE}]*{CLOSE}")
_BREAK = re.compile(r"(?<=[.!?]) (?=\S)")
STRUCTURE = 4  # a pattern with no more letters of its own only orders words


@dataclass(frozen=True)
class QuotedSpans:
    """Where a sentence holds words that are not ours.

    Attributes:
        spans: (begin, end) of each, its marks included, ascending.
    """

    spans: tuple[tuple[int, int], ...]

    def may_divide(self, position: int) -> bool:
        """Whether a placeholder may begin or end at an index: not deep inside a quotation or code."""
        index = bisect_left(self.spans, (position, -1)) - 1
        if index < 0:
            return True
        begin, end = self.spans[index]
        return position >= end or position in (begin + 1, end - 1)

    def within(self, position: int) -> bool:
        """Whether an index is within a quotation or code."""
        index = bisect_left(self.spans, (position, -1)) - 1
        return index >= 0 and position < self.spans[index][1]


def marks(text: str) -> QuotedSpans:
    """The quotations and pieces of code in a sentence."""
    return QuotedSpans(tuple(marked.span() for marked in _MARKED.finditer(text)))


def unmarked(text: str) -> str:
    """A text in which a quotation or a piece of code is one word."""
    return _MARKED.sub("…", text)


def sentences(text: str) -> tuple[str, ...]:
    """The sentences of a text; quotations are not divided. Joined by spaces, they are the text."""
    quoted, made, begin = marks(text), [], 0
    for gap in _BREAK.finditer(text):
        if not quoted.within(gap.start()):
            made.append(text[begin : gap.start()])
            begin = gap.end()
    return (*made, text[begin:])


@dataclass(frozen=True)
class Pattern:
    """A sentence with placeholders.

    Attributes:
        literals: The text before, between and after the placeholders.
        names: The placeholders, in order.
    """

    literals: tuple[str, ...]
    names: tuple[str, ...]

    @property
    def rank(self) -> tuple[int, int]:
        """Lower for more specific patterns."""
        return -sum(map(len, self.literals)), len(self.names)

    @property
    def orders(self) -> bool:
        """Whether it says next to nothing by itself, like `{first} and {last}`."""
        return sum(map(str.isalpha, "".join(self.literals))) <= STRUCTURE

    def match(self, text: str, quoted: QuotedSpans) -> Mapping[str, str] | None:
        """Placeholder -> the text in its place; None where the sentence does not fit.

        Args:
            text: The sentence.
            quoted: Its `marks`.
        """
        first, *middle, last = self.literals
        if not text.startswith(first) or not text.endswith(last):
            return None
        end = len(text) - len(last)
        ends, begin = [], len(first)
        begins = [begin]
        for literal in middle:
            position = text.find(literal, begin + 1, end)
            while position >= 0 and not (
                quoted.may_divide(position) and quoted.may_divide(position + len(literal))
            ):
                position = text.find(literal, position + 1, end)
            if position < 0:
                return None
            ends.append(position)
            begin = position + len(literal)
            begins.append(begin)
        ends.append(end)
        if end <= begin or not quoted.may_divide(begins[0]) or not quoted.may_divide(end):
            return None
        values: dict[str, str] = {}
        for name, start, stop in zip(self.names, begins, ends, strict=True):
            value = text[start:stop]
            if values.setdefault(name, value) != value or value.count(CODE) % 2:
                return None
        return values


def pattern(message: str) -> Pattern | None:
    """The pattern that a catalog's entry is; None where it has no placeholders."""
    pieces = _FIELD.split(message)
    literals = tuple(piece.replace("{{", "{").replace("}}", "}") for piece in pieces[::2])
    if len(literals) < 2 or not all(literals[1:-1]):
        return None
    return Pattern(literals, tuple(pieces[1::2]))


def placeholders_in_code(message: str) -> tuple[str, ...]:
    """The placeholders of a catalog's entry, or of its translation, that stand between marks of code."""
    return tuple(name for code in _MARKED_CODE.findall(message) for name in _FIELD.findall(code))


def filled(message: str, values: Mapping[str, str]) -> str:
    """A translation with its placeholders replaced; an unknown one stays as it is written."""
    pieces: Sequence[str] = _FIELD.split(message)
    made = [
        values.get(piece, f"{{{piece}}}") if index % 2 else piece.replace("{{", "{").replace("}}", "}")
        for index, piece in enumerate(pieces)
    ]
    return "".join(made)
