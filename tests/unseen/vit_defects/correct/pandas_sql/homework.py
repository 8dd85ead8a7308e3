# %% [markdown]
# # Vision Transformer for steel surface defects
#
# Everything that is counted here is a table: the configurations, the training log, the predictions. The figures
# are queries on the table of predictions.

# %%
import math
import random
import shutil
import sqlite3
import time
import zipfile
from contextlib import closing
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd
import seaborn as sns
import torch
import torch.nn.functional as F
from torch import nn, optim
from torch.utils.data import DataLoader
from torchvision import datasets, transforms

STUDENT_ID = "400105518"

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(42)

# %% [markdown]
# ## 0. The table of configurations
#
# One row per run that I tried; `RUN` chooses the one that is trained.

# %%
CONFIGS = pd.DataFrame.from_records(
    [
        ("handout", 4, 64, 6, 4, 64, 128, "cls", 0.0, 0.0, 64, 3e-3, 0.0, 1),
        ("small", 4, 48, 4, 4, 16, 96, "cls", 0.0, 0.0, 64, 1e-3, 0.0, 30),
        ("big_patch", 7, 64, 6, 4, 32, 128, "cls", 0.1, 0.0, 64, 1e-3, 0.01, 40),
        ("final", 4, 72, 6, 6, 24, 144, "mean", 0.1, 0.05, 48, 1e-3, 0.01, 50),
    ],
    columns=[
        "run",
        "patch_size",
        "dim",
        "depth",
        "heads",
        "dim_head",
        "mlp_dim",
        "pool",
        "dropout",
        "emb_dropout",
        "batch_size",
        "lr",
        "weight_decay",
        "epochs",
    ],
).set_index("run")
RUN = "final"
cfg = {name: CONFIGS.at[RUN, name] for name in CONFIGS.columns}
# numpy's scalars to Python's
cfg = {name: value.item() if hasattr(value, "item") else value for name, value in cfg.items()}
print(CONFIGS.T.to_string())

# %% [markdown]
# ## 1. The data: unzip and split


# %%
def find_class_folders(root):
    """The folder that holds one folder per class: `root` itself, or a single folder inside it."""
    folders = [path for path in root.iterdir() if path.is_dir() and path.name != "__MACOSX"]
    return find_class_folders(folders[0]) if len(folders) == 1 else root


def split_dataset(source, destination, train_share=0.7, seed=42):
    """Copies source/<class>/* to destination/train/<class> and destination/test/<class>, class by class."""
    shutil.rmtree(destination, ignore_errors=True)
    for class_folder in sorted(path for path in source.iterdir() if path.is_dir()):
        names = sorted(p.name for p in class_folder.iterdir() if p.suffix.lower() in (".jpg", ".png", ".bmp"))
        random.Random(seed).shuffle(names)
        n_train = round(train_share * len(names))
        for part, chosen in (("train", names[:n_train]), ("test", names[n_train:])):
            folder = destination / part / class_folder.name
            folder.mkdir(parents=True)
            for name in chosen:
                shutil.copy(class_folder / name, folder / name)


with zipfile.ZipFile("dataset.zip") as archive:
    archive.extractall("dataset")
split_dataset(find_class_folders(Path("dataset")), Path("data"))


def file_table(root):
    """part, class, file: one row per image."""
    return pd.DataFrame(
        [(p.parent.parent.name, p.parent.name, p.name) for p in sorted(Path(root).glob("*/*/*"))],
        columns=["part", "class", "file"],
    )


print(file_table("data").pivot_table(index="class", columns="part", values="file", aggfunc="count", margins=True))

# %% [markdown]
# ## 2. Data sets, loaders and a first look

# %%
transform = transforms.Compose(
    [
        transforms.Resize((28, 28)),
        transforms.Grayscale(num_output_channels=1),
        transforms.ToTensor(),
        transforms.Normalize((0.5,), (0.5,)),
    ]
)
augment = transforms.Compose(
    [
        transforms.Resize((28, 28)),
        transforms.Grayscale(num_output_channels=1),
        transforms.RandomHorizontalFlip(),
        transforms.RandomVerticalFlip(),
        transforms.RandomCrop(28, padding=2, padding_mode="reflect"),
        transforms.ToTensor(),
        transforms.Normalize((0.5,), (0.5,)),
    ]
)
BATCH_SIZE = cfg["batch_size"]

