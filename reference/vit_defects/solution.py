# >>> INSTRUCTORS
# Reference solution of assignment 1, complete as the course hands it out. Students never receive this file:
# `grader template vit_defects` (or `make template`) makes their homework.py and homework.ipynb from it.
#
# Marks, each closed by a line with `# <<<` at the same indentation:
#   `# >>> TODO Class.method: what`   the lines between are the solution. The student gets
#                                     `raise NotImplementedError("TODO Class.method: what")` and, above it,
#                                     the lines `# hint: ...` that follow the mark.
#   `# >>> INSTEAD some code`         the student gets that code instead of the lines between (several INSTEAD
#                                     lines in a row: all of them).
#   `# >>> SOLUTION`                  the lines between are left out of the student's file.
#   `# >>> INSTRUCTORS`               a note such as this one: left out of everything made from this file.
# `# %%` begins a notebook cell, `# %% [markdown]` a text cell.
# <<<
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
# >>> SOLUTION
import math

# <<<
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

STUDENT_ID = "400101200"  # put your own student number here

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
        # >>> TODO PreNorm.__init__: create the normalization over the last axis and keep fn
        # hint: nn.LayerNorm(dim) has a weight and a bias of dim numbers each.
        self.norm = nn.LayerNorm(dim)
        self.fn = fn
        # <<<

    def forward(self, x, **kwargs):
        # >>> TODO PreNorm.forward: normalize x first, then apply fn and pass the keyword arguments on
        # hint: the order is what gives the class its name.
        return self.fn(self.norm(x), **kwargs)
        # <<<


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
        # >>> TODO FeedForward.__init__: linear, activation, dropout, linear, dropout
        # hint: nn.Sequential keeps them in order. GELU is usual in a ViT, ReLU is fine.
        self.net = nn.Sequential(
            nn.Linear(dim, hidden_dim),
            nn.GELU(),
            nn.Dropout(dropout),
            nn.Linear(hidden_dim, dim),
            nn.Dropout(dropout),
        )
        # <<<

    def forward(self, x):
        # >>> TODO FeedForward.forward: apply the layers to x
        # hint: nn.Linear works on the last axis, so no reshaping is needed.
        return self.net(x)
        # <<<


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
        # >>> TODO Attention.__init__: the scale, the projections to q, k and v, and the output projection
        # hint: queries, keys and values may come from one wide nn.Linear or from three.
        # hint: the output projection maps heads * dim_head numbers to dim.
        inner_dim = heads * dim_head
        self.heads = heads
        self.scale = dim_head**-0.5
        self.to_qkv = nn.Linear(dim, 3 * inner_dim, bias=False)
        self.to_out = nn.Sequential(nn.Linear(inner_dim, dim), nn.Dropout(dropout))
        # <<<

    def forward(self, x):
        # >>> TODO Attention.forward: scaled dot-product attention in every head, heads joined, projected
        # hint: with the heads as an axis of its own, q, k and v are (batch, heads, tokens, dim_head),
        # hint: and the scores of every token for every other are (batch, heads, tokens, tokens).
        # hint: each query's attention over all keys sums to 1.
        q, k, v = (
            rearrange(part, "b n (h d) -> b h n d", h=self.heads) for part in self.to_qkv(x).chunk(3, dim=-1)
        )
        scores = q @ k.transpose(-2, -1) * self.scale
        weights = scores.softmax(dim=-1)
        joined = rearrange(weights @ v, "b h n d -> b n (h d)")
        return self.to_out(joined)
        # <<<


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
        # >>> TODO Transformer.__init__: depth blocks, each an Attention and a FeedForward, both in a PreNorm
        # hint: modules in a plain Python list are not found by model.parameters(); nn.ModuleList is.
        self.blocks = nn.ModuleList()
        for _ in range(depth):
            attention = PreNorm(dim, Attention(dim, heads=heads, dim_head=dim_head, dropout=dropout))
            feed_forward = PreNorm(dim, FeedForward(dim, mlp_dim, dropout=dropout))
            self.blocks.append(nn.ModuleList([attention, feed_forward]))
        # <<<

    def forward(self, x):
        # >>> TODO Transformer.forward: run the blocks in order, with a residual connection around each part
        # hint: the part's result is added to what went into the PreNorm, not to the normalized tokens.
        for attention, feed_forward in self.blocks:
            x = x + attention(x)
            x = x + feed_forward(x)
        return x
        # <<<


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
        # >>> TODO ViT.__init__: patch projection, class token, positions, dropout, Transformer, head
        # hint: a patch has channels * patch_size**2 numbers; there are (image_size / patch_size)**2 patches.
        # hint: what is learned but is not a layer (class token, positions) is an nn.Parameter.
        # hint: the head is a LayerNorm and a linear layer from dim to num_classes.
        if image_size % patch_size != 0:
            raise ValueError(f"An image of {image_size} pixels cannot be cut into patches of {patch_size}.")
        if pool not in ("cls", "mean"):
            raise ValueError(f"pool must be 'cls' or 'mean', not {pool!r}.")
        num_patches = (image_size // patch_size) ** 2
        self.pool = pool
        self.to_patches = Rearrange("b c (h p) (w q) -> b (h w) (p q c)", p=patch_size, q=patch_size)
        self.patch_projection = nn.Linear(channels * patch_size**2, dim)
        self.class_token = nn.Parameter(0.02 * torch.randn(1, 1, dim))
        self.positions = nn.Parameter(0.02 * torch.randn(1, num_patches + 1, dim))
        self.dropout = nn.Dropout(emb_dropout)
        self.transformer = Transformer(dim, depth, heads, dim_head, mlp_dim, dropout)
        self.head = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, num_classes))
        # <<<

    def forward(self, img):
        # >>> TODO ViT.forward: image to patches to tokens, through the Transformer, to scores
        # hint: the class token stands in front of the patches and has a position of its own.
        # hint: return the scores as they are; the loss function applies the softmax.
        tokens = self.patch_projection(self.to_patches(img))
        class_tokens = repeat(self.class_token, "1 1 d -> b 1 d", b=len(img))
        tokens = torch.cat([class_tokens, tokens], dim=1) + self.positions
        encoded = self.transformer(self.dropout(tokens))
        pooled = encoded[:, 0] if self.pool == "cls" else encoded.mean(dim=1)
        return self.head(pooled)
        # <<<


