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

STUDENT_ID = "400113124"

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
        self.layer_norm = nn.LayerNorm(dim)
        self.inner = fn

    def forward(self, x, **kwargs):
        normed = self.layer_norm(x)
        return self.inner(normed, **kwargs)


# %%
class FeedForward(nn.Module):
    def __init__(self, dim, hidden_dim, dropout=0.0):
        super().__init__()
        self.fc1 = nn.Linear(dim, hidden_dim)
        self.act = nn.ReLU()
        self.drop1 = nn.Dropout(dropout)
        self.fc2 = nn.Linear(hidden_dim, dim)
        self.drop2 = nn.Dropout(dropout)

    def forward(self, x):
        x = self.drop1(self.act(self.fc1(x)))
        x = self.drop2(self.fc2(x))
        return x


# %%
class Attention(nn.Module):
    def __init__(self, dim, heads=4, dim_head=64, dropout=0.0):
        super().__init__()
        self.h = heads
        self.d = dim_head
        self.query = nn.Linear(dim, heads * dim_head)
        self.key = nn.Linear(dim, heads * dim_head)
        self.value = nn.Linear(dim, heads * dim_head)
        self.out = nn.Linear(heads * dim_head, dim)
        self.drop = nn.Dropout(dropout)

    def split_heads(self, t):
        # (B, N, h*d) -> (B, h, N, d)
        B, N, _ = t.shape
        return t.view(B, N, self.h, self.d).permute(0, 2, 1, 3)

    def forward(self, x):
        B, N, _ = x.shape
        q = self.split_heads(self.query(x))
        k = self.split_heads(self.key(x))
        v = self.split_heads(self.value(x))

        scores = q @ k.transpose(2, 3) / self.d**0.5  # (B, h, N, N)
        weights = F.softmax(scores, dim=-1)
        context = weights @ v  # (B, h, N, d)
        context = context.permute(0, 2, 1, 3).contiguous().view(B, N, self.h * self.d)
        return self.drop(self.out(context))


# %%
class EncoderBlock(nn.Module):
    """Attention and MLP, both pre-normalized, both with a skip connection."""

    def __init__(self, dim, heads, dim_head, mlp_dim, dropout):
        super().__init__()
        self.attn = PreNorm(dim, Attention(dim, heads, dim_head, dropout))
        self.mlp = PreNorm(dim, FeedForward(dim, mlp_dim, dropout))

    def forward(self, x):
        x = x + self.attn(x)
        x = x + self.mlp(x)
        return x


class Transformer(nn.Module):
    def __init__(self, dim, depth, heads, dim_head, mlp_dim, dropout=0.0):
        super().__init__()
        self.blocks = nn.Sequential(
            *[EncoderBlock(dim, heads, dim_head, mlp_dim, dropout) for _ in range(depth)]
        )

    def forward(self, x):
        return self.blocks(x)


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
        if image_size % patch_size:
            raise ValueError("patch_size must divide image_size")
        n = (image_size // patch_size) ** 2
        self.pool = pool
        self.unfold = nn.Unfold(kernel_size=patch_size, stride=patch_size)
        self.embed = nn.Linear(channels * patch_size * patch_size, dim)
        self.cls = nn.Parameter(torch.zeros(1, 1, dim))
        self.pos = nn.Parameter(0.02 * torch.randn(1, n + 1, dim))
        self.emb_drop = nn.Dropout(emb_dropout)
        self.encoder = Transformer(dim, depth, heads, dim_head, mlp_dim, dropout)
        self.norm = nn.LayerNorm(dim)
        self.classifier = nn.Linear(dim, num_classes)

    def forward(self, img):
        patches = self.unfold(img).transpose(1, 2)  # (B, N, c*p*p)
        tokens = self.embed(patches)  # (B, N, dim)
        cls = self.cls.expand(tokens.size(0), -1, -1)
        tokens = torch.cat([cls, tokens], dim=1)  # (B, N+1, dim)
        tokens = self.emb_drop(tokens + self.pos)
        tokens = self.encoder(tokens)
        if self.pool == "mean":
            pooled = tokens.mean(dim=1)
        else:
            pooled = tokens[:, 0]
        return self.classifier(self.norm(pooled))


# %% [markdown]
# ## 4. Training and evaluation
#
# A manual loop: no trainer library.


# %%
criterion = nn.CrossEntropyLoss()


def train_epoch(model, optimizer, data_loader, loss_history):
    model.train()
    optimizer.zero_grad()
    for step, (images, labels) in enumerate(data_loader):
        images = images.to(device)
        labels = labels.to(device)

        scores = model(images)
        loss = criterion(scores, labels)
        loss.backward()
        optimizer.step()

        if step % 100 == 0:
            print(f"  batch {step + 1}/{len(data_loader)}: loss {loss.item():.4f}")
            loss_history.append(loss.item())


# %%
@torch.no_grad()
def evaluate(model, data_loader, loss_history):
    model.eval()
    loss_sum, correct, count = 0.0, 0, 0
    for images, labels in data_loader:
        images, labels = images.to(device), labels.to(device)
        scores = model(images)
        loss_sum += criterion(scores, labels).item() * labels.size(0)
        correct += (scores.argmax(1) == labels).sum().item()
        count += labels.size(0)
    loss_history.append(loss_sum / count)
    print(f"  test loss {loss_sum / count:.4f}, accuracy {correct}/{count} = {correct / count:.2%}")


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
    n = len(class_names)
    counts = torch.zeros(n, n, dtype=torch.long)
    with torch.no_grad():
        for images, labels in data_loader:
            predicted = model(images.to(device)).argmax(1).cpu()
            for t, p in zip(labels, predicted):
                counts[t, p] += 1

    fig, ax = plt.subplots(figsize=(7, 6))
    sns.heatmap(
        counts.numpy(), annot=True, fmt="d", cmap="viridis", xticklabels=class_names, yticklabels=class_names, ax=ax
    )
    ax.set_xlabel("predicted class")
    ax.set_ylabel("true class")
    ax.set_title("Confusion matrix")
    fig.tight_layout()
    plt.show()


# %%
def plot_classwise_predictions(model, data_loader, class_names, samples_per_class=4):
    model.eval()
    images, labels = next(iter(data_loader))
    with torch.no_grad():
        predicted = model(images.to(device)).argmax(1).cpu()

    rows = len(class_names)
    fig, axes = plt.subplots(
        rows, samples_per_class, figsize=(2.5 * samples_per_class, 2.5 * rows), squeeze=False
    )
    for c in range(rows):
        chosen = (labels == c).nonzero().flatten()[:samples_per_class].tolist()
        for j in range(samples_per_class):
            ax = axes[c, j]
            ax.axis("off")
            if j < len(chosen):
                i = chosen[j]
                p = predicted[i].item()
                ax.imshow(images[i, 0] * 0.5 + 0.5, cmap="gray")
                ax.set_title(
                    f"true: {class_names[c]}\npredicted: {class_names[p]}",
                    fontsize=8,
                    color="darkgreen" if p == c else "crimson",
                )
    fig.tight_layout()
    plt.show()


# %%
plot_confusion_matrix(model, test_loader, class_names)
plot_classwise_predictions(model, test_loader, class_names)
