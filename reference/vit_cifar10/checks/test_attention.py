"""MultiHeadSelfAttention, by readings of its weights."""

import pytest
import torch

from grader.kit import Mismatch, named, same
from grader.kit.transformers import UnreadableWeights, attention, readings

pytestmark = pytest.mark.component("MultiHeadSelfAttention")
TOKENS = 6


def numbers_of_tokens(student):
    """A few tokens, and about as many as in the training, drawn anew for each submission."""
    return (TOKENS, int(torch.randint(40, 90, (1,), generator=student.random)))


def built(student, dim, heads, dropout=0.0):
    component = student.build("MultiHeadSelfAttention", dim, heads, dropout=dropout)
    return component, component.randomize()


def read(weights, dim, heads):
    """Every reading of the weights; none when their sizes do not add up."""
    try:
        return list(readings(weights, dim=dim, heads=heads, dim_head=dim // heads))
    except UnreadableWeights:
        return []


def proven(x, y, found):
    """The readings under which y is the attention of x."""
    return [parts for parts in found if parts.out is not None and same(y, attention(x, parts))]


@pytest.mark.shows("attention_knows_no_order", "attention_scales_and_projects")
@pytest.mark.explains(
    "attention_lets_gradients_through", "attention_weights_are_shares", "attention_averages_by_its_weights"
)
@pytest.mark.weight(5)
@pytest.mark.parametrize(("dim", "heads"), [(22, 2), (15, 3), pytest.param(None, None, id="own")])
def test_attention_is_attention(student, reference, dim, heads):
    """Every head computes softmax(q k^T / sqrt(dim / heads)) v; the heads are joined and projected."""
    oracle = reference.oracle
    if dim is None:
        dim, heads = (oracle.own_sizes(student)[name] for name in ("dim", "heads"))
    component, weights = built(student, dim, heads)
    found = read(weights, dim, heads)
    for tokens in numbers_of_tokens(student):
        x = student.tensor(2, tokens, dim)
        y = component(x, shape=(2, tokens, dim))
        if not proven(x, y, found):
            break
    else:
        return
    for mistake in reference.mistakes_of("MultiHeadSelfAttention"):
        for parts in found:
            module = oracle.filled(reference.wrong(mistake, dim, heads), parts)
            with torch.no_grad():
                if same(y, module(x)):
                    raise reference.named(mistake.id)
    if not found:
        shapes = ", ".join(str(tuple(value.shape)) for value in weights.values() if value.ndim > 1) or "none"
        raise Mismatch(
            f"For dim={dim} and heads={heads}, the weights are not projections of {dim} features for q, k, v "
            f"and one back: {shapes}.",
            diagnosis="attention_projections",
        )
    raise Mismatch(
        f"For {tokens} tokens, dim={dim} and heads={heads}, the attention does not compute "
        "softmax(q k^T / sqrt(dim / heads)) v with its own weights, in whatever order q, k, v and the heads "
        "are read.",
        hint="Follow one token by hand: scores for all keys, softmax over them, weighted sum of the values.",
    )


@pytest.mark.shows("attention_weights_are_shares")
@pytest.mark.explains("attention_has_its_shapes", "attention_averages_by_its_weights")
@pytest.mark.weight(3)
def test_weights_are_those_of_the_answer(student, reference):
    """With return_weights=True, the weights of this very answer are returned too, for each head."""
    dim, heads = reference.oracle.DIM, reference.oracle.HEADS
    component, weights = built(student, dim, heads)
    for tokens in numbers_of_tokens(student):
        require_its_weights(student, reference, component, weights, tokens)


def require_its_weights(student, reference, component, weights, tokens):
    """The same for a number of tokens."""
    oracle, dim, heads = reference.oracle, reference.oracle.DIM, reference.oracle.HEADS
    x = student.tensor(2, tokens, dim)
    y = component(x, shape=(2, tokens, dim))
    both = component.call("", x, return_weights=True, training=False).returned
    answer, shown = both.items(2, "values: the tokens and the weights")
    if not same(answer.tensor(2, tokens, dim), y):
        raise Mismatch("With return_weights=True, the tokens differ from those without it.")
    found = shown.tensor()
    if tuple(found.shape) == (2, tokens, tokens):
        raise reference.named("weights_averaged")
    found = shown.tensor(2, heads, tokens, tokens)
    likely = proven(x, y, read(weights, dim, heads)) or read(weights, dim, heads)
    if any(same(found, oracle.weights_of(x, parts), tolerance=1e-3) for parts in likely):
        return
    for mistake in reference.mistakes_of("MultiHeadSelfAttention"):
        for parts in likely:
            module = oracle.filled(reference.wrong(mistake, dim, heads), parts)
            with torch.no_grad():
                wrong = module(x, return_weights=True)[1]
            if same(found, wrong, tolerance=1e-3):
                raise reference.named(mistake.id)
    if not same(found.sum(dim=-1), torch.ones(found.shape[:-1]), tolerance=1e-3):
        raise Mismatch("The rows of the returned weights do not sum to 1.", hint="Return the softmax.")
    raise Mismatch("The returned weights are not those that produced the answer.")


@pytest.mark.shows("attention_weights_are_shown_before_dropout")
@pytest.mark.weight(1)
@pytest.mark.because("weights_are_those_of_the_answer")
def test_weights_are_those_before_dropout(student, reference):
    """The returned weights are the softmax before anything is dropped."""
    dim, heads = reference.oracle.DIM, reference.oracle.HEADS
    component, _ = built(student, dim, heads, dropout=0.5)
    x = student.tensor(2, TOKENS, dim)
    rest, trained = (
        component.call("", x, return_weights=True, training=mode)
        .returned.items(2)[1]
        .tensor(2, heads, TOKENS, TOKENS)
        for mode in (False, True)
    )
    if same(trained, rest, tolerance=1e-3):
        return
    if bool((trained == 0).any()):
        raise reference.named("weights_after_dropout")
    raise Mismatch(
        "In training, the returned weights differ from those in evaluation, although none of them is "
        "dropped: dropout acts before the softmax.",
        hint="Drop the weights, after the softmax, and return those before it.",
    )


@pytest.mark.shows("attention_drops_out")
@pytest.mark.weight(1)
def test_attention_drops_out_in_training_only(student, reference):
    """Dropout acts in training, and in training alone."""
    component, _ = built(student, reference.oracle.DIM, reference.oracle.HEADS, dropout=0.5)
    x = student.tensor(2, TOKENS, reference.oracle.DIM)
    if not same(component(x), component(x)):
        raise reference.named("attention_dropout_in_evaluation")
    if same(component(x, train=True), component(x, train=True)):
        raise reference.named("attention_dropout_ignored")


@pytest.mark.shows("attention_drops_at_its_rate")
@pytest.mark.weight(1)
@pytest.mark.because(
    "attention_is_attention", "weights_are_those_before_dropout", "attention_drops_out_in_training_only"
)
def test_attention_drops_its_weights(student, reference):
    """The share of the weights that is dropped in training is the argument dropout."""
    oracle, dim, shares = reference.oracle, reference.oracle.DIM, {}
    for rate in oracle.RATES:
        component, weights = built(student, dim, 1, dropout=rate)
        x = student.tensor(2, 1, dim)
        found = proven(x, component(x, shape=(2, 1, dim)), read(weights, dim, 1))
        if not found:
            return
        shares[rate], changes = oracle.share_dropped(component, x, found[0], oracle.RATE_CALLS)
        if not shares[rate] and changes:
            raise reference.named("attention_drops_its_result")
    wrong = [rate for rate, share in shares.items() if abs(share - rate) > 0.12]
    if not wrong:
        return
    if min(shares.values()) > 0 and max(shares.values()) - min(shares.values()) < 0.12:
        raise reference.named("attention_dropout_rate_fixed")
    raise Mismatch(
        f"With dropout={wrong[0]}, {shares[wrong[0]]:.0%} of the weights are dropped in training.",
        hint="nn.Dropout(dropout), applied to the softmax before it is multiplied with v.",
    )


@pytest.mark.shows("attention_passes_gradients_on")
@pytest.mark.weight(1)
def test_attention_lets_gradients_through(student, reference):
    """The gradient reaches the input, through weights and values alike, and every parameter."""
    dim, heads = reference.oracle.DIM, reference.oracle.HEADS
    component, _ = built(student, dim, heads)
    x = 2 * student.tensor(2, TOKENS, dim)  # so large that the weights are far from a mean
    found = component.gradients(x, student.tensor(2, TOKENS, dim))
    if found.input is None:
        raise Mismatch("No gradient reaches the input.", hint="Look for detach, .data or no_grad.")
    if found.missing:
        raise Mismatch(
            f"The parameter {named(found.missing[0])} receives no gradient: it is not used, or cut off."
        )
    if reference.oracle.is_cut(student, component, x):
        raise reference.named("attention_gradient_cut")
