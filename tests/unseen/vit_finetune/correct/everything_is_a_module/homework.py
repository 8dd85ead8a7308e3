# %% [markdown]
# # Fine-tuning a pretrained Vision Transformer
#
# In PyTorch everything that has a state or a `forward` can be an `nn.Module`: mixing, losses, sums, memories,
# even the drawing of patches. Modules have names, buffers, a device and a `repr`; so here nearly everything
# is one, and the functions of the assignment call them.

# %%
import math
import zipfile

import matplotlib.pyplot as plt
import numpy as np
import torch
import torch.nn.functional as F
from handout import build_model, parts
from matplotlib.colors import PowerNorm
from torch import nn, optim
from torch.utils.data import DataLoader, Subset
from torchvision import datasets, transforms

STUDENT_ID = "401118236"
RATE = 3e-3
BETAS = (0.9, 0.95)
PATIENCE = 6
BATCH_SIZE = 64
MEAN, STD = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(42)


# %% [markdown]
# ## The split


# %%
class Stratify(nn.Module):
    """labels (n,) -> tuple of indices; the sizes are a buffer."""

    def __init__(self, per_class):
        super().__init__()
        self.register_buffer("sizes", torch.tensor([int(n) for n in per_class], dtype=torch.long))

    def forward(self, labels, generator):
        classes, label, count = labels.unique(return_inverse=True, return_counts=True)
        needed = int(self.sizes.sum())
        if (count < needed).any():
            raise ValueError(f"classes {classes[count < needed].tolist()} have fewer than {needed} images")
        # sort by class, and by chance within a class
        shuffled = torch.from_numpy(generator.permutation(len(labels)))
        order = shuffled[label[shuffled].argsort(stable=True)]
        of_class = order.split(count.tolist())
        pieces = [rows[:needed].split(self.sizes.tolist()) for rows in of_class]
        return tuple(
            torch.cat([rows[k] for rows in pieces]) if pieces else order[:0] for k in range(len(self.sizes))
        )


def stratified_split(labels, per_class, seed):
    labels = torch.as_tensor(np.asarray(labels).astype(np.int64))
    return Stratify(per_class)(labels, np.random.default_rng(seed))


# %% [markdown]
# ## Mixed images


# %%
class Mixer(nn.Module):
    """(images, labels) -> (images, labels_a, labels_b, lam). Subclasses say what is kept of an image."""

    def __init__(self, alpha, generator):
        super().__init__()
        self.alpha, self.generator = alpha, generator

    def extra_repr(self):
        return f"alpha={self.alpha}"

    def keep(self, height, width):
        """A weight for each pixel, (height, width), or one for all, ()."""
        raise NotImplementedError

    def share(self):
        return float(self.generator.beta(self.alpha, self.alpha)) if self.alpha > 0 else 1.0

    def forward(self, images, labels):
        order = torch.from_numpy(self.generator.permutation(len(images)))
        kept = self.keep(*images.shape[-2:])
        weight = kept.to(images)  # dtype and device
        mixed = images * weight + images[order.to(images.device)] * (1 - weight)
        return mixed, labels, labels[order.to(labels.device)], kept.mean().item()


class MixUp(Mixer):
    def keep(self, height, width):
        return torch.tensor(self.share(), dtype=torch.float64)


class CutMix(Mixer):
    def keep(self, height, width):
        side = math.sqrt(1 - self.share())
        h, w = round(height * side), round(width * side)
        top = int(self.generator.integers(height - h, endpoint=True))
        left = int(self.generator.integers(width - w, endpoint=True))
        # un trou de zéros dans un cadre de uns
        hole = torch.zeros(h, w, dtype=torch.float64)
        return F.pad(hole, (left, width - w - left, top, height - h - top), value=1.0)


def mixup(images, labels, alpha, generator):
    return MixUp(alpha, generator)(images, labels)


def cutmix(images, labels, alpha, generator):
    return CutMix(alpha, generator)(images, labels)


class RandomChoice(nn.ModuleList):
    """Applies one of its modules to a batch, by chance."""

    def __init__(self, modules, generator):
        super().__init__(modules)
        self.generator = generator

    def forward(self, *batch):
        return self[int(self.generator.integers(len(self)))](*batch)


class Unmixed(nn.Module):
    def forward(self, images, labels):
        return images, labels, labels, 1.0


class Flip(nn.Module):
    """Mirrors each image with probability one half, before another module sees the batch."""

    def __init__(self, then, generator):
        super().__init__()
        self.then, self.generator = then, generator

    def forward(self, images, labels):
        heads = torch.from_numpy(self.generator.random(len(images)) < 0.5).to(images.device)
        return self.then(torch.where(heads[:, None, None, None], images.flip(-1), images), labels)


