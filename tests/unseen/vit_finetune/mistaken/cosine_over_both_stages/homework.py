# %% [markdown]
# # Fine-tuning a pretrained Vision Transformer

# %%
import math
import zipfile
from itertools import chain
from itertools import islice

import matplotlib.pyplot as plt
import numpy as np
import torch
import torch.nn.functional as F
from handout import build_model, parts
from torch import Tensor, nn, optim
from torch.utils.data import DataLoader, Subset
from torchvision import datasets, transforms

STUDENT_ID = "400105004"
RATE = 2e-3
PATIENCE = 5
BATCH_SIZE = 64
MEAN, STD = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(42)

# %% [markdown]
# ## The split

# %%
def stratified_split(labels, per_class, seed):
    labels = np.asarray(labels)
    rng = np.random.default_rng(seed)
    parts = [[] for _ in per_class]
    for label in np.unique(labels):
        own = np.flatnonzero(labels == label)
        if own.size < sum(per_class):
            raise ValueError(f"class {label} has {own.size} images, {sum(per_class)} are needed")
        shuffled = iter(rng.permutation(own))
        for part, size in zip(parts, per_class):
            part.extend(islice(shuffled, int(size)))  # goes on where the last part ended
    return tuple(np.array(part, dtype=int) for part in parts)


# %% [markdown]
# ## Mixed images

# %%
def mixup(images, labels, alpha, generator):
    lam = float(generator.beta(alpha, alpha)) if alpha > 0 else 1.0
    order = generator.permutation(len(labels)).tolist()
    mixed = torch.stack([lam * image + (1 - lam) * images[j] for image, j in zip(images, order)])
    return mixed, labels, torch.stack([labels[j] for j in order]), lam


# %%
def cutmix(images, labels, alpha, generator):
    lam = float(generator.beta(alpha, alpha)) if alpha > 0 else 1.0
    order = generator.permutation(len(labels)).tolist()
    height, width = images.shape[-2:]
    box_height, box_width = (int(round(side * (1 - lam) ** 0.5)) for side in (height, width))
    y, x = int(generator.integers(height - box_height + 1)), int(generator.integers(width - box_width + 1))
    mixed = images.clone()
    for i, j in enumerate(order):
        mixed[i, :, y : y + box_height, x : x + box_width] = images[j, :, y : y + box_height, x : x + box_width]
    own = height * width - box_height * box_width
    return mixed, labels, torch.stack([labels[j] for j in order]), own / (height * width)


# %%
def mixed_loss(criterion, logits, labels_a, labels_b, lam):
    return sum(share * criterion(logits, labels) for share, labels in ((lam, labels_a), (1 - lam, labels_b)))


# %% [markdown]
# ## What learns

# %%
def only(model, *modules):
    """Exactly the parameters of these modules learn afterwards."""
    learning = {id(p) for p in chain.from_iterable(module.parameters() for module in modules)}
    for p in model.parameters():
        p.requires_grad_(id(p) in learning)


def freeze_backbone(model):
    only(model, parts(model)[0])


# %%
def unfreeze(model, blocks=None):
    head, layers, norm = parts(model)
    if blocks is None:
        only(model, model)
    else:
        only(model, head, norm, *layers[len(layers) - blocks :])


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
        logits, labels = model(images.to(device)), labels.to(device)
        yield criterion(logits, labels).item() * len(labels), labels.cpu(), logits.argmax(1).cpu()


@torch.inference_mode()
def evaluate(model, loader, criterion, device):
    losses, targets, predictions = zip(*answers(model.eval(), loader, criterion, device))
    targets, predictions = torch.cat(targets), torch.cat(predictions)
    return sum(losses) / len(targets), (targets == predictions).double().mean().item(), targets, predictions


# %%
def watcher(patience, min_delta, keep):
    """A coroutine: is sent values, yields whether to stop, and calls `keep` at each improvement."""
    best, waited, stop = None, 0, None
    while True:
        value, model = yield stop
        if value == value and (best is None or value - best > min_delta):
            best, waited = value, 0
            keep(model)
        else:
            waited += 1
        stop = waited >= patience


class EarlyStopping:
    def __init__(self, patience, min_delta=0.0):
        self.kept = None
        self.watch = watcher(patience, min_delta, self.keep)
        next(self.watch)

    def keep(self, model):
        self.kept = [w.detach().clone() for w in model.state_dict().values()]

    def step(self, value, model):
        return self.watch.send((float(value), model))

    def restore(self, model):
        if self.kept is not None:
            with torch.no_grad():
                for w, best in zip(model.state_dict().values(), self.kept):
                    w.copy_(best)


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
    schedule = optim.lr_scheduler.LambdaLR(optimizer, lambda e: 0.5 + 0.5 * math.cos(math.pi * e / max(sum(epochs), 1)))
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
    pairs = [(int(t), int(p)) for t, p in zip(targets, predictions)]
    hits = [[t == p for t, p in pairs if t == c] for c in range(classes)]
    return np.array([sum(own) / len(own) if own else math.nan for own in hits])


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
