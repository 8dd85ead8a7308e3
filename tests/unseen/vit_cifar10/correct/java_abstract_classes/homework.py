"""Assignment 2: Vision Transformer and ResNet-18 on CIFAR-10. Written by someone who writes Java at work."""

import csv
import math
import time
import zipfile
from abc import ABC, abstractmethod
from enum import Enum
from typing import Final, final

import matplotlib.pyplot as plt
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn, optim
from torch.utils.data import DataLoader, Subset
from torchvision import datasets, transforms


class Constants:
    """public static final ..."""

    STUDENT_ID: Final[str] = "400102001"
    MEAN: Final[tuple] = (0.4914, 0.4822, 0.4465)
    STD: Final[tuple] = (0.2470, 0.2435, 0.2616)
    BATCH_SIZE: Final[int] = 64
    SEED: Final[int] = 42

    def __init__(self):
        raise TypeError("static class")


# ============================================ attention ============================================


class PatchEmbedding(nn.Module):
    """Cuts images into patches and maps each of them."""

    def __init__(self, image_size, patch_size, in_channels, dim):
        super().__init__()
        self._rows = image_size // patch_size
        self._projection = nn.Conv2d(in_channels, dim, kernel_size=(patch_size, patch_size), stride=(patch_size, patch_size))

    def getNumPatches(self):
        return self._rows * self._rows

    def forward(self, images):
        grid = self._projection(images)
        tokens = grid.new_empty(grid.size(0), self.getNumPatches(), grid.size(1))
        # row by row, like the two loops over a 2-D array, but a row at once
        for row in range(self._rows):
            tokens[:, row * self._rows : (row + 1) * self._rows, :] = grid[:, :, row, :].transpose(1, 2)
        return tokens


def sinusoidal_positions(tokens, dim):
    table = [[0.0 for _ in range(dim)] for _ in range(tokens)]
    for pos in range(tokens):
        for column in range(dim):
            i = column // 2
            angle = pos / math.pow(10000.0, (2.0 * i) / dim)
            table[pos][column] = math.sin(angle) if column % 2 == 0 else math.cos(angle)
    return torch.tensor(table)


class AttentionScorer(ABC):
    """Strategy: how queries and keys become weights."""

    @abstractmethod
    def score(self, queries, keys):
        ...


@final
class ScaledDotProductScorer(AttentionScorer):
    """softmax(q k^T / sqrt(d)), with the maximum of each row taken away before exp."""

    def __init__(self, headDim):
        self._headDim = headDim

    def score(self, queries, keys):
        logits = torch.matmul(queries, keys.transpose(-1, -2)) / math.sqrt(self._headDim)
        logits = logits - torch.amax(logits, dim=-1, keepdim=True).detach()
        exponentials = torch.exp(logits)
        return exponentials / torch.sum(exponentials, dim=-1, keepdim=True)


class MultiHeadSelfAttention(nn.Module):
    def __init__(self, dim, heads, dropout=0.0):
        super().__init__()
        if dim % heads != 0:
            raise ValueError(f"dim {dim} is not a multiple of heads {heads}")
        self._heads = heads
        self._headDim = dim // heads
        self._scorer = ScaledDotProductScorer(self._headDim)
        self._queryProjection = nn.Linear(dim, dim)
        self._keyProjection = nn.Linear(dim, dim)
        self._valueProjection = nn.Linear(dim, dim)
        self._outputProjection = nn.Linear(dim, dim)
        self._dropout = nn.Dropout(p=dropout)

    def getHeads(self):
        return self._heads

    @staticmethod
    def splitHeads(tensor, heads):
        """(B, N, dim) -> (B, heads, N, dim / heads)"""
        return torch.stack(torch.tensor_split(tensor, heads, dim=-1), dim=1)

    @staticmethod
    def mergeHeads(tensor):
        """(B, heads, N, dim / heads) -> (B, N, dim)"""
        return torch.cat(torch.unbind(tensor, dim=1), dim=-1)

    def computeWeights(self, x):
        queries = MultiHeadSelfAttention.splitHeads(self._queryProjection(x), self._heads)
        keys = MultiHeadSelfAttention.splitHeads(self._keyProjection(x), self._heads)
        return self._scorer.score(queries, keys)

    def forward(self, x, return_weights=False):
        weights = self.computeWeights(x)
        values = MultiHeadSelfAttention.splitHeads(self._valueProjection(x), self._heads)
        result = self._outputProjection(MultiHeadSelfAttention.mergeHeads(torch.matmul(self._dropout(weights), values)))
        if return_weights:
            return result, weights
        return result


class AbstractSubLayer(nn.Module, ABC):
    """Template method: x + transform(norm(x)). Subclasses say what `transform` is."""

    def __init__(self, dim):
        super().__init__()
        self._norm = nn.LayerNorm(dim)

    def getNorm(self):
        return self._norm

    @abstractmethod
    def transform(self, x):
        ...

    @final
    def forward(self, x):
        return x + self.transform(self._norm(x))


