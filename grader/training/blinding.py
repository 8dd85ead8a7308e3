"""What a worker must not know of the images: their order, which they are, their classes' names.

A data set lists images class by class, and students hold known images with their labels.
"""

import re
import string
import zlib
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from grader.domain.errors import Interruption
from grader.domain.program import Program
from grader.training.perturbation import perturbed
from grader.training.training_job import Job

LEAST_PART = 4  # letters of a class's name by which a program may mean it
QUOTED = re.compile(r"\"([^\"\n]*)\"|'([^'\n]*)'")


class Blinding:
    """The images and classes of a job as the worker sees them, and its answers as they are meant.

    Attributes:
        classes: The names of the classes as the worker sees them, in its order: neutral ones, unless the
            program mentions the real ones.
        order: int64 (test images,): which of ours each of the worker's is.
    """

    def __init__(self, job: Job, purpose: str, *, numbers: bool) -> None:
        """Draw the order and the numbers.

        Args:
            purpose: `training` or `checkpoint`: each has an order of its own.
            numbers: Hide the numbers of the classes, and make the images others: submitted weights must know
                the ones, and were made for the others.
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
        self._perturbs = numbers and job.perturbs
        self.classes = tuple(splits.classes[old] for old in np.argsort(self._numbers))
        if seed is not None and not mentions(job.program, splits.classes):
            self.classes = neutral_names(len(splits.classes))

    @property
    def train_labels(self) -> Any:
        """The labels of the training images in the worker's numbers, int64 (n,)."""
        return self._numbers[self._splits.train_labels]

    @cached_property
    def train_images(self) -> Any:
        """The training images, uint8 (n, height, width[, 3])."""
        return self._changed(self._splits.train_images, b"train")

    @property
    def test_images(self) -> Any:
        """The test images in the worker's order, uint8 (n, height, width[, 3])."""
        return self._changed(self._splits.test_images, b"test")[self.order]

    def _changed(self, images: Any, which: bytes) -> Any:
        """Images that show the same as ours, and are not those that are published."""
        if self._seed is None:
            return images
        seed = [self._seed, zlib.crc32(which)]
        return perturbed(images, seed) if self._perturbs else grained(images, seed)

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


def grained(images: Any, seed: Sequence[int]) -> Any:
    """Images whose gray values are by at most one step others: nobody sees it, but no digest fits."""
    random = np.random.default_rng(seed)
    made = np.empty_like(images)
    for index, image in enumerate(images):
        grain = random.integers(-1, 2, image.shape, dtype=np.int8)
        made[index] = np.clip(image.astype(np.int16) + grain, 0, 255)
    return made


def neutral_names(count: int) -> tuple[str, ...]:
    """Names of classes that say nothing, in alphabetical order: `class_a`, `class_b`, ..."""
    letters = string.ascii_lowercase
    width = 1
    while len(letters) ** width < count:
        width += 1
    digits = [[number // 26**place % 26 for place in reversed(range(width))] for number in range(count)]
    return tuple("class_" + "".join(letters[digit] for digit in each) for each in digits)


def mentions(program: Program, classes: Sequence[str]) -> bool:
    """Whether what is executed of a program may depend on the real names of the classes.

    A text in it is one of them, or a large enough part of one; or two of them are words of the source, be it
    within a text (`"crazing,inclusion"`) or by themselves. One alone may be a word as any other: an image is
    cut into patches.
    """
    source = "\n".join(program.executed_texts).lower()
    names = {name.lower() for name in classes}
    for found in QUOTED.finditer(source):
        text = (found[1] or found[2] or "").strip()
        if text in names or (len(text) >= LEAST_PART and any(text in name for name in names)):
            return True
    return sum(re.search(rf"(?<!\w){re.escape(name)}(?!\w)", source) is not None for name in names) >= 2


class NoAnswers(Interruption):
    """The worker answered with something else than the model's outputs."""
