"""Assignment 1 - Vision Transformer for steel surface defects.

    python homework.py
    python homework.py --epochs 20 --lr 5e-4 --patch-size 7
"""
from __future__ import annotations

import argparse
import logging
import math
import random
import shutil
import sys
import time
import zipfile
from dataclasses import asdict, dataclass
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import seaborn as sns
import torch
import torch.nn.functional as F
from sklearn.metrics import confusion_matrix
from torch import Tensor, nn, optim
from torch.optim.lr_scheduler import LambdaLR
from torch.utils.data import DataLoader
from torchvision import datasets, transforms

try:
    from torch.utils.tensorboard import SummaryWriter
except Exception:  # tensorboard is not installed everywhere
    SummaryWriter = None

STUDENT_ID = "400107901"
logger = logging.getLogger("vit_homework")


@dataclass
class Config:
    data_zip: str = "dataset.zip"
    data_dir: str = "data"
    log_dir: str = "runs"
    seed: int = 42
    # data
    image_size: int = 28
    batch_size: int = 32
    workers: int = 2
    # model
    patch_size: int = 4
    dim: int = 96
    depth: int = 6
    heads: int = 4
    dim_head: int = 32
    mlp_dim: int = 192
    dropout: float = 0.1
    emb_dropout: float = 0.0
    pool: str = "cls"
    # optimization
    lr: float = 8e-4
    weight_decay: float = 0.05
    epochs: int = 10
    warmup: int = 2


# ---------------------------------------------------------------- data
def find_class_folders(root: Path) -> Path:
    """The folder that holds one folder per class: `root` itself, or a single folder inside it."""
    folders = [path for path in root.iterdir() if path.is_dir() and path.name != "__MACOSX"]
    return find_class_folders(folders[0]) if len(folders) == 1 else root


def split_dataset(source: Path, destination: Path, train_share: float = 0.7, seed: int = 42) -> None:
    """Copies source/<class>/* to destination/train/<class> and destination/test/<class>, class by class."""
    shutil.rmtree(destination, ignore_errors=True)
    for class_folder in sorted(path for path in source.iterdir() if path.is_dir()):
        names = sorted(p.name for p in class_folder.iterdir() if p.suffix.lower() in (".jpg", ".png", ".bmp"))
        random.Random(seed).shuffle(names)
        n_train = round(train_share * len(names))
        for part, chosen in (("train", names[:n_train]), ("test", names[n_train:])):
            folder = destination / part / class_folder.name
            folder.mkdir(parents=True)
            for name in chosen:
                shutil.copy(class_folder / name, folder / name)


def build_transforms(size: int) -> tuple[transforms.Compose, transforms.Compose]:
    common = [transforms.Resize((size, size)), transforms.Grayscale(num_output_channels=1)]
    end = [transforms.ToTensor(), transforms.Normalize((0.5,), (0.5,))]
    augment = [
        transforms.RandomHorizontalFlip(),
        transforms.RandomVerticalFlip(),
        transforms.RandomAffine(degrees=0, translate=(0.1, 0.1)),
    ]
    return transforms.Compose(common + augment + end), transforms.Compose(common + end)


def build_loaders(cfg: Config) -> tuple[DataLoader, DataLoader, list[str]]:
    train_tf, test_tf = build_transforms(cfg.image_size)
    train_set = datasets.ImageFolder(f"{cfg.data_dir}/train", transform=train_tf)
    test_set = datasets.ImageFolder(f"{cfg.data_dir}/test", transform=test_tf)
    kwargs = dict(batch_size=cfg.batch_size, num_workers=cfg.workers, pin_memory=torch.cuda.is_available())
    train_loader = DataLoader(train_set, shuffle=True, **kwargs)
    test_loader = DataLoader(test_set, shuffle=False, **kwargs)
    return train_loader, test_loader, train_set.classes


