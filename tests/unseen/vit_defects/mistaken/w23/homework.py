# %% [markdown]
# # Vision Transformer for steel surface defects
#
# You build a Vision Transformer (ViT) from scratch, train it on images of six kinds of defects on hot-rolled
# steel, and examine what it has learned. Every part that you write says `TODO`: read its docstring, replace
# the line `raise NotImplementedError(...)` by your code, and run `pytest` in this folder to see how far
# you are.
#
# Names and arguments of the classes and functions are fixed. All numbers (architecture, optimizer, batch
# size, transform, epochs) are yours to tune.

# %%
import random
import shutil
import time
import zipfile
from pathlib import Path

import matplotlib.pyplot as plt
import seaborn as sns
import torch
import torch.nn.functional as F
from einops import rearrange, repeat
from einops.layers.torch import Rearrange
from sklearn.metrics import confusion_matrix
from torch import nn, optim
from torch.utils.data import DataLoader
from torchvision import datasets, transforms

STUDENT_ID = "400113231"  # put your own student number here

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


with zipfile.ZipFile("dataset.zip") as archive:
    archive.extractall("dataset")
split_dataset(find_class_folders(Path("dataset")), Path("data"))

# %% [markdown]
# ## 2. Data sets, loaders and a first look
#
# 28 x 28 pixels, one gray channel, values between -1 and 1.

# %%
transform = transforms.Compose(
    [
        transforms.Resize((28, 28)),
        transforms.Grayscale(num_output_channels=1),
        transforms.ToTensor(),
        transforms.Normalize((0.5,), (0.5,)),
    ]
)
BATCH_SIZE = 64

train_set = datasets.ImageFolder("data/train", transform=transform)
test_set = datasets.ImageFolder("data/test", transform=transform)
train_loader = DataLoader(train_set, batch_size=BATCH_SIZE, shuffle=True)
test_loader = DataLoader(test_set, batch_size=BATCH_SIZE, shuffle=False)
class_names = train_set.classes
print(f"{len(train_set)} training images, {len(test_set)} test images, classes: {class_names}")


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
#
# The image is cut into patches that do not overlap; each patch becomes a token; a learnable class token is
# put in front and learnable positions are added; a stack of encoder blocks follows; the class token (or the
# mean of all tokens) is classified. Write every part yourself: `nn.Linear`, `nn.LayerNorm`, `nn.Dropout`,
# `nn.Conv2d` and einops are fine; `nn.MultiheadAttention`, `nn.Transformer*` and ready-made ViTs are not.


# %%
class PreNorm(nn.Module):
    """Layer normalization, then `fn`."""

    def __init__(self, dim: int, fn: nn.Module):
        super().__init__()
        self.fn = fn
        self.layer_norm = nn.LayerNorm(dim)

    def forward(self, x: torch.Tensor, **kwargs) -> torch.Tensor:
        normalized = self.layer_norm(x)
        return self.fn(normalized, **kwargs)


# %%
class FeedForward(nn.Module):
    """Position-wise MLP."""

    def __init__(self, dim: int, hidden_dim: int, dropout: float = 0.0):
        super().__init__()
        self.expand = nn.Linear(dim, hidden_dim)
        self.contract = nn.Linear(hidden_dim, dim)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = self.dropout(F.gelu(self.expand(x)))
        return self.dropout(self.contract(hidden))


# %%
class Attention(nn.Module):
    """Multi-head self-attention with einsum."""

    def __init__(self, dim: int, heads: int = 4, dim_head: int = 64, dropout: float = 0.0):
        super().__init__()
        self.heads = heads
        self.scale = 1 / dim**0.5
        self.qkv_projection = nn.Linear(dim, 3 * heads * dim_head, bias=False)
        self.output_projection = nn.Linear(heads * dim_head, dim)
        self.output_dropout = nn.Dropout(dropout)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = rearrange(self.qkv_projection(x), "b n (three h d) -> three b h n d", three=3, h=self.heads)
        similarity = torch.einsum("bhid,bhjd->bhij", q, k) * self.scale
        attention = torch.softmax(similarity, dim=-1)
        out = torch.einsum("bhij,bhjd->bhid", attention, v)
        out = rearrange(out, "b h n d -> b n (h d)")
        return self.output_dropout(self.output_projection(out))


