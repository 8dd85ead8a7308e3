# %% [markdown]
# # Fine-tuning a pretrained Vision Transformer
#
# Student 400105001. Split, mixup/cutmix, freezing, two stages, pictures.

# %%
import math
import zipfile

import matplotlib.pyplot as plt
import numpy as np
import torch
import torch.nn.functional as F
from handout import build_model, parts
from torch import nn, optim
from torch.utils.data import DataLoader, Subset
from torchvision import datasets, transforms

STUDENT_ID = "400105001"
RATE = 3e-3
PATIENCE = 5
BATCH_SIZE = 64
ALPHA = 0.4
MEAN, STD = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(42)

# %% [markdown]
# ## The split


# %%
def stratified_split(labels, per_class, seed):
    labels, rng = np.asarray(labels), np.random.default_rng(seed)
    cuts = np.cumsum((0, *per_class))
    shuffled = [rng.permutation(np.where(labels == c)[0]) for c in np.unique(labels)]
    if any(len(rows) < cuts[-1] for rows in shuffled):
        raise ValueError("a class has too few images for these parts")
    return tuple(
        np.sort(np.concatenate([rows[a:b] for rows in shuffled])) for a, b in zip(cuts[:-1], cuts[1:])
    )


# %% [markdown]
# ## Mixed images


# %%
def mixup(images, labels, alpha, generator):
    lam = float(generator.beta(alpha, alpha)) if alpha else 1.0
    partner = torch.from_numpy(generator.permutation(len(images))).to(images.device)
    return torch.lerp(images[partner], images, lam), labels, labels[partner], lam


def cutmix(images, labels, alpha, generator):
    lam = float(generator.beta(alpha, alpha)) if alpha else 1.0
    partner = torch.from_numpy(generator.permutation(len(images))).to(images.device)
    (height, width), side = images.shape[-2:], math.sqrt(1 - lam)
    h, w = round(side * height), round(side * width)
    # the rectangle always lies inside, so nothing has to be clipped
    y, x = int(generator.integers(height - h + 1)), int(generator.integers(width - w + 1))
    inside = torch.zeros(height, width, dtype=torch.bool, device=images.device)
    inside[y : y + h, x : x + w] = True
    return torch.where(inside, images[partner], images), labels, labels[partner], 1 - h * w / (height * width)


def mixed_loss(criterion, logits, labels_a, labels_b, lam):
    return lam * criterion(logits, labels_a) + (1 - lam) * criterion(logits, labels_b)


# %% [markdown]
# ## What learns


# %%
def freeze_backbone(model):
    model.requires_grad_(False)
    parts(model)[0].requires_grad_(True)


def unfreeze(model, blocks=None):
    model.requires_grad_(blocks is None)
    if blocks is not None:
        head, every, norm = parts(model)
        for module in (head, norm, *every[::-1][:blocks]):
            module.requires_grad_(True)


# %% [markdown]
# ## Training and evaluation


# %%
def hits(logits, labels):
    return (logits.argmax(1) == labels).sum().item()


def train_one_epoch(model, loader, optimizer, criterion, device, mix=None):
    model.train()
    for block in parts(model)[1]:
        block.train(any(p.requires_grad for p in block.parameters()))
    sums = np.zeros(3)  # loss, hits, images
    for images, labels in loader:
        images, labels = images.to(device), labels.to(device)
        images, a, b, lam = mix(images, labels) if mix else (images, labels, labels, 1.0)
        logits = model(images)
        loss = mixed_loss(criterion, logits, a, b, lam) if mix else criterion(logits, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        n = len(images)
        sums += (loss.item() * n, lam * hits(logits, a) + (1 - lam) * hits(logits, b), n)
    return float(sums[0] / sums[2]), float(sums[1] / sums[2])


@torch.no_grad()
def evaluate(model, loader, criterion, device):
    model.eval()
    loss, targets, predictions = 0.0, [], []
    for images, labels in loader:
        logits = model(images.to(device))
        loss += criterion(logits, labels.to(device)).item() * len(labels)
        targets += labels.tolist()
        predictions += logits.argmax(1).tolist()
    targets, predictions = np.array(targets), np.array(predictions)
    return loss / len(targets), float(np.mean(targets == predictions)), targets, predictions


# %%
class EarlyStopping:
    def __init__(self, patience, min_delta=0.0):
        self.patience, self.min_delta = patience, min_delta
        self.best, self.state, self.waited = None, None, 0

    def step(self, value, model):
        if value == value and (self.best is None or value > self.best + self.min_delta):  # NaN != NaN
            self.best, self.waited = value, 0
            self.state = {k: v.clone() for k, v in model.state_dict().items()}
            return False
        self.waited += 1
        return self.waited > self.patience

    def restore(self, model):
        if self.state:
            model.load_state_dict(self.state)


# %%
def fit(model, loaders, epochs, device):
    model.to(device)
    rng = np.random.default_rng(0)
    smooth, plain = nn.CrossEntropyLoss(label_smoothing=0.1), nn.CrossEntropyLoss()
    history = {"loss": [], "acc": [], "val_loss": [], "val_acc": [], "stage": []}

    def mix(images, labels):
        return (mixup if rng.random() < 0.5 else cutmix)(images, labels, ALPHA, rng)

    def run(stage, optimizer, mixing):
        train = train_one_epoch(model, loaders["train"], optimizer, smooth, device, mixing)
        validation = evaluate(model, loaders["validation"], plain, device)[:2]
        for key, value in zip(history, (*train, *validation, stage)):
            history[key].append(value)
        return validation[1]

    freeze_backbone(model)
    optimizer = optim.Adam([p for p in model.parameters() if p.requires_grad], lr=RATE)
    for _ in range(epochs[0]):
        run(1, optimizer, None)

    unfreeze(model)
    optimizer = optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=RATE / 10)
    schedule = optim.lr_scheduler.LambdaLR(optimizer, lambda t: (1 + math.cos(math.pi * t / max(epochs[1], 1))) / 2)
    stopper = EarlyStopping(PATIENCE)
    for _ in range(epochs[1]):
        accuracy = run(2, optimizer, mix)
        schedule.step()
        if stopper.step(accuracy, model):
            break
    stopper.restore(model)
    return history


