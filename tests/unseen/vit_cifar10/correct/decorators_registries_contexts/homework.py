# %% [markdown]
# # ViT and ResNet on CIFAR-10, with decorators, registries and context managers
#
# What happens again and again (going to the CPU, evaluation mode, making figures, choosing by a name) is
# written once, as a decorator, a registry or a context manager.

# %%
import csv
import math
import time
import zipfile
from collections import ChainMap
from contextlib import closing, contextmanager, suppress
from functools import cached_property, singledispatch, wraps

import matplotlib.pyplot as plt
import numpy as np
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, Subset
from torchvision import datasets, transforms

STUDENT_ID = "400102001"

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(42)

# %% [markdown]
# ## Tools


# %%
class Registry(dict):
    """name -> what makes it; filled by a decorator."""

    def __init__(self, kind):
        super().__init__()
        self.kind = kind

    def __call__(self, name):
        def register(function):
            self[name] = function
            return function

        return register

    def __missing__(self, name):
        raise ValueError(f"no {self.kind} is called {name!r}; there are {', '.join(map(str, self))}")


TRANSFORMS, POSITIONS, POOLS, OPTIMIZERS, CELLS = map(Registry, ("transform", "positions", "pool", "optimizer", "cell"))


@contextmanager
def evaluating(model):
    """Evaluation mode without gradients; at the end, each part has the mode that it had."""
    modes = {module: module.training for module in model.modules()}
    model.eval()
    try:
        with torch.no_grad():
            yield model
    finally:
        for module, mode in modes.items():
            module.training = mode


@contextmanager
def timed(what):
    start = time.perf_counter()
    yield
    print(f"{what} took {time.perf_counter() - start:.0f} s.")


@singledispatch
def on_cpu(value):
    """Brings what a function returns to the CPU, however deep tensors lie in it."""
    return value


@on_cpu.register
def _(value: torch.Tensor):
    return value.detach().cpu()


@on_cpu.register
def _(value: dict):
    return {key: on_cpu(inner) for key, inner in value.items()}


def returns_on_cpu(function):
    @wraps(function)
    def wrapper(*args, **kwargs):
        return on_cpu(function(*args, **kwargs))

    return wrapper


def with_arrays(*names):
    """The named arguments come as numpy arrays, whatever they were."""

    def decorate(function):
        positions = {name: place for place, name in enumerate(function.__code__.co_varnames) if name in names}

        @wraps(function)
        def wrapper(*args, **kwargs):
            args = [np.asarray(on_cpu(a)) if place in positions.values() else a for place, a in enumerate(args)]
            kwargs = {name: np.asarray(on_cpu(a)) if name in names else a for name, a in kwargs.items()}
            return function(*args, **kwargs)

        return wrapper

    return decorate


def figure(**settings):
    """The function draws on the figure that plt.gcf() gives, and this hands the figure out."""

    def decorate(function):
        @wraps(function)
        def wrapper(*args, **kwargs):
            with plt.rc_context({"font.size": 9, "image.interpolation": "nearest", "axes.grid": False}):
                fig = plt.figure(layout="constrained", **settings)
                function(*args, **kwargs)
            return fig

        return wrapper

    return decorate


# %% [markdown]
# ## The images

# %%
MEAN, STD = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)

with zipfile.ZipFile("dataset.zip") as archive:
    archive.extractall("data")


@TRANSFORMS("plain")
def plain():
    return [transforms.ToTensor(), transforms.Normalize(MEAN, STD)]


@TRANSFORMS("augmented")
def augmented():
    return [transforms.RandomCrop(32, padding=4), transforms.RandomHorizontalFlip(), *TRANSFORMS["plain"]()]


def images_of(part, name):
    return datasets.ImageFolder(f"data/{part}", transform=transforms.Compose(TRANSFORMS[name]()))


