# %% [markdown]
# # ViT fine-tuning
# I think in arrays and tables, so indices, masks and bookkeeping are numpy / pandas here and torch only does
# the network part.

# %%
import zipfile

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from handout import build_model, parts
from torch import nn, optim
from torch.utils.data import DataLoader, Subset
from torchvision import datasets, transforms

STUDENT_ID = "400104901"
RATE = 5e-3
PATIENCE = 5
SMOOTHING = 0.1
BATCH_SIZE = 64
MEAN, STD = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)
SEEDS = np.random.SeedSequence(400104901)

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(42)

# seaborn's "deep" colors and something like its whitegrid
DEEP = ["#4C72B0", "#DD8452", "#55A868", "#C44E52", "#8172B3", "#937860", "#DA8BC3", "#8C8C8C", "#CCB974", "#64B5CD"]
STYLE = {
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": ".85",
    "axes.edgecolor": ".8",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": "medium",
}


def to_numpy(x):
    """Whatever it is (tensor, list, array) -> array."""
    return x.detach().cpu().numpy() if torch.is_tensor(x) else np.asarray(x)


# %% [markdown]
# ## Split


# %%
def stratified_split(labels, per_class, seed):
    """Exactly per_class[k] images of every class for part k.

    Every image gets a random key; its rank by key inside its class says which part it goes to
    (rank < per_class[0]: part 0, and so on; whatever is left over goes nowhere).
    """
    table = pd.DataFrame({"label": to_numpy(labels)})
    per_class = np.asarray(per_class, dtype=int)

    counts = table.groupby("label").size()
    too_few = counts[counts < per_class.sum()]
    if len(too_few):
        raise ValueError(f"need {per_class.sum()} images per class, but there are only {too_few.to_dict()}")

    rng = np.random.default_rng(seed)
    table["key"] = rng.permutation(len(table))  # no ties possible
    rank = table.groupby("label")["key"].rank(method="first").astype(int) - 1
    table["part"] = np.searchsorted(np.cumsum(per_class), rank.to_numpy(), side="right")
    return tuple(table.index[table["part"] == k].to_numpy() for k in range(len(per_class)))


# %% [markdown]
# ## Mixing
# numpy in, numpy out, and only the result becomes a tensor again.


# %%
def draw(n, alpha, generator):
    partner = generator.permutation(n)
    # float(): a np.float64 would turn float32 images into float64
    lam = float(generator.beta(alpha, alpha)) if alpha > 0 else 1.0
    return partner, lam


def back_to_torch(array, like):
    return torch.from_numpy(np.ascontiguousarray(array)).to(dtype=like.dtype, device=like.device)


def mixup(images, labels, alpha, generator):
    x, y = to_numpy(images), to_numpy(labels)
    partner, lam = draw(len(x), alpha, generator)
    mixed = lam * x + (1 - lam) * x[partner]
    return back_to_torch(mixed, images), labels, back_to_torch(y[partner], labels), lam


def cutmix(images, labels, alpha, generator):
    x, y = to_numpy(images), to_numpy(labels)
    height, width = x.shape[2:]
    partner, lam = draw(len(x), alpha, generator)

    # rectangle as a boolean (H, W) mask, so clipping comes for free
    half = np.sqrt(1 - lam) / 2
    center_row, center_column = generator.uniform(0, [height, width])
    rows = np.abs(np.arange(height) + 0.5 - center_row) < half * height
    columns = np.abs(np.arange(width) + 0.5 - center_column) < half * width
    other = np.outer(rows, columns)

    mixed = np.where(other, x[partner], x)
    return back_to_torch(mixed, images), labels, back_to_torch(y[partner], labels), float(1 - other.mean())


def mixed_loss(criterion, logits, labels_a, labels_b, lam):
    both = torch.stack([criterion(logits, labels_a), criterion(logits, labels_b)])
    weights = torch.as_tensor([lam, 1 - lam], dtype=both.dtype, device=both.device)
    return both @ weights


# %% [markdown]
# ## Freeze / unfreeze


# %%
def freeze_backbone(model):
    head, _, _ = parts(model)
    learns = {id(p) for p in head.parameters()}
    for p in model.parameters():
        p.requires_grad = id(p) in learns


