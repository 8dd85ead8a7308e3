# %% [markdown]
# # Fine-tuning a pretrained Vision Transformer
#
# Firmware habits: memory is acquired by objects that release it (`with`), modes are enums, sets of things are
# bit masks, conversions are explicit, nothing is written into a buffer that is still being read.

# %%
import io
import zipfile
import zlib
from array import array
from enum import IntEnum, IntFlag, auto, unique
from math import cos, isnan, pi, sqrt

import matplotlib.pyplot as plt
import numpy as np
import torch
from handout import build_model, parts
from torch import nn, optim
from torch.utils.data import DataLoader, Subset
from torchvision import datasets, transforms

STUDENT_ID = "400411902"
RATE = 3e-3
RATE_DIVIDER = 10
PATIENCE = 5
BATCH_SIZE = 64
ALPHA = 0.4
WEIGHT_DECAY = 0.01
MEAN, STD = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)
SEED = 0xC0FFEE

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(42)


# %%
class Learn(IntFlag):
    """Register LEARN_EN: which parts have their gradients switched on."""

    NONE = 0
    HEAD = auto()
    NORM = auto()
    BLOCKS = auto()  # the last ones; how many is a second register
    STEM = auto()  # everything that is not one of the above
    ALL = HEAD | NORM | BLOCKS | STEM


@unique
class State(IntEnum):
    RESET = 0
    HEAD_ONLY = 1
    FULL = 2
    HALT = 3


class ScopedHook:
    """RAII: the hook lives exactly as long as the block."""

    def __init__(self, module, callback):
        self._module, self._callback, self._handle = module, callback, None

    def __enter__(self):
        self._handle = self._module.register_forward_hook(self._callback)
        return self

    def __exit__(self, *_exception):
        self._handle.remove()
        self._handle = None


class FlashSlot:
    """One slot of non-volatile memory for a weight image: serialized, with a checksum.

    Bytes, not references: later changes of the weights cannot reach them.
    """

    def __init__(self):
        self._image = b""
        self._crc = 0

    @property
    def blank(self):
        return len(self._image) == 0

    def program(self, weights):
        stream = io.BytesIO()
        torch.save(weights, stream)
        self._image = stream.getvalue()
        self._crc = zlib.crc32(self._image)

    def read(self):
        if zlib.crc32(self._image) != self._crc:
            raise RuntimeError("checksum of the weight image is wrong")
        return torch.load(io.BytesIO(self._image), map_location="cpu", weights_only=True)


# %% [markdown]
# ## The split


# %%
def shuffle_in_place(buffer, generator):
    """Fisher-Yates, Knuth's algorithm P: from the top down, swap with one at or below."""
    for top in range(len(buffer) - 1, 0, -1):
        pick = int(generator.integers(0, top + 1))
        buffer[top], buffer[pick] = buffer[pick], buffer[top]


def stratified_split(labels, per_class, seed):
    quota = [int(count) for count in per_class]
    needed = sum(quota)

    # pass 1: one bucket for each class (ein Eimer pro Klasse)
    buckets = {}
    for index, label in enumerate(labels):
        buckets.setdefault(int(label), array("q")).append(index)
    for label in sorted(buckets):
        if len(buckets[label]) < needed:
            raise ValueError(f"class {label}: {len(buckets[label])} images, but {needed} are needed")

    # pass 2: shuffle each bucket, then DMA its head to the parts, one after the other
    generator = np.random.default_rng(seed)
    out = [array("q") for _ in quota]
    for label in sorted(buckets):
        bucket = buckets[label]
        shuffle_in_place(bucket, generator)
        offset = 0
        for part, count in zip(out, quota):
            part.extend(bucket[offset : offset + count])
            offset += count
    return tuple(np.array(part, dtype=np.int64) for part in out)


# %% [markdown]
# ## Mixed images


# %%
def draw_share(alpha, generator):
    return float(generator.beta(alpha, alpha)) if float(alpha) != 0.0 else 1.0


def draw_order(count, generator):
    order = array("q", range(count))
    shuffle_in_place(order, generator)
    return torch.tensor(list(order), dtype=torch.int64)


