# %% [markdown]
# # Fine-tuning a pretrained Vision Transformer

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

STUDENT_ID = "400101200"
RATE = 6e-3  # of stage 1; stage 2 begins with a tenth of it
PATIENCE = 5
SMOOTHING = 0.05
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
    labels = torch.as_tensor(labels)
    generator = torch.Generator().manual_seed(seed)
    parts_ = [[] for _ in per_class]
    for label in labels.unique():
        rows = (labels == label).nonzero().flatten()
        needed = sum(per_class)
        if len(rows) < needed:
            raise ValueError(f"too few images of class {label.item()}: {len(rows)} instead of {needed}")
        rows = rows[torch.randperm(len(rows), generator=generator)]
        for part, chosen in zip(parts_, rows[:needed].split(list(per_class)), strict=True):
            part.append(chosen)
    return tuple(torch.cat(part).numpy() for part in parts_)

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
    lam = float(generator.beta(alpha, alpha)) if alpha > 0 else 1.0
    order = torch.from_numpy(generator.permutation(len(images))).to(images.device)
    mixed = lam * images + (1.0 - lam) * images[order]
    return mixed, labels, labels[order.to(labels.device)], lam

# %%
def cutmix(images, labels, alpha, generator):
    """Puts a rectangle of another image of the batch into every image, at the same place.

    Args:
        images, labels, alpha, generator: As in `mixup`. Height and width may differ.

    Returns:
        (mixed images, labels_a, labels_b, lam) as `mixup` does: one rectangle, the same for all images. `lam`
        is the share of pixels that are image i's own: what was drawn, corrected by the rectangle as it really
        is, since it may be clipped at the border and its sides are whole pixels.
    """
    height, width = images.shape[-2:]
    lam = float(generator.beta(alpha, alpha)) if alpha > 0 else 1.0
    order = torch.from_numpy(generator.permutation(len(images))).to(images.device)
    side = math.sqrt(1.0 - lam)
    half_h, half_w = int(height * side) // 2, int(width * side) // 2
    y, x = int(generator.integers(height)), int(generator.integers(width))
    top, bottom = max(y - half_h, 0), min(y + half_h, height)
    left, right = max(x - half_w, 0), min(x + half_w, width)
    mixed = images.clone()
    mixed[:, :, top:bottom, left:right] = images[order, :, top:bottom, left:right]
    lam = 1.0 - (bottom - top) * (right - left) / (height * width)  # what was really kept
    return mixed, labels, labels[order.to(labels.device)], lam

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
    return lam * criterion(logits, labels_a) + (1.0 - lam) * criterion(logits, labels_b)

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
    head, _, _ = parts(model)
    model.requires_grad_(False)
    head.requires_grad_(True)

# %%
def unfreeze(model, blocks=None):
    """Exactly the head, the final norm and the last blocks learn afterwards, whatever learned before.

    Args:
        model: One that `parts` knows. It is changed in place; nothing has to be returned.
        blocks: How many of the last blocks learn; 0: none, head and norm alone; None: everything learns,
            patches, class token and positions too.
    """
    if blocks is None:
        model.requires_grad_(True)
        return
    head, encoder_blocks, norm = parts(model)
    model.requires_grad_(False)
    first = max(len(encoder_blocks) - blocks, 0)
    for part in (head, norm, *encoder_blocks[first:]):
        part.requires_grad_(True)

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
    model.train()
    for block in parts(model)[1]:
        if not any(p.requires_grad for p in block.parameters()):
            block.eval()
    total_loss, total_hits, count = 0.0, 0.0, 0
    for images, labels in loader:
        images, labels = images.to(device), labels.to(device)
        if mix is None:
            labels_a, labels_b, lam = labels, labels, 1.0
        else:
            images, labels_a, labels_b, lam = mix(images, labels)
        optimizer.zero_grad()
        logits = model(images)
        if mix is None:
            loss = criterion(logits, labels)
        else:
            loss = mixed_loss(criterion, logits, labels_a, labels_b, lam)
        loss.backward()
        optimizer.step()
        predicted = logits.detach().argmax(dim=1)
        hits_a = (predicted == labels_a).sum().item()
        hits_b = (predicted == labels_b).sum().item()
        total_hits += lam * hits_a + (1.0 - lam) * hits_b
        total_loss += loss.item() * len(labels)
        count += len(labels)
    return total_loss / count, total_hits / count

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
    model.eval()
    total_loss, targets, predictions = 0.0, [], []
    with torch.no_grad():
        for images, labels in loader:
            images, labels = images.to(device), labels.to(device)
            logits = model(images)
            total_loss += criterion(logits, labels).item() * len(labels)
            targets.append(labels.cpu())
            predictions.append(logits.argmax(dim=1).cpu())
    targets, predictions = torch.cat(targets).numpy(), torch.cat(predictions).numpy()
    return total_loss / len(targets), float((targets == predictions).mean()), targets, predictions

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
        self.best, self.best_weights = None, None
        self.misses = 0

    def step(self, value, model):
        """Takes a value of validation, and a copy of the model's weights if it is an improvement.

        Returns:
            True at the `patience`-th step in a row without an improvement, else False. (What further steps
            return is free.)
        """
        value = float(value)
        better = not math.isnan(value) and (self.best is None or value > self.best + self.min_delta)
        if better:
            self.best, self.misses = value, 0
            self.best_weights = {name: tensor.detach().clone() for name, tensor in model.state_dict().items()}
        else:
            self.misses += 1
        return self.misses >= self.patience

    def restore(self, model):
        """Puts the best weights back into the model; does nothing where there are none yet."""
        if self.best_weights is not None:
            model.load_state_dict(self.best_weights)

