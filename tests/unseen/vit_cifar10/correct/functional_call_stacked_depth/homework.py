# Hausaufgabe 2.
#
# Networks here are pure functions of (weights, input). A ViT has ONE block as a program, on the device "meta" where it
# has no numbers at all, and its weights lie outside: all layers of a kind are one tensor whose first axis is the depth.
# torch.func.functional_call brings program and numbers together.

import csv
import math
import pathlib
import shutil
import time

import matplotlib.pyplot as plt
import numpy as np
import torch
import torch.nn.functional as F
from matplotlib.ticker import MaxNLocator
from torch import nn
from torch.func import functional_call, stack_module_state
from torch.utils.data import DataLoader, Subset
from torchvision import datasets, transforms

STUDENT_ID = "403660178"
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(99)

# ---------- images ----------

MEAN, STD = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)

if not pathlib.Path("data/test").exists():
    shutil.unpack_archive("dataset.zip", "data")

base_transform = [transforms.ToTensor(), transforms.Normalize(MEAN, STD)]
transform = {
    "train": transforms.Compose(
        [transforms.RandomHorizontalFlip(), transforms.RandomCrop(32, padding=4), transforms.ColorJitter(0.1, 0.1, 0.1)]
        + base_transform
    ),
    "validation": transforms.Compose(base_transform),
}
folders = {part: datasets.ImageFolder("data/train", tf) for part, tf in transform.items()}  # zwei Ordner-Objekte!
test_folder = datasets.ImageFolder("data/test", transform["validation"])
class_names = test_folder.classes

