# %% [markdown]
# # Assignment 3: fine-tuning a pretrained Vision Transformer

# %%
import copy
import math
import zipfile
from contextlib import contextmanager
from dataclasses import dataclass

import matplotlib.pyplot as plt
import numpy as np
import torch
from handout import build_model, parts
from torch import nn, optim
from torch.utils.data import DataLoader, Subset
from torchvision import datasets, transforms

STUDENT_ID = "400105001"
RATE = 5e-3  # stage 1
PATIENCE = 4
BATCH_SIZE = 64
MEAN, STD = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(42)


# %% [markdown]
# ## Split


# %%
def stratified_split(labels, per_class, seed):
    """Cuts the shuffled images of every class into parts of exactly per_class[k] images."""
    rows_of = {}
    for row, label in enumerate(np.asarray(labels).tolist()):
        rows_of.setdefault(label, []).append(row)
    generator = np.random.default_rng(seed)
    result = [[] for _ in per_class]
    for label in sorted(rows_of):
        rows = rows_of[label]
        if sum(per_class) > len(rows):
            raise ValueError(f"class {label}: {len(rows)} images are too few for {tuple(per_class)}")
        generator.shuffle(rows)
        for part, count in zip(result, per_class):
            part.extend(rows[:count])
            rows = rows[count:]
    return tuple(np.array(part, dtype=np.int64) for part in result)


# %% [markdown]
# ## Mixing


# %%
@dataclass
class Rectangle:
    top: int
    bottom: int
    left: int
    right: int

    @classmethod
    def draw(cls, height, width, share, generator):
        """A rectangle of about `share` of the area around a random center, clipped at the border."""
        half_height = 0.5 * height * math.sqrt(share)
        half_width = 0.5 * width * math.sqrt(share)
        y, x = generator.uniform(0, height), generator.uniform(0, width)
        return cls(
            int(np.clip(round(y - half_height), 0, height)),
            int(np.clip(round(y + half_height), 0, height)),
            int(np.clip(round(x - half_width), 0, width)),
            int(np.clip(round(x + half_width), 0, width)),
        )

    @property
    def area(self):
        return (self.bottom - self.top) * (self.right - self.left)

    @property
    def window(self):
        return (..., slice(self.top, self.bottom), slice(self.left, self.right))


def draw_share(alpha, generator):
    return float(generator.beta(alpha, alpha)) if alpha > 0 else 1.0


def draw_partners(count, generator, where):
    return torch.as_tensor(generator.permutation(count), device=where)


def mixup(images, labels, alpha, generator):
    """lam of each image and 1 - lam of its partner."""
    lam = draw_share(alpha, generator)
    partners = draw_partners(len(images), generator, images.device)
    mixed = images * lam + images[partners] * (1 - lam)
    return mixed, labels, labels[partners], lam


def cutmix(images, labels, alpha, generator):
    """A rectangle of each image is replaced by the partner's; lam is the share of pixels that is kept."""
    lam = draw_share(alpha, generator)
    partners = draw_partners(len(images), generator, images.device)
    height, width = images.shape[-2:]
    rectangle = Rectangle.draw(height, width, 1 - lam, generator)
    mixed = images.clone()
    mixed[rectangle.window] = images[partners][rectangle.window]
    lam = 1 - rectangle.area / (height * width)
    return mixed, labels, labels[partners], lam


def mixed_loss(criterion, logits, labels_a, labels_b, lam):
    """Both labels, by their shares."""
    first, second = criterion(logits, labels_a), criterion(logits, labels_b)
    return first * lam + second * (1.0 - lam)


class Mixer:
    """mixup or cutmix, drawn for each batch."""

    def __init__(self, seed, mixup_alpha=0.3, cutmix_alpha=1.0):
        self.generator = np.random.default_rng(seed)
        self.mixup_alpha, self.cutmix_alpha = mixup_alpha, cutmix_alpha

    def __call__(self, images, labels):
        if self.generator.random() < 0.6:
            return mixup(images, labels, self.mixup_alpha, self.generator)
        return cutmix(images, labels, self.cutmix_alpha, self.generator)


