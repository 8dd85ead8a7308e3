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
import math
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

STUDENT_ID = "400114027"  # put your own student number here

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
    """LayerNorm first, then fn."""

    def __init__(self, dim, fn):
        super().__init__()
        self.ln = nn.LayerNorm(dim)
        self.inner = fn

    def forward(self, x, **kwargs):
        normalized = self.ln(x)
        return self.inner(normalized, **kwargs)


# %%
class FeedForward(nn.Module):
    """MLP of a transformer block."""

    def __init__(self, dim, hidden_dim, dropout=0.0):
        super().__init__()
        self.lin_in = nn.Linear(dim, hidden_dim)
        self.lin_out = nn.Linear(hidden_dim, dim)
        self.drop1 = nn.Dropout(dropout)
        self.drop2 = nn.Dropout(dropout)

    def forward(self, x):
        h = self.drop1(F.relu(self.lin_in(x)))
        return self.drop2(self.lin_out(h))


# %%
class Attention(nn.Module):
    """Multi-head self-attention with three separate projections."""

    def __init__(self, dim, heads=4, dim_head=64, dropout=0.0):
        super().__init__()
        self.n_heads = heads
        self.d_head = dim_head
        self.query = nn.Linear(dim, heads * dim_head)
        self.key = nn.Linear(dim, heads * dim_head)
        self.value = nn.Linear(dim, heads * dim_head)
        self.out = nn.Linear(dim_head, dim)
        self.drop = nn.Dropout(dropout)

    def split_heads(self, t):
        b, n, _ = t.shape
        return t.view(b, n, self.n_heads, self.d_head).transpose(1, 2)  # (b, h, n, d)

    def forward(self, x):
        q = self.split_heads(self.query(x))
        k = self.split_heads(self.key(x))
        v = self.split_heads(self.value(x))
        scores = torch.matmul(q, k.transpose(-2, -1)) / math.sqrt(self.d_head)
        weights = F.softmax(scores, dim=-1)
        context = torch.matmul(weights, v)  # (b, h, n, d)
        # combine what the heads found
        context = context.mean(dim=1)  # (b, n, d)
        return self.drop(self.out(context))


# %%
class EncoderBlock(nn.Module):
    """One block: attention and MLP, each with a skip connection."""

    def __init__(self, dim, heads, dim_head, mlp_dim, dropout):
        super().__init__()
        self.attention = PreNorm(dim, Attention(dim, heads, dim_head, dropout))
        self.mlp = PreNorm(dim, FeedForward(dim, mlp_dim, dropout))

    def forward(self, x):
        x = x + self.attention(x)
        return x + self.mlp(x)


class Transformer(nn.Module):
    """A stack of `depth` encoder blocks."""

    def __init__(self, dim, depth, heads, dim_head, mlp_dim, dropout=0.0):
        super().__init__()
        self.blocks = nn.Sequential(*(EncoderBlock(dim, heads, dim_head, mlp_dim, dropout) for _ in range(depth)))

    def forward(self, x):
        return self.blocks(x)


# %%
class ViT(nn.Module):
    """Vision Transformer; the patch projection is a strided convolution."""

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
            raise ValueError("image_size must be a multiple of patch_size")
        if pool not in ("cls", "mean"):
            raise ValueError("pool must be 'cls' or 'mean'")
        per_side = image_size // patch_size
        self.patchify = nn.Conv2d(channels, dim, kernel_size=patch_size, stride=patch_size)
        self.cls = nn.Parameter(torch.zeros(1, 1, dim))
        self.pos = nn.Parameter(torch.randn(1, per_side * per_side + 1, dim) * 0.02)
        self.emb_drop = nn.Dropout(emb_dropout)
        self.encoder = Transformer(dim, depth, heads, dim_head, mlp_dim, dropout)
        self.pool = pool
        self.norm = nn.LayerNorm(dim)
        self.classifier = nn.Linear(dim, num_classes)

    def forward(self, img):
        tokens = self.patchify(img).flatten(2).transpose(1, 2)
        cls = self.cls.expand(tokens.size(0), -1, -1)
        x = self.emb_drop(torch.cat([cls, tokens], dim=1) + self.pos)
        x = self.encoder(x)
        if self.pool == "mean":
            x = x.mean(dim=1)
        else:
            x = x[:, 0]
        return self.classifier(self.norm(x))


