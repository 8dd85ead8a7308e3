# %% [markdown]
# # Fine-tuning a pretrained Vision Transformer
#
# I come from R. Everything below is thought as data frames: one row per image, per batch, per parameter or
# per (epoch, part, measure); verbs are chained; pictures are drawn from long ("tidy") tables.

# %%
import copy
import zipfile
from itertools import groupby

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
import torch
from handout import build_model, parts
from torch import nn, optim
from torch.utils.data import DataLoader, Subset
from torchvision import datasets, transforms

STUDENT_ID = "400208113"
RATE = 3e-3
DECAY = 0.02
PATIENCE = 5
BATCH_SIZE = 64
ALPHA = 0.2  # shape1 = shape2 of the Beta distribution
SMOOTHING = 0.05
MEAN, STD = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(42)


# %%
# --- small things that R has and Python has not -----------------------------------------------------------


def rle(values):
    """Run length encoding, as a data frame: rle(c(T, F, F)) has the rows (T, 1), (F, 2)."""
    runs = [(value, len(list(run))) for value, run in groupby(values)]
    return pd.DataFrame(runs, columns=["value", "length"])


def rbeta1(generator, shape):
    """One draw of a symmetric Beta; the limit shape -> 0 that we want here is the point mass at 1."""
    return 1.0 if shape == 0 else float(generator.beta(shape, shape))


def clamp(x, low, high):
    return int(min(max(x, low), high))  # pmin(pmax(x, low), high)


def unscale(image, mean, std):
    """The inverse of scale(): (channels, height, width) -> (height, width, channels), in [0, 1]."""
    pixels = image.detach().cpu().numpy()
    center, spread = (np.asarray(x, dtype=float).reshape(-1, 1, 1) for x in (mean, std))
    pixels = np.clip(pixels * spread + center, 0, 1)
    return pixels[0] if len(pixels) == 1 else np.moveaxis(pixels, 0, -1)


# %% [markdown]
# ## The split


# %%
def stratified_split(labels, per_class, seed):
    # df |> mutate(u = runif(n())) |> arrange(u) |> group_by(class) |> mutate(rank = row_number())
    labels = np.asarray(labels)
    edges = np.cumsum(np.asarray(per_class, dtype=int))
    frame = pd.DataFrame({"row": np.arange(len(labels)), "stratum": labels})

    short = frame["stratum"].value_counts().loc[lambda n: n < edges[-1]] if len(edges) else []
    if len(short):
        raise ValueError(f"{edges[-1]} images of every class are needed, but there are only {short.to_dict()}")

    sampled = (
        frame.assign(u=np.random.default_rng(seed).random(len(frame)))
        .sort_values("u", kind="stable")
        .assign(rank=lambda df: df.groupby("stratum").cumcount())
        .assign(part=lambda df: np.searchsorted(edges, df["rank"], side="right"))  # cut()
    )
    return tuple(sampled.loc[sampled["part"] == k, "row"].to_numpy() for k in range(len(edges)))


# %% [markdown]
# ## Mixed images


# %%
def mixup(images, labels, alpha, generator):
    other = torch.from_numpy(generator.permutation(len(images)))
    lam = rbeta1(generator, alpha)
    pairs = torch.stack([images, images[other.to(images.device)]])  # (2, batch, ...)
    weights = torch.tensor([lam, 1 - lam], dtype=images.dtype, device=images.device)
    mixed = (weights.reshape(2, 1, 1, 1, 1) * pairs).sum(dim=0)  # weighted.mean over the pair
    return mixed, labels, labels[other.to(labels.device)], lam


# %%
def cutmix(images, labels, alpha, generator):
    height, width = images.shape[-2:]
    lam = rbeta1(generator, alpha)
    other = torch.from_numpy(generator.permutation(len(images)))
    y, x = generator.uniform(0, (height, width))  # runif(2, 0, c(height, width))
    half = 0.5 * np.sqrt(1 - lam) * np.array([height, width])

    is_row = np.arange(height)
    is_row = (is_row >= clamp(round(y - half[0]), 0, height)) & (is_row < clamp(round(y + half[0]), 0, height))
    is_col = np.arange(width)
    is_col = (is_col >= clamp(round(x - half[1]), 0, width)) & (is_col < clamp(round(x + half[1]), 0, width))
    foreign = np.logical_and.outer(is_row, is_col)  # outer(rows, cols, `&`)

    mask = torch.from_numpy(foreign).to(images.device)
    mixed = torch.where(mask, images[other.to(images.device)], images)
    return mixed, labels, labels[other.to(labels.device)], float(np.mean(~foreign))