# %%
class MixedLoss(nn.Module):
    def __init__(self, criterion):
        super().__init__()
        self.criterion = criterion  # a module is registered, a function is simply kept

    def forward(self, logits, labels_a, labels_b, lam):
        return self.criterion(logits, labels_a).mul(lam).add(self.criterion(logits, labels_b).mul(1 - lam))


def mixed_loss(criterion, logits, labels_a, labels_b, lam):
    return MixedLoss(criterion)(logits, labels_a, labels_b, lam)


# %% [markdown]
# ## What learns


# %%
def freeze_backbone(model):
    model.requires_grad_(False)
    parts(model)[0].requires_grad_(True)


def unfreeze(model, blocks=None):
    head, all_blocks, norm = parts(model)
    learning = nn.ModuleList([head, norm])
    if blocks is None:
        learning.append(model)
    elif blocks > 0:
        learning.extend(all_blocks[-blocks:])  # more than there are: all of them
    model.requires_grad_(False)
    learning.requires_grad_(True)


# %% [markdown]
# ## Training and evaluation


# %%
class RunningMean(nn.Module):
    """Means over images; the state is in buffers, so it lies on the device, and nothing waits for it."""

    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros((), dtype=torch.float64))
        self.register_buffer("total", torch.zeros(2, dtype=torch.float64))  # loss, hits

    @torch.no_grad()
    def forward(self, n, mean_loss, hits):
        self.count += n
        self.total += torch.stack([mean_loss.double() * n, hits.double()])

    def compute(self):
        return tuple((self.total / self.count).tolist())


class Hits(nn.Module):
    def forward(self, logits, labels):
        return (logits.argmax(dim=-1) == labels).sum().double()


def train_one_epoch(model, loader, optimizer, criterion, device, mix=None):
    model.train()
    for block in parts(model)[1]:
        block.train(any(p.requires_grad for p in block.parameters()))
    mean, hits = RunningMean().to(device), Hits()

    for images, labels in loader:
        images, labels = images.to(device), labels.to(device)
        if mix is None:
            logits = model(images)
            loss, right = criterion(logits, labels), hits(logits, labels)
        else:
            images, a, b, lam = mix(images, labels)
            logits = model(images)
            loss = mixed_loss(criterion, logits, a, b, lam)
            right = lam * hits(logits, a) + (1 - lam) * hits(logits, b)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        mean(len(images), loss.detach(), right)
    return mean.compute()


class Collected(nn.Module):
    """Grows by concatenation: a module that remembers what went through it."""

    def __init__(self):
        super().__init__()
        self.register_buffer("values", torch.empty(0, dtype=torch.long))

    def forward(self, values):
        self.values = torch.cat([self.values, values.to(self.values)])
        return values


@torch.no_grad()
def evaluate(model, loader, criterion, device):
    model.eval()
    mean, hits = RunningMean().to(device), Hits()
    targets, predictions = Collected(), Collected()
    for images, labels in loader:
        images, labels = images.to(device), labels.to(device)
        logits = model(images)
        mean(len(images), criterion(logits, labels), hits(logits, labels))
        targets(labels)
        predictions(logits.argmax(dim=-1))
    return *mean.compute(), targets.values, predictions.values


# %%
class Snapshot(nn.Module):
    """A copy of another module's state in buffers of its own. Names with dots cannot be buffers: numbers can."""

    def __init__(self):
        super().__init__()
        self.keys = []

    def take(self, model):
        self.keys = []
        for number, (key, value) in enumerate(model.state_dict().items()):
            self.register_buffer(f"value_{number}", value.clone())
            self.keys.append(key)

    def give(self, model):
        if self.keys:
            model.load_state_dict(dict(zip(self.keys, self.buffers())))


class EarlyStopping(nn.Module):
    def __init__(self, patience, min_delta=0.0):
        super().__init__()
        self.patience, self.min_delta = patience, min_delta
        self.best, self.waited = math.nan, 0  # NaN: none yet
        self.snapshot = Snapshot()

    def extra_repr(self):
        return f"patience={self.patience}, best={self.best}, waited={self.waited}"

    def step(self, value, model):
        value = float(value)
        first = math.isnan(self.best) and not math.isnan(value)
        if first or value > self.best + self.min_delta:  # never true with NaN on either side
            self.best, self.waited = value, 0
            self.snapshot.take(model)
        else:
            self.waited += 1
        return self.waited >= self.patience

    def restore(self, model):
        self.snapshot.give(model)


# %% [markdown]
# ## Two stages


