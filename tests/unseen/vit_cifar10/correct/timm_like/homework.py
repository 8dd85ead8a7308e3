# %% [markdown]
# # A small timm
#
# One file in the manner of `timm`: `Mlp`, `DropPath`-free blocks, `forward_features` / `forward_head`, a
# scheduler with `step_update`, a `CheckpointSaver` on disk, parameter groups without weight decay.

# %%
import logging
import math
import os
import tempfile
import time
import zipfile
from collections import OrderedDict
from functools import partial

import matplotlib.pyplot as plt
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.utils.data import DataLoader, Subset
from torchvision import datasets, transforms

_logger = logging.getLogger("train")
STUDENT_ID = "400102001"

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(42)

# %%
CIFAR10_MEAN = (0.4914, 0.4822, 0.4465)
CIFAR10_STD = (0.2470, 0.2435, 0.2616)

with zipfile.ZipFile("dataset.zip") as archive:
    archive.extractall("data")


def create_transform(input_size=32, is_training=False, reprob=0.0):
    tfl = []
    if is_training:
        tfl += [transforms.RandomCrop(input_size, padding=4), transforms.RandomHorizontalFlip()]
    tfl += [transforms.ToTensor(), transforms.Normalize(CIFAR10_MEAN, CIFAR10_STD)]
    if is_training and reprob > 0.0:
        tfl += [transforms.RandomErasing(reprob, scale=(0.02, 0.15))]
    return transforms.Compose(tfl)


def create_loader(dataset, batch_size, is_training=False):
    # full batches only: the few images that are left over come in another epoch
    drop_last = is_training and len(dataset) >= batch_size
    return DataLoader(dataset, batch_size=batch_size, shuffle=is_training, drop_last=drop_last)


dataset_train = datasets.ImageFolder("data/train", transform=create_transform(is_training=True, reprob=0.1))
dataset_eval = datasets.ImageFolder("data/train", transform=create_transform())
dataset_test = datasets.ImageFolder("data/test", transform=create_transform())
class_names = dataset_test.classes

