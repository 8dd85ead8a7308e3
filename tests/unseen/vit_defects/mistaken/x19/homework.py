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

STUDENT_ID = "400114193"  # put your own student number here

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
    """Two linear layers, applied to each token by itself."""

    def __init__(self, dim, hidden_dim, dropout=0.0):
        super().__init__()
        self.fc1 = nn.Linear(dim, hidden_dim)
        self.fc2 = nn.Linear(hidden_dim, dim)
        self.gelu = nn.GELU()
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        x = self.dropout(self.fc1(x))
        x = self.gelu(self.fc2(x))
        return self.dropout(x)


# %%
class Attention(nn.Module):
    """Multi-head self-attention."""

    def __init__(self, dim, heads=4, dim_head=64, dropout=0.0):
        super().__init__()
        self.heads = heads
        self.scale = dim_head ** (-0.5)
        width = heads * dim_head
        self.kqv = nn.Linear(dim, 3 * width, bias=True)
        self.split = Rearrange("b n (k h d) -> k b h n d", k=3, h=heads)
        self.join = Rearrange("b h n d -> b n (h d)")
        self.fc = nn.Linear(width, dim)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        k, q, v = self.split(self.kqv(x))
        sim = torch.einsum("bhid,bhjd->bhij", q * self.scale, k)
        sim = sim - sim.amax(dim=-1, keepdim=True)  # for numerical safety
        attn = sim.exp() / sim.exp().sum(dim=-1, keepdim=True)
        out = torch.einsum("bhij,bhjd->bhid", attn, v)
        return self.dropout(self.fc(self.join(out)))


# %%
def make_block(dim, heads, dim_head, mlp_dim, dropout):
    """The two parts of one encoder block."""
    return nn.ModuleDict(
        dict(
            attention=PreNorm(dim, Attention(dim, heads, dim_head, dropout)),
            feedforward=PreNorm(dim, FeedForward(dim, mlp_dim, dropout)),
        )
    )


class Transformer(nn.Module):
    """The encoder."""

    def __init__(self, dim, depth, heads, dim_head, mlp_dim, dropout=0.0):
        super().__init__()
        self.blocks = nn.ModuleList([make_block(dim, heads, dim_head, mlp_dim, dropout) for _ in range(depth)])

    def forward(self, x):
        for block in self.blocks:
            skip = x
            x = block["attention"](x) + skip
            skip = x
            x = block["feedforward"](x) + skip
        return x


# %%
class ViT(nn.Module):
    """The Vision Transformer."""

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
        self.pool = pool
        self.unfold = nn.Unfold(kernel_size=patch_size, stride=patch_size)
        self.embedding = nn.Linear(channels * patch_size * patch_size, dim)
        num_tokens = (image_size // patch_size) ** 2 + 1
        self.class_token = nn.Parameter(0.02 * torch.randn(1, 1, dim))
        self.position = nn.Parameter(0.02 * torch.randn(1, num_tokens, dim))
        self.dropout = nn.Dropout(emb_dropout)
        self.encoder = Transformer(dim, depth, heads, dim_head, mlp_dim, dropout)
        self.layernorm = nn.LayerNorm(dim)
        self.output = nn.Linear(dim, num_classes)

    def forward(self, img):
        x = self.unfold(img)  # (b, c * p * p, patches)
        x = self.embedding(x.transpose(1, 2))  # (b, patches, dim)
        class_token = self.class_token.expand(img.size(0), -1, -1)
        x = torch.cat([class_token, x], dim=1)  # (b, patches + 1, dim)
        x = self.dropout(x + self.position)
        x = self.encoder(x)
        if self.pool == "cls":
            x = x[:, 0]
        elif self.pool == "mean":
            x = x.mean(dim=1)
        return self.output(self.layernorm(x))  # (b, num_classes)


# %% [markdown]
# ## 4. Training and evaluation
#
# A manual loop: no trainer library.


# %%
def train_epoch(model, optimizer, data_loader, loss_history):
    """One pass over the data, one step per batch."""
    model.train()
    device_ = next(model.parameters()).device
    for number, (inputs, targets) in enumerate(data_loader, start=1):
        inputs = inputs.to(device_)
        targets = targets.to(device_)
        optimizer.zero_grad()
        outputs = model(inputs)
        loss = nn.functional.cross_entropy(outputs, targets)
        loss.backward()
        optimizer.step()
        if number % 100 == 1:
            print(f"Batch {number}/{len(data_loader)} - loss: {loss.item():.5f}")
            loss_history.append(loss.item())


# %%
def evaluate(model, data_loader, loss_history):
    """Average loss and accuracy over all images."""
    model.eval()
    device_ = next(model.parameters()).device
    outputs, targets = [], []
    with torch.no_grad():
        for batch_inputs, batch_targets in data_loader:
            outputs.append(model(batch_inputs.to(device_)).cpu())
            targets.append(batch_targets.cpu())
    outputs, targets = torch.cat(outputs), torch.cat(targets)
    loss = F.cross_entropy(outputs, targets).item()
    correct = (outputs.argmax(dim=1) == targets).sum().item()
    loss_history.append(loss)
    print(f"Evaluation - loss: {loss:.5f} - accuracy: {correct / len(targets):.2%} ({correct}/{len(targets)})")


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
    """Draws the confusion matrix (rows: true, columns: predicted)."""
    model.eval()
    device_ = next(model.parameters()).device
    actual, predicted = [], []
    with torch.no_grad():
        for inputs, targets in data_loader:
            actual += targets.tolist()
            predicted += model(inputs.to(device_)).argmax(dim=1).tolist()
    table = confusion_matrix(actual, predicted, labels=range(len(class_names)))
    fig, ax = plt.subplots(figsize=(7.5, 6.5))
    sns.heatmap(
        table,
        annot=True,
        fmt="d",
        cmap="Greens",
        linewidths=0.5,
        xticklabels=class_names,
        yticklabels=class_names,
        ax=ax,
    )
    ax.set_xlabel("Predicted")
    ax.set_ylabel("Actual")
    ax.set_title("Confusion matrix")
    fig.tight_layout()
    plt.show()


# %%
def plot_classwise_predictions(model, data_loader, class_names, samples_per_class=4):
    """Examples of each true class with the true and the predicted name."""
    model.eval()
    device_ = next(model.parameters()).device
    missing = {label: samples_per_class for label in range(len(class_names))}
    examples = []
    with torch.no_grad():
        for inputs, targets in data_loader:
            guesses = model(inputs.to(device_)).argmax(dim=1).cpu()
            for image, target, guess in zip(inputs, targets.tolist(), guesses.tolist()):
                if missing[target] > 0:
                    missing[target] -= 1
                    examples.append((target, guess, image))
    examples.sort(key=lambda example: example[0])

    n_rows = len(class_names)
    fig, axes = plt.subplots(n_rows, samples_per_class, figsize=(2.5 * samples_per_class, 2.7 * n_rows), squeeze=False)
    for ax in axes.flatten():
        ax.axis("off")
    column = dict.fromkeys(range(n_rows), 0)
    for target, guess, image in examples:
        ax = axes[target][column[target]]
        column[target] += 1
        ax.imshow(image.permute(1, 2, 0).numpy() * 0.5 + 0.5, cmap="gray", vmin=0, vmax=1)
        ax.set_title(
            f"true: {class_names[target]}\npredicted: {class_names[guess]}",
            color="green" if target == guess else "red",
            fontsize=8,
        )
    fig.tight_layout()
    plt.show()


# %%
plot_confusion_matrix(model, test_loader, class_names)
plot_classwise_predictions(model, test_loader, class_names)
