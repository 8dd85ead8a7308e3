"""Hides from a worker the images' order, their identity and the names of the classes.

A data set lists images class by class, and students hold known images with their labels. So the images are
shuffled, and the classes get neutral names. Each image is moved, bent, lit and grained a little, at random
for each submission: a table made from the published images must not recognize them. How much is a compromise:
`benchmarks/memorized.py` measures what tables still gain, and what honest work loses. All numbers are
computed in a way that gives the same images on every machine.
"""

import math
import re
import string
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from grader.domain.analyzed_program import Program
from grader.domain.errors import Interruption
from grader.training.training_job import Job

# shares of the shorter side of an image
SHIFT = 0.10  # at most, vertically and horizontally
BEND = 0.05  # at most, in addition, for each node of a grid
BEND_NODES = 5  # of the grid, along each side
# shares of the contrast, of the whole image and, in addition, at each node of a grid
CONTRAST, LOCAL_CONTRAST = 0.05, 0.10
# gray values
BRIGHTNESS, LOCAL_BRIGHTNESS = 5.0, 4.0
LIGHT_NODES = 4
GRAIN = 3.5  # of each pixel: one of eight steps from -GRAIN to GRAIN

FIELDS = 32  # of bends, and of lights: each image gets a pair of its own from these
STEPS = 16  # of a pixel: an interpolated value is a sum of sixteenths of sixteenths


@dataclass(frozen=True)
class _Bend:
    """Where the pixels of an image come from.

    Attributes:
        indices: Of the upper left of four neighbors in the padded and flattened image, intp (pixels,).
        weights: Of the four neighbors, uint16 (4, pixels, 1), 256 together.
    """

    indices: Any
    weights: Any


@dataclass(frozen=True)
class _Light:
    """What becomes of gray values: float32 (pixels, 1) each.

    Attributes:
        contrast: The factor for the difference from the image's mean.
        brightness: What is added.
    """

    contrast: Any
    brightness: Any


def perturbed(images: Any, seed: Sequence[int]) -> Any:
    """The images, each moved, bent, lit and grained at random.

    Args:
        images: uint8 (n, height, width[, channels]).
        seed: For everything that is drawn.

    Returns:
        New images of the same shape.
    """
    made = np.empty_like(images)
    if images.size == 0:
        return made
    count, height, width = images.shape[:3]
    random = np.random.default_rng(seed)
    shift = SHIFT * min(height, width)
    margin = math.ceil(shift + BEND * min(height, width)) + 2
    bends = [_bend(random, height, width, margin) for _ in range(min(FIELDS, count))]
    lights = [_light(random, height, width) for _ in range(min(FIELDS, count))]
    steps = int(shift)  # whole pixels: the fraction goes into the bends
    width_of_padded = width + 2 * margin
    for index, image in enumerate(images):
        bend, light = bends[random.integers(len(bends))], lights[random.integers(len(lights))]
        down, right = random.integers(-steps, steps + 1, 2)
        padded = np.pad(
            image.reshape(height, width, -1), ((margin, margin), (margin, margin), (0, 0)), "symmetric"
        )
        values = _interpolated(padded, bend, int(down * width_of_padded + right))
        made[index] = _lit(values, light, random).reshape(image.shape)
    return made


def _bend(random: np.random.Generator, height: int, width: int, margin: int) -> _Bend:
    """A smooth displacement of every pixel: a common part of less than a pixel, and more for some."""
    side = min(height, width)
    places = []
    for axis in (0, 1):
        nodes = BEND * side * _drawn(random, BEND_NODES, BEND_NODES) + _drawn(random)
        coordinates = np.arange(height)[:, None] if axis == 0 else np.arange(width)[None, :]
        places.append(margin + coordinates + _spread(nodes, height, width))
    steps = [np.floor(STEPS * place).astype(np.int64) for place in places]
    (row, down), (column, right) = (np.divmod(step.reshape(-1), STEPS) for step in steps)
    up, left = STEPS - down, STEPS - right
    weights = np.stack([up * left, up * right, down * left, down * right]).astype(np.uint16)
    return _Bend((row * (width + 2 * margin) + column).astype(np.intp), weights[:, :, None])


def _light(random: np.random.Generator, height: int, width: int) -> _Light:
    """Smooth changes of contrast and brightness."""
    fields = []
    for middle, amount in ((1.0, LOCAL_CONTRAST), (0.0, LOCAL_BRIGHTNESS)):
        nodes = middle + amount * _drawn(random, LIGHT_NODES, LIGHT_NODES)
        fields.append(_spread(nodes, height, width).reshape(-1, 1).astype(np.float32))
    return _Light(*fields)