# %%
def mixed_loss(criterion, logits, labels_a, labels_b, lam):
    sides = pd.DataFrame({"weight": [float(lam), 1.0 - float(lam)]}, index=["a", "b"])
    return sides.weight["a"] * criterion(logits, labels_a) + sides.weight["b"] * criterion(logits, labels_b)


# %% [markdown]
# ## What learns
#
# A table of the parameters says to which part each of them belongs. After that, freezing is `part %in% ...`.


# %%
def parameter_table(model):
    head, blocks, norm = parts(model)
    places = {"head": head, "norm": norm} | {f"block {k}": block for k, block in enumerate(blocks, start=1)}
    of = {id(p): place for place, module in places.items() for p in module.parameters()}
    return pd.DataFrame(
        [(name, of.get(id(p), "embedding")) for name, p in model.named_parameters()], columns=["name", "part"]
    )


def let_learn(model, chosen):
    """`chosen`: a predicate on the table, giving a logical column."""
    table = parameter_table(model).assign(learns=chosen)
    parameters = dict(model.named_parameters())
    for row in table.itertuples():
        parameters[row.name].requires_grad_(bool(row.learns))


def freeze_backbone(model):
    let_learn(model, lambda df: df["part"] == "head")


# %%
def unfreeze(model, blocks=None):
    if blocks is None:
        return let_learn(model, True)
    depth = len(parts(model)[1])
    last = {f"block {k}" for k in range(depth - blocks + 1, depth + 1)}  # R counts from 1
    let_learn(model, lambda df: df["part"].isin({"head", "norm"} | last))


# %% [markdown]
# ## Training and evaluation


# %%
def train_one_epoch(model, loader, optimizer, criterion, device, mix=None):
    model.train()
    for block in parts(model)[1]:
        block.train(any(p.requires_grad for p in block.parameters()))

    batches = []
    for images, labels in loader:
        images, labels = images.to(device), labels.to(device)
        images, a, b, lam = (images, labels, labels, 1.0) if mix is None else mix(images, labels)
        logits = model(images)
        loss = criterion(logits, a) if mix is None else mixed_loss(criterion, logits, a, b, lam)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        guess = logits.detach().argmax(dim=1)
        batches.append(
            {
                "n": len(images),
                "loss": loss.item(),
                "right_a": (guess == a).float().mean().item(),
                "right_b": (guess == b).float().mean().item(),
                "lam": float(lam),
            }
        )
    # summarise(weighted.mean(loss, n), weighted.mean(accuracy, n))
    batches = pd.DataFrame(batches).eval("accuracy = lam * right_a + (1 - lam) * right_b")
    loss, accuracy = np.average(batches[["loss", "accuracy"]], axis=0, weights=batches["n"])
    return float(loss), float(accuracy)


# %%
@torch.no_grad()
def evaluate(model, loader, criterion, device):
    model.eval()
    pieces = []
    for images, labels in loader:
        logits = model(images.to(device))
        pieces.append(
            pd.DataFrame(
                {
                    "target": labels.cpu().numpy(),
                    "prediction": logits.argmax(dim=1).cpu().numpy(),
                    "loss": criterion(logits, labels.to(device)).item(),  # recycled: the batch's mean
                }
            )
        )
    images = pd.concat(pieces, ignore_index=True)  # bind_rows(): one row per image
    accuracy = (images["target"] == images["prediction"]).mean()
    return (
        float(images["loss"].mean()),
        float(accuracy),
        images["target"].to_numpy(),
        images["prediction"].to_numpy(),
    )


# %%
class EarlyStopping:
    """Keeps a protocol (was step i an improvement?) and looks at its last run."""

    def __init__(self, patience, min_delta=0.0):
        self.patience, self.min_delta = patience, min_delta
        self.protocol = []
        self.best = np.nan  # NA: not yet observed
        self.weights = None

    def step(self, value, model):
        value = float(value)
        first = self.weights is None
        improved = not np.isnan(value) and (first or value > self.best + self.min_delta)
        if improved:
            self.best, self.weights = value, copy.deepcopy(model.state_dict())
        self.protocol.append(improved)
        last_run = rle(self.protocol).iloc[-1]
        return bool(not last_run["value"] and last_run["length"] >= self.patience)

    def restore(self, model):
        if self.weights is not None:
            model.load_state_dict(self.weights)


