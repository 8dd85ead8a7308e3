# Vision Transformer for steel defects.
# I come from C. Conventions of this file:
#   * every size is computed once, named in capitals or single letters, and asserted;
#   * results are written into buffers that were allocated beforehand, where autograd permits it
#     (a fresh buffer may be filled slice by slice; a tensor that a backward pass still needs may not be touched);
#   * no broadcasting by surprise: shapes are in the comment at the end of the line.
import math
import random
import shutil
import time
import zipfile
from pathlib import Path

import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F
from torch import nn, optim
from torch.utils.data import DataLoader
from torchvision import datasets, transforms

STUDENT_ID = "400101311"
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(42)

# ----------------------------------------------------------------------------------------------------------
# 1. data
# ----------------------------------------------------------------------------------------------------------


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

SIDE = 28
BATCH_SIZE = 32

transform = transforms.Compose(
    [
        transforms.Resize((SIDE, SIDE)),
        transforms.Grayscale(num_output_channels=1),
        transforms.ToTensor(),
        transforms.Normalize((0.5,), (0.5,)),
    ]
)
train_transform = transforms.Compose(
    [transforms.RandomHorizontalFlip(), transforms.RandomVerticalFlip(), transform]
)

train_set = datasets.ImageFolder("data/train", transform=train_transform)
test_set = datasets.ImageFolder("data/test", transform=transform)
train_loader = DataLoader(train_set, batch_size=BATCH_SIZE, shuffle=True)
test_loader = DataLoader(test_set, batch_size=BATCH_SIZE, shuffle=False)
class_names = train_set.classes
print(f"{len(train_set)} training images, {len(test_set)} test images, classes: {class_names}")


