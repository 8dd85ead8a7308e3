# %% [markdown]
# # Vision Transformer for steel surface defects

# %%
import csv
import os
import random
import shutil
import time
import zipfile
import math
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import seaborn as sns
import torch
import torch.nn.functional as F
from sklearn.metrics import confusion_matrix
from torch import nn, optim
from torch.utils.data import DataLoader, Dataset, WeightedRandomSampler, random_split
from torchvision import datasets, transforms

STUDENT_ID = "400101200"

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def seed_everything(seed=42):
    random.seed(seed)
    os.environ["PYTHONHASHSEED"] = str(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    torch.cuda.manual_seed_all(seed)
    torch.backends.cudnn.deterministic = True
    torch.backends.cudnn.benchmark = False


def seed_worker(worker_id):
    worker_seed = torch.initial_seed() % 2**32
    np.random.seed(worker_seed)
    random.seed(worker_seed)


seed_everything(42)
g = torch.Generator()
g.manual_seed(42)

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
# ## 2. Mean and standard deviation of the training images
#
# Computed on the training images only and used for all of them.

# %%
BATCH_SIZE = 32
NUM_WORKERS = 0

raw_transform = transforms.Compose(
    [transforms.Resize((28, 28)), transforms.Grayscale(num_output_channels=1), transforms.ToTensor()]
)


def mean_and_std(folder):
    loader = DataLoader(datasets.ImageFolder(folder, raw_transform), batch_size=256)
    pixels, total, squares = 0, 0.0, 0.0
    for images, _ in loader:
        pixels += images.numel()
        total += images.double().sum().item()
        squares += images.double().square().sum().item()
    mean = total / pixels
    return mean, math.sqrt(squares / pixels - mean**2)


MEAN, STD = mean_and_std("data/train")
print(f"mean {MEAN:.4f}, standard deviation {STD:.4f}")

# %% [markdown]
# ## 3. Training, validation and test data
#
# A seventh of the training images validates. `random_split` gives two subsets of the same folder, so each gets
# its transform from a small wrapper.

# %%
valid_transform = transforms.Compose([raw_transform, transforms.Normalize((MEAN,), (STD,))])
train_transform = transforms.Compose(
    [
        transforms.RandomHorizontalFlip(),
        transforms.RandomVerticalFlip(),
        transforms.RandomAffine(degrees=0, translate=(0.06, 0.06)),
        valid_transform,
    ]
)


class WithTransform(Dataset):
    """A subset of a folder without a transform, and a transform."""

    def __init__(self, subset, transform):
        self.subset, self.transform = subset, transform
        self.classes = subset.dataset.classes
        self.targets = [subset.dataset.targets[i] for i in subset.indices]

    def __len__(self):
        return len(self.subset)

    def __getitem__(self, index):
        image, label = self.subset[index]
        return self.transform(image), label


folder = datasets.ImageFolder("data/train")
n_valid = len(folder) // 7
train_part, valid_part = random_split(folder, [len(folder) - n_valid, n_valid], generator=g)
train_set = WithTransform(train_part, train_transform)
valid_set = WithTransform(valid_part, valid_transform)
test_set = datasets.ImageFolder("data/test", transform=valid_transform)
class_names = test_set.classes

sampler = WeightedRandomSampler(torch.ones(len(train_set)), num_samples=len(train_set), replacement=True, generator=g)
loader_options = dict(num_workers=NUM_WORKERS, worker_init_fn=seed_worker, pin_memory=torch.cuda.is_available())
train_loader = DataLoader(train_set, batch_size=BATCH_SIZE, sampler=sampler, **loader_options)
valid_loader = DataLoader(valid_set, batch_size=256, shuffle=False, **loader_options)
test_loader = DataLoader(test_set, batch_size=256, shuffle=False, **loader_options)
print(f"{len(train_set)} training, {len(valid_set)} validation, {len(test_set)} test images")

# %%
def show_samples(dataset, title, per_class=6):
    """Draws a grid of normalized images: one row per class."""
    fig, axes = plt.subplots(len(dataset.classes), per_class, figsize=(1.5 * per_class, 9))
    for label, row in enumerate(axes):
        indices = [index for index, target in enumerate(dataset.targets) if target == label][:per_class]
        for ax, index in zip(row, indices, strict=False):
            ax.imshow(dataset[index][0].squeeze(0), cmap="gray")
        for ax in row:
            ax.axis("off")
        row[0].set_title(dataset.classes[label], fontsize=9, loc="left")
    fig.suptitle(title)
    plt.show()


show_samples(train_set, "Training images")
show_samples(test_set, "Test images")

# %% [markdown]
# ## 4. The model
#
# The image is cut into patches that do not overlap; each patch becomes a token; a learnable class token is
# put in front and learnable positions are added; a stack of encoder blocks follows; the class token (or the
# mean of all tokens) is classified. Write every part yourself: `nn.Linear`, `nn.LayerNorm`, `nn.Dropout`,
# `nn.Conv2d` and einops are fine; `nn.MultiheadAttention`, `nn.Transformer*` and ready-made ViTs are not.

# %%
class PreNorm(nn.Module):
    """Layer normalization, then another module."""

    def __init__(self, dim, fn):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.fn = fn

    def forward(self, x, **kwargs):
        return self.fn(self.norm(x), **kwargs)

# %%
class FeedForward(nn.Module):
    """Two linear layers with a nonlinearity between them, applied to each token by itself."""

    def __init__(self, dim, hidden_dim, dropout=0.0):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(dim, hidden_dim),
            nn.GELU(),
            nn.Dropout(dropout),
            nn.Linear(hidden_dim, dim),
            nn.Dropout(dropout),
        )

    def forward(self, x):
        return self.net(x)

