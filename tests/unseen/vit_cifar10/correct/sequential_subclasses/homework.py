"""Devoir 2. Règle que je me suis donnée : every module is a subclass of nn.Sequential.

A network is a list of things that happen one after the other, and a subclass only says what is special about its list
(`Residual` adds its input, `Prepend` puts a token in front, ...). No module here has an attribute that is not a step.
"""

# %%
import csv
import math
import time
import zipfile
from collections import Counter, OrderedDict

import matplotlib.pyplot as plt
import numpy as np
import torch
from torch import nn
from torch.utils.data import ConcatDataset, DataLoader, Subset
from torchvision import datasets, transforms

STUDENT_ID = "402090551"
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(3)

# %% Images
MEAN, STD = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)

with zipfile.ZipFile("dataset.zip") as archive:
    archive.extractall("data")


class Plain(transforms.Compose):
    def __init__(self, *before):
        super().__init__([*before, transforms.ToTensor(), transforms.Normalize(MEAN, STD)])


class Augmented(Plain):
    def __init__(self):
        super().__init__(transforms.RandomCrop(32, padding=4), transforms.RandomHorizontalFlip())


plain_images = datasets.ImageFolder("data/train", Plain())
augmented_images = datasets.ImageFolder("data/train", Augmented())
test_images = datasets.ImageFolder("data/test", Plain())
class_names = test_images.classes

# each class on its own: every tenth image after shuffling is for validation
generator = torch.Generator().manual_seed(3)
labels_of_all = torch.tensor(plain_images.targets)
own_rows = [(labels_of_all == label).nonzero().flatten() for label in range(len(class_names))]
own_rows = [rows[torch.randperm(len(rows), generator=generator)] for rows in own_rows]
held = [rows[::10] for rows in own_rows]
kept = [rows[torch.arange(len(rows)) % 10 != 0] for rows in own_rows]
loaders = {
    "train": DataLoader(
        ConcatDataset([Subset(augmented_images, rows.tolist()) for rows in kept]), batch_size=64, shuffle=True
    ),
    "validation": DataLoader(Subset(plain_images, torch.cat(held).tolist()), batch_size=256),
}
test_loader = DataLoader(test_images, batch_size=256)


# %% Steps that have no weights
class Transpose(nn.Sequential):
    """(B, dim, N) <-> (B, N, dim)"""

    def forward(self, x):
        return x.transpose(1, 2)


class First(nn.Sequential):
    def forward(self, x):
        return x[:, 0]


class MeanOfTokens(nn.Sequential):
    def forward(self, x):
        return x.mean(dim=1)


class Residual(nn.Sequential):
    """x + steps(x)"""

    def forward(self, x):
        return x + super().forward(x)


# %% Steps that are tables: nn.Sequential may hold parameters, too
class Prepend(nn.Sequential):
    def __init__(self, dim):
        super().__init__()
        self.token = nn.Parameter(torch.empty(1, 1, dim).normal_(std=0.02))

    def forward(self, x):
        return torch.cat([self.token.repeat(len(x), 1, 1), x], dim=1)


class AddLearned(nn.Sequential):
    def __init__(self, tokens, dim):
        super().__init__()
        self.table = nn.Parameter(torch.empty(tokens, dim).normal_(std=0.02))

    def forward(self, x):
        return x + self.table


class AddFixed(nn.Sequential):
    def __init__(self, tokens, dim):
        super().__init__()
        self.register_buffer("table", sinusoidal_positions(tokens, dim))

    def forward(self, x):
        return x + self.table


