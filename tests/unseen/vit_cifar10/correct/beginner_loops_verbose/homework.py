# %% [markdown]
# # Homework 2: Vision Transformer and ResNet
# I wrote everything with simple loops, because then I can check every step by hand.

# %%
import csv
import math
import time
import zipfile

import matplotlib.pyplot as plt
import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Subset
from torchvision import datasets, transforms

STUDENT_ID = "400102002"

if torch.cuda.is_available():
    device = torch.device("cuda")
else:
    device = torch.device("cpu")
torch.manual_seed(42)

# %% [markdown]
# ## Data
# Training images get random crops and flips. Validation images do not, so I open the folder twice.

# %%
MEAN = [0.4914, 0.4822, 0.4465]
STD = [0.2470, 0.2435, 0.2616]
BATCH_SIZE = 64

with zipfile.ZipFile("dataset.zip") as archive:
    archive.extractall("data")

train_transform = transforms.Compose(
    [
        transforms.RandomCrop(32, padding=4),
        transforms.RandomHorizontalFlip(),
        transforms.ToTensor(),
        transforms.Normalize(MEAN, STD),
    ]
)
test_transform = transforms.Compose(
    [
        transforms.ToTensor(),
        transforms.Normalize(MEAN, STD),
    ]
)

images_for_training = datasets.ImageFolder("data/train", transform=train_transform)
images_for_validation = datasets.ImageFolder("data/train", transform=test_transform)
test_dataset = datasets.ImageFolder("data/test", transform=test_transform)
class_names = test_dataset.classes
number_of_classes = len(class_names)

# 10 % of the training images are for validation
generator = torch.Generator().manual_seed(42)
permutation = torch.randperm(len(images_for_training), generator=generator).tolist()
validation_size = int(0.1 * len(permutation))
validation_indices = permutation[:validation_size]
train_indices = permutation[validation_size:]

train_dataset = Subset(images_for_training, train_indices)
validation_dataset = Subset(images_for_validation, validation_indices)

train_loader = DataLoader(train_dataset, batch_size=BATCH_SIZE, shuffle=True)
validation_loader = DataLoader(validation_dataset, batch_size=128, shuffle=False)
test_loader = DataLoader(test_dataset, batch_size=128, shuffle=False)
loaders = {"train": train_loader, "validation": validation_loader}


# %% [markdown]
# ## The Vision Transformer

# %%
class PatchEmbedding(nn.Module):
    """Cut the image into patches with two loops, then one linear layer for all patches."""

    def __init__(self, image_size, patch_size, in_channels, dim):
        super(PatchEmbedding, self).__init__()
        self.image_size = image_size
        self.patch_size = patch_size
        self.patches_per_side = image_size // patch_size
        self.number_of_patches = self.patches_per_side * self.patches_per_side
        numbers_in_a_patch = in_channels * patch_size * patch_size
        self.linear = nn.Linear(numbers_in_a_patch, dim)

    def forward(self, images):
        batch_size = images.shape[0]
        list_of_patches = []
        for row in range(self.patches_per_side):
            for column in range(self.patches_per_side):
                top = row * self.patch_size
                left = column * self.patch_size
                patch = images[:, :, top : top + self.patch_size, left : left + self.patch_size]
                patch = patch.reshape(batch_size, -1)  # (B, C * P * P)
                list_of_patches.append(patch)
        patches = torch.stack(list_of_patches, dim=1)  # (B, N, C * P * P)
        tokens = self.linear(patches)  # (B, N, dim)
        return tokens