# ---------------------------------------------------------------- model
class PreNorm(nn.Module):
    def __init__(self, dim: int, fn: nn.Module):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.fn = fn

    def forward(self, x: Tensor, **kwargs) -> Tensor:
        return self.fn(self.norm(x), **kwargs)


class FeedForward(nn.Module):
    def __init__(self, dim: int, hidden_dim: int, dropout: float = 0.0):
        super().__init__()
        self.fc1 = nn.Linear(dim, hidden_dim)
        self.act = nn.GELU()
        self.drop1 = nn.Dropout(dropout)
        self.fc2 = nn.Linear(hidden_dim, dim)
        self.drop2 = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        x = self.drop1(self.act(self.fc1(x)))
        return self.drop2(self.fc2(x))


class Attention(nn.Module):
    def __init__(self, dim: int, heads: int = 4, dim_head: int = 64, dropout: float = 0.0):
        super().__init__()
        inner = heads * dim_head
        self.heads = heads
        self.dim_head = dim_head
        self.query = nn.Linear(dim, inner)
        self.key = nn.Linear(dim, inner)
        self.value = nn.Linear(dim, inner)
        self.proj = nn.Linear(inner, dim)
        self.proj_drop = nn.Dropout(dropout)

    def _split(self, t: Tensor) -> Tensor:
        b, n, _ = t.shape
        return t.view(b, n, self.heads, self.dim_head).transpose(1, 2)  # (b, heads, n, dim_head)

    def forward(self, x: Tensor) -> Tensor:
        b, n, _ = x.shape
        q, k, v = self._split(self.query(x)), self._split(self.key(x)), self._split(self.value(x))
        scores = torch.matmul(q, k.transpose(-2, -1)) / math.sqrt(self.dim_head)
        weights = F.softmax(scores, dim=-1)
        out = torch.matmul(weights, v).transpose(1, 2).reshape(b, n, self.heads * self.dim_head)
        return self.proj_drop(self.proj(out))


class Transformer(nn.Module):
    def __init__(self, dim: int, depth: int, heads: int, dim_head: int, mlp_dim: int, dropout: float = 0.0):
        super().__init__()
        self.attentions = nn.ModuleList(
            PreNorm(dim, Attention(dim, heads=heads, dim_head=dim_head, dropout=dropout)) for _ in range(depth)
        )
        self.feed_forwards = nn.ModuleList(
            PreNorm(dim, FeedForward(dim, mlp_dim, dropout=dropout)) for _ in range(depth)
        )

    def forward(self, x: Tensor) -> Tensor:
        for attention, feed_forward in zip(self.attentions, self.feed_forwards):
            x = x + attention(x)
            x = x + feed_forward(x)
        return x


class ViT(nn.Module):
    def __init__(
        self,
        *,
        image_size: int,
        patch_size: int,
        num_classes: int,
        dim: int,
        depth: int,
        heads: int,
        mlp_dim: int,
        pool: str = "cls",
        channels: int = 1,
        dim_head: int = 64,
        dropout: float = 0.0,
        emb_dropout: float = 0.0,
    ):
        super().__init__()
        if image_size % patch_size:
            raise ValueError(f"patch_size {patch_size} does not divide image_size {image_size}")
        if pool not in ("cls", "mean"):
            raise ValueError("pool is 'cls' or 'mean'")
        num_patches = (image_size // patch_size) ** 2
        self.pool = pool
        self.unfold = nn.Unfold(kernel_size=patch_size, stride=patch_size)
        self.patch_proj = nn.Linear(channels * patch_size**2, dim)
        self.cls_token = nn.Parameter(torch.zeros(1, 1, dim))
        self.pos_embed = nn.Parameter(torch.zeros(1, num_patches + 1, dim))
        nn.init.trunc_normal_(self.cls_token, std=0.02)
        nn.init.trunc_normal_(self.pos_embed, std=0.02)
        self.emb_drop = nn.Dropout(emb_dropout)
        self.transformer = Transformer(dim, depth, heads, dim_head, mlp_dim, dropout)
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, num_classes)

    def forward(self, img: Tensor) -> Tensor:
        tokens = self.patch_proj(self.unfold(img).transpose(1, 2))  # (b, patches, dim)
        cls = self.cls_token.expand(img.size(0), -1, -1)
        tokens = torch.cat([cls, tokens], dim=1) + self.pos_embed
        tokens = self.transformer(self.emb_drop(tokens))
        pooled = tokens[:, 0] if self.pool == "cls" else tokens.mean(dim=1)
        return self.head(self.norm(pooled))


