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

STUDENT_ID = "400110871"  # put your own student number here

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
        super(PreNorm, self).__init__()
        self.fn = fn
        self.layer_norm = nn.LayerNorm(dim, eps=1e-6)

    def forward(self, x, **kwargs):
        # first norm, then the function
        normed = self.layer_norm(x)
        out = self.fn(normed, **kwargs)
        return out


# %%
class FeedForward(nn.Module):
    """MLP for every token"""

    def __init__(self, dim, hidden_dim, dropout=0.0):
        super().__init__()
        self.up = nn.Linear(dim, hidden_dim)
        self.down = nn.Linear(hidden_dim, dim)
        self.drop = nn.Dropout(dropout)

    def forward(self, x):
        h = self.drop(F.gelu(self.up(x)))
        return self.drop(self.down(h))


# %%
class Attention(nn.Module):
    def __init__(self, dim, heads=4, dim_head=64, dropout=0.0):
        super(Attention, self).__init__()
        self.h = heads
        self.dk = dim_head
        self.W_q = nn.Linear(dim, heads * dim_head)
        self.W_k = nn.Linear(dim, heads * dim_head)
        self.W_v = nn.Linear(dim, heads * dim_head)
        self.proj = nn.Linear(heads * dim_head, dim)
        self.proj_drop = nn.Dropout(dropout)

    def split_heads(self, t):
        b, n, _ = t.shape
        return t.view(b, n, self.h, self.dk).permute(0, 2, 1, 3)  # (b, h, n, d)

    def forward(self, x):
        b, n, _ = x.shape
        q = self.split_heads(self.W_q(x))
        k = self.split_heads(self.W_k(x))
        v = self.split_heads(self.W_v(x))

        scores = (q @ k.transpose(-2, -1)) / (self.dk ** 0.5)
        weights = torch.softmax(scores, dim=-1)

        out = weights @ v                                   # (b, h, n, d)
        out = out.permute(0, 2, 1, 3).contiguous().view(b, n, self.h * self.dk)
        return self.proj_drop(self.proj(out))


# %%
class EncoderBlock(nn.Module):
    def __init__(self, dim, heads, dim_head, mlp_dim, dropout):
        super(EncoderBlock, self).__init__()
        self.attention = PreNorm(dim, Attention(dim, heads, dim_head, dropout))
        self.mlp = PreNorm(dim, FeedForward(dim, mlp_dim, dropout))

    def forward(self, x):
        x = x + self.attention(x)
        x = x + self.mlp(x)
        return x


class Transformer(nn.Module):
    def __init__(self, dim, depth, heads, dim_head, mlp_dim, dropout=0.0):
        super(Transformer, self).__init__()
        self.blocks = nn.ModuleList(
            [EncoderBlock(dim, heads, dim_head, mlp_dim, dropout) for _ in range(depth)]
        )

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x


# %%
class ViT(nn.Module):
    def __init__(self, *, image_size, patch_size, num_classes, dim, depth, heads, mlp_dim, pool="cls",
                 channels=1, dim_head=64, dropout=0.0, emb_dropout=0.0):
        super(ViT, self).__init__()
        if image_size % patch_size != 0:
            raise ValueError("image size must be divisible by patch size")
        self.pool = pool
        self.num_patches = (image_size // patch_size) * (image_size // patch_size)

        # a convolution with stride = kernel cuts and projects the patches
        self.patch_embed = nn.Conv2d(channels, dim, kernel_size=patch_size, stride=patch_size)
        self.class_token = nn.Parameter(torch.zeros(1, 1, dim))
        self.position = nn.Parameter(torch.zeros(1, self.num_patches + 1, dim))
        nn.init.trunc_normal_(self.class_token, std=0.02)
        nn.init.trunc_normal_(self.position, std=0.02)
        self.emb_drop = nn.Dropout(emb_dropout)
        self.encoder = Transformer(dim, depth, heads, dim_head, mlp_dim, dropout)
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, num_classes)

    def forward(self, img):
        x = self.patch_embed(img)                       # (b, dim, h, w)
        x = x.flatten(2).transpose(1, 2)                # (b, n, dim)
        cls = self.class_token.expand(x.shape[0], -1, -1)
        x = torch.cat([cls, x], dim=1)                  # (b, n + 1, dim)
        x = self.emb_drop(x + self.position)
        x = self.encoder(x)
        if self.pool == "cls":
            x = x[:, 0]
        else:
            x = x.mean(dim=1)
        return self.head(self.norm(x))


