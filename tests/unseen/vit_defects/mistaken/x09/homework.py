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

STUDENT_ID = "400114094"  # put your own student number here

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
        self.norm = nn.LayerNorm([dim])
        self.sublayer = fn

    def forward(self, x, **kwargs):
        return self.sublayer(self.norm(x), **kwargs)


# %%
class FeedForward(nn.Sequential):
    """An nn.Sequential needs no forward of its own."""

    def __init__(self, dim, hidden_dim, dropout=0.0):
        super().__init__(
            nn.Linear(dim, hidden_dim),
            nn.GELU(),
            nn.Dropout(dropout),
            nn.Linear(hidden_dim, dim),
            nn.Dropout(dropout),
        )

    def forward(self, x):
        return super().forward(x)


# %%
class Attention(nn.Module):
    """Multi-head self-attention; the scaling by 1 / sqrt(dim_head) is in scaled_dot_product_attention."""

    def __init__(self, dim, heads=4, dim_head=64, dropout=0.0):
        super().__init__()
        self.qkv = nn.Sequential(
            nn.Linear(dim, 3 * heads * dim_head, bias=False),
            Rearrange("b n (k h d) -> k b h n d", k=3, h=heads, d=dim_head),
        )
        self.out = nn.Sequential(
            Rearrange("b h n d -> b n (h d)"),
            nn.Linear(heads * dim_head, dim),
            nn.Dropout(dropout),
        )

    def forward(self, x):
        q, k, v = self.qkv(x).unbind(0)
        return self.out(F.scaled_dot_product_attention(q, k, v))


# %%
class Residual(nn.Module):
    """x + fn(x)"""

    def __init__(self, fn):
        super().__init__()
        self.fn = fn

    def forward(self, x):
        return x + self.fn(x)


class Transformer(nn.Module):
    """2 * depth residual parts in a row."""

    def __init__(self, dim, depth, heads, dim_head, mlp_dim, dropout=0.0):
        super().__init__()
        net = []
        for _ in range(depth):
            net += [
                Residual(PreNorm(dim, Attention(dim, heads, dim_head, dropout))),
                Residual(PreNorm(dim, FeedForward(dim, mlp_dim, dropout))),
            ]
        self.net = nn.Sequential(*net)

    def forward(self, x):
        return self.net(x)


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
        assert pool in ("cls", "mean")
        self.num_patches = (image_size // patch_size) ** 2
        self.patch_dim = channels * patch_size**2
        self.patch_embedding = nn.Linear(self.patch_dim, dim)
        self.cls_token = nn.Parameter(torch.empty(1, 1, dim).normal_(std=0.02))
        self.position_embedding = nn.Parameter(torch.empty(1, self.num_patches + 1, dim).normal_(std=0.02))
        self.emb_dropout = nn.Dropout(emb_dropout)
        self.transformer = Transformer(dim, depth, heads, dim_head, mlp_dim, dropout)
        self.pool = pool
        self.head = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, num_classes))

    def forward(self, img):
        batch = img.shape[0]
        # (batch, channels, size, size) -> (batch, patches, numbers of a patch)
        patches = img.reshape(batch, self.num_patches, self.patch_dim)
        tokens = self.patch_embedding(patches)
        cls = self.cls_token.expand(batch, 1, tokens.shape[-1])
        x = torch.cat([cls, tokens], dim=1)
        x = self.emb_dropout(x + self.position_embedding)
        x = self.transformer(x)
        x = x[:, 0] if self.pool == "cls" else x.mean(dim=1)
        return self.head(x)


# %% [markdown]
# ## 4. Training and evaluation
#
# A manual loop: no trainer library.


# %%
def train_epoch(model, optimizer, data_loader, loss_history):
    """One epoch."""
    model.train()
    started = time.time()
    for number, (images, labels) in enumerate(data_loader):
        model.zero_grad()
        loss = F.cross_entropy(model(images.to(device)), labels.to(device))
        loss.backward()
        optimizer.step()
        if number % 100 == 0:
            loss_history.append(loss.item())
            print(f"  batch {number} of {len(data_loader)} after {time.time() - started:.1f} s: loss {loss.item():.3f}")


# %%
def evaluate(model, data_loader, loss_history):
    """Loss per image and accuracy."""
    was_grad = torch.is_grad_enabled()
    torch.set_grad_enabled(False)
    model.eval()
    loss, correct, seen = 0.0, 0, 0
    for images, labels in data_loader:
        images, labels = images.to(device), labels.to(device)
        scores = model(images)
        loss += F.cross_entropy(scores, labels).item() * len(images)
        correct += (scores.max(dim=1)[1] == labels).sum().item()
        seen += len(images)
    torch.set_grad_enabled(was_grad)
    loss_history.append(loss / seen)
    print(f"  loss {loss / seen:.4f}, accuracy {correct / seen:.4f} ({correct}/{seen})")


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
    """Heatmap of the counts."""
    model.eval()
    true, predicted = [], []
    for images, labels in data_loader:
        with torch.no_grad():
            predicted.append(model(images.to(device)).argmax(dim=1).cpu())
        true.append(labels)
    counts = confusion_matrix(
        y_true=torch.cat(true).numpy(), y_pred=torch.cat(predicted).numpy(), labels=range(len(class_names))
    )
    _, ax = plt.subplots(figsize=(7, 6))
    sns.heatmap(counts, annot=True, fmt="d", cbar=False, xticklabels=class_names, yticklabels=class_names, ax=ax)
    ax.set_title("Confusion matrix (rows: true, columns: predicted)")
    ax.set_xlabel("predicted")
    ax.set_ylabel("true")
    plt.tight_layout()
    plt.show()


# %%
def plot_classwise_predictions(model, data_loader, class_names, samples_per_class=4):
    """A column of images for each class."""
    model.eval()
    examples = [[] for _ in class_names]
    for images, labels in data_loader:
        with torch.no_grad():
            predicted = model(images.to(device)).argmax(dim=1).cpu()
        for image, label, guess in zip(images, labels, predicted):
            if len(examples[label]) < samples_per_class:
                examples[label].append((image, guess.item()))

    fig, axes = plt.subplots(
        samples_per_class, len(class_names), figsize=(2.2 * len(class_names), 2.5 * samples_per_class), squeeze=False
    )
    for label, name in enumerate(class_names):
        for row in range(samples_per_class):
            axes[row, label].axis("off")
        for row, (image, guess) in enumerate(examples[label]):
            axes[row, label].imshow(image[0] * 0.5 + 0.5, cmap="gray", vmin=0, vmax=1)
            axes[row, label].set_title(
                f"true: {name}\npred.: {class_names[guess]}", fontsize=8, color="green" if guess == label else "red"
            )
    fig.tight_layout()
    plt.show()


# %%
plot_confusion_matrix(model, test_loader, class_names)
plot_classwise_predictions(model, test_loader, class_names)
