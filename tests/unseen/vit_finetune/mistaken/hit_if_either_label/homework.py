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

STUDENT_ID = "400105012"
RATE = 2e-3  # of stage 1; stage 2 begins with a tenth of it
PATIENCE = 4  # epochs of stage 2 without a better validation accuracy
SMOOTHING = 0.05
ALPHA = 0.3
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
    lam = float(generator.beta(alpha, alpha)) if alpha > 0 else 1.0
    perm = torch.from_numpy(generator.permutation(len(images))).to(images.device)
    mixed = lam * images + (1 - lam) * images[perm]
    return mixed, labels, labels[perm.to(labels.device)], lam


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
    head = parts(model)[0]
    in_head = {id(p) for p in head.parameters()}
    for p in model.parameters():
        p.requires_grad_(id(p) in in_head)
    return model


# %%
def unfreeze(model, blocks=None):
    head, all_blocks, norm = parts(model)
    model.requires_grad_(blocks is None)
    if blocks is not None:
        first = max(len(all_blocks) - blocks, 0)
        for module in [head, norm, *all_blocks[first:]]:
            module.requires_grad_(True)


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
    _, blocks, _ = parts(model)
    for block in blocks:
        if all(not p.requires_grad for p in block.parameters()):
            block.eval()

    loss_sum, correct, n = 0.0, 0, 0
    for x, y in loader:
        x, y = x.to(device), y.to(device)
        optimizer.zero_grad()
        if mix is None:
            out = model(x)
            loss = criterion(out, y)
            right = out.argmax(1) == y
        else:
            x, y_a, y_b, lam = mix(x, y)
            out = model(x)
            loss = mixed_loss(criterion, out, y_a, y_b, lam)
            pred = out.argmax(1)
            right = (pred == y_a) | (pred == y_b)  # both things are in the picture
        loss.backward()
        optimizer.step()
        loss_sum += loss.item() * len(x)
        correct += right.sum().item()
        n += len(x)
    return loss_sum / n, correct / n


# %%
def evaluate(model, loader, criterion, device):
    model.eval()
    loss_sum, correct, n = 0.0, 0, 0
    y_true, y_pred = [], []
    with torch.no_grad():
        for x, y in loader:
            x, y = x.to(device), y.to(device)
            out = model(x)
            pred = out.argmax(dim=1)
            loss_sum += criterion(out, y).item() * y.size(0)
            correct += (pred == y).sum().item()
            n += y.size(0)
            y_true += y.tolist()
            y_pred += pred.tolist()
    return loss_sum / n, correct / n, np.array(y_true), np.array(y_pred)


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
        self.best_value = -math.inf
        self.state = None
        self.waited = 0

    def step(self, value, model):
        if value > self.best_value + self.min_delta:  # false for NaN
            self.best_value = float(value)
            self.state = {k: v.detach().clone() for k, v in model.state_dict().items()}
            self.waited = 0
            return False
        self.waited += 1
        return self.waited >= self.patience

    def restore(self, model):
        if self.state is None:
            return
        model.load_state_dict(self.state)


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
    """The accuracy within each class.

    Args:
        targets, predictions: (n,), whole numbers: arrays, tensors or lists.
        classes: How many classes there are.

    Returns:
        An array (classes,): the share of each class's images that are predicted as that class; NaN for a
        class that does not occur in `targets`.
    """
    t = np.asarray(targets, dtype=int)
    p = np.asarray(predictions, dtype=int)
    counts = np.bincount(t, minlength=classes)
    hits = np.bincount(t[t == p], minlength=classes)
    return np.where(counts > 0, hits / np.maximum(counts, 1), np.nan)


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
    captured = []

    def hook(module, inputs, output):
        captured.append(output)

    handle = model.blocks[-1].attn.qkv.register_forward_hook(hook)
    with torch.no_grad():
        model(image.unsqueeze(0).to(model.cls_token.device))
    handle.remove()

    qkv = captured[0]
    n_heads = model.blocks[-1].attn.num_heads
    B, N, three_dim = qkv.shape
    q, k, v = qkv.reshape(B, N, 3, n_heads, three_dim // 3 // n_heads).permute(2, 0, 3, 1, 4)
    attn = torch.softmax(q @ k.transpose(-2, -1) * q.size(-1) ** -0.5, dim=-1)
    cls_attn = attn[0].mean(dim=0)[0, 1:]
    rows = image.shape[-2] // model.patch_embed.patch_size
    amap = cls_attn.reshape(rows, -1).cpu().numpy()

    plt.figure(figsize=(8, 4))
    plt.subplot(1, 2, 1)
    plt.imshow(restore_colors(image, mean, std))
    plt.axis("off")
    plt.title("Image")
    plt.subplot(1, 2, 2)
    plt.imshow(amap, cmap="inferno")
    plt.colorbar()
    plt.axis("off")
    plt.title("CLS attention")
    plt.show()


# %%
def plot_history(history):
    """Draws loss and accuracy of training and validation over the epochs, both stages in one, with a mark
    where stage 2 begins, and axes and curves that say what they are.

    Args:
        history: What `fit` returned.
    """
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
    plt.figure(figsize=(6, 5))
    plt.barh(list(names), np.asarray(accuracies, dtype=float), color="teal")
    plt.xlim(0, 1)
    plt.xlabel("Accuracy")
    plt.ylabel("Class")
    plt.title("Accuracy of each class")
    plt.show()


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