def show_samples(dataset, title, per_class=6):
    """One big canvas, (classes * SIDE) x (per_class * SIDE), into which the images are copied."""
    n_classes = len(dataset.classes)
    canvas = torch.ones(n_classes * SIDE, per_class * SIDE)
    filled = [0] * n_classes
    for index in range(len(dataset)):
        label = dataset.targets[index]
        if filled[label] == per_class:
            continue
        y0 = label * SIDE
        x0 = filled[label] * SIDE
        canvas[y0 : y0 + SIDE, x0 : x0 + SIDE] = dataset[index][0][0]
        filled[label] += 1
    plt.figure(figsize=(per_class, n_classes))
    plt.imshow(canvas, cmap="gray", vmin=-1, vmax=1)
    plt.yticks([label * SIDE + SIDE // 2 for label in range(n_classes)], dataset.classes)
    plt.xticks([])
    plt.title(title)
    plt.tight_layout()
    plt.show()


show_samples(train_set, "Training images")
show_samples(test_set, "Test images")

# ----------------------------------------------------------------------------------------------------------
# 2. model
# ----------------------------------------------------------------------------------------------------------


class PreNorm(nn.Module):
    """Layer normalization, then another module."""

    EPS = 1e-5

    def __init__(self, dim, fn):
        super().__init__()
        assert dim > 0
        self.dim = dim
        self.gain = nn.Parameter(torch.empty(dim).fill_(1.0))
        self.shift = nn.Parameter(torch.empty(dim).zero_())
        self.fn = fn

    def forward(self, x, **kwargs):
        assert x.size(-1) == self.dim, "last axis must be dim"
        y = F.layer_norm(x, (self.dim,), self.gain, self.shift, self.EPS)
        return self.fn(y, **kwargs)


class FeedForward(nn.Module):
    """Two linear layers with a ReLU between them, for each token by itself."""

    def __init__(self, dim, hidden_dim, dropout=0.0):
        super().__init__()
        self.fc1 = nn.Linear(dim, hidden_dim)
        self.fc2 = nn.Linear(hidden_dim, dim)
        self.drop1 = nn.Dropout(dropout)
        self.drop2 = nn.Dropout(dropout)

    def forward(self, x):
        h = self.fc1(x)  # a buffer of our own: fc1 does not need it for its backward pass
        F.relu_(h)
        h = self.drop1(h)
        return self.drop2(self.fc2(h))


class Attention(nn.Module):
    """Multi-head self-attention. One flat table of weights; heads are offsets into it.

    Rows of `w_qkv`:   0 .. H*D-1        queries, head 0 first
                       H*D .. 2*H*D-1    keys
                       2*H*D .. 3*H*D-1  values
    """

    def __init__(self, dim, heads=4, dim_head=64, dropout=0.0):
        super().__init__()
        assert heads > 0 and dim_head > 0
        self.dim = dim
        self.H = heads
        self.D = dim_head
        self.scale = 1.0 / math.sqrt(dim_head)
        self.w_qkv = nn.Parameter(torch.empty(3 * heads * dim_head, dim))
        self.w_out = nn.Parameter(torch.empty(dim, heads * dim_head))
        self.b_out = nn.Parameter(torch.empty(dim))
        self.drop = nn.Dropout(dropout)

        bound = math.sqrt(3.0 / dim)  # uniform with variance 1 / fan_in
        nn.init.uniform_(self.w_qkv, -bound, bound)
        bound = math.sqrt(3.0 / (heads * dim_head))
        nn.init.uniform_(self.w_out, -bound, bound)
        nn.init.zeros_(self.b_out)

    def forward(self, x):
        B, N, C = x.shape
        H, D = self.H, self.D
        assert C == self.dim
        qkv = F.linear(x, self.w_qkv)  # (B, N, 3*H*D)
        joined = torch.empty(B, N, H * D, dtype=qkv.dtype, device=qkv.device)
        for h in range(H):
            q0 = (0 * H + h) * D
            k0 = (1 * H + h) * D
            v0 = (2 * H + h) * D
            q = qkv[:, :, q0 : q0 + D]  # (B, N, D)
            k = qkv[:, :, k0 : k0 + D]  # (B, N, D)
            v = qkv[:, :, v0 : v0 + D]  # (B, N, D)
            scores = torch.bmm(q, k.transpose(1, 2))  # (B, N, N): row = query, column = key
            scores.mul_(self.scale)  # in place: bmm keeps its inputs, not its result
            weights = torch.softmax(scores, dim=2)  # NOT in place: softmax keeps its result
            joined[:, :, h * D : (h + 1) * D] = torch.bmm(weights, v)
        return self.drop(F.linear(joined, self.w_out, self.b_out))  # (B, N, C)


class Transformer(nn.Module):
    """The encoder. Struct of arrays: attn[i] and ff[i] are block i."""

    def __init__(self, dim, depth, heads, dim_head, mlp_dim, dropout=0.0):
        super().__init__()
        self.depth = depth
        self.attn = nn.ModuleList()
        self.ff = nn.ModuleList()
        i = 0
        while i < depth:
            self.attn.append(PreNorm(dim, Attention(dim, heads=heads, dim_head=dim_head, dropout=dropout)))
            self.ff.append(PreNorm(dim, FeedForward(dim, mlp_dim, dropout=dropout)))
            i += 1

    def forward(self, x):
        # `x += part(x)` is forbidden: the norm needs its x for the backward pass, and the caller owns the
        # first x. The part's result is ours, so the residual is added into that.
        for i in range(self.depth):
            y = self.attn[i](x)
            y += x
            x = y
            y = self.ff[i](x)
            y += x
            x = y
        return x


class ViT(nn.Module):
    """The Vision Transformer: an image becomes a score for every class."""

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
        assert image_size % patch_size == 0, "patch_size must divide image_size"
        assert pool == "cls" or pool == "mean"
        self.S = image_size
        self.P = patch_size
        self.G = image_size // patch_size  # patches along one side
        self.N = self.G * self.G  # patches
        self.C = channels
        self.E = dim
        self.patch_len = channels * patch_size * patch_size
        self.pool = pool

        self.proj = nn.Linear(self.patch_len, dim)
        self.cls = nn.Parameter(torch.empty(dim).normal_(0.0, 0.02))
        # the position of token t occupies pos[t*dim] .. pos[t*dim + dim - 1]
        self.pos = nn.Parameter(torch.empty((self.N + 1) * dim).normal_(0.0, 0.02))
        self.emb_drop = nn.Dropout(emb_dropout)
        self.encoder = Transformer(dim, depth, heads, dim_head, mlp_dim, dropout)
        self.head_norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, num_classes)

    def forward(self, img):
        B = img.size(0)
        G, P, N, E = self.G, self.P, self.N, self.E
        assert tuple(img.shape[1:]) == (self.C, self.S, self.S)

        # cut: patch n = gy * G + gx covers rows gy*P .. and columns gx*P ..
        patches = torch.empty(B, N, self.patch_len, dtype=img.dtype, device=img.device)
        for n in range(N):
            y0 = (n // G) * P
            x0 = (n % G) * P
            patches[:, n, :] = img[:, :, y0 : y0 + P, x0 : x0 + P].reshape(B, self.patch_len)

        projected = self.proj(patches)  # (B, N, E)
        tokens = torch.empty(B, N + 1, E, dtype=projected.dtype, device=projected.device)
        tokens[:, 0, :] = self.cls
        tokens[:, 1 : N + 1, :] = projected
        tokens += self.pos.view(N + 1, E)  # nobody has saved `tokens` yet, so in place is fine
        tokens = self.encoder(self.emb_drop(tokens))  # (B, N+1, E)

        if self.pool == "mean":
            pooled = tokens.sum(dim=1)
            pooled /= N + 1
        else:
            pooled = tokens[:, 0, :]
        return self.head(self.head_norm(pooled))  # (B, num_classes)


# ----------------------------------------------------------------------------------------------------------
# 3. training and evaluation
# ----------------------------------------------------------------------------------------------------------


def device_of(model):
    for parameter in model.parameters():
        return parameter.device
    return torch.device("cpu")


def train_epoch(model, optimizer, data_loader, loss_history):
    """One pass over the data. Logs batches 0, 100, 200, ..."""
    dev = device_of(model)
    model.train()
    i = 0
    n_seen = 0
    for images, labels in data_loader:
        images = images.to(dev)
        labels = labels.to(dev)
        optimizer.zero_grad()
        scores = model(images)
        assert scores.size(0) == labels.size(0)
        loss = F.cross_entropy(scores, labels)
        loss.backward()
        optimizer.step()
        n_seen += labels.size(0)
        if i % 100 == 0:
            value = loss.item()
            loss_history.append(value)
            print("batch %4d, %6d images done, loss %.4f" % (i + 1, n_seen, value))
        i += 1


def evaluate(model, data_loader, loss_history):
    """Average loss per image (appended) and accuracy. Returns the number of correct answers, as in C."""
    dev = device_of(model)
    model.eval()
    loss_sum = 0.0
    n_correct = 0
    n_total = 0
    with torch.no_grad():
        for images, labels in data_loader:
            images = images.to(dev)
            labels = labels.to(dev)
            scores = model(images)
            loss_sum += F.cross_entropy(scores, labels, reduction="sum").item()
            n_correct += int((scores.argmax(dim=1) == labels).sum().item())
            n_total += labels.size(0)
    assert n_total > 0
    loss_history.append(loss_sum / n_total)
    print(
        "Average test loss: %.4f  Accuracy: %d/%d (%.2f%%)"
        % (loss_sum / n_total, n_correct, n_total, 100.0 * n_correct / n_total)
    )
    return n_correct


# ----------------------------------------------------------------------------------------------------------
# 4. main
# ----------------------------------------------------------------------------------------------------------

model = ViT(
    image_size=SIDE, patch_size=4, num_classes=6, channels=1, dim=64, depth=6, heads=4, mlp_dim=128, dropout=0.1
)
model.to(device)
print(f"The model has {sum(p.numel() for p in model.parameters() if p.requires_grad):,} parameters.")

optimizer = optim.Adam(model.parameters(), lr=0.001)

N_EPOCHS = 40
N_WARMUP = 4

# the whole schedule as a table, filled before the loop
lr_table = [0.0] * N_EPOCHS
for e in range(N_EPOCHS):
    if e < N_WARMUP:
        lr_table[e] = 0.001 * (e + 1) / N_WARMUP
    else:
        lr_table[e] = 0.001 * (N_EPOCHS - e) / (N_EPOCHS - N_WARMUP)

train_loss_history = []
test_loss_history = []
n_correct_history = [0] * N_EPOCHS
start = time.time()
for e in range(N_EPOCHS):
    print("Epoch %d/%d, lr %.6f" % (e + 1, N_EPOCHS, lr_table[e]))
    for group in optimizer.param_groups:
        group["lr"] = lr_table[e]
    train_epoch(model, optimizer, train_loader, train_loss_history)
    n_correct_history[e] = evaluate(model, test_loader, test_loss_history)
print(f"Training took {time.time() - start:.1f} s.")

torch.save(model.state_dict(), f"{STUDENT_ID}.pth")
torch.save(model.state_dict(), f"{STUDENT_ID}_Lab8_Homework.pth")
model.load_state_dict(torch.load(f"{STUDENT_ID}.pth", map_location=device, weights_only=True))
evaluate(model, test_loader, [])

plt.figure(figsize=(7, 4))
plt.plot(train_loss_history, marker=".", label="training loss (every 100 batches)")
plt.plot(test_loss_history, marker=".", label="test loss (every epoch)")
plt.xlabel("entry")
plt.ylabel("cross-entropy")
plt.legend()
plt.show()

# ----------------------------------------------------------------------------------------------------------
# 5. plots
# ----------------------------------------------------------------------------------------------------------


def plot_confusion_matrix(model, data_loader, class_names):
    """counts[t][p]: how often true class t was taken for class p."""
    K = len(class_names)
    counts = torch.zeros(K, K, dtype=torch.int64)
    dev = device_of(model)
    model.eval()
    with torch.no_grad():
        for images, labels in data_loader:
            answers = model(images.to(dev)).argmax(dim=1)
            for i in range(labels.size(0)):
                counts[int(labels[i]), int(answers[i])] += 1

    top = max(1, int(counts.max()))
    fig, ax = plt.subplots(figsize=(1.5 + 0.9 * K, 1.0 + 0.9 * K))
    ax.imshow(counts, cmap="Greens", vmin=0, vmax=top)
    for t in range(K):
        for p in range(K):
            n = int(counts[t, p])
            ax.text(p, t, "%d" % n, ha="center", va="center", color="white" if 2 * n > top else "black")
    ax.set_xticks(list(range(K)), labels=list(class_names), rotation=40, ha="right")
    ax.set_yticks(list(range(K)), labels=list(class_names))
    ax.set_xlabel("predicted class")
    ax.set_ylabel("true class")
    ax.set_title("Confusion matrix")
    fig.tight_layout()
    plt.show()


def plot_classwise_predictions(model, data_loader, class_names, samples_per_class=4):
    """Row = true class, column = running number of the sample."""
    K = len(class_names)
    S = samples_per_class
    pictures = [None] * (K * S)  # slot of sample s of class k: k * S + s
    answers = [-1] * (K * S)
    n_found = [0] * K
    dev = device_of(model)
    model.eval()
    with torch.no_grad():
        for images, labels in data_loader:
            predicted = model(images.to(dev)).argmax(dim=1)
            for i in range(labels.size(0)):
                k = int(labels[i])
                if n_found[k] < S:
                    slot = k * S + n_found[k]
                    pictures[slot] = images[i].cpu()
                    answers[slot] = int(predicted[i])
                    n_found[k] += 1
            if sum(n_found) == K * S:
                break

    fig = plt.figure(figsize=(2.3 * S, 2.3 * K))
    for slot in range(K * S):
        if pictures[slot] is None:
            continue  # the data have fewer images of this class
        k = slot // S
        picture = pictures[slot] * 0.5 + 0.5
        ax = fig.add_subplot(K, S, slot + 1)
        if picture.size(0) == 3:
            ax.imshow(picture.permute(1, 2, 0).clamp(0, 1))
        else:
            ax.imshow(picture[0], cmap="gray", vmin=0, vmax=1)
        ax.set_axis_off()
        ax.set_title(
            "true: %s\npred: %s" % (class_names[k], class_names[answers[slot]]),
            fontsize=8,
            color="green" if answers[slot] == k else "red",
        )
    fig.tight_layout()
    plt.show()


plot_confusion_matrix(model, test_loader, class_names)
plot_classwise_predictions(model, test_loader, class_names)
