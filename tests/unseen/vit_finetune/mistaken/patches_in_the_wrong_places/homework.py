# %% [markdown]
# # Fine-tuning a pretrained Vision Transformer

# %%
import math
import zipfile
from itertools import chain

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
import torch
import torch.nn.functional as F
from handout import build_model, parts
from torch import Tensor, nn, optim
from torch.utils.data import DataLoader, Subset
from torchvision import datasets, transforms

STUDENT_ID = "400105025"
RATE = 3e-3
PATIENCE = 5
BATCH_SIZE = 64
MEAN, STD = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(42)

# %% [markdown]
# ## The split

# %%
def stratified_split(labels, per_class, seed):
    labels, per_class = np.asarray(labels).astype(int), np.asarray(per_class).astype(int)
    keys = np.random.default_rng(seed).random(len(labels))
    rows = np.lexsort((keys, labels))  # by class, within a class at random
    classes, first, counts = np.unique(labels[rows], return_index=True, return_counts=True)
    if (counts < per_class.sum()).any():
        raise ValueError(f"too few images of the classes {classes[counts < per_class.sum()].tolist()}")
    ends = np.cumsum(per_class)
    return tuple(
        rows[(first[:, None] + np.arange(end - size, end)).ravel()] for size, end in zip(per_class, ends)
    )


# %% [markdown]
# ## Mixed images

# %%
def drawn_share(alpha, generator):
    if alpha == 0:
        return np.float64(1.0)
    return generator.dirichlet((alpha, alpha))[0]  # the first of two shares is a Beta


def mixup(images, labels, alpha, generator):
    lam = drawn_share(alpha, generator)
    partner = torch.as_tensor(np.argsort(generator.standard_normal(len(labels))), device=images.device)
    pairs = torch.stack((images, images[partner]))
    shares = torch.tensor([lam, 1 - lam], dtype=images.dtype, device=images.device)
    return torch.einsum("s,sbchw->bchw", shares, pairs), labels, labels[partner], lam


# %%
def cutmix(images, labels, alpha, generator):
    lam = drawn_share(alpha, generator)
    partner = torch.as_tensor(np.argsort(generator.standard_normal(len(labels))), device=images.device)

    def stripe(size):
        """1 for the rows (or columns) of the rectangle, 0 for the others."""
        length = np.rint(size * np.sqrt(1 - lam))
        offset = np.arange(size) - generator.uniform(-0.5, size - 0.5) + length / 2
        return torch.as_tensor((offset >= 0) & (offset < length), dtype=images.dtype, device=images.device)

    box = torch.einsum("h,w->hw", stripe(images.shape[2]), stripe(images.shape[3]))
    mixed = torch.where(box.bool(), images[partner], images)
    return mixed, labels, labels[partner], 1 - box.mean().item()


# %%
def mixed_loss(criterion, logits, labels_a, labels_b, lam):
    return lam * criterion(logits, labels_a) + (1 - lam) * criterion(logits, labels_b)


# %% [markdown]
# ## What learns

# %%
def only(model, *modules):
    """Exactly the parameters of these modules learn afterwards."""
    learning = {id(p) for p in chain.from_iterable(module.parameters() for module in modules)}
    for p in model.parameters():
        p.requires_grad_(id(p) in learning)


def freeze_backbone(model):
    only(model, parts(model)[0])


# %%
def unfreeze(model, blocks=None):
    head, layers, norm = parts(model)
    if blocks is None:
        only(model, model)
    else:
        only(model, head, norm, *layers[len(layers) - blocks :])


# %% [markdown]
# ## Training and evaluation

# %%
def train_one_epoch(model, loader, optimizer, criterion, device, mix=None):
    model.train()
    for block in parts(model)[1]:
        block.train(max((p.requires_grad for p in block.parameters()), default=True))
    found = []
    for images, labels in loader:
        images, labels_a = images.to(device), labels.to(device)
        labels_b, lam = labels_a, 1.0
        if mix is not None:
            images, labels_a, labels_b, lam = mix(images, labels_a)
        scores = model(images)
        loss = criterion(scores, labels_a) if mix is None else mixed_loss(criterion, scores, labels_a, labels_b, lam)
        for group in optimizer.param_groups:
            for p in group["params"]:
                p.grad = None
        loss.backward()
        optimizer.step()
        right = torch.stack([scores.argmax(1) == labels_a, scores.argmax(1) == labels_b]).double().mean(1).tolist()
        found.append((len(labels), loss.item(), np.dot(right, (lam, 1 - lam))))
    sizes, losses, accuracies = np.array(found).T
    return np.average(losses, weights=sizes), np.average(accuracies, weights=sizes)


