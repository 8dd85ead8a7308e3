"""Mixing of images: abstract base class, two implementations, and the rectangle as a value object."""

from __future__ import annotations

from abc import ABC, abstractmethod
from math import sqrt
from typing import final

import numpy as np
import torch
from torch import Tensor


class Rectangle:
    """An immutable rectangle of whole pixels inside an image. Use the static factory."""

    def __init__(self, top: int, left: int, bottom: int, right: int) -> None:
        self.__top, self.__left, self.__bottom, self.__right = top, left, bottom, right

    @staticmethod
    def around(center_y: int, center_x: int, share: float, height: int, width: int) -> Rectangle:
        """A rectangle of about `share` of the area, with its center there, clipped at the border."""
        side = sqrt(share)
        half_height, half_width = 0.5 * side * height, 0.5 * side * width
        return Rectangle(
            Rectangle.__clip(center_y - half_height, height),
            Rectangle.__clip(center_x - half_width, width),
            Rectangle.__clip(center_y + half_height, height),
            Rectangle.__clip(center_x + half_width, width),
        )

    @staticmethod
    def __clip(place: float, size: int) -> int:
        return min(max(round(place), 0), size)

    def getTop(self) -> int:
        return self.__top

    def getLeft(self) -> int:
        return self.__left

    def getBottom(self) -> int:
        return self.__bottom

    def getRight(self) -> int:
        return self.__right

    def getArea(self) -> int:
        return (self.__bottom - self.__top) * (self.__right - self.__left)


class MixedBatch:
    """What a mixer returns."""

    def __init__(self, images: Tensor, labelsA: Tensor, labelsB: Tensor, share: float) -> None:
        self.__images, self.__labelsA, self.__labelsB, self.__share = images, labelsA, labelsB, share

    def toTuple(self) -> tuple[Tensor, Tensor, Tensor, float]:
        return self.__images, self.__labelsA, self.__labelsB, self.__share


class AbstractMixer(ABC):
    """Template method: `mix` is the algorithm, `blend` the step that differs."""

    def __init__(self, alpha: float, generator: np.random.Generator) -> None:
        self._alpha = alpha
        self._generator = generator

    @final
    def mix(self, images: Tensor, labels: Tensor) -> MixedBatch:
        order = self.__shuffledOrder(labels.shape[0])
        share = self.__drawShare()
        mixed, share = self.blend(images, images[order.to(images.device)], share)
        return MixedBatch(mixed, labels, labels[order.to(labels.device)], share)

    @abstractmethod
    def blend(self, first: Tensor, second: Tensor, share: float) -> tuple[Tensor, float]:
        """(new images, the share of `first` as it really is); neither argument is changed."""

    def __drawShare(self) -> float:
        if self._alpha == 0:
            return 1.0
        return float(self._generator.beta(self._alpha, self._alpha))

    def __shuffledOrder(self, size: int) -> Tensor:
        """Collections.shuffle: from the end, swap with a place that is not behind."""
        order = list(range(size))
        for i in range(size - 1, 0, -1):
            j = int(self._generator.integers(0, i + 1))
            order[i], order[j] = order[j], order[i]
        return torch.tensor(order, dtype=torch.long)


class MixupMixer(AbstractMixer):
    def blend(self, first: Tensor, second: Tensor, share: float) -> tuple[Tensor, float]:
        return first.mul(share).add(second.mul(1.0 - share)), share


class CutmixMixer(AbstractMixer):
    def blend(self, first: Tensor, second: Tensor, share: float) -> tuple[Tensor, float]:
        height, width = first.shape[-2], first.shape[-1]
        rectangle = Rectangle.around(
            int(self._generator.integers(0, height)),
            int(self._generator.integers(0, width)),
            1.0 - share,
            height,
            width,
        )
        rows = slice(rectangle.getTop(), rectangle.getBottom())
        columns = slice(rectangle.getLeft(), rectangle.getRight())
        result = first.clone()
        result[:, :, rows, columns] = second[:, :, rows, columns]
        return result, 1.0 - rectangle.getArea() / (height * width)


class AlternatingMixer:
    """Composite: a fair coin of its own chooses one of two mixers for each batch."""

    def __init__(self, heads: AbstractMixer, tails: AbstractMixer, generator: np.random.Generator) -> None:
        self.__sides = (heads, tails)
        self.__generator = generator

    def __call__(self, images: Tensor, labels: Tensor) -> tuple[Tensor, Tensor, Tensor, float]:
        return self.__sides[int(self.__generator.integers(2))].mix(images, labels).toTuple()


class MixerFactory:
    """Only static methods; no instances."""

    @staticmethod
    def create(kind: str, alpha: float, generator: np.random.Generator) -> AbstractMixer:
        if kind == "mixup":
            return MixupMixer(alpha, generator)
        if kind == "cutmix":
            return CutmixMixer(alpha, generator)
        raise ValueError(f"unknown mixer: {kind}")
