# %% [markdown]
# # Fine-tuning a pretrained Vision Transformer
#
# My mother tongue is Go. Functions that can fail give `(value, err)`, and the caller looks at `err` at once;
# only the functions that the assignment names may panic. Zero values are useful, structs are plain, loops are
# plain, constructors are called `new_...`. A little copying is better than a little dependency.

# %%
import math
import os
import zipfile

import matplotlib.pyplot as plt
import numpy as np
import torch
from handout import build_model, parts
from torch import nn, optim
from torch.utils.data import DataLoader, Subset
from torchvision import datasets, transforms

STUDENT_ID = "400815529"
MEAN, STD = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)
BATCH_SIZE = 64

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(42)

# const (
HEAD_RATE = 3e-3
BODY_RATE = HEAD_RATE / 10
PATIENCE = 5
ALPHA = 0.3
SMOOTHING = 0.05
# )


# %% [markdown]
# ## The split


# %%
def group_rows(labels):
    """map[int][]int: the rows of each class."""
    rows = {}
    for row, label in enumerate(labels):
        label = int(label)
        if label not in rows:
            rows[label] = []
        rows[label].append(row)
    return rows


def take(rows, sizes):
    """Cuts a slice into consecutive slices. Returns (slices, err)."""
    need = 0
    for size in sizes:
        need += size
    if len(rows) < need:
        return None, f"have {len(rows)} images, need {need}"
    slices, low = [], 0
    for size in sizes:
        slices.append(rows[low : low + size])
        low += size
    return slices, None


def split_rows(labels, sizes, rng):
    """Returns (parts, err)."""
    out = [[] for _ in sizes]
    groups = group_rows(labels)
    for label in sorted(groups):  # maps have no order in Go, so one sorts the keys
        rows = groups[label]
        rng.shuffle(rows)
        slices, err = take(rows, sizes)
        if err is not None:
            return None, f"split: class {label}: {err}"
        for k in range(len(out)):
            out[k].extend(slices[k])
    return out, None


def stratified_split(labels, per_class, seed):
    sizes = [int(n) for n in per_class]
    out, err = split_rows(labels, sizes, np.random.default_rng(seed))
    if err is not None:
        raise ValueError(err)
    return tuple(np.array(rows, dtype=np.intp) for rows in out)


# %% [markdown]
# ## Mixed images
#
# `Rect` is `image.Rectangle` of Go's standard library, as far as I need it: Min inside, Max outside.


# %%
class Rect:
    __slots__ = ("min_x", "min_y", "max_x", "max_y")

    def __init__(self, min_x=0, min_y=0, max_x=0, max_y=0):
        self.min_x, self.min_y, self.max_x, self.max_y = min_x, min_y, max_x, max_y

    def dx(self):
        return self.max_x - self.min_x

    def dy(self):
        return self.max_y - self.min_y

    def empty(self):
        return self.min_x >= self.max_x or self.min_y >= self.max_y

    def intersect(self, s):
        r = Rect(
            max(self.min_x, s.min_x), max(self.min_y, s.min_y), min(self.max_x, s.max_x), min(self.max_y, s.max_y)
        )
        if r.empty():
            return Rect()
        return r


def draw(dst, r, src):
    """draw.Draw: copies the pixels of r from src to dst. They must not share memory."""
    if r.empty():
        return
    dst[:, :, r.min_y : r.max_y, r.min_x : r.max_x] = src[:, :, r.min_y : r.max_y, r.min_x : r.max_x]


def new_lam(alpha, generator):
    if alpha == 0:
        return 1.0
    return float(generator.beta(alpha, alpha))


def mixup(images, labels, alpha, generator):
    lam = new_lam(alpha, generator)
    perm = generator.permutation(len(images))

    mixed = torch.empty_like(images)
    labels_b = torch.empty_like(labels)
    for i in range(len(images)):
        j = int(perm[i])
        mixed[i] = lam * images[i] + (1 - lam) * images[j]
        labels_b[i] = labels[j]
    return mixed, labels, labels_b, lam


