# %% [markdown]
# # A Vision Transformer for CIFAR-10, opened up and compared with a ResNet
#
# You build a Vision Transformer (ViT) and a small ResNet from scratch, train both by the same function,
# measure them as a paper would, and look at what the ViT attends to.
#
# Names and arguments of the classes and functions are fixed. All numbers (sizes, optimizer, batch size,
# transforms, epochs) are yours, within the bounds that README.md states. What functions return is on the CPU.

# %%
import copy
import csv
import math
import time
import zipfile

import matplotlib.pyplot as plt
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn, optim
from torch.utils.data import DataLoader, Subset
from torchvision import datasets, transforms

STUDENT_ID = "400103001"

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(42)

# %% [markdown]
# ## The images
#
# `dataset.zip` must lie beside this file. It holds `train/<class>/` and `test/<class>/`. One in ten training
# images is kept apart: choose whatever you choose (epochs, sizes, the best weights) by these *validation*
# images, and look at the test images once, at the end. Validation images are never augmented.

# %%
MEAN, STD = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)  # of CIFAR-10's training images, red to blue
BATCH_SIZE = 64

with zipfile.ZipFile("dataset.zip") as archive:
    archive.extractall("data")

plain_transform = transforms.Compose([transforms.ToTensor(), transforms.Normalize(MEAN, STD)])
train_transform = transforms.Compose([
    transforms.RandomCrop(32, padding=4),
    transforms.RandomHorizontalFlip(),
    transforms.ToTensor(),
    transforms.Normalize(MEAN, STD),
])
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
# ## The Vision Transformer
#
# `nn.Linear`, `nn.LayerNorm`, `nn.Dropout`, `nn.Conv2d` and einops are fine; `nn.MultiheadAttention`,
# `nn.Transformer*` and ready-made models are not.


# %%
class PatchEmbedding(nn.Module):
    """Cuts images into patches that do not overlap, and makes a token of each by one linear map.

    Args:
        image_size: Height and width of the image, in pixels.
        patch_size: Height and width of a patch, which divides `image_size`.
        in_channels: How many channels the image has.
        dim: The width of a token.

    forward:
        images: (batch, in_channels, image_size, image_size).
        Returns tokens, (batch, patches, dim), row by row from the upper left.
    """

    def __init__(self, image_size, patch_size, in_channels, dim):
        super().__init__()
        self.proj = nn.Conv2d(in_channels, dim, kernel_size=patch_size, stride=patch_size)

    def forward(self, images):
        x = self.proj(images)  # (batch, dim, rows, columns)
        return x.flatten(2).transpose(1, 2)


# %%
def sinusoidal_positions(tokens, dim):
    """The positions of Vaswani et al. (2017), section 3.5.

    Args:
        tokens: How many positions there are, from 0.
        dim: The width of a token, even.

    Returns:
        (tokens, dim): sin(pos / 10000^(2i / dim)) in column 2i, the cosine of the same in column 2i + 1.
    """
    position = torch.arange(tokens, dtype=torch.float32).unsqueeze(1)
    frequency = 1.0 / 10000 ** (torch.arange(0, dim, 2, dtype=torch.float32) / dim)
    table = torch.zeros(tokens, dim)
    table[:, 0::2] = torch.sin(position * frequency)
    table[:, 1::2] = torch.cos(position * frequency)
    return table


# %%
class MultiHeadSelfAttention(nn.Module):
    """Multi-head self-attention that can show its weights.

    Every head computes softmax(q k^T / sqrt(dim / heads)) v; the heads' results are put side by side and
    projected.

    Args:
        dim: The width of a token, a multiple of `heads`.
        heads: How many heads there are.
        dropout: The share of attention weights that is dropped in training.

    forward:
        x: Tokens, (batch, tokens, dim).
        return_weights: Also return the weights.
        Returns tokens, (batch, tokens, dim); with `return_weights=True` a pair of them and the weights
        (batch, heads, tokens, tokens): the softmax, before anything is dropped. Row i says what token i looks
        at.
    """

    def __init__(self, dim, heads, dropout=0.0):
        super().__init__()
        self.heads = heads
        self.head_dim = dim // heads
        self.qkv = nn.Linear(dim, 3 * dim)
        self.proj = nn.Linear(dim, dim)
        self.drop = nn.Dropout(dropout)

    def forward(self, x, return_weights=False):
        B, N, D = x.shape
        qkv = self.qkv(x).reshape(B, N, 3, self.heads, self.head_dim).permute(2, 0, 3, 1, 4)
        q, k, v = qkv[0], qkv[1], qkv[2]  # (batch, heads, tokens, head_dim)
        scores = q @ k.transpose(-2, -1) / math.sqrt(self.head_dim)
        weights = scores.softmax(dim=-1)
        out = self.drop(weights) @ v
        out = self.proj(out.transpose(1, 2).reshape(B, N, D))
        if return_weights:
            return out, weights
        return out


