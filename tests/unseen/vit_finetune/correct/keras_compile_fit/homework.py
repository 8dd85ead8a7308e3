# %% [markdown]
# # Fine-tuning a pretrained Vision Transformer
#
# I learned deep learning with Keras, so I brought the habits along: `compile`, `fit`, callbacks, metrics with
# `update_state` / `result`, `trainable`, `get_weights` / `set_weights`.

# %%
import math
import zipfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import torch
from handout import build_model, parts
from torch import nn, optim
from torch.utils.data import DataLoader, Subset
from torchvision import datasets, transforms

STUDENT_ID = "400104001"
RATE = 3e-3
PATIENCE = 4
BATCH_SIZE = 64
LABEL_SMOOTHING = 0.05
MIXUP_ALPHA, CUTMIX_ALPHA = 0.2, 1.0
MEAN, STD = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(42)

# %% [markdown]
# ## The split


# %%
def stratified_split(labels, per_class, seed):
    """Splits images into parts with exactly as many images of every class as is asked for."""
    rng = np.random.default_rng(seed)
    rows_by_class = {}
    for row, label in enumerate(np.asarray(labels).tolist()):
        rows_by_class.setdefault(label, []).append(row)
    needed = sum(per_class)
    parts_ = [[] for _ in per_class]
    for label in sorted(rows_by_class):
        rows = rows_by_class[label]
        if len(rows) < needed:
            raise ValueError(f"class {label} has {len(rows)} images, but the parts need {needed}")
        rng.shuffle(rows)
        for part, count in zip(parts_, per_class):
            for _ in range(count):
                part.append(rows.pop())
    return tuple(np.array(part, dtype=np.int64) for part in parts_)


# %% [markdown]
# ## Mixed images, after the code examples on keras.io (crop, pad, add)


# %%
def sample_share(alpha, generator):
    return float(generator.beta(alpha, alpha)) if alpha > 0 else 1.0


def crop_to_bounding_box(images, top, left, height, width):
    return images[:, :, top : top + height, left : left + width]


def pad_to_bounding_box(crops, top, left, height, width):
    canvas = crops.new_zeros(*crops.shape[:2], height, width)
    canvas[:, :, top : top + crops.shape[2], left : left + crops.shape[3]] = crops
    return canvas


