"""Attention weights are found in whatever way a student computes them."""

from collections.abc import Callable

import pytest
import torch
from einops import rearrange
from torch import Tensor, nn
from torch.nn import functional as F

from grader.worker.model_outputs import attention_weights

IMAGES, TOKENS, DIM, HEADS = 3, 10, 8, 2


def heads(x: Tensor) -> tuple[Tensor, Tensor]:
    """Queries and keys (images, heads, tokens, 4) of tokens (images, tokens, 8)."""
    q, k = x, x.flip(-1)
    return rearrange(q, "b n (h d) -> b h n d", h=HEADS), rearrange(k, "b n (h d) -> b h n d", h=HEADS)


def expected(x: Tensor) -> Tensor:
    """The weights (images, tokens, tokens), the mean over heads."""
    q, k = heads(x)
    return (q @ k.mT / 2).softmax(-1).mean(1)


def by_softmax(x: Tensor) -> Tensor:
    q, k = heads(x)
    return F.dropout((q @ k.mT / 2).softmax(-1), 0.5, training=False) @ q


def by_hand(x: Tensor) -> Tensor:
    q, k = heads(x)
    scores = torch.exp(q @ k.mT / 2)
    return (scores / scores.sum(-1, keepdim=True)) @ q


def by_einsum_heads_last(x: Tensor) -> Tensor:
    q, k = heads(x)
    q, k = q.transpose(1, 2), k.transpose(1, 2)
    weights = torch.einsum("bihd,bjhd->bijh", q, k).div(2).softmax(dim=2)
    return torch.einsum("bijh,bjhd->bihd", weights, q)


def by_merged_heads(x: Tensor) -> Tensor:
    q, k = (rearrange(each, "b h n d -> (b h) n d") for each in heads(x))
    return torch.bmm(torch.bmm(q, k.mT).div(2).softmax(-1), q)


def by_loop_over_heads(x: Tensor) -> Tensor:
    q, k = heads(x)
    weights = torch.stack([(q[:, h] @ k[:, h].mT / 2).softmax(-1) for h in range(HEADS)])
    return weights @ q.transpose(0, 1)


def by_fused_function(x: Tensor) -> Tensor:
    q, k = heads(x)
    return F.scaled_dot_product_attention(q, k, q)


class Attention(nn.Module):
    """A layer whose weights do not count, as everything is done by a function."""

    def __init__(self, way: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.way = way
        self.scale = nn.Parameter(torch.ones(()))

    def forward(self, x: Tensor) -> Tensor:
        return self.way(x * self.scale)


class Model(nn.Module):
    """Two layers of attention over tokens that come as they are."""

    def __init__(self, way: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.layers = nn.ModuleList([Attention(way), Attention(way)])

    def forward(self, x: Tensor) -> Tensor:
        for scale, layer in enumerate(self.layers, start=1):
            layer(scale * x)
        return x.mean(1)


WAYS = [by_softmax, by_hand, by_einsum_heads_last, by_merged_heads, by_loop_over_heads, by_fused_function]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_weights_are_found_in_every_form(way: Callable[[Tensor], Tensor]) -> None:
    """Each layer once."""
    x = torch.randn(IMAGES, TOKENS, DIM, generator=torch.Generator().manual_seed(1))
    found = attention_weights(Model(way), x)
    assert found is not None and found.shape == (IMAGES, 2, TOKENS, TOKENS)
    torch.testing.assert_close(found[:, 0], expected(x))
    torch.testing.assert_close(found[:, 1], expected(2 * x))


def test_a_model_without_attention_has_none() -> None:
    """Nor do sums to one over classes count."""
    x = torch.randn(IMAGES, TOKENS, DIM)
    assert attention_weights(Model(lambda tokens: tokens.softmax(-1)), x) is None
    assert attention_weights(Model(lambda tokens: tokens.mT @ tokens), x) is None
