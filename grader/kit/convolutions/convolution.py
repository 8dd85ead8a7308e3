"""Convolutions among a student's weights, and how a layer treats places of an image.

It finds the convolutions of a component by the shapes of their weights. It measures how far apart a layer's
outputs lie in the image, and whether it treats all places alike. It never says what an assignment asks for.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from grader.kit.compared_results import same

Tensor = Any


@dataclass(frozen=True)
class Convolution:
    """One convolution's weights, which do not show its stride, padding and dilation.

    Attributes:
        name: Of the kernel.
        weight: (out channels, in channels / groups, ...), with one to three axes for the kernel's sides.
        bias: (out channels,), or None.
    """

    name: str
    weight: Tensor
    bias: Tensor | None

    @property
    def kernel(self) -> tuple[int, ...]:
        """The sides of the kernel."""
        return tuple(self.weight.shape[2:])

    def __call__(
        self, x: Tensor, *, stride: int = 1, padding: int | None = None, dilation: int = 1, groups: int = 1
    ) -> Tensor:
        """The output of PyTorch's own convolution for x with these weights.

        Args:
            x: (batch, in channels, ...).
            padding: Zeros on each side; None: half the kernel, which keeps the size at a stride of 1.
        """
        from torch.nn import functional as F

        function = (F.conv1d, F.conv2d, F.conv3d)[len(self.kernel) - 1]
        half = tuple(dilation * (side - 1) // 2 for side in self.kernel)
        pads = half if padding is None else padding
        return function(x, self.weight, self.bias, stride, pads, dilation, groups)


def convolutions(weights: Mapping[str, Tensor]) -> list[Convolution]:
    """The convolutions that a component has, in order of registration.

    A convolution's weight has three to five axes. Its bias is the vector with a matching name (`conv.weight`,
    `conv.bias`), else the only vector of its length in the same module before the next convolution's weight.

    Args:
        weights: Parameters and buffers by name, as `component.weights()` gives them.
    """
    kernels = [name for name, value in weights.items() if _is_kernel(name, weights)]
    names = list(weights)
    ends = [*map(names.index, kernels[1:]), len(names)]
    return [
        Convolution(name, weights[name], _bias(name, names[names.index(name) + 1 : end], weights))
        for name, end in zip(kernels, ends, strict=True)
    ]


def module_of(name: str) -> str:
    """The path of the module that a weight belongs to."""
    return name.rpartition(".")[0]


def is_vector(value: Tensor) -> bool:
    """Whether a weight has one number per channel: (channels,), or (1, channels, 1, ...) for broadcasting."""
    shape = tuple(value.shape)
    return len(shape) == 1 or (len(shape) > 2 and shape[0] == 1 and max(shape[2:]) == 1)


def _is_kernel(name: str, weights: Mapping[str, Tensor]) -> bool:
    """Whether a weight is a convolution's: not one of the two or more vectors of a normalization."""
    value = weights[name]
    if not 3 <= value.ndim <= 5 or not value.is_floating_point():
        return False
    siblings = [other for other in weights if module_of(other) == module_of(name)]
    return not is_vector(value) or sum(weights[other].shape == value.shape for other in siblings) < 2


def _bias(name: str, between: list[str], weights: Mapping[str, Tensor]) -> Tensor | None:
    """The bias of a kernel.

    Args:
        between: What is registered after it, up to the next kernel.
    """
    shape = (len(weights[name]),)
    bias_name = name.removesuffix("weight") + "bias"
    if name.endswith("weight") and bias_name in weights and tuple(weights[bias_name].shape) == shape:
        return weights[bias_name]
    candidates = [
        weights[other]
        for other in between
        if module_of(other) == module_of(name) and tuple(weights[other].shape) == shape
    ]
    return candidates[0] if len(candidates) == 1 else None


# --- strides ---------------------------------------------------------------------------------------------


Layer = Callable[[Tensor], Tensor]


def strides(layer: Layer, x: Tensor) -> tuple[float, ...]:
    """The stride of a layer along each axis after the channels: input places per output place.

    It is computed from how much the output grows with the input, so that padding does not matter.

    Args:
        layer: (batch, channels, ...) -> (batch, other channels, ...), in evaluation mode.
        x: An input whose sides all strides divide.

    Returns:
        A number for each axis; infinite if the output does not grow, as after a mean over all places.
    """
    import torch

    size = layer(x).shape
    ratios = []
    for axis in range(2, x.ndim):
        grown = layer(torch.cat([x, x], dim=axis)).shape
        added = grown[axis] - size[axis] if len(grown) > axis else 0
        ratios.append(x.shape[axis] / added if added > 0 else float("inf"))
    return tuple(ratios)


def moves_with_input(layer: Layer, x: Tensor, *, stride: int = 1, margin: int = 2) -> bool:
    """Whether the output moves by one place when the input moves by a stride: translation equivariance.

    Args:
        layer: (batch, channels, height, width) -> (batch, other channels, ...), in evaluation mode.
        x: An input; it is moved cyclically.
        margin: Places at each edge of the output that are not compared, because padding and the moved edge
            reach them: 2 are enough for one convolution with a kernel of 3, and 1 more for each that follows.
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
