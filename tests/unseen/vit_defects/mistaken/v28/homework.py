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
import numpy as np
import torch
import torch.nn.functional as F
from einops import rearrange, repeat
from einops.layers.torch import Rearrange
from sklearn.metrics import confusion_matrix
from torch import nn, optim
from torch.utils.data import DataLoader
from torchvision import datasets, transforms

STUDENT_ID = "400112289"  # put your own student number here

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
    """Layer normalization, then another module.

    Args:
        dim: The width of a token.
        fn: The module that receives the normalized tokens.

    forward:
        x: Tokens, (batch, tokens, dim).
        **kwargs: Handed on to `fn`.
        Returns what `fn` makes of the normalized `x`, (batch, tokens, dim). No residual here: the
        Transformer adds it.
    """

    def __init__(self, dim, fn):
        super().__init__()
        self.ln_1 = nn.LayerNorm(dim)
        self.inner_module = fn

    def forward(self, x, **kwargs):
        return self.inner_module(self.ln_1(x), **kwargs)


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
        self.gelu = nn.GELU()
        self.dropout_in = nn.Dropout(dropout)
        self.dropout_out = nn.Dropout(dropout)

    def forward(self, x):
        hidden = self.linear_in(x)
        hidden = self.gelu(hidden)
        hidden = self.dropout_in(hidden)
        out = self.linear_out(hidden)
        return self.dropout_out(out)


# %%
class Attention(nn.Module):
    """Multi-head self-attention.

    Every head computes softmax(q k^T / sqrt(dim_head)) v with its own queries q, keys k and values v of width
    `dim_head`. The heads' results are put side by side, (heads * dim_head) numbers per token, and projected
    back to `dim`.

    Args:
        dim: The width of a token, at the entrance and at the exit.
        heads: How many heads there are.
        dim_head: The width of one head. It need not be dim / heads.
        dropout: The share of values that is dropped after the output projection in training.

    forward:
        x: Tokens, (batch, tokens, dim).
        Returns tokens, (batch, tokens, dim).
    """

    def __init__(self, dim, heads=4, dim_head=64, dropout=0.0):
        super().__init__()
        self.heads = heads
        self.dim_head = dim_head
        self.w_q = nn.Linear(dim, heads * dim_head, bias=False)
        self.w_k = nn.Linear(dim, heads * dim_head, bias=False)
        self.w_v = nn.Linear(dim, heads * dim_head, bias=False)
        self.w_o = nn.Linear(heads * dim_head, dim)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        b, n, _ = x.shape
        h, d = self.heads, self.dim_head
        # fold the heads into the batch, so that bmm can be used
        q = self.w_q(x).view(b, n, h, d).transpose(1, 2).reshape(b * h, n, d)
        k = self.w_k(x).view(b, n, h, d).transpose(1, 2).reshape(b * h, n, d)
        v = self.w_v(x).view(b, n, h, d).transpose(1, 2).reshape(b * h, n, d)
        scores = torch.bmm(q, k.transpose(1, 2)) / d**0.5  # (b * h, n, n)
        scores = scores - scores.max(dim=2, keepdim=True).values  # for stability
        weights = scores.exp()
        weights = weights / weights.sum(dim=2, keepdim=True)
        out = torch.bmm(weights, v).view(b, h, n, d)
        out = out.transpose(1, 2).reshape(b, n, h * d)
        return self.dropout(self.w_o(out))


# %%
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
        self.depth = depth
        for i in range(depth):
            self.add_module(f"attention_{i}", PreNorm(dim, Attention(dim, heads, dim_head, dropout)))
            self.add_module(f"feedforward_{i}", PreNorm(dim, FeedForward(dim, mlp_dim, dropout)))

    def forward(self, x):
        for i in range(self.depth):
            x = x + getattr(self, f"attention_{i}")(x)
            x = x + getattr(self, f"feedforward_{i}")(x)
        return x


