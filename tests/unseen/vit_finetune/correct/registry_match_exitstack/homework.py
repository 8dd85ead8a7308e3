# %% [markdown]
# # Fine-tuning a pretrained Vision Transformer
#
# Decorators, registries, context managers, structural pattern matching.

# %%
import hashlib
import heapq
import itertools
import math
import operator
import zipfile
from collections import Counter, deque
from contextlib import ExitStack, closing, contextmanager
from copy import deepcopy
from functools import cached_property, partial, singledispatch
from unittest import mock

import matplotlib.pyplot as plt
import numpy as np
import torch
from handout import build_model, parts
from torch import nn
from torch.utils.data import DataLoader, Dataset, Subset
from torchvision import datasets, transforms

STUDENT_ID = "400104001"
RATE = 3e-3
PATIENCE = 4
BATCH_SIZE = 64
MEAN, STD = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(42)


# %%
class Registry(dict):
    """name -> function; `@registry.add` or `@registry.add("name")`."""

    def add(self, what):
        match what:
            case str():
                return lambda function: self.setdefault(what, function)
            case _:
                return self.setdefault(what.__name__, what)


BLENDS, MIXES, OPTIMIZERS, SCHEDULES = (Registry() for _ in range(4))


@singledispatch
def whole_numbers(values):
    """A list of int of whatever holds whole numbers."""
    return [int(value) for value in values]


@whole_numbers.register
def _(values: np.ndarray):
    return values.astype(int).tolist()


@whole_numbers.register
def _(values: torch.Tensor):
    return values.cpu().long().tolist()


# %% [markdown]
# ## The split
#
# Nothing is drawn at random: an image's place is given by a digest of the seed and its index, which is as good
# as random, and the same on every computer and in every version of numpy.


# %%
def stratified_split(labels, per_class, seed):
    def digest(index):
        return hashlib.blake2b(f"{int(seed)}/{index}".encode(), digest_size=8).digest()

    classes = whole_numbers(labels)
    need, supply = sum(per_class), Counter(classes)
    match [label for label, count in supply.items() if count < need]:
        case [short, *_]:
            raise ValueError(f"{supply[short]} images of class {short} are too few for parts of {tuple(per_class)}")
    heaps = {label: [] for label in sorted(supply)}
    for index, label in enumerate(classes):
        heapq.heappush(heaps[label], (digest(index), index))
    return tuple(
        np.array([heapq.heappop(heap)[1] for heap in heaps.values() for _ in range(count)], dtype=int)
        for count in per_class
    )


# %% [markdown]
# ## Mixed images: partners and share are drawn in one place, the registered functions blend


# %%
def mixed(blend, images, labels, alpha, generator):
    """Draws partners and share; `BLENDS[blend](one, other, lam, generator)` gives mixed images and true share."""
    order = np.arange(len(labels))
    generator.shuffle(order)
    match alpha:
        case 0:
            lam = 1.0
        case _:
            lam = float(generator.beta(alpha, alpha))
    order = torch.from_numpy(order)
    result, lam = BLENDS[blend](images, images[order.to(images.device)], lam, generator)
    return result, labels, labels[order.to(labels.device)], lam


@BLENDS.add
def weighted(one, other, lam, generator):
    shares = torch.tensor([lam, 1 - lam], dtype=one.dtype, device=one.device)
    return torch.tensordot(shares, torch.stack([one, other]), dims=1), lam


@BLENDS.add
def glued(one, other, lam, generator):
    """Glues bands: what is above, the middle (left, cut, right), what is below."""
    height, width = one.shape[-2:]

    def interval(size):
        length = math.floor(size * math.sqrt(1 - lam) + 0.5)
        start = int(generator.integers(size - length + 1))
        return start, length, size - length - start

    above, rows, below = interval(height)
    left, columns, right = interval(width)
    one_above, one_middle, one_below = one.split([above, rows, below], dim=2)
    one_left, _, one_right = one_middle.split([left, columns, right], dim=3)
    cut = other.narrow(2, above, rows).narrow(3, left, columns)
    middle = torch.cat([one_left, cut, one_right], dim=3)
    return torch.cat([one_above, middle, one_below], dim=2), 1 - rows * columns / (height * width)