def unfreeze(model, blocks=None):
    head, stack, norm = parts(model)
    if blocks is None:
        learning_modules = [model]
    else:
        is_last = np.arange(len(stack)) >= len(stack) - blocks
        learning_modules = [head, norm] + [stack[i] for i in np.flatnonzero(is_last)]
    learns = {id(p) for module in learning_modules for p in module.parameters()}
    for p in model.parameters():
        p.requires_grad = id(p) in learns


# %% [markdown]
# ## Train and evaluate


# %%
def train_one_epoch(model, loader, optimizer, criterion, device, mix=None):
    model.train()
    for block in parts(model)[1]:
        block.train(any(p.requires_grad for p in block.parameters()))

    log = []
    for images, labels in loader:
        images, labels = images.to(device), labels.to(device)
        if mix is None:
            labels_a, labels_b, lam = labels, labels, 1.0
        else:
            images, labels_a, labels_b, lam = mix(images, labels)

        logits = model(images)
        if mix is None:
            loss = criterion(logits, labels)
        else:
            loss = mixed_loss(criterion, logits, labels_a, labels_b, lam)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

        guess = to_numpy(logits).argmax(axis=1)
        right_a = (guess == to_numpy(labels_a)).mean()
        right_b = (guess == to_numpy(labels_b)).mean()
        log.append((len(guess), loss.item(), float(lam) * right_a + (1 - float(lam)) * right_b))

    n, losses, accuracies = np.array(log).T
    return float(np.average(losses, weights=n)), float(np.average(accuracies, weights=n))


# %%
def evaluate(model, loader, criterion, device):
    model.eval()
    batches = []
    with torch.no_grad():
        for images, labels in loader:
            logits = model(images.to(device))
            loss = criterion(logits, labels.to(device)).item()
            batches.append(
                pd.DataFrame({"target": to_numpy(labels), "prediction": to_numpy(logits).argmax(axis=1), "loss": loss})
            )
    # each row carries the mean loss of its batch, so the mean over the rows is the mean over the images
    table = pd.concat(batches, ignore_index=True)
    accuracy = (table["target"] == table["prediction"]).mean()
    return float(table["loss"].mean()), float(accuracy), table["target"].to_numpy(), table["prediction"].to_numpy()


# %%
class EarlyStopping:
    """Higher is better. The best weights are kept as numpy arrays (copies!)."""

    def __init__(self, patience, min_delta=0.0):
        self.patience = patience
        self.min_delta = min_delta
        self.best = np.nan
        self.bad = 0
        self.weights = None

    def step(self, value, model):
        value = float(value)
        # comparisons with nan are False, so only the very first number needs a word
        first = np.isnan(self.best) and not np.isnan(value)
        if first or value > self.best + self.min_delta:
            self.best, self.bad = value, 0
            self.weights = {k: np.array(to_numpy(v), copy=True) for k, v in model.state_dict().items()}
        else:
            self.bad += 1
        return self.bad >= self.patience

    def restore(self, model):
        if self.weights is not None:
            model.load_state_dict({k: torch.from_numpy(v.copy()) for k, v in self.weights.items()})


# %%
def make_mix(rng):
    """cutmix, mixup or nothing, drawn anew for each batch."""

    def mix(images, labels):
        kind = rng.choice(["cutmix", "mixup", "none"], p=[0.3, 0.3, 0.4])
        if kind == "cutmix":
            return cutmix(images, labels, 1.0, rng)
        if kind == "mixup":
            return mixup(images, labels, 0.3, rng)
        return images, labels, labels, 1.0

    return mix


def fit(model, loaders, epochs, device):
    model.to(device)
    rng = np.random.default_rng(SEEDS)
    criterion = nn.CrossEntropyLoss(label_smoothing=SMOOTHING)
    head_epochs, all_epochs = epochs

    # the whole plan as one table: a row for each epoch
    cosine = (1 + np.cos(np.pi * np.arange(all_epochs) / max(all_epochs, 1))) / 2
    plan = pd.DataFrame(
        {
            "stage": np.repeat([1, 2], [head_epochs, all_epochs]),
            "rate": np.concatenate([np.full(head_epochs, RATE), 0.1 * RATE * cosine]),
        }
    )

    rows = []
    stopper = EarlyStopping(PATIENCE)  # only stage 2 steps it
    for stage, rates in plan.groupby("stage")["rate"]:
        if stage == 1:
            freeze_backbone(model)
        else:
            unfreeze(model)
        optimizer = optim.AdamW(
            [p for p in model.parameters() if p.requires_grad], lr=float(rates.iloc[0]), weight_decay=0.01
        )
        for epoch, rate in rates.items():
            for group in optimizer.param_groups:
                group["lr"] = float(rate)
            mix = make_mix(rng) if stage == 2 else None
            loss, accuracy = train_one_epoch(model, loaders["train"], optimizer, criterion, device, mix)
            val_loss, val_accuracy, _, _ = evaluate(model, loaders["validation"], nn.CrossEntropyLoss(), device)
            rows.append(
                {
                    "epoch": epoch + 1,
                    "stage": int(stage),
                    "rate": float(rate),
                    "loss": loss,
                    "accuracy": accuracy,
                    "val_loss": val_loss,
                    "val_accuracy": val_accuracy,
                }
            )
            print("  ".join(f"{k} {v:.4g}" for k, v in rows[-1].items()))
            if stage == 2 and stopper.step(val_accuracy, model):
                break
    stopper.restore(model)
    return pd.DataFrame(rows).to_dict("list")


