# %% [markdown]
# # A Vision Transformer for CIFAR-10, opened up and compared with a ResNet
#
# You build a Vision Transformer (ViT) and a small ResNet from scratch, train both by the same function,
# measure them as a paper would, and look at what the ViT attends to. Every part that you write says `TODO`:
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
train_transform = plain_transform  # to tune: crops and flips
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
        # Hint: a convolution whose stride is its kernel size maps each patch by itself.
        raise NotImplementedError("TODO PatchEmbedding.__init__: the linear map from a patch to a token")

    def forward(self, images):
        # Hint: after the convolution the patches are still a grid: (batch, dim, rows, columns).
        raise NotImplementedError("TODO PatchEmbedding.forward: images to tokens")


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
    raise NotImplementedError("TODO sinusoidal_positions: the table of sines and cosines")


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
        raise NotImplementedError(
            "TODO MultiHeadSelfAttention.__init__: the projections to q, k and v, and the output projection"
        )

    def forward(self, x, return_weights=False):
        # Hint: with the heads as an axis of its own, q, k and v are (batch, heads, tokens, dim // heads).
        # Hint: keep the weights before dropout for those who ask for them.
        raise NotImplementedError(
            "TODO MultiHeadSelfAttention.forward: scaled dot products, softmax, weighted sums, projection"
        )


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
        raise NotImplementedError("TODO EncoderBlock.__init__: two norms, the attention, the MLP")

    def forward(self, x):
        # Hint: what is added is the result for the normalized tokens; what it is added to is not normalized.
        raise NotImplementedError("TODO EncoderBlock.forward: the two residual sub-layers")


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
        # Hint: what is learned but is not a layer (class token, positions) is an nn.Parameter.
        # Hint: fixed positions are a buffer: self.register_buffer("positions", ...).
        raise NotImplementedError(
            "TODO VisionTransformer.__init__: patches, class token, positions, blocks, norm, head"
        )

    def forward(self, images):
        raise NotImplementedError(
            "TODO VisionTransformer.forward: images to tokens, through the blocks, to scores"
        )

    def attention(self, images):
        # Hint: run all blocks but the last; the last one's attention gets its *normalized* tokens.
        raise NotImplementedError("TODO VisionTransformer.attention: the attention weights of the last block")


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
    # Hint: tokens are patches row by row, so the patches' values become a grid by reshape.
    # Hint: whether there is a class token shows in the number of tokens: one more than a square.
    raise NotImplementedError("TODO attention_map: the last block's attention as a picture")


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
        # Hint: the shape changes with the channels and with the stride.
        raise NotImplementedError(
            "TODO BasicBlock.__init__: both convolutions with their norms, and the shortcut"
        )

    def forward(self, x):
        raise NotImplementedError("TODO BasicBlock.forward: both ways, added, through a ReLU")


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
        raise NotImplementedError("TODO ResNet18.__init__: stem, eight BasicBlocks, linear layer")

    def forward(self, images):
        raise NotImplementedError("TODO ResNet18.forward: images to scores")


# %%
def parameter_table(model):
    """How many numbers each part of a model holds.

    Args:
        model: Any module.

    Returns:
        A list of (name, parameters), as fine as you like, whose numbers add up to all of the model's
        parameters, including those outside any layer and those that are not learned.
    """
    # Hint: named_children misses parameters of the model itself; named_parameters has all of them.
    raise NotImplementedError("TODO parameter_table: the parts of a model with their numbers of parameters")


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
    raise NotImplementedError("TODO warmup_cosine: linear warm-up, then half a cosine")


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
    raise NotImplementedError(
        "TODO train_epoch: a step of the optimizer and of the scheduler for each batch; the means over images"
    )


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
    raise NotImplementedError("TODO evaluate: losses, predictions and probabilities of all images")


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
    raise NotImplementedError("TODO fit: train epoch by epoch, and restore the weights of the best")


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
    # Hint: precision divides by a column's sum of the confusion matrix, recall by a row's.
    raise NotImplementedError(
        "TODO classification_metrics: confusion matrix, precision, recall, F1, ROC-AUC and their means"
    )


# %%
def export_metrics(metrics, path):
    """Writes measures as a CSV with the columns metric and value.

    Args:
        metrics: A dict of numbers, arrays (n,) and further dicts. Matrices may be left out.
        path: Where to.

    A nested name joins the names by dots: `vit.recall.cat`; `recall.3` for the fourth number of an array.
    """

    # Hint: a function that calls itself for each dict and each array is the shortest.
    raise NotImplementedError("TODO export_metrics: nested measures as rows of a table")


# %% [markdown]
# ## Pictures


# %%
def plot_learning_curves(history):
    """Draws loss and accuracy of training and validation over the epochs, with axes that say what they are.

    Args:
        history: What `fit` returned.
    """
    raise NotImplementedError("TODO plot_learning_curves: the history as curves")


# %%
def plot_confusion_matrix(matrix, class_names):
    """Draws a confusion matrix with its counts, the true classes as rows, the names on both axes.

    Args:
        matrix: (classes, classes).
        class_names: The names, in the order of the labels.
    """
    raise NotImplementedError("TODO plot_confusion_matrix: the matrix as a labeled picture")


# %%
def plot_roc(targets, probabilities, class_names):
    """Draws the ROC curve of each class against all others, from (0, 0) to (1, 1), named with its class.

    Args:
        targets: (n,).
        probabilities: (n, classes).
        class_names: The names, in the order of the labels.
    """
    # Hint: each different probability is a threshold: what is at least as large is called positive.
    raise NotImplementedError("TODO plot_roc: a curve for each class that has positives and negatives")


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
    raise NotImplementedError("TODO plot_attention: image, map and overlay, side by side")


# %%
def plot_top3(images, labels, probabilities, class_names, mean, std):
    """Draws each image as it was, with its true class and the three likeliest ones with their probabilities.

    Args:
        images, labels, class_names, mean, std: As in `plot_attention`.
        probabilities: (n, classes).
    """
    raise NotImplementedError("TODO plot_top3: images with the three likeliest classes")


# %% [markdown]
# ## Train both models
#
# These are the numbers to tune: the arguments of both models, and the epochs. README.md says how large they
# may be.

# %%
VIT_EPOCHS = RESNET_EPOCHS = 1

start = time.time()
vit = VisionTransformer(dim=48, depth=2, heads=4, dropout=0.0, num_classes=len(class_names))
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
    rows = []  # to do: three seeds of BASE, and six trainings that change one value each
    with open(f"{STUDENT_ID}_study.csv", "w", newline="", encoding="utf-8") as file:
        table = csv.DictWriter(file, COLUMNS)
        table.writeheader()
        table.writerows(rows)