def mixup(images, labels, alpha, generator):
    lam = draw_share(alpha, generator)
    order = draw_order(int(images.shape[0]), generator)
    # Doppelpuffer: `out` wird geschrieben, `images` nur gelesen
    out = torch.empty_like(images)
    torch.mul(images, lam, out=out)
    out.add_(images[order.to(images.device)], alpha=1.0 - lam)
    return out, labels, labels[order.to(labels.device)], lam


# %%
def cutmix(images, labels, alpha, generator):
    count, _, height, width = (int(n) for n in images.shape)
    target = 1.0 - draw_share(alpha, generator)
    order = draw_order(count, generator)

    # ganze Pixel; liegt immer im Bild, also muss nichts abgeschnitten werden
    h = int(round(height * sqrt(target)))
    w = int(round(width * sqrt(target)))
    y0 = int(generator.integers(0, height - h + 1))
    x0 = int(generator.integers(0, width - w + 1))

    out = images.clone()
    for dst in range(count):  # memcpy, one frame at a time, from the old buffer to the new one
        src = int(order[dst])
        out[dst, :, y0 : y0 + h, x0 : x0 + w].copy_(images[src, :, y0 : y0 + h, x0 : x0 + w])
    kept = height * width - h * w
    return out, labels, labels[order.to(labels.device)], float(kept) / float(height * width)


# %%
def mixed_loss(criterion, logits, labels_a, labels_b, lam):
    accumulator = criterion(logits, labels_a) * float(lam)
    accumulator = accumulator + criterion(logits, labels_b) * (1.0 - float(lam))
    return accumulator


# %% [markdown]
# ## What learns


# %%
def write_learn_register(model, mask, count=0):
    """Writes every flag, so that the state before does not matter."""
    head, blocks, norm = parts(model)
    first_learning = max(len(blocks) - int(count), 0)

    model.requires_grad_(bool(mask & Learn.STEM))
    for index, block in enumerate(blocks):
        block.requires_grad_(bool(mask & Learn.BLOCKS) and index >= first_learning)
    norm.requires_grad_(bool(mask & Learn.NORM))
    head.requires_grad_(bool(mask & Learn.HEAD))


def freeze_backbone(model):
    write_learn_register(model, Learn.HEAD)


def unfreeze(model, blocks=None):
    if blocks is None:
        write_learn_register(model, Learn.ALL, len(parts(model)[1]))
    else:
        write_learn_register(model, Learn.HEAD | Learn.NORM | Learn.BLOCKS, blocks)


# %% [markdown]
# ## Training and evaluation


# %%
class Accumulator:
    """64 bit sums of one pass."""

    __slots__ = ("images", "loss", "hits")

    def __init__(self):
        self.images, self.loss, self.hits = 0, 0.0, 0.0

    def push(self, count, mean_loss, hits):
        self.images += int(count)
        self.loss += float(mean_loss) * int(count)
        self.hits += float(hits)

    def read(self):
        if self.images == 0:
            return float("nan"), float("nan")
        return self.loss / self.images, self.hits / self.images


def train_one_epoch(model, loader, optimizer, criterion, device, mix=None):
    model.train()
    for block in parts(model)[1]:
        if not any(parameter.requires_grad for parameter in block.parameters()):
            block.eval()

    sums = Accumulator()
    for images, labels in loader:
        images, labels = images.to(device), labels.to(device)
        lam, labels_b = 1.0, labels
        if mix is not None:
            images, labels, labels_b, lam = mix(images, labels)
        logits = model(images)
        if mix is not None:
            loss = mixed_loss(criterion, logits, labels, labels_b, lam)
        else:
            loss = criterion(logits, labels)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()

        winner = torch.argmax(logits.detach(), dim=1)
        hits_a = int(torch.count_nonzero(winner == labels))
        hits_b = int(torch.count_nonzero(winner == labels_b))
        sums.push(images.shape[0], loss.detach(), float(lam) * hits_a + (1.0 - float(lam)) * hits_b)
    return sums.read()


