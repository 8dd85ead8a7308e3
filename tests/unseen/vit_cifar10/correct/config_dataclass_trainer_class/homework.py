# ViT vs. ResNet-18 on CIFAR-10 - 400102901
import csv
import math
import random
import time
import zipfile
from collections import OrderedDict
from copy import deepcopy
from dataclasses import asdict, astuple, dataclass, field, fields, replace

import matplotlib.pyplot as plt
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.optim import SGD, AdamW
from torch.optim.lr_scheduler import LambdaLR
from torch.utils.data import DataLoader, Subset
from torchvision import datasets
from torchvision import transforms as T

try:
    from tqdm.auto import tqdm
except ImportError:  # a progress bar is nice to have, not more
    tqdm = None


# ============================================================ configs
@dataclass(frozen=True)
class DataConfig:
    archive: str = "dataset.zip"
    folder: str = "data"
    mean: tuple = (0.4914, 0.4822, 0.4465)
    std: tuple = (0.2470, 0.2435, 0.2616)
    batch_size: int = 64
    eval_batch_size: int = 256
    validation_share: float = 0.1
    crop_padding: int = 4
    seed: int = 42


@dataclass(frozen=True)
class ViTConfig:
    patch_size: int = 4
    dim: int = 96
    depth: int = 6
    heads: int = 4
    mlp_ratio: float = 2.0
    dropout: float = 0.0
    positions: str = "sinusoidal"
    pool: str = "mean"
    num_classes: int = 10


@dataclass(frozen=True)
class ResNetConfig:
    width: int = 16
    num_classes: int = 10


@dataclass(frozen=True)
class TrainerConfig:
    optimizer: str = "adamw"
    lr: float = 1e-3
    weight_decay: float = 0.05
    betas: tuple = (0.9, 0.999)
    momentum: float = 0.9
    warmup_share: float = 0.08
    label_smoothing: float = 0.0
    early_stopping_patience: int | None = None  # None: off
    verbose: bool = True


@dataclass(frozen=True)
class ExperimentConfig:
    student_id: str = "400102901"
    vit_epochs: int = 15
    resnet_epochs: int = 15
    run_study: bool = False
    data: DataConfig = field(default_factory=DataConfig)
    vit: ViTConfig = field(default_factory=ViTConfig)
    resnet: ResNetConfig = field(default_factory=ResNetConfig)


VIT_TRAINER = TrainerConfig()
RESNET_TRAINER = TrainerConfig(optimizer="sgd", lr=0.1, weight_decay=5e-4, warmup_share=0.1)