train_set = datasets.ImageFolder("data/train", transform=augment)
test_set = datasets.ImageFolder("data/test", transform=transform)
train_loader = DataLoader(train_set, batch_size=BATCH_SIZE, shuffle=True)
test_loader = DataLoader(test_set, batch_size=BATCH_SIZE, shuffle=False)
class_names = train_set.classes


# %%
def show_samples(dataset, title, per_class=6):
    """Draws a grid of images: one row per class."""
    fig, axes = plt.subplots(len(dataset.classes), per_class, figsize=(1.5 * per_class, 9))
    for label, row in enumerate(axes):
        indices = [index for index, target in enumerate(dataset.targets) if target == label][:per_class]
        for ax, index in zip(row, indices, strict=False):
            ax.imshow(dataset[index][0].squeeze(0), cmap="gray", vmin=-1, vmax=1)
        for ax in row:
            ax.axis("off")
        row[0].set_title(dataset.classes[label], fontsize=9, loc="left")
    fig.suptitle(title)
    plt.show()


show_samples(train_set, "Training images")
show_samples(test_set, "Test images")

# %% [markdown]
# ## 3. The model


# %%
class PreNorm(nn.Module):
    """Layer normalization, then another module.

    Args:
        dim: The width of a token.
        fn: The module that receives the normalized tokens.

    forward:
        x: Tokens, (batch, tokens, dim).
        **kwargs: Handed on to `fn`.
        Returns what `fn` makes of the normalized `x`, (batch, tokens, dim). No residual here: the
        Transformer adds it.
    """

    def __init__(self, dim, fn):
        super().__init__()
        self.fn = fn
        self.norm = nn.LayerNorm(dim)

    def forward(self, x, **kwargs):
        normalized = self.norm(x)
        return self.fn(normalized, **kwargs)


# %%
def pipe(value, *functions):
    """As df.pipe(f).pipe(g)."""
    for function in functions:
        value = function(value)
    return value


class FeedForward(nn.Module):
    """Two linear layers with a nonlinearity between them, applied to each token by itself.

    Args:
        dim: The width of a token, at the entrance and at the exit.
        hidden_dim: The width between the two layers.
        dropout: The share of values that is dropped in training.

    forward:
        x: Tokens, (batch, tokens, dim).
        Returns tokens, (batch, tokens, dim).
    """

    def __init__(self, dim, hidden_dim, dropout=0.0):
        super().__init__()
        self.widen = nn.Linear(dim, hidden_dim)
        self.shrink = nn.Linear(hidden_dim, dim)
        self.drop = nn.Dropout(dropout)  # one module does for both places, it has no weights

    def forward(self, x):
        return pipe(x, self.widen, F.silu, self.drop, self.shrink, self.drop)


# %%
class Attention(nn.Module):
    """Multi-head self-attention.

    Every head computes softmax(q k^T / sqrt(dim_head)) v with its own queries q, keys k and values v of width
    `dim_head`. The heads' results are put side by side, (heads * dim_head) numbers per token, and projected
    back to `dim`.

    Args:
        dim: The width of a token, at the entrance and at the exit.
        heads: How many heads there are.
        dim_head: The width of one head. It need not be dim / heads.
        dropout: The share of values that is dropped after the output projection in training.

    forward:
        x: Tokens, (batch, tokens, dim).
        Returns tokens, (batch, tokens, dim).
    """

    def __init__(self, dim, heads=4, dim_head=64, dropout=0.0):
        super().__init__()
        self.heads = heads
        self.dim_head = dim_head
        inner = heads * dim_head
        self.project = nn.ModuleDict({name: nn.Linear(dim, inner, bias=False) for name in ("q", "k", "v")})
        self.join = nn.Linear(inner, dim)
        self.drop = nn.Dropout(dropout)

    def forward(self, x):
        table = {
            name: layer(x).unflatten(-1, (self.heads, self.dim_head)).movedim(-2, 1)
            for name, layer in self.project.items()
        }  # each (batch, heads, tokens, dim_head)
        scores = table["q"] @ table["k"].mT / math.sqrt(self.dim_head)
        shares = F.softmax(scores, dim=-1)
        mixed = (shares @ table["v"]).movedim(1, -2).flatten(-2)
        return self.drop(self.join(mixed))


