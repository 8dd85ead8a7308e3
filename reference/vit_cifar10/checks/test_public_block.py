"""Public checks of EncoderBlock."""

import pytest
import torch

from grader.kit import AffineFake, Cause, Mismatch, answer, named, same

DIM, HEADS, TOKENS = 22, 2, 6


def block_around(student, attention, **settings):
    """The block around a fake of its attention; None where it uses none: that is looked at when graded."""
    replaced = {"MultiHeadSelfAttention": attention}
    block = student.build("EncoderBlock", DIM, HEADS, replace=replaced, **settings)
    return block if block.constructions("MultiHeadSelfAttention") else None


def gains(block):
    """The names of the norms' gains: vectors of ones at the beginning."""
    return [
        name for name, value in block.weights().items() if value.numel() == DIM and bool((value == 1).all())
    ]


def with_silent_mlp(block):
    """The block with an MLP that gives 0, and norms that only normalize."""
    kept = gains(block)
    trained = [p.name for p in block.parameters if p.trainable]
    weights = block.weights()
    block.set_weights({name: 0 * weights[name] for name in trained if name not in kept})
    return block


def is_normalized(x):
    """Whether each token has the mean 0 and the variance 1 over its features."""
    return bool(x.mean(dim=-1).abs().max() < 0.01 and (x.pow(2).mean(dim=-1) - 1).abs().max() < 0.05)


NO_ATTENTION = AffineFake(scale=(0.0,), heads=HEADS)
MLP = "mlp() | feed_forward() | ff() | ffn()"
ATTENTION = "attention() | attn()"


@pytest.mark.component("EncoderBlock")
@pytest.mark.weight(0.25)
def test_block_keeps_the_shape(student):
    """EncoderBlock gives tokens of its input's shape."""
    student.build("EncoderBlock", 12, 3)(student.tensor(2, 5, 12), shape=(2, 5, 12))


@pytest.mark.component("EncoderBlock")
@pytest.mark.weight(0.25)
def test_block_normalizes_for_its_attention(student):
    """The attention gets normalized tokens: mean 0 and variance 1 over the features."""
    block = block_around(student, NO_ATTENTION)
    if block is None:
        return
    x = 2 * student.tensor(2, TOKENS, DIM) + 1
    y = with_silent_mlp(block)(x, shape=(2, TOKENS, DIM))
    if is_normalized(block.inputs_of("MultiHeadSelfAttention")[0]):
        return
    if is_normalized(y):
        raise Mismatch(
            "The norms come after the sums: what the block returns is normalized, and what its attention "
            "gets is not.",
            hint="x + attention(norm(x)), not norm(x + attention(x)); the same for the MLP.",
            look_for="body",
        )
    raise Mismatch(
        "The attention gets tokens that are not normalized.",
        hint="x + attention(norm(x)): the norm comes first, on what goes into the attention.",
        look_for=f"attention(x) | attn(x), {ATTENTION}",
    )


@pytest.mark.component("EncoderBlock")
@pytest.mark.because("block_keeps_the_shape", "block_normalizes_for_its_attention")
@pytest.mark.weight(0.25)
def test_block_adds_to_its_input(student):
    """Where the MLP gives 0, the block returns its input plus what its attention gives."""
    fake = AffineFake(scale=(0.7,), shift=(0.3,), roll=1, heads=HEADS)
    block = block_around(student, fake)
    if block is None:
        return
    x = 2 * student.tensor(2, TOKENS, DIM) + 1
    y = with_silent_mlp(block)(x, shape=(2, TOKENS, DIM))
    received = block.inputs_of("MultiHeadSelfAttention")[0]
    made = answer(fake, 0, received)
    if same(y, x + made, tolerance=1e-3):
        return
    if same(y, made, tolerance=1e-3):
        raise Mismatch(
            "What the attention gives replaces the tokens; it should be added to them.",
            hint="x = x + attention(norm(x))",
            look_for=ATTENTION,
        )
    if same(y, received + made, tolerance=1e-3):
        raise Mismatch(
            "What the attention gives is added to the normalized tokens; it should be added to the tokens "
            "as they came.",
            hint="x = x + attention(norm(x)): the x in front of the sum is not normalized.",
            look_for="body",
        )
    if float(y.abs().max()) < 1e-5:
        raise Mismatch(
            "Where the MLP gives 0, the block returns 0: what the MLP gives replaces the tokens.",
            hint="x = x + mlp(norm(x))",
            look_for=MLP,
        )
    if is_normalized(y):
        raise Mismatch(
            "Where the MLP gives 0, the block returns normalized tokens.",
            hint="x = x + mlp(norm(x)): the x in front of the sum is not normalized, nor is the sum.",
            look_for=MLP,
        )
    raise Mismatch(
        "Where the MLP gives 0, the block does not return its input plus what its attention gave.",
        hint="x = x + attention(norm(x)), then x = x + mlp(norm(x)).",
    )