# %% [markdown]
# ### Stage 1 on kept features
#
# While the backbone is frozen, the class token that reaches the head is the same in every epoch. One pass through
# the images collects it; the epochs of stage 1 are then passes over a small matrix and take no time.

# %%
def head_inputs(model, loader, device):
    """(features, labels, batch size): what the head receives for every image of the loader, in its order."""
    head = parts(model)[0]
    features, labels = [], []
    handle = head.register_forward_pre_hook(lambda module, inputs: features.append(inputs[0].detach()))
    model.eval()
    with torch.no_grad():
        for images, batch_labels in loader:
            model(images.to(device))
            labels.append(batch_labels.to(device))
    handle.remove()
    return torch.cat(features), torch.cat(labels), len(labels[0])


def train_head(head, features, labels, batch_size, optimizer, criterion):
    """One pass over the features in a new order: (loss, accuracy), the means over all of them."""
    head.train()
    total_loss, hits = 0.0, 0
    for rows in torch.randperm(len(features)).to(features.device).split(batch_size):
        optimizer.zero_grad()
        logits = head(features[rows])
        loss = criterion(logits, labels[rows])
        loss.backward()
        optimizer.step()
        total_loss += loss.item() * len(rows)
        hits += (logits.argmax(dim=1) == labels[rows]).sum().item()
    return total_loss / len(features), hits / len(features)

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
    model.to(device)
    criterion = nn.CrossEntropyLoss(label_smoothing=SMOOTHING)
    generator = np.random.default_rng(7)
    history = {
        "train_loss": [], "train_accuracy": [], "validation_loss": [], "validation_accuracy": [], "stage": [],
    }

    def remember(stage, trained, validated):
        for key, value in zip(history, (*trained, *validated[:2], stage), strict=True):
            history[key].append(value)
        print(f"stage {stage}, epoch {len(history['stage'])}: {trained[1]:.3f} training, {validated[1]:.3f} validation")

    # Stage 1. The backbone is frozen, so what the head sees of an image never changes: it is computed once.
    freeze_backbone(model)
    head = parts(model)[0]
    features, labels, batch_size = head_inputs(model, loaders["train"], device)
    optimizer = optim.AdamW(head.parameters(), lr=RATE, weight_decay=0.01)
    for _ in range(epochs[0]):
        trained = train_head(head, features, labels, batch_size, optimizer, criterion)
        remember(1, trained, evaluate(model, loaders["validation"], criterion, device))

    # Stage 2. Everything moves, so the images themselves are needed from now on.
    unfreeze(model)
    optimizer = optim.AdamW(model.parameters(), lr=RATE / 10, weight_decay=0.05)
    scheduler = optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=max(epochs[1], 1))
    watcher = EarlyStopping(PATIENCE)

    def mix(images, labels):
        if generator.random() < 0.3:
            return mixup(images, labels, 0.3, generator)
        return images, labels, labels, 1.0

    for _ in range(epochs[1]):
        trained = train_one_epoch(model, loaders["train"], optimizer, criterion, device, mix)
        validated = evaluate(model, loaders["validation"], criterion, device)
        scheduler.step()
        remember(2, trained, validated)
        if watcher.step(validated[1], model):
            break
    watcher.restore(model)
    return history

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
    targets, predictions = np.asarray(targets), np.asarray(predictions)
    images = np.bincount(targets, minlength=classes).astype(float)
    hits = np.bincount(targets[targets == predictions], minlength=classes).astype(float)
    images[images == 0] = np.nan
    return hits / images

# %% [markdown]
# ## Pictures

# %%
def as_picture(image, mean, std):
    """(channels, height, width), normalized -> (height, width, channels) between 0 and 1."""
    mean, std = torch.tensor(mean).view(-1, 1, 1), torch.tensor(std).view(-1, 1, 1)
    return (image.cpu() * std + mean).clamp(0, 1).permute(1, 2, 0).numpy()

