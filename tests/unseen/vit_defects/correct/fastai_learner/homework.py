# %% [markdown]
# # Steel surface defects with a ViT
#
# Organized as in fastai: a `DataBunch`, a `Learner`, callbacks, the one-cycle policy. All of it is written here;
# `train_epoch` and `evaluate` are the only places where the model is applied for training and testing, and the
# `Learner` calls them.

# %%
import math
import random
import shutil
import time
import zipfile
from functools import partial
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import torch
import torch.nn.functional as F
from sklearn.metrics import confusion_matrix
from torch import nn, optim
from torch.utils.data import DataLoader
from torchvision import datasets, transforms

STUDENT_ID = "400108643"

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(42)

# %% [markdown]
# ## 1. The data: unzip and split


# %%
def find_class_folders(root):
    """The folder that holds one folder per class: `root` itself, or a single folder inside it."""
    folders = [path for path in root.iterdir() if path.is_dir() and path.name != "__MACOSX"]
    return find_class_folders(folders[0]) if len(folders) == 1 else root


def split_dataset(source, destination, train_share=0.7, seed=42):
    """Copies source/<class>/* to destination/train/<class> and destination/test/<class>, class by class."""
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

# %% [markdown]
# ## 2. The DataBunch


# %%
class DataBunch:
    """Train and valid loader together."""

    def __init__(self, train_dl, valid_dl, classes):
        self.train_dl, self.valid_dl, self.classes = train_dl, valid_dl, classes

    @classmethod
    def from_folder(cls, path, train="train", valid="test", tfms=None, bs=64):
        path = Path(path)
        train_ds = datasets.ImageFolder(path / train, transform=tfms)
        valid_ds = datasets.ImageFolder(path / valid, transform=tfms)
        return cls(
            DataLoader(train_ds, batch_size=bs, shuffle=True),
            DataLoader(valid_ds, batch_size=bs * 2),  # pas de gradients, donc deux fois plus de place
            train_ds.classes,
        )

    @property
    def train_ds(self):
        return self.train_dl.dataset

    @property
    def valid_ds(self):
        return self.valid_dl.dataset

    @property
    def c(self):
        return len(self.classes)

    def show_batch(self, rows=4):
        xb, yb = next(iter(self.train_dl))
        fig, axs = plt.subplots(rows, rows, figsize=(2 * rows, 2 * rows))
        for ax in axs.flat:
            ax.axis("off")
        for ax, x, y in zip(axs.flat, xb, yb):
            ax.imshow(x[0], cmap="gray")
            ax.set_title(self.classes[y], fontsize=8)
        plt.show()

    def __repr__(self):
        return f"DataBunch: {len(self.train_ds)} train, {len(self.valid_ds)} valid, {self.c} classes {self.classes}"


transform = transforms.Compose(
    [
        transforms.Resize((28, 28)),
        transforms.Grayscale(num_output_channels=1),
        transforms.ToTensor(),
        transforms.Normalize((0.5,), (0.5,)),
    ]
)
BATCH_SIZE = 64

data = DataBunch.from_folder("data", tfms=transform, bs=BATCH_SIZE)
train_loader, test_loader, class_names = data.train_dl, data.valid_dl, data.classes
print(data)
data.show_batch()

# %% [markdown]
# ## 3. The model


# %%
class Module(nn.Module):
    """An nn.Module whose subclasses need not call super().__init__() (as fastai's Module)."""

    def __new__(cls, *args, **kwargs):
        self = super().__new__(cls)
        nn.Module.__init__(self)
        return self

    def __init__(self):
        pass


def lin(ni, nf, bias=True):
    layer = nn.Linear(ni, nf, bias=bias)
    nn.init.kaiming_normal_(layer.weight, a=1.0)  # variance 1/ni
    if bias:
        nn.init.zeros_(layer.bias)
    return layer


class PreNorm(Module):
    def __init__(self, dim, fn):
        self.norm, self.fn = nn.LayerNorm(dim), fn

    def forward(self, x, **kwargs):
        return self.fn(self.norm(x), **kwargs)


class FeedForward(Module):
    def __init__(self, dim, hidden_dim, dropout=0.0):
        self.layers = nn.Sequential(
            lin(dim, hidden_dim), nn.Mish(), nn.Dropout(dropout), lin(hidden_dim, dim), nn.Dropout(dropout)
        )

    def forward(self, x):
        return self.layers(x)


