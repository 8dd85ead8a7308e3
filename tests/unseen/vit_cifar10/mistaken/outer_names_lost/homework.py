# %% [markdown]
# # A Vision Transformer for CIFAR-10, compared with a ResNet

# %%
import csv
import math
import zipfile
import copy

import matplotlib.pyplot as plt
import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn, optim
from torch.utils.data import DataLoader, Subset
from torchvision import datasets, transforms

STUDENT_ID = "400103021"

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(42)

# %% [markdown]
# ## The images

# %%
MEAN, STD = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)
BATCH_SIZE = 64

with zipfile.ZipFile("dataset.zip") as archive:
    archive.extractall("data")

plain_transform = transforms.Compose([transforms.ToTensor(), transforms.Normalize(MEAN, STD)])
train_transform = transforms.Compose(
    [transforms.RandomCrop(32, padding=4), transforms.RandomHorizontalFlip(), plain_transform]
)
augmented_images = datasets.ImageFolder("data/train", transform=train_transform)
plain_images = datasets.ImageFolder("data/train", transform=plain_transform)
test_images = datasets.ImageFolder("data/test", transform=plain_transform)
class_names = test_images.classes

order = torch.randperm(len(plain_images), generator=torch.Generator().manual_seed(42)).tolist()
held = len(order) // 10
loaders = {
    "train": DataLoader(Subset(augmented_images, order[held:]), batch_size=BATCH_SIZE, shuffle=True),
    "validation": DataLoader(Subset(plain_images, order[:held]), batch_size=256),
}
test_loader = DataLoader(test_images, batch_size=256)

# %% [markdown]
# ## The Vision Transformer

# %%
class PatchEmbedding(nn.Module):
    """Patches by a convolution that steps from patch to patch."""

    def __init__(self, image_size, patch_size, in_channels, dim):
        super().__init__()
        self.num_patches = (image_size // patch_size) ** 2
        self.projection = nn.Conv2d(in_channels, dim, kernel_size=patch_size, stride=patch_size)

    def forward(self, images):
        grid = self.projection(images)
        return grid.flatten(start_dim=2).transpose(1, 2)


# %%
def sinusoidal_positions(tokens, dim):
    position = torch.arange(tokens).unsqueeze(1)
    div_term = torch.exp(torch.arange(0, dim, 2) * (-math.log(10000.0) / dim))
    pe = torch.zeros(tokens, dim)
    pe[:, 0::2] = torch.sin(position * div_term)
    pe[:, 1::2] = torch.cos(position * div_term)
    return pe


# %%
class MultiHeadSelfAttention(nn.Module):
    """The output projection begins with zeros, so that every block begins as the identity."""

    def __init__(self, dim, heads, dropout=0.0):
        super().__init__()
        self.heads = heads
        self.head_dim = dim // heads
        self.to_q = nn.Linear(dim, dim)
        self.to_k = nn.Linear(dim, dim)
        self.to_v = nn.Linear(dim, dim)
        self.drop = nn.Dropout(dropout)
        self.to_out = nn.Linear(dim, dim)
        nn.init.zeros_(self.to_out.weight)
        nn.init.zeros_(self.to_out.bias)

    def split_heads(self, x):
        batch, tokens, _ = x.shape
        return x.view(batch, tokens, self.heads, self.head_dim).transpose(1, 2)

    def forward(self, x, return_weights=False):
        q = self.split_heads(self.to_q(x))
        k = self.split_heads(self.to_k(x))
        v = self.split_heads(self.to_v(x))
        scores = q @ k.transpose(-2, -1) * self.head_dim**-0.5
        weights = scores.softmax(dim=-1)
        out = self.drop(weights) @ v
        out = self.to_out(out.transpose(1, 2).flatten(2))
        if return_weights:
            return out, weights
        return out


# %%
class EncoderBlock(nn.Module):
    """Pre-norm; the last layer of the MLP begins with zeros, too."""

    def __init__(self, dim, heads, mlp_ratio=4.0, dropout=0.0):
        super().__init__()
        hidden_dim = round(dim * mlp_ratio)
        self.norm1 = nn.LayerNorm(dim)
        self.attn = MultiHeadSelfAttention(dim, heads, dropout)
        self.norm2 = nn.LayerNorm(dim)
        self.fc1 = nn.Linear(dim, hidden_dim)
        self.act = nn.GELU()
        self.fc2 = nn.Linear(hidden_dim, dim)
        nn.init.zeros_(self.fc2.weight)
        nn.init.zeros_(self.fc2.bias)

    def forward(self, x):
        x = x + self.attn(self.norm1(x))
        x = x + self.fc2(self.act(self.fc1(self.norm2(x))))
        return x

    def weights(self, x):
        return self.attn(self.norm1(x), return_weights=True)[1]


# %%
class VisionTransformer(nn.Module):
    """Class token, positions and head begin with zeros or nearly so."""

    def __init__(
        self,
        image_size=32,
        patch_size=4,
        in_channels=3,
        num_classes=10,
        dim=192,
        depth=9,
        heads=8,
        mlp_ratio=4.0,
        dropout=0.1,
        positions="learned",
        pool="cls",
    ):
        super().__init__()
        self.patch_embed = PatchEmbedding(image_size, patch_size, in_channels, dim)
        self.pool = pool
        num_tokens = (image_size // patch_size) ** 2
        if pool == "cls":
            num_tokens = num_tokens + 1
            self.cls_token = nn.Parameter(torch.zeros(1, 1, dim))
        if positions == "learned":
            self.pos_embed = nn.Parameter(torch.zeros(1, num_tokens, dim))
            nn.init.trunc_normal_(self.pos_embed, std=0.02)
        else:
            self.register_buffer("pos_embed", sinusoidal_positions(num_tokens, dim).unsqueeze(0))
        self.blocks = nn.ModuleList()
        for _ in range(depth):
            self.blocks.append(EncoderBlock(dim, heads, mlp_ratio, dropout))
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, num_classes)
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)

    def embed(self, images):
        x = self.patch_embed(images)
        if self.pool == "cls":
            cls_tokens = self.cls_token.repeat(x.size(0), 1, 1)
            x = torch.cat([cls_tokens, x], dim=1)
        return x + self.pos_embed

    def forward(self, images):
        x = self.embed(images)
        for block in self.blocks:
            x = block(x)
        x = self.norm(x)
        if self.pool == "cls":
            x = x[:, 0]
        else:
            x = x.mean(dim=1)
        return self.head(x)

    def attention(self, images):
        x = self.embed(images)
        for i in range(len(self.blocks) - 1):
            x = self.blocks[i](x)
        return self.blocks[-1].weights(x)


