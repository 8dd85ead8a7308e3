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
import operator
import warnings
import zipfile

import matplotlib.pyplot as plt
import numpy as np
import torch
import torch.nn.functional as F
from matplotlib.ticker import MaxNLocator
from safetensors.torch import load_file
from torch import nn, optim
from torch.utils.data import DataLoader, Subset
from torchvision import datasets, transforms

STUDENT_ID = "400104009"
RATE = 3e-3
PATIENCE = 5
MIXUP_ALPHA, CUTMIX_ALPHA = 0.3, 1.0
BATCH_SIZE = 64
SEED = 2024
MEAN, STD = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.random.manual_seed(42)

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
def _whole_numbers(values, name):
    """A one-dimensional array of whole numbers from an array, a tensor or a list.

    Raises:
        ValueError: It is something else.
    """
    if isinstance(values, torch.Tensor):
        values = values.detach().cpu().numpy()
    array = np.asarray(values)
    if array.ndim != 1:
        raise ValueError(f"{name} must have one dimension, not {array.ndim}")
    if array.size and not np.array_equal(array, array.astype(np.int64)):
        raise ValueError(f"{name} must be whole numbers")
    return array.astype(np.int64)


def stratified_split(labels, per_class, seed):
    """Splits images by sorting random keys within the classes.

    Every image draws a key; sorted by (class, key), the images of one class lie side by side in random
    order, so that an image's place within its class says which part it belongs to.

    Raises:
        ValueError: A class has fewer images than the parts need, or the arguments make no sense.
    """
    labels = _whole_numbers(labels, "labels")
    sizes = [operator.index(size) for size in per_class]
    if any(size < 0 for size in sizes):
        raise ValueError(f"per_class must not be negative: {per_class}")

    keys = np.random.default_rng(seed).random(len(labels))
    ordered = np.lexsort((keys, labels))  # the last one is the first to sort by
    classes, starts, counts = np.unique(labels[ordered], return_index=True, return_counts=True)
    for number, count in zip(classes, counts):
        if count < sum(sizes):
            raise ValueError(f"class {number} has {count} images, fewer than {sum(sizes)}")

    place = np.arange(len(labels)) - np.repeat(starts, counts)  # within the class
    found, low = [], 0
    for size in sizes:
        found.append(np.sort(ordered[(place >= low) & (place < low + size)]))
        low += size
    together = np.concatenate(found) if found else np.zeros(0, dtype=np.int64)
    assert len(np.unique(together)) == len(together), "an image is in two parts"
    return tuple(found)


# %% [markdown]
# ## Mixed images
#
# Ready mixup and cutmix helpers (of timm, torchvision and others) are what you build here. `generator` is a
# `numpy.random.Generator`: draw everything from it, in whatever order you like, so that the same state gives
# the same result.

# %%
def _check_batch(images, labels, alpha, generator):
    """Refuses what `mixup` and `cutmix` cannot work with."""
    if images.ndim != 4:
        raise ValueError(f"images must be (batch, channels, height, width), not {tuple(images.shape)}")
    if len(images) != len(labels):
        raise ValueError(f"{len(images)} images, but {len(labels)} labels")
    if math.isnan(alpha) or alpha < 0:
        raise ValueError(f"alpha must be 0 or more, not {alpha}")
    if not isinstance(generator, np.random.Generator):
        raise TypeError("generator must be a numpy.random.Generator")


def _draw_lam(alpha, generator):
    """A share from Beta(alpha, alpha), 1 for alpha = 0; always between 0 and 1."""
    lam = 1.0 if alpha == 0 else float(generator.beta(alpha, alpha))
    if not 0.0 <= lam <= 1.0:  # NaN as well: may happen for absurd alphas
        lam = 1.0
    return lam


def _draw_permutation(count, generator):
    """A permutation: the order of random keys."""
    return torch.as_tensor(np.argsort(generator.random(count)))


def mixup(images, labels, alpha, generator):
    """`lam` of every image and the rest of another one; nothing is changed in place.

    Returns:
        (mixed images, labels_a, labels_b, lam).
    """
    _check_batch(images, labels, alpha, generator)
    lam = _draw_lam(alpha, generator)
    permutation = _draw_permutation(len(images), generator)

    others = images.index_select(0, permutation.to(images.device))
    mixed = images.mul(lam).add(others.mul(1.0 - lam))
    assert mixed.shape == images.shape
    return mixed, labels.clone(), labels[permutation.to(labels.device)], lam


