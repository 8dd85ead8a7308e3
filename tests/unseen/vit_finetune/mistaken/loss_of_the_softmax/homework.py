# %% [markdown]
# # Fine-tuning a pretrained Vision Transformer

# %%
import math
import zipfile
from collections import deque

import matplotlib.pyplot as plt
import numpy as np
import torch
import torch.nn.functional as F
from handout import build_model, parts
from torch import Tensor, nn, optim
from torch.utils.data import DataLoader, Subset
from torchvision import datasets, transforms

STUDENT_ID = "400105016"
RATE = 2.5e-3
PATIENCE = 4
BATCH_SIZE = 64
MEAN, STD = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(42)

# %% [markdown]
# ## The split

# %%
def stratified_split(labels, per_class, seed):
    """Every image gets a random rank within its class; the rank says which part it belongs to."""
    labels = torch.as_tensor(np.asarray(labels)).long()
    needed = int(sum(per_class))
    counts = labels.bincount()
    if ((counts > 0) & (counts < needed)).any():
        raise ValueError(f"each class needs {needed} images, but there are {counts.tolist()}")
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(seed))
    shuffled = labels[order]
    one_hot = F.one_hot(shuffled)
    rank = torch.empty_like(labels)
    rank[order] = one_hot.cumsum(0).gather(1, shuffled[:, None]).squeeze(1) - 1
    bounds = [0, *np.cumsum(per_class).tolist()]
    return tuple(torch.nonzero((rank >= low) & (rank < high)).flatten() for low, high in zip(bounds, bounds[1:]))


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
    a, b = (criterion(logits, labels) for labels in (labels_a, labels_b))
    return b + (a - b) * lam


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
def set_modes(model):
    """Training mode, but for blocks that are frozen as a whole."""
    model.train()
    frozen = (block for block in parts(model)[1] if not any(p.requires_grad for p in block.parameters()))
    for block in frozen:
        block.eval()


def training_steps(model, loader, optimizer, criterion, device, mix):
    """Trains while it is asked for more; yields (images, loss times images, hits)."""
    for images, labels in loader:
        images, labels = images.to(device), labels.to(device)
        images, *both, lam = mix(images, labels) if mix else (images, labels, labels, 1.0)
        logits = model(images)
        loss = mixed_loss(criterion, logits, *both, lam)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        guesses = logits.argmax(1)
        hits_a, hits_b = ((guesses == side).sum().item() for side in both)
        yield len(labels), loss.item() * len(labels), lam * hits_a + (1 - lam) * hits_b


def train_one_epoch(model, loader, optimizer, criterion, device, mix=None):
    set_modes(model)
    n, losses, hits = zip(*training_steps(model, loader, optimizer, criterion, device, mix))
    return sum(losses) / sum(n), sum(hits) / sum(n)


# %%
def answers(model, loader, criterion, device):
    for images, labels in loader:
        logits, labels = model(images.to(device)).softmax(1), labels.to(device)
        yield criterion(logits, labels).item() * len(labels), labels.cpu(), logits.argmax(1).cpu()


@torch.inference_mode()
def evaluate(model, loader, criterion, device):
    losses, targets, predictions = zip(*answers(model.eval(), loader, criterion, device))
    targets, predictions = torch.cat(targets), torch.cat(predictions)
    return sum(losses) / len(targets), (targets == predictions).double().mean().item(), targets, predictions


# %%
class EarlyStopping:
    """Remembers of the last `patience` steps whether they were improvements."""

    def __init__(self, patience, min_delta=0.0):
        self.recent = deque(maxlen=patience)
        self.min_delta, self.best, self.weights = min_delta, -math.inf, {}

    def step(self, value, model):
        value = float(value)
        first = not self.weights and value == value
        better = first or value > self.best + self.min_delta
        self.recent.append(better)
        if better:
            self.best = value
            self.weights = {name: w.detach().clone() for name, w in model.state_dict().items()}
        return len(self.recent) == self.recent.maxlen and not any(self.recent)

    def restore(self, model):
        if self.weights:
            model.load_state_dict(self.weights)


# %%
def fit(model, loaders, epochs, device):
    model.to(device)
    criterion, generator, history = nn.CrossEntropyLoss(label_smoothing=0.05), np.random.default_rng(7), []

    def learning():
        return [p for p in model.parameters() if p.requires_grad]

    def stage(number, length, rate_at, mix, stopping):
        optimizer = optim.AdamW(learning(), lr=rate_at(0), weight_decay=0.02)
        for epoch in range(length):
            optimizer.param_groups[0]["lr"] = rate_at(epoch)
            trained = train_one_epoch(model, loaders["train"], optimizer, criterion, device, mix)
            validated = evaluate(model, loaders["validation"], criterion, device)[:2]
            history.append({"stage": number, "training": trained, "validation": validated})
            if stopping is not None and stopping.step(validated[1], model):
                break
        if stopping is not None:
            stopping.restore(model)

    freeze_backbone(model)
    stage(1, epochs[0], lambda epoch: RATE, None, None)
    unfreeze(model)
    stage(
        2,
        epochs[1],
        lambda epoch: RATE / 10 * (1 + math.cos(math.pi * epoch / max(epochs[1], 1))) / 2,
        lambda images, labels: mixup(images, labels, 0.3, generator),
        EarlyStopping(PATIENCE),
    )
    losses, accuracies = ({name: [row[name][i] for row in history] for name in ("training", "validation")} for i in (0, 1))
    return {
        "training_loss": losses["training"],
        "training_accuracy": accuracies["training"],
        "validation_loss": losses["validation"],
        "validation_accuracy": accuracies["validation"],
        "stage": [row["stage"] for row in history],
    }


# %%
def per_class_accuracy(targets, predictions, classes):
    targets, predictions = (torch.as_tensor(np.asarray(v)).long() for v in (targets, predictions))
    sums = torch.zeros(2, classes, dtype=torch.float64)
    sums[0].index_add_(0, targets, (targets == predictions).double())
    sums[1].index_add_(0, targets, torch.ones(len(targets), dtype=torch.float64))
    return (sums[0] / sums[1]).numpy()


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
    figure, axes = plt.subplots(2, 1, figsize=(7, 7), sharex=True)
    epochs = np.arange(1, len(history["stage"]) + 1)
    begins = next((e for e, stage in zip(epochs, history["stage"]) if stage == 2), None)
    for ax, name in zip(axes, ("loss", "accuracy")):
        for part in ("training", "validation"):
            ax.plot(epochs, history[f"{part}_{name}"], marker="o", label=part)
        if begins is not None:
            ax.axvspan(begins - 0.5, epochs[-1] + 0.5, alpha=0.15, label="stage 2")
            ax.axvline(begins - 0.5, color="black")
        ax.set(xlabel="epoch", ylabel=name)
        ax.legend()
    return figure


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
