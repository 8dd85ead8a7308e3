"""Images that a submission may validate on, where its code decides by what it measures between epochs.

They are taken from those that do not train, and are not measured: the training keeps all of its images, as
where the student's script runs by itself, and what decides is never what is measured.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any

import numpy as np

from grader.kit.splits import Splits

SHARE = 0.1  # as many as this share of a class's training images
MOST = 0.5  # and no more than this share of those that do not train


@dataclass(frozen=True)
class LabeledSide:
    """Images uint8 (n, height, width[, 3]), and their labels int64 (n,)."""

    images: Any
    labels: Any


def validation_apart(splits: Splits, seed: int | Sequence[int]) -> tuple[Splits, LabeledSide]:
    """The splits with fewer test images, and those that are taken away.

    Of each class about a tenth as many as train; identical images stay together.

    Args:
        seed: Of the choice.
    """
    random = np.random.default_rng(seed)
    chosen: list[int] = []
    for label in np.unique(splits.test_labels):
        own = np.flatnonzero(splits.test_labels == label)
        wanted = max(round(SHARE * int((splits.train_labels == label).sum())), 1)
        chosen += _together(splits.test_images, random.permutation(own), min(wanted, int(MOST * len(own))))
    taken = np.sort(np.array(chosen, dtype=np.intp))
    kept = np.setdiff1d(np.arange(len(splits.test_labels)), taken)
    less = replace(
        splits,
        test_images=splits.test_images[kept],
        test_labels=splits.test_labels[kept],
        test_names=tuple(splits.test_names[row] for row in kept),
    )
    return less, LabeledSide(splits.test_images[taken], splits.test_labels[taken])


def _together(images: Any, rows: Any, count: int) -> list[int]:
    """The first rows, up to a count, with all that are identical to one of them."""
    alike: dict[bytes, list[int]] = {}
    for row in rows.tolist():
        alike.setdefault(blake2b(images[row].tobytes(), digest_size=16).digest(), []).append(row)
    found: list[int] = []
    for group in alike.values():
        if len(found) + len(group) <= count:
            found += group
    return found
