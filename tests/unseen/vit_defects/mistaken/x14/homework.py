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

STUDENT_ID = "400114148"  # put your own student number here

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
    """Normalize first, then call fn."""

    def __init__(self, dim, fn):
        super().__init__()
        self.ln = nn.LayerNorm(dim)
        self.fn = fn

    def forward(self, x, **kwargs):
        return self.fn(self.ln(x), **kwargs)


# %%
class FeedForward(nn.Module):
    """The MLP of a block."""

    def __init__(self, dim, hidden_dim, dropout=0.0):
        super().__init__()
        layers = [nn.Linear(dim, hidden_dim), nn.ReLU(), nn.Dropout(dropout)]
        layers += [nn.Linear(hidden_dim, dim), nn.Dropout(dropout)]
        self.mlp = nn.Sequential(*layers)

    def forward(self, x):
        return self.mlp(x)


# %%
class Attention(nn.Module):
    """Multi-head self-attention."""

    def __init__(self, dim, heads=4, dim_head=64, dropout=0.0):
        super().__init__()
        self.heads = heads
        self.d = dim // heads  # the width is shared by the heads
        self.inner = self.d * heads
        self.qkv = nn.Linear(dim, 3 * self.inner, bias=False)
        self.proj = nn.Linear(self.inner, dim)
        self.proj_drop = nn.Dropout(dropout)

    def forward(self, x):
        B, N, _ = x.shape
        qkv = self.qkv(x).reshape(B, N, 3, self.heads, self.d).permute(2, 0, 3, 1, 4)
        q, k, v = qkv[0], qkv[1], qkv[2]  # B, heads, N, d
        attn = (q @ k.transpose(-2, -1)) / self.d**0.5
        attn = attn.softmax(dim=-1)
        y = (attn @ v).transpose(1, 2).reshape(B, N, self.inner)
        return self.proj_drop(self.proj(y))


# %%
class Transformer(nn.Module):
    """The encoder."""

    def __init__(self, dim, depth, heads, dim_head, mlp_dim, dropout=0.0):
        super().__init__()
        self.layers = nn.ModuleList([])
        for _ in range(depth):
            self.layers.append(
                nn.ModuleDict(
                    {
                        "attn": PreNorm(dim, Attention(dim, heads, dim_head, dropout)),
                        "mlp": PreNorm(dim, FeedForward(dim, mlp_dim, dropout)),
                    }
                )
            )

    def forward(self, x):
        for layer in self.layers:
            x = x + layer["attn"](x)
            x = x + layer["mlp"](x)
        return x


# %%
class ViT(nn.Module):
    """The whole model."""

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
        self.use_cls = pool == "cls"
        grid = image_size // patch_size
        self.patch = nn.Conv2d(channels, dim, patch_size, stride=patch_size)
        self.cls_token = nn.Parameter(torch.zeros(dim))
        self.pos_embed = nn.Parameter(torch.randn(grid * grid + 1, dim) * 0.02)
        self.pos_drop = nn.Dropout(emb_dropout)
        self.encoder = Transformer(dim, depth, heads, dim_head, mlp_dim, dropout)
        self.head_norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, num_classes)

    def forward(self, img):
        x = rearrange(self.patch(img), "b d h w -> b (h w) d")
        cls = repeat(self.cls_token, "d -> b 1 d", b=img.shape[0])
        x = torch.cat((cls, x), 1)
        x = self.pos_drop(x + self.pos_embed)
        x = self.encoder(x)
        x = x[:, 0] if self.use_cls else x.mean(1)
        return self.head(self.head_norm(x))


# %% [markdown]
# ## 4. Training and evaluation
#
# A manual loop: no trainer library.


# %%
def train_epoch(model, optimizer, data_loader, loss_history):
    """One pass over the training data."""
    model.train()
    dev = next(model.parameters()).device
    n_batches = len(data_loader)
    for b, batch in enumerate(data_loader):
        imgs, targets = batch[0].to(dev), batch[1].to(dev)
        optimizer.zero_grad(set_to_none=True)
        loss = F.cross_entropy(model(imgs), targets)
        loss.backward()
        optimizer.step()
        if b % 100 == 0:
            print(f"{b + 1}/{n_batches}: {loss.item():.4f}")
            loss_history.append(float(loss.item()))


# %%
def evaluate(model, data_loader, loss_history):
    """Loss and accuracy on the test data."""
    model.eval()
    dev = next(model.parameters()).device
    test_loss = 0.0
    correct = 0
    size = 0
    with torch.no_grad():
        for imgs, targets in data_loader:
            imgs, targets = imgs.to(dev), targets.to(dev)
            out = model(imgs)
            test_loss += F.cross_entropy(out, targets).item()
            correct += (out.argmax(1) == targets).sum().item()
            size += targets.shape[0]
    test_loss /= len(data_loader)
    loss_history.append(test_loss)
    print(f"Average test loss: {test_loss:.4f}  Accuracy: {correct}/{size} = {100.0 * correct / size:.2f}%")


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
    """Rows: true class, columns: predicted class."""
    model.eval()
    dev = next(model.parameters()).device
    k = len(class_names)
    counts = [[0] * k for _ in range(k)]
    with torch.no_grad():
        for imgs, targets in data_loader:
            guesses = model(imgs.to(dev)).argmax(1).tolist()
            for t, g in zip(targets.tolist(), guesses):
                counts[t][g] += 1
    fig, ax = plt.subplots(figsize=(7, 7))
    ax.imshow(counts, cmap="Blues")
    ax.set_xticks(range(k), class_names, rotation=45, ha="right")
    ax.set_yticks(range(k), class_names)
    highest = max(max(row) for row in counts)
    for r in range(k):
        for c in range(k):
            ax.text(
                c, r, str(counts[r][c]), ha="center", va="center", color="white" if counts[r][c] > highest / 2 else "black"
            )
    ax.set_xlabel("Predicted label")
    ax.set_ylabel("True label")
    ax.set_title("Confusion matrix")
    fig.tight_layout()
    plt.show()


# %%
def plot_classwise_predictions(model, data_loader, class_names, samples_per_class=4):
    """samples_per_class images of every class with the true and the predicted name."""
    model.eval()
    dev = next(model.parameters()).device
    picked = {name: [] for name in class_names}
    with torch.no_grad():
        for imgs, targets in data_loader:
            guesses = model(imgs.to(dev)).argmax(1).cpu()
            for im, t, g in zip(imgs, targets, guesses):
                name = class_names[t.item()]
                if len(picked[name]) < samples_per_class:
                    picked[name].append((im, class_names[g.item()]))
    fig, axs = plt.subplots(
        len(class_names), samples_per_class, figsize=(2.5 * samples_per_class, 2.7 * len(class_names)), squeeze=False
    )
    for row, name in zip(axs, class_names):
        for ax in row:
            ax.set_axis_off()
        for ax, (im, guess) in zip(row, picked[name]):
            im = (im * 0.5 + 0.5).clamp(0, 1)
            ax.imshow(im.permute(1, 2, 0).numpy(), cmap="gray", vmin=0, vmax=1)
            ax.set_title(f"T: {name}\nP: {guess}", color="g" if guess == name else "r", fontsize=9)
    fig.tight_layout()
    plt.show()


# %%
plot_confusion_matrix(model, test_loader, class_names)
plot_classwise_predictions(model, test_loader, class_names)
