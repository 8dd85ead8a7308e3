"""Tuned recipes of an assignment: whole homeworks, in files that hold what differs from the solution.

A file of `reference/<assignment>/recipes/` has definitions, assignments and loops that take the place of the
solution's. `Based on: NAME` in its docstring builds on another recipe instead. A remark behind a value names
an ingredient and what takes it out:

    LABEL_SMOOTHING = 0.1  # without label smoothing: 0.0
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from grader.course.composing import composed, described, first_sentence, parsed, policies_named, source_text
from grader.course.solution_regions import solved_source
from grader.course.toml_file import listing
from grader.course.value_places import filled_code
from grader.domain.assignment import Assignment
from grader.domain.drawn_values import Value, first_choices
from grader.domain.errors import CourseError

_BASE = re.compile(r"^\s*Based on:\s*(?P<name>\w+)\s*$", re.MULTILINE)
_WITHOUT = re.compile(r"^(?P<name>\w+) = .*?  # without (?P<what>.+): (?P<value>[^:\n]+)$", re.MULTILINE)


@dataclass(frozen=True)
class TunedRecipe:
    """A tuned homework.

    Attributes:
        name: The file's name without `.py`.
        file: The file to fix, as it is told: `recipes/linear_28.py`.
        source: The whole homework.
        says: The first sentence of the file's docstring.
        policies: What its docstring names as `Policy: convolutional_stem`.
        ingredients: What can be taken out -> the assignment that does, `LABEL_SMOOTHING = 0.0`.
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
        values: What is drawn, by name; None: each first choice.

    Raises:
        CourseError: A file is malformed, or is based on what is not there.
    """
    files = sorted((assignment.folder / "recipes").glob("*.py"))
    values = first_choices(assignment.variant) if values is None else values
    return tuple(_recipe(path.stem, assignment, values, ()) for path in files)


def _recipe(
    name: str, assignment: Assignment, values: Mapping[str, Value], above: tuple[str, ...]
) -> TunedRecipe:
    """One recipe; `above` are those that are based on it."""
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
        {found["what"]: f"{found['name']} = {found['value']}\n" for found in _WITHOUT.finditer(source)},
    )
