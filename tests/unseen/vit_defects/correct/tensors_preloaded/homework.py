# %% [markdown]
# # ViT for steel defects (400107901)
# Reading the images again in every epoch was the slow part on my laptop, so all images are read once and kept
# as tensors (1800 x 28 x 28 floats are only 6 MB).

# %%
import random
import time
import zipfile
from pathlib import Path

import matplotlib.pyplot as plt
import seaborn as sns
import torch
import torch.nn.functional as F
from PIL import Image
from sklearn.metrics import confusion_matrix
from torch import nn, optim
from torch.utils.data import TensorDataset
from torchvision.transforms import functional as TF

STUDENT_ID = "400107901"

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(42)

# %% [markdown]
# ## 1. Data

# %%
IMAGE_SIZE = 28
BATCH_SIZE = 50


def find_class_folders(root):
    """The folder that holds one folder per class: `root` itself, or a single folder inside it."""
    folders = [path for path in root.iterdir() if path.is_dir() and path.name != "__MACOSX"]
    return find_class_folders(folders[0]) if len(folders) == 1 else root


def read_image(path):
    """One image as a (1, 28, 28) tensor between -1 and 1."""
    with Image.open(path) as picture:
        picture = picture.convert("L").resize((IMAGE_SIZE, IMAGE_SIZE), Image.BILINEAR)
        return (TF.to_tensor(picture) - 0.5) / 0.5


def load_everything(root, train_share=0.7, seed=42):
    """Two TensorDatasets and the class names. Same split as in the handout: sorted, shuffled with seed 42."""
    names = sorted(p.name for p in root.iterdir() if p.is_dir() and p.name != "__MACOSX")
    parts = {"train": ([], []), "test": ([], [])}
    for label, name in enumerate(names):
        files = sorted(p.name for p in (root / name).iterdir() if p.suffix.lower() in (".jpg", ".png", ".bmp"))
        random.Random(seed).shuffle(files)
        n_train = round(train_share * len(files))
        for position, file in enumerate(files):
            images, labels = parts["train" if position < n_train else "test"]
            images.append(read_image(root / name / file))
            labels.append(label)
    sets = [TensorDataset(torch.stack(images), torch.tensor(labels)) for images, labels in parts.values()]
    return sets[0], sets[1], names


class Batches:
    """A small DataLoader for tensors that lie in memory already."""

    def __init__(self, dataset, batch_size, shuffle=False, augment=None):
        self.dataset = dataset
        self.batch_size = batch_size
        self.shuffle = shuffle
        self.augment = augment

    def __len__(self):
        return (len(self.dataset) + self.batch_size - 1) // self.batch_size

    def __iter__(self):
        images, labels = self.dataset.tensors
        order = torch.randperm(len(labels)) if self.shuffle else torch.arange(len(labels))
        for index in order.split(self.batch_size):
            x, y = images[index], labels[index]
            if self.augment is not None:
                x = self.augment(x)
            yield x, y


def random_flips(x):
    """Every image of the batch is flipped left-right and up-down by its own coins."""
    def coin():
        return torch.rand(len(x), 1, 1, 1) < 0.5

    x = torch.where(coin(), x.flip(-1), x)
    x = torch.where(coin(), x.flip(-2), x)
    return x


# %%
with zipfile.ZipFile("dataset.zip") as archive:
    archive.extractall("dataset")
train_data, test_data, class_names = load_everything(find_class_folders(Path("dataset")))
train_loader = Batches(train_data, BATCH_SIZE, shuffle=True, augment=random_flips)
test_loader = Batches(test_data, 200)
print("train:", tuple(train_data.tensors[0].shape), " test:", tuple(test_data.tensors[0].shape), class_names)

# %%
fig, axes = plt.subplots(6, 6, figsize=(8, 9))
for c, row in enumerate(axes):
    of_class = train_data.tensors[0][train_data.tensors[1] == c]
    for ax, image in zip(row, of_class):
        ax.imshow(image[0], cmap="gray", vmin=-1, vmax=1)
    for ax in row:
        ax.axis("off")
    row[0].set_title(class_names[c], loc="left", fontsize=9)
