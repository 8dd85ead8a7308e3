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
import seaborn as sns
import torch
import torch.nn.functional as F
from einops import rearrange, repeat
from einops.layers.torch import Rearrange
from sklearn.metrics import confusion_matrix
from torch import nn, optim
from torch.utils.data import DataLoader
from torchvision import datasets, transforms

STUDENT_ID = "400113155"

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
    """LayerNorm -> fn"""

    def __init__(self, dim, fn):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.module = fn

    def forward(self, x, **kwargs):
        return self.module(self.norm(x))


# %%
class FeedForward(nn.Module):
    """Linear -> GELU -> Dropout -> Linear -> Dropout"""

    def __init__(self, dim, hidden_dim, dropout=0.0):
        super().__init__()
        self.mlp = nn.Sequential(
            nn.Linear(dim, hidden_dim), nn.GELU(), nn.Dropout(dropout), nn.Linear(hidden_dim, dim), nn.Dropout(dropout)
        )

    def forward(self, x):
        return self.mlp(x)


# %%
class Attention(nn.Module):
    """Multi-head self-attention"""

    def __init__(self, dim, heads=4, dim_head=64, dropout=0.0):
        super().__init__()
        self.heads, self.dim_head = heads, dim_head
        self.to_q = nn.Linear(dim, heads * dim_head, bias=False)
        self.to_kv = nn.Linear(dim, 2 * heads * dim_head, bias=False)
        self.unify = nn.Linear(heads * dim_head, dim)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        b, n, _ = x.size()
        h, d = self.heads, self.dim_head
        q = self.to_q(x).view(b, n, h, d).transpose(1, 2)
        k, v = self.to_kv(x).view(b, n, 2, h, d).unbind(dim=2)
        k, v = k.transpose(1, 2), v.transpose(1, 2)

        # fold the heads into the batch so that bmm can be used
        q = q.reshape(b * h, n, d)
        k = k.reshape(b * h, n, d)
        v = v.reshape(b * h, n, d)
        att = torch.bmm(q, k.transpose(1, 2)) / (d**0.5)
        att = F.softmax(att, dim=2)
        out = torch.bmm(att, v).view(b, h, n, d)
        out = out.transpose(1, 2).reshape(b, n, h * d)
        return self.dropout(self.unify(out))


# %%
class Transformer(nn.Module):
    """depth x (attention + residual, MLP + residual)"""

    def __init__(self, dim, depth, heads, dim_head, mlp_dim, dropout=0.0):
        super().__init__()
        self.layers = nn.ModuleList(
            nn.ModuleDict(
                {
                    "attention": PreNorm(dim, Attention(dim, heads, dim_head, dropout)),
                    "mlp": PreNorm(dim, FeedForward(dim, mlp_dim, dropout)),
                }
            )
            for _ in range(depth)
        )

    def forward(self, x):
        for layer in self.layers:
            residual = x
            x = layer["attention"](x) + residual
            residual = x
            x = layer["mlp"](x) + residual
        return x


