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

STUDENT_ID = "400109110"

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
    """Layer normalization, then another module.

    Args:
        dim: The width of a token.
        fn: The module that receives the normalized tokens.

    forward:
        x: Tokens, (batch, tokens, dim).
        **kwargs: Handed on to `fn`.
        Returns what `fn` makes of the normalized `x`, (batch, tokens, dim). No residual here: the
        Transformer adds it.
    """

    def __init__(self, dim, fn):
        super(PreNorm, self).__init__()
        self.norm_layer = nn.LayerNorm(normalized_shape=dim)
        self.function = fn

    def forward(self, x, **kwargs):
        x_norm = self.norm_layer(x)
        x_out = self.function(x_norm, **kwargs)
        return x_out


# %%
class FeedForward(nn.Module):
    """Two linear layers with a nonlinearity between them, applied to each token by itself.

    Args:
        dim: The width of a token, at the entrance and at the exit.
        hidden_dim: The width between the two layers.
        dropout: The share of values that is dropped in training.

    forward:
        x: Tokens, (batch, tokens, dim).
        Returns tokens, (batch, tokens, dim).
    """

    def __init__(self, dim, hidden_dim, dropout=0.0):
        super(FeedForward, self).__init__()
        self.linear_in = nn.Linear(in_features=dim, out_features=hidden_dim)
        self.relu = nn.ReLU()
        self.dropout_in = nn.Dropout(p=dropout)
        self.linear_out = nn.Linear(in_features=hidden_dim, out_features=dim)
        self.dropout_out = nn.Dropout(p=dropout)

    def forward(self, x):
        x = self.linear_in(x)
        x = self.relu(x)
        x = self.dropout_in(x)
        x = self.linear_out(x)
        x = self.dropout_out(x)
        return x


# %%
class Attention(nn.Module):
    """Multi-head self-attention.

    Every head computes softmax(q k^T / sqrt(dim_head)) v with its own queries q, keys k and values v of width
    `dim_head`. The heads' results are put side by side, (heads * dim_head) numbers per token, and projected
    back to `dim`.

    Args:
        dim: The width of a token, at the entrance and at the exit.
        heads: How many heads there are.
        dim_head: The width of one head. It need not be dim / heads.
        dropout: The share of values that is dropped after the output projection in training.

    forward:
        x: Tokens, (batch, tokens, dim).
        Returns tokens, (batch, tokens, dim).
    """

    def __init__(self, dim, heads=4, dim_head=64, dropout=0.0):
        super(Attention, self).__init__()
        self.heads = heads
        self.dim_head = dim_head
        self.inner_dim = heads * dim_head
        self.query_projection = nn.Linear(dim, self.inner_dim)
        self.key_projection = nn.Linear(dim, self.inner_dim)
        self.value_projection = nn.Linear(dim, self.inner_dim)
        self.output_projection = nn.Linear(self.inner_dim, dim)
        self.output_dropout = nn.Dropout(p=dropout)
        self.softmax = nn.Softmax(dim=-1)

    def forward(self, x):
        batch_size, num_tokens, _ = x.size()
        shape = (batch_size, num_tokens, self.heads, self.dim_head)
        queries = self.query_projection(x).reshape(shape)
        keys = self.key_projection(x).reshape(shape)
        values = self.value_projection(x).reshape(shape)
        # q: query token, k: key token
        energy = torch.einsum("bqhd,bkhd->bhqk", queries, keys)
        attention = self.softmax(energy / self.dim_head**0.5)
        out = torch.einsum("bhqk,bkhd->bqhd", attention, values)
        out = out.reshape(batch_size, num_tokens, self.inner_dim)
        return self.output_dropout(self.output_projection(out))


# %%
class TransformerBlock(nn.Module):
    """One encoder block."""

    def __init__(self, dim, heads, dim_head, mlp_dim, dropout):
        super(TransformerBlock, self).__init__()
        self.attention = PreNorm(dim=dim, fn=Attention(dim=dim, heads=heads, dim_head=dim_head, dropout=dropout))
        self.feed_forward = PreNorm(dim=dim, fn=FeedForward(dim=dim, hidden_dim=mlp_dim, dropout=dropout))

    def forward(self, x):
        attention_out = self.attention(x)
        x = x + attention_out
        feed_forward_out = self.feed_forward(x)
        x = x + feed_forward_out
        return x


