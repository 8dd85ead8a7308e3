# Steel defects, ViT.
# Я много лет работаю с numpy: данные, метрики и рисунки здесь на numpy и PIL, torch - только для модели и градиентов.

import random
import time
import zipfile
from pathlib import PurePosixPath

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
import torch
from PIL import Image
from torch import nn, optim
from torch.utils.data import DataLoader, Dataset, Sampler

STUDENT_ID = "401102936"
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(42)

# ============================================================ данные ============================================

IMAGE_SIZE = 28
BATCH_SIZE = 50
ENDINGS = {".jpg", ".png", ".bmp"}


def list_archive(archive):
    """{class name: sorted list of members}; the class is the folder that directly holds the image."""
    by_class = {}
    for member in archive.namelist():
        path = PurePosixPath(member)
        if "__MACOSX" in path.parts or path.suffix.lower() not in ENDINGS:
            continue
        by_class.setdefault(path.parent.name, []).append(member)
    return {name: sorted(by_class[name], key=lambda m: PurePosixPath(m).name) for name in sorted(by_class)}


def split_per_class(by_class, train_share=0.7, seed=42):
    """70 % of each class for training, the rest for testing. Returns two lists of (member, label)."""
    train, test = [], []
    for label, members in enumerate(by_class.values()):
        members = list(members)
        random.Random(seed).shuffle(members)
        n_train = round(train_share * len(members))
        train += [(member, label) for member in members[:n_train]]
        test += [(member, label) for member in members[n_train:]]
    return train, test


class ToGrayArray:
    """PIL image -> float32 array (1, size, size) with values between -1 and 1."""

    def __init__(self, size):
        self.size = size

    def __call__(self, image):
        image = image.resize((self.size, self.size), Image.Resampling.BILINEAR).convert("L")
        pixels = np.asarray(image, dtype=np.float32) / 255.0
        return ((pixels - 0.5) / 0.5)[None]


class RandomMirrorAndShift:
    """array (1, h, w) -> mirrored and shifted by a few pixels at random."""

    def __init__(self, seed, max_shift=2):
        self.rng = np.random.default_rng(seed)
        self.max_shift = max_shift

    def __call__(self, pixels):
        if self.rng.random() < 0.5:
            pixels = pixels[:, ::-1]
        if self.rng.random() < 0.5:
            pixels = pixels[:, :, ::-1]
        shift = self.rng.integers(-self.max_shift, self.max_shift + 1, size=2)
        padded = np.pad(pixels, ((0, 0), (self.max_shift,) * 2, (self.max_shift,) * 2), mode="reflect")
        y, x = shift + self.max_shift
        h, w = pixels.shape[1:]
        return padded[:, y : y + h, x : x + w]


class SteelImages(Dataset):
    """Reads the images out of the zip, once, into one array."""

    def __init__(self, archive_path, items, classes, transform, augment=None):
        self.classes = list(classes)
        self.targets = np.array([label for _, label in items], dtype=np.int64)
        self.augment = augment
        self.pixels = np.empty((len(items), 1, IMAGE_SIZE, IMAGE_SIZE), dtype=np.float32)
        with zipfile.ZipFile(archive_path) as archive:
            for row, (member, _) in enumerate(items):
                with archive.open(member) as stream, Image.open(stream) as image:
                    self.pixels[row] = transform(image)

    def __len__(self):
        return len(self.targets)

    def __getitem__(self, index):
        pixels = self.pixels[index]
        if self.augment is not None:
            pixels = self.augment(pixels)
        return pixels, self.targets[index]


class ShuffledEachEpoch(Sampler):
    """A new numpy permutation for every epoch."""

    def __init__(self, n, seed):
        self.n = n
        self.rng = np.random.default_rng(seed)

    def __len__(self):
        return self.n

    def __iter__(self):
        return iter(self.rng.permutation(self.n).tolist())


