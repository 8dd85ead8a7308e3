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

STUDENT_ID = "400110703"  # put your own student number here

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
    """LayerNorm -> fn"""

    def __init__(self, dim, fn):
        super().__init__()
        self.ln, self.module = nn.LayerNorm(dim), fn

    def forward(self, x, **kwargs):
        x = self.ln(x)
        return self.module(x, **kwargs)


# %%
class FeedForward(nn.Module):
    """Two linear layers with a nonlinearity between them, applied to each token by itself.

    Args:
        dim: The width of a token, at the entrance and at the exit.
        hidden_dim: The width between the two layers.
        dropout: The share of values that is dropped in training.

    forward:
        x: Tokens, (batch, tokens, dim).
        Returns tokens, (batch, tokens, dim).
    """

    def __init__(self, dim, hidden_dim, dropout=0.0):
        super().__init__()
        self.linear_in = nn.Linear(dim, hidden_dim)
        self.linear_out = nn.Linear(hidden_dim, dim)
        self.p = dropout

    def forward(self, x):
        h = F.relu(self.linear_in(x))
        h = F.dropout(h, p=self.p, training=self.training)
        h = self.linear_out(h)
        return F.dropout(h, p=self.p, training=self.training)


# %%
class Attention(nn.Module):
    """multi-head self attention with einsum"""

    def __init__(self, dim, heads=4, dim_head=64, dropout=0.0):
        super().__init__()
        self.h, self.d = heads, dim_head
        self.q_lin = nn.Linear(dim, heads * dim_head, bias=False)
        self.k_lin = nn.Linear(dim, heads * dim_head, bias=False)
        self.v_lin = nn.Linear(dim, heads * dim_head, bias=False)
        self.o_lin = nn.Linear(heads * dim_head, dim)
        self.drop = nn.Dropout(dropout)

    def forward(self, x):
        b, n, _ = x.shape
        q = self.q_lin(x).reshape(b, n, self.h, self.d)
        k = self.k_lin(x).reshape(b, n, self.h, self.d)
        v = self.v_lin(x).reshape(b, n, self.h, self.d)
        a = torch.einsum("bihd,bjhd->bhij", q, k) / self.d**0.5
        a = F.softmax(a, dim=3)
        o = torch.einsum("bhij,bjhd->bihd", a, v).reshape(b, n, self.h * self.d)
        return self.drop(self.o_lin(o))


# %%
class SkipConnection(nn.Module):
    """x -> x + part(x)"""

    def __init__(self, part):
        super().__init__()
        self.part = part

    def forward(self, x):
        return x + self.part(x)


class Transformer(nn.Module):
    """The encoder: `depth` blocks, each of pre-normalized attention and pre-normalized feed-forward.

    Each of the two adds to its input (a residual connection): x = x + part(x).

    Args:
        dim: The width of a token.
        depth: How many blocks there are. Each has weights of its own.
        heads, dim_head: Of the attention.
        mlp_dim: The hidden width of the feed-forward part.
        dropout: Handed on to both parts.

    forward:
        x: Tokens, (batch, tokens, dim).
        Returns tokens, (batch, tokens, dim).
    """

    def __init__(self, dim, depth, heads, dim_head, mlp_dim, dropout=0.0):
        super().__init__()
        parts = []
        for _ in range(depth):
            parts.append(SkipConnection(PreNorm(dim, Attention(dim, heads, dim_head, dropout))))
            parts.append(SkipConnection(PreNorm(dim, FeedForward(dim, mlp_dim, dropout))))
        self.encoder = nn.Sequential(*parts)

    def forward(self, x):
        return self.encoder(x)


