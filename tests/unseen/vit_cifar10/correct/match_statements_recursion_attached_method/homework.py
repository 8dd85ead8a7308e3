"""CIFAR-10 homework.

Style: small functions, structural pattern matching, recursion in place of loops where it reads well. Methods that
only look inside a model are attached to the class afterwards.
"""
import argparse
import copy
import csv
import math
import zipfile
from functools import reduce
from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn, optim
from torch.utils.data import DataLoader, Subset
from torchvision import datasets, transforms

STUDENT_ID = "400102001"
MEAN, STD = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)
SETTINGS = SimpleNamespace(vit_rate=1.2e-3, vit_decay=0.08, resnet_rate=0.1, resnet_decay=5e-4, smoothing=0.1)


# -------------------------------------------------------------------------------------------------- ViT
class PatchEmbedding(nn.Module):
    def __init__(self, image_size, patch_size, in_channels, dim):
        super().__init__()
        self.patch_size, self.in_channels = patch_size, in_channels
        numbers = in_channels * patch_size**2
        self.weight = nn.Parameter(torch.randn(dim, numbers) * numbers**-0.5)
        self.bias = nn.Parameter(torch.zeros(dim))

    def forward(self, images):
        p = self.patch_size
        b, c, h, w = images.shape
        patches = images.reshape(b, c, h // p, p, w // p, p).permute(0, 2, 4, 1, 3, 5).reshape(b, -1, c * p * p)
        return F.linear(patches, self.weight, self.bias)


def sinusoidal_positions(tokens, dim):
    # e^(i a) = cos a + i sin a: the pair (imaginary, real) is what is wanted
    frequencies = 10000 ** (-torch.arange(0, dim, 2) / dim)
    angles = torch.arange(tokens).float()[:, None] * frequencies
    pairs = torch.view_as_real(torch.polar(torch.ones_like(angles), angles))
    return pairs.flip(-1).reshape(tokens, dim)


class MultiHeadSelfAttention(nn.Module):
    def __init__(self, dim, heads, dropout=0.0):
        super().__init__()
        self.h = heads
        self.w = nn.ParameterDict({name: nn.Parameter(torch.empty(dim, dim)) for name in ("q", "k", "v", "o")})
        self.b = nn.ParameterDict({name: nn.Parameter(torch.zeros(dim)) for name in ("q", "k", "v", "o")})
        for matrix in self.w.values():
            nn.init.xavier_uniform_(matrix)
        self.dropout = dropout

    def forward(self, x, return_weights=False):
        b, n, d = x.shape
        q, k, v = (F.linear(x, self.w[name], self.b[name]).view(b, n, self.h, d // self.h).transpose(1, 2)
                   for name in "qkv")
        weights = torch.softmax(torch.matmul(q, k.mT) * (d // self.h) ** -0.5, -1)
        kept = F.dropout(weights, self.dropout, self.training)
        out = F.linear((kept @ v).transpose(1, 2).reshape(b, n, d), self.w["o"], self.b["o"])
        match return_weights:
            case True:
                return out, weights
            case _:
                return out


class EncoderBlock(nn.Module):
    def __init__(self, dim, heads, mlp_ratio=4.0, dropout=0.0):
        super().__init__()
        hidden = int(dim * mlp_ratio)
        self.parts = nn.ModuleDict({
            "norm1": nn.LayerNorm(dim),
            "attention": MultiHeadSelfAttention(dim, heads, dropout),
            "norm2": nn.LayerNorm(dim),
            "mlp": nn.Sequential(nn.Linear(dim, hidden), nn.GELU(), nn.Dropout(dropout), nn.Linear(hidden, dim)),
        })

    def forward(self, x):
        x = x + self.parts["attention"](self.parts["norm1"](x))
        return x + self.parts["mlp"](self.parts["norm2"](x))


class VisionTransformer(nn.Module):
    def __init__(self, image_size=32, patch_size=4, in_channels=3, num_classes=10, dim=192, depth=9, heads=8,
                 mlp_ratio=4.0, dropout=0.1, positions="learned", pool="cls"):
        super().__init__()
        patches = (image_size // patch_size) ** 2
        self.pool = pool
        self.parts = nn.ModuleDict({
            "patches": PatchEmbedding(image_size, patch_size, in_channels, dim),
            "blocks": nn.ModuleList(EncoderBlock(dim, heads, mlp_ratio, dropout) for _ in range(depth)),
            "norm": nn.LayerNorm(dim),
            "head": nn.Linear(dim, num_classes),
        })
        match pool:
            case "cls":
                tokens, self.first = patches + 1, nn.Parameter(torch.randn(dim) * 0.02)
            case "mean":
                tokens = patches
            case _:
                raise ValueError(f"pool is 'cls' or 'mean', not {pool!r}")
        match positions:
            case "learned":
                self.where = nn.Parameter(torch.randn(tokens, dim) * 0.02)
            case "sinusoidal":
                self.register_buffer("where", sinusoidal_positions(tokens, dim), persistent=False)
            case _:
                raise ValueError(f"positions are 'learned' or 'sinusoidal', not {positions!r}")

    def forward(self, images):
        x = reduce(lambda tokens, block: block(tokens), self.parts["blocks"], entrance(self, images))
        match self.pool:
            case "cls":
                x = self.parts["norm"](x)[:, 0]
            case "mean":
                x = self.parts["norm"](x.mean(1))
        return self.parts["head"](x)


def entrance(vit, images):
    x = vit.parts["patches"](images)
    if vit.pool == "cls":
        x = torch.hstack([vit.first.expand(len(x), 1, -1), x])
    return x + vit.where


def _attention(self, images):
    x = entrance(self, images)
    *most, last = self.parts["blocks"]
    for block in most:
        x = block(x)
    return last.parts["attention"](last.parts["norm1"](x), True)[1]


VisionTransformer.attention = _attention  # only a look inside: not needed for training


def attention_map(model, image):
    before = model.training
    with torch.no_grad():
        weights = model.eval().attention(image[None].to(home(model, image)))[0].cpu()
    model.train(before)
    mean = weights.mean(0)
    match math.sqrt(len(mean)):
        case root if root == int(root):
            row = mean.mean(0)
        case _:
            row = mean[0, 1:]
    side = int(math.sqrt(len(row)))
    patch = torch.ones(image.shape[1] // side, image.shape[2] // side)
    return torch.kron(row.reshape(side, side) / row.max(), patch)


def home(model, other):
    return next((p.device for p in model.parameters()), other.device)


# -------------------------------------------------------------------------------------------------- ResNet
class BasicBlock(nn.Module):
    def __init__(self, in_channels, channels, stride=1):
        super().__init__()
        self.conv1 = nn.Conv2d(in_channels, channels, 3, stride, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, 1, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(channels)
        match (in_channels == channels, stride):
            case (True, 1):
                self.skip = nn.Identity()
            case _:
                self.skip = nn.Sequential(nn.Conv2d(in_channels, channels, 1, stride, bias=False), nn.BatchNorm2d(channels))

    def forward(self, x):
        return (self.skip(x) + self.norm2(self.conv2(self.norm1(self.conv1(x)).relu()))).relu()


class ResNet18(nn.Module):
    def __init__(self, num_classes=10, width=64):
        super().__init__()
        self.parts = nn.ModuleDict({"stem": nn.Conv2d(3, width, 3, 1, 1, bias=False), "norm": nn.BatchNorm2d(width)})
        for group, (before, after) in enumerate(zip((1, 1, 2, 4), (1, 2, 4, 8)), start=1):
            self.parts[f"group{group}"] = nn.Sequential(
                BasicBlock(before * width, after * width, 1 if group == 1 else 2),
                BasicBlock(after * width, after * width),
            )
        self.parts["head"] = nn.Linear(8 * width, num_classes)

    def forward(self, images):
        x = images
        for name, part in self.parts.items():
            match name:
                case "norm":
                    x = part(x).relu()
                case "head":
                    x = part(x.mean((2, 3)))
                case _:
                    x = part(x)
        return x


def parameter_table(model, prefix=""):
    """Module by module, by recursion: each module's own parameters, then its children's."""
    own = sum(p.numel() for p in model.parameters(recurse=False))
    rows = [(prefix or type(model).__name__, own)] if own else []
    for name, child in model.named_children():
        rows += parameter_table(child, f"{prefix}.{name}" if prefix else name)
    return rows


# -------------------------------------------------------------------------------------------------- training
def warmup_cosine(step, warmup_steps, total_steps):
    match step:
        case s if s < warmup_steps:
            return s / warmup_steps
        case s if s >= total_steps:
            return 0.0
        case s:
            return math.cos(0.5 * math.pi * (s - warmup_steps) / (total_steps - warmup_steps)) ** 2


def train_epoch(model, loader, criterion, optimizer, scheduler, device):
    model.train()
    losses, hits, sizes = [], [], []
    for images, labels in loader:
        images, labels = images.to(device), labels.to(device)
        optimizer.zero_grad()
        scores = model(images)
        loss = criterion(scores, labels)
        loss.backward()
        optimizer.step()
        if scheduler is not None:
            scheduler.step()
        sizes.append(len(labels))
        losses.append(loss.item())
        hits.append((scores.argmax(1) == labels).sum().item())
    return float(np.dot(losses, sizes) / sum(sizes)), sum(hits) / sum(sizes)


def evaluate(model, loader, criterion, device):
    model.eval()

    @torch.no_grad()
    def look():
        for images, labels in loader:
            scores = model(images.to(device))
            yield criterion(scores, labels.to(device)).item() * len(labels), labels.cpu(), scores.softmax(1).cpu()

    losses, labels, probabilities = zip(*look())
    labels, probabilities = torch.cat(labels).numpy(), torch.cat(probabilities).numpy()
    predictions = probabilities.argmax(1)
    return {"loss": sum(losses) / len(labels), "accuracy": float((predictions == labels).mean()), "targets": labels,
            "predictions": predictions, "probabilities": probabilities}


def optimizer_for(model, s=SETTINGS):
    match model:
        case VisionTransformer():
            return optim.AdamW(model.parameters(), lr=s.vit_rate, weight_decay=s.vit_decay)
        case ResNet18():
            return optim.SGD(model.parameters(), lr=s.resnet_rate, momentum=0.9, nesterov=True, weight_decay=s.resnet_decay)
        case _:
            return optim.AdamW(model.parameters(), lr=s.vit_rate)


def fit(model, loaders, epochs, device):
    model.to(device)
    optimizer = optimizer_for(model)
    batches = len(loaders["train"])
    scheduler = optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: warmup_cosine(step, min(2 * batches, epochs * batches // 5), epochs * batches)
    )
    criterion = nn.CrossEntropyLoss(label_smoothing=SETTINGS.smoothing)

    def go(left, best, history):
        """Trains for the epochs that are left; gives the history and the best (accuracy, weights)."""
        if left == 0:
            return best, history
        loss, accuracy = train_epoch(model, loaders["train"], criterion, optimizer, scheduler, device)
        seen = evaluate(model, loaders["validation"], criterion, device)
        match best:
            case (most, _) if seen["accuracy"] <= most:
                pass
            case _:
                best = seen["accuracy"], {name: value.detach().clone() for name, value in model.state_dict().items()}
        print(f"{len(history) + 1:3d}  {loss:.3f} {accuracy:.3f}  {seen['loss']:.3f} {seen['accuracy']:.3f}")
        return go(left - 1, best, history + [{"train": (loss, accuracy), "validation": (seen["loss"], seen["accuracy"])}])

    best, history = go(epochs, None, [])
    if best:
        model.load_state_dict(best[1])
    return history


# -------------------------------------------------------------------------------------------------- measures
def area(truth, scores):
    """The area under the ROC curve, by the trapezoid rule over all different thresholds."""
    if truth.all() or not truth.any():
        return math.nan
    x, y = roc_points(truth, scores)
    return float(np.sum(np.diff(x) * (y[1:] + y[:-1]) / 2))


def roc_points(truth, scores):
    values, where = np.unique(-scores, return_inverse=True)  # the largest score first
    positives = np.bincount(where, weights=truth, minlength=len(values))
    negatives = np.bincount(where, weights=~truth, minlength=len(values))
    return tuple(np.concatenate([[0.0], np.cumsum(c) / c.sum()]) for c in (negatives, positives))


def classification_metrics(targets, probabilities):
    targets = np.array([int(t) for t in targets])
    probabilities = np.stack([np.asarray(row, dtype=float) for row in probabilities])
    k = probabilities.shape[1]
    confusion = np.bincount(targets * k + probabilities.argmax(1), minlength=k * k).reshape(k, k)
    result = {"confusion": confusion, "support": confusion.sum(1), "accuracy": float(confusion.trace() / confusion.sum())}
    share = lambda a, b: float(a / b) if b else 0.0
    hit = confusion.diagonal()
    result["precision"] = np.array([share(hit[c], confusion[:, c].sum()) for c in range(k)])
    result["recall"] = np.array([share(hit[c], confusion[c].sum()) for c in range(k)])
    result["f1"] = np.array([share(2 * hit[c], confusion[:, c].sum() + confusion[c].sum()) for c in range(k)])
    result["roc_auc"] = np.array([area(targets == c, probabilities[:, c]) for c in range(k)])
    for name in ("precision", "recall", "f1", "roc_auc"):
        pairs = [(v, w) for v, w in zip(result[name], result["support"]) if w > 0 and v == v]
        match pairs:
            case []:
                result[f"macro_{name}"] = result[f"weighted_{name}"] = math.nan
            case _:
                result[f"macro_{name}"] = float(sum(v for v, _ in pairs) / len(pairs))
                result[f"weighted_{name}"] = float(sum(v * w for v, w in pairs) / sum(w for _, w in pairs))
    return result


def rows_of(metrics, *names):
    match metrics:
        case dict():
            return [row for key, inner in metrics.items() for row in rows_of(inner, *names, str(key))]
        case np.ndarray(ndim=1) | torch.Tensor(ndim=1):
            return [row for i, inner in enumerate(metrics.tolist()) for row in rows_of(inner, *names, str(i))]
        case list() | tuple():
            return rows_of(np.asarray(metrics), *names)
        case np.ndarray() | torch.Tensor() if metrics.ndim > 1:
            return []
        case number:
            return [(".".join(names), repr(float(number)))]


def export_metrics(metrics, path):
    with open(path, "w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("metric", "value")] + rows_of(metrics))


# -------------------------------------------------------------------------------------------------- pictures
def shown(image, mean, std):
    channels = [image[c].cpu() * std[c] + mean[c] for c in range(len(image))]
    return torch.stack(channels, dim=-1).clamp(0, 1).numpy()


def plot_learning_curves(history):
    fig, axes = plt.subplots(ncols=2, figsize=(9, 3.5))
    for which, (ax, title) in enumerate(zip(axes, ("cross-entropy loss", "accuracy"))):
        for part in ("train", "validation"):
            ax.plot(range(1, len(history) + 1), [row[part][which] for row in history], "o-", label=part)
        ax.set(title=title, xlabel="epoch", ylabel=title)
        ax.legend()
    return fig


def plot_confusion_matrix(matrix, class_names):
    fig, ax = plt.subplots(figsize=(7, 7))
    ax.imshow(matrix, cmap="Greens")
    ticks = list(range(len(class_names)))
    ax.set_xticks(ticks, class_names, rotation=45, ha="right")
    ax.set_yticks(ticks, class_names)
    ax.set(xlabel="Predicted class", ylabel="True class", title="Confusion matrix")
    for true in ticks:
        for said in ticks:
            ax.text(said, true, f"{int(matrix[true][said])}", ha="center", va="center")
    fig.tight_layout()
    return fig


def plot_roc(targets, probabilities, class_names):
    targets, probabilities = np.asarray(targets), np.asarray(probabilities)
    fig, ax = plt.subplots()
    for c, name in enumerate(class_names):
        truth = targets == c
        if truth.any() and not truth.all():
            ax.plot(*roc_points(truth, probabilities[:, c]), label=f"{name} ({area(truth, probabilities[:, c]):.3f})")
    ax.set(xlabel="False positive rate", ylabel="True positive rate")
    ax.legend(loc="lower right", fontsize="small")
    return fig


def plot_attention(model, images, labels, class_names, mean, std):
    fig, axes = plt.subplots(len(images), 3, squeeze=False, figsize=(6, 2 * len(images) + 0.5))
    for (a, b, c), image, label in zip(axes, images, labels):
        was, heat = shown(image, mean, std), attention_map(model, image)
        a.imshow(was)
        b.imshow(heat, cmap="hot")
        c.imshow(was)
        c.imshow(heat, cmap="hot", alpha=0.4)
        a.set_title(f"{class_names[int(label)]}")
        [ax.axis("off") for ax in (a, b, c)]
    return fig


def plot_top3(images, labels, probabilities, class_names, mean, std):
    fig, axes = plt.subplots(1, len(images), squeeze=False, figsize=(2.8 * len(images), 3.5))
    for ax, image, label, row in zip(axes[0], images, labels, np.asarray(probabilities)):
        first = sorted(range(len(row)), key=lambda c: -row[c])[:3]
        text = "\n".join(f"{rank}. {class_names[c]} {100 * row[c]:.1f} %" for rank, c in enumerate(first, start=1))
        ax.imshow(shown(image, mean, std))
        ax.set_title(f"true class: {class_names[int(label)]}", fontsize=9)
        ax.text(0.5, -0.05, text, transform=ax.transAxes, ha="center", va="top", fontsize=8)
        ax.axis("off")
    return fig


# -------------------------------------------------------------------------------------------------- everything
STUDY_BASE = {"patch_size": 8, "dim": 64, "depth": 4, "heads": 4, "mlp_ratio": 2.0, "positions": "learned", "epochs": 5}
STUDY_CHANGES = ({"patch_size": 4}, {"dim": 32}, {"dim": 96}, {"depth": 2}, {"depth": 6}, {"heads": 1}, {"mlp_ratio": 1.0},
                 {"positions": "sinusoidal"})
STUDY_COLUMNS = (*STUDY_BASE, "seed", "parameters", "validation_accuracy")


def study_rows(loaders, classes, device):
    todo = [(STUDY_BASE, seed) for seed in (1, 2, 3)] + [(STUDY_BASE | change, 1) for change in STUDY_CHANGES]
    for values, seed in todo:
        torch.manual_seed(seed)
        sizes = copy.copy(values)
        epochs = sizes.pop("epochs")
        model = VisionTransformer(**sizes, num_classes=classes, dropout=0.0)
        fit(model, loaders, epochs, device)
        found = evaluate(model, loaders["validation"], nn.CrossEntropyLoss(), device)
        yield {**values, "seed": seed, "parameters": sum(p.numel() for p in model.parameters()),
               "validation_accuracy": round(found["accuracy"], 4)}


def get_loaders(batch_size):
    with zipfile.ZipFile("dataset.zip") as archive:
        archive.extractall("data")
    plain = transforms.Compose([transforms.ToTensor(), transforms.Normalize(MEAN, STD)])
    varied = transforms.Compose([transforms.RandomCrop(32, padding=4), transforms.RandomHorizontalFlip(),
                                 transforms.ColorJitter(0.1, 0.1, 0.1), plain])
    train, validation = (datasets.ImageFolder("data/train", t) for t in (varied, plain))
    test = datasets.ImageFolder("data/test", plain)
    order = torch.randperm(len(train), generator=torch.Generator().manual_seed(42)).tolist()
    held = len(order) // 10
    return {
        "train": DataLoader(Subset(train, order[held:]), batch_size=batch_size, shuffle=True),
        "validation": DataLoader(Subset(validation, order[:held]), batch_size=256),
        "test": DataLoader(test, batch_size=256),
    }, test.classes


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", nargs="*", default=["vit", "resnet"], help="any of: vit resnet study")
    parser.add_argument("--vit-epochs", type=int, default=15)
    parser.add_argument("--resnet-epochs", type=int, default=14)
    parser.add_argument("--batch-size", type=int, default=64)
    return parser.parse_known_args()[0]


def main(args):
    torch.manual_seed(42)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    loaders, class_names = get_loaders(args.batch_size)
    measures = {}
    for what in args.what:
        match what:
            case "vit":
                model, epochs = VisionTransformer(dim=96, depth=6, heads=4, mlp_ratio=2.0, dropout=0.0,
                                                  num_classes=len(class_names)), args.vit_epochs
            case "resnet":
                model, epochs = ResNet18(len(class_names), width=16), args.resnet_epochs
            case "study":
                with open(f"{STUDENT_ID}_study.csv", "w", newline="", encoding="utf-8") as file:
                    table = csv.DictWriter(file, STUDY_COLUMNS)
                    table.writeheader()
                    table.writerows(study_rows(loaders, len(class_names), device))
                continue
            case other:
                raise SystemExit(f"nothing is known about {other}")
        history = fit(model, loaders, epochs, device)
        torch.save(model.state_dict(), f"{STUDENT_ID}_CIFAR10_{what}.pth")
        found = evaluate(model, loaders["test"], nn.CrossEntropyLoss(), device)
        measures[what] = classification_metrics(found["targets"], found["probabilities"])
        print(what, found["accuracy"], parameter_table(model))
        plot_learning_curves(history)
        plot_confusion_matrix(measures[what]["confusion"], class_names)
        plot_roc(found["targets"], found["probabilities"], class_names)
        if what == "vit":
            images, labels = next(iter(loaders["test"]))
            plot_attention(model, images[:6], labels[:6], class_names, MEAN, STD)
            plot_top3(images[:6], labels[:6], found["probabilities"][:6], class_names, MEAN, STD)
    export_metrics(measures, f"{STUDENT_ID}_metrics.csv")
    plt.show()


if __name__ == "__main__":
    main(arguments())