# %% [markdown]
# ## Freezing


# %%
def set_learning(module, learns):
    for parameter in module.parameters():
        parameter.requires_grad_(learns)


def freeze_backbone(model):
    """Only the head learns."""
    head, _, _ = parts(model)
    set_learning(model, False)
    set_learning(head, True)


def unfreeze(model, blocks=None):
    """Head, norm and the last `blocks` blocks learn; None: everything."""
    if blocks is None:
        set_learning(model, True)
        return
    head, all_blocks, norm = parts(model)
    set_learning(model, False)
    set_learning(head, True)
    set_learning(norm, True)
    for number, block in enumerate(all_blocks):
        if number >= len(all_blocks) - blocks:
            set_learning(block, True)


# %% [markdown]
# ## Training


# %%
class Mean:
    """Means over images of numbers that are given per batch."""

    def __init__(self):
        self.loss = self.hits = self.images = 0

    def add(self, mean_loss, hits, images):
        self.loss += mean_loss * images
        self.hits += hits
        self.images += images

    def result(self):
        return self.loss / self.images, self.hits / self.images


def set_modes(model):
    model.train()
    _, blocks, _ = parts(model)
    for block in blocks:
        if all(not parameter.requires_grad for parameter in block.parameters()):
            block.eval()


def train_one_epoch(model, loader, optimizer, criterion, device, mix=None):
    """One pass; the means over images of loss and accuracy."""
    set_modes(model)
    mean = Mean()
    for images, labels in loader:
        images, labels = images.to(device), labels.to(device)
        labels_a, labels_b, lam = labels, labels, 1.0
        if mix is not None:
            images, labels_a, labels_b, lam = mix(images, labels)
        optimizer.zero_grad(set_to_none=True)
        logits = model(images)
        if mix is None:
            loss = criterion(logits, labels)
        else:
            loss = mixed_loss(criterion, logits, labels_a, labels_b, lam)
        loss.backward()
        optimizer.step()
        predicted = logits.detach().argmax(dim=-1)
        hits = lam * (predicted == labels_a).sum().item() + (1 - lam) * (predicted == labels_b).sum().item()
        mean.add(loss.item(), hits, len(labels))
    return mean.result()


def evaluate(model, loader, criterion, device):
    """Loss, accuracy, targets and predictions of all images."""
    model.eval()
    mean, targets, predictions = Mean(), [], []
    with torch.inference_mode():
        for images, labels in loader:
            images, labels = images.to(device), labels.to(device)
            logits = model(images)
            predicted = logits.argmax(dim=-1)
            mean.add(criterion(logits, labels).item(), (predicted == labels).sum().item(), len(labels))
            targets.append(labels.cpu().numpy())
            predictions.append(predicted.cpu().numpy())
    return (*mean.result(), np.concatenate(targets), np.concatenate(predictions))


# %%
class EarlyStopping:
    """Counts steps without an improvement, and keeps a copy of the best weights."""

    def __init__(self, patience, min_delta=0.0):
        self.patience = patience
        self.min_delta = min_delta
        self.best_value = None
        self.best_weights = None
        self.without = 0

    def is_better(self, value):
        if math.isnan(value):
            return False
        return self.best_value is None or value - self.best_value > self.min_delta

    def step(self, value, model):
        if self.is_better(value):
            self.best_value = value
            self.best_weights = copy.deepcopy(model.state_dict())
            self.without = 0
        else:
            self.without += 1
        return self.without >= self.patience

    def restore(self, model):
        if self.best_weights is None:
            return
        model.load_state_dict(self.best_weights)


# %%
class History:
    """Collects what plot_history draws."""

    names = ("training loss", "training accuracy", "validation loss", "validation accuracy", "stage")

    def __init__(self):
        self.lists = {name: [] for name in self.names}

    def add(self, *values):
        for name, value in zip(self.names, values):
            self.lists[name].append(value)


