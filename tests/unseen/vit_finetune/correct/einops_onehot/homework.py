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
from einops import einsum, rearrange, reduce, repeat
from safetensors.torch import load_file
from torch import nn, optim
from torch.utils.data import DataLoader, Subset
from torchvision import datasets, transforms

STUDENT_ID = "400104006"
RATE = 4e-3  # stage 1; stage 2 begins with a tenth of it
PATIENCE = 5
BATCH_SIZE = 64
ALPHA = 0.2
SMOOTHING = 0.05
MEAN, STD = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(42)

# %%
def one_hot(values, classes):
    """(n,) whole numbers -> (n, classes) of zeros and ones."""
    numbers = torch.as_tensor(values).cpu().long()
    return rearrange(numbers, "n -> n 1").eq(torch.arange(classes)).double()


def denormalized(image, mean, std):
    """(c, h, w) normalized -> (h, w, c) between 0 and 1."""
    image = torch.as_tensor(image).detach().cpu().double()
    mean = rearrange(torch.as_tensor(mean).cpu().double(), "c -> c 1 1")
    std = rearrange(torch.as_tensor(std).cpu().double(), "c -> c 1 1")
    return rearrange((image * std + mean).clamp(0, 1), "c h w -> h w c").numpy()


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
    """Ranks of the images within their class, in one random order, decide which part they go to."""
    labels = np.asarray(labels)
    classes = np.unique(labels)
    membership = (rearrange(labels, "n -> n 1") == rearrange(classes, "c -> 1 c")).astype(int)
    if (reduce(membership, "n c -> c", "sum") < sum(per_class)).any():
        raise ValueError(f"a class has fewer than {sum(per_class)} images")

    order = np.random.default_rng(seed).permutation(len(labels))
    shuffled = membership[order]
    rank = reduce(shuffled * shuffled.cumsum(axis=0), "n c -> n", "sum") - 1
    edges = np.cumsum([0, *per_class])
    return tuple(order[(rank >= start) & (rank < stop)] for start, stop in zip(edges[:-1], edges[1:]))


# %% [markdown]
# ## Mixed images
#
# Ready mixup and cutmix helpers (of timm, torchvision and others) are what you build here. `generator` is a
# `numpy.random.Generator`: draw everything from it, in whatever order you like, so that the same state gives
# the same result.

# %%
def mixup(images, labels, alpha, generator):
    """The batch times a mixing matrix: lam on the diagonal, 1 - lam at the partners."""
    partner = torch.from_numpy(generator.permutation(len(images)))
    lam = float(generator.beta(alpha, alpha)) if alpha > 0 else 1.0

    identity = torch.eye(len(images), dtype=images.dtype, device=images.device)
    mixing = lam * identity + (1 - lam) * identity[partner.to(images.device)]
    mixed = einsum(mixing, images, "i j, j c h w -> i c h w")
    return mixed, labels, labels[partner.to(labels.device)], lam


# %%
def cutmix(images, labels, alpha, generator):
    """A mask that is an outer product of rows and columns chooses between the two sides."""
    height, width = images.shape[-2:]
    partner = torch.from_numpy(generator.permutation(len(images)))
    lam = float(generator.beta(alpha, alpha)) if alpha > 0 else 1.0
    center_y, center_x = generator.uniform(0, height), generator.uniform(0, width)

    half = math.sqrt(1 - lam) / 2
    rows = (torch.arange(height) + 0.5 - center_y).abs() < half * height
    columns = (torch.arange(width) + 0.5 - center_x).abs() < half * width
    mask = rearrange(rows, "h -> h 1") & rearrange(columns, "w -> 1 w")

    mixed = torch.where(mask.to(images.device), images[partner.to(images.device)], images)
    kept = 1 - int(mask.sum()) / (height * width)
    return mixed, labels, labels[partner.to(labels.device)], kept


# %%
def mixed_loss(criterion, logits, labels_a, labels_b, lam):
    losses = torch.stack([criterion(logits, labels_a), criterion(logits, labels_b)])
    shares = losses.new_tensor([lam, 1 - lam])
    return einsum(shares, losses, "side, side ->")


# %% [markdown]
# ## What learns
#
# `parts(model)` gives head, blocks and norm, whichever model it is.

# %%
def only_these_learn(model, modules):
    """Sets requires_grad of every parameter by whether it belongs to one of the modules."""
    learning = {id(parameter) for module in modules for parameter in module.parameters()}
    for parameter in model.parameters():
        parameter.requires_grad = id(parameter) in learning


def freeze_backbone(model):
    head, _, _ = parts(model)
    only_these_learn(model, [head])


