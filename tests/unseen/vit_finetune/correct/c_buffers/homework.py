# Fine-tuning a pretrained Vision Transformer.
#
# Written by somebody who writes C: memory is allocated once and filled, results go to `out`, sizes are counted,
# loops have indices, and what was borrowed is given back.

# %%
import struct
import zipfile
from array import array
from io import BytesIO

import matplotlib.pyplot as plt
import numpy as np
import torch
from handout import build_model, parts
from matplotlib.patches import Rectangle
from PIL import Image
from torch import nn, optim
from torch.utils.data import DataLoader, Dataset

STUDENT_ID = "400104001"
RATE = 2e-3
STAGE2_DIVISOR = 10
PATIENCE = 4
BATCH_SIZE = 64
SMOOTHING = 0.05
MEAN, STD = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)

MIX_NONE, MIX_UP, MIX_CUT = 0, 1, 2
LEARN_HEAD, LEARN_NORM, LEARN_REST = 1 << 0, 1 << 1, 1 << 2
LEARN_ALL = LEARN_HEAD | LEARN_NORM | LEARN_REST
U64 = (1 << 64) - 1

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(42)


# %% The split


def splitmix64(state):
    """(next state, a random number of 64 bits)"""
    state = (state + 0x9E3779B97F4A7C15) & U64
    z = state
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & U64
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & U64
    return state, z ^ (z >> 31)


def shuffle(buffer, first, end, state):
    """Shuffles buffer[first:end] in place; returns the state."""
    i = end - 1
    while i > first:
        state, bits = splitmix64(state)
        j = first + bits % (i - first + 1)
        buffer[i], buffer[j] = buffer[j], buffer[i]
        i -= 1
    return state


def stratified_split(labels, per_class, seed):
    n = len(labels)
    label_of = array("q", [int(labels[i]) for i in range(n)])
    number_of, count = {}, array("q")  # class -> its number, in order of the labels; images of each
    for label in sorted(set(label_of)):
        number_of[label] = len(count)
        count.append(0)
    for i in range(n):
        count[number_of[label_of[i]]] += 1
    need = sum(per_class)
    for label, c in number_of.items():
        if count[c] < need:
            raise ValueError(f"class {label}: {count[c]} images, {need} needed")

    # counting sort: sorted[start[c]:start[c + 1]] are the images of class c
    classes = len(count)
    start = array("q", bytes(8 * (classes + 1)))
    for c in range(classes):
        start[c + 1] = start[c] + count[c]
    cursor, ordered = array("q", start), array("q", bytes(8 * n))
    for i in range(n):
        c = number_of[label_of[i]]
        ordered[cursor[c]] = i
        cursor[c] += 1

    state = int(seed) & U64
    out = [np.empty(classes * size, dtype=np.int64) for size in per_class]
    for c in range(classes):
        state = shuffle(ordered, start[c], start[c + 1], state)
        p = start[c]
        for k in range(len(per_class)):
            for i in range(per_class[k]):
                out[k][c * per_class[k] + i] = ordered[p]
                p += 1
    return tuple(out)


# %% Mixing


def draw_partner(n, generator):
    """Inside-out shuffle."""
    partner = torch.empty(n, dtype=torch.long)
    for i in range(n):
        j = int(generator.integers(i + 1))
        if j != i:
            partner[i] = partner[j]
        partner[j] = i
    return partner


def gather_labels(labels, partner):
    out = torch.empty_like(labels)
    torch.index_select(labels, 0, partner.to(labels.device), out=out)
    return out


def mixup(images, labels, alpha, generator):
    lam = 1.0
    if alpha > 0:
        lam = float(generator.beta(alpha, alpha))
    partner = draw_partner(images.shape[0], generator)
    out, scratch = torch.empty_like(images), torch.empty_like(images)
    with torch.no_grad():
        torch.index_select(images, 0, partner.to(images.device), out=scratch)
        torch.mul(images, lam, out=out)
        torch.add(out, scratch, alpha=1.0 - lam, out=out)
    return out, labels, gather_labels(labels, partner), lam


