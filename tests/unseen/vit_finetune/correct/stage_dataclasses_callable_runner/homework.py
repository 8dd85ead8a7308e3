"""Fine-tuning: two stages, described by data, run by an object that is called."""
from __future__ import annotations

import copy
import json
import math
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import matplotlib.pyplot as plt
import numpy as np
import torch
from handout import build_model, parts
from torch import Tensor, nn, optim
from torch.utils.data import DataLoader, Subset
from torchvision import datasets, transforms

STUDENT_ID = "400104001"
BATCH_SIZE = 64
MEAN, STD = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(42)

RECIPE = json.loads("""
{
  "rate": 0.004, "decay": 0.02, "smoothing": 0.1, "patience": 5, "seed": 1,
  "mix": {"kind": "either", "mixup_alpha": 0.2, "cutmix_alpha": 1.0, "share": 0.5}
}
""")


# ------------------------------------------------------------------ split
def stratified_split(labels, per_class, seed):
    labels = np.asarray(labels)
    generator = np.random.default_rng(seed)
    needed = sum(per_class)
    edges = np.cumsum([0, *per_class])
    collected = [[] for _ in per_class]
    for label in np.unique(labels):
        indices = generator.permutation(np.flatnonzero(labels == label))
        if len(indices) < needed:
            raise ValueError(f"class {label} has {len(indices)} images, {needed} are needed")
        for k, part in enumerate(collected):
            part.append(indices[edges[k] : edges[k + 1]])
    return tuple(np.concatenate(part) if part else np.empty(0, dtype=int) for part in collected)


# ------------------------------------------------------------------ mixing
def partner(labels, generator) -> Tensor:
    return torch.from_numpy(generator.permutation(len(labels)))


def mixup(images, labels, alpha, generator):
    lam = float(generator.beta(alpha, alpha)) if alpha > 0 else 1.0
    other = partner(labels, generator)
    return lam * images + (1 - lam) * images[other], labels, labels[other], lam


def cutmix(images, labels, alpha, generator):
    lam = float(generator.beta(alpha, alpha)) if alpha > 0 else 1.0
    other = partner(labels, generator)
    height, width = images.shape[-2:]
    side = math.sqrt(1 - lam)
    row, column = generator.uniform(0, height), generator.uniform(0, width)
    top, bottom = (int(np.clip(round(row + sign * side * height / 2), 0, height)) for sign in (-1, 1))
    left, right = (int(np.clip(round(column + sign * side * width / 2), 0, width)) for sign in (-1, 1))
    mixed = images.clone()
    mixed[:, :, top:bottom, left:right] = images[other, :, top:bottom, left:right]
    kept = 1 - (bottom - top) * (right - left) / (height * width)
    return mixed, labels, labels[other], kept


def mixed_loss(criterion, logits, labels_a, labels_b, lam):
    return lam * criterion(logits, labels_a) + (1 - lam) * criterion(logits, labels_b)


@dataclass
class Mixer:
    """One of both, by chance; an object that can be called like a function."""

    generator: np.random.Generator
    kind: str
    mixup_alpha: float
    cutmix_alpha: float
    share: float

    def __call__(self, images: Tensor, labels: Tensor):
        if self.generator.random() < self.share:
            return cutmix(images, labels, self.cutmix_alpha, self.generator)
        return mixup(images, labels, self.mixup_alpha, self.generator)


# ------------------------------------------------------------------ what learns
def freeze_backbone(model):
    for parameter in model.parameters():
        parameter.requires_grad = False
    for parameter in parts(model)[0].parameters():
        parameter.requires_grad = True


def unfreeze(model, blocks=None):
    if blocks is None:
        model.requires_grad_(True)
        return
    head, all_blocks, norm = parts(model)
    model.requires_grad_(False)
    for module in [head, norm, *all_blocks[max(0, len(all_blocks) - blocks) :]]:
        module.requires_grad_(True)


# ------------------------------------------------------------------ epochs
def train_one_epoch(model, loader, optimizer, criterion, device, mix=None):
    model.train()
    for block in parts(model)[1]:
        block.train(any(parameter.requires_grad for parameter in block.parameters()))
    loss_sum = hit_sum = count = 0
    for images, labels in loader:
        images, labels = images.to(device), labels.to(device)
        optimizer.zero_grad()
        if mix is None:
            logits = model(images)
            loss = criterion(logits, labels)
            hits = (logits.argmax(1) == labels).sum().item()
        else:
            images, labels_a, labels_b, lam = mix(images, labels)
            logits = model(images)
            loss = mixed_loss(criterion, logits, labels_a, labels_b, lam)
            guesses = logits.argmax(1)
            hits = lam * (guesses == labels_a).sum().item() + (1 - lam) * (guesses == labels_b).sum().item()
        loss.backward()
        optimizer.step()
        loss_sum += loss.item() * len(labels)
        hit_sum += hits
        count += len(labels)
    return loss_sum / count, hit_sum / count