# %%
class ViT(nn.Module):
    """Image -> patches -> tokens -> Transformer -> logits"""

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
        self.patch_size, self.pool = patch_size, pool
        grid = image_size // patch_size
        self.patch_to_token = nn.Linear(patch_size * patch_size * channels, dim)
        self.cls_token = nn.Parameter(torch.randn(1, 1, dim))
        self.pos_emb = nn.Parameter(torch.randn(1, 1 + grid * grid, dim))
        self.emb_dropout = nn.Dropout(emb_dropout)
        self.transformer = Transformer(dim, depth, heads, dim_head, mlp_dim, dropout)
        self.final_norm = nn.LayerNorm(dim)
        self.fc = nn.Linear(dim, num_classes)

    def patchify(self, img):
        b, c, hh, ww = img.shape
        p = self.patch_size
        x = img.reshape(b, c, hh // p, p, ww // p, p)
        x = x.permute(0, 2, 4, 1, 3, 5)  # b, rows, columns, c, p, p
        return x.reshape(b, (hh // p) * (ww // p), c * p * p)

    def forward(self, img):
        x = self.patch_to_token(self.patchify(img))
        cls = self.cls_token.expand(x.size(0), 1, x.size(2))
        x = torch.cat([cls, x], dim=1)
        x = self.emb_dropout(x + self.pos_emb)
        x = self.transformer(x)
        x = x.mean(dim=1) if self.pool == "mean" else x[:, 0]
        return self.fc(self.final_norm(x))


# %% [markdown]
# ## 4. Training and evaluation
#
# A manual loop: no trainer library.


# %%
def train_epoch(model, optimizer, data_loader, loss_history):
    model.train()
    criterion = nn.CrossEntropyLoss()
    for i, batch in enumerate(data_loader):
        inputs, targets = batch[0].to(device), batch[1].to(device)
        optimizer.zero_grad(set_to_none=True)
        outputs = model(inputs)
        loss = criterion(outputs, targets)
        loss.backward()
        optimizer.step()
        if i % 100 == 0:
            done = 100.0 * (i + 1) / len(data_loader)
            print(f"{done:5.1f} % done, loss: {loss.item():.4f}")
            loss_history.append(loss.item())


# %%
def evaluate(model, data_loader, loss_history):
    model.eval()
    criterion = nn.CrossEntropyLoss()
    running_loss = 0.0
    correct = 0
    total = 0
    with torch.no_grad():
        for inputs, targets in data_loader:
            inputs, targets = inputs.to(device), targets.to(device)
            outputs = model(inputs)
            running_loss += criterion(outputs, targets).item()
            _, predicted = torch.max(outputs, 1)
            total += targets.size(0)
            correct += (predicted == targets).sum().item()
    avg_loss = running_loss / len(data_loader)
    loss_history.append(avg_loss)
    print(f"Test loss: {avg_loss:.4f} | accuracy: {100 * correct / total:.2f}% ({correct}/{total})")


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
    all_targets, all_predictions = [], []
    with torch.no_grad():
        for inputs, targets in data_loader:
            _, predicted = torch.max(model(inputs.to(device)), 1)
            all_predictions += predicted.cpu().tolist()
            all_targets += targets.tolist()
    cm = confusion_matrix(all_targets, all_predictions, labels=list(range(len(class_names))))
    plt.figure(figsize=(9, 7))
    sns.heatmap(cm, annot=True, fmt="d", cmap="Greens", xticklabels=class_names, yticklabels=class_names)
    plt.xticks(rotation=30, ha="right")
    plt.yticks(rotation=0)
    plt.ylabel("True label")
    plt.xlabel("Predicted label")
    plt.title("Confusion Matrix")
    plt.tight_layout()
    plt.show()


# %%
def plot_classwise_predictions(model, data_loader, class_names, samples_per_class=4):
    model.eval()
    per_class = {}
    with torch.no_grad():
        for inputs, targets in data_loader:
            _, predicted = torch.max(model(inputs.to(device)), 1)
            for j in range(len(targets)):
                bucket = per_class.setdefault(int(targets[j]), [])
                if len(bucket) < samples_per_class:
                    bucket.append((inputs[j].cpu(), int(predicted[j])))

    fig = plt.figure(figsize=(samples_per_class * 2.4, len(class_names) * 2.6))
    for c, name in enumerate(class_names):
        for k, (image, pred) in enumerate(per_class.get(c, [])):
            ax = fig.add_subplot(len(class_names), samples_per_class, c * samples_per_class + k + 1)
            ax.imshow(image[0] * 0.5 + 0.5, cmap="gray", vmin=0.0, vmax=1.0)
            ax.set_title(
                f"True: {name}\nPredicted: {class_names[pred]}", fontsize=8, color="green" if pred == c else "red"
            )
            ax.axis("off")
    fig.tight_layout()
    plt.show()


# %%
plot_confusion_matrix(model, test_loader, class_names)
plot_classwise_predictions(model, test_loader, class_names)
