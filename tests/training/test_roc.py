"""The receiver operating characteristic is that of scikit-learn."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score, roc_curve

from grader.training.metrics import MOST_POINTS, roc_curves


@pytest.mark.parametrize("digits", [1, 2, 8])
def test_areas_and_points_are_those_of_scikit_learn(digits: int) -> None:
    """Also where many probabilities are equal."""
    random = np.random.default_rng(digits)
    labels = random.integers(0, 4, 300)
    scores = np.round(random.dirichlet(np.ones(4), 300), digits)
    for label, curve in enumerate(roc_curves(scores, labels)):
        positive = labels == label
        assert curve.area == pytest.approx(roc_auc_score(positive, scores[:, label]))
        false, true, _ = roc_curve(positive, scores[:, label], drop_intermediate=False)
        whole = set(zip(false.round(4), true.round(4), strict=True))
        assert whole >= set(curve.points) and len(curve.points) <= MOST_POINTS
        assert (curve.points[0], curve.points[-1]) == ((0.0, 0.0), (1.0, 1.0))


def test_a_class_that_is_absent_has_no_curve() -> None:
    curves = roc_curves(np.full((3, 2), 0.5), np.zeros(3, dtype=np.int64))
    assert [(curve.area, curve.points) for curve in curves] == [(None, ()), (None, ())]