# %% [markdown]
# The design of the experiment is a table too: one row per epoch, with its stage and its rate.


# %%
def design(epochs):
    first, second = (np.arange(n) for n in epochs)
    return pd.concat(
        [
            pd.DataFrame({"stage": 1, "rate": np.full(len(first), RATE)}),
            pd.DataFrame({"stage": 2, "rate": RATE / 10 * (1 + np.cos(np.pi * second / max(len(second), 1))) / 2}),
        ],
        ignore_index=True,
    ).assign(epoch=lambda df: np.arange(1, len(df) + 1))


def fit(model, loaders, epochs, device):
    model.to(device)
    rng = np.random.default_rng(1908)  # the year of Student's t
    criterion = nn.CrossEntropyLoss(label_smoothing=SMOOTHING)
    watch = EarlyStopping(PATIENCE)
    tidy = {"epoch": [], "stage": [], "part": [], "measure": [], "value": []}

    def toss(images, labels):
        if rng.random() < 0.5:  # a control group: half of the batches stay unmixed
            return images, labels, labels, 1.0
        method = mixup if rng.random() < 0.5 else cutmix
        return method(images, labels, ALPHA, rng)

    for stage, plan in design(epochs).groupby("stage", sort=True):
        freeze_backbone(model) if stage == 1 else unfreeze(model)
        learning = [p for p in model.parameters() if p.requires_grad]
        optimizer = optim.AdamW(learning, lr=plan["rate"].iloc[0], weight_decay=DECAY)
        for row in plan.itertuples():
            for group in optimizer.param_groups:
                group["lr"] = float(row.rate)
            seen = {
                "training": train_one_epoch(
                    model, loaders["train"], optimizer, criterion, device, toss if stage == 2 else None
                ),
                "validation": evaluate(model, loaders["validation"], criterion, device)[:2],
            }
            for part, numbers in seen.items():
                for measure, value in zip(("loss", "accuracy"), numbers):
                    for column, cell in zip(tidy, (int(row.epoch), int(stage), part, measure, value)):
                        tidy[column].append(cell)
            if stage == 2 and watch.step(seen["validation"][1], model):
                break
    watch.restore(model)
    return tidy


# %%
def per_class_accuracy(targets, predictions, classes):
    # prop.table(table(target, prediction), 1) |> diag()
    levels = range(classes)
    target = pd.Categorical(np.asarray(targets, dtype=int), categories=levels)
    prediction = pd.Categorical(np.asarray(predictions, dtype=int), categories=levels)
    table = pd.crosstab(target, prediction, dropna=False).reindex(index=levels, columns=levels, fill_value=0)
    counts = table.to_numpy(dtype=float)
    images = counts.sum(axis=1)
    return np.divide(np.diag(counts), images, out=np.full(classes, np.nan), where=images > 0)


# %% [markdown]
# ## Pictures


# %%
def show_patches(image, patch_size, mean, std):
    picture = unscale(image, mean, std)
    height, width = image.shape[-2] // patch_size, image.shape[-1] // patch_size
    figure = plt.figure(figsize=(9, 4.5))
    left, right = figure.subfigures(1, 2)
    axes = left.subplots()
    axes.imshow(picture, cmap="gray", vmin=0, vmax=1)
    axes.set_title("image")
    axes.axis("off")
    facets = right.subplots(height, width, squeeze=False)
    grid = pd.MultiIndex.from_product([range(height), range(width)])  # expand.grid(), rows slowly
    for row, column in grid:
        y, x = row * patch_size, column * patch_size
        facets[row, column].imshow(picture[y : y + patch_size, x : x + patch_size], cmap="gray", vmin=0, vmax=1)
        facets[row, column].axis("off")
    right.suptitle("patches")
    return figure


