"""Assignment 3: Fine-tuning a pretrained Vision Transformer.

This module contains a complete, self-contained implementation of the fine-tuning pipeline:

    1. A stratified split with an exact number of images per class and per part.
    2. Batch-level augmentation: mixup and cutmix, together with the loss for mixed labels.
    3. Control over which parameters learn (freezing and unfreezing).
    4. The training loop, the evaluation loop and early stopping with a snapshot of the best weights.
    5. A two-stage training procedure (``fit``).
    6. Metrics and visualizations.

Usage:
    Run the file as a script (``python homework.py``) to train on ``dataset.zip``, or import the functions that
    you need. Importing the module has no side effects.
"""

from __future__ import annotations

import logging
import math
import operator
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

import matplotlib.pyplot as plt
import numpy as np
import torch
from handout import build_model, parts
from torch import Tensor, nn, optim
from torch.utils.data import DataLoader, Subset
from torchvision import datasets, transforms

logger = logging.getLogger(__name__)

# ----------------------------------------------------------------------------------------------------------
# Configuration
# ----------------------------------------------------------------------------------------------------------

STUDENT_ID: Final[str] = "400104901"

SEED: Final[int] = 42
BATCH_SIZE: Final[int] = 64
MEAN: Final[tuple[float, float, float]] = (0.4914, 0.4822, 0.4465)
STD: Final[tuple[float, float, float]] = (0.2470, 0.2435, 0.2616)

RATE: Final[float] = 4e-3  # learning rate of stage 1
STAGE_2_FACTOR: Final[float] = 0.1  # stage 2 begins at RATE * STAGE_2_FACTOR
WEIGHT_DECAY: Final[float] = 0.02
LABEL_SMOOTHING: Final[float] = 0.05
PATIENCE: Final[int] = 5
MIXUP_ALPHA: Final[float] = 0.2
CUTMIX_ALPHA: Final[float] = 1.0
PLAIN_PROBABILITY: Final[float] = 0.4  # share of the batches of stage 2 that are not mixed
CUTMIX_PROBABILITY: Final[float] = 0.5  # share of cutmix among the batches that are mixed

MixFunction = Callable[[Tensor, Tensor], tuple[Tensor, Tensor, Tensor, float]]


# ----------------------------------------------------------------------------------------------------------
# Result containers (all of them are plain tuples, so that they can be unpacked)
# ----------------------------------------------------------------------------------------------------------


class MixedBatch(NamedTuple):
    """A batch after mixup or cutmix.

    Attributes:
        images: The mixed images, of the shape and type of the original ones.
        labels_a: The labels of the original images.
        labels_b: The labels of the partner images.
        lam: The share of the original images, between 0 and 1.
    """

    images: Tensor
    labels_a: Tensor
    labels_b: Tensor
    lam: float


class EpochResult(NamedTuple):
    """Means over all images of one training epoch.

    Attributes:
        loss: The mean loss.
        accuracy: The mean accuracy, between 0 and 1.
    """

    loss: float
    accuracy: float


class EvaluationResult(NamedTuple):
    """What an evaluation found.

    Attributes:
        loss: The mean loss over all images.
        accuracy: The accuracy over all images, between 0 and 1.
        targets: The true labels, in the loader's order.
        predictions: The predicted labels, in the loader's order.
    """

    loss: float
    accuracy: float
    targets: np.ndarray
    predictions: np.ndarray


class _Box(NamedTuple):
    """A rectangle of whole pixels; ``bottom`` and ``right`` are exclusive."""

    top: int
    bottom: int
    left: int
    right: int

    @property
    def area(self) -> int:
        return (self.bottom - self.top) * (self.right - self.left)


class _RunningMean:
    """Accumulates a mean over images from the means over batches of different sizes."""

    def __init__(self) -> None:
        self._total = 0.0
        self._count = 0

    def update(self, batch_mean: float, batch_size: int) -> None:
        self._total += float(batch_mean) * batch_size
        self._count += batch_size

    @property
    def value(self) -> float:
        return self._total / self._count if self._count else float("nan")


# ----------------------------------------------------------------------------------------------------------
# Private validation helpers
# ----------------------------------------------------------------------------------------------------------


def _to_index_vector(values: Any, name: str) -> np.ndarray:
    """Converts an array, a tensor or a list to a one-dimensional array of whole numbers.

    Args:
        values: What was given by the caller.
        name: How the values are called in an error message.

    Returns:
        A one-dimensional ``int64`` array.

    Raises:
        ValueError: The values are not one-dimensional, or not whole numbers.
    """
    if isinstance(values, Tensor):
        values = values.detach().cpu().numpy()
    array = np.asarray(values)
    if array.ndim != 1:
        raise ValueError(f"`{name}` must be one-dimensional, but its shape is {array.shape}.")
    converted = array.astype(np.int64)
    if not np.array_equal(converted, array):
        raise ValueError(f"`{name}` must hold whole numbers only.")
    return converted


