"""The homework that all tools grade: the reference and legitimate forms, as notebooks of definitions."""

import ast
from dataclasses import dataclass
from pathlib import Path

from grader.course.homework_versions import Kind, homework_versions
from grader.course.student_template import notebook
from grader.domain.assignment import Assignment

# what is not a definition and yet belongs to one: no tool is to train, or to look for images
KEPT_NAMES = {"device", "criterion", "loss_fn", "model", "optimizer", "scheduler"}


@dataclass(frozen=True)
class Homework:
    """One student's notebook.

    Attributes:
        name: The form.
        cells: The sources of its code cells.
    """

    student_id: str
    name: str
    cells: tuple[str, ...]

    def ipynb(self) -> str:
        """The notebook, in format 4.5."""
        return notebook("\n".join(f"# %%\n{cell}" for cell in self.cells), self.name, self.name)


def homework(assignment: Assignment, course: Path, count: int) -> list[Homework]:
    """The reference, and forms from all over the alphabet, so that every part has some.

    Args:
        count: How many altogether.

    Raises:
        ValueError: There are fewer.
    """
    every = homework_versions(assignment)
    usual = next(_needed(one.source) for one in every if one.kind is Kind.REFERENCE)
    found = [
        one
        for one in every
        # a recipe's definitions depend on values that the other tools' notebooks would have to keep
        if one.kind in (Kind.REFERENCE, Kind.FORM)
        and not one.file.startswith("recipes/")
        and not _needed(one.source) - usual
    ]
    if not 0 < count <= len(found):
        raise ValueError(f"There are {len(found)} notebooks, not {count}.")
    chosen = [found[number * len(found) // count] for number in range(count)]
    return [Homework(str(400101201 + n), one.name, cells(one.source)) for n, one in enumerate(chosen)]


def cells(source: str) -> tuple[str, ...]:
    """The imports in one cell, then each definition in its own, in their order."""
    lines = source.splitlines()
    imports: list[str] = []
    others: list[str] = []
    for node in ast.parse(source).body:
        decorators: list[ast.expr] = getattr(node, "decorator_list", [])
        first = min([node.lineno, *(each.lineno for each in decorators)])
        text = "\n".join(lines[first - 1 : node.end_lineno])
        if isinstance(node, ast.Import | ast.ImportFrom):
            imports.append(text)
        elif isinstance(node, ast.ClassDef | ast.FunctionDef) or _is_kept(node):
            others.append(text)
    return ("\n".join(imports), *others)


def _needed(source: str) -> set[str]:
    """The names of values that a notebook leaves out, as far as a definition has the same names."""
    body = ast.parse(source).body
    left_out = {
        target.id
        for node in body
        if isinstance(node, ast.Assign) and not _is_kept(node)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    definitions = [node for node in body if isinstance(node, ast.ClassDef | ast.FunctionDef)]
    return left_out & {
        name.id for node in definitions for name in ast.walk(node) if isinstance(name, ast.Name)
    }


def _is_kept(node: ast.stmt) -> bool:
    if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Name):
        return False
    return isinstance(node.value, ast.Constant) or node.targets[0].id in KEPT_NAMES