@final
class AttentionSubLayer(AbstractSubLayer):
    def __init__(self, dim, heads, dropout):
        super().__init__(dim)
        self._attention = MultiHeadSelfAttention(dim, heads, dropout)

    def getAttention(self):
        return self._attention

    def transform(self, x):
        return self._attention(x)

    def getWeights(self, x):
        return self._attention.computeWeights(self._norm(x))


@final
class MlpSubLayer(AbstractSubLayer):
    def __init__(self, dim, hidden):
        super().__init__(dim)
        self._expand = nn.Linear(dim, hidden)
        self._contract = nn.Linear(hidden, dim)

    def transform(self, x):
        return self._contract(F.gelu(self._expand(x)))


class EncoderBlock(nn.Module):
    def __init__(self, dim, heads, mlp_ratio=4.0, dropout=0.0):
        super().__init__()
        self._attentionSubLayer = AttentionSubLayer(dim, heads, dropout)
        self._mlpSubLayer = MlpSubLayer(dim, int(dim * mlp_ratio))

    def getAttentionWeights(self, x):
        return self._attentionSubLayer.getWeights(x)

    def forward(self, x):
        return self._mlpSubLayer(self._attentionSubLayer(x))


# ======================================= the Vision Transformer =======================================


class Positions(Enum):
    LEARNED = "learned"
    SINUSOIDAL = "sinusoidal"


class AbstractPositionTable(nn.Module, ABC):
    @abstractmethod
    def getTable(self):
        ...

    def forward(self, tokens):
        return tokens + self.getTable()

    @staticmethod
    def create(kind, tokens, dim):
        """Factory method."""
        if Positions(kind) is Positions.LEARNED:
            return LearnedPositionTable(tokens, dim)
        return SinusoidalPositionTable(tokens, dim)


class LearnedPositionTable(AbstractPositionTable):
    def __init__(self, tokens, dim):
        super().__init__()
        self._embedding = nn.Embedding(tokens, dim)
        nn.init.normal_(self._embedding.weight, std=0.02)

    def getTable(self):
        return self._embedding.weight


class SinusoidalPositionTable(AbstractPositionTable):
    def __init__(self, tokens, dim):
        super().__init__()
        self.register_buffer("_table", sinusoidal_positions(tokens, dim))

    def getTable(self):
        return self._table


class AbstractPooling(nn.Module, ABC):
    """What is put in front of the patches, and what is read at the end."""

    @abstractmethod
    def getExtraTokens(self):
        ...

    @abstractmethod
    def prepend(self, patches):
        ...

    @abstractmethod
    def summarize(self, tokens):
        ...

    @staticmethod
    def create(kind, dim):
        implementations = {"cls": ClassTokenPooling, "mean": MeanPooling}
        if kind not in implementations:
            raise ValueError(f"unknown pool: {kind}")
        return implementations[kind](dim)


class ClassTokenPooling(AbstractPooling):
    def __init__(self, dim):
        super().__init__()
        self._token = nn.Parameter(torch.zeros(dim))
        nn.init.normal_(self._token, std=0.02)

    def getExtraTokens(self):
        return 1

    def prepend(self, patches):
        return torch.cat((self._token.repeat(patches.size(0), 1, 1), patches), dim=1)

    def summarize(self, tokens):
        return tokens.select(1, 0)


class MeanPooling(AbstractPooling):
    def __init__(self, dim):
        super().__init__()

    def getExtraTokens(self):
        return 0

    def prepend(self, patches):
        return patches

    def summarize(self, tokens):
        return tokens.sum(dim=1) / tokens.size(1)


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
        super().__init__()
        self._patchEmbedding = PatchEmbedding(image_size, patch_size, in_channels, dim)
        self._pooling = AbstractPooling.create(pool, dim)
        tokens = self._patchEmbedding.getNumPatches() + self._pooling.getExtraTokens()
        self._positionTable = AbstractPositionTable.create(positions, tokens, dim)
        self._depth = depth
        for index in range(depth):
            self.add_module(f"_encoderBlock{index}", EncoderBlock(dim, heads, mlp_ratio, dropout))
        self._finalNorm = nn.LayerNorm(dim)
        self._classifier = nn.Linear(dim, num_classes)

    def getBlock(self, index):
        return self.get_submodule(f"_encoderBlock{index}")

    def hasClassToken(self):
        return self._pooling.getExtraTokens() == 1

    def encode(self, images, numBlocks):
        tokens = self._positionTable(self._pooling.prepend(self._patchEmbedding(images)))
        index = 0
        while index < numBlocks:
            tokens = self.getBlock(index)(tokens)
            index += 1
        return tokens

    def forward(self, images):
        tokens = self._finalNorm(self.encode(images, self._depth))
        return self._classifier(self._pooling.summarize(tokens))

    def attention(self, images):
        last = self._depth - 1
        return self.getBlock(last).getAttentionWeights(self.encode(images, last))


