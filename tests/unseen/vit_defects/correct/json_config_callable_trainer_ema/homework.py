"""Lab 8, Vision Transformer for steel surface defects.

Everything that can be tuned stands in the JSON text below; a Trainer object does the rest.
"""
from __future__ import annotations

import copy
import json
import math
import random
import shutil
import time
import zipfile
from dataclasses import asdict, dataclass
from pathlib import Path

import matplotlib.pyplot as plt
import seaborn as sns
import torch
import torch.nn.functional as F
from sklearn.metrics import confusion_matrix
from torch import nn, optim
from torch.utils.data import DataLoader
from torchvision import datasets, transforms

STUDENT_ID = "400107001"
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(42)

SETTINGS = json.loads(
    """
    {
      "model": {"image_size": 28, "patch_size": 4, "num_classes": 6, "channels": 1, "dim": 64, "depth": 6,
                "heads": 4, "mlp_dim": 128, "dim_head": 32, "dropout": 0.05, "emb_dropout": 0.0, "pool": "mean"},
      "training": {"epochs": 60, "batch_size": 64, "peak": 0.001, "decay": 0.05, "warmup_epochs": 5,
                   "ema_decay": 0.99}
    }
    """
)


@dataclass(frozen=True)
class ModelSettings:
    image_size: int
    patch_size: int
    num_classes: int
    dim: int
    depth: int
    heads: int
    mlp_dim: int
    pool: str = "cls"
    channels: int = 1
    dim_head: int = 64
    dropout: float = 0.0
    emb_dropout: float = 0.0


@dataclass(frozen=True)
class TrainingSettings:
    epochs: int
    batch_size: int
    peak: float
    decay: float
    warmup_epochs: int
    ema_decay: float


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


# ---------------------------------------------------------------- model
class PreNorm(nn.Module):
    def __init__(self, dim, fn):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.fn = fn

    def forward(self, x, **kwargs):
        return self.fn(self.norm(x), **kwargs)


class FeedForward(nn.Module):
    def __init__(self, dim, hidden_dim, dropout=0.0):
        super().__init__()
        self.up, self.down = nn.Linear(dim, hidden_dim), nn.Linear(hidden_dim, dim)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        return self.dropout(self.down(self.dropout(F.gelu(self.up(x)))))


class Attention(nn.Module):
    def __init__(self, dim, heads=4, dim_head=64, dropout=0.0):
        super().__init__()
        self.heads, self.dim_head = heads, dim_head
        self.kqv = nn.Linear(dim, 3 * heads * dim_head, bias=False)  # keys first, then queries, then values
        self.out = nn.Sequential(nn.Linear(heads * dim_head, dim), nn.Dropout(dropout))

    def forward(self, x):
        b, n, _ = x.shape
        k, q, v = self.kqv(x).view(b, n, 3, self.heads, self.dim_head).permute(2, 0, 3, 1, 4)
        attention = (q * self.dim_head**-0.5 @ k.transpose(-1, -2)).softmax(-1)
        return self.out((attention @ v).transpose(1, 2).flatten(2))


class Transformer(nn.Module):
    def __init__(self, dim, depth, heads, dim_head, mlp_dim, dropout=0.0):
        super().__init__()
        # one flat list: attention, feed-forward, attention, feed-forward, ...
        self.parts = nn.ModuleList()
        for _ in range(depth):
            self.parts.append(PreNorm(dim, Attention(dim, heads, dim_head, dropout)))
            self.parts.append(PreNorm(dim, FeedForward(dim, mlp_dim, dropout)))

    def forward(self, x):
        for part in self.parts:
            x = x + part(x)
        return x


