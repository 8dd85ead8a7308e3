# >>> INSTRUCTORS
# Reference solution of assignment 3, complete as the course hands it out. Students never receive this file:
# `grader template vit_finetune` makes their homework.py and homework.ipynb from it. The marks are those of
# docs/instructor.md.
# <<<
# %% [markdown]
# # Fine-tuning a pretrained Vision Transformer
#
# You are given a small Vision Transformer that others have trained on other classes: `handout.py` builds it
# and names its parts. You adapt it to ten classes with few images: an honest split, mixed images, frozen and
# unfrozen parts, two stages, early stopping. Every part that you write says `TODO`: read its docstring,
# replace the line `raise NotImplementedError(...)` by your code, and run `pytest` in this folder to see how
# far you are.
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
from handout import build_model, parts
from torch import nn, optim
from torch.utils.data import DataLoader, Subset
from torchvision import datasets, transforms

STUDENT_ID = "400101200"  # put your own student number here
RATE = 3e-3  # to tune: of stage 1; stage 2 begins with a tenth of it
PATIENCE = 4  # to tune: epochs of stage 2 without a better validation accuracy
BATCH_SIZE = 64
MEAN, STD = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)  # of CIFAR-10's training images, red to blue

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(42)

# %% [markdown]
# ## The split
#
# scikit-learn's `train_test_split` and its relatives are what you build here.


# %%
def stratified_split(labels, per_class, seed):
    """Splits images into parts with exactly as many images of every class as is asked for.

    Args:
        labels: (n,), the class of each image: an array, a tensor or a list of whole numbers.
        per_class: How many images of every class each part gets, as in (70, 20, 10).
        seed: The same seed and the same labels give the same parts; another seed gives others.

    Returns:
        A tuple with an array of indices for each part. No index is in two parts.

    Raises:
        ValueError: A class has fewer images than the parts need.
    """
    # >>> TODO stratified_split: per_class[k] images of every class for part k, disjoint
    # hint: shuffle the indices of each class by itself, and cut them one part after the other.
    labels, random = np.asarray(labels), np.random.default_rng(seed)
    kept = [[] for _ in per_class]
    for label in np.unique(labels):
        rows = random.permutation(np.flatnonzero(labels == label))
        if len(rows) < sum(per_class):
            raise ValueError(f"class {label} has {len(rows)} images, and {sum(per_class)} are needed")
        ends = np.cumsum(per_class)
        for part, end, count in zip(kept, ends, per_class, strict=True):
            part.append(rows[end - count : end])
    return tuple(np.concatenate(part) for part in kept)
    # <<<


# %% [markdown]
# ## Mixed images
#
# Ready mixup and cutmix helpers (of timm, torchvision and others) are what you build here. `generator` is a
# `numpy.random.Generator`: draw everything from it, in whatever order you like, so that the same state gives
# the same result.


# %%
def mixup(images, labels, alpha, generator):
    """Mixes every image with another one of the batch.

    Args:
        images: (batch, channels, height, width). They stay as they were.
        labels: (batch,), whole numbers.
        alpha: The share is drawn from Beta(alpha, alpha), one for the batch; 0: it is 1.
        generator: Where everything is drawn from.

    Returns:
        (mixed images, labels_a, labels_b, lam): image i of the result is
        `lam * images[i] + (1 - lam) * images[j]`, where j runs through a permutation of the batch;
        `labels_a[i]` is the label of image i, `labels_b[i]` that of image j; `lam` is a number.
    """
    # >>> TODO mixup: a share, a permutation, and the labels of both sides
    # hint: one permutation, for the images and for their labels.
    lam = float(generator.beta(alpha, alpha)) if alpha > 0 else 1.0
    order = torch.from_numpy(generator.permutation(len(images))).to(images.device)
    return lam * images + (1 - lam) * images[order], labels, labels[order], lam
    # <<<


