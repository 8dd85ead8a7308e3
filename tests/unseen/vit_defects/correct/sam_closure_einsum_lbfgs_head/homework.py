#!/usr/bin/env python3
"""Steel defects, with matrices by hand, sharpness-aware minimization, and a head that LBFGS finishes."""

import contextlib
import logging
import math
import random
import shutil
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Literal

import matplotlib
import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F
from sklearn.metrics import ConfusionMatrixDisplay
from torch import Tensor, nn
from torch.utils.data import DataLoader
from torchvision import datasets
from torchvision.transforms import v2

STUDENT_ID = "400107001"
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(2024)
log = logging.getLogger("lab8")


def find_class_folders(root):
    """The folder that holds one folder per class: `root` itself, or a single folder inside it."""
    folders = [path for path in root.iterdir() if path.is_dir() and path.name != "__MACOSX"]
    return find_class_folders(folders[0]) if len(folders) == 1 else root


def split_dataset(source, destination, train_share=0.7, seed=42):
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


def matrix(*shape: int) -> nn.Parameter:
    """A matrix that is learned; its width of input is the last but one axis."""
    return nn.Parameter(torch.randn(*shape) / math.sqrt(shape[-2]))


class PreNorm(nn.Module):
    def __init__(self, dim: int, fn: nn.Module):
        super().__init__()
        self.fn = fn
        self.gain = nn.Parameter(torch.ones(dim))
        self.shift = nn.Parameter(torch.zeros(dim))

    def forward(self, x: Tensor, **kwargs) -> Tensor:
        centered = x - x.mean(-1, keepdim=True)
        normalized = centered * torch.rsqrt(centered.square().mean(-1, keepdim=True) + 1e-5)
        return self.fn(normalized * self.gain + self.shift, **kwargs)


class FeedForward(nn.Module):
    def __init__(self, dim: int, hidden_dim: int, dropout: float = 0.0):
        super().__init__()
        self.w1, self.b1 = matrix(dim, hidden_dim), nn.Parameter(torch.zeros(hidden_dim))
        self.w2, self.b2 = matrix(hidden_dim, dim), nn.Parameter(torch.zeros(dim))
        self.p = dropout

    def forward(self, x: Tensor) -> Tensor:
        hidden = F.dropout(F.gelu(x @ self.w1 + self.b1), self.p, self.training)
        return F.dropout(hidden @ self.w2 + self.b2, self.p, self.training)


class Attention(nn.Module):
    """The three projections are one tensor (3, heads, dim, dim_head), the output (heads, dim_head, dim)."""

    def __init__(self, dim: int, heads: int = 4, dim_head: int = 64, dropout: float = 0.0):
        super().__init__()
        self.qkv = matrix(3, heads, dim, dim_head)
        self.out = nn.Parameter(torch.randn(heads, dim_head, dim) / math.sqrt(heads * dim_head))
        self.bias = nn.Parameter(torch.zeros(dim))
        self.p = dropout

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = torch.einsum("bnc,thcd->tbhnd", x, self.qkv)
        scores = torch.einsum("bhid,bhjd->bhij", q, k) / math.sqrt(q.shape[-1])
        scores = scores - scores.amax(-1, keepdim=True)
        weights = scores.exp()
        weights = weights / weights.sum(-1, keepdim=True)
        result = torch.einsum("bhij,bhjd,hdc->bic", weights, v, self.out) + self.bias
        return F.dropout(result, self.p, self.training)


class Transformer(nn.Module):
    def __init__(self, dim: int, depth: int, heads: int, dim_head: int, mlp_dim: int, dropout: float = 0.0):
        super().__init__()
        self.attention = nn.ModuleList(PreNorm(dim, Attention(dim, heads, dim_head, dropout)) for _ in range(depth))
        self.mlp = nn.ModuleList(PreNorm(dim, FeedForward(dim, mlp_dim, dropout)) for _ in range(depth))

    def forward(self, x: Tensor) -> Tensor:
        for attention, mlp in zip(self.attention, self.mlp, strict=True):
            x = x + attention(x)
            x = x + mlp(x)
        return x