def cutmix(images, labels, alpha, generator):
    height, width = images.shape[2], images.shape[3]
    bounds = Rect(0, 0, width, height)

    cut = math.sqrt(1 - new_lam(alpha, generator))
    cut_w, cut_h = int(width * cut), int(height * cut)
    x = int(generator.integers(width)) - cut_w // 2
    y = int(generator.integers(height)) - cut_h // 2
    r = Rect(x, y, x + cut_w, y + cut_h).intersect(bounds)

    perm = torch.as_tensor(generator.permutation(len(images)))
    mixed = images.clone()
    draw(mixed, r, images[perm.to(images.device)])  # indexing by a tensor has copied already
    lam = 1 - r.dx() * r.dy() / (bounds.dx() * bounds.dy())
    return mixed, labels, labels[perm.to(labels.device)], lam


# %%
def mixed_loss(criterion, logits, labels_a, labels_b, lam):
    if lam == 1:  # nothing of b is in the image
        return criterion(logits, labels_a)
    if lam == 0:
        return criterion(logits, labels_b)
    loss_a = criterion(logits, labels_a)
    loss_b = criterion(logits, labels_b)
    return lam * loss_a + (1 - lam) * loss_b


# %% [markdown]
# ## What learns


# %%
def set_learning(module, on):
    for p in module.parameters():
        p.requires_grad = on


def freeze_backbone(model):
    head, _, _ = parts(model)
    set_learning(model, False)
    set_learning(head, True)


def unfreeze(model, blocks=None):
    if blocks is None:
        set_learning(model, True)
        return
    _, all_blocks, norm = parts(model)
    freeze_backbone(model)
    set_learning(norm, True)
    first = len(all_blocks) - blocks
    if first < 0:
        first = 0
    for i in range(first, len(all_blocks)):
        set_learning(all_blocks[i], True)


# %% [markdown]
# ## Training and evaluation


# %%
def learns(module):
    for p in module.parameters():
        if p.requires_grad:
            return True
    return False


def count_equal(a, b):
    return int(torch.eq(a, b).sum().item())


def div(total, n):
    """Returns (total / n, err)."""
    if n == 0:
        return 0.0, "division by zero"
    return total / n, None


def train_one_epoch(model, loader, optimizer, criterion, device, mix=None):
    model.train()
    _, blocks, _ = parts(model)
    for block in blocks:
        if not learns(block):
            block.eval()

    loss_sum, hit_sum, seen = 0.0, 0.0, 0
    for images, labels in loader:
        images = images.to(device)
        labels = labels.to(device)
        n = len(labels)

        if mix is None:
            logits = model(images)
            loss = criterion(logits, labels)
            hit = count_equal(logits.argmax(1), labels)
        else:
            images, labels_a, labels_b, lam = mix(images, labels)
            logits = model(images)
            loss = mixed_loss(criterion, logits, labels_a, labels_b, lam)
            guess = logits.argmax(1)
            hit = lam * count_equal(guess, labels_a) + (1 - lam) * count_equal(guess, labels_b)

        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

        loss_sum += float(loss.detach()) * n
        hit_sum += float(hit)
        seen += n

    loss, err = div(loss_sum, seen)
    if err is not None:
        raise ValueError("train_one_epoch: the loader is empty")
    accuracy, _ = div(hit_sum, seen)
    return loss, accuracy


def evaluate(model, loader, criterion, device):
    model.eval()
    targets, predictions = [], []
    loss_sum, hit = 0.0, 0
    for images, labels in loader:
        with torch.no_grad():
            labels = labels.to(device)
            logits = model(images.to(device))
            guess = logits.argmax(1)
            loss_sum += criterion(logits, labels).item() * len(labels)
        hit += count_equal(guess, labels)
        for t in labels.tolist():
            targets.append(t)
        for p in guess.tolist():
            predictions.append(p)

    loss, err = div(loss_sum, len(targets))
    if err is not None:
        raise ValueError("evaluate: the loader is empty")
    accuracy, _ = div(hit, len(targets))
    return loss, accuracy, targets, predictions


