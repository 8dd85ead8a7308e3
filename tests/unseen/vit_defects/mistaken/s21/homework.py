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

STUDENT_ID = "400107610"  # put your own student number here

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
    """Normalizes the tokens and gives them to fn (attention or feed forward)."""

    def __init__(self, dim, fn):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.fn = fn

    def forward(self, x, **kwargs):
        return self.fn(self.norm(x), **kwargs)


# %%
class FeedForward(nn.Module):
    """MLP of the encoder block."""

    def __init__(self, dim, hidden_dim, dropout=0.0):
        super().__init__()
        self.expand = nn.Linear(dim, hidden_dim)
        self.shrink = nn.Linear(hidden_dim, dim)
        self.gelu = nn.GELU()
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        out = self.dropout(self.gelu(self.expand(x)))
        out = self.dropout(self.shrink(out))
        return out


# %%
class Attention(nn.Module):
    """Multi head self attention with one linear layer for q, k, v together."""

    def __init__(self, dim, heads=4, dim_head=64, dropout=0.0):
        super().__init__()
        self.heads = heads
        self.scale = dim_head ** (-0.5)
        hidden = heads * dim_head
        self.qkv_layer = nn.Linear(dim, hidden * 3)
        self.out_layer = nn.Linear(hidden, dim)
        self.out_dropout = nn.Dropout(dropout)

    def forward(self, x):
        # (batch, tokens, 3 * heads * dim_head) -> 3 x (batch, heads, tokens, dim_head)
        q, k, v = rearrange(self.qkv_layer(x), "b n (three h d) -> three b h n d", three=3, h=self.heads)
        similarity = q @ k.transpose(2, 3) * self.scale
        attention = similarity.softmax(dim=3)
        heads_out = attention @ v
        joined = rearrange(heads_out, "b h n d -> b n (h d)")
        return self.out_dropout(self.out_layer(joined))


# %%
class Transformer(nn.Module):
    """Depth times: attention + residual, feed forward + residual."""

    def __init__(self, dim, depth, heads, dim_head, mlp_dim, dropout=0.0):
        super().__init__()
        self.depth = depth
        self.attentions = nn.ModuleList(
            [PreNorm(dim, Attention(dim, heads, dim_head, dropout)) for _ in range(depth)]
        )
        self.feed_forwards = nn.ModuleList(
            [PreNorm(dim, FeedForward(dim, mlp_dim, dropout)) for _ in range(depth)]
        )

    def forward(self, x):
        for i in range(self.depth):
            x = self.attentions[i](x) + x
            x = self.feed_forwards[i](x) + x
        return x


# %%
class ViT(nn.Module):
    """Vision Transformer. Input (batch, channels, image_size, image_size), output (batch, num_classes)."""

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
        self.patch_size = patch_size
        self.pool = pool
        self.num_patches = (image_size // patch_size) ** 2
        self.linear_projection = nn.Linear(channels * patch_size * patch_size, dim)
        self.class_token = nn.Parameter(torch.randn(1, 1, dim))
        self.position_embedding = nn.Parameter(torch.randn(1, self.num_patches + 1, dim))
        self.emb_dropout = nn.Dropout(emb_dropout)
        self.transformer = Transformer(dim, depth, heads, dim_head, mlp_dim, dropout)
        self.mlp_head = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, num_classes))

    def image_to_patches(self, img):
        patches = F.unfold(img, kernel_size=self.patch_size, stride=self.patch_size)  # (b, c*p*p, n)
        return patches.transpose(1, 2)  # (b, n, c*p*p)

    def forward(self, img):
        patches = self.image_to_patches(img)
        # mix the patches so the model does not overfit on their order
        order = torch.randperm(self.num_patches, device=img.device)
        patches = patches[:, order]

        tokens = self.linear_projection(patches)
        class_tokens = self.class_token.expand(img.shape[0], -1, -1)
        tokens = torch.cat([class_tokens, tokens], dim=1)
        tokens = tokens + self.position_embedding
        tokens = self.emb_dropout(tokens)
        tokens = self.transformer(tokens)
        if self.pool == "cls":
            pooled = tokens[:, 0]
        else:
            pooled = tokens.mean(dim=1)
        return self.mlp_head(pooled)


# %% [markdown]
# ## 4. Training and evaluation
#
# A manual loop: no trainer library.


