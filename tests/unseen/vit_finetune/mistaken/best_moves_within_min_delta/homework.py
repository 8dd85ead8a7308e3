# %% [markdown]
# # Fine-tuning a pretrained Vision Transformer

# %%
import copy
import math
import random
import zipfile

import matplotlib.pyplot as plt
import numpy as np
import torch
import torch.nn.functional as F
from handout import build_model, parts
from torch import Tensor, nn, optim
from torch.utils.data import DataLoader, Subset
from torchvision import datasets, transforms

STUDENT_ID = "400105003"
RATE = 3e-3
PATIENCE = 4
BATCH_SIZE = 64
MEAN, STD = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(42)

# %% [markdown]
# ## The split

# %%
def stratified_split(labels, per_class, seed):
    generator = random.Random(int(seed))
    labels = [int(label) for label in labels]
    parts = [[] for _ in per_class]
    for c in sorted(set(labels)):
        indices = [i for i, label in enumerate(labels) if label == c]
        if len(indices) < sum(per_class):
            raise ValueError("not enough images of class " + str(c))
        generator.shuffle(indices)
        start = 0
        for k in range(len(per_class)):
            parts[k] += indices[start : start + per_class[k]]
            start += per_class[k]
    return tuple(np.array(part, dtype=np.int64) for part in parts)


# %% [markdown]
# ## Mixed images

# %%
def mixup(images, labels, alpha, generator):
    if alpha > 0:
        lam = float(generator.beta(alpha, alpha))
    else:
        lam = 1.0
    index = torch.from_numpy(generator.permutation(len(images))).to(images.device)
    mixed = lam * images + (1 - lam) * images[index]
    return mixed, labels, labels[index], lam