def collate(samples):
    """list of (array, label) -> (float tensor, long tensor)"""
    pixels, labels = zip(*samples)
    return torch.from_numpy(np.stack(pixels)), torch.from_numpy(np.array(labels, dtype=np.int64))


with zipfile.ZipFile("dataset.zip") as archive:
    members_by_class = list_archive(archive)
train_items, test_items = split_per_class(members_by_class)
class_names = list(members_by_class)

transform = ToGrayArray(IMAGE_SIZE)
train_set = SteelImages("dataset.zip", train_items, class_names, transform, augment=RandomMirrorAndShift(seed=1))
test_set = SteelImages("dataset.zip", test_items, class_names, transform)
train_loader = DataLoader(
    train_set, batch_size=BATCH_SIZE, sampler=ShuffledEachEpoch(len(train_set), seed=2), collate_fn=collate
)
test_loader = DataLoader(test_set, batch_size=BATCH_SIZE, shuffle=False, collate_fn=collate)
print(f"{len(train_set)} training images, {len(test_set)} test images, classes: {class_names}")


def show_samples(dataset, title, per_class=6):
    rows = []
    for label in range(len(dataset.classes)):
        mine = np.flatnonzero(dataset.targets == label)[:per_class]
        row = np.ones((IMAGE_SIZE, per_class * IMAGE_SIZE), dtype=np.float32)
        strip = np.hstack([dataset[i][0][0] for i in mine])
        row[:, : strip.shape[1]] = strip
        rows.append(row)
    plt.figure(figsize=(per_class * 1.3, len(rows) * 1.3))
    plt.imshow(np.vstack(rows), cmap="gray", vmin=-1, vmax=1)
    plt.yticks(IMAGE_SIZE * (np.arange(len(rows)) + 0.5), dataset.classes)
    plt.xticks([])
    plt.title(title)
    plt.tight_layout()
    plt.show()


show_samples(train_set, "Training images")
show_samples(test_set, "Test images")

# ============================================================ модель ============================================


class PreNorm(nn.Module):
    """Layer normalization, then another module."""

    def __init__(self, dim, fn):
        super().__init__()
        self.fn = fn
        self.ln = nn.LayerNorm(dim)

    def forward(self, x, **kwargs):
        x = self.ln(x)
        return self.fn(x, **kwargs)


class FeedForward(nn.Module):
    """x -> silu(x A + a) B + b"""

    def __init__(self, dim, hidden_dim, dropout=0.0):
        super().__init__()
        self.A = nn.Linear(dim, hidden_dim)
        self.B = nn.Linear(hidden_dim, dim)
        self.p = nn.Dropout(dropout)

    def forward(self, x):
        x = self.A(x)
        x = self.p(x * x.sigmoid())
        return self.p(self.B(x))


class Attention(nn.Module):
    """Multi-head self-attention; the heads are the first axis, as I would do it with arrays."""

    def __init__(self, dim, heads=4, dim_head=64, dropout=0.0):
        super().__init__()
        self.heads = heads
        self.dim_head = dim_head
        self.qkv = nn.Linear(dim, heads * 3 * dim_head)  # head by head: q k v, q k v, ...
        self.out = nn.Linear(heads * dim_head, dim)
        self.p = nn.Dropout(dropout)

    def forward(self, x):
        b, n, _ = x.shape
        qkv = self.qkv(x).reshape(b, n, self.heads, 3, self.dim_head)
        q, k, v = (qkv[:, :, :, i].moveaxis(2, 0) for i in range(3))  # each (heads, b, n, dim_head)
        a = q @ k.swapaxes(-1, -2) * self.dim_head**-0.5
        a = a.softmax(-1)
        y = a @ v  # (heads, b, n, dim_head)
        y = torch.concatenate(list(y), dim=-1)  # side by side
        return self.p(self.out(y))


