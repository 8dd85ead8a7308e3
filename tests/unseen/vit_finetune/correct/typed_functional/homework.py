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
from __future__ import annotations

import copy
import zipfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import matplotlib.pyplot as plt
import numpy as np
import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from sklearn.metrics import ConfusionMatrixDisplay
from torch import Tensor, nn, optim
from torch.utils.data import DataLoader, Subset
from torchvision import datasets, transforms

STUDENT_ID = "400104003"
RATE = 2.5e-3
PATIENCE = 4
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


# %%
def stratified_split(labels: Sequence[int] | Tensor, per_class: Sequence[int], seed: int) -> tuple[Tensor, ...]:
    """Disjoint parts with exactly `per_class[k]` images of every class in part k, as tensors of indices."""
    labels = torch.as_tensor(labels)
    generator = torch.Generator().manual_seed(seed)
    sizes = [int(size) for size in per_class]
    pieces: list[tuple[Tensor, ...]] = []
    for label in labels.unique():
        own = torch.nonzero(labels == label).flatten()
        if len(own) < sum(sizes):
            raise ValueError(f"class {label.item()}: {len(own)} images, but the parts need {sum(sizes)}")
        own = own[torch.randperm(len(own), generator=generator)]
        pieces.append(own[: sum(sizes)].split(sizes))
    return tuple(torch.cat(part).sort().values for part in zip(*pieces))


# %% [markdown]
# ## Mixed images

# %%
Mixed = tuple[Tensor, Tensor, Tensor, float]
Mix = Callable[[Tensor, Tensor], Mixed]


def _share(alpha: float, generator: np.random.Generator) -> float:
    return generator.beta(alpha, alpha, size=1).item() if alpha > 0 else 1.0


def _ring(count: int, generator: np.random.Generator) -> Tensor:
    """Partners along a ring in random order: with two images or more, nobody is their own partner."""
    order = torch.from_numpy(generator.permutation(count))
    partners = torch.empty_like(order)
    partners[order] = order.roll(1)
    return partners


def mixup(images: Tensor, labels: Tensor, alpha: float, generator: np.random.Generator) -> Mixed:
    """`lam * images[i] + (1 - lam) * images[j]`, j along a ring."""
    partners = _ring(len(images), generator).to(images.device)
    lam = _share(alpha, generator)
    return torch.lerp(images[partners], images, lam), labels, labels[partners], lam


def cutmix(images: Tensor, labels: Tensor, alpha: float, generator: np.random.Generator) -> Mixed:
    """One rectangle of image j in image i; `lam` is the share of pixels that image i keeps."""
    partners = _ring(len(images), generator).to(images.device)
    root = (1.0 - _share(alpha, generator)) ** 0.5
    spans: list[slice] = []
    for side in images.shape[-2:]:
        center, length = int(generator.integers(side)), round(side * root)
        low = center - length // 2
        spans.append(slice(max(low, 0), max(min(low + length, side), 0)))
    vertical, horizontal = spans

    mixed = images.clone(memory_format=torch.contiguous_format)
    mixed[..., vertical, horizontal] = images[partners][..., vertical, horizontal]
    area = (vertical.stop - vertical.start) * (horizontal.stop - horizontal.start)
    return mixed, labels, labels[partners], 1.0 - area / (images.shape[-2] * images.shape[-1])


def mixed_loss(
    criterion: Callable[[Tensor, Tensor], Tensor],
    logits: Tensor,
    labels_a: Tensor,
    labels_b: Tensor,
    lam: float,
) -> Tensor:
    """The losses of both labels, weighted by their shares."""
    return torch.lerp(criterion(logits, labels_b), criterion(logits, labels_a), lam)


# %% [markdown]
# ## What learns


# %%
def freeze_backbone(model: nn.Module) -> None:
    """Exactly the head learns."""
    head, _, _ = parts(model)
    model.requires_grad_(False)
    head.requires_grad_(True)


def unfreeze(model: nn.Module, blocks: int | None = None) -> None:
    """Exactly head, norm and the last `blocks` blocks learn; with None everything does."""
    model.requires_grad_(blocks is None)
    if blocks is None:
        return
    head, layers, norm = parts(model)
    learning = [head, norm] + list(reversed(layers))[:blocks]
    for module in learning:
        module.requires_grad_(True)