class Attention(Module):
    def __init__(self, dim, heads=4, dim_head=64, dropout=0.0):
        self.nh, self.dh = heads, dim_head
        self.q = lin(dim, heads * dim_head, bias=False)
        self.kv = lin(dim, heads * dim_head * 2, bias=False)
        self.out = lin(heads * dim_head, dim)
        self.drop = nn.Dropout(dropout)

    def fold(self, t):
        "bs, n, nh*dh -> bs*nh, n, dh: les têtes deviennent une partie du batch"
        bs, n, _ = t.shape
        return t.reshape(bs, n, self.nh, self.dh).transpose(1, 2).reshape(bs * self.nh, n, self.dh)

    def unfold(self, t):
        "bs*nh, n, dh -> bs, n, nh*dh"
        _, n, dh = t.shape
        return t.reshape(-1, self.nh, n, dh).transpose(1, 2).reshape(-1, n, self.nh * dh)

    def forward(self, x):
        q = self.fold(self.q(x))
        k, v = (self.fold(t) for t in self.kv(x).chunk(2, dim=-1))
        # baddbmm: beta=0 ignores its first argument, alpha is the scale
        scores = torch.baddbmm(q.new_zeros(()), q, k.transpose(1, 2), beta=0, alpha=1 / math.sqrt(self.dh))
        return self.drop(self.out(self.unfold(torch.bmm(scores.softmax(-1), v))))


class SkipConnection(Module):
    def __init__(self, *layers):
        self.body = nn.Sequential(*layers)

    def forward(self, x):
        return self.body(x) + x


class Transformer(Module):
    def __init__(self, dim, depth, heads, dim_head, mlp_dim, dropout=0.0):
        layers = []
        for _ in range(depth):
            layers += [
                SkipConnection(PreNorm(dim, Attention(dim, heads, dim_head, dropout))),
                SkipConnection(PreNorm(dim, FeedForward(dim, mlp_dim, dropout))),
            ]
        self.layers = nn.Sequential(*layers)

    def forward(self, x):
        return self.layers(x)


