# %% [markdown]
# # Fine-tuning a pretrained Vision Transformer
#
# You are given a small Vision Transformer that others have trained on other classes: `handout.py` builds it
# and names its parts. You adapt it to ten classes with few images: an honest split, mixed images, frozen and
# unfrozen parts, two stages, early stopping. All parts below are written.
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

STUDENT_ID = "400105001"
RATE = 4e-3  # of stage 1; stage 2 begins with a tenth of it
PATIENCE = 4  # epochs of stage 2 without a better validation accuracy
BATCH_SIZE = 64
MIXUP_ALPHA = 0.2
CUTMIX_ALPHA = 1.0
SMOOTHING = 0.1
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
    labels = np.asarray(labels)
    generator = np.random.default_rng(seed)
    selected = [[] for _ in per_class]
    for label in np.unique(labels):
        rows = generator.permutation(np.flatnonzero(labels == label))
        if len(rows) < sum(per_class):
            raise ValueError(f"class {label} has {len(rows)} images, but {sum(per_class)} are needed")
        start = 0
        for k, count in enumerate(per_class):
            selected[k].append(rows[start : start + count])
            start += count
    return tuple(np.concatenate(rows) for rows in selected)


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
    order = torch.as_tensor(generator.permutation(len(images)), device=images.device)
    mixed = lam * images + (1 - lam) * images[order]
    return mixed, labels, labels[order], lam


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
    lam = float(generator.beta(alpha, alpha)) if alpha > 0 else 1.0
    order = torch.as_tensor(generator.permutation(len(images)), device=images.device)
    height, width = images.shape[-2:]
    # sides of the rectangle, so that its area is (1 - lam) of the image
    cut_height = int(round(height * math.sqrt(1 - lam)))
    cut_width = int(round(width * math.sqrt(1 - lam)))
    # center, then clip at the borders
    center_y, center_x = int(generator.integers(height)), int(generator.integers(width))
    top, left = center_y - cut_height // 2, center_x - cut_width // 2
    bottom, right = min(top + cut_height, height), min(left + cut_width, width)
    top, left = max(top, 0), max(left, 0)

    mixed = images.clone()
    mixed[:, :, top:bottom, left:right] = images[order, :, top:bottom, left:right]
    lam = 1 - (bottom - top) * (right - left) / (height * width)
    return mixed, labels, labels[order], lam


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
    loss_a = criterion(logits, labels_a)
    loss_b = criterion(logits, labels_b)
    return lam * loss_a + (1 - lam) * loss_b


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
    head, blocks, norm = parts(model)
    for parameter in model.parameters():
        parameter.requires_grad = False
    for parameter in head.parameters():
        parameter.requires_grad = True


