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

STUDENT_ID = "400112298"  # put your own student number here

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
        self.gain = nn.Parameter(torch.ones(dim))
        self.bias = nn.Parameter(torch.zeros(dim))
        self.fn = fn

    def forward(self, x, **kwargs):
        x = F.layer_norm(x, self.gain.shape, self.gain, self.bias)
        return self.fn(x, **kwargs)


# %%
class FeedForward(nn.Module):
    """Linear, GELU, dropout, linear, dropout."""

    def __init__(self, dim, hidden_dim, dropout=0.0):
        super().__init__()
        self.w1 = nn.Linear(dim, hidden_dim)
        self.w2 = nn.Linear(hidden_dim, dim)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        return self.dropout(self.w2(self.dropout(F.gelu(self.w1(x)))))


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
        self.temperature = dim_head**0.5
        self.to_queries = nn.Linear(dim, heads * dim_head, bias=False)
        self.to_keys = nn.Linear(dim, heads * dim_head, bias=False)
        self.to_values = nn.Linear(dim, heads * dim_head, bias=False)
        self.unify = nn.Sequential(
            Rearrange("b h t e -> b t (h e)"), nn.Linear(heads * dim_head, dim), nn.Dropout(dropout)
        )

    def forward(self, x):
        split = lambda t: rearrange(t, "b t (h e) -> b h t e", h=self.heads)  # noqa: E731
        q, k, v = split(self.to_queries(x)), split(self.to_keys(x)), split(self.to_values(x))
        w = torch.einsum("bhie,bhje->bhij", q, k) / self.temperature
        w = w.softmax(dim=3)
        return self.unify(torch.einsum("bhij,bhje->bhie", w, v))


# %%
class Residual(nn.Module):
    """x + fn(x)"""

    def __init__(self, fn):
        super().__init__()
        self.fn = fn

    def forward(self, x):
        return x + self.fn(x)


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
        layers = []
        for _ in range(depth):
            layers.append(Residual(PreNorm(dim, Attention(dim, heads, dim_head, dropout))))
            layers.append(Residual(PreNorm(dim, FeedForward(dim, mlp_dim, dropout))))
        self.net = nn.Sequential(*layers)

    def forward(self, x):
        return self.net(x)


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
        assert image_size % patch_size == 0 and pool in ("cls", "mean")
        self.p = patch_size
        self.n = (image_size // patch_size) ** 2
        self.patch_dim = channels * patch_size**2
        self.pool = pool
        self.embedding = nn.Linear(self.patch_dim, dim)
        self.cls = nn.Parameter(torch.randn(dim))
        self.pos = nn.Parameter(torch.randn(self.n + 1, dim))
        self.emb_dropout = nn.Dropout(emb_dropout)
        self.transformer = Transformer(dim, depth, heads, dim_head, mlp_dim, dropout)
        self.to_scores = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, num_classes))

    def forward(self, img):
        b = img.shape[0]
        patches = img.unfold(2, self.p, self.p).unfold(3, self.p, self.p)
        patches = patches.reshape(b, self.n, self.patch_dim)
        x = self.embedding(patches)
        x = torch.cat((self.cls.expand(b, 1, -1), x), dim=1)
        x = self.emb_dropout(x + self.pos)
        x = self.transformer(x)
        x = {"cls": lambda t: t[:, 0], "mean": lambda t: t.mean(dim=1)}[self.pool](x)
        return self.to_scores(x)


# %% [markdown]
# ## 4. Training and evaluation
#
# A manual loop: no trainer library.


# %%
criterion = nn.CrossEntropyLoss()


def train_epoch(model, optimizer, data_loader, loss_history):
    """One pass over the data; notes the loss of every hundredth batch, beginning with the first."""
    model.train()
    total = len(data_loader)
    for i, (images, labels) in enumerate(data_loader):
        images, labels = images.to(device), labels.to(device)
        optimizer.zero_grad()
        loss = criterion(model(images), labels)
        loss.backward()
        optimizer.step()
        if not i % 100:
            loss_history.append(loss.item())
            print(f"{100 * i / total:3.0f} % of the epoch, loss {loss.item():.4f}")


# %%
def evaluate(model, data_loader, loss_history):
    """Measures the model on data that it was not trained on.

    Appends the average loss per image to the history and prints it together with the accuracy.

    Args:
        model: The ViT. It must be in evaluation mode, and no gradients may be computed.
        data_loader: Yields (images, labels). The last batch may be smaller than the others.
        loss_history: A list; one float is appended to it.
    """
    was_right, loss_total = [], 0.0
    model.eval()
    with torch.inference_mode():
        for images, labels in data_loader:
            images, labels = images.to(device), labels.to(device)
            scores = model(images)
            loss_total += criterion(scores, labels).item() * len(images)
            was_right += (scores.argmax(dim=1) == labels).tolist()
    loss_history.append(loss_total / len(was_right))
    print(
        f"evaluation: loss {loss_history[-1]:.4f}, "
        f"accuracy {sum(was_right) / len(was_right):.2%} ({sum(was_right)} of {len(was_right)} images)"
    )


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
    k = len(class_names)
    counts = [[0] * k for _ in range(k)]
    with torch.no_grad():
        for images, labels in data_loader:
            guesses = model(images.to(device)).argmax(dim=1).tolist()
            for truth, guess in zip(labels.tolist(), guesses, strict=True):
                counts[truth][guess] += 1
    plt.figure(figsize=(1.2 * k + 2, k + 2))
    ax = sns.heatmap(counts, annot=True, fmt="d", cmap="Greens", linewidths=0.5, cbar=False)
    ax.set_xticklabels(class_names, rotation=30, ha="right")
    ax.set_yticklabels(class_names, rotation=0)
    ax.set_xlabel("taken for")
    ax.set_ylabel("true class")
    plt.title("Confusion matrix")
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
    rows = [[] for _ in class_names]
    with torch.no_grad():
        for images, labels in data_loader:
            guesses = model(images.to(device)).argmax(dim=1).tolist()
            for image, truth, guess in zip(images, labels.tolist(), guesses, strict=True):
                rows[truth].append((image, guess))
    height, width = len(class_names), samples_per_class
    fig, axes = plt.subplots(height, width, figsize=(2.1 * width, 2.3 * height), squeeze=False)
    for truth, row in enumerate(rows):
        for j, ax in enumerate(axes[truth]):
            ax.axis("off")
            if j < len(row):
                image, guess = row[j]
                ax.imshow(rearrange(image * 0.5 + 0.5, "c h w -> h w c").numpy(), cmap="gray", vmin=0, vmax=1)
                ax.set_title(
                    f"{class_names[truth]} (true)\n{class_names[guess]} (predicted)",
                    fontsize=7,
                    color="green" if guess == truth else "red",
                )
    plt.tight_layout()
    plt.show()


# %%
plot_confusion_matrix(model, test_loader, class_names)
plot_classwise_predictions(model, test_loader, class_names)
