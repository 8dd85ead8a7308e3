"""The checks that students have, and run on their own machine as often as they like.

Each asks one question. The first line of its docstring is what the student reads.
"""

from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from grader.kit import (
    PREDICTED,
    TRUE,
    AffineFake,
    Cause,
    Fake,
    Mismatch,
    answer,
    batches,
    classes_named,
    classified_data,
    csv_rows,
    curves,
    heat_maps,
    named,
    numbered_images,
    pictures,
    quoted,
    same,
    trainable_data,
)

# >>> ONLY full
from grader.kit.convolutions import batch_norms, convolutions

# <<< ONLY
from grader.kit.transformers import UnreadableWeights, attention, readings

# 3 x 3 patches of 4 x 4 pixels, 2 channels
SIDE, PATCH, CHANNELS, WIDTH = 12, 4, 2, 7
ROWS = SIDE // PATCH
DIM, HEADS, TOKENS = 22, 2, 6

# kinds of code by which a line is found
OUTPUT = "return, _ @ _.transpose()"
RANDOM = "randn() | rand() | randn_like() | rand_like() | randperm()"


def moved(part):
    """A part with other weights than its first ones: what begins with zeros shows nothing."""
    part.randomize()
    return part


def embedding(student):
    """PatchEmbedding as a function from images to tokens, with weights that are not zero by chance."""
    component = moved(student.build("PatchEmbedding", SIDE, PATCH, CHANNELS, WIDTH))
    return lambda images: component(images, shape=(len(images), ROWS**2, WIDTH))


@pytest.mark.component("PatchEmbedding")
def test_patches_have_their_shape(student):
    """PatchEmbedding gives (batch, patches, dim)."""
    component = student.build("PatchEmbedding", 8, 4, 3, 6)
    found = component.call("", student.tensor(2, 3, 8, 8), training=False).returned.tensor()
    if tuple(found.shape) == (2, 6, 4):
        raise Mismatch(
            "For 2 images of 4 patches and dim=6, the tokens are (2, 6, 4): (batch, dim, patches); they "
            "should be (batch, patches, dim).",
            hint="Swap the last two axes at the end.",
            look_for="return",
        )
    component(student.tensor(2, 3, 8, 8), shape=(2, 4, 6))


