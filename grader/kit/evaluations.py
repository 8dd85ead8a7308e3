"""Runs of a function that evaluates a model: on several rigged data sets, each with its answers."""

import math
from typing import Any

import numpy as np

from grader.kit.mismatch import Mismatch
from grader.kit.numbered_inputs import SHAPE, Shape
from grader.kit.rig import RiggedData, scored_data

SETS = 4  # what is guessed is right for all of them in one of a hundred cases at most
SIZES = (40, 40, 40, 7)  # a mean of the batches' means is another one than that over all images
HITS = (32, 121)  # of the 127 images; each number is as likely as any other
SCALES = (0.3, 3.5)  # of the logits
LOSSES = (0.2, 8.0)  # between which the average losses lie
# a guess that is p away from an average loss, with label smoothing of up to 0.2, counts as right with a
# probability of at most 2 p / LOSS_SPREAD
LOSS_SPREAD = 1.0
# between the largest and the smallest answer: what is rounded to one decimal differs too
SHARES_APART, LOSSES_APART = 0.2, 0.5

Array = Any
Evaluations = tuple[tuple[RiggedData, Any], ...]


def evaluations(
    student: Any, function: str, class_names: tuple[str, ...], *, shape: Shape = SHAPE
) -> Evaluations:
    """Data sets and a function's runs on them, in one worker: the first model comes in evaluation mode.

    Nothing tells the runs apart but what the model says. They are made once for all checks.

    Args:
        function: The graded function that evaluates a model on a loader.
        class_names: Of the data sets.
        shape: Channels, height and width of the images.

    Raises:
        Mismatch: The function raised, or does not exist.
    """

    def make() -> Evaluations | Mismatch:
        try:
            return tuple(
                (data, student.run(function, data, initial_mode="train" if number else "eval"))
                for number, data in enumerate(evaluation_data(class_names, student.next_seed(), shape))
            )
        except Mismatch as error:
            return error

    found: Evaluations | Mismatch = student.shared(function, make)
    if isinstance(found, Mismatch):
        raise found.again()
    return found


def evaluation_data(class_names: tuple[str, ...], seed: int, shape: Shape = SHAPE) -> tuple[RiggedData, ...]:
    """SETS data sets whose right counts and losses are not all alike."""
    random = np.random.default_rng(seed)
    low, high = map(math.log, SCALES)
    while True:
        data = tuple(
            scored_data(
                class_names,
                SIZES,
                hits=int(random.integers(HITS[0], HITS[1] + 1)),
                scale=math.exp(random.uniform(low, high)),
                seed=int(random.integers(2**31)),
                shape=shape,
            )
            for _ in range(SETS)
        )
        shares = [float((each.predictions == each.labels).mean()) for each in data]
        averages = [float(losses(each.table, each.labels).mean()) for each in data]
        if np.ptp(shares) >= SHARES_APART and np.ptp(averages) >= LOSSES_APART:
            return data


def losses(table: Array, labels: Array, smoothing: float = 0.0) -> Array:
    """The cross-entropy of each image, (n,).

    Label smoothing moves a share of every label to all classes evenly. Source: Szegedy et al. (2016),
    section 7.

    Args:
        table: Logits, (n, classes).
        labels: int (n,).
    """
    table = table.astype(np.float64)
    table = table - table.max(axis=1, keepdims=True)
    log_p = table - np.log(np.exp(table).sum(axis=1, keepdims=True))
    hit = -log_p[np.arange(len(table)), labels]
    return (1 - smoothing) * hit - smoothing * log_p.mean(axis=1)
