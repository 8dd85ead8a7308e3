# %% [markdown]
# # A Vision Transformer for CIFAR-10, compared with a ResNet

# %%
import csv
import math
import zipfile
from collections import OrderedDict
from functools import reduce as fold_left

import matplotlib.pyplot as plt
import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn, optim
from torch.utils.data import DataLoader, Subset
from torchvision import datasets, transforms

STUDENT_ID = "400103032"

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
    wave = (math.sin, math.cos)
    return torch.tensor(
        [[wave[c % 2](pos / 10000 ** ((c - c % 2) / dim)) for c in range(dim)] for pos in range(tokens)]
    )


# %%
class MultiHeadSelfAttention(nn.Module):
    def __init__(self, dim, heads, dropout=0.0):
        super().__init__()
        self.q, self.kv = nn.Linear(dim, dim), nn.Linear(dim, 2 * dim)
        self.out, self.drop = nn.Linear(dim, dim), nn.Dropout(dropout)
        width = dim // heads

        def to_heads(x):
            return x.view(*x.shape[:2], heads, width).transpose(1, 2)

        def from_heads(x):
            return x.transpose(1, 2).reshape(x.shape[0], x.shape[2], dim)

        def look(q, k):
            return torch.softmax(q @ k.mT / width**0.5, -1)

        self.to_heads, self.from_heads, self.look = to_heads, from_heads, look

    def forward(self, x, return_weights=False):
        k, v = map(self.to_heads, self.kv(x).chunk(2, -1))
        weights = self.look(self.to_heads(self.q(x)), k)
        y = self.out(self.from_heads(self.drop(weights) @ v))
        return (y, weights) if return_weights else y


# %%
class EncoderBlock(nn.Module):
    def __init__(self, dim, heads, mlp_ratio=4.0, dropout=0.0):
        super().__init__()
        widths = [dim, int(dim * mlp_ratio), dim]
        mlp = [nn.Linear(a, b) for a, b in zip(widths, widths[1:])]
        mlp.insert(1, nn.GELU())
        self.norms = nn.ModuleList([nn.LayerNorm(dim) for _ in range(2)])
        self.parts = nn.ModuleList([MultiHeadSelfAttention(dim, heads, dropout), nn.Sequential(*mlp)])

    def forward(self, x):
        for norm, part in zip(self.norms, self.parts):
            x = x + part(norm(x))
        return x

    def weights(self, x):
        return self.parts[0](self.norms[0](x), return_weights=True)[1]


# %%
class VisionTransformer(nn.Module):
    def __init__(self, image_size=32, patch_size=4, in_channels=3, num_classes=10, dim=192, depth=9, heads=8,
                 mlp_ratio=4.0, dropout=0.1, positions="learned", pool="cls"):
        super().__init__()
        n = (image_size // patch_size) ** 2
        front = 1 if pool == "cls" else 0
        self.embed = PatchEmbedding(image_size, patch_size, in_channels, dim)
        self.front = nn.Parameter(0.02 * torch.randn(1, front, dim)) if front else None
        if positions == "learned":
            self.where = nn.Parameter(0.02 * torch.randn(1, n + front, dim))
        else:
            self.register_buffer("where", sinusoidal_positions(n + front, dim).view(1, n + front, dim))
        self.blocks = nn.Sequential(*(EncoderBlock(dim, heads, mlp_ratio, dropout) for _ in range(depth)))
        self.norm, self.score = nn.LayerNorm(dim), nn.Linear(dim, num_classes)

    def begin(self, images):
        x = self.embed(images)
        return self.where + (x if self.front is None else torch.cat([self.front.expand(len(x), 1, -1), x], 1))

    def forward(self, images):
        x = fold_left(lambda tokens, block: block(tokens), self.blocks, self.begin(images))
        return self.score(self.norm(x.mean(1) if self.front is None else x.select(1, 0)))

    def attention(self, images):
        *first, last = self.blocks
        return last.weights(fold_left(lambda tokens, block: block(tokens), first, self.begin(images)))


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
def resnet_blocks(width):
    """Yields the eight blocks."""
    channels = width
    for stride, factor in ((1, 1), (2, 2), (2, 4), (2, 8)):
        yield BasicBlock(channels, factor * width, stride)
        channels = factor * width
        yield BasicBlock(channels, channels)


class ResNet18(nn.Module):
    def __init__(self, num_classes=10, width=64):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU())
        self.body = nn.Sequential(*resnet_blocks(width))
        self.linear = nn.Linear(8 * width, num_classes)

    def forward(self, images):
        features = self.body(self.stem(images))
        return self.linear(features.flatten(2).mean(-1))