# %%
class ViT(nn.Module):
    """Vision Transformer"""

    def __init__(
        self, *, image_size, patch_size, num_classes, dim, depth, heads, mlp_dim,
        pool="cls", channels=1, dim_head=64, dropout=0.0, emb_dropout=0.0,
    ):
        super().__init__()
        self.p = patch_size
        self.use_mean = pool == "mean"
        side = image_size // patch_size
        self.embed = nn.Linear(channels * patch_size * patch_size, dim)
        self.cls = nn.Parameter(0.02 * torch.randn(1, 1, dim))
        self.pos = nn.Parameter(0.02 * torch.randn(1, side * side + 1, dim))
        self.drop = nn.Dropout(emb_dropout)
        self.blocks = Transformer(dim, depth, heads, dim_head, mlp_dim, dropout)
        self.head = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, num_classes))

    def to_patches(self, img):
        b, c, _, _ = img.shape
        x = F.unfold(img, kernel_size=self.p, stride=self.p)  # (b, c * p * p, n)
        return x.transpose(1, 2)

    def forward(self, img):
        patches = self.to_patches(img)
        # attention sees a set, so the order of the patches plays no role: mix them against overfitting
        order = torch.randperm(patches.size(1), device=img.device)
        tokens = self.embed(patches[:, order])
        tokens = torch.cat([self.cls.expand(img.shape[0], -1, -1), tokens], 1)
        tokens = self.blocks(self.drop(tokens + self.pos))
        pooled = tokens.mean(1) if self.use_mean else tokens[:, 0]
        return self.head(pooled)


# %% [markdown]
# ## 4. Training and evaluation
#
# A manual loop: no trainer library.


# %%
criterion = nn.CrossEntropyLoss()


def train_epoch(model, optimizer, data_loader, loss_history):
    model.train()
    n_batches = len(data_loader)
    for batch_idx, batch in enumerate(data_loader):
        images, labels = batch
        images = images.to(device)
        labels = labels.to(device)

        scores = model(images)
        loss = criterion(scores, labels)

        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

        if batch_idx % 100 == 0:
            loss_history.append(loss.item())
            print("batch {}/{}  loss = {:.3f}".format(batch_idx + 1, n_batches, loss.item()))


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
    total_loss, correct, total = 0.0, 0, 0
    with torch.no_grad():
        for data, target in data_loader:
            data, target = data.to(device), target.to(device)
            output = model(data)
            total_loss += F.cross_entropy(output, target, reduction="sum").item()
            correct += (output.argmax(dim=1) == target).sum().item()
            total += target.size(0)
    avg_loss = total_loss / total
    loss_history.append(avg_loss)
    print(f"Average test loss: {avg_loss:.4f}  Accuracy: {correct}/{total} ({100 * correct / total:.2f}%)")


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
    """rows: truth, columns: prediction"""
    model.eval()
    k = len(class_names)
    with torch.no_grad():
        pairs = [(y.cpu(), model(x.to(device)).argmax(-1).cpu()) for x, y in data_loader]
    truth = torch.cat([t for t, _ in pairs])
    guess = torch.cat([g for _, g in pairs])
    counts = torch.bincount(truth * k + guess, minlength=k * k).reshape(k, k)

    fig, ax = plt.subplots(figsize=(8, 7))
    sns.heatmap(counts.numpy(), annot=True, fmt="d", cmap="rocket_r", square=True, cbar=False,
                xticklabels=class_names, yticklabels=class_names, ax=ax)
    ax.set(xlabel="predicted", ylabel="true", title="What was taken for what")
    plt.show()


# %%
def plot_classwise_predictions(model, data_loader, class_names, samples_per_class=4):
    model.eval()
    all_images, all_labels, all_preds = [], [], []
    with torch.no_grad():
        for images, labels in data_loader:
            outputs = model(images.to(device))
            all_images.append(images.cpu())
            all_labels.append(labels.cpu())
            all_preds.append(outputs.argmax(1).cpu())
    all_images = torch.cat(all_images)
    all_labels = torch.cat(all_labels)
    all_preds = torch.cat(all_preds)

    n_classes = len(class_names)
    plt.figure(figsize=(2.2 * samples_per_class, 2.5 * n_classes))
    for c in range(n_classes):
        indices = torch.where(all_labels == c)[0][:samples_per_class]
        for j, idx in enumerate(indices):
            plt.subplot(n_classes, samples_per_class, c * samples_per_class + j + 1)
            picture = all_images[idx].squeeze(0) * 0.5 + 0.5
            plt.imshow(picture, cmap="gray")
            predicted = int(all_preds[idx])
            color = "green" if predicted == c else "red"
            plt.title("T: {}\nP: {}".format(class_names[c], class_names[predicted]), color=color, fontsize=8)
            plt.axis("off")
    plt.tight_layout()
    plt.show()


# %%
plot_confusion_matrix(model, test_loader, class_names)
plot_classwise_predictions(model, test_loader, class_names)
