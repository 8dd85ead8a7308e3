"""Reading a student's weights: every legitimate arrangement is found, and only where the sizes add up."""

import pytest
import torch
from torch.nn import functional as F

from grader.kit import difference, same
from grader.kit.transformers import (
    UnreadableWeights,
    attention,
    feed_forwards,
    layer_norms,
    linear_layers,
    readings,
    two_layers,
)

DIM, HEADS, DIM_HEAD = 22, 5, 4
INNER = HEADS * DIM_HEAD


@pytest.fixture
def parts() -> dict[str, torch.Tensor]:
    """Weights of every role: q, k, v (heads, dim_head, dim), biases (heads, dim_head), out (dim, inner)."""
    torch.manual_seed(3)
    found = {role: torch.randn(HEADS, DIM_HEAD, DIM) for role in "qkv"}
    found |= {f"{role}_bias": torch.randn(HEADS, DIM_HEAD) for role in "qkv"}
    return found | {"out": torch.randn(DIM, INNER), "out_bias": torch.randn(DIM)}


@pytest.fixture
def x() -> torch.Tensor:
    """Tokens."""
    return torch.randn(2, 6, DIM, generator=torch.Generator().manual_seed(4))


def by_hand(x: torch.Tensor, parts: dict[str, torch.Tensor]) -> torch.Tensor:
    """PyTorch's own multi-head attention with the weights, for which dim and heads * dim_head may differ."""
    q, k, v = (
        torch.einsum("bnd,hfd->bhnf", x, parts[role]) + parts[f"{role}_bias"][:, None] for role in "qkv"
    )
    mixed = F.scaled_dot_product_attention(q, k, v)
    return F.linear(mixed.transpose(1, 2).flatten(2), parts["out"], parts["out_bias"])


ARRANGEMENTS = ["role head feature", "head role feature", "feature head role", "role feature head"]


@pytest.mark.parametrize("order", ARRANGEMENTS)
@pytest.mark.parametrize("roles", ["qkv", "vqk", "kvq"])
def test_a_fused_projection_is_read_in_every_nesting(
    parts: dict[str, torch.Tensor], x: torch.Tensor, order: str, roles: str
) -> None:
    """Rows and biases travel together, whatever the order of role, head and feature."""
    axes = [["role", "head", "feature"].index(name) for name in order.split()]
    weight = torch.stack([parts[role] for role in roles]).permute(*axes, 3).reshape(3 * INNER, DIM)
    bias = torch.stack([parts[f"{role}_bias"] for role in roles]).permute(*axes).reshape(-1)
    weights = {
        "to.weight": weight,
        "to.bias": bias,
        "out.weight": parts["out"],
        "out.bias": parts["out_bias"],
    }
    expected = by_hand(x, parts)
    possible = list(readings(weights, dim=DIM, heads=HEADS, dim_head=DIM_HEAD))
    assert any(same(attention(x, reading), expected) for reading in possible)
    wrong = by_hand(x, {**parts, "v": parts["k"]})
    assert not any(same(attention(x, reading), wrong) for reading in possible)


def test_separate_layers_in_any_order_are_read(parts: dict[str, torch.Tensor], x: torch.Tensor) -> None:
    """All four matrices have the same numbers of elements; which is which is found."""
    weights = {"z.weight": parts["out"], "z.bias": parts["out_bias"]}
    for name, role in (("a", "v"), ("b", "q"), ("c", "k")):
        weights[f"{name}.weight"] = parts[role].flatten(0, 1)
        weights[f"{name}.bias"] = parts[f"{role}_bias"].flatten()
    possible = readings(weights, dim=DIM, heads=HEADS, dim_head=DIM_HEAD)
    assert any(same(attention(x, reading), by_hand(x, parts)) for reading in possible)