count = len(folders["train"])
rows = np.random.default_rng(99).permutation(count)
cut = count - max(count // 10, 1)
parts = {"train": rows[:cut], "validation": rows[cut:]}
loaders = {
    part: DataLoader(
        Subset(folders[part], parts[part].tolist()),
        batch_size=64 if part == "train" else 256,
        shuffle=part == "train",
    )
    for part in parts
}
test_loader = DataLoader(test_folder, batch_size=256)

# ---------- Vision Transformer ----------


class PatchEmbedding(nn.Module):
    def __init__(self, image_size, patch_size, in_channels, dim):
        super().__init__()
        self.patch_size = patch_size
        fan_in = in_channels * patch_size * patch_size
        self.weight = nn.Parameter(torch.randn(dim, in_channels, patch_size, patch_size) * fan_in**-0.5)
        self.bias = nn.Parameter(torch.zeros(dim))

    def forward(self, images):
        grid = F.conv2d(images, self.weight, self.bias, stride=self.patch_size)
        return torch.movedim(grid, 1, 3).flatten(1, 2)


def sinusoidal_positions(tokens, dim):
    i = torch.arange(dim) // 2
    angle = torch.arange(tokens).double().unsqueeze(1) * torch.pow(10000.0, -2.0 * i.double() / dim)
    odd = torch.arange(dim) % 2 == 1
    return torch.where(odd, angle.cos(), angle.sin()).to(torch.float32)


def attend(q, k, v, drop):
    """(..., tokens, width) each -> mixed values and weights; drop acts on the weights on their way to the values."""
    weights = torch.softmax(q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5, dim=-1)
    return drop(weights) @ v, weights


class MultiHeadSelfAttention(nn.Module):
    def __init__(self, dim, heads, dropout=0.0):
        super().__init__()
        self.heads = heads
        self.dropout = dropout
        self.inner = nn.Linear(dim, 3 * dim)
        self.outer = nn.Linear(dim, dim)

    def forward(self, x, return_weights=False):
        batch, tokens, dim = x.shape
        q, k, v = self.inner(x).reshape(batch, tokens, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        mixed, weights = attend(q, k, v, lambda w: F.dropout(w, self.dropout, self.training))
        result = self.outer(mixed.permute(0, 2, 1, 3).reshape(batch, tokens, dim))
        return (result, weights) if return_weights else result


class EncoderBlock(nn.Module):
    def __init__(self, dim, heads, mlp_ratio=4.0, dropout=0.0):
        super().__init__()
        width = int(dim * mlp_ratio)
        self.norm1 = nn.LayerNorm(dim)
        self.attention = MultiHeadSelfAttention(dim, heads, dropout)
        self.norm2 = nn.LayerNorm(dim)
        self.mlp = nn.Sequential(nn.Linear(dim, width), nn.GELU(), nn.Linear(width, dim))

    def forward(self, x, return_weights=False):
        update, weights = self.attention(self.norm1(x), return_weights=True)
        x = x + update
        x = x + self.mlp(self.norm2(x))
        return (x, weights) if return_weights else x


class StackedBlocks(nn.Module):
    """depth blocks as one program and tensors (depth, ...). Als Schicht i gilt die Scheibe i."""

    def __init__(self, depth, *arguments):
        super().__init__()
        weights, _ = stack_module_state([EncoderBlock(*arguments) for _ in range(depth)])
        self.names = list(weights)
        for name, value in weights.items():
            self.register_parameter(self.attribute(name), nn.Parameter(value.detach().clone()))
        # in a list, so that it is no submodule: it has neither numbers nor a mode of its own
        self.program = [EncoderBlock(*arguments).to("meta")]
        self.depth = depth

    @staticmethod
    def attribute(name):
        return name.replace(".", "__")

    def slices(self):
        per_name = {name: getattr(self, self.attribute(name)).unbind(0) for name in self.names}
        return [{name: layers[i] for name, layers in per_name.items()} for i in range(self.depth)]

    def forward(self, x, return_weights=False):
        (program,) = self.program
        program.train(self.training)
        weights = None
        for numbers in self.slices():
            x, weights = functional_call(program, numbers, (x,), {"return_weights": True})
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
        assert pool in ("cls", "mean"), pool
        assert positions in ("learned", "sinusoidal"), positions
        self.embed = PatchEmbedding(image_size, patch_size, in_channels, dim)
        extra = int(pool == "cls")
        tokens = extra + (image_size // patch_size) ** 2
        self.cls = nn.Parameter(0.02 * torch.randn(extra, dim)) if extra else None
        table = sinusoidal_positions(tokens, dim) if positions == "sinusoidal" else 0.02 * torch.randn(tokens, dim)
        self.table = nn.Parameter(table, requires_grad=positions == "learned")
        self.blocks = StackedBlocks(depth, dim, heads, mlp_ratio, dropout)
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, num_classes)

    def tokens(self, images):
        x = self.embed(images)
        if self.cls is not None:
            x = torch.hstack([self.cls.expand(x.shape[0], -1, -1), x])
        return x + self.table

    def forward(self, images):
        x = self.blocks(self.tokens(images))
        pooled = x.mean(1) if self.cls is None else x.select(1, 0)
        return self.head(self.norm(pooled))

    def attention(self, images):
        return self.blocks(self.tokens(images), return_weights=True)[1]


def attention_map(model, image):
    mode = model.training
    model.eval()
    home = next(model.parameters()).device
    with torch.no_grad():
        weights = model.attention(image.to(home).unsqueeze(0)).mean((0, 1))
    model.train(mode)

    n = weights.shape[0]
    row = weights.mean(0) if math.isqrt(n) ** 2 == n else weights[0, 1:]
    row = torch.nan_to_num(row / row.max())
    side = math.isqrt(row.numel())
    fine = torch.kron(row.reshape(side, side), torch.ones(image.shape[-2] // side, image.shape[-1] // side, device=home))
    return fine.cpu()


# ---------- ResNet ----------


class BasicBlock(nn.Module):
    def __init__(self, in_channels, channels, stride=1):
        super().__init__()
        conv = lambda i, o, size, s: nn.Conv2d(i, o, size, stride=s, padding=size // 2, bias=False)
        self.body = nn.Sequential(
            conv(in_channels, channels, 3, stride),
            nn.BatchNorm2d(channels),
            nn.ReLU(inplace=True),
            conv(channels, channels, 3, 1),
            nn.BatchNorm2d(channels),
        )
        self.detour = None
        if not (stride == 1 and in_channels == channels):
            self.detour = nn.Sequential(conv(in_channels, channels, 1, stride), nn.BatchNorm2d(channels))

    def forward(self, x):
        y = self.body(x)
        y = y + (x if self.detour is None else self.detour(x))
        return F.relu(y)


class ResNet18(nn.Module):
    def __init__(self, num_classes=10, width=64):
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True)
        )
        shapes = [(1, 1, 1), (1, 1, 1), (1, 2, 2), (2, 2, 1), (2, 4, 2), (4, 4, 1), (4, 8, 2), (8, 8, 1)]
        self.blocks = nn.Sequential(*(BasicBlock(i * width, o * width, stride) for i, o, stride in shapes))
        self.head = nn.Linear(8 * width, num_classes)

    def forward(self, images):
        return self.head(self.blocks(self.stem(images)).flatten(2).mean(-1))


def parameter_table(model):
    return [(name, value.numel()) for name, value in dict(model.named_parameters()).items()]


# ---------- training ----------


def warmup_cosine(step, warmup_steps, total_steps):
    if step >= total_steps:
        return 0.0
    if step < warmup_steps:
        return step / warmup_steps
    return (math.cos((step - warmup_steps) / (total_steps - warmup_steps) * math.pi) + 1.0) / 2.0


def train_epoch(model, loader, criterion, optimizer, scheduler, device):
    """The gradient as the value of a function (torch.autograd.grad), handed to the optimizer."""
    model.train()
    weights = [w for group in optimizer.param_groups for w in group["params"] if w.requires_grad]
    seen, loss_sum, correct = 0, 0.0, 0
    for images, labels in loader:
        images, labels = images.to(device), labels.to(device)
        scores = model(images)
        loss = criterion(scores, labels)
        gradients = torch.autograd.grad(loss, weights, allow_unused=True)
        for weight, gradient in zip(weights, gradients):
            weight.grad = gradient
        optimizer.step()
        if scheduler is not None:
            scheduler.step()
        seen += len(labels)
        loss_sum += loss.item() * len(labels)
        correct += int((scores.argmax(1) == labels).sum())
    return loss_sum / seen, correct / seen


def evaluate(model, loader, criterion, device):
    model.eval()
    state = {**dict(model.named_parameters()), **dict(model.named_buffers())}
    frozen = {name: value.detach() for name, value in state.items()}
    results = []
    with torch.no_grad():
        for images, labels in loader:
            scores = functional_call(model, frozen, (images.to(device),))
            loss = criterion(scores, labels.to(device))
            results.append((loss.item() * len(labels), labels.cpu(), scores.cpu()))
    losses, labels, scores = zip(*results)
    targets, scores = torch.cat(labels), torch.cat(scores)
    predictions = scores.argmax(1)
    return {
        "loss": sum(losses) / len(targets),
        "accuracy": int((predictions == targets).sum()) / len(targets),
        "targets": targets,
        "predictions": predictions,
        "probabilities": torch.softmax(scores, 1),
    }


def snapshot(model):
    return {name: value.detach().clone() for name, value in model.state_dict().items()}


def write_back(model, numbers):
    with torch.no_grad():
        for name, value in model.state_dict().items():  # Verweise: was hier landet, landet im Modell
            value.copy_(numbers[name])


def without_decay(name):
    """Stacked biases and gains have two axes, so the name must tell."""
    return name.endswith("bias") or "norm" in name or name in ("cls", "table")


def fit(model, loaders, epochs, device):
    model.to(device)
    criterion = nn.CrossEntropyLoss()
    vit = isinstance(model, VisionTransformer)
    if vit:
        decayed = [w for name, w in model.named_parameters() if not without_decay(name)]
        others = [w for name, w in model.named_parameters() if without_decay(name)]
        groups = [{"params": decayed, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}]
        optimizer = torch.optim.AdamW(groups, lr=1e-3)
    else:
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, nesterov=True, weight_decay=5e-4)
    total = epochs * len(loaders["train"])
    warmup = min(total // 5, 2 * len(loaders["train"]))  # two epochs, or a fifth of a short training
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: warmup_cosine(step, warmup, total))

    table, best, best_accuracy = [], snapshot(model), float("-inf")
    for _ in range(epochs):
        trained = train_epoch(model, loaders["train"], criterion, optimizer, scheduler, device)
        validated = evaluate(model, loaders["validation"], criterion, device)
        table.append([*trained, validated["loss"], validated["accuracy"]])
        if validated["accuracy"] > best_accuracy:
            best, best_accuracy = snapshot(model), validated["accuracy"]
    write_back(model, best)
    # one row for each epoch; columns: loss and accuracy of training, loss and accuracy of validation
    return torch.tensor(table, dtype=torch.float64).reshape(-1, 4)


# ---------- measures ----------


def classification_metrics(targets, probabilities):
    y, p = np.asarray(targets), np.asarray(probabilities)
    classes = p.shape[1]
    guess = p.argmax(1)
    confusion = np.array([[np.count_nonzero((y == t) & (guess == g)) for g in range(classes)] for t in range(classes)])
    support, predicted, hits = confusion.sum(1), confusion.sum(0), confusion.diagonal()

    def quotient(a, b):
        out = np.zeros(classes)
        out[b != 0] = a[b != 0] / b[b != 0]
        return out

    def auc(c):
        pos, neg = p[y == c, c], np.sort(p[y != c, c])
        if not len(pos) or not len(neg):
            return np.nan
        wins = np.searchsorted(neg, pos, "left")
        losses = len(neg) - np.searchsorted(neg, pos, "right")
        return float(np.mean(0.5 + 0.5 * (wins - losses) / len(neg)))

    each = {
        "precision": quotient(hits, predicted),
        "recall": quotient(hits, support),
        "f1": quotient(2 * hits, support + predicted),
        "roc_auc": np.array([auc(c) for c in range(classes)]),
    }
    means = {}
    for name, values in each.items():
        ok = np.logical_and(support > 0, ~np.isnan(values))
        means[f"macro_{name}"] = values[ok].mean().item() if ok.any() else float("nan")
        means[f"weighted_{name}"] = (values[ok] @ (support[ok] / support[ok].sum())).item() if ok.any() else float("nan")
    accuracy = {"accuracy": float(hits.sum() / len(y)) if len(y) else 0.0}
    return {"confusion": confusion, "support": support} | each | accuracy | means


def leaves(tree, path=()):
    """As pytrees do: (path, leaf) of nested dicts and vectors."""
    if isinstance(tree, dict):
        branches = tree.items()
    elif np.ndim(tree) == 0:
        return [(path, tree)]
    elif np.ndim(tree) == 1:
        branches = enumerate(tree)
    else:
        branches = ()
    return [leaf for key, branch in branches for leaf in leaves(branch, (*path, str(key)))]


def export_metrics(metrics, path):
    with open(path, "w", newline="", encoding="utf-8") as file:
        print("metric,value", file=file)
        writer = csv.writer(file, lineterminator="\n")
        for keys, value in leaves(metrics):
            writer.writerow([".".join(keys), f"{float(value)!r}"])


# ---------- figures ----------


def plot_learning_curves(history):
    history = np.asarray(history)
    fig, ax = plt.subplots(figsize=(7, 4.5))
    twin = ax.twinx()
    epoch = np.arange(1, len(history) + 1)
    lines = [
        *ax.plot(epoch, history[:, 0], "C0--", label="training loss"),
        *ax.plot(epoch, history[:, 2], "C0-", label="validation loss"),
        *twin.plot(epoch, history[:, 1], "C1--", label="training accuracy"),
        *twin.plot(epoch, history[:, 3], "C1-", label="validation accuracy"),
    ]
    ax.set_xlabel("epoch")
    ax.set_ylabel("loss", color="C0")
    twin.set_xlabel("epoch")
    twin.set_ylabel("accuracy", color="C1")
    twin.set_ylim(0, 1)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.legend(handles=lines, loc="center right")
    return fig


def plot_confusion_matrix(matrix, class_names):
    matrix = np.asarray(matrix)
    fig, ax = plt.subplots(figsize=(7, 7), layout="constrained")
    ax.imshow(matrix, cmap="cividis")
    middle = (matrix.max() + matrix.min()) / 2
    for t, g in np.ndindex(*matrix.shape):
        ax.text(g, t, matrix[t, g], ha="center", va="center", color="black" if matrix[t, g] > middle else "white")
    ax.set_xticks(np.arange(len(class_names)), labels=class_names, rotation=50, ha="right", rotation_mode="anchor")
    ax.set_yticks(np.arange(len(class_names)), labels=class_names)
    ax.set_xlabel("predicted")
    ax.set_ylabel("true")
    return fig


def plot_roc(targets, probabilities, class_names):
    y, p = np.asarray(targets), np.asarray(probabilities)
    wide = min(5, len(class_names))
    high = math.ceil(len(class_names) / wide)
    fig, axes = plt.subplots(high, wide, figsize=(2.6 * wide, 2.8 * high), squeeze=False, layout="constrained")
    for ax, c in zip(axes.flat, range(len(class_names))):  # jede Klasse in ihrem eigenen Kästchen
        ax.set_title(class_names[c])
        ax.set_xlabel("false positive rate")
        ax.set_ylabel("true positive rate")
        ax.plot([0, 1], [0, 1], ":", color="gray")
        positive = y == c
        if positive.all() or not positive.any():
            ax.text(0.5, 0.5, "no curve", ha="center")
            continue
        thresholds = np.unique(p[:, c])[::-1]
        fpr = [0.0] + [float((p[~positive, c] >= t).mean()) for t in thresholds]
        tpr = [0.0] + [float((p[positive, c] >= t).mean()) for t in thresholds]
        ax.plot(fpr, tpr, "C3", label=class_names[c])
        ax.fill_between(fpr, tpr, color="C3", alpha=0.15)
    for ax in axes.flat[len(class_names) :]:
        ax.remove()
    return fig


def as_photo(image, mean, std):
    pixels = image.detach().cpu().double().permute(1, 2, 0)
    return (pixels * torch.as_tensor(np.asarray(std, float)) + torch.as_tensor(np.asarray(mean, float))).clamp(0, 1)


def plot_attention(model, images, labels, class_names, mean, std):
    fig, axes = plt.subplots(3, len(images), figsize=(1.9 * len(images), 5.8), squeeze=False, layout="constrained")
    for (top, mid, low), image, label in zip(axes.T, images, labels):
        photo, heat = as_photo(image, mean, std), attention_map(model, image)
        top.imshow(photo)
        mid.imshow(heat, cmap="gray", vmin=0, vmax=1)
        low.imshow(photo)
        low.imshow(heat, cmap="hot", alpha=0.5, vmin=0, vmax=1)
        top.set_title(class_names[int(label)])
    for ax in axes.flat:
        ax.set_axis_off()
    fig.suptitle("image / attention of the last block / both")
    return fig


def plot_top3(images, labels, probabilities, class_names, mean, std):
    p = np.asarray(probabilities)
    fig, axes = plt.subplots(len(images), 2, figsize=(6, 1.5 * len(images)), squeeze=False, layout="constrained")
    for (photo, bars), image, label, row in zip(axes, images, labels, p):
        photo.imshow(as_photo(image, mean, std))
        photo.set_axis_off()
        photo.set_title(f"true: {class_names[int(label)]}", fontsize=8)
        top = np.argsort(row)[::-1][:3]
        heights = np.arange(len(top))[::-1]
        bars.barh(heights, row[top], color=["seagreen" if c == int(label) else "silver" for c in top])
        for height, c in zip(heights, top):
            bars.text(0.02, height, f"{class_names[c]}  {row[c]:.2f}", va="center", fontsize=8)
        bars.set_xlim(0, 1)
        bars.set_yticks([])
    return fig


# ---------- the work ----------

VIT_EPOCHS, RESNET_EPOCHS = 15, 15


def build_and_train(make, epochs, file):
    began = time.time()
    model = make()
    history = fit(model, loaders, epochs, device)
    torch.save(model.state_dict(), file)
    print(f"{file}: {time.time() - began:.0f} s, {sum(n for _, n in parameter_table(model)):,} parameters")
    return model, history


vit, vit_history = build_and_train(
    lambda: VisionTransformer(dim=96, depth=6, heads=4, mlp_ratio=2.0, dropout=0.0, num_classes=len(class_names)),
    VIT_EPOCHS,
    f"{STUDENT_ID}_CIFAR10_vit.pth",
)
resnet, resnet_history = build_and_train(
    lambda: ResNet18(len(class_names), 16), RESNET_EPOCHS, f"{STUDENT_ID}_CIFAR10_resnet.pth"
)

criterion = nn.CrossEntropyLoss()
found = {name: evaluate(model, test_loader, criterion, device) for name, model in (("vit", vit), ("resnet", resnet))}
measures = {name: classification_metrics(f["targets"], f["probabilities"]) for name, f in found.items()}
export_metrics(measures, f"{STUDENT_ID}_metrics.csv")
for name, history in (("vit", vit_history), ("resnet", resnet_history)):
    print(name, "test accuracy", round(measures[name]["accuracy"], 4))
    plot_learning_curves(history)
    plot_confusion_matrix(measures[name]["confusion"], class_names)
    plot_roc(found[name]["targets"], found[name]["probabilities"], class_names)

images, labels = next(iter(test_loader))
images, labels = images[:6], labels[:6]
plot_attention(vit, images, labels, class_names, MEAN, STD)
# test_loader does not shuffle, so the first six probabilities belong to these images
plot_top3(images, labels, found["vit"]["probabilities"][:6], class_names, MEAN, STD)

# ---------- study ----------

RUN_STUDY = True
BASE = {
    "patch_size": 8, "dim": 64, "depth": 4, "heads": 4, "mlp_ratio": 2.0, "positions": "learned", "epochs": 4,
}  # fmt: skip
VARIANTS = [
    {"patch_size": 4}, {"dim": 96}, {"depth": 2}, {"depth": 6}, {"heads": 1}, {"heads": 8}, {"mlp_ratio": 3.0},
    {"positions": "sinusoidal"},
]  # fmt: skip


def study_row(change, seed):
    values = BASE | change
    torch.manual_seed(seed)
    model = VisionTransformer(
        num_classes=len(class_names), dropout=0.0, **{k: v for k, v in values.items() if k != "epochs"}
    )
    fit(model, loaders, values["epochs"], device)
    accuracy = evaluate(model, loaders["validation"], criterion, device)["accuracy"]
    size = sum(n for _, n in parameter_table(model))
    return values | {"seed": seed, "parameters": size, "validation_accuracy": round(accuracy, 4)}


if RUN_STUDY:
    study = [study_row({}, seed) for seed in (5, 6, 7)] + [study_row(change, 5) for change in VARIANTS]
    with open(f"{STUDENT_ID}_study.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, fieldnames=study[0].keys())
        writer.writeheader()
        writer.writerows(study)
