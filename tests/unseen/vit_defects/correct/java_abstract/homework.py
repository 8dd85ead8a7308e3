# %% [markdown]
# # Vision Transformer for steel surface defects
#
# My first language is Java. The classes of the assignment are in the package `steelvit`, beside this file, and
# are imported below; this file is the `main`: data, training, evaluation, figures.

# %%
import random
import shutil
import time
import zipfile
from pathlib import Path

import matplotlib.pyplot as plt
import seaborn as sns
import torch
from sklearn.metrics import confusion_matrix
from steelvit.layers import Attention, FeedForward, PreNorm
from steelvit.model import Transformer, ViT
from steelvit.training import Predictor, ScheduleListener, WarmupCosineSchedule, WeightAverager
from torch import nn, optim
from torch.utils.data import DataLoader
from torchvision import datasets, transforms

__all__ = ["Attention", "FeedForward", "PreNorm", "Transformer", "ViT"]

STUDENT_ID = "400103256"

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
# ## 2. Data sets, loaders and a first look


# %%
class TransformFactory:
    """Makes the transform of the test images and, from the same steps, that of the training images."""

    def __init__(self, side):
        self._side = side

    def create_steps(self):
        return [
            transforms.Resize((self._side, self._side)),
            transforms.Grayscale(num_output_channels=1),
            transforms.ToTensor(),
            transforms.Normalize((0.5,), (0.5,)),
        ]

    def create_plain(self):
        return transforms.Compose(self.create_steps())

    def create_augmenting(self):
        return transforms.Compose(
            [transforms.RandomHorizontalFlip(), transforms.RandomVerticalFlip(), *self.create_steps()]
        )


BATCH_SIZE = 64
factory = TransformFactory(28)
transform = factory.create_plain()

train_set = datasets.ImageFolder("data/train", transform=factory.create_augmenting())
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
# See `steelvit/layers.py` and `steelvit/model.py`.
#
# ## 4. Training and evaluation


# %%
def get_device(model):
    """Where the model lives."""
    for parameter in model.parameters():
        return parameter.device
    return device


class ProgressReporter:
    """Prints and records every n-th batch, beginning with the first."""

    def __init__(self, loss_history, interval=100):
        self._loss_history = loss_history
        self._interval = interval
        self._batches_seen = 0

    def report(self, loss):
        if self._batches_seen % self._interval == 0:
            print(f"  batch {self._batches_seen + 1}: loss = {loss:.4f}")
            self._loss_history.append(loss)
        self._batches_seen += 1


class EvaluationResult:
    """Accumulates batches. Getters only; nothing outside changes the sums."""

    def __init__(self):
        self._loss_sum = 0.0
        self._correct_count = 0
        self._total_count = 0

    def add_batch(self, scores, labels):
        self._loss_sum += nn.CrossEntropyLoss(reduction="sum")(scores, labels).item()
        self._correct_count += int(torch.eq(scores.argmax(dim=1), labels).sum())
        self._total_count += len(labels)

    def get_average_loss(self):
        return self._loss_sum / self._total_count

    def get_correct_count(self):
        return self._correct_count

    def get_total_count(self):
        return self._total_count

    def get_accuracy(self):
        return self._correct_count / self._total_count


def train_epoch(model, optimizer, data_loader, loss_history):
    """One pass over the data with a step of the optimizer for every batch."""
    criterion = nn.CrossEntropyLoss()
    reporter = ProgressReporter(loss_history)
    target_device = get_device(model)
    model.train()
    for images, labels in data_loader:
        optimizer.zero_grad()
        loss = criterion(model(images.to(target_device)), labels.to(target_device))
        loss.backward()
        optimizer.step()
        reporter.report(loss.item())


def evaluate(model, data_loader, loss_history):
    """Average loss per image and accuracy; returns the EvaluationResult."""
    result = EvaluationResult()
    target_device = get_device(model)
    model.eval()
    with torch.no_grad():
        for images, labels in data_loader:
            result.add_batch(model(images.to(target_device)), labels.to(target_device))
    loss_history.append(result.get_average_loss())
    print(
        f"  average loss = {result.get_average_loss():.4f}, accuracy = {100 * result.get_accuracy():.2f} % "
        f"({result.get_correct_count()}/{result.get_total_count()})"
    )
    return result