def sinusoidal_positions(tokens, dim):
    pairs = torch.arange(dim // 2, dtype=torch.float64)
    angles = torch.outer(torch.arange(tokens, dtype=torch.float64), 10000 ** (-2 * pairs / dim))
    return torch.stack([angles.sin(), angles.cos()], dim=2).reshape(tokens, dim).float()


# %% The Transformer
class PatchEmbedding(nn.Sequential):
    def __init__(self, image_size, patch_size, in_channels, dim):
        super().__init__(
            nn.Conv2d(in_channels, dim, kernel_size=patch_size, stride=patch_size),
            nn.Flatten(start_dim=2),  # ligne par ligne
            Transpose(),
        )


class Projections(nn.Sequential):
    """(B, N, dim) -> three times (B, heads, N, dim / heads)"""

    def __init__(self, dim, heads):
        super().__init__(nn.Linear(dim, 3 * dim), nn.Unflatten(-1, (3, heads, dim // heads)))

    def forward(self, x):
        return super().forward(x).permute(2, 0, 3, 1, 4)


class Scores(nn.Sequential):
    """q k^T / sqrt(width), then the steps (a softmax)"""

    def __init__(self):
        super().__init__(nn.Softmax(dim=-1))

    def forward(self, q, k):
        return super().forward(torch.matmul(q * q.shape[-1] ** -0.5, k.mT))


class MultiHeadSelfAttention(nn.Sequential):
    def __init__(self, dim, heads, dropout=0.0):
        super().__init__(
            OrderedDict(
                project=Projections(dim, heads),
                weigh=Scores(),
                drop=nn.Dropout(dropout),
                join=nn.Flatten(start_dim=2),
                mix=nn.Linear(dim, dim),
            )
        )

    def forward(self, x, return_weights=False):
        q, k, v = self.project(x)
        weights = self.weigh(q, k)
        together = (self.drop(weights) @ v).transpose(1, 2)  # (B, N, heads, width)
        x = self.mix(self.join(together))
        return (x, weights) if return_weights else x


class EncoderBlock(nn.Sequential):
    """No forward of its own: two residual sub-layers in a row are all that it is."""

    def __init__(self, dim, heads, mlp_ratio=4.0, dropout=0.0):
        hidden = int(dim * mlp_ratio)
        super().__init__(
            Residual(OrderedDict(norm=nn.LayerNorm(dim), attention=MultiHeadSelfAttention(dim, heads, dropout))),
            Residual(
                OrderedDict(
                    norm=nn.LayerNorm(dim),
                    up=nn.Linear(dim, hidden),
                    bend=nn.GELU(),
                    down=nn.Linear(hidden, dim),
                    drop=nn.Dropout(dropout),
                )
            ),
        )

    def weights(self, x):
        first = self[0]
        return first.attention(first.norm(x), return_weights=True)[1]


class Encoder(nn.Sequential):
    def __init__(self, depth, *arguments):
        super().__init__(*[EncoderBlock(*arguments) for _ in range(depth)])

    def weights(self, x):
        *before, last = self.children()
        for block in before:
            x = block(x)
        return last.weights(x)


class VisionTransformer(nn.Sequential):
    def __init__(
        self,
        image_size=32,
        patch_size=4,
        in_channels=3,
        num_classes=10,
        dim=192,
        depth=9,
        heads=8,
        mlp_ratio=4.0,
        dropout=0.1,
        positions="learned",
        pool="cls",
    ):
        if pool not in {"cls", "mean"}:
            raise ValueError(f"pool is 'cls' or 'mean', not {pool!r}")
        with_token = [("token", Prepend(dim))] if pool == "cls" else []
        tokens = (image_size // patch_size) ** 2 + len(with_token)
        add = {"learned": AddLearned, "sinusoidal": AddFixed}[positions]
        embed = OrderedDict(
            [
                ("patches", PatchEmbedding(image_size, patch_size, in_channels, dim)),
                *with_token,
                ("positions", add(tokens, dim)),
                ("drop", nn.Dropout(dropout)),
            ]
        )
        super().__init__(
            OrderedDict(
                embed=nn.Sequential(embed),
                encoder=Encoder(depth, dim, heads, mlp_ratio, dropout),
                norm=nn.LayerNorm(dim),
                pool=First() if pool == "cls" else MeanOfTokens(),
                head=nn.Linear(dim, num_classes),
            )
        )

    def attention(self, images):
        return self.encoder.weights(self.embed(images))


def attention_map(model, image):
    mode = model.training
    model.eval()
    with torch.no_grad():
        weights = model.attention(image.to(next(model.parameters()).device).unsqueeze(0))
    model.train(mode)
    weights = weights.squeeze(0).mean(dim=0).cpu()
    side = math.isqrt(len(weights))  # de même avec un jeton de plus : isqrt(n^2 + 1) = n
    seen = weights.mean(dim=0) if side**2 == len(weights) else weights[0, 1:]
    seen = seen / (seen.max() if seen.max() > 0 else 1)
    patch = image.shape[1] // side
    grow = nn.Sequential(nn.Unflatten(0, (1, 1, side, side)), nn.Upsample(scale_factor=patch, mode="nearest"))
    return grow(seen)[0, 0]


# %% The ResNet
class ConvNorm(nn.Sequential):
    def __init__(self, in_channels, channels, kernel_size, stride=1):
        super().__init__(
            nn.Conv2d(in_channels, channels, kernel_size, stride, kernel_size // 2, bias=False),
            nn.BatchNorm2d(channels),
        )


class TwoPaths(nn.Sequential):
    """The sum of what its two steps make of the same x."""

    def forward(self, x):
        one, other = self
        return one(x) + other(x)


class BasicBlock(nn.Sequential):
    def __init__(self, in_channels, channels, stride=1):
        reshaped = stride != 1 or in_channels != channels
        super().__init__(
            TwoPaths(
                nn.Sequential(ConvNorm(in_channels, channels, 3, stride), nn.ReLU(), ConvNorm(channels, channels, 3)),
                ConvNorm(in_channels, channels, 1, stride) if reshaped else nn.Sequential(),  # vide : l'identité
            ),
            nn.ReLU(),
        )


class Group(nn.Sequential):
    def __init__(self, in_channels, channels, stride):
        super().__init__(BasicBlock(in_channels, channels, stride), BasicBlock(channels, channels))


class ResNet18(nn.Sequential):
    def __init__(self, num_classes=10, width=64):
        super().__init__(
            ConvNorm(3, width, 3),
            nn.ReLU(),
            Group(width, width, 1),
            Group(width, 2 * width, 2),
            Group(2 * width, 4 * width, 2),
            Group(4 * width, 8 * width, 2),
            nn.AdaptiveAvgPool2d((1, 1)),
            nn.Flatten(),
            nn.Linear(8 * width, num_classes),
        )


def parameter_table(model):
    counts = Counter()
    for name, weights in model.named_parameters():
        path = name.split(".")
        counts[".".join(path[:2]) if len(path) > 2 else path[0]] += weights.numel()
    return sorted(counts.items())


# %% Training
def warmup_cosine(step, warmup_steps, total_steps):
    if step < warmup_steps:
        return step / warmup_steps
    left = max(total_steps - step, 0)
    return 0.5 - 0.5 * math.cos(math.pi * left / (total_steps - warmup_steps)) if left else 0.0


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
        losses.append(loss.detach())
        hits.append((scores.argmax(dim=1) == labels).sum())
        sizes.append(len(labels))
    sizes = torch.tensor(sizes, dtype=torch.float64)
    losses = torch.stack(losses).cpu().double()
    return (losses @ sizes / sizes.sum()).item(), (torch.stack(hits).sum().cpu() / sizes.sum()).item()


@torch.inference_mode()
def evaluate(model, loader, criterion, device):
    model.eval()
    kept = []
    for images, labels in loader:
        scores, labels = model(images.to(device)), labels.to(device)
        # the criterion is a mean: times its images it is a sum
        kept.append((criterion(scores, labels).reshape(1) * len(labels), scores.softmax(dim=1), labels))
    losses, probabilities, targets = (torch.cat(column).cpu().numpy() for column in zip(*kept))
    predictions = probabilities.argmax(axis=1)
    return {
        "loss": float(losses.sum(dtype=np.float64) / len(targets)),
        "accuracy": float(np.mean(predictions == targets)),
        "targets": targets,
        "predictions": predictions,
        "probabilities": probabilities,
    }


def fit(model, loaders, epochs, device):
    model.to(device)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.05)
    steps = len(loaders["train"]) * epochs
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: warmup_cosine(step, steps // 10, steps))
    history, best = [], {"accuracy": -1.0}
    for epoch in range(epochs):
        loss, accuracy = train_epoch(model, loaders["train"], criterion, optimizer, scheduler, device)
        found = evaluate(model, loaders["validation"], criterion, device)
        history.append(
            {
                "epoch": epoch + 1,
                "training": {"loss": loss, "accuracy": accuracy},
                "validation": {"loss": found["loss"], "accuracy": found["accuracy"]},
            }
        )
        if found["accuracy"] > best["accuracy"]:
            best = {
                "accuracy": found["accuracy"],
                "weights": OrderedDict((name, value.cpu().clone()) for name, value in model.state_dict().items()),
            }
    if "weights" in best:
        model.load_state_dict(best["weights"])
    return history


# %% Measures
def divide(above, below):
    return np.where(below > 0, above / np.maximum(below, 1), 0.0)


def area(scores, positives):
    """Of the pairs of a positive and a negative, from the sorted scores: each tie spans a block of ranks."""
    p, n = positives.sum(), (~positives).sum()
    if p * n == 0:
        return np.nan
    ordered = np.sort(scores)
    first = np.searchsorted(ordered, scores[positives], side="left")
    after = np.searchsorted(ordered, scores[positives], side="right")
    ranks = (first + after + 1) / 2  # mean of first + 1 .. after
    return (ranks.sum() - p * (p + 1) / 2) / (p * n)


def classification_metrics(targets, probabilities):
    targets = np.asarray(targets).astype(np.intp)
    probabilities = np.asarray(probabilities)
    number = probabilities.shape[1]
    predictions = np.argmax(probabilities, axis=1)
    labels = np.arange(number)
    is_true = targets[:, None] == labels
    is_called = predictions[:, None] == labels
    confusion = is_true.T.astype(np.int64) @ is_called.astype(np.int64)
    right, support, called = np.diagonal(confusion), is_true.sum(axis=0), is_called.sum(axis=0)
    result = OrderedDict(
        confusion=confusion,
        accuracy=float(right.sum() / max(len(targets), 1)),
        support=support,
        precision=divide(right, called),
        recall=divide(right, support),
        f1=divide(2 * right, called + support),
        roc_auc=np.array([area(probabilities[:, c], is_true[:, c]) for c in labels], dtype=float),
    )
    for name in ("precision", "recall", "f1", "roc_auc"):
        values = np.ma.masked_invalid(result[name])
        values = np.ma.masked_where(support == 0, values)
        for kind, weights in (("macro", np.ones(number)), ("weighted", support.astype(float))):
            mean = np.ma.average(values, weights=weights)
            result[f"{kind}_{name}"] = np.nan if mean is np.ma.masked else float(mean)
    return dict(result)


def export_metrics(metrics, path):
    waiting = list(metrics.items())
    rows = []
    while waiting:  # à plat : what is nested goes back to the front of the queue
        name, value = waiting.pop(0)
        if hasattr(value, "items"):
            waiting = [(f"{name}.{inner}", x) for inner, x in value.items()] + waiting
        elif np.ndim(value) == 1:
            waiting = [(f"{name}.{i}", x) for i, x in enumerate(value)] + waiting
        elif np.ndim(value) == 0:
            rows.append([name, float(value)])
    with open(path, "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([["metric", "value"], *rows])


# %% Pictures
def plot_learning_curves(history):
    figure, all_axes = plt.subplots(1, 2, figsize=(9, 3.5))
    for axes, quantity in zip(all_axes, ["loss", "accuracy"]):
        for part in ["training", "validation"]:
            axes.plot([row["epoch"] for row in history], [row[part][quantity] for row in history], "o-", label=part)
        axes.set_xlabel("epoch")
        axes.set_ylabel(quantity)
        axes.set_title(f"{quantity} per epoch")
        axes.legend()
    figure.tight_layout()


def plot_confusion_matrix(matrix, class_names):
    matrix = np.asarray(matrix)
    shares = matrix / np.maximum(matrix.sum(axis=1, keepdims=True), 1)  # la couleur : part de la ligne
    figure, axes = plt.subplots(figsize=(7, 6))
    picture = axes.imshow(shares, cmap="Greens", vmin=0, vmax=1)
    figure.colorbar(picture, label="share of the true class")
    for row, counts in enumerate(matrix):
        for column, count in enumerate(counts):
            axes.text(column, row, f"{count:g}", ha="center", va="center", color="w" if shares[row, column] > 0.5 else "k")
    axes.set(xticks=range(len(matrix)), yticks=range(len(matrix)), xlabel="predicted class", ylabel="true class")
    axes.set_xticklabels(class_names, rotation=45, ha="right")
    axes.set_yticklabels(class_names)
    figure.tight_layout()


def plot_roc(targets, probabilities, class_names):
    targets, probabilities = np.asarray(targets), np.asarray(probabilities)
    figure, axes = plt.subplots(figsize=(6, 6))
    for label, name in enumerate(class_names):
        scores, positives = probabilities[:, label], targets == label
        if 0 < positives.sum() < len(positives):
            thresholds = np.unique(scores)[::-1]
            above = scores[None] >= thresholds[:, None]  # (thresholds, n)
            rates = [above[:, who].mean(axis=1) for who in (~positives, positives)]
            x, y = ([0.0, *rate] for rate in rates)
            axes.plot(x, y, label=f"{name} ({area(scores, positives):.3f})")
    axes.plot([0, 1], [0, 1], "--", color="lightgrey")
    axes.set(xlabel="false positive rate", ylabel="true positive rate", title="ROC, each class against the others")
    axes.legend(title="class (area)", fontsize=8)
    figure.tight_layout()


class Restore(nn.Sequential):
    """A normalized image as matplotlib wants it: (H, W, C) from 0 to 1."""

    def __init__(self, mean, std):
        super().__init__()
        self.register_buffer("mean", torch.as_tensor(mean, dtype=torch.float32).reshape(-1, 1, 1))
        self.register_buffer("std", torch.as_tensor(std, dtype=torch.float32).reshape(-1, 1, 1))

    def forward(self, image):
        return (image.cpu() * self.std + self.mean).clamp(0, 1).movedim(0, -1).numpy()


def plot_attention(model, images, labels, class_names, mean, std):
    restore = Restore(mean, std)
    figure, rows = plt.subplots(len(images), 3, figsize=(6, 2 * len(images) + 0.4), squeeze=False)
    for axes, image, label in zip(rows, images, labels):
        shown, map_ = restore(image), attention_map(model, image)
        axes[0].imshow(shown)
        axes[1].imshow(map_, cmap="plasma", vmin=0, vmax=1)
        axes[2].imshow(shown)
        axes[2].imshow(map_, cmap="plasma", vmin=0, vmax=1, alpha=0.45)
        axes[0].set_ylabel(class_names[int(label)])
        for ax in axes:
            ax.set_xticks([])
            ax.set_yticks([])
    for ax, title in zip(rows[0], ["image", "attention", "overlay"]):
        ax.set_title(title)
    figure.tight_layout()


def plot_top3(images, labels, probabilities, class_names, mean, std):
    restore = Restore(mean, std)
    columns = min(3, len(images))
    lines = -(-len(images) // columns)
    figure, all_axes = plt.subplots(lines, columns, figsize=(3 * columns, 3.6 * lines), squeeze=False)
    for axes in all_axes.flat:
        axes.axis("off")
    for axes, image, label, row in zip(all_axes.flat, images, labels, torch.as_tensor(probabilities)):
        values, indices = row.sort(descending=True)
        best = zip(indices[:3].tolist(), values[:3].tolist())
        guesses = "\n".join(f"{class_names[index]}: {100 * value:.1f} %" for index, value in best)
        axes.imshow(restore(image))
        axes.set_title(f"true: {class_names[int(label)]}\n{guesses}", fontsize=9)
    figure.tight_layout()


# %% Both models
EPOCHS = {"vit": 15, "resnet": 15}
models = {
    "vit": VisionTransformer(
        num_classes=len(class_names), dim=64, depth=8, heads=4, mlp_ratio=4.0, dropout=0.0, positions="learned"
    ),
    "resnet": ResNet18(num_classes=len(class_names), width=16),
}
histories = {}
for name, model in models.items():
    start = time.time()
    histories[name] = fit(model, loaders, EPOCHS[name], device)
    torch.save(model.state_dict(), f"{STUDENT_ID}_CIFAR10_{name}.pth")
    print(f"{name}: {time.time() - start:.0f} s")

# %% Comparison
criterion = nn.CrossEntropyLoss()
measures = OrderedDict()
for name, model in models.items():
    found = evaluate(model, test_loader, criterion, device)
    numbers = classification_metrics(found["targets"], found["probabilities"])
    print(name, f"{found['accuracy']:.4f}", parameter_table(model))
    plot_learning_curves(histories[name])
    plot_confusion_matrix(numbers["confusion"], class_names)
    plot_roc(found["targets"], found["probabilities"], class_names)
    measures[name] = numbers
export_metrics(measures, f"{STUDENT_ID}_metrics.csv")

images, labels = next(iter(test_loader))
images, labels = images[:6], labels[:6]
plot_attention(models["vit"], images, labels, class_names, MEAN, STD)
to_probabilities = nn.Sequential(models["vit"], nn.Softmax(dim=1)).eval()
with torch.no_grad():
    plot_top3(images, labels, to_probabilities(images.to(device)).cpu(), class_names, MEAN, STD)

# %% Study
RUN_STUDY = True
BASE = OrderedDict(patch_size=8, dim=48, depth=2, heads=4, mlp_ratio=2.0, positions="learned", epochs=6)
STUDY = [
    *[dict(seed=seed) for seed in (10, 11, 12)],
    dict(patch_size=4),
    dict(dim=64),
    dict(depth=4),
    dict(depth=6),
    dict(heads=2),
    dict(mlp_ratio=4.0),
    dict(positions="sinusoidal"),
]

if RUN_STUDY:
    with open(f"{STUDENT_ID}_study.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, [*BASE, "seed", "parameters", "validation_accuracy"])
        writer.writeheader()
        for change in STUDY:
            row = {**BASE, "seed": 10, **change}
            torch.manual_seed(row["seed"])
            sizes = {key: row[key] for key in BASE if key != "epochs"}
            model = VisionTransformer(**sizes, num_classes=len(class_names), dropout=0.0)
            fit(model, loaders, row["epochs"], device)
            found = evaluate(model, loaders["validation"], criterion, device)
            row["parameters"] = sum(weights.numel() for weights in model.parameters())
            row["validation_accuracy"] = round(found["accuracy"], 4)
            writer.writerow(row)
