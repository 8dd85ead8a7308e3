"""Encoder blocks whose parts are written inline: what their weights compute, part by part."""

from collections.abc import Callable, Mapping
from typing import Any

from grader.kit.transformers.layers import activations, two_layers
from grader.kit.transformers.projections import Projections, UnreadableWeights, readings

Tensor = Any
Part = Callable[[Tensor], Tensor]
MOST_STACKED = 3  # vectors in one tensor: gain and bias of a norm, or one for each block
USUAL = ("gelu", "gelu_tanh", "relu", "silu")


def without_biases(moved: Mapping[str, Tensor], initial: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Weights of which only the matrices are moved, and every vector needs no reading: gains 1, biases 0.

    Args:
        moved: Random values by name.
        initial: What the constructor set; a vector that is all ones is the gain of a normalization.
    """
    return {
        name: value * 0 + float(bool((initial[name] == 1).all())) if _is_vector(initial[name]) else value
        for name, value in moved.items()
    }


def _is_vector(initial: Tensor) -> bool:
    """Whether a weight is a vector, or a stack of a few vectors that all begin alike."""
    if initial.numel() <= max(initial.shape, default=1):  # less where it is empty
        return True
    constant = bool((initial == initial.flatten()[0]).all())
    return constant and (bool((initial == 1).all()) or min(initial.shape) <= MOST_STACKED)


def block_weights(
    one: Mapping[str, Tensor], two: Mapping[str, Tensor]
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """The weights of the first and of the second block of an encoder of depth two.

    Args:
        one: Weights of an encoder of depth one, for their names and shapes.
        two: Weights of an encoder of depth two; a tensor that grew along its first axis is stacked.
    """
    first = {name: value for name, value in two.items() if name in one}
    second = {name: value for name, value in two.items() if name not in one}
    for name, value in first.copy().items():
        if value.shape != one[name].shape and len(value) == 2 * len(one[name]):
            first[name], second[name] = value.chunk(2)
    return first, second


def inline_attentions(
    weights: Mapping[str, Tensor], *, dim: int, heads: int, dim_head: int, hidden: int
) -> list[Projections]:
    """Every reading of a block's matrices as an attention; none when they cannot be read so."""
    rest = {name: value for name, value in _matrices(weights).items() if hidden not in value.shape}
    try:
        found = list(readings(rest, dim=dim, heads=heads, dim_head=dim_head))
    except UnreadableWeights:
        return []
    return [parts for parts in found if parts.out is not None]


def inline_feed_forwards(weights: Mapping[str, Tensor], *, dim: int, hidden: int) -> list[Part]:
    """Every reading of a block's matrices as a feed-forward layer with one of the usual activations."""
    from torch.nn import functional as F

    layers = list(two_layers(_matrices(weights), dim, hidden))
    usual = [function for name, function in activations().items() if name in USUAL]
    return [
        lambda x, layer=layer, activation=activation: F.linear(  # type: ignore[misc]
            activation(F.linear(x, layer.first)), layer.second
        )
        for layer in layers
        for activation in usual
    ]


def _matrices(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The weights that are not vectors and no gains or biases, without axes of length one."""
    squeezed = {name: value.squeeze() for name, value in weights.items()}
    return {name: value for name, value in squeezed.items() if value.ndim > 1 and value.std() > 0}
