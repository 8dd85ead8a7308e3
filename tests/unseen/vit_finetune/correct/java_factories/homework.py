"""Fine-tuning a pretrained Vision Transformer. The classes for mixing are in mixers.py, those for stopping in
stopping.py; the functions that the assignment asks for are facades."""

from __future__ import annotations

import math
import zipfile
from abc import ABC, abstractmethod
from enum import Enum

import matplotlib.pyplot as plt
import numpy as np
import torch
from handout import build_model, parts
from matplotlib.colors import Normalize
from mixers import AlternatingMixer, MixerFactory
from stopping import PlateauDetector, StopState
from torch import nn, optim
from torch.utils.data import DataLoader, Subset
from torchvision import datasets, transforms

STUDENT_ID = "400104001"
RATE = 3e-3
PATIENCE = 4
BATCH_SIZE = 64
EPOCHS = (3, 12)
MEAN, STD = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


# ---------------------------------------------------------------------------------------------- the split


class ClassBucket:
    """The rows of one class; each can be drawn once."""

    def __init__(self, label):
        self.__label = label
        self.__rows = []

    def add(self, row):
        self.__rows.append(row)

    def requireAtLeast(self, count):
        if len(self.__rows) < count:
            raise ValueError(f"class {self.__label}: {len(self.__rows)} images, {count} needed")

    def shuffle(self, rng):
        for i in range(len(self.__rows) - 1, 0, -1):
            j = int(rng.integers(0, i + 1))
            self.__rows[i], self.__rows[j] = self.__rows[j], self.__rows[i]

    def draw(self, count):
        drawn = self.__rows[:count]
        del self.__rows[:count]
        return drawn


class StratifiedSplitter:
    def __init__(self, seed):
        self.__rng = np.random.default_rng(seed)

    def split(self, labels, perClass):
        buckets = {}
        for row in range(len(labels)):
            label = int(labels[row])
            if label not in buckets:
                buckets[label] = ClassBucket(label)
            buckets[label].add(row)
        result = [[] for _ in perClass]
        for label in sorted(buckets.keys()):
            bucket = buckets[label]
            bucket.requireAtLeast(sum(perClass))
            bucket.shuffle(self.__rng)
            for k in range(len(perClass)):
                result[k].extend(bucket.draw(perClass[k]))
        return tuple(result)


def stratified_split(labels, per_class, seed):
    return StratifiedSplitter(seed).split(labels, per_class)


# --------------------------------------------------------------------------------------------- the mixing


def mixup(images, labels, alpha, generator):
    return MixerFactory.create("mixup", alpha, generator).mix(images, labels).toTuple()


def cutmix(images, labels, alpha, generator):
    return MixerFactory.create("cutmix", alpha, generator).mix(images, labels).toTuple()


def mixed_loss(criterion, logits, labels_a, labels_b, lam):
    first = criterion(logits, labels_a)
    second = criterion(logits, labels_b)
    return first.mul(lam).add(second.mul(1 - lam))


# --------------------------------------------------------------------------------------------- what learns


class LearnerSelection:
    """Builder: begin with nothing, add modules, apply."""

    def __init__(self, model):
        self.__model = model
        self.__modules = []

    def with_(self, module):
        self.__modules.append(module)
        return self

    def withAll(self, modules):
        for module in modules:
            self.with_(module)
        return self

    def apply(self):
        self.__model.requires_grad_(False)
        for module in self.__modules:
            module.requires_grad_(True)


def freeze_backbone(model):
    head, _, _ = parts(model)
    LearnerSelection(model).with_(head).apply()


def unfreeze(model, blocks=None):
    selection = LearnerSelection(model)
    if blocks is None:
        selection.with_(model)
    else:
        head, layers, norm = parts(model)
        firstLearning = max(0, len(layers) - blocks)
        selection.with_(head).with_(norm).withAll(layers[firstLearning:])
    selection.apply()


# --------------------------------------------------------------------------------- training and evaluation


class RunningMean:
    def __init__(self):
        self.__sum, self.__weight = 0.0, 0

    def add(self, value, weight):
        self.__sum += value * weight
        self.__weight += weight

    def get(self):
        return self.__sum / self.__weight


class Evaluation:
    """Static helpers."""

    @staticmethod
    def accuracy(logits, labels):
        return (logits.argmax(dim=1) == labels).double().mean().item()


class Identity:
    """Null object in place of a mixer."""

    def __call__(self, images, labels):
        return images, labels, labels, 1.0


