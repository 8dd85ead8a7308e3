# %% [markdown]
# # ViT de una imagen en una imagen
#
# Pienso siempre en UNA imagen, en UN token, en UNA cabeza, y dejo que `torch.func.vmap` ponga los lotes.
# Las funciones de abajo no saben que existe una dimensión "batch".

# %%
import math
import random
import shutil
import time
import zipfile
from functools import partial
from pathlib import Path

import matplotlib.pyplot as plt
import torch
from sklearn.metrics import confusion_matrix
from torch import nn, optim
from torch.func import vmap
from torch.utils.data import DataLoader
from torchvision import datasets, transforms

STUDENT_ID = "98106044"
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(42)


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
BATCH_SIZE = 64

train_set = datasets.ImageFolder("data/train", transform=transform)
test_set = datasets.ImageFolder("data/test", transform=transform)
train_loader = DataLoader(train_set, batch_size=BATCH_SIZE, shuffle=True)
test_loader = DataLoader(test_set, batch_size=BATCH_SIZE, shuffle=False)
class_names = train_set.classes
print(f"{len(train_set)} training images, {len(test_set)} test images, classes: {class_names}")


def show_samples(dataset, title, per_class=6):
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
# ## Funciones sin lote


# %%
def softmax_of_row(scores):
    """One row of scores -> weights that sum to 1. The maximum is subtracted so that exp cannot overflow."""
    e = torch.exp(scores - scores.max())
    return e / e.sum()


def attention_of_query(q, keys, values):
    """One query (d,), all keys (n, d) and values (n, d) -> (d,)."""
    scores = keys @ q / math.sqrt(q.shape[0])
    return softmax_of_row(scores) @ values


def attention_of_head(queries, keys, values):
    """(n, d) three times -> (n, d): the function above for each query."""
    return vmap(attention_of_query, in_dims=(0, None, None))(queries, keys, values)


def normalized(token, weight, bias, eps=1e-5):
    """Layer normalization of one token (dim,), by hand."""
    centered = token - token.mean()
    variance = (centered * centered).mean()
    return centered / torch.sqrt(variance + eps) * weight + bias


def quick_gelu(x):
    return x * torch.sigmoid(1.702 * x)