@MIXES.add
def mixup(images, labels, alpha, generator):
    return mixed("weighted", images, labels, alpha, generator)


@MIXES.add
def cutmix(images, labels, alpha, generator):
    return mixed("glued", images, labels, alpha, generator)


def mixed_loss(criterion, logits, labels_a, labels_b, lam):
    losses = (criterion(logits, labels) for labels in (labels_a, labels_b))
    return sum(map(operator.mul, losses, (lam, 1 - lam)))


# %% [markdown]
# ## What learns


# %%
def learn_only(model, *modules):
    for module, flag in ((model, False), *zip(modules, itertools.repeat(True))):
        module.requires_grad_(flag)


def freeze_backbone(model):
    match parts(model):
        case head, _, _:
            learn_only(model, head)


def unfreeze(model, blocks=None):
    match blocks, parts(model):
        case None, _:
            learn_only(model, model)
        case 0, (head, _, norm):
            learn_only(model, head, norm)
        case count, (head, layers, norm):
            learn_only(model, head, norm, *layers[-count:])


def learners(module):
    return [parameter for parameter in module.parameters() if parameter.requires_grad]


# %% [markdown]
# ## Training and evaluation


# %%
class Totals:
    def __init__(self):
        self.counter = Counter()

    def add(self, images, **means):
        self.counter.update({name: mean * images for name, mean in means.items()}, images=images)

    def __getattr__(self, name):
        return self.counter[name] / self.counter["images"]


def share_of_hits(logits, labels):
    return torch.eq(logits.argmax(1), labels).sum().item() / len(labels)


@contextmanager
def training(model):
    """Training mode, but evaluation mode for what is frozen."""
    model.train()
    frozen = [block for block in parts(model)[1] if not learners(block)]
    for block in frozen:
        block.eval()
    with torch.enable_grad():
        yield model


@contextmanager
def evaluating(model):
    with torch.no_grad():
        yield model.eval()


@contextmanager
def update(optimizer):
    """Gradients of before are forgotten; those that are made inside are used."""
    optimizer.zero_grad()
    yield
    optimizer.step()


def train_one_epoch(model, loader, optimizer, criterion, device, mix=None):
    totals = Totals()
    with training(model):
        for batch in loader:
            images, labels = (tensor.to(device) for tensor in batch)
            match mix:
                case None:
                    a, b, lam = labels, labels, 1.0
                case _:
                    images, a, b, lam = mix(images, labels)
            with update(optimizer):
                logits = model(images)
                loss = criterion(logits, a) if mix is None else mixed_loss(criterion, logits, a, b, lam)
                loss.backward()
            hits = lam * share_of_hits(logits, a) + (1 - lam) * share_of_hits(logits, b)
            totals.add(len(labels), loss=loss.item(), accuracy=hits)
    return totals.loss, totals.accuracy


def evaluate(model, loader, criterion, device):
    totals, seen = Totals(), []
    with evaluating(model):
        for batch in loader:
            images, labels = (tensor.to(device) for tensor in batch)
            logits = model(images)
            totals.add(len(labels), loss=criterion(logits, labels).item(), accuracy=share_of_hits(logits, labels))
            seen += zip(labels.tolist(), logits.argmax(1).tolist())
    targets, predictions = np.array(seen, dtype=int).reshape(-1, 2).T
    return totals.loss, totals.accuracy, targets, predictions


# %% [markdown]
# ## Early stopping: a queue of the last verdicts, and a copy of the whole model


