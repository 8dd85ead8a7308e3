"""What an assignment measures by a function of its own: the number, and how far chance reaches."""

import math
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from grader.domain.errors import CourseError
from grader.training.accuracy import T_95
from grader.training.training_job import ScoreFunction

RESAMPLES = 200
SEED = 7  # of the resamples: the same outputs have the same interval


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
