# Steel defects with a Vision Transformer.
# 我习惯先写公式，再写代码：每个权重都是一个有名字的张量，每一步都是一个 einsum。
#
#   b batch   n, m tokens (query, key)   d dim   h head   e dim_head   f hidden of the feed-forward part
import math
import random
import shutil
import time
import zipfile
from pathlib import Path

import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F
from torch import einsum, nn, optim
from torch.utils.data import DataLoader
from torchvision import datasets, transforms

STUDENT_ID = "402203377"
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(42)

# ---------------------------------------------------------------- 数据


def find_class_folders(root):
    folders = [path for path in root.iterdir() if path.is_dir() and path.name != "__MACOSX"]
    return find_class_folders(folders[0]) if len(folders) == 1 else root


def split_dataset(source, destination, train_share=0.7, seed=42):
    shutil.rmtree(destination, ignore_errors=True)
    for class_folder in sorted(path for path in source.iterdir() if path.is_dir()):
        names = sorted(p.name for p in class_folder.iterdir() if p.suffix.lower() in (".jpg", ".png", ".bmp"))
        random.Random(seed).shuffle(names)
        n_train = round(train_share * len(names))
        for part, chosen in (("train", names[:n_train]), ("test", names[n_train:])):
            folder = destination / part / class_folder.name
            folder.mkdir(parents=True)
            for name in chosen:
                shutil.copy(class_folder / name, folder / name)


with zipfile.ZipFile("dataset.zip") as archive:
    archive.extractall("dataset")
split_dataset(find_class_folders(Path("dataset")), Path("data"))

transform = transforms.Compose(
    [
        transforms.Resize((28, 28)),
        transforms.Grayscale(num_output_channels=1),
        transforms.ToTensor(),
        transforms.Normalize((0.5,), (0.5,)),
    ]
)
train_transform = transforms.Compose(
    [
        *transform.transforms,
        transforms.RandomHorizontalFlip(p=0.5),
        transforms.RandomVerticalFlip(p=0.5),
        transforms.RandomErasing(p=0.2, scale=(0.02, 0.1), value=0),
    ]
)

BATCH_SIZE = 40
train_set = datasets.ImageFolder("data/train", transform=train_transform)
test_set = datasets.ImageFolder("data/test", transform=transform)
train_loader = DataLoader(train_set, batch_size=BATCH_SIZE, shuffle=True, drop_last=False)
test_loader = DataLoader(test_set, batch_size=BATCH_SIZE, shuffle=False)
class_names = train_set.classes
print(f"{len(train_set)} training images, {len(test_set)} test images, classes: {class_names}")


def show_samples(dataset, title, per_class=6):
    rows = []
    for label in range(len(dataset.classes)):
        mine = [i for i, t in enumerate(dataset.targets) if t == label][:per_class]
        rows.append(torch.stack([dataset[i][0][0] for i in mine]))
    fig, axes = plt.subplots(len(rows), 1, figsize=(per_class * 1.5, 1.7 * len(rows)))
    for ax, row, name in zip(axes, rows, dataset.classes):
        ax.imshow(einsum("kyx->ykx", row).reshape(28, -1), cmap="gray", vmin=-1, vmax=1)
        ax.set_title(name, fontsize=9, loc="left")
        ax.axis("off")
    fig.suptitle(title)
    plt.show()


show_samples(train_set, "Training images")
show_samples(test_set, "Test images")

# ---------------------------------------------------------------- 模型


def weight(*shape, fan_in):
    """正态初始化，方差 1 / fan_in。"""
    return nn.Parameter(torch.randn(*shape) / math.sqrt(fan_in))


def zeros(*shape):
    return nn.Parameter(torch.zeros(*shape))


def drop(x, share, training):
    return F.dropout(x, p=share, training=training)