def parameter_groups(model: nn.Module, decay: float) -> list[dict]:
    """What learns, with weight decay on matrices and none on biases, norms, class token and positions."""
    named = [(name, p) for name, p in model.named_parameters() if p.requires_grad]
    plain = [p for name, p in named if p.ndim < 2 or name in ("cls_token", "pos_embed")]
    known = {id(p) for p in plain}
    matrices = [p for _, p in named if id(p) not in known]
    groups = [{"params": matrices, "weight_decay": decay}, {"params": plain, "weight_decay": 0.0}]
    return [group for group in groups if group["params"]]


# %% [markdown]
# ## Training and evaluation


# %%
@dataclass
class Tally:
    """Sums over images, and their means."""

    loss_sum: float = 0.0
    hits: float = 0.0
    count: int = 0

    def add(self, loss: Tensor, hits: float, count: int) -> None:
        self.loss_sum += loss.item() * count
        self.hits += hits
        self.count += count

    @property
    def means(self) -> tuple[float, float]:
        return self.loss_sum / self.count, self.hits / self.count


def _set_training_mode(model: nn.Module) -> None:
    model.train()
    for block in parts(model)[1]:
        block.train(any(p.requires_grad for p in block.parameters()))


def train_one_epoch(
    model: nn.Module,
    loader: Iterable[tuple[Tensor, Tensor]],
    optimizer: optim.Optimizer,
    criterion: Callable[[Tensor, Tensor], Tensor],
    device: torch.device | str,
    mix: Mix | None = None,
) -> tuple[float, float]:
    """One pass over the data; (loss, accuracy) as means over images."""
    _set_training_mode(model)
    tally = Tally()
    for images, labels in loader:
        images, labels = images.to(device, non_blocking=True), labels.to(device, non_blocking=True)
        if mix is not None:
            images, labels_a, labels_b, lam = mix(images, labels)
            logits = model(images)
            loss = mixed_loss(criterion, logits, labels_a, labels_b, lam)
            guesses = logits.argmax(dim=-1)
            hits = lam * guesses.eq(labels_a).sum().item() + (1 - lam) * guesses.eq(labels_b).sum().item()
        else:
            logits = model(images)
            loss = criterion(logits, labels)
            hits = logits.argmax(dim=-1).eq(labels).sum().item()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        tally.add(loss, hits, len(labels))
    return tally.means


@torch.inference_mode()
def evaluate(
    model: nn.Module,
    loader: Iterable[tuple[Tensor, Tensor]],
    criterion: Callable[[Tensor, Tensor], Tensor],
    device: torch.device | str,
) -> tuple[float, float, Tensor, Tensor]:
    """(loss, accuracy, targets, predictions) in evaluation mode; both (n,) on the CPU."""
    model.eval()
    tally = Tally()
    targets: list[Tensor] = []
    predictions: list[Tensor] = []
    for images, labels in loader:
        labels = labels.to(device)
        logits = model(images.to(device))
        guesses = logits.argmax(dim=-1)
        tally.add(criterion(logits, labels), guesses.eq(labels).sum().item(), len(labels))
        targets.append(labels.cpu())
        predictions.append(guesses.cpu())
    return *tally.means, torch.cat(targets), torch.cat(predictions)


# %%
@dataclass
class EarlyStopping:
    """Stops after `patience` steps in a row without an improvement of more than `min_delta`."""

    patience: int
    min_delta: float = 0.0
    best: float | None = field(default=None, init=False)
    waited: int = field(default=0, init=False)
    _state: dict[str, Tensor] | None = field(default=None, init=False, repr=False)

    def _improves(self, value: float) -> bool:
        if value != value:  # NaN
            return False
        return self.best is None or value - self.best > self.min_delta

    def step(self, value: float, model: nn.Module) -> bool:
        if self._improves(float(value)):
            self.best, self.waited = float(value), 0
            self._state = copy.deepcopy(model.state_dict())
        else:
            self.waited += 1
        return self.waited >= self.patience

    def restore(self, model: nn.Module) -> None:
        if self._state is not None:
            model.load_state_dict(self._state)


