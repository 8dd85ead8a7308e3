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

STUDENT_ID = "400110254"  # put your own student number here

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
    """MLP for every token"""

    def __init__(self, dim, hidden_dim, dropout=0.0):
        super().__init__()
        self.fc_in = nn.Linear(dim, hidden_dim)
        self.fc_out = nn.Linear(hidden_dim, dim)
        self.drop = nn.Dropout(dropout)

    def forward(self, x):
        h = self.drop(F.gelu(self.fc_in(x)))
        return self.drop(self.fc_out(h))


# %%
class Attention(nn.Module):
    """einsum version of the multi head attention"""

    def __init__(self, dim, heads=4, dim_head=64, dropout=0.0):
        super().__init__()
        self.heads, self.dim_head = heads, dim_head
        self.w_q = nn.Linear(dim, heads * dim_head, bias=False)
        self.w_k = nn.Linear(dim, heads * dim_head, bias=False)
        self.w_v = nn.Linear(dim, heads * dim_head, bias=False)
        self.w_o = nn.Linear(dim_head, dim)
        self.drop = nn.Dropout(dropout)

    def forward(self, x):
        q = rearrange(self.w_q(x), "b n (h d) -> b h n d", h=self.heads)
        k = rearrange(self.w_k(x), "b n (h d) -> b h n d", h=self.heads)
        v = rearrange(self.w_v(x), "b n (h d) -> b h n d", h=self.heads)
        att = torch.einsum("bhid,bhjd->bhij", q, k) * self.dim_head**-0.5
        att = att.softmax(-1)
        out = torch.einsum("bhij,bhjd->bid", att, v)
        return self.drop(self.w_o(out))


# %%
class Transformer(nn.Module):
    """depth x (attention + mlp)"""

    def __init__(self, dim, depth, heads, dim_head, mlp_dim, dropout=0.0):
        super().__init__()
        self.attns = nn.ModuleList(
            PreNorm(dim, Attention(dim, heads, dim_head, dropout)) for _ in range(depth)
        )
        self.mlps = nn.ModuleList(PreNorm(dim, FeedForward(dim, mlp_dim, dropout)) for _ in range(depth))

    def forward(self, x):
        for a, m in zip(self.attns, self.mlps):
            res = x
            x = a(x)
            x = x + res
            res = x
            x = m(x)
            x = x + res
        return x


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
        self.cls = nn.Parameter(0.02 * torch.randn(dim))
        self.pos = nn.Parameter(0.02 * torch.randn(side * side + 1, dim))
        self.drop = nn.Dropout(emb_dropout)
        self.body = Transformer(dim, depth, heads, dim_head, mlp_dim, dropout)
        self.head = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, num_classes))

    def to_patches(self, img):
        b, c, _, _ = img.shape
        p = self.p
        x = img.unfold(2, p, p).unfold(3, p, p)  # (b, c, h, w, p, p)
        return x.permute(0, 2, 3, 1, 4, 5).reshape(b, -1, c * p * p)

    def forward(self, img):
        tokens = self.embed(self.to_patches(img))
        cls = self.cls.expand(img.shape[0], 1, -1)
        tokens = torch.cat([cls, tokens], 1) + self.pos
        tokens = self.body(self.drop(tokens))
        pooled = tokens.mean(1) if self.use_mean else tokens[:, 0]
        return self.head(pooled)


# %% [markdown]
# ## 4. Training and evaluation
#
# A manual loop: no trainer library.


# %%
def train_epoch(model, optimizer, data_loader, loss_history):
    """one epoch of training"""
    model.train()
    loss_fn = nn.CrossEntropyLoss()
    seen = 0
    for step, (x, y) in enumerate(data_loader, start=1):
        x, y = x.to(device), y.to(device)
        optimizer.zero_grad(set_to_none=True)
        loss = loss_fn(model(x), y)
        loss.backward()
        optimizer.step()
        seen += y.size(0)
        if step % 100 == 1:
            value = loss.item()
            loss_history.append(value)
            print(f"step {step}: {seen} images seen, loss {value:.4f}")


# %%
def evaluate(model, data_loader, loss_history):
    """average loss and accuracy"""
    model.eval()
    all_scores, all_labels = [], []
    with torch.no_grad():
        for x, y in data_loader:
            all_scores.append(model(x.to(device)).cpu())
            all_labels.append(y.cpu())
    scores = torch.cat(all_scores)
    labels = torch.cat(all_labels)
    loss = F.cross_entropy(scores, labels).item()
    correct = int((scores.argmax(-1) == labels).sum())
    loss_history.append(loss)
    print(f"test loss {loss:.4f} | test accuracy {correct / len(labels):.2%} ({correct}/{len(labels)})")


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
    """grid of examples with true and predicted label"""
    model.eval()
    images, labels = next(iter(data_loader))
    with torch.no_grad():
        predictions = model(images.to(device)).argmax(dim=1).cpu()
    images = images.cpu()

    rows, cols = len(class_names), samples_per_class
    fig, axes = plt.subplots(rows, cols, figsize=(2.3 * cols, 2.5 * rows), squeeze=False)
    for c in range(rows):
        where = [i for i in range(len(labels)) if int(labels[i]) == c][:cols]
        for j in range(cols):
            axes[c, j].axis("off")
            if j < len(where):
                i = where[j]
                guess = int(predictions[i])
                axes[c, j].imshow(images[i, 0] * 0.5 + 0.5, cmap="gray", vmin=0, vmax=1)
                axes[c, j].set_title(f"{class_names[c]}\n-> {class_names[guess]}", fontsize=8,
                                     color="green" if guess == c else "red")
    fig.suptitle("true label -> predicted label")
    fig.tight_layout()
    plt.show()


# %%
plot_confusion_matrix(model, test_loader, class_names)
plot_classwise_predictions(model, test_loader, class_names)
