"""How good the tuned recipes of the reference are on the real images, and what each ingredient gives.

A training takes minutes, so every one is kept in `recipes.json` and none is done twice: the program may be
stopped at any time and goes on where it was. When a recipe changes, its own trainings are done anew. Two
environment variables:

    NEU_CLS    the course's zip, where it is not ../shared/data/NEU-CLS.zip
    MINUTES    no training begins after so many
"""

import os
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.section import Section, verdict
from benchmarks.settings import last_beginning
from benchmarks.training_records import (
    Record,
    keep_instead,
    kept,
    mean_and_deviation,
    record_of,
    trained,
    where,
)
from grader.course.assignment_file import read_assignment
from grader.course.composing import TunedRecipe, recipes
from grader.course.dataset_file import load_dataset
from grader.domain.errors import EngineError
from grader.files.known_folders import cache_folder
from grader.kit.splits import Splits
from grader.training import EpochReport

ROOT = Path(__file__).parents[1]
RECORDS = Path(__file__).with_name("recipes.json")
ASSIGNMENT = read_assignment(ROOT / "reference" / "vit_defects")
SEEDS = (1, 2, 3, 4, 5)
GOALS = {  # the mean accuracy that is asked for, and the one that is aimed at, in percent
    "conv_stem_28": (97.0, 98.5),
    "resolution_free": (98.5, 99.5),
    "linear_28": (88.0, 94.0),
}
NOTHING = "nothing"  # what a short training of the whole recipe is without
SHORT = 40  # epochs of a training that tells what an ingredient gives


@dataclass(frozen=True)
class Planned:
    """A training that is wanted.

    Attributes:
        without: The ingredient that is left out; `nothing` in a short training of the whole recipe; empty in
            a training of its full length.
    """

    recipe: str
    without: str
    source: str
    seed: int

    def done(self, records: Sequence[Record]) -> Record | None:
        """Its record, if it has been trained."""
        return record_of(records, self.recipe, self.without, self.source, self.seed)


def measured() -> Section:
    """Train every recipe with every seed, as far as it has not been done."""
    train(whole())
    return recorded()


def recorded() -> Section:
    """What has been measured of the recipes."""
    return section(whole(), kept(RECORDS))


def ingredients_measured() -> Section:
    """Train every recipe without each of its ingredients, as far as it has not been done."""
    train(ablations())
    return ingredients_recorded()


def ingredients_recorded() -> Section:
    """What has been measured of their ingredients."""
    return ingredients_section(ablations(), kept(RECORDS))


def whole() -> list[Planned]:
    """Every recipe with every seed: all recipes with one seed before any with the next."""
    return [Planned(each.name, "", each.source, seed) for seed in SEEDS for each in _recipes()]


def ablations() -> list[Planned]:
    """Every recipe in a short training, and the same without each ingredient."""
    planned = []
    for each in _recipes():
        short = f"N_EPOCHS = {SHORT}\n"
        planned.append(Planned(each.name, NOTHING, each.changed(short), SEEDS[0]))
        planned += [
            Planned(each.name, what, each.changed(short + change), SEEDS[0])
            for what, change in each.ingredients.items()
        ]
    return planned


def real_splits() -> Splits:
    """The real images as students split them."""
    source = Path(os.environ.get("NEU_CLS") or ROOT.parent / "shared" / "data" / "NEU-CLS.zip")
    if not source.exists():
        sys.exit(f"The real images are not at {source}. Set NEU_CLS to the course's zip.")
    use = ASSIGNMENT.data
    return load_dataset(
        ROOT / "datasets",
        use.real,
        source,
        seed=use.student_seed,
        train_share=use.train_share,
        cache=cache_folder(),
    )


def _recipes() -> list[TunedRecipe]:
    found = {each.name: each for each in recipes(ASSIGNMENT)}
    return [found[name] for name in GOALS]