# %%
@torch.no_grad()
def show_attention(model, image, mean, std):
    attention = parts(model)[1][-1].attn
    caught = []
    handle = attention.qkv.register_forward_hook(lambda module, given, made: caught.append(made))
    try:
        model(image[None].to(next(model.parameters()).device))
    finally:
        handle.remove()
    tokens = caught[0].shape[1]
    q, k, _ = caught[0][0].reshape(tokens, 3, attention.num_heads, -1).unbind(dim=1)  # (tokens, heads, dim)
    by_head = [
        torch.softmax(q[0, head] @ k[:, head].T / q.shape[-1] ** 0.5, dim=0) for head in range(attention.num_heads)
    ]
    average = torch.stack(by_head).mean(dim=0)[1:].cpu().numpy()  # without the class token itself
    side = model.patch_embed.patch_size
    side = side if isinstance(side, tuple) else (side, side)
    heat = average.reshape(image.shape[-2] // side[0], image.shape[-1] // side[1])

    figure, (left, right) = plt.subplots(1, 2, figsize=(8, 4))
    left.imshow(unscale(image, mean, std), cmap="gray", vmin=0, vmax=1)
    left.set_title("image")
    drawn = right.imshow(heat, cmap="rocket")
    right.set_title("attention of the class token")
    figure.colorbar(drawn, ax=right, fraction=0.046)
    for axes in (left, right):
        axes.axis("off")
    return figure


# %%
def plot_history(history):
    long = pd.DataFrame(history)
    second = long.loc[long["stage"] == 2, "epoch"]
    with sns.axes_style("whitegrid"):
        figure, facets = plt.subplots(1, 2, figsize=(10, 4))
    for axes, measure in zip(facets, ("loss", "accuracy")):
        some = long[long["measure"] == measure]
        sns.lineplot(some, x="epoch", y="value", hue="part", style="part", markers=True, dashes=False, ax=axes)
        if len(second):
            axes.axvline(second.min() - 0.5, linestyle="--", color="grey", label="stage 2 begins")
        axes.set(xlabel="epoch", ylabel=measure, title=measure)
        if len(long):
            axes.legend()
    figure.tight_layout()
    return figure


# %%
def plot_per_class(names, accuracies):
    frame = pd.DataFrame({"name": list(names), "accuracy": np.asarray(accuracies, dtype=float)})
    with sns.axes_style("whitegrid"):
        figure, axes = plt.subplots(figsize=(7, 0.4 * len(frame) + 1.5))
    axes.barh(frame.index, frame["accuracy"], color=sns.color_palette("deep")[0])
    axes.set_yticks(frame.index, frame["name"])
    axes.invert_yaxis()  # the first class on top
    axes.set(xlim=(0, 1), xlabel="accuracy", ylabel="class")
    figure.tight_layout()
    return figure


# %%
def plot_confusion_matrix(matrix, class_names):
    table = pd.DataFrame(np.asarray(matrix).astype(int), index=list(class_names), columns=list(class_names))
    figure, axes = plt.subplots(figsize=(0.7 * len(table) + 2, 0.6 * len(table) + 2))
    sns.heatmap(table, annot=True, fmt="d", cmap="Blues", square=True, ax=axes,
                xticklabels=list(class_names), yticklabels=list(class_names))  # fmt: skip
    axes.set(xlabel="predicted", ylabel="true")
    figure.tight_layout()
    return figure


# %% [markdown]
# ## The images

# %%
with zipfile.ZipFile("dataset.zip") as archive:
    archive.extractall("data")

plain_transform = transforms.Compose([transforms.ToTensor(), transforms.Normalize(MEAN, STD)])
train_transform = transforms.Compose(
    [transforms.RandomCrop(32, padding=3, padding_mode="reflect"), transforms.RandomHorizontalFlip(), plain_transform]
)
augmented_images = datasets.ImageFolder("data/train", transform=train_transform)
plain_images = datasets.ImageFolder("data/train", transform=plain_transform)
test_images = datasets.ImageFolder("data/test", transform=plain_transform)
class_names = test_images.classes

fewest = int(pd.Series(plain_images.targets).value_counts().min())
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
print(pd.DataFrame(history).pivot_table(index="epoch", columns=["measure", "part"], values="value").round(3))

# %%
loss, accuracy, targets, predictions = evaluate(model, test_loader, nn.CrossEntropyLoss(), device)
se = np.sqrt(accuracy * (1 - accuracy) / len(targets))
print(f"loss {loss:.4f}, accuracy {accuracy:.4f} (standard error {se:.4f})")
plot_per_class(class_names, per_class_accuracy(targets, predictions, len(class_names)))
matrix = np.zeros((len(class_names), len(class_names)), dtype=int)
np.add.at(matrix, (np.asarray(targets), np.asarray(predictions)), 1)
plot_confusion_matrix(matrix, class_names)

# %%
images, labels = next(iter(test_loader))
show_patches(images[0], 4, MEAN, STD)
show_attention(model, images[0], MEAN, STD)
plt.show()
