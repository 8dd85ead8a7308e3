# %% [markdown]
# # ViT for steel defects
#
# I wrote this on paper for MATLAB first: a token is a COLUMN, a sequence is a matrix X of size (D x N), weights
# stand on the left (W * X + b). All fixed things (patch indices, centering, pooling) are matrices computed once.
#
# Letters: B batch, N tokens, P patches, D width of a token, H heads, d width of a head, M hidden width,
# C channels, K classes, p side of a patch, S side of the image.

# %%
import math
import random
import shutil
import time
import zipfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn, optim
from torch.utils.data import DataLoader
from torchvision import datasets, transforms

STUDENT_ID = "400104092"

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
# ## 2. Data sets, loaders and a first look

# %%
transform = transforms.Compose(
    [
        transforms.Resize((28, 28)),
        transforms.Grayscale(num_output_channels=1),
        transforms.ToTensor(),
        transforms.Normalize((0.5,), (0.5,)),
    ]
)
BATCH_SIZE = 42  # 1260 / 42 = 30 ganze Pakete

train_set = datasets.ImageFolder("data/train", transform=transform)
test_set = datasets.ImageFolder("data/test", transform=transform)
train_loader = DataLoader(train_set, batch_size=BATCH_SIZE, shuffle=True)
test_loader = DataLoader(test_set, batch_size=BATCH_SIZE, shuffle=False)
class_names = train_set.classes
print(f"{len(train_set)} training images, {len(test_set)} test images, classes: {class_names}")


# %%
def show_samples(dataset, title, per_class=6):
    """Draws a grid of images: one row per class."""
    fig, axes = plt.subplots(len(dataset.classes), per_class, figsize=(1.5 * per_class, 9))
    for label, row in enumerate(axes):
        indices = [index for index, target in enumerate(dataset.targets) if target == label][:per_class]
        for ax, index in zip(row, indices, strict=False):
            ax.imshow(dataset[index][0].squeeze(0), cmap="gray", vmin=-1, vmax=1)
        for ax in row:
            ax.axis("off")
        row[0].set_title(dataset.classes[label], fontsize=9, loc="left")
    fig.suptitle(title)
    plt.show()


show_samples(train_set, "Training images")
show_samples(test_set, "Test images")

# %% [markdown]
# ## 3. The model


# %%
def randw(m, n):
    """A trainable (m x n) matrix, standard deviation 1/sqrt(n), like rand(m, n) scaled."""
    return nn.Parameter(torch.randn(m, n) / math.sqrt(n))


def zeros(m, n):
    return nn.Parameter(torch.zeros(m, n))


class PreNorm(nn.Module):
    """y = fn(g .* (x - mean) ./ std + b), the mean by the centering matrix Z = I - ones/D."""

    def __init__(self, dim, fn):
        super().__init__()
        D = dim
        self.g = nn.Parameter(torch.ones(1, D))
        self.b = zeros(1, D)
        self.register_buffer("Z", torch.eye(D) - torch.ones(D, D) / D)
        self.fn = fn

    def forward(self, x, **kwargs):
        # here a token is still a row, so Z (which is symmetric) stands on the right
        z = x @ self.Z
        v = (z * z).mean(dim=-1, keepdim=True)
        y = self.g * (z / torch.sqrt(v + 1e-5)) + self.b
        return self.fn(y, **kwargs)


class FeedForward(nn.Module):
    """Y = W2 * gelu(W1 * X + b1) + b2 for each column."""

    def __init__(self, dim, hidden_dim, dropout=0.0):
        super().__init__()
        D, M = dim, hidden_dim
        self.W1, self.b1 = randw(M, D), zeros(M, 1)
        self.W2, self.b2 = randw(D, M), zeros(D, 1)
        self.r = dropout

    def forward(self, x):
        X = x.transpose(1, 2)  # (B, D, N)
        A = self.W1 @ X + self.b1  # (B, M, N)
        A = 0.5 * A * (1 + torch.erf(A / math.sqrt(2)))  # gelu
        A = F.dropout(A, self.r, self.training)
        Y = self.W2 @ A + self.b2  # (B, D, N)
        Y = F.dropout(Y, self.r, self.training)
        return Y.transpose(1, 2)