class ViT(nn.Module):
    def __init__(
        self, *, image_size: int, patch_size: int, num_classes: int, dim: int, depth: int, heads: int, mlp_dim: int,
        pool: Literal["cls", "mean"] = "cls", channels: int = 1, dim_head: int = 64, dropout: float = 0.0,
        emb_dropout: float = 0.0,
    ):
        super().__init__()
        self.side, rest = divmod(image_size, patch_size)
        if rest:
            raise ValueError(f"patches of {patch_size} pixels do not divide {image_size}")
        self.patch, self.pool = patch_size, pool
        self.embedding = matrix(channels, patch_size, patch_size, dim)
        with torch.no_grad():
            self.embedding.div_(math.sqrt(channels * patch_size))
        self.token = nn.Parameter(torch.zeros(dim))
        self.token_position = nn.Parameter(0.02 * torch.randn(dim))
        self.grid_positions = nn.Parameter(0.02 * torch.randn(self.side, self.side, dim))
        self.dropout = nn.Dropout(emb_dropout)
        self.encoder = Transformer(dim, depth, heads, dim_head, mlp_dim, dropout)
        self.head = nn.ModuleDict({"norm": nn.LayerNorm(dim), "linear": nn.Linear(dim, num_classes)})

    def features(self, img: Tensor) -> Tensor:
        b, c, _, _ = img.shape
        cut = img.reshape(b, c, self.side, self.patch, self.side, self.patch)
        grid = torch.einsum("bchpwq,cpqd->bhwd", cut, self.embedding) + self.grid_positions
        first = (self.token + self.token_position).expand(b, 1, -1)
        x = self.encoder(self.dropout(torch.cat([first, grid.flatten(1, 2)], dim=1)))
        match self.pool:
            case "cls":
                return x[:, 0]
            case "mean":
                return x.mean(dim=1)
            case other:
                raise ValueError(f"no such pool: {other}")

    def forward(self, img: Tensor) -> Tensor:
        return self.head["linear"](self.head["norm"](self.features(img)))


# ------------------------------------------------------------------------------------------------ training
class SAM(torch.optim.Optimizer):
    """Sharpness-aware minimization (Foret et al. 2021): a step up to where it is worst, the gradient there, back."""

    def __init__(self, params, base: type[torch.optim.Optimizer], rho: float = 0.05, **arguments):
        super().__init__(params, {"rho": rho, **arguments})
        self.base = base(self.param_groups, **arguments)
        self.param_groups = self.base.param_groups

    @torch.no_grad()
    def step(self, closure: Callable[[], Tensor]):
        with torch.enable_grad():
            loss = closure()
        moved = [(p, p.grad, group["rho"]) for group in self.param_groups for p in group["params"] if p.grad is not None]
        norm = torch.stack([g.norm() for _, g, _ in moved]).norm() + 1e-12
        steps = [(p, g * (rho / norm)) for p, g, rho in moved]
        for p, step in steps:
            p.add_(step)
        with torch.enable_grad():
            closure()
        for p, step in steps:
            p.sub_(step)
        self.base.step()
        return loss


def train_epoch(model, optimizer, data_loader, loss_history):
    """The optimizer gets a closure: it may want loss and gradients more than once a step, as SAM does."""
    model.train()
    for index, (images, labels) in enumerate(data_loader):
        images, labels = images.to(device), labels.to(device)

        def closure():
            optimizer.zero_grad()
            loss = F.cross_entropy(model(images), labels)
            loss.backward()
            return loss

        loss = optimizer.step(closure).item()
        if index % 100 == 0:
            print(f"{index * len(labels)} images seen, loss {loss:.4f}")
            loss_history.append(loss)


@contextlib.contextmanager
def measuring(model: nn.Module):
    model.eval()
    with torch.no_grad():
        yield model


def outcome(model, data_loader) -> tuple[Tensor, Tensor, Tensor]:
    """All images, labels and scores, on the CPU."""
    with measuring(model):
        triples = [(x.cpu(), y.cpu(), model(x.to(device)).float().cpu()) for x, y in data_loader]
    images, labels, scores = zip(*triples)
    return torch.cat(images), torch.cat(labels), torch.cat(scores)


def evaluate(model, data_loader, loss_history):
    _, labels, scores = outcome(model, data_loader)
    average = F.cross_entropy(scores, labels).item()
    correct = int((scores.argmax(1) == labels).sum())
    loss_history.append(average)
    print(f"loss {average:.4f} | accuracy {correct / len(labels):.4f} | {correct} correct of {len(labels)}")


def finish_head(model: ViT, data_loader: Iterable, steps: int, decay: float) -> None:
    """The head alone is a convex problem: LBFGS solves it on the features of all training images."""
    with measuring(model):
        pairs = [(model.features(x.to(device)), y.to(device)) for x, y in data_loader]
    features, labels = (torch.cat(side) for side in zip(*pairs))
    weights = list(model.head["linear"].parameters())
    start = [w.detach().clone() for w in weights]
    solver = torch.optim.LBFGS(weights, lr=0.5, max_iter=steps, line_search_fn="strong_wolfe")

    def closure():
        solver.zero_grad()
        scores = model.head["linear"](model.head["norm"](features))
        pull = sum((w - s).square().sum() for w, s in zip(weights, start))
        loss = F.cross_entropy(scores, labels, label_smoothing=0.1) + decay * pull
        loss.backward()
        return loss

    solver.step(closure)