# %%
def per_class_accuracy(targets, predictions, classes):
    table = pd.DataFrame({"target": to_numpy(targets), "prediction": to_numpy(predictions)})
    table["hit"] = (table["target"] == table["prediction"]).astype(float)
    return table.groupby("target")["hit"].mean().reindex(range(classes)).to_numpy()


# %% [markdown]
# ## Pictures


# %%
def unnormalized(image, mean, std):
    """(C, H, W) normalized -> (H, W, C) in 0..1"""
    pixels = np.moveaxis(to_numpy(image), 0, -1) * to_numpy(std) + to_numpy(mean)
    return np.clip(pixels, 0, 1)


def show_patches(image, patch_size, mean, std):
    pixels = unnormalized(image, mean, std)
    height, width, channels = pixels.shape
    rows, columns = height // patch_size, width // patch_size
    patches = pixels.reshape(rows, patch_size, columns, patch_size, channels).swapaxes(1, 2)

    fig, ax = plt.subplots(figsize=(3, 3))
    ax.imshow(pixels)
    ax.set_title("image")
    ax.set_axis_off()

    fig, axes = plt.subplots(rows, columns, figsize=(4, 4 * rows / columns), squeeze=False)
    for (i, j), ax in np.ndenumerate(axes):
        ax.imshow(patches[i, j])
        ax.set_axis_off()
    fig.suptitle(f"{rows} x {columns} patches")
    plt.show()


