"""CIFAR-10: ViT and ResNet. Settings are JSON, training is an object that calls its listeners."""
from __future__ import annotations

import csv
import io
import json
import math
import time
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import matplotlib.pyplot as plt
import numpy as np
import torch
import torch.nn.functional as F
from einops import rearrange, reduce, repeat
from torch import Tensor, nn, optim
from torch.utils.data import DataLoader, Subset
from torchvision import datasets, transforms

STUDENT_ID = "400102001"
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(42)
MEAN, STD = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)

PLAN = """
{
  "batch_size": 64,
  "vit": {
    "model": {"patch_size": 4, "dim": 96, "depth": 6, "heads": 4, "mlp_ratio": 2.0, "dropout": 0.0},
    "epochs": 15
  },
  "resnet": {"model": {"width": 16}, "epochs": 12},
  "recipes": {
    "VisionTransformer": {"optimizer": "AdamW", "arguments": {"lr": 0.001, "weight_decay": 0.05}, "warmup": 0.1},
    "ResNet18": {"optimizer": "AdamW", "arguments": {"lr": 0.003, "weight_decay": 0.01}, "warmup": 0.15}
  },
  "smoothing": 0.1
}
"""
plan: dict[str, Any] = json.loads(PLAN)


# ================================================================== ViT
class PatchEmbedding(nn.Module):
    def __init__(self, image_size: int, patch_size: int, in_channels: int, dim: int):
        super().__init__()
        self.patch_size = patch_size
        self.project = nn.Linear(in_channels * patch_size * patch_size, dim)

    def forward(self, images: Tensor) -> Tensor:
        p = self.patch_size
        return self.project(rearrange(images, "b c (h p) (w q) -> b (h w) (p q c)", p=p, q=p))


def sinusoidal_positions(tokens: int, dim: int) -> Tensor:
    places = torch.arange(tokens, dtype=torch.float64)
    frequencies = 10000.0 ** (-torch.arange(0, dim, 2, dtype=torch.float64) / dim)
    angles = torch.outer(places, frequencies)
    return rearrange([angles.sin(), angles.cos()], "two n i -> n (i two)").float()


class MultiHeadSelfAttention(nn.Module):
    def __init__(self, dim: int, heads: int, dropout: float = 0.0):
        super().__init__()
        self.heads = heads
        self.to_qkv = nn.Linear(dim, 3 * dim)
        self.drop = nn.Dropout(dropout)
        self.project = nn.Linear(dim, dim)

    def forward(self, x: Tensor, return_weights: bool = False):
        q, k, v = rearrange(self.to_qkv(x), "b n (three h d) -> three b h n d", three=3, h=self.heads)
        weights = torch.softmax(q @ rearrange(k, "b h n d -> b h d n") / math.sqrt(q.shape[-1]), dim=-1)
        out = self.project(rearrange(self.drop(weights) @ v, "b h n d -> b n (h d)"))
        return (out, weights) if return_weights else out


class EncoderBlock(nn.Module):
    def __init__(self, dim: int, heads: int, mlp_ratio: float = 4.0, dropout: float = 0.0):
        super().__init__()
        self.norm_a, self.norm_b = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attention = MultiHeadSelfAttention(dim, heads, dropout)
        hidden = round(dim * mlp_ratio)
        self.mlp = nn.Sequential(nn.Linear(dim, hidden), nn.GELU(), nn.Dropout(dropout), nn.Linear(hidden, dim),
                                 nn.Dropout(dropout))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.norm_a(x))
        return x + self.mlp(self.norm_b(x))


