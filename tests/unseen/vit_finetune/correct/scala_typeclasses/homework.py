# %% [markdown]
# # Fine-tuning a pretrained Vision Transformer
#
# I write Scala at work. Data are immutable case classes, decisions are `match`, loops are folds, and effects
# (optimizer steps, weights) stay at the rim. `algebra.py`, beside this file, has the general part.

# %%
from __future__ import annotations

import math
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import accumulate, pairwise

import matplotlib.pyplot as plt
import numpy as np
import torch
from algebra import Left, Nothing, Option, Right, Some, fold_map, get_or_raise, integers, reals, unfold
from handout import build_model, parts
from torch import nn, optim
from torch.utils.data import DataLoader, Subset
from torchvision import datasets, transforms

STUDENT_ID = "400317750"
RATE = 4e-3
PATIENCE = 4
BATCH_SIZE = 64
ALPHA = 0.3
MEAN, STD = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(42)


# %% [markdown]
# ## The split


# %%
def enough(rows_of: Mapping[int, np.ndarray], needed: int):
    """Either[String, Map[Class, Rows]]."""
    poor = {label: len(rows) for label, rows in rows_of.items() if len(rows) < needed}
    return Left(f"{needed} images per class are needed; too few: {poor}") if poor else Right(rows_of)


def stratified_split(labels, per_class, seed):
    classes = integers(labels)
    sizes = tuple(int(n) for n in per_class)
    cuts = tuple(pairwise(accumulate(sizes, initial=0)))  # (from, until) of each part
    rng = np.random.default_rng(seed)
    rows_of = {int(label): np.flatnonzero(classes == label) for label in np.unique(classes)}
    shuffled = {
        label: rng.permutation(rows) for label, rows in get_or_raise(enough(rows_of, sum(sizes)), ValueError).items()
    }
    nobody = np.empty(0, dtype=np.int64)
    return tuple(
        np.concatenate([nobody, *(rows[start:until] for rows in shuffled.values())]) for start, until in cuts
    )


# %% [markdown]
# ## Mixed images
#
# sealed trait Mixing: `Blend` fades, `Paste` cuts. Both know their own share, and how they act on two images.


# %%
@dataclass(frozen=True)
class Span:
    """Half open: start until end."""

    start: int
    end: int

    def clipped(self, size: int) -> Span:
        return Span(min(max(self.start, 0), size), min(max(self.end, 0), size))

    def __len__(self) -> int:
        return max(self.end - self.start, 0)


@dataclass(frozen=True)
class Blend:
    share: float


@dataclass(frozen=True)
class Paste:
    rows: Span
    columns: Span
    height: int
    width: int

    @property
    def share(self) -> float:
        return 1.0 - len(self.rows) * len(self.columns) / (self.height * self.width)


