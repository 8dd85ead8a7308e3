# %% [markdown]
# # Vision Transformer for steel surface defects

# %%
import os
import random
import shutil
import time
import zipfile
import math
from pathlib import Path

import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F
from torch import nn, optim
from torchvision import datasets, transforms

STUDENT_ID = "400101200"

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(42)

# %% [markdown]
# ## 1. The data: unzip and split
#
# `dataset.zip` must lie beside this file. It holds one folder of images per class. 70 % of each class are for
# training and 30 % for testing. The names are sorted before they are shuffled with a fixed seed, so the split
# is the same on every machine.

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

# %%
def prepare_files():
    with zipfile.ZipFile("dataset.zip") as archive:
        archive.extractall("dataset")
    split_dataset(find_class_folders(Path("dataset")), Path("data"))

# %% [markdown]
# ## 2. The images as two tensors
#
# 1,800 images of 28 x 28 pixels are a few megabytes. They are decoded once; after that an epoch only shuffles
# and slices. `TensorBatches` takes the place of a DataLoader.

# %%
transform = transforms.Compose(
    [
        transforms.Resize((28, 28)),
        transforms.Grayscale(num_output_channels=1),
        transforms.ToTensor(),
        transforms.Normalize((0.5,), (0.5,)),
    ]
)
BATCH_SIZE = 32


def decode(dataset):
    images = torch.stack([image for image, _ in dataset])
    return images.to(device), torch.tensor(dataset.targets, device=device)


class TensorBatches:
    """Batches of (images, labels), newly shuffled and varied each time that they are gone through.

    Args:
        images, labels: All of them, on the device where they are needed.
        batch_size: The last batch may be smaller.
        generator: Draws order, flips and shifts; None: in order and as they are.
    """

    def __init__(self, images, labels, batch_size, generator=None):
        self.images, self.labels = images, labels
        self.batch_size, self.generator = batch_size, generator

    def __len__(self):
        return math.ceil(len(self.images) / self.batch_size)

    def __iter__(self):
        count = len(self.images)
        if self.generator is None:
            order = torch.arange(count)
        else:
            order = torch.randperm(count, generator=self.generator)
        for rows in order.split(self.batch_size):
            rows = rows.to(self.images.device)
            images = self.images[rows]
            yield (images if self.generator is None else self.varied(images)), self.labels[rows]

    def varied(self, images):
        """Each image is flipped or not in both directions; the batch is shifted by up to two pixels."""
        for axis in (2, 3):
            flip = torch.rand(len(images), 1, 1, 1, generator=self.generator) < 0.5
            images = torch.where(flip.to(images.device), images.flip(axis), images)
        down, across = torch.randint(0, 5, (2,), generator=self.generator).tolist()
        padded = F.pad(images, (2, 2, 2, 2), mode="reflect")
        return padded[:, :, down : down + 28, across : across + 28]

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

# %% [markdown]
# ## 3. The model
#
# The image is cut into patches that do not overlap; each patch becomes a token; a learnable class token is
# put in front and learnable positions are added; a stack of encoder blocks follows; the class token (or the
# mean of all tokens) is classified. Write every part yourself: `nn.Linear`, `nn.LayerNorm`, `nn.Dropout`,
# `nn.Conv2d` and einops are fine; `nn.MultiheadAttention`, `nn.Transformer*` and ready-made ViTs are not.

# %%
class PreNorm(nn.Module):
    """Layer normalization, then another module."""

    def __init__(self, dim, fn):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.fn = fn

    def forward(self, x, **kwargs):
        return self.fn(self.norm(x), **kwargs)

# %%
class FeedForward(nn.Module):
    """Two linear layers with a nonlinearity between them, applied to each token by itself."""

    def __init__(self, dim, hidden_dim, dropout=0.0):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(dim, hidden_dim),
            nn.GELU(),
            nn.Dropout(dropout),
            nn.Linear(hidden_dim, dim),
            nn.Dropout(dropout),
        )

    def forward(self, x):
        return self.net(x)