def _validate_batch(images: Tensor, labels: Tensor) -> None:
    """Checks that images and labels belong together.

    Raises:
        ValueError: The images have no batch of (channels, height, width), or there is not one label per image.
    """
    if images.ndim != 4:
        raise ValueError(f"`images` must be (batch, channels, height, width), got shape {tuple(images.shape)}.")
    if len(labels) != images.shape[0]:
        raise ValueError(f"There are {images.shape[0]} images, but {len(labels)} labels.")


def _validate_alpha(alpha: float) -> float:
    alpha = float(alpha)
    if not math.isfinite(alpha) or alpha < 0:
        raise ValueError(f"`alpha` must be a finite number that is not negative, got {alpha}.")
    return alpha


def _validate_generator(generator: np.random.Generator) -> None:
    if not isinstance(generator, np.random.Generator):
        raise TypeError(
            "`generator` must be a numpy.random.Generator (see numpy.random.default_rng), "
            f"got {type(generator).__name__}."
        )


def _draw_share(alpha: float, generator: np.random.Generator) -> float:
    """Draws a share from Beta(alpha, alpha). The degenerate case ``alpha == 0`` is defined as 1."""
    return float(generator.beta(alpha, alpha)) if alpha > 0 else 1.0


# ----------------------------------------------------------------------------------------------------------
# 1. The split
# ----------------------------------------------------------------------------------------------------------


def stratified_split(labels: Any, per_class: Sequence[int], seed: int) -> tuple[np.ndarray, ...]:
    """Splits images into parts with exactly as many images of every class as is asked for.

    The indices of each class are permuted independently with a generator that is local to this call (the
    global random state of numpy is neither used nor changed). The permuted indices are then cut at the
    cumulative sums of ``per_class``, which makes the parts disjoint by construction and avoids every kind of
    rounding.

    Args:
        labels: (n,), the class of each image: an array, a tensor or a list of whole numbers.
        per_class: How many images of every class each part gets, as in (70, 20, 10).
        seed: The same seed and the same labels give the same parts; another seed gives others.

    Returns:
        A tuple with a sorted array of indices for each part. No index is in two parts.

    Raises:
        ValueError: A class has fewer images than the parts need, or a part has a negative size.

    Example:
        >>> first, second = stratified_split([0, 0, 0, 1, 1, 1], (2, 1), seed=0)
        >>> len(first), len(second)
        (4, 2)
    """
    label_array = _to_index_vector(labels, "labels")
    sizes = [operator.index(size) for size in per_class]
    if any(size < 0 for size in sizes):
        raise ValueError(f"`per_class` must not hold negative numbers, got {tuple(sizes)}.")

    required = sum(sizes)
    boundaries = np.concatenate([[0], np.cumsum(sizes)]).astype(int)
    rng = np.random.default_rng(seed)
    collected: list[list[np.ndarray]] = [[] for _ in sizes]

    for class_index in np.unique(label_array):
        members = np.flatnonzero(label_array == class_index)
        if members.size < required:
            raise ValueError(
                f"Class {class_index} has only {members.size} images, but the parts {tuple(sizes)} need "
                f"{required} images of every class."
            )
        shuffled = rng.permutation(members)
        for part_index, (start, stop) in enumerate(zip(boundaries[:-1], boundaries[1:])):
            collected[part_index].append(shuffled[start:stop])

    empty = np.empty(0, dtype=np.int64)
    result = tuple(np.sort(np.concatenate([empty, *chunks])) for chunks in collected)
    logger.debug("Split %d images into parts of %s images.", label_array.size, [len(part) for part in result])
    return result


# ----------------------------------------------------------------------------------------------------------
# 2. Mixed images
# ----------------------------------------------------------------------------------------------------------


def mixup(images: Tensor, labels: Tensor, alpha: float, generator: np.random.Generator) -> MixedBatch:
    """Mixes every image with another one of the batch.

    The result is a convex combination of the batch with a permuted version of itself. All arithmetic is out
    of place, hence neither the images nor the labels of the caller are changed.

    Args:
        images: (batch, channels, height, width). They stay as they were.
        labels: (batch,), whole numbers.
        alpha: The share is drawn from Beta(alpha, alpha), one for the batch; 0: it is 1.
        generator: Where everything is drawn from.

    Returns:
        A `MixedBatch`, which unpacks as (mixed images, labels_a, labels_b, lam): image i of the result is
        ``lam * images[i] + (1 - lam) * images[j]``, where j runs through a permutation of the batch.

    Raises:
        TypeError: ``generator`` is not a generator of numpy.
        ValueError: The shapes do not fit together, or ``alpha`` is negative.
    """
    _validate_batch(images, labels)
    _validate_generator(generator)
    alpha = _validate_alpha(alpha)

    lam = _draw_share(alpha, generator)
    partner = torch.from_numpy(generator.permutation(images.shape[0])).to(images.device)
    mixed = images * lam + images[partner] * (1.0 - lam)
    return MixedBatch(mixed, labels, labels[partner.to(labels.device)], lam)