class PreNorm(nn.Module):
    """先归一化，再做 fn；残差在 Transformer 里加。"""

    def __init__(self, dim, fn):
        super().__init__()
        self.norm = nn.ParameterDict({"gamma": torch.ones(dim), "beta": torch.zeros(dim)})
        self.fn = fn

    def forward(self, x, **kwargs):
        gamma, beta = self.norm["gamma"], self.norm["beta"]
        return self.fn(F.layer_norm(x, gamma.shape, gamma, beta), **kwargs)


class FeedForward(nn.Module):
    """y = W2 gelu(W1 x + b1) + b2"""

    def __init__(self, dim, hidden_dim, dropout=0.0):
        super().__init__()
        self.dropout = dropout
        self.bank = nn.ParameterDict(
            {
                "W1": weight(dim, hidden_dim, fan_in=dim),
                "b1": zeros(hidden_dim),
                "W2": weight(hidden_dim, dim, fan_in=hidden_dim),
                "b2": zeros(dim),
            }
        )

    def forward(self, x):
        p = self.bank
        hidden = F.gelu(einsum("bnd,df->bnf", x, p["W1"]) + p["b1"], approximate="tanh")
        hidden = drop(hidden, self.dropout, self.training)
        out = einsum("bnf,fd->bnd", hidden, p["W2"]) + p["b2"]
        return drop(out, self.dropout, self.training)


class Attention(nn.Module):
    """每个头的权重单独放：Wq[h], Wk[h], Wv[h] 是 (dim, dim_head)，Wo[h] 是 (dim_head, dim)。

    把各头并排再乘一个大矩阵，等于各头分别乘自己的 Wo[h] 再相加。
    """

    def __init__(self, dim, heads=4, dim_head=64, dropout=0.0):
        super().__init__()
        self.dropout = dropout
        self.scale = dim_head**-0.5
        self.bank = nn.ParameterDict(
            {
                "Wq": weight(heads, dim, dim_head, fan_in=dim),
                "Wk": weight(heads, dim, dim_head, fan_in=dim),
                "Wv": weight(heads, dim, dim_head, fan_in=dim),
                "Wo": weight(heads, dim_head, dim, fan_in=heads * dim_head),
                "bq": zeros(heads, dim_head),
                "bv": zeros(heads, dim_head),  # 没有 bk：它在 softmax 里会被消掉
                "bo": zeros(dim),
            }
        )

    def forward(self, x):
        p = self.bank
        q = einsum("bnd,hde->bhne", x, p["Wq"]) + p["bq"][:, None]
        k = einsum("bmd,hde->bhme", x, p["Wk"])
        v = einsum("bmd,hde->bhme", x, p["Wv"]) + p["bv"][:, None]
        a = torch.softmax(einsum("bhne,bhme->bhnm", q, k) * self.scale, dim=-1)
        z = einsum("bhnm,bhme->bhne", a, v)
        return drop(einsum("bhne,hed->bnd", z, p["Wo"]) + p["bo"], self.dropout, self.training)


class Transformer(nn.Module):
    """depth 个块，每块有自己的权重。"""

    def __init__(self, dim, depth, heads, dim_head, mlp_dim, dropout=0.0):
        super().__init__()
        self.blocks = nn.ModuleDict()
        for i in range(depth):
            self.blocks[f"block{i}"] = nn.ModuleDict(
                {
                    "mix_tokens": PreNorm(dim, Attention(dim, heads, dim_head, dropout)),
                    "mix_channels": PreNorm(dim, FeedForward(dim, mlp_dim, dropout)),
                }
            )

    def forward(self, x):
        for block in self.blocks.values():
            for part in block.values():
                x = x + part(x)
        return x


