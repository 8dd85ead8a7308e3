"""What a submission validates on is neither trained on nor measured on."""

import numpy as np
import pytest

from grader.kit.splits import Splits
from grader.training.validation import validation_apart


def splits(train: int, test: int, same: int = 0) -> Splits:
    """Three classes; the first `same` test images of the first class are identical."""

    def side(count: int, seed: int) -> tuple:
        labels = np.repeat(np.arange(3), count)
        images = np.random.default_rng(seed).integers(0, 256, (len(labels), 4, 4), dtype=np.uint8)
        return images, labels, tuple(f"{seed}/{number}" for number in range(len(labels)))

    images, labels, names = side(test, 2)
    images[:same] = images[0]
    return Splits("made", ("a", "b", "c"), *side(train, 1), images, labels, names)


def rows(images) -> set[bytes]:
    return {image.tobytes() for image in images}


def test_a_tenth_as_many_as_train_are_taken_from_those_that_do_not() -> None:
    whole = splits(train=70, test=30)
    less, validation = validation_apart(whole, 5)
    assert np.bincount(validation.labels).tolist() == [7, 7, 7]
    assert np.bincount(less.test_labels).tolist() == [23, 23, 23]
    assert not rows(less.test_images) & rows(validation.images)
    assert rows(less.test_images) | rows(validation.images) == rows(whole.test_images)
    assert len(less.test_names) == 69 and set(less.test_names) < set(whole.test_names)
    np.testing.assert_array_equal(less.train_images, whole.train_images)
    again = validation_apart(whole, 5)[1]
    np.testing.assert_array_equal(again.images, validation.images)
    assert rows(validation_apart(whole, 6)[1].images) != rows(validation.images)


@pytest.mark.parametrize(("test", "taken"), [(2, 1), (3, 1), (4, 2), (30, 7)])
def test_at_least_half_is_measured(test: int, taken: int) -> None:
    less, validation = validation_apart(splits(train=70, test=test), 1)
    assert np.bincount(validation.labels).tolist() == [taken] * 3
    assert np.bincount(less.test_labels).tolist() == [test - taken] * 3


@pytest.mark.parametrize("seed", range(5))
def test_identical_images_stay_together(seed: int) -> None:
    less, validation = validation_apart(splits(train=70, test=30, same=5), seed)
    assert not rows(less.test_images) & rows(validation.images)
