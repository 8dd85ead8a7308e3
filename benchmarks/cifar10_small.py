"""A model of less than half a million parameters on all of CIFAR-10, on one core of a processor.

A training takes hours there, so it is kept after every epoch, in the user's cache, and its outcome in
`cifar10_small.json`: the program may be stopped at any time and goes on where it was, with the very numbers
that an undisturbed run has. The test images are looked at once, when a training is at its end. What is
decided about the recipe is decided on a fifth of the training images: one training of the short recipe with
other values is

    python -m benchmarks.cifar10_small "rate = 1e-2" "smoothing = 0.0"

Two environment variables:

    CIFAR10    the data set's file or folder, where it is not ../shared/data/CIFAR-10-jpeg.zip
    MINUTES    no epoch begins after so many
"""

import ast
import inspect
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from benchmarks.resumable_training import WARMUP, Training, accuracy
from benchmarks.section import Section, verdict
from benchmarks.settings import cifar10, last_beginning
from benchmarks.training_records import (
    Record,
    digest,
    keep_instead,
    kept,
    mean_and_deviation,
    new_record,
    record_of,
    where,
)
from benchmarks.tune import validation
from grader.course.dataset_file import load_dataset
from grader.files.known_folders import cache_folder
from grader.kit.splits import Splits

ROOT = Path(__file__).parents[1]
RECORDS = Path(__file__).with_name("cifar10_small.json")
CACHE = cache_folder()  # the user's, whatever a benchmark measures in
STATE = CACHE / "cifar10_small"
SEEDS = (1, 2, 3)
BATCH_SIZE = 128
MOST_PARAMETERS = 500_000
PADDING = 4  # pixels by which a crop may lie beside its image
MEAN, DEVIATION = (0.491, 0.482, 0.447), (0.247, 0.243, 0.262)  # of the training images, by channel
NOTHING = "nothing"  # what a short training of the whole recipe is without


@dataclass(frozen=True)
class Recipe:
    """How the model is made and trained.

    Attributes:
        epochs: Of the learning rate's whole schedule.
        rate: The greatest learning rate of AdamW.
        decay: AdamW's weight decay.
        smoothing: How much of each label is spread over all classes.
        crops: Images are moved by up to `PADDING` pixels at random.
        mirrored: Every other image is mirrored, at random.
        normalized: Batch normalization follows each convolution.
        residual: The last two convolutions are added to what they are given.
    """

    epochs: int
    rate: float = 5e-3
    decay: float = 0.05
    smoothing: float = 0.1
    crops: bool = True
    mirrored: bool = True
    normalized: bool = True
    residual: bool = True


SHORT, LONG = Recipe(epochs=5), Recipe(epochs=24)
TITLES = {SHORT: "short", LONG: "long"}
GOALS = {SHORT: (76.23, "the notebook's plain recipe"), LONG: (86.39, "the project's deep ViT")}
INGREDIENTS = {
    "random crops": replace(SHORT, crops=False),
    "mirroring": replace(SHORT, mirrored=False),
    "batch normalization": replace(SHORT, normalized=False),
    "the residual connection": replace(SHORT, residual=False),
    "label smoothing": replace(SHORT, smoothing=0.0),
    "weight decay": replace(SHORT, decay=0.0),
}


# --- the model and its batches ----------------------------------------------------------------------------


class SmallResNet(nn.Module):
    """Six convolutions of 3 x 3, the last two within a residual connection, and one linear layer.

    forward:
        images: (batch, 3, 32, 32).
        Returns scores, float32 (batch, 10).
    """

    def __init__(self, recipe: Recipe) -> None:
        super().__init__()
        normalized = recipe.normalized
        self.residual = recipe.residual
        self.stem = nn.Sequential(
            convolution(3, 32, normalized),
            nn.MaxPool2d(2),
            convolution(32, 64, normalized),
            convolution(64, 64, normalized),
            nn.MaxPool2d(2),
            convolution(64, 128, normalized),
        )
        self.block = nn.Sequential(convolution(128, 128, normalized), convolution(128, 128, normalized))
        self.head = nn.Linear(128, 10)

    def forward(self, images: Tensor) -> Tensor:
        """See the class."""
        with torch.autocast("cpu", torch.bfloat16):  # half the time, where a processor computes in it
            features = self.stem(images)
            features = features + self.block(features) if self.residual else self.block(features)
            scores: Tensor = self.head(features.amax((2, 3)))
        return scores.float()


