# %% [markdown]
# # Vision Transformer for steel surface defects - 400107901

# %%
import itertools
import random
import shutil
import time
import zipfile
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd
import seaborn as sns
import torch
import torch.nn.functional as F
from sklearn.metrics import confusion_matrix
from sklearn.model_selection import train_test_split
from torch import nn, optim
from torch.utils.data import DataLoader, Subset
from torchvision import datasets, transforms

STUDENT_ID = "400107901"

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(42)

# %% [markdown]
# ## 1. The data: unzip and split


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
# The grid search must not see the test images, so 20 % of the training images are put aside for validation.

# %%
to_tensor = [transforms.ToTensor(), transforms.Normalize((0.5,), (0.5,))]
resize = [transforms.Resize((28, 28)), transforms.Grayscale(num_output_channels=1)]
flips = [transforms.RandomHorizontalFlip(), transforms.RandomVerticalFlip()]
transform = transforms.Compose(resize + to_tensor)
transform_train = transforms.Compose(resize + flips + to_tensor)

BATCH_SIZE = 32

train_set = datasets.ImageFolder("data/train", transform=transform_train)
train_set_plain = datasets.ImageFolder("data/train", transform=transform)
test_set = datasets.ImageFolder("data/test", transform=transform)
class_names = train_set.classes

fit_idx, val_idx = train_test_split(
    list(range(len(train_set))), test_size=0.2, stratify=train_set.targets, random_state=42
)
fit_loader = DataLoader(Subset(train_set, fit_idx), batch_size=BATCH_SIZE, shuffle=True)
val_loader = DataLoader(Subset(train_set_plain, val_idx), batch_size=128)
train_loader = DataLoader(train_set, batch_size=BATCH_SIZE, shuffle=True)  # all of them, for the final model
test_loader = DataLoader(test_set, batch_size=128, shuffle=False)
print(f"{len(fit_idx)} + {len(val_idx)} = {len(train_set)} training images, {len(test_set)} test images")


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


show_samples(train_set_plain, "Training images")
show_samples(test_set, "Test images")

# %% [markdown]
# ## 3. The model


# %%
class PreNorm(nn.Module):
    def __init__(self, dim, fn):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.fn = fn

    def forward(self, x, **kwargs):
        return self.fn(self.norm(x), **kwargs)


# %%
class FeedForward(nn.Module):
    def __init__(self, dim, hidden_dim, dropout=0.0):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(dim, hidden_dim),
            nn.ReLU(),
            nn.Dropout(dropout),
            nn.Linear(hidden_dim, dim),
            nn.Dropout(dropout),
        )

    def forward(self, x):
        return self.net(x)


# %%
class Attention(nn.Module):
    def __init__(self, dim, heads=4, dim_head=64, dropout=0.0):
        super().__init__()
        self.heads = heads
        self.dim_head = dim_head
        self.scale = dim_head**-0.5
        self.qkv = nn.Linear(dim, 3 * heads * dim_head, bias=False)
        self.proj = nn.Linear(heads * dim_head, dim)
        self.proj_drop = nn.Dropout(dropout)

    def forward(self, x):
        B, N, D = x.shape
        qkv = self.qkv(x).reshape(B, N, 3, self.heads, self.dim_head).permute(2, 0, 3, 1, 4)  # 3 B H N d
        q, k, v = qkv[0], qkv[1], qkv[2]
        attn = (q @ k.transpose(-2, -1)) * self.scale  # B H N N
        attn = attn.softmax(dim=-1)
        x = (attn @ v).transpose(1, 2).reshape(B, N, self.heads * self.dim_head)
        return self.proj_drop(self.proj(x))


