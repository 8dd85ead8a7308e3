"""What logits are worth against labels that the submission never sees."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

Z_95 = 1.959964  # the 97.5 % quantile of the standard normal distribution


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


def _log_softmax(logits: NDArray[Any]) -> NDArray[np.float64]:
    shifted = logits.astype(np.float64) - logits.max(axis=1, keepdims=True)
    found: NDArray[np.float64] = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    return found
