# %% [markdown]
# # Assignment 2: ViT against ResNet on CIFAR-10
#
# The parts are built from a few small helper classes: `FeedForward`, `Denormalizer`, `RunningMean`, `BestWeights`.

# %%
import csv
import math
import zipfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import torch
from torch import nn
from torch.nn import functional as F
from torch.optim import AdamW
from torch.optim.lr_scheduler import LambdaLR
from torch.utils.data import DataLoader, Dataset
from torchvision import transforms
from torchvision.datasets import ImageFolder

STUDENT_ID = "400103001"
device = torch.device("cuda") if torch.cuda.is_available() else torch.device("cpu")
torch.manual_seed(42)

# %% [markdown]
# ## Images

# %%
MEAN = (0.4914, 0.4822, 0.4465)
STD = (0.2470, 0.2435, 0.2616)
BATCH_SIZE = 64

with zipfile.ZipFile("dataset.zip") as archive:
    archive.extractall("data")


class Part(Dataset):
    """Some of a folder's images, with a transform of their own."""

    def __init__(self, folder, indices, transform):
        self.folder, self.indices, self.transform = folder, indices, transform

    def __len__(self):
        return len(self.indices)

    def __getitem__(self, i):
        image, label = self.folder[self.indices[i]]
        return self.transform(image), label


to_normalized = transforms.Compose([transforms.ToTensor(), transforms.Normalize(MEAN, STD)])
augmentation = transforms.Compose([transforms.RandomHorizontalFlip(), transforms.RandomCrop(32, padding=4), to_normalized])

train_folder = ImageFolder("data/train")
test_images = ImageFolder("data/test", transform=to_normalized)
class_names = test_images.classes
order = torch.randperm(len(train_folder), generator=torch.Generator().manual_seed(7)).tolist()
validation_size = len(order) // 10
loaders = {
    "train": DataLoader(Part(train_folder, order[validation_size:], augmentation), batch_size=BATCH_SIZE, shuffle=True),
    "validation": DataLoader(Part(train_folder, order[:validation_size], to_normalized), batch_size=200),
}
test_loader = DataLoader(test_images, batch_size=200)

# %% [markdown]
# ## Vision Transformer


# %%
class PatchEmbedding(nn.Module):
    """Unfolds the image into patches and maps each one linearly."""

    def __init__(self, image_size, patch_size, in_channels, dim):
        super().__init__()
        if image_size % patch_size != 0:
            raise ValueError("the patch size must divide the image size")
        self.unfold = nn.Unfold(kernel_size=patch_size, stride=patch_size)
        self.linear = nn.Linear(in_channels * patch_size**2, dim)

    def forward(self, images):
        patches = self.unfold(images)  # (batch, pixels of a patch, patches)
        return self.linear(patches.transpose(1, 2))


