"""Blocks that are written inline: which weights are vectors, whose block they are, what they compute."""

import torch
from torch.nn import functional as F

from grader.kit import same
from grader.kit.transformers import (
    attention,
    block_weights,
    inline_attentions,
    inline_feed_forwards,
    without_biases,
)

DIM, HEADS, DIM_HEAD, HIDDEN = 22, 5, 4, 31
INNER = HEADS * DIM_HEAD
Weights = dict[str, torch.Tensor]


def block(seed: int) -> Weights:
    """The weights of one block as random values."""
    random = torch.Generator().manual_seed(seed)
    shapes = {
        "norm1.weight": (DIM,),
        "norm1.bias": (DIM,),
        "qkv.weight": (3 * INNER, DIM),
        "out.weight": (DIM, INNER),
        "out.bias": (DIM,),
        "norm2.weight": (DIM,),
        "norm2.bias": (DIM,),
        "up.weight": (HIDDEN, DIM),
        "up.bias": (HIDDEN,),
        "down.weight": (DIM, HIDDEN),
        "down.bias": (DIM,),
    }
    return {name: torch.randn(shape, generator=random) for name, shape in shapes.items()}


def test_vectors_are_set_to_what_needs_no_reading() -> None:
    """Gains to 1, biases to 0, also those of several blocks in one tensor; matrices stay as they are."""
    initial = block(1) | {
        "norm1.weight": torch.ones(DIM),
        "gains": torch.ones(7, DIM),
        "stack": torch.zeros(2, DIM),
        "wide": torch.ones(1, 1, DIM),
        "scalar": torch.tensor(1.0),
        "zero_matrix": torch.zeros(DIM, DIM),
    }
    random = torch.Generator().manual_seed(3)
    moved = {name: torch.randn(value.shape, generator=random) for name, value in initial.items()}
    found = without_biases(moved, initial)
    for name in ("norm1.weight", "gains", "wide", "scalar"):
        assert bool((found[name] == 1).all()), name
    for name in ("norm1.bias", "out.bias", "up.bias", "stack"):
        assert bool((found[name] == 0).all()), name
    for name in ("qkv.weight", "out.weight", "up.weight", "zero_matrix"):
        assert torch.equal(found[name], moved[name]), name
    assert {name: value.shape for name, value in found.items()} == {n: v.shape for n, v in initial.items()}


def test_the_second_block_is_what_one_block_does_not_have() -> None:
    """Lists of layers name the block; a tensor that grew along its first axis holds both."""
    names = ("0.qkv", "0.out", "1.qkv", "1.out")
    two = {name: torch.full((2, 2), float(number)) for number, name in enumerate(names)}
    two["stacked"] = torch.arange(6.0).reshape(2, 3)
    one = {"0.qkv": torch.zeros(2, 2), "0.out": torch.zeros(2, 2), "stacked": torch.zeros(1, 3)}
    first, second = block_weights(one, two)
    assert list(first) == ["0.qkv", "0.out", "stacked"]
    assert torch.equal(first["stacked"], two["stacked"][:1])
    assert torch.equal(second["stacked"], two["stacked"][1:])
    assert {name for name in second if name != "stacked"} == {"1.qkv", "1.out"}
    assert torch.equal(two["stacked"], torch.arange(6.0).reshape(2, 3)), "what was given is not changed"


def test_an_attention_is_found_among_a_blocks_matrices() -> None:
    """By its sizes; the matrices of the feed-forward layer and the vectors are passed over."""
    weights = without_biases(block(5), block(5))
    x = torch.randn(2, 6, DIM, generator=torch.Generator().manual_seed(6))
    q, k, v = F.linear(x, weights["qkv.weight"]).view(2, 6, 3, HEADS, DIM_HEAD).permute(2, 0, 3, 1, 4)
    mixed = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)
    expected = F.linear(mixed, weights["out.weight"])
    found = inline_attentions(weights, dim=DIM, heads=HEADS, dim_head=DIM_HEAD, hidden=HIDDEN)
    assert any(same(attention(x, parts), expected) for parts in found)
    assert all(parts.out is not None for parts in found)
    unscaled = F.linear(
        F.scaled_dot_product_attention(q, k, v, scale=1.0).transpose(1, 2).flatten(2), weights["out.weight"]
    )
    assert not any(same(attention(x, parts), unscaled) for parts in found)


def test_matrices_that_are_no_attention_give_no_reading() -> None:
    weights = block(7)
    del weights["qkv.weight"]
    assert inline_attentions(weights, dim=DIM, heads=HEADS, dim_head=DIM_HEAD, hidden=HIDDEN) == []


def test_a_feed_forward_layer_is_found_with_its_activation() -> None:
    """Among the usual activations, also as convolutions of width 1."""
    weights = without_biases(block(8), block(8))
    x = torch.randn(2, 6, DIM, generator=torch.Generator().manual_seed(9))
    convolved = weights | {name: weights[name][..., None] for name in ("up.weight", "down.weight")}
    for activation, usual in ((F.gelu, True), (F.relu, True), (torch.cos, False)):
        expected = F.linear(activation(F.linear(x, weights["up.weight"])), weights["down.weight"])
        for given in (weights, convolved):
            parts = inline_feed_forwards(given, dim=DIM, hidden=HIDDEN)
            assert any(same(part(x), expected) for part in parts) is usual