plt.show()

# %% [markdown]
# ## 3. Model


# %%
class PreNorm(nn.Module):
    def __init__(self, dim, fn):
        super().__init__()
        self.ln = nn.LayerNorm(dim)
        self.fn = fn

    def forward(self, x, **kwargs):
        return self.fn(self.ln(x), **kwargs)


# %%
class FeedForward(nn.Module):
    def __init__(self, dim, hidden_dim, dropout=0.0):
        super().__init__()
        self.expand = nn.Linear(dim, hidden_dim)
        self.shrink = nn.Linear(hidden_dim, dim)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        h = self.dropout(F.gelu(self.expand(x)))
        return self.dropout(self.shrink(h))


# %%
class Attention(nn.Module):
    def __init__(self, dim, heads=4, dim_head=64, dropout=0.0):
        super().__init__()
        self.heads, self.dim_head = heads, dim_head
        self.qkv = nn.Linear(dim, 3 * heads * dim_head)
        self.out = nn.Linear(heads * dim_head, dim)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        B, N, _ = x.shape
        # each (B, N, heads * dim_head) -> (B, heads, N, dim_head)
        q, k, v = (t.reshape(B, N, self.heads, self.dim_head).permute(0, 2, 1, 3) for t in self.qkv(x).chunk(3, -1))
        a = torch.softmax((q * self.dim_head**-0.5) @ k.mT, dim=-1)     # (B, heads, N, N)
        y = (a @ v).permute(0, 2, 1, 3).flatten(2)                      # (B, N, heads * dim_head)
        return self.dropout(self.out(y))


# %%
class Transformer(nn.Module):
    def __init__(self, dim, depth, heads, dim_head, mlp_dim, dropout=0.0):
        super().__init__()
        # attention, feed-forward, attention, feed-forward, ...
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
    def __init__(self, *, image_size, patch_size, num_classes, dim, depth, heads, mlp_dim, pool="cls", channels=1,
                 dim_head=64, dropout=0.0, emb_dropout=0.0):
        super().__init__()
        assert image_size % patch_size == 0
        assert pool in {"cls", "mean"}
        side = image_size // patch_size
        self.pool = pool
        # kernel = stride = patch: the same as a linear layer on every patch
        self.embed = nn.Conv2d(channels, dim, patch_size, stride=patch_size)
        self.cls = nn.Parameter(torch.randn(dim) * 0.02)
        self.pos = nn.Parameter(torch.randn(side * side + 1, dim) * 0.02)
        self.emb_dropout = nn.Dropout(emb_dropout)
        self.encoder = Transformer(dim, depth, heads, dim_head, mlp_dim, dropout)
        self.head = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, num_classes))

    def forward(self, img):
        x = self.embed(img).flatten(2).mT                     # (B, patches, dim)
        cls = self.cls.expand(len(x), 1, -1)
        x = self.emb_dropout(torch.cat([cls, x], 1) + self.pos)
        x = self.encoder(x)
        x = x.mean(1) if self.pool == "mean" else x[:, 0]
        return self.head(x)


# %% [markdown]
# ## 4. Training and evaluation


# %%
def train_epoch(model, optimizer, data_loader, loss_history):
    model.train()
    for i, (x, y) in enumerate(data_loader):
        x, y = x.to(device), y.to(device)
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        if i % 100 == 0:
            print(f"   batch {i:4d} of {len(data_loader)}   loss {loss.item():.4f}")
            loss_history.append(loss.item())


# %%
def evaluate(model, data_loader, loss_history):
    model.eval()
    total, correct, n = 0.0, 0, 0
    with torch.no_grad():
        for x, y in data_loader:
            x, y = x.to(device), y.to(device)
            scores = model(x)
            total += F.cross_entropy(scores, y).item() * len(y)   # mean of the batch -> sum of the batch
            correct += (scores.argmax(1) == y).sum().item()
            n += len(y)
    loss_history.append(total / n)
    print(f"   loss {total / n:.4f}   accuracy {correct / n:.2%}  ({correct} of {n})")


