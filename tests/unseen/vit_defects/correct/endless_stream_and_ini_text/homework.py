# %% [markdown]
# # Vision Transformer for steel surface defects

# %%
import ast
import configparser
import itertools
import random
import shutil
import time
import zipfile
from pathlib import Path

import matplotlib.pyplot as plt
import seaborn as sns
import torch
import torch.nn.functional as F
from einops import repeat
from einops.layers.torch import Rearrange
from sklearn.metrics import confusion_matrix
from torch import nn, optim
from torch.utils.data import DataLoader, IterableDataset
from torchvision import datasets, transforms

STUDENT_ID = "400101200"

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(42)

# %%
# All numbers to tune are in this text. Values are Python literals; the name of a section's class is looked up.
SETTINGS = """
[model]
image_size = 28
patch_size = 4
num_classes = 6
channels = 1
dim = 48
depth = 4
heads = 4
dim_head = 16
mlp_dim = 96
pool = "mean"

[data]
batch_size = 32
steps_per_round = 25
rounds = 20

[optimizer]
class = "Adam"
lr = 2e-3
betas = (0.9, 0.98)
eps = 1e-8

[scheduler]
class = "CyclicLR"
base_lr = 2e-4
max_lr = 2e-3
step_size_up = 5
step_size_down = 15
cycle_momentum = False
"""
parser = configparser.ConfigParser()
parser.read_string(SETTINGS)
settings = {
    section: {key: ast.literal_eval(value) for key, value in parser[section].items()} for section in parser.sections()
}


def build(package, section, *arguments):
    """The object of the class that a section of the settings names."""
    options = dict(settings[section])
    return getattr(package, options.pop("class"))(*arguments, **options)

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
#
# The training images are a stream without an end, which begins again in another order whenever it is through. It
# is read in rounds of a fixed number of batches; a round takes the place of an epoch.

# %%
plain = transforms.Compose(
    [
        transforms.Resize((28, 28)),
        transforms.Grayscale(num_output_channels=1),
        transforms.ToTensor(),
        transforms.Normalize((0.5,), (0.5,)),
    ]
)

flips = transforms.Compose([transforms.RandomHorizontalFlip(), transforms.RandomVerticalFlip()])


class EndlessImages(IterableDataset):
    """The images of a folder, again and again."""

    def __init__(self, folder, seed=42):
        self.samples = [folder[row] for row in range(len(folder))]  # decoded once
        self.order = random.Random(seed)

    def __iter__(self):
        while True:
            for image, label in self.order.sample(self.samples, len(self.samples)):
                yield flips(image), label


class Rounds:
    """Goes on with a stream for `steps` batches each time that it is iterated."""

    def __init__(self, loader, steps):
        self.stream, self.steps = iter(loader), steps

    def __len__(self):
        return self.steps

    def __iter__(self):
        return itertools.islice(self.stream, self.steps)


train_set = datasets.ImageFolder("data/train", transform=plain)
test_set = datasets.ImageFolder("data/test", transform=plain)
class_names = train_set.classes
endless_loader = DataLoader(EndlessImages(train_set), batch_size=settings["data"]["batch_size"])
train_loader = Rounds(endless_loader, settings["data"]["steps_per_round"])
test_loader = DataLoader(test_set, batch_size=256, shuffle=False)
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
        self.norm = nn.LayerNorm(dim)
        self.fn = fn

    def forward(self, x, **kwargs):
        return self.fn(self.norm(x), **kwargs)

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
        self.net = nn.Sequential(
            nn.Linear(dim, hidden_dim),
            nn.GELU(),
            nn.Dropout(dropout),
            nn.Linear(hidden_dim, dim),
            nn.Dropout(dropout),
        )

    def forward(self, x):
        return self.net(x)

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
        self.qkv = nn.Linear(dim, 3 * heads * dim_head, bias=False)
        self.proj = nn.Linear(heads * dim_head, dim)
        self.drop = nn.Dropout(dropout)

    def forward(self, x):
        b, n, _ = x.shape
        q, k, v = self.qkv(x).reshape(b, n, 3, self.heads, -1).permute(2, 0, 3, 1, 4).unbind(0)
        scores = torch.einsum("bhid,bhjd->bhij", q, k) * q.shape[-1] ** -0.5
        out = torch.einsum("bhij,bhjd->bihd", scores.softmax(dim=-1), v)
        return self.drop(self.proj(out.flatten(2)))

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
        parts = []
        for _ in range(depth):
            parts.append(PreNorm(dim, Attention(dim, heads, dim_head, dropout)))
            parts.append(PreNorm(dim, FeedForward(dim, mlp_dim, dropout)))
        self.parts = nn.ModuleList(parts)

    def forward(self, x):
        for part in self.parts:
            x = x + part(x)
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
        assert image_size % patch_size == 0, "the patches must fill the image"
        assert pool in {"cls", "mean"}
        num_patches = (image_size // patch_size) ** 2
        patch_dim = channels * patch_size**2
        self.to_patch_embedding = nn.Sequential(
            Rearrange("b c (h p1) (w p2) -> b (h w) (p1 p2 c)", p1=patch_size, p2=patch_size),
            nn.Linear(patch_dim, dim),
        )
        self.pos_embedding = nn.Parameter(0.02 * torch.randn(1, num_patches + 1, dim))
        self.cls_token = nn.Parameter(0.02 * torch.randn(1, 1, dim))
        self.dropout = nn.Dropout(emb_dropout)
        self.transformer = Transformer(dim, depth, heads, dim_head, mlp_dim, dropout)
        self.pool = pool
        self.mlp_head = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, num_classes))

    def forward(self, img):
        x = self.to_patch_embedding(img)  # (b, patches, dim)
        cls_tokens = repeat(self.cls_token, "1 1 d -> b 1 d", b=x.shape[0])
        x = torch.cat((cls_tokens, x), dim=1)  # (b, patches + 1, dim)
        x = self.dropout(x + self.pos_embedding)
        x = self.transformer(x)
        x = x.mean(dim=1) if self.pool == "mean" else x[:, 0]
        return self.mlp_head(x)

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
    model.train()
    device = next(model.parameters()).device
    for batch_index, (images, labels) in enumerate(data_loader):
        images, labels = images.to(device), labels.to(device)
        optimizer.zero_grad()
        loss = F.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        if batch_index % 100 == 0:
            print(f"  batch {batch_index + 1}/{len(data_loader)}: loss {loss.item():.4f}")
            loss_history.append(loss.item())