# %%
class EncoderBlock(nn.Module):
    """One block: attention and MLP, each with pre-normalization and a residual connection."""

    def __init__(self, dim, heads, dim_head, mlp_dim, dropout):
        super().__init__()
        self.attention = PreNorm(dim, Attention(dim, heads, dim_head, dropout))
        self.mlp = PreNorm(dim, FeedForward(dim, mlp_dim, dropout))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(x)
        return x + self.mlp(x)


class Transformer(nn.Module):
    """A stack of `depth` encoder blocks."""

    def __init__(self, dim, depth, heads, dim_head, mlp_dim, dropout=0.0):
        super().__init__()
        self.blocks = nn.Sequential(
            *(EncoderBlock(dim, heads, dim_head, mlp_dim, dropout) for _ in range(depth))
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.blocks(x)


# %%
class ViT(nn.Module):
    """Vision Transformer."""

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
        if pool not in {"cls", "mean"}:
            raise ValueError(f"unknown pool: {pool!r}")
        patches_per_side, rest = divmod(image_size, patch_size)
        if rest:
            raise ValueError("patch_size must divide image_size")

        self.patch_size = patch_size
        self.pool = pool
        self.patch_projection = nn.Linear(channels * patch_size * patch_size, dim)
        self.class_token = nn.Parameter(torch.zeros(dim))
        self.positions = nn.Parameter(torch.empty(patches_per_side**2 + 1, dim))
        nn.init.trunc_normal_(self.class_token, std=0.02)
        nn.init.trunc_normal_(self.positions, std=0.02)
        self.embedding_dropout = nn.Dropout(emb_dropout)
        self.transformer = Transformer(dim, depth, heads, dim_head, mlp_dim, dropout)
        self.head = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, num_classes))

    def forward(self, img: torch.Tensor) -> torch.Tensor:
        patches = rearrange(
            img, "b c (h p) (w q) -> b (h w) (c p q)", p=self.patch_size, q=self.patch_size
        )
        tokens = self.patch_projection(patches)
        class_tokens = repeat(self.class_token, "d -> b 1 d", b=len(img))
        tokens = torch.cat([class_tokens, tokens], dim=1) + self.positions
        tokens = self.transformer(self.embedding_dropout(tokens))
        pooled = tokens[:, 0] if self.pool == "cls" else tokens.mean(dim=1)
        return self.head(pooled)

# %% [markdown]
# ## 4. Training and evaluation
#
# A manual loop: no trainer library.


# %%
def train_epoch(model, optimizer, data_loader, loss_history):
    """One pass over the training data."""
    model.train()
    dev = next(model.parameters()).device
    for batch_index, (images, labels) in enumerate(data_loader):
        images, labels = images.to(dev), labels.to(dev)

        optimizer.zero_grad(set_to_none=True)
        scores = model(images)
        loss = F.cross_entropy(scores, labels)
        loss.backward()
        optimizer.step()

        if batch_index % 100 == 0:
            value = loss.item()
            loss_history.append(value)
            print(f"  batch {batch_index + 1:4d}: loss {value:.4f}")


# %%
def predict(model, data_loader):
    """Scores and labels of all images, on the CPU, with the model in evaluation mode."""
    model.eval()
    dev = next(model.parameters()).device
    scores, labels = [], []
    with torch.no_grad():
        for images, batch_labels in data_loader:
            scores.append(model(images.to(dev)).cpu())
            labels.append(batch_labels.cpu())
    return torch.cat(scores), torch.cat(labels)


def evaluate(model, data_loader, loss_history):
    """Average loss per image and accuracy."""
    scores, labels = predict(model, data_loader)
    average_loss = F.cross_entropy(scores, labels).item()
    correct = (scores.argmax(dim=-1) == labels).sum().item()
    loss_history.append(average_loss)
    print(f"  test loss {average_loss:.4f}, accuracy {correct / len(labels):.2%} ({correct} of {len(labels)})")

