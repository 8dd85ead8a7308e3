# %% [markdown]
# # ViT for steel defects, functionally
#
# Classes exist only because PyTorch wants its parameters registered. Everything that does something is a
# function, and functions are made by functions.
# (یادداشت برای خودم: هیچ تابعی نباید وزن‌ها را در خودش نگه دارد، وگرنه deepcopy مدل خراب می‌شود.)

# %%
import math
import random
import shutil
import time
import zipfile
from collections import defaultdict
from functools import partial, reduce
from itertools import chain, count, islice, product
from operator import add, itemgetter, methodcaller
from pathlib import Path

import matplotlib.pyplot as plt
import seaborn as sns
import torch
import torch.nn.functional as F
from einops import rearrange, reduce as pool_axes, repeat
from sklearn.metrics import confusion_matrix
from torch import nn, optim
from torch.utils.data import DataLoader
from torchvision import datasets, transforms

STUDENT_ID = "99109942"

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(42)


# %% small tools
def pipe(value, *functions):
    """pipe(x, f, g) is g(f(x))."""
    return reduce(lambda result, function: function(result), functions, value)


def consume(iterable):
    """Runs an iterator for its effects."""
    for _ in iterable:
        pass


# %% [markdown]
# ## 1. Data


# %%
def class_root(root):
    inside = [p for p in root.iterdir() if p.is_dir() and p.name != "__MACOSX"]
    return class_root(inside[0]) if len(inside) == 1 else root


def shuffled(names, seed):
    copied = list(names)
    random.Random(seed).shuffle(copied)
    return copied


is_image = lambda p: p.suffix.lower() in {".jpg", ".png", ".bmp"}


def copies(source, destination, train_share=0.7, seed=42):
    """Yields (from, to) for every image: 70 % of each class to train, the rest to test."""
    for folder in sorted(filter(Path.is_dir, source.iterdir())):
        names = shuffled(sorted(map(lambda p: p.name, filter(is_image, folder.iterdir()))), seed)
        cut = round(train_share * len(names))
        part_of = lambda i: "train" if i < cut else "test"
        yield from ((folder / n, destination / part_of(i) / folder.name / n) for i, n in enumerate(names))


def copy(pair):
    pair[1].parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(*pair)


with zipfile.ZipFile("dataset.zip") as archive:
    archive.extractall("dataset")
shutil.rmtree("data", ignore_errors=True)
consume(map(copy, copies(class_root(Path("dataset")), Path("data"))))

# %%
steps = (
    transforms.Resize((28, 28)),
    transforms.Grayscale(num_output_channels=1),
    transforms.ToTensor(),
    transforms.Normalize((0.5,), (0.5,)),
)
transform = transforms.Compose(list(steps))
augmented = transforms.Compose(
    [*steps[:2], transforms.RandomHorizontalFlip(), transforms.RandomVerticalFlip(), *steps[2:]]
)

BATCH_SIZE = 64
folder_of = lambda part, how: datasets.ImageFolder(f"data/{part}", transform=how)
train_set, test_set = folder_of("train", augmented), folder_of("test", transform)
loader_of = partial(DataLoader, batch_size=BATCH_SIZE)
train_loader, test_loader = loader_of(train_set, shuffle=True), loader_of(test_set, shuffle=False)
class_names = train_set.classes
print(f"{len(train_set)} training images, {len(test_set)} test images, classes: {class_names}")


# %%
def show_samples(dataset, title, per_class=6):
    fig, axes = plt.subplots(len(dataset.classes), per_class, figsize=(1.5 * per_class, 9), squeeze=False)
    consume(map(methodcaller("axis", "off"), axes.flat))
    of_class = lambda label: (i for i, t in enumerate(dataset.targets) if t == label)
    for label, row in enumerate(axes):
        row[0].set_title(dataset.classes[label], fontsize=9, loc="left")
        for ax, index in zip(row, of_class(label)):
            ax.imshow(dataset[index][0][0], cmap="gray", vmin=-1, vmax=1)
    fig.suptitle(title)
    plt.show()


consume(map(show_samples, (train_set, test_set), ("Training images", "Test images")))

# %% [markdown]
# ## 3. The model
# Pure functions first, then the thin shells that own the numbers.


# %%
def attend(q, k, v):
    """softmax(q k^T / sqrt(d)) v over the last two axes."""
    return pipe(q @ k.mT / math.sqrt(q.shape[-1]), partial(torch.softmax, dim=-1)) @ v


def split_heads(heads):
    return partial(rearrange, pattern="b n (which h d) -> which b h n d", which=3, h=heads)