# %%
@torch.no_grad()
def evaluate(model, data_loader, loss_history):
    """Measures the model on data that it was not trained on.

    Appends the average loss per image to the history and prints it together with the accuracy.

    Args:
        model: The ViT. It must be in evaluation mode, and no gradients may be computed.
        data_loader: Yields (images, labels). The last batch may be smaller than the others.
        loss_history: A list; one float is appended to it.
    """
    model.eval()
    device = next(model.parameters()).device
    losses, hits = [], []
    for images, labels in data_loader:
        labels = labels.to(device)
        logits = model(images.to(device))
        losses.append(F.cross_entropy(logits, labels, reduction="none"))
        hits.append(logits.argmax(-1).eq(labels))
    losses, hits = torch.cat(losses), torch.cat(hits)
    loss_history.append(losses.mean().item())
    print(f"loss: {losses.mean():.4f}  accuracy: {hits.float().mean():.2%} ({hits.sum()} of {len(hits)})")

# %% [markdown]
# ## 5. Train, save, reload

# %%
model = ViT(**settings["model"]).to(device)
print(f"The model has {sum(p.numel() for p in model.parameters() if p.requires_grad):,} parameters.")
optimizer = build(optim, "optimizer", model.parameters())
scheduler = build(optim.lr_scheduler, "scheduler", optimizer)
N_EPOCHS = settings["data"]["rounds"]

# %%
train_loss_history, test_loss_history = [], []
start = time.time()
for epoch in range(1, N_EPOCHS + 1):
    print(f"Round {epoch}/{N_EPOCHS}, rate {optimizer.param_groups[0]['lr']:.1e}")
    train_epoch(model, optimizer, train_loader, train_loss_history)
    evaluate(model, test_loader, test_loss_history)
    scheduler.step()
images_seen = N_EPOCHS * len(train_loader) * settings["data"]["batch_size"]
print(f"Training took {time.time() - start:.1f} s: {images_seen / len(train_set):.1f} passes over the images.")

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
plt.plot(test_loss_history, marker=".", label="test loss (every round)")
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
    device = next(model.parameters()).device
    true, predicted = [], []
    with torch.no_grad():
        for images, labels in data_loader:
            predicted += model(images.to(device)).argmax(dim=1).tolist()
            true += labels.tolist()
    matrix = confusion_matrix(true, predicted, labels=list(range(len(class_names))))
    plt.figure(figsize=(8, 7))
    sns.heatmap(matrix, annot=True, fmt="d", cmap="Blues", xticklabels=class_names, yticklabels=class_names)
    plt.xlabel("predicted class")
    plt.ylabel("true class")
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
    device = next(model.parameters()).device
    found = {label: [] for label in range(len(class_names))}
    with torch.no_grad():
        for images, labels in data_loader:
            predictions = model(images.to(device)).argmax(dim=1).cpu()
            for image, label, prediction in zip(images, labels.tolist(), predictions.tolist(), strict=True):
                if len(found[label]) < samples_per_class:
                    found[label].append((image, prediction))
            if all(len(examples) == samples_per_class for examples in found.values()):
                break
    fig, axes = plt.subplots(
        len(class_names), samples_per_class, figsize=(2.6 * samples_per_class, 2.6 * len(class_names)), squeeze=False
    )
    for label, row in enumerate(axes):
        for ax in row:
            ax.axis("off")
        for ax, (image, prediction) in zip(row, found[label], strict=False):
            ax.imshow((image.squeeze(0) * 0.5 + 0.5).clamp(0, 1), cmap="gray", vmin=0, vmax=1)
            ax.set_title(
                f"true: {class_names[label]}\npredicted: {class_names[prediction]}",
                fontsize=8,
                color="green" if prediction == label else "red",
            )
    fig.tight_layout()
    plt.show()

# %%
plot_confusion_matrix(model, test_loader, class_names)
plot_classwise_predictions(model, test_loader, class_names)