class Attention(nn.Module):
    """For h = 1..H:  Q = Wq{h} X,  K = Wk{h} X,  V = Wv{h} X,  A = softmax_columns(K' Q / sqrt(d)),  O{h} = V A.
    Then  Y = Wo [O{1}; ...; O{H}] + bo.

    A(i, j) is how much token j looks at token i, so each COLUMN of A sums to 1.
    """

    def __init__(self, dim, heads=4, dim_head=64, dropout=0.0):
        super().__init__()
        D, H, d = dim, heads, dim_head
        self.H, self.d = H, d
        self.Wq = nn.ParameterList()
        self.Wk = nn.ParameterList()
        self.Wv = nn.ParameterList()
        for _ in range(H):
            self.Wq.append(randw(d, D))
            self.Wk.append(randw(d, D))
            self.Wv.append(randw(d, D))
        self.Wo, self.bo = randw(D, H * d), zeros(D, 1)
        self.r = dropout

    def forward(self, x):
        X = x.transpose(1, 2)  # (B, D, N)
        B, _, N = X.shape
        O = torch.empty(B, self.H * self.d, N, dtype=X.dtype, device=X.device)  # noqa: E741  (vorbelegt)
        for h in range(self.H):
            Q = self.Wq[h] @ X  # (B, d, N)
            K = self.Wk[h] @ X
            V = self.Wv[h] @ X
            S = K.transpose(1, 2) @ Q / math.sqrt(self.d)  # (B, N keys, N queries)
            E = torch.exp(S - S.max(dim=1, keepdim=True).values)
            A = E / E.sum(dim=1, keepdim=True)  # Spaltensummen = 1
            O[:, h * self.d : (h + 1) * self.d, :] = V @ A
        Y = self.Wo @ O + self.bo  # (B, D, N)
        Y = F.dropout(Y, self.r, self.training)
        return Y.transpose(1, 2)


class Transformer(nn.Module):
    """for l = 1..L:  x = x + a{l}(x);  x = x + f{l}(x);"""

    def __init__(self, dim, depth, heads, dim_head, mlp_dim, dropout=0.0):
        super().__init__()
        self.L = depth
        self.a = nn.ModuleList()
        self.f = nn.ModuleList()
        for _ in range(depth):
            self.a.append(PreNorm(dim, Attention(dim, heads, dim_head, dropout)))
            self.f.append(PreNorm(dim, FeedForward(dim, mlp_dim, dropout)))

    def forward(self, x):
        for l in range(self.L):  # noqa: E741
            x = x + self.a[l](x)
            x = x + self.f[l](x)
        return x


def patch_indices(S, p, C):
    """(C*p*p x P): which pixels of an image written as ONE column belong to which patch (as im2col, 'distinct').

    Pixel (c, i, j) of a (C, S, S) image is at place (c*S + i)*S + j of the column.
    """
    n = S // p
    I = np.zeros((C * p * p, n * n), dtype=np.int64)  # noqa: E741
    k = 0
    for a in range(n):  # Zeile des Ausschnitts
        for b in range(n):  # Spalte des Ausschnitts
            m = 0
            for c in range(C):
                for i in range(p):
                    for j in range(p):
                        I[m, k] = (c * S + a * p + i) * S + b * p + j
                        m += 1
            k += 1
    return torch.from_numpy(I)


