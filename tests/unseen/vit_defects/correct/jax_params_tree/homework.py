# %% [markdown]
# # ViT for steel surface defects, functional
#
# All mathematics is in pure functions `init_*` (key -> params) and `apply_*` (params, inputs -> outputs) on trees
# of tensors, the way I write JAX. The `nn.Module`s of the assignment only hold their tree (so that optimizers
# and `state_dict` find the leaves) and call the pure functions.

# %%
import math
import random
import shutil
import time
import zipfile
from functools import partial
from pathlib import Path
from typing import NamedTuple

import matplotlib.pyplot as plt
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn, optim
from torch.utils.data import DataLoader
from torchvision import datasets, transforms

STUDENT_ID = "400102477"

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(42)

# %% [markdown]
# ## 1. The data


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
# the defects have no preferred side, so mirroring is free data
train_transform = transforms.Compose(
    [transforms.RandomHorizontalFlip(), transforms.RandomVerticalFlip(), *transform.transforms]
)
BATCH_SIZE = 64

train_set = datasets.ImageFolder("data/train", transform=train_transform)
test_set = datasets.ImageFolder("data/test", transform=transform)
train_loader = DataLoader(train_set, batch_size=BATCH_SIZE, shuffle=True)
test_loader = DataLoader(test_set, batch_size=BATCH_SIZE, shuffle=False)
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
# ### Trees and keys


# %%
def tree_map(f, *trees):
    """jax.tree_util.tree_map for dicts, leaves are tensors."""
    if isinstance(trees[0], dict):
        return {name: tree_map(f, *(tree[name] for tree in trees)) for name in trees[0]}
    return f(*trees)


def tree_leaves(tree):
    if isinstance(tree, dict):
        return [leaf for name in tree for leaf in tree_leaves(tree[name])]
    return [tree]


def PRNGKey(seed=None):
    """A source of random numbers that is handed around explicitly; without a seed, from torch's global one."""
    seed = int(torch.randint(2**31 - 1, ())) if seed is None else seed
    return torch.Generator().manual_seed(seed)


def split(key, num=2):
    seeds = torch.randint(2**31 - 1, (num,), generator=key).tolist()
    return [PRNGKey(seed) for seed in seeds]


class ParamTree(nn.ParameterDict):
    """A tree of dicts of tensors, held as nested nn.ParameterDicts. `.tree()` gives the plain dicts back."""

    def __init__(self, tree):
        super().__init__({k: ParamTree(v) if isinstance(v, dict) else nn.Parameter(v) for k, v in tree.items()})

    def tree(self):
        return {k: v.tree() if isinstance(v, ParamTree) else v for k, v in self.items()}


# %% [markdown]
# ### Pure functions


# %%
def normal(key, shape, stddev):
    return torch.randn(shape, generator=key) * stddev


def lecun_normal(key, shape, fan_in):
    return normal(key, shape, 1.0 / math.sqrt(fan_in))


def dropout(x, rate, is_training):
    return F.dropout(x, p=rate, training=is_training)


# -- linear: w is (in, out)
def init_linear(key, d_in, d_out, w_std=None):
    w = lecun_normal(key, (d_in, d_out), d_in) if w_std is None else normal(key, (d_in, d_out), w_std)
    return {"w": w, "b": torch.zeros(d_out)}


def apply_linear(params, x):
    return x @ params["w"] + params["b"]


# -- layer norm
def init_layer_norm(dim):
    return {"scale": torch.ones(dim), "offset": torch.zeros(dim)}


def apply_layer_norm(params, x, eps=1e-5):
    centered = x - x.mean(-1, keepdim=True)
    variance = centered.square().mean(-1, keepdim=True)
    return params["scale"] * centered * torch.rsqrt(variance + eps) + params["offset"]


# -- layer norm, then any function of the tokens
def init_prenorm(dim):
    return {"layer_norm": init_layer_norm(dim)}


def apply_prenorm(params, fn, x):
    return fn(apply_layer_norm(params["layer_norm"], x))


# -- feed-forward
def init_feed_forward(key, dim, hidden_dim):
    k1, k2 = split(key)
    return {"linear_1": init_linear(k1, dim, hidden_dim), "linear_2": init_linear(k2, hidden_dim, dim)}


def apply_feed_forward(params, x, rate=0.0, is_training=False):
    h = F.gelu(apply_linear(params["linear_1"], x), approximate="tanh")  # jax.nn.gelu's default
    h = dropout(h, rate, is_training)
    return dropout(apply_linear(params["linear_2"], h), rate, is_training)