cfg = ExperimentConfig()
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def seed_everything(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    torch.cuda.manual_seed_all(seed)


seed_everything(cfg.data.seed)


# ============================================================ data
def make_loaders(c):
    with zipfile.ZipFile(c.archive) as archive:
        archive.extractall(c.folder)
    to_tensor = [T.ToTensor(), T.Normalize(c.mean, c.std)]
    augment = [T.RandomCrop(32, padding=c.crop_padding), T.RandomHorizontalFlip()]
    augmented = datasets.ImageFolder(f"{c.folder}/train", T.Compose(augment + to_tensor))
    plain = datasets.ImageFolder(f"{c.folder}/train", T.Compose(to_tensor))
    test = datasets.ImageFolder(f"{c.folder}/test", T.Compose(to_tensor))

    indices = torch.randperm(len(plain), generator=torch.Generator().manual_seed(c.seed)).tolist()
    n_val = int(len(indices) * c.validation_share)
    train_set, val_set = Subset(augmented, indices[n_val:]), Subset(plain, indices[:n_val])
    return {
        "train": DataLoader(train_set, c.batch_size, shuffle=True),
        "validation": DataLoader(val_set, c.eval_batch_size),
        "test": DataLoader(test, c.eval_batch_size),
    }, test.classes


loaders, class_names = make_loaders(cfg.data)


# ============================================================ ViT
class PatchEmbedding(nn.Module):
    def __init__(self, image_size, patch_size, in_channels, dim):
        super().__init__()
        assert image_size % patch_size == 0, "patches must tile the image"
        self.patch_size = patch_size
        self.grid = image_size // patch_size
        self.num_patches = self.grid**2
        self.proj = nn.Linear(in_channels * patch_size**2, dim)

    def forward(self, images):
        b, c, _, _ = images.shape
        p, g = self.patch_size, self.grid
        x = images.reshape(b, c, g, p, g, p)  # b, c, row, y, column, x
        x = x.permute(0, 2, 4, 1, 3, 5)  # b, row, column, c, y, x
        return self.proj(x.reshape(b, g * g, c * p * p))


def sinusoidal_positions(tokens, dim):
    pos = torch.arange(tokens, dtype=torch.float32)
    inv_freq = torch.exp(torch.arange(0, dim, 2, dtype=torch.float32) * (-math.log(10000.0) / dim))
    angles = torch.outer(pos, inv_freq)
    return torch.stack((angles.sin(), angles.cos()), dim=-1).reshape(tokens, dim)


class MultiHeadSelfAttention(nn.Module):
    def __init__(self, dim, heads, dropout=0.0):
        super().__init__()
        assert dim % heads == 0
        self.dim, self.heads, self.head_dim = dim, heads, dim // heads
        self.to_qkv = nn.Linear(dim, 3 * dim)
        self.to_out = nn.Linear(dim, dim)
        self.attn_drop = nn.Dropout(dropout)

    def forward(self, x, return_weights=False):
        b, n, _ = x.shape
        qkv = self.to_qkv(x).reshape(b, n, 3, self.heads, self.head_dim).permute(2, 0, 3, 1, 4)
        q, k, v = qkv.unbind(0)
        attn = F.softmax(q @ k.mT / math.sqrt(self.head_dim), dim=-1)
        out = (self.attn_drop(attn) @ v).transpose(1, 2).reshape(b, n, self.dim)
        out = self.to_out(out)
        if return_weights:
            return out, attn
        return out


class EncoderBlock(nn.Module):
    def __init__(self, dim, heads, mlp_ratio=4.0, dropout=0.0):
        super().__init__()
        hidden = round(dim * mlp_ratio)
        self.ln_1 = nn.LayerNorm(dim, eps=1e-6)
        self.attn = MultiHeadSelfAttention(dim, heads, dropout)
        self.ln_2 = nn.LayerNorm(dim, eps=1e-6)
        self.mlp = nn.Sequential(
            OrderedDict(
                fc_1=nn.Linear(dim, hidden),
                act=nn.GELU(),
                drop_1=nn.Dropout(dropout),
                fc_2=nn.Linear(hidden, dim),
                drop_2=nn.Dropout(dropout),
            )
        )

    def forward(self, x, return_weights=False):
        attended, weights = self.attn(self.ln_1(x), return_weights=True)
        x = x + attended
        x = x + self.mlp(self.ln_2(x))
        return (x, weights) if return_weights else x


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
        assert positions in {"learned", "sinusoidal"}
        assert pool in {"cls", "mean"}
        self.pool = pool
        self.patch_embed = PatchEmbedding(image_size, patch_size, in_channels, dim)
        n = self.patch_embed.num_patches + (pool == "cls")
        if pool == "cls":
            self.cls_token = nn.Parameter(torch.zeros(1, 1, dim))
        if positions == "learned":
            self.pos_embed = nn.Parameter(torch.zeros(1, n, dim))
        else:  # frozen
            self.pos_embed = nn.Parameter(sinusoidal_positions(n, dim)[None], requires_grad=False)
        self.pos_drop = nn.Dropout(dropout)
        self.blocks = nn.ModuleList(EncoderBlock(dim, heads, mlp_ratio, dropout) for _ in range(depth))
        self.norm = nn.LayerNorm(dim, eps=1e-6)
        self.head = nn.Linear(dim, num_classes)
        self.reset_parameters(positions)

    def reset_parameters(self, positions):
        if self.pool == "cls":
            nn.init.normal_(self.cls_token, std=0.02)
        if positions == "learned":
            nn.init.normal_(self.pos_embed, std=0.02)
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.xavier_uniform_(module.weight)
                nn.init.zeros_(module.bias)

    @classmethod
    def from_config(cls, config):
        return cls(**asdict(config))

    def _run(self, images):
        x = self.patch_embed(images)
        if self.pool == "cls":
            x = torch.cat([self.cls_token.expand(x.size(0), -1, -1), x], dim=1)
        x = self.pos_drop(x + self.pos_embed)
        weights = None
        for block in self.blocks:
            x, weights = block(x, return_weights=True)
        return x, weights

    def forward(self, images):
        x, _ = self._run(images)
        if self.pool == "cls":
            return self.head(self.norm(x[:, 0]))
        return self.head(self.norm(x.mean(dim=1)))

    def attention(self, images):
        return self._run(images)[1]


@torch.no_grad()
def attention_map(model, image):
    training = model.training
    model.eval()
    parameters = list(model.parameters())
    where = parameters[0].device if parameters else image.device
    attn = model.attention(image.to(where).unsqueeze(0)).squeeze(0).mean(dim=0)
    model.train(training)

    n = attn.size(-1)
    has_cls = math.isqrt(n) ** 2 != n
    heat = attn[0, 1:] if has_cls else attn.mean(dim=0)
    side = math.isqrt(heat.numel())
    heat = heat.reshape(side, side).cpu()
    if (peak := heat.max()) > 0:
        heat = heat / peak
    _, h, w = image.shape
    return torch.kron(heat, torch.ones(h // side, w // side))


# ============================================================ ResNet
def conv_bn(in_channels, channels, kernel, stride=1):
    return nn.Sequential(
        nn.Conv2d(in_channels, channels, kernel, stride, padding=kernel // 2, bias=False),
        nn.BatchNorm2d(channels),
    )


class BasicBlock(nn.Module):
    def __init__(self, in_channels, channels, stride=1):
        super().__init__()
        self.body = nn.Sequential(
            conv_bn(in_channels, channels, 3, stride), nn.ReLU(inplace=True), conv_bn(channels, channels, 3)
        )
        same_shape = stride == 1 and in_channels == channels
        self.shortcut = nn.Identity() if same_shape else conv_bn(in_channels, channels, 1, stride)

    def forward(self, x):
        return F.relu(self.body(x) + self.shortcut(x))


class ResNet18(nn.Module):
    def __init__(self, num_classes=10, width=64):
        super().__init__()
        self.stem = nn.Sequential(conv_bn(3, width, 3), nn.ReLU(inplace=True))
        stages, previous = [], width
        for i in range(4):
            channels = width << i
            stages += [
                nn.Sequential(
                    BasicBlock(previous, channels, stride=1 if i == 0 else 2), BasicBlock(channels, channels)
                )
            ]
            previous = channels
        self.stages = nn.ModuleList(stages)
        self.head = nn.Linear(previous, num_classes)

    @classmethod
    def from_config(cls, config):
        return cls(**asdict(config))

    def forward(self, images):
        x = self.stem(images)
        for stage in self.stages:
            x = stage(x)
        return self.head(F.adaptive_avg_pool2d(x, 1).flatten(1))


def parameter_table(model):
    rows = [(name, sum(p.numel() for p in child.parameters())) for name, child in model.named_children()]
    rows += [(name, p.numel()) for name, p in model.named_parameters(recurse=False)]
    return [row for row in rows if row[1] > 0]


# ============================================================ training
class AverageMeter:
    """Running mean of a quantity, weighted by how many images each value stands for."""

    def __init__(self):
        self.reset()

    def reset(self):
        self.sum = 0.0
        self.count = 0

    def update(self, value, n=1):
        self.sum += value * n
        self.count += n

    @property
    def avg(self):
        return self.sum / max(self.count, 1)


def progress(loader, description):
    return loader if tqdm is None else tqdm(loader, desc=description, leave=False)


def warmup_cosine(step, warmup_steps, total_steps):
    if step >= total_steps:
        return 0.0
    if step < warmup_steps:
        return step / warmup_steps
    return (1 + math.cos(math.pi * (step - warmup_steps) / (total_steps - warmup_steps))) / 2


def train_epoch(model, loader, criterion, optimizer, scheduler, device):
    model.train()
    loss_meter, accuracy_meter = AverageMeter(), AverageMeter()
    for images, labels in progress(loader, "train"):
        images, labels = images.to(device), labels.to(device)
        logits = model(images)
        loss = criterion(logits, labels)

        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if scheduler is not None:
            scheduler.step()

        n = images.size(0)
        loss_meter.update(loss.item(), n)
        accuracy_meter.update(logits.argmax(-1).eq(labels).float().mean().item(), n)
    return loss_meter.avg, accuracy_meter.avg


@torch.inference_mode()
def evaluate(model, loader, criterion, device):
    model.eval()
    loss_meter = AverageMeter()
    targets, probabilities = [], []
    for images, labels in progress(loader, "evaluate"):
        images, labels = images.to(device), labels.to(device)
        logits = model(images)
        loss_meter.update(criterion(logits, labels).item(), images.size(0))
        targets.extend(labels.tolist())
        probabilities.append(logits.softmax(-1).cpu().numpy())
    targets = np.array(targets)
    probabilities = np.concatenate(probabilities)
    predictions = probabilities.argmax(axis=1)
    return {
        "loss": loss_meter.avg,
        "accuracy": float(np.mean(predictions == targets)),
        "targets": targets,
        "predictions": predictions,
        "probabilities": probabilities,
    }


@dataclass
class EpochRecord:
    epoch: int
    train_loss: float
    train_accuracy: float
    val_loss: float
    val_accuracy: float
    seconds: float = 0.0


class Trainer:
    """Trains one model. Subclasses may override the on_* callbacks."""

    def __init__(self, model, config, device):
        self.model = model.to(device)
        self.config = config
        self.device = device
        self.criterion = nn.CrossEntropyLoss(label_smoothing=config.label_smoothing)
        self.val_criterion = nn.CrossEntropyLoss()
        self.optimizer = self.configure_optimizer()
        self.scheduler = None
        self.history = []
        self.best_accuracy, self.best_epoch, self.best_weights = -1.0, 0, None
        self.should_stop = False

    # ---- set-up
    def configure_optimizer(self):
        c = self.config
        weights = [p for p in self.model.parameters() if p.requires_grad]
        if c.optimizer == "adamw":
            return AdamW(weights, lr=c.lr, betas=c.betas, weight_decay=c.weight_decay)
        if c.optimizer == "sgd":
            return SGD(weights, lr=c.lr, momentum=c.momentum, weight_decay=c.weight_decay, nesterov=True)
        raise ValueError(f"unknown optimizer {c.optimizer}")

    def configure_scheduler(self, total_steps):
        warmup_steps = round(self.config.warmup_share * total_steps)
        return LambdaLR(self.optimizer, lambda step: warmup_cosine(step, warmup_steps, total_steps))

    # ---- callbacks
    def on_fit_start(self, epochs):
        self.log(f"{type(self.model).__name__}: {sum(n for _, n in parameter_table(self.model)):,} parameters")

    def on_epoch_end(self, record):
        self.history.append(record)
        self.log(
            f"[{record.epoch:>2}] train {record.train_loss:.3f} / {record.train_accuracy:.3f}"
            f"   val {record.val_loss:.3f} / {record.val_accuracy:.3f}   {record.seconds:.0f} s"
        )
        self.checkpoint(record)
        self.check_early_stopping(record)

    def on_fit_end(self):
        if self.best_weights is not None:
            self.model.load_state_dict(self.best_weights)
            self.log(f"best: epoch {self.best_epoch} ({self.best_accuracy:.3f})")

    # ---- what the callbacks do
    def log(self, message):
        if self.config.verbose:
            print(message)

    def checkpoint(self, record):
        if record.val_accuracy > self.best_accuracy:
            self.best_accuracy, self.best_epoch = record.val_accuracy, record.epoch
            self.best_weights = deepcopy(self.model.state_dict())

    def check_early_stopping(self, record):
        patience = self.config.early_stopping_patience
        self.should_stop = patience is not None and record.epoch - self.best_epoch >= patience

    # ---- the loop
    def fit(self, loaders, epochs):
        self.scheduler = self.configure_scheduler(epochs * len(loaders["train"]))
        self.on_fit_start(epochs)
        for epoch in range(1, epochs + 1):
            start = time.perf_counter()
            train_loss, train_accuracy = train_epoch(
                self.model, loaders["train"], self.criterion, self.optimizer, self.scheduler, self.device
            )
            val = evaluate(self.model, loaders["validation"], self.val_criterion, self.device)
            seconds = time.perf_counter() - start
            self.on_epoch_end(
                EpochRecord(epoch, train_loss, train_accuracy, val["loss"], val["accuracy"], seconds)
            )
            if self.should_stop:
                self.log(f"stopped early after epoch {epoch}")
                break
        self.on_fit_end()
        return self.history


def fit(model, loaders, epochs, device):
    config = RESNET_TRAINER if isinstance(model, ResNet18) else VIT_TRAINER
    return Trainer(model, config, device).fit(loaders, epochs)


# ============================================================ metrics
def roc_points(positive, scores):
    """False and true positive rates from (0, 0) to (1, 1), one point per distinct score."""
    thresholds, index = np.unique(-scores, return_inverse=True)
    index = index.ravel()
    tp = np.bincount(index, weights=positive, minlength=len(thresholds)).cumsum()
    fp = np.bincount(index, weights=~positive, minlength=len(thresholds)).cumsum()
    return np.r_[0.0, fp / fp[-1]], np.r_[0.0, tp / tp[-1]]


def area_under(x, y):
    return float(np.sum(np.diff(x) * (y[1:] + y[:-1]) / 2))


@dataclass
class Measures:
    confusion: np.ndarray
    precision: np.ndarray
    recall: np.ndarray
    f1: np.ndarray
    support: np.ndarray
    roc_auc: np.ndarray
    accuracy: float

    @classmethod
    def compute(cls, targets, probabilities):
        n, c = probabilities.shape
        predictions = probabilities.argmax(axis=1)
        confusion = np.zeros((c, c), dtype=int)
        for t, p in zip(targets, predictions):
            confusion[t, p] += 1
        hits = confusion.diagonal()
        support, called = confusion.sum(axis=1), confusion.sum(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            precision = np.nan_to_num(hits / called)
            recall = np.nan_to_num(hits / support)
            f1 = np.nan_to_num(2 * precision * recall / (precision + recall))
        auc = np.full(c, np.nan)
        for k in range(c):
            positive = targets == k
            if 0 < positive.sum() < n:
                auc[k] = area_under(*roc_points(positive, probabilities[:, k]))
        return cls(confusion, precision, recall, f1, support, auc, float(hits.sum() / n))

    def mean(self, name, weighted):
        values = getattr(self, name)
        keep = (self.support > 0) & np.isfinite(values)
        weights = self.support[keep] if weighted else np.ones(keep.sum())
        return float(weights @ values[keep] / weights.sum()) if keep.any() else math.nan

    def as_dict(self):
        result = {f.name: getattr(self, f.name) for f in fields(self)}
        for name in ("precision", "recall", "f1", "roc_auc"):
            result[f"macro_{name}"] = self.mean(name, weighted=False)
            result[f"weighted_{name}"] = self.mean(name, weighted=True)
        return result


def classification_metrics(targets, probabilities):
    return Measures.compute(np.asarray(targets, dtype=int), np.asarray(probabilities)).as_dict()


def export_metrics(metrics, path):
    def rows(name, value):
        if isinstance(value, dict):
            for key, inner in value.items():
                yield from rows(f"{name}.{key}" if name else str(key), inner)
        elif np.ndim(value) == 1:
            for i, inner in enumerate(value):
                yield from rows(f"{name}.{i}", inner)
        elif np.ndim(value) == 0:
            yield name, float(value)

    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("metric", "value"))
        writer.writerows(rows("", metrics))


# ============================================================ plots
@dataclass(frozen=True)
class Style:
    panel: float = 2.2
    heat: str = "inferno"
    overlay_alpha: float = 0.55


STYLE = Style()


def to_pictures(images, mean, std):
    images = torch.as_tensor(images).detach().cpu()
    mean, std = (torch.as_tensor(v, dtype=images.dtype)[:, None, None] for v in (mean, std))
    return images.mul(std).add(mean).clip(0, 1).movedim(1, -1).numpy()


def plot_learning_curves(history):
    _, *columns, _ = zip(*map(astuple, history))
    train_loss, train_accuracy, val_loss, val_accuracy = columns
    epochs = [record.epoch for record in history]
    fig, (left, right) = plt.subplots(ncols=2, figsize=(10, 3.5))
    for ax, train, val, what in (
        (left, train_loss, val_loss, "cross-entropy loss"),
        (right, train_accuracy, val_accuracy, "accuracy"),
    ):
        ax.plot(epochs, train, ".-", label="train")
        ax.plot(epochs, val, ".-", label="val")
        ax.set(xlabel="epoch", ylabel=what)
        ax.legend()
    right.axvline(epochs[int(np.argmax(val_accuracy))], color="0.7", ls=":", zorder=0)
    fig.tight_layout()
    return fig


def plot_confusion_matrix(matrix, class_names):
    matrix = np.asarray(matrix)
    ticks = np.arange(len(class_names))
    fig, ax = plt.subplots(figsize=(7, 6.5))
    ax.matshow(matrix, cmap="Purples")
    ax.set(xlabel="predicted", ylabel="true", xticks=ticks, yticks=ticks)
    ax.set_xticklabels(class_names, rotation=90)
    ax.set_yticklabels(class_names)
    for (i, j), count in np.ndenumerate(matrix):
        ax.annotate(f"{int(count)}", (j, i), ha="center", va="center", color="w" if 2 * count > matrix.max() else "k")
    return fig


def plot_roc(targets, probabilities, class_names):
    targets, probabilities = np.asarray(targets), np.asarray(probabilities)
    fig, ax = plt.subplots(figsize=(6, 6))
    for k, name in enumerate(class_names):
        positive = targets == k
        if not 0 < positive.sum() < len(targets):
            continue
        x, y = roc_points(positive, probabilities[:, k])
        ax.plot(x, y, label=f"{name} ({area_under(x, y):.3f})")
    ax.set(xlabel="false positive rate", ylabel="true positive rate", title="one against all others", aspect="equal")
    ax.legend(title="class (AUC)", fontsize="small")
    return fig


def plot_attention(model, images, labels, class_names, mean, std):
    pictures = to_pictures(images, mean, std)
    size = (3 * STYLE.panel, len(pictures) * STYLE.panel)
    fig, axes = plt.subplots(len(pictures), 3, figsize=size, squeeze=False, layout="constrained")
    for (ax_image, ax_map, ax_both), tensor, picture, label in zip(axes, images, pictures, labels):
        heat = attention_map(model, tensor)
        ax_image.imshow(picture)
        ax_image.set_title(class_names[int(label)], fontsize=9)
        ax_map.imshow(heat, cmap=STYLE.heat, vmin=0, vmax=1)
        ax_both.imshow(picture)
        ax_both.imshow(heat, cmap=STYLE.heat, alpha=STYLE.overlay_alpha, vmin=0, vmax=1)
    axes[0, 1].set_title("attention", fontsize=9)
    axes[0, 2].set_title("overlay", fontsize=9)
    for ax in axes.flat:
        ax.set(xticks=[], yticks=[])
    return fig


def plot_top3(images, labels, probabilities, class_names, mean, std):
    pictures, probabilities = to_pictures(images, mean, std), np.asarray(probabilities)
    fig, axes = plt.subplots(
        1, len(pictures), figsize=(STYLE.panel * len(pictures), 3.4), squeeze=False, layout="constrained"
    )
    for ax, picture, label, row in zip(axes[0], pictures, labels, probabilities):
        best = sorted(range(len(row)), key=lambda k: -row[k])[:3]
        ax.imshow(picture)
        ax.set(xticks=[], yticks=[], title=f"true: {class_names[int(label)]}")
        ax.set_xlabel("\n".join(f"{i}. {class_names[k]} {row[k]:.2f}" for i, k in enumerate(best, 1)))
    return fig


# ============================================================ experiment
num_classes = len(class_names)
vit = VisionTransformer.from_config(replace(cfg.vit, num_classes=num_classes))
vit_history = fit(vit, loaders, cfg.vit_epochs, device)
torch.save(vit.state_dict(), f"{cfg.student_id}_CIFAR10_vit.pth")

resnet = ResNet18.from_config(replace(cfg.resnet, num_classes=num_classes))
resnet_history = fit(resnet, loaders, cfg.resnet_epochs, device)
torch.save(resnet.state_dict(), f"{cfg.student_id}_CIFAR10_resnet.pth")

criterion = nn.CrossEntropyLoss()
measures = {}
for name, model, history in (("vit", vit, vit_history), ("resnet", resnet, resnet_history)):
    result = evaluate(model, loaders["test"], criterion, device)
    measures[name] = classification_metrics(result["targets"], result["probabilities"])
    print(name, f"test accuracy {result['accuracy']:.4f}")
    for part, count in parameter_table(model):
        print(f"  {part:<12}{count:>10,}")
    plot_learning_curves(history)
    plot_confusion_matrix(measures[name]["confusion"], class_names)
    plot_roc(result["targets"], result["probabilities"], class_names)
export_metrics(measures, f"{cfg.student_id}_metrics.csv")

images, labels = next(iter(loaders["test"]))
images, labels = images[:6], labels[:6]
with torch.inference_mode():
    probabilities = vit.eval()(images.to(device)).softmax(-1).cpu()
plot_attention(vit, images, labels, class_names, cfg.data.mean, cfg.data.std)
plot_top3(images, labels, probabilities, class_names, cfg.data.mean, cfg.data.std)


# ============================================================ study
@dataclass(frozen=True)
class StudyConfig:
    patch_size: int = 4
    dim: int = 96
    depth: int = 4
    heads: int = 4
    mlp_ratio: float = 2.0
    positions: str = "sinusoidal"
    epochs: int = 5


STUDY_BASE = StudyConfig()
STUDY = [(STUDY_BASE, seed) for seed in (1, 2, 3)] + [
    (replace(STUDY_BASE, **change), 1)
    for change in (
        {"patch_size": 8}, {"dim": 48}, {"dim": 64}, {"depth": 2}, {"depth": 6}, {"heads": 8},
        {"mlp_ratio": 4.0}, {"positions": "learned"},
    )
]  # fmt: skip


def study_row(config, seed):
    seed_everything(seed)
    sizes = asdict(config)
    epochs = sizes.pop("epochs")
    model = VisionTransformer(**sizes, dropout=0.0, num_classes=num_classes)
    fit(model, loaders, epochs, device)
    accuracy = evaluate(model, loaders["validation"], criterion, device)["accuracy"]
    parameters = sum(count for _, count in parameter_table(model))
    return {**asdict(config), "seed": seed, "parameters": parameters, "validation_accuracy": round(accuracy, 4)}


if cfg.run_study:
    rows = [study_row(*run) for run in STUDY]
    with open(f"{cfg.student_id}_study.csv", "w", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