def train_one_epoch(model, loader, optimizer, criterion, device, mix=None):
    mixer = Identity() if mix is None else mix
    model.train()
    for block in parts(model)[1]:
        if all(not parameter.requires_grad for parameter in block.parameters()):
            block.eval()
    loss_mean, accuracy_mean = RunningMean(), RunningMean()
    for images, labels in loader:
        images, labels_a, labels_b, lam = mixer(images.to(device), labels.to(device))
        optimizer.zero_grad()
        logits = model(images)
        loss = mixed_loss(criterion, logits, labels_a, labels_b, lam)
        loss.backward()
        optimizer.step()
        own, foreign = Evaluation.accuracy(logits, labels_a), Evaluation.accuracy(logits, labels_b)
        loss_mean.add(loss.item(), images.shape[0])
        accuracy_mean.add(lam * own + (1 - lam) * foreign, images.shape[0])
    return loss_mean.get(), accuracy_mean.get()


def evaluate(model, loader, criterion, device):
    model.eval()
    loss_mean, accuracy_mean = RunningMean(), RunningMean()
    targets, predictions = [], []
    with torch.inference_mode():
        for images, labels in loader:
            images, labels = images.to(device), labels.to(device)
            logits = model(images)
            loss_mean.add(criterion(logits, labels).item(), images.shape[0])
            accuracy_mean.add(Evaluation.accuracy(logits, labels), images.shape[0])
            targets.extend(labels.tolist())
            predictions.extend(logits.argmax(dim=1).tolist())
    return loss_mean.get(), accuracy_mean.get(), targets, predictions


class EarlyStopping:
    """Adapter from the assignment's names to PlateauDetector."""

    def __init__(self, patience, min_delta=0.0):
        self.__detector = PlateauDetector(patience, min_delta)

    def step(self, value, model):
        return self.__detector.accept(float(value), model) is StopState.STOPPED

    def restore(self, model):
        self.__detector.restore(model)


# --------------------------------------------------------------------------------------------------- stages


class StageKind(Enum):
    HEAD = 1
    EVERYTHING = 2


class Stage(ABC):
    """Template method `run`; subclasses say what learns, at which rate, from which images."""

    __KEYS = ("train_loss", "train_acc", "val_loss", "val_acc", "stage")

    def __init__(self, model, loaders, epochs, device):
        self._model, self._loaders, self._epochs, self._device = model, loaders, epochs, device

    @staticmethod
    def emptyHistory():
        return {key: [] for key in Stage.__KEYS}

    @abstractmethod
    def chooseLearners(self): ...

    @abstractmethod
    def rateAt(self, epoch): ...

    @abstractmethod
    def createMixer(self): ...

    @abstractmethod
    def kind(self): ...

    def run(self, history):
        self.chooseLearners()
        learners = [parameter for parameter in self._model.parameters() if parameter.requires_grad]
        optimizer = optim.Adamax(learners, lr=self.rateAt(0), weight_decay=1e-4)
        mixer, stopping = self.createMixer(), EarlyStopping(PATIENCE)
        training_criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
        for epoch in range(self._epochs):
            for group in optimizer.param_groups:
                group["lr"] = self.rateAt(epoch)
            train_loss, train_accuracy = train_one_epoch(
                self._model, self._loaders["train"], optimizer, training_criterion, self._device, mixer
            )
            val_loss, val_accuracy, _, _ = evaluate(
                self._model, self._loaders["validation"], nn.CrossEntropyLoss(), self._device
            )
            row = (train_loss, train_accuracy, val_loss, val_accuracy, self.kind().value)
            for key, value in zip(Stage.__KEYS, row):
                history[key].append(value)
            print(f"{self.kind().name} {epoch + 1}: training {train_accuracy:.3f}, validation {val_accuracy:.3f}")
            if stopping.step(val_accuracy, self._model):
                break
        stopping.restore(self._model)


class HeadStage(Stage):
    def chooseLearners(self):
        freeze_backbone(self._model)

    def rateAt(self, epoch):
        return RATE

    def createMixer(self):
        return None

    def kind(self):
        return StageKind.HEAD


class EverythingStage(Stage):
    def chooseLearners(self):
        unfreeze(self._model)

    def rateAt(self, epoch):
        progress = epoch / max(self._epochs, 1)
        return RATE / 10 * (1 + math.cos(math.pi * progress)) / 2

    def createMixer(self):
        generator = np.random.default_rng(20)
        return AlternatingMixer(
            MixerFactory.create("mixup", 0.3, generator),
            MixerFactory.create("cutmix", 0.8, generator),
            generator,
        )

    def kind(self):
        return StageKind.EVERYTHING


class StageFactory:
    __CLASSES = {StageKind.HEAD: HeadStage, StageKind.EVERYTHING: EverythingStage}

    @staticmethod
    def create(kind, model, loaders, epochs, device):
        return StageFactory.__CLASSES[kind](model, loaders, epochs, device)