class Transformer(nn.Module):
    """`depth` blocks."""

    def __init__(self, dim, depth, heads, dim_head, mlp_dim, dropout=0.0):
        super().__init__()
        parts = []
        for _ in range(depth):
            parts += [
                PreNorm(dim, Attention(dim, heads, dim_head, dropout)),
                PreNorm(dim, FeedForward(dim, mlp_dim, dropout)),
            ]
        self.parts = nn.ModuleList(parts)

    def forward(self, x):
        for part in self.parts:
            x = x + part(x)
        return x


class ViT(nn.Module):
    """The Vision Transformer: an image becomes a score for every class."""

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
        if image_size % patch_size:
            raise ValueError(f"{image_size} is not divisible by {patch_size}")
        if pool not in ("cls", "mean"):
            raise ValueError(pool)
        self.pool = pool
        self.patch_size = patch_size
        self.grid = image_size // patch_size
        self.patch = nn.Linear(patch_size * patch_size * channels, dim)
        self.token = nn.Parameter(torch.zeros(1, 1, dim))
        self.pos = nn.Parameter(torch.randn(1, self.grid**2 + 1, dim) * 0.1)
        self.p = nn.Dropout(emb_dropout)
        self.encoder = Transformer(dim, depth, heads, dim_head, mlp_dim, dropout)
        self.ln = nn.LayerNorm(dim)
        self.out = nn.Linear(dim, num_classes)

    def forward(self, img):
        b, c = img.shape[:2]
        g, s = self.grid, self.patch_size
        # (b, c, g, s, g, s) -> (b, g, g, s, s, c) -> (b, g*g, s*s*c)
        x = img.reshape(b, c, g, s, g, s).permute(0, 2, 4, 3, 5, 1).reshape(b, g * g, s * s * c)
        x = torch.concatenate([self.token.tile(b, 1, 1), self.patch(x)], dim=1)
        x = self.encoder(self.p(x + self.pos))
        x = x.mean(1) if self.pool == "mean" else x[:, 0]
        return self.out(self.ln(x))


# ============================================================ обучение ===========================================


def to_model(model, tensor):
    parameters = list(model.parameters())
    return tensor.to(parameters[0].device) if parameters else tensor


def train_epoch(model, optimizer, data_loader, loss_history):
    criterion = nn.CrossEntropyLoss()
    model.train()
    for i, (images, labels) in enumerate(data_loader):
        images, labels = to_model(model, images), to_model(model, labels)
        optimizer.zero_grad()
        loss = criterion(model(images), labels)
        loss.backward()
        optimizer.step()
        if not i % 100:
            loss_history.append(loss.item())
            print(f"batch {i + 1}: loss {loss_history[-1]:.4f}")


def predict(model, data_loader, keep_images=False):
    """Returns logits (n, classes), labels (n,) and, if asked for, images (n, c, h, w), as arrays."""
    model.eval()
    logits, labels, images = [], [], []
    for x, y in data_loader:
        with torch.no_grad():
            logits.append(model(to_model(model, x)).double().cpu().numpy())
        labels.append(y.cpu().numpy())
        if keep_images:
            images.append(x.cpu().numpy())
    return np.concatenate(logits), np.concatenate(labels), np.concatenate(images) if keep_images else None


def cross_entropy(logits, labels):
    """Of every row, (n,)"""
    shifted = logits - logits.max(axis=1, keepdims=True)
    log_sum = np.log(np.exp(shifted).sum(axis=1))
    return log_sum - shifted[np.arange(len(labels)), labels]


def evaluate(model, data_loader, loss_history):
    logits, labels, _ = predict(model, data_loader)
    loss = float(cross_entropy(logits, labels).mean())
    right = int(np.count_nonzero(logits.argmax(axis=1) == labels))
    loss_history.append(loss)
    print(f"loss {loss:.4f}, accuracy {right / len(labels):.4f} ({right} of {len(labels)})")
    return loss


