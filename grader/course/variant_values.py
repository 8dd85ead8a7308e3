"""The drawn values of an assignment in its files: the choices stated, and where a value is inserted.

It reads `[variant]` of `assignment.toml`, the file with a student's own values, and the student id that a
homework's code states. In Python an assignment is marked, and its value is rewritten:

    HEADS = 4  # variant: heads

In comments of Python files, and anywhere in other texts, `{{heads}}` becomes the value. It never draws a
value: `grader.domain.assignment_versions` does.
"""

import ast
import io
import json
import keyword
import math
import re
import tokenize
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import ConfigDict, Field

from grader.course.assignment_tables import VariantTable
from grader.course.editions import edition_of
from grader.course.toml_file import FILE, Table, fault, listing, remedy, toml_table
from grader.domain.assignment_versions import (
    DrawnValue,
    Scalar,
    Value,
    frozen_value,
    python_text,
    shown_value,
)
from grader.domain.errors import CourseError

NAME = "STUDENT_ID"


def written_id(source: str) -> tuple[str, int] | None:
    """The id that Python code assigns to `STUDENT_ID` outside functions, and its line.

    Args:
        source: A script, or a cell of a notebook. If it is not Python, it states nothing.

    Returns:
        The last one; None if there is none, or if it is not a text or number.
    """
    try:
        statements = ast.parse(source).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    last_id = None
    for statement in statements:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant(value=str() | int() as value)):
                if name == NAME and not isinstance(value, bool):
                    last_id = str(value).strip(), statement.lineno
    return last_id if last_id and last_id[0] else None


# --- value choices ---------------------------------------------------------------------------------------


VALUES_FILE = "variant.json"
_KINDS = {bool: "a truth value", int: "a number", float: "a number", str: "a text"}


def stated_values(tables: Mapping[str, VariantTable]) -> tuple[DrawnValue, ...]:
    """The values that `[variant]` states, in its order.

    Raises:
        CourseError: A name is not a Python name, or the choices are not different values of one kind.
    """
    return tuple(_stated(name, table) for name, table in tables.items())


class _VariantAlone(Table):
    """`assignment.toml`, whose other tables may still be missing."""

    model_config = ConfigDict(extra="ignore")

    variant: dict[str, VariantTable] = Field(default_factory=dict)


def values_stated_in(folder: Path) -> tuple[DrawnValue, ...]:
    """The values that the `assignment.toml` in a folder states, whatever else is in it.

    Raises:
        CourseError: The file is not TOML, or `[variant]` is malformed.
    """
    return stated_values(toml_table(folder / FILE, _VariantAlone, edition_of(folder)).variant)


def own_values_text(values: Mapping[str, Value], student_id: str) -> str:
    """The text of `variant.json`, from which the public checks read the values on a student's machine.

    Args:
        student_id: Whose copy it is; empty: nobody's.
    """
    document = {"student": student_id, "values": dict(values)}
    return json.dumps(document, ensure_ascii=False, indent=1) + "\n"


def own_values(folder: Path, stated: Sequence[DrawnValue]) -> dict[str, Value]:
    """The values that a student's folder states.

    For submissions, the grader never reads this file: it draws the values again.

    Args:
        stated: The values that the assignment states; if it states none, no file is needed.

    Raises:
        CourseError: The file is missing or malformed.
    """
    path = folder / VALUES_FILE
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        if not stated:
            return {}
        raise CourseError(
            f"{VALUES_FILE}, which tells the values of this copy, is missing in {folder}. Copy it back from "
            "the folder that the course handed out."
        ) from None
    except (OSError, UnicodeDecodeError):
        raise _misread() from None
    try:
        values = json.loads(text)["values"]
        return {str(name): _plain(value) for name, value in values.items()}
    except (ValueError, KeyError, TypeError, AttributeError):
        raise _misread() from None


def _misread() -> CourseError:
    return CourseError(
        f"{VALUES_FILE} cannot be read. Copy it back from the folder that the course handed out."
    )


def _plain(value: object) -> Value:
    parts = value if isinstance(value, list) else [value]
    if not all(isinstance(part, Scalar) for part in parts):
        raise TypeError
    return frozen_value(value)


def _stated(name: str, table: VariantTable) -> DrawnValue:
    where = f"[variant.{name}]"
    if not name.isidentifier() or keyword.iskeyword(name):
        raise fault(f"{where}: '{name}' is not a Python name. Use letters, digits and '_', a letter first.")
    _require_one_kind(where, table.choices)
    choices = tuple(map(frozen_value, table.choices))
    for number, choice in enumerate(choices):
        if choice in choices[:number]:
            raise fault(f"{where}: {table.choices[number]!r} is in 'choices' twice. Write each choice once.")
    return DrawnValue(name, choices, table.per == "student")