# %%
def cutmix(images, labels, alpha, generator):
    """A rectangle of another image, drawn so that it lies wholly inside; `lam` is counted from its pixels.

    Returns:
        (mixed images, labels_a, labels_b, lam).
    """
    _check_batch(images, labels, alpha, generator)
    height, width = images.shape[-2:]
    permutation = _draw_permutation(len(images), generator)
    share = math.sqrt(1.0 - _draw_lam(alpha, generator))
    box_height = min(height, math.floor(height * share + 0.5))
    box_width = min(width, math.floor(width * share + 0.5))
    top = int(generator.integers(height - box_height, endpoint=True))
    left = int(generator.integers(width - box_width, endpoint=True))

    rows, columns = slice(top, top + box_height), slice(left, left + box_width)
    others = images.index_select(0, permutation.to(images.device))
    mixed = images.clone()
    mixed[..., rows, columns] = others[..., rows, columns]

    lam = 1.0 - box_height * box_width / (height * width)
    assert 0.0 <= lam <= 1.0
    return mixed, labels.clone(), labels[permutation.to(labels.device)], lam


# %%
def mixed_loss(criterion, logits, labels_a, labels_b, lam):
    """`lam` of the loss of labels_a and the rest of that of labels_b; a tensor with gradients."""
    lam = float(lam)
    if not -1e-6 <= lam <= 1 + 1e-6:
        raise ValueError(f"lam must be between 0 and 1, not {lam}")
    if len(labels_a) != len(labels_b):
        raise ValueError("labels_a and labels_b must be as many")
    return lam * criterion(logits, labels_a) + (1.0 - lam) * criterion(logits, labels_b)


# %% [markdown]
# ## What learns
#
# `parts(model)` gives head, blocks and norm, whichever model it is.

# %%
def _let_learn(model, modules):
    """Nothing learns but the parameters of these modules; checked afterwards."""
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    for module in modules:
        for parameter in module.parameters():
            parameter.requires_grad_(True)

    wanted = sum(parameter.numel() for module in modules for parameter in module.parameters())
    learning = sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)
    assert learning == wanted, f"{learning} numbers learn in place of {wanted}"


def freeze_backbone(model):
    """Exactly the head learns afterwards."""
    head, _, _ = parts(model)
    _let_learn(model, [head])


# %%
def unfreeze(model, blocks=None):
    """Head, final norm and the last `blocks` blocks learn afterwards; None: everything.

    Raises:
        ValueError: `blocks` is negative.
    """
    if blocks is None:
        _let_learn(model, [model])
        return
    blocks = operator.index(blocks)
    if blocks < 0:
        raise ValueError(f"blocks must be 0 or more, not {blocks}")
    head, all_blocks, norm = parts(model)
    blocks = min(blocks, len(all_blocks))
    last = all_blocks[-blocks:] if blocks else []
    _let_learn(model, [head, norm] + last)


# %% [markdown]
# ## Training and evaluation

# %%
def _set_modes(model):
    """Training mode, but evaluation mode for blocks that are wholly frozen."""
    model.train(True)
    for block in parts(model)[1]:
        if sum(parameter.requires_grad for parameter in block.parameters()) == 0:
            block.train(False)


def train_one_epoch(model, loader, optimizer, criterion, device, mix=None):
    """One pass over the data, a step for each batch.

    Returns:
        (loss, accuracy): means over images, as they were when each batch was trained on.

    Raises:
        ValueError: There are no images.
    """
    _set_modes(model)
    count, loss_sum, hit_sum = 0, 0.0, 0.0
    for images, labels in loader:
        images, labels = images.to(device), labels.to(device)
        size = len(labels)
        if mix is None:
            logits = model(images)
            loss = criterion(logits, labels)
            hits = float((logits.detach().argmax(1) == labels).sum())
        else:
            images, labels_a, labels_b, lam = mix(images, labels)
            logits = model(images)
            loss = mixed_loss(criterion, logits, labels_a, labels_b, lam)
            predicted = logits.detach().argmax(1)
            hits_a = float((predicted == labels_a).sum())
            hits_b = float((predicted == labels_b).sum())
            hits = lam * hits_a + (1.0 - lam) * hits_b
        if not torch.isfinite(loss):
            warnings.warn("the loss is not finite: is the rate too large?", stacklevel=2)

        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()

        count += size
        loss_sum += float(loss.detach()) * size
        hit_sum += hits
    if count == 0:
        raise ValueError("the loader has no images")
    return loss_sum / count, hit_sum / count


