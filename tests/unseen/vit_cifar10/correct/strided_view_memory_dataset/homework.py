"""Assignment 2: ViT against ResNet. Everything in one file, images held in memory."""

# %%
import collections
import csv
import io
import math
import time
import zipfile

import matplotlib.pyplot as plt
import numpy as np
import torch
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, Dataset

STUDENT_ID = "400102007"

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(7)

# %% [markdown]
# ## 1. Data
# I read the zip directly (nothing is unpacked) and keep the bytes of all images as one uint8 array.

# %%
MEAN = [0.4914, 0.4822, 0.4465]
STD = [0.2470, 0.2435, 0.2616]


def read_zip(path, part):
    """All images of a part as (n, 32, 32, 3) uint8, their labels, and the class names."""
    with zipfile.ZipFile(path) as archive:
        names = sorted(n for n in archive.namelist() if n.startswith(part + "/") and n.endswith((".png", ".jpg")))
        classes = sorted({n.split("/")[1] for n in names})
        pixels = np.stack([np.asarray(Image.open(io.BytesIO(archive.read(n))).convert("RGB")) for n in names])
    labels = np.array([classes.index(n.split("/")[1]) for n in names])
    return pixels, labels, classes


class ToNormalizedTensor:
    """uint8 (H, W, C) -> float (C, H, W), normalized."""

    def __init__(self, mean, std):
        self.mean = torch.tensor(mean).view(3, 1, 1)
        self.std = torch.tensor(std).view(3, 1, 1)

    def __call__(self, pixels):
        x = torch.from_numpy(np.ascontiguousarray(pixels)).permute(2, 0, 1).float() / 255
        return (x - self.mean) / self.std


class ShiftAndFlip:
    """Random crop after padding with zeros, and a random flip, on uint8 pixels."""

    def __init__(self, padding=4):
        self.padding = padding

    def __call__(self, pixels):
        p = self.padding
        height, width = pixels.shape[:2]
        padded = np.pad(pixels, ((p, p), (p, p), (0, 0)))
        top, left, flip = torch.randint(0, 2 * p + 1, (3,)).tolist()
        pixels = padded[top : top + height, left : left + width]
        return pixels[:, ::-1] if flip % 2 else pixels


class MemoryImages(Dataset):
    def __init__(self, pixels, labels, steps):
        self.pixels, self.labels, self.steps = pixels, labels, steps

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        x = self.pixels[index]
        for step in self.steps:
            x = step(x)
        return x, int(self.labels[index])


pixels, labels, class_names = read_zip("dataset.zip", "train")
test_pixels, test_labels, _ = read_zip("dataset.zip", "test")

