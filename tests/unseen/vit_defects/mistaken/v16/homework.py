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

STUDENT_ID = "400112165"

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
        self.norm = nn.LayerNorm(dim)
        self.fn = fn

    def forward(self, x, **kwargs):
        out = self.norm(x)
        out = self.fn(out, **kwargs)
        return out


# %%
class FeedForward(nn.Module):
    def __init__(self, dim, hidden_dim, dropout=0.0):
        super(FeedForward, self).__init__()
        self.linear1 = nn.Linear(dim, hidden_dim)
        self.activation = nn.GELU()
        self.dropout1 = nn.Dropout(dropout)
        self.linear2 = nn.Linear(hidden_dim, dim)
        self.dropout2 = nn.Dropout(dropout)

    def forward(self, x):
        out = self.linear1(x)
        out = self.activation(out)
        out = self.dropout1(out)
        out = self.linear2(out)
        out = self.dropout2(out)
        return out


# %%
class AttentionHead(nn.Module):
    """One head of the attention."""

    def __init__(self, dim, dim_head):
        super(AttentionHead, self).__init__()
        self.dim_head = dim_head
        self.q = nn.Linear(dim, dim_head)
        self.k = nn.Linear(dim, dim_head)
        self.v = nn.Linear(dim, dim_head)

    def forward(self, x):
        q, k, v = self.q(x), self.k(x), self.v(x)  # (batch, tokens, dim_head)
        scores = torch.bmm(q, k.transpose(1, 2)) / (self.dim_head**0.5)
        probs = torch.softmax(scores, dim=2)
        return torch.bmm(probs, v)


class Attention(nn.Module):
    def __init__(self, dim, heads=4, dim_head=64, dropout=0.0):
        super(Attention, self).__init__()
        self.heads = nn.ModuleList([AttentionHead(dim, dim_head) for _ in range(heads)])
        self.proj = nn.Linear(heads * dim_head, dim)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        out = torch.cat([head(x) for head in self.heads], dim=2)
        out = self.proj(out)
        return self.dropout(out)


# %%
class Transformer(nn.Module):
    def __init__(self, dim, depth, heads, dim_head, mlp_dim, dropout=0.0):
        super(Transformer, self).__init__()
        self.layers = nn.ModuleList([])
        for i in range(depth):
            attention = PreNorm(dim, Attention(dim, heads=heads, dim_head=dim_head, dropout=dropout))
            mlp = PreNorm(dim, FeedForward(dim, mlp_dim, dropout=dropout))
            self.layers.append(nn.ModuleList([attention, mlp]))
        self.final_norm = nn.LayerNorm(dim)

    def forward(self, x):
        for layer in self.layers:
            x = layer[0](x) + x
            x = layer[1](x) + x
        return self.final_norm(x)


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
        super(ViT, self).__init__()
        assert image_size % patch_size == 0, "the patches must fit into the image"
        self.num_patches = (image_size // patch_size) ** 2
        self.patch_dim = channels * patch_size * patch_size
        self.pool = pool

        self.patch_embedding = nn.Linear(self.patch_dim, dim)
        self.cls_token = nn.Parameter(torch.randn(1, 1, dim))
        self.pos_embedding = nn.Parameter(torch.randn(1, self.num_patches + 1, dim))
        self.dropout = nn.Dropout(emb_dropout)
        self.transformer = Transformer(dim, depth, heads, dim_head, mlp_dim, dropout)
        self.head = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, num_classes))

    def forward(self, img):
        batch_size = img.shape[0]
        # (batch, channels, height, width) -> (batch, patches, numbers of a patch)
        patches = img.reshape(batch_size, self.num_patches, self.patch_dim)
        out = self.patch_embedding(patches)
        cls_tokens = self.cls_token.expand(batch_size, -1, -1)
        out = torch.cat([cls_tokens, out], dim=1)
        out = out + self.pos_embedding
        out = self.dropout(out)
        out = self.transformer(out)
        if self.pool == "cls":
            out = out[:, 0]
        else:
            out = out.mean(dim=1)
        return self.head(out)


# %% [markdown]
# ## 4. Training and evaluation
#
# A manual loop: no trainer library.


# %%
def train_epoch(model, optimizer, data_loader, loss_history):
    model.train()
    for i, batch in enumerate(data_loader):
        images = batch[0].to(device)
        labels = batch[1].to(device)
        model.zero_grad()
        log_probs = F.log_softmax(model(images), dim=1)
        loss = F.nll_loss(log_probs, labels)
        loss.backward()
        optimizer.step()
        if i % 100 == 0:
            print("Batch", i, "of", len(data_loader), " Loss:", round(loss.item(), 4))
            loss_history.append(loss.item())


# %%
def evaluate(model, data_loader, loss_history):
    model.eval()
    total_loss = 0
    correct = 0
    total = 0
    with torch.no_grad():
        for batch in data_loader:
            images = batch[0].to(device)
            labels = batch[1].to(device)
            log_probs = F.log_softmax(model(images), dim=1)
            total_loss += F.nll_loss(log_probs, labels, reduction="sum").item()
            predictions = torch.argmax(log_probs, dim=1)
            correct += int((predictions == labels).sum())
            total += images.size(0)
    total_loss = total_loss / total
    loss_history.append(total_loss)
    print("Average loss:", round(total_loss, 4), " Accuracy:", correct, "/", total, "=", round(100 * correct / total, 2), "%")


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
    all_labels = []
    all_predictions = []
    with torch.no_grad():
        for images, labels in data_loader:
            out = model(images.to(device))
            all_predictions.extend(out.argmax(dim=1).cpu().tolist())
            all_labels.extend(labels.tolist())
    num_classes = len(class_names)
    matrix = [[0] * num_classes for _ in range(num_classes)]
    for label, prediction in zip(all_labels, all_predictions):
        matrix[label][prediction] += 1
    plt.figure(figsize=(8, 6))
    sns.heatmap(matrix, annot=True, fmt="d", xticklabels=class_names, yticklabels=class_names, cmap="Purples")
    plt.title("Confusion Matrix")
    plt.xlabel("Predicted Label")
    plt.ylabel("True Label")
    plt.show()


# %%
def plot_classwise_predictions(model, data_loader, class_names, samples_per_class=4):
    model.eval()
    shown = [0] * len(class_names)
    plt.figure(figsize=(samples_per_class * 2.5, len(class_names) * 2.8))
    with torch.no_grad():
        for images, labels in data_loader:
            predictions = model(images.to(device)).argmax(dim=1).cpu()
            for image, label, prediction in zip(images, labels.tolist(), predictions.tolist()):
                if shown[label] == samples_per_class:
                    continue
                shown[label] += 1
                plt.subplot(len(class_names), samples_per_class, label * samples_per_class + shown[label])
                image = image.cpu() * 0.5 + 0.5
                plt.imshow(image.permute(1, 2, 0).squeeze(-1), cmap="gray", vmin=0, vmax=1)
                plt.title(
                    "True: " + class_names[label] + "\nPred: " + class_names[prediction],
                    color="blue" if label == prediction else "red",
                    fontsize=8,
                )
                plt.axis("off")
    plt.tight_layout()
    plt.show()


# %%
plot_confusion_matrix(model, test_loader, class_names)
plot_classwise_predictions(model, test_loader, class_names)