# %%
def unfreeze(model, blocks=None):
    """Exactly the head, the final norm and the last blocks learn afterwards, whatever learned before.

    Args:
        model: One that `parts` knows. It is changed in place; nothing has to be returned.
        blocks: How many of the last blocks learn; 0: none, head and norm alone; None: everything learns,
            patches, class token and positions too.
    """
    if blocks is None:
        for parameter in model.parameters():
            parameter.requires_grad = True
        return
    head, all_blocks, norm = parts(model)
    freeze_backbone(model)
    for parameter in norm.parameters():
        parameter.requires_grad = True
    first = max(len(all_blocks) - blocks, 0)
    for block in all_blocks[first:]:
        for parameter in block.parameters():
            parameter.requires_grad = True


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
        if not any(parameter.requires_grad for parameter in block.parameters()):
            block.eval()

    total_loss, total_hits, total = 0.0, 0.0, 0
    for images, labels in loader:
        images, labels = images.to(device), labels.to(device)
        if mix is not None:
            images, labels_a, labels_b, lam = mix(images, labels)
        optimizer.zero_grad()
        logits = model(images)
        if mix is None:
            loss = criterion(logits, labels)
        else:
            loss = mixed_loss(criterion, logits, labels_a, labels_b, lam)
        loss.backward()
        optimizer.step()

        predictions = logits.argmax(dim=1)
        if mix is None:
            hits = (predictions == labels).sum().item()
        else:
            hits_a = (predictions == labels_a).sum().item()
            hits_b = (predictions == labels_b).sum().item()
            hits = lam * hits_a + (1 - lam) * hits_b
        total_loss += loss.item() * len(images)
        total_hits += hits
        total += len(images)
    return total_loss / total, total_hits / total


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
            total_loss += criterion(logits, labels).item() * len(images)
            targets.append(labels.cpu())
            predictions.append(logits.argmax(dim=1).cpu())
    targets, predictions = torch.cat(targets).numpy(), torch.cat(predictions).numpy()
    accuracy = float((targets == predictions).mean())
    return total_loss / len(targets), accuracy, targets, predictions


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
        self.patience = patience
        self.min_delta = min_delta
        self.best = None
        self.bad_steps = 0
        self.weights = None

    def step(self, value, model):
        """Takes a value of validation, and a copy of the model's weights if it is an improvement.

        Returns:
            True at the `patience`-th step in a row without an improvement, else False. (What further steps
            return is free.)
        """
        value = float(value)
        if not math.isnan(value) and (self.best is None or value > self.best + self.min_delta):
            self.best = value
            self.bad_steps = 0
            self.weights = {name: tensor.detach().clone() for name, tensor in model.state_dict().items()}
        else:
            self.bad_steps += 1
        return self.bad_steps >= self.patience

    def restore(self, model):
        """Puts the best weights back into the model; does nothing where there are none yet."""
        if self.weights is not None:
            model.load_state_dict(self.weights)


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
    generator = np.random.default_rng(42)
    criterion = nn.CrossEntropyLoss(label_smoothing=SMOOTHING)
    plain_criterion = nn.CrossEntropyLoss()
    history = {
        "train_loss": [],
        "train_accuracy": [],
        "validation_loss": [],
        "validation_accuracy": [],
        "stage2_start": [epochs[0]],
    }

    def mix(images, labels):
        if generator.random() < 0.5:
            return mixup(images, labels, MIXUP_ALPHA, generator)
        return cutmix(images, labels, CUTMIX_ALPHA, generator)

    def one_epoch(optimizer):
        loss, accuracy = train_one_epoch(model, loaders["train"], optimizer, criterion, device, mix)
        history["train_loss"].append(loss)
        history["train_accuracy"].append(accuracy)
        loss, accuracy, _, _ = evaluate(model, loaders["validation"], plain_criterion, device)
        history["validation_loss"].append(loss)
        history["validation_accuracy"].append(accuracy)
        return accuracy

    # stage 1: the head
    freeze_backbone(model)
    head, _, _ = parts(model)
    optimizer = optim.AdamW(head.parameters(), lr=RATE, weight_decay=0.01)
    for _ in range(epochs[0]):
        one_epoch(optimizer)

    # stage 2: everything
    unfreeze(model)
    of_head = {id(parameter) for parameter in head.parameters()}
    backbone = [parameter for parameter in model.parameters() if id(parameter) not in of_head]
    optimizer = optim.AdamW(
        [{"params": list(head.parameters()), "lr": RATE}, {"params": backbone, "lr": RATE / 10}],
        weight_decay=0.01,
    )
    scheduler = optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=max(epochs[1], 1))
    stopping = EarlyStopping(PATIENCE)
    for _ in range(epochs[1]):
        accuracy = one_epoch(optimizer)
        scheduler.step()
        if stopping.step(accuracy, model):
            break
    stopping.restore(model)
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
    accuracies = np.full(classes, np.nan)
    for k in range(classes):
        of_class = targets == k
        if of_class.any():
            accuracies[k] = (predictions[of_class] == k).mean()
    return accuracies


# %% [markdown]
# ## Pictures


