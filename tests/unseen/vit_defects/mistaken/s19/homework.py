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
import numpy as np

STUDENT_ID = "400108931"  # put your own student number here

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
    # LayerNorm -> fn

    def __init__(self, dim, fn):
        super(PreNorm, self).__init__()
        self.fn = fn
        self.norm = nn.LayerNorm(dim)

    def forward(self, x, **kwargs):
        normalized = self.norm(x)
        return self.fn(normalized, **kwargs)


# %%
class FeedForward(nn.Module):
    # dim -> hidden_dim -> dim

    def __init__(self, dim, hidden_dim, dropout=0.0):
        super(FeedForward, self).__init__()
        self.linear1 = nn.Linear(dim, hidden_dim)
        self.linear2 = nn.Linear(hidden_dim, dim)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        h = self.dropout(F.gelu(self.linear1(x)))
        return self.dropout(self.linear2(h))


# %%
class Attention(nn.Module):
    # multi-head self attention

    def __init__(self, dim, heads=4, dim_head=64, dropout=0.0):
        super(Attention, self).__init__()
        self.heads = heads
        self.dim_head = dim_head
        self.inner = heads * dim_head
        self.qkv = nn.Linear(dim, 3 * self.inner)
        self.proj = nn.Linear(self.inner, dim)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        B, N, _ = x.shape
        qkv = self.qkv(x).reshape(B, N, 3, self.heads, self.dim_head)
        qkv = qkv.permute(2, 0, 3, 1, 4)  # 3, B, H, N, D
        q, k, v = qkv[0], qkv[1], qkv[2]

        A = q @ k.transpose(-2, -1) / self.dim_head**0.5
        A = A.softmax(dim=-1)

        out = (A @ v).transpose(1, 2).reshape(B, N, self.inner)
        return self.dropout(self.proj(out))


# %%
class EncoderBlock(nn.Module):
    def __init__(self, dim, heads, dim_head, mlp_dim, dropout):
        super(EncoderBlock, self).__init__()
        self.attn = PreNorm(dim, Attention(dim, heads=heads, dim_head=dim_head, dropout=dropout))
        self.mlp = PreNorm(dim, FeedForward(dim, mlp_dim, dropout=dropout))

    def forward(self, x):
        x = x + self.attn(x)
        x = x + self.mlp(x)
        return x


class Transformer(nn.Module):
    # a stack of encoder blocks

    def __init__(self, dim, depth, heads, dim_head, mlp_dim, dropout=0.0):
        super(Transformer, self).__init__()
        blocks = [EncoderBlock(dim, heads, dim_head, mlp_dim, dropout) for _ in range(depth)]
        self.blocks = nn.Sequential(*blocks)

    def forward(self, x):
        return self.blocks(x)


# %%
class ViT(nn.Module):
    # the whole model: image -> logits

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
        assert image_size % patch_size == 0
        assert pool in ("cls", "mean")
        self.pool = pool
        num_patches = (image_size // patch_size) ** 2

        # gray images, cut by a convolution whose stride is the patch size
        self.patch_conv = nn.Conv2d(1, dim, kernel_size=patch_size, stride=patch_size)
        self.cls_token = nn.Parameter(torch.randn(1, 1, dim) * 0.02)
        self.positions = nn.Parameter(torch.randn(1, num_patches + 1, dim) * 0.02)
        self.dropout = nn.Dropout(emb_dropout)
        self.transformer = Transformer(dim, depth, heads, dim_head, mlp_dim, dropout)
        self.head_norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, num_classes)

    def forward(self, img):
        B = img.shape[0]
        x = self.patch_conv(img)  # B, dim, H/P, W/P
        x = x.flatten(2).permute(0, 2, 1)  # B, N, dim
        cls = self.cls_token.expand(B, -1, -1)
        x = torch.cat((cls, x), dim=1)
        x = x + self.positions
        x = self.dropout(x)
        x = self.transformer(x)
        x = x[:, 0] if self.pool == "cls" else x.mean(dim=1)
        return self.head(self.head_norm(x))


