"""Fine-tuning with closures: the optimizer asks for loss and gradients as often as it likes.

Stage 1 is AMSGrad on the head. Stage 2 is sharpness-aware minimization around AdamW, with a focal loss.
"""

import contextlib
import copy
import csv
import functools
import math
import zipfile
from types import MappingProxyType

import matplotlib.pyplot as plt
import numpy as np
import torch
import torch.nn.functional as F
from handout import build_model, parts
from torch import nn, optim
from torch.utils.data import DataLoader, Subset
from torchvision.datasets import ImageFolder
from torchvision.transforms import v2

STUDENT_ID = "400104001"
NORM = MappingProxyType({"mean": (0.4914, 0.4822, 0.4465), "std": (0.2470, 0.2435, 0.2616)})
HYPER = MappingProxyType({"rate": 8e-3, "patience": 4, "rho": 0.03, "gamma": 1.0, "decay": 0.05, "mix_share": 0.6})
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


# ------------------------------------------------------------------------------------------- split
def stratified_split(labels, per_class, seed):
    labels = np.array([int(label) for label in labels])
    keys = np.random.RandomState(seed).rand(len(labels))
    order = np.lexsort((keys, labels))  # class by class, shuffled within each
    classes, starts, counts = np.unique(labels[order], return_index=True, return_counts=True)
    bounds = np.concatenate([[0], np.cumsum(per_class)]).astype(int)
    if (counts < bounds[-1]).any():
        raise ValueError(f"{bounds[-1]} images are needed of each class, there are {dict(zip(classes.tolist(), counts.tolist()))}")
    return tuple(
        np.concatenate([order[start + low : start + high] for start in starts]) for low, high in zip(bounds, bounds[1:])
    )


# ------------------------------------------------------------------------------------------- mixing
def mixup(images, labels, alpha, generator):
    other = generator.permutation(len(labels))
    lam = 1.0
    if alpha > 0:
        lam = float(generator.beta(alpha, alpha))
    mixed = images * lam
    mixed += images[other] * (1 - lam)
    return mixed, labels, labels[other], lam


def cutmix(images, labels, alpha, generator):
    other = generator.permutation(len(labels))
    lam = float(generator.beta(alpha, alpha)) if alpha > 0 else 1.0
    rows, columns = images.shape[-2:]

    def span(length):
        """A piece of an axis, of about sqrt(1 - lam) of its length, cut off at the ends."""
        middle, half = int(generator.integers(length)), int(length * math.sqrt(1 - lam)) // 2
        return slice(max(0, middle - half), min(length, middle + half))

    box = (Ellipsis, span(rows), span(columns))
    mixed = copy.deepcopy(images.detach())
    mixed[box] = images[other][box]
    changed = mixed[box][0, 0].numel() if len(images) else 0
    return mixed, labels, labels[other], 1 - changed / (rows * columns)


def mixed_loss(criterion, logits, labels_a, labels_b, lam):
    return torch.stack([criterion(logits, labels_a) * lam, criterion(logits, labels_b) * (1 - lam)]).sum()


class FocalLoss(nn.Module):
    """(1 - p)^gamma times the cross-entropy, mean over images."""

    def __init__(self, gamma):
        super().__init__()
        self.gamma = gamma

    def forward(self, logits, labels):
        entropy = F.cross_entropy(logits, labels, reduction="none")
        return ((1 - torch.exp(-entropy)).clamp(min=0) ** self.gamma * entropy).mean()


# ------------------------------------------------------------------------------------------- what learns
def freeze_backbone(model):
    head, _, _ = parts(model)
    model.requires_grad_(False)
    head.requires_grad_(True)


def unfreeze(model, blocks=None):
    freeze_backbone(model)
    head, every, norm = parts(model)
    norm.requires_grad_(True)
    for distance, block in enumerate(every[::-1]):
        if blocks is None or distance < blocks:
            block.requires_grad_(True)
    if blocks is None:
        model.requires_grad_()