# %%
def sinusoidal_positions(tokens, dim):
    table = torch.zeros(tokens, dim)
    for pos in range(tokens):
        for i in range(dim // 2):
            angle = pos / (10000 ** (2 * i / dim))
            table[pos, 2 * i] = math.sin(angle)
            table[pos, 2 * i + 1] = math.cos(angle)
    return table


# %%
class MultiHeadSelfAttention(nn.Module):
    """Three linear layers, and then a loop over the heads."""

    def __init__(self, dim, heads, dropout=0.0):
        super(MultiHeadSelfAttention, self).__init__()
        assert dim % heads == 0, "dim must be a multiple of heads"
        self.dim = dim
        self.heads = heads
        self.head_dim = dim // heads
        self.query = nn.Linear(dim, dim)
        self.key = nn.Linear(dim, dim)
        self.value = nn.Linear(dim, dim)
        self.dropout = nn.Dropout(dropout)
        self.output = nn.Linear(dim, dim)

    def forward(self, x, return_weights=False):
        q = self.query(x)  # (B, N, dim)
        k = self.key(x)
        v = self.value(x)

        results = []
        all_weights = []
        for head in range(self.heads):
            first = head * self.head_dim
            last = first + self.head_dim
            q_head = q[:, :, first:last]  # (B, N, head_dim)
            k_head = k[:, :, first:last]
            v_head = v[:, :, first:last]

            scores = torch.matmul(q_head, k_head.transpose(1, 2))  # (B, N, N)
            scores = scores / math.sqrt(self.head_dim)
            weights = torch.softmax(scores, dim=2)  # every row sums to 1
            all_weights.append(weights)  # before the dropout!

            dropped = self.dropout(weights)
            result = torch.matmul(dropped, v_head)  # (B, N, head_dim)
            results.append(result)

        out = torch.cat(results, dim=2)  # (B, N, dim)
        out = self.output(out)
        if return_weights:
            return out, torch.stack(all_weights, dim=1)  # (B, heads, N, N)
        else:
            return out


# %%
class MLP(nn.Module):
    def __init__(self, dim, hidden_dim):
        super(MLP, self).__init__()
        self.fc1 = nn.Linear(dim, hidden_dim)
        self.activation = nn.GELU()
        self.fc2 = nn.Linear(hidden_dim, dim)

    def forward(self, x):
        x = self.fc1(x)
        x = self.activation(x)
        x = self.fc2(x)
        return x


class EncoderBlock(nn.Module):
    def __init__(self, dim, heads, mlp_ratio=4.0, dropout=0.0):
        super(EncoderBlock, self).__init__()
        self.norm1 = nn.LayerNorm(dim)
        self.attention = MultiHeadSelfAttention(dim, heads, dropout)
        self.norm2 = nn.LayerNorm(dim)
        self.mlp = MLP(dim, int(dim * mlp_ratio))

    def forward(self, x):
        # first sub-layer
        residual = x
        out = self.norm1(x)
        out = self.attention(out)
        x = residual + out
        # second sub-layer
        residual = x
        out = self.norm2(x)
        out = self.mlp(out)
        x = residual + out
        return x


# %%
class VisionTransformer(nn.Module):
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
        super(VisionTransformer, self).__init__()
        if positions not in ("learned", "sinusoidal"):
            raise ValueError("positions must be 'learned' or 'sinusoidal'")
        if pool not in ("cls", "mean"):
            raise ValueError("pool must be 'cls' or 'mean'")
        self.pool = pool
        self.patch_embedding = PatchEmbedding(image_size, patch_size, in_channels, dim)

        number_of_tokens = (image_size // patch_size) * (image_size // patch_size)
        if pool == "cls":
            number_of_tokens = number_of_tokens + 1  # the class token has a position too
            self.class_token = nn.Parameter(torch.zeros(1, 1, dim))
            nn.init.trunc_normal_(self.class_token, std=0.02)

        if positions == "learned":
            self.position_embedding = nn.Parameter(torch.zeros(1, number_of_tokens, dim))
            nn.init.trunc_normal_(self.position_embedding, std=0.02)
        else:
            table = sinusoidal_positions(number_of_tokens, dim)
            self.register_buffer("position_embedding", table.unsqueeze(0))

        self.blocks = nn.ModuleList()
        for _ in range(depth):
            block = EncoderBlock(dim, heads, mlp_ratio, dropout)
            self.blocks.append(block)

        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, num_classes)

    def make_tokens(self, images):
        """Patches, class token in front, positions on top."""
        tokens = self.patch_embedding(images)
        if self.pool == "cls":
            batch_size = images.shape[0]
            class_tokens = self.class_token.expand(batch_size, -1, -1)
            tokens = torch.cat([class_tokens, tokens], dim=1)
        tokens = tokens + self.position_embedding
        return tokens

    def forward(self, images):
        x = self.make_tokens(images)
        for block in self.blocks:
            x = block(x)
        if self.pool == "cls":
            x = self.norm(x)
            x = x[:, 0]
        else:
            x = x.mean(dim=1)
            x = self.norm(x)  # I normalize the mean
        logits = self.head(x)
        return logits

    def attention(self, images):
        x = self.make_tokens(images)
        number_of_blocks = len(self.blocks)
        for index in range(number_of_blocks - 1):
            x = self.blocks[index](x)
        last_block = self.blocks[number_of_blocks - 1]
        normalized = last_block.norm1(x)
        _, weights = last_block.attention(normalized, return_weights=True)
        return weights


# %%
def attention_map(model, image):
    was_training = model.training
    model.eval()
    model_device = next(model.parameters()).device
    with torch.no_grad():
        batch = image.unsqueeze(0).to(model_device)
        weights = model.attention(batch)
    if was_training:
        model.train()

    weights = weights[0].cpu()  # (heads, N, N)
    mean_of_heads = weights.mean(dim=0)  # (N, N)
    number_of_tokens = mean_of_heads.shape[0]

    side = int(round(math.sqrt(number_of_tokens)))
    if side * side == number_of_tokens:
        # no class token
        values = mean_of_heads.mean(dim=0)
    else:
        # class token: its row, without its own column
        values = mean_of_heads[0, 1:]
        side = int(round(math.sqrt(number_of_tokens - 1)))

    largest = values.max().item()
    if largest > 0:
        values = values / largest
    height = image.shape[1]
    width = image.shape[2]
    patch_height = height // side
    patch_width = width // side

    picture = torch.zeros(height, width)
    for row in range(side):
        for column in range(side):
            value = values[row * side + column]
            top = row * patch_height
            left = column * patch_width
            picture[top : top + patch_height, left : left + patch_width] = value
    return picture


# %% [markdown]
# ## ResNet

# %%
class BasicBlock(nn.Module):
    def __init__(self, in_channels, channels, stride=1):
        super(BasicBlock, self).__init__()
        self.conv1 = nn.Conv2d(in_channels, channels, kernel_size=3, stride=stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.relu1 = nn.ReLU()
        self.conv2 = nn.Conv2d(channels, channels, kernel_size=3, stride=1, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)
        self.relu2 = nn.ReLU()

        shape_changes = False
        if stride != 1:
            shape_changes = True
        if in_channels != channels:
            shape_changes = True

        if shape_changes:
            self.downsample = nn.Sequential(
                nn.Conv2d(in_channels, channels, kernel_size=1, stride=stride, bias=False),
                nn.BatchNorm2d(channels),
            )
        else:
            self.downsample = None

    def forward(self, x):
        identity = x
        out = self.conv1(x)
        out = self.bn1(out)
        out = self.relu1(out)
        out = self.conv2(out)
        out = self.bn2(out)
        if self.downsample is not None:
            identity = self.downsample(x)
        out = out + identity
        out = self.relu2(out)
        return out


class ResNet18(nn.Module):
    def __init__(self, num_classes=10, width=64):
        super(ResNet18, self).__init__()
        self.conv1 = nn.Conv2d(3, width, kernel_size=3, stride=1, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.relu = nn.ReLU()

        self.block1 = BasicBlock(width, width, stride=1)
        self.block2 = BasicBlock(width, width, stride=1)

        self.block3 = BasicBlock(width, 2 * width, stride=2)
        self.block4 = BasicBlock(2 * width, 2 * width, stride=1)

        self.block5 = BasicBlock(2 * width, 4 * width, stride=2)
        self.block6 = BasicBlock(4 * width, 4 * width, stride=1)

        self.block7 = BasicBlock(4 * width, 8 * width, stride=2)
        self.block8 = BasicBlock(8 * width, 8 * width, stride=1)

        self.fc = nn.Linear(8 * width, num_classes)

    def forward(self, images):
        x = self.conv1(images)
        x = self.bn1(x)
        x = self.relu(x)
        x = self.block1(x)
        x = self.block2(x)
        x = self.block3(x)
        x = self.block4(x)
        x = self.block5(x)
        x = self.block6(x)
        x = self.block7(x)
        x = self.block8(x)
        x = x.mean(dim=[2, 3])  # global average pooling
        x = self.fc(x)
        return x


# %%
def parameter_table(model):
    """One row for each child of the model, and one row for each parameter that belongs to the model itself."""
    table = []
    for name, parameter in model.named_parameters(recurse=False):
        table.append((name, parameter.numel()))
    for name, child in model.named_children():
        count = 0
        for parameter in child.parameters():
            count = count + parameter.numel()
        table.append((name, count))
    return table


# %% [markdown]
# ## Training

# %%
def warmup_cosine(step, warmup_steps, total_steps):
    # after the end
    if step >= total_steps:
        return 0.0
    # warm-up
    if step < warmup_steps:
        return float(step) / float(warmup_steps)
    # cosine
    done = step - warmup_steps
    length = total_steps - warmup_steps
    progress = done / length  # 0 at the end of the warm-up, 1 at the end
    factor = 0.5 * (1.0 + math.cos(math.pi * progress))
    return factor


# %%
def train_epoch(model, loader, criterion, optimizer, scheduler, device):
    model.train()
    total_loss = 0.0
    total_correct = 0
    total_images = 0
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

        number = images.size(0)
        total_loss = total_loss + loss.item() * number  # the last batch is smaller, so weigh by the number
        _, predicted = torch.max(outputs, 1)
        total_correct = total_correct + (predicted == labels).sum().item()
        total_images = total_images + number

    mean_loss = total_loss / total_images
    accuracy = total_correct / total_images
    return mean_loss, accuracy


# %%
def evaluate(model, loader, criterion, device):
    model.eval()
    total_loss = 0.0
    total_correct = 0
    total_images = 0
    all_targets = []
    all_predictions = []
    all_probabilities = []
    with torch.no_grad():
        for images, labels in loader:
            images = images.to(device)
            labels = labels.to(device)
            outputs = model(images)
            loss = criterion(outputs, labels)
            probabilities = torch.softmax(outputs, dim=1)
            _, predicted = torch.max(outputs, 1)

            number = images.size(0)
            total_loss = total_loss + loss.item() * number
            total_correct = total_correct + (predicted == labels).sum().item()
            total_images = total_images + number

            for label in labels:
                all_targets.append(label.item())
            for prediction in predicted:
                all_predictions.append(prediction.item())
            for row in probabilities:
                all_probabilities.append(row.cpu().numpy())

    results = {}
    results["loss"] = total_loss / total_images
    results["accuracy"] = total_correct / total_images
    results["targets"] = np.array(all_targets)
    results["predictions"] = np.array(all_predictions)
    results["probabilities"] = np.array(all_probabilities)
    return results


# %%
def fit(model, loaders, epochs, device):
    model = model.to(device)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1.5e-3, weight_decay=0.01)

    steps_in_an_epoch = len(loaders["train"])
    total_steps = epochs * steps_in_an_epoch
    warmup_steps = int(0.1 * total_steps)

    def learning_rate_factor(step):
        return warmup_cosine(step, warmup_steps, total_steps)

    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lr_lambda=learning_rate_factor)

    train_losses = []
    train_accuracies = []
    validation_losses = []
    validation_accuracies = []

    best_accuracy = -1.0
    best_weights = None
    for epoch in range(epochs):
        train_loss, train_accuracy = train_epoch(
            model, loaders["train"], criterion, optimizer, scheduler, device
        )
        results = evaluate(model, loaders["validation"], criterion, device)

        train_losses.append(train_loss)
        train_accuracies.append(train_accuracy)
        validation_losses.append(results["loss"])
        validation_accuracies.append(results["accuracy"])

        print("Epoch", epoch + 1, "of", epochs)
        print("   training:   loss %.4f, accuracy %.4f" % (train_loss, train_accuracy))
        print("   validation: loss %.4f, accuracy %.4f" % (results["loss"], results["accuracy"]), flush=True)

        if results["accuracy"] > best_accuracy:
            best_accuracy = results["accuracy"]
            # state_dict() only points at the weights, so copy each of them
            best_weights = {}
            for name, weight in model.state_dict().items():
                best_weights[name] = weight.detach().clone()

    if best_weights is not None:
        model.load_state_dict(best_weights)

    history = {
        "train_loss": train_losses,
        "train_accuracy": train_accuracies,
        "validation_loss": validation_losses,
        "validation_accuracy": validation_accuracies,
    }
    return history


# %% [markdown]
# ## Metrics

# %%
def safe_divide(a, b):
    if b == 0:
        return 0.0
    return a / b


def roc_points(is_positive, scores):
    """The points of the ROC curve. Every different score is a threshold."""
    positives = np.sum(is_positive)
    negatives = len(is_positive) - positives
    thresholds = sorted(set(scores.tolist()), reverse=True)
    false_positive_rates = [0.0]
    true_positive_rates = [0.0]
    for threshold in thresholds:
        called_positive = scores >= threshold
        true_positives = np.sum(called_positive & is_positive)
        false_positives = np.sum(called_positive & ~is_positive)
        true_positive_rates.append(true_positives / positives)
        false_positive_rates.append(false_positives / negatives)
    return false_positive_rates, true_positive_rates


def area_under_curve(xs, ys):
    """Trapezoids."""
    area = 0.0
    for i in range(1, len(xs)):
        area = area + (xs[i] - xs[i - 1]) * (ys[i] + ys[i - 1]) / 2.0
    return float(area)


def classification_metrics(targets, probabilities):
    targets = np.array(targets).astype(int)
    probabilities = np.array(probabilities, dtype=np.float64)
    n = probabilities.shape[0]
    classes = probabilities.shape[1]

    confusion = np.zeros((classes, classes), dtype=int)
    correct = 0
    for i in range(n):
        prediction = int(np.argmax(probabilities[i]))  # of equals the first
        confusion[targets[i], prediction] += 1
        if prediction == targets[i]:
            correct = correct + 1

    precision = np.zeros(classes)
    recall = np.zeros(classes)
    f1 = np.zeros(classes)
    support = np.zeros(classes, dtype=int)
    roc_auc = np.zeros(classes)
    for c in range(classes):
        true_positives = confusion[c, c]
        predicted = np.sum(confusion[:, c])
        real = np.sum(confusion[c, :])
        precision[c] = safe_divide(true_positives, predicted)
        recall[c] = safe_divide(true_positives, real)
        f1[c] = safe_divide(2 * precision[c] * recall[c], precision[c] + recall[c])
        support[c] = real

        is_positive = targets == c
        if real == 0 or real == n:
            roc_auc[c] = np.nan
        else:
            xs, ys = roc_points(is_positive, probabilities[:, c])
            roc_auc[c] = area_under_curve(xs, ys)

    result = {
        "confusion": confusion,
        "precision": precision,
        "recall": recall,
        "f1": f1,
        "support": support,
        "roc_auc": roc_auc,
        "accuracy": safe_divide(correct, n),
    }

    for name in ["precision", "recall", "f1", "roc_auc"]:
        values = result[name]
        total = 0.0
        weighted_total = 0.0
        how_many = 0
        sum_of_weights = 0
        for c in range(classes):
            if support[c] == 0:
                continue  # does not occur
            if np.isnan(values[c]):
                continue
            total = total + values[c]
            how_many = how_many + 1
            weighted_total = weighted_total + values[c] * support[c]
            sum_of_weights = sum_of_weights + support[c]
        if how_many == 0:
            result["macro_" + name] = float("nan")
            result["weighted_" + name] = float("nan")
        else:
            result["macro_" + name] = float(total / how_many)
            result["weighted_" + name] = float(weighted_total / sum_of_weights)
    return result


# %%
def write_values(writer, prefix, thing):
    if isinstance(thing, dict):
        for name in thing:
            if prefix == "":
                new_prefix = str(name)
            else:
                new_prefix = prefix + "." + str(name)
            write_values(writer, new_prefix, thing[name])
    elif isinstance(thing, (list, tuple, np.ndarray, torch.Tensor)):
        array = np.array(thing)
        if array.ndim == 0:
            writer.writerow([prefix, array.item()])
        elif array.ndim == 1:
            for i in range(len(array)):
                writer.writerow([prefix + "." + str(i), array[i].item()])
        # matrices are left out
    else:
        writer.writerow([prefix, thing])


def export_metrics(metrics, path):
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["metric", "value"])
        write_values(writer, "", metrics)


