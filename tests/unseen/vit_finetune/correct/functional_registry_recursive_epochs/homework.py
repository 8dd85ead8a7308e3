"""Assignment 3. Functional style: registries, pattern matching and recursion; the best weights live in a file."""
from functools import partial, reduce
import io
import math
import operator
import tempfile
import typing as t
import zipfile

import matplotlib.pyplot as plt
import numpy as np
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, RandomSampler, Subset
from torchvision import datasets, transforms

import handout

STUDENT_ID: t.Final = "400104001"
BASE_RATE: t.Final = 2e-3
MEAN, STD = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)
device = "cuda" if torch.cuda.is_available() else "cpu"


class Mix(t.Protocol):
    def __call__(self, images: torch.Tensor, labels: torch.Tensor) -> tuple: ...


# ================================================================ split
def stratified_split(labels, per_class, seed):
    labels = np.asarray(labels).tolist()
    draw = np.random.default_rng([seed, 2025])

    def deal(indices, sizes):
        """The first sizes[0] of them, then, by recursion, the rest."""
        match sizes:
            case []:
                return []
            case [size, *others]:
                if len(indices) < size:
                    raise ValueError("a class has fewer images than the parts need")
                return [indices[:size], *deal(indices[size:], others)]

    dealt = []
    for label in sorted(set(labels)):
        mine = [i for i, other in enumerate(labels) if other == label]
        draw.shuffle(mine)
        dealt.append(deal(mine, [int(size) for size in per_class]))
    return tuple(np.array(reduce(operator.add, part), dtype=np.int64) for part in zip(*dealt))


# ================================================================ mixing
MIXERS: dict[str, t.Callable] = {}


def mixer(function):
    MIXERS[function.__name__] = function
    return function


def share(alpha, generator):
    match alpha:
        case 0:
            return 1.0
        case _:
            return float(generator.beta(alpha, alpha))


@mixer
def mixup(images, labels, alpha, generator):
    lam = share(alpha, generator)
    order = torch.tensor(generator.permutation(labels.shape[0]))
    weights = torch.tensor([lam, 1 - lam]).to(images)
    mixed = torch.einsum("s,sbchw->bchw", weights, torch.stack([images, images[order]]))
    return mixed, labels, labels[order], lam


@mixer
def cutmix(images, labels, alpha, generator):
    lam = share(alpha, generator)
    order = torch.tensor(generator.permutation(labels.shape[0]))
    *_, height, width = images.shape
    # any proportions will do: the height is drawn, the width follows from the area
    area = (1 - lam) * height * width
    tall = int(generator.integers(math.ceil(area / width), height + 1)) if area >= 1 else 0
    wide = min(width, round(area / tall)) if tall else 0
    top, left = (int(generator.integers(0, room + 1)) for room in (height - tall, width - wide))
    middle = torch.cat(
        [
            images[:, :, top : top + tall, :left],
            images[order, :, top : top + tall, left : left + wide],
            images[:, :, top : top + tall, left + wide :],
        ],
        dim=3,
    )
    mixed = torch.cat([images[:, :, :top], middle, images[:, :, top + tall :]], dim=2)
    return mixed, labels, labels[order], (height * width - tall * wide) / (height * width)


def mixed_loss(criterion, logits, labels_a, labels_b, lam):
    weighted = zip((lam, 1 - lam), (labels_a, labels_b))
    return reduce(operator.add, (weight * criterion(logits, labels) for weight, labels in weighted))


# ================================================================ what learns
def set_learning(modules, learns):
    for module in modules:
        for p in module.parameters():
            p.requires_grad = learns


def freeze_backbone(model):
    set_learning([model], False)
    set_learning(handout.parts(model)[:1], True)


def unfreeze(model, blocks=None):
    head, all_blocks, norm = handout.parts(model)
    match blocks:
        case None:
            set_learning([model], True)
        case 0:
            set_learning([model], False)
            set_learning([head, norm], True)
        case n:
            unfreeze(model, 0)
            set_learning(all_blocks[-n:], True)


# ================================================================ epochs
def train_one_epoch(model, loader, optimizer, criterion, device, mix: Mix | None = None):
    model.train()
    for block in handout.parts(model)[1]:
        if not sum(p.requires_grad for p in block.parameters()):
            block.eval()

    def batch(images, labels):
        match mix:
            case None:
                logits = model(images)
                loss = criterion(logits, labels)
                hits = (logits.argmax(-1) == labels).sum()
            case _:
                images, a, b, lam = mix(images, labels)
                logits = model(images)
                loss = mixed_loss(criterion, logits, a, b, lam)
                hits = lam * (logits.argmax(-1) == a).sum() + (1 - lam) * (logits.argmax(-1) == b).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return np.array([loss.item() * len(labels), float(hits), len(labels)])

    total = sum(batch(images.to(device), labels.to(device)) for images, labels in loader)
    return tuple((total[:2] / total[2]).tolist())