# %%
def parameter_table(model):
    def rows():
        own = sum(p.numel() for p in model.parameters(recurse=False))
        if own:
            yield "itself", own
        for name, child in model.named_children():
            yield name, sum(p.numel() for p in child.parameters())

    return list(rows())


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
def train_epoch(model, loader, criterion, optimizer, scheduler, device):
    model.train()
    running_loss = 0.0
    correct = 0
    total = 0
    for images, labels in loader:
        images = images.to(device)
        labels = labels.to(device)
        optimizer.zero_grad()
        outputs = model(images)
        loss = criterion(outputs, labels)
        loss.backward()
        optimizer.step()
        if scheduler is not None:
            scheduler.step()
        running_loss += loss.item() * labels.size(0)
        correct += (outputs.argmax(dim=1) == labels).sum().item()
        total += labels.size(0)
    return running_loss / total, correct / total


# %%
@torch.inference_mode()
def evaluate(model, loader, criterion, device):
    model.train(False)
    found = {"targets": [], "predictions": [], "probabilities": []}
    weighted, n = 0.0, 0
    for batch in loader:
        images, labels = (part.to(device) for part in batch)
        logits = model(images)
        weighted += criterion(logits, labels).item() * images.shape[0]
        n += images.shape[0]
        probabilities = logits.log_softmax(0).exp()
        for name, value in zip(found, (labels, logits.argmax(1), probabilities)):
            found[name].extend(value.tolist())
    found = {name: torch.tensor(values) for name, values in found.items()}
    hits = int(torch.count_nonzero(found["targets"] == found["predictions"]))
    return {"loss": weighted / n, "accuracy": hits / n} | found


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
def classification_metrics(targets, probabilities):
    y, p = np.asarray(targets, dtype=int), np.asarray(probabilities)
    n, classes = p.shape
    guess = p.argmax(axis=1)
    confusion = np.zeros((classes, classes), dtype=int)
    np.add.at(confusion, (y, guess), 1)

    def over(a, b):
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.nan_to_num(a / b, nan=0.0)

    def auc(k):
        sign = np.sign(p[y == k, k][:, None] - p[y != k, k])
        return (1 + sign.mean()) / 2 if sign.size else np.nan

    def mean(values, weights):
        use = (support > 0) & ~np.isnan(values)
        return float((values[use] * weights[use]).sum() / weights[use].sum()) if use.any() else float("nan")

    support, right = confusion.sum(axis=1), np.diagonal(confusion)
    found = {"confusion": confusion, "support": support, "accuracy": float(right.sum() / n)}
    found["precision"], found["recall"] = over(right, confusion.sum(axis=0)), over(right, support)
    found["f1"] = over(2 * found["precision"] * found["recall"], found["precision"] + found["recall"])
    found["roc_auc"] = np.array([auc(k) for k in range(classes)])
    for name in ("precision", "recall", "f1", "roc_auc"):
        found["macro_" + name] = mean(found[name], np.ones(classes))
        found["weighted_" + name] = mean(found[name], support)
    return found


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
    t, p = np.asarray(targets), np.asarray(probabilities)
    fig, ax = plt.subplots()

    def curve(scores, positive):
        order = np.argsort(-scores, kind="stable")
        ends = np.append(np.diff(scores[order]) != 0, True)  # only where the score changes
        hits, misses = np.cumsum(positive[order])[ends], np.cumsum(~positive[order])[ends]
        return np.insert(misses / misses[-1], 0, 0.0), np.insert(hits / hits[-1], 0, 0.0)

    for k, name in enumerate(class_names):
        if 0 < (t == k).sum() < len(t):
            ax.plot(*curve(p[:, k], t == k), label=name)
    ax.set(xlabel="false positives", ylabel="true positives", title="ROC")
    ax.legend(fontsize="small", loc="lower right")
    return fig


# %%
def as_it_was(image, mean, std):
    image = np.moveaxis(np.asarray(image.cpu()), 0, -1)
    return np.clip(image * np.asarray(std) + np.asarray(mean), 0, 1)