def train(planned: Sequence[Planned]) -> None:
    """Train what has no record yet, until the time is up; a record of code that has changed is replaced."""
    last = last_beginning()
    wanted = [each for each in planned if each.done(kept(RECORDS)) is None]
    if not wanted or time.monotonic() >= last:
        return
    splits = real_splits()
    for number, each in enumerate(wanted, start=1):
        if time.monotonic() >= last:
            break
        name = f"{each.recipe}{f' without {each.without}' if each.without else ''}, seed {each.seed}"
        print(f"{number} of {len(wanted)}: {name}", flush=True)
        try:
            record = trained(
                each.recipe,
                each.without,
                each.source,
                each.seed,
                assignment=ASSIGNMENT,
                splits=splits,
                report=print_epoch,
            )
        except EngineError as error:
            print(f"  {error}", flush=True)
            continue
        print(f"  {record.accuracy:.2f} % in {record.seconds:.0f} s", flush=True)
        keep_instead(RECORDS, record)


def print_epoch(report: EpochReport) -> None:
    """Print every tenth epoch."""
    if report.epoch.number % 10 == 0:
        print(f"  epoch {report.epoch.number} of {report.planned}", flush=True)


def section(planned: Sequence[Planned], records: Sequence[Record]) -> Section:
    """The recipes with all their seeds."""
    rows, verdicts, found = [], [], _found(planned, records)
    for name, (least, aim) in GOALS.items():
        own = [record for record in found if record.recipe == name]
        rows.append((f"`{name}`", *_figures(own)))
        if not own:
            verdicts.append(f"`{name}`: not measured.")
            continue
        mean = statistics.mean(record.accuracy for record in own)
        verdicts.append(
            verdict(f"`{name}`, mean of n = {len(own)}", mean, least, at_most=False, unit="%")
            + f" Aimed at: {aim:g} %, {'reached' if mean >= aim else f'{aim - mean:.2f} points more'}."
        )
    return Section(
        "Recipes",
        "The tuned recipes of `reference/vit_defects/recipes`, each a whole homework, trained as by "
        "`grader train`: the students' split of the real images (70/30, seed 42), one thread. The accuracy "
        "is that of the model after the last epoch, on the test images, which decide nothing: what was tried "
        "out was compared on a fifth of the training images that was kept out of training.",
        (
            "recipe",
            "accuracy, %: mean ± standard deviation",
            "least to greatest",
            "n",
            "epochs",
            "processor seconds each",
        ),
        tuple(rows),
        tuple(verdicts),
        where(found, RECORDS.name),
    )


def ingredients_section(planned: Sequence[Planned], records: Sequence[Record]) -> Section:
    """What is lost without each ingredient."""
    found = _found(planned, records)
    whole_recipe = {record.recipe: record.accuracy for record in found if record.without == NOTHING}
    rows = []
    for record in found:
        base = None if record.without == NOTHING else whole_recipe.get(record.recipe)
        change = "" if base is None else f"{record.accuracy - base:+.1f}"
        rows.append((f"`{record.recipe}`", record.without, f"{record.accuracy:.1f}", change))
    missing = len(planned) - len(found)
    return Section(
        "Recipes: what each ingredient gives",
        f"The same recipes, {SHORT} epochs long, without one ingredient at a time; n = 1 (seed {SEEDS[0]}), "
        "so that a difference of less than 2 points says nothing.",
        ("recipe", "without", "accuracy, %", "difference"),
        tuple(rows),
        (f"{missing} of {len(planned)} trainings are not done yet.",) if missing else (),
        where(found, RECORDS.name),
    )


def _found(planned: Sequence[Planned], records: Sequence[Record]) -> list[Record]:
    return [record for each in planned if (record := each.done(records)) is not None]


def _figures(records: Sequence[Record]) -> tuple[str, ...]:
    if not records:
        return ("not measured", "", "0", "", "")
    accuracies = [record.accuracy for record in records]
    return (
        mean_and_deviation(accuracies),
        f"{min(accuracies):.2f} to {max(accuracies):.2f}",
        str(len(records)),
        str(records[0].epochs),
        f"{statistics.median(record.cpu_seconds for record in records):.0f}",
    )