# %%
class Attention(nn.Module):
    """Multi-head self-attention."""

    def __init__(self, dim, heads=4, dim_head=64, dropout=0.0):
        super().__init__()
        self.heads, self.dim_head = heads, dim_head
        self.to_q = nn.Linear(dim, heads * dim_head)
        self.to_k = nn.Linear(dim, heads * dim_head)
        self.to_v = nn.Linear(dim, heads * dim_head)
        self.to_out = nn.Linear(heads * dim_head, dim)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        batch, tokens, _ = x.shape

        def split(t):
            return t.view(batch, tokens, self.heads, self.dim_head).transpose(1, 2)  # (b, h, n, d)

        q, k, v = split(self.to_q(x)), split(self.to_k(x)), split(self.to_v(x))
        scores = torch.matmul(q, k.transpose(2, 3)) / math.sqrt(self.dim_head)  # (b, h, n, n)
        weights = F.softmax(scores, dim=-1)
        mixed = torch.matmul(weights, v).transpose(1, 2).reshape(batch, tokens, -1)
        return self.dropout(self.to_out(mixed))

# %%
class Transformer(nn.Module):
    """The encoder: `depth` blocks, each of pre-normalized attention and pre-normalized feed-forward."""

    def __init__(self, dim, depth, heads, dim_head, mlp_dim, dropout=0.0):
        super().__init__()
        self.layers = nn.ModuleList()
        for _ in range(depth):
            attention = PreNorm(dim, Attention(dim, heads=heads, dim_head=dim_head, dropout=dropout))
            feed_forward = PreNorm(dim, FeedForward(dim, mlp_dim, dropout=dropout))
            self.layers.append(nn.ModuleList([attention, feed_forward]))

    def forward(self, x):
        for attention, feed_forward in self.layers:
            x = attention(x) + x
            x = feed_forward(x) + x
        return x

