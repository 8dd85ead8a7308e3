# >>> INSTRUCTORS
# Reference solution of assignment 2, complete as the course hands it out. Students never receive this file:
# `grader template vit_cifar10` makes their homework.py and homework.ipynb from it. The marks are those of
# docs/instructor.md; what stands between ONLY marks is in that edition only: `edition` in assignment.toml.
# <<<
# %% [markdown]
# >>> ONLY full
# # A Vision Transformer for CIFAR-10, opened up and compared with a ResNet
#
# You build a Vision Transformer (ViT) and a small ResNet from scratch, train both by the same function,
# measure them as a paper would, and look at what the ViT attends to. Every part that you write says `TODO`:
# <<< ONLY
# >>> ONLY core
# # A Vision Transformer for CIFAR-10
#
# You build a Vision Transformer (ViT) from scratch, train it, and measure it as a paper would. Every part
# that you write says `TODO`:
# <<< ONLY
# read its docstring, replace the line `raise NotImplementedError(...)` by your code, and run `pytest` in this
# folder to see how far you are.
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

STUDENT_ID = "400101200"  # put your own student number here

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
# >>> INSTEAD train_transform = plain_transform  # to tune: crops and flips
train_transform = transforms.Compose(
    [
        transforms.RandomCrop(32, padding=4),
        transforms.RandomHorizontalFlip(),
        # >>> ONLY gpu
        transforms.RandAugment(),
        # <<< ONLY
        transforms.ToTensor(),
        transforms.Normalize(MEAN, STD),
    ]
)
# <<<
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
        # >>> TODO PatchEmbedding.__init__: the linear map from a patch to a token
        # hint: a convolution whose stride is its kernel size maps each patch by itself.
        self.patches = (image_size // patch_size) ** 2
        self.projection = nn.Conv2d(in_channels, dim, kernel_size=patch_size, stride=patch_size)
        # <<<

    def forward(self, images):
        # >>> TODO PatchEmbedding.forward: images to tokens
        # hint: after the convolution the patches are still a grid: (batch, dim, rows, columns).
        return self.projection(images).flatten(2).transpose(1, 2)
        # <<<


# %%
def sinusoidal_positions(tokens, dim):
    """The positions of Vaswani et al. (2017), section 3.5.

    Args:
        tokens: How many positions there are, from 0.
        dim: The width of a token, even.

    Returns:
        (tokens, dim): sin(pos / 10000^(2i / dim)) in column 2i, the cosine of the same in column 2i + 1.
    """
    # >>> TODO sinusoidal_positions: the table of sines and cosines
    # hint: one angle for each pair of columns; the sines fill the even columns, the cosines the odd ones.
    position = torch.arange(tokens, dtype=torch.float32)[:, None]
    frequency = torch.exp(torch.arange(0, dim, 2, dtype=torch.float32) * (-math.log(10000.0) / dim))
    table = torch.zeros(tokens, dim)
    table[:, 0::2] = torch.sin(position * frequency)
    table[:, 1::2] = torch.cos(position * frequency)
    return table
    # <<<


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
        # >>> TODO MultiHeadSelfAttention.__init__: the projections to q, k and v, and the output projection
        # hint: each head has dim // heads features.
        self.heads = heads
        self.scale = (dim // heads) ** -0.5
        self.qkv = nn.Linear(dim, 3 * dim)
        self.out = nn.Linear(dim, dim)
        self.dropout = nn.Dropout(dropout)
        # <<<

    def forward(self, x, return_weights=False):
        # >>> TODO MultiHeadSelfAttention.forward: scaled dot products, softmax, weighted sums, projection
        # hint: with the heads as an axis of its own, q, k and v are (batch, heads, tokens, dim // heads).
        # hint: keep the weights before dropout for those who ask for them.
        batch, tokens, dim = x.shape
        q, k, v = self.qkv(x).view(batch, tokens, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        weights = (q @ k.transpose(-2, -1) * self.scale).softmax(dim=-1)
        joined = (self.dropout(weights) @ v).transpose(1, 2).reshape(batch, tokens, dim)
        y = self.out(joined)
        return (y, weights) if return_weights else y
        # <<<


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
        # >>> TODO EncoderBlock.__init__: two norms, the attention, the MLP
        hidden = int(dim * mlp_ratio)
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attention = MultiHeadSelfAttention(dim, heads, dropout)
        self.mlp = nn.Sequential(
            nn.Linear(dim, hidden),
            nn.GELU(),
            nn.Dropout(dropout),
            nn.Linear(hidden, dim),
            nn.Dropout(dropout),
        )
        # <<<

    def forward(self, x):
        # >>> TODO EncoderBlock.forward: the two residual sub-layers
        # hint: what is added is the result for the normalized tokens; what it is added to is not normalized.
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))
        # <<<


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
        # >>> TODO VisionTransformer.__init__: patches, class token, positions, blocks, norm, head
        # hint: what is learned but is not a layer (class token, positions) is an nn.Parameter.
        # hint: fixed positions are a buffer: self.register_buffer("positions", ...).
        tokens = (image_size // patch_size) ** 2 + (pool == "cls")
        self.pool = pool
        self.patches = PatchEmbedding(image_size, patch_size, in_channels, dim)
        if pool == "cls":
            self.class_token = nn.Parameter(0.02 * torch.randn(1, 1, dim))
        if positions == "sinusoidal":
            self.register_buffer("positions", sinusoidal_positions(tokens, dim)[None])
        else:
            self.positions = nn.Parameter(0.02 * torch.randn(1, tokens, dim))
        self.dropout = nn.Dropout(dropout)
        self.blocks = nn.ModuleList([EncoderBlock(dim, heads, mlp_ratio, dropout) for _ in range(depth)])
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, num_classes)
        # <<<

    # >>> SOLUTION
    def tokens(self, images):
        """What goes into the first block, (batch, tokens, dim)."""
        x = self.patches(images)
        if self.pool == "cls":
            x = torch.cat([self.class_token.expand(len(x), -1, -1), x], dim=1)
        return self.dropout(x + self.positions)

    # <<<
    def forward(self, images):
        # >>> TODO VisionTransformer.forward: images to tokens, through the blocks, to scores
        x = self.tokens(images)
        for block in self.blocks:
            x = block(x)
        x = self.norm(x)
        return self.head(x[:, 0] if self.pool == "cls" else x.mean(dim=1))
        # <<<

    def attention(self, images):
        # >>> TODO VisionTransformer.attention: the attention weights of the last block
        # hint: run all blocks but the last; the last one's attention gets its *normalized* tokens.
        x = self.tokens(images)
        for block in self.blocks[:-1]:
            x = block(x)
        last = self.blocks[-1]
        return last.attention(last.norm1(x), return_weights=True)[1]
        # <<<


# >>> ONLY full
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
    # >>> TODO attention_map: the last block's attention as a picture
    # hint: tokens are patches row by row, so the patches' values become a grid by reshape.
    # hint: whether there is a class token shows in the number of tokens: one more than a square.
    was_training = model.training
    model.eval()
    with torch.no_grad():
        weights = model.attention(image[None].to(next(model.parameters()).device))[0].mean(dim=0).cpu()
    model.train(was_training)
    side = math.isqrt(len(weights))
    row = weights.mean(dim=0) if side * side == len(weights) else weights[0, 1:]
    grid = row.reshape(1, 1, side, side)
    grid = grid / grid.max()
    return F.interpolate(grid, size=tuple(image.shape[1:]), mode="nearest")[0, 0]
    # <<<


# <<< ONLY


# >>> ONLY full
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
        # >>> TODO BasicBlock.__init__: both convolutions with their norms, and the shortcut
        # hint: the shape changes with the channels and with the stride.
        self.conv1 = nn.Conv2d(in_channels, channels, 3, stride=stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)
        self.shortcut = nn.Sequential()
        if stride != 1 or in_channels != channels:
            self.shortcut = nn.Sequential(
                nn.Conv2d(in_channels, channels, 1, stride=stride, bias=False), nn.BatchNorm2d(channels)
            )
        # <<<

    def forward(self, x):
        # >>> TODO BasicBlock.forward: both ways, added, through a ReLU
        y = F.relu(self.bn1(self.conv1(x)))
        y = self.bn2(self.conv2(y))
        return F.relu(y + self.shortcut(x))
        # <<<


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
        # >>> TODO ResNet18.__init__: stem, eight BasicBlocks, linear layer
        self.stem = nn.Sequential(
            nn.Conv2d(3, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU()
        )
        blocks, channels = [], width
        for group in range(4):
            for number in range(2):
                wider = width * 2**group
                blocks.append(BasicBlock(channels, wider, stride=2 if group > 0 and number == 0 else 1))
                channels = wider
        self.blocks = nn.Sequential(*blocks)
        self.head = nn.Linear(channels, num_classes)
        # <<<

    def forward(self, images):
        # >>> TODO ResNet18.forward: images to scores
        return self.head(self.blocks(self.stem(images)).mean(dim=(2, 3)))
        # <<<


# <<< ONLY


# %%
def parameter_table(model):
    """How many numbers each part of a model holds.

    Args:
        model: Any module.

    Returns:
        A list of (name, parameters), as fine as you like, whose numbers add up to all of the model's
        parameters, including those outside any layer and those that are not learned.
    """
    # >>> TODO parameter_table: the parts of a model with their numbers of parameters
    # hint: named_children misses parameters of the model itself; named_parameters has all of them.
    table = {}
    for name, parameter in model.named_parameters():
        part = name.split(".")[0]
        table[part] = table.get(part, 0) + parameter.numel()
    return list(table.items())
    # <<<


# %% [markdown]
# ## Training
#
# The learning rate rises and falls from batch to batch; the weights that count are those of the epoch with
# the best *validation* accuracy.
# >>> ONLY full
# One function trains either model.
# <<< ONLY


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
    # >>> TODO warmup_cosine: linear warm-up, then half a cosine
    if step < warmup_steps:
        return step / warmup_steps
    if step >= total_steps:
        return 0.0
    progress = (step - warmup_steps) / (total_steps - warmup_steps)
    return 0.5 * (1 + math.cos(math.pi * progress))
    # <<<


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
    # >>> TODO train_epoch: a step of the optimizer and of the scheduler for each batch; the means over images
    # hint: a batch's mean counts as often as the batch has images.
    model.train()
    total, correct, count = 0.0, 0, 0
    for images, labels in loader:
        images, labels = images.to(device), labels.to(device)
        optimizer.zero_grad()
        scores = model(images)
        loss = criterion(scores, labels)
        loss.backward()
        optimizer.step()
        if scheduler is not None:
            scheduler.step()
        total += loss.item() * len(labels)
        correct += (scores.argmax(dim=1) == labels).sum().item()
        count += len(labels)
    return total / count, correct / count
    # <<<


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
    # >>> TODO evaluate: losses, predictions and probabilities of all images
    model.eval()
    total, targets, scores = 0.0, [], []
    with torch.no_grad():
        for images, labels in loader:
            batch = model(images.to(device))
            total += criterion(batch, labels.to(device)).item() * len(labels)
            targets.append(labels)
            scores.append(batch.cpu())
    targets, probabilities = torch.cat(targets), torch.cat(scores).softmax(dim=1)
    predictions = probabilities.argmax(dim=1)
    return {
        "loss": total / len(targets),
        "accuracy": (predictions == targets).float().mean().item(),
        "targets": targets,
        "predictions": predictions,
        "probabilities": probabilities,
    }
    # <<<


# %%
def fit(model, loaders, epochs, device):
    """Trains a model, and leaves it with the weights of its best epoch.

    Optimizer and schedule are made in here (AdamW for the ViT; the schedule's length follows from `epochs`).
    The best epoch is the one with the highest validation accuracy as `evaluate` gives it; of equals, the
    first.

    Args:
        # >>> ONLY full
        model: A VisionTransformer or a ResNet18.
        # <<< ONLY
        # >>> ONLY core
        model: A VisionTransformer.
        # <<< ONLY
        loaders: A dict with 'train' and 'validation'.
        epochs: How many passes over the training images.
        device: Where to train.

    Returns:
        The history, for `plot_learning_curves`: losses and accuracies of training and validation, epoch by
        epoch.
    """
    # >>> TODO fit: train epoch by epoch, and restore the weights of the best
    # hint: model.state_dict() refers to the weights, which go on changing: keep a copy.
    model.to(device)
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
    optimizer = optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.05)
    steps = epochs * len(loaders["train"])
    scheduler = optim.lr_scheduler.LambdaLR(optimizer, lambda step: warmup_cosine(step, steps // 10, steps))
    history = {"train_loss": [], "train_accuracy": [], "validation_loss": [], "validation_accuracy": []}
    best, weights = -1.0, None
    for epoch in range(epochs):
        loss, accuracy = train_epoch(model, loaders["train"], criterion, optimizer, scheduler, device)
        found = evaluate(model, loaders["validation"], criterion, device)
        history["train_loss"].append(loss)
        history["train_accuracy"].append(accuracy)
        history["validation_loss"].append(found["loss"])
        history["validation_accuracy"].append(found["accuracy"])
        print(f"epoch {epoch + 1}: training {accuracy:.4f}, validation {found['accuracy']:.4f}")
        if found["accuracy"] > best:
            best = found["accuracy"]
            weights = {name: value.detach().clone() for name, value in model.state_dict().items()}
    model.load_state_dict(weights)
    return history
    # <<<


# %% [markdown]
# ## Measures
#
# With numpy alone: `sklearn.metrics` and torchmetrics are what you build here.


# %%
# >>> SOLUTION
def area_under_curve(positive, scores):
    """Of the ROC curve: how often positives outscore negatives, ties counting half; NaN without either.

    Source: Hanley and McNeil (1982), by the ranks of the scores.
    """
    positives = int(positive.sum())
    negatives = len(positive) - positives
    if not positives or not negatives:
        return float("nan")
    _, inverse, counts = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[inverse]
    return (ranks[positive].sum() - positives * (positives + 1) / 2) / (positives * negatives)


def weighted_mean(values, weights):
    """Over the values that are numbers, their weights adding up to 1; NaN if there are none."""
    known = ~np.isnan(values) & (weights > 0)
    return (
        float((values[known] * weights[known]).sum() / weights[known].sum()) if known.any() else float("nan")
    )


# <<<
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
    # >>> TODO classification_metrics: confusion matrix, precision, recall, F1, ROC-AUC and their means
    # hint: precision divides by a column's sum of the confusion matrix, recall by a row's.
    targets, probabilities = np.asarray(targets), np.asarray(probabilities)
    classes = probabilities.shape[1]
    confusion = np.zeros((classes, classes), dtype=np.int64)
    np.add.at(confusion, (targets, probabilities.argmax(axis=1)), 1)
    hits, support, predicted = confusion.diagonal(), confusion.sum(axis=1), confusion.sum(axis=0)
    found = {
        "precision": hits / np.maximum(predicted, 1),
        "recall": hits / np.maximum(support, 1),
        "f1": 2 * hits / np.maximum(predicted + support, 1),
        "roc_auc": np.array([area_under_curve(targets == k, probabilities[:, k]) for k in range(classes)]),
    }
    means = {}
    for name, values in found.items():
        means[f"macro_{name}"] = weighted_mean(values, (support > 0).astype(float))
        means[f"weighted_{name}"] = weighted_mean(values, support.astype(float))
    return {
        "confusion": confusion,
        "support": support,
        "accuracy": hits.sum() / len(targets),
        **found,
        **means,
    }
    # <<<


# %%
def export_metrics(metrics, path):
    """Writes measures as a CSV with the columns metric and value.

    Args:
        metrics: A dict of numbers, arrays (n,) and further dicts. Matrices may be left out.
        path: Where to.

    A nested name joins the names by dots: `vit.recall.cat`; `recall.3` for the fourth number of an array.
    """

    # >>> TODO export_metrics: nested measures as rows of a table
    # hint: a function that calls itself for each dict and each array is the shortest.
    def rows(value, name):
        if isinstance(value, dict):
            for key, inner in value.items():
                yield from rows(inner, f"{name}.{key}" if name else str(key))
        elif np.ndim(value) == 1:
            for number, inner in enumerate(value):
                yield from rows(inner, f"{name}.{number}")
        elif np.ndim(value) == 0:
            yield name, float(value)

    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["metric", "value"])
        writer.writerows(rows(metrics, ""))
    # <<<


# %% [markdown]
# ## Pictures


# %%
def plot_learning_curves(history):
    """Draws loss and accuracy of training and validation over the epochs, with axes that say what they are.

    Args:
        history: What `fit` returned.
    """
    # >>> TODO plot_learning_curves: the history as curves
    epochs = range(1, len(history["train_loss"]) + 1)
    _, axes = plt.subplots(1, 2, figsize=(11, 4))
    for ax, what in zip(axes, ("loss", "accuracy"), strict=True):
        ax.plot(epochs, history[f"train_{what}"], marker="o", label="training")
        ax.plot(epochs, history[f"validation_{what}"], marker="o", label="validation")
        ax.set_xlabel("epoch")
        ax.set_ylabel(what)
        ax.legend()
    plt.tight_layout()
    plt.show()
    # <<<


# %%
def plot_confusion_matrix(matrix, class_names):
    """Draws a confusion matrix with its counts, the true classes as rows, the names on both axes.

    Args:
        matrix: (classes, classes).
        class_names: The names, in the order of the labels.
    """
    # >>> TODO plot_confusion_matrix: the matrix as a labeled picture
    _, ax = plt.subplots(figsize=(8, 7))
    ax.imshow(matrix, cmap="Blues")
    for row, counts in enumerate(matrix):
        for column, count in enumerate(counts):
            ax.text(column, row, int(count), ha="center", va="center")
    ax.set_xticks(range(len(class_names)), class_names, rotation=45, ha="right")
    ax.set_yticks(range(len(class_names)), class_names)
    ax.set_xlabel("Predicted class")
    ax.set_ylabel("True class")
    plt.tight_layout()
    plt.show()
    # <<<


# %%
def plot_roc(targets, probabilities, class_names):
    """Draws the ROC curve of each class against all others, from (0, 0) to (1, 1), named with its class.

    Args:
        targets: (n,).
        probabilities: (n, classes).
        class_names: The names, in the order of the labels.
    """
    # >>> TODO plot_roc: a curve for each class that has positives and negatives
    # hint: each different probability is a threshold: what is at least as large is called positive.
    targets, probabilities = np.asarray(targets), np.asarray(probabilities)
    _, ax = plt.subplots(figsize=(6, 6))
    for label, name in enumerate(class_names):
        positive, scores = targets == label, probabilities[:, label]
        if positive.any() and not positive.all():
            thresholds = np.concatenate([[np.inf], np.unique(scores)[::-1]])
            hits = [(scores[positive] >= threshold).mean() for threshold in thresholds]
            alarms = [(scores[~positive] >= threshold).mean() for threshold in thresholds]
            ax.plot(alarms, hits, label=name)
    ax.plot([0, 1], [0, 1], color="gray", linestyle=":")
    ax.set_xlabel("False positive rate")
    ax.set_ylabel("True positive rate")
    ax.legend()
    plt.show()
    # <<<


# >>> ONLY full
# %%
# <<< ONLY
# >>> SOLUTION
def shown(image, mean, std):
    """An image as it was before it was normalized, (height, width, channels), from 0 to 1."""
    restored = image.cpu() * torch.tensor(std).view(-1, 1, 1) + torch.tensor(mean).view(-1, 1, 1)
    return restored.clamp(0, 1).permute(1, 2, 0).numpy()


# <<<
# >>> ONLY full
def plot_attention(model, images, labels, class_names, mean, std):
    """Draws, for each image, the image as it was, its attention map, and the map laid over the image.

    Args:
        model: A VisionTransformer.
        images: Normalized, (n, channels, height, width).
        labels: (n,), whose names are shown with the images.
        class_names: The names, in the order of the labels.
        mean, std: Of each channel, by which the images were normalized.
    """
    # >>> TODO plot_attention: image, map and overlay, side by side
    _, axes = plt.subplots(len(images), 3, figsize=(7, 2.4 * len(images)), squeeze=False)
    for row, image, label in zip(axes, images, labels, strict=True):
        picture, heat = shown(image, mean, std), attention_map(model, image)
        row[0].imshow(picture)
        row[0].set_title(class_names[int(label)])
        row[1].imshow(heat, cmap="viridis")
        row[1].set_title("attention")
        row[2].imshow(picture)
        row[2].imshow(heat, cmap="jet", alpha=0.45)
        row[2].set_title("both")
        for ax in row:
            ax.axis("off")
    plt.tight_layout()
    plt.show()
    # <<<


# <<< ONLY


# %%
def plot_top3(images, labels, probabilities, class_names, mean, std):
    """Draws each image as it was, with its true class and the three likeliest ones with their probabilities.

    Args:
        # >>> ONLY full
        images, labels, class_names, mean, std: As in `plot_attention`.
        # <<< ONLY
        # >>> ONLY core
        images: Normalized, (n, channels, height, width).
        labels: (n,), the true classes.
        class_names: The names, in the order of the labels.
        mean, std: Of each channel, by which the images were normalized.
        # <<< ONLY
        probabilities: (n, classes).
    """
    # >>> TODO plot_top3: images with the three likeliest classes
    _, axes = plt.subplots(1, len(images), figsize=(2.6 * len(images), 3.4), squeeze=False)
    for ax, image, label, shares in zip(axes[0], images, labels, probabilities, strict=True):
        ax.imshow(shown(image, mean, std))
        best = torch.as_tensor(shares).topk(3)
        lines = [f"{class_names[int(k)]} {float(p):.1%}" for p, k in zip(*best, strict=True)]
        ax.set_title("\n".join([f"true: {class_names[int(label)]}", *lines]), fontsize=8)
        ax.axis("off")
    plt.tight_layout()
    plt.show()
    # <<<


# %% [markdown]
# >>> ONLY full
# ## Train both models
#
# These are the numbers to tune: the arguments of both models, and the epochs. README.md says how large they
# may be.
# <<< ONLY
# >>> ONLY core
# ## Train it
#
# These are the numbers to tune: the model's arguments, and the epochs. README.md says how large they may be.
# <<< ONLY

# %%
# >>> ONLY core
# >>> INSTEAD VIT_EPOCHS = 1
# >>> ONLY gpu
VIT_EPOCHS = 100
# <<< ONLY
# >>> ONLY laptop
VIT_EPOCHS = 15
# <<< ONLY
# <<<
# <<< ONLY
# >>> ONLY full
# >>> INSTEAD VIT_EPOCHS = RESNET_EPOCHS = 1
# >>> ONLY gpu
VIT_EPOCHS, RESNET_EPOCHS = 100, 50
# <<< ONLY
# >>> ONLY laptop
VIT_EPOCHS, RESNET_EPOCHS = 15, 10
# <<< ONLY
# <<<
# <<< ONLY

start = time.time()
# >>> INSTEAD vit = VisionTransformer(dim=48, depth=2, heads=4, dropout=0.0, num_classes=len(class_names))
# >>> ONLY gpu
vit = VisionTransformer(dim=192, depth=9, heads=8, mlp_ratio=4.0, dropout=0.1, num_classes=len(class_names))
# <<< ONLY
# >>> ONLY laptop
vit = VisionTransformer(dim=96, depth=6, heads=4, mlp_ratio=2.0, dropout=0.0, num_classes=len(class_names))
# <<< ONLY
# <<<
vit_history = fit(vit, loaders, VIT_EPOCHS, device)
torch.save(vit.state_dict(), f"{STUDENT_ID}_CIFAR10_vit.pth")
print(f"The ViT took {time.time() - start:.0f} s.")

# >>> ONLY full
# %%
start = time.time()
# >>> ONLY gpu
resnet = ResNet18(num_classes=len(class_names), width=64)
# <<< ONLY
# >>> ONLY laptop
resnet = ResNet18(num_classes=len(class_names), width=16)
# <<< ONLY
resnet_history = fit(resnet, loaders, RESNET_EPOCHS, device)
torch.save(resnet.state_dict(), f"{STUDENT_ID}_CIFAR10_resnet.pth")
print(f"The ResNet took {time.time() - start:.0f} s.")
# <<< ONLY

# %% [markdown]
# >>> ONLY full
# ## Compare them
# <<< ONLY
# >>> ONLY core
# ## Measure it
# <<< ONLY

# %%
criterion = nn.CrossEntropyLoss()
measures = {}
# >>> ONLY core
trained = [("vit", vit, vit_history)]
# <<< ONLY
# >>> ONLY full
trained = [("vit", vit, vit_history), ("resnet", resnet, resnet_history)]
# <<< ONLY
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
# >>> ONLY full
plot_attention(vit, images, labels, class_names, MEAN, STD)
# <<< ONLY
found = vit.eval()(images.to(device)).softmax(dim=1).detach().cpu()
plot_top3(images, labels, found, class_names, MEAN, STD)

# >>> ONLY full
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
    # >>> INSTEAD rows = []  # to do: three seeds of BASE, and six trainings that change one value each
    changes = [
        {"patch_size": 4}, {"dim": 96}, {"depth": 4}, {"heads": 1}, {"mlp_ratio": 4.0},
        {"positions": "sinusoidal"},
    ]  # fmt: skip
    rows = [trained_row(BASE, seed) for seed in range(3)]
    rows += [trained_row({**BASE, **change}, 0) for change in changes]
    # <<<
    with open(f"{STUDENT_ID}_study.csv", "w", newline="", encoding="utf-8") as file:
        table = csv.DictWriter(file, COLUMNS)
        table.writeheader()
        table.writerows(rows)
# <<< ONLY