# %%
@torch.inference_mode()
def evaluate(model, loader, criterion, device):
    """Loss and accuracy over images in evaluation mode, with targets and predictions as arrays.

    Raises:
        ValueError: There are no images.
    """
    model.eval()
    loss_sum = 0.0
    targets = np.empty(0, dtype=np.int64)
    predictions = np.empty(0, dtype=np.int64)
    for images, labels in loader:
        images, labels = images.to(device), labels.to(device)
        logits = model(images)
        loss_sum += float(criterion(logits, labels)) * len(labels)
        targets = np.append(targets, labels.cpu().numpy())
        predictions = np.append(predictions, logits.argmax(1).cpu().numpy())
    if targets.size == 0:
        raise ValueError("the loader has no images")
    assert targets.shape == predictions.shape
    accuracy = np.count_nonzero(targets == predictions) / targets.size
    return loss_sum / targets.size, accuracy, targets, predictions


# %%
class EarlyStopping:
    """Counts down the steps that are left; higher values are better, ties and NaN are not.

    Args:
        patience: How many steps in a row may be without an improvement; at least 1.
        min_delta: How much more an improvement must be.
    """

    def __init__(self, patience, min_delta=0.0):
        self.patience = operator.index(patience)
        self.min_delta = float(min_delta)
        if self.patience < 1:
            raise ValueError(f"patience must be at least 1, not {patience}")
        if not self.min_delta >= 0:
            raise ValueError(f"min_delta must be 0 or more, not {min_delta}")
        self.remaining = self.patience
        self.best = math.nan  # nothing yet
        self.best_weights = None

    def step(self, value, model):
        """True when nothing is left of the patience."""
        value = float(value)
        if math.isnan(value):
            improved = False
        elif math.isnan(self.best):
            improved = True
        else:
            improved = value > self.best + self.min_delta

        if not improved:
            self.remaining -= 1
            return self.remaining <= 0
        self.remaining = self.patience
        self.best = value
        self.best_weights = {
            name: tensor.detach().clone() for name, tensor in model.state_dict().items()
        }
        return False

    def restore(self, model):
        """The best weights, if there are any."""
        if self.best_weights is None:
            return
        model.load_state_dict(self.best_weights, strict=True)


# %%
def _mixer(seed):
    """A function for `mix`: flips half of the images, then mixup, cutmix or nothing, drawn per batch."""
    generator = np.random.default_rng(seed)
    flips = torch.Generator().manual_seed(seed)

    def mix(images, labels):
        flipped = torch.rand(len(images), generator=flips) < 0.5
        flipped = flipped.to(images.device).view(-1, 1, 1, 1)
        images = torch.where(flipped, images.flip(-1), images)
        way = generator.choice(3, p=(0.35, 0.35, 0.3))
        if way == 0:
            return mixup(images, labels, MIXUP_ALPHA, generator)
        if way == 1:
            return cutmix(images, labels, CUTMIX_ALPHA, generator)
        return images, labels, labels, 1.0

    return mix


def _parameter_groups(model):
    """Weight decay for matrices and kernels only, not for biases, norms and positions."""
    decayed, free = [], []
    for name, parameter in model.named_parameters():
        if not parameter.requires_grad:
            continue
        is_matrix = parameter.ndim >= 2 and name not in ("cls_token", "pos_embed")
        (decayed if is_matrix else free).append(parameter)
    return [{"params": decayed, "weight_decay": 0.05}, {"params": free, "weight_decay": 0.0}]