@contextmanager
def seeded(seed):
    """Random numbers of a seed, without touching those outside."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield


test_images = images_of("test", "plain")
class_names = test_images.classes
with seeded(42):
    shuffled = torch.randperm(len(images_of("train", "plain"))).tolist()
validation_size = len(shuffled) // 10
loaders = {
    "train": DataLoader(
        Subset(images_of("train", "augmented"), shuffled[:-validation_size]), batch_size=64, shuffle=True
    ),
    "validation": DataLoader(Subset(images_of("train", "plain"), shuffled[-validation_size:]), batch_size=200),
}
test_loader = DataLoader(test_images, batch_size=200)

# %% [markdown]
# ## The Vision Transformer


# %%
class PatchEmbedding(nn.Module):
    def __init__(self, image_size, patch_size, in_channels, dim):
        super().__init__()
        self.cut = nn.PixelUnshuffle(patch_size)  # (B, C, H, W) -> (B, C * p * p, H / p, W / p)
        self.mix = nn.Conv2d(in_channels * patch_size**2, dim, kernel_size=1)

    def forward(self, images):
        return self.mix(self.cut(images)).flatten(start_dim=2).mT


@returns_on_cpu
def sinusoidal_positions(tokens, dim):
    turns = torch.polar(
        torch.ones(tokens, dim // 2, dtype=torch.float64),
        torch.outer(
            torch.arange(tokens, dtype=torch.float64),
            torch.logspace(0, -4 * (dim - 2) / dim, dim // 2, dtype=torch.float64),
        ),
    )
    real = torch.view_as_real(turns)  # cosine, sine
    return real.flip(-1).reshape(tokens, dim).float()


class MultiHeadSelfAttention(nn.Module):
    def __init__(self, dim, heads, dropout=0.0):
        super().__init__()
        self.heads = heads
        self.to_kv = nn.Linear(dim, 2 * dim, bias=False)
        self.to_q = nn.Linear(dim, dim, bias=False)
        self.to_out = nn.Linear(dim, dim)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, return_weights=False):
        batch, tokens, dim = x.shape
        shape = (batch, tokens, self.heads, dim // self.heads)
        q = self.to_q(x).reshape(shape)
        k, v = (part.reshape(shape) for part in self.to_kv(x).tensor_split(2, dim=-1))
        scores = torch.einsum("bihd,bjhd->bhij", q, k)
        weights = (scores / shape[-1] ** 0.5).softmax(-1)
        y = self.to_out(torch.einsum("bhij,bjhd->bihd", self.dropout(weights), v).reshape(x.shape))
        return (y, weights) if return_weights else y


def skips(method):
    """Makes x -> x + f(x) of a method f."""

    @wraps(method)
    def wrapper(self, x):
        return x + method(self, x)

    return wrapper


class EncoderBlock(nn.Module):
    def __init__(self, dim, heads, mlp_ratio=4.0, dropout=0.0):
        super().__init__()
        self.attention_norm, self.mlp_norm = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attention = MultiHeadSelfAttention(dim, heads, dropout)
        self.mlp_in = nn.Linear(dim, int(dim * mlp_ratio))
        self.mlp_out = nn.Linear(self.mlp_in.out_features, dim)

    @skips
    def look(self, x):
        return self.attention(self.attention_norm(x))

    @skips
    def think(self, x):
        return self.mlp_out(nn.functional.gelu(self.mlp_in(self.mlp_norm(x))))

    def forward(self, x):
        return self.think(self.look(x))


@POSITIONS("learned")
class LearnedPositions(nn.Module):
    def __init__(self, tokens, dim):
        super().__init__()
        self.table = nn.Parameter(nn.init.trunc_normal_(torch.empty(tokens, dim), std=0.02))

    def forward(self, x):
        return x + self.table


@POSITIONS("sinusoidal")
class FixedPositions(nn.Module):
    def __init__(self, tokens, dim):
        super().__init__()
        self.register_buffer("table", sinusoidal_positions(tokens, dim), persistent=False)

    def forward(self, x):
        return x + self.table


@POOLS("cls")
class ClassToken(nn.Module):
    extra = 1

    def __init__(self, dim):
        super().__init__()
        self.token = nn.Parameter(nn.init.trunc_normal_(torch.empty(dim), std=0.02))

    def enter(self, x):
        padded = nn.functional.pad(x, (0, 0, 1, 0))  # a row of zeros in front, and the token put into it
        first = torch.zeros(padded.shape[1], 1, device=x.device, dtype=x.dtype)
        first[0] = 1
        return padded + first * self.token

    def leave(self, x):
        return x[:, 0]


@POOLS("mean")
class MeanOfTokens(nn.Module):
    extra = 0

    def __init__(self, dim):
        super().__init__()

    def enter(self, x):
        return x

    def leave(self, x):
        return x.mean(dim=1)


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
        self.patches = PatchEmbedding(image_size, patch_size, in_channels, dim)
        self.pool = POOLS[pool](dim)
        self.positions = POSITIONS[positions]((image_size // patch_size) ** 2 + self.pool.extra, dim)
        self.dropout = nn.Dropout(dropout)
        self.blocks = nn.ModuleList(EncoderBlock(dim, heads, mlp_ratio, dropout) for _ in range(depth))
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, num_classes)

    def walk(self, images):
        """Yields the tokens before each block, and after the last."""
        x = self.dropout(self.positions(self.pool.enter(self.patches(images))))
        for block in self.blocks:
            yield x
            x = block(x)
        yield x

    def forward(self, images):
        *_, x = self.walk(images)
        return self.head(self.norm(self.pool.leave(x)))

    def attention(self, images):
        last = self.blocks[-1]
        with closing(self.walk(images)) as walk:
            for block, x in zip(self.blocks, walk):
                if block is last:
                    return last.attention(last.attention_norm(x), return_weights=True)[1]


@returns_on_cpu
def attention_map(model, image):
    with evaluating(model):
        weights = model.attention(image[None].to(next(model.parameters()).device)).mean(dim=1)[0]
    tokens = len(weights)
    patches = math.isqrt(tokens) ** 2  # without the class token, if there is one
    seen = weights[0, 1:] if patches < tokens else weights.mean(dim=0)
    if (largest := seen.max()) > 0:
        seen = seen / largest
    side = math.isqrt(patches)
    size = image.shape[-1] // side
    return nn.functional.pixel_shuffle(seen.reshape(1, side, side).expand(size * size, side, side), size)[0]


# %% [markdown]
# ## The ResNet


# %%
def conv(before, after, size, stride=1):
    return nn.Conv2d(before, after, size, stride=stride, padding="same" if stride == 1 else size // 2, bias=False)


class BasicBlock(nn.Module):
    def __init__(self, in_channels, channels, stride=1):
        super().__init__()
        self.conv1, self.norm1 = conv(in_channels, channels, 3, stride), nn.BatchNorm2d(channels)
        self.conv2, self.norm2 = conv(channels, channels, 3), nn.BatchNorm2d(channels)
        self.shortcut = nn.Sequential()
        if stride != 1 or in_channels != channels:
            self.shortcut.append(conv(in_channels, channels, 1, stride)).append(nn.BatchNorm2d(channels))

    def forward(self, x):
        y = self.norm1(self.conv1(x)).relu()
        y = self.norm2(self.conv2(y))
        return (y + self.shortcut(x)).relu()


class ResNet18(nn.Module):
    def __init__(self, num_classes=10, width=64):
        super().__init__()
        self.body = nn.Sequential(conv(3, width, 3), nn.BatchNorm2d(width), nn.ReLU())
        for factor in (1, 2, 4, 8):
            before = max(1, factor // 2) * width
            self.body.append(BasicBlock(before, factor * width, 1 if factor == 1 else 2))
            self.body.append(BasicBlock(factor * width, factor * width))
        self.body.extend([nn.AdaptiveAvgPool2d(1), nn.Flatten()])
        self.head = nn.Linear(8 * width, num_classes)

    def forward(self, images):
        return self.head(self.body(images))


class Counter:
    """A context in which parameters are counted once."""

    def __enter__(self):
        self.seen, self.rows = {}, []
        return self

    def __exit__(self, *_):
        self.seen.clear()

    def count(self, name, module):
        new = {id(p): p for p in module.parameters(recurse=False)}
        number = sum(p.numel() for key, p in new.items() if key not in self.seen)
        self.seen = {**self.seen, **new}
        self.rows += [(name, number)] if number else []


def parameter_table(model):
    with Counter() as counter:
        for name, module in model.named_modules(prefix="model"):
            counter.count(f"{name}: {module._get_name()}", module)
    return counter.rows


# %% [markdown]
# ## Training


# %%
def clipped(low, high):
    def decorate(function):
        @wraps(function)
        def wrapper(*args, **kwargs):
            return min(max(function(*args, **kwargs), low), high)

        return wrapper

    return decorate


@clipped(0.0, 1.0)
def warmup_cosine(step, warmup_steps, total_steps):
    with suppress(ZeroDivisionError):
        if step < warmup_steps:
            return step / warmup_steps
        if step < total_steps:
            return 0.5 + 0.5 * math.cos((step - warmup_steps) / (total_steps - warmup_steps) * math.pi)
    return 0.0


class Means:
    """Means over images; they are read when all batches have been added."""

    def __init__(self):
        self.loss_sum, self.hits, self.images = 0.0, 0, 0

    def add(self, loss, scores, labels):
        self.loss_sum += loss.item() * len(labels)
        self.hits += int((scores.argmax(dim=1) == labels).sum())
        self.images += len(labels)

    @cached_property
    def loss(self):
        return self.loss_sum / self.images

    @cached_property
    def accuracy(self):
        return self.hits / self.images


@contextmanager
def step_of(optimizer, scheduler):
    """Around the computation of a batch's gradients."""
    optimizer.zero_grad()
    yield
    optimizer.step()
    if scheduler is not None:
        scheduler.step()