def cutmix(images, labels, alpha, generator):
    n, _, height, width = images.shape
    lam = 1.0
    if alpha > 0:
        lam = float(generator.beta(alpha, alpha))
    partner = draw_partner(n, generator)

    scale = (1.0 - lam) ** 0.5
    rows, columns = int(height * scale + 0.5), int(width * scale + 0.5)
    # the first row and column may lie before the image, the last ones behind it
    y0 = int(generator.integers(height)) - rows // 2
    x0 = int(generator.integers(width)) - columns // 2
    y1, x1 = min(y0 + rows, height), min(x0 + columns, width)
    y0, x0 = max(y0, 0), max(x0, 0)

    out = torch.empty_like(images)
    out.copy_(images)
    copied = 0
    if x1 > x0:
        for y in range(y0, y1):  # line by line; all reads are from the input
            for i in range(n):
                out[i, :, y, x0:x1].copy_(images[partner[i], :, y, x0:x1])
            copied += x1 - x0
    return out, labels, gather_labels(labels, partner), 1.0 - copied / (height * width)


def mixed_loss(criterion, logits, labels_a, labels_b, lam):
    loss = criterion(logits, labels_b) * (1.0 - lam)
    loss = torch.add(loss, criterion(logits, labels_a) * lam)
    return loss


# %% What learns: bits


def set_learning(model, flags, first_block):
    """Blocks from `first_block` on learn; the others do with LEARN_REST."""
    head, blocks, norm = parts(model)
    for p in model.parameters():
        p.requires_grad = (flags & LEARN_REST) != 0
    for i in range(len(blocks)):
        for p in blocks[i].parameters():
            p.requires_grad = i >= first_block
    for module, bit in ((head, LEARN_HEAD), (norm, LEARN_NORM)):
        for p in module.parameters():
            p.requires_grad = (flags & bit) != 0


def freeze_backbone(model):
    set_learning(model, LEARN_HEAD, len(parts(model)[1]))


def unfreeze(model, blocks=None):
    if blocks is None:
        set_learning(model, LEARN_ALL, 0)
    else:
        set_learning(model, LEARN_HEAD | LEARN_NORM, len(parts(model)[1]) - blocks)


def learns(module):
    for p in module.parameters():
        if p.requires_grad:
            return True
    return False


# %% Training and evaluation

N, LOSS, HITS = 0, 1, 2  # places in a buffer of sums


def count_hits(logits, labels):
    return int(torch.count_nonzero(logits.argmax(dim=1) == labels))


def train_one_epoch(model, loader, optimizer, criterion, device, mix=None):
    sums = array("d", [0.0, 0.0, 0.0])
    model.train()
    for block in parts(model)[1]:
        if not learns(block):
            block.eval()
    for images, labels in loader:
        images, labels = images.to(device), labels.to(device)
        optimizer.zero_grad()
        if mix is None:
            logits = model(images)
            loss = criterion(logits, labels)
            hits = count_hits(logits, labels)
        else:
            images, labels_a, labels_b, lam = mix(images, labels)
            logits = model(images)
            loss = mixed_loss(criterion, logits, labels_a, labels_b, lam)
            hits = lam * count_hits(logits, labels_a) + (1.0 - lam) * count_hits(logits, labels_b)
        loss.backward()
        optimizer.step()
        n = images.size(0)
        sums[N] += n
        sums[LOSS] += n * loss.item()
        sums[HITS] += hits
    return sums[LOSS] / sums[N], sums[HITS] / sums[N]


def evaluate(model, loader, criterion, device):
    sums = array("d", [0.0, 0.0, 0.0])
    targets, predictions = array("q"), array("q")
    model.eval()
    with torch.no_grad():
        for images, labels in loader:
            images, labels = images.to(device), labels.to(device)
            logits = model(images)
            n = images.size(0)
            sums[N] += n
            sums[LOSS] += n * criterion(logits, labels).item()
            sums[HITS] += count_hits(logits, labels)
            targets.extend(labels.tolist())
            predictions.extend(logits.argmax(dim=1).tolist())
    # numpy arrays over copies of the buffers
    return sums[LOSS] / sums[N], sums[HITS] / sums[N], np.array(targets), np.array(predictions)


# %% Early stopping


