"""A homework put together from the solution and from files with other versions of some of its parts."""

import ast
import re
from pathlib import Path

from grader.course.editions import edition_text
from grader.domain.assignment import Assignment
from grader.domain.edition import Edition
from grader.domain.errors import CourseError

_POLICY = re.compile(r"^\s*Policy:\s*(?P<name>[\w.*]+)\s*$", re.MULTILINE)
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z`'\"(])")


def composed(solved: str, part: str, *, after: bool = False, values: bool = False) -> str:
    """A homework with other versions of some of its parts.

    Args:
        solved: The homework, as Python source.
        part: Source with definitions. What stands between two of them goes with the second one.
        after: Put each behind the homework's definition of its name, which it may derive from, instead of
            in its place.
        values: An assignment or a loop on the top level takes the place of the homework's too: of the last
            one to the same names.

    Returns:
        The source.
    """
    lines = solved.splitlines(keepends=True)
    spans = {
        name: (_first_line(node) - 1, node.end_lineno or node.lineno)
        for node in ast.parse(solved).body
        if (name := _bound(node, values=values))
    }
    part_lines = part.splitlines(keepends=True)
    changes: list[tuple[int, int, str]] = []
    pending: list[str] = []
    for node in ast.parse(part).body:
        pending.append("".join(part_lines[_first_line(node) - 1 : node.end_lineno]) + "\n\n")
        name = _bound(node, values=values)
        if name in spans:
            start, end = spans[name]
            changes.append((end if after else start, end, "".join(pending)))
            pending = []
    if pending:  # the rest goes with the last definition
        start, end, text = changes.pop() if changes else (len(lines), len(lines), "")
        changes.append((start, end, text + "".join(pending)))
    for start, end, text in sorted(changes, reverse=True):
        lines[start:end] = [text]
    return "".join(lines)


def first_sentence(docstring: str) -> str:
    """The first sentence of a docstring's first paragraph, on one line."""
    paragraph = " ".join(docstring.strip().split("\n\n")[0].split())
    return _SENTENCE_END.split(paragraph)[0]


def policies_named(docstring: str, shown: str, assignment: Assignment) -> tuple[str, ...]:
    """What a docstring names as `Policy: fixed_positions`: what a person is asked to look at.

    Raises:
        CourseError: The assignment has no such policy.
    """
    policies = tuple(_POLICY.findall(docstring))
    for policy in policies:
        if policy not in (*assignment.policies, *assignment.forbidden_patterns):
            raise CourseError(
                f"{shown}: its docstring says 'Policy: {policy}', but assignment.toml has no such policy. "
                f"Add it to [policies], or remove the line."
            )
    return policies


def described(tree: ast.Module, shown: str) -> str:
    """The docstring of a file.

    Raises:
        CourseError: It has none.
    """
    docstring = (ast.get_docstring(tree) or "").strip()
    if not docstring:
        raise CourseError(f"{shown}: it has no docstring. Say in its first sentence what the code does.")
    return docstring


def _bound(node: ast.stmt, *, values: bool) -> str:
    """What a statement defines: `Attention`, and with `values` also `model` or `for epoch`."""
    match node:
        case ast.ClassDef() | ast.FunctionDef():
            return node.name
        case ast.Assign(targets=[target]) if values:
            return ast.unparse(target)
        case ast.For() if values:
            return f"for {ast.unparse(node.target)}"
    return ""


def _first_line(node: ast.stmt) -> int:
    """The first line of a statement, 1-based, decorators included."""
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(each.lineno for each in decorators)])


def source_text(path: Path, shown: str, edition: Edition) -> str:
    """The text of a source file of an edition; `shown` is its path as it is told.

    Raises:
        CourseError: It cannot be read, or a mark of an edition is malformed.
    """
    try:
        return edition_text(path.read_text(encoding="utf-8"), edition, shown)
    except UnicodeDecodeError:
        raise CourseError(f"{shown} is not UTF-8 text. Save it in that encoding.") from None
    except OSError as error:
        raise CourseError(f"{shown} cannot be read ({error.strerror}). Change its permissions.") from None


def parsed(text: str, shown: str) -> ast.Module:
    """The syntax tree of a source file.

    Raises:
        CourseError: It is not Python.
    """
    try:
        return ast.parse(text)
    except SyntaxError as error:
        place = f"{shown}:{error.lineno}" if error.lineno else shown
        raise CourseError(f"{place}: this is not valid Python ({error.msg}). Fix it.") from None
    except ValueError:
        raise CourseError(f"{shown} is not a Python source file that can be read. Save it again.") from None
