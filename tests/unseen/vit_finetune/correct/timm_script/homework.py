#!/usr/bin/env python3
"""Fine-tuning script, laid out as timm's train.py: arguments, meters, Mixup class, scheduler, saver, summary.

Nothing is imported from timm: what is alike is written here.
"""
import argparse
import logging
import math
import time
import zipfile
from collections import OrderedDict

import matplotlib.pyplot as plt
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from handout import build_model, parts
from torch.utils.data import DataLoader, Dataset
from torchvision import datasets, transforms

_logger = logging.getLogger("train")

parser = argparse.ArgumentParser(description="Fine-tuning of a ViT in two stages")
group = parser.add_argument_group("Dataset parameters")
group.add_argument("--data", default="dataset.zip", metavar="ZIP")
group.add_argument("--mean", type=float, nargs=3, default=(0.4914, 0.4822, 0.4465))
group.add_argument("--std", type=float, nargs=3, default=(0.2470, 0.2435, 0.2616))
group.add_argument("-b", "--batch-size", type=int, default=64, metavar="N")
group.add_argument("-vb", "--validation-batch-size", type=int, default=256, metavar="N")
group = parser.add_argument_group("Optimizer parameters")
group.add_argument("--lr", type=float, default=3e-3, help="of stage 1; stage 2 begins with a tenth of it")
group.add_argument("--min-lr", type=float, default=1e-7)
group.add_argument("--weight-decay", type=float, default=0.05)
group.add_argument("--patience", type=int, default=4, metavar="N")
group = parser.add_argument_group("Augmentation and regularization parameters")
group.add_argument("--mixup", type=float, default=0.2)
group.add_argument("--cutmix", type=float, default=1.0)
group.add_argument("--mixup-prob", type=float, default=0.7)
group.add_argument("--mixup-switch-prob", type=float, default=0.5)
group.add_argument("--smoothing", type=float, default=0.05)
group.add_argument("--seed", type=int, default=42)
args = parser.parse_args([])

STUDENT_ID = "400104001"
EPOCHS = (3, 12)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def random_seed(seed=42, rank=0):
    torch.manual_seed(seed + rank)
    np.random.seed(seed + rank)


random_seed(args.seed)


# %% the split


def stratified_split(labels, per_class, seed):
    """One torch permutation for each class, in the order of the classes."""
    labels = torch.as_tensor(labels)
    g = torch.Generator().manual_seed(int(seed))
    chunks = [[] for _ in per_class]
    rest_size = [*per_class]
    for c in labels.unique(sorted=True):
        index = (labels == c).nonzero().flatten()
        rest = len(index) - sum(per_class)
        if rest < 0:
            raise ValueError(f"Class {c.item()}: need {sum(per_class)} images, found {len(index)}")
        index = index[torch.randperm(len(index), generator=g)]
        for chunk, piece in zip(chunks, index.split([*rest_size, rest])):
            chunk.append(piece)
    return tuple(torch.cat(chunk) for chunk in chunks)


# %% mixup and cutmix


