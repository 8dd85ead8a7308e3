"""Composes homeworks from the solution and from files with other versions of some of its parts.

Tuned recipes are such files: definitions, assignments and loops that replace the solution's.
`Based on: NAME` in a recipe's docstring builds on another recipe. A comment after a value names an
ingredient, and the value that removes it:

    LABEL_SMOOTHING = 0.1  # without label smoothing: 0.0

It writes source text, executes nothing, and does not decide whether a homework is correct.
"""

import ast
import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from grader.course.course_files import file_text
from grader.course.editions import edition_text
from grader.course.reference_solution import solved_source
from grader.course.toml_file import listing
from grader.course.variant_values import filled_code
from grader.domain.assignment import Assignment
from grader.domain.assignment_versions import Edition, Value, first_choices
from grader.domain.errors import CourseError
from grader.files.known_folders import visible

_POLICY = re.compile(r"^\s*Policy:\s*(?P<name>[\w.*]+)\s*$", re.MULTILINE)
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z`'\"(])")


def composed(solved: str, part: str, *, after: bool = False, values: bool = False) -> str:
    """A homework with other versions of some of its parts.

    Args:
        solved: The homework, as Python source.
        part: Source with definitions. Whatever stands between two of them goes with the second one.
        after: Put each after the homework's definition of that name, which it may derive from, instead of
            replacing it.
        values: Assignments and loops at the top level also replace the homework's: the last one to the same
            names.

    Returns:
        The source.
    """
    lines = solved.splitlines(keepends=True)
    spans = _spans(solved, values=values)
    part_lines = part.splitlines(keepends=True)
    changes: list[tuple[int, int, str]] = []
    pending: list[str] = []
    for node in ast.parse(part).body:
        pending.append("".join(part_lines[_first_line(node) - 1 : node.end_lineno]) + "\n\n")
        name = _defined_name(node, values=values)
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


@functools.lru_cache(4)  # hundreds of parts are put into one solution
def _spans(solved: str, *, values: bool) -> Mapping[str, tuple[int, int]]:
    """The lines of each top-level definition of a homework, the first counted from 0, by its name."""
    return {
        name: (_first_line(node) - 1, node.end_lineno or node.lineno)
        for node in ast.parse(solved).body
        if (name := _defined_name(node, values=values))
    }


def first_sentence(docstring: str) -> str:
    """The first sentence of a docstring's first paragraph, on one line."""
    paragraph = " ".join(docstring.strip().split("\n\n")[0].split())
    return _SENTENCE_END.split(paragraph)[0]


def policies_named(docstring: str, shown: str, assignment: Assignment) -> tuple[str, ...]:
    """The policies that a docstring names, as in `Policy: fixed_positions`, for a person to look at.

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


def _defined_name(node: ast.stmt, *, values: bool) -> str:
    """The name that a statement defines: `Attention`, and with `values` also `model` or `for epoch`."""
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
    return min([node.lineno, *(decorator.lineno for decorator in decorators)])


def source_text(path: Path, shown: str, edition: Edition) -> str:
    """The text of a source file of an edition; `shown` is its path in messages.

    Raises:
        CourseError: It cannot be read, or a mark of an edition is malformed.
    """
    return edition_text(file_text(path, shown), edition, shown)


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


# --- recipes ---------------------------------------------------------------------------------------------


_BASE = re.compile(r"^\s*Based on:\s*(?P<name>\w+)\s*$", re.MULTILINE)
_WITHOUT = re.compile(r"^(?P<name>\w+) = .*?  # without (?P<what>.+): (?P<value>[^:\n]+)$", re.MULTILINE)


@dataclass(frozen=True)
class TunedRecipe:
    """A tuned homework.

    Attributes:
        name: The file's name without `.py`.
        file: The file to fix, as messages name it: `recipes/linear_28.py`.
        source: The whole homework.
        says: The first sentence of the file's docstring.
        policies: The policies that its docstring names: `Policy: convolutional_stem`.
        ingredients: What can be removed -> the assignment that does it, `LABEL_SMOOTHING = 0.0`.
    """

    name: str
    file: str
    source: str
    says: str
    policies: tuple[str, ...]
    ingredients: dict[str, str]

    def changed(self, values: str) -> str:
        """The homework with other values: lines such as `LABEL_SMOOTHING = 0.0`.

        Raises:
            CourseError: The homework has no such value.
        """
        source = composed(self.source, values, values=True)
        if len(parsed(source, self.file).body) != len(parsed(self.source, self.file).body):
            raise CourseError(f"{self.file}: it has no value to be replaced by '{values.strip()}'. Name one.")
        return source


def recipes(assignment: Assignment, values: Mapping[str, Value] | None = None) -> tuple[TunedRecipe, ...]:
    """The recipes of an assignment, by name.

    Args:
        values: The drawn values by name; None: the first choice of each.

    Raises:
        CourseError: A file is malformed, or is based on a recipe that does not exist.
    """
    files = visible(assignment.folder / "recipes", "*.py")
    values = first_choices(assignment.variant) if values is None else values
    return tuple(_recipe(path.stem, assignment, values, ()) for path in files)


def _recipe(
    name: str, assignment: Assignment, values: Mapping[str, Value], above: tuple[str, ...]
) -> TunedRecipe:
    """One recipe; `above` are the recipes that are based on it."""
    shown = f"recipes/{name}.py"
    text = filled_code(
        source_text(assignment.folder / "recipes" / f"{name}.py", shown, assignment.edition), values, shown
    )
    docstring = described(parsed(text, shown), shown)
    base = _BASE.search(docstring)
    if base is None:
        solution = f"reference/{assignment.id}/solution.py"
        text_of_solution = source_text(assignment.folder / "solution.py", solution, assignment.edition)
        source = solved_source(text_of_solution, solution, values)
    elif base["name"] in (*above, name):
        raise CourseError(
            f"{shown}: {listing((*above, name))} are based on each other. Base one on the solution."
        )
    elif not (assignment.folder / "recipes" / f"{base['name']}.py").is_file():
        raise CourseError(
            f"{shown}: there is no recipe '{base['name']}' that it could be based on. Correct it."
        )
    else:
        source = _recipe(base["name"], assignment, values, (*above, name)).source
    source = composed(source, text, values=True)
    return TunedRecipe(
        name,
        shown,
        source,
        first_sentence(docstring),
        policies_named(docstring, shown, assignment),
        {match["what"]: f"{match['name']} = {match['value']}\n" for match in _WITHOUT.finditer(source)},
    )