# ------------------------------------------------------------------------------------------- epochs
def training_mode(model):
    model.train()
    for block in parts(model)[1]:
        learns = [p.requires_grad for p in block.parameters()]
        if learns and not max(learns):
            block.train(False)


def train_one_epoch(model, loader, optimizer, criterion, device, mix=None):
    training_mode(model)
    seen = []
    for images, labels in loader:
        images, labels = images.to(device), labels.to(device)
        images, *answer = mix(images, labels) if mix is not None else (images, labels, labels, 1.0)
        first = []

        def closure():
            optimizer.zero_grad()
            logits = model(images)
            loss = mixed_loss(criterion, logits, *answer)
            loss.backward()
            if not first:  # as it was before anything moved
                a, b, lam = answer
                guess = logits.detach().argmax(1)
                hits = lam * (guess == a).float().mean() + (1 - lam) * (guess == b).float().mean()
                first.extend([loss.item(), hits.item()])
            return loss

        optimizer.step(closure)
        seen.append((len(labels), *first))
    sizes, losses, hits = np.array(seen).T
    return float(np.average(losses, weights=sizes)), float(np.average(hits, weights=sizes))


def evaluate(model, loader, criterion, device):
    model.eval()
    with torch.no_grad():
        outputs = [(criterion(logits := model(x.to(device)), y.to(device)).item() * len(y), y.cpu(), logits.argmax(1).cpu())
                   for x, y in loader]
    losses, targets, predictions = zip(*outputs)
    targets, predictions = torch.cat(targets).numpy(), torch.cat(predictions).numpy()
    return sum(losses) / len(targets), float(np.mean(targets == predictions)), targets, predictions


class EarlyStopping:
    def __init__(self, patience, min_delta=0.0):
        self.left = self.patience = patience
        self.min_delta = min_delta
        self.best = float("nan")
        self.memory = None

    def step(self, value, model):
        value = float(value)
        first = math.isnan(self.best) and not math.isnan(value)
        if first or value > self.best + self.min_delta:
            self.best, self.left = value, self.patience
            self.memory = copy.deepcopy(model).state_dict()
        else:
            self.left -= 1
        return self.left <= 0

    def restore(self, model):
        if self.memory is not None:
            model.load_state_dict(self.memory)


class SAM(optim.Optimizer):
    """Foret et al. (2021): the gradient is taken where the loss is largest nearby. Needs a closure."""

    def __init__(self, groups, base, rho, **values):
        super().__init__(groups, dict(rho=rho, **values))
        self.inner = base(self.param_groups)
        self.param_groups = self.inner.param_groups

    @torch.no_grad()
    def step(self, closure):
        closure = torch.enable_grad()(closure)
        loss = closure()
        learning = [p for group in self.param_groups for p in group["params"] if p.grad is not None]
        length = torch.linalg.vector_norm(torch.stack([torch.linalg.vector_norm(p.grad) for p in learning]))
        kept = [p.clone() for p in learning]
        for p in learning:
            p.add_(p.grad * (self.param_groups[0]["rho"] / (length + 1e-12)))
        closure()
        for p, value in zip(learning, kept):
            p.copy_(value)
        self.inner.step()
        return loss


def one_of(images, labels, generator):
    """Mixed or, for the rest of the batches, as they are."""
    draw = generator.random()
    if draw < HYPER["mix_share"] / 2:
        return mixup(images, labels, 0.2, generator)
    if draw < HYPER["mix_share"]:
        return cutmix(images, labels, 1.0, generator)
    return images, labels, labels, 1.0


