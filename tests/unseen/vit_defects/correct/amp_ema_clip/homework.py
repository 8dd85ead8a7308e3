# %% [markdown]
# # Vision Transformer for steel surface defects
#
# Student 400107901. Extras that I use: mixed precision (on a GPU only), gradient clipping, label smoothing and an
# exponential moving average (EMA) of the weights. The EMA weights are the ones that are handed in.

# %%
import copy
import random
import shutil
import time
import zipfile
from pathlib import Path

import matplotlib.pyplot as plt
import seaborn as sns
import torch
from sklearn.metrics import confusion_matrix
from torch import nn, optim
from torch.utils.data import DataLoader
from torchvision import datasets, transforms

STUDENT_ID = "400107901"

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(42)

USE_AMP = device.type == "cuda"  # float16 on the CPU would only be slow
MAX_NORM = 1.0
LABEL_SMOOTHING = 0.1
EMA_DECAY = 0.98

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

# %%
train_transform = transforms.Compose(
    [
        transforms.Grayscale(num_output_channels=1),
        transforms.RandomResizedCrop((28, 28), scale=(0.8, 1.0), ratio=(0.9, 1.1)),
        transforms.RandomHorizontalFlip(),
        transforms.RandomVerticalFlip(),
        transforms.ToTensor(),
        transforms.Normalize((0.5,), (0.5,)),
    ]
)
transform = transforms.Compose(
    [
        transforms.Resize((28, 28)),
        transforms.Grayscale(num_output_channels=1),
        transforms.ToTensor(),
        transforms.Normalize((0.5,), (0.5,)),
    ]
)
BATCH_SIZE = 32

train_set = datasets.ImageFolder("data/train", transform=train_transform)
test_set = datasets.ImageFolder("data/test", transform=transform)
train_loader = DataLoader(train_set, batch_size=BATCH_SIZE, shuffle=True, pin_memory=USE_AMP)
test_loader = DataLoader(test_set, batch_size=BATCH_SIZE, shuffle=False, pin_memory=USE_AMP)
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
class FeedForward(nn.Sequential):
    """Two linear layers with a nonlinearity between them, applied to each token by itself."""

    def __init__(self, dim, hidden_dim, dropout=0.0):
        super().__init__(
            nn.Linear(dim, hidden_dim),
            nn.GELU(),
            nn.Dropout(dropout),
            nn.Linear(hidden_dim, dim),
            nn.Dropout(dropout),
        )

    def forward(self, x):
        return super().forward(x)


# %%
class Attention(nn.Module):
    """Multi-head self-attention: softmax(q k^T / sqrt(dim_head)) v in every head."""

    def __init__(self, dim, heads=4, dim_head=64, dropout=0.0):
        super().__init__()
        self.heads = heads
        self.dim_head = dim_head
        self.wq = nn.Linear(dim, heads * dim_head, bias=False)
        self.wk = nn.Linear(dim, heads * dim_head, bias=False)
        self.wv = nn.Linear(dim, heads * dim_head, bias=False)
        self.wo = nn.Linear(heads * dim_head, dim)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        batch, tokens, _ = x.size()
        shape = (batch, tokens, self.heads, self.dim_head)
        q = self.wq(x).view(shape).permute(0, 2, 1, 3)  # batch, heads, tokens, dim_head
        k = self.wk(x).view(shape).permute(0, 2, 3, 1)  # batch, heads, dim_head, tokens
        v = self.wv(x).view(shape).permute(0, 2, 1, 3)
        scores = torch.matmul(q, k).div(self.dim_head**0.5)
        # in float32 even under autocast, float16 may overflow here
        attention = scores.float().softmax(dim=-1).to(v.dtype)
        context = torch.matmul(attention, v)
        context = context.permute(0, 2, 1, 3).contiguous().view(batch, tokens, self.heads * self.dim_head)
        return self.dropout(self.wo(context))


# %%
class EncoderBlock(nn.Module):
    def __init__(self, dim, heads, dim_head, mlp_dim, dropout):
        super().__init__()
        self.attention = PreNorm(dim, Attention(dim, heads=heads, dim_head=dim_head, dropout=dropout))
        self.feed_forward = PreNorm(dim, FeedForward(dim, mlp_dim, dropout=dropout))

    def forward(self, x):
        x = x + self.attention(x)
        x = x + self.feed_forward(x)
        return x