class EarlyStopping:
    """The best weights lie one after the other, as bytes, in one buffer that is allocated at the first step."""

    __slots__ = ("patience", "min_delta", "left", "best", "valid", "memory")

    def __init__(self, patience, min_delta=0.0):
        self.patience = patience
        self.min_delta = min_delta
        self.left = patience
        self.best = 0.0
        self.valid = False  # whether `best` and `memory` mean anything
        self.memory = None

    @staticmethod
    def _tensors(model):
        """Views of all weights and buffers."""
        return list(model.state_dict().values())

    def _store(self, model):
        tensors = self._tensors(model)
        if self.memory is None:
            self.memory = bytearray(sum(t.numel() * t.element_size() for t in tensors))
        offset = 0
        for t in tensors:
            raw = t.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
            self.memory[offset : offset + len(raw)] = raw
            offset += len(raw)

    def _load(self, model):
        offset = 0
        with torch.no_grad():
            for t in self._tensors(model):
                size = t.numel() * t.element_size()
                raw = torch.frombuffer(bytearray(self.memory[offset : offset + size]), dtype=t.dtype)
                t.copy_(raw.reshape(t.shape))
                offset += size

    def step(self, value, model):
        value = float(value)
        if value == value and (not self.valid or value > self.best + self.min_delta):
            self._store(model)
            self.best = value
            self.valid = True
            self.left = self.patience
            return False
        self.left -= 1
        return self.left <= 0

    def restore(self, model):
        if self.valid:
            self._load(model)


# %% fit


def half_cosine(epoch, epochs):
    return 0.5 * (1.0 + float(np.cos(np.pi * epoch / epochs)))


def fit(model, loaders, epochs, device):
    model.to(device)
    n1, n2 = int(epochs[0]), int(epochs[1])
    generator = np.random.default_rng(1)
    criterion, plain = nn.CrossEntropyLoss(label_smoothing=SMOOTHING), nn.CrossEntropyLoss()
    record = struct.Struct("=B4d")  # stage, losses and accuracies
    records = bytearray()

    def mix(images, labels):
        kind = int(generator.integers(3))
        if kind == MIX_UP:
            return mixup(images, labels, 0.2, generator)
        if kind == MIX_CUT:
            return cutmix(images, labels, 1.0, generator)
        return images, labels, labels, 1.0

    # stage 1
    freeze_backbone(model)
    optimizer = optim.AdamW(parts(model)[0].parameters(), lr=RATE, weight_decay=1e-2, foreach=False)
    stopping1 = EarlyStopping(PATIENCE)
    for _ in range(n1):
        loss, accuracy = train_one_epoch(model, loaders["train"], optimizer, criterion, device)
        val_loss, val_accuracy, _, _ = evaluate(model, loaders["validation"], plain, device)
        records += record.pack(1, loss, accuracy, val_loss, val_accuracy)
        print(f"1: {loss:.4f} {accuracy:.4f} {val_loss:.4f} {val_accuracy:.4f}")
        if stopping1.step(val_accuracy, model):
            break
    stopping1.restore(model)

    # stage 2
    unfreeze(model)
    optimizer = optim.AdamW(model.parameters(), lr=RATE / STAGE2_DIVISOR, weight_decay=1e-2, foreach=False)
    stopping2 = EarlyStopping(PATIENCE)
    for epoch in range(n2):
        for group in optimizer.param_groups:
            group["lr"] = RATE / STAGE2_DIVISOR * half_cosine(epoch, n2)
        loss, accuracy = train_one_epoch(model, loaders["train"], optimizer, criterion, device, mix)
        val_loss, val_accuracy, _, _ = evaluate(model, loaders["validation"], plain, device)
        records += record.pack(2, loss, accuracy, val_loss, val_accuracy)
        print(f"2: {loss:.4f} {accuracy:.4f} {val_loss:.4f} {val_accuracy:.4f}")
        if stopping2.step(val_accuracy, model):
            break

    # the better of both stages' best weights; those of stage 2 if they are equally good
    if stopping1.valid and (not stopping2.valid or stopping1.best > stopping2.best):
        stopping1.restore(model)
    else:
        stopping2.restore(model)

    history = {"stage": [], "loss": [], "accuracy": [], "val_loss": [], "val_accuracy": []}
    for row in record.iter_unpack(bytes(records)):
        for name, value in zip(history, row):
            history[name].append(value)
    return history


# %%
def per_class_accuracy(targets, predictions, classes):
    images, hits = array("q", bytes(8 * classes)), array("q", bytes(8 * classes))
    for i in range(len(targets)):
        t = int(targets[i])
        images[t] += 1
        hits[t] += t == int(predictions[i])
    out = np.empty(classes)
    for c in range(classes):
        out[c] = hits[c] / images[c] if images[c] > 0 else np.nan
    return out


# %% Pictures


