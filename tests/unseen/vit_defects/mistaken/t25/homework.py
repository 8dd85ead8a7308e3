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

STUDENT_ID = "400109325"  # put your own student number here

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
    """Normalizes, then applies fn."""

    def __init__(self, dim, fn):
        super().__init__()
        self.eps = 1e-5
        self.weight = nn.Parameter(torch.ones(dim))
        self.bias = nn.Parameter(torch.zeros(dim))
        self.fn = fn

    def normalize(self, x):
        mean = x.mean(dim=(1, 2), keepdim=True)
        var = x.var(dim=(1, 2), keepdim=True, unbiased=False)
        return (x - mean) / torch.sqrt(var + self.eps) * self.weight + self.bias

    def forward(self, x, **kwargs):
        return self.fn(self.normalize(x), **kwargs)


# %%
class FeedForward(nn.Module):
    """dim -> hidden_dim -> dim for every token."""

    def __init__(self, dim, hidden_dim, dropout=0.0):
        super().__init__()
        self.lin_in = nn.Linear(dim, hidden_dim)
        self.lin_out = nn.Linear(hidden_dim, dim)
        self.p = dropout

    def forward(self, x):
        x = F.gelu(self.lin_in(x))
        x = F.dropout(x, p=self.p, training=self.training)
        x = self.lin_out(x)
        return F.dropout(x, p=self.p, training=self.training)


# %%
class Attention(nn.Module):
    """Self-attention in several heads."""

    def __init__(self, dim, heads=4, dim_head=64, dropout=0.0):
        super().__init__()
        self.n_heads = heads
        self.d_head = dim_head
        d_all = heads * dim_head
        self.w_qkv = nn.Linear(dim, 3 * d_all, bias=False)
        self.w_out = nn.Linear(d_all, dim)
        self.drop = nn.Dropout(dropout)

    def forward(self, x):
        B, T, _ = x.shape
        q, k, v = torch.split(self.w_qkv(x), self.n_heads * self.d_head, dim=2)
        q = q.view(B, T, self.n_heads, self.d_head).transpose(1, 2)
        k = k.view(B, T, self.n_heads, self.d_head).transpose(1, 2)
        v = v.view(B, T, self.n_heads, self.d_head).transpose(1, 2)
        att = q @ k.transpose(-2, -1) * (self.d_head**-0.5)
        # softmax by hand, stable
        att = torch.exp(att - att.amax(dim=-1, keepdim=True))
        att = att / att.sum(dim=-1, keepdim=True)
        y = att @ v
        y = y.transpose(1, 2).contiguous().view(B, T, self.n_heads * self.d_head)
        return self.drop(self.w_out(y))


# %%
class Transformer(nn.Module):
    """The encoder."""

    def __init__(self, dim, depth, heads, dim_head, mlp_dim, dropout=0.0):
        super().__init__()
        for i in range(depth):
            self.add_module(f"attention_{i}", PreNorm(dim, Attention(dim, heads, dim_head, dropout)))
            self.add_module(f"feed_forward_{i}", PreNorm(dim, FeedForward(dim, mlp_dim, dropout)))
        self.depth = depth

    def forward(self, x):
        for i in range(self.depth):
            x = x + getattr(self, f"attention_{i}")(x)
            x = x + getattr(self, f"feed_forward_{i}")(x)
        return x


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
        assert image_size % patch_size == 0
        self.p = patch_size
        self.pool = pool
        n_patches = (image_size // patch_size) ** 2
        self.w_patch = nn.Linear(channels * patch_size**2, dim)
        self.cls = nn.Parameter(torch.randn(1, 1, dim) * dim**-0.5)
        self.pos = nn.Embedding(n_patches + 1, dim)
        self.drop = nn.Dropout(emb_dropout)
        self.encoder = Transformer(dim, depth, heads, dim_head, mlp_dim, dropout)
        self.head = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, num_classes))

    def forward(self, img):
        patches = rearrange(img, "b c (i p) (j q) -> b (i j) (p q c)", p=self.p, q=self.p)
        x = self.w_patch(patches)
        x = torch.cat([repeat(self.cls, "1 1 d -> b 1 d", b=len(x)), x], dim=1)
        x = x + self.pos(torch.arange(x.shape[1], device=x.device))
        x = self.encoder(self.drop(x))
        if self.pool == "cls":
            return self.head(x[:, 0])
        return self.head(x.mean(dim=1))


