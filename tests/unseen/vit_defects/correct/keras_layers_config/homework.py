# %% [markdown]
# # Vision Transformer for steel surface defects
#
# I come from Keras, so the model is a set of layers with `add_weight`, `get_config` and kernels of the shape
# (in, out). `data_augmentation` is a pair of layers that only `train_epoch` applies. The training is
# `trainer.compile(...)` and `trainer.fit(...)`, which do nothing but call `train_epoch` and `evaluate`.

# %%
import math
import random
import shutil
import time
import zipfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import seaborn as sns
import torch
import torch.nn.functional as F
from sklearn.metrics import confusion_matrix
from torch import nn, optim
from torch.utils.data import DataLoader
from torchvision import datasets, transforms

STUDENT_ID = "400101311"

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
# ## 2. Data sets and loaders

# %%
IMAGE_SIZE = 28
BATCH_SIZE = 32  # Keras' default

transform = transforms.Compose(
    [
        transforms.Resize((IMAGE_SIZE, IMAGE_SIZE)),
        transforms.Grayscale(num_output_channels=1),
        transforms.ToTensor(),
        transforms.Normalize((0.5,), (0.5,)),
    ]
)


def image_dataset_from_directory(directory, shuffle):
    """Named after what I am used to."""
    dataset = datasets.ImageFolder(directory, transform=transform)
    return dataset, DataLoader(dataset, batch_size=BATCH_SIZE, shuffle=shuffle)


train_set, train_loader = image_dataset_from_directory("data/train", shuffle=True)
test_set, test_loader = image_dataset_from_directory("data/test", shuffle=False)
class_names = train_set.classes
print(f"Found {len(train_set) + len(test_set)} files belonging to {len(class_names)} classes.")
print(f"Using {len(train_set)} files for training, {len(test_set)} for testing.")


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
# ### Basic layers


# %%
def glorot_uniform(shape, fan_in, fan_out):
    limit = math.sqrt(6.0 / (fan_in + fan_out))
    return torch.empty(shape).uniform_(-limit, limit)


def random_normal(shape, *_fans):
    return torch.randn(shape) * 0.02


def zeros(shape, *_fans):
    return torch.zeros(shape)


def ones(shape, *_fans):
    return torch.ones(shape)


INITIALIZERS = {"glorot_uniform": glorot_uniform, "random_normal": random_normal, "zeros": zeros, "ones": ones}
ACTIVATIONS = {"linear": lambda x: x, "relu": F.relu, "gelu": F.gelu}


class Layer(nn.Module):
    """What a Keras layer has: weights made by `build`, the work in `call`, and a config.

    Keras builds a layer when it sees its first input. Here the sizes are known earlier, so every layer calls
    `build` at the end of its __init__, before an optimizer asks for the parameters.
    """

    def __init__(self):
        super().__init__()
        self.built = False

    def add_weight(self, name, shape, initializer, fans=(1, 1)):
        self.register_parameter(name, nn.Parameter(INITIALIZERS[initializer](tuple(shape), *fans)))

    def build(self):
        self.built = True

    def call(self, inputs):
        raise NotImplementedError

    def forward(self, x):
        return self.call(x)

    def get_config(self):
        return {}

    @classmethod
    def from_config(cls, config):
        return cls(**config)

    def count_params(self):
        return sum(p.numel() for p in self.parameters())


class EinsumDense(Layer):
    """tf.keras.layers.EinsumDense: y = einsum(equation, x, kernel) + bias; bias on the axes `bias_axes`.

    `bias_axes` must be the last axes of the output.
    """

    def __init__(self, equation, kernel_shape, bias_axes=None, activation="linear"):
        super().__init__()
        self.equation, self.kernel_shape = equation, tuple(kernel_shape)
        self.bias_axes, self.activation = bias_axes, activation
        self.build()

    def build(self):
        inputs, output = self.equation.split("->")
        axes = inputs.split(",")[1]
        sizes = dict(zip(axes, self.kernel_shape, strict=True))
        fan_out = math.prod(size for axis, size in sizes.items() if axis in output)
        fan_in = math.prod(size for axis, size in sizes.items() if axis not in output)
        self.add_weight("kernel", self.kernel_shape, "glorot_uniform", (fan_in, fan_out))
        if self.bias_axes:
            self.add_weight("bias", [sizes[axis] for axis in self.bias_axes], "zeros")
        super().build()

    def call(self, inputs):
        y = torch.einsum(self.equation, inputs, self.kernel)
        if self.bias_axes:
            y = y + self.bias
        return ACTIVATIONS[self.activation](y)

    def get_config(self):
        return {
            "equation": self.equation,
            "kernel_shape": self.kernel_shape,
            "bias_axes": self.bias_axes,
            "activation": self.activation,
        }