# %%
def show_patches(image, patch_size, mean, std):
    """Draws an image as it was, and its patches, each in a place of its own, as they lie in the image.

    Args:
        image: Normalized, (channels, height, width).
        patch_size: Height and width of a patch, in pixels.
        mean, std: Of each channel, by which the image was normalized.
    """
    mean = torch.as_tensor(mean).view(-1, 1, 1)
    std = torch.as_tensor(std).view(-1, 1, 1)
    picture = (image.cpu() * std + mean).clamp(0, 1).permute(1, 2, 0).numpy()
    rows, columns = picture.shape[0] // patch_size, picture.shape[1] // patch_size

    plt.figure(figsize=(3, 3))
    plt.imshow(picture)
    plt.title("image")
    plt.axis("off")

    figure, axes = plt.subplots(rows, columns, figsize=(5, 5), squeeze=False)
    for i in range(rows):
        for j in range(columns):
            y, x = i * patch_size, j * patch_size
            axes[i, j].imshow(picture[y : y + patch_size, x : x + patch_size], vmin=0, vmax=1)
            axes[i, j].axis("off")
    figure.suptitle("patches")
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
    captured = []
    hook = attention.qkv.register_forward_hook(lambda module, inputs, output: captured.append(output.detach()))
    try:
        with torch.no_grad():
            model(image.unsqueeze(0).to(next(model.parameters()).device))
    finally:
        hook.remove()
    qkv = captured[0][0]  # (tokens, 3 * dim)
    tokens, heads = len(qkv), attention.num_heads
    q, k, _ = qkv.reshape(tokens, 3, heads, -1).permute(1, 2, 0, 3)
    weights = (q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])).softmax(dim=-1)
    class_token = weights.mean(dim=0)[0, 1:]
    patch_height, patch_width = model.patch_embed.proj.kernel_size
    rows, columns = image.shape[1] // patch_height, image.shape[2] // patch_width
    attention_map = class_token.reshape(rows, columns).cpu().numpy()

    mean = torch.as_tensor(mean).view(-1, 1, 1)
    std = torch.as_tensor(std).view(-1, 1, 1)
    picture = (image.cpu() * std + mean).clamp(0, 1).permute(1, 2, 0).numpy()
    figure, axes = plt.subplots(1, 2, figsize=(7, 3.5))
    axes[0].imshow(picture)
    axes[0].set_title("image")
    axes[1].imshow(attention_map, cmap="viridis")
    axes[1].set_title("attention of the class token")
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
    epochs = np.arange(1, len(history["train_loss"]) + 1)
    figure, axes = plt.subplots(1, 2, figsize=(11, 4))
    for ax, name in zip(axes, ("loss", "accuracy")):
        ax.plot(epochs, history[f"train_{name}"], marker=".", label="training")
        ax.plot(epochs, history[f"validation_{name}"], marker=".", label="validation")
        ax.axvline(history["stage2_start"][0] + 0.5, color="gray", linestyle="--", label="stage 2 begins")
        ax.set_xlabel("epoch")
        ax.set_ylabel(name)
        ax.legend()
    plt.show()


# %%
def plot_per_class(names, accuracies):
    """Draws a bar for each class, as long as its accuracy, with the class's name; axes say what they are.

    Args:
        names: Of the classes.
        accuracies: (classes,), as `per_class_accuracy` gives them; NaN is drawn as nothing.
    """
    positions = np.arange(len(names))
    figure, ax = plt.subplots(figsize=(9, 4))
    ax.bar(positions, np.asarray(accuracies, dtype=float))
    ax.set_xticks(positions)
    ax.set_xticklabels(names, rotation=45, ha="right")
    ax.set_ylim(0, 1)
    ax.set_xlabel("class")
    ax.set_ylabel("accuracy")
    figure.tight_layout()
    plt.show()


# %%
def plot_confusion_matrix(matrix, class_names):
    """Draws a confusion matrix with its counts, the true classes as rows, the names on both axes.

    Args:
        matrix: (classes, classes).
        class_names: The names, in the order of the labels.
    """
    matrix = np.asarray(matrix)
    positions = np.arange(len(class_names))
    figure, ax = plt.subplots(figsize=(8, 7))
    picture = ax.imshow(matrix, cmap="Blues")
    figure.colorbar(picture)
    for i in range(len(matrix)):
        for j in range(len(matrix)):
            color = "white" if matrix[i, j] > matrix.max() / 2 else "black"
            ax.text(j, i, str(int(matrix[i, j])), ha="center", va="center", color=color)
    ax.set_xticks(positions)
    ax.set_xticklabels(class_names, rotation=45, ha="right")
    ax.set_yticks(positions)
    ax.set_yticklabels(class_names)
    ax.set_xlabel("predicted class")
    ax.set_ylabel("true class")
    figure.tight_layout()
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
    [transforms.RandomCrop(32, padding=4), transforms.RandomHorizontalFlip(), plain_transform]
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
