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
