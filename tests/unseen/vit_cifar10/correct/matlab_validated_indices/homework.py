# %% [markdown]
# # Assignment 2
#
# I come from MATLAB: every function validates its arguments first (like an `arguments` block), index arrays do
# what loops would do, numbers are kept in matrices whose columns have a meaning, and time is taken by tic and
# toc.

# %%
import math
import numbers
import time
import zipfile

import matplotlib.pyplot as plt
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn, optim
from torch.utils.data import DataLoader, Subset
from torchvision import datasets, transforms

STUDENT_ID = "400102001"

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(42)

# %%
MEAN, STD = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)

with zipfile.ZipFile("dataset.zip") as archive:
    archive.extractall("data")

plain = transforms.Compose([transforms.ToTensor(), transforms.Normalize(MEAN, STD)])
augmented = transforms.Compose([transforms.RandomHorizontalFlip(), transforms.RandomCrop(32, 4), plain])
images_for_training = datasets.ImageFolder("data/train", augmented)
images_for_validation = datasets.ImageFolder("data/train", plain)
test_images = datasets.ImageFolder("data/test", plain)
class_names = test_images.classes

# cvpartition(labels, "HoldOut", 0.1): the same share of every class
train_labels = np.array(images_for_training.targets)
shuffled = np.random.default_rng(42).permutation(len(train_labels))
in_class = np.zeros(len(train_labels), dtype=int)  # the how manieth of its class
for label in np.unique(train_labels):
    members = shuffled[train_labels[shuffled] == label]
    in_class[members] = np.arange(len(members))
class_sizes = np.bincount(train_labels)[train_labels]
held = in_class < 0.1 * class_sizes
loaders = {
    "train": DataLoader(Subset(images_for_training, np.nonzero(~held)[0].tolist()), batch_size=64, shuffle=True),
    "validation": DataLoader(Subset(images_for_validation, np.nonzero(held)[0].tolist()), batch_size=256),
}
test_loader = DataLoader(test_images, batch_size=256)


# %% [markdown]
# ## Validation, tic and toc


# %%
def must_be_integer(value, name, least=1):
    if isinstance(value, bool) or not isinstance(value, (numbers.Integral, np.integer)):
        raise TypeError(f"{name} must be a whole number, not {value!r}")
    if value < least:
        raise ValueError(f"{name} must be at least {least}, not {value}")
    return int(value)


def must_be_share(value, name):
    if not isinstance(value, numbers.Real) or not 0.0 <= value <= 1.0:
        raise ValueError(f"{name} must lie between 0 and 1, not {value!r}")
    return float(value)


def must_be_member(value, name, allowed):
    if value not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, allowed))}, not {value!r}")
    return value


def must_have_size(tensor, name, *sizes):
    """None stands for any size."""
    if not isinstance(tensor, torch.Tensor):
        raise TypeError(f"{name} must be a tensor, not a {type(tensor).__name__}")
    if tensor.ndim != len(sizes) or any(s is not None and s != t for s, t in zip(sizes, tensor.shape)):
        raise ValueError(f"{name} has the size {tuple(tensor.shape)}, and should have {sizes}")
    return tensor


def double(values):
    """A matrix of doubles, whatever the numbers came in."""
    if isinstance(values, torch.Tensor):
        values = values.detach().cpu()
    return np.array(np.asarray(values), dtype=np.float64)


_clock = [time.perf_counter()]


def tic():
    _clock[0] = time.perf_counter()


def toc():
    return time.perf_counter() - _clock[0]


# %% [markdown]
# ## The Vision Transformer


# %%
class PatchEmbedding(nn.Module):
    """im2col: the columns of an index matrix are the linear indices of a patch's numbers."""

    def __init__(self, image_size, patch_size, in_channels, dim):
        super().__init__()
        image_size = must_be_integer(image_size, "image_size")
        patch_size = must_be_integer(patch_size, "patch_size")
        if image_size % patch_size != 0:
            raise ValueError("patch_size must divide image_size")
        self.size = (must_be_integer(in_channels, "in_channels"), image_size, image_size)
        linear = np.arange(np.prod(self.size)).reshape(self.size)
        corner = np.arange(0, image_size, patch_size)
        columns = [
            linear[:, y : y + patch_size, x : x + patch_size].ravel() for y in corner for x in corner
        ]
        self.register_buffer("index", torch.from_numpy(np.stack(columns)), persistent=False)  # (N, C * p * p)
        numbers_in_patch = self.index.shape[1]
        self.W = nn.Parameter(torch.randn(numbers_in_patch, dim) / math.sqrt(numbers_in_patch))
        self.b = nn.Parameter(torch.zeros(1, dim))

    def forward(self, images):
        must_have_size(images, "images", None, *self.size)
        columns = images.reshape(images.shape[0], -1)[:, self.index]
        return columns @ self.W + self.b


