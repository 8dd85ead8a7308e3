"""How far apart a layer's outputs lie in the image, and whether it treats all places alike."""

from collections.abc import Callable
from typing import Any

from grader.kit.closeness import same

Tensor = Any
Layer = Callable[[Tensor], Tensor]


def strides(layer: Layer, x: Tensor) -> tuple[float, ...]:
    """How many steps of the input one step of the output is, along each axis behind the channels.

    It is told from how much the output grows with the input, so that no padding disturbs it.

    Args:
        layer: (batch, channels, ...) -> (batch, other channels, ...), in evaluation mode.
        x: An input whose sides all strides divide.

    Returns:
        A number for each axis; infinite where the output does not grow, as behind a mean over all places.
    """
    import torch

    size = layer(x).shape
    found = []
    for axis in range(2, x.ndim):
        grown = layer(torch.cat([x, x], dim=axis)).shape
        more = grown[axis] - size[axis] if len(grown) > axis else 0
        found.append(x.shape[axis] / more if more > 0 else float("inf"))
    return tuple(found)


def moves_with_input(layer: Layer, x: Tensor, *, stride: int = 1, margin: int = 2) -> bool:
    """Whether the output moves by one place when the input moves by a stride: the same filter everywhere.

    Args:
        layer: (batch, channels, height, width) -> (batch, other channels, ...), in evaluation mode.
        x: An input; what it is moved by is taken from its other side.
        margin: Places at each edge of the output that are not compared, because padding and the moved edge
            reach them: 2 are enough for one convolution with a kernel of 3, and 1 more for each further one.
    """
    for axis in (2, 3):
        still, moved = layer(x), layer(x.roll(stride, dims=axis))
        inner = (..., slice(margin, -margin), slice(margin, -margin))
        if min(still.shape[2:]) <= 2 * margin:
            raise ValueError(
                f"An output of {tuple(still.shape[2:])} has nothing inside a margin of {margin}."
            )
        if not same(moved[inner], still.roll(1, dims=axis)[inner]):
            return False
    return True