# %%
def cutmix(images, labels, alpha, generator):
    if alpha > 0:
        lam = float(generator.beta(alpha, alpha))
    else:
        lam = 1.0
    height, width = images.shape[2], images.shape[3]
    index = torch.from_numpy(generator.permutation(len(images))).to(images.device)
    cut_height = int(height * math.sqrt(1 - lam))
    cut_width = int(width * math.sqrt(1 - lam))
    center_y = int(generator.integers(height))
    center_x = int(generator.integers(width))
    y1 = max(center_y - cut_height // 2, 0)
    y2 = min(center_y + cut_height - cut_height // 2, height)
    x1 = max(center_x - cut_width // 2, 0)
    x2 = min(center_x + cut_width - cut_width // 2, width)
    mixed = images.clone()
    mixed[:, :, y1:y2, x1:x2] = images[index, :, y1:y2, x1:x2]
    lam = 1 - (y2 - y1) * (x2 - x1) / (height * width)
    return mixed, labels, labels[index], lam


# %%
def mixed_loss(criterion, logits, labels_a, labels_b, lam):
    return lam * criterion(logits, labels_a) + (1 - lam) * criterion(logits, labels_b)


# %% [markdown]
# ## What learns

# %%
def freeze_backbone(model):
    head, blocks, norm = parts(model)
    for parameter in model.parameters():
        parameter.requires_grad = False
    for parameter in head.parameters():
        parameter.requires_grad = True


# %%
def unfreeze(model, blocks=None):
    if blocks is None:
        for parameter in model.parameters():
            parameter.requires_grad = True
        return
    freeze_backbone(model)
    head, all_blocks, norm = parts(model)
    for parameter in norm.parameters():
        parameter.requires_grad = True
    for block in all_blocks[len(all_blocks) - blocks :]:
        for parameter in block.parameters():
            parameter.requires_grad = True


# %% [markdown]
# ## Training and evaluation

# %%
def train_one_epoch(model, loader, optimizer, criterion, device, mix=None):
    model.train()
    head, blocks, norm = parts(model)
    for block in blocks:
        if not any(parameter.requires_grad for parameter in block.parameters()):
            block.eval()
    total_loss = 0.0
    total_correct = 0.0
    total = 0
    for images, labels in loader:
        images, labels = images.to(device), labels.to(device)
        if mix is not None:
            images, labels_a, labels_b, lam = mix(images, labels)
            outputs = model(images)
            loss = mixed_loss(criterion, outputs, labels_a, labels_b, lam)
            predicted = outputs.argmax(dim=1)
            correct_a = (predicted == labels_a).sum().item()
            correct_b = (predicted == labels_b).sum().item()
            correct = lam * correct_a + (1 - lam) * correct_b
        else:
            outputs = model(images)
            loss = criterion(outputs, labels)
            predicted = outputs.argmax(dim=1)
            correct = (predicted == labels).sum().item()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total_loss += loss.item() * len(images)
        total_correct += correct
        total += len(images)
    return total_loss / total, total_correct / total


# %%
@torch.no_grad()
def evaluate(model, loader, criterion, device):
    model.eval()
    total_loss = 0.0
    targets = []
    predictions = []
    for images, labels in loader:
        images, labels = images.to(device), labels.to(device)
        outputs = model(images)
        total_loss += criterion(outputs, labels).item() * len(labels)
        targets.extend(labels.tolist())
        predictions.extend(outputs.argmax(dim=1).tolist())
    correct = sum(t == p for t, p in zip(targets, predictions))
    return total_loss / len(targets), correct / len(targets), targets, predictions


# %%
class EarlyStopping:
    def __init__(self, patience, min_delta=0.0):
        self.patience = patience
        self.min_delta = min_delta
        self.best_value = None
        self.best_state = None
        self.counter = 0

    def step(self, value, model):
        if not math.isnan(value) and (self.best_value is None or value > self.best_value + self.min_delta):
            self.best_value = value
            self.best_state = copy.deepcopy(model.state_dict())
            self.counter = 0
            return False
        if self.best_value is not None and value > self.best_value:
            self.best_value = value
        self.counter += 1
        return self.counter >= self.patience

    def restore(self, model):
        if self.best_state is not None:
            model.load_state_dict(self.best_state)


# %%
def fit(model, loaders, epochs, device):
    model.to(device)
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
    generator = np.random.default_rng(42)
    history = {"train_loss": [], "train_acc": [], "val_loss": [], "val_acc": [], "stage2": epochs[0]}

    def mix(images, labels):
        if generator.random() < 0.5:
            return mixup(images, labels, 0.2, generator)
        return cutmix(images, labels, 1.0, generator)

    def run_epoch(optimizer, mix=None):
        train_loss, train_acc = train_one_epoch(model, loaders["train"], optimizer, criterion, device, mix)
        val_loss, val_acc, _, _ = evaluate(model, loaders["validation"], criterion, device)
        history["train_loss"].append(train_loss)
        history["train_acc"].append(train_acc)
        history["val_loss"].append(val_loss)
        history["val_acc"].append(val_acc)
        print(f"train {train_loss:.4f} {train_acc:.4f}  val {val_loss:.4f} {val_acc:.4f}")
        return val_acc

    # stage 1: the head
    freeze_backbone(model)
    optimizer = optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=RATE)
    for _ in range(epochs[0]):
        run_epoch(optimizer)

    # stage 2: everything
    unfreeze(model)
    optimizer = optim.AdamW(model.parameters(), lr=RATE / 10, weight_decay=0.05)
    scheduler = optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=max(epochs[1], 1))
    stopping = EarlyStopping(PATIENCE)
    for _ in range(epochs[1]):
        val_acc = run_epoch(optimizer, mix)
        scheduler.step()
        if stopping.step(val_acc, model):
            print("stopped early")
            break
    stopping.restore(model)
    return history


# %%
def per_class_accuracy(targets, predictions, classes):
    targets, predictions = np.asarray(targets), np.asarray(predictions)
    result = np.full(classes, np.nan)
    for c in range(classes):
        own = targets == c
        if own.any():
            result[c] = (predictions[own] == c).mean()
    return result


# %% [markdown]
# ## Pictures

# %%
def denormalize(image, mean, std):
    mean = torch.tensor(mean).reshape(-1, 1, 1)
    std = torch.tensor(std).reshape(-1, 1, 1)
    return (image.cpu() * std + mean).clamp(0, 1).permute(1, 2, 0).numpy()


def show_patches(image, patch_size, mean, std):
    picture = denormalize(image, mean, std)
    rows = picture.shape[0] // patch_size
    columns = picture.shape[1] // patch_size
    plt.figure(figsize=(4, 4))
    plt.imshow(picture)
    plt.title("the image")
    plt.axis("off")
    plt.figure(figsize=(5, 5))
    for row in range(rows):
        for column in range(columns):
            y = row * patch_size
            x = column * patch_size
            plt.subplot(rows, columns, row * columns + column + 1)
            plt.imshow(picture[y : y + patch_size, x : x + patch_size])
            plt.axis("off")
    plt.show()


# %%
def show_attention(model, image, mean, std):
    head, blocks, norm = parts(model)
    attn = blocks[-1].attn
    caught = []
    hook = attn.qkv.register_forward_hook(lambda module, inputs, output: caught.append(output.detach()))
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    with torch.no_grad():
        model(image.unsqueeze(0).to(next(model.parameters()).device))
    hook.remove()
    for module, mode in modes:
        module.training = mode

    qkv = caught[0][0]
    tokens = qkv.shape[0]
    qkv = qkv.reshape(tokens, 3, attn.num_heads, -1)
    q = qkv[:, 0].transpose(0, 1)
    k = qkv[:, 1].transpose(0, 1)
    weights = torch.softmax(q @ k.transpose(1, 2) / math.sqrt(q.shape[-1]), dim=-1)
    row = weights.mean(dim=0)[0, 1:].cpu()
    side = int(math.sqrt(len(row)))
    plt.figure(figsize=(8, 4))
    plt.subplot(1, 2, 1)
    plt.imshow(denormalize(image, mean, std))
    plt.title("image")
    plt.axis("off")
    plt.subplot(1, 2, 2)
    plt.imshow(row.reshape(side, side).numpy(), cmap="viridis")
    plt.title("attention of the class token")
    plt.axis("off")
    plt.show()


# %%
def plot_history(history):
    epochs = range(1, len(history["train_loss"]) + 1)
    plt.figure(figsize=(10, 4))
    for place, (key, name) in enumerate([("loss", "loss"), ("acc", "accuracy")]):
        plt.subplot(1, 2, place + 1)
        plt.plot(epochs, history["train_" + key], label="training " + name)
        plt.plot(epochs, history["val_" + key], label="validation " + name)
        plt.axvline(history["stage2"] + 0.5, color="gray", linestyle="--", label="stage 2 begins")
        plt.xlabel("epoch")
        plt.ylabel(name)
        plt.legend()
    plt.tight_layout()
    plt.show()


# %%
def plot_per_class(names, accuracies):
    plt.figure(figsize=(9, 4))
    heights = [0.0 if np.isnan(a) else float(a) for a in accuracies]
    plt.bar(range(len(names)), heights)
    plt.xticks(range(len(names)), names, rotation=45)
    plt.ylim(0, 1)
    plt.xlabel("class")
    plt.ylabel("accuracy")
    plt.tight_layout()
    plt.show()


# %%
def plot_confusion_matrix(matrix, class_names):
    matrix = np.asarray(matrix)
    n = len(class_names)
    plt.figure(figsize=(8, 7))
    plt.imshow(matrix, cmap="Blues")
    plt.colorbar()
    plt.xticks(range(n), class_names, rotation=45, ha="right")
    plt.yticks(range(n), class_names)
    plt.xlabel("predicted class")
    plt.ylabel("true class")
    for i in range(n):
        for j in range(n):
            color = "white" if matrix[i, j] > matrix.max() / 2 else "black"
            plt.text(j, i, str(int(matrix[i, j])), ha="center", va="center", color=color)
    plt.tight_layout()
    plt.show()


# %% [markdown]
# ## The images

# %%
with zipfile.ZipFile("dataset.zip") as archive:
    archive.extractall("data")

plain_transform = transforms.Compose([transforms.ToTensor(), transforms.Normalize(MEAN, STD)])
train_transform = transforms.Compose(
    [transforms.RandomCrop(32, padding=2), transforms.RandomHorizontalFlip(), plain_transform]
)
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
