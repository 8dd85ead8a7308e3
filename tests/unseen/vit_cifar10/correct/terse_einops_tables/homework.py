# %% [markdown]
# # CIFAR-10: ViT and ResNet-18, homework 2

# %%
import csv
import math
import zipfile
from copy import deepcopy

import matplotlib.pyplot as plt
import numpy as np
import torch
import torch.nn.functional as F
from einops import rearrange, repeat
from einops.layers.torch import Rearrange
from torch import nn
from torch.utils.data import DataLoader, Subset
from torchvision import datasets, transforms as T

STUDENT_ID = "400103001"
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(42)

# %% [markdown]
# ## Data

# %%
MEAN, STD = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)
with zipfile.ZipFile("dataset.zip") as archive:
    archive.extractall("data")

normalize = [T.ToTensor(), T.Normalize(MEAN, STD)]
augment = T.Compose([T.RandomCrop(32, padding=4), T.RandomHorizontalFlip(), *normalize])
plain = T.Compose(normalize)
train_aug = datasets.ImageFolder("data/train", transform=augment)
train_plain = datasets.ImageFolder("data/train", transform=plain)
test_set = datasets.ImageFolder("data/test", transform=plain)
class_names = test_set.classes

perm = torch.randperm(len(train_plain), generator=torch.Generator().manual_seed(42)).tolist()
n_val = len(perm) // 10
loaders = {
    "train": DataLoader(Subset(train_aug, perm[n_val:]), batch_size=64, shuffle=True),
    "validation": DataLoader(Subset(train_plain, perm[:n_val]), batch_size=256),
}
test_loader = DataLoader(test_set, batch_size=256)

# %% [markdown]
# ## ViT


# %%
class PatchEmbedding(nn.Module):
    def __init__(self, image_size, patch_size, in_channels, dim):
        super().__init__()
        p = patch_size
        self.net = nn.Sequential(
            Rearrange("b c (h p1) (w p2) -> b (h w) (c p1 p2)", p1=p, p2=p),
            nn.Linear(in_channels * p * p, dim),
        )

    def forward(self, images):
        return self.net(images)


def sinusoidal_positions(tokens, dim):
    angles = torch.outer(torch.arange(tokens).float(), 10000 ** (-torch.arange(0, dim, 2) / dim))
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)


class MultiHeadSelfAttention(nn.Module):
    def __init__(self, dim, heads, dropout=0.0):
        super().__init__()
        self.heads, self.scale = heads, (dim // heads) ** -0.5
        self.to_qkv = nn.Linear(dim, 3 * dim, bias=False)
        self.out = nn.Linear(dim, dim)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, return_weights=False):
        q, k, v = rearrange(self.to_qkv(x), "b n (s h d) -> s b h n d", s=3, h=self.heads)
        weights = F.softmax(q @ k.mT * self.scale, dim=-1)
        mixed = self.dropout(weights) @ v
        y = self.out(rearrange(mixed, "b h n d -> b n (h d)"))
        return (y, weights) if return_weights else y


class EncoderBlock(nn.Module):
    def __init__(self, dim, heads, mlp_ratio=4.0, dropout=0.0):
        super().__init__()
        h = round(dim * mlp_ratio)
        self.n1, self.n2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attn = MultiHeadSelfAttention(dim, heads, dropout)
        self.mlp = nn.Sequential(nn.Linear(dim, h), nn.GELU(), nn.Linear(h, dim))

    def forward(self, x):
        x = x + self.attn(self.n1(x))
        return x + self.mlp(self.n2(x))


