"""Versions of a homework that are made from a course: what the checks of an assignment are tried on.

The reference and the bare template come from `solution.py`. A legitimate form or a known mistake is a file
with other versions of some parts, which are put into the reference. A tuned recipe is a legitimate form, too.
"""

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from grader.course.composing import composed, described, first_sentence, parsed, policies_named, source_text
from grader.course.editions import belongs_elsewhere
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
    PAIR = "pair"  # two mistakes of two components: both are noticed, and nothing else is


@dataclass(frozen=True)
class Variant:
    """One version of a homework.

    Attributes:
        name: `reference`, `template`, or the file's name without `.py`.
        file: The file to fix, as it is told: `mistakes/missing_scale.py`.
        source: The whole homework.
        parts: The graded names that a form or a mistake defines; none: it meets every check.
        says: The first sentence of the file's docstring.
        changes: Where the part is a file that is handed in: the code of a function of its name, which takes
            the reference's text and returns the one to judge.
        code: Where the part is code: the file's own, without the rest of the homework.
        planted: The names of the mistakes that a pair has.
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
    changes: str = ""
    code: str = ""
    planted: tuple[str, ...] = ()

    def handed_in(self, files: Mapping[str, bytes]) -> dict[str, bytes]:
        """The files beside the code: those of the reference, one of them changed where that is the variant.

        Args:
            files: The reference's, by role.

        Raises:
            CourseError: The function cannot change the file.
        """
        if self.kind is Kind.TEMPLATE:
            return {}
        if not self.changes:
            return dict(files)
        (role,) = self.parts
        names: dict[str, Any] = {"__name__": self.name}
        try:
            exec(compile(self.changes, self.file, "exec"), names)  # noqa: S102  # the course's own code
            text = names[role](files[role].decode("utf-8"))
        except Exception as error:
            raise CourseError(f"{self.file}: {type(error).__name__}: {error}. Fix it.") from error
        return {**files, role: text.encode("utf-8")}


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
    text = source_text(assignment.folder / SOLUTION, shown, assignment.edition)
    solved = solved_source(text, shown, values)
    parsed(solved, shown)
    found = [
        Variant(Kind.REFERENCE, "reference", SOLUTION, solved),
        Variant(Kind.TEMPLATE, "template", SOLUTION, homework_source(text, shown, values)),
    ]

    def own(folder: str) -> list[Path]:
        files = sorted((assignment.folder / folder).glob("*.py"))
        return [path for path in files if not belongs_elsewhere(path, assignment.edition)]

    found += [
        _part(path, f"forms/{path.name}", Kind.FORM, solved, assignment, values) for path in own("forms")
    ]
    found += [
        Variant(Kind.FORM, each.name, each.file, each.source, says=each.says, policies=each.policies)
        for each in recipes(assignment, values)
    ]
    found += [
        _part(path, f"mistakes/{path.name}", Kind.MISTAKE, solved, assignment, values)
        for path in own("mistakes")
    ]
    return tuple(found)


def _part(
    path: Path, shown: str, kind: Kind, solved: str, assignment: Assignment, values: Mapping[str, Value]
) -> Variant:
    """The variant that a form's or a mistake's file makes of the reference."""
    text = filled_code(source_text(path, shown, assignment.edition), values, shown)
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
    files = [component.name for component in assignment.components if component.is_file]
    if of_files := [name for name in parts if name in files]:
        if len(parts) > 1:
            raise CourseError(f"{shown}: it changes {of_files[0]}, which is a file, and more. Change one.")
        return Variant(kind, path.stem, shown, solved, parts, first_sentence(docstring), changes=text)
    policies = policies_named(docstring, shown, assignment) if kind is Kind.FORM else ()
    source = composed(solved, text, after=kind is Kind.MISTAKE)
    return Variant(kind, path.stem, shown, source, parts, first_sentence(docstring), policies, code=text)