# %% [markdown]
# ## Plots

# %%
def plot_learning_curves(history):
    epochs = list(range(1, len(history["train_loss"]) + 1))
    plt.figure(figsize=(12, 5))
    plt.subplot(1, 2, 1)
    plt.plot(epochs, history["train_loss"], "b-o", label="Training loss")
    plt.plot(epochs, history["validation_loss"], "r-o", label="Validation loss")
    plt.title("Loss")
    plt.xlabel("Epoch")
    plt.ylabel("Loss")
    plt.legend()
    plt.grid(True)
    plt.subplot(1, 2, 2)
    plt.plot(epochs, history["train_accuracy"], "b-o", label="Training accuracy")
    plt.plot(epochs, history["validation_accuracy"], "r-o", label="Validation accuracy")
    plt.title("Accuracy")
    plt.xlabel("Epoch")
    plt.ylabel("Accuracy")
    plt.legend()
    plt.grid(True)
    plt.tight_layout()


# %%
def plot_confusion_matrix(matrix, class_names):
    matrix = np.array(matrix)
    plt.figure(figsize=(9, 8))
    plt.imshow(matrix, cmap="Greens")
    plt.colorbar()
    ticks = list(range(len(class_names)))
    plt.xticks(ticks, class_names, rotation=90)
    plt.yticks(ticks, class_names)
    plt.xlabel("Predicted class")
    plt.ylabel("True class")
    plt.title("Confusion matrix")
    for i in range(matrix.shape[0]):
        for j in range(matrix.shape[1]):
            color = "black"
            if matrix[i, j] > matrix.max() / 2:
                color = "white"
            plt.text(j, i, str(int(matrix[i, j])), ha="center", va="center", color=color)
    plt.tight_layout()