def fit(model, loaders, epochs, device):
    model.to(device)
    log = {"stage": [], "train_loss": [], "train_acc": [], "val_loss": [], "val_acc": []}
    hard = nn.CrossEntropyLoss()

    def epoch(stage, optimizer, criterion, mix=None):
        measured = train_one_epoch(model, loaders["train"], optimizer, criterion, device, mix)
        measured += evaluate(model, loaders["validation"], hard, device)[:2]
        for name, value in zip(log, (stage, *measured)):
            log[name].append(value)
        print("stage %d: %.4f %.4f | %.4f %.4f" % (stage, *measured))
        return measured[-1]

    def best_of(stage, count, optimizer, criterion, mix=None, scheduler=None, patience=None):
        stopping = EarlyStopping(patience or count + 1)
        for _ in range(count):
            finished = stopping.step(epoch(stage, optimizer, criterion, mix), model)
            if scheduler is not None:
                scheduler.step()
            if finished:
                break
        return stopping

    freeze_backbone(model)
    head = [p for p in model.parameters() if p.requires_grad]
    best_of(1, epochs[0], optim.Adam(head, lr=HYPER["rate"], amsgrad=True), hard)

    unfreeze(model)
    groups = [
        {"params": [p for p in model.parameters() if p.ndim > 1], "weight_decay": HYPER["decay"]},
        {"params": [p for p in model.parameters() if p.ndim <= 1], "weight_decay": 0.0},
    ]
    sam = SAM(groups, functools.partial(optim.AdamW, lr=HYPER["rate"] / 10), HYPER["rho"], lr=HYPER["rate"] / 10)
    cosine = optim.lr_scheduler.CosineAnnealingLR(sam, max(1, epochs[1]))
    mix = functools.partial(one_of, generator=np.random.default_rng(11))
    best_of(2, epochs[1], sam, FocalLoss(HYPER["gamma"]), mix, cosine, HYPER["patience"]).restore(model)
    return log


def per_class_accuracy(targets, predictions, classes):
    pairs = np.stack([np.asarray(targets), np.asarray(predictions)]).astype(int)
    table = np.zeros((classes, classes))
    np.add.at(table, tuple(pairs), 1)
    total = table.sum(1)
    return np.where(total > 0, np.diag(table) / np.maximum(total, 1), np.nan)


# ------------------------------------------------------------------------------------------- pictures
def undo(image, mean, std):
    undone = torch.addcmul(torch.tensor(mean)[:, None, None], image.detach().cpu(), torch.tensor(std)[:, None, None])
    return np.clip(undone.numpy().transpose(1, 2, 0), 0, 1)


def show_patches(image, patch_size, mean, std):
    whole = undo(image, mean, std)
    h, w = whole.shape[0] // patch_size, whole.shape[1] // patch_size
    grid = plt.GridSpec(h, 2 * w, wspace=0.1, hspace=0.1)
    fig = plt.figure(figsize=(10, 5))
    ax = fig.add_subplot(grid[:, : w - 1] if w > 1 else grid[:, :w])
    ax.imshow(whole)
    ax.axis("off")
    patches = whole.reshape(h, patch_size, w, patch_size, -1).swapaxes(1, 2)
    for i in range(h):
        for j in range(w):
            ax = fig.add_subplot(grid[i, w + j])
            ax.imshow(patches[i, j])
            ax.axis("off")


@contextlib.contextmanager
def inspected(model):
    """Evaluation without gradients; afterwards every module is in the mode it was in."""
    modes = {name: module.training for name, module in model.named_modules()}
    model.eval()
    try:
        with torch.no_grad():
            yield model
    finally:
        for name, module in model.named_modules():
            module.training = modes[name]


def show_attention(model, image, mean, std):
    attention = parts(model)[1][-1].attn
    caught = []
    original = F.scaled_dot_product_attention

    def spy(q, k, v, *args, **kwargs):
        caught.append((q, k))  # the last call is the last block's
        return original(q, k, v, *args, **kwargs)

    with inspected(model):
        F.scaled_dot_product_attention = spy
        try:
            model(image.unsqueeze(0).to(next(model.parameters()).device))
        finally:
            F.scaled_dot_product_attention = original
        q, k = caught[-1]
        weights = torch.softmax(q @ k.mT / math.sqrt(q.shape[-1]), dim=-1)[0]
    assert len(weights) == attention.num_heads
    row = weights.mean(0)[0][1:].cpu().numpy()
    side = math.isqrt(len(row))
    fig = plt.figure(figsize=(8, 4))
    for place, (title, picture) in enumerate([("image", undo(image, mean, std)), ("attention", row.reshape(side, side))], 1):
        ax = fig.add_subplot(1, 2, place, title=title)
        ax.imshow(picture)
        ax.axis("off")


