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

STUDENT_ID = "400114292"  # put your own student number here

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
    """Normalizes the tokens before fn sees them."""

    def __init__(self, dim, fn):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.bias = nn.Parameter(torch.zeros(dim))
        self.dim = dim
        self.fn = fn

    def forward(self, x, **kwargs):
        x = F.layer_norm(x, (self.dim,), self.weight, self.bias)
        return self.fn(x, **kwargs)


# %%
class FeedForward(nn.Sequential):
    """Token-wise MLP."""

    def __init__(self, dim, hidden_dim, dropout=0.0):
        super().__init__(
            nn.Linear(dim, hidden_dim),
            nn.ReLU(),
            nn.Dropout(dropout),
            nn.Linear(hidden_dim, dim),
            nn.Dropout(dropout),
        )

    def forward(self, x):
        return super().forward(x)


# %%
class Attention(nn.Module):
    """softmax(q k^T) v in every head, then the output projection."""

    def __init__(self, dim, heads=4, dim_head=64, dropout=0.0):
        super().__init__()
        self.heads = heads
        self.scale = dim**-0.5
        hidden = dim_head * heads
        self.W_q = nn.Linear(dim, hidden, bias=False)
        self.W_k = nn.Linear(dim, hidden, bias=False)
        self.W_v = nn.Linear(dim, hidden, bias=False)
        self.W_o = nn.Linear(hidden, dim)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        q = rearrange(self.W_q(x), "b n (h d) -> b h n d", h=self.heads)
        k = rearrange(self.W_k(x), "b n (h d) -> b h d n", h=self.heads)
        v = rearrange(self.W_v(x), "b n (h d) -> b h n d", h=self.heads)
        dots = torch.matmul(q, k) * self.scale
        out = torch.matmul(dots.softmax(dim=3), v)
        out = rearrange(out, "b h n d -> b n (h d)")
        return self.dropout(self.W_o(out))


# %%
class Transformer(nn.Module):
    """depth x (attention + feed-forward), each with a skip connection."""

    def __init__(self, dim, depth, heads, dim_head, mlp_dim, dropout=0.0):
        super().__init__()
        self.depth = depth
        for i in range(depth):
            self.add_module(f"attn{i}", PreNorm(dim, Attention(dim, heads, dim_head, dropout)))
            self.add_module(f"mlp{i}", PreNorm(dim, FeedForward(dim, mlp_dim, dropout)))

    def forward(self, x):
        for i in range(self.depth):
            skip = x
            x = getattr(self, f"attn{i}")(x)
            x = x + skip
            skip = x
            x = getattr(self, f"mlp{i}")(x)
            x = x + skip
        return x


# %%
class PatchEmbedding(nn.Module):
    """Image -> class token and patch tokens, with their positions."""

    def __init__(self, image_size, patch_size, channels, dim, dropout):
        super().__init__()
        self.conv = nn.Conv2d(channels, dim, kernel_size=patch_size, stride=patch_size)
        self.cls = nn.Parameter(torch.randn(1, 1, dim) * 0.02)
        self.pos = nn.Parameter(torch.randn(1, 1 + (image_size // patch_size) ** 2, dim) * 0.02)
        self.dropout = nn.Dropout(dropout)

    def forward(self, img):
        x = rearrange(self.conv(img), "b d h w -> b (h w) d")
        x = torch.cat([self.cls.expand(x.shape[0], -1, -1), x], dim=1)
        return self.dropout(x + self.pos)


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
        self.embed = PatchEmbedding(image_size, patch_size, channels, dim, emb_dropout)
        self.encoder = Transformer(dim, depth, heads, dim_head, mlp_dim, dropout)
        self.pool = pool
        self.head = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, num_classes))

    def forward(self, img):
        tokens = self.encoder(self.embed(img))
        if self.pool == "mean":
            return self.head(torch.mean(tokens, dim=1))
        return self.head(tokens[:, 0])


# %% [markdown]
# ## 4. Training and evaluation
#
# A manual loop: no trainer library.


# %%
def train_epoch(model, optimizer, data_loader, loss_history):
    """Trains for one epoch."""
    model.train()
    for i, (img, target) in enumerate(data_loader):
        img, target = img.to(device), target.to(device)
        for p in model.parameters():
            p.grad = None
        logits = model(img)
        log_p = logits.log_softmax(dim=1)
        loss = -log_p[torch.arange(len(target), device=log_p.device), target].mean()  # cross-entropy by hand
        loss.backward()
        optimizer.step()
        if i % 100 == 0:
            print(f"  {i:>4} batches done, loss {loss.item():.4f}")
            loss_history.append(loss.item())


# %%
def evaluate(model, data_loader, loss_history):
    """Tests the model."""
    model.eval()
    loss = torch.tensor(0.0, dtype=torch.double)
    correct = total = 0
    with torch.no_grad():
        for img, target in data_loader:
            img, target = img.to(device), target.to(device)
            logits = model(img)
            loss += F.cross_entropy(logits, target, reduction="sum").cpu()
            correct += torch.count_nonzero(logits.argmax(dim=1) == target).item()
            total += target.shape[0]
    mean = loss.item() / total
    print(f"  test loss = {mean:.4f}; {correct} of {total} right; accuracy = {correct / total * 100:.1f} %")
    loss_history.append(mean)


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
    """Counts, true classes in rows."""
    model.eval()
    size = len(class_names)
    table = torch.zeros(size, size).int()
    with torch.no_grad():
        for img, target in data_loader:
            out = model(img.to(device)).argmax(dim=1).cpu()
            table.index_put_((target.cpu(), out), torch.ones(len(target), dtype=torch.int), accumulate=True)
    plt.figure(figsize=(9, 7))
    ax = sns.heatmap(table.numpy(), annot=True, fmt="d", linewidths=0.5, cmap="YlGnBu")
    ax.set_xticklabels(class_names, rotation=45, ha="right")
    ax.set_yticklabels(class_names, rotation=0)
    ax.set_xlabel("predicted")
    ax.set_ylabel("true")
    plt.tight_layout()
    plt.show()


# %%
def plot_classwise_predictions(model, data_loader, class_names, samples_per_class=4):
    """A row of examples for every class."""
    model.eval()
    examples = {name: [] for name in class_names}
    with torch.no_grad():
        for img, target in data_loader:
            out = model(img.to(device)).argmax(dim=1).cpu()
            for picture, t, o in zip(img.cpu(), target.tolist(), out.tolist()):
                row = examples[class_names[o]]
                if len(row) < samples_per_class:
                    row.append((picture, class_names[t], class_names[o]))

    fig, axes = plt.subplots(
        len(class_names), samples_per_class, figsize=(2.2 * samples_per_class, 2.5 * len(class_names)), squeeze=False
    )
    for name, axes_row in zip(class_names, axes):
        for ax in axes_row:
            ax.axis("off")
        for ax, (picture, t, o) in zip(axes_row, examples[name]):
            ax.imshow(picture.squeeze(0) * 0.5 + 0.5, cmap="gray", vmin=0, vmax=1)
            ax.set_title(f"True: {t}\nPred: {o}", fontsize=8, color="green" if t == o else "red")
    fig.tight_layout()
    plt.show()


# %%
plot_confusion_matrix(model, test_loader, class_names)
plot_classwise_predictions(model, test_loader, class_names)