class VisionTransformer(nn.Module):
    def __init__(self, image_size=32, patch_size=4, in_channels=3, num_classes=10, dim=192, depth=9, heads=8,
                 mlp_ratio=4.0, dropout=0.1, positions="learned", pool="cls"):
        super().__init__()
        self.patches = PatchEmbedding(image_size, patch_size, in_channels, dim)
        tokens = (image_size // patch_size) ** 2 + (pool == "cls")
        self.pool = pool
        if pool == "cls":
            self.class_token = nn.Parameter(0.02 * torch.randn(dim))
        if positions == "learned":
            self.positions = nn.Parameter(0.02 * torch.randn(tokens, dim))
        elif positions == "sinusoidal":
            self.register_buffer("positions", sinusoidal_positions(tokens, dim))
        else:
            raise ValueError(positions)
        self.drop = nn.Dropout(dropout)
        self.blocks = nn.ModuleList([EncoderBlock(dim, heads, mlp_ratio, dropout) for _ in range(depth)])
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, num_classes)

    def tokens(self, images: Tensor) -> Iterator[Tensor]:
        """The tokens before each block, and after the last."""
        x = self.patches(images)
        if self.pool == "cls":
            x = torch.cat([repeat(self.class_token, "d -> b 1 d", b=len(x)), x], dim=1)
        x = self.drop(x + self.positions)
        yield x
        for block in self.blocks:
            x = block(x)
            yield x

    def forward(self, images: Tensor) -> Tensor:
        *_, x = self.tokens(images)
        x = self.norm(x)
        return self.head(x[:, 0] if self.pool == "cls" else reduce(x, "b n d -> b d", "mean"))

    def attention(self, images: Tensor) -> Tensor:
        *_, before_last, _ = self.tokens(images)
        last = self.blocks[-1]
        return last.attention(last.norm_a(before_last), return_weights=True)[1]


def attention_map(model, image: Tensor) -> Tensor:
    was_training = model.training
    model.eval()
    place = next((p.device for p in model.parameters()), image.device)
    with torch.no_grad():
        weights = model.attention(image[None].to(place))[0].mean(0).cpu()
    model.train(was_training)
    side = math.isqrt(len(weights))
    values = weights.mean(0) if side * side == len(weights) else weights[0, 1:]
    side = math.isqrt(len(values))
    rows, columns = image.shape[1] // side, image.shape[2] // side
    grid = rearrange(values, "(h w) -> h w", h=side) / values.max()
    return repeat(grid, "h w -> (h p) (w q)", p=rows, q=columns)