# %%
class EncoderBlock(nn.Module):
    """A pre-norm block: x = x + attention(norm(x)), then x = x + mlp(norm(x)).

    Args:
        dim, heads, dropout: Of the attention.
        mlp_ratio: The hidden width of the MLP (linear, GELU, linear), in multiples of `dim`.

    forward:
        x: Tokens, (batch, tokens, dim).
        Returns tokens, (batch, tokens, dim).
    """

    def __init__(self, dim, heads, mlp_ratio=4.0, dropout=0.0):
        super().__init__()
        hidden = int(dim * mlp_ratio)
        self.norm1 = nn.LayerNorm(dim)
        self.attn = MultiHeadSelfAttention(dim, heads, dropout)
        self.norm2 = nn.LayerNorm(dim)
        self.mlp = nn.Sequential(nn.Linear(dim, hidden), nn.GELU(), nn.Linear(hidden, dim))

    def forward(self, x):
        x = x + self.attn(self.norm1(x))
        x = x + self.mlp(self.norm2(x))
        return x


# %%
class VisionTransformer(nn.Module):
    """The Vision Transformer: an image becomes a score for every class.

    Args:
        image_size, patch_size, in_channels, dim: Of the patches.
        num_classes: How many scores there are.
        depth: How many blocks there are.
        heads, mlp_ratio, dropout: Of the blocks.
        positions: 'learned', or 'sinusoidal': the fixed table.
        pool: 'cls': a class token stands in front of the patches, has position 0, and is classified;
            'mean': there is none, and the mean of all tokens is classified.

    forward:
        images: (batch, in_channels, image_size, image_size).
        Returns scores before any softmax (logits), (batch, num_classes). The tokens are normalized once more
        after the last block, or the mean of them is.

    attention:
        images: As above.
        Returns the attention weights of the last block, (batch, heads, tokens, tokens).
    """

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
        self.patches = PatchEmbedding(image_size, patch_size, in_channels, dim)
        tokens = (image_size // patch_size) ** 2
        if pool == "cls":
            self.cls_token = nn.Parameter(torch.randn(1, 1, dim) * 0.02)
            tokens += 1
        if positions == "learned":
            self.positions = nn.Parameter(torch.randn(1, tokens, dim) * 0.02)
        else:
            self.register_buffer("positions", sinusoidal_positions(tokens, dim).unsqueeze(0))
        self.blocks = nn.ModuleList([EncoderBlock(dim, heads, mlp_ratio, dropout) for _ in range(depth)])
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, num_classes)

    def forward(self, images):
        x = self.embed(images)
        for block in self.blocks:
            x = block(x)
        x = self.norm(x)
        x = x[:, 0] if self.pool == "cls" else x.mean(dim=1)
        return self.head(x)

    def embed(self, images):
        """Images to tokens with their positions, before the first block."""
        x = self.patches(images)
        if self.pool == "cls":
            cls = self.cls_token.expand(x.shape[0], -1, -1)
            x = torch.cat([cls, x], dim=1)
        return x + self.positions

    def attention(self, images):
        x = self.embed(images)
        for block in self.blocks[:-1]:
            x = block(x)
        last = self.blocks[-1]
        _, weights = last.attn(last.norm1(x), return_weights=True)
        return weights


