"""
Assignment 2, ViT and ResNet on the course's images.

Structure: small helper modules (Residual, PreNorm, Head) that the required classes are put together from, my own
Dataset with my own augmentation (the images are few, so they stay in memory), and a Trainer that `fit` uses.
"""
import math
import pathlib
import zipfile
from collections import OrderedDict

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from PIL import Image
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset

STUDENT_ID = "400102005"
MEAN = np.array([0.4914, 0.4822, 0.4465], dtype=np.float32)
STD = np.array([0.2470, 0.2435, 0.2616], dtype=np.float32)
device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")


# ======================================================================================================
#  Data
# ======================================================================================================
class RandomShift:
    """Zero padding by `pad` pixels and a random crop of the old size."""

    def __init__(self, pad):
        self.pad = pad

    def __call__(self, image):
        height, width = image.shape[-2:]
        padded = F.pad(image, [self.pad] * 4)
        top, left = torch.randint(0, 2 * self.pad + 1, (2,)).tolist()
        return padded[:, top : top + height, left : left + width]


class RandomMirror:
    def __init__(self, p=0.5):
        self.p = p

    def __call__(self, image):
        return image.flip(-1) if torch.rand(()) < self.p else image


class Normalize:
    def __init__(self, mean, std):
        self.mean = torch.tensor(mean).view(-1, 1, 1)
        self.std = torch.tensor(std).view(-1, 1, 1)

    def __call__(self, image):
        return (image - self.mean) / self.std


class Chain:
    def __init__(self, *steps):
        self.steps = steps

    def __call__(self, image):
        for step in self.steps:
            image = step(image)
        return image


class PictureFolder(Dataset):
    """All pictures of a folder with one subfolder for each class, kept in memory as bytes."""

    def __init__(self, root, transform):
        self.transform = transform
        folders = sorted(p for p in pathlib.Path(root).iterdir() if p.is_dir())
        self.classes = [folder.name for folder in folders]
        pictures, labels = [], []
        for label, folder in enumerate(folders):
            for path in sorted(folder.iterdir()):
                if path.suffix.lower() in (".png", ".jpg", ".jpeg"):
                    with Image.open(path) as picture:
                        pictures.append(np.asarray(picture.convert("RGB")))
                    labels.append(label)
        self.pictures = torch.from_numpy(np.stack(pictures)).permute(0, 3, 1, 2).contiguous()
        self.labels = torch.tensor(labels)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return self.transform(self.pictures[index].float() / 255), int(self.labels[index])

    def part(self, indices, transform=None):
        """A data set with some of the pictures and, if wanted, another transform."""
        other = object.__new__(PictureFolder)
        other.transform = transform or self.transform
        other.classes = self.classes
        other.pictures, other.labels = self.pictures[indices], self.labels[indices]
        return other


for_training = Chain(RandomShift(4), RandomMirror(), Normalize(MEAN, STD))
for_looking = Normalize(MEAN, STD)


def make_loaders(batch_size=64):
    if not pathlib.Path("data/train").is_dir():
        zipfile.ZipFile("dataset.zip").extractall("data")
    everything = PictureFolder("data/train", for_looking)
    order = torch.randperm(len(everything), generator=torch.Generator().manual_seed(1))
    held_out = len(everything) // 10
    loaders = {
        "train": DataLoader(everything.part(order[held_out:], for_training), batch_size, shuffle=True),
        "validation": DataLoader(everything.part(order[:held_out]), 4 * batch_size),
    }
    test = DataLoader(PictureFolder("data/test", for_looking), 4 * batch_size)
    return loaders, test, everything.classes


# ======================================================================================================
#  Vision Transformer
# ======================================================================================================
class PatchEmbedding(nn.Module):
    def __init__(self, image_size, patch_size, in_channels, dim):
        super().__init__()
        self.side, self.size = image_size // patch_size, patch_size
        self.project = nn.Linear(in_channels * patch_size * patch_size, dim)

    def forward(self, images):
        b, c = images.shape[:2]
        grid = images.reshape(b, c, self.side, self.size, self.side, self.size)
        patches = grid.permute(0, 2, 4, 1, 3, 5).reshape(b, self.side**2, c * self.size**2)
        return self.project(patches)