def patches_of_image(img, size):
    """(c, h, w) -> (patches, c * size * size), row by row."""
    c, h, w = img.shape
    grid = img.reshape(c, h // size, size, w // size, size)
    return grid.permute(1, 3, 0, 2, 4).reshape(-1, c * size * size)


# %% [markdown]
# ## Módulos
# El dropout es lo único que necesita cuidado: cada imagen y cada token tienen que tirar sus propios dados
# (`randomness="different"`), o se aplica fuera del vmap, sobre todo el lote.


# %%
class PerTokenNorm(nn.Module):
    """LayerNorm written by hand; the last axis is the token, whatever axes stand before it."""

    def __init__(self, dim):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.bias = nn.Parameter(torch.zeros(dim))

    def forward(self, x):
        tokens = x.reshape(-1, x.shape[-1])
        return vmap(partial(normalized, weight=self.weight, bias=self.bias))(tokens).reshape(x.shape)


class PreNorm(nn.Module):
    """Layer normalization, then another module."""

    def __init__(self, dim, fn):
        super().__init__()
        self.norm = PerTokenNorm(dim)
        self.fn = fn

    def forward(self, x, **kwargs):
        return self.fn(self.norm(x), **kwargs)


class FeedForward(nn.Module):
    """Two linear layers with a nonlinearity between them, applied to each token by itself."""

    def __init__(self, dim, hidden_dim, dropout=0.0):
        super().__init__()
        self.up = nn.Linear(dim, hidden_dim)
        self.down = nn.Linear(hidden_dim, dim)
        self.dropout = nn.Dropout(dropout)

    def one_token(self, token):
        hidden = self.dropout(quick_gelu(self.up(token)))
        return self.dropout(self.down(hidden))

    def forward(self, x):
        one_image = vmap(self.one_token, randomness="different")
        return vmap(one_image, randomness="different")(x)


class Attention(nn.Module):
    """Multi-head self-attention."""

    def __init__(self, dim, heads=4, dim_head=64, dropout=0.0):
        super().__init__()
        self.heads = heads
        self.dim_head = dim_head
        self.to_queries = nn.Linear(dim, heads * dim_head, bias=False)
        self.to_keys = nn.Linear(dim, heads * dim_head, bias=False)
        self.to_values = nn.Linear(dim, heads * dim_head, bias=False)
        self.to_output = nn.Linear(heads * dim_head, dim)
        self.dropout = nn.Dropout(dropout)

    def one_image(self, tokens):
        """(n, dim) -> (n, dim), before the dropout"""
        n = tokens.shape[0]
        by_head = [
            project(tokens).reshape(n, self.heads, self.dim_head)
            for project in (self.to_queries, self.to_keys, self.to_values)
        ]
        mixed = vmap(attention_of_head, in_dims=1, out_dims=1)(*by_head)  # over the heads: (n, heads, dim_head)
        return self.to_output(mixed.reshape(n, self.heads * self.dim_head))

    def forward(self, x):
        return self.dropout(vmap(self.one_image)(x))


class Transformer(nn.Module):
    """The encoder: `depth` blocks, each of pre-normalized attention and pre-normalized feed-forward."""

    def __init__(self, dim, depth, heads, dim_head, mlp_dim, dropout=0.0):
        super().__init__()
        self.layers = nn.ModuleList()
        for _ in range(depth):
            self.layers.append(PreNorm(dim, Attention(dim, heads, dim_head, dropout)))
            self.layers.append(PreNorm(dim, FeedForward(dim, mlp_dim, dropout)))

    def forward(self, x):
        for layer in self.layers:
            x = x + layer(x)
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
        if image_size % patch_size != 0:
            raise ValueError("the patches must fill the image")
        if pool not in {"cls", "mean"}:
            raise ValueError("pool is 'cls' or 'mean'")
        self.patch_size = patch_size
        self.pool = pool
        self.project = nn.Linear(channels * patch_size * patch_size, dim)
        self.class_token = nn.Parameter(torch.randn(1, dim) * 0.02)
        self.positions = nn.Parameter(torch.randn((image_size // patch_size) ** 2 + 1, dim) * 0.02)
        self.dropout = nn.Dropout(emb_dropout)
        self.transformer = Transformer(dim, depth, heads, dim_head, mlp_dim, dropout)
        self.final_norm = PerTokenNorm(dim)
        self.classify = nn.Linear(dim, num_classes)

    def embed_one(self, img):
        """One image (c, h, w) -> its tokens (1 + patches, dim)"""
        tokens = self.project(patches_of_image(img, self.patch_size))
        return torch.cat([self.class_token, tokens]) + self.positions

    def summarize_one(self, tokens):
        """(1 + patches, dim) -> (dim,)"""
        return tokens[0] if self.pool == "cls" else tokens.mean(dim=0)

    def forward(self, img):
        tokens = self.dropout(vmap(self.embed_one)(img))
        tokens = self.transformer(tokens)
        return self.classify(self.final_norm(vmap(self.summarize_one)(tokens)))


# %% [markdown]
# ## Entrenamiento
# Las imágenes de acero no tienen un "arriba": cada imagen del lote se refleja o no, por su cuenta, dentro de
# `train_epoch`. Al evaluar no se toca nada.


# %%
def maybe_flipped(img, coins):
    """One image and two coins -> the image, mirrored left-right and / or top-bottom."""
    img = torch.where(coins[0], img.flip(-1), img)
    return torch.where(coins[1], img.flip(-2), img)


def loss_of_one(scores, label):
    """-log softmax(scores)[label], stably"""
    top = scores.max()
    log_sum = top + torch.log(torch.exp(scores - top).sum())
    return log_sum - scores.gather(0, label.unsqueeze(0)).squeeze(0)


def home_of(model):
    for p in model.parameters():
        return p.device
    return torch.device("cpu")


def train_epoch(model, optimizer, data_loader, loss_history):
    home = home_of(model)
    model.train()
    seen = 0
    for number, (images, labels) in enumerate(data_loader):
        images, labels = images.to(home), labels.to(home)
        coins = torch.rand(len(images), 2, device=home) < 0.5
        images = vmap(maybe_flipped)(images, coins)

        optimizer.zero_grad()
        loss = vmap(loss_of_one)(model(images), labels).mean()
        loss.backward()
        optimizer.step()

        seen += len(labels)
        if number % 100 == 0:
            loss_history.append(loss.item())
            print(f"  {seen} images so far, loss of this batch {loss.item():.4f}")


@torch.no_grad()
def evaluate(model, data_loader, loss_history):
    home = home_of(model)
    model.eval()
    losses, hits = [], []
    for images, labels in data_loader:
        images, labels = images.to(home), labels.to(home)
        scores = model(images)
        losses += vmap(loss_of_one)(scores, labels).tolist()
        hits += (scores.argmax(dim=1) == labels).tolist()
    average = math.fsum(losses) / len(losses)
    loss_history.append(average)
    print(f"  average loss {average:.4f}, accuracy {sum(hits)}/{len(hits)} ({100 * sum(hits) / len(hits):.1f} %)")


# %%
model = ViT(
    image_size=28,
    patch_size=4,
    num_classes=6,
    channels=1,
    dim=64,
    depth=5,
    heads=4,
    mlp_dim=128,
    dim_head=32,
    dropout=0.05,
)
model.to(device)
print(f"The model has {sum(p.numel() for p in model.parameters() if p.requires_grad):,} parameters.")

optimizer = optim.AdamW(model.parameters(), lr=0.001, weight_decay=0.01)

N_EPOCHS = 40

# %%
train_loss_history, test_loss_history = [], []
start = time.time()
for epoch in range(1, N_EPOCHS + 1):
    print(f"Epoch {epoch}/{N_EPOCHS}")
    if epoch == 3 * N_EPOCHS // 4:  # el último cuarto, con pasos más cortos
        for group in optimizer.param_groups:
            group["lr"] *= 0.2
    train_epoch(model, optimizer, train_loader, train_loss_history)
    evaluate(model, test_loader, test_loss_history)
print(f"Training took {time.time() - start:.1f} s.")

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


# %%
@torch.no_grad()
def class_of_one(model, image):
    """One image -> the number of its class (a lot of one: the model wants a batch axis)."""
    return int(model(image.unsqueeze(0).to(home_of(model))).argmax())


def plot_confusion_matrix(model, data_loader, class_names):
    model.eval()
    true, predicted = [], []
    for images, labels in data_loader:
        for image, label in zip(images, labels):
            true.append(int(label))
            predicted.append(class_of_one(model, image))
    counts = confusion_matrix(true, predicted, labels=list(range(len(class_names))))

    fig, ax = plt.subplots(figsize=(8, 7))
    mesh = ax.pcolormesh(counts, cmap="YlOrRd", edgecolors="white", linewidth=1)
    ax.invert_yaxis()
    for (row, column), count in zip(((r, c) for r in range(len(counts)) for c in range(len(counts))), counts.flat):
        ax.text(
            column + 0.5,
            row + 0.5,
            str(count),
            ha="center",
            va="center",
            color="white" if count > 0.6 * counts.max() else "black",
        )
    middles = [i + 0.5 for i in range(len(class_names))]
    ax.set_xticks(middles, class_names, rotation=30, ha="right")
    ax.set_yticks(middles, class_names)
    ax.set_xlabel("predicted")
    ax.set_ylabel("true")
    ax.set_title("Confusion matrix")
    fig.colorbar(mesh)
    fig.tight_layout()
    plt.show()


def plot_classwise_predictions(model, data_loader, class_names, samples_per_class=4):
    model.eval()
    fig, axes = plt.subplots(
        len(class_names),
        samples_per_class,
        figsize=(2.2 * samples_per_class, 2.4 * len(class_names)),
        squeeze=False,
    )
    for ax in axes.flat:
        ax.axis("off")
    free = {label: list(row) for label, row in enumerate(axes)}  # ejes que todavía están vacíos
    for images, labels in data_loader:
        for image, label in zip(images, labels.tolist()):
            if not free[label]:
                continue
            ax = free[label].pop(0)
            answer = class_of_one(model, image)
            picture = (image.cpu() * 0.5 + 0.5).clamp(0, 1)
            if picture.shape[0] == 3:
                ax.imshow(picture.permute(1, 2, 0))
            else:
                ax.imshow(picture[0], cmap="gray", vmin=0, vmax=1)
            mark = "✓" if answer == label else "✗"
            ax.set_title(
                f"{mark} true {class_names[label]}\npredicted {class_names[answer]}",
                fontsize=8,
                color="green" if answer == label else "red",
            )
        if not any(free.values()):
            break
    fig.tight_layout()
    plt.show()


# %%
plot_confusion_matrix(model, test_loader, class_names)
plot_classwise_predictions(model, test_loader, class_names)