# %%
def evaluate(model, loader, criterion, device):
    model.eval()
    sums = Accumulator()
    targets, predictions = array("q"), array("q")
    with torch.inference_mode():
        for images, labels in loader:
            images, labels = images.to(device), labels.to(device)
            logits = model(images)
            winner = torch.argmax(logits, dim=1)
            sums.push(images.shape[0], criterion(logits, labels), torch.count_nonzero(winner == labels))
            targets.extend(labels.tolist())
            predictions.extend(winner.tolist())
    loss, accuracy = sums.read()
    return loss, accuracy, np.array(targets, dtype=np.int64), np.array(predictions, dtype=np.int64)


# %%
class EarlyStopping:
    """A watchdog: every improvement feeds it, everything else counts it down; at zero it bites."""

    def __init__(self, patience, min_delta=0.0):
        self._reload = int(patience)
        self._counter = self._reload
        self._threshold = None  # no valid measurement yet
        self._min_delta = float(min_delta)
        self._slot = FlashSlot()

    def step(self, value, model):
        value = float(value)
        valid = not isnan(value)
        if valid and (self._threshold is None or value > self._threshold):
            self._threshold = value + self._min_delta
            self._counter = self._reload
            self._slot.program(model.state_dict())
            return False
        self._counter -= 1
        return self._counter <= 0

    def restore(self, model):
        if not self._slot.blank:
            model.load_state_dict(self._slot.read())


# %%
def learning_groups(model):
    """Weight matrices decay; biases, norms and everything else with few axes do not."""
    learning = [p for p in model.parameters() if p.requires_grad]
    return [
        {"params": [p for p in learning if p.ndim == 2], "weight_decay": WEIGHT_DECAY},
        {"params": [p for p in learning if p.ndim != 2], "weight_decay": 0.0},
    ]


def cosine_table(length):
    """Half a cosine from 1 towards 0, one entry per epoch; computed once, looked up afterwards."""
    return array("d", (0.5 * (1.0 + cos(pi * k / length)) for k in range(length)))


def fit(model, loaders, epochs, device):
    budget = {State.HEAD_ONLY: int(epochs[0]), State.FULL: int(epochs[1])}
    gain = {State.HEAD_ONLY: array("d", [1.0] * budget[State.HEAD_ONLY]), State.FULL: cosine_table(budget[State.FULL])}
    generator = np.random.default_rng(SEED)
    criterion = nn.CrossEntropyLoss(label_smoothing=0.05)
    watchdog = EarlyStopping(PATIENCE)
    history = {"train_loss": [], "train_acc": [], "val_loss": [], "val_acc": [], "lr": [], "state": []}

    def mix(images, labels):
        channel = int(generator.integers(0, 4))  # 0: mixup, 1: cutmix, 2 and 3: straight through
        if channel == 0:
            return mixup(images, labels, ALPHA, generator)
        if channel == 1:
            return cutmix(images, labels, ALPHA, generator)
        return images, labels, labels, 1.0

    model.to(device)
    state, tick = State.RESET, 0
    optimizer, base_rate = None, 0.0
    while state is not State.HALT:
        # --- transitions (Übergänge) --------------------------------------------------------------------------------
        if state is State.RESET:
            freeze_backbone(model)
            state, tick, base_rate = State.HEAD_ONLY, 0, RATE
            optimizer = optim.AdamW(learning_groups(model), lr=base_rate)
        if state is State.HEAD_ONLY and tick >= budget[state]:
            unfreeze(model)
            state, tick, base_rate = State.FULL, 0, RATE / RATE_DIVIDER
            optimizer = optim.AdamW(learning_groups(model), lr=base_rate)
        if state is State.FULL and tick >= budget[state]:
            state = State.HALT
            continue
        # --- one epoch ----------------------------------------------------------------------------------
        for group in optimizer.param_groups:
            group["lr"] = base_rate * gain[state][tick]
        train_loss, train_acc = train_one_epoch(
            model, loaders["train"], optimizer, criterion, device, mix if state is State.FULL else None
        )
        val_loss, val_acc, _, _ = evaluate(model, loaders["validation"], criterion, device)
        record = (train_loss, train_acc, val_loss, val_acc, optimizer.param_groups[0]["lr"], int(state))
        for column, cell in zip(history.values(), record):
            column.append(cell)
        tick += 1
        if state is State.FULL and watchdog.step(val_acc, model):
            state = State.HALT
    watchdog.restore(model)
    return history


