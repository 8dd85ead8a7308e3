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
import math
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

STUDENT_ID = "400112086"  # put your own student number here

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
        self.norm, self.fn = nn.LayerNorm(dim), fn

    def forward(self, x, **kwargs):
        return self.fn(self.norm(x), **kwargs)


# %%
class FeedForward(nn.Module):
    def __init__(self, dim, hidden_dim, dropout=0.0):
        super().__init__()
        self.up = nn.Linear(dim, hidden_dim)
        self.down = nn.Linear(hidden_dim, dim)
        self.drop_hidden = nn.Dropout(dropout)
        self.drop_out = nn.Dropout(dropout)

    def forward(self, x):
        return self.drop_out(self.down(self.drop_hidden(F.gelu(self.up(x)))))


# %%
def scaled_dot_product(q, k, v):
    """q, k, v: (B, H, N, D) -> (B, H, N, D)"""
    logits = torch.matmul(q, k.transpose(-1, -2))
    logits = logits / math.sqrt(q.size(-1))
    return torch.matmul(F.softmax(logits, dim=-1), v)


class Attention(nn.Module):
    def __init__(self, dim, heads=4, dim_head=64, dropout=0.0):
        super().__init__()
        self.heads = heads
        self.dim_head = dim_head
        self.in_proj = nn.Linear(dim, 3 * heads * dim_head, bias=False)
        self.out_proj = nn.Linear(heads * dim_head, dim)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        B, N, _ = x.shape
        q, k, v = self.in_proj(x).split(self.heads * self.dim_head, dim=-1)
        q = q.view(B, N, self.heads, self.dim_head).transpose(1, 2)
        k = k.view(B, N, self.heads, self.dim_head).transpose(1, 2)
        v = v.view(B, N, self.heads, self.dim_head).transpose(1, 2)
        out = scaled_dot_product(q, k, v)
        out = out.transpose(1, 2).contiguous().view(B, N, -1)
        return self.dropout(self.out_proj(out))


# %%
class Transformer(nn.Module):
    def __init__(self, dim, depth, heads, dim_head, mlp_dim, dropout=0.0):
        super().__init__()

        def make_pair():
            return nn.ModuleList(
                [
                    PreNorm(dim, Attention(dim, heads, dim_head, dropout)),
                    PreNorm(dim, FeedForward(dim, mlp_dim, dropout)),
                ]
            )

        self.layers = nn.ModuleList([make_pair() for _ in range(depth)])

    def forward(self, x):
        for sa, mlp in self.layers:
            x = x + sa(x)
            x = x + mlp(x)
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
        assert pool in ("cls", "mean")
        self.num_patches = (image_size // patch_size) ** 2
        self.patch_dim = channels * patch_size * patch_size
        self.pool = pool

        self.patch_proj = nn.Linear(self.patch_dim, dim)
        self.cls_token = nn.Parameter(torch.randn(1, 1, dim))
        self.pos_embedding = nn.Parameter(torch.randn(1, self.num_patches + 1, dim))
        self.dropout = nn.Dropout(emb_dropout)
        self.transformer = Transformer(dim, depth, heads, dim_head, mlp_dim, dropout)
        self.norm = nn.LayerNorm(dim)
        self.classifier = nn.Linear(dim, num_classes)

    def forward(self, img):
        B = img.shape[0]
        patches = img.reshape(B, self.num_patches, self.patch_dim)
        x = self.patch_proj(patches)  # B, num_patches, dim
        x = torch.cat([self.cls_token.expand(B, -1, -1), x], dim=1)  # B, num_patches + 1, dim
        x = self.dropout(x + self.pos_embedding)
        x = self.transformer(x)
        if self.pool == "cls":
            x = x[:, 0]  # B, dim
        else:
            x = x.mean(dim=1)  # B, dim
        return self.classifier(self.norm(x))  # B, num_classes


# %% [markdown]
# ## 4. Training and evaluation
#
# A manual loop: no trainer library.


# %%
def train_epoch(model, optimizer, data_loader, loss_history):
    model.train()
    for i, (x, y) in enumerate(data_loader):
        x, y = x.to(device), y.to(device)
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        if not i % 100:
            loss_history.append(loss.item())
            print(f"[{i + 1}/{len(data_loader)}] {loss_history[-1]:.4f}")


# %%
def evaluate(model, data_loader, loss_history):
    model.eval()
    total_loss = total_correct = total = 0
    with torch.no_grad():
        for x, y in data_loader:
            x, y = x.to(device), y.to(device)
            out = model(x)
            total_loss += F.cross_entropy(out, y, reduction="sum").item()
            total_correct += out.argmax(1).eq(y).sum().item()
            total += y.numel()
    loss_history.append(total_loss / total)
    print(f"Loss: {total_loss / total:.4f}   Accuracy: {total_correct / total * 100:.2f}% ({total_correct}/{total})")


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
    num = len(class_names)
    true, pred = [], []
    with torch.no_grad():
        for x, y in data_loader:
            pred += model(x.to(device)).argmax(1).cpu().tolist()
            true += y.cpu().tolist()
    cm = confusion_matrix(true, pred, labels=list(range(num)))

    fig, ax = plt.subplots(figsize=(8, 8))
    im = ax.imshow(cm, cmap=plt.cm.Blues)
    fig.colorbar(im, ax=ax, shrink=0.8)
    ax.set(
        xticks=range(num),
        yticks=range(num),
        xticklabels=class_names,
        yticklabels=class_names,
        xlabel="Predicted label",
        ylabel="True label",
        title="Confusion matrix",
    )
    plt.setp(ax.get_xticklabels(), rotation=45, ha="right")
    for row in range(num):
        for col in range(num):
            ax.text(
                col,
                row,
                format(cm[row, col], "d"),
                ha="center",
                va="center",
                color="white" if cm[row, col] > cm.max() / 2 else "black",
            )
    fig.tight_layout()
    plt.show()


# %%
def plot_classwise_predictions(model, data_loader, class_names, samples_per_class=4):
    model.eval()
    samples = [[] for _ in class_names]
    with torch.no_grad():
        for x, y in data_loader:
            p = model(x.to(device)).argmax(1).cpu()
            for img, label, guess in zip(x.cpu(), y.tolist(), p.tolist()):
                if len(samples[label]) < 4:
                    samples[label].append((img * 0.5 + 0.5, guess))

    fig, axes = plt.subplots(len(class_names), 4, figsize=(9, 2.4 * len(class_names)), squeeze=False)
    for label, row in enumerate(axes):
        for k, ax in enumerate(row):
            ax.axis("off")
            if k < len(samples[label]):
                img, guess = samples[label][k]
                ax.imshow(img.permute(1, 2, 0).squeeze(-1).numpy(), cmap="gray", vmin=0, vmax=1)
                ax.set_title(
                    f"True: {class_names[label]}\nPred: {class_names[guess]}",
                    fontsize=8,
                    color="green" if guess == label else "red",
                )
    fig.tight_layout()
    plt.show()


# %%
plot_confusion_matrix(model, test_loader, class_names)
plot_classwise_predictions(model, test_loader, class_names)