# -- attention: one leaf for q, k and v, (3, heads, dim, dim_head)
def init_attention(key, dim, heads, dim_head):
    k1, k2 = split(key)
    return {
        "w_qkv": lecun_normal(k1, (3, heads, dim, dim_head), dim),
        "w_out": lecun_normal(k2, (heads, dim_head, dim), heads * dim_head),
        "b_out": torch.zeros(dim),
    }


def single_head(w_qkv, w_out, x):
    """One head on a batch: w_qkv (3, dim, dim_head), w_out (dim_head, dim), x (batch, tokens, dim)."""
    q, k, v = torch.einsum("bnd,sdk->sbnk", x, w_qkv)
    logits = torch.einsum("bik,bjk->bij", q, k) / math.sqrt(q.shape[-1])
    return torch.softmax(logits, dim=-1) @ v @ w_out


def apply_attention(params, x, rate=0.0, is_training=False):
    # The concatenation of all heads times the output matrix is the sum of every head times its own rows of that
    # matrix. So a head is written once and mapped over the axis of the heads.
    heads = torch.vmap(single_head, in_dims=(1, 0, None))(params["w_qkv"], params["w_out"], x)
    return dropout(heads.sum(0) + params["b_out"], rate, is_training)


# -- encoder: every leaf has a leading axis of length depth, as for jax.lax.scan
def init_block(key, dim, heads, dim_head, mlp_dim):
    k1, k2 = split(key)
    return {
        "attention_prenorm": init_prenorm(dim),
        "attention": init_attention(k1, dim, heads, dim_head),
        "feed_forward_prenorm": init_prenorm(dim),
        "feed_forward": init_feed_forward(k2, dim, mlp_dim),
    }


def apply_block(params, x, rate=0.0, is_training=False):
    attention = partial(apply_attention, params["attention"], rate=rate, is_training=is_training)
    feed_forward = partial(apply_feed_forward, params["feed_forward"], rate=rate, is_training=is_training)
    x = x + apply_prenorm(params["attention_prenorm"], attention, x)
    x = x + apply_prenorm(params["feed_forward_prenorm"], feed_forward, x)
    return x


def init_transformer(key, dim, depth, heads, dim_head, mlp_dim):
    blocks = [init_block(k, dim, heads, dim_head, mlp_dim) for k in split(key, depth)]
    return tree_map(lambda *leaves: torch.stack(leaves), *blocks) if blocks else {}


def scan(f, x, stacked):
    """x <- f(stacked[i], x) for every i."""
    leaves = tree_leaves(stacked)
    for i in range(len(leaves[0]) if leaves else 0):
        x = f(tree_map(lambda leaf: leaf[i], stacked), x)  # noqa: B023
    return x


def apply_transformer(params, x, rate=0.0, is_training=False):
    return scan(partial(apply_block, rate=rate, is_training=is_training), x, params)


# -- the whole model
class Hyper(NamedTuple):
    """The static part of the ViT: hashable, not trained."""

    image_size: int
    patch_size: int
    num_classes: int
    dim: int
    depth: int
    heads: int
    mlp_dim: int
    pool: str
    channels: int
    dim_head: int
    dropout: float
    emb_dropout: float


HEAD_INIT_STD = 0.0  # the ViT of google-research starts with a head of zeros: all classes equally likely


