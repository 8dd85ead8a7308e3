"""torchvision's random transforms in two steps: random draws per image, and the work per batch.

It computes the same pixels as torchvision, for the classes in its table with common settings. For anything
else there is no step (None). `graded_images` decides by comparison whether a composition is used for
batches.

Tests: tests/worker/test_batch_transforms.py
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor
from torchvision import transforms
from torchvision.transforms import functional

from grader.worker.transforms import Transform

# images, uint8, (n, height, width, bands), or after ToTensor a tensor, (n, channels, height, width)
Batch = Any
Pixels = NDArray[np.uint8]

ANGLES_BY_TRANSPOSING = {0.0, 90.0, 180.0, 270.0}  # by which Pillow rotates without an affine transform
FIXED = 1 << 16  # Pillow's affine transforms count in parts of a pixel
FARTHEST = 32768  # pixels that it can count so
STAYING = (1.0, 0.0, 0.0, 0.0, 1.0, 0.0)  # the matrix of an image that stays as it is


class Step(Protocol):
    """A transform in two parts: the random draws for one image, and the work for all of them."""

    def draw(self) -> Any:
        """Draw the random numbers for the next image."""

    def apply(self, images: Batch, drawn: Sequence[Any]) -> Batch:
        """Transform the images, which may be changed, with what was drawn for each."""


def stacked(values: Sequence[Any]) -> Batch:
    """PIL images or tensors as a batch.

    Raises:
        ValueError: They are of different sizes or kinds.
    """
    if isinstance(values[0], Tensor):
        return torch.stack(list(values))
    arrays = np.stack([np.asarray(value) for value in values])
    return arrays if arrays.ndim == 4 else arrays[..., None]


class Certain:
    """A step without randomness."""

    def __init__(self, work: Callable[[Batch], Batch]) -> None:
        """Do this work."""
        self._work = work

    def draw(self) -> None:
        """There is nothing to draw."""

    def apply(self, images: Batch, drawn: Sequence[None]) -> Batch:
        """Do the work."""
        return self._work(images)


class Uniform:
    """Random numbers from low to high, the same as `torch.empty(1).uniform_(low, high)` gives, but faster."""

    def __init__(self, low: float, high: float) -> None:
        self._low, self._high = float(low), float(high)
        self._place = torch.empty(1)

    def __call__(self) -> float:
        """The next number."""
        return self._place.uniform_(self._low, self._high).item()


class Flip:
    """RandomHorizontalFlip and RandomVerticalFlip."""

    def __init__(self, p: float, axis: int, tensor_axis: int) -> None:
        """Flip with probability p along one axis of a batch of images, or another of a tensor."""
        self._number = Uniform(0, 1)
        self._p = torch.tensor(p).item()  # as the random number that it is compared with is rounded
        self._axis, self._tensor_axis = axis, tensor_axis

    def draw(self) -> bool:
        """Whether to flip it."""
        return self._number() < self._p

    def apply(self, images: Batch, drawn: Sequence[bool]) -> Batch:
        """Flip the images that were drawn."""
        chosen = np.flatnonzero(drawn)
        if isinstance(images, Tensor):
            images[chosen] = images[chosen].flip(self._tensor_axis)
        else:
            images[chosen] = np.flip(images[chosen], self._axis)
        return images


@dataclass(frozen=True)
class Crop:
    """RandomCrop."""

    part: transforms.RandomCrop
    padding: tuple[int, int, int, int]  # left, top, right, bottom
    padded: Image.Image  # of the size of the padded images

    def draw(self) -> tuple[int, int]:
        """Its top and its left edge."""
        top, left, _, _ = self.part.get_params(self.padded, self.part.size)  # type: ignore[arg-type]
        return top, left

    def apply(self, images: Pixels, drawn: Sequence[tuple[int, int]]) -> Pixels:
        """Pad and crop."""
        left, top, right, bottom = self.padding
        mode = self.part.padding_mode
        filled = {"constant_values": int(self.part.fill)} if mode == "constant" else {}
        wide: Pixels = np.pad(images, ((0, 0), (top, bottom), (left, right), (0, 0)), mode, **filled)  # type: ignore[call-overload]
        corners = np.array(drawn)
        rows = corners[:, 0, None] + np.arange(self.part.size[0])
        columns = corners[:, 1, None] + np.arange(self.part.size[1])
        cropped: Pixels = wide[np.arange(len(wide))[:, None, None], rows[:, :, None], columns[:, None, :]]
        return cropped


@dataclass(frozen=True)
class Move:
    """Where the pixels of an image come from.

    Attributes:
        matrix: (a, b, c, d, e, f): the pixel at (x, y) from (ax + by + c, dx + ey + f).
        instead: What moves the image, where Pillow does not use the matrix as it does for others.
    """

    matrix: Sequence[float]
    instead: Transform | None = None


@dataclass(frozen=True)
class Moving:
    """RandomRotation and RandomAffine, to the nearest pixel, as Pillow's affine transform finds it.

    Attributes:
        width: Of the images.
        height: Of the images.
        fill: The value of pixels that come from nowhere.
    """

    width: int
    height: int
    fill: int

    def apply(self, images: Pixels, drawn: Sequence[Move]) -> Pixels:
        """Fetch each pixel."""
        count, height, width, bands = images.shape
        places = _sources(np.array([move.matrix for move in drawn]), height, width)
        pixels = np.empty((count, height * width + 1, bands), np.uint8)
        pixels[:, :-1] = images.reshape(count, height * width, bands)
        pixels[:, -1] = self.fill
        moved: Pixels = pixels[np.arange(count)[:, None], places].reshape(images.shape)
        for index, move in enumerate(drawn):
            if move.instead is not None:
                moved[index] = stacked([move.instead(_as_image(images[index]))])[0]
        return moved


@dataclass(frozen=True)
class Rotation(Moving):
    """RandomRotation."""

    angles: Uniform

    def draw(self) -> Move:
        """Draw an angle."""
        angle = self.angles()
        if angle % 360.0 in ANGLES_BY_TRANSPOSING:
            return Move(STAYING, partial(functional.rotate, angle=angle, fill=self.fill))
        turn = -math.radians(angle % 360.0)
        cos, sin = round(math.cos(turn), 15), round(math.sin(turn), 15)
        x, y = self.width / 2, self.height / 2
        return Move((cos, sin, cos * -x + sin * -y + x, -sin, cos, -sin * -x + cos * -y + y))


@dataclass(frozen=True)
class Affine(Moving):
    """RandomAffine."""

    part: transforms.RandomAffine

    def draw(self) -> Move:
        """Draw an angle, a shift, a scale and a shear."""
        part, (width, height) = self.part, (self.width, self.height)
        angle, shift, scale, shear = part.get_params(
            part.degrees, part.translate, part.scale, part.shear, [width, height]
        )
        numbers = {"angle": angle, "translate": list(shift), "scale": scale, "shear": list(shear)}
        center = [width * 0.5, height * 0.5]
        a, b, c, d, e, f = functional._get_inverse_affine_matrix(center, **numbers)
        reach = max(abs(a) * width + abs(b) * height + abs(c), abs(d) * width + abs(e) * height + abs(f))
        scaled = b == d == 0 and not a == e == 1
        if scaled or reach >= FARTHEST:  # which Pillow does differently
            return Move(STAYING, partial(functional.affine, **numbers, fill=self.fill))
        return Move((a, b, c, d, e, f))


def _sources(matrices: NDArray[np.float64], height: int, width: int) -> NDArray[np.int32]:
    """For each pixel the index of its source, (n, height * width); one past the last if it has none."""
    a, b, c, d, e, f = matrices.T
    c, f = c + a * 0.5 + b * 0.5, f + d * 0.5 + e * 0.5  # for the centers of pixels, not their corners
    a, b, c, d, e, f = (
        np.floor(coefficient * FIXED + 0.5).astype(np.int32)[:, None, None]
        for coefficient in (a, b, c, d, e, f)
    )
    x, y = np.arange(width, dtype=np.int32), np.arange(height, dtype=np.int32)[:, None]
    columns, rows = (c + b * y + a * x) >> 16, (f + e * y + d * x) >> 16
    places = rows * np.int32(width) + columns
    # without its sign, a negative number is a large one
    outside = (columns.view(np.uint32) >= width) | (rows.view(np.uint32) >= height)
    places[outside] = height * width
    sources: NDArray[np.int32] = places.reshape(len(places), -1)
    return sources


def _as_image(pixels: Pixels) -> Image.Image:
    return Image.fromarray(pixels[..., 0] if pixels.shape[-1] == 1 else pixels)


BRIGHTNESS, CONTRAST, SATURATION = range(3)  # as torchvision numbers what it does in random order


class Jitter:
    """ColorJitter, without a hue."""

    def __init__(self, part: transforms.ColorJitter) -> None:
        """Draw factors from its ranges."""
        ranges = (part.brightness, part.contrast, part.saturation)
        self._factors = [
            (kind, Uniform(*interval)) for kind, interval in enumerate(ranges) if interval is not None
        ]

    def draw(self) -> list[tuple[int, float]]:
        """What to do in which order, and how much of it."""
        order = torch.randperm(4).tolist()
        factors = {kind: factor() for kind, factor in self._factors}
        return [(kind, factors[kind]) for kind in order if kind in factors]

    def apply(self, images: Pixels, drawn: Sequence[list[tuple[int, float]]]) -> Pixels:
        """Blend each image with a black one, its mean, or its gray version."""
        for now in range(len(drawn[0])):
            for kind in (BRIGHTNESS, CONTRAST, SATURATION):
                chosen = [index for index, steps in enumerate(drawn) if steps[now][0] == kind]
                if chosen:
                    factors = np.array([drawn[index][now][1] for index in chosen], np.float32)
                    images[chosen] = _blended(images[chosen], kind, factors)
        return images


def _blended(images: Pixels, kind: int, factors: NDArray[np.float32]) -> Pixels:
    if kind == BRIGHTNESS:
        other: Any = np.zeros(1, np.uint8)
    elif kind == CONTRAST:
        other = np.floor(_gray(images).mean((1, 2, 3), dtype=np.float64, keepdims=True) + 0.5)
    else:
        other = _gray(images)
    start = other.astype(np.float32)
    mixed = start + factors[:, None, None, None] * (images.astype(np.float32) - start)
    made: Pixels = mixed.clip(0, 255).astype(np.uint8)
    return made


def _gray(images: Pixels) -> Pixels:
    """Luma (ITU-R 601-2) as Pillow rounds it, (n, height, width, 1)."""
    if images.shape[-1] == 1:
        return images
    weighted = images.astype(np.int64) @ np.array([19595, 38470, 7471])
    luma: Pixels = ((weighted + 0x8000) >> 16).astype(np.uint8)
    return luma[..., None]


def _repeated_gray(images: Pixels, bands: int) -> Pixels:
    return np.repeat(_gray(images), bands, axis=-1)


def _tensors(images: Pixels) -> Tensor:
    tensor = torch.from_numpy(np.ascontiguousarray(images.transpose(0, 3, 1, 2)))
    return tensor.to(torch.get_default_dtype()).div(255)


def _crop(part: transforms.RandomCrop, example: Batch) -> Step | None:
    if isinstance(example, Tensor) or part.pad_if_needed or not _is_plain(part.fill):
        return None
    padding = 0 if part.padding is None else part.padding
    sides = [padding] if isinstance(padding, int) else list(padding)
    left, top, right, bottom = sides * (4 // len(sides))
    if min(left, top, right, bottom) < 0:
        return None
    _, height, width, _ = example.shape
    return Crop(
        part, (left, top, right, bottom), Image.new("L", (width + left + right, height + top + bottom))
    )


def _is_plain(fill: Any) -> bool:
    return isinstance(fill, int | float) and 0 <= fill <= 255


def _rotation(part: transforms.RandomRotation, example: Batch) -> Step | None:
    if part.expand or not _is_simple(part, example):
        return None
    _, height, width, _ = example.shape
    return Rotation(width, height, int(part.fill), Uniform(*part.degrees))


def _affine(part: transforms.RandomAffine, example: Batch) -> Step | None:
    if not _is_simple(part, example):
        return None
    _, height, width, _ = example.shape
    return Affine(width, height, int(part.fill), part)


def _is_simple(part: Any, example: Batch) -> bool:
    nearest = part.interpolation == transforms.InterpolationMode.NEAREST
    return not isinstance(example, Tensor) and nearest and part.center is None and _is_plain(part.fill)


def _jitter(part: transforms.ColorJitter, example: Batch) -> Step | None:
    return None if isinstance(example, Tensor) or part.hue is not None else Jitter(part)


def _grayscale(part: transforms.Grayscale, example: Batch) -> Step | None:
    if isinstance(example, Tensor):
        return None
    return Certain(partial(_repeated_gray, bands=part.num_output_channels))


# name in torchvision -> a step for it on batches like an example; None if there is none
_STEPS: dict[str, Callable[[Any, Batch], Step | None]] = {
    "ColorJitter": _jitter,
    "Grayscale": _grayscale,
    "Normalize": lambda part, example: Certain(part) if isinstance(example, Tensor) else None,
    "RandomAffine": _affine,
    "RandomCrop": _crop,
    "RandomHorizontalFlip": lambda part, example: Flip(part.p, 2, -1),
    "RandomRotation": _rotation,
    "RandomVerticalFlip": lambda part, example: Flip(part.p, 1, -2),
    "ToTensor": lambda part, example: None if isinstance(example, Tensor) else Certain(_tensors),
}


def step_for(part: Any, example: Batch) -> Step | None:
    """A transform's step for batches like an example; None if there is none.

    Args:
        part: Of torchvision.transforms; a step does what that class does, not what a derived class would.
    """
    name = type(part).__name__
    if name not in _STEPS or type(part) is not getattr(transforms, name, None):
        return None
    return _STEPS[name](part, example)