def rate(epoch: int, epochs: int, peak: float) -> float:
    match epoch:
        case early if early < 5:
            return peak * (early + 1) / 5
        case late:
            return peak * (0.01 + 0.99 * 0.5 * (1 + math.cos(math.pi * (late - 5) / max(1, epochs - 5))))


def train(model: ViT, train_loader, plain_loader, test_loader, *, epochs: int, peak: float) -> dict[str, list[float]]:
    history = {"train": [], "test": []}
    optimizer = SAM(model.parameters(), torch.optim.AdamW, rho=0.05, lr=peak, weight_decay=0.02)
    for epoch in range(epochs):
        for group in optimizer.param_groups:
            group["lr"] = rate(epoch, epochs, peak)
        train_epoch(model, optimizer, train_loader, history["train"])
        evaluate(model, test_loader, history["test"])
        log.info("epoch %d, rate %.6f, test loss %.4f", epoch + 1, optimizer.param_groups[0]["lr"], history["test"][-1])
    finish_head(model, plain_loader, steps=30, decay=0.01)
    log.info("head finished")
    return history


# ------------------------------------------------------------------------------------------------ pictures
def plot_confusion_matrix(model, data_loader, class_names):
    _, labels, scores = outcome(model, data_loader)
    fig, ax = plt.subplots(figsize=(7.5, 6.5))
    ConfusionMatrixDisplay.from_predictions(
        labels.numpy(), scores.argmax(1).numpy(), labels=list(range(len(class_names))), display_labels=class_names,
        cmap="Purples", xticks_rotation=45, ax=ax,
    )
    ax.set_title("True and predicted classes")
    fig.tight_layout()
    plt.show()


def plot_classwise_predictions(model, data_loader, class_names, samples_per_class=4):
    images, labels, scores = outcome(model, data_loader)
    guesses = scores.argmax(1)
    fig = plt.figure(figsize=(2.3 * samples_per_class, 2.3 * len(class_names)), layout="constrained")
    rows = fig.subfigures(len(class_names), 1, squeeze=False)[:, 0]
    for label, (row, name) in enumerate(zip(rows, class_names)):
        for ax, index in zip(row.subplots(1, samples_per_class, squeeze=False)[0],
                             torch.where(labels == label)[0][:samples_per_class].tolist()):
            ax.imshow((images[index, 0] + 1) / 2, cmap="gray", vmin=0, vmax=1)
            right = bool(guesses[index] == label)
            ax.set_title(f"true {name}\npredicted {class_names[guesses[index]]}", fontsize=8,
                         color="darkgreen" if right else "crimson")
        for ax in row.axes:
            ax.axis("off")
    plt.show()


# ------------------------------------------------------------------------------------------------ run
def loaders() -> tuple[DataLoader, DataLoader, DataLoader, list[str]]:
    first = [v2.Grayscale(num_output_channels=1), v2.Resize((28, 28))]
    last = [v2.ToImage(), v2.ToDtype(torch.float32, scale=True), v2.Normalize((0.5,), (0.5,))]
    change = [v2.RandomHorizontalFlip(), v2.RandomVerticalFlip(), v2.RandomAffine(degrees=5, translate=(0.07, 0.07))]
    varied = datasets.ImageFolder("data/train", v2.Compose(first + change + last))
    plain = datasets.ImageFolder("data/train", v2.Compose(first + last))
    test = datasets.ImageFolder("data/test", v2.Compose(first + last))
    return (DataLoader(varied, batch_size=50, shuffle=True), DataLoader(plain, batch_size=250),
            DataLoader(test, batch_size=250), plain.classes)


def run() -> None:
    logging.basicConfig(filename="lab8.log", level=logging.INFO, format="%(asctime)s %(message)s", force=True)
    with zipfile.ZipFile("dataset.zip") as archive:
        archive.extractall("dataset")
    split_dataset(find_class_folders(Path("dataset")), Path("data"))
    train_loader, plain_loader, test_loader, names = loaders()
    model = ViT(image_size=28, patch_size=4, num_classes=6, channels=1, dim=64, depth=5, heads=8, mlp_dim=128, dim_head=8,
                pool="cls").to(device)
    log.info("%d parameters", sum(p.numel() for p in model.parameters()))
    history = train(model, train_loader, plain_loader, test_loader, epochs=45, peak=1e-3)
    torch.save(model.state_dict(), f"{STUDENT_ID}_Lab8_Homework.pth")
    evaluate(model, test_loader, history["test"])
    _, axes = plt.subplots(1, 2, figsize=(9, 3.5))
    for ax, (part, losses) in zip(axes, history.items()):
        ax.plot(losses)
        ax.set(title=part, xlabel="entry", ylabel="loss")
    plot_confusion_matrix(model, test_loader, names)
    plot_classwise_predictions(model, test_loader, names)


run()
