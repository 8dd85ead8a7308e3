"""Public checks of MultiHeadSelfAttention."""

from dataclasses import replace

import pytest
import torch

from grader.kit import Cause, Mismatch, same
from grader.kit.transformers import UnreadableWeights, attention, readings

DIM, HEADS, TOKENS = 22, 2, 6
JOINS = [
    f"{name}.{call}()"
    for name in ("y", "z", "o", "out", "heads", "context", "mixed", "attended", "result", "values")
    for call in ("reshape", "view")
]
RANDOM = "randn() | rand() | randn_like() | rand_like() | randperm()"


def attention_of(student, dim=DIM, heads=HEADS, dropout=0.0):
    """The attention with weights that are not zero by chance."""
    return student.build("MultiHeadSelfAttention", dim, heads, dropout=dropout).randomized()


def with_weights(attention, x, heads, training=False):
    """What it returns with return_weights=True: tokens, and weights (batch, heads, tokens, tokens)."""
    both = attention.call("", x, return_weights=True, training=training).returned
    tokens, weights = both.items(2, "values: the tokens and the weights")
    return tokens.tensor(*x.shape), weights.tensor(len(x), heads, x.shape[1], x.shape[1])


def one_head(student):
    """What one head makes of five tokens, its weights, and what each token gives by itself."""
    attention, x = attention_of(student, 12, 1), student.tensor(5, 12)
    y, weights = with_weights(attention, x[None], 1)
    alone = attention(x[:, None], shape=(5, 1, 12))[:, 0]
    return x, y[0], weights[0, 0], alone