class ViT(nn.Module):
    """位置是可学习的，并且分解为行与列：pos(y, x) = row[y] + col[x]；类别标记有自己的位置。"""

    def __init__(
        self,
        *,
        image_size,
        patch_size,
        num_classes,
        dim,
        depth,
        heads,
        mlp_dim,
        pool="cls",
        channels=1,
        dim_head=64,
        dropout=0.0,
        emb_dropout=0.0,
    ):
        super().__init__()
        assert image_size % patch_size == 0
        assert pool in ("cls", "mean")
        side = image_size // patch_size
        self.patch_size, self.side, self.pool, self.emb_dropout = patch_size, side, pool, emb_dropout
        self.patch = nn.ParameterDict(
            {
                "W": weight(channels, patch_size, patch_size, dim, fan_in=channels * patch_size**2),
                "b": zeros(dim),
            }
        )
        self.position = nn.ParameterDict(
            {
                "row": 0.1 * torch.randn(side, dim),
                "col": 0.1 * torch.randn(side, dim),
                "cls": 0.1 * torch.randn(dim),
            }
        )
        self.cls_token = nn.Parameter(0.1 * torch.randn(dim))
        self.encoder = Transformer(dim, depth, heads, dim_head, mlp_dim, dropout)
        self.head = nn.ParameterDict(
            {
                "gamma": torch.ones(dim),
                "beta": torch.zeros(dim),
                "W": weight(dim, num_classes, fan_in=dim),
                "b": zeros(num_classes),
            }
        )

    def forward(self, img):
        b, c = img.shape[:2]
        s, k = self.side, self.patch_size
        # (b, c, 行, 行内, 列, 列内)：不搬数据，直接收缩
        grid = einsum("bcykxl,ckld->byxd", img.reshape(b, c, s, k, s, k), self.patch["W"]) + self.patch["b"]
        grid = grid + self.position["row"][:, None] + self.position["col"][None, :]
        first = (self.cls_token + self.position["cls"]).expand(b, 1, -1)
        x = torch.cat([first, grid.flatten(1, 2)], dim=1)
        x = self.encoder(drop(x, self.emb_dropout, self.training))
        x = x[:, 0] if self.pool == "cls" else x.mean(1)
        x = F.layer_norm(x, self.head["gamma"].shape, self.head["gamma"], self.head["beta"])
        return einsum("bd,dc->bc", x, self.head["W"]) + self.head["b"]


# ---------------------------------------------------------------- 训练与评估


def where(model):
    return next(iter(model.state_dict().values()), torch.empty(0)).device


def train_epoch(model, optimizer, data_loader, loss_history):
    model.train()
    for i, (images, labels) in enumerate(data_loader):
        images, labels = images.to(where(model)), labels.to(where(model))
        optimizer.zero_grad()
        loss = F.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        if i % 100 == 0:
            loss_history.append(loss.item())
            print(f"batch {i}: loss = {loss.item():.4f}")


def evaluate(model, data_loader, loss_history):
    model.eval()
    all_nll, all_hit = [], []
    with torch.inference_mode():
        for images, labels in data_loader:
            labels = labels.to(where(model))
            logp = model(images.to(where(model))).log_softmax(-1)
            one_hot = F.one_hot(labels, logp.shape[-1]).to(logp)
            all_nll.append(-einsum("bc,bc->b", logp, one_hot))
            all_hit.append(logp.argmax(-1) == labels)
    nll, hit = torch.cat(all_nll), torch.cat(all_hit)
    loss_history.append(nll.mean().item())
    print(f"test: loss = {nll.mean():.4f}, accuracy = {hit.sum()}/{len(hit)} = {100 * hit.float().mean():.2f} %")


# ---------------------------------------------------------------- 主程序

model = ViT(
    image_size=28,
    patch_size=4,
    num_classes=6,
    channels=1,
    dim=64,
    depth=6,
    heads=4,
    mlp_dim=128,
    dim_head=32,
    dropout=0.1,
)
model.to(device)
print(f"The model has {sum(p.numel() for p in model.parameters() if p.requires_grad):,} parameters.")

# 只对矩阵做权重衰减；偏置、归一化、位置和类别标记不衰减
decay, no_decay = [], []
for name, p in model.named_parameters():
    (decay if name.split(".")[-1].startswith("W") else no_decay).append(p)