# %%
class Transformer(nn.ModuleList):
    """The encoder: `depth` blocks, each of pre-normalized attention and pre-normalized feed-forward.

    Each of the two adds to its input (a residual connection): x = x + part(x).

    Args:
        dim: The width of a token.
        depth: How many blocks there are. Each has weights of its own.
        heads, dim_head: Of the attention.
        mlp_dim: The hidden width of the feed-forward part.
        dropout: Handed on to both parts.

    forward:
        x: Tokens, (batch, tokens, dim).
        Returns tokens, (batch, tokens, dim).
    """

    def __init__(self, dim, depth, heads, dim_head, mlp_dim, dropout=0.0):
        # the encoder is the list of its 2 * depth parts: attention, feed-forward, attention, ...
        parts = []
        for _ in range(depth):
            parts.append(PreNorm(dim, Attention(dim, heads=heads, dim_head=dim_head, dropout=dropout)))
            parts.append(PreNorm(dim, FeedForward(dim, mlp_dim, dropout=dropout)))
        super().__init__(parts)

    def forward(self, x):
        for part in self:
            x = x + part(x)
        return x


# %%
class ViT(nn.Module):
    """The Vision Transformer: an image becomes a score for every class.

    Args:
        image_size: Height and width of the image, in pixels.
        patch_size: Height and width of a patch, in pixels. It must divide `image_size`.
        num_classes: How many scores there are.
        dim: The width of a token.
        depth, heads, dim_head, mlp_dim, dropout: Of the Transformer.
        pool: 'cls': the class token is classified; 'mean': the mean of all tokens is.
        channels: How many channels the image has.
        emb_dropout: The share of values that is dropped after the positions are added, in training.

    forward:
        img: Images, (batch, channels, image_size, image_size).
        Returns scores before any softmax (logits), (batch, num_classes).
    """

    def __init__(
        self,
        *,
        image_size,
        patch_size,
        num_classes,
        dim,
        depth,
        heads,
        mlp_dim,
        pool="cls",
        channels=1,
        dim_head=64,
        dropout=0.0,
        emb_dropout=0.0,
    ):
        super().__init__()
        if image_size % patch_size:
            raise ValueError(f"{patch_size=} must divide {image_size=}")
        if pool not in {"cls", "mean"}:
            raise ValueError(f"unknown {pool=}")
        self.pool = pool
        self.patch_size = patch_size
        n_tokens = (image_size // patch_size) ** 2 + 1
        self.patch_to_token = nn.Linear(channels * patch_size * patch_size, dim)
        self.class_token = nn.Parameter(torch.randn(dim) * 0.02)
        # a lookup table: row 0 is the class token's position
        self.position_table = nn.Embedding(n_tokens, dim)
        nn.init.normal_(self.position_table.weight, std=0.02)
        self.drop = nn.Dropout(emb_dropout)
        self.encoder = Transformer(dim, depth, heads, dim_head, mlp_dim, dropout)
        self.norm = nn.LayerNorm(dim)
        self.score = nn.Linear(dim, num_classes)

    def forward(self, img):
        p = self.patch_size
        patches = img.unfold(2, p, p).unfold(3, p, p)  # (batch, channels, rows, columns, p, p)
        patches = patches.movedim(1, 3).flatten(3).flatten(1, 2)  # (batch, rows * columns, channels * p * p)
        tokens = self.patch_to_token(patches)
        first = self.class_token.repeat(len(img), 1, 1)  # (batch, 1, dim)
        tokens = torch.hstack([first, tokens])
        order = torch.arange(tokens.shape[1], device=tokens.device)
        tokens = self.drop(tokens + self.position_table(order))
        tokens = self.encoder(tokens)
        pooled = tokens[:, 0, :] if self.pool == "cls" else tokens.mean(dim=1)
        return self.score(self.norm(pooled))


# %% [markdown]
# ## 4. Training and evaluation


# %%
LOG = []  # dicts; `pd.DataFrame(LOG)` is the training log


def device_of(model):
    return next(model.parameters(), torch.empty(0, device=device)).device


def train_epoch(model, optimizer, data_loader, loss_history):
    """Trains the model for one pass over the data.

    For every batch: clear the gradients, compute the scores and the loss, go backward, take one step. Every
    100 batches (the first, the 101st, ...) print how far it has got and append the loss of that batch.

    Args:
        model: The ViT. It must be in training mode.
        optimizer: Holds the model's parameters.
        data_loader: Yields (images, labels): (batch, channels, height, width) and (batch,).
        loss_history: A list; floats are appended to it.
    """
    model.train()
    to = device_of(model)
    seen = 0
    for batch, (images, labels) in enumerate(data_loader):
        images = images.to(to)
        labels = labels.to(to)
        optimizer.zero_grad(set_to_none=True)
        loss = F.cross_entropy(model(images), labels)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)  # rarely active; protects against a bad batch
        optimizer.step()
        seen += len(labels)
        if batch % 100 == 0:
            loss_history.append(loss.item())
            LOG.append({"kind": "train", "batch": batch, "images": seen, "loss": loss.item()})
            print(pd.Series(LOG[-1]).to_frame().T.to_string(index=False, header=batch == 0))