class Dense(Layer):
    """kernel: (units_in, units), the transpose of what nn.Linear has."""

    def __init__(self, units_in, units, activation="linear"):
        super().__init__()
        self.units_in, self.units, self.activation = units_in, units, activation
        self.build()

    def build(self):
        self.add_weight("kernel", (self.units_in, self.units), "glorot_uniform", (self.units_in, self.units))
        self.add_weight("bias", (self.units,), "zeros")
        super().build()

    def call(self, inputs):
        return ACTIVATIONS[self.activation](inputs @ self.kernel + self.bias)

    def get_config(self):
        return {"units_in": self.units_in, "units": self.units, "activation": self.activation}


class LayerNormalization(Layer):
    """Over the last axis, gamma and beta; epsilon as in the Keras ViT example."""

    def __init__(self, dim, epsilon=1e-6):
        super().__init__()
        self.dim, self.epsilon = dim, epsilon
        self.build()

    def build(self):
        self.add_weight("gamma", (self.dim,), "ones")
        self.add_weight("beta", (self.dim,), "zeros")
        super().build()

    def call(self, inputs):
        variance, mean = torch.var_mean(inputs, dim=-1, unbiased=False, keepdim=True)
        return (inputs - mean) * torch.rsqrt(variance + self.epsilon) * self.gamma + self.beta

    def get_config(self):
        return {"dim": self.dim, "epsilon": self.epsilon}


# %% [markdown]
# ### The parts of the assignment


# %%
class PreNorm(Layer):
    """Layer normalization, then `fn`. No residual here."""

    def __init__(self, dim, fn):
        super().__init__()
        self.dim = dim
        self.norm = LayerNormalization(dim)
        self.fn = fn
        self.build()

    def forward(self, x, **kwargs):
        return self.fn(self.norm(x), **kwargs)

    def get_config(self):
        inner = self.fn.get_config() if isinstance(self.fn, Layer) else {}
        return {"dim": self.dim, "fn": {"class_name": type(self.fn).__name__, "config": inner}}


class FeedForward(Layer):
    """Dense(hidden_dim, gelu), dropout, Dense(dim), dropout."""

    def __init__(self, dim, hidden_dim, dropout=0.0):
        super().__init__()
        self.dim, self.hidden_dim, self.rate = dim, hidden_dim, dropout
        self.hidden = Dense(dim, hidden_dim, activation="gelu")
        self.hidden_dropout = nn.Dropout(dropout)
        self.outputs = Dense(hidden_dim, dim)
        self.outputs_dropout = nn.Dropout(dropout)
        self.build()

    def forward(self, x):
        x = self.hidden_dropout(self.hidden(x))
        return self.outputs_dropout(self.outputs(x))

    def get_config(self):
        return {"dim": self.dim, "hidden_dim": self.hidden_dim, "dropout": self.rate}


class Attention(Layer):
    """Multi-head self-attention in the layout of Keras: (batch, tokens, heads, dim_head).

    Axes in the equations: b batch, t tokens (of the queries), s tokens (of the keys), d dim, h heads,
    k dim_head.
    """

    def __init__(self, dim, heads=4, dim_head=64, dropout=0.0):
        super().__init__()
        self.dim, self.heads, self.dim_head, self.rate = dim, heads, dim_head, dropout
        self.query = EinsumDense("btd,dhk->bthk", (dim, heads, dim_head), bias_axes="hk")
        self.key = EinsumDense("btd,dhk->bthk", (dim, heads, dim_head), bias_axes="hk")
        self.value = EinsumDense("btd,dhk->bthk", (dim, heads, dim_head), bias_axes="hk")
        self.attention_output = EinsumDense("bthk,hkd->btd", (heads, dim_head, dim), bias_axes="d")
        self.output_dropout = nn.Dropout(dropout)
        self.build()

    def forward(self, x):
        query = self.query(x) * (1.0 / math.sqrt(self.dim_head))
        key, value = self.key(x), self.value(x)
        scores = torch.einsum("bthk,bshk->bhts", query, key)
        probabilities = scores.softmax(dim=-1)
        context = torch.einsum("bhts,bshk->bthk", probabilities, value)
        return self.output_dropout(self.attention_output(context))

    def get_config(self):
        return {"dim": self.dim, "heads": self.heads, "dim_head": self.dim_head, "dropout": self.rate}


