# %% [markdown]
# # Fine-tuning a pretrained Vision Transformer

# %%
import copy
import math
import random
import zipfile

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
import torch
import torch.nn.functional as F
from handout import build_model, parts
from torch import Tensor, nn, optim
from torch.utils.data import DataLoader, Subset
from torchvision import datasets, transforms

STUDENT_ID = "400105001"
RATE = 2e-3
PATIENCE = 3
BATCH_SIZE = 64
MEAN, STD = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(42)

# %% [markdown]
# ## The split

# %%
def stratified_split(labels, per_class, seed):
    generator = random.Random(int(seed))
    labels = [int(label) for label in labels]
    parts = [[] for _ in per_class]
    for c in sorted(set(labels)):
        indices = [i for i, label in enumerate(labels) if label == c]
        if len(indices) < sum(per_class):
            raise ValueError("not enough images of class " + str(c))
        generator.shuffle(indices)
        start = 0
        for k in range(len(per_class)):
            parts[k] += indices[start : start + per_class[k]]
            start += per_class[k]
    return tuple(np.array(part, dtype=np.int64) for part in parts)


# %% [markdown]
# ## Mixed images

# %%
def share_of(alpha, generator):
    """A draw from Beta(alpha, alpha), 1 for alpha = 0."""
    return generator.beta(alpha, alpha) if alpha else 1.0


def neighbors(values):
    """Everybody gets the values of the one before; a cyclic shift is a permutation without fixed points."""
    return values.roll(1, dims=0)


def mixup(images, labels, alpha, generator):
    lam = share_of(alpha, generator)
    return neighbors(images).mul(1 - lam).add(images, alpha=lam), labels, neighbors(labels), lam


# %%
def cutmix(images, labels, alpha, generator):
    lam = share_of(alpha, generator)
    *_, height, width = images.shape
    root = math.sqrt(max(1 - lam, 0.0))
    rows, columns = round(height * root), round(width * root)
    top, left = generator.integers((height - rows + 1, width - columns + 1))
    mixed = images.clone()
    window = mixed.narrow(2, int(top), rows).narrow(3, int(left), columns)
    window.copy_(neighbors(images).narrow(2, int(top), rows).narrow(3, int(left), columns))
    return mixed, labels, neighbors(labels), 1 - rows * columns / (height * width)


# %%
def mixed_loss(criterion, logits, labels_a, labels_b, lam):
    return sum(share * criterion(logits, labels) for share, labels in ((lam, labels_a), (1 - lam, labels_b)))


# %% [markdown]
# ## What learns

# %%
def freeze_backbone(model):
    head, *_ = parts(model.requires_grad_(False))
    head.requires_grad_()


# %%
def unfreeze(model, blocks=None):
    head, layers, norm = parts(model.requires_grad_(blocks is None))
    for number, module in enumerate([head, norm, *layers[::-1]]):
        module.requires_grad_(blocks is None or number < 2 + blocks)


# %% [markdown]
# ## Training and evaluation

# %%
def train_one_epoch(model, loader, optimizer, criterion, device, mix=None):
    learns = lambda module: any(p.requires_grad for p in module.parameters())  # noqa: E731
    model.train()
    [block.eval() for block in parts(model)[1] if not learns(block)]
    sums = dict(loss=0.0, hits=0.0, n=0)

    def unmixed(images, labels):
        return images, labels, labels, 1.0

    def one(batch):
        images, a, b, lam = (mix or unmixed)(*(part.to(device) for part in batch))
        logits = model(images)

        def hits(labels):
            return torch.eq(logits.argmax(-1), labels).sum().item()

        def backward():
            optimizer.zero_grad(set_to_none=True)
            loss = mixed_loss(criterion, logits, a, b, lam)
            loss.backward()
            return loss.item()

        sums["loss"] += backward() * len(images)
        sums["hits"] += lam * hits(a) + (1 - lam) * hits(b)
        sums["n"] += len(images)
        optimizer.step()

    for batch in loader:
        one(batch)
    return sums["loss"] / sums["n"], sums["hits"] / sums["n"]


# %%
def evaluate(model, loader, criterion, device):
    model.eval()
    with torch.no_grad():
        rows = []
        for images, labels in loader:
            scores = model(images.to(device))
            loss = criterion(scores, labels.to(device)).item()
            rows.append((loss, labels.cpu().numpy(), scores.cpu().numpy().argmax(axis=1)))
    losses, targets, predictions = zip(*rows)
    loss = np.average(losses, weights=[len(t) for t in targets])
    targets, predictions = np.concatenate(targets), np.concatenate(predictions)
    return loss, np.mean(targets == predictions), targets, predictions