# ---------------------------------------------------------------- training
def get_device(model: nn.Module) -> torch.device:
    return next(model.parameters()).device


def train_epoch(model, optimizer, data_loader, loss_history):
    device = get_device(model)
    model.train()
    for batch, (images, labels) in enumerate(data_loader):
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        optimizer.zero_grad(set_to_none=True)
        loss = F.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        if batch % 100 == 0:
            print(f"  batch {batch + 1}/{len(data_loader)}: loss {loss.item():.4f}")
            loss_history.append(loss.item())


@torch.no_grad()
def evaluate(model, data_loader, loss_history):
    device = get_device(model)
    model.eval()
    loss_sum, correct, total = 0.0, 0, 0
    for images, labels in data_loader:
        images, labels = images.to(device), labels.to(device)
        logits = model(images)
        loss_sum += F.cross_entropy(logits, labels, reduction="sum").item()
        correct += int((logits.argmax(dim=1) == labels).sum())
        total += labels.numel()
    average = loss_sum / total
    loss_history.append(average)
    print(f"  evaluation: average loss {average:.4f}, accuracy {correct}/{total} ({100.0 * correct / total:.2f} %)")
    return average, correct / total


# ---------------------------------------------------------------- plots
@torch.no_grad()
def predict(model, data_loader):
    """All images, labels and predictions of a loader, on the CPU."""
    model.eval()
    device = get_device(model)
    images, labels, predictions = [], [], []
    for x, y in data_loader:
        images.append(x.cpu())
        labels.append(y.cpu())
        predictions.append(model(x.to(device)).argmax(dim=1).cpu())
    return torch.cat(images), torch.cat(labels), torch.cat(predictions)


def plot_confusion_matrix(model, data_loader, class_names):
    _, labels, predictions = predict(model, data_loader)
    matrix = confusion_matrix(labels.numpy(), predictions.numpy(), labels=np.arange(len(class_names)))
    fig, ax = plt.subplots(figsize=(8, 7))
    sns.heatmap(matrix, annot=True, fmt="d", cmap="viridis", ax=ax, xticklabels=class_names, yticklabels=class_names)
    ax.set_xlabel("predicted class")
    ax.set_ylabel("true class")
    ax.set_title("Confusion matrix")
    fig.tight_layout()
    plt.show()


def plot_classwise_predictions(model, data_loader, class_names, samples_per_class=4):
    images, labels, predictions = predict(model, data_loader)
    fig, axes = plt.subplots(
        len(class_names),
        samples_per_class,
        figsize=(2.5 * samples_per_class, 2.5 * len(class_names)),
        squeeze=False,
    )
    for label, row in enumerate(axes):
        chosen = torch.nonzero(labels == label).flatten()[:samples_per_class].tolist()
        for ax in row:
            ax.axis("off")
        for ax, index in zip(row, chosen):
            guess = int(predictions[index])
            ax.imshow(images[index, 0] * 0.5 + 0.5, cmap="gray", vmin=0, vmax=1)
            ax.set_title(
                f"true: {class_names[label]}\npred: {class_names[guess]}",
                fontsize=8,
                color="tab:green" if guess == label else "tab:red",
            )
    fig.tight_layout()
    plt.show()


def plot_losses(train_losses, test_losses):
    plt.figure(figsize=(7, 4))
    plt.plot(train_losses, marker=".", label="training loss (every 100 batches)")
    plt.plot(test_losses, marker=".", label="test loss (every epoch)")
    plt.xlabel("entry")
    plt.ylabel("cross-entropy")
    plt.legend()
    plt.show()


