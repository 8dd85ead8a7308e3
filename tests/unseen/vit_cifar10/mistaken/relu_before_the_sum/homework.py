# %% [markdown]
# # A Vision Transformer for CIFAR-10, compared with a ResNet

# %%
import csv
import math
import zipfile
from functools import reduce as fold_left

import matplotlib.pyplot as plt
import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn, optim
from torch.utils.data import DataLoader, Subset
from torchvision import datasets, transforms

STUDENT_ID = "400103027"

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(42)

# %% [markdown]
# ## The images

# %%
MEAN, STD = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)
BATCH_SIZE = 64

with zipfile.ZipFile("dataset.zip") as archive:
    archive.extractall("data")

plain_transform = transforms.Compose([transforms.ToTensor(), transforms.Normalize(MEAN, STD)])
train_transform = transforms.Compose(
    [transforms.RandomCrop(32, padding=4), transforms.RandomHorizontalFlip(), plain_transform]
)
augmented_images = datasets.ImageFolder("data/train", transform=train_transform)
plain_images = datasets.ImageFolder("data/train", transform=plain_transform)
test_images = datasets.ImageFolder("data/test", transform=plain_transform)
class_names = test_images.classes

order = torch.randperm(len(plain_images), generator=torch.Generator().manual_seed(42)).tolist()
held = len(order) // 10
loaders = {
    "train": DataLoader(Subset(augmented_images, order[held:]), batch_size=BATCH_SIZE, shuffle=True),
    "validation": DataLoader(Subset(plain_images, order[:held]), batch_size=256),
}
test_loader = DataLoader(test_images, batch_size=256)

# %% [markdown]
# ## The Vision Transformer

# %%
class PatchEmbedding(nn.Module):
    def __init__(self, image_size, patch_size, in_channels, dim):
        super().__init__()
        self.p = patch_size
        self.g = image_size // patch_size
        self.to_token = nn.Linear(in_channels * patch_size**2, dim)

    def forward(self, images):
        b, c, _, _ = images.shape
        x = images.reshape(b, c, self.g, self.p, self.g, self.p)
        x = x.permute(0, 2, 4, 1, 3, 5).reshape(b, self.g * self.g, c * self.p * self.p)
        return self.to_token(x)


# %%
def sinusoidal_positions(tokens, dim):
    pos = np.arange(tokens, dtype=np.float64)[:, np.newaxis]
    frequency = np.power(10000.0, -np.arange(0, dim, 2) / dim)[np.newaxis]
    table = np.empty((tokens, dim))
    table[:, 0::2] = np.sin(pos * frequency)
    table[:, 1::2] = np.cos(pos * frequency)
    return torch.from_numpy(table.astype(np.float32))


