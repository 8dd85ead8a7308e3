# %% [markdown]
# # Fine-tuning a pretrained Vision Transformer
#
# Everything that one may want to change is in the configuration (`conf.py`), nothing of it is in the code.
# `imaging.py` mixes and draws. This file has the experiment.

# %%
import fnmatch
import zipfile

import matplotlib.pyplot as plt
import numpy as np
import torch
from conf import Config, instantiate, override
from handout import build_model, parts
from imaging import cutmix, mixup, show_map, show_patches  # noqa: F401 (asked for by the assignment)
from torch import nn
from torch.utils.data import DataLoader, Subset
from torchvision import datasets, transforms

STUDENT_ID = "401017904"
BATCH_SIZE = 64
MEAN, STD = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)
CONFIG = override(Config(), full__optimizer__kwargs={"weight_decay": 0.03}, full__mixing__alpha=0.2)

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(42)


# %% [markdown]
# ## The split


# %%
def stratified_split(labels, per_class, seed):
    labels = torch.as_tensor(np.asarray(labels)).long()
    per_class = [int(n) for n in per_class]
    generator = torch.Generator().manual_seed(int(seed) % 2**63)
    pieces = [[] for _ in per_class]
    for label in labels.unique(sorted=True):
        rows = (labels == label).nonzero().flatten()
        rest = len(rows) - sum(per_class)
        if rest < 0:
            raise ValueError(f"{-rest} images of class {label.item()} are missing for parts of {per_class}")
        rows = rows[torch.randperm(len(rows), generator=generator)]
        *chosen, _ = rows.split([*per_class, rest])
        for piece, some in zip(pieces, chosen):
            piece.append(some)
    empty = torch.empty(0, dtype=torch.long)
    return tuple(torch.cat([empty, *piece]).numpy() for piece in pieces)


# %%
def mixed_loss(criterion, logits, labels_a, labels_b, lam):
    loss_a, loss_b = (criterion(logits, labels) for labels in (labels_a, labels_b))
    return loss_b + lam * (loss_a - loss_b)


# %% [markdown]
# ## What learns
#
# Every parameter has a role, whatever the model calls it: `head`, `norm`, `blocks.3`, or `stem` for the rest.


# %%
def roles(model):
    """{parameter: role}; parameters hash by identity."""
    head, blocks, norm = parts(model)
    table = dict.fromkeys(model.parameters(), "stem")
    for number, block in enumerate(blocks):
        table |= dict.fromkeys(block.parameters(), f"blocks.{number}")
    return table | dict.fromkeys(norm.parameters(), "norm") | dict.fromkeys(head.parameters(), "head")


def learn(model, patterns):
    for parameter, role in roles(model).items():
        parameter.requires_grad_(any(fnmatch.fnmatchcase(role, pattern) for pattern in patterns))


def freeze_backbone(model):
    learn(model, ["head"])


def unfreeze(model, blocks=None):
    if blocks is None:
        learn(model, ["*"])
    else:
        depth = len(parts(model)[1])
        learn(model, ["head", "norm", *(f"blocks.{i}" for i in range(depth) if i + blocks >= depth)])


# %% [markdown]
# ## Training and evaluation


# %%
def train_one_epoch(model, loader, optimizer, criterion, device, mix=None):
    frozen = [block for block in parts(model)[1] if not any(p.requires_grad for p in block.parameters())]
    model.train()
    nn.ModuleList(frozen).eval()

    sums = torch.zeros(3, dtype=torch.float64)  # images, losses, hits
    for batch in loader:
        images, labels = (tensor.to(device, non_blocking=True) for tensor in batch)
        images, a, b, lam = mix(images, labels) if mix else (images, labels, None, 1.0)
        logits = model(images)
        loss = criterion(logits, a) if b is None else mixed_loss(criterion, logits, a, b, lam)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        guesses = logits.argmax(dim=1)
        hits = float((guesses == a).sum())
        if b is not None:
            hits = float(lam) * hits + (1 - float(lam)) * float((guesses == b).sum())
        sums += torch.tensor([len(a), len(a) * loss.item(), hits], dtype=torch.float64)
    count, loss, hits = sums.tolist()
    return (loss / count, hits / count) if count else (float("nan"), float("nan"))