def _draw_box(height: int, width: int, lam: float, generator: np.random.Generator) -> _Box:
    """Draws a rectangle of about ``1 - lam`` of the area, clipped at the border of the image.

    The center is uniform over all pixels. Both sides are scaled by the square root of the cut share, so that
    the rectangle has the aspect ratio of the image.

    Args:
        height: Of the image, in pixels.
        width: Of the image, in pixels.
        lam: The share of the image that should be kept.
        generator: Where the center is drawn from.

    Returns:
        The rectangle as it really is, after rounding and clipping.
    """
    scale = math.sqrt(1.0 - lam)
    box_height, box_width = round(height * scale), round(width * scale)
    center_y, center_x = int(generator.integers(height)), int(generator.integers(width))
    top, left = center_y - box_height // 2, center_x - box_width // 2
    return _Box(
        top=max(top, 0),
        bottom=min(top + box_height, height),
        left=max(left, 0),
        right=min(left + box_width, width),
    )


def cutmix(images: Tensor, labels: Tensor, alpha: float, generator: np.random.Generator) -> MixedBatch:
    """Puts a rectangle of another image of the batch into every image, at the same place.

    Args:
        images: (batch, channels, height, width); height and width may differ. They stay as they were.
        labels: (batch,), whole numbers.
        alpha: The nominal share is drawn from Beta(alpha, alpha), one for the batch; 0: it is 1.
        generator: Where everything is drawn from.

    Returns:
        A `MixedBatch`, which unpacks as (mixed images, labels_a, labels_b, lam). ``lam`` is computed from the
        rectangle *after* clipping and rounding, so it is exactly the share of pixels that are image i's own.

    Raises:
        TypeError: ``generator`` is not a generator of numpy.
        ValueError: The shapes do not fit together, or ``alpha`` is negative.
    """
    _validate_batch(images, labels)
    _validate_generator(generator)
    alpha = _validate_alpha(alpha)

    height, width = images.shape[-2:]
    nominal_lam = _draw_share(alpha, generator)
    partner = torch.from_numpy(generator.permutation(images.shape[0])).to(images.device)
    box = _draw_box(height, width, nominal_lam, generator)

    mixed = images.clone()
    window = (..., slice(box.top, box.bottom), slice(box.left, box.right))
    mixed[window] = images[partner][window]
    lam = 1.0 - box.area / (height * width)
    return MixedBatch(mixed, labels, labels[partner.to(labels.device)], lam)


def mixed_loss(
    criterion: Callable[[Tensor, Tensor], Tensor],
    logits: Tensor,
    labels_a: Tensor,
    labels_b: Tensor,
    lam: float,
) -> Tensor:
    """The loss of mixed images: that of both labels, weighted by their shares.

    Label smoothing, if there is any, is the criterion's affair; it is not applied a second time here.

    Args:
        criterion: The mean loss of a batch from (logits, labels). It may smooth labels by itself.
        logits: (batch, classes).
        labels_a: The labels of the original images.
        labels_b: The labels of the partner images.
        lam: The share of the original images.

    Returns:
        A tensor of one number, with gradients.

    Raises:
        ValueError: ``lam`` is not between 0 and 1.
    """
    if not -1e-6 <= float(lam) <= 1.0 + 1e-6:
        raise ValueError(f"`lam` must be between 0 and 1, got {float(lam)}.")
    loss_a = criterion(logits, labels_a)
    loss_b = criterion(logits, labels_b)
    return lam * loss_a + (1.0 - lam) * loss_b


# ----------------------------------------------------------------------------------------------------------
# 3. What learns
# ----------------------------------------------------------------------------------------------------------


def _set_trainable(modules: Iterable[nn.Module], trainable: bool) -> None:
    """Switches the gradients of all parameters of some modules on or off."""
    for module in modules:
        for parameter in module.parameters():
            parameter.requires_grad_(trainable)


def _trainable_parameters(model: nn.Module) -> list[nn.Parameter]:
    """All parameters that learn at the moment.

    Raises:
        RuntimeError: Nothing learns, which is never intended.
    """
    found = [parameter for parameter in model.parameters() if parameter.requires_grad]
    if not found:
        raise RuntimeError("The model has no trainable parameters: call `unfreeze` first.")
    return found


def freeze_backbone(model: nn.Module) -> None:
    """Exactly the head learns afterwards, whatever learned before: all else needs no gradient.

    Only ``requires_grad`` is changed. The mode of the modules (training or evaluation) and the values of the
    weights stay as they are.

    Args:
        model: One that `parts` knows. It is changed in place; nothing has to be returned.
    """
    head, _, _ = parts(model)
    _set_trainable([model], False)
    _set_trainable([head], True)
    logger.debug("Backbone is frozen, only the head learns.")


def unfreeze(model: nn.Module, blocks: int | None = None) -> None:
    """Exactly the head, the final norm and the last blocks learn afterwards, whatever learned before.

    Args:
        model: One that `parts` knows. It is changed in place; nothing has to be returned.
        blocks: How many of the last blocks learn; 0: none, head and norm alone; None: everything learns,
            patches, class token and positions too.

    Raises:
        ValueError: ``blocks`` is negative.
    """
    if blocks is None:
        _set_trainable([model], True)
        return

    count = operator.index(blocks)
    if count < 0:
        raise ValueError(f"`blocks` must be None or a number that is not negative, got {count}.")
    head, all_blocks, norm = parts(model)
    if count > len(all_blocks):
        logger.warning("The model has only %d blocks; all of them are unfrozen.", len(all_blocks))
        count = len(all_blocks)

    # Not all_blocks[-count:], which is the whole list for count == 0.
    last_blocks = list(all_blocks)[len(all_blocks) - count :]
    _set_trainable([model], False)
    _set_trainable([head, norm, *last_blocks], True)