# %% [markdown]
# ## 4. Training and evaluation
#
# A manual loop: no trainer library.


# %%
def train_epoch(model, optimizer, data_loader, loss_history):
    """One epoch of training."""
    model.train()
    for i, (x, y) in enumerate(data_loader):
        x, y = x.to(device), y.to(device)
        model.zero_grad()
        scores = model(x)
        loss = F.cross_entropy(input=scores, target=y)
        loss.backward()
        optimizer.step()
        if i % 100 == 0:
            loss_history.append(loss.item())
            print(f"{100 * i / len(data_loader):.0f} % of the epoch, loss {loss.item():.4f}")


# %%
def evaluate(model, data_loader, loss_history):
    """Average loss per image and accuracy."""
    was = torch.is_grad_enabled()
    torch.set_grad_enabled(False)
    model.eval()
    n, loss_sum, n_right = 0, 0.0, 0
    for x, y in data_loader:
        x, y = x.to(device), y.to(device)
        scores = model(x)
        loss_sum += F.cross_entropy(scores, y, reduction="sum").item()
        n_right += (scores.max(dim=1).indices == y).sum().item()
        n += y.numel()
    torch.set_grad_enabled(was)
    loss_history.append(loss_sum / n)
    print(f"loss {loss_sum / n:.4f}  accuracy {n_right / n:.4f}  ({n_right} of {n} right)")


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
    """Heat map of the confusion matrix."""
    model.eval()
    true, pred = [], []
    with torch.no_grad():
        for x, y in data_loader:
            pred.extend(model(x.to(device)).argmax(dim=1).tolist())
            true.extend(y.tolist())
    cm = confusion_matrix(true, pred)

    fig, ax = plt.subplots(figsize=(7, 6))
    image = ax.imshow(cm, cmap="Purples")
    fig.colorbar(image)
    for i in range(cm.shape[0]):
        for j in range(cm.shape[1]):
            ax.text(j, i, f"{cm[i, j]}", ha="center", va="center")
    ax.set_xticks(range(len(class_names)), labels=class_names, rotation=45, ha="right")
    ax.set_yticks(range(len(class_names)), labels=class_names)
    ax.set_xlabel("predicted")
    ax.set_ylabel("true")
    ax.set_title("Confusion matrix")
    fig.tight_layout()
    plt.show()


# %%
def plot_classwise_predictions(model, data_loader, class_names, samples_per_class=4):
    """Rows: classes, columns: examples."""
    model.eval()
    with torch.no_grad():
        batches = [(x.cpu(), y.cpu(), model(x.to(device)).argmax(dim=1).cpu()) for x, y in data_loader]
    x, y, pred = (torch.cat(t) for t in zip(*batches))

    plt.figure(figsize=(2.2 * samples_per_class, 2.6 * len(class_names)))
    for c in range(len(class_names)):
        indices = torch.where(y == c)[0][:samples_per_class]
        for column, i in enumerate(indices.tolist()):
            plt.subplot(len(class_names), samples_per_class, c * samples_per_class + column + 1)
            plt.imshow(x[i].squeeze() * 0.5 + 0.5, cmap="gray", vmin=0, vmax=1)
            plt.axis("off")
            plt.title(
                f"true {class_names[c]}\npredicted {class_names[pred[i]]}",
                fontsize=7,
                color="green" if pred[i] == c else "red",
            )
    plt.tight_layout()
    plt.show()


# %%
plot_confusion_matrix(model, test_loader, class_names)
plot_classwise_predictions(model, test_loader, class_names)
