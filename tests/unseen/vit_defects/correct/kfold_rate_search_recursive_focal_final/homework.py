"""ViT for steel defects: the learning rate is chosen by k-fold cross-validation, then one final training.

The folds are made of training images alone. The final model is trained on all training images with a balanced
sampler, a focal loss and accumulated gradients.
"""

import functools
import math
import operator
import random
import shutil
import sys
import zipfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import seaborn as sns
import torch
import torch.nn.functional as F
from einops import rearrange
from sklearn.metrics import confusion_matrix
from sklearn.model_selection import StratifiedKFold
from torch import nn, optim
from torch.utils.data import DataLoader, Sampler, Subset
from torchvision import datasets, transforms

STUDENT_ID = "400107001"
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(7)


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


# ---- model ------------------------------------------------------------------------------------------------------
class PreNorm(nn.Module):
    def __init__(self, dim, fn):
        super().__init__()
        self.norm, self.fn = nn.LayerNorm(dim), fn

    def forward(self, x, **kwargs):
        return self.fn(self.norm(x), **kwargs)


class FeedForward(nn.Module):
    def __init__(self, dim, hidden_dim, dropout=0.0):
        super().__init__()
        # a 1 x 1 convolution over the tokens is a linear layer
        self.net = nn.Sequential(nn.Conv1d(dim, hidden_dim, 1), nn.GELU(), nn.Dropout(dropout),
                                 nn.Conv1d(hidden_dim, dim, 1), nn.Dropout(dropout))

    def forward(self, x):
        return self.net(x.mT).mT


class Attention(nn.Module):
    def __init__(self, dim, heads=4, dim_head=64, dropout=0.0):
        super().__init__()
        self.heads = heads
        self.scale = dim_head ** -0.5
        self.to_q = nn.Linear(dim, heads * dim_head, bias=False)
        self.to_kv = nn.Linear(dim, 2 * heads * dim_head, bias=False)
        self.to_out = nn.Linear(heads * dim_head, dim)
        self.drop = nn.Dropout(dropout)

    def forward(self, x):
        split = functools.partial(rearrange, pattern="b n (h d) -> (b h) n d", h=self.heads)
        q, (k, v) = split(self.to_q(x)), map(split, self.to_kv(x).chunk(2, dim=-1))
        scores = torch.baddbmm(q.new_zeros(()), q, k.transpose(1, 2), beta=0, alpha=self.scale)
        mixed = torch.bmm(F.softmax(scores, dim=2), v)
        return self.drop(self.to_out(rearrange(mixed, "(b h) n d -> b n (h d)", h=self.heads)))


class Residual(nn.Module):
    def __init__(self, fn):
        super().__init__()
        self.fn = fn

    def forward(self, x):
        return x + self.fn(x)


class Transformer(nn.Module):
    def __init__(self, dim, depth, heads, dim_head, mlp_dim, dropout=0.0):
        super().__init__()
        self.depth = depth
        for i in range(depth):
            setattr(self, f"attn_{i}", Residual(PreNorm(dim, Attention(dim, heads, dim_head, dropout))))
            setattr(self, f"ff_{i}", Residual(PreNorm(dim, FeedForward(dim, mlp_dim, dropout))))

    def forward(self, x):
        steps = (getattr(self, f"{kind}_{i}") for i in range(self.depth) for kind in ("attn", "ff"))
        return functools.reduce(lambda tokens, step: step(tokens), steps, x)


