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

STUDENT_ID = "400113224"  # put your own student number here

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
    # LayerNorm first, then the function

    def __init__(self, dim, fn):
        super().__init__()
        self.ln = nn.LayerNorm(dim)
        self.fn = fn

    def forward(self, x, **kwargs):
        return self.fn(self.ln(x), **kwargs)


# %%
class FeedForward(nn.Module):
    # dim -> hidden -> dim, for each token

    def __init__(self, dim, hidden_dim, dropout=0.0):
        super().__init__()
        self.fc1 = nn.Linear(dim, dim * 2)
        self.act = nn.ReLU()
        self.drop1 = nn.Dropout(dropout)
        self.fc2 = nn.Linear(dim * 2, dim)
        self.drop2 = nn.Dropout(dropout)

    def forward(self, x):
        x = self.drop1(self.act(self.fc1(x)))
        x = self.drop2(self.fc2(x))
        return x


# %%
class Attention(nn.Module):
    def __init__(self, dim, heads=4, dim_head=64, dropout=0.0):
        super().__init__()
        self.num_heads = heads
        self.head_size = dim_head
        self.query = nn.Linear(dim, heads * dim_head)
        self.key = nn.Linear(dim, heads * dim_head)
        self.value = nn.Linear(dim, heads * dim_head)
        self.proj = nn.Linear(heads * dim_head, dim)
        self.drop = nn.Dropout(dropout)

    def split_heads(self, t):
        # (B, N, H*D) -> (B, H, N, D)
        B, N, _ = t.shape
        return t.view(B, N, self.num_heads, self.head_size).transpose(1, 2)

    def forward(self, x):
        B, N, _ = x.shape
        q = self.split_heads(self.query(x))
        k = self.split_heads(self.key(x))
        v = self.split_heads(self.value(x))
        att = (q @ k.transpose(-2, -1)) / self.head_size**0.5
        att = F.softmax(att, dim=-1)
        y = (att @ v).transpose(1, 2).contiguous().view(B, N, self.num_heads * self.head_size)
        return self.drop(self.proj(y))


# %%
class Transformer(nn.Module):
    def __init__(self, dim, depth, heads, dim_head, mlp_dim, dropout=0.0):
        super().__init__()
        self.attns = nn.ModuleList(
            [PreNorm(dim, Attention(dim, heads, dim_head, dropout)) for _ in range(depth)]
        )
        self.ffs = nn.ModuleList([PreNorm(dim, FeedForward(dim, mlp_dim, dropout)) for _ in range(depth)])

    def forward(self, x):
        for attn, ff in zip(self.attns, self.ffs):
            x = x + attn(x)
            x = x + ff(x)
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
        if image_size % patch_size != 0:
            raise ValueError("patch_size has to divide image_size")
        self.pool = pool
        n = (image_size // patch_size) ** 2
        # a convolution with stride = kernel size is the same as cutting + linear layer
        self.patch_conv = nn.Conv2d(channels, dim, kernel_size=patch_size, stride=patch_size)
        self.cls = nn.Parameter(torch.zeros(1, 1, dim))
        self.pos = nn.Parameter(torch.randn(1, n + 1, dim) * 0.02)
        self.emb_drop = nn.Dropout(emb_dropout)
        self.encoder = Transformer(dim, depth, heads, dim_head, mlp_dim, dropout)
        self.norm = nn.LayerNorm(dim)
        self.fc = nn.Linear(dim, num_classes)

    def forward(self, img):
        B = img.shape[0]
        x = self.patch_conv(img)  # (B, dim, h, w)
        x = x.flatten(2).transpose(1, 2)  # (B, N, dim)
        x = torch.cat([self.cls.expand(B, -1, -1), x], dim=1)
        x = x + self.pos
        x = self.emb_drop(x)
        x = self.encoder(x)
        if self.pool == "cls":
            x = x[:, 0]
        else:
            x = x.mean(1)
        return self.fc(self.norm(x))

# %% [markdown]
# ## 4. Training and evaluation
#
# A manual loop: no trainer library.


# %%
def train_epoch(model, optimizer, data_loader, loss_history):
    criterion = nn.CrossEntropyLoss()
    model.train()
    for step, batch in enumerate(data_loader):
        data, target = batch[0].to(device), batch[1].to(device)
        optimizer.zero_grad()
        loss = criterion(model(data), target)
        loss.backward()
        optimizer.step()
        if step % 100 == 0:
            print("batch", step, "/", len(data_loader), "loss", round(loss.item(), 4))
            loss_history.append(loss.item())


# %%
@torch.no_grad()
def evaluate(model, data_loader, loss_history):
    criterion = nn.CrossEntropyLoss(reduction="sum")
    model.eval()
    loss_sum = 0.0
    right = 0
    count = 0
    for data, target in data_loader:
        data, target = data.to(device), target.to(device)
        out = model(data)
        loss_sum += criterion(out, target).item()
        right += out.argmax(1).eq(target).sum().item()
        count += target.shape[0]
    loss_history.append(loss_sum / count)
    print("average test loss: %.4f   accuracy: %.2f%%" % (loss_sum / count, 100.0 * right / count))

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
    n = len(class_names)
    matrix = torch.zeros(n, n, dtype=torch.long)
    model.eval()
    with torch.no_grad():
        for data, target in data_loader:
            pred = model(data.to(device)).argmax(1).cpu()
            for t, p in zip(target, pred):
                matrix[t, p] += 1

    fig, ax = plt.subplots(figsize=(7, 7))
    im = ax.imshow(matrix.numpy(), cmap="viridis")
    fig.colorbar(im)
    ax.set_xticks(range(n))
    ax.set_xticklabels(class_names, rotation=45, ha="right")
    ax.set_yticks(range(n))
    ax.set_yticklabels(class_names)
    half = matrix.max().item() / 2
    for i in range(n):
        for j in range(n):
            value = matrix[i, j].item()
            ax.text(j, i, str(value), ha="center", va="center", color="black" if value > half else "white")
    ax.set_xlabel("predicted class")
    ax.set_ylabel("true class")
    ax.set_title("Confusion matrix")
    plt.tight_layout()
    plt.show()


# %%
def plot_classwise_predictions(model, data_loader, class_names, samples_per_class=4):
    model.eval()
    chosen = [[] for _ in class_names]
    with torch.no_grad():
        for data, target in data_loader:
            pred = model(data.to(device)).argmax(1).cpu()
            for k in range(len(target)):
                t = target[k].item()
                if len(chosen[t]) < samples_per_class:
                    chosen[t].append((data[k].cpu(), pred[k].item()))

    rows = len(class_names)
    plt.figure(figsize=(2.2 * samples_per_class, 2.4 * rows))
    for t in range(rows):
        for k, (image, p) in enumerate(chosen[t]):
            plt.subplot(rows, samples_per_class, t * samples_per_class + k + 1)
            plt.imshow((image * 0.5 + 0.5).permute(1, 2, 0).numpy(), cmap="gray")
            plt.title(
                "true: " + class_names[t] + "\npred: " + class_names[p],
                fontsize=8,
                color="g" if t == p else "r",
            )
            plt.axis("off")
    plt.tight_layout()
    plt.show()


# %%
plot_confusion_matrix(model, test_loader, class_names)
plot_classwise_predictions(model, test_loader, class_names)
