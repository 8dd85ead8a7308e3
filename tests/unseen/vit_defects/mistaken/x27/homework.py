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

STUDENT_ID = "400114276"  # put your own student number here

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
    """LN -> fn"""

    def __init__(self, dim, fn):
        super().__init__()
        self.ln = nn.LayerNorm(dim, eps=1e-6)
        self.fn = fn

    def forward(self, x, **kwargs):
        return self.fn(self.ln(x), **kwargs)


# %%
class FeedForward(nn.Module):
    """Linear, GELU, dropout, linear, dropout"""

    def __init__(self, dim, hidden_dim, dropout=0.0):
        super().__init__()
        self.dropout = dropout
        self.w1 = nn.Linear(dim, hidden_dim)
        self.w2 = nn.Linear(hidden_dim, dim)

    def forward(self, x):
        x = F.dropout(F.gelu(self.w1(x)), p=self.dropout, training=self.training)
        x = F.dropout(self.w2(x), p=self.dropout, training=self.training)
        return x


# %%
class Head(nn.Module):
    """One attention head."""

    def __init__(self, dim, dim_head):
        super().__init__()
        self.query = nn.Linear(dim, dim_head, bias=False)
        self.key = nn.Linear(dim, dim_head, bias=False)
        self.value = nn.Linear(dim, dim_head, bias=False)

    def forward(self, x):
        q, k, v = self.query(x), self.key(x), self.value(x)  # (b, n, dim_head)
        wei = torch.bmm(q, k.transpose(1, 2)) / q.shape[-1] ** 0.5  # (b, n, n)
        return torch.bmm(F.softmax(wei, dim=2), v)


class Attention(nn.Module):
    """Several heads side by side and a projection back to dim."""

    def __init__(self, dim, heads=4, dim_head=64, dropout=0.0):
        super().__init__()
        self.heads = nn.ModuleList([Head(dim, dim_head) for _ in range(heads)])
        self.proj = nn.Linear(heads * dim_head, dim)
        self.drop = nn.Dropout(dropout)

    def forward(self, x):
        joined = torch.cat([head(x) for head in self.heads], dim=-1)
        return self.drop(self.proj(joined))


# %%
class Residual(nn.Module):
    """x + fn(x)"""

    def __init__(self, fn):
        super().__init__()
        self.fn = fn

    def forward(self, x):
        return x + self.fn(x)


class Transformer(nn.Module):
    """depth times: attention, feed-forward"""

    def __init__(self, dim, depth, heads, dim_head, mlp_dim, dropout=0.0):
        super().__init__()
        parts = []
        for _ in range(depth):
            parts.append(Residual(PreNorm(dim, Attention(dim, heads, dim_head, dropout))))
            parts.append(Residual(PreNorm(dim, FeedForward(dim, mlp_dim, dropout))))
        self.net = nn.Sequential(*parts)

    def forward(self, x):
        return self.net(x)