indices = np.arange(len(dataset_eval))
np.random.RandomState(42).shuffle(indices)
is_val = np.zeros(len(indices), dtype=bool)
is_val[indices[: max(1, len(indices) // 10)]] = True
loaders = {
    "train": create_loader(Subset(dataset_train, np.flatnonzero(~is_val).tolist()), 64, is_training=True),
    "validation": create_loader(Subset(dataset_eval, np.flatnonzero(is_val).tolist()), 256),
}
test_loader = create_loader(dataset_test, 256)

# %% [markdown]
# ## Vision Transformer


# %%
def to_2tuple(x):
    return tuple(x) if isinstance(x, (tuple, list)) else (x, x)


class Mlp(nn.Module):
    def __init__(self, in_features, hidden_features=None, out_features=None, act_layer=nn.GELU, bias=True, drop=0.0):
        super().__init__()
        out_features = out_features or in_features
        hidden_features = hidden_features or in_features
        self.fc1 = nn.Linear(in_features, hidden_features, bias=bias)
        self.act = act_layer()
        self.drop1 = nn.Dropout(drop)
        self.fc2 = nn.Linear(hidden_features, out_features, bias=bias)
        self.drop2 = nn.Dropout(drop)

    def forward(self, x):
        x = self.fc1(x)
        x = self.act(x)
        x = self.drop1(x)
        x = self.fc2(x)
        x = self.drop2(x)
        return x


class PatchEmbedding(nn.Module):
    def __init__(self, image_size, patch_size, in_channels, dim):
        super().__init__()
        self.img_size = to_2tuple(image_size)
        self.patch_size = to_2tuple(patch_size)
        self.grid_size = tuple(s // p for s, p in zip(self.img_size, self.patch_size))
        self.num_patches = self.grid_size[0] * self.grid_size[1]
        self.proj = nn.Conv2d(in_channels, dim, kernel_size=self.patch_size, stride=self.patch_size)
        self.norm = nn.Identity()

    def forward(self, images):
        B, C, H, W = images.shape
        if (H, W) != self.img_size:
            raise AssertionError(f"Input size ({H}x{W}) doesn't match model {self.img_size}.")
        x = self.proj(images)
        x = x.flatten(2).transpose(1, 2)  # BCHW -> BNC
        return self.norm(x)


def sinusoidal_positions(tokens, dim):
    temperature = 10000.0
    grid = torch.arange(tokens, dtype=torch.float64)
    omega = torch.exp(torch.arange(0, dim, 2, dtype=torch.float64) * (-math.log(temperature) / dim))
    out = grid.unsqueeze(1) * omega.unsqueeze(0)
    pe = torch.zeros(tokens, dim, dtype=torch.float64)
    pe[:, 0::2] = out.sin()
    pe[:, 1::2] = out.cos()
    return pe.to(torch.float32)


class MultiHeadSelfAttention(nn.Module):
    def __init__(self, dim, heads, dropout=0.0):
        super().__init__()
        assert dim % heads == 0, "dim should be divisible by heads"
        self.num_heads = heads
        self.head_dim = dim // heads
        self.scale = self.head_dim**-0.5
        self.qkv = nn.Linear(dim, dim * 3, bias=True)
        self.attn_drop = nn.Dropout(dropout)
        self.proj = nn.Linear(dim, dim)

    def forward(self, x, return_weights=False):
        B, N, C = x.shape
        qkv = self.qkv(x).reshape(B, N, 3, self.num_heads, self.head_dim).permute(2, 0, 3, 1, 4)
        q, k, v = qkv.unbind(0)
        q = q * self.scale
        attn = q @ k.transpose(-2, -1)
        attn = attn.softmax(dim=-1)
        x = self.attn_drop(attn) @ v
        x = x.transpose(1, 2).reshape(B, N, C)
        x = self.proj(x)
        return (x, attn) if return_weights else x


class EncoderBlock(nn.Module):
    norm_layer = partial(nn.LayerNorm, eps=1e-6)
    act_layer = nn.GELU
    mlp_layer = Mlp

    def __init__(self, dim, heads, mlp_ratio=4.0, dropout=0.0):
        super().__init__()
        self.norm1 = type(self).norm_layer(dim)
        self.attn = MultiHeadSelfAttention(dim, heads=heads, dropout=dropout)
        self.norm2 = type(self).norm_layer(dim)
        self.mlp = self.mlp_layer(
            in_features=dim, hidden_features=int(dim * mlp_ratio), act_layer=self.act_layer, drop=dropout
        )

    def forward(self, x):
        x = x + self.attn(self.norm1(x))
        x = x + self.mlp(self.norm2(x))
        return x


def init_weights_vit_timm(module, name=""):
    if isinstance(module, nn.Linear):
        nn.init.trunc_normal_(module.weight, std=0.02)
        if module.bias is not None:
            nn.init.zeros_(module.bias)


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
        assert pool in ("cls", "mean")
        assert positions in ("learned", "sinusoidal")
        norm_layer = partial(nn.LayerNorm, eps=1e-6)
        use_fc_norm = pool == "mean"  # as timm does it: with average pooling the norm comes after the mean

        self.num_classes = num_classes
        self.global_pool = pool
        self.num_features = self.embed_dim = dim
        self.num_prefix_tokens = 1 if pool == "cls" else 0

        self.patch_embed = PatchEmbedding(image_size, patch_size, in_channels, dim)
        num_patches = self.patch_embed.num_patches
        self.cls_token = nn.Parameter(torch.zeros(1, 1, dim)) if self.num_prefix_tokens else None
        embed_len = num_patches + self.num_prefix_tokens
        if positions == "learned":
            self.pos_embed = nn.Parameter(torch.randn(1, embed_len, dim) * 0.02)
        else:
            self.register_buffer("pos_embed", sinusoidal_positions(embed_len, dim)[None], persistent=True)
        self.pos_drop = nn.Dropout(p=dropout)

        self.blocks = nn.Sequential(
            *[EncoderBlock(dim, heads, mlp_ratio=mlp_ratio, dropout=dropout) for _ in range(depth)]
        )
        self.norm = norm_layer(dim) if not use_fc_norm else nn.Identity()
        self.fc_norm = norm_layer(dim) if use_fc_norm else nn.Identity()
        self.head = nn.Linear(dim, num_classes) if num_classes > 0 else nn.Identity()
        self.init_weights()

    def init_weights(self):
        if self.cls_token is not None:
            nn.init.normal_(self.cls_token, std=1e-6)
        for name, module in self.named_modules():
            init_weights_vit_timm(module, name)

    def no_weight_decay(self):
        return {"pos_embed", "cls_token"}

    def _pos_embed(self, x):
        if self.cls_token is not None:
            x = torch.cat((self.cls_token.expand(x.shape[0], -1, -1), x), dim=1)
        x = x + self.pos_embed
        return self.pos_drop(x)

    def forward_features(self, x):
        x = self.patch_embed(x)
        x = self._pos_embed(x)
        x = self.blocks(x)
        x = self.norm(x)
        return x

    def forward_head(self, x, pre_logits=False):
        x = x[:, self.num_prefix_tokens :].mean(dim=1) if self.global_pool == "mean" else x[:, 0]
        x = self.fc_norm(x)
        return x if pre_logits else self.head(x)

    def forward(self, images):
        x = self.forward_features(images)
        x = self.forward_head(x)
        return x

    def attention(self, images):
        x = self._pos_embed(self.patch_embed(images))
        x = self.blocks[:-1](x)
        last = self.blocks[-1]
        return last.attn(last.norm1(x), return_weights=True)[1]


# %%
@torch.no_grad()
def attention_map(model, image):
    training = {name: module.training for name, module in model.named_modules()}
    model.eval()
    attn = model.attention(image[None].to(next(model.parameters()).device))
    for name, module in model.named_modules():
        module.training = training[name]
    attn = attn.mean(dim=1)[0].cpu()  # N x N
    N = attn.shape[0]
    num_prefix_tokens = 0 if math.isqrt(N) ** 2 == N else 1
    mask = attn[0, num_prefix_tokens:] if num_prefix_tokens else attn.mean(dim=0)
    side = math.isqrt(len(mask))
    mask = mask.reshape(1, 1, side, side)
    mask = F.interpolate(mask, size=tuple(image.shape[-2:]), mode="nearest")[0, 0]
    return mask / mask.max().clamp_min(1e-12)


# %% [markdown]
# ## ResNet


# %%
def create_downsample(in_channels, out_channels, stride, norm_layer):
    return nn.Sequential(
        *[nn.Conv2d(in_channels, out_channels, 1, stride=stride, padding=0, bias=False), norm_layer(out_channels)]
    )


class BasicBlock(nn.Module):
    expansion = 1

    def __init__(self, in_channels, channels, stride=1):
        super().__init__()
        act_layer, norm_layer = nn.ReLU, nn.BatchNorm2d
        outplanes = channels * self.expansion
        self.conv1 = nn.Conv2d(in_channels, channels, kernel_size=3, stride=stride, padding=1, bias=False)
        self.bn1 = norm_layer(channels)
        self.act1 = act_layer(inplace=True)
        self.conv2 = nn.Conv2d(channels, outplanes, kernel_size=3, padding=1, bias=False)
        self.bn2 = norm_layer(outplanes)
        self.act2 = act_layer(inplace=True)
        needs = stride != 1 or in_channels != outplanes
        self.downsample = create_downsample(in_channels, outplanes, stride, norm_layer) if needs else None
        self.stride = stride

    def forward(self, x):
        shortcut = x
        x = self.conv1(x)
        x = self.bn1(x)
        x = self.act1(x)
        x = self.conv2(x)
        x = self.bn2(x)
        if self.downsample is not None:
            shortcut = self.downsample(shortcut)
        x += shortcut
        x = self.act2(x)
        return x


def make_blocks(block_fn, channels, block_repeats, inplanes, **kwargs):
    stages = []
    for stage_idx, (planes, num_blocks) in enumerate(zip(channels, block_repeats)):
        blocks = []
        for block_idx in range(num_blocks):
            stride = 2 if stage_idx > 0 and block_idx == 0 else 1
            blocks.append(block_fn(inplanes, planes, stride, **kwargs))
            inplanes = planes * block_fn.expansion
        stages.append((f"layer{stage_idx + 1}", nn.Sequential(*blocks)))
    return stages, inplanes


class ResNet18(nn.Module):
    def __init__(self, num_classes=10, width=64):
        super().__init__()
        block, layers = BasicBlock, (2, 2, 2, 2)
        self.conv1 = nn.Conv2d(3, width, kernel_size=3, stride=1, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.act1 = nn.ReLU(inplace=True)
        stages, self.num_features = make_blocks(block, [width * 2**i for i in range(len(layers))], layers, width)
        for name, stage in stages:
            self.add_module(name, stage)
        self.stage_names = [name for name, _ in stages]
        self.fc = nn.Linear(self.num_features, num_classes)
        for m in self.modules():
            if isinstance(m, nn.Conv2d):
                nn.init.kaiming_normal_(m.weight, mode="fan_out", nonlinearity="relu")

    def forward_features(self, x):
        x = self.act1(self.bn1(self.conv1(x)))
        for name in self.stage_names:
            x = getattr(self, name)(x)
        return x

    def forward_head(self, x):
        return self.fc(F.adaptive_avg_pool2d(x, 1).flatten(1))

    def forward(self, images):
        return self.forward_head(self.forward_features(images))


# %%
def parameter_table(model):
    """Grouped to the depth of `blocks.3` and `layer2.0`."""
    table = OrderedDict()
    for name, param in model.named_parameters():
        parts = name.split(".")
        depth = 2 if len(parts) > 2 and parts[1].isdigit() else 1
        group = ".".join(parts[:depth])
        table[group] = table.get(group, 0) + param.numel()
    return list(table.items())


# %% [markdown]
# ## Training


# %%
def warmup_cosine(step, warmup_steps, total_steps):
    if step >= total_steps:
        return 0.0
    if step < warmup_steps:
        return step * (1.0 / warmup_steps)
    t = step - warmup_steps
    t_initial = total_steps - warmup_steps
    return 0.5 * (1 + math.cos(math.pi * t / t_initial))


class CosineScheduler:
    """As timm's: counts updates itself, and writes the learning rate into the optimizer's groups."""

    def __init__(self, optimizer, t_initial, warmup_t):
        self.optimizer = optimizer
        self.t_initial, self.warmup_t = t_initial, warmup_t
        self.base_values = [group.setdefault("initial_lr", group["lr"]) for group in optimizer.param_groups]
        self.num_updates = 0
        self.update_groups()

    def update_groups(self):
        factor = warmup_cosine(self.num_updates, self.warmup_t, self.t_initial)
        for group, base in zip(self.optimizer.param_groups, self.base_values):
            group["lr"] = base * factor * group.get("lr_scale", 1.0)

    def step_update(self, num_updates):
        self.num_updates = num_updates
        self.update_groups()

    def step(self):
        self.step_update(self.num_updates + 1)


class AverageMeter:
    def __init__(self):
        self.val = self.avg = self.sum = self.count = 0

    def update(self, val, n=1):
        self.val = val
        self.sum += val * n
        self.count += n
        self.avg = self.sum / self.count


def accuracy(output, target):
    return (output.argmax(dim=1) == target).sum().item() / target.shape[0]


def train_epoch(model, loader, criterion, optimizer, scheduler, device):
    losses_m, top1_m = AverageMeter(), AverageMeter()
    model.train()
    for batch_idx, (input, target) in enumerate(loader):
        input, target = input.to(device, non_blocking=True), target.to(device, non_blocking=True)
        output = model(input)
        loss = criterion(output, target)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if scheduler is not None:
            scheduler.step()
        losses_m.update(loss.item(), input.size(0))
        top1_m.update(accuracy(output.detach(), target), input.size(0))
        _logger.debug("%d loss %.4f (%.4f)", batch_idx, losses_m.val, losses_m.avg)
    return losses_m.avg, top1_m.avg


def evaluate(model, loader, criterion, device):
    losses_m, correct = AverageMeter(), 0
    outputs, targets = [], []
    model.eval()
    with torch.no_grad():
        for input, target in loader:
            input, target = input.to(device), target.to(device)
            output = model(input)
            losses_m.update(criterion(output, target).item(), input.size(0))
            correct += int((output.argmax(dim=1) == target).sum())
            outputs.append(output.softmax(-1).cpu())
            targets.append(target.cpu())
    probabilities = torch.vstack(outputs)
    metrics = OrderedDict([("loss", losses_m.avg), ("accuracy", correct / losses_m.count)])
    metrics["targets"] = torch.hstack(targets)
    metrics["predictions"] = probabilities.argmax(dim=-1)
    metrics["probabilities"] = probabilities
    return metrics


def param_groups_weight_decay(model, weight_decay):
    skip = model.no_weight_decay() if hasattr(model, "no_weight_decay") else set()
    decay, no_decay = [], []
    for name, param in model.named_parameters():
        if not param.requires_grad:
            continue
        (no_decay if param.ndim <= 1 or name in skip else decay).append(param)
    groups = [{"params": no_decay, "weight_decay": 0.0}, {"params": decay, "weight_decay": weight_decay}]
    return [group for group in groups if group["params"]]


class CheckpointSaver:
    """Writes `model_best.pth.tar` when the metric rises."""

    def __init__(self, model, checkpoint_dir):
        self.model = model
        self.best_file = os.path.join(checkpoint_dir, "model_best.pth.tar")
        self.best_metric = None

    def save_checkpoint(self, epoch, metric):
        if self.best_metric is None or metric > self.best_metric:
            self.best_metric = metric
            torch.save({"epoch": epoch, "state_dict": self.model.state_dict(), "metric": metric}, self.best_file)

    def resume_best(self, device):
        if self.best_metric is not None:
            checkpoint = torch.load(self.best_file, map_location=device, weights_only=True)
            self.model.load_state_dict(checkpoint["state_dict"])


def create_optimizer(model):
    if isinstance(model, ResNet18):
        return optim.SGD(param_groups_weight_decay(model, 5e-4), lr=0.1, momentum=0.9, nesterov=True)
    return optim.AdamW(param_groups_weight_decay(model, 0.05), lr=1e-3)


def fit(model, loaders, epochs, device):
    model = model.to(device)
    updates_per_epoch = len(loaders["train"])
    num_updates = epochs * updates_per_epoch
    optimizer = create_optimizer(model)
    scheduler = CosineScheduler(optimizer, t_initial=num_updates, warmup_t=num_updates // 10)
    train_loss_fn, validate_loss_fn = nn.CrossEntropyLoss(label_smoothing=0.1), nn.CrossEntropyLoss()
    summary = []
    with tempfile.TemporaryDirectory() as output_dir:
        saver = CheckpointSaver(model, output_dir)
        for epoch in range(epochs):
            train_loss, train_top1 = train_epoch(model, loaders["train"], train_loss_fn, optimizer, scheduler, device)
            eval_metrics = evaluate(model, loaders["validation"], validate_loss_fn, device)
            saver.save_checkpoint(epoch, eval_metrics["accuracy"])
            row = OrderedDict(epoch=epoch, train_loss=train_loss, train_top1=train_top1)
            row.update(eval_loss=eval_metrics["loss"], eval_top1=eval_metrics["accuracy"])
            summary.append(row)
            _logger.info("epoch %d: %s", epoch, dict(row))
        saver.resume_best(device)
    return summary


# %% [markdown]
# ## Measures


# %%
def _numpy(x):
    return x.detach().cpu().numpy() if torch.is_tensor(x) else np.asarray(x)


def _auc(pos, score):
    """Sum of the positives' midranks (Mann and Whitney)."""
    n_pos = int(pos.sum())
    n_neg = len(pos) - n_pos
    if n_pos == 0 or n_neg == 0:
        return float("nan")
    _, inverse, counts = np.unique(score, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)  # rank of the last of each run, from 1
    midrank = last - (counts - 1) / 2
    return float((midrank[inverse][pos].sum() - n_pos * (n_pos + 1) / 2) / (n_pos * n_neg))


def classification_metrics(targets, probabilities):
    targets, probabilities = _numpy(targets).astype(np.int64), _numpy(probabilities)
    C = probabilities.shape[-1]
    preds = probabilities.argmax(-1)
    confusion = np.histogram2d(targets, preds, bins=(np.arange(C + 1) - 0.5,) * 2)[0].astype(np.int64)
    tp = confusion.diagonal()
    fp, fn = confusion.sum(0) - tp, confusion.sum(1) - tp
    support = tp + fn

    def div(a, b):
        out = np.zeros(C)
        np.divide(a, b, out=out, where=b > 0)
        return out

    metrics = OrderedDict(accuracy=float(np.mean(preds == targets)))
    metrics["precision"] = div(tp, tp + fp)
    metrics["recall"] = div(tp, tp + fn)
    metrics["f1"] = div(2 * tp, 2 * tp + fp + fn)
    metrics["roc_auc"] = np.fromiter((_auc(targets == c, probabilities[:, c]) for c in range(C)), float, C)
    for key in ("precision", "recall", "f1", "roc_auc"):
        valid = (support > 0) & np.isfinite(metrics[key])
        weight, value = support[valid], metrics[key][valid]
        metrics["macro_" + key] = float(value.sum() / len(value)) if len(value) else float("nan")
        metrics["weighted_" + key] = float((value * weight).sum() / weight.sum()) if len(value) else float("nan")
    metrics["support"] = support
    metrics["confusion"] = confusion
    return metrics


def flatten_metrics(metrics, prefix=""):
    flat = OrderedDict()
    for key, value in metrics.items():
        key = f"{prefix}{key}"
        if isinstance(value, dict):
            flat.update(flatten_metrics(value, key + "."))
        elif np.ndim(_numpy(value)) == 0:
            flat[key] = float(value)
        elif np.ndim(_numpy(value)) == 1:
            flat.update((f"{key}.{i}", float(v)) for i, v in enumerate(_numpy(value)))
    return flat


def export_metrics(metrics, path):
    """f-strings are enough; names with commas or quotes are quoted."""
    lines = ["metric,value"]
    for name, value in flatten_metrics(metrics).items():
        if any(c in name for c in ',"\n'):
            name = '"' + name.replace('"', '""') + '"'
        lines.append(f"{name},{value:.17g}")
    with open(path, "w", encoding="utf-8") as f:
        f.write("\n".join(lines) + "\n")


# %% [markdown]
# ## Pictures


# %%
def plot_learning_curves(history):
    epochs = [row["epoch"] for row in history]
    fig, (ax_loss, ax_top1) = plt.subplots(nrows=1, ncols=2, figsize=(11, 4))
    for ax, key, title in ((ax_loss, "loss", "Loss"), (ax_top1, "top1", "Top-1 accuracy [%]")):
        scale = 100 if key == "top1" else 1
        for split, style in (("train", "-"), ("eval", "--")):
            values = [scale * row[f"{split}_{key}"] for row in history]
            ax.plot(epochs, values, style, marker="x", label=f"{split}_{key}")
        ax.set_xlabel("Epoch (from 0)")
        ax.set_ylabel(title)
        ax.legend()
    fig.tight_layout()
    return fig


def plot_confusion_matrix(matrix, class_names):
    matrix = _numpy(matrix)
    fig, ax = plt.subplots(figsize=(0.7 * len(class_names) + 2.5, 0.7 * len(class_names) + 2))
    ax.imshow(np.log1p(matrix), cmap="PuBu")  # errors are rare, so the color is logarithmic; the counts are plain
    for r in range(matrix.shape[0]):
        for c in range(matrix.shape[1]):
            ax.text(c, r, format(int(matrix[r, c]), "d"), ha="center", va="center", fontsize=8)
    ax.set_xticks(range(len(class_names)), class_names, rotation=40, ha="right")
    ax.set_yticks(range(len(class_names)), class_names)
    ax.set_xlabel("Prediction")
    ax.set_ylabel("Target")
    fig.tight_layout()
    return fig


def plot_roc(targets, probabilities, class_names):
    targets, probabilities = _numpy(targets), _numpy(probabilities)
    fig, ax = plt.subplots(figsize=(6.5, 6))
    for c, name in enumerate(class_names):
        pos, score = targets == c, probabilities[:, c]
        if not 0 < pos.sum() < len(pos):
            continue
        thresholds = np.concatenate(([np.inf], np.unique(score)[::-1]))
        sorted_pos, sorted_neg = np.sort(score[pos]), np.sort(score[~pos])
        tpr = 1 - np.searchsorted(sorted_pos, thresholds, side="left") / len(sorted_pos)
        fpr = 1 - np.searchsorted(sorted_neg, thresholds, side="left") / len(sorted_neg)
        ax.plot(fpr, tpr, label=f"{name}, AUC={_auc(pos, score):.3f}")
    ax.axline((0, 0), slope=1, color="0.7", ls=":")
    ax.set_xlabel("FPR")
    ax.set_ylabel("TPR")
    ax.set_title("One-vs-rest ROC")
    ax.legend(fontsize=7)
    return fig


def unnormalize(tensor, mean, std):
    mean = torch.as_tensor(mean, dtype=tensor.dtype).view(-1, 1, 1)
    std = torch.as_tensor(std, dtype=tensor.dtype).view(-1, 1, 1)
    return tensor.detach().cpu().mul(std).add(mean).clamp(0, 1).permute(0, 2, 3, 1).numpy()


def plot_attention(model, images, labels, class_names, mean, std):
    pictures = unnormalize(images, mean, std)
    fig, axs = plt.subplots(len(pictures), 3, figsize=(5.4, 1.9 * len(pictures)), squeeze=False)
    for (ax0, ax1, ax2), tensor, picture, label in zip(axs, images, pictures, labels):
        mask = attention_map(model, tensor)
        ax0.imshow(picture, interpolation="bicubic")
        ax1.imshow(mask, cmap="magma", vmin=0, vmax=1)
        ax2.imshow(picture, interpolation="bicubic")
        ax2.imshow(mask, cmap="magma", vmin=0, vmax=1, alpha=0.55)
        ax0.set_ylabel(class_names[int(label)], rotation=0, ha="right", va="center")
        for ax in (ax0, ax1, ax2):
            ax.set_xticks([])
            ax.set_yticks([])
    for ax, title in zip(axs[0], ("input", "attention", "overlay")):
        ax.set_title(title)
    fig.tight_layout()
    return fig


def plot_top3(images, labels, probabilities, class_names, mean, std):
    pictures = unnormalize(images, mean, std)
    probabilities = torch.as_tensor(probabilities)
    k = min(3, probabilities.shape[1])
    prob, index = probabilities.detach().cpu().topk(k, dim=1)
    fig, axs = plt.subplots(len(pictures), 1, figsize=(4.5, 1.6 * len(pictures)), squeeze=False)
    for ax, picture, label, p, i in zip(axs[:, 0], pictures, labels, prob.tolist(), index.tolist()):
        ax.imshow(picture)
        ax.axis("off")
        text = "\n".join(f"{class_names[c]:<12s} {q:.3f}" for c, q in zip(i, p))
        ax.text(
            1.1, 0.5, f"target: {class_names[int(label)]}\n{text}", transform=ax.transAxes, va="center",
            family="monospace", fontsize=9, color="green" if i[0] == int(label) else "firebrick",
        )  # fmt: skip
    fig.subplots_adjust(right=0.5)
    return fig


# %% [markdown]
# ## Train both models

# %%
VIT_EPOCHS = RESNET_EPOCHS = 15

start = time.time()
vit = VisionTransformer(dim=96, depth=6, heads=4, mlp_ratio=2.0, dropout=0.0, num_classes=len(class_names))
vit_history = fit(vit, loaders, VIT_EPOCHS, device)
torch.save(vit.state_dict(), f"{STUDENT_ID}_CIFAR10_vit.pth")
print(f"The ViT took {time.time() - start:.0f} s.")

# %%
start = time.time()
resnet = ResNet18(num_classes=len(class_names), width=16)
resnet_history = fit(resnet, loaders, RESNET_EPOCHS, device)
torch.save(resnet.state_dict(), f"{STUDENT_ID}_CIFAR10_resnet.pth")
print(f"The ResNet took {time.time() - start:.0f} s.")

# %%
criterion = nn.CrossEntropyLoss()
measures = OrderedDict()
for name, model, history in [("vit", vit, vit_history), ("resnet", resnet, resnet_history)]:
    found = evaluate(model, test_loader, criterion, device)
    measures[name] = classification_metrics(found["targets"], found["probabilities"])
    print(f"{name}: Acc@1 {100 * found['accuracy']:.2f}, {parameter_table(model)}")
    plot_learning_curves(history)
    plot_confusion_matrix(measures[name]["confusion"], class_names)
    plot_roc(found["targets"], found["probabilities"], class_names)
export_metrics(measures, f"{STUDENT_ID}_metrics.csv")

# %%
images, labels = next(iter(test_loader))
images, labels = images[:6], labels[:6]
plot_attention(vit, images, labels, class_names, CIFAR10_MEAN, CIFAR10_STD)
with torch.no_grad():
    found = vit.eval()(images.to(device)).softmax(dim=1).cpu()
plot_top3(images, labels, found, class_names, CIFAR10_MEAN, CIFAR10_STD)

# %% [markdown]
# ## Study

# %%
RUN_STUDY = True
BASE = dict(patch_size=8, dim=48, depth=4, heads=4, mlp_ratio=2.0, positions="learned", epochs=6)
VARIANTS = [
    dict(patch_size=4), dict(dim=24), dict(depth=2), dict(depth=6), dict(heads=2), dict(mlp_ratio=4.0),
    dict(positions="sinusoidal"),
]  # fmt: skip


def trained_row(values, seed):
    torch.manual_seed(seed)
    kwargs = dict(values)
    epochs = kwargs.pop("epochs")
    model = VisionTransformer(**kwargs, dropout=0.0, num_classes=len(class_names))
    parameters = sum(p.numel() for p in model.parameters())
    fit(model, loaders, epochs, device)
    top1 = evaluate(model, loaders["validation"], criterion, device)["accuracy"]
    return [*values.values(), seed, parameters, f"{top1:.4f}"]


if RUN_STUDY:
    with open(f"{STUDENT_ID}_study.csv", "w", encoding="utf-8") as f:
        print(*BASE, "seed", "parameters", "validation_accuracy", sep=",", file=f)
        for seed in (42, 43, 44):
            print(*trained_row(BASE, seed), sep=",", file=f)
        for variant in VARIANTS:
            print(*trained_row({**BASE, **variant}, 42), sep=",", file=f)
