"""A student's transform: which parts are deterministic, and which are random.

It goes by the names of torchvision's classes; unknown ones count as random. For measuring, random parts are
removed or centered, if the shape stays the same. `grader.training` decides which measurement counts, the
plain or the augmented one: the better of the two.

Tests: tests/worker/test_transforms.py, tests/training/test_augmented_evaluation.py
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from PIL import Image
from torchvision import transforms

from grader.worker.student_faults import StudentFault, students_code

# Transforms that always do the same to the same image: their result is computed once and kept.
DETERMINISTIC = {
    "CenterCrop",
    "Compose",
    "ConvertImageDtype",
    "Grayscale",
    "Normalize",
    "PILToTensor",
    "Pad",
    "Resize",
    "ToDtype",
    "ToImage",
    "ToPILImage",
    "ToTensor",
}

# Those of them that treat every pixel alike: a flip may come before or after them.
POINTWISE = {"ConvertImageDtype", "Grayscale", "Normalize", "PILToTensor", "ToDtype", "ToImage", "ToTensor"}
FLIPS = {"RandomHorizontalFlip", "RandomVerticalFlip"}

CHANCE = {
    *("AugMix", "AutoAugment", "ColorJitter", "ElasticTransform", "GaussianBlur", "GaussianNoise"),
    *("RandAugment", "ScaleJitter", "TrivialAugmentWide"),
}

Transform = Callable[[Any], Any]


def handed_out_transform(image_size: int, channels: int) -> Transform:
    """The handout's transform: resize, gray for one channel, to a tensor, normalize to [-1, 1]."""
    made: Transform = transforms.Compose(
        [
            transforms.Resize((image_size, image_size)),
            *([transforms.Grayscale(1)] if channels == 1 else []),
            transforms.ToTensor(),
            transforms.Normalize((0.5,) * channels, (0.5,) * channels),
        ]
    )
    return made


def picture_of(image: Any) -> Image.Image:
    """An image, uint8 (height, width[, 3]), as ImageFolder opens one: in RGB, even if it is gray."""
    return Image.fromarray(image).convert("RGB")


def of_pictures(
    transform: Transform | Sequence[Transform], image: Any, channels: int | None = None
) -> Transform:
    """A transform in a form for PIL images in RGB, as a student's own data set may hand it something else.

    Args:
        transform: Of pictures, of uint8 (height, width[, 3]) arrays, or of float tensors; or its steps.
            Of gray ones, if only those give as many channels as the model takes.
        image: One of those that it is applied to, uint8 (height, width[, 3]).
        channels: How many the model takes; None if the source does not say it.
    """
    own_transform: Transform = transforms.Compose(transform) if isinstance(transform, Sequence) else transform
    picture = picture_of(image)
    firsts: list[list[Transform]] = [[], [np.array], [transforms.ToTensor()]]
    gray = transforms.Grayscale()
    usable: list[Transform] = []
    for first in (*firsts, *([gray, *first] for first in firsts)):
        tried = transforms.Compose([*first, own_transform]) if first else own_transform
        try:
            with students_code():
                made = tried(picture)
        except StudentFault:
            continue
        usable.append(tried)
        if channels is None or (isinstance(made, torch.Tensor) and made.ndim == 3 and len(made) == channels):
            return tried
    # its mistake will show when it is applied
    return usable[0] if usable else own_transform


def is_deterministic(transform: object) -> bool:
    """Whether a transform is known to always do the same (unknown ones are taken to be random)."""
    parts = getattr(transform, "transforms", ())
    return _is_one_of(transform, DETERMINISTIC) and all(map(is_deterministic, parts))


@dataclass(frozen=True)
class Divided:
    """A transform as two steps that together do what it does, with the same random numbers.

    Attributes:
        once: What always does the same to the same image; None if nothing does.
        each: What remains for each time; None if nothing does.
    """

    once: Transform | None
    each: Transform | None


def divided(transform: Transform) -> Divided:
    """Divide a transform. Work on single pixels after flips is moved before them, so it is done once."""
    once: list[Any] = []
    each_time: list[Any] = []
    for part in parts_of(transform):
        behind_flips = all(_is_one_of(other, FLIPS) for other in each_time) and _is_one_of(part, POINTWISE)
        (once if is_deterministic(part) and (not each_time or behind_flips) else each_time).append(part)
    return Divided(*(transforms.Compose(parts) if parts else None for parts in (once, each_time)))


def parts_of(transform: Any) -> Iterator[Any]:
    """The parts of a transform in order, even within nested compositions."""
    if _is_one_of(transform, {"Compose"}):
        for part in transform.transforms:
            yield from parts_of(part)
    else:
        yield transform


def parameters(transform: Transform) -> tuple[tuple[int, str], ...]:
    """The parts of a transform and their parameters: what differs once a student changes them.

    For other parts than torchvision's, only a replacement is noticed: they are applied in their current
    state.
    """
    return tuple(
        (id(part), repr([item for item in vars(part).items() if not item[0].startswith("_")]))
        if _is_one_of(part, {type(part).__name__})
        else (id(part), "")
        for part in parts_of(transform)
    )


def _is_one_of(transform: object, names: set[str]) -> bool:
    kind = type(transform)
    return kind.__module__.startswith("torchvision.transforms") and kind.__name__ in names


def without_chance(transform: Transform, image: Any) -> Transform:
    """A transform that always does the same, for images that are measured.

    A handout's single transform that gained augmentation would otherwise augment the evaluation too.

    Args:
        transform: The student's, for test images.
        image: One of them, uint8 (height, width[, 3]): what comes out must keep its shape.
    """
    if is_deterministic(transform) or not _is_one_of(transform, {"Compose"}):
        return transform
    parts = [certain for part in parts_of(transform) if (certain := _certain(part)) is not None]
    made: Transform = transforms.Compose(parts)
    picture = picture_of(image)
    try:
        same = torch.as_tensor(made(picture)).shape == torch.as_tensor(transform(picture)).shape
    except Exception:
        same = False
    return made if same else transform


def _certain(part: Any) -> Any | None:
    """What a part of a transform does on average; None if that is nothing."""
    name = type(part).__name__
    if not _is_one_of(part, {name}):
        return part
    if name == "RandomCrop":
        return transforms.CenterCrop(part.size)
    if name == "RandomResizedCrop":
        return transforms.Resize(part.size)
    return None if name.startswith("Random") or name in CHANCE else part