def rand_bbox(img_shape, lam, generator):
    """Standard CutMix bounding box, clipped at the border."""
    ratio = np.sqrt(1 - lam)
    img_h, img_w = img_shape[-2:]
    cut_h, cut_w = int(img_h * ratio), int(img_w * ratio)
    cy = generator.integers(0, img_h)
    cx = generator.integers(0, img_w)
    yl, yh = np.clip([cy - cut_h // 2, cy + cut_h // 2], 0, img_h)
    xl, xh = np.clip([cx - cut_w // 2, cx + cut_w // 2], 0, img_w)
    return int(yl), int(yh), int(xl), int(xh)


def cutmix_bbox_and_lam(img_shape, lam, generator):
    """Bounding box, and lambda corrected by it."""
    yl, yh, xl, xh = rand_bbox(img_shape, lam, generator)
    bbox_area = (yh - yl) * (xh - xl)
    lam = 1.0 - bbox_area / float(img_shape[-2] * img_shape[-1])
    return (yl, yh, xl, xh), lam


def mixup(images, labels, alpha, generator):
    """The partner of an image is its mirror image in the batch: the batch is in random order anyway."""
    lam = float(generator.beta(alpha, alpha)) if alpha > 0.0 else 1.0
    x_flipped = images.flip(0).mul_(1.0 - lam)
    return images.mul(lam).add_(x_flipped), labels, labels.flip(0), lam


def cutmix(images, labels, alpha, generator):
    lam = float(generator.beta(alpha, alpha)) if alpha > 0.0 else 1.0
    (yl, yh, xl, xh), lam = cutmix_bbox_and_lam(images.shape, lam, generator)
    x = images.clone()
    x[..., yl:yh, xl:xh] = images.flip(0)[..., yl:yh, xl:xh]
    return x, labels, labels.flip(0), lam


def mixed_loss(criterion, logits, labels_a, labels_b, lam):
    loss = criterion(logits, labels_a) * lam
    loss = loss + criterion(logits, labels_b) * (1.0 - lam)
    return loss


class Mixup:
    """Applies mixup or cutmix to a batch, or nothing.

    Args:
        mixup_alpha, cutmix_alpha: Of the two beta distributions.
        prob: Probability of applying either.
        switch_prob: Probability of cutmix in place of mixup.
        seed: Of its own generator.
    """

    def __init__(self, mixup_alpha=1.0, cutmix_alpha=0.0, prob=1.0, switch_prob=0.5, seed=0):
        self.mixup_alpha = mixup_alpha
        self.cutmix_alpha = cutmix_alpha
        self.mix_prob = prob
        self.switch_prob = switch_prob
        self.generator = np.random.default_rng(seed)
        self.mixup_enabled = True  # set to false to disable mixing

    def _params_per_batch(self):
        if not self.mixup_enabled or self.generator.random() >= self.mix_prob:
            return mixup, 0.0
        if self.generator.random() < self.switch_prob:
            return cutmix, self.cutmix_alpha
        return mixup, self.mixup_alpha

    def __call__(self, x, target):
        mix_fn, alpha = self._params_per_batch()
        return mix_fn(x, target, alpha, self.generator)


# %% freezing


def freeze_backbone(model):
    unfreeze(model, 0)
    for p in parts(model)[2].parameters():
        p.requires_grad = False


def unfreeze(model, blocks=None):
    head, layers, norm = parts(model)
    for p in model.parameters():
        p.requires_grad = blocks is None
    if blocks is None:
        return
    for module in [head, norm] + layers[::-1][:blocks]:
        for p in module.parameters():
            p.requires_grad = True


# %% meters, training, validation


class AverageMeter:
    """Computes and stores the average and current value"""

    def __init__(self):
        self.reset()

    def reset(self):
        self.val = 0
        self.avg = float("nan")
        self.sum = 0
        self.count = 0

    def update(self, val, n=1):
        self.val = val
        self.sum += val * n
        self.count += n
        self.avg = self.sum / self.count


def accuracy(output, target, topk=(1,)):
    """Shares (0 to 1) of the images whose class is among the k with the largest scores."""
    _, pred = output.topk(max(topk), dim=1)
    correct = pred.t().eq(target.reshape(1, -1))
    return [correct[:k].sum().item() / target.size(0) for k in topk]


def train_one_epoch(model, loader, optimizer, criterion, device, mix=None):
    losses_m, top1_m, batch_time_m = AverageMeter(), AverageMeter(), AverageMeter()
    model.train()
    for block in parts(model)[1]:
        if not any(p.requires_grad for p in block.parameters()):
            block.eval()

    end = time.time()
    for batch_idx, (input, target) in enumerate(loader):
        input, target = input.to(device), target.to(device)
        if mix is not None:
            input, target, target_b, lam = mix(input, target)
        output = model(input)
        if mix is not None:
            loss = mixed_loss(criterion, output, target, target_b, lam)
            acc1 = lam * accuracy(output, target)[0] + (1.0 - lam) * accuracy(output, target_b)[0]
        else:
            loss = criterion(output, target)
            acc1 = accuracy(output, target)[0]
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

        losses_m.update(loss.item(), input.size(0))
        top1_m.update(acc1, input.size(0))
        batch_time_m.update(time.time() - end)
        end = time.time()
        _logger.info(
            "Train: [%d]  Loss: %.3g (%.3g)  Acc@1: %.3f (%.3f)  Time: %.3fs",
            batch_idx, losses_m.val, losses_m.avg, top1_m.val, top1_m.avg, batch_time_m.val,
        )  # fmt: skip
    return losses_m.avg, float(top1_m.avg)


def evaluate(model, loader, criterion, device):
    losses_m, top1_m = AverageMeter(), AverageMeter()
    real_labels, pred_labels = [], []
    model.eval()
    with torch.no_grad():
        for input, target in loader:
            input, target = input.to(device), target.to(device)
            output = model(input)
            losses_m.update(criterion(output, target).item(), input.size(0))
            top1_m.update(accuracy(output, target)[0], input.size(0))
            real_labels.append(target.cpu())
            pred_labels.append(output.topk(1)[1].flatten().cpu())
    return losses_m.avg, top1_m.avg, torch.cat(real_labels), torch.cat(pred_labels)


# %% early stopping, with the saver's habit of an ordered dict of the state


class EarlyStopping:
    """Keeps the best state in memory, as a checkpoint saver would on a disk."""

    def __init__(self, patience, min_delta=0.0):
        self.patience = patience
        self.min_delta = min_delta
        self.best_metric = None
        self.best_state = None
        self.num_bad = 0

    def cmp(self, metric):
        if metric != metric:  # NaN
            return False
        return self.best_metric is None or metric > self.best_metric + self.min_delta

    def save_checkpoint(self, model, metric):
        self.best_metric = metric
        self.best_state = OrderedDict((k, v.detach().clone()) for k, v in model.state_dict().items())

    def step(self, value, model):
        value = float(value)
        if self.cmp(value):
            self.save_checkpoint(model, value)
            self.num_bad = 0
            return False
        self.num_bad += 1
        return self.num_bad >= self.patience

    def restore(self, model):
        if self.best_state is None:
            return
        _logger.info("*** Best metric: %s", self.best_metric)
        model.load_state_dict(self.best_state, strict=True)


# %% optimizer and scheduler


def param_groups_weight_decay(model, weight_decay=1e-5, no_weight_decay_list=()):
    """Two groups: no decay for vectors (biases, norms) and for what is listed."""
    decay, no_decay = [], []
    for name, param in model.named_parameters():
        if not param.requires_grad:
            continue
        if param.ndim <= 1 or name.endswith(".bias") or name in no_weight_decay_list:
            no_decay.append(param)
        else:
            decay.append(param)
    return [
        {"params": no_decay, "weight_decay": 0.0},
        {"params": decay, "weight_decay": weight_decay},
    ]


def create_optimizer(model, lr):
    groups = param_groups_weight_decay(model, args.weight_decay, ("cls_token", "pos_embed"))
    return torch.optim.AdamW([g for g in groups if g["params"]], lr=lr)


class CosineLRScheduler:
    """Cosine decay from the optimizer's rates to `lr_min` over `t_initial` epochs; `step` is told the epoch."""

    def __init__(self, optimizer, t_initial, lr_min=0.0):
        self.optimizer = optimizer
        self.t_initial = t_initial
        self.lr_min = lr_min
        self.base_values = [g["lr"] for g in optimizer.param_groups]

    def _get_lr(self, t):
        if t >= self.t_initial:
            return [self.lr_min for _ in self.base_values]
        return [
            self.lr_min + 0.5 * (v - self.lr_min) * (1 + math.cos(math.pi * t / self.t_initial))
            for v in self.base_values
        ]

    def step(self, epoch):
        for g, lr in zip(self.optimizer.param_groups, self._get_lr(epoch)):
            g["lr"] = lr


def update_summary(history, stage, epoch, train_metrics, eval_metrics, lr):
    rowd = OrderedDict(epoch=epoch, stage=stage, lr=lr)
    rowd.update(("train_" + k, v) for k, v in train_metrics.items())
    rowd.update(("eval_" + k, v) for k, v in eval_metrics.items())
    for k, v in rowd.items():
        history.setdefault(k, []).append(v)
    print(" ".join(f"{k}={v:.4g}" for k, v in rowd.items()))


def fit(model, loaders, epochs, device):
    model.to(device)
    history = OrderedDict()
    train_loss_fn = nn.CrossEntropyLoss(label_smoothing=args.smoothing)
    validate_loss_fn = nn.CrossEntropyLoss()
    mixup_fn = Mixup(args.mixup, args.cutmix, args.mixup_prob, args.mixup_switch_prob, seed=args.seed)

    def one_epoch(stage, optimizer, mix):
        lr = optimizer.param_groups[0]["lr"]
        train_metrics = OrderedDict(
            zip(("loss", "top1"), train_one_epoch(model, loaders["train"], optimizer, train_loss_fn, device, mix))
        )
        eval_metrics = OrderedDict(
            zip(("loss", "top1"), evaluate(model, loaders["validation"], validate_loss_fn, device))
        )
        epoch = len(history.get("epoch", ()))
        update_summary(history, stage, epoch, train_metrics, eval_metrics, lr)
        return eval_metrics["top1"]

    # stage 1: linear probe
    freeze_backbone(model)
    optimizer = create_optimizer(model, args.lr)
    for _ in range(epochs[0]):
        one_epoch(1, optimizer, None)

    # stage 2: everything
    unfreeze(model)
    optimizer = create_optimizer(model, args.lr / 10)
    lr_scheduler = CosineLRScheduler(optimizer, t_initial=epochs[1], lr_min=args.min_lr)
    saver = EarlyStopping(args.patience)
    for epoch in range(epochs[1]):
        top1 = one_epoch(2, optimizer, mixup_fn)
        lr_scheduler.step(epoch + 1)
        if saver.step(top1, model):
            break
    saver.restore(model)
    return history


def per_class_accuracy(targets, predictions, classes):
    meters = [AverageMeter() for _ in range(classes)]
    for t, p in zip(targets, predictions):
        meters[int(t)].update(1.0 if int(t) == int(p) else 0.0)
    return np.array([m.avg for m in meters])


# %% pictures


def _denorm(image, mean, std):
    x = image.detach().cpu().clone().float()
    for channel, m, s in zip(x, mean, std):
        channel.mul_(float(s)).add_(float(m))
    return x.clamp_(0, 1).permute(1, 2, 0).numpy()


def show_patches(image, patch_size, mean, std):
    img = _denorm(image, mean, std)
    nh, nw = img.shape[0] // patch_size, img.shape[1] // patch_size
    fig = plt.figure(figsize=(8, 4))
    # axes placed by hand: the image on the left half, the patches on the right half
    ax = fig.add_axes([0.02, 0.05, 0.45, 0.9])
    ax.imshow(img)
    ax.axis("off")
    for i in range(nh):
        for j in range(nw):
            ax = fig.add_axes([0.52 + 0.46 * j / nw, 0.95 - 0.9 * (i + 1) / nh, 0.92 * 0.46 / nw, 0.92 * 0.9 / nh])
            ax.imshow(img[i * patch_size :, j * patch_size :][:patch_size, :patch_size])
            ax.axis("off")


class _QkvExtract:
    """Forward hook: keeps what qkv gave, as a context manager."""

    def __init__(self, attn):
        self.attn, self.qkv = attn, None

    def __enter__(self):
        self.handle = self.attn.qkv.register_forward_hook(self._hook)
        return self

    def __exit__(self, *exc):
        self.handle.remove()

    def _hook(self, module, input, output):
        self.qkv = output.detach()

    def attn_map(self):
        B, N, C = self.qkv.shape
        H = self.attn.num_heads
        q, k, v = self.qkv.reshape(B, N, 3, H, C // 3 // H).permute(2, 0, 3, 1, 4).unbind(0)
        scale = (C // 3 // H) ** -0.5
        attn = (q * scale) @ k.transpose(-2, -1)
        return attn.softmax(dim=-1)


def show_attention(model, image, mean, std):
    p = next(model.parameters())
    with torch.no_grad(), _QkvExtract(model.blocks[-1].attn) as extract:
        model(image.unsqueeze(0).to(p.device))
    attn = extract.attn_map().mean(dim=1)[0, 0, 1:]
    ps = model.patch_embed.patch_size
    grid = attn.reshape(1, 1, image.shape[1] // ps, image.shape[2] // ps)
    full = F.interpolate(grid, scale_factor=ps, mode="nearest")[0, 0].cpu().numpy()
    fig, axs = plt.subplots(1, 2, figsize=(8, 4))
    axs[0].imshow(_denorm(image, mean, std))
    axs[0].set_title("input")
    mappable = axs[1].imshow(full, cmap="jet")
    axs[1].set_title("class token, mean of heads")
    for ax in axs:
        ax.axis("off")
    fig.colorbar(mappable, ax=axs, shrink=0.8)


def plot_history(history):
    fig, (ax_loss, ax_acc) = plt.subplots(1, 2, figsize=(11, 4))
    epoch = np.asarray(history["epoch"])
    begins = [e for e, s in zip(history["epoch"], history["stage"]) if s == 2][:1]
    for ax, key, name in ((ax_loss, "loss", "cross entropy"), (ax_acc, "top1", "top-1 accuracy")):
        ax.plot(epoch, history["train_" + key], ".-", label="train")
        ax.plot(epoch, history["eval_" + key], ".-", label="eval (validation)")
        for e in begins:
            ax.axvline(e, ls="--", c="k", lw=1)
            ax.annotate("stage 2", (e, 1), xycoords=("data", "axes fraction"), xytext=(3, -12), textcoords="offset points")
        ax.set_xlabel("epoch")
        ax.set_ylabel(name)
        ax.legend(loc="best")
    fig.tight_layout()


def plot_per_class(names, accuracies):
    fig, ax = plt.subplots(figsize=(7, 4.5))
    ax.bar([str(n) for n in names], np.asarray(accuracies, dtype=float), width=0.6, color="slateblue")
    ax.set_xlim(-0.5, len(names) - 0.5)  # with the names of classes that have no bar
    ax.set(xlabel="class", ylabel="top-1 accuracy", ylim=(0, 1.02))
    ax.tick_params(axis="x", rotation=60)
    ax.grid(axis="y", alpha=0.3)
    fig.tight_layout()


def plot_confusion_matrix(matrix, class_names):
    cm = np.asarray(matrix)
    share = cm / np.maximum(cm.sum(axis=1, keepdims=True), 1)
    fig, ax = plt.subplots(figsize=(8, 7))
    # colors: share of the row; texts: counts
    mappable = ax.imshow(share, vmin=0, vmax=1, cmap="viridis")
    for i, j in np.ndindex(*cm.shape):
        ax.text(j, i, f"{int(cm[i, j])}", ha="center", va="center", color="k" if share[i, j] > 0.6 else "w")
    ax.set_xticks(range(len(class_names)), labels=class_names, rotation=60, ha="right")
    ax.set_yticks(range(len(class_names)), labels=class_names)
    ax.set_xlabel("prediction")
    ax.set_ylabel("true class")
    fig.colorbar(mappable, ax=ax, label="share of the true class")
    fig.tight_layout()


# %% data


class ImageDataset(Dataset):
    """Rows of an image folder with a transform of its own; timm's way of having the transform outside."""

    def __init__(self, reader, rows, transform):
        self.reader, self.rows, self.transform = reader, [int(r) for r in rows], transform

    def __getitem__(self, index):
        img, target = self.reader[self.rows[index]]
        return self.transform(img), target

    def __len__(self):
        return len(self.rows)


def create_transform(is_training=False):
    tfl = [transforms.ToTensor(), transforms.Normalize(args.mean, args.std)]
    if is_training:
        tfl = [transforms.RandomCrop(32, padding=2), transforms.RandomHorizontalFlip()] + tfl
    return transforms.Compose(tfl)


with zipfile.ZipFile(args.data) as archive:
    archive.extractall("data")
reader_train = datasets.ImageFolder("data/train")
reader_test = datasets.ImageFolder("data/test")
class_names = reader_test.classes

fewest = int(np.bincount(reader_train.targets).min())
training_rows, validation_rows = stratified_split(
    reader_train.targets, (fewest - fewest // 5, fewest // 5), seed=args.seed
)
dataset_train = ImageDataset(reader_train, training_rows, create_transform(is_training=True))
dataset_eval = ImageDataset(reader_train, validation_rows, create_transform())
dataset_test = ImageDataset(reader_test, range(len(reader_test)), create_transform())
loaders = {
    "train": DataLoader(dataset_train, batch_size=args.batch_size, shuffle=True),
    "validation": DataLoader(dataset_eval, batch_size=args.validation_batch_size),
}
test_loader = DataLoader(dataset_test, batch_size=args.validation_batch_size)

# %% training

model = build_model(len(class_names))
history = fit(model, loaders, EPOCHS, device)
torch.save(model.state_dict(), f"{STUDENT_ID}_Finetune.pth")
plot_history(history)

# %% test, once

loss, acc, targets, predictions = evaluate(model, test_loader, nn.CrossEntropyLoss(), device)
print(f" * Acc@1 {acc:.4f}  Loss {loss:.4f}")
plot_per_class(class_names, per_class_accuracy(targets, predictions, len(class_names)))
confusion = torch.zeros(len(class_names), len(class_names), dtype=torch.long)
confusion.index_put_((targets, predictions), torch.tensor(1), accumulate=True)
plot_confusion_matrix(confusion, class_names)

images, _ = next(iter(test_loader))
show_patches(images[0], 4, args.mean, args.std)
show_attention(model, images[0], args.mean, args.std)
plt.show()
