"""EncoderBlock, with a fake in place of its attention."""

import itertools
from dataclasses import replace

import pytest
import torch

from grader.kit import AffineFake, Cause, Mismatch, answer, named, same
from grader.kit.transformers import layer_norms

pytestmark = pytest.mark.component("EncoderBlock")
ATTENTION = AffineFake(scale=(0.7,), shift=(0.3,), roll=1, parameters=5, heads=2)
REPLACED = {"MultiHeadSelfAttention": ATTENTION}


@pytest.mark.shows("block_normalizes_for_its_attention", "block_adds_to_its_input")
@pytest.mark.explains(
    "block_normalizes_for_its_mlp",
    "block_has_its_mlp_after_its_attention",
    "block_has_an_mlp_that_is_not_linear",
    "block_passes_its_sizes_on",
)
@pytest.mark.weight(5)
def test_block_adds_attention_and_mlp(student, reference):
    """A block computes x = x + attention(norm(x)), then x = x + mlp(norm(x))."""
    oracle, own = reference.oracle, reference.oracle.own_sizes(student)
    for dim, heads in ((oracle.DIM, oracle.HEADS), (own["dim"], own["heads"])):
        block = student.build("EncoderBlock", dim, heads, replace=REPLACED)
        found = oracle.mlps(block.weights(), 4 * dim, dim)
        for tokens in (6, int(torch.randint(40, 90, (1,), generator=student.random))):
            require_both_sums(reference, block, found, student.tensor(2, tokens, dim))


def require_both_sums(reference, block, found, x):
    """The same for some tokens, with the perceptrons that the weights may be."""
    oracle, (_, tokens, dim) = reference.oracle, x.shape
    y = block(x, shape=tuple(x.shape))
    block.inputs_of("MultiHeadSelfAttention")
    if not found:
        raise reference.named("block_mlp_ratio_ignored")
    attend = lambda each: answer(ATTENTION, 0, each)  # noqa: E731
    for eps, (name, mlp) in itertools.product(oracle.EPSILONS, found.items()):
        right, wrong = oracle.block_results(x, attend, mlp, eps)
        if same(y, right):
            if name.startswith("none"):
                raise reference.named("block_without_activation")
            return
        for id_, each in wrong.items():
            if same(y, each):
                raise reference.named(id_)
    raise Mismatch(
        f"For {tokens} tokens and dim={dim}, a block does not compute x + attention(norm(x)) and then "
        "x + mlp(norm(x)).",
        hint="Two residual connections, each around a norm and what follows it.",
    )


@pytest.mark.explains("block_has_two_norms")
@pytest.mark.weight(1)
@pytest.mark.because("block_adds_attention_and_mlp")
def test_block_has_norms_of_its_own(student, reference):
    """Each of the two sub-layers has a norm of its own, which learns."""
    oracle = reference.oracle
    block = student.build("EncoderBlock", oracle.DIM, oracle.HEADS, replace=REPLACED)
    x = student.tensor(2, 6, oracle.DIM)
    before = [
        value
        for value in block.weights().values()
        if value.numel() == oracle.DIM and bool((value == 1).all())
    ]
    if len(before) == 1:
        raise reference.named("block_shares_its_norm")
    weights = block.randomize()
    block(x)
    given = block.inputs_of("MultiHeadSelfAttention")  # several, if its weights are kept, too
    if not any(same(seen, each) for each in layer_norms(x, weights) for seen in given):
        raise Mismatch("What the attention is given is not the normalized input.")