# %%
def train_epoch(model, optimizer, data_loader, loss_history):
    """One epoch of training, the loss of every 100th batch goes to loss_history."""
    model.train()
    for i, batch in enumerate(data_loader):
        images = batch[0].to(device)
        labels = batch[1].to(device)
        optimizer.zero_grad()
        predictions = model(images)
        loss = F.cross_entropy(predictions, labels)
        loss.backward()
        optimizer.step()
        if i % 100 == 0:
            print("Batch", i, "of", len(data_loader), "- loss:", round(loss.item(), 4))
            loss_history.append(loss.item())


# %%
def evaluate(model, data_loader, loss_history):
    """Average loss per image and accuracy."""
    model.eval()
    sum_loss = 0.0
    num_correct = 0
    num_images = 0
    with torch.no_grad():
        for batch in data_loader:
            images = batch[0].to(device)
            labels = batch[1].to(device)
            predictions = model(images)
            loss = F.cross_entropy(predictions, labels, reduction="sum")
            sum_loss += loss.item()
            num_correct += torch.sum(predictions.argmax(dim=1) == labels).item()
            num_images += images.shape[0]
    avg_loss = sum_loss / num_images
    accuracy = 100 * num_correct / num_images
    loss_history.append(avg_loss)
    print("Average test loss: %.4f | Accuracy: %d/%d (%.2f%%)" % (avg_loss, num_correct, num_images, accuracy))


# %% [markdown]
# ## 5. Train, save, reload
#
# These are the numbers to tune: the arguments of `ViT`, the optimizer, the batch size, the transform and the
# number of epochs. Write down what you tried and what came of it (question 7). The assignment asks for at
# least 60 % accuracy on the test images.

# %%
model = ViT(
    image_size=28, patch_size=4, num_classes=6, channels=1, dim=128, depth=6, heads=8, mlp_dim=256, dim_head=16, dropout=0.1
)
model.to(device)
print(f"The model has {sum(p.numel() for p in model.parameters() if p.requires_grad):,} parameters.")

optimizer = optim.AdamW(model.parameters(), lr=3e-4)

N_EPOCHS = 50

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
    """Confusion matrix as a heat map, true classes are rows."""
    model.eval()
    true_labels = []
    predicted_labels = []
    with torch.no_grad():
        for images, labels in data_loader:
            predictions = model(images.to(device)).argmax(dim=1)
            true_labels.append(labels.cpu())
            predicted_labels.append(predictions.cpu())
    true_labels = torch.cat(true_labels).numpy()
    predicted_labels = torch.cat(predicted_labels).numpy()
    cm = confusion_matrix(true_labels, predicted_labels, labels=list(range(len(class_names))))
    plt.figure(figsize=(9, 7))
    sns.heatmap(cm, annot=True, fmt="d", cmap="Oranges", xticklabels=class_names, yticklabels=class_names)
    plt.xlabel("Predicted")
    plt.ylabel("Actual")
    plt.title("Confusion Matrix")
    plt.xticks(rotation=45)
    plt.yticks(rotation=0)
    plt.tight_layout()
    plt.show()


# %%
def plot_classwise_predictions(model, data_loader, class_names, samples_per_class=4):
    """samples_per_class images of each class with true and predicted label."""
    model.eval()
    num_classes = len(class_names)
    collected = [[] for _ in range(num_classes)]
    with torch.no_grad():
        for images, labels in data_loader:
            predictions = model(images.to(device)).argmax(dim=1).cpu()
            for k in range(len(labels)):
                label = labels[k].item()
                if len(collected[label]) < samples_per_class:
                    collected[label].append((images[k], predictions[k].item()))

    plt.figure(figsize=(3 * samples_per_class, 3 * num_classes))
    for label in range(num_classes):
        for k, (image, prediction) in enumerate(collected[label]):
            plt.subplot(num_classes, samples_per_class, label * samples_per_class + k + 1)
            plt.imshow(image.squeeze(0) * 0.5 + 0.5, cmap="gray")
            plt.axis("off")
            color = "green" if prediction == label else "red"
            plt.title(f"True: {class_names[label]}\nPredicted: {class_names[prediction]}", color=color, fontsize=9)
    plt.tight_layout()
    plt.show()


# %%
plot_confusion_matrix(model, test_loader, class_names)
plot_classwise_predictions(model, test_loader, class_names)