# %%
def unfreeze(model, blocks=None):
    if blocks is None:
        only_these_learn(model, [model])
        return
    head, layers, norm = parts(model)
    first = max(len(layers) - blocks, 0)
    only_these_learn(model, [head, norm, *layers[first:]])


# %% [markdown]
# ## Training and evaluation

# %%
def train_one_epoch(model, loader, optimizer, criterion, device, mix=None):
    model.train()
    for block in parts(model)[1]:
        block.train(any(parameter.requires_grad for parameter in block.parameters()))

    sums = torch.zeros(3, dtype=torch.float64)  # of losses, of hits, of images
    for images, labels in loader:
        images, labels = images.to(device), labels.to(device)
        if mix is None:
            sides, shares = rearrange(labels, "b -> 1 b"), [1.0]
            logits = model(images)
            loss = criterion(logits, labels)
        else:
            images, labels_a, labels_b, lam = mix(images, labels)
            sides, shares = torch.stack([labels_a, labels_b]), [lam, 1 - lam]
            logits = model(images)
            loss = mixed_loss(criterion, logits, labels_a, labels_b, lam)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

        hits = reduce((sides == logits.argmax(dim=1)).double().cpu(), "side b -> side", "sum")
        hits = einsum(torch.tensor(shares, dtype=torch.float64), hits, "side, side ->")
        sums += torch.tensor([loss.item() * len(labels), hits.item(), len(labels)], dtype=torch.float64)
    mean_loss, accuracy = (sums[:2] / sums[2]).tolist()
    return mean_loss, accuracy


# %%
@torch.no_grad()
def evaluate(model, loader, criterion, device):
    model.eval()
    logits, targets, losses = [], [], []
    for images, labels in loader:
        scores = model(images.to(device))
        losses.append(criterion(scores, labels.to(device)).item())
        logits.append(scores.cpu())
        targets.append(labels.cpu())
    sizes = torch.tensor([len(batch) for batch in targets], dtype=torch.float64)
    loss = einsum(torch.tensor(losses, dtype=torch.float64), sizes, "b, b ->") / sizes.sum()
    targets, predictions = torch.cat(targets), torch.cat(logits).argmax(dim=1)
    accuracy = reduce((targets == predictions).double(), "n ->", "mean")
    return loss.item(), accuracy.item(), targets, predictions


# %%
class EarlyStopping:
    """Higher is better; the best weights are cloned."""

    def __init__(self, patience, min_delta=0.0):
        self.patience = patience
        self.min_delta = min_delta
        self.values = []  # since the best one, which is the first
        self.best = None
        self.weights = None

    def step(self, value, model):
        value = float(value)
        improved = not math.isnan(value) and (self.best is None or value > self.best + self.min_delta)
        if improved:
            self.best = value
            self.weights = {name: tensor.clone() for name, tensor in model.state_dict().items()}
            self.values = []
        else:
            self.values.append(value)
        return len(self.values) >= self.patience

    def restore(self, model):
        if self.weights is not None:
            model.load_state_dict(self.weights)


# %%
def fit(model, loaders, epochs, device):
    """Mixup in both stages; early stopping in stage 2."""
    model.to(device)
    generator = np.random.default_rng(6)
    smooth, plain = nn.CrossEntropyLoss(label_smoothing=SMOOTHING), nn.CrossEntropyLoss()
    keys = ("train_loss", "train_accuracy", "validation_loss", "validation_accuracy", "stage")
    history = {key: [] for key in keys}

    def mix(images, labels):
        return mixup(images, labels, ALPHA, generator)

    def epoch(stage, optimizer):
        trained = train_one_epoch(model, loaders["train"], optimizer, smooth, device, mix)
        validated = evaluate(model, loaders["validation"], plain, device)[:2]
        for key, value in zip(keys, (*trained, *validated, stage)):
            history[key].append(value)
        return validated[1]

    freeze_backbone(model)
    optimizer = optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=RATE, weight_decay=0.01)
    for _ in range(epochs[0]):
        epoch(1, optimizer)

    unfreeze(model)
    optimizer = optim.AdamW(model.parameters(), lr=RATE / 10, weight_decay=0.05)
    scheduler = optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=max(epochs[1], 1))
    stopping = EarlyStopping(PATIENCE)
    for _ in range(epochs[1]):
        stop = stopping.step(epoch(2, optimizer), model)
        scheduler.step()
        if stop:
            break
    stopping.restore(model)
    return history