def evaluate(model, loader, criterion, device):
    model.eval()
    loss_sum, targets, predictions = 0.0, [], []
    with torch.no_grad():
        for images, labels in loader:
            images, labels = images.to(device), labels.to(device)
            logits = model(images)
            loss_sum += criterion(logits, labels).item() * len(labels)
            targets.append(labels.cpu().numpy())
            predictions.append(logits.argmax(1).cpu().numpy())
    targets, predictions = np.concatenate(targets), np.concatenate(predictions)
    return loss_sum / len(targets), float((targets == predictions).mean()), targets, predictions


class EarlyStopping:
    def __init__(self, patience, min_delta=0.0):
        self.patience, self.min_delta = patience, min_delta
        self.best = None
        self.weights = None
        self.waiting = 0

    def step(self, value, model):
        value = float(value)
        better = not math.isnan(value) and (self.best is None or value > self.best + self.min_delta)
        if better:
            self.best, self.weights, self.waiting = value, copy.deepcopy(model.state_dict()), 0
        else:
            self.waiting += 1
        return self.waiting >= self.patience

    def restore(self, model):
        if self.weights is not None:
            model.load_state_dict(self.weights)


# ------------------------------------------------------------------ the two stages
@dataclass(frozen=True)
class Stage:
    name: str
    epochs: int
    prepare: Callable[[nn.Module], None]
    rate: float
    cosine: bool
    mixes: bool
    patience: int | None


class TwoStages:
    def __init__(self, stages: Sequence[Stage], device):
        self.stages, self.device = stages, device
        self.rows: list[dict] = []

    def __call__(self, model: nn.Module, loaders) -> list[dict]:
        model.to(self.device)
        for stage in self.stages:
            self.run(stage, model, loaders)
        return self.rows

    def run(self, stage: Stage, model: nn.Module, loaders) -> None:
        stage.prepare(model)
        learning = [parameter for parameter in model.parameters() if parameter.requires_grad]
        optimizer = optim.AdamW(learning, lr=stage.rate, weight_decay=RECIPE["decay"])
        scheduler = optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=max(1, stage.epochs)) if stage.cosine else None
        stopping = EarlyStopping(stage.patience) if stage.patience else None
        mix = Mixer(np.random.default_rng(RECIPE["seed"]), **RECIPE["mix"]) if stage.mixes else None
        soft, hard = nn.CrossEntropyLoss(label_smoothing=RECIPE["smoothing"]), nn.CrossEntropyLoss()
        for _ in range(stage.epochs):
            train_loss, train_accuracy = train_one_epoch(model, loaders["train"], optimizer, soft, self.device, mix)
            loss, accuracy, *_ = evaluate(model, loaders["validation"], hard, self.device)
            self.rows.append({"stage": stage.name, "train loss": train_loss, "train accuracy": train_accuracy,
                              "validation loss": loss, "validation accuracy": accuracy})
            print(self.rows[-1])
            if scheduler is not None:
                scheduler.step()
            if stopping is not None and stopping.step(accuracy, model):
                break
        if stopping is not None:
            stopping.restore(model)


def fit(model, loaders, epochs, device):
    first, second = epochs
    rate = RECIPE["rate"]
    rows = TwoStages(
        [
            Stage("head", first, freeze_backbone, rate, cosine=False, mixes=False, patience=None),
            Stage("everything", second, unfreeze, rate / 10, cosine=True, mixes=True, patience=RECIPE["patience"]),
        ],
        device,
    )(model, loaders)
    names = ("stage", "train loss", "train accuracy", "validation loss", "validation accuracy")
    return {name: [row[name] for row in rows] for name in names}


def per_class_accuracy(targets, predictions, classes):
    targets, predictions = np.asarray(targets), np.asarray(predictions)
    result = np.full(classes, np.nan)
    for label in range(classes):
        mine = targets == label
        if mine.any():
            result[label] = (predictions[mine] == label).mean()
    return result


# ------------------------------------------------------------------ pictures
def original(image, mean, std):
    image = image.detach().cpu()
    mean, std = (torch.as_tensor(values).view(-1, 1, 1) for values in (mean, std))
    return (image * std + mean).clamp(0, 1).permute(1, 2, 0).numpy()


def show_patches(image, patch_size, mean, std):
    picture = original(image, mean, std)
    rows, columns = picture.shape[0] // patch_size, picture.shape[1] // patch_size
    fig = plt.figure(figsize=(9, 4.5))
    left, right = fig.subfigures(1, 2)
    ax = left.subplots()
    ax.imshow(picture)
    ax.set_title("image")
    ax.axis("off")
    for (i, j), ax in np.ndenumerate(right.subplots(rows, columns, squeeze=False)):
        ax.imshow(picture[i * patch_size : (i + 1) * patch_size, j * patch_size : (j + 1) * patch_size])
        ax.axis("off")
    right.suptitle("patches")