class Transformer(nn.Module):
    """The encoder: `depth` blocks."""

    def __init__(self, dim, depth, heads, dim_head, mlp_dim, dropout=0.0):
        super().__init__()
        self.blocks = nn.Sequential(*[EncoderBlock(dim, heads, dim_head, mlp_dim, dropout) for _ in range(depth)])

    def forward(self, x):
        return self.blocks(x)


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
        assert image_size % patch_size == 0
        assert pool in ("cls", "mean")
        self.pool = pool
        self.patch_embedding = nn.Conv2d(channels, dim, kernel_size=patch_size, stride=patch_size)
        num_patches = (image_size // patch_size) ** 2
        self.class_token = nn.Parameter(torch.zeros(1, 1, dim))
        self.position_embedding = nn.Parameter(torch.randn(1, num_patches + 1, dim) * 0.02)
        self.dropout = nn.Dropout(emb_dropout)
        self.transformer = Transformer(dim, depth, heads, dim_head, mlp_dim, dropout)
        self.head_norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, num_classes)

    def forward(self, img):
        x = self.patch_embedding(img)  # batch, dim, rows, columns
        x = x.flatten(start_dim=2).transpose(1, 2)  # batch, patches, dim
        x = torch.cat([self.class_token.expand(x.size(0), -1, -1).to(x.dtype), x], dim=1)
        x = self.dropout(x + self.position_embedding)
        x = self.transformer(x)
        x = x[:, 0] if self.pool == "cls" else x.mean(dim=1)
        return self.head(self.head_norm(x))


# %% [markdown]
# ## 4. Training and evaluation


# %%
class EMA:
    """A copy of the model whose weights follow those of the model slowly."""

    def __init__(self, model, decay):
        self.model = model
        self.module = copy.deepcopy(model).eval()
        for p in self.module.parameters():
            p.requires_grad_(False)
        self.decay = decay
        self.steps = 0

    @torch.no_grad()
    def update(self):
        self.steps += 1
        decay = min(self.decay, (1 + self.steps) / (10 + self.steps))  # forget the random start quickly
        for slow, fast in zip(self.module.parameters(), self.model.parameters()):
            slow.lerp_(fast.detach(), 1.0 - decay)


ema = None  # set in part 5
criterion = nn.CrossEntropyLoss(label_smoothing=LABEL_SMOOTHING)
scaler = torch.amp.GradScaler("cuda", enabled=USE_AMP)


# %%
def train_epoch(model, optimizer, data_loader, loss_history):
    """Trains the model for one pass over the data."""
    model.train()
    for i, (images, labels) in enumerate(data_loader):
        images, labels = images.to(device), labels.to(device)
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(device_type=device.type, enabled=USE_AMP):
            loss = criterion(model(images), labels)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)  # clip the true gradients, not the scaled ones
        nn.utils.clip_grad_norm_(model.parameters(), MAX_NORM)
        scaler.step(optimizer)
        scaler.update()
        if ema is not None and ema.model is model:
            ema.update()
        if i % 100 == 0:
            print(f"  {i:>4}/{len(data_loader)} batches, loss {loss.item():.4f}")
            loss_history.append(loss.item())


# %%
def evaluate(model, data_loader, loss_history):
    """Measures the model: the plain cross-entropy (no smoothing) per image, and the accuracy."""
    model.eval()
    loss_sum = 0.0
    correct = 0
    count = 0
    with torch.no_grad():
        for images, labels in data_loader:
            images, labels = images.to(device), labels.to(device)
            scores = model(images)
            loss_sum += nn.functional.cross_entropy(scores, labels, reduction="sum").item()
            correct += (scores.argmax(dim=1) == labels).sum().item()
            count += labels.size(0)
    loss_history.append(loss_sum / count)
    print(f"  average loss {loss_sum / count:.4f}, accuracy {correct}/{count} = {100 * correct / count:.2f} %")


# %% [markdown]
# ## 5. Train, save, reload

# %%
model = ViT(
    image_size=28, patch_size=4, num_classes=6, channels=1, dim=96, depth=6, heads=6, mlp_dim=192, dim_head=16, dropout=0.1
)
model.to(device)
print(f"The model has {sum(p.numel() for p in model.parameters() if p.requires_grad):,} parameters.")
ema = EMA(model, EMA_DECAY)

