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

STUDENT_ID = "400114186"  # put your own student number here

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
    def __init__(self, dim, fn):
        super().__init__()
        self.net = fn
        self.ln = nn.LayerNorm(dim)

    def forward(self, x, **kwargs):
        return self.net(self.ln(x), **kwargs)


# %%
class FeedForward(nn.Module):
    def __init__(self, dim, hidden_dim, dropout=0.0):
        super().__init__()
        self.expand = nn.Sequential(nn.Linear(dim, hidden_dim), nn.GELU(), nn.Dropout(dropout))
        self.contract = nn.Sequential(nn.Linear(hidden_dim, dim), nn.Dropout(dropout))

    def forward(self, x):
        return self.contract(self.expand(x))


# %%
class Head(nn.Module):
    """One head: softmax(q k^T / sqrt(dim_head)) v."""

    def __init__(self, dim, dim_head):
        super().__init__()
        self.q = nn.Linear(dim, dim_head, bias=False)
        self.k = nn.Linear(dim, dim_head, bias=False)
        self.v = nn.Linear(dim, dim_head, bias=False)
        self.scale = dim_head**-0.5

    def forward(self, x):
        q, k, v = self.q(x), self.k(x), self.v(x)
        weights = torch.softmax(torch.bmm(q, k.transpose(1, 2)) * self.scale, dim=2)
        return torch.bmm(weights, v)


class Attention(nn.Module):
    def __init__(self, dim, heads=4, dim_head=64, dropout=0.0):
        super().__init__()
        self.heads = nn.ModuleList([Head(dim, dim_head) for _ in range(heads)])
        self.out = nn.Linear(heads * dim_head, dim)
        self.drop = nn.Dropout(dropout)

    def forward(self, x):
        joined = torch.cat([head(x) for head in self.heads], dim=-1)
        return self.drop(self.out(joined))


# %%
class Residual(nn.Module):
    """x + fn(x)"""

    def __init__(self, fn):
        super().__init__()
        self.fn = fn

    def forward(self, x):
        return self.fn(x) + x


class Transformer(nn.Module):
    def __init__(self, dim, depth, heads, dim_head, mlp_dim, dropout=0.0):
        super().__init__()
        self.layers = nn.Sequential()
        for i in range(depth):
            attention = PreNorm(dim, Attention(dim, heads=heads, dim_head=dim_head, dropout=dropout))
            mlp = PreNorm(dim, FeedForward(dim, mlp_dim, dropout=dropout))
            self.layers.add_module(f"attention{i}", Residual(attention))
            self.layers.add_module(f"mlp{i}", Residual(mlp))

    def forward(self, x):
        return self.layers(x)


# %%
class ViT(nn.Module):
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
        assert image_size % patch_size == 0, "the patches must fit into the image"
        side = image_size // patch_size
        self.p = patch_size
        self.pool = pool
        self.patch_to_token = nn.Linear(channels * patch_size**2, dim)
        self.cls_token = nn.Parameter(torch.zeros(1, 1, dim))
        self.positions = nn.Parameter(torch.zeros(1, side**2 + 1, dim))
        nn.init.normal_(self.cls_token, std=0.02)
        nn.init.normal_(self.positions, std=0.02)
        self.drop = nn.Dropout(emb_dropout)
        self.transformer = Transformer(dim, depth, heads, dim_head, mlp_dim, dropout)
        self.head = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, num_classes))

    def forward(self, img):
        # (b, c, H, W) -> (b, c, h, w, p, p) -> (b, h * w, c * p * p)
        patches = img.unfold(2, self.p, self.p).unfold(3, self.p, self.p)
        b, c, h, w, _, _ = patches.shape
        patches = patches.permute(0, 2, 3, 1, 4, 5).reshape(b, h * w, c * self.p * self.p)
        tokens = self.patch_to_token(patches)
        tokens = torch.cat((self.cls_token.repeat(b, 1, 1), tokens), dim=1)
        tokens = self.drop(tokens + self.positions)
        tokens = self.transformer(tokens)
        if self.pool == "mean":
            summary = torch.mean(tokens, dim=1)
        else:
            summary = tokens[:, 0]
        return self.head(summary)


# %% [markdown]
# ## 4. Training and evaluation
#
# A manual loop: no trainer library.


# %%
def train_epoch(model, optimizer, data_loader, loss_history):
    model.train()
    ce = nn.CrossEntropyLoss()
    for n, (xb, yb) in enumerate(data_loader):
        xb, yb = xb.to(device), yb.to(device)
        optimizer.zero_grad()
        loss = ce(model(xb), yb)
        loss.backward()
        optimizer.step()
        if n % 100 == 0:
            value = loss.item()
            print(f"{n:4d} / {len(data_loader)} batches, loss {value:.4f}")
            loss_history.append(value)


# %%
def evaluate(model, data_loader, loss_history):
    model.eval()
    total, right, n = 0.0, 0, 0
    with torch.no_grad():
        for xb, yb in data_loader:
            xb, yb = xb.to(device), yb.to(device)
            scores = model(xb)
            total = total + F.cross_entropy(scores, yb).item() * xb.shape[0]
            right = right + (scores.argmax(1) == yb).float().sum().item()
            n = n + xb.shape[0]
    loss_history.append(total / n)
    print(f"loss {total / n:.4f}, accuracy {100 * right / n:.2f} % ({int(right)} of {n} images)")


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
    model.eval()
    k = len(class_names)
    matrix = torch.zeros(k, k, dtype=torch.int64)
    with torch.no_grad():
        for xb, yb in data_loader:
            guess = model(xb.to(device)).argmax(1).cpu()
            matrix += torch.bincount(yb.cpu() * k + guess, minlength=k * k).view(k, k)
    plt.figure(figsize=(7, 6))
    plt.imshow(matrix.numpy(), cmap="Oranges")
    plt.colorbar()
    for row in range(k):
        for column in range(k):
            plt.text(column, row, matrix[row, column].item(), ha="center", va="center")
    plt.xticks(range(k), class_names, rotation=60)
    plt.yticks(range(k), class_names)
    plt.xlabel("predicted label")
    plt.ylabel("true label")
    plt.tight_layout()
    plt.show()


# %%
def plot_classwise_predictions(model, data_loader, class_names, samples_per_class=4):
    model.eval()
    xb, yb = next(iter(data_loader))
    with torch.no_grad():
        guess = model(xb.to(device)).argmax(1).cpu()

    fig, axes = plt.subplots(
        len(class_names), samples_per_class, figsize=(2.2 * samples_per_class, 2.6 * len(class_names)), squeeze=False
    )
    for ax in axes.ravel():
        ax.axis("off")
    for label, name in enumerate(class_names):
        members = (yb == label).nonzero()[:, 0].tolist()
        for ax, i in zip(axes[label], members[:samples_per_class]):
            ax.imshow(xb[i].permute(1, 2, 0) * 0.5 + 0.5, cmap="gray", vmin=0, vmax=1)
            ok = guess[i].item() == label
            ax.set_title(f"true: {name}\npred: {class_names[guess[i].item()]}", fontsize=8, color="green" if ok else "red")
    fig.tight_layout()
    plt.show()


# %%
plot_confusion_matrix(model, test_loader, class_names)
plot_classwise_predictions(model, test_loader, class_names)