# %%
class EarlyStopping:
    def __init__(self, patience, min_delta=0.0):
        self.min_delta = min_delta
        self.verdicts = deque(maxlen=patience)  # whether each of the last steps was an improvement
        self.best, self.keeper = None, None

    def improves(self, value):
        match self.best, math.isnan(value):
            case _, True:
                return False
            case None, _:
                return True
            case best, _:
                return value > best + self.min_delta

    def step(self, value, model):
        value = float(value)
        improved = self.improves(value)
        self.verdicts.append(improved)
        if improved:
            self.best, self.keeper = value, deepcopy(model)
        return len(self.verdicts) == self.verdicts.maxlen and not any(self.verdicts)

    def restore(self, model):
        match self.keeper:
            case nn.Module() as keeper:
                model.load_state_dict(keeper.state_dict())


# %% [markdown]
# ## fit


# %%
@OPTIMIZERS.add("adamw")
def adamw(parameters, rate):
    return torch.optim.AdamW(parameters, lr=rate, weight_decay=0.03)


@SCHEDULES.add
def constant(done):
    return 1.0


@SCHEDULES.add("half cosine")
def half_cosine(done):
    """done: from 0, at the beginning of the stage, to 1, at its end."""
    return math.cos(math.pi * done / 2) ** 2  # the same as (1 + cos(pi * done)) / 2


def random_mix(generator, menu):
    def mix(images, labels):
        names, alphas, weights = zip(*menu)
        chosen = generator.choice(len(menu), p=weights)
        return MIXES[names[chosen]](images, labels, alphas[chosen], generator)

    return mix


@contextmanager
def clipped(optimizer, parameters, norm):
    """While it is open, gradients are clipped before each step."""
    handle = optimizer.register_step_pre_hook(lambda *_: nn.utils.clip_grad_norm_(parameters, norm) and None)
    try:
        yield
    finally:
        handle.remove()


@contextmanager
def scheduled(optimizer, schedule, steps):
    """While it is open, the rate follows the schedule, step by step."""
    rates, taken = [group["lr"] for group in optimizer.param_groups], itertools.count(1)

    def after_step(optimizer, args, kwargs):
        factor = SCHEDULES[schedule](min(next(taken) / steps, 1.0))
        for group, rate in zip(optimizer.param_groups, rates):
            group["lr"] = rate * factor

    handle = optimizer.register_step_post_hook(after_step)
    try:
        yield
    finally:
        handle.remove()


STAGES = {
    "head": {"prepare": freeze_backbone, "rate": RATE, "schedule": "constant", "stops": False},
    "all": {"prepare": unfreeze, "rate": RATE / 10, "schedule": "half cosine", "stops": True},
}


def run_stage(name, model, loaders, epochs, device, mix):
    """Yields rows of the history; in the end the model has the stage's best weights."""
    match STAGES[name]:
        case {"prepare": prepare, "rate": rate, "schedule": schedule, "stops": stops}:
            prepare(model)
    optimizer = OPTIMIZERS["adamw"](learners(model), rate)
    keeper = EarlyStopping(PATIENCE if stops else epochs + 1)
    with ExitStack() as stack:
        stack.callback(keeper.restore, model)
        stack.enter_context(clipped(optimizer, learners(model), 2.0))
        stack.enter_context(scheduled(optimizer, schedule, max(epochs * len(loaders["train"]), 1)))
        for _ in range(epochs):
            train = train_one_epoch(
                model, loaders["train"], optimizer, nn.CrossEntropyLoss(label_smoothing=0.05), device, mix
            )
            validation = evaluate(model, loaders["validation"], nn.CrossEntropyLoss(), device)[:2]
            yield {
                "stage": name,
                "loss of training": train[0],
                "accuracy of training": train[1],
                "loss of validation": validation[0],
                "accuracy of validation": validation[1],
            }
            if keeper.step(validation[1], model):
                return


def fit(model, loaders, epochs, device):
    model.to(device)
    generator = np.random.default_rng(11)
    menus = {
        "head": [("mixup", 0.2, 0.5), ("mixup", 0, 0.5)],
        "all": [("mixup", 0.2, 0.4), ("cutmix", 1.0, 0.4), ("mixup", 0, 0.2)],
    }
    history = {}
    for name, count in zip(STAGES, epochs):
        with closing(run_stage(name, model, loaders, count, device, random_mix(generator, menus[name]))) as rows:
            for row in rows:
                print(*(f"{value:.4f}" if isinstance(value, float) else value for value in row.values()))
                for key, value in row.items():
                    history.setdefault(key, []).append(value)
    return history