def sinusoidal_positions(tokens, dim):
    tokens, dim = must_be_integer(tokens, "tokens"), must_be_integer(dim, "dim", 2)
    if dim % 2:
        raise ValueError("dim must be even")
    pairs, pos = np.meshgrid(np.arange(dim // 2), np.arange(tokens))
    angles = pos / 10000.0 ** (2.0 * pairs / dim)
    table = np.dstack([np.sin(angles), np.cos(angles)])  # tokens x pairs x 2
    return torch.from_numpy(table.reshape(tokens, dim).astype(np.float32))


class MultiHeadSelfAttention(nn.Module):
    """Heads as pages of a 3-D array: batch * heads pages, and pagemtimes (matmul) for all of them."""

    def __init__(self, dim, heads, dropout=0.0):
        super().__init__()
        self.dim, self.heads = must_be_integer(dim, "dim"), must_be_integer(heads, "heads")
        if self.dim % self.heads != 0:
            raise ValueError("dim must be a multiple of heads")
        self.p = must_be_share(dropout, "dropout")
        self.QK = nn.Linear(dim, 2 * dim)
        self.V = nn.Linear(dim, dim)
        self.O = nn.Linear(dim, dim)

    def pages(self, x):
        batch, tokens, _ = x.shape
        d = self.dim // self.heads
        return x.reshape(batch, tokens, self.heads, d).swapaxes(1, 2).reshape(batch * self.heads, tokens, d)

    def forward(self, x, return_weights=False):
        must_have_size(x, "x", None, None, self.dim)
        batch, tokens, _ = x.shape
        q, k = (self.pages(part) for part in self.QK(x).split(self.dim, dim=2))
        v = self.pages(self.V(x))
        S = (q @ k.mT) * (self.dim / self.heads) ** -0.5
        A = S.softmax(dim=2)
        Y = F.dropout(A, self.p, self.training) @ v
        Y = Y.reshape(batch, self.heads, tokens, -1).swapaxes(1, 2).reshape(batch, tokens, self.dim)
        Y = self.O(Y)
        if return_weights:
            return Y, A.reshape(batch, self.heads, tokens, tokens)
        return Y


class EncoderBlock(nn.Module):
    def __init__(self, dim, heads, mlp_ratio=4.0, dropout=0.0):
        super().__init__()
        if not mlp_ratio > 0:
            raise ValueError(f"mlp_ratio must be positive, not {mlp_ratio!r}")
        hidden = int(math.floor(dim * mlp_ratio))
        self.N1, self.N2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.A = MultiHeadSelfAttention(dim, heads, dropout)
        self.W1, self.W2 = nn.Linear(dim, hidden), nn.Linear(hidden, dim)

    def forward(self, x):
        y = x + self.A(self.N1(x))
        z = self.W1(self.N2(y))
        # z * normcdf(z), which is what GELU says
        return y + self.W2(z * 0.5 * torch.erfc(-z / math.sqrt(2)))


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
        must_be_member(positions, "positions", ("learned", "sinusoidal"))
        must_be_member(pool, "pool", ("cls", "mean"))
        depth = must_be_integer(depth, "depth")
        self.P = PatchEmbedding(image_size, patch_size, in_channels, dim)
        # the class token is a matrix with one row, or with none: then it is a buffer, as nothing is learned
        self.rows = int(pool == "cls")
        if self.rows:
            self.T0 = nn.Parameter(0.02 * torch.randn(1, dim))
        else:
            self.register_buffer("T0", torch.zeros(0, dim), persistent=False)
        count = self.rows + self.P.index.shape[0]
        if positions == "learned":
            self.E = nn.Parameter(0.02 * torch.randn(count, dim))
        else:
            self.register_buffer("E", sinusoidal_positions(count, dim))
        self.B = nn.ModuleList(EncoderBlock(dim, heads, mlp_ratio, dropout) for _ in range(depth))
        self.N = nn.LayerNorm(dim)
        self.H = nn.Linear(dim, num_classes)
        # the mean of all tokens, or the class token, is a row vector of weights times the tokens
        pick = torch.zeros(count)
        if self.rows:
            pick[0] = 1.0
        else:
            pick += 1.0 / count
        self.register_buffer("pick", pick, persistent=False)

    def through(self, images, blocks):
        X = self.P(images)
        X = torch.cat([self.T0.expand(X.shape[0], *self.T0.shape), X], dim=1) + self.E
        for block in blocks:
            X = block(X)
        return X

    def forward(self, images):
        X = self.N(self.through(images, self.B))
        return self.H(self.pick @ X)

    def attention(self, images):
        X = self.through(images, self.B[:-1])
        last = self.B[-1]
        _, A = last.A(last.N1(X), return_weights=True)
        return A


# %%
def attention_map(model, image):
    must_have_size(image, "image", None, None, None)
    modes = {id(m): m.training for m in model.modules()}
    model.eval()
    with torch.no_grad():
        A = double(model.attention(image.unsqueeze(0).to(next(model.parameters()).device))[0])
    for m in model.modules():
        m.training = modes[id(m)]
    A = A.mean(axis=0)
    side = round(math.sqrt(A.shape[0]))
    v = A.mean(axis=0) if side**2 == A.shape[0] else A[0, 1:]
    side = round(math.sqrt(v.size))
    if v.max() > 0:
        v = v / v.max()
    # a label matrix says to which patch a pixel belongs; v(L) paints it
    height, width = image.shape[1:]
    y, x = np.ogrid[:height, :width]
    L = (y // (height // side)) * side + x // (width // side)
    return v[L]


# %% [markdown]
# ## The ResNet


# %%
class BasicBlock(nn.Module):
    def __init__(self, in_channels, channels, stride=1):
        super().__init__()
        must_be_integer(in_channels, "in_channels")
        must_be_integer(channels, "channels")
        must_be_integer(stride, "stride")
        self.C1 = nn.Conv2d(in_channels, channels, 3, stride, 1, bias=False)
        self.N1 = nn.BatchNorm2d(channels)
        self.C2 = nn.Conv2d(channels, channels, 3, 1, 1, bias=False)
        self.N2 = nn.BatchNorm2d(channels)
        self.changes = bool(stride != 1 or in_channels != channels)
        if self.changes:
            self.C3 = nn.Conv2d(in_channels, channels, 1, stride, bias=False)
            self.N3 = nn.BatchNorm2d(channels)

    def forward(self, x):
        must_have_size(x, "x", None, self.C1.in_channels, None, None)
        y = self.N2(self.C2(self.N1(self.C1(x)).relu()))
        s = self.N3(self.C3(x)) if self.changes else x
        return torch.maximum(y + s, torch.zeros((), device=y.device, dtype=y.dtype))


class ResNet18(nn.Module):
    #           in out stride, in multiples of width
    BLOCKS = np.array([[1, 1, 1], [1, 1, 1], [1, 2, 2], [2, 2, 1], [2, 4, 2], [4, 4, 1], [4, 8, 2], [8, 8, 1]])

    def __init__(self, num_classes=10, width=64):
        super().__init__()
        width = must_be_integer(width, "width")
        self.C0 = nn.Conv2d(3, width, 3, 1, 1, bias=False)
        self.N0 = nn.BatchNorm2d(width)
        sizes = (self.BLOCKS * [width, width, 1]).tolist()
        self.B = nn.Sequential(*(BasicBlock(*row) for row in sizes))
        self.H = nn.Linear(sizes[-1][1], num_classes)

    def forward(self, images):
        must_have_size(images, "images", None, 3, None, None)
        x = self.B(self.N0(self.C0(images)).relu())
        return self.H(x.flatten(2).mean(dim=2))


# %%
def parameter_table(model):
    """cellfun(@numel, ...) with a row for each array."""
    names = [name for name, _ in model.named_parameters()]
    sizes = [int(np.prod(array.shape)) for _, array in model.named_parameters()]
    return list(zip(names, sizes))


# %% [markdown]
# ## Training


# %%
def warmup_cosine(step, warmup_steps, total_steps):
    if step >= total_steps:
        return 0.0
    if step < warmup_steps:
        return float(np.interp(step, [0, warmup_steps], [0, 1]))
    turn = 0.5 * np.pi * (step - warmup_steps) / (total_steps - warmup_steps)  # from 0 to a quarter of a turn
    return float(np.cos(turn) ** 2)


def train_epoch(model, loader, criterion, optimizer, scheduler, device):
    model.train()
    log = np.zeros((0, 3))  # columns: loss, hits, images
    for images, labels in loader:
        images, labels = images.to(device), labels.to(device)
        scores = model(images)
        loss = criterion(scores, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if scheduler is not None:
            scheduler.step()
        hits = int((scores.argmax(dim=1) == labels).sum())
        log = np.vstack([log, [loss.item(), hits, labels.numel()]])
    total = log[:, 2].sum()
    return float(log[:, 0] @ log[:, 2] / total), float(log[:, 1].sum() / total)


def evaluate(model, loader, criterion, device):
    model.eval()
    log, labels_of, scores_of = [], [], []
    with torch.no_grad():
        for images, labels in loader:
            labels = labels.to(device)
            scores = model(images.to(device))
            log.append([criterion(scores, labels).item(), labels.numel()])
            labels_of.append(labels.cpu().numpy())
            scores_of.append(scores.cpu().numpy())
    log = np.array(log)
    targets, scores = np.concatenate(labels_of), np.vstack(scores_of).astype(np.float64)
    e = np.exp(scores - scores.max(axis=1, keepdims=True))
    probabilities = e / e.sum(axis=1, keepdims=True)
    predictions = scores.argmax(axis=1)
    return {
        "loss": float(log[:, 0] @ log[:, 1] / log[:, 1].sum()),
        "accuracy": float(np.count_nonzero(predictions == targets) / targets.size),
        "targets": targets,
        "predictions": predictions,
        "probabilities": probabilities,
    }


def whos(model):
    """All arrays of a model, as copies."""
    return {name: value.detach().cpu().numpy().copy() for name, value in model.state_dict().items()}


def fit(model, loaders, epochs, device):
    """The history is a matrix, a row for each epoch: epoch, losses, accuracies (training, validation)."""
    epochs = must_be_integer(epochs, "epochs", 0)
    model.to(device)
    criterion = nn.CrossEntropyLoss()
    steps = len(loaders["train"]) * epochs
    factors = np.array([warmup_cosine(step, steps // 10, steps) for step in range(steps + 1)])  # a table of all
    if isinstance(model, ResNet18):
        optimizer = optim.Adam(model.parameters(), lr=2e-3)
    else:
        optimizer = optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.02)
    scheduler = optim.lr_scheduler.LambdaLR(optimizer, lambda step: float(factors[min(step, steps)]))
    history = np.full((epochs, 5), np.nan)
    best = None
    for row in range(epochs):
        loss, accuracy = train_epoch(model, loaders["train"], criterion, optimizer, scheduler, device)
        found = evaluate(model, loaders["validation"], criterion, device)
        history[row] = [row + 1, loss, found["loss"], accuracy, found["accuracy"]]
        if np.argmax(history[: row + 1, 4]) == row:  # max gives the first of equals
            best = whos(model)
        print("%3d  loss %.4f %.4f  accuracy %.4f %.4f" % tuple(history[row]))
    if best is not None:
        model.load_state_dict({name: torch.from_numpy(value) for name, value in best.items()})
    return history


# %% [markdown]
# ## Measures


# %%
def accumarray(subs, size):
    counts = np.zeros(size, dtype=np.int64)
    np.add.at(counts, subs, 1)
    return counts


def zero_for_nan(a):
    return np.where(np.isfinite(a), a, 0.0)


def perfcurve(positive, scores):
    """[X, Y, AUC]: false positive rates, true positive rates; empty and NaN without both kinds."""
    P, N = np.count_nonzero(positive), np.count_nonzero(~positive)
    if P == 0 or N == 0:
        return np.array([]), np.array([]), np.nan
    T = np.unique(scores)[::-1]
    _, row = np.unique(-scores, return_inverse=True)
    Y = np.concatenate([[0], np.cumsum(accumarray(row[positive], T.size))]) / P
    X = np.concatenate([[0], np.cumsum(accumarray(row[~positive], T.size))]) / N
    return X, Y, float(np.trapezoid(Y, X))


def classification_metrics(targets, probabilities):
    t, p = double(targets).astype(np.int64), double(probabilities)
    if p.ndim != 2 or t.shape != p.shape[:1]:
        raise ValueError(f"targets {t.shape} and probabilities {p.shape} do not fit")
    if t.size and not 0 <= t.min() <= t.max() < p.shape[1]:
        raise ValueError("targets must be columns of the probabilities")
    K = p.shape[1]
    C = accumarray((t, np.argmax(p, axis=1)), (K, K))
    support = C.sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        M = np.column_stack(
            [
                zero_for_nan(np.diag(C) / C.sum(axis=0)),
                zero_for_nan(np.diag(C) / support),
                zero_for_nan(2 * np.diag(C) / (C.sum(axis=0) + support)),
                [perfcurve(t == k, p[:, k])[2] for k in range(K)],
            ]
        )
    out = {"confusion": C, "support": support, "accuracy": float(np.trace(C) / max(1, t.size))}
    for column, name in enumerate(("precision", "recall", "f1", "roc_auc")):
        m = M[:, column]
        out[name] = m
        rows = np.flatnonzero((support > 0) & ~np.isnan(m))
        w = support[rows] / max(1, support[rows].sum())
        out["macro_" + name] = float(np.mean(m[rows])) if rows.size else np.nan
        out["weighted_" + name] = float(w @ m[rows]) if rows.size else np.nan
    return out


def export_metrics(metrics, path):
    """By a list of what is still to do; then np.savetxt."""
    names, values, todo = [], [], [(str(key), value) for key, value in metrics.items()]
    while todo:
        name, value = todo.pop(0)
        if isinstance(value, dict):
            todo = [(f"{name}.{key}", inner) for key, inner in value.items()] + todo
        elif double(value).ndim == 1:
            todo = [(f"{name}.{row}", inner) for row, inner in enumerate(double(value))] + todo
        elif double(value).ndim == 0:
            names.append('"%s"' % name.replace('"', '""') if "," in name or '"' in name else name)
            values.append("%.17g" % double(value))
    table = np.array([names, values], dtype=object).T.reshape(-1, 2)
    np.savetxt(path, table, fmt="%s", delimiter=",", header="metric,value", comments="", encoding="utf-8")


# %% [markdown]
# ## Pictures


# %%
def plot_learning_curves(history):
    fig = plt.figure(figsize=(6, 7))
    for place, (first, what) in enumerate([(1, "loss"), (3, "accuracy")]):
        plt.subplot(2, 1, place + 1)
        plt.plot(history[:, 0], history[:, first], "b.-", history[:, 0], history[:, first + 1], "r.-")
        plt.legend(["training", "validation"], loc="best")
        plt.xlabel("epoch")
        plt.ylabel(what)
        plt.title(f"{what} of training and validation")
    plt.subplots_adjust(hspace=0.4)
    return fig


def plot_confusion_matrix(matrix, class_names):
    """confusionchart: right ones blue, wrong ones red."""
    C = double(matrix)
    K = len(class_names)
    shade = C / max(1.0, C.max())
    color = np.ones((K, K, 3))
    hit = np.eye(K, dtype=bool)
    color[hit] -= shade[hit][:, None] * [0.8, 0.4, 0.0]
    color[~hit] -= shade[~hit][:, None] * [0.0, 0.6, 0.6]
    fig = plt.figure(figsize=(7.5, 7.5))
    plt.imshow(color)
    for r in range(K):
        for c in range(K):
            plt.text(c, r, "%d" % C[r, c], horizontalalignment="center", verticalalignment="center")
    plt.xticks(np.arange(K), class_names, rotation=60)
    plt.yticks(np.arange(K), class_names)
    plt.xlabel("Predicted Class")
    plt.ylabel("True Class")
    plt.tight_layout()
    return fig


def plot_roc(targets, probabilities, class_names):
    t, p = double(targets), double(probabilities)
    fig = plt.figure()
    plt.plot([0, 1], [0, 1], "k:", label="_chance")
    for k, name in enumerate(class_names):
        X, Y, area = perfcurve(t == k, p[:, k])
        if X.size:
            plt.plot(X, Y, label="%s (AUC = %.3f)" % (name, area))
    plt.axis("square")
    plt.xlabel("False positive rate")
    plt.ylabel("True positive rate")
    plt.legend(loc="lower right", fontsize=7)
    return fig


def picture_of(image, mean, std):
    x = double(image).transpose(1, 2, 0) * double(std).ravel() + double(mean).ravel()
    return np.minimum(np.maximum(x, 0), 1)


def plot_attention(model, images, labels, class_names, mean, std):
    n = len(images)
    fig = plt.figure(figsize=(7, 2.3 * n))
    for k in range(n):
        x, v = picture_of(images[k], mean, std), attention_map(model, images[k])
        heat = plt.get_cmap("jet")(v)[:, :, :3]
        panels = [(x, class_names[int(labels[k])]), (v, "attention"), (0.55 * x + 0.45 * heat, "overlay")]
        for column, (panel, title) in enumerate(panels):
            plt.subplot(n, 3, 3 * k + column + 1)
            plt.imshow(panel, cmap="gray", vmin=0, vmax=1)
            plt.title(title)
            plt.axis("off")
    return fig


def plot_top3(images, labels, probabilities, class_names, mean, std):
    p = double(probabilities)
    n, columns = len(images), min(3, len(images))
    fig = plt.figure(figsize=(3 * columns, 3.6 * math.ceil(n / columns)), layout="constrained")
    for k in range(n):
        order = np.lexsort((np.arange(p.shape[1]), -p[k]))[:3]
        plt.subplot(math.ceil(n / columns), columns, k + 1)
        plt.imshow(picture_of(images[k], mean, std))
        plt.axis("off")
        text = ["true: " + class_names[int(labels[k])]]
        text += ["%d. %s %.2f" % (rank + 1, class_names[c], p[k, c]) for rank, c in enumerate(order)]
        plt.title("\n".join(text), fontsize=8)
    return fig


# %% [markdown]
# ## Train both models

# %%
VIT_EPOCHS = RESNET_EPOCHS = 15

tic()
vit = VisionTransformer(dim=96, depth=6, heads=4, mlp_ratio=2.0, dropout=0.0, num_classes=len(class_names))
vit_history = fit(vit, loaders, VIT_EPOCHS, device)
torch.save(vit.state_dict(), f"{STUDENT_ID}_CIFAR10_vit.pth")
print("Elapsed time is %.1f seconds." % toc())

# %%
tic()
resnet = ResNet18(num_classes=len(class_names), width=16)
resnet_history = fit(resnet, loaders, RESNET_EPOCHS, device)
torch.save(resnet.state_dict(), f"{STUDENT_ID}_CIFAR10_resnet.pth")
print("Elapsed time is %.1f seconds." % toc())

# %%
criterion = nn.CrossEntropyLoss()
measures = {}
for name, model, history in [("vit", vit, vit_history), ("resnet", resnet, resnet_history)]:
    found = evaluate(model, test_loader, criterion, device)
    measures[name] = classification_metrics(found["targets"], found["probabilities"])
    print(name, "%.4f" % found["accuracy"], sum(size for _, size in parameter_table(model)), "parameters")
    plot_learning_curves(history)
    plot_confusion_matrix(measures[name]["confusion"], class_names)
    plot_roc(found["targets"], found["probabilities"], class_names)
export_metrics(measures, f"{STUDENT_ID}_metrics.csv")

# %%
images, labels = next(iter(test_loader))
images, labels = images[:6], labels[:6]
plot_attention(vit, images, labels, class_names, MEAN, STD)
found = vit.eval()(images.to(device)).softmax(dim=1).detach().cpu()
plot_top3(images, labels, found, class_names, MEAN, STD)

# %% [markdown]
# ## Study: each row of the plan is a training, and its last column the seed

# %%
RUN_STUDY = True
COLUMNS = ["patch_size", "dim", "depth", "heads", "mlp_ratio", "positions", "epochs", "seed", "parameters",
           "validation_accuracy"]  # fmt: skip
BASE = [8, 48, 2, 4, 2.0, "learned", 6]
PLAN = np.array([[*BASE, seed] for seed in (1, 2, 3, 1, 1, 1, 1, 1, 1)], dtype=object)
for row, (column, value) in enumerate([(0, 4), (1, 64), (2, 4), (3, 2), (4, 4.0), (5, "sinusoidal")], start=3):
    PLAN[row, column] = value


def trained_row(patch_size, dim, depth, heads, mlp_ratio, positions, epochs, seed):
    torch.manual_seed(seed)
    model = VisionTransformer(
        32, patch_size, 3, len(class_names), dim, depth, heads, mlp_ratio, 0.0, positions
    )
    size = sum(size for _, size in parameter_table(model))
    fit(model, loaders, epochs, device)
    found = evaluate(model, loaders["validation"], criterion, device)
    return size, "%.4f" % found["accuracy"]


if RUN_STUDY:
    results = np.array([trained_row(*row) for row in PLAN], dtype=object)
    np.savetxt(
        f"{STUDENT_ID}_study.csv", np.hstack([PLAN, results]), fmt="%s", delimiter=",",
        header=",".join(COLUMNS), comments="",
    )  # fmt: skip
