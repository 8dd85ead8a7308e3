# %% [markdown]
# # Fine-tuning a pretrained Vision Transformer
#
# You are given a small Vision Transformer that others have trained on other classes. You adapt it to ten
# classes with few images: an honest split, mixed images, frozen and unfrozen parts, two stages, early
# stopping. Every part that you write says `TODO`: read its docstring, replace the line
# `raise NotImplementedError(...)` by your code, and run `pytest` in this folder to see how far you are.
#
# Names and arguments of the classes and functions are fixed. All numbers (rates, batch size, transforms,
# patience) are yours, within the bounds that README.md states. Accuracies are between 0 and 1; index arrays,
# targets and predictions may be numpy arrays, lists or tensors, on the CPU.

# %%
import copy
import math
import zipfile

import matplotlib.pyplot as plt
import numpy as np
import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from torch import nn, optim
from torch.utils.data import DataLoader, Subset
from torchvision import datasets, transforms

STUDENT_ID = "400104007"
RATE = 0.1        # SGD wants more than Adam
MOMENTUM = 0.9
WEIGHT_DECAY = 1e-4
PATIENCE = 4
PATIENCE_HEAD = 3
BATCH_SIZE = 32
MEAN, STD = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(42)

# %% [markdown]
# ## The model, which is given
#
# The names are those of timm's Vision Transformers, with the class token first. `tiny_vit.safetensors`
# lies beside this file. Leave this section as it is: what is measured is your training of this very model.

# %%
class PatchEmbed(nn.Module):
    """Cuts images into patches, and makes a token of each: (batch, patches, dim), row by row."""

    def __init__(self, patch_size, dim):
        super().__init__()
        self.patch_size = patch_size
        self.proj = nn.Conv2d(3, dim, patch_size, patch_size)

    def forward(self, images):
        return self.proj(images).flatten(2).transpose(1, 2)


class Attention(nn.Module):
    """Self-attention; `qkv` gives queries, keys and values one after the other, head by head in each."""

    def __init__(self, dim, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.qkv = nn.Linear(dim, 3 * dim)
        self.proj = nn.Linear(dim, dim)

    def forward(self, x):
        batch, tokens, dim = x.shape
        q, k, v = self.qkv(x).reshape(batch, tokens, 3, self.num_heads, -1).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v)
        return self.proj(mixed.transpose(1, 2).reshape(batch, tokens, dim))


class Mlp(nn.Module):
    """Two layers, token by token."""

    def __init__(self, dim, hidden):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(dim, hidden), nn.Linear(hidden, dim)

    def forward(self, x):
        return self.fc2(F.gelu(self.fc1(x)))


