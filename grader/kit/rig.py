"""Rigged data for functions that train, measure or draw: images whose right answers are known."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from grader.kit.numbered_inputs import ID_BITS, SHAPE, Shape, numbered_images

Array = Any


@dataclass(frozen=True)
class RiggedData:
    """Images with their numbers written into them, labels, and what the rigged model says of them.

    Attributes:
        batch_sizes: How the loader cuts them.
        class_names: Of the data set.
        arrays: `images` float32 (n, channels, height, width) in [-1, 1], `labels` int64 (n,), and either
            `table` float32 (n, classes), the logits, or `features` float32 (n, k) and `weights` float32
            (k, classes).
        learning_rate: Of the rigged SGD.
    """

    batch_sizes: tuple[int, ...]
    class_names: tuple[str, ...]
    arrays: dict[str, Array]
    learning_rate: float = 0.1
    id_bits: int = ID_BITS

    @property
    def shown(self) -> dict[str, Array]:
        """What the worker is handed; what a model says of an image it must ask for."""
        return {name: value for name, value in self.arrays.items() if name not in ("table", "features")}

    @property
    def rows(self) -> Array:
        """What the rigged model says, or knows, of each image: the table or the features."""
        return self.arrays["table" if "table" in self.arrays else "features"]

    @property
    def gray(self) -> Array:
        """The images as gray ones, float64 (n, height, width)."""
        return np.asarray(self.arrays["images"], dtype=np.float64).mean(axis=1)

    @property
    def labels(self) -> Array:
        """int64 (n,)."""
        return self.arrays["labels"]

    @property
    def table(self) -> Array:
        """float32 (n, classes)."""
        return self.arrays["table"]

    @property
    def predictions(self) -> Array:
        """int64 (n,): the classes that the table says."""
        return self.table.argmax(axis=1)


def classified_data(
    class_names: tuple[str, ...],
    batch_sizes: tuple[int, ...],
    *,
    accuracy: float,
    seed: int,
    shape: Shape = SHAPE,
) -> RiggedData:
    """Labels and logits of which about `accuracy` are right, in every class; the classes differ in size.

    The sizes are as 3 : 4 : 5 : ..., whatever the seed, so that a sum over the wrong axis shows and what is
    wrong is told in the same numbers.
    """
    count, classes = sum(batch_sizes), len(class_names)
    random = np.random.default_rng(seed)
    labels = random.permutation(np.repeat(np.arange(classes), _uneven_sizes(count, classes)))
    said = labels.copy()
    for label in range(classes):
        own = random.permutation(np.flatnonzero(labels == label))
        wrong = own[: len(own) - math.ceil(accuracy * len(own))]
        said[wrong] = (label + random.integers(1, max(classes, 2), len(wrong))) % classes
    arrays = {
        "images": numbered_images(count, seed, shape),
        "labels": labels.astype(np.int64),
        "table": _table(said, classes, random),
    }
    return RiggedData(batch_sizes, class_names, arrays)


def scored_data(
    class_names: tuple[str, ...],
    batch_sizes: tuple[int, ...],
    *,
    hits: int,
    scale: float,
    seed: int,
    shape: Shape = SHAPE,
) -> RiggedData:
    """Labels and logits of which as many as `hits` are right, whichever; `scale` times as large as usual.

    The scale decides how large the loss is, whatever the accuracy.
    """
    count, classes = sum(batch_sizes), len(class_names)
    random = np.random.default_rng(seed)
    labels = random.permutation(np.repeat(np.arange(classes), _uneven_sizes(count, classes)))
    said = labels.copy()
    wrong = random.permutation(count)[hits:]
    said[wrong] = (labels[wrong] + random.integers(1, max(classes, 2), len(wrong))) % classes
    arrays = {
        "images": numbered_images(count, seed, shape),
        "labels": labels.astype(np.int64),
        "table": np.float32(scale) * _table(said, classes, random),
    }
    return RiggedData(batch_sizes, class_names, arrays)


def _table(said: Array, classes: int, random: np.random.Generator) -> Array:
    """Logits float32 (n, classes) whose largest is that of the class that is said."""
    table = random.normal(0.0, 1.0, (len(said), classes)).astype(np.float32)
    margins = random.uniform(0.3, 2.5, len(said)).astype(np.float32)
    table[np.arange(len(said)), said] = table.max(axis=1) + margins
    return table


def _uneven_sizes(count: int, classes: int) -> Array:
    """How many of each class, (classes,): they add up to `count`."""
    parts = np.arange(classes) + 3
    ends = np.round(count * parts.cumsum() / parts.sum()).astype(int)
    return np.diff(ends, prepend=0)


def trainable_data(
    class_names: tuple[str, ...],
    batch_sizes: tuple[int, ...],
    *,
    features: int,
    seed: int,
    scale: float = 1.0,
    shape: Shape = SHAPE,
) -> RiggedData:
    """Labels and features of a linear model that can be trained.

    Args:
        features: How many each image has.
        scale: How large they are: the larger, the larger is the loss. The learning rate goes with it.
    """
    count, classes = sum(batch_sizes), len(class_names)
    random = np.random.default_rng(seed)
    arrays = {
        "images": numbered_images(count, seed, shape)
        if count < 2**ID_BITS
        else _plain_images(count, seed, shape),
        "labels": random.integers(0, classes, count).astype(np.int64),
        "features": random.normal(0.0, scale, (count, features)).astype(np.float32),
        "weights": random.normal(0.0, 0.5, (features, classes)).astype(np.float32),
    }
    return RiggedData(batch_sizes, class_names, arrays, 0.1 / scale**2)


def _plain_images(count: int, seed: int, shape: Shape) -> Array:
    random = np.random.default_rng(seed)
    return random.uniform(-1.0, 1.0, (count, *shape)).astype(np.float32)