# no weight decay for biases, norms, class token and positions
decayed = [p for name, p in model.named_parameters() if p.ndim >= 2 and "token" not in name and "position" not in name]
others = [p for name, p in model.named_parameters() if p.ndim < 2 or "token" in name or "position" in name]
optimizer = optim.AdamW(
    [{"params": decayed, "weight_decay": 0.05}, {"params": others, "weight_decay": 0.0}], lr=1e-3
)

N_EPOCHS = 10
scheduler = optim.lr_scheduler.OneCycleLR(
    optimizer, max_lr=1e-3, total_steps=N_EPOCHS, pct_start=0.2, div_factor=5, cycle_momentum=False
)

# %%
train_loss_history, test_loss_history = [], []
start = time.time()
for epoch in range(1, N_EPOCHS + 1):
    print(f"Epoch {epoch}/{N_EPOCHS}")
    train_epoch(model, optimizer, train_loader, train_loss_history)
    if epoch < N_EPOCHS:
        scheduler.step()
    evaluate(ema.module, test_loader, test_loss_history)  # the averaged weights
print(f"Training took {time.time() - start:.1f} s.")

# %%
print("last weights:")
evaluate(model, test_loader, [])
model.load_state_dict(ema.module.state_dict())  # from here on the model is the average
print("averaged weights:")
evaluate(model, test_loader, [])

torch.save(model.state_dict(), f"{STUDENT_ID}.pth")
torch.save(model.state_dict(), f"{STUDENT_ID}_Lab8_Homework.pth")
model.load_state_dict(torch.load(f"{STUDENT_ID}.pth", map_location=device, weights_only=True))
evaluate(model, test_loader, [])

# %%
plt.figure(figsize=(7, 4))
plt.plot(train_loss_history, marker=".", label="training loss, smoothed labels (every 100 batches)")
plt.plot(test_loss_history, marker=".", label="test loss of the EMA weights (every epoch)")
plt.xlabel("entry")
plt.ylabel("cross-entropy")
plt.legend()
plt.show()

# %% [markdown]
# ## 6. What has it learned?


# %%
def plot_confusion_matrix(model, data_loader, class_names):
    """Draws how often each true class (rows) was taken for each class (columns)."""
    model.eval()
    true, predicted = [], []
    with torch.no_grad():
        for images, labels in data_loader:
            scores = model(images.to(device))
            true += labels.tolist()
            predicted += scores.argmax(dim=1).tolist()
    counts = confusion_matrix(true, predicted, labels=list(range(len(class_names))))
    plt.figure(figsize=(7, 6))
    ax = sns.heatmap(counts, annot=True, fmt="d", cmap="Blues")
    ax.set_xticklabels(class_names, rotation=45, ha="right")
    ax.set_yticklabels(class_names, rotation=0)
    ax.set_xlabel("predicted")
    ax.set_ylabel("true")
    ax.set_title("Confusion matrix")
    plt.tight_layout()
    plt.show()


# %%
def plot_classwise_predictions(model, data_loader, class_names, samples_per_class=4):
    """Draws examples of every class with the true and the predicted label on each image."""
    model.eval()
    found = [[] for _ in class_names]
    with torch.no_grad():
        for images, labels in data_loader:
            predictions = model(images.to(device)).argmax(dim=1).tolist()
            for image, label, prediction in zip(images, labels.tolist(), predictions):
                if len(found[label]) < samples_per_class:
                    found[label].append((image.cpu(), prediction))
    rows = len(class_names)
    fig, axes = plt.subplots(rows, samples_per_class, figsize=(2.4 * samples_per_class, 2.5 * rows), squeeze=False)
    for ax in axes.flat:
        ax.axis("off")
    for label, examples in enumerate(found):
        for ax, (image, prediction) in zip(axes[label], examples):
            ax.imshow((image.squeeze(0) * 0.5 + 0.5).clamp(0, 1), cmap="gray", vmin=0, vmax=1)
            right = prediction == label
            ax.set_title(
                f"true: {class_names[label]}\npredicted: {class_names[prediction]}",
                fontsize=7,
                color="green" if right else "red",
            )
    plt.tight_layout()
    plt.show()


# %%
plot_confusion_matrix(model, test_loader, class_names)
plot_classwise_predictions(model, test_loader, class_names)
