"""The grader's images as a data set under the student's transform, like an ImageFolder.

It decides which parts of the transform are applied once, for a whole batch, or each time anew; the images are
the same either way. In a batch, random numbers are drawn image by image in torchvision's order. On a few
images both ways must give equal tensors, else each image goes through the student's transform. A change of
the transform is noticed. `training_setup` and `loaded_weights` decide which images and labels there are.

Tests: tests/worker/test_batch_transforms.py, tests/worker/test_transforms.py
"""

import math
import operator
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset

from grader.worker.batch_steps import Batch, Step, stacked, step_for
from grader.worker.transforms import Transform, divided, parameters, parts_of, picture_of

TRIED = 8  # images on which a batch is compared with single images
# numbers in an image: larger ones are no faster in a batch, and need more memory there
LARGEST = 8000


@dataclass(frozen=True)
class BatchTransform:
    """A composition's steps."""

    steps: tuple[Step, ...]

    def __call__(self, images: Batch) -> Batch:
        """Transform a batch, which may be changed."""
        draws = [step.draw for step in self.steps]
        drawn = zip(*[[draw() for draw in draws] for _ in range(len(images))], strict=True)
        for step, numbers in zip(self.steps, drawn, strict=True):
            images = step.apply(images, numbers)
        return images


def batch_transform(transform: Transform, values: Sequence[Any]) -> BatchTransform | None:
    """The same transform for batches; None if there is none, if it is not faster, or if it differs.

    Args:
        transform: The random part of a student's transform.
        values: What it is applied to: PIL images or tensors. It is compared on a few.
    """
    state = torch.get_rng_state()
    try:
        example = stacked(values[:1])
        made = _composed(transform, example) if math.prod(example.shape) <= LARGEST else None
        if made is None:
            return None
        few = values[:TRIED]
        torch.set_rng_state(state)
        wanted = [transform(copied(value)) for value in few]
        torch.set_rng_state(state)
        got = made(stacked(few))
        same = isinstance(got, Tensor) and all(map(torch.equal, got, wanted))
    except Exception:  # when it is applied to one image, it will say what is wrong
        return None
    finally:
        torch.set_rng_state(state)
    return made if same else None


def _composed(transform: Transform, example: Batch) -> BatchTransform | None:
    steps: list[Step] = []
    for part in parts_of(transform):
        step = step_for(part, example)
        if step is None:
            return None
        example = step.apply(example, [step.draw()])
        steps.append(step)
    return BatchTransform(tuple(steps))


def copied(value: Any) -> Any:
    """A copy of a tensor or PIL image, as a transform may change what it gets."""
    return value.clone() if isinstance(value, Tensor) else value.copy()


# --- images ----------------------------------------------------------------------------------------------


MOST_BYTES = 500_000_000  # of images that are kept half transformed
MOST_CHANGES = 40  # of a transform: after more, nothing is prepared once


