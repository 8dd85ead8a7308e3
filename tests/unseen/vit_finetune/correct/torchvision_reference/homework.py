# %% [markdown]
# # Fine-tuning a pretrained Vision Transformer
#
# Written after torchvision's `references/classification`: transforms of batches as modules, a metric logger with
# smoothed values, a confusion matrix that is updated batch by batch, presets for the images.

# %%
import copy
import datetime
import time
import zipfile
from collections import defaultdict, deque

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import torch
import torchvision
from handout import build_model, parts
from matplotlib.gridspec import GridSpec
from torch import nn
from torch.optim.lr_scheduler import CosineAnnealingWarmRestarts
from torch.utils.data import DataLoader, Subset, SubsetRandomSampler
from torchvision.transforms import v2

STUDENT_ID = "400104001"
RATE = 0.03  # of stage 1 (SGD); stage 2 begins with a tenth of it
MOMENTUM = 0.9
WEIGHT_DECAY = 1e-4
PATIENCE = 5
BATCH_SIZE = 64
MEAN, STD = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(42)

# %% [markdown]
# ## The split


# %%
def stratified_split(labels, per_class, seed):
    """Every class is read through a random sampler, and what it yields is dealt out."""
    by_class = defaultdict(list)
    for index, label in enumerate(labels):
        by_class[int(label)].append(index)

    g = torch.Generator()
    g.manual_seed(int(seed))
    splits = tuple([] for _ in per_class)
    for label, indices in sorted(by_class.items()):
        if len(indices) < sum(per_class):
            raise ValueError(f"Only {len(indices)} images of class {label}, expected at least {sum(per_class)}.")
        sampler = iter(SubsetRandomSampler(indices, generator=g))
        for split, count in zip(splits, per_class):
            split.extend(next(sampler) for _ in range(count))
    return splits


# %% [markdown]
# ## Mixed images
#
# The batch is rolled by one, so that every image meets its neighbor: never itself.


# %%
class _RandomMix(nn.Module):
    """Base of both: a probability, an alpha, a generator.

    Args:
        p: Probability of mixing a batch.
        alpha: Of the beta distribution.
        generator: A numpy.random.Generator.
    """

    def __init__(self, p, alpha, generator):
        super().__init__()
        self.p = p
        self.alpha = alpha
        self.generator = generator

    def forward(self, batch, target):
        if self.p < 1.0 and self.generator.random() >= self.p:
            return batch, target, target, 1.0
        lambda_param = float(self.generator.beta(self.alpha, self.alpha)) if self.alpha > 0 else 1.0
        batch_rolled = batch.roll(1, 0)
        mixed, lambda_param = self._mix(batch, batch_rolled, lambda_param)
        return mixed, target, target.roll(1, 0), lambda_param

    def __repr__(self):
        return f"{self.__class__.__name__}(p={self.p}, alpha={self.alpha})"


class RandomMixup(_RandomMix):
    def _mix(self, batch, batch_rolled, lambda_param):
        batch_rolled.mul_(1.0 - lambda_param)  # a new tensor, which roll has made
        return batch.mul(lambda_param).add_(batch_rolled), lambda_param


class RandomCutmix(_RandomMix):
    def _mix(self, batch, batch_rolled, lambda_param):
        H, W = v2.functional.get_size(batch)
        r_x, r_y = int(self.generator.integers(W)), int(self.generator.integers(H))
        r = 0.5 * (1.0 - lambda_param) ** 0.5
        r_w_half, r_h_half = int(r * W), int(r * H)
        x1, y1 = max(r_x - r_w_half, 0), max(r_y - r_h_half, 0)
        x2, y2 = min(r_x + r_w_half, W), min(r_y + r_h_half, H)
        # the rolled batch gets the frame, which is the other way round, but it is ours
        box = batch_rolled[:, :, y1:y2, x1:x2].clone()
        batch_rolled.copy_(batch)
        batch_rolled[:, :, y1:y2, x1:x2] = box
        return batch_rolled, 1.0 - (x2 - x1) * (y2 - y1) / (W * H)