# %%
class Transformer(nn.Module):
    def __init__(self, dim, depth, heads, dim_head, mlp_dim, dropout=0.0):
        super().__init__()
        self.layers = nn.ModuleList()
        for _ in range(depth):
            attn = PreNorm(dim, Attention(dim, heads, dim_head, dropout))
            ff = PreNorm(dim, FeedForward(dim, mlp_dim, dropout))
            self.layers.append(nn.ModuleList([attn, ff]))

    def forward(self, x):
        for attn, ff in self.layers:
            x = attn(x) + x
            x = ff(x) + x
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
        assert image_size % patch_size == 0, "the patches must fit"
        assert pool in ("cls", "mean")
        self.patch_size = patch_size
        self.pool = pool
        n = (image_size // patch_size) ** 2
        self.projection = nn.Linear(channels * patch_size**2, dim)
        self.cls_token = nn.Parameter(torch.randn(1, 1, dim) * 0.02)
        self.pos_embedding = nn.Parameter(torch.randn(1, n + 1, dim) * 0.02)
        self.dropout = nn.Dropout(emb_dropout)
        self.transformer = Transformer(dim, depth, heads, dim_head, mlp_dim, dropout)
        self.mlp_head = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, num_classes))

    def patchify(self, img):
        p = self.patch_size
        x = img.unfold(2, p, p).unfold(3, p, p)  # B, C, rows, columns, p, p
        x = x.permute(0, 2, 3, 1, 4, 5)  # B, rows, columns, C, p, p
        return x.flatten(3).flatten(1, 2)  # B, rows * columns, C * p * p

    def forward(self, img):
        x = self.projection(self.patchify(img))
        cls = self.cls_token.expand(x.shape[0], -1, -1)
        x = torch.cat([cls, x], dim=1)
        x = x + self.pos_embedding
        x = self.dropout(x)
        x = self.transformer(x)
        x = x.mean(dim=1) if self.pool == "mean" else x[:, 0]
        return self.mlp_head(x)


# %% [markdown]
# ## 4. Training and evaluation


# %%
def train_epoch(model, optimizer, data_loader, loss_history):
    model.train()
    for i, (images, labels) in enumerate(data_loader):
        images, labels = images.to(device), labels.to(device)
        optimizer.zero_grad()
        loss = F.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        if i % 100 == 0:
            print(f"  batch {i}/{len(data_loader)}: loss = {loss.item():.4f}")
            loss_history.append(loss.item())


# %%
def evaluate(model, data_loader, loss_history):
    model.eval()
    total_loss = 0.0
    correct = 0
    n = 0
    with torch.no_grad():
        for images, labels in data_loader:
            images, labels = images.to(device), labels.to(device)
            out = model(images)
            total_loss += F.cross_entropy(out, labels, reduction="sum").item()
            correct += (out.argmax(dim=1) == labels).sum().item()
            n += len(labels)
    loss = total_loss / n
    accuracy = correct / n
    loss_history.append(loss)
    print(f"  loss = {loss:.4f}, accuracy = {accuracy:.4f} ({correct}/{n})")
    return accuracy


# %% [markdown]
# ## 5. Grid search on the validation images, then the final training
#
# First a coarse grid over learning rate and depth with few epochs. All other numbers stay.

# %%
fixed = dict(image_size=28, patch_size=4, num_classes=6, channels=1, dim=64, heads=4, mlp_dim=128, dropout=0.1)
GRID = {"lr": [3e-3, 1e-3, 3e-4], "depth": [4, 6]}
GRID_EPOCHS = 3


def build(lr, depth, epochs):
    """A new model with its optimizer and schedule; the same start for everybody."""
    torch.manual_seed(42)
    model = ViT(depth=depth, **fixed).to(device)
    optimizer = optim.AdamW(model.parameters(), lr=lr, weight_decay=0.01)
    scheduler = optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=epochs)
    return model, optimizer, scheduler


def try_candidate(lr, depth):
    model, optimizer, scheduler = build(lr, depth, GRID_EPOCHS)
    train_losses, val_losses = [], []
    begin = time.time()
    for _ in range(GRID_EPOCHS):
        train_epoch(model, optimizer, fit_loader, train_losses)
        accuracy = evaluate(model, val_loader, val_losses)
        scheduler.step()
    return {
        "lr": lr,
        "depth": depth,
        "train_loss": train_losses[-1],
        "val_loss": val_losses[-1],
        "val_accuracy": accuracy,
        "seconds": round(time.time() - begin, 1),
    }