def evaluate(model, loader, criterion, device):
    model.eval()
    rows = []  # (loss, target, prediction) of each image; the loss is its batch's mean
    with torch.inference_mode():
        for images, labels in loader:
            logits = model(images.to(device))
            loss = criterion(logits, labels.to(device)).item()
            rows += zip([loss] * len(labels), labels.tolist(), logits.argmax(dim=1).tolist())
    losses, targets, predictions = (np.array(column) for column in zip(*rows))
    return float(losses.mean()), float((targets == predictions).mean()), targets, predictions


# %%
class EarlyStopping:
    def __init__(self, patience, min_delta=0.0):
        self.patience, self.min_delta = patience, min_delta
        self.values = []  # all of them
        self.best_at = None  # the index of the best one
        self.checkpoint = None

    def step(self, value, model):
        self.values.append(float(value))
        now = len(self.values) - 1
        is_number = self.values[now] == self.values[now]
        if is_number and (self.best_at is None or self.values[now] > self.values[self.best_at] + self.min_delta):
            self.best_at = now
            self.checkpoint = {name: torch.empty_like(t).copy_(t) for name, t in model.state_dict().items()}
        since = len(self.values) if self.best_at is None else now - self.best_at
        return since >= self.patience

    def restore(self, model):
        if self.checkpoint is not None:
            model.load_state_dict(self.checkpoint)


# %% [markdown]
# ## Stages by configuration


# %%
def make_mix(mixing, generator):
    """The function for `train_one_epoch`, or None where nothing is to be mixed."""
    if mixing is None:
        return None

    def mix(images, labels):
        flip, kind = generator.random(2)
        if flip < mixing.p_flip:
            images = images.flip(dims=(-1,))
        if kind < mixing.p_mixup:
            return mixup(images, labels, mixing.alpha, generator)
        if kind < mixing.p_mixup + mixing.p_cutmix:
            return cutmix(images, labels, mixing.alpha, generator)
        return images, labels, labels, 1.0

    return mix


def run_stage(config, stage, model, loaders, epochs, device, history):
    learn(model, stage.learn)
    learning = [p for p in model.parameters() if p.requires_grad]
    optimizer = instantiate(stage.optimizer, learning, lr=stage.lr)
    schedule = instantiate(stage.schedule, optimizer, variables={"epochs": max(epochs, 1)})
    criterion = instantiate(config.criterion)
    mix = make_mix(stage.mixing, np.random.default_rng(config.seed))
    stopping = EarlyStopping(stage.patience) if stage.patience else None
    history["stage_begins"].append(len(history["train/loss"]))

    for _ in range(epochs):
        trained = train_one_epoch(model, loaders["train"], optimizer, criterion, device, mix)
        validated = evaluate(model, loaders["validation"], criterion, device)
        schedule.step()
        for part, numbers in (("train", trained), ("val", validated)):
            history[f"{part}/loss"].append(numbers[0])
            history[f"{part}/acc"].append(numbers[1])
        if stopping is not None and stopping.step(validated[1], model):
            break
    if stopping is not None:
        stopping.restore(model)


def fit(model, loaders, epochs, device):
    model.to(device)
    history = {"train/loss": [], "train/acc": [], "val/loss": [], "val/acc": [], "stage_begins": []}
    for stage, passes in zip((CONFIG.head, CONFIG.full), epochs, strict=True):
        run_stage(CONFIG, stage, model, loaders, passes, device, history)
    return history