def convolution(inputs: int, outputs: int, normalized: bool) -> nn.Sequential:
    """A convolution of 3 x 3 that keeps height and width, batch normalization where wanted, and ReLU."""
    between = nn.BatchNorm2d(outputs) if normalized else nn.Identity()
    return nn.Sequential(nn.Conv2d(inputs, outputs, 3, padding=1, bias=not normalized), between, nn.ReLU())


class TrainingImages:
    """The images that a model learns from, and batches of them as the recipe varies them."""

    def __init__(self, images: NDArray[np.uint8], labels: NDArray[np.int64], recipe: Recipe) -> None:
        """Keep the images with a margin.

        Args:
            images: (n, 32, 32, 3).
            labels: (n,).
        """
        margin = ((0, 0), (PADDING, PADDING), (PADDING, PADDING), (0, 0))
        self._padded = torch.from_numpy(np.pad(images, margin, mode="reflect"))
        self._labels, self._recipe, self._side = torch.from_numpy(labels), recipe, images.shape[1]

    def batch(self, rows: Tensor, random: torch.Generator) -> tuple[Tensor, Tensor]:
        """Images (len(rows), 3, 32, 32), moved and mirrored at random, and their labels."""
        count, steps = len(rows), torch.arange(self._side)
        if self._recipe.crops:
            offsets = torch.randint(2 * PADDING + 1, (2, count, 1), generator=random)
        else:
            offsets = torch.full((2, count, 1), PADDING)
        down, right = offsets + steps
        if self._recipe.mirrored:
            right = torch.where(torch.rand(count, 1, generator=random) < 0.5, right.flip(1), right)
        cut = self._padded[rows[:, None, None], down[:, :, None], right[:, None, :]]
        return standardized(cut), self._labels[rows]


def standardized(images: Tensor) -> Tensor:
    """Images of bytes (n, 32, 32, 3) as a model takes them: float32 (n, 3, 32, 32), channels last."""
    values = (images.float() / 255 - torch.tensor(MEAN)) / torch.tensor(DEVIATION)
    return values.permute(0, 3, 1, 2)


# --- trainings --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Planned:
    """A training that is wanted.

    Attributes:
        without: The ingredient that is left out; empty: none.
    """

    title: str
    without: str
    recipe: Recipe
    seed: int

    @property
    def name(self) -> str:
        """For whoever watches."""
        return f"{self.title}{f' without {self.without}' if self.without else ''}, seed {self.seed}"

    @property
    def code(self) -> str:
        """All that decides its outcome."""
        parts = (convolution, SmallResNet, TrainingImages, standardized, Training)
        settings = repr((self.recipe, BATCH_SIZE, PADDING, MEAN, DEVIATION, WARMUP))
        return "\n".join([*map(inspect.getsource, parts), settings])

    @property
    def state(self) -> Path:
        """Where it is kept while it is not at its end."""
        return STATE / f"{digest(self.code)}-{self.seed}.pt"

    def done(self, records: Sequence[Record]) -> Record | None:
        """Its record, if it has been trained."""
        return record_of(records, self.title, self.without, self.code, self.seed)