class EncoderBlock(Layer):
    def __init__(self, dim, heads, dim_head, mlp_dim, dropout):
        super().__init__()
        self.attention = PreNorm(dim, Attention(dim, heads=heads, dim_head=dim_head, dropout=dropout))
        self.mlp = PreNorm(dim, FeedForward(dim, mlp_dim, dropout=dropout))
        self.build()

    def call(self, inputs):
        x = inputs + self.attention(inputs)
        return x + self.mlp(x)


class Transformer(Layer):
    """`depth` encoder blocks, one after the other."""

    def __init__(self, dim, depth, heads, dim_head, mlp_dim, dropout=0.0):
        super().__init__()
        self.config = {
            "dim": dim,
            "depth": depth,
            "heads": heads,
            "dim_head": dim_head,
            "mlp_dim": mlp_dim,
            "dropout": dropout,
        }
        for index in range(depth):
            self.add_module(f"encoderblock_{index}", EncoderBlock(dim, heads, dim_head, mlp_dim, dropout))
        self.build()

    @property
    def layers(self):
        return list(self.children())

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x

    def get_config(self):
        return dict(self.config)


class PatchEmbedding(Layer):
    """What Conv2D(dim, patch_size, strides=patch_size) does; the kernel is (height, width, channels, dim)."""

    def __init__(self, image_size, patch_size, channels, dim):
        super().__init__()
        if image_size % patch_size:
            raise ValueError(f"patch_size={patch_size} does not divide image_size={image_size}")
        self.grid, self.patch_size = image_size // patch_size, patch_size
        self.channels, self.dim = channels, dim
        # u, v: place of the patch; y, x: place inside the patch
        self.project = EinsumDense("bcuyvx,yxcd->buvd", (patch_size, patch_size, channels, dim), bias_axes="d")
        self.build()

    def call(self, inputs):
        pieces = inputs.reshape(-1, self.channels, self.grid, self.patch_size, self.grid, self.patch_size)
        return self.project(pieces).flatten(1, 2)


class ClassToken(Layer):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim
        self.build()

    def build(self):
        self.add_weight("cls", (1, 1, self.dim), "random_normal")
        super().build()

    def call(self, inputs):
        return torch.cat([self.cls.expand(inputs.shape[0], -1, -1), inputs], dim=1)


class AddPositionEmbs(Layer):
    def __init__(self, tokens, dim):
        super().__init__()
        self.tokens, self.dim = tokens, dim
        self.build()

    def build(self):
        self.add_weight("pe", (1, self.tokens, self.dim), "random_normal")
        super().build()

    def call(self, inputs):
        return inputs + self.pe


class ViT(Layer):
    """The Vision Transformer: images (batch, channels, image_size, image_size) to logits (batch, num_classes)."""

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
        if pool not in ("cls", "mean"):
            raise ValueError(f"pool must be 'cls' or 'mean', not {pool!r}")
        self.config = {
            "image_size": image_size,
            "patch_size": patch_size,
            "num_classes": num_classes,
            "dim": dim,
            "depth": depth,
            "heads": heads,
            "mlp_dim": mlp_dim,
            "pool": pool,
            "channels": channels,
            "dim_head": dim_head,
            "dropout": dropout,
            "emb_dropout": emb_dropout,
        }
        self.embedding = PatchEmbedding(image_size, patch_size, channels, dim)
        self.class_token = ClassToken(dim)
        self.posembed_input = AddPositionEmbs(self.embedding.grid**2 + 1, dim)
        self.embedding_dropout = nn.Dropout(emb_dropout)
        self.encoder = Transformer(dim, depth, heads, dim_head, mlp_dim, dropout)
        self.head_norm = LayerNormalization(dim)
        self.head = Dense(dim, num_classes)
        self.build()

    def forward(self, img):
        x = self.embedding(img)  # (batch, patches, dim)
        x = self.class_token(x)  # (batch, 1 + patches, dim)
        x = self.embedding_dropout(self.posembed_input(x))
        x = self.encoder(x)
        x = x[:, 0] if self.config["pool"] == "cls" else x.mean(dim=1)
        return self.head(self.head_norm(x))

    def get_config(self):
        return dict(self.config)

    def summary(self):
        print(f"{'Layer (type)':<40}{'Param #':>12}")
        print("=" * 52)
        for name, layer in self.named_children():
            count = sum(p.numel() for p in layer.parameters())
            print(f"{name + ' (' + type(layer).__name__ + ')':<40}{count:>12,}")
        print("=" * 52)
        print(f"{'Total params:':<40}{self.count_params():>12,}")


