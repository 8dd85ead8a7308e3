# Homework 2, ViT and ResNet
# ------------------------------------------------------------
# Contents: data / transformer / resnet / training / scores / figures / main part / study

# %%
import copy
import math
import time
import zipfile
from functools import partial

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
import torch.nn as nn
from matplotlib.gridspec import GridSpec
from torch.optim import NAdam, AdamW
from torch.optim.lr_scheduler import LambdaLR
from torch.utils.data import DataLoader, Dataset, random_split
from torchvision import transforms as T
from torchvision.datasets import ImageFolder

STUDENT_ID = "400102010"

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(1234)

# %% [markdown]
# ### Data
# One ImageFolder without any transform; the transforms come in afterwards, so that the training images can have
# crops and flips and the validation images can't get them by accident.

# %%
MEAN, STD = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)

with zipfile.ZipFile("dataset.zip") as z:
    z.extractall("data")


class Transformed(Dataset):
    def __init__(self, images, transform):
        self.images = images
        self.transform = transform

    def __len__(self):
        return len(self.images)

    def __getitem__(self, i):
        image, label = self.images[i]
        return self.transform(image), label


tensor_and_norm = T.Compose([T.ToTensor(), T.Normalize(MEAN, STD)])
with_augmentation = T.Compose([T.RandomHorizontalFlip(), T.Pad(4), T.RandomCrop(32), tensor_and_norm])

all_training = ImageFolder("data/train")
class_names = all_training.classes
train_part, validation_part = random_split(
    all_training, [0.9, 0.1], generator=torch.Generator().manual_seed(1234)
)
loaders = {
    "train": DataLoader(Transformed(train_part, with_augmentation), batch_size=64, shuffle=True),
    "validation": DataLoader(Transformed(validation_part, tensor_and_norm), batch_size=64),
}
test_set = Transformed(ImageFolder("data/test"), tensor_and_norm)
test_loader = DataLoader(test_set, batch_size=64)

# %% [markdown]
# ### Transformer


