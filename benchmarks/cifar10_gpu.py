"""CIFAR-10 from scratch on a GPU: the models of three course works, and which of their sizes matter.

Four recipes are trained on all training images, and the test images are looked at once, when a training is at
its end. What the parts of a Vision Transformer give is measured by shorter trainings of the plain one, on
four fifths of the training images; the other fifth says how good they are.

Every training is kept in `cifar10_gpu.json` as soon as it is done: the program may be stopped at any time and
goes on with the next. Environment variables:

    CIFAR10    the data set's file or folder, where it is not ../shared/data/CIFAR-10-jpeg.zip
    MINUTES    no training begins after so many
    PROCESSES  how many trainings at once share the GPU (1)
"""

import inspect
import math
import multiprocessing
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from benchmarks import gpu_augmentation
from benchmarks.cifar10_small import DEVIATION, MEAN, all_images
from benchmarks.gpu_augmentation import cropped, cut_mixed, rand_augmented
from benchmarks.reference_training import defined
from benchmarks.section import Section, verdict
from benchmarks.settings import count, last_beginning
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
from grader.course.assignment_file import read_assignment
from grader.course.composing import source_text
from grader.course.reference_solution import solved_source
from grader.kit.splits import Splits

ROOT = Path(__file__).parents[1]
RECORDS = Path(__file__).with_name("cifar10_gpu.json")
ASSIGNMENT = read_assignment(ROOT / "reference" / "vit_cifar10")
CHUNK = 5_000  # images that are varied at once: what bounds their memory
MOST_PARAMETERS = 4_000_000  # of the hybrid
LOST_TO_JPEG = 1.5  # points: figures published for the original count as reached within so many


@dataclass(frozen=True)
class Recipe:
    """How a model is made and trained.

    Attributes:
        model: Which of `MODELS`.
        sizes: Arguments of the model, by name.
        epochs: Of the learning rate's whole schedule: a warm-up, then half a cosine.
        rate: The greatest learning rate.
        decay: The optimizer's weight decay.
        sgd: Momentum with Nesterov's step in place of AdamW.
        augmented: Random crops and mirroring.
        varied: RandAugment as well.
        mixed: The share of images that are given a box of another.
    """

    model: str
    sizes: Mapping[str, Any] = field(default_factory=dict)
    epochs: int = 50
    batch_size: int = 128
    rate: float = 3e-4
    decay: float = 0.05
    sgd: bool = False
    smoothing: float = 0.0
    augmented: bool = True
    varied: bool = False
    mixed: float = 0.0


PLAIN_SIZES = {"dim": 256, "depth": 6, "heads": 8}
PLAIN = Recipe("ViT", PLAIN_SIZES)
DEEP = Recipe("ViT", {}, epochs=100, batch_size=256, rate=1e-3, smoothing=0.1, varied=True)
HYBRID = Recipe("hybrid", {}, epochs=100, batch_size=256, rate=1e-3, smoothing=0.1, varied=True, mixed=0.5)
RESNET = Recipe("ResNet-18", {}, rate=0.1, decay=5e-4, sgd=True)
# (recipe, its goal in percent, where that is from)
GOALS = {
    "plain ViT": (PLAIN, 76.23, "a course notebook"),
    "deep ViT": (DEEP, 86.39, "a master's project"),
    "hybrid": (HYBRID, 94.81, "CCT-6/3x1 after 200 epochs"),
    "ResNet-18": (RESNET, 93.64, "a master's project"),
}
SHORT = replace(PLAIN, epochs=20, rate=1e-3)
PARTS = {
    "": SHORT,
    "sinusoidal positions": replace(SHORT, sizes={**PLAIN_SIZES, "positions": "sinusoidal"}),
    "mean of all tokens, no class token": replace(SHORT, sizes={**PLAIN_SIZES, "pool": "mean"}),
    "patches of 2": replace(SHORT, sizes={**PLAIN_SIZES, "patch_size": 2}),
    "patches of 8": replace(SHORT, sizes={**PLAIN_SIZES, "patch_size": 8}),
    "depth 3": replace(SHORT, sizes={**PLAIN_SIZES, "depth": 3}),
    "depth 12": replace(SHORT, sizes={**PLAIN_SIZES, "depth": 12}),
    "1 head": replace(SHORT, sizes={**PLAIN_SIZES, "heads": 1}),
    "16 heads": replace(SHORT, sizes={**PLAIN_SIZES, "heads": 16}),
    "no crops, no mirroring": replace(SHORT, augmented=False),
}
SHORT_TITLE = "plain ViT, short"
SEEDS = (1, 2, 3)