# %% [markdown]
# ## 4. Training and evaluation
#
# A manual loop: no trainer library.


# %%
def train_epoch(model, optimizer, data_loader, loss_history):
    # one pass over the training data
    model.train()
    n_batches = len(data_loader)
    for i, (imgs, targets) in enumerate(data_loader):
        imgs, targets = imgs.to(device), targets.to(device)

        logits = model(imgs)
        loss = F.cross_entropy(logits, targets)

        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

        if i % 100 == 0:
            value = loss.item()
            loss_history.append(value)
            print(f"batch {i:4d}/{n_batches}: loss {value:.4f}")


# %%
def evaluate(model, data_loader, loss_history):
    # loss and accuracy over all images of the loader
    model.eval()
    loss_sum, hits, count = 0.0, 0, 0
    with torch.no_grad():
        for imgs, targets in data_loader:
            imgs, targets = imgs.to(device), targets.to(device)
            logits = model(imgs)
            loss_sum += F.cross_entropy(logits, targets, reduction="sum").item()
            hits += (logits.argmax(dim=1) == targets).sum().item()
            count += targets.shape[0]
    avg = loss_sum / count
    acc = 100.0 * hits / count
    loss_history.append(avg)
    print(f"test loss {avg:.4f} - accuracy {acc:.2f}% ({hits}/{count})")


# %% [markdown]
# ## 5. Train, save, reload
#
# These are the numbers to tune: the arguments of `ViT`, the optimizer, the batch size, the transform and the
# number of epochs. Write down what you tried and what came of it (question 7). The assignment asks for at
# least 60 % accuracy on the test images.

# %%
model = ViT(
    image_size=28,
    patch_size=4,
    num_classes=6,
    channels=1,
    dim=96,
    depth=6,
    heads=4,
    mlp_dim=192,
    dim_head=32,
    dropout=0.1,
    emb_dropout=0.1,
)
model.to(device)
print(f"The model has {sum(p.numel() for p in model.parameters() if p.requires_grad):,} parameters.")

optimizer = optim.Adam(model.parameters(), lr=0.0005)

N_EPOCHS = 50

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
    # rows: true class, columns: predicted class
    model.eval()
    trues, preds = [], []
    with torch.no_grad():
        for imgs, targets in data_loader:
            out = model(imgs.to(device)).argmax(dim=1)
            preds.extend(out.cpu().numpy())
            trues.extend(targets.cpu().numpy())

    cm = confusion_matrix(trues, preds, labels=np.arange(len(class_names)))
    plt.figure(figsize=(8, 7))
    sns.heatmap(cm, annot=True, fmt="d", cmap="Blues", xticklabels=class_names, yticklabels=class_names)
    plt.title("Confusion Matrix")
    plt.xlabel("Predicted label")
    plt.ylabel("True label")
    plt.show()


# %%
def plot_classwise_predictions(model, data_loader, class_names, samples_per_class=4):
    # 24 images: each row is one true class
    model.eval()
    found = {i: [] for i in range(len(class_names))}
    with torch.no_grad():
        for imgs, targets in data_loader:
            out = model(imgs.to(device)).argmax(dim=1).cpu()
            for img, t, p in zip(imgs, targets, out):
                if len(found[int(t)]) < 4:
                    found[int(t)].append((img, int(p)))

    fig, axes = plt.subplots(len(class_names), 4, figsize=(10, 2.6 * len(class_names)), squeeze=False)
    for i, name in enumerate(class_names):
        for j in range(4):
            ax = axes[i][j]
            ax.axis("off")
            if j < len(found[i]):
                img, p = found[i][j]
                ax.imshow((img.squeeze() * 0.5 + 0.5).numpy(), cmap="gray")
                ax.set_title(
                    "True: %s\nPred: %s" % (name, class_names[p]), fontsize=9, color="green" if p == i else "red"
                )
    plt.tight_layout()
    plt.show()


# %%
plot_confusion_matrix(model, test_loader, class_names)
plot_classwise_predictions(model, test_loader, class_names)
