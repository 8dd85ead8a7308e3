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

STUDENT_ID = "400112231"  # put your own student number here

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
    """LayerNorm(x) -> fn"""

    def __init__(self, dim, fn):
        super().__init__()
        self.norm, self.fn = nn.LayerNorm(dim), fn

    def forward(self, x, **kwargs):
        return self.fn(self.norm(x), **kwargs)


# %%
class FeedForward(nn.Module):
    """dim -> hidden_dim -> dim"""

    def __init__(self, dim, hidden_dim, dropout=0.0):
        super().__init__()
        self.up = nn.Linear(dim, hidden_dim)
        self.down = nn.Linear(hidden_dim, dim)
        self.drop = nn.Dropout(dropout)

    def forward(self, x):
        h = self.drop(F.relu(self.up(x)))
        return self.drop(self.down(h))


# %%
class Attention(nn.Module):
    """multi-head self-attention, (b, n, dim) -> (b, n, dim)"""

    def __init__(self, dim, heads=4, dim_head=64, dropout=0.0):
        super().__init__()
        self.h, self.d = heads, dim_head
        self.Wq = nn.Linear(dim, heads * dim_head, bias=False)
        self.Wk = nn.Linear(dim, heads * dim_head, bias=False)
        self.Wv = nn.Linear(dim, heads * dim_head, bias=False)
        self.Wo = nn.Linear(heads * dim_head, dim)
        self.drop = nn.Dropout(dropout)

    def forward(self, x):
        b, n, _ = x.shape
        # here the head axis stays behind the tokens: (b, n, h, d)
        q = self.Wq(x).view(b, n, self.h, self.d)
        k = self.Wk(x).view(b, n, self.h, self.d)
        v = self.Wv(x).view(b, n, self.h, self.d)
        a = torch.einsum("bqhd,bkhd->bhqk", q, k) / self.d**0.5
        a = F.softmax(a, dim=-1)
        o = torch.einsum("bhqk,bkhd->bqhd", a, v).flatten(2)
        return self.drop(self.Wo(o))