@pytest.mark.explains("block_passes_its_sizes_on")
@pytest.mark.weight(1)
def test_block_hands_its_sizes_on(student, reference):
    """dim, heads and dropout reach the attention; the MLP has mlp_ratio times the width."""
    oracle = reference.oracle
    block = student.build("EncoderBlock", oracle.DIM, 11, mlp_ratio=1.5, dropout=0.25, replace=REPLACED)
    for given in block.constructions("MultiHeadSelfAttention"):
        if given.get("heads") != 11:
            raise reference.named("block_heads_ignored")
        if given.get("dim") != oracle.DIM:
            told = oracle.told(given.get("dim"))
            raise Mismatch(f"The attention gets dim={told}; it should get {oracle.DIM}.")
        if 0.25 not in given.values():  # by whatever name
            raise reference.named("block_dropout_not_handed_on")
    weights = block.weights()
    if not oracle.mlps(weights, 33):
        if oracle.mlps(weights, 4 * oracle.DIM):
            raise reference.named("block_mlp_ratio_ignored")
        raise Mismatch(
            f"With mlp_ratio=1.5, the MLP's hidden width is not 33 = 1.5 * dim, for dim={oracle.DIM}.",
            hint="Multiply first, then make it a whole number: int(dim * mlp_ratio).",
        )
    x = student.tensor(2, 6, oracle.DIM)
    if not same(block(x), block(x)):
        still = student.build("EncoderBlock", oracle.DIM, 11, replace=REPLACED)
        if same(still(x), still(x)):
            raise reference.named("block_dropout_in_evaluation")
        raise Mismatch(
            "In evaluation, a block without dropout gives another answer each time.",
            hint="Look in forward for what is drawn at random.",
            cause=Cause.RANDOM,
        )


@pytest.mark.shows("block_drops_as_it_is_told")
@pytest.mark.weight(1)
@pytest.mark.because("block_adds_attention_and_mlp", "block_hands_its_sizes_on")
def test_block_drops_at_its_rate(student, reference):
    """What a block drops beside its attention's weights, if anything, it drops at the rate dropout."""
    oracle = reference.oracle
    silent = {"MultiHeadSelfAttention": AffineFake(scale=(0.0,), heads=2)}
    x = student.tensor(4, 6, oracle.DIM)

    def added(rate):
        """What the MLP adds in several calls, and in evaluation."""
        block = student.build("EncoderBlock", oracle.DIM, oracle.HEADS, dropout=rate, replace=silent)
        block.randomize()
        return torch.stack(list(block.repeated(x, times=40, train=True))) - x, block(x) - x

    drawn, still = added(0.0)
    # whole sub-layers may be left out at a rate of their own: what is left is larger, and otherwise the same
    factor = (drawn * still).sum(dim=-1, keepdim=True) / still.pow(2).sum(dim=-1, keepdim=True).clamp(
        min=1e-12
    )
    if not same(factor * still, drawn, tolerance=1e-3):
        raise reference.named("block_dropout_rate_fixed")
    low, high = (
        float(drawn.var(dim=0).mean() / still.pow(2).mean().clamp(min=1e-12))
        for drawn, still in map(added, (0.25, 0.45))
    )
    # the variance grows by p / (1 - p), or by p / (1 - p) ** 2: 2.5 to 3.4 times; 9 times if doubled
    if low > 1e-4 and not 0.7 < high / low < 6:
        raise Mismatch(
            "From dropout=0.25 to 0.45, what the MLP adds does not vary more as it should: another rate than "
            "the argument is used.",
            hint="nn.Dropout(dropout): the argument as it is.",
        )


@pytest.mark.shows("block_passes_gradients_on")
@pytest.mark.weight(1)
def test_block_lets_gradients_through(student, reference):
    """The gradient reaches the input, through both sub-layers and around them, and every parameter."""
    oracle = reference.oracle
    bare = {"MultiHeadSelfAttention": replace(ATTENTION, parameters=0)}  # those of a fake get no gradient
    block = student.build("EncoderBlock", oracle.DIM, oracle.HEADS, replace=bare)
    block.randomize()
    x = student.tensor(2, 6, oracle.DIM)
    found = block.gradients(x, student.tensor(2, 6, oracle.DIM))
    if oracle.is_cut(student, block, x):
        raise reference.named("block_gradient_cut")
    for name in found.missing:  # a norm that is not used is another check's affair
        held = block.weights()[name]
        block.set_weights({name: held + student.tensor(*held.shape)})
        if not same(block(x), found.output):
            raise Mismatch(f"The parameter {named(name)} receives no gradient: it is cut off.")
        block.set_weights({name: held})
