"""Legitimate, mistaken, flagged: what the checks of an assignment make of which code, as a table."""

import re
from collections.abc import Iterable, Sequence

from grader.course.locate import Course
from grader.course.variants import Kind, Variant, variants
from grader.domain.assignment import Assignment

HEADER = ("| what the code does | part | it is | file or policy |", "|---|---|---|---|")
RULINGS = {"allow": "legitimate", "flag": "flagged", "forbid": "mistaken"}
_COMMENTED_POLICY = re.compile(r"^(?P<name>\w+)\s*=\s*[\"']\w+[\"']\s*#\s*(?P<text>.+?)\s*$", re.MULTILINE)
_BLOCK = re.compile(
    r"^(?P<begin><!-- forms of (?P<id>[\w-]+): .*-->)\n.*?^(?P<end><!-- end of forms -->)$",
    re.MULTILINE | re.DOTALL,
)


def forms_table(assignment: Assignment) -> str:
    """The table as Markdown: what is legitimate, what goes to a person, and the mistakes, part by part.

    Raises:
        CourseError: As `variants`.
    """
    every = variants(assignment)
    forms = [variant for variant in every if variant.kind is Kind.FORM]
    mistakes = [variant for variant in every if variant.kind is Kind.MISTAKE]
    rows = [_row(form.says, form.parts, _ruling(form, assignment), form.name) for form in forms]
    rows += _policy_rows(assignment)
    rows += _flagged_parts(assignment)
    order = [component.name for component in assignment.components]
    mistakes.sort(key=lambda mistake: (order.index(mistake.parts[0]), mistake.name))
    rows += [_row(mistake.says, mistake.parts, "mistaken", mistake.name) for mistake in mistakes]
    return "\n".join([*HEADER, *rows])


def with_tables(page: str, course: Course) -> str:
    """A page with the table of each assignment that its marks name, in the place of what stands there.

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
    """The policies, in the words of the comments beside them."""
    text = (assignment.folder / "assignment.toml").read_text(encoding="utf-8")
    words = {found["name"]: found["text"] for found in _COMMENTED_POLICY.finditer(text)}
    for name, policy in assignment.policies.items():
        says = words.get(name, name.replace("_", " "))
        yield _row(f"{says[0].upper()}{says[1:].rstrip('.')}.", (), RULINGS[policy], name)


def _flagged_parts(assignment: Assignment) -> Iterable[str]:
    for rule in assignment.forbidden:
        if rule.policy == "flag":
            yield _row(f"It uses `{rule.pattern}`. {rule.reason}", (rule.costs,), "flagged", "")


def _ruling(form: Variant, assignment: Assignment) -> str:
    flagged = {rule.pattern for rule in assignment.forbidden if rule.policy == "flag"}
    flagged |= {name for name, policy in assignment.policies.items() if policy == "flag"}
    return "flagged" if flagged.intersection(form.policies) else "legitimate"


def _row(says: str, parts: Sequence[str], ruling: str, name: str) -> str:
    code = f"`{name}`" if name else ""
    return f"| {_cell(says)} | {', '.join(f'`{part}`' for part in parts)} | {ruling} | {code} |"


def _cell(text: str) -> str:
    """Text for a cell: outside of `backticks`, nothing of it is taken for Markdown."""
    pieces = " ".join(text.split()).split("`")
    plain = [re.sub(r"([\\*<\[])", r"\\\1", p) if index % 2 == 0 else p for index, p in enumerate(pieces)]
    return "`".join(plain).replace("|", "\\|")
