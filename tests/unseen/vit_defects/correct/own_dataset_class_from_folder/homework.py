# Deep learning course, assignment 1: ViT, steel surface defects
# 400107901

import math
import os
import time
import zipfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import seaborn as sns
import torch
from einops import rearrange
from PIL import Image
from sklearn.metrics import confusion_matrix
from torch import einsum, nn, optim
from torch.utils.data import DataLoader, Dataset
from torchvision import transforms

STUDENT_ID = "400107901"
SEED = 42

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(SEED)
np.random.seed(SEED)

# ---------------------------------------------------------------------------------------------
# 1. data: unzip, list the files, split
# ---------------------------------------------------------------------------------------------
if not os.path.isdir("dataset"):
    with zipfile.ZipFile("dataset.zip") as z:
        z.extractall("dataset")


def dataset_root(folder):
    """The zip may have one folder around the class folders."""
    inside = [d for d in sorted(os.listdir(folder)) if os.path.isdir(os.path.join(folder, d)) and d != "__MACOSX"]
    if len(inside) == 1:
        return dataset_root(os.path.join(folder, inside[0]))
    return folder


class SteelDefects(Dataset):
    """Lists <root>/<class>/*.jpg|png|bmp. `indices` chooses a part of the (sorted) list."""

    EXTENSIONS = (".jpg", ".jpeg", ".png", ".bmp")

    def __init__(self, root, transform=None, indices=None):
        self.root = Path(root)
        self.transform = transform
        self.classes = sorted(d for d in os.listdir(root) if (self.root / d).is_dir() and d != "__MACOSX")
        self.class_to_idx = {name: i for i, name in enumerate(self.classes)}
        samples = []
        for name in self.classes:
            for file in sorted((self.root / name).iterdir()):
                if file.suffix.lower() in self.EXTENSIONS:
                    samples.append((file, self.class_to_idx[name]))
        if indices is not None:
            samples = [samples[i] for i in indices]
        self.samples = samples
        self.targets = [label for _, label in samples]

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, i):
        path, label = self.samples[i]
        with Image.open(path) as f:
            image = f.convert("L")
        if self.transform is not None:
            image = self.transform(image)
        return image, label


def stratified_split(labels, train_share=0.7, seed=SEED):
    """Indices of the training and of the test images, with the same share of every class."""
    labels = np.asarray(labels)
    rng = np.random.default_rng(seed)
    train, test = [], []
    for c in np.unique(labels):
        members = np.flatnonzero(labels == c)
        rng.shuffle(members)
        cut = int(round(train_share * len(members)))
        train.append(members[:cut])
        test.append(members[cut:])
    return np.concatenate(train), np.concatenate(test)


IMG = 32  # 32 / 4 = 8 patches per side; a little more detail than 28
BATCH_SIZE = 48

train_tf = transforms.Compose([
    transforms.Resize((IMG, IMG)),
    transforms.RandomHorizontalFlip(p=0.5),
    transforms.RandomVerticalFlip(p=0.5),
    transforms.RandomCrop(IMG, padding=2, padding_mode="reflect"),
    transforms.ColorJitter(brightness=0.1, contrast=0.1),
    transforms.ToTensor(),
    transforms.Normalize((0.5,), (0.5,)),
])
test_tf = transforms.Compose([
    transforms.Resize((IMG, IMG)),
    transforms.ToTensor(),
    transforms.Normalize((0.5,), (0.5,)),
])

root = dataset_root("dataset")
train_idx, test_idx = stratified_split(SteelDefects(root).targets)
assert not set(train_idx) & set(test_idx)
train_ds = SteelDefects(root, train_tf, train_idx)
test_ds = SteelDefects(root, test_tf, test_idx)
train_loader = DataLoader(train_ds, batch_size=BATCH_SIZE, shuffle=True)
test_loader = DataLoader(test_ds, batch_size=BATCH_SIZE)
class_names = train_ds.classes

print(train_ds.class_to_idx)
print("train:", len(train_ds), np.bincount(train_ds.targets), " test:", len(test_ds), np.bincount(test_ds.targets))


def show_grid(ds, title, cols=8):
    fig, ax = plt.subplots(len(ds.classes), cols, figsize=(cols, 1.2 * len(ds.classes)))
    for c in range(len(ds.classes)):
        of_class = np.flatnonzero(np.array(ds.targets) == c)[:cols]
        for j in range(cols):
            ax[c, j].axis("off")
            if j < len(of_class):
                ax[c, j].imshow(ds[of_class[j]][0][0], cmap="gray")
        ax[c, 0].set_title(ds.classes[c], fontsize=7, loc="left")
    fig.suptitle(title)
    plt.show()


show_grid(train_ds, "train")
show_grid(test_ds, "test")


# ---------------------------------------------------------------------------------------------
# 3. model
# ---------------------------------------------------------------------------------------------
class PreNorm(nn.Module):
    def __init__(self, dim, fn):
        super().__init__()
        self.fn = fn
        self.norm = nn.LayerNorm(dim)

    def forward(self, x, **kwargs):
        normed = self.norm(x)
        return self.fn(normed, **kwargs)


