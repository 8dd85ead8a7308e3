"""The receiver operating characteristic of each class: one against the rest."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from grader.domain.evidence import RocCurve

MOST_POINTS = 40  # of a curve, as it is kept and drawn


def roc_curves(probabilities: NDArray[np.float64], labels: NDArray[np.int64]) -> tuple[RocCurve, ...]:
    """A curve for each class; one without area where the class, or all others, do not occur.

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
    # corners matter where the curve is steep: points are kept by the length of the way to them
    way = np.concatenate([[0.0], np.cumsum(np.hypot(np.diff(false), np.diff(true)))])
    kept = np.unique(np.searchsorted(way, np.linspace(0.0, way[-1], MOST_POINTS)).clip(max=len(way) - 1))
    points = tuple((round(float(false[i]), 4), round(float(true[i]), 4)) for i in kept)
    return RocCurve(area, points)
