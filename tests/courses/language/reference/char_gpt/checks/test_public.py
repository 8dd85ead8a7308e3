"""The checks that students have."""

import pytest
import torch

from grader.kit import Fake, Mismatch


@pytest.mark.component("Tokenizer")
def test_tokenizer_goes_there_and_back(student):
    """decode gives back what was encoded."""
    tokenizer = student.make("Tokenizer", "hello, world")
    tokens = [each.whole_number(0) for each in tokenizer.call("encode", "low").returned.items(3, "tokens")]
    if (text := tokenizer.call("decode", tokens).returned.text()) != "low":
        raise Mismatch(f"decode(encode('low')) is {text!r}.")


@pytest.mark.component("CausalSelfAttention")
def test_attention_keeps_the_shape(student):
    """Attention gives a tensor of its input's shape."""
    student.build("CausalSelfAttention", 12, 3)(student.tensor(2, 5, 12), shape=(2, 5, 12))


@pytest.mark.component("Block")
def test_block_keeps_the_shape(student):
    """A block gives a tensor of its input's shape."""
    student.build("Block", 12, 3)(student.tensor(2, 5, 12), shape=(2, 5, 12))


@pytest.mark.component("next_token_loss")
def test_loss_is_a_number(student):
    """The loss is a single number."""
    model = Fake.table(torch.zeros(4, 4))
    student.call("next_token_loss", model, torch.tensor([[0, 1, 2], [3, 2, 1]])).returned.number(0)


@pytest.mark.component("generate")
def test_generate_appends(student):
    """generate keeps the beginning and appends as many tokens as were asked for."""
    begun = torch.tensor([[1, 2]])
    found = student.call("generate", Fake.table(torch.eye(4)), begun, 3, 8).returned.tensor(1, 5, whole=True)
    if not torch.equal(found[:, :2], begun):
        raise Mismatch("generate changes the tokens that it begins with.")