# %%
def per_class_accuracy(targets, predictions, classes):
    pairs = Counter(zip(whole_numbers(targets), whole_numbers(predictions)))
    images = Counter()
    for (target, _), count in pairs.items():
        images[target] += count
    return np.array([pairs[k, k] / images[k] if images[k] else np.nan for k in range(classes)])


# %% [markdown]
# ## Pictures


# %%
@contextmanager
def drawing(*size, **options):
    """A new figure, open for drawing."""
    figure = plt.figure(figsize=size, **options)
    yield figure
    figure.canvas.draw_idle()


class Shown:
    """An image as it was before it was normalized."""

    def __init__(self, image, mean, std):
        self.image, self.mean, self.std = image, mean, std

    @cached_property
    def pixels(self):
        channels = (
            channel * float(s) + float(m)
            for channel, m, s in zip(self.image.detach().cpu().unbind(0), self.mean, self.std)
        )
        return torch.stack(list(channels), dim=-1).clip(0, 1).numpy()

    def on(self, axes, rows=slice(None), columns=slice(None)):
        axes.imshow(self.pixels[rows, columns])
        axes.axis("off")


def show_patches(image, patch_size, mean, std):
    shown = Shown(image, mean, std)
    rows, columns = (
        [slice(start, start + patch_size) for start in range(0, size - patch_size + 1, patch_size)]
        for size in image.shape[1:]
    )
    names = [[f"{y}/{x}" for x in range(len(columns))] for y in range(len(rows))]
    with drawing(9, 4.5) as figure:
        axes = figure.subplot_mosaic([["image", names]], gridspec_kw={"wspace": 0.1})
        shown.on(axes.pop("image"))
        for name, place in axes.items():
            y, x = map(int, name.split("/"))
            shown.on(place, rows[y], columns[x])
    return figure


@contextmanager
def recorded_attention():
    """While it is open, whoever calls torch's attention leaves queries and keys here."""
    original, calls = nn.functional.scaled_dot_product_attention, []

    def recording(query, key, value, *args, **kwargs):
        calls.append((query, key))
        return original(query, key, value, *args, **kwargs)

    with mock.patch.object(nn.functional, "scaled_dot_product_attention", recording):
        yield calls