# %%
results = []
for lr, depth in itertools.product(GRID["lr"], GRID["depth"]):
    print(f"lr = {lr}, depth = {depth}")
    results.append(try_candidate(lr, depth))

table = pd.DataFrame(results).sort_values(["val_accuracy", "val_loss"], ascending=[False, True])
print(table.to_string(index=False))
table.to_csv("grid.csv", index=False)

# %%
sns.heatmap(table.pivot(index="lr", columns="depth", values="val_accuracy"), annot=True, fmt=".3f", cmap="magma")
plt.title("validation accuracy")
plt.show()

# %% [markdown]
# The best pair is trained anew, longer, with all training images (validation images too). The test images are
# looked at here for the first time.

# %%
best = max(results, key=lambda r: (r["val_accuracy"], -r["val_loss"]))
print("best:", best)

N_EPOCHS = 10
model, optimizer, scheduler = build(best["lr"], best["depth"], N_EPOCHS)
print(f"The model has {sum(p.numel() for p in model.parameters() if p.requires_grad):,} parameters.")

# %%
train_loss_history, test_loss_history = [], []
start = time.time()
for epoch in range(1, N_EPOCHS + 1):
    print(f"Epoch {epoch}/{N_EPOCHS}")
    train_epoch(model, optimizer, train_loader, train_loss_history)
    evaluate(model, test_loader, test_loss_history)
    scheduler.step()
print(f"Training took {time.time() - start:.1f} s.")

# %%
torch.save(model.state_dict(), f"{STUDENT_ID}.pth")
torch.save(model.state_dict(), f"{STUDENT_ID}_Lab8_Homework.pth")
model.load_state_dict(torch.load(f"{STUDENT_ID}.pth", map_location=device, weights_only=True))
test_accuracy = evaluate(model, test_loader, [])
print(f"final test accuracy: {100 * test_accuracy:.2f} %")

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
    rows = []
    with torch.no_grad():
        for images, labels in data_loader:
            predictions = model(images.to(device)).argmax(dim=1)
            rows += list(zip(labels.tolist(), predictions.tolist()))
    true, predicted = zip(*rows)
    cm = confusion_matrix(true, predicted, labels=range(len(class_names)))
    frame = pd.DataFrame(cm, index=list(class_names), columns=list(class_names))
    plt.figure(figsize=(7, 6))
    sns.heatmap(frame, annot=True, fmt="d", cmap="Blues", linewidths=0.5)
    plt.xlabel("predicted")
    plt.ylabel("true")
    plt.title("Confusion matrix")
    plt.tight_layout()
    plt.show()


# %%
def plot_classwise_predictions(model, data_loader, class_names, samples_per_class=4):
    model.eval()
    all_images, all_labels, all_predictions = [], [], []
    with torch.no_grad():
        for images, labels in data_loader:
            all_images.extend(images.cpu())
            all_labels.extend(labels.tolist())
            all_predictions.extend(model(images.to(device)).argmax(dim=1).tolist())
    fig, axes = plt.subplots(
        len(class_names), samples_per_class, figsize=(2.4 * samples_per_class, 2.5 * len(class_names)), squeeze=False
    )
    for c in range(len(class_names)):
        picks = [i for i, label in enumerate(all_labels) if label == c][:samples_per_class]
        for j in range(samples_per_class):
            axes[c, j].axis("off")
            if j >= len(picks):
                continue
            i = picks[j]
            axes[c, j].imshow(all_images[i][0] * 0.5 + 0.5, cmap="gray", vmin=0, vmax=1)
            axes[c, j].set_title(
                f"T: {class_names[c]}\nP: {class_names[all_predictions[i]]}",
                fontsize=8,
                color="green" if all_predictions[i] == c else "red",
            )
    fig.suptitle("T: true class, P: predicted class")
    fig.tight_layout()
    plt.show()


# %%
plot_confusion_matrix(model, test_loader, class_names)
plot_classwise_predictions(model, test_loader, class_names)