def get_box(lam, height, width, generator):
    """(top, left, box height, box width), cut off at the border."""
    ratio = math.sqrt(1.0 - lam)
    cut_h, cut_w = int(height * ratio), int(width * ratio)
    center_y, center_x = int(generator.integers(height)), int(generator.integers(width))
    top, left = max(center_y - cut_h // 2, 0), max(center_x - cut_w // 2, 0)
    bottom, right = min(center_y - cut_h // 2 + cut_h, height), min(center_x - cut_w // 2 + cut_w, width)
    return top, left, max(bottom - top, 0), max(right - left, 0)


def mixup(images, labels, alpha, generator):
    """lam * images + (1 - lam) * the same images in another order."""
    lam = sample_share(alpha, generator)
    order = torch.as_tensor(generator.permutation(len(images)), device=images.device)
    return images * lam + images[order] * (1.0 - lam), labels, labels[order.to(labels.device)], lam


def cutmix(images, labels, alpha, generator):
    """One box of all images comes from the same images in another order."""
    height, width = images.shape[-2:]
    lam = sample_share(alpha, generator)
    order = torch.as_tensor(generator.permutation(len(images)), device=images.device)
    top, left, box_h, box_w = get_box(lam, height, width, generator)
    # what I see of the one, with a hole of zeros, plus what I see of the other, with zeros around
    hole = pad_to_bounding_box(crop_to_bounding_box(images, top, left, box_h, box_w), top, left, height, width)
    plug = pad_to_bounding_box(
        crop_to_bounding_box(images[order], top, left, box_h, box_w), top, left, height, width
    )
    lam = 1.0 - box_h * box_w / (height * width)
    return (images - hole) + plug, labels, labels[order.to(labels.device)], lam


def mixed_loss(criterion, logits, labels_a, labels_b, lam):
    return criterion(logits, labels_a) * lam + criterion(logits, labels_b) * (1.0 - lam)


# %% [markdown]
# ## What learns: `layer.trainable = ...`


# %%
def set_trainable(layer, value):
    for variable in layer.parameters():
        variable.requires_grad = value


def trainable_variables(model):
    return [variable for variable in model.parameters() if variable.requires_grad]


def freeze_backbone(model):
    head, _, _ = parts(model)
    set_trainable(model, False)
    set_trainable(head, True)


def unfreeze(model, blocks=None):
    if blocks is None:
        set_trainable(model, True)
        return
    _, layers, norm = parts(model)
    freeze_backbone(model)
    set_trainable(norm, True)
    for distance_from_end, layer in enumerate(reversed(layers)):
        if distance_from_end < blocks:
            set_trainable(layer, True)


def summary(model):
    every = sum(variable.numel() for variable in model.parameters())
    trainable = sum(variable.numel() for variable in trainable_variables(model))
    print(f"Total params: {every:,}  Trainable: {trainable:,}  Non-trainable: {every - trainable:,}")


# %% [markdown]
# ## Metrics and losses


# %%
class Mean:
    """`tf.keras.metrics.Mean`."""

    def __init__(self, name="mean"):
        self.name = name
        self.reset_state()

    def reset_state(self):
        self.total, self.count = 0.0, 0

    def update_state(self, value, sample_weight=1):
        self.total += float(value) * sample_weight
        self.count += sample_weight

    def result(self):
        return self.total / self.count if self.count else float("nan")


class CategoricalCrossentropy:
    """One-hot targets, smoothed, against log-probabilities; mean over the batch."""

    def __init__(self, label_smoothing=0.0):
        self.label_smoothing = label_smoothing

    def __call__(self, logits, labels):
        classes = logits.shape[-1]
        one_hot = nn.functional.one_hot(labels, classes).to(logits.dtype)
        y_true = one_hot * (1.0 - self.label_smoothing) + self.label_smoothing / classes
        return -(y_true * logits.log_softmax(dim=-1)).sum(dim=-1).mean()


# %% [markdown]
# ## Training and evaluation


# %%
def hits(logits, labels):
    return (logits.argmax(dim=-1) == labels).float().mean().item()


def train_on_batch(model, x, y, optimizer, criterion, mix):
    """Returns (loss, accuracy) of the batch."""
    optimizer.zero_grad()
    if mix is None:
        logits = model(x)
        loss = criterion(logits, y)
        accuracy = hits(logits, y)
    else:
        x, y_a, y_b, lam = mix(x, y)
        logits = model(x)
        loss = mixed_loss(criterion, logits, y_a, y_b, lam)
        accuracy = lam * hits(logits, y_a) + (1.0 - lam) * hits(logits, y_b)
    loss.backward()
    optimizer.step()
    return loss.item(), accuracy


def train_one_epoch(model, loader, optimizer, criterion, device, mix=None):
    loss_metric, accuracy_metric = Mean("loss"), Mean("accuracy")
    model.train()
    for layer in parts(model)[1]:
        if not trainable_variables(layer):
            layer.eval()  # like Keras: a frozen layer runs in inference mode
    for x, y in loader:
        x, y = x.to(device), y.to(device)
        loss, accuracy = train_on_batch(model, x, y, optimizer, criterion, mix)
        loss_metric.update_state(loss, sample_weight=len(x))
        accuracy_metric.update_state(accuracy, sample_weight=len(x))
    return loss_metric.result(), float(accuracy_metric.result())


@torch.no_grad()
def evaluate(model, loader, criterion, device):
    model.eval()
    loss_metric, accuracy_metric = Mean("val_loss"), Mean("val_accuracy")
    y_true, y_pred = [], []
    for x, y in loader:
        x, y = x.to(device), y.to(device)
        logits = model(x)
        loss_metric.update_state(criterion(logits, y).item(), sample_weight=len(x))
        accuracy_metric.update_state(hits(logits, y), sample_weight=len(x))
        y_true.append(y.cpu().numpy())
        y_pred.append(logits.argmax(dim=-1).cpu().numpy())
    return loss_metric.result(), accuracy_metric.result(), np.concatenate(y_true), np.concatenate(y_pred)


# %% [markdown]
# ## Early stopping


# %%
def get_weights(model):
    return [tensor.detach().cpu().numpy().copy() for tensor in model.state_dict().values()]


def set_weights(model, weights):
    names = model.state_dict().keys()
    model.load_state_dict({name: torch.from_numpy(array.copy()) for name, array in zip(names, weights)})


class EarlyStopping:
    """As `keras.callbacks.EarlyStopping(mode="max", restore_best_weights=True)` would do it."""

    def __init__(self, patience, min_delta=0.0):
        self.patience = patience
        self.min_delta = min_delta
        self.wait = 0
        self.best = None
        self.best_weights = None

    def _is_improvement(self, value):
        if math.isnan(value):
            return False
        return self.best is None or value > self.best + self.min_delta

    def step(self, value, model):
        value = float(value)
        self.wait += 1
        if self._is_improvement(value):
            self.best = value
            self.best_weights = get_weights(model)
            self.wait = 0
        return self.wait >= self.patience

    def restore(self, model):
        if self.best_weights is not None:
            set_weights(model, self.best_weights)


# %% [markdown]
# ## compile, fit, callbacks


# %%
class Callback:
    network = None

    def on_epoch_begin(self, epoch):
        pass

    def on_epoch_end(self, epoch, logs):
        pass

    def on_train_end(self):
        pass


class History(Callback):
    """Lists by name, over all calls of `fit`."""

    def __init__(self):
        self.history = {"stage": []}
        self.stage = 1

    def on_epoch_end(self, epoch, logs):
        self.history["stage"].append(self.stage)
        for name, value in logs.items():
            self.history.setdefault(name, []).append(value)


class ProgbarLogger(Callback):
    def on_epoch_end(self, epoch, logs):
        print(f"Epoch {epoch + 1}: " + " - ".join(f"{name}: {value:.4f}" for name, value in logs.items()))


class CosineDecay:
    """`keras.optimizers.schedules.CosineDecay`, in epochs."""

    def __init__(self, initial_learning_rate, decay_steps):
        self.initial_learning_rate, self.decay_steps = initial_learning_rate, decay_steps

    def __call__(self, step):
        done = min(step, self.decay_steps) / self.decay_steps
        return self.initial_learning_rate * 0.5 * (1.0 + math.cos(math.pi * done))


class LearningRateScheduler(Callback):
    def __init__(self, schedule, first_epoch):
        self.schedule, self.first_epoch = schedule, first_epoch

    def on_epoch_begin(self, epoch):
        for group in self.network.optimizer.param_groups:
            group["lr"] = self.schedule(epoch - self.first_epoch)


class StopOnPlateau(Callback):
    """Asks an `EarlyStopping`, and brings the best weights back in the end."""

    def __init__(self, monitor, stopping):
        self.monitor, self.stopping = monitor, stopping

    def on_epoch_end(self, epoch, logs):
        if self.stopping.step(logs[self.monitor], self.network.model):
            self.network.stop_training = True

    def on_train_end(self):
        self.stopping.restore(self.network.model)


class Network:
    def __init__(self, model, device):
        self.model, self.device = model.to(device), device

    def compile(self, optimizer, loss, mix=None):
        self.optimizer, self.loss, self.mix = optimizer, loss, mix
        self.stop_training = False

    def fit(self, loaders, epochs, initial_epoch=0, callbacks=()):
        for callback in callbacks:
            callback.network = self
        for epoch in range(initial_epoch, epochs):
            for callback in callbacks:
                callback.on_epoch_begin(epoch)
            loss, accuracy = train_one_epoch(
                self.model, loaders["train"], self.optimizer, self.loss, self.device, self.mix
            )
            val_loss, val_accuracy, _, _ = evaluate(
                self.model, loaders["validation"], CategoricalCrossentropy(), self.device
            )
            logs = {"loss": loss, "accuracy": accuracy, "val_loss": val_loss, "val_accuracy": val_accuracy}
            for callback in callbacks:
                callback.on_epoch_end(epoch, logs)
            if self.stop_training:
                break
        for callback in callbacks:
            callback.on_train_end()


class RandomMix:
    """Mixup, cutmix or neither, a third of the batches each."""

    def __init__(self, seed):
        self.generator = np.random.default_rng(seed)

    def __call__(self, x, y):
        kind = self.generator.integers(3)
        if kind == 0:
            return mixup(x, y, MIXUP_ALPHA, self.generator)
        if kind == 1:
            return cutmix(x, y, CUTMIX_ALPHA, self.generator)
        return x, y, y, 1.0


def fit(model, loaders, epochs, device):
    head_epochs, full_epochs = epochs
    network, history = Network(model, device), History()
    loss = CategoricalCrossentropy(label_smoothing=LABEL_SMOOTHING)

    freeze_backbone(model)
    summary(model)
    network.compile(optim.Adam(trainable_variables(model), lr=RATE, eps=1e-7), loss)
    network.fit(loaders, head_epochs, callbacks=[history, ProgbarLogger()])

    history.stage = 2
    unfreeze(model)
    summary(model)
    network.compile(optim.Adam(trainable_variables(model), lr=RATE / 10, eps=1e-7), loss, RandomMix(seed=7))
    callbacks = [
        LearningRateScheduler(CosineDecay(RATE / 10, full_epochs), first_epoch=head_epochs),
        history,
        ProgbarLogger(),
        StopOnPlateau("val_accuracy", EarlyStopping(PATIENCE)),
    ]
    network.fit(loaders, head_epochs + full_epochs, initial_epoch=head_epochs, callbacks=callbacks)
    return history.history


# %%
def confusion_matrix(targets, predictions, classes):
    """`tf.math.confusion_matrix`."""
    flat = np.asarray(targets, dtype=np.int64) * classes + np.asarray(predictions, dtype=np.int64)
    return np.bincount(flat, minlength=classes * classes).reshape(classes, classes)


def per_class_accuracy(targets, predictions, classes):
    matrix = confusion_matrix(targets, predictions, classes)
    images = matrix.sum(axis=1)
    return np.where(images > 0, np.diagonal(matrix) / np.maximum(images, 1), np.nan)


# %% [markdown]
# ## Pictures


# %%
def to_picture(image, mean, std):
    channels_last = image.detach().cpu().permute(1, 2, 0).numpy()
    return np.clip(channels_last * np.asarray(std) + np.asarray(mean), 0.0, 1.0)


def show_patches(image, patch_size, mean, std):
    """As on keras.io: the image in a figure, its patches in another one."""
    picture = to_picture(image, mean, std)
    plt.figure(figsize=(4, 4))
    plt.imshow(picture)
    plt.axis("off")
    rows, columns = picture.shape[0] // patch_size, picture.shape[1] // patch_size
    plt.figure(figsize=(4, 4 * rows / columns))
    for number in range(rows * columns):
        y, x = divmod(number, columns)
        plt.subplot(rows, columns, number + 1)
        plt.imshow(picture[y * patch_size : (y + 1) * patch_size, x * patch_size : (x + 1) * patch_size])
        plt.axis("off")


def show_attention(model, image, mean, std):
    """A hook before the last block's attention catches its input; the rest is a softmax."""
    attention, caught = parts(model)[1][-1].attn, {}
    handle = attention.register_forward_pre_hook(lambda module, inputs: caught.update(x=inputs[0]))
    try:
        with torch.no_grad():
            model(image[None].to(next(model.parameters()).device))
            x = caught["x"]
            dim = x.shape[-1]
            query, key, _ = (
                t.unflatten(-1, (attention.num_heads, dim // attention.num_heads)).transpose(1, 2)
                for t in attention.qkv(x).chunk(3, dim=-1)
            )
    finally:
        handle.remove()
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    row = scores.softmax(dim=-1).mean(dim=1)[0, 0, 1:]
    columns = image.shape[-1] // model.patch_embed.patch_size
    plt.figure(figsize=(8, 4))
    plt.subplot(1, 2, 1)
    plt.imshow(to_picture(image, mean, std))
    plt.title("image")
    plt.axis("off")
    plt.subplot(1, 2, 2)
    plt.imshow(row.reshape(-1, columns).cpu().numpy(), cmap="magma")
    plt.title("attention of the class token")
    plt.axis("off")
    plt.colorbar()


def plot_history(history):
    """Two figures, one for each quantity."""
    epochs = np.arange(1, len(history["stage"]) + 1)
    start = history["stage"].count(1) + 0.5
    for name, title in (("loss", "Loss"), ("accuracy", "Accuracy")):
        plt.figure()
        plt.plot(epochs, history[name], "o-", label=f"training {name}")
        plt.plot(epochs, history["val_" + name], "s--", label=f"validation {name}")
        plt.axvline(start, color="gray", linestyle=":", label="stage 2 begins")
        plt.title(title)
        plt.xlabel("epoch")
        plt.ylabel(name)
        plt.legend()


def plot_per_class(names, accuracies):
    plt.figure(figsize=(8, 4))
    plt.bar(range(len(names)), accuracies, color="tab:orange")
    plt.xticks(range(len(names)), names, rotation=45, ha="right")
    plt.xlim(-0.6, len(names) - 0.4)
    plt.ylim(0, 1)
    plt.xlabel("class")
    plt.ylabel("accuracy")
    plt.tight_layout()


def plot_confusion_matrix(matrix, class_names):
    matrix = np.asarray(matrix)
    plt.figure(figsize=(8, 8))
    plt.imshow(matrix, cmap="Blues")
    plt.colorbar(label="images")
    for true in range(len(matrix)):
        for predicted in range(len(matrix)):
            dark = matrix[true, predicted] > matrix.max() / 2
            plt.text(
                predicted, true, str(int(matrix[true, predicted])), ha="center", va="center",
                color="white" if dark else "black",
            )  # fmt: skip
    plt.xticks(range(len(class_names)), class_names, rotation=45, ha="right")
    plt.yticks(range(len(class_names)), class_names)
    plt.xlabel("predicted class")
    plt.ylabel("true class")
    plt.tight_layout()


# %% [markdown]
# ## The images

# %%
if not Path("data/train").is_dir():
    with zipfile.ZipFile("dataset.zip") as archive:
        archive.extractall("data")

plain_transform = transforms.Compose([transforms.ToTensor(), transforms.Normalize(MEAN, STD)])
train_transform = transforms.Compose([transforms.RandomHorizontalFlip(), plain_transform])
augmented_images = datasets.ImageFolder("data/train", transform=train_transform)
plain_images = datasets.ImageFolder("data/train", transform=plain_transform)
test_images = datasets.ImageFolder("data/test", transform=plain_transform)
class_names = test_images.classes

fewest = min(plain_images.targets.count(label) for label in range(len(class_names)))
training_rows, validation_rows = stratified_split(
    plain_images.targets, (fewest - fewest // 5, fewest // 5), seed=42
)
loaders = {
    "train": DataLoader(Subset(augmented_images, training_rows), batch_size=BATCH_SIZE, shuffle=True),
    "validation": DataLoader(Subset(plain_images, validation_rows), batch_size=256),
}
test_loader = DataLoader(test_images, batch_size=256)

# %% [markdown]
# ## Train it

# %%
EPOCHS = (3, 12)
model = build_model(len(class_names))
history = fit(model, loaders, EPOCHS, device)
torch.save(model.state_dict(), f"{STUDENT_ID}_Finetune.pth")
plot_history(history)

# %% [markdown]
# ## Look at it

# %%
loss, accuracy, targets, predictions = evaluate(model, test_loader, nn.CrossEntropyLoss(), device)
print(f"loss {loss:.4f}, accuracy {accuracy:.4f}")
plot_per_class(class_names, per_class_accuracy(targets, predictions, len(class_names)))
plot_confusion_matrix(confusion_matrix(targets, predictions, len(class_names)), class_names)

# %%
images, labels = next(iter(test_loader))
show_patches(images[0], 4, MEAN, STD)
show_attention(model, images[0], MEAN, STD)
plt.show()
