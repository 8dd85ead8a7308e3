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
import zipfile

import matplotlib.pyplot as plt
import numpy as np
import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from torch import nn, optim
from torch.utils.data import DataLoader, Subset
from torchvision import datasets, transforms

STUDENT_ID = "400105014"
RATE = 3e-3  # of stage 1; stage 2 begins with a tenth of it
PATIENCE = 5  # epochs of stage 2 without a better validation accuracy
SMOOTHING = 0.05
ALPHA = 0.4
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
    y = torch.as_tensor(labels)
    g = torch.Generator().manual_seed(seed)
    ends = np.cumsum([0, *per_class])
    result = [[] for _ in per_class]
    for c in torch.unique(y):
        idx = torch.where(y == c)[0]
        if idx.numel() < ends[-1]:
            raise ValueError("not enough images in class %d" % int(c))
        idx = idx[torch.randperm(idx.numel(), generator=g)].numpy()
        for k in range(len(per_class)):
            result[k].extend(idx[ends[k]:ends[k + 1]].tolist())
    return tuple(np.array(sorted(r), dtype=np.int64) for r in result)


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
    height, width = images.shape[-2:]
    lam = float(generator.beta(alpha, alpha)) if alpha > 0 else 1.0
    perm = torch.from_numpy(generator.permutation(len(images))).to(images.device)

    # side lengths of the box, and a centre anywhere in the image
    box_h = int(round(height * math.sqrt(1 - lam)))
    box_w = int(round(width * math.sqrt(1 - lam)))
    cy, cx = int(generator.integers(height)), int(generator.integers(width))
    top, left = cy - box_h // 2, cx - box_w // 2
    bottom, right = min(top + box_h, height), min(left + box_w, width)
    top, left = max(top, 0), max(left, 0)

    mixed = images.clone()
    mixed[:, :, top:bottom, left:right] = images[perm][:, :, top:bottom, left:right]
    lam = 1 - (bottom - top) * (right - left) / (height * width)
    return mixed, labels, labels[perm.to(labels.device)], lam


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
    return lam * criterion(logits, labels_a) + (1 - lam) * criterion(logits, labels_b)


# %% [markdown]
# ## What learns
#
# `parts(model)` gives head, blocks and norm, whichever model it is.


# %%
def freeze_backbone(model):
    head = parts(model)[0]
    in_head = {id(p) for p in head.parameters()}
    for p in model.parameters():
        p.requires_grad_(id(p) in in_head)
    return model


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
    model.train()
    _, blocks, _ = parts(model)
    for block in blocks:
        if all(not p.requires_grad for p in block.parameters()):
            block.eval()

    losses, hits, n = 0.0, 0.0, 0
    for x, y in loader:
        x = x.to(device)
        y = y.to(device)
        y_a, y_b, lam = y, y, 1.0
        if mix is not None:
            x, y_a, y_b, lam = mix(x, y)
        optimizer.zero_grad()
        out = model(x)
        loss = mixed_loss(criterion, out, y_a, y_b, lam)
        loss.backward()
        optimizer.step()

        pred = out.detach().argmax(dim=1)
        hits += lam * (pred == y_a).sum().item() + (1 - lam) * (pred == y_b).sum().item()
        losses += loss.item() * y.size(0)
        n += y.size(0)
    return losses / n, hits / n


# %%
@torch.no_grad()
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
    total = 0.0
    targets, predictions = [], []
    for images, labels in loader:
        images, labels = images.to(device), labels.to(device)
        logits = model(images)
        total += criterion(logits, labels).item() * len(labels)
        targets.append(labels.cpu())
        predictions.append(logits.argmax(1).cpu())
    targets = torch.cat(targets).numpy()
    predictions = torch.cat(predictions).numpy()
    return total / len(targets), float((targets == predictions).mean()), targets, predictions


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
        self.best = float("-inf")
        self.best_state = None
        self.counter = 0

    def step(self, value, model):
        if value > self.best + self.min_delta:
            self.best = value
            self.best_state = model.state_dict().copy()  # a copy, the weights go on changing
            self.counter = 0
        else:
            self.counter += 1
        return self.counter >= self.patience

    def restore(self, model):
        if self.best_state is not None:
            model.load_state_dict(self.best_state)