def train_epoch(model, loader, criterion, optimizer, scheduler, device):
    model.train()
    means = Means()
    for images, labels in loader:
        images, labels = images.to(device), labels.to(device)
        with step_of(optimizer, scheduler):
            scores = model(images)
            loss = criterion(scores, labels)
            loss.backward()
        means.add(loss, scores, labels)
    return means.loss, means.accuracy


@torch.no_grad()
@returns_on_cpu
def evaluate(model, loader, criterion, device):
    model.eval()
    means, targets, scores = Means(), [], []
    for images, labels in loader:
        targets.append(labels.to(device))
        scores.append(model(images.to(device)))
        means.add(criterion(scores[-1], targets[-1]), scores[-1], targets[-1])
    scores = torch.cat(scores)
    return {
        "loss": means.loss,
        "accuracy": means.accuracy,
        "targets": torch.cat(targets),
        "predictions": scores.argmax(dim=1),
        "probabilities": scores.softmax(dim=1),
    }


@OPTIMIZERS("VisionTransformer")
def for_vit(parameters):
    return optim.AdamW(parameters, lr=1e-3, weight_decay=0.05)


@OPTIMIZERS("ResNet18")
def for_resnet(parameters):
    return optim.SGD(parameters, lr=0.05, momentum=0.9, weight_decay=5e-4, nesterov=True)