# %%
def attention_map(model, image):
    training = model.training
    model.eval()
    with torch.no_grad():
        w = model.attention(image.unsqueeze(0).to(next(model.parameters()).device)).cpu()
    model.train(training)

    w = w[0].mean(dim=0)
    grid = int(len(w) ** 0.5 + 1e-6)
    if grid * grid == len(w):  # only patches
        row = w.mean(dim=0)
    else:  # the first token is the class token
        row = w[0, 1:]
    row = row / row.max()
    # the patch of each pixel
    height, width = image.shape[-2:]
    y = torch.arange(height) * grid // height
    x = torch.arange(width) * grid // width
    return row[y[:, None] * grid + x[None, :]]


# %% [markdown]
# ## The ResNet

# %%
class BasicBlock(nn.Module):
    """The second norm begins with the factor 0: at first only the shortcut counts."""

    def __init__(self, in_channels, channels, stride=1):
        super().__init__()
        self.conv1 = nn.Conv2d(in_channels, channels, 3, stride=stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, stride=1, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)
        nn.init.zeros_(self.bn2.weight)
        self.shortcut = nn.Sequential()
        if stride != 1 or in_channels != channels:
            self.shortcut = nn.Sequential(
                nn.Conv2d(in_channels, channels, 1, stride=stride, bias=False),
                nn.BatchNorm2d(channels),
            )

    def forward(self, x):
        out = F.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        out = out + self.shortcut(x)
        return F.relu(out)