# %% [markdown]
# ## 5. Train, save, reload
#
# These are the numbers to tune: the arguments of `ViT`, the optimizer, the batch size, the transform and the
# number of epochs. Write down what you tried and what came of it (question 7). The assignment asks for at
# least 60 % accuracy on the test images.

# %%
model = ViT(image_size=28, patch_size=4, num_classes=6, channels=1, dim=64, depth=6, heads=4, mlp_dim=128)
model.to(device)
print(f"The model has {sum(p.numel() for p in model.parameters() if p.requires_grad):,} parameters.")

optimizer = optim.Adam(model.parameters(), lr=0.003)

N_EPOCHS = 1

# %%
train_loss_history, test_loss_history = [], []
start = time.time()
for epoch in range(1, N_EPOCHS + 1):
    print(f"Epoch {epoch}/{N_EPOCHS}")
    train_epoch(model, optimizer, train_loader, train_loss_history)
    evaluate(model, test_loader, test_loss_history)
print(f"Training took {time.time() - start:.1f} s.")

# %% [markdown]
# Save the weights and read them back. The second file is the one to hand in: it must belong to the model
# above.

# %%
torch.save(model.state_dict(), f"{STUDENT_ID}.pth")
torch.save(model.state_dict(), f"{STUDENT_ID}_Lab8_Homework.pth")
model.load_state_dict(torch.load(f"{STUDENT_ID}.pth", map_location=device, weights_only=True))
evaluate(model, test_loader, [])

# %%
plt.figure(figsize=(7, 4))
plt.plot(train_loss_history, marker=".", label="training loss (every 100 batches)")
plt.plot(test_loss_history, marker=".", label="test loss (every epoch)")
plt.xlabel("entry")
plt.ylabel("cross-entropy")
plt.legend()
plt.show()

# %% [markdown]
# ## 6. What has it learned?


# %%
def plot_confusion_matrix(model, data_loader, class_names):
    """Rows: true classes, columns: predicted classes."""
    scores, labels = predict(model, data_loader)
    counts = confusion_matrix(labels, scores.argmax(dim=-1), labels=range(len(class_names)))
    fig, ax = plt.subplots(figsize=(8, 7))
    sns.heatmap(
        counts,
        annot=True,
        fmt="d",
        square=True,
        cmap="rocket_r",
        xticklabels=class_names,
        yticklabels=class_names,
        ax=ax,
    )
    ax.set(xlabel="predicted", ylabel="true", title="Confusion matrix on the test images")
    fig.tight_layout()
    plt.show()


# %%
def plot_classwise_predictions(model, data_loader, class_names, samples_per_class=4):
    """A row of examples for each class."""
    model.eval()
    dev = next(model.parameters()).device
    examples = {label: [] for label in range(len(class_names))}
    with torch.no_grad():
        for images, labels in data_loader:
            predictions = model(images.to(dev)).argmax(dim=-1).cpu()
            for image, label, prediction in zip(images, labels, predictions, strict=True):
                row = examples[int(label)]
                if len(row) < samples_per_class:
                    row.append((image.cpu(), int(prediction)))

    fig, axes = plt.subplots(
        len(class_names), samples_per_class, figsize=(2 * samples_per_class, 2.3 * len(class_names)), squeeze=False
    )
    for ax in axes.flat:
        ax.set_axis_off()
    for label, row in examples.items():
        for column, (image, prediction) in enumerate(row):
            ax = axes[label, column]
            ax.imshow((image * 0.5 + 0.5).clamp(0, 1).permute(1, 2, 0), cmap="gray", vmin=0, vmax=1)
            ax.set_title(
                f"true: {class_names[label]}\npredicted: {class_names[prediction]}",
                fontsize=7,
                color="darkgreen" if label == prediction else "crimson",
            )
    fig.tight_layout()
    plt.show()


# %%
plot_confusion_matrix(model, test_loader, class_names)
plot_classwise_predictions(model, test_loader, class_names)
