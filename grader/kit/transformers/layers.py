"""Layers of an encoder on a student's own weights: normalization, feed-forward, and whole blocks.

Every legitimate reading of the weights is computed, with PyTorch's own functions. A block whose parts are
written inline is read part by part. `grader.kit.transformers.projections` finds projections; a check decides
which reading is right.
"""

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from grader.kit.transformers.projections import Projections, UnreadableWeights, readings, squeezed

Tensor = Any
MAX_VECTORS = 6  # gains and biases that are tried: with spare ones the search would take forever


def layer_norms(x: Tensor, weights: Mapping[str, Tensor]) -> Iterator[Tensor]:
    """Layer normalization of x, (..., dim), over its last axis, under every reading of the weights.

    Gain and bias may have any names, come in either order, or be missing; a gain may be stored minus 1. The
    deviation may be computed with dim - 1 instead of dim, a constant factor that the gain absorbs. Source: Ba
    et al. (2016), equation 4.
    """
    from torch.nn import functional as F

    dim = x.shape[-1]
    vectors = [value.reshape(-1) for value in weights.values() if value.numel() == dim][:MAX_VECTORS]
    for eps in (1e-5, 1e-6, 1e-12, 1e-3):
        plain = F.layer_norm(x, (dim,), eps=eps)
        for normed in (plain, plain * ((dim - 1) / dim) ** 0.5):
            for gain, bias in itertools.permutations([*vectors, None, None], 2):
                for scaled in (normed,) if gain is None else (normed * gain, normed * (1 + gain)):
                    yield scaled if bias is None else scaled + bias


def activations() -> dict[str, Callable[[Tensor], Tensor]]:
    """Activations that a feed-forward layer may use when the assignment names none."""
    from torch.nn import functional as F

    return {
        "gelu": F.gelu,
        "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
        "relu": F.relu,
        "gelu_sigmoid": lambda x: x * (1.702 * x).sigmoid(),
        "silu": F.silu,
        "elu": F.elu,
        "leaky_relu": F.leaky_relu,
        "selu": F.selu,
        "mish": F.mish,
        "softplus": F.softplus,
        "tanh": lambda x: x.tanh(),
    }


def feed_forwards(
    x: Tensor, weights: Mapping[str, Tensor], hidden: int, activation: Callable[[Tensor], Tensor]
) -> Iterator[Tensor]:
    """Two linear layers dim -> hidden -> dim with an activation between, under every reading of the weights.

    Args:
        x: (..., dim); dim and hidden differ.
    """
    from torch.nn import functional as F

    dim, weights = x.shape[-1], squeezed(weights)
    dim_vectors = [value for value in weights.values() if value.ndim == 1 and len(value) == dim]
    dim_vectors = dim_vectors[:MAX_VECTORS]
    for layers in two_layers(weights, dim, hidden):
        for b1 in layers.first_biases:
            inner = activation(F.linear(x, layers.first, b1))
            for b2 in layers.second_biases:
                yield F.linear(inner, layers.second, b2)
            # if the layer also normalizes its input, that is a harmless extra
            for gain, bias, b2 in itertools.permutations([*dim_vectors, None], 3):
                normed = F.layer_norm(x, (dim,), gain, bias)
                yield F.linear(activation(F.linear(normed, layers.first, b1)), layers.second, b2)


def linear_layers(
    weights: Mapping[str, Tensor], inputs: int, outputs: int
) -> Iterator[tuple[Tensor, Tensor | None]]:
    """Every reading of the weights as a linear layer: (weight (outputs, inputs), bias (outputs,) or None).

    The weight may be kept as (inputs, outputs), as a matrix that an input is multiplied with from the left.
    """
    weights = squeezed(weights)
    usual = [value for value in weights.values() if value.shape == (outputs, inputs)]
    turned = [value.T for value in weights.values() if value.shape == (inputs, outputs)]
    biases = [value for value in weights.values() if value.shape == (outputs,)]
    yield from itertools.product([*usual, *turned], [*biases, None])


