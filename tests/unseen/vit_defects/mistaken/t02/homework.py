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
import numpy as np
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

STUDENT_ID = "400109102"

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
    """LayerNorm first, then the wrapped module."""

    def __init__(self, dim, fn):
        super().__init__()
        self.layer_norm = nn.LayerNorm(dim)
        self.sublayer = fn

    def forward(self, x, **kwargs):
        normalized = self.layer_norm(x)
        return self.sublayer(normalized, **kwargs)


# %%
class FeedForward(nn.Module):
    """MLP of one encoder block."""

    def __init__(self, dim, hidden_dim, dropout=0.0):
        super().__init__()
        self.fc1 = nn.Linear(dim, hidden_dim)
        self.fc2 = nn.Linear(hidden_dim, dim)
        self.drop1 = nn.Dropout(dropout)
        self.drop2 = nn.Dropout(dropout)

    def forward(self, x):
        hidden = self.drop1(F.relu(self.fc1(x)))
        return self.drop2(self.fc2(hidden))


# %%
class Attention(nn.Module):
    """Multi-head self-attention with three separate projections."""

    def __init__(self, dim, heads=4, dim_head=64, dropout=0.0):
        super().__init__()
        self.n_heads = heads
        self.d_k = dim_head
        self.W_q = nn.Linear(dim, heads * dim_head)
        self.W_k = nn.Linear(dim, heads * dim_head)
        self.W_v = nn.Linear(dim, heads * dim_head)
        self.W_o = nn.Linear(dim_head, dim)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        B, N, _ = x.shape
        # (B, N, heads*d_k) -> (B, heads, N, d_k)
        Q = self.W_q(x).view(B, N, self.n_heads, self.d_k).permute(0, 2, 1, 3)
        K = self.W_k(x).view(B, N, self.n_heads, self.d_k).permute(0, 2, 1, 3)
        V = self.W_v(x).view(B, N, self.n_heads, self.d_k).permute(0, 2, 1, 3)
        scores = torch.matmul(Q, K.transpose(-2, -1)) / (self.d_k**0.5)  # (B, heads, N, N)
        weights = F.softmax(scores, dim=-1)
        context = torch.matmul(weights, V)  # (B, heads, N, d_k)
        context = context.mean(dim=1)  # combine the heads: (B, N, d_k)
        return self.dropout(self.W_o(context))


# %%
class EncoderBlock(nn.Module):
    """One block: attention and MLP, each with a skip connection."""

    def __init__(self, dim, heads, dim_head, mlp_dim, dropout):
        super().__init__()
        self.attention = PreNorm(dim, Attention(dim, heads, dim_head, dropout))
        self.mlp = PreNorm(dim, FeedForward(dim, mlp_dim, dropout))

    def forward(self, x):
        x = x + self.attention(x)
        x = x + self.mlp(x)
        return x


class Transformer(nn.Module):
    """A stack of encoder blocks."""

    def __init__(self, dim, depth, heads, dim_head, mlp_dim, dropout=0.0):
        super().__init__()
        self.blocks = nn.ModuleList([EncoderBlock(dim, heads, dim_head, mlp_dim, dropout) for _ in range(depth)])

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x