join_heads = partial(rearrange, pattern="b h n d -> b n (h d)")


def cut_into_patches(size):
    return partial(rearrange, pattern="b c (y p) (x q) -> b (y x) (p q c)", p=size, q=size)


POOLS = {
    "cls": itemgetter((slice(None), 0)),
    "mean": partial(pool_axes, pattern="b n d -> b d", reduction="mean"),
}


# %%
class PreNorm(nn.Module):
    """Layer normalization, then `fn`."""

    def __init__(self, dim, fn):
        super().__init__()
        self.norm, self.fn = nn.LayerNorm(dim), fn

    def forward(self, x, **kwargs):
        return pipe(x, self.norm, partial(self.fn, **kwargs))


class FeedForward(nn.Sequential):
    """Linear, GELU, dropout, linear, dropout: it *is* the sequence."""

    def __init__(self, dim, hidden_dim, dropout=0.0):
        super().__init__(
            nn.Linear(dim, hidden_dim), nn.GELU(), nn.Dropout(dropout), nn.Linear(hidden_dim, dim), nn.Dropout(dropout)
        )

    def forward(self, x):
        return super().forward(x)


class Attention(nn.Module):
    """Multi-head self-attention."""

    def __init__(self, dim, heads=4, dim_head=64, dropout=0.0):
        super().__init__()
        self.qkv = nn.Linear(dim, 3 * heads * dim_head, bias=False)
        self.out = nn.Sequential(nn.Linear(heads * dim_head, dim), nn.Dropout(dropout))
        self.split = split_heads(heads)  # a partial of a pure function: nothing to train, nothing to save

    def forward(self, x):
        return pipe(x, self.qkv, self.split, lambda qkv: attend(*qkv), join_heads, self.out)


class Transformer(nn.Module):
    """`depth` blocks; each part is added to what went into it."""

    def __init__(self, dim, depth, heads, dim_head, mlp_dim, dropout=0.0):
        super().__init__()
        # factories and not modules, so that every block gets weights of its own
        parts = (lambda: Attention(dim, heads, dim_head, dropout), lambda: FeedForward(dim, mlp_dim, dropout))
        block = lambda _: nn.ModuleList(PreNorm(dim, make()) for make in parts)
        self.blocks = nn.ModuleList(map(block, range(depth)))

    def forward(self, x):
        return reduce(lambda tokens, part: add(tokens, part(tokens)), chain.from_iterable(self.blocks), x)


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
        self.cut = cut_into_patches(patch_size)
        self.embed = nn.Linear(channels * patch_size**2, dim)
        self.cls = nn.Parameter(torch.randn(dim))
        self.positions = nn.Parameter(0.1 * torch.randn((image_size // patch_size) ** 2 + 1, dim))
        self.dropout = nn.Dropout(emb_dropout)
        self.transformer = Transformer(dim, depth, heads, dim_head, mlp_dim, dropout)
        self.pool = POOLS[pool]
        self.head = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, num_classes))

    def forward(self, img):
        with_cls = lambda tokens: torch.cat([repeat(self.cls, "d -> b 1 d", b=len(tokens)), tokens], dim=1)
        return pipe(
            img,
            self.cut,
            self.embed,
            with_cls,
            partial(add, self.positions),
            self.dropout,
            self.transformer,
            self.pool,
            self.head,
        )


# %% [markdown]
# ## 4. Training and evaluation
# Both are made from a loss function. Training uses label smoothing, measuring does not.


# %%
def onto(place):
    """A function that moves a batch."""
    return lambda batch: tuple(map(methodcaller("to", place), batch))


def place_of(model):
    return next(map(lambda p: p.device, model.parameters()), torch.device("cpu"))


def make_train_epoch(loss_of, every=100):
    def train_epoch(model, optimizer, data_loader, loss_history):
        """Trains the model for one pass over the data; logs every 100th batch, from the first on."""
        model.train()

        def one_step(images, labels):
            optimizer.zero_grad()
            loss = loss_of(model(images), labels)
            loss.backward()
            optimizer.step()
            return loss.item()

        def log(number, loss):
            loss_history.append(loss)
            print(f"  batch {number + 1}: loss {loss:.4f}")

        for number, (images, labels) in zip(count(), map(onto(place_of(model)), data_loader)):
            loss = one_step(images, labels)
            number % every or log(number, loss)

    return train_epoch


def make_evaluate(summed_loss_of):
    def evaluate(model, data_loader, loss_history):
        """Appends the average loss per image, prints it with the accuracy, and returns (loss, accuracy)."""
        model.eval()

        def measure(batch):
            images, labels = batch
            scores = model(images)
            hits = scores.argmax(dim=-1).eq(labels).sum().item()
            return summed_loss_of(scores, labels).item(), hits, len(labels)

        with torch.no_grad():
            measured = map(measure, map(onto(place_of(model)), data_loader))
            loss, hits, n = reduce(lambda a, b: tuple(map(add, a, b)), measured, (0.0, 0, 0))
        loss_history.append(loss / n)
        print(f"  average loss {loss / n:.4f}, accuracy {hits}/{n} = {hits / n:.2%}")
        return loss / n, hits / n

    return evaluate


train_epoch = make_train_epoch(partial(F.cross_entropy, label_smoothing=0.1))
evaluate = make_evaluate(partial(F.cross_entropy, reduction="sum"))

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
    heads=4,
    mlp_dim=128,
    pool="mean",
    dropout=0.1,
    emb_dropout=0.1,
)
model.to(device)
print(f"The model has {sum(p.numel() for p in model.parameters() if p.requires_grad):,} parameters.")

