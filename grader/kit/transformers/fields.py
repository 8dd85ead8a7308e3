"""Which pixels of an image each token sees."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Tensor = Any
STEPS = (1.5, -1.5, 30.0, -30.0)  # by which a pixel is changed


@dataclass(frozen=True)
class Fields:
    """What every token of a model sees of the image.

    Attributes:
        seen: bool (tokens, channels, height, width): whether the token changes with the pixel.
        images_apart: No token changes with another image of the batch.
    """

    seen: Tensor
    images_apart: bool

    @property
    def pixels(self) -> Tensor:
        """bool (tokens, height, width): seen in any channel."""
        return self.seen.any(dim=1)

    def are_patches(self, side: int) -> bool:
        """Whether the tokens that see anything see one square of a regular grid each, all different."""
        squares = {_box(field) for field in self.pixels if field.any()}
        rows, columns = self.pixels.shape[1:]
        grid = {
            (top, top + side, left, left + side)
            for top in range(0, rows, side)
            for left in range(0, columns, side)
        }
        return squares == grid and int(self.pixels.any(dim=(1, 2)).sum()) == len(grid)

    def are_windows(self) -> bool:
        """Whether every token that sees anything sees one filled rectangle, all of them different."""
        boxes = [_box(field) for field in self.pixels if field.any()]
        return None not in boxes and len(set(boxes)) == len(boxes)

    def overlap(self) -> bool:
        """Whether some pixel is seen by several tokens."""
        return bool((self.pixels.sum(dim=0) > 1).any())


def fields(tokens: Callable[[Tensor], Tensor], image: Tensor) -> Fields:
    """The fields of the tokens that a model makes of an image.

    Every number of the image is changed, one at a time, in one batch: up and down, a little and a lot. A
    convolution with ReLU may answer to one of these alone.

    Args:
        tokens: Images (batch, channels, height, width) -> (batch, tokens, dim), in evaluation mode.
        image: (channels, height, width).
    """
    import torch

    count = image.numel()
    places = torch.arange(count)
    alone = tokens(image[None])[0]
    scale = float(alone.abs().max()) + 1e-6
    moved, apart = torch.zeros(count, len(alone), dtype=torch.bool), True
    for step in STEPS:
        changed = image.repeat(count + 1, 1, 1, 1).flatten(1)
        changed[places, places] += step
        found = tokens(changed.view(count + 1, *image.shape))
        moved |= (found[:-1] - found[-1:]).abs().amax(dim=-1) > 1e-5 * scale
        apart &= bool((found[-1] - alone).abs().max() < 1e-4 * scale)
    return Fields(moved.T.reshape(-1, *image.shape), apart)


def _box(field: Tensor) -> tuple[int, int, int, int] | None:
    """The rectangle (top, bottom, left, right) that is exactly what the token sees; None: no rectangle."""
    rows, columns = field.any(dim=1).nonzero().flatten(), field.any(dim=0).nonzero().flatten()
    top, bottom = int(rows[0]), int(rows[-1]) + 1
    left, right = int(columns[0]), int(columns[-1]) + 1
    return (top, bottom, left, right) if bool(field[top:bottom, left:right].all()) else None