# ----------------------------------------------------------------------------------------------------------
# 4. Training and evaluation
# ----------------------------------------------------------------------------------------------------------


def _count_hits(predictions: Tensor, labels: Tensor) -> int:
    """How many predictions are equal to their labels."""
    return int((predictions == labels).sum().item())


def _enter_training_mode(model: nn.Module) -> None:
    """Training mode for everything but the blocks that are frozen as a whole."""
    model.train()
    _, blocks, _ = parts(model)
    for block in blocks:
        if not any(parameter.requires_grad for parameter in block.parameters()):
            block.eval()


def train_one_epoch(
    model: nn.Module,
    loader: Iterable[tuple[Tensor, Tensor]],
    optimizer: optim.Optimizer,
    criterion: Callable[[Tensor, Tensor], Tensor],
    device: torch.device | str,
    mix: MixFunction | None = None,
) -> EpochResult:
    """Trains for one pass over the data.

    Args:
        model: Put into training mode here; but blocks (as `parts` gives them) of which no parameter requires
            gradients are in evaluation mode.
        loader: Yields (images, labels). The last batch may be smaller than the others.
        optimizer: Holds the parameters that learn.
        criterion: The mean loss of a batch from (logits, labels).
        device: Where the model is; batches are moved there.
        mix: None, or a function: ``mix(images, labels)`` gives (images, labels_a, labels_b, lam), as `mixup`
            does with its other arguments filled in.

    Returns:
        An `EpochResult`, which unpacks as (loss, accuracy): the means over all images, as they were when each
        batch was trained on. With ``mix``, the loss is that of the mixed images, and a batch's hits are
        ``lam * hits of labels_a + (1 - lam) * hits of labels_b``.
    """
    _enter_training_mode(model)
    mean_loss, mean_accuracy = _RunningMean(), _RunningMean()

    for step, (images, labels) in enumerate(loader):
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        batch_size = labels.shape[0]

        optimizer.zero_grad(set_to_none=True)
        if mix is None:
            logits = model(images)
            loss = criterion(logits, labels)
            hits: float = _count_hits(logits.argmax(dim=1), labels)
        else:
            images, labels_a, labels_b, lam = mix(images, labels)
            logits = model(images)
            loss = mixed_loss(criterion, logits, labels_a, labels_b, lam)
            predictions = logits.argmax(dim=1)
            lam = float(lam)
            hits = lam * _count_hits(predictions, labels_a) + (1.0 - lam) * _count_hits(predictions, labels_b)
        loss.backward()
        optimizer.step()

        loss_value = loss.item()
        if not math.isfinite(loss_value):
            logger.warning("The loss of batch %d is %s. Is the learning rate too large?", step, loss_value)
        mean_loss.update(loss_value, batch_size)
        mean_accuracy.update(hits / batch_size, batch_size)

    return EpochResult(mean_loss.value, mean_accuracy.value)


@torch.no_grad()
def evaluate(
    model: nn.Module,
    loader: Iterable[tuple[Tensor, Tensor]],
    criterion: Callable[[Tensor, Tensor], Tensor],
    device: torch.device | str,
) -> EvaluationResult:
    """Measures a model on images that it is not trained on; nothing is mixed here.

    Args:
        model: Put into evaluation mode here; no gradients are computed.
        loader: Yields (images, labels). The last batch may be smaller than the others.
        criterion: The mean loss of a batch from (logits, labels).
        device: Where the model is; batches are moved there.

    Returns:
        An `EvaluationResult`, which unpacks as (loss, accuracy, targets, predictions): the means over all
        images; and (n,) each, whole numbers, in the loader's order.
    """
    model.eval()
    mean_loss = _RunningMean()
    all_targets: list[Tensor] = []
    all_predictions: list[Tensor] = []

    for images, labels in loader:
        images, labels = images.to(device), labels.to(device)
        logits = model(images)
        mean_loss.update(criterion(logits, labels).item(), labels.shape[0])
        all_targets.append(labels.cpu())
        all_predictions.append(logits.argmax(dim=1).cpu())

    if not all_targets:
        logger.warning("There was nothing to evaluate: the loader is empty.")
        return EvaluationResult(math.nan, math.nan, np.empty(0, np.int64), np.empty(0, np.int64))

    targets = torch.cat(all_targets).numpy()
    predictions = torch.cat(all_predictions).numpy()
    return EvaluationResult(mean_loss.value, float(np.mean(targets == predictions)), targets, predictions)


