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

STUDENT_ID = "400109628"  # put your own student number here

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
        self.norm = nn.LayerNorm([dim])
        self.sublayer = fn

    def forward(self, x, **kwargs):
        return self.sublayer(self.norm(x), **kwargs)


# %%
class FeedForward(nn.Module):
    def __init__(self, dim, hidden_dim, dropout=0.0):
        super().__init__()
        # a convolution of width 1 would be the same as these linear layers
        self.expand = nn.Linear(dim, hidden_dim)
        self.activation = nn.GELU()
        self.contract = nn.Linear(hidden_dim, dim)
        self.dropouts = nn.ModuleList([nn.Dropout(dropout), nn.Dropout(dropout)])

    def forward(self, x):
        hidden = self.dropouts[0](self.activation(self.expand(x)))
        return self.dropouts[1](self.contract(hidden))


# %%
class Attention(nn.Module):
    def __init__(self, dim, heads=4, dim_head=64, dropout=0.0):
        super().__init__()
        self.heads = heads
        self.dim_head = dim_head
        self.qkv = nn.Linear(dim, 3 * heads * dim_head, bias=False)
        self.out = nn.Sequential(
            nn.Linear(heads * dim_head, dim),
            nn.Dropout(dropout),
        )

    def forward(self, x):
        qkv = rearrange(self.qkv(x), "b n (h d k) -> k b h n d", k=3, h=self.heads)
        q, k, v = qkv[0], qkv[1], qkv[2]
        similarity = torch.einsum("bhid,bhjd->bhij", q, k) / (self.dim_head**0.5)
        probabilities = F.softmax(similarity, dim=-1)
        z = torch.einsum("bhij,bhjd->bihd", probabilities, v)
        return self.out(z.flatten(start_dim=2))


# %%
class Transformer(nn.Module):
    def __init__(self, dim, depth, heads, dim_head, mlp_dim, dropout=0.0):
        super().__init__()
        block = nn.ModuleList(
            [
                PreNorm(dim, Attention(dim, heads, dim_head, dropout)),
                PreNorm(dim, FeedForward(dim, mlp_dim, dropout)),
            ]
        )
        self.layers = nn.ModuleList([block] * depth)

    def forward(self, x):
        for attention, feed_forward in self.layers:
            x = x + attention(x)
            x = x + feed_forward(x)
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
        assert pool == "cls" or pool == "mean"
        self.dim = dim
        self.pool = pool
        self.num_patches = (image_size // patch_size) ** 2
        self.patch_embedding = nn.Sequential(
            nn.Conv2d(channels, dim, kernel_size=patch_size, stride=patch_size),
            nn.Flatten(start_dim=2),
            Rearrange("b d n -> b n d"),
        )
        self.class_token = nn.Parameter(torch.randn(1, 1, dim))
        self.dropout = nn.Dropout(emb_dropout)
        self.encoder = Transformer(dim, depth, heads, dim_head, mlp_dim, dropout)
        self.head = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, num_classes))

    def forward(self, img):
        x = self.patch_embedding(img)
        class_tokens = self.class_token.expand(x.shape[0], -1, -1)
        x = torch.cat([class_tokens, x], dim=1)
        position_embedding = nn.Parameter(torch.randn(1, self.num_patches + 1, self.dim, device=x.device))
        x = self.dropout(x + position_embedding)
        x = self.encoder(x)
        if self.pool == "mean":
            return self.head(torch.mean(x, dim=1))
        return self.head(x[:, 0])


# %% [markdown]
# ## 4. Training and evaluation
#
# A manual loop: no trainer library.


# %%
def train_epoch(model, optimizer, data_loader, loss_history):
    model.train()
    for i, (images, labels) in enumerate(data_loader):
        optimizer.zero_grad()
        images, labels = images.to(device), labels.to(device)
        predictions = model(images)
        loss = F.cross_entropy(predictions, labels)
        loss.backward()
        optimizer.step()
        if i % 100 == 0:
            loss_history.append(loss.item())
            print(f"[{i}/{len(data_loader)}] training loss {loss.item():.4f}")


# %%
def evaluate(model, data_loader, loss_history):
    model.eval()
    sum_of_losses = 0.0
    number_correct = 0
    number_of_images = 0
    with torch.no_grad():
        for images, labels in data_loader:
            images, labels = images.to(device), labels.to(device)
            predictions = model(images)
            sum_of_losses += F.cross_entropy(predictions, labels, reduction="sum").item()
            number_correct += (predictions.argmax(dim=1) == labels).sum().item()
            number_of_images += len(images)
    loss_history.append(sum_of_losses / number_of_images)
    print(f"test loss {loss_history[-1]:.4f}")
    print(f"test accuracy {100 * number_correct / number_of_images:.2f} %")


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
    y_true, y_pred = [], []
    with torch.no_grad():
        for images, labels in data_loader:
            y_true.append(labels)
            y_pred.append(model(images.to(device)).argmax(dim=1).cpu())
    matrix = confusion_matrix(torch.cat(y_true), torch.cat(y_pred), labels=range(len(class_names)))
    plt.figure(figsize=(7, 6))
    plt.pcolormesh(matrix, cmap="Blues", edgecolors="gray")
    middles = [i + 0.5 for i in range(len(class_names))]
    for row, y in enumerate(middles):
        for column, x in enumerate(middles):
            plt.text(x, y, str(matrix[row, column]), ha="center", va="center", color="black")
    plt.xticks(middles, class_names, rotation=45, ha="right")
    plt.yticks(middles, class_names)
    plt.gca().invert_yaxis()
    plt.xlabel("Predicted")
    plt.ylabel("True")
    plt.title("Confusion matrix")
    plt.tight_layout()
    plt.show()


# %%
def plot_classwise_predictions(model, data_loader, class_names, samples_per_class=4):
    model.eval()
    remaining = {label: samples_per_class for label in range(len(class_names))}
    pictures, truths = [], []
    for images, labels in data_loader:
        for image, label in zip(images, labels.tolist()):
            if remaining[label] > 0:
                remaining[label] -= 1
                pictures.append(image)
                truths.append(label)
    order = sorted(range(len(truths)), key=truths.__getitem__)
    with torch.no_grad():
        guesses = model(torch.stack(pictures).to(device)).argmax(dim=1).tolist()

    plt.figure(figsize=(2 * samples_per_class, 2.5 * len(class_names)))
    for place, i in enumerate(order):
        ax = plt.subplot(len(class_names), samples_per_class, place + 1)
        ax.imshow(pictures[i].squeeze(0) / 2 + 0.5, cmap="gray", vmin=0, vmax=1)
        ax.set_title(
            f"True: {class_names[truths[i]]}\nPredicted: {class_names[guesses[i]]}",
            fontsize=8,
            color="g" if truths[i] == guesses[i] else "r",
        )
        ax.axis("off")
    plt.tight_layout()
    plt.show()


# %%
plot_confusion_matrix(model, test_loader, class_names)
plot_classwise_predictions(model, test_loader, class_names)
