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

STUDENT_ID = "400110822"  # put your own student number here

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
    """LayerNorm and then fn."""

    def __init__(self, dim, fn):
        super().__init__()
        self.fn = fn
        self.norm = nn.LayerNorm(dim)

    def forward(self, x, **kwargs):
        return self.fn(self.norm(x), **kwargs)


# %%
class FeedForward(nn.Module):
    """The MLP of a block."""

    def __init__(self, dim, hidden_dim, dropout=0.0):
        super().__init__()
        self.up = nn.Linear(dim, hidden_dim)
        self.down = nn.Linear(hidden_dim, dim)
        self.act = nn.GELU()
        self.dropout1 = nn.Dropout(dropout)
        self.dropout2 = nn.Dropout(dropout)

    def forward(self, x):
        h = self.dropout1(self.up(x))
        return self.dropout2(self.act(self.down(h)))


# %%
class Attention(nn.Module):
    """Multi-head self-attention, q, k and v from one linear layer."""

    def __init__(self, dim, heads=4, dim_head=64, dropout=0.0):
        super().__init__()
        self.heads = heads
        self.scale = dim_head ** (-0.5)
        self.qkv = nn.Linear(dim, heads * dim_head * 3, bias=False)
        self.unfold_heads = Rearrange("b n (h d) -> b h n d", h=heads)
        self.join_heads = Rearrange("b h n d -> b n (h d)")
        self.project = nn.Sequential(nn.Linear(heads * dim_head, dim), nn.Dropout(dropout))

    def forward(self, x):
        q, k, v = map(self.unfold_heads, self.qkv(x).chunk(3, dim=-1))
        weights = (q * self.scale @ k.mT).softmax(-1)
        return self.project(self.join_heads(weights @ v))


# %%
class Residual(nn.Module):
    """x + fn(x)"""

    def __init__(self, fn):
        super().__init__()
        self.fn = fn

    def forward(self, x, **kwargs):
        return x + self.fn(x, **kwargs)


class Transformer(nn.Module):
    """depth times (attention, mlp)."""

    def __init__(self, dim, depth, heads, dim_head, mlp_dim, dropout=0.0):
        super().__init__()
        steps = []
        for _ in range(depth):
            steps.append(Residual(PreNorm(dim, Attention(dim, heads, dim_head, dropout))))
            steps.append(Residual(PreNorm(dim, FeedForward(dim, mlp_dim, dropout))))
        self.steps = nn.Sequential(*steps)

    def forward(self, x):
        return self.steps(x)


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
        grid = image_size // patch_size
        self.mean_pool = pool == "mean"
        self.tokenize = nn.Sequential(
            Rearrange("b c (gh ph) (gw pw) -> b (gh gw) (c ph pw)", ph=patch_size, pw=patch_size),
            nn.Linear(channels * patch_size * patch_size, dim),
        )
        self.cls = nn.Parameter(torch.randn(1, 1, dim) * 0.1)
        self.pos = nn.Parameter(torch.randn(1, 1 + grid * grid, dim) * 0.1)
        self.drop = nn.Dropout(emb_dropout)
        self.body = Transformer(dim, depth, heads, dim_head, mlp_dim, dropout)
        self.head = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, num_classes))

    def forward(self, img):
        x = self.tokenize(img)
        x = torch.cat([repeat(self.cls, "1 1 d -> b 1 d", b=len(x)), x], dim=1)
        x = self.body(self.drop(x + self.pos))
        return self.head(x.mean(dim=1) if self.mean_pool else x[:, 0])


# %% [markdown]
# ## 4. Training and evaluation
#
# A manual loop: no trainer library.


# %%
def train_epoch(model, optimizer, data_loader, loss_history):
    """One pass over the data."""
    model.train()
    running = 0.0
    for i, (images, labels) in enumerate(data_loader):
        images, labels = images.to(device), labels.to(device)
        optimizer.zero_grad()
        loss = F.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        running += loss.item()
        if i % 100 == 0:
            print(f"batch {i + 1}/{len(data_loader)}: loss {running / (i + 1):.4f}")
            loss_history.append(running / (i + 1))


# %%
def evaluate(model, data_loader, loss_history):
    """Loss and accuracy."""
    model.eval()
    with torch.no_grad():
        loss = correct = n = 0
        for images, labels in data_loader:
            images, labels = images.to(device), labels.to(device)
            logits = model(images)
            loss += F.cross_entropy(logits, labels, reduction="sum").item()
            correct += torch.sum(logits.argmax(dim=-1) == labels).item()
            n += images.shape[0]
    loss_history.append(loss / n)
    print(f"average loss: {loss / n:.4f}, correct: {correct} of {n}, accuracy: {correct / n * 100:.2f} %")


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
    """Rows: truth, columns: prediction."""
    model.eval()
    size = len(class_names)
    counts = [[0] * size for _ in range(size)]
    with torch.no_grad():
        for images, labels in data_loader:
            for t, p in zip(labels.tolist(), model(images.to(device)).argmax(dim=-1).tolist()):
                counts[t][p] += 1
    plt.figure(figsize=(7, 6))
    sns.heatmap(counts, annot=True, fmt="d", xticklabels=class_names, yticklabels=class_names, cmap="mako_r", linewidths=1)
    plt.xlabel("predicted class")
    plt.ylabel("true class")
    plt.xticks(rotation=30, ha="right")
    plt.tight_layout()
    plt.show()


# %%
def plot_classwise_predictions(model, data_loader, class_names, samples_per_class=4):
    """samples_per_class images of each class, one class in each column."""
    model.eval()
    chosen = [[] for _ in class_names]
    with torch.no_grad():
        for images, labels in data_loader:
            guesses = model(images.to(device)).argmax(dim=-1).tolist()
            for image, label, guess in zip(images, labels.tolist(), guesses):
                if len(chosen[label]) < samples_per_class:
                    chosen[label].append((image[0].cpu() * 0.5 + 0.5, guess))
    fig, axes = plt.subplots(
        samples_per_class, len(class_names), figsize=(2.2 * len(class_names), 2.5 * samples_per_class), squeeze=False
    )
    for ax in axes.ravel():
        ax.axis("off")
    for column, examples in enumerate(chosen):
        for row, (image, guess) in enumerate(examples):
            ax = axes[row, column]
            ax.imshow(image, cmap="gray", vmin=0, vmax=1)
            ax.set_title(
                f"{class_names[column]}\n-> {class_names[guess]}", fontsize=8, color="green" if guess == column else "red"
            )
    fig.suptitle("true class -> predicted class")
    fig.tight_layout()
    plt.show()


# %%
plot_confusion_matrix(model, test_loader, class_names)
plot_classwise_predictions(model, test_loader, class_names)