@contextmanager
def best_weights(model):
    """Gives a function that is told each accuracy; on leaving, the model has the best weights."""
    kept, best = {}, -math.inf

    def tell(accuracy):
        nonlocal best
        if accuracy > best:
            best = accuracy
            kept.update((name, value.detach().clone()) for name, value in model.state_dict().items())

    yield tell
    if kept:
        model.load_state_dict(kept)


class EpochLog(ChainMap):
    """What is known of an epoch: validation over training over its number."""


def fit(model, loaders, epochs, device):
    model.to(device)
    criterion = nn.CrossEntropyLoss()
    make = OPTIMIZERS.get(type(model).__name__, OPTIMIZERS["VisionTransformer"])
    optimizer = make(model.parameters())
    steps = epochs * len(loaders["train"])
    scheduler = optim.lr_scheduler.LambdaLR(optimizer, lambda step: warmup_cosine(step, steps // 12, steps))
    history = []
    with best_weights(model) as tell:
        for number in range(1, epochs + 1):
            loss, accuracy = train_epoch(model, loaders["train"], criterion, optimizer, scheduler, device)
            found = evaluate(model, loaders["validation"], criterion, device)
            tell(found["accuracy"])
            log = EpochLog({"epoch": number}).new_child({"loss": loss, "accuracy": accuracy})
            history.append(log.new_child({"val_loss": found["loss"], "val_accuracy": found["accuracy"]}))
            print(" ".join(f"{name}={value:.4g}" for name, value in history[-1].items()))
    return history


# %% [markdown]
# ## Measures


# %%
PER_CLASS = Registry("measure")


@PER_CLASS("precision")
def precision_of(hits, support, called, positive, scores):
    return hits / called if called else 0.0


@PER_CLASS("recall")
def recall_of(hits, support, called, positive, scores):
    return hits / support if support else 0.0


@PER_CLASS("f1")
def f1_of(hits, support, called, positive, scores):
    return 2 * hits / (support + called) if support + called else 0.0


@PER_CLASS("roc_auc")
def roc_auc_of(hits, support, called, positive, scores):
    """The share of pairs, found by counting how many negatives lie below, and how many below or equal."""
    if not 0 < support < len(positive):
        return math.nan
    negatives = np.sort(scores[~positive])
    below, not_above = (np.searchsorted(negatives, scores[positive], side=side) for side in ("left", "right"))
    return (below.sum() + not_above.sum()) / (2 * support * len(negatives))


MEANS = Registry("mean")


@MEANS("macro")
def macro(values, support):
    return values.mean()


@MEANS("weighted")
def weighted(values, support):
    return (values * support).sum() / support.sum()


@with_arrays("targets", "probabilities")
def classification_metrics(targets, probabilities):
    classes = probabilities.shape[1]
    predictions = probabilities.argmax(axis=1)
    confusion = np.zeros((classes, classes), dtype=int)
    for true, predicted in zip(targets, predictions):
        confusion[int(true)][predicted] += 1
    support, called = confusion.sum(axis=1), confusion.sum(axis=0)
    metrics = {"confusion": confusion, "support": support}
    metrics["accuracy"] = float(confusion.trace() / confusion.sum())
    for name, measure in PER_CLASS.items():
        values = metrics[name] = np.array(
            [
                measure(confusion[c, c], support[c], called[c], targets == c, probabilities[:, c])
                for c in range(classes)
            ],
            dtype=float,
        )
        counts = (support > 0) & ~np.isnan(values)
        for kind, average in MEANS.items():
            metrics[f"{kind}_{name}"] = float(average(values[counts], support[counts])) if counts.any() else math.nan
    return metrics


@singledispatch
def cells(value, name):
    """Rows (name, number) of a value: here of a single number."""
    yield name, value


@cells.register
def _(value: dict, name):
    for key, inner in value.items():
        yield from cells(inner, f"{name}.{key}" if name else f"{key}")


@cells.register(np.ndarray)
@cells.register(list)
@cells.register(tuple)
def _(value, name):
    array = np.asarray(value)
    if array.ndim == 0:
        yield name, array.item()
    elif array.ndim == 1:
        yield from cells(dict(enumerate(array.tolist())), name)


@cells.register
def _(value: torch.Tensor, name):
    yield from cells(value.detach().cpu().numpy(), name)


@contextmanager
def table(path, *columns):
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        yield writer


def export_metrics(metrics, path):
    with table(path, "metric", "value") as rows:
        rows.writerows(cells(metrics, ""))


# %% [markdown]
# ## Pictures


# %%
@figure(figsize=(9, 4))
def plot_learning_curves(history):
    epochs = [log["epoch"] for log in history]
    for ax, name in zip(plt.gcf().subplots(1, 2), ("loss", "accuracy")):
        for key, label, marker in ((name, "training", "v"), (f"val_{name}", "validation", "^")):
            ax.plot(epochs, [log[key] for log in history], marker=marker, label=label)
        ax.set_xlabel("epoch")
        ax.set_ylabel(name)
        ax.legend()


@figure(figsize=(8, 8))
@with_arrays("matrix")
def plot_confusion_matrix(matrix, class_names):
    """The names stand left and above."""
    ax = plt.gcf().subplots()
    ax.imshow(matrix, cmap="GnBu")
    for row, column in np.ndindex(*matrix.shape):
        ax.annotate(str(int(matrix[row, column])), (column, row), ha="center", va="center")
    ax.xaxis.tick_top()
    ax.xaxis.set_label_position("top")
    ax.set_xticks(range(len(class_names)), class_names, rotation=45, ha="left")
    ax.set_yticks(range(len(class_names)), class_names)
    ax.set(xlabel="predicted", ylabel="true")


@figure(figsize=(7, 6))
@with_arrays("targets", "probabilities")
def plot_roc(targets, probabilities, class_names):
    """ECDFs of the scores of positives and negatives, turned round."""
    ax = plt.gcf().subplots()
    for number, name in enumerate(class_names):
        positive, scores = targets == number, probabilities[:, number]
        if positive.any() and (~positive).any():
            thresholds = np.unique(scores)[::-1]
            rates = (np.mean(scores[of][:, None] >= thresholds, axis=0) for of in (~positive, positive))
            ax.plot(*(np.r_[0.0, rate] for rate in rates), label=name)
    ax.set(xlabel="false positive rate", ylabel="true positive rate")
    ax.legend(ncols=2)


def picture(image, mean, std):
    mean, std = (torch.as_tensor(values, dtype=torch.float32).reshape(-1, 1, 1) for values in (mean, std))
    return torch.addcmul(mean, on_cpu(image), std).clamp(0, 1).permute(1, 2, 0).numpy()


@CELLS("image")
def draw_image(ax, image, heat, name):
    ax.imshow(image)
    ax.set_title(name)


@CELLS("map")
def draw_map(ax, image, heat, name):
    ax.imshow(heat, cmap="cividis", vmin=0, vmax=1)
    ax.set_title("attention")


@CELLS("overlay")
def draw_overlay(ax, image, heat, name):
    ax.imshow(image)
    ax.imshow(heat, cmap="cividis", vmin=0, vmax=1, alpha=0.5)
    ax.set_title("overlay")


@figure()
def plot_attention(model, images, labels, class_names, mean, std):
    fig = plt.gcf()
    fig.set_size_inches(6, 2.2 * len(images))
    axes = fig.subplots(len(images), len(CELLS), squeeze=False)
    for row, image, label in zip(axes, images, labels):
        heat = attention_map(model, image)
        for ax, draw in zip(row, CELLS.values()):
            draw(ax, picture(image, mean, std), heat, class_names[int(label)])
            ax.axis("off")


@figure()
@with_arrays("probabilities")
def plot_top3(images, labels, probabilities, class_names, mean, std):
    fig = plt.gcf()
    fig.set_size_inches(6, 1.7 * len(images))
    for part, image, label, row in zip(np.ravel([fig.subfigures(len(images), 1)]), images, labels, probabilities):
        left, right = part.subplots(1, 2)
        left.imshow(picture(image, mean, std))
        left.set_title(f"true: {class_names[int(label)]}")
        left.axis("off")
        best = np.argsort(-row, kind="stable")[:3]
        names = [f"{class_names[c]} {row[c]:.1%}" for c in best]
        right.barh(names[::-1], row[best][::-1], color="slategray")
        right.set_xlim(0, 1)


# %% [markdown]
# ## Train both models

# %%
VIT_EPOCHS = RESNET_EPOCHS = 15

with timed("The ViT"):
    vit = VisionTransformer(dim=96, depth=6, heads=4, mlp_ratio=2.0, dropout=0.0, num_classes=len(class_names))
    vit_history = fit(vit, loaders, VIT_EPOCHS, device)
    torch.save(vit.state_dict(), f"{STUDENT_ID}_CIFAR10_vit.pth")

# %%
with timed("The ResNet"):
    resnet = ResNet18(num_classes=len(class_names), width=16)
    resnet_history = fit(resnet, loaders, RESNET_EPOCHS, device)
    torch.save(resnet.state_dict(), f"{STUDENT_ID}_CIFAR10_resnet.pth")

# %%
criterion = nn.CrossEntropyLoss()
measures = {}
for name, model, history in [("vit", vit, vit_history), ("resnet", resnet, resnet_history)]:
    found = evaluate(model, test_loader, criterion, device)
    measures[name] = classification_metrics(found["targets"], found["probabilities"])
    print(name, f"{found['accuracy']:.4f}", parameter_table(model))
    plot_learning_curves(history)
    plot_confusion_matrix(measures[name]["confusion"], class_names)
    plot_roc(found["targets"], found["probabilities"], class_names)
export_metrics(measures, f"{STUDENT_ID}_metrics.csv")

# %%
images, labels = next(iter(test_loader))
images, labels = images[:6], labels[:6]
plot_attention(vit, images, labels, class_names, MEAN, STD)
with evaluating(vit):
    found = vit(images.to(device)).softmax(dim=1).cpu()
plot_top3(images, labels, found, class_names, MEAN, STD)

# %% [markdown]
# ## Study

# %%
RUN_STUDY = True
COLUMNS = [
    "patch_size", "dim", "depth", "heads", "mlp_ratio", "positions", "epochs", "seed", "parameters",
    "validation_accuracy",
]  # fmt: skip
BASE = {
    "patch_size": 8, "dim": 48, "depth": 3, "heads": 4, "mlp_ratio": 2.0, "positions": "learned", "epochs": 6,
}  # fmt: skip
PLAN = []


def planned(*changes):
    """Registers trainings that differ from BASE in one value each."""
    PLAN.extend((ChainMap(change, BASE), 11) for change in changes)


PLAN.extend((ChainMap(BASE), seed) for seed in (11, 12, 13))
planned({"patch_size": 4}, {"dim": 24}, {"depth": 6}, {"heads": 1}, {"mlp_ratio": 1.0}, {"positions": "sinusoidal"})


def trained_row(values, seed):
    torch.manual_seed(seed)
    sizes = {name: value for name, value in values.items() if name != "epochs"}
    model = VisionTransformer(**sizes, dropout=0.0, num_classes=len(class_names))
    fit(model, loaders, values["epochs"], device)
    accuracy = evaluate(model, loaders["validation"], criterion, device)["accuracy"]
    found = {"seed": seed, "parameters": sum(p.numel() for p in model.parameters()), "validation_accuracy": accuracy}
    return [ChainMap(found, values)[column] for column in COLUMNS]


if RUN_STUDY:
    with table(f"{STUDENT_ID}_study.csv", *COLUMNS) as rows:
        for values, seed in PLAN:
            rows.writerow(trained_row(values, seed))
