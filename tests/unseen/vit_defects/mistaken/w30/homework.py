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

STUDENT_ID = "400113300"  # put your own student number here

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
    """norm -> fn"""

    def __init__(self, dim, fn):
        super().__init__()
        self.norm, self.fn = nn.LayerNorm(dim), fn

    def forward(self, x, **kwargs):
        return self.fn(self.norm(x), **kwargs)


# %%
def FF(dim_in, dim_out, dropout, activation=None):
    """A linear layer, perhaps an activation, and dropout."""
    modules = [nn.Linear(dim_in, dim_out)]
    if activation is not None:
        modules.append(activation)
    modules.append(nn.Dropout(dropout))
    return nn.Sequential(*modules)


class FeedForward(nn.Module):
    """dim -> hidden_dim -> dim"""

    def __init__(self, dim, hidden_dim, dropout=0.0):
        super().__init__()
        self.first = FF(dim, hidden_dim, dropout, activation=nn.GELU())
        self.second = FF(hidden_dim, dim, dropout)

    def forward(self, x):
        return self.second(self.first(x))


# %%
class Attention(nn.Module):
    """Self-attention with several heads; i: query token, j: key token."""

    def __init__(self, dim, heads=4, dim_head=64, dropout=0.0):
        super().__init__()
        self.shape = (heads, dim_head)
        self.scale = dim_head**-0.5
        self.q = nn.Linear(dim, heads * dim_head, bias=False)
        self.k = nn.Linear(dim, heads * dim_head, bias=False)
        self.v = nn.Linear(dim, heads * dim_head, bias=False)
        self.out = FF(heads * dim_head, dim, dropout)

    def forward(self, x):
        q = self.q(x).unflatten(-1, self.shape)  # b i h d
        k = self.k(x).unflatten(-1, self.shape)  # b j h d
        v = self.v(x).unflatten(-1, self.shape)  # b j h d
        scores = torch.einsum("bihd,bjhd->bhij", q * self.scale, k)
        weights = scores.softmax(dim=-1)
        result = torch.einsum("bhij,bjhd->bihd", weights, v)
        return self.out(result.flatten(-2))


# %%
class Transformer(nn.Module):
    """depth x (attention, feed-forward), both pre-normalized and residual"""

    def __init__(self, dim, depth, heads, dim_head, mlp_dim, dropout=0.0):
        super().__init__()
        self.parts = nn.ModuleList()
        for _ in range(depth):
            self.parts.extend(
                [
                    PreNorm(dim, Attention(dim, heads=heads, dim_head=dim_head, dropout=dropout)),
                    PreNorm(dim, FeedForward(dim, mlp_dim, dropout=dropout)),
                ]
            )

    def forward(self, x):
        for part in self.parts:
            x = x + part(x)
        return x


# %%
class ViT(nn.Module):
    """image -> patches -> tokens -> Transformer -> scores"""

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
        assert image_size % patch_size == 0 and pool in ("cls", "mean")
        n = (image_size // patch_size) ** 2
        self.tokens = nn.Sequential(
            Rearrange("b c (y p) (x q) -> b (y x) (p q c)", p=patch_size, q=patch_size),
            nn.Linear(patch_size**2 * channels, dim),
        )
        self.cls = nn.Parameter(torch.randn(1, dim) * 0.02)
        self.pos = nn.Parameter(torch.randn(n + 1, dim) * 0.02)
        self.drop = nn.Dropout(emb_dropout)
        self.encoder = Transformer(dim, depth, heads, dim_head, mlp_dim, dropout)
        self.pool = pool
        self.head = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, num_classes))

    def forward(self, img):
        x = self.tokens(img)
        x = torch.cat([repeat(self.cls, "one d -> b one d", b=x.shape[0]), x], dim=1)
        x = self.encoder(self.drop(x + self.pos))
        x = x[:, :1] if self.pool == "cls" else x.mean(dim=1, keepdim=True)
        return self.head(x).squeeze()

# %% [markdown]
# ## 4. Training and evaluation
#
# A manual loop: no trainer library.


# %%
def train_epoch(model, optimizer, data_loader, loss_history):
    """One epoch of training."""
    model.train()
    for number, (images, labels) in enumerate(data_loader, start=1):
        images, labels = images.to(device), labels.to(device)
        loss = F.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if number % 100 == 1:
            print(f"batch {number}: {loss.item():.4f}")
            loss_history.append(loss.item())


# %%
@torch.inference_mode()
def evaluate(model, data_loader, loss_history):
    """Loss and accuracy."""
    model.eval()
    losses, hits = [], []
    for images, labels in data_loader:
        images, labels = images.to(device), labels.to(device)
        scores = model(images)
        losses += F.cross_entropy(scores, labels, reduction="none").tolist()
        hits += (scores.argmax(dim=1) == labels).tolist()
    loss = sum(losses) / len(losses)
    loss_history.append(loss)
    print(f"loss {loss:.4f}, accuracy {sum(hits) / len(hits):.4f} ({sum(hits)} of {len(hits)})")

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
@torch.inference_mode()
def plot_confusion_matrix(model, data_loader, class_names):
    """Rows: truth; columns: prediction."""
    model.eval()
    k = len(class_names)
    counts = torch.zeros(k, k, dtype=torch.int)
    for images, labels in data_loader:
        truth = F.one_hot(labels.cpu(), k).int()
        prediction = F.one_hot(model(images.to(device)).argmax(dim=1).cpu(), k).int()
        counts += truth.T @ prediction
    fig, ax = plt.subplots(figsize=(7.5, 6.5), layout="constrained")
    sns.heatmap(
        counts.numpy(), annot=True, fmt="d", cmap="mako_r", xticklabels=class_names, yticklabels=class_names, ax=ax
    )
    ax.set(title="Confusion matrix", xlabel="predicted class", ylabel="true class")
    plt.show()


# %%
@torch.inference_mode()
def plot_classwise_predictions(model, data_loader, class_names, samples_per_class=4):
    """A grid: one row per true class."""
    model.eval()
    rows = [[] for _ in class_names]
    for images, labels in data_loader:
        for image, t, p in zip(images.cpu(), labels.tolist(), model(images.to(device)).argmax(dim=1).tolist()):
            rows[t].append((image, p))
        if min(len(row) for row in rows) >= samples_per_class:
            break

    size = (2 * samples_per_class, 2.4 * len(rows))
    fig, axes = plt.subplots(len(rows), samples_per_class, figsize=size, squeeze=False, layout="constrained")
    for t, row in enumerate(rows):
        for ax in axes[t]:
            ax.axis("off")
        for ax, (image, p) in zip(axes[t], row[:samples_per_class]):
            ax.imshow((image * 0.5 + 0.5).permute(1, 2, 0), cmap="gray", vmin=0, vmax=1)
            ax.set_title(
                f"true: {class_names[t]}\npredicted: {class_names[p]}", fontsize=7, color="g" if t == p else "r"
            )
    plt.show()


# %%
plot_confusion_matrix(model, test_loader, class_names)
plot_classwise_predictions(model, test_loader, class_names)
