# %% [markdown]
# # A Vision Transformer for CIFAR-10, compared with a ResNet

# %%
import csv
import math
import zipfile

import matplotlib.pyplot as plt
import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn, optim
from torch.utils.data import DataLoader, Subset
from torchvision import datasets, transforms

STUDENT_ID = "400103001"

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(42)

# %% [markdown]
# ## The images

# %%
MEAN, STD = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)
with zipfile.ZipFile("dataset.zip") as archive:
    archive.extractall("data")


def folder(name, *augmentations):
    steps = [*augmentations, transforms.ToTensor(), transforms.Normalize(MEAN, STD)]
    return datasets.ImageFolder(f"data/{name}", transform=transforms.Compose(steps))


augmented = folder("train", transforms.RandomHorizontalFlip(), transforms.RandomCrop(32, 2, padding_mode="reflect"))
plain, test_images = folder("train"), folder("test")
class_names = plain.classes
rows = np.random.default_rng(42).permutation(len(plain))
validation_rows, training_rows = np.split(rows, [len(rows) // 10])
loaders = dict(
    train=DataLoader(Subset(augmented, training_rows.tolist()), batch_size=50, shuffle=True),
    validation=DataLoader(Subset(plain, validation_rows.tolist()), batch_size=200),
)
test_loader = DataLoader(test_images, batch_size=200)

# %% [markdown]
# ## The Vision Transformer

# %%
class PatchEmbedding(nn.Module):
    def __init__(self, image_size, patch_size, in_channels, dim):
        super().__init__()
        self.stride = patch_size
        bound = 1 / math.sqrt(in_channels * patch_size**2)
        self.kernel = nn.Parameter(torch.empty(dim, in_channels, patch_size, patch_size).uniform_(-bound, bound))
        self.offset = nn.Parameter(torch.zeros(dim))

    def forward(self, images):
        return F.conv2d(images, self.kernel, self.offset, stride=self.stride).flatten(2).mT


# %%
def sinusoidal_positions(tokens, dim):
    pos = np.arange(tokens, dtype=np.float64)[:, np.newaxis]
    frequency = np.power(10000.0, -np.arange(0, dim, 2) / dim)[np.newaxis]
    table = np.empty((tokens, dim))
    table[:, 0::2] = np.sin(pos * frequency)
    table[:, 1::2] = np.cos(pos * frequency)
    return torch.from_numpy(table.astype(np.float32))


# %%
class MultiHeadSelfAttention(nn.Module):
    def __init__(self, dim, heads, dropout=0.0):
        super().__init__()
        self.heads, self.rate = heads, dropout
        bound = 1 / math.sqrt(dim)
        self.in_weight = nn.Parameter(torch.empty(3, heads, dim // heads, dim).uniform_(-bound, bound))
        self.in_bias = nn.Parameter(torch.zeros(3, heads, 1, dim // heads))
        self.out_weight = nn.Parameter(torch.empty(heads, dim // heads, dim).uniform_(-bound, bound))
        self.out_bias = nn.Parameter(torch.zeros(dim))

    def forward(self, x, return_weights=False):
        q, k, v = torch.einsum("bnc,thdc->tbhnd", x, self.in_weight) + self.in_bias[:, None]
        scores = torch.einsum("bhid,bhjd->bhij", q, k) / math.sqrt(q.shape[-1])
        weights = F.softmax(scores, dim=-1)
        kept = F.dropout(weights, self.rate, self.training)
        joined = torch.einsum("bhij,bhjd,hdc->bic", kept, v, self.out_weight) + self.out_bias
        return (joined, weights) if return_weights else joined


# %%
class EncoderBlock(nn.Module):
    def __init__(self, dim, heads, mlp_ratio=4.0, dropout=0.0):
        super().__init__()
        hidden = int(dim * mlp_ratio)
        self.attention = MultiHeadSelfAttention(dim, heads, dropout)
        self.gain1, self.shift1 = nn.Parameter(torch.ones(dim)), nn.Parameter(torch.zeros(dim))
        self.gain2, self.shift2 = nn.Parameter(torch.ones(dim)), nn.Parameter(torch.zeros(dim))
        self.w1 = nn.Parameter(torch.randn(hidden, dim) * dim**-0.5)
        self.b1 = nn.Parameter(torch.zeros(hidden))
        self.w2 = nn.Parameter(torch.randn(dim, hidden) * hidden**-0.5)
        self.b2 = nn.Parameter(torch.zeros(dim))

    def forward(self, x):
        size = x.shape[-1:]
        x = x + self.attention(F.layer_norm(x, size, self.gain1, self.shift1))
        y = F.layer_norm(x, size, self.gain2, self.shift2)
        return x + F.linear(F.gelu(F.linear(y, self.w1, self.b1)), self.w2, self.b2)

    def weights(self, x):
        return self.attention(F.layer_norm(x, x.shape[-1:], self.gain1, self.shift1), return_weights=True)[1]


# %%
class VisionTransformer(nn.Module):
    def __init__(self, image_size=32, patch_size=4, in_channels=3, num_classes=10, dim=192, depth=9, heads=8,
                 mlp_ratio=4.0, dropout=0.1, positions="learned", pool="cls"):
        super().__init__()
        self.pool = pool
        self.patches = PatchEmbedding(image_size, patch_size, in_channels, dim)
        count = (image_size // patch_size) ** 2
        if pool == "cls":
            self.class_token = nn.Parameter(torch.randn(dim) * 0.02)
            count += 1
        if positions == "sinusoidal":
            self.register_buffer("positions", sinusoidal_positions(count, dim))
        else:
            self.positions = nn.Parameter(torch.randn(count, dim) * 0.02)
        self.blocks = nn.ModuleList([EncoderBlock(dim, heads, mlp_ratio, dropout) for _ in range(depth)])
        self.gain, self.shift = nn.Parameter(torch.ones(dim)), nn.Parameter(torch.zeros(dim))
        self.head_weight = nn.Parameter(torch.randn(num_classes, dim) * 0.02)
        self.head_bias = nn.Parameter(torch.zeros(num_classes))

    def tokens(self, images):
        x = self.patches(images)
        if self.pool == "cls":
            x = torch.cat((self.class_token.expand(x.shape[0], 1, -1), x), dim=1)
        return x + self.positions

    def forward(self, images):
        x = self.tokens(images)
        for block in self.blocks:
            x = block(x)
        x = x[:, 0] if self.pool == "cls" else x.mean(dim=1)
        return F.linear(F.layer_norm(x, x.shape[-1:], self.gain, self.shift), self.head_weight, self.head_bias)

    def attention(self, images):
        x = self.tokens(images)
        for block in self.blocks[:-1]:
            x = block(x)
        return self.blocks[-1].attention(x, return_weights=True)[1]


# %%
@torch.no_grad()
def attention_map(model, image):
    mode = model.training
    device_of_model = next(model.parameters()).device
    heads = model.eval().attention(image.unsqueeze(0).to(device_of_model)).squeeze(0).cpu()
    model.train(mode)
    mean = heads.mean(0)
    rows = math.isqrt(mean.shape[0])
    has_class = rows**2 != mean.shape[0]
    row = mean[0][1:] if has_class else mean.mean(0)
    grid = row.div(row.max()).view(rows, rows)
    return torch.kron(grid, torch.ones(image.shape[-2] // rows, image.shape[-1] // rows))


# %% [markdown]
# ## The ResNet

# %%
class BasicBlock(nn.Module):
    def __init__(self, in_channels, channels, stride=1):
        super().__init__()
        self.stride = stride
        self.kernels, self.gains, self.shifts = nn.ParameterList(), nn.ParameterList(), nn.ParameterList()
        shapes = [(channels, in_channels, 3, 3), (channels, channels, 3, 3)]
        self.projects = stride != 1 or in_channels != channels
        if self.projects:
            shapes.append((channels, in_channels, 1, 1))
        for i, shape in enumerate(shapes):
            fan_in = shape[1] * shape[2] * shape[3]
            self.kernels.append(nn.Parameter(torch.randn(shape) * math.sqrt(2 / fan_in)))
            self.gains.append(nn.Parameter(torch.ones(channels)))
            self.shifts.append(nn.Parameter(torch.zeros(channels)))
            self.register_buffer(f"mean{i}", torch.zeros(channels))
            self.register_buffer(f"var{i}", torch.ones(channels))

    def conv_norm(self, i, x, stride=1):
        x = F.conv2d(x, self.kernels[i], stride=stride, padding=self.kernels[i].shape[-1] // 2)
        mean, var = getattr(self, f"mean{i}"), getattr(self, f"var{i}")
        return F.batch_norm(x, mean, var, self.gains[i], self.shifts[i], training=self.training)

    def forward(self, x):
        y = self.conv_norm(1, F.relu(self.conv_norm(0, x, self.stride)))
        return F.relu(y + (self.conv_norm(2, x, self.stride) if self.projects else x))


# %%
class ResNet18(nn.Module):
    def __init__(self, num_classes=10, width=64):
        super().__init__()
        self.stem = nn.Parameter(torch.randn(width, 3, 3, 3) * math.sqrt(2 / 27))
        self.norm = nn.BatchNorm2d(width)
        wide = [width * 2**i for i in (0, 0, 1, 2, 3)]
        self.blocks = nn.ModuleList()
        for group in range(4):
            self.blocks.append(BasicBlock(wide[group], wide[group + 1], stride=2 if group else 1))
            self.blocks.append(BasicBlock(wide[group + 1], wide[group + 1]))
        self.weight = nn.Parameter(torch.randn(num_classes, wide[-1]) / math.sqrt(wide[-1]))
        self.bias = nn.Parameter(torch.zeros(num_classes))

    def forward(self, images):
        x = F.relu(self.norm(F.conv2d(images, self.stem, padding=1)))
        for block in self.blocks:
            x = block(x)
        return torch.einsum("bchw,kc->bk", x, self.weight) / (x.shape[-1] * x.shape[-2]) + self.bias


# %%
def parameter_table(model):
    return [(name, weights.numel()) for name, weights in model.named_parameters()]


# %% [markdown]
# ## Training

# %%
def warmup_cosine(step, warmup_steps, total_steps):
    if step < warmup_steps:
        return step / warmup_steps
    if step >= total_steps:
        return 0.0
    progress = (step - warmup_steps) / (total_steps - warmup_steps)
    return 0.5 * (1.0 + math.cos(math.pi * progress))


# %%
def train_epoch(model, loader, criterion, optimizer, scheduler, device):
    model.train(True)
    totals = torch.zeros(3, dtype=torch.float64)
    for x, y in loader:
        x, y = x.to(device), y.to(device)
        logits = model(x)
        loss = criterion(logits, y)
        grads = torch.autograd.grad(loss, [p for p in model.parameters() if p.requires_grad], allow_unused=True)
        for p, g in zip((p for p in model.parameters() if p.requires_grad), grads):
            p.grad = g
        optimizer.step()
        scheduler and scheduler.step()
        hits = (logits.detach().argmax(-1) == y).sum()
        totals += torch.tensor([loss.item() * len(y), hits.item(), len(y)], dtype=torch.float64)
    loss_sum, hit_sum, count = totals.tolist()
    return loss_sum / count, hit_sum / count


# %%
@torch.inference_mode()
def evaluate(model, loader, criterion, device):
    model.train(False)
    found = {"targets": [], "predictions": [], "probabilities": []}
    weighted, n = 0.0, 0
    for batch in loader:
        images, labels = (part.to(device) for part in batch)
        logits = model(images)
        weighted += criterion(logits, labels).item() * images.shape[0]
        n += images.shape[0]
        probabilities = logits.log_softmax(1).exp()
        for name, value in zip(found, (labels, logits.argmax(1), probabilities)):
            found[name].extend(value.tolist())
    found = {name: torch.tensor(values) for name, values in found.items()}
    hits = int(torch.count_nonzero(found["targets"] == found["predictions"]))
    return {"loss": weighted / n, "accuracy": hits / n} | found


# %%
def fit(model, loaders, epochs, device):
    model.to(device)
    steps = epochs * len(loaders["train"])
    loss_of = nn.CrossEntropyLoss(label_smoothing=0.05)
    optimizer = optim.AdamW(model.parameters(), lr=1.5e-3, weight_decay=0.05)
    schedule = optim.lr_scheduler.LambdaLR(optimizer, lambda step: warmup_cosine(step, steps // 8, steps))

    def one_epoch():
        return train_epoch(model, loaders["train"], loss_of, optimizer, schedule, device)

    def measured():
        found = evaluate(model, loaders["validation"], loss_of, device)
        return found["loss"], found["accuracy"]

    def keeper():
        best, kept = -math.inf, {}

        def see(accuracy):
            nonlocal best, kept
            if accuracy > best:
                best, kept = accuracy, {name: w.detach().clone() for name, w in model.state_dict().items()}

        def put_back():
            if kept:
                model.load_state_dict(kept)

        return see, put_back

    see, put_back = keeper()
    history = []
    for _ in range(epochs):
        trained, validated = one_epoch(), measured()
        history.append({"training": trained, "validation": validated})
        see(validated[1])
    put_back()
    return history


# %% [markdown]
# ## Measures

# %%
def classification_metrics(targets, probabilities):
    y, p = np.asarray(targets, dtype=int), np.asarray(probabilities)
    n, classes = p.shape
    guess = p.argmax(axis=1)
    confusion = np.zeros((classes, classes), dtype=int)
    np.add.at(confusion, (y, guess), 1)

    def over(a, b):
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.nan_to_num(a / b, nan=0.0)

    def auc(k):
        sign = np.sign(p[y == k, k][:, None] - p[y != k, k])
        return (1 + sign.mean()) / 2 if sign.size else np.nan

    def mean(values, weights):
        use = (support > 0) & ~np.isnan(values)
        return float((values[use] * weights[use]).sum() / weights[use].sum()) if use.any() else float("nan")

    support, right = confusion.sum(axis=1), np.diagonal(confusion)
    found = {"confusion": confusion, "support": support, "accuracy": float(right.sum() / n)}
    found["precision"], found["recall"] = over(right, confusion.sum(axis=0)), over(right, support)
    found["f1"] = over(2 * found["precision"] * found["recall"], found["precision"] + found["recall"])
    found["roc_auc"] = np.array([auc(k) for k in range(classes)])
    for name in ("precision", "recall", "f1", "roc_auc"):
        found["macro_" + name] = mean(found[name], np.ones(classes))
        found["weighted_" + name] = mean(found[name], support)
    return found


# %%
def export_metrics(metrics, path):
    rows = []

    def add(name, value):
        if isinstance(value, dict):
            for key, inner in value.items():
                add(f"{name}.{key}" if name else str(key), inner)
        elif np.ndim(value) == 0:
            rows.append([name, float(value)])
        elif np.ndim(value) == 1:
            for i, number in enumerate(value):
                add(f"{name}.{i}", number)

    add("", metrics)
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["metric", "value"])
        writer.writerows(rows)


# %% [markdown]
# ## Pictures

# %%
def plot_learning_curves(history):
    fig, axes = plt.subplots(2, 1, sharex=True, figsize=(6, 7))
    epochs = np.arange(len(history)) + 1

    def draw(ax, column, name):
        for part in ("training", "validation"):
            ax.plot(epochs, [row[part][column] for row in history], "o-", label=f"{part} {name}")
        ax.set_xlabel("epoch")
        ax.set_ylabel(name)
        ax.legend()

    draw(axes[0], 0, "loss")
    draw(axes[1], 1, "accuracy")
    return fig


# %%
def plot_confusion_matrix(matrix, class_names):
    matrix = np.asarray(matrix)
    figure, ax = plt.subplots(figsize=(7, 7))
    ax.matshow(matrix, cmap="viridis")
    for (row, column), count in np.ndenumerate(matrix):
        ax.annotate(f"{count:.0f}", (column, row), ha="center", va="center", color="red")
    ticks = np.arange(len(class_names))
    ax.set_xticks(ticks, labels=class_names, rotation=90)
    ax.set_yticks(ticks, labels=class_names)
    ax.xaxis.set_ticks_position("bottom")
    ax.set(xlabel="predicted", ylabel="true")
    return figure


# %%
def plot_roc(targets, probabilities, class_names):
    t, p = np.asarray(targets), np.asarray(probabilities)
    fig, ax = plt.subplots()

    def curve(scores, positive):
        order = np.argsort(-scores, kind="stable")
        ends = np.append(np.diff(scores[order]) != 0, True)  # only where the score changes
        hits, misses = np.cumsum(positive[order])[ends], np.cumsum(~positive[order])[ends]
        return np.insert(misses / misses[-1], 0, 0.0), np.insert(hits / hits[-1], 0, 0.0)

    for k, name in enumerate(class_names):
        if 0 < (t == k).sum() < len(t):
            ax.plot(*curve(p[:, k], t == k), label=name)
    ax.set(xlabel="false positives", ylabel="true positives", title="ROC")
    ax.legend(fontsize="small", loc="lower right")
    return fig


# %%
def as_it_was(image, mean, std):
    image = np.moveaxis(np.asarray(image.cpu()), 0, -1)
    return np.clip(image * np.asarray(std) + np.asarray(mean), 0, 1)


def plot_attention(model, images, labels, class_names, mean, std):
    """A column for each image."""
    figure, axes = plt.subplots(3, len(images), figsize=(2.2 * len(images), 6.6), squeeze=False)
    for column, image, label in zip(axes.T, images, labels):
        shown, seen = as_it_was(image, mean, std), np.asarray(attention_map(model, image))
        column[0].imshow(shown)
        column[0].set_title(class_names[int(label)])
        column[1].imshow(seen, vmin=0, vmax=1, cmap="magma")
        column[2].imshow(shown)
        column[2].imshow(seen, vmin=0, vmax=1, cmap="magma", alpha=0.6)
        [ax.set_axis_off() for ax in column]
    return figure


# %%
def plot_top3(images, labels, probabilities, class_names, mean, std):
    """Below each image there are bars for its three likeliest classes."""
    p = np.asarray(probabilities, dtype=float)
    figure, axes = plt.subplots(2, len(images), figsize=(2.8 * len(images), 5), squeeze=False)
    for (above, below), image, label, row in zip(axes.T, images, labels, p):
        above.imshow(as_it_was(image, mean, std))
        above.set_title(f"true: {class_names[int(label)]}")
        above.set_axis_off()
        top = np.argsort(-row, kind="stable")[:3]
        below.barh([f"{class_names[k]} {row[k]:.2f}" for k in top], row[top])
        below.invert_yaxis()
        below.set_xlim(0, 1)
        below.set_xlabel("probability")
    figure.tight_layout()
    return figure


# %% [markdown]
# ## Train both models

# %%
VIT_EPOCHS, RESNET_EPOCHS = 10, 8

vit = VisionTransformer(dim=64, depth=4, heads=4, mlp_ratio=2.0, dropout=0.0, num_classes=len(class_names))
vit_history = fit(vit, loaders, VIT_EPOCHS, device)
torch.save(vit.state_dict(), f"{STUDENT_ID}_CIFAR10_vit.pth")

# %%
resnet = ResNet18(num_classes=len(class_names), width=16)
resnet_history = fit(resnet, loaders, RESNET_EPOCHS, device)
torch.save(resnet.state_dict(), f"{STUDENT_ID}_CIFAR10_resnet.pth")

# %% [markdown]
# ## Compare them

# %%
criterion = nn.CrossEntropyLoss()
measures = {}
for name, model, history in [("vit", vit, vit_history), ("resnet", resnet, resnet_history)]:
    found = evaluate(model, test_loader, criterion, device)
    measures[name] = classification_metrics(found["targets"], found["probabilities"])
    print(name, f"{found['accuracy']:.4f}", parameter_table(model))
    plot_learning_curves(history)
    plot_confusion_matrix(measures[name]["confusion"], class_names)
    plot_roc(found["targets"], found["probabilities"], class_names)
export_metrics(measures, f"{STUDENT_ID}_metrics.csv")

# %%
images, labels = next(iter(test_loader))
images, labels = images[:6], labels[:6]
plot_attention(vit, images, labels, class_names, MEAN, STD)
with torch.no_grad():
    found = vit.eval()(images.to(device)).softmax(dim=1).cpu()
plot_top3(images, labels, found, class_names, MEAN, STD)

# %% [markdown]
# ## Study

# %%
RUN_STUDY = False  # the table is there
BASE = {
    "patch_size": 8, "dim": 48, "depth": 2, "heads": 4, "mlp_ratio": 2.0, "positions": "learned", "epochs": 4,
}
CHANGES = [{"patch_size": 4}, {"dim": 64}, {"depth": 3}, {"heads": 2}, {"mlp_ratio": 4.0}, {"positions": "sinusoidal"}]


def trained_row(values, seed):
    torch.manual_seed(seed)
    sizes = {name: value for name, value in values.items() if name != "epochs"}
    model = VisionTransformer(**sizes, dropout=0.0, num_classes=len(class_names))
    parameters = sum(weights.numel() for weights in model.parameters())
    fit(model, loaders, values["epochs"], device)
    found = evaluate(model, loaders["validation"], criterion, device)
    return {
        **values,
        "seed": seed,
        "parameters": parameters,
        "validation_accuracy": round(float(found["accuracy"]), 4),
    }


if RUN_STUDY:
    rows = [trained_row(BASE, seed) for seed in (0, 1, 2)]
    rows += [trained_row({**BASE, **change}, 0) for change in CHANGES]
    with open(f"{STUDENT_ID}_study.csv", "w", newline="") as file:
        table = csv.DictWriter(file, list(rows[0]))
        table.writeheader()
        table.writerows(rows)