# %%
class EarlyStopping:
    """The zero value has seen nothing: `seen` is False until the first number."""

    def __init__(self, patience, min_delta=0.0):
        self.patience = patience
        self.min_delta = min_delta
        self.seen = False
        self.best = 0.0
        self.bad = 0
        self.weights = {}

    def step(self, value, model):
        value = float(value)
        if self.better(value):
            self.seen = True
            self.best = value
            self.bad = 0
            self.weights = {}
            for name, w in model.state_dict().items():
                self.weights[name] = w.detach().clone()
            return False
        self.bad += 1
        return self.bad >= self.patience

    def better(self, value):
        if math.isnan(value):
            return False
        if not self.seen:
            return True
        return value > self.best + self.min_delta

    def restore(self, model):
        if not self.seen:
            return
        model.load_state_dict(self.weights)


# %% [markdown]
# ## Two stages


# %%
class Job:
    """What both stages share."""

    __slots__ = ("model", "loaders", "device", "criterion", "rng", "history")


def new_job(model, loaders, device):
    """Returns (job, err)."""
    for key in ("train", "validation"):
        if key not in loaders:
            return None, f"no loader '{key}'"
    job = Job()
    job.model, job.loaders, job.device = model, loaders, device
    job.criterion = nn.CrossEntropyLoss(label_smoothing=SMOOTHING)
    job.rng = np.random.default_rng(2009)
    job.history = {"train_loss": [], "train_accuracy": [], "validation_loss": [], "validation_accuracy": [], "stage2_from": []}
    return job, None


def new_optimizer(model, rate):
    learning = []
    for p in model.parameters():
        if p.requires_grad:
            learning.append(p)
    return optim.AdamW(learning, lr=rate, weight_decay=0.01, amsgrad=True)


def run_epoch(job, optimizer):
    """Trains and measures once. Returns the validation accuracy."""

    def mix(images, labels):
        if job.rng.random() < 0.5:
            images = torch.flip(images, dims=[3])
        dice = job.rng.random()
        if dice < 0.2:
            return mixup(images, labels, ALPHA, job.rng)
        if dice < 0.4:
            return cutmix(images, labels, ALPHA, job.rng)
        return images, labels, labels, 1.0

    h = job.history
    loss, accuracy = train_one_epoch(job.model, job.loaders["train"], optimizer, job.criterion, job.device, mix)
    h["train_loss"].append(loss)
    h["train_accuracy"].append(accuracy)
    loss, accuracy, _, _ = evaluate(job.model, job.loaders["validation"], job.criterion, job.device)
    h["validation_loss"].append(loss)
    h["validation_accuracy"].append(accuracy)
    return accuracy


def train_head(job, epochs):
    """Returns the memory of the best epoch; this stage is never stopped early."""
    freeze_backbone(job.model)
    optimizer = new_optimizer(job.model, HEAD_RATE)
    memory = EarlyStopping(epochs + 1)  # cannot be reached
    for _ in range(epochs):
        memory.step(run_epoch(job, optimizer), job.model)
    return memory


def train_all(job, epochs):
    """Returns the memory of the best epoch."""
    unfreeze(job.model)
    job.history["stage2_from"].append(len(job.history["train_loss"]))
    optimizer = new_optimizer(job.model, BODY_RATE)
    stopping = EarlyStopping(PATIENCE)
    for epoch in range(epochs):
        for group in optimizer.param_groups:
            group["lr"] = BODY_RATE * (1 + math.cos(math.pi * epoch / epochs)) / 2
        if stopping.step(run_epoch(job, optimizer), job.model):
            break
    return stopping


def fit(model, loaders, epochs, device):
    model.to(device)
    job, err = new_job(model, loaders, device)
    if err is not None:
        raise KeyError(err)
    first = train_head(job, epochs[0])
    second = train_all(job, epochs[1])
    # the best weights of both stages; stage 2 wins a tie
    best = second
    if not second.seen or (first.seen and first.best > second.best):
        best = first
    best.restore(model)
    return job.history


