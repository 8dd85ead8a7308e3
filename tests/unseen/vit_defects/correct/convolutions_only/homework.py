# %% [markdown]
# # ViT sur l'acier, vu par quelqu'un qui ne connaît que les convolutions
#
# Dans ce fichier il n'y a aucune `nn.Linear`. Une couche linéaire appliquée à chaque jeton est une convolution
# 1 x 1 : les jetons sont une « image » de hauteur 1, et les caractéristiques sont les canaux.

# %%
import random
import shutil
import time
import zipfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from sklearn.metrics import accuracy_score, confusion_matrix
from torch.utils.data import DataLoader
from torchvision import datasets, transforms
from torchvision.utils import make_grid

STUDENT_ID = "402110583"

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(42)

# %% [markdown]
# ## Données


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

# %%
transform = transforms.Compose(
    [
        transforms.Resize((28, 28)),
        transforms.Grayscale(num_output_channels=1),
        transforms.ToTensor(),
        transforms.Normalize((0.5,), (0.5,)),
    ]
)
transform_train = transforms.Compose(
    [
        transforms.Resize((32, 32)),
        transforms.RandomCrop(28),
        transforms.Grayscale(num_output_channels=1),
        transforms.RandomHorizontalFlip(),
        transforms.RandomVerticalFlip(),
        transforms.ToTensor(),
        transforms.Normalize((0.5,), (0.5,)),
    ]
)
BATCH_SIZE = 64

train_set = datasets.ImageFolder("data/train", transform=transform_train)
test_set = datasets.ImageFolder("data/test", transform=transform)
train_loader = DataLoader(train_set, batch_size=BATCH_SIZE, shuffle=True)
test_loader = DataLoader(test_set, batch_size=BATCH_SIZE, shuffle=False)
class_names = train_set.classes
print(f"{len(train_set)} training images, {len(test_set)} test images, classes: {class_names}")


# %%
def show_samples(dataset, title, per_class=6):
    chosen = []
    for label in range(len(dataset.classes)):
        chosen += [i for i, target in enumerate(dataset.targets) if target == label][:per_class]
    grid = make_grid([dataset[i][0] for i in chosen], nrow=per_class, normalize=True, value_range=(-1, 1), pad_value=1)
    plt.figure(figsize=(7, 7))
    plt.imshow(grid.permute(1, 2, 0))
    plt.title(title + " (une ligne par classe : " + ", ".join(dataset.classes) + ")", fontsize=7)
    plt.axis("off")
    plt.show()


show_samples(train_set, "Training images")
show_samples(test_set, "Test images")

# %% [markdown]
# ## Modèle
#
# Convention : « jetons » = (batch, jetons, dim) à l'entrée et à la sortie des classes, comme l'énoncé le demande ;
# « carte » = (batch, dim, jetons) à l'intérieur.


# %%
def to_map(tokens):
    return tokens.transpose(1, 2)  # (b, n, d) -> (b, d, n)


def to_tokens(feature_map):
    return feature_map.transpose(1, 2)  # (b, d, n) -> (b, n, d)


def pointwise(c_in, c_out, bias=True):
    """A convolution that looks at one place at a time: a linear layer over the channels."""
    return nn.Conv1d(c_in, c_out, kernel_size=1, bias=bias)


# %%
class PreNorm(nn.Module):
    """Layer normalization, then another module."""

    def __init__(self, dim, fn):
        super().__init__()
        self.bn = nn.LayerNorm(dim)  # appelée bn par habitude ; c'est bien une LayerNorm
        self.fn = fn

    def forward(self, x, **kwargs):
        return self.fn(self.bn(x), **kwargs)


# %%
class FeedForward(nn.Module):
    """An inverted bottleneck of 1 x 1 convolutions, without the depthwise one."""

    def __init__(self, dim, hidden_dim, dropout=0.0):
        super().__init__()
        self.expand = pointwise(dim, hidden_dim)
        self.act = nn.LeakyReLU(0.01)
        self.project = pointwise(hidden_dim, dim)
        self.drop_hidden = nn.Dropout(dropout)
        self.drop_out = nn.Dropout(dropout)

    def forward(self, x):
        m = to_map(x)
        m = self.drop_hidden(self.act(self.expand(m)))
        m = self.drop_out(self.project(m))
        return to_tokens(m)