# ================================================================== ResNet
def convolution(before: int, after: int, size: int, stride: int) -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(before, after, size, stride, padding=size // 2, bias=False), nn.BatchNorm2d(after))


class BasicBlock(nn.Module):
    def __init__(self, in_channels: int, channels: int, stride: int = 1):
        super().__init__()
        self.way = nn.Sequential(convolution(in_channels, channels, 3, stride), nn.ReLU(),
                                 convolution(channels, channels, 3, 1))
        same = stride == 1 and in_channels == channels
        self.shortcut = nn.Identity() if same else convolution(in_channels, channels, 1, stride)

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(self.way(x) + self.shortcut(x))


class ResNet18(nn.Module):
    def __init__(self, num_classes: int = 10, width: int = 64):
        super().__init__()
        self.stem = nn.Sequential(convolution(3, width, 3, 1), nn.ReLU())
        blocks, channels = [], width
        for group in range(4):
            for stride in (2 if group else 1, 1):
                blocks.append(BasicBlock(channels, width * 2**group, stride))
                channels = width * 2**group
        self.blocks = nn.Sequential(*blocks)
        self.head = nn.Linear(channels, num_classes)

    def forward(self, images: Tensor) -> Tensor:
        return self.head(reduce(self.blocks(self.stem(images)), "b c h w -> b c", "mean"))


def parameter_table(model: nn.Module) -> list[tuple[str, int]]:
    table: dict[str, int] = {}
    for name, parameter in model.named_parameters():
        part = name.split(".")[0]
        table[part] = table.get(part, 0) + parameter.numel()
    return list(table.items())


# ================================================================== training
def warmup_cosine(step: int, warmup_steps: int, total_steps: int) -> float:
    if step < warmup_steps:
        return step / warmup_steps
    if step >= total_steps:
        return 0.0
    return (1 + math.cos(math.pi * (step - warmup_steps) / (total_steps - warmup_steps))) / 2


@dataclass
class Mean:
    total: float = 0.0
    count: int = 0

    def add(self, value: float, count: int) -> None:
        self.total += value
        self.count += count

    @property
    def value(self) -> float:
        return self.total / max(1, self.count)


def train_epoch(model, loader, criterion, optimizer, scheduler, device):
    model.train()
    loss_mean, accuracy_mean = Mean(), Mean()
    for images, labels in loader:
        images, labels = images.to(device), labels.to(device)
        optimizer.zero_grad()
        scores = model(images)
        loss = criterion(scores, labels)
        loss.backward()
        optimizer.step()
        if scheduler is not None:
            scheduler.step()
        loss_mean.add(loss.item() * len(labels), len(labels))
        accuracy_mean.add((scores.argmax(1) == labels).sum().item(), len(labels))
    return loss_mean.value, accuracy_mean.value


def evaluate(model, loader, criterion, device):
    model.eval()
    loss_mean, targets, logits = Mean(), [], []
    with torch.no_grad():
        for images, labels in loader:
            images, labels = images.to(device), labels.to(device)
            scores = model(images)
            loss_mean.add(criterion(scores, labels).item() * len(labels), len(labels))
            targets.append(labels.cpu())
            logits.append(scores.cpu())
    targets, logits = torch.cat(targets), torch.cat(logits)
    predictions = logits.argmax(1)
    return {
        "loss": loss_mean.value,
        "accuracy": (predictions == targets).double().mean().item(),
        "targets": targets,
        "predictions": predictions,
        "probabilities": logits.softmax(1),
    }


@runtime_checkable
class Listener(Protocol):
    """What wants to know about each epoch."""

    def after_epoch(self, model: nn.Module, row: Mapping[str, float]) -> None: ...

    def at_end(self, model: nn.Module) -> None: ...


@dataclass
class Diary:
    rows: list[Mapping[str, float]] = field(default_factory=list)

    def after_epoch(self, model: nn.Module, row: Mapping[str, float]) -> None:
        self.rows.append(row)
        print("  ".join(f"{name} {value:.4g}" for name, value in row.items()))

    def at_end(self, model: nn.Module) -> None:
        pass


@dataclass
class BestWeights:
    """Keeps the best weights as bytes in memory."""

    best: float = float("-inf")
    file: io.BytesIO | None = None

    def after_epoch(self, model: nn.Module, row: Mapping[str, float]) -> None:
        if row["validation_accuracy"] > self.best:
            self.best, self.file = row["validation_accuracy"], io.BytesIO()
            torch.save(model.state_dict(), self.file)

    def at_end(self, model: nn.Module) -> None:
        if self.file is not None:
            self.file.seek(0)
            model.load_state_dict(torch.load(self.file, weights_only=True))


@dataclass
class Training:
    epochs: int
    device: Any
    listeners: list[Listener]

    def __call__(self, model: nn.Module, loaders: Mapping[str, Any]) -> None:
        model.to(self.device)
        recipe = plan["recipes"][type(model).__name__]
        optimizer = getattr(optim, recipe["optimizer"])(model.parameters(), **recipe["arguments"])
        total = self.epochs * len(loaders["train"])
        warmup = int(recipe["warmup"] * total)
        scheduler = optim.lr_scheduler.LambdaLR(optimizer, lambda step: warmup_cosine(step + 1, warmup + 1, total + 1))
        criterion = nn.CrossEntropyLoss(label_smoothing=plan["smoothing"])
        for epoch in range(1, self.epochs + 1):
            loss, accuracy = train_epoch(model, loaders["train"], criterion, optimizer, scheduler, self.device)
            found = evaluate(model, loaders["validation"], nn.CrossEntropyLoss(), self.device)
            row = {"epoch": epoch, "train_loss": loss, "train_accuracy": accuracy, "validation_loss": found["loss"],
                   "validation_accuracy": found["accuracy"]}
            for listener in self.listeners:
                listener.after_epoch(model, row)
        for listener in self.listeners:
            listener.at_end(model)


def fit(model, loaders, epochs, device):
    diary = Diary()
    Training(epochs, device, [diary, BestWeights()])(model, loaders)
    return diary.rows


# ================================================================== measures
def classification_metrics(targets, probabilities):
    targets = np.asarray(targets).astype(int)
    probabilities = np.asarray(probabilities, dtype=float)
    n, classes = probabilities.shape
    confusion = np.zeros((classes, classes), dtype=int)
    np.add.at(confusion, (targets, probabilities.argmax(axis=1)), 1)
    hits, support, predicted = np.diag(confusion), confusion.sum(axis=1), confusion.sum(axis=0)

    def ratio(above, below):
        return np.divide(above, below, out=np.zeros(classes), where=below > 0)

    precision, recall = ratio(hits, predicted), ratio(hits, support)
    f1 = ratio(2 * precision * recall, precision + recall)
    roc_auc = np.full(classes, np.nan)
    for c in range(classes):
        positive, negative = probabilities[targets == c, c], np.sort(probabilities[targets != c, c])
        if len(positive) and len(negative):
            below = np.searchsorted(negative, positive, side="left")
            not_above = np.searchsorted(negative, positive, side="right")
            roc_auc[c] = (below + not_above).sum() / (2 * len(positive) * len(negative))
    metrics = {"confusion": confusion, "precision": precision, "recall": recall, "f1": f1, "support": support,
               "roc_auc": roc_auc, "accuracy": float(hits.sum() / max(1, n))}
    for name in ("precision", "recall", "f1", "roc_auc"):
        counted = (support > 0) & ~np.isnan(metrics[name])
        values, weights = metrics[name][counted], support[counted]
        metrics[f"macro_{name}"] = float(values.mean()) if len(values) else float("nan")
        metrics[f"weighted_{name}"] = float(values @ weights / weights.sum()) if len(values) else float("nan")
    return metrics


def flat(metrics, prefix: str = "") -> Iterator[tuple[str, float]]:
    if isinstance(metrics, Mapping):
        for name, inner in metrics.items():
            yield from flat(inner, f"{prefix}.{name}" if prefix else str(name))
    elif np.ndim(metrics) == 0:
        yield prefix, float(metrics)
    elif np.ndim(metrics) == 1:
        for i, value in enumerate(metrics):
            yield f"{prefix}.{i}", float(value)


def export_metrics(metrics, path):
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["metric", "value"])
        writer.writerows(flat(metrics))


