# %% [markdown]
# # ViT vs. ResNet on the course's images
# Everything with raw parameters and einsum, because I wanted to see every index once.

# %%
import csv
import math
import time
import zipfile
from copy import deepcopy

import matplotlib.pyplot as plt
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn, optim
from torch.utils.data import DataLoader, Subset
from torchvision import datasets, transforms

STUDENT_ID = "400102006"

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(42)

# %% [markdown]
# ## 1. The images

# %%
MEAN, STD = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)
BATCH_SIZE = 64

with zipfile.ZipFile("dataset.zip") as archive:
    archive.extractall("data")

plain_transform = transforms.Compose([transforms.ToTensor(), transforms.Normalize(MEAN, STD)])
train_transform = transforms.Compose(
    [
        transforms.RandomCrop(32, padding=4),
        transforms.RandomHorizontalFlip(),
        transforms.ToTensor(),
        transforms.Normalize(MEAN, STD),
    ]
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
# ## 2. The Vision Transformer
# Letters in the einsums: b batch, n/m tokens, d width, h heads, e features of a head, c channels.


# %%
class PatchEmbedding(nn.Module):
    """Patches by unfold, then one tensor of weights for all of them."""

    def __init__(self, image_size, patch_size, in_channels, dim):
        super().__init__()
        assert image_size % patch_size == 0, "the patch size must divide the image size"
        self.patch_size = patch_size
        fan_in = in_channels * patch_size * patch_size
        self.kernel = nn.Parameter(torch.empty(in_channels, patch_size, patch_size, dim))
        self.offset = nn.Parameter(torch.zeros(dim))
        nn.init.normal_(self.kernel, std=fan_in**-0.5)

    def forward(self, images):
        p = self.patch_size
        windows = images.unfold(2, p, p).unfold(3, p, p)  # b c rows columns p p
        tokens = torch.einsum("bcrsij,cijd->brsd", windows, self.kernel) + self.offset
        return tokens.flatten(1, 2)


# %%
def sinusoidal_positions(tokens, dim):
    """Sines in the even columns, cosines in the odd ones."""
    position = torch.arange(tokens, dtype=torch.float64)
    frequency = torch.exp(-math.log(10000.0) * torch.arange(0, dim, 2, dtype=torch.float64) / dim)
    angle = torch.outer(position, frequency)
    return torch.stack((angle.sin(), angle.cos()), dim=-1).reshape(tokens, dim).float()


# %%
class MultiHeadSelfAttention(nn.Module):
    """q, k, v are one parameter each, the head is an axis of it."""

    def __init__(self, dim, heads, dropout=0.0):
        super().__init__()
        assert dim % heads == 0
        size = dim // heads
        self.query = nn.Parameter(torch.randn(heads, dim, size) * dim**-0.5)
        self.key = nn.Parameter(torch.randn(heads, dim, size) * dim**-0.5)
        self.value = nn.Parameter(torch.randn(heads, dim, size) * dim**-0.5)
        self.out = nn.Parameter(torch.randn(heads, size, dim) * dim**-0.5)
        self.out_bias = nn.Parameter(torch.zeros(dim))
        self.dropout = dropout

    def forward(self, x, return_weights=False):
        q = torch.einsum("bnd,hde->bhne", x, self.query)
        k = torch.einsum("bnd,hde->bhne", x, self.key)
        v = torch.einsum("bnd,hde->bhne", x, self.value)
        scores = torch.einsum("bhne,bhme->bhnm", q, k) / math.sqrt(q.shape[-1])
        weights = scores.softmax(dim=-1)
        dropped = F.dropout(weights, self.dropout, training=self.training)
        mixed = torch.einsum("bhnm,bhme->bhne", dropped, v)
        result = torch.einsum("bhne,hed->bnd", mixed, self.out) + self.out_bias
        return (result, weights) if return_weights else result


# %%
class EncoderBlock(nn.Module):
    def __init__(self, dim, heads, mlp_ratio=4.0, dropout=0.0):
        super().__init__()
        hidden = int(dim * mlp_ratio)
        self.norm_attention = nn.LayerNorm(dim)
        self.attention = MultiHeadSelfAttention(dim, heads, dropout)
        self.norm_mlp = nn.LayerNorm(dim)
        self.mlp_in = nn.Linear(dim, hidden)
        self.mlp_out = nn.Linear(hidden, dim)
        self.drop = nn.Dropout(dropout)

    def forward(self, x):
        x = x + self.drop(self.attention(self.norm_attention(x)))
        hidden = F.gelu(self.mlp_in(self.norm_mlp(x)))
        return x + self.drop(self.mlp_out(self.drop(hidden)))


# %%
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
        if positions not in ("learned", "sinusoidal"):
            raise ValueError(f"positions: {positions}")
        if pool not in ("cls", "mean"):
            raise ValueError(f"pool: {pool}")
        self.patches = PatchEmbedding(image_size, patch_size, in_channels, dim)
        count = (image_size // patch_size) ** 2
        if pool == "cls":
            count += 1
            self.class_token = nn.Parameter(torch.zeros(dim))  # zeros are fine, it has its own position
        else:
            self.class_token = None
        if positions == "learned":
            self.positions = nn.Parameter(torch.empty(count, dim))
            nn.init.trunc_normal_(self.positions, std=0.02)
        else:
            self.register_buffer("positions", sinusoidal_positions(count, dim))
        self.drop = nn.Dropout(dropout)
        self.blocks = nn.ModuleList([EncoderBlock(dim, heads, mlp_ratio, dropout) for _ in range(depth)])
        self.norm = nn.LayerNorm(dim)
        self.classifier = nn.Linear(dim, num_classes)

    def tokens(self, images):
        x = self.patches(images)
        if self.class_token is not None:
            first = self.class_token.expand(len(x), 1, -1)
            x = torch.cat((first, x), dim=1)
        return self.drop(x + self.positions)

    def forward(self, images):
        x = self.tokens(images)
        for block in self.blocks:
            x = block(x)
        x = self.norm(x)  # norm first, mean later
        x = x.mean(dim=1) if self.class_token is None else x[:, 0]
        return self.classifier(x)

    def attention(self, images):
        x = self.tokens(images)
        *before, last = self.blocks
        for block in before:
            x = block(x)
        return last.attention(last.norm_attention(x), return_weights=True)[1]


# %%
@torch.no_grad()
def attention_map(model, image):
    """Last block, mean of the heads, as a picture (numpy)."""
    was_training = model.training
    model.eval()
    try:
        where = next(model.parameters()).device
        weights = model.attention(image[None].to(where))[0].mean(dim=0).cpu()
    finally:
        model.train(was_training)
    n = len(weights)
    if math.isqrt(n) ** 2 == n:  # no class token
        row = weights.mean(dim=0)
    else:
        row = weights[0, 1:]
    side = math.isqrt(len(row))
    grid = row.reshape(side, side).numpy()
    grid = grid / grid.max()
    height, width = image.shape[-2:]
    return np.kron(grid, np.ones((height // side, width // side), dtype=grid.dtype))


# %% [markdown]
# ## 3. The ResNet


# %%
class BasicBlock(nn.Module):
    # I left the biases of the convolutions on. The norm takes them out again, so they do no harm.
    def __init__(self, in_channels, channels, stride=1):
        super().__init__()
        self.conv1 = nn.Conv2d(in_channels, channels, 3, stride, 1)
        self.bn1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, 1, 1)
        self.bn2 = nn.BatchNorm2d(channels)
        if stride == 1 and in_channels == channels:
            self.shortcut = nn.Identity()
        else:
            self.shortcut = nn.Sequential(
                nn.Conv2d(in_channels, channels, 1, stride), nn.BatchNorm2d(channels)
            )

    def forward(self, x):
        y = self.bn1(self.conv1(x)).relu()
        y = self.bn2(self.conv2(y))
        return (y + self.shortcut(x)).relu()


# %%
class ResNet18(nn.Module):
    def __init__(self, num_classes=10, width=64):
        super().__init__()
        self.conv = nn.Conv2d(3, width, 3, 1, 1)
        self.bn = nn.BatchNorm2d(width)
        self.blocks = nn.ModuleList()
        before = width
        for channels, stride in (
            (width, 1), (width, 1),
            (2 * width, 2), (2 * width, 1),
            (4 * width, 2), (4 * width, 1),
            (8 * width, 2), (8 * width, 1),
        ):  # fmt: skip
            self.blocks.append(BasicBlock(before, channels, stride))
            before = channels
        self.classifier = nn.Linear(before, num_classes)

    def forward(self, images):
        x = F.relu(self.bn(self.conv(images)))
        for block in self.blocks:
            x = block(x)
        return self.classifier(x.mean(dim=(2, 3)))


# %%
def parameter_table(model):
    """A row for each parameter: the finest table that there is."""
    return [(name, p.numel()) for name, p in model.named_parameters()]


# %% [markdown]
# ## 4. Training


# %%
def warmup_cosine(step, warmup_steps, total_steps):
    if step < warmup_steps:
        return step / warmup_steps
    if step >= total_steps:
        return 0.0
    progress = (step - warmup_steps) / (total_steps - warmup_steps)
    return 0.5 * (1.0 + math.cos(math.pi * progress))


# %%
def train_epoch(model, loader, criterion, optimizer, scheduler, device):
    model.train()
    loss_sum, right, seen = 0.0, 0, 0
    for images, labels in loader:
        images, labels = images.to(device), labels.to(device)
        scores = model(images)
        loss = criterion(scores, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if scheduler is not None:
            scheduler.step()
        loss_sum += loss.item() * len(labels)
        right += (scores.argmax(dim=1) == labels).sum().item()
        seen += len(labels)
    return loss_sum / seen, right / seen


# %%
@torch.no_grad()
def evaluate(model, loader, criterion, device):
    model.eval()
    loss_sum = 0.0
    targets, probabilities = [], []
    for images, labels in loader:
        scores = model(images.to(device))
        loss_sum += criterion(scores, labels.to(device)).item() * len(labels)
        targets.append(labels.cpu().numpy())
        probabilities.append(scores.softmax(dim=1).cpu().numpy())
    targets, probabilities = np.concatenate(targets), np.concatenate(probabilities)
    predictions = probabilities.argmax(axis=1)
    return {
        "loss": loss_sum / len(targets),
        "accuracy": float((predictions == targets).mean()),
        "targets": targets,
        "predictions": predictions,
        "probabilities": probabilities,
    }


# %%
def fit(model, loaders, epochs, device):
    model.to(device)
    criterion = nn.CrossEntropyLoss()
    optimizer = optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.05)
    total = epochs * len(loaders["train"])
    scheduler = optim.lr_scheduler.LambdaLR(optimizer, lambda step: warmup_cosine(step, total // 10, total))
    history = {"train_loss": [], "train_accuracy": [], "validation_loss": [], "validation_accuracy": []}
    best, best_weights = -1.0, None
    for epoch in range(epochs):
        loss, accuracy = train_epoch(model, loaders["train"], criterion, optimizer, scheduler, device)
        found = evaluate(model, loaders["validation"], criterion, device)
        history["train_loss"].append(loss)
        history["train_accuracy"].append(accuracy)
        history["validation_loss"].append(found["loss"])
        history["validation_accuracy"].append(found["accuracy"])
        print(f"epoch {epoch + 1}: {loss:.3f} {accuracy:.3f} | {found['loss']:.3f} {found['accuracy']:.3f}")
        if found["accuracy"] > best:
            best, best_weights = found["accuracy"], deepcopy(model.state_dict())
    if best_weights is not None:
        model.load_state_dict(best_weights)
    return history


# %% [markdown]
# ## 5. Measures


# %%
def pairs_won(positive, negative):
    """Mann-Whitney: share of the pairs in which the positive is larger, equal ones count one half."""
    if len(positive) == 0 or len(negative) == 0:
        return np.nan
    won = (positive[:, None] > negative[None, :]).sum()
    tied = (positive[:, None] == negative[None, :]).sum()
    return (won + 0.5 * tied) / (len(positive) * len(negative))


def classification_metrics(targets, probabilities):
    targets = np.asarray(targets).astype(np.int64)
    probabilities = np.asarray(probabilities)
    classes = probabilities.shape[1]
    predictions = probabilities.argmax(axis=1)
    confusion = np.bincount(targets * classes + predictions, minlength=classes**2).reshape(classes, classes)

    hits = np.diag(confusion).astype(float)
    support = confusion.sum(axis=1)
    called = confusion.sum(axis=0)
    # where the denominator is 0 so is the numerator, so dividing by 1 instead gives the 0 that is asked for
    precision = hits / np.maximum(called, 1)
    recall = hits / np.maximum(support, 1)
    f1 = 2 * hits / np.maximum(support + called, 1)
    roc_auc = np.array(
        [pairs_won(probabilities[targets == c, c], probabilities[targets != c, c]) for c in range(classes)]
    )

    result = {
        "confusion": confusion,
        "precision": precision,
        "recall": recall,
        "f1": f1,
        "support": support,
        "roc_auc": roc_auc,
        "accuracy": float(hits.sum() / max(len(targets), 1)),
    }
    for name in ("precision", "recall", "f1", "roc_auc"):
        values = result[name]
        use = (support > 0) & ~np.isnan(values)
        if use.any():
            result[f"macro_{name}"] = float(values[use].mean())
            result[f"weighted_{name}"] = float((values[use] * support[use]).sum() / support[use].sum())
        else:
            result[f"macro_{name}"] = result[f"weighted_{name}"] = float("nan")
    return result


# %%
def export_metrics(metrics, path):
    rows = []

    def collect(prefix, thing):
        if isinstance(thing, dict):
            for key, value in thing.items():
                collect([*prefix, str(key)], value)
        elif np.ndim(thing) == 0:
            rows.append((".".join(prefix), float(thing)))
        elif np.ndim(thing) == 1:
            for number, value in enumerate(thing):
                collect([*prefix, str(number)], value)
        # matrices: left out

    collect([], metrics)
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(("metric", "value"))
        writer.writerows(rows)


# %% [markdown]
# ## 6. Pictures


# %%
def picture(image, mean, std):
    """Undo the normalization; (H, W, C) from 0 to 1."""
    image = np.asarray(image.cpu()).transpose(1, 2, 0)
    return (image * np.asarray(std) + np.asarray(mean)).clip(0, 1)


def plot_learning_curves(history):
    epochs = np.arange(1, len(history["train_loss"]) + 1)
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.5))
    for axis, what in zip(axes, ("loss", "accuracy")):
        axis.plot(epochs, history[f"train_{what}"], "o-", label="training")
        axis.plot(epochs, history[f"validation_{what}"], "s--", label="validation")
        axis.set(xlabel="epoch", ylabel=what, title=what)
        axis.legend()
    figure.tight_layout()
    return figure


# %%
def plot_confusion_matrix(matrix, class_names):
    matrix = np.asarray(matrix)
    n = len(class_names)
    figure, axis = plt.subplots(figsize=(7, 7))
    axis.pcolormesh(np.arange(n + 1) - 0.5, np.arange(n + 1) - 0.5, matrix, cmap="Blues", edgecolors="white")
    axis.invert_yaxis()  # first class on top
    axis.set_aspect("equal")
    for (i, j), count in np.ndenumerate(matrix):
        color = "white" if count > matrix.max() / 2 else "black"
        axis.text(j, i, f"{int(count)}", ha="center", va="center", color=color, fontsize=8)
    axis.set_xticks(range(n), class_names, rotation=90)
    axis.set_yticks(range(n), class_names)
    axis.set(xlabel="predicted class", ylabel="true class", title="confusion matrix")
    figure.tight_layout()
    return figure


# %%
def plot_roc(targets, probabilities, class_names):
    targets, probabilities = np.asarray(targets), np.asarray(probabilities)
    figure, axis = plt.subplots(figsize=(6, 6))
    for c, name in enumerate(class_names):
        positive = np.sort(probabilities[targets == c, c])
        negative = np.sort(probabilities[targets != c, c])
        if len(positive) == 0 or len(negative) == 0:
            continue
        thresholds = np.unique(probabilities[:, c])[::-1]  # from the strictest down
        tpr = 1 - np.searchsorted(positive, thresholds, side="left") / len(positive)
        fpr = 1 - np.searchsorted(negative, thresholds, side="left") / len(negative)
        axis.plot(np.r_[0, fpr], np.r_[0, tpr], label=f"{name} ({pairs_won(positive, negative):.3f})")
    axis.plot([0, 1], [0, 1], ":", color="gray")
    axis.set(xlabel="false positive rate", ylabel="true positive rate", title="ROC, one class against the rest")
    axis.legend(fontsize=8)
    return figure


# %%
def plot_attention(model, images, labels, class_names, mean, std):
    n = len(images)
    figure, axes = plt.subplots(3, n, figsize=(1.8 * n, 5.6), squeeze=False)  # one column an image
    for column, (image, label) in enumerate(zip(images, labels)):
        heat = attention_map(model, image)
        shown = picture(image, mean, std)
        axes[0, column].imshow(shown)
        axes[0, column].set_title(class_names[int(label)], fontsize=8)
        axes[1, column].imshow(heat, cmap="viridis", vmin=0, vmax=1)
        axes[2, column].imshow(shown)
        axes[2, column].imshow(heat, cmap="viridis", vmin=0, vmax=1, alpha=0.5)
    for axis in axes.flat:
        axis.axis("off")
    figure.suptitle("image / attention / overlay")
    return figure


# %%
def plot_top3(images, labels, probabilities, class_names, mean, std):
    probabilities = np.asarray(probabilities)
    n = len(images)
    figure, axes = plt.subplots(2, n, figsize=(2.3 * n, 4), squeeze=False)
    for k in range(n):
        axes[0, k].imshow(picture(images[k], mean, std))
        axes[0, k].set_title(f"true: {class_names[int(labels[k])]}", fontsize=8)
        axes[0, k].axis("off")
        top = np.argsort(-probabilities[k], kind="stable")[:3]
        bars = axes[1, k].barh(range(3), probabilities[k, top])
        axes[1, k].bar_label(bars, [f"{class_names[c]} {probabilities[k, c]:.2f}" for c in top], fontsize=7)
        axes[1, k].invert_yaxis()
        axes[1, k].set(xlim=(0, 1.8), xticks=[], yticks=[])
    figure.tight_layout()
    return figure


# %% [markdown]
# ## 7. Train both models

# %%
VIT_EPOCHS, RESNET_EPOCHS = 6, 3

start = time.time()
vit = VisionTransformer(
    patch_size=4, dim=64, depth=4, heads=4, mlp_ratio=2.0, dropout=0.0, num_classes=len(class_names)
)
vit_history = fit(vit, loaders, VIT_EPOCHS, device)
torch.save(vit.state_dict(), f"{STUDENT_ID}_CIFAR10_vit.pth")
print(f"The ViT took {time.time() - start:.0f} s.")

# %%
start = time.time()
resnet = ResNet18(num_classes=len(class_names), width=16)
resnet_history = fit(resnet, loaders, RESNET_EPOCHS, device)
torch.save(resnet.state_dict(), f"{STUDENT_ID}_CIFAR10_resnet.pth")
print(f"The ResNet took {time.time() - start:.0f} s.")

# %% [markdown]
# ## 8. Compare them

# %%
criterion = nn.CrossEntropyLoss()
measures = {}
for name, model, history in (("vit", vit, vit_history), ("resnet", resnet, resnet_history)):
    found = evaluate(model, test_loader, criterion, device)
    measures[name] = classification_metrics(found["targets"], found["probabilities"])
    print(name, f"{found['accuracy']:.4f}", sum(count for _, count in parameter_table(model)))
    plot_learning_curves(history)
    plot_confusion_matrix(measures[name]["confusion"], class_names)
    plot_roc(found["targets"], found["probabilities"], class_names)
export_metrics(measures, f"{STUDENT_ID}_metrics.csv")

# %%
images, labels = next(iter(test_loader))
pick = torch.arange(0, len(images), len(images) // 6)[:6]
images, labels = images[pick], labels[pick]
plot_attention(vit, images, labels, class_names, MEAN, STD)
with torch.no_grad():
    found = vit.eval()(images.to(device)).softmax(dim=1).cpu()
plot_top3(images, labels, found, class_names, MEAN, STD)

# %% [markdown]
# ## 9. Study

# %%
RUN_STUDY = False  # the table is there
COLUMNS = [
    "patch_size", "dim", "depth", "heads", "mlp_ratio", "positions", "epochs", "seed", "parameters",
    "validation_accuracy",
]  # fmt: skip
BASE = {
    "patch_size": 8, "dim": 48, "depth": 2, "heads": 4, "mlp_ratio": 2.0, "positions": "learned", "epochs": 3,
}  # fmt: skip
CHANGES = [
    {"patch_size": 4}, {"dim": 96}, {"depth": 4}, {"heads": 1}, {"mlp_ratio": 4.0}, {"positions": "sinusoidal"},
]  # fmt: skip


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
        "validation_accuracy": round(found["accuracy"], 4),
    }


if RUN_STUDY:
    rows = [trained_row(BASE, seed) for seed in (0, 1, 2)]
    rows += [trained_row({**BASE, **change}, 0) for change in CHANGES]
    with open(f"{STUDENT_ID}_study.csv", "w", newline="", encoding="utf-8") as file:
        table = csv.DictWriter(file, COLUMNS)
        table.writeheader()
        table.writerows(rows)
