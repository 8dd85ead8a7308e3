# Assignment 2: ViT against ResNet. Short version: as few lines as I could while still being able to read them.
import copy
import csv
import math
import zipfile

import matplotlib.pyplot as plt
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Subset
from torchvision import datasets
from torchvision import transforms as T

STUDENT_ID = "400102001"
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(42)

# --- data ---
MEAN, STD = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)
with zipfile.ZipFile("dataset.zip") as z:
    z.extractall("data")
plain = T.Compose([T.ToTensor(), T.Normalize(MEAN, STD)])
augment = T.Compose([T.RandomCrop(32, padding=4), T.RandomHorizontalFlip(), plain])
train_a, train_p = (datasets.ImageFolder("data/train", transform=t) for t in (augment, plain))
test_set = datasets.ImageFolder("data/test", transform=plain)
class_names = test_set.classes
order = torch.randperm(len(train_p), generator=torch.Generator().manual_seed(42)).tolist()
n_val = len(order) // 10
loaders = {
    "train": DataLoader(Subset(train_a, order[n_val:]), batch_size=64, shuffle=True),
    "validation": DataLoader(Subset(train_p, order[:n_val]), batch_size=256),
}
test_loader = DataLoader(test_set, batch_size=256)


# --- ViT ---
class PatchEmbedding(nn.Module):
    def __init__(self, image_size, patch_size, in_channels, dim):
        super().__init__()
        self.p, self.n = patch_size, (image_size // patch_size) ** 2
        self.proj = nn.Linear(in_channels * patch_size**2, dim)

    def forward(self, images):
        return self.proj(F.unfold(images, self.p, stride=self.p).transpose(1, 2))  # columns come row by row


def sinusoidal_positions(tokens, dim):
    angle = torch.arange(tokens)[:, None] / 10000 ** (torch.arange(0, dim, 2) / dim)
    return torch.stack([angle.sin(), angle.cos()], -1).flatten(1)  # interleaved


class MultiHeadSelfAttention(nn.Module):
    def __init__(self, dim, heads, dropout=0.0):
        super().__init__()
        self.h, self.drop = heads, nn.Dropout(dropout)
        self.qkv, self.out = nn.Linear(dim, 3 * dim, bias=False), nn.Linear(dim, dim)

    def forward(self, x, return_weights=False):
        q, k, v = self.qkv(x).unflatten(-1, (3, self.h, -1)).permute(2, 0, 3, 1, 4)  # each b h n d
        w = (torch.einsum("bhid,bhjd->bhij", q, k) / math.sqrt(q.shape[-1])).softmax(-1)
        y = self.out(torch.einsum("bhij,bhjd->bihd", self.drop(w), v).flatten(2))
        return (y, w) if return_weights else y


class EncoderBlock(nn.Module):
    def __init__(self, dim, heads, mlp_ratio=4.0, dropout=0.0):
        super().__init__()
        hidden = int(dim * mlp_ratio)
        self.n1, self.n2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.att = MultiHeadSelfAttention(dim, heads, dropout)
        self.mlp = nn.Sequential(nn.Linear(dim, hidden), nn.GELU(), nn.Linear(hidden, dim))

    def forward(self, x, return_weights=False):
        a, w = self.att(self.n1(x), return_weights=True)
        x = x + a
        x = x + self.mlp(self.n2(x))
        return (x, w) if return_weights else x


class VisionTransformer(nn.Module):
    def __init__(self, image_size=32, patch_size=4, in_channels=3, num_classes=10, dim=192, depth=9, heads=8,
                 mlp_ratio=4.0, dropout=0.1, positions="learned", pool="cls"):  # fmt: skip
        super().__init__()
        self.patches = PatchEmbedding(image_size, patch_size, in_channels, dim)
        self.cls = nn.Parameter(torch.randn(1, 1, dim) * 0.02) if pool == "cls" else None
        n = (image_size // patch_size) ** 2 + (pool == "cls")
        if positions == "learned":
            self.pos = nn.Parameter(torch.randn(1, n, dim) * 0.02)
        else:
            self.register_buffer("pos", sinusoidal_positions(n, dim)[None])
        self.blocks = nn.ModuleList(EncoderBlock(dim, heads, mlp_ratio, dropout) for _ in range(depth))
        self.norm, self.head = nn.LayerNorm(dim), nn.Linear(dim, num_classes)

    def forward(self, images, return_weights=False):
        x = self.patches(images)
        if self.cls is not None:
            x = torch.cat([self.cls.expand(len(x), -1, -1), x], 1)
        x = x + self.pos
        for block in self.blocks:
            x, w = block(x, return_weights=True)
        x = self.norm(x)
        y = self.head(x.mean(1) if self.cls is None else x[:, 0])
        return (y, w) if return_weights else y

    def attention(self, images):
        return self(images, return_weights=True)[1]


@torch.no_grad()
def attention_map(model, image):
    mode, dev = model.training, next(model.parameters()).device
    model.eval()
    w = model.attention(image[None].to(dev))[0].mean(0).cpu()
    model.train(mode)
    g = math.isqrt(len(w))
    row = w.mean(0) if g * g == len(w) else w[0, 1:]
    g = math.isqrt(len(row))
    m = (row / row.max().clamp_min(1e-30)).view(1, 1, g, g)
    return F.interpolate(m, size=image.shape[-2:], mode="nearest")[0, 0]


# --- ResNet ---
def conv_bn(i, o, k, s):
    return nn.Sequential(nn.Conv2d(i, o, k, s, k // 2, bias=False), nn.BatchNorm2d(o))


class BasicBlock(nn.Module):
    def __init__(self, in_channels, channels, stride=1):
        super().__init__()
        self.way = nn.Sequential(conv_bn(in_channels, channels, 3, stride), nn.ReLU(), conv_bn(channels, channels, 3, 1))
        same = stride == 1 and in_channels == channels
        self.short = nn.Identity() if same else conv_bn(in_channels, channels, 1, stride)

    def forward(self, x):
        return F.relu(self.way(x) + self.short(x))


class ResNet18(nn.Sequential):
    def __init__(self, num_classes=10, width=64):
        w = [width, width, 2 * width, 4 * width, 8 * width]
        groups = [nn.Sequential(BasicBlock(a, b, s), BasicBlock(b, b)) for a, b, s in zip(w, w[1:], (1, 2, 2, 2))]
        super().__init__(conv_bn(3, width, 3, 1), nn.ReLU(), *groups, nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                         nn.Linear(w[-1], num_classes))  # fmt: skip


def parameter_table(model):
    return [(name, p.numel()) for name, p in model.named_parameters()]


# --- training ---
def warmup_cosine(step, warmup_steps, total_steps):
    if step >= total_steps:
        return 0.0
    if step < warmup_steps:
        return step / warmup_steps
    return 0.5 + 0.5 * math.cos(math.pi * (step - warmup_steps) / (total_steps - warmup_steps))


def train_epoch(model, loader, criterion, optimizer, scheduler, device):
    model.train()
    loss_sum, hits, n = 0.0, 0, 0
    for x, y in loader:
        x, y = x.to(device), y.to(device)
        out = model(x)
        loss = criterion(out, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if scheduler is not None:
            scheduler.step()
        loss_sum, hits, n = loss_sum + loss.item() * len(y), hits + (out.argmax(1) == y).sum().item(), n + len(y)
    return loss_sum / n, hits / n


@torch.no_grad()
def evaluate(model, loader, criterion, device):
    model.eval()
    outs, ys, loss_sum = [], [], 0.0
    for x, y in loader:
        out = model(x.to(device))
        loss_sum += criterion(out, y.to(device)).item() * len(y)
        outs.append(out.cpu())
        ys.append(y.cpu())
    out, y = torch.cat(outs), torch.cat(ys)
    pred = out.argmax(1)
    return {"loss": loss_sum / len(y), "accuracy": (pred == y).float().mean().item(), "targets": y,
            "predictions": pred, "probabilities": out.softmax(1)}  # fmt: skip


def fit(model, loaders, epochs, device):
    model.to(device)
    total = epochs * len(loaders["train"])
    opt = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.05)
    sched = torch.optim.lr_scheduler.LambdaLR(opt, lambda s: warmup_cosine(s, total // 10, total))
    crit, best, weights = nn.CrossEntropyLoss(), -1.0, None
    history = {k: [] for k in ("train_loss", "train_acc", "val_loss", "val_acc")}
    for e in range(epochs):
        tl, ta = train_epoch(model, loaders["train"], crit, opt, sched, device)
        val = evaluate(model, loaders["validation"], crit, device)
        for k, v in zip(history, (tl, ta, val["loss"], val["accuracy"])):
            history[k].append(v)
        if val["accuracy"] > best:  # of equals the first
            best, weights = val["accuracy"], copy.deepcopy(model.state_dict())
        print(f"{e + 1:2d}/{epochs} train {tl:.3f} {ta:.3f} val {val['loss']:.3f} {val['accuracy']:.3f}", flush=True)
    if weights is not None:
        model.load_state_dict(weights)
    return history


# --- measures ---
def ranks(s):
    _, inverse, counts = np.unique(s, return_inverse=True, return_counts=True)
    return (counts.cumsum() - (counts - 1) / 2)[inverse]  # equal values share their mean rank


def classification_metrics(targets, probabilities):
    t, p = np.asarray(targets).astype(int), np.asarray(probabilities)
    c = p.shape[1]
    cm = np.bincount(t * c + p.argmax(1), minlength=c * c).reshape(c, c)
    div = lambda a, b: np.divide(a, b, out=np.zeros(c), where=b != 0)  # noqa: E731
    tp, support = np.diag(cm).astype(float), cm.sum(1)
    precision, recall = div(tp, cm.sum(0)), div(tp, support)
    f1 = div(2 * precision * recall, precision + recall)
    onehot, neg = t[:, None] == np.arange(c), len(t) - support
    r = np.stack([ranks(p[:, k]) for k in range(c)], 1)
    pairs = (support * neg).astype(float)
    auc = np.divide((r * onehot).sum(0) - support * (support + 1) / 2, pairs, out=np.full(c, np.nan), where=pairs > 0)
    res = {"confusion": cm, "precision": precision, "recall": recall, "f1": f1, "support": support, "roc_auc": auc,
           "accuracy": float(tp.sum() / max(len(t), 1))}  # fmt: skip
    for k in ("precision", "recall", "f1", "roc_auc"):
        ok = (support > 0) & ~np.isnan(res[k])
        res["macro_" + k] = float(res[k][ok].mean()) if ok.any() else float("nan")
        res["weighted_" + k] = float(np.average(res[k][ok], weights=support[ok])) if ok.any() else float("nan")
    return res


def flat(x, name=""):
    if isinstance(x, dict):
        for k, v in x.items():
            yield from flat(v, f"{name}.{k}" if name else str(k))
    elif np.ndim(x) == 1:
        for i, v in enumerate(np.asarray(x).tolist()):
            yield f"{name}.{i}", v
    elif np.ndim(x) == 0:
        yield name, float(x)  # matrices fall through


def export_metrics(metrics, path):
    with open(path, "w", newline="") as f:
        csv.writer(f).writerows([("metric", "value"), *flat(metrics)])


# --- pictures ---
def plot_learning_curves(history):
    fig, axes = plt.subplots(1, 2, figsize=(10, 4))
    for ax, kind, name in zip(axes, ("loss", "acc"), ("loss", "accuracy")):
        for part in ("train", "val"):
            y = history[f"{part}_{kind}"]
            ax.plot(range(1, len(y) + 1), y, marker=".", label={"train": "training", "val": "validation"}[part])
        ax.set(xlabel="epoch", ylabel=name, title=name)
        ax.legend()
    fig.tight_layout()
    return fig


def plot_confusion_matrix(matrix, class_names):
    m, n = np.asarray(matrix), range(len(class_names))
    fig, ax = plt.subplots(figsize=(8, 8))
    ax.imshow(m, cmap="Blues")
    ax.set_xticks(n, class_names, rotation=90)
    ax.set_yticks(n, class_names)
    ax.set(xlabel="predicted", ylabel="true")
    for i in n:
        for j in n:
            ax.text(j, i, str(m[i, j]), ha="center", va="center", color="w" if m[i, j] > m.max() / 2 else "k")
    fig.tight_layout()
    return fig


def plot_roc(targets, probabilities, class_names):
    t, p = np.asarray(targets), np.asarray(probabilities)
    fig, ax = plt.subplots(figsize=(6, 6))
    for k, name in enumerate(class_names):
        y, s = t == k, p[:, k]
        if 0 < y.sum() < len(y):
            cuts = np.r_[np.inf, np.unique(s)[::-1]]
            tpr, fpr = ((s[part][None] >= cuts[:, None]).mean(1) for part in (y, ~y))
            ax.plot(fpr, tpr, label=name)
    ax.set(xlabel="false positive rate", ylabel="true positive rate", title="one against all others")
    ax.legend(fontsize=7)
    return fig


def unnormalize(image, mean, std):
    mean, std = (torch.as_tensor(v, dtype=torch.float).view(-1, 1, 1) for v in (mean, std))
    return (image.cpu() * std + mean).clamp(0, 1).permute(1, 2, 0).numpy()


def plot_attention(model, images, labels, class_names, mean, std):
    fig, axes = plt.subplots(len(images), 3, figsize=(6, 2 * len(images)), squeeze=False)
    for (a, b, c), x, y in zip(axes, images, labels):
        im, m = unnormalize(x, mean, std), attention_map(model, x).numpy()
        a.imshow(im)
        b.imshow(m, cmap="viridis", vmin=0, vmax=1)
        c.imshow(im)
        c.imshow(m, cmap="jet", alpha=0.45, vmin=0, vmax=1)
        a.set_title(class_names[int(y)], fontsize=8)
        b.set_title("attention", fontsize=8)
        c.set_title("overlay", fontsize=8)
    [ax.axis("off") for ax in axes.flat]
    fig.tight_layout()
    return fig


def plot_top3(images, labels, probabilities, class_names, mean, std):
    p = torch.as_tensor(probabilities)
    fig, axes = plt.subplots(1, len(images), figsize=(2.6 * len(images), 3.4), squeeze=False)
    for ax, x, y, row in zip(axes[0], images, labels, p):
        top = row.topk(min(3, len(row)))
        lines = [f"{class_names[i]}: {v:.1%}" for v, i in zip(top.values.tolist(), top.indices.tolist())]
        ax.imshow(unnormalize(x, mean, std))
        ax.set_title("\n".join([f"true: {class_names[int(y)]}", *lines]), fontsize=7)
        ax.axis("off")
    fig.tight_layout()
    return fig


# --- both models ---
vit = VisionTransformer(dim=64, depth=4, heads=4, mlp_ratio=2.0, dropout=0.0, num_classes=len(class_names))
vit_history = fit(vit, loaders, 6, device)
torch.save(vit.state_dict(), f"{STUDENT_ID}_CIFAR10_vit.pth")
resnet = ResNet18(num_classes=len(class_names), width=16)
resnet_history = fit(resnet, loaders, 3, device)
torch.save(resnet.state_dict(), f"{STUDENT_ID}_CIFAR10_resnet.pth")

criterion, measures = nn.CrossEntropyLoss(), {}
for name, model, history in (("vit", vit, vit_history), ("resnet", resnet, resnet_history)):
    found = evaluate(model, test_loader, criterion, device)
    measures[name] = classification_metrics(found["targets"], found["probabilities"])
    print(name, f"test accuracy {found['accuracy']:.4f}", sum(n for _, n in parameter_table(model)), "parameters")
    plot_learning_curves(history)
    plot_confusion_matrix(measures[name]["confusion"], class_names)
    plot_roc(found["targets"], found["probabilities"], class_names)
export_metrics(measures, f"{STUDENT_ID}_metrics.csv")
images, labels = (v[:6] for v in next(iter(test_loader)))
plot_attention(vit, images, labels, class_names, MEAN, STD)
with torch.no_grad():
    probabilities = vit.eval()(images.to(device)).softmax(1).cpu()
plot_top3(images, labels, probabilities, class_names, MEAN, STD)

# --- study ---
RUN_STUDY = False  # study.csv is there
BASE = dict(patch_size=8, dim=48, depth=2, heads=4, mlp_ratio=2.0, positions="learned", epochs=3)
CHANGES = [{}, {}, {}, dict(patch_size=4), dict(dim=96), dict(depth=4), dict(heads=2), dict(mlp_ratio=4.0),
           dict(positions="sinusoidal"), dict(epochs=6)]  # fmt: skip


def study_row(values, seed):
    torch.manual_seed(seed)
    model = VisionTransformer(**{k: v for k, v in values.items() if k != "epochs"}, dropout=0.0,
                              num_classes=len(class_names))  # fmt: skip
    fit(model, loaders, values["epochs"], device)
    accuracy = evaluate(model, loaders["validation"], criterion, device)["accuracy"]
    return values | dict(seed=seed, parameters=sum(n for _, n in parameter_table(model)),
                         validation_accuracy=round(accuracy, 4))  # fmt: skip


if RUN_STUDY:
    rows = [study_row(BASE | change, seed) for change, seed in zip(CHANGES, [0, 1, 2] + [0] * 7)]
    with open(f"{STUDENT_ID}_study.csv", "w", newline="") as f:
        w = csv.DictWriter(f, list(rows[0]))
        w.writeheader()
        w.writerows(rows)
