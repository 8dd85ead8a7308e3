"""Layer normalization and the feed-forward layer on a student's own weights, by PyTorch's own functions."""

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

Tensor = Any
MAX_VECTORS = 6  # gains and biases that are tried: with spare ones the search would take forever


def layer_norms(x: Tensor, weights: Mapping[str, Tensor]) -> Iterator[Tensor]:
    """Layer normalization of x, (..., dim), over its last axis, under every reading of the weights.

    Gain and bias may be called anything, come in either order, or be missing; a gain may be kept as what it
    exceeds 1 by. The deviation may be taken with dim - 1 in place of dim, a constant factor that the gain
    absorbs. Source: Ba et al. (2016), equation 4.
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

    dim = x.shape[-1]
    dim_vectors = [value for value in weights.values() if value.ndim == 1 and len(value) == dim]
    dim_vectors = dim_vectors[:MAX_VECTORS]
    for layers in two_layers(weights, dim, hidden):
        for b1 in layers.first_biases:
            inner = activation(F.linear(x, layers.first, b1))
            for b2 in layers.second_biases:
                yield F.linear(inner, layers.second, b2)
            # a normalization of the input of the layer's own is an extra that does no harm
            for gain, bias, b2 in itertools.permutations([*dim_vectors, None], 3):
                normed = F.layer_norm(x, (dim,), gain, bias)
                yield F.linear(activation(F.linear(normed, layers.first, b1)), layers.second, b2)


@dataclass(frozen=True)
class TwoLayers:
    """One reading of the weights of a feed-forward layer.

    Attributes:
        first_name, second_name: What the student calls them.
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
    matrices = {}
    for name, value in weights.items():
        flat = value[..., 0] if value.ndim == 3 and value.shape[-1] == 1 else value
        if flat.ndim == 2 and set(flat.shape) == {dim, hidden}:
            matrices[name] = flat
    vectors = [value for value in weights.values() if value.ndim == 1 and len(value) in (dim, hidden)]
    vectors = vectors[: 2 * MAX_VECTORS]
    first_biases = (*(value for value in vectors if len(value) == hidden), None)
    second_biases = (*(value for value in vectors[::-1] if len(value) == dim), None)
    for one, two in itertools.permutations(matrices, 2):
        first, second = matrices[one], matrices[two]
        yield TwoLayers(
            one,
            two,
            first if first.shape == (hidden, dim) else first.T,
            second if second.shape == (dim, hidden) else second.T,
            first_biases,
            second_biases,
        )
