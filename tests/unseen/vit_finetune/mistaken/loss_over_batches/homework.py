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
import copy
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

STUDENT_ID = "400105013"
RATE = 5e-3  # of stage 1; stage 2 begins with a tenth of it
PATIENCE = 5  # epochs of stage 2 without a better validation accuracy
SMOOTHING = 0.1
ALPHA = 0.2
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
    rng = np.random.RandomState(seed)
    by_class = {}
    for index, label in enumerate(labels):
        by_class.setdefault(int(label), []).append(index)

    needed = sum(per_class)
    out = tuple([] for _ in per_class)
    for label in sorted(by_class):
        members = by_class[label]
        if len(members) < needed:
            raise ValueError("class {} is too small".format(label))
        rng.shuffle(members)
        for k, n in enumerate(per_class):
            out[k].extend(members[:n])
            members = members[n:]
    return tuple(np.array(part, dtype=int) for part in out)


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
    lam = 1.0
    if alpha > 0:
        lam = float(generator.beta(alpha, alpha))
    idx = torch.tensor(generator.permutation(len(labels)), device=images.device)
    return torch.lerp(images[idx], images, lam), labels, labels[idx], lam


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
    order = torch.as_tensor(generator.permutation(images.shape[0]))
    lam = 1.0 if alpha == 0 else float(generator.beta(alpha, alpha))
    H, W = images.shape[2], images.shape[3]
    h = int(round(H * np.sqrt(1 - lam)))
    w = int(round(W * np.sqrt(1 - lam)))
    y = int(generator.integers(0, H - h + 1))  # the box always fits inside
    x = int(generator.integers(0, W - w + 1))
    result = images.clone()
    result[..., y:y + h, x:x + w] = images[order][..., y:y + h, x:x + w]
    return result, labels, labels[order], 1.0 - (h * w) / (H * W)


# %%
def mixed_loss(criterion, logits, labels_a, labels_b, lam):
    loss_a = criterion(logits, labels_a)
    loss_b = criterion(logits, labels_b)
    return loss_a * lam + loss_b * (1.0 - lam)


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
    for p in model.parameters():
        p.requires_grad = False
    for p in head.parameters():
        p.requires_grad = True


# %%
def unfreeze(model, blocks=None):
    """Exactly the head, the final norm and the last blocks learn afterwards, whatever learned before.

    Args:
        model: One that `parts` knows. It is changed in place; nothing has to be returned.
        blocks: How many of the last blocks learn; 0: none, head and norm alone; None: everything learns,
            patches, class token and positions too.
    """
    if blocks is None:
        for p in model.parameters():
            p.requires_grad = True
        return
    freeze_backbone(model)
    _, layers, norm = parts(model)
    learning = [norm]
    if blocks > 0:
        learning += layers[-blocks:]
    for module in learning:
        for p in module.parameters():
            p.requires_grad = True


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
        block.train(any(p.requires_grad for p in block.parameters()))
    sums = {"loss": 0.0, "hits": 0.0, "images": 0}
    for images, labels in loader:
        images, labels = images.to(device), labels.to(device)
        optimizer.zero_grad(set_to_none=True)
        if mix:
            images, labels_a, labels_b, lam = mix(images, labels)
        else:
            labels_a, labels_b, lam = labels, labels, 1
        logits = model(images)
        loss = mixed_loss(criterion, logits, labels_a, labels_b, lam)
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            best = logits.argmax(-1)
            right = lam * (best == labels_a).float() + (1 - lam) * (best == labels_b).float()
        sums["loss"] += loss.item() * len(labels)
        sums["hits"] += float(right.sum())
        sums["images"] += len(labels)
    return sums["loss"] / sums["images"], sums["hits"] / sums["images"]


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
    test_loss, correct = 0.0, 0
    targets, predictions = [], []
    with torch.no_grad():
        for X, y in loader:
            X, y = X.to(device), y.to(device)
            pred = model(X)
            test_loss += criterion(pred, y).item()
            correct += (pred.argmax(1) == y).type(torch.float).sum().item()
            targets.append(y.cpu())
            predictions.append(pred.argmax(1).cpu())
    targets, predictions = torch.cat(targets), torch.cat(predictions)
    test_loss /= len(loader)
    correct /= len(targets)
    return test_loss, correct, targets, predictions


# %%
class EarlyStopping:
    def __init__(self, patience, min_delta=0.0):
        self.patience = patience
        self.min_delta = min_delta
        self.best = None
        self.best_weights = None
        self.bad_steps = 0

    def step(self, value, model):
        value = float(value)
        better = not math.isnan(value) and (self.best is None or value > self.best + self.min_delta)
        if better:
            self.best = value
            self.best_weights = copy.deepcopy(model.state_dict())
            self.bad_steps = 0
        else:
            self.bad_steps += 1
        return self.bad_steps >= self.patience

    def restore(self, model):
        if self.best_weights is not None:
            model.load_state_dict(self.best_weights)


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
    plain = nn.CrossEntropyLoss()
    generator = np.random.default_rng(0)
    history = {"train_loss": [], "train_accuracy": [], "val_loss": [], "val_accuracy": [], "stage": []}

    def mix(images, labels):
        if generator.random() < 0.5:
            return mixup(images, labels, ALPHA, generator)
        return cutmix(images, labels, ALPHA, generator)

    def one_epoch(optimizer, stage):
        train_loss, train_accuracy = train_one_epoch(model, loaders["train"], optimizer, criterion, device, mix)
        val_loss, val_accuracy, _, _ = evaluate(model, loaders["validation"], plain, device)
        history["train_loss"].append(train_loss)
        history["train_accuracy"].append(train_accuracy)
        history["val_loss"].append(val_loss)
        history["val_accuracy"].append(val_accuracy)
        history["stage"].append(stage)
        return val_accuracy

    # stage 1: the head
    freeze_backbone(model)
    optimizer = optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=RATE, weight_decay=0.05)
    for _ in range(epochs[0]):
        one_epoch(optimizer, 1)

    # stage 2: everything
    unfreeze(model)
    optimizer = optim.AdamW(model.parameters(), lr=RATE / 10, weight_decay=0.05)
    schedule = optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=max(epochs[1], 1))
    stopping = EarlyStopping(PATIENCE)
    for _ in range(epochs[1]):
        accuracy = one_epoch(optimizer, 2)
        schedule.step()
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
    result = np.full(classes, np.nan)
    for c in range(classes):
        of_class = targets == c
        if of_class.any():
            result[c] = (predictions[of_class] == c).mean()
    return result


