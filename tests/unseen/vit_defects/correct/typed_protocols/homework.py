"""Vision Transformer for steel surface defects, with types everywhere.

Diagnostics go to the log (standard error); what the assignment asks to be printed is printed.
"""

from __future__ import annotations

import logging
import math
import random
import shutil
import time
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from enum import Enum
from pathlib import Path
from typing import Final, Generic, NamedTuple, Protocol, TypeVar, runtime_checkable

import matplotlib.pyplot as plt
import numpy as np
import torch
import torch.nn.functional as F
from einops.layers.torch import Rearrange
from matplotlib.axes import Axes
from sklearn.metrics import ConfusionMatrixDisplay
from torch import Tensor, nn, optim
from torch.utils.data import DataLoader, Subset
from torchvision import datasets, transforms

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
log = logging.getLogger("vit_defects")

STUDENT_ID: Final = "401206518"
SEED: Final = 42

device: Final = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(SEED)


# --- vocabulary --------------------------------------------------------------------------------------------


class Part(str, Enum):
    """A side of the split; the value is the name of its folder."""

    TRAIN = "train"
    TEST = "test"


class Pool(str, Enum):
    """What is classified."""

    CLS = "cls"
    MEAN = "mean"


class Batch(NamedTuple):
    images: Tensor  # (batch, channels, height, width)
    labels: Tensor  # (batch,)

    def to(self, where: torch.device) -> Batch:
        return Batch(self.images.to(where), self.labels.to(where))


@runtime_checkable
class BatchSource(Protocol):
    """Anything that can be iterated over for (images, labels)."""

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]: ...


class Criterion(Protocol):
    """Scores and labels to one number."""

    def __call__(self, scores: Tensor, labels: Tensor) -> Tensor: ...


class MeanCrossEntropy:
    def __call__(self, scores: Tensor, labels: Tensor) -> Tensor:
        return F.cross_entropy(scores, labels)


class SummedCrossEntropy:
    def __call__(self, scores: Tensor, labels: Tensor) -> Tensor:
        return F.cross_entropy(scores, labels, reduction="sum")


@dataclass(frozen=True)
class Tally:
    """Results that add up over batches."""

    loss: float = 0.0
    correct: int = 0
    images: int = 0

    def __add__(self, other: Tally) -> Tally:
        return Tally(self.loss + other.loss, self.correct + other.correct, self.images + other.images)

    @property
    def mean_loss(self) -> float:
        return self.loss / self.images

    @property
    def accuracy(self) -> float:
        return self.correct / self.images


T = TypeVar("T")


@dataclass
class BestSoFar(Generic[T]):
    """Remembers the value with the lowest score."""

    score: float = math.inf
    value: T | None = None

    def offer(self, score: float, make: Callable[[], T]) -> bool:
        if score < self.score:
            self.score, self.value = score, make()
            return True
        return False


# --- settings ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ModelSettings:
    image_size: int = 28
    patch_size: int = 4
    num_classes: int = 6
    dim: int = 96
    depth: int = 5
    heads: int = 6
    mlp_dim: int = 192
    pool: str = Pool.CLS.value
    channels: int = 1
    dim_head: int = 16
    dropout: float = 0.1
    emb_dropout: float = 0.05


@dataclass(frozen=True)
class TrainingSettings:
    learning_rate: float = 1e-3
    weight_decay: float = 0.02
    batch_size: int = 48
    epochs: int = 40
    validation_share: float = 0.1  # of the training images; the test images choose nothing
    archive: Path = field(default=Path("dataset.zip"))
    unpacked: Path = field(default=Path("dataset"))
    split: Path = field(default=Path("data"))


MODEL: Final = ModelSettings()
TRAINING: Final = TrainingSettings()
N_EPOCHS: Final = TRAINING.epochs
BATCH_SIZE: Final = TRAINING.batch_size


# --- data --------------------------------------------------------------------------------------------------


def find_class_folders(root: Path) -> Path:
    """The folder that holds one folder per class: `root` itself, or a single folder inside it."""
    folders = [path for path in root.iterdir() if path.is_dir() and path.name != "__MACOSX"]
    return find_class_folders(folders[0]) if len(folders) == 1 else root