# %%
class ResNet18(nn.Module):
    def __init__(self, num_classes=10, width=64):
        super().__init__()
        self.conv1 = nn.Conv2d(3, width, kernel_size=3, stride=1, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.in_channels = width
        self.layer1 = self.make_layer(width, 1)
        self.layer2 = self.make_layer(2 * width, 2)
        self.layer3 = self.make_layer(4 * width, 2)
        self.layer4 = self.make_layer(8 * width, 2)
        self.fc = nn.Linear(8 * width, num_classes)

    def make_layer(self, channels, stride):
        layers = [BasicBlock(self.in_channels, channels, stride), BasicBlock(channels, channels)]
        self.in_channels = channels
        return nn.Sequential(*layers)

    def forward(self, images):
        x = F.relu(self.bn1(self.conv1(images)))
        x = self.layer1(x)
        x = self.layer2(x)
        x = self.layer3(x)
        x = self.layer4(x)
        x = x.mean(dim=(2, 3))
        return self.fc(x)


# %%
def parameter_table(model):
    return [(name, weights.numel()) for name, weights in model.named_parameters()]


# %% [markdown]
# ## Training

# %%
def warmup_cosine(step, warmup_steps, total_steps):
    if step < warmup_steps:
        return step / warmup_steps
    if step >= total_steps:
        return 0.0
    progress = (step - warmup_steps) / (total_steps - warmup_steps)
    return 0.5 * (1.0 + math.cos(math.pi * progress))


# %%
def train_epoch(model, loader, criterion, optimizer, scheduler, device):
    model.train()
    running_loss = 0.0
    correct = 0
    total = 0
    for images, labels in loader:
        images = images.to(device)
        labels = labels.to(device)
        optimizer.zero_grad()
        outputs = model(images)
        loss = criterion(outputs, labels)
        loss.backward()
        optimizer.step()
        if scheduler is not None:
            scheduler.step()
        running_loss += loss.item() * labels.size(0)
        correct += (outputs.argmax(dim=1) == labels).sum().item()
        total += labels.size(0)
    return running_loss / total, correct / total


# %%
def evaluate(model, loader, criterion, device):
    model.eval()
    total_loss = 0.0
    targets, predictions, probabilities = [], [], []
    with torch.no_grad():
        for images, labels in loader:
            images, labels = images.to(device), labels.to(device)
            outputs = model(images)
            total_loss += criterion(outputs, labels).item() * labels.size(0)
            targets.append(labels.cpu())
            predictions.append(outputs.argmax(dim=1).cpu())
            probabilities.append(torch.softmax(outputs, dim=1).cpu())
    targets = torch.cat(targets)
    predictions = torch.cat(predictions)
    return {
        "loss": total_loss / len(targets),
        "accuracy": (targets == predictions).double().mean().item(),
        "targets": targets,
        "predictions": predictions,
        "probabilities": torch.cat(probabilities),
    }


# %%
def fit(model, loaders, epochs, device):
    model.to(device)
    criterion = nn.CrossEntropyLoss()
    if isinstance(model, ResNet18):
        optimizer = optim.AdamW(model.parameters(), lr=3e-3, weight_decay=5e-2)
    else:
        optimizer = optim.AdamW(model.parameters(), lr=2e-3, weight_decay=5e-2)
    total_steps = epochs * len(loaders["train"])
    warmup_steps = total_steps // 10
    scheduler = optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: warmup_cosine(step, warmup_steps, total_steps)
    )
    history = {"train_loss": [], "train_accuracy": [], "val_loss": [], "val_accuracy": []}
    best_accuracy = -1.0
    best_state = None
    for epoch in range(epochs):
        train_loss, train_accuracy = train_epoch(model, loaders["train"], criterion, optimizer, scheduler, device)
        result = evaluate(model, loaders["validation"], criterion, device)
        history["train_loss"].append(train_loss)
        history["train_accuracy"].append(train_accuracy)
        history["val_loss"].append(result["loss"])
        history["val_accuracy"].append(result["accuracy"])
        print(f"epoch {epoch + 1}: {train_loss:.4f} {train_accuracy:.4f} {result['loss']:.4f} {result['accuracy']:.4f}")
        if result["accuracy"] > best_accuracy:
            best_accuracy = result["accuracy"]
            best_state = copy.deepcopy(model.state_dict())
    if best_state is not None:
        model.load_state_dict(best_state)
    return history


# %% [markdown]
# ## Measures

