"""Rigged data: what the checks of the plots rely on."""

import numpy as np
import pytest

from grader.kit import classified_data, image_number
from grader.kit.rigged_data import numbered_images

CLASSES = ("crazing", "inclusion", "patches", "pitted_surface", "rolled-in_scale", "scratches")
SIZES = (16,) * 9 + (10,)


@pytest.mark.parametrize("seed", range(20))
def test_classes_are_unevenly_distributed(seed: int) -> None:
    """No two classes are of one size, and each occurs at least six times among labels and predictions."""
    data = classified_data(CLASSES, SIZES, accuracy=0.6, seed=seed)
    labels, said = np.bincount(data.labels, minlength=6), np.bincount(data.predictions, minlength=6)
    assert labels.sum() == sum(SIZES)
    assert len(set(labels.tolist())) == 6
    assert min(labels.min(), said.min()) >= 6
    assert labels.max() >= 2 * labels.min()


@pytest.mark.parametrize("accuracy", [0.6, 0.75])
def test_the_accuracy_is_that_of_every_class(accuracy: float) -> None:
    """Of whichever class examples are chosen, about as many are wrong."""
    data = classified_data(CLASSES, SIZES, accuracy=accuracy, seed=3)
    right = data.labels == data.predictions
    for label in range(len(CLASSES)):
        assert right[data.labels == label].mean() == pytest.approx(accuracy, abs=0.08)
    assert data.labels.dtype == np.int64 and data.table.dtype == np.float32


def test_the_data_are_the_seeds() -> None:
    """The same for one seed, others for another; only how many there are of each class stays."""
    one, same, other = (classified_data(CLASSES, SIZES, accuracy=0.6, seed=seed) for seed in (1, 1, 2))
    assert all(np.array_equal(one.arrays[name], same.arrays[name]) for name in one.arrays)
    assert not np.array_equal(one.labels, other.labels)
    assert np.array_equal(np.bincount(one.labels), np.bincount(other.labels))


@pytest.mark.parametrize("count", [0, 1, 3])
def test_few_images_are_enough(count: int) -> None:
    """Fewer images than classes, too."""
    assert len(classified_data(CLASSES, (count,), accuracy=0.5, seed=1).labels) == count


def test_an_enlarged_image_keeps_its_number() -> None:
    """By repetition, at any whole factor; at others there is none."""
    image = numbered_images(200, seed=4)[137, 0]
    for times in (2, 3, 4):
        assert image_number(image.repeat(times, axis=0).repeat(times, axis=1)) == 137
    assert image_number(np.zeros((42, 42))) is None
    assert image_number(np.zeros((0, 0))) is None
    assert image_number(np.pad(image, ((0, 0), (0, 28)))) is None