# %%
class Stage(nn.Module):
    """Holds the model and what belongs to one stage; `forward` is one epoch. It is made when what learns is known."""

    def __init__(self, model, rate, mix, epochs, annealed):
        super().__init__()
        self.model = model
        self.mix = mix
        self.criterion = nn.CrossEntropyLoss(label_smoothing=0.05)
        learning = [p for p in model.parameters() if p.requires_grad]
        self.optimizer = optim.AdamW(learning, lr=rate, betas=BETAS, weight_decay=0.02)
        half_cosine = lambda t: 0.5 + 0.5 * math.cos(math.pi * t / max(epochs, 1))
        self.schedule = optim.lr_scheduler.LambdaLR(self.optimizer, half_cosine if annealed else lambda t: 1.0)

    def forward(self, loaders, device):
        trained = train_one_epoch(self.model, loaders["train"], self.optimizer, self.criterion, device, self.mix)
        validated = evaluate(self.model, loaders["validation"], self.criterion, device)[:2]
        self.schedule.step()
        return trained, validated


def fit(model, loaders, epochs, device):
    model.to(device)
    generator = np.random.default_rng(3)
    choice = RandomChoice([MixUp(0.3, generator), CutMix(0.3, generator), Unmixed(), Unmixed()], generator)
    curves = {"train": {"loss": [], "accuracy": []}, "validation": {"loss": [], "accuracy": []}}

    def note(*both):
        for part, means in zip(("train", "validation"), both):
            for name, mean in zip(("loss", "accuracy"), means):
                curves[part][name].append(mean)

    freeze_backbone(model)
    first = Stage(model, RATE, None, epochs[0], annealed=False)
    for _ in range(epochs[0]):
        note(*first(loaders, device))

    unfreeze(model)
    second = Stage(model, RATE / 10, Flip(choice, generator), epochs[1], annealed=True)
    stopping = EarlyStopping(PATIENCE)
    for _ in range(epochs[1]):
        trained, validated = second(loaders, device)
        note(trained, validated)
        if stopping.step(validated[1], model):
            break
    stopping.restore(model)
    history = {f"{part}_{name}": values for part, some in curves.items() for name, values in some.items()}
    return history | {"first_epoch_of_stage": [1, epochs[0] + 1]}