def _require_one_kind(where: str, choices: Sequence[object]) -> None:
    """Refuse choices that are not all numbers, all texts, all truth values, or all lists of these.

    Raises:
        CourseError: They are not.
    """
    lists = [choice for choice in choices if isinstance(choice, list)]
    entries = [entry for choice in lists for entry in choice] if lists else choices
    kinds = {_KINDS.get(type(entry), "something else") for entry in entries}
    finite = all(math.isfinite(entry) for entry in entries if isinstance(entry, float))
    if "something else" in kinds or not finite:
        raise fault(
            f"{where}: 'choices' has an entry that is not a finite number, a text, a truth value or a list "
            "of these. Replace it."
        )
    if len(kinds) > 1 or len(lists) not in (0, len(choices)):
        kinds_named = ["a list"] * bool(lists) if len(lists) < len(choices) else []
        kinds_named += sorted({_KINDS[type(choice)] for choice in choices if not isinstance(choice, list)})
        kinds_named = kinds_named if len(kinds_named) > 1 else sorted(kinds)
        raise fault(f"{where}: 'choices' mixes {' and '.join(kinds_named)}. Write choices of one kind.")


# --- value places ----------------------------------------------------------------------------------------


_MARK = re.compile(r"#\s*variant:\s*(?P<name>\w+)\s*$")
_PLACEHOLDER = re.compile(r"\{\{(?P<name>[^\W\d]\w*)\}\}")


@dataclass(frozen=True)
class MarkedValue:
    """An assignment whose value is drawn.

    Attributes:
        name: The value's: `heads`.
        variable: The top-level variable that it is assigned to: `HEADS`; empty: something else.
        line: 1-based.
        start, end: The position of the value in the line, in bytes of UTF-8.
    """

    name: str
    variable: str
    line: int
    start: int
    end: int


def filled_text(text: str, values: Mapping[str, Value], shown: str) -> str:
    """A text with the values in place of its placeholders; without values it stays as it is.

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
    """Python source with the values in its marked assignments and in the placeholders of its comments.

    Args:
        shown: The file's name, for messages.

    Raises:
        CourseError: A mark or a placeholder names no value, or a mark follows something else.
    """
    if not _concerns(text, values):
        return text
    lines = text.split("\n")
    for token in _comments(text, shown):
        row, column = token.start
        comment = _filled_line(token.string, values, f"{shown}:{row}") if values else token.string
        # to the end of the line: nothing follows a comment
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
        CourseError: A mark names no value, or does not follow an assignment of one that is written out in
            the same line.
    """
    comments = {token.start[0]: _MARK.fullmatch(token.string) for token in _comments(text, shown)}
    marks = {line: mark["name"] for line, mark in comments.items() if mark}
    tree = ast.parse(text)
    assigned = {
        node.end_lineno: node for node in ast.walk(tree) if isinstance(node, ast.Assign | ast.AnnAssign)
    }
    in_order = []
    for line, name in marks.items():
        if name not in known:
            raise _unknown(name, known, f"{shown}:{line}", f"'# variant: {name}' marks")
        node = assigned.get(line)
        value = node.value if node is not None else None
        if node is None or value is None or value.lineno != line or not is_written_out(value):
            raise CourseError(
                f"{shown}:{line}: '# variant: {name}' does not follow an assignment of a value that is "
                f"written out on the same line. Write it as in 'HEADS = 4  # variant: {name}'."
            )
        variable = _variable(node) if node in tree.body else ""
        end = value.end_col_offset or value.col_offset
        in_order.append(MarkedValue(name, variable, line, value.col_offset, end))
    return tuple(in_order)


def is_written_out(value: ast.expr) -> bool:
    """Whether an expression is a literal: a number, a text or a list of these."""
    try:
        ast.literal_eval(value)
    except (ValueError, TypeError, SyntaxError):
        return False
    return True


def _variable(node: ast.Assign | ast.AnnAssign) -> str:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return targets[0].id if len(targets) == 1 and isinstance(targets[0], ast.Name) else ""


def _concerns(text: str, values: Mapping[str, Value]) -> bool:
    """Whether anything may have to be filled in; a mark without a value is refused later."""
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
    def written(placeholder: re.Match[str]) -> str:
        name = placeholder["name"]
        if name not in values:
            raise _unknown(name, values, place, f"'{{{{{name}}}}}' names")
        return shown_value(values[name])

    return _PLACEHOLDER.sub(written, line)


def _unknown(name: str, known: Collection[str], place: str, what: str) -> CourseError:
    names = tuple(known)
    alternatives = (
        f"It knows {listing(names)}." if names else f"State it in [variant.{name}] of assignment.toml."
    )
    return CourseError(f"{place}: {what} no value of [variant]. {remedy(name, names, alternatives)}")