def sinusoidal_positions(tokens, dim):
    """Sines in the even columns, cosines in the odd ones."""
    table = torch.empty(tokens, dim)
    pos = torch.arange(tokens, dtype=torch.float)
    for i in range(dim // 2):
        angle = pos / 10000 ** (2 * i / dim)
        table[:, 2 * i] = torch.sin(angle)
        table[:, 2 * i + 1] = torch.cos(angle)
    return table


class MultiHeadSelfAttention(nn.Module):
    def __init__(self, dim, heads, dropout=0.0):
        super().__init__()
        assert dim % heads == 0
        self.heads = heads
        self.head_dim = dim // heads
        self.query = nn.Linear(dim, dim)
        self.key = nn.Linear(dim, dim)
        self.value = nn.Linear(dim, dim)
        self.output = nn.Linear(dim, dim)
        self.dropout = nn.Dropout(dropout)

    def split(self, x):
        """(batch, tokens, dim) -> (batch, heads, tokens, head_dim)"""
        return x.unflatten(-1, (self.heads, self.head_dim)).transpose(1, 2)

    def forward(self, x, return_weights=False):
        q, k, v = self.split(self.query(x)), self.split(self.key(x)), self.split(self.value(x))
        scores = torch.einsum("bhid,bhjd->bhij", q, k) / math.sqrt(self.head_dim)
        weights = torch.softmax(scores, dim=-1)
        heads = torch.einsum("bhij,bhjd->bihd", self.dropout(weights), v)
        result = self.output(heads.flatten(2))
        if return_weights:
            return result, weights
        return result


class FeedForward(nn.Module):
    def __init__(self, dim, hidden):
        super().__init__()
        self.expand = nn.Linear(dim, hidden)
        self.contract = nn.Linear(hidden, dim)

    def forward(self, x):
        return self.contract(F.gelu(self.expand(x)))


class EncoderBlock(nn.Module):
    def __init__(self, dim, heads, mlp_ratio=4.0, dropout=0.0):
        super().__init__()
        self.attention_norm = nn.LayerNorm(dim)
        self.attention = MultiHeadSelfAttention(dim, heads, dropout)
        self.mlp_norm = nn.LayerNorm(dim)
        self.mlp = FeedForward(dim, int(mlp_ratio * dim))

    def forward(self, x):
        x = x + self.attention(self.attention_norm(x))
        x = x + self.mlp(self.mlp_norm(x))
        return x

    def weights(self, x):
        return self.attention(self.attention_norm(x), return_weights=True)[1]


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
        if positions not in ("learned", "sinusoidal") or pool not in ("cls", "mean"):
            raise ValueError("unknown positions or pool")
        self.pool = pool
        self.patch_embedding = PatchEmbedding(image_size, patch_size, in_channels, dim)
        tokens = (image_size // patch_size) ** 2
        if pool == "cls":
            tokens = tokens + 1
            self.class_token = nn.Parameter(torch.zeros(1, 1, dim))
            nn.init.trunc_normal_(self.class_token, std=0.02)
        if positions == "learned":
            self.position_table = nn.Parameter(torch.zeros(tokens, dim))
            nn.init.trunc_normal_(self.position_table, std=0.02)
        else:
            self.position_table = nn.Parameter(sinusoidal_positions(tokens, dim), requires_grad=False)
        self.blocks = nn.ModuleList()
        for _ in range(depth):
            self.blocks.append(EncoderBlock(dim, heads, mlp_ratio, dropout))
        self.final_norm = nn.LayerNorm(dim)
        self.classifier = nn.Linear(dim, num_classes)

    def embed(self, images):
        tokens = self.patch_embedding(images)
        if self.pool == "cls":
            tokens = torch.cat((self.class_token.expand(len(tokens), 1, -1), tokens), dim=1)
        return tokens + self.position_table

    def forward(self, images):
        tokens = self.embed(images)
        for block in self.blocks:
            tokens = block(tokens)
        tokens = self.final_norm(tokens)
        pooled = tokens[:, 0] if self.pool == "cls" else tokens.mean(dim=1)
        return self.classifier(pooled)

    def attention(self, images):
        tokens = self.embed(images)
        for index in range(len(self.blocks) - 1):
            tokens = self.blocks[index](tokens)
        return self.blocks[-1].weights(tokens)


class EvaluationMode:
    """with EvaluationMode(model): the model is in evaluation mode, and afterwards as before."""

    def __init__(self, model):
        self.model = model

    def __enter__(self):
        self.before = self.model.training
        self.model.eval()

    def __exit__(self, *_):
        self.model.train(self.before)


def attention_map(model, image):
    where = next(model.parameters()).device
    with EvaluationMode(model), torch.no_grad():
        weights = model.attention(image.unsqueeze(0).to(where)).squeeze(0).cpu()
    weights = weights.mean(dim=0)  # of the heads
    tokens = len(weights)
    if math.isqrt(tokens) ** 2 == tokens:  # pool="mean"
        seen = weights.mean(dim=0)
    else:
        seen = weights[0, 1:]
    side = math.isqrt(len(seen))
    seen = (seen / seen.max()).view(1, 1, side, side)
    return F.interpolate(seen, size=image.shape[-2:], mode="nearest")[0, 0]


# %% [markdown]
# ## ResNet


# %%
class BasicBlock(nn.Module):
    def __init__(self, in_channels, channels, stride=1):
        super().__init__()
        self.first = nn.Conv2d(in_channels, channels, kernel_size=3, stride=stride, padding=1, bias=False)
        self.first_norm = nn.BatchNorm2d(channels)
        self.second = nn.Conv2d(channels, channels, kernel_size=3, padding=1, bias=False)
        self.second_norm = nn.BatchNorm2d(channels)
        self.shortcut = None
        if stride > 1 or in_channels != channels:
            self.shortcut = nn.Sequential(
                nn.Conv2d(in_channels, channels, kernel_size=1, stride=stride, bias=False),
                nn.BatchNorm2d(channels),
            )

    def forward(self, x):
        y = torch.relu(self.first_norm(self.first(x)))
        y = self.second_norm(self.second(y))
        y = y + (x if self.shortcut is None else self.shortcut(x))
        return torch.relu(y)


class Group(nn.Sequential):
    """Two blocks; the first one changes the shape."""

    def __init__(self, in_channels, channels, stride):
        super().__init__(BasicBlock(in_channels, channels, stride), BasicBlock(channels, channels))


class ResNet18(nn.Module):
    def __init__(self, num_classes=10, width=64):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU())
        self.groups = nn.Sequential(
            Group(width, width, 1),
            Group(width, width * 2, 2),
            Group(width * 2, width * 4, 2),
            Group(width * 4, width * 8, 2),
        )
        self.classifier = nn.Linear(width * 8, num_classes)

    def forward(self, images):
        features = self.groups(self.stem(images))
        return self.classifier(features.flatten(2).mean(dim=2))


def parameter_table(model):
    rows = []
    own = sum(p.numel() for p in model.parameters(recurse=False))
    if own:
        rows.append(("(own)", own))
    for name, child in model.named_children():
        rows.append((name, sum(p.numel() for p in child.parameters())))
    return rows


# %% [markdown]
# ## Training


# %%
class RunningMean:
    """Mean loss and accuracy over images."""

    def __init__(self):
        self.loss = 0.0
        self.correct = 0
        self.images = 0

    def add(self, loss, scores, labels):
        n = len(labels)
        self.loss += float(loss.detach()) * n
        self.correct += int((scores.detach().argmax(dim=1) == labels).sum())
        self.images += n

    def result(self):
        return self.loss / self.images, self.correct / self.images


class BestWeights:
    """Keeps a copy of the weights with the highest score."""

    def __init__(self, model):
        self.model = model
        self.score = -math.inf
        self.copy = None

    def offer(self, score):
        if score > self.score:
            self.score = score
            self.copy = {name: value.detach().clone() for name, value in self.model.state_dict().items()}

    def restore(self):
        if self.copy is not None:
            self.model.load_state_dict(self.copy)


def warmup_cosine(step, warmup_steps, total_steps):
    if step < warmup_steps:
        return step / warmup_steps
    if step >= total_steps:
        return 0.0
    progress = (step - warmup_steps) / (total_steps - warmup_steps)
    return math.cos(progress * math.pi / 2) ** 2


def train_epoch(model, loader, criterion, optimizer, scheduler, device):
    model.train()
    running = RunningMean()
    for images, labels in loader:
        images = images.to(device)
        labels = labels.to(device)
        optimizer.zero_grad()
        scores = model(images)
        loss = criterion(scores, labels)
        loss.backward()
        optimizer.step()
        if scheduler is not None:
            scheduler.step()
        running.add(loss, scores, labels)
    return running.result()


def evaluate(model, loader, criterion, device):
    model.eval()
    running = RunningMean()
    targets, predictions, probabilities = [], [], []
    for images, labels in loader:
        images = images.to(device)
        labels = labels.to(device)
        with torch.no_grad():
            scores = model(images)
            running.add(criterion(scores, labels), scores, labels)
        targets.extend(labels.tolist())
        predictions.extend(scores.argmax(dim=1).tolist())
        probabilities.append(scores.softmax(dim=1).cpu().numpy())
    loss, accuracy = running.result()
    return {
        "loss": loss,
        "accuracy": accuracy,
        "targets": np.array(targets),
        "predictions": np.array(predictions),
        "probabilities": np.concatenate(probabilities),
    }


def fit(model, loaders, epochs, device):
    model.to(device)
    criterion = nn.CrossEntropyLoss()
    steps = epochs * len(loaders["train"])
    optimizer = AdamW(model.parameters(), lr=1e-3, weight_decay=0.02)
    scheduler = LambdaLR(optimizer, lambda step: warmup_cosine(step, int(0.1 * steps), steps))
    best = BestWeights(model)
    history = {"training": [], "validation": []}
    for epoch in range(epochs):
        history["training"].append(train_epoch(model, loaders["train"], criterion, optimizer, scheduler, device))
        measured = evaluate(model, loaders["validation"], criterion, device)
        history["validation"].append((measured["loss"], measured["accuracy"]))
        best.offer(measured["accuracy"])
    best.restore()
    return history


# %% [markdown]
# ## Measures


# %%
def safe_divide(a, b):
    a, b = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    result = np.zeros_like(a)
    result[b > 0] = a[b > 0] / b[b > 0]
    return result


def area_under_roc(positive, scores):
    """From the mean ranks (Mann-Whitney)."""
    n_positive = int(positive.sum())
    n_negative = len(positive) - n_positive
    if n_positive == 0 or n_negative == 0:
        return float("nan")
    _, which, counts = np.unique(scores, return_inverse=True, return_counts=True)
    last_rank = np.cumsum(counts)
    mean_rank = last_rank - (counts - 1) / 2
    rank_sum = mean_rank[which.reshape(-1)][positive].sum()
    return float((rank_sum - n_positive * (n_positive + 1) / 2) / (n_positive * n_negative))


def classification_metrics(targets, probabilities):
    targets = np.asarray(targets).astype(np.int64)
    probabilities = np.asarray(probabilities).astype(np.float64)
    classes = probabilities.shape[1]
    predictions = np.argmax(probabilities, axis=1)
    confusion = np.zeros((classes, classes), dtype=np.int64)
    np.add.at(confusion, (targets, predictions), 1)

    true_positive = np.diagonal(confusion)
    support = confusion.sum(axis=1)
    precision = safe_divide(true_positive, confusion.sum(axis=0))
    recall = safe_divide(true_positive, support)
    f1 = safe_divide(2 * precision * recall, precision + recall)
    roc_auc = np.array([area_under_roc(targets == c, probabilities[:, c]) for c in range(classes)])

    result = {"confusion": confusion, "precision": precision, "recall": recall, "f1": f1, "support": support}
    result["roc_auc"] = roc_auc
    result["accuracy"] = float(np.mean(predictions == targets))
    for name in ["precision", "recall", "f1", "roc_auc"]:
        kept = np.logical_and(support > 0, np.isfinite(result[name]))
        values, weights = result[name][kept], support[kept]
        result[f"macro_{name}"] = float(np.mean(values)) if len(values) else float("nan")
        result[f"weighted_{name}"] = float(np.sum(values * weights) / np.sum(weights)) if len(values) else float("nan")
    return result


class MetricsTable:
    def __init__(self):
        self.rows = []

    def add(self, name, value):
        if isinstance(value, dict):
            for key in value:
                self.add(name + [str(key)], value[key])
        elif np.ndim(value) == 1:
            for index, number in enumerate(np.asarray(value)):
                self.add(name + [str(index)], number)
        elif np.ndim(value) == 0:
            self.rows.append([".".join(name), float(value)])

    def write(self, path):
        with Path(path).open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(["metric", "value"])
            writer.writerows(self.rows)


def export_metrics(metrics, path):
    table = MetricsTable()
    table.add([], metrics)
    table.write(path)


# %% [markdown]
# ## Figures


# %%
class Denormalizer:
    """Makes pictures of normalized images again."""

    def __init__(self, mean, std):
        self.mean = torch.tensor(mean).reshape(-1, 1, 1)
        self.std = torch.tensor(std).reshape(-1, 1, 1)

    def __call__(self, image):
        pixels = image.detach().cpu() * self.std + self.mean
        return pixels.clamp(0, 1).permute(1, 2, 0).numpy()


def plot_learning_curves(history):
    figure, (left, right) = plt.subplots(1, 2, figsize=(12, 4))
    for name in ("training", "validation"):
        losses = [loss for loss, _ in history[name]]
        accuracies = [accuracy for _, accuracy in history[name]]
        epochs = np.arange(1, len(losses) + 1)
        left.plot(epochs, losses, marker=".", label=name)
        right.plot(epochs, accuracies, marker=".", label=name)
    for axes, what in ((left, "loss"), (right, "accuracy")):
        axes.set_xlabel("epoch")
        axes.set_ylabel(what)
        axes.set_title(what)
        axes.legend()
    return figure


def plot_confusion_matrix(matrix, class_names):
    matrix = np.asarray(matrix)
    ticks = np.arange(len(class_names))
    figure, axes = plt.subplots(figsize=(8, 7))
    drawn = axes.imshow(matrix, cmap="viridis")
    figure.colorbar(drawn)
    axes.set_xticks(ticks, labels=class_names, rotation=90)
    axes.set_yticks(ticks, labels=class_names)
    axes.set_xlabel("predicted")
    axes.set_ylabel("true")
    for true in ticks:
        for predicted in ticks:
            axes.text(predicted, true, int(matrix[true, predicted]), ha="center", va="center", color="w")
    return figure


def plot_roc(targets, probabilities, class_names):
    targets = np.asarray(targets)
    probabilities = np.asarray(probabilities)
    figure, axes = plt.subplots(figsize=(6, 5))
    for c, name in enumerate(class_names):
        positive = targets == c
        if positive.sum() in (0, len(positive)):
            continue
        order = np.argsort(-probabilities[:, c], kind="stable")
        scores = probabilities[order, c]
        hits = np.cumsum(positive[order])
        alarms = np.cumsum(~positive[order])
        last_of_ties = np.append(np.diff(scores) != 0, True)
        tpr = np.concatenate([[0], hits[last_of_ties] / positive.sum()])
        fpr = np.concatenate([[0], alarms[last_of_ties] / (~positive).sum()])
        axes.plot(fpr, tpr, label=name)
    axes.set_xlabel("false positive rate")
    axes.set_ylabel("true positive rate")
    axes.legend(fontsize="small")
    return figure


def plot_attention(model, images, labels, class_names, mean, std):
    picture_of = Denormalizer(mean, std)
    figure, axes = plt.subplots(len(images), 3, figsize=(7, 2.4 * len(images)), squeeze=False)
    for i in range(len(images)):
        picture = picture_of(images[i])
        heat = attention_map(model, images[i])
        axes[i, 0].imshow(picture)
        axes[i, 0].set_title(f"{class_names[int(labels[i])]}")
        axes[i, 1].imshow(heat, cmap="magma")
        axes[i, 1].set_title("map")
        axes[i, 2].imshow(picture)
        axes[i, 2].imshow(heat, cmap="magma", alpha=0.5)
        axes[i, 2].set_title("overlay")
        for j in range(3):
            axes[i, j].axis("off")
    return figure


def plot_top3(images, labels, probabilities, class_names, mean, std):
    picture_of = Denormalizer(mean, std)
    probabilities = np.asarray(probabilities)
    figure, axes = plt.subplots(1, len(images), figsize=(3 * len(images), 3.6), squeeze=False)
    for i, ax in enumerate(axes[0]):
        likeliest = np.argsort(probabilities[i])[::-1][:3]
        text = [f"true: {class_names[int(labels[i])]}"]
        text += [f"{class_names[c]}: {probabilities[i, c]:.3f}" for c in likeliest]
        ax.imshow(picture_of(images[i]))
        ax.set_title("\n".join(text), fontsize=9)
        ax.axis("off")
    return figure


# %% [markdown]
# ## Training of both models

# %%
EPOCHS = 15

vit = VisionTransformer(num_classes=len(class_names), patch_size=4, dim=96, depth=6, heads=6, mlp_ratio=2.0, dropout=0.05)
vit_history = fit(vit, loaders, EPOCHS, device)
torch.save(vit.state_dict(), f"{STUDENT_ID}_CIFAR10_vit.pth")
print("ViT:", vit_history["validation"][-1])

# %%
resnet = ResNet18(num_classes=len(class_names), width=16)
resnet_history = fit(resnet, loaders, EPOCHS, device)
torch.save(resnet.state_dict(), f"{STUDENT_ID}_CIFAR10_resnet.pth")
print("ResNet:", resnet_history["validation"][-1])

# %% [markdown]
# ## Comparison on the test images

# %%
criterion = nn.CrossEntropyLoss()
results = {"vit": evaluate(vit, test_loader, criterion, device), "resnet": evaluate(resnet, test_loader, criterion, device)}
metrics = {name: classification_metrics(r["targets"], r["probabilities"]) for name, r in results.items()}
export_metrics(metrics, f"{STUDENT_ID}_metrics.csv")
for name, history, model in (("vit", vit_history, vit), ("resnet", resnet_history, resnet)):
    print(name, round(metrics[name]["accuracy"], 4))
    for part, numbers in parameter_table(model):
        print(f"  {part:20s}{numbers:10d}")
    plot_learning_curves(history)
    plot_confusion_matrix(metrics[name]["confusion"], class_names)
    plot_roc(results[name]["targets"], results[name]["probabilities"], class_names)

# %%
shown = list(range(0, len(test_images), max(1, len(test_images) // 5)))[:5]
images = torch.stack([test_images[i][0] for i in shown])
labels = torch.tensor([test_images[i][1] for i in shown])
plot_attention(vit, images, labels, class_names, MEAN, STD)
plot_top3(images, labels, results["vit"]["probabilities"][shown], class_names, MEAN, STD)

# %% [markdown]
# ## Study

# %%
RUN_STUDY = True
STUDY_BASE = {
    "patch_size": 4, "dim": 48, "depth": 3, "heads": 4, "mlp_ratio": 2.0, "positions": "learned", "epochs": 5,
}  # fmt: skip
STUDY_COLUMNS = list(STUDY_BASE) + ["seed", "parameters", "validation_accuracy"]


class Study:
    def __init__(self, base):
        self.base = base
        self.rows = []

    def run(self, seed=0, **change):
        values = {**self.base, **change}
        torch.manual_seed(seed)
        model = VisionTransformer(
            patch_size=values["patch_size"],
            dim=values["dim"],
            depth=values["depth"],
            heads=values["heads"],
            mlp_ratio=values["mlp_ratio"],
            positions=values["positions"],
            dropout=0.0,
            num_classes=len(class_names),
        )
        fit(model, loaders, values["epochs"], device)
        accuracy = evaluate(model, loaders["validation"], criterion, device)["accuracy"]
        parameters = sum(p.numel() for p in model.parameters())
        self.rows.append({**values, "seed": seed, "parameters": parameters, "validation_accuracy": round(accuracy, 4)})


if RUN_STUDY:
    study = Study(STUDY_BASE)
    for seed in (0, 1, 2):
        study.run(seed)
    study.run(patch_size=8)
    study.run(dim=96)
    study.run(depth=2)
    study.run(depth=6)
    study.run(heads=2)
    study.run(mlp_ratio=4.0)
    study.run(positions="sinusoidal")
    with open(f"{STUDENT_ID}_study.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, STUDY_COLUMNS)
        writer.writeheader()
        writer.writerows(study.rows)