def evaluate(model, loader, criterion, device):
    model.eval()
    with torch.no_grad():
        logits, labels, losses = [], [], []
        for x, y in loader:
            logits.append(model(x.to(device)))
            labels.append(y.to(device))
            losses.append(criterion(logits[-1], labels[-1]).item() * len(y))
    labels, guesses = torch.cat(labels).cpu(), torch.cat(logits).argmax(-1).cpu()
    return sum(losses) / len(labels), torch.eq(labels, guesses).sum().item() / len(labels), labels, guesses


class EarlyStopping:
    """The best weights are written to memory as a file is, and read back from it."""

    def __init__(self, patience, min_delta=0.0):
        self.patience, self.min_delta = patience, min_delta
        self.best, self.bad, self.file = None, 0, None

    def step(self, value, model):
        match float(value), self.best:
            case (v, _) if math.isnan(v):
                self.bad += 1
            case (v, None):
                self._keep(v, model)
            case (v, best) if v > best + self.min_delta:
                self._keep(v, model)
            case _:
                self.bad += 1
        return self.bad >= self.patience

    def _keep(self, value, model):
        self.best, self.bad, self.file = value, 0, io.BytesIO()
        torch.save(model.state_dict(), self.file)

    def restore(self, model):
        if self.file is not None:
            self.file.seek(0)
            model.load_state_dict(torch.load(self.file, weights_only=True))


# ================================================================ two stages
CRITERIA = {"train": nn.CrossEntropyLoss(label_smoothing=0.08), "validation": nn.CrossEntropyLoss()}


def random_mixer(generator):
    """Each batch: one of the registered mixers, with its own alpha."""
    alphas = {"mixup": 0.3, "cutmix": 0.8}

    def mix(images, labels):
        name = sorted(MIXERS)[int(generator.integers(len(MIXERS)))]
        return MIXERS[name](images, labels, alphas[name], generator)

    return mix


def stage_setup(stage, model, length):
    """Optimizer, schedule, mix of a stage."""
    match stage:
        case 1:
            freeze_backbone(model)
            optimizer = optim.AdamW(filter(lambda p: p.requires_grad, model.parameters()), lr=BASE_RATE, weight_decay=0.01)
            return optimizer, None, None
        case 2:
            unfreeze(model)
            optimizer = optim.NAdam(filter(lambda p: p.requires_grad, model.parameters()), lr=0.1 * BASE_RATE)
            factor = lambda epoch: 0.5 * (1 + math.cos(math.pi * min(epoch, length) / max(1, length)))
            return optimizer, optim.lr_scheduler.LambdaLR(optimizer, factor), random_mixer(np.random.default_rng(5))


def run_epochs(left, step):
    """Calls step until none is left or it says that it is enough; gives the rows."""
    if left == 0:
        return []
    row, enough = step()
    return [row] + ([] if enough else run_epochs(left - 1, step))


def fit(model, loaders, epochs, device):
    model.to(device)
    stoppers = {1: EarlyStopping(10**6), 2: EarlyStopping(5)}  # the first one only remembers

    def step(stage, optimizer, schedule, mix):
        loss, accuracy = train_one_epoch(model, loaders["train"], optimizer, CRITERIA["train"], device, mix)
        v_loss, v_accuracy, *_ = evaluate(model, loaders["validation"], CRITERIA["validation"], device)
        if schedule:
            schedule.step()
        print(f"stage {stage}: {loss:.3f} {accuracy:.3f} {v_loss:.3f} {v_accuracy:.3f}")
        return (stage, loss, accuracy, v_loss, v_accuracy), stoppers[stage].step(v_accuracy, model)

    rows = []
    for stage, length in zip((1, 2), epochs):
        rows += run_epochs(length, partial(step, stage, *stage_setup(stage, model, length)))
    # the best weights of both stages; of equals those of the second
    best = max(stoppers, key=lambda stage: (-1 if stoppers[stage].best is None else stoppers[stage].best, stage))
    stoppers[best].restore(model)
    keys = ("stage", "loss", "accuracy", "val_loss", "val_accuracy")
    return {key: [row[i] for row in rows] for i, key in enumerate(keys)}


def per_class_accuracy(targets, predictions, classes):
    targets, predictions = torch.as_tensor(targets), torch.as_tensor(predictions)
    right = (targets == predictions).double()
    share_of = lambda mine: right[mine].mean().item()  # the mean of nothing is NaN
    return np.array([share_of(targets == label) for label in range(classes)])


# ================================================================ pictures
def raw(image, mean, std):
    back = transforms.Compose([
        transforms.Normalize((0.0,) * len(std), [1 / s for s in std]),
        transforms.Normalize([-m for m in mean], (1.0,) * len(mean)),
    ])
    return back(image.detach().cpu()).clamp(0, 1).permute(1, 2, 0).numpy()