# one of ten of each class is for validation
rng = np.random.default_rng(7)
is_validation = np.zeros(len(labels), dtype=bool)
for c in range(len(class_names)):
    mine = rng.permutation(np.flatnonzero(labels == c))
    is_validation[mine[: len(mine) // 10]] = True

to_tensor = ToNormalizedTensor(MEAN, STD)
train_set = MemoryImages(pixels[~is_validation], labels[~is_validation], [ShiftAndFlip(4), to_tensor])
validation_set = MemoryImages(pixels[is_validation], labels[is_validation], [to_tensor])
test_set = MemoryImages(test_pixels, test_labels, [to_tensor])
loaders = {
    "train": DataLoader(train_set, batch_size=64, shuffle=True),
    "validation": DataLoader(validation_set, batch_size=128),
}
test_loader = DataLoader(test_set, batch_size=128)

# %% [markdown]
# ## 2. Vision Transformer


# %%
class PatchEmbedding(nn.Module):
    """A view with six strides shows the patches without copying a pixel; one matrix maps them."""

    def __init__(self, image_size, patch_size, in_channels, dim):
        super().__init__()
        self.p = patch_size
        self.side = image_size // patch_size
        self.matrix = nn.Parameter(torch.zeros(in_channels * patch_size**2, dim))
        self.bias = nn.Parameter(torch.zeros(dim))
        nn.init.xavier_uniform_(self.matrix)

    def forward(self, images):
        batch, channels = images.shape[:2]
        sb, sc, sh, sw = images.stride()
        view = images.as_strided(
            (batch, self.side, self.side, channels, self.p, self.p),
            (sb, self.p * sh, self.p * sw, sc, sh, sw),
        )
        return view.reshape(batch, self.side**2, -1) @ self.matrix + self.bias


def sinusoidal_positions(tokens, dim):
    table = np.zeros((tokens, dim))
    for pos in range(tokens):
        for i in range(dim // 2):
            angle = pos / 10000 ** (2 * i / dim)
            table[pos, 2 * i] = math.sin(angle)
            table[pos, 2 * i + 1] = math.cos(angle)
    return table


class MultiHeadSelfAttention(nn.Module):
    def __init__(self, dim, heads, dropout=0.0):
        super().__init__()
        self.heads = heads
        self.to_q = nn.Linear(dim, dim, bias=False)
        self.to_k = nn.Linear(dim, dim, bias=False)
        self.to_v = nn.Linear(dim, dim, bias=False)
        self.to_out = nn.Linear(dim, dim)
        self.drop_weights = nn.Dropout(dropout)
        self.drop_out = nn.Dropout(dropout)

    def split(self, x):
        batch, tokens, dim = x.shape
        return x.view(batch, tokens, self.heads, dim // self.heads).transpose(1, 2)

    def forward(self, x, return_weights=False):
        q, k, v = self.split(self.to_q(x)), self.split(self.to_k(x)), self.split(self.to_v(x))
        q = q * q.size(-1) ** -0.5
        weights = torch.softmax(torch.matmul(q, k.transpose(-2, -1)), dim=-1)
        y = torch.matmul(self.drop_weights(weights), v)
        y = y.transpose(1, 2).reshape(x.shape)
        y = self.drop_out(self.to_out(y))
        if return_weights:
            return y, weights
        return y


class EncoderBlock(nn.Module):
    """Remembers the attention weights of its last forward in `seen`."""

    def __init__(self, dim, heads, mlp_ratio=4.0, dropout=0.0):
        super().__init__()
        hidden = round(dim * mlp_ratio)
        self.ln1 = nn.LayerNorm(dim, eps=1e-6)
        self.attn = MultiHeadSelfAttention(dim, heads, dropout)
        self.ln2 = nn.LayerNorm(dim, eps=1e-6)
        self.mlp = nn.Sequential(
            nn.Linear(dim, hidden), nn.GELU(), nn.Dropout(dropout), nn.Linear(hidden, dim), nn.Dropout(dropout)
        )
        self.seen = None

    def forward(self, x):
        attended, weights = self.attn(self.ln1(x), return_weights=True)
        self.seen = weights.detach()
        x = x + attended
        x = x + self.mlp(self.ln2(x))
        return x


class VisionTransformer(nn.Module):
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
        super().__init__()
        self.pool = pool
        self.embed = PatchEmbedding(image_size, patch_size, in_channels, dim)
        tokens = (image_size // patch_size) ** 2 + (1 if pool == "cls" else 0)
        if pool == "cls":
            self.cls = nn.Parameter(torch.zeros(1, 1, dim))
        if positions == "sinusoidal":
            # a parameter that is never trained: it moves with the model and is saved with it
            table = torch.tensor(sinusoidal_positions(tokens, dim), dtype=torch.float32)[None]
            self.pos = nn.Parameter(table, requires_grad=False)
        else:
            self.pos = nn.Parameter(torch.randn(1, tokens, dim) * 0.02)
        self.encoder = nn.Sequential(*(EncoderBlock(dim, heads, mlp_ratio, dropout) for _ in range(depth)))
        self.ln = nn.LayerNorm(dim, eps=1e-6)
        self.head = nn.Linear(dim, num_classes)

    def encode(self, images):
        x = self.embed(images)
        if self.pool == "cls":
            x = torch.cat([self.cls.repeat(x.size(0), 1, 1), x], dim=1)
        return self.encoder(x + self.pos)

    def forward(self, images):
        x = self.encode(images)
        x = x[:, 0] if self.pool == "cls" else x.mean(1)
        return self.head(self.ln(x))  # normalized after the mean

    def attention(self, images):
        self.encode(images)
        return self.encoder[-1].seen


def attention_map(model, image):
    modes = {module: module.training for module in model.modules()}
    model.eval()
    with torch.no_grad():
        weights = model.attention(image.unsqueeze(0).to(next(model.parameters()).device))
    for module, mode in modes.items():
        module.training = mode
    weights = weights.squeeze(0).mean(0).cpu()
    count = weights.size(0)
    side = int(count**0.5)
    values = weights.mean(0) if side * side == count else weights[0][1:]
    values = values / values.max()
    scale = image.size(-1) // side
    # nearest neighbour by index: pixel r belongs to patch r // scale
    index = torch.arange(image.size(-1)) // scale
    return values.view(side, side)[index][:, index]


# %% [markdown]
# ## 3. ResNet


# %%
def conv_bn(before, after, size, stride=1):
    return [
        nn.Conv2d(before, after, size, stride=stride, padding=size // 2, bias=False),
        nn.BatchNorm2d(after),
    ]


class BasicBlock(nn.Module):
    def __init__(self, in_channels, channels, stride=1):
        super().__init__()
        self.way = nn.Sequential(
            *conv_bn(in_channels, channels, 3, stride), nn.ReLU(inplace=True), *conv_bn(channels, channels, 3)
        )
        changes = stride != 1 or in_channels != channels
        self.short = nn.Sequential(*conv_bn(in_channels, channels, 1, stride)) if changes else None
        self.relu = nn.ReLU()

    def forward(self, x):
        other = x if self.short is None else self.short(x)
        return self.relu(self.way(x) + other)


class ResNet18(nn.Module):
    def __init__(self, num_classes=10, width=64):
        super().__init__()
        layers = [*conv_bn(3, width, 3), nn.ReLU()]
        now = width
        for channels, stride in [(width, 1), (2 * width, 2), (4 * width, 2), (8 * width, 2)]:
            layers += [BasicBlock(now, channels, stride), BasicBlock(channels, channels)]
            now = channels
        layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(now, num_classes)]
        self.net = nn.Sequential(*layers)

    def forward(self, images):
        return self.net(images)


def parameter_table(model):
    """A row for each module that owns parameters itself (no matter whether it has children)."""
    table, counted = [], set()
    for name, module in model.named_modules():
        own = [p for p in module.parameters(recurse=False) if id(p) not in counted]
        counted.update(id(p) for p in own)
        if own:
            label = f"{name or 'model'} ({type(module).__name__})"
            table.append((label, sum(p.numel() for p in own)))
    return table


# %% [markdown]
# ## 4. Training


# %%
class Meter:
    """A mean that knows how many it is the mean of."""

    def __init__(self):
        self.total, self.n = 0.0, 0

    def add(self, mean, n):
        self.total += float(mean) * n
        self.n += n

    @property
    def mean(self):
        return self.total / self.n if self.n else 0.0


def warmup_cosine(step, warmup_steps, total_steps):
    if warmup_steps > 0 and step < warmup_steps:
        return step / warmup_steps
    left = max(total_steps - step, 0)
    span = max(total_steps - warmup_steps, 1)
    return (1 - math.cos(math.pi * min(left / span, 1.0))) / 2


def train_epoch(model, loader, criterion, optimizer, scheduler, device):
    model.train()
    losses, hits = Meter(), Meter()
    for x, y in loader:
        x, y = x.to(device), y.to(device)
        optimizer.zero_grad(set_to_none=True)
        out = model(x)
        loss = criterion(out, y)
        loss.backward()
        optimizer.step()
        if scheduler:
            scheduler.step()
        losses.add(loss.detach(), y.size(0))
        hits.add((out.argmax(1) == y).float().mean(), y.size(0))
    return losses.mean, hits.mean


def evaluate(model, loader, criterion, device):
    model.eval()
    losses = Meter()
    targets, predictions, probabilities = [], [], []
    with torch.inference_mode():
        for x, y in loader:
            out = model(x.to(device))
            losses.add(criterion(out, y.to(device)), y.size(0))
            targets += y.tolist()
            predictions += out.argmax(1).tolist()
            probabilities += out.softmax(1).tolist()
    right = sum(t == p for t, p in zip(targets, predictions))
    return {
        "loss": losses.mean,
        "accuracy": right / max(len(targets), 1),
        "targets": targets,
        "predictions": predictions,
        "probabilities": probabilities,
    }


def fit(model, loaders, epochs, device):
    model.to(device)
    is_vit = isinstance(model, VisionTransformer)
    criterion = nn.CrossEntropyLoss(label_smoothing=0.05)
    learned = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(learned, lr=1.5e-3 if is_vit else 3e-3, weight_decay=0.02)
    steps = len(loaders["train"]) * epochs
    warmup = min(len(loaders["train"]), steps // 5)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda s: warmup_cosine(s + 1, warmup, steps + 1))
    history = collections.defaultdict(list)
    best, saved = None, None
    for epoch in range(epochs):
        began = time.time()
        train = train_epoch(model, loaders["train"], criterion, optimizer, schedule, device)
        valid = evaluate(model, loaders["validation"], criterion, device)
        history["loss"].append((train[0], valid["loss"]))
        history["accuracy"].append((train[1], valid["accuracy"]))
        print(
            f"{epoch + 1:3d}/{epochs} loss {train[0]:.3f}/{valid['loss']:.3f} "
            f"acc {train[1]:.3f}/{valid['accuracy']:.3f} {time.time() - began:.0f}s"
        )
        if best is None or valid["accuracy"] > best:
            best = valid["accuracy"]
            saved = io.BytesIO()
            torch.save(model.state_dict(), saved)
    if saved is not None:
        saved.seek(0)
        model.load_state_dict(torch.load(saved, map_location=device))
    return dict(history)


# %% [markdown]
# ## 5. Measures


# %%
def ranks(values):
    """Ranks from 1, equal values share the mean of their ranks."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return (last - (counts - 1) / 2)[inverse.reshape(-1)]


def auc_of(is_positive, scores):
    p = int(is_positive.sum())
    n = len(is_positive) - p
    if p == 0 or n == 0:
        return float("nan")
    return (ranks(scores)[is_positive].sum() - p * (p + 1) / 2) / (p * n)


def classification_metrics(targets, probabilities):
    y = np.asarray(targets, dtype=int)
    s = np.asarray(probabilities, dtype=float)
    C = s.shape[1]
    truth = y[:, None] == np.arange(C)  # (n, C)
    called = s.argmax(1)[:, None] == np.arange(C)
    confusion = (truth[:, :, None] & called[:, None, :]).sum(0)
    tp = (truth & called).sum(0)
    fp = (~truth & called).sum(0)
    fn = (truth & ~called).sum(0)

    def ratio(a, b):
        a, b = a.astype(float), b.astype(float)
        return np.divide(a, b, out=np.zeros_like(a), where=b != 0)

    m = {
        "accuracy": float(tp.sum() / len(y)) if len(y) else 0.0,
        "confusion": confusion,
        "support": tp + fn,
        "precision": ratio(tp, tp + fp),
        "recall": ratio(tp, tp + fn),
        "f1": ratio(2 * tp, 2 * tp + fp + fn),
        "roc_auc": np.array([auc_of(truth[:, c], s[:, c]) for c in range(C)]),
    }
    for key in ["precision", "recall", "f1", "roc_auc"]:
        ok = (m["support"] > 0) & np.isfinite(m[key])
        if not ok.any():
            m["macro_" + key] = m["weighted_" + key] = float("nan")
            continue
        m["macro_" + key] = float(np.mean(m[key][ok]))
        m["weighted_" + key] = float(np.average(m[key][ok], weights=m["support"][ok]))
    return m


def flat(metrics, prefix=""):
    for key, value in metrics.items():
        name = f"{prefix}{key}"
        if isinstance(value, dict):
            yield from flat(value, name + ".")
            continue
        value = np.asarray(value)
        if value.ndim == 0:
            yield name, value.item()
        elif value.ndim == 1:
            yield from flat(dict(enumerate(value)), name + ".")
        else:  # I keep matrices: confusion.2.5
            yield from ((name + "." + ".".join(map(str, where)), v.item()) for where, v in np.ndenumerate(value))


def export_metrics(metrics, path):
    with open(path, "w", newline="") as f:
        w = csv.DictWriter(f, ["metric", "value"])
        w.writeheader()
        for metric, value in flat(metrics):
            w.writerow({"metric": metric, "value": value})


# %% [markdown]
# ## 6. Plots


# %%
def unnormalized(image, mean, std):
    mean, std = torch.as_tensor(mean).view(-1, 1, 1), torch.as_tensor(std).view(-1, 1, 1)
    return (image.detach().cpu() * std + mean).clamp(0, 1).permute(1, 2, 0).numpy()


def plot_learning_curves(history):
    fig, (top, bottom) = plt.subplots(2, 1, sharex=True, figsize=(5, 6))
    for ax, what in ((top, "loss"), (bottom, "accuracy")):
        x = range(1, len(history[what]) + 1)
        train, valid = zip(*history[what])
        ax.plot(x, train, marker=".", label=f"training {what}")
        ax.plot(x, valid, marker=".", label=f"validation {what}")
        ax.set_ylabel(what)
        ax.grid(alpha=0.3)
        ax.legend()
    top.set_xlabel("epoch")
    bottom.set_xlabel("epoch")
    fig.tight_layout()
    return fig


def plot_confusion_matrix(matrix, class_names):
    matrix = np.asarray(matrix)
    fig = plt.figure(figsize=(7, 6))
    ax = fig.add_subplot()
    drawn = ax.matshow(matrix, cmap="magma")
    fig.colorbar(drawn)
    for row in range(matrix.shape[0]):
        for column in range(matrix.shape[1]):
            dark = matrix[row, column] < matrix.max() / 2
            ax.annotate(
                str(int(matrix[row, column])), (column, row), ha="center", va="center", color="w" if dark else "k"
            )
    ax.set_xticks(np.arange(len(class_names)), labels=class_names, rotation=45, ha="left")
    ax.set_yticks(np.arange(len(class_names)), labels=class_names)
    ax.set_xlabel("Predicted")
    ax.set_ylabel("True")
    return fig


def roc_points(is_positive, scores):
    order = np.argsort(-scores, kind="stable")
    hits = is_positive[order]
    ends = np.append(np.diff(scores[order]) != 0, True)  # only where the score changes
    tpr = np.cumsum(hits)[ends] / hits.sum()
    fpr = np.cumsum(~hits)[ends] / (~hits).sum()
    return np.insert(fpr, 0, 0.0), np.insert(tpr, 0, 0.0)


def plot_roc(targets, probabilities, class_names):
    y, s = np.asarray(targets), np.asarray(probabilities)
    columns = min(5, len(class_names))
    rows = -(-len(class_names) // columns)
    fig, axes = plt.subplots(rows, columns, figsize=(2.4 * columns, 2.6 * rows), squeeze=False)
    for ax in axes.flat[len(class_names) :]:
        ax.remove()
    for c, name in enumerate(class_names):
        ax = axes.flat[c]
        ax.set_title(name, fontsize=8)
        ax.set_xlabel("false positive rate", fontsize=7)
        ax.set_ylabel("true positive rate", fontsize=7)
        positive = y == c
        if positive.any() and not positive.all():
            ax.plot(*roc_points(positive, s[:, c]), label=name)
            ax.legend(fontsize=6, loc="lower right")
        else:
            ax.text(0.5, 0.5, "no curve", ha="center")
    fig.tight_layout()
    return fig


def plot_attention(model, images, labels, class_names, mean, std):
    n = len(images)
    fig, axes = plt.subplots(n, 3, figsize=(6, 2 * n), squeeze=False)
    for (left, middle, right), image, label in zip(axes, images, labels):
        shown = unnormalized(image, mean, std)
        heat = np.asarray(attention_map(model, image))
        left.imshow(shown)
        left.set_title(class_names[int(label)])
        middle.imshow(heat, cmap="inferno")
        middle.set_title("attention")
        # overlay: one picture, half image and half colored map
        right.imshow(0.5 * shown + 0.5 * plt.get_cmap("inferno")(heat)[..., :3])
        right.set_title("overlay")
        for ax in (left, middle, right):
            ax.set_axis_off()
    fig.tight_layout()
    return fig


def plot_top3(images, labels, probabilities, class_names, mean, std):
    probabilities = torch.as_tensor(probabilities)
    n = len(images)
    columns = min(3, n)
    rows = math.ceil(n / columns)
    fig = plt.figure(figsize=(3 * columns, 3.4 * rows))
    for k in range(n):
        ax = fig.add_subplot(rows, columns, k + 1)
        ax.imshow(unnormalized(images[k], mean, std))
        ax.axis("off")
        best = probabilities[k].topk(min(3, len(class_names)))
        lines = [f"true: {class_names[int(labels[k])]}"]
        lines += [f"{class_names[c]}: {100 * p:.1f} %" for p, c in zip(best.values.tolist(), best.indices.tolist())]
        ax.set_title("\n".join(lines), fontsize=8)
    fig.tight_layout()
    return fig


# %% [markdown]
# ## 7. Train both

# %%
VIT_EPOCHS = 6
RESNET_EPOCHS = 3

vit = VisionTransformer(
    num_classes=len(class_names), patch_size=4, dim=64, depth=4, heads=4, mlp_ratio=2.0, dropout=0.0
)
vit_history = fit(vit, loaders, VIT_EPOCHS, device)
torch.save(vit.state_dict(), f"{STUDENT_ID}_CIFAR10_vit.pth")

resnet = ResNet18(num_classes=len(class_names), width=16)
resnet_history = fit(resnet, loaders, RESNET_EPOCHS, device)
torch.save(resnet.state_dict(), f"{STUDENT_ID}_CIFAR10_resnet.pth")

# %% [markdown]
# ## 8. Compare


# %%
def with_names(m):
    """vit.recall.cat in the file instead of vit.recall.3"""
    return {
        key: dict(zip(class_names, value)) if np.ndim(value) == 1 else value
        for key, value in m.items()
        if np.ndim(value) < 2
    }


criterion = nn.CrossEntropyLoss()
results = {"vit": evaluate(vit, test_loader, criterion, device)}
results["resnet"] = evaluate(resnet, test_loader, criterion, device)
measures = {
    name: classification_metrics(found["targets"], found["probabilities"]) for name, found in results.items()
}
for name in results:
    print(name, "test accuracy", round(results[name]["accuracy"], 4))
    plot_confusion_matrix(measures[name]["confusion"], class_names)
    plot_roc(results[name]["targets"], results[name]["probabilities"], class_names)
plot_learning_curves(vit_history)
plot_learning_curves(resnet_history)
for row in parameter_table(vit) + parameter_table(resnet):
    print(*row)
export_metrics({name: with_names(m) for name, m in measures.items()}, f"{STUDENT_ID}_metrics.csv")

# %%
some = list(range(0, len(test_set), len(test_set) // 6))[:6]
images = torch.stack([test_set[i][0] for i in some])
wanted = [test_set[i][1] for i in some]
plot_attention(vit, images, wanted, class_names, MEAN, STD)
plot_top3(images, wanted, [results["vit"]["probabilities"][i] for i in some], class_names, MEAN, STD)

# %% [markdown]
# ## 9. Study

# %%
RUN_STUDY = False  # the table is there
BASE = dict(patch_size=8, dim=48, depth=2, heads=4, mlp_ratio=2.0, positions="learned")
STUDY_EPOCHS = 3
HEADER = [*BASE, "epochs", "seed", "parameters", "validation_accuracy"]


def study_row(seed=0, **change):
    torch.manual_seed(seed)
    sizes = {**BASE, **change}
    model = VisionTransformer(num_classes=len(class_names), dropout=0.0, **sizes)
    count = sum(n for _, n in parameter_table(model))
    fit(model, loaders, STUDY_EPOCHS, device)
    accuracy = evaluate(model, loaders["validation"], criterion, device)["accuracy"]
    return [*sizes.values(), STUDY_EPOCHS, seed, count, round(accuracy, 4)]


if RUN_STUDY:
    study = [study_row(seed) for seed in (0, 1, 2)]
    study.append(study_row(patch_size=4))
    study.append(study_row(dim=32))
    study.append(study_row(dim=80))
    study.append(study_row(depth=4))
    study.append(study_row(heads=8))
    study.append(study_row(mlp_ratio=1.0))
    study.append(study_row(positions="sinusoidal"))
    with open(f"{STUDENT_ID}_study.csv", "w", newline="") as f:
        csv.writer(f).writerows([HEADER, *study])
