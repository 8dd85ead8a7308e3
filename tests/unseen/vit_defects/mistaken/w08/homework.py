# %% [markdown]
# # Vision Transformer for steel surface defects
#
# You build a Vision Transformer (ViT) from scratch, train it on images of six kinds of defects on hot-rolled
# steel, and examine what it has learned. Every part that you write says `TODO`: read its docstring, replace
# the line `raise NotImplementedError(...)` by your code, and run `pytest` in this folder to see how far
# you are.
#
# Names and arguments of the classes and functions are fixed. All numbers (architecture, optimizer, batch
# size, transform, epochs) are yours to tune.

# %%
import random
import shutil
import time
import zipfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import ConfusionMatrixDisplay
import seaborn as sns
import torch
import torch.nn.functional as F
from einops import rearrange, repeat
from einops.layers.torch import Rearrange
from sklearn.metrics import confusion_matrix
from torch import nn, optim
from torch.utils.data import DataLoader
from torchvision import datasets, transforms

STUDENT_ID = "400113081"  # put your own student number here

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(42)

# %% [markdown]
# ## 1. The data: unzip and split
#
# `dataset.zip` must lie beside this file. It holds one folder of images per class. 70 % of each class are for
# training and 30 % for testing. The names are sorted before they are shuffled with a fixed seed, so the split
# is the same on every machine.


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
#
# 28 x 28 pixels, one gray channel, values between -1 and 1.

# %%
transform = transforms.Compose(
    [
        transforms.Resize((28, 28)),
        transforms.Grayscale(num_output_channels=1),
        transforms.ToTensor(),
        transforms.Normalize((0.5,), (0.5,)),
    ]
)
BATCH_SIZE = 64

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
#
# The image is cut into patches that do not overlap; each patch becomes a token; a learnable class token is
# put in front and learnable positions are added; a stack of encoder blocks follows; the class token (or the
# mean of all tokens) is classified. Write every part yourself: `nn.Linear`, `nn.LayerNorm`, `nn.Dropout`,
# `nn.Conv2d` and einops are fine; `nn.MultiheadAttention`, `nn.Transformer*` and ready-made ViTs are not.


# %%
class PreNorm(nn.Module):
    def __init__(self, dim, fn):
        super(PreNorm, self).__init__()
        self.norm = nn.LayerNorm(dim)
        self.fn = fn

    def forward(self, x, **kwargs):
        x_norm = self.norm(x)
        return self.fn(x_norm, **kwargs)


# %%
class FeedForward(nn.Module):
    def __init__(self, dim, hidden_dim, dropout=0.0):
        super(FeedForward, self).__init__()
        self.l1 = nn.Linear(dim, hidden_dim)
        self.gelu = nn.GELU()
        self.d1 = nn.Dropout(dropout)
        self.l2 = nn.Linear(hidden_dim, dim)
        self.d2 = nn.Dropout(dropout)

    def forward(self, x):
        x = self.l1(x)
        x = self.gelu(x)
        x = self.d1(x)
        x = self.l2(x)
        x = self.d2(x)
        return x


# %%
class Attention(nn.Module):
    def __init__(self, dim, heads=4, dim_head=64, dropout=0.0):
        super(Attention, self).__init__()
        self.num_heads = heads
        self.head_size = dim_head
        self.W_qkv = nn.Linear(dim, 3 * heads * dim_head)
        self.W_out = nn.Linear(heads * dim_head, dim)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        bs, seq, _ = x.shape
        q, k, v = torch.chunk(self.W_qkv(x), 3, dim=2)
        # merge batch and heads so that bmm can be used
        q = rearrange(q, "b s (h e) -> (b h) s e", h=self.num_heads)
        k = rearrange(k, "b s (h e) -> (b h) s e", h=self.num_heads)
        v = rearrange(v, "b s (h e) -> (b h) s e", h=self.num_heads)
        att = torch.bmm(q, k.transpose(1, 2)) / (self.head_size ** 0.5)
        att = F.softmax(att, dim=-1)
        out = torch.bmm(att, v)
        out = rearrange(out, "(b h) s e -> b s (h e)", b=bs, h=self.num_heads)
        return self.dropout(self.W_out(out))


