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

STUDENT_ID = "400114075"  # put your own student number here

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
    """fn(LayerNorm(x)) -- the skip connection is made elsewhere"""

    def __init__(self, dim, fn):
        super(PreNorm, self).__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.bias = nn.Parameter(torch.zeros(dim))
        self.fn = fn

    def forward(self, x, **kwargs):
        x = F.layer_norm(x, x.shape[-1:], self.weight, self.bias)
        return self.fn(x, **kwargs)


# %%
class FeedForward(nn.Module):
    """dim -> hidden_dim -> dim"""

    def __init__(self, dim, hidden_dim, dropout=0.0):
        super(FeedForward, self).__init__()
        self.p = dropout
        self.up = nn.Linear(dim, hidden_dim)
        self.down = nn.Linear(hidden_dim, dim)

    def forward(self, x):
        x = F.dropout(F.gelu(self.up(x)), p=self.p, training=self.training)
        return F.dropout(self.down(x), p=self.p, training=self.training)


# %%
class Head(nn.Module):
    """a single head: (b, n, dim) -> (b, n, dim_head)"""

    def __init__(self, dim, dim_head):
        super(Head, self).__init__()
        self.q = nn.Linear(dim, dim_head, bias=False)
        self.k = nn.Linear(dim, dim_head, bias=False)
        self.v = nn.Linear(dim, dim_head, bias=False)
        self.scale = np.sqrt(dim_head)

    def forward(self, x):
        scores = torch.bmm(self.q(x), self.k(x).transpose(1, 2)) / self.scale
        return torch.bmm(scores.softmax(dim=2), self.v(x))


class Attention(nn.Module):
    """several heads side by side, then a linear layer"""

    def __init__(self, dim, heads=4, dim_head=64, dropout=0.0):
        super(Attention, self).__init__()
        self.heads = nn.ModuleList([Head(dim, dim_head) for _ in range(heads)])
        self.linear = nn.Linear(heads * dim_head, dim)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        joined = torch.cat([head(x) for head in self.heads], dim=-1)
        return self.dropout(self.linear(joined))


# %%
class Transformer(nn.Module):
    """the encoder"""

    def __init__(self, dim, depth, heads, dim_head, mlp_dim, dropout=0.0):
        super(Transformer, self).__init__()
        self.attns = nn.ModuleList([PreNorm(dim, Attention(dim, heads, dim_head, dropout)) for _ in range(depth)])
        self.ffs = nn.ModuleList([PreNorm(dim, FeedForward(dim, mlp_dim, dropout)) for _ in range(depth)])
        self.depth = depth

    def forward(self, x):
        for i in range(self.depth):
            x = x + self.attns[i](x)
            x = x + self.ffs[i](x)
        return x


# %%
class ViT(nn.Module):
    """image -> scores"""

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
        super(ViT, self).__init__()
        self.pool = pool
        self.n_patches = (image_size // patch_size) ** 2
        self.cut = Rearrange("b c (nh p) (nw q) -> b (nh nw) (c p q)", p=patch_size, q=patch_size)
        self.embed = nn.Linear(channels * patch_size * patch_size, dim)
        self.cls = nn.Parameter(torch.randn(1, 1, dim))
        self.pos = nn.Parameter(torch.randn(1, 1 + self.n_patches, dim))
        self.dropout = nn.Dropout(emb_dropout)
        self.transformer = Transformer(dim, depth, heads, dim_head, mlp_dim, dropout)
        self.ln = nn.LayerNorm(dim)
        self.fc = nn.Linear(dim, num_classes)

    def forward(self, img):
        b = img.size(0)
        t = self.embed(self.cut(img))
        t = torch.cat([self.cls.repeat(b, 1, 1), t], dim=1)
        t = self.dropout(t + self.pos)
        t = self.transformer(t)
        t = {"cls": t[:, 0], "mean": t.mean(dim=1)}[self.pool]
        return self.fc(self.ln(t))


# %% [markdown]
# ## 4. Training and evaluation
#
# A manual loop: no trainer library.


# %%
def train_epoch(model, optimizer, data_loader, loss_history):
    """trains on every batch once"""
    loss_func = nn.CrossEntropyLoss()
    model.train()
    for i, (inputs, targets) in enumerate(data_loader):
        inputs, targets = inputs.to(device), targets.to(device)
        outputs = model(inputs)
        loss = loss_func(outputs, targets)
        loss.backward()
        # clear the gradients so that they do not add up
        optimizer.zero_grad()
        optimizer.step()

        if i % 100 == 0:
            value = float(loss.detach())
            print(f"step {i}: training loss {value:.4f}")
            loss_history.append(value)


# %%
def evaluate(model, data_loader, loss_history):
    """average loss per image and accuracy"""
    loss_func = nn.CrossEntropyLoss(reduction="sum")
    model.eval()
    loss_total = 0.0
    right = 0
    images_total = 0
    with torch.no_grad():
        for inputs, targets in data_loader:
            inputs, targets = inputs.to(device), targets.to(device)
            outputs = model(inputs)
            loss_total += float(loss_func(outputs, targets))
            right += int(torch.sum(torch.argmax(outputs, dim=1) == targets))
            images_total += inputs.shape[0]
    mean_loss = loss_total / images_total
    loss_history.append(mean_loss)
    print(f"test loss {mean_loss:.4f}")
    print(f"test accuracy {100 * right / images_total:.2f} % ({right} correct)")


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
    """counts, true classes downwards, predicted classes to the right"""
    model.eval()
    n = len(class_names)
    matrix = np.zeros((n, n), dtype=int)
    with torch.no_grad():
        for inputs, targets in data_loader:
            guess = model(inputs.to(device)).argmax(dim=1).cpu().numpy()
            np.add.at(matrix, (targets.numpy(), guess), 1)

    fig, ax = plt.subplots(figsize=(8, 7))
    sns.heatmap(matrix, annot=True, fmt="d", cmap="YlGnBu", linewidths=0.5, ax=ax)
    ax.set_xticks(np.arange(n) + 0.5, class_names, rotation=45, ha="right")
    ax.set_yticks(np.arange(n) + 0.5, class_names, rotation=0)
    ax.set_xlabel("predicted")
    ax.set_ylabel("true")
    plt.tight_layout()
    plt.show()


# %%
def plot_classwise_predictions(model, data_loader, class_names, samples_per_class=4):
    """a few images of each class"""
    model.eval()
    collected = {name: [] for name in class_names}
    with torch.no_grad():
        for inputs, targets in data_loader:
            guess = model(inputs.to(device)).argmax(dim=1).cpu()
            for image, t, g in zip(inputs, targets, guess):
                name = class_names[int(t)]
                if len(collected[name]) < samples_per_class:
                    collected[name].append((image.squeeze().numpy() * 0.5 + 0.5, class_names[int(g)]))

    fig, axes = plt.subplots(
        len(class_names), samples_per_class, figsize=(3 * samples_per_class, 2.6 * len(class_names)), squeeze=False
    )
    for row, (name, examples) in zip(axes, collected.items()):
        for ax in row:
            ax.axis("off")
        for ax, (picture, guessed) in zip(row, examples):
            ax.imshow(picture, cmap="gray", vmin=0, vmax=1)
            ax.set_title(f"true {name} | pred {guessed}", fontsize=7, color="green" if name == guessed else "red")
    plt.tight_layout()
    plt.show()


# %%
plot_confusion_matrix(model, test_loader, class_names)
plot_classwise_predictions(model, test_loader, class_names)