# ================================================================== pictures
def picture(image: Tensor, mean, std) -> np.ndarray:
    image = image.cpu() * torch.tensor(std).view(-1, 1, 1) + torch.tensor(mean).view(-1, 1, 1)
    return rearrange(image, "c h w -> h w c").clamp(0, 1).numpy()


def plot_learning_curves(history):
    fig, axes = plt.subplots(1, 2, figsize=(10, 4))
    for ax, what in zip(axes, ("loss", "accuracy")):
        for part in ("train", "validation"):
            ax.plot([row["epoch"] for row in history], [row[f"{part}_{what}"] for row in history], marker=".", label=part)
        ax.set(xlabel="epoch", ylabel=what, title=what)
        ax.legend()
    return fig


def plot_confusion_matrix(matrix, class_names):
    matrix = np.asarray(matrix)
    fig, ax = plt.subplots(figsize=(8, 7))
    ax.imshow(matrix, cmap="Blues")
    for i, j in np.ndindex(*matrix.shape):
        ax.text(j, i, f"{matrix[i, j]:d}", ha="center", va="center", color="w" if matrix[i, j] > matrix.max() / 2 else "k")
    ax.set_xticks(range(len(class_names)), class_names, rotation=45)
    ax.set_yticks(range(len(class_names)), class_names)
    ax.set(xlabel="predicted class", ylabel="true class")
    fig.tight_layout()
    return fig


def plot_roc(targets, probabilities, class_names):
    targets, probabilities = np.asarray(targets), np.asarray(probabilities)
    fig, ax = plt.subplots(figsize=(6, 6))
    for c, name in enumerate(class_names):
        truth = targets == c
        if truth.all() or not truth.any():
            continue
        thresholds = np.unique(probabilities[:, c])[::-1]
        said = probabilities[:, c][None] >= thresholds[:, None]
        true_rate = np.r_[0, said[:, truth].mean(axis=1)]
        false_rate = np.r_[0, said[:, ~truth].mean(axis=1)]
        ax.plot(false_rate, true_rate, label=name)
    ax.plot([0, 1], [0, 1], "k:", linewidth=1)
    ax.set(xlabel="false positive rate", ylabel="true positive rate", title="ROC, each class against all others")
    ax.legend(fontsize=8)
    return fig


def plot_attention(model, images, labels, class_names, mean, std):
    fig, axes = plt.subplots(len(images), 3, figsize=(7, 2.3 * len(images)), squeeze=False)
    for row, image, label in zip(axes, images, labels):
        seen, heat = picture(image, mean, std), np.asarray(attention_map(model, image))
        row[0].imshow(seen)
        row[0].set_title(class_names[int(label)], fontsize=9)
        row[1].imshow(heat, cmap="inferno", vmin=0, vmax=1)
        row[1].set_title("attention", fontsize=9)
        row[2].imshow(seen)
        row[2].imshow(heat, cmap="inferno", alpha=0.5, vmin=0, vmax=1)
        row[2].set_title("overlay", fontsize=9)
        for ax in row:
            ax.axis("off")
    return fig