# %% [markdown]
# ## 4. Training and evaluation
#
# The augmentation consists of layers, as in Keras, but I keep it outside of the model, so that the model
# itself has no randomness except dropout.


# %%
class RandomFlip(nn.Module):
    """Mirrors each image with probability 1/2 along the given axis."""

    def __init__(self, axis):
        super().__init__()
        self.axis = axis

    def forward(self, images):
        chosen = torch.rand(images.shape[0], device=images.device) < 0.5
        chosen = chosen.reshape(-1, *[1] * (images.dim() - 1))
        return torch.where(chosen, images.flip(self.axis), images)


data_augmentation = nn.Sequential(RandomFlip(-1), RandomFlip(-2))


class Mean:
    """keras.metrics.Mean: a weighted running mean."""

    def __init__(self):
        self.reset_state()

    def reset_state(self):
        self.total, self.count = 0.0, 0

    def update_state(self, value, sample_weight=1):
        self.total += float(value) * sample_weight
        self.count += sample_weight

    def result(self):
        return self.total / self.count if self.count else float("nan")


def sparse_categorical_crossentropy(y_true, logits):
    """from_logits=True"""
    return F.cross_entropy(logits, y_true)


def device_of(model):
    return next((p.device for p in model.parameters()), device)


def train_epoch(model, optimizer, data_loader, loss_history):
    """One pass over the data. Every 100 batches the batch's loss is printed and appended to the history."""
    model.train()
    where = device_of(model)
    steps = len(data_loader) if hasattr(data_loader, "__len__") else "?"
    for step, (images, labels) in enumerate(data_loader):
        images, labels = images.to(where), labels.to(where)
        optimizer.zero_grad()
        logits = model(data_augmentation(images))
        loss = sparse_categorical_crossentropy(labels, logits)
        loss.backward()
        optimizer.step()
        if step % 100 == 0:
            print(f"{step + 1}/{steps} - loss: {loss.item():.4f}")
            loss_history.append(loss.item())


@torch.no_grad()
def evaluate(model, data_loader, loss_history):
    """Average loss per image and accuracy; returned as with return_dict=True."""
    model.eval()
    where = device_of(model)
    loss_metric, accuracy_metric = Mean(), Mean()
    for images, labels in data_loader:
        images, labels = images.to(where), labels.to(where)
        logits = model(images)
        weight = labels.shape[0]
        loss_metric.update_state(sparse_categorical_crossentropy(labels, logits), weight)
        accuracy_metric.update_state((logits.argmax(dim=-1) == labels).float().mean(), weight)
    loss_history.append(loss_metric.result())
    print(f"val_loss: {loss_metric.result():.4f} - val_accuracy: {accuracy_metric.result():.4f}")
    return {"loss": loss_metric.result(), "accuracy": accuracy_metric.result()}


# %%
class History:
    def __init__(self):
        self.epoch = []
        self.history = {}

    def append(self, epoch, logs):
        self.epoch.append(epoch)
        for key, value in logs.items():
            self.history.setdefault(key, []).append(value)


class LearningRateScheduler:
    """keras.callbacks.LearningRateScheduler: asks `schedule(epoch)` at the start of each epoch."""

    def __init__(self, schedule):
        self.schedule = schedule

    def on_epoch_begin(self, epoch, trainer):
        for group in trainer.optimizer.param_groups:
            group["lr"] = self.schedule(epoch)


class Trainer:
    """compile, fit, evaluate. The work is done by train_epoch and evaluate."""

    def __init__(self, network):
        self.network = network
        self.optimizer = None

    def compile(self, optimizer):
        self.optimizer = optimizer

    def fit(self, x, epochs=1, validation_data=None, callbacks=()):
        history = History()
        for epoch in range(epochs):
            print(f"Epoch {epoch + 1}/{epochs}")
            for callback in callbacks:
                callback.on_epoch_begin(epoch, self)
            batch_losses = []
            train_epoch(self.network, self.optimizer, x, batch_losses)
            logs = {"loss": float(np.mean(batch_losses)), "lr": self.optimizer.param_groups[0]["lr"]}
            if validation_data is not None:
                logs |= {f"val_{key}": value for key, value in self.evaluate(validation_data).items()}
            history.append(epoch, logs)
        return history

    def evaluate(self, x):
        return evaluate(self.network, x, [])


