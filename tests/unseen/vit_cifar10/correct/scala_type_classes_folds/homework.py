"""Zadanie 2: ViT i ResNet.

Pisane ręką kogoś, kto na co dzień pisze w Scali: case classes, sealed traits, type classes (singledispatch),
Option instead of exceptions, monoids and folds instead of counters, pattern matching instead of if-chains.
"""

from __future__ import annotations

import csv
import math
import time
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial, reduce, singledispatch
from itertools import accumulate, chain, pairwise
from numbers import Number
from typing import Any, Final, Generic, NamedTuple, Protocol, Self, TypeAlias, TypeVar

import matplotlib.pyplot as plt
import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Subset
from torchvision import datasets
from torchvision.transforms import v2

A = TypeVar("A")
B = TypeVar("B")

STUDENT_ID: Final = "401339082"

# --- Option[A] = Some(a) | Nothing ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Some(Generic[A]):
    value: A


@dataclass(frozen=True, slots=True)
class Nothing:
    pass


Option: TypeAlias = Some[A] | Nothing


def option(value: A | None) -> Option[A]:
    return Nothing() if value is None else Some(value)


def fmap(maybe: Option[A], f: Callable[[A], B]) -> Option[B]:
    match maybe:
        case Some(value):
            return Some(f(value))
        case _:
            return Nothing()


def fold(maybe: Option[A], empty: B, full: Callable[[A], B]) -> B:
    match maybe:
        case Some(value):
            return full(value)
        case _:
            return empty


# --- Monoid[A] ------------------------------------------------------------------------------------------------


class Monoid(Protocol):
    """The type class: an associative `+` (the empty element is `Self()`)."""

    def __add__(self, other: Self) -> Self: ...


M = TypeVar("M", bound=Monoid)


def fold_map(items: Iterable[A], empty: M, f: Callable[[A], M]) -> M:
    return reduce(lambda total, item: total + f(item), items, empty)


@dataclass(frozen=True, slots=True)
class Tally:
    """Sums over images; what is divided is divided once, at the very end."""

    loss: float = 0.0
    right: int = 0
    images: int = 0

    def __add__(self, other: Tally) -> Tally:
        return Tally(self.loss + other.loss, self.right + other.right, self.images + other.images)

    @property
    def means(self) -> tuple[float, float]:
        return self.loss / max(self.images, 1), self.right / max(self.images, 1)


@dataclass(frozen=True, slots=True)
class Seen:
    """A tally along with everything that was seen: a product of monoids is a monoid."""

    tally: Tally = Tally()
    targets: tuple[Tensor, ...] = ()
    probabilities: tuple[Tensor, ...] = ()

    def __add__(self, other: Seen) -> Seen:
        return Seen(
            self.tally + other.tally, self.targets + other.targets, self.probabilities + other.probabilities
        )


# --- Dane -----------------------------------------------------------------------------------------------------


class Standard(NamedTuple):
    mean: tuple[float, ...]
    std: tuple[float, ...]


CIFAR: Final = Standard((0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616))
device: Final = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(17)

with zipfile.ZipFile("dataset.zip") as archive:
    archive.extractall("data")

to_numbers: Final = [v2.ToImage(), v2.ToDtype(torch.float32, scale=True), v2.Normalize(*CIFAR)]
plain: Final = v2.Compose(to_numbers)
augmented: Final = v2.Compose([v2.RandomCrop(32, padding=4), v2.RandomHorizontalFlip(), *to_numbers])

folder = partial(datasets.ImageFolder, "data/train")
test_images: Final = datasets.ImageFolder("data/test", transform=plain)
class_names: Final = tuple(test_images.classes)


