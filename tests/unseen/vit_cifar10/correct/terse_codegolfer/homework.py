import copy, csv, math, zipfile
import matplotlib.pyplot as plt, numpy as np, torch, torch.nn.functional as F
from einops.layers.torch import Rearrange as R
from torch import einsum, nn, optim
from torch.utils.data import DataLoader, Subset
from torchvision import datasets, transforms as T

ID, MEAN, STD = "400102901", (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)
device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(42)

# data
zipfile.ZipFile("dataset.zip").extractall("data")
plain = T.Compose([T.ToTensor(), T.Normalize(MEAN, STD)])
aug, val, test = (
    datasets.ImageFolder(f"data/{d}", t)
    for d, t in [("train", T.Compose([T.RandomCrop(32, 4), T.RandomHorizontalFlip(), plain])), ("train", plain), ("test", plain)]
)
class_names, order = test.classes, torch.randperm(len(val), generator=torch.Generator().manual_seed(42)).tolist()
k = len(order) // 10
loaders = {"train": DataLoader(Subset(aug, order[k:]), 64, True), "validation": DataLoader(Subset(val, order[:k]), 250)}
test_loader = DataLoader(test, 250)


# vit
class PatchEmbedding(nn.Sequential):
    def __init__(s, image_size, patch_size, in_channels, dim):
        super().__init__(nn.Conv2d(in_channels, dim, patch_size, patch_size), R("b d h w -> b (h w) d"))


def sinusoidal_positions(tokens, dim):
    a = torch.outer(torch.arange(tokens).float(), 1e4 ** (-torch.arange(0, dim, 2) / dim))
    return torch.stack([a.sin(), a.cos()], -1).flatten(1)


class MultiHeadSelfAttention(nn.Module):
    def __init__(s, dim, heads, dropout=0.0):
        super().__init__()
        s.qkv = nn.Sequential(nn.Linear(dim, 3 * dim, False), R("b n (t h d) -> t b h n d", t=3, h=heads))
        s.drop, s.out = nn.Dropout(dropout), nn.Sequential(R("b h n d -> b n (h d)"), nn.Linear(dim, dim))

    def forward(s, x, return_weights=False):
        q, k, v = s.qkv(x)
        w = (einsum("bhid,bhjd->bhij", q, k) / q.shape[-1] ** 0.5).softmax(-1)
        y = s.out(einsum("bhij,bhjd->bhid", s.drop(w), v))
        return (y, w) if return_weights else y


class EncoderBlock(nn.Module):
    def __init__(s, dim, heads, mlp_ratio=4.0, dropout=0.0):
        super().__init__()
        h, d = int(dim * mlp_ratio), nn.Dropout(dropout)
        s.norm, s.att = nn.LayerNorm(dim), MultiHeadSelfAttention(dim, heads, dropout)
        s.mlp = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, h), nn.GELU(), d, nn.Linear(h, dim), d)

    def forward(s, x):
        return (x := x + s.att(s.norm(x))) + s.mlp(x)


