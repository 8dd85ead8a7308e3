"""Where drawn values stand in the files of an assignment.

In Python an assignment is marked, so that the file is Python with any of the choices; its value is rewritten:

    HEADS = 4  # variant: heads

In comments of Python files, and anywhere in other texts, `{{heads}}` becomes the value.
"""

import ast
import io
import re
import tokenize
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from grader.course.toml_file import listing, remedy
from grader.domain.drawn_values import Value, python_text, shown_value
from grader.domain.errors import CourseError

_MARK = re.compile(r"#\s*variant:\s*(?P<name>\w+)\s*$")
_PLACEHOLDER = re.compile(r"\{\{(?P<name>[^\W\d]\w*)\}\}")


@dataclass(frozen=True)
class MarkedValue:
    """An assignment whose value is drawn.

    Attributes:
        name: The value's: `heads`.
        variable: The top-level variable that it is assigned to: `HEADS`; empty: something else.
        line: 1-based.
        start, end: Where the value stands in the line, in bytes of UTF-8.
    """

    name: str
    variable: str
    line: int
    start: int
    end: int


def filled_text(text: str, values: Mapping[str, Value], shown: str) -> str:
    """A text with the values in the places of its placeholders; without values it stays as it is.

    Args:
        shown: The file's name, for messages.

    Raises:
        CourseError: A placeholder names no value.
    """
    lines = text.split("\n") if values else []
    for number, line in enumerate(lines, start=1):
        lines[number - 1] = _filled_line(line, values, f"{shown}:{number}")
    return "\n".join(lines) if values else text


def filled_code(text: str, values: Mapping[str, Value], shown: str) -> str:
    """Python source with the values in its marked assignments, and in the placeholders of its comments.

    Args:
        shown: The file's name, for messages.

    Raises:
        CourseError: A mark or a placeholder names no value, or a mark stands behind something else.
    """
    if not _concerns(text, values):
        return text
    lines = text.split("\n")
    for token in _comments(text, shown):
        row, column = token.start
        comment = _filled_line(token.string, values, f"{shown}:{row}") if values else token.string
        # the line's end: nothing follows a comment
        lines[row - 1] = lines[row - 1][:column] + comment
    for marked in marked_values(text, shown, values):
        line = lines[marked.line - 1].encode()
        value = python_text(values[marked.name]).encode()
        lines[marked.line - 1] = (line[: marked.start] + value + line[marked.end :]).decode()
    return "\n".join(lines)


def marked_values(text: str, shown: str, known: Collection[str]) -> tuple[MarkedValue, ...]:
    """The assignments of Python source whose values are drawn, in order.

    Args:
        shown: The file's name, for messages.
        known: The names of the values.

    Raises:
        CourseError: A mark names no value, or stands behind something else than an assignment of one that is
            written out in its line.
    """
    comments = {token.start[0]: _MARK.fullmatch(token.string) for token in _comments(text, shown)}
    marks = {line: mark["name"] for line, mark in comments.items() if mark}
    tree = ast.parse(text)
    assigned = {
        node.end_lineno: node for node in ast.walk(tree) if isinstance(node, ast.Assign | ast.AnnAssign)
    }
    found = []
    for line, name in marks.items():
        if name not in known:
            raise _unknown(name, known, f"{shown}:{line}", f"'# variant: {name}' marks")
        node = assigned.get(line)
        value = node.value if node is not None else None
        if node is None or value is None or value.lineno != line or not is_written_out(value):
            raise CourseError(
                f"{shown}:{line}: '# variant: {name}' stands behind no assignment of a value that is written "
                f"out in this line. Write it as in 'HEADS = 4  # variant: {name}'."
            )
        variable = _variable(node) if node in tree.body else ""
        end = value.end_col_offset or value.col_offset
        found.append(MarkedValue(name, variable, line, value.col_offset, end))
    return tuple(found)


def is_written_out(value: ast.expr) -> bool:
    """Whether an expression is a value by itself, as numbers, texts and lists of them are."""
    try:
        ast.literal_eval(value)
    except (ValueError, TypeError, SyntaxError):
        return False
    return True


def _variable(node: ast.Assign | ast.AnnAssign) -> str:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return targets[0].id if len(targets) == 1 and isinstance(targets[0], ast.Name) else ""


def _concerns(text: str, values: Mapping[str, Value]) -> bool:
    """Whether anything may have to be filled in; a mark without any value is refused later."""
    return "variant:" in text or (bool(values) and "{{" in text)


def _comments(text: str, shown: str) -> list[tokenize.TokenInfo]:
    try:
        ast.parse(text)
        tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    except (SyntaxError, ValueError, tokenize.TokenError) as error:
        line = getattr(error, "lineno", None) or 1
        raise CourseError(f"{shown}:{line}: not Python: {error}. Correct the file.") from None
    return [token for token in tokens if token.type == tokenize.COMMENT]


def _filled_line(line: str, values: Mapping[str, Value], place: str) -> str:
    def written(found: re.Match[str]) -> str:
        name = found["name"]
        if name not in values:
            raise _unknown(name, values, place, f"'{{{{{name}}}}}' names")
        return shown_value(values[name])

    return _PLACEHOLDER.sub(written, line)


def _unknown(name: str, known: Collection[str], place: str, what: str) -> CourseError:
    names = tuple(known)
    there = f"It knows {listing(names)}." if names else f"State it in [variant.{name}] of assignment.toml."
    return CourseError(f"{place}: {what} no value of [variant]. {remedy(name, names, there)}")