# %%
class Attention(nn.Module):
    """Multi-head self-attention."""

    def __init__(self, dim, heads=4, dim_head=64, dropout=0.0):
        super().__init__()
        self.heads, self.dim_head = heads, dim_head
        self.to_q = nn.Linear(dim, heads * dim_head)
        self.to_k = nn.Linear(dim, heads * dim_head)
        self.to_v = nn.Linear(dim, heads * dim_head)
        self.to_out = nn.Linear(heads * dim_head, dim)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        batch, tokens, _ = x.shape

        def split(t):
            return t.view(batch, tokens, self.heads, self.dim_head).transpose(1, 2)  # (b, h, n, d)

        q, k, v = split(self.to_q(x)), split(self.to_k(x)), split(self.to_v(x))
        scores = torch.matmul(q, k.transpose(2, 3)) / math.sqrt(self.dim_head)  # (b, h, n, n)
        weights = F.softmax(scores, dim=-1)
        mixed = torch.matmul(weights, v).transpose(1, 2).reshape(batch, tokens, -1)
        return self.dropout(self.to_out(mixed))

# %%
class Transformer(nn.Module):
    """The encoder: `depth` blocks, each of pre-normalized attention and pre-normalized feed-forward."""

    def __init__(self, dim, depth, heads, dim_head, mlp_dim, dropout=0.0):
        super().__init__()
        parts = []
        for _ in range(depth):
            parts.append(PreNorm(dim, Attention(dim, heads, dim_head, dropout)))
            parts.append(PreNorm(dim, FeedForward(dim, mlp_dim, dropout)))
        self.parts = nn.ModuleList(parts)

    def forward(self, x):
        for part in self.parts:
            x = x + part(x)
        return x