def plot_attention(model, images, labels, class_names, mean, std):
    """A column for each image."""
    figure, axes = plt.subplots(3, len(images), figsize=(2.2 * len(images), 6.6), squeeze=False)
    for column, image, label in zip(axes.T, images, labels):
        shown, seen = as_it_was(image, mean, std), np.asarray(attention_map(model, image))
        column[0].imshow(shown)
        column[0].set_title(class_names[int(label)])
        column[1].imshow(seen, vmin=0, vmax=1, cmap="magma")
        column[2].imshow(shown)
        column[2].imshow(seen, vmin=0, vmax=1, cmap="magma", alpha=0.6)
        [ax.set_axis_off() for ax in column]
    return figure


# %%
def plot_top3(images, labels, probabilities, class_names, mean, std) -> None:
    """The image, and what is said about it as a text beside it."""
    figure, axes = plt.subplots(len(images), 2, figsize=(6, 2.2 * len(images)), squeeze=False, layout="constrained")
    for (picture, words), image, label, row in zip(axes, images, labels, torch.as_tensor(probabilities)):
        values, classes = torch.topk(row, k=min(3, row.numel()))
        said = [f"true: {class_names[int(label)]}"]
        said += [f"{class_names[c]} ({v:.1%})" for v, c in zip(values.tolist(), classes.tolist())]
        picture.imshow(as_it_was(image, mean, std))
        picture.axis("off")
        words.text(0.0, 0.5, "\n".join(said), va="center")
        words.axis("off")


# %% [markdown]
# ## Train both models

# %%
VIT_EPOCHS, RESNET_EPOCHS = 10, 8

vit = VisionTransformer(dim=64, depth=4, heads=4, mlp_ratio=2.0, dropout=0.0, num_classes=len(class_names))
vit_history = fit(vit, loaders, VIT_EPOCHS, device)
torch.save(vit.state_dict(), f"{STUDENT_ID}_CIFAR10_vit.pth")

# %%
resnet = ResNet18(num_classes=len(class_names), width=16)
resnet_history = fit(resnet, loaders, RESNET_EPOCHS, device)
torch.save(resnet.state_dict(), f"{STUDENT_ID}_CIFAR10_resnet.pth")

# %% [markdown]
# ## Compare them

# %%
criterion = nn.CrossEntropyLoss()
measures = {}
for name, model, history in [("vit", vit, vit_history), ("resnet", resnet, resnet_history)]:
    found = evaluate(model, test_loader, criterion, device)
    measures[name] = classification_metrics(found["targets"], found["probabilities"])
    print(name, f"{found['accuracy']:.4f}", parameter_table(model))
    plot_learning_curves(history)
    plot_confusion_matrix(measures[name]["confusion"], class_names)
    plot_roc(found["targets"], found["probabilities"], class_names)
export_metrics(measures, f"{STUDENT_ID}_metrics.csv")

# %%
images, labels = next(iter(test_loader))
images, labels = images[:6], labels[:6]
plot_attention(vit, images, labels, class_names, MEAN, STD)
with torch.no_grad():
    found = vit.eval()(images.to(device)).softmax(dim=1).cpu()
plot_top3(images, labels, found, class_names, MEAN, STD)

# %% [markdown]
# ## Study

# %%
RUN_STUDY = False  # the table is there
BASE = {
    "patch_size": 8, "dim": 48, "depth": 2, "heads": 4, "mlp_ratio": 2.0, "positions": "learned", "epochs": 4,
}
CHANGES = [{"patch_size": 4}, {"dim": 64}, {"depth": 3}, {"heads": 2}, {"mlp_ratio": 4.0}, {"positions": "sinusoidal"}]


def trained_row(values, seed):
    torch.manual_seed(seed)
    sizes = {name: value for name, value in values.items() if name != "epochs"}
    model = VisionTransformer(**sizes, dropout=0.0, num_classes=len(class_names))
    parameters = sum(weights.numel() for weights in model.parameters())
    fit(model, loaders, values["epochs"], device)
    found = evaluate(model, loaders["validation"], criterion, device)
    return {
        **values,
        "seed": seed,
        "parameters": parameters,
        "validation_accuracy": round(float(found["accuracy"]), 4),
    }


if RUN_STUDY:
    rows = [trained_row(BASE, seed) for seed in (0, 1, 2)]
    rows += [trained_row({**BASE, **change}, 0) for change in CHANGES]
    with open(f"{STUDENT_ID}_study.csv", "w", newline="") as file:
        table = csv.DictWriter(file, list(rows[0]))
        table.writeheader()
        table.writerows(rows)