# %%
def cutmix(images, labels, alpha, generator):
    """Puts a rectangle of another image of the batch into every image, at the same place, which is drawn.

    Args:
        images, labels, alpha, generator: As in `mixup`. Height and width may differ.

    Returns:
        (mixed images, labels_a, labels_b, lam) as `mixup` does: one rectangle, the same for all images. `lam`
        is the share of pixels that are image i's own: what was drawn, corrected by the rectangle as it really
        is, since it may be clipped at the border and its sides are whole pixels.
    """
    # >>> TODO cutmix: a rectangle of about (1 - lam) of the area, cut out of the other images
    # hint: write into a copy; what you write into the batch that you read from is read again.
    lam = float(generator.beta(alpha, alpha)) if alpha > 0 else 1.0
    height, width = images.shape[-2:]
    side = math.sqrt(1 - lam)
    rows, columns = round(side * height), round(side * width)
    row, column = int(generator.integers(height)), int(generator.integers(width))
    top, bottom = max(row - rows // 2, 0), min(row - rows // 2 + rows, height)
    left, right = max(column - columns // 2, 0), min(column - columns // 2 + columns, width)
    order = torch.from_numpy(generator.permutation(len(images))).to(images.device)
    mixed = images.clone()
    mixed[..., top:bottom, left:right] = images[order][..., top:bottom, left:right]
    return mixed, labels, labels[order], 1 - (bottom - top) * (right - left) / (height * width)
    # <<<


# %%
def mixed_loss(criterion, logits, labels_a, labels_b, lam):
    """The loss of mixed images: that of both labels, weighted by their shares.

    Args:
        criterion: The mean loss of a batch from (logits, labels). It may smooth labels by itself.
        logits: (batch, classes).
        labels_a, labels_b, lam: As `mixup` gives them.

    Returns:
        A tensor of one number, with gradients.
    """
    # >>> TODO mixed_loss: lam of the one, the rest of the other
    return lam * criterion(logits, labels_a) + (1 - lam) * criterion(logits, labels_b)
    # <<<


# %% [markdown]
# ## What learns
#
# `parts(model)` gives head, blocks and norm, whichever model it is.


# %%
def freeze_backbone(model):
    """Exactly the head learns afterwards, whatever learned before: all else needs no gradient.

    Args:
        model: One that `parts` knows. It is changed in place; nothing has to be returned.
    """
    # >>> TODO freeze_backbone: no parameter but the head's requires gradients
    head, _, _ = parts(model)
    model.requires_grad_(False)
    head.requires_grad_(True)
    # <<<


# %%
def unfreeze(model, blocks=None):
    """Exactly the head, the final norm and the last blocks learn afterwards, whatever learned before.

    Args:
        model: One that `parts` knows. It is changed in place; nothing has to be returned.
        blocks: How many of the last blocks learn; 0: none, head and norm alone; None: everything learns,
            patches, class token and positions too.
    """
    # >>> TODO unfreeze: head, norm and the last blocks, or everything
    # hint: a list's [-0:] is the whole list.
    head, layers, norm = parts(model)
    model.requires_grad_(blocks is None)
    for part in (head, norm, *(layers[len(layers) - (blocks or 0) :])):
        part.requires_grad_(True)
    # <<<


# %% [markdown]
# ## Training and evaluation


# %%
def train_one_epoch(model, loader, optimizer, criterion, device, mix=None):
    """Trains for one pass over the data.

    Args:
        model: Put into training mode here; but blocks (as `parts` gives them) of which no parameter requires
            gradients are in evaluation mode.
        loader: Yields (images, labels). The last batch may be smaller than the others.
        optimizer: Holds the parameters that learn.
        criterion: The mean loss of a batch from (logits, labels).
        device: Where the model is; batches are moved there.
        mix: None, or a function: `mix(images, labels)` gives (images, labels_a, labels_b, lam), as `mixup`
            does with its other arguments filled in.

    Returns:
        (loss, accuracy): the means over all images, as they were when each batch was trained on. With `mix`,
        the loss is that of the mixed images, and a batch's hits are
        `lam * hits of labels_a + (1 - lam) * hits of labels_b`.
    """
    # >>> TODO train_one_epoch: a step for each batch, mixed or not; the means over images
    # hint: a batch's mean counts as often as the batch has images.
    model.train()
    for block in parts(model)[1]:
        if not any(weights.requires_grad for weights in block.parameters()):
            block.eval()
    total, correct, count = 0.0, 0.0, 0
    for images, labels in loader:
        images, labels = images.to(device), labels.to(device)
        images, labels_a, labels_b, lam = mix(images, labels) if mix else (images, labels, labels, 1.0)
        optimizer.zero_grad()
        logits = model(images)
        loss = mixed_loss(criterion, logits, labels_a, labels_b, lam)
        loss.backward()
        optimizer.step()
        predictions = logits.argmax(dim=1)
        hits = lam * (predictions == labels_a).sum() + (1 - lam) * (predictions == labels_b).sum()
        total += loss.item() * len(labels)
        correct += float(hits)
        count += len(labels)
    return total / count, correct / count
    # <<<


# %%
def evaluate(model, loader, criterion, device):
    """Measures a model on images that it is not trained on; nothing is mixed here.

    Args:
        model: Put into evaluation mode here; no gradients are computed.
        loader, criterion, device: As in `train_one_epoch`.

    Returns:
        (loss, accuracy, targets, predictions): the means over all images; and (n,) each, whole numbers, in
        the loader's order.
    """
    # >>> TODO evaluate: loss, accuracy and predictions of all images
    model.eval()
    total, targets, predictions = 0.0, [], []
    with torch.no_grad():
        for images, labels in loader:
            logits = model(images.to(device))
            total += criterion(logits, labels.to(device)).item() * len(labels)
            targets.append(labels)
            predictions.append(logits.argmax(dim=1).cpu())
    targets, predictions = torch.cat(targets), torch.cat(predictions)
    return total / len(targets), (predictions == targets).float().mean().item(), targets, predictions
    # <<<


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
        # >>> TODO EarlyStopping.__init__: nothing was seen yet
        self.patience, self.min_delta = patience, min_delta
        self.best, self.weights, self.waited = -math.inf, None, 0
        # <<<

    def step(self, value, model):
        """Takes a value of validation, and a copy of the model's weights if it is an improvement.

        Returns:
            True at the `patience`-th step in a row without an improvement, else False. (What further steps
            return is free.)
        """
        # >>> TODO EarlyStopping.step: count, and copy the best
        # hint: state_dict() refers to the weights, which go on changing.
        if value > self.best + self.min_delta:
            self.best, self.waited = value, 0
            self.weights = {name: each.detach().clone() for name, each in model.state_dict().items()}
        else:
            self.waited += 1
        return self.waited >= self.patience
        # <<<

    def restore(self, model):
        """Puts the best weights back into the model; does nothing where there are none yet."""
        # >>> TODO EarlyStopping.restore: the best weights, if there are any
        if self.weights is not None:
            model.load_state_dict(self.weights)
        # <<<


# %%
def fit(model, loaders, epochs, device):
    """Adapts a pretrained model in two stages.

    Stage 1: exactly the head learns. Stage 2: everything learns, at a tenth of stage 1's rate, which half a
    cosine takes down to 0 (or nearly so) over the epochs of stage 2; an `EarlyStopping` of its own watches
    the validation accuracy, and may end the stage. In the end the model has the best weights of stage 2, or
    of both stages, by validation accuracy. Each stage has an optimizer, made when it is known what learns.
    Your accuracy is measured by this function: everything that your training needs is made in here.

    Args:
        model: As `build_model` gives it.
        loaders: A dict with 'train' and 'validation'; images are normalized.
        epochs: A pair: how many passes stage 1 has, and how many stage 2 has at most.
        device: Where to train.

    Returns:
        The history, for `plot_history`: a dict of lists, losses and accuracies of training and validation
        epoch by epoch, and whatever says where stage 2 begins.
    """
    # >>> TODO fit: the head first, then everything at a tenth of the rate, with early stopping
    # hint: freeze, make the optimizer, train; unfreeze, make the next optimizer, train.
    model.to(device)
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
    generator = np.random.default_rng(0)
    history = {"train_loss": [], "train_accuracy": [], "validation_loss": [], "validation_accuracy": []}
    history["stage"] = []

    def mix(images, labels):
        way = (mixup, cutmix, None, None)[generator.integers(4)]  # half of the batches stay as they are
        return way(images, labels, 0.2, generator) if way else (images, labels, labels, 1.0)

    def epoch(stage, optimizer):
        loss, accuracy = train_one_epoch(model, loaders["train"], optimizer, criterion, device, mix)
        found = evaluate(model, loaders["validation"], nn.CrossEntropyLoss(), device)
        for name, value in zip(history, (loss, accuracy, found[0], found[1], stage), strict=True):
            history[name].append(value)
        print(f"stage {stage}: training {accuracy:.4f}, validation {found[1]:.4f}")
        return found[1]

    freeze_backbone(model)
    optimizer = optim.AdamW([w for w in model.parameters() if w.requires_grad], lr=RATE, weight_decay=0.01)
    for _ in range(epochs[0]):
        epoch(1, optimizer)

    unfreeze(model)
    optimizer = optim.AdamW(model.parameters(), lr=RATE / 10, weight_decay=0.01)
    schedule = optim.lr_scheduler.CosineAnnealingLR(optimizer, max(epochs[1], 1))
    stopping = EarlyStopping(PATIENCE)
    for _ in range(epochs[1]):
        stop = stopping.step(epoch(2, optimizer), model)
        schedule.step()
        if stop:
            break
    stopping.restore(model)
    return history
    # <<<


# %%
def per_class_accuracy(targets, predictions, classes):
    """The accuracy within each class.

    Args:
        targets, predictions: (n,), whole numbers: arrays, tensors or lists.
        classes: How many classes there are.

    Returns:
        An array (classes,): the share of each class's images that are predicted as that class; NaN for a
        class that does not occur in `targets`.
    """
    # >>> TODO per_class_accuracy: hits by images, class by class
    targets, predictions = np.asarray(targets), np.asarray(predictions)
    found = np.full(classes, np.nan)
    for label in range(classes):
        own = targets == label
        if own.any():
            found[label] = (predictions[own] == label).mean()
    return found
    # <<<


# %% [markdown]
# ## Pictures


# %%
# >>> SOLUTION
def shown(image, mean, std):
    """An image as it was before it was normalized, (height, width, channels), from 0 to 1."""
    restored = image.cpu() * torch.tensor(std).view(-1, 1, 1) + torch.tensor(mean).view(-1, 1, 1)
    return restored.clamp(0, 1).permute(1, 2, 0).numpy()


# <<<
def show_patches(image, patch_size, mean, std):
    """Draws an image as it was, and its patches, each in a place of its own, as they lie in the image.

    Args:
        image: Normalized, (channels, height, width).
        patch_size: Height and width of a patch, in pixels.
        mean, std: Of each channel, by which the image was normalized.
    """
    # >>> TODO show_patches: the image, and a grid of its patches
    picture = shown(image, mean, std)
    plt.figure(figsize=(3, 3))
    plt.imshow(picture)
    plt.title("the image")
    rows, columns = picture.shape[0] // patch_size, picture.shape[1] // patch_size
    _, axes = plt.subplots(rows, columns, figsize=(4, 4), squeeze=False)
    for row in range(rows):
        for column in range(columns):
            top, left = row * patch_size, column * patch_size
            axes[row, column].imshow(picture[top : top + patch_size, left : left + patch_size])
            axes[row, column].axis("off")
    plt.show()
    # <<<


# %%
def show_attention(model, image, mean, std):
    """Draws an image as it was, and beside it what the class token of the last block attends to.

    What is drawn is the mean over the heads of the last block's attention weights (each a softmax over all
    tokens) in the row of the class token, in the columns of the patches: a map (rows, columns) of patches, or
    the same enlarged to the image's size.

    Args:
        model: The given one. Its mode and its weights stay as they are.
        image: Normalized, (channels, height, width).
        mean, std: Of each channel, by which the image was normalized.
    """
    # >>> TODO show_attention: the last block's attention of the class token
    # hint: a forward hook on blocks[-1].attn.qkv sees queries, keys and values.
    attention, kept = model.blocks[-1].attn, []
    hook = attention.qkv.register_forward_hook(lambda module, inputs, output: kept.append(output))
    with torch.no_grad():
        model(image[None].to(next(model.parameters()).device))
    hook.remove()
    tokens = kept[0].shape[1]
    q, k, _ = kept[0].reshape(tokens, 3, attention.num_heads, -1).permute(1, 2, 0, 3)
    weights = (q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5).softmax(dim=-1)
    side = math.isqrt(tokens - 1)
    heat = weights.mean(dim=0)[0, 1:].reshape(side, side).cpu().numpy()
    _, axes = plt.subplots(1, 2, figsize=(7, 3.5))
    axes[0].imshow(shown(image, mean, std))
    axes[0].set_title("the image")
    axes[1].imshow(heat, cmap="viridis")
    axes[1].set_title("attention of the class token")
    plt.show()
    # <<<


# %%
def plot_history(history):
    """Draws loss and accuracy of training and validation over the epochs, both stages in one, with a mark
    where stage 2 begins, and axes and curves that say what they are.

    Args:
        history: What `fit` returned.
    """
    # >>> TODO plot_history: the history as curves
    epochs = range(1, len(history["stage"]) + 1)
    _, axes = plt.subplots(1, 2, figsize=(11, 4))
    for ax, what in zip(axes, ("loss", "accuracy"), strict=True):
        ax.plot(epochs, history[f"train_{what}"], marker="o", label="training (mixed images)")
        ax.plot(epochs, history[f"validation_{what}"], marker="o", label="validation")
        ax.axvline(history["stage"].count(1) + 0.5, color="gray", linestyle=":", label="stage 2 begins")
        ax.set_xlabel("epoch")
        ax.set_ylabel(what)
        ax.legend()
    plt.show()
    # <<<


# %%
def plot_per_class(names, accuracies):
    """Draws a bar for each class, as long as its accuracy, with the class's name; axes say what they are.

    Args:
        names: Of the classes.
        accuracies: (classes,), as `per_class_accuracy` gives them; NaN is drawn as nothing.
    """
    # >>> TODO plot_per_class: a bar for each class
    _, ax = plt.subplots(figsize=(8, 4))
    ax.bar(range(len(names)), np.nan_to_num(np.asarray(accuracies, dtype=float)))
    ax.set_xticks(range(len(names)), names, rotation=45, ha="right")
    ax.set_ylim(0, 1)
    ax.set_xlabel("class")
    ax.set_ylabel("accuracy")
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
# >>> INSTEAD train_transform = plain_transform  # to tune: crops and flips
train_transform = transforms.Compose(
    [
        transforms.RandomCrop(32, padding=2),
        transforms.RandomHorizontalFlip(),
        transforms.ToTensor(),
        transforms.Normalize(MEAN, STD),
    ]
)
# <<<
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
# >>> INSTEAD EPOCHS = (1, 1)
EPOCHS = (3, 12)
# <<<
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