# %%
def show_patches(image, patch_size, mean, std):
    """Draws an image as it was, and its patches, each in a place of its own, as they lie in the image.

    Args:
        image: Normalized, (channels, height, width).
        patch_size: Height and width of a patch, in pixels.
        mean, std: Of each channel, by which the image was normalized.
    """
    picture = as_picture(image, mean, std)
    rows, columns = picture.shape[0] // patch_size, picture.shape[1] // patch_size
    fig = plt.figure(figsize=(9, 4.5))
    whole, right = fig.subfigures(1, 2)
    ax = whole.subplots()
    ax.imshow(picture)
    ax.set_title("the image")
    ax.axis("off")
    axes = right.subplots(rows, columns, squeeze=False)
    for row in range(rows):
        for column in range(columns):
            y, x = row * patch_size, column * patch_size
            axes[row, column].imshow(picture[y : y + patch_size, x : x + patch_size], vmin=0, vmax=1)
            axes[row, column].axis("off")
    right.suptitle(f"{rows} x {columns} patches of {patch_size} x {patch_size} pixels")
    plt.show()

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
    attention = parts(model)[1][-1].attn
    kept = []
    handle = attention.qkv.register_forward_hook(lambda module, inputs, output: kept.append(output.detach()))
    try:
        with torch.no_grad():
            model(image.unsqueeze(0).to(next(model.parameters()).device))
    finally:
        handle.remove()
    tokens, width = kept[0].shape[1], kept[0].shape[2] // 3
    head_width = width // attention.num_heads
    q, k, _ = kept[0].reshape(1, tokens, 3, attention.num_heads, head_width).permute(2, 0, 3, 1, 4)
    weights = (q @ k.transpose(-1, -2) / math.sqrt(head_width)).softmax(dim=-1)  # (1, heads, tokens, tokens)
    side = math.isqrt(tokens - 1)
    attended = weights.mean(dim=1)[0, 0, 1:].reshape(side, side).cpu().numpy()
    fig, axes = plt.subplots(1, 2, figsize=(8, 4))
    axes[0].imshow(as_picture(image, mean, std))
    axes[0].set_title("the image")
    picture = axes[1].imshow(attended, cmap="magma")
    axes[1].set_title("attention of the class token")
    fig.colorbar(picture, ax=axes[1], fraction=0.046)
    for ax in axes:
        ax.axis("off")
    plt.show()

# %%
def plot_history(history):
    """Draws loss and accuracy of training and validation over the epochs, both stages in one, with a mark
    where stage 2 begins, and axes and curves that say what they are.

    Args:
        history: What `fit` returned.
    """
    epochs = range(1, len(history["train_loss"]) + 1)
    fig, axes = plt.subplots(1, 2, figsize=(11, 4))
    for ax, what in zip(axes, ("loss", "accuracy"), strict=True):
        ax.plot(epochs, history[f"train_{what}"], marker=".", label="training")
        ax.plot(epochs, history[f"validation_{what}"], marker=".", label="validation")
        if 2 in history["stage"]:
            ax.axvline(history["stage"].index(2) + 0.5, color="gray", linestyle="--", label="stage 2 begins")
        ax.set_xlabel("epoch")
        ax.set_ylabel(what)
        ax.legend()
    fig.tight_layout()
    plt.show()

# %%
def plot_per_class(names, accuracies):
    """Draws a bar for each class, as long as its accuracy, with the class's name; axes say what they are.

    Args:
        names: Of the classes.
        accuracies: (classes,), as `per_class_accuracy` gives them; NaN is drawn as nothing.
    """
    accuracies = np.asarray(accuracies, dtype=float)
    fig, ax = plt.subplots(figsize=(9, 4))
    places = np.arange(len(names))
    seen = ~np.isnan(accuracies)
    ax.bar(places[seen], accuracies[seen], color="tab:blue")
    ax.set_xticks(places, names, rotation=40, ha="right")
    ax.set_ylim(0, 1)
    ax.set_xlabel("class")
    ax.set_ylabel("accuracy")
    ax.set_title("Accuracy of each class")
    fig.tight_layout()
    plt.show()

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
    for row in range(matrix.shape[0]):
        for column in range(matrix.shape[1]):
            dark = matrix[row, column] > matrix.max() / 2
            ax.text(column, row, f"{matrix[row, column]}", ha="center", va="center", color="white" if dark else "black")
    ax.set_title("Confusion matrix")
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
    [transforms.RandomHorizontalFlip(), transforms.RandomCrop(32, padding=2, padding_mode="edge"), plain_transform]
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
