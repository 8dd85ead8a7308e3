"""Versions of a homework that are made from a course: what the checks of an assignment are tried on.

The reference and the bare template come from `solution.py`. A legitimate form or a known mistake is a file
with other versions of some parts, which are put into the reference. A tuned recipe is a legitimate form, too.
"""

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from grader.course.composing import composed, described, first_sentence, parsed, policies_named, source_text
from grader.course.recipes import recipes
from grader.course.solution_regions import homework_source, solved_source
from grader.course.toml_file import listing
from grader.course.value_places import filled_code
from grader.domain.assignment import Assignment
from grader.domain.drawn_values import Value, first_choices
from grader.domain.errors import CourseError

SOLUTION = "solution.py"


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
        parts: The graded names that a form or a mistake defines; none: it meets every check.
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


def variants(assignment: Assignment, values: Mapping[str, Value] | None = None) -> tuple[Variant, ...]:
    """The reference, the bare template, the legitimate forms and the mistakes, in this order.

    Args:
        assignment: Its folder has `solution.py`, `forms/*.py` and `mistakes/*.py`.
        values: What is drawn, by name; None: each first choice.

    Raises:
        CourseError: There is no solution, or a file is malformed.
    """
    shown = f"reference/{assignment.id}/{SOLUTION}"
    if not (assignment.folder / SOLUTION).is_file():
        raise CourseError(
            f"{shown} is missing: what the checks are tried on is made from the reference solution. Write it."
        )
    values = first_choices(assignment.variant) if values is None else values
    text = source_text(assignment.folder / SOLUTION, shown)
    solved = solved_source(text, shown, values)
    parsed(solved, shown)
    found = [
        Variant(Kind.REFERENCE, "reference", SOLUTION, solved),
        Variant(Kind.TEMPLATE, "template", SOLUTION, homework_source(text, shown, values)),
    ]
    forms = sorted((assignment.folder / "forms").glob("*.py"))
    found += [_part(path, f"forms/{path.name}", Kind.FORM, solved, assignment, values) for path in forms]
    found += [
        Variant(Kind.FORM, each.name, each.file, each.source, says=each.says, policies=each.policies)
        for each in recipes(assignment, values)
    ]
    mistakes = sorted((assignment.folder / "mistakes").glob("*.py"))
    found += [
        _part(path, f"mistakes/{path.name}", Kind.MISTAKE, solved, assignment, values) for path in mistakes
    ]
    return tuple(found)


def _part(
    path: Path, shown: str, kind: Kind, solved: str, assignment: Assignment, values: Mapping[str, Value]
) -> Variant:
    """The variant that a form's or a mistake's file makes of the reference."""
    text = filled_code(source_text(path, shown), values, shown)
    tree = parsed(text, shown)
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
    docstring = described(tree, shown)
    policies = policies_named(docstring, shown, assignment) if kind is Kind.FORM else ()
    source = composed(solved, text, after=kind is Kind.MISTAKE)
    return Variant(kind, path.stem, shown, source, parts, first_sentence(docstring), policies)