# %%
def plot_roc(targets, probabilities, class_names):
    targets = np.array(targets)
    probabilities = np.array(probabilities)
    plt.figure(figsize=(8, 7))
    for c in range(len(class_names)):
        is_positive = targets == c
        if is_positive.sum() == 0 or is_positive.sum() == len(targets):
            continue  # there is no curve
        xs, ys = roc_points(is_positive, probabilities[:, c])
        area = area_under_curve(xs, ys)
        plt.plot(xs, ys, label="%s (AUC = %.3f)" % (class_names[c], area))
    plt.plot([0, 1], [0, 1], "k--", label="guessing")
    plt.xlabel("False positive rate")
    plt.ylabel("True positive rate")
    plt.title("ROC curves, one against the rest")
    plt.legend(loc="lower right")


# %%
def undo_normalization(image, mean, std):
    picture = image.detach().cpu().clone()
    for channel in range(picture.shape[0]):
        picture[channel] = picture[channel] * float(std[channel]) + float(mean[channel])
    picture = picture.clamp(0, 1)
    return picture.permute(1, 2, 0).numpy()


def plot_attention(model, images, labels, class_names, mean, std):
    number = len(images)
    plt.figure(figsize=(9, 3 * number))
    for i in range(number):
        picture = undo_normalization(images[i], mean, std)
        heat = attention_map(model, images[i]).numpy()

        plt.subplot(number, 3, 3 * i + 1)
        plt.imshow(picture)
        plt.title(class_names[int(labels[i])])
        plt.axis("off")

        plt.subplot(number, 3, 3 * i + 2)
        plt.imshow(heat, cmap="hot")
        plt.title("Attention map")
        plt.axis("off")

        plt.subplot(number, 3, 3 * i + 3)
        plt.imshow(picture)
        plt.imshow(heat, cmap="hot", alpha=0.5)
        plt.title("Overlay")
        plt.axis("off")
    plt.tight_layout()