def split_dataset(source: Path, destination: Path, train_share: float = 0.7, seed: int = SEED) -> None:
    """Copies source/<class>/* to destination/train/<class> and destination/test/<class>, class by class."""
    shutil.rmtree(destination, ignore_errors=True)
    for class_folder in sorted(path for path in source.iterdir() if path.is_dir()):
        names = sorted(p.name for p in class_folder.iterdir() if p.suffix.lower() in (".jpg", ".png", ".bmp"))
        random.Random(seed).shuffle(names)
        n_train = round(train_share * len(names))
        for part, chosen in ((Part.TRAIN, names[:n_train]), (Part.TEST, names[n_train:])):
            folder = destination / part.value / class_folder.name
            folder.mkdir(parents=True)
            for name in chosen:
                shutil.copy(class_folder / name, folder / name)
        log.info("%s: %d for training, %d for testing", class_folder.name, n_train, len(names) - n_train)


with zipfile.ZipFile(TRAINING.archive) as archive:
    archive.extractall(TRAINING.unpacked)
split_dataset(find_class_folders(TRAINING.unpacked), TRAINING.split)

ImageTransform = Callable[[object], Tensor]

transform: ImageTransform = transforms.Compose(
    [
        transforms.Resize((MODEL.image_size, MODEL.image_size)),
        transforms.Grayscale(num_output_channels=1),
        transforms.ToTensor(),
        transforms.Normalize((0.5,), (0.5,)),
    ]
)
augmentation: ImageTransform = transforms.Compose(
    [
        transform,
        transforms.RandomHorizontalFlip(),
        transforms.RandomVerticalFlip(),
        transforms.RandomCrop(MODEL.image_size, padding=2, padding_mode="reflect"),
    ]
)

train_set = datasets.ImageFolder(str(TRAINING.split / Part.TRAIN.value), transform=augmentation)
plain_train_set = datasets.ImageFolder(str(TRAINING.split / Part.TRAIN.value), transform=transform)
test_set = datasets.ImageFolder(str(TRAINING.split / Part.TEST.value), transform=transform)
class_names: Sequence[str] = train_set.classes


def hold_out(targets: Sequence[int], share: float, seed: int) -> tuple[list[int], list[int]]:
    """Indices to learn from and indices held out, the same share of every class."""
    rng = random.Random(seed)
    kept: list[int] = []
    held: list[int] = []
    for label in sorted(set(targets)):
        mine = [index for index, target in enumerate(targets) if target == label]
        rng.shuffle(mine)
        n_held = max(1, round(share * len(mine)))
        held += mine[:n_held]
        kept += mine[n_held:]
    return kept, held


kept, held = hold_out(train_set.targets, TRAINING.validation_share, SEED)
train_loader = DataLoader(Subset(train_set, kept), batch_size=BATCH_SIZE, shuffle=True)
validation_loader = DataLoader(Subset(plain_train_set, held), batch_size=256)
test_loader = DataLoader(test_set, batch_size=BATCH_SIZE, shuffle=False)
print(f"{len(train_set)} training images, {len(test_set)} test images, classes: {class_names}")
log.info("of the training images, %d are held out to choose the checkpoint", len(held))


def show_samples(dataset: datasets.ImageFolder, title: str, per_class: int = 6) -> None:
    """Draws a grid of images: one row per class."""
    fig, axes = plt.subplots(
        len(dataset.classes), per_class, figsize=(1.5 * per_class, 9), squeeze=False, layout="constrained"
    )
    targets = np.asarray(dataset.targets)
    for label, row in enumerate(axes):
        row[0].set_title(dataset.classes[label], fontsize=9, loc="left")
        for ax in row:
            ax.set_axis_off()
        for ax, index in zip(row, np.flatnonzero(targets == label)[:per_class], strict=False):
            ax.imshow(dataset[int(index)][0].squeeze(0), cmap="gray", vmin=-1, vmax=1)
    fig.suptitle(title)
    plt.show()


show_samples(train_set, "Training images")
show_samples(test_set, "Test images")


# --- model -------------------------------------------------------------------------------------------------


