"""Makes versions of a homework from a course, on which the checks of an assignment are tried.

The reference and the bare template come from `solution.py`. A legitimate form or a known mistake is a
file with other versions of some parts, which are put into the reference. A tuned recipe is also a
legitimate form. The module also makes pairs of mistakes, the files that are handed in besides the code,
and the table of all forms and mistakes. It never runs a check.
"""

import ast
import random
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import combinations
from pathlib import Path
from typing import Any

from grader.course.composing import (
    composed,
    described,
    first_sentence,
    parsed,
    policies_named,
    recipes,
    source_text,
)
from grader.course.course_files import file_content, file_text
from grader.course.editions import belongs_elsewhere
from grader.course.locate import Course
from grader.course.reference_solution import homework_source, solved_source
from grader.course.toml_file import listing
from grader.course.variant_values import filled_code
from grader.domain.assignment import Assignment
from grader.domain.assignment_versions import Value, first_choices
from grader.domain.errors import CourseError
from grader.files.known_folders import visible

SOLUTION = "solution.py"


class Kind(StrEnum):
    """The kind of a version, which decides what is expected of it."""

    REFERENCE = "reference"  # passes every check
    TEMPLATE = "template"  # earns nothing
    FORM = "form"  # correct but unusual: passes every check
    MISTAKE = "mistake"  # fails a check of its own component and of no other, and is diagnosed
    PAIR = "pair"  # two mistakes in two components: both are noticed, and nothing else is
    ODD = "odd"  # a part gives what nobody plans for: no check breaks


@dataclass(frozen=True)
class HomeworkVersion:
    """One version of a homework.

    Attributes:
        name: `reference`, `template`, or the file's name without `.py`.
        file: The file to fix, as messages name it: `mistakes/missing_scale.py`.
        source: The whole homework.
        parts: The graded names that a form or a mistake defines; none: every check applies to it.
        says: The first sentence of the file's docstring.
        changes: If the part is a file that is handed in: the code of a function of that name, which takes
            the reference's text and returns the one to judge.
        code: If the part is code: the file's own, without the rest of the homework.
        planted: The names of the mistakes in a pair.
        policies: Named in a form's docstring, as in `Policy: fixed_positions`: policies, or patterns of
            parts, that the assignment may flag, so that a person is asked to look at the form.
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
        """The files besides the code: those of the reference, one of them changed if the version does so.

        Args:
            files: The reference's files by role.

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


def homework_versions(
    assignment: Assignment, values: Mapping[str, Value] | None = None
) -> tuple[HomeworkVersion, ...]:
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
    all_versions = [
        HomeworkVersion(Kind.REFERENCE, "reference", SOLUTION, solved),
        HomeworkVersion(Kind.TEMPLATE, "template", SOLUTION, homework_source(text, shown, values)),
    ]

    def files_of_edition(name: str) -> list[Path]:
        files = visible(assignment.folder / name, "*.py")
        return [path for path in files if not belongs_elsewhere(path, assignment.edition)]

    all_versions += [
        _part(path, f"forms/{path.name}", Kind.FORM, solved, assignment, values)
        for path in files_of_edition("forms")
    ]
    all_versions += [
        HomeworkVersion(
            Kind.FORM, recipe.name, recipe.file, recipe.source, says=recipe.says, policies=recipe.policies
        )
        for recipe in recipes(assignment, values)
    ]
    all_versions += [
        _part(path, f"mistakes/{path.name}", Kind.MISTAKE, solved, assignment, values)
        for path in files_of_edition("mistakes")
    ]
    return tuple(all_versions)


def _part(
    path: Path, shown: str, kind: Kind, solved: str, assignment: Assignment, values: Mapping[str, Value]
) -> HomeworkVersion:
    """The version that results from the reference and the file of a form or a mistake."""
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
        return HomeworkVersion(kind, path.stem, shown, solved, parts, first_sentence(docstring), changes=text)
    policies = policies_named(docstring, shown, assignment) if kind is Kind.FORM else ()
    source = composed(solved, text, after=kind is Kind.MISTAKE or _derives(tree))
    return HomeworkVersion(
        kind, path.stem, shown, source, parts, first_sentence(docstring), policies, code=text
    )


def _derives(tree: ast.Module) -> bool:
    """Whether a class derives from the one in whose place it comes: `class Part(Part)`."""
    return any(
        isinstance(base, ast.Name) and base.id == node.name
        for node in tree.body
        if isinstance(node, ast.ClassDef)
        for base in node.bases
    )


# --- mistake pairs ---------------------------------------------------------------------------------------


SEED = 20  # of the sample: the same pairs every time, so that a failure can be reproduced


def mistake_pairs(known: Sequence[HomeworkVersion], count: int) -> tuple[HomeworkVersion, ...]:
    """A sample of pairs of mistakes in code that covers every pair of parts before it repeats one.

    Args:
        known: The versions of an assignment.
        count: How many pairs; fewer if there are not as many.
    """
    generator = random.Random(SEED)
    by_part: dict[str, list[HomeworkVersion]] = {}
    for version in known:
        if version.kind is Kind.MISTAKE and version.code:
            by_part.setdefault(version.parts[0], []).append(version)
    pairs_by_parts = {}
    for part, other_part in combinations(by_part, 2):
        pairs_by_parts[part, other_part] = [
            (first, second) for first in by_part[part] for second in by_part[other_part]
        ]
        generator.shuffle(pairs_by_parts[part, other_part])
    sample: list[HomeworkVersion] = []
    while pairs_by_parts and len(sample) < count:
        for parts in list(pairs_by_parts)[: count - len(sample)]:
            sample.append(_pair(*pairs_by_parts[parts].pop()))
            if not pairs_by_parts[parts]:
                del pairs_by_parts[parts]
    return tuple(sample)