# %% [markdown]
# ## 5. Train, save, reload

# %%
model = ViT(image_size=IMAGE_SIZE, patch_size=4, num_classes=6, channels=1, dim=64, depth=6, heads=4, mlp_dim=128,
            dim_head=32, pool="mean", dropout=0.05)
model.to(device)
print(f"The model has {sum(p.numel() for p in model.parameters() if p.requires_grad):,} parameters.")

N_EPOCHS = 10
WARMUP = 2
optimizer = optim.AdamW(model.parameters(), lr=1.5e-3, weight_decay=0.02)
warmup = optim.lr_scheduler.LinearLR(optimizer, start_factor=0.2, total_iters=WARMUP)
decay = optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=N_EPOCHS - WARMUP, eta_min=2e-5)
schedule = optim.lr_scheduler.SequentialLR(optimizer, [warmup, decay], milestones=[WARMUP])

# %%
train_loss_history, test_loss_history = [], []
start = time.time()
epoch = 0
while epoch < N_EPOCHS:
    epoch += 1
    print(f"epoch {epoch}")
    train_epoch(model, optimizer, train_loader, train_loss_history)
    evaluate(model, test_loader, test_loss_history)
    schedule.step()
print(f"Training took {time.time() - start:.1f} s.")

# %%
torch.save(model.state_dict(), f"{STUDENT_ID}.pth")
torch.save(model.state_dict(), f"{STUDENT_ID}_Lab8_Homework.pth")
model.load_state_dict(torch.load(f"{STUDENT_ID}.pth", map_location=device, weights_only=True))
evaluate(model, test_loader, [])

# %%
plt.figure(figsize=(7, 4))
plt.plot(train_loss_history, marker=".", label="training loss (first batch of every epoch)")
plt.plot(test_loss_history, marker=".", label="test loss")
plt.xlabel("epoch")
plt.ylabel("cross-entropy")
plt.legend()
plt.show()

# %% [markdown]
# ## 6. Plots


# %%
def plot_confusion_matrix(model, data_loader, class_names):
    model.eval()
    true, predicted = [], []
    with torch.no_grad():
        for x, y in data_loader:
            predicted.append(model(x.to(device)).argmax(1).cpu())
            true.append(y.cpu())
    matrix = confusion_matrix(torch.cat(true), torch.cat(predicted), labels=range(len(class_names)))
    plt.figure(figsize=(7, 6))
    sns.heatmap(matrix, annot=True, fmt="d", cmap="Greens", xticklabels=class_names, yticklabels=class_names)
    plt.xlabel("predicted")
    plt.ylabel("true")
    plt.tight_layout()
    plt.show()


# %%
def plot_classwise_predictions(model, data_loader, class_names, samples_per_class=4):
    model.eval()
    batches = [(x.cpu(), y.cpu()) for x, y in data_loader]
    images = torch.cat([x for x, _ in batches])
    labels = torch.cat([y for _, y in batches])
    plt.figure(figsize=(2.5 * samples_per_class, 2.5 * len(class_names)))
    for c, name in enumerate(class_names):
        x = images[labels == c][:samples_per_class]
        if len(x) == 0:
            continue
        with torch.no_grad():
            guesses = model(x.to(device)).argmax(1).tolist()
        for j, guess in enumerate(guesses):
            plt.subplot(len(class_names), samples_per_class, c * samples_per_class + j + 1)
            plt.imshow(x[j, 0] * 0.5 + 0.5, cmap="gray", vmin=0, vmax=1)
            plt.title(f"true {name}\npred {class_names[guess]}", fontsize=8, color="green" if guess == c else "red")
            plt.axis("off")
    plt.tight_layout()
    plt.show()


# %%
plot_confusion_matrix(model, test_loader, class_names)
plot_classwise_predictions(model, test_loader, class_names)