# ---------------------------------------------------------------- main
def get_config() -> Config:
    defaults = Config()
    parser = argparse.ArgumentParser(description="ViT on steel surface defects")
    for name, value in asdict(defaults).items():
        parser.add_argument("--" + name.replace("_", "-"), type=type(value), default=value)
    try:
        args = parser.parse_args()
    except SystemExit:  # in a notebook or under pytest, sys.argv is not ours
        args = parser.parse_args([])
    return Config(**vars(args))


def set_seed(seed: int) -> None:
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


def warmup_cosine(cfg: Config):
    def factor(epoch: int) -> float:
        if epoch < cfg.warmup:
            return (epoch + 1) / (cfg.warmup + 1)
        progress = (epoch - cfg.warmup) / max(1, cfg.epochs - cfg.warmup)
        return 0.5 * (1.0 + math.cos(math.pi * progress))

    return factor


def main() -> None:
    cfg = get_config()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stdout)
    set_seed(cfg.seed)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    logger.info("device: %s", device)
    logger.info("config: %s", asdict(cfg))

    writer = None
    try:
        writer = SummaryWriter(cfg.log_dir)
    except Exception as error:
        logger.warning("no tensorboard (%s), going on without it", error)

    with zipfile.ZipFile(cfg.data_zip) as archive:
        archive.extractall("dataset")
    split_dataset(find_class_folders(Path("dataset")), Path(cfg.data_dir))
    train_loader, test_loader, class_names = build_loaders(cfg)
    logger.info(
        "%d training images, %d test images, classes %s",
        len(train_loader.dataset), len(test_loader.dataset), class_names,
    )

    model = ViT(
        image_size=cfg.image_size,
        patch_size=cfg.patch_size,
        num_classes=len(class_names),
        channels=1,
        dim=cfg.dim,
        depth=cfg.depth,
        heads=cfg.heads,
        dim_head=cfg.dim_head,
        mlp_dim=cfg.mlp_dim,
        pool=cfg.pool,
        dropout=cfg.dropout,
        emb_dropout=cfg.emb_dropout,
    ).to(device)
    logger.info("parameters: %s", f"{sum(p.numel() for p in model.parameters() if p.requires_grad):,}")

    optimizer = optim.AdamW(model.parameters(), lr=cfg.lr, weight_decay=cfg.weight_decay)
    scheduler = LambdaLR(optimizer, lr_lambda=warmup_cosine(cfg))

    train_losses: list[float] = []
    test_losses: list[float] = []
    started = time.perf_counter()
    for epoch in range(cfg.epochs):
        logger.info("epoch %d/%d, lr %.2e", epoch + 1, cfg.epochs, optimizer.param_groups[0]["lr"])
        train_epoch(model, optimizer, train_loader, train_losses)
        loss, accuracy = evaluate(model, test_loader, test_losses)  # only watched; the last epoch is kept
        scheduler.step()
        if writer is not None:
            writer.add_scalar("loss/train", train_losses[-1], epoch)
            writer.add_scalar("loss/test", loss, epoch)
            writer.add_scalar("accuracy/test", accuracy, epoch)
    logger.info("training took %.1f s", time.perf_counter() - started)

    for name in (f"{STUDENT_ID}.pth", f"{STUDENT_ID}_Lab8_Homework.pth"):
        torch.save(model.state_dict(), name)
        logger.info("saved %s", name)
    model.load_state_dict(torch.load(f"{STUDENT_ID}.pth", map_location=device, weights_only=True))
    evaluate(model, test_loader, [])

    plot_losses(train_losses, test_losses)
    plot_confusion_matrix(model, test_loader, class_names)
    plot_classwise_predictions(model, test_loader, class_names)
    if writer is not None:
        writer.close()


if __name__ == "__main__":
    main()
