"""What a worker must not know of the images: their order, the numbers of the classes, their very bytes.

A data set lists images class by class, and students hold known images with their labels.
"""

import zlib
from typing import Any

import numpy as np

from grader.training.job import Job


class Blinding:
    """The images and classes of a job as the worker sees them, and its answers as they are meant.

    Attributes:
        classes: The names of the classes, in the worker's order.
        order: int64 (test images,): which of ours each of the worker's is.
    """

    def __init__(self, job: Job, purpose: str, *, numbers: bool) -> None:
        """Draw the order and the numbers.

        Args:
            purpose: `training` or `checkpoint`: each has an order of its own.
            numbers: Hide the numbers of the classes, which submitted weights must know.
        """
        splits, seed = job.splits, job.order_seed
        self._splits, self._seed = splits, seed
        self.order = np.arange(len(splits.test_labels))
        self._numbers = np.arange(len(splits.classes))
        if seed is not None:
            drawn = np.random.default_rng([seed, zlib.crc32(purpose.encode())])
            self.order = drawn.permutation(len(splits.test_labels))
        if seed is not None and numbers:
            drawn = np.random.default_rng([seed, zlib.crc32(b"classes")])
            self._numbers = drawn.permutation(len(splits.classes))
        self.classes = tuple(splits.classes[old] for old in np.argsort(self._numbers))

    @property
    def train_labels(self) -> Any:
        """The labels of the training images in the worker's numbers, int64 (n,)."""
        return self._numbers[self._splits.train_labels]

    @property
    def train_images(self) -> Any:
        """The training images, uint8 (n, height, width[, 3])."""
        return self._grained(self._splits.train_images, b"train")

    @property
    def test_images(self) -> Any:
        """The test images in the worker's order, uint8 (n, height, width[, 3])."""
        return self._grained(self._splits.test_images, b"test")[self.order]

    def _grained(self, images: Any, which: bytes) -> Any:
        """Images whose gray values are by at most one step others: nobody sees it, but no digest fits.

        Else a table of digests would tell the label of every known image.
        """
        if self._seed is None:
            return images
        random = np.random.default_rng([self._seed, zlib.crc32(which)])
        made = np.empty_like(images)
        for index, image in enumerate(images):
            grain = random.integers(-1, 2, image.shape, dtype=np.int8)
            made[index] = np.clip(image.astype(np.int16) + grain, 0, 255)
        return made

    def places(self, images: tuple[int, ...]) -> tuple[int, ...]:
        """Where some of our test images are in the worker's order."""
        places = np.argsort(self.order)
        return tuple(int(places[image]) for image in images)

    def answers(self, logits: Any) -> Any:
        """A worker's logits, float32 (images, classes), in our order and numbers; infinite ones stay.

        Raises:
            NoAnswers: They are something else.
        """
        expected = (len(self._splits.test_labels), len(self._splits.classes))
        if logits is None or logits.dtype != np.float32 or logits.shape != expected:
            raise NoAnswers
        ours = np.empty_like(logits)
        ours[self.order] = logits
        return ours[:, self._numbers]


class NoAnswers(Exception):
    """The worker answered with something else than the model's outputs."""
