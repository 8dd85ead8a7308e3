"""Which sentences a source composes: its string literals and f-strings, found in the syntax tree."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

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
_COUNTED = "counted"
_SPACE = "\N{NO-BREAK SPACE}"
_WORD = re.compile(r"[^\W\d_]{2,}")


@dataclass(frozen=True)
class Found:
    """A sentence that a source composes.

    Attributes:
        message: With `{names}` where something else comes in.
        plural: The same of many; empty where it has none.
        line: Where it begins.
        is_pattern: It has placeholders.
    """

    message: str
    line: int
    plural: str = ""
    is_pattern: bool = False


def of_number(noun: str, plural: str = "") -> tuple[str, str]:
    """What `counted` makes of a noun, as messages of one and of many."""
    return f"{{number}}{_SPACE}{noun}", f"{{number}}{_SPACE}{plural or noun + 's'}"


def sentences_in(source: str, *, words: bool = False, errors: bool = False) -> Iterator[Found]:
    """The sentences that a source composes, in its order.

    Args:
        source: Python.
        words: Labels of a word or two count as well: what the pages show.
        errors: What an exception of ours says counts as well.
    """
    tree = ast.parse(source)
    left_out = set(_left_out(tree, errors))
    for node in _walked(tree, left_out):
        if isinstance(node, ast.Call) and _name(node.func) == _COUNTED:
            yield from _counted(node)
            continue
        if not isinstance(node, ast.Constant | ast.JoinedStr):
            continue
        for message, is_pattern in _messages(node):
            if _is_sentence(message, words):
                yield Found(message, node.lineno, is_pattern=is_pattern)


def first_paragraphs(source: str) -> Iterator[Found]:
    """The paragraphs of a module's docstring, each on one line: a mistake's sentence and its hint."""
    tree = ast.parse(source)
    text = ast.get_docstring(tree) or ""
    for paragraph in text.split("\n\n"):
        if paragraph.strip() and not paragraph.startswith("Look for:"):
            yield Found(" ".join(paragraph.split()), 1)


def check_titles(source: str) -> Iterator[Found]:
    """The first line of each check's docstring."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            text = (ast.get_docstring(node) or "").strip()
            if text:
                yield Found(" ".join(text.split("\n\n")[0].split()), node.lineno)


def _walked(node: ast.AST, left_out: set[int]) -> Iterator[ast.AST]:
    if id(node) in left_out:
        return
    yield node
    if isinstance(node, ast.JoinedStr):  # its pieces are no sentences of their own, what it computes may be
        inner: list[ast.AST] = [each.value for each in node.values if isinstance(each, ast.FormattedValue)]
    else:
        inner = list(ast.iter_child_nodes(node))
    for child in inner:
        yield from _walked(child, left_out)


def _left_out(tree: ast.AST, errors: bool) -> Iterator[int]:
    """The nodes that hold no sentence for students: docstrings, annotations, keys, operators' errors."""
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
        elif isinstance(node, ast.MatchValue | ast.JoinedStr) and isinstance(node, ast.MatchValue):
            yield id(node)


def _counted(node: ast.Call) -> Iterator[Found]:
    words = [each.value for each in node.args[1:] if isinstance(each, ast.Constant)]
    if words and all(isinstance(word, str) for word in words):
        singular, plural = of_number(*(str(word) for word in words))
        yield Found(singular, node.lineno, plural, is_pattern=True)


def _messages(node: ast.Constant | ast.JoinedStr) -> Iterator[tuple[str, bool]]:
    """What a literal says, in all its forms: a choice between two words within it makes two."""
    if isinstance(node, ast.Constant):
        if isinstance(node.value, str):
            yield node.value.strip(), False
        return
    names: dict[str, int] = {}
    choices: list[list[str]] = []
    for each in node.values:
        if isinstance(each, ast.Constant):
            choices.append([str(each.value).replace("{", "{{").replace("}", "}}")])
        elif isinstance(each, ast.FormattedValue):
            choices.append(_forms(each.value, names))
    if len(list(product(*choices))) > _MOST_FORMS:
        return
    for pieces in product(*choices):
        message = re.sub(r"(\{[a-z_0-9]+\})(?:\{[a-z_0-9]+\})+", r"\1", "".join(pieces)).strip()
        yield message, bool(re.search(r"\{[a-z]", message))


def _forms(node: ast.expr, names: dict[str, int]) -> list[str]:
    """A field of an f-string: its placeholder, or the words that it chooses between."""
    if isinstance(node, ast.IfExp):
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
    own = re.sub(r"`[^`]*`|\{[a-z_0-9]+\}", " ", message)
    if not _WORD.search(own) or "<" in own or "\\" in own or "://" in own:
        return False
    if words and "{" in message:
        return True
    if " " not in own.strip():
        return words and own.strip()[:1].isupper() and "_" not in own and "{" not in message
    if message[-1] in ".?!:" or (message[-1] == "}" and len(_WORD.findall(own)) > 1):
        return True
    return words and (own.strip()[:1].isupper() or len(_WORD.findall(own)) > 1 or "{" in message)
