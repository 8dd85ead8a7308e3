# %% [markdown]
# # ViT for steel surface defects, in einops
#
# Every change of shape and every linear map is written as an einops pattern.
#
# Axes: b images, c channels, gh gw the grid of patches, p1 p2 the pixels of a patch, n m tokens,
# d dim, h heads, k dim_head, f hidden width, y classes.

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
from einops import einsum, pack, rearrange, reduce, repeat
from einops.layers.torch import EinMix, Rearrange, Reduce
from sklearn.metrics import confusion_matrix
from torch import nn, optim
from torch.utils.data import DataLoader, Subset
from torchvision import datasets, transforms

STUDENT_ID = "400106834"

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
# Every tenth training image is kept aside, not augmented, to decide when to stop. The test images decide nothing.

# %%
to_tensor = [
    transforms.Resize((28, 28)),
    transforms.Grayscale(num_output_channels=1),
    transforms.ToTensor(),
    transforms.Normalize((0.5,), (0.5,)),
]
transform = transforms.Compose(to_tensor)
train_transform = transforms.Compose(
    [
        *to_tensor,
        transforms.RandomHorizontalFlip(),
        transforms.RandomVerticalFlip(),
        # swap height and width in half of the cases
        transforms.RandomApply([Rearrange("c h w -> c w h")], p=0.5),
    ]
)
BATCH_SIZE = 64

train_set = datasets.ImageFolder("data/train", transform=train_transform)
held_out = datasets.ImageFolder("data/train", transform=transform)
test_set = datasets.ImageFolder("data/test", transform=transform)
class_names = train_set.classes

for_stopping = [i for i in range(len(train_set)) if i % 10 == 0]
for_training = [i for i in range(len(train_set)) if i % 10 != 0]
train_loader = DataLoader(Subset(train_set, for_training), batch_size=BATCH_SIZE, shuffle=True)
val_loader = DataLoader(Subset(held_out, for_stopping), batch_size=BATCH_SIZE)
test_loader = DataLoader(test_set, batch_size=BATCH_SIZE, shuffle=False)
print(f"{len(for_training)} + {len(for_stopping)} training images, {len(test_set)} test images, {class_names}")


# %%
def show_samples(dataset, title, per_class=6):
    """One big picture: rows are classes."""
    chosen = [[i for i, t in enumerate(dataset.targets) if t == y][:per_class] for y in range(len(dataset.classes))]
    width = min(map(len, chosen))
    tiles = torch.stack([dataset[i][0] for row in chosen for i in row[:width]])
    plt.figure(figsize=(1.5 * per_class, 9))
    plt.imshow(rearrange(tiles, "(y s) 1 h w -> (y h) (s w)", s=width), cmap="gray", vmin=-1, vmax=1)
    plt.yticks([28 * y + 14 for y in range(len(chosen))], dataset.classes)
    plt.xticks([])
    plt.title(title)
    plt.show()


show_samples(train_set, "Training images")
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


class FeedForward(nn.Sequential):
    def __init__(self, dim, hidden_dim, dropout=0.0):
        super().__init__(
            EinMix("b n d -> b n f", weight_shape="d f", bias_shape="f", d=dim, f=hidden_dim),
            nn.GELU(),
            nn.Dropout(dropout),
            EinMix("b n f -> b n d", weight_shape="f d", bias_shape="d", d=dim, f=hidden_dim),
            nn.Dropout(dropout),
        )

    def forward(self, x):
        return super().forward(x)


class Mix(nn.Module):
    """(3, b, h, n, k), the queries, keys and values, to (b, h, n, k)"""

    def forward(self, qkv):
        q, k, v = qkv
        scores = einsum(q, k, "b h n k, b h m k -> b h n m") * q.shape[-1] ** -0.5
        return einsum(scores.softmax(-1), v, "b h n m, b h m k -> b h n k")


class Attention(nn.Sequential):
    def __init__(self, dim, heads=4, dim_head=64, dropout=0.0):
        sizes = {"d": dim, "h": heads, "k": dim_head}
        super().__init__(
            EinMix("b n d -> qkv b h n k", weight_shape="qkv d h k", qkv=3, **sizes),
            Mix(),
            EinMix("b h n k -> b n d", weight_shape="h k d", bias_shape="d", **sizes),
            nn.Dropout(dropout),
        )

    def forward(self, x):
        return super().forward(x)


