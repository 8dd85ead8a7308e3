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
import zipfile

import matplotlib.pyplot as plt
import numpy as np
import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from torch import nn, optim
from torch.utils.data import DataLoader, Subset
from torchvision import datasets, transforms

STUDENT_ID = "400104002"
RATE = 4e-3  # of stage 1; stage 2 begins with a tenth of it
PATIENCE = 5  # of both stages
SEED = 7
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
    labels = np.asarray(labels).ravel()
    sizes = np.asarray(per_class, dtype=int)
    classes, counts = np.unique(labels, return_counts=True)
    if (counts < sizes.sum()).any():
        short = classes[counts < sizes.sum()].tolist()
        raise ValueError(f"classes {short} have fewer than {sizes.sum()} images")

    # Random order of everything, then stably by class: each class is one shuffled run of `shuffled`.
    order = np.random.default_rng(seed).permutation(labels.size)
    shuffled = order[np.argsort(labels[order], kind="stable")]
    starts = np.cumsum(counts) - counts
    edges = np.concatenate([[0], np.cumsum(sizes)])
    # (classes, size) positions of the runs, flattened class by class
    return tuple(
        shuffled[(starts[:, None] + np.arange(low, high)[None, :]).ravel()]
        for low, high in zip(edges[:-1], edges[1:])
    )


# %% [markdown]
# ## Mixed images
#
# Ready mixup and cutmix helpers (of timm, torchvision and others) are what you build here. `generator` is a
# `numpy.random.Generator`: draw everything from it, in whatever order you like, so that the same state gives
# the same result.


# %%
def beta_by_gammas(alpha, generator):
    """A share from Beta(alpha, alpha), as the quotient of two gammas; 1 for alpha = 0."""
    if alpha <= 0:
        return 1.0
    gammas = generator.standard_gamma(alpha, size=2)
    if gammas.sum() == 0.0:  # both too small for a float: the share is at one end
        return float(generator.integers(2))
    return float(gammas[0] / gammas.sum())


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
    lam = beta_by_gammas(alpha, generator)
    partner = torch.from_numpy(generator.permutation(len(images))).to(images.device)
    weights = np.array([lam, 1.0 - lam])
    mixed = torch.einsum(
        "k,kbchw->bchw",
        torch.as_tensor(weights, dtype=images.dtype, device=images.device),
        torch.stack([images, images[partner]]),
    )
    return mixed, labels, labels[partner], lam


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
    share = 1.0 - beta_by_gammas(alpha, generator)
    center = generator.random(2) * (height, width)
    partner = torch.from_numpy(generator.permutation(len(images))).to(images.device)

    # A pixel belongs to the rectangle if its middle lies in it; what sticks out has no pixels.
    half = np.sqrt(share) * np.array([height, width]) / 2
    rows = np.abs(np.arange(height) + 0.5 - center[0]) < half[0]
    columns = np.abs(np.arange(width) + 0.5 - center[1]) < half[1]
    inside = np.logical_and.outer(rows, columns)
    mask = torch.from_numpy(inside).to(images.device)
    return torch.where(mask, images[partner], images), labels, labels[partner], float(1.0 - inside.mean())


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
    losses = torch.stack([criterion(logits, labels_a), criterion(logits, labels_b)])
    return (losses * losses.new_tensor([lam, 1.0 - lam])).sum()


# %% [markdown]
# ## What learns
#
# `parts(model)` gives head, blocks and norm, whichever model it is.


# %%
def set_learning(model, modules):
    """Exactly the parameters of these modules require gradients."""
    everything = list(model.parameters())
    chosen = np.isin([id(p) for p in everything], [id(p) for module in modules for p in module.parameters()])
    for parameter, learns in zip(everything, chosen.tolist()):
        parameter.requires_grad_(learns)


# %%
def freeze_backbone(model):
    """Exactly the head learns afterwards, whatever learned before: all else needs no gradient.

    Args:
        model: One that `parts` knows. It is changed in place; nothing has to be returned.
    """
    set_learning(model, [parts(model)[0]])