# %%
def classification_metrics(targets, probabilities):
    targets = np.asarray(targets).astype(int)
    probabilities = np.asarray(probabilities)
    classes = probabilities.shape[1]
    predictions = probabilities.argmax(axis=1)
    confusion = np.zeros((classes, classes), dtype=int)
    for t, p in zip(targets, predictions):
        confusion[t, p] += 1
    precision, recall, f1, auc = (np.zeros(classes) for _ in range(4))
    support = confusion.sum(axis=1)
    for k in range(classes):
        hits = confusion[k, k]
        called = confusion[:, k].sum()
        if called > 0:
            precision[k] = hits / called
        if support[k] > 0:
            recall[k] = hits / support[k]
        if precision[k] + recall[k] > 0:
            f1[k] = 2 * precision[k] * recall[k] / (precision[k] + recall[k])
        positive = probabilities[targets == k, k]
        negative = probabilities[targets != k, k]
        if len(positive) == 0 or len(negative) == 0:
            auc[k] = np.nan
        else:
            wins = (positive[:, None] > negative[None, :]).sum()
            ties = (positive[:, None] == negative[None, :]).sum()
            auc[k] = (wins + 0.5 * ties) / (len(positive) * len(negative))
    result = {
        "confusion": confusion,
        "precision": precision,
        "recall": recall,
        "f1": f1,
        "support": support,
        "roc_auc": auc,
        "accuracy": float((targets == predictions).mean()),
    }
    for name in ("precision", "recall", "f1", "roc_auc"):
        values = []
        weights = []
        for k in range(classes):
            if support[k] > 0 and not np.isnan(result[name][k]):
                values.append(result[name][k])
                weights.append(support[k])
        if len(values) == 0:
            result["macro_" + name] = float("nan")
            result["weighted_" + name] = float("nan")
        else:
            result["macro_" + name] = float(np.mean(values))
            result["weighted_" + name] = float(np.average(values, weights=weights))
    return result


# %%
def export_metrics(metrics, path):
    rows = []

    def add(name, value):
        if isinstance(value, dict):
            for key, inner in value.items():
                add(str(key), inner)
        elif np.ndim(value) == 0:
            rows.append([name, float(value)])
        elif np.ndim(value) == 1:
            for i, number in enumerate(value):
                add(f"{name}.{i}", number)

    add("", metrics)
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["metric", "value"])
        writer.writerows(rows)


# %% [markdown]
# ## Pictures

# %%
def plot_learning_curves(history):
    epochs = range(1, len(history["train_loss"]) + 1)
    plt.figure(figsize=(10, 4))
    plt.subplot(1, 2, 1)
    plt.plot(epochs, history["train_loss"], label="training")
    plt.plot(epochs, history["val_loss"], label="validation")
    plt.xlabel("epoch")
    plt.ylabel("loss")
    plt.legend()
    plt.subplot(1, 2, 2)
    plt.plot(epochs, history["train_accuracy"], label="training")
    plt.plot(epochs, history["val_accuracy"], label="validation")
    plt.xlabel("epoch")
    plt.ylabel("accuracy")
    plt.legend()
    plt.tight_layout()
    plt.show()


# %%
def plot_confusion_matrix(matrix, class_names):
    matrix = np.asarray(matrix)
    plt.figure(figsize=(8, 7))
    plt.imshow(matrix, cmap="Blues")
    plt.colorbar()
    plt.xticks(range(len(class_names)), class_names, rotation=45, ha="right")
    plt.yticks(range(len(class_names)), class_names)
    plt.xlabel("predicted class")
    plt.ylabel("true class")
    for i in range(len(class_names)):
        for j in range(len(class_names)):
            color = "white" if matrix[i, j] > matrix.max() / 2 else "black"
            plt.text(j, i, int(matrix[i, j]), ha="center", va="center", color=color)
    plt.tight_layout()
    plt.show()


# %%
def plot_roc(targets, probabilities, class_names):
    targets = np.asarray(targets)
    probabilities = np.asarray(probabilities)
    plt.figure(figsize=(7, 6))
    for k, name in enumerate(class_names):
        positive = targets == k
        if positive.sum() == 0 or positive.sum() == len(targets):
            continue
        fpr = [0.0]
        tpr = [0.0]
        for threshold in np.unique(probabilities[:, k])[::-1]:
            called = probabilities[:, k] >= threshold
            tpr.append((called & positive).sum() / positive.sum())
            fpr.append((called & ~positive).sum() / (~positive).sum())
        plt.plot(fpr, tpr, label=name)
    plt.plot([0, 1], [0, 1], "k:")
    plt.xlabel("false positive rate")
    plt.ylabel("true positive rate")
    plt.legend()
    plt.show()


# %%
def denormalize(image, mean, std):
    mean = torch.tensor(mean).view(-1, 1, 1)
    std = torch.tensor(std).view(-1, 1, 1)
    picture = image.cpu() * std + mean
    return picture.clamp(0, 1).permute(1, 2, 0).numpy()