class FeedForward(nn.Module):
    def __init__(self, dim, hidden_dim, dropout=0.):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(dim, hidden_dim), nn.GELU(), nn.Dropout(dropout),
            nn.Linear(hidden_dim, dim), nn.Dropout(dropout),
        )

    def forward(self, x):
        return self.layers(x)


class Attention(nn.Module):
    def __init__(self, dim, heads=4, dim_head=64, dropout=0.):
        super().__init__()
        self.h = heads
        self.scale = 1 / math.sqrt(dim_head)
        self.to_q = nn.Linear(dim, heads * dim_head, bias=False)
        self.to_kv = nn.Linear(dim, 2 * heads * dim_head, bias=False)
        self.project = nn.Linear(heads * dim_head, dim)
        self.drop = nn.Dropout(dropout)

    def forward(self, x):
        q = self.to_q(x)
        k, v = self.to_kv(x).chunk(2, dim=-1)
        q, k, v = [rearrange(t, "b n (h d) -> b h n d", h=self.h) for t in (q, k, v)]
        scores = einsum("b h i d, b h j d -> b h i j", q, k) * self.scale
        weights = scores.softmax(dim=-1)  # over the keys j
        out = einsum("b h i j, b h j d -> b h i d", weights, v)
        out = rearrange(out, "b h n d -> b n (h d)")
        return self.drop(self.project(out))


class Transformer(nn.Module):
    def __init__(self, dim, depth, heads, dim_head, mlp_dim, dropout=0.):
        super().__init__()
        self.blocks = nn.ModuleList()
        for _ in range(depth):
            self.blocks.append(nn.ModuleDict({
                "attention": PreNorm(dim, Attention(dim, heads=heads, dim_head=dim_head, dropout=dropout)),
                "mlp": PreNorm(dim, FeedForward(dim, mlp_dim, dropout=dropout)),
            }))

    def forward(self, x):
        for block in self.blocks:
            x = block["attention"](x) + x
            x = block["mlp"](x) + x
        return x


class ViT(nn.Module):
    def __init__(self, *, image_size, patch_size, num_classes, dim, depth, heads, mlp_dim, pool='cls',
                 channels=1, dim_head=64, dropout=0., emb_dropout=0.):
        super().__init__()
        assert image_size % patch_size == 0, "image_size must be a multiple of patch_size"
        assert pool in ('cls', 'mean'), "pool must be cls or mean"
        self.p = patch_size
        self.pool = pool
        n_patches = (image_size // patch_size) ** 2
        self.patch_to_token = nn.Linear(channels * patch_size * patch_size, dim)
        self.cls_token = nn.Parameter(torch.empty(1, 1, dim).normal_(std=0.02))
        self.positions = nn.Parameter(torch.empty(1, 1 + n_patches, dim).normal_(std=0.02))
        self.emb_drop = nn.Dropout(emb_dropout)
        self.transformer = Transformer(dim, depth, heads, dim_head, mlp_dim, dropout)
        self.head = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, num_classes))

    def forward(self, img):
        patches = rearrange(img, "b c (h p) (w q) -> b (h w) (c p q)", p=self.p, q=self.p)
        tokens = self.patch_to_token(patches)
        b = tokens.shape[0]
        tokens = torch.cat([self.cls_token.repeat(b, 1, 1), tokens], dim=1)
        tokens = self.emb_drop(tokens + self.positions)
        tokens = self.transformer(tokens)
        if self.pool == 'mean':
            return self.head(tokens.mean(dim=1))
        return self.head(tokens[:, 0])


# ---------------------------------------------------------------------------------------------
# 4. training and evaluation
# ---------------------------------------------------------------------------------------------
criterion = nn.CrossEntropyLoss()