# %%
class MultiHeadSelfAttention(nn.Module):
    """The heads lie in the batch axis, and torch.bmm does the rest."""

    def __init__(self, dim, heads, dropout=0.0):
        super().__init__()
        self.heads, self.width = heads, dim // heads
        self.kqv = nn.Linear(dim, 3 * dim)  # keys first
        self.out = nn.Linear(dim, dim)
        self.drop = nn.Dropout(dropout)

    def fold(self, x):
        b, n, _ = x.shape
        return x.reshape(b, n, self.heads, self.width).permute(0, 2, 1, 3).reshape(b * self.heads, n, self.width)

    def forward(self, x, return_weights=False):
        b, n, dim = x.shape
        k, q, v = (self.fold(part) for part in self.kqv(x).split(dim, dim=2))
        scores = torch.bmm(q * self.width**-0.5, k.mT)
        weights = (scores - scores.logsumexp(dim=2, keepdim=True)).exp()
        out = torch.bmm(self.drop(weights), v)
        out = out.reshape(b, self.heads, n, self.width).permute(0, 2, 1, 3).reshape(b, n, dim)
        out = self.out(out)
        return (out, weights.view(b, self.heads, n, n)) if return_weights else out


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
def attention_map(model, image):
    was_training = model.training
    model.eval()
    with torch.no_grad():
        where = next(model.parameters()).device
        weights = model.attention(image[None].to(where))[0].cpu().numpy()
    model.train(was_training)
    weights = weights.mean(axis=0)
    tokens = weights.shape[0]
    side = int(round(tokens**0.5))
    if side * side == tokens:
        values = weights.mean(axis=0)
    else:
        values = weights[0, 1:]
        side = int(round(len(values) ** 0.5))
    values = (values / values.max()).reshape(side, side)
    height, width = image.shape[1:]
    return np.repeat(np.repeat(values, height // side, axis=0), width // side, axis=1)


# %% [markdown]
# ## The ResNet

# %%
class ConvNorm(nn.Sequential):
    """A convolution without bias, and its batch normalization."""

    def __init__(self, before: int, after: int, size: int, stride: int = 1) -> None:
        convolution = nn.Conv2d(before, after, size, stride, padding=(size - 1) // 2, bias=False)
        super().__init__(convolution, nn.BatchNorm2d(after))


class BasicBlock(nn.Module):
    """Both ways are added before the last ReLU."""

    def __init__(self, in_channels: int, channels: int, stride: int = 1) -> None:
        super().__init__()
        self.first = ConvNorm(in_channels, channels, 3, stride)
        self.second = ConvNorm(channels, channels, 3)
        same_shape = stride == 1 and in_channels == channels
        self.shortcut = nn.Identity() if same_shape else ConvNorm(in_channels, channels, 1, stride)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.second(torch.relu(self.first(x)))) + self.shortcut(x)


# %%
class ResNet18(nn.Module):
    def __init__(self, num_classes=10, width=64):
        super().__init__()
        self.conv1 = nn.Conv2d(3, width, kernel_size=3, stride=1, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.in_channels = width
        self.layer1 = self.make_layer(width, 1)
        self.layer2 = self.make_layer(2 * width, 2)
        self.layer3 = self.make_layer(4 * width, 2)
        self.layer4 = self.make_layer(8 * width, 2)
        self.fc = nn.Linear(8 * width, num_classes)

    def make_layer(self, channels, stride):
        layers = [BasicBlock(self.in_channels, channels, stride), BasicBlock(channels, channels)]
        self.in_channels = channels
        return nn.Sequential(*layers)

    def forward(self, images):
        x = F.relu(self.bn1(self.conv1(images)))
        x = self.layer1(x)
        x = self.layer2(x)
        x = self.layer3(x)
        x = self.layer4(x)
        x = x.mean(dim=(2, 3))
        return self.fc(x)


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
    rise = 1.0 if warmup_steps == 0 else np.clip(step / warmup_steps, 0.0, 1.0)
    fall = np.clip((step - warmup_steps) / max(total_steps - warmup_steps, 1), 0.0, 1.0)
    if step >= total_steps and step >= warmup_steps:
        fall = 1.0
    return float(rise * (1 + np.cos(np.pi * fall)) / 2)


# %%
def train_epoch(model, loader, criterion, optimizer, scheduler, device):
    model.train()
    losses, accuracies, sizes = [], [], []
    for images, labels in loader:
        images, labels = images.to(device), labels.to(device)
        scores = model(images)
        loss = criterion(scores, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if scheduler is not None:
            scheduler.step()
        losses.append(loss.item())
        accuracies.append((scores.argmax(1) == labels).float().mean().item())
        sizes.append(len(labels))
    return np.average(losses, weights=sizes), np.average(accuracies, weights=sizes)


# %%
def evaluate(model, loader, criterion, device):
    model.eval()
    loss_sum, targets, scores = 0.0, [], []
    with torch.inference_mode():
        for images, labels in loader:
            out = model(images.to(device))
            loss_sum += criterion(out, labels.to(device)).item() * len(labels)
            scores.append(out.cpu().numpy().astype(np.float64))
            targets.append(labels.cpu().numpy())
    targets, scores = np.concatenate(targets), np.concatenate(scores)
    exponentials = np.exp(scores - scores.max(axis=1, keepdims=True))
    predictions = scores.argmax(axis=1)
    return {
        "loss": np.float64(loss_sum / len(targets)),
        "accuracy": np.mean(predictions == targets),
        "targets": targets,
        "predictions": predictions,
        "probabilities": exponentials / exponentials.sum(axis=1, keepdims=True),
    }


# %%
def epochs_of(model, loaders, epochs, device):
    """Trains while it is asked for more; yields a dict for each epoch."""
    model.to(device)
    criterion, total = nn.CrossEntropyLoss(), epochs * len(loaders["train"])
    optimizer = optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.98), weight_decay=0.1)
    schedule = optim.lr_scheduler.LambdaLR(optimizer, lambda step: warmup_cosine(step, total // 6, total))
    for _ in range(epochs):
        loss, accuracy = train_epoch(model, loaders["train"], criterion, optimizer, schedule, device)
        found = evaluate(model, loaders["validation"], criterion, device)
        yield {
            "loss": loss,
            "accuracy": accuracy,
            "validation_loss": found["loss"],
            "validation_accuracy": found["accuracy"],
        }


def fit(model, loaders, epochs, device):
    history, best, kept = {}, None, None
    for row in epochs_of(model, loaders, epochs, device):
        for name, value in row.items():
            history.setdefault(name, []).append(value)
        if best is None or row["validation_accuracy"] > best:
            best = row["validation_accuracy"]
            kept = [w.detach().clone() for w in model.state_dict().values()]
    if kept is not None:
        with torch.no_grad():
            for w, old in zip(model.state_dict().values(), kept):
                w.copy_(old)
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
    figure, axes = plt.subplots(ncols=2, figsize=(9, 3.5))
    for ax, name in zip(axes, ("loss", "accuracy")):
        for key, style in ((name, "-"), (f"validation_{name}", "--")):
            values = history[key]
            ax.plot(list(range(1, len(values) + 1)), values, style, label=key.replace("_", " "))
        ax.set(xlabel="epoch", ylabel=name)
        ax.legend(loc="best")
    figure.tight_layout()


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
def plot_top3(images, labels, probabilities, class_names, mean, std):
    """Below each image there are bars for its three likeliest classes."""
    p = np.asarray(probabilities, dtype=float)
    figure, axes = plt.subplots(2, len(images), figsize=(2.8 * len(images), 5), squeeze=False)
    for (above, below), image, label, row in zip(axes.T, images, labels, p):
        above.imshow(as_it_was(image, mean, std))
        above.set_title(f"true: {class_names[int(label)]}")
        above.set_axis_off()
        top = np.argsort(-row, kind="stable")[:3]
        below.barh([f"{class_names[k]} {row[k]:.2f}" for k in top], row[top])
        below.invert_yaxis()
        below.set_xlim(0, 1)
        below.set_xlabel("probability")
    figure.tight_layout()
    return figure


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