def whole() -> list[Planned]:
    """Both lengths with one seed, then the short one without each ingredient, then the other seeds."""
    first, *others = (
        [Planned(title, "", recipe, seed) for recipe, title in TITLES.items()] for seed in SEEDS
    )
    ablations = [Planned(TITLES[SHORT], what, recipe, SEEDS[0]) for what, recipe in INGREDIENTS.items()]
    return [*first, *ablations, *(each for seed in others for each in seed)]


def measured() -> Section:
    """Train what has no record yet, as far as the time goes."""
    last = last_beginning()
    wanted = [each for each in whole() if each.done(kept(RECORDS)) is None]
    if wanted and time.monotonic() < last:
        images = all_images()
        for each in wanted:
            record = trained(each, images, last)
            if record is None:
                break
            print(f"{each.name}: {record.accuracy:.2f} % in {record.cpu_seconds:.0f} s", flush=True)
            keep_instead(RECORDS, record)
            each.state.unlink()
    return recorded()


def recorded() -> Section:
    """What has been measured."""
    return section(whole(), kept(RECORDS))


def all_images() -> Splits:
    """The data set in its official parts."""
    source = cifar10()
    if not source.exists():
        sys.exit(f"CIFAR-10 is not at {source}. Set CIFAR10 to its file or folder.")
    return load_dataset(ROOT / "datasets", "cifar10", source, seed=0, cache=CACHE)


def trained(planned: Planned, splits: Splits, last: float) -> Record | None:
    """Train to the end, from where it was left; None where the time is up before.

    Args:
        last: By `time.monotonic`: no epoch begins later.
    """
    STATE.mkdir(parents=True, exist_ok=True)
    model = made_model(planned.recipe, planned.seed)
    training = training_of(model, len(splits.train_labels), planned.recipe, planned.seed)
    training.resume(planned.state)
    images = TrainingImages(splits.train_images, splits.train_labels, planned.recipe)
    while training.epoch < planned.recipe.epochs:
        if time.monotonic() >= last:
            return None
        share = training.one_epoch(images.batch)
        training.keep(planned.state)
        print(f"{planned.name}: epoch {training.epoch}, {100 * share:.2f} % in training", flush=True)
    correct = round(accuracy_of(model, splits) * len(splits.test_labels))
    return new_record(
        recipe=planned.title,
        without=planned.without,
        source=planned.code,
        seed=planned.seed,
        epochs=planned.recipe.epochs,
        correct=correct,
        images=len(splits.test_labels),
        seconds=training.seconds,
        cpu_seconds=training.cpu_seconds,
        device="cpu",
        counted=None,
    )


def made_model(recipe: Recipe, seed: int) -> SmallResNet:
    """A model that has not learned, laid out as one thread computes it fastest."""
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    return SmallResNet(recipe).to(memory_format=torch.channels_last)  # type: ignore[call-overload,no-any-return]


def training_of(model: nn.Module, count: int, recipe: Recipe, seed: int) -> Training:
    """The recipe's training, at its beginning."""
    return Training(
        model,
        count,
        recipe.epochs,
        recipe.rate,
        seed,
        batch_size=BATCH_SIZE,
        decay=recipe.decay,
        smoothing=recipe.smoothing,
    )


def accuracy_of(model: nn.Module, splits: Splits) -> float:
    """The share of the test images that the model gets right."""
    model.eval()
    return accuracy(
        model, standardized(torch.from_numpy(splits.test_images)), torch.from_numpy(splits.test_labels)
    )


# --- what is written --------------------------------------------------------------------------------------