class ModeGuard:
    """Remembers in which mode each part of a model is, like try/finally."""

    def __init__(self, model):
        self._states = [(module, module.training) for module in model.modules()]

    def restore(self):
        for module, training in self._states:
            module.training = training


def attention_map(model, image):
    guard = ModeGuard(model)
    try:
        model.eval()
        parameter = next(model.parameters())
        with torch.no_grad():
            weights = model.attention(torch.unsqueeze(image, 0).to(parameter.device))
    finally:
        guard.restore()
    weights = weights[0].mean(dim=0).cpu()
    numTokens = weights.size(0)
    side = math.isqrt(numTokens)
    hasClassToken = side * side != numTokens
    if hasClassToken:
        values = weights[0, 1:]
    else:
        values = weights.mean(dim=0)
    maximum = float(values.max())
    if maximum > 0.0:
        values = values / maximum
    height, width = image.shape[-2:]
    picture = torch.zeros(height, width)
    patchHeight, patchWidth = height // side, width // side
    for index in range(side * side):
        top, left = (index // side) * patchHeight, (index % side) * patchWidth
        picture[top : top + patchHeight, left : left + patchWidth].fill_(float(values[index]))
    return picture


# ============================================ the ResNet ============================================


class AbstractShortcut(nn.Module, ABC):
    @staticmethod
    def create(inChannels, outChannels, stride):
        if stride == 1 and inChannels == outChannels:
            return IdentityShortcut()
        return ProjectionShortcut(inChannels, outChannels, stride)


class IdentityShortcut(AbstractShortcut):
    def forward(self, x):
        return x


class ProjectionShortcut(AbstractShortcut):
    def __init__(self, inChannels, outChannels, stride):
        super().__init__()
        self._convolution = nn.Conv2d(inChannels, outChannels, 1, stride=stride, bias=False)
        self._batchNorm = nn.BatchNorm2d(outChannels)

    def forward(self, x):
        return self._batchNorm(self._convolution(x))


class BasicBlock(nn.Module):
    def __init__(self, in_channels, channels, stride=1):
        super().__init__()
        self._convolution1 = nn.Conv2d(in_channels, channels, 3, stride=stride, padding=1, bias=False)
        self._batchNorm1 = nn.BatchNorm2d(channels)
        self._convolution2 = nn.Conv2d(channels, channels, 3, stride=1, padding=1, bias=False)
        self._batchNorm2 = nn.BatchNorm2d(channels)
        self._shortcut = AbstractShortcut.create(in_channels, channels, stride)

    def forward(self, x):
        result = self._convolution1(x)
        result = self._batchNorm1(result)
        result = torch.clamp(result, min=0.0)
        result = self._convolution2(result)
        result = self._batchNorm2(result)
        return torch.clamp(result + self._shortcut(x), min=0.0)


class ResNet18(nn.Module):
    class Builder:
        """new Builder(width).addGroup(...).addGroup(...).build()"""

        def __init__(self, channels):
            self._channels = channels
            self._blocks = []

        def addGroup(self, channels, stride):
            self._blocks.append(BasicBlock(self._channels, channels, stride))
            self._blocks.append(BasicBlock(channels, channels))
            self._channels = channels
            return self

        def getChannels(self):
            return self._channels

        def build(self):
            return nn.Sequential(*self._blocks)

    def __init__(self, num_classes=10, width=64):
        super().__init__()
        self._stemConvolution = nn.Conv2d(3, width, 3, padding=1, bias=False)
        self._stemNorm = nn.BatchNorm2d(width)
        builder = (
            ResNet18.Builder(width)
            .addGroup(width, 1)
            .addGroup(width * 2, 2)
            .addGroup(width * 4, 2)
            .addGroup(width * 8, 2)
        )
        self._groups = builder.build()
        self._pooling = nn.AdaptiveAvgPool2d((1, 1))
        self._classifier = nn.Linear(builder.getChannels(), num_classes)

    def forward(self, images):
        features = torch.clamp(self._stemNorm(self._stemConvolution(images)), min=0.0)
        features = self._pooling(self._groups(features))
        return self._classifier(features.view(features.size(0), -1))


class ParameterCounter:
    """Visitor: counts every parameter where it is met first."""

    def __init__(self):
        self._counted = set()
        self._rows = []

    def visit(self, module, path):
        own = 0
        for parameter in module._parameters.values():
            if parameter is not None and id(parameter) not in self._counted:
                self._counted.add(id(parameter))
                own += parameter.numel()
        if own > 0:
            self._rows.append((path, own))
        for name, child in module.named_children():
            self.visit(child, path + "/" + name)

    def getRows(self):
        return self._rows


def parameter_table(model):
    counter = ParameterCounter()
    counter.visit(model, type(model).__name__)
    return counter.getRows()


# ============================================ training ============================================


def warmup_cosine(step, warmup_steps, total_steps):
    if step < warmup_steps:
        return float(step) / float(warmup_steps)
    elif step >= total_steps:
        return 0.0
    else:
        progress = (step - warmup_steps) / (total_steps - warmup_steps)
        return 0.5 * (1.0 + math.cos(progress * math.pi))


class Average:
    """A weighted mean, filled step by step."""

    def __init__(self):
        self._sum = 0.0
        self._weight = 0

    def add(self, value, weight):
        self._sum += value * weight
        self._weight += weight

    def getValue(self):
        return self._sum / self._weight if self._weight > 0 else 0.0


def countCorrect(scores, labels):
    return int(torch.eq(torch.argmax(scores, dim=1), labels).sum().item())


def train_epoch(model, loader, criterion, optimizer, scheduler, device):
    model.train()
    loss, accuracy = Average(), Average()
    for images, labels in loader:
        images = images.to(device)
        labels = labels.to(device)
        optimizer.zero_grad()
        scores = model(images)
        batchLoss = criterion(scores, labels)
        batchLoss.backward()
        optimizer.step()
        if scheduler is not None:
            scheduler.step()
        size = labels.size(0)
        loss.add(batchLoss.item(), size)
        accuracy.add(countCorrect(scores, labels) / size, size)
    return loss.getValue(), accuracy.getValue()


def evaluate(model, loader, criterion, device):
    model.eval()
    loss = Average()
    targets, scoreList = [], []
    with torch.no_grad():
        for images, labels in loader:
            scores = model(images.to(device))
            loss.add(criterion(scores, labels.to(device)).item(), labels.size(0))
            targets.append(labels)
            scoreList.append(scores.to("cpu"))
    allTargets = torch.cat(targets).to("cpu")
    allScores = torch.cat(scoreList)
    result = dict()
    result["loss"] = loss.getValue()
    result["accuracy"] = countCorrect(allScores, allTargets) / allTargets.size(0)
    result["targets"] = allTargets
    result["predictions"] = torch.argmax(allScores, dim=1)
    result["probabilities"] = torch.softmax(allScores, dim=1)
    return result


class Memento:
    """A snapshot of a model, from which it can be set back."""

    def __init__(self, model):
        self.__state = {}
        for name, tensor in model.state_dict().items():
            self.__state[name] = tensor.detach().clone()

    def restoreTo(self, model):
        model.load_state_dict(self.__state)


class EpochListener(ABC):
    """interface EpochListener"""

    @abstractmethod
    def epochFinished(self, epoch, trainLoss, trainAccuracy, validationLoss, validationAccuracy):
        ...


class TrainingHistory(EpochListener):
    """A bean with getters; plot_learning_curves reads it."""

    def __init__(self):
        self._epochs, self._trainLosses, self._trainAccuracies = [], [], []
        self._validationLosses, self._validationAccuracies = [], []

    def epochFinished(self, epoch, trainLoss, trainAccuracy, validationLoss, validationAccuracy):
        self._epochs.append(epoch)
        self._trainLosses.append(trainLoss)
        self._trainAccuracies.append(trainAccuracy)
        self._validationLosses.append(validationLoss)
        self._validationAccuracies.append(validationAccuracy)

    def getEpochs(self):
        return list(self._epochs)

    def getTrainLosses(self):
        return list(self._trainLosses)

    def getTrainAccuracies(self):
        return list(self._trainAccuracies)

    def getValidationLosses(self):
        return list(self._validationLosses)

    def getValidationAccuracies(self):
        return list(self._validationAccuracies)


class BestWeightsKeeper(EpochListener):
    def __init__(self, model):
        self._model = model
        self._bestAccuracy = None
        self._memento = None

    def epochFinished(self, epoch, trainLoss, trainAccuracy, validationLoss, validationAccuracy):
        if self._bestAccuracy is None or validationAccuracy > self._bestAccuracy:
            self._bestAccuracy = validationAccuracy
            self._memento = Memento(self._model)

    def restore(self):
        if self._memento is not None:
            self._memento.restoreTo(self._model)


class ConsolePrinter(EpochListener):
    def epochFinished(self, epoch, trainLoss, trainAccuracy, validationLoss, validationAccuracy):
        print("[epoch %d] train %.4f / %.4f, validation %.4f / %.4f" % (epoch, trainLoss, trainAccuracy, validationLoss, validationAccuracy))


class AbstractTrainer(ABC):
    """Template method `run`; subclasses choose the optimizer."""

    def __init__(self, model, device):
        self._model = model.to(device)
        self._device = device
        self._listeners = []

    @abstractmethod
    def createOptimizer(self):
        ...

    @abstractmethod
    def getWarmupShare(self):
        ...

    def addListener(self, listener):
        self._listeners.append(listener)

    def run(self, loaders, epochs):
        totalSteps = len(loaders["train"]) * epochs
        warmupSteps = int(self.getWarmupShare() * totalSteps)
        optimizer = self.createOptimizer()
        scheduler = optim.lr_scheduler.LambdaLR(
            optimizer, lr_lambda=lambda step: warmup_cosine(step, warmupSteps, totalSteps)
        )
        criterion = nn.CrossEntropyLoss()
        for epoch in range(1, epochs + 1):
            trainLoss, trainAccuracy = train_epoch(
                self._model, loaders["train"], criterion, optimizer, scheduler, self._device
            )
            validation = evaluate(self._model, loaders["validation"], criterion, self._device)
            for listener in self._listeners:
                listener.epochFinished(epoch, trainLoss, trainAccuracy, validation["loss"], validation["accuracy"])

    @staticmethod
    def forModel(model, device):
        if isinstance(model, ResNet18):
            return ResNetTrainer(model, device)
        return TransformerTrainer(model, device)


class TransformerTrainer(AbstractTrainer):
    def createOptimizer(self):
        return optim.AdamW(self._model.parameters(), lr=0.001, weight_decay=0.05)

    def getWarmupShare(self):
        return 0.1


class ResNetTrainer(AbstractTrainer):
    def createOptimizer(self):
        return optim.RMSprop(self._model.parameters(), lr=0.001, momentum=0.5, weight_decay=0.0001)

    def getWarmupShare(self):
        return 0.05


def fit(model, loaders, epochs, device):
    trainer = AbstractTrainer.forModel(model, device)
    history = TrainingHistory()
    keeper = BestWeightsKeeper(model)
    for listener in (history, keeper, ConsolePrinter()):
        trainer.addListener(listener)
    trainer.run(loaders, epochs)
    keeper.restore()
    return history


# ============================================ measures ============================================


class ArrayUtils:
    @staticmethod
    def toArray(values):
        if isinstance(values, torch.Tensor):
            return values.detach().cpu().numpy()
        return np.asarray(values)

    @staticmethod
    def safeDivide(numerator, denominator):
        return float(numerator) / float(denominator) if denominator != 0 else 0.0


class ConfusionMatrix:
    def __init__(self, numClasses):
        self._counts = np.zeros((numClasses, numClasses), dtype=np.int64)

    def record(self, truth, prediction):
        self._counts[truth, prediction] += 1

    def getCounts(self):
        return self._counts

    def getTruePositives(self, label):
        return self._counts[label, label]

    def getPredicted(self, label):
        return self._counts[:, label].sum()

    def getSupport(self, label):
        return self._counts[label, :].sum()


class RocCurve:
    """Points from (0, 0) to (1, 1), one for each different score, from the highest down."""

    def __init__(self, positive, scores):
        self._numPositive = int(np.count_nonzero(positive))
        self._numNegative = len(positive) - self._numPositive
        self._fpr, self._tpr = [0.0], [0.0]
        if self.isDefined():
            self._fill(positive, scores)

    def isDefined(self):
        return self._numPositive > 0 and self._numNegative > 0

    def _fill(self, positive, scores):
        order = np.argsort(scores)[::-1]
        hits, misses = 0, 0
        for rank in range(len(order)):
            if positive[order[rank]]:
                hits += 1
            else:
                misses += 1
            lastOfEquals = rank + 1 == len(order) or scores[order[rank + 1]] != scores[order[rank]]
            if lastOfEquals:
                self._fpr.append(misses / self._numNegative)
                self._tpr.append(hits / self._numPositive)

    def getFalsePositiveRates(self):
        return self._fpr

    def getTruePositiveRates(self):
        return self._tpr

    def getArea(self):
        if not self.isDefined():
            return float("nan")
        area = 0.0
        for i in range(1, len(self._fpr)):
            area += (self._fpr[i] - self._fpr[i - 1]) * (self._tpr[i] + self._tpr[i - 1]) / 2.0
        return area


class MeanCalculator:
    @staticmethod
    def mean(values, weights):
        """Weighted mean of the values that are numbers; NaN without any weight."""
        total, weightSum = 0.0, 0.0
        for value, weight in zip(values, weights):
            if weight > 0 and not math.isnan(value):
                total += float(value) * float(weight)
                weightSum += float(weight)
        return total / weightSum if weightSum > 0 else float("nan")


def classification_metrics(targets, probabilities):
    targets = ArrayUtils.toArray(targets)
    probabilities = ArrayUtils.toArray(probabilities)
    numClasses = probabilities.shape[1]
    matrix = ConfusionMatrix(numClasses)
    for truth, row in zip(targets, probabilities):
        matrix.record(int(truth), int(np.argmax(row)))

    precision, recall, f1 = np.zeros(numClasses), np.zeros(numClasses), np.zeros(numClasses)
    support, rocAuc = np.zeros(numClasses, dtype=np.int64), np.zeros(numClasses)
    for label in range(numClasses):
        truePositives = matrix.getTruePositives(label)
        support[label] = matrix.getSupport(label)
        precision[label] = ArrayUtils.safeDivide(truePositives, matrix.getPredicted(label))
        recall[label] = ArrayUtils.safeDivide(truePositives, support[label])
        f1[label] = ArrayUtils.safeDivide(2 * truePositives, matrix.getPredicted(label) + support[label])
        rocAuc[label] = RocCurve(targets == label, probabilities[:, label]).getArea()

    metrics = {"confusion": matrix.getCounts(), "support": support}
    metrics["accuracy"] = ArrayUtils.safeDivide(np.trace(matrix.getCounts()), len(targets))
    present = [1 if count > 0 else 0 for count in support]
    for name, values in (("precision", precision), ("recall", recall), ("f1", f1), ("roc_auc", rocAuc)):
        metrics[name] = values
        metrics["macro_" + name] = MeanCalculator.mean(values, present)
        metrics["weighted_" + name] = MeanCalculator.mean(values, support)
    return metrics


class MetricsWriter:
    """Recursive descent over the dictionaries. Not exported: matrices."""

    def __init__(self, file):
        self._writer = csv.writer(file, quoting=csv.QUOTE_MINIMAL)

    def writeHeader(self):
        self._writer.writerow(["metric", "value"])

    def write(self, name, value):
        if isinstance(value, dict):
            for key in value:
                self.write(self.join(name, key), value[key])
            return
        array = ArrayUtils.toArray(value)
        if array.ndim == 0:
            self._writer.writerow([name, array.item()])
        elif array.ndim == 1:
            for index in range(array.shape[0]):
                self._writer.writerow([self.join(name, index), array[index].item()])

    @staticmethod
    def join(prefix, key):
        return str(key) if prefix == "" else prefix + "." + str(key)


def export_metrics(metrics, path):
    with open(path, mode="w", newline="", encoding="utf-8") as file:
        writer = MetricsWriter(file)
        writer.writeHeader()
        writer.write("", metrics)


# ============================================ pictures ============================================


class AbstractPlot(ABC):
    """Template method `draw`: makes the axes, lets the subclass paint, gives the figure."""

    def __init__(self, rows, columns, width, height):
        self._figure, self._axes = plt.subplots(rows, columns, figsize=(width, height), squeeze=False)

    @abstractmethod
    def paint(self):
        ...

    def getAxis(self, row, column):
        return self._axes[row][column]

    @final
    def draw(self):
        self.paint()
        self._figure.tight_layout()
        return self._figure


class LearningCurvesPlot(AbstractPlot):
    def __init__(self, history):
        super().__init__(2, 2, 9, 7)
        self._history = history

    def _panel(self, row, column, values, title, quantity):
        axis = self.getAxis(row, column)
        axis.plot(self._history.getEpochs(), values, color="navy" if column == 0 else "darkorange", marker="o", label=title)
        axis.set_title(title)
        axis.set_xlabel("Epoch")
        axis.set_ylabel(quantity)
        axis.grid(True, linestyle=":")

    def paint(self):
        self._panel(0, 0, self._history.getTrainLosses(), "Training loss", "Loss")
        self._panel(0, 1, self._history.getValidationLosses(), "Validation loss", "Loss")
        self._panel(1, 0, self._history.getTrainAccuracies(), "Training accuracy", "Accuracy")
        self._panel(1, 1, self._history.getValidationAccuracies(), "Validation accuracy", "Accuracy")


def plot_learning_curves(history):
    return LearningCurvesPlot(history).draw()


class ConfusionMatrixPlot(AbstractPlot):
    def __init__(self, matrix, classNames):
        super().__init__(1, 1, 8, 8)
        self._matrix = ArrayUtils.toArray(matrix)
        self._classNames = list(classNames)

    def paint(self):
        axis = self.getAxis(0, 0)
        axis.imshow(self._matrix, cmap="Oranges")
        positions = list(range(len(self._classNames)))
        axis.set_xticks(positions)
        axis.set_xticklabels(self._classNames, rotation=45, ha="right")
        axis.set_yticks(positions)
        axis.set_yticklabels(self._classNames)
        axis.set_xlabel("Predicted class")
        axis.set_ylabel("True class")
        for row in positions:
            for column in positions:
                axis.text(column, row, "%d" % self._matrix[row][column], ha="center", va="center")


def plot_confusion_matrix(matrix, class_names):
    return ConfusionMatrixPlot(matrix, class_names).draw()


class RocPlot(AbstractPlot):
    def __init__(self, targets, probabilities, classNames):
        super().__init__(1, 1, 7, 6)
        self._targets = ArrayUtils.toArray(targets)
        self._probabilities = ArrayUtils.toArray(probabilities)
        self._classNames = classNames

    def paint(self):
        axis = self.getAxis(0, 0)
        for label, name in enumerate(self._classNames):
            curve = RocCurve(self._targets == label, self._probabilities[:, label])
            if curve.isDefined():
                axis.plot(
                    curve.getFalsePositiveRates(),
                    curve.getTruePositiveRates(),
                    label="%s (%.3f)" % (name, curve.getArea()),
                )
        axis.set_xlabel("False positive rate")
        axis.set_ylabel("True positive rate")
        axis.legend(title="Class (AUC)", fontsize="small")


def plot_roc(targets, probabilities, class_names):
    return RocPlot(targets, probabilities, class_names).draw()


class Denormalizer:
    def __init__(self, mean, std):
        self._mean = [float(value) for value in mean]
        self._std = [float(value) for value in std]

    def toPicture(self, image):
        """(C, H, W) of normalized numbers -> (H, W, C) of numbers from 0 to 1"""
        channels = []
        for channel in range(len(self._mean)):
            values = image[channel].detach().cpu() * self._std[channel] + self._mean[channel]
            channels.append(torch.clamp(values, 0.0, 1.0))
        return torch.stack(channels, dim=-1).numpy()


class AttentionPlot(AbstractPlot):
    def __init__(self, model, images, labels, classNames, denormalizer):
        super().__init__(len(images), 3, 6, 2 * len(images) + 0.5)
        self._model, self._images, self._labels = model, images, labels
        self._classNames, self._denormalizer = classNames, denormalizer

    def paint(self):
        for row in range(len(self._images)):
            picture = self._denormalizer.toPicture(self._images[row])
            heat = attention_map(self._model, self._images[row])
            self.getAxis(row, 0).imshow(picture)
            self.getAxis(row, 0).set_title(self._classNames[int(self._labels[row])])
            self.getAxis(row, 1).imshow(heat, cmap="hot", vmin=0.0, vmax=1.0)
            self.getAxis(row, 1).set_title("Attention")
            self.getAxis(row, 2).imshow(picture)
            self.getAxis(row, 2).imshow(heat, cmap="hot", vmin=0.0, vmax=1.0, alpha=0.5)
            self.getAxis(row, 2).set_title("Overlay")
            for column in range(3):
                self.getAxis(row, column).axis("off")


def plot_attention(model, images, labels, class_names, mean, std):
    return AttentionPlot(model, images, labels, class_names, Denormalizer(mean, std)).draw()


class TopThreePlot(AbstractPlot):
    def __init__(self, images, labels, probabilities, classNames, denormalizer):
        super().__init__(1, len(images), 2.4 * len(images), 3.6)
        self._images, self._labels = images, labels
        self._probabilities = ArrayUtils.toArray(probabilities)
        self._classNames, self._denormalizer = classNames, denormalizer

    def paint(self):
        for column in range(len(self._images)):
            axis = self.getAxis(0, column)
            axis.imshow(self._denormalizer.toPicture(self._images[column]))
            axis.set_xticks([])
            axis.set_yticks([])
            axis.set_title("True: %s" % self._classNames[int(self._labels[column])], fontsize=9)
            row = self._probabilities[column]
            ranking = sorted(range(len(row)), key=lambda label: row[label], reverse=True)
            axis.set_xlabel(
                "\n".join("%s %.1f %%" % (self._classNames[label], 100 * row[label]) for label in ranking[:3]),
                fontsize=8,
            )


def plot_top3(images, labels, probabilities, class_names, mean, std):
    return TopThreePlot(images, labels, probabilities, class_names, Denormalizer(mean, std)).draw()


# ============================================ application ============================================


class DataModule:
    """Opens the archive, and makes the loaders. Private constructor parts, public getters."""

    def __init__(self, archive):
        with zipfile.ZipFile(archive) as file:
            file.extractall("data")
        normalize = transforms.Normalize(Constants.MEAN, Constants.STD)
        self._plainTransform = transforms.Compose([transforms.ToTensor(), normalize])
        self._trainTransform = transforms.Compose(
            [
                transforms.RandomCrop(32, padding=4),
                transforms.RandomHorizontalFlip(p=0.5),
                transforms.ToTensor(),
                normalize,
            ]
        )
        self._test = datasets.ImageFolder("data/test", transform=self._plainTransform)
        self._splitTraining()

    def _splitTraining(self):
        augmented = datasets.ImageFolder("data/train", transform=self._trainTransform)
        plain = datasets.ImageFolder("data/train", transform=self._plainTransform)
        training, validation = [], []
        # every tenth image of each class is a validation image
        seen = {}
        for index, label in enumerate(plain.targets):
            seen[label] = seen.get(label, 0) + 1
            (validation if seen[label] % 10 == 0 else training).append(index)
        self._loaders = {
            "train": DataLoader(Subset(augmented, training), batch_size=Constants.BATCH_SIZE, shuffle=True),
            "validation": DataLoader(Subset(plain, validation), batch_size=256),
        }

    def getClassNames(self):
        return self._test.classes

    def getLoaders(self):
        return self._loaders

    def getTestLoader(self):
        return DataLoader(self._test, batch_size=256)


class Study:
    COLUMNS: Final[list] = [
        "patch_size", "dim", "depth", "heads", "mlp_ratio", "positions", "epochs", "seed", "parameters",
        "validation_accuracy",
    ]  # fmt: skip
    BASE: Final[dict] = {
        "patch_size": 8, "dim": 48, "depth": 3, "heads": 4, "mlp_ratio": 2.0, "positions": "learned", "epochs": 6,
    }  # fmt: skip
    CHANGES: Final[list] = [
        {"patch_size": 4}, {"dim": 96}, {"depth": 2}, {"depth": 6}, {"heads": 1}, {"mlp_ratio": 4.0},
        {"positions": "sinusoidal"},
    ]  # fmt: skip

    def __init__(self, data, device):
        self._data = data
        self._device = device
        self._rows = []

    def _train(self, values, seed):
        torch.manual_seed(seed)
        model = VisionTransformer(
            patch_size=values["patch_size"],
            num_classes=len(self._data.getClassNames()),
            dim=values["dim"],
            depth=values["depth"],
            heads=values["heads"],
            mlp_ratio=values["mlp_ratio"],
            positions=values["positions"],
            dropout=0.0,
        )
        row = dict(values)
        row["seed"] = seed
        row["parameters"] = sum(parameter.numel() for parameter in model.parameters())
        fit(model, self._data.getLoaders(), values["epochs"], self._device)
        result = evaluate(model, self._data.getLoaders()["validation"], nn.CrossEntropyLoss(), self._device)
        row["validation_accuracy"] = "%.4f" % result["accuracy"]
        self._rows.append(row)

    def run(self):
        for seed in (10, 20, 30):
            self._train(Study.BASE, seed)
        for change in Study.CHANGES:
            self._train({**Study.BASE, **change}, 10)

    def save(self, path):
        with open(path, "w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, Study.COLUMNS)
            writer.writeheader()
            writer.writerows(self._rows)


class Application:
    VIT_EPOCHS: Final[int] = 15
    RESNET_EPOCHS: Final[int] = 15
    RUN_STUDY: Final[bool] = True

    def __init__(self):
        self._device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        torch.manual_seed(Constants.SEED)
        self._data = DataModule("dataset.zip")
        self._measures = {}

    def _trainAndMeasure(self, name, model, epochs):
        classNames = self._data.getClassNames()
        start = time.time()
        history = fit(model, self._data.getLoaders(), epochs, self._device)
        torch.save(model.state_dict(), "%s_CIFAR10_%s.pth" % (Constants.STUDENT_ID, name))
        print("%s took %.0f s" % (name, time.time() - start))
        found = evaluate(model, self._data.getTestLoader(), nn.CrossEntropyLoss(), self._device)
        self._measures[name] = classification_metrics(found["targets"], found["probabilities"])
        print("%s: test accuracy %.4f" % (name, found["accuracy"]))
        for part, count in parameter_table(model):
            print("%10d %s" % (count, part))
        plot_learning_curves(history)
        plot_confusion_matrix(self._measures[name]["confusion"], classNames)
        plot_roc(found["targets"], found["probabilities"], classNames)

    def run(self):
        numClasses = len(self._data.getClassNames())
        vit = VisionTransformer(dim=96, depth=6, heads=4, mlp_ratio=2.0, dropout=0.0, num_classes=numClasses)
        self._trainAndMeasure("vit", vit, Application.VIT_EPOCHS)
        resnet = ResNet18(num_classes=numClasses, width=16)
        self._trainAndMeasure("resnet", resnet, Application.RESNET_EPOCHS)
        export_metrics(self._measures, Constants.STUDENT_ID + "_metrics.csv")

        images, labels = next(iter(self._data.getTestLoader()))
        images, labels = images[:4], labels[:4]
        plot_attention(vit, images, labels, self._data.getClassNames(), Constants.MEAN, Constants.STD)
        vit.eval()
        with torch.no_grad():
            probabilities = torch.softmax(vit(images.to(self._device)), dim=1).cpu()
        plot_top3(images, labels, probabilities, self._data.getClassNames(), Constants.MEAN, Constants.STD)

        if Application.RUN_STUDY:
            study = Study(self._data, self._device)
            study.run()
            study.save(Constants.STUDENT_ID + "_study.csv")

    @staticmethod
    def main():
        Application().run()
        plt.show()


if __name__ == "__main__":
    Application.main()