# %%
class Transformer(nn.Module):
    """depth x (attention + feed-forward)"""

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
    """(b, channels, image_size, image_size) -> logits"""

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
        n = (image_size // patch_size) ** 2
        self.pool = pool
        self.embed = nn.Conv2d(channels, dim, kernel_size=patch_size, stride=patch_size)
        self.cls = nn.Parameter(torch.randn(1, 1, dim))
        self.pos = nn.Parameter(torch.randn(1, n + 1, dim))
        self.drop = nn.Dropout(emb_dropout)
        self.encoder = Transformer(dim, depth, heads, dim_head, mlp_dim, dropout)
        self.norm = nn.LayerNorm(dim)
        self.fc = nn.Linear(dim, 6)  # one score for every kind of defect

    def forward(self, img):
        x = self.embed(img).flatten(2).transpose(1, 2)  # (b, n, dim)
        x = torch.cat([self.cls.expand(len(x), 1, -1), x], dim=1)  # (b, n + 1, dim)
        x = self.encoder(self.drop(x + self.pos))
        x = x[:, 0] if self.pool == "cls" else x.mean(1)
        return self.fc(self.norm(x))


# %% [markdown]
# ## 4. Training and evaluation
#
# A manual loop: no trainer library.


# %%
def train_epoch(model, optimizer, data_loader, loss_history):
    """Trains the model for one pass over the data.

    For every batch: clear the gradients, compute the scores and the loss, go backward, take one step. Every
    100 batches (the first, the 101st, ...) print how far it has got and append the loss of that batch.

    Args:
        model: The ViT. It must be in training mode.
        optimizer: Holds the model's parameters.
        data_loader: Yields (images, labels): (batch, channels, height, width) and (batch,).
        loss_history: A list; floats are appended to it.
    """
    model.train()
    n_batches = len(data_loader)
    for i, (x, y) in enumerate(data_loader):
        x, y = x.to(device), y.to(device)
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if i % 100 == 0:
            loss_history.append(loss.item())
            print(f"[{i + 1:4d}/{n_batches}] loss = {loss_history[-1]:.4f}")


# %%
def evaluate(model, data_loader, loss_history):
    """Measures the model on data that it was not trained on.

    Appends the average loss per image to the history and prints it together with the accuracy.

    Args:
        model: The ViT. It must be in evaluation mode, and no gradients may be computed.
        data_loader: Yields (images, labels). The last batch may be smaller than the others.
        loss_history: A list; one float is appended to it.
    """
    model.eval()
    losses, right = [], []
    with torch.no_grad():
        for x, y in data_loader:
            x, y = x.to(device), y.to(device)
            z = model(x)
            losses.append(F.cross_entropy(z, y, reduction="none"))
            right.append(z.argmax(1) == y)
    losses, right = torch.cat(losses), torch.cat(right)
    loss = losses.mean().item()
    loss_history.append(loss)
    print(f"test: loss = {loss:.4f}, accuracy = {right.float().mean().item():.4f} ({right.sum().item()}/{len(right)})")


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
    """Draws how often each true class (rows) was taken for each class (columns), with the counts written in.

    Args:
        model: The trained ViT.
        data_loader: Yields (images, labels).
        class_names: The names, in the order of the labels. They are written on both axes.
    """
    model.eval()
    with torch.no_grad():
        pairs = [(y, model(x.to(device)).argmax(1).cpu()) for x, y in data_loader]
    y = torch.cat([p[0] for p in pairs])
    y_hat = torch.cat([p[1] for p in pairs])
    n = len(class_names)
    cm = torch.bincount(y * n + y_hat, minlength=n * n).reshape(n, n)
    fig, ax = plt.subplots(figsize=(7, 6))
    ax.imshow(cm, cmap="Blues")
    for i in range(n):
        for j in range(n):
            ax.text(j, i, str(cm[i, j].item()), ha="center", va="center", color="darkorange")
    ax.set_xticks(range(n), class_names, rotation=45, ha="right")
    ax.set_yticks(range(n), class_names)
    ax.set_xlabel("predicted")
    ax.set_ylabel("true")
    ax.set_title("Confusion matrix (test images)")
    fig.tight_layout()
    plt.show()


# %%
def plot_classwise_predictions(model, data_loader, class_names, samples_per_class=4):
    """Draws examples of every class with the true and the predicted label on each image.

    Args:
        model: The trained ViT.
        data_loader: Yields (images, labels).
        class_names: The names, in the order of the labels.
        samples_per_class: How many images of each true class are drawn (4 of 6 classes: 24 images).
    """
    model.eval()
    xs, ys, ps = [], [], []
    with torch.no_grad():
        for x, y in data_loader:
            xs.append(x)
            ys.append(y)
            ps.append(model(x.to(device)).argmax(1).cpu())
    xs, ys, ps = torch.cat(xs), torch.cat(ys), torch.cat(ps)
    n = len(class_names)
    fig, axes = plt.subplots(n, samples_per_class, figsize=(2 * samples_per_class, 2.3 * n), squeeze=False)
    for ax in axes.flat:
        ax.axis("off")
    for c in range(n):
        chosen = torch.nonzero(ys == c).flatten()[:samples_per_class].tolist()
        for ax, i in zip(axes[c], chosen, strict=False):
            ax.imshow((xs[i] * 0.5 + 0.5).permute(1, 2, 0), cmap="gray", vmin=0, vmax=1)
            ok = ps[i] == ys[i]
            ax.set_title(
                f"T: {class_names[ys[i]]}\nP: {class_names[ps[i]]}", fontsize=8, color="green" if ok else "red"
            )
    fig.tight_layout()
    plt.show()


# %%
plot_confusion_matrix(model, test_loader, class_names)
plot_classwise_predictions(model, test_loader, class_names)