optimizer = optim.AdamW(
    [{"params": decay, "weight_decay": 0.05}, {"params": no_decay, "weight_decay": 0.0}], lr=8e-4
)
N_EPOCHS = 40
scheduler = optim.lr_scheduler.CosineAnnealingLR(optimizer, N_EPOCHS, eta_min=1e-5)

train_loss_history, test_loss_history = [], []
start = time.time()
for epoch in range(1, N_EPOCHS + 1):
    print(f"Epoch {epoch}/{N_EPOCHS}")
    train_epoch(model, optimizer, train_loader, train_loss_history)
    evaluate(model, test_loader, test_loss_history)
    scheduler.step()
print(f"Training took {time.time() - start:.1f} s.")

torch.save(model.state_dict(), f"{STUDENT_ID}.pth")
torch.save(model.state_dict(), f"{STUDENT_ID}_Lab8_Homework.pth")
model.load_state_dict(torch.load(f"{STUDENT_ID}.pth", map_location=device, weights_only=True))
evaluate(model, test_loader, [])

fig, (left, right) = plt.subplots(1, 2, figsize=(10, 4))
left.plot(train_loss_history)
left.set(title="training loss", xlabel="every 100 batches", ylabel="cross-entropy")
right.plot(test_loss_history)
right.set(title="test loss", xlabel="epoch", ylabel="cross-entropy")
plt.show()

# ---------------------------------------------------------------- 图


def answers(model, data_loader):
    """(images, true, predicted)，全部在 CPU 上。"""
    model.eval()
    parts = []
    with torch.no_grad():
        for images, labels in data_loader:
            parts.append((images.cpu(), labels.cpu(), model(images.to(where(model))).argmax(-1).cpu()))
    return tuple(torch.cat(column) for column in zip(*parts))


def plot_confusion_matrix(model, data_loader, class_names):
    _, true, predicted = answers(model, data_loader)
    c = len(class_names)
    # 混淆矩阵也是一个 einsum
    counts = einsum("bt,bp->tp", F.one_hot(true, c).float(), F.one_hot(predicted, c).float()).round().long()
    fig, ax = plt.subplots(figsize=(7, 7))
    picture = ax.matshow(counts, cmap="viridis")
    for t in range(c):
        for p in range(c):
            dark = counts[t, p] < counts.max() / 2
            ax.text(p, t, str(counts[t, p].item()), ha="center", va="center", color="white" if dark else "black")
    ax.set_xticks(range(c), class_names, rotation=45, ha="left")
    ax.set_yticks(range(c), class_names)
    ax.set_xlabel("predicted")
    ax.set_ylabel("true")
    fig.colorbar(picture, shrink=0.7)
    plt.tight_layout()
    plt.show()


def plot_classwise_predictions(model, data_loader, class_names, samples_per_class=4):
    images, true, predicted = answers(model, data_loader)
    # 每一列是一个类别
    fig, axes = plt.subplots(
        samples_per_class,
        len(class_names),
        figsize=(2.2 * len(class_names), 2.5 * samples_per_class),
        squeeze=False,
    )
    for ax in axes.ravel():
        ax.axis("off")
    for column, name in enumerate(class_names):
        for row, i in enumerate((true == column).nonzero()[:samples_per_class, 0].tolist()):
            ax = axes[row, column]
            ax.imshow((images[i] * 0.5 + 0.5).mean(0), cmap="gray", vmin=0, vmax=1)
            ok = predicted[i] == true[i]
            ax.set_title(f"T: {name}\nP: {class_names[predicted[i]]}", fontsize=8, color="black" if ok else "red")
    fig.suptitle("T = true, P = predicted")
    plt.tight_layout()
    plt.show()


plot_confusion_matrix(model, test_loader, class_names)
plot_classwise_predictions(model, test_loader, class_names)