@pytest.mark.component("PatchEmbedding")
@pytest.mark.because("patches_have_their_shape")
@pytest.mark.weight(0.25)
def test_patches_stand_row_by_row(student):
    """Each patch makes one token, and the tokens stand row by row: patch n changes token n and no other."""
    embed, count = embedding(student), ROWS**2
    image = student.tensor(1, CHANNELS, SIDE, SIDE)
    changed = image.repeat(count, 1, 1, 1)
    for number in range(count):
        row, column = divmod(number, ROWS)
        place = slice(row * PATCH, (row + 1) * PATCH), slice(column * PATCH, (column + 1) * PATCH)
        changed[number][:, place[0], place[1]] += 3 * student.tensor(CHANNELS, PATCH, PATCH)
    moves = (embed(changed) - embed(image)).abs().amax(dim=-1) > 1e-5
    seen = [moves[number].nonzero().flatten().tolist() for number in range(count)]
    if seen == [[number] for number in range(count)]:
        return
    if seen == [[number % ROWS * ROWS + number // ROWS] for number in range(count)]:
        raise Mismatch(
            "Patch 1, right of the first one, makes token 3: the tokens stand column by column.",
            hint="In the flattened grid the column changes fastest: (rows columns), not (columns rows).",
            look_for="transpose(2, 3) | permute() | rearrange() | Rearrange()",
        )
    number = next(number for number in range(count) if seen[number] != [number])
    near = all(
        number in tokens
        and all(max(abs(number // ROWS - t // ROWS), abs(number % ROWS - t % ROWS)) < 2 for t in tokens)
        for number, tokens in enumerate(seen)
    )
    if near:
        raise Mismatch(
            f"Changing the pixels of one patch changes the tokens of its neighbors, too ({len(seen[4])} "
            "tokens for the patch in the middle): the patches overlap.",
            hint="kernel_size and stride are both patch_size, and nothing is padded.",
            look_for="Conv2d() | unfold() | Unfold()",
        )
    row, column = divmod(number, ROWS)
    tokens = ", ".join(map(str, seen[number])) or "none"
    raise Mismatch(
        f"Changing the pixels of patch {number} of 0 to {count - 1} (row {row}, column {column}) changes "
        f"these tokens: {tokens}. It should change token {number} alone.",
        hint="A patch's rows lie apart in memory: rearrange the axes before they are flattened.",
        look_for="reshape() | view() | rearrange() | Rearrange()",
    )


@pytest.mark.component("PatchEmbedding")
@pytest.mark.because("patches_have_their_shape")
@pytest.mark.weight(0.25)
def test_patches_have_all_channels(student):
    """Every channel of the image reaches the tokens."""
    embed = embedding(student)
    image = student.tensor(1, CHANNELS, SIDE, SIDE)
    before = embed(image)
    for channel in range(CHANNELS):
        changed = image.clone()
        changed[:, channel] += 3 * student.tensor(SIDE, SIDE)
        if same(embed(changed), before):
            raise Mismatch(
                f"Changing channel {channel} of an image with {CHANNELS} channels changes no token.",
                hint="A patch has in_channels * patch_size**2 numbers.",
                look_for="_[:, :1] | _[:, 0] | _[:, 0:1], Conv2d(1, _)",
            )


@pytest.mark.component("PatchEmbedding")
@pytest.mark.because("patches_have_their_shape", "patches_stand_row_by_row", "patches_have_all_channels")
@pytest.mark.weight(0.25)
def test_patches_are_mapped_linearly(student):
    """The map from a patch to its token is linear: no norm and no activation."""
    embed = embedding(student)
    x, z = student.tensor(2, CHANNELS, SIDE, SIDE), student.tensor(2, CHANNELS, SIDE, SIDE)
    zero = embed(0 * x)
    if same(embed(x + z) - zero, embed(x) - zero + embed(z) - zero, tolerance=1e-3):
        return
    if same(embed(2000 * x), embed(1000 * x), tolerance=1e-2):
        raise Mismatch(
            "An image that is twice as bright gives the same tokens: they are normalized.",
            hint="Only the linear map here: the norms belong to the blocks.",
            look_for="norm() | LayerNorm()",
        )
    raise Mismatch(
        "PatchEmbedding is not linear: f(x + z) - f(0) is not (f(x) - f(0)) + (f(z) - f(0)).",
        hint="Only the linear map here: no activation, and no norm.",
        look_for="gelu() | relu() | GELU() | ReLU() | silu() | SiLU() | tanh() | sigmoid()",
    )


@pytest.mark.component("sinusoidal_positions")
def test_positions_begin_with_zero_and_one(student):
    """At position 0 all sines are 0 and all cosines 1."""
    found = student.call("sinusoidal_positions", 5, 8).returned.array(5, 8)
    if abs(found[0].sum() - 4) > 1e-5:
        raise Mismatch(
            "At position 0, the sines should be 0 and the cosines 1.",
            hint="The positions count from 0.",
            look_for="arange(1, _)",
        )
    if abs(found[0, 0]) > 1e-5:
        raise Mismatch(
            "At position 0, column 0 holds 1; it should hold the sine of 0, which is 0.",
            hint="The sines stand in the even columns, the cosines in the odd ones.",
            look_for="cos()",
        )


def pairs_of_columns(student, tokens, dim):
    """The sines and the cosines of a table, each (tokens, dim / 2), alternating or in two halves."""
    found = student.call("sinusoidal_positions", tokens, dim).returned.array(tokens, dim)
    if dim > 2 and abs(found[0, 1]) < 1e-5:  # at position 0 a second sine
        return found[:, : dim // 2], found[:, dim // 2 :]
    return found[:, 0::2], found[:, 1::2]


@pytest.mark.component("sinusoidal_positions")
@pytest.mark.because("positions_begin_with_zero_and_one")
@pytest.mark.weight(0.25)
def test_positions_pair_a_sine_with_its_cosine(student):
    """The sine and the cosine of a pair are of the same angle: their squares add up to 1."""
    sines, cosines = pairs_of_columns(student, 7, 10)
    off = np.abs(sines**2 + cosines**2 - 1) > 1e-3
    if off.any():
        position, pair = np.argwhere(off)[0].tolist()
        raise Mismatch(
            f"With dim=10, pair {pair} (counted from 0) at position {position} holds "
            f"{sines[position, pair]:.3f} and {cosines[position, pair]:.3f}, which are not sine and cosine "
            "of one angle: their squares do not add up to 1.",
            hint="One exponent for each pair, 2i / dim: the cosine takes its sine's angle.",
            look_for="10000 ** _ | 10000.0 ** _, exp()",
        )


@pytest.mark.component("sinusoidal_positions")
@pytest.mark.because("positions_begin_with_zero_and_one", "positions_pair_a_sine_with_its_cosine")
@pytest.mark.weight(0.25)
def test_positions_turn_slower_pair_by_pair(student):
    """With dim=8 each pair turns ten times slower than the one before it: by 1, 0.1, 0.01 and 0.001."""
    sines, cosines = pairs_of_columns(student, 3, 8)
    angles = np.arctan2(sines[1], cosines[1])
    if not np.allclose(angles, [1, 0.1, 0.01, 0.001], rtol=0.02, atol=1e-5):
        doubled = np.allclose(angles, [1, 1e-2, 1e-4, 1e-6], rtol=0.05, atol=1e-6)
        raise Mismatch(
            f"From position 0 to 1, the four pairs turn by {', '.join(f'{angle:.3g}' for angle in angles)}; "
            "with dim=8 it should be by 10000^(-2i/8): 1, 0.1, 0.01 and 0.001.",
            hint="torch.arange(0, dim, 2) is 2i already." if doubled else "pos / 10000^(2i / dim)",
            look_for="10000 ** _ | 10000.0 ** _, exp(), _ ** _, log()"
            if doubled
            else "log(), _ ** _, exp() | pow()",
        )


def attention_of(student, dim=DIM, heads=HEADS, dropout=0.0):
    """The attention with weights that are not zero by chance."""
    return moved(student.build("MultiHeadSelfAttention", dim, heads, dropout=dropout))


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


@pytest.mark.component("MultiHeadSelfAttention")
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
    moved(block)
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
    moved(block)
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
    moved(block)
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
        student.build("EncoderBlock", DIM, 11, mlp_ratio=ratio, replace=replaced) for ratio in (2.0, 3.0)
    )
    for given in small.constructions("MultiHeadSelfAttention"):
        for name, size in (("heads", 11), ("dim", DIM)):
            if name in given and given[name] != size:
                raise Mismatch(
                    f"The block was given {name}={size}, and makes its attention with {name}={given[name]}.",
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
    moved(block)
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


# of the model: 3 x 3 patches of 4 x 4 pixels, 2 channels
MODEL = {"image_size": 12, "patch_size": 4, "in_channels": 2, "num_classes": 5, "dim": 20}
PATCHES, CLASSES, FEATURES, DEPTH, IMAGES = 9, 5, 20, 3, 3
POOLS = ("cls", "mean")
CAT = "cat() | concat()"


class Around:
    """The model around known patches and fakes of its blocks.

    Attributes:
        patches: (images, patches, dim), as the patch embedding gives them.
        model: None where it does not use EncoderBlock: what stands inline is looked at when it is graded.
        first: What the first block gets, (images, tokens, dim).
        scores: (images, classes).
    """

    def __init__(self, student, *, blocks=None, patches=None, prepare=moved, **settings):
        self.patches = student.tensor(IMAGES, PATCHES, FEATURES) if patches is None else patches
        places = {
            "PatchEmbedding": Fake.rows(self.patches),
            "EncoderBlock": blocks or AffineFake(parameters=7, heads=2),
        }
        sizes = {**MODEL, "depth": DEPTH, "heads": 2, "dropout": 0.0, **settings}
        self.model = student.build("VisionTransformer", replace=places, **sizes)
        if not self.model.constructions("EncoderBlock"):
            self.model = None
            return
        prepare(self.model)
        self.images = torch.from_numpy(numbered_images(IMAGES, student.next_seed(), (2, 12, 12)))
        self.scores = self.model(self.images, shape=(IMAGES, CLASSES))
        self.first = self.model.inputs_of("EncoderBlock")[0]
        if self.first.ndim != 3 or self.first.shape[::2] != (IMAGES, FEATURES):
            raise Mismatch(
                f"The blocks get a tensor of the shape {tuple(self.first.shape)}; it should be (batch, "
                f"tokens, dim): {IMAGES} images and dim={FEATURES}."
            )
        pool = settings.get("pool", "cls")
        tokens, expected = self.first.shape[1], PATCHES + (pool == "cls")
        if tokens != expected:
            raise Mismatch(
                f"With pool={pool!r} and {PATCHES} patches, the blocks get {tokens} tokens; there should be "
                f"{expected}.",
                hint="A class token stands in front of the patches with pool='cls', and only then.",
                look_for=CAT,
            )

    def blocks_called(self):
        """The numbers of the blocks in the order in which they are called."""
        return [call.instance for call, _ in self.model.calls if call.component == "EncoderBlock"]


def with_zeros(model):
    """The model with all that learns set to zero: what is left does not learn."""
    weights = model.weights()
    model.set_weights({p.name: 0 * weights[p.name] for p in model.parameters if p.trainable})
    return model


@pytest.mark.component("VisionTransformer")
@pytest.mark.parametrize("pool", ["cls", "mean"])
def test_model_gives_scores(student, pool):
    """An image becomes a score for every class, with either way of pooling and either kind of positions."""
    for positions in ("learned", "sinusoidal"):
        sizes = {"image_size": 8, "num_classes": 5, "dim": 12, "depth": 2, "heads": 3}
        model = student.build("VisionTransformer", **sizes, positions=positions, pool=pool)
        model(student.tensor(2, 3, 8, 8), shape=(2, 5))
        tokens = 5 if pool == "cls" else 4
        shown = model.call("attention", student.tensor(2, 3, 8, 8), training=False).returned
        if pool == "mean" and tuple(shown.tensor().shape) == (2, 3, 5, 5):
            raise Mismatch(
                "With pool='mean' and 4 patches there are 5 tokens; there should be no class token.",
                hint="Make the class token, and put it in front, only with pool='cls'.",
                look_for=CAT,
            )
        if shown.tensor(2, None, tokens, tokens).shape[1] != 3:
            raise Mismatch(
                f"With heads=3, attention gives the weights of {shown.tensor().shape[1]} heads.",
                hint="Hand the sizes on: EncoderBlock(dim, heads, mlp_ratio, dropout).",
                look_for="EncoderBlock()",
            )


@pytest.mark.component("VisionTransformer")
@pytest.mark.because("model_gives_scores")
@pytest.mark.weight(0.25)
def test_model_has_its_class_token_in_front(student):
    """With pool='cls', the blocks get the class token first, and then the patches with their positions."""
    around = Around(student)
    if around.model is None:
        return
    rest = around.first[:, 1:] - around.patches
    if same(rest[1:], rest[:-1], tolerance=1e-3):
        return
    behind = around.first[:, :PATCHES] - around.patches
    if same(behind[1:], behind[:-1], tolerance=1e-3):
        raise Mismatch(
            "The class token stands behind the patches; it should stand in front of them.",
            hint="torch.cat([class_token, patches], dim=1)",
            look_for=CAT,
        )
    raise Mismatch(
        "What the blocks get behind the first token is not the patches, each plus something that all "
        "images share.",
        hint="torch.cat([class_token, patches], dim=1), and then tokens + positions.",
        look_for=CAT,
    )


@pytest.mark.component("VisionTransformer")
@pytest.mark.because("model_gives_scores", "model_has_its_class_token_in_front")
@pytest.mark.weight(0.25)
def test_model_tells_places_apart(student):
    """Each patch gets a position of its own: the same patch at two places makes two tokens."""
    alike = student.tensor(IMAGES, 1, FEATURES).repeat(1, PATCHES, 1)
    for pool in POOLS:
        around = Around(student, pool=pool, patches=alike)
        if around.model is None:
            return
        found = around.first[0, -PATCHES:]
        distances = (found[:, None] - found[None]).abs().amax(dim=-1) + torch.eye(PATCHES)
        if distances.min() < 1e-5:
            raise Mismatch(
                f"With pool={pool!r}, equal patches make equal tokens: the model cannot tell where a patch "
                "was.",
                hint="tokens + positions, before the first block.",
                look_for=CAT,
            )


@pytest.mark.component("VisionTransformer")
@pytest.mark.because("model_has_its_class_token_in_front", "model_tells_places_apart")
@pytest.mark.weight(0.25)
def test_model_has_fixed_positions(student):
    """With positions='sinusoidal', the table is added as it is: position 0 belongs to the class token."""
    if Around(student, positions="sinusoidal").model is None:
        return
    table = student.attempted(
        lambda: student.call("sinusoidal_positions", PATCHES + 1, FEATURES).returned.array(
            PATCHES + 1, FEATURES
        )
    )
    if table is None:
        return
    table = torch.from_numpy(table).float()
    for pool in POOLS:
        around = Around(student, pool=pool, positions="sinusoidal")
        if around.model is None:
            return
        extra = int(pool == "cls")
        rest = (around.first[:, extra:] - around.patches)[0]
        if same(rest, table[extra : PATCHES + extra], tolerance=1e-3):
            continue
        if extra and same(rest, table[:PATCHES], tolerance=1e-3):
            raise Mismatch(
                "With pool='cls' and positions='sinusoidal', the first patch has position 0; that is the "
                "class token's, and the patches have the ones from 1 on.",
                hint="Put the class token in front first, then add sinusoidal_positions(patches + 1, dim).",
                look_for="_ + self.positions | self.positions + _, cat()",
            )
        zero = Around(student, pool=pool, positions="sinusoidal", prepare=with_zeros)
        left = (zero.first[:, extra:] - zero.patches)[0]
        if float(left.abs().max()) < 1e-6:
            fresh = Around(student, pool=pool, positions="sinusoidal", prepare=lambda model: model)
            begins = (fresh.first[:, extra:] - fresh.patches)[0]
            if same(begins, table[extra : PATCHES + extra], tolerance=1e-3):
                raise Mismatch(
                    "With positions='sinusoidal', the table is a parameter that learns; it should stay as "
                    "it is.",
                    hint="A buffer does not learn: self.register_buffer('positions', table).",
                    look_for="Parameter(sinusoidal_positions()) | Parameter(sinusoidal_positions()[None]), "
                    "Parameter()",
                )
            raise Mismatch(
                "With positions='sinusoidal', the positions are learned, and begin with other numbers than "
                "sinusoidal_positions gives.",
                hint="Ask for positions == 'sinusoidal' where the positions are made.",
                look_for="sinusoidal_positions()",
            )
        raise Mismatch(
            f"With pool={pool!r} and positions='sinusoidal', what is added to the patches is not what "
            f"sinusoidal_positions({PATCHES + extra}, dim) gives"
            + (", from position 1 on." if extra else "."),
            look_for="sinusoidal_positions()",
        )


@pytest.mark.component("VisionTransformer")
@pytest.mark.because("model_has_its_class_token_in_front", "model_tells_places_apart")
@pytest.mark.weight(0.25)
def test_model_learns_its_positions_and_its_class_token(student):
    """The class token and, with positions='learned', the positions are parameters: training changes them."""
    around = Around(student, prepare=with_zeros)
    if around.model is None:
        return
    if float((around.first[:, 1:] - around.patches).abs().max()) > 1e-5:
        raise Mismatch(
            "With all that learns set to 0, positions are added to the patches all the same: they do not "
            "learn.",
            hint="With positions='learned', they are an nn.Parameter, (1, tokens, dim).",
            look_for="register_buffer(), positions",
        )
    if float(around.first[:, 0].abs().max()) > 1e-6:
        raise Mismatch(
            "With all that learns set to 0, there is a class token all the same: it does not learn.",
            hint="self.class_token = nn.Parameter(torch.zeros(1, 1, dim))",
            look_for="randn(1, 1, _) | zeros(1, 1, _) | ones(1, 1, _) | register_buffer(), class_token",
        )


@pytest.mark.component("VisionTransformer")
@pytest.mark.because("model_has_fixed_positions", "model_learns_its_positions_and_its_class_token")
@pytest.mark.weight(0.25)
def test_model_gives_its_class_token_a_position(student):
    """The class token has a position, too: position 0."""
    for positions in ("sinusoidal", "learned"):
        around = Around(student, positions=positions)
        if around.model is None:
            return
        learned = {p.name: p.shape for p in around.model.parameters if p.trainable}
        token, weights = around.first[0, 0], around.model.weights()
        bare = [n for n in learned if weights[n].numel() == FEATURES and same(weights[n].flatten(), token)]
        if bare:
            raise Mismatch(
                f"With positions={positions!r}, {named(bare[0])} goes into the blocks as it is: no position "
                "is added to the class token.",
                hint="Put the class token in front of the patches first, then add a position to every "
                "token, patches + 1 of them.",
                look_for=CAT,
            )


@pytest.mark.component("VisionTransformer")
@pytest.mark.because("model_gives_scores")
@pytest.mark.weight(0.25)
def test_model_runs_its_blocks_in_order(student):
    """depth blocks follow each other, each with weights of its own and the sizes that the model was given."""
    around = Around(student, mlp_ratio=1.5)
    if around.model is None:
        return
    called = around.blocks_called()
    if len(called) != DEPTH:
        raise Mismatch(
            f"With depth={DEPTH}, {len(called)} blocks are called.",
            hint="for block in self.blocks: x = block(x), for all of them.",
            look_for="blocks[:-1] | blocks[:_], range(), for",
        )
    if len(set(called)) < DEPTH:
        raise Mismatch(
            f"With depth={DEPTH}, the same block is called several times: its weights are used again.",
            hint="[block] * depth repeats one block; construct depth of them.",
            look_for="_ * depth, EncoderBlock()",
        )
    for before, seen in zip(
        around.model.inputs_of("EncoderBlock"), around.model.inputs_of("EncoderBlock")[1:], strict=False
    ):
        if not same(seen, before, tolerance=1e-3):  # these blocks hand on what they get
            raise Mismatch(
                "What a block gets is not what the block before it gave.",
                hint="for block in self.blocks: x = block(x)",
                look_for="for",
            )
    sizes, defaults = {"dim": FEATURES, "heads": 2, "mlp_ratio": 1.5}, {"mlp_ratio": 4.0}
    for given in around.model.constructions("EncoderBlock"):
        for name, size in sizes.items():
            got = given.get(name, defaults.get(name))
            if got is not None and got != size:
                raise Mismatch(
                    f"The model was given {name}={size}, and makes its blocks with {name}={got}.",
                    hint="EncoderBlock(dim, heads, mlp_ratio, dropout)",
                    look_for="EncoderBlock()",
                )


@pytest.mark.component("VisionTransformer")
@pytest.mark.because("model_gives_scores", "model_has_its_class_token_in_front")
@pytest.mark.weight(0.25)
def test_model_pools_as_it_is_told(student):
    """pool='cls' classifies the first token, pool='mean' the mean of all tokens."""
    for pool in POOLS:
        base = student.tensor(1, PATCHES, FEATURES)
        patches = base.repeat(IMAGES, 1, 1)
        patches[1, 0] += 3 * student.tensor(FEATURES)  # an image with another first patch
        patches[2, PATCHES - 1] += 3 * student.tensor(FEATURES)  # and one with another last patch
        around = Around(student, pool=pool, patches=patches)
        if around.model is None:
            return
        first, last = (not same(around.scores[n], around.scores[0]) for n in (1, 2))
        if pool == "cls" and (first or last):
            raise Mismatch(
                "With pool='cls' and blocks that mix no tokens, the scores depend on patches: it is not "
                "the class token alone that is classified.",
                hint="x[:, 0] with pool='cls', x.mean(dim=1) with pool='mean'.",
                look_for="mean(), _[:, -1]",
            )
        if pool == "mean" and not (first and last):
            depends = "on the first patch alone" if first else "on the last patch, and not on the first one"
            raise Mismatch(
                f"With pool='mean' and blocks that mix no tokens, the scores depend {depends}."
                if first or last
                else "With pool='mean' and blocks that mix no tokens, the scores depend on no patch.",
                hint="x.mean(dim=1) over all tokens: with pool='mean' there is no class token to leave out.",
                look_for="_[:, 1:], _[:, 0]",
            )


@pytest.mark.component("VisionTransformer")
@pytest.mark.because("model_gives_scores", "model_pools_as_it_is_told")
@pytest.mark.weight(0.25)
def test_model_gives_no_probabilities(student):
    """The scores are those before any softmax: negative and positive, and they add up to nothing fixed."""
    around = Around(student, pool="mean")
    if around.model is None:
        return
    scores = [around.scores]
    weights = {p.name: around.model.weights()[p.name] for p in around.model.parameters if p.trainable}
    for factor in (-1, 4, -4):  # scores of one sign by chance are so only once
        around.model.set_weights({name: factor * value for name, value in weights.items()})
        scores.append(around.model(around.images, shape=(IMAGES, CLASSES)))
    found = torch.stack(scores)
    if bool((found >= 0).all()) or bool((found <= 0).all()):
        sums = same(found.exp().sum(dim=-1) if found.max() <= 0 else found.sum(dim=-1), torch.ones(4, IMAGES))
        raise Mismatch(
            f"The scores all have one sign{', as those of a softmax do' if sums else ''}.",
            hint="Nothing after the last linear layer: the loss applies the softmax itself.",
            look_for="softmax() | Softmax() | log_softmax() | sigmoid() | Sigmoid() | relu() | ReLU()",
        )


@pytest.mark.component("VisionTransformer")
@pytest.mark.because("model_gives_scores", "model_runs_its_blocks_in_order", "model_gives_no_probabilities")
@pytest.mark.weight(0.25)
def test_model_normalizes_at_its_end(student):
    """What is classified is normalized: ten times larger tokens from the last block give the same scores."""
    for pool in POOLS:
        small, large = (
            AffineFake(scale=(1.0, 1.0, factor), parameters=7, heads=2) for factor in (30.0, 300.0)
        )
        one = Around(student, pool=pool, blocks=small)
        if one.model is None:
            return
        weights = one.model.weights()
        other = Around(
            student,
            pool=pool,
            blocks=large,
            patches=one.patches,
            prepare=lambda model, held=weights: model.set_weights(held),
        )
        if not same(other.scores, one.scores, tolerance=1e-2):
            raise Mismatch(
                f"With pool={pool!r} and a last block that gives ten times larger tokens, the scores are "
                "others: nothing is normalized after the last block.",
                hint="self.norm = nn.LayerNorm(dim), after the last block and before the linear layer.",
                look_for="head() | classifier() | fc()",
            )


SMALL = {"image_size": 8, "patch_size": 4, "in_channels": 2, "num_classes": 5, "dim": 12, "heads": 2}


@pytest.mark.component("VisionTransformer")
@pytest.mark.because("model_gives_scores")
@pytest.mark.weight(0.25)
def test_model_shows_its_last_block(student):
    """attention shows the last block: with other weights of the last block, it shows others."""
    one, two = (
        student.build("VisionTransformer", **SMALL, depth=depth, mlp_ratio=2.0, dropout=0.0)
        for depth in (1, 2)
    )
    first, held = one.weights(), two.randomize()
    images = student.tensor(2, 2, 8, 8)

    def shown():
        return two.call("attention", images, training=False).returned.tensor(2, 2, 5, 5)

    before = shown()
    if not same(before.sum(dim=-1), torch.ones(2, 2, 5), tolerance=1e-3):
        return  # the attention's own fault, perhaps: it is asked about its weights
    own = [name for name in held if name not in first]  # of the second block
    two.set_weights({name: held[name] + student.tensor(*held[name].shape) for name in own})
    if own and same(shown(), before):
        raise Mismatch(
            f"With other weights of the last block ({named(own[0])} and further ones), attention shows what "
            "it showed before: the weights are those of another block.",
            hint="Run all blocks but the last, and ask the last one's attention for its weights.",
            look_for="blocks[0]",
        )


@pytest.mark.component("VisionTransformer")
@pytest.mark.because("model_shows_its_last_block", "model_tells_places_apart")
@pytest.mark.weight(0.25)
def test_model_shows_attention_to_normalized_tokens(student):
    """In attention, the last block's attention gets its normalized tokens, as it does in forward."""
    settings = {**SMALL, "depth": 1, "mlp_ratio": 2.0, "dropout": 0.0, "pool": "mean"}
    patches, held, shown = student.tensor(2, 4, 12), None, []
    images = torch.from_numpy(numbered_images(2, student.next_seed(), (2, 8, 8)))

    def without_positions(model):
        weights = held or moved(model).weights()
        return {n: 0 * w if w.numel() == 4 * 12 and w.shape[-1] == 12 else w for n, w in weights.items()}

    tokens = student.build(
        "VisionTransformer",
        replace={"PatchEmbedding": Fake.rows(patches), "EncoderBlock": AffineFake(heads=2)},
        **settings,
    )
    if not tokens.constructions("EncoderBlock"):
        return
    tokens.set_weights(without_positions(tokens))
    tokens(images, shape=(2, 5))
    if not same(tokens.inputs_of("EncoderBlock")[0], patches):
        return  # what else is added cannot be taken away here
    for factor in (1, 5):
        model = student.build(
            "VisionTransformer", replace={"PatchEmbedding": Fake.rows(factor * patches)}, **settings
        )
        held = without_positions(model)
        model.set_weights(held)
        shown.append(model.call("attention", images, training=False).returned.tensor(2, 2, 4, 4))
    if not same(*shown, tolerance=2e-2):
        raise Mismatch(
            "With tokens that are five times as large, attention shows other weights: the last block's "
            "attention does not get normalized tokens there.",
            hint="In the block, the norm comes before the attention; so it does here.",
            look_for="attention(x, _) | attention(x, return_weights=True) | attn(x, _), attention(_, "
            "return_weights=True) | attn(_, return_weights=True)",
        )


# >>> ONLY full
# of the class token, from two heads: itself, then 3 x 3 patches; their mean is MEAN_ROW
MEAN_ROW = [0.20, 0.05, 0.10, 0.15, 0.04, 0.20, 0.06, 0.08, 0.02, 0.10]
FIRST_HEAD = [0.30, 0.09, 0.02, 0.17, 0.07, 0.12, 0.04, 0.03, 0.01, 0.15]


class Mapped:
    """attention_map of a model with known attention: the map, its patches' values, what was called.

    Attributes:
        weights: (heads, tokens, tokens), whose first row is that of the class token.
        map: (height, width).
        patches: (rows, columns), at the middle of each patch.
    """

    def __init__(self, student, training=False, weights=None):
        if weights is None:
            weights = (2 * student.tensor(2, 10, 10)).softmax(dim=-1)
            head, mean = torch.tensor(FIRST_HEAD), torch.tensor(MEAN_ROW)
            weights[:, 0] = torch.stack([head, 2 * mean - head])
        self.weights, heads = weights, len(weights)
        pool = "cls" if weights.shape[-1] == 10 else "mean"
        sizes = {"image_size": 12, "patch_size": 4, "dim": 8, "depth": 1, "heads": heads, "pool": pool}
        fake = Fake.script(
            [0.0],
            parameters={"weight": (1,)},
            methods={"attention": Fake.script([weights[None]])},
            like=("VisionTransformer", sizes),
        )
        model = student.keep(fake, "attention_map")
        student.component(model).call("train" if training else "eval")
        outcome = student.call("attention_map", model, student.tensor(3, 12, 12))
        self.map = outcome.returned.array(12, 12)
        self.patches = self.map[2::4, 2::4]
        self.calls = outcome.calls_of("attention")
        self.training_after = student.component(model).get("training").truth()

    def shows(self, values):
        """Whether the patches' values are these, divided by their maximum or stretched from 0 to 1."""
        grid = np.asarray(values, dtype=float).reshape(3, 3)
        spread = grid.max() - grid.min()
        scaled = [grid / grid.max(), (grid - grid.min()) / spread if spread else grid]
        own = self.patches / max(self.map.max(), 1e-9)
        return any(np.allclose(own, each, atol=2e-3) for each in scaled)


@pytest.mark.component("attention_map")
@pytest.mark.weight(0.25)
def test_map_has_a_value_for_each_patch(student):
    """Each patch's value stands on all its pixels: the map is made of equal squares."""
    found = Mapped(student).map
    blocks = found.reshape(3, 4, 3, 4)
    if np.abs(blocks - blocks[:, :1, :, :1]).max() > 1e-4 * np.abs(found).max():
        raise Mismatch(
            "The pixels of a patch have different values in the map.",
            hint="mode='nearest': each patch's value stands on all its pixels, without smoothing.",
            look_for="interpolate() | resize() | zoom()",
        )


@pytest.mark.component("attention_map")
@pytest.mark.because("map_has_a_value_for_each_patch")
def test_map_is_as_large_as_the_image(student):
    """attention_map gives a number for each pixel, and the largest is 1."""
    found = Mapped(student).map
    if found.max() > 1 + 1e-6:
        raise Mismatch("The map's largest value should be 1.", hint="Divide the map by its maximum.")
    if found.max() < 1 - 1e-3:
        raise Mismatch(
            f"The map's largest value is {found.max():.2f}; it should be 1.",
            hint="Divide the patches' values by their maximum.",
            look_for="interpolate() | kron() | repeat_interleave() | repeat()",
        )


@pytest.mark.component("attention_map")
@pytest.mark.because("map_is_as_large_as_the_image", "map_has_a_value_for_each_patch")
@pytest.mark.weight(0.25)
def test_map_is_the_class_tokens_row(student):
    """The map shows what the class token looks at: its row of the heads' mean, without its own column."""
    found = Mapped(student)
    row, mean = np.array(MEAN_ROW), found.weights.mean(dim=0).numpy()
    if found.shows(row[1:]):
        return
    if found.shows(row[1:].reshape(3, 3).T):
        raise Mismatch(
            "Rows and columns of the map are exchanged: the value of patch 1, right of the first one, "
            "stands below it.",
            hint="The patches fill the grid row by row: reshape(rows, columns), without a transpose.",
            look_for="transpose() | permute() | _.T, reshape() | view()",
        )
    if found.shows(row[:-1]):
        raise Mismatch(
            "Each patch has the value of the patch before it, and the first one what the class token gives "
            "itself.",
            hint="Leave column 0 out, not the last one: row 0, from column 1 on.",
            look_for="_[0, :-1] | _[:, :-1] | _[..., :-1]",
        )
    heads, mean_of_heads = found.weights.numpy(), "Take the mean over the heads, mean(dim=0) of one image."
    for values, said, hint, look_for in (
        (heads[0, 0, 1:], "those of the first head", mean_of_heads, "_.attention()[0, 0] | _[:, 0]"),
        (heads[1, 0, 1:], "those of the last head", mean_of_heads, "_[0, -1] | _[:, -1]"),
        (heads[:, 0, 1:].max(axis=0), "the larger ones of the heads", mean_of_heads, "amax(), max()"),
        (
            mean[1:, 0],
            "the class token's column, how much each patch looks at it",
            "Row i says what token i looks at: row 0, not column 0.",
            "_[1:, 0] | _[:, 1:, 0] | _[..., 1:, 0]",
        ),
        (
            mean.mean(axis=0)[1:],
            "the mean over all rows",
            "With a class token, its row alone: row 0 of the heads' mean.",
            "_[1:], mean(dim=0) | mean(0)",
        ),
    ):  # fmt: skip
        if found.shows(values):
            raise Mismatch(
                f"The map's values are {said}; they should be the class token's row of the heads' mean.",
                hint=hint,
                look_for=look_for,
            )
    shown, wanted = (
        ", ".join(f"{value:.2f}" for value in each) for each in (found.patches[0], row[1:4] / 0.2)
    )
    raise Mismatch(
        f"The map's first three patches have the values {shown}; divided by the maximum, the class token's "
        f"row of the heads' mean is {wanted} there.",
        hint="The mean over the heads; its row 0 without column 0; divided by its maximum.",
    )


@pytest.mark.component("attention_map")
@pytest.mark.because("map_is_the_class_tokens_row")
@pytest.mark.weight(0.25)
def test_map_without_class_token_is_the_mean_row(student):
    """Where there is no class token, the map is the mean over all rows."""
    weights = (2 * student.tensor(2, 9, 9)).softmax(dim=-1)
    found, mean = Mapped(student, weights=weights), weights.mean(dim=0).numpy()
    if not found.shows(mean.mean(axis=0)):
        column = found.shows(mean.mean(axis=1))
        raise Mismatch(
            "With 9 tokens for 9 patches there is no class token; the map is not the mean over all rows"
            + (", but over all columns." if column else "."),
            hint="weights.mean(dim=0), how much each patch is looked at on average.",
            look_for="mean(dim=1) | mean(1)" if column else "",
        )


@pytest.mark.component("attention_map")
@pytest.mark.weight(0.25)
def test_map_needs_evaluation_mode(student):
    """attention_map asks the model in evaluation mode, and leaves it in the mode that it was in."""
    found = Mapped(student, training=True)
    if any(call.training for call in found.calls):
        raise Mismatch(
            "The model came in training mode, and was asked in it: with dropout, the map is different each "
            "time.",
            hint="model.eval() before, and the old mode afterwards: model.train(was_training).",
            look_for="no_grad() | inference_mode(), body",
        )
    if not found.training_after:
        raise Mismatch(
            "The model came in training mode, and is left in evaluation mode: it goes on training without "
            "dropout.",
            hint="Remember model.training before model.eval(), and restore it afterwards.",
            look_for="train(), eval()",
        )
    if Mapped(student, training=False).training_after:
        raise Mismatch(
            "The model came in evaluation mode, and is left in training mode.",
            hint="Remember model.training before model.eval(), and restore it afterwards.",
            look_for="train(), eval()",
        )


BLOCK = 6, 6, 1  # a BasicBlock whose shortcut is the identity


def residual_block(student, *sizes):
    """A BasicBlock with weights and running statistics that are not those of the beginning."""
    block = moved(student.build("BasicBlock", *sizes))
    statistics = {}
    for norm in batch_norms(block.weights()):
        if norm.mean is not None and norm.variance is not None:
            statistics |= norm.named(
                mean=student.tensor(len(norm.mean)), variance=1 + student.tensor(len(norm.mean)) ** 2
            )
    block.set_weights(statistics)
    return block


@pytest.mark.component("BasicBlock")
def test_residual_block_has_its_shape(student):
    """BasicBlock gives (batch, channels, height / stride, width / stride), whatever its sizes."""
    for ins, outs, stride in ((4, 6, 2), (5, 5, 1), (5, 8, 1), (6, 6, 2)):
        block = student.build("BasicBlock", ins, outs, stride)
        try:
            block(student.tensor(2, ins, 8, 8), shape=(2, outs, 8 // stride, 8 // stride))
        except Mismatch as error:
            if ins != outs or stride == 1 or "The size of tensor" not in error.message:
                raise
            raise Mismatch(
                f"BasicBlock({ins}, {outs}, stride={stride}) cannot add its two ways, because their sizes "
                "differ. With a stride the sizes change, even where the number of channels stays the same.",
                hint="The shortcut is a convolution where stride != 1 or in_channels != channels.",
                look_for="in_channels != channels | channels != in_channels | in_channels == channels | "
                "channels == in_channels",
            ) from None


@pytest.mark.component("BasicBlock")
@pytest.mark.because("residual_block_has_its_shape")
@pytest.mark.weight(0.25)
def test_residual_block_ends_with_a_relu(student):
    """The ReLU follows the sum: what the block returns is never negative."""
    found = residual_block(student, *BLOCK)(2 * student.tensor(4, 6, 8, 8))
    negative = float((found < 0).float().mean())
    if negative > 0:
        raise Mismatch(
            f"{negative:.0%} of the numbers that the block returns are negative: no ReLU follows the sum.",
            hint="relu(branch + shortcut): the sum first, then the ReLU.",
            look_for="return",
        )


@pytest.mark.component("BasicBlock")
@pytest.mark.because("residual_block_has_its_shape", "residual_block_ends_with_a_relu")
@pytest.mark.weight(0.25)
def test_residual_block_has_a_shortcut(student):
    """Something goes around the convolutions: where their branch gives 0, the block returns relu(x)."""
    block = student.build("BasicBlock", *BLOCK)
    weights, x = block.weights(), student.tensor(2, 6, 8, 8)
    block.set_weights({p.name: 0 * weights[p.name] for p in block.parameters if p.trainable})
    found = block(x, shape=(2, 6, 8, 8))
    if same(found, x.clamp(min=0)):
        return
    if float(found.abs().max()) < 1e-6:
        raise Mismatch(
            "With all weights 0 the block returns 0; it should return relu(x): the shortcut is missing.",
            hint="relu(branch + shortcut), where the shortcut is x itself if the shape stays the same.",
            look_for="return",
        )
    raise Mismatch(
        "With all weights 0, the block does not return relu(x): its shortcut should be the identity where "
        "the shape stays the same.",
        hint="nn.Identity() or nn.Sequential() for stride=1 and as many channels as before.",
    )


@pytest.mark.component("BasicBlock")
@pytest.mark.because("residual_block_has_its_shape", "residual_block_has_a_shortcut")
@pytest.mark.weight(0.25)
def test_residual_block_has_a_norm_for_each_convolution(student):
    """Batch normalization follows each convolution, that of the shortcut too, and all of it is used."""
    block = student.build("BasicBlock", 4, 6, 2)
    initial, trainable = block.weights(), [each.name for each in block.parameters if each.trainable]
    weights = moved(block).weights()
    layers, norms = convolutions(weights), batch_norms(weights, initial=initial, trainable=trainable)
    x = student.tensor(4, 4, 8, 8)
    if len(layers) == 3 and len(norms) < 3 and (norms or same(block(x), block(x, train=True))):
        raise Mismatch(
            f"BasicBlock(4, 6, stride=2) has 3 convolutions and {len(norms)} batch normalizations.",
            hint="One nn.BatchNorm2d(channels) after each convolution, that of the shortcut too.",
            look_for="Conv2d(_, _, 1) | Conv2d(_, _, kernel_size=1)",
        )
    found = block.gradients(x, student.tensor(4, 6, 4, 4), train=True)
    if found.missing:
        raise Mismatch(
            f"{named(found.missing[0])} gets no gradient: it is not used.",
            hint="branch: convolution, norm, ReLU, convolution, norm.",
            look_for="conv2()",
        )


def with_open_end(student):
    """A BasicBlock whose last norm has such a large bias that the last ReLU does nothing, or None."""
    block = residual_block(student, *BLOCK)
    x = student.tensor(2, 6, 8, 8)
    for norm in reversed(batch_norms(block.weights())):
        if norm.bias is None:
            continue
        outputs = []
        for shift in (200.0, 210.0):
            block.set_weights(norm.named(bias=torch.full_like(norm.bias, shift)))
            outputs.append(block(x))
        if outputs[0].min() > 0 and same(outputs[1] - outputs[0], torch.full_like(outputs[0], 10.0)):
            return block
        block.set_weights(norm.named(bias=norm.bias))
    return None


@pytest.mark.component("BasicBlock")
@pytest.mark.because("residual_block_ends_with_a_relu", "residual_block_has_a_norm_for_each_convolution")
@pytest.mark.weight(0.25)
def test_residual_block_has_a_relu_inside(student):
    """A ReLU stands between the two convolutions."""
    block = with_open_end(student)
    if block is None:
        return
    x = student.tensor(2, 6, 8, 8)
    one, other, zero = block(x), block(-x), block(0 * x)
    if min(each.min() for each in (one, other, zero)) > 0 and same(one - zero, zero - other, tolerance=1e-3):
        raise Mismatch(
            "Before the last ReLU the block is linear: none stands between its two convolutions.",
            hint="branch: convolution, norm, ReLU, convolution, norm.",
            look_for="conv2() | bn2()",
        )


@pytest.mark.component("BasicBlock")
@pytest.mark.because("residual_block_has_its_shape", "residual_block_has_a_norm_for_each_convolution")
@pytest.mark.weight(0.25)
def test_residual_block_strides_first(student):
    """The first convolution has the stride: with stride=2, an output sees 7 x 7 pixels of the input."""
    block, size = residual_block(student, 4, 6, 2), 16
    x, cotangent = 2 * student.tensor(8, 4, size, size), torch.zeros(8, 6, size // 2, size // 2)
    cotangent[:, :, 4, 4] = 1 + student.tensor(8, 6).abs()
    found = block.gradients(x, cotangent)
    if found.input is None:
        return
    seen = found.input.abs().amax(dim=(0, 1)) > 0
    rows, columns = (int(seen.any(dim=axis).sum()) for axis in (1, 0))
    if (rows, columns) == (5, 5):
        raise Mismatch(
            "With stride=2 an output sees 5 x 5 pixels of the input: the second convolution has the stride.",
            hint="The stride is the first convolution's, and that of the shortcut's; then it sees 7 x 7.",
            look_for="Conv2d(channels, channels, 3), stride",
        )


RES_WIDTH, SCORES = 4, 5
CHANNELS_OF = [4, 4, 8, 8, 16, 16, 32, 32]
SIDES_OF = [32, 32, 16, 16, 8, 8, 4, 4]


class ResNetAround:
    """The ResNet around fakes of its blocks that give known answers.

    Attributes:
        network: None where it does not use BasicBlock: what stands inline is looked at when it is graded.
        made: What the blocks were made with.
    """

    def __init__(self, student, last=None):
        answers = [
            student.tensor(2, channels, side, side)
            for channels, side in zip(CHANNELS_OF, SIDES_OF, strict=True)
        ]
        answers[-1] = answers[-1] if last is None else last
        self.network = student.build(
            "ResNet18", SCORES, RES_WIDTH, replace={"BasicBlock": Fake.script(answers)}
        )
        self.made = self.network.constructions("BasicBlock")
        if not self.made:
            self.network = None

    def outcome(self, images):
        """What a call gives, in evaluation mode."""
        return self.network.call("", images, training=False)


@pytest.mark.component("ResNet18")
def test_resnet_gives_scores(student):
    """An image becomes a score for every class."""
    student.build("ResNet18", 5, 4)(student.tensor(2, 3, 32, 32), shape=(2, 5))


@pytest.mark.component("ResNet18")
@pytest.mark.weight(0.25)
def test_resnet_has_four_groups_of_two(student):
    """Four groups of two blocks; from group to group twice the channels, and a stride of 2."""
    around = ResNetAround(student)
    if around.network is None:
        return
    channels = [given.get("channels") for given in around.made]
    strides = [given.get("stride", 1) for given in around.made]
    if None in channels or None in strides:
        return
    whole, one = (
        [layer.kernel for layer in convolutions(student.build(*sizes).weights())].count((3, 3))
        for sizes in (("ResNet18", SCORES, RES_WIDTH), ("BasicBlock", RES_WIDTH, RES_WIDTH))
    )
    count = min(len(channels), whole // one) if one else len(channels)  # some are made and not used
    if count != 8:
        raise Mismatch(
            f"ResNet18 has {count} blocks; there should be 8, two in each of four groups.",
            hint="It has 16 convolutions in its blocks, one in its stem, and a linear layer.",
            look_for="BasicBlock(), for",
        )
    if channels != CHANNELS_OF:
        raise Mismatch(
            f"With width={RES_WIDTH}, the blocks have {', '.join(map(str, channels))} channels; they should "
            f"have {', '.join(map(str, CHANNELS_OF))}.",
            hint="width for the first group, and twice as many for each further one.",
            look_for="BasicBlock()",
        )
    if strides != [1, 1, 2, 1, 2, 1, 2, 1]:
        raise Mismatch(
            f"The blocks have the strides {', '.join(map(str, strides))}; the first block of each group but "
            "the first one should have 2, and all others 1.",
            hint="Each further group halves height and width.",
            look_for="BasicBlock()",
        )


@pytest.mark.component("ResNet18")
@pytest.mark.because("resnet_has_four_groups_of_two")
@pytest.mark.weight(0.25)
def test_resnet_has_a_small_stem(student):
    """The stem keeps height and width: a 3 x 3 convolution, and nothing is pooled."""
    around = ResNetAround(student)
    if around.network is None:
        return
    calls = around.outcome(student.tensor(2, 3, 32, 32)).calls_of("BasicBlock")
    if not calls:
        return
    seen = torch.as_tensor(calls[0].args[0] if calls[0].args else next(iter(calls[0].kwargs.values())))
    kernels = [layer.kernel for layer in convolutions(around.network.weights())]
    if (7, 7) in kernels:
        raise Mismatch(
            "The stem has a convolution of 7 x 7, as for large images.",
            hint="nn.Conv2d(3, width, 3, padding=1, bias=False)",
            look_for="Conv2d(_, _, 7) | Conv2d(_, _, kernel_size=7)",
        )
    if tuple(seen.shape[2:]) != (32, 32):
        raise Mismatch(
            f"The first block gets {seen.shape[2]} x {seen.shape[3]} of images of 32 x 32.",
            hint="The stem keeps height and width: no stride, and no pooling before the end.",
            look_for="MaxPool2d() | max_pool2d(), Conv2d(3, _)",
        )


@pytest.mark.component("ResNet18")
@pytest.mark.because("resnet_has_four_groups_of_two", "resnet_has_a_small_stem")
@pytest.mark.weight(0.25)
def test_resnet_classifies_the_mean(student):
    """The mean over the image is classified: how it is spread changes nothing."""
    flat = 1 + student.tensor(2, 32, 1, 1).repeat(1, 1, 4, 4)
    spread = flat.clone()
    spread[:, :, 0, 0] += 3
    spread[:, :, 2, 3] -= 3
    images, scores, held = student.tensor(2, 3, 32, 32), [], None
    for last in (flat, spread):
        around = ResNetAround(student, last)
        if around.network is None:
            return
        held = held or around.network.weights()
        around.network.set_weights(held)
        scores.append(around.outcome(images).returned.tensor(2, SCORES))
    if not same(*scores, tolerance=1e-3):
        raise Mismatch(
            "Where the last block gives other numbers with the same mean over the image, the scores are "
            "others.",
            hint="x.mean(dim=(2, 3)), and the linear layer of that.",
            look_for="amax() | max() | adaptive_max_pool2d() | AdaptiveMaxPool2d() | MaxPool2d(), flatten()",
        )


# <<< ONLY


def sum_of_table(student, model):
    """What the numbers of the table add up to."""
    found = 0
    for row in student.call("parameter_table", model).returned.items(None, "rows"):
        name, number = row.items(2, "values: a name and a number")
        name.text()
        found += number.whole_number(0)
    return found


@pytest.mark.component("parameter_table")
def test_table_has_names_and_numbers(student):
    """parameter_table gives pairs of a name and a number, which add up to all parameters."""
    made = student.build("VisionTransformer", image_size=8, num_classes=5, dim=12, depth=2, heads=3)
    found = sum_of_table(student, made)
    count, own = (
        sum(int(np.prod(p.shape)) for p in made.parameters if not bare or "." not in p.name)
        for bare in (False, True)
    )
    if found > count:
        raise Mismatch(
            f"The numbers of the table add up to {found}; the model has {count} parameters: some are "
            "counted twice.",
            hint="named_modules has parts and the parts within them; named_parameters has each parameter "
            "once.",
            look_for="named_modules() | modules()",
        )
    if found != count:
        raise Mismatch(
            f"The numbers of the table add up to {found}; the model has {count} parameters"
            + (
                ", of which just the missing ones are outside any layer."
                if own and found == count - own
                else "."
            ),
            hint="Class token and positions are in no layer: named_children misses them, named_parameters "
            "has all.",
            look_for="named_children() | children() | named_modules() | modules()",
        )
    made.call("requires_grad_", False)
    if (unlearned := sum_of_table(student, made)) != count:
        raise Mismatch(
            f"Where nothing requires gradients, the numbers of the table add up to {unlearned}; the model "
            f"has {count} parameters.",
            hint="Count those that are not learned as well.",
            look_for="requires_grad",
        )


def factors(student, steps, warmup, total):
    """What warmup_cosine gives at these steps."""
    return [student.call("warmup_cosine", step, warmup, total).returned.number() for step in steps]


@pytest.mark.component("warmup_cosine")
def test_schedule_is_a_share(student):
    """The factor lies between 0 and 1."""
    for step in (0, 5, 10, 15):
        student.call("warmup_cosine", step, 5, 15).returned.number(0, 1)


@pytest.mark.component("warmup_cosine")
@pytest.mark.weight(0.25)
def test_schedule_warms_up(student):
    """In the warm-up the factor rises in a line from 0 to 1; without a warm-up it begins at 1."""
    found = factors(student, range(5), 4, 12)
    if not np.allclose(found[:4], [0, 0.25, 0.5, 0.75], atol=1e-4):
        raise Mismatch(
            "With warmup_steps=4 and total_steps=12, the factor is "
            f"{', '.join(f'{each:.2f}' for each in found[:4])} at the steps 0 to 3; it should be 0.00, "
            "0.25, 0.50, 0.75.",
            hint="The steps count from 0: at step 0 the factor is 0.",
            look_for="step + 1",
        )
    begin = factors(student, [0], 0, 12)[0]
    for value, sizes in ((found[4], "step 4 with warmup_steps=4"), (begin, "step 0 with warmup_steps=0")):
        if abs(value - 1) > 1e-4:
            raise Mismatch(
                f"Where the warm-up ends, at {sizes} and total_steps=12, the factor is {value:.2f}; it "
                "should be 1.",
                hint="How far the cosine is counts from the end of the warm-up, not from step 0.",
                look_for="step / total_steps",
            )


@pytest.mark.component("warmup_cosine")
@pytest.mark.because("schedule_warms_up")
@pytest.mark.weight(0.25)
def test_schedule_falls_by_half_a_cosine(student):
    """After the warm-up the factor falls by half a cosine: slowly, then fast, then slowly again."""
    found = factors(student, (6, 8, 10), 4, 12)
    if not np.allclose(found, [0.8536, 0.5, 0.1464], atol=1e-3):
        kind = "a cosine that is not half a wave"
        if np.allclose(found, [0.75, 0.5, 0.25], atol=1e-3):
            kind = "a straight line"
        elif np.allclose(found, [0.9239, 0.7071, 0.3827], atol=1e-3):
            kind = "a quarter of a cosine"
        said = f": that is {kind}" if kind[0:3] != "a c" else ""
        raise Mismatch(
            "With warmup_steps=4 and total_steps=12, the factor at the steps 6, 8 and 10 is "
            f"{', '.join(f'{each:.3f}' for each in found)}{said}. Half a cosine gives 0.854, 0.500 and "
            "0.146.",
            hint="cos(0) is 1 and cos(pi) is -1: half a cosine goes from the one to the other, and that is "
            "moved and shrunk to go from 1 to 0.",
            look_for="cos(), 1 - _",
        )


@pytest.mark.component("warmup_cosine")
@pytest.mark.because("schedule_falls_by_half_a_cosine")
@pytest.mark.weight(0.25)
def test_schedule_ends_at_zero(student):
    """At total_steps the factor is 0, and it stays there."""
    for step, found in zip((12, 15, 20), factors(student, (12, 15, 20), 4, 12), strict=True):
        if abs(found) > 1e-4:
            raise Mismatch(
                f"With warmup_steps=4 and total_steps=12, the factor at step {step} is {found:.2f}; from "
                "total_steps on it should be 0.",
                hint="Past the end a cosine rises again: return 0 where step >= total_steps.",
                look_for="cos()",
            )


NAMES, SIZES = ("a", "b", "c", "d"), (8, 8, 8, 2)


def numbers(value, *shape):
    """What a student gives as an array, whole numbers or not."""
    try:
        return value.array(*shape, whole=True)
    except Mismatch:
        return value.array(*shape, finite=False)


def epoch(student):
    """(data, run) of an epoch over a linear model, whose gradients are known: one for several checks."""

    def make():
        data = trainable_data(NAMES, SIZES, features=5, seed=student.next_seed(), scale=2.0)
        return data, student.run("train_epoch", data)

    return student.shared("an epoch of the public checks", make)


@pytest.mark.component("train_epoch")
def test_epoch_returns_two_numbers(student):
    """train_epoch returns the mean loss and the accuracy."""
    _, run = epoch(student)
    if len(run.returned) != 2:
        raise Mismatch(
            f"train_epoch returns {len(run.returned)} numbers; it should return two: the mean loss, and the "
            "accuracy."
        )
    if not 0 <= run.returned[1] <= 1:
        raise Mismatch(
            f"train_epoch returns the accuracy {run.returned[1]:g}; it should be from 0 to 1.",
            hint="How many are right, divided by how many there are: no percentage.",
            look_for="100 * _ | _ * 100 | 100.0 * _ | _ * 100.0, return",
        )


@pytest.mark.component("train_epoch")
@pytest.mark.weight(0.25)
def test_epoch_takes_a_step_for_each_batch(student):
    """For each batch there is one step of the optimizer and one of the schedule."""
    _, run = epoch(student)
    count, schedule = len(SIZES), run.events.count("schedule")
    if run.steps != count:
        raise Mismatch(
            f"For a loader of {count} batches the optimizer takes {run.steps} step{'s' * (run.steps != 1)}.",
            hint="optimizer.step() once for every batch, after loss.backward().",
            look_for="step(), backward()" if run.steps else "backward()",
        )
    if schedule != count:
        raise Mismatch(
            f"For a loader of {count} batches the schedule takes {schedule} step{'s' * (schedule != 1)}.",
            hint="if scheduler is not None: scheduler.step(), after each batch.",
            look_for="scheduler.step(), optimizer.step()",
        )


@pytest.mark.component("train_epoch")
@pytest.mark.weight(0.25)
def test_epoch_trains_in_training_mode(student):
    """train_epoch puts the model into training mode, whatever mode it comes in."""
    _, run = epoch(student)
    if not all(forward.training for forward in run.forwards):
        raise Mismatch(
            "The model is trained in evaluation mode: dropout is off, and batch norm does not learn.",
            hint="model.train() before the loop over the batches.",
            look_for="eval() | train(False), for",
        )


@pytest.mark.component("train_epoch")
@pytest.mark.because("epoch_takes_a_step_for_each_batch")
@pytest.mark.weight(0.25)
def test_epoch_clears_the_gradients(student):
    """Every step follows the gradient of its own batch alone: gradients are cleared between the batches."""
    data, run = epoch(student)
    if run.steps != len(SIZES):
        raise Mismatch("The gradients can be looked at when the optimizer takes a step for each batch.")
    start = 0
    for number, (size, used) in enumerate(zip(SIZES, run.arrays["step_gradients"], strict=True), start=1):
        rows = slice(start, start + size)
        own = data.arrays["features"][rows].T @ run.arrays["logit_gradients"][rows]
        start += size
        length = max(np.linalg.norm(own), 1e-12)
        # clipping makes a gradient shorter, and leaves its direction
        across = float((used * own).sum()) / max(np.linalg.norm(used) * length, 1e-12)
        if across < 0.999 or np.linalg.norm(used) / length > 1.001:
            raise Mismatch(
                f"The step after batch {number} does not follow the gradient of that batch alone.",
                hint="For every batch: optimizer.zero_grad(), loss.backward(), optimizer.step().",
                look_for="retain_graph, zero_grad(), backward(), loop",
            )


@pytest.mark.component("train_epoch")
@pytest.mark.because(
    "epoch_returns_two_numbers", "epoch_takes_a_step_for_each_batch", "epoch_clears_the_gradients"
)
@pytest.mark.weight(0.25)
def test_epoch_means_over_images(student):
    """The loss is the mean over all images, as it was when each batch was trained on."""
    data, run = epoch(student)
    if run.steps != len(SIZES) or len(run.returned) != 2:
        raise Mismatch("The loss can be looked at when train_epoch takes its steps and returns two numbers.")
    # the linear model before each step, and its loss for each image of the batch
    weights, losses, start = torch.from_numpy(data.arrays["weights"]).clone(), [], 0
    for size, gradient in zip(SIZES, run.arrays["step_gradients"], strict=True):
        rows = slice(start, start + size)
        scores = torch.from_numpy(data.arrays["features"][rows]) @ weights
        logarithms = scores - scores.logsumexp(dim=1, keepdim=True)
        losses.append(-logarithms[torch.arange(size), torch.from_numpy(data.labels[rows])])
        weights, start = weights - data.learning_rate * torch.tensor(gradient), start + size
    found, means = run.returned[0], [float(each.mean()) for each in losses]
    expected = float(torch.cat(losses).mean())
    if abs(found - expected) < 1e-4 * max(1.0, expected):
        return
    for value, said, look_for in (
        (np.mean(means), "the mean of the batches' means", "_ / len(), mean()"),
        (means[-1], "that of the last batch alone", "return"),
        (sum(means), "the sum of the batches' means", "return"),
        (float(torch.cat(losses).sum()), "the sum over all images", "return"),
    ):
        if abs(found - value) < 1e-4 * max(1.0, value):
            raise Mismatch(
                f"For batches of 8, 8, 8 and 2 images the loss is {said}, {found:.3f}; the mean over images "
                f"is {expected:.3f}.",
                hint="Add up loss.item() * len(labels), and divide by the number of images at the end.",
                look_for=look_for,
            )
    raise Mismatch(
        f"For batches of 8, 8, 8 and 2 images train_epoch returns the loss {found:.3f}; the mean over "
        f"images, as it was when each batch was trained on, is {expected:.3f}.",
        hint="Add up loss.item() * len(labels), and divide by the number of images at the end.",
        look_for="return",
    )


# three images in batches of two and one: two are right, the second is wrong
ASKED = [[3.0, 0.0, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, 4.0]]
SHARES = [[0.9094, 0.0453, 0.0453], [0.1065, 0.7870, 0.1065], [0.0177, 0.0177, 0.9647]]
TRUTH, LOSS, LOSS_OF_BATCHES = [0, 0, 2], 0.7901, 0.6016


def evaluation(student):
    """The outcome of evaluate on three images of which all is known."""

    def criterion(scores, targets):
        return F.cross_entropy(torch.as_tensor(scores).float(), torch.as_tensor(targets))

    def make():
        images = torch.from_numpy(numbered_images(3, student.next_seed(), (3, 16, 16)))
        return student.call(
            "evaluate",
            Fake.rows(torch.tensor(ASKED)),
            batches(images, torch.tensor(TRUTH), [2, 1]),
            Fake.callback(criterion, kind="function", name="criterion"),
            torch.device("cpu"),
        )

    return student.shared("an evaluation of the public checks", make)


@pytest.mark.component("evaluate")
def test_evaluate_returns_a_dictionary(student):
    """evaluate returns loss, accuracy, targets, predictions and probabilities."""
    returned = evaluation(student).returned
    returned.at("loss").number(0)
    accuracy = returned.at("accuracy").number()
    if not 0 <= accuracy <= 1:
        raise Mismatch(
            f"'accuracy' is {accuracy:g}; it should be from 0 to 1.",
            hint="How many are right, divided by how many there are: no percentage.",
            look_for="100 * _ | _ * 100 | 100.0 * _ | _ * 100.0",
        )
    for name in ("targets", "predictions"):
        returned.at(name).items(3, name)
    returned.at("probabilities").array(3, 3)


@pytest.mark.component("evaluate")
@pytest.mark.because("evaluate_returns_a_dictionary")
@pytest.mark.weight(0.25)
def test_evaluate_gives_probabilities(student):
    """The probabilities are the softmax of the model's scores: none is negative, and a row adds up to 1."""
    found = evaluation(student).returned.at("probabilities").array(3, 3)
    if np.allclose(found, SHARES, atol=1e-3):
        return
    if np.allclose(found, ASKED, atol=1e-4):
        raise Mismatch(
            "'probabilities' are the scores that the model gave.",
            hint="scores.softmax(dim=1)",
            look_for="probabilities, return",
        )
    if np.allclose(np.exp(found), SHARES, atol=1e-3):
        raise Mismatch(
            "'probabilities' are logarithms of probabilities.",
            hint="softmax, not log_softmax.",
            look_for="log_softmax()",
        )
    raise Mismatch(
        f"For scores of 3, 0, 0 the probabilities are {', '.join(f'{each:.3f}' for each in found[0])}; "
        "their softmax is 0.909, 0.045, 0.045.",
        hint="scores.softmax(dim=1), over the classes.",
        look_for="softmax() | Softmax()",
    )


@pytest.mark.component("evaluate")
@pytest.mark.because("evaluate_returns_a_dictionary", "evaluate_gives_probabilities")
@pytest.mark.weight(0.25)
def test_evaluate_means_over_images(student):
    """Loss and accuracy are means over images; targets and predictions stand in the loader's order."""
    returned = evaluation(student).returned
    targets, predictions = (numbers(returned.at(name), 3).tolist() for name in ("targets", "predictions"))
    for name, found, expected in (("targets", targets, TRUTH), ("predictions", predictions, [0, 1, 2])):
        if found != expected:
            raise Mismatch(
                f"For three images, '{name}' are {', '.join(f'{each:g}' for each in found)}; they should be "
                f"{', '.join(map(str, expected))}.",
                hint="In the loader's order: the labels, and for each image the class with the largest "
                "score.",
            )
    accuracy, loss = (returned.at(name).number() for name in ("accuracy", "loss"))
    if abs(accuracy - 2 / 3) > 1e-4:
        raise Mismatch(
            f"Two of three images are right, and 'accuracy' is {accuracy:.3f}.",
            hint="How many are right over all batches, divided by the number of images.",
        )
    for value, said, look_for in (
        (LOSS_OF_BATCHES, ", the mean of the batches' means", "_ / len(), mean()"),
        (3 * LOSS, ", the sum over the images", ""),
        (2 * LOSS_OF_BATCHES, ", the sum of the batches' means", ""),
        (loss, "", ""),
    ):
        if abs(loss - LOSS) > 1e-3 and abs(loss - value) < 1e-3:
            raise Mismatch(
                f"For three images in batches of two and one, 'loss' is {loss:.3f}{said}; the mean over "
                f"images is {LOSS:.3f}.",
                hint="A batch's loss counts as often as the batch has images.",
                look_for=look_for,
            )


@pytest.mark.component("evaluate")
@pytest.mark.weight(0.25)
def test_evaluate_only_looks(student):
    """evaluate asks the model in evaluation mode, and computes no gradients."""
    calls = evaluation(student).calls_of("model")
    if any(call.training for call in calls):
        raise Mismatch(
            "The model is asked in training mode: dropout is on, and batch norm uses each batch.",
            hint="model.eval() before the loop over the batches.",
            look_for="train(), no_grad() | inference_mode(), for",
        )
    if any(call.gradients for call in calls):
        raise Mismatch(
            "Gradients are computed while the model is measured, which takes memory for nothing.",
            hint="with torch.no_grad(): around the loop over the batches.",
            look_for="enable_grad(), for",
        )


def fitted(student, accuracies, losses=()):
    """(the epoch whose weights are left, outcome) of a fit with these validation accuracies.

    Args:
        losses: On the validation images; without, the higher the accuracy, the lower the loss.
    """
    evaluations = [
        {
            "loss": loss, "accuracy": value, "targets": torch.tensor([0, 1]),
            "predictions": torch.tensor([0, 1]), "probabilities": torch.full((2, 2), 0.5),
        }
        for value, loss in zip(accuracies, losses or [1 - value for value in accuracies], strict=True)
    ]  # fmt: skip
    # each call of train_epoch fills the weights with its number, and gives a better training accuracy
    trained = [(1 - n / 100, n / 100) for n in range(1, len(accuracies) + 1)]
    fakes = {"train_epoch": Fake.script(trained, marks=True), "evaluate": Fake.script(evaluations)}
    model = student.keep(Fake.script([torch.zeros(2, 2)], parameters={"head.weight": (2, 2)}), "fit")
    images = torch.from_numpy(numbered_images(4, student.next_seed(), (3, 16, 16)))
    loaders = {
        "train": batches(images[:2], torch.tensor([0, 1]), [1, 1]),
        "validation": batches(images[2:], torch.tensor([1, 0]), [2]),
    }
    outcome = student.call("fit", model, loaders, len(accuracies), torch.device("cpu"), replace=fakes)
    left = student.component(model).weights()["head.weight"].unique().tolist()
    return left[0] if len(left) == 1 else float("nan"), outcome


@pytest.mark.component("fit")
def test_fit_trains_each_epoch(student):
    """fit trains for as many epochs as it is asked to, and returns its history."""
    _, outcome = fitted(student, [0.4, 0.6])
    calls = outcome.calls_of("train_epoch")
    if calls and len(calls) != 2:
        raise Mismatch(f"fit(..., epochs=2) trains {len(calls)} epochs.")


@pytest.mark.component("fit")
@pytest.mark.because("fit_trains_each_epoch")
@pytest.mark.weight(0.25)
def test_fit_measures_on_validation_images(student):
    """evaluate gets the validation images."""
    _, outcome = fitted(student, [0.4, 0.6])
    lengths = set()  # of the loaders, in batches: the training images are in two
    for call in outcome.calls_of("evaluate"):
        given = (*call.args, *call.kwargs.values())
        for loader in [value for value in given if getattr(value, "kind", "") == "object"][:1]:
            lengths.add(student.attempted(lambda it=loader: it.call("__len__").returned.whole_number()))
    if lengths == {2}:
        raise Mismatch(
            "evaluate gets the training images: by them, the epoch that learned most by heart looks best.",
            hint='evaluate(model, loaders["validation"], criterion, device)',
            look_for="evaluate()",
        )


@pytest.mark.component("fit")
@pytest.mark.because("fit_trains_each_epoch", "fit_measures_on_validation_images")
@pytest.mark.weight(0.25)
def test_fit_leaves_the_best_weights(student):
    """The model is left with the weights of the best epoch by validation accuracy, of equals the first."""
    for accuracies, best in (([0.2, 0.6, 0.4, 0.5], 2), ([0.3, 0.7, 0.7, 0.1], 2)):
        left, outcome = fitted(student, accuracies)
        if any(len(outcome.calls_of(part)) != len(accuracies) for part in ("train_epoch", "evaluate")):
            return  # it uses the other parts in a way of its own: that is looked at when it is graded
        if left == best:
            continue
        said = ", ".join(map(str, accuracies))
        if left == len(accuracies):
            raise Mismatch(
                f"With the validation accuracies {said}, the model is left with the weights of the last "
                "epoch.",
                hint="model.state_dict() refers to the weights, which go on changing: keep a copy of each, "
                "or copy.deepcopy of it, and load it at the end.",
                look_for="_.state_dict(), end",
            )
        if left == 3 and best == 2 and accuracies[1] == accuracies[2]:
            raise Mismatch(
                f"With the validation accuracies {said}, the weights of epoch 3 are kept; of equals, the "
                "first should be.",
                hint="Keep the weights only if the accuracy is larger than the best one so far: >, not >=.",
                look_for="_ >= _ | _ <= _",
            )
        worst = left == left and accuracies[int(left) - 1] == min(accuracies)
        raise Mismatch(
            f"With the validation accuracies {said}, the model is left with the weights of epoch {left:.0f}"
            + (", the worst one." if worst else "; the best one is epoch 2.")
            if left == left and left
            else f"With the validation accuracies {said}, the weights left are those of no epoch.",
            hint="Keep a copy of the weights whenever the validation accuracy is larger than before.",
            look_for="_ < best | _ <= best | best > _, if" if worst else "",
        )
    left, _ = fitted(student, [0.2, 0.6, 0.4, 0.5], losses=[0.9, 0.8, 0.3, 0.7])
    if left == 3:
        raise Mismatch(
            "With the validation accuracies 0.2, 0.6, 0.4, 0.5 and losses 0.9, 0.8, 0.3, 0.7, the weights "
            "of epoch 3 are kept: the best epoch is chosen by its loss.",
            hint="The best epoch is the one with the highest validation accuracy.",
            look_for="_ < best | best > _ | min(), loss",
        )


# nine images of three classes: what a classifier said of them, and what is to be measured then
SAID = np.array(
    [
        [0.80, 0.15, 0.05], [0.70, 0.20, 0.10], [0.55, 0.25, 0.20], [0.31, 0.58, 0.11], [0.26, 0.45, 0.29],
        [0.24, 0.30, 0.46], [0.34, 0.12, 0.54], [0.19, 0.18, 0.63], [0.21, 0.27, 0.52],
    ]
)  # fmt: skip
TRUE_CLASSES = np.array([0, 0, 0, 0, 1, 1, 1, 2, 2])
COUNTS = np.array([[3, 1, 0], [0, 1, 2], [0, 0, 2]])
OF_CLASSES = {
    "precision": [1, 0.5, 0.5], "recall": [0.75, 1 / 3, 1], "f1": [0.8571, 0.4, 0.6667], "support": [4, 3, 2]
}  # fmt: skip
AREAS, AREAS_OF_PREDICTIONS = [0.95, 0.5556, 0.9286], [0.875, 0.5833, 0.8571]
MACRO = {"precision": 0.6667, "recall": 0.6944, "f1": 0.6413, "roc_auc": 0.8114}
WEIGHTED = {"precision": 0.7222, "recall": 0.6667, "f1": 0.6624, "roc_auc": 0.8138}


def measured(student, targets, probabilities):
    """What classification_metrics returns."""
    return student.call("classification_metrics", targets, probabilities).returned


def listed(values):
    """Numbers, separated by commas."""
    return ", ".join(f"{float(value):.4g}" for value in np.asarray(values).flatten())


@pytest.mark.component("classification_metrics")
def test_metrics_are_there(student):
    """classification_metrics gives the confusion matrix and the measures of each class."""
    returned = measured(student, np.array([0, 1, 1]), np.array([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]]))
    returned.at("confusion").items(2, "rows")
    for name in ("precision", "recall", "f1", "support", "roc_auc"):
        returned.at(name).items(2, "numbers, one for each class")


@pytest.mark.component("classification_metrics")
@pytest.mark.because("metrics_are_there")
@pytest.mark.weight(0.25)
def test_metrics_count_each_image(student):
    """The confusion matrix counts each image: the row is its true class, the column the predicted one."""
    found = numbers(measured(student, TRUE_CLASSES, SAID).at("confusion"), 3, 3)
    if np.array_equal(found, COUNTS):
        return
    if np.array_equal(found, COUNTS.T):
        raise Mismatch(
            "The confusion matrix is transposed: an image of class 0 that is taken for class 1 stands in "
            "row 1.",
            hint="Rows are the true classes: confusion[target, prediction].",
            look_for="_.T, at() | bincount(), _[_, _] | _[_][_]",
        )
    raise Mismatch(
        f"For 9 images, the confusion matrix holds {listed(found)}, row by row; it should hold "
        f"{listed(COUNTS)}.",
        hint="Its entry [i, j] is how many images of class i have their largest probability at class j.",
    )


@pytest.mark.component("classification_metrics")
@pytest.mark.because("metrics_are_there", "metrics_count_each_image")
@pytest.mark.weight(0.25)
def test_metrics_of_each_class_are_right(student):
    """Precision, recall, F1 and support of each class are right."""
    returned = measured(student, TRUE_CLASSES, SAID)
    found = {name: numbers(returned.at(name), 3) for name in OF_CLASSES}

    def fits(name, expected):
        return np.allclose(found[name], expected, atol=1e-3)

    if fits("precision", OF_CLASSES["recall"]) and fits("recall", OF_CLASSES["precision"]):
        raise Mismatch(
            "Precision and recall are exchanged.",
            hint="Precision divides by how often a class was predicted, recall by how often it occurs.",
            look_for="precision",
        )
    for name, expected in OF_CLASSES.items():
        if fits(name, expected):
            continue
        plain = name == "f1" and fits("f1", [0.875, 0.4167, 0.75])
        harmonic = "2 * precision * recall / (precision + recall), of each class."
        hints = {
            "precision": "What is right of a class, divided by how often it was predicted: a column's sum.",
            "recall": "What is right of a class, divided by how often it occurs: a row's sum.",
            "support": "How often each class occurs in the targets.",
        }
        raise Mismatch(
            f"'{name}' is {listed(found[name])}; it should be {listed(expected)}"
            + (": it is the plain mean of precision and recall, not their harmonic mean." if plain else "."),
            hint=hints.get(name, harmonic),
            look_for="_ / 2 | 0.5 * _ | _ * 0.5 | mean()" if plain else name,
        )


@pytest.mark.component("classification_metrics")
@pytest.mark.because("metrics_are_there")
@pytest.mark.weight(0.25)
def test_metrics_have_the_area_under_the_curve(student):
    """ROC-AUC is the share of pairs in which the positive has the larger probability."""
    found = numbers(measured(student, TRUE_CLASSES, SAID).at("roc_auc"), 3)
    if np.allclose(found, AREAS, atol=1e-3):
        return
    if np.allclose(found, AREAS_OF_PREDICTIONS, atol=1e-3):
        raise Mismatch(
            f"'roc_auc' is {listed(found)}, as of the predicted labels; of the probabilities it is "
            f"{listed(AREAS)}.",
            hint="For class k, compare the column k of the probabilities: a curve of labels has one corner.",
            look_for="argmax()",
        )
    raise Mismatch(
        f"'roc_auc' is {listed(found)}; it should be {listed(AREAS)}.",
        hint="For class k: of all pairs of an image of k and another one, the share in which the image of "
        "k has the larger probability of k.",
    )


@pytest.mark.component("classification_metrics")
@pytest.mark.because("metrics_have_the_area_under_the_curve")
@pytest.mark.weight(0.25)
def test_metrics_count_ties_as_one_half(student):
    """In the ROC-AUC, a pair with equal probabilities counts one half."""
    likely = np.array([0.5, 0.5, 0.9, 0.2])
    returned = measured(student, np.array([0, 1, 1, 0]), np.stack([1 - likely, likely], axis=1))
    found = numbers(returned.at("roc_auc"), 2)
    if not np.allclose(found, 0.875, atol=1e-3):
        raise Mismatch(
            f"For positives with 0.5 and 0.9 and negatives with 0.5 and 0.2, 'roc_auc' is {found[1]:.3f}; "
            "three and a half of four pairs are 0.875.",
            hint="Of a tied pair, one half counts: equal scores share the mean of their ranks.",
            look_for="argsort() | sort() | sorted()",
        )


@pytest.mark.component("classification_metrics")
@pytest.mark.because("metrics_of_each_class_are_right", "metrics_have_the_area_under_the_curve")
@pytest.mark.weight(0.25)
def test_metrics_have_two_kinds_of_means(student):
    """macro_ are plain means over the classes, weighted_ those by support."""
    returned = measured(student, TRUE_CLASSES, SAID)
    found = {
        kind: {name: returned.at(f"{kind}_{name}").number(finite=False) for name in MACRO}
        for kind in ("macro", "weighted")
    }

    def fits(kind, expected):
        return all(abs(found[kind][name] - expected[name]) < 1e-3 for name in expected)

    if fits("macro", WEIGHTED) and fits("weighted", MACRO):
        raise Mismatch(
            "The macro means and the weighted means are exchanged.",
            hint="macro_: each class counts once; weighted_: as often as it occurs.",
        )
    for kind, expected in (("macro", MACRO), ("weighted", WEIGHTED)):
        for name, value in expected.items():
            own = found[kind][name]
            if abs(own - value) < 1e-3:
                continue
            of_means = kind == "macro" and name == "f1" and abs(own - 0.6803) < 1e-3
            raise Mismatch(
                f"'{kind}_{name}' is {own:.4f}; it should be {value:.4f}"
                + (": it is made from macro_precision and macro_recall." if of_means else "."),
                hint="The mean of the classes' F1, each computed from its own precision and recall."
                if of_means
                else "macro_: the plain mean over the classes; weighted_: by support, divided by its sum.",
                look_for="2 * _ / (_ + _)" if of_means else "",
            )


@pytest.mark.component("classification_metrics")
@pytest.mark.because("metrics_of_each_class_are_right", "metrics_have_two_kinds_of_means")
@pytest.mark.weight(0.25)
def test_metrics_know_classes_that_do_not_occur(student):
    """A class that does not occur has 0 where 0 / 0 would stand, and NaN for ROC-AUC; no mean counts it."""
    said = np.array([[0.7, 0.2, 0.1], [0.3, 0.6, 0.1], [0.25, 0.7, 0.05], [0.05, 0.8, 0.15]])
    returned = measured(student, np.array([0, 0, 1, 1]), said)
    for name in ("precision", "recall", "f1"):
        found = numbers(returned.at(name), 3)[2]
        if not abs(found) < 1e-9:
            raise Mismatch(
                f"For a class that neither occurs nor is predicted, '{name}' is {found:.3g}; what would be "
                "0 / 0 should be 0.",
                hint="Divide by the count where it is not 0, and by 1 elsewhere: the count above is 0 then.",
                look_for=name,
            )
    area = numbers(returned.at("roc_auc"), 3)[2]
    if not np.isnan(area):
        raise Mismatch(
            f"For a class that does not occur, 'roc_auc' is {area:.3g}; without positives there are no "
            "pairs, and it should be NaN.",
            hint='float("nan") for a class without positives or without negatives.',
            look_for="nan_to_num() | nan_to_num(_, nan=0.5), 0.5",
        )
    recall = returned.at("macro_recall").number(finite=False)
    if not abs(recall - 0.75) < 1e-3:
        raise Mismatch(
            f"For recalls of 0.5 and 1 and a class that does not occur, 'macro_recall' is {recall:.3f}; the "
            "mean over the classes that occur is 0.75.",
            hint="Take the mean over the classes whose support is not 0.",
        )


@pytest.mark.component("export_metrics")
def test_export_writes_a_file(student):
    """export_metrics writes a CSV."""
    outcome = student.call("export_metrics", {"vit": {"accuracy": 0.5}}, "metrics.csv", reads=["metrics.csv"])
    outcome.file("metrics.csv")


@pytest.mark.component("export_metrics")
@pytest.mark.because("export_writes_a_file")
@pytest.mark.weight(0.25)
def test_export_joins_the_names(student):
    """The columns are metric and value; a nested name joins the names by dots, numbers counted from 0."""
    given = {"vit": {"accuracy": 0.5, "f1": np.array([0.25, 0.75]), "recall": {"ox": 0.125}}}
    content = student.call("export_metrics", given, "metrics.csv", reads=["metrics.csv"]).file("metrics.csv")
    lines = [line.strip() for line in content.decode("utf-8", "replace").splitlines() if line.strip()]
    if lines and "accuracy" in lines[0] and "metric" not in lines[0].lower():
        raise Mismatch(
            f"The first line of the CSV is {quoted(lines[0])}; it should name the columns: metric,value.",
            hint='Write a first row with "metric" and "value".',
            look_for="writer() | DictWriter(), open()",
        )
    rows = csv_rows(content, {"metric": str, "value": float}, name="metrics.csv")
    names = [row["metric"] for row in rows]
    wanted = {"vit.accuracy": 0.5, "vit.f1.0": 0.25, "vit.f1.1": 0.75, "vit.recall.ox": 0.125}
    missing = next((name for name in wanted if name not in names), None)
    if missing is not None:
        has = ", ".join(map(quoted, names)) or "none"
        if missing == "vit.f1.0" and "vit.f1.1" in names:
            said, hint, look_for = "counted from 1", "The numbers of an array count from 0.", "enumerate()"
        elif "accuracy" in names:
            said, hint = "without the outer ones", "Hand the name so far on to what is within: vit.accuracy."
            look_for = ""
        else:
            said, hint, look_for = "joined otherwise", 'Names are joined by dots: f"{outer}.{inner}".', ""
        raise Mismatch(
            f"The CSV has no row {quoted(missing)}: the names are {said}. Its rows are {has}.",
            hint=hint,
            look_for=look_for,
        )
    for row in rows:
        if row["metric"] in wanted and abs(row["value"] - wanted[row["metric"]]) > 1e-6:
            raise Mismatch(
                f"In the CSV, {quoted(row['metric'])} is {row['value']:g}; it should be "
                f"{wanted[row['metric']]:g}."
            )


CLASS_NAMES = ("anvil", "bell", "crown")


def drawing(student, name, *args, **settings):
    """The outcome of a call of a plotting function, with its figures."""
    outcome = student.call(name, *args, figures=True, **settings)
    if not outcome.figures:
        raise Mismatch(f"{name} draws nothing.", hint="Leave the figure open, or return it.")
    return outcome


def all_texts(outcome):
    """What is written in the figures, in one text."""
    words = []
    for figure in outcome.figures:
        words.append(figure.title)
        for axes in figure.axes:
            words += [axes.title, axes.x_label, axes.y_label, *axes.texts, *axes.headings, *axes.line_names]
            words += [*axes.x_ticks, *axes.y_ticks]
    return "\n".join(words)


@pytest.mark.component("plot_learning_curves")
@pytest.mark.weight(0.25)
def test_curves_show_training_and_validation(student):
    """The history of three epochs makes curves of three points, of training and of validation, with names."""
    evaluations = [
        {
            "loss": loss, "accuracy": accuracy, "targets": torch.tensor([0, 1]),
            "predictions": torch.tensor([0, 1]), "probabilities": torch.full((2, 2), 0.5),
        }
        for loss, accuracy in ((0.84, 0.41), (0.75, 0.47), (0.77, 0.45))
    ]  # fmt: skip
    fakes = {
        "train_epoch": Fake.script([(0.91, 0.31), (0.72, 0.52), (0.63, 0.63)]),
        "evaluate": Fake.script(evaluations),
    }
    model = student.keep(Fake.script([0.0], parameters={"weight": (2, 2)}), "plot_learning_curves")
    loaders = {
        part: batches(torch.zeros(2, 3, 8, 8), torch.tensor([0, 1]), [1, 1])
        for part in ("train", "validation")
    }
    history = student.attempted(
        lambda: student.call("fit", model, loaders, 3, torch.device("cpu"), replace=fakes).returned
    )
    if history is None:
        raise Mismatch("There is no history to draw: fit has to work first.")
    outcome = drawing(student, "plot_learning_curves", history.plain)
    found = [curve for curve in curves(outcome) if len(curve.y) == 3]

    def shown(*values):
        return any(
            np.allclose(curve.y, factor * np.array(values), atol=1e-3 * factor)
            for curve in found
            for factor in (1, 100)
        )

    if shown(0.91, 0.72, 0.63) and not shown(0.84, 0.75, 0.77) and not shown(0.41, 0.47, 0.45):
        raise Mismatch(
            "There is a curve of the training loss, and none of the validation.",
            hint="Draw losses and accuracies of the validation beside those of the training.",
            look_for="plot()",
        )
    named_axes = [
        axes.x_label + axes.y_label + axes.title for figure in outcome.figures for axes in figure.axes
    ]
    names = [curve.name + curve.x_label + curve.y_label + curve.title for curve in found]
    if found and not any(names) and not any(named_axes):
        raise Mismatch(
            "Neither the axes nor the curves have names.",
            hint="label= for each curve, legend(), and labels of both axes.",
            look_for="plot()",
        )


@pytest.mark.component("plot_confusion_matrix")
def test_confusion_matrix_draws(student):
    """plot_confusion_matrix draws a figure."""
    if not student.call(
        "plot_confusion_matrix", np.array([[3, 1], [0, 4]]), ["a", "b"], figures=True
    ).figures:
        raise Mismatch("plot_confusion_matrix draws nothing.")


@pytest.mark.component("plot_confusion_matrix")
@pytest.mark.because("confusion_matrix_draws")
@pytest.mark.weight(0.25)
def test_confusion_matrix_has_true_classes_as_rows(student):
    """Rows are the true classes, and the names stand on both axes."""
    matrix = np.array([[30, 4, 1], [9, 20, 2], [5, 7, 10]])
    outcome = drawing(student, "plot_confusion_matrix", matrix, list(CLASS_NAMES))
    found = heat_maps(outcome, CLASS_NAMES)
    if not found:
        return
    shown = found[0]
    values = shown.values.T if shown.row_role == PREDICTED or shown.column_role == TRUE else shown.values
    shares = matrix / matrix.sum(axis=1, keepdims=True)
    ways = (matrix, shares, 100 * shares)
    if not any(np.allclose(values, way, atol=1e-2) for way in ways) and any(
        np.allclose(values.T, way, atol=1e-2) for way in ways
    ):
        raise Mismatch(
            "The matrix is shown transposed: its first row, the anvils, stands in the first column.",
            hint="Show the matrix as it is given: its rows are the true classes.",
            look_for="imshow() | heatmap() | matshow() | pcolormesh() | pcolor()",
        )
    if not shown.is_named:
        raise Mismatch(
            "The names of the classes are not on both axes.",
            hint="set_xticks and set_yticks with range(len(class_names)) and class_names.",
            look_for="imshow() | heatmap() | matshow() | pcolormesh() | pcolor()",
        )


@pytest.mark.component("plot_roc")
def test_roc_draws(student):
    """plot_roc draws a figure."""
    shares = np.array([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]])
    if not student.call("plot_roc", np.array([0, 1, 1]), shares, ["a", "b"], figures=True).figures:
        raise Mismatch("plot_roc draws nothing.")


@pytest.mark.component("plot_roc")
@pytest.mark.because("roc_draws")
@pytest.mark.weight(0.25)
def test_roc_has_a_curve_for_each_class(student):
    """Each class has its ROC curve, with its name: the false positive rate is the horizontal axis."""
    outcome = drawing(student, "plot_roc", TRUE_CLASSES, SAID, list(CLASS_NAMES))
    areas, begun = [], []
    for curve in curves(outcome):
        x, y = np.asarray(curve.x, dtype=float), np.asarray(curve.y, dtype=float)
        if len(x) > 2 and np.isfinite(x).all() and np.isfinite(y).all():
            areas.append(abs(float(((y[1:] + y[:-1]) / 2 * (x[1:] - x[:-1])).sum())))
            begun.append(bool((np.abs(x) + np.abs(y)).min() < 1e-6))
    if begun and not any(begun):
        raise Mismatch(
            "No curve begins at (0, 0), where no image is called positive.",
            hint="Put a threshold above all probabilities in front, or the point (0, 0).",
            look_for="unique() | sort() | argsort(), plot()",
        )

    def shown(wanted):
        return all(any(abs(area - each) < 5e-3 for area in areas) for each in wanted)

    if not shown(AREAS):
        if shown([1 - each for each in AREAS]):
            raise Mismatch(
                "The axes are exchanged: the false positive rate should be the horizontal one.",
                hint="plot(false_positive_rates, true_positive_rates)",
                look_for="plot(_, _, label=_), plot()",
            )
        if shown(AREAS_OF_PREDICTIONS):
            raise Mismatch(
                "The curves are those of the predicted labels, with a single corner each.",
                hint="Each class's curve is made from its column of the probabilities: each of them is a "
                "threshold.",
                look_for="argmax()",
            )
        return
    missing = [
        name
        for label, name in enumerate(CLASS_NAMES)
        if label not in classes_named(all_texts(outcome), CLASS_NAMES)
    ]
    if missing:
        raise Mismatch(
            f"Nothing in the figure says which curve is that of the class {missing[0]!r}.",
            hint="label=name for each curve, and legend().",
            look_for="plot()",
        )


# how the pictures were normalized
PICTURE_MEAN, PICTURE_STD, PICTURES = (0.4, 0.5, 0.3), (0.25, 0.2, 0.3), 3
FOUR_NAMES = ("anvil", "bell", "crown", "drum")
UNDONE = "image * std + mean, for each channel, before the channels go last."


def normalized_pictures(student):
    """(data of rigged images, how they look from 0 to 1, the same normalized)."""
    data = classified_data(FOUR_NAMES, (PICTURES,), accuracy=0.5, seed=student.next_seed(), shape=(3, 16, 16))
    looks = torch.from_numpy(data.arrays["images"]) * 0.5 + 0.5
    mean, std = (torch.tensor(each).view(3, 1, 1) for each in (PICTURE_MEAN, PICTURE_STD))
    return data, looks, (looks - mean) / std


def in_color(outcome):
    """The pictures with colors in the figures, from 0 to 1, (16, 16, 3)."""
    for value in outcome.arrays.values():
        if value.shape[:2] == (16, 16) and value.ndim == 3:
            yield (value / 255 if value.max() > 1.5 else value)[..., :3]


def shows(outcome, wanted):
    """Whether a picture is one of these, (n, 3, 16, 16)."""
    return any(
        np.abs(found - each).max() < 0.02
        for found in in_color(outcome)
        for each in wanted.permute(0, 2, 3, 1).numpy()
    )


def require_restored(outcome, looks, normalized):
    """Check that images are shown as they were; what can be recognized as something else is said."""
    if shows(outcome, looks):
        return
    mean, std = (torch.tensor(each).view(3, 1, 1) for each in (PICTURE_MEAN, PICTURE_STD))
    if shows(outcome, (normalized * mean + std).clamp(0, 1)):
        raise Mismatch(
            "The normalization is undone with mean and std exchanged.",
            hint=UNDONE,
            look_for="_ * mean + std, imshow()",
        )
    if shows(outcome, normalized.clamp(0, 1)):
        raise Mismatch(
            "The images are shown as they are given, normalized; they should be shown as they were before.",
            hint=UNDONE,
            look_for="imshow(), permute() | transpose()",
        )


# >>> ONLY full
@pytest.mark.component("plot_attention")
@pytest.mark.weight(0.25)
def test_attention_is_drawn_over_the_image(student):
    """Each image is shown as it was, with its class, its map, and the map laid over it."""
    data, looks, normalized = normalized_pictures(student)
    sizes = {"image_size": 16, "patch_size": 4, "dim": 8, "depth": 1, "heads": 2}
    fake = Fake.script(
        [0.0],
        parameters={"weight": (1,)},
        methods={"attention": Fake.script([(2 * student.tensor(1, 2, 17, 17)).softmax(dim=-1)])},
        like=("VisionTransformer", sizes),
    )
    model = student.keep(fake, "plot_attention")
    student.component(model).call("eval")
    replaced = {"attention_map": Fake.script([torch.rand(16, 16, generator=student.random)])}
    labels = torch.from_numpy(data.labels)
    outcome = drawing(
        *(student, "plot_attention", model, normalized, labels, list(FOUR_NAMES), PICTURE_MEAN, PICTURE_STD),
        replace=replaced,
    )
    require_restored(outcome, looks, normalized)
    if not shows(outcome, looks):
        return
    wanted = looks.permute(0, 2, 3, 1).numpy()
    laid = any(
        axes.heat_maps or len({outcome.arrays[f"image{number}"].ndim for number in axes.images}) > 1
        for figure in outcome.figures
        for axes in figure.axes
        if axes.images
    )
    blended = any(all(np.abs(found - each).max() > 0.05 for each in wanted) for found in in_color(outcome))
    if not laid and not blended:
        raise Mismatch(
            "The map is laid over no image: there is no picture of both.",
            hint="imshow(picture), and then imshow(heat, alpha=0.5) in the same axes.",
            look_for="imshow(heat) | imshow(heat, cmap=_)",
        )
    said = classes_named(all_texts(outcome), FOUR_NAMES)
    if not set(data.labels.tolist()) & set(said):
        raise Mismatch(
            "The images are shown without the names of their classes.",
            hint="set_title(class_names[int(label)]) for each image.",
            look_for="imshow(picture)",
        )


# <<< ONLY


@pytest.mark.component("plot_top3")
@pytest.mark.weight(0.25)
def test_top3_names_the_likeliest_classes(student):
    """Each image has its true class and the three likeliest ones."""
    data, _, normalized = normalized_pictures(student)
    shares = torch.tensor([[0.4, 0.3, 0.2, 0.1], [0.1, 0.2, 0.3, 0.4], [0.3, 0.1, 0.4, 0.2]])
    labels, least = torch.tensor([3, 0, 1]), ("the three least likely classes", "topk() | argsort() | sort()")
    outcome = drawing(
        *(student, "plot_top3", normalized, labels, shares, list(FOUR_NAMES), PICTURE_MEAN, PICTURE_STD)
    )
    for picture in pictures(outcome, data)[1]:
        true = int(labels[picture.number])
        said = set(classes_named("\n".join([*picture.captions, *picture.ticks]), FOUR_NAMES))
        others = set(range(4)) - {true}
        if said == {0, 1, 2, 3} and others <= said:
            continue
        likely = int(shares[picture.number].argmax())
        if true in said and likely not in said and len(said) == 3:
            raise Mismatch(
                f"An image has {least[0]} instead of the three likeliest: {FOUR_NAMES[likely]!r}, its "
                "likeliest, is missing.",
                hint="The three largest probabilities, the largest first: torch.topk(3).",
                look_for=least[1],
            )
        if said == others:
            raise Mismatch(
                "An image is shown with its three likeliest classes, but without its true one, "
                f"{FOUR_NAMES[true]!r}.",
                hint="Write the true class above the three, too: class_names[int(label)].",
                look_for="set_title() | title()",
            )


@pytest.mark.component("plot_top3")
@pytest.mark.because("top3_names_the_likeliest_classes")
@pytest.mark.weight(0.25)
def test_top3_has_the_images_as_they_were(student):
    """The images are shown as they were before they were normalized."""
    data, looks, normalized = normalized_pictures(student)
    shares, labels = student.tensor(PICTURES, 4).softmax(dim=1), torch.from_numpy(data.labels)
    outcome = drawing(
        *(student, "plot_top3", normalized, labels, shares, list(FOUR_NAMES), PICTURE_MEAN, PICTURE_STD)
    )
    require_restored(outcome, looks, normalized)