# %%
def plot_top3(images, labels, probabilities, class_names, mean, std):
    probabilities = np.array(probabilities)
    number = len(images)
    plt.figure(figsize=(4 * number, 4.5))
    for i in range(number):
        plt.subplot(1, number, i + 1)
        plt.imshow(undo_normalization(images[i], mean, std))
        text = "True: " + class_names[int(labels[i])]
        best = np.argsort(-probabilities[i], kind="stable")[:3]
        place = 1
        for c in best:
            text = text + "\n%d. %s %.1f %%" % (place, class_names[c], 100 * probabilities[i, c])
            place = place + 1
        plt.title(text, fontsize=9)
        plt.axis("off")
    plt.tight_layout()


# %% [markdown]
# ## Train the ViT

# %%
VIT_EPOCHS = 6
RESNET_EPOCHS = 3

start = time.time()
vit = VisionTransformer(
    image_size=32,
    patch_size=4,
    in_channels=3,
    num_classes=number_of_classes,
    dim=64,
    depth=4,
    heads=4,
    mlp_ratio=2.0,
    dropout=0.0,
    positions="learned",
    pool="cls",
)
vit_history = fit(vit, loaders, VIT_EPOCHS, device)
torch.save(vit.state_dict(), STUDENT_ID + "_CIFAR10_vit.pth")
print("ViT finished after", round(time.time() - start), "seconds")