class ViT(nn.Module):
    def __init__(self, *, image_size, patch_size, num_classes, dim, depth, heads, mlp_dim, pool="cls", channels=1,
                 dim_head=64, dropout=0.0, emb_dropout=0.0):
        super().__init__()
        if image_size % patch_size:
            raise ValueError("the patch size must divide the image size")
        if pool not in ("cls", "mean"):
            raise ValueError("pool is 'cls' or 'mean'")
        self.patch_size, self.pool = patch_size, pool
        self.embed = nn.Linear(channels * patch_size**2, dim)
        self.cls_token = nn.Parameter(torch.randn(1, 1, dim) * 0.02)
        self.pos_embedding = nn.Parameter(torch.randn(1, (image_size // patch_size) ** 2 + 1, dim) * 0.02)
        self.dropout = nn.Dropout(emb_dropout)
        self.transformer = Transformer(dim, depth, heads, dim_head, mlp_dim, dropout)
        self.head = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, num_classes))

    def forward(self, img):
        patches = F.unfold(img, self.patch_size, stride=self.patch_size).transpose(1, 2)
        tokens = torch.cat([self.cls_token.expand(len(img), -1, -1), self.embed(patches)], dim=1)
        tokens = self.transformer(self.dropout(tokens + self.pos_embedding))
        return self.head(tokens[:, 0] if self.pool == "cls" else tokens.mean(1))


# ---------------------------------------------------------------- one epoch, evaluation
def train_epoch(model, optimizer, data_loader, loss_history):
    model.train()
    seen, total = 0, len(data_loader.dataset)
    for i, (images, labels) in enumerate(data_loader):
        images, labels = images.to(device), labels.to(device)
        optimizer.zero_grad()
        loss = F.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        if i % 100 == 0:
            print(f"[{seen:5d}/{total:5d}]  loss {loss.item():.4f}")
            loss_history.append(loss.item())
        seen += len(images)


def evaluate(model, data_loader, loss_history):
    model.eval()
    loss_sum, correct, count = 0.0, 0, 0
    with torch.no_grad():
        for images, labels in data_loader:
            images, labels = images.to(device), labels.to(device)
            scores = model(images)
            loss_sum += F.cross_entropy(scores, labels, reduction="sum").item()
            correct += (scores.argmax(1) == labels).sum().item()
            count += len(labels)
    loss_history.append(loss_sum / count)
    print(f"average loss {loss_sum / count:.4f}, accuracy {correct}/{count} = {correct / count:.2%}")


# ---------------------------------------------------------------- training
class MovingAverage:
    """An exponential moving average of a model's weights."""

    def __init__(self, model, decay):
        self.decay, self.steps = decay, 0
        self.weights = copy.deepcopy(model.state_dict())

    @torch.no_grad()
    def update(self, model):
        self.steps += 1
        decay = min(self.decay, self.steps / (self.steps + 10))
        for name, value in model.state_dict().items():
            self.weights[name].lerp_(value, 1 - decay)


class Trainer:
    """Calling it trains the model and leaves the averaged weights in it."""

    def __init__(self, settings: TrainingSettings):
        self.settings = settings
        self.train_losses: list[float] = []
        self.test_losses: list[float] = []

    def factor(self, step: int, steps_per_epoch: int) -> float:
        warmup = self.settings.warmup_epochs * steps_per_epoch
        total = self.settings.epochs * steps_per_epoch
        if step < warmup:
            return (step + 1) / warmup
        return 0.5 * (1 + math.cos(math.pi * min(1.0, (step - warmup) / max(1, total - warmup))))

    def __call__(self, model: nn.Module, train_loader: DataLoader, test_loader: DataLoader) -> nn.Module:
        s = self.settings
        optimizer = optim.AdamW(model.parameters(), lr=s.peak, weight_decay=s.decay)
        scheduler = optim.lr_scheduler.LambdaLR(optimizer, lambda step: self.factor(step, len(train_loader)))
        average = MovingAverage(model, s.ema_decay)

        def after_every_step(*_):
            average.update(model)

        handle = optimizer.register_step_post_hook(after_every_step)
        # the schedule is per batch too: the loader below steps it after each batch was consumed
        for epoch in range(s.epochs):
            print(f"Epoch {epoch + 1}/{s.epochs}, learning rate {scheduler.get_last_lr()[0]:.6f}")
            train_epoch(model, optimizer, ThenStep(train_loader, scheduler), self.train_losses)
            evaluate(model, test_loader, self.test_losses)
        handle.remove()
        model.load_state_dict(average.weights)
        return model


class ThenStep:
    """A data loader that steps a scheduler each time the next batch is asked for."""

    def __init__(self, loader, scheduler):
        self.loader, self.scheduler, self.dataset = loader, scheduler, loader.dataset

    def __len__(self):
        return len(self.loader)

    def __iter__(self):
        for batch in self.loader:
            yield batch
            self.scheduler.step()


# ---------------------------------------------------------------- pictures
def predict(model, data_loader):
    model.eval()
    images, labels, predictions = [], [], []
    with torch.no_grad():
        for x, y in data_loader:
            images.append(x.cpu())
            labels.append(y.cpu())
            predictions.append(model(x.to(device)).argmax(1).cpu())
    return torch.cat(images), torch.cat(labels), torch.cat(predictions)


def plot_confusion_matrix(model, data_loader, class_names):
    _, labels, predictions = predict(model, data_loader)
    matrix = confusion_matrix(labels.numpy(), predictions.numpy(), labels=list(range(len(class_names))))
    fig, ax = plt.subplots(figsize=(7, 6))
    sns.heatmap(matrix, annot=True, fmt="d", cmap="Blues", xticklabels=class_names, yticklabels=class_names, ax=ax)
    ax.set(xlabel="predicted class", ylabel="true class", title="Confusion matrix")
    fig.tight_layout()
    plt.show()


def plot_classwise_predictions(model, data_loader, class_names, samples_per_class=4):
    images, labels, predictions = predict(model, data_loader)
    rows = len(class_names)
    fig, axes = plt.subplots(rows, samples_per_class, figsize=(2.4 * samples_per_class, 2.4 * rows), squeeze=False)
    for label in range(rows):
        chosen = (labels == label).nonzero().flatten()[:samples_per_class].tolist()
        for ax in axes[label]:
            ax.axis("off")
        for ax, index in zip(axes[label], chosen):
            ax.imshow(images[index].mean(0) * 0.5 + 0.5, cmap="gray", vmin=0, vmax=1)
            guess = predictions[index].item()
            ax.set_title(f"true: {class_names[label]}\npredicted: {class_names[guess]}", fontsize=8,
                         color="green" if guess == label else "red")
    fig.tight_layout()
    plt.show()


# ---------------------------------------------------------------- run
with zipfile.ZipFile("dataset.zip") as archive:
    archive.extractall("dataset")
split_dataset(find_class_folders(Path("dataset")), Path("data"))

base = [transforms.Resize((28, 28)), transforms.Grayscale(num_output_channels=1)]
finish = [transforms.ToTensor(), transforms.Normalize((0.5,), (0.5,))]
vary = [transforms.RandomHorizontalFlip(), transforms.RandomVerticalFlip(),
        transforms.RandomAffine(0, translate=(0.08, 0.08))]
model_settings = ModelSettings(**SETTINGS["model"])
training_settings = TrainingSettings(**SETTINGS["training"])

train_set = datasets.ImageFolder("data/train", transform=transforms.Compose(base + vary + finish))
test_set = datasets.ImageFolder("data/test", transform=transforms.Compose(base + finish))
train_loader = DataLoader(train_set, batch_size=training_settings.batch_size, shuffle=True)
test_loader = DataLoader(test_set, batch_size=256)
class_names = train_set.classes

trainer = Trainer(training_settings)
vit = ViT(**asdict(model_settings)).to(device)
print(vit)
print(f"{sum(p.numel() for p in vit.parameters()):,} parameters")

begin = time.perf_counter()
vit = trainer(vit, train_loader, test_loader)
print(f"Training took {time.perf_counter() - begin:.1f} s. With averaged weights:")
evaluate(vit, test_loader, [])

torch.save(vit.state_dict(), f"{STUDENT_ID}_Lab8_Homework.pth")
again = ViT(**asdict(model_settings)).to(device)
again.load_state_dict(torch.load(f"{STUDENT_ID}_Lab8_Homework.pth", map_location=device, weights_only=True))
evaluate(again, test_loader, [])

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4))
left.plot(trainer.train_losses)
left.set(title="training loss", xlabel="entry", ylabel="cross-entropy")
right.plot(trainer.test_losses)
right.set(title="test loss", xlabel="epoch", ylabel="cross-entropy")
plt.show()
plot_confusion_matrix(again, test_loader, class_names)
plot_classwise_predictions(again, test_loader, class_names)
