"""Scores of logits against values that are known or that PyTorch computes."""

import numpy as np
import pytest
import torch

from grader.training.metrics import confusion, cross_entropy, probabilities, wilson_interval


@pytest.mark.parametrize(
    ("hits", "count", "low", "high"),
    [
        # by the formula of Wilson (1927), as in Newcombe (1998), Statistics in Medicine 17, table I
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
        (29, 29, 0.8830, 1.0),
    ],
)
def test_interval_has_the_published_values(hits: int, count: int, low: float, high: float) -> None:
    """To the four digits that are published."""
    assert wilson_interval(hits, count) == pytest.approx((low, high), abs=5.1e-5)


def test_interval_stays_within_what_a_share_can_be() -> None:
    """Also for nothing, and around the share itself."""
    assert wilson_interval(0, 0) == (0.0, 1.0)
    for count in (1, 7, 540):
        for hits in range(count + 1):
            low, high = wilson_interval(hits, count)
            assert 0.0 <= low <= hits / count + 1e-12
            assert hits / count - 1e-12 <= high <= 1.0


def test_cross_entropy_is_that_of_pytorch() -> None:
    """Means in nats; also for logits as large as float32 holds."""
    random = np.random.default_rng(3)
    for scale in (1.0, 100.0, 1e30):
        logits = (scale * random.normal(size=(40, 6))).astype(np.float32)
        labels = random.integers(0, 6, 40)
        expected = torch.nn.functional.cross_entropy(
            torch.from_numpy(logits).double(), torch.from_numpy(labels)
        )
        assert cross_entropy(logits, labels) == pytest.approx(expected.item(), rel=1e-6)
    extreme = np.array([[3.4e38, -3.4e38]], dtype=np.float32)
    assert np.isfinite(cross_entropy(extreme, np.array([1])))


def test_outputs_after_log_softmax_score_alike() -> None:
    """A model that ends in log_softmax has the same loss and the same probabilities."""
    logits = torch.randn(30, 4, generator=torch.Generator().manual_seed(1)).double()
    labels = np.arange(30) % 4
    after = logits.log_softmax(1).numpy()
    assert cross_entropy(after, labels) == pytest.approx(cross_entropy(logits.numpy(), labels), rel=1e-12)
    np.testing.assert_allclose(probabilities(after), logits.softmax(1).numpy(), rtol=1e-12)


def test_confusion_has_true_classes_in_rows() -> None:
    """And counts every image, also where a class is missing."""
    labels = np.array([0, 0, 0, 1, 2], dtype=np.int64)
    predicted = np.array([0, 1, 1, 2, 2])
    assert confusion(predicted, labels, 4).tolist() == [
        [1, 2, 0, 0],
        [0, 0, 1, 0],
        [0, 0, 1, 0],
        [0, 0, 0, 0],
    ]