class EarlyStopping:
    """Says when validation has not become better for a while, and keeps the best weights.

    Higher values are better: accuracies. A value is an improvement if it is larger than the best so far by
    more than ``min_delta``, or the first one that is a number; a tie and NaN are none.

    The snapshot of the weights is detached and cloned, so later training steps do not change it.

    Args:
        patience: How many steps in a row may be without an improvement; at least 1.
        min_delta: How much more an improvement must be.

    Raises:
        ValueError: ``patience`` is less than 1, or ``min_delta`` is negative or NaN.

    Attributes:
        patience: As given.
        min_delta: As given.
        best_value: The best value so far, or None.
        steps_without_improvement: How many steps in a row were no improvement.

    Example:
        >>> stopper = EarlyStopping(patience=2)
        >>> [stopper.step(value, nn.Linear(1, 1)) for value in (0.5, 0.4, 0.5)]
        [False, False, True]
    """

    def __init__(self, patience: int, min_delta: float = 0.0) -> None:
        if operator.index(patience) < 1:
            raise ValueError(f"`patience` must be at least 1, got {patience}.")
        if not min_delta >= 0:
            raise ValueError(f"`min_delta` must not be negative or NaN, got {min_delta}.")
        self.patience: int = operator.index(patience)
        self.min_delta: float = float(min_delta)
        self.best_value: float | None = None
        self.steps_without_improvement: int = 0
        self._best_state: dict[str, Tensor] | None = None

    def _is_improvement(self, value: float) -> bool:
        if math.isnan(value):
            return False
        return self.best_value is None or value > self.best_value + self.min_delta

    def step(self, value: float, model: nn.Module) -> bool:
        """Takes a value of validation, and a copy of the model's weights if it is an improvement.

        Args:
            value: A number, or a tensor with one number.
            model: The model that reached the value.

        Returns:
            True at the ``patience``-th step in a row without an improvement (and after it), else False.
        """
        value = float(value)
        if self._is_improvement(value):
            self.best_value = value
            self.steps_without_improvement = 0
            self._best_state = {
                name: tensor.detach().clone() for name, tensor in model.state_dict().items()
            }
        else:
            self.steps_without_improvement += 1
        return self.steps_without_improvement >= self.patience

    def restore(self, model: nn.Module) -> None:
        """Puts the best weights back into the model; does nothing where there are none yet."""
        if self._best_state is None:
            logger.debug("There are no best weights to restore.")
            return
        model.load_state_dict(self._best_state)


# ----------------------------------------------------------------------------------------------------------
# 5. The two stages
# ----------------------------------------------------------------------------------------------------------


def _make_optimizer(model: nn.Module, rate: float) -> optim.Optimizer:
    """AdamW for what learns now; biases, norms and single vectors are not decayed.

    Must be called after `freeze_backbone` or `unfreeze`, since it takes what requires gradients.
    """
    learning = _trainable_parameters(model)
    groups = [
        {"params": [p for p in learning if p.ndim >= 2], "weight_decay": WEIGHT_DECAY},
        {"params": [p for p in learning if p.ndim < 2], "weight_decay": 0.0},
    ]
    return optim.AdamW([group for group in groups if group["params"]], lr=rate)


def _make_mix(generator: np.random.Generator) -> MixFunction:
    """A function that leaves a batch as it is, or applies mixup or cutmix to it, by chance."""

    def mix(images: Tensor, labels: Tensor) -> tuple[Tensor, Tensor, Tensor, float]:
        if generator.random() < PLAIN_PROBABILITY:
            return MixedBatch(images, labels, labels, 1.0)
        if generator.random() < CUTMIX_PROBABILITY:
            return cutmix(images, labels, CUTMIX_ALPHA, generator)
        return mixup(images, labels, MIXUP_ALPHA, generator)

    return mix


def _validate_fit_arguments(loaders: Mapping[str, Any], epochs: Sequence[int]) -> tuple[int, int]:
    missing = [name for name in ("train", "validation") if name not in loaders]
    if missing:
        raise KeyError(f"`loaders` lacks {missing}; it has {sorted(loaders)}.")
    if len(epochs) != 2:
        raise ValueError(f"`epochs` must be a pair (stage 1, stage 2), got {epochs!r}.")
    first, second = (operator.index(number) for number in epochs)
    if first < 0 or second < 0:
        raise ValueError(f"`epochs` must not be negative, got {epochs!r}.")
    return first, second


def _new_history() -> dict[str, list]:
    keys = (
        "stage",
        "learning_rate",
        "train_loss",
        "train_accuracy",
        "validation_loss",
        "validation_accuracy",
    )
    return {key: [] for key in keys}


def _run_epoch(
    model: nn.Module,
    loaders: Mapping[str, Any],
    optimizer: optim.Optimizer,
    criterion: nn.Module,
    device: torch.device | str,
    mix: MixFunction | None,
    stage: int,
    history: dict[str, list],
) -> float:
    """Trains and validates once, writes both into the history, and returns the validation accuracy."""
    rate = optimizer.param_groups[0]["lr"]
    train_loss, train_accuracy = train_one_epoch(model, loaders["train"], optimizer, criterion, device, mix=mix)
    validation_loss, validation_accuracy, _, _ = evaluate(
        model, loaders["validation"], nn.CrossEntropyLoss(), device
    )
    row = (stage, rate, train_loss, train_accuracy, validation_loss, validation_accuracy)
    for key, value in zip(history, row):
        history[key].append(value)
    logger.info(
        "stage %d, rate %.2e: training loss %.4f, accuracy %.4f; validation loss %.4f, accuracy %.4f",
        *row,
    )
    return validation_accuracy