def train_epoch(model, optimizer, data_loader, loss_history):
    model.train()
    n_batches = len(data_loader)
    for step, batch in enumerate(data_loader, start=1):
        images, labels = (t.to(device) for t in batch)
        logits = model(images)
        loss = criterion(logits, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if (step - 1) % 100 == 0:
            print("[%3d/%3d] loss = %.4f" % (step, n_batches, loss.item()))
            loss_history.append(loss.item())


def evaluate(model, data_loader, loss_history):
    model.eval()
    losses, hits = [], []
    with torch.no_grad():
        for images, labels in data_loader:
            images, labels = images.to(device), labels.to(device)
            logits = model(images)
            losses.append(nn.functional.cross_entropy(logits, labels, reduction="none").cpu())
            hits.append((logits.argmax(dim=1) == labels).cpu())
    losses, hits = torch.cat(losses), torch.cat(hits)
    avg = losses.mean().item()
    loss_history.append(avg)
    print("test: loss = %.4f, accuracy = %d/%d = %.2f%%" % (avg, hits.sum(), len(hits), 100 * hits.float().mean()))


# ---------------------------------------------------------------------------------------------
# 5. train, save, reload
# ---------------------------------------------------------------------------------------------
def make_lr_setter(optimizer, peak, warmup_epochs, total_epochs, floor=1e-5):
    """Returns set_lr(epoch), epoch = 0, 1, ...: linear up to peak, then half a cosine down to floor."""

    def set_lr(epoch):
        if epoch < warmup_epochs:
            lr = peak * (epoch + 1) / warmup_epochs
        else:
            t = (epoch - warmup_epochs) / max(1, total_epochs - warmup_epochs - 1)
            lr = floor + (peak - floor) * (1 + math.cos(math.pi * t)) / 2
        for group in optimizer.param_groups:
            group["lr"] = lr
        return lr

    return set_lr


N_EPOCHS = 8
LR = 1e-3

model = ViT(image_size=IMG, patch_size=4, num_classes=len(class_names), channels=1, dim=64, depth=5, heads=8,
            dim_head=16, mlp_dim=192, dropout=0.1)
model = model.to(device)
print(f"The model has {sum(p.numel() for p in model.parameters() if p.requires_grad):,} parameters.")

optimizer = optim.AdamW(model.parameters(), lr=LR, betas=(0.9, 0.98), weight_decay=0.03)
set_lr = make_lr_setter(optimizer, peak=LR, warmup_epochs=2, total_epochs=N_EPOCHS)

train_loss_history, test_loss_history, lrs = [], [], []
t0 = time.time()
for epoch in range(N_EPOCHS):
    lrs.append(set_lr(epoch))
    print(f"--- epoch {epoch + 1} of {N_EPOCHS}, lr = {lrs[-1]:.6f}")
    train_epoch(model, optimizer, train_loader, train_loss_history)
    evaluate(model, test_loader, test_loss_history)
print(f"Training took {time.time() - t0:.1f} s.")

torch.save(model.state_dict(), f"{STUDENT_ID}.pth")
torch.save(model.state_dict(), f"{STUDENT_ID}_Lab8_Homework.pth")
model.load_state_dict(torch.load(f"{STUDENT_ID}.pth", map_location=device, weights_only=True))
evaluate(model, test_loader, [])

fig, (left, right) = plt.subplots(1, 2, figsize=(10, 4))
left.plot(train_loss_history, ".-", label="train (first batch)")
left.plot(test_loss_history, ".-", label="test")
left.set_xlabel("epoch")
left.set_ylabel("cross-entropy")
left.legend()
right.plot(lrs, ".-")
right.set_xlabel("epoch")
right.set_ylabel("learning rate")
plt.show()


# ---------------------------------------------------------------------------------------------
# 6. plots
# ---------------------------------------------------------------------------------------------
def plot_confusion_matrix(model, data_loader, class_names):
    model.eval()
    t, p = [], []
    with torch.no_grad():
        for images, labels in data_loader:
            p.append(model(images.to(device)).argmax(dim=1).cpu().numpy())
            t.append(labels.cpu().numpy())
    cm = confusion_matrix(np.concatenate(t), np.concatenate(p), labels=np.arange(len(class_names)))
    fig, ax = plt.subplots(figsize=(7, 6))
    sns.heatmap(cm, annot=True, fmt="d", cmap="Oranges", cbar=False, square=True,
                xticklabels=class_names, yticklabels=class_names, ax=ax)
    ax.set(xlabel="predicted", ylabel="true", title="confusion matrix")
    plt.setp(ax.get_xticklabels(), rotation=40, ha="right")
    plt.tight_layout()
    plt.show()


def plot_classwise_predictions(model, data_loader, class_names, samples_per_class=4):
    model.eval()
    wanted = {c: samples_per_class for c in range(len(class_names))}
    shown = []  # (true, predicted, image)
    with torch.no_grad():
        for images, labels in data_loader:
            predicted = model(images.to(device)).argmax(dim=1).cpu()
            for image, t, p in zip(images, labels, predicted):
                t, p = int(t), int(p)
                if wanted[t] > 0:
                    wanted[t] -= 1
                    shown.append((t, p, image.cpu().squeeze(0) * 0.5 + 0.5))
            if not any(wanted.values()):
                break
    shown.sort(key=lambda s: s[0])
    rows, cols = len(class_names), samples_per_class
    fig = plt.figure(figsize=(2.4 * cols, 2.5 * rows))
    column = [0] * rows
    for t, p, image in shown:
        column[t] += 1
        ax = fig.add_subplot(rows, cols, t * cols + column[t])
        ax.imshow(image, cmap="gray", vmin=0, vmax=1)
        ax.set_title(f"true: {class_names[t]}\npredicted: {class_names[p]}", fontsize=8,
                     color="darkgreen" if t == p else "crimson")
        ax.set_xticks([])
        ax.set_yticks([])
    fig.tight_layout()
    plt.show()


plot_confusion_matrix(model, test_loader, class_names)
plot_classwise_predictions(model, test_loader, class_names)
