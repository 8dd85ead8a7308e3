"""Metrics of a trained model: accuracy, ROC curves, and an assignment's own measure.

It compares logits with labels that the submission never sees. It computes the receiver operating
characteristic of each class (one against the rest), and the result of a function that an assignment supplies.
The accuracy and that result come with confidence intervals. It never decides whether a number is good enough.
"""

import math
import statistics
import traceback
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grader.domain.errors import CourseError
from grader.domain.evidence import RocCurve
from grader.protocol.replies import EpochDone
from grader.training.training_job import ScoreFunction

Z_95 = 1.959964  # the 97.5 % quantile of the standard normal distribution
# and of Student's t distribution, by its degrees of freedom
T_95 = {1: 12.7062, 2: 4.3027, 3: 3.1824, 4: 2.7764}


def cross_entropy(logits: NDArray[Any], labels: NDArray[np.int64]) -> float:
    """Mean cross-entropy in nats of logits (n, classes) against labels (n,)."""
    return float(-_log_softmax(logits)[np.arange(len(labels)), labels].mean())


def probabilities(logits: NDArray[Any]) -> NDArray[np.float64]:
    """Softmax over the classes of logits (n, classes)."""
    softmax: NDArray[np.float64] = np.exp(_log_softmax(logits))
    return softmax


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

    Chance enters twice: by which images are tested (Wilson's interval of the mean, as if it were one
    training's), and, if there are several trainings, by the seed (Student's t over their accuracies). They
    are independent, so their widths add up as squares.

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
    log_probabilities: NDArray[np.float64] = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    return log_probabilities


def mean_reported(reported: Any) -> float | None:
    """The mean of the numbers that a student's train_epoch reported, (n,); None where there are none."""
    if reported is None or reported.ndim != 1:
        return None
    usable = reported[np.abs(reported) < 1e30]  # far below what overflows in a mean; neither infinite nor NaN
    return float(usable.mean()) if len(usable) else None


# --- roc -------------------------------------------------------------------------------------------------


MOST_POINTS = 40  # of a curve, as it is kept and drawn


def steps_for_each_batch(epochs: Iterable[EpochDone]) -> float | None:
    """The optimizer steps for each batch of a pass, in the epoch with most; None: they were not counted."""
    return max((epoch.steps / epoch.batches for epoch in epochs if epoch.batches > 0), default=None)


def roc_curves(probabilities: NDArray[np.float64], labels: NDArray[np.int64]) -> tuple[RocCurve, ...]:
    """A curve for each class, without an area if the class, or all others, do not occur.

    The area is that of Fawcett (2006), "An introduction to ROC analysis": the chance that an image of the
    class gets a higher probability than another one, where equal ones count half.

    Args:
        probabilities: (images, classes).
        labels: (images,).
    """
    return tuple(_curve(probabilities[:, label], labels == label) for label in range(probabilities.shape[1]))


def _curve(scores: NDArray[np.float64], positive: Any) -> RocCurve:
    hits, others = int(positive.sum()), int((~positive).sum())
    if not hits or not others:
        return RocCurve(None)
    order = np.argsort(-scores, kind="stable")
    last_of_equals = np.append(np.flatnonzero(np.diff(scores[order])), len(scores) - 1)
    true = np.concatenate([[0.0], np.cumsum(positive[order])[last_of_equals] / hits])
    false = np.concatenate([[0.0], np.cumsum(~positive[order])[last_of_equals] / others])
    area = float((np.diff(false) * (true[1:] + true[:-1]) / 2).sum())
    # corners matter where the curve is steep: points are kept at equal lengths along the curve
    way = np.concatenate([[0.0], np.cumsum(np.hypot(np.diff(false), np.diff(true)))])
    kept = np.unique(np.searchsorted(way, np.linspace(0.0, way[-1], MOST_POINTS)).clip(max=len(way) - 1))
    points = tuple((round(float(false[i]), 4), round(float(true[i]), 4)) for i in kept)
    return RocCurve(area, points)


# --- own measure -----------------------------------------------------------------------------------------


RESAMPLES = 200
SEED = 7  # of the resamples: the same outputs get the same interval


def score_of(function: Callable[[Any, Any], Any], name: str) -> ScoreFunction:
    """A function of an assignment's `measures.py` as a score.

    Args:
        name: What the assignment calls it, for messages.
    """

    def score(outputs: Any, targets: Any) -> float:
        try:
            value = function(outputs, targets)
            number = float(value)
        except Exception as error:
            last = traceback.extract_tb(error.__traceback__)[-1]
            text = " ".join(str(error).split())[:200]
            raise CourseError(
                f"the measure {name} raised {type(error).__name__} ({Path(last.filename).name}:{last.lineno})"
                + (f": {text}." if text else ".")
            ) from error
        if not math.isfinite(number):
            raise CourseError(f"the measure {name} gave {number}, which is not a number.")
        return number

    return score


def value_interval(score: ScoreFunction, outputs: Any, targets: Any) -> tuple[float, float]:
    """The 95 % interval of a score, by drawing the hidden examples anew.

    Source: Efron (1979), the percentile bootstrap.

    Args:
        outputs, targets: (n, ...) each.
    """
    random, count = np.random.default_rng(SEED), len(targets)
    values = []
    for _ in range(RESAMPLES):
        rows = random.integers(0, count, count)
        values.append(score(outputs[rows], targets[rows]))
    low, high = np.quantile(values, [0.025, 0.975])
    return float(low), float(high)


def mean_interval(values: Sequence[float], first: tuple[float, float]) -> tuple[float, float]:
    """The 95 % interval of the mean of trainings with different seeds: see `accuracy_interval`.

    Args:
        values: One per training.
        first: The interval of the first one's.
    """
    mean = sum(values) / len(values)
    below, above = max(values[0] - first[0], 0.0), max(first[1] - values[0], 0.0)
    if len(values) == 1:
        return first
    deviation = float(np.std(values, ddof=1))
    seeds = T_95[min(len(values) - 1, max(T_95))] * deviation / math.sqrt(len(values))
    return mean - math.hypot(below, seeds), mean + math.hypot(above, seeds)
