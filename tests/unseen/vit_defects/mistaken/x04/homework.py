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
import numpy as np
import seaborn as sns
import torch
import torch.nn.functional as F
from einops import rearrange, repeat
from einops.layers.torch import Rearrange
from sklearn.metrics import confusion_matrix
from torch import nn, optim
from torch.utils.data import DataLoader
from torchvision import datasets, transforms

STUDENT_ID = "400114046"  # put your own student number here

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
    """Own layer normalization (as in the lecture: gamma and beta), then fn."""

    def __init__(self, dim, fn):
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(dim))
        self.beta = nn.Parameter(torch.zeros(dim))
        self.eps = 1e-5
        self.fn = fn

    def normalize(self, x):
        mean = x.mean(dim=(1, 2), keepdim=True)
        var = x.var(dim=(1, 2), keepdim=True, unbiased=False)
        return (x - mean) / torch.sqrt(var + self.eps) * self.gamma + self.beta

    def forward(self, x, **kwargs):
        return self.fn(self.normalize(x), **kwargs)


# %%
class FeedForward(nn.Module):
    """Linear - GELU - dropout - linear - dropout."""

    def __init__(self, dim, hidden_dim, dropout=0.0):
        super().__init__()
        self.fc1 = nn.Linear(dim, hidden_dim)
        self.act = nn.GELU()
        self.fc2 = nn.Linear(hidden_dim, dim)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        x = self.fc1(x)
        x = self.act(x)
        x = self.dropout(x)
        x = self.fc2(x)
        return self.dropout(x)


# %%
class Attention(nn.Module):
    """Self-attention with `heads` heads; one wide layer makes q, k and v."""

    def __init__(self, dim, heads=4, dim_head=64, dropout=0.0):
        super().__init__()
        self.h, self.d = heads, dim_head
        self.qkv = nn.Linear(dim, 3 * heads * dim_head)
        self.proj = nn.Linear(heads * dim_head, dim)
        self.proj_drop = nn.Dropout(dropout)

    def forward(self, x):
        B, N, _ = x.shape
        qkv = self.qkv(x).reshape(B, N, 3, self.h, self.d).permute(2, 0, 3, 1, 4)
        q, k, v = qkv[0], qkv[1], qkv[2]  # each (B, h, N, d)
        attn = (q @ k.transpose(-2, -1)) / np.sqrt(self.d)
        attn = attn.softmax(dim=-1)
        y = (attn @ v).transpose(1, 2).reshape(B, N, self.h * self.d)
        return self.proj_drop(self.proj(y))


# %%
class Transformer(nn.Module):
    """`depth` times (attention, feed-forward), each with a residual."""

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
    """Vision Transformer, patches by unfold."""

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
        self.pool = pool
        self.unfold = nn.Unfold(kernel_size=patch_size, stride=patch_size)
        self.embed = nn.Linear(channels * patch_size**2, dim)
        n = (image_size // patch_size) ** 2
        self.cls_token = nn.Parameter(torch.zeros(1, 1, dim))
        self.pos_embed = nn.Parameter(torch.zeros(1, n + 1, dim))
        nn.init.trunc_normal_(self.cls_token, std=0.02)
        nn.init.trunc_normal_(self.pos_embed, std=0.02)
        self.pos_drop = nn.Dropout(emb_dropout)
        self.blocks = Transformer(dim, depth, heads, dim_head, mlp_dim, dropout)
        self.head = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, num_classes))

    def forward(self, img):
        x = self.unfold(img).permute(0, 2, 1)  # (B, N, c * p * p)
        x = self.embed(x)
        x = torch.cat((self.cls_token.expand(x.shape[0], 1, -1), x), dim=1)
        x = self.pos_drop(x + self.pos_embed)
        x = self.blocks(x)
        x = x[:, 0] if self.pool == "cls" else x.mean(dim=1)
        return self.head(x)


# %% [markdown]
# ## 4. Training and evaluation
#
# A manual loop: no trainer library.


# %%
def train_epoch(model, optimizer, data_loader, loss_history):
    """Train for one pass."""
    model.train()
    dev = next(model.parameters()).device
    for batch_idx, (data, target) in enumerate(data_loader):
        data, target = data.to(dev), target.to(dev)
        optimizer.zero_grad()
        log_probs = F.log_softmax(model(data), dim=1)
        loss = F.nll_loss(log_probs, target)
        loss.backward()
        optimizer.step()
        if batch_idx % 100 == 0:
            print(f"[{batch_idx}/{len(data_loader)}]  Loss: {loss.item():6.4f}")
            loss_history.append(loss.item())


# %%
def evaluate(model, data_loader, loss_history):
    """Loss and accuracy on the test data."""
    model.eval()
    dev = next(model.parameters()).device
    total_samples = 0
    correct_samples = 0
    total_loss = 0.0
    with torch.no_grad():
        for data, target in data_loader:
            data, target = data.to(dev), target.to(dev)
            log_probs = F.log_softmax(model(data), dim=1)
            total_loss += F.nll_loss(log_probs, target, reduction="sum").item()
            pred = torch.max(log_probs, dim=1).indices
            correct_samples += pred.eq(target).sum().item()
            total_samples += len(target)
    avg_loss = total_loss / total_samples
    loss_history.append(avg_loss)
    print(f"Average test loss: {avg_loss:.4f}  Accuracy: {correct_samples}/{total_samples} ({100.0 * correct_samples / total_samples:.2f}%)")


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
def predict_all(model, data_loader):
    """All images, labels and predictions as numpy arrays."""
    model.eval()
    dev = next(model.parameters()).device
    images, labels, preds = [], [], []
    with torch.no_grad():
        for data, target in data_loader:
            preds.append(model(data.to(dev)).argmax(dim=1).cpu().numpy())
            labels.append(target.numpy())
            images.append(data.numpy())
    return np.concatenate(images), np.concatenate(labels), np.concatenate(preds)


def plot_confusion_matrix(model, data_loader, class_names):
    """Confusion matrix: true classes in the rows."""
    _, labels, preds = predict_all(model, data_loader)
    cm = confusion_matrix(labels, preds, labels=np.arange(len(class_names)))
    plt.figure(figsize=(7, 6))
    sns.heatmap(cm, annot=True, fmt="d", xticklabels=class_names, yticklabels=class_names, cmap="Greens")
    plt.ylabel("Actual")
    plt.xlabel("Predicted")
    plt.title("Confusion matrix")
    plt.show()


# %%
def plot_classwise_predictions(model, data_loader, class_names, samples_per_class=4):
    """Example predictions, one row per class."""
    images, labels, preds = predict_all(model, data_loader)
    n_classes = len(class_names)
    fig, axs = plt.subplots(
        n_classes, samples_per_class, figsize=(2.5 * samples_per_class, 2.7 * n_classes), squeeze=False
    )
    for cls in range(n_classes):
        chosen = np.where(preds == cls)[0][:samples_per_class]
        for col in range(samples_per_class):
            axs[cls, col].axis("off")
        for col, i in enumerate(chosen):
            axs[cls, col].imshow(images[i, 0] * 0.5 + 0.5, cmap="gray", vmin=0, vmax=1)
            axs[cls, col].set_title(
                f"True: {class_names[labels[i]]}\nPred: {class_names[preds[i]]}",
                fontsize=8,
                color="green" if labels[i] == preds[i] else "red",
            )
    plt.tight_layout()
    plt.show()


# %%
plot_confusion_matrix(model, test_loader, class_names)
plot_classwise_predictions(model, test_loader, class_names)
