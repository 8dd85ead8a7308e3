# homework.py -- ViT and ResNet-18 for CIFAR-10
# Firmware habits: named constants, fixed types, explicit casts, guards that release what they hold, no surprises.
# Rev. C

import copy
import math
import time
import zipfile
from enum import Enum, IntEnum, unique
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torchvision import datasets

# ------------------------------------------------------------------------------------------------
# constexpr
# ------------------------------------------------------------------------------------------------
STUDENT_ID = "403118264"

kSide = int(32)
kPad = int(4)
kChannels = int(3)
kBatchTrain = int(64)
kBatchEval = int(256)
kSeed = int(0x5EED)
kValidationDivisor = int(10)  # 1 of 10
kSinBase = float(10000.0)
kInitStd = float(0.02)
kLrVit = float(1e-3)
kLrResnet = float(1e-3)
kDecay = float(5e-2)
kWarmupPercent = int(10)
kCsvHeader = "metric,value"
kTop = int(3)

MEAN = np.array([0.4914, 0.4822, 0.4465], dtype=np.float32)
STD = np.array([0.2470, 0.2435, 0.2616], dtype=np.float32)


@unique
class Pool(Enum):
    kCls = "cls"
    kMean = "mean"


@unique
class Positions(Enum):
    kLearned = "learned"
    kSinusoidal = "sinusoidal"


class Axis(IntEnum):
    kBatch = 0
    kToken = 1
    kFeature = 2


def static_assert(condition, message):
    if not bool(condition):
        raise ValueError(message)


# ------------------------------------------------------------------------------------------------
# RAII
# ------------------------------------------------------------------------------------------------
class EvalModeGuard:
    """Acquires evaluation mode in __enter__, gives every submodule its own mode back in __exit__."""

    __slots__ = ("m_model", "m_saved")

    def __init__(self, model):
        self.m_model = model
        self.m_saved = []

    def __enter__(self):
        self.m_saved = [(module, bool(module.training)) for module in self.m_model.modules()]
        self.m_model.eval()
        return self.m_model

    def __exit__(self, *exc_info):
        for module, mode in self.m_saved:
            module.training = mode
        self.m_saved.clear()
        return False


class FileHandle:
    """A text file that is closed whatever happens."""

    __slots__ = ("m_file", "m_path")

    def __init__(self, path):
        self.m_path = str(path)
        self.m_file = None

    def __enter__(self):
        self.m_file = open(self.m_path, mode="w", encoding="utf-8", newline="\n")
        return self

    def __exit__(self, *exc_info):
        self.m_file.close()
        return False

    @staticmethod
    def quoted(field):
        """RFC 4180: a field with a comma, a quote or a line break stands in quotes."""
        text = str(field)
        needs_quotes = any(mark in text for mark in ',"\r\n')
        return '"' + text.replace('"', '""') + '"' if needs_quotes else text

    def put(self, *fields):
        self.m_file.write(",".join(self.quoted(field) for field in fields) + "\n")


class RowBuffer:
    """std::vector for rows: doubles its capacity when full, hands out a view of what is used."""

    __slots__ = ("m_data", "m_size")

    def __init__(self, row_shape, dtype, reserve=256):
        self.m_data = np.empty((int(reserve), *row_shape), dtype=dtype)
        self.m_size = int(0)

    def push_back(self, rows):
        needed = self.m_size + int(rows.shape[0])
        capacity = int(self.m_data.shape[0])
        while capacity < needed:
            capacity *= 2
        if capacity != self.m_data.shape[0]:
            grown = np.empty((capacity, *self.m_data.shape[1:]), dtype=self.m_data.dtype)
            grown[: self.m_size] = self.m_data[: self.m_size]
            self.m_data = grown
        self.m_data[self.m_size : needed] = rows
        self.m_size = needed

    def view(self):
        return self.m_data[: self.m_size]


class BestSlot:
    """Double buffer: the live weights go on changing, the slot holds a deep copy."""

    __slots__ = ("m_accuracy", "m_state")

    def __init__(self):
        self.m_accuracy = float("-inf")
        self.m_state = None

    def offer(self, accuracy, model):
        if accuracy > self.m_accuracy:  # strictly: the first of equals stays
            self.m_accuracy = float(accuracy)
            self.m_state = copy.deepcopy(model.state_dict())

    def restore_into(self, model):
        if self.m_state is not None:
            model.load_state_dict(self.m_state)