N_EPOCHS = 40


def warmup_then_cosine(warmup, total):
    rising = lambda epoch: (epoch + 1) / warmup
    falling = lambda epoch: 0.5 * (1 + math.cos(math.pi * (epoch - warmup) / max(1, total - warmup)))
    return lambda epoch: rising(epoch) if epoch < warmup else max(0.01, falling(epoch))


optimizer = optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.05)
scheduler = optim.lr_scheduler.LambdaLR(optimizer, warmup_then_cosine(2, N_EPOCHS))

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
consume(map(partial(torch.save, model.state_dict()), (f"{STUDENT_ID}.pth", f"{STUDENT_ID}_Lab8_Homework.pth")))
model.load_state_dict(torch.load(f"{STUDENT_ID}.pth", map_location=device, weights_only=True))
evaluate(model, test_loader, [])

# %%
curves = {"training loss (every 100 batches)": train_loss_history, "test loss (every epoch)": test_loss_history}
plt.figure(figsize=(7, 4))
consume(plt.plot(values, marker=".", label=label) for label, values in curves.items())
plt.xlabel("entry")
plt.ylabel("cross-entropy")
plt.legend()
plt.show()

# %% [markdown]
# ## 6. What has it learned?


# %%
def predictions(model, data_loader):
    """Yields (image, true label, predicted label), one image at a time."""
    model.eval()
    for images, labels in data_loader:
        with torch.no_grad():
            answers = model(images.to(place_of(model))).argmax(dim=-1)
        yield from zip(images.cpu(), labels.tolist(), answers.tolist())


def plot_confusion_matrix(model, data_loader, class_names):
    """Rows: true classes; columns: predicted classes."""
    true, predicted = zip(*map(itemgetter(1, 2), predictions(model, data_loader)))
    counts = confusion_matrix(true, predicted, labels=range(len(class_names)))
    plt.figure(figsize=(7, 6))
    ax = sns.heatmap(counts, annot=True, fmt="d", cmap="mako", xticklabels=class_names, yticklabels=class_names)
    ax.set(xlabel="predicted", ylabel="true", title="Confusion matrix")
    plt.tight_layout()
    plt.show()
    return counts


def plot_classwise_predictions(model, data_loader, class_names, samples_per_class=4):
    """One row per true class."""
    by_class = defaultdict(list)
    consume(by_class[found[1]].append(found) for found in predictions(model, data_loader))
    chosen = [list(islice(by_class[label], samples_per_class)) for label in range(len(class_names))]
    fig, axes = plt.subplots(
        len(class_names), samples_per_class, squeeze=False, figsize=(2.2 * samples_per_class, 2.4 * len(class_names))
    )
    consume(map(methodcaller("axis", "off"), axes.flat))

    def draw(ax, image, true, predicted):
        visible = image.mul(0.5).add(0.5).clamp(0, 1)
        ax.imshow(rearrange(visible, "c h w -> h w c") if len(visible) == 3 else visible[0], cmap="gray", vmin=0, vmax=1)
        ax.set_title(
            f"True: {class_names[true]}\nPredicted: {class_names[predicted]}",
            fontsize=8,
            color="seagreen" if true == predicted else "crimson",
        )

    slots = product(range(len(class_names)), range(samples_per_class))
    consume(draw(axes[r, c], *chosen[r][c]) for r, c in slots if c < len(chosen[r]))
    fig.tight_layout()
    plt.show()
    return fig


# %%
plot_confusion_matrix(model, test_loader, class_names)
plot_classwise_predictions(model, test_loader, class_names)