# %%
class ViT(nn.Module):
    """The Vision Transformer: an image becomes a score for every class.

    Args:
        image_size: Height and width of the image, in pixels.
        patch_size: Height and width of a patch, in pixels. It must divide `image_size`.
        num_classes: How many scores there are.
        dim: The width of a token.
        depth, heads, dim_head, mlp_dim, dropout: Of the Transformer.
        pool: 'cls': the class token is classified; 'mean': the mean of all tokens is.
        channels: How many channels the image has.
        emb_dropout: The share of values that is dropped after the positions are added, in training.

    forward:
        img: Images, (batch, channels, image_size, image_size).
        Returns scores before any softmax (logits), (batch, num_classes).
    """

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
        assert pool in ("cls", "mean")
        self.pool = pool
        self.dim = dim
        self.num_patches = (image_size // patch_size) ** 2
        self.unfold = nn.Unfold(kernel_size=patch_size, stride=patch_size)
        self.linear_projection = nn.Linear(channels * patch_size * patch_size, dim)
        self.cls_token = nn.Parameter(torch.randn(1, 1, dim))
        self.position_table = nn.Parameter(torch.randn(1, self.num_patches + 1, dim))
        self.dropout = nn.Dropout(emb_dropout)
        self.transformer = Transformer(dim, depth, heads, dim_head, mlp_dim, dropout)
        self.final_norm = nn.LayerNorm(dim)
        self.classifier = nn.Linear(dim, num_classes)

    def forward(self, img):
        patches = self.unfold(img).permute(0, 2, 1)  # (b, num_patches, c * p * p)
        tokens = self.linear_projection(patches)
        b = tokens.shape[0]
        sequence = torch.empty(b, self.num_patches + 1, self.dim, dtype=tokens.dtype, device=tokens.device)
        sequence[:, :1] = self.cls_token
        sequence[:, 1:] = tokens
        sequence = self.dropout(sequence + self.position_table)
        sequence = self.transformer(sequence)
        if self.pool == "cls":
            pooled = sequence[:, 0]
        else:
            pooled = sequence.mean(dim=1)
        return self.classifier(self.final_norm(pooled))


# %% [markdown]
# ## 4. Training and evaluation
#
# A manual loop: no trainer library.


# %%
def train_epoch(model, optimizer, data_loader, loss_history):
    """Trains the model for one pass over the data.

    For every batch: clear the gradients, compute the scores and the loss, go backward, take one step. Every
    100 batches (the first, the 101st, ...) print how far it has got and append the loss of that batch.

    Args:
        model: The ViT. It must be in training mode.
        optimizer: Holds the model's parameters.
        data_loader: Yields (images, labels): (batch, channels, height, width) and (batch,).
        loss_history: A list; floats are appended to it.
    """
    loss_function = nn.CrossEntropyLoss()
    model.train()
    batch_number = 0
    for images, labels in data_loader:
        images = images.to(device)
        labels = labels.to(device)
        model.zero_grad()
        optimizer.zero_grad()
        predictions = model(images)
        loss = loss_function(predictions, labels)
        loss.backward()
        optimizer.step()
        if batch_number % 100 == 0:
            print("batch", batch_number, "of", len(data_loader), "loss:", round(loss.item(), 4))
            loss_history.append(loss.item())
        batch_number += 1


# %%
def evaluate(model, data_loader, loss_history):
    """Measures the model on data that it was not trained on.

    Appends the average loss per image to the history and prints it together with the accuracy.

    Args:
        model: The ViT. It must be in evaluation mode, and no gradients may be computed.
        data_loader: Yields (images, labels). The last batch may be smaller than the others.
        loss_history: A list; one float is appended to it.
    """
    loss_function = nn.CrossEntropyLoss()
    model.eval()
    batch_losses, batch_sizes, correct = [], [], 0
    with torch.no_grad():
        for images, labels in data_loader:
            images = images.to(device)
            labels = labels.to(device)
            predictions = model(images)
            batch_losses.append(loss_function(predictions, labels).item())
            batch_sizes.append(len(labels))
            correct += torch.sum(predictions.argmax(dim=1) == labels).item()
    # weighted with the sizes of the batches
    average = float(np.average(batch_losses, weights=batch_sizes))
    loss_history.append(average)
    print("average loss:", round(average, 4), " accuracy:", round(100 * correct / sum(batch_sizes), 2), "%")


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
    """Draws how often each true class (rows) was taken for each class (columns), with the counts written in.

    Args:
        model: The trained ViT.
        data_loader: Yields (images, labels).
        class_names: The names, in the order of the labels. They are written on both axes.
    """
    model.eval()
    true_labels = []
    predicted_labels = []
    with torch.no_grad():
        for images, labels in data_loader:
            predictions = model(images.to(device))
            true_labels.append(labels.cpu().numpy())
            predicted_labels.append(predictions.argmax(dim=1).cpu().numpy())
    cm = confusion_matrix(np.concatenate(true_labels), np.concatenate(predicted_labels))

    fig, ax = plt.subplots(figsize=(8, 7))
    image = ax.imshow(cm, cmap="Blues")
    fig.colorbar(image)
    for row in range(cm.shape[0]):
        for column in range(cm.shape[1]):
            color = "white" if cm[row, column] > cm.max() / 2 else "black"
            ax.text(column, row, str(cm[row, column]), ha="center", va="center", color=color)
    ax.set_xticks(range(len(class_names)))
    ax.set_yticks(range(len(class_names)))
    ax.set_xticklabels(class_names, rotation=45, ha="right")
    ax.set_yticklabels(class_names)
    ax.set_xlabel("Predicted class")
    ax.set_ylabel("True class")
    ax.set_title("Confusion matrix")
    plt.tight_layout()
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
    collected = [[] for _ in range(len(class_names))]
    with torch.no_grad():
        for images, labels in data_loader:
            predictions = model(images.to(device)).argmax(dim=1).cpu().numpy()
            pictures = np.clip(images.cpu().numpy() * 0.5 + 0.5, 0, 1).transpose(0, 2, 3, 1)
            for picture, true, predicted in zip(pictures, labels.cpu().numpy(), predictions, strict=True):
                if len(collected[true]) < samples_per_class:
                    collected[true].append((picture, predicted))

    n_rows, n_columns = len(class_names), samples_per_class
    fig, axes = plt.subplots(n_rows, n_columns, figsize=(2.4 * n_columns, 2.5 * n_rows), squeeze=False)
    for true in range(n_rows):
        for column in range(n_columns):
            axes[true, column].axis("off")
        for column, (picture, predicted) in enumerate(collected[true]):
            axes[true, column].imshow(picture, cmap="gray", vmin=0, vmax=1)
            axes[true, column].set_title(
                "true: " + class_names[true] + "\npredicted: " + class_names[predicted],
                fontsize=8,
                color="green" if predicted == true else "red",
            )
    plt.tight_layout()
    plt.show()


# %%
plot_confusion_matrix(model, test_loader, class_names)
plot_classwise_predictions(model, test_loader, class_names)