# %%
def per_class_accuracy(targets, predictions, classes):
    hits, total = [0] * classes, [0] * classes
    for i in range(len(targets)):
        t, p = int(targets[i]), int(predictions[i])
        total[t] += 1
        if t == p:
            hits[t] += 1
    out = np.zeros(classes)
    for c in range(classes):
        share, err = div(hits[c], total[c])
        if err is not None:
            share = math.nan
        out[c] = share
    return out


# %% [markdown]
# ## Pictures


# %%
def to_pixels(image, mean, std):
    """[y][x][channel], between 0 and 1; one channel: [y][x]."""
    image = image.detach().cpu().numpy()
    planes = []
    for c in range(len(image)):
        planes.append(np.clip(image[c] * float(std[c]) + float(mean[c]), 0, 1))
    if len(planes) == 1:
        return planes[0]
    return np.stack(planes, axis=-1)


def show_patches(image, patch_size, mean, std):
    pixels = to_pixels(image, mean, std)
    rows, cols = pixels.shape[0] // patch_size, pixels.shape[1] // patch_size

    fig = plt.figure(figsize=(9, 4.5))
    whole = plt.subplot2grid((rows, 2 * cols + 1), (0, 0), rowspan=rows, colspan=cols, fig=fig)
    whole.imshow(pixels, cmap="gray", vmin=0, vmax=1)
    whole.set_title("the image")
    whole.axis("off")
    for r in range(rows):
        for c in range(cols):
            y, x = r * patch_size, c * patch_size
            ax = plt.subplot2grid((rows, 2 * cols + 1), (r, cols + 1 + c), fig=fig)
            ax.imshow(pixels[y : y + patch_size, x : x + patch_size], cmap="gray", vmin=0, vmax=1)
            ax.axis("off")
    return fig


def last_attention(model, image):
    """The class token's row of the last block's attention, mean over the heads. Returns (weights, err)."""
    _, blocks, _ = parts(model)
    if len(blocks) == 0:
        return None, "the model has no blocks"
    attn = blocks[-1].attn
    got = []

    def hook(_module, _args, out):
        got.append(out)

    handle = attn.qkv.register_forward_hook(hook)
    try:
        with torch.no_grad():
            model(image.to(next(model.parameters()).device)[None])
    finally:  # defer
        handle.remove()
    if len(got) != 1:
        return None, f"the last block ran {len(got)} times"

    n, width = got[0].shape[1], got[0].shape[2] // 3
    size = width // attn.num_heads
    queries, keys = got[0][0, :, :width], got[0][0, :, width : 2 * width]
    total = torch.zeros(n, device=queries.device)
    for h in range(attn.num_heads):
        q = queries[0, h * size : (h + 1) * size]
        k = keys[:, h * size : (h + 1) * size]
        total += torch.softmax(torch.mv(k, q) / math.sqrt(size), dim=0)
    return (total / attn.num_heads).cpu().numpy(), None


def show_attention(model, image, mean, std):
    weights, err = last_attention(model, image)
    if err is not None:
        raise RuntimeError(err)
    size = model.patch_embed.patch_size
    rows, cols = image.shape[1] // size, image.shape[2] // size
    grid = weights[1:].reshape(rows, cols)

    fig, axes = plt.subplots(1, 2)
    axes[0].imshow(to_pixels(image, mean, std), cmap="gray", vmin=0, vmax=1)
    axes[0].set_title("image")
    axes[1].imshow(np.kron(grid, np.ones((size, size))), cmap="plasma")  # as large as the image
    axes[1].set_title("what the class token attends to")
    for ax in axes:
        ax.axis("off")
    return fig


def plot_history(history):
    fig, axes = plt.subplots(1, 2, figsize=(11, 4))
    for ax, what in zip(axes, ["loss", "accuracy"]):
        for part, style in [("train", "-"), ("validation", "--")]:
            ys = history[part + "_" + what]
            ax.plot(range(1, len(ys) + 1), ys, style, label=part)
        for start in history["stage2_from"]:
            ax.axvline(start + 0.5, color="gray", label="stage 2 begins")
        ax.set_xlabel("epoch")
        ax.set_ylabel(what)
        ax.legend()
    return fig


