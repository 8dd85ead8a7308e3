"""Versions of a homework that are made from a course: what the checks of an assignment are tried on.

The reference and the bare template come from `solution.py`. A legitimate form or a known mistake is a file
with other versions of some parts, which are put into the reference.
"""

import ast
import re
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from grader.course.marks import homework_source, solved_source
from grader.course.toml_file import listing
from grader.domain.assignment import Assignment
from grader.domain.errors import CourseError

SOLUTION = "solution.py"
_POLICY = re.compile(r"^\s*Policy:\s*(?P<name>[\w.*]+)\s*$", re.MULTILINE)
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z`'\"(])")


class Kind(StrEnum):
    """What is expected of a variant."""

    REFERENCE = "reference"  # passes every check
    TEMPLATE = "template"  # earns nothing
    FORM = "form"  # correct but unusual: passes every check
    MISTAKE = "mistake"  # fails a check of its own component and of no other, and is named


@dataclass(frozen=True)
class Variant:
    """One version of a homework.

    Attributes:
        name: `reference`, `template`, or the file's name without `.py`.
        file: The file to mend, as it is told: `mistakes/missing_scale.py`.
        source: The whole homework.
        parts: The graded names that a form or a mistake defines.
        says: The first sentence of the file's docstring.
        policies: What a form's docstring names as `Policy: fixed_positions`: a policy, or the pattern of a
            part, that the assignment may flag, so that a person is asked to look at the form.
    """

    kind: Kind
    name: str
    file: str
    source: str
    parts: tuple[str, ...] = ()
    says: str = ""
    policies: tuple[str, ...] = ()


def variants(assignment: Assignment, course: Path) -> tuple[Variant, ...]:
    """The reference, the bare template, the legitimate forms and the mistakes, in this order.

    Args:
        assignment: Its folder has `solution.py` and `mistakes/*.py`.
        course: The course's folder, whose `tests/legitimate/<assignment>/*.py` are the forms.

    Raises:
        CourseError: There is no solution, or a file is malformed.
    """
    shown = f"reference/{assignment.id}/{SOLUTION}"
    if not (assignment.folder / SOLUTION).is_file():
        raise CourseError(
            f"{shown} is missing: what the checks are tried on is made from the reference solution. Write it."
        )
    text = _text(assignment.folder / SOLUTION, shown)
    solved = solved_source(text, shown)
    _parsed(solved, shown)
    found = [
        Variant(Kind.REFERENCE, "reference", SOLUTION, solved),
        Variant(Kind.TEMPLATE, "template", SOLUTION, homework_source(text, shown)),
    ]
    forms = course / "tests" / "legitimate" / assignment.id
    for path in sorted(forms.glob("*.py")):
        shown = f"tests/legitimate/{assignment.id}/{path.name}"
        found.append(_part(path, shown, Kind.FORM, solved, assignment))
    mistakes = sorted((assignment.folder / "mistakes").glob("*.py"))
    found += [_part(path, f"mistakes/{path.name}", Kind.MISTAKE, solved, assignment) for path in mistakes]
    return tuple(found)


def composed(solved: str, part: str, *, after: bool = False) -> str:
    """A homework with other versions of some of its parts.

    Args:
        solved: The homework, as Python source.
        part: Source with definitions. What stands between two of them goes with the second one.
        after: Put each behind the homework's definition of its name, which it may derive from, instead of
            in its place.

    Returns:
        The source.
    """
    lines = solved.splitlines(keepends=True)
    spans = {
        node.name: (_first_line(node) - 1, node.end_lineno or node.lineno)
        for node in ast.parse(solved).body
        if isinstance(node, ast.ClassDef | ast.FunctionDef)
    }
    part_lines = part.splitlines(keepends=True)
    changes: list[tuple[int, int, str]] = []
    pending: list[str] = []
    for node in ast.parse(part).body:
        pending.append("".join(part_lines[_first_line(node) - 1 : node.end_lineno]) + "\n\n")
        name = getattr(node, "name", None)
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


def _part(path: Path, shown: str, kind: Kind, solved: str, assignment: Assignment) -> Variant:
    """The variant that a form's or a mistake's file makes of the reference."""
    text = _text(path, shown)
    tree = _parsed(text, shown)
    graded = [component.name for component in assignment.components]
    defined = [
        n.name for n in tree.body if isinstance(n, ast.ClassDef | ast.FunctionDef) and n.name in graded
    ]
    parts = tuple(dict.fromkeys(defined))
    if kind is Kind.MISTAKE and len(parts) != 1:
        raise CourseError(
            f"{shown}: it defines {len(parts)} of the graded parts. Define exactly one of {listing(graded)}."
        )
    if not parts:
        raise CourseError(f"{shown}: it defines none of the graded parts. Define one of {listing(graded)}.")
    docstring = (ast.get_docstring(tree) or "").strip()
    if not docstring:
        raise CourseError(f"{shown}: it has no docstring. Say in its first sentence what the code does.")
    policies = tuple(_POLICY.findall(docstring)) if kind is Kind.FORM else ()
    for policy in policies:
        if policy not in (*assignment.policies, *assignment.forbidden_patterns):
            raise CourseError(
                f"{shown}: its docstring says 'Policy: {policy}', but assignment.toml has no such policy. "
                f"Add it to [policies], or remove the line."
            )
    source = composed(solved, text, after=kind is Kind.MISTAKE)
    return Variant(kind, path.stem, shown, source, parts, first_sentence(docstring), policies)


def first_sentence(docstring: str) -> str:
    """The first sentence of a docstring's first paragraph, on one line."""
    paragraph = " ".join(docstring.strip().split("\n\n")[0].split())
    return _SENTENCE_END.split(paragraph)[0]


def _first_line(node: ast.stmt) -> int:
    """The first line of a statement, 1-based, decorators included."""
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(each.lineno for each in decorators)])


def _text(path: Path, shown: str) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise CourseError(f"{shown} is not UTF-8 text. Save it in that encoding.") from None
    except OSError as error:
        raise CourseError(f"{shown} cannot be read ({error.strerror}). Change its permissions.") from None


def _parsed(text: str, shown: str) -> ast.Module:
    try:
        return ast.parse(text)
    except SyntaxError as error:
        place = f"{shown}:{error.lineno}" if error.lineno else shown
        raise CourseError(f"{place}: this is not valid Python ({error.msg}). Mend it.") from None
    except ValueError:
        raise CourseError(f"{shown} is not a Python source file that can be read. Save it again.") from None