class Transformer(nn.Module):
    """The encoder: `depth` blocks, each of pre-normalized attention and pre-normalized feed-forward.

    Each of the two adds to its input (a residual connection): x = x + part(x).

    Args:
        dim: The width of a token.
        depth: How many blocks there are. Each has weights of its own.
        heads, dim_head: Of the attention.
        mlp_dim: The hidden width of the feed-forward part.
        dropout: Handed on to both parts.

    forward:
        x: Tokens, (batch, tokens, dim).
        Returns tokens, (batch, tokens, dim).
    """

    def __init__(self, dim, depth, heads, dim_head, mlp_dim, dropout=0.0):
        super(Transformer, self).__init__()
        self.encoder_layers = nn.ModuleList()
        for _ in range(depth):
            self.encoder_layers.append(TransformerBlock(dim, heads, dim_head, mlp_dim, dropout))

    def forward(self, x):
        for encoder_layer in self.encoder_layers:
            x = encoder_layer(x)
        return x


# %%
class ViT(nn.Module):
    """The Vision Transformer: an image becomes a score for every class.

    Args:
        image_size: Height and width of the image, in pixels.
        patch_size: Height and width of a patch, in pixels. It must divide `image_size`.
        num_classes: How many scores there are.
        dim: The width of a token.
        depth, heads, dim_head, mlp_dim, dropout: Of the Transformer.
        pool: 'cls': the class token is classified; 'mean': the mean of all tokens is.
        channels: How many channels the image has.
        emb_dropout: The share of values that is dropped after the positions are added, in training.

    forward:
        img: Images, (batch, channels, image_size, image_size).
        Returns scores before any softmax (logits), (batch, num_classes).
    """

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
        if image_size % patch_size != 0:
            raise ValueError("image_size must be a multiple of patch_size")
        self.num_patches = (image_size // patch_size) ** 2
        self.patch_dim = channels * patch_size * patch_size
        self.patch_embedding = nn.Linear(self.patch_dim, dim)
        self.class_token = nn.Parameter(torch.randn(1, 1, dim))
        self.position_embedding = nn.Parameter(torch.randn(1, self.num_patches + 1, dim))
        self.embedding_dropout = nn.Dropout(p=emb_dropout)
        self.transformer = Transformer(
            dim=dim, depth=depth, heads=heads, dim_head=dim_head, mlp_dim=mlp_dim, dropout=dropout
        )
        self.pool = pool
        self.layer_norm = nn.LayerNorm(dim)
        self.classifier = nn.Linear(dim, num_classes)

    def forward(self, img):
        batch_size = img.size(0)
        # (batch, channels, height, width) -> (batch, patches, numbers of a patch)
        patches = img.reshape(batch_size, self.num_patches, self.patch_dim)
        tokens = self.patch_embedding(patches)
        class_tokens = self.class_token.repeat(batch_size, 1, 1)
        tokens = torch.cat([class_tokens, tokens], dim=1)
        tokens = tokens + self.position_embedding
        tokens = self.embedding_dropout(tokens)
        tokens = self.transformer(tokens)
        if self.pool == "cls":
            representation = tokens[:, 0]
        else:
            representation = tokens.mean(dim=1)
        return self.classifier(self.layer_norm(representation))


# %% [markdown]
# ## 4. Training and evaluation
#
# A manual loop: no trainer library.

# %%
def train_epoch(model, optimizer, data_loader, loss_history):
    """Trains the model for one pass over the data.

    For every batch: clear the gradients, compute the scores and the loss, go backward, take one step. Every
    100 batches (the first, the 101st, ...) print how far it has got and append the loss of that batch.

    Args:
        model: The ViT. It must be in training mode.
        optimizer: Holds the model's parameters.
        data_loader: Yields (images, labels): (batch, channels, height, width) and (batch,).
        loss_history: A list; floats are appended to it.
    """
    criterion = nn.CrossEntropyLoss()
    model.train()
    for batch_number, (images, labels) in enumerate(data_loader):
        images = images.to(device)
        labels = labels.to(device)
        # 1. clear the gradients
        optimizer.zero_grad()
        # 2. forward
        outputs = model(images)
        # 3. loss
        loss = criterion(outputs, labels)
        # 4. backward
        loss.backward()
        # 5. step
        optimizer.step()
        if batch_number % 100 == 0:
            print(f"Batch {batch_number}: loss {loss.item():.4f}")
            loss_history.append(loss.item())


# %%
def evaluate(model, data_loader, loss_history):
    """Measures the model on data that it was not trained on.

    Appends the average loss per image to the history and prints it together with the accuracy.

    Args:
        model: The ViT. It must be in evaluation mode, and no gradients may be computed.
        data_loader: Yields (images, labels). The last batch may be smaller than the others.
        loss_history: A list; one float is appended to it.
    """
    criterion = nn.CrossEntropyLoss()
    model.eval()
    total_loss = 0.0
    total_correct = 0
    total_images = 0
    with torch.no_grad():
        for images, labels in data_loader:
            images = images.to(device)
            labels = labels.to(device)
            outputs = model(images)
            loss = criterion(outputs, labels)
            # loss is the mean of this batch
            total_loss += loss.item() * images.size(0)
            predictions = torch.argmax(outputs, dim=1)
            total_correct += (predictions == labels).sum().item()
            total_images += images.size(0)
    average_loss = total_loss / total_images
    accuracy = 100.0 * total_correct / total_images
    loss_history.append(average_loss)
    print(f"Average loss: {average_loss:.4f}")
    print(f"Accuracy: {total_correct}/{total_images} ({accuracy:.2f} %)")


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
    """Draws how often each true class (rows) was taken for each class (columns), with the counts written in.

    Args:
        model: The trained ViT.
        data_loader: Yields (images, labels).
        class_names: The names, in the order of the labels. They are written on both axes.
    """
    model.eval()
    all_labels = []
    all_predictions = []
    with torch.no_grad():
        for images, labels in data_loader:
            images = images.to(device)
            outputs = model(images)
            predictions = torch.argmax(outputs, dim=1)
            all_labels.extend(labels.cpu().numpy())
            all_predictions.extend(predictions.cpu().numpy())
    matrix = confusion_matrix(all_labels, all_predictions, labels=range(len(class_names)))
    plt.figure(figsize=(10, 8))
    sns.heatmap(
        matrix,
        annot=True,
        fmt="d",
        cmap="coolwarm",
        xticklabels=class_names,
        yticklabels=class_names,
    )
    plt.title("Confusion Matrix")
    plt.xlabel("Predicted Label")
    plt.ylabel("True Label")
    plt.show()


# %%
def plot_classwise_predictions(model, data_loader, class_names, samples_per_class=4):
    """Draws examples of every class with the true and the predicted label on each image.

    Args:
        model: The trained ViT.
        data_loader: Yields (images, labels).
        class_names: The names, in the order of the labels.
        samples_per_class: How many images of each true class are drawn (4 of 6 classes: 24 images).
    """
    model.eval()
    class_images = {name: [] for name in class_names}
    class_predictions = {name: [] for name in class_names}
    with torch.no_grad():
        for images, labels in data_loader:
            outputs = model(images.to(device))
            predictions = torch.argmax(outputs, dim=1).cpu()
            for image, label, prediction in zip(images, labels, predictions):
                name = class_names[label.item()]
                if len(class_images[name]) < samples_per_class:
                    class_images[name].append(image.cpu())
                    class_predictions[name].append(class_names[prediction.item()])

    fig, axes = plt.subplots(
        nrows=len(class_names), ncols=samples_per_class, figsize=(12, 18), squeeze=False
    )
    for row, name in enumerate(class_names):
        for column in range(samples_per_class):
            ax = axes[row, column]
            ax.axis("off")
            if column < len(class_images[name]):
                image = class_images[name][column] * 0.5 + 0.5
                predicted_name = class_predictions[name][column]
                ax.imshow(image.squeeze().numpy(), cmap="gray")
                color = "green" if predicted_name == name else "red"
                ax.set_title(f"True: {name}\nPred: {predicted_name}", color=color, fontsize=10)
    plt.tight_layout()
    plt.show()


# %%
plot_confusion_matrix(model, test_loader, class_names)
plot_classwise_predictions(model, test_loader, class_names)
