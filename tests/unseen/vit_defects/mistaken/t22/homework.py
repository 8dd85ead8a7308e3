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

STUDENT_ID = "400109822"  # put your own student number here

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
        # own layer norm: mean and variance over the last axis
        self.weight = nn.Parameter(torch.ones(dim))
        self.bias = nn.Parameter(torch.zeros(dim))
        self.fn = fn

    def forward(self, x, **kwargs):
        x = F.layer_norm(x, (x.shape[-1],), self.weight, self.bias)
        return self.fn(x, **kwargs)


# %%
class FeedForward(nn.Module):
    def __init__(self, dim, hidden_dim, dropout=0.0):
        super().__init__()
        self.first = nn.Sequential(nn.Linear(dim, hidden_dim), nn.GELU(), nn.Dropout(dropout))
        self.second = nn.Sequential(nn.Linear(hidden_dim, dim), nn.Dropout(dropout))

    def forward(self, x):
        return self.second(self.first(x))


# %%
class Attention(nn.Module):
    def __init__(self, dim, heads=4, dim_head=64, dropout=0.0):
        super().__init__()
        self.heads, self.dim_head = heads, dim_head
        inner = heads * dim_head
        self.to_q = nn.Linear(dim, inner, bias=False)
        self.to_kv = nn.Linear(dim, 2 * inner, bias=False)
        self.to_out = nn.Sequential(nn.Linear(inner, dim), nn.Dropout(dropout))

    def forward(self, x):
        # (b, n, h * d) -> (b, h, n, d)
        q = self.to_q(x).unflatten(-1, (self.heads, self.dim_head)).transpose(1, 2)
        k, v = (t.unflatten(-1, (self.heads, self.dim_head)).transpose(1, 2) for t in self.to_kv(x).chunk(2, dim=-1))
        q = q / self.dim_head**0.5
        weights = torch.softmax(q @ k.mT, dim=-1)
        return self.to_out((weights @ v).transpose(1, 2).flatten(2))


# %%
class Transformer(nn.Module):
    def __init__(self, dim, depth, heads, dim_head, mlp_dim, dropout=0.0):
        super().__init__()
        self.layers = nn.ModuleList([])
        for _ in range(depth):
            attention = PreNorm(dim, Attention(dim, heads=heads, dim_head=dim_head, dropout=dropout))
            feed_forward = PreNorm(dim, FeedForward(dim, mlp_dim, dropout=dropout))
            self.layers.append(nn.ModuleList([attention, feed_forward]))

    def forward(self, x):
        for attention, feed_forward in self.layers:
            x = x + attention(x)
            x = x + feed_forward(x)
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
        assert image_size % patch_size == 0
        self.grid = image_size // patch_size
        self.pool = pool
        self.stem = nn.Conv2d(channels, dim, patch_size, patch_size)
        self.cls = nn.Parameter(torch.zeros(1, dim))
        # the class token and the patches have separate position parameters
        self.pos_cls = nn.Parameter(torch.randn(1, 1, dim) * 0.02)
        self.pos_patches = nn.Parameter(torch.randn(1, self.grid * self.grid, dim) * 0.02)
        self.drop = nn.Dropout(emb_dropout)
        self.encoder = Transformer(dim, depth, heads, dim_head, mlp_dim, dropout)
        self.norm = nn.LayerNorm(dim)
        self.fc = nn.Linear(dim, num_classes)

    def forward(self, img):
        patches = rearrange(self.stem(img), "b d h w -> b (h w) d") + self.pos_patches
        cls = self.cls.unsqueeze(0).expand(img.shape[0], 1, -1) + self.pos_cls
        x = self.encoder(self.drop(torch.cat([cls, patches], 1)))
        x = x.mean(1) if self.pool == "mean" else x[:, 0]
        return self.fc(self.norm(x))


# %% [markdown]
# ## 4. Training and evaluation
#
# A manual loop: no trainer library.


# %%
def train_epoch(model, optimizer, data_loader, loss_history):
    model.train()
    for i, (images, labels) in enumerate(data_loader):
        images, labels = images.to(device), labels.to(device)

        # forward
        scores = model(images)
        loss = F.cross_entropy(scores, labels)

        # backward
        loss.backward()
        optimizer.zero_grad()
        optimizer.step()

        if i % 100 == 0:
            print(f"{i:4d} / {len(data_loader)}   loss {loss.item():.4f}")
            loss_history.append(loss.item())


# %%
def evaluate(model, data_loader, loss_history):
    model.eval()
    loss_total, correct, n = 0, 0, 0
    with torch.inference_mode():
        for images, labels in data_loader:
            images, labels = images.to(device), labels.to(device)
            scores = model(images)
            loss_total += F.cross_entropy(scores, labels).item() * images.size(0)
            correct += (scores.argmax(1) == labels).sum().item()
            n += images.size(0)
    loss_history.append(loss_total / n)
    print(f"test loss {loss_total / n:.4f}, accuracy {100 * correct / n:.1f} %")


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
def get_labels_and_predictions(model, data_loader):
    model.eval()
    labels_all, preds_all = [], []
    with torch.no_grad():
        for images, labels in data_loader:
            preds_all.append(model(images.to(device)).argmax(1).cpu())
            labels_all.append(labels)
    return torch.cat(labels_all).tolist(), torch.cat(preds_all).tolist()


def plot_confusion_matrix(model, data_loader, class_names):
    labels, preds = get_labels_and_predictions(model, data_loader)
    cm = [[0] * len(class_names) for _ in class_names]
    for t, p in zip(labels, preds):
        cm[t][p] += 1

    plt.figure(figsize=(7.5, 6.5))
    ax = sns.heatmap(cm, annot=True, fmt="d", cmap="magma", xticklabels=class_names, yticklabels=class_names)
    ax.set_xlabel("Predicted")
    ax.set_ylabel("True")
    ax.set_title(f"Confusion matrix ({len(labels)} test images)")
    plt.tight_layout()
    plt.show()


# %%
def plot_classwise_predictions(model, data_loader, class_names, samples_per_class=4):
    model.eval()
    images, labels = zip(*[(x, y) for x, y in data_loader])
    images, labels = torch.cat(images), torch.cat(labels)
    fig, axes = plt.subplots(
        len(class_names), samples_per_class, figsize=(2.2 * samples_per_class, 2.5 * len(class_names)), squeeze=False
    )
    for c, name in enumerate(class_names):
        samples = images[labels == c][:samples_per_class]
        with torch.no_grad():
            preds = model(samples.to(device)).argmax(1).tolist() if len(samples) else []
        for ax in axes[c]:
            ax.axis("off")
        for ax, image, pred in zip(axes[c], samples, preds):
            ax.imshow(image[0].mul(0.5).add(0.5), cmap="gray", vmin=0, vmax=1)
            ax.set_title(f"true: {name}\npred: {class_names[pred]}", fontsize=8, color="green" if pred == c else "red")
    fig.tight_layout()
    plt.show()


# %%
plot_confusion_matrix(model, test_loader, class_names)
plot_classwise_predictions(model, test_loader, class_names)