class Residual(nn.Sequential):
    """x + (all that is inside)(x)"""

    def forward(self, x):
        return x + super().forward(x)


class Transformer(nn.Sequential):
    def __init__(self, dim, depth, heads, dim_head, mlp_dim, dropout=0.0):
        super().__init__(
            *(
                nn.Sequential(
                    Residual(PreNorm(dim, Attention(dim, heads, dim_head, dropout))),
                    Residual(PreNorm(dim, FeedForward(dim, mlp_dim, dropout))),
                )
                for _ in range(depth)
            )
        )

    def forward(self, x):
        return super().forward(x)


class Positions(nn.Module):
    """Adds to each patch the position of its row plus that of its column, both learned."""

    def __init__(self, grid, dim):
        super().__init__()
        self.rows = nn.Parameter(0.02 * torch.randn(grid, 1, dim))
        self.columns = nn.Parameter(0.02 * torch.randn(1, grid, dim))

    def forward(self, x):
        return x + (self.rows + self.columns)  # (b, gh, gw, d) + (gh, gw, d)


class PrependClassToken(nn.Module):
    """(b, n, d) to (b, 1 + n, d). The token's content and its own position are separate parameters."""

    def __init__(self, dim):
        super().__init__()
        self.token = nn.Parameter(0.02 * torch.randn(dim))
        self.position = nn.Parameter(0.02 * torch.randn(dim))

    def forward(self, x):
        first = repeat(self.token + self.position, "d -> b d", b=len(x))
        return pack([first, x], "b * d")[0]


class TakeFirst(nn.Module):
    def forward(self, x):
        return x[:, 0]


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
        grid, rest = divmod(image_size, patch_size)
        if rest:
            raise ValueError("patch_size must divide image_size")
        self.layers = nn.Sequential(
            EinMix(
                "b c (gh p1) (gw p2) -> b gh gw d",
                weight_shape="c p1 p2 d",
                bias_shape="d",
                c=channels,
                p1=patch_size,
                p2=patch_size,
                d=dim,
            ),
            Positions(grid, dim),
            Rearrange("b gh gw d -> b (gh gw) d"),
            PrependClassToken(dim),
            nn.Dropout(emb_dropout),
            Transformer(dim, depth, heads, dim_head, mlp_dim, dropout),
            {"cls": TakeFirst(), "mean": Reduce("b n d -> b d", "mean")}[pool],
            nn.LayerNorm(dim),
            EinMix("b d -> b y", weight_shape="d y", bias_shape="y", d=dim, y=num_classes),
        )

    def forward(self, img):
        return self.layers(img)


# %% [markdown]
# ## 4. Training and evaluation


# %%
def device_of(model):
    return next((p.device for p in model.parameters()), device)


def train_epoch(model, optimizer, data_loader, loss_history):
    """One pass over the data, one step for each batch."""
    model.train()
    for i, (img, label) in enumerate(data_loader):
        optimizer.zero_grad()
        scores = model(img.to(device_of(model)))
        loss = F.cross_entropy(scores, label.to(device_of(model)))
        loss.backward()
        optimizer.step()
        if not i % 100:
            loss_history.append(loss.item())
            print(f"    batch {i + 1}: {loss.item():.3f}")


@torch.no_grad()
def run(model, data_loader):
    """Images, labels and scores of one pass, each packed along the batch."""
    model.eval()
    batches = [(img.cpu(), label.cpu(), model(img.to(device_of(model))).cpu()) for img, label in data_loader]
    img, label, scores = zip(*batches, strict=True)
    return pack(img, "* c h w")[0], pack(label, "*")[0], pack(scores, "* y")[0]


def evaluate(model, data_loader, loss_history):
    """Average loss per image (appended, printed, returned) and accuracy (printed)."""
    _, label, scores = run(model, data_loader)
    loss = F.cross_entropy(scores, label).item()
    accuracy = reduce((scores.argmax(-1) == label).float(), "b ->", "mean").item()
    loss_history.append(loss)
    print(f"    loss {loss:.4f}, accuracy {100 * accuracy:.2f} %")
    return loss


# %% [markdown]
# ## 5. Train, save, reload

