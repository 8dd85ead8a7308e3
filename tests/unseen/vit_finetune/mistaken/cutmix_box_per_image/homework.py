# %% [markdown]
# # Fine-tuning a pretrained Vision Transformer
#
# You are given a small Vision Transformer that others have trained on other classes. You adapt it to ten
# classes with few images: an honest split, mixed images, frozen and unfrozen parts, two stages, early
# stopping. Every part that you write says `TODO`: read its docstring, replace the line
# `raise NotImplementedError(...)` by your code, and run `pytest` in this folder to see how far you are.
#
# Names and arguments of the classes and functions are fixed. All numbers (rates, batch size, transforms,
# patience) are yours, within the bounds that README.md states. Accuracies are between 0 and 1; index arrays,
# targets and predictions may be numpy arrays, lists or tensors, on the CPU.

# %%
import math
import zipfile

import matplotlib.pyplot as plt
import numpy as np
import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from torch import nn, optim
from torch.utils.data import DataLoader, Subset
from torchvision import datasets, transforms

STUDENT_ID = "400105007"
RATE = 3e-3  # of stage 1; stage 2 begins with a tenth of it
PATIENCE = 4  # epochs of stage 2 without a better validation accuracy
BATCH_SIZE = 64
MEAN, STD = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)  # of CIFAR-10's training images, red to blue

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(42)

# %% [markdown]
# ## The model, which is given
#
# The names are those of timm's Vision Transformers, with the class token first. `tiny_vit.safetensors`
# lies beside this file. Leave this section as it is: what is measured is your training of this very model.


# %%
class PatchEmbed(nn.Module):
    """Cuts images into patches, and makes a token of each: (batch, patches, dim), row by row."""

    def __init__(self, patch_size, dim):
        super().__init__()
        self.patch_size = patch_size
        self.proj = nn.Conv2d(3, dim, patch_size, patch_size)

    def forward(self, images):
        return self.proj(images).flatten(2).transpose(1, 2)


class Attention(nn.Module):
    """Self-attention; `qkv` gives queries, keys and values one after the other, head by head in each."""

    def __init__(self, dim, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.qkv = nn.Linear(dim, 3 * dim)
        self.proj = nn.Linear(dim, dim)

    def forward(self, x):
        batch, tokens, dim = x.shape
        q, k, v = self.qkv(x).reshape(batch, tokens, 3, self.num_heads, -1).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v)
        return self.proj(mixed.transpose(1, 2).reshape(batch, tokens, dim))


class Mlp(nn.Module):
    """Two layers, token by token."""

    def __init__(self, dim, hidden):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(dim, hidden), nn.Linear(hidden, dim)

    def forward(self, x):
        return self.fc2(F.gelu(self.fc1(x)))


