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

STUDENT_ID = "400109923"  # put your own student number here

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
        self.norm1 = nn.LayerNorm(dim)
        self.f = fn

    def forward(self, x, **kwargs):
        y = self.norm1(x)
        y = self.f(y, **kwargs)
        return y


# %%
class FeedForward(nn.Module):
    def __init__(self, dim, hidden_dim, dropout=0.0):
        super().__init__()
        self.seq = nn.Sequential(
            nn.Linear(in_features=dim, out_features=hidden_dim),
            nn.GELU(),
            nn.Dropout(dropout),
            nn.Linear(in_features=hidden_dim, out_features=dim),
            nn.Dropout(dropout),
        )

    def forward(self, x):
        return self.seq(x)


# %%
class AttentionHead(nn.Module):
    """A single head: q, k, v of width dim_head."""

    def __init__(self, dim, dim_head):
        super().__init__()
        self.q = nn.Linear(dim, dim_head)
        self.k = nn.Linear(dim, dim_head)
        self.v = nn.Linear(dim, dim_head)
        self.dim_head = dim_head

    def forward(self, x):
        q, k, v = self.q(x), self.k(x), self.v(x)
        scores = torch.bmm(q, k.transpose(1, 2)) / self.dim_head**0.5
        return torch.bmm(F.softmax(scores, dim=-1), v)


class Attention(nn.Module):
    """All heads one after the other, results side by side, then the output projection."""

    def __init__(self, dim, heads=4, dim_head=64, dropout=0.0):
        super().__init__()
        self.heads = nn.ModuleList([AttentionHead(dim, dim_head) for _ in range(heads)])
        self.output = nn.Linear(heads * dim_head, dim)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        joined = torch.cat([head(x) for head in self.heads], dim=-1)
        return self.dropout(self.output(joined))


# %%
class Block(nn.Module):
    def __init__(self, dim, heads, dim_head, mlp_dim, dropout=0.0):
        super().__init__()
        self.msa = PreNorm(dim, Attention(dim, heads, dim_head, dropout))
        self.mlp = PreNorm(dim, FeedForward(dim, mlp_dim, dropout))

    def forward(self, x):
        x = x + self.msa(x)
        return x + self.mlp(x)


class Transformer(nn.Module):
    def __init__(self, dim, depth, heads, dim_head, mlp_dim, dropout=0.0):
        super().__init__()
        self.blocks = nn.ModuleList()
        for _ in range(depth):
            self.blocks.append(Block(dim, heads, dim_head, mlp_dim, dropout))

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
        assert image_size % patch_size == 0, "patch_size must divide image_size"
        self.pool = pool
        self.patch_size = patch_size
        num_patches = (image_size // patch_size) * (image_size // patch_size)

        self.projection = nn.Linear(channels * patch_size * patch_size, dim)
        self.position_embedding = nn.Parameter(torch.randn(1, num_patches, dim))
        self.class_embedding = nn.Parameter(torch.randn(1, 1, dim))
        self.embedding_dropout = nn.Dropout(emb_dropout)
        self.transformer = Transformer(dim, depth, heads, dim_head, mlp_dim, dropout)
        self.classifier = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, num_classes))

    def forward(self, img):
        p = self.patch_size
        batch, channels = img.shape[0], img.shape[1]
        # (b, c, H, W) -> (b, c, h, w, p, p) -> (b, h, w, c, p, p) -> (b, h * w, c * p * p)
        x = img.unfold(2, p, p).unfold(3, p, p)
        x = x.permute(0, 2, 3, 1, 4, 5).contiguous().view(batch, -1, channels * p * p)
        x = self.projection(x)
        x = x + self.position_embedding
        x = torch.cat((self.class_embedding.expand(batch, -1, -1), x), dim=1)
        x = self.embedding_dropout(x)
        x = self.transformer(x)
        if self.pool == "mean":
            x = x.mean(dim=1)
        else:
            x = x[:, 0]
        return self.classifier(x)