def plot_top3(images, labels, probabilities, class_names, mean, std):
    fig, axes = plt.subplots(1, len(images), figsize=(2.6 * len(images), 3.4), squeeze=False)
    for ax, image, label, row in zip(axes[0], images, labels, torch.as_tensor(probabilities)):
        ax.imshow(picture(image, mean, std))
        ax.axis("off")
        likeliest = "\n".join(f"{class_names[i]} {row[i]:.1%}" for i in row.argsort(descending=True, stable=True)[:3].tolist())
        ax.set_title(f"true: {class_names[int(label)]}\n{likeliest}", fontsize=8)
    fig.tight_layout()
    return fig


# ================================================================== run
with zipfile.ZipFile("dataset.zip") as archive:
    archive.extractall("data")
plain_transform = transforms.Compose([transforms.ToTensor(), transforms.Normalize(MEAN, STD)])
train_transform = transforms.Compose([transforms.RandomCrop(32, padding=4), transforms.RandomHorizontalFlip(), plain_transform])
augmented_images = datasets.ImageFolder("data/train", transform=train_transform)
plain_images = datasets.ImageFolder("data/train", transform=plain_transform)
test_images = datasets.ImageFolder("data/test", transform=plain_transform)
class_names = test_images.classes

order = torch.randperm(len(plain_images), generator=torch.Generator().manual_seed(42)).tolist()
held = len(order) // 10
loaders = {
    "train": DataLoader(Subset(augmented_images, order[held:]), batch_size=plan["batch_size"], shuffle=True),
    "validation": DataLoader(Subset(plain_images, order[:held]), batch_size=256),
}
test_loader = DataLoader(test_images, batch_size=256)

models: dict[str, nn.Module] = {
    "vit": VisionTransformer(num_classes=len(class_names), **plan["vit"]["model"]),
    "resnet": ResNet18(num_classes=len(class_names), **plan["resnet"]["model"]),
}
measures: dict[str, dict] = {}
for name, model in models.items():
    start = time.time()
    history = fit(model, loaders, plan[name]["epochs"], device)
    torch.save(model.state_dict(), f"{STUDENT_ID}_CIFAR10_{name}.pth")
    found = evaluate(model, test_loader, nn.CrossEntropyLoss(), device)
    measures[name] = classification_metrics(found["targets"], found["probabilities"])
    print(name, f"{time.time() - start:.0f} s, {found['accuracy']:.4f}", parameter_table(model))
    plot_learning_curves(history)
    plot_confusion_matrix(measures[name]["confusion"], class_names)
    plot_roc(found["targets"], found["probabilities"], class_names)
export_metrics(measures, f"{STUDENT_ID}_metrics.csv")

images, labels = next(iter(test_loader))
plot_attention(models["vit"], images[:6], labels[:6], class_names, MEAN, STD)
found = evaluate(models["vit"], [(images[:6], labels[:6])], nn.CrossEntropyLoss(), device)
plot_top3(images[:6], labels[:6], found["probabilities"], class_names, MEAN, STD)
plt.show()

# ================================================================== study
RUN_STUDY = False
COLUMNS = ["patch_size", "dim", "depth", "heads", "mlp_ratio", "positions", "epochs", "seed", "parameters",
           "validation_accuracy"]
BASE = {"patch_size": 8, "dim": 64, "depth": 3, "heads": 4, "mlp_ratio": 2.0, "positions": "learned", "epochs": 6}
CHANGES = [{}, {"patch_size": 4}, {"dim": 96}, {"depth": 6}, {"heads": 2}, {"mlp_ratio": 4.0}, {"positions": "sinusoidal"}]


def study() -> Iterator[dict]:
    for change in CHANGES:
        for seed in (0, 1, 2) if not change else (0,):
            values = BASE | change
            torch.manual_seed(seed)
            sizes = {name: value for name, value in values.items() if name != "epochs"}
            model = VisionTransformer(num_classes=len(class_names), dropout=0.0, **sizes)
            parameters = sum(p.numel() for p in model.parameters())
            fit(model, loaders, values["epochs"], device)
            found = evaluate(model, loaders["validation"], nn.CrossEntropyLoss(), device)
            yield values | {"seed": seed, "parameters": parameters, "validation_accuracy": round(found["accuracy"], 4)}


if RUN_STUDY:
    with open(f"{STUDENT_ID}_study.csv", "w", newline="", encoding="utf-8") as file:
        table = csv.DictWriter(file, COLUMNS)
        table.writeheader()
        table.writerows(study())