def fit(
    model: nn.Module,
    loaders: Mapping[str, Any],
    epochs: Sequence[int],
    device: torch.device | str,
) -> dict[str, list]:
    """Adapts a pretrained model in two stages.

    Stage 1: exactly the head learns, on images that are not mixed. A new head has random weights, and its
    large gradients would otherwise destroy what the backbone knows already.

    Stage 2: everything learns, at a tenth of stage 1's rate, which half a cosine takes down over the epochs of
    this stage. Batches are mixed. An `EarlyStopping` of its own watches the validation accuracy, and may end
    the stage. In the end the model has the best weights of stage 2.

    Args:
        model: As `build_model` gives it.
        loaders: A dict with 'train' and 'validation'; images are normalized.
        epochs: A pair: how many passes stage 1 has, and how many stage 2 has at most.
        device: Where to train.

    Returns:
        The history, for `plot_history`: a dict of lists with one entry per epoch, namely ``stage`` (1 or 2),
        ``learning_rate``, ``train_loss``, ``train_accuracy``, ``validation_loss`` and ``validation_accuracy``.

    Raises:
        KeyError: A loader is missing.
        ValueError: ``epochs`` is not a pair of numbers that are not negative.
    """
    first_epochs, second_epochs = _validate_fit_arguments(loaders, epochs)
    model.to(device)
    history = _new_history()
    criterion = nn.CrossEntropyLoss(label_smoothing=LABEL_SMOOTHING)

    # --- Stage 1: the head -----------------------------------------------------------------------------
    freeze_backbone(model)
    optimizer = _make_optimizer(model, RATE)
    for _ in range(first_epochs):
        _run_epoch(model, loaders, optimizer, criterion, device, None, 1, history)

    # --- Stage 2: everything ---------------------------------------------------------------------------
    unfreeze(model)
    optimizer = _make_optimizer(model, RATE * STAGE_2_FACTOR)  # made after unfreezing, so it holds everything
    scheduler = optim.lr_scheduler.LambdaLR(
        optimizer, lambda epoch: 0.5 * (1.0 + math.cos(math.pi * epoch / max(second_epochs, 1)))
    )
    stopper = EarlyStopping(PATIENCE)
    mix = _make_mix(np.random.default_rng(SEED))
    for epoch in range(second_epochs):
        accuracy = _run_epoch(model, loaders, optimizer, criterion, device, mix, 2, history)
        scheduler.step()
        if stopper.step(accuracy, model):
            logger.info("Stage 2 stops after %d of %d epochs.", epoch + 1, second_epochs)
            break
    stopper.restore(model)
    return history


# ----------------------------------------------------------------------------------------------------------
# 6. Metrics and pictures
# ----------------------------------------------------------------------------------------------------------


def per_class_accuracy(targets: Any, predictions: Any, classes: int) -> np.ndarray:
    """The accuracy within each class.

    Args:
        targets: (n,), whole numbers: an array, a tensor or a list.
        predictions: (n,), whole numbers: an array, a tensor or a list.
        classes: How many classes there are.

    Returns:
        An array (classes,): the share of each class's images that are predicted as that class; NaN for a
        class that does not occur in ``targets``.

    Raises:
        ValueError: There is not one prediction for each target.
    """
    target_array = _to_index_vector(targets, "targets")
    prediction_array = _to_index_vector(predictions, "predictions")
    if target_array.shape != prediction_array.shape:
        raise ValueError(f"There are {target_array.size} targets, but {prediction_array.size} predictions.")

    images = np.bincount(target_array, minlength=classes)[:classes]
    hits = np.bincount(target_array[target_array == prediction_array], minlength=classes)[:classes]
    result = np.full(classes, np.nan)
    np.divide(hits, images, out=result, where=images > 0)
    return result


def _to_displayable(image: Tensor | np.ndarray, mean: Any, std: Any) -> np.ndarray:
    """Undoes the normalization, and brings an image into the form that matplotlib expects.

    Args:
        image: Normalized, (channels, height, width).
        mean: Of each channel.
        std: Of each channel.

    Returns:
        (height, width, channels), clipped to [0, 1].
    """
    tensor = torch.as_tensor(image).detach().cpu().float()
    if tensor.ndim != 3:
        raise ValueError(f"`image` must be (channels, height, width), got shape {tuple(tensor.shape)}.")
    mean_tensor = torch.as_tensor(mean, dtype=torch.float32).cpu().reshape(-1, 1, 1)
    std_tensor = torch.as_tensor(std, dtype=torch.float32).cpu().reshape(-1, 1, 1)
    return (tensor * std_tensor + mean_tensor).clamp(0.0, 1.0).permute(1, 2, 0).numpy()