# %%
class Attention(nn.Module):
    """Multi-head self-attention: each head is a group of channels."""

    def __init__(self, dim, heads=4, dim_head=64, dropout=0.0):
        super().__init__()
        self.heads = heads
        self.dim_head = dim_head
        inner = heads * dim_head
        self.conv_q = pointwise(dim, inner, bias=False)
        self.conv_kv = pointwise(dim, 2 * inner, bias=False)
        self.conv_out = pointwise(inner, dim)
        self.drop = nn.Dropout(dropout)

    def forward(self, x):
        b, n, _ = x.shape
        m = to_map(x)
        q = self.conv_q(m).reshape(b * self.heads, self.dim_head, n)
        k, v = self.conv_kv(m).chunk(2, dim=1)
        k = k.reshape(b * self.heads, self.dim_head, n)
        v = v.reshape(b * self.heads, self.dim_head, n)
        # colonne j de `weights` : l'attention de la requête j sur toutes les clés ; chaque colonne somme à 1
        weights = F.softmax(torch.bmm(k.transpose(1, 2), q) / self.dim_head**0.5, dim=1)
        mixed = torch.bmm(v, weights)  # (b * heads, dim_head, n)
        mixed = mixed.reshape(b, self.heads * self.dim_head, n)
        return to_tokens(self.drop(self.conv_out(mixed)))


# %%
class Residual(nn.Module):
    """x + fn(x), as in a ResNet"""

    def __init__(self, fn):
        super().__init__()
        self.fn = fn

    def forward(self, x):
        return x + self.fn(x)


class Transformer(nn.Sequential):
    """`depth` stages of two residual units, in a row."""

    def __init__(self, dim, depth, heads, dim_head, mlp_dim, dropout=0.0):
        super().__init__()
        for i in range(1, depth + 1):
            stage = nn.Sequential()
            stage.add_module("attention", Residual(PreNorm(dim, Attention(dim, heads, dim_head, dropout))))
            stage.add_module("mlp", Residual(PreNorm(dim, FeedForward(dim, mlp_dim, dropout))))
            self.add_module(f"stage{i}", stage)

    def forward(self, x):
        for stage in self:
            x = stage(x)
        return x