# %%
def attention_map(model, image):
    """Which pixels of an image the model's answer rests on, as far as the last block's attention tells.

    The mean over the heads of `model.attention`; of it, the class token's row without its own column, or,
    with `pool="mean"`, the mean over all rows; divided by its maximum. Each patch's value stands on all its
    pixels.

    Args:
        model: A VisionTransformer. It is run in evaluation mode, and afterwards is in the mode it was in.
        image: (channels, height, width).

    Returns:
        (height, width), at most 1.
    """
    was_training = model.training
    model.eval()
    with torch.no_grad():
        where = next(model.parameters()).device
        weights = model.attention(image.unsqueeze(0).to(where))[0]  # (heads, tokens, tokens)
    model.train(was_training)

    weights = weights.mean(dim=0).cpu()
    tokens = weights.shape[0]
    side = math.isqrt(tokens)
    if side * side == tokens:  # no class token
        values = weights.mean(dim=0)
    else:
        values = weights[0, 1:]
        side = math.isqrt(tokens - 1)
    grid = values.reshape(side, side)
    grid = grid / grid.max()
    height, width = image.shape[-2:]
    grid = grid.repeat_interleave(height // side, dim=0)
    return grid.repeat_interleave(width // side, dim=1)


# %% [markdown]
# ## The ResNet that it is compared with
#
# He et al. (2016) in the form for small images: the stem is a 3 x 3 convolution, and nothing is pooled before
# the end. Convolutions have no bias, since batch normalization follows each of them.


# %%
class BasicBlock(nn.Module):
    """Two 3 x 3 convolutions, each with batch normalization, and a shortcut around them.

    Args:
        in_channels, channels: At the entrance and at the exit.
        stride: Of the first convolution.

    forward:
        x: (batch, in_channels, height, width).
        Returns (batch, channels, height / stride, width / stride): the sum of both paths, through a ReLU.
        The shortcut is the identity where the shape stays the same, else a 1 x 1 convolution and batch
        normalization.
    """

    def __init__(self, in_channels, channels, stride=1):
        super().__init__()
        self.conv1 = nn.Conv2d(in_channels, channels, 3, stride=stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, stride=1, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)
        if stride != 1 or in_channels != channels:
            self.shortcut = nn.Sequential(
                nn.Conv2d(in_channels, channels, 1, stride=stride, bias=False), nn.BatchNorm2d(channels)
            )
        else:
            self.shortcut = nn.Identity()

    def forward(self, x):
        out = F.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        return F.relu(out + self.shortcut(x))


# %%
class ResNet18(nn.Module):
    """ResNet-18 for small images: a stem, four groups of two BasicBlocks, mean over the image, linear layer.

    Args:
        num_classes: How many scores there are.
        width: Channels of the stem and of the first group; each further group has twice as many, and halves
            height and width by the stride of its first block.

    forward:
        images: (batch, 3, height, width).
        Returns scores before any softmax (logits), (batch, num_classes).
    """

    def __init__(self, num_classes=10, width=64):
        super().__init__()
        self.conv1 = nn.Conv2d(3, width, 3, stride=1, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.layer1 = self.make_layer(width, width, 1)
        self.layer2 = self.make_layer(width, 2 * width, 2)
        self.layer3 = self.make_layer(2 * width, 4 * width, 2)
        self.layer4 = self.make_layer(4 * width, 8 * width, 2)
        self.fc = nn.Linear(8 * width, num_classes)

    def make_layer(self, in_channels, channels, stride):
        return nn.Sequential(BasicBlock(in_channels, channels, stride), BasicBlock(channels, channels))

    def forward(self, images):
        x = F.relu(self.bn1(self.conv1(images)))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        x = x.mean(dim=(2, 3))
        return self.fc(x)


# %%
def parameter_table(model):
    """How many numbers each part of a model holds.

    Args:
        model: Any module.

    Returns:
        A list of (name, parameters), as fine as you like, whose numbers add up to all of the model's
        parameters, including those outside any layer and those that are not learned.
    """
    return [(name, parameter.numel()) for name, parameter in model.named_parameters()]


# %% [markdown]
# ## Training
#
# The learning rate rises and falls from batch to batch; the weights that count are those of the epoch with
# the best *validation* accuracy.
# One function trains either model.


# %%
def warmup_cosine(step, warmup_steps, total_steps):
    """What the learning rate is multiplied by at a step.

    Args:
        step: From 0.
        warmup_steps: For this many steps it rises in a line from 0 to 1; 0: it begins at 1.
        total_steps: From the end of the warm-up it falls by half a cosine, to 0 here and after.

    Returns:
        A float from 0 to 1.
    """
    if step < warmup_steps:
        return step / warmup_steps
    if step >= total_steps:
        return 0.0
    progress = (step - warmup_steps) / (total_steps - warmup_steps)
    return 0.5 * (1.0 + math.cos(math.pi * progress))


# %%
def train_epoch(model, loader, criterion, optimizer, scheduler, device):
    """Trains for one pass over the data.

    Args:
        model: Put into training mode here.
        loader: Yields (images, labels). The last batch may be smaller than the others.
        criterion: The mean loss of a batch from (scores, labels).
        optimizer: Holds the model's parameters.
        scheduler: Takes a step after each batch; None: there is none.
        device: Where the model is; batches are moved there.

    Returns:
        The mean loss and the accuracy (0 to 1) over all images, as they were when each batch was trained on.
    """
    model.train()
    total_loss, correct, count = 0.0, 0, 0
    for images, labels in loader:
        images, labels = images.to(device), labels.to(device)
        optimizer.zero_grad()
        scores = model(images)
        loss = criterion(scores, labels)
        loss.backward()
        optimizer.step()
        if scheduler is not None:
            scheduler.step()
        total_loss += loss.item() * labels.shape[0]
        correct += (scores.argmax(dim=1) == labels).sum().item()
        count += labels.shape[0]
    return total_loss / count, correct / count


# %%
def evaluate(model, loader, criterion, device):
    """Measures a model on images that it is not trained on.

    Args:
        model: Put into evaluation mode here; no gradients are computed.
        loader, criterion, device: As in `train_epoch`.

    Returns:
        A dict: 'loss' and 'accuracy' (means over images), 'targets' and 'predictions' (n,), and
        'probabilities' (n, classes), whose rows sum to 1, all in the loader's order.
    """
    model.eval()
    total_loss, count = 0.0, 0
    targets, probabilities, predictions = [], [], []
    with torch.no_grad():
        for images, labels in loader:
            images, labels = images.to(device), labels.to(device)
            scores = model(images)
            total_loss += criterion(scores, labels).item() * labels.shape[0]
            count += labels.shape[0]
            targets.append(labels.cpu())
            predictions.append(scores.argmax(dim=1).cpu())
            probabilities.append(scores.softmax(dim=1).cpu())
    targets, predictions = torch.cat(targets), torch.cat(predictions)
    return {
        "loss": total_loss / count,
        "accuracy": (targets == predictions).float().mean().item(),
        "targets": targets,
        "predictions": predictions,
        "probabilities": torch.cat(probabilities),
    }


# %%
def fit(model, loaders, epochs, device):
    """Trains a model, and leaves it with the weights of its best epoch.

    Optimizer and schedule are made in here (AdamW for the ViT; the schedule's length follows from `epochs`).
    The best epoch is the one with the highest validation accuracy as `evaluate` gives it; of equals, the
    first.

    Args:
        model: A VisionTransformer or a ResNet18.
        loaders: A dict with 'train' and 'validation'.
        epochs: How many passes over the training images.
        device: Where to train.

    Returns:
        The history, for `plot_learning_curves`: losses and accuracies of training and validation, epoch by
        epoch.
    """
    model.to(device)
    criterion = nn.CrossEntropyLoss()
    optimizer = optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.05)
    total_steps = epochs * len(loaders["train"])
    warmup_steps = total_steps // 10
    scheduler = optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: warmup_cosine(step, warmup_steps, total_steps)
    )
    history = {"train_loss": [], "train_accuracy": [], "val_loss": [], "val_accuracy": []}
    best_accuracy, best_weights = -1.0, None
    for epoch in range(epochs):
        train_loss, train_accuracy = train_epoch(
            model, loaders["train"], criterion, optimizer, scheduler, device
        )
        found = evaluate(model, loaders["validation"], criterion, device)
        history["train_loss"].append(train_loss)
        history["train_accuracy"].append(train_accuracy)
        history["val_loss"].append(found["loss"])
        history["val_accuracy"].append(found["accuracy"])
        if found["accuracy"] > best_accuracy:
            best_accuracy = found["accuracy"]
            best_weights = copy.deepcopy(model.state_dict())
        print(f"epoch {epoch + 1}: loss {train_loss:.3f}, validation accuracy {found['accuracy']:.4f}")
    if best_weights is not None:
        model.load_state_dict(best_weights)
    return history


# %% [markdown]
# ## Measures
#
# With numpy alone: `sklearn.metrics` and torchmetrics are what you build here.


# %%
def classification_metrics(targets, probabilities):
    """The measures of a classifier, class by class and as a whole.

    The predicted class is the one with the largest probability, the first of equals. What would be 0 / 0 is
    0. ROC-AUC sets each class against all others: the share of pairs of a positive and a negative in which
    the positive has the larger probability, ties counting one half; NaN for a class without positives or
    without negatives.

    Args:
        targets: (n,), whole numbers.
        probabilities: (n, classes).

    Returns:
        A dict of numpy arrays: 'confusion' (classes, classes), rows the true classes; 'precision', 'recall',
        'f1', 'support' and 'roc_auc', each (classes,). And of floats: 'accuracy', and 'macro_' and
        'weighted_' of precision, recall, f1 and roc_auc: the means over the classes that occur in `targets`,
        plain and weighted by support. Means of roc_auc skip NaN, and are NaN if nothing is left.
    """
    targets = np.asarray(targets).astype(int)
    probabilities = np.asarray(probabilities, dtype=float)
    classes = probabilities.shape[1]
    predictions = probabilities.argmax(axis=1)

    confusion = np.zeros((classes, classes), dtype=int)
    for t, p in zip(targets, predictions):
        confusion[t, p] += 1
    hits = np.diag(confusion).astype(float)
    support = confusion.sum(axis=1)
    predicted = confusion.sum(axis=0)
    precision = np.divide(hits, predicted, out=np.zeros(classes), where=predicted > 0)
    recall = np.divide(hits, support, out=np.zeros(classes), where=support > 0)
    both = precision + recall
    f1 = np.divide(2 * precision * recall, both, out=np.zeros(classes), where=both > 0)

    roc_auc = np.full(classes, np.nan)
    for c in range(classes):
        positive = probabilities[targets == c, c]
        negative = probabilities[targets != c, c]
        if len(positive) > 0 and len(negative) > 0:
            larger = (positive[:, None] > negative[None, :]).sum()
            equal = (positive[:, None] == negative[None, :]).sum()
            roc_auc[c] = (larger + 0.5 * equal) / (len(positive) * len(negative))

    result = {
        "confusion": confusion, "precision": precision, "recall": recall, "f1": f1, "support": support,
        "roc_auc": roc_auc, "accuracy": float((predictions == targets).mean()),
    }  # fmt: skip
    for name in ("precision", "recall", "f1", "roc_auc"):
        values = result[name]
        valid = (support > 0) & ~np.isnan(values)
        if valid.any():
            result["macro_" + name] = float(values[valid].mean())
            result["weighted_" + name] = float(np.average(values[valid], weights=support[valid]))
        else:
            result["macro_" + name] = result["weighted_" + name] = float("nan")
    return result


# %%
def export_metrics(metrics, path):
    """Writes measures as a CSV with the columns metric and value.

    Args:
        metrics: A dict of numbers, arrays (n,) and further dicts. Matrices may be left out.
        path: Where to.

    A nested name joins the names by dots: `vit.recall.cat`; `recall.3` for the fourth number of an array.
    """

    rows = []

    def collect(name, value):
        if isinstance(value, dict):
            for key, inner in value.items():
                collect(f"{name}.{key}" if name else str(key), inner)
            return
        value = np.asarray(value)
        if value.ndim == 0:
            rows.append((name, value.item()))
        elif value.ndim == 1:
            for i, number in enumerate(value.tolist()):
                rows.append((f"{name}.{i}", number))

    collect("", metrics)
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["metric", "value"])
        writer.writerows(rows)