# %%
def fit(model, loaders, epochs, device):
    head_epochs, full_epochs = epochs
    model = model.to(device)
    loss_fn = nn.CrossEntropyLoss(label_smoothing=SMOOTHING)
    rng = np.random.default_rng(42)
    mix = lambda x, y: mixup(x, y, ALPHA, rng)  # noqa: E731
    hist = {"train_loss": [], "train_acc": [], "val_loss": [], "val_acc": [], "stage2_start": [head_epochs]}

    freeze_backbone(model)
    opt1 = optim.AdamW(parts(model)[0].parameters(), lr=RATE)
    for epoch in range(head_epochs):
        tl, ta = train_one_epoch(model, loaders["train"], opt1, loss_fn, device)
        vl, va, _, _ = evaluate(model, loaders["validation"], loss_fn, device)
        hist["train_loss"].append(tl)
        hist["train_acc"].append(ta)
        hist["val_loss"].append(vl)
        hist["val_acc"].append(va)
        print(f"stage 1, epoch {epoch + 1}: validation {va:.3f}")

    unfreeze(model)
    opt2 = optim.AdamW(model.parameters(), lr=0.1 * RATE, weight_decay=0.01)
    scheduler = optim.lr_scheduler.LambdaLR(
        opt2, lambda e: 0.5 * (1 + math.cos(math.pi * min(e / max(full_epochs, 1), 1.0)))
    )
    stopper = EarlyStopping(patience=PATIENCE)
    for epoch in range(full_epochs):
        tl, ta = train_one_epoch(model, loaders["train"], opt2, loss_fn, device, mix)
        scheduler.step()
        vl, va, _, _ = evaluate(model, loaders["validation"], loss_fn, device)
        hist["train_loss"].append(tl)
        hist["train_acc"].append(ta)
        hist["val_loss"].append(vl)
        hist["val_acc"].append(va)
        print(f"stage 2, epoch {epoch + 1}: validation {va:.3f}")
        if stopper.step(va, model):
            print("stopped early")
            break
    stopper.restore(model)
    return hist


# %%
def per_class_accuracy(targets, predictions, classes):
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
    picture = restore_colors(image, mean, std)
    rows, cols = picture.shape[0] // patch_size, picture.shape[1] // patch_size
    plt.figure(figsize=(3, 3))
    plt.imshow(picture)
    plt.title("image")
    plt.axis("off")
    figure, axes = plt.subplots(rows, cols, figsize=(4, 4), squeeze=False)
    for i in range(rows):
        for j in range(cols):
            y, x = i * patch_size, j * patch_size
            axes[i][j].imshow(picture[y:y + patch_size, x:x + patch_size], vmin=0, vmax=1)
            axes[i][j].axis("off")
    figure.suptitle("patches")


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
    n = len(history["train_loss"])
    x = list(range(1, n + 1))
    start = history["stage2_start"][0] + 0.5
    fig, (ax1, ax2) = plt.subplots(2, 1, figsize=(7, 7), sharex=True)
    ax1.plot(x, history["train_loss"], "o-", label="train loss")
    ax1.plot(x, history["val_loss"], "o-", label="validation loss")
    ax1.set_ylabel("Loss")
    ax2.plot(x, history["train_acc"], "o-", label="train accuracy")
    ax2.plot(x, history["val_acc"], "o-", label="validation accuracy")
    ax2.set_ylabel("Accuracy")
    for ax in (ax1, ax2):
        ax.axvline(start, ls=":", c="k", label="start of stage 2")
        ax.set_xlabel("Epoch")
        ax.legend()
    plt.show()


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
    matrix = np.asarray(matrix)
    figure, ax = plt.subplots(figsize=(7, 6))
    ax.imshow(matrix, cmap="Blues")
    for i in range(matrix.shape[0]):
        for j in range(matrix.shape[1]):
            ax.text(j, i, str(matrix[i, j]), ha="center", va="center",
                    color="white" if matrix[i, j] > matrix.max() / 2 else "black")
    ax.set_xticks(range(len(class_names)), class_names, rotation=45, ha="right")
    ax.set_yticks(range(len(class_names)), class_names)
    ax.set_xlabel("predicted class")
    ax.set_ylabel("true class")
    figure.tight_layout()


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
    transforms.RandomHorizontalFlip(), transforms.ToTensor(), transforms.Normalize(MEAN, STD)
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