# %%
@torch.no_grad()
def evaluate(model, loader, criterion, device):
    model.eval()
    total_loss = 0.0
    targets = []
    predictions = []
    for images, labels in loader:
        images, labels = images.to(device), labels.to(device)
        outputs = model(images)
        total_loss += criterion(outputs, labels).item() * len(labels)
        targets.extend(labels.tolist())
        predictions.extend(outputs.argmax(dim=1).tolist())
    correct = sum(t == p for t, p in zip(targets, predictions))
    return total_loss / len(targets), correct / len(targets), targets, predictions


# %%
def watcher(patience, min_delta, keep):
    """A coroutine: is sent values, yields whether to stop, and calls `keep` at each improvement."""
    best, waited, stop = None, 0, None
    while True:
        value, model = yield stop
        if value == value and (best is None or value - best > min_delta):
            best, waited = value, 0
            keep(model)
        else:
            waited += 1
        stop = waited >= patience


class EarlyStopping:
    def __init__(self, patience, min_delta=0.0):
        self.kept = None
        self.watch = watcher(patience, min_delta, self.keep)
        next(self.watch)

    def keep(self, model):
        self.kept = [w.detach().clone() for w in model.state_dict().values()]

    def step(self, value, model):
        return self.watch.send((float(value), model))

    def restore(self, model):
        if self.kept is not None:
            with torch.no_grad():
                for w, best in zip(model.state_dict().values(), self.kept):
                    w.copy_(best)


# %%
def fit(model, loaders, epochs, device):
    model.to(device)
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
    generator = np.random.default_rng(42)
    history = {"train_loss": [], "train_acc": [], "val_loss": [], "val_acc": [], "stage2": epochs[0]}

    def mix(images, labels):
        if generator.random() < 0.5:
            return mixup(images, labels, 0.2, generator)
        return cutmix(images, labels, 1.0, generator)

    def run_epoch(optimizer, mix=None):
        train_loss, train_acc = train_one_epoch(model, loaders["train"], optimizer, criterion, device, mix)
        val_loss, val_acc, _, _ = evaluate(model, loaders["validation"], criterion, device)
        history["train_loss"].append(train_loss)
        history["train_acc"].append(train_acc)
        history["val_loss"].append(val_loss)
        history["val_acc"].append(val_acc)
        print(f"train {train_loss:.4f} {train_acc:.4f}  val {val_loss:.4f} {val_acc:.4f}")
        return val_acc

    # stage 1: the head
    freeze_backbone(model)
    optimizer = optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=RATE)
    for _ in range(epochs[0]):
        run_epoch(optimizer)

    # stage 2: everything
    unfreeze(model)
    optimizer = optim.AdamW(model.parameters(), lr=RATE / 10, weight_decay=0.05)
    scheduler = optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=max(epochs[1], 1))
    stopping = EarlyStopping(PATIENCE)
    for _ in range(epochs[1]):
        val_acc = run_epoch(optimizer, mix)
        scheduler.step()
        if stopping.step(val_acc, model):
            print("stopped early")
            break
    stopping.restore(model)
    return history


# %%
def per_class_accuracy(targets, predictions, classes):
    targets, predictions = (torch.as_tensor(np.asarray(v)).long() for v in (targets, predictions))
    sums = torch.zeros(2, classes, dtype=torch.float64)
    sums[0].index_add_(0, targets, (targets == predictions).double())
    sums[1].index_add_(0, targets, torch.ones(len(targets), dtype=torch.float64))
    return (sums[0] / sums[1]).numpy()


# %% [markdown]
# ## Pictures

# %%
def to_picture(image: torch.Tensor, mean: tuple, std: tuple) -> np.ndarray:
    """(height, width, channels), 0 to 1."""
    offset, scale = (torch.as_tensor(v, dtype=torch.float32)[:, None, None] for v in (mean, std))
    return torch.addcmul(offset, image.detach().cpu(), scale).clip(0, 1).movedim(0, 2).numpy()


