"""Precision, recall and F1 are those of scikit-learn."""

import numpy as np
import pytest

from grader.domain.evidence import Training, TrainingOutcome
from grader.reports.student.model_figures import class_figures
from grader.training.metrics import confusion


def figures(predicted: list[int], labels: list[int], classes: int) -> list[tuple[float | None, ...]]:
    counts = confusion(np.array(predicted), np.array(labels), classes)
    training = Training(TrainingOutcome.COMPLETED, confusion=tuple(tuple(map(int, row)) for row in counts))
    return [(one.images, one.precision, one.recall, one.f1) for one in class_figures(training)]


def test_they_are_those_of_scikit_learn() -> None:
    from sklearn.metrics import precision_recall_fscore_support  # slow to load: not while tests are collected

    random = np.random.default_rng(4)
    labels = random.integers(0, 6, 200)
    predicted = np.where(random.random(200) < 0.6, labels, random.integers(0, 6, 200))
    expected = precision_recall_fscore_support(labels, predicted)
    found = np.array(figures(predicted.tolist(), labels.tolist(), 6), dtype=float)
    np.testing.assert_allclose(found[:, 1:].T, np.array(expected[:3]), rtol=1e-12)
    assert found[:, 0].tolist() == expected[3].tolist()


@pytest.mark.parametrize(
    ("predicted", "labels", "expected"),
    [
        ([0, 0], [0, 0], [(2, 1.0, 1.0, 1.0), (0, None, None, None)]),
        ([0, 0], [0, 1], [(1, 0.5, 1.0, pytest.approx(2 / 3)), (1, None, 0.0, 0.0)]),
    ],
)
def test_what_cannot_be_divided_is_unknown(
    predicted: list[int], labels: list[int], expected: list[tuple[float | None, ...]]
) -> None:
    assert figures(predicted, labels, 2) == expected