def prediction_table(model, data_loader, keep_images=False):
    """One row per image: y_true, y_pred, loss (and the image, if wanted). A single pass, in the loader's order."""
    model.eval()
    to = device_of(model)
    frames, pictures = [], []
    with torch.no_grad():
        for images, labels in data_loader:
            scores = model(images.to(to))
            losses = F.cross_entropy(scores, labels.to(to), reduction="none")
            frames.append(
                pd.DataFrame(
                    {
                        "y_true": labels.cpu().numpy(),
                        "y_pred": scores.argmax(1).cpu().numpy(),
                        "loss": losses.double().cpu().numpy(),
                    }
                )
            )
            if keep_images:
                pictures.extend(images.cpu())
    table = pd.concat(frames, ignore_index=True)
    if keep_images:
        table["image"] = pictures
    return table


def query(sql, **tables):
    """The answer of an SQL query on data frames."""
    with closing(sqlite3.connect(":memory:")) as connection:
        for name, table in tables.items():
            table.to_sql(name, connection, index_label="id")
        return pd.read_sql_query(sql, connection)


def evaluate(model, data_loader, loss_history):
    """Measures the model on data that it was not trained on.

    Appends the average loss per image to the history and prints it together with the accuracy.

    Args:
        model: The ViT. It must be in evaluation mode, and no gradients may be computed.
        data_loader: Yields (images, labels). The last batch may be smaller than the others.
        loss_history: A list; one float is appended to it.
    """
    table = prediction_table(model, data_loader)
    row = query(
        "SELECT AVG(loss) AS loss, SUM(y_true = y_pred) AS correct, COUNT(*) AS images FROM predictions",
        predictions=table,
    ).iloc[0]
    loss, correct, images = float(row["loss"]), int(row["correct"]), int(row["images"])
    loss_history.append(loss)
    LOG.append({"kind": "test", "images": images, "loss": loss, "accuracy": correct / images})
    print(f"loss {loss:.4f}, accuracy {correct / images:.4f} ({correct} of {images} images)")
    return pd.Series({"loss": loss, "correct": correct, "images": images, "accuracy": correct / images})


# %% [markdown]
# ## 5. Train, save, reload

# %%
model = ViT(
    image_size=28,
    num_classes=len(class_names),
    channels=1,
    **{
        name: cfg[name]
        for name in (
            "patch_size",
            "dim",
            "depth",
            "heads",
            "dim_head",
            "mlp_dim",
            "pool",
            "dropout",
            "emb_dropout",
        )
    },
)
model.to(device)

parameters = pd.DataFrame(
    [(name.split(".")[0], p.numel()) for name, p in model.named_parameters()], columns=["part", "parameters"]
)
print(parameters.groupby("part", sort=False).sum().T.assign(total=parameters["parameters"].sum()))

optimizer = optim.AdamW(model.parameters(), lr=cfg["lr"], weight_decay=cfg["weight_decay"])

N_EPOCHS = cfg["epochs"]

# the learning rate of each epoch is a table, too
schedule = pd.Series([cfg["lr"] * 0.5 * (1 + math.cos(math.pi * e / N_EPOCHS)) for e in range(N_EPOCHS)])

