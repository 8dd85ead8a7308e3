# %% [markdown]
# # A Vision Transformer for CIFAR-10, opened up and compared with a ResNet
#
# You build a Vision Transformer (ViT) and a small ResNet from scratch, train both by the same function,
# measure them as a paper would, and look at what the ViT attends to. All parts are done.
#
# Names and arguments of the classes and functions are fixed. All numbers (sizes, optimizer, batch size,
# transforms, epochs) are yours, within the bounds that README.md states. What functions return is on the CPU.

# %%
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

STUDENT_ID = "400103010"

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(42)

# %% [markdown]
# ## 1. The images
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
# ## 2. The Vision Transformer
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
        # Hint: a convolution whose stride is its kernel size maps each patch by itself.
        if image_size % patch_size != 0:
            raise ValueError("patch_size has to divide image_size")
        self.num_patches = (image_size // patch_size) ** 2
        self.proj = nn.Conv2d(in_channels, dim, kernel_size=patch_size, stride=patch_size)

    def forward(self, images):
        # Hint: after the convolution the patches are still a grid: (batch, dim, rows, columns).
        x = self.proj(images)  # (B, dim, rows, columns)
        x = x.flatten(2)  # (B, dim, N)
        return x.transpose(1, 2)  # (B, N, dim)


# %%
def sinusoidal_positions(tokens, dim):
    """The positions of Vaswani et al. (2017), section 3.5.

    Args:
        tokens: How many positions there are, from 0.
        dim: The width of a token, even.

    Returns:
        (tokens, dim): sin(pos / 10000^(2i / dim)) in column 2i, the cosine of the same in column 2i + 1.
    """
    # Hint: one angle for each pair of columns; the sines fill the even columns, the cosines the odd ones.
    pos = torch.arange(tokens, dtype=torch.float32).unsqueeze(1)
    two_i = torch.arange(0, dim, 2, dtype=torch.float32)
    angles = pos / 10000 ** (two_i / dim)
    table = torch.zeros(tokens, dim)
    table[:, 0::2] = torch.sin(angles)
    table[:, 1::2] = torch.cos(angles)
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
        # Hint: each head has dim // heads features.
        self.heads = heads
        self.head_dim = dim // heads
        self.scale = self.head_dim ** -0.5
        self.qkv = nn.Linear(dim, 3 * dim)
        self.attn_drop = nn.Dropout(dropout)
        self.out = nn.Linear(dim, dim)

    def forward(self, x, return_weights=False):
        # Hint: with the heads as an axis of its own, q, k and v are (batch, heads, tokens, dim // heads).
        # Hint: keep the weights before dropout for those who ask for them.
        B, N, D = x.shape
        qkv = self.qkv(x).reshape(B, N, 3, self.heads, self.head_dim)
        qkv = qkv.permute(2, 0, 3, 1, 4)  # (3, B, heads, N, head_dim)
        q, k, v = qkv[0], qkv[1], qkv[2]
        scores = q @ k.transpose(-2, -1) * self.scale
        weights = scores.softmax(dim=-1)
        y = self.attn_drop(weights) @ v  # (B, heads, N, head_dim)
        y = y.transpose(1, 2).reshape(B, N, D)
        y = self.out(y)
        if return_weights:
            return y, weights
        return y


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
        self.mlp = nn.Sequential(
            nn.Linear(dim, hidden),
            nn.GELU(),
            nn.Dropout(dropout),
            nn.Linear(hidden, dim),
            nn.Dropout(dropout),
        )

    def forward(self, x):
        # Hint: what is added is the result for the normalized tokens; what it is added to is not normalized.
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
        # Hint: what is learned but is no layer (class token, positions) is an nn.Parameter.
        # Hint: fixed positions are a buffer: self.register_buffer("positions", ...).
        self.pool = pool
        self.patch_embed = PatchEmbedding(image_size, patch_size, in_channels, dim)
        tokens = (image_size // patch_size) ** 2
        if pool == "cls":
            self.cls_token = nn.Parameter(torch.randn(1, 1, dim) * 0.02)
            tokens = tokens + 1
        if positions == "learned":
            self.pos_embed = nn.Parameter(torch.randn(1, tokens, dim) * 0.02)
        else:
            self.register_buffer("pos_embed", sinusoidal_positions(tokens, dim).unsqueeze(0))
        self.drop = nn.Dropout(dropout)
        self.blocks = nn.ModuleList([EncoderBlock(dim, heads, mlp_ratio, dropout) for _ in range(depth)])
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, num_classes)

    def embed(self, images):
        """Patches, class token and positions: what the first block gets."""
        x = self.patch_embed(images)
        if self.pool == "cls":
            cls = self.cls_token.expand(x.shape[0], -1, -1)
            x = torch.cat([cls, x], dim=1)
        return self.drop(x + self.pos_embed)

    def forward(self, images):
        x = self.embed(images)
        for block in self.blocks:
            x = block(x)
        x = self.norm(x)
        if self.pool == "cls":
            x = x[:, 0]
        else:
            x = x.mean(dim=1)
        return self.head(x)

    def attention(self, images):
        # Hint: run all blocks but the last; the last one's attention gets its *normalized* tokens.
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
        model: A VisionTransformer. It is asked in evaluation mode, and afterwards is in the mode it was in.
        image: (channels, height, width).

    Returns:
        (height, width), at most 1.
    """
    # Hint: tokens are patches row by row, so the patches' values become a grid by reshape.
    # Hint: whether there is a class token shows in the number of tokens: one more than a square.
    was_training = model.training
    model.eval()
    dev = next(model.parameters()).device
    with torch.no_grad():
        weights = model.attention(image.unsqueeze(0).to(dev))[0].cpu()  # (heads, N, N)
    model.train(was_training)
    weights = weights.mean(dim=0)
    n = weights.shape[0]
    side = math.isqrt(n)
    if side * side == n:
        values = weights.mean(dim=0)  # pool="mean": no class token
    else:
        side = math.isqrt(n - 1)
        values = weights[0, 1:]
    grid = values.reshape(side, side)
    grid = grid / grid.max()
    patch = image.shape[-1] // side
    return grid.repeat_interleave(patch, dim=0).repeat_interleave(patch, dim=1)


# %% [markdown]
# ## 3. The ResNet that it is compared with
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
        Returns (batch, channels, height / stride, width / stride): the sum of both ways, through a ReLU. The
        shortcut is the identity where the shape stays, else a 1 x 1 convolution and batch normalization.
    """

    def __init__(self, in_channels, channels, stride=1):
        super().__init__()
        # Hint: the shape changes with the channels and with the stride.
        self.conv1 = nn.Conv2d(in_channels, channels, 3, stride=stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)
        self.shortcut = nn.Identity()
        if stride != 1 or in_channels != channels:
            self.shortcut = nn.Sequential(
                nn.Conv2d(in_channels, channels, 1, stride=stride, bias=False), nn.BatchNorm2d(channels)
            )

    def forward(self, x):
        out = F.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        out = out + self.shortcut(x)
        return F.relu(out)


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
        self.conv = nn.Conv2d(3, width, 3, padding=1, bias=False)
        self.bn = nn.BatchNorm2d(width)
        self.group1 = self.make_group(width, width, stride=1)
        self.group2 = self.make_group(width, 2 * width, stride=2)
        self.group3 = self.make_group(2 * width, 4 * width, stride=2)
        self.group4 = self.make_group(4 * width, 8 * width, stride=1)
        self.fc = nn.Linear(8 * width, num_classes)

    def make_group(self, in_channels, channels, stride):
        return nn.Sequential(BasicBlock(in_channels, channels, stride), BasicBlock(channels, channels))

    def forward(self, images):
        x = F.relu(self.bn(self.conv(images)))
        x = self.group1(x)
        x = self.group2(x)
        x = self.group3(x)
        x = self.group4(x)
        x = x.mean(dim=(2, 3))
        return self.fc(x)


# %%
def parameter_table(model):
    """How many numbers each part of a model holds.

    Args:
        model: Any module.

    Returns:
        A list of (name, parameters), as fine as you like, whose numbers add up to all of the model's
        parameters, those that are no layer's and those that are not learned among them.
    """
    # Hint: named_children misses parameters of the model itself; named_parameters has all of them.
    parts = {}
    for name, p in model.named_parameters():
        part = name.split(".")[0]
        parts[part] = parts.get(part, 0) + p.numel()
    return list(parts.items())


# %% [markdown]
# ## 4. Training
#
# One function trains either model. The learning rate rises and falls from batch to batch; the weights that
# count are those of the epoch with the best *validation* accuracy.


# %%
def warmup_cosine(step, warmup_steps, total_steps):
    """What the learning rate is multiplied by at a step.

    Args:
        step: From 0.
        warmup_steps: So long it rises in a line from 0 to 1; 0: it begins at 1.
        total_steps: From the end of the warm-up it falls by half a cosine, to 0 here and after.

    Returns:
        A float from 0 to 1.
    """
    if step < warmup_steps:
        return step / warmup_steps
    if step >= total_steps:
        return 0.0
    progress = (step - warmup_steps) / (total_steps - warmup_steps)
    return 0.5 * (1 + math.cos(math.pi * progress))


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
    # Hint: a batch's mean counts as often as the batch has images.
    model.train()
    total_loss, correct, seen = 0.0, 0, 0
    for images, labels in loader:
        images, labels = images.to(device), labels.to(device)
        optimizer.zero_grad()
        scores = model(images)
        loss = criterion(scores, labels)
        loss.backward()
        optimizer.step()
        if scheduler is not None:
            scheduler.step()
        total_loss += loss.item() * len(labels)
        correct += (scores.argmax(dim=1) == labels).sum().item()
        seen += len(labels)
    return total_loss / seen, correct / seen


# %%
def evaluate(model, loader, criterion, device):
    """Asks a model about images that it is not trained on.

    Args:
        model: Put into evaluation mode here; no gradients are computed.
        loader, criterion, device: As in `train_epoch`.

    Returns:
        A dict: 'loss' and 'accuracy' (means over images), 'targets' and 'predictions' (n,), and
        'probabilities' (n, classes), whose rows sum to 1, all in the loader's order.
    """
    model.eval()
    total_loss = 0.0
    all_targets, all_predictions, all_probabilities = [], [], []
    with torch.no_grad():
        for images, labels in loader:
            images, labels = images.to(device), labels.to(device)
            scores = model(images)
            total_loss += criterion(scores, labels).item() * len(labels)
            all_targets.append(labels.cpu())
            all_predictions.append(scores.argmax(dim=1).cpu())
            all_probabilities.append(F.softmax(scores, dim=1).cpu())
    targets = torch.cat(all_targets)
    predictions = torch.cat(all_predictions)
    return {
        "loss": total_loss / len(targets),
        "accuracy": (predictions == targets).float().mean().item(),
        "targets": targets,
        "predictions": predictions,
        "probabilities": torch.cat(all_probabilities),
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
    # Hint: model.state_dict() refers to the weights, which go on changing: keep a copy.
    model.to(device)
    criterion = nn.CrossEntropyLoss()
    optimizer = optim.AdamW(model.parameters(), lr=1.5e-3, weight_decay=0.05)
    total_steps = epochs * len(loaders["train"])
    warmup_steps = total_steps // 10
    scheduler = optim.lr_scheduler.LambdaLR(optimizer, lambda s: warmup_cosine(s, warmup_steps, total_steps))
    history = {"train_loss": [], "train_acc": [], "val_loss": [], "val_acc": []}
    best_acc, best_state = -1.0, None
    for epoch in range(epochs):
        train_loss, train_acc = train_epoch(model, loaders["train"], criterion, optimizer, scheduler, device)
        val = evaluate(model, loaders["validation"], criterion, device)
        history["train_loss"].append(train_loss)
        history["train_acc"].append(train_acc)
        history["val_loss"].append(val["loss"])
        history["val_acc"].append(val["accuracy"])
        print(f"epoch {epoch + 1}: train {train_loss:.3f} {train_acc:.3f}, val {val['loss']:.3f} {val['accuracy']:.3f}")
        if val["accuracy"] > best_acc:
            best_acc = val["accuracy"]
            best_state = {key: value.detach().clone() for key, value in model.state_dict().items()}
    if best_state is not None:
        model.load_state_dict(best_state)
    return history


# %% [markdown]
# ## 5. Measures
#
# With numpy alone: `sklearn.metrics` and torchmetrics are what you build here.


# %%
def classification_metrics(targets, probabilities):
    """What is said of a classifier, class by class and as a whole.

    Predicted is the class with the largest probability, of equals the first. What would be 0 / 0 is 0.
    ROC-AUC sets each class against all others: the share of pairs of a positive and a negative in which the
    positive has the larger probability, ties counting one half; NaN for a class without positives or without
    negatives.

    Args:
        targets: (n,), whole numbers.
        probabilities: (n, classes).

    Returns:
        A dict of numpy arrays: 'confusion' (classes, classes), rows the true classes; 'precision', 'recall',
        'f1', 'support' and 'roc_auc', each (classes,). And of floats: 'accuracy', and 'macro_' and
        'weighted_' of precision, recall, f1 and roc_auc: the means over the classes that occur in `targets`,
        plain and weighted by support. Means of roc_auc skip NaN, and are NaN if nothing is left.
    """
    # Hint: precision divides by a column's sum of the confusion matrix, recall by a row's.
    targets = np.asarray(targets).astype(int)
    probabilities = np.asarray(probabilities, dtype=float)
    n, classes = probabilities.shape
    predictions = probabilities.argmax(axis=1)
    confusion = np.zeros((classes, classes), dtype=int)
    for t, p in zip(targets, predictions):
        confusion[t, p] += 1
    support = confusion.sum(axis=1)
    predicted = confusion.sum(axis=0)
    hits = np.diag(confusion).astype(float)
    precision = np.divide(hits, predicted, out=np.zeros(classes), where=predicted > 0)
    recall = np.divide(hits, support, out=np.zeros(classes), where=support > 0)
    both = precision + recall
    f1 = np.divide(2 * precision * recall, both, out=np.zeros(classes), where=both > 0)
    roc_auc = np.full(classes, np.nan)
    for c in range(classes):
        positives = probabilities[targets == c, c]
        negatives = probabilities[targets != c, c]
        if len(positives) == 0 or len(negatives) == 0:
            continue
        larger = (positives[:, None] > negatives[None, :]).mean()
        equal = (positives[:, None] == negatives[None, :]).mean()
        roc_auc[c] = larger + 0.5 * equal
    result = {
        "confusion": confusion, "precision": precision, "recall": recall, "f1": f1, "support": support,
        "roc_auc": roc_auc, "accuracy": float(hits.sum() / n) if n else 0.0,
    }
    for name in ("precision", "recall", "f1", "roc_auc"):
        use = (support > 0) & ~np.isnan(result[name])
        if use.any():
            result["macro_" + name] = float(result[name][use].mean())
            result["weighted_" + name] = float(np.average(result[name][use], weights=support[use]))
        else:
            result["macro_" + name] = float("nan")
            result["weighted_" + name] = float("nan")
    return result


# %%
def export_metrics(metrics, path):
    """Writes measures as a CSV with the columns metric and value.

    Args:
        metrics: A dict of numbers, arrays (n,) and further dicts. Matrices may be left out.
        path: Where to.

    A nested name joins the names by dots: `vit.recall.cat`; `recall.3` for the fourth number of an array.
    """

    # Hint: a function that calls itself for each dict and each array is the shortest.
    rows = []

    def add(name, value):
        if isinstance(value, dict):
            for key in value:
                add(f"{name}.{key}" if name else str(key), value[key])
            return
        array = np.asarray(value)
        if array.ndim == 0:
            rows.append((name, array.item()))
        elif array.ndim == 1:
            for i, number in enumerate(array.tolist()):
                rows.append((f"{name}.{i}", number))

    add("", metrics)
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["metric", "value"])
        writer.writerows(rows)


# %% [markdown]
# ## 6. Pictures


# %%
def plot_learning_curves(history):
    """Draws loss and accuracy of training and validation over the epochs, with axes that say what they are.

    Args:
        history: What `fit` returned.
    """
    epochs = range(1, len(history["train_loss"]) + 1)
    fig, axes = plt.subplots(1, 2, figsize=(10, 4))
    axes[0].plot(epochs, history["train_loss"], label="training")
    axes[0].plot(epochs, history["val_loss"], label="validation")
    axes[0].set_xlabel("epoch")
    axes[0].set_ylabel("loss")
    axes[1].plot(epochs, history["train_acc"], label="training")
    axes[1].plot(epochs, history["val_acc"], label="validation")
    axes[1].set_xlabel("epoch")
    axes[1].set_ylabel("accuracy")
    for ax in axes:
        ax.legend()
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
    fig, ax = plt.subplots(figsize=(8, 7))
    ax.imshow(matrix, cmap="Blues")
    ax.set_xticks(range(len(class_names)), class_names, rotation=45, ha="right")
    ax.set_yticks(range(len(class_names)), class_names)
    ax.set_xlabel("predicted class")
    ax.set_ylabel("true class")
    for i in range(matrix.shape[0]):
        for j in range(matrix.shape[1]):
            color = "white" if matrix[i, j] > matrix.max() / 2 else "black"
            ax.text(j, i, str(int(matrix[i, j])), ha="center", va="center", color=color)
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
    # Hint: each different probability is a threshold: what is at least as large is called positive.
    targets = np.asarray(targets)
    probabilities = np.asarray(probabilities)
    fig, ax = plt.subplots(figsize=(7, 6))
    for c, name in enumerate(class_names):
        is_class = targets == c
        pos, neg = is_class.sum(), (~is_class).sum()
        if pos == 0 or neg == 0:
            continue
        tpr, fpr = [0.0], [0.0]
        for threshold in np.unique(probabilities[:, c])[::-1]:
            called = probabilities[:, c] >= threshold
            tpr.append((called & is_class).sum() / pos)
            fpr.append((called & ~is_class).sum() / neg)
        ax.plot(fpr, tpr, label=name)
    ax.plot([0, 1], [0, 1], "k--", linewidth=0.8)
    ax.set_xlabel("false positive rate")
    ax.set_ylabel("true positive rate")
    ax.legend(fontsize=8)
    return fig


# %%
def plot_attention(model, images, labels, class_names, mean, std):
    """Draws, for each image, the image as it was, its attention map, and the map laid over the image.

    Args:
        model: A VisionTransformer.
        images: Normalized, (n, channels, height, width).
        labels: (n,), whose names stand with the images.
        class_names: The names, in the order of the labels.
        mean, std: Of each channel, by which the images were normalized.
    """
    mean = torch.tensor(mean).view(-1, 1, 1)
    std = torch.tensor(std).view(-1, 1, 1)
    n = len(images)
    fig, axes = plt.subplots(n, 3, figsize=(7, 2.4 * n), squeeze=False)
    for i in range(n):
        picture = (images[i].cpu() * std + mean).clamp(0, 1).permute(1, 2, 0).numpy()
        heat = np.asarray(attention_map(model, images[i]))
        axes[i, 0].imshow(picture)
        axes[i, 0].set_title(class_names[int(labels[i])])
        axes[i, 1].imshow(heat, cmap="viridis", vmin=0, vmax=1)
        axes[i, 1].set_title("attention")
        axes[i, 2].imshow(picture)
        axes[i, 2].imshow(heat, cmap="jet", alpha=0.5, vmin=0, vmax=1)
        axes[i, 2].set_title("overlay")
    for ax in axes.flat:
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
    mean = torch.tensor(mean).view(-1, 1, 1)
    std = torch.tensor(std).view(-1, 1, 1)
    probabilities = torch.as_tensor(probabilities)
    n = len(images)
    fig, axes = plt.subplots(1, n, figsize=(2.8 * n, 3.8), squeeze=False)
    for i in range(n):
        picture = images[i].cpu() * std + mean
        axes[0, i].imshow(picture.clamp(0, 1).permute(1, 2, 0).numpy())
        values, classes = probabilities[i].topk(min(3, probabilities.shape[1]))
        lines = [f"true: {class_names[int(labels[i])]}"]
        for value, c in zip(values.tolist(), classes.tolist()):
            lines.append(f"{class_names[c]} {value:.2f}")
        axes[0, i].set_title("\n".join(lines), fontsize=8)
        axes[0, i].axis("off")
    fig.tight_layout()
    return fig


# %% [markdown]
# ## 7. Train both models
#
# These are the numbers to tune: the arguments of both models, and the epochs. README.md says how large they
# may be.

# %%
VIT_EPOCHS, RESNET_EPOCHS = 5, 3

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
# ## 9. Study
#
# What does each ingredient give? Train a small ViT as a *base* with three seeds, and at least six ViTs that
# differ from it in one value each. Small ones are enough (patches of 4 or 8 pixels, depth 2 to 6, a few
# epochs): all of it takes minutes. Write a row for each training, with these columns. It need not run each
# time that this file does: set RUN_STUDY to False when you have your table.

# %%
RUN_STUDY = False  # the table is there already
COLUMNS = [
    "patch_size", "dim", "depth", "heads", "mlp_ratio", "positions", "epochs", "seed", "parameters",
    "validation_accuracy",
]  # fmt: skip
BASE = {
    "patch_size": 8, "dim": 48, "depth": 2, "heads": 4, "mlp_ratio": 2.0, "positions": "learned", "epochs": 3,
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
        {"patch_size": 4}, {"dim": 32}, {"dim": 64}, {"depth": 3}, {"heads": 2}, {"mlp_ratio": 4.0},
        {"positions": "sinusoidal"},
    ]
    for change in changes:
        rows.append(trained_row({**BASE, **change}, 0))
        print(rows[-1])
    with open(f"{STUDENT_ID}_study.csv", "w", newline="", encoding="utf-8") as file:
        table = csv.DictWriter(file, COLUMNS)
        table.writeheader()
        table.writerows(rows)