def added_by_mlp(block, x):
    """What the MLP adds to the block's input and its attention's answer, which is 0."""
    return block(x, shape=tuple(x.shape)) - x


@pytest.mark.component("EncoderBlock")
@pytest.mark.because("block_adds_to_its_input")
@pytest.mark.weight(0.25)
def test_block_normalizes_for_its_mlp(student):
    """The MLP gets normalized tokens: what it adds does not grow with the tokens."""
    block = block_around(student, NO_ATTENTION)
    if block is None:
        return
    block.randomize()
    x = 2 * student.tensor(2, TOKENS, DIM)
    if not same(added_by_mlp(block, 3 * x), added_by_mlp(block, x), tolerance=1e-2):
        raise Mismatch(
            "For tokens that are three times as large, the MLP adds something else: it gets tokens that "
            "are not normalized.",
            hint="x = x + mlp(norm(x)), with a norm of its own.",
            look_for=f"mlp(x) | feed_forward(x) | ff(x) | ffn(x), {MLP}",
        )


@pytest.mark.component("EncoderBlock")
@pytest.mark.because("block_adds_to_its_input", "block_normalizes_for_its_mlp")
@pytest.mark.weight(0.25)
def test_block_has_its_mlp_after_its_attention(student):
    """The MLP gets what the attention has added to, not the block's input."""
    fake = AffineFake(roll=1, heads=HEADS)  # token 1 gets what token 0 was
    block = block_around(student, fake)
    if block is None:
        return
    block.randomize()
    x = student.tensor(2, TOKENS, DIM)
    changed = x.clone()
    changed[:, 0] += 2 * student.tensor(DIM)
    added = []
    for tokens in (x, changed):
        y = block(tokens, shape=tuple(x.shape))
        made = answer(fake, 0, block.inputs_of("MultiHeadSelfAttention")[0])
        added.append((y - tokens - made)[:, 1])
    if same(*added, tolerance=1e-4):
        raise Mismatch(
            "What the MLP adds to a token does not depend on what the attention added to it: the MLP gets "
            "the block's input.",
            hint="First x = x + attention(norm(x)), then x = x + mlp(norm(x)) with the new x.",
            look_for=MLP,
        )


@pytest.mark.component("EncoderBlock")
@pytest.mark.because("block_adds_to_its_input")
@pytest.mark.weight(0.25)
def test_block_has_an_mlp_that_is_not_linear(student):
    """The MLP has an activation between its two linear layers."""
    block = block_around(student, NO_ATTENTION)
    if block is None:
        return
    block.randomize()
    x = 2 * student.tensor(2, TOKENS, DIM)
    one, other, zero = (added_by_mlp(block, tokens) for tokens in (x, -x, 0 * x))
    if same(one + other, 2 * zero, tolerance=1e-3):
        raise Mismatch(
            "The MLP is linear: what it adds for x and for -x cancels out, but for the biases.",
            hint="nn.GELU() between the two linear layers; without it they are just one.",
            look_for="Sequential()",
        )


@pytest.mark.component("EncoderBlock")
@pytest.mark.weight(0.25)
def test_block_passes_its_sizes_on(student):
    """The attention gets dim and heads, and the MLP grows with mlp_ratio."""
    replaced = {"MultiHeadSelfAttention": AffineFake(heads=11)}
    small, large = (
        student.build("EncoderBlock", DIM, 11, mlp_ratio=ratio, dropout=0.25, replace=replaced)
        for ratio in (2.0, 3.0)
    )
    for given in small.constructions("MultiHeadSelfAttention"):
        for name, size in (("heads", 11), ("dim", DIM)):
            if name in given and given[name] != size:
                raise Mismatch(
                    f"The block was given {name}={size}, and makes its attention with {name}={given[name]}.",
                    hint="Hand it on: MultiHeadSelfAttention(dim, heads, dropout).",
                    look_for="MultiHeadSelfAttention()",
                )
        if 0.25 not in given.values():
            raise Mismatch(
                "The block was given dropout=0.25, and makes its attention without it.",
                hint="Hand it on: MultiHeadSelfAttention(dim, heads, dropout).",
                look_for="MultiHeadSelfAttention()",
            )
    grown = large.parameter_count - small.parameter_count
    if grown < 2 * DIM * DIM:
        raise Mismatch(
            f"With mlp_ratio=3 instead of 2 the block has {grown} more parameters; an MLP whose two layers "
            f"have the hidden width mlp_ratio * dim has at least {2 * DIM * DIM} more (dim={DIM}).",
            hint="nn.Linear(dim, hidden) and nn.Linear(hidden, dim), where hidden = int(dim * mlp_ratio).",
            look_for="Linear(dim, _)",
        )
    dropping = student.build("EncoderBlock", DIM, 11, dropout=0.5, replace=replaced)
    x = student.tensor(2, TOKENS, DIM)
    if not same(dropping(x), dropping(x)):
        raise Mismatch(
            "In evaluation two calls with the same input give different outputs.",
            hint="nn.Dropout is off in evaluation by itself; F.dropout needs training=self.training.",
            look_for="dropout() | Dropout()",
            cause=Cause.RANDOM,
        )


