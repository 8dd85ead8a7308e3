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

STUDENT_ID = "400109219"  # put your own student number here

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
    """LayerNorm before fn."""

    def __init__(self, dim, fn):
        super().__init__()
        self.fn = fn
        self.norm = nn.LayerNorm(normalized_shape=dim)

    def forward(self, x, **kwargs):
        return self.fn(self.norm(x), **kwargs)


# %%
class FeedForward(nn.Module):
    """Linear - GELU - Dropout - Linear - Dropout."""

    def __init__(self, dim, hidden_dim, dropout=0.0):
        super().__init__()
        layers = []
        layers.append(nn.Linear(dim, hidden_dim))
        layers.append(nn.GELU())
        layers.append(nn.Dropout(p=dropout))
        layers.append(nn.Linear(hidden_dim, dim))
        layers.append(nn.Dropout(p=dropout))
        self.layers = nn.Sequential(*layers)

    def forward(self, x):
        return self.layers(x)


# %%
class Attention(nn.Module):
    """Multi-head self-attention, q, k and v from one linear layer."""

    def __init__(self, dim, heads=4, dim_head=64, dropout=0.0):
        super().__init__()
        self.heads = heads
        inner = heads * dim_head
        self.scale = 1 / dim_head**0.5
        self.qkv = nn.Linear(dim, 3 * inner, bias=False)
        self.project = nn.Linear(inner, dim)
        self.dropout = nn.Dropout(p=dropout)

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        q = rearrange(q, "b n (h d) -> b h n d", h=self.heads)
        k = rearrange(k, "b n (h d) -> b h d n", h=self.heads)
        v = rearrange(v, "b n (h d) -> b h n d", h=self.heads)
        weights = (q @ k * self.scale).softmax(dim=-1)
        out = rearrange(weights @ v, "b h n d -> b n (h d)")
        return self.dropout(self.project(out))


# %%
class Transformer(nn.Module):
    """depth times: attention with residual, feed forward with residual."""

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
    """Patches -> tokens -> Transformer -> class scores."""

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
        assert image_size % patch_size == 0, "image_size % patch_size != 0"
        assert pool in ("cls", "mean"), "pool is cls or mean"

        patches_per_side = image_size // patch_size
        self.num_patches = patches_per_side**2
        self.patch_size = patch_size
        self.pool = pool

        self.patch_to_token = nn.Linear(channels * patch_size**2, dim)
        self.class_token = nn.Parameter(torch.randn(1, 1, dim) * 0.02)
        self.positions = nn.Parameter(torch.randn(1, self.num_patches + 1, dim) * 0.02)
        self.dropout = nn.Dropout(p=emb_dropout)
        self.transformer = Transformer(dim, depth, heads, dim_head, mlp_dim, dropout)
        self.head = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, num_classes))

    def forward(self, img):
        patches = rearrange(img, "b c (h p) (w q) -> b (h w) (c p q)", p=self.patch_size, q=self.patch_size)
        tokens = self.patch_to_token(patches)
        cls = repeat(self.class_token, "1 1 d -> b 1 d", b=img.size(0))
        tokens = torch.cat([tokens, cls], dim=1)
        tokens = tokens + self.positions
        tokens = self.dropout(tokens)
        tokens = self.transformer(tokens)
        if self.pool == "cls":
            result = tokens[:, 0]
        else:
            result = tokens.mean(dim=1)
        return self.head(result)


# %% [markdown]
# ## 4. Training and evaluation
#
# A manual loop: no trainer library.


# %%
def train_epoch(model, optimizer, data_loader, loss_history):
    """One pass over the training data."""
    model.train()
    loss_fn = nn.CrossEntropyLoss()
    seen = 0
    for number, batch in enumerate(data_loader):
        images = batch[0].to(device)
        labels = batch[1].to(device)
        optimizer.zero_grad(set_to_none=True)
        scores = model(images)
        loss = loss_fn(scores, labels)
        loss.backward()
        optimizer.step()
        seen += len(labels)
        if number % 100 == 0:
            loss_history.append(float(loss.detach()))
            print(f"Trained on {seen} images, loss of the batch: {loss_history[-1]:.4f}")


# %%
def evaluate(model, data_loader, loss_history):
    """Average loss and accuracy on the test data."""
    model.eval()
    loss_fn = nn.CrossEntropyLoss(reduction="none")
    losses, right = [], []
    with torch.no_grad():
        for images, labels in data_loader:
            scores = model(images.to(device)).cpu()
            labels = labels.cpu()
            losses.append(loss_fn(scores, labels))
            right.append(scores.argmax(dim=1) == labels)
    losses = torch.cat(losses)
    right = torch.cat(right)
    mean_loss = losses.mean().item()
    loss_history.append(mean_loss)
    print(f"Test: loss {mean_loss:.4f}, accuracy {right.float().mean().item():.4f} ({int(right.sum())}/{len(right)})")


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
    """Rows are the true classes, columns the predicted ones."""
    model.eval()
    truth = []
    guess = []
    with torch.no_grad():
        for images, labels in data_loader:
            guess += model(images.to(device)).argmax(dim=1).tolist()
            truth += labels.tolist()
    counts = confusion_matrix(truth, guess, labels=range(len(class_names)))
    fig, ax = plt.subplots(figsize=(8, 7))
    sns.heatmap(
        counts, annot=True, fmt="d", cmap="Greens", square=True, ax=ax, xticklabels=class_names, yticklabels=class_names
    )
    ax.set(xlabel="Predicted class", ylabel="True class", title="Confusion matrix")
    fig.tight_layout()
    plt.show()


# %%
def plot_classwise_predictions(model, data_loader, class_names, samples_per_class=4):
    """samples_per_class images of each class with both labels."""
    model.eval()
    examples = [[] for _ in class_names]
    for images, labels in data_loader:
        for image, label in zip(images, labels):
            if len(examples[int(label)]) < samples_per_class:
                examples[int(label)].append(image)

    fig = plt.figure(figsize=(2.3 * samples_per_class, 2.5 * len(class_names)))
    for row, images in enumerate(examples):
        for column, image in enumerate(images):
            with torch.no_grad():
                guess = int(model(image.unsqueeze(0).to(device)).argmax(dim=1))
            ax = fig.add_subplot(len(class_names), samples_per_class, row * samples_per_class + column + 1)
            ax.imshow(image.squeeze(0).cpu().numpy() * 0.5 + 0.5, cmap="gray", vmin=0, vmax=1)
            ax.set_title(f"True: {class_names[row]}\nPredicted: {class_names[guess]}", fontsize=7)
            ax.title.set_color("green" if guess == row else "red")
            ax.axis("off")
    fig.tight_layout()
    plt.show()


# %%
plot_confusion_matrix(model, test_loader, class_names)
plot_classwise_predictions(model, test_loader, class_names)