# %%
class Transformer(nn.Module):
    def __init__(self, dim, depth, heads, dim_head, mlp_dim, dropout=0.0):
        super(Transformer, self).__init__()
        self.layers = nn.ModuleList()
        for _ in range(depth):
            att = PreNorm(dim, Attention(dim, heads=heads, dim_head=dim_head, dropout=dropout))
            ffn = PreNorm(dim, FeedForward(dim, hidden_dim=mlp_dim, dropout=dropout))
            self.layers.append(nn.ModuleList([att, ffn]))

    def forward(self, x):
        for layer in self.layers:
            x = layer[0](x) + x
            x = layer[1](x) + x
        return x


# %%
class ViT(nn.Module):
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
        super(ViT, self).__init__()
        if pool not in ("cls", "mean"):
            raise ValueError("pool must be cls or mean")
        self.pool = pool
        self.patch_size = patch_size
        num_patches = (image_size // patch_size) ** 2
        self.patch_to_token = nn.Linear(channels * patch_size * patch_size, dim)
        self.cls_token = nn.Parameter(torch.randn(1, 1, dim))
        self.pos_embedding = nn.Parameter(torch.randn(1, num_patches + 1, dim))
        self.dropout = nn.Dropout(emb_dropout)
        self.transformer = Transformer(dim, depth, heads, dim_head, mlp_dim, dropout)
        self.mlp_head = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, num_classes))

    def forward(self, img):
        p = self.patch_size
        x = rearrange(img, "b c (h p1) (w p2) -> b (h w) (p1 p2 c)", p1=p, p2=p)
        x = self.patch_to_token(x)
        b = x.shape[0]
        cls = repeat(self.cls_token, "1 1 d -> b 1 d", b=b)
        x = torch.cat([cls, x], dim=1)
        x += self.pos_embedding
        x = self.dropout(x)
        x = self.transformer(x)
        if self.pool == "cls":
            x = x[:, 0]
        elif self.pool == "mean":
            x = x.mean(dim=1)
        return self.mlp_head(x)


# %% [markdown]
# ## 4. Training and evaluation
#
# A manual loop: no trainer library.


# %%
def train_epoch(model, optimizer, data_loader, loss_history):
    model.train()
    for i, (data, target) in enumerate(data_loader):
        data = data.to(device)
        target = target.to(device)
        optimizer.zero_grad()
        output = F.log_softmax(model(data), dim=1)
        loss = F.nll_loss(output, target)
        loss.backward()
        optimizer.step()
        if i % 100 == 0:
            print("[" + str(i + 1) + "/" + str(len(data_loader)) + "]  Loss: " + "{:6.4f}".format(loss.item()))
            loss_history.append(loss.item())


# %%
def evaluate(model, data_loader, loss_history):
    model.eval()
    total_samples = 0
    total_loss = 0
    correct_samples = 0
    with torch.no_grad():
        for data, target in data_loader:
            data = data.to(device)
            target = target.to(device)
            output = F.log_softmax(model(data), dim=1)
            loss = F.nll_loss(output, target, reduction="sum")
            _, pred = torch.max(output, dim=1)
            total_loss += loss.item()
            correct_samples = pred.eq(target).sum().item()
            total_samples += target.shape[0]
    avg_loss = total_loss / total_samples
    loss_history.append(avg_loss)
    print("Average test loss: " + "{:.4f}".format(avg_loss))
    print("Accuracy: {}/{} ({:.2f}%)".format(correct_samples, total_samples, 100.0 * correct_samples / total_samples))


# %% [markdown]
# ## 5. Train, save, reload
#
# These are the numbers to tune: the arguments of `ViT`, the optimizer, the batch size, the transform and the
# number of epochs. Write down what you tried and what came of it (question 7). The assignment asks for at
# least 60 % accuracy on the test images.