# %% [markdown]
# ## Train the ResNet

# %%
start = time.time()
resnet = ResNet18(num_classes=number_of_classes, width=16)
resnet_history = fit(resnet, loaders, RESNET_EPOCHS, device)
torch.save(resnet.state_dict(), STUDENT_ID + "_CIFAR10_resnet.pth")
print("ResNet finished after", round(time.time() - start), "seconds")

# %% [markdown]
# ## Test both, once

# %%
criterion = nn.CrossEntropyLoss()

vit_results = evaluate(vit, test_loader, criterion, device)
vit_metrics = classification_metrics(vit_results["targets"], vit_results["probabilities"])
print("vit test accuracy:", vit_results["accuracy"])
for name, count in parameter_table(vit):
    print("   ", name, count)

resnet_results = evaluate(resnet, test_loader, criterion, device)
resnet_metrics = classification_metrics(resnet_results["targets"], resnet_results["probabilities"])
print("resnet test accuracy:", resnet_results["accuracy"])
for name, count in parameter_table(resnet):
    print("   ", name, count)


# %%
def with_class_names(metrics):
    """Arrays become dicts from the class's name to the number, so that the CSV is easy to read."""
    named = {}
    for key in metrics:
        value = metrics[key]
        if key == "confusion":
            continue
        if isinstance(value, np.ndarray):
            named[key] = {}
            for c in range(len(class_names)):
                named[key][class_names[c]] = value[c]
        else:
            named[key] = value
    return named


