"""`python -m benchmarks.class_page > docs/figures.md`: the page of figures that a class can be shown.

It is cut out of `RESULTS.md`, so that it says what was measured and nothing else; a test compares the two.
"""

import re
import sys
from dataclasses import dataclass
from pathlib import Path

from benchmarks.section import RESULTS, Section
from grader.course.assignment_file import read_assignment
from grader.course.composing import recipes

ASSIGNMENT = Path(__file__).parents[1] / "reference" / "vit_defects"
HEAD = """# What makes a model better

Figures to show to a class, of trainings that were run with this course's own code. Cut out of
[RESULTS.md](../benchmarks/RESULTS.md) by `python -m benchmarks.class_page`, never written by hand.
[Recipes](recipes.md) shows how to run a recipe, or to leave out an ingredient.

**How to read it.** *n* trainings differ only in their seed: in their first weights, the order of the images
and all other chance. Of their accuracies, 97.6 ± 0.4 gives the mean and the standard deviation. Processor
seconds are what one training computes, on one thread.

**To discuss.** Which differences are larger than what a seed changes? Which ingredient helps one model and
harms another, and why might that be? What would have to be run before a row with n = 1 may be believed?
"""
UNMEASURED = """## Not measured

What needs a GPU (`python -m benchmarks cifar10_gpu`): the notebook's plain recipe and the project's deep ViT
on CIFAR-10, the best model of up to four million parameters, ResNet-18, sinusoidal against learned positions,
and other patch sizes, depths and numbers of heads.
"""


@dataclass(frozen=True)
class Shown:
    """A part of the page: a section of RESULTS.md under a heading for a class.

    Attributes:
        title: The section's heading in RESULTS.md.
        text: What a class has to know of it; empty: what RESULTS.md says.
    """

    title: str
    heading: str
    text: str = ""


RECIPES = Shown(
    "Recipes",
    "Surface defects: how far a recipe goes",
    "Six kinds of defects on rolled steel: 1,800 photographs of 200 x 200, of which 70 % train. Whatever was "
    "tried out was compared on a fifth of the training images; the test images decide nothing.",
)
INGREDIENTS = Shown("Recipes: what each ingredient gives", "Surface defects: what each ingredient gives")
OTHERS = (
    Shown("CIFAR-10 with a small model", "CIFAR-10: a small model on all images"),
    Shown("Breakpoints of vit_cifar10", "CIFAR-10: a Vision Transformer beside a ResNet"),
    Shown("Fine-tuning in vit_finetune", "CIFAR-10: fine-tuning beside training from scratch"),
)


def page(results: str) -> str:
    """The whole page.

    Args:
        results: The text of RESULTS.md.
    """
    parts = [HEAD, _recipes(section(results, RECIPES.title)), _pivoted(section(results, INGREDIENTS.title))]
    for shown in OTHERS:
        found = section(results, shown.title)
        parts.append(_part(shown, found.text, found.columns, found.rows, found))
    return "\n".join([*parts, UNMEASURED])


def section(results: str, title: str) -> Section:
    """A section of RESULTS.md as it was written.

    Raises:
        ValueError: RESULTS.md has no such section.
    """
    _, *sections = re.split(r"(?m)^## ", results)
    found = next((each for each in sections if each.partition("\n")[0] == title), None)
    if found is None:
        raise ValueError(f"RESULTS.md has no section '{title}'. Run its benchmark once.")
    _, *lines = [line for line in found.splitlines() if line]
    table = [tuple(line[2:-2].split(" | ")) for line in lines if line.startswith("| ")]
    columns, _, *rows = table
    verdicts = tuple(line[2:] for line in lines if line.startswith("* "))
    return Section(title, lines[0], columns, tuple(rows), verdicts, where=lines[-1])


def _part(
    shown: Shown, text: str, columns: tuple[str, ...], rows: tuple[tuple[str, ...], ...], found: Section
) -> str:
    """A table under its heading; of the verdicts, those that say what is missing."""
    missing = tuple(each for each in found.verdicts if "not measured" in each or "not done yet" in each)
    return Section(shown.heading, shown.text or text, columns, rows, missing).markdown(found.where)


def _recipes(found: Section) -> str:
    """The recipes, each with what it is."""
    says = {f"`{each.name}`": each.says for each in recipes(read_assignment(ASSIGNMENT))}
    rows = tuple((name, says[name], *figures) for name, *figures in found.rows)
    return _part(RECIPES, found.text, (found.columns[0], "what it is", *found.columns[1:]), rows, found)


def _pivoted(found: Section) -> str:
    """The ingredients, with a column for each recipe: its accuracy, and what it loses or gains."""
    names = tuple(dict.fromkeys(row[0] for row in found.rows))
    cells = {(what, name): difference or f"{accuracy} %" for name, what, accuracy, difference in found.rows}
    ingredients = dict.fromkeys(row[1] for row in found.rows)
    rows = tuple((what, *(cells.get((what, name), "") for name in names)) for what in ingredients)
    return _part(INGREDIENTS, found.text, ("without", *names), rows, found)


if __name__ == "__main__":
    sys.stdout.write(page(RESULTS.read_text(encoding="utf-8")))
