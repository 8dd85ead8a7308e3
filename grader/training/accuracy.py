"""What logits are worth against labels that the submission never sees."""

import math
import statistics
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Z_95 = 1.959964  # the 97.5 % quantile of the standard normal distribution
# and of Student's t distribution, by its degrees of freedom
T_95 = {1: 12.7062, 2: 4.3027, 3: 3.1824, 4: 2.7764}


def cross_entropy(logits: NDArray[Any], labels: NDArray[np.int64]) -> float:
    """Mean cross-entropy in nats of logits (n, classes) against labels (n,)."""
    return float(-_log_softmax(logits)[np.arange(len(labels)), labels].mean())


def probabilities(logits: NDArray[Any]) -> NDArray[np.float64]:
    """Softmax over the classes of logits (n, classes)."""
    found: NDArray[np.float64] = np.exp(_log_softmax(logits))
    return found


def confusion(predicted: NDArray[Any], labels: NDArray[np.int64], classes: int) -> NDArray[np.int64]:
    """Counts, (true classes, predicted classes)."""
    counts = np.zeros((classes, classes), dtype=np.int64)
    np.add.at(counts, (labels, predicted), 1)
    return counts


def wilson_interval(hits: float, count: int) -> tuple[float, float]:
    """The 95 % interval of a share of `hits` among `count`, both ends within 0 and 1.

    Source: Wilson (1927), the score interval.
    """
    if count == 0:
        return 0.0, 1.0
    share, z2 = hits / count, Z_95**2
    center = (share + z2 / (2 * count)) / (1 + z2 / count)
    reach = Z_95 * math.sqrt(share * (1 - share) / count + z2 / (4 * count**2)) / (1 + z2 / count)
    return max(center - reach, 0.0), min(center + reach, 1.0)


def accuracy_interval(accuracies: Sequence[float], images: int) -> tuple[float, float]:
    """The 95 % interval of the mean accuracy of trainings with different seeds on the same test images.

    Two chances meet: which images are tested (Wilson's interval of the mean, as if it were one training's),
    and, where there are several trainings, the seed (Student's t over their accuracies). They are
    independent, so that their reaches add up as squares.

    Args:
        accuracies: One per training, each 0 to 1.
        images: How many test images there are.
    """
    mean = sum(accuracies) / len(accuracies)
    low, high = wilson_interval(mean * images, images)
    if len(accuracies) == 1:
        return low, high
    deviation = statistics.stdev(accuracies)
    freedom = min(len(accuracies) - 1, max(T_95))
    seeds = T_95[freedom] * deviation / math.sqrt(len(accuracies))
    return (
        max(mean - math.hypot(mean - low, seeds), 0.0),
        min(mean + math.hypot(high - mean, seeds), 1.0),
    )


def _log_softmax(logits: NDArray[Any]) -> NDArray[np.float64]:
    shifted = logits.astype(np.float64) - logits.max(axis=1, keepdims=True)
    found: NDArray[np.float64] = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    return found


def mean_reported(reported: Any) -> float | None:
    """The mean of the numbers that a student's train_epoch reported, (n,); None where there are none."""
    if reported is None or reported.ndim != 1:
        return None
    known = reported[np.abs(reported) < 1e30]  # far below what overflows in a mean; neither infinite nor NaN
    return float(known.mean()) if len(known) else None
