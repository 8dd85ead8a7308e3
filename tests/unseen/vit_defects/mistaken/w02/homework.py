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
import math
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

STUDENT_ID = "400113027"  # put your own student number here

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
        self.layer_norm = nn.LayerNorm(dim)
        self.sublayer = fn

    def forward(self, x, **kwargs):
        normed = self.layer_norm(x)
        return self.sublayer(normed, **kwargs)


# %%
class FeedForward(nn.Module):
    def __init__(self, dim, hidden_dim, dropout=0.0):
        super().__init__()
        hidden_dim = 4 * dim  # the MLP of a transformer is four times as wide
        self.fc1 = nn.Linear(dim, hidden_dim)
        self.fc2 = nn.Linear(hidden_dim, dim)
        self.drop1 = nn.Dropout(dropout)
        self.drop2 = nn.Dropout(dropout)

    def forward(self, x):
        x = F.relu(self.fc1(x))
        x = self.drop1(x)
        x = self.fc2(x)
        return self.drop2(x)


# %%
class Attention(nn.Module):
    def __init__(self, dim, heads=4, dim_head=64, dropout=0.0):
        super().__init__()
        self.n_heads = heads
        self.d_head = dim_head
        self.query = nn.Linear(dim, heads * dim_head)
        self.key = nn.Linear(dim, heads * dim_head)
        self.value = nn.Linear(dim, heads * dim_head)
        self.proj = nn.Linear(heads * dim_head, dim)
        self.proj_drop = nn.Dropout(dropout)

    def split_heads(self, t):
        # (B, N, H*D) -> (B, H, N, D)
        B, N, _ = t.shape
        return t.view(B, N, self.n_heads, self.d_head).transpose(1, 2)

    def forward(self, x):
        B, N, _ = x.shape
        Q = self.split_heads(self.query(x))
        K = self.split_heads(self.key(x))
        V = self.split_heads(self.value(x))

        scores = Q @ K.transpose(-2, -1) / math.sqrt(self.d_head)  # (B, H, N, N)
        weights = torch.softmax(scores, dim=-1)
        out = weights @ V  # (B, H, N, D)
        out = out.transpose(1, 2).contiguous().view(B, N, self.n_heads * self.d_head)
        return self.proj_drop(self.proj(out))


# %%
class EncoderBlock(nn.Module):
    def __init__(self, dim, heads, dim_head, mlp_dim, dropout):
        super().__init__()
        self.attention = PreNorm(dim, Attention(dim, heads, dim_head, dropout))
        self.mlp = PreNorm(dim, FeedForward(dim, mlp_dim, dropout))

    def forward(self, x):
        x = x + self.attention(x)
        x = x + self.mlp(x)
        return x


