"""`python -m benchmarks.tune RECIPE ["NAME = VALUE" ...]`: trainings that decide how a recipe is tuned.

The test images have no part in it: a fifth of each class's training images takes their place, and the rest
trains. A tuning that looked at the test images would fit them. Each training is kept in the user's cache
folder, and none is done twice. An environment variable:

    SEEDS      how many trainings, with the seeds from 1 on; 1 where it is not given, which tells little: an
               image more or less is 0.4 %
"""

import statistics
import sys
from dataclasses import replace

import numpy as np

from benchmarks import recipes
from benchmarks.settings import count
from benchmarks.training_records import Record, digest, keep, kept, mean_and_deviation, trained
from grader.course.composing import TunedRecipe
from grader.domain.errors import GraderError
from grader.files.known_folders import cache_folder
from grader.kit.splits import Splits
from grader.training import EpochReport

SHARE = 0.2


def validation(splits: Splits) -> Splits:
    """The training images alone, a fifth of each class, drawn once and for all, in the test images' place."""
    labels, random = splits.train_labels, np.random.default_rng(0)
    of_class = [np.flatnonzero(labels == label) for label in np.unique(labels)]
    chosen = np.sort(
        np.concatenate([random.choice(own, round(SHARE * len(own)), replace=False) for own in of_class])
    )
    kept = np.setdiff1d(np.arange(len(labels)), chosen)
    names = np.array(splits.train_names)
    return replace(
        splits,
        train_images=splits.train_images[kept],
        train_labels=labels[kept],
        train_names=tuple(names[kept].tolist()),
        test_images=splits.train_images[chosen],
        test_labels=labels[chosen],
        test_names=tuple(names[chosen].tolist()),
    )


def print_epoch(report: EpochReport) -> None:
    """Print how every tenth epoch does on the validation images."""
    epoch = report.epoch
    if epoch.number % 10 == 0:
        print(
            f"  epoch {epoch.number} of {report.planned}: loss {epoch.test_loss:.3f}, "
            f"accuracy {100 * epoch.test_accuracy:.1f} %",
            flush=True,
        )


def main() -> None:
    """Train the recipe that is named, with the values that follow."""
    known: dict[str, TunedRecipe] = {each.name: each for each in recipes.recipes(recipes.ASSIGNMENT)}
    name, *values = sys.argv[1:] or [""]
    if name not in known:
        sys.exit(f"Name a recipe: {', '.join(known)}.")
    try:
        source = known[name].changed("\n".join(values) + "\n")
    except GraderError as error:
        sys.exit(str(error))
    wanted = count("SEEDS", 1)
    splits = validation(recipes.real_splits())
    found = [tuned(name, source, seed, splits) for seed in range(1, wanted + 1)]
    accuracy = mean_and_deviation([record.accuracy for record in found])
    seconds = statistics.median(record.cpu_seconds for record in found)
    print(
        f"{name}, {'; '.join(values) or 'as it is'}: {accuracy} % of {found[0].images}, n = {len(found)}; "
        f"{found[0].epochs} epochs, {seconds:.0f} processor seconds each",
        flush=True,
    )


def tuned(name: str, source: str, seed: int, splits: Splits) -> Record:
    """A training, done now or earlier."""
    path = cache_folder() / "tuning" / f"{name}-{digest(source)}-{seed}.json"
    records = kept(path)
    if not records:
        records = [
            trained(name, "", source, seed, assignment=recipes.ASSIGNMENT, splits=splits, report=print_epoch)
        ]
        path.parent.mkdir(parents=True, exist_ok=True)
        keep(path, records)
    print(f"  seed {seed}: {records[0].accuracy:.2f} %", flush=True)
    return records[0]


if __name__ == "__main__":
    main()