# %%
class ViT(nn.Module):
    """Vision Transformer for image classification."""

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
        self.patch_size = patch_size
        self.pool = pool
        side = image_size // patch_size
        self.patch_projection = nn.Linear(channels * patch_size * patch_size, dim)
        self.class_token = nn.Parameter(torch.zeros(1, 1, dim))
        self.positions = nn.Parameter(torch.randn(1, side * side + 1, dim) * 0.02)
        self.emb_drop = nn.Dropout(emb_dropout)
        self.encoder = Transformer(dim, depth, heads, dim_head, mlp_dim, dropout)
        self.head_norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, num_classes)

    def patchify(self, img):
        B, C, H, W = img.shape
        p = self.patch_size
        img = img.view(B, C, H // p, p, W // p, p)
        img = img.permute(0, 2, 4, 1, 3, 5)  # (B, H/p, W/p, C, p, p)
        return img.reshape(B, (H // p) * (W // p), C * p * p)

    def forward(self, img):
        tokens = self.patch_projection(self.patchify(img))
        cls = self.class_token.expand(tokens.shape[0], -1, -1)
        tokens = torch.cat([cls, tokens], dim=1)
        tokens = self.emb_drop(tokens + self.positions)
        tokens = self.encoder(tokens)
        if self.pool == "mean":
            pooled = tokens.mean(dim=1)
        else:
            pooled = tokens[:, 0, :]
        return self.head(self.head_norm(pooled))


# %% [markdown]
# ## 4. Training and evaluation
#
# A manual loop: no trainer library.

# %%
def train_epoch(model, optimizer, data_loader, loss_history):
    """One pass over the training data."""
    model.train()
    criterion = nn.CrossEntropyLoss()
    for batch_index, (images, labels) in enumerate(data_loader):
        images = images.to(device)
        labels = labels.to(device)

        optimizer.zero_grad()
        logits = model(images)
        loss = criterion(logits, labels)
        loss.backward()
        optimizer.step()

        if batch_index % 100 == 0:
            value = loss.item()
            loss_history.append(value)
            print(f"  batch {batch_index:4d}: loss = {value:.4f}")


# %%
def evaluate(model, data_loader, loss_history):
    """Average loss per image and accuracy on unseen data."""
    model.eval()
    criterion = nn.CrossEntropyLoss(reduction="sum")
    loss_sum, n_correct, n_images = 0.0, 0, 0
    with torch.no_grad():
        for images, labels in data_loader:
            images = images.to(device)
            labels = labels.to(device)
            logits = model(images)
            loss_sum += criterion(logits, labels).item()
            n_correct += int((logits.argmax(1) == labels).sum())
            n_images += labels.size(0)
    mean_loss = loss_sum / n_images
    loss_history.append(mean_loss)
    print(f"  test loss = {mean_loss:.4f}, accuracy = {n_correct / n_images:.2%}")


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
    model.eval()
    n = len(class_names)
    matrix = np.zeros((n, n), dtype=int)
    with torch.no_grad():
        for images, labels in data_loader:
            predictions = model(images.to(device)).argmax(1).cpu()
            for t, p in zip(labels, predictions):
                matrix[int(t), int(p)] += 1

    fig, ax = plt.subplots(figsize=(7, 6))
    picture = ax.imshow(matrix, cmap="viridis")
    fig.colorbar(picture)
    for i in range(n):
        for j in range(n):
            ax.text(
                j,
                i,
                str(matrix[i, j]),
                ha="center",
                va="center",
                color="black" if matrix[i, j] > matrix.max() / 2 else "white",
            )
    ax.set_xticks(range(n))
    ax.set_yticks(range(n))
    ax.set_xticklabels(class_names, rotation=45, ha="right")
    ax.set_yticklabels(class_names)
    ax.set_xlabel("predicted class")
    ax.set_ylabel("true class")
    ax.set_title("Confusion matrix")
    fig.tight_layout()
    plt.show()


# %%
def plot_classwise_predictions(model, data_loader, class_names, samples_per_class=4):
    """A row of examples for every class."""
    model.eval()
    all_images, all_labels, all_predictions = [], [], []
    with torch.no_grad():
        for images, labels in data_loader:
            all_predictions.append(model(images.to(device)).argmax(1).cpu())
            all_images.append(images.cpu())
            all_labels.append(labels.cpu())
    all_images = torch.cat(all_images)
    all_labels = torch.cat(all_labels)
    all_predictions = torch.cat(all_predictions)

    rows, cols = len(class_names), samples_per_class
    plt.figure(figsize=(2.5 * cols, 2.8 * rows))
    for label in range(rows):
        chosen = torch.where(all_labels == label)[0][:cols]
        for j, index in enumerate(chosen.tolist()):
            predicted = int(all_predictions[index])
            plt.subplot(rows, cols, label * cols + j + 1)
            plt.imshow((all_images[index] * 0.5 + 0.5).squeeze(0).numpy(), cmap="gray")
            plt.title(
                f"T: {class_names[label]}\nP: {class_names[predicted]}",
                fontsize=8,
                color="green" if predicted == label else "red",
            )
            plt.axis("off")
    plt.tight_layout()
    plt.show()


# %%
plot_confusion_matrix(model, test_loader, class_names)
plot_classwise_predictions(model, test_loader, class_names)