class GradedImages(Dataset[tuple[Any, int]]):
    """Images under a student's transform, with what an ImageFolder has: `classes`, `targets`, `samples`.

    Args:
        images: uint8, (n, height, width) gray or (n, height, width, 3).
        labels: n class indices, or None for images whose labels must not be known here (all 0).
        classes: Class names.
        transform: From a PIL RGB image, as ImageFolder's loader gives it, to what the model is fed.
    """

    def __init__(
        self, images: Any, labels: Any | None, classes: tuple[str, ...], transform: Transform
    ) -> None:
        self._images = images
        self._transform = transform
        self.classes = list(classes)
        self.class_to_idx = {name: index for index, name in enumerate(classes)}
        self.targets = [0] * len(images) if labels is None else [int(label) for label in labels]
        self.samples = [(f"image{index}.png", label) for index, label in enumerate(self.targets)]
        self.imgs = self.samples
        self._changes = -1  # of the transform, since the first
        self._prepare()

    @property
    def transform(self) -> Transform:
        """The images' transform. It may be replaced, as with an ImageFolder."""
        return self._transform

    @transform.setter
    def transform(self, transform: Transform) -> None:
        self._transform = transform
        self._prepare()

    def extend(self, images: Any, labels: Any) -> None:
        """Add images, in the form that the constructor takes."""
        self._images = np.concatenate([self._images, images])
        added = [int(label) for label in labels]
        self.samples += [
            (f"image{len(self.targets) + index}.png", label) for index, label in enumerate(added)
        ]
        self.targets += added
        self._prepare()

    def pictures(self) -> "GradedImages":
        """The same images as an ImageFolder without a transform gives them: PIL, in RGB."""
        return GradedImages(self._images, self.targets, tuple(self.classes), _as_it_is)

    def _prepare(self) -> None:
        """Do what the transform always does, once."""
        self._parameters = parameters(self._transform)
        self._changes += 1
        self._kept: list[Any] | None = None
        self._each: Transform | None = self._transform
        self._batched: BatchTransform | None = None
        self._stack: Any = None  # what is kept as a batch, for `_batched`
        steps = divided(self._transform)
        if steps.once is None or not self.targets or self._changes > MOST_CHANGES:
            return
        first = steps.once(self._opened(0))
        size = len(self) * _size(first)
        if steps.each is not None and size > MOST_BYTES:
            return
        self._kept = [first, *(steps.once(self._opened(index)) for index in range(1, len(self)))]
        self._each = steps.each
        if steps.each is not None and 2 * size <= MOST_BYTES:
            self._batched = batch_transform(steps.each, self._kept)
            if self._batched is not None:
                self._stack = stacked(self._kept)

    def _notice_changes(self) -> None:
        """A student may change the transform between epochs."""
        if parameters(self._transform) != self._parameters:
            self._prepare()

    def __len__(self) -> int:
        return len(self.targets)

    @property
    def __getitems__(self) -> Callable[[Sequence[int]], list[tuple[Any, int]]]:
        """`items`, for PyTorch's own loaders and subsets of it; an ImageFolder has nothing like it.

        A student's data set around this one may forward attributes that it lacks, and a derived one may
        change the items. A loader must ask those for each item: otherwise their work would be bypassed.

        Raises:
            AttributeError: Something else asks for it.
        """
        asks = sys._getframe(1).f_globals.get("__name__", "")
        if type(self).__getitem__ is not GradedImages.__getitem__ or not asks.startswith("torch.utils.data."):
            raise AttributeError("__getitems__")
        return self.items

    def items(self, indices: Sequence[int]) -> list[tuple[Any, int]]:
        """The items of a batch, transformed at once if that gives the same."""
        self._notice_changes()
        if self._batched is None or not len(indices):
            return [self._item(index) for index in indices]
        chosen = [operator.index(index) for index in indices]
        values = self._batched(self._stack[chosen])
        return [(value, self.targets[index]) for value, index in zip(values, chosen, strict=True)]

    def __getitem__(self, index: int) -> tuple[Any, int]:
        self._notice_changes()
        return self._item(index)

    def _item(self, index: int) -> tuple[Any, int]:
        value = self._opened(index) if self._kept is None else self._kept[index]
        if self._each is not None:
            # the student's transform may change what it gets, so it gets a copy
            value = self._each(value if self._kept is None else copied(value))
        return value, self.targets[index]

    def _opened(self, index: int) -> Any:
        return picture_of(self._images[index])

    def batch(self, start: int, stop: int) -> Tensor:
        """The images start..stop, stacked: (stop - start, channels, height, width)."""
        return torch.stack([torch.as_tensor(value) for value, _ in self.items(list(range(start, stop)))])


def _as_it_is(image: Any) -> Any:
    return image


def _size(value: Any) -> int:
    """Bytes of a PIL image or a tensor."""
    if isinstance(value, Tensor):
        return value.numel() * value.element_size()
    width, height = value.size
    return int(width * height * len(value.getbands()))