class Stage:
    """Epochs with one optimizer for whatever learns when the stage is made."""

    def __init__(self, number, model, loaders, rate, history, device):
        self.number, self.model, self.loaders = number, model, loaders
        self.history, self.device = history, device
        learning = [parameter for parameter in model.parameters() if parameter.requires_grad]
        self.optimizer = optim.AdamW(learning, lr=rate, weight_decay=0.02)
        self.criterion = nn.CrossEntropyLoss(label_smoothing=0.05)

    def epoch(self, mix):
        training = train_one_epoch(
            self.model, self.loaders["train"], self.optimizer, self.criterion, self.device, mix
        )
        loss, accuracy, _, _ = evaluate(
            self.model, self.loaders["validation"], nn.CrossEntropyLoss(), self.device
        )
        self.history.add(*training, loss, accuracy, self.number)
        return accuracy


def fit(model, loaders, epochs, device):
    """Stage 1: the head. Stage 2: everything, a tenth of the rate, cosine, early stopping."""
    model.to(device)
    history, mixer = History(), Mixer(seed=5)

    freeze_backbone(model)
    first = Stage(1, model, loaders, RATE, history, device)
    for _ in range(epochs[0]):
        first.epoch(mixer)

    unfreeze(model)
    second = Stage(2, model, loaders, 0.1 * RATE, history, device)
    cosine = optim.lr_scheduler.CosineAnnealingLR(second.optimizer, T_max=max(1, epochs[1]))
    stopping = EarlyStopping(PATIENCE)
    for _ in range(epochs[1]):
        accuracy = second.epoch(mixer)
        cosine.step()
        if stopping.step(accuracy, model):
            break
    stopping.restore(model)
    return history.lists


# %%
def per_class_accuracy(targets, predictions, classes):
    """Hits by images, class by class; NaN where there are no images."""
    targets = np.asarray(targets, dtype=int)
    predictions = np.asarray(predictions, dtype=int)
    images = np.bincount(targets, minlength=classes)
    hits = np.bincount(targets[targets == predictions], minlength=classes)
    accuracies = np.full(classes, np.nan)
    np.divide(hits, images, out=accuracies, where=images > 0)
    return accuracies


# %% [markdown]
# ## Pictures


# %%
def undo_normalization(image, mean, std):
    """(channels, height, width), normalized -> (height, width, channels) between 0 and 1."""
    mean, std = torch.tensor(mean)[:, None, None], torch.tensor(std)[:, None, None]
    return (image.detach().cpu() * std + mean).clamp(0, 1).permute(1, 2, 0).numpy()


def show_patches(image, patch_size, mean, std):
    """The image, and a grid of its patches."""
    original = undo_normalization(image, mean, std)
    height, width, _ = original.shape
    rows, columns = height // patch_size, width // patch_size
    fig = plt.figure(figsize=(3 + 0.5 * columns, 0.6 * rows))
    left, right = fig.subfigures(1, 2)
    ax = left.subplots()
    ax.imshow(original)
    ax.set_title("image")
    ax.axis("off")
    grid = right.subplots(rows, columns, squeeze=False)
    for row in range(rows):
        for column in range(columns):
            patch = original[
                row * patch_size : (row + 1) * patch_size, column * patch_size : (column + 1) * patch_size
            ]
            grid[row, column].imshow(patch)
            grid[row, column].axis("off")
    plt.show()


@contextmanager
def watching(module, outputs):
    handle = module.register_forward_hook(lambda _module, _inputs, output: outputs.append(output))
    try:
        yield
    finally:
        handle.remove()