# %%
model = ViT(
    image_size=28,
    patch_size=4,
    num_classes=6,
    channels=1,
    dim=64,
    depth=6,
    heads=8,
    dim_head=16,
    mlp_dim=128,
    pool="mean",
    dropout=0.1,
)
model.to(device)
print(model)
print(f"The model has {sum(p.numel() for p in model.parameters() if p.requires_grad):,} parameters.")

optimizer = optim.NAdam(model.parameters(), lr=0.001)

N_EPOCHS = 60
PATIENCE = 6  # epochs without progress until the learning rate is halved
scheduler = optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=PATIENCE)

# %%
train_loss_history, val_loss_history = [], []
best_loss, best_weights = float("inf"), None
start = time.time()
for epoch in range(1, N_EPOCHS + 1):
    print(f"Epoch {epoch}/{N_EPOCHS}")
    train_epoch(model, optimizer, train_loader, train_loss_history)
    val_loss = evaluate(model, val_loader, val_loss_history)
    scheduler.step(val_loss)
    if val_loss < best_loss:
        best_loss, best_weights = val_loss, {name: w.clone() for name, w in model.state_dict().items()}
    if optimizer.param_groups[0]["lr"] < 2e-5:
        print("The learning rate has become too small to matter.")
        break
print(f"Training took {time.time() - start:.1f} s.")
if best_weights is not None:
    model.load_state_dict(best_weights)

test_loss_history = []
print("Test images:")
evaluate(model, test_loader, test_loss_history)

# %%
torch.save(model.state_dict(), f"{STUDENT_ID}.pth")
torch.save(model.state_dict(), f"{STUDENT_ID}_Lab8_Homework.pth")
model.load_state_dict(torch.load(f"{STUDENT_ID}.pth", map_location=device, weights_only=True))
evaluate(model, test_loader, [])

# %%
plt.figure(figsize=(7, 4))
plt.plot(train_loss_history, label="training")
plt.plot(val_loss_history, label="held-out part of the training images")
plt.axhline(test_loss_history[0], linestyle=":", color="black", label="test, at the end")
plt.xlabel("epoch")
plt.ylabel("cross-entropy")
plt.legend()
plt.show()

# %% [markdown]
# ## 6. What has it learned?


# %%
def plot_confusion_matrix(model, data_loader, class_names):
    """Rows: true. Columns: predicted. The color is the share of the row, the number is the count."""
    _, label, scores = run(model, data_loader)
    counts = confusion_matrix(label, scores.argmax(-1), labels=range(len(class_names)))
    shares = counts / reduce(counts, "true pred -> true 1", "sum").clip(min=1)
    ax = plt.figure(figsize=(7, 6)).add_subplot()
    sns.heatmap(
        shares, annot=counts, fmt="d", cmap="mako_r", vmin=0, vmax=1, ax=ax, xticklabels=class_names, yticklabels=class_names
    )
    ax.set(xlabel="predicted", ylabel="true")
    plt.tight_layout()
    plt.show()


def plot_classwise_predictions(model, data_loader, class_names, samples_per_class=4):
    """A row per true class."""
    img, label, scores = run(model, data_loader)
    pictures = rearrange((img * 0.5 + 0.5).clamp(0, 1), "b c h w -> b h w c")
    pictures = pictures if pictures.shape[-1] == 3 else reduce(pictures, "b h w c -> b h w", "mean")
    guess = scores.argmax(-1)

    fig = plt.figure(figsize=(2.3 * samples_per_class, 2.4 * len(class_names)))
    axes = fig.subplots(len(class_names), samples_per_class, squeeze=False)
    for y, row in enumerate(axes):
        which = (label == y).nonzero().flatten().tolist()[:samples_per_class]
        for ax, i in zip(row, which, strict=False):
            ax.imshow(pictures[i], cmap="gray", vmin=0, vmax=1)
            ax.set_title(f"true: {class_names[y]}", fontsize=8)
            ax.set_xlabel(f"predicted: {class_names[guess[i]]}", fontsize=8, color="green" if guess[i] == y else "red")
        for ax in row:
            ax.set(xticks=[], yticks=[], frame_on=False)
    fig.tight_layout()
    plt.show()


# %%
plot_confusion_matrix(model, test_loader, class_names)
plot_classwise_predictions(model, test_loader, class_names)