# --- models ----------------------------------------------------------------------------------------------


class ConvolutionalViT(nn.Module):
    """An encoder on what residual blocks see: a hybrid as in Dosovitskiy et al. (2021), section 3.1.

    Three of a ResNet's blocks make 64 tokens of an image, five of a ViT's blocks follow, and the mean of all
    tokens is classified.

    Args:
        blocks: The homework's BasicBlock and EncoderBlock.

    forward:
        images: (batch, 3, 32, 32).
        Returns scores (batch, 10).
    """

    def __init__(self, blocks: Mapping[str, Any], dim: int = 256, depth: int = 5) -> None:
        super().__init__()
        residual, encoder = blocks["BasicBlock"], blocks["EncoderBlock"]
        self.stem = nn.Sequential(
            nn.Conv2d(3, 64, 3, padding=1, bias=False),
            nn.BatchNorm2d(64),
            nn.ReLU(),
            residual(64, 64),
            residual(64, 128, stride=2),
            residual(128, dim, stride=2),
        )
        self.positions = nn.Parameter(0.02 * torch.randn(1, 64, dim))
        self.blocks = nn.Sequential(*(encoder(dim, 8, 2.0, 0.1) for _ in range(depth)))
        self.norm, self.head = nn.LayerNorm(dim), nn.Linear(dim, 10)

    def forward(self, images: Tensor) -> Tensor:
        """See the class."""
        tokens = self.stem(images).flatten(2).transpose(1, 2) + self.positions
        scores: Tensor = self.head(self.norm(self.blocks(tokens)).mean(1))
        return scores


@cache
def homework_source() -> str:
    """The course's own solution, which defines the ViT and the ResNet."""
    path = ASSIGNMENT.folder / "solution.py"
    return solved_source(source_text(path, path.name, ASSIGNMENT.edition), path.name)


@cache
def homework() -> Mapping[str, Any]:
    """What it defines, by name."""
    return defined(homework_source())


@cache
def common_code() -> str:
    """A digest of all code that every training shares."""
    parts = (ConvolutionalViT, GraphedStep, trained_model, _optimizer, schedule, batches, _varied)
    sources = [inspect.getsource(part) for part in (*parts, standardized, gpu_augmentation)]
    return digest("\n".join([homework_source(), *sources, repr((CHUNK, MEAN, DEVIATION))]))


def made_model(recipe: Recipe, seed: int) -> nn.Module:
    """A model that has not learned."""
    names = homework()
    torch.manual_seed(seed)
    kinds: dict[str, Callable[..., nn.Module]] = {
        "ViT": names["VisionTransformer"],
        "ResNet-18": names["ResNet18"],
        "hybrid": lambda **sizes: ConvolutionalViT(names, **sizes),
    }
    return kinds[recipe.model](**recipe.sizes)


def parameters(model: nn.Module) -> int:
    """How many numbers it learns."""
    return sum(weights.numel() for weights in model.parameters())


# --- a training ------------------------------------------------------------------------------------------