# %%
class ViT(nn.Module):
    """The Vision Transformer: an image becomes a score for every class."""

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
            raise ValueError("patch_size must divide image_size")
        if pool not in ("cls", "mean"):
            raise ValueError("pool is 'cls' or 'mean'")
        self.pool = pool
        self.patchify = nn.Conv2d(channels, dim, kernel_size=patch_size, stride=patch_size)
        self.cls_token = nn.Parameter(torch.zeros(1, 1, dim))
        self.positions = nn.Parameter(torch.zeros(1, (image_size // patch_size) ** 2 + 1, dim))
        nn.init.trunc_normal_(self.cls_token, std=0.02)
        nn.init.trunc_normal_(self.positions, std=0.02)
        self.dropout = nn.Dropout(emb_dropout)
        self.encoder = Transformer(dim, depth, heads, dim_head, mlp_dim, dropout)
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, num_classes)

    def forward(self, img):
        tokens = self.patchify(img).flatten(2).transpose(1, 2)  # (b, patches, dim)
        tokens = torch.cat([self.cls_token.expand(len(tokens), -1, -1), tokens], dim=1)
        tokens = self.encoder(self.dropout(tokens + self.positions))
        pooled = tokens[:, 0] if self.pool == "cls" else tokens.mean(dim=1)
        return self.head(self.norm(pooled))

# %% [markdown]
# ## 4. Training and evaluation
#
# A manual loop: no trainer library.

# %%
def train_epoch(model, optimizer, data_loader, loss_history):
    """Trains the model for one pass over the data."""
    model.train()
    device = next(model.parameters()).device
    for batch_index, (images, labels) in enumerate(data_loader):
        images, labels = images.to(device), labels.to(device)
        optimizer.zero_grad()
        loss = F.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        if batch_index % 100 == 0:
            print(f"  batch {batch_index + 1}/{len(data_loader)}: loss {loss.item():.4f}")
            loss_history.append(loss.item())

# %%
def evaluate(model, data_loader, loss_history):
    """Measures the model on data that it was not trained on."""
    model.eval()
    device = next(model.parameters()).device
    total, correct, seen = 0.0, 0, 0
    with torch.no_grad():
        for images, labels in data_loader:
            images, labels = images.to(device), labels.to(device)
            scores = model(images)
            total += F.cross_entropy(scores, labels, reduction="sum").item()
            correct += (scores.argmax(dim=1) == labels).sum().item()
            seen += len(labels)
    loss_history.append(total / seen)
    print(f"  average loss {total / seen:.4f}, accuracy {correct}/{seen} ({100 * correct / seen:.2f} %)")

# %% [markdown]
# ## 5. Train, save, reload
#
# After every epoch a checkpoint is written. If the script is stopped and started again, it goes on where it
# was; a checkpoint of other settings or of other images is ignored.

# %%
N_EPOCHS = 15
LEARNING_RATE = 1.5e-3
WEIGHT_DECAY = 0.05
MODEL_ARGUMENTS = dict(
    image_size=28, patch_size=4, num_classes=6, channels=1, dim=64, depth=4, heads=4, mlp_dim=128, pool="mean",
    dim_head=16, dropout=0.1,
)
CHECKPOINT = Path("checkpoints/last.pt")


def fingerprint(labels, images):
    return {
        "epochs": N_EPOCHS, "rate": LEARNING_RATE, "decay": WEIGHT_DECAY, "batch": BATCH_SIZE,
        "images": len(labels), "sum": round(images.double().sum().item(), 3), **MODEL_ARGUMENTS,
    }


def save_checkpoint(settings, epoch, state, histories, generator):
    CHECKPOINT.parent.mkdir(exist_ok=True)
    content = {name: part.state_dict() for name, part in state.items()}
    content |= {"settings": settings, "epoch": epoch, "histories": histories}
    content |= {"batches": generator.get_state(), "dropout": torch.get_rng_state()}
    half_written = CHECKPOINT.with_suffix(".tmp")
    torch.save(content, half_written)
    os.replace(half_written, CHECKPOINT)  # there is never half a checkpoint under this name


def load_checkpoint(settings, state, generator):
    """(epochs done, histories): as saved, or (0, empty ones)."""
    if CHECKPOINT.exists():
        content = torch.load(CHECKPOINT, map_location="cpu", weights_only=True)
        if content["settings"] == settings:
            for name, part in state.items():
                part.load_state_dict(content[name])
            generator.set_state(content["batches"])
            torch.set_rng_state(content["dropout"])
            print(f"Going on after epoch {content['epoch']}.")
            return content["epoch"], content["histories"]
        print("There is a checkpoint of another training; it is ignored.")
    return 0, {"train": [], "test": []}


def train_model(train_images, train_labels, test_batches):
    generator = torch.Generator().manual_seed(42)
    train_batches = TensorBatches(train_images, train_labels, BATCH_SIZE, generator)
    torch.manual_seed(42)
    model = ViT(**MODEL_ARGUMENTS).to(device)
    print(f"The model has {sum(p.numel() for p in model.parameters() if p.requires_grad):,} parameters.")
    optimizer = optim.AdamW(model.parameters(), lr=LEARNING_RATE, weight_decay=WEIGHT_DECAY)
    scheduler = optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=N_EPOCHS)

    state = {"model": model, "optimizer": optimizer, "scheduler": scheduler}
    settings = fingerprint(train_labels, train_images)
    done, histories = load_checkpoint(settings, state, generator)
    start = time.time()
    for epoch in range(done + 1, N_EPOCHS + 1):
        print(f"Epoch {epoch}/{N_EPOCHS}")
        train_epoch(model, optimizer, train_batches, histories["train"])
        evaluate(model, test_batches, histories["test"])
        scheduler.step()
        save_checkpoint(settings, epoch, state, histories, generator)
    print(f"Training took {time.time() - start:.1f} s.")
    return model, histories


def save_and_reload(model, test_batches):
    torch.save(model.state_dict(), f"{STUDENT_ID}.pth")
    torch.save(model.state_dict(), f"{STUDENT_ID}_Lab8_Homework.pth")
    model.load_state_dict(torch.load(f"{STUDENT_ID}.pth", map_location=device, weights_only=True))
    evaluate(model, test_batches, [])


def plot_curves(histories):
    plt.figure(figsize=(7, 4))
    plt.plot(histories["train"], marker=".", label="training loss (every 100 batches)")
    plt.plot(histories["test"], marker=".", label="test loss (every epoch)")
    plt.xlabel("entry")
    plt.ylabel("cross-entropy")
    plt.legend()
    plt.show()

# %% [markdown]
# ## 6. What has it learned?

# %%
def plot_confusion_matrix(model, data_loader, class_names):
    """Draws how often each true class (rows) was taken for each class (columns), with the counts written in."""
    model.eval()
    device = next(model.parameters()).device
    n = len(class_names)
    counts = torch.zeros(n, n, dtype=torch.long)
    with torch.no_grad():
        for images, labels in data_loader:
            predictions = model(images.to(device)).argmax(1).cpu()
            for t, p in zip(labels.tolist(), predictions.tolist(), strict=True):
                counts[t, p] += 1
    fig, ax = plt.subplots(figsize=(7, 6))
    picture = ax.imshow(counts.numpy(), cmap="viridis")
    fig.colorbar(picture, ax=ax)
    ax.set_xticks(range(n), class_names, rotation=45, ha="right")
    ax.set_yticks(range(n), class_names)
    for t in range(n):
        for p in range(n):
            ink = "black" if counts[t, p] > counts.max() / 2 else "white"
            ax.text(p, t, str(counts[t, p].item()), ha="center", va="center", color=ink)
    ax.set(xlabel="Predicted", ylabel="True", title="Confusion matrix")
    fig.tight_layout()
    plt.show()

# %%
def plot_classwise_predictions(model, data_loader, class_names, samples_per_class=4):
    """Draws examples of every class with the true and the predicted label on each image."""
    model.eval()
    device = next(model.parameters()).device
    found = {label: [] for label in range(len(class_names))}
    with torch.no_grad():
        for images, labels in data_loader:
            predictions = model(images.to(device)).argmax(dim=1).cpu()
            for image, label, prediction in zip(images, labels.tolist(), predictions.tolist(), strict=True):
                if len(found[label]) < samples_per_class:
                    found[label].append((image, prediction))
            if all(len(examples) == samples_per_class for examples in found.values()):
                break
    fig, axes = plt.subplots(
        len(class_names), samples_per_class, figsize=(2.6 * samples_per_class, 2.6 * len(class_names)), squeeze=False
    )
    for label, row in enumerate(axes):
        for ax in row:
            ax.axis("off")
        for ax, (image, prediction) in zip(row, found[label], strict=False):
            ax.imshow((image.cpu().squeeze(0) * 0.5 + 0.5).clamp(0, 1), cmap="gray", vmin=0, vmax=1)
            ax.set_title(
                f"true: {class_names[label]}\npredicted: {class_names[prediction]}",
                fontsize=8,
                color="green" if prediction == label else "red",
            )
    fig.tight_layout()
    plt.show()

# %%
if __name__ == "__main__":
    prepare_files()
    train_set = datasets.ImageFolder("data/train", transform=transform)
    test_set = datasets.ImageFolder("data/test", transform=transform)
    class_names = train_set.classes
    print(f"{len(train_set)} training images, {len(test_set)} test images, classes: {class_names}")
    show_samples(train_set, "Training images")
    show_samples(test_set, "Test images")

    train_images, train_labels = decode(train_set)
    test_loader = TensorBatches(*decode(test_set), 256)
    model, histories = train_model(train_images, train_labels, test_loader)
    save_and_reload(model, test_loader)
    plot_curves(histories)
    plot_confusion_matrix(model, test_loader, class_names)
    plot_classwise_predictions(model, test_loader, class_names)