# ------------------------------------------------------------------------------------------------
# Data: whole data set in one uint8 block (fits in RAM: 10000 * 3072 B = 31 MB)
# ------------------------------------------------------------------------------------------------
torch.manual_seed(kSeed)
device = torch.device("cuda") if torch.cuda.is_available() else torch.device("cpu")

with zipfile.ZipFile("dataset.zip", mode="r") as zip_handle:
    zip_handle.extractall(path="data")


def load_block(folder):
    """-> uint8 (n, 3, 32, 32), int64 (n,), names"""
    index = datasets.ImageFolder(str(folder))
    count = int(len(index))
    pixels = np.empty((count, kChannels, kSide, kSide), dtype=np.uint8)
    labels = np.empty((count,), dtype=np.int64)
    for i in range(count):
        image, label = index[i]
        pixels[i] = np.asarray(image, dtype=np.uint8).transpose(2, 0, 1)
        labels[i] = np.int64(label)
    return torch.from_numpy(pixels), torch.from_numpy(labels), list(index.classes)


def normalize(pixels):
    as_float = pixels.to(dtype=torch.float32).div_(255.0)
    return as_float.sub_(torch.from_numpy(MEAN).view(1, -1, 1, 1)).div_(torch.from_numpy(STD).view(1, -1, 1, 1))


class BlockLoader:
    """Feeds batches from a uint8 block. jitter: random crop (padding 4) and horizontal flip, per image."""

    def __init__(self, pixels, labels, batch_size, jitter):
        self.m_pixels = pixels
        self.m_labels = labels
        self.m_batch_size = int(batch_size)
        self.m_jitter = bool(jitter)

    def __len__(self):
        return (int(self.m_labels.numel()) + self.m_batch_size - 1) // self.m_batch_size

    def __iter__(self):
        count = int(self.m_labels.numel())
        order = torch.randperm(count) if self.m_jitter else torch.arange(count)
        for begin in range(0, count, self.m_batch_size):
            rows = order[begin : begin + self.m_batch_size]
            batch = self.m_pixels[rows]
            if self.m_jitter:
                batch = self.jittered(batch)
            yield normalize(batch), self.m_labels[rows]

    @staticmethod
    def jittered(batch):
        count = int(batch.shape[0])
        padded = F.pad(batch, (kPad, kPad, kPad, kPad))  # black border, as RandomCrop does
        dy = torch.randint(0, 2 * kPad + 1, (count, 1))
        dx = torch.randint(0, 2 * kPad + 1, (count, 1))
        flip = torch.rand(count, 1) < 0.5
        ys = torch.arange(kSide).view(1, -1) + dy
        columns = torch.arange(kSide).view(1, -1)
        xs = torch.where(flip, kSide - 1 - columns, columns) + dx
        which = torch.arange(count).view(-1, 1, 1)
        # advanced indices are split by a slice: result is (n, 32, 32, 3)
        return padded[which, :, ys.unsqueeze(2), xs.unsqueeze(1)].permute(0, 3, 1, 2).contiguous()


all_pixels, all_labels, class_names = load_block("data/train")
test_pixels, test_labels, test_class_names = load_block("data/test")
static_assert(class_names == test_class_names, "both parts must have the same classes")

