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

STUDENT_ID = "400113200"

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
    """Normalizes the tokens and hands them to fn."""

    def __init__(self, dim, fn):
        super().__init__()
        self.ln = nn.LayerNorm(dim)
        self.f = fn

    def forward(self, x, **kwargs):
        return self.f(self.ln(x), **kwargs)


# %%
class FeedForward(nn.Module):
    """Linear, GELU, dropout, linear, dropout."""

    def __init__(self, dim, hidden_dim, dropout=0.0):
        super().__init__()
        self.up = nn.Sequential(nn.Linear(dim, hidden_dim), nn.GELU(), nn.Dropout(dropout))
        self.down = nn.Sequential(nn.Linear(hidden_dim, dim), nn.Dropout(dropout))

    def forward(self, x):
        return self.down(self.up(x))


# %%
class Attention(nn.Module):
    """Scaled dot-product attention with several heads."""

    def __init__(self, dim, heads=4, dim_head=64, dropout=0.0):
        super().__init__()
        self.heads = heads
        self.head_dim = dim // heads  # every head gets its share of the token
        width = self.heads * self.head_dim
        self.qkv = nn.Linear(dim, 3 * width, bias=False)
        self.project = nn.Linear(width, dim)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        B, T, _ = x.shape
        qkv = self.qkv(x).view(B, T, 3, self.heads, self.head_dim)
        q, k, v = qkv.unbind(dim=2)  # (B, T, heads, head_dim) each
        q, k, v = q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2)
        scores = (q @ k.transpose(-2, -1)) / (self.head_dim**0.5)
        out = scores.softmax(dim=-1) @ v
        out = out.transpose(1, 2).contiguous().view(B, T, -1)
        return self.dropout(self.project(out))


# %%
class Transformer(nn.Module):
    """A stack of encoder blocks."""

    def __init__(self, dim, depth, heads, dim_head, mlp_dim, dropout=0.0):
        super().__init__()
        self.layers = nn.ModuleList(self.make_block(dim, heads, dim_head, mlp_dim, dropout) for _ in range(depth))

    @staticmethod
    def make_block(dim, heads, dim_head, mlp_dim, dropout):
        attention = PreNorm(dim, Attention(dim, heads=heads, dim_head=dim_head, dropout=dropout))
        feed_forward = PreNorm(dim, FeedForward(dim, mlp_dim, dropout=dropout))
        return nn.ModuleList([attention, feed_forward])

    def forward(self, x):
        for attention, feed_forward in self.layers:
            x = x + attention(x)
            x = x + feed_forward(x)
        return x


# %%
class ViT(nn.Module):
    """The whole model."""

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
        assert image_size % patch_size == 0, "image_size must be a multiple of patch_size"
        assert pool in ["cls", "mean"], "pool must be cls or mean"
        self.pool = pool
        per_side = image_size // patch_size
        self.to_patches = Rearrange("b c (y p) (x q) -> b (y x) (c p q)", p=patch_size, q=patch_size)
        self.to_tokens = nn.Linear(channels * patch_size**2, dim)
        self.cls_token = nn.Parameter(torch.randn(1, 1, dim) * 0.02)
        self.pos_patches = nn.Parameter(torch.randn(1, per_side**2, dim) * 0.02)
        self.pos_cls = nn.Parameter(torch.randn(1, 1, dim) * 0.02)
        self.dropout = nn.Dropout(emb_dropout)
        self.transformer = Transformer(dim, depth, heads, dim_head, mlp_dim, dropout)
        self.norm = nn.LayerNorm(dim)
        self.to_scores = nn.Linear(dim, num_classes)

    def forward(self, img):
        patches = self.to_tokens(self.to_patches(img)) + self.pos_patches
        cls = (self.cls_token + self.pos_cls).expand(img.shape[0], -1, -1)
        x = torch.cat([cls, patches], dim=1)
        x = self.transformer(self.dropout(x))
        x = {"cls": x[:, 0], "mean": x.mean(dim=1)}[self.pool]
        return self.to_scores(self.norm(x))


# %% [markdown]
# ## 4. Training and evaluation
#
# A manual loop: no trainer library.


# %%
def train_epoch(model, optimizer, data_loader, loss_history):
    """One pass over the training images."""
    model.train()
    criterion = nn.CrossEntropyLoss()
    seen = 0
    for batch, (X, y) in enumerate(data_loader):
        X, y = X.to(device), y.to(device)
        pred = model(X)
        loss = criterion(pred, y)

        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

        seen += len(y)
        if batch % 100 == 0:
            loss_history.append(loss.item())
            print(f"loss: {loss.item():>7f}  [{seen:>5d}/{len(data_loader.dataset):>5d}]")


# %%
def evaluate(model, data_loader, loss_history):
    """Loss and accuracy on the test images."""
    model.eval()
    criterion = nn.CrossEntropyLoss()
    size = 0
    test_loss, correct = 0.0, 0
    with torch.no_grad():
        for X, y in data_loader:
            X, y = X.to(device), y.to(device)
            pred = model(X)
            test_loss += criterion(pred, y).item() * len(y)
            correct += (pred.argmax(1) == y).type(torch.float).sum().item()
            size += len(y)
    test_loss /= size
    loss_history.append(test_loss)
    print(f"Test: accuracy: {100 * correct / size:>0.1f}%, average loss: {test_loss:>8f}")


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
    """Rows: true class; columns: predicted class."""
    model.eval()
    size = len(class_names)
    table = torch.zeros((size, size), dtype=torch.int)
    with torch.no_grad():
        for X, y in data_loader:
            guess = model(X.to(device)).argmax(1).cpu()
            for i in range(len(y)):
                table[y[i], guess[i]] += 1
    fig, ax = plt.subplots(figsize=(8, 7))
    sns.heatmap(
        table.numpy(),
        annot=True,
        fmt="d",
        linewidths=0.5,
        cmap="crest",
        xticklabels=class_names,
        yticklabels=class_names,
        ax=ax,
    )
    ax.set_title("Confusion matrix")
    ax.set_xlabel("Predicted")
    ax.set_ylabel("True")
    plt.tight_layout()
    plt.show()


# %%
def plot_classwise_predictions(model, data_loader, class_names, samples_per_class=4):
    """A row of images for each class."""
    model.eval()
    wanted = {name: [] for name in class_names}
    with torch.no_grad():
        for X, y in data_loader:
            guess = model(X.to(device)).argmax(1).cpu()
            for i in range(len(y)):
                row = wanted[class_names[y[i].item()]]
                if len(row) < samples_per_class:
                    row.append((X[i, 0] * 0.5 + 0.5, class_names[guess[i].item()]))

    fig, axes = plt.subplots(
        len(class_names), samples_per_class, figsize=(2.5 * samples_per_class, 2.6 * len(class_names)), squeeze=False
    )
    for r, (name, row) in enumerate(wanted.items()):
        for c in range(samples_per_class):
            axes[r, c].axis("off")
            if c < len(row):
                image, guessed = row[c]
                axes[r, c].imshow(image, cmap="gray", vmin=0, vmax=1)
                axes[r, c].set_title(
                    f"True: {name}\nPredicted: {guessed}", fontsize=8, color="green" if name == guessed else "red"
                )
    plt.tight_layout()
    plt.show()


# %%
plot_confusion_matrix(model, test_loader, class_names)
plot_classwise_predictions(model, test_loader, class_names)