# %%
train_loss_history, test_loss_history = [], []
epochs = []
start = time.time()
for epoch, lr in schedule.items():
    print(f"Epoch {epoch + 1}/{N_EPOCHS}, lr {lr:.6f}")
    for group in optimizer.param_groups:
        group["lr"] = lr
    began = time.time()
    train_epoch(model, optimizer, train_loader, train_loss_history)
    result = evaluate(model, test_loader, test_loss_history)
    epochs.append({"epoch": epoch + 1, "lr": lr, "seconds": time.time() - began, **result})
print(f"Training took {time.time() - start:.1f} s.")

training_log = pd.DataFrame(epochs).set_index("epoch")
training_log.to_csv("training_log.csv")
print(training_log.tail(10).round(4).to_string())
print(pd.DataFrame(LOG).groupby("kind")["loss"].describe().round(3).to_string())

# %%
torch.save(model.state_dict(), f"{STUDENT_ID}.pth")
torch.save(model.state_dict(), f"{STUDENT_ID}_Lab8_Homework.pth")
model.load_state_dict(torch.load(f"{STUDENT_ID}.pth", map_location=device, weights_only=True))
evaluate(model, test_loader, [])

# %%
training_log[["loss", "accuracy"]].plot(subplots=True, figsize=(7, 5), grid=True, title="Test images")
plt.show()

# %% [markdown]
# ## 6. What has it learned?


# %%
def plot_confusion_matrix(model, data_loader, class_names):
    """Draws how often each true class (rows) was taken for each class (columns), with the counts written in.

    Args:
        model: The trained ViT.
        data_loader: Yields (images, labels).
        class_names: The names, in the order of the labels. They are written on both axes.
    """
    table = prediction_table(model, data_loader)
    codes = range(len(class_names))
    # crosstab leaves out what never occurs, reindex puts it back
    counts = pd.crosstab(table["y_true"], table["y_pred"]).reindex(index=codes, columns=codes, fill_value=0)
    counts.index = pd.Index(class_names, name="true class")
    counts.columns = pd.Index(class_names, name="predicted class")
    print(counts.to_string())

    plt.figure(figsize=(7.5, 6.5))
    sns.heatmap(counts, annot=True, fmt="d", cmap="rocket_r", square=True)
    plt.yticks(rotation=0)
    plt.title(f"{(table['y_true'] == table['y_pred']).mean():.1%} of {len(table)} images are right")
    plt.tight_layout()
    plt.show()
    return counts


def plot_classwise_predictions(model, data_loader, class_names, samples_per_class=4):
    """Draws examples of every class with the true and the predicted label on each image.

    Args:
        model: The trained ViT.
        data_loader: Yields (images, labels).
        class_names: The names, in the order of the labels.
        samples_per_class: How many images of each true class are drawn (4 of 6 classes: 24 images).
    """
    table = prediction_table(model, data_loader, keep_images=True)
    chosen = table.groupby("y_true").head(samples_per_class).copy()
    chosen["column"] = chosen.groupby("y_true").cumcount()

    fig, axes = plt.subplots(
        len(class_names), samples_per_class, figsize=(2.5 * samples_per_class, 2.5 * len(class_names)), squeeze=False
    )
    for ax in axes.ravel():
        ax.axis("off")
    for row in chosen.itertuples():
        ax = axes[row.y_true, row.column]
        picture = (row.image * 0.5 + 0.5).clamp(0, 1)
        ax.imshow(picture[0] if len(picture) == 1 else picture.movedim(0, -1), cmap="gray", vmin=0, vmax=1)
        ax.set_title(
            f"{class_names[row.y_true]}\n-> {class_names[row.y_pred]}",
            fontsize=8,
            color="black" if row.y_true == row.y_pred else "red",
        )
    fig.suptitle("true class -> predicted class (red: wrong)")
    fig.tight_layout()
    plt.show()


# %%
plot_confusion_matrix(model, test_loader, class_names)
plot_classwise_predictions(model, test_loader, class_names)

# %%
# recall, precision and what each class is mostly taken for
predictions = prediction_table(model, test_loader)
report = query(
    """
    SELECT y_true, COUNT(*) AS images, AVG(y_true = y_pred) AS recall, AVG(loss) AS loss
    FROM predictions GROUP BY y_true ORDER BY recall
    """,
    predictions=predictions,
)
report.insert(0, "class", report.pop("y_true").map(dict(enumerate(class_names))))
print(report.round(3).to_string(index=False))