class ViT(nn.Module):
    """scores = Wk * norm(X * w) + bk;  w picks the class token ('cls') or averages all tokens ('mean')."""

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
        S, p, C, D, K = image_size, patch_size, channels, dim, num_classes
        if S % p != 0:
            raise ValueError("patch_size must divide image_size")
        if pool not in ("cls", "mean"):
            raise ValueError("pool must be 'cls' or 'mean'")
        P = (S // p) ** 2
        N = P + 1

        self.register_buffer("I", patch_indices(S, p, C))
        self.We, self.be = randw(D, C * p * p), zeros(D, 1)  # patch projection
        self.c = nn.Parameter(0.02 * torch.randn(D, 1))  # class token, a column
        self.T = nn.Parameter(0.02 * torch.randn(D, N))  # positions, a column for each token
        self.r = emb_dropout

        self.t = Transformer(dim, depth, heads, dim_head, mlp_dim, dropout)

        w = torch.zeros(N, 1)
        if pool == "cls":
            w[0] = 1  # e1: erste Spalte auswählen
        else:
            w[:] = 1 / N
        self.register_buffer("w", w)

        self.n = nn.LayerNorm(D)
        self.Wk, self.bk = randw(K, D), zeros(K, 1)

    def forward(self, img):
        B = img.shape[0]
        x = img.reshape(B, -1)  # each image one vector, (B, C*S*S)
        R = x[:, self.I]  # (B, C*p*p, P): im2col
        X = self.We @ R + self.be  # (B, D, P)
        X = torch.cat([self.c.expand(B, -1, -1), X], dim=2)  # (B, D, N)
        X = X + self.T
        X = F.dropout(X, self.r, self.training)
        X = self.t(X.transpose(1, 2)).transpose(1, 2)  # (B, D, N)
        y = (X @ self.w)[:, :, 0]  # (B, D)
        Y = self.n(y).T  # (D, B): now the images are the columns
        return (self.Wk @ Y + self.bk).T  # (B, K)


# %% [markdown]
# ## 4. Training and evaluation


# %%
def where(model):
    for q in model.parameters():
        return q.device
    return device


def train_epoch(model, optimizer, data_loader, loss_history):
    """One pass; the loss of batch 1, 101, 201, ... is printed and appended."""
    model.train()
    k = 1  # wie in MATLAB ab 1
    for x, t in data_loader:
        x, t = x.to(where(model)), t.to(where(model))
        optimizer.zero_grad()
        s = model(x)
        e = F.cross_entropy(s, t)
        e.backward()
        optimizer.step()
        if k % 100 == 1:
            print(f"   k = {k:4d}   e = {e.item():.5f}")
            loss_history.append(e.item())
        k = k + 1


def evaluate(model, data_loader, loss_history):
    """e = sum of the losses / n,  a = correct / n."""
    model.eval()
    e, c, n = 0.0, 0, 0
    with torch.no_grad():
        for x, t in data_loader:
            x, t = x.to(where(model)), t.to(where(model))
            s = model(x)
            m, y = torch.max(s, dim=1)
            # -log softmax(s)_t = log(sum(exp(s - m))) + m - s_t
            for i in range(len(t)):
                e = e + (torch.log(torch.sum(torch.exp(s[i] - m[i]))) + m[i] - s[i, t[i]]).item()
                if y[i] == t[i]:
                    c = c + 1
                n = n + 1
    loss_history.append(e / n)
    print(f"   loss = {e / n:.5f}   accuracy = {100 * c / n:.2f} %   ({c} of {n})")
    return c / n


# %% [markdown]
# ## 5. Train, save, reload

# %%
N_EPOCHS = 40

model = ViT(image_size=28, patch_size=4, num_classes=6, channels=1, dim=64, depth=6, heads=4, mlp_dim=128, dim_head=32)
model.to(device)
print(f"The model has {sum(q.numel() for q in model.parameters() if q.requires_grad):,} parameters.")

optimizer = optim.AdamW(model.parameters(), lr=0.0008, weight_decay=0.05)

# learning rate of every epoch, computed beforehand: up for 3 epochs, then a line down to a twentieth
LR = 0.0008 * np.interp(np.arange(N_EPOCHS), [0, 3, max(N_EPOCHS - 1, 4)], [0.3, 1.0, 0.05])

# %%
train_loss_history, test_loss_history = [], []
acc = np.zeros(N_EPOCHS)
tic = time.time()
for k in range(N_EPOCHS):
    optimizer.param_groups[0]["lr"] = float(LR[k])
    print(f"Epoch {k + 1}/{N_EPOCHS}, lr = {LR[k]:.6f}")
    train_epoch(model, optimizer, train_loader, train_loss_history)
    acc[k] = evaluate(model, test_loader, test_loss_history)
toc = time.time() - tic
print(f"Training took {toc:.1f} s.")

# %%
torch.save(model.state_dict(), f"{STUDENT_ID}.pth")
torch.save(model.state_dict(), f"{STUDENT_ID}_Lab8_Homework.pth")
model.load_state_dict(torch.load(f"{STUDENT_ID}.pth", map_location=device, weights_only=True))
evaluate(model, test_loader, [])

# %%
plt.figure()
plt.subplot(3, 1, 1)
plt.plot(train_loss_history, "b.-")
plt.ylabel("training loss")
plt.grid(True)
plt.subplot(3, 1, 2)
plt.plot(test_loss_history, "r.-")
plt.ylabel("test loss")
plt.grid(True)
plt.subplot(3, 1, 3)
plt.plot(100 * acc, "k.-")
plt.ylabel("accuracy [%]")
plt.xlabel("epoch")
plt.grid(True)
plt.show()

# %% [markdown]
# ## 6. What has it learned?


# %%
def plot_confusion_matrix(model, data_loader, class_names):
    """imagesc(M) with the numbers written in: M(i, j) images of class i were taken for class j."""
    K = len(class_names)
    M = np.zeros((K, K), dtype=int)
    model.eval()
    with torch.no_grad():
        for x, t in data_loader:
            y = model(x.to(where(model))).argmax(dim=1)
            for i in range(len(t)):
                M[int(t[i]), int(y[i])] += 1

    plt.figure(figsize=(8, 7))
    plt.imshow(M, cmap="Oranges")
    for i in range(K):
        for j in range(K):
            plt.text(j, i, "%d" % M[i, j], horizontalalignment="center", verticalalignment="center")
    plt.xticks(np.arange(K), class_names, rotation=30, ha="right")
    plt.yticks(np.arange(K), class_names)
    plt.xlabel("predicted")
    plt.ylabel("true")
    plt.title("Confusion matrix, accuracy %.2f %%" % (100 * np.trace(M) / M.sum()))
    plt.tight_layout()
    plt.show()


def plot_classwise_predictions(model, data_loader, class_names, samples_per_class=4):
    """subplot(K, n, k) for k = 1 .. K*n; row i has images of the true class i."""
    K, n = len(class_names), samples_per_class
    found = np.zeros(K, dtype=int)  # wie viele je Klasse schon gezeichnet sind
    model.eval()
    plt.figure(figsize=(2.2 * n, 2.6 * K))
    for x, t in data_loader:
        if found.min() >= n:
            break
        with torch.no_grad():
            y = model(x.to(where(model))).argmax(dim=1)
        for i in range(len(t)):
            a, b = int(t[i]), int(y[i])
            if found[a] >= n:
                continue
            found[a] += 1
            k = a * n + found[a]  # subplot zählt ab 1
            plt.subplot(K, n, k)
            g = 0.5 * x[i].cpu().numpy() + 0.5
            g = np.clip(g, 0, 1)
            if g.shape[0] == 1:
                plt.imshow(g[0], cmap="gray", vmin=0, vmax=1)
            else:
                plt.imshow(np.transpose(g, (1, 2, 0)))
            plt.xticks([])
            plt.yticks([])
            if a == b:
                c = "g"
            else:
                c = "r"
            plt.title("true: " + class_names[a] + "\npredicted: " + class_names[b], color=c, fontsize=8)
    plt.tight_layout()
    plt.show()


# %%
plot_confusion_matrix(model, test_loader, class_names)
plot_classwise_predictions(model, test_loader, class_names)