class RandomChoiceOfMix(nn.Module):
    def __init__(self, transforms, generator):
        super().__init__()
        self.transforms = nn.ModuleList(transforms)
        self.generator = generator

    def forward(self, batch, target):
        return self.transforms[int(self.generator.integers(len(self.transforms)))](batch, target)


def mixup(images, labels, alpha, generator):
    return RandomMixup(1.0, alpha, generator)(images, labels)


def cutmix(images, labels, alpha, generator):
    return RandomCutmix(1.0, alpha, generator)(images, labels)


def mixed_loss(criterion, logits, labels_a, labels_b, lam):
    loss_b = criterion(logits, labels_b)
    return loss_b + lam * (criterion(logits, labels_a) - loss_b)


# %% [markdown]
# ## What learns


# %%
def freeze_backbone(model):
    head, _, _ = parts(model)
    for param in set(model.parameters()) - set(head.parameters()):
        param.requires_grad_(False)
    for param in head.parameters():
        param.requires_grad_(True)


def unfreeze(model, blocks=None):
    head, layers, norm = parts(model)
    if blocks is None:
        blocks, everything = len(layers), True
    else:
        everything = False
    model.requires_grad_(everything)
    while blocks > 0 and layers:
        layers.pop().requires_grad_(True)  # `parts` gives a new list, so the model keeps its blocks
        blocks -= 1
    head.requires_grad_(True)
    norm.requires_grad_(True)


# %% [markdown]
# ## Logging


# %%
class SmoothedValue:
    """Tracks a series of values: smoothed over a window, and the average over all."""

    def __init__(self, window_size=20, fmt="{median:.4f} ({global_avg:.4f})"):
        self.deque = deque(maxlen=window_size)
        self.total = 0.0
        self.count = 0
        self.fmt = fmt

    def update(self, value, n=1):
        self.deque.append(value)
        self.count += n
        self.total += value * n

    @property
    def median(self):
        return torch.tensor(list(self.deque)).median().item()

    @property
    def global_avg(self):
        return self.total / self.count

    def __str__(self):
        return self.fmt.format(median=self.median, global_avg=self.global_avg)


class MetricLogger:
    def __init__(self, delimiter="  "):
        self.meters = defaultdict(SmoothedValue)
        self.delimiter = delimiter

    def __getattr__(self, attr):
        if attr != "meters" and attr in self.meters:
            return self.meters[attr]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{attr}'")

    def __str__(self):
        return self.delimiter.join(f"{name}: {meter}" for name, meter in self.meters.items())

    def log_every(self, iterable, header):
        start = time.time()
        yield from iterable
        print(f"{header} {self}  {datetime.timedelta(seconds=int(time.time() - start))}")


def accuracy(output, target):
    with torch.inference_mode():
        return output.max(1).indices.eq(target).sum().item() / target.numel()


# %% [markdown]
# ## Training and evaluation


# %%
def set_modes(model):
    model.train()
    for layer in parts(model)[1]:
        layer.train(mode=any(param.requires_grad for param in layer.parameters()))


def train_one_epoch(model, loader, optimizer, criterion, device, mix=None):
    set_modes(model)
    metric_logger = MetricLogger()
    for image, target in metric_logger.log_every(loader, "train:"):
        image, target = image.to(device), target.to(device)
        if mix is not None:
            image, target_a, target_b, lam = mix(image, target)
        else:
            target_a, target_b, lam = target, target, 1.0
        output = model(image)
        loss = mixed_loss(criterion, output, target_a, target_b, lam)

        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()

        acc = lam * accuracy(output, target_a) + (1.0 - lam) * accuracy(output, target_b)
        metric_logger.meters["loss"].update(loss.item(), n=image.shape[0])
        metric_logger.meters["acc"].update(acc, n=image.shape[0])
    return metric_logger.loss.global_avg, metric_logger.acc.global_avg


def evaluate(model, loader, criterion, device):
    model.eval()
    metric_logger = MetricLogger()
    targets, predictions = [], []
    with torch.inference_mode():
        for image, target in metric_logger.log_every(loader, "test: "):
            image, target = image.to(device), target.to(device)
            output = model(image)
            metric_logger.meters["loss"].update(criterion(output, target).item(), n=image.shape[0])
            metric_logger.meters["acc"].update(accuracy(output, target), n=image.shape[0])
            targets.append(target)
            predictions.append(output.max(1).indices)
    return (
        metric_logger.loss.global_avg,
        metric_logger.acc.global_avg,
        torch.cat(targets).cpu().numpy(),
        torch.cat(predictions).cpu().numpy(),
    )


