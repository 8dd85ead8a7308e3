"""The grader's images as the student's own pipeline would deliver them."""

from collections.abc import Callable
from typing import Any

import torch
from PIL import Image
from torch import Tensor
from torch.utils.data import Dataset
from torchvision import transforms

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

CHANCE = {"ColorJitter", "AutoAugment", "RandAugment", "TrivialAugmentWide", "AugMix", "GaussianBlur"}

Transform = Callable[[Any], Any]


def handed_out_transform(image_size: int, channels: int) -> Transform:
    """The handout's transform: resize, gray channel(s), to a tensor, normalize to [-1, 1]."""
    made: Transform = transforms.Compose(
        [
            transforms.Resize((image_size, image_size)),
            transforms.Grayscale(channels),
            transforms.ToTensor(),
            transforms.Normalize((0.5,) * channels, (0.5,) * channels),
        ]
    )
    return made


def is_deterministic(transform: object) -> bool:
    """Whether a transform is known to always do the same (unknown ones are taken to be random)."""
    kind = type(transform)
    if not kind.__module__.startswith("torchvision.transforms") or kind.__name__ not in DETERMINISTIC:
        return False
    return all(is_deterministic(part) for part in getattr(transform, "transforms", ()))


def without_chance(transform: Transform, image: Any) -> Transform:
    """A transform that always does the same, for images that are measured.

    A handout's single transform that gained augmentation would otherwise augment the evaluation too.

    Args:
        transform: The student's, for test images.
        image: One of them, uint8 (height, width[, 3]): what comes out must keep its shape.
    """
    given: Any = transform
    if is_deterministic(transform) or type(given) is not transforms.Compose:
        return transform
    parts = [certain for part in given.transforms if (certain := _certain(part)) is not None]
    made: Transform = transforms.Compose(parts)
    seen = Image.fromarray(image).convert("RGB")
    try:
        same = torch.as_tensor(made(seen)).shape == torch.as_tensor(transform(seen)).shape
    except Exception:
        same = False
    return made if same else transform


def _certain(part: Any) -> Any | None:
    """What a part of a transform does on average; None where that is nothing."""
    name = type(part).__name__
    if not type(part).__module__.startswith("torchvision.transforms"):
        return part
    if name == "RandomCrop":
        return transforms.CenterCrop(part.size)
    if name == "RandomResizedCrop":
        return transforms.Resize(part.size)
    return None if name.startswith("Random") or name in CHANCE else part


class GradedImages(Dataset[tuple[Any, int]]):
    """Images under a student's transform, with what an ImageFolder has: `classes`, `targets`, `samples`.

    Args:
        images: uint8, (n, height, width) gray or (n, height, width, 3).
        labels: n class indices, or None for images whose labels are nobody's business here (all 0).
        classes: Class names.
        transform: From a PIL RGB image, as ImageFolder's loader gives it, to what the model is fed.
    """

    def __init__(
        self, images: Any, labels: Any | None, classes: tuple[str, ...], transform: Transform
    ) -> None:
        self._images = images
        self.transform = transform
        self.classes = list(classes)
        self.class_to_idx = {name: index for index, name in enumerate(classes)}
        self.targets = [0] * len(images) if labels is None else [int(label) for label in labels]
        self.samples = [(f"image{index}.png", label) for index, label in enumerate(self.targets)]
        self.imgs = self.samples
        self._kept: list[Any] | None = None
        if is_deterministic(transform):
            self._kept = [self._transformed(index) for index in range(len(images))]

    def __len__(self) -> int:
        return len(self.targets)

    def __getitem__(self, index: int) -> tuple[Any, int]:
        kept = self._kept
        value = self._transformed(index) if kept is None else kept[index]
        return value, self.targets[index]

    def _transformed(self, index: int) -> Any:
        # ImageFolder opens every image as RGB, so a student's transform expects three channels
        return self.transform(Image.fromarray(self._images[index]).convert("RGB"))

    def batch(self, start: int, stop: int) -> Tensor:
        """The images start..stop, stacked: (stop - start, channels, height, width)."""
        return torch.stack([torch.as_tensor(self[index][0]) for index in range(start, stop)])