class PreNorm(nn.Module):
    """Layer normalization, then another module."""

    def __init__(self, dim: int, fn: nn.Module) -> None:
        super().__init__()
        self.norm: Final = nn.LayerNorm(dim)
        self.fn: Final = fn

    def forward(self, x: Tensor, **kwargs: object) -> Tensor:
        return self.fn(self.norm(x), **kwargs)


class FeedForward(nn.Module):
    """Two linear layers with a nonlinearity between them, applied to each token by itself."""

    def __init__(self, dim: int, hidden_dim: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.widen = nn.Linear(dim, hidden_dim)
        self.activation = nn.GELU()
        self.narrow = nn.Linear(hidden_dim, dim)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        hidden: Tensor = self.dropout(self.activation(self.widen(x)))
        return self.dropout(self.narrow(hidden))


class QKV(NamedTuple):
    """Each (batch, heads, tokens, dim_head)."""

    query: Tensor
    key: Tensor
    value: Tensor


class Attention(nn.Module):
    """Multi-head self-attention."""

    def __init__(self, dim: int, heads: int = 4, dim_head: int = 64, dropout: float = 0.0) -> None:
        super().__init__()
        self.temperature: float = math.sqrt(dim_head)
        self.projections = nn.ModuleDict(
            {
                name: nn.Sequential(
                    nn.Linear(dim, heads * dim_head, bias=False), Rearrange("b n (h d) -> b h n d", h=heads)
                )
                for name in QKV._fields
            }
        )
        self.join = Rearrange("b h n d -> b n (h d)")
        self.output = nn.Linear(heads * dim_head, dim)
        self.dropout = nn.Dropout(dropout)

    def project(self, x: Tensor) -> QKV:
        return QKV(**{name: projection(x) for name, projection in self.projections.items()})

    def forward(self, x: Tensor) -> Tensor:
        query, key, value = self.project(x)
        scores = torch.matmul(query, key.transpose(-2, -1)) / self.temperature
        mixed = torch.matmul(scores.softmax(dim=-1), value)
        return self.dropout(self.output(self.join(mixed)))


class EncoderBlock(nn.Module):
    """One block: attention and feed-forward, each with its residual."""

    def __init__(self, dim: int, heads: int, dim_head: int, mlp_dim: int, dropout: float) -> None:
        super().__init__()
        self.attention = PreNorm(dim, Attention(dim, heads, dim_head, dropout))
        self.feed_forward = PreNorm(dim, FeedForward(dim, mlp_dim, dropout))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(x)
        return x + self.feed_forward(x)


class Transformer(nn.Module):
    """The encoder: `depth` blocks."""

    def __init__(
        self, dim: int, depth: int, heads: int, dim_head: int, mlp_dim: int, dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.blocks = nn.Sequential(*(EncoderBlock(dim, heads, dim_head, mlp_dim, dropout) for _ in range(depth)))

    def forward(self, x: Tensor) -> Tensor:
        return self.blocks(x)


class ViT(nn.Module):
    """The Vision Transformer: an image becomes a score for every class.

    Raises:
        ValueError: The patch size does not divide the image size, or the pool is unknown.
    """

    def __init__(
        self,
        *,
        image_size: int,
        patch_size: int,
        num_classes: int,
        dim: int,
        depth: int,
        heads: int,
        mlp_dim: int,
        pool: str = "cls",
        channels: int = 1,
        dim_head: int = 64,
        dropout: float = 0.0,
        emb_dropout: float = 0.0,
    ) -> None:
        super().__init__()
        per_side, rest = divmod(image_size, patch_size)
        if rest:
            raise ValueError(f"patches of {patch_size} pixels do not fill an image of {image_size}")
        self.pool: Pool = Pool(pool)
        self.patches_to_tokens = nn.Sequential(
            Rearrange("b c (y p1) (x p2) -> b (y x) (c p1 p2)", p1=patch_size, p2=patch_size),
            nn.Linear(channels * patch_size**2, dim),
        )
        self.class_token = nn.Parameter(torch.zeros(1, 1, dim))
        self.positions = nn.Parameter(torch.empty(1, per_side**2 + 1, dim))
        nn.init.trunc_normal_(self.class_token, std=0.02)
        nn.init.trunc_normal_(self.positions, std=0.02)
        self.dropout = nn.Dropout(emb_dropout)
        self.transformer = Transformer(dim, depth, heads, dim_head, mlp_dim, dropout)
        self.head = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, num_classes))

    def pooled(self, tokens: Tensor) -> Tensor:
        match self.pool:
            case Pool.CLS:
                return tokens[:, 0]
            case Pool.MEAN:
                return tokens.mean(dim=1)

    def forward(self, img: Tensor) -> Tensor:
        patches: Tensor = self.patches_to_tokens(img)
        tokens = torch.cat((self.class_token.expand(patches.shape[0], -1, -1), patches), dim=1)
        tokens = self.transformer(self.dropout(tokens + self.positions))
        return self.head(self.pooled(tokens))


