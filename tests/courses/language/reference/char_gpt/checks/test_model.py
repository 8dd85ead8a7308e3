"""The model's parts: by readings of their weights, each with fakes of the others."""

import pytest
import torch

from grader.kit import AffineFake, Mismatch, answer, same
from grader.kit.transformers import UnreadableWeights, readings

ATTENTION = AffineFake(scale=(0.7,), shift=(0.3,), roll=1, parameters=5)
BLOCK = AffineFake(scale=(0.9, 0.6, 1.2), shift=(0.3, -0.2, 0.1), parameters=7)


@pytest.mark.component("Tokenizer")
def test_tokens_are_in_alphabetical_order(student, reference):
    """The characters of the text in alphabetical order are 0, 1, ..."""
    text = "the cat sat on the mat"
    tokenizer, right = student.make("Tokenizer", text), reference.Tokenizer(text)
    tokens = [
        each.whole_number() for each in tokenizer.call("encode", text).returned.items(len(text), "tokens")
    ]
    if tokens != right.encode(text):
        for mistake in reference.mistakes_of("Tokenizer"):
            if tokens == reference.wrong(mistake, text).encode(text):
                raise reference.named(mistake.id)
        raise Mismatch("The tokens of a text are not those of its characters in alphabetical order.")
    if tokenizer.get("size").whole_number() != right.size:
        raise Mismatch(f"size of {text!r} is not {right.size}.")
    if tokenizer.call("decode", tokens).returned.text() != text:
        raise reference.named("tokenizer_decodes_with_spaces")


@pytest.mark.component("CausalSelfAttention")
@pytest.mark.weight(3)
def test_attention_is_causal_attention(student, reference):
    """Each token is softmax(q k^T / sqrt(dim_head)) v of itself and of those before it."""
    oracle = reference.oracle
    component = student.build("CausalSelfAttention", oracle.DIM, oracle.HEADS)
    x = student.tensor(2, 6, oracle.DIM)
    weights = component.randomize()
    y = component(x, shape=tuple(x.shape))
    sizes = {"dim": oracle.DIM, "heads": oracle.HEADS, "dim_head": oracle.DIM // oracle.HEADS}
    try:
        found = list(readings(weights, **sizes))
    except UnreadableWeights as error:
        raise Mismatch(
            f"CausalSelfAttention has no three projections and one of its output: {error}."
        ) from None
    if any(same(y, oracle.attended(x, parts)) for parts in found):
        return
    for kind in oracle.ATTENTIONS:
        if any(same(y, oracle.attended(x, parts, kind=kind)) for parts in found):
            raise reference.named(kind)
    raise Mismatch("CausalSelfAttention does not compute causal softmax(q k^T / sqrt(dim_head)) v.")


@pytest.mark.component("CausalSelfAttention")
@pytest.mark.because("attention_is_causal_attention")
def test_attention_hides_the_future(student, reference):
    """A token that changes leaves all before it as they are."""
    component = student.build("CausalSelfAttention", 12, 3)
    x = student.tensor(1, 7, 12)
    other = x.clone()
    other[:, 4] += 1
    before, after = component(x, shape=(1, 7, 12)), component(other, shape=(1, 7, 12))
    if not torch.allclose(before[:, :4], after[:, :4], atol=1e-6):
        raise Mismatch(
            "Tokens in front see a token that is behind them.", hint="Mask the scores of what is behind."
        )


@pytest.mark.component("Block")
@pytest.mark.weight(3)
def test_block_adds_attention_and_mlp(student, reference):
    """A block computes x + attention(norm(x)), and adds mlp(norm(x)) of that."""
    oracle = reference.oracle
    block = student.build("Block", oracle.DIM, oracle.HEADS, replace={"CausalSelfAttention": ATTENTION})
    x = student.tensor(2, 6, oracle.DIM)
    y = block(x, shape=tuple(x.shape))
    block.inputs_of("CausalSelfAttention")
    weights = block.weights()
    shapes = [tuple(value.shape) for value in weights.values()]
    if (4 * oracle.DIM, oracle.DIM) not in shapes or (oracle.DIM, 4 * oracle.DIM) not in shapes:
        raise reference.named("block_narrow")
    right, wrong = oracle.blocks(x, lambda each: answer(ATTENTION, 0, each), weights)
    if any(same(y, each) for each in right):
        return
    for name, each in wrong.items():
        if same(y, each):
            raise reference.named(name)
    raise Mismatch("A block does not compute x + attention(norm(x)) and then x + mlp(norm(x)).")


@pytest.mark.component("GPT")
@pytest.mark.weight(3)
def test_gpt_embeds_and_scores(student, reference):
    """GPT adds embeddings of tokens and positions, goes through its blocks, normalizes and scores."""
    oracle, depth = reference.oracle, 3
    sizes = (oracle.VOCABULARY, oracle.BLOCK, oracle.DIM, depth, oracle.HEADS)
    gpt = student.build("GPT", *sizes, replace={"Block": BLOCK})
    tokens = torch.randint(0, oracle.VOCABULARY, (2, 7), generator=student.random)
    y = gpt(tokens, shape=(2, 7, oracle.VOCABULARY))
    instances = [call.instance for call, _ in gpt.calls]
    if len(instances) == depth and len(set(instances)) < depth:
        raise reference.named("gpt_shares_a_block")

    def through(x):
        for instance in range(depth):
            x = answer(BLOCK, instance, x)
        return x

    readings = list(oracle.models(tokens, gpt.weights(), through))
    if any(same(y, right) for right, _ in readings):
        return
    for _, wrong in readings:
        for name, each in wrong.items():
            if same(y, each):
                raise reference.named(name)
    raise Mismatch("GPT does not compute head(norm(blocks(tokens + positions))) with its own weights.")


@pytest.mark.component("GPT")
@pytest.mark.because("gpt_embeds_and_scores")
def test_gpt_takes_a_whole_block(student, reference):
    """GPT scores windows of the whole block size, and a single token."""
    gpt = student.build("GPT", 9, 8, 12, 1, 2)
    for length in (8, 1):
        gpt(torch.zeros(2, length, dtype=torch.int64), shape=(2, length, 9))
