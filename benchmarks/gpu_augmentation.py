"""Images varied at random, a whole tensor of them at once, on the device where they are.

What torchvision does to one image at a time on a processor, done to thousands by the same kernels, so that a
GPU does not wait for images.
"""

import math

import torch
from torch import Tensor
from torch.nn import functional

PADDING = 4  # pixels by which a crop may lie beside its image
STRENGTH = 0.3  # of each operation's range, as in torchvision's RandAugment (9 of 30)
OPERATIONS = 2  # of RandAugment, for each image
SHEAR, TRANSLATION, DEGREES = 0.3 * STRENGTH, 150 / 331 * STRENGTH, 30 * STRENGTH
BRIGHTER, POSTERIZED_LEVELS, SOLARIZED_FROM = 0.9 * STRENGTH, 2**7 - 1, 1 - STRENGTH
# of coordinates from -1 to 1: two shears, two translations, a rotation
_SIZES = (SHEAR, SHEAR, 2 * TRANSLATION, 2 * TRANSLATION, math.radians(DEGREES))
# places in the list of operations
_GEOMETRIC, _COLORS = 6, 7  # identity, two shears, two translations, rotation; then those of colors


def cropped(images: Tensor) -> Tensor:
    """Each moved by up to `PADDING` pixels, with black beside it, and every other one mirrored.

    Args:
        images: (n, channels, side, side).
    """
    count, _, side, _ = images.shape
    device = images.device
    padded = functional.pad(images, (PADDING,) * 4)
    steps = torch.arange(side, device=device)
    offsets = torch.randint(2 * PADDING + 1, (2, count, 1), device=device)
    down, right = offsets + steps
    mirrored = torch.rand(count, 1, device=device) < 0.5
    right = torch.where(mirrored, right.flip(1), right)
    rows = torch.arange(count, device=device)[:, None, None]
    return padded.permute(0, 2, 3, 1)[rows, down[:, :, None], right[:, None, :]].permute(0, 3, 1, 2)


def rand_augmented(images: Tensor) -> Tensor:
    """RandAugment (Cubuk et al., 2020): two operations of thirteen for each image, of one strength.

    They are those of torchvision without equalization; what moves pixels comes before what changes colors.

    Args:
        images: Float (n, 3, side, side), 0 to 1.
    """
    count, device = len(images), images.device
    chosen = torch.randint(_GEOMETRIC + _COLORS, (OPERATIONS, count), device=device)
    signs = torch.randint(2, (OPERATIONS, count), device=device) * 2.0 - 1
    matrix = torch.eye(3, device=device).expand(count, 3, 3)
    for operation, sign in zip(chosen, signs, strict=True):
        matrix = matrix @ _moved(operation, sign)
    grid = functional.affine_grid(matrix[:, :2], list(images.shape), align_corners=False)
    images = functional.grid_sample(images, grid, mode="nearest", align_corners=False)
    for operation, sign in zip(chosen, signs, strict=True):
        images = _colored(images, operation, sign)
    return images


def _moved(operation: Tensor, sign: Tensor) -> Tensor:
    """Affine maps (n, 3, 3) of coordinates from -1 to 1: the identity where the operation is another."""
    shear_x, shear_y, move_x, move_y, turn = (
        (operation == place) * sign * size
        for place, size in enumerate(
            (SHEAR, SHEAR, 2 * TRANSLATION, 2 * TRANSLATION, math.radians(DEGREES)), 1
        )
    )
    one, zero = torch.ones_like(sign), torch.zeros_like(sign)
    cosine, sine = turn.cos(), turn.sin()
    rows = (cosine, shear_x - sine, move_x, shear_y + sine, cosine, move_y, zero, zero, one)
    return torch.stack(rows, 1).view(-1, 3, 3)


def _colored(images: Tensor, operation: Tensor, sign: Tensor) -> Tensor:
    """Images with their colors changed: as they were where the operation is another."""
    factor = (1 + sign * BRIGHTER)[:, None, None, None]
    gray = (images * images.new_tensor((0.299, 0.587, 0.114)).view(1, 3, 1, 1)).sum(1, keepdim=True)
    low, high = images.amin((2, 3), keepdim=True), images.amax((2, 3), keepdim=True)
    changed = (
        images * factor,
        torch.lerp(gray, images, factor),
        torch.lerp(gray.mean((2, 3), keepdim=True), images, factor),
        torch.lerp(_smoothed(images), images, factor),
        (images * POSTERIZED_LEVELS).floor() / POSTERIZED_LEVELS,
        torch.where(images >= SOLARIZED_FROM, 1 - images, images),
        torch.where(high > low, (images - low) / (high - low).clamp(min=1e-6), images),
    )
    assert len(changed) == _COLORS
    result = images
    for place, other in enumerate(changed, _GEOMETRIC):
        result = torch.where((operation == place)[:, None, None, None], other, result)
    return result.clamp(0, 1)


def _smoothed(images: Tensor) -> Tensor:
    kernel = images.new_tensor([[1, 1, 1], [1, 5, 1], [1, 1, 1]]) / 13
    padded = functional.pad(images, (1,) * 4, mode="replicate")
    return functional.conv2d(padded, kernel.expand(images.shape[1], 1, 3, 3), groups=images.shape[1])


def cut_mixed(images: Tensor, share: float) -> tuple[Tensor, Tensor]:
    """CutMix (Yun et al., 2019): a box of some images comes from their neighbor.

    Args:
        images: (n, channels, side, side). The neighbor of one is the one before it; of the first, the last.
        share: How many images are given one, 0 to 1.

    Returns:
        The images, and how much of each is its own, (n,), 0 to 1.
    """
    count, _, side, _ = images.shape
    device = images.device
    length = (side * torch.rand(count, device=device).sqrt()).round()  # a box's area is uniform
    length = torch.where(torch.rand(count, device=device) < share, length, 0)
    inside = torch.ones(count, 2, side, dtype=torch.bool, device=device)
    steps = torch.arange(side, device=device)
    for axis in range(2):
        start = (torch.rand(count, device=device) * side - length / 2).round()
        inside[:, axis] = (steps >= start[:, None]) & (steps < (start + length)[:, None])
    box = (inside[:, 0, :, None] & inside[:, 1, None, :])[:, None]
    return torch.where(box, images.roll(1, 0), images), 1 - box.float().mean((1, 2, 3))
