# %% [markdown]
# # Fine-tuning a pretrained Vision Transformer

# %%
import copy
import math
import zipfile

import matplotlib.pyplot as plt
import numpy as np
import torch
import torch.nn.functional as F
from handout import build_model, parts
from torch import Tensor, nn, optim
from torch.utils.data import DataLoader, Subset
from torchvision import datasets, transforms

STUDENT_ID = "400105022"
RATE = 3e-3
PATIENCE = 4
BATCH_SIZE = 64
MEAN, STD = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(42)

# %% [markdown]
# ## The split

# %%
def stratified_split(labels, per_class, seed):
    labels, per_class = np.asarray(labels).astype(int), np.asarray(per_class).astype(int)
    keys = np.random.default_rng(seed).random(len(labels))
    rows = np.lexsort((keys, labels))  # by class, within a class at random
    classes, first, counts = np.unique(labels[rows], return_index=True, return_counts=True)
    if (counts < per_class.sum()).any():
        raise ValueError(f"too few images of the classes {classes[counts < per_class.sum()].tolist()}")
    ends = np.cumsum(per_class)
    return tuple(
        rows[(first[:, None] + np.arange(end - size, end)).ravel()] for size, end in zip(per_class, ends)
    )


# %% [markdown]
# ## Mixed images

# %%
def mixup(images, labels, alpha, generator):
    order = generator.permutation(images.shape[0])
    lam = generator.beta(alpha, alpha) if alpha > 0 else 1.0
    x = images.detach().cpu().numpy()
    mixed = torch.from_numpy(np.asarray(lam * x + (1.0 - lam) * x[order], dtype=x.dtype)).to(images.device)
    return mixed, labels, labels[torch.as_tensor(order, device=labels.device)], lam


# %%
def cutmix(images, labels, alpha, generator):
    order = generator.permutation(images.shape[0])
    lam = generator.beta(alpha, alpha) if alpha > 0 else 1.0
    size = np.array(images.shape[2:])
    sides = np.floor(size * np.sqrt(1 - lam) + 0.5).astype(int)
    corner = np.floor(generator.random(2) * (size + 1)).astype(int) - sides // 2
    (y1, x1), (y2, x2) = np.clip(corner, 0, size), np.clip(corner + sides, 0, size)
    x = np.array(images.detach().cpu().numpy(), copy=True)
    mixed = x.copy()
    mixed[:, :, y1:y2, x1:x2] = x[order, :, y1:y2, x1:x2]
    lam = 1.0 - (y2 - y1) * (x2 - x1) / np.prod(size)
    return torch.from_numpy(mixed).to(images.device), labels, labels[torch.as_tensor(order, device=labels.device)], lam


# %%
def mixed_loss(criterion, logits, labels_a, labels_b, lam):
    return lam * criterion(logits, labels_a) + (1 - lam) * criterion(logits, labels_b)


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
    for block in parts(model)[1]:
        block.train(max((p.requires_grad for p in block.parameters()), default=True))
    model.train()
    found = []
    for images, labels in loader:
        images, labels_a = images.to(device), labels.to(device)
        labels_b, lam = labels_a, 1.0
        if mix is not None:
            images, labels_a, labels_b, lam = mix(images, labels_a)
        scores = model(images)
        loss = criterion(scores, labels_a) if mix is None else mixed_loss(criterion, scores, labels_a, labels_b, lam)
        for group in optimizer.param_groups:
            for p in group["params"]:
                p.grad = None
        loss.backward()
        optimizer.step()
        right = torch.stack([scores.argmax(1) == labels_a, scores.argmax(1) == labels_b]).double().mean(1).tolist()
        found.append((len(labels), loss.item(), np.dot(right, (lam, 1 - lam))))
    sizes, losses, accuracies = np.array(found).T
    return np.average(losses, weights=sizes), np.average(accuracies, weights=sizes)


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
    targets, predictions = np.array(targets, dtype=int), np.array(predictions, dtype=int)
    hits = np.bincount(targets[targets == predictions], minlength=classes)
    images = np.bincount(targets, minlength=classes)
    return np.divide(hits, images, out=np.full(classes, np.nan), where=images > 0)


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
@torch.no_grad()
def show_attention(model, image, mean, std):
    _, (*_, last), _ = parts(model)
    seen = {}
    handle = last.attn.register_forward_pre_hook(lambda module, args: seen.update(tokens=args[0]))
    try:
        model(image[None].to(next(model.parameters()).device))
    finally:
        handle.remove()
    heads = last.attn.num_heads
    query, key, _ = last.attn.qkv(seen["tokens"])[0].chunk(3, dim=-1)
    query, key = query[0].view(heads, -1), key.view(len(key), heads, -1)  # the class token's query alone
    scores = torch.einsum("hd,nhd->hn", query, key) / query.shape[-1] ** 0.5
    row = scores.softmax(-1).mean(0)[1:].cpu().numpy()
    side = math.isqrt(len(row))
    figure, (left, right) = plt.subplots(1, 2, figsize=(8, 4))
    left.imshow(as_it_was(image, mean, std))
    shown = right.imshow(row.reshape(side, side).repeat(image.shape[1] // side, 0).repeat(image.shape[2] // side, 1))
    figure.colorbar(shown, ax=right)
    left.set_title("image")
    right.set_title("class token, last block")
    return figure


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
    figure, ax = plt.subplots(figsize=(6, 5))
    bars = ax.barh(np.arange(len(names)), np.nan_to_num(accuracies), color="tab:green")
    ax.bar_label(bars, ["" if np.isnan(a) else f"{a:.2f}" for a in accuracies])
    ax.set_yticks(np.arange(len(names)), names)
    ax.invert_yaxis()
    ax.set(xlabel="accuracy", ylabel="class", xlim=(0, 1.1))
    return figure


# %%
def plot_confusion_matrix(matrix, class_names):
    matrix = np.asarray(matrix)
    figure, ax = plt.subplots(figsize=(7, 7))
    middles = np.arange(len(class_names)) + 0.5
    ax.pcolormesh(matrix, cmap="Greens", edgecolors="w")
    ax.invert_yaxis()
    for (row, column), count in np.ndenumerate(matrix):
        ax.text(column + 0.5, row + 0.5, f"{count:d}", ha="center", va="center")
    ax.set_xticks(middles, class_names, rotation=90)
    ax.set_yticks(middles, class_names)
    ax.set(xlabel="predicted", ylabel="true")
    return figure


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