# %%
def unfreeze(model, blocks=None):
    """Exactly the head, the final norm and the last blocks learn afterwards, whatever learned before.

    Args:
        model: One that `parts` knows. It is changed in place; nothing has to be returned.
        blocks: How many of the last blocks learn; 0: none, head and norm alone; None: everything learns,
            patches, class token and positions too.
    """
    head, all_blocks, norm = parts(model)
    if blocks is None:
        set_learning(model, [model])
    else:
        first = max(len(all_blocks) - blocks, 0)
        set_learning(model, [head, norm, *all_blocks[first:]])


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
    blocks = parts(model)[1]
    frozen = np.array([not any(p.requires_grad for p in block.parameters()) for block in blocks], dtype=bool)
    for index in np.flatnonzero(frozen):
        blocks[index].eval()

    rows = []  # (images, loss, hits) of each batch
    for images, labels in loader:
        images, labels = images.to(device), labels.to(device)
        images, labels_a, labels_b, lam = (images, labels, labels, 1.0) if mix is None else mix(images, labels)
        logits = model(images)
        loss = mixed_loss(criterion, logits, labels_a, labels_b, lam)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()

        predicted = logits.detach().argmax(1).cpu().numpy()
        sides = np.stack([labels_a.cpu().numpy(), labels_b.cpu().numpy()])
        hits = np.array([lam, 1.0 - lam]) @ (sides == predicted).sum(axis=1)
        rows.append((len(predicted), loss.item(), hits))
    sizes, losses, hits = np.array(rows, dtype=float).T
    return float(np.average(losses, weights=sizes)), float(hits.sum() / sizes.sum())


# %%
def evaluate(model, loader, criterion, device):
    """Asks a model about images that it is not trained on; nothing is mixed here.

    Args:
        model: Put into evaluation mode here; no gradients are computed.
        loader, criterion, device: As in `train_one_epoch`.

    Returns:
        (loss, accuracy, targets, predictions): the means over all images; and (n,) each, whole numbers, in
        the loader's order.
    """
    model.eval()
    sizes, losses, targets, predictions = [], [], [], []
    with torch.no_grad():
        for images, labels in loader:
            logits = model(images.to(device))
            losses.append(criterion(logits, labels.to(device)).item())
            sizes.append(len(labels))
            targets.append(labels.cpu().numpy())
            predictions.append(logits.cpu().numpy().argmax(axis=1))
    targets, predictions = np.concatenate(targets), np.concatenate(predictions)
    accuracy = float((targets == predictions).mean())
    return float(np.average(losses, weights=sizes)), accuracy, targets, predictions


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
        self.best = np.nan
        self.values = []
        self.last_improvement = -1  # row in `values`
        self.weights = None

    def step(self, value, model):
        """Takes a value of validation, and a copy of the model's weights if it is an improvement.

        Returns:
            True at the `patience`-th step in a row without an improvement, else False. (What further steps
            return is free.)
        """
        value = float(value)
        self.values.append(value)
        row = len(self.values) - 1
        better = not np.isnan(value) and (np.isnan(self.best) or value > self.best + self.min_delta)
        if better:
            self.best, self.last_improvement = value, row
            self.weights = {
                name: np.array(tensor.detach().cpu().numpy(), copy=True)
                for name, tensor in model.state_dict().items()
            }
        return row - self.last_improvement >= self.patience

    def restore(self, model):
        """Puts the best weights back into the model; does nothing where there are none yet."""
        if self.weights is not None:
            model.load_state_dict({name: torch.tensor(array) for name, array in self.weights.items()})


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
    generator = np.random.default_rng(SEED)
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1)

    def mix(images, labels):
        return (mixup, cutmix)[generator.integers(2)](images, labels, 0.4, generator)

    # the rates of every epoch, known beforehand
    rates = (
        np.full(epochs[0], RATE),
        0.1 * RATE * 0.5 * (1 + np.cos(np.pi * np.arange(epochs[1]) / max(epochs[1], 1))),
    )
    rows = []
    for stage, prepare in enumerate((freeze_backbone, unfreeze), start=1):
        prepare(model)
        optimizer = optim.AdamW(
            [p for p in model.parameters() if p.requires_grad],
            lr=RATE if stage == 1 else 0.1 * RATE,
            betas=(0.9, 0.98),
            weight_decay=0.02,
        )
        stopping = EarlyStopping(PATIENCE)  # a new one for each stage
        for rate in rates[stage - 1]:
            for group in optimizer.param_groups:
                group["lr"] = float(rate)
            trained = train_one_epoch(model, loaders["train"], optimizer, criterion, device, mix)
            validated = evaluate(model, loaders["validation"], criterion, device)[:2]
            rows.append((stage, *trained, *validated))
            if stopping.step(validated[1], model):
                break
        stopping.restore(model)  # stage 2 goes on from the best of stage 1

    table = np.array(rows, dtype=float).reshape(-1, 5)
    keys = ("stage", "loss_train", "accuracy_train", "loss_validation", "accuracy_validation")
    return {key: column.tolist() for key, column in zip(keys, table.T)}


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
    targets, predictions = np.asarray(targets, dtype=int), np.asarray(predictions, dtype=int)
    images = np.bincount(targets, minlength=classes)
    hits = np.bincount(targets[targets == predictions], minlength=classes)
    return np.divide(hits, images, out=np.full(classes, np.nan), where=images > 0)