# %%
def show_attention(model, image, mean, std):
    # the first half of the last block by hand, no hooks; nothing in here depends on the mode
    _, blocks, _ = parts(model)
    attention = blocks[-1].attn
    with torch.no_grad():
        x = torch.as_tensor(image)[None].to(model.cls_token.device)
        tokens = torch.cat([model.cls_token, model.patch_embed(x)], dim=1) + model.pos_embed
        for block in blocks[:-1]:
            tokens = block(tokens)
        qkv = to_numpy(attention.qkv(blocks[-1].norm1(tokens))[0])

    # numpy from here on
    q, k, _ = np.split(qkv, 3, axis=1)
    q, k = (np.stack(np.split(part, attention.num_heads, axis=1)) for part in (q, k))  # (heads, tokens, d)
    scores = np.einsum("hd,htd->ht", q[:, 0], k) / np.sqrt(q.shape[-1])  # only the row of the class token
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    weights /= weights.sum(axis=1, keepdims=True)
    patch = model.patch_embed.patch_size
    patch = patch[0] if isinstance(patch, (tuple, list)) else patch
    picture = weights.mean(axis=0)[1:].reshape(image.shape[1] // patch, image.shape[2] // patch)

    fig, (left, right) = plt.subplots(1, 2, figsize=(7, 3))
    left.imshow(unnormalized(image, mean, std))
    left.set_title("image")
    right.imshow(np.kron(picture, np.ones((patch, patch))), cmap="magma")
    right.set_title("class token looks at")
    for ax in (left, right):
        ax.set_axis_off()
    plt.show()


# %%
def plot_history(history):
    table = pd.DataFrame(history).set_index("epoch")
    start = table.index[table["stage"] == 2]
    with plt.rc_context(STYLE):
        fig, axes = plt.subplots(2, 1, figsize=(7, 7), sharex=True)
        for ax, what in zip(axes, ["loss", "accuracy"]):
            table[[what, f"val_{what}"]].rename(
                columns={what: "training", f"val_{what}": "validation"}
            ).plot(ax=ax, color=DEEP[:2], marker=".")
            ax.set_ylabel(what)
            if len(start):
                ax.axvline(start[0] - 0.5, color=".4", linestyle=":")
                ax.annotate("stage 2", (start[0] - 0.5, 0.95), xycoords=("data", "axes fraction"), color=".4")
        axes[-1].set_xlabel("epoch")
        fig.tight_layout()
    plt.show()


# %%
def plot_per_class(names, accuracies):
    bars = pd.Series(to_numpy(accuracies), index=list(names), dtype=float).sort_values(na_position="first")
    with plt.rc_context(STYLE):
        fig, ax = plt.subplots(figsize=(6, 0.4 * len(bars) + 1.5))
        ax.barh(np.arange(len(bars)), bars.to_numpy(), color=DEEP[0])
        ax.set_yticks(np.arange(len(bars)), bars.index)
        ax.grid(False, axis="y")
        ax.set_ylim(-0.6, len(bars) - 0.4)
        ax.set_xlim(0, 1)
        ax.set_xlabel("accuracy")
        ax.set_ylabel("class (best on top)")
        fig.tight_layout()
    plt.show()


# %%
def plot_confusion_matrix(matrix, class_names):
    # what sns.heatmap(annot=True) does
    table = pd.DataFrame(to_numpy(matrix), index=list(class_names), columns=list(class_names))
    fig, ax = plt.subplots(figsize=(8, 7))
    mesh = ax.pcolormesh(table.to_numpy(), cmap="Purples", edgecolor="w")
    ax.invert_yaxis()
    ax.set_xticks(np.arange(len(table)) + 0.5, table.columns, rotation=90)
    ax.set_yticks(np.arange(len(table)) + 0.5, table.index)
    for (i, j), count in np.ndenumerate(table.to_numpy()):
        dark = count > table.to_numpy().max() / 2
        ax.text(j + 0.5, i + 0.5, str(count), ha="center", va="center", color="w" if dark else ".2")
    ax.set_xlabel("predicted")
    ax.set_ylabel("true")
    fig.colorbar(mesh, ax=ax)
    fig.tight_layout()
    plt.show()


# %% [markdown]
# ## The images

# %%
with zipfile.ZipFile("dataset.zip") as archive:
    archive.extractall("data")

plain_transform = transforms.Compose([transforms.ToTensor(), transforms.Normalize(MEAN, STD)])
train_transform = transforms.Compose(
    [transforms.RandomHorizontalFlip(), transforms.RandomCrop(32, padding=2), plain_transform]
)
augmented_images = datasets.ImageFolder("data/train", transform=train_transform)
plain_images = datasets.ImageFolder("data/train", transform=plain_transform)
test_images = datasets.ImageFolder("data/test", transform=plain_transform)
class_names = test_images.classes

fewest = int(pd.Series(plain_images.targets).value_counts().min())
training_rows, validation_rows = stratified_split(plain_images.targets, (fewest - fewest // 5, fewest // 5), seed=42)
assert not np.intersect1d(training_rows, validation_rows).size
loaders = {
    "train": DataLoader(Subset(augmented_images, training_rows), batch_size=BATCH_SIZE, shuffle=True),
    "validation": DataLoader(Subset(plain_images, validation_rows), batch_size=256),
}
test_loader = DataLoader(test_images, batch_size=256)

# %% [markdown]
# ## Train

# %%
EPOCHS = (3, 12)
model = build_model(len(class_names))
history = fit(model, loaders, EPOCHS, device)
torch.save(model.state_dict(), f"{STUDENT_ID}_Finetune.pth")
pd.DataFrame(history).round(4).to_csv("history.csv", index=False)
plot_history(history)

# %% [markdown]
# ## Look at it

# %%
loss, accuracy, targets, predictions = evaluate(model, test_loader, nn.CrossEntropyLoss(), device)
print(f"test loss {loss:.4f}, test accuracy {accuracy:.4f}")
plot_per_class(class_names, per_class_accuracy(targets, predictions, len(class_names)))
matrix = pd.crosstab(targets, predictions).reindex(
    index=range(len(class_names)), columns=range(len(class_names)), fill_value=0
)
plot_confusion_matrix(matrix, class_names)

# %%
images, labels = next(iter(test_loader))
show_patches(images[0], 4, MEAN, STD)
show_attention(model, images[0], MEAN, STD)