# %%
@dataclass(frozen=True)
class Recipe:
    """The numbers of the experiment."""

    rate: float = RATE
    decay: float = 0.05
    smoothing: float = 0.1
    patience: int = PATIENCE
    mixup_alpha: float = 0.3
    cutmix_alpha: float = 1.0
    mixed_share: float = 0.7  # of the batches of stage 2; the others stay as they are
    seed: int = 2024


def make_mix(recipe: Recipe) -> Mix:
    generator = np.random.default_rng(recipe.seed)

    def mix(images: Tensor, labels: Tensor) -> Mixed:
        if generator.random() >= recipe.mixed_share:
            return images, labels, labels, 1.0
        if generator.random() < 0.5:
            return mixup(images, labels, recipe.mixup_alpha, generator)
        return cutmix(images, labels, recipe.cutmix_alpha, generator)

    return mix


def fit(
    model: nn.Module,
    loaders: dict[str, DataLoader],
    epochs: tuple[int, int],
    device: torch.device | str,
) -> dict[str, list]:
    """Stage 1: the head; stage 2: everything at a tenth of the rate, with early stopping."""
    recipe = Recipe()
    model.to(device)
    criterion = nn.CrossEntropyLoss(label_smoothing=recipe.smoothing)
    history: dict[str, list] = {key: [] for key in ("tr_loss", "tr_acc", "val_loss", "val_acc", "phase", "lr")}

    def one_epoch(phase: str, optimizer: optim.Optimizer, mix: Mix | None) -> float:
        rate = optimizer.param_groups[0]["lr"]
        tr_loss, tr_acc = train_one_epoch(model, loaders["train"], optimizer, criterion, device, mix)
        val_loss, val_acc, *_ = evaluate(model, loaders["validation"], criterion, device)
        for key, value in zip(history, (tr_loss, tr_acc, val_loss, val_acc, phase, rate)):
            history[key].append(value)
        return val_acc

    freeze_backbone(model)
    optimizer = optim.AdamW(parameter_groups(model, recipe.decay), lr=recipe.rate)
    for _ in range(epochs[0]):
        one_epoch("head", optimizer, None)

    unfreeze(model)
    optimizer = optim.AdamW(parameter_groups(model, recipe.decay), lr=recipe.rate / 10)
    schedule = optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=max(epochs[1], 1), eta_min=recipe.rate / 1e4)
    stopping = EarlyStopping(recipe.patience)
    mix = make_mix(recipe)
    for _ in range(epochs[1]):
        accuracy = one_epoch("all", optimizer, mix)
        schedule.step()
        if stopping.step(accuracy, model):
            break
    stopping.restore(model)
    return history


# %%
def per_class_accuracy(
    targets: Sequence[int] | Tensor, predictions: Sequence[int] | Tensor, classes: int
) -> np.ndarray:
    """The share of hits within each class; NaN (0 / 0) where a class is absent."""
    targets, predictions = torch.as_tensor(targets).long(), torch.as_tensor(predictions).long()
    one_hot = F.one_hot(targets, classes).double()
    hits = (one_hot * targets.eq(predictions).unsqueeze(1)).sum(dim=0)
    return (hits / one_hot.sum(dim=0)).numpy()


# %% [markdown]
# ## Pictures


# %%
def to_picture(image: Tensor, mean: Sequence[float], std: Sequence[float]) -> Tensor:
    """(height, width, channels), between 0 and 1."""
    image = image.detach().cpu()
    mean_, std_ = (torch.as_tensor(values, dtype=image.dtype).view(-1, 1, 1) for values in (mean, std))
    return torch.addcmul(mean_, image, std_).clamp(0, 1).permute(1, 2, 0)