def patchify(img, p):
    """(batch, channels, height, width) -> (batch, patches, p * p * channels)"""
    b, c, height, width = img.shape
    img = img.reshape(b, c, height // p, p, width // p, p)
    return img.permute(0, 2, 4, 3, 5, 1).reshape(b, (height // p) * (width // p), p * p * c)


def init_vit(key, hp):
    k_patch, k_cls, k_pos, k_enc, k_head = split(key, 5)
    n_patches = (hp.image_size // hp.patch_size) ** 2
    return {
        "embedding": init_linear(k_patch, hp.channels * hp.patch_size**2, hp.dim),
        "cls": normal(k_cls, (hp.dim,), 0.02),
        "posembed": normal(k_pos, (n_patches + 1, hp.dim), 0.02),
        "encoder": init_transformer(k_enc, hp.dim, hp.depth, hp.heads, hp.dim_head, hp.mlp_dim),
        "head_norm": init_layer_norm(hp.dim),
        "head": init_linear(k_head, hp.dim, hp.num_classes, w_std=HEAD_INIT_STD),
    }


def apply_vit(params, hp, img, is_training=False):
    tokens = apply_linear(params["embedding"], patchify(img, hp.patch_size))
    cls = params["cls"].broadcast_to(tokens.shape[0], 1, hp.dim)
    x = torch.cat([cls, tokens], dim=1) + params["posembed"]
    x = dropout(x, hp.emb_dropout, is_training)
    x = apply_transformer(params["encoder"], x, hp.dropout, is_training)
    pooled = {"cls": lambda: x[:, 0], "mean": lambda: x.mean(1)}[hp.pool]()
    return apply_linear(params["head"], apply_layer_norm(params["head_norm"], pooled))


# %% [markdown]
# ### The modules of the assignment: shells around the functions


# %%
class PreNorm(nn.Module):
    def __init__(self, dim, fn):
        super().__init__()
        self.params = ParamTree(init_prenorm(dim))
        self.fn = fn

    def forward(self, x, **kwargs):
        return apply_prenorm(self.params.tree(), partial(self.fn, **kwargs), x)


class FeedForward(nn.Module):
    def __init__(self, dim, hidden_dim, dropout=0.0):
        super().__init__()
        self.rate = dropout
        self.params = ParamTree(init_feed_forward(PRNGKey(), dim, hidden_dim))

    def forward(self, x):
        return apply_feed_forward(self.params.tree(), x, self.rate, self.training)


class Attention(nn.Module):
    def __init__(self, dim, heads=4, dim_head=64, dropout=0.0):
        super().__init__()
        self.rate = dropout
        self.params = ParamTree(init_attention(PRNGKey(), dim, heads, dim_head))

    def forward(self, x):
        return apply_attention(self.params.tree(), x, self.rate, self.training)


class Transformer(nn.Module):
    def __init__(self, dim, depth, heads, dim_head, mlp_dim, dropout=0.0):
        super().__init__()
        self.rate = dropout
        self.params = ParamTree(init_transformer(PRNGKey(), dim, depth, heads, dim_head, mlp_dim))

    def forward(self, x):
        return apply_transformer(self.params.tree(), x, self.rate, self.training)


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
        assert image_size % patch_size == 0, "the patch must divide the image"
        assert pool in ("cls", "mean")
        self.hp = Hyper(
            image_size, patch_size, num_classes, dim, depth, heads, mlp_dim, pool, channels, dim_head, dropout, emb_dropout
        )
        self.params = ParamTree(init_vit(PRNGKey(), self.hp))

    def forward(self, img):
        return apply_vit(self.params.tree(), self.hp, img, self.training)


# %% [markdown]
# ## 4. Training and evaluation


# %%
def cross_entropy(logits, labels):
    """Per image: (batch, classes), (batch,) -> (batch,)"""
    log_p = torch.log_softmax(logits, dim=-1)
    return -log_p.gather(-1, labels[:, None])[:, 0]


def value_and_grad(loss_fn, leaves):
    """jax.value_and_grad with respect to the given leaves; a leaf without influence has the gradient None."""
    loss = loss_fn()
    return loss.detach(), torch.autograd.grad(loss, leaves, allow_unused=True)


def on_device_of(model, *tensors):
    where = next((leaf.device for leaf in model.parameters()), device)
    return [t.to(where) for t in tensors]


def train_epoch(model, optimizer, data_loader, loss_history):
    """One pass over the data, a step per batch; the loss of the batches 1, 101, 201, ... goes to the history."""
    model.train()
    leaves = [leaf for leaf in model.parameters() if leaf.requires_grad]
    for i, batch in enumerate(data_loader):
        images, labels = on_device_of(model, *batch)
        optimizer.zero_grad()
        loss, grads = value_and_grad(lambda: cross_entropy(model(images), labels).mean(), leaves)  # noqa: B023
        for leaf, grad in zip(leaves, grads, strict=True):
            leaf.grad = grad
        optimizer.step()
        if i % 100 == 0:
            loss_history.append(float(loss))
            print(f"step {i:5d} | train loss {float(loss):.4f}")


@torch.inference_mode()
def predict(model, data_loader):
    """Everything about every image of one pass, as a dict of arrays on the cpu."""
    model.eval()
    rows = []
    for batch in data_loader:
        images, labels = on_device_of(model, *batch)
        logits = model(images)
        rows.append(
            {"image": images, "label": labels, "guess": logits.argmax(-1), "loss": cross_entropy(logits, labels)}
        )
    return tree_map(lambda *leaves: torch.cat(leaves).cpu(), *rows)


def evaluate(model, data_loader, loss_history):
    """Average loss per image (appended) and accuracy, both printed and returned."""
    seen = predict(model, data_loader)
    loss = seen["loss"].double().mean().item()
    hits = seen["guess"] == seen["label"]
    accuracy = hits.double().mean().item()
    loss_history.append(loss)
    print(f"eval loss {loss:.4f} | accuracy {accuracy:.2%} ({int(hits.sum())} of {len(hits)})")
    return loss, accuracy


# %% [markdown]
# ## 5. Train, save, reload

# %%
N_EPOCHS = 50
PEAK_LR = 1e-3

model = ViT(image_size=28, patch_size=4, num_classes=6, channels=1, dim=64, depth=6, heads=4, mlp_dim=128, dropout=0.1)
model.to(device)
for name, leaf in model.params.items():
    count = sum(x.numel() for x in tree_leaves(leaf.tree() if isinstance(leaf, ParamTree) else leaf))
    print(f"{name:>10}: {count:,}")
print(f"     total: {sum(p.numel() for p in model.parameters()):,}")

optimizer = optim.Adam(model.parameters(), lr=PEAK_LR, betas=(0.9, 0.98))


# %%
def cosine_decay(epoch, peak=PEAK_LR, total=N_EPOCHS, alpha=0.05):
    """optax.cosine_decay_schedule"""
    return peak * (alpha + (1 - alpha) * 0.5 * (1 + math.cos(math.pi * epoch / total)))


train_loss_history, test_loss_history = [], []
start = time.time()
for epoch in range(N_EPOCHS):
    for group in optimizer.param_groups:
        group["lr"] = cosine_decay(epoch)
    print(f"epoch {epoch + 1}/{N_EPOCHS}, learning rate {cosine_decay(epoch):.2e}")
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
plt.plot(np.arange(len(train_loss_history)), train_loss_history, label="training")
plt.plot(np.arange(len(test_loss_history)), test_loss_history, label="test")
plt.xlabel("entry")
plt.ylabel("cross-entropy")
plt.legend()
plt.show()

# %% [markdown]
# ## 6. What has it learned?


# %%
def plot_confusion_matrix(model, data_loader, class_names):
    """counts = one_hot(label)^T one_hot(guess), so rows are the true classes"""
    seen = predict(model, data_loader)
    n = len(class_names)
    counts = F.one_hot(seen["label"], n).T @ F.one_hot(seen["guess"], n)
    counts = counts.numpy()
    fig, ax = plt.subplots(figsize=(7, 6), layout="constrained")
    mesh = ax.matshow(counts, cmap="viridis")
    for (i, j), count in np.ndenumerate(counts):
        ax.text(j, i, str(count), ha="center", va="center", color="white" if count < counts.max() / 2 else "black")
    ax.set_xticks(range(n), class_names, rotation=45, ha="left")
    ax.set_yticks(range(n), class_names)
    ax.set_xlabel("predicted class")
    ax.set_ylabel("true class")
    fig.colorbar(mesh, ax=ax, shrink=0.8)
    plt.show()


def plot_classwise_predictions(model, data_loader, class_names, samples_per_class=4):
    """A column per class, `samples_per_class` images below each other."""
    seen = predict(model, data_loader)
    n = len(class_names)
    fig, axes = plt.subplots(
        samples_per_class, n, figsize=(2.2 * n, 2.5 * samples_per_class), squeeze=False, layout="constrained"
    )
    for ax in axes.flat:
        ax.set_axis_off()
    for label in range(n):
        for row, i in enumerate(torch.nonzero(seen["label"] == label)[:samples_per_class, 0].tolist()):
            guess = int(seen["guess"][i])
            picture = seen["image"][i].mul(0.5).add(0.5).clamp(0, 1)
            axes[row, label].imshow(np.moveaxis(picture.numpy(), 0, -1).squeeze(), cmap="gray", vmin=0, vmax=1)
            axes[row, label].set_title(
                f"true {class_names[label]}\npred {class_names[guess]}",
                fontsize=8,
                color="tab:green" if guess == label else "tab:red",
            )
    plt.show()


# %%
plot_confusion_matrix(model, test_loader, class_names)
plot_classwise_predictions(model, test_loader, class_names)
