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

STUDENT_ID = "400113255"  # put your own student number here

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
    """Layer normalization, then another module."""

    def __init__(self, dim, fn):
        super().__init__()
        self.layernorm = nn.LayerNorm(dim)
        self.module = fn

    def forward(self, x, **kwargs):
        return self.module(self.layernorm(x), **kwargs)


# %%
class FeedForward(nn.Module):
    """MLP of the encoder block."""

    def __init__(self, dim, hidden_dim, dropout=0.0):
        super().__init__()
        self.mlp = nn.Sequential(
            nn.Linear(dim, hidden_dim),
            nn.GELU(),
            nn.Dropout(p=dropout),
            nn.Linear(hidden_dim, dim),
            nn.Dropout(p=dropout),
        )

    def forward(self, x):
        return self.mlp(x)


# %%
class Attention(nn.Module):
    """Multi-head self attention, queries separate from keys/values."""

    def __init__(self, dim, heads=4, dim_head=64, dropout=0.0):
        super().__init__()
        inner = heads * dim_head
        self.heads = heads
        self.scale = dim_head ** (-0.5)
        self.to_q = nn.Linear(dim, inner, bias=False)
        self.to_kv = nn.Linear(dim, inner * 2, bias=False)
        self.attend = nn.Softmax(dim=-1)
        self.to_out = nn.Linear(inner, dim)
        self.drop = nn.Dropout(dropout)

    def forward(self, x):
        h = self.heads
        q = rearrange(self.to_q(x), "b n (h d) -> (b h) n d", h=h)
        k, v = rearrange(self.to_kv(x), "b n (kv h d) -> kv (b h) n d", kv=2, h=h)
        dots = torch.bmm(q, k.transpose(1, 2)) * self.scale
        attn = self.attend(dots)
        out = torch.bmm(attn, v)
        out = rearrange(out, "(b h) n d -> b n (h d)", h=h)
        return self.drop(self.to_out(out))


# %%
class Transformer(nn.Module):
    """Encoder of `depth` blocks."""

    def __init__(self, dim, depth, heads, dim_head, mlp_dim, dropout=0.0):
        super().__init__()
        self.layers = nn.ModuleList()
        for _ in range(depth):
            attention = PreNorm(dim, Attention(dim, heads=heads, dim_head=dim_head, dropout=dropout))
            mlp = PreNorm(dim, FeedForward(dim, mlp_dim, dropout=dropout))
            self.layers.append(nn.ModuleDict({"attention": attention, "mlp": mlp}))

    def forward(self, x):
        for layer in self.layers:
            residual = x
            x = layer["attention"](x) + residual
            x = layer["mlp"](x) + residual
        return x


# %%
class ViT(nn.Module):
    """Vision Transformer classifier."""

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
        assert image_size % patch_size == 0, "image_size must be divisible by patch_size"
        self.patch_size = patch_size
        self.pool = pool
        n_patches = (image_size // patch_size) * (image_size // patch_size)
        self.embed = nn.Linear(channels * patch_size * patch_size, dim)
        self.cls_token = nn.Parameter(torch.randn(1, 1, dim))
        self.pos_embedding = nn.Parameter(torch.randn(1, 1 + n_patches, dim))
        self.emb_dropout = nn.Dropout(emb_dropout)
        self.transformer = Transformer(dim, depth, heads, dim_head, mlp_dim, dropout=dropout)
        self.head_norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, num_classes)

    def forward(self, img):
        # unfold gives (batch, numbers of a patch, patches)
        patches = F.unfold(img, kernel_size=self.patch_size, stride=self.patch_size).transpose(1, 2)
        tokens = self.embed(patches)
        cls = self.cls_token.repeat(img.shape[0], 1, 1)
        tokens = torch.cat([cls, tokens], dim=1)
        tokens = self.emb_dropout(tokens + self.pos_embedding)
        tokens = self.transformer(tokens)
        if self.pool == "mean":
            out = tokens.mean(dim=1)
        else:
            out = tokens[:, 0]
        return self.head(self.head_norm(out))

# %% [markdown]
# ## 4. Training and evaluation
#
# A manual loop: no trainer library.


# %%
criterion = nn.CrossEntropyLoss()


def train_epoch(model, optimizer, data_loader, loss_history):
    """Train for one epoch."""
    model.train()
    n_seen = 0
    for idx, (inputs, targets) in enumerate(data_loader):
        inputs, targets = inputs.to(device), targets.to(device)
        optimizer.zero_grad()
        logits = model(inputs)
        loss = criterion(logits, targets)
        loss.backward()
        optimizer.step()
        n_seen += inputs.size(0)
        if idx % 100 == 0:
            loss_value = loss.item()
            print(f"batch {idx + 1}, {n_seen} images, loss {loss_value:.4f}")
            loss_history.append(loss_value)


# %%
def evaluate(model, data_loader, loss_history):
    """Average loss and accuracy over all images of the loader."""
    model.eval()
    running_loss = 0.0
    hits = 0
    n = 0
    with torch.no_grad():
        for inputs, targets in data_loader:
            inputs, targets = inputs.to(device), targets.to(device)
            logits = model(inputs)
            running_loss += criterion(logits, targets).item() * inputs.size(0)
            _, predicted = torch.max(logits, dim=1)
            hits += (predicted == targets).sum().item()
            n += inputs.size(0)
    mean_loss = running_loss / n
    loss_history.append(mean_loss)
    print(f"loss {mean_loss:.4f} | accuracy {hits / n * 100:.2f} % ({hits}/{n})")

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
    """Confusion matrix, rows = true, columns = predicted."""
    model.eval()
    targets_all, predicted_all = [], []
    with torch.no_grad():
        for inputs, targets in data_loader:
            logits = model(inputs.to(device))
            targets_all += targets.tolist()
            predicted_all += logits.argmax(dim=1).tolist()
    cm = confusion_matrix(targets_all, predicted_all)
    plt.figure(figsize=(9, 7))
    sns.heatmap(cm, annot=True, fmt="d", cmap="YlGnBu", xticklabels=class_names, yticklabels=class_names)
    plt.title("Confusion Matrix")
    plt.ylabel("True Class")
    plt.xlabel("Predicted Class")
    plt.xticks(rotation=45)
    plt.show()


# %%
def plot_classwise_predictions(model, data_loader, class_names, samples_per_class=4):
    """Examples for every class with true and predicted label."""
    model.eval()
    n_classes = len(class_names)
    counts = [0] * n_classes
    fig, axs = plt.subplots(
        n_classes, samples_per_class, figsize=(samples_per_class * 2.5, n_classes * 2.5), squeeze=False
    )
    for ax in axs.ravel():
        ax.axis("off")
    with torch.no_grad():
        for inputs, targets in data_loader:
            predicted = model(inputs.to(device)).argmax(dim=1)
            for i in range(inputs.size(0)):
                t, p = int(targets[i]), int(predicted[i])
                if counts[t] == samples_per_class:
                    continue
                ax = axs[t, counts[t]]
                counts[t] += 1
                ax.imshow(inputs[i].cpu().permute(1, 2, 0) * 0.5 + 0.5, cmap="gray")
                ax.set_title(
                    f"True: {class_names[t]}\nPred: {class_names[p]}",
                    fontsize=9,
                    color=("green" if t == p else "red"),
                )
            if all(c == samples_per_class for c in counts):
                break
    plt.tight_layout()
    plt.show()


# %%
plot_confusion_matrix(model, test_loader, class_names)
plot_classwise_predictions(model, test_loader, class_names)