def sinusoidal_positions(tokens, dim):
    column = np.arange(dim)
    angle = np.arange(tokens)[:, np.newaxis] / np.power(10000.0, 2 * (column // 2) / dim)
    table = np.where(column % 2 == 0, np.sin(angle), np.cos(angle))
    return torch.tensor(table, dtype=torch.float32)


class Head(nn.Module):
    """One head with projections of its own."""

    def __init__(self, dim, head_dim, dropout):
        super().__init__()
        self.q = nn.Linear(dim, head_dim, bias=False)
        self.k = nn.Linear(dim, head_dim, bias=False)
        self.v = nn.Linear(dim, head_dim, bias=False)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        q, k, v = self.q(x), self.k(x), self.v(x)
        weights = F.softmax(torch.bmm(q, k.transpose(1, 2)) / q.shape[-1] ** 0.5, dim=-1)
        return torch.bmm(self.dropout(weights), v), weights


class MultiHeadSelfAttention(nn.Module):
    def __init__(self, dim, heads, dropout=0.0):
        super().__init__()
        self.parts = nn.ModuleList([Head(dim, dim // heads, dropout) for _ in range(heads)])
        self.join = nn.Linear(dim, dim)

    def forward(self, x, return_weights=False):
        outputs, weights = zip(*[head(x) for head in self.parts])
        y = self.join(torch.cat(outputs, dim=-1))
        if return_weights:
            return y, torch.stack(weights, dim=1)
        return y


class PreNorm(nn.Module):
    def __init__(self, dim, inner):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.inner = inner

    def forward(self, x, **options):
        return self.inner(self.norm(x), **options)


class Residual(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        return x + self.inner(x)


class Mlp(nn.Sequential):
    def __init__(self, dim, hidden):
        super().__init__(
            OrderedDict(up=nn.Linear(dim, hidden), activation=nn.GELU(), down=nn.Linear(hidden, dim))
        )


class EncoderBlock(nn.Module):
    def __init__(self, dim, heads, mlp_ratio=4.0, dropout=0.0):
        super().__init__()
        self.look = Residual(PreNorm(dim, MultiHeadSelfAttention(dim, heads, dropout)))
        self.think = Residual(PreNorm(dim, Mlp(dim, int(mlp_ratio * dim))))

    def forward(self, x):
        return self.think(self.look(x))

    def weights(self, x):
        return self.look.inner(x, return_weights=True)[1]


class Tokens(nn.Module):
    """From images to the tokens that the first block gets."""

    def __init__(self, image_size, patch_size, in_channels, dim, positions, pool):
        super().__init__()
        self.patches = PatchEmbedding(image_size, patch_size, in_channels, dim)
        count = (image_size // patch_size) ** 2
        if pool == "cls":
            count += 1
            self.first = nn.Parameter(torch.randn(1, 1, dim) / dim**0.5)
        else:
            self.register_parameter("first", None)
        if positions == "sinusoidal":  # frozen: no gradient
            self.places = nn.Parameter(sinusoidal_positions(count, dim), requires_grad=False)
        else:
            self.places = nn.Parameter(torch.randn(count, dim) * 0.02)

    def forward(self, images):
        x = self.patches(images)
        if self.first is not None:
            x = torch.cat([self.first.repeat(len(x), 1, 1), x], dim=1)
        return x + self.places


class VisionTransformer(nn.Module):
    def __init__(
        self, image_size=32, patch_size=4, in_channels=3, num_classes=10, dim=192, depth=9, heads=8,
        mlp_ratio=4.0, dropout=0.1, positions="learned", pool="cls",
    ):  # fmt: skip
        super().__init__()
        self.patch_size, self.pool = patch_size, pool
        self.tokens = Tokens(image_size, patch_size, in_channels, dim, positions, pool)
        self.early = nn.Sequential(*[EncoderBlock(dim, heads, mlp_ratio, dropout) for _ in range(depth - 1)])
        self.last = EncoderBlock(dim, heads, mlp_ratio, dropout)
        self.classify = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, num_classes))

    def forward(self, images):
        x = self.last(self.early(self.tokens(images)))
        return self.classify(x.mean(dim=1) if self.pool == "mean" else x[:, 0])

    def attention(self, images):
        return self.last.weights(self.early(self.tokens(images)))


def attention_map(model, image):
    mode = model.training
    model.eval()
    with torch.no_grad():
        weights = model.attention(image.to(next(model.parameters()).device)[None])
    model.train(mode)
    weights = weights.squeeze(0).mean(dim=0).cpu().numpy()
    row = weights.mean(axis=0) if model.pool == "mean" else weights[0, 1:]
    row = row / max(row.max(), 1e-12)
    side = image.shape[-1] // model.patch_size
    return np.kron(row.reshape(side, side), np.ones((model.patch_size, model.patch_size), dtype=row.dtype))


# ======================================================================================================
#  ResNet
# ======================================================================================================
class ConvNorm(nn.Sequential):
    def __init__(self, inputs, outputs, kernel_size, stride):
        super().__init__(
            nn.Conv2d(inputs, outputs, kernel_size, stride, padding=kernel_size // 2, bias=False),
            nn.BatchNorm2d(outputs),
        )


class BasicBlock(nn.Module):
    def __init__(self, in_channels, channels, stride=1):
        super().__init__()
        self.body = nn.Sequential(
            ConvNorm(in_channels, channels, 3, stride), nn.ReLU(), ConvNorm(channels, channels, 3, 1)
        )
        if (in_channels, 1) == (channels, stride):
            self.shortcut = lambda x: x
        else:
            self.shortcut = ConvNorm(in_channels, channels, 1, stride)

    def forward(self, x):
        return torch.relu(self.body(x) + self.shortcut(x))


class ResNet18(nn.Module):
    def __init__(self, num_classes=10, width=64):
        super().__init__()
        layers = OrderedDict(stem=ConvNorm(3, width, 3, 1), relu=nn.ReLU())
        before = width
        for number in range(8):  # a new group at 2, 4 and 6
            after = width * 2 ** (number // 2)
            layers[f"block{number}"] = BasicBlock(before, after, stride=2 if after != before else 1)
            before = after
        layers["pool"] = nn.AdaptiveAvgPool2d((1, 1))
        layers["flatten"] = nn.Flatten()
        layers["linear"] = nn.Linear(before, num_classes)
        self.layers = nn.Sequential(layers)

    def forward(self, images):
        return self.layers(images)


def parameter_table(model):
    """By the first two parts of each name."""
    names = [(".".join(name.split(".")[:2]), p.numel()) for name, p in model.named_parameters()]
    counts = pd.DataFrame(names, columns=["part", "parameters"]).groupby("part", sort=False)["parameters"].sum()
    return [(str(part), int(count)) for part, count in counts.items()]


# ======================================================================================================
#  Training
# ======================================================================================================
def warmup_cosine(step, warmup_steps, total_steps):
    if step >= total_steps:
        return 0.0
    rising = step / warmup_steps if warmup_steps > 0 else 1.0
    falling = math.cos(math.pi / 2 * max(step - warmup_steps, 0) / max(total_steps - warmup_steps, 1)) ** 2
    return min(rising, 1.0) * falling  # cos^2(a / 2) = (1 + cos(a)) / 2


def train_epoch(model, loader, criterion, optimizer, scheduler, device):
    model.train()
    sums = torch.zeros(3, dtype=torch.float64)  # loss, hits, images
    for images, labels in loader:
        images, labels = images.to(device), labels.to(device)
        optimizer.zero_grad()
        scores = model(images)
        loss = criterion(scores, labels)
        loss.backward()
        optimizer.step()
        if scheduler is not None:
            scheduler.step()
        hits = (scores.detach().argmax(dim=1) == labels).sum()
        sums += torch.tensor([loss.item() * len(labels), hits.item(), len(labels)], dtype=torch.float64)
    loss, hits, images = sums.tolist()
    return loss / images, hits / images


def evaluate(model, loader, criterion, device):
    model.eval()
    targets, predictions, probabilities, loss = [], [], [], 0.0
    with torch.no_grad():
        for images, labels in loader:
            scores = model(images.to(device))
            loss += criterion(scores, labels.to(device)).item() * len(labels)
            targets.extend(labels.tolist())
            predictions.extend(scores.argmax(dim=1).tolist())
            probabilities.extend(scores.softmax(dim=1).tolist())
    hits = sum(t == p for t, p in zip(targets, predictions))
    return dict(
        loss=loss / len(targets), accuracy=hits / len(targets), targets=targets, predictions=predictions,
        probabilities=probabilities,
    )  # fmt: skip


class BestWeights:
    """Remembers the weights with the highest score; of equal scores the first."""

    def __init__(self, model):
        self.model, self.score, self.weights = model, None, None

    def offer(self, score):
        if self.score is None or score > self.score:
            self.score = score
            self.weights = {name: value.detach().to("cpu", copy=True) for name, value in self.model.state_dict().items()}

    def restore(self):
        if self.weights is not None:
            self.model.load_state_dict(self.weights)


class Trainer:
    def __init__(self, model, loaders, epochs, device, rate=2e-3, decay=0.02):
        self.model, self.loaders, self.epochs, self.device = model.to(device), loaders, epochs, device
        self.criterion = nn.CrossEntropyLoss()
        learnable = filter(lambda p: p.requires_grad, model.parameters())
        self.optimizer = torch.optim.AdamW(learnable, lr=rate, weight_decay=decay)
        steps = len(loaders["train"]) * epochs
        warmup = min(len(loaders["train"]), steps // 5)
        self.scheduler = torch.optim.lr_scheduler.LambdaLR(
            self.optimizer, lambda step: warmup_cosine(step, warmup, steps)
        )
        self.best = BestWeights(model)

    def run(self):
        history = []
        for epoch in range(self.epochs):
            loss, accuracy = train_epoch(
                self.model, self.loaders["train"], self.criterion, self.optimizer, self.scheduler, self.device
            )
            seen = evaluate(self.model, self.loaders["validation"], self.criterion, self.device)
            self.best.offer(seen["accuracy"])
            history.append((epoch + 1, loss, accuracy, seen["loss"], seen["accuracy"]))
            print("epoch %d: loss %.3f / %.3f, accuracy %.3f / %.3f" % (
                epoch + 1, loss, seen["loss"], accuracy, seen["accuracy"]), flush=True)  # fmt: skip
        self.best.restore()
        return history


def fit(model, loaders, epochs, device):
    return Trainer(model, loaders, epochs, device).run()


# ======================================================================================================
#  Measures
# ======================================================================================================
def roc_curve(positive, scores):
    """False and true positive rates from (0, 0) to (1, 1), a point for each different score."""
    levels, level_of = np.unique(-scores, return_inverse=True)  # highest score first
    hits = np.bincount(level_of[positive], minlength=len(levels)).cumsum()
    alarms = np.bincount(level_of[~positive], minlength=len(levels)).cumsum()
    return np.concatenate([[0.0], alarms / alarms[-1]]), np.concatenate([[0.0], hits / hits[-1]])


def trapezoids(x, y):
    return float(np.sum(np.diff(x) * (y[1:] + y[:-1]) / 2))


def one_class(positive, predicted, scores):
    """Measures of one class against all others."""
    tp = np.sum(positive & predicted)
    precision = tp / predicted.sum() if predicted.any() else 0.0
    recall = tp / positive.sum() if positive.any() else 0.0
    f1 = 2 * precision * recall / (precision + recall) if tp > 0 else 0.0
    auc = trapezoids(*roc_curve(positive, scores)) if 0 < positive.sum() < len(positive) else np.nan
    return precision, recall, f1, auc


def classification_metrics(targets, probabilities):
    targets, probabilities = np.asarray(targets, dtype=int), np.asarray(probabilities, dtype=float)
    n, classes = probabilities.shape
    predictions = np.argmax(probabilities, axis=1)
    confusion = np.zeros((classes, classes), dtype=int)
    for true, predicted in zip(targets, predictions):
        confusion[true, predicted] += 1
    table = np.array([one_class(targets == c, predictions == c, probabilities[:, c]) for c in range(classes)])
    support = confusion.sum(axis=1)
    metrics = {"confusion": confusion, "support": support, "accuracy": float(np.trace(confusion) / max(n, 1))}
    for name, column in zip(("precision", "recall", "f1", "roc_auc"), table.T):
        metrics[name] = column
        valid = np.logical_and(support > 0, ~np.isnan(column))
        if valid.any():
            metrics["macro_" + name] = float(np.mean(column[valid]))
            metrics["weighted_" + name] = float(np.dot(column[valid], support[valid]) / support[valid].sum())
        else:
            metrics["macro_" + name] = metrics["weighted_" + name] = float("nan")
    return metrics


def export_metrics(metrics, path):
    lines, todo = ["metric,value"], [("", metrics)]
    while todo:  # a stack in place of recursion
        name, value = todo.pop()
        if isinstance(value, dict):
            children = list(value.items())
        elif np.ndim(value) == 1:
            children = list(enumerate(value))
        elif np.ndim(value) > 1:
            continue
        else:
            text = '"%s"' % name if "," in name else name
            lines.append(f"{text},{float(value)!r}")
            continue
        todo += [(f"{name}.{key}" if name else f"{key}", child) for key, child in reversed(children)]
    pathlib.Path(path).write_text("\n".join(lines) + "\n", encoding="utf-8")


# ======================================================================================================
#  Pictures
# ======================================================================================================
def plot_learning_curves(history):
    epoch, train_loss, train_accuracy, loss, accuracy = zip(*history)
    fig, (left, right) = plt.subplots(2, 1, figsize=(6, 8), sharex=True)
    left.plot(epoch, train_loss, "o-", label="loss, training")
    left.plot(epoch, loss, "s--", label="loss, validation")
    left.set_xlabel("epoch")
    left.set_ylabel("loss")
    left.legend()
    right.plot(epoch, train_accuracy, "o-", label="accuracy, training")
    right.plot(epoch, accuracy, "s--", label="accuracy, validation")
    right.set_xlabel("epoch")
    right.set_ylabel("accuracy")
    right.legend()
    return fig


def plot_confusion_matrix(matrix, class_names):
    matrix = np.asarray(matrix)
    fig = plt.figure(figsize=(8, 7))
    ax = fig.add_subplot()
    picture = ax.imshow(matrix / np.maximum(matrix.sum(axis=1, keepdims=True), 1), cmap="YlGnBu", vmin=0, vmax=1)
    fig.colorbar(picture, label="share of the true class")
    for (i, j), count in np.ndenumerate(matrix):
        ax.text(j, i, int(count), ha="center", va="center", fontsize=8)
    ax.set_xticks(range(len(class_names)), labels=class_names, rotation=60, ha="right")
    ax.set_yticks(range(len(class_names)), labels=class_names)
    ax.set_xlabel("predicted")
    ax.set_ylabel("true")
    fig.tight_layout()
    return fig


def plot_roc(targets, probabilities, class_names):
    targets, probabilities = np.asarray(targets), np.asarray(probabilities)
    fig, ax = plt.subplots(figsize=(6, 6))
    for c, name in enumerate(class_names):
        positive = targets == c
        if positive.any() and not positive.all():
            x, y = roc_curve(positive, probabilities[:, c])
            ax.plot(x, y, label=f"{name}, area {trapezoids(x, y):.3f}")
    ax.set_xlabel("false positive rate")
    ax.set_ylabel("true positive rate")
    ax.set_aspect("equal")
    ax.legend()
    return fig


def visible(image, mean, std):
    picture = np.moveaxis(np.asarray(image.detach().cpu()), 0, -1)
    return np.clip(picture * np.asarray(std) + np.asarray(mean), 0.0, 1.0)


def plot_attention(model, images, labels, class_names, mean, std):
    fig = plt.figure(figsize=(7, 2.3 * len(images)))
    rows = fig.subfigures(len(images), 1, squeeze=False)[:, 0]
    for row, image, label in zip(rows, images, labels):
        row.suptitle(class_names[int(label)], fontsize=9)
        picture, weights = visible(image, mean, std), attention_map(model, image)
        one, two, three = row.subplots(1, 3)
        one.imshow(picture)
        two.imshow(weights, cmap="gray")
        three.imshow(picture)
        three.imshow(weights, cmap="jet", alpha=0.4)
        for ax in (one, two, three):
            ax.set_xticks([])
            ax.set_yticks([])
    return fig


def plot_top3(images, labels, probabilities, class_names, mean, std):
    fig, axes = plt.subplots(len(images), 1, figsize=(6, 2 * len(images)), squeeze=False)
    for ax, image, label, row in zip(axes.flat, images, labels, np.asarray(probabilities)):
        ax.imshow(visible(image, mean, std))
        ax.set_axis_off()
        ax.set_title("true class: " + class_names[int(label)], fontsize=9)
        best = sorted(range(len(row)), key=lambda c: -row[c])[:3]
        text = "\n".join("%-24s %5.1f %%" % (class_names[c], 100 * row[c]) for c in best)
        ax.text(1.05, 0.5, text, transform=ax.transAxes, va="center", family="monospace", fontsize=8)
    return fig


# ======================================================================================================
#  Everything
# ======================================================================================================
COLUMNS = ["patch_size", "dim", "depth", "heads", "mlp_ratio", "positions", "epochs", "seed", "parameters",
           "validation_accuracy"]  # fmt: skip
BASE = dict(patch_size=8, dim=48, depth=2, heads=3, mlp_ratio=2.0, positions="learned", epochs=4)
CHANGES = [("patch_size", 4), ("dim", 72), ("depth", 4), ("heads", 6), ("mlp_ratio", 4.0), ("positions", "sinusoidal")]


def study(loaders, classes):
    plan = [(BASE, seed) for seed in (10, 11, 12)]
    plan += [({**BASE, name: value}, 10) for name, value in CHANGES]
    rows = []
    for values, seed in plan:
        torch.manual_seed(seed)
        arguments = dict(values)
        epochs = arguments.pop("epochs")
        model = VisionTransformer(num_classes=len(classes), dropout=0.0, **arguments)
        fit(model, loaders, epochs, device)
        accuracy = evaluate(model, loaders["validation"], nn.CrossEntropyLoss(), device)["accuracy"]
        parameters = sum(number for _, number in parameter_table(model))
        rows.append([*values.values(), seed, parameters, accuracy])
        print(rows[-1])
    pd.DataFrame(rows, columns=COLUMNS).to_csv(f"{STUDENT_ID}_study.csv", index=False, float_format="%.4f")


def main(run_study=True):
    torch.manual_seed(1)
    loaders, test, classes = make_loaders()

    vit = VisionTransformer(num_classes=len(classes), dim=64, depth=4, heads=4, mlp_ratio=2.0, dropout=0.0)
    vit_history = fit(vit, loaders, 7, device)
    torch.save(vit.state_dict(), f"{STUDENT_ID}_CIFAR10_vit.pth")

    resnet = ResNet18(num_classes=len(classes), width=16)
    resnet_history = fit(resnet, loaders, 3, device)
    torch.save(resnet.state_dict(), f"{STUDENT_ID}_CIFAR10_resnet.pth")

    measures = {}
    for name, model, history in [("vit", vit, vit_history), ("resnet", resnet, resnet_history)]:
        found = evaluate(model, test, nn.CrossEntropyLoss(), device)
        measures[name] = classification_metrics(found["targets"], found["probabilities"])
        print(name, "test accuracy:", found["accuracy"], "parameters:", sum(k for _, k in parameter_table(model)))
        plot_learning_curves(history)
        plot_confusion_matrix(measures[name]["confusion"], classes)
        plot_roc(found["targets"], found["probabilities"], classes)
    export_metrics(measures, f"{STUDENT_ID}_metrics.csv")

    images, labels = next(iter(test))
    images, labels = images[::60][:4], labels[::60][:4]
    plot_attention(vit, images, labels, classes, MEAN, STD)
    with torch.no_grad():
        probabilities = vit.eval()(images.to(device)).softmax(dim=1).cpu().numpy()
    plot_top3(images, labels, probabilities, classes, MEAN, STD)

    if run_study:
        study(loaders, classes)


if __name__ == "__main__":
    RUN_STUDY = False  # the table is written
    main(run_study=RUN_STUDY)