def show_patches(image: Tensor, patch_size: int, mean: Any, std: Any) -> None:
    """Draws an image as it was, and its patches, each in a place of its own, as they lie in the image.

    Args:
        image: Normalized, (channels, height, width).
        patch_size: Height and width of a patch, in pixels.
        mean: Of each channel, by which the image was normalized.
        std: Of each channel, by which the image was normalized.

    Raises:
        ValueError: Height or width is not a multiple of the patch size.
    """
    pixels = _to_displayable(image, mean, std)
    height, width = pixels.shape[:2]
    if height % patch_size or width % patch_size:
        raise ValueError(f"An image of {height} x {width} has no whole number of patches of {patch_size} pixels.")
    rows, columns = height // patch_size, width // patch_size

    figure = plt.figure(figsize=(10, 5))
    outer = figure.add_gridspec(1, 2)
    whole = figure.add_subplot(outer[0, 0])
    whole.imshow(pixels, vmin=0.0, vmax=1.0)
    whole.set_title("image")
    whole.axis("off")

    inner = outer[0, 1].subgridspec(rows, columns, wspace=0.1, hspace=0.1)
    for row in range(rows):
        for column in range(columns):
            patch = pixels[
                row * patch_size : (row + 1) * patch_size,
                column * patch_size : (column + 1) * patch_size,
            ]
            axes = figure.add_subplot(inner[row, column])
            axes.imshow(patch, vmin=0.0, vmax=1.0)
            axes.axis("off")
    figure.suptitle(f"{rows} x {columns} patches of {patch_size} x {patch_size} pixels")
    plt.show()


@contextmanager
def _preserved_modes(model: nn.Module) -> Iterator[None]:
    """Puts the model into evaluation mode, and each module back into its own mode at the end."""
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        yield
    finally:
        for module, training in modes:
            module.training = training


def _class_token_attention(model: nn.Module, image: Tensor) -> Tensor:
    """The attention of the class token of the last block, the mean over the heads: (patches,)."""
    attention = parts(model)[1][-1].attn
    captured: list[Tensor] = []
    handle = attention.qkv.register_forward_hook(lambda _module, _inputs, output: captured.append(output))
    try:
        with _preserved_modes(model), torch.no_grad():
            device = next(model.parameters()).device
            model(torch.as_tensor(image).to(device).unsqueeze(0))
    finally:
        handle.remove()
    if len(captured) != 1:
        raise RuntimeError(f"The last block's attention ran {len(captured)} times instead of once.")

    _, tokens, triple = captured[0].shape
    heads = attention.num_heads
    head_dim = triple // (3 * heads)
    queries, keys, _ = captured[0].reshape(tokens, 3, heads, head_dim).permute(1, 2, 0, 3)
    scores = queries @ keys.transpose(-2, -1) / math.sqrt(head_dim)  # (heads, tokens, tokens)
    return scores.softmax(dim=-1).mean(dim=0)[0, 1:].cpu()


def show_attention(model: nn.Module, image: Tensor, mean: Any, std: Any) -> None:
    """Draws an image as it was, and beside it what the class token of the last block attends to.

    What is drawn is the mean over the heads of the last block's attention weights (each a softmax over all
    tokens) in the row of the class token, in the columns of the patches: a map (rows, columns) of patches.

    Args:
        model: The given one. Its mode and its weights stay as they are.
        image: Normalized, (channels, height, width).
        mean: Of each channel, by which the image was normalized.
        std: Of each channel, by which the image was normalized.
    """
    pixels = _to_displayable(image, mean, std)
    weights = _class_token_attention(model, image)
    height, width = pixels.shape[:2]
    # rows / columns == height / width and rows * columns == patches
    rows = round(math.sqrt(weights.numel() * height / width))
    attention_map = weights.reshape(rows, -1).numpy()

    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4))
    left.imshow(pixels, vmin=0.0, vmax=1.0)
    left.set_title("image")
    left.axis("off")
    drawn = right.imshow(attention_map, cmap="viridis")
    right.set_title("attention of the class token (last block)")
    right.axis("off")
    figure.colorbar(drawn, ax=right, label="mean attention weight")
    plt.show()


def plot_history(history: Mapping[str, Sequence[float]]) -> None:
    """Draws loss and accuracy of training and validation over the epochs, both stages in one, with a mark
    where stage 2 begins, and axes and curves that say what they are.

    Args:
        history: What `fit` returned.

    Raises:
        KeyError: Something that `fit` writes is missing.
    """
    missing = [key for key in _new_history() if key not in history]
    if missing:
        raise KeyError(f"`history` lacks {missing}: please give what `fit` returned.")
    stages = list(history["stage"])
    epochs = np.arange(1, len(stages) + 1)

    figure, panels = plt.subplots(1, 2, figsize=(12, 4.5))
    for axes, quantity in zip(panels, ("loss", "accuracy")):
        axes.plot(epochs, history[f"train_{quantity}"], marker="o", label=f"training {quantity}")
        axes.plot(epochs, history[f"validation_{quantity}"], marker="s", label=f"validation {quantity}")
        if 2 in stages:
            axes.axvline(stages.index(2) + 0.5, color="gray", linestyle="--", label="stage 2 begins")
        axes.set_xlabel("epoch")
        axes.set_ylabel(quantity)
        axes.set_title(quantity.capitalize())
        axes.grid(alpha=0.3)
        axes.legend()
    figure.tight_layout()
    plt.show()