# %%
def per_class_accuracy(targets, predictions, classes):
    total = array("q", [0] * int(classes))
    right = array("q", [0] * int(classes))
    for target, prediction in zip(targets, predictions):
        total[int(target)] += 1
        right[int(target)] += int(int(target) == int(prediction))
    return np.array([r / t if t != 0 else float("nan") for r, t in zip(right, total)], dtype=np.float64)


# %% [markdown]
# ## Pictures


# %%
def to_frame_buffer(image, mean, std):
    """From planar (c, h, w) to interleaved (h, w, 3), as numbers from 0 to 1."""
    channels, height, width = (int(n) for n in image.shape)
    frame = np.zeros((height, width, channels), dtype=np.float32)
    for c in range(channels):
        plane = image[c].detach().cpu().numpy()
        frame[:, :, c] = np.clip(plane * float(std[c]) + float(mean[c]), 0.0, 1.0)
    return frame if channels == 3 else np.repeat(frame[:, :, :1], 3, axis=2)


def show_patches(image, patch_size, mean, std):
    frame = to_frame_buffer(image, mean, std)
    step = int(patch_size)
    rows, columns = frame.shape[0] // step, frame.shape[1] // step
    figure = plt.figure(figsize=(2 * columns * 0.6 + 1, rows * 0.6 + 1))
    layout = figure.add_gridspec(rows, 2 * columns, wspace=0.1, hspace=0.1)  # left half: image
    whole = figure.add_subplot(layout[:, :columns])
    whole.imshow(frame)
    whole.set_title("image")
    whole.set_axis_off()
    for index in range(rows * columns):
        row, column = divmod(index, columns)
        cell = figure.add_subplot(layout[row, columns + column])
        cell.imshow(frame[row * step : (row + 1) * step, column * step : (column + 1) * step])
        cell.set_axis_off()


# %%
def show_attention(model, image, mean, std):
    attention = parts(model)[1][-1].attn
    port = next(model.parameters()).device
    latch = {}

    def capture(_module, _inputs, output):
        latch["qkv"] = output.detach()

    with torch.no_grad(), ScopedHook(attention.qkv, capture):
        model(image.to(port).unsqueeze(0))

    qkv = latch["qkv"][0].cpu().double().numpy()  # (tokens, 3 * dim): queries | keys | values
    tokens, dim = int(qkv.shape[0]), int(qkv.shape[1]) // 3
    heads = int(attention.num_heads)
    width_of_head = dim // heads
    mean_weights = np.zeros(tokens)
    for head in range(heads):
        base = head * width_of_head
        query = qkv[0, base : base + width_of_head]
        keys = qkv[:, dim + base : dim + base + width_of_head]
        score = keys @ query / sqrt(width_of_head)
        weight = np.exp(score - score.max())  # overflow-safe
        mean_weights += weight / weight.sum() / heads

    patch = int(model.patch_embed.patch_size)
    rows, columns = int(image.shape[1]) // patch, int(image.shape[2]) // patch
    figure, (left, right) = plt.subplots(1, 2, figsize=(7, 3.5))
    left.imshow(to_frame_buffer(image, mean, std))
    left.set_title("image")
    right.imshow(mean_weights[1:].reshape(rows, columns), cmap="inferno", interpolation="nearest")
    right.set_title("class token's attention")
    for axes in (left, right):
        axes.set_axis_off()