# %%
model = ViT(image_size=28, patch_size=4, num_classes=6, channels=1, dim=64, depth=6, heads=4, mlp_dim=128)
model.to(device)
print(f"The model has {sum(p.numel() for p in model.parameters() if p.requires_grad):,} parameters.")

optimizer = optim.Adam(model.parameters(), lr=0.003)

N_EPOCHS = 1

# %%
train_loss_history, test_loss_history = [], []
start = time.time()
for epoch in range(1, N_EPOCHS + 1):
    print(f"Epoch {epoch}/{N_EPOCHS}")
    train_epoch(model, optimizer, train_loader, train_loss_history)
    evaluate(model, test_loader, test_loss_history)
print(f"Training took {time.time() - start:.1f} s.")

# %% [markdown]
# Save the weights and read them back. The second file is the one to hand in: it must belong to the model
# above.

# %%
torch.save(model.state_dict(), f"{STUDENT_ID}.pth")
torch.save(model.state_dict(), f"{STUDENT_ID}_Lab8_Homework.pth")
model.load_state_dict(torch.load(f"{STUDENT_ID}.pth", map_location=device, weights_only=True))
evaluate(model, test_loader, [])

# %%
plt.figure(figsize=(7, 4))
plt.plot(train_loss_history, marker=".", label="training loss (every 100 batches)")
plt.plot(test_loss_history, marker=".", label="test loss (every epoch)")
plt.xlabel("entry")
plt.ylabel("cross-entropy")
plt.legend()
plt.show()

# %% [markdown]
# ## 6. What has it learned?


# %%
def plot_confusion_matrix(model, data_loader, class_names):
    model.eval()
    y_true = []
    y_pred = []
    with torch.no_grad():
        for data, target in data_loader:
            output = model(data.to(device))
            y_pred.extend(output.argmax(dim=1).cpu().numpy())
            y_true.extend(target.cpu().numpy())
    cm = confusion_matrix(y_true, y_pred, labels=np.arange(len(class_names)))
    fig, ax = plt.subplots(figsize=(8, 8))
    display = ConfusionMatrixDisplay(cm, display_labels=class_names)
    display.plot(ax=ax, cmap="Blues", xticks_rotation=45, colorbar=False)
    ax.set_title("Confusion Matrix")
    plt.tight_layout()
    plt.show()


# %%
def plot_classwise_predictions(model, data_loader, class_names, samples_per_class=4):
    model.eval()
    class_images = {i: [] for i in range(len(class_names))}
    class_preds = {i: [] for i in range(len(class_names))}
    with torch.no_grad():
        for data, target in data_loader:
            preds = model(data.to(device)).argmax(dim=1)
            for i in range(data.shape[0]):
                label = target[i].item()
                if len(class_images[label]) < samples_per_class:
                    class_images[label].append(data[i].cpu())
                    class_preds[label].append(preds[i].item())
            if all(len(v) == samples_per_class for v in class_images.values()):
                break

    num_classes = len(class_names)
    fig, axes = plt.subplots(num_classes, samples_per_class, figsize=(samples_per_class * 2.5, num_classes * 2.5))
    axes = np.array(axes).reshape(num_classes, samples_per_class)
    for i in range(num_classes):
        for j in range(samples_per_class):
            axes[i, j].axis("off")
            if j < len(class_images[i]):
                image = class_images[i][j].squeeze(0).numpy() * 0.5 + 0.5
                predicted = class_preds[i][j]
                axes[i, j].imshow(image, cmap="gray", vmin=0, vmax=1)
                axes[i, j].set_title(
                    "True: " + class_names[i] + "\nPred: " + class_names[predicted],
                    fontsize=8,
                    color="green" if predicted == i else "red",
                )
    plt.tight_layout()
    plt.show()


# %%
plot_confusion_matrix(model, test_loader, class_names)
plot_classwise_predictions(model, test_loader, class_names)