@pytest.mark.parametrize("heads", [HEADS, 2])
@pytest.mark.parametrize("names", ["{}_kernel {}_bias", "w{} b{}", "W_{} b_{}", "{}.weight {}.bias"])
@pytest.mark.parametrize("turned", [False, True])
def test_matrices_by_either_side_with_biases_by_usual_names_are_read(
    x: torch.Tensor, names: str, turned: bool, heads: int
) -> None:
    """Square ones, too, of which the shape does not tell by which side they are multiplied."""
    size = DIM // heads if heads == 2 else DIM_HEAD
    parts = {role: torch.randn(heads, size, DIM) for role in "qkv"}
    parts |= {f"{role}_bias": torch.randn(heads, size) for role in "qkv"}
    parts |= {"out": torch.randn(DIM, heads * size), "out_bias": torch.randn(DIM)}
    weight, bias = names.split()
    weights = {}
    for role, name in zip([*"qkv", "out"], [*"qkv", "o"], strict=True):
        matrix = parts[role] if role == "out" else parts[role].flatten(0, 1)
        weights[weight.format(name)] = matrix.T if turned else matrix
        weights[bias.format(name)] = parts[f"{role}_bias"]
    possible = readings(weights, dim=DIM, heads=heads, dim_head=size)
    assert any(same(attention(x, reading), by_hand(x, parts)) for reading in possible)


def test_a_linear_layer_is_read_by_either_side(x: torch.Tensor) -> None:
    """With a bias or without one; a matrix of another size is none."""
    weight, bias = torch.randn(7, DIM), torch.randn(7)
    for held in (weight, weight.T):
        weights = {"kernel": held, "bias": bias, "other": torch.randn(DIM, 6)}
        found = [F.linear(x, *layer) for layer in linear_layers(weights, DIM, 7)]
        assert any(same(each, F.linear(x, weight, bias)) for each in found)
        assert any(same(each, F.linear(x, weight)) for each in found) and len(found) == 2


def test_axes_of_length_one_are_no_axes(parts: dict[str, torch.Tensor], x: torch.Tensor) -> None:
    """Biases as (n, 1) or (1, 1, n), and convolutions of width one."""
    weights = {"out.weight": parts["out"][..., None], "out.bias": parts["out_bias"][:, None]}
    for role in "qkv":
        weights[f"{role}.weight"] = parts[role].flatten(0, 1)[..., None]
        weights[f"{role}.bias"] = parts[f"{role}_bias"].flatten()[None, None]
    possible = readings(weights, dim=DIM, heads=HEADS, dim_head=DIM_HEAD)
    assert any(same(attention(x, reading), by_hand(x, parts)) for reading in possible)
    first, second, b1, b2 = (torch.randn(*shape) for shape in ((9, DIM), (DIM, 9), (9,), (DIM,)))
    layers = {"a": first[..., None], "b": b1[:, None], "c": second[..., None], "d": b2[None, None]}
    expected = F.linear(F.gelu(F.linear(x, first, b1)), second, b2)
    assert any(same(each, expected) for each in feed_forwards(x, layers, 9, F.gelu))
    head = linear_layers({"w": first[..., None], "b": b1[:, None]}, DIM, 9)
    assert any(same(F.linear(x, *each), F.linear(x, first, b1)) for each in head)