class VisionTransformer(nn.Module):
    def __init__(s, image_size=32, patch_size=4, in_channels=3, num_classes=10, dim=192, depth=9, heads=8,
                 mlp_ratio=4.0, dropout=0.1, positions="learned", pool="cls"):  # fmt: skip
        super().__init__()
        n, p = (image_size // patch_size) ** 2 + (c := pool == "cls"), lambda n: nn.Parameter(torch.randn(n, dim) / 50)
        s.cls = p(1) if c else None
        s.pos = p(n) if positions == "learned" else nn.Buffer(sinusoidal_positions(n, dim))
        s.patches, s.drop = PatchEmbedding(image_size, patch_size, in_channels, dim), nn.Dropout(dropout)
        s.blocks = nn.Sequential(*(EncoderBlock(dim, heads, mlp_ratio, dropout) for _ in range(depth)))
        s.norm, s.head = nn.LayerNorm(dim), nn.Linear(dim, num_classes)

    def embed(s, x):
        x = s.patches(x)
        return s.drop((x if s.cls is None else torch.cat([s.cls.expand(len(x), 1, -1), x], 1)) + s.pos)

    def forward(s, images):
        x = s.norm(s.blocks(s.embed(images)))
        return s.head(x.mean(1) if s.cls is None else x[:, 0])

    def attention(s, images):
        return (b := s.blocks[-1]).att(b.norm(s.blocks[:-1](s.embed(images))), True)[1]


@torch.no_grad()
def attention_map(model, image):
    mode, d = model.training, next(model.parameters(), image).device
    w = model.eval().attention(image[None].to(d))[0].mean(0).cpu()
    model.train(mode)
    a = w.mean(0) if (s := math.isqrt(n := len(w))) ** 2 == n else w[0, 1:]
    return F.interpolate((a / a.max().clamp(1e-30)).reshape(1, 1, s, s), image.shape[1:])[0, 0]


# resnet
cb = lambda i, o, k=3, s=1: [nn.Conv2d(i, o, k, s, k // 2, bias=False), nn.BatchNorm2d(o)]


class BasicBlock(nn.Module):
    def __init__(s, in_channels, channels, stride=1):
        super().__init__()
        s.f = nn.Sequential(*cb(in_channels, channels, 3, stride), nn.ReLU(), *cb(channels, channels))
        s.g = nn.Sequential(*cb(in_channels, channels, 1, stride) if (in_channels, 1) != (channels, stride) else [])

    def forward(s, x):
        return (s.f(x) + s.g(x)).relu()


class ResNet18(nn.Sequential):
    def __init__(s, num_classes=10, width=64):
        w = [width, width, 2 * width, 4 * width, 8 * width]
        blocks = [b for i, o in zip(w, w[1:]) for b in (BasicBlock(i, o, o // i), BasicBlock(o, o))]
        super().__init__(*cb(3, width), nn.ReLU(), *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(w[-1], num_classes))


parameter_table = lambda model: [(n, p.numel()) for n, p in model.named_parameters()]

# training
warmup_cosine = lambda step, warmup_steps, total_steps: (
    step / warmup_steps if step < warmup_steps
    else (1 + math.cos(math.pi * min(1, (step - warmup_steps) / max(1, total_steps - warmup_steps)))) / 2
)  # fmt: skip


def train_epoch(model, loader, criterion, optimizer, scheduler, device):
    model.train()
    s = np.zeros(3)
    for x, y in loader:
        y = y.to(device)
        optimizer.zero_grad()
        (l := criterion(o := model(x.to(device)), y)).backward()
        optimizer.step()
        scheduler and scheduler.step()
        s += l.item() * (b := len(y)), (o.argmax(1) == y).sum().item(), b
    return tuple((s[:2] / s[2]).tolist())


@torch.no_grad()
def evaluate(model, loader, criterion, device):
    model.eval()
    o, y = map(torch.cat, zip(*((model(x.to(device)), y.to(device)) for x, y in loader)))
    l, (o, y) = criterion(o, y).item(), (o.cpu(), y.cpu())
    return dict(loss=l, accuracy=((p := o.argmax(1)) == y).double().mean().item(), targets=y, predictions=p, probabilities=o.softmax(1))


def fit(model, loaders, epochs, device):
    n, c, best, history = epochs * len(loaders["train"]), nn.CrossEntropyLoss(), (-1, None), []
    o = optim.AdamW(model.to(device).parameters(), 1e-3, weight_decay=0.05)
    s = optim.lr_scheduler.LambdaLR(o, lambda i: warmup_cosine(i, n // 10, n))
    for _ in range(epochs):
        t = train_epoch(model, loaders["train"], c, o, s, device)
        v = evaluate(model, loaders["validation"], c, device)
        history += [(*t, v["loss"], v["accuracy"])]
        best = max(best, (v["accuracy"], copy.deepcopy(model.state_dict())), key=lambda b: b[0])  # max: first of equals
        print(len(history), *(f"{h:.3f}" for h in history[-1]))
    model.load_state_dict(best[1])
    return history


# metrics
def classification_metrics(targets, probabilities):
    y, p = np.asarray(targets), np.asarray(probabilities)
    C, nan = p.shape[1], float("nan")
    E = np.eye(C, dtype=int)
    m = E[y].T @ E[p.argmax(1)]
    tp, s, q = m.diagonal(), m.sum(1), m.sum(0)
    d = lambda a, b: a / np.where(b, b, 1)
    pairs = [(p[y == c, c][:, None], p[y != c, c]) for c in range(C)]
    v = {
        "precision": d(tp, q), "recall": d(tp, s), "f1": d(2 * tp, s + q),
        "roc_auc": np.array([((a > b).mean() + (a >= b).mean()) / 2 if a.size and b.size else nan for a, b in pairs]),
    }  # fmt: skip
    mean = lambda x, w: (w * x)[k].sum() / w[k].sum() if (k := (s > 0) & (x == x)).any() else nan
    means = {f"{n}_{k}": float(mean(x, w)) for n, w in [("macro", s > 0), ("weighted", s)] for k, x in v.items()}
    return {"confusion": m, "support": s, "accuracy": float(tp.sum() / s.sum())} | v | means


def flat(v, *k):
    if (d := isinstance(v, dict)) or np.ndim(v) == 1:
        return [r for n, w in (v.items() if d else enumerate(v)) for r in flat(w, *k, str(n))]
    return [] if np.ndim(v) else [(".".join(k), float(v))]


def export_metrics(metrics, path):
    with open(path, "w", newline="") as f:
        csv.writer(f).writerows([("metric", "value"), *flat(metrics)])


# plots
pics = lambda x, m, s: [(i.cpu() * torch.tensor(s)[:, None, None] + torch.tensor(m)[:, None, None]).clip(0, 1).permute(1, 2, 0) for i in x]


def plot_learning_curves(history):
    f, axes = plt.subplots(1, 2, figsize=(9, 3))
    for a, i, n in zip(axes, (0, 1), ("loss", "accuracy")):
        [a.plot(range(1, len(history) + 1), [h[i + j] for h in history], label=l) for j, l in ((0, "training"), (2, "validation"))]
        a.set(xlabel="epoch", ylabel=n), a.legend()
    return f


def plot_confusion_matrix(matrix, class_names):
    m, r = np.asarray(matrix), range(len(class_names))
    f, a = plt.subplots(figsize=(7, 7))
    a.imshow(m, cmap="Blues"), a.set(xlabel="predicted", ylabel="true")
    a.set_xticks(r, class_names, rotation=90), a.set_yticks(r, class_names)
    [a.text(j, i, str(int(m[i, j])), ha="center", c="wk"[int(2 * m[i, j] <= m.max())]) for i in r for j in r]
    return f


def plot_roc(targets, probabilities, class_names):
    y, p = np.asarray(targets), np.asarray(probabilities)
    f, a = plt.subplots()
    for c, n in enumerate(class_names):
        if 0 < (t := y == c).sum() < len(t):
            e = [np.inf, *np.unique(p[:, c])[::-1]]
            a.plot(*(1 - np.searchsorted(np.sort(p[u, c]), e) / u.sum() for u in (~t, t)), label=n)
    a.set(xlabel="false positive rate", ylabel="true positive rate"), a.legend()
    return f


def plot_attention(model, images, labels, class_names, mean, std):
    f, axes = plt.subplots(len(images), 3, figsize=(6, 2 * len(images)), squeeze=False)
    for (a, b, c), x, i, l in zip(axes, images, pics(images, mean, std), labels):
        m = attention_map(model, x)
        a.imshow(i), b.imshow(m), c.imshow(i), c.imshow(m, alpha=0.5, cmap="jet"), a.set_title(class_names[int(l)])
    [a.axis("off") for a in axes.flat]
    return f


def plot_top3(images, labels, probabilities, class_names, mean, std):
    f, axes = plt.subplots(1, len(images), figsize=(2.4 * len(images), 3.2), squeeze=False)
    for a, i, l, p in zip(axes[0], pics(images, mean, std), labels, torch.as_tensor(probabilities)):
        a.imshow(i), a.axis("off")
        a.set_title("\n".join([f"true: {class_names[int(l)]}", *(f"{class_names[k]} {p[k]:.2f}" for k in p.argsort(descending=True)[:3].tolist())]), fontsize=9)
    f.tight_layout()
    return f


# experiments
C = len(class_names)
models = {
    "vit": VisionTransformer(dim=96, depth=6, heads=4, mlp_ratio=2, dropout=0, num_classes=C, pool="mean"),
    "resnet": ResNet18(C, 16),
}
loss, out = nn.CrossEntropyLoss(), {}
for n, m in models.items():
    plot_learning_curves(fit(m, loaders, 15, device))
    torch.save(m.state_dict(), f"{ID}_CIFAR10_{n}.pth")
    e = evaluate(m, test_loader, loss, device)
    out[n] = classification_metrics(y := e["targets"], p := e["probabilities"])
    print(n, e["accuracy"], sum(c for _, c in parameter_table(m)))
    plot_confusion_matrix(out[n]["confusion"], class_names), plot_roc(y, p, class_names)
export_metrics(out, f"{ID}_metrics.csv")

vit = models["vit"].eval()
x, y = (t[:6] for t in next(iter(test_loader)))
plot_attention(vit, x, y, class_names, MEAN, STD)
plot_top3(x, y, vit(x.to(device)).softmax(1).detach().cpu(), class_names, MEAN, STD)

# study
if STUDY := 0:
    base = dict(patch_size=8, dim=64, depth=3, heads=4, mlp_ratio=2.0, positions="learned", epochs=5)
    change = [{"patch_size": 4}, {"dim": 96}, {"depth": 2}, {"depth": 6}, {"heads": 8}, {"mlp_ratio": 4.0}, {"positions": "sinusoidal"}]

    def row(seed, **v):
        torch.manual_seed(seed)
        m = VisionTransformer(**{k: w for k, w in v.items() if k != "epochs"}, dropout=0, num_classes=C)
        fit(m, loaders, v["epochs"], device)
        a = evaluate(m, loaders["validation"], loss, device)["accuracy"]
        return v | dict(seed=seed, parameters=sum(c for _, c in parameter_table(m)), validation_accuracy=round(a, 4))

    rows = [row(s, **base) for s in range(3)] + [row(0, **base | c) for c in change]
    with open(f"{ID}_study.csv", "w", newline="") as f:
        (w := csv.DictWriter(f, rows[0])).writeheader(), w.writerows(rows)