# %%
def per_class_accuracy(targets, predictions, classes):
    targets, predictions = (torch.as_tensor(np.asarray(x, dtype=np.int64)) for x in (targets, predictions))
    ones = torch.ones(len(targets), dtype=torch.float64)
    zeros = torch.zeros(classes, dtype=torch.float64)
    images = zeros.index_add(0, targets, ones)
    hits = zeros.index_add(0, targets, (targets == predictions).double())
    return (hits / images).numpy()  # torch divides 0 by 0 without a word: NaN


# %% [markdown]
# ## Pictures (two more are in `imaging.py`)


# %%
@torch.no_grad()
def show_attention(model, image, mean, std):
    attn = parts(model)[1][-1].attn
    grabbed = []
    hook = attn.qkv.register_forward_pre_hook(lambda module, args: grabbed.append(args[0]))  # what goes in
    try:
        model(image[None].to(next(model.parameters()).device))
    finally:
        hook.remove()
    tokens = grabbed[0][0]  # (tokens, dim), after the norm
    dim = tokens.shape[-1]
    w_q, w_k, _ = attn.qkv.weight.split(dim)
    b_q, b_k, _ = attn.qkv.bias.split(dim) if attn.qkv.bias is not None else (None, None, None)
    q = nn.functional.linear(tokens[0], w_q, b_q).reshape(attn.num_heads, 1, -1)
    k = nn.functional.linear(tokens, w_k, b_k).reshape(len(tokens), attn.num_heads, -1).transpose(0, 1)
    weights = (q * q.shape[-1] ** -0.5 @ k.transpose(1, 2)).softmax(dim=-1).mean(dim=0).squeeze(0)
    patch = model.patch_embed.patch_size
    grid = weights[1:].unflatten(0, (image.shape[1] // patch, image.shape[2] // patch))
    show_map(image, grid.cpu().numpy(), mean, std)


def plot_history(history):
    figure, (top, bottom) = plt.subplots(2, 1, figsize=(7, 7), sharex=True, layout="constrained")
    for ax, metric, label in ((top, "loss", "loss"), (bottom, "acc", "accuracy")):
        for part, name in (("train", "training"), ("val", "validation")):
            ax.plot(np.arange(1, 1 + len(history[f"{part}/{metric}"])), history[f"{part}/{metric}"], label=name)
        ax.axvline(history["stage_begins"][1] + 1, color="tab:gray", linestyle="dashdot", label="stage 2 begins")
        ax.set(xlabel="epoch", ylabel=label)
        ax.legend()


def plot_per_class(names, accuracies):
    values = np.asarray(accuracies, dtype=float)
    figure, ax = plt.subplots(figsize=(6, 4.5), layout="constrained")
    y = np.arange(len(values))[::-1]
    ax.barh(y, values, color="tab:olive")
    ax.set_yticks(y, list(names))
    ax.set(xlim=(0, 1), xlabel="accuracy", ylabel="class")


def plot_confusion_matrix(matrix, class_names):
    counts = np.asarray(matrix).astype(int)
    share = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)  # colors by row, numbers as they are
    figure, ax = plt.subplots(figsize=(8, 7), layout="constrained")
    ax.imshow(share, cmap="Purples", vmin=0, vmax=1)
    for (i, j), count in np.ndenumerate(counts):
        ax.text(j, i, f"{count}", ha="center", va="center", color="white" if share[i, j] > 0.5 else "black")
    ticks = np.arange(len(class_names))
    ax.set_xticks(ticks, class_names, rotation=60, ha="right")
    ax.set_yticks(ticks, class_names)
    ax.set(xlabel="predicted", ylabel="true")


# %% [markdown]
# ## The images

# %%
with zipfile.ZipFile("dataset.zip") as archive:
    archive.extractall("data")

plain_transform = transforms.Compose([transforms.ToTensor(), transforms.Normalize(MEAN, STD)])
train_transform = transforms.Compose(
    [transforms.RandomAffine(degrees=8, translate=(0.06, 0.06)), transforms.RandomHorizontalFlip(), plain_transform]
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
