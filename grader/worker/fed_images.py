"""What a model is fed in training, beside the images that the grader's loader gives.

Code of the student's may change images between the loader and the model, as by normalizing each batch. The
model is measured on images under the transform that was found in the source, which lacks such a change. Then
the measured accuracy says little, and `grader.training` is told.

Tests: tests/worker/test_fed_images.py, tests/training/test_replay.py
"""

import contextlib
import math
from collections import deque
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

MOST_BATCHES = 16  # that are remembered: the last ones
MOST_SHIFT = 0.5  # of the mean, in standard deviations of the images as they are given
MOST_SPREAD = 1.8  # times more or less of the standard deviation: augmentation changes it far less


class FedImages:
    """The mean and the standard deviation of the pixels that a model is fed while it learns, at last."""

    def __init__(self, model: nn.Module) -> None:
        """Look at what a model is fed from now on."""
        # of each batch its shape, the mean of its pixels, and of their squares
        self._seen: deque[tuple[tuple[int, ...], float, float]] = deque(maxlen=MOST_BATCHES)
        model.register_forward_pre_hook(self)

    def __call__(self, model: nn.Module, given: tuple[Any, ...]) -> None:
        """The model is called: PyTorch's hook."""
        if not model.training or not given:
            return
        # a batch may be anything, and is no affair of ours
        with contextlib.suppress(Exception), torch.no_grad():
            batch = given[0].detach().float()
            mean, square = float(batch.mean()), float(batch.square().mean())
            if batch.ndim == 4 and math.isfinite(mean) and math.isfinite(square):
                self._seen.append((tuple(batch.shape[1:]), mean, square))

    def __deepcopy__(self, memo: dict[int, Any]) -> "FedImages":
        return self  # a copy of a model that learns is watched as well

    def __reduce__(self) -> tuple[Callable[[], Any], tuple[()]]:
        return _unwatched, ()  # a model that is saved as a whole

    def differ_from(self, images: Tensor) -> bool:
        """Whether the model was fed other images than these, not only augmented ones; False if unknown.

        Args:
            images: Some of those that it learns from, (n, channels, height, width).
        """
        if not self._seen:
            return False
        if not any(shape == tuple(images.shape[1:]) for shape, _, _ in self._seen):
            return True
        mean = sum(mean for _, mean, _ in self._seen) / len(self._seen)
        square = sum(square for _, _, square in self._seen) / len(self._seen)
        spread = math.sqrt(max(square - mean**2, 0.0))
        values = images.double()
        given_mean, given_spread = float(values.mean()), float(values.std())
        if not given_spread > 0:
            return False
        ratio = spread / given_spread
        is_shifted = abs(mean - given_mean) > MOST_SHIFT * given_spread
        return is_shifted or not 1 / MOST_SPREAD < ratio < MOST_SPREAD


def _ignored(model: nn.Module, given: tuple[Any, ...]) -> None:
    """A hook that does nothing."""


def _unwatched() -> Callable[[nn.Module, tuple[Any, ...]], None]:
    return _ignored