# %%
class ViT(nn.Module):
    """Unfold, 1 x 1 convolution, positions, Transformer, classifier (1 x 1 convolution)."""

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
        assert image_size % patch_size == 0, "image_size must be divisible by patch_size"
        assert pool in ("cls", "mean"), "pool must be 'cls' or 'mean'"
        self.pool = pool
        n = (image_size // patch_size) ** 2
        self.unfold = nn.Unfold(kernel_size=patch_size, stride=patch_size)
        self.stem = pointwise(channels * patch_size**2, dim)
        # les positions sont une carte, la classe en a une à elle
        self.pos_map = nn.Parameter(torch.zeros(1, dim, n))
        self.pos_cls = nn.Parameter(torch.zeros(1, dim, 1))
        self.cls = nn.Parameter(torch.zeros(1, dim, 1))
        for parameter in (self.pos_map, self.pos_cls, self.cls):
            nn.init.normal_(parameter, std=0.02)
        self.drop = nn.Dropout(emb_dropout)
        self.body = Transformer(dim, depth, heads, dim_head, mlp_dim, dropout)
        self.norm = nn.LayerNorm(dim)
        self.classifier = pointwise(dim, num_classes)

    def forward(self, img):
        m = self.stem(self.unfold(img))  # (b, dim, n)
        m = m + self.pos_map
        first = (self.cls + self.pos_cls).expand(m.size(0), -1, -1)
        m = self.drop(torch.cat([first, m], dim=2))  # (b, dim, 1 + n)
        x = self.body(to_tokens(m))
        if self.pool == "mean":
            x = F.adaptive_avg_pool1d(to_map(x), 1)  # le « global average pooling » habituel
        else:
            x = to_map(x)[:, :, :1]
        x = to_map(self.norm(to_tokens(x)))  # (b, dim, 1)
        return self.classifier(x).flatten(1)


# %% [markdown]
# ## Entraînement et évaluation


# %%
def gpu_or_cpu_of(model):
    tensors = list(model.parameters()) + list(model.buffers())
    return tensors[0].device if tensors else torch.device("cpu")


def train_epoch(model, optimizer, data_loader, loss_history):
    d = gpu_or_cpu_of(model)
    criterion = nn.CrossEntropyLoss().to(d)
    model.train()
    done = 0
    for i, (x, y) in enumerate(data_loader):
        x = x.to(d, non_blocking=True)
        y = y.to(d, non_blocking=True)
        optimizer.zero_grad()
        output = model(x)
        loss = criterion(output, y)
        loss.backward()
        optimizer.step()
        done += x.size(0)
        if i % 100 == 0:
            print(f"[{done} images] loss: {loss.item():.4f}")
            loss_history.append(loss.item())


def evaluate(model, data_loader, loss_history):
    d = gpu_or_cpu_of(model)
    criterion = nn.CrossEntropyLoss(reduction="none")
    model.eval()
    losses, y_true, y_pred = [], [], []
    with torch.no_grad():
        for x, y in data_loader:
            output = model(x.to(d))
            losses.append(criterion(output, y.to(d)).cpu())
            y_pred.append(output.argmax(1).cpu())
            y_true.append(y.cpu())
    losses, y_true, y_pred = torch.cat(losses), torch.cat(y_true), torch.cat(y_pred)
    correct = accuracy_score(y_true, y_pred, normalize=False)
    loss_history.append(losses.mean().item())
    print(f"test loss: {losses.mean().item():.4f}, accuracy: {int(correct)}/{len(y_true)} = {correct / len(y_true):.4f}")


# %%
model = ViT(
    image_size=28,
    patch_size=4,
    num_classes=6,
    channels=1,
    dim=96,
    depth=4,
    heads=4,
    mlp_dim=192,
    pool="mean",
    dim_head=32,
    dropout=0.1,
).to(device)
print(f"The model has {sum(p.numel() for p in model.parameters() if p.requires_grad):,} parameters.")

optimizer = optim.NAdam(model.parameters(), lr=0.001, weight_decay=0.01, decoupled_weight_decay=True)

N_EPOCHS = 40
scheduler = optim.lr_scheduler.MultiStepLR(optimizer, milestones=[int(0.6 * N_EPOCHS), int(0.85 * N_EPOCHS)], gamma=0.3)

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
evaluate(model, test_loader, [])

# %%
plt.figure(figsize=(7, 4))
plt.semilogy(train_loss_history, "o-", ms=3, label="training loss (every 100 batches)")
plt.semilogy(test_loss_history, "s-", ms=3, label="test loss (every epoch)")
plt.xlabel("entry")
plt.ylabel("cross-entropy")
plt.grid(alpha=0.3)
plt.legend()
plt.show()


# %%
def plot_confusion_matrix(model, data_loader, class_names):
    d = gpu_or_cpu_of(model)
    model.eval()
    y_true, y_pred = [], []
    with torch.no_grad():
        for x, y in data_loader:
            y_pred.extend(model(x.to(d)).argmax(1).tolist())
            y_true.extend(y.tolist())
    k = len(class_names)
    cm = confusion_matrix(y_true, y_pred, labels=np.arange(k))

    fig, ax = plt.subplots(figsize=(7.5, 6.5))
    im = ax.imshow(cm, interpolation="nearest", cmap=plt.cm.Purples)
    fig.colorbar(im, ax=ax)
    for (i, j), value in np.ndenumerate(cm):
        ax.annotate(f"{value}", (j, i), ha="center", va="center", color="w" if value > cm.max() / 2 else "k")
    ax.set(
        xticks=np.arange(k),
        yticks=np.arange(k),
        xticklabels=class_names,
        yticklabels=class_names,
        xlabel="prédit (predicted)",
        ylabel="vrai (true)",
        title="Matrice de confusion / confusion matrix",
    )
    plt.setp(ax.get_xticklabels(), rotation=45, ha="right", rotation_mode="anchor")
    fig.tight_layout()
    plt.show()


def plot_classwise_predictions(model, data_loader, class_names, samples_per_class=4):
    """True label in the upper corner, predicted label in the lower corner, both inside the image."""
    d = gpu_or_cpu_of(model)
    model.eval()
    found = [[] for _ in class_names]
    with torch.no_grad():
        for x, y in data_loader:
            guesses = model(x.to(d)).argmax(1).cpu()
            for image, label, guess in zip(x.cpu(), y.tolist(), guesses.tolist()):
                if len(found[label]) < samples_per_class:
                    found[label].append((image, guess))

    size = (2.5 * samples_per_class, 2.5 * len(class_names))
    fig, axes = plt.subplots(len(class_names), samples_per_class, figsize=size, squeeze=False)
    for label in range(len(class_names)):
        for column in range(samples_per_class):
            ax = axes[label, column]
            ax.set_axis_off()
            if column >= len(found[label]):
                continue
            image, guess = found[label][column]
            image = (0.5 * image + 0.5).clamp(0, 1)
            image = image.expand(3, -1, -1) if image.size(0) == 1 else image[:3]
            ax.imshow(image.permute(1, 2, 0) if image.size(0) == 3 else image[0], cmap="gray", vmin=0, vmax=1)
            box = {"facecolor": "white", "alpha": 0.8, "edgecolor": "none", "pad": 1.5}
            ax.text(0.02, 0.98, f"true: {class_names[label]}", transform=ax.transAxes, va="top", fontsize=7, bbox=box)
            ax.text(
                0.02,
                0.02,
                f"pred: {class_names[guess]}",
                transform=ax.transAxes,
                va="bottom",
                fontsize=7,
                color="green" if guess == label else "red",
                bbox=box,
            )
    plt.subplots_adjust(wspace=0.05, hspace=0.05)
    plt.show()


# %%
plot_confusion_matrix(model, test_loader, class_names)
plot_classwise_predictions(model, test_loader, class_names)