both = {"vit": with_class_names(vit_metrics), "resnet": with_class_names(resnet_metrics)}
export_metrics(both, STUDENT_ID + "_metrics.csv")

# %%
plot_learning_curves(vit_history)
plot_confusion_matrix(vit_metrics["confusion"], class_names)
plot_roc(vit_results["targets"], vit_results["probabilities"], class_names)
plot_learning_curves(resnet_history)
plot_confusion_matrix(resnet_metrics["confusion"], class_names)
plot_roc(resnet_results["targets"], resnet_results["probabilities"], class_names)

# %%
some_images, some_labels = next(iter(test_loader))
some_images = some_images[:4]
some_labels = some_labels[:4]
plot_attention(vit, some_images, some_labels, class_names, MEAN, STD)
vit.eval()
with torch.no_grad():
    some_probabilities = torch.softmax(vit(some_images.to(device)), dim=1).cpu()
plot_top3(some_images, some_labels, some_probabilities, class_names, MEAN, STD)

# %% [markdown]
# ## Study
# The base is a small ViT. One thing is changed at a time.

# %%
RUN_STUDY = False  # study.csv is there

if RUN_STUDY:
    base = {
        "patch_size": 8,
        "dim": 48,
        "depth": 3,
        "heads": 4,
        "mlp_ratio": 2.0,
        "positions": "learned",
        "epochs": 3,
    }
    experiments = []
    for seed in [1, 2, 3]:
        experiments.append((dict(base), seed))
    for key, value in [
        ("patch_size", 4),
        ("dim", 32),
        ("dim", 80),
        ("depth", 5),
        ("heads", 8),
        ("mlp_ratio", 3.0),
        ("positions", "sinusoidal"),
    ]:
        changed = dict(base)
        changed[key] = value
        experiments.append((changed, 1))

    rows = []
    for values, seed in experiments:
        print(values, "seed", seed)
        torch.manual_seed(seed)
        # a new model for every row!
        small_vit = VisionTransformer(
            patch_size=values["patch_size"],
            num_classes=number_of_classes,
            dim=values["dim"],
            depth=values["depth"],
            heads=values["heads"],
            mlp_ratio=values["mlp_ratio"],
            dropout=0.0,
            positions=values["positions"],
        )
        parameters = 0
        for name, count in parameter_table(small_vit):
            parameters = parameters + count
        fit(small_vit, loaders, values["epochs"], device)
        validation_results = evaluate(small_vit, loaders["validation"], criterion, device)
        row = dict(values)
        row["seed"] = seed
        row["parameters"] = parameters
        row["validation_accuracy"] = round(validation_results["accuracy"], 4)
        rows.append(row)

    columns = [
        "patch_size",
        "dim",
        "depth",
        "heads",
        "mlp_ratio",
        "positions",
        "epochs",
        "seed",
        "parameters",
        "validation_accuracy",
    ]
    with open(STUDENT_ID + "_study.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, fieldnames=columns)
        writer.writeheader()
        for row in rows:
            writer.writerow(row)