# %% [markdown]
# ## 5. Train, save, reload

# %%
model = ViT(
    image_size=28,
    patch_size=4,
    num_classes=6,
    channels=1,
    dim=96,
    depth=5,
    heads=6,
    dim_head=16,
    mlp_dim=192,
    pool="mean",
    dropout=0.05,
)
model.to(device)
print(model.describe())

N_EPOCHS = 48
LEARNING_RATE = 1e-3

optimizer = optim.AdamW(model.parameters(), lr=LEARNING_RATE, weight_decay=0.05)

# %%
train_loss_history, test_loss_history = [], []
averager = WeightAverager(first_epoch=N_EPOCHS - 5)
listeners = [ScheduleListener(optimizer, WarmupCosineSchedule(LEARNING_RATE, 4, N_EPOCHS)), averager]

start = time.time()
for epoch in range(N_EPOCHS):
    print(f"Epoch {epoch + 1} of {N_EPOCHS}")
    train_epoch(model, optimizer, train_loader, train_loss_history)
    evaluate(model, test_loader, test_loss_history)
    for listener in listeners:
        listener.on_epoch_end(epoch, model)
print(f"Training took {time.time() - start:.1f} s.")

if averager.has_average():
    model.load_state_dict(averager.get_average())
    print("With the mean of the weights of the last epochs:")
    evaluate(model, test_loader, [])

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
class ConfusionMatrixView:
    def __init__(self, predictions, class_names):
        self._class_names = list(class_names)
        self._counts = confusion_matrix(
            [p.true_label for p in predictions],
            [p.predicted_label for p in predictions],
            labels=list(range(len(self._class_names))),
        )

    def get_counts(self):
        return self._counts

    def draw(self, ax):
        sns.heatmap(
            self._counts,
            ax=ax,
            annot=True,
            fmt="d",
            cmap="Greens",
            cbar=False,
            square=True,
            linewidths=0.5,
            xticklabels=self._class_names,
            yticklabels=self._class_names,
        )
        ax.set_xlabel("Predicted class")
        ax.set_ylabel("True class")
        ax.set_title("Confusion matrix")


class PredictionGridView:
    def __init__(self, predictions, class_names, samples_per_class):
        self._class_names = list(class_names)
        self._columns = samples_per_class
        self._rows = {label: [] for label in range(len(self._class_names))}
        for prediction in predictions:
            row = self._rows[prediction.true_label]
            if len(row) < samples_per_class:
                row.append(prediction)

    def _draw_cell(self, ax, prediction):
        picture = (prediction.image * 0.5 + 0.5).clamp(0, 1)
        if picture.shape[0] == 1:
            ax.imshow(picture[0], cmap="gray", vmin=0, vmax=1)
        else:
            ax.imshow(picture.permute(1, 2, 0))
        ax.set_title(
            f"True: {self._class_names[prediction.true_label]}\n"
            f"Predicted: {self._class_names[prediction.predicted_label]}",
            color="darkgreen" if prediction.is_correct() else "firebrick",
            fontsize=8,
        )

    def draw(self, figure):
        grid = figure.add_gridspec(len(self._rows), self._columns)
        for label, row in self._rows.items():
            for column, prediction in enumerate(row):
                ax = figure.add_subplot(grid[label, column])
                ax.set_axis_off()
                self._draw_cell(ax, prediction)


def plot_confusion_matrix(model, data_loader, class_names):
    """True classes are rows, predicted classes are columns."""
    view = ConfusionMatrixView(Predictor(model, get_device(model)).predict_all(data_loader), class_names)
    figure, ax = plt.subplots(figsize=(7, 7))
    view.draw(ax)
    figure.tight_layout()
    plt.show()


def plot_classwise_predictions(model, data_loader, class_names, samples_per_class=4):
    """A row per true class."""
    predictions = Predictor(model, get_device(model)).predict_all(data_loader)
    view = PredictionGridView(predictions, class_names, samples_per_class)
    figure = plt.figure(figsize=(2.3 * samples_per_class, 2.4 * len(class_names)))
    view.draw(figure)
    figure.tight_layout()
    plt.show()


# %%
plot_confusion_matrix(model, test_loader, class_names)
plot_classwise_predictions(model, test_loader, class_names)