# %%
class PerClassAccuracy(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.classes = classes

    def forward(self, targets, predictions):
        pairs = targets * self.classes + predictions
        confusion = torch.bincount(pairs, minlength=self.classes**2).view(self.classes, self.classes).double()
        return confusion.diagonal() / confusion.sum(dim=1)


def per_class_accuracy(targets, predictions, classes):
    targets, predictions = (torch.as_tensor(np.asarray(x, dtype=np.int64)) for x in (targets, predictions))
    return PerClassAccuracy(classes)(targets, predictions).numpy()


# %% [markdown]
# ## Pictures


# %%
class Denormalize(nn.Module):
    """(..., channels, height, width), back to numbers between 0 and 1."""

    def __init__(self, mean, std):
        super().__init__()
        self.register_buffer("mean", torch.as_tensor(mean, dtype=torch.float32).view(-1, 1, 1))
        self.register_buffer("std", torch.as_tensor(std, dtype=torch.float32).view(-1, 1, 1))

    def forward(self, images):
        return (images * self.std + self.mean).clamp(0, 1)


class Patches(nn.Unfold):
    """(channels, height, width) -> (rows, columns, channels, patch, patch)"""

    def __init__(self, patch_size):
        super().__init__(patch_size, stride=patch_size)

    def forward(self, image):
        rows, columns = (size // self.kernel_size for size in image.shape[-2:])
        flat = super().forward(image[None])[0]  # (channels * patch * patch, rows * columns)
        return flat.T.reshape(rows, columns, image.shape[0], self.kernel_size, self.kernel_size)


class ClassAttention(nn.Module):
    """Images -> (batch, rows, columns), from the parts of a model. The parts run as they are, without hooks."""

    def __init__(self, model):
        super().__init__()
        _, blocks, _ = parts(model)
        self.model = model
        self.before = nn.Sequential(*blocks[:-1], blocks[-1].norm1)
        self.attention = blocks[-1].attn

    def forward(self, images):
        model, heads = self.model, self.attention.num_heads
        patches = model.patch_embed(images)
        tokens = torch.cat([model.cls_token.expand(len(images), -1, -1), patches], dim=1) + model.pos_embed
        qkv = self.attention.qkv(self.before(tokens))
        q, k, _ = qkv.unflatten(-1, (3, heads, -1)).permute(2, 0, 3, 1, 4)  # (batch, heads, tokens, dim)
        weights = F.softmax(q[:, :, :1] @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]), dim=-1)
        size = model.patch_embed.patch_size
        return weights.mean(dim=1)[:, 0, 1:].unflatten(-1, (images.shape[-2] // size, images.shape[-1] // size))


def draw(axes, image, **options):
    """(channels, height, width) or (height, width)."""
    image = image.movedim(0, -1) if image.ndim == 3 and len(image) == 3 else image.reshape(image.shape[-2:])
    axes.imshow(image.numpy(), **options)
    axes.axis("off")


@torch.no_grad()
def show_patches(image, patch_size, mean, std):
    image = Denormalize(mean, std)(image.cpu())
    patches = Patches(patch_size)(image)
    rows, columns = patches.shape[:2]
    figure, axes = plt.subplots(figsize=(3, 3))
    draw(axes, image, cmap="gray", vmin=0, vmax=1)
    axes.set_title("image")
    figure, grid = plt.subplots(rows, columns, figsize=(0.6 * columns, 0.6 * rows), squeeze=False)
    for axes, patch in zip(grid.flat, patches.flatten(0, 1)):
        draw(axes, patch, cmap="gray", vmin=0, vmax=1)
    figure.suptitle("its patches")


@torch.no_grad()
def show_attention(model, image, mean, std):
    attention = ClassAttention(model)(image[None].to(model.cls_token.device))[0].cpu()
    figure, (left, right) = plt.subplots(1, 2)
    draw(left, Denormalize(mean, std)(image.cpu()), cmap="gray", vmin=0, vmax=1)
    draw(right, attention, cmap="magma")
    left.set_title("image")
    right.set_title("attention of the class token")


def plot_history(history):
    figure, axes = plt.subplots(1, 2, figsize=(12, 4))
    for place, name in zip(axes, ("loss", "accuracy")):
        for part in ("train", "validation"):
            values = history[f"{part}_{name}"]
            place.plot(torch.arange(1, len(values) + 1).tolist(), values, label=part)
        place.axvline(history["first_epoch_of_stage"][1], ls=":", c="k", label="first epoch of stage 2")
        place.set_xlabel("epoch")
        place.set_ylabel(name)
        place.legend()


def plot_per_class(names, accuracies):
    values = [float(a) for a in accuracies]
    figure, axes = plt.subplots(figsize=(8, 4))
    axes.bar(range(len(values)), values, tick_label=[str(name) for name in names], color="tab:purple")
    axes.set_xlabel("class")
    axes.set_ylabel("accuracy")
    axes.set_ylim(0, 1)
    plt.setp(axes.get_xticklabels(), rotation=45, ha="right")
    figure.tight_layout()


def plot_confusion_matrix(matrix, class_names):
    counts = torch.as_tensor(np.asarray(matrix)).long()
    figure, axes = plt.subplots(figsize=(8, 8))
    axes.imshow(counts.numpy(), cmap="Oranges", norm=PowerNorm(0.5))  # the root shows rare confusions too
    for (i, j), count in np.ndenumerate(counts.numpy()):
        axes.text(j, i, int(count), ha="center", va="center")
    axes.set_xticks(range(len(class_names)), class_names, rotation=45, ha="right")
    axes.set_yticks(range(len(class_names)), class_names)
    axes.set_xlabel("predicted")
    axes.set_ylabel("true")
    figure.tight_layout()


# %% [markdown]
# ## The images

# %%
with zipfile.ZipFile("dataset.zip") as archive:
    archive.extractall("data")

plain_transform = nn.Sequential(transforms.Normalize(MEAN, STD))
to_tensor = transforms.Compose([transforms.PILToTensor(), transforms.ConvertImageDtype(torch.float32)])
augmentation = nn.Sequential(transforms.RandomHorizontalFlip(), transforms.RandomCrop(32, padding=2), plain_transform)
augmented_images = datasets.ImageFolder("data/train", transform=transforms.Compose([to_tensor, augmentation]))
plain_images = datasets.ImageFolder("data/train", transform=transforms.Compose([to_tensor, plain_transform]))
test_images = datasets.ImageFolder("data/test", transform=transforms.Compose([to_tensor, plain_transform]))
class_names = test_images.classes

fewest = int(np.bincount(plain_images.targets).min())
training_rows, validation_rows = stratified_split(
    plain_images.targets, (fewest - fewest // 5, fewest // 5), seed=42
)
loaders = {
    "train": DataLoader(Subset(augmented_images, training_rows.tolist()), batch_size=BATCH_SIZE, shuffle=True),
    "validation": DataLoader(Subset(plain_images, validation_rows.tolist()), batch_size=256),
}
test_loader = DataLoader(test_images, batch_size=256)

# %%
EPOCHS = (3, 12)
model = build_model(len(class_names))
history = fit(model, loaders, EPOCHS, device)
torch.save(model.state_dict(), f"{STUDENT_ID}_Finetune.pth")
plot_history(history)

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
