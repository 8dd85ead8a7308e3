"""What honest work loses by images that are not the published ones: pairs of trainings with equal seeds.

Both trainings of a pair are the same in everything (code, split, order, seed) but the images: as they are
published, and as `grader.training.blinding` makes them for a submission. A training takes minutes, so
every one is kept in `honest_pairs.json`, and none is done twice while neither the code that is trained nor
what becomes of images changes. `NEU_CLS` and `MINUTES` are as in `benchmarks.recipes`.
"""

import hashlib
import math
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from benchmarks.recipes import ASSIGNMENT, print_epoch, real_splits
from benchmarks.section import Section
from benchmarks.settings import last_beginning
from benchmarks.training_records import Record, digest, keep, kept, trained, where
from grader.course.reference_solution import solved_source
from grader.domain.errors import EngineError
from grader.kit.splits import Splits
from grader.training.blinding import perturbed

RECORDS = Path(__file__).with_name("honest_pairs.json")
SEEDS = tuple(range(1, 13))
EPOCHS = 15
NAME = f"the reference, {EPOCHS} epochs"
MOST_POINTS = 1.5  # that the interval of the mean difference may reach, up or down
# the 97.5 % quantile of Student's t distribution, by its degrees of freedom
T_95 = {
    9: 2.2622,
    10: 2.2281,
    11: 2.2010,
    12: 2.1788,
    13: 2.1604,
    14: 2.1448,
    15: 2.1314,
    19: 2.0930,
    23: 2.0687,
}


@dataclass(frozen=True)
class Pair:
    """The accuracies that count, in percent, of two trainings with the same seed."""

    seed: int
    published: float
    perturbed: float

    @property
    def difference(self) -> float:
        """What perturbed images change, in points."""
        return self.perturbed - self.published


def measured() -> Section:
    """Train what has no record yet, as far as there is time."""
    train()
    return recorded()


def recorded() -> Section:
    """What has been measured."""
    return section(pairs(kept(RECORDS)), kept(RECORDS))


def source() -> str:
    """The reference with fewer epochs."""
    path = ASSIGNMENT.folder / "solution.py"
    whole = solved_source(path.read_text(encoding="utf-8"), path.name)
    return whole.replace("N_EPOCHS = 30", f"N_EPOCHS = {EPOCHS}")


def kinds() -> tuple[str, str]:
    """What the images of a record are without: a perturbation, or nothing, with a digest of what it does."""
    steps = np.arange(3 * 200 * 200, dtype=np.uint64) * 7 // 50
    made = perturbed((steps % 256).astype(np.uint8).reshape(3, 200, 200), [1])
    return "perturbation", f"nothing ({hashlib.sha256(made.tobytes()).hexdigest()[:8]})"


def train() -> None:
    """Train pair by pair what has no record, until the time is up."""
    last = last_beginning()
    homework, splits = source(), real_splits()
    for seed in SEEDS:
        for without in kinds():
            if time.monotonic() >= last or _found(kept(RECORDS), without, seed) is not None:
                continue
            print(f"{NAME} without {without}, seed {seed}", flush=True)
            try:
                record = trained(
                    NAME,
                    without,
                    homework,
                    seed,
                    assignment=ASSIGNMENT,
                    splits=splits if without == kinds()[0] else _perturbed(splits, seed),
                    report=print_epoch,
                )
            except EngineError as error:
                print(f"  {error}", flush=True)
                continue
            print(f"  {100 * (record.counted or 0):.2f} % in {record.seconds:.0f} s", flush=True)
            keep(RECORDS, [*kept(RECORDS), record])


def _perturbed(splits: Splits, seed: int) -> Splits:
    return replace(
        splits,
        train_images=perturbed(splits.train_images, [seed, 1]),
        test_images=perturbed(splits.test_images, [seed, 2]),
    )


def _found(records: Sequence[Record], without: str, seed: int) -> Record | None:
    wanted = (NAME, without, digest(source()), seed)
    return next((r for r in records if (r.recipe, r.without, r.digest, r.seed) == wanted), None)


def pairs(records: Sequence[Record]) -> list[Pair]:
    """The pairs of which both trainings are done."""
    found = []
    for seed in SEEDS:
        both = [_found(records, without, seed) for without in kinds()]
        values = [100 * each.counted for each in both if each is not None and each.counted is not None]
        if len(values) == 2:
            found.append(Pair(seed, *values))
    return found


def interval(differences: Sequence[float]) -> tuple[float, float]:
    """The 95 % interval of the mean of differences, by Student's t."""
    mean = statistics.mean(differences)
    freedom = max(known for known in T_95 if known <= len(differences) - 1)
    reach = T_95[freedom] * statistics.stdev(differences) / math.sqrt(len(differences))
    return mean - reach, mean + reach


def section(done: Sequence[Pair], records: Sequence[Record]) -> Section:
    """The pairs, and the interval of their mean difference."""
    rows = tuple(
        (str(p.seed), f"{p.published:.2f}", f"{p.perturbed:.2f}", f"{p.difference:+.2f}") for p in done
    )
    return Section(
        "Memorized: what honest work loses",
        f"The reference with {EPOCHS} epochs, trained as by `grader train` on the students' split of the "
        "real images (70/30, seed 42), one thread, in pairs of equal seeds: on the images as they "
        "are published, and as they are made for a submission (moved, bent, lit and grained at random, in "
        "training and in testing). The accuracy is the one that counts: the mean of the last epochs.",
        ("seed", "published images, %", "perturbed images, %", "difference, points"),
        rows,
        (_verdict(done),),
        where([record for record in records if record.recipe == NAME], RECORDS.name),
    )


def _verdict(done: Sequence[Pair]) -> str:
    if len(done) <= min(T_95):
        return f"{len(done)} of {len(SEEDS)} pairs are trained: too few to say anything."
    differences = [pair.difference for pair in done]
    low, high = interval(differences)
    holds = "holds" if low >= -MOST_POINTS and high <= MOST_POINTS else "falls short"
    return (
        f"Mean difference of n = {len(done)} pairs: {statistics.mean(differences):+.2f} points, 95 % "
        f"interval {low:+.2f} to {high:+.2f}; within {MOST_POINTS:g} points of zero is asked for: {holds}."
    )