class GraphedStep:
    """Forward and backward pass of a batch, as one recorded graph where the device is a GPU.

    A small model's kernels take less time than their launches; a graph is launched as a whole.
    """

    def __init__(self, model: nn.Module, batch: tuple[Tensor, ...], smoothing: float) -> None:
        """Record the passes; the model's buffers are afterwards what they were before.

        Args:
            batch: Images, their labels, their neighbors' labels, and how much of each is its own.
        """
        self._model, self._smoothing = model, smoothing
        self._device = batch[0].device
        self._batch = tuple(part.clone(memory_format=torch.preserve_format) for part in batch)
        self._loss = torch.zeros((), device=self._device)
        self._scores: Callable[[Tensor], Tensor] = model
        self._run: Callable[[], object] = self._passes
        if self._device.type == "cuda":
            self._scores = torch.compile(self._model)
            self._run = self._recorded()

    def __call__(self, batch: tuple[Tensor, ...]) -> Tensor:
        """The mean loss; the gradients are in the model's parameters."""
        for own, new in zip(self._batch, batch, strict=True):
            own.copy_(new)
        self._run()
        return self._loss

    def _passes(self) -> None:
        for weights in self._model.parameters():
            weights.grad = None
        images, labels, neighbors, own = self._batch
        # without a cache of weights: it would be of the values at the time of recording
        with torch.autocast(self._device.type, torch.bfloat16, cache_enabled=False):
            scores = self._scores(images).float()
        mine, other = (
            functional.cross_entropy(scores, given, label_smoothing=self._smoothing, reduction="none")
            for given in (labels, neighbors)
        )
        loss = (own * mine + (1 - own) * other).mean()
        loss.backward()  # type: ignore[no-untyped-call]
        self._loss.copy_(loss.detach())

    def _recorded(self) -> Callable[[], object]:
        buffers = [buffer.clone() for buffer in self._model.buffers()]
        aside = torch.cuda.Stream()
        aside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(aside):
            for _ in range(3):
                self._passes()
        torch.cuda.current_stream().wait_stream(aside)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self._passes()
        with torch.no_grad():
            for buffer, before in zip(self._model.buffers(), buffers, strict=True):
                buffer.copy_(before)
        return graph.replay