# %% [markdown]
# ## Pictures


# %%
def plot_learning_curves(history):
    """Draws loss and accuracy of training and validation over the epochs, with axes that say what they are.

    Args:
        history: What `fit` returned.
    """
    epochs = range(1, len(history["train_loss"]) + 1)
    fig, axes = plt.subplots(1, 2, figsize=(11, 4))
    axes[0].plot(epochs, history["train_loss"], label="training")
    axes[0].plot(epochs, history["val_loss"], label="validation")
    axes[0].set_xlabel("epoch")
    axes[0].set_ylabel("loss")
    axes[0].legend()
    axes[1].plot(epochs, history["train_accuracy"], label="training")
    axes[1].plot(epochs, history["val_accuracy"], label="validation")
    axes[1].set_xlabel("epoch")
    axes[1].set_ylabel("accuracy")
    axes[1].legend()
    fig.tight_layout()
    return fig


# %%
def plot_confusion_matrix(matrix, class_names):
    """Draws a confusion matrix with its counts, the true classes as rows, the names on both axes.

    Args:
        matrix: (classes, classes).
        class_names: The names, in the order of the labels.
    """
    matrix = np.asarray(matrix)
    fig, ax = plt.subplots(figsize=(7, 6))
    picture = ax.imshow(matrix, cmap="Blues")
    fig.colorbar(picture, ax=ax)
    ax.set_xticks(range(len(class_names)), class_names, rotation=45, ha="right")
    ax.set_yticks(range(len(class_names)), class_names)
    ax.set_xlabel("predicted class")
    ax.set_ylabel("true class")
    for i in range(matrix.shape[0]):
        for j in range(matrix.shape[1]):
            color = "white" if matrix[i, j] > matrix.max() / 2 else "black"
            ax.text(i, j, str(matrix[i, j]), ha="center", va="center", color=color)
    fig.tight_layout()
    return fig