def fit(model, loaders, epochs, device):
    """Two stages; each has its optimizer and its early stopping, and the better stage's best weights stay.

    Raises:
        ValueError: A loader is missing, or `epochs` is no pair.
    """
    for name in ("train", "validation"):
        if name not in loaders:
            raise ValueError(f"loaders has no {name!r}")
    first_epochs, second_epochs = (operator.index(count) for count in epochs)

    model.to(device)
    mix = _mixer(SEED)
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
    history = {
        "training loss": [], "training accuracy": [],
        "validation loss": [], "validation accuracy": [],
        "stage": [], "rate": [],
    }  # fmt: skip

    def run(stage, count, optimizer, scheduler, stopping):
        for _ in range(count):
            rate = optimizer.param_groups[0]["lr"]
            loss, accuracy = train_one_epoch(
                model, loaders["train"], optimizer, criterion, device, mix=mix if stage == 2 else None
            )
            validation = evaluate(model, loaders["validation"], criterion, device)
            row = (loss, accuracy, validation[0], validation[1], stage, rate)
            for key, value in zip(history, row, strict=True):
                history[key].append(value)
            if scheduler is not None:
                scheduler.step()
            if stopping.step(validation[1], model):
                break

    freeze_backbone(model)
    learning = [parameter for parameter in model.parameters() if parameter.requires_grad]
    first_stopping = EarlyStopping(PATIENCE)
    run(1, first_epochs, optim.AdamW(learning, lr=RATE), None, first_stopping)

    unfreeze(model)
    optimizer = optim.AdamW(_parameter_groups(model), lr=RATE / 10)
    scheduler = optim.lr_scheduler.LambdaLR(
        optimizer, lambda epoch: 0.5 * (1.0 + math.cos(math.pi * min(epoch / max(second_epochs, 1), 1.0)))
    )
    second_stopping = EarlyStopping(PATIENCE)
    run(2, second_epochs, optimizer, scheduler, second_stopping)

    usable = [stopping for stopping in (second_stopping, first_stopping) if not math.isnan(stopping.best)]
    if usable:
        max(usable, key=lambda stopping: stopping.best).restore(model)  # a tie: stage 2
    return history


# %%
def per_class_accuracy(targets, predictions, classes):
    """The share of each class's images that are predicted as that class; NaN where there are none."""
    targets = _whole_numbers(targets, "targets")
    predictions = _whole_numbers(predictions, "predictions")
    if len(targets) != len(predictions):
        raise ValueError(f"{len(targets)} targets, but {len(predictions)} predictions")
    counts = np.bincount(targets, minlength=classes).astype(float)
    hits = np.bincount(targets[targets == predictions], minlength=classes).astype(float)
    if len(counts) > classes:
        raise ValueError(f"a target is not one of {classes} classes")
    accuracies = np.full(classes, np.nan)
    np.divide(hits, counts, out=accuracies, where=counts > 0)
    return accuracies


# %% [markdown]
# ## Pictures

# %%
def _picture(image, mean, std):
    """(height, width, channels) between 0 and 1, from a normalized image."""
    image = torch.as_tensor(image).detach().cpu().to(torch.float64).numpy()
    if image.ndim != 3:
        raise ValueError(f"the image must be (channels, height, width), not {image.shape}")
    mean, std = (np.asarray(values, dtype=float).reshape(-1, 1, 1) for values in (mean, std))
    return np.clip(np.nan_to_num(image * std + mean), 0.0, 1.0).transpose(1, 2, 0)


def show_patches(image, patch_size, mean, std):
    """The image in a figure's upper part, and its patches in a grid below it."""
    picture = _picture(image, mean, std)
    height, width = picture.shape[:2]
    if height % patch_size or width % patch_size:
        raise ValueError(f"{height} x {width} pixels cannot be cut into patches of {patch_size}")
    rows, columns = height // patch_size, width // patch_size

    figure = plt.figure(figsize=(5, 9))
    upper, lower = figure.add_gridspec(2, 1)
    axis = figure.add_subplot(upper)
    axis.imshow(picture)
    axis.set_title("image")
    axis.set_axis_off()
    grid = lower.subgridspec(rows, columns, wspace=0.1, hspace=0.1)
    for row, column in np.ndindex(rows, columns):
        axis = figure.add_subplot(grid[row, column])
        patch = picture[row * patch_size :, column * patch_size :][:patch_size, :patch_size]
        axis.imshow(patch, vmin=0, vmax=1)
        axis.set_axis_off()