# %%
def per_class_accuracy(targets, predictions, classes):
    targets, predictions = np.asarray(targets), np.asarray(predictions)
    return np.array(
        [np.mean(predictions[targets == c] == c) if (targets == c).any() else np.nan for c in range(classes)]
    )


# %% [markdown]
# ## Pictures


# %%
def as_it_was(image, mean, std):
    image = image.detach().cpu().numpy().transpose(1, 2, 0)
    return np.clip(image * np.array(std) + np.array(mean), 0, 1)


def show_patches(image, patch_size, mean, std):
    picture = as_it_was(image, mean, std)
    rows, columns = picture.shape[0] // patch_size, picture.shape[1] // patch_size
    plt.figure(figsize=(3, 3))
    plt.imshow(picture)
    plt.title("image")
    plt.axis("off")
    _, axes = plt.subplots(rows, columns, figsize=(4, 4), squeeze=False)
    for (r, c), ax in np.ndenumerate(axes):
        ax.imshow(picture[r * patch_size : (r + 1) * patch_size, c * patch_size : (c + 1) * patch_size])
        ax.set_axis_off()
    plt.show()


def show_attention(model, image, mean, std):
    attn, seen = parts(model)[1][-1].attn, {}
    handle = attn.qkv.register_forward_hook(lambda m, i, out: seen.update(qkv=out[0]))
    modes = {m: m.training for m in model.modules()}
    model.eval()
    with torch.no_grad():
        model(image[None].to(next(model.parameters()).device))
    handle.remove()
    for m, mode in modes.items():
        m.training = mode
    q, k, _ = seen["qkv"].unflatten(-1, (3, attn.num_heads, -1)).permute(1, 2, 0, 3)
    weights = F.softmax(q @ k.mT / q.shape[-1] ** 0.5, dim=-1).mean(0)  # (tokens, tokens)
    side = math.isqrt(len(weights) - 1)
    heat = weights[0, 1:].reshape(side, side)
    _, (left, right) = plt.subplots(1, 2, figsize=(7, 3))
    left.imshow(as_it_was(image, mean, std))
    left.set_title("image")
    right.imshow(heat.cpu().numpy())
    right.set_title("attention of the class token")
    left.set_axis_off()
    right.set_axis_off()
    plt.show()


# %%
def plot_history(history):
    x = np.arange(1, len(history["stage"]) + 1)
    _, axes = plt.subplots(1, 2, figsize=(10, 4))
    for ax, key, name in zip(axes, ("loss", "acc"), ("loss", "accuracy")):
        ax.plot(x, history[key], label=f"training {name}")
        ax.plot(x, history["val_" + key], label=f"validation {name}")
        ax.axvline(history["stage"].count(1) + 0.5, ls=":", c="k", label="start of stage 2")
        ax.set(xlabel="epoch", ylabel=name)
        ax.legend()
    plt.show()


def plot_per_class(names, accuracies):
    _, ax = plt.subplots(figsize=(7, 4))
    ax.barh(range(len(names)), np.asarray(accuracies, float))
    ax.set_yticks(range(len(names)), names)
    ax.invert_yaxis()
    ax.set(xlabel="accuracy", ylabel="class", xlim=(0, 1))
    plt.tight_layout()
    plt.show()


def plot_confusion_matrix(matrix, class_names):
    matrix = np.asarray(matrix)
    _, ax = plt.subplots(figsize=(7, 7))
    ax.imshow(matrix, cmap="Greens")
    for (row, column), count in np.ndenumerate(matrix):
        ax.text(column, row, f"{int(count)}", ha="center", va="center")
    ax.set_xticks(range(len(class_names)), class_names, rotation=90)
    ax.set_yticks(range(len(class_names)), class_names)
    ax.set(xlabel="predicted", ylabel="true")
    plt.tight_layout()
    plt.show()


# %% [markdown]
# ## The images
#
# `dataset.zip` must lie beside this file. It holds `train/<class>/` and `test/<class>/`. A fifth of the
# training images is kept apart: choose whatever you choose by these *validation* images, and look at the test
# images once, at the end. Validation and test images are never augmented.

# %%
with zipfile.ZipFile("dataset.zip") as archive:
    archive.extractall("data")

plain_transform = transforms.Compose([transforms.ToTensor(), transforms.Normalize(MEAN, STD)])
train_transform = transforms.Compose([transforms.RandomHorizontalFlip(), plain_transform])
augmented_images = datasets.ImageFolder("data/train", transform=train_transform)
plain_images = datasets.ImageFolder("data/train", transform=plain_transform)
test_images = datasets.ImageFolder("data/test", transform=plain_transform)
class_names = test_images.classes

fewest = int(np.bincount(plain_images.targets).min())
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
matrix = np.zeros((len(class_names), len(class_names)), dtype=int)
np.add.at(matrix, (np.asarray(targets), np.asarray(predictions)), 1)
plot_confusion_matrix(matrix, class_names)

# %%
images, labels = next(iter(test_loader))
show_patches(images[0], 4, MEAN, STD)
show_attention(model, images[0], MEAN, STD)