# %%
def plot_roc(targets, probabilities, class_names):
    """Draws the ROC curve of each class against all others, from (0, 0) to (1, 1), named with its class.

    Args:
        targets: (n,).
        probabilities: (n, classes).
        class_names: The names, in the order of the labels.
    """
    targets = np.asarray(targets)
    probabilities = np.asarray(probabilities)
    fig, ax = plt.subplots(figsize=(6, 6))
    for c, name in enumerate(class_names):
        positive = targets == c
        if not positive.any() or positive.all():
            continue
        score = probabilities[:, c]
        fpr, tpr = [0.0], [0.0]
        for threshold in np.unique(score)[::-1]:
            called = score >= threshold
            tpr.append((called & positive).sum() / positive.sum())
            fpr.append((called & ~positive).sum() / (~positive).sum())
        ax.plot(fpr, tpr, label=name)
    ax.plot([0, 1], [0, 1], "k--", linewidth=0.8)
    ax.set_xlabel("false positive rate")
    ax.set_ylabel("true positive rate")
    ax.legend(fontsize=8)
    return fig


# %%
def original(image, mean, std):
    """Takes back the normalization: (channels, height, width) to (height, width, channels) from 0 to 1."""
    mean = torch.tensor(mean).view(-1, 1, 1)
    std = torch.tensor(std).view(-1, 1, 1)
    return (image.detach().cpu() * std + mean).clamp(0, 1).permute(1, 2, 0)