def show_patches(image, patch_size, mean, std) -> None:
    """A mosaic: the image on the left, each patch in a place of its own on the right."""
    picture = to_picture(image, mean, std)
    rows, columns = (side // patch_size for side in picture.shape[:2])
    layout = [["image"] * columns + [f"{y},{x}" for x in range(columns)] for y in range(rows)]
    figure, places = plt.subplot_mosaic(layout, figsize=(9, 4.5))
    places["image"].imshow(picture)
    patches = picture.reshape(rows, patch_size, columns, patch_size, -1).swapaxes(1, 2)
    for y, x in np.ndindex(rows, columns):
        places[f"{y},{x}"].imshow(patches[x, y])
    for ax in places.values():
        ax.axis("off")


# %%
@torch.no_grad()
def show_attention(model, image, mean, std):
    _, (*_, last), _ = parts(model)
    seen = {}
    handle = last.attn.register_forward_pre_hook(lambda module, args: seen.update(tokens=args[0]))
    try:
        model(image[None].to(next(model.parameters()).device))
    finally:
        handle.remove()
    heads = last.attn.num_heads
    query, key, _ = last.attn.qkv(seen["tokens"])[0].chunk(3, dim=-1)
    query, key = query[0].view(heads, -1), key.view(len(key), heads, -1)  # the class token's query alone
    scores = torch.einsum("hd,nhd->hn", query, key) / query.shape[-1] ** 0.5
    row = scores.softmax(-1).mean(0)[1:].cpu().numpy()
    side = math.isqrt(len(row))
    figure, (left, right) = plt.subplots(1, 2, figsize=(8, 4))
    left.imshow(to_picture(image, mean, std))
    shown = right.imshow(row.reshape(side, side).repeat(image.shape[1] // side, 0).repeat(image.shape[2] // side, 1))
    figure.colorbar(shown, ax=right)
    left.set_title("image")
    right.set_title("class token, last block")
    return figure


# %%
def plot_history(history):
    epochs = range(1, len(history["train_loss"]) + 1)
    plt.figure(figsize=(10, 4))
    for place, (key, name) in enumerate([("loss", "loss"), ("acc", "accuracy")]):
        plt.subplot(1, 2, place + 1)
        plt.plot(epochs, history["train_" + key], label="training " + name)
        plt.plot(epochs, history["val_" + key], label="validation " + name)
        plt.axvline(history["stage2"] + 0.5, color="gray", linestyle="--", label="stage 2 begins")
        plt.xlabel("epoch")
        plt.ylabel(name)
        plt.legend()
    plt.tight_layout()
    plt.show()


# %%
def plot_per_class(names, accuracies) -> None:
    """Bars by seaborn."""
    table = pd.DataFrame({"class": list(names), "accuracy": np.asarray(accuracies, dtype=float)})
    _, ax = plt.subplots(figsize=(8, 4), layout="constrained")
    sns.barplot(table, x="class", y="accuracy", ax=ax, color="steelblue")
    ax.tick_params(axis="x", rotation=60)


# %%
def plot_confusion_matrix(matrix, class_names):
    matrix = np.asarray(matrix)
    n = len(class_names)
    plt.figure(figsize=(8, 7))
    plt.imshow(matrix, cmap="Blues")
    plt.colorbar()
    plt.xticks(range(n), class_names, rotation=45, ha="right")
    plt.yticks(range(n), class_names)
    plt.xlabel("predicted class")
    plt.ylabel("true class")
    for i in range(n):
        for j in range(n):
            color = "white" if matrix[i, j] > matrix.max() / 2 else "black"
            plt.text(j, i, str(int(matrix[i, j])), ha="center", va="center", color=color)
    plt.tight_layout()
    plt.show()


# %% [markdown]
# ## The images

# %%
with zipfile.ZipFile("dataset.zip") as archive:
    archive.extractall("data")

plain_transform = transforms.Compose([transforms.ToTensor(), transforms.Normalize(MEAN, STD)])
train_transform = transforms.Compose(
    [transforms.RandomCrop(32, padding=2), transforms.RandomHorizontalFlip(), plain_transform]
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