def _interpolated(padded: Any, bend: _Bend, offset: int) -> Any:
    """The pixels of a bent image, float32 (pixels, channels).

    Args:
        padded: The image with a margin, uint8 (height, width, channels).
        offset: Of all indices: where the image is moved to.
    """
    flat = padded.reshape(-1, padded.shape[-1])
    below = padded.shape[1]
    indices = bend.indices + offset
    total = np.zeros((len(indices), flat.shape[1]), dtype=np.uint16)  # 256 * 255 is the most
    for weight, further in zip(bend.weights, (0, 1, below, below + 1), strict=True):
        total += weight * flat[further:].take(indices, axis=0)
    return total * np.float32(1 / STEPS**2)


def _lit(values: Any, light: _Light, random: np.random.Generator) -> Any:
    """The pixels with other contrast, brightness and grain, uint8 (pixels, channels)."""
    mean = np.float32(round(float(values.sum(dtype=np.float64)) / values.size))
    contrast, brightness = 1 + CONTRAST * _drawn(random), BRIGHTNESS * _drawn(random)
    values -= mean
    values *= light.contrast
    values *= np.float32(contrast)
    values += light.brightness
    # the upper three bits of a byte: equally likely steps
    grain = np.frombuffer(random.bytes(len(values)), dtype=np.uint8) >> 5
    values += grain[:, None]
    values += mean + np.float32(brightness - GRAIN)
    return np.clip(np.rint(values), 0, 255).astype(np.uint8)


def _drawn(random: np.random.Generator, *shape: int) -> Any:
    """Numbers between -1 and 1."""
    return random.integers(-(2**20), 2**20 + 1, shape) / 2**20


def _spread(nodes: Any, height: int, width: int) -> Any:
    """The values of a grid's nodes, interpolated for the pixels of an image, float64 (height, width)."""
    for axis, size in ((0, height), (1, width)):
        last = nodes.shape[axis] - 1
        place = np.arange(size) * (last / max(size - 1, 1))
        before = np.minimum(place.astype(np.int64), last - 1)
        share = place - before
        share = share[:, None] if axis == 0 else share[None, :]
        nodes = nodes.take(before, axis) * (1 - share) + nodes.take(before + 1, axis) * share
    return nodes


# --- blinding --------------------------------------------------------------------------------------------


LEAST_PART = 4  # letters of a class's name that count as a mention of it
QUOTED = re.compile(r"\"([^\"\n]*)\"|'([^'\n]*)'")


class Blinding:
    """Translates between a job's images and classes and those that the worker sees.

    Attributes:
        classes: The names of the classes as the worker sees them, in its order: neutral ones, unless the
            program mentions the real ones.
        order: int64 (test images,): for each of the worker's images, its index among ours.
    """

    def __init__(self, job: Job, purpose: str, *, numbers: bool) -> None:
        """Draw the order and the numbers.

        Args:
            purpose: `training` or `checkpoint`; they get different orders.
            numbers: Hide the numbers of the classes, and change the images. Not for submitted weights, which
                know the numbers and were made for the unchanged images.
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
        """Images that show the same as ours, but differ from the published ones."""
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
            NoAnswers: They are not logits of these images.
        """
        expected = (len(self._splits.test_labels), len(self._splits.classes))
        if logits is None or logits.dtype != np.float32 or logits.shape != expected:
            raise NoAnswers
        ours = np.empty_like(logits)
        ours[self.order] = logits
        return ours[:, self._numbers]


def grained(images: Any, seed: Sequence[int]) -> Any:
    """Images whose gray values differ by at most one step: nobody sees it, but no digest matches."""
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
    return tuple("class_" + "".join(letters[digit] for digit in name_digits) for name_digits in digits)


def mentions(program: Program, classes: Sequence[str]) -> bool:
    """Whether the executed part of a program may depend on the real names of the classes.

    It may if a text in it is one of them, or a large enough part of one. It also may if two of them are words
    of the source, within a text (`"crazing,inclusion"`) or by themselves. One alone may be an ordinary word:
    an image is cut into patches.
    """
    source = "\n".join(program.executed_texts).lower()
    names = {name.lower() for name in classes}
    for quotation in QUOTED.finditer(source):
        text = (quotation[1] or quotation[2] or "").strip()
        if text in names or (len(text) >= LEAST_PART and any(text in name for name in names)):
            return True
    return sum(re.search(rf"(?<!\w){re.escape(name)}(?!\w)", source) is not None for name in names) >= 2


class NoAnswers(Interruption):
    """The worker answered with something other than the model's outputs."""