permutation = torch.randperm(int(all_labels.numel()), generator=torch.Generator().manual_seed(kSeed))
n_held = max(1, int(all_labels.numel()) // kValidationDivisor)
held, kept = permutation[:n_held], permutation[n_held:]
loaders = {
    "train": BlockLoader(all_pixels[kept], all_labels[kept], kBatchTrain, jitter=True),
    "validation": BlockLoader(all_pixels[held], all_labels[held], kBatchEval, jitter=False),
}
test_loader = BlockLoader(test_pixels, test_labels, kBatchEval, jitter=False)


# ------------------------------------------------------------------------------------------------
# Vision Transformer
# ------------------------------------------------------------------------------------------------
class PatchEmbedding(nn.Module):
    def __init__(self, image_size, patch_size, in_channels, dim):
        super().__init__()
        static_assert(image_size % patch_size == 0, "patch_size must divide image_size")
        self.m_patch = int(patch_size)
        self.m_rows = int(image_size) // int(patch_size)
        self.m_linear = nn.Linear(int(in_channels) * self.m_patch * self.m_patch, int(dim))

    def forward(self, images):
        batch, channels = int(images.shape[0]), int(images.shape[1])
        n, p = self.m_rows, self.m_patch
        # memory layout: [b][c][row][y][col][x] -> [b][row][col][c][y][x]
        cells = images.reshape(batch, channels, n, p, n, p).permute(0, 2, 4, 1, 3, 5).contiguous()
        return self.m_linear(cells.view(batch, n * n, channels * p * p))


def sinusoidal_positions(tokens, dim):
    table = np.zeros((int(tokens), int(dim)), dtype=np.float64)  # double, narrowed once at the end
    for i in range(int(dim) // 2):
        omega = 1.0 / math.pow(kSinBase, float(2 * i) / float(dim))
        for pos in range(int(tokens)):
            table[pos, 2 * i] = math.sin(float(pos) * omega)
            table[pos, 2 * i + 1] = math.cos(float(pos) * omega)
    return torch.from_numpy(table.astype(np.float32))


def stable_softmax(scores):
    shifted = scores - scores.amax(dim=-1, keepdim=True).detach()
    powers = shifted.exp()
    return powers / powers.sum(dim=-1, keepdim=True)


class MultiHeadSelfAttention(nn.Module):
    def __init__(self, dim, heads, dropout=0.0):
        super().__init__()
        static_assert(dim % heads == 0, "dim must be a multiple of heads")
        self.m_heads = int(heads)
        self.m_width = int(dim) // int(heads)
        self.m_alpha = float(1.0) / math.sqrt(float(self.m_width))
        self.m_rate = float(dropout)
        self.m_q = nn.Linear(dim, dim)
        self.m_kv = nn.Linear(dim, 2 * dim)  # keys in the lower half, values in the upper half
        self.m_out = nn.Linear(dim, dim)

    def _to_planes(self, x):
        """[B][N][H*W] -> [B*H][N][W], contiguous: what a batched GEMM wants"""
        batch, tokens = int(x.shape[Axis.kBatch]), int(x.shape[Axis.kToken])
        x = x.view(batch, tokens, self.m_heads, self.m_width).permute(0, 2, 1, 3).contiguous()
        return x.view(batch * self.m_heads, tokens, self.m_width)

    def forward(self, x, return_weights=False):
        batch, tokens, dim = (int(size) for size in x.shape)
        lower, upper = torch.split(self.m_kv(x), dim, dim=Axis.kFeature)
        q = self._to_planes(self.m_q(x))
        k = self._to_planes(lower.contiguous())
        v = self._to_planes(upper.contiguous())

        bias = q.new_zeros((1, 1, 1))
        scores = torch.baddbmm(bias, q, k.transpose(1, 2), beta=0.0, alpha=self.m_alpha)
        weights = stable_softmax(scores)
        thinned = F.dropout(weights, p=self.m_rate, training=self.training)
        planes = torch.bmm(thinned, v).view(batch, self.m_heads, tokens, self.m_width)
        result = self.m_out(planes.permute(0, 2, 1, 3).contiguous().view(batch, tokens, dim))

        if return_weights:
            return result, weights.view(batch, self.m_heads, tokens, tokens)
        return result


class EncoderBlock(nn.Module):
    def __init__(self, dim, heads, mlp_ratio=4.0, dropout=0.0):
        super().__init__()
        hidden = int(float(dim) * float(mlp_ratio))
        self.m_norm_a = nn.LayerNorm(dim)
        self.m_attention = MultiHeadSelfAttention(dim, heads, dropout)
        self.m_norm_m = nn.LayerNorm(dim)
        self.m_up = nn.Linear(dim, hidden)
        self.m_down = nn.Linear(hidden, dim)

    def forward(self, x):
        x = torch.add(x, self.m_attention(self.m_norm_a(x)))
        x = torch.add(x, self.m_down(F.gelu(self.m_up(self.m_norm_m(x)))))
        return x

    def peek(self, x):
        """Weights only; nothing is written."""
        _, weights = self.m_attention(self.m_norm_a(x), return_weights=True)
        return weights


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
        self.m_pool = Pool(pool)
        self.m_mode = Positions(positions)
        self.m_depth = int(depth)
        self.m_patches = PatchEmbedding(image_size, patch_size, in_channels, dim)
        n_patches = (int(image_size) // int(patch_size)) ** 2
        n_offset = int(1) if self.m_pool is Pool.kCls else int(0)
        n_tokens = n_patches + n_offset

        if self.m_pool is Pool.kCls:
            self.m_cls = nn.Parameter(torch.zeros((1, 1, dim)))
            nn.init.normal_(self.m_cls, std=kInitStd)
        if self.m_mode is Positions.kLearned:
            self.m_positions = nn.Parameter(torch.zeros((1, n_tokens, dim)))
            nn.init.normal_(self.m_positions, std=kInitStd)
        else:
            # ROM
            self.register_buffer("m_positions", sinusoidal_positions(n_tokens, dim).view(1, n_tokens, dim))

        self.m_dropout = nn.Dropout(float(dropout))
        self.m_blocks = nn.ModuleList()
        for _ in range(self.m_depth):
            self.m_blocks.append(EncoderBlock(dim, heads, mlp_ratio, dropout))
        self.m_norm = nn.LayerNorm(dim)
        self.m_head = nn.Linear(dim, int(num_classes))

        self.m_n_offset = n_offset
        self.m_n_tokens = n_tokens
        self.m_dim = int(dim)

    def _run(self, images, n_blocks):
        """Fills one token buffer (slot 0: class token) and runs the first n_blocks blocks on it."""
        patches = self.m_patches(images)
        tokens = patches.new_empty((int(patches.shape[0]), self.m_n_tokens, self.m_dim))
        if self.m_pool is Pool.kCls:
            tokens[:, :1] = self.m_cls
        tokens[:, self.m_n_offset :] = patches
        x = self.m_dropout(tokens + self.m_positions)
        for i in range(n_blocks):
            x = self.m_blocks[i](x)
        return x

    def forward(self, images):
        x = self._run(images, self.m_depth)
        if self.m_pool is Pool.kCls:
            pooled = x[:, 0, :]
        else:
            pooled = x.mean(dim=Axis.kToken)
        return self.m_head(self.m_norm(pooled))

    def attention(self, images):
        x = self._run(images, self.m_depth - 1)
        return self.m_blocks[self.m_depth - 1].peek(x)


def attention_map(model, image):
    where = next(model.parameters()).device
    with EvalModeGuard(model) as quiet, torch.no_grad():
        weights = quiet.attention(image.unsqueeze(0).to(where)).to("cpu", torch.float32)
    heads_mean = weights[0].mean(dim=0)
    n_tokens = int(heads_mean.shape[0])
    root = int(math.isqrt(n_tokens))
    if root * root == n_tokens:
        side, line = root, heads_mean.mean(dim=0)
    else:
        side, line = int(math.isqrt(n_tokens - 1)), heads_mean[0, 1:]
    peak = float(line.max())
    if peak > 0.0:
        line = line / peak
    height, width = int(image.shape[-2]), int(image.shape[-1])
    # lookup tables: pixel -> patch
    row_of = torch.arange(height) * side // height
    column_of = torch.arange(width) * side // width
    return line[row_of.unsqueeze(1) * side + column_of.unsqueeze(0)]


# ------------------------------------------------------------------------------------------------
# ResNet
# ------------------------------------------------------------------------------------------------
class BasicBlock(nn.Module):
    def __init__(self, in_channels, channels, stride=1):
        super().__init__()
        self.m_conv_a = nn.Conv2d(in_channels, channels, kernel_size=3, stride=stride, padding=1, bias=False)
        self.m_bn_a = nn.BatchNorm2d(channels)
        self.m_conv_b = nn.Conv2d(channels, channels, kernel_size=3, stride=1, padding=1, bias=False)
        self.m_bn_b = nn.BatchNorm2d(channels)
        self.m_projects = bool(stride != 1 or in_channels != channels)
        if self.m_projects:
            self.m_conv_s = nn.Conv2d(in_channels, channels, kernel_size=1, stride=stride, bias=False)
            self.m_bn_s = nn.BatchNorm2d(channels)

    def forward(self, x):
        y = self.m_bn_a(self.m_conv_a(x)).relu_()
        y = self.m_bn_b(self.m_conv_b(y))
        y = y + (self.m_bn_s(self.m_conv_s(x)) if self.m_projects else x)
        return y.relu_()


class ResNet18(nn.Module):
    kGroups = int(4)

    def __init__(self, num_classes=10, width=64):
        super().__init__()
        self.m_stem = nn.Conv2d(kChannels, width, kernel_size=3, stride=1, padding=1, bias=False)
        self.m_bn = nn.BatchNorm2d(width)
        self.m_blocks = nn.ModuleList()
        channels = int(width)
        for group in range(ResNet18.kGroups):
            wanted = int(width) << group
            stride = int(1) if group == 0 else int(2)
            self.m_blocks.append(BasicBlock(channels, wanted, stride))
            self.m_blocks.append(BasicBlock(wanted, wanted, 1))
            channels = wanted
        self.m_fc = nn.Linear(channels, int(num_classes))

    def forward(self, images):
        x = self.m_bn(self.m_stem(images)).relu_()
        for block in self.m_blocks:
            x = block(x)
        return self.m_fc(x.flatten(2).mean(dim=2))


def parameter_table(model):
    table = []
    accounted = int(0)
    for name, weights in model.named_parameters():
        table.append((str(name), int(weights.numel())))
        accounted += int(weights.numel())
    table_total = sum(int(weights.numel()) for weights in model.parameters())
    static_assert(accounted == table_total, "a parameter was missed")
    return table


# ------------------------------------------------------------------------------------------------
# Training
# ------------------------------------------------------------------------------------------------
def warmup_cosine(step, warmup_steps, total_steps):
    if step < warmup_steps:
        return float(step) / float(warmup_steps)
    if step >= total_steps:
        return float(0.0)
    phase = float(step - warmup_steps) / float(total_steps - warmup_steps)
    return float(0.5) * (float(1.0) + math.cos(math.pi * phase))


def train_epoch(model, loader, criterion, optimizer, scheduler, device):
    model.train()
    loss_acc = np.float64(0.0)
    n_right = int(0)
    n_images = int(0)
    for images, labels in loader:
        images = images.to(device)
        labels = labels.to(device)
        n_batch = int(labels.shape[0])

        optimizer.zero_grad(set_to_none=True)
        scores = model(images)
        loss = criterion(scores, labels)
        loss.backward()
        optimizer.step()
        if scheduler is not None:
            scheduler.step()

        loss_acc += np.float64(loss.item()) * np.float64(n_batch)
        n_right += int(torch.count_nonzero(scores.detach().argmax(dim=1) == labels))
        n_images += n_batch
    return float(loss_acc / n_images), float(n_right) / float(n_images)


def evaluate(model, loader, criterion, device):
    model.eval()
    targets = RowBuffer((), np.int64)
    predictions = RowBuffer((), np.int64)
    probabilities = None
    loss_acc = np.float64(0.0)
    with torch.no_grad():
        for images, labels in loader:
            labels = labels.to(device)
            scores = model(images.to(device))
            loss_acc += np.float64(criterion(scores, labels).item()) * np.float64(labels.shape[0])
            rows = torch.softmax(scores, dim=1).cpu().numpy()
            if probabilities is None:  # width is known only now
                probabilities = RowBuffer((int(rows.shape[1]),), np.float32)
            probabilities.push_back(rows)
            targets.push_back(labels.cpu().numpy())
            predictions.push_back(scores.argmax(dim=1).cpu().numpy())
    n_images = int(targets.m_size)
    return {
        "loss": float(loss_acc / n_images),
        "accuracy": float(np.count_nonzero(targets.view() == predictions.view())) / float(n_images),
        "targets": targets.view(),
        "predictions": predictions.view(),
        "probabilities": probabilities.view(),
    }


# columns of the history, float64 (epochs, 4)
@unique
class Column(IntEnum):
    kTrainLoss = 0
    kTrainAccuracy = 1
    kValidationLoss = 2
    kValidationAccuracy = 3


def decay_groups(model):
    """Weight decay for matrices and kernels only (ndim >= 2 and no positions, no class token)."""
    matrices, others = [], []
    for name, weights in model.named_parameters():
        is_table = name.endswith("m_positions") or name.endswith("m_cls")
        (matrices if weights.dim() >= 2 and not is_table else others).append(weights)
    groups = [{"params": matrices, "weight_decay": kDecay}, {"params": others, "weight_decay": 0.0}]
    return [group for group in groups if group["params"]]


def fit(model, loaders, epochs, device):
    model.to(device)
    criterion = nn.CrossEntropyLoss()
    is_resnet = isinstance(model, ResNet18)
    optimizer = torch.optim.AdamW(decay_groups(model), lr=kLrResnet if is_resnet else kLrVit)
    n_total = int(epochs) * int(len(loaders["train"]))
    n_warmup = n_total * kWarmupPercent // 100
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: warmup_cosine(step, n_warmup, n_total))

    history = np.zeros((int(epochs), len(Column)), dtype=np.float64)
    best = BestSlot()
    for epoch in range(int(epochs)):
        train_loss, train_accuracy = train_epoch(
            model, loaders["train"], criterion, optimizer, scheduler, device
        )
        report = evaluate(model, loaders["validation"], criterion, device)
        history[epoch, Column.kTrainLoss] = train_loss
        history[epoch, Column.kTrainAccuracy] = train_accuracy
        history[epoch, Column.kValidationLoss] = report["loss"]
        history[epoch, Column.kValidationAccuracy] = report["accuracy"]
        best.offer(report["accuracy"], model)
    best.restore_into(model)
    return history


# ------------------------------------------------------------------------------------------------
# Measures: integer counters, one division at the end
# ------------------------------------------------------------------------------------------------
def div_or_zero(numerator, denominator):
    return float(numerator) / float(denominator) if denominator != 0 else float(0.0)


def doubled_u(scores, is_positive):
    """2 * Mann-Whitney U as an exact integer: wins count 2, ties count 1. One sweep over sorted scores."""
    order = np.argsort(scores, kind="stable")
    n = int(order.size)
    total = int(0)
    negatives_below = int(0)
    i = int(0)
    while i < n:
        j = i
        positives_here = int(0)
        negatives_here = int(0)
        while j < n and scores[order[j]] == scores[order[i]]:
            if is_positive[order[j]]:
                positives_here += 1
            else:
                negatives_here += 1
            j += 1
        total += positives_here * (2 * negatives_below + negatives_here)
        negatives_below += negatives_here
        i = j
    return total


def classification_metrics(targets, probabilities):
    truth = np.asarray(targets).astype(np.int64)
    table = np.asarray(probabilities)
    n_images = int(table.shape[0])
    n_classes = int(table.shape[1])

    confusion = np.zeros((n_classes, n_classes), dtype=np.int64)
    for i in range(n_images):
        best = int(0)
        for c in range(1, n_classes):
            if table[i, c] > table[i, best]:  # '>' : the first of equals wins
                best = c
        confusion[truth[i], best] += 1

    precision = np.zeros(n_classes, dtype=np.float64)
    recall = np.zeros(n_classes, dtype=np.float64)
    f1 = np.zeros(n_classes, dtype=np.float64)
    roc_auc = np.full(n_classes, np.nan, dtype=np.float64)
    support = confusion.sum(axis=1)
    for c in range(n_classes):
        hits = int(confusion[c, c])
        called = int(confusion[:, c].sum())
        own = int(support[c])
        precision[c] = div_or_zero(hits, called)
        recall[c] = div_or_zero(hits, own)
        f1[c] = div_or_zero(2 * hits, called + own)
        others = n_images - own
        if own > 0 and others > 0:
            roc_auc[c] = float(doubled_u(table[:, c], truth == c)) / (2.0 * float(own) * float(others))

    result = {
        "confusion": confusion,
        "precision": precision,
        "recall": recall,
        "f1": f1,
        "support": support,
        "roc_auc": roc_auc,
        "accuracy": div_or_zero(int(np.trace(confusion)), n_images),
    }
    for name in ("precision", "recall", "f1", "roc_auc"):
        for prefix, weight_of in (("macro_", lambda c: int(1)), ("weighted_", lambda c: int(support[c]))):
            numerator = float(0.0)
            denominator = int(0)
            for c in range(n_classes):
                value = float(result[name][c])
                if support[c] == 0 or math.isnan(value):
                    continue
                numerator += value * float(weight_of(c))
                denominator += weight_of(c)
            result[prefix + name] = numerator / float(denominator) if denominator > 0 else float("nan")
    return result


def export_metrics(metrics, path):
    # explicit stack, no recursion (MISRA 17.2)
    stack = [("", metrics)]
    with FileHandle(path) as out:
        out.put(*kCsvHeader.split(","))
        while stack:
            name, value = stack.pop()
            if isinstance(value, dict):
                children = [(str(key), inner) for key, inner in value.items()]
            else:
                array = np.asarray(value)
                if array.ndim == 0:
                    out.put(name, repr(array.item()))
                    continue
                if array.ndim > 1:
                    continue
                children = [(str(i), item) for i, item in enumerate(array)]
            prefix = name + "." if name else ""
            for key, inner in reversed(children):
                stack.append((prefix + key, inner))


# ------------------------------------------------------------------------------------------------
# Pictures
# ------------------------------------------------------------------------------------------------
def plot_learning_curves(history):
    history = np.asarray(history, dtype=np.float64)
    ticks = np.arange(1, history.shape[0] + 1)
    figure, axes = plt.subplots(nrows=2, ncols=1, figsize=(6.0, 6.5), sharex=True)
    axes[0].plot(ticks, history[:, Column.kTrainLoss], "k--", label="training")
    axes[0].plot(ticks, history[:, Column.kValidationLoss], "r-", label="validation")
    axes[1].plot(ticks, history[:, Column.kTrainAccuracy], "k--", label="training")
    axes[1].plot(ticks, history[:, Column.kValidationAccuracy], "r-", label="validation")
    for axis, text in zip(axes, ("loss", "accuracy")):
        axis.set_xlabel("epoch")
        axis.set_ylabel(text)
        axis.grid(visible=True)
        axis.legend()
    return figure


def plot_confusion_matrix(matrix, class_names):
    matrix = np.asarray(matrix)
    n = int(matrix.shape[0])
    figure = plt.figure(figsize=(1.5 + 0.6 * n, 1.5 + 0.6 * n))
    axis = figure.add_subplot(1, 1, 1)
    axis.matshow(matrix, cmap="Greys", alpha=0.7)
    for row in range(n):
        for column in range(n):
            axis.annotate("%d" % int(matrix[row, column]), (column, row), ha="center", va="center", color="tab:red")
    axis.set_xticks(np.arange(n))
    axis.set_xticklabels(list(class_names), rotation=90)
    axis.set_yticks(np.arange(n))
    axis.set_yticklabels(list(class_names))
    axis.xaxis.set_ticks_position("bottom")
    axis.set_xlabel("predicted")
    axis.set_ylabel("true")
    return figure


def plot_roc(targets, probabilities, class_names):
    truth = np.asarray(targets)
    table = np.asarray(probabilities)
    figure, axis = plt.subplots(figsize=(6.0, 6.0))
    for c in range(int(table.shape[1])):
        own = truth == c
        n_pos = int(np.count_nonzero(own))
        n_neg = int(own.size) - n_pos
        if n_pos == 0 or n_neg == 0:
            continue
        order = np.argsort(-table[:, c], kind="stable")
        ranked = table[order, c]
        # a point only where the score changes: tied scores move together
        edge = np.append(ranked[1:] != ranked[:-1], True)
        tpr = np.cumsum(own[order])[edge] / float(n_pos)
        fpr = np.cumsum(~own[order])[edge] / float(n_neg)
        axis.plot(np.insert(fpr, 0, 0.0), np.insert(tpr, 0, 0.0), label=str(class_names[c]))
    axis.plot([0.0, 1.0], [0.0, 1.0], "k:", linewidth=0.8)
    axis.set_xlabel("false positive rate")
    axis.set_ylabel("true positive rate")
    axis.legend(fontsize=8)
    return figure


def to_rgb(image, mean, std):
    pixels = image.detach().cpu().numpy().astype(np.float32)
    out = np.empty_like(pixels)
    for c in range(int(pixels.shape[0])):
        out[c] = pixels[c] * np.float32(std[c]) + np.float32(mean[c])
    return np.ascontiguousarray(np.clip(out, 0.0, 1.0).transpose(1, 2, 0))


def plot_attention(model, images, labels, class_names, mean, std):
    n = int(len(images))
    figure = plt.figure(figsize=(6.0, 2.0 * n))
    for i in range(n):
        rgb = to_rgb(images[i], mean, std)
        heat = attention_map(model, images[i]).numpy()
        for column, title in enumerate((class_names[int(labels[i])], "map", "overlay")):
            axis = figure.add_subplot(n, 3, 3 * i + column + 1)
            axis.set_title(title, fontsize=8)
            axis.axis("off")
            if column != 1:
                axis.imshow(rgb)
            if column != 0:
                axis.imshow(heat, cmap="jet", vmin=0.0, vmax=1.0, alpha=1.0 if column == 1 else 0.4)
    return figure


def plot_top3(images, labels, probabilities, class_names, mean, std):
    table = np.asarray(probabilities)
    n = int(len(images))
    figure = plt.figure(figsize=(5.0, 1.4 * n))
    for i in range(n):
        axis = figure.add_subplot(n, 1, i + 1)
        axis.imshow(to_rgb(images[i], mean, std))
        axis.axis("off")
        lines = ["true: " + str(class_names[int(labels[i])])]
        for rank, c in enumerate(np.argsort(-table[i], kind="stable")[:kTop]):
            lines.append("%d. %-12s %6.2f %%" % (rank + 1, class_names[int(c)], 100.0 * float(table[i, c])))
        axis.text(1.1, 0.5, "\n".join(lines), transform=axis.transAxes, va="center", family="monospace", fontsize=8)
    return figure


# ------------------------------------------------------------------------------------------------
# int main()
# ------------------------------------------------------------------------------------------------
kEpochsVit = int(15)
kEpochsResnet = int(15)
n_classes = int(len(class_names))

t0 = time.monotonic()
vit = VisionTransformer(dim=96, depth=6, heads=4, mlp_ratio=2.0, dropout=0.0, num_classes=n_classes, pool="mean")
vit_history = fit(vit, loaders, kEpochsVit, device)
torch.save(vit.state_dict(), STUDENT_ID + "_CIFAR10_vit.pth")
print("[vit]    %6.0f s" % (time.monotonic() - t0))

t0 = time.monotonic()
resnet = ResNet18(num_classes=n_classes, width=16)
resnet_history = fit(resnet, loaders, kEpochsResnet, device)
torch.save(resnet.state_dict(), STUDENT_ID + "_CIFAR10_resnet.pth")
print("[resnet] %6.0f s" % (time.monotonic() - t0))

criterion = nn.CrossEntropyLoss()
measures = {}
for tag, net, net_history in (("vit", vit, vit_history), ("resnet", resnet, resnet_history)):
    report = evaluate(net, test_loader, criterion, device)
    measures[tag] = classification_metrics(report["targets"], report["probabilities"])
    print("[%s] accuracy %.4f" % (tag, report["accuracy"]))
    for part_name, part_size in parameter_table(net):
        print("    %-40s %8d" % (part_name, part_size))
    plot_learning_curves(net_history)
    plot_confusion_matrix(measures[tag]["confusion"], class_names)
    plot_roc(report["targets"], report["probabilities"], class_names)
export_metrics(measures, STUDENT_ID + "_metrics.csv")

show_images, show_labels = next(iter(test_loader))
show_images, show_labels = show_images[:6], show_labels[:6]
plot_attention(vit, show_images, show_labels, class_names, MEAN, STD)
with EvalModeGuard(vit), torch.no_grad():
    show_probabilities = torch.softmax(vit(show_images.to(device)), dim=1).cpu()
plot_top3(show_images, show_labels, show_probabilities, class_names, MEAN, STD)

# ------------------------------------------------------------------------------------------------
# Study
# ------------------------------------------------------------------------------------------------
kRunStudy = True
kColumns = (
    "patch_size", "dim", "depth", "heads", "mlp_ratio", "positions", "epochs", "seed", "parameters",
    "validation_accuracy",
)
kBase = {
    "patch_size": 8, "dim": 48, "depth": 4, "heads": 4, "mlp_ratio": 2.0, "positions": "learned", "epochs": 5,
}
kVariants = (
    ("patch_size", 4), ("dim", 96), ("depth", 2), ("depth", 6), ("heads", 2), ("mlp_ratio", 4.0),
    ("positions", "sinusoidal"),
)


def study_row(setting, seed):
    torch.manual_seed(int(seed))
    arguments = dict(setting)
    n_epochs = arguments.pop("epochs")
    model = VisionTransformer(**arguments, dropout=0.0, num_classes=n_classes)
    fit(model, loaders, n_epochs, device)
    accuracy = evaluate(model, loaders["validation"], criterion, device)["accuracy"]
    size = sum(count for _, count in parameter_table(model))
    record = {**setting, "seed": int(seed), "parameters": size, "validation_accuracy": "%.4f" % accuracy}
    return [record[column] for column in kColumns]


if kRunStudy:
    jobs = [(dict(kBase), seed) for seed in (1, 2, 3)]
    jobs += [({**kBase, key: value}, 1) for key, value in kVariants]
    with FileHandle(STUDENT_ID + "_study.csv") as study_file:
        study_file.put(*kColumns)
        for setting, seed in jobs:
            study_file.put(*study_row(setting, seed))