def _pair(first: HomeworkVersion, second: HomeworkVersion) -> HomeworkVersion:
    return HomeworkVersion(
        Kind.PAIR,
        f"{first.name} + {second.name}",
        f"{first.file} and {second.file}",
        composed(first.source, second.code, after=True),
        (*first.parts, *second.parts),
        planted=(first.name, second.name),
    )


# --- versions table --------------------------------------------------------------------------------------


HEADER = ("| what the code does | part | it is | file or policy |", "|---|---|---|---|")
RULINGS = {"allow": "legitimate", "advise": "advised", "flag": "flagged", "forbid": "mistaken"}
_COMMENTED_POLICY = re.compile(r"^(?P<name>\w+)\s*=\s*[\"']\w+[\"']\s*#\s*(?P<text>.+?)\s*$", re.MULTILINE)
_BLOCK = re.compile(
    r"^(?P<begin><!-- forms of (?P<id>[\w-]+): .*-->)\n.*?^(?P<end><!-- end of forms -->)$",
    re.MULTILINE | re.DOTALL,
)


def forms_table(assignment: Assignment) -> str:
    """The table as Markdown: legitimate forms, forms that a person looks at, and mistakes, part by part.

    Raises:
        CourseError: As `versions`.
    """
    all_versions = homework_versions(assignment)
    forms = [version for version in all_versions if version.kind is Kind.FORM]
    mistakes = [version for version in all_versions if version.kind is Kind.MISTAKE]
    rows = [_row(form.says, form.parts, _ruling(form, assignment), form.name) for form in forms]
    rows += _policy_rows(assignment)
    rows += _flagged_parts(assignment)
    order = [component.name for component in assignment.components]
    mistakes.sort(key=lambda mistake: (order.index(mistake.parts[0]), mistake.name))
    rows += [_row(mistake.says, mistake.parts, "mistaken", mistake.name) for mistake in mistakes]
    return "\n".join([*HEADER, *rows])


def with_tables(page: str, course: Course) -> str:
    """A page with the table of each assignment that its marks name, in place of the old table.

    The marks are `<!-- forms of vit_defects: ... -->` and `<!-- end of forms -->`, each on its own line.

    Raises:
        UsageError: A mark names no assignment of the course.
        CourseError: As `forms_table`.
    """
    from grader.course.assignment_file import read_assignment

    def table(block: re.Match[str]) -> str:
        assignment = read_assignment(course.reference(block["id"]))
        return f"{block['begin']}\n\n{forms_table(assignment)}\n\n{block['end']}"

    return _BLOCK.sub(table, page)


def _policy_rows(assignment: Assignment) -> Iterable[str]:
    """The rows of the policies, in the words of the comments beside them."""
    text = file_text(assignment.folder / "assignment.toml", "assignment.toml")
    words = {match["name"]: match["text"] for match in _COMMENTED_POLICY.finditer(text)}
    for name, policy in assignment.policies.items():
        description = words.get(name, name.replace("_", " "))
        yield _row(f"{description[0].upper()}{description[1:].rstrip('.')}.", (), RULINGS[policy], name)


def _flagged_parts(assignment: Assignment) -> Iterable[str]:
    for rule in assignment.forbidden:
        if rule.policy == "flag":
            yield _row(f"It uses `{rule.pattern}`. {rule.reason}", (rule.costs,), "flagged", "")


def _ruling(form: HomeworkVersion, assignment: Assignment) -> str:
    policies = {rule.pattern: rule.policy for rule in assignment.forbidden} | dict(assignment.policies)
    own = {policies.get(name) for name in form.policies}
    return next((RULINGS[policy] for policy in ("flag", "advise") if policy in own), RULINGS["allow"])


def _row(description: str, parts: Sequence[str], ruling: str, name: str) -> str:
    code = f"`{name}`" if name else ""
    return f"| {_cell(description)} | {', '.join(f'`{part}`' for part in parts)} | {ruling} | {code} |"


def _cell(text: str) -> str:
    """Text for a cell: outside `backticks`, nothing is taken for Markdown."""
    pieces = " ".join(text.split()).split("`")
    plain = [re.sub(r"([\\*<\[])", r"\\\1", p) if index % 2 == 0 else p for index, p in enumerate(pieces)]
    return "`".join(plain).replace("|", "\\|")


# --- reference files -------------------------------------------------------------------------------------


HANDIN = "handin"  # a folder of an assignment


def reference_files(assignment: Assignment) -> dict[str, bytes]:
    """The files with which the solution, forms and mistakes are validated, by role.

    Raises:
        CourseError: A file is of no role that the assignment names, has another suffix, or cannot be read.
    """
    asked = {file.role: file.suffixes for file in assignment.files if file.role in assignment.own_roles}
    contents: dict[str, bytes] = {}
    for path in visible(assignment.folder / HANDIN, "*"):
        if path.stem in assignment.edition.left_out:
            continue
        if path.suffix.lower() not in asked.get(path.stem, ()):
            expected = [f"{role}{suffix}" for role, suffixes in asked.items() for suffix in suffixes]
            expectation = (
                f"It holds {' and '.join(expected)}" if expected else "[files] names no further role"
            )
            raise CourseError(f"{HANDIN}/{path.name} is not a file that is handed in. {expectation}.")
        contents[path.stem] = file_content(path, f"{HANDIN}/{path.name}")
    return contents
