# %% [markdown]
# # HW2: Vision Transformer vs. ResNet-18

# %%
import copy
import csv
import math
import zipfile

import matplotlib.pyplot as plt
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from einops import rearrange, repeat
from torch.utils.data import DataLoader, Subset
from torchvision import datasets, transforms

STUDENT_ID = "400103009"
device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(7)
np.random.seed(7)

# %% [markdown]
# ## Data

# %%
MEAN = [0.4914, 0.4822, 0.4465]
STD = [0.2470, 0.2435, 0.2616]

with zipfile.ZipFile("dataset.zip") as z:
    z.extractall("data")

# only the training images are augmented
test_tf = transforms.Compose([transforms.ToTensor(), transforms.Normalize(MEAN, STD)])
train_tf = transforms.Compose([
    transforms.RandomCrop(32, padding=4),
    transforms.RandomHorizontalFlip(),
    transforms.ToTensor(),
    transforms.Normalize(MEAN, STD),
])
full_train = datasets.ImageFolder("data/train", transform=train_tf)
full_val = datasets.ImageFolder("data/train", transform=test_tf)
test_set = datasets.ImageFolder("data/test", transform=test_tf)
class_names = full_train.classes

# 10 % for validation
perm = np.random.RandomState(0).permutation(len(full_train))
n_val = len(perm) // 10
train_set = Subset(full_train, perm[n_val:].tolist())
val_set = Subset(full_val, perm[:n_val].tolist())

loaders = {
    "train": DataLoader(train_set, batch_size=64, shuffle=True),
    "validation": DataLoader(val_set, batch_size=200, shuffle=False),
}
test_loader = DataLoader(test_set, batch_size=200, shuffle=False)

# %% [markdown]
# ## Model