# %% [markdown]
# ## Pictures


# %%
def denormalized(image, mean, std):
    """(height, width, channels) between 0 and 1."""
    pixels = np.moveaxis(image.detach().cpu().numpy(), 0, -1)
    return np.clip(pixels * np.asarray(std) + np.asarray(mean), 0, 1)


# %%
def show_patches(image, patch_size, mean, std):
    """Draws an image as it was, and its patches, each in a place of its own, as they lie in the image.

    Args:
        image: Normalized, (channels, height, width).
        patch_size: Height and width of a patch, in pixels.
        mean, std: Of each channel, by which the image was normalized.
    """
    pixels = denormalized(image, mean, std)
    height, width, channels = pixels.shape
    rows, columns = height // patch_size, width // patch_size
    gap = 1
    # (rows, patch, columns, patch, channels), every patch with a white border behind it
    tiles = pixels.reshape(rows, patch_size, columns, patch_size, channels)
    canvas = np.pad(tiles, ((0, 0), (0, gap), (0, 0), (0, gap), (0, 0)), constant_values=1.0)
    canvas = canvas.reshape(rows * (patch_size + gap), columns * (patch_size + gap), channels)[:-gap, :-gap]

    _, (left, right) = plt.subplots(1, 2, figsize=(9, 4.5))
    left.imshow(pixels)
    left.set_title("image")
    right.imshow(canvas)
    right.set_title(f"{rows} x {columns} patches of {patch_size} x {patch_size}")
    for ax in (left, right):
        ax.set_axis_off()