# %%
class EarlyStopping:
    """Keeps all values; the number of the best one says how long there was no improvement."""

    def __init__(self, patience, min_delta=0.0):
        self.patience, self.min_delta = patience, min_delta
        self.values, self.best = [], -1
        self.weights = None

    def step(self, value, model):
        self.values.append(np.float64(value))
        value, nothing_yet = self.values[-1], self.best < 0
        if not np.isnan(value) and (nothing_yet or value > self.values[self.best] + self.min_delta):
            self.best = len(self.values) - 1
            self.weights = copy.deepcopy(model.state_dict())
        return len(self.values) - 1 - self.best >= self.patience

    def restore(self, model):
        if self.weights is not None:
            model.load_state_dict(self.weights)


# %%
def epochs_of(stage, model, loaders, optimizer, schedule, length, device, mix):
    """Trains while it is asked for more; yields a row of the history for each epoch."""
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
    for _ in range(length):
        loss, accuracy = train_one_epoch(model, loaders["train"], optimizer, criterion, device, mix)
        val_loss, val_accuracy, *_ = evaluate(model, loaders["validation"], criterion, device)
        if schedule:
            schedule.step()
        yield {"stage": stage, "loss": loss, "accuracy": accuracy, "val_loss": val_loss, "val_accuracy": val_accuracy}


def fit(model, loaders, epochs, device):
    model = model.to(device)
    generator = np.random.default_rng(3)

    freeze_backbone(model)
    optimizer = optim.Adam(filter(lambda p: p.requires_grad, model.parameters()), lr=RATE)
    rows = list(epochs_of(1, model, loaders, optimizer, None, epochs[0], device, None))

    unfreeze(model)
    optimizer = optim.AdamW(model.parameters(), lr=RATE / 10, weight_decay=0.05)
    schedule = optim.lr_scheduler.LambdaLR(optimizer, lambda e: 0.5 + 0.5 * math.cos(math.pi * e / max(epochs[1], 1)))
    stopping = EarlyStopping(PATIENCE)
    mix = lambda images, labels: cutmix(images, labels, 1.0, generator)  # noqa: E731
    for row in epochs_of(2, model, loaders, optimizer, schedule, epochs[1], device, mix):
        rows.append(row)
        if stopping.step(row["val_accuracy"], model):
            break
    stopping.restore(model)
    names = ("stage", "loss", "accuracy", "val_loss", "val_accuracy")
    return {name: [row[name] for row in rows] for name in names}


# %%
def per_class_accuracy(targets, predictions, classes):
    targets, predictions = np.asarray(targets), np.asarray(predictions)
    result = np.zeros(classes)
    for c in range(classes):
        own = targets == c
        if own.any():
            result[c] = (predictions[own] == c).mean()
    return result


# %% [markdown]
# ## Pictures

# %%
def as_it_was(image, mean, std):
    image = np.moveaxis(np.asarray(image.detach().cpu()), 0, -1)
    return np.clip(image * np.asarray(std) + np.asarray(mean), 0, 1)