# %% [markdown]
# ## Early stopping: a checkpoint in memory, and properties


# %%
class EarlyStopping:
    def __init__(self, patience, min_delta=0.0):
        self.patience = patience
        self.min_delta = min_delta
        self.checkpoint = {}
        self.epochs_since_best = 0

    @property
    def best(self):
        return self.checkpoint.get("metric")

    def improves(self, metric):
        if metric != metric:  # NaN
            return False
        return self.best is None or metric > self.best + self.min_delta

    @property
    def exhausted(self):
        return self.epochs_since_best >= self.patience

    def step(self, value, model):
        metric = float(value)
        if self.improves(metric):
            self.checkpoint = {"model": copy.deepcopy(model.state_dict()), "metric": metric}
            self.epochs_since_best = 0
        else:
            self.epochs_since_best += 1
        return self.exhausted

    def restore(self, model):
        if self.checkpoint:
            model.load_state_dict(self.checkpoint["model"])


# %%
def set_weight_decay(model):
    """torchvision's way: norms and biases without weight decay."""
    norms = {
        id(param) for module in model.modules() if isinstance(module, nn.LayerNorm) for param in module.parameters()
    }
    groups = {"norm": [], "other": []}
    for param in model.parameters():
        if param.requires_grad:
            groups["norm" if id(param) in norms or param.ndim == 1 else "other"].append(param)
    decays = {"norm": 0.0, "other": WEIGHT_DECAY}
    return [{"params": params, "weight_decay": decays[kind]} for kind, params in groups.items() if params]


def fit(model, loaders, epochs, device):
    model.to(device)
    generator = np.random.default_rng(0)
    mix = RandomChoiceOfMix([RandomMixup(0.8, 0.2, generator), RandomCutmix(0.8, 1.0, generator)], generator)
    criterion = nn.CrossEntropyLoss(label_smoothing=0.05)
    plain_criterion = nn.CrossEntropyLoss()
    history = defaultdict(list)

    def log(stage, rate, trained, tested):
        row = {
            "stage": stage,
            "lr": rate,
            "train_loss": trained[0],
            "train_accuracy": trained[1],
            "validation_loss": tested[0],
            "validation_accuracy": tested[1],
        }
        for name, value in row.items():
            history[name].append(value)

    for stage, stage_epochs in enumerate(epochs, start=1):
        if stage == 1:
            freeze_backbone(model)
        else:
            unfreeze(model)
        rate = RATE / 10 ** (stage - 1)
        optimizer = torch.optim.SGD(
            set_weight_decay(model), lr=rate, momentum=MOMENTUM, nesterov=True
        )
        # warm restarts of which the first comes after the last epoch: half a cosine
        schedule = CosineAnnealingWarmRestarts(optimizer, T_0=max(stage_epochs, 1)) if stage == 2 else None
        early_stopping = EarlyStopping(PATIENCE) if stage == 2 else None
        for epoch in range(stage_epochs):
            if schedule:
                schedule.step(epoch)
            trained = train_one_epoch(
                model, loaders["train"], optimizer, criterion, device, mix if stage == 2 else None
            )
            tested = evaluate(model, loaders["validation"], plain_criterion, device)
            log(stage, optimizer.param_groups[0]["lr"], trained, tested)
            if early_stopping and early_stopping.step(tested[1], model):
                break
        if early_stopping:
            early_stopping.restore(model)
    return dict(history)


# %% [markdown]
# ## Per class


# %%
class ConfusionMatrix:
    """After the one in torchvision's references/segmentation/utils.py."""

    def __init__(self, num_classes):
        self.num_classes = num_classes
        self.mat = torch.zeros((num_classes, num_classes), dtype=torch.int64)

    def update(self, a, b):
        n = self.num_classes
        inds = n * torch.as_tensor(a).to(torch.int64) + torch.as_tensor(b).to(torch.int64)
        self.mat += torch.bincount(inds, minlength=n**2).reshape(n, n)
        return self

    def compute(self):
        h = self.mat.double()
        acc_global = torch.diag(h).sum() / h.sum()
        acc = torch.diag(h) / h.sum(1)  # 0 / 0 is NaN
        return acc_global, acc