# %%
def show_attention(model, image, mean, std):
    """Draws an image as it was, and beside it where the class token of the last block attends to.

    What is drawn is the mean over the heads of the last block's attention weights (each a softmax over all
    tokens) in the row of the class token, in the columns of the patches: a map (rows, columns) of patches, or
    the same enlarged to the image's size.

    Args:
        model: The given one. Its mode and its weights stay as they are.
        image: Normalized, (channels, height, width).
        mean, std: Of each channel, by which the image was normalized.
    """
    pixels = denormalized(image, mean, std)
    attention = model.blocks[-1].attn
    inputs = []
    hook = attention.register_forward_pre_hook(lambda module, args: inputs.append(args[0]))
    weight = next(model.parameters())
    with torch.no_grad():  # there is no dropout, so the mode does not matter and stays
        model(image[None].to(weight))
        hook.remove()
        qkv = attention.qkv(inputs[0])[0].cpu().numpy()  # (tokens, 3 * dim)

    tokens = len(qkv)
    queries, keys, _ = qkv.reshape(tokens, 3, attention.num_heads, -1).transpose(1, 2, 0, 3)
    scores = np.einsum("hd,htd->ht", queries[:, 0], keys) / np.sqrt(keys.shape[-1])
    scores = np.exp(scores - scores.max(axis=1, keepdims=True))
    attended = (scores / scores.sum(axis=1, keepdims=True)).mean(axis=0)[1:]

    size = model.patch_embed.patch_size
    grid = attended.reshape(pixels.shape[0] // size, pixels.shape[1] // size)
    _, (left, right) = plt.subplots(1, 2, figsize=(8, 4))
    left.imshow(pixels)
    left.set_title("image")
    shown = right.imshow(np.kron(grid, np.ones((size, size))), cmap="magma")  # enlarged to the image
    right.set_title("attention of the class token")
    plt.colorbar(shown, ax=right)
    for ax in (left, right):
        ax.set_axis_off()


# %%
def plot_history(history):
    """Draws loss and accuracy of training and validation over the epochs, both stages in one, with a mark
    where stage 2 begins, and axes and curves that say what they are.

    Args:
        history: What `fit` returned.
    """
    stages = np.asarray(history["stage"])
    epochs = np.arange(1, len(stages) + 1)
    _, losses = plt.subplots(figsize=(9, 5))
    accuracies = losses.twinx()
    lines = []
    for part, style in (("train", "--"), ("validation", "-")):
        lines += losses.plot(epochs, history[f"loss_{part}"], "C3" + style, label=f"loss, {part}")
        lines += accuracies.plot(epochs, history[f"accuracy_{part}"], "C0" + style, label=f"accuracy, {part}")
    second = epochs[stages == 2]
    if second.size:
        lines.append(losses.axvspan(second[0] - 0.5, second[-1] + 0.5, color="0.9", label="stage 2"))
    losses.set(xlabel="epoch", ylabel="loss", title="Both stages")
    accuracies.set(ylabel="accuracy", ylim=(0, 1))
    accuracies.legend(lines, [line.get_label() for line in lines], loc="center right")


# %%
def plot_per_class(names, accuracies):
    """Draws a bar for each class, as long as its accuracy, with the class's name; axes say what they are.

    Args:
        names: Of the classes.
        accuracies: (classes,), as `per_class_accuracy` gives them; NaN is drawn as nothing.
    """
    accuracies = np.asarray(accuracies, dtype=float)
    _, ax = plt.subplots(figsize=(8, 4))
    ax.bar(np.arange(len(names)), accuracies, color=plt.cm.viridis(np.linspace(0.2, 0.8, len(names))))
    ax.set_xticks(np.arange(len(names)), names, rotation=40, ha="right")
    ax.set(xlabel="class", ylabel="accuracy", ylim=(0, 1))


# %%
def plot_confusion_matrix(matrix, class_names):
    """Draws a confusion matrix with its counts, the true classes as rows, the names on both axes.

    Args:
        matrix: (classes, classes).
        class_names: The names, in the order of the labels.
    """
    matrix = np.asarray(matrix).astype(int)
    _, ax = plt.subplots(figsize=(8, 8))
    shares = matrix / np.maximum(matrix.sum(axis=1, keepdims=True), 1)  # colors by row, numbers as they are
    ax.imshow(shares, cmap="Greens", vmin=0, vmax=1)
    for (row, column), count in np.ndenumerate(matrix):
        ax.text(column, row, f"{count}", ha="center", va="center", color="w" if shares[row, column] > 0.5 else "k")
    ticks = np.arange(len(class_names))
    ax.set_xticks(ticks, class_names, rotation=60, ha="right")
    ax.set_yticks(ticks, class_names)
    ax.set(xlabel="predicted", ylabel="true", title="Confusion matrix")


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
train_transform = transforms.Compose([transforms.RandomHorizontalFlip(), plain_transform])
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
plt.show()
