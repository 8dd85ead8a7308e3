"""Random transforms of a whole batch at once, with the random numbers and pixels of torchvision.

Random numbers are drawn image by image, in torchvision's order; the work is done for all images together,
which is faster for small ones. It decides whether a batch may be used: on a few images both ways must give
equal tensors, else each image goes through the student's transform. `recipe` decides what that transform is.

Tests: tests/worker/test_batch_transforms.py
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from grader.worker.batch_steps import Batch, Step, stacked, step_for
from grader.worker.transforms import Transform, parts_of

TRIED = 8  # images that a batch is compared on
# numbers in an image: larger ones take no less time in a batch, and need more memory there
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
    """The same for batches; None where there is no such, or it is no faster, or does not do the same.

    Args:
        transform: What is left to chance of a student's transform.
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
    except Exception:  # it says what is wrong when it is applied to one image
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
    """A tensor or a PIL image of its own, as a transform may change what it gets."""
    return value.clone() if isinstance(value, Tensor) else value.copy()