def plot_per_class(names: Sequence[str], accuracies: Any) -> None:
    """Draws a bar for each class, as long as its accuracy, with the class's name; axes say what they are.

    Args:
        names: Of the classes.
        accuracies: (classes,), as `per_class_accuracy` gives them; NaN is drawn as nothing.

    Raises:
        ValueError: There is not one accuracy for each name.
    """
    values = np.array([float(accuracy) for accuracy in accuracies])
    if len(values) != len(names):
        raise ValueError(f"There are {len(names)} names, but {len(values)} accuracies.")

    figure, axes = plt.subplots(figsize=(10, 4.5))
    positions = np.arange(len(names))
    bars = axes.bar(positions, np.nan_to_num(values, nan=0.0), color="steelblue")
    axes.bar_label(bars, ["no images" if math.isnan(value) else f"{value:.2f}" for value in values], padding=2)
    axes.set_xticks(positions, [str(name) for name in names], rotation=45, ha="right")
    axes.set_ylim(0.0, 1.1)
    axes.set_xlabel("class")
    axes.set_ylabel("accuracy")
    axes.set_title("Accuracy of each class")
    figure.tight_layout()
    plt.show()


def plot_confusion_matrix(matrix: Any, class_names: Sequence[str]) -> None:
    """Draws a confusion matrix with its counts, the true classes as rows, the names on both axes.

    Args:
        matrix: (classes, classes).
        class_names: The names, in the order of the labels.

    Raises:
        ValueError: The matrix is not square, or has not one row for each name.
    """
    counts = np.asarray(matrix)
    if counts.shape != (len(class_names), len(class_names)):
        raise ValueError(f"{len(class_names)} classes need a square matrix, got shape {counts.shape}.")

    figure, axes = plt.subplots(figsize=(8, 7))
    drawn = axes.imshow(counts, cmap="Blues")
    figure.colorbar(drawn, ax=axes, label="images")
    positions = np.arange(len(class_names))
    axes.set_xticks(positions, class_names, rotation=45, ha="right")
    axes.set_yticks(positions, class_names)
    threshold = counts.max() / 2 if counts.size else 0
    for row, column in np.ndindex(counts.shape):
        axes.text(
            column,
            row,
            f"{counts[row, column]:g}",
            ha="center",
            va="center",
            color="white" if counts[row, column] > threshold else "black",
        )
    axes.set_xlabel("predicted class")
    axes.set_ylabel("true class")
    axes.set_title("Confusion matrix")
    figure.tight_layout()
    plt.show()


# ----------------------------------------------------------------------------------------------------------
# 7. The script
# ----------------------------------------------------------------------------------------------------------


def _prepare_loaders(archive_path: Path, folder: Path) -> tuple[dict[str, DataLoader], DataLoader, list[str]]:
    """Unpacks the images, splits them and makes the loaders; only training images are augmented."""
    if not archive_path.is_file():
        raise FileNotFoundError(f"Please put {archive_path.name} beside this file.")
    with zipfile.ZipFile(archive_path) as archive:
        archive.extractall(folder)

    plain = transforms.Compose([transforms.ToTensor(), transforms.Normalize(MEAN, STD)])
    augmented = transforms.Compose(
        [transforms.RandomCrop(32, padding=3, padding_mode="reflect"), transforms.RandomHorizontalFlip(), plain]
    )
    augmented_images = datasets.ImageFolder(str(folder / "train"), transform=augmented)
    plain_images = datasets.ImageFolder(str(folder / "train"), transform=plain)
    test_images = datasets.ImageFolder(str(folder / "test"), transform=plain)

    fewest = int(np.bincount(plain_images.targets).min())
    training_rows, validation_rows = stratified_split(
        plain_images.targets, (fewest - fewest // 5, fewest // 5), seed=SEED
    )
    loaders = {
        "train": DataLoader(Subset(augmented_images, training_rows), batch_size=BATCH_SIZE, shuffle=True),
        "validation": DataLoader(Subset(plain_images, validation_rows), batch_size=256),
    }
    return loaders, DataLoader(test_images, batch_size=256), test_images.classes


def main() -> None:
    """Trains the model, saves its weights and draws everything that the report needs."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    torch.manual_seed(SEED)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    loaders, test_loader, class_names = _prepare_loaders(Path("dataset.zip"), Path("data"))

    model = build_model(len(class_names))
    history = fit(model, loaders, (3, 12), device)
    torch.save(model.state_dict(), f"{STUDENT_ID}_Finetune.pth")
    plot_history(history)

    loss, accuracy, targets, predictions = evaluate(model, test_loader, nn.CrossEntropyLoss(), device)
    logger.info("test loss %.4f, test accuracy %.4f", loss, accuracy)
    plot_per_class(class_names, per_class_accuracy(targets, predictions, len(class_names)))
    matrix = np.zeros((len(class_names), len(class_names)), dtype=int)
    np.add.at(matrix, (targets, predictions), 1)
    plot_confusion_matrix(matrix, class_names)

    images, _ = next(iter(test_loader))
    show_patches(images[0], 4, MEAN, STD)
    show_attention(model, images[0], MEAN, STD)


if __name__ == "__main__":
    main()