# %%
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
            raise ValueError("patch_size must divide image_size")
        if pool not in ("cls", "mean"):
            raise ValueError("pool is 'cls' or 'mean'")
        self.pool = pool
        self.patchify = nn.Conv2d(channels, dim, kernel_size=patch_size, stride=patch_size)
        self.cls_token = nn.Parameter(torch.zeros(1, 1, dim))
        self.positions = nn.Parameter(torch.zeros(1, (image_size // patch_size) ** 2 + 1, dim))
        nn.init.trunc_normal_(self.cls_token, std=0.02)
        nn.init.trunc_normal_(self.positions, std=0.02)
        self.dropout = nn.Dropout(emb_dropout)
        self.encoder = Transformer(dim, depth, heads, dim_head, mlp_dim, dropout)
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, num_classes)

    def forward(self, img):
        tokens = self.patchify(img).flatten(2).transpose(1, 2)  # (b, patches, dim)
        tokens = torch.cat([self.cls_token.expand(len(tokens), -1, -1), tokens], dim=1)
        tokens = self.encoder(self.dropout(tokens + self.positions))
        pooled = tokens[:, 0] if self.pool == "cls" else tokens.mean(dim=1)
        return self.head(self.norm(pooled))

# %% [markdown]
# ## 5. Training and evaluation
#
# A manual loop: no trainer library.

# %%
def train_epoch(model, optimizer, data_loader, loss_history):
    """Trains the model for one pass over the data."""
    model.train()
    device = next(model.parameters()).device
    for batch_index, (images, labels) in enumerate(data_loader):
        images, labels = images.to(device), labels.to(device)
        optimizer.zero_grad()
        loss = F.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        if batch_index % 100 == 0:
            print(f"  batch {batch_index + 1}/{len(data_loader)}: loss {loss.item():.4f}")
            loss_history.append(loss.item())

# %%
@torch.no_grad()
def evaluate(model, data_loader, loss_history):
    """Measures the model on data that it was not trained on."""
    model.eval()
    device = next(model.parameters()).device
    losses, hits = [], []
    for images, labels in data_loader:
        labels = labels.to(device)
        logits = model(images.to(device))
        losses.append(F.cross_entropy(logits, labels, reduction="none"))
        hits.append(logits.argmax(-1).eq(labels))
    losses, hits = torch.cat(losses), torch.cat(hits)
    loss_history.append(losses.mean().item())
    print(f"loss: {losses.mean():.4f}  accuracy: {hits.float().mean():.2%} ({hits.sum()} of {len(hits)})")

# %% [markdown]
# ## 6. Train
#
# After every epoch the classes with a low recall on the validation images are drawn more often in the next
# epoch.

# %%
N_EPOCHS = 15
OPTIMIZER = "NAdam"
OPTIMIZER_OPTIONS = {"lr": 1.5e-3, "weight_decay": 0.01, "decoupled_weight_decay": True}
LOG = Path("training_log.csv")

model = ViT(
    image_size=28, patch_size=4, num_classes=len(class_names), channels=1, dim=64, depth=4, heads=4, mlp_dim=128,
    pool="mean", dim_head=16, dropout=0.1,
).to(device)
print(f"The model has {sum(p.numel() for p in model.parameters() if p.requires_grad):,} parameters.")
optimizer = getattr(optim, OPTIMIZER)(model.parameters(), **OPTIMIZER_OPTIONS)
scheduler = optim.lr_scheduler.PolynomialLR(optimizer, total_iters=N_EPOCHS, power=1.0)


@torch.no_grad()
def recall_of_classes(model, loader, classes):
    model.eval()
    hits, totals = torch.zeros(classes), torch.zeros(classes)
    for images, labels in loader:
        right = model(images.to(device)).argmax(1).cpu() == labels
        totals += torch.bincount(labels, minlength=classes)
        hits += torch.bincount(labels[right], minlength=classes)
    return hits / totals.clamp(min=1)


def draw_more_of_the_hard_classes(sampler, targets, recall):
    class_weights = 1.0 + (1.0 - recall)  # from 1 to 2
    sampler.weights.copy_(class_weights[torch.tensor(targets)])

# %%
train_loss_history, valid_loss_history = [], []
start = time.time()
with LOG.open("w", newline="") as file:
    log = csv.writer(file)
    log.writerow(["epoch", "rate", "validation loss", *class_names])
    for epoch in range(1, N_EPOCHS + 1):
        print(f"Epoch {epoch}/{N_EPOCHS}")
        train_epoch(model, optimizer, train_loader, train_loss_history)
        evaluate(model, valid_loader, valid_loss_history)
        recall = recall_of_classes(model, valid_loader, len(class_names))
        draw_more_of_the_hard_classes(sampler, train_set.targets, recall)
        log.writerow([epoch, scheduler.get_last_lr()[0], valid_loss_history[-1], *recall.tolist()])
        scheduler.step()
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
plt.plot(valid_loss_history, marker=".", label="validation loss (every epoch)")
plt.xlabel("entry")
plt.ylabel("cross-entropy")
plt.legend()
plt.show()

# %% [markdown]
# ## 7. What has it learned?

# %%
def plot_confusion_matrix(model, data_loader, class_names):
    """Draws how often each true class (rows) was taken for each class (columns), with the counts written in."""
    model.eval()
    device = next(model.parameters()).device
    true, predicted = [], []
    with torch.no_grad():
        for images, labels in data_loader:
            predicted += model(images.to(device)).argmax(dim=1).tolist()
            true += labels.tolist()
    matrix = confusion_matrix(true, predicted, labels=list(range(len(class_names))))
    plt.figure(figsize=(8, 7))
    sns.heatmap(matrix, annot=True, fmt="d", cmap="Blues", xticklabels=class_names, yticklabels=class_names)
    plt.xlabel("predicted class")
    plt.ylabel("true class")
    plt.title("Confusion matrix")
    plt.tight_layout()
    plt.show()

# %%
def plot_classwise_predictions(model, data_loader, class_names, samples_per_class=4):
    """Draws examples of every class with the true and the predicted label on each image."""
    model.eval()
    device = next(model.parameters()).device
    found = {label: [] for label in range(len(class_names))}
    with torch.no_grad():
        for images, labels in data_loader:
            predictions = model(images.to(device)).argmax(dim=1).cpu()
            for image, label, prediction in zip(images, labels.tolist(), predictions.tolist(), strict=True):
                if len(found[label]) < samples_per_class:
                    found[label].append((image, prediction))
            if all(len(examples) == samples_per_class for examples in found.values()):
                break
    fig, axes = plt.subplots(
        len(class_names), samples_per_class, figsize=(2.6 * samples_per_class, 2.6 * len(class_names)), squeeze=False
    )
    for label, row in enumerate(axes):
        for ax in row:
            ax.axis("off")
        for ax, (image, prediction) in zip(row, found[label], strict=False):
            ax.imshow((image.squeeze(0) * STD + MEAN).clamp(0, 1), cmap="gray", vmin=0, vmax=1)
            ax.set_title(
                f"true: {class_names[label]}\npredicted: {class_names[prediction]}",
                fontsize=8,
                color="green" if prediction == label else "red",
            )
    fig.tight_layout()
    plt.show()

# %%
plot_confusion_matrix(model, test_loader, class_names)
plot_classwise_predictions(model, test_loader, class_names)