# --- training and evaluation ---------------------------------------------------------------------------------

REPORT_EVERY: Final = 100  # batches


def device_of(model: nn.Module) -> torch.device:
    return next((parameter.device for parameter in model.parameters()), torch.device("cpu"))


def batches(source: BatchSource, where: torch.device) -> Iterator[Batch]:
    for images, labels in source:
        yield Batch(images, labels).to(where)


def train_epoch(
    model: nn.Module, optimizer: optim.Optimizer, data_loader: BatchSource, loss_history: list[float]
) -> None:
    """Trains the model for one pass over the data."""
    criterion: Criterion = MeanCrossEntropy()
    model.train()
    for number, batch in enumerate(batches(data_loader, device_of(model))):
        optimizer.zero_grad(set_to_none=True)
        loss = criterion(model(batch.images), batch.labels)
        loss.backward()
        optimizer.step()
        if number % REPORT_EVERY == 0:
            loss_history.append(loss.item())
            print(f"  batch {number + 1:>4}  loss {loss_history[-1]:.4f}")


@torch.no_grad()
def tally(model: nn.Module, data_loader: BatchSource) -> Tally:
    criterion: Criterion = SummedCrossEntropy()
    model.eval()
    total = Tally()
    for images, labels in batches(data_loader, device_of(model)):
        scores: Tensor = model(images)
        correct = int((scores.argmax(dim=1) == labels).sum())
        total += Tally(criterion(scores, labels).item(), correct, labels.shape[0])
    return total


def evaluate(model: nn.Module, data_loader: BatchSource, loss_history: list[float]) -> Tally:
    """Appends the average loss per image to the history and prints it together with the accuracy."""
    result = tally(model, data_loader)
    loss_history.append(result.mean_loss)
    print(f"  loss {result.mean_loss:.4f}  accuracy {result.accuracy:.2%} ({result.correct} of {result.images})")
    return result


# --- the run -----------------------------------------------------------------------------------------------

model = ViT(**asdict(MODEL))
model.to(device)
print(f"The model has {sum(p.numel() for p in model.parameters() if p.requires_grad):,} parameters.")

optimizer = optim.AdamW(model.parameters(), lr=TRAINING.learning_rate, weight_decay=TRAINING.weight_decay)
scheduler = optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=N_EPOCHS)

Weights = dict[str, Tensor]


def copied_weights(source: nn.Module) -> Weights:
    return {name: tensor.detach().cpu().clone() for name, tensor in source.state_dict().items()}


train_loss_history: list[float] = []
test_loss_history: list[float] = []
best: BestSoFar[Weights] = BestSoFar()
start = time.time()
for epoch in range(1, N_EPOCHS + 1):
    print(f"Epoch {epoch}/{N_EPOCHS}")
    train_epoch(model, optimizer, train_loader, train_loss_history)
    evaluate(model, test_loader, test_loss_history)
    scheduler.step()
    validation = tally(model, validation_loader)
    if best.offer(validation.mean_loss, lambda: copied_weights(model)):
        log.info("epoch %d: lowest validation loss so far, %.4f", epoch, validation.mean_loss)
print(f"Training took {time.time() - start:.1f} s.")

if best.value is not None:
    model.load_state_dict(best.value)