# %% [markdown]
# ## Pictures


# %%
def restore_colors(image, mean, std):
    """Undo the normalization; gives (height, width, channels) for imshow."""
    mean, std = torch.tensor(mean).view(-1, 1, 1), torch.tensor(std).view(-1, 1, 1)
    return (image.detach().cpu() * std + mean).clamp(0, 1).permute(1, 2, 0).numpy()


# %%
def show_patches(image, patch_size, mean, std):
    """Draws an image as it was, and its patches, each in a place of its own, as they lie in the image.

    Args:
        image: Normalized, (channels, height, width).
        patch_size: Height and width of a patch, in pixels.
        mean, std: Of each channel, by which the image was normalized.
    """
    img = restore_colors(image, mean, std)
    n_rows, n_cols = img.shape[0] // patch_size, img.shape[1] // patch_size
    fig = plt.figure(figsize=(9, 4.5))
    left, right = fig.subfigures(1, 2)
    ax = left.subplots()
    ax.imshow(img)
    ax.set_title("Image")
    ax.axis("off")
    grid = right.subplots(n_rows, n_cols, squeeze=False)
    for k, ax in enumerate(grid.flat):
        r, c = divmod(k, n_cols)
        ax.imshow(img[r * patch_size:(r + 1) * patch_size, c * patch_size:(c + 1) * patch_size])
        ax.set_xticks([])
        ax.set_yticks([])
    plt.show()


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
    attention = model.blocks[-1].attn
    seen = {}
    handle = attention.qkv.register_forward_hook(lambda module, args, output: seen.update(qkv=output.detach()))
    try:
        with torch.no_grad():
            model(image[None].to(next(model.parameters()).device))
    finally:
        handle.remove()

    _, tokens, width = seen["qkv"].shape
    heads = attention.num_heads
    q, k, _ = seen["qkv"][0].reshape(tokens, 3, heads, width // (3 * heads)).permute(1, 2, 0, 3)
    weights = (q @ k.transpose(1, 2) / math.sqrt(q.shape[-1])).softmax(-1)
    patch = model.patch_embed.patch_size
    rows, cols = image.shape[1] // patch, image.shape[2] // patch
    attention_map = weights.mean(0)[0, 1:].reshape(rows, cols).cpu().numpy()

    figure, axes = plt.subplots(1, 2, figsize=(7, 3.5))
    axes[0].imshow(restore_colors(image, mean, std))
    axes[0].set_title("image")
    axes[1].imshow(attention_map, cmap="viridis")
    axes[1].set_title("attention of the class token")
    for ax in axes:
        ax.axis("off")


# %%
def plot_history(history):
    """Draws loss and accuracy of training and validation over the epochs, both stages in one, with a mark
    where stage 2 begins, and axes and curves that say what they are.

    Args:
        history: What `fit` returned.
    """
    epochs = np.arange(1, len(history["train_loss"]) + 1)
    figure, axes = plt.subplots(1, 2, figsize=(11, 4))
    for ax, what in zip(axes, ("loss", "accuracy")):
        ax.plot(epochs, history["train_" + what], label="training")
        ax.plot(epochs, history["val_" + what], label="validation")
        ax.axvline(history["stage"].count(1) + 0.5, color="gray", linestyle="--", label="stage 2 begins")
        ax.set_xlabel("epoch")
        ax.set_ylabel(what)
        ax.legend()
    figure.tight_layout()


# %%
def plot_per_class(names, accuracies):
    """Draws a bar for each class, as long as its accuracy, with the class's name; axes say what they are.

    Args:
        names: Of the classes.
        accuracies: (classes,), as `per_class_accuracy` gives them; NaN is drawn as nothing.
    """
    figure, ax = plt.subplots(figsize=(8, 4))
    ax.bar(range(len(names)), np.asarray(accuracies, dtype=float))
    ax.set_xticks(range(len(names)), names, rotation=45)
    ax.set_ylim(0, 1)
    ax.set_xlabel("class")
    ax.set_ylabel("accuracy")
    figure.tight_layout()


# %%
def plot_confusion_matrix(matrix, class_names):
    """Draws a confusion matrix with its counts, the true classes as rows, the names on both axes.

    Args:
        matrix: (classes, classes).
        class_names: The names, in the order of the labels.
    """
    m = np.array(matrix)
    n = len(class_names)
    plt.figure(figsize=(8, 7))
    plt.imshow(m, cmap="viridis")
    plt.colorbar()
    plt.xticks(np.arange(n), class_names, rotation=90)
    plt.yticks(np.arange(n), class_names)
    for row in range(n):
        for col in range(n):
            plt.text(col, row, int(m[row, col]), ha="center", va="center", color="red")
    plt.xlabel("Predicted")
    plt.ylabel("True")
    plt.title("Confusion matrix")
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
train_transform = transforms.Compose([
    transforms.RandomCrop(32, padding=4), transforms.RandomHorizontalFlip(), transforms.ToTensor(), transforms.Normalize(MEAN, STD)
])
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