def restore_pixels(image, mean, std):
    """A new buffer (height, width, channels) in [0, 1]."""
    channels, height, width = image.shape
    out = np.empty((height, width, channels))
    source = image.detach().cpu().numpy()
    for c in range(channels):
        np.multiply(source[c], float(std[c]), out=out[:, :, c])
        np.add(out[:, :, c], float(mean[c]), out=out[:, :, c])
    np.clip(out, 0.0, 1.0, out=out)
    return out


def show_patches(image, patch_size, mean, std):
    pixels = restore_pixels(image, mean, std)
    rows, columns = pixels.shape[0] // patch_size, pixels.shape[1] // patch_size
    figure = plt.figure(figsize=(10, 5))
    axes = figure.add_subplot(1, 2, 1)
    axes.imshow(pixels)
    axes.set_axis_off()
    for k in range(rows * columns):
        y, x = k // columns * patch_size, k % columns * patch_size
        # number of the place in a grid of `rows` by 2 * `columns`, from 1, right half
        axes = figure.add_subplot(rows, 2 * columns, k // columns * 2 * columns + columns + k % columns + 1)
        axes.imshow(pixels[y : y + patch_size, x : x + patch_size])
        axes.set_axis_off()
    figure.subplots_adjust(wspace=0.1, hspace=0.1)


def show_attention(model, image, mean, std):
    block = parts(model)[1][-1]
    dim, heads = block.attn.proj.in_features, block.attn.num_heads
    head_dim = dim // heads
    borrowed = []
    handle = block.attn.qkv.register_forward_hook(lambda module, args, output: borrowed.append(output[0]))
    with torch.no_grad():
        model(image.unsqueeze(0).to(next(model.parameters()).device))
        handle.remove()
        tokens = borrowed[0].shape[0]
        weights = torch.zeros(tokens, device=borrowed[0].device)
        scores = torch.empty_like(weights)
        for h in range(heads):
            query = borrowed[0][0, h * head_dim : (h + 1) * head_dim]
            keys = borrowed[0][:, dim + h * head_dim : dim + (h + 1) * head_dim]
            torch.mv(keys, query, out=scores)
            scores.mul_(head_dim**-0.5).sub_(scores.max().item()).exp_()
            weights.add_(scores, alpha=1.0 / (heads * scores.sum().item()))
    side = model.patch_embed.patch_size
    height, width = image.shape[1:]
    enlarged = np.empty((height, width))
    for y in range(height):
        for x in range(width):
            enlarged[y, x] = weights[1 + (y // side) * (width // side) + x // side].item()

    figure, axes = plt.subplots(1, 2, figsize=(9, 4))
    axes[0].imshow(restore_pixels(image, mean, std))
    axes[0].set_title("image")
    axes[0].set_axis_off()
    drawn = axes[1].imshow(enlarged, cmap="gist_heat")
    axes[1].set_title("the class token's attention, last block")
    axes[1].set_axis_off()
    figure.colorbar(drawn, ax=axes[1])


def plot_history(history):
    """One axes for losses, one below for accuracies; steps of epochs as stairs."""
    epochs = len(history["stage"])
    first = 0
    while first < epochs and history["stage"][first] == 1:
        first += 1
    edges = np.arange(epochs + 1) + 0.5  # epoch e reaches from e - 0.5 to e + 0.5
    figure, axes = plt.subplots(2, 1, figsize=(8, 8))
    for k, (name, limit) in enumerate((("loss", None), ("accuracy", 1.0))):
        axes[k].step(range(1, epochs + 1), history[name], where="mid", label="training", color="navy")
        axes[k].step(range(1, epochs + 1), history["val_" + name], where="mid", label="validation", color="crimson")
        axes[k].axvline(edges[first], color="black", linestyle=(0, (1, 2)), label="stage 2 begins here")
        axes[k].set_xlim(edges[0], edges[-1])
        axes[k].set_ylim(0.0, limit)
        axes[k].set_xlabel("epoch")
        axes[k].set_ylabel(name)
        axes[k].legend()


def plot_per_class(names, accuracies):
    """Rectangles, drawn by hand."""
    figure, axes = plt.subplots(figsize=(8, 4))
    for i in range(len(names)):
        if accuracies[i] == accuracies[i]:
            axes.add_patch(Rectangle((i - 0.35, 0.0), 0.7, float(accuracies[i]), facecolor="olive"))
    axes.set_xlim(-0.5, len(names) - 0.5)
    axes.set_ylim(0.0, 1.0)
    axes.set_xticks(range(len(names)), names, rotation=45, ha="right")
    axes.set_xlabel("class")
    axes.set_ylabel("accuracy")
    figure.tight_layout()


def plot_confusion_matrix(matrix, class_names):
    matrix = np.asarray(matrix)
    n = len(class_names)
    top = max(float(matrix.max()), 1.0)
    figure, axes = plt.subplots(figsize=(8, 8))
    axes.matshow(matrix, cmap="gray_r", vmin=0.0, vmax=3.0 * top)  # no cell gets dark
    for row in range(n):
        for column in range(n):
            axes.text(column, row, f"{int(matrix[row, column])}", ha="center", va="center", color="darkred")
    axes.set_xticks(range(n), class_names, rotation=45, ha="right")
    axes.xaxis.tick_bottom()
    axes.set_yticks(range(n), class_names)
    axes.set_xlabel("predicted class")
    axes.set_ylabel("true class")
    figure.tight_layout()


# %% The images: all pixels of dataset.zip in one buffer each for training and test, without unpacking


class PixelBuffer:
    """uint8 (n, 3, height, width), and the labels."""

    def __init__(self, archive, folder):
        names = sorted(
            name
            for name in archive.namelist()
            if name.startswith(folder + "/") and name.lower().endswith((".png", ".jpg", ".jpeg"))
        )
        self.classes = sorted({name.split("/")[1] for name in names})
        self.labels = [self.classes.index(name.split("/")[1]) for name in names]
        self.pixels = None
        for i in range(len(names)):
            picture = np.asarray(Image.open(BytesIO(archive.read(names[i]))).convert("RGB"))
            if self.pixels is None:
                self.pixels = np.empty((len(names), 3, *picture.shape[:2]), dtype=np.uint8)
            self.pixels[i] = picture.transpose(2, 0, 1)


class View(Dataset):
    """Some rows of a buffer, normalized; `augment` says whether they are flipped and moved at random."""

    def __init__(self, buffer, rows, augment):
        self.buffer, self.rows, self.augment = buffer, rows, augment
        self.mean, self.std = (torch.tensor(v).reshape(3, 1, 1) for v in (MEAN, STD))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        row = int(self.rows[i])
        image = torch.from_numpy(self.buffer.pixels[row]).float().div_(255.0)
        if self.augment:
            if torch.rand(()) < 0.5:
                image = image.flip(2)
            dy, dx = torch.randint(-2, 3, (2,)).tolist()
            image = image.roll((dy, dx), (1, 2))
        return image.sub(self.mean).div_(self.std), self.buffer.labels[row]


with zipfile.ZipFile("dataset.zip") as archive:
    train_buffer, test_buffer = PixelBuffer(archive, "train"), PixelBuffer(archive, "test")
class_names = train_buffer.classes

fewest = min(train_buffer.labels.count(c) for c in range(len(class_names)))
training_rows, validation_rows = stratified_split(
    train_buffer.labels, (fewest - fewest // 5, fewest // 5), seed=42
)
loaders = {
    "train": DataLoader(View(train_buffer, training_rows, True), batch_size=BATCH_SIZE, shuffle=True),
    "validation": DataLoader(View(train_buffer, validation_rows, False), batch_size=256),
}
test_loader = DataLoader(View(test_buffer, range(len(test_buffer.labels)), False), batch_size=256)

# %% Train it

EPOCHS = (3, 12)
model = build_model(len(class_names))
history = fit(model, loaders, EPOCHS, device)
torch.save(model.state_dict(), f"{STUDENT_ID}_Finetune.pth")
plot_history(history)

# %% Look at it

loss, accuracy, targets, predictions = evaluate(model, test_loader, nn.CrossEntropyLoss(), device)
print(f"loss {loss:.4f}, accuracy {accuracy:.4f}")
plot_per_class(class_names, per_class_accuracy(targets, predictions, len(class_names)))
matrix = np.zeros((len(class_names), len(class_names)), dtype=int)
for i in range(len(targets)):
    matrix[targets[i], predictions[i]] += 1
plot_confusion_matrix(matrix, class_names)

images, labels = next(iter(test_loader))
show_patches(images[0], 4, MEAN, STD)
show_attention(model, images[0], MEAN, STD)
plt.show()