def per_class_accuracy(targets, predictions, classes):
    _, acc = ConfusionMatrix(classes).update(targets, predictions).compute()
    return acc.numpy()


# %% [markdown]
# ## Pictures


# %%
def to_pixels(image, mean, std):
    mean = torch.as_tensor(mean, dtype=torch.float).view(-1, 1, 1)
    std = torch.as_tensor(std, dtype=torch.float).view(-1, 1, 1)
    return image.detach().cpu().mul(std).add(mean).clamp(0, 1)


def show_patches(image, patch_size, mean, std):
    """Left the image; right every patch as an image of its own in the same axes, with gaps between them."""
    pixels = to_pixels(image, mean, std).permute(1, 2, 0).numpy()
    height, width = pixels.shape[:2]
    fig, (left, right) = plt.subplots(1, 2, figsize=(9, 4.5))
    left.imshow(pixels)
    left.set_axis_off()
    gap = patch_size / 6
    for row, top in enumerate(range(0, height - patch_size + 1, patch_size)):
        for column, start in enumerate(range(0, width - patch_size + 1, patch_size)):
            x, y = column * (patch_size + gap), row * (patch_size + gap)
            patch = pixels[top : top + patch_size, start : start + patch_size]
            right.imshow(patch, extent=(x, x + patch_size, y + patch_size, y))
    right.set_xlim(0, (width // patch_size) * (patch_size + gap) - gap)
    right.set_ylim((height // patch_size) * (patch_size + gap) - gap, 0)
    right.set_aspect("equal")
    right.set_axis_off()
    fig.tight_layout()


class WeightsOfLastAttention(nn.Module):
    """The model up to its last attention, as a module: tokens in, weights out."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, images):
        model = self.model
        x = model.patch_embed(images)
        x = torch.cat((model.cls_token.expand(x.shape[0], -1, -1), x), dim=1) + model.pos_embed
        *before, last = model.blocks
        for block in before:
            x = block(x)
        B, N, C = x.shape
        head_dim = C // last.attn.num_heads
        q, k, _ = last.attn.qkv(last.norm1(x)).split(C, dim=2)
        q, k = (t.reshape(B, N, last.attn.num_heads, head_dim).permute(0, 2, 1, 3) for t in (q, k))
        return torch.baddbmm(
            q.new_zeros(1), q.flatten(0, 1), k.flatten(0, 1).transpose(1, 2), beta=0, alpha=head_dim**-0.5
        ).softmax(2).unflatten(0, (B, -1))  # fmt: skip


def show_attention(model, image, mean, std):
    with torch.inference_mode():
        batch = image.unsqueeze(0).to(model.pos_embed.device)
        weights = WeightsOfLastAttention(model)(batch).mean(1)[0, 0, 1:].cpu()
    patch_size = model.patch_embed.patch_size
    attention = weights.view(image.shape[1] // patch_size, -1).numpy()
    fig = plt.figure(figsize=(8, 4))
    gs = GridSpec(1, 2, figure=fig)
    ax = fig.add_subplot(gs[0])
    ax.imshow(to_pixels(image, mean, std).permute(1, 2, 0))
    ax.set_title("Image")
    ax.set_axis_off()
    ax = fig.add_subplot(gs[1])
    ax.imshow(attention, cmap=mpl.colormaps["gray"], extent=(0, image.shape[2], image.shape[1], 0))
    ax.set_title(f"Class token: {attention.min():.3f} (black) to {attention.max():.3f} (white)")
    ax.set_axis_off()


def plot_history(history):
    """What a curve is stands at its end."""
    with plt.style.context("ggplot"):
        fig, axes = plt.subplots(2, 1, figsize=(8, 8), sharex=True, layout="constrained")
        epochs = 1 + np.arange(len(history["stage"]))
        for ax, what in zip(axes, ("loss", "accuracy")):
            for part in ("train", "validation"):
                values = history[f"{part}_{what}"]
                (line,) = ax.plot(epochs, values, label=f"{part} {what}")
                ax.annotate(
                    part, (epochs[-1], values[-1]), xytext=(5, 0), textcoords="offset points",
                    color=line.get_color(), va="center", annotation_clip=False,
                )  # fmt: skip
            ax.set_xlabel("epoch")
            ax.set_ylabel(what)
            if 2 in history["stage"]:
                first = 1 + history["stage"].index(2)
                ax.axvline(first, color="k", linewidth=0.8, linestyle="--")
                ax.text(first, ax.get_ylim()[1], " stage 2", va="top")
        axes[-1].margins(x=0.12)


def plot_per_class(names, accuracies):
    fig, ax = plt.subplots(figsize=(7, 5))
    heights = [float(a) for a in accuracies]
    known = [i for i, a in enumerate(heights) if a == a]
    ax.barh(known, [heights[i] for i in known], height=0.7, color="teal")
    ax.set_yticks(range(len(heights)), labels=names)
    ax.set_ylim(len(heights) - 0.5, -0.5)
    ax.set_xlim(0, 1)
    ax.set_xlabel("accuracy")
    ax.set_ylabel("class")
    fig.tight_layout()


def plot_confusion_matrix(matrix, class_names):
    counts = np.asarray(matrix)
    fig, ax = plt.subplots(figsize=(9, 8))
    # the square root of the counts spreads the colors of the mistakes; the texts are the counts
    picture = ax.imshow(counts, norm=mpl.colors.PowerNorm(0.5, vmin=0, vmax=max(counts.max(), 1)), cmap="YlOrRd")
    for i, row in enumerate(counts):
        for j, count in enumerate(row):
            ax.text(j, i, f"{int(count)}", ha="center", va="center", fontsize=8, color="w" if picture.norm(count) > 0.6 else "k")
    ax.set(xticks=range(len(class_names)), yticks=range(len(class_names)), xlabel="Predicted", ylabel="True")
    ax.set_xticklabels(class_names, rotation=45, ha="right")
    ax.set_yticklabels(class_names)
    fig.colorbar(picture)
    fig.tight_layout()


# %% [markdown]
# ## The images


# %%
class ClassificationPresetTrain(v2.Compose):
    def __init__(self):
        super().__init__(
            [
                v2.ToImage(),
                v2.RandomHorizontalFlip(),
                v2.RandomCrop(32, padding=2, padding_mode="reflect"),
                v2.ToDtype(torch.float32, scale=True),
                v2.Normalize(MEAN, STD),
                v2.ToPureTensor(),
            ]
        )


class ClassificationPresetEval(v2.Compose):
    def __init__(self):
        super().__init__(
            [v2.ToImage(), v2.ToDtype(torch.float32, scale=True), v2.Normalize(MEAN, STD), v2.ToPureTensor()]
        )


with zipfile.ZipFile("dataset.zip") as archive:
    archive.extractall("data")

augmented_images = torchvision.datasets.ImageFolder("data/train", ClassificationPresetTrain())
plain_images = torchvision.datasets.ImageFolder("data/train", ClassificationPresetEval())
test_images = torchvision.datasets.ImageFolder("data/test", ClassificationPresetEval())
class_names = test_images.classes

fewest = torch.tensor(plain_images.targets).bincount().min().item()
training_rows, validation_rows = stratified_split(
    plain_images.targets, (fewest - fewest // 5, fewest // 5), seed=42
)
loaders = {
    "train": DataLoader(Subset(augmented_images, training_rows), batch_size=BATCH_SIZE, shuffle=True),
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
loss, top1, targets, predictions = evaluate(model, test_loader, nn.CrossEntropyLoss(), device)
print(f"loss {loss:.4f}, accuracy {top1:.4f}")
plot_per_class(class_names, per_class_accuracy(targets, predictions, len(class_names)))
confmat = ConfusionMatrix(len(class_names)).update(targets, predictions)
plot_confusion_matrix(confmat.mat, class_names)

# %%
images, labels = next(iter(test_loader))
show_patches(images[0], 4, MEAN, STD)
show_attention(model, images[0], MEAN, STD)
plt.show()