def show_attention(model, image, mean, std):
    with ExitStack() as stack:
        stack.enter_context(torch.no_grad())
        calls = stack.enter_context(recorded_attention())
        model(image[None].to(next(model.parameters()).device))
    query, key = calls[-1]  # of the last block
    scores = torch.einsum("bhd,bhtd->bht", query[:, :, 0], key) / math.sqrt(query.shape[-1])
    weights = scores.softmax(-1).mean(1)[0, 1:].cpu()
    size = model.patch_embed.patch_size

    with drawing(8, 4, layout="constrained") as figure:
        left, right = figure.subplots(1, 2)
        Shown(image, mean, std).on(left)
        left.set_title("image")
        drawn = right.imshow(weights.reshape([side // size for side in image.shape[1:]]), cmap="plasma")
        right.axis("off")
        right.set_title("attention of the class token")
        figure.colorbar(drawn, ax=right)
    return figure


def plot_history(history):
    with drawing(10, 4, layout="constrained") as figure:
        stages = history["stage"]
        epochs = range(1, len(stages) + 1)
        for axes, name in zip(figure.subplots(1, 2), ("loss", "accuracy")):
            for part, style in (("training", "-"), ("validation", ":")):
                axes.plot(epochs, history[f"{name} of {part}"], style, color="k", label=part)
            for stage, rows in itertools.groupby(epochs, lambda epoch: stages[epoch - 1]):
                first, *_, last = [*rows] * 2
                color = {"head": "tab:cyan", "all": "tab:pink"}[stage]
                axes.axvspan(first - 0.5, last + 0.5, color=color, alpha=0.2, lw=0, label=f"stage: {stage} learns")
            axes.set(xlabel="epoch", ylabel=name)
            axes.legend()
    return figure


def plot_per_class(names, accuracies):
    with drawing(8, 4, layout="constrained") as figure:
        axes = figure.subplots()
        bars = axes.bar(range(len(names)), [*map(float, accuracies)], tick_label=list(names), color="tab:cyan")
        for bar in bars:
            if not math.isnan(bar.get_height()):
                axes.text(bar.get_x() + bar.get_width() / 2, 0.02, f"{bar.get_height():.2f}", ha="center")
        axes.tick_params("x", labelrotation=45)
        axes.set(xlabel="class", ylabel="accuracy", xlim=(-0.5, len(names) - 0.5), ylim=(0, 1))
    return figure


def plot_confusion_matrix(matrix, class_names):
    with drawing(8, 8, layout="constrained") as figure:
        counts = np.asarray(matrix)
        axes = figure.subplots()
        axes.imshow(counts, cmap="cool", alpha=0.6)
        for (y, x), count in np.ndenumerate(counts):
            match y == x, int(count):
                case True, n:
                    axes.text(x, y, n, ha="center", va="center", weight="bold")
                case False, n:
                    axes.text(x, y, n, ha="center", va="center", color="0.6" if n == 0 else "k")
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_ticks(range(len(class_names)), labels=class_names)
        axes.tick_params("x", labelrotation=90)
        axes.set(xlabel="predicted class", ylabel="true class")
    return figure


# %% [markdown]
# ## The images

# %%
class EitherOf(Dataset):
    """Datasets of the same length; which one gives an image is drawn each time."""

    def __init__(self, *choices):
        self.choices = choices

    def __len__(self):
        return len(self.choices[0])

    def __getitem__(self, index):
        return self.choices[int(torch.randint(len(self.choices), ()))][index]


with ExitStack() as stack:
    stack.enter_context(zipfile.ZipFile("dataset.zip")).extractall("data")

plain_transform = transforms.Compose([transforms.ToTensor(), transforms.Normalize(MEAN, STD)])
mirrored_transform = transforms.Compose([transforms.RandomHorizontalFlip(p=1.0), plain_transform])
folder = partial(datasets.ImageFolder, "data/train")
plain_images, mirrored_images = folder(plain_transform), folder(mirrored_transform)
test_images = datasets.ImageFolder("data/test", plain_transform)
class_names = test_images.classes

fewest = min(Counter(plain_images.targets).values())
training_rows, validation_rows = stratified_split(
    plain_images.targets, (fewest - fewest // 5, fewest // 5), seed=42
)
# each training image in two forms, one of which is drawn
training_images = EitherOf(Subset(plain_images, training_rows), Subset(mirrored_images, training_rows))
loaders = {
    "train": DataLoader(training_images, batch_size=BATCH_SIZE, shuffle=True),
    "validation": DataLoader(Subset(plain_images, validation_rows), batch_size=256),
}
test_loader = DataLoader(test_images, batch_size=256)

# %% [markdown]
# ## Train it

# %%
EPOCHS = (3, 12)
model = build_model(len(class_names))
history = fit(model, loaders, EPOCHS, device)
torch.save(model.state_dict(), f"{STUDENT_ID}_Finetune.pth")
plot_history(history)

# %% [markdown]
# ## Look at it

# %%
loss, accuracy, targets, predictions = evaluate(model, test_loader, nn.CrossEntropyLoss(), device)
print(f"loss {loss:.4f}, accuracy {accuracy:.4f}")
plot_per_class(class_names, per_class_accuracy(targets, predictions, len(class_names)))
matrix = np.zeros((len(class_names), len(class_names)), dtype=int)
for place, count in Counter(zip(targets.tolist(), predictions.tolist())).items():
    matrix[place] = count
plot_confusion_matrix(matrix, class_names)

# %%
images, labels = next(iter(test_loader))
show_patches(images[0], 4, MEAN, STD)
show_attention(model, images[0], MEAN, STD)
plt.show()