# %%
def plot_attention(model, images, labels, class_names, mean, std):
    """Draws, for each image, the image as it was, its attention map, and the map laid over the image.

    Args:
        model: A VisionTransformer.
        images: Normalized, (n, channels, height, width).
        labels: (n,), whose names are shown with the images.
        class_names: The names, in the order of the labels.
        mean, std: Of each channel, by which the images were normalized.
    """
    fig, axes = plt.subplots(len(images), 3, figsize=(7, 2.3 * len(images)), squeeze=False)
    for row, image, label in zip(axes, images, labels):
        picture = original(image, mean, std)
        heat = attention_map(model, image)
        row[0].imshow(picture)
        row[0].set_title(class_names[int(label)])
        row[1].imshow(heat, cmap="viridis", vmin=0, vmax=1)
        row[1].set_title("attention")
        row[2].imshow(picture)
        row[2].imshow(heat, cmap="jet", alpha=0.5, vmin=0, vmax=1)
        row[2].set_title("overlay")
        for ax in row:
            ax.axis("off")
    fig.tight_layout()
    return fig


# %%
def plot_top3(images, labels, probabilities, class_names, mean, std):
    """Draws each image as it was, with its true class and the three likeliest ones with their probabilities.

    Args:
        images, labels, class_names, mean, std: As in `plot_attention`.
        probabilities: (n, classes).
    """
    probabilities = torch.as_tensor(probabilities)
    fig, axes = plt.subplots(1, len(images), figsize=(2.6 * len(images), 3.4), squeeze=False)
    for ax, image, label, row in zip(axes[0], images, labels, probabilities):
        ax.imshow(original(image, mean, std))
        values, indices = row.topk(min(3, len(row)))
        lines = [f"true: {class_names[int(label)]}"]
        for value, index in zip(values.tolist(), indices.tolist()):
            lines.append(f"{class_names[index]} {value:.2f}")
        ax.set_title("\n".join(lines), fontsize=8)
        ax.axis("off")
    fig.tight_layout()
    return fig


