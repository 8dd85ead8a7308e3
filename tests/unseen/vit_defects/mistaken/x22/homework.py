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

STUDENT_ID = "400114223"  # put your own student number here

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
        self.layer_norm = nn.LayerNorm(dim)
        self.sublayer = fn

    def forward(self, x, **kwargs):
        normed = self.layer_norm(x)
        return self.sublayer(normed, **kwargs)


# %%
class FeedForward(nn.Module):
    """MLP: dim -> hidden_dim -> dim."""

    def __init__(self, dim, hidden_dim, dropout=0.0):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(dim, hidden_dim),
            nn.GELU(),
            nn.Dropout(dropout),
            nn.Linear(hidden_dim, dim),
            nn.Dropout(dropout),
        )

    def forward(self, x):
        return self.net(x)


# %%
class Attention(nn.Module):
    """Self-attention with several heads, three separate projections."""

    def __init__(self, dim, heads=4, dim_head=64, dropout=0.0):
        super().__init__()
        self.heads = heads
        self.dim_head = dim_head
        self.q_proj = nn.Linear(dim, heads * dim_head)
        self.k_proj = nn.Linear(dim, heads * dim_head)
        self.v_proj = nn.Linear(dim, heads * dim_head)
        self.o_proj = nn.Linear(heads * dim_head, dim)
        self.drop = nn.Dropout(dropout)

    def _split(self, t):
        b, n, _ = t.shape
        return t.view(b, n, self.heads, self.dim_head).permute(0, 2, 1, 3)  # b, h, n, d

    def forward(self, x):
        b, n, _ = x.shape
        q = self._split(self.q_proj(x))
        k = self._split(self.k_proj(x))
        v = self._split(self.v_proj(x))
        out = F.scaled_dot_product_attention(q, k, v)  # scales with 1/sqrt(dim_head) itself
        out = out.permute(0, 2, 1, 3).reshape(b, n, self.heads * self.dim_head)
        return self.drop(self.o_proj(out))


# %%
class Block(nn.Module):
    """One encoder block."""

    def __init__(self, dim, heads, dim_head, mlp_dim, dropout):
        super().__init__()
        self.attn = PreNorm(dim, Attention(dim, heads, dim_head, dropout))
        self.mlp = PreNorm(dim, FeedForward(dim, mlp_dim, dropout))

    def forward(self, x):
        x = x + self.attn(x)
        x = x + self.mlp(x)
        return x


class Transformer(nn.Module):
    """A stack of `depth` blocks."""

    def __init__(self, dim, depth, heads, dim_head, mlp_dim, dropout=0.0):
        super().__init__()
        self.blocks = nn.Sequential(*[Block(dim, heads, dim_head, mlp_dim, dropout) for _ in range(depth)])

    def forward(self, x):
        return self.blocks(x)


# %%
class ViT(nn.Module):
    """Vision Transformer with a convolution as patch projection."""

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
            raise ValueError("pool is 'cls' or 'mean'")
        n_tokens = (image_size // patch_size) ** 2 + 1
        self.pool = pool
        self.patchify = nn.Conv2d(channels, dim, kernel_size=patch_size, stride=patch_size)
        self.class_token = nn.Parameter(torch.zeros(1, 1, dim))
        self.positions = nn.Parameter(torch.zeros(1, n_tokens, dim))
        nn.init.trunc_normal_(self.class_token, std=0.02)
        nn.init.trunc_normal_(self.positions, std=0.02)
        self.emb_drop = nn.Dropout(emb_dropout)
        self.encoder = Transformer(dim, depth, heads, dim_head, mlp_dim, dropout)
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, num_classes)

    def forward(self, img):
        tokens = self.patchify(img).flatten(2).transpose(1, 2)  # b, n, dim
        cls = self.class_token.expand(tokens.shape[0], -1, -1)
        tokens = torch.cat([cls, tokens], dim=1) + self.positions
        tokens = self.encoder(self.emb_drop(tokens))
        if self.pool == "cls":
            pooled = tokens[:, 0]
        else:
            pooled = tokens.mean(dim=1)
        return self.head(self.norm(pooled))


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
    for step, (x, y) in enumerate(data_loader):
        x = x.to(device)
        y = y.to(device)

        optimizer.zero_grad()
        logits = model(x)
        loss = criterion(logits, y)
        loss.backward()
        optimizer.step()

        seen += len(y)
        if step % 100 == 0:
            loss_history.append(loss.item())
            print(f"step {step:4d} | {seen} images | loss = {loss.item():.4f}")


# %%
@torch.no_grad()
def evaluate(model, data_loader, loss_history):
    """Average loss per image and accuracy."""
    model.eval()
    loss_sum = 0.0
    hits = 0
    count = 0
    for x, y in data_loader:
        x, y = x.to(device), y.to(device)
        logits = model(x)
        loss_sum += criterion(logits, y).item() * y.size(0)
        hits += (logits.argmax(1) == y).sum().item()
        count += y.size(0)
    avg = loss_sum / count
    loss_history.append(avg)
    print(f"Average test loss: {avg:.4f}  Accuracy: {hits}/{count} ({hits / count:.2%})")


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
    """Rows: true class, columns: predicted class."""
    model.eval()
    n = len(class_names)
    counts = torch.zeros(n, n, dtype=torch.long)
    for x, y in data_loader:
        predicted = model(x.to(device)).argmax(1).cpu()
        for t, p in zip(y.tolist(), predicted.tolist()):
            counts[t, p] += 1

    fig, ax = plt.subplots(figsize=(7, 7))
    ax.imshow(counts.numpy(), cmap="viridis")
    ax.set_xticks(range(n), class_names, rotation=45, ha="right")
    ax.set_yticks(range(n), class_names)
    for i in range(n):
        for j in range(n):
            color = "black" if counts[i, j] > counts.max() / 2 else "white"
            ax.text(j, i, str(counts[i, j].item()), ha="center", va="center", color=color)
    ax.set_xlabel("predicted class")
    ax.set_ylabel("true class")
    fig.tight_layout()
    plt.show()


# %%
@torch.no_grad()
def plot_classwise_predictions(model, data_loader, class_names, samples_per_class=4):
    """One row per true class; green = right, red = wrong."""
    model.eval()
    picked = {c: [] for c in range(len(class_names))}
    for x, y in data_loader:
        predicted = model(x.to(device)).argmax(1).cpu()
        for image, label, guess in zip(x, y, predicted):
            if label in picked and len(picked[label]) < samples_per_class:
                picked[label].append((image, guess))

    fig, axes = plt.subplots(
        len(class_names), samples_per_class, figsize=(2.5 * samples_per_class, 2.5 * len(class_names)), squeeze=False
    )
    for ax in axes.flat:
        ax.axis("off")
    for c, samples in picked.items():
        for ax, (image, guess) in zip(axes[c], samples):
            ax.imshow(image[0] * 0.5 + 0.5, cmap="gray", vmin=0, vmax=1)
            color = "green" if guess == c else "red"
            ax.set_title(f"T: {class_names[c]}\nP: {class_names[guess]}", color=color, fontsize=9)
    fig.tight_layout()
    plt.show()


# %%
plot_confusion_matrix(model, test_loader, class_names)
plot_classwise_predictions(model, test_loader, class_names)
