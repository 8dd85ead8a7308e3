# %% [markdown]
# # Vision Transformer for steel surface defects

# %%
import copy
import random
import shutil
import time
import zipfile
from contextlib import contextmanager
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import seaborn as sns
import torch
import torch.nn.functional as F
from einops import repeat
from einops.layers.torch import Rearrange
from sklearn.metrics import confusion_matrix
from torch import nn, optim
from torch.utils.data import DataLoader
from torchvision import datasets, transforms

STUDENT_ID = "400101200"

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
plain = transforms.Compose(
    [
        transforms.Resize((28, 28)),
        transforms.Grayscale(num_output_channels=1),
        transforms.ToTensor(),
        transforms.Normalize((0.5,), (0.5,)),
    ]
)

varied = transforms.Compose([transforms.RandomHorizontalFlip(), transforms.RandomVerticalFlip(), plain])
BATCH_SIZE = 32

train_set = datasets.ImageFolder("data/train", transform=varied)
test_set = datasets.ImageFolder("data/test", transform=plain)
train_loader = DataLoader(train_set, batch_size=BATCH_SIZE, shuffle=True)
test_loader = DataLoader(test_set, batch_size=256, shuffle=False)
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
    total, correct, seen = 0.0, 0, 0
    with torch.no_grad():
        for images, labels in data_loader:
            images, labels = images.to(device), labels.to(device)
            scores = model(images)
            total += F.cross_entropy(scores, labels, reduction="sum").item()
            correct += (scores.argmax(dim=1) == labels).sum().item()
            seen += len(labels)
    loss_history.append(total / seen)
    print(f"  average loss {total / seen:.4f}, accuracy {correct}/{seen} ({100 * correct / seen:.2f} %)")

# %% [markdown]
# ## 5. The model, and two experiments on copies of it before the training

# %%
N_EPOCHS = 14

model = ViT(
    image_size=28, patch_size=4, num_classes=6, channels=1, dim=48, depth=4, heads=4, mlp_dim=96, dim_head=16,
    dropout=0.05,
).to(device)
print(f"The model has {sum(p.numel() for p in model.parameters() if p.requires_grad):,} parameters.")


@contextmanager
def throwaway_copy(net):
    """A copy to play with; neither the model nor the random numbers of the training notice."""
    with torch.random.fork_rng():
        yield copy.deepcopy(net).train()


def overfit_one_batch(net, images, labels, steps=40):
    """A model that cannot learn 16 images by heart has a mistake somewhere."""
    probe = optim.AdamW(net.parameters(), lr=1e-3)
    for _ in range(steps):
        probe.zero_grad()
        loss = F.cross_entropy(net(images), labels)
        loss.backward()
        probe.step()
    return loss.item()


def range_test(net, loader, lowest=1e-5, highest=1e-1, steps=60):
    """The smoothed loss while the rate rises from `lowest` to `highest` (L. Smith, 2015)."""
    probe = optim.AdamW(net.parameters(), lr=lowest, weight_decay=0.05)
    rates = np.geomspace(lowest, highest, steps)
    losses, average, batches = [], None, iter(loader)
    for rate in rates:
        try:
            images, labels = next(batches)
        except StopIteration:
            batches = iter(loader)
            images, labels = next(batches)
        for group in probe.param_groups:
            group["lr"] = rate
        loss = F.cross_entropy(net(images.to(device)), labels.to(device))
        probe.zero_grad()
        loss.backward()
        probe.step()
        average = loss.item() if average is None else 0.9 * average + 0.1 * loss.item()
        losses.append(average)
        if average > 3 * min(losses):
            break
    return rates[: len(losses)], np.array(losses)


with throwaway_copy(model) as net:
    few_images, few_labels = next(iter(DataLoader(train_set, batch_size=16, shuffle=True)))
    print(f"loss on 16 images learned by heart: {overfit_one_batch(net, few_images.to(device), few_labels.to(device)):.4f}")

with throwaway_copy(model) as net:
    rates, losses = range_test(net, train_loader)
MAX_RATE = float(np.clip(rates[losses.argmin()] / 4, 1e-3, 3e-3))
print(f"The loss is lowest at {rates[losses.argmin()]:.1e}; highest rate of the training: {MAX_RATE:.1e}")

plt.figure(figsize=(6, 3.5))
plt.semilogx(rates, losses)
plt.axvline(MAX_RATE, linestyle="--", color="tab:red")
plt.xlabel("rate")
plt.ylabel("smoothed loss")
plt.title("Range test")
plt.show()

# %% [markdown]
# ## 6. Train
#
# One cycle of the rate. The scheduler has to move after every *batch*, but `train_epoch` knows nothing of
# schedulers, so the optimizer is told to do it: it calls its hooks after every step.

# %%
optimizer = optim.AdamW(model.parameters(), lr=MAX_RATE, weight_decay=0.05)
total_steps = N_EPOCHS * len(train_loader)
scheduler = optim.lr_scheduler.OneCycleLR(optimizer, max_lr=MAX_RATE, total_steps=total_steps, pct_start=0.3)


def next_rate(optimizer, args, kwargs):
    if scheduler.last_epoch < total_steps - 1:
        scheduler.step()


hook = optimizer.register_step_post_hook(next_rate)

train_loss_history, test_loss_history, rate_history = [], [], []
start = time.time()
for epoch in range(1, N_EPOCHS + 1):
    print(f"Epoch {epoch}/{N_EPOCHS}")
    train_epoch(model, optimizer, train_loader, train_loss_history)
    evaluate(model, test_loader, test_loss_history)
    rate_history.append(scheduler.get_last_lr()[0])
hook.remove()
print(f"Training took {time.time() - start:.1f} s.")
print("rates after each epoch:", *(f"{rate:.1e}" for rate in rate_history))

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
# ## 7. What has it learned?

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