def fit(model, loaders, epochs, device):
    model.to(device)
    history = Stage.emptyHistory()
    for kind, count in zip(StageKind, epochs):
        StageFactory.create(kind, model, loaders, count, device).run(history)
    return history


# ----------------------------------------------------------------------------------------------- per class


class ClassCounter:
    def __init__(self):
        self.__hits, self.__images = 0, 0

    def record(self, hit):
        self.__images += 1
        if hit:
            self.__hits += 1

    def getAccuracy(self):
        if self.__images == 0:
            return math.nan
        return self.__hits / self.__images


def per_class_accuracy(targets, predictions, classes):
    counters = [ClassCounter() for _ in range(classes)]
    for i in range(len(targets)):
        counters[int(targets[i])].record(int(targets[i]) == int(predictions[i]))
    return np.array([counter.getAccuracy() for counter in counters])


# ------------------------------------------------------------------------------------------------ pictures


class AbstractPicture(ABC):
    """A figure that is built once and then shown."""

    def __init__(self, width, height, rows=1, columns=1):
        self._figure, self._axes = plt.subplots(rows, columns, figsize=(width, height), squeeze=False)

    @abstractmethod
    def draw(self): ...

    def show(self):
        self.draw()
        self._figure.tight_layout()
        plt.show()


class ImagePicture(AbstractPicture):
    @staticmethod
    def undoNormalization(image, mean, std):
        channels = [
            image[c].detach().cpu().double().numpy() * float(std[c]) + float(mean[c])
            for c in range(image.shape[0])
        ]
        return np.clip(np.stack(channels, axis=-1), 0, 1)


class PatchesPicture(ImagePicture):
    """A grid of axes: its first column is one large place for the image, the others hold the patches."""

    def __init__(self, image, patchSize, mean, std):
        self.__image = self.undoNormalization(image, mean, std)
        self.__size = patchSize
        self.__rows, self.__columns = image.shape[1] // patchSize, image.shape[2] // patchSize
        super().__init__(9, 5, self.__rows, 2 * self.__columns)

    def draw(self):
        grid = self._axes[0, 0].get_gridspec()
        for axes in self._axes[:, : self.__columns].flat:
            axes.remove()
        whole = self._figure.add_subplot(grid[:, : self.__columns])
        whole.imshow(self.__image)
        whole.axis("off")
        for y in range(self.__rows):
            for x in range(self.__columns):
                top, left = y * self.__size, x * self.__size
                axes = self._axes[y, self.__columns + x]
                axes.imshow(self.__image[top : top + self.__size, left : left + self.__size])
                axes.axis("off")


class AttentionPicture(ImagePicture):
    def __init__(self, model, image, mean, std):
        super().__init__(9, 4, 1, 2)
        self.__model, self.__input = model, image
        self.__image = self.undoNormalization(image, mean, std)

    def __computeMap(self):
        attention = self.__model.blocks[-1].attn
        outputs = []
        handle = attention.qkv.register_forward_hook(lambda layer, inputs, output: outputs.append(output))
        try:
            with torch.no_grad():
                self.__model(self.__input.unsqueeze(0).to(self.__model.pos_embed.device))
        finally:
            handle.remove()
        qkv = outputs[0][0].cpu()
        tokens, dim = qkv.shape[0], qkv.shape[1] // 3
        headDim = dim // attention.num_heads
        total = torch.zeros(tokens)
        for h in range(attention.num_heads):
            query = qkv[0, h * headDim : (h + 1) * headDim]
            keys = qkv[:, dim + h * headDim : dim + (h + 1) * headDim]
            total += torch.softmax(keys.mv(query) / math.sqrt(headDim), dim=0)
        size = self.__model.patch_embed.patch_size
        rows, columns = self.__input.shape[1] // size, self.__input.shape[2] // size
        return (total[1:] / attention.num_heads).reshape(rows, columns).numpy()

    def draw(self):
        left, right = self._axes[0]
        left.imshow(self.__image)
        left.set_title("the image")
        left.axis("off")
        weights = self.__computeMap()
        self._figure.colorbar(right.imshow(weights, norm=Normalize(0, weights.max())), ax=right)
        right.set_title("attention of the class token, last block")
        right.axis("off")


class HistoryPicture(AbstractPicture):
    def __init__(self, history):
        super().__init__(10, 4, 1, 2)
        self.__history = history

    def draw(self):
        firstOfStage2 = self.__history["stage"].count(StageKind.HEAD.value) + 1
        epochs = range(1, len(self.__history["stage"]) + 1)
        for axes, key, name in zip(self._axes[0], ("loss", "acc"), ("loss", "accuracy")):
            axes.plot(epochs, self.__history["train_" + key], marker="^", label="training")
            axes.plot(epochs, self.__history["val_" + key], marker="v", label="validation")
            axes.axvspan(0.5, firstOfStage2 - 0.5, color="lightgray", label="stage 1: head only")
            axes.axvline(firstOfStage2 - 0.5, color="gray")
            axes.set_xlabel("epoch")
            axes.set_ylabel(name)
            axes.legend()