# %%
class PatchEmbedding(nn.Module):
    """(B, C, H, W) -> (B, N, dim) with einops: cut the patches, then one linear layer."""

    def __init__(self, image_size, patch_size, in_channels, dim):
        super().__init__()
        self.p = patch_size
        self.n_patches = (image_size // patch_size) ** 2
        self.to_token = nn.Linear(in_channels * patch_size * patch_size, dim)

    def forward(self, images):
        patches = rearrange(images, "b c (h p1) (w p2) -> b (h w) (p1 p2 c)", p1=self.p, p2=self.p)
        return self.to_token(patches)


def sinusoidal_positions(tokens, dim):
    """Sine in the even columns and cosine in the odd ones."""
    position = torch.arange(tokens).float()[:, None]
    freq = torch.exp(-math.log(10000.0) * torch.arange(0, dim, 2).float() / dim)
    angle = position * freq
    return torch.stack([angle.sin(), angle.cos()], dim=-1).reshape(tokens, dim)


class MultiHeadSelfAttention(nn.Module):
    def __init__(self, dim, heads, dropout=0.0):
        super().__init__()
        assert dim % heads == 0
        self.h = heads
        self.d_head = dim // heads
        self.query = nn.Linear(dim, dim, bias=False)
        self.key = nn.Linear(dim, dim, bias=False)
        self.value = nn.Linear(dim, dim, bias=False)
        self.dropout = nn.Dropout(dropout)
        self.merge = nn.Linear(dim, dim)

    def forward(self, x, return_weights=False):
        q = rearrange(self.query(x), "b n (h d) -> b h n d", h=self.h)
        k = rearrange(self.key(x), "b n (h d) -> b h n d", h=self.h)
        v = rearrange(self.value(x), "b n (h d) -> b h n d", h=self.h)
        energy = torch.einsum("bhid,bhjd->bhij", q, k) / math.sqrt(self.d_head)
        attention = torch.softmax(energy, dim=-1)
        dropped = self.dropout(attention)
        context = torch.einsum("bhij,bhjd->bhid", dropped, v)
        out = self.merge(rearrange(context, "b h n d -> b n (h d)"))
        return (out, attention) if return_weights else out


class FeedForward(nn.Module):
    def __init__(self, dim, hidden, dropout):
        super().__init__()
        self.fc1 = nn.Linear(dim, hidden)
        self.fc2 = nn.Linear(hidden, dim)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        return self.dropout(self.fc2(self.dropout(F.gelu(self.fc1(x)))))


class EncoderBlock(nn.Module):
    """Pre-norm."""

    def __init__(self, dim, heads, mlp_ratio=4.0, dropout=0.0):
        super().__init__()
        self.ln_attention = nn.LayerNorm(dim)
        self.attention = MultiHeadSelfAttention(dim, heads, dropout)
        self.ln_mlp = nn.LayerNorm(dim)
        self.mlp = FeedForward(dim, int(mlp_ratio * dim), dropout)

    def forward(self, x):
        attended = self.attention(self.ln_attention(x))
        x = x + attended
        mixed = self.mlp(self.ln_mlp(x))
        x = x + mixed
        return x


class VisionTransformer(nn.Module):
    def __init__(self, image_size=32, patch_size=4, in_channels=3, num_classes=10, dim=192, depth=9, heads=8,
                 mlp_ratio=4.0, dropout=0.1, positions="learned", pool="cls"):
        super().__init__()
        self.pool = pool
        self.patches = PatchEmbedding(image_size, patch_size, in_channels, dim)
        length = self.patches.n_patches
        if pool == "cls":
            self.class_token = nn.Parameter(torch.zeros(1, 1, dim))
            nn.init.trunc_normal_(self.class_token, std=0.02)
            length += 1
        if positions == "learned":
            self.pos = nn.Parameter(torch.zeros(length, dim))
            nn.init.trunc_normal_(self.pos, std=0.02)
        elif positions == "sinusoidal":
            self.pos = nn.Parameter(sinusoidal_positions(length, dim), requires_grad=False)
        else:
            raise ValueError(f"unknown positions {positions!r}")
        self.dropout = nn.Dropout(dropout)
        self.encoder = nn.ModuleList()
        for _ in range(depth):
            self.encoder.append(EncoderBlock(dim, heads, mlp_ratio, dropout))
        self.final_norm = nn.LayerNorm(dim)
        self.classifier = nn.Linear(dim, num_classes)

    def tokens(self, images):
        x = self.patches(images)
        if self.pool == "cls":
            first = repeat(self.class_token, "1 1 d -> b 1 d", b=len(images))
            x = torch.cat((first, x), dim=1)
        x = x + self.pos
        return self.dropout(x)

    def forward(self, images):
        x = self.tokens(images)
        for layer in self.encoder:
            x = layer(x)
        x = self.final_norm(x)
        x = x[:, 0] if self.pool == "cls" else x.mean(dim=1)
        return self.classifier(x)

    def attention(self, images):
        x = self.tokens(images)
        for layer in list(self.encoder)[:-1]:
            x = layer(x)
        last = self.encoder[-1]
        return last.attention(last.ln_attention(x), return_weights=True)[1]


@torch.no_grad()
def attention_map(model, image):
    """Attention of the class token in the last layer, as an image of the same size."""
    mode = model.training
    model.eval()
    where = next(model.parameters()).device
    weights = model.attention(image[None].to(where)).squeeze(0).mean(0).cpu()
    model.train(mode)
    if model.pool == "cls":
        row = weights[0, 1:]
    else:
        row = weights.mean(0)
    side = round(len(row) ** 0.5)
    grid = rearrange(row, "(h w) -> h w", h=side)
    big = F.interpolate(grid[None, None], size=image.shape[-2:], mode="nearest")[0, 0]
    return (big / big.max()).numpy()


# %% [markdown]
# ## ResNet-18 for 32x32


# %%
class BasicBlock(nn.Module):
    def __init__(self, in_channels, channels, stride=1):
        super().__init__()
        self.main = nn.Sequential(
            nn.Conv2d(in_channels, channels, kernel_size=3, stride=stride, padding=1, bias=False),
            nn.BatchNorm2d(channels),
            nn.ReLU(),
            nn.Conv2d(channels, channels, kernel_size=3, stride=1, padding=1, bias=False),
            nn.BatchNorm2d(channels),
        )
        if in_channels == channels:  # same shape: nothing to do
            self.skip = nn.Sequential()
        else:
            self.skip = nn.Sequential(
                nn.Conv2d(in_channels, channels, kernel_size=1, stride=stride, bias=False),
                nn.BatchNorm2d(channels),
            )

    def forward(self, x):
        return torch.relu(self.main(x) + self.skip(x))


class ResNet18(nn.Module):
    def __init__(self, num_classes=10, width=64):
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, width, kernel_size=3, stride=1, padding=1, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(),
        )
        blocks = []
        c_in = width
        for c_out, stride in [(width, 1), (2 * width, 2), (4 * width, 2), (8 * width, 2)]:
            blocks.append(BasicBlock(c_in, c_out, stride))
            blocks.append(BasicBlock(c_out, c_out, 1))
            c_in = c_out
        self.blocks = nn.Sequential(*blocks)
        self.gap = nn.AdaptiveAvgPool2d(1)
        self.linear = nn.Linear(c_in, num_classes)

    def forward(self, images):
        x = self.blocks(self.stem(images))
        x = self.gap(x).flatten(1)
        return self.linear(x)


