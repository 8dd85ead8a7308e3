"""The made scenes: no image tells its class by its colors or by where something is."""

from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from grader.domain.errors import UsageError

Features = np.ndarray
PER_CLASS = 200


@pytest.fixture(scope="module")
def objects(dataset: Callable[[str], ModuleType]) -> ModuleType:
    return dataset("synthetic_objects")


def test_ten_of_thirty_classes_are_the_assignments(objects: ModuleType) -> None:
    assert len(objects.SCENES) == 30 and len(objects.CLASSES) == 10 and len(objects.OTHERS) == 20
    assert not set(objects.CLASSES) & set(objects.OTHERS)
    assert set(objects.CLASSES) | set(objects.OTHERS) == set(objects.SCENES)


def test_no_two_of_shape_texture_and_number_tell_all_classes(objects: ModuleType) -> None:
    scenes = [objects.SCENES[name] for name in objects.CLASSES]
    for left_out in ("shape", "texture", "objects"):
        kept = {tuple(value for key, value in vars(scene).items() if key != left_out) for scene in scenes}
        assert len(kept) < 10, f"{left_out} is not needed"


@pytest.mark.slow
def test_images_depend_on_the_seed_and_on_nothing_else(objects: ModuleType, tmp_path: Path) -> None:
    one, again, other = (objects.made_images(seed, per_class=30) for seed in (1, 1, 2))
    assert one.images.shape == (300, 32, 32, 3) and one.images.dtype == np.uint8
    np.testing.assert_array_equal(one.images, again.images)
    assert one.names == other.names
    assert (one.images != other.images).reshape(300, -1).any(axis=1).all()
    fewer = objects.made_images(1, per_class=10)
    for row, name in enumerate(fewer.names):
        np.testing.assert_array_equal(fewer.images[row], one.images[one.names.index(name)])
    kept = objects.made_images(1, classes=objects.OTHERS, per_class=2)
    assert np.bincount(kept.labels).tolist() == [2] * 20


def test_the_split_is_even(objects: ModuleType, tmp_path: Path) -> None:
    splits = objects.load(None, seed=5, train_share=0.7, cache=tmp_path)
    assert np.bincount(splits.train_labels).tolist() == [round(0.7 * objects.PER_CLASS)] * 10
    with pytest.raises(UsageError):
        objects.load(tmp_path / "absent.zip", seed=5)


# --- what a classifier can learn without seeing structure ----------------------------------------------


def colors(images: np.ndarray) -> Features:
    """Mean, spread and a histogram of each channel."""
    pixels = images.reshape(len(images), -1, 3) / 255
    bins = [np.stack([((pixels * 8).astype(int) == k).mean(axis=1) for k in range(8)], axis=1)]
    return np.concatenate([pixels.mean(axis=1), pixels.std(axis=1), bins[0].reshape(len(images), -1)], axis=1)


def places(images: np.ndarray) -> Features:
    """The middle of what differs from its surroundings."""
    gray = images.astype(float).mean(axis=-1)
    edges = np.abs(gray - gray.mean(axis=(1, 2), keepdims=True))
    weight = edges / edges.sum(axis=(1, 2), keepdims=True)
    across = np.arange(32)
    return np.stack(
        [(weight.sum(axis=1) * across).sum(axis=1), (weight.sum(axis=2) * across).sum(axis=1)], axis=1
    )


def pixels(images: np.ndarray) -> Features:
    return images.reshape(len(images), -1) / 255


def linear_accuracy(objects: ModuleType, features: Callable[[np.ndarray], Features], penalty: float) -> float:
    """Of ridge regression on one-hot labels (Hoerl and Kennard 1970), trained on 6,000 images."""
    train, test = objects.made_images(11), objects.made_images(12, per_class=PER_CLASS)
    x, other = features(train.images), features(test.images)
    mean, spread = x.mean(axis=0), x.std(axis=0) + 1e-6
    x, other = ((each - mean) / spread for each in (x, other))
    targets = np.eye(10)[train.labels] - 0.1
    weights = np.linalg.solve(x.T @ x + penalty * len(x) * np.eye(x.shape[1]), x.T @ targets)
    return float(((other @ weights).argmax(axis=1) == test.labels).mean())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("features", "most"), [(colors, 0.3), (places, 0.2)], ids=["colors alone", "places alone"]
)
def test_neither_colors_nor_places_tell_the_class(
    objects: ModuleType, features: Callable[[np.ndarray], Features], most: float
) -> None:
    assert linear_accuracy(objects, features, 1e-3) < most


@pytest.mark.slow
def test_a_linear_classifier_sees_little(objects: ModuleType) -> None:
    assert max(linear_accuracy(objects, pixels, penalty) for penalty in (0.01, 0.1, 1.0)) < 0.4