# %% [markdown]
# ## 5. Train, save, reload

# %%
LEARNING_RATE = 1e-3
N_EPOCHS = 45
WARMUP_EPOCHS = 4

model = ViT(
    image_size=IMAGE_SIZE,
    patch_size=4,
    num_classes=6,
    channels=1,
    dim=64,
    depth=6,
    heads=4,
    mlp_dim=128,
    dropout=0.1,
    emb_dropout=0.1,
)
model.to(device)
model.summary()

optimizer = optim.AdamW(model.parameters(), lr=LEARNING_RATE, weight_decay=0.02)


def schedule(epoch):
    if epoch < WARMUP_EPOCHS:
        return LEARNING_RATE * (epoch + 1) / WARMUP_EPOCHS
    progress = (epoch - WARMUP_EPOCHS) / max(1, N_EPOCHS - WARMUP_EPOCHS)
    return LEARNING_RATE * (0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * progress)))


# %%
start = time.time()
trainer = Trainer(model)
trainer.compile(optimizer)
history = trainer.fit(
    train_loader, epochs=N_EPOCHS, validation_data=test_loader, callbacks=[LearningRateScheduler(schedule)]
)
print(f"Training took {time.time() - start:.1f} s.")

# %%
torch.save(model.state_dict(), f"{STUDENT_ID}.pth")
torch.save(model.state_dict(), f"{STUDENT_ID}_Lab8_Homework.pth")
# the config rebuilds the model, as in Keras
restored_model = ViT.from_config(model.get_config()).to(device)
restored_model.load_state_dict(torch.load(f"{STUDENT_ID}.pth", map_location=device, weights_only=True))
evaluate(restored_model, test_loader, [])

# %%
fig, (left, right) = plt.subplots(1, 2, figsize=(10, 4))
for key in ("loss", "val_loss"):
    left.plot(history.epoch, history.history[key], label=key)
right.plot(history.epoch, history.history["val_accuracy"], label="val_accuracy")
right.axhline(0.6, color="gray", linestyle=":")
for ax in (left, right):
    ax.set_xlabel("epoch")
    ax.legend()
plt.show()

# %% [markdown]
# ## 6. What has it learned?


# %%
@torch.no_grad()
def predict(model, data_loader):
    """model.predict, but with the images and labels of the same pass, because a loader may shuffle."""
    model.eval()
    where = device_of(model)
    images, labels, predictions = [], [], []
    for batch, batch_labels in data_loader:
        predictions.append(model(batch.to(where)).argmax(dim=-1).cpu())
        images.append(batch.cpu())
        labels.append(batch_labels.cpu())
    return torch.cat(images), torch.cat(labels).numpy(), torch.cat(predictions).numpy()


def plot_confusion_matrix(model, data_loader, class_names):
    """Rows: true classes. Columns: predicted classes."""
    _, y_true, y_pred = predict(model, data_loader)
    counts = confusion_matrix(y_true, y_pred, labels=np.arange(len(class_names)))
    fig, ax = plt.subplots(figsize=(7, 6))
    sns.heatmap(
        counts, annot=True, fmt="d", cmap="Blues", xticklabels=class_names, yticklabels=class_names, ax=ax
    )
    ax.set(xlabel="predicted", ylabel="true", title="Confusion matrix")
    fig.tight_layout()
    plt.show()


def plot_classwise_predictions(model, data_loader, class_names, samples_per_class=4):
    """One row per true class, `samples_per_class` images in each."""
    images, y_true, y_pred = predict(model, data_loader)
    fig, axes = plt.subplots(
        len(class_names),
        samples_per_class,
        figsize=(2.4 * samples_per_class, 2.4 * len(class_names)),
        squeeze=False,
    )
    for label, row in enumerate(axes):
        members = np.flatnonzero(y_true == label)[:samples_per_class]
        for ax in row:
            ax.axis("off")
        for ax, index in zip(row, members, strict=False):
            picture = (images[index] * 0.5 + 0.5).clamp(0, 1).permute(1, 2, 0).squeeze(-1).numpy()
            ax.imshow(picture, cmap="gray", vmin=0, vmax=1)
            right_answer = y_pred[index] == label
            ax.set_title(
                f"true: {class_names[label]}\npredicted: {class_names[y_pred[index]]}",
                fontsize=8,
                color="green" if right_answer else "red",
            )
    fig.tight_layout()
    plt.show()


# %%
plot_confusion_matrix(restored_model, test_loader, class_names)
plot_classwise_predictions(restored_model, test_loader, class_names)
