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

import math
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

STUDENT_ID = "400110626"  # put your own student number here

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
        self.norm_layer = nn.LayerNorm([dim])
        self.sublayer = fn

    def forward(self, x, **kwargs):
        return self.sublayer(self.norm_layer(x), **kwargs)


# %%
class FeedForward(nn.Module):
    def __init__(self, dim, hidden_dim, dropout=0.0):
        super().__init__()
        self.layers = nn.ModuleList(
            [nn.Linear(dim, hidden_dim), nn.GELU(), nn.Dropout(dropout), nn.Linear(hidden_dim, dim), nn.Dropout(dropout)]
        )

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


# %%
def scaled_attention(q, k, v):
    """softmax(q k^T / sqrt(d)) v for q, k, v of shape (..., tokens, d)"""
    d = q.size(-1)
    scores = torch.matmul(q, k.transpose(-2, -1)) / math.sqrt(d)
    return torch.matmul(torch.softmax(scores, dim=-1), v)


class Attention(nn.Module):
    def __init__(self, dim, heads=4, dim_head=64, dropout=0.0):
        super().__init__()
        # the weights of all heads as parameters: (3, heads, dim, dim_head)
        self.w_qkv = nn.Parameter(torch.empty(3, heads, dim, dim_head))
        nn.init.normal_(self.w_qkv, std=dim**-0.5)
        self.w_out = nn.Linear(heads * dim_head, dim)
        self.drop = nn.Dropout(dropout)

    def forward(self, x):
        q, k, v = torch.einsum("bnd,thde->tbhne", x, self.w_qkv)
        out = scaled_attention(q, k, v)
        out = rearrange(out, "b h n e -> b n (h e)")
        return self.drop(self.w_out(out))


# %%
class Transformer(nn.Module):
    def __init__(self, dim, depth, heads, dim_head, mlp_dim, dropout=0.0):
        super().__init__()
        make_attention = lambda: PreNorm(dim, Attention(dim, heads=heads, dim_head=dim_head, dropout=dropout))
        make_feedforward = lambda: PreNorm(dim, FeedForward(dim, mlp_dim, dropout=dropout))
        self.blocks = nn.ModuleList([nn.ModuleList([make_attention(), make_feedforward()]) for _ in range(depth)])

    def forward(self, x):
        for block in self.blocks:
            for part in block:
                x = x + part(x)
        return x


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
        if pool not in ("cls", "mean"):
            raise ValueError("pool must be cls or mean")
        self.patch_size = patch_size
        self.pool = pool
        self.proj = nn.Linear(channels * patch_size**2, dim)
        self.class_embedding = nn.Parameter(torch.zeros(1, 1, dim))
        self.position_embedding = nn.Parameter(torch.zeros(1, (image_size // patch_size) ** 2 + 1, dim))
        nn.init.normal_(self.class_embedding, std=0.02)
        nn.init.normal_(self.position_embedding, std=0.02)
        self.dropout = nn.Dropout(emb_dropout)
        self.transformer = Transformer(dim, depth, heads, dim_head, mlp_dim, dropout)
        self.head = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, num_classes))

    def forward(self, img):
        p = self.patch_size
        patches = img.unfold(2, p, p).unfold(3, p, p)  # b, c, rows, columns, p, p
        patches = patches.permute(0, 2, 3, 1, 4, 5).flatten(3).flatten(1, 2)
        tokens = self.proj(patches)
        first = self.class_embedding.repeat(tokens.size(0), 1, 1)
        tokens = torch.cat((first, tokens), dim=1) + self.position_embedding
        tokens = self.transformer(self.dropout(tokens))
        features = tokens[:, 0] if self.pool == "cls" else tokens.mean(dim=1)
        return self.head(features)


# %% [markdown]
# ## 4. Training and evaluation
#
# A manual loop: no trainer library.


# %%
def train_epoch(model, optimizer, data_loader, loss_history):
    model.train()
    for i, (images, labels) in enumerate(data_loader):
        images, labels = images.to(device), labels.to(device)
        optimizer.zero_grad()
        probabilities = F.softmax(model(images), dim=1)
        loss = F.cross_entropy(probabilities, labels)
        loss.backward()
        optimizer.step()
        if i % 100 == 0:
            print(f"Batch {i + 1} of {len(data_loader)}, loss: {loss.item():.4f}")
            loss_history.append(loss.item())


# %%
def evaluate(model, data_loader, loss_history):
    model.eval()
    n_images, n_correct, sum_loss = 0, 0, 0.0
    with torch.no_grad():
        for images, labels in data_loader:
            images, labels = images.to(device), labels.to(device)
            scores = model(images)
            sum_loss += len(images) * F.cross_entropy(scores, labels).item()
            n_correct += (scores.max(dim=1).indices == labels).sum().item()
            n_images += len(images)
    loss_history.append(sum_loss / n_images)
    print(f"Loss: {sum_loss / n_images:.4f}, accuracy: {n_correct} / {n_images} = {n_correct / n_images:.1%}")


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
    truth, guess = [], []
    with torch.no_grad():
        for images, labels in data_loader:
            guess += model(images.to(device)).argmax(dim=1).tolist()
            truth += labels.tolist()
    matrix = [[sum(t == i and g == j for t, g in zip(truth, guess)) for j in range(len(class_names))] for i in range(len(class_names))]
    plt.figure(figsize=(8, 7))
    sns.heatmap(matrix, annot=True, fmt="d", cmap="YlGnBu", xticklabels=class_names, yticklabels=class_names)
    plt.xlabel("predicted label")
    plt.ylabel("true label")
    plt.tight_layout()
    plt.show()


# %%
def plot_classwise_predictions(model, data_loader, class_names, samples_per_class=4):
    model.eval()
    rows = {label: [] for label in range(len(class_names))}
    with torch.no_grad():
        for images, labels in data_loader:
            guesses = model(images.to(device)).argmax(dim=1)
            for image, label, guess in zip(images, labels, guesses):
                row = rows[int(label)]
                if len(row) < samples_per_class:
                    row.append((image, int(guess)))
    fig = plt.figure(figsize=(2.6 * samples_per_class, 2.8 * len(class_names)))
    grid = fig.add_gridspec(len(class_names), samples_per_class)
    for label, row in rows.items():
        for column, (image, guess) in enumerate(row):
            ax = fig.add_subplot(grid[label, column])
            ax.imshow(image[0].cpu().mul(0.5).add(0.5), cmap="gray", vmin=0, vmax=1)
            ax.set_xticks([])
            ax.set_yticks([])
            ax.set_title(
                f"true {class_names[label]}\npredicted {class_names[guess]}",
                fontsize=8,
                color="darkgreen" if label == guess else "crimson",
            )
    fig.tight_layout()
    plt.show()


# %%
plot_confusion_matrix(model, test_loader, class_names)
plot_classwise_predictions(model, test_loader, class_names)