def act(mixing: Blend | Paste, own: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    match mixing:
        case Blend(share):
            return own * share + other * (1.0 - share)
        case Paste(rows, columns):
            # put together from five pieces, nothing is overwritten: above, (left, pasted, right), below
            band = slice(rows.start, rows.end)
            middle = torch.cat(
                (
                    own[..., band, : columns.start],
                    other[..., band, columns.start : columns.end],
                    own[..., band, columns.end :],
                ),
                dim=-1,
            )
            return torch.cat((own[..., : rows.start, :], middle, own[..., rows.end :, :]), dim=-2)


def share_from(alpha: float, generator: np.random.Generator) -> float:
    return float(generator.beta(alpha, alpha)) if alpha > 0 else 1.0


def span_around(size: int, side: float, generator: np.random.Generator) -> Span:
    center, length = int(generator.integers(size)), int(round(side))
    return Span(center - length // 2, center - length // 2 + length).clipped(size)


def paste_from(height: int, width: int, alpha: float, generator: np.random.Generator) -> Paste:
    scale = math.sqrt(1.0 - share_from(alpha, generator))
    rows, columns = (span_around(size, size * scale, generator) for size in (height, width))
    return Paste(rows, columns, height, width)


def mixed_with(mixing: Blend | Paste, images, labels, generator):
    order = generator.permutation(len(images)).tolist()
    return act(mixing, images, images[order]), labels, labels[order], mixing.share


def mixup(images, labels, alpha, generator):
    return mixed_with(Blend(share_from(alpha, generator)), images, labels, generator)


def cutmix(images, labels, alpha, generator):
    height, width = images.shape[-2:]
    return mixed_with(paste_from(height, width, alpha, generator), images, labels, generator)


def mixed_loss(criterion, logits, labels_a, labels_b, lam):
    against = partial(criterion, logits)
    return sum(share * against(labels) for share, labels in ((lam, labels_a), (1 - lam, labels_b)))


# %% [markdown]
# ## What learns


# %%
def only(model: nn.Module, *learning: nn.Module) -> None:
    """The one place where a flag is set."""
    chosen = frozenset(id(p) for module in learning for p in module.parameters())
    for parameter in model.parameters():
        parameter.requires_grad = id(parameter) in chosen


def freeze_backbone(model):
    head, _, _ = parts(model)
    only(model, head)


def unfreeze(model, blocks=None):
    match blocks, parts(model):
        case None, _:
            only(model, model)
        case count, (head, trunk, norm):
            only(model, head, norm, *tuple(reversed(trunk))[:count])  # takeRight(count)


# %% [markdown]
# ## Training and evaluation
#
# A `Tally` is a monoid: batches are mapped into it, and added.


# %%
@dataclass(frozen=True)
class Tally:
    images: int
    loss: float
    hits: float

    @classmethod
    def zero(cls) -> Tally:
        return cls(0, 0.0, 0.0)

    def __add__(self, other: Tally) -> Tally:
        return Tally(self.images + other.images, self.loss + other.loss, self.hits + other.hits)

    @property
    def means(self) -> tuple[float, float]:
        return (self.loss / self.images, self.hits / self.images) if self.images else (math.nan, math.nan)


@dataclass(frozen=True)
class Answers:
    """The monoid (Tally, Vector[Int], Vector[Int])."""

    tally: Tally
    targets: tuple[int, ...] = ()
    predictions: tuple[int, ...] = ()

    @classmethod
    def zero(cls) -> Answers:
        return cls(Tally.zero())

    def __add__(self, other: Answers) -> Answers:
        return Answers(
            self.tally + other.tally, self.targets + other.targets, self.predictions + other.predictions
        )


def hits(logits: torch.Tensor, labels: torch.Tensor) -> int:
    return int((logits.argmax(dim=-1) == labels).sum())


def unmixed(images, labels):
    return images, labels, labels, 1.0


def train_one_epoch(model, loader, optimizer, criterion, device, mix=None):
    model.train()
    for block in parts(model)[1]:
        block.train(mode=any(p.requires_grad for p in block.parameters()))

    def learned(batch) -> Tally:
        images, a, b, lam = (mix or unmixed)(*(tensor.to(device) for tensor in batch))
        logits = model(images)
        loss = mixed_loss(criterion, logits, a, b, lam) if mix else criterion(logits, a)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        right = float(lam) * hits(logits, a) + (1.0 - float(lam)) * hits(logits, b)
        return Tally(len(images), len(images) * loss.item(), right)

    return fold_map(Tally, learned, loader).means


def evaluate(model, loader, criterion, device):
    model.eval()

    def answered(batch) -> Answers:
        images, labels = (tensor.to(device) for tensor in batch)
        with torch.no_grad():
            logits = model(images)
            loss = float(criterion(logits, labels))
        tally = Tally(len(images), len(images) * loss, float(hits(logits, labels)))
        return Answers(tally, tuple(labels.tolist()), tuple(logits.argmax(dim=-1).tolist()))

    answers = fold_map(Answers, answered, loader)
    return *answers.tally.means, list(answers.targets), list(answers.predictions)


# %% [markdown]
# ## Early stopping
#
# The watch itself is immutable; `EarlyStopping` is the mutable cell (`var`) that the assignment asks for.


# %%
@dataclass(frozen=True)
class Record:
    value: float
    weights: Mapping[str, torch.Tensor]


@dataclass(frozen=True)
class Watch:
    min_delta: float
    best: Option = field(default_factory=Nothing)
    idle: int = 0

    def improves(self, value: float) -> bool:
        match self.best:
            case _ if math.isnan(value):
                return False
            case Nothing():
                return True
            case Some(Record(best, _)):
                return value > best + self.min_delta

    def seen(self, value: float, snapshot) -> Watch:
        """`snapshot` is by name: called only where it is needed."""
        if self.improves(value):
            return replace(self, best=Some(Record(value, snapshot())), idle=0)
        return replace(self, idle=self.idle + 1)


def snapshot_of(model: nn.Module) -> dict[str, torch.Tensor]:
    return {name: tensor.detach().clone() for name, tensor in model.state_dict().items()}


class EarlyStopping:
    def __init__(self, patience, min_delta=0.0):
        self.patience = patience
        self.watch = Watch(min_delta)

    def step(self, value, model):
        self.watch = self.watch.seen(float(value), partial(snapshot_of, model))
        return self.watch.idle >= self.patience

    def restore(self, model):
        match self.watch.best:
            case Some(Record(_, weights)):
                model.load_state_dict(weights)
            case Nothing():
                pass


# %% [markdown]
# ## Two stages
#
# A stage is a lazy list of epochs, unfolded from its number; who consumes it decides how far it runs.


# %%
@dataclass(frozen=True)
class Epoch:
    stage: int
    train_loss: float
    train_accuracy: float
    validation_loss: float
    validation_accuracy: float


@dataclass(frozen=True)
class Constant:
    rate: float

    def at(self, epoch: int, epochs: int) -> float:
        return self.rate


@dataclass(frozen=True)
class HalfCosine:
    rate: float

    def at(self, epoch: int, epochs: int) -> float:
        return self.rate * (1.0 + math.cos(math.pi * epoch / epochs)) / 2.0


@dataclass(frozen=True)
class Stage:
    number: int
    epochs: int
    schedule: Constant | HalfCosine
    stopping: Option  # of an EarlyStopping


def with_rate(optimizer: optim.Optimizer, rate: float) -> optim.Optimizer:
    for group in optimizer.param_groups:
        group["lr"] = rate
    return optimizer


def fit(model, loaders, epochs, device):
    model.to(device)
    generator = np.random.default_rng(2004)  # the year in which Scala came out
    criterion = nn.CrossEntropyLoss(label_smoothing=0.05)

    def flipped(images):
        return images.flip(-1) if generator.random() < 0.5 else images

    def mix(images, labels):
        match int(generator.integers(3)):
            case 0:
                return mixup(flipped(images), labels, ALPHA, generator)
            case 1:
                return cutmix(flipped(images), labels, ALPHA, generator)
            case _:
                return unmixed(flipped(images), labels)

    def run(stage: Stage):
        optimizer = optim.Adam((p for p in model.parameters() if p.requires_grad), lr=stage.schedule.rate)

        def step(number: int) -> Option:
            if number >= stage.epochs:
                return Nothing()
            with_rate(optimizer, stage.schedule.at(number, stage.epochs))
            trained = train_one_epoch(model, loaders["train"], optimizer, criterion, device, mix)
            validated = evaluate(model, loaders["validation"], criterion, device)[:2]
            match stage.stopping:
                case Some(stopping) if stopping.step(validated[1], model):
                    following = stage.epochs  # nothing after this one
                case _:
                    following = number + 1
            return Some((Epoch(stage.number, *trained, *validated), following))

        return tuple(unfold(0, step))

    stopping = EarlyStopping(PATIENCE)
    freeze_backbone(model)
    first = run(Stage(1, epochs[0], Constant(RATE), Nothing()))
    unfreeze(model)
    second = run(Stage(2, epochs[1], HalfCosine(RATE / 10), Some(stopping)))
    stopping.restore(model)
    return {name: [getattr(epoch, name) for epoch in first + second] for name in Epoch.__dataclass_fields__}


# %%
def per_class_accuracy(targets, predictions, classes):
    pairs = tuple(zip(integers(targets).tolist(), integers(predictions).tolist(), strict=True))

    def accuracy(label: int) -> float:
        tally = fold_map(Tally, lambda p: Tally(1, 0.0, float(p[1] == label)), (p for p in pairs if p[0] == label))
        return tally.means[1]  # NaN where there is none

    return np.array([accuracy(label) for label in range(classes)])


# %% [markdown]
# ## Pictures


# %%
def picture(image, mean, std) -> np.ndarray:
    """(height, width, 3) or (height, width), as it was before it was normalized."""
    m, s = (reals(values).reshape(-1, 1, 1) for values in (mean, std))
    pixels = np.clip(reals(image) * s + m, 0, 1)
    return pixels.transpose(1, 2, 0) if len(pixels) == 3 else pixels[0]


def blank(axes, title=""):
    axes.set(xticks=[], yticks=[], title=title)
    return axes


def show_patches(image, patch_size, mean, std):
    pixels = picture(image, mean, std)
    rows, columns = (size // patch_size for size in pixels.shape[:2])
    names = [["whole"] + [f"{r},{c}" for c in range(columns)] for r in range(rows)]
    figure, axes = plt.subplot_mosaic(
        names, figsize=(8, 4), width_ratios=[columns] + [1] * columns, gridspec_kw={"wspace": 0.1, "hspace": 0.1}
    )
    blank(axes["whole"], "the image").imshow(pixels, cmap="gray", vmin=0, vmax=1)
    for r in range(rows):
        for c in range(columns):
            patch = pixels[r * patch_size :][:patch_size, c * patch_size :][:, :patch_size]
            blank(axes[f"{r},{c}"]).imshow(patch, cmap="gray", vmin=0, vmax=1)


def class_attention(qkv: torch.Tensor, heads: int) -> torch.Tensor:
    """(tokens, 3 * dim) -> (tokens,): the row of the class token, averaged over the heads."""
    q, k, _ = (part.unflatten(-1, (heads, -1)).transpose(0, 1) for part in qkv.chunk(3, dim=-1))
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    return scores.softmax(dim=-1).mean(dim=0)[0]


def show_attention(model, image, mean, std):
    attention = parts(model)[1][-1].attn
    where = next(model.parameters()).device
    seen: list[torch.Tensor] = []
    with torch.no_grad():
        hook = attention.qkv.register_forward_hook(lambda *call: seen.append(call[-1][0]))
        try:
            model(image.unsqueeze(0).to(where))
        finally:
            hook.remove()
        weights = class_attention(seen[0], attention.num_heads)[1:]
    rows = image.shape[1] // model.patch_embed.patch_size
    figure, (left, right) = plt.subplots(ncols=2)
    blank(left, "image").imshow(picture(image, mean, std), cmap="gray", vmin=0, vmax=1)
    blank(right, "class token, last block").imshow(weights.reshape(rows, -1).cpu().numpy(), cmap="magma")


def plot_history(history):
    count = len(history["stage"])
    xs = range(1, count + 1)
    figure, axes = plt.subplots(nrows=2, sharex=True, figsize=(7, 7))
    for place, measure in zip(axes, ("loss", "accuracy")):
        for part in ("train", "validation"):
            place.plot(xs, history[f"{part}_{measure}"], marker=".", label=part)
        for first in [x for x, stage in zip(xs, history["stage"]) if stage == 2][:1]:  # headOption
            place.axvline(first, color="black", linestyle=":", label="stage 2 begins")
        place.set_xlabel("epoch")
        place.set_ylabel(measure)
        place.legend()


def plot_per_class(names, accuracies):
    places = range(len(names))
    figure, axes = plt.subplots(figsize=(8, 4))
    axes.bar(places, reals(accuracies), color="teal")
    axes.set_xticks(places, names, rotation=45, ha="right")
    axes.set(ylim=(0, 1), xlabel="class", ylabel="accuracy")
    figure.tight_layout()


def plot_confusion_matrix(matrix, class_names):
    counts = integers(np.asarray(matrix))
    figure, axes = plt.subplots(figsize=(8, 7))
    axes.imshow(counts, cmap="Greens")
    for (row, column), count in np.ndenumerate(counts):
        dark = 2 * count > counts.max()
        axes.text(column, row, str(count), ha="center", va="center", color="white" if dark else "black")
    axes.set_xticks(range(len(class_names)), class_names, rotation=45, ha="right")
    axes.set_yticks(range(len(class_names)), class_names)
    axes.set(xlabel="predicted class", ylabel="true class")
    figure.tight_layout()


# %% [markdown]
# ## The images

# %%
with zipfile.ZipFile("dataset.zip") as archive:
    archive.extractall("data")

plain_transform = transforms.Compose([transforms.ToTensor(), transforms.Normalize(MEAN, STD)])
train_transform = transforms.Compose([transforms.RandomHorizontalFlip(), plain_transform])
augmented_images = datasets.ImageFolder("data/train", transform=train_transform)
plain_images = datasets.ImageFolder("data/train", transform=plain_transform)
test_images = datasets.ImageFolder("data/test", transform=plain_transform)
class_names = test_images.classes

fewest = int(np.bincount(plain_images.targets).min())
training_rows, validation_rows = stratified_split(
    plain_images.targets, (fewest - fewest // 5, fewest // 5), seed=42
)
loaders = {
    "train": DataLoader(Subset(augmented_images, training_rows), batch_size=BATCH_SIZE, shuffle=True),
    "validation": DataLoader(Subset(plain_images, validation_rows), batch_size=256),
}
test_loader = DataLoader(test_images, batch_size=256)

# %%
EPOCHS = (3, 12)
model = build_model(len(class_names))
history = fit(model, loaders, EPOCHS, device)
torch.save(model.state_dict(), f"{STUDENT_ID}_Finetune.pth")
plot_history(history)

# %%
loss, accuracy, targets, predictions = evaluate(model, test_loader, nn.CrossEntropyLoss(), device)
print(f"loss {loss:.4f}, accuracy {accuracy:.4f}")
plot_per_class(class_names, per_class_accuracy(targets, predictions, len(class_names)))
matrix = np.zeros((len(class_names), len(class_names)), dtype=int)
np.add.at(matrix, (np.asarray(targets), np.asarray(predictions)), 1)
plot_confusion_matrix(matrix, class_names)

# %%
images, labels = next(iter(test_loader))
show_patches(images[0], 4, MEAN, STD)
show_attention(model, images[0], MEAN, STD)
plt.show()