def show_attention(model, image, mean, std):
    """The image, and the last block's attention of the class token, mean over the heads."""
    _, blocks, _ = parts(model)
    attention, outputs = blocks[-1].attn, []
    where = next(model.parameters()).device
    with watching(attention.qkv, outputs), torch.no_grad():
        model(image.to(where).unsqueeze(0))
    _, tokens, three_dims = outputs[0].shape
    head_dim = three_dims // 3 // attention.num_heads
    qkv = outputs[0].reshape(tokens, 3, attention.num_heads, head_dim)
    queries, keys = qkv[:, 0].transpose(0, 1), qkv[:, 1].transpose(0, 1)  # (heads, tokens, head_dim)
    scores = torch.einsum("hqd,hkd->hqk", queries, keys) / math.sqrt(head_dim)
    weights = scores.softmax(dim=-1)
    patch = model.patch_embed.patch_size
    patch_height, patch_width = (patch, patch) if isinstance(patch, int) else patch
    rows, columns = image.shape[-2] // patch_height, image.shape[-1] // patch_width
    class_row = weights[:, 0, 1:].mean(dim=0).reshape(rows, columns)

    fig, axes = plt.subplots(1, 2, figsize=(8, 4))
    axes[0].imshow(undo_normalization(image, mean, std))
    axes[0].set_title("image")
    axes[0].axis("off")
    shown = axes[1].imshow(class_row.cpu().numpy(), cmap="magma")
    axes[1].set_title("class token, last block")
    axes[1].axis("off")
    fig.colorbar(shown, ax=axes[1])
    plt.show()


def plot_history(history):
    """Loss and accuracy of both stages, with a line where stage 2 begins."""
    stages = np.array(history["stage"])
    fig, axes = plt.subplots(2, 1, figsize=(7, 8), sharex=True)
    for ax, what in zip(axes, ("loss", "accuracy")):
        for images in ("training", "validation"):
            values = np.array(history[f"{images} {what}"])
            for stage in (1, 2):
                of_stage = values[stages == stage]
                ax.plot(np.arange(1, len(of_stage) + 1), of_stage, label=f"{images}, stage {stage}")
        ax.axvline((stages == 1).sum() + 0.5, color="red", linestyle="--", label="stage 2 begins")
        ax.set_xlabel("epoch")
        ax.set_ylabel(what)
        ax.grid(True)
        ax.legend()
    plt.show()


def plot_per_class(names, accuracies):
    """A bar for each class."""
    accuracies = np.asarray(accuracies, dtype=float)
    places = np.arange(len(names))
    known = ~np.isnan(accuracies)
    fig, ax = plt.subplots(figsize=(9, 4))
    ax.bar(places[known], accuracies[known], color="tab:green")
    ax.set_xticks(places, names, rotation=60)
    ax.set_xlim(-0.6, len(names) - 0.4)
    ax.set_ylim(0, 1)
    ax.set_xlabel("class")
    ax.set_ylabel("accuracy")
    fig.tight_layout()
    plt.show()


def plot_confusion_matrix(matrix, class_names):
    """True classes are rows, predicted classes columns."""
    matrix = np.asarray(matrix)
    fig, ax = plt.subplots(figsize=(8, 8))
    ax.matshow(matrix, cmap="Purples")
    for true, row in enumerate(matrix):
        for predicted, count in enumerate(row):
            ax.text(predicted, true, int(count), ha="center", va="center")
    ax.xaxis.tick_bottom()
    ax.set_xticks(range(len(class_names)), class_names, rotation=60)
    ax.set_yticks(range(len(class_names)), class_names)
    ax.set_xlabel("predicted class")
    ax.set_ylabel("true class")
    fig.tight_layout()
    plt.show()


# %% [markdown]
# ## The images
#
# `dataset.zip` must lie beside this file. It holds `train/<class>/` and `test/<class>/`. A fifth of the
# training images is kept apart: choose whatever you choose by these *validation* images, and look at the test
# images once, at the end. Validation and test images are never augmented.

# %%
with zipfile.ZipFile("dataset.zip") as archive:
    archive.extractall("data")

plain_transform = transforms.Compose([transforms.ToTensor(), transforms.Normalize(MEAN, STD)])
train_transform = transforms.Compose(
    [
        transforms.RandomHorizontalFlip(),
        transforms.RandomCrop(32, padding=2, padding_mode="reflect"),
        plain_transform,
    ]
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