def trained_model(
    recipe: Recipe, images: Tensor, labels: Tensor, seed: int, told: Callable[[str], None] = print
) -> nn.Module:
    """Train to the end.

    Args:
        images: Bytes (n, 3, side, side), on the device that trains; n is at least a batch.
        labels: (n,), there as well.
        told: Is given a sentence after each tenth epoch.
    """
    device = images.device
    model = made_model(recipe, seed).to(device, memory_format=torch.channels_last)  # type: ignore[call-overload]
    optimizer = _optimizer(recipe, model)
    steps = recipe.epochs * (len(images) // recipe.batch_size)
    model.train()
    step, done = None, 0
    for epoch in range(recipe.epochs):
        losses = torch.zeros((), device=device)
        for batch in batches(recipe, images, labels):
            step = step or GraphedStep(model, batch, recipe.smoothing)
            for group in optimizer.param_groups:
                group["lr"] = recipe.rate * schedule(done, steps)
            losses += step(batch)
            optimizer.step()
            done += 1
        if (epoch + 1) % 10 == 0:
            mean = losses.item() / (steps // recipe.epochs)
            told(f"epoch {epoch + 1} of {recipe.epochs}, loss {mean:.3f}")
    return model


def _optimizer(recipe: Recipe, model: nn.Module) -> torch.optim.Optimizer:
    if recipe.sgd:
        return torch.optim.SGD(
            model.parameters(), recipe.rate, momentum=0.9, weight_decay=recipe.decay, nesterov=True
        )
    return torch.optim.AdamW(model.parameters(), recipe.rate, weight_decay=recipe.decay)


def schedule(step: int, steps: int) -> float:
    """What the greatest rate is multiplied by: a tenth of all steps up in a line, then half a cosine."""
    warm = steps / 10
    return (
        (step + 1) / warm if step < warm else 0.5 + 0.5 * math.cos(math.pi * (step - warm) / (steps - warm))
    )


def batches(recipe: Recipe, images: Tensor, labels: Tensor) -> Iterator[tuple[Tensor, ...]]:
    """An epoch's, in random order, without what is left over at its end."""
    order = torch.randperm(len(images), device=images.device)
    whole = order[: len(order) // recipe.batch_size * recipe.batch_size]
    for rows in whole.split(max(CHUNK // recipe.batch_size, 1) * recipe.batch_size):
        varied, own = _varied(recipe, images[rows])
        given = labels[rows]
        yield from zip(
            *(part.split(recipe.batch_size) for part in (varied, given, given.roll(1, 0), own)), strict=True
        )


def _varied(recipe: Recipe, images: Tensor) -> tuple[Tensor, Tensor]:
    """Images as the model takes them, and how much of each is its own."""
    values = images.float() / 255
    if recipe.augmented:
        values = cropped(values)
    if recipe.varied:
        values = rand_augmented(values)
    values, own = cut_mixed(values, recipe.mixed)
    return standardized(values), own


def standardized(values: Tensor) -> Tensor:
    """Images from 0 to 1 as a model takes them, channels last."""
    mean, deviation = (values.new_tensor(each).view(1, 3, 1, 1) for each in (MEAN, DEVIATION))
    return ((values - mean) / deviation).contiguous(memory_format=torch.channels_last)


@torch.no_grad()
def hits(model: nn.Module, images: Tensor, labels: Tensor) -> int:
    """How many images (bytes) the model gets right."""
    model.eval()
    found = 0
    for some, own in zip(images.split(1000), labels.split(1000), strict=True):
        with torch.autocast(images.device.type, torch.bfloat16):
            scores = model(standardized(some.float() / 255))
        found += int((scores.argmax(1) == own).sum())
    return found


# --- all trainings ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Planned:
    """A training that is wanted.

    Attributes:
        changed: What is other than in the recipe; empty: nothing.
    """

    title: str
    changed: str
    recipe: Recipe
    seed: int

    @property
    def name(self) -> str:
        """For whoever watches."""
        return f"{self.title}{f' with {self.changed}' if self.changed else ''}, seed {self.seed}"

    @property
    def code(self) -> str:
        """All that decides its outcome."""
        return repr((common_code(), self.recipe))

    @property
    def validates(self) -> bool:
        """Its outcome is of training images that were kept out."""
        return self.title == SHORT_TITLE

    def done(self, records: Sequence[Record]) -> Record | None:
        """Its record, if it has been trained."""
        return record_of(records, self.title, self.changed, self.code, self.seed)


def whole() -> list[Planned]:
    """Each recipe once and each part once, then both with further seeds."""
    return [
        planned
        for seed in SEEDS
        for planned in (
            *(Planned(title, "", recipe, seed) for title, (recipe, _, _) in GOALS.items()),
            *(Planned(SHORT_TITLE, changed, recipe, seed) for changed, recipe in PARTS.items()),
        )
    ]


def measured() -> Section:
    """Train what has no record yet, as far as the time goes."""
    last = last_beginning()
    records = kept(RECORDS)
    wanted = [each for each in whole() if each.done(records) is None]
    if wanted and torch.cuda.is_available():
        everything = all_images()
        splits = {True: validation(everything), False: everything}
        processes = count("PROCESSES", 1)
        with ProcessPoolExecutor(
            processes,
            multiprocessing.get_context("spawn"),
            initializer=_kept_in_memory,
            initargs=(splits, last),
        ) as pool:
            for future in as_completed([pool.submit(_trained_in_time, each) for each in wanted]):
                if (record := future.result()) is not None:
                    keep_instead(RECORDS, record)
    return recorded()


_IN_MEMORY: dict[str, Any] = {}  # of a process of the pool: all that its trainings share


def _kept_in_memory(splits: Mapping[bool, Splits], last: float) -> None:
    _IN_MEMORY.update(splits=splits, last=last)


def _trained_in_time(planned: Planned) -> Record | None:
    """Train, unless it is too late to begin."""
    if time.monotonic() >= _IN_MEMORY["last"]:
        return None
    return trained(planned, _IN_MEMORY["splits"][planned.validates], "cuda")


def trained(planned: Planned, splits: Splits, device: str) -> Record:
    """Train and count what the model gets right."""
    torch.set_num_threads(1)
    began, began_computing = time.monotonic(), time.process_time()
    images, labels, others, their_labels = (
        torch.from_numpy(np.ascontiguousarray(each)).to(device)
        for each in (splits.train_images, splits.train_labels, splits.test_images, splits.test_labels)
    )
    images, others = images.permute(0, 3, 1, 2), others.permute(0, 3, 1, 2)
    model = trained_model(
        planned.recipe,
        images,
        labels,
        planned.seed,
        lambda text: print(f"{planned.name}: {text}", flush=True),
    )
    correct = hits(model, others, their_labels)
    print(f"{planned.name}: {correct} of {len(their_labels)} are right", flush=True)
    return new_record(
        recipe=planned.title,
        without=planned.changed,
        source=planned.code,
        seed=planned.seed,
        epochs=planned.recipe.epochs,
        correct=correct,
        images=len(their_labels),
        seconds=time.monotonic() - began,
        cpu_seconds=time.process_time() - began_computing,
        device=torch.cuda.get_device_name() if device == "cuda" else device,
        counted=None,
    )


def recorded() -> Section:
    """What has been measured."""
    return section(whole(), kept(RECORDS))


# --- what is written -------------------------------------------------------------------------------------


Found = Sequence[tuple[Planned, Record]]


def section(planned: Sequence[Planned], records: Sequence[Record]) -> Section:
    """The recipes with all their seeds, and the plain one with each of its parts changed."""
    found = [(each, record) for each in planned if (record := each.done(records)) is not None]
    groups = dict.fromkeys((each.title, each.changed) for each in planned)
    hybrid = parameters(made_model(HYBRID, 0))
    missing = len(planned) - len(found)
    return Section(
        "CIFAR-10 on a GPU",
        "From scratch, in bfloat16 where autocast allows it; a warm-up and half a cosine. The images are "
        "JPEG files of quality 75 with subsampled colors, so accuracies are a little below those of the "
        f"original; a figure published for it counts as reached within {LOST_TO_JPEG} points. The accuracy "
        "is that of the model after the last epoch. The test images decide nothing and are looked at once. "
        f"The short trainings ({SHORT.epochs} epochs) learn from four fifths of the training images and are "
        "measured on the other fifth. The seconds are those of a training that may have shared the GPU.",
        (
            "training",
            "with",
            "parameters",
            "accuracy, %: mean ± standard deviation",
            "difference",
            "n",
            "epochs",
            "s",
        ),
        tuple(_row(title, changed, planned, found) for title, changed in groups),
        (
            verdict(
                "The hybrid's thousands of parameters", hybrid / 1000, MOST_PARAMETERS / 1000, at_most=True
            ),
            *(_verdict(title, found) for title in GOALS),
            *([f"{missing} of {len(planned)} trainings are not done."] if missing else []),
        ),
        where([record for _, record in found], RECORDS.name),
        measured=bool(found),
    )


def _own(title: str, changed: str, found: Found) -> list[Record]:
    return [record for each, record in found if (each.title, each.changed) == (title, changed)]


def _row(title: str, changed: str, planned: Sequence[Planned], found: Found) -> tuple[str, ...]:
    recipe = next(each.recipe for each in planned if (each.title, each.changed) == (title, changed))
    size, epochs = f"{parameters(made_model(recipe, 0)):,}", str(recipe.epochs)
    own = _own(title, changed, found)
    if not own:
        return title, changed, size, "not measured", "", "0", epochs, ""
    accuracies = [record.accuracy for record in own]
    base = {record.seed: record.accuracy for record in _own(title, "", found)} if changed else {}
    pairs = [record.accuracy - base[record.seed] for record in own if record.seed in base]
    return (
        title,
        changed,
        size,
        mean_and_deviation(accuracies),
        mean_and_deviation(pairs, sign="+") if pairs else "",
        str(len(own)),
        epochs,
        f"{statistics.median(record.seconds for record in own):.0f}",
    )


def _verdict(title: str, found: Found) -> str:
    _, goal, source = GOALS[title]
    own = _own(title, "", found)
    if not own:
        return f"{title}, {goal} % ({source}): not measured."
    mean = statistics.mean(record.accuracy for record in own)
    claim = f"{title}, mean of n = {len(own)}, beside {goal} % ({source})"
    return verdict(claim, mean, goal - LOST_TO_JPEG, at_most=False, unit="%")