def section(planned: Sequence[Planned], records: Sequence[Record]) -> Section:
    """Both lengths with all their seeds, and the short one without each ingredient."""
    found = [(each, record) for each in planned if (record := each.done(records)) is not None]
    groups = {(each.title, each.without): each.recipe for each in planned}
    rows = [_row(title, without, groups[title, without], found) for title, without in groups]
    parameters = sum(weights.numel() for weights in SmallResNet(LONG).parameters())
    missing = len(planned) - len(found)
    return Section(
        "CIFAR-10 with a small model",
        f"A residual network of {parameters:,} parameters, trained from scratch on all training images and "
        "the few test images that have the pixels of one; AdamW, a warm-up and half a cosine, batches of "
        f"{BATCH_SIZE}, one thread. The images are JPEG files of quality 75 with subsampled colors, so "
        "accuracies are a little below those of the original. The accuracy is that of the model after the "
        "last epoch, on the test images, which decide nothing and are looked at once. Without an ingredient "
        f"n = 1 (seed {SEEDS[0]}), so that a difference of less than a point says nothing.",
        (
            "training",
            "without",
            "accuracy, %: mean ± standard deviation",
            "difference",
            "n",
            "epochs",
            "processor seconds each (median)",
        ),
        tuple(rows),
        (
            verdict("Thousands of parameters", parameters / 1000, MOST_PARAMETERS / 1000, at_most=True),
            *(_verdict(recipe, found) for recipe in GOALS),
            *([f"{missing} of {len(planned)} trainings are not done yet."] if missing else []),
        ),
        where([record for _, record in found], RECORDS.name),
    )


Found = Sequence[tuple[Planned, Record]]


def _own(title: str, without: str, found: Found) -> list[Record]:
    return [record for each, record in found if (each.title, each.without) == (title, without)]


def _row(title: str, without: str, recipe: Recipe, found: Found) -> tuple[str, ...]:
    own = _own(title, without, found)
    if not own:
        return title, without, "not measured", "", "0", str(recipe.epochs), ""
    accuracies = [record.accuracy for record in own]
    # beside the same seed of the whole recipe
    base = [r.accuracy for r in _own(title, "", found) if r.seed == own[0].seed] if without else []
    return (
        title,
        without,
        mean_and_deviation(accuracies),
        f"{accuracies[0] - base[0]:+.1f}" if base else "",
        str(len(own)),
        str(recipe.epochs),
        f"{statistics.median(record.cpu_seconds for record in own):.0f}",
    )


def _verdict(recipe: Recipe, found: Found) -> str:
    least, what = GOALS[recipe]
    own = _own(TITLES[recipe], "", found)
    if not own:
        return f"{TITLES[recipe]}, past {least} % ({what}): not measured."
    mean = statistics.mean(record.accuracy for record in own)
    claim = f"{TITLES[recipe]}, mean of n = {len(own)}, beside {what}"
    return verdict(claim, mean, least, at_most=False, unit="%")


# --- decisions --------------------------------------------------------------------------------------------


def changed(values: Sequence[str]) -> Recipe:
    """The short recipe with other values.

    Args:
        values: As in `rate = 1e-2`.
    """
    known, given = {field.name for field in fields(Recipe)}, {}
    for each in values:
        name, _, value = (part.strip() for part in each.partition("="))
        if name not in known:
            sys.exit(f"A recipe has no value {name}; it has {', '.join(sorted(known))}.")
        try:
            given[name] = ast.literal_eval(value)
        except (ValueError, SyntaxError):
            sys.exit(f"{value} is no value of {name}. Give one as in: rate = 1e-2.")
    return replace(SHORT, **given)


def main() -> None:
    """One training on four fifths of the training images; the others say how good it is, after each epoch."""
    recipe, splits = changed(sys.argv[1:]), validation(all_images())
    model = made_model(recipe, SEEDS[0])
    training = training_of(model, len(splits.train_labels), recipe, SEEDS[0])
    images = TrainingImages(splits.train_images, splits.train_labels, recipe)
    while training.epoch < recipe.epochs:
        share = training.one_epoch(images.batch)
        print(
            f"epoch {training.epoch} of {recipe.epochs}: {100 * share:.2f} % in training, "
            f"{100 * accuracy_of(model, splits):.2f} % of {len(splits.test_labels):,} others; "
            f"{training.cpu_seconds:.0f} s",
            flush=True,
        )


if __name__ == "__main__":
    main()
