"""Sentences about layers that do what they should not: the smallest input that shows it, and nothing else."""

from collections.abc import Callable

import pytest
import torch

from grader.kit.transformers import oddities

DIM = 6
Layer = Callable[[torch.Tensor], torch.Tensor]
WEIGHT = torch.randn(DIM, DIM, generator=torch.Generator().manual_seed(1))


def told(layer: Layer, *, mixes_tokens: bool) -> list[str]:
    """What is said of a layer, for inputs that are the same in every run."""
    random = torch.Generator().manual_seed(2)
    made = lambda *shape: torch.randn(shape, generator=random)  # noqa: E731
    said = oddities(layer, made, DIM, mixes_tokens=mixes_tokens)
    return [sentence.replace("\N{NO-BREAK SPACE}", " ") for sentence in said]


def attended(x: torch.Tensor) -> torch.Tensor:
    """Attention without projections."""
    return torch.softmax(x @ x.transpose(1, 2) / DIM, dim=-1) @ (x @ WEIGHT)


def by_token(x: torch.Tensor) -> torch.Tensor:
    """Every token by itself."""
    return torch.tanh(x @ WEIGHT)


def test_nothing_is_said_of_layers_that_are_right() -> None:
    assert told(attended, mixes_tokens=True) == []
    assert told(by_token, mixes_tokens=False) == []


def random_each_time(x: torch.Tensor) -> torch.Tensor:
    return x @ WEIGHT + torch.randn(x.shape)


def over_batch(x: torch.Tensor) -> torch.Tensor:
    """Attends to the tokens of other images."""
    return attended(x.transpose(0, 1)).transpose(0, 1)


def causal(x: torch.Tensor) -> torch.Tensor:
    scores = x @ x.transpose(1, 2) / DIM
    hidden = torch.ones_like(scores).triu(1).bool()
    return torch.softmax(scores.masked_fill(hidden, float("-inf")), dim=-1) @ (x @ WEIGHT)


def by_place(x: torch.Tensor) -> torch.Tensor:
    return attended(x * torch.arange(1.0, x.shape[1] + 1)[:, None])


ODD = {
    "constant": (
        torch.zeros_like,
        True,
        "For 1 image of 1 token, changing token 0 of image 0 changes nothing.",
    ),
    "random": (
        random_each_time,
        True,
        "Two calls with the same 1 image of 1 token give different outputs.",
    ),
    "blind": (
        causal,
        True,
        "For 1 image of 2 tokens, the output for token 0 does not change when token 1 changes: it does not "
        "look at every token.",
    ),
    "each by itself": (
        by_token,
        True,
        "For 1 image of 2 tokens, the output for token 1 does not change when token 0 changes: it does not "
        "look at every token.",
    ),
    "mixing": (
        attended,
        False,
        "For 1 image of 2 tokens, the output for token 1 changes when token 0 changes: every token should be "
        "treated by itself.",
    ),
    "place": (
        by_place,
        True,
        "For 1 image of 2 tokens, exchanging the tokens does more than exchange their outputs: the layer "
        "treats a token according to its position.",
    ),
    "leak": (
        lambda x: by_token(x) + x.mean(dim=0),
        False,
        "For 2 images of 1 token, the output for token 0 of image 1 changes when token 0 of image 0 changes: "
        "information leaks across the batch.",
    ),
}


@pytest.mark.parametrize("name", ODD)
def test_an_odd_layer_is_told_by_the_smallest_input_that_shows_it(name: str) -> None:
    layer, mixes_tokens, sentence = ODD[name]
    assert told(layer, mixes_tokens=mixes_tokens) == [sentence]


def test_attention_over_the_batch_is_told_as_what_shows_first() -> None:
    [sentence] = told(over_batch, mixes_tokens=True)
    assert sentence.startswith("For 1 image of 2 tokens,")
    assert sentence.endswith("it does not look at every token.")