def plot_per_class(names, accuracies):
    fig, ax = plt.subplots(figsize=(9, 4))
    ticks = []
    for i in range(len(names)):
        ticks.append(i)
        value = float(accuracies[i])
        if math.isnan(value):
            continue
        ax.bar(i, value, color="tab:cyan")
        ax.annotate(f"{value:.2f}", (i, value), ha="center", va="bottom")
    ax.set_xticks(ticks, names, rotation=30, ha="right")
    ax.set_xlim(-0.5, len(ticks) - 0.5)
    ax.set_ylim(0, 1.1)
    ax.set_xlabel("class")
    ax.set_ylabel("accuracy")
    fig.tight_layout()
    return fig


def plot_confusion_matrix(matrix, class_names):
    fig, ax = plt.subplots(figsize=(8, 7))
    largest = 0
    for row in matrix:
        for n in row:
            largest = max(largest, int(n))
    ax.imshow(np.asarray(matrix, dtype=float), cmap="GnBu", vmin=0, vmax=max(largest, 1))
    for i, row in enumerate(matrix):
        for j, n in enumerate(row):
            color = "black"
            if int(n) > 0.6 * largest:
                color = "white"
            ax.text(j, i, str(int(n)), ha="center", va="center", color=color)
    ax.set_xticks(range(len(class_names)), labels=class_names, rotation=90)
    ax.set_yticks(range(len(class_names)), labels=class_names)
    ax.set_xlabel("predicted")
    ax.set_ylabel("true")
    fig.tight_layout()
    return fig


# %% [markdown]
# ## The images


# %%
def unzip(path, folder):
    """Returns err."""
    if not os.path.exists(path):
        return f"{path} must lie beside this file"
    with zipfile.ZipFile(path) as archive:
        archive.extractall(folder)
    return None


def new_transform(augment):
    steps = []
    if augment:
        steps.append(transforms.RandomCrop(32, padding=4, padding_mode="reflect"))
        steps.append(transforms.RandomHorizontalFlip())
    steps.append(transforms.ToTensor())
    steps.append(transforms.Normalize(MEAN, STD))
    return transforms.Compose(steps)


def main():
    err = unzip("dataset.zip", "data")
    if err is not None:
        raise SystemExit(err)
    augmented_images = datasets.ImageFolder("data/train", transform=new_transform(True))
    plain_images = datasets.ImageFolder("data/train", transform=new_transform(False))
    test_images = datasets.ImageFolder("data/test", transform=new_transform(False))
    class_names = test_images.classes

    fewest = int(np.bincount(plain_images.targets).min())
    sizes = (fewest - fewest // 5, fewest // 5)
    training_rows, validation_rows = stratified_split(plain_images.targets, sizes, 42)
    loaders = {
        "train": DataLoader(Subset(augmented_images, training_rows), batch_size=BATCH_SIZE, shuffle=True),
        "validation": DataLoader(Subset(plain_images, validation_rows), batch_size=256),
    }
    test_loader = DataLoader(test_images, batch_size=256)

    model = build_model(len(class_names))
    history = fit(model, loaders, (3, 12), device)
    torch.save(model.state_dict(), f"{STUDENT_ID}_Finetune.pth")
    plot_history(history).savefig("history.png")

    # the test images: once, at the end
    loss, accuracy, targets, predictions = evaluate(model, test_loader, nn.CrossEntropyLoss(), device)
    print(f"loss {loss:.4f}, accuracy {accuracy:.4f}")
    plot_per_class(class_names, per_class_accuracy(targets, predictions, len(class_names))).savefig("classes.png")
    matrix = np.zeros((len(class_names), len(class_names)), dtype=int)
    for t, p in zip(targets, predictions):
        matrix[t, p] += 1
    plot_confusion_matrix(matrix, class_names).savefig("confusion.png")
    images, _ = next(iter(test_loader))
    show_patches(images[0], 4, MEAN, STD).savefig("patches.png")
    show_attention(model, images[0], MEAN, STD).savefig("attention.png")


# %%
if __name__ == "__main__":
    main()