@pytest.mark.parametrize(("matrix", "bias"), [("W_{}", "offset_{}"), ("w.{}", "b.{}")])
def test_a_bias_of_its_own_name_belongs_to_the_matrix_of_nearly_that_name(
    x: torch.Tensor, matrix: str, bias: str
) -> None:
    """Queries alone have one, of as many numbers as a token has: its size does not tell whose it is.

    Dictionaries of parameters have all matrices first: `w.q`, `w.k`, `w.v`, `w.o`, `b.q`, `b.o`.
    """
    sizes = {"heads": 2, "dim_head": DIM // 2}
    weights = {matrix.format(role): torch.randn(DIM, 2, DIM // 2) for role in "qkv"}
    weights |= {matrix.format("o"): torch.randn(2, DIM // 2, DIM), bias.format("q"): torch.randn(2, DIM // 2)}
    weights |= {bias.format("o"): torch.randn(DIM)}
    q, k, v = (torch.einsum("bnd,dhf->bhnf", x, weights[matrix.format(role)]) for role in "qkv")
    mixed = F.scaled_dot_product_attention(q + weights[bias.format("q")][:, None], k, v)
    expected = torch.einsum("bhnf,hfd->bnd", mixed, weights[matrix.format("o")]) + weights[bias.format("o")]
    possible = readings(weights, dim=DIM, **sizes)
    assert any(same(attention(x, reading), expected) for reading in possible)


def test_a_bias_of_the_output_is_as_long_as_a_token(x: torch.Tensor) -> None:
    """A projection of the input that could be the output's by its size keeps its own bias."""
    weights = {f"{role}.weight": torch.randn(15, DIM) for role in ("query", "key", "value", "out")}
    weights |= {f"{role}.bias": torch.randn(15) for role in ("query", "key", "value", "out")}
    found = list(readings(weights, dim=DIM, heads=3, dim_head=5))
    assert found and {len(reading.out_bias) for reading in found} == {DIM}


@pytest.mark.parametrize("bias", ["proj_bias", "proj_out_bias"])
def test_a_bias_by_nearly_the_names_of_all_matrices_is_the_outputs(x: torch.Tensor, bias: str) -> None:
    weights = {f"proj_{role}": torch.randn(DIM, DIM) for role in ("q", "k", "v", "out")}
    weights[bias] = torch.randn(DIM)
    q, k, v = (F.linear(x, weights[f"proj_{role}"]).view(2, 6, 2, DIM // 2).transpose(1, 2) for role in "qkv")
    mixed = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)
    expected = F.linear(mixed, weights["proj_out"], weights[bias])
    possible = readings(weights, dim=DIM, heads=2, dim_head=DIM // 2)
    assert any(same(attention(x, reading), expected) for reading in possible)


def by_linear(x: torch.Tensor, weights: dict[str, torch.Tensor], rows: list[str]) -> torch.Tensor:
    """Attention of two heads by q, k, v of (DIM, DIM), with the biases of these names that there are."""
    q, k, v = (
        F.linear(x, weights[f"{role}.weight"], weights.get(bias)).view(2, 6, 2, DIM // 2).transpose(1, 2)
        for role, bias in zip("qkv", rows, strict=True)
    )
    mixed = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)
    return F.linear(mixed, weights["proj.weight"], weights.get("proj.bias"))


def test_the_bias_of_another_projection_is_not_the_outputs(x: torch.Tensor) -> None:
    """It is as long as the output's, which has none."""
    weights = {f"{role}.weight": torch.randn(DIM, DIM) for role in ("q", "k", "v", "proj")}
    weights |= {f"{role}.bias": torch.randn(DIM) for role in "qkv"}
    expected = by_linear(x, weights, ["q.bias", "k.bias", "v.bias"])
    possible = readings(weights, dim=DIM, heads=2, dim_head=DIM // 2)
    assert any(same(attention(x, reading), expected) for reading in possible)


@pytest.mark.parametrize("with_output", [True, False])
@pytest.mark.parametrize("biases", [["q_bias", "v_bias"], ["q_bias", "k_bias", "v_bias"], ["v_bias"]])
def test_biases_beside_no_weight_belong_to_some_of_the_projections(
    x: torch.Tensor, biases: list[str], with_output: bool
) -> None:
    """As in BEiT, which has one for q and one for v."""
    weights = {name: torch.randn(DIM) for name in biases}
    weights |= {f"{role}.weight": torch.randn(DIM, DIM) for role in ("q", "k", "v", "proj")}
    weights |= {"proj.bias": torch.randn(DIM)} if with_output else {}
    expected = by_linear(x, weights, [f"{role}_bias" for role in "qkv"])
    fused = {"qkv.weight": torch.cat([weights.pop(f"{role}.weight") for role in "qkv"]), **weights}
    possible = readings(fused, dim=DIM, heads=2, dim_head=DIM // 2)
    assert any(same(attention(x, reading), expected) for reading in possible)


def test_an_output_projection_for_every_head_is_one(parts: dict[str, torch.Tensor], x: torch.Tensor) -> None:
    """Each head has a layer of its own to the end; what they give is summed, and so are their biases."""
    fused = torch.cat([parts[role].flatten(0, 1) for role in "qkv"])
    weights = {
        "qkv.weight": fused,
        "qkv.bias": torch.cat([parts[f"{role}_bias"].flatten() for role in "qkv"]),
    }
    shares = torch.linspace(-1.0, 2.0, HEADS)
    for head, out in enumerate(parts["out"].view(DIM, HEADS, DIM_HEAD).unbind(dim=1)):
        weights[f"outs.{head}.weight"] = out
        weights[f"outs.{head}.bias"] = shares[head] * parts["out_bias"]
    expected = by_hand(x, {**parts, "out_bias": shares.sum() * parts["out_bias"]})
    possible = list(readings(weights, dim=DIM, heads=HEADS, dim_head=DIM_HEAD))
    assert any(same(attention(x, reading), expected) for reading in possible)
    assert not any(same(attention(x, reading), by_hand(x, parts)) for reading in possible)
    last_alone = by_hand(x, {**parts, "out_bias": shares[-1] * parts["out_bias"]})
    assert not any(same(attention(x, reading), last_alone) for reading in possible)


def test_no_weights_are_no_projections() -> None:
    with pytest.raises(UnreadableWeights, match="none"):
        next(readings({}, dim=DIM, heads=HEADS, dim_head=DIM_HEAD))


def test_sizes_that_do_not_add_up_are_told() -> None:
    """Two projections are not three."""
    weights = {"a": torch.zeros(2 * INNER + 4, DIM), "out": torch.zeros(DIM, INNER)}
    with pytest.raises(UnreadableWeights, match=r"\(44, 22\)"):
        list(readings(weights, dim=DIM, heads=HEADS, dim_head=DIM_HEAD))


def test_layer_norms_include_every_reading(x: torch.Tensor) -> None:
    """Gain and bias in either order, other names and shapes, and the deviation with n - 1."""
    gain, bias = torch.rand(DIM) + 0.5, torch.randn(DIM)
    expected = F.layer_norm(x, (DIM,), gain, bias)
    weights = {"beta": bias.reshape(1, 1, DIM), "gamma": gain}
    assert any(same(found, expected) for found in layer_norms(x, weights))
    unbiased = (x - x.mean(-1, keepdim=True)) / x.std(-1, keepdim=True) * gain + bias
    assert any(same(found, unbiased) for found in layer_norms(x, weights))
    beyond_one = {"beta": bias, "gamma": gain - 1}
    assert any(same(found, expected) for found in layer_norms(x, beyond_one)), "a gain kept as 1 + g"
    assert not any(same(found, expected) for found in layer_norms(x, {"beta": bias, "gamma": gain - 2}))
    over_tokens = (x - x.mean(1, keepdim=True)) / x.std(1, keepdim=True, unbiased=False) * gain + bias
    root_mean_square = x / x.pow(2).mean(-1, keepdim=True).sqrt() * gain
    for wrong in (over_tokens, root_mean_square):
        assert not any(same(found, wrong) for found in layer_norms(x, weights))


def test_feed_forward_layers_are_read_whatever_their_shapes(x: torch.Tensor) -> None:
    """Turned matrices and convolutions of width 1; not with another activation."""
    torch.manual_seed(5)
    first, b1, second, b2 = torch.randn(31, DIM), torch.randn(31), torch.randn(DIM, 31), torch.randn(DIM)
    expected = F.linear(F.relu(F.linear(x, first, b1)), second, b2)
    for weights in (
        {"a": first, "b": b1, "c": second, "d": b2},
        {"d": b2, "c": second.T, "b": b1, "a": first.T},
        {"a": first[..., None], "b": b1, "c": second[..., None], "d": b2},
    ):
        assert any(same(found, expected) for found in feed_forwards(x, weights, 31, F.relu))
        assert not any(same(found, expected) for found in feed_forwards(x, weights, 31, F.gelu))
        assert len(list(two_layers(weights, DIM, 31))) == 2


def test_closeness_is_relative_and_shape_matters() -> None:
    """float32 noise is the same, a hundredth is not."""
    value = torch.randn(50, generator=torch.Generator().manual_seed(1)) * 1e4
    assert same(value * (1 + 1e-6), value)
    assert not same(value * 1.01, value)
    assert not same(value[None], value)
    assert same(value[:0], value[:0])
    assert difference(value[None], value) == float("inf")
    assert difference(value * 1.5, value) == pytest.approx(0.5, abs=1e-3)
