# %% [markdown]
# # A Vision Transformer for CIFAR-10, compared with a ResNet

# %%
import csv
import math
import zipfile
from collections import Counter
from collections import OrderedDict
from dataclasses import asdict, dataclass, field, replace
from itertools import islice

import matplotlib.pyplot as plt
import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn, optim
from torch.utils.data import DataLoader, Subset
from torchvision import datasets, transforms

STUDENT_ID = "400102007"

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(42)

# %% [markdown]
# ## The images

# %%
MEAN, STD = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)
with zipfile.ZipFile("dataset.zip") as archive:
    archive.extractall("data")


def folder(name, *augmentations):
    steps = [*augmentations, transforms.ToTensor(), transforms.Normalize(MEAN, STD)]
    return datasets.ImageFolder(f"data/{name}", transform=transforms.Compose(steps))


augmented = folder("train", transforms.RandomHorizontalFlip(), transforms.RandomCrop(32, 2, padding_mode="reflect"))
plain, test_images = folder("train"), folder("test")
class_names = plain.classes
rows = np.random.default_rng(42).permutation(len(plain))
validation_rows, training_rows = np.split(rows, [len(rows) // 10])
loaders = dict(
    train=DataLoader(Subset(augmented, training_rows.tolist()), batch_size=50, shuffle=True),
    validation=DataLoader(Subset(plain, validation_rows.tolist()), batch_size=200),
)
test_loader = DataLoader(test_images, batch_size=200)

# %% [markdown]
# ## The Vision Transformer

# %%
def patch_cutter(size):
    """Returns a function that cuts images into flat patches of this size."""

    def cut(images):
        return F.unfold(images, kernel_size=size, stride=size).mT

    return cut


class PatchEmbedding(nn.Module):
    def __init__(self, image_size, patch_size, in_channels, dim):
        super().__init__()
        self.cut = patch_cutter(patch_size)
        self.embed = nn.Linear(in_channels * patch_size * patch_size, dim, bias=False)

    def forward(self, images):
        return self.embed(self.cut(images))


# %%
def sinusoidal_positions(tokens, dim):
    # a cosine is a sine that is a quarter of a turn ahead
    column = torch.arange(dim)
    odd = column % 2
    angle = torch.arange(tokens, dtype=torch.float64).outer(10000.0 ** (-(column - odd).double() / dim))
    return (angle + odd * (math.pi / 2)).sin().float()


# %%
class MultiHeadSelfAttention(nn.Module):
    def __init__(self, dim, heads, dropout=0.0):
        super().__init__()
        self.heads = heads
        self.maps = nn.ModuleDict({name: nn.Linear(dim, dim) for name in ("query", "key", "value", "join")})
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, return_weights=False):
        parts = {
            name: self.maps[name](x).unflatten(2, (self.heads, -1)).transpose(1, 2)
            for name in ("query", "key", "value")
        }
        scale = math.sqrt(parts["query"].size(-1))
        weights = torch.softmax(torch.matmul(parts["query"], parts["key"].mT) / scale, dim=3)
        result = torch.matmul(self.dropout(weights), parts["value"])
        result = self.maps["join"](result.transpose(1, 2).flatten(2))
        return (result, weights) if return_weights else result


# %%
class EncoderBlock(nn.Module):
    def __init__(self, dim, heads, mlp_ratio=4.0, dropout=0.0):
        super().__init__()
        hidden = int(mlp_ratio * dim)
        self.norms = nn.ModuleDict({"attention": nn.LayerNorm(dim), "mlp": nn.LayerNorm(dim)})
        self.layers = nn.ModuleDict(
            {
                "attention": MultiHeadSelfAttention(dim, heads, dropout=dropout),
                "mlp": nn.Sequential(nn.Linear(dim, hidden), nn.GELU(), nn.Linear(hidden, dim)),
            }
        )

    def forward(self, x):
        for name in ("attention", "mlp"):
            x = x + self.layers[name](self.norms[name](x))
        return x

    def weights(self, x):
        return self.layers["attention"](self.norms["attention"](x), return_weights=True)[1]


# %%
class VisionTransformer(nn.Module):
    def __init__(self, image_size=32, patch_size=4, in_channels=3, num_classes=10, dim=192, depth=9, heads=8,
                 mlp_ratio=4.0, dropout=0.1, positions="learned", pool="cls"):
        super().__init__()
        patches = (image_size // patch_size) ** 2
        self.learned = nn.ParameterDict()
        if pool == "cls":
            self.learned["class"] = nn.Parameter(torch.randn(1, 1, dim) / 50)
        self.extra = int(pool == "cls")
        if positions == "learned":
            self.learned["positions"] = nn.Parameter(torch.randn(1, patches + self.extra, dim) / 50)
        else:
            table = sinusoidal_positions(patches + self.extra, dim)
            self.register_buffer("fixed", table[None], persistent=False)
        self.parts = nn.ModuleDict(
            {
                "patches": PatchEmbedding(image_size, patch_size, in_channels, dim),
                "blocks": nn.ModuleDict(
                    {f"block{i}": EncoderBlock(dim, heads, mlp_ratio, dropout) for i in range(depth)}
                ),
                "norm": nn.LayerNorm(dim),
                "head": nn.Linear(dim, num_classes),
            }
        )

    def run(self, images, blocks):
        """The tokens after the first `blocks` blocks."""
        x = self.parts["patches"](images)
        if "class" in self.learned:
            x = torch.cat([self.learned["class"].expand(len(x), -1, -1), x], dim=1)
        x = x + (self.learned["positions"] if "positions" in self.learned else self.fixed)
        for block in islice(self.parts["blocks"].values(), blocks):
            x = block(x)
        return x

    def forward(self, images):
        x = self.parts["norm"](self.run(images, len(self.parts["blocks"])))
        return self.parts["head"](x[:, 0] if self.extra else x.mean(dim=1))

    def attention(self, images):
        *_, last = self.parts["blocks"].values()
        return last.weights(self.run(images, len(self.parts["blocks"]) - 1))


# %%
@torch.no_grad()
def attention_map(model, image):
    mode = model.training
    device_of_model = next(model.parameters()).device
    heads = model.eval().attention(image.unsqueeze(0).to(device_of_model)).squeeze(0).cpu()
    model.train(mode)
    mean = heads.mean(0)
    rows = math.isqrt(mean.shape[0])
    has_class = rows**2 != mean.shape[0]
    row = mean[0][1:] if has_class else mean.mean(0)
    grid = row.div(row.max()).view(rows, rows)
    return torch.kron(grid, torch.ones(image.shape[-2] // rows, image.shape[-1] // rows))


# %% [markdown]
# ## The ResNet

# %%
class BasicBlock(nn.Module):
    def __init__(self, in_channels, channels, stride=1):
        super().__init__()
        self.ways = nn.ModuleDict()
        self.ways["long"] = nn.Sequential(
            OrderedDict(
                conv1=nn.Conv2d(in_channels, channels, 3, stride, 1, bias=False),
                norm1=nn.BatchNorm2d(channels),
                relu=nn.ReLU(inplace=True),
                conv2=nn.Conv2d(channels, channels, 3, 1, 1, bias=False),
                norm2=nn.BatchNorm2d(channels),
            )
        )
        if (in_channels, 1) != (channels, stride):
            self.ways["short"] = nn.Sequential(
                OrderedDict(
                    conv=nn.Conv2d(in_channels, channels, 1, stride, bias=False), norm=nn.BatchNorm2d(channels)
                )
            )

    def forward(self, x):
        short = self.ways["short"](x) if "short" in self.ways else x
        return (self.ways["long"](x) + short).relu()


# %%
class ResNet18(nn.Module):
    def __init__(self, num_classes=10, width=64):
        super().__init__()
        steps = OrderedDict()
        steps["stem"] = nn.Conv2d(3, width, 3, padding=1, bias=False)
        steps["norm"] = nn.BatchNorm2d(width)
        steps["relu"] = nn.ReLU()
        before = width
        for number, factor in enumerate((1, 2, 4, 8), start=1):
            steps[f"group{number}_a"] = BasicBlock(before, factor * width, 1 if number == 1 else 2)
            steps[f"group{number}_b"] = BasicBlock(factor * width, factor * width)
            before = factor * width
        steps["pool"] = nn.AdaptiveAvgPool2d(1)
        steps["flat"] = nn.Flatten()
        steps["linear"] = nn.Linear(before, num_classes)
        self.steps = nn.ModuleDict(steps)

    def forward(self, images):
        for step in self.steps.values():
            images = step(images)
        return images


# %%
def parameter_table(model):
    table = Counter()
    for name, weights in model.named_parameters():
        table[name.split(".")[0]] += weights.numel()
    return list(table.items())


# %% [markdown]
# ## Training

# %%
def warmup_cosine(step, warmup_steps, total_steps):
    """sin(x) from a right angle on is the half cosine, too: (1 + cos(pi p)) / 2 = 1 - sin(pi p / 2)^2."""
    left = total_steps - step
    if step < warmup_steps:
        return step / warmup_steps
    return 1 - math.sin(math.pi / 2 * (1 - left / (total_steps - warmup_steps))) ** 2 if left > 0 else 0.0


# %%
def steps_of_training(model, loader, criterion, optimizer, scheduler, device):
    """Trains while it is asked for more; yields (images, sum of losses, hits) of each batch."""
    for images, labels in loader:
        scores = model(images.to(device))
        labels = labels.to(device)
        loss = criterion(scores, labels)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if scheduler is not None:
            scheduler.step()
        yield len(labels), loss.item() * len(labels), scores.argmax(1).eq(labels).sum().item()


def train_epoch(model, loader, criterion, optimizer, scheduler, device):
    model.train()
    n, loss, hits = map(sum, zip(*steps_of_training(model, loader, criterion, optimizer, scheduler, device)))
    return loss / n, hits / n


# %%
def answers(model, loader, criterion, device):
    """Yields (sum of losses, labels, probabilities) of each batch."""
    for images, labels in loader:
        scores = model(images.to(device))
        loss = criterion(scores, labels.to(device))
        yield loss.item() * len(labels), labels.cpu(), F.softmax(scores, -1).cpu()


@torch.no_grad()
def evaluate(model, loader, criterion, device):
    model.eval()
    losses, labels, probabilities = zip(*answers(model, loader, criterion, device))
    labels, probabilities = torch.cat(labels), torch.cat(probabilities)
    guesses = probabilities.argmax(-1)
    return dict(
        loss=math.fsum(losses) / len(labels),
        accuracy=guesses.eq(labels).sum().item() / len(labels),
        targets=labels,
        predictions=guesses,
        probabilities=probabilities,
    )


# %%
def fit(model, loaders, epochs, device):
    model.to(device)
    steps = epochs * len(loaders["train"])
    loss_of = nn.CrossEntropyLoss(label_smoothing=0.05)
    optimizer = optim.AdamW(model.parameters(), lr=1.5e-3, weight_decay=0.05)
    schedule = optim.lr_scheduler.LambdaLR(optimizer, lambda step: warmup_cosine(step, steps // 8, steps))

    def one_epoch():
        return train_epoch(model, loaders["train"], loss_of, optimizer, schedule, device)

    def measured():
        found = evaluate(model, loaders["validation"], loss_of, device)
        return found["loss"], found["accuracy"]

    def keeper():
        best, kept = -math.inf, {}

        def see(accuracy):
            nonlocal best, kept
            if accuracy > best:
                best, kept = accuracy, {name: w.detach().clone() for name, w in model.state_dict().items()}

        def put_back():
            if kept:
                model.load_state_dict(kept)

        return see, put_back

    see, put_back = keeper()
    history = []
    for _ in range(epochs):
        trained, validated = one_epoch(), measured()
        history.append({"training": trained, "validation": validated})
        see(validated[1])
    put_back()
    return history


# %% [markdown]
# ## Measures

# %%
def share(numerator, denominator):
    """The quotients, 0 where both are 0."""
    return numerator / np.where(denominator == 0, 1, denominator)


def area(scores, positive):
    """How likely a positive has more than a negative: found by binary search among the negatives."""
    low, high = np.sort(scores[~positive]), scores[positive]
    if not len(low) or not len(high):
        return np.nan
    below, not_above = np.searchsorted(low, high, "left"), np.searchsorted(low, high, "right")
    return (below + not_above).sum() / (2 * len(low) * len(high))


def classification_metrics(targets, probabilities):
    t, p = np.array(targets, dtype=np.int64), np.array(probabilities, dtype=np.float64)
    labels = np.arange(p.shape[1])
    true, called = np.equal.outer(t, labels), np.equal.outer(p.argmax(1), labels)
    confusion = true.T.astype(np.int64) @ called.astype(np.int64)
    hits = confusion.diagonal()
    each = {
        "precision": share(hits, confusion.sum(0)),
        "recall": share(hits, confusion.sum(1)),
        "f1": share(2.0 * hits, confusion.sum(0) + confusion.sum(1)),
        "roc_auc": np.array([area(p[:, k], true[:, k]) for k in labels]),
    }
    support = true.sum(0)
    means = {}
    for name, values in each.items():
        use = (support > 0) & np.isfinite(values)
        means[f"macro_{name}"] = float(values[use].mean()) if use.any() else math.nan
        means[f"weighted_{name}"] = float(values[use] @ support[use] / support[use].sum()) if use.any() else math.nan
    return {"confusion": confusion, "support": support, **each, "accuracy": float(hits.sum() / len(t)), **means}


# %%
def flattened(value, *names):
    """Yields (names joined by dots, number)."""
    if hasattr(value, "items"):
        for name, inner in value.items():
            yield from flattened(inner, *names, str(name))
    elif np.ndim(value) == 1:
        yield from flattened(dict(enumerate(value)), *names)
    elif np.ndim(value) == 0:
        yield ".".join(names), value


def export_metrics(metrics, path):
    with open(path, "w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(("metric", "value"))
        table.writerows(flattened(metrics))


# %% [markdown]
# ## Pictures

# %%
def plot_learning_curves(history):
    fig, axes = plt.subplots(2, 1, sharex=True, figsize=(6, 7))
    epochs = np.arange(len(history)) + 1

    def draw(ax, column, name):
        for part in ("training", "validation"):
            ax.plot(epochs, [row[part][column] for row in history], "o-", label=f"{part} {name}")
        ax.set_xlabel("epoch")
        ax.set_ylabel(name)
        ax.legend()

    draw(axes[0], 0, "loss")
    draw(axes[1], 1, "accuracy")
    return fig


# %%
def plot_confusion_matrix(matrix, class_names):
    matrix = np.asarray(matrix)
    figure, ax = plt.subplots(figsize=(7, 7))
    ax.matshow(matrix, cmap="viridis")
    for (row, column), count in np.ndenumerate(matrix):
        ax.annotate(f"{count:.0f}", (column, row), ha="center", va="center", color="red")
    ticks = np.arange(len(class_names))
    ax.set_xticks(ticks, labels=class_names, rotation=90)
    ax.set_yticks(ticks, labels=class_names)
    ax.xaxis.set_ticks_position("bottom")
    ax.set(xlabel="predicted", ylabel="true")
    return figure


# %%
def plot_roc(targets, probabilities, class_names):
    """Each class has a panel of its own."""
    t, p = np.asarray(targets), np.asarray(probabilities)
    shown = [k for k in range(len(class_names)) if 0 < np.sum(t == k) < len(t)]
    columns = min(5, max(len(shown), 1))
    rows = max(-(-len(shown) // columns), 1)
    figure, axes = plt.subplots(rows, columns, figsize=(3 * columns, 3 * rows), squeeze=False, layout="constrained")
    for ax, k in zip(axes.flat, shown):
        thresholds = np.concatenate([[np.inf], np.unique(p[:, k])[::-1]])
        positive = np.sort(p[t == k, k])
        negative = np.sort(p[t != k, k])
        tpr = 1 - np.searchsorted(positive, thresholds, side="left") / len(positive)
        fpr = 1 - np.searchsorted(negative, thresholds, side="left") / len(negative)
        ax.plot(fpr, tpr)
        ax.set(title=class_names[k], xlabel="false positive rate", ylabel="true positive rate")
    for ax in axes.flat[len(shown) :]:
        ax.remove()


# %%
def to_picture(image: torch.Tensor, mean: tuple, std: tuple) -> np.ndarray:
    """(height, width, channels) between 0 and 1."""
    offset, scale = (torch.as_tensor(v, dtype=torch.float32)[:, None, None] for v in (mean, std))
    return torch.addcmul(offset, image.detach().cpu(), scale).clip(0, 1).movedim(0, 2).numpy()


def plot_attention(model, images, labels, class_names, mean, std) -> None:
    """A subfigure for each image, with its class as the title."""
    figure = plt.figure(figsize=(8, 2.6 * len(images)), layout="constrained")
    for part, image, label in zip(np.atleast_1d(figure.subfigures(len(images), 1)), images, labels):
        part.suptitle(class_names[int(label)])
        left, middle, right = part.subplots(1, 3)
        picture, heat = to_picture(image, mean, std), np.asarray(attention_map(model, image))
        left.imshow(picture)
        middle.imshow(heat, cmap="inferno")
        right.imshow(picture)
        right.imshow(heat, cmap="inferno", alpha=0.5)
        for ax in (left, middle, right):
            ax.set_xticks([])
            ax.set_yticks([])


# %%
def plot_top3(images, labels, probabilities, class_names, mean, std) -> None:
    """The image, and what is said about it as a text beside it."""
    figure, axes = plt.subplots(len(images), 2, figsize=(6, 2.2 * len(images)), squeeze=False, layout="constrained")
    for (picture, words), image, label, row in zip(axes, images, labels, torch.as_tensor(probabilities)):
        values, classes = torch.topk(row, k=min(3, row.numel()))
        said = [f"true: {class_names[int(label)]}"]
        said += [f"{class_names[c]} ({v:.1%})" for v, c in zip(values.tolist(), classes.tolist())]
        picture.imshow(to_picture(image, mean, std))
        picture.axis("off")
        words.text(0.0, 0.5, "\n".join(said), va="center")
        words.axis("off")


# %% [markdown]
# ## Train both models

# %%
@dataclass(frozen=True)
class Sizes:
    """A row of the study: a Vision Transformer, and how long it is trained."""

    patch_size: int = 8
    dim: int = 48
    depth: int = 2
    heads: int = 4
    mlp_ratio: float = 2.0
    positions: str = "learned"
    epochs: int = 3

    def model(self) -> VisionTransformer:
        sizes = {name: value for name, value in asdict(self).items() if name != "epochs"}
        return VisionTransformer(**sizes, dropout=0.0, num_classes=len(class_names))


vit = VisionTransformer(dim=64, depth=5, heads=4, mlp_ratio=2.0, dropout=0.0, num_classes=len(class_names))
vit_history = fit(vit, loaders, 12, device)
torch.save(vit.state_dict(), f"{STUDENT_ID}_CIFAR10_vit.pth")

# %%
resnet = ResNet18(num_classes=len(class_names), width=16)
resnet_history = fit(resnet, loaders, 8, device)
torch.save(resnet.state_dict(), f"{STUDENT_ID}_CIFAR10_resnet.pth")

# %% [markdown]
# ## Compare them

# %%
criterion = nn.CrossEntropyLoss()
found_vit = evaluate(vit, test_loader, criterion, device)
found_resnet = evaluate(resnet, test_loader, criterion, device)
measures = {
    "vit": classification_metrics(found_vit["targets"], found_vit["probabilities"]),
    "resnet": classification_metrics(found_resnet["targets"], found_resnet["probabilities"]),
}
export_metrics(measures, f"{STUDENT_ID}_metrics.csv")
for name, found, history in (("vit", found_vit, vit_history), ("resnet", found_resnet, resnet_history)):
    print(f"{name}: {found['accuracy']:.1%}")
    plot_learning_curves(history)
    plot_confusion_matrix(measures[name]["confusion"], class_names)
    plot_roc(found["targets"], found["probabilities"], class_names)
for model in (vit, resnet):
    print(parameter_table(model))

# %%
images, labels = next(iter(test_loader))
plot_attention(vit, images[:5], labels[:5], class_names, MEAN, STD)
plot_top3(images[:5], labels[:5], found_vit["probabilities"][:5], class_names, MEAN, STD)

# %% [markdown]
# ## Study

# %%
RUN_STUDY = False  # takes minutes; its table is handed in
BASE = Sizes()
TRAININGS = [(BASE, seed) for seed in (10, 11, 12)] + [
    (replace(BASE, patch_size=4), 10),
    (replace(BASE, dim=72), 10),
    (replace(BASE, depth=4), 10),
    (replace(BASE, heads=3), 10),
    (replace(BASE, mlp_ratio=3.0), 10),
    (replace(BASE, positions="sinusoidal"), 10),
    (replace(BASE, epochs=5), 10),
]


def study_row(sizes: Sizes, seed: int) -> dict:
    torch.manual_seed(seed)
    model = sizes.model()
    fit(model, loaders, sizes.epochs, device)
    accuracy = float(evaluate(model, loaders["validation"], criterion, device)["accuracy"])
    parameters = sum(p.numel() for p in model.parameters())
    return asdict(sizes) | {"seed": seed, "parameters": parameters, "validation_accuracy": round(accuracy, 4)}


if RUN_STUDY:
    with open(f"{STUDENT_ID}_study.csv", "w", newline="") as file:
        study = [study_row(sizes, seed) for sizes, seed in TRAININGS]
        writer = csv.DictWriter(file, fieldnames=study[0].keys())
        writer.writeheader()
        writer.writerows(study)