# %% [markdown]
# ## 4. Training and evaluation
#
# A manual loop: no trainer library.


# %%
def train_epoch(model, optimizer, data_loader, loss_history):
    loss_function = nn.CrossEntropyLoss()
    model.train()
    for i, (images, labels) in enumerate(data_loader):
        images = images.to(device)
        labels = labels.to(device)
        # 1. clear, 2. forward, 3. loss, 4. backward, 5. step
        optimizer.zero_grad()
        logits = model(images)
        loss = loss_function(logits, labels)
        loss.backward()
        optimizer.step()
        if i % 100 == 0:
            current = loss.item()
            loss_history.append(current)
            print(f"Step [{i + 1}/{len(data_loader)}], loss: {current:.4f}")


# %%
def evaluate(model, data_loader, loss_history):
    loss_function = nn.CrossEntropyLoss()
    model.eval()
    total_loss = 0.0
    total_correct = 0
    total_images = 0
    with torch.no_grad():
        for images, labels in data_loader:
            images = images.to(device)
            labels = labels.to(device)
            logits = model(images)
            batch_size = labels.shape[0]
            total_loss += loss_function(logits, labels).item() * batch_size
            total_correct += torch.sum(torch.argmax(logits, dim=-1) == labels).item()
            total_images += batch_size
    average_loss = total_loss / total_images
    accuracy = total_correct / total_images
    loss_history.append(average_loss)
    print(f"Evaluation: loss {average_loss:.4f}, accuracy {accuracy * 100:.2f}% ({total_correct}/{total_images})")


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
    size = len(class_names)
    matrix = torch.zeros(size, size, dtype=torch.int64)
    with torch.no_grad():
        for images, labels in data_loader:
            predictions = torch.argmax(model(images.to(device)), dim=-1).cpu()
            for true, predicted in zip(labels.tolist(), predictions.tolist()):
                matrix[true][predicted] += 1
    fig, ax = plt.subplots(figsize=(8, 8))
    ax.matshow(matrix, cmap=plt.cm.Oranges)
    for row in range(size):
        for column in range(size):
            ax.text(column, row, matrix[row, column].item(), ha="center", va="center")
    ax.set_xticks(range(size))
    ax.set_yticks(range(size))
    ax.set_xticklabels(class_names, rotation=45)
    ax.set_yticklabels(class_names)
    ax.xaxis.set_ticks_position("bottom")
    ax.set_xlabel("predicted class")
    ax.set_ylabel("true class")
    plt.tight_layout()
    plt.show()


# %%
def plot_classwise_predictions(model, data_loader, class_names, samples_per_class=4):
    model.eval()
    samples = {name: [] for name in class_names}
    with torch.no_grad():
        for images, labels in data_loader:
            predictions = torch.argmax(model(images.to(device)), dim=-1)
            for image, label, prediction in zip(images, labels, predictions):
                name = class_names[label.item()]
                if len(samples[name]) < samples_per_class:
                    samples[name].append((image, class_names[prediction.item()]))
            if all(len(s) == samples_per_class for s in samples.values()):
                break

    fig, axes = plt.subplots(len(class_names), samples_per_class, figsize=(10, 16), squeeze=False)
    for row, (true_name, examples) in zip(axes, samples.items()):
        for ax in row:
            ax.axis("off")
        for ax, (image, predicted_name) in zip(row, examples):
            ax.imshow(0.5 * image.squeeze(0) + 0.5, cmap="gray", vmin=0, vmax=1)
            color = "green" if true_name == predicted_name else "red"
            ax.set_title("true: " + true_name + "\npredicted: " + predicted_name, color=color, fontsize=8)
    plt.tight_layout()
    plt.show()


# %%
plot_confusion_matrix(model, test_loader, class_names)
plot_classwise_predictions(model, test_loader, class_names)