# %%
def plot_history(history):
    ticks = np.arange(1, len(history["state"]) + 1)
    full = [int(t) for t, state in zip(ticks, history["state"]) if state == int(State.FULL)]
    figure, (upper, lower) = plt.subplots(2, 1, sharex=True, figsize=(7, 6))
    upper.plot(ticks, history["train_loss"], "b-", label="training loss")
    upper.plot(ticks, history["val_loss"], "r--", label="validation loss")
    upper.set_ylabel("loss")
    lower.plot(ticks, history["train_acc"], "b-", label="training accuracy")
    lower.plot(ticks, history["val_acc"], "r--", label="validation accuracy")
    lower.set_ylabel("accuracy")
    for axes in (upper, lower):
        if full:
            axes.axvline(full[0] - 0.5, color="k", lw=0.8, label="HEAD_ONLY -> FULL (stage 2)")
        axes.set_xlabel("epoch")
        axes.grid(True)
        axes.legend()


# %%
def plot_per_class(names, accuracies):
    values = np.array([float(a) for a in accuracies])
    figure, axes = plt.subplots(figsize=(8, 4))
    for position, value in enumerate(values):
        if not isnan(value):
            axes.bar(position, value, width=0.7, color="C0")
    axes.set_xlim(-0.6, len(values) - 0.4)
    axes.set_ylim(0.0, 1.0)
    axes.set_xticks(np.arange(len(names)))
    axes.set_xticklabels([str(name) for name in names], rotation=60, ha="right")
    axes.set_xlabel("class")
    axes.set_ylabel("accuracy")
    figure.tight_layout()


# %%
def plot_confusion_matrix(matrix, class_names):
    counts = np.asarray(matrix).astype(np.int64)
    size = int(counts.shape[0])
    figure, axes = plt.subplots(figsize=(8, 8))
    axes.matshow(counts, cmap="bone_r")
    for row in range(size):
        for column in range(size):
            bright = int(counts[row, column]) * 2 > int(counts.max())
            axes.text(column, row, f"{counts[row, column]:d}", ha="center", va="center",
                      color="white" if bright else "black")  # fmt: skip
    axes.xaxis.set_ticks_position("bottom")
    axes.set_xticks(range(size), class_names, rotation=60, ha="right")
    axes.set_yticks(range(size), class_names)
    axes.set_xlabel("predicted")
    axes.set_ylabel("true")
    figure.tight_layout()


# %% [markdown]
# ## The images

# %%
with zipfile.ZipFile("dataset.zip") as archive:
    archive.extractall("data")

plain_transform = transforms.Compose([transforms.ToTensor(), transforms.Normalize(MEAN, STD)])
train_transform = transforms.Compose(
    [transforms.RandomHorizontalFlip(), transforms.RandomCrop(32, padding=2), plain_transform]
)
augmented_images = datasets.ImageFolder("data/train", transform=train_transform)
plain_images = datasets.ImageFolder("data/train", transform=plain_transform)
test_images = datasets.ImageFolder("data/test", transform=plain_transform)
class_names = test_images.classes

fewest = int(np.bincount(plain_images.targets).min())
training_rows, validation_rows = stratified_split(
    plain_images.targets, (fewest - fewest // 5, fewest // 5), seed=42
)
loaders = {
    "train": DataLoader(Subset(augmented_images, training_rows), batch_size=BATCH_SIZE, shuffle=True),
    "validation": DataLoader(Subset(plain_images, validation_rows), batch_size=256),
}
test_loader = DataLoader(test_images, batch_size=256)

# %%
EPOCHS = (3, 12)
model = build_model(len(class_names))
history = fit(model, loaders, EPOCHS, device)
torch.save(model.state_dict(), f"{STUDENT_ID}_Finetune.pth")
plot_history(history)

# %%
loss, accuracy, targets, predictions = evaluate(model, test_loader, nn.CrossEntropyLoss(), device)
print(f"loss {loss:.4f}, accuracy {accuracy:.4f}")
plot_per_class(class_names, per_class_accuracy(targets, predictions, len(class_names)))
matrix = np.zeros((len(class_names), len(class_names)), dtype=int)
np.add.at(matrix, (np.asarray(targets), np.asarray(predictions)), 1)
plot_confusion_matrix(matrix, class_names)

# %%
images, labels = next(iter(test_loader))
show_patches(images[0], 4, MEAN, STD)
show_attention(model, images[0], MEAN, STD)
plt.show()