# %%
def per_class_accuracy(targets, predictions, classes):
    true, predicted = one_hot(targets, classes), one_hot(predictions, classes)
    hits = einsum(true, predicted, "n c, n c -> c")
    return (hits / reduce(true, "n c -> c", "sum")).numpy()  # 0 / 0 is NaN


def confusion(targets, predictions, classes):
    true, predicted = one_hot(targets, classes), one_hot(predictions, classes)
    return einsum(true, predicted, "n i, n j -> i j").long().numpy()


# %% [markdown]
# ## Pictures

# %%
def show_patches(image, patch_size, mean, std):
    """The image, and beside it its patches, with white lines between them."""
    picture = denormalized(image, mean, std)
    patches = rearrange(picture, "(r p) (s q) c -> r s p q c", p=patch_size, q=patch_size)
    padded = np.pad(patches, ((0, 0), (0, 0), (1, 1), (1, 1), (0, 0)), constant_values=1.0)
    figure, axes = plt.subplots(1, 2, figsize=(9, 4.5))
    axes[0].imshow(picture)
    axes[0].set_title("image")
    axes[1].imshow(rearrange(padded, "r s p q c -> (r p) (s q) c"))
    axes[1].set_title(f"{patches.shape[0]} x {patches.shape[1]} patches")
    for axis in axes:
        axis.axis("off")
    figure.tight_layout()


# %%
def show_attention(model, image, mean, std):
    """A hook on the last qkv; the map is drawn enlarged to the image's size."""
    attention = model.blocks[-1].attn
    seen = []
    handle = attention.qkv.register_forward_hook(lambda module, inputs, output: seen.append(output.detach()))
    try:
        with torch.no_grad():
            parameter = next(model.parameters())
            model(rearrange(torch.as_tensor(image), "c h w -> 1 c h w").to(parameter.device, parameter.dtype))
    finally:
        handle.remove()

    q, k, _ = rearrange(seen[0], "1 t (three heads d) -> three heads t d", three=3, heads=attention.num_heads)
    scores = einsum(q[:, 0], k, "heads d, heads t d -> heads t") / math.sqrt(q.shape[-1])
    weights = reduce(scores.softmax(dim=-1), "heads t -> t", "mean")[1:].cpu()
    side = model.patch_embed.patch_size
    rows = image.shape[-2] // side
    enlarged = repeat(weights, "(r s) -> (r p) (s q)", r=rows, p=side, q=side).numpy()

    figure, axes = plt.subplots(1, 2, figsize=(9, 4))
    axes[0].imshow(denormalized(image, mean, std))
    axes[0].set_title("image")
    drawn = axes[1].imshow(enlarged, cmap="viridis")
    axes[1].set_title("attention of the class token")
    figure.colorbar(drawn, ax=axes[1])


# %%
def plot_history(history):
    epochs = np.arange(1, len(history["stage"]) + 1)
    figure, axes = plt.subplots(1, 2, figsize=(11, 4))
    for axis, what in zip(axes, ("loss", "accuracy")):
        for part in ("train", "validation"):
            axis.plot(epochs, history[f"{part}_{what}"], marker=".", label=part)
        axis.axvline(history["stage"].count(1) + 0.5, color="gray", linestyle="--", label="stage 2 begins")
        axis.set_xlabel("epoch")
        axis.set_ylabel(what)
        axis.legend()
    figure.tight_layout()


# %%
def plot_per_class(names, accuracies):
    figure, axis = plt.subplots(figsize=(9, 4))
    axis.bar(list(names), np.asarray(accuracies, dtype=float))
    axis.set_ylim(0, 1)
    axis.set_xlabel("class")
    axis.set_ylabel("accuracy")
    axis.tick_params(axis="x", rotation=45)
    figure.tight_layout()


# %%
def plot_confusion_matrix(matrix, class_names):
    matrix = np.asarray(matrix)
    figure, axis = plt.subplots(figsize=(7, 7))
    axis.imshow(matrix, cmap="Blues")
    for row, column in np.ndindex(*matrix.shape):
        color = "white" if matrix[row, column] > matrix.max() / 2 else "black"
        axis.text(column, row, str(int(matrix[row, column])), ha="center", va="center", color=color)
    axis.set_xticks(range(len(class_names)), class_names, rotation=90)
    axis.set_yticks(range(len(class_names)), class_names)
    axis.set_xlabel("predicted class")
    axis.set_ylabel("true class")
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
plot_confusion_matrix(confusion(targets, predictions, len(class_names)), class_names)

# %%
images, labels = next(iter(test_loader))
show_patches(images[0], 4, MEAN, STD)
show_attention(model, images[0], MEAN, STD)
