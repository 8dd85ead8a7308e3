"""docs/figures.md says what RESULTS.md says, and RESULTS.md what the records say."""

from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks import cifar10_small, class_page, recipes
from benchmarks.section import RESULTS, Section

PAGE = Path(__file__).parents[2] / "docs" / "figures.md"
INGREDIENTS = Section(
    class_page.INGREDIENTS.title,
    "Without one at a time.",
    ("recipe", "without", "accuracy, %", "difference"),
    (
        ("`a`", "nothing", "90.0", ""),
        ("`a`", "crops", "85.0", "-5.0"),
        ("`b`", "nothing", "92.0", ""),
        ("`b`", "warm-up", "92.5", "+0.5"),
    ),
    ("1 of 5 trainings are not done yet.", "`a`: 3 %; at least 2 % is asked for: holds."),
)


def test_the_page_is_cut_out_of_the_results() -> None:
    assert PAGE.read_text(encoding="utf-8") == class_page.page(RESULTS.read_text(encoding="utf-8")), (
        "Renew it: python -m benchmarks.class_page > docs/figures.md"
    )


@pytest.mark.parametrize("recorded", [recipes.recorded, recipes.ingredients_recorded, cifar10_small.recorded])
def test_the_results_are_those_of_the_records(recorded: Callable[[], Section]) -> None:
    """Of the code as it is now: what was changed since is not shown as measured."""
    found = recorded()
    assert found.markdown(found.where).strip() in RESULTS.read_text(encoding="utf-8"), (
        f"Renew '{found.title}': MINUTES=0 make bench BENCH=NAME"
    )


def test_ingredients_stand_beside_each_other() -> None:
    """With what is missing, and without what was asked for."""
    results = "# Results\n\n" + INGREDIENTS.markdown("Measured today.")
    read = class_page.section(results, INGREDIENTS.title)
    assert (read.rows, read.text, read.where) == (INGREDIENTS.rows, INGREDIENTS.text, "Measured today.")
    text = class_page._pivoted(read)
    assert "| nothing | 90.0 % | 92.0 % |\n| crops | -5.0 |  |\n| warm-up |  | +0.5 |\n" in text
    assert "not done yet" in text and "asked for" not in text and text.endswith("Measured today.\n")


def test_a_section_that_is_missing_is_named() -> None:
    with pytest.raises(ValueError, match=r"RESULTS\.md has no section 'Recipes'"):
        class_page.page("# Results\n")