@dataclass(frozen=True)
class Checkpoint:
    """Where the weights lie."""

    folder: Path = Path(".")
    student_id: str = STUDENT_ID
    suffix: str = ""

    @property
    def path(self) -> Path:
        return self.folder / f"{self.student_id}{self.suffix}.pth"

    def save(self, source: nn.Module) -> Path:
        torch.save(source.state_dict(), self.path)
        log.info("saved %s", self.path)
        return self.path

    def load(self, target: nn.Module) -> None:
        target.load_state_dict(torch.load(self.path, map_location=device, weights_only=True))


plain = Checkpoint()
for checkpoint in (plain, replace(plain, suffix="_Lab8_Homework")):
    checkpoint.save(model)
plain.load(model)
evaluate(model, test_loader, [])

plt.figure(figsize=(7, 4))
plt.plot(train_loss_history, marker=".", label="training loss (every 100 batches)")
plt.plot(test_loss_history, marker=".", label="test loss (every epoch)")
plt.xlabel("entry")
plt.ylabel("cross-entropy")
plt.legend()
plt.show()


# --- plots -------------------------------------------------------------------------------------------------


class Example(NamedTuple):
    image: Tensor
    true: int
    predicted: int

    @property
    def right(self) -> bool:
        return self.true == self.predicted


def examples(model: nn.Module, data_loader: BatchSource) -> Iterator[Example]:
    model.eval()
    for images, labels in batches(data_loader, device_of(model)):
        with torch.no_grad():
            predicted = model(images).argmax(dim=1)
        for image, true, answer in zip(images.cpu(), labels.tolist(), predicted.tolist(), strict=True):
            yield Example(image, true, answer)


def plot_confusion_matrix(model: nn.Module, data_loader: BatchSource, class_names: Sequence[str]) -> None:
    """Rows: true classes; columns: predicted classes."""
    found = list(examples(model, data_loader))
    _, ax = plt.subplots(figsize=(8, 7), layout="constrained")
    ConfusionMatrixDisplay.from_predictions(
        [example.true for example in found],
        [example.predicted for example in found],
        labels=list(range(len(class_names))),
        display_labels=list(class_names),
        xticks_rotation="vertical",
        values_format="d",
        cmap="Blues",
        ax=ax,
    )
    ax.set_title("Confusion matrix")
    plt.show()


def draw_example(ax: Axes, example: Example, class_names: Sequence[str]) -> None:
    pixels = (example.image * 0.5 + 0.5).clamp(0, 1).permute(1, 2, 0).numpy()
    ax.imshow(pixels if pixels.shape[-1] == 3 else pixels[..., 0], cmap="gray", vmin=0, vmax=1)
    ax.set_title(
        f"true: {class_names[example.true]}\npredicted: {class_names[example.predicted]}",
        fontsize=8,
        color="darkgreen" if example.right else "firebrick",
    )


def first_of_each(found: Iterable[Example], n_classes: int, wanted: int) -> list[list[Example]]:
    rows: list[list[Example]] = [[] for _ in range(n_classes)]
    for example in found:
        if len(rows[example.true]) < wanted:
            rows[example.true].append(example)
        if all(len(row) == wanted for row in rows):
            break
    return rows


def plot_classwise_predictions(
    model: nn.Module, data_loader: BatchSource, class_names: Sequence[str], samples_per_class: int = 4
) -> None:
    """Draws examples of every class with the true and the predicted label on each image."""
    rows = first_of_each(examples(model, data_loader), len(class_names), samples_per_class)
    fig, axes = plt.subplots(
        len(class_names),
        samples_per_class,
        figsize=(2.3 * samples_per_class, 2.3 * len(class_names)),
        squeeze=False,
        layout="constrained",
    )
    for ax in axes.flat:
        ax.set_axis_off()
    for row_of_axes, row in zip(axes, rows, strict=True):
        for ax, example in zip(row_of_axes, row, strict=False):
            draw_example(ax, example, class_names)
    fig.suptitle("Predictions, one row per true class")
    plt.show()


plot_confusion_matrix(model, test_loader, class_names)
plot_classwise_predictions(model, test_loader, class_names)
