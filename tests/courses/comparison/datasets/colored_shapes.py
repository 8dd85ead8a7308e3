"""Four shapes of any color on a ground of any color: small colored images that are made."""

from pathlib import Path

import numpy as np

from grader.kit.image_folders import folder_images
from grader.kit.splits import LabeledImages, Splits, split_images

NAME = "colored_shapes"
TITLE = "Colored shapes"
CLASSES = ("bars", "cross", "disk", "frame")
SIDE = 16  # pixels
PER_CLASS = 100


def load(source: Path | None, *, seed: int, train_share: float = 0.7, cache: Path | None = None) -> Splits:
    """The images, uint8 (n, 16, 16, 3), 100 of each class, made or read, and split per class."""
    data = made_images(seed) if source is None else folder_images(source, NAME, CLASSES, cache=cache)
    return split_images(NAME, CLASSES, data, seed=seed, train_share=train_share)


def made_images(seed: int) -> LabeledImages:
    """The images of a seed."""
    rng = np.random.default_rng(seed)
    images = np.stack([_image(label, rng) for label in range(len(CLASSES)) for _ in range(PER_CLASS)])
    labels = np.repeat(np.arange(len(CLASSES)), PER_CLASS)
    names = tuple(f"{CLASSES[label]}/{number:03}.png" for number, label in enumerate(labels))
    return LabeledImages(names, labels.astype(np.int64), images)


def _image(label: int, rng: np.random.Generator) -> np.ndarray:
    down, across = np.mgrid[:SIDE, :SIDE] - (SIDE - 1) / 2 - rng.uniform(-1, 1, (2, 1, 1))
    size = rng.uniform(4, 6)
    inside = (
        np.abs(down % 4 - 2) < 1,
        (np.abs(down) < 1.5) | (np.abs(across) < 1.5),
        np.hypot(down, across) < size,
        np.abs(np.maximum(np.abs(down), np.abs(across)) - size) < 1.2,
    )[label]
    colors = rng.uniform(0, 110, (2, 3))
    colors[0] += 110
    image = np.where(inside[..., None], colors[0], colors[1]) + rng.normal(0, 12, (SIDE, SIDE, 3))
    return np.clip(image, 0, 255).astype(np.uint8)
