"""Assignment 2: a Vision Transformer with mean pooling and sinusoidal positions, compared with a ResNet."""

from __future__ import annotations

import csv
import io
import math
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import seaborn as sns
import torch
from einops import rearrange, reduce, repeat
from einops.layers.torch import Rearrange, Reduce
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn, optim
from torch.utils.data import DataLoader, Subset
from torchvision import datasets
from torchvision.transforms import v2

STUDENT_ID = "400102003"
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(7)


# %% ------------------------------------------------------------------------------------------- settings
@dataclass(frozen=True)
class Settings:
    """All numbers in one place."""

    batch_size: int = 64
    vit_epochs: int = 7
    resnet_epochs: int = 3
    learning_rate: float = 2e-3
    weight_decay: float = 0.05
    warmup_share: float = 0.15
    run_study: bool = False  # done once


SETTINGS = Settings()
MEAN: tuple[float, ...] = (0.4914, 0.4822, 0.4465)
STD: tuple[float, ...] = (0.2470, 0.2435, 0.2616)

# %% ----------------------------------------------------------------------------------------------- data
with zipfile.ZipFile("dataset.zip") as archive:
    archive.extractall("data")

to_tensor = [v2.ToImage(), v2.ToDtype(torch.float32, scale=True), v2.Normalize(MEAN, STD)]
plain_transform = v2.Compose(to_tensor)
train_transform = v2.Compose([v2.RandomCrop(32, padding=4), v2.RandomHorizontalFlip(0.5), *to_tensor])

augmented_images = datasets.ImageFolder("data/train", transform=train_transform)
plain_images = datasets.ImageFolder("data/train", transform=plain_transform)
test_images = datasets.ImageFolder("data/test", transform=plain_transform)
class_names: list[str] = test_images.classes

# stratified: every tenth image of each class, after shuffling, is for validation
labels_of_all = np.array(plain_images.targets)
rng = np.random.default_rng(7)
validation_indices: list[int] = []
for label in range(len(class_names)):
    members = rng.permutation(np.flatnonzero(labels_of_all == label))
    validation_indices += members[: round(0.1 * len(members))].tolist()
train_indices = sorted(set(range(len(labels_of_all))) - set(validation_indices))

loaders: dict[str, DataLoader] = {
    "train": DataLoader(Subset(augmented_images, train_indices), SETTINGS.batch_size, shuffle=True),
    "validation": DataLoader(Subset(plain_images, validation_indices), 200),
}
test_loader = DataLoader(test_images, 200)


# %% ------------------------------------------------------------------------------------------------ ViT
class PatchEmbedding(nn.Module):
    """(B, C, H, W) -> (B, N, dim)."""

    def __init__(self, image_size: int, patch_size: int, in_channels: int, dim: int) -> None:
        super().__init__()
        self.embed = nn.Sequential(
            Rearrange("b c (rows p) (cols q) -> b (rows cols) (p q c)", p=patch_size, q=patch_size),
            nn.Linear(patch_size * patch_size * in_channels, dim),
        )

    def forward(self, images: Tensor) -> Tensor:
        return self.embed(images)


def sinusoidal_positions(tokens: int, dim: int) -> Tensor:
    """Section 3.5 of 'Attention is all you need', computed in double precision."""
    position = torch.arange(tokens, dtype=torch.float64)
    frequency = 10000.0 ** (-torch.arange(0, dim, 2, dtype=torch.float64) / dim)
    angles = torch.outer(position, frequency)
    return rearrange([angles.sin(), angles.cos()], "two n i -> n (i two)").float()


