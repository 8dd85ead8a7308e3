# %% [markdown]
# # ViT and ResNet on CIFAR-10
#
# Written the way one writes JAX: functions are written for ONE image, one head, one class, and vmap adds the
# axis; state is a tree of tensors, and training is a fold over (state, batch).

# %%
import csv
import math
import time
import zipfile
from functools import partial

import matplotlib.pyplot as plt
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn, optim, vmap
from torch.utils.data import DataLoader, Subset
from torchvision import datasets, transforms

STUDENT_ID = "400102001"

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
key = torch.Generator().manual_seed(0)
torch.manual_seed(42)

# %%
MEAN, STD = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)
BATCH_SIZE = 100

with zipfile.ZipFile("dataset.zip") as archive:
    archive.extractall("data")

to_normal = transforms.Compose([transforms.ToTensor(), transforms.Normalize(MEAN, STD)])
to_augmented = transforms.Compose(
    [transforms.RandomHorizontalFlip(), transforms.RandomCrop(32, padding=4, padding_mode="reflect"), to_normal]
)
train_images = partial(datasets.ImageFolder, "data/train")
test_images = datasets.ImageFolder("data/test", transform=to_normal)
class_names = test_images.classes

permuted = torch.randperm(len(train_images()), generator=key)
held_out, used = permuted.tensor_split([len(permuted) // 10])
loaders = {
    "train": DataLoader(
        Subset(train_images(transform=to_augmented), used.tolist()), batch_size=BATCH_SIZE, shuffle=True
    ),
    "validation": DataLoader(Subset(train_images(transform=to_normal), held_out.tolist()), batch_size=500),
}
test_loader = DataLoader(test_images, batch_size=500)


# %% [markdown]
# ## Trees


# %%
def tree_map(f, tree, *rest):
    """Applies f to the leaves of trees of dicts and tuples that have one form."""
    if isinstance(tree, dict):
        return {name: tree_map(f, tree[name], *(other[name] for other in rest)) for name in tree}
    if isinstance(tree, tuple):
        return tuple(tree_map(f, *parts) for parts in zip(tree, *rest))
    return f(tree, *rest)


def tree_stack(trees, stack):
    """A list of trees becomes a tree of stacked leaves."""
    return tree_map(lambda *leaves: stack(leaves), *trees)


def scan(f, carry, xs):
    """lax.scan, with a list of what f gives beside the carry."""
    ys = []
    for x in xs:
        carry, y = f(carry, x)
        ys.append(y)
    return carry, ys


def value_and_grad(f, parameters):
    """The value of f (and what it tells besides), and the gradient for each parameter."""
    value, aux = f()
    return (value, aux), torch.autograd.grad(value, parameters, allow_unused=True)


# random numbers differ between the examples of a batch
batched = partial(vmap, randomness="different")


# %% [markdown]
# ## The Vision Transformer, for one image


# %%
def patches_of(size, image):
    """(C, H, W) -> (N, C * size * size)."""
    channels, height, width = image.shape
    cut = image.reshape(channels, height // size, size, width // size, size)
    return torch.movedim(cut, (1, 3), (0, 1)).reshape(-1, channels * size * size)


class PatchEmbedding(nn.Module):
    def __init__(self, image_size, patch_size, in_channels, dim):
        super().__init__()
        self.patch_size = patch_size
        self.dense = nn.Linear(in_channels * patch_size**2, dim)

    def forward(self, images):
        def embed(image):
            return self.dense(patches_of(self.patch_size, image))

        return batched(embed)(images)


# %%
def position_code(dim, position):
    """The code of one position, (dim,): (sin, cos), (sin, cos), ..."""
    exponents = torch.arange(0, dim, 2, dtype=torch.float64) / dim
    angles = position / 10000.0**exponents
    return torch.stack((angles.sin(), angles.cos()), dim=1).flatten()


def sinusoidal_positions(tokens, dim):
    return vmap(partial(position_code, dim))(torch.arange(tokens, dtype=torch.float64)).float()


# %%
def head_weights(q, k):
    """One head of one image: (N, d), (N, d) -> (N, N)."""
    return F.softmax(torch.matmul(q, k.mT) * q.shape[-1] ** -0.5, dim=-1)


class MultiHeadSelfAttention(nn.Module):
    def __init__(self, dim, heads, dropout=0.0):
        super().__init__()
        self.heads = heads
        self.qkv = nn.ParameterList([nn.Parameter(torch.empty(dim, dim)) for _ in range(3)])
        self.out = nn.Linear(dim, dim)
        self.rate = dropout
        for matrix in self.qkv:
            nn.init.orthogonal_(matrix)

    def single(self, x):
        """(N, dim) -> (N, dim), (heads, N, N)."""
        split = lambda y: y.unflatten(-1, (self.heads, -1)).transpose(0, 1)  # (heads, N, d)
        q, k, v = (split(x @ matrix) for matrix in self.qkv)

        def head(q, k, v):
            weights = head_weights(q, k)
            return F.dropout(weights, self.rate, self.training) @ v, weights

        mixed, weights = batched(head)(q, k, v)
        return self.out(mixed.transpose(0, 1).flatten(1)), weights

    def forward(self, x, return_weights=False):
        y, weights = batched(self.single)(x)
        return (y, weights) if return_weights else y


# %%
class EncoderBlock(nn.Module):
    def __init__(self, dim, heads, mlp_ratio=4.0, dropout=0.0):
        super().__init__()
        hidden = round(dim * mlp_ratio)
        self.norms = nn.ModuleList([nn.LayerNorm(dim), nn.LayerNorm(dim)])
        self.mixer = MultiHeadSelfAttention(dim, heads, dropout)
        self.up, self.down = nn.Linear(dim, hidden), nn.Linear(hidden, dim)

    def mlp(self, token):
        return self.down(F.gelu(self.up(token)))

    def forward(self, x):
        first, second = self.norms
        x = x + self.mixer(first(x))
        return x + self.mlp(second(x))


# %%
class VisionTransformer(nn.Module):
    def __init__(
        self,
        image_size=32,
        patch_size=4,
        in_channels=3,
        num_classes=10,
        dim=192,
        depth=9,
        heads=8,
        mlp_ratio=4.0,
        dropout=0.1,
        positions="learned",
        pool="cls",
    ):
        super().__init__()
        assert positions in ("learned", "sinusoidal") and pool in ("cls", "mean")
        extra = {"cls": 1, "mean": 0}[pool]
        tokens = (image_size // patch_size) ** 2 + extra
        self.embed = PatchEmbedding(image_size, patch_size, in_channels, dim)
        # no row of its own where there is no class token: (0, dim) would be an empty parameter
        self.first = nn.Parameter(torch.randn(extra, dim) * 0.02) if extra else None
        table = torch.randn(tokens, dim) * 0.02 if positions == "learned" else sinusoidal_positions(tokens, dim)
        self.table = nn.Parameter(table, requires_grad=positions == "learned")
        self.blocks = nn.ModuleList(EncoderBlock(dim, heads, mlp_ratio, dropout) for _ in range(depth))
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, num_classes)

    def tokens(self, images):
        def stand(patches):
            return (patches if self.first is None else torch.cat([self.first, patches])) + self.table

        return batched(stand)(self.embed(images))

    def readout(self, tokens):
        """One image's tokens, (N, dim), become one vector of scores."""
        summary = tokens.mean(dim=0) if self.first is None else tokens[0]
        return self.head(self.norm(summary))

    def forward(self, images):
        x, _ = scan(lambda x, block: (block(x), None), self.tokens(images), self.blocks)
        return batched(self.readout)(x)

    def attention(self, images):
        *before, last = self.blocks
        x, _ = scan(lambda x, block: (block(x), None), self.tokens(images), before)
        return last.mixer(last.norms[0](x), return_weights=True)[1]


# %%
def attention_map(model, image):
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    with torch.no_grad():
        device = next(iter(model.parameters())).device
        weights = model.attention(image.unsqueeze(0).to(device)).squeeze(0).cpu()
    for module, mode in modes:
        module.training = mode

    average = weights.mean(0)
    side = int(len(average) ** 0.5 + 1e-6)
    row = average.mean(0) if side**2 == len(average) else average[0][1:]
    relative = (row / torch.clamp(row.max(), min=torch.finfo(row.dtype).tiny)).reshape(side, side)
    y = torch.arange(image.shape[1]) * side // image.shape[1]
    x = torch.arange(image.shape[2]) * side // image.shape[2]
    return relative[y][:, x]


# %% [markdown]
# ## The ResNet


# %%
conv3x3 = partial(nn.Conv2d, kernel_size=3, padding=1, bias=False)


class BasicBlock(nn.Module):
    def __init__(self, in_channels, channels, stride=1):
        super().__init__()
        self.a = nn.Sequential(conv3x3(in_channels, channels, stride=stride), nn.BatchNorm2d(channels))
        self.b = nn.Sequential(conv3x3(channels, channels), nn.BatchNorm2d(channels))
        same = (in_channels, stride) == (channels, 1)
        self.skip = (
            None
            if same
            else nn.Sequential(
                nn.Conv2d(in_channels, channels, kernel_size=1, stride=stride, bias=False),
                nn.BatchNorm2d(channels),
            )
        )

    def forward(self, x):
        residual = self.b(F.relu(self.a(x)))
        return F.relu(residual + (x if self.skip is None else self.skip(x)))


class ResNet18(nn.Module):
    def __init__(self, num_classes=10, width=64):
        super().__init__()
        self.stem = nn.Sequential(conv3x3(3, width), nn.BatchNorm2d(width))
        shapes = [(width, width, 1), (width, width, 1)]
        for wide in (2 * width, 4 * width, 8 * width):
            shapes += [(wide // 2, wide, 2), (wide, wide, 1)]
        self.blocks = nn.ModuleList(BasicBlock(*shape) for shape in shapes)
        self.head = nn.Linear(8 * width, num_classes)

    def forward(self, images):
        x, _ = scan(lambda x, block: (block(x), None), F.relu(self.stem(images)), self.blocks)
        return self.head(x.mean(dim=(-2, -1)))


# %%
def parameter_table(model):
    leaves = dict(model.named_parameters())
    parts = {name.rpartition(".")[0] or name: 0 for name in leaves}
    for name, leaf in leaves.items():
        parts[name.rpartition(".")[0] or name] += math.prod(leaf.shape)
    return list(parts.items())


# %% [markdown]
# ## Training


# %%
def warmup_cosine(step, warmup_steps, total_steps):
    rising = step / max(warmup_steps, 1)
    done = np.clip((step - warmup_steps) / max(total_steps - warmup_steps, 1), 0.0, 1.0)
    falling = 0.5 + 0.5 * np.cos(np.pi * done)
    return float(np.where(step < warmup_steps, rising, falling))


def train_epoch(model, loader, criterion, optimizer, scheduler, device):
    model.train()
    parameters = [p for group in optimizer.param_groups for p in group["params"] if p.requires_grad]

    def update(sums, batch):
        images, labels = tree_map(lambda leaf: leaf.to(device), tuple(batch))

        def loss_fn():
            scores = model(images)
            return criterion(scores, labels), scores

        (loss, scores), gradients = value_and_grad(loss_fn, parameters)
        for parameter, gradient in zip(parameters, gradients):
            parameter.grad = gradient
        optimizer.step()
        if scheduler is not None:
            scheduler.step()
        found = {
            "loss": loss.item() * len(labels),
            "hits": (scores.argmax(-1) == labels).sum().item(),
            "images": len(labels),
        }
        return tree_map(lambda a, b: a + b, sums, found), None

    sums, _ = scan(update, {"loss": 0.0, "hits": 0, "images": 0}, loader)
    return sums["loss"] / sums["images"], sums["hits"] / sums["images"]


def evaluate(model, loader, criterion, device):
    model.eval()

    def measure(total, batch):
        images, labels = tree_map(lambda leaf: leaf.to(device), tuple(batch))
        scores = model(images)
        row = {"targets": labels, "predictions": scores.argmax(-1), "probabilities": F.softmax(scores, -1)}
        return total + criterion(scores, labels).item() * len(labels), tree_map(lambda leaf: leaf.cpu(), row)

    with torch.inference_mode():
        total, rows = scan(measure, 0.0, loader)
        result = tree_stack(rows, torch.cat)
        hits = (result["predictions"] == result["targets"]).sum().item()
    # out of inference mode, so that whoever gets the tensors may compute with them
    result = tree_map(torch.clone, result)
    count = len(result["targets"])
    return {"loss": total / count, "accuracy": hits / count, **result}


def copied(model):
    return tree_map(lambda leaf: leaf.detach().clone(), dict(model.state_dict()))


def fit(model, loaders, epochs, device):
    model.to(device)
    criterion = nn.CrossEntropyLoss()
    steps = epochs * len(loaders["train"])
    is_resnet = isinstance(model, ResNet18)
    optimizer = (
        optim.SGD(model.parameters(), lr=0.08, momentum=0.9, weight_decay=5e-4)
        if is_resnet
        else optim.AdamW(model.parameters(), lr=1.2e-3, betas=(0.9, 0.98), weight_decay=0.03)
    )
    factor = partial(warmup_cosine, warmup_steps=steps // 8, total_steps=steps)
    scheduler = optim.lr_scheduler.LambdaLR(optimizer, factor)

    def epoch(best, _):
        loss, accuracy = train_epoch(model, loaders["train"], criterion, optimizer, scheduler, device)
        found = evaluate(model, loaders["validation"], criterion, device)
        if best is None or found["accuracy"] > best[0]:
            best = (found["accuracy"], copied(model))
        return best, {
            "train": {"loss": loss, "accuracy": accuracy},
            "validation": {"loss": found["loss"], "accuracy": found["accuracy"]},
        }

    best, logs = scan(epoch, None, range(epochs))
    if best is not None:
        model.load_state_dict(best[1])
    return tree_stack(logs, np.array) if logs else {}


# %% [markdown]
# ## Measures


# %%
def as_numpy(leaf):
    return leaf.detach().cpu().numpy() if isinstance(leaf, torch.Tensor) else np.asarray(leaf)


def ratio(a, b):
    return np.where(b > 0, a / np.where(b > 0, b, 1), 0.0)


def roc_points(positive, scores):
    """For one class: false and true positive rates at each different threshold, or None."""
    if positive.all() or not positive.any():
        return None
    order = np.argsort(-scores, kind="stable")
    sorted_scores, sorted_positive = scores[order], positive[order]
    ends = np.flatnonzero(np.diff(sorted_scores, append=-np.inf))  # the last one of each run of equals
    true, false = np.cumsum(sorted_positive)[ends], np.cumsum(~sorted_positive)[ends]
    return np.concatenate([[0], false]) / false[-1], np.concatenate([[0], true]) / true[-1]


def area(positive, scores):
    points = roc_points(positive, scores)
    return math.nan if points is None else np.trapezoid(points[1], points[0])


def classification_metrics(targets, probabilities):
    targets, probabilities = as_numpy(targets).astype(int), as_numpy(probabilities)
    count, classes = probabilities.shape
    predictions = np.argmax(probabilities, axis=1)
    confusion = np.zeros((classes, classes), dtype=int)
    np.add.at(confusion, (targets, predictions), 1)  # confusion.at[targets, predictions].add(1)

    hits = np.diagonal(confusion).astype(float)
    support = confusion.sum(1)
    precision, recall = ratio(hits, confusion.sum(0)), ratio(hits, support)
    per_class = {
        "precision": precision,
        "recall": recall,
        "f1": ratio(2 * precision * recall, precision + recall),
        "roc_auc": np.array([area(targets == c, probabilities[:, c]) for c in range(classes)]),
    }

    def mean(values, weights):
        weights = np.where(np.isnan(values), 0, weights)
        return float(np.dot(np.nan_to_num(values), weights) / weights.sum()) if weights.any() else math.nan

    return {
        "confusion": confusion,
        "support": support,
        "accuracy": float(hits.sum() / count),
        **per_class,
        **{f"macro_{name}": mean(values, (support > 0) * 1.0) for name, values in per_class.items()},
        **{f"weighted_{name}": mean(values, support * 1.0) for name, values in per_class.items()},
    }


# %%
def tree_leaves_with_path(tree, path=()):
    """Like jax.tree_util, with arrays as trees of numbers."""
    if isinstance(tree, dict):
        return [leaf for name in tree for leaf in tree_leaves_with_path(tree[name], (*path, str(name)))]
    array = as_numpy(tree)
    if array.ndim == 0:
        return [(path, array.item())]
    return [((*path, *map(str, index)), value.item()) for index, value in np.ndenumerate(array)]


def export_metrics(metrics, path):
    with open(path, "w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(("metric", "value"))
        for names, value in tree_leaves_with_path(metrics):
            rows.writerow((".".join(names), repr(value)))


# %% [markdown]
# ## Pictures


# %%
def plot_learning_curves(history):
    fig, axes = plt.subplot_mosaic([["loss"], ["accuracy"]], sharex=True, figsize=(6, 7), layout="constrained")
    for measure, ax in axes.items():
        for part, values in history.items():
            ax.plot(1 + np.arange(len(values[measure])), values[measure], marker=".", label=part)
        ax.set(xlabel="epoch", ylabel=measure)
        ax.legend()
    return fig, axes


def plot_confusion_matrix(matrix, class_names):
    matrix = as_numpy(matrix)
    fig, ax = plt.subplots(figsize=(8, 8), layout="constrained")
    shown = ax.matshow(ratio(matrix, matrix.sum(1, keepdims=True)), cmap="viridis", vmin=0, vmax=1)
    for (i, j), count in np.ndenumerate(matrix):
        ax.annotate(f"{count:.0f}", (j, i), ha="center", va="center", color="w", fontsize="small")
    ax.set_xticks(np.arange(len(class_names)), labels=class_names, rotation=90)
    ax.set_yticks(np.arange(len(class_names)), labels=class_names)
    ax.set(xlabel="predicted", ylabel="true")
    fig.colorbar(shown, ax=ax, label="share of the row", shrink=0.7)
    return fig, ax


def plot_roc(targets, probabilities, class_names):
    targets, probabilities = as_numpy(targets), as_numpy(probabilities)
    fig, ax = plt.subplots(layout="constrained")
    for label, name in enumerate(class_names):
        points = roc_points(targets == label, probabilities[:, label])
        if points is not None:
            ax.plot(*points, label=name, lw=1.2)
    ax.set(xlabel="false positive rate", ylabel="true positive rate", title="one class against all others")
    ax.set_aspect("equal")
    fig.legend(loc="outside right upper")
    return fig, ax


def denormalized(mean, std, image):
    """For one image: (C, H, W) -> (H, W, C) from 0 to 1."""
    column = lambda values: torch.as_tensor(values, dtype=torch.float32)[:, None, None]
    return (image * column(std) + column(mean)).clamp(0, 1).movedim(0, -1)


def plot_attention(model, images, labels, class_names, mean, std):
    pictures = vmap(partial(denormalized, mean, std))(images.detach().cpu().float())
    fig, axes = plt.subplots(3, len(images), figsize=(1.8 * len(images) + 0.5, 6), squeeze=False)
    for column, (image, picture, label) in enumerate(zip(images, pictures.numpy(), labels)):
        heat = attention_map(model, image).numpy()
        top, middle, bottom = axes[:, column]
        top.imshow(picture)
        top.set_title(class_names[int(label)], fontsize="small")
        middle.imshow(heat, cmap="gray")
        bottom.imshow(picture)
        bottom.imshow(heat, cmap="jet", alpha=0.4)
    for ax in axes.flat:
        ax.set(xticks=[], yticks=[])
    for ax, what in zip(axes[:, 0], ("image", "attention", "both")):
        ax.set_ylabel(what)
    return fig, axes


def plot_top3(images, labels, probabilities, class_names, mean, std):
    pictures = vmap(partial(denormalized, mean, std))(images.detach().cpu().float()).numpy()
    probabilities = torch.as_tensor(probabilities).detach().cpu()
    values, indices = probabilities.topk(min(3, probabilities.shape[1]), dim=1)
    fig, axes = plt.subplots(len(pictures), 2, figsize=(5, 1.6 * len(pictures) + 0.6), squeeze=False)
    for (left, right), picture, label, value, index in zip(axes, pictures, labels, values, indices):
        left.imshow(picture)
        left.set_title(f"is: {class_names[int(label)]}", fontsize="small")
        left.set_axis_off()
        bars = right.barh(range(len(value)), value.numpy(), color="tab:green")
        right.bar_label(bars, fmt="%.3f")
        right.set_yticks(range(len(value)), labels=[class_names[i] for i in index.tolist()])
        right.invert_yaxis()
        right.set_xlim(0, 1.2)
    fig.tight_layout()
    return fig, axes


# %% [markdown]
# ## Train both models

# %%
VIT_EPOCHS = RESNET_EPOCHS = 15

start = time.time()
vit = VisionTransformer(dim=96, depth=6, heads=4, mlp_ratio=2.0, dropout=0.0, num_classes=len(class_names))
vit_history = fit(vit, loaders, VIT_EPOCHS, device)
torch.save(vit.state_dict(), f"{STUDENT_ID}_CIFAR10_vit.pth")
print(f"ViT: {time.time() - start:.0f} s")

# %%
start = time.time()
resnet = ResNet18(num_classes=len(class_names), width=16)
resnet_history = fit(resnet, loaders, RESNET_EPOCHS, device)
torch.save(resnet.state_dict(), f"{STUDENT_ID}_CIFAR10_resnet.pth")
print(f"ResNet: {time.time() - start:.0f} s")

# %%
criterion = nn.CrossEntropyLoss()
measures = {}
for name, model, history in (("vit", vit, vit_history), ("resnet", resnet, resnet_history)):
    found = evaluate(model, test_loader, criterion, device)
    measures[name] = classification_metrics(found["targets"], found["probabilities"])
    print(name, found["accuracy"], parameter_table(model), sep="\n")
    plot_learning_curves(history)
    plot_confusion_matrix(measures[name]["confusion"], class_names)
    plot_roc(found["targets"], found["probabilities"], class_names)
export_metrics(measures, f"{STUDENT_ID}_metrics.csv")

# %%
images, labels = (leaf[:5] for leaf in next(iter(test_loader)))
plot_attention(vit, images, labels, class_names, MEAN, STD)
with torch.no_grad():
    probabilities = F.softmax(vit.eval()(images.to(device)), -1).cpu()
plot_top3(images, labels, probabilities, class_names, MEAN, STD)

# %% [markdown]
# ## Study

# %%
RUN_STUDY = True
BASE = {
    "patch_size": 8, "dim": 64, "depth": 3, "heads": 4, "mlp_ratio": 2.0, "positions": "learned", "epochs": 6,
}  # fmt: skip
COLUMNS = [*BASE, "seed", "parameters", "validation_accuracy"]


def trained_row(values, seed):
    torch.manual_seed(seed)
    sizes = {name: value for name, value in values.items() if name != "epochs"}
    model = VisionTransformer(**sizes, dropout=0.0, num_classes=len(class_names))
    parameters = sum(number for _, number in parameter_table(model))
    fit(model, loaders, values["epochs"], device)
    accuracy = evaluate(model, loaders["validation"], criterion, device)["accuracy"]
    return {**values, "seed": seed, "parameters": parameters, "validation_accuracy": round(accuracy, 4)}


if RUN_STUDY:
    changes = [("patch_size", 4), ("dim", 32), ("depth", 5), ("heads", 8), ("mlp_ratio", 1.0),
               ("positions", "sinusoidal"), ("heads", 1)]  # fmt: skip
    runs = [(BASE, seed) for seed in (0, 1, 2)] + [({**BASE, name: value}, 0) for name, value in changes]
    with open(f"{STUDENT_ID}_study.csv", "w", newline="", encoding="utf-8") as file:
        table = csv.DictWriter(file, COLUMNS)
        table.writeheader()
        for values, seed in runs:
            table.writerow(trained_row(values, seed))