def show_patches(image, patch_size, mean, std):
    picture = raw(image, mean, std)
    rows, columns = (size // patch_size for size in picture.shape[:2])
    layout = [["image"] * columns + [f"{i},{j}" for j in range(columns)] for i in range(rows)]
    fig, axes = plt.subplot_mosaic(layout, figsize=(10, 5))
    for name, ax in axes.items():
        match name.split(","):
            case [i, j]:
                i, j = int(i) * patch_size, int(j) * patch_size
                ax.imshow(picture[i : i + patch_size, j : j + patch_size])
            case _:
                ax.imshow(picture)
                ax.set_title("image")
        ax.set_axis_off()


def show_attention(model, image, mean, std):
    attn = handout.parts(model)[1][-1].attn
    seen = {}

    def written_out(x):
        """The same attention, step by step, with its weights kept."""
        b, n, dim = x.shape
        q, k, v = attn.qkv(x).reshape(b, n, 3, attn.num_heads, -1).permute(2, 0, 3, 1, 4)
        seen["weights"] = weights = (q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])).softmax(-1)
        return attn.proj((weights @ v).transpose(1, 2).reshape(b, n, dim))

    modes = [m.training for m in model.modules()]
    model.eval()
    attn.forward = written_out  # of this one object, for this one picture
    try:
        with torch.no_grad():
            model(image[None].to(next(model.parameters()).device))
    finally:
        del attn.forward
        for module, mode in zip(model.modules(), modes):
            module.training = mode
    row = seen["weights"][0].mean(0)[0, 1:].cpu()
    side = math.isqrt(row.numel())
    fig, axes = plt.subplots(ncols=2, figsize=(7, 3.5))
    for ax, picture, title in zip(axes, (raw(image, mean, std), row.reshape(side, side)), ("image", "attention of the class token")):
        ax.imshow(picture, cmap="magma")
        ax.set(title=title, xticks=[], yticks=[])


def plot_history(history):
    fig, axes = plt.subplots(ncols=2, figsize=(10, 4))
    x = np.arange(len(history["stage"])) + 1
    begin = next((i for i, stage in enumerate(history["stage"]) if stage == 2), None)
    for ax, key in zip(axes, ("loss", "accuracy")):
        ax.plot(x, history[key], label=f"training {key}")
        ax.plot(x, history[f"val_{key}"], label=f"validation {key}")
        if begin is not None:
            ax.axvline(begin + 0.5, color="tab:gray", ls="--", label="begin of stage 2")
        ax.set(xlabel="epoch", ylabel=key, title=key)
        ax.legend()


def plot_per_class(names, accuracies):
    fig, ax = plt.subplots(figsize=(8, 4))
    ax.bar(np.arange(len(names)), np.array([float(a) for a in accuracies]), tick_label=list(names))
    ax.set(xlabel="class", ylabel="accuracy", ylim=(0, 1))
    plt.setp(ax.get_xticklabels(), rotation=45, ha="right")


def plot_confusion_matrix(matrix, class_names):
    fig, ax = plt.subplots(figsize=(8, 7))
    ax.imshow(np.asarray(matrix), cmap="Blues")
    names = dict(enumerate(class_names))
    for i in names:
        for j in names:
            ax.annotate(f"{matrix[i][j]}", (j, i), ha="center", va="center")
    ax.set_xticks(list(names), list(names.values()), rotation=45)
    ax.set_yticks(list(names), list(names.values()))
    ax.set(xlabel="predicted class", ylabel="true class")


# ================================================================ everything
def prepare(folder):
    with zipfile.ZipFile("dataset.zip") as archive:
        archive.extractall(folder)
    plain = transforms.Compose([transforms.ToTensor(), transforms.Normalize(MEAN, STD)])
    varied = transforms.Compose([transforms.RandomCrop(32, 4), transforms.RandomHorizontalFlip(), plain])
    sets = {name: datasets.ImageFolder(f"{folder}/{part}", transform)
            for name, part, transform in (("train", "train", varied), ("validation", "train", plain), ("test", "test", plain))}
    few = int(np.bincount(sets["train"].targets).min())
    rows = dict(zip(("train", "validation"), stratified_split(sets["train"].targets, (few - few // 5, few // 5), 42)))
    train = Subset(sets["train"], rows["train"])
    return {
        "train": DataLoader(train, batch_size=64, sampler=RandomSampler(train)),
        "validation": DataLoader(Subset(sets["validation"], rows["validation"]), batch_size=250),
        "test": DataLoader(sets["test"], batch_size=250),
    }, sets["test"].classes


if __name__ == "__main__":
    torch.manual_seed(42)
    with tempfile.TemporaryDirectory() as folder:
        loaders, names = prepare(folder)
        network = handout.build_model(len(names))
        history = fit(network, loaders, (3, 12), device)
        torch.save(network.state_dict(), f"{STUDENT_ID}_Finetune.pth")
        loss, accuracy, targets, guesses = evaluate(network, loaders["test"], CRITERIA["validation"], device)
        print(f"test: {loss:.4f}, {accuracy:.4f}")
        plot_history(history)
        plot_per_class(names, per_class_accuracy(targets, guesses, len(names)))
        table = np.zeros((len(names), len(names)), dtype=int)
        np.add.at(table, (targets.numpy(), guesses.numpy()), 1)
        plot_confusion_matrix(table, names)
        image = loaders["test"].dataset[0][0]
        show_patches(image, 4, MEAN, STD)
        show_attention(network, image, MEAN, STD)
        plt.show()