# %%
class ViT(nn.Module):
    """Patches -> tokens -> transformer -> scores"""

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
        assert pool == "cls" or pool == "mean"
        self.patch_size = patch_size
        self.num_patches = (image_size // patch_size) * (image_size // patch_size)
        self.pool = pool
        self.patch_to_token = nn.Linear(channels * patch_size**2, dim)
        self.cls_token = nn.Parameter(torch.randn(1, 1, dim))
        self.pos_embedding = nn.Parameter(torch.randn(1, self.num_patches + 1, dim))
        self.emb_dropout = nn.Dropout(emb_dropout)
        self.transformer = Transformer(dim, depth, heads, dim_head, mlp_dim, dropout)
        self.norm = nn.LayerNorm(dim)
        self.classifier = nn.Linear(dim, num_classes)

    def forward(self, img):
        p = self.patch_size
        x = rearrange(img, "b c (h p1) (w p2) -> b (h w) (p1 p2 c)", p1=p, p2=p)
        x = self.patch_to_token(x)
        b = x.shape[0]
        x = torch.cat((self.cls_token.expand(b, -1, -1), x), dim=1)
        x = self.emb_dropout(x + self.pos_embedding)
        x = self.transformer(x)
        if self.pool == "mean":
            x = x.mean(dim=1, keepdim=True)
        else:
            x = x[:, :1]
        x = self.classifier(self.norm(x))  # (b, 1, classes)
        return x.squeeze()


# %% [markdown]
# ## 4. Training and evaluation
#
# A manual loop: no trainer library.


# %%
def train_epoch(model, optimizer, data_loader, loss_history):
    """One epoch of training."""
    model.train()
    counter = 0
    for xb, yb in data_loader:
        xb, yb = xb.to(device), yb.to(device)
        loss = F.cross_entropy(model(xb), yb)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if counter % 100 == 0:
            print(f"iter {counter}: {loss.item():.4f}")
            loss_history.append(loss.item())
        counter += 1


# %%
def evaluate(model, data_loader, loss_history):
    """Loss per image and accuracy, without gradients."""
    model.eval()
    s = {"loss": 0.0, "correct": 0, "images": 0}
    with torch.inference_mode():
        for xb, yb in data_loader:
            xb, yb = xb.to(device), yb.to(device)
            out = model(xb)
            s["loss"] += F.cross_entropy(out, yb).item() * len(yb)
            s["correct"] += (out.argmax(dim=-1) == yb).sum().item()
            s["images"] += len(yb)
    loss_history.append(s["loss"] / s["images"])
    print(f"val loss {loss_history[-1]:.4f}, val acc {s['correct'] / s['images']:.4f} ({s['correct']}/{s['images']})")


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
    """Confusion matrix as an image with numbers."""
    model.eval()
    preds, trues = [], []
    with torch.no_grad():
        for xb, yb in data_loader:
            preds.append(model(xb.to(device)).argmax(dim=-1).cpu())
            trues.append(yb.cpu())
    preds, trues = torch.cat(preds), torch.cat(trues)
    n = len(class_names)
    cm = [[int(((trues == r) & (preds == c)).sum()) for c in range(n)] for r in range(n)]

    biggest = max(max(row) for row in cm)
    plt.figure(figsize=(7, 6))
    plt.imshow(cm, cmap="Oranges")
    plt.colorbar()
    plt.xticks(range(n), class_names, rotation=60)
    plt.yticks(range(n), class_names)
    for r in range(n):
        for c in range(n):
            plt.text(c, r, cm[r][c], ha="center", va="center", color="white" if cm[r][c] > biggest / 2 else "black")
    plt.xlabel("predicted")
    plt.ylabel("true")
    plt.tight_layout()
    plt.show()


# %%
def plot_classwise_predictions(model, data_loader, class_names, samples_per_class=4):
    """samples_per_class images of each class with both labels."""
    model.eval()
    by_class = {}
    with torch.no_grad():
        for xb, yb in data_loader:
            out = model(xb.to(device)).argmax(dim=-1).cpu()
            for x, y, o in zip(xb.cpu(), yb.tolist(), out.tolist()):
                by_class.setdefault(y, []).append((x, o))
    n = len(class_names)
    fig, axes = plt.subplots(n, samples_per_class, figsize=(2 * samples_per_class, 2.3 * n), squeeze=False)
    for y in range(n):
        examples = by_class.get(y, [])[:samples_per_class]
        for k in range(samples_per_class):
            axes[y, k].axis("off")
            if k >= len(examples):
                continue
            x, o = examples[k]
            axes[y, k].imshow(x.squeeze(0) * 0.5 + 0.5, cmap="gray", vmin=0, vmax=1)
            axes[y, k].set_title(
                "true: " + class_names[y] + "\npred: " + class_names[o], color="green" if o == y else "red", fontsize=8
            )
    plt.tight_layout()
    plt.show()


# %%
plot_confusion_matrix(model, test_loader, class_names)
plot_classwise_predictions(model, test_loader, class_names)