# %% [markdown]
# ## 4. Training and evaluation
#
# A manual loop: no trainer library.


# %%
# >>> SOLUTION
def augment(images):
    """Varies each image of a batch at random: flips, transposition, shifts by up to 2 pixels, brightness.

    None of these turns one defect into another. All work on the batch at once, which is much faster than
    transforms on single images.

    Args:
        images: (batch, channels, height, width), with height equal to width.

    Returns:
        New images of the same shape.
    """
    n, channels, height, width = images.shape

    def half():
        return torch.rand(n, 1, 1, 1, device=images.device) < 0.5

    images = torch.where(half(), images.flip(-1), images)
    images = torch.where(half(), images.flip(-2), images)
    if height == width:
        images = torch.where(half(), images.transpose(-2, -1), images)

    reach = 2
    padded = F.pad(images, (reach, reach, reach, reach), mode="replicate")
    offsets = torch.randint(0, 2 * reach + 1, (2, n, 1), device=images.device)
    rows = offsets[0] + torch.arange(height, device=images.device)
    columns = offsets[1] + torch.arange(width, device=images.device)
    batch = torch.arange(n, device=images.device).view(n, 1, 1, 1)
    channel = torch.arange(channels, device=images.device).view(1, channels, 1, 1)
    images = padded[batch, channel, rows.view(n, 1, height, 1), columns.view(n, 1, 1, width)]

    return images + 0.1 * torch.randn(n, 1, 1, 1, device=images.device)


# <<<
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
    # >>> TODO train_epoch: one pass over the data with a step of the optimizer for every batch
    # hint: model.train() first, because evaluate() leaves the model in evaluation mode.
    # hint: gradients add up from batch to batch unless they are cleared.
    # hint: loss.item() is a float; appending the tensor itself keeps its whole graph in memory.
    model.train()
    total = len(data_loader.dataset)
    for index, (images, labels) in enumerate(data_loader):
        images, labels = augment(images.to(device)), labels.to(device)
        optimizer.zero_grad()
        loss = F.cross_entropy(model(images), labels, label_smoothing=0.1)
        loss.backward()
        optimizer.step()
        if index % 100 == 0:
            print(f"[{index * len(images):5d}/{total}] loss {loss.item():.4f}")
            loss_history.append(loss.item())
    # <<<


# %%
def evaluate(model, data_loader, loss_history):
    """Measures the model on data that it was not trained on.

    Appends the average loss per image to the history and prints it together with the accuracy.

    Args:
        model: The ViT. It must be in evaluation mode, and no gradients may be computed.
        data_loader: Yields (images, labels). The last batch may be smaller than the others.
        loss_history: A list; one float is appended to it.
    """
    # >>> TODO evaluate: the average loss and the number of correct predictions over all images
    # hint: model.eval() turns dropout off, torch.no_grad() saves the memory of the graph.
    # hint: the mean of the batches' means is not the mean over images when the last batch is smaller.
    model.eval()
    total_loss, correct, count = 0.0, 0, 0
    with torch.no_grad():
        for images, labels in data_loader:
            images, labels = images.to(device), labels.to(device)
            scores = model(images)
            total_loss += F.cross_entropy(scores, labels, reduction="sum").item()
            correct += (scores.argmax(dim=1) == labels).sum().item()
            count += len(labels)
    average_loss = total_loss / count
    loss_history.append(average_loss)
    print(f"test loss {average_loss:.4f}, accuracy {correct}/{count} ({100 * correct / count:.2f} %)")
    # <<<


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