def show_patches(image: Tensor, patch_size: int, mean: Sequence[float], std: Sequence[float]) -> None:
    """The image, and beside it its patches in a grid of axes."""
    picture = to_picture(image, mean, std)
    patches = picture.unfold(0, patch_size, patch_size).unfold(1, patch_size, patch_size)
    rows, columns = patches.shape[:2]  # (rows, columns, channels, patch, patch)
    figure = plt.figure(figsize=(10, 5), layout="constrained")
    left, right = figure.subfigures(1, 2)
    axes = left.subplots()
    axes.imshow(picture.numpy())
    axes.axis("off")
    left.suptitle("the image")
    grid = right.subplots(rows, columns, squeeze=False)
    for row in range(rows):
        for column in range(columns):
            grid[row, column].imshow(patches[row, column].permute(1, 2, 0).numpy())
            grid[row, column].axis("off")
    right.suptitle(f"its {rows * columns} patches")


@torch.no_grad()
def class_token_attention(model: nn.Module, image: Tensor) -> Tensor:
    """(rows, columns): the given model by hand up to the last block's softmax, so nothing has to be hooked."""
    image = image.to(model.pos_embed.device)
    patches = model.patch_embed(image.unsqueeze(0))
    tokens = torch.cat([model.cls_token, patches], dim=1) + model.pos_embed
    for block in model.blocks[:-1]:
        tokens = block(tokens)
    last = model.blocks[-1]
    qkv = last.attn.qkv(last.norm1(tokens))
    queries, keys, _ = (
        part.unflatten(-1, (last.attn.num_heads, -1)).transpose(1, 2) for part in qkv.chunk(3, dim=-1)
    )
    weights = F.softmax(queries @ keys.mT * keys.shape[-1] ** -0.5, dim=-1)
    size = model.patch_embed.patch_size
    return weights.mean(dim=1)[0, 0, 1:].unflatten(0, (image.shape[-2] // size, image.shape[-1] // size)).cpu()


def show_attention(model: nn.Module, image: Tensor, mean: Sequence[float], std: Sequence[float]) -> None:
    """The image, and the map of its class token's attention, smoothly enlarged to the image's size."""
    attention = class_token_attention(model, image)
    enlarged = F.interpolate(
        attention[None, None], size=tuple(image.shape[-2:]), mode="bilinear", align_corners=False
    )
    figure, (left, right) = plt.subplots(1, 2, figsize=(8, 4), layout="constrained")
    left.imshow(to_picture(image, mean, std).numpy())
    left.set_title("image")
    mapped = right.imshow(enlarged[0, 0].numpy(), cmap="inferno")
    right.set_title("class token, last block, mean over heads")
    figure.colorbar(mapped, ax=right)
    for axes in (left, right):
        axes.axis("off")


def plot_history(history: dict[str, list]) -> None:
    """Loss above, accuracy below, over the epochs of both stages."""
    epochs = range(1, len(history["phase"]) + 1)
    figure, panels = plt.subplots(2, 1, figsize=(7, 7), sharex=True, layout="constrained")
    for axes, quantity, word in zip(panels, ("loss", "acc"), ("loss", "accuracy")):
        axes.plot(epochs, history[f"tr_{quantity}"], "o-", label="training")
        axes.plot(epochs, history[f"val_{quantity}"], "s-", label="validation")
        if "all" in history["phase"]:
            axes.axvline(history["phase"].index("all") + 1, color="black", ls=":", label="stage 2")
        axes.set_xlabel("epoch")
        axes.set_ylabel(word)
        axes.legend()
    figure.suptitle("fine-tuning in two stages")


def plot_per_class(names: Sequence[str], accuracies: Sequence[float]) -> None:
    """Lying bars, the first class on top."""
    _, axes = plt.subplots(figsize=(7, 5), layout="constrained")
    axes.barh(list(names), [float(value) for value in accuracies], color="teal")
    axes.invert_yaxis()
    axes.set_xlim(0, 1)
    axes.set_xlabel("accuracy")
    axes.set_ylabel("class")


def plot_confusion_matrix(matrix: np.ndarray, class_names: Sequence[str]) -> None:
    """The counts, true classes as rows."""
    _, axes = plt.subplots(figsize=(8, 8), layout="constrained")
    display = ConfusionMatrixDisplay(np.asarray(matrix), display_labels=list(class_names))
    display.plot(ax=axes, cmap="Purples", values_format="d", xticks_rotation="vertical")


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
    [transforms.RandomHorizontalFlip(), transforms.RandomCrop(32, padding=2, padding_mode="reflect"), plain_transform]
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