class VisionTransformer(nn.Module):
    def __init__(self, image_size=32, patch_size=4, in_channels=3, num_classes=10, dim=192, depth=9, heads=8,
                 mlp_ratio=4.0, dropout=0.1, positions="learned", pool="cls"):  # fmt: skip
        super().__init__()
        n = (image_size // patch_size) ** 2 + (pool == "cls")
        self.embed = PatchEmbedding(image_size, patch_size, in_channels, dim)
        self.cls = nn.Parameter(0.02 * torch.randn(dim)) if pool == "cls" else None
        if positions == "sinusoidal":
            self.register_buffer("pos", sinusoidal_positions(n, dim))
        else:
            self.pos = nn.Parameter(0.02 * torch.randn(n, dim))
        self.blocks = nn.ModuleList(EncoderBlock(dim, heads, mlp_ratio, dropout) for _ in range(depth))
        self.norm, self.head = nn.LayerNorm(dim), nn.Linear(dim, num_classes)

    def tokens(self, images):
        x = self.embed(images)
        if self.cls is not None:
            x = torch.cat([repeat(self.cls, "d -> b 1 d", b=len(x)), x], dim=1)
        return x + self.pos

    def forward(self, images):
        x = self.tokens(images)
        for block in self.blocks:
            x = block(x)
        x = x.mean(dim=1) if self.cls is None else x[:, 0]
        return self.head(self.norm(x))

    def attention(self, images):
        x = self.tokens(images)
        *first, last = self.blocks
        for block in first:
            x = block(x)
        return last.attn(last.n1(x), return_weights=True)[1]


@torch.no_grad()
def attention_map(model, image):
    mode = model.training
    model.eval()
    w = model.attention(image[None].to(next(model.parameters()).device))[0].mean(0).cpu()
    model.train(mode)
    has_cls = math.isqrt(len(w)) ** 2 != len(w)
    v = w[0, 1:] if has_cls else w.mean(0)
    g = math.isqrt(len(v))
    h, wd = image.shape[-2:]
    return repeat(v / v.max(), "(r c) -> (r p1) (c p2)", r=g, p1=h // g, p2=wd // g)


# %% [markdown]
# ## ResNet


# %%
def conv_bn(i, o, k, s=1):
    return nn.Sequential(nn.Conv2d(i, o, k, stride=s, padding=k // 2, bias=False), nn.BatchNorm2d(o))


class BasicBlock(nn.Module):
    def __init__(self, in_channels, channels, stride=1):
        super().__init__()
        self.body = nn.Sequential(
            conv_bn(in_channels, channels, 3, stride), nn.ReLU(), conv_bn(channels, channels, 3)
        )
        same = stride == 1 and in_channels == channels
        self.skip = nn.Identity() if same else conv_bn(in_channels, channels, 1, stride)

    def forward(self, x):
        return F.relu(self.body(x) + self.skip(x))


class ResNet18(nn.Module):
    def __init__(self, num_classes=10, width=64):
        super().__init__()
        layers, c = [conv_bn(3, width, 3), nn.ReLU()], width
        for o, s in zip((width, 2 * width, 4 * width, 8 * width), (1, 2, 2, 2)):
            layers += [BasicBlock(c, o, s), BasicBlock(o, o)]
            c = o
        self.net = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(c, num_classes))

    def forward(self, images):
        return self.net(images)


def parameter_table(model):
    table = {}
    for name, p in model.named_parameters():
        part = ".".join(name.split(".")[:2])
        table[part] = table.get(part, 0) + p.numel()
    return list(table.items())


# %% [markdown]
# ## Training


# %%
def warmup_cosine(step, warmup_steps, total_steps):
    if step < warmup_steps:
        return step / warmup_steps
    done = (step - warmup_steps) / max(1, total_steps - warmup_steps)
    return (1 + math.cos(math.pi * min(1.0, done))) / 2


def train_epoch(model, loader, criterion, optimizer, scheduler, device):
    model.train()
    sums = torch.zeros(3, dtype=torch.float64)
    for x, y in loader:
        x, y = x.to(device), y.to(device)
        out = model(x)
        loss = criterion(out, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if scheduler:
            scheduler.step()
        sums += torch.tensor([loss.item() * len(y), (out.argmax(1) == y).sum().item(), len(y)])
    return (sums[0] / sums[2]).item(), (sums[1] / sums[2]).item()


@torch.no_grad()
def evaluate(model, loader, criterion, device):
    model.eval()
    total, logits, targets = 0.0, [], []
    for x, y in loader:
        out = model(x.to(device))
        total += criterion(out, y.to(device)).item() * len(y)
        logits.append(out.cpu())
        targets.append(y.cpu())
    logits, targets = torch.cat(logits), torch.cat(targets)
    predictions = logits.argmax(1)
    return {
        "loss": total / len(targets),
        "accuracy": (predictions == targets).double().mean().item(),
        "targets": targets,
        "predictions": predictions,
        "probabilities": logits.softmax(1),
    }


def fit(model, loaders, epochs, device):
    model = model.to(device)
    criterion = nn.CrossEntropyLoss()
    opt = torch.optim.AdamW(model.parameters(), lr=8e-4, weight_decay=0.05)
    total = epochs * len(loaders["train"])
    sched = torch.optim.lr_scheduler.LambdaLR(opt, lambda s: warmup_cosine(s, total // 10, total))
    history, best = [], (-1.0, None)
    for _ in range(epochs):
        loss, acc = train_epoch(model, loaders["train"], criterion, opt, sched, device)
        val = evaluate(model, loaders["validation"], criterion, device)
        history.append((loss, acc, val["loss"], val["accuracy"]))
        if val["accuracy"] > best[0]:
            best = (val["accuracy"], deepcopy(model.state_dict()))
    if best[1] is not None:
        model.load_state_dict(best[1])
    return history


# %% [markdown]
# ## Metrics


# %%
def auc(pos, neg):
    if not len(pos) or not len(neg):
        return np.nan
    neg = np.sort(neg)
    below, not_above = np.searchsorted(neg, pos, "left"), np.searchsorted(neg, pos, "right")
    return (below + not_above).sum() / 2 / len(pos) / len(neg)


def ratio(a, b):
    return np.divide(a, b, out=np.zeros(len(a)), where=b != 0)


def classification_metrics(targets, probabilities):
    t, p = np.asarray(targets).astype(int), np.asarray(probabilities, dtype=np.float64)
    k = p.shape[1]
    pred = p.argmax(1)
    cm = np.bincount(t * k + pred, minlength=k * k).reshape(k, k)
    tp, support = cm.diagonal().astype(float), cm.sum(1)
    m = {"precision": ratio(tp, cm.sum(0)), "recall": ratio(tp, support)}
    m["f1"] = ratio(2 * tp, support + cm.sum(0))
    m["roc_auc"] = np.array([auc(p[t == c, c], p[t != c, c]) for c in range(k)])
    means = {}
    for name, values in m.items():
        ok = (support > 0) & ~np.isnan(values)
        v, w = values[ok], support[ok]
        means["macro_" + name] = float(v.mean()) if ok.any() else math.nan
        means["weighted_" + name] = float((v * w).sum() / w.sum()) if ok.any() else math.nan
    return {"confusion": cm, "support": support, "accuracy": float((pred == t).mean()), **m, **means}


def flat(metrics, prefix=""):
    for key, value in metrics.items():
        name = prefix + str(key)
        if isinstance(value, dict):
            yield from flat(value, name + ".")
        elif np.ndim(value) == 0:
            yield name, float(value)
        elif np.ndim(value) == 1:
            yield from ((f"{name}.{i}", float(v)) for i, v in enumerate(value))


def export_metrics(metrics, path):
    with open(path, "w", newline="") as f:
        csv.writer(f).writerows([("metric", "value"), *flat(metrics)])


# %% [markdown]
# ## Plots


# %%
def plot_learning_curves(history):
    h = np.array(history)
    x = np.arange(1, len(h) + 1)
    fig, axes = plt.subplots(1, 2, figsize=(10, 4))
    for ax, i, what in zip(axes, (0, 1), ("loss", "accuracy")):
        ax.plot(x, h[:, i], "-o", label="train " + what)
        ax.plot(x, h[:, i + 2], "-o", label="validation " + what)
        ax.set(xlabel="epoch", ylabel=what)
        ax.legend()
    return fig


def plot_confusion_matrix(matrix, class_names):
    matrix = np.asarray(matrix)
    k = len(class_names)
    fig, ax = plt.subplots(figsize=(7, 7))
    ax.imshow(matrix, cmap="Greens")
    ax.set(xlabel="predicted", ylabel="true", xticks=range(k), yticks=range(k))
    ax.set_xticklabels(class_names, rotation=60)
    ax.set_yticklabels(class_names)
    for (r, c), count in np.ndenumerate(matrix):
        ax.text(c, r, f"{count}", ha="center", va="center")
    return fig


def plot_roc(targets, probabilities, class_names):
    t, p = np.asarray(targets), np.asarray(probabilities)
    fig, ax = plt.subplots()
    for c, name in enumerate(class_names):
        pos, neg = p[t == c, c], p[t != c, c]
        if len(pos) == 0 or len(neg) == 0:
            continue
        thresholds = np.r_[np.inf, np.unique(p[:, c])[::-1]]
        ax.plot([(neg >= s).mean() for s in thresholds], [(pos >= s).mean() for s in thresholds], label=name)
    ax.plot([0, 1], [0, 1], ":", color="gray")
    ax.set(xlabel="false positive rate", ylabel="true positive rate")
    ax.legend(loc="lower right")
    return fig


def denorm(x, mean, std):
    return (x.cpu() * torch.tensor(std)[:, None, None] + torch.tensor(mean)[:, None, None]).clamp(0, 1).permute(1, 2, 0)


def plot_attention(model, images, labels, class_names, mean, std):
    fig, axes = plt.subplots(len(images), 3, figsize=(6, 2 * len(images)), squeeze=False)
    for (a, b, c), x, y in zip(axes, images, labels):
        rgb, m = denorm(x, mean, std), attention_map(model, x)
        a.imshow(rgb)
        a.set_title(class_names[y])
        b.imshow(m, cmap="hot")
        c.imshow(rgb)
        c.imshow(m, cmap="hot", alpha=0.45)
    for ax in axes.flat:
        ax.set_axis_off()
    return fig


def plot_top3(images, labels, probabilities, class_names, mean, std):
    p = np.asarray(probabilities)
    fig, axes = plt.subplots(len(images), 1, figsize=(3.5, 3 * len(images)), squeeze=False)
    for ax, x, y, row in zip(axes[:, 0], images, labels, p):
        top = np.argsort(-row, kind="stable")[:3]
        ax.imshow(denorm(x, mean, std))
        ax.set_title(f"true: {class_names[y]}\n" + ", ".join(f"{class_names[k]} {row[k]:.1%}" for k in top), fontsize=8)
        ax.set_axis_off()
    return fig


# %% [markdown]
# ## Both models

# %%
VIT_EPOCHS, RESNET_EPOCHS = 15, 10

vit = VisionTransformer(
    dim=96, depth=6, heads=4, mlp_ratio=2.0, dropout=0.0, pool="mean", num_classes=len(class_names)
)
vit_history = fit(vit, loaders, VIT_EPOCHS, device)
torch.save(vit.state_dict(), f"{STUDENT_ID}_CIFAR10_vit.pth")

# %%
resnet = ResNet18(num_classes=len(class_names), width=16)
resnet_history = fit(resnet, loaders, RESNET_EPOCHS, device)
torch.save(resnet.state_dict(), f"{STUDENT_ID}_CIFAR10_resnet.pth")

# %%
criterion = nn.CrossEntropyLoss()


def with_names(measures):
    per_class = ("precision", "recall", "f1", "support", "roc_auc")
    return {k: dict(zip(class_names, v)) if k in per_class else v for k, v in measures.items()}


measures = {}
for name, model, history in (("vit", vit, vit_history), ("resnet", resnet, resnet_history)):
    r = evaluate(model, test_loader, criterion, device)
    found = classification_metrics(r["targets"], r["probabilities"])
    measures[name] = with_names(found)
    print(f"{name}: test accuracy {r['accuracy']:.4f}, macro f1 {found['macro_f1']:.4f}")
    print(parameter_table(model))
    plot_learning_curves(history)
    plot_confusion_matrix(found["confusion"], class_names)
    plot_roc(r["targets"], r["probabilities"], class_names)
export_metrics(measures, f"{STUDENT_ID}_metrics.csv")

# %%
x, y = next(iter(DataLoader(test_set, batch_size=6, shuffle=True)))
plot_attention(vit, x, y, class_names, MEAN, STD)
with torch.no_grad():
    plot_top3(x, y, vit.eval()(x.to(device)).softmax(1).cpu(), class_names, MEAN, STD)

# %% [markdown]
# ## Study

# %%
RUN_STUDY = True
BASE = dict(patch_size=8, dim=64, depth=3, heads=4, mlp_ratio=2.0, positions="learned", epochs=6)
CHANGES = [
    {"patch_size": 4}, {"dim": 96}, {"depth": 2}, {"depth": 6}, {"heads": 2}, {"heads": 8}, {"mlp_ratio": 4.0},
    {"positions": "sinusoidal"},
]  # fmt: skip
if RUN_STUDY:
    runs = [(BASE, s) for s in (0, 1, 2)] + [({**BASE, **c}, 0) for c in CHANGES]
    with open(f"{STUDENT_ID}_study.csv", "w", newline="") as f:
        w = csv.DictWriter(f, [*BASE, "seed", "parameters", "validation_accuracy"])
        w.writeheader()
        for config, seed in runs:
            torch.manual_seed(seed)
            sizes = {k: v for k, v in config.items() if k != "epochs"}
            m = VisionTransformer(**sizes, dropout=0.0, num_classes=len(class_names))
            fit(m, loaders, config["epochs"], device)
            acc = evaluate(m, loaders["validation"], criterion, device)["accuracy"]
            count = sum(p.numel() for p in m.parameters())
            w.writerow({**config, "seed": seed, "parameters": count, "validation_accuracy": round(acc, 4)})