class Transformer(nn.Module):
    def __init__(self, dim, depth, heads, dim_head, mlp_dim, dropout=0.0):
        super().__init__()
        self.blocks = nn.ModuleList([EncoderBlock(dim, heads, dim_head, mlp_dim, dropout) for _ in range(depth)])

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
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
        self.P = patch_size
        self.pool = pool
        n_side = image_size // patch_size
        n_patches = n_side * n_side

        self.embed = nn.Linear(channels * patch_size * patch_size, dim)
        self.cls = nn.Parameter(torch.zeros(1, 1, dim))
        self.pos = nn.Parameter(torch.zeros(1, n_patches + 1, dim))
        nn.init.normal_(self.cls, std=0.02)
        nn.init.normal_(self.pos, std=0.02)
        self.emb_drop = nn.Dropout(emb_dropout)
        self.encoder = Transformer(dim, depth, heads, dim_head, mlp_dim, dropout)
        self.head_norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, num_classes)

    def patchify(self, img):
        B, C, H, W = img.shape
        p = self.P
        x = img.unfold(2, p, p).unfold(3, p, p)  # (B, C, H/p, W/p, p, p)
        x = x.permute(0, 2, 3, 1, 4, 5)  # (B, H/p, W/p, C, p, p)
        return x.reshape(B, (H // p) * (W // p), C * p * p)

    def forward(self, img):
        tokens = self.embed(self.patchify(img))
        cls = self.cls.expand(tokens.size(0), -1, -1)
        tokens = torch.cat([cls, tokens], dim=1) + self.pos
        tokens = self.emb_drop(tokens)
        tokens = self.encoder(tokens)
        if self.pool == "cls":
            feature = tokens[:, 0]
        else:
            feature = tokens.mean(dim=1)
        return self.head(self.head_norm(feature))


# %% [markdown]
# ## 4. Training and evaluation
#
# A manual loop: no trainer library.


# %%
def train_epoch(model, optimizer, data_loader, loss_history):
    model.train()
    criterion = nn.CrossEntropyLoss()
    n_batches = len(data_loader)
    for batch_idx, (images, labels) in enumerate(data_loader):
        images = images.to(device)
        labels = labels.to(device)

        optimizer.zero_grad()
        logits = model(images)
        loss = criterion(logits, labels)
        loss.backward()
        optimizer.step()

        if (batch_idx + 1) % 100 == 0:
            print(f"  batch {batch_idx + 1} of {n_batches}: loss = {loss.item():.4f}")
            loss_history.append(loss.item())


# %%
def evaluate(model, data_loader, loss_history):
    model.eval()
    criterion = nn.CrossEntropyLoss()
    loss_sum = 0.0
    n_correct = 0
    n_images = 0
    with torch.no_grad():
        for images, labels in data_loader:
            images = images.to(device)
            labels = labels.to(device)
            logits = model(images)
            loss_sum += criterion(logits, labels).item() * images.size(0)
            predictions = torch.max(logits, dim=1)[1]
            n_correct += (predictions == labels).sum().item()
            n_images += images.size(0)
    mean_loss = loss_sum / n_images
    loss_history.append(mean_loss)
    print(f"  test loss = {mean_loss:.4f}, test accuracy = {100.0 * n_correct / n_images:.2f} %")


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
    k = len(class_names)
    matrix = torch.zeros(k, k, dtype=torch.long)
    with torch.no_grad():
        for images, labels in data_loader:
            predictions = model(images.to(device)).argmax(1).cpu()
            for t, p in zip(labels.cpu(), predictions):
                matrix[t.item(), p.item()] += 1

    fig, ax = plt.subplots(figsize=(7, 7))
    ax.imshow(matrix.numpy(), cmap="Blues")
    ax.set_xticks(range(k))
    ax.set_xticklabels(class_names, rotation=45, ha="right")
    ax.set_yticks(range(k))
    ax.set_yticklabels(class_names)
    for i in range(k):
        for j in range(k):
            n = matrix[i, j].item()
            ax.text(j, i, str(n), ha="center", va="center", color="white" if n > matrix.max().item() / 2 else "black")
    ax.set_xlabel("predicted class")
    ax.set_ylabel("true class")
    ax.set_title("Confusion matrix")
    fig.tight_layout()
    plt.show()


# %%
def plot_classwise_predictions(model, data_loader, class_names, samples_per_class=4):
    model.eval()
    examples = [[] for _ in class_names]
    with torch.no_grad():
        for images, labels in data_loader:
            predictions = model(images.to(device)).argmax(1).cpu()
            for k in range(len(labels)):
                true = labels[k].item()
                if len(examples[true]) < samples_per_class:
                    examples[true].append((images[k].cpu(), predictions[k].item()))

    rows, cols = len(class_names), samples_per_class
    fig = plt.figure(figsize=(cols * 2.5, rows * 2.7))
    for true, found in enumerate(examples):
        for col, (image, predicted) in enumerate(found):
            ax = fig.add_subplot(rows, cols, true * cols + col + 1)
            ax.imshow(image[0].numpy() * 0.5 + 0.5, cmap="gray")
            color = "green" if predicted == true else "red"
            ax.set_title(f"true: {class_names[true]}\npredicted: {class_names[predicted]}", fontsize=8, color=color)
            ax.axis("off")
    fig.tight_layout()
    plt.show()


# %%
plot_confusion_matrix(model, test_loader, class_names)
plot_classwise_predictions(model, test_loader, class_names)