# >>> INSTEAD optimizer = optim.Adam(model.parameters(), lr=0.003)
# >>> INSTEAD
# >>> INSTEAD N_EPOCHS = 1
N_EPOCHS = 30
WARMUP_EPOCHS = 3


def learning_rate_factor(epoch):
    """What the learning rate is multiplied by: a linear warm-up, then half a cosine down to zero."""
    if epoch < WARMUP_EPOCHS:
        return (epoch + 1) / (WARMUP_EPOCHS + 1)
    progress = (epoch - WARMUP_EPOCHS) / max(1, N_EPOCHS - WARMUP_EPOCHS)
    return 0.5 * (1 + math.cos(math.pi * progress))


optimizer = optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.05)
scheduler = optim.lr_scheduler.LambdaLR(optimizer, learning_rate_factor)
# <<<

# %%
train_loss_history, test_loss_history = [], []
start = time.time()
for epoch in range(1, N_EPOCHS + 1):
    print(f"Epoch {epoch}/{N_EPOCHS}")
    train_epoch(model, optimizer, train_loader, train_loss_history)
    # >>> SOLUTION
    scheduler.step()
    # <<<
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
# >>> SOLUTION
def predictions(model, data_loader):
    """All images (n, channels, height, width), their labels (n,) and predicted labels (n,), on the CPU."""
    model.eval()
    images, labels, predicted = [], [], []
    with torch.no_grad():
        for batch, targets in data_loader:
            images.append(batch.cpu())
            labels.append(targets.cpu())
            predicted.append(model(batch.to(device)).argmax(dim=1).cpu())
    return torch.cat(images), torch.cat(labels), torch.cat(predicted)


# <<<
def plot_confusion_matrix(model, data_loader, class_names):
    """Draws how often each true class (rows) was taken for each class (columns), with the counts written in.

    Args:
        model: The trained ViT.
        data_loader: Yields (images, labels).
        class_names: The names, in the order of the labels. They are written on both axes.
    """
    # >>> TODO plot_confusion_matrix: predict every image, count, and draw the counts as a labeled matrix
    # hint: sklearn.metrics.confusion_matrix counts and seaborn.heatmap(..., annot=True) draws.
    # hint: a class that never occurs still needs its row and column.
    _, labels, predicted = predictions(model, data_loader)
    counts = confusion_matrix(labels.tolist(), predicted.tolist(), labels=list(range(len(class_names))))
    _, ax = plt.subplots(figsize=(8, 7))
    sns.heatmap(
        counts, annot=True, fmt="d", cmap="Blues", ax=ax, xticklabels=class_names, yticklabels=class_names
    )
    ax.set_xlabel("Predicted class")
    ax.set_ylabel("True class")
    ax.set_title("Confusion matrix")
    plt.tight_layout()
    plt.show()
    # <<<


# %%
def plot_classwise_predictions(model, data_loader, class_names, samples_per_class=4):
    """Draws examples of every class with the true and the predicted label on each image.

    Args:
        model: The trained ViT.
        data_loader: Yields (images, labels).
        class_names: The names, in the order of the labels.
        samples_per_class: How many images of each true class are drawn (4 of 6 classes: 24 images).
    """
    # >>> TODO plot_classwise_predictions: a grid with samples_per_class images of each true class
    # hint: undo the normalization (x * 0.5 + 0.5) to see the image as it was.
    # hint: write both names into each image's title, and let the color say whether they agree.
    images, labels, predicted = predictions(model, data_loader)
    rows = len(class_names)
    figure, axes = plt.subplots(
        rows, samples_per_class, figsize=(2.6 * samples_per_class, 2.5 * rows), squeeze=False
    )
    for label, row in enumerate(axes):
        chosen = (labels == label).nonzero().flatten().tolist()[:samples_per_class]
        for ax in row:
            ax.axis("off")
        for ax, index in zip(row, chosen, strict=False):
            right = predicted[index] == label
            ax.imshow(images[index, 0] * 0.5 + 0.5, cmap="gray", vmin=0, vmax=1)
            ax.set_title(
                f"True: {class_names[label]}\nPredicted: {class_names[predicted[index]]}",
                fontsize=8,
                color="darkgreen" if right else "darkred",
            )
    figure.tight_layout()
    plt.show()
    # <<<


# %%
plot_confusion_matrix(model, test_loader, class_names)
plot_classwise_predictions(model, test_loader, class_names)