def show_attention(model, image, mean, std):
    attention = parts(model)[1][-1].attn
    seen = {}
    hook = attention.qkv.register_forward_hook(lambda module, inputs, output: seen.update(qkv=output.detach()))
    was_training = {module: module.training for module in model.modules()}
    model.eval()
    with torch.no_grad():
        model(image[None].to(next(model.parameters()).device))
    hook.remove()
    for module, mode in was_training.items():
        module.training = mode
    _, tokens, triple = seen["qkv"].shape
    width = triple // 3 // attention.num_heads
    q, k, _ = seen["qkv"].reshape(tokens, 3, attention.num_heads, width).permute(1, 2, 0, 3)
    weights = (q @ k.transpose(1, 2) / math.sqrt(width)).softmax(-1).mean(0)
    side = math.isqrt(tokens - 1)
    fig, (left, right) = plt.subplots(1, 2, figsize=(7, 3.5))
    left.imshow(original(image, mean, std))
    left.set_title("image")
    drawn = right.imshow(weights[0, 1:].reshape(side, side).cpu(), cmap="viridis")
    right.set_title("attention of the class token")
    fig.colorbar(drawn, ax=right)
    for ax in (left, right):
        ax.axis("off")


def plot_history(history):
    fig, axes = plt.subplots(1, 2, figsize=(10, 4))
    epochs = range(1, len(history["stage"]) + 1)
    for ax, what in zip(axes, ("loss", "accuracy")):
        for part in ("train", "validation"):
            ax.plot(epochs, history[f"{part} {what}"], marker=".", label=f"{part} {what}")
        if "everything" in history["stage"]:
            ax.axvline(history["stage"].index("everything") + 0.5, color="gray", linestyle="--", label="stage 2 begins")
        ax.set(xlabel="epoch", ylabel=what)
        ax.legend()
    fig.tight_layout()


def plot_per_class(names, accuracies):
    fig, ax = plt.subplots(figsize=(8, 4))
    ax.bar(list(names), np.asarray(accuracies, dtype=float))
    ax.set(xlabel="class", ylabel="accuracy", ylim=(0, 1))
    ax.tick_params(axis="x", rotation=45)
    fig.tight_layout()


def plot_confusion_matrix(matrix, class_names):
    matrix = np.asarray(matrix)
    fig, ax = plt.subplots(figsize=(8, 7))
    ax.imshow(matrix, cmap="Blues")
    for (i, j), count in np.ndenumerate(matrix):
        ax.text(j, i, str(count), ha="center", va="center", color="white" if count > matrix.max() / 2 else "black")
    ax.set_xticks(range(len(class_names)), class_names, rotation=45)
    ax.set_yticks(range(len(class_names)), class_names)
    ax.set(xlabel="predicted class", ylabel="true class")
    fig.tight_layout()


# ------------------------------------------------------------------ run
with zipfile.ZipFile("dataset.zip") as archive:
    archive.extractall("data")
plain_transform = transforms.Compose([transforms.ToTensor(), transforms.Normalize(MEAN, STD)])
train_transform = transforms.Compose([transforms.RandomCrop(32, 4), transforms.RandomHorizontalFlip(), plain_transform])
augmented_images = datasets.ImageFolder("data/train", transform=train_transform)
plain_images = datasets.ImageFolder("data/train", transform=plain_transform)
test_images = datasets.ImageFolder("data/test", transform=plain_transform)
class_names = test_images.classes

fewest = int(np.bincount(plain_images.targets).min())
training_rows, validation_rows = stratified_split(plain_images.targets, (fewest - fewest // 5, fewest // 5), seed=42)
loaders = {
    "train": DataLoader(Subset(augmented_images, training_rows), batch_size=BATCH_SIZE, shuffle=True),
    "validation": DataLoader(Subset(plain_images, validation_rows), batch_size=256),
}
test_loader = DataLoader(test_images, batch_size=256)

model = build_model(len(class_names))
history = fit(model, loaders, (3, 12), device)
torch.save(model.state_dict(), f"{STUDENT_ID}_Finetune.pth")
plot_history(history)

loss, accuracy, targets, predictions = evaluate(model, test_loader, nn.CrossEntropyLoss(), device)
print(f"loss {loss:.4f}, accuracy {accuracy:.4f}")
plot_per_class(class_names, per_class_accuracy(targets, predictions, len(class_names)))
matrix = np.zeros((len(class_names), len(class_names)), dtype=int)
np.add.at(matrix, (targets, predictions), 1)
plot_confusion_matrix(matrix, class_names)
images, labels = next(iter(test_loader))
show_patches(images[0], 4, MEAN, STD)
show_attention(model, images[0], MEAN, STD)
plt.show()