class Block(nn.Module):
    """A block of the encoder, with its norms before its parts."""

    def __init__(self, dim, num_heads, hidden):
        super().__init__()
        self.norm1, self.attn = nn.LayerNorm(dim), Attention(dim, num_heads)
        self.norm2, self.mlp = nn.LayerNorm(dim), Mlp(dim, hidden)

    def forward(self, x):
        x = x + self.attn(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class VisionTransformer(nn.Module):
    """Maps images (batch, 3, 32, 32) to scores (batch, num_classes)."""

    def __init__(self, num_classes, image_size=32, patch_size=4, dim=96, depth=4, num_heads=4, hidden=192):
        super().__init__()
        self.patch_embed = PatchEmbed(patch_size, dim)
        self.cls_token = nn.Parameter(torch.zeros(1, 1, dim))
        self.pos_embed = nn.Parameter(0.02 * torch.randn(1, (image_size // patch_size) ** 2 + 1, dim))
        self.blocks = nn.Sequential(*[Block(dim, num_heads, hidden) for _ in range(depth)])
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, num_classes)

    def forward(self, images):
        patches = self.patch_embed(images)
        tokens = torch.cat([self.cls_token.expand(len(images), -1, -1), patches], dim=1)
        return self.head(self.norm(self.blocks(tokens + self.pos_embed))[:, 0])


# %%
def build_model(num_classes):
    """The pretrained model, with a new head for `num_classes` classes."""
    model = VisionTransformer(num_classes)
    model.load_state_dict(load_file("tiny_vit.safetensors"), strict=False)  # it has no head
    return model


# %%
def parts(model):
    """(head, blocks, norm) of the given model, and of those of timm and torchvision.

    `blocks` is a list, the first one first; `norm` is the one behind the last block.
    """
    if hasattr(model, "encoder"):  # torchvision's
        return model.heads, list(model.encoder.layers), model.encoder.ln
    return model.head, list(model.blocks), model.norm


# %% [markdown]
# ## The split
#
# scikit-learn's `train_test_split` and its relatives are what you build here.

# %%
def stratified_split(labels, per_class, seed):
    labels = [int(l) for l in labels]
    rng = np.random.default_rng(seed)
    result = [[] for _ in per_class]
    for c in sorted(set(labels)):
        mine = [i for i in range(len(labels)) if labels[i] == c]
        if len(mine) < sum(per_class):
            raise ValueError("class " + str(c) + " has only " + str(len(mine)) + " images")
        rng.shuffle(mine)
        for k in range(len(per_class)):
            for _ in range(per_class[k]):
                result[k].append(mine.pop())
    # so that the classes do not come one after the other
    for part in result:
        rng.shuffle(part)
    return tuple(result)


# %% [markdown]
# ## Mixed images
#
# Ready mixup and cutmix helpers (of timm, torchvision and others) are what you build here. `generator` is a
# `numpy.random.Generator`: draw everything from it, in whatever order you like, so that the same state gives
# the same result.

# %%
def draw_lam(alpha, generator):
    # Beta(a, a) is X / (X + Y) for two Gamma(a) numbers
    if alpha == 0:
        return 1.0
    x = generator.gamma(alpha)
    y = generator.gamma(alpha)
    if x + y == 0:  # alpha is tiny: all the mass is at the two ends
        return float(generator.integers(2))
    return float(x / (x + y))


def draw_order(n, generator):
    order = list(range(n))
    generator.shuffle(order)
    return order


def mixup(images, labels, alpha, generator):
    lam = draw_lam(alpha, generator)
    order = draw_order(images.shape[0], generator)
    rows = []
    for i in range(images.shape[0]):
        rows.append(lam * images[i] + (1 - lam) * images[order[i]])
    return torch.stack(rows), labels, labels[order], lam


# %%
def cutmix(images, labels, alpha, generator):
    lam = draw_lam(alpha, generator)
    order = draw_order(images.shape[0], generator)
    H, W = images.shape[2], images.shape[3]
    # the box lies inside the image, so nothing has to be clipped
    h = int(round(H * math.sqrt(1.0 - lam)))
    w = int(round(W * math.sqrt(1.0 - lam)))
    top = int(generator.integers(0, H - h + 1))
    left = int(generator.integers(0, W - w + 1))
    mixed = copy.deepcopy(images)
    for i in range(len(order)):
        mixed[i, :, top:top + h, left:left + w] = images[order[i], :, top:top + h, left:left + w]
    lam = 1.0 - (h * w) / (H * W)
    return mixed, labels, labels[order], lam


# %%
def mixed_loss(criterion, logits, labels_a, labels_b, lam):
    loss_a = criterion(logits, labels_a)
    loss_b = criterion(logits, labels_b)
    return lam * loss_a + (1 - lam) * loss_b


# %% [markdown]
# ## What learns
#
# `parts(model)` gives head, blocks and norm, whichever model it is.

# %%
def prefixes_of(model, modules):
    # the names that the parameters of these modules begin with
    found = []
    for name, module in model.named_modules():
        for wanted in modules:
            if module is wanted:
                found.append(name + ".")
    return found


def freeze_backbone(model):
    head, blocks, norm = parts(model)
    prefixes = prefixes_of(model, [head])
    for name, p in model.named_parameters():
        learns = False
        for prefix in prefixes:
            if name.startswith(prefix):
                learns = True
        p.requires_grad = learns


# %%
def unfreeze(model, blocks=None):
    if blocks is None:
        for name, p in model.named_parameters():
            p.requires_grad = True
        return
    head, all_blocks, norm = parts(model)
    modules = [head, norm]
    n = len(all_blocks)
    for i in range(n):
        if i >= n - blocks:
            modules.append(all_blocks[i])
    prefixes = prefixes_of(model, modules)
    for name, p in model.named_parameters():
        learns = False
        for prefix in prefixes:
            if name.startswith(prefix):
                learns = True
        p.requires_grad = learns


# %% [markdown]
# ## Training and evaluation

# %%
def train_one_epoch(model, loader, optimizer, criterion, device, mix=None):
    model.train()
    for block in parts(model)[1]:
        flags = [p.requires_grad for p in block.parameters()]
        if True not in flags:
            block.eval()

    losses, hits, counts = [], [], []
    for images, labels in loader:
        images = images.to(device)
        labels = labels.to(device)
        optimizer.zero_grad()
        if mix is not None:
            images, a, b, lam = mix(images, labels)
            out = model(images)
            loss = mixed_loss(criterion, out, a, b, lam)
        else:
            a, b, lam = labels, labels, 1
            out = model(images)
            loss = criterion(out, labels)
        loss.backward()
        optimizer.step()

        guess = torch.max(out, 1)[1]
        hits_a = (guess == a).sum().item()
        hits_b = (guess == b).sum().item()
        n = labels.shape[0]
        losses.append(loss.item() * n)
        hits.append(lam * hits_a + (1 - lam) * hits_b)
        counts.append(n)
    return sum(losses) / sum(counts), sum(hits) / sum(counts)


# %%
def evaluate(model, loader, criterion, device):
    model.eval()
    total = 0.0
    targets = []
    predictions = []
    with torch.no_grad():
        for images, labels in loader:
            images = images.to(device)
            labels = labels.to(device)
            out = model(images)
            total += criterion(out, labels).item() * labels.shape[0]
            targets.extend(labels.tolist())
            predictions.extend(torch.max(out, 1)[1].tolist())
    right = [t == p for t, p in zip(targets, predictions)]
    return total / len(targets), sum(right) / len(targets), targets, predictions


# %%
class EarlyStopping:
    def __init__(self, patience, min_delta=0.0):
        self.patience = patience
        self.min_delta = min_delta
        self.best_value = None
        self.best_state = None
        self.bad = 0

    def step(self, value, model):
        if value != value:  # NaN
            better = False
        elif self.best_value is None:
            better = True
        else:
            better = value > self.best_value + self.min_delta
        if better:
            self.best_value = value
            self.best_state = copy.deepcopy(model.state_dict())
            self.bad = 0
            return False
        self.bad += 1
        return self.bad >= self.patience

    def restore(self, model):
        if self.best_state is not None:
            model.load_state_dict(copy.deepcopy(self.best_state))


# %%
def set_rate(optimizer, rate):
    for group in optimizer.param_groups:
        group["lr"] = rate


def fit(model, loaders, epochs, device):
    model.to(device)
    rng = np.random.default_rng(int(STUDENT_ID) % 1000)
    criterion = nn.CrossEntropyLoss()
    history = {"loss": [], "acc": [], "val_loss": [], "val_acc": [], "lr": [], "stage2": []}
    calls = [0]

    def mix(images, labels):
        # mixup, cutmix, mixup, cutmix, ...
        calls[0] += 1
        if calls[0] % 2 == 1:
            return mixup(images, labels, 0.2, rng)
        return cutmix(images, labels, 1.0, rng)

    def one_epoch(optimizer, use):
        loss, acc = train_one_epoch(model, loaders["train"], optimizer, criterion, device, use)
        val_loss, val_acc, _, _ = evaluate(model, loaders["validation"], criterion, device)
        history["loss"].append(loss)
        history["acc"].append(acc)
        history["val_loss"].append(val_loss)
        history["val_acc"].append(val_acc)
        history["lr"].append(optimizer.param_groups[0]["lr"])
        return val_acc

    # ---- stage 1: the head, without mixing
    freeze_backbone(model)
    head_parameters = [p for p in model.parameters() if p.requires_grad]
    optimizer = optim.SGD(head_parameters, lr=RATE, momentum=MOMENTUM)
    stopper1 = EarlyStopping(PATIENCE_HEAD)
    for e in range(epochs[0]):
        if stopper1.step(one_epoch(optimizer, None), model):
            break
    stopper1.restore(model)

    # ---- stage 2: everything, mixed
    history["stage2"].append(len(history["loss"]))
    unfreeze(model)
    optimizer = optim.SGD(
        [p for p in model.parameters()], lr=RATE / 10, momentum=MOMENTUM, weight_decay=WEIGHT_DECAY
    )
    stopper2 = EarlyStopping(PATIENCE)
    for e in range(epochs[1]):
        set_rate(optimizer, RATE / 10 * 0.5 * (1 + math.cos(math.pi * e / epochs[1])))
        if stopper2.step(one_epoch(optimizer, mix), model):
            break
    stopper2.restore(model)
    return history


# %%
def per_class_accuracy(targets, predictions, classes):
    right = [0] * classes
    count = [0] * classes
    for t, p in zip(targets, predictions):
        t, p = int(t), int(p)
        count[t] += 1
        if t == p:
            right[t] += 1
    return np.array([right[c] / count[c] if count[c] > 0 else float("nan") for c in range(classes)])


# %% [markdown]
# ## Pictures

# %%
def to_picture(image, mean, std):
    channels = []
    for c in range(image.shape[0]):
        channels.append(image[c].detach().cpu().numpy() * float(std[c]) + float(mean[c]))
    picture = np.stack(channels, axis=2)
    return np.round(np.clip(picture, 0, 1) * 255).astype(np.uint8)


def show_patches(image, patch_size, mean, std):
    picture = to_picture(image, mean, std)
    rows = picture.shape[0] // patch_size
    cols = picture.shape[1] // patch_size

    plt.figure(figsize=(3, 3))
    plt.imshow(picture)
    plt.title("the image")
    plt.axis("off")

    fig = plt.figure(figsize=(cols * 0.6, rows * 0.6))
    for r in range(rows):
        for c in range(cols):
            ax = fig.add_subplot(rows, cols, r * cols + c + 1)
            y, x = r * patch_size, c * patch_size
            ax.imshow(picture[y:y + patch_size, x:x + patch_size])
            ax.axis("off")
    fig.suptitle("its patches")
    plt.show()


# %%
def show_attention(model, image, mean, std):
    # the forward pass by hand up to the last block's queries and keys
    dev = model.cls_token.device
    with torch.no_grad():
        x = image.unsqueeze(0).to(dev)
        x = torch.cat([model.cls_token, model.patch_embed(x)], dim=1) + model.pos_embed
        layers = list(model.blocks)
        for layer in layers[:-1]:
            x = layer(x)
        last = layers[-1]
        qkv = last.attn.qkv(last.norm1(x))[0]
        dim = qkv.shape[1] // 3
        d = dim // last.attn.num_heads
        maps = []
        for h in range(last.attn.num_heads):
            q = qkv[0, h * d:(h + 1) * d]
            k = qkv[:, dim + h * d:dim + (h + 1) * d]
            weights = torch.softmax(k @ q / d ** 0.5, dim=0)
            maps.append(weights[1:])
        attention = sum(maps) / len(maps)
    rows = image.shape[1] // model.patch_embed.patch_size
    attention = attention.reshape(rows, -1).cpu().numpy()

    fig, (left, right) = plt.subplots(1, 2, figsize=(8, 4))
    left.imshow(to_picture(image, mean, std))
    left.set_title("image")
    left.axis("off")
    right.imshow(attention, cmap="hot")
    right.set_title("class token, last block")
    right.axis("off")
    plt.show()


# %%
def plot_history(history):
    x = list(range(1, len(history["loss"]) + 1))
    fig, axs = plt.subplots(2, 1, figsize=(7, 8), sharex=True)
    axs[0].plot(x, history["loss"], "b-", label="training loss")
    axs[0].plot(x, history["val_loss"], "r-", label="validation loss")
    axs[0].set_ylabel("loss")
    axs[1].plot(x, history["acc"], "b-", label="training accuracy")
    axs[1].plot(x, history["val_acc"], "r-", label="validation accuracy")
    axs[1].set_ylabel("accuracy")
    for ax in axs:
        ax.axvline(history["stage2"][0] + 1, color="k", linestyle=":", label="first epoch of stage 2")
        ax.set_xlabel("epoch")
        ax.legend()
        ax.grid(True)
    plt.show()


# %%
def plot_per_class(names, accuracies):
    x = list(range(len(names)))
    heights = [0.0 if math.isnan(float(a)) else float(a) for a in accuracies]
    plt.figure(figsize=(9, 4))
    plt.bar(x, heights, color="teal")
    plt.xticks(x, names, rotation=30)
    plt.ylim(0, 1)
    plt.xlabel("class")
    plt.ylabel("accuracy")
    plt.title("accuracy of each class")
    plt.show()


# %%
def plot_confusion_matrix(matrix, class_names):
    rows = [[int(v) for v in row] for row in matrix]
    plt.figure(figsize=(8, 8))
    plt.imshow(rows, cmap="Oranges")
    plt.colorbar()
    for i in range(len(rows)):
        for j in range(len(rows[i])):
            plt.text(j, i, str(rows[i][j]), ha="center", va="center")
    plt.xticks(list(range(len(class_names))), class_names, rotation=60)
    plt.yticks(list(range(len(class_names))), class_names)
    plt.xlabel("predicted")
    plt.ylabel("true")
    plt.title("confusion matrix")
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
train_transform = transforms.Compose(
    [
        transforms.RandomCrop(32, padding=2),
        transforms.RandomHorizontalFlip(),
        transforms.ToTensor(),
        transforms.Normalize(MEAN, STD),
    ]
)
augmented_images = datasets.ImageFolder("data/train", transform=train_transform)
plain_images = datasets.ImageFolder("data/train", transform=plain_transform)
test_images = datasets.ImageFolder("data/test", transform=plain_transform)
class_names = test_images.classes

fewest = min([plain_images.targets.count(c) for c in range(len(class_names))])
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
EPOCHS = (4, 16)
model = build_model(len(class_names))
history = fit(model, loaders, EPOCHS, device)
torch.save(model.state_dict(), f"{STUDENT_ID}_Finetune.pth")
plot_history(history)

# %% [markdown]
# ## Look at it

# %%
loss, accuracy, targets, predictions = evaluate(model, test_loader, nn.CrossEntropyLoss(), device)
print("loss", round(loss, 4), "accuracy", round(accuracy, 4))
plot_per_class(class_names, per_class_accuracy(targets, predictions, len(class_names)))
matrix = [[0] * len(class_names) for _ in class_names]
for t, p in zip(targets, predictions):
    matrix[t][p] += 1
plot_confusion_matrix(matrix, class_names)

# %%
images, labels = next(iter(test_loader))
show_patches(images[0], 4, MEAN, STD)
show_attention(model, images[0], MEAN, STD)