# %% [markdown]
# ## 4. Training and evaluation
#
# A manual loop: no trainer library.


# %%
def train_epoch(model, optimizer, data_loader, loss_history):
    model.train()
    loss_func = nn.CrossEntropyLoss()
    total_batches = len(data_loader)
    for i, (images, labels) in enumerate(data_loader):
        images = images.to(device)
        labels = labels.to(device)

        optimizer.zero_grad()
        logits = model(images)
        loss = loss_func(logits, labels)
        loss.backward()
        optimizer.step()

        if i % 100 == 0:
            print("training: batch %d of %d" % (i + 1, total_batches))


# %%
@torch.no_grad()
def evaluate(model, data_loader, loss_history):
    model.eval()
    running_loss = 0.0
    n_correct = 0
    n_images = 0
    for images, labels in data_loader:
        images = images.to(device)
        labels = labels.to(device)
        scores = model(images)
        # the criterion gives the mean of the batch, so times the batch size
        running_loss += F.cross_entropy(scores, labels).item() * images.size(0)
        _, predicted = torch.max(scores, 1)
        n_correct += (predicted == labels).sum().item()
        n_images += labels.size(0)
    avg = running_loss / n_images
    acc = 100.0 * n_correct / n_images
    loss_history.append(avg)
    print("loss = {:.4f}, accuracy = {:.2f} % ({} of {})".format(avg, acc, n_correct, n_images))


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
            outputs = model(images.to(device))
            predicted = outputs.argmax(1).cpu()
            for t, p in zip(labels, predicted):
                matrix[int(t), int(p)] += 1

    fig, ax = plt.subplots(figsize=(7, 7))
    ax.imshow(matrix.numpy(), cmap="viridis")
    for row in range(k):
        for col in range(k):
            ax.text(col, row, str(matrix[row, col].item()), ha="center", va="center", color="white",
                    bbox={"facecolor": "black", "alpha": 0.4, "edgecolor": "none"})
    ax.set_xticks(range(k), class_names, rotation=45, ha="right")
    ax.set_yticks(range(k), class_names)
    ax.set_xlabel("predicted class")
    ax.set_ylabel("true class")
    ax.set_title("Confusion matrix (test images)")
    fig.tight_layout()
    plt.show()


# %%
def plot_classwise_predictions(model, data_loader, class_names, samples_per_class=4):
    """Draws examples of every class with the true and the predicted label on each image.

    Args:
        model: The trained ViT.
        data_loader: Yields (images, labels).
        class_names: The names, in the order of the labels.
        samples_per_class: How many images of each true class are drawn (4 of 6 classes: 24 images).
    """
    model.eval()
    samples = {c: [] for c in range(len(class_names))}
    with torch.no_grad():
        for images, labels in data_loader:
            preds = model(images.to(device)).argmax(dim=1).cpu()
            for image, label, pred in zip(images, labels.tolist(), preds.tolist()):
                if len(samples[label]) < samples_per_class:
                    samples[label].append((image.cpu(), pred))
    fig, axes = plt.subplots(
        len(class_names),
        samples_per_class,
        figsize=(2.5 * samples_per_class, 2.6 * len(class_names)),
        squeeze=False,
    )
    for ax in axes.flat:
        ax.axis("off")
    for label, row in samples.items():
        for j, (image, pred) in enumerate(row):
            ax = axes[label, j]
            ax.imshow(image[0] * 0.5 + 0.5, cmap="gray", vmin=0, vmax=1)
            ax.set_title(
                f"True: {class_names[label]}\nPred: {class_names[pred]}",
                color="green" if pred == label else "red",
                fontsize=8,
            )
    plt.tight_layout()
    plt.show()


# %%
plot_confusion_matrix(model, test_loader, class_names)
plot_classwise_predictions(model, test_loader, class_names)