class PerClassPicture(AbstractPicture):
    def __init__(self, names, accuracies):
        super().__init__(8, 4)
        self.__names, self.__accuracies = list(names), [float(a) for a in accuracies]

    def draw(self):
        axes = self._axes[0, 0]
        for i in range(len(self.__names)):
            if not math.isnan(self.__accuracies[i]):
                bar = axes.bar(i, self.__accuracies[i], color="steelblue")
                axes.bar_label(bar, fmt="%.2f")
        axes.set_xlim(-0.6, len(self.__names) - 0.4)
        axes.set_ylim(0, 1.1)
        axes.set_xticks(range(len(self.__names)), self.__names, rotation=40, ha="right")
        axes.set_xlabel("class")
        axes.set_ylabel("accuracy within the class")


class ConfusionPicture(AbstractPicture):
    def __init__(self, matrix, names):
        super().__init__(8, 8)
        self.__matrix, self.__names = np.asarray(matrix), list(names)

    def draw(self):
        axes = self._axes[0, 0]
        count = len(self.__names)
        edges = np.arange(count + 1) - 0.5
        axes.pcolormesh(edges, edges, self.__matrix, cmap="Purples", edgecolors="white")
        axes.invert_yaxis()
        half = self.__matrix.max() / 2
        for i in range(count):
            for j in range(count):
                color = "white" if self.__matrix[i, j] > half else "black"
                axes.text(j, i, int(self.__matrix[i, j]), ha="center", va="center", color=color)
        axes.set_xticks(range(count), self.__names, rotation=40, ha="right")
        axes.set_yticks(range(count), self.__names)
        axes.set_xlabel("predicted class")
        axes.set_ylabel("true class")


def show_patches(image, patch_size, mean, std):
    PatchesPicture(image, patch_size, mean, std).show()


def show_attention(model, image, mean, std):
    AttentionPicture(model, image, mean, std).show()


def plot_history(history):
    HistoryPicture(history).show()


def plot_per_class(names, accuracies):
    PerClassPicture(names, accuracies).show()


def plot_confusion_matrix(matrix, class_names):
    ConfusionPicture(matrix, class_names).show()


# ---------------------------------------------------------------------------------------------------- main


class DataModule:
    """Reads dataset.zip. Validation and test images are never augmented."""

    def __init__(self, path):
        with zipfile.ZipFile(path) as archive:
            archive.extractall("data")
        plain = transforms.Compose([transforms.ToTensor(), transforms.Normalize(MEAN, STD)])
        augmented = transforms.Compose(
            [transforms.RandomCrop(32, padding=2, padding_mode="reflect"), transforms.RandomHorizontalFlip(), plain]
        )
        self.__augmented = datasets.ImageFolder("data/train", transform=augmented)
        self.__plain = datasets.ImageFolder("data/train", transform=plain)
        self.__test = datasets.ImageFolder("data/test", transform=plain)

    def getClassNames(self):
        return self.__test.classes

    def createLoaders(self):
        fewest = int(np.bincount(self.__plain.targets).min())
        training, validation = stratified_split(
            self.__plain.targets, (fewest - fewest // 5, fewest // 5), seed=42
        )
        return {
            "train": DataLoader(Subset(self.__augmented, training), batch_size=BATCH_SIZE, shuffle=True),
            "validation": DataLoader(Subset(self.__plain, validation), batch_size=256),
        }

    def createTestLoader(self):
        return DataLoader(self.__test, batch_size=256)


class Main:
    @staticmethod
    def main():
        torch.manual_seed(42)
        data = DataModule("dataset.zip")
        names, testLoader = data.getClassNames(), data.createTestLoader()
        model = build_model(len(names))
        history = fit(model, data.createLoaders(), EPOCHS, device)
        torch.save(model.state_dict(), f"{STUDENT_ID}_Finetune.pth")
        plot_history(history)

        loss, accuracy, targets, predictions = evaluate(model, testLoader, nn.CrossEntropyLoss(), device)
        print(f"loss {loss:.4f}, accuracy {accuracy:.4f}")
        plot_per_class(names, per_class_accuracy(targets, predictions, len(names)))
        matrix = np.zeros((len(names), len(names)), dtype=int)
        for target, prediction in zip(targets, predictions):
            matrix[target, prediction] += 1
        plot_confusion_matrix(matrix, names)

        images, _ = next(iter(testLoader))
        show_patches(images[0], 4, MEAN, STD)
        show_attention(model, images[0], MEAN, STD)


if __name__ == "__main__":
    Main.main()