# %% [markdown]
# ## 4. Training and evaluation
#
# A manual loop: no trainer library.


# %%
criterion = nn.CrossEntropyLoss()


def train_epoch(model, optimizer, data_loader, loss_history):
    """One pass over the training data."""
    model.train()
    seen = 0
    for step, (data, target) in enumerate(data_loader):
        data = data.to(device)
        target = target.to(device)
        optimizer.zero_grad()
        output = model(data)
        loss = criterion(output, target)
        loss.backward()
        optimizer.step()
        if step % 100 == 0:
            print(f"[{seen:5d} images done] loss = {loss.item():.4f}")
            loss_history.append(loss.item())
        seen += len(data)


# %%
@torch.no_grad()
def evaluate(model, data_loader, loss_history):
    """Average loss per image and accuracy on unseen images."""
    model.eval()
    total_loss = 0.0
    n_correct = 0
    n_images = 0
    for data, target in data_loader:
        data = data.to(device)
        target = target.to(device)
        output = model(data)
        total_loss += criterion(output, target).item() * len(target)
        n_correct += int((output.argmax(1) == target).sum())
        n_images += len(target)
    average = total_loss / n_images
    loss_history.append(average)
    print(f"Test: average loss = {average:.4f}, accuracy = {n_correct}/{n_images} = {n_correct / n_images:.2%}")


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
@torch.no_grad()
def plot_confusion_matrix(model, data_loader, class_names):
    """Rows: true classes, columns: predictions."""
    model.eval()
    k = len(class_names)
    counts = torch.zeros(k, k, dtype=torch.long)
    for data, target in data_loader:
        pred = model(data.to(device)).argmax(1).cpu()
        for t, p in zip(target.tolist(), pred.tolist()):
            counts[t, p] += 1

    fig, ax = plt.subplots(figsize=(7, 7))
    ax.imshow(counts.numpy(), cmap="viridis")
    ax.set_xticks(range(k), class_names, rotation=45, ha="right")
    ax.set_yticks(range(k), class_names)
    for i in range(k):
        for j in range(k):
            color = "black" if counts[i, j] > counts.max() / 2 else "white"
            ax.text(j, i, str(counts[i, j].item()), ha="center", va="center", color=color)
    ax.set_xlabel("predicted")
    ax.set_ylabel("true")
    fig.tight_layout()
    plt.show()


# %%
@torch.no_grad()
def plot_classwise_predictions(model, data_loader, class_names, samples_per_class=4):
    """A row of examples for every true class."""
    model.eval()
    k = len(class_names)
    chosen = [[] for _ in range(k)]
    for data, target in data_loader:
        pred = model(data.to(device)).argmax(1).cpu()
        for j in range(len(target)):
            bucket = chosen[int(target[j])]
            if len(bucket) < samples_per_class:
                bucket.append((data[j], int(pred[j])))
        if all(len(bucket) >= samples_per_class for bucket in chosen):
            break

    fig = plt.figure(figsize=(2.5 * samples_per_class, 2.6 * k))
    for c in range(k):
        for j, (image, p) in enumerate(chosen[c]):
            ax = fig.add_subplot(k, samples_per_class, c * samples_per_class + j + 1)
            ax.imshow(image.squeeze(0) * 0.5 + 0.5, cmap="gray", vmin=0, vmax=1)
            ax.set_title(f"true: {class_names[c]}\npred: {class_names[p]}", color="g" if p == c else "r", fontsize=8)
            ax.set_axis_off()
    fig.tight_layout()
    plt.show()


# %%
plot_confusion_matrix(model, test_loader, class_names)
plot_classwise_predictions(model, test_loader, class_names)