@dataclass(frozen=True)
class TwoLayers:
    """One reading of the weights of a feed-forward layer.

    Attributes:
        first_name, second_name: The student's names for them.
        first: (hidden, dim).
        second: (dim, hidden).
        first_biases: Candidates of shape (hidden,), and None.
        second_biases: Candidates of shape (dim,), the likeliest first, and None.
    """

    first_name: str
    second_name: str
    first: Tensor
    second: Tensor
    first_biases: tuple[Tensor | None, ...]
    second_biases: tuple[Tensor | None, ...]


def two_layers(weights: Mapping[str, Tensor], dim: int, hidden: int) -> Iterator[TwoLayers]:
    """Every reading of the weights as two linear layers dim -> hidden -> dim, which differ.

    A convolution of width 1 is a linear layer whose weight has one more axis.
    """
    weights, sizes = squeezed(weights), sorted((dim, hidden))
    matrices = {name: value for name, value in weights.items() if sorted(value.shape) == sizes}
    vectors = [value for value in weights.values() if value.ndim == 1 and len(value) in (dim, hidden)]
    vectors = vectors[: 2 * MAX_VECTORS]
    first_biases = (*(value for value in vectors if len(value) == hidden), None)
    second_biases = (*(value for value in vectors[::-1] if len(value) == dim), None)
    for first_name, second_name in itertools.permutations(matrices, 2):
        first, second = matrices[first_name], matrices[second_name]
        yield TwoLayers(
            first_name,
            second_name,
            first if first.shape == (hidden, dim) else first.T,
            second if second.shape == (dim, hidden) else second.T,
            first_biases,
            second_biases,
        )


# --- encoders --------------------------------------------------------------------------------------------


Part = Callable[[Tensor], Tensor]
MOST_STACKED = 3  # vectors in one tensor: gain and bias of a norm, or one for each block
USUAL = ("gelu", "gelu_tanh", "relu", "silu")


def without_biases(moved: Mapping[str, Tensor], initial: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Weights of which only the matrices are changed, while vectors need no reading: gains 1, biases 0.

    Args:
        moved: Random values by name.
        initial: What the constructor set; a vector that is all ones is the gain of a normalization.
    """
    return {
        name: value * 0 + float(bool((initial[name] == 1).all())) if _is_vector(initial[name]) else value
        for name, value in moved.items()
    }


def _is_vector(initial: Tensor) -> bool:
    """Whether a weight is a vector, or a stack of a few vectors with equal initial values."""
    if initial.numel() <= max(initial.shape, default=1):  # less if it is empty
        return True
    constant = bool((initial == initial.flatten()[0]).all())
    return constant and (bool((initial == 1).all()) or min(initial.shape) <= MOST_STACKED)


def block_weights(
    depth_one: Mapping[str, Tensor], depth_two: Mapping[str, Tensor]
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """The weights of the first and of the second block of an encoder of depth two.

    Args:
        depth_one: Weights of an encoder of depth one, for their names and shapes.
        depth_two: Weights of an encoder of depth two; a tensor that grew along its first axis is stacked.
    """
    first = {name: value for name, value in depth_two.items() if name in depth_one}
    second = {name: value for name, value in depth_two.items() if name not in depth_one}
    for name, value in first.copy().items():
        if value.shape != depth_one[name].shape and len(value) == 2 * len(depth_one[name]):
            first[name], second[name] = value.chunk(2)
    return first, second


def inline_attentions(
    weights: Mapping[str, Tensor], *, dim: int, heads: int, dim_head: int, hidden: int
) -> list[Projections]:
    """Every reading of a block's matrices as an attention; none if they cannot be read so."""
    rest = {name: value for name, value in _matrices(weights).items() if hidden not in value.shape}
    try:
        candidates = list(readings(rest, dim=dim, heads=heads, dim_head=dim_head))
    except UnreadableWeights:
        return []
    return [parts for parts in candidates if parts.out is not None]


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
    """The weights that are neither vectors nor gains or biases, without axes of length one."""
    return {name: value for name, value in squeezed(weights).items() if value.ndim > 1 and value.std() > 0}