def show_patches(image, patch_size, mean, std):
    picture = as_it_was(image, mean, std)
    strips = np.split(picture, picture.shape[0] // patch_size, axis=0)
    grid = [np.split(strip, strip.shape[1] // patch_size, axis=1) for strip in strips]
    figure = plt.figure(figsize=(9, 4.5))
    whole, cut = figure.subfigures(1, 2)
    ax = whole.add_subplot()
    ax.imshow(picture)
    ax.axis("off")
    axes = cut.subplots(len(grid), len(grid[0]), squeeze=False)
    for line, row in zip(axes, grid):
        for place, patch in zip(line, row):
            place.imshow(patch)
            place.set_axis_off()
    return figure


# %%
def show_attention(model, image, mean, std):
    head, blocks, norm = parts(model)
    attn = blocks[-1].attn
    caught = []
    hook = attn.qkv.register_forward_hook(lambda module, inputs, output: caught.append(output.detach()))
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    with torch.no_grad():
        model(image.unsqueeze(0).to(next(model.parameters()).device))
    hook.remove()
    for module, mode in modes:
        module.training = mode

    qkv = caught[0][0]
    tokens = qkv.shape[0]
    qkv = qkv.reshape(tokens, 3, attn.num_heads, -1)
    q = qkv[:, 0].transpose(0, 1)
    k = qkv[:, 1].transpose(0, 1)
    weights = torch.softmax(q @ k.transpose(1, 2) / math.sqrt(q.shape[-1]), dim=-1)
    row = weights.mean(dim=0)[0, 1:].cpu()
    side = int(math.sqrt(len(row)))
    plt.figure(figsize=(8, 4))
    plt.subplot(1, 2, 1)
    plt.imshow(as_it_was(image, mean, std))
    plt.title("image")
    plt.axis("off")
    plt.subplot(1, 2, 2)
    plt.imshow(row.reshape(side, side).numpy(), cmap="viridis")
    plt.title("attention of the class token")
    plt.axis("off")
    plt.show()


# %%
def plot_history(history):
    fig, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    epochs = [number + 1 for number in range(len(history["stage"]))]
    for ax, name in zip(axes, ("loss", "accuracy")):
        ax.plot(epochs, history[name], "o-", label="training")
        ax.plot(epochs, history[f"val_{name}"], "s--", label="validation")
        ax.set_xlabel("epoch")
        ax.set_ylabel(name)
        if 2 in history["stage"]:
            start = epochs[history["stage"].index(2)]
            ax.axvline(start, color="red", linestyle=":")
            ax.text(start, ax.get_ylim()[1], "stage 2", color="red", va="top")
        ax.legend()


# %%
def plot_per_class(names, accuracies):
    plt.figure(figsize=(9, 4))
    heights = [0.0 if np.isnan(a) else float(a) for a in accuracies]
    plt.bar(range(len(names)), heights)
    plt.xticks(range(len(names)), names, rotation=45)
    plt.ylim(0, 1)
    plt.xlabel("class")
    plt.ylabel("accuracy")
    plt.tight_layout()
    plt.show()


# %%
def plot_confusion_matrix(matrix, class_names) -> None:
    """A heatmap of the counts."""
    table = pd.DataFrame(np.asarray(matrix, dtype=int), index=list(class_names), columns=list(class_names))
    _, ax = plt.subplots(figsize=(8, 7), layout="constrained")
    sns.heatmap(table, annot=True, fmt="d", cmap="rocket_r", ax=ax)
    ax.set(xlabel="predicted", ylabel="true")


# %% [markdown]
# ## The images

# %%
with zipfile.ZipFile("dataset.zip") as archive:
    archive.extractall("data")

plain_transform = transforms.Compose([transforms.ToTensor(), transforms.Normalize(MEAN, STD)])
train_transform = transforms.Compose(
    [transforms.RandomCrop(32, padding=2), transforms.RandomHorizontalFlip(), plain_transform]
)
augmented_images = datasets.ImageFolder("data/train", transform=train_transform)
plain_images = datasets.ImageFolder("data/train", transform=plain_transform)
test_images = datasets.ImageFolder("data/test", transform=plain_transform)
class_names = test_images.classes

fewest = int(np.bincount(plain_images.targets).min())
training_rows, validation_rows = stratified_split(
    plain_images.targets, (fewest - fewest // 5, fewest // 5), seed=42
)
loaders = {
    "train": DataLoader(Subset(augmented_images, training_rows), batch_size=BATCH_SIZE, shuffle=True),
    "validation": DataLoader(Subset(plain_images, validation_rows), batch_size=256),
}
test_loader = DataLoader(test_images, batch_size=256)

# %% [markdown]
# ## Train it

# %%
EPOCHS = (3, 12)
model = build_model(len(class_names))
history = fit(model, loaders, EPOCHS, device)
torch.save(model.state_dict(), f"{STUDENT_ID}_Finetune.pth")
plot_history(history)

# %% [markdown]
# ## Look at it

# %%
loss, accuracy, targets, predictions = evaluate(model, test_loader, nn.CrossEntropyLoss(), device)
print(f"loss {loss:.4f}, accuracy {accuracy:.4f}")
plot_per_class(class_names, per_class_accuracy(targets, predictions, len(class_names)))
matrix = np.zeros((len(class_names), len(class_names)), dtype=int)
np.add.at(matrix, (np.asarray(targets), np.asarray(predictions)), 1)
plot_confusion_matrix(matrix, class_names)

# %%
images, labels = next(iter(test_loader))
show_patches(images[0], 4, MEAN, STD)
show_attention(model, images[0], MEAN, STD)