def readings_of(component, dim=DIM, heads=HEADS):
    """Every reading of its weights that has an output projection; none where they cannot be read."""
    try:
        found = list(readings(component.weights(), dim=dim, heads=heads, dim_head=dim // heads))
    except UnreadableWeights:
        return []
    return [parts for parts in found if parts.out is not None]


def joined_in_memory(x, parts):
    """The attention of x, but its heads joined in the order of memory, without a transpose."""
    q, k, v = (
        torch.einsum("bnd,hfd->bhnf", x, weight) + bias[:, None]
        for weight, bias in ((parts.q, parts.q_bias), (parts.k, parts.k_bias), (parts.v, parts.v_bias))
    )
    mixed = (q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5).softmax(dim=-1) @ v
    return mixed.reshape(x.shape) @ parts.out.flatten(1).T + parts.out_bias


@pytest.mark.component("MultiHeadSelfAttention")
@pytest.mark.weight(0.25)
def test_attention_has_its_shapes(student):
    """Tokens keep their shape; with return_weights=True there are weights for each head, too."""
    attention = student.build("MultiHeadSelfAttention", 12, 3)
    x = student.tensor(2, 5, 12)
    attention(x, shape=(2, 5, 12))
    both = attention.call("", x, return_weights=True, training=False).returned.items(2, "values")
    both[0].tensor(2, 5, 12)
    if tuple(both[1].tensor().shape) == (2, 5, 5):
        raise Mismatch(
            "The returned weights are one matrix for each image, (batch, tokens, tokens); there should be "
            "one for each head: (batch, heads, tokens, tokens).",
            hint="Return the softmax as it is, without a mean over the heads.",
            look_for="return",
        )
    both[1].tensor(2, 3, 5, 5)


@pytest.mark.component("MultiHeadSelfAttention")
@pytest.mark.because("attention_has_its_shapes")
@pytest.mark.weight(0.25)
def test_attention_weights_are_shares(student):
    """The weights are shares: what a token looks at adds up to 1 over all tokens, in each head."""
    x = student.tensor(2, TOKENS, DIM)
    _, weights = with_weights(attention_of(student), x, HEADS)
    if weights.min() < -1e-6:
        raise Mismatch(
            "Some of the returned weights are negative; a softmax never is.",
            hint="Return what the softmax gives, not the scores that go into it.",
            look_for="return",
        )
    rows, columns, heads = (
        same(sums, torch.ones(sums.shape), tolerance=1e-3)
        for sums in (weights.sum(dim=-1), weights.sum(dim=-2), weights.sum(dim=1))
    )
    if rows:
        return
    softmax = "softmax() | Softmax(), sum()"
    if columns:
        _, y, own, alone = one_head(student)
        if same(y, own.T @ alone, tolerance=1e-3):
            raise Mismatch(
                "The returned weights are transposed: their columns add up to 1, and row i does not say "
                "what token i looks at.",
                hint="Return the weights as they are multiplied with v: (batch, heads, queries, keys).",
                look_for="return",
            )
        raise Mismatch(
            "The columns of the weights add up to 1, not the rows: the softmax runs over the queries.",
            hint="softmax(dim=-1), over the keys, for scores of (batch, heads, queries, keys).",
            look_for=softmax,
        )
    if heads:
        raise Mismatch(
            "The weights of the heads add up to 1, not those of a row: the softmax runs over the heads.",
            hint="softmax(dim=-1), over the keys, for scores of (batch, heads, queries, keys).",
            look_for=softmax,
        )
    raise Mismatch(
        "The rows of the returned weights do not add up to 1.",
        hint="softmax(dim=-1) on scores of (batch, heads, queries, keys), returned as it is.",
        look_for=softmax,
    )


@pytest.mark.component("MultiHeadSelfAttention")
@pytest.mark.because("attention_has_its_shapes", "attention_weights_are_shares")
@pytest.mark.weight(0.25)
def test_attention_averages_by_its_weights(student):
    """With one head, a token's output is the mean of what each token gives by itself, by its weights."""
    x, y, weights, alone = one_head(student)
    mean = weights @ alone
    if same(y, mean, tolerance=1e-3):
        return
    if same(y - mean, x - weights @ x, tolerance=1e-3):
        raise Mismatch(
            "The attention adds its input to the result.",
            hint="Return what the last projection gives: it is the block that adds x.",
            look_for="x + _ | _ + x",
        )
    raise Mismatch(
        "With one head, a token's output is not the mean of what each token gives by itself, weighted by "
        "the weights that are returned.",
        hint="weights @ v, and the projection of that; the weights are (batch, heads, queries, keys).",
        look_for="_ @ v | matmul(_, v) | einsum()",
    )


@pytest.mark.component("MultiHeadSelfAttention")
@pytest.mark.because("attention_has_its_shapes", "attention_weights_are_shares")
@pytest.mark.weight(0.25)
def test_attention_knows_no_order(student):
    """Attention knows no order: reordering tokens reorders their outputs, and changes nothing else."""
    attention, x = attention_of(student), student.tensor(2, TOKENS, DIM)
    y, turned = (attention(tokens, shape=(2, TOKENS, DIM)) for tokens in (x, x.flip(1)))
    if not same(turned.flip(1), y, tolerance=1e-3):
        if any(same(y, joined_in_memory(x, parts)) for parts in readings_of(attention)):
            raise Mismatch(
                "Where the heads are joined, features of different tokens are mixed: the tokens must come "
                "before the heads when these are flattened.",
                hint="What the heads give is (batch, heads, tokens, dim / heads): .transpose(1, 2) first, "
                "then .reshape(batch, tokens, dim).",
                look_for="(_ @ _).reshape() | (_ @ _).view(), " + " | ".join(JOINS),
            )
        raise Mismatch(
            "With the tokens in another order, a token gets a different output.",
            hint="Split and join the heads by a reshape and a transpose, not by one alone: what the heads "
            "give is (batch, heads, tokens, dim / heads), and tokens must come before heads to be joined.",
            look_for="(_ @ _).reshape() | (_ @ _).view(), reshape(), view()",
        )


@pytest.mark.component("MultiHeadSelfAttention")
@pytest.mark.because(
    "attention_weights_are_shares", "attention_averages_by_its_weights", "attention_knows_no_order"
)
@pytest.mark.weight(0.25)
def test_attention_scales_and_projects(student):
    """The scores are divided by sqrt(dim / heads), and what the heads give is projected."""
    component, size = attention_of(student), DIM // HEADS
    x = student.tensor(2, TOKENS, DIM)
    y = component(x, shape=(2, TOKENS, DIM))
    try:
        found = list(readings(component.weights(), dim=DIM, heads=HEADS, dim_head=size))
    except UnreadableWeights:
        return

    def fits(scale, projected=True):
        return any(
            same(y, attention(x, parts if projected else replace(parts, out=None), scale=scale))
            for parts in found
        )

    if fits(None):
        return
    if any(same(y, attention(x, replace(parts, v=parts.k, v_bias=parts.k_bias))) for parts in found):
        raise Mismatch(
            "The layer of the keys makes the values too.",
            hint="Three projections of x: queries, keys and values, each by weights of its own.",
            look_for="_.k() | _.key() | _.keys() | _.to_k() | _.w_k() | _.wk() | _.k_proj()",
        )
    if fits(None, projected=False):
        raise Mismatch(
            "What the heads give is returned as it is: the output projection is missing.",
            hint="A last linear layer from dim to dim, over the heads' results side by side.",
            look_for="return",
        )
    scores = "_ @ _.transpose() | _ @ _.mT | matmul(_, _.transpose()) | bmm(_, _.transpose())"
    for scale, said in ((1.0, "not divided by anything"), (DIM**-0.5, "divided by sqrt(dim)")):
        if fits(scale):
            raise Mismatch(
                f"The scores are {said}; they should be divided by sqrt(dim / heads), the root of a head's "
                "width.",
                hint="q @ k.transpose(-2, -1) / sqrt(dim / heads), before the softmax.",
                look_for=f"{scores}, softmax()"
                if scale == 1
                else "_ ** -0.5 | _ ** 0.5 | sqrt() | rsqrt(), scale",
            )
    for scale, said in ((size**0.5, "multiplied by sqrt(dim / heads)"), (1 / size, "divided by dim / heads")):
        if fits(scale):
            raise Mismatch(
                f"The scores are {said}; they should be divided by sqrt(dim / heads).",
                hint="q @ k.transpose(-2, -1) / sqrt(dim / heads), once, before the softmax.",
                look_for=f"_ ** -0.5 | _ ** 0.5 | sqrt() | rsqrt(), scale, {scores}",
            )


@pytest.mark.component("MultiHeadSelfAttention")
@pytest.mark.because("attention_has_its_shapes")
@pytest.mark.weight(0.25)
def test_attention_drops_out(student):
    """With dropout, the attention drops weights in training, and none in evaluation."""
    attention, x = attention_of(student, dropout=0.5), student.tensor(2, TOKENS, DIM)
    if not same(*attention.repeated(x, times=2)):
        raise Mismatch(
            "In evaluation two calls with the same input give different outputs.",
            hint="nn.Dropout is off in evaluation by itself; F.dropout needs training=self.training.",
            look_for=f"F.dropout(), dropout(), {RANDOM}",
            cause=Cause.RANDOM,
        )
    if same(*attention.repeated(x, times=2, train=True)):
        raise Mismatch(
            "With dropout=0.5, two calls in training give the same output: nothing is dropped.",
            hint="nn.Dropout(dropout), applied to the weights before they are multiplied with v.",
            look_for="dropout() | Dropout(), _ @ v | matmul(_, v)",
        )


@pytest.mark.component("MultiHeadSelfAttention")
@pytest.mark.because("attention_has_its_shapes", "attention_weights_are_shares")
@pytest.mark.weight(0.25)
def test_attention_weights_are_shown_before_dropout(student):
    """The weights that are returned are the softmax, before anything is dropped."""
    attention, x = attention_of(student, dropout=0.5), student.tensor(2, TOKENS, DIM)
    rest, trained = (with_weights(attention, x, HEADS, training=mode)[1] for mode in (False, True))
    zeros = int(((trained == 0) & (rest > 0)).sum())
    if zeros:
        raise Mismatch(
            f"In training with dropout=0.5, {zeros} of the {trained.numel()} weights that are returned are "
            "0: they were dropped.",
            hint="Keep the softmax before anything is dropped, and return that.",
            look_for="dropout()",
        )


def weights_dropped(component, x, parts):
    """How many of a single token's weights are dropped in training, as a share; and whether anything changes.

    Where there is one token, its weight is 1; where it is dropped, the last layer's bias is left.
    """
    bias = parts.out_bias.flatten()
    calls = list(component.repeated(x, times=300, train=True))
    rows = torch.stack([y.flatten(0, 1) for y in calls]).flatten(0, 1)
    shown = (rows != 0) * bias  # what the last layer gives may be dropped, too
    factor = (rows * shown).sum(dim=1, keepdim=True) / shown.pow(2).sum(dim=1, keepdim=True).clamp(min=1e-12)
    dropped = (rows - factor * shown).abs().amax(dim=1) < 1e-4 * rows.abs().max()
    return float(dropped.float().mean()), not all(same(y, calls[0]) for y in calls)


@pytest.mark.component("MultiHeadSelfAttention")
@pytest.mark.because("attention_has_its_shapes", "attention_scales_and_projects", "attention_drops_out")
@pytest.mark.weight(0.25)
def test_attention_drops_at_its_rate(student):
    """The share of the weights that is dropped in training is the argument dropout."""
    for rate in (0.25, 0.75):
        component, x = attention_of(student, heads=1, dropout=rate), student.tensor(2, 1, DIM)
        y = component(x, shape=(2, 1, DIM))
        found = [parts for parts in readings_of(component, heads=1) if same(y, attention(x, parts))]
        if not found:
            return
        share, changes = weights_dropped(component, x, found[0])
        if abs(share - rate) < 0.12:
            continue
        if changes and not share:
            raise Mismatch(
                "In training, no weight is dropped; what the attention returns is dropped in their place.",
                hint="Apply nn.Dropout(dropout) to the softmax, before it is multiplied with v.",
                look_for="dropout() | drop() | Dropout()",
            )
        raise Mismatch(
            f"With dropout={rate}, {share:.0%} of the weights are dropped in training.",
            hint="nn.Dropout(dropout), applied to the weights: the argument, not a number of your own.",
            look_for="dropout() | drop() | Dropout()" if changes else "softmax()",
        )


@pytest.mark.component("MultiHeadSelfAttention")
@pytest.mark.because("attention_has_its_shapes", "attention_averages_by_its_weights")
@pytest.mark.weight(0.25)
def test_attention_passes_gradients_on(student):
    """The gradient that reaches the tokens is the slope of what is computed from them."""
    attention, x = attention_of(student), 2 * student.tensor(2, TOKENS, DIM)
    cotangent = student.tensor(2, TOKENS, DIM)
    gradient = attention.gradients(x, cotangent).input
    for _ in range(6):
        step = 1e-3 * student.tensor(2, TOKENS, DIM)
        slope = float(((attention(x + step) - attention(x - step)) * cotangent).sum()) / 2
        stated = 0.0 if gradient is None else float((gradient * step).sum())
        if gradient is None or abs(slope - stated) > 3e-5 * max(float(gradient.norm()), 1e-3):
            raise Mismatch(
                "The gradient that reaches the tokens is not the slope of what is computed: it is cut off "
                "on its way through the weights or the values.",
                hint="Leave out detach(), .data and torch.no_grad(): queries, keys and values all learn.",
                look_for="detach() | no_grad() | _.data",
            )
