"""Perturbed images show the same surface, are the same on every machine, and are made in no time."""

import hashlib
import time

import numpy as np
import pytest

from grader.training.blinding import perturbed


def smooth(count: int, side: int = 200, seed: int = 3) -> np.ndarray:
    """Images with structure of many sizes, uint8 (count, side, side)."""
    random = np.random.default_rng(seed)
    total = np.zeros((count, side, side))
    for cells in (4, 10, 25, 50):
        drawn = random.normal(size=(count, cells, cells))
        total += drawn.repeat(-(-side // cells), 1).repeat(-(-side // cells), 2)[:, :side, :side]
    return np.clip(128 + 25 * total, 0, 255).astype(np.uint8)


def test_the_result_does_not_depend_on_the_machine() -> None:
    """Else a submission that is graded again elsewhere would be trained on other images."""
    made = perturbed(smooth(5), [1, 2])
    assert hashlib.sha256(made.tobytes()).hexdigest()[:16] == "881880df05a46d53"


def test_images_stay_alike_and_are_not_the_same() -> None:
    images = smooth(20)
    made = perturbed(images, [7])
    assert made.shape == images.shape and made.dtype == np.uint8
    both = np.stack([images, made]).astype(float)
    assert np.abs(both.mean((2, 3))[0] - both.mean((2, 3))[1]).max() < 12
    assert np.abs(np.log(both.std((2, 3))[0] / both.std((2, 3))[1])).max() < 0.25
    assert (np.abs(both[0] - both[1]).mean((1, 2)) > 5).all()


def test_every_image_is_changed_in_its_own_way() -> None:
    made = perturbed(np.repeat(smooth(1), 30, axis=0), [7])
    assert len({image.tobytes() for image in made}) == 30
    means = made.mean((1, 2))
    assert means.max() - means.min() > 3


def test_nothing_is_mirrored_or_turned() -> None:
    """A bright corner stays in its corner."""
    images = np.full((40, 100, 100), 90, dtype=np.uint8)
    images[:, :30, :30] = 200
    made = perturbed(images, [5]).astype(int)
    corners = np.stack([made[:, :10, :10], made[:, :10, -10:], made[:, -10:, :10], made[:, -10:, -10:]])
    assert (corners.mean((2, 3)).argmax(0) == 0).all()


@pytest.mark.parametrize("shape", [(0, 8, 8), (1, 1, 1), (3, 5, 9), (4, 32, 32, 3), (2, 28, 28)])
def test_images_of_any_shape(shape: tuple[int, ...]) -> None:
    images = np.full(shape, 100, dtype=np.uint8)
    made = perturbed(images, [1])
    assert made.shape == shape and np.abs(made.astype(int) - 100).max(initial=0) <= 13


def test_colors_stay_together() -> None:
    """An image is moved and lit as a whole."""
    gray = smooth(3)
    made = perturbed(np.stack([gray, gray, gray], axis=-1), [1])
    assert (made[..., 0] == made[..., 1]).all() and (made[..., 0] == made[..., 2]).all()


def test_a_data_set_takes_about_a_second() -> None:
    """Of processor time: 1800 images of 200 x 200."""
    images = np.repeat(smooth(18), 10, axis=0)
    started = time.process_time()
    perturbed(images, [1])
    assert 10 * (time.process_time() - started) < 3, "it takes 0.5 to 1 s"