def plot_history(history):
    fig, axes = plt.subplots(1, 2, figsize=(11, 4))
    x = np.arange(1, 1 + len(history["stage"]))
    for ax, (key, name) in zip(axes, (("loss", "loss"), ("acc", "accuracy"))):
        ax.plot(x, history[f"train_{key}"], label=f"train {name}")
        ax.plot(x, history[f"val_{key}"], label=f"validation {name}")
        ax.axvline(history["stage"].count(1) + 0.5, linestyle="-.", color="0.4")
        ax.text(history["stage"].count(1) + 0.6, ax.get_ylim()[0], "stage 2", rotation=90, va="bottom")
        ax.set_xlabel("epoch")
        ax.set_ylabel(name)
        ax.legend()


def plot_per_class(names, accuracies):
    fig, ax = plt.subplots()
    for name, accuracy in zip(names, np.asarray(accuracies, dtype=float)):
        ax.bar(name, accuracy)
    ax.set_ylim(0, 1.05)
    ax.set_xlabel("class")
    ax.set_ylabel("accuracy")
    ax.tick_params(axis="x", labelrotation=60)
    fig.tight_layout()


def plot_confusion_matrix(matrix, class_names):
    fig, ax = plt.subplots(figsize=(8, 8))
    ax.imshow(matrix, cmap="Reds")
    ax.set(xlabel="predicted", ylabel="true", xticks=range(len(class_names)), yticks=range(len(class_names)))
    ax.set_xticklabels(class_names, rotation=90)
    ax.set_yticklabels(class_names)
    for i, j in np.ndindex(*np.shape(matrix)):
        ax.text(j, i, int(np.asarray(matrix)[i, j]), ha="center", va="center")


# ------------------------------------------------------------------------------------------- run
def images():
    with zipfile.ZipFile("dataset.zip") as archive:
        archive.extractall("data")
    to_tensor = [v2.ToImage(), v2.ToDtype(torch.float32, scale=True), v2.Normalize(**NORM)]
    chance = [v2.RandomHorizontalFlip(), v2.RandomCrop(32, padding=4, padding_mode="reflect"), v2.ColorJitter(0.2, 0.2, 0.2)]
    varied, plain = ImageFolder("data/train", v2.Compose(chance + to_tensor)), ImageFolder("data/train", v2.Compose(to_tensor))
    test = ImageFolder("data/test", v2.Compose(to_tensor))
    fewest = min(np.bincount(plain.targets))
    training, validation = stratified_split(plain.targets, (fewest - fewest // 5, fewest // 5), 42)
    return {
        "train": DataLoader(Subset(varied, training.tolist()), 64, shuffle=True),
        "validation": DataLoader(Subset(plain, validation.tolist()), 256),
        "test": DataLoader(test, 256),
    }, test.classes


torch.manual_seed(42)
loaders, class_names = images()
tuned = build_model(num_classes=len(class_names))
log = fit(tuned, {name: loaders[name] for name in ("train", "validation")}, (3, 12), device)
torch.save(tuned.state_dict(), f"{STUDENT_ID}_Finetune.pth")
with open("log.csv", "w", newline="") as file:
    csv.writer(file).writerows([log, *zip(*log.values())])
plot_history(log)

loss, accuracy, targets, predictions = evaluate(tuned, loaders["test"], nn.CrossEntropyLoss(), device)
print(f"test: loss {loss:.4f}, accuracy {accuracy:.4f}")
plot_per_class(class_names, per_class_accuracy(targets, predictions, len(class_names)))
counts = np.zeros((len(class_names), len(class_names)), dtype=int)
np.add.at(counts, (targets, predictions), 1)
plot_confusion_matrix(counts, class_names)
image = next(iter(loaders["test"]))[0][0]
show_patches(image, 4, **NORM)
show_attention(tuned, image, **NORM)
plt.show()