# %%
def show_attention(model, image, mean, std):
    """The image, and the mean over heads of the last block's attention in the row of the class token.

    The model's modes are kept one by one, since frozen blocks may be in another one than the model.
    """
    modes = {module: module.training for module in model.modules()}
    attention = model.blocks[-1].attn
    caught = []
    handle = attention.qkv.register_forward_hook(lambda module, inputs, output: caught.append(output.detach()))
    try:
        model.eval()
        with torch.no_grad():
            model(torch.as_tensor(image).unsqueeze(0).to(next(model.parameters()).device))
    finally:
        handle.remove()
        for module, training in modes.items():
            module.training = training
    assert len(caught) == 1, "the last block was not asked exactly once"

    _, tokens, triple = caught[0].shape
    heads = attention.num_heads
    queries, keys, _ = caught[0].reshape(tokens, 3, heads, triple // 3 // heads).permute(1, 2, 0, 3)
    weights = torch.softmax(queries @ keys.mT / keys.shape[-1] ** 0.5, dim=-1)
    assert torch.allclose(weights.sum(-1), torch.ones_like(weights[..., 0]), atol=1e-4)
    patch_size = model.patch_embed.patch_size
    rows, columns = image.shape[-2] // patch_size, image.shape[-1] // patch_size
    seen = weights.mean(0)[0, 1:].reshape(rows, columns).cpu().numpy()

    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
    left.imshow(_picture(image, mean, std))
    left.set_title("image")
    mappable = right.imshow(np.kron(seen, np.ones((patch_size, patch_size))), cmap="inferno")
    right.set_title("where the class token looks")
    figure.colorbar(mappable, ax=right, label="attention")
    for axis in (left, right):
        axis.set_xticks([])
        axis.set_yticks([])


# %%
def plot_history(history):
    """Loss and accuracy, the epochs of stage 2 on a shaded ground."""
    stages = np.asarray(history["stage"])
    epochs = np.arange(1, len(stages) + 1)
    figure, axes = plt.subplots(1, 2, figsize=(12, 4), layout="constrained")
    for axis, what in zip(axes, ("loss", "accuracy"), strict=True):
        for part, style in (("training", "o--"), ("validation", "s-")):
            axis.plot(epochs, history[f"{part} {what}"], style, markersize=3, label=f"{part} {what}")
        if (stages == 2).any():
            begin = int(np.argmax(stages == 2)) + 0.5
            axis.axvline(begin, color="black", linewidth=1)
            axis.axvspan(begin, len(stages) + 0.5, color="gold", alpha=0.15, label="stage 2")
        axis.set_xlabel("epoch")
        axis.set_ylabel(what)
        axis.xaxis.set_major_locator(MaxNLocator(integer=True))
        axis.legend()


# %%
def plot_per_class(names, accuracies):
    """A bar for each class; nothing for NaN."""
    accuracies = np.asarray(accuracies, dtype=float)
    if len(names) != len(accuracies):
        raise ValueError(f"{len(names)} names, but {len(accuracies)} accuracies")
    figure, axis = plt.subplots(figsize=(9, 4), layout="constrained")
    places = np.arange(len(names))
    bars = axis.bar(places, np.where(np.isnan(accuracies), 0.0, accuracies), color="seagreen")
    axis.bar_label(bars, labels=["" if np.isnan(value) else f"{value:.2f}" for value in accuracies])
    axis.set_xticks(places, labels=names, rotation=40, ha="right")
    axis.set_ylim(0.0, 1.1)
    axis.set(xlabel="class", ylabel="accuracy", title="accuracy within each class")


# %%
def plot_confusion_matrix(matrix, class_names):
    """True classes as rows, predicted ones as columns, with the counts."""
    matrix = np.asarray(matrix)
    if matrix.shape != (len(class_names), len(class_names)):
        raise ValueError(f"the matrix is {matrix.shape}, but there are {len(class_names)} names")
    figure, axis = plt.subplots(figsize=(8, 7), layout="constrained")
    mappable = axis.matshow(matrix, cmap="Greens")
    figure.colorbar(mappable, ax=axis)
    middle = matrix.max() / 2 if matrix.size else 0
    for (row, column), count in np.ndenumerate(matrix):
        color = "white" if count > middle else "black"
        axis.annotate(f"{int(count)}", (column, row), ha="center", va="center", color=color)
    places = np.arange(len(class_names))
    axis.set_xticks(places, labels=class_names, rotation=90)
    axis.set_yticks(places, labels=class_names)
    axis.xaxis.set_ticks_position("bottom")
    axis.set(xlabel="predicted class", ylabel="true class")


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
train_transform = transforms.Compose([transforms.RandomCrop(32, padding=3), plain_transform])  # fit flips
augmented_images = datasets.ImageFolder("data/train", transform=train_transform)
plain_images = datasets.ImageFolder("data/train", transform=plain_transform)
test_images = datasets.ImageFolder("data/test", transform=plain_transform)
class_names = test_images.classes
assert plain_images.classes == class_names

fewest = int(np.bincount(plain_images.targets).min())
training_rows, validation_rows = stratified_split(
    plain_images.targets, (fewest - fewest // 5, fewest // 5), seed=42
)
assert not set(training_rows) & set(validation_rows)
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