def plot_attention(model, images, labels, class_names, mean, std):
    n = len(images)
    plt.figure(figsize=(9, 3 * n))
    for i in range(n):
        picture = denormalize(images[i], mean, std)
        heat = np.asarray(attention_map(model, images[i]))
        plt.subplot(n, 3, 3 * i + 1)
        plt.imshow(picture)
        plt.title(class_names[int(labels[i])])
        plt.axis("off")
        plt.subplot(n, 3, 3 * i + 2)
        plt.imshow(heat, cmap="hot")
        plt.title("attention")
        plt.axis("off")
        plt.subplot(n, 3, 3 * i + 3)
        plt.imshow(picture)
        plt.imshow(heat, cmap="hot", alpha=0.5)
        plt.title("overlay")
        plt.axis("off")
    plt.tight_layout()
    plt.show()


# %%
def plot_top3(images, labels, probabilities, class_names, mean, std):
    probabilities = np.asarray(probabilities)
    n = len(images)
    plt.figure(figsize=(3 * n, 4))
    for i in range(n):
        order = np.argsort(probabilities[i])[::-1][:3]
        title = "true: " + class_names[int(labels[i])]
        for k in order:
            title += f"\n{class_names[k]}: {probabilities[i][k]:.2f}"
        plt.subplot(1, n, i + 1)
        plt.imshow(denormalize(images[i], mean, std))
        plt.title(title)
        plt.axis("off")
    plt.tight_layout()
    plt.show()


# %% [markdown]
# ## Train both models

# %%
VIT_EPOCHS, RESNET_EPOCHS = 10, 8

vit = VisionTransformer(dim=64, depth=4, heads=4, mlp_ratio=2.0, dropout=0.0, num_classes=len(class_names))
vit_history = fit(vit, loaders, VIT_EPOCHS, device)
torch.save(vit.state_dict(), f"{STUDENT_ID}_CIFAR10_vit.pth")

# %%
resnet = ResNet18(num_classes=len(class_names), width=16)
resnet_history = fit(resnet, loaders, RESNET_EPOCHS, device)
torch.save(resnet.state_dict(), f"{STUDENT_ID}_CIFAR10_resnet.pth")

# %% [markdown]
# ## Compare them

# %%
criterion = nn.CrossEntropyLoss()
measures = {}
for name, model, history in [("vit", vit, vit_history), ("resnet", resnet, resnet_history)]:
    found = evaluate(model, test_loader, criterion, device)
    measures[name] = classification_metrics(found["targets"], found["probabilities"])
    print(name, f"{found['accuracy']:.4f}", parameter_table(model))
    plot_learning_curves(history)
    plot_confusion_matrix(measures[name]["confusion"], class_names)
    plot_roc(found["targets"], found["probabilities"], class_names)
export_metrics(measures, f"{STUDENT_ID}_metrics.csv")

# %%
images, labels = next(iter(test_loader))
images, labels = images[:6], labels[:6]
plot_attention(vit, images, labels, class_names, MEAN, STD)
with torch.no_grad():
    found = vit.eval()(images.to(device)).softmax(dim=1).cpu()
plot_top3(images, labels, found, class_names, MEAN, STD)

# %% [markdown]
# ## Study

# %%
RUN_STUDY = False  # the table is there
BASE = {
    "patch_size": 8, "dim": 48, "depth": 2, "heads": 4, "mlp_ratio": 2.0, "positions": "learned", "epochs": 4,
}
CHANGES = [{"patch_size": 4}, {"dim": 64}, {"depth": 3}, {"heads": 2}, {"mlp_ratio": 4.0}, {"positions": "sinusoidal"}]


def trained_row(values, seed):
    torch.manual_seed(seed)
    sizes = {name: value for name, value in values.items() if name != "epochs"}
    model = VisionTransformer(**sizes, dropout=0.0, num_classes=len(class_names))
    parameters = sum(weights.numel() for weights in model.parameters())
    fit(model, loaders, values["epochs"], device)
    found = evaluate(model, loaders["validation"], criterion, device)
    return {
        **values,
        "seed": seed,
        "parameters": parameters,
        "validation_accuracy": round(float(found["accuracy"]), 4),
    }


if RUN_STUDY:
    rows = [trained_row(BASE, seed) for seed in (0, 1, 2)]
    rows += [trained_row({**BASE, **change}, 0) for change in CHANGES]
    with open(f"{STUDENT_ID}_study.csv", "w", newline="") as file:
        table = csv.DictWriter(file, list(rows[0]))
        table.writeheader()
        table.writerows(rows)