class ViT(nn.Module):
    def __init__(self, *, image_size, patch_size, num_classes, dim, depth, heads, mlp_dim, pool="cls", channels=1,
                 dim_head=64, dropout=0.0, emb_dropout=0.0):
        super().__init__()
        self.p, self.pool = patch_size, pool
        count = (image_size // patch_size) ** 2
        self.patch_norm = nn.LayerNorm(channels * patch_size**2)
        self.patch_linear = nn.Linear(channels * patch_size**2, dim)
        self.cls = nn.Parameter(torch.randn(1, 1, dim) * 0.02)
        self.positions = nn.Embedding(count + 1, dim)
        self.register_buffer("places", torch.arange(count + 1), persistent=False)
        self.emb_dropout = nn.Dropout(emb_dropout)
        self.transformer = Transformer(dim, depth, heads, dim_head, mlp_dim, dropout)
        self.final = nn.LayerNorm(dim)
        self.scores = nn.Linear(dim, num_classes)

    def forward(self, img):
        p = self.p
        patches = img.unfold(2, p, p).unfold(3, p, p)  # (b, c, rows, columns, p, p)
        patches = rearrange(patches, "b c h w p q -> b (h w) (c p q)")
        tokens = self.patch_linear(self.patch_norm(patches))
        tokens = torch.cat([self.cls.expand(tokens.shape[0], -1, -1), tokens], dim=1)
        tokens = self.transformer(self.emb_dropout(tokens + self.positions(self.places)))
        tokens = self.final(tokens)
        return self.scores(tokens.mean(dim=1) if self.pool == "mean" else tokens[:, 0])


# ---- training and evaluation ------------------------------------------------------------------------------------
def train_epoch(model, optimizer, data_loader, loss_history):
    model.train()
    for batch, (images, labels) in enumerate(data_loader):
        model.zero_grad()
        optimizer.zero_grad()
        loss = F.nll_loss(F.log_softmax(model(images.to(DEVICE)), dim=1), labels.to(DEVICE))
        loss.backward()
        optimizer.step()
        if not batch % 100:
            loss_history.append(loss.item())
            print(f"    batch {batch:4d}: loss {loss.item():.3f}", file=sys.stderr)


def evaluate(model, data_loader, loss_history):
    model.eval()
    totals = np.zeros(3)  # loss, correct, images
    with torch.no_grad():
        for images, labels in data_loader:
            log_p = F.log_softmax(model(images.to(DEVICE)), dim=1).cpu()
            labels = labels.cpu()
            totals += (F.nll_loss(log_p, labels, reduction="sum").item(),
                       (log_p.argmax(dim=1) == labels).sum().item(), labels.shape[0])
    loss, accuracy = totals[:2] / totals[2]
    loss_history.append(float(loss))
    print(f"    loss {loss:.4f}, accuracy {accuracy:.4f} ({int(totals[1])}/{int(totals[2])})")
    return accuracy


class FocalLoss(nn.Module):
    """-(1 - p)^gamma log p of the true class: what is easy already counts less."""

    def __init__(self, gamma):
        super().__init__()
        self.gamma = gamma

    def forward(self, scores, labels):
        log_p = F.log_softmax(scores, dim=1).gather(1, labels[:, None]).squeeze(1)
        return (-((1 - log_p.exp()) ** self.gamma) * log_p).mean()


class Balanced(Sampler):
    """Deals the images out class by class, so that each batch has nearly as many of each class."""

    def __init__(self, targets):
        self.targets = np.asarray(targets)

    def __len__(self):
        return len(self.targets)

    def __iter__(self):
        piles = []
        for label in np.unique(self.targets):
            rows = np.flatnonzero(self.targets == label)
            piles.append(rows[torch.randperm(len(rows)).numpy()].tolist())
        while any(piles):
            for pile in piles:
                if pile:
                    yield pile.pop()


# ---- data -------------------------------------------------------------------------------------------------------
def images_of(part, *augmentation):
    steps = [transforms.Grayscale(num_output_channels=1), transforms.Resize((28, 28)), *augmentation,
             transforms.ToTensor(), transforms.Normalize((0.5,), (0.5,))]
    return datasets.ImageFolder(f"data/{part}", transform=transforms.Compose(steps))


AUGMENTATION = (transforms.RandomHorizontalFlip(), transforms.RandomVerticalFlip(),
                transforms.ColorJitter(brightness=0.15, contrast=0.15))

with zipfile.ZipFile("dataset.zip") as archive:
    archive.extractall("dataset")
split_dataset(find_class_folders(Path("dataset")), Path("data"))
varied, plain, test = images_of("train", *AUGMENTATION), images_of("train"), images_of("test")
class_names = plain.classes
test_loader = DataLoader(test, batch_size=200)

make_model = functools.partial(ViT, image_size=28, patch_size=4, num_classes=6, channels=1, dim=64, depth=6, heads=4,
                               mlp_dim=160, dim_head=16, dropout=0.1)

# ---- which learning rate? ---------------------------------------------------------------------------------------
RATES = (3e-4, 1e-3, 2e-3)
FOLDS, FOLD_EPOCHS = 3, 8


def cross_validated(rate):
    """The mean accuracy of small trainings, each measured on the fold that it did not see."""
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(plain.targets, plain.targets)
    accuracies = []
    for inside, outside in folds:
        candidate = make_model().to(DEVICE)
        optimizer = optim.AdamW(candidate.parameters(), lr=rate, weight_decay=0.05)
        loader = DataLoader(Subset(varied, inside.tolist()), batch_size=64, shuffle=True)
        for _ in range(FOLD_EPOCHS):
            train_epoch(candidate, optimizer, loader, [])
        accuracies.append(evaluate(candidate, DataLoader(Subset(plain, outside.tolist()), batch_size=200), []))
    return float(np.mean(accuracies))


table = {rate: cross_validated(rate) for rate in RATES}
best_rate = max(table.items(), key=operator.itemgetter(1))[0]
print("cross-validated:", table, "-> rate", best_rate)

# ---- the final training -----------------------------------------------------------------------------------------
FINAL_EPOCHS = 70
ACCUMULATE = 2  # micro-batches of 32 make a batch of 64


def rate_at(epoch):
    """Six epochs up, then half a cosine down."""
    if epoch < 6:
        return best_rate * (epoch + 1) / 6
    return best_rate * 0.5 * (1 + math.cos(math.pi * (epoch - 6) / (FINAL_EPOCHS - 6)))


def train_from(epoch, model, optimizer, loader, criterion, losses):
    """Trains this epoch and then, by calling itself, all that follow."""
    if epoch == FINAL_EPOCHS:
        return losses
    optimizer.param_groups[0]["lr"] = rate_at(epoch)
    model.train()
    optimizer.zero_grad()
    total = 0.0
    for number, (images, labels) in enumerate(loader, start=1):
        loss = criterion(model(images.to(DEVICE)), labels.to(DEVICE))
        (loss / ACCUMULATE).backward()
        total += loss.item()
        if number % ACCUMULATE == 0 or number == len(loader):
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
    print(f"epoch {epoch + 1}: focal loss {total / len(loader):.4f}")
    return train_from(epoch + 1, model, optimizer, loader, criterion, [*losses, total / len(loader)])


final = make_model().to(DEVICE)
print(f"{sum(p.numel() for p in final.parameters()):,} parameters")
final_losses = train_from(
    0,
    final,
    optim.AdamW(final.parameters(), lr=best_rate, weight_decay=0.05),
    DataLoader(varied, batch_size=32, sampler=Balanced(varied.targets)),
    FocalLoss(gamma=1.5),
    [],
)
evaluate(final, test_loader, [])
torch.save(final.state_dict(), f"{STUDENT_ID}_Lab8_Homework.pth")


# ---- pictures ---------------------------------------------------------------------------------------------------
def plot_confusion_matrix(model, data_loader, class_names):
    model.eval()
    counts = np.zeros((len(class_names),) * 2, dtype=int)
    with torch.no_grad():
        for images, labels in data_loader:
            guesses = model(images.to(DEVICE)).argmax(dim=1).cpu()
            counts += confusion_matrix(labels.cpu(), guesses, labels=np.arange(len(class_names)))
    fig, ax = plt.subplots(figsize=(8, 6))
    sns.heatmap(counts, annot=True, fmt="g", linewidths=0.5, cbar=False, ax=ax)
    ax.set_xticks(np.arange(len(class_names)) + 0.5, labels=class_names, rotation=30)
    ax.set_yticks(np.arange(len(class_names)) + 0.5, labels=class_names, rotation=0)
    ax.set_xlabel("Predicted label")
    ax.set_ylabel("True label")
    return fig


def plot_classwise_predictions(model, data_loader, class_names, samples_per_class=4):
    model.eval()
    wanted = {label: samples_per_class for label in range(len(class_names))}
    fig, axes = plt.subplots(len(class_names), samples_per_class, squeeze=False,
                             figsize=(2 * samples_per_class, 2.4 * len(class_names)))
    with torch.no_grad():
        for images, labels in data_loader:
            guesses = model(images.to(DEVICE)).argmax(dim=1).tolist()
            for image, label, guess in zip(images, labels.tolist(), guesses):
                if wanted[label] == 0:
                    continue
                ax = axes[label, samples_per_class - wanted[label]]
                wanted[label] -= 1
                ax.imshow(image.squeeze().cpu().numpy() / 2 + 0.5, cmap="gray", vmin=0, vmax=1)
                ax.set_title(f"True: {class_names[label]}", fontsize=8)
                ax.set_xlabel(f"Predicted: {class_names[guess]}", fontsize=8, color="g" if guess == label else "r")
    for ax in axes.flat:
        ax.set(xticks=[], yticks=[])
    fig.tight_layout()
    return fig


plt.figure()
plt.plot(range(1, FINAL_EPOCHS + 1), final_losses)
plt.xlabel("epoch")
plt.ylabel("focal loss")
plot_confusion_matrix(final, test_loader, class_names)
plot_classwise_predictions(final, test_loader, class_names)
plt.show()
