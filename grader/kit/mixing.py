"""How mixed images were mixed, solved from the images alone: mixup's shares and partners, cutmix's box.

Sources: Zhang et al. (2018), section 2; Yun et al. (2019), section 3.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from grader.kit.compared_results import Mismatch

TOLERANCE = 1e-3  # of the images' largest number: a mixed image that differs more from every mix is not a mix
SMALLEST_SHARE = 1e-4  # a smaller share of another image cannot be distinguished from rounding

Array = Any


@dataclass(frozen=True)
class Mixup:
    """Which images mixed images consist of: `shares[i] * images[i] + (1 - shares[i]) * images[partners[i]]`.

    Attributes:
        shares: float64 (n,), each image's own; 1 if it contains nothing of another image.
        partners: int64 (n,), the indices of the others; an image's own index if there is none.
    """

    shares: Array
    partners: Array

    @property
    def share(self) -> float:
        """The share of all images.

        Raises:
            Mismatch: The images have different shares.
        """
        mixed = self.shares[self.partners != np.arange(len(self.partners))]
        if not len(mixed):
            return 1.0
        if np.ptp(mixed) > TOLERANCE:
            raise Mismatch(
                f"The images are not all mixed by the same share: it is {mixed.min():.3f} for one and "
                f"{mixed.max():.3f} for another."
            )
        return float(np.median(mixed))


def mixup_of(mixed: Array, images: Array) -> Mixup:
    """How each mixed image is made from the image at its own place and one other, by least squares.

    Args:
        mixed: What mixup made, (n, ...), a tensor or an array.
        images: What it was given, of the same shape, all different.

    Raises:
        Mismatch: One of the mixed images is not a mix of the image at its place and another one.
    """
    originals, mixtures, scale = _flat(mixed, images)
    shares, partners = np.ones(len(originals)), np.arange(len(originals))
    for number, image in enumerate(mixtures):
        share, partner, residual = _solved(image, originals, number)
        change = float(np.abs(image - originals[number]).max(initial=0.0))
        # so little of another image cannot be distinguished from rounding
        if change <= TOLERANCE * scale and (change <= residual or abs(share - 1) <= SMALLEST_SHARE):
            continue
        if residual > TOLERANCE * scale:
            raise Mismatch(
                f"Image {number} of those that were mixed is not share * images[{number}] + (1 - share) * "
                "another image, whatever the share and the other image."
            )
        shares[number], partners[number] = share, partner
    return Mixup(shares, partners)


def _solved(image: Array, originals: Array, index: int) -> tuple[float, int, float]:
    """The share and the partner that explain a mixed image best, and how far it is from that mix.

    For partner j, image = originals_j + share * (originals_index - originals_j), by least squares over all
    pixels.
    """
    differences, targets = originals[index] - originals, image - originals
    lengths = (differences**2).sum(axis=1)
    lengths[index] = 1.0
    shares = (differences * targets).sum(axis=1) / lengths
    residuals = np.abs(targets - shares[:, None] * differences).max(axis=1, initial=0.0)
    residuals[index] = np.inf
    partner = int(residuals.argmin())
    return float(shares[partner]), partner, float(residuals[partner])


@dataclass(frozen=True)
class Cutmix:
    """Which box of the images comes from others.

    Attributes:
        box: (top, bottom, left, right) in pixels, of which bottom and right are the first row and column
            outside; None if nothing was changed.
        share: The share of an image's area that is still its own.
        partners: int64 (n,), the indices of the images that the boxes come from; an image's own index if the
            box cannot be distinguished from the image itself.
    """

    box: tuple[int, int, int, int] | None
    share: float
    partners: Array


def cutmix_of(mixed: Array, images: Array) -> Cutmix:
    """The box that was cut out of other images, the same for all, and which images these are.

    Args:
        mixed: What cutmix made, (n, channels, height, width), a tensor or an array.
        images: What it was given, of the same shape. At every pixel, any two images must differ in some
            channel.

    Raises:
        Mismatch: What was changed is not one box, or not filled from one other image at the same place.
    """
    _, _, scale = _flat(mixed, images)
    originals, mixtures = _numbers(images), _numbers(mixed)
    changed = np.abs(mixtures - originals).max(axis=1) > TOLERANCE * scale  # (n, height, width)
    indices = np.arange(len(originals))
    touched = np.flatnonzero(changed.any(axis=(1, 2)))
    if not len(touched):
        return Cutmix(None, 1.0, indices)
    boxes = [_box(changed[number]) for number in touched]
    top, bottom, left, right = boxes[0]
    for number, box in zip(touched, boxes, strict=True):
        if not changed[number, box[0] : box[1], box[2] : box[3]].all():
            raise Mismatch(f"What is changed in image {number} is not a box of pixels.")
        if box != boxes[0]:
            raise Mismatch(
                f"The box is not the same for all images: rows {top} to {bottom - 1}, columns {left} to "
                f"{right - 1} of image {touched[0]}, rows {box[0]} to {box[1] - 1}, columns {box[2]} to "
                f"{box[3] - 1} of image {number}."
            )
    inside = (slice(None), slice(None), slice(top, bottom), slice(left, right))
    original_boxes = originals[inside].reshape(len(indices), -1)
    mixed_boxes = mixtures[inside].reshape(len(indices), -1)
    partners = indices.copy()
    for number in touched:
        differences = np.abs(original_boxes - mixed_boxes[number]).max(axis=1)
        partners[number] = int(differences.argmin())
        if differences.min() > TOLERANCE * scale:
            raise Mismatch(
                f"The box in image {number} does not match that of any single image at the same place."
            )
    height, width = originals.shape[2:]
    return Cutmix(
        (top, bottom, left, right), 1 - (bottom - top) * (right - left) / (height * width), partners
    )


def _flat(mixed: Array, images: Array) -> tuple[Array, Array, float]:
    """The images and the mixed ones, float64 (n, values), and the largest absolute value of the images."""
    originals, mixtures = _numbers(images), _numbers(mixed)
    if originals.shape != mixtures.shape:
        raise Mismatch(f"Images of shape {originals.shape} became mixed images of shape {mixtures.shape}.")
    return (
        originals.reshape(len(originals), -1),
        mixtures.reshape(len(mixtures), -1),
        float(np.abs(originals).max(initial=0.0)),
    )


def _numbers(images: Array) -> Array:
    detached = images.detach() if hasattr(images, "detach") else images
    return np.asarray(detached, dtype=np.float64)


def _box(changed: Array) -> tuple[int, int, int, int]:
    """The bounding rectangle of the changed pixels."""
    rows, columns = np.flatnonzero(changed.any(axis=1)), np.flatnonzero(changed.any(axis=0))
    return int(rows[0]), int(rows[-1]) + 1, int(columns[0]), int(columns[-1]) + 1