# %%
class PatchEmbedding(nn.Module):
    def __init__(self, image_size, patch_size, in_channels, dim):
        super().__init__()
        self.image_size, self.patch_size = image_size, patch_size
        self.projection = nn.Linear(in_channels * patch_size * patch_size, dim)

    def forward(self, images):
        b, c, h, w = images.shape
        p = self.patch_size
        patches = images.reshape(b, c, h // p, p, w // p, p)
        patches = patches.permute(0, 2, 4, 1, 3, 5)  # b, row, column, c, p, p
        return self.projection(patches.reshape(b, (h // p) * (w // p), c * p * p))


def sinusoidal_positions(tokens, dim):
    # e^(i*angle) = cos + i*sin, so both come from one complex number
    pos = torch.arange(tokens, dtype=torch.float64).reshape(-1, 1)
    rate = 10000.0 ** (-torch.arange(0, dim, 2, dtype=torch.float64) / dim)
    turned = torch.polar(torch.ones(1, dtype=torch.float64), pos * rate)
    cos_sin = torch.view_as_real(turned)
    return cos_sin.flip(-1).flatten(1).to(torch.float32)  # sin first


class Head(nn.Module):
    """One head: (b, n, dim) -> (b, n, size), and its weights."""

    def __init__(self, dim, size, dropout):
        super().__init__()
        self.size = size
        self.key = nn.Linear(dim, size, bias=False)
        self.query = nn.Linear(dim, size, bias=False)
        self.value = nn.Linear(dim, size, bias=False)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        k, q, v = self.key(x), self.query(x), self.value(x)
        weights = torch.softmax(torch.bmm(q, k.transpose(1, 2)) / self.size**0.5, dim=2)
        return torch.bmm(self.dropout(weights), v), weights


class MultiHeadSelfAttention(nn.Module):
    def __init__(self, dim, heads, dropout=0.0):
        super().__init__()
        self.each = nn.ModuleList([Head(dim, dim // heads, dropout) for _ in range(heads)])
        self.mix = nn.Linear(dim, dim)

    def forward(self, x, return_weights=False):
        results, weights = zip(*[head(x) for head in self.each])
        y = self.mix(torch.cat(results, dim=-1))
        if not return_weights:
            return y
        return y, torch.stack(weights, dim=1)


class EncoderBlock(nn.Module):
    def __init__(self, dim, heads, mlp_ratio=4.0, dropout=0.0):
        super().__init__()
        wide = int(round(mlp_ratio * dim))
        self.n1, self.n2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.att = MultiHeadSelfAttention(dim, heads, dropout)
        self.fc1, self.fc2 = nn.Linear(dim, wide), nn.Linear(wide, dim)
        self.act = nn.GELU()
        self.drop = nn.Dropout(dropout)

    def forward(self, x, return_weights=False):
        y, weights = self.att(self.n1(x), return_weights=True)
        x = torch.add(x, y)
        x = torch.add(x, self.fc2(self.drop(self.act(self.fc1(self.n2(x))))))
        return (x, weights) if return_weights else x


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
        self.parts = nn.ModuleDict()
        self.parts["patches"] = PatchEmbedding(image_size, patch_size, in_channels, dim)
        n = (image_size // patch_size) ** 2
        self.tokens = nn.ParameterDict()
        if pool == "cls":
            n = n + 1
            self.tokens["cls"] = nn.Parameter(torch.zeros(1, 1, dim))
        if positions == "learned":
            self.tokens["positions"] = nn.Parameter(nn.init.trunc_normal_(torch.zeros(1, n, dim), std=0.02))
        elif positions == "sinusoidal":
            self.tokens["positions"] = nn.Parameter(sinusoidal_positions(n, dim)[None], requires_grad=False)
        else:
            raise ValueError("positions must be 'learned' or 'sinusoidal'")
        self.parts["blocks"] = nn.ModuleList(
            [EncoderBlock(dim, heads, mlp_ratio, dropout) for _ in range(depth)]
        )
        self.parts["norm"] = nn.LayerNorm(dim)
        self.parts["head"] = nn.Linear(dim, num_classes)
        self.dropout = nn.Dropout(dropout)

    def walk(self, images):
        x = self.parts["patches"](images)
        if self.pool == "cls":
            x = torch.cat([self.tokens["cls"].expand(x.size(0), -1, -1), x], dim=1)
        x = self.dropout(x + self.tokens["positions"])
        weights = None
        for block in self.parts["blocks"]:
            x, weights = block(x, return_weights=True)
        return x, weights

    def forward(self, images):
        x, _ = self.walk(images)
        x = self.parts["norm"](x)
        x = x[:, 0, :] if self.pool == "cls" else x.mean(dim=1)
        return self.parts["head"](self.dropout(x))

    def attention(self, images):
        return self.walk(images)[1]


@torch.no_grad()
def attention_map(model, image):
    mode = model.training
    model.train(False)
    p = next(iter(model.parameters()))
    weights = model.attention(image[None, ...].to(p.device))
    model.train(mode)
    weights = weights[0].cpu().numpy().mean(axis=0)
    if model.pool == "cls":
        patches = weights[0, 1:]
    else:
        patches = weights.mean(axis=0)
    side = int(round(np.sqrt(patches.size)))
    patches = (patches / patches.max()).reshape(side, side)
    h, w = image.shape[1], image.shape[2]
    return patches.repeat(h // side, axis=0).repeat(w // side, axis=1)


# %% [markdown]
# ### ResNet

# %%
conv3 = partial(nn.Conv2d, kernel_size=3, padding=1)


class BasicBlock(nn.Module):
    def __init__(self, in_channels, channels, stride=1):
        super().__init__()
        self.body = nn.ModuleDict(
            {
                "conv_a": conv3(in_channels, channels, stride=stride),
                "norm_a": nn.BatchNorm2d(channels),
                "conv_b": conv3(channels, channels),
                "norm_b": nn.BatchNorm2d(channels),
            }
        )
        if (in_channels, 1) != (channels, stride):
            self.side = nn.Sequential(
                nn.Conv2d(in_channels, channels, kernel_size=1, stride=stride), nn.BatchNorm2d(channels)
            )
        else:
            self.side = nn.Identity()

    def forward(self, x):
        y = torch.relu(self.body["norm_a"](self.body["conv_a"](x)))
        y = self.body["norm_b"](self.body["conv_b"](y))
        return torch.relu(y + self.side(x))


class ResNet18(nn.Module):
    def __init__(self, num_classes=10, width=64):
        super().__init__()
        self.features = nn.Sequential()
        self.features.append(conv3(3, width)).append(nn.BatchNorm2d(width)).append(nn.ReLU())
        c = width
        for g in range(4):
            for b in range(2):
                out = width << g
                self.features.append(BasicBlock(c, out, stride=2 if g > 0 and b == 0 else 1))
                c = out
        self.output = nn.Linear(c, num_classes)

    def forward(self, images):
        return self.output(self.features(images).flatten(2).mean(2))


def parameter_table(model):
    """Goes down to the leaves; what a module that is no leaf holds itself gets a row of its own."""
    seen = set()

    def go(module, name):
        here = 0
        for p in module._parameters.values():
            if p is not None and p not in seen:
                seen.add(p)
                here += p.numel()
        rows = [(name, here)] if here else []
        for child_name, child in module.named_children():
            rows += go(child, f"{name}/{child_name}")
        return rows

    return go(model, model.__class__.__name__)


# %% [markdown]
# ### Training


# %%
def warmup_cosine(step, warmup_steps, total_steps):
    rising = 1.0 if warmup_steps == 0 else min(step / warmup_steps, 1.0)
    done = (step - warmup_steps) / max(total_steps - warmup_steps, 1)
    done = min(max(done, 0.0), 1.0)
    return rising * (1 + math.cos(math.pi * done)) / 2


def train_epoch(model, loader, criterion, optimizer, scheduler, device):
    model.train()
    losses, sizes, right = [], [], []
    for x, t in loader:
        x = x.to(device)
        t = t.to(device)
        y = model(x)
        loss = criterion(y, t)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if scheduler is not None:
            scheduler.step()
        losses.append(loss.item())
        sizes.append(len(t))
        right.append(int((y.argmax(dim=1) == t).sum()))
    return float(np.average(losses, weights=sizes)), sum(right) / sum(sizes)


def evaluate(model, loader, criterion, device):
    model.eval()
    outputs, targets = [], []
    with torch.no_grad():
        for x, t in loader:
            outputs.append(model(x.to(device)))
            targets.append(t.to(device))
        outputs, targets = torch.cat(outputs), torch.cat(targets)
        # the mean of all images at once, so that there is no last smaller batch to think of
        loss = criterion(outputs, targets).item()
    predictions = outputs.argmax(dim=1)
    return {
        "loss": loss,
        "accuracy": predictions.eq(targets).float().mean().item(),
        "targets": targets.cpu(),
        "predictions": predictions.cpu(),
        "probabilities": outputs.softmax(dim=1).cpu(),
    }


def fit(model, loaders, epochs, device):
    model = model.to(device)
    loss_function = nn.CrossEntropyLoss()
    if isinstance(model, ResNet18):
        optimizer = NAdam(model.parameters(), lr=2e-3)
    else:
        optimizer = AdamW(model.parameters(), lr=1.5e-3, weight_decay=0.05)
    per_epoch = len(loaders["train"])
    factor = partial(warmup_cosine, warmup_steps=per_epoch // 2, total_steps=epochs * per_epoch)
    scheduler = LambdaLR(optimizer, factor)
    rows, best_model, best = [], None, None
    for epoch in range(1, epochs + 1):
        loss, accuracy = train_epoch(model, loaders["train"], loss_function, optimizer, scheduler, device)
        result = evaluate(model, loaders["validation"], loss_function, device)
        rows.append((epoch, loss, result["loss"], accuracy, result["accuracy"]))
        print("epoch %d  loss %.3f  val loss %.3f  acc %.3f  val acc %.3f" % rows[-1])
        if best_model is None or result["accuracy"] > best:
            best, best_model = result["accuracy"], copy.deepcopy(model)
    if best_model is not None:
        model.load_state_dict(best_model.state_dict())
    columns = ["epoch", "train loss", "val loss", "train acc", "val acc"]
    return pd.DataFrame(rows, columns=columns).set_index("epoch")


# %% [markdown]
# ### Scores


# %%
def auc(scores, positive):
    if positive.sum() == 0 or positive.sum() == len(positive):
        return float("nan")
    difference = scores[positive][:, None] - scores[~positive][None, :]
    return float(np.mean((np.sign(difference) + 1) / 2))  # 1 won, 1/2 tied, 0 lost


def classification_metrics(targets, probabilities):
    targets = np.asarray(targets, dtype=int)
    probabilities = np.asarray(probabilities, dtype=np.float64)
    eye = np.eye(probabilities.shape[1], dtype=int)
    truth, said = eye[targets], eye[probabilities.argmax(axis=1)]
    confusion = truth.T @ said
    tp = confusion.diagonal().astype(float)
    rows, columns = confusion.sum(axis=1), confusion.sum(axis=0)

    def over(a, b):
        out = np.zeros(len(a))
        np.divide(a, b, out=out, where=b > 0)
        return out

    scores = {
        "precision": over(tp, columns),
        "recall": over(tp, rows),
        "f1": over(2 * tp, rows + columns),
        "roc_auc": np.array([auc(p, t == 1) for p, t in zip(probabilities.T, truth.T)]),
    }
    result = {"accuracy": float(tp.sum() / len(targets)), "confusion": confusion, "support": rows, **scores}
    frame = pd.DataFrame(scores)[rows > 0]
    weight = pd.Series(rows)[rows > 0]
    for name, column in frame.items():
        column = column.dropna()
        w = weight[column.index]
        result[f"macro_{name}"] = float(column.mean())  # of nothing: nan
        result[f"weighted_{name}"] = float((column * w).sum() / w.sum()) if len(column) else float("nan")
    return result


def export_metrics(metrics, path):
    table = {}

    def add(name, value):
        if isinstance(value, dict):
            for key in value:
                add(name + [str(key)], value[key])
        else:
            value = np.asarray(value)
            if value.ndim == 1:
                add(name, {i: v for i, v in enumerate(value)})
            elif value.ndim == 0:
                table[".".join(name)] = value.item()

    add([], metrics)
    frame = pd.DataFrame({"metric": list(table.keys()), "value": list(table.values())})
    frame.to_csv(path, index=False, na_rep="nan")


# %% [markdown]
# ### Figures


# %%
def shown(image, mean, std):
    undo = T.Normalize([-m / s for m, s in zip(mean, std)], [1 / s for s in std])
    return undo(image.cpu()).clamp(0, 1).numpy().transpose(1, 2, 0)


def plot_learning_curves(history):
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), constrained_layout=True)
    history[["train loss", "val loss"]].plot(ax=axes[0], ylabel="loss", xlabel="epoch", title="Loss")
    history[["train acc", "val acc"]].plot(ax=axes[1], ylabel="accuracy", xlabel="epoch", title="Accuracy")
    return figure


def plot_confusion_matrix(matrix, class_names):
    matrix = np.asarray(matrix)
    share = matrix / np.maximum(matrix.sum(axis=1, keepdims=True), 1)  # color: share of the row; text: count
    figure, ax = plt.subplots(figsize=(7.5, 7))
    ax.imshow(share, cmap="Purples", vmin=0, vmax=1)
    for i in range(matrix.shape[0]):
        for j in range(matrix.shape[1]):
            ax.text(j, i, f"{matrix[i, j]:.0f}", ha="center", va="center", color="w" if share[i, j] > 0.5 else "k")
    ax.set_xticks(range(len(class_names)))
    ax.set_xticklabels(class_names, rotation=45, ha="right")
    ax.set_yticks(range(len(class_names)))
    ax.set_yticklabels(class_names)
    ax.set(xlabel="prediction", ylabel="truth")
    figure.tight_layout()
    return figure


def plot_roc(targets, probabilities, class_names):
    targets, probabilities = np.asarray(targets), np.asarray(probabilities)
    figure, ax = plt.subplots(figsize=(6.5, 6))
    for c in range(len(class_names)):
        truth = targets == c
        p, n = truth.sum(), (~truth).sum()
        if p == 0 or n == 0:
            continue
        # positives and negatives at each different score, summed from the largest score down
        counts = pd.DataFrame({"score": probabilities[:, c], "p": truth, "n": ~truth}).groupby("score").sum()
        counts = counts.sort_index(ascending=False).cumsum()
        tpr = [0.0, *(counts["p"] / p)]
        fpr = [0.0, *(counts["n"] / n)]
        ax.plot(fpr, tpr, lw=1.2, label=class_names[c])
    ax.set_xlabel("FPR: share of the negatives called positive")
    ax.set_ylabel("TPR: share of the positives called positive")
    ax.legend(title="class against rest")
    return figure


def plot_attention(model, images, labels, class_names, mean, std):
    n = len(images)
    per_row = min(2, n)  # two images side by side, three panels each
    grid_rows = math.ceil(n / per_row)
    figure = plt.figure(figsize=(5 * per_row, 1.9 * grid_rows))
    grid = GridSpec(grid_rows, 3 * per_row, figure=figure)
    for i, image in enumerate(images):
        r, c = divmod(i, per_row)
        heat = attention_map(model, image)
        picture = shown(image, mean, std)
        ax = [figure.add_subplot(grid[r, 3 * c + k]) for k in range(3)]
        ax[0].imshow(picture)
        ax[0].set_title(class_names[int(labels[i])], fontsize=8)
        ax[1].imshow(heat, cmap="turbo")
        ax[2].imshow(picture)
        ax[2].imshow(heat, cmap="turbo", alpha=0.45)
        for a in ax:
            a.axis("off")
    return figure


def plot_top3(images, labels, probabilities, class_names, mean, std):
    probabilities = np.asarray(probabilities)
    n = len(images)
    figure = plt.figure(figsize=(7, 1.7 * n))
    for i in range(n):
        ax = figure.add_subplot(n, 2, 2 * i + 1)
        ax.imshow(shown(images[i], mean, std))
        ax.axis("off")
        text = figure.add_subplot(n, 2, 2 * i + 2)
        text.axis("off")
        text.text(0, 0.85, f"is a {class_names[int(labels[i])]}", weight="bold")
        best = (-probabilities[i]).argsort()[:3]
        for k, c in enumerate(best):
            right = "  <-" if c == int(labels[i]) else ""
            text.text(0, 0.6 - 0.25 * k, f"{class_names[c]}  p = {probabilities[i, c]:.3f}{right}")
    return figure


# %% [markdown]
# ### Main part

# %%
VIT_EPOCHS = 6
RESNET_EPOCHS = 3

t0 = time.time()
vit = VisionTransformer(
    32, 4, 3, len(class_names), dim=64, depth=4, heads=4, mlp_ratio=2.0, dropout=0.0, positions="learned", pool="cls"
)
vit_history = fit(vit, loaders, VIT_EPOCHS, device)
torch.save(vit.state_dict(), f"{STUDENT_ID}_CIFAR10_vit.pth")
t1 = time.time()
resnet = ResNet18(len(class_names), width=16)
resnet_history = fit(resnet, loaders, RESNET_EPOCHS, device)
torch.save(resnet.state_dict(), f"{STUDENT_ID}_CIFAR10_resnet.pth")
print("seconds: ViT %.0f, ResNet %.0f" % (t1 - t0, time.time() - t1))

# %%
criterion = nn.CrossEntropyLoss()
vit_found = evaluate(vit, test_loader, criterion, device)
resnet_found = evaluate(resnet, test_loader, criterion, device)
print("test accuracy: ViT %.4f, ResNet %.4f" % (vit_found["accuracy"], resnet_found["accuracy"]))

measures = {
    "vit": classification_metrics(vit_found["targets"], vit_found["probabilities"]),
    "resnet": classification_metrics(resnet_found["targets"], resnet_found["probabilities"]),
}
export_metrics(measures, f"{STUDENT_ID}_metrics.csv")
print(pd.DataFrame(parameter_table(vit), columns=["part", "parameters"]))
print(pd.DataFrame(parameter_table(resnet), columns=["part", "parameters"]))

# %%
for history, found, m in (
    (vit_history, vit_found, measures["vit"]),
    (resnet_history, resnet_found, measures["resnet"]),
):
    plot_learning_curves(history)
    plot_confusion_matrix(m["confusion"], class_names)
    plot_roc(found["targets"], found["probabilities"], class_names)

some = np.linspace(0, len(test_set) - 1, 6).astype(int).tolist()
images = torch.stack([test_set[i][0] for i in some])
labels = [test_set[i][1] for i in some]
plot_attention(vit, images, labels, class_names, MEAN, STD)
plot_top3(images, labels, vit_found["probabilities"][some], class_names, MEAN, STD)

# %% [markdown]
# ### Study

# %%
RUN_STUDY = False  # the table is there


def one_training(seed, epochs=3, **sizes):
    torch.manual_seed(seed)
    model = VisionTransformer(num_classes=len(class_names), dropout=0.0, **sizes)
    fit(model, loaders, epochs, device)
    return {
        **sizes,
        "epochs": epochs,
        "seed": seed,
        "parameters": sum(p.numel() for p in model.parameters()),
        "validation_accuracy": round(evaluate(model, loaders["validation"], criterion, device)["accuracy"], 4),
    }


if RUN_STUDY:
    base = {"patch_size": 8, "dim": 48, "depth": 2, "heads": 4, "mlp_ratio": 2.0, "positions": "learned"}
    others = {
        "patch_size": [4], "dim": [32, 64], "depth": [3], "heads": [2], "mlp_ratio": [3.0], "positions": ["sinusoidal"],
    }  # fmt: skip
    study = pd.DataFrame([one_training(seed, **base) for seed in (100, 101, 102)])
    for name, values in others.items():
        for value in values:
            row = one_training(100, **{**base, name: value})
            study = pd.concat([study, pd.DataFrame([row])], ignore_index=True)
    study.to_csv(f"{STUDENT_ID}_study.csv", index=False)
    print(study)
