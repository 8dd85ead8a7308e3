"""Data sets, split into training and test."""

import fnmatch
import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

ARRAY_TYPES = ("float32", "float64", "int64", "int32", "uint8", "bool")  # that reach a submission
Seed = int | Callable[[str], int]
Rows = NDArray[np.intp]


@dataclass(frozen=True)
class Splits:
    """A data set, split.

    Attributes:
        name: The data set's name, e.g. `vehicles`.
        classes: Class names in the order of the labels.
        train_images: uint8, (n, height, width) gray or (n, height, width, 3) RGB.
        train_labels: int64, (n,).
        train_names: The image's name within the data set, `tricycle/tricycle_1.jpg`, n of them.
        test_images: Like `train_images`.
        test_labels: Like `train_labels`.
        test_names: Like `train_names`.
        withheld: bool, (m,): which test images were not given to any student; None: that is not known.
    """

    name: str
    classes: tuple[str, ...]
    train_images: NDArray[np.uint8]
    train_labels: NDArray[np.int64]
    train_names: tuple[str, ...]
    test_images: NDArray[np.uint8]
    test_labels: NDArray[np.int64]
    test_names: tuple[str, ...]
    withheld: NDArray[np.bool_] | None = None


@dataclass(frozen=True)
class Examples:
    """A data set of any kind, split: sequences, tables, signals.

    Arrays are of one of ARRAY_TYPES; the first axis counts the examples.

    Attributes:
        name: The data set's name.
        train_inputs: (n, ...), what a model learns from.
        train_targets: (n, ...), the answers; None if the inputs contain them, such as the next tokens of a
            text.
        test_inputs: (m, ...), what a trained model is asked about; they do not contain the answers.
        test_targets: (m, ...), the answers, which no submission sees.
    """

    name: str
    train_inputs: NDArray[Any]
    train_targets: NDArray[Any] | None
    test_inputs: NDArray[Any]
    test_targets: NDArray[Any]


@dataclass(frozen=True)
class LabeledImages:
    """A data set before it is split.

    Attributes:
        names: The images' names within the data set, all different, n of them.
        labels: int64, (n,): indices of the classes.
        images: uint8, (n, height, width) gray or (n, height, width, 3) RGB.
    """

    names: tuple[str, ...]
    labels: NDArray[np.int64]
    images: NDArray[np.uint8]


def stratified_split(
    names: Mapping[str, Sequence[str]],
    *,
    seed: Seed,
    train_share: float = 0.7,
    same_as: Callable[[str], Any] | None = None,
) -> tuple[list[str], list[str]]:
    """The names of the training and of the test images.

    Per class: the names are sorted, shuffled by `random.Random(seed)`, and the first `train_share` of them
    train; a class with two or more images has at least one on each side. An image that is identical to an
    earlier one (in that order, in any class) follows the first.

    Args:
        names: Class -> the names of its images.
        seed: Of the shuffle, the same for every class, as students have it; or class -> its own seed, so that
            one class's split says nothing about another's.
        train_share: More than 0, less than 1.
        same_as: A key that identical images share (a digest of their pixels); None: all differ.

    Returns:
        (training names, test names), class by class in the order of `names`.

    Raises:
        ValueError: The share leaves nothing on one side.
    """
    if not 0.0 < train_share < 1.0:
        raise ValueError(f"train_share is {train_share}; it must lie between 0 and 1, like 0.7.")
    train: list[str] = []
    test: list[str] = []
    side: dict[Any, list[str]] = {}
    for label in names:
        shuffled = sorted(names[label])
        random.Random(seed if isinstance(seed, int) else seed(label)).shuffle(shuffled)
        count = min(max(round(train_share * len(shuffled)), 1), max(len(shuffled) - 1, 1))
        for index, name in enumerate(shuffled):
            part = train if index < count else test
            chosen = side.setdefault(same_as(name), part) if same_as is not None else part
            chosen.append(name)
    return train, test


def split_images(
    name: str, classes: tuple[str, ...], data: LabeledImages, *, seed: Seed, train_share: float = 0.7
) -> Splits:
    """The data set, split per class, with images of identical pixels on one side.

    Args:
        name: The data set's name.
        classes: Class names in the order of the labels.
        data: All images.
        seed: Of the shuffle: see `stratified_split`.
        train_share: The share of each class that trains, more than 0, less than 1.
    """
    return taken(name, classes, data, *sides(classes, data, seed=seed, train_share=train_share))


def sides(
    classes: tuple[str, ...], data: LabeledImages, *, seed: Seed, train_share: float = 0.7
) -> tuple[Rows, Rows]:
    """The rows of the training and of the test images of a split, each int (n,).

    Args:
        classes, data, seed, train_share: As in `split_images`.
    """
    rows = {image_name: row for row, image_name in enumerate(data.names)}
    members: dict[str, list[str]] = {label: [] for label in classes}
    for image_name, label in zip(data.names, data.labels.tolist(), strict=True):
        members[classes[label]].append(image_name)

    def pixels(image_name: str) -> bytes:
        return blake2b(data.images[rows[image_name]].tobytes(), digest_size=16).digest()

    train, test = stratified_split(members, seed=seed, train_share=train_share, same_as=pixels)
    return (
        np.array([rows[image_name] for image_name in train], dtype=np.intp),
        np.array([rows[image_name] for image_name in test], dtype=np.intp),
    )


def united(splits: Splits) -> LabeledImages:
    """All images of a split, those for training first."""
    return LabeledImages(
        (*splits.train_names, *splits.test_names),
        np.concatenate([splits.train_labels, splits.test_labels]),
        np.concatenate([splits.train_images, splits.test_images]),
    )


def without_named(rows: Rows, names: Sequence[str], patterns: Sequence[str]) -> Rows:
    """The rows, except those of images whose names match a pattern, in their order.

    Args:
        rows: Rows of a data set, int (n,).
        names: Of all its images.
        patterns: As in a shell: `train/*/0???`.
    """
    if not patterns:
        return rows
    matching = re.compile("|".join(map(fnmatch.translate, patterns)))
    return rows[[matching.match(names[row]) is None for row in rows]]


def first_of_each(rows: Rows, labels: NDArray[np.int64], most: int | None) -> Rows:
    """The first rows of each class, in their order.

    Args:
        rows: Rows of a data set, int (n,).
        labels: int64, (all,): the data set's labels.
        most: At most how many of a class are kept; None: all.
    """
    if most is None:
        return rows
    row_labels = labels[rows]
    kept = [np.flatnonzero(row_labels == label)[:most] for label in np.unique(row_labels)]
    return rows[np.sort(np.concatenate(kept))] if kept else rows


def taken(name: str, classes: tuple[str, ...], data: LabeledImages, train: Rows, test: Rows) -> Splits:
    """The data set with these rows on its two sides."""
    return Splits(
        name=name,
        classes=classes,
        train_images=data.images[train],
        train_labels=data.labels[train],
        train_names=tuple(data.names[row] for row in train),
        test_images=data.images[test],
        test_labels=data.labels[test],
        test_names=tuple(data.names[row] for row in test),
    )