def parameter_table(model):
    """One row per top-level part; parameters that sit in the model itself get their own rows."""
    table = [(name, p.numel()) for name, p in model.named_parameters(recurse=False)]
    for name, child in model.named_children():
        table.append((name, sum(p.numel() for p in child.parameters())))
    return table


# %% [markdown]
# ## Training


# %%
def warmup_cosine(step, warmup_steps, total_steps):
    if step >= total_steps:
        return 0.0
    if step < warmup_steps:
        return step / warmup_steps
    t = (step - warmup_steps) / max(1, total_steps - warmup_steps)
    return (1 + math.cos(math.pi * t)) / 2


def train_epoch(model, loader, criterion, optimizer, scheduler, device):
    model.train()
    loss_sum = 0.0
    n_right = 0
    n_images = 0
    for x, y in loader:
        x = x.to(device)
        y = y.to(device)
        logits = model(x)
        loss = criterion(logits, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if scheduler is not None:
            scheduler.step()
        batch = x.size(0)
        loss_sum += loss.item() * batch
        n_right += int((logits.argmax(1) == y).sum())
        n_images += batch
    return loss_sum / n_images, n_right / n_images


@torch.no_grad()
def evaluate(model, loader, criterion, device):
    model.eval()
    loss_sum = 0.0
    logits_list, target_list = [], []
    for x, y in loader:
        logits = model(x.to(device))
        loss_sum += criterion(logits, y.to(device)).item() * x.size(0)
        logits_list.append(logits.cpu())
        target_list.append(y)
    logits = torch.cat(logits_list)
    targets = torch.cat(target_list)
    probabilities = logits.softmax(dim=1)
    predictions = probabilities.argmax(dim=1)
    return {
        "loss": loss_sum / len(targets),
        "accuracy": float((predictions == targets).float().mean()),
        "targets": targets.numpy(),
        "predictions": predictions.numpy(),
        "probabilities": probabilities.numpy(),
    }


def fit(model, loaders, epochs, device):
    model = model.to(device)
    criterion = nn.CrossEntropyLoss()
    lr = 2e-3
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr, weight_decay=0.05)
    steps = len(loaders["train"]) * epochs
    warmup = min(len(loaders["train"]) // 2, steps // 5)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: warmup_cosine(step, warmup, steps))

    history = []
    best = None
    best_accuracy = -1
    for epoch in range(1, epochs + 1):
        train_loss, train_accuracy = train_epoch(
            model, loaders["train"], criterion, optimizer, scheduler, device
        )
        result = evaluate(model, loaders["validation"], criterion, device)
        history.append({
            "epoch": epoch,
            "train_loss": train_loss,
            "train_accuracy": train_accuracy,
            "val_loss": result["loss"],
            "val_accuracy": result["accuracy"],
        })
        print(f"[{epoch}/{epochs}] loss {train_loss:.4f} / {result['loss']:.4f}"
              f"  accuracy {train_accuracy:.4f} / {result['accuracy']:.4f}")
        if result["accuracy"] > best_accuracy:
            best_accuracy = result["accuracy"]
            best = copy.deepcopy(model.state_dict())
    if best is not None:
        model.load_state_dict(best)
    return history


# %% [markdown]
# ## Metrics


# %%
def _divide(a, b):
    """a / b, with 0 where b is 0"""
    a = np.asarray(a, dtype=float)
    b = np.asarray(b, dtype=float)
    return np.where(b == 0, 0.0, a / np.where(b == 0, 1.0, b))


def _auc(is_positive, scores):
    """Rank formula (Mann-Whitney), equal scores share their mean rank."""
    n_pos = int(is_positive.sum())
    n_neg = len(is_positive) - n_pos
    if n_pos == 0 or n_neg == 0:
        return float("nan")
    _, inverse, counts = np.unique(scores, return_inverse=True, return_counts=True)
    last_rank = np.cumsum(counts)
    mean_rank = last_rank - (counts - 1) / 2
    rank_sum = mean_rank[inverse][is_positive].sum()
    return float((rank_sum - n_pos * (n_pos + 1) / 2) / (n_pos * n_neg))


def classification_metrics(targets, probabilities):
    y = np.array(targets).astype(np.int64).reshape(-1)
    p = np.array(probabilities).astype(np.float64)
    k = p.shape[1]
    guess = np.argmax(p, axis=1)

    cm = np.bincount(y * k + guess, minlength=k * k).reshape(k, k)
    tp = np.diag(cm)
    support = cm.sum(axis=1)
    precision = _divide(tp, cm.sum(axis=0))
    recall = _divide(tp, support)
    f1 = _divide(2 * precision * recall, precision + recall)
    auc = np.array([_auc(y == c, p[:, c]) for c in range(k)])

    out = dict(confusion=cm, precision=precision, recall=recall, f1=f1, support=support, roc_auc=auc)
    out["accuracy"] = float(_divide(tp.sum(), cm.sum()))
    present = support > 0
    for name in ["precision", "recall", "f1", "roc_auc"]:
        values = out[name]
        ok = present & np.isfinite(values)
        if not ok.any():
            out[f"macro_{name}"] = out[f"weighted_{name}"] = float("nan")
            continue
        out[f"macro_{name}"] = float(np.mean(values[ok]))
        out[f"weighted_{name}"] = float(np.sum(values[ok] * support[ok]) / np.sum(support[ok]))
    return out


def _flatten(prefix, value):
    """Yields (name, number) pairs."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _flatten(prefix + [str(key)], inner)
    elif np.ndim(value) == 0:
        yield ".".join(prefix), float(value)
    elif np.ndim(value) == 1:
        for i, number in enumerate(value):
            yield ".".join(prefix + [str(i)]), float(number)
    # matrices are left out


def export_metrics(metrics, path):
    with open(path, "w", newline="") as f:
        w = csv.DictWriter(f, fieldnames=["metric", "value"])
        w.writeheader()
        for name, number in _flatten([], metrics):
            w.writerow({"metric": name, "value": number})


# %% [markdown]
# ## Figures


# %%
def denormalize(image, mean, std):
    """(C, H, W) normalized -> (H, W, C) between 0 and 1"""
    mean = torch.as_tensor(mean, dtype=torch.float32).reshape(-1, 1, 1)
    std = torch.as_tensor(std, dtype=torch.float32).reshape(-1, 1, 1)
    image = image.detach().cpu() * std + mean
    return image.clamp(0, 1).permute(1, 2, 0).numpy()


def plot_learning_curves(history):
    epochs = [h["epoch"] for h in history]
    fig, (left, right) = plt.subplots(1, 2, figsize=(11, 4))
    left.plot(epochs, [h["train_loss"] for h in history], "o-", label="train")
    left.plot(epochs, [h["val_loss"] for h in history], "s--", label="validation")
    left.set(xlabel="Epoch", ylabel="Cross-entropy loss", title="Loss")
    left.legend()
    right.plot(epochs, [h["train_accuracy"] for h in history], "o-", label="train")
    right.plot(epochs, [h["val_accuracy"] for h in history], "s--", label="validation")
    right.set(xlabel="Epoch", ylabel="Accuracy", title="Accuracy")
    right.legend()
    return fig


def plot_confusion_matrix(matrix, class_names):
    matrix = np.asarray(matrix)
    fig, ax = plt.subplots(figsize=(9, 8))
    im = ax.imshow(matrix, cmap="viridis")
    fig.colorbar(im)
    ticks = np.arange(len(class_names))
    ax.set_xticks(ticks)
    ax.set_yticks(ticks)
    ax.set_xticklabels(class_names, rotation=60, ha="right")
    ax.set_yticklabels(class_names)
    ax.set(xlabel="Predicted", ylabel="True", title="Confusion matrix")
    for (row, col), count in np.ndenumerate(matrix):
        ax.text(col, row, f"{int(count)}", ha="center", va="center", color="w")
    fig.tight_layout()
    return fig


def plot_roc(targets, probabilities, class_names):
    targets = np.asarray(targets)
    probabilities = np.asarray(probabilities)
    fig, ax = plt.subplots(figsize=(7, 7))
    for c in range(len(class_names)):
        truth = (targets == c).astype(int)
        if truth.sum() in (0, len(truth)):
            continue
        scores = probabilities[:, c]
        order = np.argsort(-scores, kind="stable")
        truth, scores = truth[order], scores[order]
        # only where the score changes (images with the same score come together)
        ends = np.append(np.nonzero(np.diff(scores))[0], len(scores) - 1)
        tp = np.cumsum(truth)[ends]
        fp = (ends + 1) - tp
        tpr = np.concatenate([[0], tp / truth.sum()])
        fpr = np.concatenate([[0], fp / (len(truth) - truth.sum())])
        area = _auc(targets == c, probabilities[:, c])
        ax.plot(fpr, tpr, label=f"{class_names[c]} (AUC {area:.3f})")
    ax.plot([0, 1], [0, 1], ":", color="gray")
    ax.set(xlabel="False positive rate", ylabel="True positive rate", title="ROC, one against all others")
    ax.legend(loc="lower right")
    return fig


def plot_attention(model, images, labels, class_names, mean, std):
    rows = len(images)
    fig, axs = plt.subplots(rows, 3, figsize=(8, 2.7 * rows), squeeze=False)
    for r, (image, label) in enumerate(zip(images, labels)):
        rgb = denormalize(image, mean, std)
        att = attention_map(model, image)
        axs[r][0].imshow(rgb)
        axs[r][0].set_title(class_names[int(label)])
        axs[r][1].imshow(att, cmap="inferno")
        axs[r][1].set_title("attention map")
        axs[r][2].imshow(rgb)
        axs[r][2].imshow(att, cmap="inferno", alpha=0.45)
        axs[r][2].set_title("overlay")
        for a in axs[r]:
            a.set_axis_off()
    return fig


def plot_top3(images, labels, probabilities, class_names, mean, std):
    probabilities = np.asarray(probabilities)
    count = len(images)
    fig, axs = plt.subplots(2, count, figsize=(3 * count, 5), squeeze=False)
    for i in range(count):
        axs[0][i].imshow(denormalize(images[i], mean, std))
        axs[0][i].set_title("true: " + class_names[int(labels[i])], fontsize=9)
        axs[0][i].axis("off")
        best = np.argsort(-probabilities[i], kind="stable")[:3]
        bars = axs[1][i].barh(range(len(best)), probabilities[i][best])
        axs[1][i].bar_label(bars, [f"{class_names[b]}: {probabilities[i][b]:.3f}" for b in best], fontsize=7)
        axs[1][i].set_yticks(range(len(best)), [class_names[b] for b in best], fontsize=7)
        axs[1][i].invert_yaxis()
        axs[1][i].set_xlim(0, 1)
    fig.tight_layout()
    return fig


# %% [markdown]
# ## Run everything

# %%
vit = VisionTransformer(patch_size=4, dim=64, depth=4, heads=4, mlp_ratio=2, dropout=0.0, positions="sinusoidal",
                        num_classes=len(class_names))
vit_history = fit(vit, loaders, 7, device)
torch.save(vit.state_dict(), f"{STUDENT_ID}_CIFAR10_vit.pth")

# %%
torch.manual_seed(7)
resnet = ResNet18(num_classes=len(class_names), width=16)
resnet_history = fit(resnet, loaders, 2, device)
torch.save(resnet.state_dict(), f"{STUDENT_ID}_CIFAR10_resnet.pth")

# %%
criterion = nn.CrossEntropyLoss()
vit_test = evaluate(vit, test_loader, criterion, device)
resnet_test = evaluate(resnet, test_loader, criterion, device)
print("ViT on the test images:", vit_test["accuracy"], parameter_table(vit))
print("ResNet on the test images:", resnet_test["accuracy"], parameter_table(resnet))

all_metrics = {}
for name, test, history in [("vit", vit_test, vit_history), ("resnet", resnet_test, resnet_history)]:
    m = classification_metrics(test["targets"], test["probabilities"])
    plot_learning_curves(history)
    plot_confusion_matrix(m["confusion"], class_names)
    plot_roc(test["targets"], test["probabilities"], class_names)
    # names instead of numbers for the values of each class
    for key in ["precision", "recall", "f1", "support", "roc_auc"]:
        m[key] = dict(zip(class_names, m[key]))
    all_metrics[name] = m
export_metrics(all_metrics, f"{STUDENT_ID}_metrics.csv")

# %%
some = list(range(0, len(test_set), len(test_set) // 6))[:6]
images = torch.stack([test_set[i][0] for i in some])
labels = torch.tensor([test_set[i][1] for i in some])
plot_attention(vit, images, labels, class_names, MEAN, STD)
plot_top3(images, labels, vit_test["probabilities"][some], class_names, MEAN, STD)

# %% [markdown]
# ## Study

# %%
RUN_STUDY = False  # the table is there already
base = dict(patch_size=8, dim=48, depth=2, heads=4, mlp_ratio=2.0, positions="learned", epochs=2)
experiments = [(base, 0), (base, 1), (base, 2)]
for change in [dict(patch_size=4), dict(dim=96), dict(depth=4), dict(heads=8), dict(mlp_ratio=4.0),
               dict(positions="sinusoidal")]:
    experiments.append(({**base, **change}, 0))

if RUN_STUDY:
    with open(f"{STUDENT_ID}_study.csv", "w", newline="") as f:
        writer = csv.writer(f)
        writer.writerow(["patch_size", "dim", "depth", "heads", "mlp_ratio", "positions", "epochs", "seed",
                         "parameters", "validation_accuracy"])
        for setting, seed in experiments:
            torch.manual_seed(seed)
            arguments = {k: v for k, v in setting.items() if k != "epochs"}
            model = VisionTransformer(dropout=0.0, num_classes=len(class_names), **arguments)
            fit(model, loaders, setting["epochs"], device)
            accuracy = evaluate(model, loaders["validation"], criterion, device)["accuracy"]
            size = sum(p.numel() for p in model.parameters())
            writer.writerow([*setting.values(), seed, size, round(accuracy, 4)])