class ViT(Module):
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
        assert image_size % patch_size == 0, f"{patch_size} does not divide {image_size}"
        assert pool in ("cls", "mean"), pool
        self.ps, self.pool = patch_size, pool
        n_patch = (image_size // patch_size) ** 2
        self.emb = lin(channels * patch_size**2, dim)
        self.cls = nn.Parameter(torch.randn(1, 1, dim) * 0.02)
        self.pos = nn.Parameter(torch.randn(n_patch + 1, dim) * 0.02)
        self.drop = nn.Dropout(emb_dropout)
        self.body = Transformer(dim, depth, heads, dim_head, mlp_dim, dropout)
        self.head = nn.Sequential(nn.LayerNorm(dim), lin(dim, num_classes))

    def forward(self, img):
        x = F.pixel_unshuffle(img, self.ps)  # bs, c*ps*ps, rows, cols: a patch's pixels become channels
        x = self.emb(x.flatten(2).mT)
        x = torch.cat([self.cls.expand(len(x), 1, -1), x], 1)
        x = self.body(self.drop(x + self.pos))
        return self.head(x[:, 0] if self.pool == "cls" else x.mean(1))


# %% [markdown]
# ## 4. Training and evaluation


# %%
def dev(model):
    return next((p.device for p in model.parameters()), device)


def train_epoch(model, optimizer, data_loader, loss_history):
    "One pass: for each batch zero_grad, forward, loss, backward, step. Batches 1, 101, 201... are logged."
    model.train()
    for i, (xb, yb) in enumerate(data_loader):
        xb, yb = xb.to(dev(model)), yb.to(dev(model))
        optimizer.zero_grad()
        loss = F.cross_entropy(model(xb), yb)
        loss.backward()
        optimizer.step()
        if i % 100 == 0:
            print(f"  batch {i}: train loss {loss.item():.4f}")
            loss_history.append(loss.item())


def evaluate(model, data_loader, loss_history):
    "Mean loss per item, accuracy."
    model.eval()
    losses, hits = [], []
    with torch.no_grad():
        for xb, yb in data_loader:
            xb, yb = xb.to(dev(model)), yb.to(dev(model))
            preds = model(xb)
            losses.append(F.cross_entropy(preds, yb, reduction="none").cpu())
            hits.append((preds.argmax(-1) == yb).cpu())
    loss, acc = torch.cat(losses).mean().item(), torch.cat(hits).float().mean().item()
    loss_history.append(loss)
    print(f"  valid loss {loss:.4f}, accuracy {acc:.4f}")
    return loss, acc


# %% [markdown]
# ### Learner and callbacks


# %%
class Callback:
    "Gets `self.learn`; methods are named after the events."

    order = 0

    def __getattr__(self, name):  # only asked for what is not defined: events without a method do nothing
        if name.startswith(("begin_", "after_")):
            return lambda: None
        raise AttributeError(name)


class CallbackLoader:
    "Gives out the batches of `dl`, with the events before and after each. The loop around it need not know."

    def __init__(self, dl, learn):
        self.dl, self.learn = dl, learn

    def __len__(self):
        return len(self.dl)

    def __iter__(self):
        for self.learn.xb, self.learn.yb in self.dl:
            self.learn("begin_batch")
            yield self.learn.xb, self.learn.yb
            self.learn("after_batch")
            self.learn.n_iter += 1


class Learner:
    def __init__(self, data, model, opt, cbs=()):
        self.data, self.model, self.opt, self.cbs = data, model, opt, list(cbs)
        self.train_losses, self.valid_losses, self.accs = [], [], []

    def __call__(self, event):
        for cb in sorted(self.cbs, key=lambda cb: cb.order):
            cb.learn = self
            getattr(cb, event)()

    def fit(self, n_epochs, cbs=()):
        self.cbs += list(cbs)
        self.n_epochs, self.n_iter = n_epochs, 0
        self.total_iters = n_epochs * len(self.data.train_dl)
        try:
            self("begin_fit")
            for self.epoch in range(n_epochs):
                print(f"epoch {self.epoch + 1}/{n_epochs}")
                self("begin_epoch")
                train_epoch(self.model, self.opt, CallbackLoader(self.data.train_dl, self), self.train_losses)
                self("begin_validate")
                _, acc = evaluate(self.model, self.data.valid_dl, self.valid_losses)
                self.accs.append(acc)
                self("after_epoch")
            self("after_fit")
        finally:
            for cb in cbs:
                self.cbs.remove(cb)

    def fit_one_cycle(self, n_epochs, lr_max, pct_start=0.25, div=25.0, div_final=1e4):
        lr = combine_scheds(
            [pct_start, 1 - pct_start], [partial(cos, lr_max / div, lr_max), partial(cos, lr_max, lr_max / div_final)]
        )
        beta = combine_scheds([pct_start, 1 - pct_start], [partial(cos, 0.95, 0.85), partial(cos, 0.85, 0.95)])
        self.fit(n_epochs, [ParamScheduler(lr, beta)])


def cos(start, end, pos):
    "From `start` (pos=0) to `end` (pos=1) along half a cosine."
    return start + (1 + math.cos(math.pi * (1 - pos))) * (end - start) / 2


def combine_scheds(pcts, scheds):
    borders = np.cumsum([0.0, *pcts])

    def at(pos):
        i = min(int(np.searchsorted(borders, pos, side="right")) - 1, len(scheds) - 1)
        return scheds[i]((pos - borders[i]) / pcts[i])

    return at


class ParamScheduler(Callback):
    "Sets learning rate and momentum before each batch, and puts back at the end what was there."

    def __init__(self, lr, beta):
        self.lr, self.beta = lr, beta

    def begin_fit(self):
        self.before = [(g["lr"], g["betas"]) for g in self.learn.opt.param_groups]
        self.lrs = []

    def begin_batch(self):
        pos = min(self.learn.n_iter / max(1, self.learn.total_iters - 1), 1.0)
        for g in self.learn.opt.param_groups:
            g["lr"], g["betas"] = self.lr(pos), (self.beta(pos), g["betas"][1])
        self.lrs.append(self.lr(pos))

    def after_fit(self):
        for g, (lr, betas) in zip(self.learn.opt.param_groups, self.before):
            g["lr"], g["betas"] = lr, betas


class Dihedral(Callback):
    "Each batch of training images is mirrored and turned at random: one of the 8 symmetries of the square."

    def begin_batch(self):
        xb = self.learn.xb
        if torch.rand(()) < 0.5:
            xb = xb.flip(-1)
        self.learn.xb = torch.rot90(xb, int(torch.randint(4, ())), (-2, -1))


# %% [markdown]
# ## 5. Train, save, reload

# %%
LR = 1e-3
N_EPOCHS = 55

model = ViT(
    image_size=28, patch_size=4, num_classes=data.c, channels=1, dim=64, depth=6, heads=4, mlp_dim=128, dim_head=32, dropout=0.1
)
model.to(device)
print(f"{sum(p.numel() for p in model.parameters()):,} parameters")

optimizer = optim.AdamW(model.parameters(), lr=LR, weight_decay=0.01)
learn = Learner(data, model, optimizer, cbs=[Dihedral()])

# %%
start = time.time()
learn.fit_one_cycle(N_EPOCHS, lr_max=2 * LR)
print(f"Training took {time.time() - start:.1f} s.")

# %%
torch.save(model.state_dict(), f"{STUDENT_ID}.pth")
torch.save(model.state_dict(), f"{STUDENT_ID}_Lab8_Homework.pth")
model.load_state_dict(torch.load(f"{STUDENT_ID}.pth", map_location=device, weights_only=True))
evaluate(model, test_loader, [])

# %%
fig, axs = plt.subplots(1, 2, figsize=(10, 3.5))
axs[0].plot(learn.train_losses, label="train")
axs[0].plot(learn.valid_losses, label="valid")
axs[0].legend()
axs[1].plot(learn.accs)
axs[1].set_title("accuracy")
plt.show()


# %% [markdown]
# ## 6. What has it learned?


# %%
class Interpretation:
    "Images, targets and predictions of a whole loader."

    def __init__(self, model, dl, classes):
        self.classes = classes
        model.eval()
        xs, ys, ps = [], [], []
        with torch.no_grad():
            for xb, yb in dl:
                xs.append(xb.cpu())
                ys.append(yb.cpu())
                ps.append(model(xb.to(dev(model))).argmax(-1).cpu())
        self.x, self.y, self.pred = torch.cat(xs), torch.cat(ys), torch.cat(ps)

    def plot_confusion_matrix(self, cmap="Blues"):
        n = len(self.classes)
        cm = confusion_matrix(self.y.numpy(), self.pred.numpy(), labels=list(range(n)))
        fig = plt.figure(figsize=(7, 7))
        plt.imshow(cm, interpolation="nearest", cmap=cmap)
        plt.title("Confusion matrix")
        plt.xticks(range(n), self.classes, rotation=90)
        plt.yticks(range(n), self.classes)
        thresh = cm.max() / 2
        for i in range(n):
            for j in range(n):
                plt.text(j, i, f"{cm[i, j]}", ha="center", va="center", color="white" if cm[i, j] > thresh else "black")
        plt.ylabel("Actual")
        plt.xlabel("Predicted")
        fig.tight_layout()
        plt.show()

    def show_results(self, per_class):
        n = len(self.classes)
        fig, axs = plt.subplots(n, per_class, figsize=(2.2 * per_class, 2.5 * n), squeeze=False)
        for label in range(n):
            idxs = (self.y == label).nonzero().flatten()[:per_class].tolist()
            for col, ax in enumerate(axs[label]):
                ax.axis("off")
                if col >= len(idxs):
                    continue
                x, pred = self.x[idxs[col]] * 0.5 + 0.5, self.pred[idxs[col]].item()
                x = x.clamp(0, 1).permute(1, 2, 0)
                ax.imshow(x.squeeze(-1).numpy(), cmap="gray", vmin=0, vmax=1)
                ax.set_title(
                    f"Actual: {self.classes[label]}\nPredicted: {self.classes[pred]}",
                    fontsize=8,
                    color="green" if pred == label else "red",
                )
        fig.tight_layout()
        plt.show()


def plot_confusion_matrix(model, data_loader, class_names):
    "Rows are the true classes."
    Interpretation(model, data_loader, class_names).plot_confusion_matrix()


def plot_classwise_predictions(model, data_loader, class_names, samples_per_class=4):
    "A row for each true class."
    Interpretation(model, data_loader, class_names).show_results(samples_per_class)


# %%
plot_confusion_matrix(model, test_loader, class_names)
plot_classwise_predictions(model, test_loader, class_names)