class MultiHeadSelfAttention(nn.Module):
    def __init__(self, dim: int, heads: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.heads = heads
        self.scale = (dim // heads) ** -0.5
        self.to_qkv = nn.Linear(dim, 3 * dim)
        self.to_out = nn.Linear(dim, dim)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, return_weights: bool = False) -> Tensor | tuple[Tensor, Tensor]:
        q, k, v = rearrange(self.to_qkv(x), "b n (three h d) -> three b h n d", three=3, h=self.heads)
        weights = torch.softmax(self.scale * (q @ k.mT), dim=-1)
        mixed = rearrange(self.dropout(weights) @ v, "b h n d -> b n (h d)")
        out = self.to_out(mixed)
        return (out, weights) if return_weights else out


class EncoderBlock(nn.Module):
    def __init__(self, dim: int, heads: int, mlp_ratio: float = 4.0, dropout: float = 0.0) -> None:
        super().__init__()
        hidden = round(dim * mlp_ratio)
        self.attend = nn.Sequential(nn.LayerNorm(dim), MultiHeadSelfAttention(dim, heads, dropout))
        self.think = nn.Sequential(
            nn.LayerNorm(dim), nn.Linear(dim, hidden), nn.GELU(), nn.Linear(hidden, dim)
        )

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attend(x)
        return x + self.think(x)


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
        self.pool = pool
        tokens = (image_size // patch_size) ** 2 + int(pool == "cls")
        self.patches = PatchEmbedding(image_size, patch_size, in_channels, dim)
        if pool == "cls":
            self.class_token = nn.Parameter(0.02 * torch.randn(dim))
        match positions:
            case "learned":
                self.positions = nn.Parameter(0.02 * torch.randn(tokens, dim))
            case "sinusoidal":
                self.register_buffer("positions", sinusoidal_positions(tokens, dim))
            case _:
                raise ValueError(f"unknown positions: {positions}")
        self.blocks = nn.Sequential(*(EncoderBlock(dim, heads, mlp_ratio, dropout) for _ in range(depth)))
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, num_classes)

    def forward(self, images: Tensor) -> Tensor:
        x = self.patches(images)
        if self.pool == "cls":
            x = torch.cat([repeat(self.class_token, "d -> b 1 d", b=x.shape[0]), x], dim=1)
        x = self.norm(self.blocks(x + self.positions))
        pooled = x[:, 0] if self.pool == "cls" else reduce(x, "b n d -> b d", "mean")
        return self.head(pooled)

    def attention(self, images: Tensor) -> Tensor:
        """A hook catches what goes into the last attention; it is then asked again, for its weights."""
        last = [part for part in self.modules() if isinstance(part, MultiHeadSelfAttention)][-1]
        caught: list[Tensor] = []
        handle = last.register_forward_pre_hook(lambda module, inputs: caught.append(inputs[0]))
        try:
            self(images)
        finally:
            handle.remove()
        return last(caught[0], return_weights=True)[1]


@torch.no_grad()
def attention_map(model: VisionTransformer, image: Tensor) -> Tensor:
    modes = {part: part.training for part in model.modules()}
    where = next(model.parameters()).device
    try:
        model.eval()
        weights = model.attention(rearrange(image, "c h w -> 1 c h w").to(where)).cpu()
    finally:
        for part, mode in modes.items():
            part.training = mode
    weights = reduce(weights, "1 h i j -> i j", "mean")
    tokens = weights.shape[0]
    has_class_token = math.isqrt(tokens) ** 2 != tokens
    values = weights[0, 1:] if has_class_token else reduce(weights, "i j -> j", "mean")
    values = values / values.max().clamp(min=torch.finfo(values.dtype).tiny)
    side = math.isqrt(values.numel())
    height, width = image.shape[-2:]
    return repeat(values, "(r c) -> (r p) (c q)", r=side, p=height // side, q=width // side)


# %% --------------------------------------------------------------------------------------------- ResNet
def convolution(inputs: int, outputs: int, kernel: int, stride: int = 1) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, kernel, stride=stride, padding=(kernel - 1) // 2, bias=False),
        nn.BatchNorm2d(outputs),
    )


class BasicBlock(nn.Module):
    def __init__(self, in_channels: int, channels: int, stride: int = 1) -> None:
        super().__init__()
        self.first = convolution(in_channels, channels, 3, stride)
        self.second = convolution(channels, channels, 3)
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or in_channels != channels:
            self.shortcut = convolution(in_channels, channels, 1, stride)
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.relu(self.second(self.relu(self.first(x))) + self.shortcut(x))


class ResNet18(nn.Module):
    def __init__(self, num_classes: int = 10, width: int = 64) -> None:
        super().__init__()
        self.stem = nn.Sequential(convolution(3, width, 3), nn.ReLU(inplace=True))
        blocks: list[nn.Module] = []
        channels = width
        for group in range(4):
            wanted = width * 2**group
            blocks.append(BasicBlock(channels, wanted, stride=1 if group == 0 else 2))
            blocks.append(BasicBlock(wanted, wanted))
            channels = wanted
        self.blocks = nn.Sequential(*blocks)
        self.classify = nn.Sequential(Reduce("b c h w -> b c", "mean"), nn.Linear(channels, num_classes))

    def forward(self, images: Tensor) -> Tensor:
        return self.classify(self.blocks(self.stem(images)))


def parameter_table(model: nn.Module) -> list[tuple[str, int]]:
    """Grouped by the first part of the name."""
    table: dict[str, int] = {}
    for name, parameter in model.named_parameters():
        part = name.partition(".")[0]
        table[part] = table.get(part, 0) + parameter.numel()
    return list(table.items())


# %% ------------------------------------------------------------------------------------------- training
def warmup_cosine(step: int, warmup_steps: int, total_steps: int) -> float:
    if step < warmup_steps and step < total_steps:
        return step / warmup_steps
    remaining = max(total_steps - warmup_steps, 1)
    progress = min((step - warmup_steps) / remaining, 1.0)
    return 0.0 if step >= total_steps else (1.0 + math.cos(math.pi * progress)) / 2.0


def train_epoch(
    model: nn.Module,
    loader: Iterable[tuple[Tensor, Tensor]],
    criterion: nn.Module,
    optimizer: optim.Optimizer,
    scheduler: optim.lr_scheduler.LRScheduler | None,
    device: torch.device,
) -> tuple[float, float]:
    model.train()
    losses: list[float] = []
    correct: list[int] = []
    sizes: list[int] = []
    for images, labels in loader:
        images, labels = images.to(device), labels.to(device)
        optimizer.zero_grad(set_to_none=True)
        scores = model(images)
        loss = criterion(scores, labels)
        loss.backward()
        optimizer.step()
        if scheduler is not None:
            scheduler.step()
        losses.append(loss.item())
        correct.append(int((scores.argmax(dim=1) == labels).sum()))
        sizes.append(labels.shape[0])
    return float(np.average(losses, weights=sizes)), sum(correct) / sum(sizes)


@torch.inference_mode()
def evaluate(
    model: nn.Module, loader: Iterable[tuple[Tensor, Tensor]], criterion: nn.Module, device: torch.device
) -> dict[str, Any]:
    model.eval()
    losses: list[float] = []
    targets: list[Tensor] = []
    probabilities: list[Tensor] = []
    for images, labels in loader:
        scores = model(images.to(device))
        losses.append(criterion(scores, labels.to(device)).item())
        targets.append(labels.cpu())
        probabilities.append(scores.softmax(dim=1).cpu())
    all_targets, all_probabilities = torch.cat(targets), torch.cat(probabilities)
    predictions = all_probabilities.argmax(dim=1)
    return {
        "loss": float(np.average(losses, weights=[len(batch) for batch in targets])),
        "accuracy": (predictions == all_targets).double().mean().item(),
        "targets": all_targets,
        "predictions": predictions,
        "probabilities": all_probabilities,
    }


@dataclass
class Curve:
    loss: list[float] = field(default_factory=list)
    accuracy: list[float] = field(default_factory=list)

    def add(self, loss: float, accuracy: float) -> None:
        self.loss.append(loss)
        self.accuracy.append(accuracy)


@dataclass
class History:
    training: Curve = field(default_factory=Curve)
    validation: Curve = field(default_factory=Curve)
    best_epoch: int = 0


def fit(model: nn.Module, loaders: dict[str, DataLoader], epochs: int, device: torch.device) -> History:
    model.to(device)
    criterion = nn.CrossEntropyLoss()
    learned = [p for p in model.parameters() if p.requires_grad]
    groups = [  # biases, norms and single vectors are not decayed
        {"params": [p for p in learned if p.ndim > 1], "weight_decay": SETTINGS.weight_decay},
        {"params": [p for p in learned if p.ndim <= 1], "weight_decay": 0.0},
    ]
    optimizer = optim.AdamW(groups, lr=SETTINGS.learning_rate)
    total = epochs * len(loaders["train"])
    factor = partial(warmup_cosine, warmup_steps=int(SETTINGS.warmup_share * total), total_steps=total)
    scheduler = optim.lr_scheduler.LambdaLR(optimizer, factor)

    history, best, saved = History(), -math.inf, io.BytesIO()
    for epoch in range(1, epochs + 1):
        history.training.add(*train_epoch(model, loaders["train"], criterion, optimizer, scheduler, device))
        result = evaluate(model, loaders["validation"], criterion, device)
        history.validation.add(result["loss"], result["accuracy"])
        print(f"{epoch:3d}  {history.training.accuracy[-1]:.4f}  {result['accuracy']:.4f}", flush=True)
        if result["accuracy"] > best:
            best, history.best_epoch = result["accuracy"], epoch
            saved = io.BytesIO()
            torch.save(model.state_dict(), saved)
    if history.best_epoch:
        saved.seek(0)
        model.load_state_dict(torch.load(saved, map_location=device))
    return history


# %% ------------------------------------------------------------------------------------------- measures
Floats = NDArray[np.float64]


def ratio(above: ArrayLike, below: ArrayLike) -> Floats:
    """above / below, and 0 for 0 / 0."""
    above, below = np.asarray(above, float), np.asarray(below, float)
    return np.where(below == 0, 0.0, above / np.where(below == 0, 1.0, below))


def area_under_roc(positive: Floats, negative: Floats) -> float:
    """The share of pairs that are in the right order; ties count one half."""
    if positive.size == 0 or negative.size == 0:
        return math.nan
    difference = positive[:, None] - negative[None, :]
    return float((difference > 0).mean() + 0.5 * (difference == 0).mean())


def mean_over(values: Floats, support: Floats, weighted: bool) -> float:
    use = (support > 0) & np.isfinite(values)
    if not use.any():
        return math.nan
    weights = support[use] if weighted else np.ones(use.sum())
    return float((values[use] * weights).sum() / weights.sum())


def classification_metrics(targets: ArrayLike, probabilities: ArrayLike) -> dict[str, Any]:
    true = np.asarray(targets, dtype=np.int64)
    probability = np.asarray(probabilities, dtype=np.float64)
    predicted = probability.argmax(axis=1)
    classes = np.arange(probability.shape[1])

    is_true, is_predicted = true[:, None] == classes, predicted[:, None] == classes
    confusion = is_true.T.astype(np.int64) @ is_predicted.astype(np.int64)
    hits, support = confusion.diagonal(), confusion.sum(axis=1)
    precision, recall = ratio(hits, confusion.sum(axis=0)), ratio(hits, support)

    measures: dict[str, Any] = {
        "confusion": confusion,
        "precision": precision,
        "recall": recall,
        "f1": ratio(2 * precision * recall, precision + recall),
        "support": support,
        "roc_auc": np.array(
            [area_under_roc(probability[is_true[:, c], c], probability[~is_true[:, c], c]) for c in classes]
        ),
        "accuracy": float(ratio(hits.sum(), len(true))),
    }
    for kind in ("macro", "weighted"):
        for name in ("precision", "recall", "f1", "roc_auc"):
            measures[f"{kind}_{name}"] = mean_over(measures[name], support, weighted=kind == "weighted")
    return measures


def leaves(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    match value:
        case dict():
            for key, inner in value.items():
                yield from leaves(inner, (*path, str(key)))
        case np.ndarray() | Tensor() | list() | tuple() if np.ndim(value) > 0:
            for index, inner in enumerate(value):
                yield from leaves(inner, (*path, str(index)))
        case _:
            yield ".".join(path), value.item() if hasattr(value, "item") else value


def export_metrics(metrics: dict[str, Any], path: str) -> None:
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(("metric", "value"))
        writer.writerows(leaves(metrics))


# %% ------------------------------------------------------------------------------------------- pictures
sns.set_theme(style="whitegrid")


def plot_learning_curves(history: History) -> Figure:
    figure, axes = plt.subplots(ncols=2, figsize=(11, 4), layout="constrained")
    for axis, measure in zip(axes, ("loss", "accuracy"), strict=True):
        for name, curve in asdict(history).items():
            if isinstance(curve, dict):
                values = curve[measure]
                sns.lineplot(x=range(1, len(values) + 1), y=values, label=name, marker="o", ax=axis)
        axis.set(xlabel="epoch", ylabel=measure)
    return figure


def plot_confusion_matrix(matrix: ArrayLike, class_names: list[str]) -> Figure:
    figure, axis = plt.subplots(figsize=(9, 8), layout="constrained")
    sns.heatmap(
        np.asarray(matrix), annot=True, fmt="d", cmap="rocket_r", square=True,
        xticklabels=class_names, yticklabels=class_names, ax=axis,
    )  # fmt: skip
    axis.set(xlabel="predicted class", ylabel="true class", title="Confusion matrix")
    return figure


def plot_roc(targets: ArrayLike, probabilities: ArrayLike, class_names: list[str]) -> Figure:
    true, probability = np.asarray(targets), np.asarray(probabilities)
    figure, axis = plt.subplots(figsize=(7, 7), layout="constrained")
    for c, name in enumerate(class_names):
        positive = np.sort(probability[true == c, c])
        negative = np.sort(probability[true != c, c])
        if positive.size == 0 or negative.size == 0:
            continue
        thresholds = np.unique(probability[:, c])  # ascending: the rates fall from 1
        sensitivity = 1 - np.searchsorted(positive, thresholds, side="left") / positive.size
        fallout = 1 - np.searchsorted(negative, thresholds, side="left") / negative.size
        area = area_under_roc(positive, negative)
        axis.plot(np.append(fallout, 0)[::-1], np.append(sensitivity, 0)[::-1], label=f"{name}: {area:.3f}")
    axis.plot([0, 1], [0, 1], linestyle=":", color="gray")
    axis.set(xlabel="false positive rate", ylabel="true positive rate", title="ROC, one against the rest")
    axis.legend(title="area under the curve")
    return figure


def original(image: Tensor, mean: Iterable[float], std: Iterable[float]) -> NDArray[np.float32]:
    m, s = (torch.tensor([float(v) for v in values])[:, None, None] for values in (mean, std))
    return rearrange((image.cpu() * s + m).clamp(0, 1), "c h w -> h w c").numpy()


def plot_attention(
    model: VisionTransformer,
    images: Tensor,
    labels: Tensor,
    class_names: list[str],
    mean: Iterable[float],
    std: Iterable[float],
) -> Figure:
    mean, std = tuple(mean), tuple(std)
    figure, axes = plt.subplots(3, len(images), figsize=(2.2 * len(images), 6.6), squeeze=False, layout="constrained")
    for column, image, label in zip(axes.T, images, labels):
        picture, weights = original(image, mean, std), attention_map(model, image)
        column[0].imshow(picture)
        column[0].set_title(class_names[int(label)], fontsize=8)
        column[1].imshow(weights, cmap="magma", vmin=0, vmax=1)
        column[2].imshow(picture)
        column[2].imshow(weights, cmap="magma", vmin=0, vmax=1, alpha=0.5)
    for axis in axes.flat:
        axis.set_axis_off()
    return figure


def plot_top3(
    images: Tensor,
    labels: Tensor,
    probabilities: ArrayLike,
    class_names: list[str],
    mean: Iterable[float],
    std: Iterable[float],
) -> Figure:
    mean, std = tuple(mean), tuple(std)
    probability = np.asarray(probabilities)
    figure, axes = plt.subplots(len(images), 2, figsize=(7, 1.8 * len(images)), squeeze=False, layout="constrained")
    for (left, right), image, label, row in zip(axes, images, labels, probability):
        left.imshow(original(image, mean, std))
        left.set_title(f"true: {class_names[int(label)]}", fontsize=9)
        left.set_axis_off()
        best = np.argsort(-row, kind="stable")[:3]
        names = [class_names[c] for c in best]
        right.barh(names, row[best], color=["C2" if c == int(label) else "C3" for c in best])
        for place, value in enumerate(row[best]):
            right.text(min(value, 0.8), place, f" {value:.1%}", va="center")
        right.invert_yaxis()
        right.set(xlim=(0, 1))
    return figure


# %% ----------------------------------------------------------------------------------- train both models
vit = VisionTransformer(
    num_classes=len(class_names), dim=64, depth=4, heads=4, mlp_ratio=2.0, dropout=0.0,
    positions="sinusoidal", pool="mean",
)  # fmt: skip
vit_history = fit(vit, loaders, SETTINGS.vit_epochs, device)
torch.save(vit.state_dict(), f"{STUDENT_ID}_CIFAR10_vit.pth")

resnet = ResNet18(num_classes=len(class_names), width=16)
resnet_history = fit(resnet, loaders, SETTINGS.resnet_epochs, device)
torch.save(resnet.state_dict(), f"{STUDENT_ID}_CIFAR10_resnet.pth")

# %% -------------------------------------------------------------------------------------------- compare
criterion = nn.CrossEntropyLoss()
measures: dict[str, Any] = {}
for name, model, history in (("vit", vit, vit_history), ("resnet", resnet, resnet_history)):
    found = evaluate(model, test_loader, criterion, device)
    measures[name] = classification_metrics(found["targets"], found["probabilities"])
    print(f"{name}: test accuracy {found['accuracy']:.4f}")
    print(parameter_table(model))
    plot_learning_curves(history)
    plot_confusion_matrix(measures[name]["confusion"], class_names)
    plot_roc(found["targets"], found["probabilities"], class_names)

named = {
    model: {
        key: dict(zip(class_names, value)) if np.ndim(value) == 1 else value
        for key, value in numbers.items()
        if np.ndim(value) < 2
    }
    for model, numbers in measures.items()
}
export_metrics(named, f"{STUDENT_ID}_metrics.csv")

images, labels = next(iter(test_loader))
images, labels = images[:5], labels[:5]
plot_attention(vit, images, labels, class_names, MEAN, STD)
with torch.inference_mode():
    probabilities = vit.eval()(images.to(device)).softmax(dim=1).cpu()
plot_top3(images, labels, probabilities, class_names, MEAN, STD)


# %% ---------------------------------------------------------------------------------------------- study
@dataclass(frozen=True)
class Row:
    patch_size: int = 8
    dim: int = 64
    depth: int = 2
    heads: int = 4
    mlp_ratio: float = 2.0
    positions: str = "sinusoidal"
    epochs: int = 3
    seed: int = 0
    parameters: int = 0
    validation_accuracy: float = math.nan

    def trained(self) -> Row:
        torch.manual_seed(self.seed)
        model = VisionTransformer(
            patch_size=self.patch_size, num_classes=len(class_names), dim=self.dim, depth=self.depth,
            heads=self.heads, mlp_ratio=self.mlp_ratio, dropout=0.0, positions=self.positions,
        )  # fmt: skip
        fit(model, loaders, self.epochs, device)
        accuracy = evaluate(model, loaders["validation"], criterion, device)["accuracy"]
        parameters = sum(count for _, count in parameter_table(model))
        return replace(self, parameters=parameters, validation_accuracy=round(accuracy, 4))


if SETTINGS.run_study:
    base = Row()
    plan = [
        base,
        replace(base, seed=1),
        replace(base, seed=2),
        replace(base, patch_size=4),
        replace(base, dim=32),
        replace(base, depth=4),
        replace(base, heads=1),
        replace(base, mlp_ratio=4.0),
        replace(base, positions="learned"),
    ]
    table = [asdict(row.trained()) for row in plan]
    with open(f"{STUDENT_ID}_study.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, fieldnames=list(table[0]))
        writer.writeheader()
        writer.writerows(table)