# %% [markdown]
# ## Train both models
#
# These are the numbers to tune: the arguments of both models, and the epochs. README.md says how large they
# may be.

# %%
VIT_EPOCHS = 15
RESNET_EPOCHS = 12

start = time.time()
vit = VisionTransformer(
    dim=96, depth=6, heads=4, mlp_ratio=2.0, dropout=0.0, num_classes=len(class_names)
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
# ## Compare them

# %%
criterion = nn.CrossEntropyLoss()
measures = {}
trained = [("vit", vit, vit_history), ("resnet", resnet, resnet_history)]
for name, model, history in trained:
    found = evaluate(model, test_loader, criterion, device)
    measures[name] = classification_metrics(found["targets"], found["probabilities"])
    print(name, f"{found['accuracy']:.4f}", parameter_table(model))
    plot_learning_curves(history)
    plot_confusion_matrix(measures[name]["confusion"], class_names)
    plot_roc(found["targets"], found["probabilities"], class_names)
export_metrics(measures, f"{STUDENT_ID}_metrics.csv")

# %%
images, labels = next(iter(test_loader))
images, labels = images[:6], labels[:6]
plot_attention(vit, images, labels, class_names, MEAN, STD)
found = vit.eval()(images.to(device)).softmax(dim=1).detach().cpu()
plot_top3(images, labels, found, class_names, MEAN, STD)

# %% [markdown]
# ## Study
#
# What does each ingredient give? Train a small ViT as a *base* with three seeds, and at least six ViTs that
# differ from it in one value each. Small ones are enough (patches of 4 or 8 pixels, depth 2 to 6, a few
# epochs): all of it takes minutes. Write a row for each training, with these columns. It need not run each
# time that this file does: set RUN_STUDY to False when you have your table.

# %%
RUN_STUDY = True
COLUMNS = [
    "patch_size", "dim", "depth", "heads", "mlp_ratio", "positions", "epochs", "seed", "parameters",
    "validation_accuracy",
]  # fmt: skip
BASE = {
    "patch_size": 8, "dim": 48, "depth": 2, "heads": 4, "mlp_ratio": 2.0, "positions": "learned", "epochs": 4,
}  # fmt: skip


def trained_row(values, seed):
    """Trains a ViT with these values, and returns its row of the table."""
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
    changes = [
        {"patch_size": 4}, {"dim": 96}, {"depth": 4}, {"heads": 2}, {"mlp_ratio": 4.0}, {"positions": "sinusoidal"},
    ]  # fmt: skip
    for change in changes:
        rows.append(trained_row({**BASE, **change}, 0))
    with open(f"{STUDENT_ID}_study.csv", "w", newline="", encoding="utf-8") as file:
        table = csv.DictWriter(file, COLUMNS)
        table.writeheader()
        table.writerows(rows)