@pytest.mark.component("EncoderBlock")
@pytest.mark.because("block_normalizes_for_its_attention", "block_normalizes_for_its_mlp")
@pytest.mark.weight(0.25)
def test_block_has_two_norms(student):
    """The attention and the MLP have a norm each, with weights of their own."""
    block = block_around(student, NO_ATTENTION)
    if block is None:
        return
    found = gains(block)
    if len(found) != 1:
        return
    block.randomize()
    x, after = 2 * student.tensor(2, TOKENS, DIM), []
    for factor in (1, 2):
        block.set_weights({found[0]: factor * block.weights()[found[0]]})
        added = added_by_mlp(block, x)
        after.append((block.inputs_of("MultiHeadSelfAttention")[0], added))
    (seen, added), (seen_then, added_then) = after
    if not same(seen, seen_then) and not same(added, added_then):
        raise Mismatch(
            f"{named(found[0])} changes what the attention gets and what the MLP adds: both share one norm.",
            hint="Two norms, nn.LayerNorm(dim) each: one for the attention, one for the MLP.",
            look_for="LayerNorm(), norm2",
        )


@pytest.mark.component("EncoderBlock")
@pytest.mark.because("block_passes_its_sizes_on")
@pytest.mark.weight(0.25)
def test_block_drops_as_it_is_told(student):
    """With dropout=0 the block's MLP drops nothing in training; with more, it drops more."""
    x, noise = student.tensor(4, TOKENS, DIM), []
    for rate in (0.0, 0.25, 0.45):
        block = block_around(student, NO_ATTENTION, dropout=rate)
        if block is None:
            return
        block.randomize()
        drawn = torch.stack(list(block.repeated(x, times=40, train=True))) - x
        still = block(x) - x
        size = still.pow(2).sum(dim=-1, keepdim=True).clamp(min=1e-12)
        same_direction = (drawn * still).sum(dim=-1, keepdim=True) / size * still
        if not rate and not same(same_direction, drawn, tolerance=1e-3):
            raise Mismatch(
                "With dropout=0, some of what the MLP computes is dropped in training.",
                hint="Use the argument dropout as the rate, not a number of your own.",
                look_for="dropout() | Dropout()",
            )
        noise.append(float(drawn.var(dim=0).mean() / still.pow(2).mean().clamp(min=1e-12)))
    _, low, high = noise
    # the variance grows by p / (1 - p), or by p / (1 - p) ** 2: by 9 if the rate is doubled
    if low > 1e-4 and not 0.7 < high / low < 6:
        raise Mismatch(
            "From dropout=0.25 to 0.45, what the MLP adds does not vary more as it should: another rate than "
            "the argument is used.",
            hint="nn.Dropout(dropout): the argument as it is.",
            look_for="dropout() | Dropout()",
        )


@pytest.mark.component("EncoderBlock")
@pytest.mark.because("block_keeps_the_shape", "block_adds_to_its_input")
@pytest.mark.weight(0.25)
def test_block_passes_gradients_on(student):
    """The gradient that reaches the tokens is the slope of what is computed from them."""
    block = block_around(student, AffineFake(scale=(0.7,), shift=(0.3,), roll=1, heads=HEADS))
    if block is None:
        return
    block.randomize()
    x, cotangent = student.tensor(2, TOKENS, DIM), student.tensor(2, TOKENS, DIM)
    gradient = block.gradients(x, cotangent).input
    for _ in range(6):
        step = 1e-3 * student.tensor(2, TOKENS, DIM)
        slope = float(((block(x + step) - block(x - step)) * cotangent).sum()) / 2
        stated = 0.0 if gradient is None else float((gradient * step).sum())
        if gradient is None or abs(slope - stated) > 3e-5 * max(float(gradient.norm()), 1e-3):
            raise Mismatch(
                "The gradient that reaches the tokens is not the slope of what is computed: it is cut off "
                "in the attention, in the MLP or around them.",
                hint="Leave out detach(), .data and torch.no_grad(): x = x + attention(norm(x)) as it is.",
                look_for="detach() | no_grad() | _.data",
            )