def split_by_class(labels: Sequence[int], every: int = 10) -> tuple[list[int], list[int]]:
    """(training, validation): of each class a random tenth is put aside. Walidacja nigdy nie jest zmieniana."""
    shuffled = torch.randperm(len(labels), generator=torch.Generator().manual_seed(17)).tolist()
    grouped = {label: [row for row in shuffled if labels[row] == label] for label in sorted(set(labels))}
    held = [rows[: max(1, len(rows) // every)] for rows in grouped.values()]
    kept = [rows[max(1, len(rows) // every) :] for rows in grouped.values()]
    return list(chain.from_iterable(kept)), list(chain.from_iterable(held))


training_rows, validation_rows = split_by_class(folder().targets)
loaders: Final[Mapping[str, DataLoader]] = {
    "train": DataLoader(Subset(folder(transform=augmented), training_rows), batch_size=64, shuffle=True),
    "validation": DataLoader(Subset(folder(transform=plain), validation_rows), batch_size=256),
}
test_loader: Final = DataLoader(test_images, batch_size=256)


# --- Transformer ----------------------------------------------------------------------------------------------


class PatchEmbedding(nn.Module):
    def __init__(self, image_size: int, patch_size: int, in_channels: int, dim: int) -> None:
        super().__init__()
        self.project = nn.Conv2d(in_channels, dim, kernel_size=patch_size, stride=patch_size)

    def forward(self, images: Tensor) -> Tensor:
        return self.project(images).flatten(start_dim=2).transpose(1, 2)


def sinusoidal_positions(tokens: int, dim: int) -> Tensor:
    def row(position: int) -> list[float]:
        angles = (position / 10_000 ** (2 * i / dim) for i in range(dim // 2))
        return [wave(angle) for angle in angles for wave in (math.sin, math.cos)]

    return torch.tensor([row(position) for position in range(tokens)], dtype=torch.float32).reshape(tokens, dim)


class Heads(NamedTuple):
    """q, k, v, each (batch, heads, tokens, features)."""

    q: Tensor
    k: Tensor
    v: Tensor

    @property
    def weights(self) -> Tensor:
        return (self.q @ self.k.transpose(-2, -1)).div(math.sqrt(self.q.shape[-1])).softmax(dim=-1)


class MultiHeadSelfAttention(nn.Module):
    def __init__(self, dim: int, heads: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.heads: Final = heads
        self.qkv = nn.Linear(dim, 3 * dim, bias=False)
        self.dropout = nn.Dropout(dropout)
        self.out = nn.Linear(dim, dim)

    def split(self, x: Tensor) -> Heads:
        return Heads(*(part.unflatten(-1, (self.heads, -1)).movedim(-2, 1) for part in self.qkv(x).chunk(3, dim=-1)))

    def forward(self, x: Tensor, return_weights: bool = False) -> Tensor | tuple[Tensor, Tensor]:
        heads = self.split(x)
        weights = heads.weights
        mixed = self.out((self.dropout(weights) @ heads.v).movedim(1, -2).flatten(-2))
        match return_weights:
            case True:
                return mixed, weights
            case _:
                return mixed


Arrow: TypeAlias = Callable[[Tensor], Tensor]


def plus(branch: Arrow) -> Arrow:
    """x => x + branch(x)"""
    return lambda x: x + branch(x)


def and_then(*arrows: Arrow) -> Arrow:
    return lambda x: reduce(lambda value, arrow: arrow(value), arrows, x)


class EncoderBlock(nn.Module):
    def __init__(self, dim: int, heads: int, mlp_ratio: float = 4.0, dropout: float = 0.0) -> None:
        super().__init__()
        hidden = int(dim * mlp_ratio)
        self.norms = nn.ModuleList([nn.LayerNorm(dim), nn.LayerNorm(dim)])
        self.attention = MultiHeadSelfAttention(dim, heads, dropout)
        self.mlp = nn.Sequential(
            nn.Linear(dim, hidden), nn.GELU(), nn.Dropout(dropout), nn.Linear(hidden, dim), nn.Dropout(dropout)
        )

    def weights_of(self, x: Tensor) -> Tensor:
        return self.attention(self.norms[0](x), return_weights=True)[1]

    def forward(self, x: Tensor) -> Tensor:
        first, second = self.norms
        return and_then(plus(and_then(first, self.attention)), plus(and_then(second, self.mlp)))(x)


# sealed trait Pool; case object Mean; case class ClassToken(dim)
class Pool(nn.Module):
    extra: int = 0

    def prepare(self, tokens: Tensor) -> Tensor:
        raise NotImplementedError

    def pick(self, tokens: Tensor) -> Tensor:
        raise NotImplementedError


class Mean(Pool):
    def prepare(self, tokens: Tensor) -> Tensor:
        return tokens

    def pick(self, tokens: Tensor) -> Tensor:
        return tokens.mean(dim=1)


class ClassToken(Pool):
    extra = 1

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.token = nn.Parameter(nn.init.trunc_normal_(torch.empty(1, 1, dim), std=0.02))

    def prepare(self, tokens: Tensor) -> Tensor:
        return torch.cat((self.token.expand(tokens.shape[0], -1, -1), tokens), dim=1)

    def pick(self, tokens: Tensor) -> Tensor:
        return tokens[:, 0]


def pool_of(name: str, dim: int) -> Pool:
    match name:
        case "cls":
            return ClassToken(dim)
        case "mean":
            return Mean()
        case other:
            raise ValueError(f"MatchError: {other}")


def positions_of(name: str, tokens: int, dim: int) -> nn.Parameter:
    match name:
        case "learned":
            return nn.Parameter(nn.init.trunc_normal_(torch.empty(tokens, dim), std=0.02))
        case "sinusoidal":
            return nn.Parameter(sinusoidal_positions(tokens, dim), requires_grad=False)  # zamrożone
        case other:
            raise ValueError(f"MatchError: {other}")


class VisionTransformer(nn.Module):
    def __init__(
        self,
        image_size: int = 32,
        patch_size: int = 4,
        in_channels: int = 3,
        num_classes: int = 10,
        dim: int = 192,
        depth: int = 9,
        heads: int = 8,
        mlp_ratio: float = 4.0,
        dropout: float = 0.1,
        positions: str = "learned",
        pool: str = "cls",
    ) -> None:
        super().__init__()
        self.embed = PatchEmbedding(image_size, patch_size, in_channels, dim)
        self.pool = pool_of(pool, dim)
        self.positions = positions_of(positions, (image_size // patch_size) ** 2 + self.pool.extra, dim)
        self.blocks = nn.ModuleList(EncoderBlock(dim, heads, mlp_ratio, dropout) for _ in range(depth))
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, num_classes)

    def states(self, images: Tensor) -> Iterator[Tensor]:
        """scanLeft: the tokens before each block, and those after the last one."""
        first = self.pool.prepare(self.embed(images)) + self.positions
        return accumulate(self.blocks, lambda tokens, block: block(tokens), initial=first)

    def forward(self, images: Tensor) -> Tensor:
        last = reduce(lambda _, tokens: tokens, self.states(images))
        return self.head(self.pool.pick(self.norm(last)))

    def attention(self, images: Tensor) -> Tensor:
        *_, (before_last, _after) = pairwise(self.states(images))
        return self.blocks[-1].weights_of(before_last)


@dataclass(frozen=True, slots=True)
class Modes:
    """Who was in training mode. Immutable, so that nothing gets lost between `of` and `restore`."""

    flags: tuple[tuple[nn.Module, bool], ...]

    @classmethod
    def of(cls, model: nn.Module) -> Modes:
        return cls(tuple((module, module.training) for module in model.modules()))

    def restore(self) -> None:
        for module, flag in self.flags:
            module.training = flag


def attention_map(model: nn.Module, image: Tensor) -> np.ndarray:
    modes = Modes.of(model)
    home = next(iter(model.parameters())).device
    try:
        with torch.inference_mode():
            weights = model.eval().attention(image.unsqueeze(0).to(home)).squeeze(0).mean(dim=0).cpu().numpy()
    finally:
        modes.restore()

    count = weights.shape[-1]
    match math.isqrt(count) ** 2 == count:
        case True:  # no class token
            values = weights.mean(axis=0)
        case False:
            values = weights[0, 1:]
    side = math.isqrt(values.size)
    scaled = values / peak if (peak := values.max()) > 0 else values
    height, width = image.shape[-2:]
    return scaled.reshape(side, side).repeat(height // side, axis=0).repeat(width // side, axis=1)


# --- ResNet ---------------------------------------------------------------------------------------------------


def conv_norm(entering: int, leaving: int, size: int, stride: int = 1) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(entering, leaving, size, stride=stride, padding=size // 2, bias=False), nn.BatchNorm2d(leaving)
    )


class BasicBlock(nn.Module):
    def __init__(self, in_channels: int, channels: int, stride: int = 1) -> None:
        super().__init__()
        self.residual = nn.Sequential(
            conv_norm(in_channels, channels, 3, stride), nn.ReLU(), conv_norm(channels, channels, 3)
        )
        match (in_channels == channels, stride):
            case (True, 1):
                self.shortcut = nn.Identity()
            case _:
                self.shortcut = conv_norm(in_channels, channels, 1, stride)

    def forward(self, x: Tensor) -> Tensor:
        return (self.residual(x) + self.shortcut(x)).relu()


class ResNet18(nn.Module):
    def __init__(self, num_classes: int = 10, width: int = 64) -> None:
        super().__init__()
        widths = [width, *(width * 2**group for group in range(4))]

        def group(entering: int, leaving: int, first: bool) -> nn.Sequential:
            return nn.Sequential(BasicBlock(entering, leaving, 1 if first else 2), BasicBlock(leaving, leaving))

        self.stem = nn.Sequential(conv_norm(3, width, 3), nn.ReLU())
        self.groups = nn.Sequential(*(group(a, b, n == 0) for n, (a, b) in enumerate(pairwise(widths))))
        self.head = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(widths[-1], num_classes))

    def forward(self, images: Tensor) -> Tensor:
        return and_then(self.stem, self.groups, self.head)(images)


def parameter_table(model: nn.Module) -> list[tuple[str, int]]:
    return [(name, weights.numel()) for name, weights in model.named_parameters()]


# --- Uczenie --------------------------------------------------------------------------------------------------


def warmup_cosine(step: int, warmup_steps: int, total_steps: int) -> float:
    match step:
        case s if s < warmup_steps:
            return s / warmup_steps
        case s if s >= total_steps:
            return 0.0
        case s:
            return (1 + math.cos(math.pi * (s - warmup_steps) / (total_steps - warmup_steps))) / 2


def train_epoch(model, loader, criterion, optimizer, scheduler, device) -> tuple[float, float]:
    model.train()
    maybe_scheduler = option(scheduler)

    def one(batch: Sequence[Tensor]) -> Tally:
        images, labels = (part.to(device) for part in batch)
        scores = model(images)
        loss = criterion(scores, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        fmap(maybe_scheduler, lambda s: s.step())
        right = int((scores.argmax(dim=1) == labels).sum())
        return Tally(loss.item() * len(labels), right, len(labels))

    return fold_map(loader, Tally(), one).means


def evaluate(model, loader, criterion, device) -> dict[str, Any]:
    model.eval()

    def one(batch: Sequence[Tensor]) -> Seen:
        images, labels = (part.to(device) for part in batch)
        scores = model(images)
        tally = Tally(
            criterion(scores, labels).item() * len(labels),
            int((scores.argmax(dim=1) == labels).sum()),
            len(labels),
        )
        return Seen(tally, (labels.cpu(),), (scores.softmax(dim=1).cpu(),))

    with torch.no_grad():
        seen = fold_map(loader, Seen(), one)
    loss, accuracy = seen.tally.means
    probabilities = torch.cat(seen.probabilities)
    return {
        "loss": loss,
        "accuracy": accuracy,
        "targets": torch.cat(seen.targets),
        "predictions": probabilities.argmax(dim=1),
        "probabilities": probabilities,
    }


@dataclass(frozen=True, slots=True)
class Epoch:
    training_loss: float
    training_accuracy: float
    validation_loss: float
    validation_accuracy: float


@dataclass(frozen=True, slots=True)
class Snapshot:
    accuracy: float
    weights: Mapping[str, Tensor] = field(repr=False)

    @classmethod
    def of(cls, model: nn.Module, accuracy: float) -> Snapshot:
        # klon, bo state_dict() jest tylko widokiem
        return cls(accuracy, {name: weights.detach().clone() for name, weights in model.state_dict().items()})


@dataclass(frozen=True, slots=True)
class Progress:
    history: tuple[Epoch, ...] = ()
    best: Option[Snapshot] = field(default_factory=Nothing)


def optimizer_of(model: nn.Module) -> torch.optim.Optimizer:
    match model:
        case ResNet18():
            return torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=5e-4, nesterov=True)
        case _:
            return torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.05)


def fit(model, loaders, epochs, device) -> tuple[Epoch, ...]:
    model.to(device)
    criterion = nn.CrossEntropyLoss()
    optimizer = optimizer_of(model)
    steps = epochs * len(loaders["train"])
    factor = partial(warmup_cosine, warmup_steps=steps // 10, total_steps=steps)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, factor)

    def advance(progress: Progress, _epoch: int) -> Progress:
        trained = train_epoch(model, loaders["train"], criterion, optimizer, scheduler, device)
        found = evaluate(model, loaders["validation"], criterion, device)
        accuracy = found["accuracy"]
        longer = replace(progress, history=(*progress.history, Epoch(*trained, found["loss"], accuracy)))
        beaten = fold(progress.best, True, lambda best: accuracy > best.accuracy)
        return replace(longer, best=Some(Snapshot.of(model, accuracy))) if beaten else longer

    done = reduce(advance, range(epochs), Progress())
    fmap(done.best, lambda best: model.load_state_dict(dict(best.weights)))
    return done.history


# --- Miary ----------------------------------------------------------------------------------------------------


def safe_divide(a: float, b: float) -> float:
    return float(a / b) if b else 0.0


@dataclass(frozen=True, slots=True)
class OneVersusRest:
    """What one class looks like from its own point of view."""

    hits: int
    called: int
    support: int
    roc_auc: Option[float]

    @property
    def precision(self) -> float:
        return safe_divide(self.hits, self.called)

    @property
    def recall(self) -> float:
        return safe_divide(self.hits, self.support)

    @property
    def f1(self) -> float:
        return safe_divide(2 * self.hits, self.called + self.support)

    def get(self, name: str) -> float:
        match getattr(self, name):
            case Some(value):
                return value
            case Nothing():
                return math.nan
            case value:
                return value


def auc(positives: np.ndarray, negatives: np.ndarray) -> Option[float]:
    """For each positive: the negatives below it, and half of those beside it."""
    if not (positives.size and negatives.size):
        return Nothing()
    ordered = np.sort(negatives)
    below, up_to = (np.searchsorted(ordered, positives, side=side) for side in ("left", "right"))
    return Some(float((below + up_to).sum() / (2 * positives.size * negatives.size)))


def classification_metrics(targets: Any, probabilities: Any) -> dict[str, Any]:
    truth = np.asarray(targets).astype(np.int64)
    scores = np.asarray(probabilities, dtype=np.float64)
    classes = scores.shape[1]
    guessed = np.argmax(scores, axis=1)
    confusion = np.bincount(truth * classes + guessed, minlength=classes**2).reshape(classes, classes)

    def view(c: int) -> OneVersusRest:
        own = truth == c
        return OneVersusRest(
            hits=int(confusion[c, c]),
            called=int(confusion[:, c].sum()),
            support=int(confusion[c].sum()),
            roc_auc=auc(scores[own, c], scores[~own, c]),
        )

    views = [view(c) for c in range(classes)]

    def mean(name: str, weight: Callable[[OneVersusRest], float]) -> float:
        pairs = [(v.get(name), weight(v)) for v in views if v.support > 0]
        kept = [(value, w) for value, w in pairs if not math.isnan(value)]
        total = sum(w for _, w in kept)
        return sum(value * w for value, w in kept) / total if kept else math.nan

    averaged = ("precision", "recall", "f1", "roc_auc")
    per_class = {name: np.array([v.get(name) for v in views]) for name in averaged}
    macro = {f"macro_{name}": mean(name, lambda v: 1.0) for name in averaged}
    weighted = {f"weighted_{name}": mean(name, lambda v: float(v.support)) for name in averaged}
    return {
        "confusion": confusion,
        "support": np.array([v.support for v in views]),
        "accuracy": safe_divide(np.trace(confusion), truth.size),
        **per_class,
        **macro,
        **weighted,
    }


# type class ToRows[A]: def rows(a: A, name: String): List[(String, Double)]
Row: TypeAlias = tuple[str, Number]


@singledispatch
def rows(value: Any, name: str) -> list[Row]:
    raise TypeError(f"no instance of ToRows for {type(value).__name__}")


@rows.register(Number)
def _(value, name):
    return [(name, value)]


@rows.register(np.generic)
def _(value, name):
    return [(name, value.item())]


@rows.register(Mapping)
def _(value, name):
    return [row for key, inner in value.items() for row in rows(inner, f"{name}.{key}" if name else str(key))]


@rows.register(list)
@rows.register(tuple)
def _(value, name):
    return rows(dict(enumerate(value)), name)


@rows.register(np.ndarray)
def _(value, name):
    match value.ndim:
        case 0:
            return [(name, value.item())]
        case 1:
            return rows(value.tolist(), name)
        case _:
            return []


@rows.register(Tensor)
def _(value, name):
    return rows(value.detach().cpu().numpy(), name)


def export_metrics(metrics: Mapping[str, Any], path: Any) -> None:
    with open(path, "w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("metric", "value"), *rows(metrics, "")])


# --- Obrazki --------------------------------------------------------------------------------------------------


def plot_learning_curves(history: Sequence[Epoch]):
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4))
    epochs = range(1, len(history) + 1)
    for axes, what in ((left, "loss"), (right, "accuracy")):
        for part, style in (("training", "--"), ("validation", "-")):
            axes.plot(epochs, [getattr(epoch, f"{part}_{what}") for epoch in history], style, marker=".", label=part)
        axes.set_xlabel("epoch")
        axes.set_ylabel(what)
        axes.legend()
    return figure


def plot_confusion_matrix(matrix, class_names):
    counts = np.asarray(matrix)
    figure, axes = plt.subplots(figsize=(7, 7))
    axes.imshow(counts, cmap="Purples")
    for (row, column), count in np.ndenumerate(counts):
        color = "white" if 2 * count > counts.max() else "black"
        axes.text(column, row, f"{int(count)}", ha="center", va="center", color=color)
    axes.set_xticks(range(len(class_names)), class_names, rotation=60)
    axes.set_yticks(range(len(class_names)), class_names)
    axes.set_xlabel("predicted")
    axes.set_ylabel("true")
    figure.tight_layout()
    return figure


def roc_curve(own: np.ndarray, scores: np.ndarray) -> Option[tuple[list[float], list[float]]]:
    if own.all() or not own.any():
        return Nothing()
    thresholds = [math.inf, *np.unique(scores)[::-1]]
    false = [float(np.mean(scores[~own] >= threshold)) for threshold in thresholds]
    true = [float(np.mean(scores[own] >= threshold)) for threshold in thresholds]
    return Some((false, true))


def plot_roc(targets, probabilities, class_names):
    truth, scores = np.asarray(targets), np.asarray(probabilities)
    figure, axes = plt.subplots(figsize=(6, 6))
    for c, name in enumerate(class_names):
        fmap(roc_curve(truth == c, scores[:, c]), lambda curve: axes.plot(*curve, label=name))  # noqa: B023
    axes.plot([0, 1], [0, 1], color="0.7", linewidth=1)
    axes.set_xlabel("false positive rate")
    axes.set_ylabel("true positive rate")
    axes.legend(loc="lower right", fontsize="small")
    return figure


def picture(image: Tensor, mean, std) -> np.ndarray:
    column = lambda numbers: torch.as_tensor(numbers, dtype=torch.float32).reshape(-1, 1, 1)  # noqa: E731
    return (image.detach().cpu() * column(std) + column(mean)).clamp(0, 1).permute(1, 2, 0).numpy()


def plot_attention(model, images, labels, class_names, mean, std):
    figure, grid = plt.subplots(3, len(images), figsize=(2 * len(images), 6), squeeze=False)
    for column, (image, label) in enumerate(zip(images, labels)):
        shown, heat = picture(image, mean, std), attention_map(model, image)
        top, middle, bottom = grid[:, column]
        top.imshow(shown)
        top.set_title(class_names[int(label)])
        middle.imshow(heat, vmin=0, vmax=1, cmap="inferno")
        bottom.imshow(shown)
        bottom.imshow(heat, vmin=0, vmax=1, cmap="inferno", alpha=0.5)
    for axes, name in zip(grid[:, 0], ("image", "attention", "overlay")):
        axes.set_ylabel(name)
    for axes in grid.flat:
        axes.set_xticks([])
        axes.set_yticks([])
    return figure


def plot_top3(images, labels, probabilities, class_names, mean, std):
    figure, grid = plt.subplots(1, len(images), figsize=(2.2 * len(images), 3.2), squeeze=False)
    for axes, image, label, row in zip(grid[0], images, labels, np.asarray(probabilities)):
        best = sorted(range(len(row)), key=lambda c: -row[c])[:3]  # noqa: B023
        axes.imshow(picture(image, mean, std))
        axes.set_title(f"true: {class_names[int(label)]}", fontsize=9)
        axes.set_xlabel("\n".join(f"{class_names[c]}: {row[c]:.2f}" for c in best), fontsize=8)
        axes.set_xticks([])
        axes.set_yticks([])
    figure.tight_layout()
    return figure


# --- Koniec świata: the effects -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Trained:
    name: str
    model: nn.Module
    history: tuple[Epoch, ...]


def trained(name: str, model: nn.Module, epochs: int) -> Trained:
    start = time.perf_counter()
    history = fit(model, loaders, epochs, device)
    torch.save(model.state_dict(), f"{STUDENT_ID}_CIFAR10_{name}.pth")
    print(f"{name}: {time.perf_counter() - start:.0f} s")
    return Trained(name, model, history)


EPOCHS: Final = 15
vit = VisionTransformer(dim=96, depth=5, heads=6, mlp_ratio=3.0, dropout=0.0, num_classes=len(class_names))
resnet = ResNet18(num_classes=len(class_names), width=16)
criterion: Final = nn.CrossEntropyLoss()


def report(result: Trained) -> dict[str, Any]:
    found = evaluate(result.model, test_loader, criterion, device)
    measures = classification_metrics(found["targets"], found["probabilities"])
    print(result.name, f"{found['accuracy']:.4f}", sum(n for _, n in parameter_table(result.model)), "parameters")
    plot_learning_curves(result.history)
    plot_confusion_matrix(measures["confusion"], class_names)
    plot_roc(found["targets"], found["probabilities"], class_names)
    return measures


results = [trained("vit", vit, EPOCHS), trained("resnet", resnet, EPOCHS)]
export_metrics({result.name: report(result) for result in results}, f"{STUDENT_ID}_metrics.csv")

images, labels = (part[:6] for part in next(iter(test_loader)))
plot_attention(vit, images, labels, class_names, *CIFAR)
plot_top3(
    images, labels, vit.eval()(images.to(device)).softmax(dim=1).detach().cpu(), class_names, *CIFAR
)


@dataclass(frozen=True, slots=True)
class Setting:
    patch_size: int = 8
    dim: int = 64
    depth: int = 2
    heads: int = 4
    mlp_ratio: float = 2.0
    positions: str = "learned"
    epochs: int = 5


class StudyRow(NamedTuple):
    patch_size: int
    dim: int
    depth: int
    heads: int
    mlp_ratio: float
    positions: str
    epochs: int
    seed: int
    parameters: int
    validation_accuracy: float


def run(setting: Setting, seed: int) -> StudyRow:
    torch.manual_seed(seed)
    s = setting
    model = VisionTransformer(
        patch_size=s.patch_size,
        dim=s.dim,
        depth=s.depth,
        heads=s.heads,
        mlp_ratio=s.mlp_ratio,
        positions=s.positions,
        dropout=0.0,
        num_classes=len(class_names),
    )
    fit(model, loaders, s.epochs, device)
    accuracy = evaluate(model, loaders["validation"], criterion, device)["accuracy"]
    size = sum(n for _, n in parameter_table(model))
    return StudyRow(
        s.patch_size, s.dim, s.depth, s.heads, s.mlp_ratio, s.positions, s.epochs, seed, size, round(accuracy, 4)
    )


RUN_STUDY: Final = True
base: Final = Setting()
plan: Final = [
    *((base, seed) for seed in (0, 1, 2)),
    *(
        (replace(base, **change), 0)
        for change in (
            {"patch_size": 4},
            {"dim": 32},
            {"depth": 4},
            {"heads": 8},
            {"mlp_ratio": 1.0},
            {"positions": "sinusoidal"},
            {"epochs": 10},
        )
    ),
]
if RUN_STUDY:
    with open(f"{STUDENT_ID}_study.csv", "w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([StudyRow._fields, *(run(setting, seed) for setting, seed in plan)])