class Block(nn.Module):
    """A block of the encoder, with its norms before its parts."""

    def __init__(self, dim, num_heads, hidden):
        super().__init__()
        self.norm1, self.attn = nn.LayerNorm(dim), Attention(dim, num_heads)
        self.norm2, self.mlp = nn.LayerNorm(dim), Mlp(dim, hidden)

    def forward(self, x):
        x = x + self.attn(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class VisionTransformer(nn.Module):
    """Maps images (batch, 3, 32, 32) to scores (batch, num_classes)."""

    def __init__(self, num_classes, image_size=32, patch_size=4, dim=96, depth=4, num_heads=4, hidden=192):
        super().__init__()
        self.patch_embed = PatchEmbed(patch_size, dim)
        self.cls_token = nn.Parameter(torch.zeros(1, 1, dim))
        self.pos_embed = nn.Parameter(0.02 * torch.randn(1, (image_size // patch_size) ** 2 + 1, dim))
        self.blocks = nn.Sequential(*[Block(dim, num_heads, hidden) for _ in range(depth)])
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, num_classes)

    def forward(self, images):
        patches = self.patch_embed(images)
        tokens = torch.cat([self.cls_token.expand(len(images), -1, -1), patches], dim=1)
        return self.head(self.norm(self.blocks(tokens + self.pos_embed))[:, 0])


# %%
def build_model(num_classes):
    """The pretrained model, with a new head for `num_classes` classes."""
    model = VisionTransformer(num_classes)
    model.load_state_dict(load_file("tiny_vit.safetensors"), strict=False)  # it has no head
    return model


# %%
def parts(model):
    """(head, blocks, norm) of the given model, and of those of timm and torchvision.

    `blocks` is a list, the first one first; `norm` is the one behind the last block.
    """
    if hasattr(model, "encoder"):  # torchvision's
        return model.heads, list(model.encoder.layers), model.encoder.ln
    return model.head, list(model.blocks), model.norm


# %% [markdown]
# ## The split
#
# scikit-learn's `train_test_split` and its relatives are what you build here.


# %%
def stratified_split(labels, per_class, seed):
    """Splits images into parts with exactly as many images of every class as is asked for."""
    labels = np.asarray(labels)
    rng = np.random.default_rng(seed)
    chosen = [[] for _ in per_class]
    for c in np.unique(labels):
        idx = np.flatnonzero(labels == c)
        if len(idx) < sum(per_class):
            raise ValueError(f"class {c} has only {len(idx)} images, {sum(per_class)} are needed")
        rng.shuffle(idx)
        start = 0
        for k, count in enumerate(per_class):
            chosen[k].append(idx[start : start + count])
            start += count
    return tuple(np.concatenate(c) for c in chosen)


# %% [markdown]
# ## Mixed images
#
# Ready mixup and cutmix helpers (of timm, torchvision and others) are what you build here. `generator` is a
# `numpy.random.Generator`: draw everything from it, in whatever order you like, so that the same state gives
# the same result.


# %%
def mixup(images, labels, alpha, generator):
    """Mixes every image with another one of the batch."""
    n = images.shape[0]
    index = torch.as_tensor(generator.permutation(n), device=images.device)
    if alpha == 0:
        lam = 1.0
    else:
        lam = float(generator.beta(alpha, alpha))
    partner, partner_labels = images[index], labels[index]
    return images.mul(lam).add(partner, alpha=1 - lam), labels, partner_labels, lam


# %%
def cutmix(images, labels, alpha, generator):
    """Puts a rectangle of another image of the batch into every image, at the same place."""
    n, _, H, W = images.shape
    lam = 1.0 if alpha == 0 else float(generator.beta(alpha, alpha))
    perm = torch.from_numpy(generator.permutation(n))
    h, w = int(H * math.sqrt(1 - lam)), int(W * math.sqrt(1 - lam))
    mixed = images.clone()
    kept = []
    for i in range(n):
        cy, cx = int(generator.integers(H)), int(generator.integers(W))
        y1, y2 = max(cy - h // 2, 0), min(cy - h // 2 + h, H)
        x1, x2 = max(cx - w // 2, 0), min(cx - w // 2 + w, W)
        mixed[i, :, y1:y2, x1:x2] = images[perm[i], :, y1:y2, x1:x2]
        kept.append(1 - (y2 - y1) * (x2 - x1) / (H * W))
    lam = float(np.mean(kept))
    return mixed, labels, labels[perm.to(labels.device)], lam


# %%
def mixed_loss(criterion, logits, labels_a, labels_b, lam):
    """The loss of mixed images: that of both labels, weighted by their shares."""
    return lam * criterion(logits, labels_a) + (1 - lam) * criterion(logits, labels_b)


# %% [markdown]
# ## What learns
#
# `parts(model)` gives head, blocks and norm, whichever model it is.


# %%
def freeze_backbone(model):
    """Exactly the head learns afterwards, whatever learned before: all else needs no gradient."""
    model.requires_grad_(False)
    parts(model)[0].requires_grad_(True)


# %%
def unfreeze(model, blocks=None):
    """Exactly the head, the final norm and the last blocks learn afterwards, whatever learned before."""
    if blocks is None:
        for p in model.parameters():
            p.requires_grad = True
    else:
        freeze_backbone(model)
        _, layers, norm = parts(model)
        norm.requires_grad_(True)
        first = len(layers) - blocks
        for i, layer in enumerate(layers):
            layer.requires_grad_(i >= first)


# %% [markdown]
# ## Training and evaluation


# %%
def train_one_epoch(model, loader, optimizer, criterion, device, mix=None):
    """Trains for one pass over the data."""
    model.train()
    for block in parts(model)[1]:
        if not any(p.requires_grad for p in block.parameters()):
            block.eval()

    loss_sum, hits, n = 0.0, 0.0, 0
    for images, labels in loader:
        images, labels = images.to(device), labels.to(device)
        if mix is None:
            logits = model(images)
            loss = criterion(logits, labels)
            batch_hits = (logits.argmax(1) == labels).sum().item()
        else:
            images, a, b, lam = mix(images, labels)
            logits = model(images)
            loss = mixed_loss(criterion, logits, a, b, lam)
            pred = logits.argmax(1)
            batch_hits = lam * (pred == a).sum().item() + (1 - lam) * (pred == b).sum().item()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        loss_sum += loss.item() * len(images)
        hits += batch_hits
        n += len(images)
    return loss_sum / n, hits / n


# %%
def evaluate(model, loader, criterion, device):
    """Asks a model about images that it is not trained on; nothing is mixed here."""
    model.eval()
    loss_sum, targets, predictions = 0.0, [], []
    with torch.no_grad():
        for images, labels in loader:
            images, labels = images.to(device), labels.to(device)
            logits = model(images)
            loss_sum += criterion(logits, labels).item() * len(labels)
            targets.append(labels.cpu())
            predictions.append(logits.argmax(1).cpu())
    targets, predictions = torch.cat(targets), torch.cat(predictions)
    accuracy = (targets == predictions).float().mean().item()
    return loss_sum / len(targets), accuracy, targets, predictions


# %%
class EarlyStopping:
    """Says when validation has not become better for a while, and keeps the best weights.

    Higher values are better: accuracies. A value is an improvement if it is larger than the best so far by
    more than `min_delta`, or the first one that is a number; a tie and NaN are none.

    Args:
        patience: How many steps in a row may be without an improvement; at least 1.
        min_delta: How much more an improvement must be.
    """

    def __init__(self, patience, min_delta=0.0):
        self.patience, self.min_delta = patience, min_delta
        self.best = None
        self.best_weights = None
        self.bad = 0

    def step(self, value, model):
        """Takes a value of validation, and a copy of the model's weights if it is an improvement.

        Returns:
            True at the `patience`-th step in a row without an improvement, else False. (What further steps
            return is free.)
        """
        if not math.isnan(value) and (self.best is None or value > self.best + self.min_delta):
            self.best = value
            self.best_weights = {k: v.detach().clone() for k, v in model.state_dict().items()}
            self.bad = 0
        else:
            self.bad += 1
        return self.bad >= self.patience

    def restore(self, model):
        """Puts the best weights back into the model; does nothing where there are none yet."""
        if self.best_weights is not None:
            model.load_state_dict(self.best_weights)


# %%
MIXUP_ALPHA, CUTMIX_ALPHA = 0.2, 0.3
SMOOTHING = 0.05


def fit(model, loaders, epochs, device):
    """Adapts a pretrained model in two stages."""
    model.to(device)
    criterion = nn.CrossEntropyLoss(label_smoothing=SMOOTHING)
    generator = np.random.default_rng(0)

    def mix(images, labels):
        if generator.random() < 0.5:
            return mixup(images, labels, MIXUP_ALPHA, generator)
        return cutmix(images, labels, CUTMIX_ALPHA, generator)

    history = {"train_loss": [], "train_accuracy": [], "val_loss": [], "val_accuracy": [], "stage": []}

    def epoch(stage, optimizer, mix):
        loss, accuracy = train_one_epoch(model, loaders["train"], optimizer, criterion, device, mix)
        val_loss, val_accuracy, _, _ = evaluate(model, loaders["validation"], criterion, device)
        history["train_loss"].append(loss)
        history["train_accuracy"].append(accuracy)
        history["val_loss"].append(val_loss)
        history["val_accuracy"].append(val_accuracy)
        history["stage"].append(stage)
        return val_accuracy

    # stage 1
    freeze_backbone(model)
    optimizer = optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=RATE, weight_decay=0.01)
    for _ in range(epochs[0]):
        epoch(1, optimizer, None)

    # stage 2
    unfreeze(model)
    optimizer = optim.AdamW(model.parameters(), lr=RATE / 10, weight_decay=0.01)
    scheduler = optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=max(epochs[1], 1))
    stopping = EarlyStopping(PATIENCE)
    for _ in range(epochs[1]):
        accuracy = epoch(2, optimizer, mix)
        scheduler.step()
        if stopping.step(accuracy, model):
            break
    stopping.restore(model)
    return history


# %%
def per_class_accuracy(targets, predictions, classes):
    """The accuracy within each class."""
    t, p = np.asarray(targets), np.asarray(predictions)
    images = np.bincount(t, minlength=classes)
    hits = np.bincount(t[t == p], minlength=classes)
    return np.where(images > 0, hits / np.maximum(images, 1), np.nan)


# %% [markdown]
# ## Pictures


# %%
def to_picture(image, mean, std):
    """a normalized image as (height, width, channels) between 0 and 1"""
    mean = torch.tensor(mean).view(-1, 1, 1)
    std = torch.tensor(std).view(-1, 1, 1)
    return (image.detach().cpu() * std + mean).clamp(0, 1).permute(1, 2, 0).numpy()


def show_patches(image, patch_size, mean, std):
    """Draws an image as it was, and its patches, each in a place of its own, as they lie in the image."""
    picture = to_picture(image, mean, std)
    rows, columns = picture.shape[0] // patch_size, picture.shape[1] // patch_size
    plt.figure(figsize=(4, 4))
    plt.imshow(picture)
    plt.title("image")
    plt.axis("off")
    fig, axes = plt.subplots(rows, columns, figsize=(5, 5), squeeze=False)
    for r in range(rows):
        for c in range(columns):
            y, x = r * patch_size, c * patch_size
            axes[r, c].imshow(picture[y : y + patch_size, x : x + patch_size], vmin=0, vmax=1)
            axes[r, c].axis("off")
    fig.suptitle("patches")
    plt.show()


# %%
def show_attention(model, image, mean, std):
    """Draws an image as it was, and beside it where the class token of the last block attends to."""
    seen = {}
    attention = model.blocks[-1].attn
    hook = attention.qkv.register_forward_hook(lambda module, args, output: seen.update(qkv=output.detach()))
    try:
        with torch.no_grad():
            model(image.unsqueeze(0).to(next(model.parameters()).device))
    finally:
        hook.remove()
    _, tokens, width = seen["qkv"].shape
    heads = attention.num_heads
    q, k, _ = seen["qkv"].reshape(tokens, 3, heads, -1).permute(1, 2, 0, 3)
    weights = (q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])).softmax(dim=-1)
    patch = model.patch_embed.proj.kernel_size[0]
    rows, columns = image.shape[1] // patch, image.shape[2] // patch
    attention_map = weights.mean(0)[0, 1:].reshape(rows, columns).cpu().numpy()

    fig, (left, right) = plt.subplots(1, 2, figsize=(8, 4))
    left.imshow(to_picture(image, mean, std))
    left.set_title("image")
    drawn = right.imshow(attention_map)
    right.set_title("attention of the class token")
    fig.colorbar(drawn, ax=right)
    for ax in (left, right):
        ax.axis("off")
    plt.show()


# %%
def plot_history(history):
    """Draws loss and accuracy of training and validation over the epochs, both stages in one, with a mark"""
    fig, axes = plt.subplots(1, 2, figsize=(11, 4))
    for ax, what in zip(axes, ("loss", "accuracy")):
        for part in ("train", "val"):
            values = history[f"{part}_{what}"]
            ax.plot(range(1, len(values) + 1), values, marker=".", label="training" if part == "train" else "validation")
        ax.axvline(history["stage"].count(1) + 0.5, color="gray", linestyle="--", label="stage 2 begins")
        ax.set_xlabel("epoch")
        ax.set_ylabel("loss" if what == "loss" else "accuracy")
        ax.legend()
    fig.tight_layout()
    plt.show()


# %%
def plot_per_class(names, accuracies):
    """Draws a bar for each class, as long as its accuracy, with the class's name; axes say what they are."""
    plt.figure(figsize=(8, 4))
    plt.bar(list(names), np.asarray(accuracies))
    plt.ylim(0, 1)
    plt.xlabel("class")
    plt.ylabel("accuracy")
    plt.xticks(rotation=45, ha="right")
    plt.tight_layout()
    plt.show()


# %%
def plot_confusion_matrix(matrix, class_names):
    """Draws a confusion matrix with its counts, the true classes as rows, the names on both axes."""
    matrix = np.asarray(matrix)
    fig, ax = plt.subplots(figsize=(7, 7))
    ax.imshow(matrix, cmap="Blues")
    ax.set_xticks(range(len(class_names)), class_names, rotation=90)
    ax.set_yticks(range(len(class_names)), class_names)
    ax.set_xlabel("predicted class")
    ax.set_ylabel("true class")
    for i in range(len(matrix)):
        for j in range(len(matrix)):
            ax.text(j, i, int(matrix[i, j]), ha="center", va="center",
                    color="white" if matrix[i, j] > matrix.max() / 2 else "black")
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
train_transform = plain_transform  # to tune: crops and flips
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