model = ViT(
    image_size=IMAGE_SIZE,
    patch_size=4,
    num_classes=6,
    channels=1,
    dim=72,
    depth=6,
    heads=6,
    mlp_dim=144,
    dim_head=24,
    pool="mean",
    dropout=0.1,
)
model.to(device)
print(f"The model has {sum(p.numel() for p in model.parameters() if p.requires_grad):,} parameters.")

optimizer = optim.Adam(model.parameters(), lr=8e-4)
N_EPOCHS = 45
# шаг уменьшается, когда потери на обучении перестают падать
plateau = optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=4, min_lr=5e-5)

train_loss_history, test_loss_history = [], []
log = []
start = time.time()
for epoch in range(1, N_EPOCHS + 1):
    print(f"Epoch {epoch}/{N_EPOCHS}")
    before = len(train_loss_history)
    train_epoch(model, optimizer, train_loader, train_loss_history)
    evaluate(model, test_loader, test_loss_history)
    plateau.step(np.mean(train_loss_history[before:]))
    log.append({"epoch": epoch, "train": train_loss_history[-1], "test": test_loss_history[-1]})
print(f"Training took {time.time() - start:.1f} s.")

torch.save(model.state_dict(), f"{STUDENT_ID}.pth")
torch.save(model.state_dict(), f"{STUDENT_ID}_Lab8_Homework.pth")
model.load_state_dict(torch.load(f"{STUDENT_ID}.pth", map_location=device, weights_only=True))
evaluate(model, test_loader, [])

plt.figure(figsize=(7, 4))
sns.lineplot(data=pd.DataFrame(log).set_index("epoch"), markers=True)
plt.ylabel("cross-entropy")
plt.tight_layout()
plt.show()

# ============================================================ рисунки ============================================


def plot_confusion_matrix(model, data_loader, class_names):
    logits, labels, _ = predict(model, data_loader)
    n = len(class_names)
    counts = np.zeros((n, n), dtype=int)
    np.add.at(counts, (labels, logits.argmax(axis=1)), 1)
    share = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)  # цвет: доля в строке; число: сколько раз
    table = pd.DataFrame(share, index=list(class_names), columns=list(class_names))
    plt.figure(figsize=(8, 6.5))
    ax = sns.heatmap(table, annot=counts, fmt="d", cmap="crest", vmin=0, vmax=1, square=True)
    ax.set_xlabel("predicted class")
    ax.set_ylabel("true class")
    ax.set_title("Confusion matrix (counts; color: share of the true class)")
    plt.tight_layout()
    plt.show()


def plot_classwise_predictions(model, data_loader, class_names, samples_per_class=4):
    logits, labels, images = predict(model, data_loader, keep_images=True)
    answers = logits.argmax(axis=1)
    rng = np.random.default_rng(0)
    fig, axes = plt.subplots(
        len(class_names),
        samples_per_class,
        figsize=(2.3 * samples_per_class, 2.5 * len(class_names)),
        squeeze=False,
    )
    for label, row in enumerate(axes):
        mine = np.flatnonzero(labels == label)
        chosen = rng.choice(mine, size=min(samples_per_class, len(mine)), replace=False)
        for ax in row[len(chosen) :]:
            ax.axis("off")
        for ax, i in zip(row, chosen):
            pixels = np.clip(images[i] * 0.5 + 0.5, 0, 1).transpose(1, 2, 0)
            ax.imshow(pixels if pixels.shape[2] == 3 else pixels[..., 0], cmap="gray", vmin=0, vmax=1)
            ax.set_xticks([])
            ax.set_yticks([])
            color = "green" if answers[i] == label else "red"
            ax.set_title(f"true: {class_names[label]}", fontsize=8)
            ax.set_xlabel(f"predicted: {class_names[answers[i]]}", fontsize=8, color=color)
    fig.tight_layout()
    plt.show()


plot_confusion_matrix(model, test_loader, class_names)
plot_classwise_predictions(model, test_loader, class_names)
